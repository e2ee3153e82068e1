//! JSON strings, stepped over 64 bytes at a time.
//!
//! Claim: every block of text takes the same few steps, whatever it contains, so texts with an escape on every line are
//! as fast as those without. Escapes are told from escaped backslashes as in simdjson (Langdale & Lemire 2019).
//! Not here: which escapes there are and what they stand for (the reader of records).

#![allow(unsafe_code)]

use std::{ops::Range, sync::LazyLock};

/// Bytes per block, each of which has one bit in a mask.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 64;

/// Which instructions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// Plain Rust: the definition.
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The best that this CPU has, and `NEARSET_KERNELS` allows as for the library's kernels.
static LEVEL: LazyLock<Level> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    match std::env::var("NEARSET_KERNELS").as_deref() {
        Ok("scalar") => Level::Scalar,
        Ok("avx2") => detected().min(Level::Avx2),
        _ => detected(),
    }
    #[cfg(not(target_arch = "x86_64"))]
    Level::Scalar
});

#[cfg(target_arch = "x86_64")]
fn detected() -> Level {
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            return Level::Avx512;
        }
        if is_x86_feature_detected!("avx2") {
            return Level::Avx2;
        }
    }
    Level::Scalar
}

/// Steps over a string, starting after its opening quote. Returns the position of the first quote or control character
/// that no backslash escapes, or the number of bytes if there is none. Appends to `escapes` the position of each
/// backslash before it that begins an escape. A backslash escapes whatever byte follows it.
#[inline]
pub fn string_end(bytes: &[u8], from: usize, escapes: &mut Vec<usize>) -> usize {
    string_end_at(*LEVEL, bytes, from, escapes)
}

#[inline]
fn string_end_at(level: Level, bytes: &[u8], from: usize, escapes: &mut Vec<usize>) -> usize {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Level::Avx512 => unsafe { x86::string_end_avx512(bytes, from, escapes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::string_end_avx2(bytes, from, escapes) },
        Level::Scalar => string_end_scalar(bytes, from, escapes),
    }
}

/// Appends the position of each byte that JSON escapes in a string: quotes, backslashes and control characters.
pub fn specials(bytes: &[u8], places: &mut Vec<usize>) {
    specials_at(*LEVEL, bytes, places);
}

fn specials_at(level: Level, bytes: &[u8], places: &mut Vec<usize>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Level::Avx512 => unsafe { x86::specials_avx512(bytes, places) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::specials_avx2(bytes, places) },
        Level::Scalar => {
            places.extend(bytes.iter().enumerate().filter(|(_, byte)| is_special(**byte)).map(|(at, _)| at))
        }
    }
}

/// Appends a range of the bytes. Like [`Vec::extend_from_slice`], but made for ranges about as long as a line, which it
/// copies without a branch on their length.
///
/// # Panics
/// If the range does not lie within the bytes.
#[inline]
pub fn append(bytes: &[u8], range: Range<usize>, out: &mut Vec<u8>) {
    const SHORT: usize = 128;
    let part = &bytes[range.clone()];
    let Some(source) = bytes[range.start..].first_chunk::<SHORT>().filter(|_| part.len() <= SHORT) else {
        return out.extend_from_slice(part);
    };
    out.reserve(SHORT);
    let length = out.len();
    // SAFETY: there is room for as many bytes as are copied, and all bytes counted have been written.
    unsafe {
        out.as_mut_ptr().add(length).cast::<[u8; SHORT]>().write_unaligned(*source);
        out.set_len(length + part.len());
    }
}

#[inline(always)]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

fn string_end_scalar(bytes: &[u8], from: usize, escapes: &mut Vec<usize>) -> usize {
    let mut at = from;
    while let Some(rest) = bytes.get(at..) {
        at += plain_prefix(rest);
        if bytes.get(at) != Some(&b'\\') {
            return at;
        }
        escapes.push(at);
        at += 2;
    }
    bytes.len()
}

/// Returns the number of bytes before the first quote, backslash or control character.
///
/// Whole chunks are passed over in whatever vector registers there are; the position within a chunk is found eight
/// bytes at a time in one word. Of the bytes marked in a word the first is exact; later ones may be marked by a borrow.
fn plain_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let mut at = 0;
    // The compiler turns a fold without an early exit into vector instructions.
    while let Some(chunk) = bytes[at..].first_chunk::<32>() {
        if chunk.iter().fold(false, |any, &byte| any | is_special(byte)) {
            break;
        }
        at += 32;
    }
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20);
        let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
        let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
        let special = (control | quote | backslash) & !word & HIGH;
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len() - at)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::BLOCK;

    /// The classes of a block's bytes, one bit per byte. Bytes beyond the end count as control characters, so that the
    /// end is found there.
    struct Block {
        backslashes: u64,
        quotes_and_controls: u64,
    }

    /// Runs the kernel, using `classify` to turn the first [`BLOCK`] bytes into masks.
    #[inline(always)]
    fn walk(bytes: &[u8], from: usize, escapes: &mut Vec<usize>, classify: impl Fn(&[u8]) -> Block) -> usize {
        let (mut at, mut first_escaped) = (from, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let Block { backslashes, quotes_and_controls } = classify(rest);
            let (starts, escaped) = tell_escapes(backslashes, &mut first_escaped);
            let ends = quotes_and_controls & !escaped;
            let before = ends.wrapping_sub(1) & !ends;
            push_places(starts & before, at, escapes);
            if ends != 0 {
                return bytes.len().min(at + ends.trailing_zeros() as usize);
            }
            at += BLOCK;
        }
        bytes.len()
    }

    /// Returns which backslashes begin an escape, and which bytes are escaped. `first_escaped` is 1 if the block's
    /// first byte is escaped, and is then updated for the next block.
    ///
    /// In a run of backslashes every other one begins an escape, starting with the first. Subtracting the runs from a
    /// pattern of ones at odd places borrows through each run, which inverts the pattern from the start of the run on.
    #[inline(always)]
    fn tell_escapes(backslashes: u64, first_escaped: &mut u64) -> (u64, u64) {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let free = backslashes & !*first_escaped;
        let turned = ((free << 1) | ODD).wrapping_sub(free) ^ ODD;
        let escaped = turned ^ (backslashes | *first_escaped);
        let starts = turned & backslashes;
        *first_escaped = starts >> 63;
        (starts, escaped)
    }

    #[inline(always)]
    fn push_places(mut bits: u64, start: usize, places: &mut Vec<usize>) {
        let (count, length) = (bits.count_ones() as usize, places.len());
        places.reserve(BLOCK);
        // Four at a time, written whether or not there are that many: one branch that is almost always predicted.
        for four in places.spare_capacity_mut().chunks_exact_mut(4).take(count.div_ceil(4).max(1)) {
            for place in four {
                place.write(start + bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
            }
        }
        // SAFETY: there is room for as many entries as a block has bytes, and the first `count` have been written.
        unsafe { places.set_len(length + count) };
    }

    /// Runs the kernel that finds all of them, using `classify` as [`walk`] does.
    #[inline(always)]
    fn all(bytes: &[u8], places: &mut Vec<usize>, classify: impl Fn(&[u8]) -> Block) {
        for (block, part) in bytes.chunks(BLOCK).enumerate() {
            let Block { backslashes, quotes_and_controls } = classify(part);
            let within = u64::MAX >> (BLOCK - part.len());
            push_places((backslashes | quotes_and_controls) & within, block * BLOCK, places);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    pub(super) fn string_end_avx512(bytes: &[u8], from: usize, escapes: &mut Vec<usize>) -> usize {
        walk(bytes, from, escapes, |rest| classify_avx512(rest))
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn string_end_avx2(bytes: &[u8], from: usize, escapes: &mut Vec<usize>) -> usize {
        walk(bytes, from, escapes, |rest| classify_avx2(rest))
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    pub(super) fn specials_avx512(bytes: &[u8], places: &mut Vec<usize>) {
        all(bytes, places, |part| classify_avx512(part));
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn specials_avx2(bytes: &[u8], places: &mut Vec<usize>) {
        all(bytes, places, |part| classify_avx2(part));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn classify_avx512(rest: &[u8]) -> Block {
        let valid = u64::MAX >> (BLOCK - rest.len().min(BLOCK));
        // SAFETY: the mask keeps the load within the rest.
        let block = unsafe { _mm512_maskz_loadu_epi8(valid, rest.as_ptr().cast()) };
        let quotes = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'"' as i8));
        let controls = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20));
        let backslashes = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\\' as i8));
        Block { backslashes, quotes_and_controls: quotes | controls }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn classify_avx2(rest: &[u8]) -> Block {
        let mut padded = [0; BLOCK];
        let block = rest.first_chunk::<BLOCK>().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let mask = |bytes: __m256i| u64::from(_mm256_movemask_epi8(bytes) as u32);
        let half = |half: usize| {
            // SAFETY: each half has 32 of the 64 bytes.
            let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().add(32 * half).cast()) };
            let quotes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'"' as i8));
            let controls = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
            let backslashes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\\' as i8));
            (mask(backslashes), mask(_mm256_or_si256(quotes, controls)))
        };
        let (low, high) = (half(0), half(1));
        Block { backslashes: low.0 | high.0 << 32, quotes_and_controls: low.1 | high.1 << 32 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, byte by byte.
    fn by_definition(bytes: &[u8], from: usize) -> (usize, Vec<usize>) {
        let (mut at, mut escapes) = (from, Vec::new());
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => {
                    escapes.push(at);
                    at += 2;
                }
                byte if is_special(byte) => return (at, escapes),
                _ => at += 1,
            }
        }
        (bytes.len(), escapes)
    }

    fn check(bytes: &[u8], from: usize) {
        let expected = by_definition(bytes, from);
        #[cfg(target_arch = "x86_64")]
        let all = [Level::Scalar, Level::Avx2, Level::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Level::Scalar];
        for level in all.into_iter().filter(|&level| level <= *LEVEL) {
            let mut escapes = vec![7];
            let end = string_end_at(level, bytes, from, &mut escapes);
            assert_eq!((end, &escapes[1..]), (expected.0, &expected.1[..]), "{level:?}, from {from}: {bytes:?}");
            let mut places = vec![7];
            specials_at(level, bytes, &mut places);
            let special: Vec<usize> = (0..bytes.len()).filter(|&at| is_special(bytes[at])).collect();
            assert_eq!(places[1..], special, "{level:?}: {bytes:?}");
        }
    }

    #[test]
    fn ends_and_escapes_are_the_same_at_every_level_wherever_they_fall_in_a_block() {
        for length in (0..140).chain([255, 256, 257]) {
            let plain = vec![b'a'; length];
            check(&plain, 0);
            check(&plain, length);
            check(&vec![b'\\'; length], 0);
            for (at, byte) in (0..length).flat_map(|at| [b'"', b'\\', 0x1f, 0, 0x20, 0xff].map(|byte| (at, byte))) {
                let mut bytes = plain.clone();
                bytes[at] = byte;
                check(&bytes, at / 2);
            }
        }
    }

    #[test]
    fn parts_are_appended_whatever_their_length_and_what_follows() {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(600).collect();
        for start in [0, 1, 300, 471, 472, 473, 599, 600] {
            for end in (start..=600).filter(|end| end - start < 140 || *end == 600) {
                let mut out = b"before".to_vec();
                append(&bytes, start..end, &mut out);
                assert_eq!(out, [b"before", &bytes[start..end]].concat(), "{start}..{end}");
            }
        }
    }

    proptest! {
        #[test]
        fn runs_of_backslashes_are_told_apart(
            runs in prop::collection::vec((prop_oneof![Just(b'\\'), Just(b'n'), any::<u8>()], 1..70usize), 0..12),
            from in 0..40usize,
        ) {
            let bytes: Vec<u8> = runs.iter().flat_map(|&(byte, length)| vec![byte; length]).collect();
            check(&bytes, from.min(bytes.len()));
        }
    }
}
