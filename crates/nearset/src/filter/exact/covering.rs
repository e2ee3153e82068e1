//! Covering masks (Pagh, "Locality-sensitive hashing without false negatives", 2016).
//!
//! Claim: give every position a random vector of `r + 1` bits, and let mask `v` choose the positions whose vector has an odd
//! product with `v`. The vectors of `r` differing positions span at most `r` of `r + 1` dimensions, so some `v` other than
//! zero is orthogonal to all of them: its mask chooses none, and both strings have the same key under it.
//! Invariant: keys are linear over XOR, so all `2^(r+1) - 1` come from `2^(r+1)` sums over equal vectors by a
//! Walsh-Hadamard transform with XOR for addition, in `(r + 1) 2^r` steps rather than one pass a mask.

use super::pigeonhole::{NEVER_ZERO, each_set, random_word};
use crate::{Seed, family::Key, hash::Rng, item::Bits};

/// Every position's vector and word.
pub(super) struct Masks {
    dimensions: u32,
    positions: Vec<(u8, u64)>,
}

/// Vectors of the most dimensions: radius 6.
const MOST_VECTORS: usize = 1 << 7;

impl Masks {
    pub(super) fn draw(bits: u32, radius: u32, seed: Seed) -> Self {
        let mut rng = Rng::new(seed);
        let dimensions = radius + 1;
        let positions = (0..bits).map(|_| (rng.below(1 << dimensions) as u8, random_word(&mut rng))).collect();
        Self { dimensions, positions }
    }

    /// One key a mask.
    pub(super) fn keys(&self, bits: Bits<'_>, keys: &mut Vec<Option<Key>>) {
        let mut sums = [0; MOST_VECTORS];
        each_set(bits, |position| {
            let (vector, word) = self.positions[position];
            sums[usize::from(vector)] ^= word;
        });
        let sums = &mut sums[..1 << self.dimensions];
        sum_odd_products(sums);
        keys.clear();
        keys.extend(sums[1..].iter().map(|sum| Key::new(sum | NEVER_ZERO)));
    }

    /// How many positions each mask chooses.
    pub(super) fn weights(&self) -> impl Iterator<Item = u32> {
        // By vector first, so that long strings are read once and not once a mask.
        let mut positions = [0u32; MOST_VECTORS];
        self.positions.iter().for_each(|&(vector, _)| positions[usize::from(vector)] += 1);
        (1..1u8 << self.dimensions).map(move |mask| {
            let vectors = (0u8..).zip(positions);
            vectors.filter(|(vector, _)| (vector & mask).count_ones() % 2 == 1).map(|(_, count)| count).sum()
        })
    }
}

/// Puts into place `v` the XOR of all `sums[u]` whose `u & v` has an odd number of ones.
fn sum_odd_products(sums: &mut [u64]) {
    // Beside every half's sums over odd products, the sum over all of the half.
    let mut totals = [0; MOST_VECTORS];
    let totals = &mut totals[..sums.len()];
    totals.copy_from_slice(sums);
    sums.fill(0);
    let mut half = 1;
    while half < sums.len() {
        for (sums, totals) in sums.chunks_exact_mut(2 * half).zip(totals.chunks_exact_mut(2 * half)) {
            let (without, with) = sums.split_at_mut(half);
            let (total, upper) = (totals[0], totals[half]);
            for (without, with) in without.iter_mut().zip(with) {
                // Turning on this dimension in `v` makes odd what was even in the upper half.
                (*without, *with) = (*without ^ *with, *without ^ *with ^ upper);
            }
            totals[0] = total ^ upper;
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_sum_over_odd_products() {
        let mut rng = Rng::new(Seed::new(1));
        for dimensions in 1..=7 {
            let before: Vec<u64> = (0..1 << dimensions).map(|_| rng.next_u64()).collect();
            let mut after = before.clone();
            sum_odd_products(&mut after);
            for (v, &sum) in after.iter().enumerate() {
                let odd = before.iter().enumerate().filter(|(u, _)| (u & v).count_ones() % 2 == 1);
                assert_eq!(sum, odd.fold(0, |sum, (_, word)| sum ^ word), "{dimensions} dimensions, mask {v:b}");
            }
        }
    }
}
