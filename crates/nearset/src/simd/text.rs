//! Kernels for text: the start and end of its spans of word bytes, its ASCII words joined, the hashes of short spans and of
//! windows, and the rolling hash over words.

#![allow(unsafe_code)]

use std::{mem::MaybeUninit, slice};

use super::Level;
use crate::hash::{ByteHash, mix};

/// The maximum number of bytes that [`Spans::find`] takes.
pub(crate) const CHUNK: usize = 2048;

/// Room for an edge at every byte of a chunk and one at its end.
const EDGES: usize = CHUNK + 1;

/// Returns whether a byte is an ASCII letter or digit, or belongs to a character outside ASCII.
#[inline(always)]
pub(crate) const fn is_span_byte(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric()
}

/// The start and the end of a span.
pub(crate) type Span = [u16; 2];

/// Scratch space for finding spans, which are maximal runs of [`is_span_byte`].
pub(crate) struct Spans {
    edges: [MaybeUninit<u16>; EDGES],
}

impl Spans {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { edges: [MaybeUninit::uninit(); EDGES] }
    }

    /// Returns the spans of `bytes` in order. A span that reaches their end is left out and its start returned
    /// separately, unless the text is known to be `whole`.
    ///
    /// # Panics
    /// If there are more than [`CHUNK`] bytes.
    #[inline]
    pub(crate) fn find(&mut self, bytes: &[u8], whole: bool) -> (&[Span], Option<u16>) {
        assert!(bytes.len() <= CHUNK, "{} bytes in a chunk of {CHUNK}", bytes.len());
        let mut count = match Level::current() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level says that the CPU has these instructions.
            Level::Avx512 => unsafe { x86::span_edges_avx512(bytes, &mut self.edges) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { x86::span_edges_avx2(bytes, &mut self.edges) },
            _ => span_edges_scalar(bytes, &mut self.edges),
        };
        if whole && count % 2 == 1 {
            self.edges[count].write(bytes.len() as u16);
            count += 1;
        }
        let edges = &self.edges[..count];
        // SAFETY: each kernel has written as many edges as it returns, starting from the first, and one more was added.
        let edges = unsafe { slice::from_raw_parts(edges.as_ptr().cast::<u16>(), edges.len()) };
        let (spans, open) = edges.as_chunks();
        (spans, open.first().copied())
    }
}

/// Writes the starts and ends of spans, alternating, and returns the number of edges, to which the end of `bytes` does
/// not belong.
fn span_edges_scalar(bytes: &[u8], edges: &mut [MaybeUninit<u16>; EDGES]) -> usize {
    let mut count = 0;
    let mut inside = false;
    for (at, &byte) in bytes.iter().enumerate() {
        // Always written but kept only at a change, which avoids a branch that text could make unpredictable.
        edges[count].write(at as u16);
        count += usize::from(inside != is_span_byte(byte));
        inside = is_span_byte(byte);
    }
    count
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Makes ASCII letters lower case and leaves digits as they are.
const LOWER_CASE: u64 = 0x2020_2020_2020_2020;

/// Keeps the first `length` bytes of 16, as two little-endian words.
const MASKS: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut length = 1;
    while length <= 16 {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
};

/// Returns `length <= 16` bytes from `from` on, then zeros, as two words combined with `or`.
#[inline(always)]
pub(crate) fn padded_words(bytes: &[u8], from: usize, length: usize, or: u64) -> [u64; 2] {
    let sixteen = match bytes.get(from..from + 16) {
        Some(sixteen) => u128::from_le_bytes(sixteen.try_into().expect("16 bytes")),
        None => padded_tail(&bytes[from..]),
    };
    let mask = MASKS[length];
    [(sixteen as u64 | or) & mask[0], ((sixteen >> 64) as u64 | or) & mask[1]]
}

#[cold]
fn padded_tail(tail: &[u8]) -> u128 {
    let mut padded = [0; 16];
    padded[..tail.len()].copy_from_slice(tail);
    u128::from_le_bytes(padded)
}

/// Returns a span in lower case and zero-padded, if it is short and ASCII.
#[inline(always)]
fn short_ascii(bytes: &[u8], from: usize, length: usize) -> Option<[u64; 2]> {
    if length > 16 {
        return None;
    }
    let words = padded_words(bytes, from, length, LOWER_CASE);
    are_ascii(words).then_some(words)
}

/// Returns whether all bytes are ASCII.
#[inline(always)]
pub(crate) fn are_ascii([low, high]: [u64; 2]) -> bool {
    (low | high) & HIGH_BITS == 0
}

#[inline(always)]
pub(crate) fn join([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// Appends the hashes of spans, in lower case, to `out`, up to the first that is longer than 16 bytes or not ASCII.
/// Returns how many were appended.
#[inline]
pub(crate) fn hash_short_spans(hash: &ByteHash, bytes: &[u8], spans: &[Span], out: &mut Vec<u64>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these instructions.
        return unsafe { x86::hash_short_spans_bmi2(hash, bytes, spans, out) };
    }
    hash_short_spans_scalar(hash, bytes, spans, out)
}

#[inline(always)]
fn hash_short_spans_scalar(hash: &ByteHash, bytes: &[u8], spans: &[Span], out: &mut Vec<u64>) -> usize {
    out.reserve(spans.len());
    let (hash, before) = (*hash, out.len());
    let mut count = 0;
    for (place, &[from, to]) in out.spare_capacity_mut().iter_mut().zip(spans) {
        let length = usize::from(to.wrapping_sub(from));
        let Some(words) = short_ascii(bytes, from.into(), length) else { break };
        place.write(hash.hash_padded(join(words), length));
        count += 1;
    }
    // SAFETY: `count` places after those in use have been written.
    unsafe { out.set_len(before + count) };
    count
}

/// Appends the same spans as [`hash_short_spans`], in lower case, to `out`, with a space between each and what precedes
/// it. Returns how many were appended, at most 32: room for more would be wasted if a span soon ends the run.
pub(crate) fn join_short_spans(bytes: &[u8], spans: &[Span], out: &mut Vec<u8>) -> usize {
    let spans = &spans[..spans.len().min(32)];
    let mut at = out.len();
    // A word and its space, and 16 bytes that are always written.
    out.resize(at + 17 * spans.len() + 16, 0);
    let mut count = 0;
    for &[from, to] in spans {
        let length = usize::from(to.wrapping_sub(from));
        let Some(words) = short_ascii(bytes, from.into(), length) else { break };
        if at > 0 {
            out[at] = b' ';
            at += 1;
        }
        out[at..at + 16].copy_from_slice(&join(words).to_le_bytes());
        at += length;
        count += 1;
    }
    out.truncate(at);
    count
}

/// Appends ASCII words in lower case, with one space between two of them, as far as they go: up to the end, or to the span in which the
/// first byte outside ASCII is. Returns how many bytes that were. `out` must be empty.
pub(crate) fn join_ascii_words(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    debug_assert!(out.is_empty());
    let count = match bytes.is_ascii() {
        true => bytes.len(),
        false => {
            let ascii = bytes.iter().take_while(|byte| byte.is_ascii()).count();
            bytes[..ascii].iter().rposition(|&byte| !is_span_byte(byte)).map_or(0, |separator| separator + 1)
        }
    };
    let bytes = &bytes[..count];
    // The longest that a kernel writes behind what it counts.
    out.reserve(count + 64);
    let room = &mut out.spare_capacity_mut()[..count + 64];
    let joined = match Level::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Level::Avx512 => unsafe { x86::join_ascii_words_avx512(bytes, room) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::join_ascii_words_avx2(bytes, room) },
        _ => join_ascii_words_scalar(bytes, room),
    };
    // SAFETY: each kernel has written as many bytes as it returns.
    unsafe { out.set_len(joined) };
    // The separator behind the last word.
    if out.last() == Some(&b' ') {
        out.pop();
    }
    count
}

/// Writes words as [`join_ascii_words`] does, each with a space behind it, but for a last one that no separator ends. Returns how many bytes
/// that are.
fn join_ascii_words_scalar(bytes: &[u8], room: &mut [MaybeUninit<u8>]) -> usize {
    let (mut count, mut inside) = (0, false);
    for &byte in bytes {
        let is_word = is_span_byte(byte);
        // Always written but kept only where it counts, which avoids a branch that text could make unpredictable.
        room[count].write(if is_word { byte | LOWER_CASE as u8 } else { b' ' });
        count += usize::from(is_word | inside);
        inside = is_word;
    }
    count
}

/// Appends the hash of every window of `length` bytes to `out`.
///
/// # Panics
/// If `length` is 0.
pub(crate) fn hash_windows(hash: &ByteHash, bytes: &[u8], length: usize, out: &mut Vec<u64>) {
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these instructions.
        return unsafe { x86::hash_windows_bmi2(hash, bytes, length, out) };
    }
    hash_windows_scalar(hash, bytes, length, out);
}

#[inline(always)]
fn hash_windows_scalar(hash: &ByteHash, bytes: &[u8], length: usize, out: &mut Vec<u64>) {
    let hash = *hash;
    let mut rest = bytes;
    if length <= 16 && bytes.len() >= 16 {
        let mask = join(MASKS[length]);
        let (before, count) = (out.len(), bytes.len() - 15);
        out.reserve(count);
        for (place, window) in out.spare_capacity_mut().iter_mut().zip(bytes.windows(16)) {
            let window: [u8; 16] = window.try_into().expect("a window of 16 bytes");
            place.write(hash.hash_padded(u128::from_le_bytes(window) & mask, length));
        }
        // SAFETY: there are `count` windows and room for as many, so all were written.
        unsafe { out.set_len(before + count) };
        rest = &bytes[count..];
    }
    out.extend(rest.windows(length).map(|window| hash.hash(window)));
}

/// Appends the hash of every window of `length` characters of UTF-8 to `out`, of which there are none if there are fewer
/// characters.
///
/// # Panics
/// If `length` is 0.
pub(crate) fn hash_char_windows(hash: &ByteHash, text: &[u8], length: usize, out: &mut Vec<u64>) {
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these instructions.
        return unsafe { x86::hash_char_windows_bmi2(hash, text, length, out) };
    }
    hash_char_windows_scalar(hash, text, length, out);
}

#[inline(always)]
fn hash_char_windows_scalar(hash: &ByteHash, text: &[u8], length: usize, out: &mut Vec<u64>) {
    assert!(length > 0, "a window must have at least one character");
    let hash = *hash;
    // Without a branch on the length, which is hard to predict where scripts alternate.
    let char_length = |&byte: &u8| 1 + [0xc0, 0xe0, 0xf0].map(|least| usize::from(byte >= least)).iter().sum::<usize>();
    let (mut from, mut to) = (0, 0);
    for _ in 1..length {
        to += text.get(to).map_or(1, char_length);
    }
    out.reserve(text.len() / 3);
    while let Some(last) = text.get(to) {
        to += char_length(last);
        let bytes = to - from;
        out.push(match text.get(from..from + 32) {
            Some(room) if bytes <= 32 => {
                let words = |at: usize, length: usize| join(padded_words(room, at, length, 0));
                hash.hash_padded_twice([words(0, bytes.min(16)), words(16, bytes.saturating_sub(16))], bytes)
            }
            _ => hash.hash(&text[from..to]),
        });
        from += char_length(&text[from]);
    }
}

/// The sum that [`roll`] computes for each window: `offset + Σ base^(width - 1 - t) * window[t]`, modulo 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Polynomial {
    pub base: u64,
    pub offset: u64,
}

impl Polynomial {
    /// Returns the mixed sum over one window.
    #[inline]
    pub(crate) fn of(self, window: &[u64]) -> u64 {
        mix(self.sum(window).wrapping_add(self.offset))
    }

    #[inline]
    fn sum(self, window: &[u64]) -> u64 {
        window.iter().fold(0, |sum: u64, word| sum.wrapping_mul(self.base).wrapping_add(*word))
    }
}

/// Replaces word `i` by the polynomial of the `width` words from `i` on, wherever there are that many. Returns the
/// number of words replaced, and leaves the last `width - 1` words as they were.
///
/// # Panics
/// If `width` is 0.
#[inline]
pub(crate) fn roll(words: &mut [u64], width: usize, polynomial: Polynomial) -> usize {
    assert!(width > 0, "a window must have at least one word");
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

/// The longest window that the vector kernel sums from scratch, which pays off while windows are short.
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
    use std::{arch::x86_64::*, mem::MaybeUninit};

    use super::{EDGES, Polynomial, Span};
    use crate::hash::ByteHash;

    /// Sets bit `i` where a span begins or ends at byte `i`. `inside` tells whether the byte before the block was in a
    /// span.
    #[inline(always)]
    fn edge_bits(word_bytes: u64, inside: &mut u64) -> u64 {
        let edges = word_bytes ^ (word_bytes << 1 | *inside);
        *inside = word_bytes >> 63;
        edges
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) fn span_edges_avx512(bytes: &[u8], edges: &mut [MaybeUninit<u16>; EDGES]) -> usize {
        let (mut count, mut inside, mut start) = (0, 0, 0);
        let (blocks, rest) = bytes.as_chunks::<64>();
        for block in blocks {
            // SAFETY: the block has 64 bytes.
            let word_bytes = word_bytes_avx512(unsafe { _mm512_loadu_si512(block.as_ptr().cast()) });
            count += write_edges_avx512(edge_bits(word_bytes, &mut inside), start, &mut edges[count..]);
            start += 64;
        }
        if !rest.is_empty() {
            let valid = u64::MAX >> (64 - rest.len());
            // SAFETY: the mask keeps the load within the rest.
            let word_bytes = word_bytes_avx512(unsafe { _mm512_maskz_loadu_epi8(valid, rest.as_ptr().cast()) });
            count += write_edges_avx512(edge_bits(word_bytes, &mut inside) & valid, start, &mut edges[count..]);
        }
        count
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn word_bytes_avx512(block: __m512i) -> u64 {
        let lower = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
        let from_a = _mm512_sub_epi8(lower, _mm512_set1_epi8(b'a' as i8));
        let from_0 = _mm512_sub_epi8(block, _mm512_set1_epi8(b'0' as i8));
        _mm512_cmplt_epu8_mask(from_a, _mm512_set1_epi8(26))
            | _mm512_cmplt_epu8_mask(from_0, _mm512_set1_epi8(10))
            | _mm512_movepi8_mask(block)
    }

    /// Writes the positions of the set bits, counted from `start`, and returns how many there are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn write_edges_avx512(bits: u64, start: i16, room: &mut [MaybeUninit<u16>]) -> usize {
        const IDENTITY: [u8; 64] = {
            let mut identity = [0; 64];
            let mut i = 0;
            while i < 64 {
                identity[i] = i as u8;
                i += 1;
            }
            identity
        };
        let found = bits.count_ones() as usize;
        let room = &mut room[..64];
        // SAFETY: the array has 64 bytes.
        let identity = unsafe { _mm512_loadu_si512(IDENTITY.as_ptr().cast()) };
        let positions = _mm512_maskz_compress_epi8(bits, identity);
        let start = _mm512_set1_epi16(start);
        let low = _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions)), start);
        // SAFETY: there is room for 64, of which 32 are written here.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), low) };
        if found > 32 {
            let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
            // SAFETY: the other 32 are written here.
            unsafe { _mm512_storeu_si512(room[32..].as_mut_ptr().cast(), _mm512_add_epi16(high, start)) };
        }
        found
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn span_edges_avx2(bytes: &[u8], edges: &mut [MaybeUninit<u16>; EDGES]) -> usize {
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
            // Drops the padding of the last block.
            let mut bits = edge_bits(word_bytes, &mut inside) & u64::MAX >> (64 - block.len());

            let found = bits.count_ones() as usize;
            let room = &mut edges[count..count + 64];
            // Eight at a time, written whether or not there are that many: one branch for eight edges.
            for eight in room.chunks_exact_mut(8).take(found.div_ceil(8)) {
                for place in eight {
                    place.write((index * 64) as u16 + bits.trailing_zeros() as u16);
                    bits &= bits.wrapping_sub(1);
                }
            }
            count += found;
        }
        count
    }

    /// By a byte of a mask, the places of its set bits, one per byte.
    const PLACES: [u64; 256] = {
        let mut all = [0; 256];
        let mut mask = 0;
        while mask < 256 {
            let (mut place, mut count) = (0, 0);
            while place < 8 {
                if mask >> place & 1 == 1 {
                    all[mask] |= place << (8 * count);
                    count += 1;
                }
                place += 1;
            }
            mask += 1;
        }
        all
    };

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn join_ascii_words_avx2(bytes: &[u8], room: &mut [MaybeUninit<u8>]) -> usize {
        let (mut count, mut inside) = (0, 0);
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            // SAFETY: the block has 16 bytes.
            let block = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
            count += join_block(block, u32::MAX, &mut inside, &mut room[count..]);
        }
        if rest.is_empty() {
            return count;
        }
        if let Some(last) = bytes.last_chunk::<16>() {
            // SAFETY: the block has 16 bytes.
            let block = unsafe { _mm_loadu_si128(last.as_ptr().cast()) };
            // Those of the block before it are not taken twice.
            return count + join_block(block, u32::MAX << (16 - rest.len()), &mut 0, &mut room[count..]);
        }
        // Separators follow.
        let [low, high] = padded(rest);
        let block = _mm_set_epi64x(high as i64, low as i64);
        count + join_block(block, u32::MAX >> (32 - rest.len()), &mut inside, &mut room[count..])
    }

    /// Returns up to 15 bytes and zeros behind them, as two little-endian words, without a loop.
    #[inline(always)]
    fn padded(bytes: &[u8]) -> [u64; 2] {
        let length = bytes.len();
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
            return [first, if length == 8 { 0 } else { last >> (8 * (16 - length)) }];
        }
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            return [u64::from(first) | u64::from(last) << (8 * (length - 4)), 0];
        }
        match *bytes {
            [] => [0, 0],
            [a] => [a.into(), 0],
            [a, b] => [u16::from_le_bytes([a, b]).into(), 0],
            [a, b, c, ..] => [u32::from_le_bytes([a, b, c, 0]).into(), 0],
        }
    }

    /// Writes the word bytes of a block that are among `taken`, and a space for each separator of them that comes directly behind a word.
    /// `inside` is 1 if the byte before the block was in a word. Returns how many bytes count; 16 are written.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn join_block(block: __m128i, taken: u32, inside: &mut u32, room: &mut [MaybeUninit<u8>]) -> usize {
        let lower = _mm_or_si128(block, _mm_set1_epi8(0x20));
        let from_a = _mm_sub_epi8(lower, _mm_set1_epi8(b'a' as i8));
        let from_0 = _mm_sub_epi8(block, _mm_set1_epi8(b'0' as i8));
        let letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
        let digit = _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0);
        let is_word = _mm_or_si128(letter, digit);
        let words = _mm_movemask_epi8(is_word) as u32;
        let kept = (words | words << 1 | *inside) & taken;
        *inside = words >> 15;
        let spaced = _mm_blendv_epi8(_mm_set1_epi8(b' ' as i8), lower, is_word);
        let (low, high) = ((kept & 0xff) as usize, (kept >> 8 & 0xff) as usize);
        let in_high = PLACES[high] | 0x0808_0808_0808_0808;
        let places = _mm_set_epi64x(in_high as i64, PLACES[low] as i64);
        let packed = _mm_shuffle_epi8(spaced, places);
        let low_count = low.count_ones() as usize;
        let room = &mut room[..16];
        // SAFETY: there is room for 8 bytes, and for 8 behind as many as 8.
        unsafe {
            _mm_storel_epi64(room.as_mut_ptr().cast(), packed);
            _mm_storel_epi64(room.as_mut_ptr().add(low_count).cast(), _mm_unpackhi_epi64(packed, packed));
        }
        low_count + high.count_ones() as usize
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) fn join_ascii_words_avx512(bytes: &[u8], room: &mut [MaybeUninit<u8>]) -> usize {
        let (mut count, mut inside) = (0, 0);
        for part in bytes.chunks(64) {
            let valid = u64::MAX >> (64 - part.len());
            // SAFETY: the mask keeps the load within the part.
            let block = unsafe { _mm512_maskz_loadu_epi8(valid, part.as_ptr().cast()) };
            let words = word_bytes_avx512(block);
            let kept = (words | words << 1 | inside) & valid;
            inside = words >> 63;
            let lower = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
            let spaced = _mm512_mask_blend_epi8(words, _mm512_set1_epi8(b' ' as i8), lower);
            let room = &mut room[count..count + 64];
            // SAFETY: there is room for 64 bytes.
            unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(kept, spaced)) };
            count += kept.count_ones() as usize;
        }
        count
    }

    /// The scalar twin, compiled for multiplications that preserve the flags and the operands.
    #[target_feature(enable = "bmi2")]
    pub(super) fn hash_short_spans_bmi2(hash: &ByteHash, bytes: &[u8], spans: &[Span], out: &mut Vec<u64>) -> usize {
        super::hash_short_spans_scalar(hash, bytes, spans, out)
    }

    /// The scalar twin, compiled like `hash_short_spans_bmi2`.
    #[target_feature(enable = "bmi2")]
    pub(super) fn hash_windows_bmi2(hash: &ByteHash, bytes: &[u8], length: usize, out: &mut Vec<u64>) {
        super::hash_windows_scalar(hash, bytes, length, out);
    }

    /// The scalar twin, compiled like `hash_short_spans_bmi2`.
    #[target_feature(enable = "bmi2")]
    pub(super) fn hash_char_windows_bmi2(hash: &ByteHash, text: &[u8], length: usize, out: &mut Vec<u64>) {
        super::hash_char_windows_scalar(hash, text, length, out);
    }

    /// Like the scalar twin, for a multiple of 8 windows; returns how many were made.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn roll_avx512(words: &mut [u64], width: usize, polynomial: Polynomial) -> usize {
        let count = (words.len() + 1 - width) / 8 * 8;
        let base = _mm512_set1_epi64(polynomial.base as i64);
        let offset = _mm512_set1_epi64(polynomial.offset as i64);
        for i in (0..count).step_by(8) {
            let window = &mut words[i..i + width + 7];
            // SAFETY: the window has `width + 7` words, so there are 8 from each of its first `width` on.
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

    /// Finds the edges of spans by looking at each byte and the one before it.
    fn edges_by_definition(bytes: &[u8]) -> Vec<u16> {
        let inside = |at: usize| is_span_byte(bytes[at]);
        (0..bytes.len()).filter(|&at| inside(at) != (at > 0 && inside(at - 1))).map(|at| at as u16).collect()
    }

    fn check_edges(bytes: &[u8]) {
        let expected = edges_by_definition(bytes);
        for level in Level::available() {
            let mut room = Spans::new();
            let (spans, open) = at_level(level, || room.find(bytes, false));
            let edges: Vec<u16> = spans.iter().flatten().copied().chain(open).collect();
            assert_eq!(edges, expected, "{level:?}, {bytes:?}");
            let end = open.map(|_| bytes.len() as u16);
            let (spans, open) = at_level(level, || room.find(bytes, true));
            assert_eq!((spans.as_flattened(), open), (&*[&expected[..], end.as_slice()].concat(), None), "{level:?}");
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
                    assert_eq!(rolled, expected, "{level:?}, {length} words, {width} per window");
                }
            }
        }
    }

    /// Joins words one by one.
    fn joined_by_definition(bytes: &[u8]) -> Vec<u8> {
        let words = bytes.split(|&byte| !is_span_byte(byte)).filter(|word| !word.is_empty());
        words.map(<[u8]>::to_ascii_lowercase).collect::<Vec<_>>().join(&b' ')
    }

    fn check_joined(bytes: &[u8]) {
        for level in Level::available() {
            let mut joined = Vec::new();
            let taken = at_level(level, || join_ascii_words(bytes, &mut joined));
            let (ascii, rest) = bytes.split_at(taken);
            assert_eq!(joined, joined_by_definition(ascii), "{level:?}, {bytes:?}");
            assert!(ascii.is_ascii() && !ascii.last().is_some_and(|&last| !rest.is_empty() && is_span_byte(last)));
            let span = rest.iter().take_while(|&&byte| is_span_byte(byte));
            assert!(rest.is_empty() || span.into_iter().any(|byte| !byte.is_ascii()), "{level:?}, {bytes:?}");
        }
    }

    #[test]
    fn words_are_joined_alike_at_every_level_wherever_they_end_in_a_block() {
        for length in 0..140 {
            check_joined(&vec![b'Q'; length]);
            check_joined(&vec![b'-'; length]);
            for at in 0..length {
                let mut bytes = vec![b'7'; length];
                bytes[at] = b'.';
                check_joined(&bytes);
                bytes[..at].fill(b' ');
                check_joined(&bytes);
                bytes[at] = 0xe9;
                check_joined(&bytes);
            }
        }
        for byte in 0..=u8::MAX {
            check_joined(&[b'A', byte, b'b', b' ', byte]);
        }
    }

    proptest! {
        #[test]
        fn random_words_are_joined_alike(text in "[a-zA-Z0-9 .,;_\0\n@\\[`{/:é]{0,300}") {
            check_joined(text.as_bytes());
        }

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
