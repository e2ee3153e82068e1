//! `nearset info`: what a filter or index is, how full, and what it predicts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::Distance;
use nearset::plan::Metric;
use nearset_pipeline::plot::{Chart, Line, Look, Mark};
use nearset_pipeline::{AnyFilter, AnyIndex, FilterFile};

use crate::options::{print_json, write_picture};
use crate::plan::words;
use crate::{show, terminal};

const EXAMPLES: &str = "\
Examples:
  What it is, how full it is, and what it will say of a query by its distance from the nearest item:
    nearset info seen.nearset

  The same as a picture:
    nearset info seen.nearset --plot curve.svg

  For scripts:
    nearset info seen.nearset --json | jq .curve";

/// Show a filter's spec, load and predicted errors, or an index's
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filter or index
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Draw the curve of acceptance as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// A point of the curve: the metric's own number, and the probability of being accepted.
type Point = (f64, f64);

/// Steps of the curve that are printed, and of the one that is drawn.
const PRINTED: u32 = 20;
const DRAWN: u32 = 200;

/// The distances at which the curve is shown: steps of the metric's range, or around a bucket's width where there is no range.
fn distances(filter: &AnyFilter<'_>, metric: Metric, steps: u32) -> impl Iterator<Item = Distance> + use<> {
    let reach = metric.farthest().map(Distance::value).or_else(|| match filter {
        AnyFilter::Near(filter) => match filter.spec().family {
            nearset::Family::PStable(family) => Some(2.0 * family.width),
            _ => None,
        },
        _ => None,
    });
    let reach = reach.unwrap_or(1.0);
    (0..=steps).filter_map(move |step| Distance::new(reach * f64::from(step) / f64::from(steps)).ok())
}

fn curve(filter: &AnyFilter<'_>, metric: Metric, steps: u32) -> Vec<Point> {
    let point = |distance| (metric.own_unit(distance), filter.acceptance_probability(distance));
    distances(filter, metric, steps).map(point).collect()
}

/// By ascending numbers, as charts want them.
fn ascending(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Where half of the queries are accepted, if the curve gets there.
fn half(points: &[Point]) -> Option<f64> {
    let crossing = |pair: &&[Point]| (pair[0].1 < 0.5) != (pair[1].1 < 0.5);
    let pair = points.windows(2).find(crossing)?;
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    Some(x0 + (x1 - x0) * (0.5 - y0) / (y1 - y0))
}

fn chart(filter: &AnyFilter<'_>, metric: Metric) -> Chart {
    let points = ascending(curve(filter, metric, DRAWN));
    let x = (points.first().map_or(0.0, |point| point.0), points.last().map_or(1.0, |point| point.0));
    let marks = half(&points).map(|at| Mark {
        at,
        name: format!("half at {}", words::number(at)),
        left: at > 0.5 * (x.0 + x.1),
    });
    let name = format!("as it is now, with {} items", show::count(filter.len()));
    let mut lines = vec![Line { name, points, look: Look::Main }];
    if let AnyFilter::Near(near) = filter {
        let spec = near.spec();
        let empty = |distance| (metric.own_unit(distance), spec.acceptance_probability(distance, 0.0, 0.0));
        let points = ascending(distances(filter, metric, DRAWN).map(empty).collect());
        lines.push(Line { name: "the same with one item".to_owned(), points, look: Look::Variant });
    }
    Chart {
        title: format!("How likely a query is called near: {}", words::metric(metric)),
        subtitle: vec![format!("{}, {}", filter.kind(), show::bytes(filter.bytes()))],
        x_label: words::axis(metric).into(),
        y_label: "called near".into(),
        x,
        lines,
        marks: marks.into_iter().collect(),
        ..Chart::default()
    }
}

/// What an index is; it misses nothing or says how much, and has no curve to draw.
fn of_index(args: &Args, file: &FilterFile) -> Result<ExitCode> {
    let index = file.index()?;
    if args.plot.is_some() {
        bail!("{}: an index answers with distances, and has no curve of acceptance to draw", args.filter.display());
    }
    let mut facts: Vec<(&str, String)> = vec![("kind", index.kind().to_owned())];
    if let Some(metric) = index.metric() {
        facts.push(("metric", metric.to_string()));
    }
    match &index {
        AnyIndex::Hamming(index) => {
            let spec = index.spec();
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("radius", format!("{} bits are searched fast; no distance is missed", spec.radius)));
            let blocks = index.block_radii().count();
            let blocks = if blocks == 0 { "none: every item is compared".to_owned() } else { blocks.to_string() };
            facts.push(("blocks", blocks));
            facts.push(("named", show::count(index.labels().len() as u64)));
        }
        AnyIndex::Lsh(index) => {
            let spec = index.spec();
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("shape", format!("{} bands of {} rows", spec.layout.bands, spec.layout.rows)));
            facts.push(("probes", spec.probes.to_string()));
        }
        _ => {}
    }
    if args.json {
        let mut value = serde_json::json!({
            "items": index.len(), "bytes": index.bytes(), "file_bytes": file.bytes(),
        });
        if let Some(object) = value.as_object_mut() {
            object.extend(facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.into())));
        }
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

pub fn run(args: Args) -> Result<ExitCode> {
    let file = FilterFile::open(&args.filter)?;
    if file.kind()?.is_index() {
        return of_index(&args, &file);
    }
    let filter = file.any()?;
    let metric = filter.metric();
    let points = metric.map(|metric| curve(&filter, metric, PRINTED)).unwrap_or_default();
    if let Some(path) = &args.plot {
        let Some(metric) = metric else {
            bail!("{}: its items have no distance to draw a curve over", args.filter.display());
        };
        let about = args.filter.to_string_lossy();
        write_picture(path, &chart(&filter, metric).to_svg(), Some(&about))?;
    }
    let mut facts: Vec<(&str, String)> = vec![("kind", filter.kind().to_owned())];
    if let Some(metric) = metric {
        facts.push(("metric", metric.to_string()));
    }
    match &filter {
        AnyFilter::Near(near) => {
            let spec = near.spec();
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("shape", format!("{} bands of {} rows", spec.rule.bands(), spec.rows)));
            if let Some(threshold) = spec.rule.threshold_at(near.chance_hit()) {
                facts.push(("threshold", format!("{threshold} bands must hit at the present load")));
            }
            facts.push(("fill", show::percent(near.fill())));
        }
        AnyFilter::Exact(exact) => {
            let spec = exact.spec();
            facts.push(("seed", spec.seed.to_string()));
            facts.push(("radius", format!("{} bits, of which none is missed", spec.radius)));
            facts.push(("structure", format!("{:?}", spec.construction)));
        }
        _ => {}
    }
    facts.push(("items", show::count(filter.len())));
    facts.push(("memory", show::bytes(filter.bytes())));
    facts.push(("file", show::bytes(file.bytes() as u64)));
    if args.json {
        let mut value = serde_json::json!({
            "items": filter.len(),
            "bytes": filter.bytes(),
            "file_bytes": file.bytes(),
            "curve": points.iter().map(|(at, accepted)| serde_json::json!({"at": at, "accepted": accepted})).collect::<Vec<_>>(),
        });
        if let Some(object) = value.as_object_mut() {
            for (name, fact) in &facts {
                object.entry(*name).or_insert_with(|| fact.clone().into());
            }
            if let AnyFilter::Near(near) = &filter {
                let spec = near.spec();
                object.insert("rows".to_owned(), spec.rows.into());
                object.insert("bands".to_owned(), spec.rule.bands().into());
                object.insert("fill".to_owned(), near.fill().into());
            }
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
            let drawn = ascending(curve(&filter, metric, DRAWN));
            let ends = [drawn.first(), drawn.last()].into_iter().flatten().map(|point| point.0);
            let marks = half(&drawn).map(|at| (at, format!("half at {}", words::number(at)))).into_iter();
            let marks: Vec<(f64, String)> = marks.chain(ends.map(|end| (end, words::number(end)))).collect();
            writeln!(out, "{}", terminal::draw(&drawn, &marks, words::width()))?;
            for (at, accepted) in &points {
                writeln!(out, "          {at:>10.3}  {:>8}", show::percent(*accepted))?;
            }
        }
        Ok(())
    };
    print().context("cannot write to standard output")?;
    if let Some(path) = &args.plot {
        eprintln!("drawn     {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
