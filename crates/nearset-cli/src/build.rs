//! `nearset build`: a filter from items of any metric.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::family::Key;
use nearset::plan::{FarModel, Goal, Metric, MetricName, PlannedSpec, Shape, TextDedup, plan};
use nearset::{Item, Seed, Shingling};
use nearset_pipeline::capacity::{self, Known};
use nearset_pipeline::scan::scan;
use nearset_pipeline::{
    AnyFilter, Arena, OutputOptions, ReadOptions, Reader, RecordError, RecordFault, extract, save_filter,
};

use crate::items::{Faults, fields_for, metric_of_inputs};
use crate::options::{Input, OnError, print_json};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Texts, for `nearset dedup --against` and `nearset query`:
    nearset build benchmark.jsonl -o benchmark.nearset --metric jaccard --near 0.8

  Perceptual hashes as hexadecimal digits, a line each, of which none within 4 bits may be missed:
    nearset build hashes.txt -o hashes.nearset --metric hamming --near 4 --far 64 --max-fn 0

  Embeddings; near is a cosine:
    nearset build vectors.npy -o vectors.nearset --metric cosine --near 0.95 --far 0.5";

/// Build a filter from items: texts, bit strings or vectors
///
/// The filter is planned from what is near, what is far and which errors may be made; the plan is printed before it starts.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Where the filter goes
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    /// What near means: jaccard, weighted-jaccard, hamming, cosine, l1 or l2
    #[arg(long, value_name = "METRIC", default_value = "jaccard")]
    metric: MetricName,

    /// Items this near are to be found: a similarity or cosine, differing bits, or a distance
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    near: f64,

    /// Items this far are not; for jaccard it may be left out, and the filter is then that of `nearset dedup`
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    far: Option<f64>,

    /// The most of what lies at --near that may be missed; 0 for none at all, with hamming
    #[arg(long, value_name = "RATE")]
    max_fn: Option<f64>,

    /// The most of what lies at --far that may be accepted
    #[arg(long, value_name = "RATE")]
    max_fp: Option<f64>,

    /// How far unrelated items are, where that is known: it makes filters of vectors smaller
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    background: Option<f64>,

    /// How texts are cut into sets: words:N, chars:N or bytes:N
    #[arg(long, value_name = "KIND:N", default_value_t = Shingling::default())]
    shingle: Shingling,

    /// The field or column of the item [default: text, hash or vector, by metric]
    #[arg(long, value_name = "NAME")]
    field: Option<String>,

    /// Bits or components of an item, where a pipe does not tell beforehand
    #[arg(long, value_name = "N")]
    length: Option<u32>,

    /// How many distinct items to make room for; otherwise counted, or estimated from a sample
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    capacity: Option<u64>,

    /// From which the hash functions are drawn
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    /// What to do with a record that cannot be read
    #[arg(long, value_enum, default_value = "fail")]
    on_error: OnError,

    /// Threads that hash; by default one a core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

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
    fn planned(&self, metric: Metric, capacity: u64) -> Result<PlannedSpec> {
        let Some(far) = self.far else {
            let Metric::Jaccard { shingling } = metric else {
                bail!("--far is needed for {metric}: from where on are items not near?");
            };
            let usual = TextDedup::new(self.near);
            let wanted = TextDedup {
                max_false_negative: self.max_fn.unwrap_or(usual.max_false_negative),
                max_false_positive: self.max_fp.unwrap_or(usual.max_false_positive),
                shingling,
                seed: self.seed,
                ..usual
            };
            return Ok(PlannedSpec::Near(wanted.spec(capacity)?));
        };
        let mut goal = Goal::new(metric, metric.distance(self.near)?, metric.distance(far)?, capacity);
        goal.seed = self.seed;
        goal.max_false_negative = self.max_fn.unwrap_or(goal.max_false_negative);
        goal.max_false_positive = self.max_fp.unwrap_or(goal.max_false_positive);
        if let Some(background) = self.background {
            goal.far_model = FarModel::Background(metric.distance(background)?);
        }
        let plan = plan(&goal)?;
        if !self.quiet {
            eprint!("{plan}");
        }
        Ok(plan.spec)
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let sources = args.input.sources(args.quiet)?;
    let metric = match args.length {
        Some(length) => args.metric.with(Shape { length: Some(length), shingling: Some(args.shingle) })?,
        None => metric_of_inputs(args.metric, args.shingle, &args.input, args.field.as_deref(), &sources)?,
    };
    let fields = fields_for(&args.input, args.field.as_deref(), metric)?;
    let read = ReadOptions::new(fields.clone());
    let capacity = match args.capacity {
        Some(records) => records,
        None => {
            let estimate = capacity::estimate(&sources.list, &read);
            if estimate.known == Known::Guessed {
                bail!("a pipe does not tell how many items will come: pass --capacity");
            }
            estimate.records
        }
    };
    let planned = args.planned(metric, capacity)?;
    let mut filter = AnyFilter::from_planned(&planned)?;
    let mut output = OutputOptions::protecting(&sources.list);
    output.force = args.force;
    // Found out now rather than after the work.
    drop(nearset_pipeline::OutputFile::create(&args.output, &output)?);
    let mut faults = Faults::new(args.on_error);
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let reader = Reader::new(sources.list, read);
    let hasher = match &filter {
        AnyFilter::Near(filter) if filter.spec().probing.is_none() => Some(filter.hasher()),
        _ => None,
    };
    let mut arena = Arena::new();
    scan(
        reader,
        &fields,
        threads,
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
            match &mut filter {
                AnyFilter::Near(filter) if hasher.is_some() => {
                    filter.insert_keys(&keys);
                }
                filter => {
                    let extracted = extract(&batch, &fields, &mut arena);
                    for i in 0..extracted.len() {
                        let inserted = match extracted.item(i) {
                            Ok(item) => insert(filter, item).map_err(|cause| {
                                extracted.error(i, RecordFault::Unhashable { field: fields.item.clone(), cause })
                            }),
                            Err(error) => Err(error.clone()),
                        };
                        if let Err(error) = inserted {
                            faults.record(error)?;
                        }
                    }
                }
            }
            Ok(())
        },
    )?;
    save_filter(&filter, &args.output, &output)?;
    let over = filter.len() > capacity;
    if !args.quiet {
        eprintln!(
            "built     {}: {} items, {}",
            args.output.display(),
            show::count(filter.len()),
            show::bytes(filter.bytes())
        );
        if over {
            eprintln!("warning: made for {} items: build it again with a larger --capacity", show::count(capacity));
        }
    }
    if args.json {
        let summary = serde_json::json!({
            "items": filter.len(), "capacity": capacity, "bytes": filter.bytes(), "skipped": faults.count,
        });
        print_json(&summary, false).context("cannot print the summary")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn insert(filter: &mut AnyFilter<'_>, item: Item<'_>) -> Result<(), nearset::ItemError> {
    filter.insert(item).map(drop)
}
