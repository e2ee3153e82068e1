//! Records remembered for a report, in fixed memory.
//!
//! Claim: the removed and the kept records remembered are uniform samples, and the same for any number of threads: each
//! record draws a number from the seed and its place in the order, and the smallest numbers stay.
//! The most repeated ones are counted by Misra & Gries (1982) over one band's key of the removed records: of `n` removals, a
//! record that was repeated more than `n / 256` times is surely among them, and a count is too low by at most that.

use std::collections::BTreeMap;

use nearset::Seed;
use serde::{Deserialize, Serialize};

/// Keys that are counted at once.
const COUNTED: usize = 256;

/// Where a record stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Place {
    /// Its number in the order of reading, from 0.
    pub record: u64,
    /// Its source, from 0.
    pub source: usize,
    /// Its line, from 1.
    pub line: u64,
    /// Its id.
    pub id: String,
    /// Bands that hit.
    pub hits: u32,
    /// Its text, cut off at [`LONGEST`] bytes.
    pub text: String,
}

/// The longest text that is remembered.
pub const LONGEST: usize = 256 << 10;

/// The start of a text, cut between characters.
pub(super) fn shortened(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text[..end].to_owned()
}

/// Records remembered for a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Samples {
    wanted: usize,
    removed: BTreeMap<u64, Place>,
    kept: BTreeMap<u64, Place>,
    repeated: BTreeMap<u64, (u64, Place)>,
}

impl Samples {
    pub(super) fn new(wanted: usize) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// Looks at a record; `place` is asked for only if it is to be remembered.
    pub(super) fn see(&mut self, seed: Seed, record: u64, removed: bool, key: Option<u64>, place: impl Fn() -> Place) {
        let bytes = seed.derive("sample", record).to_bytes();
        let draw = bytes[..8].iter().fold(0, |draw, &byte| draw << 8 | u64::from(byte));
        let sample = if removed { &mut self.removed } else { &mut self.kept };
        let largest = sample.last_key_value().map(|(&draw, _)| draw);
        if sample.len() < self.wanted || largest.is_some_and(|largest| draw < largest) {
            sample.insert(draw, place());
            if sample.len() > self.wanted {
                sample.pop_last();
            }
        }
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

    /// A uniform sample of the removed records, in the order of reading.
    pub fn removed(&self) -> Vec<&Place> {
        in_order(&self.removed)
    }

    /// A uniform sample of the kept records, in the order of reading.
    pub fn kept(&self) -> Vec<&Place> {
        in_order(&self.kept)
    }

    /// The records that were repeated most often, with how often at least, and the first of them that was removed.
    pub fn most_repeated(&self) -> Vec<(u64, &Place)> {
        let mut all: Vec<_> = self.repeated.values().map(|(count, place)| (*count, place)).collect();
        all.sort_by_key(|(count, place)| (std::cmp::Reverse(*count), place.record));
        all
    }
}

fn in_order(sample: &BTreeMap<u64, Place>) -> Vec<&Place> {
    let mut places: Vec<&Place> = sample.values().collect();
    places.sort_by_key(|place| place.record);
    places
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
        let (removed, kept) = (samples.removed(), samples.kept());
        assert_eq!((removed.len(), kept.len()), (1000, 1000));
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
}
