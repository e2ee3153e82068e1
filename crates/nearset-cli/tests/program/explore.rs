//! The explorer's server: what a stranger's page is refused, and that the API says what the commands say.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Workshop, corpus, jsonl, parquet};

/// A running explorer.
struct Explorer {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Explorer {
    fn start(shop: &Workshop, arguments: &str) -> Self {
        let mut command = shop.command(&format!("explore {arguments} --no-open"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let rest = address.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{address:?}"));
        let (port, token) = rest.split_once("/#").unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    /// Sends bytes as they are, and returns the status and the body.
    fn send(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        assert!(head.contains("default-src 'none'; script-src 'self'"), "{head}");
        assert!(!head.contains("Access-Control"), "{head}");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post(&self, question: &str, headers: &str, body: &str) -> (u16, String) {
        let (port, length) = (self.port, body.len());
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{port}\r\n") };
        let request = format!("POST /api/{question} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\r\n{body}");
        self.send(request.as_bytes())
    }

    /// Begins a session, and returns the header that it is known by.
    fn session(&self) -> String {
        let (status, body) = self.post("session", "", &json!({ "token": self.token }).to_string());
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        format!("X-Nearset-Session: {}\r\n", body["session"].as_str().unwrap())
    }

    fn ask(&self, session: &str, question: &str, body: Value) -> Result<Value, String> {
        let (status, answer) = self.post(question, session, &body.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["error"].as_str().map_or(Ok(answer.clone()), |error| Err(error.to_owned()))
    }

    fn wait(&self, session: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let state = self.ask(session, "state", json!({})).unwrap();
            if state["corpus"]["status"] != "reading" {
                return state;
            }
            assert!(Instant::now() < until, "{state}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_stranger_s_page_is_refused() {
    let shop = Workshop::new();
    let explorer = Explorer::start(&shop, "");
    let (port, session) = (explorer.port, explorer.session());
    assert_eq!(explorer.post("state", &session, "").0, 200);
    // Another origin, in every way that a browser tells it.
    for foreign in [
        "Origin: https://example.org\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: http://127.0.0.1:{}\r\n", port + 1),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n".to_owned(),
    ] {
        assert_eq!(explorer.post("state", &format!("{session}{foreign}"), "").0, 403, "{foreign}");
    }
    assert_eq!(explorer.post("state", &format!("{session}Origin: http://127.0.0.1:{port}\r\n"), "").0, 200);
    // A name that was bound to this address.
    for host in
        ["rebound.example.org".to_owned(), format!("rebound.example.org:{port}"), "127.0.0.1".to_owned(), String::new()]
    {
        assert_eq!(explorer.post("state", &format!("Host: {host}\r\n{session}"), "").0, 403, "{host}");
        let page = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(explorer.send(page.as_bytes()).0, 403, "{host}");
    }
    assert_eq!(explorer.send(b"POST /api/state HTTP/1.1\r\n\r\n").0, 403, "no host");
    // No session, a wrong one, and a token that was spent.
    for wrong in ["", "X-Nearset-Session: \r\n", "X-Nearset-Session: 00000000000000000000000000000000\r\n"] {
        assert_eq!(explorer.post("state", wrong, "").0, 403, "{wrong}");
    }
    let spent = explorer.post("session", "", &json!({ "token": explorer.token }).to_string());
    assert!(spent.0 == 403 && spent.1.contains("printed last"), "{spent:?}");
    // What a browser asks before it sends such headers is not allowed either.
    let preflight =
        format!("OPTIONS /api/state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: https://example.org\r\n\r\n");
    assert_eq!(explorer.send(preflight.as_bytes()).0, 403);
}

#[test]
fn without_files_it_shows_the_example_until_ctrl_c() {
    let shop = Workshop::new();
    let mut explorer = Explorer::start(&shop, "");
    let session = explorer.session();
    assert_eq!(explorer.wait(&session)["corpus"]["records"], 720);
    let shown = explorer.ask(&session, "decide", json!({ "near": 0.8 })).unwrap();
    let example = shown["command"].as_str().unwrap().split(' ').nth(2).unwrap().to_owned();
    assert!(Path::new(&example).exists(), "{example}");
    let pid = explorer.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(explorer.child.wait().unwrap().success());
    assert!(!Path::new(&example).exists(), "the example goes with the program");
}

#[test]
fn paths_name_files_of_the_page_and_nothing_on_the_disk() {
    let shop = Workshop::new();
    let explorer = Explorer::start(&shop, "");
    let get = |path: &str| {
        explorer.send(format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", explorer.port).as_bytes())
    };
    let (status, page) = get("/");
    assert!(status == 200 && page.contains("<title>nearset explore</title>"));
    assert!(!page.contains("<script>") && !page.contains("style=") && !page.contains("onclick"), "nothing inline");
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing from elsewhere");
    for file in ["/explore.js?x=1", "/style.css"] {
        assert_eq!(get(file).0, 200, "{file}");
    }
    for path in [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/%2e%2e/Cargo.toml",
        "/explore.js/../..",
        "/explore.js%00",
        "/page/index.html",
        "/api",
        "http://127.0.0.1/etc/passwd",
        "*",
    ] {
        assert_eq!(get(path).0, 404, "{path}");
    }
}

#[test]
fn what_is_too_large_or_no_request_is_refused_unread() {
    let shop = Workshop::new();
    let explorer = Explorer::start(&shop, "");
    let (port, session) = (explorer.port, explorer.session());
    let post = |more: &str| {
        explorer.send(format!("POST /api/state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{session}{more}\r\n").as_bytes())
    };
    assert_eq!(post("Content-Length: 1000000000\r\n").0, 413);
    assert_eq!(post("Content-Length: 1048577\r\n").0, 413);
    assert_eq!(post("Content-Length: 99999999999999999999999\r\n").0, 400);
    assert_eq!(post("Content-Length: -1\r\n").0, 400);
    assert_eq!(post("Content-Length: 0\r\nContent-Length: 5\r\n").0, 400);
    assert_eq!(post("Transfer-Encoding: chunked\r\n").0, 411);
    assert_eq!(post(&format!("Host: 127.0.0.1:{port}\r\n")).0, 400);
    assert_eq!(post(&format!("X: {}\r\n", "x".repeat(20_000))).0, 431);
    assert_eq!(explorer.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").0, 400);
    assert_eq!(explorer.post("decide", &session, "{\"near\":\"much\"}").0, 400);
    assert_eq!(explorer.post("nothing", &session, "{}").0, 404);
    // Whoever sends a gigabyte without saying so is not listened to for long.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let line = [b'x'; 64 << 10];
    let sent = (0..16_384).take_while(|_| stream.write_all(&line).is_ok()).count();
    assert!(sent < 16_384, "all of it was taken");
    assert_eq!(explorer.post("state", &session, "").0, 200, "it still answers");
}

/// Runs a command as somebody would who pasted it.
fn in_a_shell(shop: &Workshop, command: &str) {
    let folder = Path::new(env!("CARGO_BIN_EXE_nearset")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    let ran =
        shell.arg("-c").arg(format!("{command} --force -q")).current_dir(shop.path(".")).env("PATH", path).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_shown_command_removes_the_shown_records() {
    let shop = Workshop::new();
    let (texts, _) = corpus(400);
    shop.write("in put's.jsonl", jsonl(&texts));
    // Its name has a space and a quote for the shell to mind.
    let explorer = Explorer::start(&shop, "in*.jsonl");
    let session = explorer.session();
    let state = explorer.wait(&session);
    assert_eq!(state["corpus"]["records"], texts.len());
    let mut counts = BTreeSet::new();
    for near in [0.55, 0.8, 0.95] {
        let shown = explorer.ask(&session, "decide", json!({ "near": near })).unwrap();
        let command = shown["command"].as_str().unwrap();
        in_a_shell(&shop, command);
        assert_eq!(shop.text("removed.jsonl").lines().count() as u64, shown["removed"].as_u64().unwrap(), "{command}");
        counts.insert(shown["removed"].as_u64());
    }
    assert!(counts.len() > 1, "{counts:?}");
    // A mark against a removal brings the record back, in the page and by the exported decisions.
    let before = explorer.ask(&session, "decide", json!({ "near": 0.8 })).unwrap();
    let border = explorer.ask(&session, "border", json!({ "near": 0.8 })).unwrap();
    let pairs = border["pairs"].as_array().unwrap();
    let goes = pairs.iter().find(|pair| pair["goes"] == true).unwrap();
    let mark = json!({ "near": 0.8, "a": goes["a"], "b": goes["b"], "duplicate": false });
    let marks = explorer.ask(&session, "mark", mark).unwrap();
    assert_eq!(marks["precision"][0]["marked"], 1);
    shop.write("decisions.jsonl", marks["decisions"].as_str().unwrap());
    let after = explorer.ask(&session, "decide", json!({ "near": 0.8 })).unwrap();
    assert_ne!(before["removed"], after["removed"]);
    let command = after["command"].as_str().unwrap();
    assert!(command.contains("--decisions decisions.jsonl"), "{command}");
    in_a_shell(&shop, command);
    assert_eq!(shop.text("removed.jsonl").lines().count() as u64, after["removed"].as_u64().unwrap());
}

#[test]
fn records_of_any_format_go_to_a_folder() {
    let shop = Workshop::new();
    let (texts, _) = corpus(100);
    parquet(&shop.path("in.parquet"), &texts);
    let explorer = Explorer::start(&shop, "in.parquet");
    let session = explorer.session();
    explorer.wait(&session);
    let shown = explorer.ask(&session, "decide", json!({ "near": 0.8 })).unwrap();
    in_a_shell(&shop, shown["command"].as_str().unwrap());
    assert_eq!(shop.text("removed.jsonl").lines().count() as u64, shown["removed"].as_u64().unwrap());
    assert!(shown["removed"].as_u64().unwrap() > 0 && shop.exists("kept/in.parquet"), "{:?}", shop.names());
}

#[test]
fn plans_and_filters_are_those_of_the_commands() {
    let shop = Workshop::new();
    let (texts, _) = corpus(100);
    shop.write("in.jsonl", jsonl(&texts));
    shop.ok("build in.jsonl -o seen.nearset --metric jaccard --near 0.8 --capacity 1000");
    let explorer = Explorer::start(&shop, "seen.nearset");
    let session = explorer.session();
    assert_eq!(explorer.wait(&session)["corpus"]["status"], "none");
    let wanted =
        json!({ "metric": "hamming", "bits": "256", "near": "4", "far": "60", "capacity": "1M", "max-fn": "0" });
    let shown = explorer.ask(&session, "plan", wanted).unwrap();
    let planned = shop.ok("plan --metric hamming --bits 256 --near 4 --far 60 --capacity 1M --max-fn 0 --json");
    assert_eq!(shown["plan"], serde_json::from_slice::<Value>(planned.stdout()).unwrap());
    let typed = shop.ok(&format!("{} --json", shown["command"].as_str().unwrap().strip_prefix("nearset ").unwrap()));
    assert_eq!(typed.stdout(), planned.stdout());
    let wrong = json!({ "metric": "jaccard", "near": "0.5", "far": "0.8", "capacity": "10" });
    let error = explorer.ask(&session, "plan", wrong).unwrap_err();
    assert!(error.contains("--near 0.5 must be larger than --far 0.8"), "{error}");
    let filter = explorer.ask(&session, "filter", json!({ "path": "seen.nearset" })).unwrap();
    assert_eq!(filter["items"], 100);
    let said = explorer.ask(&session, "ask", json!({ "path": "seen.nearset", "item": texts[0] })).unwrap();
    assert!(said["near"] == true && said["hits"] == said["bands"], "{said}");
    assert_eq!(said["by_band"], json!(vec![true; said["bands"].as_u64().unwrap() as usize]));
    let mut bytes = shop.read("seen.nearset");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    shop.write("damaged.nearset", bytes);
    let error = explorer.ask(&session, "filter", json!({ "path": "damaged.nearset" })).unwrap_err();
    assert!(error.contains("damaged.nearset") && error.contains("checksum"), "{error}");
    assert!(explorer.ask(&session, "filter", json!({ "path": "/etc/passwd" })).is_err());
    let error = explorer.ask(&session, "decide", json!({ "near": 0.8 })).unwrap_err();
    assert!(error.contains("no file of records"), "{error}");
}

#[test]
fn what_cannot_be_read_ends_it_with_the_reason() {
    let shop = Workshop::new();
    shop.write("in.jsonl", "{\"text\":\"some words\"}\n");
    for (arguments, why) in [
        ("explore in.jsonl --text-field txet", "no field \"txet\": there are \"text\"\nhint: name another"),
        ("explore - --port 0", "a pipe can't be read twice\nhint: save it to a file first"),
    ] {
        let ran = shop.run_with_stdin(&format!("{arguments} --no-open"), b"");
        assert_eq!(ran.code(), 1, "{}", ran.stderr());
        assert!(ran.stderr().contains(why), "{}", ran.stderr());
    }
}
