//! Which texts are within so many edits of another: all of them.
//!
//! Claim: [`EditIndex::near`] and [`EditIndex::near_other`] miss no text within the limit, and say of each how many edits it takes.
//! Reference: `k` edits leave one of `k + 1` disjoint chunks of a text as it is (Wu & Manber 1992). Counted from the left there is one before which
//! exactly as many edits fall as chunks, so that it can be shifted by no more than that (Li, Deng & Feng 2011, multi-match-aware).
//! Which chunks is free, so the rarest are taken (Deng, Li & Feng 2014). Texts whose characters differ too much are not compared (Kahveci & Singh 2001). Short texts are found by what is left of both when up to `k` characters are
//! deleted (Mor & Fraenkel 1982; Bocek, Hunt & Stiller 2007).
//! Invariant: texts are numbered by their length, so that those of a range of lengths are a range.

#[cfg(test)]
mod tests;

use std::collections::BinaryHeap;
use std::ops::Range;

use super::distance::{Chars, Pattern};
use super::keys::{Table, chunk_keys, deletion_keys, entry};

/// Chunks of fewer characters are shared by many, and deletions find less.
const SHORT_CHUNK: usize = 4;

/// Chunks of so many characters may be halved, to have a choice.
const LONG_CHUNK: usize = 16;

/// What is left of a text by deletions, at most.
const MOST_LEFT: usize = 256;

/// So little is better than any chunks.
const FEW_LEFT: usize = 32;

/// The same of one that is looked up; where there are more, all texts that have been taken apart so are compared.
const MOST_LEFT_OF_ONE: usize = 4096;

/// The lengths of chunks. Each is looked up at every place of a text, so there are few.
const CHUNKS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Counters of chunks, at most.
const MOST_COUNTERS: usize = 1 << 24;

/// From where on texts are near.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// So many edits at most.
    Edits(usize),
    /// So much is left at least: one less the edits for each character of the longer text.
    Similarity(f64),
}

impl Limit {
    /// Returns the most edits of near texts, the longer of which has so many characters.
    pub fn edits(self, longer: usize) -> usize {
        match self {
            Limit::Edits(most) => most,
            Limit::Similarity(near) => {
                // Rounding may put the product off by one; the similarity itself decides.
                let mut edits = ((1.0 - near) * longer as f64) as usize + 1;
                while edits > 0 && (edits > longer || similarity(edits, longer) < near) {
                    edits -= 1;
                }
                edits
            }
        }
    }

    /// Returns the length of the longest text that one of this length can be near to, among those up to `longest`.
    fn longest_near(self, length: usize, longest: usize) -> usize {
        let most = match self {
            Limit::Edits(most) => length.saturating_add(most),
            Limit::Similarity(near) => ((length as f64 / near) as usize).saturating_add(1),
        };
        let mut longer = most.min(longest).max(length);
        while longer - length > self.edits(longer) {
            longer -= 1;
        }
        longer
    }

    /// Returns what is said of two texts that are so many edits apart, the longer of which has so many characters.
    pub fn stated(self, edits: u32, longer: usize) -> f64 {
        match self {
            Limit::Edits(_) => f64::from(edits),
            Limit::Similarity(_) => similarity(edits as usize, longer),
        }
    }

    /// Returns a number that is the larger, the farther apart two texts are of which this is said.
    pub fn far(self, stated: f64) -> u64 {
        match self {
            Limit::Edits(_) => stated.to_bits(),
            Limit::Similarity(_) => !stated.to_bits(),
        }
    }

    /// Returns the same limit as far out as this is.
    fn at(self, stated: f64) -> Self {
        match self {
            Limit::Edits(_) => Limit::Edits(stated as usize),
            Limit::Similarity(_) => Limit::Similarity(stated),
        }
    }
}

/// How alike two texts are that are so many edits apart, the longer of which has so many characters. One quotient of whole numbers, so that
/// 93 of 100 is what somebody means who types 0.93.
pub fn similarity(edits: usize, longer: usize) -> f64 {
    (longer as f64 - edits as f64) / longer as f64
}

/// Texts by their characters, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Texts {
    narrow: Vec<u8>,
    wide: Vec<u32>,
    /// Where each starts, how long it is, and whether it is narrow.
    spans: Vec<(usize, u32, bool)>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        let is_narrow = text.is_ascii() || text.chars().all(|char| u32::from(char) < 256);
        let start = if is_narrow { self.narrow.len() } else { self.wide.len() };
        let length = if is_narrow {
            self.narrow.extend(text.chars().map(|char| u32::from(char) as u8));
            self.narrow.len() - start
        } else {
            self.wide.extend(text.chars().map(u32::from));
            self.wide.len() - start
        };
        self.spans.push((start, length as u32, is_narrow));
    }

    pub fn count(&self) -> usize {
        self.spans.len()
    }

    pub fn clear(&mut self) {
        self.narrow.clear();
        self.wide.clear();
        self.spans.clear();
    }

    /// Whether one is the same as this.
    pub fn is(&self, text: u32, other: &str) -> bool {
        match self.chars(text) {
            Chars::Narrow(chars) => chars.iter().map(|&char| char::from(char)).eq(other.chars()),
            Chars::Wide(chars) => chars.iter().copied().eq(other.chars().map(u32::from)),
        }
    }

    pub fn chars(&self, text: u32) -> Chars<'_> {
        let (start, length, is_narrow) = self.spans[text as usize];
        let end = start + length as usize;
        if is_narrow { Chars::Narrow(&self.narrow[start..end]) } else { Chars::Wide(&self.wide[start..end]) }
    }

    /// Characters of a text.
    pub fn length(&self, text: u32) -> usize {
        self.spans[text as usize].1 as usize
    }

    pub fn bytes(&self) -> u64 {
        (self.narrow.len() + 4 * self.wide.len() + size_of_val(&self.spans[..])) as u64
    }
}

/// How texts of a length are found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// By what is left when up to so many characters are deleted.
    Deletions(usize),
    /// By so many chunks of this length.
    Chunks { length: usize, count: usize },
    /// Nothing is left of them by as many edits, or all are near, so that all are compared.
    All,
}

impl Way {
    fn new(length: usize, limit: Limit, longest: usize) -> Self {
        let edits = limit.edits(limit.longest_near(length, longest));
        if edits >= longest {
            return Way::All;
        }
        let whole = length / (edits + 1);
        let most = if whole < SHORT_CHUNK { MOST_LEFT } else { FEW_LEFT };
        if left(length, edits) <= most {
            return Way::Deletions(edits);
        }
        let chunk = if whole >= LONG_CHUNK { whole / 2 } else { whole };
        match CHUNKS.iter().rev().find(|&&one| one <= chunk) {
            Some(&chunk) => Way::Chunks { length: chunk, count: edits + 1 },
            None => Way::All,
        }
    }
}

/// In how many ways up to so many of some characters can be deleted, or more than are counted.
fn left(length: usize, deletions: usize) -> usize {
    let (mut ways, mut all) = (1usize, 1usize);
    for i in 0..deletions.min(length) {
        ways = ways * (length - i) / (i + 1);
        all += ways;
        if all > MOST_LEFT_OF_ONE {
            break;
        }
    }
    all
}

/// How often the characters of each of some classes stand in a text, up to 255 times.
struct Census([u8; 32]);

impl Census {
    fn new(chars: Chars<'_>) -> Self {
        let mut counts = [0u8; 32];
        chars.for_each(|char| {
            let count = &mut counts[char as usize % 32];
            *count = count.saturating_add(1);
        });
        Self(counts)
    }

    /// Edits that two texts are apart at least: one takes away a character, and adds one.
    fn fewest_edits(&self, other: &Self) -> usize {
        let (mut more, mut fewer) = (0u32, 0u32);
        for (a, b) in self.0.iter().zip(&other.0) {
            more += u32::from(a.saturating_sub(*b));
            fewer += u32::from(b.saturating_sub(*a));
        }
        more.max(fewer) as usize
    }
}

/// Texts of one length.
#[derive(Debug)]
struct Length {
    length: usize,
    /// Their numbers.
    numbers: Range<u32>,
    way: Way,
}

/// Finds texts within a limit of each other.
pub(super) struct EditIndex {
    limit: Limit,
    texts: Texts,
    /// By number, which goes by length, the text, and the other way round.
    order: Vec<u32>,
    number_of: Vec<u32>,
    lengths: Vec<Length>,
    /// By chunk: the number of its text, and where in it the chunk starts. Those of a text come from left to right.
    chunks: Vec<(u32, u32)>,
    /// By number: the first chunk.
    first_chunk: Vec<u32>,
    by_chunk: Table,
    by_deletion: Table,
    /// By number.
    census: Vec<Census>,
}

/// What one thread works with.
#[derive(Default)]
pub(super) struct Room {
    pattern: Pattern,
    candidates: Vec<u32>,
    keys: Vec<u32>,
    /// Pairs that were compared.
    pub compared: u64,
}

impl EditIndex {
    /// Makes all of these different texts ready to be found, by each other and by texts of up to `longest` characters; `None` if there are too many.
    pub fn new(texts: Texts, (limit, longest): (Limit, usize)) -> Option<Self> {
        let mut order: Vec<u32> = (0..u32::try_from(texts.count()).ok()?).collect();
        order.sort_by_key(|&text| (texts.length(text), text));
        let mut number_of = vec![0; order.len()];
        (0..).zip(&order).for_each(|(number, &text)| number_of[text as usize] = number);
        let longest = order.last().map_or(0, |&text| texts.length(text)).max(longest);
        let mut lengths: Vec<Length> = Vec::new();
        for same in order.chunk_by(|&a, &b| texts.length(a) == texts.length(b)) {
            let (start, length) = (lengths.last().map_or(0, |last| last.numbers.end), texts.length(same[0]));
            let numbers = start..start + same.len() as u32;
            lengths.push(Length { length, numbers, way: Way::new(length, limit, longest) });
        }
        let mut index = Self {
            limit,
            texts,
            order,
            number_of,
            lengths,
            chunks: Vec::new(),
            first_chunk: Vec::new(),
            by_chunk: Table::default(),
            by_deletion: Table::default(),
            census: Vec::new(),
        };
        index.census = index.each().map(|(.., chars)| Census::new(chars)).collect();
        index.cut()?;
        index.delete();
        Some(index)
    }

    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    pub fn bytes(&self) -> u64 {
        let tables = self.by_chunk.bytes() + self.by_deletion.bytes();
        self.texts.bytes() + tables + (8 * self.chunks.len() + (12 + size_of::<Census>()) * self.order.len()) as u64
    }

    /// The way and the characters of every text, by number.
    fn each(&self) -> impl Iterator<Item = (u32, Way, Chars<'_>)> {
        let numbers = |length: &Length| length.numbers.clone().map(|number| (number, length.way)).collect::<Vec<_>>();
        let text = |(number, way)| (number, way, self.texts.chars(self.order[number as usize]));
        self.lengths.iter().flat_map(numbers).map(text)
    }

    /// Cuts texts into chunks, of which the rarest are kept.
    fn cut(&mut self) -> Option<()> {
        let lengths = self.lengths.iter().filter_map(|length| match length.way {
            Way::Chunks { length: chunk, .. } => Some(length.numbers.len() * (length.length / chunk)),
            _ => None,
        });
        let counters = lengths.sum::<usize>().next_power_of_two().min(MOST_COUNTERS);
        let mut counts = vec![0u32; counters];
        let mut keys: Vec<u32> = Vec::new();
        for (_, way, chars) in self.each() {
            let Way::Chunks { length, .. } = way else { continue };
            chunk_keys(chars, length, |start, key| {
                if start % length == 0 {
                    counts[key as usize % counters] += 1;
                }
            });
        }
        let (mut chunks, mut first_chunk, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut rarest: Vec<usize> = Vec::new();
        for (number, way, chars) in self.each() {
            first_chunk.push(u32::try_from(chunks.len()).ok()?);
            let Way::Chunks { length, count } = way else { continue };
            keys.clear();
            chunk_keys(chars, length, |start, key| {
                if start % length == 0 {
                    keys.push(key);
                }
            });
            rarest.clear();
            rarest.extend(0..keys.len());
            rarest.sort_by_key(|&chunk| (counts[keys[chunk] as usize % counters], chunk));
            rarest.truncate(count);
            rarest.sort_unstable();
            for &chunk in &rarest {
                entries.push(entry(keys[chunk], chunks.len() as u32));
                chunks.push((number, (chunk * length) as u32));
            }
        }
        first_chunk.push(u32::try_from(chunks.len()).ok()?);
        (self.chunks, self.first_chunk, self.by_chunk) = (chunks, first_chunk, Table::new(entries)?);
        Some(())
    }

    /// Takes short texts apart.
    fn delete(&mut self) {
        let (mut entries, mut keys) = (Vec::new(), Vec::new());
        for (number, way, chars) in self.each() {
            let Way::Deletions(deletions) = way else { continue };
            deletion_keys(chars, deletions, &mut keys);
            entries.extend(keys.iter().map(|&key| entry(key, number)));
        }
        self.by_deletion = Table::new(entries).unwrap_or_default();
    }

    /// Returns the other texts near one, with their edits, in no order; if `shorter`, those only that are shorter, or as long and came earlier, so
    /// that each pair is found once.
    pub fn near(&self, text: u32, shorter: bool, room: &mut Room) -> Vec<(u32, u32)> {
        let own = self.number_of[text as usize];
        self.find((self.texts.chars(text), &self.census[own as usize]), (Some(own), shorter), room)
    }

    /// Returns the texts near any text of not more characters than were said to come, with their edits, in no order; an equal one too.
    pub fn near_other(&self, chars: Chars<'_>, room: &mut Room) -> Vec<(u32, u32)> {
        self.find((chars, &Census::new(chars)), (None, false), room)
    }

    /// Returns so many texts nearest to any text, and their edits, however far they are, in no order. Of equally near ones, those of which `first` is
    /// smaller come first. All texts are compared whose length and characters leave it open.
    pub fn nearest(
        &self,
        chars: Chars<'_>,
        top: usize,
        first: impl Fn(u32) -> u32,
        room: &mut Room,
    ) -> Vec<(u32, u32)> {
        let (census, length) = (Census::new(chars), chars.len());
        room.pattern.set(chars);
        // The farthest of them on top.
        let mut nearest: BinaryHeap<(u64, u32, u32, u32)> = BinaryHeap::new();
        let mut lengths: Vec<&Length> = self.lengths.iter().collect();
        lengths.sort_by_key(|one| one.length.abs_diff(length));
        // Where enough are found, no text is wanted that is farther than the last of them.
        let mut bound = None;
        for one in lengths {
            let longer = length.max(one.length);
            for number in one.numbers.clone() {
                let most = bound.map_or(usize::MAX, |bound: Limit| bound.edits(longer));
                if longer - length.min(one.length) > most {
                    break;
                }
                if census.fewest_edits(&self.census[number as usize]) > most {
                    continue;
                }
                let text = self.order[number as usize];
                room.compared += 1;
                let Some(edits) = room.pattern.within(self.texts.chars(text), most) else { continue };
                let stated = self.limit.stated(edits as u32, longer);
                nearest.push((self.limit.far(stated), first(text), text, edits as u32));
                if nearest.len() > top {
                    nearest.pop();
                }
                if let Some(&(.., last, edits)) = nearest.peek()
                    && nearest.len() == top
                {
                    bound = Some(self.limit.at(self.limit.stated(edits, length.max(self.texts.length(last)))));
                }
            }
        }
        nearest.into_iter().map(|(_, _, text, edits)| (text, edits)).collect()
    }

    /// Returns what is near a text, itself aside where it is one of them; if `before`, those only whose number is smaller.
    fn find(
        &self,
        (chars, census): (Chars<'_>, &Census),
        (own, before): (Option<u32>, bool),
        room: &mut Room,
    ) -> Vec<(u32, u32)> {
        let Room { pattern, candidates, keys, compared } = room;
        let length = chars.len();
        let longest = self.lengths.last().map_or(0, |last| last.length);
        let shortest = length - self.limit.edits(length).min(length);
        let longest = if before { length } else { self.limit.longest_near(length, longest) };
        let from = self.lengths.partition_point(|one| one.length < shortest);
        let to = self.lengths.partition_point(|one| one.length <= longest);
        let lengths = &self.lengths[from..to];
        let end = own.filter(|_| before).unwrap_or(lengths.last().map_or(0, |last| last.numbers.end));
        let numbers = lengths.first().map_or(0, |first| first.numbers.start).min(end)..end;
        candidates.clear();
        self.find_chunks(chars, lengths, &numbers, candidates);
        self.find_deletions(chars, lengths, &numbers, keys, candidates);
        for one in lengths.iter().filter(|one| one.way == Way::All) {
            candidates.extend(one.numbers.start..one.numbers.end.min(numbers.end));
        }
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.is_empty() {
            return Vec::new();
        }
        pattern.set(chars);
        let mut found = Vec::new();
        for &number in candidates.iter().filter(|&&number| Some(number) != own) {
            let other = self.order[number as usize];
            let most = self.limit.edits(length.max(self.texts.length(other)));
            if census.fewest_edits(&self.census[number as usize]) > most {
                continue;
            }
            *compared += 1;
            found.extend(pattern.within(self.texts.chars(other), most).map(|edits| (other, edits as u32)));
        }
        found
    }

    fn find_chunks(&self, chars: Chars<'_>, lengths: &[Length], numbers: &Range<u32>, candidates: &mut Vec<u32>) {
        let length = chars.len();
        let range = self.first_chunk[numbers.start as usize]..self.first_chunk[numbers.end as usize];
        if range.is_empty() {
            return;
        }
        for chunk in CHUNKS {
            if !lengths.iter().any(|one| matches!(one.way, Way::Chunks { length, .. } if length == chunk)) {
                continue;
            }
            chunk_keys(chars, chunk, |start, key| {
                for found in self.by_chunk.with(key, &range) {
                    let (number, place) = self.chunks[found as usize];
                    let other = self.texts.length(self.order[number as usize]);
                    // As many edits fall before it as there are chunks to its left, and the rest behind it.
                    let before = (found - self.first_chunk[number as usize]) as usize;
                    let edits = self.limit.edits(length.max(other));
                    let shift = start as isize - place as isize;
                    let rest = length as isize - other as isize - shift;
                    if before <= edits && shift.unsigned_abs() <= before && rest.unsigned_abs() <= edits - before {
                        candidates.push(number);
                    }
                }
            });
        }
    }

    fn find_deletions(
        &self,
        chars: Chars<'_>,
        lengths: &[Length],
        numbers: &Range<u32>,
        keys: &mut Vec<u32>,
        candidates: &mut Vec<u32>,
    ) {
        let by_deletion = |one: &&Length| matches!(one.way, Way::Deletions(_));
        let Some(longest) = lengths.iter().rev().find(by_deletion) else { return };
        let deletions = self.limit.edits(longest.length.max(chars.len()));
        if left(chars.len(), deletions) > MOST_LEFT_OF_ONE {
            for one in lengths.iter().filter(by_deletion) {
                candidates.extend(one.numbers.start..one.numbers.end.min(numbers.end));
            }
            return;
        }
        deletion_keys(chars, deletions, keys);
        keys.iter().for_each(|&key| candidates.extend(self.by_deletion.with(key, numbers)));
    }
}
