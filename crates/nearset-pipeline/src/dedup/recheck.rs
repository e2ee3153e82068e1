//! The remembered records compared exactly with all records before them, by reading the inputs once more.
//!
//! Claim: a similarity stated here is the exact Jaccard similarity of shingle sets, the largest with any earlier record; of
//! equals, the earliest record is named. Texts longer than what is remembered ([`super::samples::LONGEST`]) are compared by
//! their start.
//! The filter decides without any of this: it is the measured curve of a report beside the promised one.

use std::collections::HashMap;
use std::sync::Arc;

use nearset::{Item, Seed, Shingler};

use super::options::DedupOptions;
use super::samples::{Place, Samples, shortened};
use crate::error::InputError;
use crate::extract::Extracted;
use crate::input::{ReadOptions, Reader, Source};
use crate::scan::scan;

/// A remembered record and what is nearest to it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rechecked {
    /// The record.
    pub place: Place,
    /// Whether it was taken for a near-duplicate.
    pub removed: bool,
    /// The most similar record before it; `None` if none shares a shingle.
    pub nearest: Option<Match>,
}

/// An earlier record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Match {
    /// The exact similarity.
    pub similarity: f64,
    /// Its source, from 0.
    pub source: usize,
    /// Its line, from 1.
    pub line: u64,
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// Compares the remembered records with all before them: removed ones first, each kind in the order of reading. Inputs that
/// cannot be read twice, such as a pipe, give none.
///
/// # Errors
/// If the shingling is none. Inputs that break off are compared as far as they go.
pub fn recheck(
    sources: &Arc<[Source]>,
    options: &DedupOptions,
    samples: &Samples,
) -> Result<Vec<Rechecked>, nearset::ShinglingError> {
    // Any seed will do: it only has to be the same for both sides.
    let shingler = Shingler::new(options.wanted.shingling, Seed::default())?;
    if sources.iter().any(|source| source.bytes.is_none()) {
        return Ok(Vec::new());
    }
    let remembered = |places: Vec<&Place>, removed| {
        let unmatched = move |place: &Place| Rechecked { place: place.clone(), removed, nearest: None };
        places.into_iter().map(unmatched).collect::<Vec<_>>()
    };
    let mut all = [remembered(samples.removed(), true), remembered(samples.kept(), false)].concat();
    let index = Index::new(&shingler, &all);
    let reader = Reader::new(Arc::clone(sources), ReadOptions::new(options.fields.clone()));
    let mut take = |found: Result<Vec<(usize, Match)>, InputError>| {
        for (sample, candidate) in found.unwrap_or_default() {
            let nearest = &mut all[sample].nearest;
            if nearest.as_ref().is_none_or(|best| candidate.similarity > best.similarity) {
                *nearest = Some(candidate);
            }
        }
    };
    let outcome: Result<(), std::convert::Infallible> = scan(
        reader,
        &options.fields,
        options.threads,
        |extracted, _| index.matches(extracted),
        |_, found| {
            take(found);
            Ok(())
        },
    );
    match outcome {
        Ok(()) => Ok(all),
    }
}

/// The remembered records by their shingles.
struct Index<'s> {
    shingler: &'s Shingler,
    by_shingle: HashMap<u64, Vec<u32>>,
    /// Shingles of each, and where it stands.
    samples: Vec<(usize, (usize, u64))>,
}

impl<'s> Index<'s> {
    fn new(shingler: &'s Shingler, all: &[Rechecked]) -> Self {
        let mut by_shingle: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut samples = Vec::with_capacity(all.len());
        for (number, sample) in (0..).zip(all) {
            let shingles = shingler.shingle_set(&sample.place.text);
            samples.push((shingles.len(), (sample.place.source, sample.place.line)));
            for shingle in shingles {
                by_shingle.entry(shingle).or_default().push(number);
            }
        }
        Self { shingler, by_shingle, samples }
    }

    /// For each remembered record that shares something with an earlier one of this batch: the most similar of these.
    fn matches(&self, extracted: &Extracted<'_>) -> Vec<(usize, Match)> {
        let batch = extracted.batch();
        let mut shared = vec![0usize; self.samples.len()];
        let mut best: Vec<Option<(f64, usize)>> = vec![None; self.samples.len()];
        for i in 0..extracted.len() {
            let Ok(Item::Text(text)) = extracted.item(i) else { continue };
            let shingles = self.shingler.shingle_set(&shortened(text));
            let mut touched = Vec::new();
            for sample in shingles.iter().filter_map(|shingle| self.by_shingle.get(shingle)).flatten() {
                let count = &mut shared[*sample as usize];
                if *count == 0 {
                    touched.push(*sample as usize);
                }
                *count += 1;
            }
            for sample in touched {
                let both = std::mem::take(&mut shared[sample]);
                let (size, place) = self.samples[sample];
                let similarity = both as f64 / (size + shingles.len() - both) as f64;
                let earlier = (batch.start().source, batch.line(i)) < place;
                if earlier && best[sample].is_none_or(|(most, _)| similarity > most) {
                    best[sample] = Some((similarity, i));
                }
            }
        }
        let describe = |(sample, best): (usize, Option<(f64, usize)>)| {
            let (similarity, i) = best?;
            let Ok(Item::Text(text)) = extracted.item(i) else { return None };
            let (source, line) = (batch.start().source, batch.line(i));
            let (id, text) = (extracted.id(i).into_owned(), shortened(text));
            Some((sample, Match { similarity, source, line, id, text }))
        };
        best.into_iter().enumerate().filter_map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::{Dedup, Progress};
    use crate::input::resolve;
    use nearset::plan::TextDedup;

    #[test]
    fn the_nearest_earlier_record_is_found_with_its_exact_similarity() {
        let words = |from: usize| (from..from + 60).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        // Record 2 shares 56 - 2 of its 56 shingles with record 0: similarity 54/58.
        let texts = [words(0), words(1000), words(2), words(2000), words(1000)];
        let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        std::fs::write(&path, lines).unwrap();
        let mut options = DedupOptions::new(TextDedup::default());
        options.samples = 10;
        let sources = resolve(&[path.to_str().unwrap()], None).unwrap();
        let dedup = Dedup::prepare(sources.list, options.clone()).unwrap();
        let sources = Arc::clone(dedup.sources());
        let summary = dedup.run(&Progress::new()).unwrap();
        assert_eq!((summary.kept, summary.near), (3, 2));
        let rechecked = recheck(&sources, &options, &summary.samples).unwrap();
        let found: Vec<_> = rechecked
            .iter()
            .map(|one| {
                let nearest = one.nearest.as_ref().map(|nearest| (nearest.line, nearest.similarity));
                (one.place.line, one.removed, nearest)
            })
            .collect();
        let expected = [
            (3, true, Some((1, 54.0 / 58.0))),
            (5, true, Some((2, 1.0))),
            (1, false, None),
            (2, false, None),
            (4, false, None),
        ];
        assert_eq!(found, expected);
        assert_eq!(rechecked[1].nearest.as_ref().unwrap().text, texts[1]);
    }
}
