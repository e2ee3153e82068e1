//! What `pairs`, `cluster` and `dedup` share: options, the plan, the run, and what is said about it.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use nearset::plan::Request;
use nearset::{JoinSpec, MetricName, Seed, Shingling};
use nearset_jobs::capacity::Known;
use nearset_jobs::join::{Alarm, Cause, Counts, JoinOptions, JoinPlan, TextMeasure};
use nearset_jobs::run::{Progress, RunError, is_resumable};
use nearset_records::input::Source;
use nearset_records::{Fields, Sources, output};
use serde::Serialize;

use crate::goal::{metric_help, parse_bytes, readable, shape};
use crate::items::{fields_for, metric_of_inputs, other_content};
use crate::options::{Input, OnError, Usage, Work, missing_outputs, print_json};
use crate::show::{self, ALARM, NOTE, ProgressLine};

/// Options of `pairs` and `cluster`.
#[derive(clap::Args)]
pub struct Join {
    #[command(flatten)]
    pub input: Input,

    /// Where rows go: .tsv, .csv or .jsonl, each also .gz, .zst, .bz2 or .xz; - for standard output, as TSV
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub output: PathBuf,

    #[command(flatten)]
    near: Nearness,

    /// The most of the pairs at exactly --near that may be missed; of hashes by hamming and of texts by edits none is
    #[arg(long, value_name = "RATE", default_value_t = JoinSpec::MAX_FALSE_NEGATIVE)]
    max_fn: f64,

    #[command(flatten)]
    room: Room,

    #[command(flatten)]
    work: Work,

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
    pub fn carry_out<J, S: Serialize>(
        &self,
        prepare: impl FnOnce(Vec<Source>, JoinOptions) -> Result<J, RunError>,
        plan: impl FnOnce(&J) -> &JoinPlan,
        work: impl FnOnce(J, &Progress) -> Result<S, RunError>,
        print_summary: impl FnOnce(&S),
    ) -> Result<ExitCode> {
        self.work.writes_no_records()?;
        let sources = self.input.sources(self.quiet)?;
        let total = sources.total_bytes();
        let options = self.options(&sources)?;
        if !self.quiet {
            self.near.print_doubts(&self.input, &sources, &options.fields);
        }
        let job = prepare(sources.list, options)?;
        if !self.quiet {
            print_plan(plan(&job));
        }
        let summary = watched(total, self.quiet, |progress| work(job, progress))??;
        if !self.quiet {
            print_summary(&summary);
        }
        if self.json {
            let value = serde_json::to_value(&summary).context("cannot write the summary as JSON")?;
            print_json(&value, output::is_stdout(&self.output))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether near is how much of a text is in another.
    pub fn is_contained(&self) -> bool {
        self.near.metric == Measure::Text(TextMeasure::Containment)
    }

    /// In the library's terms.
    fn options(&self, sources: &Sources) -> Result<JoinOptions> {
        let (mut wanted, fields) = self.near.wanted(&self.input, sources)?;
        wanted.max_false_negative = Some(self.max_fn);
        let mut options = JoinOptions::new(wanted);
        options.text_measure = self.near.metric.text_measure();
        options.fields = fields;
        options.on_error = self.work.on_error.into();
        options.threads = self.work.threads();
        options.force = self.force;
        options.memory = self.room.memory;
        options.scratch = self.room.scratch.clone();
        Ok(options)
    }
}

/// Memory and scratch space of a command that compares.
#[derive(clap::Args)]
pub struct Room {
    /// The most memory that records may take to be compared with, such as 8G; otherwise what the machine, or its group of processes, has
    /// left. By Jaccard similarity, what memory can't hold goes to scratch space, and the output is the same; a run that compares
    /// otherwise, or cuts out parts, does not start
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Where copies of texts go that can't be read again where they lie (compressed, in Parquet, from a pipe), and what memory can't
    /// hold. Otherwise beside the output of `dedup`, or in a folder for temporary files
    #[arg(long, value_name = "FOLDER")]
    pub scratch: Option<PathBuf>,
}

/// What near means to a command that compares, and what it compares.
#[derive(clap::Args)]
pub struct Nearness {
    #[arg(long, value_name = "METRIC", default_value_t = Measure::Metric(MetricName::Jaccard), help = measure_help())]
    pub metric: Measure,

    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help = format!("From where on records are near: a similarity or \
        cosine, differing bits, edits, or a distance [default: {} for similarities of texts]", Request::NEAR))]
    pub near: Option<f64>,

    /// The length of hashes, for hamming; otherwise that of the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    bits: Option<u32>,

    /// Components of a vector, for cosine, l1 and l2; otherwise those of the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dimension: Option<u32>,

    /// The length of strings, for symbols; otherwise that of the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    length: Option<u32>,

    #[arg(long, value_name = "KIND:N", help = format!("How texts are cut into sets: words:N, chars:N, bytes:N, code:N or kmers:N [default: {}]", Shingling::default()))]
    shingle: Option<Shingling>,

    /// The field or column of the item [default: text, hash or vector, by metric]
    #[arg(long, visible_alias = "field", value_name = "NAME")]
    text_field: Option<String>,

    /// From which the hash functions are drawn: a number, or 32 hexadecimal digits that nobody can guess
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,
}

/// How records are measured against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// By a metric, which is the same both ways.
    Metric(MetricName),
    /// By what is no metric.
    Text(TextMeasure),
}

impl Measure {
    /// Whether it counts what is different.
    fn counts(self) -> bool {
        matches!(self, Measure::Metric(MetricName::Hamming | MetricName::Symbols))
    }

    /// Whether it is the one that every option is for.
    pub fn is_usual(self) -> bool {
        self == Measure::Metric(MetricName::Jaccard)
    }

    /// Returns the metric; containment is counted over the shingles of Jaccard's.
    pub fn metric(self) -> MetricName {
        match self {
            Measure::Metric(name) => name,
            Measure::Text(_) => MetricName::Jaccard,
        }
    }

    /// Returns how texts are measured, where that is no metric.
    pub fn text_measure(self) -> Option<TextMeasure> {
        match self {
            Measure::Metric(_) => None,
            Measure::Text(measure) => Some(measure),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Metric(name) => name.fmt(f),
            Measure::Text(measure) => f.pad(measure.as_str()),
        }
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(measure) = TextMeasure::ALL.into_iter().find(|measure| text.eq_ignore_ascii_case(measure.as_str()))
        {
            return Ok(Measure::Text(measure));
        }
        text.parse()
            .map(Measure::Metric)
            .map_err(|error| format!("{error}, or {}", TextMeasure::ALL.map(TextMeasure::as_str).join(", ")))
    }
}

fn measure_help() -> String {
    let [containment, edit, similarity] = TextMeasure::ALL.map(TextMeasure::as_str);
    let metrics = metric_help(readable());
    format!(
        "{metrics}; {containment}, how much of a text is in another; {edit}, characters inserted, deleted or replaced; or {similarity}, 1 less \
         those per character of the longer text"
    )
}

impl Nearness {
    /// Returns what is wanted, and what to read for it.
    pub fn wanted(&self, input: &Input, sources: &Sources) -> Result<(Request, Fields)> {
        let name = self.metric.metric();
        let is_by_edits = self.metric.text_measure().is_some_and(TextMeasure::counts_edits);
        if self.shingle.is_some() && is_by_edits {
            return Err(
                Usage(format!("--shingle cuts texts, and {} compares them whole: leave it out", self.metric)).into()
            );
        }
        let shape = shape(name, [self.bits, self.dimension, self.length], self.shingle)?;
        let field = self.text_field.as_deref();
        let metric = metric_of_inputs(name, shape, input, field, sources)?;
        let near = match self.near {
            Some(near) if self.metric == Measure::Text(TextMeasure::Edit) && near > 0.0 && near < 1.0 => {
                return Err(Usage(format!(
                    "--near {near}: edits are whole; --metric edit-similarity takes a similarity"
                ))
                .into());
            }
            Some(near) if near.fract() != 0.0 && self.metric.counts() => {
                return Err(Usage(format!("--near {near}: {} are whole", metric.unit())).into());
            }
            Some(near) => near,
            None if self.metric == Measure::Text(TextMeasure::Edit) => {
                return Err(Usage("--near is needed for edit: how many edits is near?".into()).into());
            }
            None if metric.shape().shingling.is_some() => Request::NEAR,
            None => {
                let unit = metric.unit();
                return Err(Usage(format!("--near is needed for {}: how many {unit} is near?", self.metric)).into());
            }
        };
        Ok((Request::new(metric, near).seed(self.seed), fields_for(input, field, metric, &sources.list)?))
    }

    /// Prints a word about inputs that plainly hold something else than what is compared.
    pub fn print_doubts(&self, input: &Input, sources: &Sources, fields: &Fields) {
        if let Some(word) = other_content(input, sources, fields) {
            eprintln!("note: {word}");
        }
    }

    /// Returns how texts are cut.
    pub fn shingling(&self) -> Shingling {
        self.shingle.unwrap_or_default()
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
pub fn print_resumed(records: u64, resume: bool) {
    if records > 0 {
        eprintln!("resumed   behind {} records", show::count(records));
    } else if resume {
        anstream::eprintln!("{NOTE} there is no checkpoint to go on from, and the run begins anew");
    }
}

/// Prints what will be done.
pub fn print_plan(plan: &JoinPlan) {
    let (near, metric) = (plan.near, plan.metric);
    match &plan.shingling {
        Some(shingling) if plan.text_measure.is_some() => {
            eprintln!("plan      near if {near} of a text's {shingling} shingles are in another, compared exactly");
        }
        None if plan.text_measure == Some(TextMeasure::Edit) => {
            let edits = if near == 1.0 { "edit turns" } else { "edits turn" };
            eprintln!("plan      near if at most {near} {edits} one text into the other, compared exactly");
        }
        None if plan.text_measure == Some(TextMeasure::EditSimilarity) => {
            eprintln!(
                "plan      near if 1 less the edits per character of the longer text is {near} or more, compared exactly"
            );
        }
        Some(shingling) => {
            let title = metric.name().title();
            eprintln!("plan      near {near} by {title} of {shingling} shingles, compared exactly");
        }
        None => {
            let unit = if near == 1.0 { metric.unit().trim_end_matches('s') } else { metric.unit() };
            eprintln!("plan      near {near} {unit} by {metric}, compared exactly");
        }
    }
    let beyond = if plan.larger_is_nearer() { "below" } else { "beyond" };
    let missed = match plan.missed {
        0.0 => "nothing is missed".to_owned(),
        missed => format!("{} missed at exactly {near}", show::percent(missed)),
    };
    eprintln!("promise   nothing {beyond} {near} is taken for near; {missed}");
    if plan.reads_again() {
        eprintln!(
            "memory    about {} bytes and its id for each record that others are compared with ({} keys), and a cache of {}",
            plan.bytes_per_record,
            plan.keys,
            show::bytes(plan.cache_bytes)
        );
    } else {
        let what = if plan.text_measure.is_some() { "keys" } else { "tables" };
        let tables = if plan.keys > 0 { format!(" ({} {what})", plan.keys) } else { String::new() };
        eprintln!(
            "memory    about {} bytes and its id for each record that others are compared with{tables}: items are held",
            plan.bytes_per_record
        );
    }
    let Some(needs) = &plan.needs else { return };
    let records = show::counted(needs.records.records, "record");
    let available =
        needs.available.map_or(String::new(), |available| format!(", of {} that may be taken", show::bytes(available)));
    match needs.records.known {
        Known::Guessed if needs.spills => eprintln!(
            "          a pipe does not tell its length; what memory can't hold goes to {}{available}",
            needs.scratch.display()
        ),
        Known::Guessed => eprintln!(
            "          a pipe does not tell its length; the run stops before it takes more than there is{available}"
        ),
        Known::Sampled => {
            eprintln!("          {} if all of about {records} are kept{available}", show::bytes(needs.bytes))
        }
        _ if needs.records.records == 1 => {
            eprintln!("          {} if the one record is kept{available}", show::bytes(needs.bytes));
        }
        _ => eprintln!("          {} if all of {records} are kept{available}", show::bytes(needs.bytes)),
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

/// Prints how many of `whom` a limit kept from being compared, and what lifts it.
pub fn print_limited(cut_short: u64, whom: &str, cure: &str) {
    if cut_short > 0 {
        eprintln!(
            "limited   {} {whom} were not compared with all that they share shingles with, and may be near one of them{cure}",
            show::count(cut_short)
        );
    }
}

/// Prints what was compared, where that was counted, and in how much memory.
pub fn print_work(compared: Option<u64>, read_again: u64, index_bytes: u64) {
    if let Some(compared) = compared {
        let (pairs, again) = (if compared == 1 { "pair" } else { "pairs" }, show::counted(read_again, "text"));
        let were = if read_again == 1 { "was" } else { "were" };
        eprintln!("compared  {} {pairs} of records; {again} {were} read again for it", show::count(compared));
    }
    eprintln!("index     {}", show::bytes(index_bytes));
}

/// Prints what deserves a look.
pub fn print_alarms(alarms: &[Alarm]) {
    for alarm in alarms {
        let what = match alarm.cause {
            Cause::Cluster => "records are near one",
            Cause::Copies if alarm.excerpt.is_empty() => "records are equal",
            Cause::Copies => "records have the same shingles",
            _ => "records or more share a shingle, so that some near pairs among them may be missing",
        };
        let quoted = if alarm.excerpt.is_empty() { String::new() } else { format!(" \"{}\"", alarm.excerpt) };
        anstream::eprintln!("{ALARM}     {} {what}: {}{quoted}", show::count(alarm.records), alarm.id);
    }
}
