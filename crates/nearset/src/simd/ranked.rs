//! Bitmaps with ranks: which of some bits are set, and how many are set before each.
//!
//! Claim: the bits of one word are tested by one AND, so looking up all numbers that differ from a given one in a few
//! bits costs one load per way to flip the bits above the lowest six. Apart from one number per line, a rank needs
//! nothing that was not loaded with the bit.
//! Not here: which bits to look up, and what their ranks mean (`index`).

#![allow(unsafe_code)]

use super::{
    Level,
    line::{Line, prefetch},
};

/// Words per line.
const WORDS: usize = 8;

/// The set bits of one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The word's number, counted from the first line on.
    pub word: u32,
    /// The bits that are set.
    pub bits: u64,
}

/// Asks the CPU to fetch the words `at ^ turn`.
///
/// # Panics
/// If the number of lines is not a power of two.
#[inline]
pub(crate) fn prefetch_words(lines: &[Line], at: u32, turns: &[u32]) {
    let (words, within) = addressed(lines);
    turns.iter().for_each(|turn| prefetch(&words[(at ^ turn) as usize & within]));
}

/// Appends to `found` the set bits among those of `mask`, for each of the words `at ^ turn` that has any.
///
/// # Panics
/// If the number of lines is not a power of two.
#[inline]
pub(crate) fn set_among(lines: &[Line], at: u32, turns: &[u32], mask: u64, found: &mut Vec<Hit>) {
    /// How many turns have their words tested before the hits among them are looked at.
    const CHUNK: usize = 64;
    let (words, within) = addressed(lines);
    let mut hits = [Hit { word: 0, bits: 0 }; CHUNK];
    for turns in turns.chunks(CHUNK) {
        // Whether a word hits is close to a coin toss, which no CPU predicts: every word is written, and only hits are
        // not overwritten.
        let mut count = 0;
        for &turn in turns {
            let word = (at ^ turn) as usize & within;
            let bits = words[word] & mask;
            hits[count] = Hit { word: word as u32, bits };
            count += usize::from(bits != 0);
        }
        found.extend_from_slice(&hits[..count]);
    }
}

/// Returns the words of the lines, and the mask that keeps a number below their count.
#[inline(always)]
fn addressed(lines: &[Line]) -> (&[u64], usize) {
    assert!(lines.len().is_power_of_two(), "the number of lines must be a power of two");
    let words = bytemuck::cast_slice(lines);
    (words, words.len() - 1)
}

/// Appends the rank of every bit of the hits, in their order. A rank is how many bits are set before it; `ranks` holds
/// the number of set bits before each line.
///
/// # Panics
/// If a hit lies in no line, or its line has no rank.
pub(crate) fn ranks_of(lines: &[Line], ranks: &[u32], hits: &[Hit], found: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if Level::current() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has these features.
        return unsafe { ranks_by_popcnt(lines, ranks, hits, found) };
    }
    count_ranks(lines, ranks, hits, found);
}

/// The definition, compiled for CPUs that count the bits of a word in one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2,avx2")]
fn ranks_by_popcnt(lines: &[Line], ranks: &[u32], hits: &[Hit], found: &mut Vec<u32>) {
    count_ranks(lines, ranks, hits, found);
}

#[inline(always)]
fn count_ranks(lines: &[Line], ranks: &[u32], hits: &[Hit], found: &mut Vec<u32>) {
    for hit in hits {
        let (line, place) = (hit.word as usize / WORDS, hit.word as usize % WORDS);
        let Line(words) = &lines[line];
        // All words are counted and some not added, which is cheaper than a loop of unpredictable length.
        let counts = words.iter().enumerate().map(|(i, word)| if i < place { word.count_ones() } else { 0 });
        let before = ranks[line].wrapping_add(counts.sum::<u32>());
        let mut left = hit.bits;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            found.push(before.wrapping_add((words[place] & (lowest - 1)).count_ones()));
            left ^= lowest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, hash::Rng, simd::at_level};

    #[test]
    fn set_bits_are_found_with_their_ranks_at_every_level() {
        let mut rng = Rng::new(Seed::new(3));
        for size in [1, 2, 8, 32] {
            let lines: Vec<Line> =
                (0..size).map(|_| Line(std::array::from_fn(|_| rng.next_u64() & rng.next_u64()))).collect();
            let words: &[u64] = bytemuck::cast_slice(&lines);
            let before = |bit: usize| (0..bit).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).count() as u32;
            let ranks: Vec<u32> = (0..size).map(|line| before(512 * line)).collect();
            let turns: Vec<u32> = (0..words.len() as u32).collect();
            for mask in [0, 1 << 17, u64::MAX, rng.next_u64()] {
                let at = rng.below(words.len() as u64) as u32;
                let places = turns.iter().flat_map(|turn| (0..64).map(move |bit| 64 * (at ^ turn) as usize + bit));
                let set = places.filter(|bit| words[bit / 64] & mask & 1 << (bit % 64) != 0);
                let expected: Vec<u32> = set.map(before).collect();
                let mut hits = Vec::new();
                prefetch_words(&lines, at, &turns);
                set_among(&lines, at, &turns, mask, &mut hits);
                assert!(hits.iter().all(|hit| hit.bits != 0));
                for level in Level::available() {
                    let mut found = Vec::new();
                    at_level(level, || ranks_of(&lines, &ranks, &hits, &mut found));
                    assert_eq!(found, expected, "{level:?}, {size} lines, mask {mask:x}");
                }
            }
        }
    }
}
