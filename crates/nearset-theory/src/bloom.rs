//! Bloom filters: classic ones, those that keep a key's bits in one cache line, and single-probe tables.
//!
//! Claim: a classic filter has `fp = (1 - e^(-k n/m))^k`, least at `k = (m/n) ln 2`, where it is `2^-k ≈ .6185^(m/n)`.
//! A blocked filter sends each key to one block; blocks fill unevenly, Poisson(`block_bits n/m`), and the filter's rate
//! is the mean over their loads (Putze, Sanders & Singler 2007).

use std::{collections::BTreeMap, f64::consts::LN_2, sync::OnceLock};

use super::binomial;

/// Returns the classic false-positive rate, `(1 - e^(-k n/m))^k`, of `hashes` probes at `bits_per_key`.
pub fn false_positive(bits_per_key: f64, hashes: f64) -> f64 {
    if bits_per_key <= 0.0 {
        return 1.0;
    }
    libm::pow(-libm::expm1(-hashes / bits_per_key), hashes)
}

/// Returns the number of probes with the lowest rate, `(m/n) ln 2`, not rounded.
pub fn best_hashes(bits_per_key: f64) -> f64 {
    bits_per_key * LN_2
}

/// Returns the best whole number of probes, at least 1.
pub fn best_whole_hashes(bits_per_key: f64) -> u32 {
    let exact = best_hashes(bits_per_key);
    let (low, high) = (exact.floor().max(1.0), exact.ceil().max(1.0));
    if false_positive(bits_per_key, low) <= false_positive(bits_per_key, high) { low as u32 } else { high as u32 }
}

/// Returns the bits per key for this rate at the best number of probes: `log2(1/fp) / ln 2`.
pub fn bits_per_key(false_positive: f64) -> f64 {
    -libm::log2(false_positive) / LN_2
}

/// Returns the bits per key for this rate with a given number of probes.
pub fn bits_per_key_with(false_positive: f64, hashes: f64) -> f64 {
    -hashes / libm::log1p(-libm::pow(false_positive, 1.0 / hashes))
}

/// Returns the fraction of a table of `slots` that `keys` single bits set: `1 - (1 - 1/m)^n`. It is the probability
/// that a key that was never inserted finds its bit set.
///
/// ```
/// use nearset_theory::bloom;
///
/// assert!((bloom::load(1024.0, 1024.0 * std::f64::consts::LN_2) - 0.5).abs() < 3e-4);
/// ```
pub fn load(slots: f64, keys: f64) -> f64 {
    if slots <= 1.0 {
        return if keys > 0.0 { 1.0 } else { 0.0 };
    }
    -libm::expm1(keys * libm::log1p(-1.0 / slots))
}

/// Returns the slots per key of a table that `keys` single bits fill to `load`, in the limit of a large table:
/// `-1/ln(1 - load)`.
pub fn slots_per_key(load: f64) -> f64 {
    -1.0 / libm::log1p(-load)
}

/// Estimates the number of keys in a filter from its fill: `-(m/k) ln(1 - fill)` (Swamidass & Baldi 2007). The estimate
/// is infinite when the filter is full.
pub fn keys_from_fill(bits: f64, hashes: f64, fill: f64) -> f64 {
    -bits / hashes * libm::log1p(-fill)
}

/// Returns the exact expected false-positive rate with `keys` distinct keys, averaged over seeds.
///
/// By inclusion and exclusion over the sets `S` of the queried lanes whose bit stays clear: a key starts at each of the
/// eight lanes with equal probability and then leaves the bits of `S` clear with probability `(63/64)^w`, where `w`
/// counts the lanes of `S` among its own; and it falls into this line with probability `1 / lines`.
pub fn lines_false_positive(keys: u64, lines: u64, hashes: u32) -> f64 {
    let clear = |sets_one: f64| libm::exp(keys as f64 * libm::log1p(-sets_one / lines as f64));
    signed_sets(hashes).iter().map(|(sets_one, sign)| sign * clear(*sets_one)).sum::<f64>().max(0.0)
}

/// Returns, for every set of queried lanes, the probability that a key of this line sets one of their bits, and the
/// set's sign. Sets of equal probability are added up, which leaves a few dozen of 256.
fn signed_sets(hashes: u32) -> &'static [(f64, f64)] {
    static SETS: OnceLock<[Vec<(f64, f64)>; 8]> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        std::array::from_fn(|index| {
            let asked = 0xffu8 >> (7 - index);
            // Grouped by how many lanes each of the eight starts shares with the set, which determines the probability.
            let mut by_lanes: BTreeMap<[u32; 8], f64> = BTreeMap::new();
            for set in 0..=asked {
                let mut lanes: [u32; 8] =
                    std::array::from_fn(|start| (asked.rotate_left(start as u32) & set).count_ones());
                lanes.sort_unstable();
                *by_lanes.entry(lanes).or_default() += if set.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            }
            let likely = |lanes: [u32; 8]| -> f64 {
                lanes.into_iter().map(|count| 1.0 - libm::pow(63.0 / 64.0, f64::from(count))).sum::<f64>() / 8.0
            };
            by_lanes.into_iter().map(|(lanes, sign)| (likely(lanes), sign)).collect()
        })
    });
    &sets[hashes as usize - 1]
}

/// How a blocked filter places a key's bits within its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    /// `lanes` lanes of `lane_bits` bits, one bit in each: 8 lanes of 32 are the 256-bit split block of Impala and
    /// Parquet.
    Split {
        /// Lanes per block.
        lanes: u32,
        /// Bits per lane.
        lane_bits: u32,
    },
    /// `hashes` bits anywhere in a block of `bits`; 512 bits are a cache line.
    Whole {
        /// Bits per block.
        bits: u32,
        /// Bits set per key.
        hashes: u32,
    },
}

impl Block {
    /// The split block of 256 bits: 8 lanes of 32.
    pub const SPLIT_256: Self = Block::Split { lanes: 8, lane_bits: 32 };

    /// Returns the number of bits in one block.
    pub fn bits(self) -> u32 {
        match self {
            Block::Split { lanes, lane_bits } => lanes * lane_bits,
            Block::Whole { bits, .. } => bits,
        }
    }

    /// Returns the false-positive rate at `bits_per_key`: the mean over Poisson block loads.
    ///
    /// The rate is exact for split blocks, whose lanes are independent given the load. For whole blocks the power of
    /// the mean fill stands in for the mean of the power, which at 512 bits and 10 bits per key is 2 % too low.
    pub fn false_positive(self, bits_per_key: f64) -> f64 {
        let mean = f64::from(self.bits()) / bits_per_key;
        // Sums the Poisson terms outwards from the mode, so that none underflows before it counts.
        let mode = mean.floor();
        let first = binomial::poisson_pmf(mean, mode as u32);
        let mut sum = first * self.given_load(mode);
        let (mut weight, mut keys) = (first, mode);
        while weight > 1e-17 * sum {
            keys += 1.0;
            weight *= mean / keys;
            sum += weight * self.given_load(keys);
        }
        let (mut weight, mut keys) = (first, mode);
        while keys > 0.0 && weight > 1e-17 * first {
            weight *= keys / mean;
            keys -= 1.0;
            sum += weight * self.given_load(keys);
        }
        sum.min(1.0)
    }

    /// Returns the rate in a block that holds this many keys.
    fn given_load(self, keys: f64) -> f64 {
        match self {
            Block::Split { lanes, lane_bits } => libm::pow(load(f64::from(lane_bits), keys), f64::from(lanes)),
            Block::Whole { bits, hashes } => {
                libm::pow(load(f64::from(bits), keys * f64::from(hashes)), f64::from(hashes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assert_close, assert_printed};

    #[test]
    fn at_the_best_number_of_hashes_half_the_bits_are_set() {
        for bits in [4.0, 10.0, 20.0] {
            let hashes = best_hashes(bits);
            assert_close(false_positive(bits, hashes), libm::pow(2.0, -hashes), 1e-12);
            // .6185 is printed to four digits, so its power is off by that much per bit.
            assert_close(false_positive(bits, hashes), libm::pow(0.6185, bits), 5e-5 * bits);
            assert_close(bits_per_key(false_positive(bits, hashes)), bits, 1e-12);
            assert_close(bits_per_key_with(false_positive(bits, 5.0), 5.0), bits, 1e-12);
            let best = f64::from(best_whole_hashes(bits));
            assert!((1..60).all(|k| false_positive(bits, best) <= false_positive(bits, f64::from(k))));
        }
        assert_eq!(best_whole_hashes(0.1), 1);
        assert_eq!(false_positive(0.0, 3.0), 1.0);
    }

    #[test]
    fn ten_bits_per_key_give_what_was_measured() {
        // Measured with a million keys: .0082 for classic filters, .0127 for a split block.
        assert_printed(false_positive(10.0, 7.0), 0.0082, 4);
        assert_eq!(best_whole_hashes(10.0), 7);
        // Calculated .01265; a million queries have a standard error of .0001.
        assert!((Block::SPLIT_256.false_positive(10.0) - 0.0127).abs() < 0.0001);
    }

    #[test]
    fn one_large_block_is_a_classic_filter() {
        let block = Block::Whole { bits: 1 << 24, hashes: 7 };
        assert_close(block.false_positive(10.0), false_positive(10.0, 7.0), 1e-4);
    }

    #[test]
    fn a_cache_line_block_is_near_its_exact_rate() {
        // The exact rate: a block's occupancy after each key, bit by bit, as a Markov chain.
        let (bits, hashes, bits_per_key) = (512usize, 7u32, 10.0);
        let mean = bits as f64 / bits_per_key;
        let mut occupied = vec![0.0; bits + 1];
        occupied[0] = 1.0;
        let (mut weight, mut exact) = (libm::exp(-mean), 0.0);
        for keys in 0..200 {
            let rate = |set: usize| libm::pow(set as f64 / bits as f64, f64::from(hashes));
            exact += weight * occupied.iter().enumerate().map(|(set, p)| p * rate(set)).sum::<f64>();
            weight *= mean / f64::from(keys + 1);
            for _ in 0..hashes {
                for set in (0..bits).rev() {
                    let moving = occupied[set] * (bits - set) as f64 / bits as f64;
                    occupied[set] -= moving;
                    occupied[set + 1] += moving;
                }
            }
        }
        let found = Block::Whole { bits: 512, hashes }.false_positive(bits_per_key);
        assert!(found < exact && found > 0.98 * exact, "{found}, exactly {exact}");
        assert!(exact > false_positive(bits_per_key, f64::from(hashes)), "uneven blocks cost something");
    }

    #[test]
    fn extreme_loads_do_not_overflow() {
        assert_close(Block::SPLIT_256.false_positive(0.01), 1.0, 1e-12);
        assert!(Block::SPLIT_256.false_positive(1000.0) < 1e-9);
        assert!(Block::SPLIT_256.false_positive(1000.0) > 0.0);
    }

    #[test]
    fn loads_and_their_inverses() {
        assert_close(load(2.0, 1.0), 0.5, 1e-12);
        assert_close(load(4.0, 2.0), 7.0 / 16.0, 1e-12);
        assert_close(load(1e18, 1.0), 1e-18, 1e-12);
        assert_eq!((load(1.0, 5.0), load(1.0, 0.0)), (1.0, 0.0));
        assert_close(slots_per_key(load(1e9, 3e8)), 1e9 / 3e8, 1e-8);
        // 128 bands with tables 30 % full take 2.8 bits each, or 45 bytes per document.
        assert_printed(slots_per_key(0.3), 2.8, 1);
        assert_printed(128.0 * slots_per_key(0.3) / 8.0, 45.0, 0);
        assert_close(keys_from_fill(1e6, 7.0, load(1e6, 7.0 * 12_345.0)), 12_345.0, 1e-5);
        assert!(keys_from_fill(64.0, 1.0, 1.0).is_infinite());
    }
}
