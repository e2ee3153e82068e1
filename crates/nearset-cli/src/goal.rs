//! What is wanted of a filter, as options that `plan` and `build` share.
//!
//! Options become a [`Request`], whose defaults are the library's.

use anyhow::{Context, Result};
use nearset::plan::{FarModel, Minimise, Request, RequestError};
use nearset::{Metric, MetricError, MetricName, Seed, Shape, Shingling};
use nearset_jobs::background::{self, Sampled};
use nearset_jobs::join::TextMeasure;
use nearset_records::extract::item_field;
use nearset_records::{Fields, Format, ReadOptions, resolve};

use crate::items::usual_field;
use crate::options::Usage;

/// What is near, and which errors may be made.
#[derive(clap::Args)]
pub struct GoalOptions {
    /// How near a query must be to something stored to be found: a similarity or cosine, differing bits, or a distance
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub near: f64,

    /// The length of hashes, for hamming
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub bits: Option<u32>,

    /// Components of a vector, for cosine, l1 and l2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub dimension: Option<u32>,

    /// The length of strings, for symbols
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub length: Option<u32>,

    /// How texts are cut into sets: words:N, chars:N, bytes:N, code:N or kmers:N [default: words:5]
    #[arg(long, value_name = "KIND:N")]
    pub shingle: Option<Shingling>,

    /// The most of what is near that may be missed; 0 for none at all (hamming and symbols) [default: 0.02]
    #[arg(long, value_name = "RATE")]
    pub max_fn: Option<f64>,

    /// The most of what is far that may be called near [default: 0.001]
    #[arg(long, value_name = "RATE")]
    pub max_fp: Option<f64>,

    /// What to minimise: bytes, or time per query [default: bytes]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub minimise: Option<MinimiseArg>,

    /// Where stored items lie that a query has nothing to do with; by default as if at random
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, group = "model")]
    pub background: Option<f64>,

    /// Measure that on pairs of this file's items: texts, hashes in hexadecimal, or vectors
    #[arg(long, value_name = "FILE", group = "model")]
    pub sample: Option<String>,

    /// Promise even to a query that has every stored item exactly at --far; expensive
    #[arg(long, group = "model")]
    pub worst_case: bool,

    /// From which hash functions and sampled pairs are drawn: a number, or 32 hexadecimal digits
    #[arg(long, value_name = "SEED", default_value_t = Seed::default())]
    pub seed: Seed,
}

/// What a plan minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MinimiseArg {
    /// Memory
    Bytes,
    /// Work of a query
    Time,
}

impl GoalOptions {
    /// Returns what the options say about items; an option that the metric has no use for is a mistake.
    pub fn shape(&self, metric: MetricName) -> Result<Shape, Usage> {
        shape(metric, [self.bits, self.dimension, self.length], self.shingle)
    }

    /// Returns what `--sample` says about unrelated items, if it is given.
    pub fn sampled(
        &self,
        metric: MetricName,
        shape: Shape,
        field: Option<&str>,
        format: Option<Format>,
    ) -> Result<Option<Sampled>> {
        let Some(path) = &self.sample else { return Ok(None) };
        let sources = resolve(&[path], format)?;
        let Some(kind) = item_field(metric.form()) else {
            return Err(Usage(format!("--sample: items of {metric} cannot be read from files")).into());
        };
        let options = ReadOptions::new(Fields::new(field.unwrap_or(usual_field(kind)), kind));
        let sampled = background::measure(sources.list, options, metric, shape, self.seed);
        sampled.map(Some).with_context(|| format!("cannot measure the background on {path}"))
    }

    /// Returns what is wanted, of items of this metric.
    pub fn request(&self, metric: Metric, far: Option<f64>, capacity: u64, sampled: Option<&Sampled>) -> Request {
        let mut request = Request::new(metric, self.near).capacity(capacity).seed(self.seed);
        request.far = far;
        (request.max_false_negative, request.max_false_positive) = (self.max_fn, self.max_fp);
        if let Some(minimise) = self.minimise {
            request.minimise = match minimise {
                MinimiseArg::Bytes => Minimise::Bytes,
                MinimiseArg::Time => Minimise::Time,
            };
        }
        request.far_model = match (sampled, self.background) {
            (Some(sampled), _) => Some(FarModel::Measured(sampled.background.clone())),
            (None, Some(own)) => Some(FarModel::Background(own)),
            (None, None) => self.worst_case.then_some(FarModel::WorstCase),
        };
        request
    }

    /// Returns an option that an index with exact answers has no use for.
    pub fn about_errors(&self) -> Option<&'static str> {
        let given = [
            ("--max-fn", self.max_fn.is_some()),
            ("--max-fp", self.max_fp.is_some()),
            ("--background", self.background.is_some()),
            ("--sample", self.sample.is_some()),
            ("--worst-case", self.worst_case),
            ("--minimise", self.minimise.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns what is wrong with the request, in terms of options.
    pub fn explain(&self, metric: MetricName, error: RequestError) -> Usage {
        match error {
            RequestError::NearNotBelowFar { near, far, larger_is_nearer: true, .. } => Usage(format!(
                "--near {near} must be larger than --far {far}: {metric} counts similarity, and what is nearer is more similar"
            )),
            RequestError::NearNotBelowFar { near, far, .. } => Usage(format!(
                "--near {near} must be smaller than --far {far}: {metric} counts distance, and what is nearer is less distant"
            )),
            RequestError::OutOfRange { what, cause } => Usage(format!("--{what}: {cause}")),
            RequestError::NoFar { metric } => {
                Usage(format!("--far is needed for {metric}: from where on are items not near?"))
            }
            RequestError::OnlyBesideFar { what } => {
                let option = match what {
                    "minimise" => "--minimise",
                    _ => self.about_far().unwrap_or("--background"),
                };
                Usage(format!("{option} has a meaning only beside --far: give it too"))
            }
            RequestError::NotARate { name, .. } => {
                let option = if name == "false-negative" { "--max-fn" } else { "--max-fp" };
                Usage(format!("{option}: {error}"))
            }
            error => Usage(error.to_string()),
        }
    }

    /// Returns an option that says where other items lie.
    fn about_far(&self) -> Option<&'static str> {
        let given = [
            ("--background", self.background.is_some()),
            ("--sample", self.sample.is_some()),
            ("--worst-case", self.worst_case),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns the options by which `nearset build` makes an index of the same items, whose answers are exact for bit strings.
    pub fn for_index(&self, metric: MetricName, far: Option<f64>, field: Option<&str>) -> String {
        let mut text = format!("--index --metric {metric} --near {}", self.near);
        if let Some(shingling) = self.shingle {
            text += &format!(" --shingle {shingling}");
        }
        if let Some(far) = far.filter(|_| metric != MetricName::Hamming) {
            text += &format!(" --far {far}");
        }
        if let Some(field) = field {
            text += &format!(" --field {field}");
        }
        text
    }

    /// Returns the options as they are typed, those that were given.
    pub fn typed(&self) -> String {
        let minimise = self.minimise.map(|minimise| match minimise {
            MinimiseArg::Bytes => "bytes".to_owned(),
            MinimiseArg::Time => "time".to_owned(),
        });
        let given = [
            ("--near", Some(self.near.to_string())),
            ("--shingle", self.shingle.map(|shingling| shingling.to_string())),
            ("--max-fn", self.max_fn.map(|rate| rate.to_string())),
            ("--max-fp", self.max_fp.map(|rate| rate.to_string())),
            ("--minimise", minimise),
            ("--background", self.background.map(|own| own.to_string())),
            ("--sample", self.sample.clone()),
            ("--worst-case", self.worst_case.then(String::new)),
            ("--seed", (self.seed != Seed::default()).then(|| self.seed.to_string())),
        ];
        let typed = |(option, value): (&str, Option<String>)| {
            value.map(|value| if value.is_empty() { option.to_owned() } else { format!("{option} {value}") })
        };
        given.into_iter().filter_map(typed).collect::<Vec<_>>().join(" ")
    }
}

/// Returns what options say about the items of a metric: `--bits`, `--dimension` and `--length`, and how texts are cut. One that the metric has no
/// use for is a mistake.
pub fn shape(metric: MetricName, lengths: [Option<u32>; 3], shingling: Option<Shingling>) -> Result<Shape, Usage> {
    let own = length_option(metric);
    let [bits, dimension, length] = lengths;
    let lengths = [("--bits", bits), ("--dimension", dimension), ("--length", length)];
    if let Some((option, _)) = lengths.iter().find(|(option, given)| given.is_some() && Some(*option) != own) {
        let cure = own.map_or("--shingle says what its items are".to_owned(), |own| format!("give {own}"));
        return Err(Usage(format!("{option} says nothing about {metric}: {cure}")));
    }
    if shingling.is_some() && own.is_some() {
        return Err(Usage(format!("--shingle cuts texts, and {metric} has none: leave it out")));
    }
    Ok(Shape { length: lengths.iter().find_map(|(_, given)| *given), shingling })
}

/// Returns the metric of a filter or an index. By what else texts are compared other commands do.
pub fn parse_metric(text: &str) -> Result<MetricName, String> {
    text.parse().map_err(|error: MetricError| match TextMeasure::ALL.iter().find(|name| text.eq_ignore_ascii_case(name.as_str())) {
        Some(measure) if measure.counts_edits() => format!(
            "{error}; `nearset search KNOWN IN --metric {text} --within N` looks texts up in a file, and `nearset pairs`, `cluster` and `dedup` \
             --metric {text} --near N compare those of one"
        ),
        Some(_) => format!(
            "{error}; `nearset pairs`, `cluster` and `dedup` --metric {text} compare texts, and `nearset decontaminate` finds known ones inside others"
        ),
        None => error.to_string(),
    })
}

/// Returns what `--metric` means, with the names that a command takes.
pub fn metric_help(names: impl IntoIterator<Item = MetricName>) -> String {
    let names: Vec<&str> = names.into_iter().map(MetricName::as_str).collect();
    let list = match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    };
    format!("What near means: {list}")
}

/// Returns the metrics whose items can be read from files.
pub fn readable() -> impl Iterator<Item = MetricName> {
    MetricName::ALL.into_iter().filter(|name| item_field(name.form()).is_some())
}

/// Returns the option that says how long a metric's items are.
pub fn length_option(metric: MetricName) -> Option<&'static str> {
    match metric.form().length_option()? {
        "bits" => Some("--bits"),
        "length" => Some("--length"),
        _ => Some("--dimension"),
    }
}

/// Returns what the metric lacks, in terms of options.
pub fn explain_metric(metric: MetricName, error: MetricError) -> Usage {
    match (&error, length_option(metric)) {
        (MetricError::NoLength { .. }, Some(option)) => Usage(format!("{error}: give {option} N")),
        _ => Usage(error.to_string()),
    }
}

/// Returns a whole number as people write large ones: `1000000`, `1_000_000`, `1,000,000`, `1e6`, `2.5e6`, `10k`, `1M`, `1G`.
pub fn parse_count(text: &str) -> Result<u64, String> {
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

/// Returns a number of bytes: `2000000000`, `2G`, `2GB`, `2GiB`, `0.5G`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no number of bytes: write 2000000000, 2G or 2GiB");
    let number = text.trim_end_matches(['b', 'B']);
    let (number, base) = number.strip_suffix('i').map_or((number, 1000.0), |number| (number, 1024.0));
    let units = ["k", "m", "g", "t"];
    let power = units.iter().position(|unit| number.to_lowercase().ends_with(unit));
    let digits = if power.is_some() { &number[..number.len() - 1] } else { number };
    let scale = f64::powi(base, power.map_or(0, |power| power as i32 + 1));
    match digits.replace(['_', ','], "").parse::<f64>().map(|number| number * scale) {
        Ok(bytes) if (1.0..1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for text in ["2000000000", "2G", "2GB", "2g", "2_000M", "2000 MB".replace(' ', "").as_str(), "2e9"] {
            assert_eq!(parse_bytes(text), Ok(2_000_000_000), "{text}");
        }
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        for text in ["", "0", "G", "-1", "nan", "2X", "é"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_help_states_the_library_s_defaults() {
        let metric = MetricName::Jaccard.with(Shape::default()).unwrap();
        assert_eq!(Request::new(metric, 0.8).minimise, Minimise::Bytes);
        for command in ["plan", "build"] {
            let help = <crate::Cli as clap::CommandFactory>::command()
                .find_subcommand_mut(command)
                .map(|command| command.render_long_help().to_string())
                .unwrap_or_default();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            for stated in [
                format!("(hamming and symbols) [default: {}]", Request::MAX_FALSE_NEGATIVE),
                format!("that may be called near [default: {}]", Request::MAX_FALSE_POSITIVE),
                format!("it lies {} below --near", Request::DEDUP_GAP),
                format!("kmers:N [default: {}]", Shingling::default()),
            ] {
                assert!(help.contains(&stated), "{stated}: {help}");
            }
        }
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
