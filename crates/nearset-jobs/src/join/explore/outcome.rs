//! What goes at a threshold, and what is doubtful about it.
//!
//! Records are decided on in their order: one goes if a kept record before it is near it, or is marked as its duplicate. Of an entry without marks all records
//! but the first go, whatever becomes of that one: what is near it is as near to its copies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::alarm;
use super::{Explored, NONE};

/// What somebody said about pairs of records that are [compared](Explored::is_compared), the earlier first: whether they are duplicates.
pub type Marks = BTreeMap<(u32, u32), bool>;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Verdict {
    /// The kept record before it that is nearest, or that it is marked with; [`NONE`] if there is none.
    of: u32,
    similarity: f32,
    goes: bool,
}

/// What goes at a threshold.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The threshold.
    pub near: f64,
    /// How many records go.
    pub removed: u64,
    /// By source, how many.
    pub by_source: Vec<u64>,
    verdicts: Vec<Verdict>,
}

/// A pair that a small change of the threshold would decide otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BorderPair {
    /// The record that stays.
    pub kept: u32,
    /// The record that goes, or stays just so.
    pub other: u32,
    /// How similar they are.
    pub similarity: f64,
    /// Whether it goes.
    pub goes: bool,
}

/// A kept record and those that go because of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cluster {
    /// The record that stays.
    pub kept: u32,
    /// How many records it has, that one included.
    pub records: u64,
    /// Whether there are so many that somebody should look at it.
    pub giant: bool,
    /// Whether most of it is shingles that many records share: a template.
    pub template: bool,
}

/// A record that goes because of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Member {
    /// The record.
    pub record: u32,
    /// How similar it is to the one that stays.
    pub similarity: f64,
}

/// How many of the marked pairs from a threshold on are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Precision {
    /// The threshold.
    pub near: f64,
    /// Marked pairs of that similarity or more.
    pub marked: u64,
    /// Those of them that are duplicates.
    pub duplicates: u64,
    /// The share of duplicates.
    pub precision: f64,
    /// The lower end of its 95 % interval (Wilson 1927).
    pub at_least: f64,
    /// The upper end.
    pub at_most: f64,
}

impl Precision {
    fn new(near: f64, marked: u64, duplicates: u64) -> Self {
        const DEVIATIONS: f64 = 1.96;
        let (n, p) = (marked as f64, duplicates as f64 / marked.max(1) as f64);
        if marked == 0 {
            return Self { near, marked, duplicates, precision: 0.0, at_least: 0.0, at_most: 1.0 };
        }
        let squared = DEVIATIONS * DEVIATIONS;
        let centre = (p + squared / (2.0 * n)) / (1.0 + squared / n);
        let half = DEVIATIONS / (1.0 + squared / n) * (p * (1.0 - p) / n + squared / (4.0 * n * n)).sqrt();
        let (at_least, at_most) = ((centre - half).clamp(0.0, p), (centre + half).clamp(p, 1.0));
        Self { near, marked, duplicates, precision: p, at_least, at_most }
    }
}

impl Explored {
    /// Decides on all records at a threshold, which is raised to the lowest that can be looked at.
    pub fn decide(&self, near: f64, marks: &Marks) -> Outcome {
        let near = near.max(self.lowest);
        let kept = Verdict { of: NONE, similarity: 0.0, goes: false };
        let mut verdicts = vec![kept; self.entry_of.len()];
        let marked = Marked::new(self, marks);
        for record in 0..self.entry_of.len() as u32 {
            let entry = self.entry_of[record as usize];
            if entry == NONE {
                continue;
            }
            let first = self.first[entry as usize];
            verdicts[record as usize] = if marked.entries.contains(&entry) {
                marked.decide(self, record, near, &verdicts)
            } else if record == first {
                let is_kept = |entry: u32| -> Option<u32> {
                    match marked.entries.contains(&entry) {
                        true => marked.first_kept(self, entry, record, &verdicts),
                        false => Some(self.first[entry as usize]).filter(|&one| !verdicts[one as usize].goes),
                    }
                };
                let nearest = self.row(entry).find_map(|(earlier, similarity)| Some((is_kept(earlier)?, similarity)));
                nearest.map_or(kept, |(of, similarity)| Verdict::new(of, similarity, near))
            } else {
                // A copy is as near to what its first record is near.
                let of_first = verdicts[first as usize];
                if of_first.goes { of_first } else { Verdict { of: first, similarity: 1.0, goes: true } }
            };
        }
        let mut by_source = vec![0; self.counts.sources.len()];
        let gone = (0..).zip(&verdicts).filter(|(_, verdict)| verdict.goes);
        gone.for_each(|(record, _)| by_source[self.source_of(record)] += 1);
        Outcome { near, removed: by_source.iter().sum(), by_source, verdicts }
    }

    /// How similar two records are, if that is known.
    pub fn similarity(&self, a: u32, b: u32) -> Option<f64> {
        let [a, b] = [a, b].map(|record| self.entry_of.get(record as usize).copied().filter(|&entry| entry != NONE));
        let (low, high) = (a?.min(b?), a?.max(b?));
        if low == high {
            return Some(1.0);
        }
        self.row(high).find(|&(earlier, _)| earlier == low).map(|(_, similarity)| similarity)
    }

    /// The pairs next to the threshold, the most doubtful first: of those that go the least similar to what they go for, of those that stay the
    /// most similar to another that stays. A record is in one pair only; copies and marked pairs are left out.
    pub fn border(&self, outcome: &Outcome, marks: &Marks, source: Option<usize>, most: usize) -> Vec<BorderPair> {
        let is_wanted = |record: u32| source.is_none_or(|source| self.source_of(record) == source);
        let mut pairs: Vec<BorderPair> = (0..)
            .zip(&outcome.verdicts)
            .filter(|(record, verdict)| {
                verdict.of != NONE
                    && self.first[self.entry_of[*record as usize] as usize] == *record
                    && (is_wanted(*record) || is_wanted(verdict.of))
                    && !marks.contains_key(&(verdict.of, *record))
            })
            .map(|(record, verdict)| {
                let similarity = self.similarity(verdict.of, record).unwrap_or(verdict.similarity.into());
                BorderPair { kept: verdict.of, other: record, similarity, goes: verdict.goes }
            })
            .collect();
        let doubt = |pair: &BorderPair| (pair.similarity - outcome.near).abs();
        pairs.sort_by(|a, b| doubt(a).total_cmp(&doubt(b)).then(a.other.cmp(&b.other)));
        let mut shown = BTreeSet::new();
        pairs.retain(|pair| {
            let is_new = !shown.contains(&pair.kept) && !shown.contains(&pair.other);
            if is_new {
                shown.extend([pair.kept, pair.other]);
            }
            is_new
        });
        pairs.truncate(most);
        pairs
    }

    /// The clusters, the largest first.
    pub fn clusters(&self, outcome: &Outcome, source: Option<usize>, most: usize) -> Vec<Cluster> {
        let mut sizes = BTreeMap::<u32, u64>::new();
        for (record, verdict) in (0..).zip(&outcome.verdicts).filter(|(_, verdict)| verdict.goes) {
            let size = sizes.entry(verdict.of).or_insert(1);
            *size += 1;
            if source.is_some_and(|source| self.source_of(record) != source && self.source_of(verdict.of) != source) {
                *size -= 1;
            }
        }
        let giants = alarm::worth_an_alarm(sizes.iter().map(|(&kept, &size)| (kept, size)), self.records());
        let mut clusters: Vec<Cluster> = sizes
            .into_iter()
            .filter(|&(_, records)| records > 1)
            .map(|(kept, records)| Cluster {
                kept,
                records,
                giant: giants.iter().any(|&(giant, _)| giant == kept),
                template: self.templates[self.entry_of[kept as usize] as usize],
            })
            .collect();
        clusters.sort_by_key(|cluster| (std::cmp::Reverse(cluster.records), cluster.kept));
        clusters.truncate(most);
        clusters
    }

    /// The records that go because of one that stays, the least similar first.
    pub fn members(&self, outcome: &Outcome, kept: u32, most: usize) -> Vec<Member> {
        let mut members: Vec<Member> = (0..)
            .zip(&outcome.verdicts)
            .filter(|(_, verdict)| verdict.goes && verdict.of == kept)
            .map(|(record, verdict)| Member { record, similarity: verdict.similarity.into() })
            .collect();
        members.sort_by(|a, b| a.similarity.total_cmp(&b.similarity).then(a.record.cmp(&b.record)));
        members.truncate(most);
        members
    }

    /// What becomes of a record: the one it goes for, and how similar that is.
    pub fn verdict(&self, outcome: &Outcome, record: u32) -> Option<Member> {
        let verdict = outcome.verdicts.get(record as usize).filter(|verdict| verdict.goes)?;
        Some(Member { record: verdict.of, similarity: verdict.similarity.into() })
    }

    /// How many of the marked pairs are duplicates, from the lowest threshold on in steps of a twentieth. Pairs that are less similar than that count nowhere.
    pub fn precision(&self, marks: &Marks) -> Vec<Precision> {
        let known: Vec<(f64, bool)> =
            marks.iter().filter_map(|(&(a, b), &duplicate)| Some((self.similarity(a, b)?, duplicate))).collect();
        let first = (self.lowest * 20.0).ceil() as u32;
        let at = |twentieth: u32| {
            let near = f64::from(twentieth) / 20.0;
            let above = known.iter().filter(|(similarity, _)| *similarity >= near);
            let duplicates = above.clone().filter(|(_, duplicate)| *duplicate).count();
            Precision::new(near, above.count() as u64, duplicates as u64)
        };
        (first..=20).map(at).collect()
    }
}

impl Verdict {
    fn new(of: u32, similarity: f64, near: f64) -> Self {
        Self { of, similarity: similarity as f32, goes: similarity >= near }
    }
}

/// Entries with marked records, each of whose records is decided on by itself.
struct Marked<'m> {
    marks: &'m Marks,
    entries: BTreeSet<u32>,
    /// By such an entry: all that are near it, later ones too.
    rows: BTreeMap<u32, Vec<(u32, f64)>>,
    /// By marked record: those before it that it is marked with.
    before: BTreeMap<u32, Vec<(u32, bool)>>,
}

impl<'m> Marked<'m> {
    fn new(explored: &Explored, marks: &'m Marks) -> Self {
        let (mut entries, mut before) = (BTreeSet::new(), BTreeMap::<u32, Vec<(u32, bool)>>::new());
        for (&(a, b), &duplicate) in marks {
            entries.extend([a, b].map(|record| explored.entry_of[record as usize]));
            before.entry(b).or_default().push((a, duplicate));
        }
        let mut rows = BTreeMap::<u32, Vec<(u32, f64)>>::new();
        if !entries.is_empty() {
            for entry in 0..explored.first.len() as u32 {
                for (earlier, similarity) in explored.row(entry) {
                    for (one, other) in [(entry, earlier), (earlier, entry)] {
                        if entries.contains(&one) {
                            rows.entry(one).or_default().push((other, similarity));
                        }
                    }
                }
            }
        }
        Self { marks, entries, rows, before }
    }

    /// All records of an entry, in their order.
    fn records(explored: &Explored, entry: u32) -> impl Iterator<Item = u32> {
        let copies = explored.copies.get(&entry).into_iter().flatten().copied();
        std::iter::once(explored.first[entry as usize]).chain(copies)
    }

    /// The first kept record of an entry, before another one.
    fn first_kept(&self, explored: &Explored, entry: u32, before: u32, verdicts: &[Verdict]) -> Option<u32> {
        let mut earlier = Self::records(explored, entry).take_while(|&record| record < before);
        // Records that are in no mark are kept only as the first of their entry.
        earlier.find(|&record| !verdicts[record as usize].goes)
    }

    /// Decides on a record of a marked entry.
    fn decide(&self, explored: &Explored, record: u32, near: f64, verdicts: &[Verdict]) -> Verdict {
        let goes = |one: u32| verdicts[one as usize].goes;
        let marked = self.before.get(&record).map_or(&[][..], Vec::as_slice);
        let forced = marked.iter().find(|&&(earlier, duplicate)| duplicate && !goes(earlier));
        if let Some(&(of, _)) = forced {
            let similarity = explored.similarity(of, record).unwrap_or(0.0);
            return Verdict { of, similarity: similarity as f32, goes: true };
        }
        let entry = explored.entry_of[record as usize];
        let same = std::iter::once((entry, 1.0));
        let row = self.rows.get(&entry).into_iter().flatten().copied();
        let mut nearest: Option<(u32, f64)> = None;
        for (other, similarity) in same.chain(row) {
            let earlier = Self::records(explored, other).take_while(|&one| one < record);
            let mut kept = earlier.filter(|&one| !goes(one) && self.marks.get(&(one, record)) != Some(&false));
            let Some(of) = kept.next() else { continue };
            if nearest.is_none_or(|(one, most)| similarity > most || similarity == most && of < one) {
                nearest = Some((of, similarity));
            }
        }
        let kept = Verdict { of: NONE, similarity: 0.0, goes: false };
        nearest.map_or(kept, |(of, similarity)| Verdict::new(of, similarity, near))
    }
}
