//! `nearset info`: what a filter is, how full, and what it predicts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::Distance;
use nearset::plan::Metric;
use nearset_pipeline::{AnyFilter, FilterFile};

use crate::options::print_json;
use crate::show;

const EXAMPLES: &str = "\
Examples:
  nearset info seen.nearset
  nearset info seen.nearset --json | jq .curve";

/// Show a filter's spec, load and predicted errors
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// A point of the curve: the metric's own number, and the probability of being accepted.
type Point = (f64, f64);

/// Where the curve is shown: steps of the metric's range, or around a bucket's width where there is no range.
fn curve(filter: &AnyFilter<'_>, metric: Metric) -> Vec<Point> {
    const STEPS: u32 = 20;
    let reach = metric.farthest().map(Distance::value).or_else(|| match filter {
        AnyFilter::Near(filter) => match filter.spec().family {
            nearset::Family::PStable(family) => Some(2.0 * family.width),
            _ => None,
        },
        _ => None,
    });
    let reach = reach.unwrap_or(1.0);
    let at = |step: u32| Distance::new(reach * f64::from(step) / f64::from(STEPS)).ok();
    let point = |distance| (metric.own_unit(distance), filter.acceptance_probability(distance));
    (0..=STEPS).filter_map(at).map(point).collect()
}

pub fn run(args: Args) -> Result<ExitCode> {
    let file = FilterFile::open(&args.filter)?;
    let filter = file.any()?;
    let metric = filter.metric();
    let points = metric.map(|metric| curve(&filter, metric)).unwrap_or_default();
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
            for (at, accepted) in &points {
                writeln!(out, "          {at:>10.3}  {:>8}", show::percent(*accepted))?;
            }
        }
        Ok(())
    };
    print().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
