//! What was counted, and how sure it is.

use std::{
    iter::Sum,
    sync::atomic::{AtomicUsize, Ordering},
};

/// So many yeses among so many trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// Yeses.
    pub yes: u64,
    /// Trials.
    pub of: u64,
}

impl Rate {
    /// Counts answers.
    pub fn count(answers: impl IntoIterator<Item = bool>) -> Self {
        answers.into_iter().fold(Self::default(), |rate, yes| rate + Self { yes: yes.into(), of: 1 })
    }

    /// The part of trials that were yeses.
    pub fn value(self) -> f64 {
        self.yes as f64 / self.of as f64
    }

    /// The part that were noes.
    pub fn miss(self) -> Self {
        Self { yes: self.of - self.yes, of: self.of }
    }

    /// How far it lies from an expected rate, in standard errors.
    pub fn sigmas_from(self, expected: f64) -> f64 {
        let difference = (self.value() - expected).abs();
        if difference == 0.0 { 0.0 } else { difference / (expected * (1.0 - expected) / self.of as f64).sqrt() }
    }

    /// How far two counted rates lie apart, in standard errors of their difference; the common rate is that of both together.
    pub fn sigmas_apart(self, other: Self) -> f64 {
        let difference = (self.value() - other.value()).abs();
        let common = (self + other).value();
        let variance = common * (1.0 - common) * (1.0 / self.of as f64 + 1.0 / other.of as f64);
        if difference == 0.0 { 0.0 } else { difference / variance.sqrt() }
    }

    /// Where the true rate lies, 95 % sure (Wilson 1927).
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

/// Works on every item with as many threads as there are cores. Results come in the items' order.
///
/// # Panics
/// If the work does.
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
    fn intervals_hold_the_rate_and_stay_within_bounds() {
        let half = Rate { yes: 500, of: 1_000 };
        let (low, high) = half.interval();
        assert!((low - 0.469).abs() < 0.001 && (high - 0.531).abs() < 0.001);
        assert_eq!(Rate { yes: 0, of: 10 }.interval().0, 0.0);
        assert!(Rate { yes: 0, of: 1_000 }.interval().1 > 0.003);
    }

    #[test]
    fn distances_in_standard_errors() {
        let rate = Rate { yes: 550, of: 1_000 };
        assert!((rate.sigmas_from(0.5) - 3.162).abs() < 0.001);
        assert!(rate.sigmas_apart(Rate { yes: 500, of: 1_000 }) < 2.3);
        assert_eq!(rate.sigmas_apart(rate), 0.0);
    }

    #[test]
    fn parallel_results_keep_their_order() {
        let items: Vec<u64> = (0..100).collect();
        assert_eq!(in_parallel(&items, |i| i * i), items.iter().map(|i| i * i).collect::<Vec<_>>());
        assert!(in_parallel(&[] as &[u64], |i| *i).is_empty());
    }
}
