//! Counted rates, and how certain they are.

use std::{
    iter::Sum,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A number of yeses out of a number of trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// The number of yeses.
    pub yes: u64,
    /// The number of trials.
    pub of: u64,
}

impl Rate {
    /// Counts answers.
    pub fn count(answers: impl IntoIterator<Item = bool>) -> Self {
        answers.into_iter().fold(Self::default(), |rate, yes| rate + Self { yes: yes.into(), of: 1 })
    }

    /// Returns the fraction of trials that were yeses.
    pub fn value(self) -> f64 {
        self.yes as f64 / self.of as f64
    }

    /// Returns the rate of noes.
    pub fn miss(self) -> Self {
        Self { yes: self.of - self.yes, of: self.of }
    }

    /// Returns the distance from an expected rate, in standard errors.
    ///
    /// It is the root of the deviance, twice the logarithm of the likelihood ratio: as good as the difference over its
    /// standard error where many were counted, and still about normal where one or two were, or none.
    pub fn sigmas_from(self, expected: f64) -> f64 {
        self.deviance(expected).sqrt()
    }

    /// Returns how far apart two counted rates are, in standard errors of their difference, by their deviances from the
    /// rate of both together.
    pub fn sigmas_apart(self, other: Self) -> f64 {
        let common = (self + other).value();
        (self.deviance(common) + other.deviance(common)).sqrt()
    }

    fn deviance(self, expected: f64) -> f64 {
        let part = |counted: u64, expected: f64| match counted {
            0 => 0.0,
            _ => counted as f64 * (counted as f64 / (self.of as f64 * expected)).ln(),
        };
        // Rounding may take the sum slightly below 0.
        (2.0 * (part(self.yes, expected) + part(self.of - self.yes, 1.0 - expected))).max(0.0)
    }

    /// Returns the interval in which the true rate lies with 95 % confidence (Wilson 1927).
    pub fn interval(self) -> (f64, f64) {
        let (z, trials, rate) = (1.96, self.of as f64, self.value());
        let shrink = 1.0 + z * z / trials;
        let middle = (rate + z * z / (2.0 * trials)) / shrink;
        let half = z * (rate * (1.0 - rate) / trials + z * z / (4.0 * trials * trials)).sqrt() / shrink;
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

impl std::ops::Add for Rate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { yes: self.yes + other.yes, of: self.of + other.of }
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::default(), |sum, rate| sum + rate)
    }
}

/// Runs the work on every item with as many threads as there are cores. Results come in the items' order.
///
/// # Panics
/// If the work panics.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return done };
            done.push((i, work(item)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("the work panicked")).collect()
    });
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_contain_the_rate_and_stay_within_bounds() {
        let half = Rate { yes: 500, of: 1_000 };
        let (low, high) = half.interval();
        assert!((low - 0.469).abs() < 0.001 && (high - 0.531).abs() < 0.001);
        assert_eq!(Rate { yes: 0, of: 10 }.interval().0, 0.0);
        assert!(Rate { yes: 0, of: 1_000 }.interval().1 > 0.003);
    }

    #[test]
    fn distances_in_standard_errors() {
        let rate = Rate { yes: 5_100, of: 10_000 };
        assert!((rate.sigmas_from(0.5) - 2.0).abs() < 0.001);
        assert!((rate.sigmas_apart(Rate { yes: 5_000, of: 10_000 }) - 2f64.sqrt()).abs() < 0.001);
        assert_eq!(rate.sigmas_apart(rate), 0.0);
        // One where .04 are expected happens by chance in .039 of cases, which is 2.06 sigma, two-sided.
        assert!((Rate { yes: 1, of: 1_000_000 }.sigmas_from(4e-8) - 2.1).abs() < 0.1);
        assert_eq!(Rate { yes: 0, of: 10 }.sigmas_from(0.0), 0.0);
        assert_eq!(Rate { yes: 1, of: 10 }.sigmas_from(0.0), f64::INFINITY);
    }

    #[test]
    fn parallel_results_keep_their_order() {
        let items: Vec<u64> = (0..100).collect();
        assert_eq!(in_parallel(&items, |i| i * i), items.iter().map(|i| i * i).collect::<Vec<_>>());
        assert!(in_parallel(&[] as &[u64], |i| *i).is_empty());
    }
}
