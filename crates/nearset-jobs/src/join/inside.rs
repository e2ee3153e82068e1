//! What is inside what: how much of one text another holds.
//!
//! Claim: a share stated here is exact, the part of a text's shingles that another one has. Of the texts of which exactly `near` is in another,
//! at most `max_false_negative` are missed, unless what they are looked up by is common: such texts are counted.
//! Reference: a text is looked up by its smallest shingles, sampled by value (Broder 1997). They are a random part of it, so that each is in a
//! text that holds the share `c` with probability `c`, however long that is, and all `k` of them are missing with `(1 - c)^k`.
//! Invariant: equal texts are one. Limit: the shingles of all texts are held.

use nearset::JoinSpec;

use super::equal::Equal;
use crate::crew::Crew;

/// Different texts that may share a key. One of more is common, and nothing is looked up by it.
const MOST_TEXTS: usize = 1024;

/// Keys of a text for each that the promise needs, some of which may be common.
const SPARE: usize = 2;

/// Texts that one thread looks through in one go.
const AT_ONCE: usize = 64;

/// A text that is inside another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inside {
    pub text: u32,
    /// Shingles that both have.
    pub both: usize,
}

/// Texts, each by its shingles.
pub(super) struct Texts {
    near: f64,
    /// Keys that the promise needs.
    needed: usize,
    shingles: Vec<u64>,
    /// Where the shingles of each different text end.
    ends: Vec<usize>,
    /// By record its text; `None` where it is empty.
    pub of: Vec<Option<u32>>,
    /// The first record of each text.
    pub first: Vec<u32>,
    equal: Equal,
}

/// Texts by their keys.
pub(super) struct Keys {
    /// Sorted.
    keys: Vec<(u64, u32)>,
    /// Where keys that begin with given bits start, and where the last ones end.
    starts: Vec<u32>,
    /// Texts that have fewer keys than the promise needs, because others are common.
    pub cut_short: u64,
}

impl Texts {
    pub fn new(spec: &JoinSpec) -> Self {
        Self {
            near: spec.near.value(),
            needed: spec.keys(),
            shingles: Vec::new(),
            ends: Vec::new(),
            of: Vec::new(),
            first: Vec::new(),
            equal: Equal::default(),
        }
    }

    /// Adds the next record by its shingles, ascending.
    pub fn push(&mut self, shingles: &[u64]) {
        let record = self.of.len() as u32;
        if shingles.is_empty() {
            return self.of.push(None);
        }
        let next = self.ends.len() as u32;
        let is_equal = |text| set_of(&self.shingles, &self.ends, text) == shingles;
        let text = self.equal.number(shingles, is_equal, next);
        if text == next {
            self.shingles.extend_from_slice(shingles);
            self.ends.push(self.shingles.len());
            self.first.push(record);
        }
        self.of.push(Some(text));
    }

    pub fn bytes(&self) -> u64 {
        let each = Equal::BYTES_EACH + 12;
        8 * (self.shingles.len() + self.of.len()) as u64 + each * self.ends.len() as u64
    }

    pub fn set(&self, text: u32) -> &[u64] {
        set_of(&self.shingles, &self.ends, text)
    }

    /// Returns what texts are looked up by, when all are there.
    pub fn keys(&self) -> Keys {
        let texts = 0..self.ends.len() as u32;
        let mut keys: Vec<(u64, u32)> = Vec::with_capacity(texts.len() * SPARE * self.needed);
        for text in texts.clone() {
            keys.extend(self.set(text).iter().take(SPARE * self.needed).map(|&key| (key, text)));
        }
        keys.sort_unstable();
        // What many share is left out, and what nobody is missed without.
        let mut left = vec![0; texts.len()];
        let rare = keys.chunk_by(|a, b| a.0 == b.0).filter(|list| list.len() <= MOST_TEXTS).flatten();
        let keys: Vec<(u64, u32)> = rare.copied().collect();
        keys.iter().for_each(|&(_, text)| left[text as usize] += 1);
        let cut_short = texts.zip(&left).filter(|&(text, &left)| left < self.set(text).len().min(self.needed)).count();
        let bits = keys.len().next_power_of_two().ilog2().max(1);
        let mut starts = vec![0u32; (1 << bits) + 1];
        keys.iter().for_each(|(key, _)| starts[(key >> (64 - bits)) as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        Keys { keys, starts, cut_short: cut_short as u64 }
    }

    /// Returns the other texts of which `near` or more is in each of these, by many threads.
    pub fn inside_each(&self, keys: &Keys, texts: &[u32], crew: &Crew) -> Vec<Vec<Inside>> {
        let parts = crew.each(texts.chunks(AT_ONCE).collect(), |texts: &[u32]| {
            texts.iter().map(|&text| self.inside(keys, text)).collect::<Vec<_>>()
        });
        parts.into_iter().flatten().collect()
    }

    fn inside(&self, keys: &Keys, text: u32) -> Vec<Inside> {
        let holder = self.set(text);
        let mut candidates: Vec<u32> = holder.iter().flat_map(|&shingle| keys.with(shingle)).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let inside = |&other: &u32| {
            let set = self.set(other);
            let needed = self.needed_of(set.len());
            let both = (other != text).then(|| overlap_at_least(set, holder, needed)).flatten()?;
            Some(Inside { text: other, both })
        };
        candidates.iter().filter_map(inside).collect()
    }

    /// The fewest of so many shingles that are the share `near` of them.
    fn needed_of(&self, size: usize) -> usize {
        let enough = |both: usize| both as f64 / size as f64 >= self.near;
        // Rounding may put the product off by one; the share itself decides.
        let mut needed = ((self.near * size as f64) as usize).saturating_sub(1);
        while needed <= size && !enough(needed) {
            needed += 1;
        }
        needed
    }

    /// Returns the share of a text that is in another, by how much both have.
    pub fn share(&self, text: u32, both: usize) -> f64 {
        both as f64 / self.set(text).len() as f64
    }
}

/// The shingles of a text, which end where this says.
fn set_of<'s>(shingles: &'s [u64], ends: &[usize], text: u32) -> &'s [u64] {
    let text = text as usize;
    let start = text.checked_sub(1).map_or(0, |before| ends[before]);
    &shingles[start..ends[text]]
}

impl Keys {
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.keys[..]) + size_of_val(&self.starts[..])) as u64
    }

    /// The texts that are looked up by a shingle.
    fn with(&self, shingle: u64) -> impl Iterator<Item = u32> {
        let bits = (self.starts.len() - 1).ilog2();
        let at = (shingle >> (64 - bits)) as usize;
        let list = &self.keys[self.starts[at] as usize..self.starts[at + 1] as usize];
        list.iter().filter(move |(key, _)| *key == shingle).map(|&(_, text)| text)
    }
}

/// How many elements two ascending sets share, if that are at least `needed`.
fn overlap_at_least(short: &[u64], long: &[u64], needed: usize) -> Option<usize> {
    let (mut rest, mut both) = (long, 0);
    for (i, &element) in short.iter().enumerate() {
        if both + short.len() - i < needed {
            return None;
        }
        // Steps that double find the place in a much longer set.
        let mut step = 1;
        while step < rest.len() && rest[step - 1] < element {
            step *= 2;
        }
        let window = &rest[..step.min(rest.len())];
        rest = &rest[window.partition_point(|&other| other < element)..];
        both += usize::from(rest.first() == Some(&element));
    }
    (both >= needed).then_some(both)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nearset::plan::Request;
    use nearset::{Metric, Rng, Seed, Shingling};

    use super::*;

    fn spec(near: f64, max_false_negative: f64) -> JoinSpec {
        let mut wanted = Request::new(Metric::Jaccard { shingling: Shingling::default() }, near);
        wanted.max_false_negative = Some(max_false_negative);
        wanted.plan_join().unwrap()
    }

    /// A holder of `size` shingles, and a text of `length` of which `shared` are in it.
    fn pair(rng: &mut Rng, size: usize, length: usize, shared: usize) -> [Vec<u64>; 2] {
        let holder: BTreeSet<u64> = (0..size).map(|_| rng.next_u64()).collect();
        let mut text: Vec<u64> = holder.iter().copied().collect();
        for i in 0..shared {
            let other = i + rng.below((text.len() - i) as u64) as usize;
            text.swap(i, other);
        }
        text.truncate(shared);
        text.extend((shared..length).map(|_| rng.next_u64()));
        text.sort_unstable();
        [holder.into_iter().collect(), text]
    }

    #[test]
    fn a_short_text_inside_a_long_one_is_missed_as_rarely_as_promised() {
        let mut rng = Rng::new(Seed::new(4));
        let (near, promised) = (0.3, 0.3);
        let mut texts = Texts::new(&spec(near, promised));
        let runs = 2000u32;
        for _ in 0..runs {
            pair(&mut rng, 500, 50, 15).iter().for_each(|set| texts.push(set));
        }
        let keys = texts.keys();
        let missed = (0..runs).filter(|i| texts.inside(&keys, 2 * i).is_empty()).count() as f64;
        // None of 8 keys, drawn without repeats from 50 shingles of which 35 are not in the other.
        assert_eq!(texts.needed, 4);
        let chance: f64 = (0..8).map(|drawn| (35.0 - f64::from(drawn)) / (50.0 - f64::from(drawn))).product();
        let expected = f64::from(runs) * chance;
        // 6 sigma: about 2e-9 by chance. The seed is fixed, so red means a bug.
        assert!((missed - expected).abs() <= 6.0 * (expected * (1.0 - chance)).sqrt(), "{missed}, {expected}");
        assert!(chance <= promised);
        assert_eq!(keys.cut_short, 0);
    }

    #[test]
    fn what_thousands_share_is_not_looked_up_and_told() {
        let mut texts = Texts::new(&spec(0.8, 0.001));
        let boilerplate: Vec<u64> = (0..20).collect();
        for i in 0..2000u64 {
            // Every other text has nothing of its own among its smallest.
            let own = if i % 2 == 0 { 100 } else { 1 << 40 };
            texts.push(&[&boilerplate[..], &[own + i, own + 5000 + i]].concat());
        }
        let keys = texts.keys();
        assert_eq!(keys.cut_short, 2000, "of ten keys all are common");
        assert!(keys.keys.is_empty());
        assert!(texts.inside(&keys, 0).is_empty());
    }

    #[test]
    fn overlaps_are_counted_however_long_the_other_is() {
        let mut rng = Rng::new(Seed::new(5));
        for (size, length, shared) in [(1, 1, 1), (10, 10, 3), (1000, 7, 7), (5000, 90, 31), (20, 20, 0)] {
            let [holder, text] = pair(&mut rng, size, length, shared);
            assert_eq!(overlap_at_least(&text, &holder, 0), Some(shared));
            assert_eq!(overlap_at_least(&text, &holder, shared), Some(shared));
            assert_eq!(overlap_at_least(&text, &holder, shared + 1), None);
        }
    }

    #[test]
    fn the_share_itself_is_near() {
        let texts = Texts::new(&spec(0.8, 0.001));
        for size in 1..2000 {
            let needed = texts.needed_of(size);
            let share = |both: usize| both as f64 / size as f64;
            assert!(share(needed) >= 0.8 && share(needed - 1) < 0.8, "{needed} of {size}");
        }
    }
}
