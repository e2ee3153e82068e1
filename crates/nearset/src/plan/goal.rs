//! What is wanted of a filter, and what is assumed about everything else in it.
//!
//! Claim: of the items at the near distance from a stored one at least `1 - max_false_negative` are accepted, at any load,
//! an empty filter's included: chance hits are counted on only by rules that follow the fill. Of the queries with nothing nearer than `far`, at most
//! `max_false_positive` are accepted while no more than `capacity` items are in, under the far model.
//! Both are averages over seeds: functions are drawn once and serve every query, so one filter may do a little better or
//! worse, the more so the fewer positions or components there are to draw from.
//! Invariant: every default of the library's planning is in [`Goal::new`].

use std::fmt;

use super::Metric;
use crate::{Distance, Family, LshFamily, Seed};

/// What a filter is to do.
///
/// ```
/// use nearset::plan::{Goal, Metric, plan};
///
/// let metric = Metric::Jaccard { shingling: "words:5".parse()? };
/// let goal = Goal::new(metric, metric.distance(0.8)?, metric.distance(0.5)?, 1_000_000);
/// let plan = plan(&goal)?;
/// assert!(plan.false_negative <= goal.max_false_negative && plan.false_positive <= goal.max_false_positive);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// What distance means.
    pub metric: Metric,
    /// Up to here, items are to be found.
    pub near: Distance,
    /// From here on, they are not.
    pub far: Distance,
    /// How many distinct items are expected.
    pub capacity: u64,
    /// The most of what lies at `near` that may be missed; 0 for none at all, which only Hamming distances can promise.
    pub max_false_negative: f64,
    /// The most of what lies at `far` and beyond that may be accepted.
    pub max_false_positive: f64,
    /// What to have least of.
    pub minimise: Minimise,
    /// Where the items are that a far query has nothing to do with.
    pub far_model: FarModel,
    /// From which the filter draws its functions.
    pub seed: Seed,
}

impl Goal {
    /// A goal with the usual promises: 2 % of the near items may be missed and 1 in 1,000 far ones accepted, in the fewest
    /// bytes. Whoever deletes duplicates loses data by a false positive and only room by a false negative, hence the
    /// stricter second. Unrelated items are [`FarModel::Random`], but for L1 and L2, where nothing is known about how far
    /// apart items lie and the worst case is taken.
    pub fn new(metric: Metric, near: Distance, far: Distance, capacity: u64) -> Self {
        Self {
            metric,
            near,
            far,
            capacity,
            max_false_negative: 0.02,
            max_false_positive: 0.001,
            minimise: Minimise::Bytes,
            far_model: match metric {
                Metric::L1 { .. } | Metric::L2 { .. } => FarModel::WorstCase,
                _ => FarModel::Random,
            },
            seed: Seed::default(),
        }
    }

    /// That the goal makes sense at all.
    pub(super) fn check(&self) -> Result<(), GoalError> {
        let unit = |distance| self.metric.own_unit(distance);
        if !(self.near < self.far) {
            return Err(GoalError::NearNotBelowFar {
                near: unit(self.near),
                far: unit(self.far),
                unit: self.metric.unit(),
            });
        }
        if let Some(most) = self.metric.farthest()
            && self.far > most
        {
            return Err(GoalError::TooFar { far: self.far.value(), most: most.value() });
        }
        if self.capacity == 0 {
            return Err(GoalError::NoCapacity);
        }
        let rate = |name, found: f64, least: f64| match found {
            found if found >= least && found <= 1.0 - LOWEST_RATE => Ok(()),
            found => Err(GoalError::NotARate { name, found, least }),
        };
        rate("false-negative", self.max_false_negative, 0.0)?;
        rate("false-positive", self.max_false_positive, LOWEST_RATE)?;
        if self.max_false_negative > 0.0 {
            rate("false-negative", self.max_false_negative, LOWEST_RATE)?;
        }
        if self.far_model == FarModel::Random && matches!(self.metric, Metric::L1 { .. } | Metric::L2 { .. }) {
            return Err(GoalError::NoRandomItems);
        }
        Ok(())
    }
}

/// Promises below this can't be told from none, nor those as near to 1 from 1.
const LOWEST_RATE: f64 = 1e-12;

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
    /// Every item at `far`: a promise to the most unlucky query there is, and dear.
    WorstCase,
    /// All others independent of the query and uniform: bits and symbols that agree by the toss of a coin (larger
    /// alphabets agree less), directions uniform on the sphere, sets with nothing in common.
    Random,
    /// All others at this distance.
    Background(Distance),
    /// All others at distances like those of a sample.
    Measured(Background),
}

/// Distances of sampled pairs of unrelated items.
///
/// A band agrees with one of `n` items with probability `1 - (1 - P)^n`, `P` being the mean over pairs of the probability
/// that the band agrees. It is estimated from the sample, and plans use the upper end of its interval (see
/// [`Self::agreement`]), so a small sample costs memory rather than the promise.
/// Limit: the mean is over all pairs. Where few queries have many relatives and most have none, the few fare worse than
/// the mean says; a threshold calibrated on a sample ([`calibrate`](super::calibrate)) is the answer to that.
#[derive(Clone, PartialEq)]
pub struct Background {
    pairs: u64,
    /// The least distance of each bin, and how many pairs lie in it.
    bins: Vec<(Distance, u64)>,
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// What it is above with the stated confidence.
    pub low: f64,
    /// What it is below with the stated confidence.
    pub high: f64,
}

impl Background {
    /// With this confidence, each end of an interval holds.
    pub const CONFIDENCE: f64 = 0.95;

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

    /// How likely a band of `rows` functions agrees for a random pair no nearer than `far`; nearer pairs are not far
    /// queries' business and count as not agreeing.
    ///
    /// The interval is the empirical Bernstein bound (Maurer & Pontil 2009), which holds for every sample size and every
    /// distribution, since no such pair agrees more often than one at `far`.
    pub fn agreement(&self, family: &Family, rows: u32, far: Distance) -> Interval {
        self.agreement_by(far, |distance| family.band_probability(distance, rows))
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

/// A goal that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GoalError {
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
    },
    /// A distance that no pair has.
    #[error("far is at distance {far}, but no two items are more than {most} apart")]
    TooFar {
        /// Far.
        far: f64,
        /// The most.
        most: f64,
    },
    /// A filter for nothing.
    #[error("a filter is planned for at least 1 item: give the number of distinct items that you expect")]
    NoCapacity,
    /// Not a rate.
    #[error(
        "the {name} rate {found} is not a rate that can be promised: it must be at least {least}, and below 1 by 1e-12"
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
                let interval = Background::from_distances(sample).unwrap().agreement(&family, rows, far);
                assert!(interval.low <= interval.mean && interval.mean <= interval.high);
                !(interval.low <= 0.12 && 0.12 <= interval.high)
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
        let mean = binned.agreement(&MinHash::default().into(), 4, distance(0.4)).mean;
        assert!(exact <= mean && mean <= 1.01 * exact, "{mean} for {exact}");
        assert!((binned.quantile(0.5).value() - 0.7).abs() < 0.02);
    }

    #[test]
    fn senseless_goals_say_why() {
        let metric = Metric::Hamming { bits: 64 };
        let good = Goal::new(metric, distance(3.0), distance(20.0), 100);
        assert_eq!(good.check(), Ok(()));
        let why = |change: fn(&mut Goal)| {
            let mut goal = good.clone();
            change(&mut goal);
            goal.check().unwrap_err().to_string()
        };
        assert!(why(|goal| goal.near = goal.far).contains("near is 20 and far is 20 (bits)"));
        assert!(why(|goal| goal.far = Distance::new(65.0).unwrap()).contains("more than 64 apart"));
        assert!(why(|goal| goal.capacity = 0).contains("at least 1 item"));
        assert!(why(|goal| goal.max_false_positive = 0.0).contains("false-positive rate 0 "));
        assert!(why(|goal| goal.max_false_negative = f64::NAN).contains("NaN"));
        assert!(why(|goal| goal.metric = Metric::L2 { dimension: 4 }).contains("worst case"));
    }
}
