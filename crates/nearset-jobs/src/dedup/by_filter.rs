//! Decisions by a filter: every record is inserted, kept or not, so what is near is decided against all records before.

use nearset::GenerationState;
use nearset::family::{Hashed, Key};
use nearset::spec::Hasher;
use nearset::{Check, Filter, Item, ItemError};
use nearset_records::{Extracted, OutputFile, OutputOptions, RecordError, RecordFault, StateFolder};
use serde::{Deserialize, Serialize};

use super::summary::{GenerationSummary, Outcome};
use crate::capacity::Capacity;
use crate::crew::Crew;
use crate::filter_file::{save_filter, write_filter};
use crate::run::{Decider, Decision, Ids, Part, RunError, Tally, Verdict, Worker};
use crate::screen::{Against, first_hit};

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
        Self { hasher, against, hashed: Hashed::default(), hashed_against: Hashed::default() }
    }

    /// Adds the keys of a text, and says to which of the filters it is near, if any, and how many bands hit there.
    ///
    /// # Errors
    /// If the item is no text.
    pub fn sketch(&mut self, item: Item<'_>, keys: &mut Vec<Option<Key>>) -> Result<Option<(usize, u32)>, ItemError> {
        self.hasher.hash(item, &mut self.hashed)?;
        keys.extend_from_slice(&self.hashed.keys);
        Ok(first_hit(self.against, item, Some(&self.hashed), &mut self.hashed_against))
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

    fn clear(&self, _: &mut TextSketcher<'w>, Sketches { keys, against }: &mut Sketches) {
        keys.clear();
        against.clear();
    }

    fn add(
        &self,
        sketcher: &mut TextSketcher<'w>,
        extracted: &Extracted<'_>,
        i: usize,
        Sketches { keys, against }: &mut Sketches,
    ) -> Result<(), RecordError> {
        let unhashable = |cause| extracted.error(i, RecordFault::Unhashable { field: self.field.to_owned(), cause });
        let item = extracted.item(i).map_err(Clone::clone)?;
        let screened = sketcher.sketch(item, keys).map_err(unhashable)?;
        against.extend(screened.map(|(filter, hits)| (i, filter, hits)));
        Ok(())
    }
}

/// Fewer are inserted before another thread has begun.
const KEYS_WORTH_A_THREAD: usize = 1 << 13;

/// The filter, and what it is for.
pub(super) struct ByFilter {
    pub filter: Filter<'static>,
    pub bands: usize,
    /// Who inserts.
    pub crew: Crew,
    pub capacity: Capacity,
    /// The fewest bands that a copy with few changes hits.
    pub copy_hits: u32,
    pub doubts: Doubts,
}

/// A sign of crowded bands: what many records have in common fills the same bits, and then a record hits many bands without being near any
/// single one. Of records that were called near and are no copies, it is counted how often they have the same key in one of the first
/// bands: edited copies share theirs with few others, pages of a template with many.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Doubts {
    /// Records that were called near, and hit fewer bands than a copy with few changes does.
    near: u64,
    /// Those of them whose key in one of the first bands many had before them.
    crowded: u64,
    /// How often keys were met, by some of their bits.
    met: Vec<u32>,
}

impl Default for Doubts {
    fn default() -> Self {
        Self { near: 0, crowded: 0, met: vec![0; Self::SLOTS] }
    }
}

impl Doubts {
    const SLOTS: usize = 1 << 14;
    /// Bands that are looked at.
    const BANDS: usize = 8;
    /// So many records with one key are a crowd.
    const CROWD: u32 = 30;
    /// So many records of crowds are worth an alarm.
    const FEWEST: u64 = 50;

    /// Takes a record that was called near and is no copy.
    fn see(&mut self, keys: &[Option<Key>]) {
        self.near += 1;
        // What strangers put into each slot is no crowd.
        let usual = (Self::BANDS as u64 * self.near / Self::SLOTS as u64) as u32;
        let mut is_crowded = false;
        for (band, key) in keys.iter().take(Self::BANDS).enumerate() {
            let Some(key) = key else { continue };
            // Keys are hashes.
            let slot = (key.get() ^ (band as u64) << 3) as usize % self.met.len().max(1);
            let Some(met) = self.met.get_mut(slot) else { continue };
            *met = met.saturating_add(1);
            is_crowded |= *met > Self::CROWD + 4 * usual;
        }
        self.crowded += u64::from(is_crowded);
    }

    /// How many records were called near and may be near none.
    fn crowded(&self) -> u64 {
        if self.crowded >= Self::FEWEST { self.crowded + u64::from(Self::CROWD) } else { 0 }
    }
}

/// The fewest bands of `bands` that a copy hits, but for 1 in 40: one that is three quarters of the way from `near` to equal.
pub(super) fn copy_hits(near: f64, rows: u32, bands: u32) -> u32 {
    let similarity = 1.0 - (1.0 - near) / 4.0;
    let (bands, agreement) = (f64::from(bands), similarity.powi(rows as i32));
    (bands * agreement - 2.0 * (bands * agreement * (1.0 - agreement)).sqrt()).max(0.0) as u32
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// The file of the filter.
    filter: String,
    pub capacity: Capacity,
    pub doubts: Doubts,
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
        let parts = self.crew.threads().min(keys.len() / KEYS_WORTH_A_THREAD);
        let crew = &self.crew;
        let answers = self.filter.insert_keys_by(keys, parts, |tasks| drop(crew.each(tasks, |task| task())))?;
        let all = part.sound_records().zip(&answers).zip(keys.chunks(bands));
        let (copy_hits, doubts) = (self.copy_hits, &mut self.doubts);
        decisions.extend(all.map(|((i, answer), keys)| {
            let verdict = match against.next_if(|&&(record, ..)| record == i) {
                Some(&(_, filter, hits)) => Verdict::Against { filter, hits },
                None if answer.near => {
                    if answer.hits < copy_hits {
                        doubts.see(keys);
                    }
                    Verdict::Near { hits: answer.hits }
                }
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

    fn is_mendable(&self) -> bool {
        true
    }

    fn save(&mut self, folder: &StateFolder, checkpoint: u64) -> Result<serde_json::Value, RunError> {
        let filter = format!("filter-{checkpoint}.nearset");
        save_filter(&self.filter, &folder.file(&filter), &OutputOptions::default().with_force(true))?;
        let saved = Saved { filter, capacity: self.capacity, doubts: self.doubts.clone() };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        Ok(write_filter(&self.filter, out)?)
    }

    fn outcome(&mut self, _: &Tally) -> Result<Outcome, RunError> {
        let describe = |state: GenerationState| GenerationSummary {
            capacity: state.capacity.unwrap_or(0),
            items: state.len,
            fill: state.fill.unwrap_or(0.0),
            bytes: state.bytes,
        };
        let filter = &self.filter;
        let spec = filter.spec();
        let terms = spec.terms().expect("a run's filter is on terms");
        Ok(Outcome {
            generations: filter.generations().map(describe).collect(),
            curve: super::curve(filter, super::similarities(terms)),
            false_negative: 1.0 - filter.acceptance_probability(terms.near),
            false_positive: filter.acceptance_probability(terms.far),
            crowded: self.doubts.crowded(),
        })
    }
}
