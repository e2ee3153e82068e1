//! Exact binomial tails.
//!
//! Claim: a tail has a relative error below 1e-11 for up to a million trials, whether it is .5 or 1e-300. A tail below
//! the smallest normal `f64`, about 2e-308, may be 0.
//! Invariant: only positive terms are added, and one minus the other tail is only ever taken for the larger of the two.
//!
//! One term comes from Loader's saddle-point form ("Fast and accurate computation of binomial probabilities", 2000),
//! which never subtracts large logarithms; the others follow by the ratio of neighbours, outwards from the largest,
//! until they no longer count. One tail therefore takes as many steps as a few standard deviations, and [`Tails`]
//! computes all of them for about the same cost.

/// Returns `Pr[Bin(trials, p) = successes]`.
pub fn pmf(trials: u32, p: f64, successes: u32) -> f64 {
    libm::exp(ln_pmf(trials, Odds::new(p), successes))
}

/// Returns `Pr[Bin(trials, p) >= threshold]`, the probability that a filter accepts.
///
/// ```
/// use nearset_theory::binomial;
///
/// assert_eq!(binomial::at_least(2, 0.5, 1), 0.75);
/// // Far below what one minus the other tail could distinguish from zero.
/// assert!((binomial::at_least(100, 1e-3, 100) / 1e-300 - 1.0).abs() < 1e-11);
/// ```
pub fn at_least(trials: u32, p: f64, threshold: u32) -> f64 {
    Odds::new(p).at_least(trials, threshold)
}

/// Returns `Pr[Bin(trials, p) < threshold]`, the probability that a filter misses.
pub fn below(trials: u32, p: f64, threshold: u32) -> f64 {
    if threshold > trials {
        return if p.is_nan() { p } else { 1.0 };
    }
    Odds::new(p).swapped().at_least(trials, trials + 1 - threshold)
}

/// Returns `Pr[Bin(trials, p) <= successes]`.
pub fn cdf(trials: u32, p: f64, successes: u32) -> f64 {
    below(trials, p, successes.saturating_add(1))
}

/// Returns the smallest threshold with `Pr[Bin(trials, p) >= threshold] <= max_tail`: the most permissive filter that
/// still keeps its promise on false positives. Returns `trials + 1`, which nothing reaches, when even `trials` is too
/// low.
pub fn smallest_threshold(trials: u32, p: f64, max_tail: f64) -> u32 {
    Odds::new(p).smallest_threshold(trials, max_tail)
}

/// Returns the largest threshold with `Pr[Bin(trials, p) < threshold] <= max_tail`: the strictest filter that still
/// keeps its promise on false negatives. Returns 0, which everything reaches, when even 1 is too high.
pub fn largest_threshold(trials: u32, p: f64, max_tail: f64) -> u32 {
    trials + 1 - Odds::new(p).swapped().smallest_threshold(trials, max_tail)
}

/// Returns `Pr[Poisson(mean) = count]`.
pub fn poisson_pmf(mean: f64, count: u32) -> f64 {
    if count == 0 {
        return libm::exp(-mean);
    }
    let x = f64::from(count);
    libm::exp(-stirling_error(count) - deviance(x, mean)) / (2.0 * std::f64::consts::PI * x).sqrt()
}

/// All tails of one distribution, computed in one pass.
#[derive(Debug, Clone, Default)]
pub struct Tails {
    at_least: Vec<f64>,
    below: Vec<f64>,
}

impl Tails {
    /// Computes the tails of `Bin(trials, p)`.
    pub fn new(trials: u32, p: f64) -> Self {
        let mut tails = Self::default();
        tails.refill(trials, p);
        tails
    }

    /// Replaces these tails by those of another distribution, reusing the allocation.
    pub fn refill(&mut self, trials: u32, p: f64) {
        let odds = Odds::new(p);
        let count = trials as usize;
        let start = if p.is_nan() { p } else { 0.0 };
        self.below.clear();
        self.below.resize(count + 2, start);
        self.at_least.clear();
        self.at_least.resize(count + 2, start);
        if p.is_nan() {
            return;
        }

        // First come the terms, stored one place to the right, then their sums from either end.
        let terms = &mut self.below[1..];
        let mode = odds.mode(trials) as usize;
        terms[mode] = libm::exp(ln_pmf(trials, odds, mode as u32));
        let ratio = odds.p / odds.q;
        let mut k = mode;
        while k < count && terms[k] >= f64::MIN_POSITIVE {
            terms[k + 1] = terms[k] * (ratio * (count - k) as f64 / (k + 1) as f64);
            k += 1;
        }
        let ratio = odds.q / odds.p;
        let mut k = mode;
        while k > 0 && terms[k] >= f64::MIN_POSITIVE {
            terms[k - 1] = terms[k] * (ratio * k as f64 / (count - k + 1) as f64);
            k -= 1;
        }
        let mut sum = 0.0;
        for (tail, term) in self.at_least.iter_mut().zip(terms).rev().skip_while(|(_, term)| **term == 0.0) {
            sum += *term;
            *tail = at_most_one(sum);
        }
        let mut sum = 0.0;
        for slot in &mut self.below {
            sum += *slot;
            *slot = at_most_one(sum);
        }
    }

    /// Returns `Pr[X >= threshold]`.
    pub fn at_least(&self, threshold: u32) -> f64 {
        self.at_least.get(threshold as usize).copied().unwrap_or(0.0)
    }

    /// Returns `Pr[X < threshold]`.
    pub fn below(&self, threshold: u32) -> f64 {
        self.below.get(threshold as usize).copied().unwrap_or(1.0)
    }

    /// Like the function [`smallest_threshold`].
    pub fn smallest_threshold(&self, max_tail: f64) -> u32 {
        let never = self.at_least.len().saturating_sub(1);
        self.at_least.partition_point(|tail| !(*tail <= max_tail)).min(never) as u32
    }

    /// Like the function [`largest_threshold`].
    pub fn largest_threshold(&self, max_tail: f64) -> u32 {
        self.below.partition_point(|tail| *tail <= max_tail).saturating_sub(1) as u32
    }
}

/// A probability and its complement, so that taking the other tail involves no rounding.
#[derive(Debug, Clone, Copy)]
struct Odds {
    p: f64,
    q: f64,
}

impl Odds {
    fn new(p: f64) -> Self {
        let p = p.clamp(0.0, 1.0);
        Self { p, q: 1.0 - p }
    }

    fn swapped(self) -> Self {
        Self { p: self.q, q: self.p }
    }

    fn mode(self, trials: u32) -> u32 {
        (((f64::from(trials) + 1.0) * self.p) as u32).min(trials)
    }

    fn at_least(self, trials: u32, threshold: u32) -> f64 {
        if self.p.is_nan() {
            return f64::NAN;
        }
        if threshold == 0 {
            return 1.0;
        }
        if threshold > trials || self.p == 0.0 {
            return 0.0;
        }
        if self.q == 0.0 {
            return 1.0;
        }
        if threshold > self.mode(trials) {
            self.falling_tail(trials, threshold)
        } else {
            1.0 - self.swapped().falling_tail(trials, trials + 1 - threshold)
        }
    }

    /// Returns `Pr[X >= start]`, provided that the terms fall from `start` on.
    fn falling_tail(self, trials: u32, start: u32) -> f64 {
        let ratio = self.p / self.q;
        let (mut term, mut sum) = (1.0, 1.0);
        for k in start..trials {
            let step = ratio * f64::from(trials - k) / f64::from(k + 1);
            term *= step;
            sum += term;
            // The rest is at most a geometric series in `step`.
            if term < 1e-17 * sum * (1.0 - step) {
                break;
            }
        }
        // The first term may be subnormal even if the sum is not.
        at_most_one(libm::exp(ln_pmf(trials, self, start) + libm::log(sum)))
    }

    fn smallest_threshold(self, trials: u32, max_tail: f64) -> u32 {
        let never = trials + 1;
        if max_tail >= 1.0 {
            return 0;
        }
        if self.p == 0.0 {
            return 1.min(never);
        }
        // Written so that a NaN meets no bound.
        if !(self.q > 0.0 && max_tail > 0.0) {
            return never;
        }
        // Starts from a guess by the normal quantile and the skew, then doubles the step until the threshold is
        // bracketed, then halves it.
        let keeps = |threshold| self.at_least(trials, threshold) <= max_tail;
        let count = f64::from(trials);
        let z = normal_quantile(max_tail);
        let guess =
            count * self.p + z * (count * self.p * self.q).sqrt() + (z * z - 1.0) * (1.0 - 2.0 * self.p) / 6.0 + 0.5;
        let guess = guess.clamp(1.0, count.max(1.0)) as u32;
        let (mut low, mut high) = (0, never);
        let mut step = 1;
        if keeps(guess) {
            high = guess;
            while high - low > step {
                if !keeps(high - step) {
                    low = high - step;
                    break;
                }
                high -= step;
                step *= 2;
            }
        } else {
            low = guess;
            while high - low > step {
                if keeps(low + step) {
                    high = low + step;
                    break;
                }
                low += step;
                step *= 2;
            }
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if keeps(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

/// Like `min(1)`, but keeps a NaN.
fn at_most_one(sum: f64) -> f64 {
    if sum > 1.0 { 1.0 } else { sum }
}

/// Returns the logarithm of one term, in Loader's form.
fn ln_pmf(trials: u32, odds: Odds, successes: u32) -> f64 {
    if odds.p.is_nan() {
        return f64::NAN;
    }
    if successes > trials {
        return f64::NEG_INFINITY;
    }
    let failures = trials - successes;
    // Where one of the two is certain, the other's logarithm is infinite, and 0 times it must still be 0.
    if successes == 0 || failures == 0 {
        let one_sided = |count: u32, other: f64, own: f64| {
            let ln = if own < 0.5 { libm::log(own) } else { libm::log1p(-other) };
            if count == 0 { 0.0 } else { f64::from(count) * ln }
        };
        return if failures == 0 { one_sided(trials, odds.q, odds.p) } else { one_sided(trials, odds.p, odds.q) };
    }
    if odds.p == 0.0 || odds.q == 0.0 {
        return f64::NEG_INFINITY;
    }
    let [n, x, y] = [trials, successes, failures].map(f64::from);
    stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(failures)
        - deviance(x, n * odds.p)
        - deviance(y, n * odds.q)
        - 0.5 * libm::log(2.0 * std::f64::consts::PI * x * (y / n))
}

/// Returns `ln n! - ln(sqrt(2 π n) (n/e)^n)`.
fn stirling_error(n: u32) -> f64 {
    const SMALL: [f64; 16] = [
        0.0,
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_19,
        0.013_876_128_823_070_75,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
        0.007_573_675_487_951_841,
        0.006_942_840_107_209_53,
        0.006_408_994_188_004_207,
        0.005_951_370_112_758_848,
        0.005_554_733_551_962_801,
    ];
    if let Some(exact) = SMALL.get(n as usize) {
        return *exact;
    }
    let n = f64::from(n);
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// Returns `x ln(x / mean) + mean - x`, by a series where the two are close and the plain form would cancel.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * libm::log(x / mean) - difference;
    }
    let v = difference / (x + mean);
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    let mut odd = 3.0;
    loop {
        power *= v * v;
        let next = sum + power / odd;
        if next == sum {
            return sum;
        }
        sum = next;
        odd += 2.0;
    }
}

/// Returns the point above which the standard normal distribution has this much mass, to .003 (Hastings 1955, 26.2.22
/// in Abramowitz & Stegun).
pub fn normal_quantile(tail: f64) -> f64 {
    if tail > 0.5 {
        return -normal_quantile(1.0 - tail);
    }
    let t = (-2.0 * libm::log(tail)).sqrt();
    t - (2.30753 + 0.27061 * t) / (1.0 + 0.99229 * t + 0.04481 * t * t)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assert_close;

    /// Written by `testdata/binomial/tails.py` from exact integers.
    const EXACT: &str = include_str!("../../../testdata/binomial/tails.tsv");

    fn exact_rows() -> impl Iterator<Item = (u32, f64, u32, f64, f64)> {
        EXACT.lines().skip(1).map(|line| {
            let column: Vec<&str> = line.split('\t').collect();
            let number = |i: usize| column[i].parse::<f64>().unwrap();
            (column[0].parse().unwrap(), number(1), column[2].parse().unwrap(), number(3), number(4))
        })
    }

    #[test]
    fn tails_are_exact_from_one_half_down_to_the_smallest_float() {
        let mut compared = 0;
        for (trials, p, threshold, upper, lower) in exact_rows() {
            let all = Tails::new(trials, p);
            // The two ways to compute a value differ by rounding in up to a million sums.
            for (found, relative) in [(at_least(trials, p, threshold), 1e-11), (all.at_least(threshold), 1e-10)] {
                assert_tail(found, upper, relative, (trials, p, threshold));
            }
            for (found, relative) in [(below(trials, p, threshold), 1e-11), (all.below(threshold), 1e-10)] {
                assert_tail(found, lower, relative, (trials, p, threshold));
            }
            compared += 1;
        }
        assert!(compared > 40);
    }

    #[track_caller]
    fn assert_tail(found: f64, exact: f64, relative: f64, case: (u32, f64, u32)) {
        if exact < 1e-307 {
            assert!(found < 1e-306, "{case:?}: {found:e}, exactly {exact:e}");
        } else {
            assert!((found - exact).abs() <= relative * exact, "{case:?}: {found:e}, exactly {exact:e}");
        }
    }

    #[test]
    fn certain_and_impossible_trials_have_certain_counts() {
        for trials in [0, 1, 7, 5_000] {
            assert_eq!(at_least(trials, 0.0, 0), 1.0);
            assert_eq!(at_least(trials, 0.0, 1), 0.0);
            assert_eq!(below(trials, 0.0, 1), 1.0);
            assert_eq!(at_least(trials, 1.0, trials), 1.0);
            assert_eq!(below(trials, 1.0, trials), 0.0);
            assert_eq!(at_least(trials, 1.0, trials + 1), 0.0);
            assert_eq!(pmf(trials, 1.0, trials), 1.0);
            for p in [0.0, 1.0] {
                let all = Tails::new(trials, p);
                for threshold in 0..=trials + 1 {
                    assert_eq!(all.at_least(threshold), at_least(trials, p, threshold));
                    assert_eq!(all.below(threshold), below(trials, p, threshold));
                }
            }
        }
        assert_eq!(smallest_threshold(9, 0.0, 0.01), 1);
        assert_eq!(smallest_threshold(9, 1.0, 0.01), 10);
        assert_eq!(largest_threshold(9, 0.0, 0.01), 0);
        assert_eq!(largest_threshold(9, 1.0, 0.01), 9);
    }

    #[test]
    fn what_is_not_a_number_keeps_no_promise() {
        let all = Tails::new(5, f64::NAN);
        for tail in
            [at_least(5, f64::NAN, 2), below(5, f64::NAN, 2), all.at_least(2), all.below(2), pmf(5, f64::NAN, 0)]
        {
            assert!(tail.is_nan());
        }
        assert_eq!((smallest_threshold(5, f64::NAN, 0.1), all.smallest_threshold(0.1)), (6, 6));
        assert_eq!((largest_threshold(5, f64::NAN, 0.1), all.largest_threshold(0.1)), (0, 0));
        assert_eq!((smallest_threshold(5, 0.5, f64::NAN), largest_threshold(5, 0.5, f64::NAN)), (6, 0));
    }

    #[test]
    fn thresholds_far_out_in_the_tail() {
        // np = 1e-9, so each further success costs some nine digits: 1e-300 lies between 30 and 40 successes.
        let threshold = smallest_threshold(1_000, 1e-12, 1e-300);
        assert!(at_least(1_000, 1e-12, threshold) <= 1e-300 && at_least(1_000, 1e-12, threshold - 1) > 1e-300);
        assert_eq!(
            largest_threshold(1_000, 1.0 - 1e-12, 1e-300),
            Tails::new(1_000, 1.0 - 1e-12).largest_threshold(1e-300)
        );
        assert_eq!(smallest_threshold(5, 1e-320, 1e-3), 1);
        assert_eq!(smallest_threshold(0, 0.3, 0.5), 1);
        assert_eq!(smallest_threshold(4, 0.3, 1.0), 0);
        assert_eq!(smallest_threshold(4, 0.3, 0.0), 5);
    }

    #[test]
    fn one_rare_trial_in_a_million_is_not_lost_in_rounding() {
        assert_close(at_least(1_000_000, 1e-20, 1), 1e-14, 1e-11);
        assert_close(at_least(2, 1e-150, 2), 1e-300, 1e-11);
        assert_close(below(3, 1.0 - f64::EPSILON, 1), f64::EPSILON * f64::EPSILON * f64::EPSILON, 1e-11);
    }

    #[test]
    fn a_poisson_count_is_the_limit_of_many_rare_trials() {
        assert_close(poisson_pmf(2.0, 3), 8.0 / 6.0 * libm::exp(-2.0), 1e-13);
        for (mean, count) in [(0.3, 0), (0.3, 4), (25.6, 25), (25.6, 60), (1e4, 10_100)] {
            let trials = 4_000_000_000;
            // The relative difference between rare trials and the limit is about (mean² + deviation²)/trials.
            assert_close(poisson_pmf(mean, count), pmf(trials, mean / f64::from(trials), count), 3e-5);
        }
    }

    proptest! {
        #[test]
        fn both_tails_make_one(trials in 0u32..3_000, p in 0.0..=1.0f64, at in 0.0..=1.0f64) {
            let threshold = (f64::from(trials + 1) * at) as u32;
            prop_assert!((at_least(trials, p, threshold) + below(trials, p, threshold) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn thresholds_are_the_last_that_keep_the_promise(
            trials in 1u32..2_000, p in 0.0..=1.0f64, digits in 0.1..14.0f64,
        ) {
            let max_tail = libm::pow(10.0, -digits);
            let all = Tails::new(trials, p);
            let smallest = smallest_threshold(trials, p, max_tail);
            prop_assert!(at_least(trials, p, smallest) <= max_tail * (1.0 + 1e-11));
            prop_assert!(smallest == 0 || at_least(trials, p, smallest - 1) > max_tail * (1.0 - 1e-11));
            prop_assert_eq!(all.smallest_threshold(max_tail), smallest);
            let largest = largest_threshold(trials, p, max_tail);
            prop_assert!(below(trials, p, largest) <= max_tail * (1.0 + 1e-11));
            prop_assert!(largest == trials || below(trials, p, largest + 1) > max_tail * (1.0 - 1e-11));
            prop_assert_eq!(all.largest_threshold(max_tail), largest);
        }
    }
}
