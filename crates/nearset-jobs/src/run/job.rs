//! A batch on its way through the threads.

use std::ops::Range;

use nearset_records::{Batch, InputError, Position, RecordError};

use super::state::State;

/// Where a record lies in the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub source: u32,
    pub line: u64,
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// Near nothing; `hits` bands of a filter hit.
    New { hits: u32 },
    /// Near something in the run's own filter.
    Near { hits: u32 },
    /// Near something in that filter built before.
    Against { filter: usize, hits: u32 },
    /// Compared, and near nothing.
    Kept,
    /// Compared, and near another: which of the batch's names is the other's, how near, and the library that it is in, counted behind
    /// the filters built before, or where it lies in the inputs.
    NearTo { name: u32, similarity: f64, library: Option<usize>, origin: Option<Origin> },
    /// Screened against a filter, and written or not.
    Screened { near: bool, hits: Option<u32>, kept: bool },
    /// It holds benchmark items: which of the batch's names are a list of them as JSON, what the surest is called and, if the rest is kept,
    /// the text without them.
    Leaks { findings: u32, name: u32, share: f64, rest: Option<u32> },
    /// Parts of it were there before: which of the batch's names are where they are, and a list of them, both as JSON; their share of
    /// its bytes, whether that is more than may be and, if the rest is kept, the text without them.
    Repeats { spans: Option<u32>, listed: Option<u32>, share: f64, is_too_much: bool, rest: Option<u32> },
    /// It could not be read.
    Faulty,
}

impl Verdict {
    /// Returns whether the record stays.
    pub fn is_kept(self) -> bool {
        matches!(
            self,
            Verdict::New { .. }
                | Verdict::Kept
                | Verdict::Screened { kept: true, .. }
                | Verdict::Leaks { rest: Some(_), .. }
                | Verdict::Repeats { rest: Some(_), .. }
        )
    }

    /// Returns whether it is near one of this run's own records, or what it was screened against.
    pub fn is_near(self) -> bool {
        matches!(
            self,
            Verdict::Near { .. }
                | Verdict::NearTo { library: None, .. }
                | Verdict::Screened { near: true, .. }
                | Verdict::Leaks { .. }
                | Verdict::Repeats { .. }
        )
    }

    /// Returns what was built before and made the record go: filters first, then libraries.
    pub fn against(self) -> Option<usize> {
        match self {
            Verdict::Against { filter, .. } => Some(filter),
            Verdict::NearTo { library, .. } => library,
            _ => None,
        }
    }
}

/// What is decided about a record.
pub(crate) struct Decision {
    pub verdict: Verdict,
    /// What it has in common with those that are near the same, for counting what is repeated.
    pub family: Option<u64>,
}

/// A batch and what is known of it.
#[derive(Default)]
pub(super) struct Job<P> {
    pub batch: Batch,
    /// What ended the source behind the batch's records.
    pub input_error: Option<InputError>,
    /// What a worker made of the records that are not faulty.
    pub piece: P,
    /// Faulty records, in order.
    pub faults: Vec<(usize, RecordError)>,
    pub ids: Ids,
    pub verdicts: Vec<Verdict>,
    /// Names of records that others are near.
    pub names: Ids,
    /// Whether a worker panicked over it.
    pub given_up: bool,
    /// Checkpoints behind records, in order: after how many, and what.
    pub checkpoints: Vec<(usize, Box<State>)>,
}

impl<P> Job<P> {
    /// Forgets all but the batch, which the reader clears, and the piece, which the worker clears.
    pub fn clear(&mut self) {
        self.input_error = None;
        self.faults.clear();
        self.ids.clear();
        self.verdicts.clear();
        self.names.clear();
        self.checkpoints.clear();
    }

    /// Returns where reading continues behind the first `records` records.
    pub fn position_behind(&self, records: usize) -> Position {
        let batch = &self.batch;
        if records >= batch.len() {
            return batch.end();
        }
        let start = batch.start();
        let offset = match batch.format().is_columnar() {
            true => start.offset,
            false => start.offset + batch.range(records).start as u64,
        };
        Position { source: start.source, record: start.record + records as u64, line: batch.line(records), offset }
    }
}

/// Some records of a batch, all before which are decided.
pub(crate) struct Part<'j, P> {
    pub batch: &'j Batch,
    pub piece: &'j mut P,
    pub ids: &'j Ids,
    pub records: Range<usize>,
    /// The faulty ones of the whole batch, ascending.
    faults: &'j [(usize, RecordError)],
}

impl<'j, P> Part<'j, P> {
    pub(super) fn new(job: &'j mut Job<P>, records: Range<usize>) -> (Self, &'j mut Ids) {
        let Job { batch, piece, faults, ids, names, .. } = job;
        (Self { batch, piece, ids, records, faults }, names)
    }

    /// Returns which of the batch's records that are not faulty these are.
    pub fn sound(&self) -> Range<usize> {
        let faults_before = |record: usize| self.faults.partition_point(|&(faulty, _)| faulty < record);
        let Range { start, end } = self.records;
        start - faults_before(start)..end - faults_before(end)
    }

    /// Returns their numbers in the batch.
    pub fn sound_records(&self) -> impl Iterator<Item = usize> + use<'j, P> {
        let Range { start, end } = self.records;
        let mut faults = self.faults[self.faults.partition_point(|&(faulty, _)| faulty < start)..].iter().peekable();
        (start..end).filter(move |&i| faults.next_if(|(faulty, _)| *faulty == i).is_none())
    }
}

/// Ids of records, in one string.
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

    /// Adds one, and says which it is.
    pub fn push(&mut self, id: &str) -> u32 {
        self.push_parts([id])
    }

    /// The same for one that is in parts.
    pub fn push_parts<'p>(&mut self, parts: impl IntoIterator<Item = &'p str>) -> u32 {
        self.text.extend(parts);
        self.ends.push(self.text.len());
        self.ends.len() as u32 - 1
    }

    /// Returns the memory that they take.
    pub fn bytes(&self) -> u64 {
        (self.text.capacity() + size_of_val(&self.ends[..])) as u64
    }

    /// Returns the id of record `i`; empty where ids were not asked for.
    pub fn get(&self, i: usize) -> &str {
        let Some(&end) = self.ends.get(i) else { return "" };
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[Range { start, end }]
    }
}
