//! What became of all records, decided by a first pass; a second one writes. The first is done again when a run is resumed, since it comes to the
//! same.

use std::collections::BTreeMap;
use std::sync::Arc;

use nearset_records::{Extracted, Fields, OutputFile, RecordError, Source, StateFolder};

use super::super::stream;
use super::{Outcome, write_copies};
use crate::run::{Decider, Decision, Ids, Part, RunError, Start, Tally, Verdict, Worker};

/// The size of each file and when it changed.
pub(super) fn states(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| source.state()).collect()
}

/// Decisions by the number of a record.
#[derive(Default)]
pub(super) struct Verdicts {
    /// Records that go: which of `names` is that of the one that each is near, and how near.
    pub removals: BTreeMap<u64, (u32, f64)>,
    /// Records that are near something in a filter built before, and how many bands hit there.
    pub screened: BTreeMap<u64, (usize, u32)>,
    pub names: Ids,
}

/// Says of each record what was decided.
pub(super) struct Decided {
    verdicts: Verdicts,
    outcome: Outcome,
    /// Records that were passed.
    passed: u64,
    /// The inputs as they were before the first pass.
    inputs: Vec<String>,
    sources: Arc<[Source]>,
}

impl Decided {
    /// `inputs` is what [`states`] said before the first pass.
    pub fn new(verdicts: Verdicts, outcome: Outcome, inputs: Vec<String>, start: &Start) -> Result<Self, RunError> {
        let passed = start.saved::<u64>()?.unwrap_or(0);
        Ok(Self { verdicts, outcome, passed, inputs, sources: Arc::clone(&start.sources) })
    }
}

impl Decider for Decided {
    type Piece = ();
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, ()>, decisions: &mut Vec<Decision>, names: &mut Ids) -> Result<(), RunError> {
        let first = self.passed;
        self.passed += part.records.len() as u64;
        let Verdicts { removals, screened, names: all } = &self.verdicts;
        for i in part.sound_records() {
            let record = first + (i - part.records.start) as u64;
            let (verdict, family) = match (screened.get(&record), removals.get(&record)) {
                (Some(&(filter, hits)), _) => (Verdict::Against { filter, hits }, None),
                (None, None) => (Verdict::Kept, None),
                (None, Some(&(of, similarity))) => {
                    let name = names.push(all.get(of as usize));
                    (Verdict::NearTo { name, similarity, library: None, origin: None }, Some(of.into()))
                }
            };
            decisions.push(Decision { verdict, family });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.outcome.index_bytes
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    fn save(&mut self, _: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        Ok(self.passed.into())
    }

    /// Writes how many records are near each that stays.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        let mut copies = BTreeMap::<u32, u64>::new();
        self.verdicts.removals.values().for_each(|&(of, _)| *copies.entry(of).or_default() += 1);
        let names = &self.verdicts.names;
        copies.into_iter().try_for_each(|(of, copies)| write_copies(out, names.get(of as usize), copies))
    }

    /// Removals go by the number of a record, so that both passes must have read the same.
    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        if tally.records != self.outcome.records || states(&self.sources) != self.inputs {
            return Err(RunError::InputChanged);
        }
        Ok(self.outcome.clone())
    }
}

/// What the second pass needs of records that are texts: whether they are sound.
pub(super) struct Naming<'w> {
    pub fields: &'w Fields,
}

impl Worker for Naming<'_> {
    type Piece = ();
    type Room = ();

    fn room(&self) {}

    fn clear(&self, (): &mut (), (): &mut ()) {}

    fn add(&self, (): &mut (), extracted: &Extracted<'_>, i: usize, (): &mut ()) -> Result<(), RecordError> {
        stream::text_of(extracted, i, self.fields).map(|_| ())
    }
}

/// What it needs of others: whether the worker of the first pass finds them sound.
pub(super) struct Sound<'w, W>(pub &'w W);

impl<W: Worker> Worker for Sound<'_, W> {
    type Piece = ();
    type Room = (W::Room, W::Piece);

    fn room(&self) -> Self::Room {
        (self.0.room(), W::Piece::default())
    }

    fn clear(&self, (room, piece): &mut Self::Room, (): &mut ()) {
        self.0.clear(room, piece);
    }

    fn add(
        &self,
        (room, piece): &mut Self::Room,
        extracted: &Extracted<'_>,
        i: usize,
        (): &mut (),
    ) -> Result<(), RecordError> {
        self.0.add(room, extracted, i, piece)
    }
}
