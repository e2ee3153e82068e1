//! Cache lines as small Bloom filters: blocks (Putze, Sanders & Singler 2007) split into lanes that each hold one bit
//! of a key, as in Apache Parquet, whose blocks are half as wide.
//!
//! Claim: testing or setting a key touches one aligned cache line and takes a handful of instructions.
//! Invariant: a key owns at most one bit in each of the line's eight 64-bit lanes. Where the bits lie is defined by
//! [`Probe::pattern`] and is part of the file format.
//! Not here: which line a key belongs to (`filter`).

#![allow(unsafe_code)]

use std::ops::{Index, IndexMut};

use super::Level;

/// One cache line: eight lanes of 64 bits.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Line(pub [u64; 8]);

impl Line {
    /// The number of bits in a line.
    pub(crate) const BITS: u64 = 512;

    /// A line with no bit set.
    pub(crate) const EMPTY: Line = Line([0; 8]);

    /// Returns the number of set bits.
    #[inline]
    pub(crate) fn ones(&self) -> u32 {
        self.0.iter().map(|lane| lane.count_ones()).sum()
    }
}

/// Lines in one run, or in several that are taken as one.
pub(crate) trait Lines: Index<usize, Output = Line> {
    /// Returns how many there are.
    fn count(&self) -> usize;
}

impl Lines for [Line] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
}

/// The bits that a key owns in its line.
///
/// A hash converts into the probe with a bit in all eight lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Lane `i` takes its bit number from bits `16 + 6 i ..`, and bits 13 to 15 give the rotation of `lanes`.
    fields: u64,
    /// One bit per lane, before rotation: whether the key has a bit there.
    lanes: u8,
}

const FIRST_FIELD: u32 = 16;
const ALL_LANES: u8 = 0xff;

/// Odd, and with about as many ones as zeros: the product's top 51 bits, the only ones used, depend on every bit of the
/// hash, while the line number depends on the hash's top bits alone.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// The number of lanes in which a key has a bit: 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes(u8);

impl Lanes {
    /// Returns `hashes` lanes, if a line has that many.
    pub(crate) const fn new(hashes: u32) -> Option<Lanes> {
        match hashes {
            1..=8 => Some(Lanes(ALL_LANES >> (8 - hashes))),
            _ => None,
        }
    }

    /// Returns the number of lanes.
    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the probe of a hash, with a bit in each of this many neighbouring lanes, the first of which is chosen by
    /// the hash.
    #[inline(always)]
    pub(crate) fn probe(self, hash: u64) -> Probe {
        Probe { fields: hash.wrapping_mul(SPREAD), lanes: self.0 }
    }
}

impl Probe {
    /// Returns the probe of a hash, with a bit in each of `hashes` lanes; see [`Lanes::probe`].
    ///
    /// # Panics
    /// If `hashes` is not between 1 and 8.
    #[inline(always)]
    pub(crate) fn new(hash: u64, hashes: u32) -> Probe {
        Lanes::new(hashes).expect("a line has 8 lanes").probe(hash)
    }

    /// Returns one bit per lane: whether the key has a bit there.
    #[inline(always)]
    fn rotated_lanes(self) -> u8 {
        self.lanes.rotate_left((self.fields >> 13 & 7) as u32)
    }

    /// Returns the key's bits as a line: the definition that every kernel follows.
    #[inline]
    pub(crate) fn pattern(self) -> Line {
        let lanes = self.rotated_lanes();
        Line(std::array::from_fn(|lane| {
            u64::from(lanes >> lane & 1) << (self.fields >> (FIRST_FIELD + 6 * lane as u32) & 63)
        }))
    }
}

impl From<u64> for Probe {
    #[inline(always)]
    fn from(hash: u64) -> Probe {
        Probe { fields: hash.wrapping_mul(SPREAD), lanes: ALL_LANES }
    }
}

/// A probe and the number of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line's number.
    pub line: usize,
    /// The key's bits in that line.
    pub probe: Probe,
}

/// Asks the CPU to fetch the line in which a value starts. Does nothing where there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching is a hint that can't fault, and SSE is in every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>((&raw const *value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Returns whether all bits of the key are set.
#[inline]
pub(crate) fn contains(line: &Line, probe: impl Into<Probe>) -> bool {
    let probe = probe.into();
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::contains(line, probe) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::contains(line, probe) },
        _ => scalar::contains(line, probe),
    }
}

/// Sets the key's bits. Returns true when one of them was new.
#[inline]
pub(crate) fn insert(line: &mut Line, probe: impl Into<Probe>) -> bool {
    let probe = probe.into();
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::insert(line, probe) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::insert(line, probe) },
        _ => scalar::insert(line, probe),
    }
}

/// Runs [`contains`] at the place that `place` returns for the number of lines. `place` is called inside the kernel: a
/// look-up takes a few nanoseconds, of which passing in a place computed outside would be a good part.
///
/// # Panics
/// If the place lies outside `lines`.
#[inline(always)]
pub(crate) fn contains_at<L: Lines + ?Sized>(lines: &L, place: impl FnOnce(usize) -> Place) -> bool {
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::contains_at(lines, place) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::contains_at(lines, place) },
        _ => scalar::contains_at(lines, place),
    }
}

/// Runs [`insert`] at the place that `place` returns for the number of lines; it is called inside the kernel.
///
/// # Panics
/// If the place lies outside `lines`.
#[inline(always)]
pub(crate) fn insert_at<L: Lines + IndexMut<usize> + ?Sized>(
    lines: &mut L,
    place: impl FnOnce(usize) -> Place,
) -> bool {
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::insert_at(lines, place) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::insert_at(lines, place) },
        _ => scalar::insert_at(lines, place),
    }
}

/// Runs [`contains`] for many keys, given by their hashes and by the place of each, with lines fetched ahead.
///
/// # Panics
/// If there are fewer answers than hashes, or a place lies outside `lines`.
#[inline]
pub(crate) fn contains_each<L: Lines + ?Sized>(
    lines: &L,
    hashes: &[u64],
    answers: &mut [bool],
    place: impl Fn(u64) -> Place,
) {
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::contains_each(lines, hashes, answers, place) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::contains_each(lines, hashes, answers, place) },
        _ => scalar::contains_each(lines, hashes, answers, place),
    }
}

/// Runs [`insert`] for many keys in order, given by their hashes and by the place of each, with lines fetched ahead.
///
/// # Panics
/// If there are fewer answers than hashes, or a place lies outside `lines`.
#[inline]
pub(crate) fn insert_each<L: Lines + IndexMut<usize> + ?Sized>(
    lines: &mut L,
    hashes: &[u64],
    answers: &mut [bool],
    place: impl Fn(u64) -> Place,
) {
    match Level::current() {
        // SAFETY (both): this level is available only on CPUs with these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::insert_each(lines, hashes, answers, place) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::insert_each(lines, hashes, answers, place) },
        _ => scalar::insert_each(lines, hashes, answers, place),
    }
}

/// How many keys are placed, and their lines fetched, before the first of them is looked at: enough to keep the memory
/// busy, few enough for the lines to stay in the first-level cache.
const AHEAD: usize = 32;

/// The loop over a batch, a macro so that a kernel's features apply inside it: `$visit` answers for each place in turn,
/// while `$fetch` fetches the line of the place `AHEAD` keys later.
macro_rules! visit_each {
    ($lines:ident, $hashes:ident, $answers:ident, $place:ident, $fetch:path, $visit:expr) => {{
        let answers = &mut $answers[..$hashes.len()];
        let mut flying = [Place { line: 0, probe: Probe::from(0) }; AHEAD];
        for (slot, &hash) in flying.iter_mut().zip($hashes) {
            *slot = $place(hash);
            $fetch(&$lines[slot.line]);
        }
        for (index, answer) in answers.iter_mut().enumerate() {
            let slot = &mut flying[index % AHEAD];
            let Place { line, probe } = *slot;
            if let Some(&hash) = $hashes.get(index + AHEAD) {
                *slot = $place(hash);
                $fetch(&$lines[slot.line]);
            }
            *answer = $visit(line, probe);
        }
    }};
}

/// The kernels that call for a key's place themselves, built around a module's own `contains` and `insert` and with its
/// features, so that all of it is inlined.
macro_rules! kernels_with_places {
    ($(#[$features:meta])*) => {
        $(#[$features])*
        pub fn contains_at<L: Lines + ?Sized>(lines: &L, place: impl FnOnce(usize) -> Place) -> bool {
            let Place { line, probe } = place(lines.count());
            contains(&lines[line], probe)
        }

        $(#[$features])*
        pub fn insert_at<L: Lines + IndexMut<usize> + ?Sized>(lines: &mut L, place: impl FnOnce(usize) -> Place) -> bool {
            let Place { line, probe } = place(lines.count());
            insert(&mut lines[line], probe)
        }

        $(#[$features])*
        pub fn contains_each<L: Lines + ?Sized>(lines: &L, hashes: &[u64], answers: &mut [bool], place: impl Fn(u64) -> Place) {
            visit_each!(lines, hashes, answers, place, prefetch, |line: usize, probe| contains(&lines[line], probe));
        }

        $(#[$features])*
        pub fn insert_each<L: Lines + IndexMut<usize> + ?Sized>(lines: &mut L, hashes: &[u64], answers: &mut [bool], place: impl Fn(u64) -> Place) {
            visit_each!(lines, hashes, answers, place, prefetch, |line: usize, probe| insert(&mut lines[line], probe));
        }
    };
}

mod scalar {
    use super::*;

    #[inline]
    pub(crate) fn contains(line: &Line, probe: Probe) -> bool {
        let missing = line.0.iter().zip(probe.pattern().0).fold(0, |missing, (lane, bits)| missing | (bits & !lane));
        missing == 0
    }

    #[inline]
    pub(crate) fn insert(line: &mut Line, probe: Probe) -> bool {
        let mut missing = 0;
        for (lane, bits) in line.0.iter_mut().zip(probe.pattern().0) {
            missing |= bits & !*lane;
            *lane |= bits;
        }
        missing != 0
    }

    // On CPUs with vectors this is the unlikely case, and better not inlined beside them.
    kernels_with_places!(#[inline(never)] #[cfg_attr(target_arch = "x86_64", cold)]);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    /// Returns the pattern's lower and upper four lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pattern(probe: Probe) -> [__m256i; 2] {
        let fields = _mm256_set1_epi64x(probe.fields as i64);
        let bits = |shifts: __m256i| {
            let numbers = _mm256_and_si256(_mm256_srlv_epi64(fields, shifts), _mm256_set1_epi64x(63));
            _mm256_sllv_epi64(_mm256_set1_epi64x(1), numbers)
        };
        let all = [bits(_mm256_setr_epi64x(16, 22, 28, 34)), bits(_mm256_setr_epi64x(40, 46, 52, 58))];
        if probe.lanes == ALL_LANES {
            return all;
        }
        let lanes = _mm256_set1_epi64x(i64::from(probe.rotated_lanes()));
        let chosen = |bits: __m256i, lane_bits: __m256i| {
            _mm256_and_si256(bits, _mm256_cmpeq_epi64(_mm256_and_si256(lanes, lane_bits), lane_bits))
        };
        [chosen(all[0], _mm256_setr_epi64x(1, 2, 4, 8)), chosen(all[1], _mm256_setr_epi64x(16, 32, 64, 128))]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(line: &Line) -> [__m256i; 2] {
        let halves: *const __m256i = (&raw const *line).cast();
        // SAFETY: a line is two aligned halves of 32 bytes.
        unsafe { [_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))] }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn holds(line: [__m256i; 2], bits: [__m256i; 2]) -> bool {
        let missing = _mm256_or_si256(_mm256_andnot_si256(line[0], bits[0]), _mm256_andnot_si256(line[1], bits[1]));
        _mm256_testz_si256(missing, missing) == 1
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn contains(line: &Line, probe: Probe) -> bool {
        holds(load(line), pattern(probe))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn insert(line: &mut Line, probe: Probe) -> bool {
        let (before, bits) = (load(line), pattern(probe));
        let halves: *mut __m256i = (&raw mut *line).cast();
        // SAFETY: a line is two aligned halves of 32 bytes.
        unsafe {
            _mm256_store_si256(halves, _mm256_or_si256(before[0], bits[0]));
            _mm256_store_si256(halves.add(1), _mm256_or_si256(before[1], bits[1]));
        }
        !holds(before, bits)
    }

    kernels_with_places!(#[target_feature(enable = "avx2,bmi2")]);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::*;

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn pattern(probe: Probe) -> __m512i {
        let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
        let numbers = _mm512_srlv_epi64(_mm512_set1_epi64(probe.fields as i64), shifts);
        // A rotation takes its count modulo 64, which saves masking the fields.
        if probe.lanes == ALL_LANES {
            _mm512_rolv_epi64(_mm512_set1_epi64(1), numbers)
        } else {
            _mm512_maskz_rolv_epi64(probe.rotated_lanes(), _mm512_set1_epi64(1), numbers)
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn load(line: &Line) -> __m512i {
        // SAFETY: a line is 64 aligned bytes.
        unsafe { _mm512_load_si512((&raw const *line).cast()) }
    }

    /// Returns whether all of the key's bits are set. A lane has at most one bit of the key, so it is enough that the
    /// lanes with a common bit are all of the key's lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn holds(line: __m512i, bits: __m512i, probe: Probe) -> bool {
        let common = _mm512_test_epi64_mask(line, bits);
        if probe.lanes == ALL_LANES { common == ALL_LANES } else { common == probe.rotated_lanes() }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(crate) fn contains(line: &Line, probe: Probe) -> bool {
        holds(load(line), pattern(probe), probe)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(crate) fn insert(line: &mut Line, probe: Probe) -> bool {
        let (before, bits) = (load(line), pattern(probe));
        // SAFETY: a line is 64 aligned bytes.
        unsafe { _mm512_store_si512((&raw mut *line).cast(), _mm512_or_si512(before, bits)) };
        !holds(before, bits, probe)
    }

    kernels_with_places!(#[target_feature(enable = "avx512f,avx512dq,bmi2")]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::at_level;

    proptest! {
        #[test]
        fn every_level_sets_and_finds_the_bits_of_the_scalar_twin(
            asked in prop::collection::vec(any::<u64>(), 1..=100),
            hashes in 1u32..=8,
        ) {
            let place = |hash: u64| Place { line: (hash >> 62) as usize, probe: Probe::new(hash, hashes) };
            let inserted = &asked[..asked.len() / 2];
            let run = || {
                let mut lines = [Line::EMPTY; 4];
                let new: Vec<bool> =
                    inserted.iter().map(|&hash| insert(&mut lines[place(hash).line], place(hash).probe)).collect();
                let found: Vec<bool> =
                    asked.iter().map(|&hash| contains(&lines[place(hash).line], place(hash).probe)).collect();

                let (mut placed, mut batch) = ([Line::EMPTY; 4], [Line::EMPTY; 4]);
                for (&hash, &new) in inserted.iter().zip(&new) {
                    assert_eq!(insert_at(&mut placed[..], |_| place(hash)), new);
                }
                for (&hash, &found) in asked.iter().zip(&found) {
                    assert_eq!(contains_at(&placed[..], |_| place(hash)), found);
                }
                let mut answers = vec![false; inserted.len()];
                insert_each(&mut batch[..], inserted, &mut answers, place);
                assert_eq!(answers, new);
                let mut answers = vec![false; asked.len()];
                contains_each(&batch[..], &asked, &mut answers, place);
                assert_eq!(answers, found);
                assert!(placed == lines && batch == lines);
                (lines, new, found)
            };
            let expected = at_level(Level::Scalar, run);
            for level in Level::available() {
                prop_assert_eq!(&at_level(level, run), &expected, "{:?}", level);
            }
        }

        #[test]
        fn a_key_owns_one_bit_in_each_of_its_lanes(hash in any::<u64>(), hashes in 1u32..=8) {
            let pattern = Probe::new(hash, hashes).pattern();
            prop_assert!(pattern.0.iter().all(|lane| lane.count_ones() <= 1));
            prop_assert_eq!(pattern.ones(), hashes);
        }
    }

    #[test]
    fn a_hash_stands_for_its_probe_of_all_lanes() {
        for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(Probe::from(hash), Probe::new(hash, 8));
        }
    }

    #[test]
    fn the_pattern_of_a_hash_is_frozen() {
        assert_eq!(Probe::from(0).pattern().0, [1; 8]);
        let lanes = Probe::new(0x0123_4567_89ab_cdef, 8).pattern().0.map(u64::trailing_zeros);
        assert_eq!(lanes, [3, 41, 42, 4, 36, 34, 17, 46]);
        let lanes = Probe::new(0x0123_4567_89ab_cdef, 3).pattern().0.map(u64::trailing_zeros);
        assert_eq!(lanes, [64, 64, 64, 4, 36, 34, 64, 64]);
    }
}
