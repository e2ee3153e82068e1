//! `nearset plan`: what a filter will do and cost, before anything is built.
//!
//! Options become a [`Goal`], whose defaults are the library's; what the library answers becomes words, JSON or a picture.

mod chart;
mod json;
mod peers;
mod terminal;
mod words;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset::plan::{FarModel, Goal, GoalError, Metric, MetricError, MetricName, Minimise, PlanError, Shape};
use nearset::{Seed, Shingling};
use nearset_pipeline::any_filter::item_field;
use nearset_pipeline::background::{self, Sampled};
use nearset_pipeline::{Fields, Format, OutputFile, OutputOptions, ReadOptions, resolve};

use crate::items::usual_field;

const EXAMPLES: &str = "\
Examples:
  Near-duplicate texts, a million of them, at a Jaccard similarity of 0.8:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6

  The same, reckoning with how much your texts have in common anyway:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6 --sample corpus.jsonl

  A picture of it:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6 --plot curve.svg

  256-bit image hashes, none within 4 bits missed:
    nearset plan --metric hamming --bits 256 --near 4 --far 60 --capacity 1M --max-fn 0

  Embeddings by cosine, as JSON for a script:
    nearset plan --metric cosine --dimension 384 --near 0.95 --far 0.7 --capacity 1e6 --json

Units of --near, --far and --background:
  hamming, symbols            differing bits or symbols
  jaccard, weighted-jaccard   similarity, 0 to 1: near is the larger number
  cosine                      cosine, -1 to 1: near is the larger number
  l1, l2                      distance

Exit codes: 0 there is a plan, 1 nothing keeps the promises (it says what does) or a file failed,
2 wrong command line.";

/// Say what is wanted, and see the cheapest filter that keeps the promise, with what it costs
///
/// Of the queries that are --near something stored, at most --max-fn are missed; of those that have nothing nearer than --far, at
/// most --max-fp are wrongly called near, with --capacity items stored. In between nothing is promised.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What near means: hamming, symbols, jaccard, weighted-jaccard, cosine, l1 or l2
    #[arg(long, value_name = "METRIC")]
    metric: MetricName,

    /// How near a query must be to something stored to be found
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    near: f64,

    /// How far a query must be from everything stored to be turned away
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    far: f64,

    /// How many distinct items will be stored: 1000000, 1_000_000, 1e6 or 1M
    #[arg(long, value_name = "N", value_parser = parse_count)]
    capacity: u64,

    /// The length of hashes, for hamming
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    bits: Option<u32>,

    /// Components of a vector, for cosine, l1 and l2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dimension: Option<u32>,

    /// The length of strings, for symbols
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    length: Option<u32>,

    /// How texts are cut into sets: words:N, chars:N or bytes:N [default: words:5]
    #[arg(long, value_name = "KIND:N")]
    shingle: Option<Shingling>,

    /// The most of what is near that may be missed; 0 for none at all (hamming and symbols) [default: 0.02]
    #[arg(long, value_name = "RATE")]
    max_fn: Option<f64>,

    /// The most of what is far that may be called near [default: 0.001]
    #[arg(long, value_name = "RATE")]
    max_fp: Option<f64>,

    /// What to have least of: bytes, or time of a query [default: bytes]
    #[arg(long, value_enum, value_name = "WHAT")]
    minimise: Option<MinimiseArg>,

    /// Where stored items lie that a query has nothing to do with; by default as if at random
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, group = "model")]
    background: Option<f64>,

    /// Measure that on pairs of this file's items: texts, hashes in hexadecimal, or vectors
    #[arg(long, value_name = "FILE", group = "model")]
    sample: Option<String>,

    /// Promise even to a query that has every stored item exactly at --far; dear
    #[arg(long, group = "model")]
    worst_case: bool,

    /// The field or column of the sample's items [default: text, hash or vector, by the metric]
    #[arg(long, value_name = "NAME", requires = "sample")]
    field: Option<String>,

    /// How records lie in the sample, where the extension does not tell: jsonl, text, text-file, csv, tsv, parquet, npy, fvecs
    #[arg(long, value_name = "FORMAT", requires = "sample")]
    format: Option<Format>,

    /// From which hash functions and sampled pairs are drawn: a number, or 32 hexadecimal digits
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    seed: Seed,

    /// Draw the curve of acceptance as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum MinimiseArg {
    /// Memory
    Bytes,
    /// Work of a query
    Time,
}

/// A wrong command line, as opposed to a failure.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub fn run(args: Args) -> Result<ExitCode> {
    match plan(&args) {
        Err(error) if error.is::<Usage>() => {
            eprintln!("error: {error:#}\n\nFor examples, try 'nearset plan --help'.");
            Ok(ExitCode::from(2))
        }
        outcome => outcome,
    }
}

fn plan(args: &Args) -> Result<ExitCode> {
    let (goal, sampled) = args.goal()?;
    let outcome = nearset::plan::plan(&goal);
    if let Err(PlanError::Goal(error)) = outcome {
        return Err(args.explain(error).into());
    }
    let filter = match &outcome {
        Ok(plan) => Some(plan),
        Err(PlanError::LargerThanItems { plan, .. }) => Some(&**plan),
        Err(_) => None,
    };
    if let (Some(path), Some(plan)) = (&args.plot, filter) {
        write(path, &chart::chart(plan).to_svg(), &args.sample)?;
    }
    let answer = match args.json {
        true => json::answer(&goal, &outcome, sampled.as_ref()).to_string() + "\n",
        false => words::answer(&goal, &outcome, sampled.as_ref(), args.for_build()),
    };
    std::io::stdout().lock().write_all(answer.as_bytes())?;
    if let (Some(path), Some(_), false) = (&args.plot, filter, args.json) {
        eprintln!("drawn     {}", path.display());
    }
    Ok(if filter.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, svg: &str, sample: &Option<String>) -> Result<()> {
    let mut options = OutputOptions::default();
    options.inputs = sample.iter().map(PathBuf::from).collect();
    options.force = true;
    let mut file = OutputFile::create(path, &options)?;
    file.write(svg.as_bytes())?;
    file.finish().with_context(|| format!("cannot draw {}", path.display()))?;
    Ok(())
}

impl Args {
    fn goal(&self) -> Result<(Goal, Option<Sampled>)> {
        let shape = self.shape()?;
        let sampled = self.sample.as_ref().map(|path| self.measure(path, shape)).transpose()?;
        let metric = match &sampled {
            Some(sampled) => sampled.metric,
            None => self.metric.with(shape).map_err(|error| self.explain_metric(error))?,
        };
        let distance = |option: &str, own| metric.distance(own).map_err(|error| Usage(format!("--{option}: {error}")));
        let mut goal = Goal::new(metric, distance("near", self.near)?, distance("far", self.far)?, self.capacity);
        goal.max_false_negative = self.max_fn.unwrap_or(goal.max_false_negative);
        goal.max_false_positive = self.max_fp.unwrap_or(goal.max_false_positive);
        goal.seed = self.seed;
        goal.minimise = match self.minimise {
            Some(MinimiseArg::Bytes) => Minimise::Bytes,
            Some(MinimiseArg::Time) => Minimise::Time,
            None => goal.minimise,
        };
        if let Some(own) = self.background {
            goal.far_model = FarModel::Background(distance("background", own)?);
        }
        if self.worst_case {
            goal.far_model = FarModel::WorstCase;
        }
        if let Some(sampled) = &sampled {
            goal.far_model = FarModel::Measured(sampled.background.clone());
        }
        Ok((goal, sampled))
    }

    /// What the options say about items; an option that the metric has no use for is a mistake.
    fn shape(&self) -> Result<Shape, Usage> {
        let own = length_option(self.metric);
        let lengths = [("--bits", self.bits), ("--dimension", self.dimension), ("--length", self.length)];
        if let Some((option, _)) = lengths.iter().find(|(option, given)| given.is_some() && Some(*option) != own) {
            let cure = own.map_or("--shingle says what its items are".to_owned(), |own| format!("give {own}"));
            return Err(Usage(format!("{option} says nothing about {}: {cure}", self.metric)));
        }
        if self.shingle.is_some() && own.is_some() {
            return Err(Usage(format!("--shingle cuts texts, and {} has none: leave it out", self.metric)));
        }
        Ok(Shape { length: lengths.iter().find_map(|(_, given)| *given), shingling: self.shingle })
    }

    fn measure(&self, path: &str, shape: Shape) -> Result<Sampled> {
        let sources = resolve(&[path.to_owned()], self.format)?;
        let Some(kind) = self.of_any_length().and_then(item_field) else {
            return Err(Usage(format!("--sample: items of {} cannot be read from files", self.metric)).into());
        };
        let field = self.field.as_deref().unwrap_or(usual_field(kind));
        let options = ReadOptions::new(Fields::new(field, kind));
        let sampled = background::measure(sources.list, options, self.metric, shape, self.seed);
        sampled.with_context(|| format!("cannot measure the background on {path}"))
    }

    /// The metric where the length of items does not matter.
    fn of_any_length(&self) -> Option<Metric> {
        self.metric.with(Shape { length: Some(1), shingling: None }).ok()
    }

    fn explain_metric(&self, error: MetricError) -> Usage {
        match (&error, length_option(self.metric)) {
            (MetricError::NoLength { .. }, Some(option)) => Usage(format!("{error}: give {option} N")),
            _ => Usage(error.to_string()),
        }
    }

    fn explain(&self, error: GoalError) -> Usage {
        let (near, far) = (self.near, self.far);
        let metric = self.metric;
        match error {
            GoalError::NearNotBelowFar { .. } if self.of_any_length().is_some_and(Metric::larger_is_nearer) => {
                Usage(format!(
                    "--near {near} must be larger than --far {far}: {metric} counts similarity, and what is nearer is more similar"
                ))
            }
            GoalError::NearNotBelowFar { .. } => Usage(format!(
                "--near {near} must be smaller than --far {far}: {metric} counts distance, and what is nearer is less distant"
            )),
            GoalError::NotARate { name, .. } => {
                let option = if name == "false-negative" { "--max-fn" } else { "--max-fp" };
                Usage(format!("{option}: {error}"))
            }
            error => Usage(error.to_string()),
        }
    }

    /// The options by which `nearset build` makes this filter, if it can: it counts what it does not need to be told, and
    /// plans neither for the worst case nor for a sample.
    fn for_build(&self) -> Option<String> {
        let other = self.worst_case || self.sample.is_some() || matches!(self.minimise, Some(MinimiseArg::Time));
        if other || self.of_any_length().and_then(item_field).is_none() {
            return None;
        }
        let mut text = format!("--metric {}", self.metric);
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!(" {option} {value}");
            }
        };
        add("--shingle", self.shingle.map(|shingling| shingling.to_string()));
        add("--near", Some(self.near.to_string()));
        add("--far", Some(self.far.to_string()));
        add("--capacity", Some(self.capacity.to_string()));
        add("--max-fn", self.max_fn.map(|rate| rate.to_string()));
        add("--max-fp", self.max_fp.map(|rate| rate.to_string()));
        add("--background", self.background.map(|own| own.to_string()));
        add("--seed", (self.seed != Seed::default()).then(|| self.seed.to_string()));
        Some(text)
    }
}

/// The option that says how long a metric's items are.
fn length_option(metric: MetricName) -> Option<&'static str> {
    match metric {
        MetricName::Hamming => Some("--bits"),
        MetricName::Symbols => Some("--length"),
        MetricName::Cosine | MetricName::L1 | MetricName::L2 => Some("--dimension"),
        _ => None,
    }
}

/// A whole number as people write large ones: `1000000`, `1_000_000`, `1,000,000`, `1e6`, `2.5e6`, `10k`, `1M`, `1G`.
fn parse_count(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("{why}: write 1000000, 1_000_000, 1e6 or 1M");
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if let Ok(count) = digits.parse::<u64>() {
        return if count == 0 { Err("at least 1 item is needed".into()) } else { Ok(count) };
    }
    let (digits, scale) = match digits.char_indices().last() {
        Some((at, 'k' | 'K')) => (&digits[..at], 1e3),
        Some((at, 'm' | 'M')) => (&digits[..at], 1e6),
        Some((at, 'g' | 'G')) => (&digits[..at], 1e9),
        Some((at, 't' | 'T')) => (&digits[..at], 1e12),
        _ => (&digits[..], 1.0),
    };
    // Beyond 2^53 such a number is no longer whole.
    const MOST: f64 = (1u64 << 53) as f64;
    match digits.parse::<f64>().map(|number| number * scale) {
        Ok(count) if count.fract() == 0.0 && (1.0..=MOST).contains(&count) => Ok(count as u64),
        Ok(_) => Err(wrong("not a whole number of items from 1 to 9e15")),
        Err(_) => Err(wrong("not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_states_the_library_s_defaults() {
        let help = <crate::Cli as clap::CommandFactory>::command()
            .find_subcommand_mut("plan")
            .map(|command| command.render_long_help().to_string())
            .unwrap_or_default();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let metric = MetricName::Jaccard.with(Shape::default()).unwrap();
        let goal = Goal::new(metric, metric.distance(0.8).unwrap(), metric.distance(0.6).unwrap(), 1);
        assert!(help.contains(&format!("(hamming and symbols) [default: {}]", goal.max_false_negative)), "{help}");
        assert!(help.contains(&format!("that may be called near [default: {}]", goal.max_false_positive)), "{help}");
        assert!(help.contains(&format!("bytes:N [default: {}]", Shingling::default())), "{help}");
        assert_eq!(goal.minimise, Minimise::Bytes);
    }

    #[test]
    fn counts_are_read_as_people_write_them() {
        for text in ["1000000", "1_000_000", "1,000,000", "1e6", "1E6", "1M", "1000k", "0.001G"] {
            assert_eq!(parse_count(text), Ok(1_000_000), "{text}");
        }
        assert_eq!(parse_count("1e12"), Ok(1_000_000_000_000));
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        for text in ["0", "-1", "1.5", "", "M", "1e300", "nan", "inf", "ten", "1é"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
