//! `nearset query`: items screened against a filter.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nearset::filter::Found;
use nearset_jobs::scan::scan;
use nearset_records::output::Value;
use nearset_records::{
    Added, AddedKind, AnyWriter, OutputOptions, ReadOptions, Reader, RecordError, RecordFault, Source,
};

use crate::items::{Faults, fields_for};
use crate::options::{Input, Opening, Trust, Usage, Work, is_stdout, print_json};
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

    /// Where records go; - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Which records are written
    #[arg(long, value_enum, conflicts_with = "tag", requires = "output")]
    keep: Option<Keep>,

    /// Write all records, with the fields near and hits added to each. Those of an earlier run are replaced where they stand; other fields
    /// of these names are refused
    #[arg(long, requires = "output")]
    tag: bool,

    /// The field or column of the item [default: text, hash or vector, by the filter's metric]
    #[arg(long, value_name = "NAME")]
    field: Option<String>,

    #[command(flatten)]
    trust: Trust,

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

pub fn run(args: Args) -> Result<ExitCode> {
    let file = args.opening.file(&args.filter)?;
    let filter = args.trust.filter(&file)?;
    let Some(metric) = filter.metric() else {
        bail!("{}: its items cannot be read from files; use the library", args.filter.display());
    };
    let list: Arc<[Source]> = args.input.sources(args.quiet)?.list.into();
    let fields = fields_for(&args.input, args.field.as_deref(), metric)?;
    let keep = match (args.keep, args.tag, &args.output) {
        (None, false, Some(_)) => {
            return Err(Usage("what is to be written? Give --keep near, --keep far or --tag".to_owned()).into());
        }
        (keep, ..) => keep,
    };
    let mut out = match &args.output {
        Some(path) => {
            let mut options = OutputOptions::protecting(&list);
            options.force = args.force;
            options.inputs.push(args.filter.clone());
            let tags = || vec![Added::new("near", AddedKind::Bool), Added::new("hits", AddedKind::Integer)];
            let added = if args.tag { tags() } else { Vec::new() };
            Some(AnyWriter::open(path, &list, added, None, &options)?)
        }
        None => None,
    };
    let reader = Reader::new(Arc::clone(&list), ReadOptions::new(fields.clone()));
    let mut faults = Faults::new(args.work.on_error);
    let (mut near, mut all) = (0u64, 0u64);
    scan(
        reader,
        &fields,
        args.work.threads(),
        |extracted, room| -> Vec<Result<Found, RecordError>> {
            let find = |i: usize| {
                let item = extracted.item(i).map_err(Clone::clone)?;
                filter
                    .find(item, room)
                    .map_err(|cause| extracted.error(i, RecordFault::Unhashable { field: fields.item.clone(), cause }))
            };
            (0..extracted.len()).map(find).collect()
        },
        |batch, result| -> Result<()> {
            let answers = match result {
                Ok(answers) => answers,
                Err(error) => return faults.note(error.into()),
            };
            if let Some(out) = &mut out {
                out.begin(&batch)?;
            }
            for (i, answer) in answers.into_iter().enumerate() {
                let found = match answer {
                    Ok(found) => found,
                    Err(error) => {
                        faults.record(error)?;
                        if let Some(out) = &mut out {
                            out.leave_out(&batch)?;
                        }
                        continue;
                    }
                };
                all += 1;
                near += u64::from(found.near);
                let Some(out) = &mut out else { continue };
                let hits = found.hits.map_or(Value::Null, |hits| Value::Integer(i64::from(hits)));
                match keep {
                    None => out.annotate(&batch, i, &[Value::Bool(found.near), hits])?,
                    Some(keep) if (keep == Keep::Near) == found.near => out.copy(&batch, i)?,
                    Some(_) => out.leave_out(&batch)?,
                }
            }
            Ok(())
        },
    )?;
    if let Some(out) = out {
        out.finish()?;
    }
    if !args.quiet && !args.json {
        let part = show::percent(near as f64 / all.max(1) as f64);
        eprintln!("{} of {} items are near something in the filter ({part})", show::count(near), show::count(all));
    }
    if args.json {
        let summary = serde_json::json!({ "items": all, "near": near, "skipped": faults.count });
        print_json(&summary, is_stdout(&args.output)).context("cannot print the summary")?;
    }
    Ok(if near > 0 { ExitCode::from(NEAR) } else { ExitCode::SUCCESS })
}
