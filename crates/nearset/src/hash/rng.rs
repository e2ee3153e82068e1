//! The generator from which functions are drawn: xoshiro256++ (Blackman & Vigna 2019), with its state derived from a
//! seed.
//!
//! Transcendental functions come from the `libm` crate rather than the platform's, so that a Gaussian drawn here has
//! the same bits everywhere.

use super::{Seed, reduce};

/// A stream of random values, fixed by its seed.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the stream of a seed.
    pub fn new(seed: Seed) -> Self {
        let [a, b] = seed.derive("rng", 0).words();
        let [c, d] = seed.derive("rng", 1).words();
        // All zeros is the one state that xoshiro cannot leave; it has a probability of 2^-256.
        Self { state: [a, b, c, d] }
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in `0..range`, without bias.
    ///
    /// # Panics
    /// If `range` is 0.
    pub fn below(&mut self, range: u64) -> u64 {
        assert!(range > 0, "no number lies below 0");
        // Lemire's rejection: the low half of the product tells whether this draw fell into the uneven remainder.
        let reject = range.wrapping_neg() % range;
        loop {
            let draw = self.next_u64();
            if draw.wrapping_mul(range) >= reject {
                return reduce(draw, range);
            }
        }
    }

    /// Returns a uniform number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with the given probability.
    #[cfg(test)]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Draws from the standard normal distribution, by Marsaglia's polar method.
    pub fn gaussian(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Draws from the standard Cauchy distribution, as the quotient of two coordinates of a point in the unit disc.
    pub(crate) fn cauchy(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            if x != 0.0 && x * x + y * y <= 1.0 {
                return y / x;
            }
        }
    }

    /// Puts the slice into a uniformly random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, slice: &mut [T]) {
        for end in (1..slice.len()).rev() {
            slice.swap(end, self.below(end as u64 + 1) as usize);
        }
    }

    /// Returns `count` distinct numbers below `range`, in random order (Floyd's algorithm, then a shuffle).
    ///
    /// # Panics
    /// If `count > range`.
    pub fn distinct(&mut self, count: usize, range: u64) -> Vec<u64> {
        assert!(count as u64 <= range, "{count} distinct numbers below {range} do not exist");
        let mut taken = std::collections::BTreeSet::new();
        let mut chosen = Vec::with_capacity(count);
        for end in range - count as u64..range {
            let draw = self.below(end + 1);
            let pick = if taken.insert(draw) { draw } else { end };
            taken.insert(pick);
            chosen.push(pick);
        }
        self.shuffle(&mut chosen);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(Seed::new(1));
        let draws = 60_000;
        let mut counts = [0f64; 6];
        for _ in 0..draws {
            counts[rng.below(6) as usize] += 1.0;
        }
        let expected = draws as f64 / 6.0;
        let sigma = (expected * 5.0 / 6.0).sqrt();
        assert!(counts.iter().all(|count| (count - expected).abs() < 6.0 * sigma), "{counts:?}");
    }

    #[test]
    fn gaussian_and_cauchy_have_their_quartiles() {
        let mut rng = Rng::new(Seed::new(2));
        let draws = 100_000;
        let within = |draw: &mut dyn FnMut() -> f64, bound: f64| {
            (0..draws).filter(|_| draw().abs() < bound).count() as f64 / draws as f64
        };
        // Half of all draws lie within the quartiles: .6745 and 1. Six sigma of Bin(1e5, 1/2) is .0095.
        assert!((within(&mut || rng.gaussian(), 0.674_489_75) - 0.5).abs() < 0.0095);
        assert!((within(&mut || rng.cauchy(), 1.0) - 0.5).abs() < 0.0095);
    }

    #[test]
    fn distinct_numbers_are_distinct_and_evenly_spread() {
        let mut rng = Rng::new(Seed::new(3));
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let mut chosen = rng.distinct(3, 10);
            chosen.iter().for_each(|&pick| counts[pick as usize] += 1);
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), 3);
        }
        // Each count is Bin(10000, .3), sigma 45.8.
        assert!(counts.iter().all(|&count| (count as f64 - 3_000.0).abs() < 6.0 * 45.8), "{counts:?}");
        assert_eq!(rng.distinct(4, 4).len(), 4);
    }
}
