//! `nearset search`: which stored items are near, and how near.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nearset::index::{IndexError, USUAL_TOP};
use nearset::{Distance, Index, IndexSpec, Item, LshSpec, Metric, Neighbour};
use nearset_jobs::join::{Counts, EditSearch, Searching, TextMeasure};
use nearset_jobs::run::Progress;
use nearset_jobs::scan::scan;
use nearset_records::input::expect_joined_fields;
use nearset_records::output::{TableFile, Value, is_stdout};
use nearset_records::{
    Fields, ItemField, OutputOptions, ReadOptions, Reader, RecordError, RecordFault, Source, Sources, resolve,
};

use crate::items::{Faults, fields_for, usual_field};
use crate::join::{Measure, watched};
use crate::options::{Input, Opening, Usage, Work, print_json, without_keep};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  The ten known hashes nearest to each new one, with their distances:
    nearset build known.tsv -o known.nearset --index --metric hamming --near 31 --field pdq
    nearset search known.nearset new.tsv --field pdq

  All that lie within 31 bits, as JSON Lines:
    nearset search known.nearset new.tsv --field pdq --within 31 -o matches.jsonl

  Hashes from a pipe, one per line; the nearest one only:
    cut -f2 new.tsv | nearset search known.nearset - --format text --top 1

  Known names with at most two typing errors, none missed; there is nothing to build:
    nearset search known.csv new.csv --metric edit --within 2 --text-field name

  Is any of them within 31 bits of a known one? (exit code 10 if so)
    nearset search known.nearset new.tsv --field pdq --within 31 --exit-code -o /dev/null

Exit codes: 0 done, 10 something was found (with --exit-code), 1 failed (no output appears), 2 wrong command line.";

/// The exit code that says that something was found.
const FOUND: u8 = 10;

/// Find the stored items that are nearest to each item of the inputs
///
/// Writes a row for each item found: the ids of the query and of the stored item, and how near they are, the nearest first. A
/// Hamming index misses nothing, and neither do searches by edits.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    /// The index, built with `nearset build --index`; with --metric, a file of texts
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    input: Input,

    /// Where rows go: .tsv, .csv or .jsonl, each also .gz, .zst, .bz2 or .xz; - for standard output, as TSV
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,

    #[arg(long, value_name = "METRIC", help = metric_help())]
    metric: Option<Measure>,

    /// The most items that are shown for one query [default: 10; all, if --within is given]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show only what is this near: at most this many differing bits, edits or this distance; at least this similarity or cosine. Edits are
    /// found fast up to it; without it, all texts are compared
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    within: Option<f64>,

    /// The field or column of the item [default: text, hash or vector, by the index's metric]
    #[arg(long, visible_alias = "text-field", value_name = "NAME")]
    field: Option<String>,

    /// Exit with 10 if anything was found, and with 0 if nothing was
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    work: Work,

    /// Replace an existing output
    #[arg(long)]
    force: bool,

    /// Print the counts as a line of JSON on standard output (on standard error if that is the output)
    #[arg(long)]
    json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

fn metric_help() -> String {
    let [edit, similarity] = [TextMeasure::Edit, TextMeasure::EditSimilarity].map(TextMeasure::as_str);
    format!(
        "Compare with the texts of a file, which takes the place of the index: by {edit}, characters inserted, deleted or replaced, or by \
         {similarity}, 1 less those per character of the longer text. An index knows its metric"
    )
}

/// What is searched.
enum Stored<'s> {
    Index {
        index: &'s Index<'s>,
        metric: Metric,
        within: Option<Distance>,
    },
    /// Texts, by edits.
    Texts {
        texts: &'s EditSearch,
        measure: TextMeasure,
    },
}

impl Stored<'_> {
    fn larger_is_nearer(&self) -> bool {
        match self {
            Stored::Index { metric, .. } => metric.larger_is_nearer(),
            Stored::Texts { measure, .. } => *measure != TextMeasure::Edit,
        }
    }

    /// Returns what is near an item, in the metric's own unit.
    fn search(&self, item: Item<'_>, top: Option<usize>, room: &mut Searching) -> Result<Vec<(u32, f64)>, IndexError> {
        match (self, item) {
            (Stored::Index { index, metric, within }, item) => {
                let stated = |Neighbour { id, distance }| (id, metric.own_unit(distance));
                Ok(index.search(item, top, *within)?.into_iter().map(stated).collect())
            }
            (Stored::Texts { texts, .. }, Item::Text(text)) => Ok(texts.search(text, top, room)),
            (Stored::Texts { .. }, _) => unreachable!("records are read as texts"),
        }
    }

    fn name(&self, id: u32) -> String {
        match self {
            Stored::Index { index, .. } => index.name(id),
            Stored::Texts { texts, .. } => texts.name(id).to_owned(),
        }
    }
}

/// A query's id, and what is near it.
type Answer = (String, Vec<(u32, f64)>);

impl Args {
    /// Returns what to read of the texts that are searched, and of those that are looked for.
    fn text_fields(&self) -> Fields {
        self.input.fields(self.field.as_deref().unwrap_or(usual_field(ItemField::Text)), ItemField::Text)
    }

    /// Returns the measure by which texts of a file are searched.
    fn measure(&self, metric: Measure) -> Result<TextMeasure, Usage> {
        match metric {
            Measure::Text(measure) if measure.counts_edits() => Ok(measure),
            Measure::Text(measure) => Err(Usage(format!(
                "--metric {measure}: there is no index of what is inside what; `nearset pairs --metric {measure}` over both files says it, and \
                 `nearset decontaminate` finds the items of one inside the records of the other",
                measure = measure.as_str(),
            ))),
            Measure::Metric(metric) => Err(Usage(format!(
                "--metric {metric}: an index is searched by its own metric: build one with `nearset build --index --metric {metric}`, and leave \
                 --metric out"
            ))),
        }
    }

    /// Reads the texts that are searched; the others are looked for.
    fn texts(&self, measure: TextMeasure, others: &[Source]) -> Result<(Vec<Source>, EditSearch)> {
        let path = self.index.display().to_string();
        if path == "-" {
            return Err(
                Usage("the texts that are searched come from a file, and only the others from a pipe".into()).into()
            );
        }
        let format = self.input.format;
        // A pipe has no extension, so a format that is named for one is not that of the file, which may have one.
        let is_of_pipe = others.iter().all(|source| !source.is_remote() && !source.is_rereadable());
        let Sources { list, .. } = if is_of_pipe {
            resolve(&[&path], None)
                .or_else(|error| if format.is_some() { resolve(&[&path], format) } else { Err(error) })?
        } else {
            resolve(&[&path], format)?
        };
        expect_joined_fields(&list, &self.text_fields())?;
        let (fields, reading) = (self.text_fields(), (self.work.threads(), self.work.on_error.into()));
        let total = list.iter().map(|source| source.bytes).sum();
        let sources: Arc<[Source]> = list.clone().into();
        let read = |progress: &Progress| EditSearch::read(&sources, &fields, reading, (measure, self.within), progress);
        let (texts, counts) = watched(total, self.quiet, read)??;
        if !self.quiet {
            self.print_texts(&texts, &counts, measure);
        }
        Ok((list, texts))
    }

    fn print_texts(&self, texts: &EditSearch, counts: &Counts, measure: TextMeasure) {
        for error in &counts.errors {
            eprintln!("skipped   {error}");
        }
        if counts.more_errors > 0 {
            eprintln!("skipped   and {} more", show::count(counts.more_errors));
        }
        let how = match (self.within, measure) {
            (None, _) => "every one is compared".to_owned(),
            (Some(1.0), TextMeasure::Edit) => "none within 1 edit is missed".to_owned(),
            (Some(within), TextMeasure::Edit) => format!("none within {within} edits is missed"),
            (Some(within), _) => format!("none of a similarity of {within} or more is missed"),
        };
        eprintln!("texts     {}, {}; {how}", show::counted(texts.records(), "record"), show::bytes(texts.bytes()));
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
    if let Some(metric) = args.metric {
        let measure = args.measure(metric)?;
        let sources = args.input.sources(args.quiet)?;
        expect_joined_fields(&sources.list, &args.text_fields())?;
        let (mut inputs, texts) = args.texts(measure, &sources.list)?;
        inputs.extend(sources.list.iter().cloned());
        let output = OutputOptions::protecting(&inputs).with_force(args.force);
        return answer(&args, &Stored::Texts { texts: &texts, measure }, sources, args.text_fields(), &output);
    }
    let file = args.opening.file(&args.index)?;
    let index = file.index()?;
    let Some(metric) = index.metric() else {
        bail!("{}: its items cannot be read from files; use the library", args.index.display());
    };
    if let IndexSpec::Lsh(LshSpec { keeps_items: false, .. }) = index.spec() {
        bail!("{}: {}", args.index.display(), IndexError::ItemsNotKept);
    }
    let within = args.within.map(|own| metric.distance(own)).transpose();
    let within = within.map_err(|error| Usage(format!("--within: {error}")))?;
    let sources = args.input.sources(args.quiet)?;
    let fields = fields_for(&args.input, args.field.as_deref(), metric, &sources.list)?;
    let mut output = OutputOptions::protecting(&sources.list).with_force(args.force);
    output.inputs.push(args.index.clone());
    answer(&args, &Stored::Index { index: &index, metric, within }, sources, fields, &output)
}

/// Looks up every item of the inputs.
fn answer(
    args: &Args,
    stored: &Stored<'_>,
    sources: Sources,
    fields: Fields,
    output: &OutputOptions,
) -> Result<ExitCode> {
    let top = args.top.or(if args.within.is_none() { Some(USUAL_TOP) } else { None });
    let columns: &[&str] =
        if stored.larger_is_nearer() { &["query", "found", "similarity"] } else { &["query", "found", "distance"] };
    let mut table = TableFile::create(&args.output, columns, output)?;
    let mut faults = Faults::new(args.work.on_error);
    let (mut queries, mut rows, mut answered) = (0u64, 0u64, 0u64);
    scan(
        Reader::new(sources.list, ReadOptions::new(fields.clone())),
        &fields,
        args.work.threads(),
        |extracted, _| -> Vec<Result<Answer, RecordError>> {
            let mut room = Searching::default();
            let mut answer = |i: usize| {
                let item = extracted.item(i).map_err(Clone::clone)?;
                match stored.search(item, top, &mut room) {
                    Ok(found) => Ok((extracted.id(i).into_owned(), found)),
                    Err(IndexError::Item(cause)) => {
                        Err(extracted.error(i, RecordFault::Unhashable { field: fields.item.clone(), cause }))
                    }
                    Err(other) => unreachable!("an index that keeps its items can be searched: {other}"),
                }
            };
            (0..extracted.len()).map(&mut answer).collect()
        },
        |_, result| -> Result<()> {
            let answers = match result {
                Ok(answers) => answers,
                Err(error) => return faults.note(error.into()),
            };
            for answer in answers {
                let (query, found) = match answer {
                    Ok(answer) => answer,
                    Err(error) => {
                        faults.record(error)?;
                        continue;
                    }
                };
                queries += 1;
                rows += found.len() as u64;
                answered += u64::from(!found.is_empty());
                for (id, near) in found {
                    table.row(&[Value::Text(&query), Value::Text(&stored.name(id)), Value::Number(near)])?;
                }
            }
            Ok(())
        },
    )?;
    faults.expect_readable(queries)?;
    table.finish()?;
    if !args.quiet {
        let part = show::percent(answered as f64 / queries.max(1) as f64);
        let (rows, all) = (show::count(rows), show::count(queries));
        eprintln!("found     {rows} items for {} of {all} queries ({part})", show::count(answered));
    }
    if args.json {
        let summary = serde_json::json!({
            "queries": queries, "answered": answered, "found": rows, "skipped": faults.count,
        });
        print_json(&summary, is_stdout(&args.output)).context("cannot print the summary")?;
    }
    Ok(if args.exit_code && rows > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}
