//! Amplification: AND, OR, their cascades, and the threshold between the two.
//!
//! Claim: applied to a family with `Pr[h(x) = h(y)] = p`, a step gives one with `Pr = f(p)`: `p^r` for `And(r)`, where
//! all of `r` agree, and `1 - (1 - p)^b` for `Or(b)`, where at least one of `b` agrees. An AND followed by an OR is the
//! S-curve of MinHash banding (course notes by Christophides 2019, and by Kesselheim & Mehlhorn). A threshold `t` of
//! `b` lies between OR (`t = 1`) and AND (`t = b`).
//! Invariant: a probability and its complement are carried side by side, so neither end of the curve is rounded away.

use super::{all_of, any_of, binomial};

/// Returns the lowest and the highest probability that any of several filters accepts a query with a neighbour in one
/// of them, over the choice of that filter. Filter `i` accepts with probability `holding[i]` if it holds the neighbour,
/// and with `unrelated[i]` if it does not.
///
/// With the neighbour in `i`, all of them miss it with probability
/// `(1 - holding[i]) * prod of (1 - unrelated[j]) over j != i`.
pub fn any_filter(holding: &[f64], unrelated: &[f64]) -> (f64, f64) {
    let misses = |range: &[f64]| range.iter().map(|accepted| 1.0 - accepted).product::<f64>();
    let accepted = |i: usize| 1.0 - (1.0 - holding[i]) * misses(&unrelated[..i]) * misses(&unrelated[i + 1..]);
    let all = (0..holding.len()).map(accepted);
    all.fold((1.0, 0.0), |(least, most), accepted| (accepted.min(least), accepted.max(most)))
}

/// One step of amplification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// All of this many agree.
    And(u32),
    /// At least one of this many agrees.
    Or(u32),
    /// At least `need` of `of` agree: the threshold between the two.
    AtLeast {
        /// The number of functions.
        of: u32,
        /// The number of functions that must agree.
        need: u32,
    },
}

impl Step {
    /// Returns the number of functions that the step combines.
    pub const fn of(self) -> u32 {
        match self {
            Step::And(of) | Step::Or(of) | Step::AtLeast { of, .. } => of,
        }
    }

    /// Returns the number of functions that must agree.
    pub const fn need(self) -> u32 {
        match self {
            Step::And(of) => of,
            Step::Or(_) => 1,
            Step::AtLeast { need, .. } => need,
        }
    }

    fn apply(self, pair: (f64, f64)) -> (f64, f64) {
        match self {
            Step::And(count) => all_of(pair, f64::from(count)),
            Step::Or(count) => any_of(pair, f64::from(count)),
            Step::AtLeast { of, need } => (binomial::at_least(of, pair.0, need), binomial::below(of, pair.0, need)),
        }
    }

    fn slope(self, (p, q): (f64, f64)) -> f64 {
        let count = f64::from(self.of());
        match self {
            Step::And(_) => count * libm::pow(p, count - 1.0),
            Step::Or(_) => count * libm::pow(q, count - 1.0),
            Step::AtLeast { need: 0, .. } => 0.0,
            Step::AtLeast { of, need } => count * binomial::pmf(of - 1, p, need - 1),
        }
    }
}

/// A sequence of amplification steps, the first applied directly to the hash functions.
///
/// ```
/// use nearset_theory::amplify::{Cascade, Step};
///
/// let banding = Cascade::new([Step::And(5), Step::Or(20)]);
/// assert!((banding.probability(0.8) - 0.9996).abs() < 5e-5);
/// assert_eq!(banding.functions(), 100.0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    steps: Vec<Step>,
}

impl Cascade {
    /// Creates a cascade of these steps.
    ///
    /// # Panics
    /// If a step has a count of 0, which combines nothing.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Step> = steps.into_iter().collect();
        assert!(steps.iter().all(|step| step.of() > 0), "{steps:?}: every step must combine at least 1 function");
        Self { steps }
    }

    /// Returns the steps, the first of which is applied directly to the hash functions.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the number of hash functions that one value takes: the product of the counts.
    pub fn functions(&self) -> f64 {
        self.steps.iter().map(|step| f64::from(step.of())).product()
    }

    /// Returns the probability of agreement after all steps when single functions agree with probability `p`.
    pub fn probability(&self, p: f64) -> f64 {
        self.both(p).0
    }

    /// Returns one minus [`probability`](Self::probability), to full precision however small.
    pub fn miss(&self, p: f64) -> f64 {
        self.both(p).1
    }

    /// Returns the derivative of the probability with respect to `p`.
    pub fn slope(&self, p: f64) -> f64 {
        let p = p.clamp(0.0, 1.0);
        let mut pair = (p, 1.0 - p);
        let mut slope = 1.0;
        for step in &self.steps {
            slope *= step.slope(pair);
            pair = step.apply(pair);
        }
        slope
    }

    /// Returns the `p` strictly between 0 and 1 that the cascade leaves unchanged, below which it drives probabilities
    /// to 0 and above which to 1. Returns `None` when the cascade only lowers or only raises.
    pub fn fixed_point(&self) -> Option<f64> {
        let (mut low, mut high) = (1e-12, 1.0 - 1e-12);
        if !(self.probability(low) < low && self.miss(high) < 1.0 - high) {
            return None;
        }
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if self.probability(middle) < middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(0.5 * (low + high))
    }

    /// Returns the `p` at which the probability rises fastest, which is where the cascade best separates near from far.
    /// The result is exact to 1e-6 when the slope has a single peak, as it has for every alternation of AND and OR.
    pub fn steepest(&self) -> f64 {
        // A coarse grid comes first, since the slope is flat, and 0 to the last bit, away from its peak.
        let grid = 1_000;
        let at = |i: u32| f64::from(i) / f64::from(grid);
        let best = (0..=grid).max_by(|a, b| self.slope(at(*a)).total_cmp(&self.slope(at(*b)))).unwrap_or(0);
        let (mut low, mut high) = (at(best.saturating_sub(1)), at((best + 1).min(grid)));
        for _ in 0..40 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if self.slope(left) < self.slope(right) {
                low = left;
            } else {
                high = right;
            }
        }
        0.5 * (low + high)
    }

    fn both(&self, p: f64) -> (f64, f64) {
        let p = p.clamp(0.0, 1.0);
        self.steps.iter().fold((p, 1.0 - p), |pair, step| step.apply(pair))
    }
}

/// Returns the S-curve of banding, `1 - (1 - s^rows)^bands`.
pub fn s_curve(similarity: f64, rows: u32, bands: u32) -> f64 {
    let s = similarity.clamp(0.0, 1.0);
    any_of(all_of((s, 1.0 - s), f64::from(rows)), f64::from(bands)).0
}

/// Returns where the S-curve climbs, by the notes' rule of thumb: `(1 / bands)^(1 / rows)`.
pub fn s_curve_threshold(rows: u32, bands: u32) -> f64 {
    libm::pow(f64::from(bands), -1.0 / f64::from(rows))
}

/// Returns the probability that a band hits, by agreement or by chance: `1 - (1 - p^rows)(1 - load)`.
pub fn band_hit(p: f64, rows: u32, load: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    let (agree, differ) = all_of((p, 1.0 - p), f64::from(rows));
    // A sum of positive terms: neither a rare agreement nor a nearly empty table is rounded away.
    agree + differ * load
}

/// Returns the probability that a filter accepts: `Pr[Bin(bands, 1 - (1 - p^rows)(1 - load)) >= threshold]`. This one
/// formula covers every structure of the library.
pub fn acceptance(p: f64, rows: u32, bands: u32, threshold: u32, load: f64) -> f64 {
    binomial::at_least(bands, band_hit(p, rows, load), threshold)
}

/// Returns one minus [`acceptance`], to full precision however small.
pub fn rejection(p: f64, rows: u32, bands: u32, threshold: u32, load: f64) -> f64 {
    binomial::below(bands, band_hit(p, rows, load), threshold)
}

#[cfg(test)]
mod tests {
    use super::{Step::*, *};
    use crate::{assert_close, assert_printed};

    #[test]
    fn any_of_several_filters_accepts() {
        assert_eq!(any_filter(&[0.7], &[0.1]), (0.7, 0.7));
        let (least, most) = any_filter(&[0.9, 0.5], &[0.2, 0.4]);
        // With the neighbour in the second filter: 1 - 0.5 * 0.8; in the first: 1 - 0.1 * 0.6.
        assert!((least - 0.6).abs() < 1e-12 && (most - 0.94).abs() < 1e-12, "{least} {most}");
    }

    #[test]
    fn banding_twenty_by_five_is_as_printed() {
        let banding = Cascade::new([And(5), Or(20)]);
        for (s, printed) in [(0.2, 0.006), (0.3, 0.047), (0.4, 0.186), (0.5, 0.470), (0.6, 0.802), (0.7, 0.975)] {
            assert_printed(s_curve(s, 5, 20), printed, 3);
            assert_eq!(s_curve(s, 5, 20), banding.probability(s));
        }
        assert_printed(s_curve(0.8, 5, 20), 0.9996, 4);
    }

    #[test]
    fn and_or_and_or_and_tables_are_as_printed() {
        let and_or = Cascade::new([And(4), Or(4)]);
        let printed = [0.0064, 0.0320, 0.0985, 0.2275, 0.4260, 0.6666, 0.8785, 0.9860];
        for (i, printed) in printed.into_iter().enumerate() {
            assert_printed(and_or.probability(0.2 + 0.1 * i as f64), printed, 4);
        }
        let or_and = Cascade::new([Or(4), And(4)]);
        let printed = [0.0140, 0.1215, 0.3334, 0.5740, 0.7725, 0.9015, 0.9680, 0.9936];
        for (i, printed) in printed.into_iter().enumerate() {
            assert_printed(or_and.probability(0.1 + 0.1 * i as f64), printed, 4);
        }
    }

    #[test]
    fn the_four_fold_cascade_is_as_printed() {
        let cascade = Cascade::new([Or(4), And(4), And(4), Or(4)]);
        assert_eq!(cascade.functions(), 256.0);
        assert_printed(cascade.probability(0.8), 0.9999996, 7);
        assert_printed(cascade.probability(0.2), 0.0008715, 7);
    }

    #[test]
    fn or_and_mirrors_and_or() {
        let (and_or, or_and) = (Cascade::new([And(3), Or(7)]), Cascade::new([Or(3), And(7)]));
        for i in 0..=100 {
            let p = f64::from(i) / 100.0;
            assert_close(or_and.miss(1.0 - p), and_or.probability(p), 1e-12);
        }
    }

    #[test]
    fn both_ends_keep_their_precision() {
        let cascade = Cascade::new([And(8), Or(16)]);
        assert_close(cascade.probability(1e-20), 16e-160, 1e-12);
        assert_close(Cascade::new([Or(16)]).miss(0.999), 1e-48, 1e-11);
        assert_eq!(cascade.probability(1.0), 1.0);
        assert_eq!(cascade.miss(0.0), 1.0);
    }

    #[test]
    fn fixed_points_stay_and_neighbours_flee() {
        for steps in
            [vec![And(4), Or(4)], vec![Or(4), And(4)], vec![Or(4), And(4), And(4), Or(4)], vec![And(5), Or(20)]]
        {
            let cascade = Cascade::new(steps);
            let fixed = cascade.fixed_point().unwrap();
            assert_close(cascade.probability(fixed), fixed, 1e-12);
            assert!(cascade.slope(fixed) > 1.0);
            assert!(cascade.probability(fixed - 0.01) < fixed - 0.01);
            assert!(cascade.probability(fixed + 0.01) > fixed + 0.01);
        }
        assert_eq!(Cascade::new([And(4)]).fixed_point(), None);
        assert_eq!(Cascade::new([Or(4)]).fixed_point(), None);
    }

    #[test]
    fn the_steepest_point_is_where_the_second_derivative_vanishes() {
        for (rows, bands) in [(5u32, 20u32), (4, 4), (8, 16), (13, 9)] {
            // d²/ds² (1 - s^r)^b = 0 at s^r = (r - 1)/(r b - 1).
            let (r, b) = (f64::from(rows), f64::from(bands));
            let exact = libm::pow((r - 1.0) / (r * b - 1.0), 1.0 / r);
            assert!((Cascade::new([And(rows), Or(bands)]).steepest() - exact).abs() < 1e-6);
        }
        // The rule of thumb is close: 1/20 against 4/99 under the fifth root.
        assert_printed(s_curve_threshold(5, 20), 0.549, 3);
        assert_printed(Cascade::new([And(5), Or(20)]).steepest(), 0.526, 3);
    }

    #[test]
    fn slopes_are_derivatives() {
        let cascade = Cascade::new([Or(4), And(4), And(3), Or(5)]);
        for p in [0.1, 0.3, 0.42, 0.6] {
            let step = 1e-6;
            let difference = (cascade.probability(p + step) - cascade.probability(p - step)) / (2.0 * step);
            assert_close(cascade.slope(p), difference, 1e-6);
        }
    }

    #[test]
    fn a_threshold_of_one_is_an_or_and_of_all_an_and() {
        for p in [0.0, 0.1, 0.5, 0.9, 1.0] {
            assert!((acceptance(p, 5, 20, 1, 0.0) - s_curve(p, 5, 20)).abs() < 1e-13);
            assert!((acceptance(p, 5, 20, 20, 0.0) - libm::pow(p, 100.0)).abs() < 1e-13);
        }
        // With nothing in common, only chance hits remain: a classic Bloom filter, table by table.
        assert_close(acceptance(0.0, 5, 7, 7, 0.5), libm::pow(0.5, 7.0), 1e-12);
        assert_close(acceptance(0.6, 5, 128, 42, 0.3) + rejection(0.6, 5, 128, 42, 0.3), 1.0, 1e-12);
    }
}
