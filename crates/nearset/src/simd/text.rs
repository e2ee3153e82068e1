//! Kernels for text: where its spans of word bytes begin and end, and the rolling hash over its words.

#![allow(unsafe_code)]

use super::Level;
use crate::hash::mix;

/// Bytes that [`span_edges`] takes at most.
pub(crate) const CHUNK: usize = 2048;

/// Room for an edge at every byte of a chunk, one that the caller adds, and what a kernel writes beyond the last.
pub(crate) const EDGES: usize = CHUNK + 64;

/// ASCII letters and digits, and every byte of a character outside ASCII.
#[inline(always)]
pub(crate) const fn is_span_byte(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric()
}

/// Writes where spans of [`is_span_byte`] begin and end, in turn, and returns how many edges there are: an odd number if
/// the last span reaches the end of `bytes`. What stands in `edges` beyond them is arbitrary.
///
/// # Panics
/// If there are more than [`CHUNK`] bytes.
#[inline]
pub(crate) fn span_edges(bytes: &[u8], edges: &mut [u16; EDGES]) -> usize {
    assert!(bytes.len() <= CHUNK, "{} bytes in a chunk of {CHUNK}", bytes.len());
    match Level::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Level::Avx512 => unsafe { x86::span_edges_avx512(bytes, edges) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::span_edges_avx2(bytes, edges) },
        _ => span_edges_scalar(bytes, edges),
    }
}

fn span_edges_scalar(bytes: &[u8], edges: &mut [u16; EDGES]) -> usize {
    let mut count = 0;
    let mut inside = false;
    for (at, &byte) in bytes.iter().enumerate() {
        // Written always and kept only at a change: no branch that text could make unpredictable.
        edges[count] = at as u16;
        count += usize::from(inside != is_span_byte(byte));
        inside = is_span_byte(byte);
    }
    count
}

/// The sum that [`roll`] takes of each window: `offset + Σ base^(width - 1 - t) * window[t]`, modulo 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Polynomial {
    pub base: u64,
    pub offset: u64,
}

impl Polynomial {
    /// The mixed sum over one window.
    #[inline]
    pub(crate) fn of(self, window: &[u64]) -> u64 {
        mix(self.sum(window).wrapping_add(self.offset))
    }

    #[inline]
    fn sum(self, window: &[u64]) -> u64 {
        window.iter().fold(0, |sum: u64, word| sum.wrapping_mul(self.base).wrapping_add(*word))
    }
}

/// Replaces word `i` by the polynomial of the `width` words from `i` on, wherever there are so many; returns how many
/// those are, and leaves the last `width - 1` words as they were.
///
/// # Panics
/// If `width` is 0.
#[inline]
pub(crate) fn roll(words: &mut [u64], width: usize, polynomial: Polynomial) -> usize {
    assert!(width > 0, "a window of no words");
    let count = (words.len() + 1).saturating_sub(width);
    if count == 0 {
        return 0;
    }
    #[allow(unused_mut)]
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if Level::current() == Level::Avx512 && width <= LONGEST_SUMMED_ANEW {
        // SAFETY: the level says that the CPU has these instructions.
        done = unsafe { x86::roll_avx512(words, width, polynomial) };
    }
    roll_scalar(&mut words[done..], width, polynomial);
    count
}

/// The vector kernel sums each window anew, which pays while windows are short.
#[cfg(target_arch = "x86_64")]
const LONGEST_SUMMED_ANEW: usize = 12;

fn roll_scalar(words: &mut [u64], width: usize, polynomial: Polynomial) {
    let Some(last) = words.len().checked_sub(width) else { return };
    let Polynomial { base, offset } = polynomial;
    let leaving = base.wrapping_pow(width as u32);
    let mut sum = polynomial.sum(&words[..width]);
    for i in 0..last {
        let left = words[i].wrapping_mul(leaving);
        words[i] = mix(sum.wrapping_add(offset));
        sum = sum.wrapping_mul(base).wrapping_add(words[i + width]).wrapping_sub(left);
    }
    words[last] = mix(sum.wrapping_add(offset));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{EDGES, Polynomial};

    /// Bit `i` is set where a span begins or ends at byte `i`. `inside` says if the byte before the block was in a span.
    #[inline(always)]
    fn edge_bits(word_bytes: u64, inside: &mut u64) -> u64 {
        let edges = word_bytes ^ (word_bytes << 1 | *inside);
        *inside = word_bytes >> 63;
        edges
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt,bmi1")]
    pub(super) fn span_edges_avx512(bytes: &[u8], edges: &mut [u16; EDGES]) -> usize {
        let identity: [u8; 64] = std::array::from_fn(|i| i as u8);
        // SAFETY: the array has 64 bytes.
        let identity = unsafe { _mm512_loadu_si512(identity.as_ptr().cast()) };
        let (mut count, mut inside) = (0, 0);
        for (index, block) in bytes.chunks(64).enumerate() {
            let valid = u64::MAX >> (64 - block.len());
            // SAFETY: the mask keeps the load within the block.
            let block_bytes = unsafe { _mm512_maskz_loadu_epi8(valid, block.as_ptr().cast()) };
            let lower = _mm512_or_si512(block_bytes, _mm512_set1_epi8(0x20));
            let from_a = _mm512_sub_epi8(lower, _mm512_set1_epi8(b'a' as i8));
            let from_0 = _mm512_sub_epi8(block_bytes, _mm512_set1_epi8(b'0' as i8));
            let word_bytes = _mm512_cmplt_epu8_mask(from_a, _mm512_set1_epi8(26))
                | _mm512_cmplt_epu8_mask(from_0, _mm512_set1_epi8(10))
                | _mm512_movepi8_mask(block_bytes);
            // Past the end the last byte is repeated, so that the end of the text is no edge.
            let word_bytes = word_bytes | if word_bytes >> (block.len() - 1) & 1 == 1 { !valid } else { 0 };
            let bits = edge_bits(word_bytes, &mut inside);

            let positions = _mm512_maskz_compress_epi8(bits, identity);
            let base = _mm512_set1_epi16((index * 64) as i16);
            let found = bits.count_ones() as usize;
            let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
            let room = &mut edges[count..count + 64];
            // SAFETY: `room` has 64 places, 32 for each half.
            unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_add_epi16(low, base)) };
            if found > 32 {
                let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(room[32..].as_mut_ptr().cast(), _mm512_add_epi16(high, base)) };
            }
            count += found;
        }
        count
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn span_edges_avx2(bytes: &[u8], edges: &mut [u16; EDGES]) -> usize {
        let (mut count, mut inside) = (0, 0);
        for (index, block) in bytes.chunks(64).enumerate() {
            let mut padded = [0; 64];
            let block_bytes = match block.first_chunk::<64>() {
                Some(whole) => whole,
                None => {
                    padded[..block.len()].copy_from_slice(block);
                    &padded
                }
            };
            let half_mask = |half: usize| {
                // SAFETY: each half has 32 of the 64 bytes.
                let half_bytes = unsafe { _mm256_loadu_si256(block_bytes.as_ptr().add(32 * half).cast()) };
                let lower = _mm256_or_si256(half_bytes, _mm256_set1_epi8(0x20));
                let from_a = _mm256_sub_epi8(lower, _mm256_set1_epi8(b'a' as i8));
                let from_0 = _mm256_sub_epi8(half_bytes, _mm256_set1_epi8(b'0' as i8));
                let letter = _mm256_cmpeq_epi8(_mm256_min_epu8(from_a, _mm256_set1_epi8(25)), from_a);
                let digit = _mm256_cmpeq_epi8(_mm256_min_epu8(from_0, _mm256_set1_epi8(9)), from_0);
                let any = _mm256_or_si256(_mm256_or_si256(letter, digit), half_bytes);
                u64::from(_mm256_movemask_epi8(any) as u32)
            };
            let word_bytes = half_mask(0) | half_mask(1) << 32;
            let valid = u64::MAX >> (64 - block.len());
            let word_bytes = word_bytes | if word_bytes >> (block.len() - 1) & 1 == 1 { !valid } else { 0 };
            let mut bits = edge_bits(word_bytes, &mut inside);

            let found = bits.count_ones() as usize;
            let room = &mut edges[count..count + 64];
            // Eight at a time, written whether or not there are so many: one branch for eight edges.
            for eight in room.chunks_exact_mut(8).take(found.div_ceil(8)) {
                for place in eight {
                    *place = (index * 64) as u16 + bits.trailing_zeros() as u16;
                    bits &= bits.wrapping_sub(1);
                }
            }
            count += found;
        }
        count
    }

    /// As the scalar twin, for a multiple of 8 shingles; returns how many were made.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn roll_avx512(words: &mut [u64], width: usize, polynomial: Polynomial) -> usize {
        let count = (words.len() + 1 - width) / 8 * 8;
        let base = _mm512_set1_epi64(polynomial.base as i64);
        let offset = _mm512_set1_epi64(polynomial.offset as i64);
        for i in (0..count).step_by(8) {
            let window = &mut words[i..i + width + 7];
            // SAFETY: the window has `width + 7` words, so 8 from each of its first `width` on.
            let load = |t: usize| unsafe { _mm512_loadu_si512(window.as_ptr().add(t).cast()) };
            let mut sum = load(0);
            for t in 1..width {
                sum = _mm512_add_epi64(_mm512_mullo_epi64(sum, base), load(t));
            }
            let mixed = mix(_mm512_add_epi64(sum, offset));
            // SAFETY: as above. The next 8 windows begin after what is overwritten.
            unsafe { _mm512_storeu_si512(window.as_mut_ptr().cast(), mixed) };
        }
        count
    }

    /// `hash::mix` in each lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn mix(x: __m512i) -> __m512i {
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<30>(x));
        let x = _mm512_mullo_epi64(x, _mm512_set1_epi64(0xbf58_476d_1ce4_e5b9_u64 as i64));
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<27>(x));
        let x = _mm512_mullo_epi64(x, _mm512_set1_epi64(0x94d0_49bb_1331_11eb_u64 as i64));
        _mm512_xor_si512(x, _mm512_srli_epi64::<31>(x))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Seed,
        hash::Rng,
        simd::{Level, at_level},
    };

    /// The edges as the documentation of [`span_edges`] defines them.
    fn edges_by_definition(bytes: &[u8]) -> Vec<u16> {
        let inside = |at: usize| is_span_byte(bytes[at]);
        (0..bytes.len()).filter(|&at| inside(at) != (at > 0 && inside(at - 1))).map(|at| at as u16).collect()
    }

    fn check_edges(bytes: &[u8]) {
        let expected = edges_by_definition(bytes);
        for level in Level::available() {
            let mut edges = [u16::MAX; EDGES];
            let count = at_level(level, || span_edges(bytes, &mut edges));
            assert_eq!(edges[..count], expected, "{level:?}, {bytes:?}");
        }
    }

    #[test]
    fn edges_are_the_same_at_every_level() {
        for length in (0..200).chain([CHUNK - 1, CHUNK]) {
            check_edges(&vec![b'a'; length]);
            check_edges(&vec![b' '; length]);
            check_edges(&(0..length).map(|at| if at % 2 == 0 { b'Z' } else { b'\0' }).collect::<Vec<u8>>());
            check_edges(&(0..length).map(|at| if at % 65 == 64 { b' ' } else { 0xff }).collect::<Vec<u8>>());
        }
        for byte in 0..=u8::MAX {
            check_edges(&[byte]);
            check_edges(&[b' ', byte, b'a', byte]);
        }
    }

    #[test]
    fn rolling_is_the_same_at_every_level() {
        let mut rng = Rng::new(Seed::new(11));
        let polynomial = Polynomial { base: rng.next_u64() | 1, offset: rng.next_u64() };
        for width in (1..20).chain([63, 255]) {
            for length in (0..40).chain([width, width + 7, width + 8, 300]) {
                let words: Vec<u64> = (0..length).map(|_| rng.next_u64()).collect();
                let mut expected: Vec<u64> = words.windows(width).map(|window| polynomial.of(window)).collect();
                let count = expected.len();
                expected.extend_from_slice(&words[count..]);
                for level in Level::available() {
                    let mut rolled = words.clone();
                    assert_eq!(at_level(level, || roll(&mut rolled, width, polynomial)), count);
                    assert_eq!(rolled, expected, "{level:?}, {length} words, {width} a window");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn edges_of_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            check_edges(&bytes);
        }

        #[test]
        fn edges_of_long_and_short_spans(runs in prop::collection::vec((any::<bool>(), 1..70usize), 0..30)) {
            let bytes: Vec<u8> =
                runs.iter().flat_map(|&(inside, length)| vec![if inside { b'q' } else { b'-' }; length]).collect();
            check_edges(&bytes[..bytes.len().min(CHUNK)]);
        }
    }
}
