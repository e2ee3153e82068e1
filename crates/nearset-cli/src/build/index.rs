//! `nearset build --index`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::index::IndexError;
use nearset::plan::PlanError;
use nearset::{HammingSpec, Index, Metric, Shape};
use nearset_jobs::capacity::{Capacity, Known};
use nearset_jobs::scan::scan;
use nearset_jobs::{check_save, save_index};
use nearset_records::{Arena, Fields, OutputOptions, ReadOptions, Reader, RecordFault, Source, extract};

use super::Args;
use crate::items::Faults;
use crate::options::{Usage, print_json};
use crate::show;

/// Returns an empty index of the kind that suits the metric: bit strings are compared so fast that none needs to be missed.
fn empty(args: &Args, metric: Metric, shape: Shape, capacity: impl FnOnce() -> Result<u64>) -> Result<Index<'static>> {
    let Metric::Hamming { bits } = metric else {
        if args.wanted.max_fp.is_some() {
            return Err(
                Usage("--max-fp says nothing to an index, which verifies what it finds: leave it out".into()).into()
            );
        }
        let sampled = args.wanted.sampled(args.metric, shape, args.field.as_deref(), args.input.format)?;
        let plan = match args.wanted.request(metric, args.far, capacity()?, sampled.as_ref()).plan_index() {
            Err(PlanError::Request(error)) => return Err(args.wanted.explain(args.metric, error).into()),
            plan => plan?,
        };
        if !args.quiet {
            eprint!("{plan}");
        }
        return Ok(Index::new(plan.spec)?);
    };
    let given = [("--far", args.far.is_some()), ("--capacity", args.capacity.is_some())];
    let given = given.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = given.or(args.wanted.about_errors()) {
        return Err(Usage(format!("{option} says nothing to an index, whose answers are exact: leave it out")).into());
    }
    let near = metric.distance(args.wanted.near).map_err(|error| Usage(format!("--near: {error}")))?;
    let spec = HammingSpec::new(bits, near.value() as u32, args.wanted.seed);
    if !args.quiet {
        eprintln!(
            "{:<16}{metric}: no item is missed at any distance, and searches up to {} bits are fast",
            "index", spec.radius
        );
    }
    Ok(Index::new(spec)?)
}

pub(super) fn run(
    args: &Args,
    metric: Metric,
    shape: Shape,
    sources: Vec<Source>,
    fields: &Fields,
) -> Result<ExitCode> {
    let capacity = || match args.capacity(&sources, &ReadOptions::new(fields.clone()))? {
        Capacity { known: Known::Guessed, .. } => {
            Err(Usage("a pipe does not tell how many items will come: pass --capacity".to_owned()).into())
        }
        capacity => Ok(capacity.records),
    };
    let mut index = empty(args, metric, shape, capacity)?;
    let mut output = OutputOptions::protecting(&sources);
    output.force = args.force;
    // Found out now rather than after the work.
    check_save(&args.output, &output)?;
    let mut faults = Faults::new(args.work.on_error);
    let mut arena = Arena::new();
    scan(
        Reader::new(sources, ReadOptions::new(fields.clone())),
        fields,
        args.work.threads(),
        |_, _| (),
        |batch, result| -> Result<()> {
            if let Err(error) = result {
                return faults.note(error.into());
            }
            let extracted = extract(&batch, fields, &mut arena);
            for i in 0..extracted.len() {
                let item = match extracted.item(i) {
                    Ok(item) => item,
                    Err(error) => {
                        faults.record(error.clone())?;
                        continue;
                    }
                };
                match index.push(item, Some(&extracted.id(i))) {
                    Ok(_) => {}
                    Err(IndexError::Item(cause)) => {
                        let fault = RecordFault::Unhashable { field: fields.item.clone(), cause };
                        faults.record(extracted.error(i, fault))?;
                    }
                    Err(other) => return Err(other.into()),
                }
            }
            Ok(())
        },
    )?;
    faults.expect_readable(index.len())?;
    index.compact();
    save_index(&index, &args.output, &output)?;
    if !args.quiet {
        let (items, bytes) = (show::count(index.len()), show::bytes(index.bytes()));
        eprintln!("built     {}: {items} items, {bytes}", args.output.display());
    }
    if args.json {
        let summary = serde_json::json!({ "items": index.len(), "bytes": index.bytes(), "skipped": faults.count });
        print_json(&summary, false).context("cannot print the summary")?;
    }
    Ok(ExitCode::SUCCESS)
}
