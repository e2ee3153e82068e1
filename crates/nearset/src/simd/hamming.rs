//! Hamming distance by population count: between two word strings, and from one to many.
//!
//! [`hamming`] is one source compiled for each level: LLVM knows how to count bits with `VPOPCNTQ`, or by table look-up
//! (Muła, Kurz & Lemire, "Faster population counts using AVX2 instructions", 2018) where there is only AVX2. A sketch
//! scan runs [`scan_within`] for every query, so it is written out for rows of 1, 2 and 4 words: counts of neighbouring
//! words are added up across registers until each lane holds one row's distance, and one comparison then decides on as
//! many rows as there are lanes.

#![allow(unsafe_code)]

use super::{Level, line::prefetch};

/// Returns the number of bits in which two word strings differ.
///
/// # Panics
/// If the lengths are unequal.
pub(crate) fn hamming(a: &[u64], b: &[u64]) -> u32 {
    assert_eq!(a.len(), b.len(), "both sides must have the same number of words");
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { avx512::hamming(a, b) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { avx2::hamming(a, b) },
        Level::Scalar => {}
    }
    distance(a, b)
}

/// Appends to `found`, in ascending order, the numbers of the rows that differ from `query` in at most `radius` bits.
/// `rows` holds rows of `query.len()` words, one after the other.
///
/// # Panics
/// If the query is empty, or the last row is cut short.
pub(crate) fn scan_within(query: &[u64], rows: &[u64], radius: u32, found: &mut Vec<usize>) {
    assert!(!query.is_empty(), "a row must have at least one word");
    assert!(rows.len().is_multiple_of(query.len()), "the last row must be as long as the query");
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { avx512::scan_within(query, rows, radius, found) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { avx2::scan_within(query, rows, radius, found) },
        Level::Scalar => {}
    }
    scan_rows(query, rows, radius, 0, found);
}

/// Appends to `found` the distance and the number of each numbered row that differs from `query` in at most `radius`
/// bits, in the order of `numbers`. `rows` holds rows of `query.len()` words, one after the other.
///
/// # Panics
/// If the query is empty, or there is no row with some number.
pub(crate) fn select_within(query: &[u64], rows: &[u64], numbers: &[u32], radius: u32, found: &mut Vec<(u32, u32)>) {
    assert!(!query.is_empty(), "a row must have at least one word");
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these features.
        return unsafe { avx2::select_within(query, rows, numbers, radius, found) };
    }
    select_rows(query, rows, numbers, radius, found);
}

/// Appends to `found` the numbers of each query and row that differ in at most `radius` bits, and in how many, in the order of queries
/// and then of rows. Both hold strings of `words` words, one after the other.
///
/// # Panics
/// If strings have no words.
pub(crate) fn cross_within(queries: &[u64], rows: &[u64], words: usize, radius: u32, found: &mut Vec<(u32, u32, u32)>) {
    assert!(words > 0, "a row must have at least one word");
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these features.
        return unsafe { avx2::cross_within(queries, rows, words, radius, found) };
    }
    cross_rows(queries, rows, words, radius, found);
}

/// The definition of a comparison of all with all. Halves are compared first: what is far is far in them too.
#[inline(always)]
fn cross_rows(queries: &[u64], rows: &[u64], words: usize, radius: u32, found: &mut Vec<(u32, u32, u32)>) {
    match words {
        1 => cross_known::<1>(queries, rows, radius, found),
        2 => cross_known::<2>(queries, rows, radius, found),
        4 => cross_known::<4>(queries, rows, radius, found),
        _ => {
            for (i, query) in (0..).zip(queries.chunks_exact(words)) {
                for (j, row) in (0..).zip(rows.chunks_exact(words)) {
                    let distance = distance(query, row);
                    if distance <= radius {
                        found.push((i, j, distance));
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn cross_known<const WORDS: usize>(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32, u32)>) {
    let rows = rows.as_chunks::<WORDS>().0;
    for (i, query) in (0..).zip(queries.as_chunks::<WORDS>().0) {
        for (j, row) in (0..).zip(rows) {
            let (first, last) = (&row[..WORDS.div_ceil(2)], &row[WORDS.div_ceil(2)..]);
            let half = distance(&query[..WORDS.div_ceil(2)], first);
            if half > radius {
                continue;
            }
            let distance = half + distance(&query[WORDS.div_ceil(2)..], last);
            if distance <= radius {
                found.push((i, j, distance));
            }
        }
    }
}

/// How many rows are on their way from memory while one is compared.
const AHEAD: usize = 16;

/// How many words are compared before checking whether the radius is already exceeded.
const STRIDE: usize = 16;

/// The definition of a selection.
#[inline(always)]
fn select_rows(query: &[u64], rows: &[u64], numbers: &[u32], radius: u32, found: &mut Vec<(u32, u32)>) {
    match *query {
        // Lengths known to the compiler need no loop.
        [a] => select_known([a], rows, numbers, radius, found),
        [a, b] => select_known([a, b], rows, numbers, radius, found),
        [a, b, c, d] => select_known([a, b, c, d], rows, numbers, radius, found),
        _ => select_by(query.len(), rows, numbers, found, |row| {
            let mut sum = 0;
            for (query, row) in query.chunks(STRIDE).zip(row.chunks(STRIDE)) {
                sum += distance(query, row);
                if sum > radius {
                    return None;
                }
            }
            Some(sum)
        }),
    }
}

#[inline(always)]
fn select_known<const WORDS: usize>(
    query: [u64; WORDS],
    rows: &[u64],
    numbers: &[u32],
    radius: u32,
    found: &mut Vec<(u32, u32)>,
) {
    select_by(WORDS, rows, numbers, found, |row| {
        let row: &[u64; WORDS] = row.try_into().expect("a row has as many words as the query");
        Some(distance(&query, row)).filter(|&distance| distance <= radius)
    });
}

#[inline(always)]
fn select_by(
    words: usize,
    rows: &[u64],
    numbers: &[u32],
    found: &mut Vec<(u32, u32)>,
    within: impl Fn(&[u64]) -> Option<u32>,
) {
    for (i, &number) in numbers.iter().enumerate() {
        if let Some(&later) = numbers.get(i + AHEAD)
            && let Some(word) = rows.get(later as usize * words)
        {
            prefetch(word);
        }
        let start = number as usize * words;
        if let Some(distance) = within(&rows[start..start + words]) {
            found.push((distance, number));
        }
    }
}

#[inline(always)]
fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The definition of a scan; rows are numbered from `first`.
#[inline(always)]
fn scan_rows(query: &[u64], rows: &[u64], radius: u32, first: usize, found: &mut Vec<usize>) {
    for (i, row) in rows.chunks_exact(query.len()).enumerate() {
        if distance(query, row) <= radius {
            found.push(first + i);
        }
    }
}

/// Appends the positions of the set bits, counted from `first`.
#[inline(always)]
fn push_set(mut mask: u64, first: usize, found: &mut Vec<usize>) {
    while mask != 0 {
        found.push(first + mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{distance, push_set, scan_rows};

    #[target_feature(enable = "popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
    pub(super) fn hamming(a: &[u64], b: &[u64]) -> u32 {
        distance(a, b)
    }

    #[target_feature(enable = "popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
    pub(super) fn scan_within(query: &[u64], rows: &[u64], radius: u32, found: &mut Vec<usize>) {
        match *query {
            [a] => scan::<1>(_mm512_set1_epi64(a as i64), query, rows, radius, found),
            [a, b] => {
                let [a, b] = [a as i64, b as i64];
                scan::<2>(_mm512_setr_epi64(a, b, a, b, a, b, a, b), query, rows, radius, found);
            }
            [a, b, c, d] => {
                let [a, b, c, d] = [a as i64, b as i64, c as i64, d as i64];
                scan::<4>(_mm512_setr_epi64(a, b, c, d, a, b, c, d), query, rows, radius, found);
            }
            _ => scan_rows(query, rows, radius, 0, found),
        }
    }

    /// Scans rows of `WORDS` words, 64 rows per mask.
    #[target_feature(enable = "popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
    fn scan<const WORDS: usize>(repeated: __m512i, query: &[u64], rows: &[u64], radius: u32, found: &mut Vec<usize>) {
        let limit = _mm512_set1_epi64(i64::from(radius));
        let blocks = rows.chunks_exact(64 * WORDS);
        let rest = blocks.remainder();
        let mut first = 0;
        for block in blocks {
            let mut mask = 0;
            for (i, eight) in block.as_chunks::<8>().0.chunks_exact(WORDS).enumerate() {
                let counts = |register: usize| {
                    // SAFETY: the pointer is that of an array of eight words; the load needs no alignment.
                    let words = unsafe { _mm512_loadu_epi64(eight[register].as_ptr().cast()) };
                    _mm512_popcnt_epi64(_mm512_xor_si512(words, repeated))
                };
                let distances = match WORDS {
                    1 => counts(0),
                    2 => add_pairs(counts(0), counts(1)),
                    _ => add_pairs(add_pairs(counts(0), counts(1)), add_pairs(counts(2), counts(3))),
                };
                mask |= u64::from(_mm512_cmple_epu64_mask(distances, limit)) << (8 * i);
            }
            push_set(mask, first, found);
            first += 64;
        }
        scan_rows(query, rest, radius, first, found);
    }

    /// Returns the sums of the neighbouring lanes of `low`, then those of `high`.
    #[target_feature(enable = "avx512f")]
    fn add_pairs(low: __m512i, high: __m512i) -> __m512i {
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        _mm512_add_epi64(_mm512_permutex2var_epi64(low, even, high), _mm512_permutex2var_epi64(low, odd, high))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{cross_rows, distance, push_set, scan_rows, select_rows};

    #[target_feature(enable = "popcnt,avx2")]
    pub(super) fn hamming(a: &[u64], b: &[u64]) -> u32 {
        distance(a, b)
    }

    /// The definition, compiled for CPUs that count the bits of a word in one instruction.
    #[target_feature(enable = "popcnt,avx2")]
    pub(super) fn select_within(
        query: &[u64],
        rows: &[u64],
        numbers: &[u32],
        radius: u32,
        found: &mut Vec<(u32, u32)>,
    ) {
        select_rows(query, rows, numbers, radius, found);
    }

    /// The same.
    #[target_feature(enable = "popcnt,avx2")]
    pub(super) fn cross_within(
        queries: &[u64],
        rows: &[u64],
        words: usize,
        radius: u32,
        found: &mut Vec<(u32, u32, u32)>,
    ) {
        cross_rows(queries, rows, words, radius, found);
    }

    #[target_feature(enable = "popcnt,avx2")]
    pub(super) fn scan_within(query: &[u64], rows: &[u64], radius: u32, found: &mut Vec<usize>) {
        match *query {
            [a] => scan::<1>(_mm256_set1_epi64x(a as i64), query, rows, radius, found),
            [a, b] => {
                let [a, b] = [a as i64, b as i64];
                scan::<2>(_mm256_setr_epi64x(a, b, a, b), query, rows, radius, found);
            }
            [a, b, c, d] => {
                let [a, b, c, d] = [a as i64, b as i64, c as i64, d as i64];
                scan::<4>(_mm256_setr_epi64x(a, b, c, d), query, rows, radius, found);
            }
            _ => scan_rows(query, rows, radius, 0, found),
        }
    }

    /// Scans rows of `WORDS` words, 16 rows per mask.
    #[target_feature(enable = "popcnt,avx2")]
    fn scan<const WORDS: usize>(repeated: __m256i, query: &[u64], rows: &[u64], radius: u32, found: &mut Vec<usize>) {
        let limit = _mm256_set1_epi64x(i64::from(radius));
        let blocks = rows.chunks_exact(16 * WORDS);
        let rest = blocks.remainder();
        let mut first = 0;
        for block in blocks {
            let mut beyond = 0;
            for (i, four) in block.as_chunks::<4>().0.chunks_exact(WORDS).enumerate() {
                let counts = |register: usize| {
                    // SAFETY: the pointer is that of an array of four words; the load needs no alignment.
                    let words = unsafe { _mm256_loadu_si256(four[register].as_ptr().cast()) };
                    count_ones(_mm256_xor_si256(words, repeated))
                };
                let distances = match WORDS {
                    1 => counts(0),
                    2 => _mm256_permute4x64_epi64::<0b11_01_10_00>(add_pairs(counts(0), counts(1))),
                    _ => {
                        let (low, high) = (add_pairs(counts(0), counts(1)), add_pairs(counts(2), counts(3)));
                        let first_halves = _mm256_permute2x128_si256::<0x20>(low, high);
                        _mm256_add_epi64(first_halves, _mm256_permute2x128_si256::<0x31>(low, high))
                    }
                };
                let four = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(distances, limit)));
                beyond |= (four as u64) << (4 * i);
            }
            push_set(!beyond & 0xffff, first, found);
            first += 16;
        }
        scan_rows(query, rest, radius, first, found);
    }

    /// Returns the sums of neighbouring lanes, those of `low` in lanes 0 and 2, those of `high` in lanes 1 and 3.
    #[target_feature(enable = "avx2")]
    fn add_pairs(low: __m256i, high: __m256i) -> __m256i {
        _mm256_add_epi64(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high))
    }

    /// Counts the set bits in each 64-bit lane: each half byte's count is looked up, then bytes are added up.
    #[target_feature(enable = "avx2")]
    fn count_ones(words: __m256i) -> __m256i {
        let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        let low_half = _mm256_set1_epi8(0xf);
        let low = _mm256_shuffle_epi8(table, _mm256_and_si256(words, low_half));
        let high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(words), low_half));
        _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Seed, hash::Rng, simd::at_level};

    /// Counts one bit at a time.
    fn by_the_book(a: &[u64], b: &[u64]) -> u32 {
        let bit = |words: &[u64], i: usize| words[i / 64] >> (i % 64) & 1;
        (0..64 * a.len()).filter(|&i| bit(a, i) != bit(b, i)).count() as u32
    }

    fn check(query: &[u64], rows: &[u64], radius: u32) {
        let distances: Vec<u32> = rows.chunks_exact(query.len()).map(|row| by_the_book(query, row)).collect();
        let expected: Vec<usize> = (0..distances.len()).filter(|&i| distances[i] <= radius).collect();
        for level in Level::available() {
            at_level(level, || {
                let mut found = vec![usize::MAX];
                scan_within(query, rows, radius, &mut found);
                assert_eq!(found[0], usize::MAX, "earlier entries must stay");
                assert_eq!(found[1..], expected, "{level:?}, {} words, radius {radius}", query.len());
                for (row, &distance) in rows.chunks_exact(query.len()).zip(&distances) {
                    assert_eq!(hamming(query, row), distance, "{level:?}");
                }
                // Backwards and twice, since any rows may be requested, in any order.
                let numbers: Vec<u32> = (0..distances.len() as u32).rev().flat_map(|number| [number; 2]).collect();
                let mut selected = Vec::new();
                select_within(query, rows, &numbers, radius, &mut selected);
                let with_distance = numbers.iter().map(|&number| (distances[number as usize], number));
                let expected: Vec<(u32, u32)> = with_distance.filter(|(distance, _)| *distance <= radius).collect();
                assert_eq!(selected, expected, "{level:?}, {} words, radius {radius}", query.len());
                let mut crossed = Vec::new();
                cross_within(&[query, query].concat(), rows, query.len(), radius, &mut crossed);
                let near = (0..).zip(&distances).filter(|(_, distance)| **distance <= radius);
                let expected: Vec<(u32, u32, u32)> =
                    (0..2).flat_map(|i| near.clone().map(move |(j, &distance)| (i, j, distance))).collect();
                assert_eq!(crossed, expected, "{level:?}, {} words, radius {radius}", query.len());
            });
        }
    }

    #[test]
    fn every_level_counts_alike_for_every_width_and_number_of_rows() {
        let mut rng = Rng::new(Seed::new(1));
        for words in 1..=9 {
            for rows in [0, 1, 3, 15, 16, 17, 63, 64, 65, 130, 200] {
                let query: Vec<u64> = (0..words).map(|_| rng.next_u64()).collect();
                let rows: Vec<u64> = (0..words * rows).map(|_| rng.next_u64()).collect();
                // Random rows differ in about half of the bits: some lie within the radius, some beyond.
                check(&query, &rows, 32 * words as u32);
                check(&query, &rows, 0);
                check(&query, &rows, u32::MAX);
            }
        }
    }

    #[test]
    fn the_radius_itself_is_within() {
        for words in [1usize, 2, 3, 4, 8] {
            let query = vec![0; words];
            // Row i has i bits set, spread from the first word to the last and back.
            let rows: Vec<u64> = (0..=64 * words)
                .flat_map(|count| {
                    (0..words).map(move |word| {
                        (0..64).filter(|bit| bit * words + word < count).fold(0u64, |set, bit| set | 1 << bit)
                    })
                })
                .collect();
            for radius in [0, 1, 31, 32, 63, 64, 64 * words as u32] {
                check(&query, &rows, radius);
            }
        }
    }

    proptest! {
        #[test]
        fn long_strings_count_alike(words in prop::collection::vec(any::<[u64; 2]>(), 0..300)) {
            let (a, b): (Vec<u64>, Vec<u64>) = words.iter().map(|pair| (pair[0], pair[1])).unzip();
            let expected = by_the_book(&a, &b);
            for level in Level::available() {
                prop_assert_eq!(at_level(level, || hamming(&a, &b)), expected);
            }
        }
    }

    #[test]
    #[should_panic(expected = "as long as the query")]
    fn a_row_cut_short_is_refused() {
        scan_within(&[1, 2], &[1, 2, 3], 5, &mut Vec::new());
    }
}
