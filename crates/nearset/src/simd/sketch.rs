//! Kernels of set sketches: points thrown at slots that keep the least, and least multiples.
//!
//! A *point* is a 64-bit value that is uniform and independent of other points. Everything here is integer arithmetic
//! modulo 2^64, so levels agree without further care. Multipliers are odd and below 2^32: AVX2, which has no 64-bit
//! multiplication, then needs two of 32 bits instead of three.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::Level;
use crate::hash::mix;

/// The value of an untouched slot: above every other, so that its minimum with any value is that value.
pub(crate) const EMPTY: u64 = u64::MAX;

/// The number of top bits of a slot's value that give the round in which it was thrown.
const TAG_BITS: u32 = 4;

/// The maximum number of rounds: one tag is reserved for least multiples, and the highest is never used, so that no
/// value is [`EMPTY`].
pub(crate) const MOST_ROUNDS: usize = (1 << TAG_BITS) - 2;

/// Returns a value that orders by round first, then by hash.
#[inline(always)]
fn tagged(round: usize, hash: u64) -> u64 {
    (round as u64) << (64 - TAG_BITS) | hash >> TAG_BITS
}

/// Returns the slot into which a hash falls, by its high half: below `slots`.
#[inline(always)]
fn slot_of(hash: u64, slots: usize) -> usize {
    (((hash >> 32) * slots as u64) >> 32) as usize
}

/// Calls the best version of a kernel that the CPU has.
macro_rules! dispatch {
    ($kernel:ident($($argument:expr),*)) => {
        match Level::current() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level says that the CPU has these instructions.
            Level::Avx512 => unsafe { avx512::$kernel($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { avx2::$kernel($($argument),*) },
            _ => scalar::$kernel($($argument),*),
        }
    };
}

/// Replaces every value `x` by the point `mix(x ^ key)`.
pub(crate) fn points(key: u64, values: &mut [u64]) {
    dispatch!(points(key, values))
}

/// Throws all points once per round, from round `first` on. In round `i` a point falls, by the hash
/// `point * multipliers[i]`, into one slot, which keeps the least value it receives, earlier rounds first. Ends early
/// once no slot is empty, since later rounds then cannot change anything.
///
/// # Panics
/// If there are more than [`MOST_ROUNDS`] rounds, or 2^32 slots.
pub(crate) fn throw(points: &[u64], multipliers: &[u64], first: usize, slots: &mut [u64]) {
    assert!(multipliers.len() <= MOST_ROUNDS && slots.len() < 1 << 32);
    debug_assert!(multipliers.iter().all(|&multiplier| multiplier >> 32 == 0));
    #[cfg(test)]
    STEPS.set(STEPS.get() + points.len() * (multipliers.len() - first));
    dispatch!(throw(points, multipliers, first, slots))
}

/// Returns the number of empty slots.
pub(crate) fn count_empty(slots: &[u64]) -> usize {
    dispatch!(count_empty(slots))
}

#[cfg(test)]
thread_local! {
    /// An upper bound on the steps that throwing and filling have taken on this thread: throws, and multiples compared.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Sets every empty slot `j` to the least of `point * multipliers[j]` over all points, tagged as if thrown in `round`.
/// `list` is scratch space for the list of empty slots.
///
/// # Panics
/// If there are fewer multipliers than slots, or `round` is above [`MOST_ROUNDS`].
pub(crate) fn fill(points: &[u64], multipliers: &[u64], round: usize, slots: &mut [u64], list: &mut Vec<u32>) {
    assert!(multipliers.len() >= slots.len() && round <= MOST_ROUNDS);
    if points.is_empty() {
        return;
    }
    if is_mostly_empty(points.len(), round, slots.len()) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + points.len() * slots.len());
        return dispatch!(fill_all(points, multipliers, round, slots));
    }
    let empty = dispatch!(list_empty(slots, list));
    #[cfg(test)]
    STEPS.set(STEPS.get() + points.len() * empty);
    dispatch!(fill(points, multipliers, round, &list[..empty], slots))
}

/// Returns whether the throws are so few, and the empty slots therefore so many, that it is cheaper for [`fill`] to
/// compute all slots than to pick the empty ones.
pub(crate) fn is_mostly_empty(points: usize, rounds: usize, slots: usize) -> bool {
    2 * points * rounds < slots
}

/// Mixes each column of a matrix into one word: rows of `out.len()` words lie one after the other in `words`, and a
/// column becomes `mix` of the polynomial in `base` whose coefficients it holds, the first row's being the highest.
///
/// # Panics
/// If the words do not divide into rows.
pub(crate) fn columns(base: u64, words: &[u64], out: &mut [u64]) {
    assert!(!out.is_empty() && words.len().is_multiple_of(out.len()));
    dispatch!(columns(base, words, out))
}

/// Returns the number of throws after which it is worth checking whether all slots are full: `k (ln k - 1.5)`, after
/// which some 4 are expected to be empty.
fn worth_a_look(slots: usize) -> usize {
    (slots as f64 * (libm::log(slots as f64) - 1.5)).max(1.0) as usize
}

/// The definitions.
mod scalar {
    use super::*;

    #[inline(always)]
    pub(super) fn points(key: u64, values: &mut [u64]) {
        values.iter_mut().for_each(|value| *value = mix(*value ^ key));
    }

    pub(super) fn throw(points: &[u64], multipliers: &[u64], first: usize, slots: &mut [u64]) {
        let worth_a_look = worth_a_look(slots.len());
        for (round, &multiplier) in multipliers.iter().enumerate().skip(first) {
            throw_once(points, multiplier, round, slots);
            if (round + 1) * points.len() >= worth_a_look && !slots.contains(&EMPTY) {
                return;
            }
        }
    }

    #[inline(always)]
    pub(super) fn count_empty(slots: &[u64]) -> usize {
        slots.iter().filter(|&&slot| slot == EMPTY).count()
    }

    #[inline(always)]
    pub(super) fn throw_once(points: &[u64], multiplier: u64, round: usize, slots: &mut [u64]) {
        points.iter().for_each(|point| put_least(point.wrapping_mul(multiplier), round, slots));
    }

    /// Drops a hash into its slot.
    #[inline(always)]
    pub(super) fn put_least(hash: u64, round: usize, slots: &mut [u64]) {
        let slot = slot_of(hash, slots.len());
        slots[slot] = slots[slot].min(tagged(round, hash));
    }

    /// Writes the numbers of the empty slots to the head of the list, and returns how many there are.
    #[inline(always)]
    pub(super) fn list_empty(slots: &[u64], list: &mut Vec<u32>) -> usize {
        // One store per slot, kept or overwritten, instead of a branch that is hard to predict.
        list.resize(list.len().max(slots.len() + 1), 0);
        let mut length = 0;
        for (slot, &value) in slots.iter().enumerate() {
            list[length] = slot as u32;
            length += usize::from(value == EMPTY);
        }
        length
    }

    pub(super) fn fill_all(points: &[u64], multipliers: &[u64], round: usize, slots: &mut [u64]) {
        for (slot, multiplier) in slots.iter_mut().zip(multipliers) {
            let least = points.iter().map(|point| point.wrapping_mul(*multiplier)).min();
            *slot = least.map_or(*slot, |least| tagged(round, least).min(*slot));
        }
    }

    pub(super) fn fill(points: &[u64], multipliers: &[u64], round: usize, list: &[u32], slots: &mut [u64]) {
        for &slot in list {
            let multiplier = multipliers[slot as usize];
            let least = points.iter().map(|point| point.wrapping_mul(multiplier)).min();
            slots[slot as usize] = least.map_or(EMPTY, |least| tagged(round, least));
        }
    }

    #[inline(always)]
    pub(super) fn columns(base: u64, words: &[u64], out: &mut [u64]) {
        out.fill(0);
        for row in words.chunks_exact(out.len()) {
            for (sum, &word) in out.iter_mut().zip(row) {
                *sum = sum.wrapping_mul(base).wrapping_add(word);
            }
        }
        out.iter_mut().for_each(|sum| *sum = mix(*sum));
    }
}

/// Values on their way from vector registers to slots: vectors hash a batch, then a plain loop scatters it, because
/// CPUs have no fast scatter that takes minima.
#[cfg(target_arch = "x86_64")]
struct Batch {
    /// The slot numbers, in the high halves.
    slots: [u64; Batch::SIZE],
    values: [u64; Batch::SIZE],
}

#[cfg(target_arch = "x86_64")]
impl Batch {
    const SIZE: usize = 64;

    fn new() -> Self {
        Self { slots: [0; Self::SIZE], values: [0; Self::SIZE] }
    }

    /// Lowers each value's slot to that value if it is less.
    ///
    /// # Safety
    /// The high halves of the first `length` entries of `self.slots` are below `slots.len()`, and `length <= SIZE`.
    #[inline(always)]
    unsafe fn scatter(&self, length: usize, slots: &mut [u64]) {
        for i in 0..length {
            // SAFETY: `i < length <= SIZE`, and the caller guarantees that the entry is below `slots.len()`.
            unsafe {
                let slot = slots.get_unchecked_mut((*self.slots.get_unchecked(i) >> 32) as usize);
                *slot = (*slot).min(*self.values.get_unchecked(i));
            }
        }
    }
}

/// Returns the multipliers of a group of slots, by registers, padded with zeros where the group ends early.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn gather<const REGISTERS: usize>(multipliers: &[u64], group: &[u32]) -> [[u64; 8]; REGISTERS] {
    let mut words = [[0u64; 8]; REGISTERS];
    for (factor, &slot) in words.as_flattened_mut().iter_mut().zip(group) {
        *factor = multipliers[slot as usize];
    }
    words
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put(round: usize, group: &[u32], least: &[u64], slots: &mut [u64]) {
    for (&slot, &least) in group.iter().zip(least) {
        slots[slot as usize] = tagged(round, least);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn points(key: u64, values: &mut [u64]) {
        scalar::points(key, values);
    }

    /// Returns the low 64 bits of the product with a factor below 2^32.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn multiply(values: __m256i, factor: __m256i) -> __m256i {
        let low = _mm256_mul_epu32(values, factor);
        let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(values), factor);
        _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high))
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn throw(points: &[u64], multipliers: &[u64], first: usize, slots: &mut [u64]) {
        let worth_a_look = worth_a_look(slots.len());
        let mut batch = Batch::new();
        for (round, &multiplier) in multipliers.iter().enumerate().skip(first) {
            throw_once(points, multiplier, round, &mut batch, slots);
            if (round + 1) * points.len() >= worth_a_look && !slots.contains(&EMPTY) {
                return;
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    fn throw_once(points: &[u64], multiplier: u64, round: usize, batch: &mut Batch, slots: &mut [u64]) {
        let factor = _mm256_set1_epi64x(multiplier as i64);
        let range = _mm256_set1_epi64x(slots.len() as i64);
        let tag = _mm256_set1_epi64x(tagged(round, 0) as i64);
        let (whole, rest) = points.as_chunks::<4>();
        for part in whole.chunks(Batch::SIZE / 4) {
            let (batch_slots, _) = batch.slots.as_chunks_mut::<4>();
            let (batch_values, _) = batch.values.as_chunks_mut::<4>();
            for ((four, slots), values) in part.iter().zip(batch_slots).zip(batch_values) {
                // SAFETY: each pointer points to four elements of the type that is loaded or stored.
                unsafe {
                    let hash = multiply(_mm256_loadu_si256(four.as_ptr().cast()), factor);
                    let slot = _mm256_mul_epu32(_mm256_srli_epi64::<32>(hash), range);
                    _mm256_storeu_si256(slots.as_mut_ptr().cast(), slot);
                    let value = _mm256_or_si256(_mm256_srli_epi64::<{ TAG_BITS as i32 }>(hash), tag);
                    _mm256_storeu_si256(values.as_mut_ptr().cast(), value);
                }
            }
            // SAFETY: the high half of a product with `slots.len()` is below it, as in `slot_of`.
            unsafe { batch.scatter(4 * part.len(), slots) };
        }
        scalar::throw_once(rest, multiplier, round, slots);
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn count_empty(slots: &[u64]) -> usize {
        scalar::count_empty(slots)
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn list_empty(slots: &[u64], list: &mut Vec<u32>) -> usize {
        scalar::list_empty(slots, list)
    }

    /// Returns, for each factor, the least product with any point.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn least(points: &[u64], factors: &[u64; 8]) -> [u64; 8] {
        // Comparisons are signed; flipping the top bit makes them order as unsigned ones.
        let flip = _mm256_set1_epi64x(i64::MIN);
        // SAFETY: twice four words are loaded from an array of eight.
        let factors = unsafe {
            [_mm256_loadu_si256(factors.as_ptr().cast()), _mm256_loadu_si256(factors.as_ptr().add(4).cast())]
        };
        let mut least = [_mm256_set1_epi64x(i64::MAX); 2];
        for &point in points {
            let point = _mm256_set1_epi64x(point as i64);
            for (least, factors) in least.iter_mut().zip(factors) {
                let multiple = _mm256_xor_si256(multiply(point, factors), flip);
                *least = _mm256_blendv_epi8(*least, multiple, _mm256_cmpgt_epi64(*least, multiple));
            }
        }
        let mut found = [0u64; 8];
        // SAFETY: twice four words are stored into an array of eight.
        unsafe {
            _mm256_storeu_si256(found.as_mut_ptr().cast(), _mm256_xor_si256(least[0], flip));
            _mm256_storeu_si256(found.as_mut_ptr().add(4).cast(), _mm256_xor_si256(least[1], flip));
        }
        found
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn fill(points: &[u64], multipliers: &[u64], round: usize, list: &[u32], slots: &mut [u64]) {
        for group in list.chunks(8) {
            let [factors] = gather(multipliers, group);
            put(round, group, &least(points, &factors), slots);
        }
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn fill_all(points: &[u64], multipliers: &[u64], round: usize, slots: &mut [u64]) {
        let (groups, rest) = slots.as_chunks_mut::<8>();
        let (factors, rest_factors) = multipliers.as_chunks::<8>();
        for (group, factors) in groups.iter_mut().zip(factors) {
            for (slot, least) in group.iter_mut().zip(least(points, factors)) {
                *slot = (*slot).min(tagged(round, least));
            }
        }
        scalar::fill_all(points, rest_factors, round, rest);
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn columns(base: u64, words: &[u64], out: &mut [u64]) {
        scalar::columns(base, words, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::at_level;

    /// Runs all kernels one after the other, as a sketch does.
    fn run(level: Level, values: &[u64], multipliers: &[u64], rounds: usize, bands: usize) -> (Vec<u64>, Vec<u64>) {
        at_level(level, || {
            let mut points = values.to_vec();
            super::points(0x1234_5678_9abc_def0, &mut points);
            let mut slots = vec![EMPTY; multipliers.len()];
            let multipliers_of_rounds = &multipliers[..rounds.min(multipliers.len())];
            // In two parts, which must give the same as one.
            let first = rounds.min(1).min(multipliers.len());
            throw(&points, &multipliers_of_rounds[..first], 0, &mut slots);
            let mut at_once = vec![EMPTY; multipliers.len()];
            throw(&points, multipliers_of_rounds, 0, &mut at_once);
            throw(&points, multipliers_of_rounds, first, &mut slots);
            assert_eq!(slots, at_once);
            assert_eq!(count_empty(&slots), slots.iter().filter(|&&slot| slot == EMPTY).count());
            fill(&points, multipliers, rounds, &mut slots, &mut Vec::new());
            let mut keys = vec![1; bands];
            columns(0xd6e8_feb8_6659_fd93, &slots, &mut keys);
            (slots, keys)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_level_agrees_with_the_definition(
            values in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..3, Just(u64::MAX)], 0..300),
            seed in any::<u64>(),
            rows in 1usize..20,
            bands in 1usize..70,
            rounds in 0usize..=MOST_ROUNDS,
        ) {
            let multipliers: Vec<u64> =
                (0..rows * bands).map(|j| mix(seed.wrapping_add(j as u64)) >> 32 | 1 << 31 | 1).collect();
            let expected = run(Level::Scalar, &values, &multipliers, rounds, bands);
            for level in Level::available() {
                prop_assert_eq!(&run(level, &values, &multipliers, rounds, bands), &expected, "{:?}", level);
            }
        }
    }

    #[test]
    fn an_earlier_round_wins_and_nothing_is_empty() {
        assert!(tagged(0, u64::MAX) < tagged(1, 0));
        assert!(tagged(MOST_ROUNDS, u64::MAX) < EMPTY);
        for slots in [1, 2, 3, 640, (1 << 24) - 1] {
            assert_eq!(slot_of(0, slots), 0);
            assert_eq!(slot_of(u64::MAX, slots), slots - 1);
        }
    }

    #[test]
    fn extreme_points_agree_at_every_level() {
        let multipliers = [1 << 31 | 1, u32::MAX as u64, 0x9e37_79b9, 0x8000_0001, 0xdead_beef, 1, 3, 0xffff_fff1, 5];
        let points: Vec<u64> = [0, 1, u64::MAX, 1 << 63, 1 << 32, (1 << 32) - 1].into_iter().cycle().take(19).collect();
        for take in 1..=points.len() {
            let run = |level| {
                at_level(level, || {
                    let mut slots = vec![EMPTY; 9];
                    throw(&points[..take], &multipliers[..2], 0, &mut slots);
                    fill(&points[..take], &multipliers, 2, &mut slots, &mut Vec::new());
                    slots
                })
            };
            Level::available().for_each(|level| assert_eq!(run(level), run(Level::Scalar), "{level:?}, {take} points"));
        }
    }
}
