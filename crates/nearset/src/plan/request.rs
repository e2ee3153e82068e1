//! What is wanted of a filter, an index or a join, and what is assumed about everything else in it.
//!
//! Claim: of the items at the near distance from a stored one at least `1 - max_false_negative` are accepted, at any load,
//! an empty filter's included: chance hits are counted on only by rules that follow the fill. Of the queries with nothing nearer than `far`, at most
//! `max_false_positive` are accepted while no more than `capacity` items are in, under the far model.
//! Both are averages over seeds: functions are drawn once and serve every query, so one filter may do a little better or
//! worse, the more so the fewer positions or components there are to draw from.
//! Invariant: every default of the library's planning is a constant of [`Request`].

use std::{fmt, ops::RangeInclusive};

use super::{Advice, IndexPlan, Plan, PlanError, advice, dedup, join, search};
use crate::{
    Distance, Family, JoinSpec, Metric, MetricError, Seed, Shingling,
    family::LshFamily,
    spec::{Terms, WhenFull},
};

/// What is wanted, in the metric's own unit: from one request a filter, an index or a join is planned.
///
/// ```
/// use nearset::{Filter, Metric, plan::Request};
///
/// let metric = Metric::Jaccard { shingling: "words:5".parse()? };
/// let plan = Request::new(metric, 0.8).far(0.5).capacity(1_000_000).plan_filter()?;
/// assert!(plan.false_negative <= 0.02 && plan.false_positive <= 0.001);
/// let filter = Filter::new(&plan.spec)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// What distance means.
    pub metric: Metric,
    /// Up to here, items are to be found.
    pub near: f64,
    /// From here on, they are not. A join has no use for it; where it is left out, see what is planned.
    pub far: Option<f64>,
    /// The most of what lies at `near` that may be missed; 0 for none at all, which only Hamming distances can promise.
    pub max_false_negative: Option<f64>,
    /// The most of what lies at `far` and beyond that may be accepted.
    pub max_false_positive: Option<f64>,
    /// How many distinct items are expected. A join has no use for it.
    pub capacity: u64,
    /// What happens to more of them.
    pub when_full: WhenFull,
    /// What to have least of.
    pub minimise: Minimise,
    /// Where the items are that a far query has nothing to do with; by default [`FarModel::Random`], but for L1 and L2, where
    /// nothing is known about how far apart items lie and the worst case is taken.
    pub far_model: Option<FarModel>,
    /// From which functions are drawn.
    pub seed: Seed,
}

/// The similarity of texts that people mean by near if they do not say, and the usual cut.
impl Default for Request {
    fn default() -> Self {
        Self::new(Metric::Jaccard { shingling: Shingling::default() }, Self::NEAR)
    }
}

impl Request {
    /// The similarity from which on texts are near, where nothing is said.
    pub const NEAR: f64 = 0.8;

    /// How much of the near items may be missed, where nothing is said.
    pub const MAX_FALSE_NEGATIVE: f64 = 0.02;

    /// How much of the far items a filter may accept, where nothing is said. Whoever deletes duplicates loses data by a false
    /// positive and only room by a false negative, hence the stricter of the two.
    pub const MAX_FALSE_POSITIVE: f64 = 0.001;

    /// How far below `near` the similarity `far` lies in a filter that removes texts, where nothing is said.
    /// Where that would leave little of `near`, half of it.
    pub const DEDUP_GAP: f64 = 0.2;

    /// A request for what is near by a metric, with the default of everything else. A filter or an index needs a
    /// [`capacity`](Self::capacity) too.
    pub fn new(metric: Metric, near: f64) -> Self {
        Self {
            metric,
            near,
            far: None,
            max_false_negative: None,
            max_false_positive: None,
            capacity: 0,
            when_full: WhenFull::Grow,
            minimise: Minimise::Bytes,
            far_model: None,
            seed: Seed::default(),
        }
    }

    /// The same with another `far`.
    pub fn far(mut self, far: f64) -> Self {
        self.far = Some(far);
        self
    }

    /// The same for another number of items.
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = capacity;
        self
    }

    /// The same with other error rates.
    pub fn errors(mut self, max_false_negative: f64, max_false_positive: f64) -> Self {
        (self.max_false_negative, self.max_false_positive) = (Some(max_false_negative), Some(max_false_positive));
        self
    }

    /// The same with another answer to being full.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// The same by another seed.
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// Plans the cheapest filter that keeps both promises.
    ///
    /// Without `far`, a filter of texts is that of [`Self::plan_dedup`]; other metrics need it. Where the filter forgets, its
    /// generations share what may be accepted of far items, so that all together keep the promise.
    ///
    /// # Errors
    /// If the request makes no sense, or nothing keeps it: the error then says what would.
    pub fn plan_filter(&self) -> Result<Plan, PlanError> {
        if self.far.is_none() && matches!(self.metric, Metric::Jaccard { .. }) {
            return self.plan_dedup();
        }
        search::plan(self, &self.filter_goal()?)
    }

    /// Plans the filter that removes near-duplicate texts. `far` lies [`DEDUP_GAP`](Self::DEDUP_GAP) below `near` unless it is given,
    /// and unrelated texts are spared whatever `near` is.
    ///
    /// # Errors
    /// If the request makes no sense, is not about texts, or near and far are too close to be told apart.
    pub fn plan_dedup(&self) -> Result<Plan, PlanError> {
        dedup::plan(self)
    }

    /// Plans the quickest index that finds near items as often as asked for. Its candidates are verified, so that the rate of
    /// false positives is left aside. Without `far`, it lies at half of the similarity, for metrics that have one.
    ///
    /// # Errors
    /// If the request makes no sense, or no number of functions that may be drawn is enough.
    pub fn plan_index(&self) -> Result<IndexPlan, PlanError> {
        search::plan_index(self, &self.index_goal()?)
    }

    /// Plans how pairs of texts are found that are then compared exactly.
    ///
    /// # Errors
    /// If a number is out of its range, or so near to its end that too many keys would be needed.
    pub fn plan_join(&self) -> Result<JoinSpec, PlanError> {
        join::plan(self)
    }

    /// What answers this request without a filter, smallest first; nothing where the request makes no sense.
    pub fn advise(&self) -> Vec<Advice> {
        self.filter_goal().map(|goal| advice::advise(&goal)).unwrap_or_default()
    }

    /// The numbers that a filter is planned by.
    pub(crate) fn filter_goal(&self) -> Result<Goal, RequestError> {
        let near = self.distance("near", self.near)?;
        let far = self.far.ok_or(RequestError::NoFar { metric: self.metric })?;
        let goal = self.goal(near, self.distance("far", far)?)?;
        let max_false_positive = goal.max_false_positive / f64::from(self.when_full.shares());
        Ok(Goal { max_false_positive, ..goal })
    }

    fn index_goal(&self) -> Result<Goal, RequestError> {
        let near = self.distance("near", self.near)?;
        let far = match self.far {
            Some(far) => self.distance("far", far)?,
            None => self.metric.usual_far(near).ok_or(RequestError::NoFar { metric: self.metric })?,
        };
        self.goal(near, far)
    }

    fn goal(&self, near: Distance, far: Distance) -> Result<Goal, RequestError> {
        let goal = Goal {
            metric: self.metric,
            near,
            far,
            capacity: self.capacity,
            max_false_negative: self.max_false_negative.unwrap_or(Self::MAX_FALSE_NEGATIVE),
            max_false_positive: self.max_false_positive.unwrap_or(Self::MAX_FALSE_POSITIVE),
            minimise: self.minimise,
            far_model: self.far_model.clone().unwrap_or(match self.metric.farthest() {
                Some(_) => FarModel::Random,
                None => FarModel::WorstCase,
            }),
            seed: self.seed,
            grows: self.when_full != WhenFull::Refuse,
        };
        goal.check()?;
        Ok(goal)
    }

    /// What a filter that keeps the goal in each of its generations is promised to do.
    pub(super) fn terms(&self, goal: &Goal) -> Terms {
        let accepted = self.max_false_positive.unwrap_or(Self::MAX_FALSE_POSITIVE);
        Terms::new(goal.near, goal.far, goal.max_false_negative, accepted, self.capacity, self.when_full)
    }

    fn distance(&self, what: &'static str, own: f64) -> Result<Distance, RequestError> {
        self.metric.distance(own).map_err(|cause| RequestError::OutOfRange { what, cause })
    }
}

/// A request resolved: distances, and no default left open. One generation has to keep it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Goal {
    pub(crate) metric: Metric,
    pub(crate) near: Distance,
    pub(crate) far: Distance,
    pub(crate) capacity: u64,
    pub(crate) max_false_negative: f64,
    pub(crate) max_false_positive: f64,
    pub(crate) minimise: Minimise,
    pub(crate) far_model: FarModel,
    pub(crate) seed: Seed,
    /// Whether it may come to hold more than its capacity.
    pub(crate) grows: bool,
}

impl Goal {
    /// Checks that the goal makes sense at all.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        if !(self.near < self.far) {
            let (near, far) = (self.metric.own_unit(self.near), self.metric.own_unit(self.far));
            let (unit, larger_is_nearer) = (self.metric.unit(), self.metric.larger_is_nearer());
            return Err(RequestError::NearNotBelowFar { near, far, unit, larger_is_nearer });
        }
        if self.capacity == 0 {
            return Err(RequestError::NoCapacity);
        }
        let least = if self.max_false_negative == 0.0 { 0.0 } else { LOWEST_RATE };
        check_rate("false-negative", self.max_false_negative, least)?;
        check_rate("false-positive", self.max_false_positive, LOWEST_RATE)?;
        match self.far_model {
            FarModel::Random if self.metric.farthest().is_none() => Err(RequestError::NoRandomItems),
            FarModel::Background(own) => match self.metric.distance(own) {
                Ok(_) => Ok(()),
                Err(cause) => Err(RequestError::OutOfRange { what: "background", cause }),
            },
            _ => Ok(()),
        }
    }
}

/// Promises below this can't be told from none, nor those as near to 1 from 1.
pub(super) const LOWEST_RATE: f64 = 1e-12;

pub(super) fn check_rate(name: &'static str, found: f64, least: f64) -> Result<(), RequestError> {
    match found {
        found if found >= least && found <= 1.0 - LOWEST_RATE => Ok(()),
        found => Err(RequestError::NotARate { name, found, least }),
    }
}

/// What to have least of, the other deciding between equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Minimise {
    /// Memory.
    #[default]
    Bytes,
    /// Work of a query: see [`Work`](super::Work).
    Time,
}

/// Where the items are that a far query has nothing to do with. One item is always taken to lie at `far`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FarModel {
    /// Every item at `far`: a promise to the most unlucky query there is, and expensive.
    WorstCase,
    /// All others independent of the query and uniform: bits and symbols that agree by the toss of a coin (larger
    /// alphabets agree less), directions uniform on the sphere, sets with nothing in common.
    Random,
    /// All others at this distance, in the metric's own unit.
    Background(f64),
    /// All others at distances like those of a sample.
    Measured(Background),
}

/// Distances of sampled pairs of unrelated items.
///
/// A band agrees with one of `n` items with probability `1 - (1 - P)^n`, `P` being the mean over pairs of the probability
/// that the band agrees. It is estimated from the sample, and plans use the upper end of its interval (see
/// [`Self::agreement`]), so a small sample costs memory rather than the promise.
/// Limit: the mean is over all pairs. Where few queries have many relatives and most have none, the few fare worse than
/// the mean says; a threshold chosen by a labelled sample is the answer to that.
#[derive(Clone, PartialEq)]
pub struct Background {
    pairs: u64,
    /// The least distance of each bin, and how many pairs lie in it.
    bins: Vec<(Distance, u64)>,
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// The estimate.
    pub mean: f64,
    /// What it is above with the stated confidence.
    pub low: f64,
    /// What it is below with the stated confidence.
    pub high: f64,
}

impl Background {
    /// With this confidence, each end of an interval holds.
    pub(crate) const CONFIDENCE: f64 = 0.95;

    /// At most so many bins are kept, each standing for its least distance: the probability of agreeing is then never put
    /// too low.
    const MOST_BINS: usize = 1024;

    /// From the distances of independently drawn pairs, each of a query that has nothing nearer than `far` and of any item:
    /// the promise is about such queries. Pairs of items that do have near relatives would count whole families of them, and
    /// make the plan dearer than need be. `None` if there are fewer than two.
    pub fn from_distances(mut distances: Vec<Distance>) -> Option<Self> {
        if distances.len() < 2 {
            return None;
        }
        distances.sort_unstable_by(|a, b| a.value().total_cmp(&b.value()));
        let pairs = distances.len() as u64;
        let mut bins: Vec<(Distance, u64)> =
            distances.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        if bins.len() > Self::MOST_BINS {
            let (least, most) = (bins[0].0.value(), bins[bins.len() - 1].0.value());
            let bin = |distance: Distance| {
                (((distance.value() - least) / (most - least) * Self::MOST_BINS as f64) as usize)
                    .min(Self::MOST_BINS - 1)
            };
            let merged = bins.chunk_by(|a, b| bin(a.0) == bin(b.0));
            bins = merged.map(|run| (run[0].0, run.iter().map(|(_, count)| count).sum())).collect();
        }
        Some(Self { pairs, bins })
    }

    /// How many pairs were sampled.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The distance below which this part of the pairs lies, to the width of a bin.
    pub fn quantile(&self, part: f64) -> Distance {
        let below = part.clamp(0.0, 1.0) * self.pairs as f64;
        let mut seen = 0;
        let reached = self.bins.iter().find(|(_, count)| {
            seen += count;
            seen as f64 >= below
        });
        reached.or(self.bins.last()).map_or(Distance::ZERO, |(distance, _)| *distance)
    }

    /// How likely a band of `rows` functions agrees for a random pair no nearer than `far`, and the interval in which that lies; nearer
    /// pairs are not far queries' business and count as not agreeing.
    ///
    /// The interval is the empirical Bernstein bound (Maurer & Pontil 2009), which holds for every sample size and every
    /// distribution, since no such pair agrees more often than one at `far`.
    pub fn agreement(&self, family: &Family, rows: u32, far: Distance) -> (f64, RangeInclusive<f64>) {
        let Interval { mean, low, high } = self.agreement_by(far, |distance| family.band_probability(distance, rows));
        (mean, low..=high)
    }

    pub(super) fn agreement_by(&self, far: Distance, band: impl Fn(Distance) -> f64) -> Interval {
        let most = band(far);
        let (mut sum, mut squares) = (0.0, 0.0);
        for &(distance, count) in self.bins.iter().filter(|(distance, _)| *distance >= far) {
            let p = band(distance).min(most);
            sum += count as f64 * p;
            squares += count as f64 * p * p;
        }
        let count = self.pairs as f64;
        let mean = sum / count;
        let variance = ((squares - sum * mean) / (count - 1.0)).max(0.0);
        let log = libm::log(2.0 / (1.0 - Self::CONFIDENCE));
        let width = libm::sqrt(2.0 * variance * log / count) + 7.0 * most * log / (3.0 * (count - 1.0));
        Interval { mean, low: (mean - width).max(0.0), high: (mean + width).min(most) }
    }
}

/// Without the bins, which would fill a screen.
impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("pairs", &self.pairs).field("bins", &self.bins.len()).finish()
    }
}

/// A request that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A number that the metric has not.
    #[error("{what}: {cause}")]
    OutOfRange {
        /// Which: `near`, `far` or `background`.
        what: &'static str,
        /// Why.
        cause: MetricError,
    },
    /// Near and far exchanged or equal.
    #[error(
        "near is {near} and far is {far} ({unit}): far must be farther away, and the gap between them is the grey zone"
    )]
    NearNotBelowFar {
        /// Near, in the metric's own unit.
        near: f64,
        /// Far, in the metric's own unit.
        far: f64,
        /// That unit.
        unit: &'static str,
        /// Whether its numbers grow as items get nearer.
        larger_is_nearer: bool,
    },
    /// A metric for which nothing tells what is far.
    #[error("far is missing: from where on are items of {} not near?", metric.name())]
    NoFar {
        /// The metric.
        metric: Metric,
    },
    /// An option that a filter of texts without `far` has no use for.
    #[error("{what} has a meaning only beside far: give it too")]
    OnlyBesideFar {
        /// Which: `far_model` or `minimise`.
        what: &'static str,
    },
    /// Texts are removed and joined by their Jaccard similarity.
    #[error("{what} is planned for jaccard only, not for {}", metric.name())]
    NotTexts {
        /// What was asked for.
        what: &'static str,
        /// The metric.
        metric: Metric,
    },
    /// No similarity that something can be near by.
    #[error("near is {found}: it is a similarity between 0 and 1, but not 0, such as 0.8")]
    Near {
        /// What was asked for.
        found: f64,
    },
    /// Far is not below near.
    #[error("far is {far} and near is {near}: far must lie between 0 and near")]
    Far {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// A filter for nothing.
    #[error("a filter is planned for at least 1 item: give the number of distinct items that you expect")]
    NoCapacity,
    /// Not a rate.
    #[error(
        "the {name} rate {found} is not a rate that can be promised: give one from {} to below 1",
        if *least > 0.0 { format!("{least:e}") } else { "0".to_owned() }
    )]
    NotARate {
        /// Which.
        name: &'static str,
        /// The rate asked for.
        found: f64,
        /// The least.
        least: f64,
    },
    /// Uniform items of an unbounded space.
    #[error(
        "L1 and L2 have no random items to compare with: state a background distance, measure it, or take the worst case"
    )]
    NoRandomItems,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{family::MinHash, hash::Rng};

    fn distance(value: f64) -> Distance {
        Distance::new(value).unwrap()
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        // Similarities uniform in 0 to .6, so E[J^2] = .36/3.
        let (family, far, rows) = (MinHash::default().into(), distance(0.4), 2);
        let mut rng = Rng::new(Seed::new(5));
        let runs = 400;
        let missed = (0..runs)
            .filter(|_| {
                let sample = (0..300).map(|_| distance(1.0 - 0.6 * rng.unit())).collect();
                let (mean, within) = Background::from_distances(sample).unwrap().agreement(&family, rows, far);
                assert!(within.contains(&mean));
                !within.contains(&0.12)
            })
            .count();
        // Each end may fail in 5 %; Bernstein's bounds are wide, so they fail far less.
        assert!(missed as f64 <= 0.1 * f64::from(runs), "{missed} of {runs}");
    }

    #[test]
    fn bins_never_understate_agreement() {
        let mut rng = Rng::new(Seed::new(6));
        let sample: Vec<Distance> = (0..5_000).map(|_| distance(0.4 + 0.6 * rng.unit())).collect();
        let exact: f64 = sample.iter().map(|d| libm::pow(1.0 - d.value(), 4.0)).sum::<f64>() / 5_000.0;
        let binned = Background::from_distances(sample).unwrap();
        assert!(binned.bins.len() <= Background::MOST_BINS);
        let mean = binned.agreement(&MinHash::default().into(), 4, distance(0.4)).0;
        assert!(exact <= mean && mean <= 1.01 * exact, "{mean} for {exact}");
        assert!((binned.quantile(0.5).value() - 0.7).abs() < 0.02);
    }

    #[test]
    fn senseless_requests_say_why() {
        let good = Request::new(Metric::Hamming { bits: 64 }, 3.0).far(20.0).capacity(100);
        assert!(good.filter_goal().is_ok());
        let why = |change: fn(&mut Request)| {
            let mut request = good.clone();
            change(&mut request);
            request.filter_goal().unwrap_err().to_string()
        };
        assert!(why(|request| request.near = 20.0).contains("near is 20 and far is 20 (bits)"));
        assert!(why(|request| request.far = Some(65.0)).contains("far: 65 bits lies outside of hamming"));
        assert!(why(|request| request.far = None).contains("far is missing"));
        assert!(why(|request| request.far_model = Some(FarModel::Background(65.0))).contains("background: 65 bits"));
        assert!(why(|request| request.capacity = 0).contains("at least 1 item"));
        assert!(why(|request| request.max_false_positive = Some(0.0)).contains("false-positive rate 0 "));
        assert!(why(|request| request.max_false_negative = Some(f64::NAN)).contains("NaN"));
        let random = |request: &mut Request| {
            (request.metric, request.far_model) = (Metric::L2 { dimension: 4 }, Some(FarModel::Random));
        };
        assert!(why(random).contains("worst case"));
    }
}
