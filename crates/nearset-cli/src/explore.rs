//! `nearset explore`: a page in the browser that shows what would be deleted, before it is.
//!
//! The page is served by the program itself, on the loopback address, from files that are part of it. It holds no formulas: `api` answers what the jobs and the
//! view compute.

mod api;
mod duplicates;
mod filters;
mod guard;
mod http;

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result};
use nearset::plan::Request;
use nearset::{JoinSpec, Metric, Seed, Shingling};
use nearset_jobs::join::JoinOptions;
use nearset_jobs::join::explore::ExploreOptions;
use nearset_records::{Format, ItemField};

use crate::options::{OnError, Work, sources_of, without_keep};
use api::Api;
use duplicates::Corpus;
use guard::Guard;
use http::Response;

const EXAMPLES: &str = "\
Examples:
  Choose a threshold for a corpus by looking at the pairs around it:
    nearset explore crawl.jsonl.zst

  Texts in another column, and no browser on this machine:
    nearset explore data/ --text-field content --no-open --port 8017

  What is a filter like? Filters and indexes are opened in their own tab:
    nearset explore seen.nearset

  Without files, on an example: 720 licence texts
    nearset explore

Exit codes: 0 ended by Ctrl-C, 1 failed, 2 wrong command line.";

/// Look at near-duplicates, plans and filters in the browser, before anything is deleted
///
/// Prints an address and opens it. The page works on the files that are given here: it reads them as `nearset pairs` does, and shows what
/// `nearset dedup` would remove at each similarity, with the command that does it. Nothing is written, and nothing leaves the machine: the address is
/// this machine's own, and opens one window.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    /// Files, folders and quoted globs of records, and files of filters or indexes (.nearset)
    #[arg(value_name = "IN")]
    inputs: Vec<String>,

    #[arg(long, value_name = "FORMAT", help = format!("How records lie in the inputs, where the extension does not tell: {}", nearset_records::format::known_formats()))]
    format: Option<Format>,

    /// The field or column of the id; where a record has none, its id is file:line
    #[arg(long, value_name = "NAME", default_value = "id")]
    id_field: String,

    /// The field or column of the text
    #[arg(long, visible_alias = "field", value_name = "NAME", default_value = "text")]
    text_field: String,

    /// The lowest similarity that can be looked at
    #[arg(long, value_name = "SIMILARITY", default_value_t = ExploreOptions::LOWEST)]
    lowest: f64,

    /// The most of the pairs at exactly --lowest that may be missed
    #[arg(long, value_name = "RATE", default_value_t = JoinSpec::MAX_FALSE_NEGATIVE)]
    max_fn: f64,

    /// How texts are cut into sets: words:N, chars:N, bytes:N, code:N or kmers:N
    #[arg(long, value_name = "KIND:N", default_value_t = Shingling::default())]
    shingle: Shingling,

    /// From which the hash functions are drawn: a number, or 32 hexadecimal digits that nobody can guess
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    #[command(flatten)]
    work: Work,

    /// The port to listen on; otherwise one that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
}

/// What is shown where no files are given: a link, so that the crate's package holds it too.
const EXAMPLE: &[u8] = include_bytes!("explore/example.jsonl");

/// Connections that are answered at once.
const MOST_CONNECTIONS: usize = 32;

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
    let is_filter = |input: &&String| PathBuf::from(input).extension().is_some_and(|extension| extension == "nearset");
    let filters: Vec<PathBuf> = args.inputs.iter().filter(is_filter).map(PathBuf::from).collect();
    let mut inputs: Vec<String> = args.inputs.iter().filter(|input| !is_filter(input)).cloned().collect();
    let example = tempfile::Builder::new().prefix("nearset-example").tempdir().context("cannot write the example")?;
    if args.inputs.is_empty() {
        let path = example.path().join("licences.jsonl");
        std::fs::write(&path, EXAMPLE).context("cannot write the example")?;
        inputs.push(path.display().to_string());
    }
    let mut wanted = Request::new(Metric::Jaccard { shingling: args.shingle }, args.lowest).seed(args.seed);
    wanted.max_false_negative = Some(args.max_fn);
    let mut join = JoinOptions::new(wanted);
    join.fields = nearset_records::Fields::new(&args.text_field, ItemField::Text).with_id(Some(args.id_field.clone()));
    join.on_error = args.work.on_error.into();
    join.threads = args.work.threads();
    join.wanted.plan_join()?;
    let sources = match inputs.is_empty() {
        true => None,
        false => Some(sources_of(&inputs, args.format, false)?),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .with_context(|| format!("cannot listen on port {}: name another with --port", args.port))?;
    let guard = Guard::new(listener.local_addr().context("cannot tell the port")?.port())?;
    let (stop, stopped) = mpsc::channel();
    let corpus = Corpus::start(sources, ExploreOptions::new(join), args.typed(&inputs), stop.clone())?;
    let api = Arc::new(Api { guard, corpus, filters });
    let address = api.guard.address();
    // Scripts read it there.
    writeln!(std::io::stdout(), "{address}").context("cannot write to standard output")?;
    eprintln!("Ctrl-C ends it");
    let end = move || {
        // Nobody waits any more where it was pressed before.
        let _ = stop.send(None);
    };
    ctrlc::set_handler(end).context("cannot listen for Ctrl-C")?;
    let served = Arc::clone(&api);
    thread::spawn(move || serve(&listener, &served));
    if !args.no_open {
        open_browser(&address);
    }
    // Whoever could send is in the handler, which stays.
    let failed = stopped.recv().ok().flatten();
    api.corpus.stop();
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl Args {
    /// The options by which `nearset dedup` reads the same records and compares the same pairs, as they are typed.
    fn typed(&self, inputs: &[String]) -> String {
        let mut typed: Vec<String> = inputs.iter().map(|input| quoted(input)).collect();
        let mut option = |name: &str, value: String, usual: String| {
            if value != usual {
                typed.push(format!("--{name} {}", quoted(&value)));
            }
        };
        option("format", self.format.map(|format| format.to_string()).unwrap_or_default(), String::new());
        option("id-field", self.id_field.clone(), "id".to_owned());
        option("text-field", self.text_field.clone(), "text".to_owned());
        option("shingle", self.shingle.to_string(), Shingling::default().to_string());
        option("max-fn", self.max_fn.to_string(), JoinSpec::MAX_FALSE_NEGATIVE.to_string());
        option("seed", self.seed.to_string(), Seed::default().to_string());
        let on_error = match self.work.on_error {
            OnError::Fail => "",
            OnError::Skip => "skip",
            OnError::Keep => "keep",
        };
        option("on-error", on_error.to_owned(), String::new());
        typed.join(" ")
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn serve(listener: &TcpListener, api: &Arc<Api>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        let (api, open) = (Arc::clone(api), Arc::clone(&open));
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        thread::spawn(move || {
            answer(stream, &api);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn answer(mut stream: TcpStream, api: &Api) {
    let response = match http::read(&mut stream) {
        Ok(request) => api.answer(&request),
        Err(Some(refusal)) => refusal,
        Err(None) => return,
    };
    // Nobody is there to be told.
    let _ = http::write(&mut stream, &response);
}

/// Opens the address where there is a browser. Its token is spent with the first use, so that it does no harm in a list of processes for long.
fn open_browser(address: &str) {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(_) => eprintln!("note: there is no {program} to open a browser with: open the address yourself"),
    }
}

/// The files of the page.
const PAGE: [(&str, &str, &str); 9] = [
    ("/", "text/html; charset=utf-8", include_str!("explore/page/index.html")),
    ("/style.css", "text/css; charset=utf-8", nearset_view::page::STYLE),
    ("/explore.css", "text/css; charset=utf-8", include_str!("explore/page/explore.css")),
    ("/explore.js", "text/javascript; charset=utf-8", include_str!("explore/page/explore.js")),
    ("/ask.js", "text/javascript; charset=utf-8", include_str!("explore/page/ask.js")),
    ("/duplicates.js", "text/javascript; charset=utf-8", include_str!("explore/page/duplicates.js")),
    ("/plan.js", "text/javascript; charset=utf-8", include_str!("explore/page/plan.js")),
    ("/filter.js", "text/javascript; charset=utf-8", include_str!("explore/page/filter.js")),
    ("/icon.svg", "image/svg+xml", include_str!("explore/page/icon.svg")),
];

/// A file of the page, by its exact name: nothing is looked up on the disk.
fn page(path: &str) -> Option<Response> {
    let file = PAGE.iter().find(|(name, ..)| *name == path)?;
    Some(Response::new(200, file.1, file.2))
}
