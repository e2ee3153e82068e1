//! What `NEAR.RESERVE` and `NEAR.INDEX.RESERVE` are told, as wishes that the library plans from.
//!
//! Options come in any order and case, each once. What is left out is the library's default.

use std::str::FromStr;

use nearset::family::WorkLimit;
use nearset::plan::{FarModel, Minimise, PlanError, Request, RequestError};
use nearset::spec::WhenFull;
use nearset::{FilterSpec, HammingSpec, Index, Metric, MetricError, MetricName, Seed, Shape, Shingling};

use crate::items::{number, shown};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Arguments;
use crate::window::{self, USUAL_GENERATIONS};
use crate::{config, seed};

#[derive(Default)]
struct Wishes {
    metric: Option<MetricName>,
    near: Option<f64>,
    far: Option<f64>,
    capacity: Option<u64>,
    max_false_negative: Option<f64>,
    max_false_positive: Option<f64>,
    length: Option<u32>,
    shingling: Option<Shingling>,
    seed: Option<Seed>,
    when_full: Option<WhenFull>,
    expire_after: Option<Expiry>,
    lasts: Option<u64>,
    minimise: Option<Minimise>,
    far_model: Option<FarModel>,
}

/// What the last generations must still remember.
enum Expiry {
    Items(u64),
    Generations(u32),
}

/// A filter that is asked for, nothing of it allocated.
pub struct Reservation {
    pub spec: FilterSpec,
    /// How many milliseconds it remembers, if not by the number of items alone.
    pub lasts: Option<u64>,
}

/// Returns the filter that the options ask for; a description is held against a limit on work.
pub fn describe(mut arguments: Arguments<'_>, limit: WorkLimit) -> Outcome<Reservation> {
    if let Some(first) = arguments.get(0)
        && first.eq_ignore_ascii_case(b"DESCRIPTION")
    {
        let (Some(blob), 2) = (arguments.get(1), arguments.len()) else { return Err(Refusal::Arity) };
        let spec = FilterSpec::decode(blob, limit).map_err(Refusal::because)?;
        return Ok(Reservation { spec, lasts: None });
    }
    let mut wishes = Wishes::default();
    while let Some(name) = arguments.next() {
        wishes.take(name, &mut arguments)?;
    }
    wishes.describe()
}

/// Returns the index that the options ask for, without items unless a description has some, and up to where items are near.
pub fn describe_index(mut arguments: Arguments<'_>, limit: WorkLimit) -> Outcome<(Index<'static>, Option<f64>)> {
    if let Some(first) = arguments.get(0)
        && first.eq_ignore_ascii_case(b"DESCRIPTION")
    {
        let (Some(blob), 2 | 4) = (arguments.get(1), arguments.len()) else { return Err(Refusal::Arity) };
        let index = Index::decode(blob, limit).map_err(Refusal::because)?.into_owned();
        let mut near = None;
        if let (Some(word), Some(text)) = (arguments.get(2), arguments.get(3)) {
            if !word.eq_ignore_ascii_case(b"NEAR") {
                return refuse!("{} stands where NEAR can", shown(word));
            }
            let own = real(text).map_err(|why| Refusal::Because(format!("NEAR: {why}")))?;
            let metric = index.metric().ok_or_else(|| Refusal::because("items of this index have no form here"))?;
            metric.distance(own).map_err(|error| Refusal::Because(format!("NEAR: {error}")))?;
            near = Some(own);
        }
        return Ok((index, near));
    }
    let mut wishes = Wishes::default();
    while let Some(name) = arguments.next() {
        wishes.take(name, &mut arguments)?;
    }
    wishes.describe_index()
}

/// Returns the value of an option, by what reads it.
fn value<T>(name: &str, arguments: &mut Arguments<'_>, read: impl Fn(&[u8]) -> Result<T, String>) -> Outcome<T> {
    let Some(text) = arguments.next() else { return refuse!("{name} needs a value") };
    read(text).map_err(|why| Refusal::Because(format!("{name}: {why}")))
}

fn whole<T: FromStr>(text: &[u8]) -> Result<T, String> {
    number(text).ok_or_else(|| format!("{} is not a whole number that can stand here", shown(text)))
}

fn real(text: &[u8]) -> Result<f64, String> {
    number(text).ok_or_else(|| format!("{} is not a number", shown(text)))
}

/// Returns what the library reads and writes as text.
fn named<T: FromStr<Err: ToString>>(text: &[u8]) -> Result<T, String> {
    String::from_utf8_lossy(text).parse().map_err(|error: T::Err| error.to_string())
}

/// Returns one of several words.
fn word<T: Copy>(text: &[u8], words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word.as_bytes()));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{} is none of {}", shown(text), known.join(", "))
    })
}

/// Sets an option that was not given before.
fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Outcome {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => refuse!("{name} was given twice"),
    }
}

impl Wishes {
    fn take(&mut self, name: &[u8], rest: &mut Arguments<'_>) -> Outcome {
        let upper = name.to_ascii_uppercase();
        match &upper[..] {
            b"METRIC" => once("METRIC", &mut self.metric, value("METRIC", rest, named)?),
            b"NEAR" => once("NEAR", &mut self.near, value("NEAR", rest, real)?),
            b"FAR" => once("FAR", &mut self.far, value("FAR", rest, real)?),
            b"CAPACITY" => once("CAPACITY", &mut self.capacity, value("CAPACITY", rest, whole)?),
            b"MAXFN" => once("MAXFN", &mut self.max_false_negative, value("MAXFN", rest, real)?),
            b"MAXFP" => once("MAXFP", &mut self.max_false_positive, value("MAXFP", rest, real)?),
            // As the program's options and vector sets call it.
            b"LENGTH" | b"BITS" | b"DIMENSION" | b"DIM" => {
                once("LENGTH", &mut self.length, value("LENGTH", rest, whole)?)
            }
            b"SHINGLE" => once("SHINGLE", &mut self.shingling, value("SHINGLE", rest, named)?),
            b"SEED" => once("SEED", &mut self.seed, value("SEED", rest, named)?),
            b"WHENFULL" => {
                let words = [("GROW", WhenFull::Grow), ("REFUSE", WhenFull::Refuse)];
                once("WHENFULL", &mut self.when_full, value("WHENFULL", rest, |text| word(text, &words))?)
            }
            b"EXPIRE-AFTER" => {
                if rest.get(1).is_some_and(|unit| unit.eq_ignore_ascii_case(b"SECONDS")) {
                    let lasts = value("EXPIRE-AFTER", rest, |text| real(text).and_then(window::milliseconds))?;
                    rest.next();
                    return once("EXPIRE-AFTER … SECONDS", &mut self.lasts, lasts);
                }
                let expiry = Self::expiry(rest)?;
                once("EXPIRE-AFTER", &mut self.expire_after, expiry)
            }
            b"MINIMISE" => {
                let words = [("BYTES", Minimise::Bytes), ("TIME", Minimise::Time)];
                once("MINIMISE", &mut self.minimise, value("MINIMISE", rest, |text| word(text, &words))?)
            }
            b"BACKGROUND" => {
                let own = value("BACKGROUND", rest, real)?;
                once("BACKGROUND or WORSTCASE", &mut self.far_model, FarModel::Background(own))
            }
            b"WORSTCASE" => once("BACKGROUND or WORSTCASE", &mut self.far_model, FarModel::WorstCase),
            _ => refuse!(
                "{} is no option: use METRIC, NEAR, FAR, CAPACITY, MAXFN, MAXFP, LENGTH, SHINGLE, SEED, WHENFULL, \
                 EXPIRE-AFTER, MINIMISE, BACKGROUND, WORSTCASE or DESCRIPTION",
                shown(name)
            ),
        }
    }

    fn expiry(rest: &mut Arguments<'_>) -> Outcome<Expiry> {
        let count: u64 = value("EXPIRE-AFTER", rest, whole)?;
        let unit = rest.get(0).unwrap_or_default();
        if unit.eq_ignore_ascii_case(b"GENERATIONS") {
            rest.next();
            let generations = u32::try_from(count).unwrap_or(u32::MAX);
            return Ok(Expiry::Generations(generations));
        }
        if unit.eq_ignore_ascii_case(b"ITEMS") {
            rest.next();
        }
        if count == 0 {
            return refuse!("EXPIRE-AFTER: 0 items would be remembered: say how many, or leave it out to forget none");
        }
        Ok(Expiry::Items(count))
    }

    fn describe(self) -> Outcome<Reservation> {
        let (name, metric, near) = self.metric()?;
        let Some(capacity) = self.capacity else { return refuse!("{NO_CAPACITY}") };
        let (when_full, lasts) = (self.when_full(capacity)?, self.lasts);
        let mut request = Request::new(metric, near).capacity(capacity).when_full(when_full);
        request.max_false_positive = self.max_false_positive;
        let plan = self.wished(request).plan_filter().map_err(|error| unplanned(name, error))?;
        plan.spec.check(WorkLimit::Usual).map_err(Refusal::because)?;
        Ok(Reservation { spec: plan.spec, lasts })
    }

    /// Bit strings are compared so fast that none needs to be missed; other items are found by a plan.
    fn describe_index(self) -> Outcome<(Index<'static>, Option<f64>)> {
        let (name, metric, near) = self.metric()?;
        let verified = [
            ("MAXFP", self.max_false_positive.is_some()),
            ("WHENFULL", self.when_full.is_some()),
            ("EXPIRE-AFTER", self.expire_after.is_some() || self.lasts.is_some()),
        ];
        if let Some((option, _)) = verified.into_iter().find(|(_, given)| *given) {
            return refuse!("{option} says nothing to an index, which compares what it finds and grows: leave it out");
        }
        let index = if let Metric::Hamming { bits } = metric {
            let planned = [
                ("FAR", self.far.is_some()),
                ("MAXFN", self.max_false_negative.is_some()),
                ("MINIMISE", self.minimise.is_some()),
                ("BACKGROUND or WORSTCASE", self.far_model.is_some()),
            ];
            if let Some((option, _)) = planned.into_iter().find(|(_, given)| *given) {
                return refuse!("{option} says nothing to an index of hashes, which misses none: leave it out");
            }
            let radius = metric.distance(near).map_err(|error| Refusal::Because(format!("NEAR: {error}")))?;
            let seed = self.seed.unwrap_or_else(seed::of_server);
            Index::new(HammingSpec::new(bits, radius.value() as u32, seed))
        } else {
            let Some(capacity) = self.capacity else { return refuse!("{NO_CAPACITY}") };
            let request = self.wished(Request::new(metric, near).capacity(capacity));
            Index::new(request.plan_index().map_err(|error| unplanned(name, error))?.spec)
        };
        Ok((index.map_err(Refusal::because)?, Some(near)))
    }

    /// Returns the metric with its name, and what is near.
    fn metric(&self) -> Outcome<(MetricName, Metric, f64)> {
        let Some(name) = self.metric else { return refuse!("METRIC is missing: jaccard, hamming, cosine, …") };
        let Some(near) = self.near else { return refuse!("NEAR is missing: up to where are items near?") };
        let shape = Shape { length: self.length, shingling: self.shingling };
        let metric = name.with(shape).map_err(|error| match error {
            MetricError::NoLength { .. } => Refusal::Because(format!(
                "LENGTH is missing, or 0: how many bits, symbols or components has an item of {name}?"
            )),
            other => Refusal::because(other),
        })?;
        if metric.shape().length.is_none() && self.length.is_some() {
            return refuse!("LENGTH says nothing about {name}: its items are of any length");
        }
        if metric.shape().shingling.is_none() && self.shingling.is_some() {
            return refuse!("SHINGLE cuts texts, and {name} has none");
        }
        Ok((name, metric, near))
    }

    /// Returns a request with what filters and indexes may both be wished to be.
    fn wished(self, mut request: Request) -> Request {
        request.far = self.far;
        request.max_false_negative = self.max_false_negative;
        request.minimise = self.minimise.unwrap_or(request.minimise);
        request.far_model = self.far_model;
        request.seed = self.seed.unwrap_or_else(seed::of_server);
        request
    }

    fn when_full(&self, capacity: u64) -> Outcome<WhenFull> {
        let usual = self.lasts.map(|_| Expiry::Generations(USUAL_GENERATIONS));
        match (self.expire_after.as_ref().or(usual.as_ref()), self.when_full) {
            (Some(Expiry::Generations(..=1)), _) if self.lasts.is_some() => {
                refuse!("EXPIRE-AFTER: to remember for a time, a filter has 2 generations or more")
            }
            (Some(_), Some(_)) => {
                refuse!("EXPIRE-AFTER says already what happens when the filter is full: leave WHENFULL out")
            }
            (None, wanted) => Ok(wanted.unwrap_or_else(config::when_full)),
            (Some(Expiry::Generations(generations)), None) => Ok(WhenFull::Forget { generations: *generations }),
            // One generation is always being filled, so that many full ones are kept beside it.
            (Some(Expiry::Items(items)), None) => {
                let full = items.div_ceil(capacity.max(1)).min(u64::from(u32::MAX) - 1);
                Ok(WhenFull::Forget { generations: full as u32 + 1 })
            }
        }
    }
}

const NO_CAPACITY: &str = "CAPACITY is missing: how many items are expected?";

fn unplanned(name: MetricName, error: PlanError) -> Refusal {
    match error {
        PlanError::Request(error) => explain(name, error),
        other => Refusal::because(other),
    }
}

/// Returns what is wrong with a request, in terms of options.
fn explain(name: MetricName, error: RequestError) -> Refusal {
    match error {
        RequestError::OutOfRange { what, cause } => Refusal::Because(format!("{}: {cause}", what.to_ascii_uppercase())),
        RequestError::NoFar { .. } => {
            Refusal::Because(format!("FAR is missing: from where on are items of {name} not near?"))
        }
        RequestError::OnlyBesideFar { .. } => {
            Refusal::Because("MINIMISE, BACKGROUND and WORSTCASE have a meaning only beside FAR".into())
        }
        other => Refusal::because(other),
    }
}
