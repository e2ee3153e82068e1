//! Fast similarity sketching (after Dahlgaard, Knudsen & Thorup, "Fast similarity sketching", FOCS 2017).
//!
//! The signature of `k` slots is defined by `R` rounds and a last resort. In round `i` every element is thrown into one
//! of the slots by a hash of its own; a slot keeps the least hash of the *earliest* round in which anything fell into
//! it. A slot that stays empty through all rounds takes the least value, over all elements, of a hash that belongs to
//! the slot. Written out, slot `j` is the minimum over elements `x` of
//!
//! ```text
//! f_j(x) = (i, h_i(x))  for the first round i with slot(h_i(x)) = j,  else  (R, g_j(x))
//! ```
//!
//! ordered by the first component, then by the second. MinHash needs no more than the minimum of one function over the
//! set: there is no bias, and unions merge. An element can win only one slot per round, so a round samples without
//! replacement: slots are spread more evenly than independent ones, and the estimator's variance is about half of
//! theirs for sets of `k/20` to `k` elements (`laws` measures it; it is nowhere above).
//!
//! A round over `n` elements fills a fraction `1 - e^(-n/k)` of the empty slots, so a set of `k ln k` elements or more
//! is done in one round, and smaller ones in a few: rounds end when nothing is empty. The last resort costs `n` steps
//! per slot, each of which takes a seventh of a throw in vector registers, and only `k e^(-nR/k)` slots need it. `R`
//! balances the two: one round for every 72 slots is at or near the least cost for sets of 50 to 1000 elements
//! (`benches/sketch.rs`), where the minimum is flat. The paper goes through `k` rounds and then as many last resorts;
//! its promises hold for any `R`.
//!
//! All of this counts distinct elements, while texts repeat theirs: a megabyte of one sentence has a dozen, which fill
//! a dozen slots per round, so that every round and most last resorts would go through all repeats. The empty slots are
//! therefore counted where repeats begin to cost: after the first round, if it could have filled most of them, and
//! before last resorts. If `e` of `k` slots stayed empty through `i` rounds, there are about `k/i ln(k/e)` distinct
//! elements ("linear counting"). If that is fewer than half of all, repeats are dropped first. An element that was
//! thrown need not be thrown again, so the signature is the same with or without its repeats.
//!
//! Hashes are multiples: an element becomes a point `mix(x ^ key)`, and `h_i` and `g_j` multiply it, modulo 2^64, by
//! odd numbers below 2^32 that belong to the round or slot. If points are uniform and independent, so is every such
//! hash, whatever the multiplier; and two hashes of one point are jointly uniform up to frequencies of the order of
//! their multipliers, 2^31, far finer than the slots. The laws measure the remaining dependence between slots.

use super::Sketch;
use crate::{
    Seed,
    family::work::log,
    hash::Rng,
    simd::sketch::{self as kernel, MOST_ROUNDS},
};

/// The number of slots for which one more round pays off.
const SLOTS_PER_ROUND: usize = 72;

/// The drawn functions of a signature.
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

    /// Returns the most operations that a signature takes, for a set of any size.
    ///
    /// Throws fill `k` slots after about `k ln k` of them. Where `R` rounds make fewer, `n` elements leave
    /// `k e^(-nR/k)` slots to the last resort, in `n` steps of a third of an operation each. The most are needed for
    /// `n = k/R`, where that is `k^2 / (eR)`.
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
        let rounds = self.rounds.len();
        let mut points = elements;
        let mut thrown = 0;
        if 2 * points.len() >= slots.len() {
            thrown = 1;
            kernel::throw(points, &self.rounds[..thrown], 0, slots);
            match kernel::count_empty(slots) {
                0 => return,
                empty => points = without_repeats(points, distinct(slots.len(), empty, thrown), positions),
            }
        }
        kernel::throw(points, &self.rounds, thrown, slots);
        if thrown == 0 && !kernel::is_mostly_empty(points.len(), rounds, slots.len()) {
            match kernel::count_empty(slots) {
                0 => return,
                empty => points = without_repeats(points, distinct(slots.len(), empty, rounds), positions),
            }
        }
        kernel::fill(points, &self.slots, rounds, slots, positions);
    }
}

/// Estimates how many distinct points leave `empty` slots empty after `rounds` rounds.
fn distinct(slots: usize, empty: usize, rounds: usize) -> usize {
    (slots as f64 / rounds as f64 * libm::log(slots as f64 / empty as f64)) as usize + 1
}

/// Returns the points without most of their repeats, if about `distinct` of them are distinct and those are less than
/// half. `table` is scratch space.
fn without_repeats<'a>(points: &'a mut [u64], distinct: usize, table: &mut Vec<u32>) -> &'a mut [u64] {
    let mut length = points.len();
    if 2 * distinct >= length || u32::try_from(length).is_err() {
        return points;
    }
    let bits = (4 * distinct).next_power_of_two().ilog2();
    // A place of the table holds the index, among the points kept, of the last point that fell there. In a table four
    // times as large as necessary, a fifth of the points share a place, and evict each other; hardly any do so three
    // times.
    for turn in [0, 20, 40] {
        table.clear();
        table.resize(1 << bits, 0);
        let mut kept = 1;
        for i in 1..length {
            let point = points[i];
            let place = &mut table[(point.rotate_left(turn) >> (64 - bits)) as usize];
            if points[*place as usize] != point {
                *place = kept as u32;
                points[kept] = point;
                kept += 1;
            }
        }
        length = kept;
        if length <= 2 * distinct {
            break;
        }
    }
    &mut points[..length]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        hash::Rng,
        simd::sketch::{EMPTY, STEPS},
    };

    /// Computes the signature as the module documentation defines it: for every slot, the least of `f_j` over the
    /// elements.
    fn by_definition(sketch: &FastSketch, elements: &[u64]) -> Vec<u64> {
        let mut points = elements.to_vec();
        kernel::points(sketch.key, &mut points);
        let mut slots = vec![EMPTY; sketch.slots()];
        for point in points {
            let mut own = vec![EMPTY; sketch.slots()];
            kernel::throw(&[point], &sketch.rounds, 0, &mut own);
            kernel::fill(&[point], &sketch.slots, sketch.rounds.len(), &mut own, &mut Vec::new());
            slots.iter_mut().zip(own).for_each(|(slot, own)| *slot = (*slot).min(own));
        }
        slots
    }

    /// Returns `count` elements of which `distinct` are distinct, one after the other or at random.
    fn repeated(rng: &mut Rng, distinct: usize, count: usize, in_turn: bool) -> Vec<u64> {
        let alphabet: Vec<u64> = (0..distinct).map(|_| rng.next_u64()).collect();
        let pick = |i: usize, rng: &mut Rng| if in_turn { i % distinct } else { rng.below(distinct as u64) as usize };
        (0..count).map(|i| alphabet[pick(i, rng)]).collect()
    }

    fn signature(sketch: &FastSketch, elements: &[u64]) -> Vec<u64> {
        let mut slots = vec![EMPTY; sketch.slots()];
        sketch.sketch(&mut elements.to_vec(), &mut slots, &mut Vec::new());
        slots
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn repeats_change_no_slot(
            seed in any::<u64>(),
            slots in prop_oneof![Just(1usize), 2usize..40, 100usize..400],
            distinct in 1usize..300,
            times in 1usize..20,
            in_turn in any::<bool>(),
        ) {
            let mut rng = Rng::new(Seed::new(seed));
            let sketch = FastSketch::new(Seed::new(seed), slots);
            let elements = repeated(&mut rng, distinct, distinct * times, in_turn);
            let mut set = elements.clone();
            set.sort_unstable();
            set.dedup();
            prop_assert_eq!(signature(&sketch, &elements), by_definition(&sketch, &set));
        }
    }

    /// Steps per element, however often elements are repeated: one throw, plus the cost of the distinct ones, spread
    /// over all.
    #[test]
    fn repeats_cost_one_throw_each() {
        let mut rng = Rng::new(Seed::new(3));
        for slots in [16, 128, 256, 992, 4000] {
            let sketch = FastSketch::new(Seed::new(4), slots);
            for distinct in [1, 2, 3, 10, 30, 100, 300, 1000, 3000] {
                for in_turn in [true, false] {
                    let steps = |count: usize, rng: &mut Rng| {
                        let elements = repeated(rng, distinct, count, in_turn);
                        STEPS.set(0);
                        signature(&sketch, &elements);
                        STEPS.get()
                    };
                    let once = steps(distinct, &mut rng).max(slots);
                    let many = steps(100_000, &mut rng);
                    assert!(
                        many <= 2 * (once + 100_000),
                        "{slots} slots, {distinct} elements: {many} steps, once {once}"
                    );
                }
            }
        }
    }

    #[test]
    fn repeats_are_dropped_and_nothing_else() {
        let mut rng = Rng::new(Seed::new(5));
        for distinct in [1, 2, 50, 2000] {
            let mut points = repeated(&mut rng, distinct, 20 * distinct + 3, distinct % 2 == 0);
            let expected = std::collections::BTreeSet::from_iter(points.clone());
            let kept = without_repeats(&mut points, distinct, &mut vec![7; 5]);
            assert!(kept.len() <= 2 * distinct, "{} of {distinct} are kept", kept.len());
            assert_eq!(std::collections::BTreeSet::from_iter(kept.iter().copied()), expected);
        }
    }
}
