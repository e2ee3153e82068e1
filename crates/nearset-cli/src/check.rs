//! `nearset check`: what a filter really does on the user's own items.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::Seed;
use nearset::family::Hashed;
use nearset_jobs::measure::{Keeper, Query, measure};
use nearset_jobs::scan::scan;
use nearset_records::{Arena, Batch, ReadOptions, Reader, extract, resolve};

use crate::items::{Faults, fields_for};
use crate::options::{Input, Opening, Usage, Work, print_json, without_keep};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  The filter was built from seen.jsonl; how does it do on the records of new.jsonl?
    nearset build seen.jsonl -o seen.nearset --near 0.8
    nearset check seen.nearset new.jsonl --against-items seen.jsonl --near 0.8 --far 0.7";

/// Measure a filter's real errors against an exact scan of the items in it
///
/// A sample of the queries is compared with every item, so that the nearest one is known; the filter's answers are then counted
/// beside those that it predicts. Items between --near and --far are in neither count.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    input: Input,

    /// The items that the filter was built from: a file, folder or glob
    #[arg(long, value_name = "FILE", required = true)]
    against_items: Vec<String>,

    /// Queries with an item this near should be accepted
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    near: f64,

    /// Queries with no item nearer than this should not
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    far: f64,

    /// How many queries to draw from the inputs; every one costs a comparison with every item
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    queries: u64,

    /// From which they are drawn
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    /// The field or column of the item [default: text, hash or vector, by the filter's metric]
    #[arg(long, visible_alias = "text-field", value_name = "NAME")]
    field: Option<String>,

    #[command(flatten)]
    work: Work,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
    let file = args.opening.file(&args.filter)?;
    let filter = file.filter()?;
    let Some(metric) = filter.spec().metric() else {
        bail!("{}: its items cannot be read from files; use the library", args.filter.display());
    };
    let (near, far) = (metric.distance(args.near)?, metric.distance(args.far)?);
    if far < near {
        let (near, far) = (args.near, args.far);
        return Err(Usage(format!("--near {near} is farther than --far {far}: exchange them")).into());
    }
    let sources = args.input.sources(true)?.list;
    let fields = fields_for(&args.input, args.field.as_deref(), metric, &sources)?;
    let keeper = Keeper::new(metric);
    let mut faults = Faults::new(args.work.on_error);

    // Each record draws a number from its place, and the smallest numbers are the sample.
    let mut sample = std::collections::BTreeMap::new();
    let mut reader = Reader::new(sources, ReadOptions::new(fields.clone()));
    let (mut batch, mut arena, mut room) = (Batch::new(), Arena::new(), Hashed::default());
    let mut number = 0;
    while reader.read_batch(&mut batch)? {
        let extracted = extract(&batch, &fields, &mut arena);
        for i in 0..extracted.len() {
            number += 1;
            let item = match extracted.item(i) {
                Ok(item) => item,
                Err(error) => {
                    faults.record(error.clone())?;
                    continue;
                }
            };
            let draw = args.seed.derive("check", number).to_bytes();
            let full = sample.len() as u64 == args.queries;
            if full && sample.last_key_value().is_some_and(|(largest, _)| draw >= *largest) {
                continue;
            }
            if let Some(kept) = keeper.keep(item) {
                let query = Query::new(&filter, item, kept, &mut room)
                    .with_context(|| format!("{}:{}", batch.name(), batch.line(i)))?;
                sample.insert(draw, query);
                if full {
                    sample.pop_last();
                }
            }
        }
    }
    let mut queries: Vec<Query> = sample.into_values().collect();
    if queries.is_empty() {
        bail!("the inputs hold no item to check with");
    }

    let items = resolve(&args.against_items, args.input.format)?;
    let reader = Reader::new(items.list, ReadOptions::new(fields.clone()));
    let mut nearest = vec![None; queries.len()];
    let mut compared = 0u64;
    scan(
        reader,
        &fields,
        args.work.threads(),
        |extracted, _| -> Result<(u64, Vec<Option<nearset::Distance>>)> {
            let mut best = vec![None; queries.len()];
            let mut items = 0;
            for item in (0..extracted.len()).filter_map(|i| extracted.item(i).ok()) {
                let Some(kept) = keeper.keep(item) else { continue };
                items += 1;
                for (query, best) in queries.iter().zip(&mut best) {
                    if let Some(distance) = query.distance(&filter, &kept)?
                        && best.is_none_or(|best| distance < best)
                    {
                        *best = Some(distance);
                    }
                }
            }
            Ok((items, best))
        },
        |_, result| -> Result<()> {
            let (items, best) = match result {
                Ok(found) => found?,
                Err(error) => return faults.note(error.into()),
            };
            compared += items;
            for (nearest, best) in nearest.iter_mut().zip(best) {
                if let Some(distance) = best
                    && nearest.is_none_or(|nearest| distance < nearest)
                {
                    *nearest = Some(distance);
                }
            }
            Ok(())
        },
    )?;
    for (query, nearest) in queries.iter_mut().zip(nearest) {
        query.nearest = nearest;
    }
    let measured = measure(&filter, metric, &queries, near, far);
    if args.json {
        let value = serde_json::json!({ "queries": queries.len(), "items": compared, "measured": measured });
        print_json(&value, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = std::io::stdout().lock();
    let mut print = || -> std::io::Result<()> {
        let of = |part: u64, all: u64| show::percent(part as f64 / all.max(1) as f64);
        let part = |part: f64, all: u64| show::percent(part / all.max(1) as f64);
        writeln!(
            out,
            "checked   {} queries against {} items",
            show::count(queries.len() as u64),
            show::count(compared)
        )?;
        let (all, missed) = (measured.near_queries, measured.missed);
        let predicted = part(measured.missed_predicted, all);
        writeln!(
            out,
            "missed    {missed} of {all} at {} or nearer: {}, predicted {predicted}",
            args.near,
            of(missed, all)
        )?;
        let (all, wrong) = (measured.far_queries, measured.wrong);
        let predicted = part(measured.wrong_predicted, all);
        writeln!(
            out,
            "wrong     {wrong} of {all} at {} or farther: {}, predicted {predicted}",
            args.far,
            of(wrong, all)
        )?;
        writeln!(out, "          {:>19}  {:>8} {:>9} {:>9}", metric.unit(), "queries", "accepted", "predicted")?;
        for bin in &measured.bins {
            let (accepted, predicted) = (of(bin.accepted, bin.queries), part(bin.predicted, bin.queries));
            writeln!(
                out,
                "          {:>8.3} - {:>8.3}  {:>8} {accepted:>9} {predicted:>9}",
                bin.from, bin.to, bin.queries
            )?;
        }
        Ok(())
    };
    print().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
