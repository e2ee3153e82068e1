//! `nearset search`: which stored items are near, and how near.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::index::{IndexError, USUAL_TOP};
use nearset::{IndexSpec, LshSpec, Neighbour};
use nearset_jobs::scan::scan;
use nearset_records::output::{TableFile, Value, is_stdout};
use nearset_records::{OutputOptions, ReadOptions, Reader, RecordError, RecordFault};

use crate::items::{Faults, fields_for};
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

  Is any of them within 31 bits of a known one? (exit code 10 if so)
    nearset search known.nearset new.tsv --field pdq --within 31 --exit-code -o /dev/null

Exit codes: 0 done, 10 something was found (with --exit-code), 1 failed (no output appears), 2 wrong command line.";

/// The exit code that says that something was found.
const FOUND: u8 = 10;

/// Find the stored items that are nearest to each item of the inputs
///
/// Writes a row for each item found: the ids of the query and of the stored item, and how near they are, the nearest first. A
/// Hamming index misses nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    /// The index, built with `nearset build --index`
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    input: Input,

    /// Where rows go: .tsv, .csv or .jsonl, each also .gz, .zst, .bz2 or .xz; - for standard output, as TSV
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,

    /// The most items that are shown for one query [default: 10; all, if --within is given]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show only what is this near: at most this many differing bits or this distance; at least this similarity or cosine
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

/// A query's id, and what is near it.
type Answer = (String, Vec<Neighbour>);

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
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
    let top = args.top.or(if within.is_none() { Some(USUAL_TOP) } else { None });
    let sources = args.input.sources(args.quiet)?;
    let fields = fields_for(&args.input, args.field.as_deref(), metric)?;
    let mut output = OutputOptions::protecting(&sources.list);
    output.force = args.force;
    output.inputs.push(args.index.clone());
    let columns: &[&str] =
        if metric.larger_is_nearer() { &["query", "found", "similarity"] } else { &["query", "found", "distance"] };
    let mut table = TableFile::create(&args.output, columns, &output)?;
    let mut faults = Faults::new(args.work.on_error);
    let (mut queries, mut rows, mut answered) = (0u64, 0u64, 0u64);
    scan(
        Reader::new(sources.list, ReadOptions::new(fields.clone())),
        &fields,
        args.work.threads(),
        |extracted, _| -> Vec<Result<Answer, RecordError>> {
            let answer = |i: usize| {
                let item = extracted.item(i).map_err(Clone::clone)?;
                match index.search(item, top, within) {
                    Ok(found) => Ok((extracted.id(i).into_owned(), found)),
                    Err(IndexError::Item(cause)) => {
                        Err(extracted.error(i, RecordFault::Unhashable { field: fields.item.clone(), cause }))
                    }
                    Err(other) => unreachable!("an index that keeps its items can be searched: {other}"),
                }
            };
            (0..extracted.len()).map(answer).collect()
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
                for Neighbour { id, distance } in found {
                    let near = Value::Number(metric.own_unit(distance));
                    table.row(&[Value::Text(&query), Value::Text(&index.name(id)), near])?;
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
