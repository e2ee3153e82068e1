//! Decisions by a filter: every record is inserted, kept or not, so what is near is decided against all records before.

use nearset::family::{Hashed, Key};
use nearset::spec::Hasher;
use nearset::{Check, Filter, Item, ItemError, NearFilter, Spec};
use nearset_records::{Extracted, OutputFile, OutputOptions, RecordError, RecordFault, StateFolder};
use serde::{Deserialize, Serialize};

use super::summary::{GenerationSummary, Outcome};
use crate::capacity::Capacity;
use crate::filter_file::{save_filter, write_filter};
use crate::run::{Decider, Decision, Ids, Part, RunError, Tally, Verdict, Worker};

/// A filter built before, and how to hash for it.
pub struct Against<'a> {
    filter: &'a Filter<'a>,
    hasher: Hasher,
    /// Whether the run's own keys are also this filter's.
    same_keys: bool,
}

impl<'a> Against<'a> {
    /// A filter to screen by, beside filters of the spec `own`.
    ///
    /// # Errors
    /// If it is a filter of other items than texts.
    pub fn new(filter: &'a Filter<'a>, own: &Spec) -> Result<Self, ItemError> {
        filter.contains_near("any text", &mut Hashed::new())?;
        let hasher = filter.hasher().expect("a filter that takes texts has bands");
        let spec = filter.spec();
        let same_keys = spec.near().is_some_and(|theirs| {
            theirs.probing.is_none()
                && theirs.family == own.family
                && theirs.seed == own.seed
                && theirs.layout() == own.layout()
        });
        Ok(Self { filter, hasher, same_keys })
    }

    /// The bands of an item that hit, if it is near something in the filter.
    fn screen(&self, item: Item<'_>, own: &Hashed, room: &mut Hashed) -> Option<u32> {
        let hashed = if self.same_keys {
            own
        } else {
            // That the filter hashes texts was checked when it was opened.
            self.hasher.hash(item, room).ok()?;
            room
        };
        let found = self.filter.find_hashed(hashed);
        found.near.then(|| found.hits.unwrap_or(0))
    }
}

/// Everything about a text that does not depend on those before it.
pub struct TextSketcher<'w> {
    hasher: Hasher,
    against: &'w [Against<'w>],
    hashed: Hashed,
    hashed_against: Hashed,
}

impl<'w> TextSketcher<'w> {
    /// What one thread sketches with.
    pub fn new(hasher: Hasher, against: &'w [Against<'w>]) -> Self {
        Self { hasher, against, hashed: Hashed::new(), hashed_against: Hashed::new() }
    }

    /// Adds the keys of a text, and says to which of the filters it is near, if any, and how many bands hit there.
    ///
    /// # Errors
    /// If the item is no text.
    pub fn sketch(&mut self, item: Item<'_>, keys: &mut Vec<Option<Key>>) -> Result<Option<(usize, u32)>, ItemError> {
        self.hasher.hash(item, &mut self.hashed)?;
        keys.extend_from_slice(&self.hashed.keys);
        let mut screened = self.against.iter().enumerate().filter_map(|(filter, other)| {
            other.screen(item, &self.hashed, &mut self.hashed_against).map(|hits| (filter, hits))
        });
        Ok(screened.next())
    }
}

/// What workers find out about the sound records of a batch.
#[derive(Default)]
pub(super) struct Sketches {
    /// Their keys, one after the other.
    keys: Vec<Option<Key>>,
    /// Those near something in a filter built before, in order: the record, the filter, the hits.
    against: Vec<(usize, usize, u32)>,
}

/// What workers hash by.
pub(super) struct Sketching<'w> {
    pub hasher: Hasher,
    pub against: &'w [Against<'w>],
    /// The item's field, for errors.
    pub field: &'w str,
}

impl<'w> Worker for Sketching<'w> {
    type Piece = Sketches;
    type Room = TextSketcher<'w>;

    fn room(&self) -> TextSketcher<'w> {
        TextSketcher::new(self.hasher.clone(), self.against)
    }

    fn work(
        &self,
        sketcher: &mut TextSketcher<'w>,
        extracted: &Extracted<'_>,
        Sketches { keys, against }: &mut Sketches,
        faults: &mut Vec<(usize, RecordError)>,
    ) {
        keys.clear();
        against.clear();
        for i in 0..extracted.len() {
            let item = match extracted.item(i) {
                Ok(item) => item,
                Err(error) => {
                    faults.push((i, error.clone()));
                    continue;
                }
            };
            match sketcher.sketch(item, keys) {
                Ok(screened) => against.extend(screened.map(|(filter, hits)| (i, filter, hits))),
                Err(cause) => {
                    let fault = RecordFault::Unhashable { field: self.field.to_owned(), cause };
                    faults.push((i, extracted.error(i, fault)));
                }
            }
        }
    }
}

/// The filter, and what it is for.
pub(super) struct ByFilter {
    pub filter: Filter<'static>,
    pub bands: usize,
    pub capacity: Capacity,
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// The file of the filter.
    filter: String,
    pub capacity: Capacity,
}

impl Saved {
    /// Reads the filter.
    pub fn load(&self, folder: &StateFolder) -> Result<Filter<'static>, RunError> {
        let path = folder.file(&self.filter);
        let bytes = std::fs::read(&path).map_err(|cause| folder.damaged(format!("{}: {cause}", path.display())))?;
        match Filter::decode(&bytes, Check::Everything) {
            Ok(filter) => Ok(filter.into_owned()),
            Err(cause) => Err(RunError::BadSnapshot { path, cause }),
        }
    }
}

impl Decider for ByFilter {
    type Piece = Sketches;
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, Sketches>, decisions: &mut Vec<Decision>, _: &mut Ids) -> Result<(), RunError> {
        let (sound, bands) = (part.sound(), self.bands);
        let keys = &part.piece.keys[sound.start * bands..sound.end * bands];
        let against = &part.piece.against;
        let mut against = against[against.partition_point(|&(i, ..)| i < part.records.start)..].iter().peekable();
        let answers = self.filter.insert_keys_counting(keys)?;
        let all = part.sound_records().zip(&answers).zip(keys.chunks(bands));
        decisions.extend(all.map(|((i, answer), keys)| {
            let verdict = match against.next_if(|&&(record, ..)| record == i) {
                Some(&(_, filter, hits)) => Verdict::Against { filter, hits },
                None if answer.near => Verdict::Near { hits: answer.hits },
                None => Verdict::New { hits: answer.hits },
            };
            Decision { verdict, family: keys[0].map(Key::get) }
        }));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    fn checkpoint_bytes(&self) -> u64 {
        self.filter.bytes()
    }

    fn save(&mut self, folder: &StateFolder, checkpoint: u64) -> Result<serde_json::Value, RunError> {
        let filter = format!("filter-{checkpoint}.nearset");
        save_filter(&self.filter, &folder.file(&filter), &OutputOptions::default().with_force(true))?;
        let saved = Saved { filter, capacity: self.capacity };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&self, out: &mut OutputFile) -> Result<(), RunError> {
        Ok(write_filter(&self.filter, out)?)
    }

    fn outcome(&mut self, _: &Tally) -> Result<Outcome, RunError> {
        let describe = |(filter, capacity): (&NearFilter<'_>, u64)| GenerationSummary {
            capacity,
            items: filter.len(),
            fill: filter.fill(),
            bytes: filter.spec().bytes(),
        };
        let filter = &self.filter;
        let terms = filter.terms().expect("a run's filter is on terms");
        Ok(Outcome {
            generations: filter.near_generations().zip(filter.capacities()).map(describe).collect(),
            curve: super::curve(filter, super::similarities(terms)),
            false_negative: 1.0 - filter.acceptance_probability(terms.near),
            false_positive: filter.acceptance_probability(terms.far),
        })
    }
}
