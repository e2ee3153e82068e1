//! Bit strings joined: which of many are within a radius of which others.
//!
//! Claim: every pair within the radius is found, once, with its exact distance.
//! Reference: general pigeonhole, as in `cut`. Strings are cut into blocks whose radii add up to the radius, so that a near pair is
//! near in some block.
//!
//! Where there are many queries, both sides are sorted by a block's bits, and whole buckets are compared with the buckets around them: rows
//! are then read in order, and one look at a bucket serves all queries that share their bits. A pair that is near in several blocks is told by
//! the first of them.

use std::ops::Range;

use nearset_theory::zero_fn::ball;

use super::{HammingIndex, Removed, TOGETHER};
use crate::{Distance, HammingSpec, Neighbour, hash::Rng, simd::cross_within};

/// The widest block: as many buckets are counted for each side.
const WIDEST: u32 = 22;

// Nanoseconds, of which only the ratios matter.
const ROW_COST: f64 = 30.0;
const BUCKET_COST: f64 = 4.0;
const PAIR_COST: f64 = 1.0;

/// A block: its bits in the shuffled strings, and how far from a query's it is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    start: u32,
    width: u32,
    radius: u32,
}

impl Block {
    fn key(&self, row: &[u64]) -> u32 {
        if self.width == 0 {
            return 0;
        }
        let (word, shift) = (self.start as usize / 64, self.start % 64);
        let low = row[word] >> shift;
        let high = if shift == 0 { 0 } else { row.get(word + 1).copied().unwrap_or(0) << (64 - shift) };
        ((low | high) & ((1 << self.width) - 1)) as u32
    }

    /// Keys that differ in at most the radius, as what is turned over.
    fn turns(&self) -> Vec<u32> {
        let mut turns = vec![0];
        let mut of_last = 0..1;
        for _ in 0..self.radius {
            let from = turns.len();
            for i in of_last {
                let turn: u32 = turns[i];
                // One more bit, above those that are turned already.
                let next = 32 - turn.leading_zeros();
                turns.extend((next..self.width).map(|bit| turn | 1 << bit));
            }
            of_last = from..turns.len();
        }
        turns
    }
}

/// The blocks of the least estimated cost for so many rows and queries, and that cost.
fn blocks(bits: u32, radius: u32, rows: f64, queries: f64) -> (f64, Vec<Block>) {
    let mut best = (rows * queries * PAIR_COST, vec![Block { start: 0, width: 0, radius: 0 }]);
    if radius >= bits {
        return best;
    }
    for count in 1..=(radius + 1) {
        let (share, deeper) = ((radius + 1) / count, (radius + 1) % count);
        let (width, wider) = (bits / count, bits % count);
        if width < 1 {
            break;
        }
        let mut start = 0;
        let block = |i: u32| {
            let own = width + u32::from(i < wider);
            let block = Block { start, width: own.min(WIDEST), radius: share - 1 + u32::from(i < deeper) };
            start += own;
            block
        };
        let all: Vec<Block> = (0..count).map(block).collect();
        if all.iter().any(|block| block.radius >= block.width) {
            continue;
        }
        let cost = |block: &Block| {
            let (turns, buckets) = (ball(block.width, block.radius), (1u64 << block.width) as f64);
            let looked_into = buckets.min(queries) * turns;
            (rows + queries) * ROW_COST + looked_into * BUCKET_COST + rows * queries * turns / buckets * PAIR_COST
        };
        let cost: f64 = all.iter().map(cost).sum();
        if cost < best.0 {
            best = (cost, all);
        }
    }
    best
}

/// Rows sorted by the bits of a block.
struct Sorted {
    /// Where the rows of each key start, and where the last ones end.
    starts: Vec<u32>,
    numbers: Vec<u32>,
    words: Vec<u64>,
}

impl Sorted {
    fn new(rows: &[u64], words: usize, block: Block) -> Self {
        let mut starts = vec![0u32; (1 << block.width) + 1];
        let keys: Vec<u32> = rows.chunks_exact(words).map(|row| block.key(row)).collect();
        keys.iter().for_each(|&key| starts[key as usize + 1] += 1);
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let mut next = starts.clone();
        let (mut numbers, mut sorted) = (vec![0; keys.len()], vec![0; rows.len()]);
        for (number, (&key, row)) in (0..).zip(keys.iter().zip(rows.chunks_exact(words))) {
            let at = next[key as usize] as usize;
            next[key as usize] += 1;
            numbers[at] = number;
            sorted[at * words..(at + 1) * words].copy_from_slice(row);
        }
        Self { starts, numbers, words: sorted }
    }

    fn bucket(&self, key: u32) -> Range<usize> {
        self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize
    }
}

/// Puts the bits of strings into another order, byte by byte.
///
/// Neighbouring bits of real hashes differ together; in a random order they fall on different blocks.
struct Shuffle {
    words: usize,
    /// By position and value of a byte, the words that its bits become.
    tables: Vec<u64>,
}

impl Shuffle {
    fn new(spec: &HammingSpec) -> Self {
        let mut order: Vec<u32> = (0..spec.bits).collect();
        Rng::new(spec.seed.derive("blocks", 0)).shuffle(&mut order);
        let words = spec.words();
        let mut tables = vec![0; spec.bits.div_ceil(8) as usize * 256 * words];
        for (to, &from) in order.iter().enumerate() {
            let (byte, bit) = (from as usize / 8, from % 8);
            for value in (0..256).filter(|value| value >> bit & 1 == 1) {
                tables[(byte * 256 + value) * words + to / 64] |= 1 << (to % 64);
            }
        }
        Self { words, tables }
    }

    /// Appends a row in the new order.
    fn append(&self, row: &[u64], out: &mut Vec<u64>) {
        let start = out.len();
        out.resize(start + self.words, 0);
        let out = &mut out[start..];
        let bytes = row.iter().flat_map(|word| word.to_le_bytes());
        for (byte, tables) in bytes.zip(self.tables.chunks_exact(256 * self.words)) {
            let turned = &tables[byte as usize * self.words..][..self.words];
            out.iter_mut().zip(turned).for_each(|(word, turned)| *word |= turned);
        }
    }
}

/// The longest strings that are worth sorting; the tables of [`Shuffle`] grow with the square.
const LONGEST: u32 = 1024;

impl HammingIndex<'_> {
    /// Finds, for each of many rows, all stored ones from an id on that are within the radius: the query's number, and what is near it. They
    /// come in the order of the queries, and of the ids. `None` if there are more than `most` pairs.
    pub(crate) fn join(
        &self,
        queries: &[&[u64]],
        from: u32,
        radius: u32,
        most: usize,
    ) -> Option<Vec<(u32, Neighbour)>> {
        let stored = self.rows.len().saturating_sub(from);
        let (cost, blocks) = blocks(self.spec.bits, radius, f64::from(stored), queries.len() as f64);
        if self.spec.bits > LONGEST || cost > self.lookup_cost(radius) * queries.len() as f64 {
            return self.look_up_all(queries, from, radius, most);
        }
        let (words, shuffle) = (self.spec.words(), Shuffle::new(&self.spec));
        let (mut rows, mut asked) = (Vec::with_capacity(stored as usize * words), Vec::new());
        (from..self.rows.len()).for_each(|id| shuffle.append(self.rows.row(id), &mut rows));
        queries.iter().for_each(|query| shuffle.append(query, &mut asked));
        let mut found = Vec::new();
        for block in 0..blocks.len() {
            if !join_block(&blocks, block, (&asked, &rows, words), radius, |query, row, distance| {
                let id = from + row;
                if self.rows.is_removed(id) {
                    return true;
                }
                found.push((query, Neighbour { id, distance: Distance::from_count(distance) }));
                found.len() <= most
            }) {
                return None;
            }
        }
        found.sort_unstable_by_key(|&(query, near)| (query, near.id));
        Some(found)
    }

    pub(super) fn look_up_all(
        &self,
        queries: &[&[u64]],
        from: u32,
        radius: u32,
        most: usize,
    ) -> Option<Vec<(u32, Neighbour)>> {
        let mut found = Vec::new();
        for (i, queries) in queries.chunks(TOGETHER).enumerate() {
            for (query, mut near) in
                ((i * TOGETHER) as u32..).zip(self.rows_within(queries, from, radius, &Removed::default()))
            {
                near.sort_unstable_by_key(|near| near.id);
                found.extend(near.into_iter().map(|near| (query, near)));
            }
            if found.len() > most {
                return None;
            }
        }
        Some(found)
    }
}

/// Tells pairs that are near by a block and by none before it, while `tell` wants more. Returns whether it does.
fn join_block(
    blocks: &[Block],
    number: usize,
    (queries, rows, words): (&[u64], &[u64], usize),
    radius: u32,
    mut tell: impl FnMut(u32, u32, u32) -> bool,
) -> bool {
    let block = blocks[number];
    let (ours, theirs) = (Sorted::new(rows, words, block), Sorted::new(queries, words, block));
    let (turns, mut near) = (block.turns(), Vec::new());
    for key in 0..1u32 << block.width {
        let asked = theirs.bucket(key);
        let asked_rows = &theirs.words[asked.start * words..asked.end * words];
        for turn in turns.iter().filter(|_| !asked.is_empty()) {
            let bucket = ours.bucket(key ^ turn);
            let rows = &ours.words[bucket.start * words..bucket.end * words];
            near.clear();
            cross_within(asked_rows, rows, words, radius, &mut near);
            for &(query, row, distance) in &near {
                let (query, row) = (query as usize, row as usize);
                let [a, b] = [&asked_rows[query * words..][..words], &rows[row * words..][..words]];
                let is_told = |block: &Block| (block.key(a) ^ block.key(b)).count_ones() <= block.radius;
                if blocks[..number].iter().any(is_told) {
                    continue;
                }
                if !tell(theirs.numbers[asked.start + query], ours.numbers[bucket.start + row], distance) {
                    return false;
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BitString, Seed};

    fn random(rng: &mut Rng, bits: usize) -> BitString {
        let mut string = BitString::zeros(bits);
        (0..bits).for_each(|position| string.set(position, rng.below(2) == 1));
        string
    }

    /// Families around a few strings, crowded and not.
    fn strings(rng: &mut Rng, bits: usize, count: usize) -> Vec<BitString> {
        let mut all: Vec<BitString> = Vec::new();
        for i in 0..count {
            let mut string = match rng.below(3) {
                0 => random(rng, bits),
                _ if i == 0 => random(rng, bits),
                1 => all[0].clone(),
                _ => all[rng.below(i as u64) as usize].clone(),
            };
            (0..rng.below(1 + bits as u64 / 4)).for_each(|_| string.flip(rng.below(bits as u64) as usize));
            all.push(string);
        }
        all
    }

    #[test]
    fn all_pairs_within_the_radius_are_found_once() {
        let mut rng = Rng::new(Seed::new(11));
        for (bits, radius, count) in [
            (1, 0, 20),
            (1, 1, 20),
            (13, 2, 200),
            (64, 0, 300),
            (64, 9, 500),
            (100, 17, 400),
            (256, 31, 900),
            (256, 200, 60),
            (300, 31, 300),
        ] {
            let strings = strings(&mut rng, bits, count);
            let mut index = HammingIndex::of_checked(HammingSpec::new(bits as u32, radius, Seed::new(3)));
            for string in &strings {
                index.push(string).unwrap();
            }
            let queries: Vec<&[u64]> = strings.iter().map(|string| string.bits().words()).collect();
            let mut expected = Vec::new();
            for (query, a) in (0..).zip(&strings) {
                for (id, b) in (0..).zip(&strings) {
                    let distance = (0..bits).filter(|&i| a.bits().bit(i) != b.bits().bit(i)).count() as u32;
                    let near = Neighbour { id, distance: Distance::from_count(distance) };
                    expected.extend((distance <= radius).then_some((query, near)));
                }
            }
            assert!(expected.len() > count);
            let most = expected.len();
            let what = format!("{bits} bits, radius {radius}");
            assert_eq!(index.join(&queries, 0, radius, most).as_ref(), Some(&expected), "{what}");
            assert_eq!(index.look_up_all(&queries, 0, radius, most).as_ref(), Some(&expected), "{what}");
            assert_eq!(index.join(&queries, 0, radius, most - 1), None);
            index.remove(3);
            expected.retain(|(_, near)| near.id >= 2 && near.id != 3);
            assert_eq!(index.join(&queries, 2, radius, most), Some(expected), "{what}");
        }
    }

    #[test]
    fn many_strings_are_cut_into_blocks_whose_radii_miss_nothing() {
        for (bits, radius) in [(256, 31), (64, 8), (64, 3), (300, 31)] {
            for count in [1e4, 1e5, 1e6, 1e7] {
                let (_, blocks) = blocks(bits, radius, count, 131_072.0);
                assert!(blocks.len() > 1, "{bits} bits, radius {radius}, {count} strings");
                assert_eq!(blocks.iter().map(|block| block.radius + 1).sum::<u32>(), radius + 1);
                let turns = blocks[0].turns();
                assert_eq!(turns.len() as f64, ball(blocks[0].width, blocks[0].radius));
                assert!(turns.iter().all(|turn| turn.count_ones() <= blocks[0].radius));
            }
        }
    }
}
