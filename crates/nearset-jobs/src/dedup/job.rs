//! A batch on its way through the threads: what a worker makes of it before its turn in the order comes.

use std::ops::Range;
use std::sync::Arc;

use nearset::family::{Hashed, Key};
use nearset::spec::Hasher;
use nearset::{Filter, Item, ItemError, Spec};

use super::state::State;
use nearset_records::error::{InputError, RecordError, RecordFault};
use nearset_records::extract::{Arena, Fields, extract};
use nearset_records::format::Format;
use nearset_records::input::{Batch, Position};

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    New {
        hits: u32,
    },
    Near {
        hits: u32,
    },
    /// Near something in that filter of `--against`.
    Against {
        filter: usize,
        hits: u32,
    },
    Faulty,
}

/// A batch and what is known of it. Jobs go round in a pool, so that their number bounds the memory.
#[derive(Default)]
pub(super) struct Job {
    pub sequence: u64,
    pub batch: Batch,
    /// What ended the source behind the batch's records.
    pub input_error: Option<InputError>,
    /// Keys of the records that are not faulty, one after the other.
    pub keys: Vec<Option<Key>>,
    /// Faulty records, in order.
    pub faults: Vec<(usize, RecordError)>,
    /// Records near something in a filter of `--against`, in order: the record, the filter, the hits.
    pub against: Vec<(usize, usize, u32)>,
    pub ids: Ids,
    pub verdicts: Vec<Verdict>,
    /// Whether a worker panicked over it.
    pub given_up: bool,
    /// Checkpoints behind records, in order: after how many, and what.
    pub checkpoints: Vec<(usize, Box<State>)>,
}

impl Job {
    pub fn clear(&mut self) {
        self.input_error = None;
        self.keys.clear();
        self.faults.clear();
        self.against.clear();
        self.ids.clear();
        self.verdicts.clear();
        self.checkpoints.clear();
    }

    /// Where reading goes on behind the first `records` records.
    pub fn position_behind(&self, records: usize) -> Position {
        let batch = &self.batch;
        if records >= batch.len() {
            return batch.end();
        }
        let start = batch.start();
        let offset = match batch.format() {
            Format::Parquet => start.offset,
            _ => start.offset + batch.range(records).start as u64,
        };
        Position { source: start.source, record: start.record + records as u64, line: batch.line(records), offset }
    }
}

/// The ids of a batch's records, in one string.
#[derive(Default)]
pub(crate) struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub fn push(&mut self, id: &str) {
        self.text.push_str(id);
        self.ends.push(self.text.len());
    }

    /// The id of record `i`; empty where ids were not asked for.
    pub fn get(&self, i: usize) -> &str {
        let Some(&end) = self.ends.get(i) else { return "" };
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[Range { start, end }]
    }
}

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
        let described = filter.spec();
        let same_keys = described.near().is_some_and(|theirs| {
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

/// What one worker thread works with.
pub(super) struct Worker<'w> {
    fields: &'w Fields,
    sketcher: TextSketcher<'w>,
    wants_ids: bool,
    arena: Arena,
}

impl<'w> Worker<'w> {
    pub fn new(fields: &'w Fields, hasher: Hasher, against: &'w [Against<'w>], wants_ids: bool) -> Self {
        Self { fields, sketcher: TextSketcher::new(hasher, against), wants_ids, arena: Arena::new() }
    }

    /// Everything about a batch that does not depend on the records before it.
    pub fn sketch(&mut self, job: &mut Job) {
        let Job { batch, keys, faults, against, ids, .. } = job;
        let extracted = extract(batch, self.fields, &mut self.arena);
        for i in 0..extracted.len() {
            if self.wants_ids {
                ids.push(&extracted.id(i));
            }
            let item = match extracted.item(i) {
                Ok(item) => item,
                Err(error) => {
                    faults.push((i, error.clone()));
                    continue;
                }
            };
            match self.sketcher.sketch(item, keys) {
                Ok(screened) => against.extend(screened.map(|(filter, hits)| (i, filter, hits))),
                Err(cause) => {
                    let fault = RecordFault::Unhashable { field: self.fields.item.clone(), cause };
                    faults.push((i, RecordError { name: Arc::clone(batch.name()), line: batch.line(i), fault }));
                }
            }
        }
    }
}
