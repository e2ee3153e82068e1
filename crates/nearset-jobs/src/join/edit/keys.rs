//! What texts are found by: hashes of their chunks, or of what is left of them by deletions, and tables of such keys.

use std::ops::Range;

use super::distance::Chars;

/// Odd, and otherwise any: the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a sum of powers, salted, to a key: the last step of SplitMix64.
fn key(sum: u64, salt: usize) -> u32 {
    let mut z = sum ^ (salt as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}

/// Calls `each` with the start and the key of every run of so many characters.
pub(super) fn chunk_keys(chars: Chars<'_>, length: usize, each: impl FnMut(usize, u32)) {
    match chars {
        Chars::Narrow(chars) => roll(chars, length, each),
        Chars::Wide(chars) => roll(chars, length, each),
    }
}

fn roll<C: Copy + Into<u64>>(chars: &[C], length: usize, mut each: impl FnMut(usize, u32)) {
    let Some((first, _)) = chars.split_at_checked(length) else { return };
    let number = |&char: &C| char.into() + 1;
    let mut sum = first.iter().fold(0u64, |sum, char| sum.wrapping_mul(FACTOR).wrapping_add(number(char)));
    each(0, key(sum, length));
    // What the first of them has become when it goes.
    let power = FACTOR.wrapping_pow(length as u32);
    for (start, (gone, next)) in (1..).zip(chars.iter().zip(&chars[length..])) {
        sum = sum.wrapping_mul(FACTOR).wrapping_add(number(next)).wrapping_sub(power.wrapping_mul(number(gone)));
        each(start, key(sum, length));
    }
}

/// Sets `keys` to those of what is left of a text when up to so many characters are deleted, each once.
pub(super) fn deletion_keys(chars: Chars<'_>, deletions: usize, keys: &mut Vec<u32>) {
    keys.clear();
    let mut all: Vec<u64> = Vec::with_capacity(chars.len());
    chars.for_each(|char| all.push(u64::from(char) + 1));
    // The sums of what follows, and what they are moved by.
    let mut rest = vec![(0u64, 1u64); all.len() + 1];
    for at in (0..all.len()).rev() {
        let (sum, power) = rest[at + 1];
        rest[at] = (all[at].wrapping_mul(power).wrapping_add(sum), power.wrapping_mul(FACTOR));
    }
    fn go(all: &[u64], rest: &[(u64, u64)], start: usize, sum: u64, deletions: usize, keys: &mut Vec<u32>) {
        let (tail, power) = rest[start];
        keys.push(key(sum.wrapping_mul(power).wrapping_add(tail), 0));
        if deletions == 0 {
            return;
        }
        let mut sum = sum;
        for at in start..all.len() {
            go(all, rest, at + 1, sum, deletions - 1, keys);
            sum = sum.wrapping_mul(FACTOR).wrapping_add(all[at]);
        }
    }
    go(&all, &rest, 0, 0, deletions, keys);
    keys.sort_unstable();
    keys.dedup();
}

/// A key and a number.
pub(super) fn entry(key: u32, number: u32) -> u64 {
    u64::from(key) << 32 | u64::from(number)
}

/// Numbers by their keys.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Sorted.
    entries: Vec<u64>,
    /// Where entries whose keys begin with given bits start, and where the last ones end.
    starts: Vec<u32>,
    bits: u32,
}

impl Table {
    /// `None` if there are too many.
    pub fn new(unsorted: Vec<u64>) -> Option<Self> {
        u32::try_from(unsorted.len()).ok()?;
        let bits = unsorted.len().next_power_of_two().ilog2().clamp(1, 28);
        let bucket = |entry: u64| (entry >> (64 - bits)) as usize;
        let mut starts = vec![0u32; (1 << bits) + 1];
        unsorted.iter().for_each(|&entry| starts[bucket(entry) + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        // Each to its bucket, which has few: keys are as if drawn at random.
        let (mut entries, mut next) = (vec![0u64; unsorted.len()], starts.clone());
        for &entry in &unsorted {
            let place = &mut next[bucket(entry)];
            entries[*place as usize] = entry;
            *place += 1;
        }
        for range in starts.windows(2) {
            entries[range[0] as usize..range[1] as usize].sort_unstable();
        }
        Some(Self { entries, starts, bits })
    }

    /// Returns the numbers of a range that are under a key.
    pub fn with(&self, key: u32, numbers: &Range<u32>) -> impl Iterator<Item = u32> {
        let found = if self.entries.is_empty() {
            &[][..]
        } else {
            let bucket = (key >> (32 - self.bits)) as usize;
            &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize]
        };
        let found = &found[found.partition_point(|&one| one < entry(key, numbers.start))..];
        let found = &found[..found.partition_point(|&one| one < entry(key, numbers.end))];
        found.iter().map(|&one| one as u32)
    }

    pub fn bytes(&self) -> u64 {
        (8 * self.entries.len() + 4 * self.starts.len()) as u64
    }
}
