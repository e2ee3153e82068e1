//! Records remembered for a report.
//!
//! Claim: the removed and the kept records remembered are uniform samples, and the same for any number of threads: each
//! record draws a number from the seed and its place in the order, and the smallest numbers stay.
//! The most repeated ones are counted by Misra & Gries (1982) over one band's key of the removed records: of `n` removals, a
//! record that was repeated more than `n / 256` times is surely among them, and a count is too low by at most that.
//! Memory: a bounded number of texts of bounded length, and a bit a record that says whether it was kept.

use std::collections::BTreeMap;

use nearset::Seed;
use serde::{Deserialize, Serialize};

/// Removed records that are remembered, and as many kept ones.
pub(crate) const SAMPLED: usize = 1000;

/// Keys that are counted at once.
const COUNTED: usize = 256;

/// Bytes of the longest record that is sampled: texts are remembered whole, so that they can be compared exactly.
pub(crate) const LONGEST: usize = 64_000;

/// Returns whether a record may be drawn.
pub(crate) fn is_sampled(raw: &[u8]) -> bool {
    raw.len() <= LONGEST
}

/// A remembered record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Its number in the order of reading, from 0.
    pub record: u64,
    /// Its source, from 0.
    pub source: usize,
    /// Its line, from 1.
    pub line: u64,
    pub id: String,
    pub text: String,
}

/// What is remembered of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Samples {
    wanted: usize,
    removed: Sample,
    kept: Sample,
    repeated: BTreeMap<u64, (u64, Place)>,
    /// By source, a bit a record: whether it was kept.
    kept_rows: Vec<Vec<u64>>,
}

/// The records with the smallest numbers of those that were seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// How many were seen.
    pub of: u64,
    by_draw: BTreeMap<u64, Place>,
}

impl Sample {
    fn see(&mut self, wanted: usize, draw: u64, place: impl Fn() -> Place) {
        self.of += 1;
        let largest = self.by_draw.last_key_value().map(|(&draw, _)| draw);
        if self.by_draw.len() < wanted || largest.is_some_and(|largest| draw < largest) {
            self.by_draw.insert(draw, place());
            if self.by_draw.len() > wanted {
                self.by_draw.pop_last();
            }
        }
    }

    /// In the order of reading.
    pub fn places(&self) -> Vec<&Place> {
        let mut places: Vec<&Place> = self.by_draw.values().collect();
        places.sort_by_key(|place| place.record);
        places
    }
}

impl Samples {
    /// Makes room for `wanted` removed records and as many kept ones.
    pub fn new(wanted: usize) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// Looks at a record near an earlier one (`removed`) or near nothing; `place` is asked for only if it is to be remembered.
    pub fn see(&mut self, seed: Seed, record: u64, removed: bool, key: Option<u64>, place: impl Fn() -> Place) {
        let bytes = seed.derive("sample", record).to_bytes();
        let draw = bytes[..8].iter().fold(0, |draw, &byte| draw << 8 | u64::from(byte));
        let sample = if removed { &mut self.removed } else { &mut self.kept };
        sample.see(self.wanted, draw, &place);
        if let (true, Some(key)) = (removed, key) {
            self.count(key, place);
        }
    }

    fn count(&mut self, key: u64, place: impl Fn() -> Place) {
        if let Some((count, _)) = self.repeated.get_mut(&key) {
            *count += 1;
        } else if self.repeated.len() < COUNTED {
            self.repeated.insert(key, (1, place()));
        } else {
            self.repeated.retain(|_, (count, _)| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// Notes that a record was kept.
    pub fn keep(&mut self, source: usize, row: u64) {
        let (word, bit) = ((row / 64) as usize, row % 64);
        if self.kept_rows.len() <= source {
            self.kept_rows.resize(source + 1, Vec::new());
        }
        let rows = &mut self.kept_rows[source];
        if rows.len() <= word {
            rows.resize(word + 1, 0);
        }
        rows[word] |= 1 << bit;
    }

    /// Returns whether a record was kept.
    pub fn is_kept(&self, source: usize, row: u64) -> bool {
        let word = self.kept_rows.get(source).and_then(|rows| rows.get((row / 64) as usize));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Records near an earlier one.
    pub fn removed(&self) -> &Sample {
        &self.removed
    }

    /// Records near nothing.
    pub fn kept(&self) -> &Sample {
        &self.kept
    }

    /// Returns the records that were repeated most often, with how often at least, and the first of them that was removed.
    pub fn most_repeated(&self) -> Vec<(u64, &Place)> {
        let mut all: Vec<_> = self.repeated.values().map(|(count, place)| (*count, place)).collect();
        all.sort_by_key(|(count, place)| (std::cmp::Reverse(*count), place.record));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_uniform_and_of_fixed_size() {
        let mut samples = Samples::new(1000);
        for record in 0..100_000 {
            samples.see(Seed::new(1), record, record % 2 == 0, None, || Place { record, ..Place::default() });
        }
        let (removed, kept) = (samples.removed().places(), samples.kept().places());
        assert_eq!((removed.len(), kept.len()), (1000, 1000));
        assert_eq!((samples.removed().of, samples.kept().of), (50_000, 50_000));
        assert!(removed.iter().all(|place| place.record % 2 == 0));
        let mean = removed.iter().map(|place| place.record as f64).sum::<f64>() / 1000.0;
        // Uniform on 100,000: sigma of the mean of 1,000 is 913; 5 of them.
        assert!((mean - 50_000.0).abs() < 4_565.0, "{mean}");
    }

    #[test]
    fn what_is_repeated_often_is_found() {
        let mut samples = Samples::new(1);
        for record in 0..20_000 {
            let key = if record % 10 == 0 { 7 } else { 1000 + record };
            samples.see(Seed::new(1), record, true, Some(key), || Place { record, ..Place::default() });
        }
        let (count, place) = samples.most_repeated()[0];
        assert!((2000 - 79..=2000).contains(&count), "{count}");
        assert_eq!(place.record % 10, 0);
    }

    #[test]
    fn kept_rows_are_told_apart_by_source() {
        let mut samples = Samples::new(1);
        for row in (0..1000).step_by(3) {
            samples.keep(2, row);
        }
        assert!((0..2000).all(|row| samples.is_kept(2, row) == (row < 1000 && row % 3 == 0)));
        assert!(!samples.is_kept(0, 0) && !samples.is_kept(3, 0));
    }
}
