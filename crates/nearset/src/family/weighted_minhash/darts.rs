//! Weighted MinHash by darts (after Christiani, "DartMinHash: fast sketching for weighted sets", 2020, and Ertl,
//! "BagMinHash", KDD 2018).
//!
//! Every element has a quadrant of heights `a > 0` and times `t > 0`, on which darts fall as a Poisson process of
//! density 1; each dart has a slot, drawn uniformly. A set in which the element weighs `w` sees the darts below height
//! `w`. The value of a slot is the time of the first dart seen in it, over all elements.
//!
//! Two sets see the same first dart in a slot when the first that either sees lies below both weights, and it lies
//! uniformly in the area that either sees: that is exactly the weighted Jaccard similarity. A time also identifies the
//! dart, since two are equal only by an accident of probability 2^-50; and taking the earlier of two times is to see
//! what either set sees, so slotwise minima merge signatures. Slots are independent: a Poisson process, dealt out at
//! random, splits into independent ones.
//!
//! Heights are cut into strips `[2^i, 2^(i+1))`, each with a random stream of its own, ordered by time: gaps are
//! exponential with mean `2^-i`. An element sees all of the strips below its weight, and of the one that holds its
//! weight the darts that lie below it, half of which are generated in vain at worst. The darts of total weight `W` fall
//! at rate `W`, so after a time of `k (ln k + 3) / W` all slots have one in 95 % of cases; otherwise the time is
//! doubled. Strips so low that none of their darts can fall in that time are left out: gaps are 2^-53 of the mean or
//! more, so some 60 strips per element are looked at, with one multiplication each.

use super::{EXPONENTS, WeightedSketch, exponent};
use crate::{
    Seed,
    hash::{Rng, mix, reduce},
    simd::sketch::EMPTY,
};

/// The lowest strip: the times of its darts stay in the range of numbers.
const LOWEST: i32 = -1000;

/// The step from dart to dart of a stream (the golden ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The drawn functions of a signature.
#[derive(Debug, Clone)]
pub(crate) struct Darts {
    key: u64,
    slots: usize,
    /// One odd multiplier per strip, from [`LOWEST`] up.
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

    /// Overwrites the slots with the signature of a non-empty set, all of positive weight. `limits` is scratch space.
    pub(crate) fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64], limits: &mut Vec<u64>) {
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let largest = weights.iter().map(|&(_, weight)| weight).fold(0.0, f64::max);
        let count = slots.len() as f64;
        let mut horizon = count * (libm::log(count) + 3.0) / total;
        loop {
            slots.fill(EMPTY);
            let lowest = (-exponent(horizon) - 55).max(LOWEST);
            limits.clear();
            // An exponential is not below the uniform it is made of: whatever lies above its strip's limit comes too
            // late. The limit errs on the safe side, by more than roundings and the bits that a uniform leaves out.
            let limit = |strip| (horizon * (1.0 + 1e-12) * power_of_two(strip + 64)) as u64;
            limits.extend((lowest..=exponent(largest)).map(|strip| limit(strip).saturating_add(1 << 12)));
            for &(element, weight) in weights {
                self.throw(element, weight, horizon, lowest, limits, slots);
            }
            if !slots.contains(&EMPTY) {
                return;
            }
            horizon *= 2.0;
        }
    }

    /// Throws the darts of one element that it sees before the horizon.
    fn throw(&self, element: u64, weight: f64, horizon: f64, lowest: i32, limits: &[u64], slots: &mut [u64]) {
        let point = mix(element ^ self.key);
        let top = exponent(weight);
        let Ok(seen) = usize::try_from(top - lowest + 1) else { return };
        let multipliers = &self.strips[(lowest - LOWEST) as usize..][..seen];
        for (part, (multipliers, limits)) in multipliers.chunks(64).zip(limits[..seen].chunks(64)).enumerate() {
            // Few streams start before the horizon. They are picked without branches, then visited one by one.
            let mut starting = 0u64;
            for (bit, (&multiplier, &limit)) in multipliers.iter().zip(limits).enumerate() {
                starting |= u64::from(point.wrapping_mul(multiplier) <= limit) << bit;
            }
            while starting != 0 {
                let bit = starting.trailing_zeros() as usize;
                starting &= starting - 1;
                let strip = lowest + (64 * part + bit) as i32;
                let ceiling = if strip < top { f64::INFINITY } else { weight };
                self.throw_stream(point.wrapping_mul(multipliers[bit]), strip, ceiling, horizon, slots);
            }
        }
    }

    /// Throws the darts of one strip that fall below the ceiling before the horizon. The first gap is made from
    /// `first`, later ones from hashes of the dart's number, so that a CPU can work on several darts at once.
    #[inline(always)]
    fn throw_stream(&self, first: u64, strip: i32, ceiling: f64, horizon: f64, slots: &mut [u64]) {
        let (floor, mean) = (power_of_two(strip), power_of_two(-strip));
        let mut number = first;
        let mut gap = first;
        let mut time = exponential(gap) * mean;
        while time < horizon {
            let place = mix(gap ^ STEP);
            // The slot comes from the high bits, the height from the low 40.
            let height = floor * (1.0 + (place & ((1 << 40) - 1)) as f64 * (1.0 / (1u64 << 40) as f64));
            let slot = &mut slots[reduce(place, self.slots as u64) as usize];
            // Which darts lie too high is a coin toss that no branch predictor guesses.
            *slot = (*slot).min(if height < ceiling { time.to_bits() } else { EMPTY });
            number = number.wrapping_add(STEP);
            gap = mix(number);
            time += exponential(gap) * mean;
        }
    }
}

impl WeightedSketch for Darts {
    fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64], scratch: &mut Vec<u64>) {
        Darts::sketch(self, weights, slots, scratch);
    }
}

/// Returns `2^exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Returns a uniform number in `[0, 1)`, a multiple of 2^-53.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns an exponential number of mean 1, `-ln(1 - unit)`, which grows with the word; at least 2^-53, because the
/// uniform's last bit is set.
///
/// With `1 - unit = m 2^e`, `m` around 1, and `s = (m - 1) / (m + 1)`, the logarithm is
/// `e ln 2 + 2 (s + s^3/3 + s^5/5 + …)`. Nine terms leave an error of 1e-14 of the value, even where it is tiny; plain
/// arithmetic is the same on every platform, and this costs a third of a library's logarithm.
#[inline(always)]
fn exponential(word: u64) -> f64 {
    const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    let rest = 1.0 - unit(word | 1 << 11);
    // The exponent is counted from the square root of one half, so that `m` lies between the square roots of 1/2 and 2.
    let shifted = rest.to_bits().wrapping_sub(HALF_ROOT);
    let exponent = (shifted as i64 >> 52) as f64;
    let mantissa = f64::from_bits((shifted & ((1 << 52) - 1)) + HALF_ROOT);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let odd = [17, 15, 13, 11, 9, 7, 5, 3, 1].map(|n| 1.0 / f64::from(n));
    let series = odd.into_iter().fold(0.0, |sum, term| sum * square + term);
    -(exponent * std::f64::consts::LN_2 + 2.0 * s * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_logarithms() {
        let mut rng = Rng::new(Seed::new(1));
        let words = (0..100_000).map(|i| rng.next_u64() >> (i % 53));
        for word in words.chain([0, 1 << 11, 3 << 11, u64::MAX, 1 << 63]) {
            let (found, expected) = (exponential(word), -libm::log1p(-unit(word | 1 << 11)));
            assert!((found - expected).abs() <= 1e-14 * expected, "{word:#x}: {found} for {expected}");
            assert!(found >= unit(word) * (1.0 - 1e-14) && found >= power_of_two(-53));
        }
    }
}
