//! Fast similarity sketching (after Dahlgaard, Knudsen & Thorup, "Fast similarity sketching", FOCS 2017).
//!
//! The signature of `k` slots is defined by `R` rounds and a last resort. In round `i` every element is thrown into
//! one of the slots by a hash of its own; a slot keeps the least hash of the *earliest* round in which anything fell
//! into it. A slot that stays empty through all rounds takes the least, over all elements, of a hash that belongs to
//! the slot. Written out, slot `j` is the minimum over elements `x` of
//!
//! ```text
//! f_j(x) = (i, h_i(x))  for the first round i with slot(h_i(x)) = j,  else  (R, g_j(x))
//! ```
//!
//! ordered by the first component, then by the second. A minimum of one function over the set is all that MinHash
//! asks for: no bias, and unions merge. An element can win only one slot a round, so that a round samples without
//! replacement: slots are spread more evenly than independent ones, and the estimator's variance is about half of
//! theirs for sets of `k/20` to `k` elements (`laws` measures it; it is nowhere above).
//!
//! A round over `n` elements fills a part `1 - e^(-n/k)` of what is empty, so a set of `k ln k` elements or more is
//! done in one round, and smaller ones in a few: rounds end when nothing is empty. The last resort costs `n` steps a
//! slot, in vector registers a seventh of a throw each, and only `k e^(-nR/k)` slots need it. `R` weighs the two: one
//! round for every 72 slots is at or near the least cost for sets of 50 to 1000 elements (`benches/sketch.rs`), where
//! the minimum is flat. The paper goes through `k` rounds and then as many last resorts; what it promises holds for
//! any `R`.
//!
//! Hashes are multiples: an element becomes a point `mix(x ^ key)`, and `h_i` and `g_j` multiply it, modulo 2^64, by
//! odd numbers below 2^32 that belong to the round or slot. For points that are uniform and independent every such
//! hash is so, too, whatever the multiplier; and two hashes of one point are jointly uniform up to frequencies of the
//! order of their multipliers, 2^31, far finer than the slots. The laws measure what is left of dependence between
//! slots.

use super::Sketch;
use crate::{
    Seed,
    family::work::log,
    hash::Rng,
    simd::sketch::{self as kernel, MOST_ROUNDS},
};

/// Slots for which one more round pays.
const SLOTS_PER_ROUND: usize = 72;

/// Drawn functions of a signature.
#[derive(Debug, Clone)]
pub(super) struct FastSketch {
    key: u64,
    rounds: Vec<u64>,
    slots: Vec<u64>,
}

impl FastSketch {
    pub(super) fn new(seed: Seed, slots: usize) -> Self {
        let mut rng = Rng::new(seed.derive("minhash", 0));
        let key = rng.next_u64();
        let mut multipliers = |count| (0..count).map(|_| rng.next_u64() >> 32 | 1 << 31 | 1).collect();
        let rounds = slots.div_ceil(SLOTS_PER_ROUND).min(MOST_ROUNDS);
        Self { key, rounds: multipliers(rounds), slots: multipliers(slots) }
    }

    /// Operations that a signature takes, of a set of whatever size.
    ///
    /// Throws fill `k` slots after about `k ln k` of them. Where `R` rounds make fewer, `n` elements leave `k e^(-nR/k)` slots
    /// to the last resort, in `n` steps of a third of an operation each: most for `n = k/R`, where that is `k^2 / (eR)`.
    pub(super) fn work_bound(slots: usize) -> u64 {
        let rounds = slots.div_ceil(SLOTS_PER_ROUND).min(MOST_ROUNDS) as u64;
        let slots = slots as u64;
        10 * slots * log(slots) + slots * slots / (9 * rounds)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
}

impl Sketch for FastSketch {
    fn sketch(&self, elements: &mut [u64], slots: &mut [u64], positions: &mut Vec<u32>) {
        kernel::points(self.key, elements);
        kernel::throw(elements, &self.rounds, slots);
        kernel::fill(elements, &self.slots, self.rounds.len(), slots, positions);
    }
}
