//! The remembered records compared exactly with others, by reading the inputs once more.
//!
//! Claim: a similarity stated here is the exact Jaccard similarity of shingle sets, the largest with any of the others; of
//! equals, the earliest record is named.
//! The run decides without any of this: it is the measured curve of a report beside the promised one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearset::{Item, Seed, Shingler};
use nearset_records::{Extracted, ReadOptions, Reader};
use nearset_view::run::Others;

use super::About;
use crate::run::{LONGEST, Place, Progress, RunError, Samples};
use crate::scan::scan_while;

/// A remembered record and what is nearest to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rechecked {
    pub place: Place,
    /// Whether it was taken for a near-duplicate.
    pub removed: bool,
    /// The similarity of the most similar record before it; 0 if none shares a shingle.
    pub similarity: f64,
    /// For a removed one, the most similar record before it that was kept.
    pub kept: Option<Match>,
}

impl Rechecked {
    /// Returns the similarity of the most similar record before it that was kept; 0 if none shares a shingle.
    pub fn kept_similarity(&self) -> f64 {
        self.kept.as_ref().map_or(0.0, |kept| kept.similarity)
    }
}

/// An earlier record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Match {
    pub similarity: f64,
    pub source: usize,
    pub line: u64,
    pub id: String,
    /// The start of its text, for people.
    pub text: String,
}

/// Compares the remembered records with others: removed ones first, each kind in the order of reading. Inputs that break off are compared as
/// far as they go.
pub(super) fn recheck(about: &About<'_>, samples: &Samples, progress: &Progress) -> Result<Vec<Rechecked>, RunError> {
    let &About { sources, options, shingling, others, .. } = about;
    // Any seed will do: it only has to be the same for both sides.
    let shingler = Shingler::new(shingling, Seed::default())?;
    let remembered = |places: Vec<&Place>, removed| {
        let unmatched = move |place: &Place| Rechecked { place: place.clone(), removed, similarity: 0.0, kept: None };
        places.into_iter().map(unmatched).collect::<Vec<_>>()
    };
    let mut all = [remembered(samples.removed().places(), true), remembered(samples.kept().places(), false)].concat();
    let index = Index::new(&shingler, samples, others, &all);
    let reader = Reader::new(Arc::clone(sources), ReadOptions::new(options.fields.clone()));
    progress.rechecking.store(true, Ordering::Relaxed);
    scan_while(
        reader,
        &options.fields,
        options.threads,
        |extracted, _| index.matches(extracted),
        || progress.go_on(),
        |batch, found| {
            progress.disk_bytes.store(batch.disk_bytes(), Ordering::Relaxed);
            for Candidate { sample, similarity, kept } in found.unwrap_or_default() {
                let one = &mut all[sample];
                one.similarity = one.similarity.max(similarity);
                if let Some(kept) = kept
                    && one.kept.as_ref().is_none_or(|best| kept.similarity > best.similarity)
                {
                    index.set_best(sample, kept.similarity);
                    one.kept = Some(kept);
                }
            }
            Ok(())
        },
    )?;
    progress.rechecking.store(false, Ordering::Relaxed);
    Ok(all)
}

/// What a batch has for a remembered record.
struct Candidate {
    sample: usize,
    /// The largest similarity.
    similarity: f64,
    /// The most similar record that was kept, if it is nearer than those of the batches before.
    kept: Option<Match>,
}

/// The remembered records by their shingles.
struct Index<'s> {
    shingler: &'s Shingler,
    samples: &'s Samples,
    others: Others,
    /// Every shingle of every remembered record, sorted.
    shingles: Vec<(u64, u32)>,
    /// Where shingles that begin with given bits start in it, and where the last ones end. Shingles are hash values, so there
    /// is about one to each.
    starts: Vec<u32>,
    remembered: Vec<Remembered>,
}

struct Remembered {
    shingles: usize,
    place: (usize, u64),
    removed: bool,
    /// The bits of the largest similarity of a kept record so far. Batches are taken in their order, so what it keeps out is what
    /// would lose anyway.
    best: AtomicU64,
}

impl<'s> Index<'s> {
    fn new(shingler: &'s Shingler, samples: &'s Samples, others: Others, all: &[Rechecked]) -> Self {
        let (mut shingles, mut remembered) = (Vec::new(), Vec::with_capacity(all.len()));
        for (number, one) in (0..).zip(all) {
            let set = shingler.shingle_set(&one.place.text);
            let place = (one.place.source, one.place.line);
            remembered.push(Remembered {
                shingles: set.len(),
                place,
                removed: one.removed,
                best: AtomicU64::new(0f64.to_bits()),
            });
            shingles.extend(set.into_iter().map(|shingle| (shingle, number)));
        }
        shingles.sort_unstable();
        let bits = shingles.len().next_power_of_two().ilog2().max(1);
        let mut starts = vec![0u32; (1 << bits) + 1];
        for (shingle, _) in &shingles {
            starts[(shingle >> (64 - bits)) as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        Self { shingler, samples, others, shingles, starts, remembered }
    }

    /// Returns the remembered records that have a shingle.
    fn with(&self, shingle: u64) -> impl Iterator<Item = usize> {
        let bits = (self.starts.len() - 1).ilog2();
        let first = (shingle >> (64 - bits)) as usize;
        let bucket = &self.shingles[self.starts[first] as usize..self.starts[first + 1] as usize];
        bucket.iter().filter(move |(other, _)| *other == shingle).map(|&(_, sample)| sample as usize)
    }

    fn set_best(&self, sample: usize, similarity: f64) {
        self.remembered[sample].best.store(similarity.to_bits(), Ordering::Relaxed);
    }

    /// For each remembered record that shares something with an earlier one of this batch: the most similar of these.
    fn matches(&self, extracted: &Extracted<'_>) -> Vec<Candidate> {
        let batch = extracted.batch();
        let start = batch.start();
        let mut shared = vec![0usize; self.remembered.len()];
        // The largest similarity, and that of a kept record with its number.
        let mut best: Vec<(f64, Option<(f64, usize)>)> = vec![(0.0, None); self.remembered.len()];
        let mut touched = Vec::new();
        for i in 0..extracted.len() {
            let Ok(Item::Text(text)) = extracted.item(i) else { continue };
            let shingles = self.shingler.shingle_set(text);
            for sample in shingles.iter().flat_map(|&shingle| self.with(shingle)) {
                if shared[sample] == 0 {
                    touched.push(sample);
                }
                shared[sample] += 1;
            }
            let kept = self.samples.is_kept(start.source, start.record + i as u64);
            for sample in touched.drain(..) {
                let both = std::mem::take(&mut shared[sample]);
                let Remembered { shingles: size, place, removed, .. } = &self.remembered[sample];
                let is_earlier = (start.source, batch.line(i)) < *place;
                let is_compared = match self.others {
                    Others::EarlierKept => is_earlier && kept,
                    Others::Kept => kept && (*removed || is_earlier),
                    _ => is_earlier,
                };
                if !is_compared {
                    continue;
                }
                let similarity = both as f64 / (size + shingles.len() - both) as f64;
                let (most, most_kept) = &mut best[sample];
                *most = most.max(similarity);
                if *removed && kept && most_kept.is_none_or(|(most, _)| similarity > most) {
                    *most_kept = Some((similarity, i));
                }
            }
        }
        let describe = |(similarity, i): (f64, usize)| {
            let Ok(Item::Text(text)) = extracted.item(i) else { return None };
            let (id, text) = (extracted.id(i).into_owned(), start_of(text).to_owned());
            Some(Match { similarity, source: start.source, line: batch.line(i), id, text })
        };
        let candidate = |(sample, (similarity, kept)): (usize, (f64, Option<(f64, usize)>))| {
            let best = f64::from_bits(self.remembered[sample].best.load(Ordering::Relaxed));
            let kept = kept.filter(|(similarity, _)| *similarity > best).and_then(describe);
            (similarity > 0.0).then_some(Candidate { sample, similarity, kept })
        };
        best.into_iter().enumerate().filter_map(candidate).collect()
    }
}

/// Returns the start of a text, cut between characters.
fn start_of(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunOptions;
    use nearset::Shingling;
    use nearset_records::{Source, resolve};
    use nearset_view::run::Promise;

    #[test]
    fn the_nearest_earlier_record_is_found_with_its_exact_similarity() {
        let words = |from: usize| (from..from + 60).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        // Records 2 and 4 share 54 and 55 of their 56 shingles with record 0 and with record 2.
        let texts = [words(0), words(1000), words(2), words(2000), words(3), words(1000)];
        let removed = [false, false, true, false, true, true];
        let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        std::fs::write(&path, lines).unwrap();
        let mut samples = Samples::new(10);
        for (record, (text, removed)) in (0..).zip(texts.iter().zip(removed)) {
            let place = || Place { record, line: record + 1, text: text.clone(), ..Place::default() };
            samples.see(Seed::default(), record, removed, None, place);
            if !removed {
                samples.keep(0, record);
            }
        }
        let sources: Arc<[Source]> = resolve(&[path.to_str().unwrap()], None).unwrap().list.into();
        for threads in [1, 3] {
            let options = RunOptions { threads, ..RunOptions::default() };
            let about = About {
                sources: &sources,
                options: &options,
                shingling: Shingling::default(),
                warnings: Vec::new(),
                memory: 0,
                compared_all: false,
                others: Others::Earlier,
                promised: Vec::new(),
                promise: Promise::default(),
                plan: Vec::new(),
                facts: Vec::new(),
            };
            let rechecked = recheck(&about, &samples, &Progress::new()).unwrap();
            let found: Vec<_> = rechecked
                .iter()
                .map(|one| {
                    let kept = one.kept.as_ref().map(|kept| (kept.line, kept.similarity));
                    (one.place.line, one.removed, one.similarity, kept)
                })
                .collect();
            let expected = [
                (3, true, 54.0 / 58.0, Some((1, 54.0 / 58.0))),
                (5, true, 55.0 / 57.0, Some((1, 53.0 / 59.0))),
                (6, true, 1.0, Some((2, 1.0))),
                (1, false, 0.0, None),
                (2, false, 0.0, None),
                (4, false, 0.0, None),
            ];
            assert_eq!(found, expected);
            assert_eq!(rechecked[2].kept.as_ref().unwrap().text, texts[1]);
        }
    }
}
