//! `nearset build`: a filter or an index from items of any metric.

mod index;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::InsertError;
use nearset::family::{Hashed, Key};
use nearset::plan::PlanError;
use nearset::{Filter, FilterSpec, Metric, MetricName, Shape};
use nearset_jobs::capacity::{self, Capacity, Known};
use nearset_jobs::scan::scan;
use nearset_jobs::{check_save, save_filter};
use nearset_records::{Arena, OutputOptions, ReadOptions, Reader, RecordError, RecordFault, Source, extract};

use crate::cures::Advised;
use crate::goal::{GoalOptions, metric_help, parse_count, parse_metric, readable};
use crate::items::{Faults, fields_for, metric_of_inputs};
use crate::options::{Input, Opening, Work, print_json, without_keep};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Texts, for `nearset dedup --against` and `nearset query`:
    nearset build benchmark.jsonl -o benchmark.nearset --metric jaccard --near 0.8

  Perceptual hashes as hexadecimal digits, one per line, of which none within 4 bits may be missed:
    nearset build hashes.txt -o hashes.nearset --metric hamming --near 4 --far 64 --max-fn 0

  The same as an index for `nearset search`, which says which are near and how near; up to 31 bits it is fast:
    nearset build hashes.tsv -o hashes.nearset --index --metric hamming --near 31 --id-field name --field pdq

  Texts as an index: which stored ones share half of their words in fives with a new one, and how near they are:
    nearset build articles.jsonl -o articles.nearset --index --near 0.5

  Embeddings; near is a cosine:
    nearset build vectors.npy -o vectors.nearset --metric cosine --near 0.95 --far 0.5";

/// Build a filter or an index from items: texts, bit strings or vectors
///
/// The filter is planned from what is near, what is far and which errors may be made; the plan is printed before it starts.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Where the filter goes
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    /// Build an index, which keeps the items and their ids, for `nearset search`
    #[arg(long)]
    index: bool,

    #[arg(long, value_name = "METRIC", default_value = "jaccard", value_parser = parse_metric, help = metric_help(readable()))]
    metric: MetricName,

    #[command(flatten)]
    wanted: GoalOptions,

    /// How far a query must be from everything stored to be turned away; for jaccard it may be left out: it lies 0.2 below --near
    /// then, and the filter is that of `nearset dedup`. An index is made fast by leaving aside what is farther
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    far: Option<f64>,

    /// The field or column of the item [default: text, hash or vector, by metric]
    #[arg(long, visible_alias = "text-field", value_name = "NAME")]
    field: Option<String>,

    /// How many distinct items to make room for: 1000000, 1_000_000, 1e6 or 1M; otherwise counted, or estimated from a sample. A
    /// filter grows beyond it, at some cost in memory
    #[arg(long, value_name = "N", value_parser = parse_count)]
    capacity: Option<u64>,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    work: Work,

    /// Replace an existing filter
    #[arg(long)]
    force: bool,

    /// Print a summary as a line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

impl Args {
    /// Returns how many items to make room for.
    fn capacity(&self, sources: &[Source], read: &ReadOptions) -> Result<Capacity> {
        Ok(match self.capacity {
            Some(records) => Capacity { records, known: Known::Given, mean_bytes: None },
            None => capacity::estimate(sources, read)?,
        })
    }

    /// Returns the filter, whose plan is printed.
    fn planned(&self, metric: Metric, shape: Shape, capacity: u64) -> Result<FilterSpec> {
        let sampled = self.wanted.sampled(self.metric, shape, self.field.as_deref(), self.input.format)?;
        let plan = match self.wanted.request(metric, self.far, capacity, sampled.as_ref()).plan_filter() {
            Err(PlanError::Request(error)) => return Err(self.wanted.explain(self.metric, error).into()),
            Err(error @ (PlanError::LargerThanItems { .. } | PlanError::Impossible { .. })) => {
                let index = self.wanted.for_index(self.metric, self.far, self.field.as_deref());
                let (inputs, output) = (self.input.inputs.join(" "), self.output.display());
                let hint = format!(
                    "an index keeps the items and says which are near: nearset build {inputs} -o {output} {index}"
                );
                return Err(Advised { error, hint }.into());
            }
            plan => plan?,
        };
        if !self.quiet {
            eprint!("{plan}");
        }
        Ok(plan.spec)
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
    let sources = args.input.sources(args.quiet)?;
    let shape = args.wanted.shape(args.metric)?;
    let metric = metric_of_inputs(args.metric, shape, &args.input, args.field.as_deref(), &sources)?;
    let fields = fields_for(&args.input, args.field.as_deref(), metric, &sources.list)?;
    let read = ReadOptions::new(fields.clone());
    if args.index {
        return index::run(&args, metric, shape, sources.list, &fields);
    }
    let capacity = args.capacity(&sources.list, &read)?.records;
    let spec = args.planned(metric, shape, capacity)?;
    let mut filter = Filter::new_within(&spec, args.opening.work())?;
    let mut output = OutputOptions::protecting(&sources.list);
    output.force = args.force;
    // Found out now rather than after the work.
    check_save(&args.output, &output)?;
    let mut faults = Faults::new(args.work.on_error);
    let reader = Reader::new(sources.list, read);
    let takes_keys = spec.near().is_some_and(|spec| spec.probing.is_none());
    let hasher = filter.hasher().filter(|_| takes_keys);
    let (mut arena, mut room) = (Arena::new(), Hashed::default());
    scan(
        reader,
        &fields,
        args.work.threads(),
        |extracted, room| -> (Vec<Option<Key>>, Vec<RecordError>) {
            let (mut keys, mut errors) = (Vec::new(), Vec::new());
            let Some(hasher) = &hasher else { return (keys, errors) };
            for i in 0..extracted.len() {
                match extracted.item(i) {
                    Ok(item) => match hasher.hash(item, room) {
                        Ok(()) => keys.extend_from_slice(&room.keys),
                        Err(cause) => {
                            let fault = RecordFault::Unhashable { field: fields.item.clone(), cause };
                            errors.push(extracted.error(i, fault));
                        }
                    },
                    Err(error) => errors.push(error.clone()),
                }
            }
            (keys, errors)
        },
        |batch, result| -> Result<()> {
            let (keys, errors) = match result {
                Ok(prepared) => prepared,
                Err(error) => return faults.note(error.into()),
            };
            for error in errors {
                faults.record(error)?;
            }
            if hasher.is_some() {
                filter.insert_keys(&keys)?;
                return Ok(());
            }
            let extracted = extract(&batch, &fields, &mut arena);
            for i in 0..extracted.len() {
                let error = match extracted.item(i) {
                    Ok(item) => match filter.insert(item, &mut room) {
                        Ok(_) => continue,
                        Err(InsertError::Item(cause)) => {
                            extracted.error(i, RecordFault::Unhashable { field: fields.item.clone(), cause })
                        }
                        Err(cause) => return Err(cause.into()),
                    },
                    Err(error) => error.clone(),
                };
                faults.record(error)?;
            }
            Ok(())
        },
    )?;
    faults.expect_readable(filter.len())?;
    save_filter(&filter, &args.output, &output)?;
    if !args.quiet {
        eprintln!(
            "built     {}: {} items, {}",
            args.output.display(),
            show::count(filter.len()),
            show::bytes(filter.bytes())
        );
        if filter.generations().len() > 1 {
            let (capacity, generations) = (show::count(capacity), filter.generations().len());
            eprintln!(
                "grew      to {generations} generations: {capacity} items was too few; a larger --capacity takes less memory"
            );
        }
    }
    if args.json {
        let summary = serde_json::json!({
            "items": filter.len(), "capacity": filter.capacity(), "generations": filter.generations().len(), "bytes": filter.bytes(), "skipped": faults.count,
        });
        print_json(&summary, false).context("cannot print the summary")?;
    }
    Ok(ExitCode::SUCCESS)
}
