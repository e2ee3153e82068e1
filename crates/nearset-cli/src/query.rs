//! `nearset query`: items screened against a filter.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nearset_jobs::query::{self, Query, QueryOptions};
use nearset_records::Fields;

use crate::items::fields_for;
use crate::join;
use crate::options::{Input, Opening, Running, Trust, Usage, is_stdout, print_json};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Is anything in this file near what was seen? (exit code 10 if so)
    nearset query seen.nearset new.jsonl

  Keep only what is near nothing in the filter:
    nearset query seen.nearset new.jsonl -o clean.jsonl --keep far

  Mark every record instead:
    nearset query seen.nearset new.jsonl -o tagged.jsonl --tag

Exit codes: 0 nothing is near, 10 something is near, 1 failed, 2 wrong command line.";

/// The exit code that says that something was near.
const NEAR: u8 = 10;

/// Which records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// Those near something in the filter
    Near,
    /// Those near nothing in it
    Far,
}

/// Screen items against a filter
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    input: Input,

    /// Where records go; a folder, or a name that ends in /, has one file per input; - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Which records are written
    #[arg(long, value_enum, conflicts_with = "tag", requires = "output")]
    keep: Option<Keep>,

    /// Write all records, with the fields near and hits added to each. Those of an earlier run are replaced where they stand; other fields
    /// of these names are refused
    #[arg(long, requires = "output")]
    tag: bool,

    /// Write a line of JSON for each record that is left out, or marked as near: its id, file, line, hits and the reason
    #[arg(long, value_name = "FILE")]
    removed: Option<PathBuf>,

    /// The field or column of the item [default: text, hash or vector, by the filter's metric]
    #[arg(long, visible_alias = "text-field", value_name = "NAME")]
    field: Option<String>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    running: Running,
}

impl Args {
    fn options(&self, fields: Fields) -> QueryOptions {
        let mut options = QueryOptions::default();
        options.keep = match self.keep {
            Some(Keep::Near) => query::Keep::Near,
            _ => query::Keep::Far,
        };
        options.run = self.running.options(fields);
        options.run.annotate = self.tag;
        options.run.out = self.output.clone();
        options.run.removed = self.removed.clone();
        options
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let file = args.opening.file(&args.filter)?;
    let filter = args.trust.filter(&file)?;
    let Some(metric) = filter.spec().metric() else {
        bail!("{}: its items cannot be read from files; use the library", args.filter.display());
    };
    let sources = args.input.sources_beside(&args.output, args.running.quiet)?;
    let fields = fields_for(&args.input, args.field.as_deref(), metric, &sources.list)?;
    if args.output.is_some() && args.keep.is_none() && !args.tag {
        return Err(Usage("what is to be written? Give --keep near, --keep far or --tag".to_owned()).into());
    }
    let total = sources.total_bytes();
    let query = Query::prepare(sources.list, (&filter, &args.filter), args.options(fields))?;
    if !args.running.quiet {
        join::print_resumed(query.resumed_records(), args.running.resume);
    }
    let outputs = [&args.output, &args.removed];
    let ran = join::watched(total, args.running.quiet, |progress| query.run(progress))?;
    let summary = join::explained(ran, &args.output, &outputs)?;
    if !args.running.quiet {
        for error in &summary.counts.errors {
            eprintln!("skipped   {error}");
        }
        if summary.counts.more_errors > 0 {
            eprintln!("skipped   and {} more", show::count(summary.counts.more_errors));
        }
    }
    if !args.running.quiet && !args.running.json {
        let (near, all) = (summary.near, summary.items);
        let part = show::percent(near as f64 / all.max(1) as f64);
        eprintln!("{} of {} items are near something in the filter ({part})", show::count(near), show::count(all));
    }
    if args.running.json {
        let value = serde_json::to_value(&summary).context("cannot write the summary as JSON")?;
        print_json(&value, outputs.into_iter().any(is_stdout))?;
    }
    Ok(if summary.near > 0 { ExitCode::from(NEAR) } else { ExitCode::SUCCESS })
}
