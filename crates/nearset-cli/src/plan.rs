//! `nearset plan`: what a filter will do and cost, before anything is built.
//!
//! What the library answers to a request becomes words, JSON or a picture.

mod json;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use nearset::plan::{Plan, PlanError, Request};
use nearset::{MetricName, Shape};
use nearset_jobs::background::{PAIRS, Sampled};
use nearset_records::Format;
use nearset_records::extract::item_field;
use nearset_records::format::known_formats;
use nearset_view::curves::plan_chart_beside_peers;
use nearset_view::plan::{self as view, Sample, Wording};

use crate::goal::{GoalOptions, explain_metric, metric_help, parse_count, parse_metric};
use crate::options::{Plot, Usage};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Near-duplicate texts, a million of them, at a Jaccard similarity of 0.8:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6

  The same, allowing for how much your texts have in common anyway:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6 --sample corpus.jsonl

  A picture of it:
    nearset plan --metric jaccard --near 0.8 --far 0.6 --capacity 1e6 --plot curve.svg

  256-bit image hashes, none within 4 bits missed:
    nearset plan --metric hamming --bits 256 --near 4 --far 60 --capacity 1M --max-fn 0

  Embeddings by cosine, as JSON for a script:
    nearset plan --metric cosine --dimension 384 --near 0.95 --far 0.7 --capacity 1e6 --json

Exit codes: 0 there is a plan, 1 nothing keeps the promises (it says what does) or a file failed,
2 wrong command line.";

/// Returns the examples, and what numbers of each metric count.
fn after_help() -> String {
    let mut units = String::from("Units of --near, --far and --background:\n");
    for name in MetricName::ALL {
        let Ok(metric) = name.with(Shape { length: Some(1), shingling: None }) else { continue };
        let counts = match (metric.is_whole(), metric.larger_is_nearer()) {
            (true, _) => format!("differing {}", metric.unit()),
            (false, true) => format!("{}: near is the larger number", metric.unit()),
            (false, false) => metric.unit().to_owned(),
        };
        units += &format!("  {:<20}{counts}\n", name.as_str());
    }
    let (examples, exit_codes) = EXAMPLES.split_once("Exit codes").unwrap_or((EXAMPLES, ""));
    format!("{examples}{units}\nExit codes{exit_codes}")
}

/// Say what is wanted, and see the cheapest filter that keeps the promise, with what it costs
///
/// Of the queries that are --near something stored, at most --max-fn are missed; of those that have nothing nearer than --far, at
/// most --max-fp are wrongly called near, with --capacity items stored. In between nothing is promised.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    #[arg(long, value_name = "METRIC", value_parser = parse_metric, help = metric_help(MetricName::ALL))]
    metric: MetricName,

    #[command(flatten)]
    wanted: GoalOptions,

    /// How far a query must be from everything stored to be turned away; for jaccard it may be left out: it lies 0.2 below --near
    /// then, and the filter is that of `nearset dedup`
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    far: Option<f64>,

    /// How many distinct items will be stored: 1000000, 1_000_000, 1e6 or 1M
    #[arg(long, value_name = "N", value_parser = parse_count)]
    capacity: u64,

    /// The field or column of the sample's items [default: text, hash or vector, by the metric]
    #[arg(long, visible_alias = "text-field", value_name = "NAME", requires = "sample")]
    field: Option<String>,

    #[arg(
        long,
        value_name = "FORMAT",
        requires = "sample",
        help = format!("How records lie in the sample, where the extension does not tell: {}", known_formats())
    )]
    format: Option<Format>,

    #[command(flatten)]
    picture: Plot,

    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
}

/// An answer to what was wanted.
pub struct Answer {
    pub request: Request,
    outcome: Result<Plan, PlanError>,
    sampled: Option<Sampled>,
}

impl Answer {
    /// The filter, even one that is larger than its items.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.outcome {
            Ok(plan) => Some(plan),
            Err(PlanError::LargerThanItems { plan, .. }) => Some(plan),
            Err(_) => None,
        }
    }

    /// As one JSON object.
    pub fn json(&self) -> serde_json::Value {
        json::answer(&self.request, &self.outcome, self.sampled.as_ref())
    }

    /// In words, in lines of at most so many letters.
    pub fn words(&self, args: &Args, width: usize) -> String {
        let sample = self.sampled.as_ref().map(sample);
        view::answer(&self.request, &self.outcome, sample.as_ref(), &args.wording(), width)
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let planned = args.answer()?;
    let filter = planned.plan();
    if let (Some(_), Some(plan)) = (&args.picture.plot, filter) {
        args.picture.write(&plan_chart_beside_peers(plan).to_svg(), args.wanted.sample.as_deref())?;
    }
    let answer = match args.json {
        true => planned.json().to_string() + "\n",
        false => planned.words(&args, show::width()),
    };
    std::io::stdout().lock().write_all(answer.as_bytes())?;
    if let (Some(path), Some(_), false) = (&args.picture.plot, filter, args.json) {
        eprintln!("drawn     {}", path.display());
    }
    Ok(if filter.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns what is shown of a sample.
fn sample(sampled: &Sampled) -> Sample {
    Sample { records: sampled.records, items: sampled.items, most_pairs: PAIRS }
}

/// The arguments of the command by themselves.
#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    args: Args,
}

impl Args {
    /// Reads arguments as they are typed.
    ///
    /// # Errors
    /// What is wrong with them, as the command says it.
    pub fn typed(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let read = <Alone as clap::Parser>::try_parse_from(arguments);
        let said = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().replacen("error: ", "", 1);
        Ok(read.map_err(|error| Usage(said(error)))?.args)
    }

    /// Asks the planner.
    ///
    /// # Errors
    /// If the request makes no sense; that nothing keeps its promises is an answer.
    pub fn answer(&self) -> Result<Answer> {
        let (request, sampled) = self.request()?;
        match request.plan_filter() {
            Err(PlanError::Request(error)) => Err(self.wanted.explain(self.metric, error).into()),
            outcome => Ok(Answer { request, outcome, sampled }),
        }
    }

    fn request(&self) -> Result<(Request, Option<Sampled>)> {
        let shape = self.wanted.shape(self.metric)?;
        let sampled = self.wanted.sampled(self.metric, shape, self.field.as_deref(), self.format)?;
        let metric = match &sampled {
            Some(sampled) => sampled.metric,
            None => self.metric.with(shape).map_err(|error| explain_metric(self.metric, error))?,
        };
        Ok((self.wanted.request(metric, self.far, self.capacity, sampled.as_ref()), sampled))
    }

    /// Returns what the answer advises, as typed.
    fn wording(&self) -> Wording {
        let next = match item_field(self.metric.form()) {
            Some(_) => vec![
                format!("nearset build ITEMS -o seen.nearset {}", self.for_build()),
                "nearset query seen.nearset QUERIES".into(),
            ],
            None => {
                vec!["in a program: nearset::plan::Request plans it, and nearset::Filter::new takes its spec".into()]
            }
        };
        let next_index = match item_field(self.metric.form()) {
            Some(_) => {
                let index = self.wanted.for_index(self.metric, self.far, self.field.as_deref());
                vec![
                    format!("nearset build ITEMS -o items.nearset {index}"),
                    "nearset search items.nearset QUERIES".into(),
                ]
            }
            None => Vec::new(),
        };
        Wording {
            next,
            next_index,
            sample: "--sample ITEMS",
            near: "--near",
            far: "--far",
            max_false_negative: "--max-fn",
            max_false_positive: "--max-fp",
            capacity: "--capacity",
            worst_case: "--worst-case",
        }
    }

    /// Returns the options by which `nearset build` makes the filter.
    fn for_build(&self) -> String {
        let mut text = format!("--metric {} {}", self.metric, self.wanted.typed());
        if let Some(far) = self.far {
            text += &format!(" --far {far}");
        }
        text += &format!(" --capacity {}", self.capacity);
        if let Some(field) = &self.field {
            text += &format!(" --field {field}");
        }
        text
    }
}
