//! What a person said about pairs of records, which outranks what comparing them says.
//!
//! One JSON object per line: `{"a": ID, "b": ID, "duplicate": true}`. Of two records marked as duplicates, the one that is wanted less goes if
//! the other stays, whatever their similarity; two that are marked as different are not near each other, whatever it is.
//!
//! Claim: a mark holds for exactly the two records whose ids it names; a run in which an id names two records fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nearset_records::InputError;
use serde::{Deserialize, Deserializer, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::run::RunError;

/// What was said about one pair of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairDecision {
    /// The id of one of them.
    #[serde(deserialize_with = "id")]
    pub a: String,
    /// The id of the other.
    #[serde(deserialize_with = "id")]
    pub b: String,
    /// Whether one of them is a duplicate of the other.
    pub duplicate: bool,
}

/// Reads an id as records have it: a whole number is the text that it is written as.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "an id is a string or a whole number")]
    enum Id {
        Text(String),
        Whole(u64),
        Negative(i64),
    }
    Ok(match Id::deserialize(deserializer)? {
        Id::Text(text) => text,
        Id::Whole(number) => number.to_string(),
        Id::Negative(number) => number.to_string(),
    })
}

/// Marked pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// The file that they were read from.
    path: Option<PathBuf>,
    /// The number of each id that is marked.
    numbers: BTreeMap<String, u32>,
    /// By number: those it is marked with.
    partners: Vec<Vec<(u32, bool)>>,
}

impl Decisions {
    /// Reads a file of marked pairs.
    ///
    /// # Errors
    /// If it can't be read, a line is no decision, or two lines contradict each other.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let wrong = |line: usize, why: String| RunError::BadDecisions { path: path.to_owned(), line: line as u64, why };
        let text = fs::read_to_string(path).map_err(|cause| InputError::Unreadable { path: path.to_owned(), cause })?;
        let mut all = Self { path: Some(path.to_owned()), ..Self::default() };
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let decision: PairDecision = serde_json::from_str(text).map_err(|cause| wrong(line, cause.to_string()))?;
            all.add(&decision).map_err(|why| wrong(line, why))?;
        }
        Ok(all)
    }

    fn add(&mut self, PairDecision { a, b, duplicate }: &PairDecision) -> Result<(), String> {
        if a == b {
            return Err(format!("{a:?} is paired with itself"));
        }
        let [a_number, b_number] = [a, b].map(|id| match self.numbers.get(id) {
            Some(&number) => number,
            None => {
                let number = self.partners.len() as u32;
                self.numbers.insert(id.clone(), number);
                self.partners.push(Vec::new());
                number
            }
        });
        match self.between(a_number, b_number) {
            Some(before) if before != *duplicate => {
                return Err(format!(
                    "{a:?} and {b:?} are marked as duplicates in one line and as different in another"
                ));
            }
            Some(_) => return Ok(()),
            None => {}
        }
        self.partners[a_number as usize].push((b_number, *duplicate));
        self.partners[b_number as usize].push((a_number, *duplicate));
        Ok(())
    }

    /// The file that they were read from, if they were.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.partners.is_empty()
    }

    /// How many pairs are marked.
    pub fn len(&self) -> u64 {
        self.partners.iter().map(|partners| partners.len() as u64).sum::<u64>() / 2
    }

    /// The number of an id, if it is marked.
    pub(super) fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    fn between(&self, a: u32, b: u32) -> Option<bool> {
        self.partners[a as usize].iter().find(|(partner, _)| *partner == b).map(|&(_, duplicate)| duplicate)
    }

    /// Tells these decisions from others.
    pub(super) fn digest(&self) -> u64 {
        let ids: BTreeMap<u32, &String> = self.numbers.iter().map(|(id, &number)| (number, id)).collect();
        let mut digest = Xxh3::new();
        for (id, &number) in &self.numbers {
            let mut partners: Vec<_> =
                self.partners[number as usize].iter().map(|(partner, duplicate)| (ids[partner], duplicate)).collect();
            partners.sort_unstable();
            digest.update(format!("{id:?} {partners:?}\n").as_bytes());
        }
        digest.digest()
    }
}

/// The marked records that a run has met.
#[derive(Debug, Default)]
pub(super) struct Marked {
    decisions: Decisions,
    /// By number: whether the record was met, and its entry if others are compared with it.
    met: BTreeMap<u32, Option<u32>>,
}

/// What a checkpoint knows of them.
pub(super) type SavedMarks = Vec<(u32, Option<u32>)>;

impl Marked {
    pub fn new(decisions: Decisions) -> Self {
        Self { decisions, met: BTreeMap::new() }
    }

    /// Takes note of the record with this number, and of its entry.
    pub fn meet(&mut self, number: u32, entry: Option<u32>) -> Result<(), RunError> {
        if self.met.insert(number, entry).is_none() {
            return Ok(());
        }
        let id = self.decisions.numbers.iter().find(|(_, known)| **known == number).map(|(id, _)| id.clone());
        Err(RunError::AmbiguousId { id: id.unwrap_or_default() })
    }

    /// The first entry that a record is marked as a duplicate of.
    pub fn duplicate_of(&self, number: u32) -> Option<u32> {
        let marked = self.decisions.partners[number as usize].iter().filter(|(_, duplicate)| *duplicate);
        marked.filter_map(|(partner, _)| self.met.get(partner).copied().flatten()).min()
    }

    /// The entries that a record is marked as different from.
    pub fn different_from(&self, number: Option<u32>) -> Vec<u32> {
        let Some(number) = number else { return Vec::new() };
        let marked = self.decisions.partners[number as usize].iter().filter(|(_, duplicate)| !*duplicate);
        marked.filter_map(|(partner, _)| self.met.get(partner).copied().flatten()).collect()
    }

    /// How many ids were of no record.
    pub fn unknown(&self) -> u64 {
        self.decisions.partners.len() as u64 - self.met.len() as u64
    }

    pub fn save(&self) -> SavedMarks {
        self.met.iter().map(|(&number, &entry)| (number, entry)).collect()
    }

    /// Takes over what was saved, and returns whether it fits.
    pub fn restore(&mut self, saved: &SavedMarks, entries: u32) -> bool {
        self.met = saved.iter().copied().collect();
        let is_known = |&(number, entry): &(u32, Option<u32>)| {
            (number as usize) < self.decisions.partners.len() && entry.is_none_or(|entry| entry < entries)
        };
        saved.iter().all(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Decisions, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Decisions::read(file.path()).map_err(|error| error.to_string().replace(file.path().to_str().unwrap(), "FILE"))
    }

    #[test]
    fn the_order_of_lines_and_of_a_pair_means_nothing() {
        let one =
            read("{\"a\":\"x\",\"b\":\"y\",\"duplicate\":true}\n\n{\"a\":\"z\",\"b\":\"y\",\"duplicate\":false}\n")
                .unwrap();
        let twice =
            read("{\"a\":\"x\",\"b\":\"y\",\"duplicate\":true}\n{\"a\":\"y\",\"b\":\"x\",\"duplicate\":true}\n")
                .unwrap();
        assert_eq!((one.len(), twice.len()), (2, 1));
        assert_ne!(one.digest(), twice.digest());
        assert_eq!(one.between(one.number("y").unwrap(), one.number("z").unwrap()), Some(false));
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_decision_names_its_line() {
        let sound = "{\"a\":\"x\",\"b\":\"y\",\"duplicate\":true}\n";
        for (text, why) in [
            ("{\"a\":\"x\",\"b\":\"y\"}", "FILE:2: missing field `duplicate`"),
            (
                "{\"a\":\"y\",\"b\":\"x\",\"duplicate\":false}",
                "FILE:2: \"y\" and \"x\" are marked as duplicates in one line",
            ),
            ("{\"a\":\"x\",\"b\":\"x\",\"duplicate\":true}", "FILE:2: \"x\" is paired with itself"),
            ("x", "FILE:2: expected value"),
            ("{\"a\":1.5,\"b\":\"x\",\"duplicate\":true}", "FILE:2: an id is a string or a whole number"),
        ] {
            let error = read(&format!("{sound}{text}")).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
