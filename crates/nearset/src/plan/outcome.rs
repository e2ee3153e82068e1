//! What planning gives: a plan that explains itself, or a reason with a way out.

use std::{fmt, ops::Range};

use super::{Advice, Goal, Minimise, Request, RequestError, search};
use crate::{
    Distance, Family, Layout, Metric, MetricError, Spec,
    error::SpecError,
    family::LshFamily,
    spec::{FilterSpec, Terms},
};

/// The kinds of filters that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// Any band is enough: banded MinHash, "LSHBloom".
    Banded,
    /// Some of the bands are enough: the distance-sensitive Bloom filter.
    Threshold,
    /// All bands, and all with one item: the locality-sensitive Bloom filter with its active overflow.
    Verified,
    /// So many bands that none within the radius is lost: balanced sampling.
    Balanced,
    /// Blocks, each searched within its share of the radius. Loses nothing.
    Pigeonhole,
    /// Masks, one of which misses any few differences. Loses nothing.
    Covering,
    /// A folded copy of every item, all compared. Loses nothing.
    FoldedScan,
    /// A sketch of every item, all compared.
    SketchScan,
    /// The items themselves, all compared.
    Scan,
    /// The items themselves, found by their blocks.
    MultiIndex,
}

impl Structure {
    /// A short name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Structure::Banded => "banded",
            Structure::Threshold => "threshold",
            Structure::Verified => "verified",
            Structure::Balanced => "balanced",
            Structure::Pigeonhole => "pigeonhole",
            Structure::Covering => "covering",
            Structure::FoldedScan => "folded-scan",
            Structure::SketchScan => "sketch-scan",
            Structure::Scan => "scan",
            Structure::MultiIndex => "multi-index",
        }
    }

    /// What it does, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Structure::Banded => "near when any band hits",
            Structure::Threshold => "near when enough bands hit",
            Structure::Verified => "near when all bands hit with one item's keys, gaps tried beside",
            Structure::Balanced => "near when enough bands hit, none within the radius lost",
            Structure::Pigeonhole => "near when a block hits within its share of the radius",
            Structure::Covering => "near when a mask agrees",
            Structure::FoldedScan => "every item's fold is compared",
            Structure::SketchScan => "every item's sketch is compared",
            Structure::Scan => "every item is compared",
            Structure::MultiIndex => "items are found by their blocks and compared",
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a query costs.
///
/// A model with assumed weights, to rank filters by; it was not fitted to timings. Reading a cache line takes 20
/// steps, a word of a scan 1, a sampled position 1, a slot of a signature 2, a projection a quarter of a step for every component (f64) or an eighth (f32), and a
/// rotation an eighth of a step for every addition.
/// Cutting an item into shingles costs every filter the same and is left out. How long a query can take at worst is what
/// [`FilterSpec::work_bound`] says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Cache lines that a query touches, at most.
    pub cache_lines: f64,
    /// Hash functions that it evaluates.
    pub hash_evaluations: f64,
    /// Both as one number.
    pub steps: f64,
}

impl Work {
    /// Steps to read a cache line.
    pub(crate) const LINE: f64 = 20.0;

    /// A query of one line per band.
    pub(super) fn of(family: &Family, layout: Layout) -> Self {
        let (cache_lines, hash_evaluations) = (f64::from(layout.bands), layout.functions() as f64);
        Self { cache_lines, hash_evaluations, steps: Self::LINE * cache_lines + family.steps() * hash_evaluations }
    }

    pub(super) fn of_spec(spec: &Spec) -> Self {
        let mut work = Self::of(&spec.family, spec.layout());
        let beside =
            spec.probing.map_or(0, |probing| probing.bands * spec.family.neighbour_buckets(spec.rows, probing.reach));
        let more = f64::from(beside) + f64::from(u8::from(spec.verification.is_some()));
        work.cache_lines += more;
        work.steps += Self::LINE * more;
        work
    }
}

/// A point of the curve of acceptance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// How far the query lies from its nearest item.
    pub distance: Distance,
    /// How likely it is accepted when that item is alone.
    pub empty: f64,
    /// How likely it is accepted at capacity.
    pub full: f64,
}

/// A structure that was not chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerUp {
    /// Which.
    pub structure: Structure,
    /// Over which family.
    pub family: &'static str,
    /// What it would take, if it keeps the promises at all.
    pub bits_per_item: Option<f64>,
    /// What a query would cost.
    pub work: Option<Work>,
    /// How to build it all the same.
    pub spec: Option<FilterSpec>,
    /// Why it was not chosen.
    pub why: String,
}

/// The cheapest filter that keeps a request, with what it will do.
///
/// Curve and grey zone take bands that share positions as independent where the exact distribution would take long; the
/// two promises do not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What was asked for.
    pub request: Request,
    /// The same resolved.
    pub(super) goal: Goal,
    /// The kind of filter.
    pub structure: Structure,
    /// The hash family's name.
    pub family: &'static str,
    /// From which to build it, on the terms of the request.
    pub spec: FilterSpec,
    /// The part of near items that is missed, at any load.
    pub false_negative: f64,
    /// The part of far items that is accepted, at capacity.
    pub false_positive: f64,
    /// The chance, at capacity, that a band of an unrelated query hits.
    pub chance_hit: f64,
    /// Memory for one of `capacity` items.
    pub bits_per_item: f64,
    /// Memory in all.
    pub bytes: u64,
    /// What a query costs.
    pub work: Work,
    /// Acceptance by distance, ascending.
    pub curve: Vec<CurvePoint>,
    /// Where nothing is promised.
    pub grey_zone: Range<Distance>,
    /// What else was tried, smallest first.
    pub runners_up: Vec<RunnerUp>,
    /// Whether it removes texts: its fill at capacity is chosen, not predicted.
    pub(super) removes: bool,
}

impl Plan {
    /// What is promised: the request with no default left open.
    pub fn terms(&self) -> &Terms {
        self.spec.terms().expect("a planned filter is on terms")
    }

    /// How likely a query is accepted at capacity whose nearest stored item is this near, in the metric's own unit.
    ///
    /// # Errors
    /// If there is no such number in the metric.
    pub fn accepted(&self, own: f64) -> Result<f64, MetricError> {
        Ok(search::accepted(self, self.request.metric.distance(own)?))
    }

    /// How many bands must hit at capacity, where one number decides.
    pub fn threshold(&self) -> Option<u32> {
        self.spec.near().and_then(|spec| spec.rule.threshold_at(self.chance_hit))
    }

    /// Whether fewer bands need to hit while the filter is emptier.
    pub(crate) fn follows_fill(&self) -> bool {
        self.spec.near().is_some_and(|spec| spec.rule.follows_fill())
    }
}

/// Formats a rate as people read it: `none`, `1.9 %`, `0.08 %`, and `4.0e-7` where it is tiny.
pub(super) fn percent(rate: f64) -> String {
    match rate {
        0.0 => "none".into(),
        rate if rate >= 1e-4 => format!("{} %", significant(100.0 * rate)),
        rate => format!("{rate:.1e}"),
    }
}

/// Three significant digits, no exponent.
pub(super) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (2 - libm::floor(libm::log10(value.abs())) as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats bytes with a decimal unit.
pub(super) fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (count, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", significant(value), units[unit])
}

/// For people, aligned, one fact a line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = self.request.metric;
        let own = |distance| significant(metric.own_unit(distance));
        let unit = metric.unit();
        writeln!(f, "{:<16}{metric}, {} items", "metric", self.request.capacity)?;
        writeln!(f, "{:<16}{} over {}: {}", "structure", self.structure, self.family, self.structure.meaning())?;
        if let (Some(layout), Some(threshold)) = (self.spec.near().map(Spec::layout), self.threshold()) {
            let (rows, bands) = (layout.rows, layout.bands);
            let when = if self.follows_fill() { " at capacity, fewer before" } else { "" };
            writeln!(f, "{:<16}{bands} bands of {rows} rows, {threshold} must hit{when}", "shape")?;
        }
        writeln!(
            f,
            "{:<16}{} bits per item, {} in all",
            "memory",
            significant(self.bits_per_item),
            bytes(self.bytes as f64)
        )?;
        writeln!(
            f,
            "{:<16}{} cache lines, {} hash evaluations",
            "per query",
            significant(self.work.cache_lines),
            significant(self.work.hash_evaluations)
        )?;
        let (near, far) = (own(self.terms().near), own(self.terms().far));
        let (missed, wrong) = (percent(self.false_negative), percent(self.false_positive));
        let most = |rate| format!("{} allowed", percent(rate));
        writeln!(f, "{:<16}{missed} missed at {near} {unit} ({})", "near", most(self.terms().max_false_negative))?;
        writeln!(f, "{:<16}{wrong} accepted at {far} {unit} ({})", "far", most(self.terms().max_false_positive))?;
        let (from, to) = (own(self.grey_zone.start), own(self.grey_zone.end));
        writeln!(f, "{:<16}{from} to {to} {unit}: may be called near or not", "grey zone")?;
        for (i, runner) in self.runners_up.iter().enumerate() {
            let label = if i == 0 { "instead of" } else { "" };
            let name = format!("{} over {}", runner.structure, runner.family);
            let size = runner.bits_per_item.map_or("-".into(), |bits| format!("{} bits", significant(bits)));
            writeln!(f, "{label:<16}{name:<36}{size:>14}  {}", runner.why)?;
        }
        Ok(())
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The request makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What was planned can't be: an item would take too long, say.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Near and far can't be told apart by sensibly many bands.
    #[error(
        "similarities of {near} and {far} are too close to be told apart this well: allow more false positives, or more \
         false negatives"
    )]
    TooClose {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// More keys than a record may have.
    #[error(
        "to miss {missed} of what is {near} alike takes too many keys: ask for a higher similarity, or allow more misses"
    )]
    TooManyKeys {
        /// Near.
        near: f64,
        /// What may be missed.
        missed: f64,
    },
    /// Only Hamming distances have structures without false negatives.
    #[error(
        "no hash of {} finds every near item: allow some false negatives, such as 0.000001 (none is for hamming and symbols)",
        metric.name()
    )]
    NoZeroFalseNegatives {
        /// The metric.
        metric: Metric,
    },
    /// Nothing keeps the request.
    #[error("{}", explain_impossible(tried, nearest, advice))]
    Impossible {
        /// What was asked for, no default left open.
        terms: Box<Terms>,
        /// What was tried, and why it does not do.
        tried: Vec<RunnerUp>,
        /// Requests like it that can be kept.
        nearest: Vec<Request>,
        /// What does it without a filter.
        advice: Vec<Advice>,
    },
    /// A filter keeps it, but the items themselves take less.
    #[error("{}", explain_larger(*item_bits, advice, plan))]
    LargerThanItems {
        /// Bits of an item itself.
        item_bits: f64,
        /// What does it in less.
        advice: Vec<Advice>,
        /// The filter, for who wants it all the same.
        plan: Box<Plan>,
    },
}

fn list_advice(advice: &[Advice]) -> String {
    let each = advice.iter().map(Advice::to_string).collect::<Vec<_>>();
    if each.is_empty() { String::new() } else { format!("; use {}", each.join(", or ")) }
}

fn explain_impossible(tried: &[RunnerUp], nearest: &[Request], advice: &[Advice]) -> String {
    let mut text = String::from("no filter keeps both promises");
    for runner in tried {
        text += &format!("; {} over {}: {}", runner.structure, runner.family, runner.why);
    }
    for request in nearest {
        let (far, unit) = (request.far.map_or("-".into(), significant), request.metric.unit());
        let model = request.far_model.as_ref().map_or("the default", name);
        text += &format!("; possible with far at {far} {unit} and a far model of {model}");
    }
    text + &list_advice(advice)
}

fn name(model: &super::FarModel) -> &'static str {
    match model {
        super::FarModel::WorstCase => "the worst case",
        super::FarModel::Random => "random items",
        super::FarModel::Background(_) => "items at a background distance",
        super::FarModel::Measured(_) => "a measured background",
    }
}

fn explain_larger(item_bits: f64, advice: &[Advice], plan: &Plan) -> String {
    let what = match plan.request.minimise {
        Minimise::Bytes => "the smallest filter",
        Minimise::Time => "the quickest filter",
    };
    let (metric, near) = (plan.request.metric, significant(plan.request.near));
    format!(
        "at {near} {} of {metric}, no constant-probe filter is smaller than the items: {what} takes {} bits per item, \
         the item itself {}{}",
        metric.unit(),
        significant(plan.bits_per_item),
        significant(item_bits),
        list_advice(advice)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(significant(274.31), "274");
        assert_eq!(significant(0.012345), "0.0123");
        assert_eq!(significant(1_234_567.0), "1234567");
        assert_eq!(significant(2.0), "2");
        assert_eq!(percent(0.0196), "1.96 %");
        assert_eq!(percent(1.2e-7), "1.2e-7");
        assert_eq!(bytes(1536.0), "1.54 kB");
    }
}
