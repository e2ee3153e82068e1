//! Decisions in the order of reading, in a memory that does not grow with the records.
//!
//! A first pass cuts all records. Of each, its keys and its place are held until they fill the memory of a *round*. Then the
//! records kept in earlier rounds that share a key are found by merging: their postings lie in scratch space, each round's in the order of
//! their codes. The round is decided as if all were in memory, and its own postings follow. A second pass writes.
//!
//! Claim: the decisions are those of [`in_order`](super::in_order).
//! Limit: what has a common part (`nearset::index`) stays in memory, and so does a count for each kept record.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::index::ShingleKeys;
use nearset_records::{OutputError, OutputFile, Scratch, Source, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::stars::{Next, OwnSet, Placement, Stars};
use super::super::stream::{self, Cutter};
use super::super::texts::{Place, Texts};
use super::ranked::states;
use super::{Outcome, VerifiedDedupOptions, VerifiedDedupSummary, write_copies};
use crate::in_order::in_parallel;
use crate::run::{Decider, Decision, Ids, Part, Progress, RunError, Start, Tally, Verdict};

/// The decisions of a run that can be resumed.
const FILE: &str = "decisions.bin";

/// Records that are looked up together.
const AT_ONCE: usize = 4096;

/// Where so little is to be taken, only the number of rounds follows from it.
const LEAST_BYTES: u64 = 16 << 20;

/// Parts of all codes, by their upper 8 bits.
const PARTS: usize = 256;

/// A record that was kept in an earlier round, under the code of one of its keys: the code, its entry, and its size.
type Posting = (u64, u32, u32);

/// A record of the round.
struct Waiting {
    /// Its number among all records.
    number: u64,
    place: Place,
    /// Where its keys end.
    keys_end: usize,
    /// The filter that it is near something in, and how many bands hit there. It is not compared then.
    screened: Option<(u32, u32)>,
    /// Its number among marked records, if it is one.
    mark: Option<u32>,
}

/// The records that are decided on next.
#[derive(Default)]
struct Round {
    records: Vec<Waiting>,
    /// The keys of all of them, one after the other.
    keys: Vec<u64>,
}

impl Round {
    fn keys(&self, record: usize) -> &[u64] {
        let start = record.checked_sub(1).map_or(0, |before| self.records[before].keys_end);
        &self.keys[start..self.records[record].keys_end]
    }

    fn clear(&mut self) {
        self.records.clear();
        self.keys.clear();
    }
}

/// What a removal is, in a file: its number, what it is near or was screened by, and where that lies.
struct Event {
    record: u64,
    cause: Caused,
}

enum Caused {
    Near { of: u32, similarity: f64, place: Place },
    Screened { filter: u32, hits: u32 },
}

impl Event {
    const BYTES: usize = 24 + Place::BYTES;

    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.record.to_le_bytes());
        match &self.cause {
            Caused::Near { of, similarity, place } => {
                bytes[12..16].copy_from_slice(&of.to_le_bytes());
                bytes[16..24].copy_from_slice(&similarity.to_le_bytes());
                bytes[24..].copy_from_slice(&place.to_bytes());
            }
            Caused::Screened { filter, hits } => {
                bytes[8] = 1;
                bytes[12..16].copy_from_slice(&filter.to_le_bytes());
                bytes[16..20].copy_from_slice(&hits.to_le_bytes());
            }
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let mut place = [0; Place::BYTES];
        place.copy_from_slice(&bytes[24..]);
        let cause = match bytes[8] {
            0 => Caused::Near { of: word(12), similarity: f64::from_bits(long(16)), place: Place::from_bytes(place) },
            _ => Caused::Screened { filter: word(12), hits: word(16) },
        };
        Self { record: long(0), cause }
    }
}

/// The postings of earlier rounds, in scratch space.
struct Postings {
    file: Scratch,
    /// By round: where each part begins, and where the last one ends.
    parts: Vec<Vec<u64>>,
}

impl Postings {
    const BYTES: usize = 16;

    /// Appends those of a round.
    fn append(&mut self, stars: &Stars, threads: usize) -> io::Result<()> {
        let mut starts = Vec::with_capacity(PARTS + 1);
        for first in (0..PARTS).step_by(threads) {
            let parts: Vec<usize> = (first..PARTS.min(first + threads)).collect();
            let sorted = in_parallel(threads, parts, |part| {
                let mut bytes = Vec::new();
                for (code, entry, size) in stars.clusters.postings(part as u8) {
                    bytes.extend_from_slice(&code.to_le_bytes());
                    bytes.extend_from_slice(&entry.to_le_bytes());
                    bytes.extend_from_slice(&size.to_le_bytes());
                }
                bytes
            });
            for bytes in sorted {
                starts.push(self.file.append(&bytes)?);
            }
        }
        starts.push(self.file.len());
        self.parts.push(starts);
        Ok(())
    }

    /// Returns those of one part under any of these ascending codes, in ascending order.
    fn met(&self, part: usize, codes: &[u64]) -> io::Result<Vec<Posting>> {
        let mut met: Vec<Posting> = Vec::new();
        let mut bytes = vec![0; if codes.is_empty() { 0 } else { 1 << 18 }];
        for starts in self.parts.iter().filter(|_| !codes.is_empty()) {
            let (mut at, end, mut next) = (starts[part], starts[part + 1], 0);
            while at < end {
                let length = ((end - at) as usize).min(bytes.len());
                self.file.read_at(at, &mut bytes[..length])?;
                at += length as u64;
                for posting in bytes[..length].as_chunks::<{ Self::BYTES }>().0 {
                    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| posting[at + i]));
                    let code = long(0);
                    while codes.get(next).is_some_and(|&wanted| wanted < code) {
                        next += 1;
                    }
                    if codes.get(next) == Some(&code) {
                        met.push((code, long(8) as u32, (long(8) >> 32) as u32));
                    }
                }
            }
        }
        // Those of one round are ascending; of one code, those of earlier rounds have smaller entries.
        met.sort_unstable();
        Ok(met)
    }
}

/// The first pass.
struct Deciding<'d> {
    stars: Stars,
    threads: usize,
    progress: &'d Progress,
    round: Round,
    postings: Postings,
    events: Scratch,
    /// Memory of a round.
    round_bytes: u64,
    /// Memory that a record of it takes, beside its keys.
    record_bytes: u64,
    short: u64,
    rounds: u64,
}

impl Deciding<'_> {
    /// Whether the records that wait fill the memory of a round, behind so many.
    fn is_full(&self, records: u64) -> Result<bool, RunError> {
        let waiting = 8 * self.round.keys.len() as u64 + self.record_bytes * self.round.records.len() as u64;
        let kept = self.stars.clusters.index().bytes() + 4 * self.stars.members.len() as u64;
        self.progress.filter_bytes.store(waiting + kept, Ordering::Relaxed);
        // What is kept from round to round must leave room for one.
        if kept > self.round_bytes / 4 * 3 && self.rounds > 0 && self.round_bytes > LEAST_BYTES {
            return Err(RunError::MemoryTaken { taken: kept, records, resumable: false });
        }
        Ok(waiting >= self.round_bytes.saturating_sub(kept).max(self.round_bytes / 4))
    }

    /// Decides on all that wait.
    fn finish_round(&mut self) -> Result<(), RunError> {
        self.rounds += 1;
        let (mut from, mut is_new) = (0, true);
        while from < self.round.records.len() {
            let (until, met) = self.met_by(from)?;
            self.stars.clusters.next_round(std::mem::take(&mut is_new), met.into_iter().flatten());
            self.decide(from..until)?;
            from = until;
        }
        self.stars.settle(self.threads);
        let appended = self.postings.append(&self.stars, self.threads);
        appended.map_err(|cause| self.stars.texts.scratch_error(cause))?;
        self.stars.clusters.next_round(true, []);
        self.stars.texts.next_round()?;
        self.round.clear();
        Ok(())
    }

    /// Finds what was kept in earlier rounds and shares a key with the next records: as many of them as memory allows.
    fn met_by(&self, from: usize) -> Result<(usize, Vec<Vec<Posting>>), RunError> {
        let mut until = self.round.records.len();
        if self.postings.parts.is_empty() {
            return Ok((until, Vec::new()));
        }
        loop {
            let codes = self.codes(from..until);
            let parts: Vec<(usize, Vec<u64>)> = codes.into_iter().enumerate().collect();
            let met = in_parallel(self.threads, parts, |(part, mut codes)| {
                codes.sort_unstable();
                codes.dedup();
                self.postings.met(part, &codes)
            });
            let met = met.into_iter().collect::<io::Result<Vec<_>>>();
            let met = met.map_err(|cause| self.stars.texts.scratch_error(cause))?;
            let bytes: usize = met.iter().map(|met| size_of_val(&met[..])).sum();
            if bytes as u64 <= self.round_bytes / 4 || until - from <= AT_ONCE {
                return Ok((until, met));
            }
            until = from + (until - from) / 2;
        }
    }

    /// The codes of the keys of some records, by part.
    fn codes(&self, records: Range<usize>) -> Vec<Vec<u64>> {
        let mut keys = ShingleKeys::default();
        let expected = records.len() * 6 / PARTS;
        let mut codes: Vec<Vec<u64>> = (0..PARTS).map(|_| Vec::with_capacity(expected)).collect();
        for record in records {
            keys.read(self.round.keys(record));
            keys.codes().for_each(|code| codes[(code >> 56) as usize].push(code));
        }
        codes
    }

    fn decide(&mut self, records: Range<usize>) -> Result<(), RunError> {
        let Self { stars, threads, round, events, progress, .. } = self;
        let mut keys = ShingleKeys::default();
        let mut removed = 0;
        for first in records.clone().step_by(AT_ONCE) {
            progress.go_on()?;
            let records = first..records.end.min(first + AT_ONCE);
            let record = |i: usize| {
                let record = records.start + i;
                let Waiting { place, screened, mark, .. } = round.records[record];
                let (keys, set, place) = (round.keys(record), OwnSet::Unread, Some(place));
                screened.is_none().then_some(Next { keys, set, place, mark })
            };
            stars.fetch(records.len(), *threads, record)?;
            let proposals = stars.propose(records.len(), *threads, record)?;
            for (record, proposal) in records.zip(&proposals) {
                let Waiting { number, place, screened, mark, .. } = round.records[record];
                let cause = if let Some((filter, hits)) = screened {
                    Caused::Screened { filter, hits }
                } else {
                    keys.read(round.keys(record));
                    let Placement { near, .. } = stars.add(&keys, OwnSet::Unread, mark, proposal, |_| Ok(place))?;
                    let Some((of, similarity)) = near else { continue };
                    Caused::Near { of, similarity, place: stars.texts.place_of(of)? }
                };
                removed += 1;
                let event = Event { record: number, cause };
                events.append(&event.to_bytes()).map_err(|cause| stars.texts.scratch_error(cause))?;
            }
        }
        progress.removed.fetch_add(removed, Ordering::Relaxed);
        Ok(())
    }
}

/// What became of all records.
pub(super) struct InRounds {
    texts: Texts,
    events: Events,
    wants_names: bool,
    outcome: Outcome,
    /// Records that were passed.
    passed: u64,
    /// The inputs as they were before the first pass.
    inputs: Vec<String>,
    sources: Arc<[Source]>,
}

/// Decisions that are read in order.
struct Events {
    file: Scratch,
    /// How many were read.
    read: u64,
    next: Option<Event>,
    room: Vec<u8>,
    at: usize,
}

impl Events {
    fn new(file: Scratch, read: u64) -> io::Result<Self> {
        let mut new = Self { file, read, next: None, room: Vec::new(), at: 0 };
        new.next = new.load()?;
        Ok(new)
    }

    fn load(&mut self) -> io::Result<Option<Event>> {
        if self.at == self.room.len() {
            let from = self.read * Event::BYTES as u64;
            let left = self.file.len().saturating_sub(from) as usize;
            self.room.resize(left.min(1024 * Event::BYTES), 0);
            self.file.read_at(from, &mut self.room)?;
            self.at = 0;
        }
        let Some(bytes) = self.room[self.at..].first_chunk() else { return Ok(None) };
        self.at += Event::BYTES;
        self.read += 1;
        Ok(Some(Event::from_bytes(bytes)))
    }

    /// The decision on a record, if it goes.
    fn of(&mut self, record: u64) -> io::Result<Option<Event>> {
        if self.next.as_ref().is_none_or(|next| next.record > record) {
            return Ok(None);
        }
        let next = self.load()?;
        match std::mem::replace(&mut self.next, next) {
            Some(event) if event.record == record => Ok(Some(event)),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// Bytes of the decisions, and how many were followed.
    decisions: u64,
    followed: u64,
    /// Bytes of the texts that were copied.
    copies: Option<u64>,
    passed: u64,
    outcome: Outcome,
}

impl InRounds {
    /// Reads all records and decides on them, unless the run to be resumed has.
    pub fn new(
        start: &Start,
        options: &VerifiedDedupOptions,
        cutter: &Cutter<'_>,
        mut stars: Stars,
        (memory, record_bytes): (u64, u64),
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let inputs = states(&start.sources);
        let (sources, wants_names) = (Arc::clone(&start.sources), start.wants_names());
        if let (Some(saved), Some(folder)) = (start.saved::<Saved>()?, start.folder()) {
            let Saved { decisions, followed, copies, passed, outcome } = saved;
            stars.texts.restore_copies(copies)?;
            let opened = Scratch::open(&folder.scratch_file(FILE), decisions);
            let events = opened.and_then(|file| Events::new(file, followed)).map_err(|cause| folder.damaged(cause))?;
            return Ok(Self { texts: stars.texts, events, wants_names, outcome, passed, inputs, sources });
        }
        let cache_bytes = stars.texts.cache.most_bytes();
        let unnamed = || stars.texts.unnamed_scratch();
        let events = match start.folder() {
            Some(folder) => {
                folder.create()?;
                let path = folder.scratch_file(FILE);
                Scratch::open(&path, 0).map_err(|cause| OutputError::from_io(&path, cause))?
            }
            None => unnamed()?,
        };
        let mut deciding = Deciding {
            postings: Postings { file: unnamed()?, parts: Vec::new() },
            stars,
            threads: options.run.threads.max(1),
            progress,
            round: Round::default(),
            events,
            round_bytes: memory.saturating_sub(cache_bytes),
            record_bytes: record_bytes + size_of::<Waiting>() as u64,
            short: 0,
            rounds: 0,
        };
        let (reading, mut passed) = ((options.run.threads, options.run.on_error), 0);
        let counts = stream::read(&start.sources, reading, (cutter, &cutter.fields), progress, |batch, cut| {
            for (i, document) in cut.documents.iter().enumerate() {
                let is_screened = document.screened.is_some();
                deciding.short += u64::from(!is_screened && cut.set(i).len() < VerifiedDedupSummary::FEW_SHINGLES);
                let place = deciding.stars.texts.place(batch, document.record)?;
                let Round { records, keys } = &mut deciding.round;
                keys.extend_from_slice(cut.keys(i));
                records.push(Waiting {
                    number: passed + document.record as u64,
                    place,
                    keys_end: keys.len(),
                    screened: document.screened.map(|(filter, hits)| (filter as u32, hits)),
                    mark: document.mark,
                });
            }
            passed += batch.len() as u64;
            if deciding.is_full(passed)? {
                deciding.finish_round()?;
            }
            Ok(0)
        })?;
        deciding.finish_round()?;
        let Deciding { mut stars, events, short, .. } = deciding;
        let outcome = Outcome::of(&mut stars, counts.records, short)?;
        let events = Events::new(events, 0).map_err(|cause| stars.texts.scratch_error(cause))?;
        Ok(Self { texts: stars.texts, events, wants_names, outcome, passed: 0, inputs, sources })
    }
}

impl Decider for InRounds {
    type Piece = ();
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, ()>, decisions: &mut Vec<Decision>, names: &mut Ids) -> Result<(), RunError> {
        let first = self.passed;
        self.passed += part.records.len() as u64;
        for i in part.sound_records() {
            let record = first + (i - part.records.start) as u64;
            let event = self.events.of(record).map_err(|cause| match cause.kind() {
                // Records are numbered as in the first pass.
                ErrorKind::InvalidData => RunError::InputChanged,
                _ => self.texts.scratch_error(cause),
            })?;
            decisions.push(match event.map(|event| event.cause) {
                None => Decision { verdict: Verdict::Kept, family: None },
                Some(Caused::Screened { filter, hits }) => {
                    Decision { verdict: Verdict::Against { filter: filter as usize, hits }, family: None }
                }
                Some(Caused::Near { of, similarity, place }) => {
                    let name = if self.wants_names { names.push(&self.texts.id(place)?) } else { names.push("") };
                    let verdict = Verdict::NearTo { name, similarity, library: None, origin: place.origin() };
                    Decision { verdict, family: Some(of.into()) }
                }
            });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.outcome.index_bytes
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    /// Reading and comparing are behind us.
    fn starts_with_checkpoint(&self) -> bool {
        true
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        let decisions = self.events.file.sync().map_err(|cause| OutputError::from_io(folder.path(), cause))?;
        let saved = Saved {
            decisions,
            followed: self.events.read - u64::from(self.events.next.is_some()),
            copies: self.texts.sync()?,
            passed: self.passed,
            outcome: self.outcome.clone(),
        };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    /// How many records are near each that stays.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        /// Entries that are counted in one pass over the decisions.
        const COUNTED: u32 = 1 << 24;
        let mut first = 0u32;
        loop {
            let (mut counted, mut is_more) = (std::collections::BTreeMap::<u32, (u64, Place)>::new(), false);
            let file = &self.events.file;
            let mut bytes = [0; Event::BYTES];
            for at in (0..file.len()).step_by(Event::BYTES) {
                file.read_at(at, &mut bytes).map_err(|cause| self.texts.scratch_error(cause))?;
                let Caused::Near { of, place, .. } = Event::from_bytes(&bytes).cause else { continue };
                match of.checked_sub(first) {
                    Some(within) if within < COUNTED => counted.entry(of).or_insert((0, place)).0 += 1,
                    Some(_) => is_more = true,
                    None => {}
                }
            }
            for (copies, place) in counted.into_values() {
                write_copies(out, &self.texts.id(place)?, copies)?;
            }
            if !is_more {
                return Ok(());
            }
            first += COUNTED;
        }
    }

    /// Removals go by the number of a record, so that both passes must have read the same.
    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        if tally.records != self.outcome.records || self.events.next.is_some() || states(&self.sources) != self.inputs {
            return Err(RunError::InputChanged);
        }
        Ok(self.outcome.clone())
    }
}
