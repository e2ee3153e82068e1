//! `nearset decontaminate`: benchmark items out of a corpus.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use nearset_jobs::decontaminate::{
    Benchmark, BenchmarkOptions, Decontaminate, DecontaminateOptions, DecontaminateSummary, Finder, Thresholds,
    is_benchmark,
};
use nearset_jobs::run::RunError;
use nearset_records::input::expect_joined_fields;
use nearset_records::output::is_same_output;
use nearset_records::{ItemField, OutputFile, OutputOptions, Source};

use crate::join;
use crate::options::{Input, Running, Usage, is_stdout, print_json, sources_of};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Is anything of these benchmarks in the corpus? Look before anything is written (exit code 10 if so):
    nearset decontaminate crawl.jsonl.zst --benchmark mmlu.jsonl gsm8k.parquet --dry-run --report leaks.html

  Leave out the records that hold an item, and say which, where and why:
    nearset decontaminate crawl.jsonl.zst --benchmark evals/ -o clean.jsonl.zst --removed leaks.jsonl

  Cut the items out of their records and keep the rest:
    nearset decontaminate crawl.jsonl.zst --benchmark evals/ -o clean.jsonl.zst --mask

  Build a set once, weighed with ordinary pages, and use it for every shard:
    nearset decontaminate --benchmark evals/ --background sample.jsonl --save evals.nearset
    nearset decontaminate shard-07.jsonl.zst --against evals.nearset -o clean-07.jsonl.zst

Exit codes: 0 done, 10 a dry run found something, 1 failed (no output appears), 2 wrong command line.";

/// The exit code that says that a dry run found something.
const FOUND: u8 = 10;

/// Remove the records of a corpus that hold benchmark items
///
/// An item is inside a record if a stretch of the record, 1.3 times as long as the item and 10 words, has enough of its word 3-grams: at least
/// --share of their weight, and --mass in all. What many items or background documents have weighs little, so that boilerplate is no
/// evidence. Case, punctuation, spacing and some edits don't matter. Each field of an item is looked for alone, and all together.
///
/// Every record is judged alone: the same record gets the same answer in every shard and for any number of threads.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("inputs", |arg| arg.required(false)),
    group = clap::ArgGroup::new("items").required(true).args(["benchmark", "against"]))]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Files, folders or quoted globs of benchmark items, in any format of records
    #[arg(long, value_name = "FILES", num_args = 1.., conflicts_with = "against")]
    benchmark: Vec<String>,

    /// A set that --save has kept, instead of --benchmark
    #[arg(long, value_name = "SET")]
    against: Option<PathBuf>,

    /// Fields of the items that are evidence, each alone and all together [default: those that are usual, such as question, answer and
    /// choices, prompt and completion, or text]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "against")]
    fields: Vec<String>,

    /// Ordinary documents, of which what is common weighs less: a sample of the corpus, or of another. It should hold no leaks
    #[arg(long, value_name = "FILES", num_args = 1.., conflicts_with = "against")]
    background: Vec<String>,

    /// Keep the set for --against: the items, and the weights that they have now
    #[arg(long, value_name = "SET", conflicts_with = "against")]
    save: Option<PathBuf>,

    /// Where records go, in the format of the input and compressed by its extension (.gz, .zst, .bz2, .xz); a folder, or a name that ends in
    /// /, has one file per input; - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[arg(long, value_name = "SHARE", conflicts_with = "strict", help = format!("The least share of an item's weight that must be there \
        [default: {}, with --strict {}]", Thresholds::USUAL.share, Thresholds::STRICT.share))]
    share: Option<f64>,

    #[arg(long, value_name = "MASS", conflicts_with = "strict", help = format!("The least weight that must be there, counted in 3-grams that only \
        one item has; items that weigh less are too short to decide [default: {}, with --strict {}]",
        Thresholds::USUAL.mass, Thresholds::STRICT.mass))]
    mass: Option<f64>,

    /// Leave alone what is doubtful
    #[arg(long)]
    strict: bool,

    /// Cut the items out of their records, until nothing is found, and keep the rest; records of nothing else are left out
    #[arg(long, conflicts_with_all = ["annotate", "dry_run"])]
    mask: bool,

    /// Keep all records and add the fields contaminated, leak_of and leak_share to each. Those of an earlier run are replaced where they
    /// stand; other fields of these names are refused
    #[arg(long, conflicts_with = "dry_run")]
    annotate: bool,

    /// Search, but write no records
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// Write a line of JSON for each record that holds items: its id, file and line, and for each item the benchmark, id, field, share, score,
    /// where it is in bytes and lines of the text, and both texts
    #[arg(long, value_name = "FILE")]
    removed: Option<PathBuf>,

    /// Write a page with the findings side by side, by benchmark, the most doubtful first
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// The field or column of the text
    #[arg(long, visible_alias = "field", value_name = "NAME", default_value = "text")]
    text_field: String,

    #[command(flatten)]
    running: Running,
}

impl Args {
    fn thresholds(&self) -> Result<Thresholds> {
        Thresholds::new(self.strict, self.share, self.mass).map_err(|error| Usage(format!("--{error}")).into())
    }

    /// Returns the set, and the files that it is from.
    fn benchmark(&self) -> Result<(Benchmark, Vec<PathBuf>)> {
        if let Some(path) = &self.against {
            return Ok((Benchmark::open(path)?, vec![path.clone()]));
        }
        let text = self.input.fields(&self.text_field, ItemField::Text);
        let id = text.id.clone();
        let mut options = BenchmarkOptions::new(text);
        options.fields = self.fields.clone();
        options.id = id;
        options.on_error = self.running.work.on_error.into();
        options.threads = self.running.work.threads();
        let items = sources_of(&self.benchmark, None, self.running.quiet)?.list;
        if !self.background.is_empty() {
            options.background = sources_of(&self.background, self.input.format, self.running.quiet)?.list;
        }
        let paths = |sources: &[Source]| sources.iter().filter_map(Source::place).collect();
        let mut protected: Vec<PathBuf> = paths(&items);
        protected.extend(paths(&options.background));
        Ok((Benchmark::read(&items, options)?, protected))
    }

    /// How the set is saved, if it is to be: what would replace anything that is needed is refused.
    fn saving(&self, benchmark: &Benchmark, protected: Vec<PathBuf>) -> Result<Option<(&Path, OutputOptions)>> {
        let Some(path) = &self.save else { return Ok(None) };
        // A run that is resumed may have saved it before.
        if self.running.resume && is_benchmark(path) && Benchmark::open(path)? == *benchmark {
            return Ok(None);
        }
        let outputs = [&self.output, &self.removed, &self.report];
        if outputs.into_iter().flatten().any(|output| is_same_output(output, path)) {
            return Err(RunError::SameOutput { path: path.clone() }.into());
        }
        let mut options = OutputOptions::default();
        options.inputs = protected;
        options.force = self.running.force;
        OutputFile::check(path, &options)?;
        Ok(Some((path, options)))
    }

    fn save(&self, benchmark: &Benchmark, saving: Option<(&Path, OutputOptions)>) -> Result<()> {
        let Some((path, options)) = saving else { return Ok(()) };
        benchmark.save(path, &options)?;
        if !self.running.quiet {
            eprintln!("saved     {}", path.display());
        }
        Ok(())
    }

    fn options(&self, protected: Vec<PathBuf>) -> DecontaminateOptions {
        let mut options = DecontaminateOptions::default();
        options.mask = self.mask;
        options.protected = protected;
        options.run = self.running.options(self.input.fields(&self.text_field, ItemField::Text));
        options.run.annotate = self.annotate;
        options.run.out = self.output.clone();
        options.run.removed = self.removed.clone();
        options.run.report = self.report.clone();
        options
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let thresholds = args.thresholds()?;
    if args.input.inputs.is_empty() {
        let is_search = args.output.is_some()
            || args.dry_run
            || args.mask
            || args.annotate
            || args.running.json
            || args.running.resume;
        if args.save.is_none() || is_search || args.removed.is_some() || args.report.is_some() {
            let why = "which records are to be searched? Name them before --benchmark, or --save the set for later";
            return Err(Usage(why.to_owned()).into());
        }
    } else if args.output.is_none() && !args.dry_run {
        return Err(
            Usage("where are records to go? Name an output with -o, or look only with --dry-run".to_owned()).into()
        );
    }
    let sources = if args.input.inputs.is_empty() {
        None
    } else {
        Some(args.input.sources_beside(&args.output, args.running.quiet)?)
    };
    let (benchmark, protected) = args.benchmark()?;
    let finder = Arc::new(benchmark).finder(thresholds);
    if !args.running.quiet {
        print_plan(&finder);
    }
    let Some(sources) = sources else {
        args.save(finder.benchmark(), args.saving(finder.benchmark(), protected)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    expect_joined_fields(&sources.list, &args.input.fields(&args.text_field, ItemField::Text))?;
    let total = sources.total_bytes();
    let mut not_replaced = protected.clone();
    not_replaced.extend(sources.list.iter().filter_map(Source::place));
    let saving = args.saving(finder.benchmark(), not_replaced)?;
    let run = Decontaminate::prepare(sources.list, &finder, args.options(protected))?;
    if !args.running.quiet {
        join::print_resumed(run.resumed_records(), args.running.resume);
    }
    let outputs = [&args.output, &args.removed, &args.report];
    let ran = join::watched(total, args.running.quiet, |progress| run.run(progress))?;
    let summary = join::explained(ran, &args.output, &outputs)?;
    // Not before: a run that is refused leaves nothing behind.
    args.save(finder.benchmark(), saving)?;
    if !args.running.quiet {
        print_summary(&summary, &args);
    }
    if args.running.json {
        let value = serde_json::to_value(&summary).context("cannot write the summary as JSON")?;
        print_json(&value, outputs.into_iter().any(is_stdout))?;
    }
    Ok(if args.dry_run && summary.contaminated > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Prints what is looked for, and what will be found of it.
fn print_plan(finder: &Finder) {
    let benchmark = finder.benchmark();
    let Thresholds { share, mass, .. } = finder.thresholds();
    let (items, files) = (benchmark.items().len(), benchmark.files().len());
    let background = match benchmark.background() {
        0 => String::new(),
        documents => format!(", weighed with {}", show::counted(documents, "background document")),
    };
    eprintln!(
        "plan      {} of {}{background}, in {}",
        show::counted(items as u64, "item"),
        show::counted(files as u64, "file"),
        show::bytes(finder.bytes())
    );
    eprintln!("          found where {} of an item's weight is in a window, and {mass} in all", show::percent(share));
    let short: Vec<usize> = (0..items).filter(|&item| !finder.is_decidable(item)).collect();
    if let Some(&first) = short.first() {
        let name = &benchmark.items()[first];
        let file = &benchmark.files()[name.file];
        eprintln!(
            "short     {}, too short to decide and not looked for, such as {} of {file}; --json lists all such",
            show::counted(short.len() as u64, "item"),
            name.id
        );
    }
    for (i, promise) in finder.promise().iter().enumerate() {
        let found: Vec<String> = promise
            .found
            .iter()
            .map(|(edits, found)| format!("{} at {} edits", show::percent(*found), show::percent(*edits)))
            .collect();
        let (what, length) = (if i == 0 { "promise" } else { "" }, promise.length());
        let items = show::counted(promise.items, "item");
        eprintln!("{what:<10}{items} of {length} words: found {}", found.join(", "));
    }
}

fn print_summary(summary: &DecontaminateSummary, args: &Args) {
    join::print_counts(&summary.counts, args.running.work.on_error, summary.seconds);
    let part = |number: u64| show::percent(number as f64 / summary.counts.records.max(1) as f64);
    let what = match (args.annotate, args.dry_run) {
        (true, _) => "marked",
        (_, true) => "found",
        _ => "removed",
    };
    let removed = summary.contaminated - summary.masked;
    eprintln!("{:<10}{} ({})", "clean", show::count(summary.clean), part(summary.clean));
    if args.mask {
        eprintln!("{:<10}{} ({}), kept without the items", "cut", show::count(summary.masked), part(summary.masked));
    }
    eprintln!("{what:<10}{} that hold benchmark items ({})", show::count(removed), part(removed));
    for benchmark in &summary.benchmarks {
        eprintln!(
            "{:<10}{} of {} items, in {} records: {}",
            "",
            show::count(benchmark.found),
            show::count(benchmark.items),
            show::count(benchmark.records),
            benchmark.name
        );
    }
    if let Some(report) = &args.report {
        eprintln!("report    {}", report.display());
    }
}
