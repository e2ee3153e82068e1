//! `nearset dedup`: near-duplicates out of a corpus.

mod verified;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::plan::Request;
use nearset::{Metric, Seed, Shingling};
use nearset_jobs::capacity::Known;
use nearset_jobs::dedup::{Dedup, DedupOptions, DedupPlan, Summary};
use nearset_jobs::run::{RunError, RunOptions};
use nearset_records::ItemField;
use nearset_view::words;
use serde::Serialize;

use crate::goal::parse_count;
use crate::join;
use crate::options::{self, Input, Opening, Trust, Work};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Keep one of each family of near-duplicates, and say which were left out and why:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --removed removed.jsonl

  What would be removed, and was it right? A page to look at before anything is written:
    nearset dedup crawl.jsonl.zst --dry-run --report report.html

  A folder of Parquet files, the text in column \"content\", stricter:
    nearset dedup data/ -o clean.parquet --text-field content --near 0.9

  Leave out what is near a benchmark, and remember what was seen for the next crawl:
    nearset build benchmark.jsonl -o benchmark.nearset --metric jaccard --near 0.8
    nearset dedup monday.jsonl -o clean.jsonl --against benchmark.nearset --save seen.nearset
    nearset dedup tuesday.jsonl -o clean2.jsonl --against benchmark.nearset --against seen.nearset

  Delete nothing that was not compared with a document that stays; of each family, keep the newest:
    nearset dedup crawl.jsonl -o clean.jsonl --verify --keep timestamp --removed removed.jsonl

  After a crash or Ctrl-C, go on where it stopped:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --removed removed.jsonl --resume

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Remove the records of a corpus that are near an earlier one
///
/// Reads records in order and drops, or with --annotate marks, each whose text is near an earlier record's. All of it is one
/// pass, in memory that the printed plan states (about 86 bytes per document at the defaults). Kept records come out byte for byte
/// and in order; the same records give the same output for any number of threads.
///
/// With --verify a record is dropped only if a kept one has the similarity --near or more, counted exactly over their shingles;
/// texts are read again for that and not held. It needs some 110 bytes for each kept document, and names the kept one.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Where kept records go, in the format of the input and compressed by its extension (.gz, .zst, .bz2, .xz); - for standard output.
    /// Pipes and devices are written through, and take no --force
    #[arg(short, long, value_name = "OUT", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// The Jaccard similarity around which records become duplicates
    #[arg(long, value_name = "SIMILARITY", default_value_t = Request::NEAR)]
    near: f64,

    /// The most of what lies exactly at --near that may be missed; 0.02 promises 98 % there and drops more below it [default:
    /// 0.55, with --verify 0.001]
    #[arg(long, value_name = "RATE")]
    max_fn: Option<f64>,

    /// The most of what lies 0.1 below --near that may be dropped
    #[arg(long, value_name = "RATE", default_value_t = Request::DEDUP_MAX_FALSE_POSITIVE)]
    max_fp: f64,

    /// How texts are cut into sets: words:N, chars:N or bytes:N
    #[arg(long, value_name = "KIND:N", default_value_t = Shingling::default())]
    shingle: Shingling,

    /// The field or column of the text
    #[arg(long, visible_alias = "field", value_name = "NAME", default_value = "text")]
    text_field: String,

    /// Compare each record exactly with a kept one before it is dropped, and name that in --removed
    #[arg(long)]
    verify: bool,

    /// Which of several near records is kept, with --verify: first, longest (in bytes of text), or the name of a field whose
    /// largest value wins (numbers by value, above other texts, which go by their bytes; of equals the first)
    #[arg(long, value_name = "WHICH", default_value = "first", requires = "verify")]
    keep: String,

    /// With --verify, also drop what is near only a dropped record: of a chain A ~ B ~ C, C for being near B
    #[arg(long, requires = "verify")]
    chain: bool,

    /// Also drop what is near anything in this filter; may be given several times
    #[arg(long, value_name = "FILTER")]
    against: Vec<PathBuf>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    opening: Opening,

    /// Save the filter, for --against in a later run
    #[arg(long, value_name = "FILTER")]
    save: Option<PathBuf>,

    /// Write a line of JSON for each dropped record: its id, file, line, the reason, and hits or with --verify what it is near
    #[arg(long, value_name = "FILE")]
    removed: Option<PathBuf>,

    /// Write a page with figures about the run; reads the input once more, to check a sample of records exactly
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Keep all records and add the fields near_duplicate and hits to each, with --verify near_duplicate, duplicate_of and similarity. Those of
    /// an earlier run are replaced where they stand; other fields of these names are refused
    #[arg(long)]
    annotate: bool,

    /// Read and decide, but write no records
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// How many distinct records to make room for: 1000000, 1_000_000, 1e6 or 1M; otherwise counted, or estimated from a sample
    #[arg(long, value_name = "N", value_parser = parse_count)]
    capacity: Option<u64>,

    #[command(flatten)]
    work: Work,

    /// From which the hash functions are drawn: a number, or 32 hexadecimal digits that nobody can guess
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    /// Replace outputs that exist, and drop the state of an unfinished run
    #[arg(long)]
    force: bool,

    /// Go on where an earlier run of the same command was stopped
    #[arg(long)]
    resume: bool,

    /// Print the summary as a line of JSON on standard output (on standard error if that is the output)
    #[arg(long)]
    json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// Bytes of records between checkpoints, for tests
    #[arg(long, hide = true, env = "NEARSET_CHECKPOINT_BYTES")]
    checkpoint_bytes: Option<u64>,
}

impl Args {
    fn options(&self) -> DedupOptions {
        let mut wanted = Request::new(Metric::Jaccard { shingling: self.shingle }, self.near).seed(self.seed);
        (wanted.max_false_negative, wanted.max_false_positive) = (self.max_fn, Some(self.max_fp));
        let mut options = DedupOptions::new(wanted);
        options.run = self.run_options();
        options.capacity = self.capacity;
        options.against = self.against.clone();
        options.allow_overfull = self.trust.allow_overfull;
        options.work = self.opening.work();
        options
    }

    /// What does not depend on how records are decided on.
    fn run_options(&self) -> RunOptions {
        let mut options = RunOptions::default();
        options.fields = self.input.fields(&self.text_field, ItemField::Text);
        options.on_error = self.work.on_error.into();
        options.annotate = self.annotate;
        options.out = self.output.clone();
        options.removed = self.removed.clone();
        options.report = self.report.clone();
        options.save = self.save.clone();
        options.force = self.force;
        options.resume = self.resume;
        options.checkpoint_bytes = self.checkpoint_bytes;
        options.threads = self.work.threads();
        options
    }

    /// Says how to go on where a run failed, and that outputs are missing where it seems to have been done.
    fn explained<S>(&self, outcome: Result<S, RunError>) -> Result<S> {
        join::explained(outcome, &self.output, &[&self.output, &self.removed, &self.save, &self.report])
    }

    fn print_report(&self, seconds: f64) {
        if let Some(report) = &self.report {
            eprintln!("report    {}, in {}", report.display(), show::seconds(seconds));
        }
    }

    fn print_json(&self, summary: &impl Serialize) -> Result<()> {
        if !self.json {
            return Ok(());
        }
        let value = serde_json::to_value(summary).context("cannot write the summary as JSON")?;
        options::print_json(&value, [&self.output, &self.removed, &self.report].into_iter().any(options::is_stdout))
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    if args.verify {
        return verified::run(&args);
    }
    if args.trust.allow_overfull {
        // Before anything is decided by them.
        for path in &args.against {
            args.trust.filter(&args.opening.file(path)?)?;
        }
    }
    let sources = args.input.sources(args.quiet)?;
    let total = sources.total_bytes();
    let dedup = Dedup::prepare(sources.list, args.options())?;
    if !args.quiet {
        print_plan(&dedup.plan()?);
    }
    let summary = args.explained(join::watched(total, args.quiet, |progress| dedup.run(progress))?)?;
    if !args.quiet {
        print_summary(&summary, args.annotate);
        args.print_report(summary.report_seconds);
    }
    args.print_json(&summary)?;
    Ok(ExitCode::SUCCESS)
}

fn print_plan(plan: &DedupPlan) {
    let known = match plan.capacity.known {
        Known::Given => "as given".to_owned(),
        Known::Counted => "counted".to_owned(),
        Known::Sampled => {
            let records = plan.capacity.records;
            format!("estimated from a sample (--capacity {records} repeats this run however the input is split)")
        }
        _ => "a guess, since a pipe does not tell its length; it grows where that is too few".to_owned(),
    };
    eprintln!("plan      near {} by Jaccard similarity of {} shingles", plan.near, plan.shingling);
    eprintln!("caught    {}", words::caught(&plan.promise));
    eprintln!("lost      {}", words::lost(&plan.promise));
    eprintln!("capacity  {} records, {known}", show::count(plan.capacity.records));
    let each = plan.bytes as f64 / plan.capacity.records as f64;
    let (rows, bands) = (plan.rows, plan.bands);
    eprintln!(
        "memory    {} of filter, {each:.1} bytes a record ({bands} bands of {rows} rows)",
        show::bytes(plan.bytes)
    );
    if let Some(speed) = plan.bytes_per_second {
        eprintln!("speed     about {:.0} MB/s expected by {} threads, if disks keep up", speed / 1e6, plan.threads);
    }
    join::print_resumed(plan.resumed_records);
}

fn print_summary(summary: &Summary, annotated: bool) {
    for error in &summary.errors {
        eprintln!("skipped   {error}");
    }
    if summary.more_errors > 0 {
        eprintln!("skipped   and {} more", show::count(summary.more_errors));
    }
    let seconds = summary.seconds - summary.report_seconds;
    let rate = summary.bytes as f64 / 1e6 / seconds.max(1e-9);
    let (records, size, time) = (show::count(summary.records), show::bytes(summary.bytes), show::seconds(seconds));
    eprintln!("read      {records} records, {size}, in {time} ({rate:.0} MB/s)");
    let part = |number: u64| show::percent(number as f64 / summary.records.max(1) as f64);
    let (kept, removed) = if annotated { ("new", "marked") } else { ("kept", "removed") };
    eprintln!("{kept:<10}{} ({})", show::count(summary.kept), part(summary.kept));
    eprintln!("{removed:<10}{} near an earlier record ({})", show::count(summary.near), part(summary.near));
    for (name, number) in &summary.against {
        eprintln!("{removed:<10}{} near {name} ({})", show::count(*number), part(*number));
    }
    if summary.faulty > 0 {
        eprintln!("{:<10}{} that could not be read", "skipped", show::count(summary.faulty));
    }
    for source in summary.sources.iter().filter(|source| source.broken) {
        eprintln!("{:<10}{} broke off after {} records", "skipped", source.name, show::count(source.records));
    }
    let bytes: u64 = summary.generations.iter().map(|generation| generation.bytes).sum();
    let fill = summary.generations.last().map_or(0.0, |generation| generation.fill);
    let fills = show::percent(fill);
    if summary.generations.len() > 1 {
        let (number, wrong) = (summary.generations.len(), show::percent(summary.false_positive));
        eprintln!(
            "filter    grew to {number} generations of {} in all: {} was too few records; {} caught at similarity {}, \
             {wrong} lost at {}",
            show::bytes(bytes),
            show::count(summary.plan.capacity.records),
            show::percent(1.0 - summary.false_negative),
            words::similarity(summary.plan.near),
            words::similarity(summary.plan.far),
        );
    } else {
        eprintln!("filter    {}, {fills} of its bits set", show::bytes(bytes));
    }
    if let Some(path) = &summary.saved {
        eprintln!("saved     {}", path.display());
    }
}
