//! What `pairs`, `cluster` and `dedup` share: options, the plan, the run, and what is said about it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use nearset::plan::Request;
use nearset::{JoinSpec, Metric, Seed, Shingling};
use nearset_jobs::capacity::Known;
use nearset_jobs::join::{Alarm, Cause, Counts, JoinOptions, JoinPlan};
use nearset_jobs::run::{Progress, RunError, is_resumable};
use nearset_records::input::Source;
use nearset_records::{ItemField, output};
use serde::Serialize;

use crate::options::{Input, OnError, Work, missing_outputs, print_json};
use crate::show::{self, ALARM, NOTE, ProgressLine};

/// Options of `pairs` and `cluster`.
#[derive(clap::Args)]
pub struct Join {
    #[command(flatten)]
    pub input: Input,

    /// Where rows go: .tsv, .csv or .jsonl, each also .gz, .zst, .bz2 or .xz; - for standard output, as TSV
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub output: PathBuf,

    /// The Jaccard similarity from which on records are near
    #[arg(long, value_name = "SIMILARITY", default_value_t = Request::NEAR)]
    near: f64,

    /// The most of the pairs at exactly --near that may be missed
    #[arg(long, value_name = "RATE", default_value_t = JoinSpec::MAX_FALSE_NEGATIVE)]
    max_fn: f64,

    /// How texts are cut into sets: words:N, chars:N or bytes:N
    #[arg(long, value_name = "KIND:N", default_value_t = Shingling::default())]
    shingle: Shingling,

    /// The field or column of the text
    #[arg(long, visible_alias = "field", value_name = "NAME", default_value = "text")]
    text_field: String,

    #[command(flatten)]
    work: Work,

    /// From which the hash functions are drawn: a number, or 32 hexadecimal digits that nobody can guess
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    /// Replace an existing output
    #[arg(long)]
    force: bool,

    /// Print the summary as a line of JSON on standard output (on standard error if that is the output)
    #[arg(long)]
    json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

impl Join {
    /// Prints the plan, does the work, and prints what came of it.
    pub fn carry_out<S: Serialize>(
        &self,
        work: impl FnOnce(Vec<Source>, &Progress) -> Result<S, RunError>,
        print_summary: impl FnOnce(&S),
    ) -> Result<ExitCode> {
        self.work.writes_no_records()?;
        let plan = self.options().plan()?;
        let sources = self.input.sources(self.quiet)?;
        if !self.quiet {
            print_plan(&plan);
        }
        let total = sources.total_bytes();
        let summary = watched(total, self.quiet, |progress| work(sources.list, progress))??;
        if !self.quiet {
            print_summary(&summary);
        }
        if self.json {
            let value = serde_json::to_value(&summary).context("cannot write the summary as JSON")?;
            print_json(&value, output::is_stdout(&self.output))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// In the library's terms.
    pub fn options(&self) -> JoinOptions {
        let mut wanted = Request::new(Metric::Jaccard { shingling: self.shingle }, self.near).seed(self.seed);
        wanted.max_false_negative = Some(self.max_fn);
        let mut options = JoinOptions::new(wanted);
        options.fields = self.input.fields(&self.text_field, ItemField::Text);
        options.on_error = self.work.on_error.into();
        options.threads = self.work.threads();
        options.force = self.force;
        options
    }
}

/// Runs under a progress line, to be stopped by Ctrl-C: the first one ends the run in good order, the second one finds the
/// default handler's patience at an end.
pub fn watched<T>(total: Option<u64>, quiet: bool, run: impl FnOnce(&Progress) -> T) -> Result<T> {
    let progress = Arc::new(Progress::new());
    let stopping = Arc::clone(&progress);
    let mut pressed = false;
    ctrlc::set_handler(move || {
        if std::mem::replace(&mut pressed, true) {
            std::process::exit(1);
        }
        stopping.stop();
    })
    .context("cannot listen for Ctrl-C")?;
    let line = ProgressLine::start(Arc::clone(&progress), total, quiet);
    let outcome = run(&progress);
    drop(line);
    Ok(outcome)
}

/// Tells how to continue a failed run, and which outputs are missing where it seems to have succeeded.
pub fn explained<S>(outcome: Result<S, RunError>, out: &Option<PathBuf>, outputs: &[&Option<PathBuf>]) -> Result<S> {
    if let (Err(error), Some(out)) = (&outcome, out)
        && !matches!(error, RunError::Interrupted { .. })
        && is_resumable(out)
    {
        anstream::eprintln!(
            "{NOTE} what was done so far is kept; --resume continues from there once the cause is gone"
        );
    }
    outcome.map_err(|error| missing_outputs(error.into(), outputs))
}

/// Prints how much an earlier run has done.
pub fn print_resumed(records: u64) {
    if records > 0 {
        eprintln!("resumed   behind {} records", show::count(records));
    }
}

/// Prints what will be done.
pub fn print_plan(plan: &JoinPlan) {
    eprintln!("plan      near {} by Jaccard similarity of {} shingles, compared exactly", plan.near, plan.shingling);
    eprintln!(
        "promise   nothing below {0} is taken for near; {1} missed at exactly {0}",
        plan.near,
        show::percent(plan.missed)
    );
    eprintln!(
        "memory    about {} bytes and its id for each record that others are compared with ({} keys), and a cache of {}",
        plan.bytes_per_record,
        plan.keys,
        show::bytes(plan.cache_bytes)
    );
    let Some(needs) = &plan.needs else { return };
    let records = show::count(needs.records.records);
    let available =
        needs.available.map_or(String::new(), |available| format!(", of {} that are there", show::bytes(available)));
    match needs.records.known {
        Known::Guessed => eprintln!(
            "          a pipe does not tell its length; the run stops before it takes more than there is{available}"
        ),
        Known::Sampled => {
            eprintln!("          {} if all of about {records} records are kept{available}", show::bytes(needs.bytes))
        }
        _ => eprintln!("          {} if all of {records} records are kept{available}", show::bytes(needs.bytes)),
    }
    if needs.spilled_bytes > 0 {
        let folder = needs.scratch.display();
        eprintln!("rounds    what memory can't hold goes to {folder}, about {}", show::bytes(needs.spilled_bytes));
    }
    if needs.scratch_bytes > 0 || needs.records.known == Known::Guessed {
        let size = match needs.records.known {
            Known::Guessed => "texts".to_owned(),
            _ => format!("about {} of texts", show::bytes(needs.scratch_bytes)),
        };
        eprintln!("scratch   {size} that can't be read again where they lie, in {}", needs.scratch.display());
    }
}

/// Prints what was read.
pub fn print_counts(counts: &Counts, on_error: OnError, seconds: f64) {
    let faulty = if on_error == OnError::Keep { "unread" } else { "skipped" };
    for error in &counts.errors {
        eprintln!("{faulty:<10}{error}");
    }
    if counts.more_errors > 0 {
        eprintln!("{faulty:<10}and {} more", show::count(counts.more_errors));
    }
    let rate = counts.bytes as f64 / 1e6 / seconds.max(1e-9);
    let (records, size, time) = (show::count(counts.records), show::bytes(counts.bytes), show::seconds(seconds));
    eprintln!("read      {records} records, {size}, in {time} ({rate:.0} MB/s)");
    if counts.faulty > 0 {
        let kept = if on_error == OnError::Keep { ", kept as they are" } else { "" };
        eprintln!("{faulty:<10}{} that could not be read{kept}", show::count(counts.faulty));
    }
    for source in counts.sources.iter().filter(|source| source.broken) {
        eprintln!("{:<10}{} broke off after {} records", "skipped", source.name, show::count(source.records));
    }
}

/// Prints how many of `whom` a limit kept from being compared.
pub fn print_limited(cut_short: u64, whom: &str) {
    if cut_short > 0 {
        eprintln!(
            "limited   {} {whom} were not compared with all that they share shingles with, and may be near one of them",
            show::count(cut_short)
        );
    }
}

/// Prints what was compared, and in how much memory.
pub fn print_work(compared: u64, read_again: u64, index_bytes: u64) {
    let (compared, again) = (show::count(compared), show::count(read_again));
    eprintln!("compared  {compared} pairs of records; {again} texts were read again for it");
    eprintln!("index     {}", show::bytes(index_bytes));
}

/// Prints what deserves a look.
pub fn print_alarms(alarms: &[Alarm]) {
    for alarm in alarms {
        let what = match alarm.cause {
            Cause::Cluster => "records are near one",
            Cause::Copies => "records have the same shingles",
            _ => "records or more share a shingle, so that some near pairs among them may be missing",
        };
        anstream::eprintln!("{ALARM}     {} {what}: {} \"{}\"", show::count(alarm.records), alarm.id, alarm.excerpt);
    }
}
