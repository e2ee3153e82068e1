//! `nearset dedup`: near-duplicates out of a corpus.

mod by_filter;
mod compared;
mod units;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::plan::Request;
use nearset::{JoinSpec, MetricName};
use nearset_jobs::join::{Keep, TextMeasure};
use nearset_jobs::library::is_library;
use nearset_jobs::run::{RunError, RunOptions};
use nearset_jobs::screen::Screen;
use nearset_records::output::is_same_output;
use nearset_records::{Fields, OutputError, Sources};
use nearset_view::words;
use serde::Serialize;

use crate::goal::parse_count;
use crate::join::{self, Measure};
use crate::options::{self, Input, Opening, Running, Trust, Usage};
use crate::show::{self, NOTE};

const EXAMPLES: &str = "\
Examples:
  Keep one of each family of near-duplicates, and say which were left out and why:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --removed removed.jsonl

  What would be removed, and was it right? A page to look at before anything is written:
    nearset dedup crawl.jsonl.zst --dry-run --report report.html

  A folder of Parquet files, each to a file of its name in clean/, the text in column \"content\", stricter:
    nearset dedup data/ -o clean/ --text-field content --near 0.9

  Of each family, keep the newest:
    nearset dedup crawl.jsonl -o clean.jsonl --keep max:timestamp

  Pictures by their PDQ hashes: of those within 31 bits of each other, keep the best
    nearset dedup hashes.jsonl -o clean.jsonl --metric hamming --near 31 --keep max:quality

  Records that at most two typing errors tell apart:
    nearset dedup people.csv -o clean.csv --metric edit --near 2 --text-field name

  Remember what was kept for the next crawl, and extend that by the next crawl:
    nearset dedup monday.jsonl -o clean.jsonl --save seen.library
    nearset dedup tuesday.jsonl -o clean2.jsonl --against seen.library --save seen.library

  Cut lines out that were there before, in the same text or an earlier one, unless they have fewer than 5 words:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --unit line --min-words 5

  In a few bytes per document, by a filter that compares nothing:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --no-verify

  After a crash or Ctrl-C, go on where it stopped:
    nearset dedup crawl.jsonl.zst -o clean.jsonl.zst --removed removed.jsonl --resume

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Remove the records of a corpus that are near another one
///
/// Reads records in order and drops, or with --annotate marks, each that is near one kept before it: they were compared, and have
/// the similarity --near or more, counted exactly over their shingles, or by another --metric the distance --near or less. Kept records come out byte for byte and in order; the
/// same records give the same output for any number of threads. Texts are not held in memory but read again where they are
/// compared, so that a kept document takes some 110 bytes and its id.
///
/// With --no-verify a filter decides, in a few bytes per document that the printed plan states, and compares nothing: a text
/// made of what many others share may go although no single one of them is near.
///
/// With --unit, parts of texts are cut out rather than records: those whose words were there before in the same order.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, group = clap::ArgGroup::new("end").required(true).args(["output", "dry_run"]),
    mut_arg("memory", |arg| arg.conflicts_with("no_verify")), mut_arg("scratch", |arg| arg.conflicts_with("no_verify")))]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Where kept records go, in the format of the input and compressed by its extension (.gz, .zst, .bz2, .xz). A folder, or a name that
    /// ends in /, has one file per input, each with its input's name and compression. - is standard output; pipes and devices are written
    /// through, and take no --force. An object such as s3://BUCKET/KEY appears when all of it was sent; such a run can't be resumed
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    near: join::Nearness,

    #[arg(long, value_name = "RATE", help = format!("The most of what lies exactly at --near that may be missed [default: {}, \
        with --no-verify {}]", JoinSpec::MAX_FALSE_NEGATIVE, Request::MAX_FALSE_NEGATIVE))]
    max_fn: Option<f64>,

    #[arg(long, value_name = "RATE", requires = "no_verify", help = format!("With --no-verify, the most of what lies {} below \
        --near that may be dropped [default: {}]", Request::DEDUP_GAP, Request::MAX_FALSE_POSITIVE))]
    max_fp: Option<f64>,

    #[command(flatten)]
    units: units::Units,

    /// Compare each record with a kept one before it is dropped: the default
    #[arg(long, hide = true)]
    verify: bool,

    /// Decide by a filter alone, in a few bytes per document: --near is found, but nothing is compared
    #[arg(long, conflicts_with_all = ["verify", "keep", "chain"])]
    no_verify: bool,

    /// Which of several near records is kept: first, longest (in bytes of text), max:FIELD or min:FIELD (numbers by value and before
    /// other texts, which go by their bytes; of equals the first)
    #[arg(long, value_name = "WHICH", default_value_t = Keep::First)]
    keep: Keep,

    /// Also drop what is near only a dropped record: of a chain A ~ B ~ C, C for being near B
    #[arg(long)]
    chain: bool,

    /// Also drop what is near a record of this library, or without comparing what is near anything in this filter; may be given
    /// several times
    #[arg(long, value_name = "LIBRARY|FILTER")]
    against: Vec<PathBuf>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    opening: Opening,

    /// Keep what a later run needs to compare with what this one kept, for --against: a folder such as seen.library, which is extended if
    /// it is named by --against too. With --no-verify, the filter
    #[arg(long, value_name = "LIBRARY|FILTER")]
    save: Option<PathBuf>,

    /// Write a line of JSON for each dropped record: its id, file, line, the reason, what it is near, where that is and how near; with
    /// --no-verify the hits
    #[arg(long, value_name = "FILE")]
    removed: Option<PathBuf>,

    /// Write the texts of dropped records to --removed, too
    #[arg(long, requires = "removed")]
    removed_text: bool,

    /// Write a line of JSON for each record that others were dropped for: its id, and how many
    #[arg(long, value_name = "FILE", conflicts_with = "no_verify")]
    copies: Option<PathBuf>,

    /// Write a page with figures about the run; reads the input once more, to check a sample of records exactly
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Keep all records and add the fields near_duplicate, duplicate_of and similarity (or distance, by metric) to each, with --no-verify
    /// near_duplicate and hits. Those of an earlier run are replaced where they stand; other fields of these names are refused
    #[arg(long)]
    annotate: bool,

    /// Read and decide, but write no records
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// With --no-verify, how many distinct records to make room for: 1000000, 1_000_000, 1e6 or 1M; otherwise counted, or estimated
    /// from a sample
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "no_verify")]
    capacity: Option<u64>,

    /// Compare each record with all that share a rare shingle with it, however many: giant families then take quadratic time
    #[arg(long, conflicts_with = "no_verify")]
    exhaustive: bool,

    /// Look for candidates as if --near were this, which is lower: with --exhaustive the same pairs are compared whatever --near is, as
    /// `nearset explore` shows them
    #[arg(long, value_name = "SIMILARITY", conflicts_with_all = ["no_verify", "against", "save"])]
    candidates: Option<f64>,

    /// Pairs that somebody has looked at, as `nearset explore` exports them: lines of JSON such as {"a": "id1", "b": "id2", "duplicate": true}.
    /// They are treated as said, whatever their similarity
    #[arg(long, value_name = "FILE", conflicts_with = "no_verify")]
    decisions: Option<PathBuf>,

    #[command(flatten)]
    room: join::Room,

    #[command(flatten)]
    running: Running,
}

impl Args {
    /// What is near, what may be missed, and what to read.
    fn wanted(&self, sources: &Sources) -> Result<(Request, Fields)> {
        let (mut wanted, fields) = self.near.wanted(&self.input, sources)?;
        wanted.max_false_negative = self.max_fn;
        Ok((wanted, fields))
    }

    /// The filters to screen by, with a warning where one is believed that should not be.
    fn screen(&self) -> Result<Screen> {
        // The first run of several that extend one library starts it.
        let is_started = |path: &PathBuf| !self.no_verify && self.save.as_ref() == Some(path) && !path.exists();
        let filters = self.against.iter().filter(|path| !is_library(path) && !is_started(path));
        if self.trust.allow_overfull {
            for path in filters.clone() {
                self.trust.filter(&self.opening.file(path)?)?;
            }
        }
        let mut screen = Screen::default();
        screen.filters = filters.cloned().collect();
        screen.allow_overfull = self.trust.allow_overfull;
        screen.work = self.opening.work();
        Ok(screen)
    }

    /// Prints what each filter calls near, which holds for what it screens out, whatever this run does.
    fn print_filters(&self, screen: &Screen, near: f64, shingling: Option<&str>) -> Result<()> {
        for path in &screen.filters {
            let file = self.opening.file(path)?;
            let filter = file.filter()?;
            let spec = filter.spec();
            let (Some(metric), Some(terms)) = (spec.metric(), spec.terms()) else { continue };
            let theirs = words::number(metric.own_unit(terms.near));
            let cut = metric.shape().shingling.map(|shingling| shingling.to_string());
            let title = metric.name().title();
            let of = cut.as_ref().map_or(String::new(), |cut| format!(" of {cut} shingles"));
            eprintln!("against   {}: near {theirs} by {title}{of}, not compared", path.display());
            let is_same = metric.name() == MetricName::Jaccard
                && self.near.metric == Measure::Metric(MetricName::Jaccard)
                && theirs == words::number(near)
                && cut.as_deref() == shingling;
            if !is_same {
                anstream::eprintln!(
                    "{NOTE} {} was built with another --near, --shingle or --metric than this run's, and what it calls near goes as well",
                    path.display()
                );
            }
        }
        Ok(())
    }

    /// What does not depend on how records are decided on.
    fn run_options(&self, fields: Fields) -> RunOptions {
        let mut options = self.running.options(fields);
        options.annotate = self.annotate;
        options.out = self.output.clone();
        options.removed = self.removed.clone();
        options.report = self.report.clone();
        options.removed_text = self.removed_text;
        // What --save names is a library unless a filter decides, and no file of the skeleton's.
        options.save = if self.no_verify { self.save.clone() } else { self.copies.clone() };
        options.scratch = self.room.scratch.clone();
        options
    }

    /// Says how to go on where a run failed, and that outputs are missing where it seems to have been done.
    fn explained<S>(&self, outcome: Result<S, RunError>) -> Result<S> {
        let is_named = |library: &PathBuf| self.against.iter().any(|path| is_same_output(library, path));
        let is_extended = self.save.as_ref().is_some_and(is_named);
        if is_extended && matches!(&outcome, Err(RunError::Output(OutputError::Exists { .. }))) {
            anstream::eprintln!(
                "{NOTE} if the run that wrote it was complete, the library holds its records, and --force would write an output without them"
            );
        }
        join::explained(outcome, &self.output, &[&self.output, &self.removed, &self.copies, &self.save, &self.report])
    }

    fn print_report(&self, seconds: f64) {
        if let Some(report) = &self.report {
            eprintln!("report    {}, in {}", report.display(), show::seconds(seconds));
        }
    }

    fn print_json(&self, summary: &impl Serialize) -> Result<()> {
        if !self.running.json {
            return Ok(());
        }
        let value = serde_json::to_value(summary).context("cannot write the summary as JSON")?;
        options::print_json(
            &value,
            [&self.output, &self.removed, &self.copies, &self.report].into_iter().any(options::is_stdout),
        )
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    if args.dry_run && args.save.is_some() {
        let why = "--dry-run writes no records, and what --save keeps would make later runs leave them out: leave out one of the two";
        return Err(Usage(why.to_owned()).into());
    }
    if args.near.metric == Measure::Text(TextMeasure::Containment) && (args.chain || args.keep != Keep::First) {
        let why = "of texts inside each other the one with most shingles stays: leave out --keep and --chain";
        return Err(Usage(why.to_owned()).into());
    }
    if !args.near.metric.is_usual() {
        let given = [
            ("--no-verify", args.no_verify, "its filters are planned for texts"),
            ("--report", args.report.is_some(), "it shows texts"),
            ("--save", args.save.is_some(), "a library holds texts"),
            ("--against a library", args.against.iter().any(|path| is_library(path)), "it holds texts"),
            ("--unit", args.units.unit.is_some(), "texts have units"),
            ("--candidates", args.candidates.is_some(), "other items are found otherwise"),
            ("--decisions", args.decisions.is_some(), "they are about texts"),
        ];
        if let Some((option, _, why)) = given.into_iter().find(|(_, given, _)| *given) {
            return Err(Usage(format!("{option} is for texts by jaccard, not for {}: {why}", args.near.metric)).into());
        }
    }
    match (args.units.unit, args.no_verify) {
        (Some(unit), _) => units::run(&args, unit),
        (None, true) => by_filter::run(&args),
        (None, false) => compared::run(&args),
    }
}
