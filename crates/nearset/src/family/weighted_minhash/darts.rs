//! Weighted MinHash by darts (after Christiani, "DartMinHash: fast sketching for weighted sets", 2020, and Ertl,
//! "BagMinHash", KDD 2018).
//!
//! Over every element stands the half-plane of heights `a > 0` and times `t > 0`, on which darts fall as a Poisson process of
//! density 1; each dart has a slot, drawn uniformly. A set in which the element weighs `w` sees the darts below
//! height `w`. The value of a slot is the time of the first dart seen in it, over all elements.
//!
//! Two sets see the same first dart in a slot when the first that either sees lies below both weights, and it lies uniformly in
//! the area that either sees: that is the weighted Jaccard similarity, exactly. A time is also the dart's name, since no two
//! are equal but by an accident of probability 2^-50; and taking the earlier of two times is to see what either set sees,
//! so that slotwise minima merge signatures.
//!
//! Heights are cut into strips `[2^i, 2^(i+1))`, each with a random stream of its own, in the order of time: gaps are
//! exponential of mean `2^-i`. An element sees all strips below its weight whole, and of the one that holds its weight
//! the darts that lie below it, more than half of which it generates in vain at worst. The darts of total weight `W` fall at rate `W`, so that after a time of
//! `k (ln k + 3) / W` all slots have one in 95 % of cases; else time is doubled. Strips so low that no dart of theirs can fall in
//! that time are left out: the least gap is 2^-54 of the mean, so some 60 strips an element are looked at, one multiplication each.

use super::{EXPONENTS, WeightedSketch, exponent};
use crate::{
    Seed,
    hash::{Rng, mix, reduce},
    simd::sketch::EMPTY,
};

/// The lowest strip: times of its darts stay in the range of numbers.
const LOWEST: i32 = -1000;

/// Added to a stream's state from dart to dart (the golden ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Drawn functions of a signature.
#[derive(Debug, Clone)]
pub(crate) struct Darts {
    key: u64,
    slots: usize,
    /// One odd multiplier a strip, from [`LOWEST`] up.
    strips: Vec<u64>,
}

impl Darts {
    pub(crate) fn new(seed: Seed, slots: usize) -> Self {
        let mut rng = Rng::new(seed.derive("weighted minhash", 0));
        let key = rng.next_u64();
        let strips = (LOWEST..EXPONENTS.end).map(|_| rng.next_u64() | 1).collect();
        Self { key, slots, strips }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Overwrites the slots by the signature of a set that is not empty, all of positive weight.
    pub(crate) fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64]) {
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let count = slots.len() as f64;
        let mut horizon = count * (libm::log(count) + 3.0) / total;
        loop {
            slots.fill(EMPTY);
            weights.iter().for_each(|&(element, weight)| self.throw(element, weight, horizon, slots));
            if !slots.contains(&EMPTY) {
                return;
            }
            horizon *= 2.0;
        }
    }

    /// Throws the darts of one element that it sees before the horizon.
    fn throw(&self, element: u64, weight: f64, horizon: f64, slots: &mut [u64]) {
        let point = mix(element ^ self.key);
        let top = exponent(weight);
        let lowest = (-exponent(horizon) - 55).max(LOWEST);
        for strip in (lowest..=top).rev() {
            let first = point.wrapping_mul(self.strips[(strip - LOWEST) as usize]);
            let reach = horizon * power_of_two(strip);
            // An exponential is above the uniform it is made of, so that most streams end before they begin.
            if unit(first) >= reach {
                continue;
            }
            let mean = power_of_two(-strip);
            let mut state = first;
            let mut time = exponential(state) * mean;
            while time < horizon {
                let height = power_of_two(strip) * (1.0 + unit(mix(state ^ STEP)));
                if strip < top || height < weight {
                    let slot = &mut slots[reduce(mix(state), self.slots as u64) as usize];
                    *slot = (*slot).min(time.to_bits());
                }
                state = mix(state.wrapping_add(STEP));
                time += exponential(state) * mean;
            }
        }
    }
}

impl WeightedSketch for Darts {
    fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64]) {
        Darts::sketch(self, weights, slots);
    }
}

/// `2^exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// In the middle of one of 2^53 equal parts of 0 to 1, so neither.
fn unit(word: u64) -> f64 {
    ((word >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// Exponential of mean 1, growing with the word: never below its [`unit`].
fn exponential(word: u64) -> f64 {
    -libm::log1p(-unit(word))
}
