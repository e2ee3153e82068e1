//! How much of an item is inside a text: weighted containment in a window.
//!
//! A *passage* is a text that is evidence for an item: its question, its answer, or all its fields together. A text holds a
//! passage if some window of it, 1.3 times as long as the passage and 10 words, holds distinct word 3-grams of the passage
//! whose weights make up at least [`Thresholds::share`] of the passage's weight *and* at least [`Thresholds::mass`] in all.
//! A share alone can't decide: "Which of the following is true?" is itself an item.
//!
//! A 3-gram's weight is `(ln(N / n) / ln N)^3`, where `n` of `N` items and background documents have it: 1 for what only one
//! of them has, 0 for what all have. It does not depend on the texts searched, so a text gets the same answer wherever it is.
//! The cube is for templates: 50 of 2,000 questions that begin with the same 30 words are half template by the logarithm alone,
//! and each of them would be found in all others.
//!
//! Claim: [`Passages::find`] gives exactly what looking at every window gives; the tests hold it against that.
//! Invariant: weights are whole numbers, so that their sums don't depend on an order.
//!
//! How it is fast. A bit per 3-gram rejects nearly all of a text at the cost of cutting it. What is left must reach the weight
//! that some passage needs. For each passage only its rarest 3-grams are listed, as many as make what is not listed fall
//! short of that weight by two 3-grams: a text without two of them in a window can't hold it (prefix filtering: Chaudhuri,
//! Ganti & Kaushik 2006). Only then are windows looked at.

use nearset::{Seed, Shingler, Shingling};

/// Words per gram.
pub(super) const GRAM: usize = 3;

/// The weight of a gram that one item has and nothing else.
pub(super) const ONE: u32 = 1 << 16;

/// Weights are computed as if there were at least so many texts: among a handful, chance says how often a gram occurs.
const FEWEST_TEXTS: u64 = 1000;

/// More than any item weighs.
const MOST_MASS: f64 = 1e6;

/// Why thresholds make no sense.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ThresholdError {
    #[error("share={0}: it must be above 0 and up to 1")]
    Share(f64),
    #[error("mass={0}: it must be 1 or more, and a million at most")]
    Mass(f64),
}

/// From where on a text holds a passage.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Thresholds {
    /// The least share of the passage's weight.
    pub share: f64,
    /// The least weight, counted in 3-grams that one item has and nothing else.
    pub mass: f64,
}

impl Thresholds {
    /// Finds nearly every leak.
    pub const USUAL: Self = Self { share: 0.4, mass: 3.5 };
    /// Leaves out what is doubtful.
    pub const STRICT: Self = Self { share: 0.5, mass: 5.0 };

    /// The usual or the strict ones, with another share or mass.
    ///
    /// # Errors
    /// If the share is not above 0 and up to 1, or the mass not 1 or more: less decides nothing.
    pub fn new(strict: bool, share: Option<f64>, mass: Option<f64>) -> Result<Self, ThresholdError> {
        let usual = if strict { Self::STRICT } else { Self::USUAL };
        let (share, mass) = (share.unwrap_or(usual.share), mass.unwrap_or(usual.mass));
        if !(share > 0.0 && share <= 1.0) {
            return Err(ThresholdError::Share(share));
        }
        if !(1.0..=MOST_MASS).contains(&mass) {
            return Err(ThresholdError::Mass(mass));
        }
        Ok(Self { share, mass })
    }

    pub(super) fn least_mass(self) -> u64 {
        (self.mass * f64::from(ONE)).ceil() as u64
    }

    /// Returns the weight that a passage of this weight needs.
    pub(super) fn needed(self, total: u64) -> u64 {
        self.least_mass().max((self.share * total as f64).ceil() as u64)
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Returns how many words of a text a passage of this many words may be spread over.
pub(super) fn window_words(words: usize) -> usize {
    words * 13 / 10 + 10
}

/// Cuts texts into hashed 3-grams.
pub(super) fn cutter() -> Shingler {
    Shingler::new(Shingling::Words(GRAM as u16), Seed::default()).expect("3 words are a shingle")
}

/// Where weights come from: in how many texts each gram occurs.
#[derive(Debug)]
pub(super) struct Frequencies {
    pub texts: u64,
    /// All grams, ascending.
    pub grams: Vec<u64>,
    pub counts: Vec<u32>,
}

impl Frequencies {
    /// Counts texts, each given by its grams.
    pub fn new(texts: impl IntoIterator<Item = Vec<u64>>) -> Self {
        let (mut number, mut all) = (0, Vec::new());
        for mut grams in texts {
            number += 1;
            grams.sort_unstable();
            grams.dedup();
            all.append(&mut grams);
        }
        all.sort_unstable();
        let (grams, counts) = all.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).unzip();
        Self { texts: number, grams, counts }
    }

    /// Returns all grams and their weights, in ascending order of grams.
    pub fn weights(&self) -> Vec<(u64, u32)> {
        let texts = self.texts.max(FEWEST_TEXTS) as f64;
        let all = libm::log(texts);
        let weight = |count: u32| {
            let rarity = libm::log(texts / f64::from(count)).max(0.0) / all;
            (rarity * rarity * rarity * f64::from(ONE)).round() as u32
        };
        self.grams.iter().zip(&self.counts).map(|(&gram, &count)| (gram, weight(count))).collect()
    }
}

/// A passage to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// The number of its item.
    pub item: u32,
    /// Which of the item's texts it is.
    pub part: u32,
    /// Its words.
    pub words: u32,
    /// The weight of its distinct grams.
    pub total: u64,
    /// The weight that must be found.
    pub needed: u64,
    /// The weight of grams that are not listed.
    unlisted: u64,
    /// Where its grams begin.
    start: usize,
}

impl Passage {
    /// Returns how many grams a window has.
    fn width(&self) -> u32 {
        (window_words(self.words as usize) + 1 - GRAM) as u32
    }
}

/// A passage's grams, in its order and with repeats.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub item: u32,
    pub part: u32,
    pub grams: Vec<u64>,
}

/// A passage found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub passage: u32,
    /// The weight of its grams that are there.
    pub matched: u64,
    /// The first word of the text that belongs to it.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// All passages, ready to be looked for.
#[derive(Debug)]
pub(super) struct Passages {
    passages: Vec<Passage>,
    /// The grams of one passage after the other, each in ascending order, by their numbers.
    of_passages: Vec<u32>,
    /// All grams, ascending.
    grams: Vec<u64>,
    weights: Vec<u32>,
    /// By gram, where its list begins.
    list_starts: Vec<u32>,
    /// Passages that are listed under a gram.
    lists: Vec<u32>,
    /// By the highest bits of a gram, where such grams begin.
    buckets: Vec<u32>,
    bucket_shift: u32,
    /// A bit for each of the grams' lowest bits.
    bits: Vec<u64>,
    /// The least weight that any passage needs.
    least_needed: u64,
    /// The grams of the widest window.
    widest: u32,
    /// How many passages are listed at once, before windows are looked at: texts may be long, and lists too.
    most_listed: usize,
}

/// Listed passages that are looked at together.
const MOST_LISTED: usize = 1 << 20;

/// What a search needs room for.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub grams: Vec<u64>,
    /// Where a gram of any passage stands in the text, and which.
    seen: Vec<(u32, u32)>,
    /// Listed passages, and where in `seen` their gram is.
    listed: Vec<(u32, u32)>,
    /// Passages, and from where to where windows may hold them.
    stretches: Vec<(u32, u32, u32)>,
    /// Grams of one passage in the text: where, and which of the passage's.
    own: Vec<(u32, u32)>,
    sliding: Sliding,
}

/// What a window that slides over the grams of one passage knows.
#[derive(Debug, Default)]
struct Sliding {
    /// How often each of the passage's grams is in the window.
    counts: Vec<u32>,
    /// By place in `own`: where the same gram stands next.
    next: Vec<u32>,
}

impl Passages {
    /// Makes ready to look for passages. `weights` are those of all grams, ascending. A passage whose weight is below the least
    /// mass is left out, as it can't be found.
    pub fn new(texts: impl IntoIterator<Item = Cut>, weights: &[(u64, u32)], thresholds: Thresholds) -> Self {
        let grams: Vec<u64> = weights.iter().map(|&(gram, _)| gram).collect();
        let weights: Vec<u32> = weights.iter().map(|&(_, weight)| weight).collect();
        let number = |gram: &u64| grams.binary_search(gram).expect("weights have all grams") as u32;
        let (mut passages, mut of_passages) = (Vec::new(), Vec::new());
        // Pairs of a gram and a passage that is listed under it.
        let mut listed: Vec<(u32, u32)> = Vec::new();
        for Cut { item, part, grams: own } in texts {
            let words = own.len() + GRAM - 1;
            let mut own: Vec<u32> = own.iter().map(number).collect();
            own.sort_unstable();
            own.dedup();
            let weight = |gram: u32| u64::from(weights[gram as usize]);
            let total: u64 = own.iter().map(|&gram| weight(gram)).sum();
            let needed = thresholds.needed(total);
            if total < needed {
                continue;
            }
            let mut by_weight = own.clone();
            by_weight.sort_unstable_by_key(|&gram| (weight(gram), gram));
            let may_be_unlisted = needed.saturating_sub(2 * u64::from(ONE));
            let (mut unlisted, mut next) = (0, 0);
            while next < by_weight.len() && unlisted + weight(by_weight[next]) <= may_be_unlisted {
                unlisted += weight(by_weight[next]);
                next += 1;
            }
            let passage = passages.len() as u32;
            listed.extend(by_weight[next..].iter().map(|&gram| (gram, passage)));
            passages.push(Passage {
                item,
                part,
                words: words as u32,
                total,
                needed,
                unlisted,
                start: of_passages.len(),
            });
            of_passages.extend(own);
        }
        listed.sort_unstable();
        let mut list_starts = vec![0; grams.len() + 1];
        for &(gram, _) in &listed {
            list_starts[gram as usize + 1] += 1;
        }
        for gram in 0..grams.len() {
            list_starts[gram + 1] += list_starts[gram];
        }
        let lists = listed.into_iter().map(|(_, passage)| passage).collect();

        let bucket_bits = grams.len().max(2).ilog2();
        let bucket_shift = 64 - bucket_bits;
        let mut buckets = vec![0; (1 << bucket_bits) + 1];
        for gram in &grams {
            buckets[(gram >> bucket_shift) as usize + 1] += 1;
        }
        for bucket in 1..buckets.len() {
            buckets[bucket] += buckets[bucket - 1];
        }
        // Some 16 bits per gram: one in 16 grams that are in no passage passes.
        let mut bits = vec![0u64; (grams.len() / 4).next_power_of_two().max(1)];
        let mask = bits.len() as u64 * 64 - 1;
        for gram in &grams {
            bits[((gram & mask) / 64) as usize] |= 1 << (gram % 64);
        }
        let widest = passages.iter().map(|passage| passage.width()).max().unwrap_or(1);
        let least_needed = passages.iter().map(|passage: &Passage| passage.needed).min().unwrap_or(u64::MAX);
        Self {
            passages,
            of_passages,
            grams,
            weights,
            list_starts,
            lists,
            buckets,
            bucket_shift,
            bits,
            least_needed,
            widest,
            most_listed: MOST_LISTED,
        }
    }

    pub fn get(&self, passage: u32) -> &Passage {
        &self.passages[passage as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Passage> {
        self.passages.iter()
    }

    /// Returns the weights of a passage's grams.
    fn own(&self, passage: u32) -> &[u32] {
        let start = self.passages[passage as usize].start;
        let end = self.passages.get(passage as usize + 1).map_or(self.of_passages.len(), |next| next.start);
        &self.of_passages[start..end]
    }

    /// Returns the memory that they take.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.passages[..])
            + size_of_val(&self.of_passages[..])
            + size_of_val(&self.grams[..])
            + size_of_val(&self.weights[..])
            + size_of_val(&self.list_starts[..])
            + size_of_val(&self.lists[..])
            + size_of_val(&self.buckets[..])
            + size_of_val(&self.bits[..])) as u64
    }

    /// Returns the weight of a gram, if a passage has it.
    pub fn weight(&self, gram: u64) -> Option<u32> {
        self.number(gram).map(|number| self.weights[number as usize])
    }

    #[inline]
    fn number(&self, gram: u64) -> Option<u32> {
        let bucket = (gram >> self.bucket_shift) as usize;
        let (from, to) = (self.buckets[bucket], self.buckets[bucket + 1]);
        let found = self.grams[from as usize..to as usize].iter().position(|&other| other == gram)?;
        Some(from + found as u32)
    }

    /// Overwrites `hits` with where the text with `room.grams` holds passages, by passage and then by place. From the left, of all
    /// windows that begin within the first one that is heavy enough, the heaviest counts; of those the shortest, then the first. The
    /// next one begins behind it.
    pub fn find(&self, room: &mut Room, hits: &mut Vec<Hit>) {
        hits.clear();
        let Room { grams, seen, listed, stretches, own, sliding } = room;
        seen.clear();
        let mask = self.bits.len() as u64 * 64 - 1;
        // Positions are counted in 32 bits, and a text of so many words is beyond what a record may have.
        for (at, &gram) in grams.iter().enumerate() {
            if self.bits[((gram & mask) / 64) as usize] >> (gram % 64) & 1 == 1
                && let Some(number) = self.number(gram)
            {
                seen.push((at as u32, number));
            }
        }
        if seen.iter().map(|&(_, gram)| self.weight_of(gram)).sum::<u64>() < self.least_needed {
            return;
        }
        stretches.clear();
        let mut begin = 0;
        while begin < seen.len() {
            // A block overlaps the next one by the widest window, so that every window lies in one of them.
            let (mut end, far) = (begin, seen[begin].0 + 2 * self.widest);
            listed.clear();
            while end < seen.len() && (listed.len() < self.most_listed || seen[end].0 < far) {
                let gram = seen[end].1 as usize;
                let list = self.list_starts[gram] as usize..self.list_starts[gram + 1] as usize;
                listed.extend(self.lists[list].iter().map(|&passage| (passage, end as u32)));
                end += 1;
            }
            listed.sort_unstable();
            listed.chunk_by(|a, b| a.0 == b.0).for_each(|group| self.stretches(group, seen, stretches));
            if end == seen.len() {
                break;
            }
            let from = (seen[end - 1].0 + 1).saturating_sub(self.widest);
            begin = seen.partition_point(|&(at, _)| at < from).max(begin + 1);
        }
        stretches.sort_unstable();
        for group in stretches.chunk_by(|a, b| a.0 == b.0) {
            let (passage, numbers) = (group[0].0, self.own(group[0].0));
            own.clear();
            let mut next = 0;
            for &(_, from, to) in group {
                let start = seen.partition_point(|&(at, _)| at < from).max(next);
                next = seen.partition_point(|&(at, _)| at <= to).max(start);
                for &(at, gram) in &seen[start..next] {
                    if let Ok(which) = numbers.binary_search(&gram) {
                        own.push((at, which as u32));
                    }
                }
            }
            self.heavy_windows(passage, own, sliding, hits);
        }
    }

    fn weight_of(&self, gram: u32) -> u64 {
        u64::from(self.weights[gram as usize])
    }

    /// Adds where windows may hold a passage, given where its listed grams are. The listed weight in a window, repeats included, is no
    /// less than it counts for.
    fn stretches(&self, group: &[(u32, u32)], seen: &[(u32, u32)], stretches: &mut Vec<(u32, u32, u32)>) {
        let number = group[0].0;
        let passage = &self.passages[number as usize];
        let (width, wanted) = (passage.width(), passage.needed - passage.unlisted);
        let (mut tail, mut sum) = (0, 0);
        for &(_, place) in group {
            let (at, gram) = seen[place as usize];
            sum += self.weight_of(gram);
            while at - seen[group[tail].1 as usize].0 >= width {
                sum -= self.weight_of(seen[group[tail].1 as usize].1);
                tail += 1;
            }
            if sum < wanted {
                continue;
            }
            // All windows whose last listed gram this is.
            let (from, to) = (at.saturating_sub(width - 1), at + (width - 1));
            match stretches.last_mut() {
                Some((same, _, end)) if *same == number && from <= *end => *end = to,
                _ => stretches.push((number, from, to)),
            }
        }
    }

    /// Adds where the grams of a passage in a text are heavy enough.
    fn heavy_windows(&self, number: u32, own: &[(u32, u32)], sliding: &mut Sliding, hits: &mut Vec<Hit>) {
        let passage = &self.passages[number as usize];
        let (grams, width) = (self.own(number), passage.width());
        let weight = |which: u32| self.weight_of(grams[which as usize]);
        let Sliding { counts, next } = sliding;
        counts.clear();
        counts.resize(grams.len(), u32::MAX);
        next.clear();
        next.resize(own.len(), u32::MAX);
        for (place, &(at, which)) in own.iter().enumerate().rev() {
            next[place] = std::mem::replace(&mut counts[which as usize], at);
        }
        counts.fill(0);
        let mut start = 0;
        while start < own.len() {
            let (mut tail, mut head, mut sum) = (start, start, 0);
            // Where the window has all of its weight: the last place at which one of its grams stands first.
            let mut extent = 0;
            // The weight, the length and the start of the best one, and where windows begin that are no longer looked at.
            let mut best: Option<(u64, u32, u32)> = None;
            let mut until = u32::MAX;
            while tail < own.len() && own[tail].0 < until {
                let (first, leaving) = own[tail];
                while head < own.len() && own[head].0 - first < width {
                    let (at, which) = own[head];
                    if counts[which as usize] == 0 && weight(which) > 0 {
                        sum += weight(which);
                        extent = at;
                    }
                    counts[which as usize] += 1;
                    head += 1;
                }
                if sum >= passage.needed && best.is_none_or(|(heaviest, ..)| sum >= heaviest) {
                    until = until.min(first.saturating_add(width));
                    let length = extent - first;
                    if best.is_none_or(|(heaviest, shortest, _)| sum > heaviest || length < shortest) {
                        best = Some((sum, length, first));
                    }
                }
                counts[leaving as usize] -= 1;
                if counts[leaving as usize] == 0 {
                    sum -= weight(leaving);
                } else if weight(leaving) > 0 {
                    extent = extent.max(next[tail]);
                }
                tail += 1;
            }
            own[tail..head].iter().for_each(|&(_, which)| counts[which as usize] = 0);
            let Some((matched, length, first)) = best else { return };
            let last = first + length + GRAM as u32 - 1;
            hits.push(Hit { passage: number, matched, first, last });
            start = own.partition_point(|&(at, _)| at <= last);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use nearset::Rng;

    use super::*;

    /// Looks at every window.
    fn by_definition(passages: &Passages, text: &[u64], own: &[Cut]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut number = 0;
        for Cut { grams, .. } in own {
            let words = grams.len() + GRAM - 1;
            let grams: HashSet<u64> = grams.iter().copied().collect();
            let weight = |gram: &u64| u64::from(passages.weight(*gram).unwrap());
            let total: u64 = grams.iter().map(weight).sum();
            let needed = Thresholds::USUAL.needed(total);
            if total < needed {
                continue;
            }
            let width = window_words(words) + 1 - GRAM;
            // The weight of a window, and where its last new gram is; one that all texts have weighs nothing, and extends no window.
            let window = |first: usize| {
                let (mut inside, mut sum, mut last) = (HashSet::new(), 0, first);
                for (at, gram) in text.iter().enumerate().skip(first).take(width) {
                    if grams.contains(gram) && inside.insert(gram) {
                        sum += weight(gram);
                        last = if weight(gram) > 0 { at } else { last };
                    }
                }
                (sum, last - first)
            };
            let own: Vec<usize> = (0..text.len()).filter(|&at| grams.contains(&text[at])).collect();
            let mut from = 0;
            while let Some(&begin) = own.iter().find(|&&at| at >= from && window(at).0 >= needed) {
                let starts = own.iter().filter(|&&at| at >= begin && at < begin + width);
                let by_weight = |&&at: &&usize| (std::cmp::Reverse(window(at).0), window(at).1, at);
                let first = *starts.min_by_key(by_weight).unwrap();
                let (matched, length) = window(first);
                let (first, last) = (first as u32, (first + length + GRAM - 1) as u32);
                hits.push(Hit { passage: number, matched, first, last });
                from = last as usize + 1;
            }
            number += 1;
        }
        hits
    }

    #[test]
    fn finding_equals_looking_at_every_window() {
        let mut rng = Rng::new(Seed::new(18));
        let (mut found, mut looked) = (0, 0);
        for round in 0..400 {
            // Few different grams, so that windows overlap, grams repeat and weights differ.
            let vocabulary = 50 + rng.below(2000);
            let gram = |rng: &mut Rng| {
                let (a, b) = (rng.below(vocabulary), rng.below(vocabulary));
                a.min(b).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
            };
            let texts: Vec<Cut> = (0..30)
                .map(|item| Cut { item, part: 0, grams: (0..3 + rng.below(30)).map(|_| gram(&mut rng)).collect() })
                .collect();
            let mut frequencies = Frequencies::new(texts.iter().map(|text| text.grams.clone()));
            for _ in 0..round % 7 * 100 {
                frequencies.texts += 1;
                if let Ok(known) = frequencies.grams.binary_search(&gram(&mut rng)) {
                    frequencies.counts[known] += 1;
                }
            }
            let weights = frequencies.weights();
            let mut passages = Passages::new(texts.clone(), &weights, Thresholds::USUAL);
            passages.most_listed = [1, 50, MOST_LISTED][round % 3];
            let mut text: Vec<u64> = (0..rng.below(300)).map(|_| gram(&mut rng)).collect();
            // Some of them twice.
            for Cut { grams, .. } in texts.iter().step_by(7).chain(texts.iter().step_by(14)) {
                let at = rng.below(text.len() as u64 + 1) as usize;
                let part = grams.iter().copied().filter(|_| rng.unit() < 0.7).collect::<Vec<_>>();
                text.splice(at..at, part);
            }
            let (mut room, mut hits) = (Room { grams: text.clone(), ..Room::default() }, Vec::new());
            passages.find(&mut room, &mut hits);
            let expected = by_definition(&passages, &text, &texts);
            assert_eq!(hits, expected, "round {round}");
            found += hits.len();
            looked += passages.passages.len();
        }
        // Neither all nor none are found, or nothing was tested.
        assert!(found > looked / 20 && found < looked, "{found} of {looked}");
    }
}
