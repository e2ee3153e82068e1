//! `nearset info`: what a filter or index is, how full, and what it predicts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::spec::{Construction, Terms, WhenFull};
use nearset::{Filter, Index, IndexSpec, Kind};
use nearset_jobs::FilterFile;
use nearset_jobs::decontaminate::{Benchmark, is_benchmark};
use nearset_jobs::library::{Library, is_library};
use nearset_view::curves::{ascending, filter_chart, filter_curve, half};
use nearset_view::terminal;
use nearset_view::words::number;

use crate::options::{Opening, Plot, print_json};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  What it is, how full it is, and what it will say of a query by its distance from the nearest item:
    nearset info seen.nearset

  The same as a picture:
    nearset info seen.nearset --plot curve.svg

  For scripts:
    nearset info seen.nearset --json | jq .curve";

/// Show what a filter, an index, a library or a benchmark set is and holds
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filter, index, library or benchmark set
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    picture: Plot,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// Steps of the curve that are printed, and of the one that is drawn.
const PRINTED: u32 = 20;
const DRAWN: u32 = 200;

/// Adds fields to a JSON object.
fn extend(value: &mut serde_json::Value, fields: serde_json::Value) {
    if let (Some(object), serde_json::Value::Object(fields)) = (value.as_object_mut(), fields) {
        object.extend(fields);
    }
}

/// What a filter or index is, by name.
pub type Facts = Vec<(&'static str, String)>;

/// Returns what an index is, by name.
pub fn index_facts(index: &Index<'_>) -> Facts {
    let mut facts: Facts = vec![("kind", index.kind().to_owned())];
    if let Some(metric) = index.metric() {
        facts.push(("metric", metric.to_string()));
    }
    match index.spec() {
        IndexSpec::Hamming(spec) => {
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("radius", format!("{} bits are searched fast; no distance is missed", spec.radius)));
            let blocks = index.blocks().len();
            let blocks = if blocks == 0 { "none: every item is compared".to_owned() } else { blocks.to_string() };
            facts.push(("blocks", blocks));
            facts.push(("named", show::count(index.named() as u64)));
        }
        IndexSpec::Lsh(spec) => {
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("shape", format!("{} bands of {} rows", spec.layout.bands, spec.layout.rows)));
            facts.push(("probes", spec.probes.to_string()));
        }
        _ => {}
    }
    facts
}

/// Returns what an index is; it misses nothing or says how much, and has no curve to draw.
fn of_index(args: &Args, file: &FilterFile) -> Result<ExitCode> {
    let index = file.index()?;
    if args.picture.plot.is_some() {
        bail!("{}: an index answers with distances, and has no curve of acceptance to draw", args.filter.display());
    }
    let mut facts = index_facts(&index);
    if args.json {
        let mut value = serde_json::json!({
            "kind": index.kind(), "metric": index.metric().map(|metric| metric.to_string()),
            "items": index.len(), "bytes": index.bytes(), "file_bytes": file.bytes(),
        });
        let own = match index.spec() {
            IndexSpec::Hamming(spec) => serde_json::json!({
                "seed": spec.seed.to_string(), "radius": spec.radius, "blocks": index.blocks().len(), "named": index.named(),
            }),
            IndexSpec::Lsh(spec) => serde_json::json!({
                "seed": spec.seed.to_string(), "bands": spec.layout.bands, "rows": spec.layout.rows, "probes": spec.probes,
            }),
            _ => serde_json::Value::Null,
        };
        extend(&mut value, own);
        print_json(&value, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    facts.push(("items", show::count(index.len())));
    facts.push(("memory", show::bytes(index.bytes())));
    facts.push(("file", show::bytes(file.bytes() as u64)));
    let mut out = std::io::stdout().lock();
    let mut print = || facts.iter().try_for_each(|(name, fact)| writeln!(out, "{name:<10}{fact}"));
    print().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what a filter is and how full, by name.
pub fn filter_facts(filter: &Filter<'_>, file: &FilterFile) -> Facts {
    let metric = filter.spec().metric();
    let mut facts: Facts = vec![("kind", filter.kind().to_owned())];
    if let Some(metric) = metric {
        facts.push(("metric", metric.to_string()));
    }
    let generations = filter.generations().len();
    if generations > 1 {
        facts.push(("filters", format!("{generations} generations; of the newest:")));
    }
    let (spec, newest) = (filter.spec(), filter.generations().next_back());
    let (fill, chance_hit) = newest.and_then(|newest| newest.fill.zip(newest.chance_hit)).unwrap_or_default();
    if let Some(spec) = spec.near() {
        facts.push(("seed", spec.seed.to_string()));
        facts.push(("shape", format!("{} bands of {} rows", spec.rule.bands(), spec.rows)));
        if let Some(threshold) = spec.rule.threshold_at(chance_hit) {
            facts.push(("threshold", format!("{threshold} bands must hit at the present load")));
        }
        facts.push(("fill", show::percent(fill)));
    }
    if let Some(spec) = spec.exact() {
        facts.push(("seed", spec.seed.to_string()));
        let missed = match spec.construction {
            Construction::SampledScan { .. } => "near ones may be missed",
            _ => "of which none is missed",
        };
        facts.push(("radius", format!("{} bits, {missed}", spec.radius)));
        facts.push(("structure", format!("{:?}", spec.construction)));
    }
    facts.push(("items", show::count(filter.len())));
    let unrelated = filter.unrelated_acceptance();
    let made_for = match filter.capacity() {
        Some(capacity) => format!(" of the {} that it is made for", show::count(capacity)),
        None => "; nothing says how many it is made for".to_owned(),
    };
    facts.push(("load", format!("about {} distinct items{made_for}", show::count(filter.load()))));
    facts.push(("unrelated", format!("{} of unrelated items are called near", show::percent(unrelated))));
    if let Err(cause) = filter.expect_not_overfull(0) {
        facts.push(("warning", cause.to_string()));
    }
    if let (Some(terms), Some(metric), Some(errors)) = (spec.terms(), metric, filter.predicted_errors()) {
        facts.push(("reserved", reserved_for(terms)));
        let at = |distance| number(metric.own_unit(distance));
        let promised = |missed, wrong| {
            let (missed, wrong) = (show::percent(missed), show::percent(wrong));
            format!("{missed} missed at {}, {wrong} accepted at {}", at(terms.near), at(terms.far))
        };
        facts.push(("promised", promised(terms.max_false_negative, terms.max_false_positive)));
        facts.push(("expected", promised(errors.0, errors.1)));
    }
    facts.push(("memory", show::bytes(filter.bytes())));
    facts.push(("file", show::bytes(file.bytes() as u64)));
    facts
}

/// Returns what a filter was reserved for, and what happens beyond.
fn reserved_for(terms: &Terms) -> String {
    let capacity = show::count(terms.capacity);
    match terms.when_full {
        WhenFull::Grow => format!("{capacity} items; it grows beyond"),
        WhenFull::Refuse => format!("{capacity} items; it refuses more"),
        WhenFull::Forget { generations } => {
            let known = show::count((u64::from(generations) - 1).saturating_mul(terms.capacity));
            format!("the last {known} items at least, in {generations} generations of {capacity}")
        }
        _ => capacity,
    }
}

/// What a library is. All of it is read and compared with its checksums.
fn of_benchmark(args: &Args) -> Result<ExitCode> {
    let benchmark = Benchmark::open(&args.filter)?;
    if args.picture.plot.is_some() {
        bail!("{}: a benchmark set is looked for, and has no curve of acceptance to draw", args.filter.display());
    }
    let (items, background) = (benchmark.items().len() as u64, benchmark.background());
    if args.json {
        let (files, digest) = (benchmark.files(), benchmark.digest());
        let value = serde_json::json!({
            "kind": "benchmark set", "items": items, "files": files, "background": background, "digest": digest,
        });
        print_json(&value, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let facts = [
        ("kind", "benchmark set for decontaminate --against; whole".to_owned()),
        ("items", show::count(items)),
        ("files", benchmark.files().join(", ")),
        ("weighed", format!("with {} background documents", show::count(background))),
    ];
    let mut out = std::io::stdout().lock();
    let mut print = || facts.iter().try_for_each(|(name, fact)| writeln!(out, "{name:<10}{fact}"));
    print().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

fn of_library(args: &Args) -> Result<ExitCode> {
    let library = Library::open(&args.filter)?;
    if args.picture.plot.is_some() {
        bail!("{}: a library is compared with, and has no curve of acceptance to draw", args.filter.display());
    }
    library.check()?;
    if args.json {
        let value = serde_json::json!({
            "kind": "library", "records": library.records(), "near": library.near().parse::<f64>().ok(), "shingling": library.shingling(),
            "seed": library.seed(), "segments": library.segments(), "common_shingles": library.common_shingles(),
            "file_bytes": library.bytes(),
        });
        print_json(&value, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let facts = [
        ("kind", "library of records to compare with; whole".to_owned()),
        ("records", show::count(library.records())),
        ("near", format!("{} by Jaccard similarity of {} shingles", library.near(), library.shingling())),
        ("seed", library.seed().to_owned()),
        ("common", format!("{} shingles that propose nothing", show::count(library.common_shingles() as u64))),
        ("segments", library.segments().to_string()),
        ("files", show::bytes(library.bytes())),
    ];
    let mut out = std::io::stdout().lock();
    let mut print = || facts.iter().try_for_each(|(name, fact)| writeln!(out, "{name:<10}{fact}"));
    print().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: Args) -> Result<ExitCode> {
    if is_library(&args.filter) {
        return of_library(&args);
    }
    if is_benchmark(&args.filter) {
        return of_benchmark(&args);
    }
    let file = args.opening.file(&args.filter)?;
    if matches!(file.kind()?, Kind::Hamming | Kind::Lsh) {
        return of_index(&args, &file);
    }
    let filter = file.filter()?;
    let metric = filter.spec().metric();
    let points = metric.map(|metric| filter_curve(&filter, metric, PRINTED)).unwrap_or_default();
    if args.picture.plot.is_some() {
        let Some(metric) = metric else {
            bail!("{}: its items have no distance to draw a curve over", args.filter.display());
        };
        let about = args.filter.to_string_lossy();
        args.picture.write(&filter_chart(&filter, metric).to_svg(), Some(&about))?;
    }
    let facts = filter_facts(&filter, &file);
    let generations = filter.generations().len();
    let (spec, newest) = (filter.spec(), filter.generations().next_back());
    let (fill, chance_hit) = newest.and_then(|newest| newest.fill.zip(newest.chance_hit)).unwrap_or_default();
    let unrelated = filter.unrelated_acceptance();
    if args.json {
        let mut value = serde_json::json!({
            "kind": filter.kind(),
            "metric": metric.map(|metric| metric.to_string()),
            "items": filter.len(),
            "capacity": filter.capacity(),
            "load": filter.load(),
            "unrelated": unrelated,
            "overfull": filter.expect_not_overfull(0).is_err(),
            "generations": generations,
            "bytes": filter.bytes(),
            "file_bytes": file.bytes(),
            "curve": points.iter().map(|(at, accepted)| serde_json::json!({"at": at, "accepted": accepted})).collect::<Vec<_>>(),
        });
        if let Some(near) = spec.near() {
            let threshold = near.rule.threshold_at(chance_hit);
            extend(
                &mut value,
                serde_json::json!({
                    "seed": near.seed.to_string(), "rows": near.rows, "bands": near.rule.bands(), "threshold": threshold, "fill": fill,
                }),
            );
        }
        if let Some(exact) = spec.exact() {
            let structure = format!("{:?}", exact.construction);
            extend(
                &mut value,
                serde_json::json!({ "seed": exact.seed.to_string(), "radius": exact.radius, "structure": structure }),
            );
        }
        if let (Some(terms), Some(metric), Some(errors)) = (spec.terms(), metric, filter.predicted_errors()) {
            let (when_full, generations) = match terms.when_full {
                WhenFull::Grow => ("grow", None),
                WhenFull::Refuse => ("refuse", None),
                WhenFull::Forget { generations } => ("forget", Some(generations)),
                _ => ("unknown", None),
            };
            extend(
                &mut value,
                serde_json::json!({
                    "near": metric.own_unit(terms.near), "far": metric.own_unit(terms.far),
                    "reserved": { "capacity": terms.capacity, "when_full": when_full, "generations": generations },
                    "promised": { "missed": terms.max_false_negative, "accepted": terms.max_false_positive },
                    "expected": { "missed": errors.0, "accepted": errors.1 },
                }),
            );
        }
        print_json(&value, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = std::io::stdout().lock();
    let mut print = || -> std::io::Result<()> {
        for (name, fact) in &facts {
            writeln!(out, "{name:<10}{fact}")?;
        }
        if let Some(metric) = metric {
            writeln!(out, "accepted  by {} of the nearest item, as the filter is now:", metric.unit())?;
            let drawn = ascending(filter_curve(&filter, metric, DRAWN));
            let ends = [drawn.first(), drawn.last()].into_iter().flatten().map(|point| point.0);
            let marks = half(&drawn).map(|at| (at, format!("half at {}", number(at)))).into_iter();
            let marks: Vec<(f64, String)> = marks.chain(ends.map(|end| (end, number(end)))).collect();
            writeln!(out, "{}", terminal::draw(&drawn, &marks, show::width()))?;
            for (at, accepted) in &points {
                writeln!(out, "          {at:>10.3}  {:>8}", show::percent(*accepted))?;
            }
        }
        Ok(())
    };
    print().context("cannot write to standard output")?;
    if let Some(path) = &args.picture.plot {
        eprintln!("drawn     {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
