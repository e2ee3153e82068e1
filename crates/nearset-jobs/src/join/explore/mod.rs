//! All near pairs of a corpus, held so that a threshold can be chosen by looking: what would go at each one, and why.
//!
//! Claim: what [`Explored::decide`] says goes at a threshold is what [`VerifiedDedup`](super::VerifiedDedup) removes there, record by record, if it is
//! exhaustive and looks candidates up for the same similarity: who is a candidate is then a function of two records alone.
//! Invariant: records with the same shingles are one *entry*, and a pair of entries takes 12 bytes. Where there are more pairs than
//! [`ExploreOptions::most_pairs`], those of the lowest similarities are given up, and thresholds begin above them: what is shown stays exact.
//! Texts are not held.

mod outcome;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nearset_records::Source;
use nearset_view::run::Excerpt;
use serde::Serialize;

pub use outcome::{BorderPair, Cluster, Marks, Member, Outcome, Precision};

use super::budget::Entries;
use super::pairs::Finder;
use super::stream::{self, Counts, Cutter};
use super::texts::{Place, Reread, Texts};
use super::{JoinOptions, JoinPlan};
use crate::run::{Progress, RunError};

/// How to look at a corpus.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExploreOptions {
    /// How to read; `wanted.near` is the lowest threshold that can be looked at.
    pub join: JoinOptions,
    /// Pairs of entries that are held, at most.
    pub most_pairs: usize,
}

impl ExploreOptions {
    /// The lowest threshold that can be looked at, where no other is set.
    pub const LOWEST: f64 = 0.5;

    /// The usual options.
    pub fn new(join: JoinOptions) -> Self {
        Self { join, most_pairs: 16 << 20 }
    }
}

/// Says of a record that it is in no entry: it has no shingles, and is near nothing.
const NONE: u32 = u32::MAX;

/// Bins of the histogram, from 0 to 1.
const BINS: usize = 100;

/// A corpus that can be looked at.
pub struct Explored {
    /// What was planned.
    pub plan: JoinPlan,
    /// What was read.
    pub counts: Counts,
    /// The similarity that candidates were looked up for.
    pub candidates: f64,
    /// The lowest threshold whose pairs are all held.
    pub lowest: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// By record.
    entry_of: Vec<u32>,
    places: Vec<Place>,
    /// By entry: its first record, and whether most of it is shingles that many records share.
    first: Vec<u32>,
    templates: Vec<bool>,
    /// By entry: where its row of earlier entries that are near it ends. Rows are in descending order of similarity.
    ends: Vec<u64>,
    earlier: Vec<u32>,
    similarities: Vec<f64>,
    /// By entry that has copies: its further records.
    copies: std::collections::BTreeMap<u32, Vec<u32>>,
    texts: Texts,
}

/// Reads a corpus and finds its near pairs.
///
/// # Errors
/// If an input fails, or a record is faulty and none may be.
pub fn explore(
    sources: impl Into<Arc<[Source]>>,
    options: &ExploreOptions,
    progress: &Progress,
) -> Result<Explored, RunError> {
    let (sources, started) = (sources.into(), Instant::now());
    stream::check_files(&sources, "texts are shown after they were compared", nearset_records::Cure::SaveToFile)?;
    let JoinOptions { wanted, fields, .. } = &options.join;
    let cutter = Cutter::new(&sources, wanted, fields, progress)?;
    let mut finder = Finder::new(&sources, &options.join, &cutter, 0);
    // Candidates must not depend on what else is there.
    finder.pairs = finder.pairs.with_limits(0, usize::MAX);
    let mut rows = Rows { lowest: wanted.near, most: options.most_pairs.max(1), ..Rows::default() };
    let (mut entry_of, mut places, mut templates) = (Vec::new(), Vec::new(), Vec::new());
    let mut copies = std::collections::BTreeMap::<u32, Vec<u32>>::new();
    let counts = stream::read(&sources, options.join.reading(), (&cutter, &cutter.fields), progress, |batch, cut| {
        let before = rows.earlier.len();
        for i in 0..cut.documents.len() {
            rows.row.clear();
            let mut copied = None;
            let entry = finder.add_cut(batch, cut, i, |_, near| {
                for &(record, similarity) in near {
                    let entry: u32 = entry_of[record as usize];
                    if similarity.value() == 1.0 {
                        copied = Some(entry);
                    }
                    rows.row.push((similarity.value(), entry));
                }
                Ok(())
            })?;
            let record =
                u32::try_from(entry_of.len()).ok().filter(|&record| record != NONE).ok_or(RunError::TooMany)?;
            match (entry, copied) {
                (Some(_), _) => {
                    rows.end_row();
                    templates.push(cut.has_common_part(i));
                }
                (None, Some(of)) => copies.entry(of).or_default().push(record),
                (None, None) => {}
            }
            entry_of.push(entry.or(copied).unwrap_or(NONE));
            places.push(match entry {
                Some(entry) => finder.texts.place_of(entry)?,
                None => finder.texts.place(batch, cut.documents[i].record)?,
            });
        }
        progress.filter_bytes.store(finder.bytes() + 12 * rows.earlier.len() as u64, Ordering::Relaxed);
        Ok(rows.earlier.len().saturating_sub(before) as u64)
    })?;
    let first = finder.pairs.items().to_vec();
    let mut texts = finder.texts;
    texts.cache = super::cache::Cache::default();
    rows.earlier.shrink_to_fit();
    rows.similarities.shrink_to_fit();
    Ok(Explored {
        plan: options.join.plan(&sources)?.plan,
        counts,
        candidates: wanted.near,
        lowest: rows.lowest,
        seconds: started.elapsed().as_secs_f64(),
        entry_of,
        places,
        first,
        templates,
        ends: rows.ends,
        earlier: rows.earlier,
        similarities: rows.similarities,
        copies,
        texts,
    })
}

/// Rows of pairs, as they are found.
#[derive(Default)]
struct Rows {
    lowest: f64,
    most: usize,
    row: Vec<(f64, u32)>,
    ends: Vec<u64>,
    earlier: Vec<u32>,
    similarities: Vec<f64>,
}

impl Rows {
    /// Takes the pairs of the next entry.
    fn end_row(&mut self) {
        // The nearest first, of equally near ones the earliest.
        self.row.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let held = self.row.partition_point(|&(similarity, _)| similarity >= self.lowest);
        self.earlier.extend(self.row[..held].iter().map(|&(_, entry)| entry));
        self.similarities.extend(self.row[..held].iter().map(|&(similarity, _)| similarity));
        self.ends.push(self.earlier.len() as u64);
        while self.earlier.len() > self.most && self.lowest < 1.0 {
            self.give_up();
        }
    }

    /// Gives up the pairs of the lowest similarities, a tenth of all at least.
    fn give_up(&mut self) {
        let mut bins = [0usize; BINS + 1];
        self.similarities.iter().for_each(|&similarity| bins[bin_of(similarity)] += 1);
        let (mut bin, mut below) = (bin_of(self.lowest) + 1, bins[bin_of(self.lowest)]);
        while 10 * below < self.similarities.len() && bin < BINS {
            below += bins[bin];
            bin += 1;
        }
        self.lowest = bin as f64 / BINS as f64;
        let (mut start, mut kept) = (0, 0);
        for end in &mut self.ends {
            for at in start..*end as usize {
                if self.similarities[at] >= self.lowest {
                    self.similarities[kept] = self.similarities[at];
                    self.earlier[kept] = self.earlier[at];
                    kept += 1;
                }
            }
            start = std::mem::replace(end, kept as u64) as usize;
        }
        self.similarities.truncate(kept);
        self.earlier.truncate(kept);
    }
}

fn bin_of(similarity: f64) -> usize {
    ((similarity * BINS as f64) as usize).min(BINS)
}

/// How many pairs have a similarity from one number on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// The least similarity; the next bin begins where it ends.
    pub from: f64,
    /// Pairs of records.
    pub pairs: u64,
}

impl Explored {
    /// How many records there are that could be read.
    pub fn records(&self) -> u64 {
        self.entry_of.len() as u64
    }

    /// Whether there is such a record, and it has shingles to be compared by.
    pub fn is_compared(&self, record: u32) -> bool {
        self.entry_of.get(record as usize).is_some_and(|&entry| entry != NONE)
    }

    /// How many pairs of different texts are held.
    pub fn pairs(&self) -> u64 {
        self.earlier.len() as u64
    }

    /// How many pairs of records have which similarity. Those with the same shingles are the last bin, at 1.
    pub fn histogram(&self) -> Vec<Bin> {
        let mut bins = vec![0u64; BINS + 1];
        let size = |entry: u32| 1 + self.copies.get(&entry).map_or(0, |copies| copies.len() as u64);
        for entry in 0..self.first.len() as u32 {
            for (earlier, similarity) in self.row(entry) {
                bins[bin_of(similarity)] += size(entry) * size(earlier);
            }
        }
        bins[BINS] += self.copies.keys().map(|&entry| size(entry) * (size(entry) - 1) / 2).sum::<u64>();
        let first = bin_of(self.lowest);
        let bins = bins.into_iter().enumerate().skip(first);
        bins.map(|(bin, pairs)| Bin { from: bin as f64 / BINS as f64, pairs }).collect()
    }

    /// A record: its id, its place and its text.
    ///
    /// # Errors
    /// If it can't be read again.
    pub fn excerpt(&self, record: u32) -> Result<Excerpt, RunError> {
        let place = self.places[record as usize];
        self.texts.read_again(place, &mut Reread::default(), |id, place, text| Excerpt {
            id: id.to_owned(),
            place: place.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Which source a record is in.
    pub fn source_of(&self, record: u32) -> usize {
        self.places[record as usize].source()
    }

    /// The first records that have these letters, in any case, in their id or text.
    ///
    /// # Errors
    /// If one can't be read again.
    pub fn search(&self, letters: &str, source: Option<usize>, most: usize) -> Result<Vec<u32>, RunError> {
        let (wanted, mut reread) = (letters.to_lowercase(), Reread::default());
        let has = |text: &str| match text.is_ascii() && wanted.is_ascii() {
            true => contains_ascii(text.as_bytes(), wanted.as_bytes()),
            false => text.to_lowercase().contains(&wanted),
        };
        let mut found = Vec::new();
        for record in 0..self.places.len() as u32 {
            if found.len() == most {
                break;
            }
            if source.is_none_or(|source| self.source_of(record) == source)
                && self
                    .texts
                    .read_again(self.places[record as usize], &mut reread, |id, _, text| has(id) || has(text))?
            {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Returns the pairs of an entry with earlier ones, the nearest first.
    fn row(&self, entry: u32) -> impl Iterator<Item = (u32, f64)> {
        let start = entry.checked_sub(1).map_or(0, |before| self.ends[before as usize]) as usize;
        let row = start..self.ends[entry as usize] as usize;
        self.earlier[row.clone()].iter().copied().zip(self.similarities[row].iter().copied())
    }
}

/// Whether the letters are in an ASCII text, in any case.
fn contains_ascii(text: &[u8], letters: &[u8]) -> bool {
    letters.is_empty() || text.windows(letters.len()).any(|window| window.eq_ignore_ascii_case(letters))
}

#[cfg(test)]
mod tests;
