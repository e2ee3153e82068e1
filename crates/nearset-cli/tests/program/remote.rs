//! Files of a web server are read as those on a disk are, whatever the connection does. Stores are tested by
//! `crates/nearset-records/test.sh`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{Workshop, corpus, gzip, jsonl, parquet};

/// What a server does, while it runs.
#[derive(Default)]
struct Manners {
    /// Answers that are still to be cut off in their middle.
    cuts: AtomicU64,
    /// Answers that were.
    cut: AtomicU64,
    /// Whether it sends no parts of files.
    no_parts: AtomicBool,
    /// Whether it states nothing by which versions are told apart.
    no_tags: AtomicBool,
    /// Whether it does not say how long a file is.
    no_sizes: AtomicBool,
    /// Whether it does not say so with their parts.
    no_totals: AtomicBool,
    /// Answers that were whole files.
    wholes: AtomicU64,
    /// Whether files have another version for those who read on and on, beyond a look.
    changes: AtomicBool,
    /// The status of what is not given to everybody.
    refused: Mutex<BTreeMap<String, u16>>,
}

/// A web server of a folder, with parts of files and their versions.
struct Server {
    address: std::net::SocketAddr,
    manners: Arc<Manners>,
}

impl Server {
    fn start(shop: &Workshop) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let manners = Arc::new(Manners::default());
        let (root, shared) = (shop.path(""), Arc::clone(&manners));
        // It ends with the tests' process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (root, manners) = (root.clone(), Arc::clone(&shared));
                thread::spawn(move || serve(&stream.unwrap(), &root, &manners));
            }
        });
        Self { address, manners }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

/// Answers the requests of one connection. A client may go away at any moment.
fn serve(stream: &TcpStream, root: &Path, manners: &Manners) -> Option<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut head: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let path = head[0].split(' ').nth(1)?.split('?').next()?.trim_start_matches('/').to_owned();
        answer(stream, &root.join(&path), &path, &head, manners)?;
    }
}

fn answer(mut stream: &TcpStream, file: &Path, path: &str, head: &[String], manners: &Manners) -> Option<()> {
    let refused = manners.refused.lock().unwrap().get(path).copied();
    let bytes = match (refused, std::fs::read(file)) {
        (None, Ok(bytes)) => bytes,
        (refused, _) => {
            let status = refused.unwrap_or(404);
            return write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").ok();
        }
    };
    let range = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let range = range.filter(|_| !manners.no_parts.load(Ordering::Relaxed)).and_then(|range| {
        let (from, to) = range.split_once('-')?;
        let to: usize = to.parse().unwrap_or(usize::MAX - 1);
        Some((from.parse::<usize>().ok()?, (to + 1).min(bytes.len())))
    });
    let is_read_on = range.is_some_and(|(from, to)| to.saturating_sub(from) > 1 << 19);
    let version = if manners.changes.load(Ordering::Relaxed) && is_read_on { 2 } else { 1 };
    let tag = match manners.no_tags.load(Ordering::Relaxed) {
        true => String::new(),
        false => format!("ETag: \"{version}-{}\"\r\n", bytes.len()),
    };
    manners.wholes.fetch_add(u64::from(range.is_none()), Ordering::Relaxed);
    let total = match manners.no_totals.load(Ordering::Relaxed) {
        true => "*".to_owned(),
        false => bytes.len().to_string(),
    };
    let (first, body) = match range {
        Some((from, _)) if from >= bytes.len() && total == "*" => {
            return write!(stream, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n{tag}\r\n").ok();
        }
        Some((from, _)) if from >= bytes.len() => {
            let text =
                format!("HTTP/1.1 416 No\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n{tag}\r\n", bytes.len());
            return stream.write_all(text.as_bytes()).ok();
        }
        Some((from, to)) => {
            (format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{total}", to - 1), &bytes[from..to])
        }
        None => ("200 OK".to_owned(), &bytes[..]),
    };
    // Without a size, all is one chunk.
    let (length, before, end) = match manners.no_sizes.load(Ordering::Relaxed) {
        true => ("Transfer-Encoding: chunked".to_owned(), format!("{:x}\r\n", body.len()), "\r\n0\r\n\r\n"),
        false => (format!("Content-Length: {}", body.len()), String::new(), ""),
    };
    write!(stream, "HTTP/1.1 {first}\r\n{length}\r\n{tag}\r\n{before}").ok()?;
    // A short answer is not worth the trouble, and one byte at least gets through.
    let take_one = |left: u64| left.checked_sub(1);
    if body.len() > 10_000 && manners.cuts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
        manners.cut.fetch_add(1, Ordering::Relaxed);
        stream.write_all(&body[..body.len() / 3]).ok()?;
        let _ = stream.shutdown(Shutdown::Both);
        return None;
    }
    stream.write_all(body).ok()?;
    stream.write_all(end.as_bytes()).ok()
}

/// A corpus of some MB in a plain file, a packed one and a Parquet file.
fn files(shop: &Workshop) {
    let (texts, _) = corpus(9000);
    let lines = jsonl(&texts);
    let cut = |part: usize| lines.len() * part / 3 + lines[lines.len() * part / 3..].find('\n').unwrap() + 1;
    shop.write("data/a.jsonl", &lines[..cut(1)]);
    shop.write("data/b.jsonl.gz", gzip(&lines[cut(1)..cut(2)]));
    shop.write("data/c.jsonl.zst", zstd::encode_all(&lines.as_bytes()[cut(2)..], 3).unwrap());
    parquet(&shop.path("data/d.parquet"), &texts[..2000]);
}

#[test]
fn files_of_a_server_are_read_as_those_of_a_disk() {
    let shop = Workshop::new();
    files(&shop);
    let server = Server::start(&shop);
    let url = server.url("data");
    shop.ok("dedup data/a.jsonl data/b.jsonl.gz data/c.jsonl.zst -o here.jsonl.zst -q");
    shop.ok(&format!("dedup {url}/{{a.jsonl,b.jsonl.gz,c.jsonl.zst}} -o there.jsonl.zst -q --removed removed.jsonl"));
    assert_eq!(shop.read("here.jsonl.zst"), shop.read("there.jsonl.zst"));
    // Records are named by their URL.
    assert!(shop.text("removed.jsonl").contains(&format!("\"near_file\":\"{url}/a.jsonl\"")));
    shop.ok("dedup data/d.parquet -o here.parquet -q");
    shop.ok(&format!("dedup {url}/d.parquet?signature=secret -o there.parquet -q"));
    assert_eq!(shop.read("here.parquet"), shop.read("there.parquet"));
    // One output per input, by the names behind what they have in common.
    shop.ok(&format!("dedup {url}/a.jsonl {url}/b.jsonl.gz -o parts/ -q"));
    assert!(shop.exists("parts/a.jsonl") && shop.exists("parts/b.jsonl.gz"));
    for command in
        ["pairs IN -o -", "build IN -o a.nearset --near 0.8", "cluster IN -o -", "dedup IN -o u.jsonl --unit line"]
    {
        shop.ok(&format!("{} -q", command.replace("IN", &format!("{url}/a.jsonl"))));
    }
}

#[test]
fn a_connection_that_is_cut_changes_nothing() {
    let shop = Workshop::new();
    files(&shop);
    let server = Server::start(&shop);
    let url = server.url("data");
    let inputs = ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"];
    let [here, there] = ["data", &url].map(|root| inputs.map(|name| format!("{root}/{name}")).join(" "));
    shop.ok(&format!("dedup {here} -o here.jsonl -q"));
    for no_parts in [false, true] {
        server.manners.no_parts.store(no_parts, Ordering::Relaxed);
        server.manners.cuts.store(if no_parts { 3 } else { 24 }, Ordering::Relaxed);
        server.manners.cut.store(0, Ordering::Relaxed);
        shop.ok(&format!("dedup {there} -o there.jsonl -q --force"));
        assert!(shop.read("here.jsonl") == shop.read("there.jsonl"), "parts: {}", !no_parts);
        let cut = server.manners.cut.load(Ordering::Relaxed);
        assert_eq!(cut, if no_parts { 3 } else { 24 });
    }
}

/// Kills the command at its first checkpoints, resuming each time, and leaves it finished. How often it was killed.
fn run_killing_at_checkpoints(shop: &Workshop, arguments: &str) -> u32 {
    let state = || std::fs::read(shop.path("out.jsonl.resume/state.json")).unwrap_or_default();
    for kills in 0.. {
        let before = state();
        let mut command = shop.command(&format!("{arguments} --resume -q"));
        let mut child = command.env("NEARSET_CHECKPOINT_BYTES", "50000").spawn().unwrap();
        let status = loop {
            let has_come_on = kills < 3 && state() != before;
            match child.try_wait().unwrap() {
                None if has_come_on => break None,
                None => thread::sleep(Duration::from_millis(1)),
                done => break done,
            }
        };
        if let Some(status) = status {
            assert!(status.success(), "{arguments} after {kills} kills");
            return kills;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if shop.exists("out.jsonl") && state().is_empty() {
            // It was done before it was killed.
            return kills + 1;
        }
    }
    unreachable!()
}

#[test]
fn a_killed_run_over_a_server_resumes() {
    let shop = Workshop::new();
    files(&shop);
    let server = Server::start(&shop);
    let inputs = ["a.jsonl", "b.jsonl.gz"].map(|name| server.url(&format!("data/{name}"))).join(" ");
    let mut kills = 0;
    for options in ["", "--no-verify --capacity 10000"] {
        let arguments = format!("dedup {inputs} -o out.jsonl {options}");
        let whole = shop.command(&arguments).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let expected = shop.read("out.jsonl");
        for _ in 0..2 {
            std::fs::remove_file(shop.path("out.jsonl")).unwrap();
            kills += run_killing_at_checkpoints(&shop, &arguments);
            assert!(shop.read("out.jsonl") == expected, "{options}");
        }
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
    }
    assert!(kills > 1, "killed only {kills} times");
}

#[test]
fn a_server_without_parts_or_sizes_sends_a_file_a_few_times() {
    let shop = Workshop::new();
    files(&shop);
    shop.write("data/empty.jsonl", "");
    let server = Server::start(&shop);
    let url = server.url("data");
    shop.ok("dedup data/a.jsonl -o here.jsonl -q");
    // Looked at, sniffed, sampled for its size, for memory and for common shingles, and read.
    server.manners.no_parts.store(true, Ordering::Relaxed);
    shop.ok(&format!("dedup {url}/a.jsonl -o there.jsonl -q"));
    assert!(shop.read("here.jsonl") == shop.read("there.jsonl"));
    let wholes = server.manners.wholes.load(Ordering::Relaxed);
    assert!(wholes <= 6, "{wholes} times");
    // What is not said with a part is said without one.
    server.manners.no_parts.store(false, Ordering::Relaxed);
    server.manners.no_totals.store(true, Ordering::Relaxed);
    shop.ok(&format!("dedup {url}/empty.jsonl {url}/a.jsonl -o there.jsonl -q --force"));
    assert!(shop.read("here.jsonl") == shop.read("there.jsonl"));
}

#[test]
fn an_object_that_changes_is_noticed() {
    let shop = Workshop::new();
    files(&shop);
    let server = Server::start(&shop);
    let url = server.url("data/a.jsonl");
    // In the midst of a run, which leaves out no record for it.
    server.manners.changes.store(true, Ordering::Relaxed);
    let ran = shop.run(&format!("dedup {url} -o out.jsonl -q --on-error skip --no-verify --capacity 10000"));
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("has changed since it was looked at"), "{}", ran.stderr());
    assert!(!shop.exists("out.jsonl"));
    // Between a run and its continuation.
    server.manners.changes.store(false, Ordering::Relaxed);
    shop.write("data/b.jsonl", shop.text("data/a.jsonl") + "{broken\n");
    let arguments = format!("dedup {} -o out.jsonl -q --no-verify --capacity 10000", server.url("data/b.jsonl"));
    let ran = shop.command(&arguments).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    shop.write("data/b.jsonl", shop.text("data/a.jsonl").replacen("w1", "x1", 1) + "{\"text\": \"mended\"}\n");
    let ran = shop.command(&format!("{arguments} --resume")).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(1) && said.contains("changed"), "{said}");
}

#[test]
fn what_may_change_unnoticed_is_read_once_and_in_one_piece() {
    let shop = Workshop::new();
    files(&shop);
    let server = Server::start(&shop);
    server.manners.no_tags.store(true, Ordering::Relaxed);
    let url = server.url("data/a.jsonl");
    shop.ok("dedup data/a.jsonl -o here.jsonl -q");
    shop.ok(&format!("dedup {url} -o there.jsonl -q"));
    assert!(shop.read("here.jsonl") == shop.read("there.jsonl"));
    let says = |arguments: &str| {
        let ran = shop.run(arguments);
        assert!(ran.code() == 1 && ran.stderr().contains("neither an ETag nor a time of change"), "{}", ran.stderr());
        assert!(!shop.exists("out.jsonl") && !shop.exists("out.parquet"));
    };
    says(&format!("dedup {url} -o out.jsonl --keep longest"));
    says(&format!("cluster {url} -o out.jsonl --chain"));
    says(&format!("dedup {} -o out.parquet", server.url("data/d.parquet")));
    // A run that fails in its midst leaves nothing that another version could be put behind.
    shop.write("data/broken.jsonl", shop.text("data/a.jsonl") + "{broken\n");
    let arguments = format!("dedup {} -o out.jsonl -q --no-verify --capacity 10000", server.url("data/broken.jsonl"));
    let ran = shop.command(&arguments).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
    assert!(ran.status.code() == Some(1) && !shop.exists("out.jsonl.resume") && !shop.exists("out.jsonl.partial"));
    // What follows a cut may be of another version too.
    server.manners.cuts.store(1000, Ordering::Relaxed);
    says(&format!("dedup {url} -o out.jsonl --no-verify --capacity 10000"));
    // Those of a server that tells versions apart, but not how long they are, can be read on.
    server.manners.no_tags.store(false, Ordering::Relaxed);
    server.manners.no_sizes.store(true, Ordering::Relaxed);
    server.manners.no_parts.store(true, Ordering::Relaxed);
    server.manners.cuts.store(3, Ordering::Relaxed);
    shop.ok(&format!("dedup {url} -o out.jsonl -q"));
    assert!(shop.read("here.jsonl") == shop.read("out.jsonl"));
}

#[test]
fn what_cannot_be_reached_is_named_with_a_cure() {
    let shop = Workshop::new();
    shop.write("a.jsonl", "{\"text\": \"one\"}\n");
    shop.write("list/index", "");
    shop.write("empty.jsonl", "");
    let server = Server::start(&shop);
    server.manners.refused.lock().unwrap().insert("b.jsonl".to_owned(), 403);
    let says = |arguments: String, parts: &[&str]| {
        let ran = shop.run(&arguments);
        let said = ran.stderr();
        assert_ne!(ran.code(), 0, "{arguments}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments}: {said}");
        assert!(!said.contains("secret"), "{said}");
    };
    let url = |name: &str| server.url(name);
    says(format!("dedup {} -o o.jsonl", url("none.jsonl?key=secret")), &["none.jsonl", "404", "check"]);
    says(format!("dedup {} -o o.jsonl", url("b.jsonl")), &["b.jsonl", "403 (Forbidden)", "signed URL"]);
    says(format!("dedup {} -o o.jsonl", url("*.jsonl")), &["no list of their files", "name each"]);
    says(format!("dedup {} -o o.jsonl", url("list/index")), &["list/index", "--format"]);
    says(format!("dedup a.jsonl -o {}", url("o.jsonl")), &["web servers are read and not written to"]);
    says("dedup a.jsonl -o s3://bucket/folder/".to_owned(), &["written one by one"]);
    says(format!("dedup http://{}?secret -o o.jsonl", server.address), &["404"]);
    // What tells credentials is not asked by way of a proxy, which would tell its own.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let mut command = shop.command("dedup s3://bucket/a.jsonl -o o.jsonl");
    command.env("HTTP_PROXY", format!("http://{}", proxy.local_addr().unwrap()));
    let ran = command.env("AWS_METADATA_ENDPOINT", "http://metadata").output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stderr).contains("no credentials were found"));
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // A port that nobody listens at any more.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    says(format!("dedup http://{closed}/a.jsonl -o o.jsonl"), &["127.0.0.1", "refused"]);
    shop.ok(&format!("dedup {} {} -o both.jsonl -q", url("empty.jsonl"), url("a.jsonl")));
    assert_eq!(shop.text("both.jsonl"), "{\"text\": \"one\"}\n");
}
