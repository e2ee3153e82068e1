//! Records compared in a memory that does not grow with them.
//!
//! As long as memory lasts, records are decided on as they come. Then a *round* begins: of each further record, its keys and its place are held
//! until they fill the memory of a round. The entries of earlier rounds that share a key with them are found by merging: their postings lie in
//! scratch space, each round's in the order of their codes. The round is decided as if all were in memory, and its own postings follow.
//!
//! Claim: the results are those of a run whose memory suffices.
//! Limit: what has a common part (`nearset::index`) stays in memory, and so does a count for each entry.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use nearset::index::{ShingleIndex, ShingleKeys};
use nearset_records::Scratch;

use super::stars::settle;
use super::texts::{Place, Texts};
use crate::crew::Crew;
use crate::library::{LibraryError, Segments};
use crate::run::{Ids, RunError};

/// Where so little is to be taken, only the number of rounds follows from it.
pub(super) const LEAST_BYTES: u64 = 16 << 20;

/// Entries behind which the memory of a round is measured for the first time; later, a 64th of them more.
const MEASURED_FIRST: u32 = 512;

/// Parts of all codes, by their upper 8 bits.
const PARTS: usize = 256;

/// Records that wait in the first round, at most: nothing has to be merged for them.
const FIRST_AT_ONCE: usize = 1 << 14;

/// Records that are decided on whatever is merged for them.
const LEAST_AT_ONCE: usize = 4096;

/// Records that waited and are looked up together.
pub(super) const DECIDED_AT_ONCE: usize = 4096;

/// An entry of an earlier round or run, under the code of one of its keys: the code, its entry, and its size.
type Posting = (u64, u32, u32);

/// What holds entries that records are compared with.
pub(super) trait Entries {
    fn index(&mut self) -> &mut ShingleIndex;

    fn texts(&mut self) -> &mut Texts;

    /// How many entries are listed under one key.
    fn most_listed(&self) -> usize;

    /// Its memory, the cache of sets aside.
    fn bytes(&self) -> u64;
}

/// Records that wait to be decided on.
pub(super) struct Backlog<T> {
    records: Vec<Record<T>>,
    /// The keys of all of them, one after the other.
    keys: Vec<u64>,
    /// Memory of what else is known of them.
    own_bytes: u64,
}

struct Record<T> {
    place: Place,
    /// Where its keys end.
    keys_end: usize,
    own: T,
}

impl<T> Backlog<T> {
    const fn new() -> Self {
        Self { records: Vec::new(), keys: Vec::new(), own_bytes: 0 }
    }

    /// The keys of a record, as [`ShingleKeys`] writes them.
    pub fn keys(&self, record: usize) -> &[u64] {
        let start = record.checked_sub(1).map_or(0, |before| self.records[before].keys_end);
        &self.keys[start..self.records[record].keys_end]
    }

    pub fn place(&self, record: usize) -> Place {
        self.records[record].place
    }

    /// What else is known of a record.
    pub fn own(&self, record: usize) -> &T {
        &self.records[record].own
    }

    fn bytes(&self) -> u64 {
        8 * self.keys.capacity() as u64 + (size_of::<Record<T>>() * self.records.capacity()) as u64 + self.own_bytes
    }

    fn clear(&mut self) {
        *self = Self::new();
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
    fn append(&mut self, index: &ShingleIndex, crew: &Crew) -> io::Result<()> {
        let mut starts = Vec::with_capacity(PARTS + 1);
        for first in (0..PARTS).step_by(crew.threads()) {
            let parts: Vec<usize> = (first..PARTS.min(first + crew.threads())).collect();
            let sorted = crew.each(parts, |part| {
                let mut bytes = Vec::new();
                for (code, entry, size) in index.postings(part as u8) {
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

    /// Appends those of one part under any of these ascending codes.
    fn meet(&self, part: usize, codes: &[u64], met: &mut Vec<Posting>) -> io::Result<()> {
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
        Ok(())
    }
}

/// Memory that is taken beside the entries and what waits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Others {
    /// By what goes to scratch space when a round ends.
    pub until_round: u64,
    /// By what does not.
    pub until_end: u64,
}

/// What holds entries, within a budget, and the records that wait to be compared with them.
pub(super) struct Budget<H, T> {
    pub held: H,
    waiting: Backlog<T>,
    /// None in the first round.
    postings: Option<Postings>,
    crew: Crew,
    /// Memory of a round.
    round_bytes: u64,
    /// Memory that an entry of a round takes: as planned, and more where more was measured.
    entry_bytes: u64,
    planned_bytes: u64,
    /// When that is measured next.
    measured_at: u32,
    /// What was held when this round began, and how many entries there were.
    kept_bytes: u64,
    kept_entries: u32,
}

impl<H: Entries, T> Budget<H, T> {
    /// Nothing waits yet. Of `memory`, the cache of sets takes an eighth at most.
    pub fn new(mut held: H, memory: u64, entry_bytes: u64, crew: &Crew) -> Self {
        let cache = &mut held.texts().cache;
        cache.limit(memory / 8);
        let round_bytes = memory.saturating_sub(cache.most_bytes());
        let (kept_bytes, kept_entries) = (held.bytes(), held.texts().entries());
        let (waiting, crew) = (Backlog::new(), crew.clone());
        let (planned_bytes, measured_at) = (entry_bytes, MEASURED_FIRST);
        Self {
            held,
            waiting,
            postings: None,
            crew,
            round_bytes,
            entry_bytes,
            planned_bytes,
            measured_at,
            kept_bytes,
            kept_entries,
        }
    }

    /// Whether all entries are in memory, so that records can be decided on as they come.
    pub fn is_first(&self) -> bool {
        self.postings.is_none()
    }

    /// Lets a record wait. Beside its keys and its place, so many bytes are held of it.
    pub fn push(&mut self, place: Place, keys: &[u64], own: T, own_bytes: u64) {
        let Backlog { records, keys: all, own_bytes: all_own } = &mut self.waiting;
        all.extend_from_slice(keys);
        *all_own += own_bytes;
        records.push(Record { place, keys_end: all.len(), own });
    }

    /// Memory that is taken now.
    pub fn bytes(&mut self, others: Others) -> u64 {
        self.round(others) + self.kept_bytes + others.until_end
    }

    /// Memory that will be free when the round ends.
    fn round(&mut self, others: Others) -> u64 {
        let entries = self.held.texts().entries() - self.kept_entries;
        if entries >= self.measured_at {
            self.measure(entries);
        }
        let entries = u64::from(entries) + self.waiting.records.len() as u64;
        self.waiting.bytes() + self.entry_bytes * entries + others.until_round
    }

    /// Measures what an entry of this round takes: one that shares most of its text with others takes several times what others do.
    fn measure(&mut self, entries: u32) {
        let grown = self.held.bytes().saturating_sub(self.kept_bytes);
        self.entry_bytes = self.planned_bytes.max(grown / u64::from(entries.max(1)));
        self.measured_at = entries.saturating_add((entries / 64).max(MEASURED_FIRST));
    }

    /// Decides on what waits if it is time to, and begins a round if memory is full. `records` were read so far. Returns whether a round has
    /// begun.
    pub fn advance(
        &mut self,
        others: Others,
        records: u64,
        decide: impl FnMut(&mut H, &Backlog<T>, Range<usize>) -> Result<(), RunError>,
    ) -> Result<bool, RunError> {
        let fixed = self.kept_bytes + others.until_end;
        // What is kept from round to round must leave room for one.
        if fixed > self.round_bytes / 4 * 3 && !self.is_first() && self.round_bytes > LEAST_BYTES {
            return Err(RunError::MemoryKept { taken: fixed, records, available: self.round_bytes });
        }
        let is_full = self.round(others) >= self.round_bytes.saturating_sub(fixed).max(self.round_bytes / 4);
        if is_full || self.is_first() && self.waiting.records.len() >= FIRST_AT_ONCE {
            self.decide(decide)?;
        }
        if is_full {
            self.end_round()?;
        }
        Ok(is_full)
    }

    /// Decides on all that wait.
    pub fn decide(
        &mut self,
        mut decide: impl FnMut(&mut H, &Backlog<T>, Range<usize>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let mut from = 0;
        while from < self.waiting.records.len() {
            let (until, met) = self.met_by(from)?;
            self.held.index().next_round(false, met.into_iter().flatten());
            decide(&mut self.held, &self.waiting, from..until)?;
            from = until;
        }
        self.waiting.clear();
        Ok(())
    }

    fn end_round(&mut self) -> Result<(), RunError> {
        let Self { held, postings, crew, .. } = self;
        settle(held.index(), crew);
        let append = || {
            let postings = match postings {
                Some(postings) => postings,
                none => none.insert(Postings { file: held.texts().unnamed_scratch()?, parts: Vec::new() }),
            };
            postings.append(held.index(), crew)
        };
        append().map_err(|cause| held.texts().scratch_error(cause))?;
        let entries = self.held.texts().entries() - self.kept_entries;
        if entries > 0 {
            self.measure(entries);
        }
        let Self { held, .. } = self;
        held.index().next_round(true, []);
        held.texts().next_round()?;
        (self.kept_bytes, self.kept_entries) = (self.held.bytes(), self.held.texts().entries());
        self.measured_at = MEASURED_FIRST;
        Ok(())
    }

    /// Finds the entries of libraries and earlier rounds that share a key with the next records: as many of them as memory allows.
    fn met_by(&mut self, from: usize) -> Result<(usize, Vec<Vec<Posting>>), RunError> {
        let mut until = self.waiting.records.len();
        let Self { held, waiting, postings, crew, round_bytes, .. } = self;
        let most = held.most_listed();
        let texts = held.texts();
        if postings.is_none() && texts.segments.len() == 0 {
            return Ok((until, Vec::new()));
        }
        loop {
            let parts: Vec<(usize, Vec<u64>)> = codes(waiting, from..until).into_iter().enumerate().collect();
            let met = crew.each(parts, |(part, mut codes)| {
                codes.sort_unstable();
                codes.dedup();
                met(&texts.segments, postings.as_ref(), (part, &codes), most)
            });
            let met = met.into_iter().map(|met| match met {
                Ok(met) => Ok(met),
                Err(LookupError::Library(cause)) => Err(cause.into()),
                Err(LookupError::Scratch(cause)) => Err(texts.scratch_error(cause)),
            });
            let met = met.collect::<Result<Vec<_>, RunError>>()?;
            let bytes: usize = met.iter().map(|met| size_of_val(&met[..])).sum();
            if bytes as u64 <= *round_bytes / 4 || until - from <= LEAST_AT_ONCE {
                return Ok((until, met));
            }
            until = from + (until - from) / 2;
        }
    }
}

/// The codes of the keys of some records, by part.
fn codes<T>(waiting: &Backlog<T>, records: Range<usize>) -> Vec<Vec<u64>> {
    let mut keys = ShingleKeys::default();
    let expected = records.len() * 6 / PARTS;
    let mut codes: Vec<Vec<u64>> = (0..PARTS).map(|_| Vec::with_capacity(expected)).collect();
    for record in records {
        keys.read(waiting.keys(record));
        keys.codes().for_each(|code| codes[(code >> 56) as usize].push(code));
    }
    codes
}

/// What could not be read.
enum LookupError {
    Library(LibraryError),
    Scratch(io::Error),
}

/// Returns those of one part under any of these ascending codes, in ascending order.
fn met(
    segments: &Segments,
    postings: Option<&Postings>,
    (part, codes): (usize, &[u64]),
    most: usize,
) -> Result<Vec<Posting>, LookupError> {
    let mut met = segments.met(codes, most).map_err(LookupError::Library)?;
    if let Some(postings) = postings {
        postings.meet(part, codes, &mut met).map_err(LookupError::Scratch)?;
        // Those of one round are ascending; of one code, those of earlier rounds have smaller entries, and the oldest are listed.
        met.sort_unstable();
        let (mut last, mut listed) = (0, 0);
        met.retain(|&(code, ..)| {
            listed = if code == last { listed + 1 } else { 1 };
            last = code;
            listed <= most
        });
        met.shrink_to_fit();
    }
    Ok(met)
}

/// Names, counted from 0: in memory, or those of earlier rounds in scratch space.
#[derive(Default)]
pub(super) struct Names {
    held: Ids,
    /// The names, and where each of them ends.
    older: Option<(Scratch, Scratch)>,
    /// How many are there.
    first: usize,
    len: usize,
}

impl Names {
    pub fn push(&mut self, name: &str) {
        self.held.push(name);
        self.len += 1;
    }

    /// Memory of those that are held.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Returns one of them.
    pub fn get(&self, name: u32) -> io::Result<Cow<'_, str>> {
        let name = name as usize;
        let (Some((names, ends)), true) = (&self.older, name < self.first) else {
            return Ok(self.held.get(name - self.first).into());
        };
        let end_of = |name: usize| {
            let mut end = [0; 8];
            ends.read_at(8 * name as u64, &mut end).map(|()| u64::from_le_bytes(end))
        };
        // Before the first name stands where it begins.
        let (start, end) = (end_of(name)?, end_of(name + 1)?);
        let mut bytes = vec![0; (end - start) as usize];
        names.read_at(start, &mut bytes)?;
        String::from_utf8(bytes).map(Cow::Owned).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Begins a round: names go to scratch space.
    pub fn next_round(&mut self, texts: &Texts) -> Result<(), RunError> {
        self.spill(|| texts.unnamed_scratch()).map_err(|cause| texts.scratch_error(cause))
    }

    fn spill(&mut self, scratch: impl Fn() -> io::Result<Scratch>) -> io::Result<()> {
        let (names, ends) = match &mut self.older {
            Some(older) => older,
            none => {
                let (names, mut ends) = (scratch()?, scratch()?);
                ends.append(&0u64.to_le_bytes())?;
                none.insert((names, ends))
            }
        };
        for name in 0..self.len - self.first {
            names.append(self.held.get(name).as_bytes())?;
            ends.append(&names.len().to_le_bytes())?;
        }
        self.held = Ids::default();
        self.first = self.len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = || Scratch::unnamed(folder.path());
        let mut names = Names::default();
        let all: Vec<String> = (0..100).map(|i| "ä".repeat(i % 7) + &i.to_string()).collect();
        for (i, name) in all.iter().enumerate() {
            if [30, 31, 60].contains(&i) {
                names.spill(scratch).unwrap();
            }
            names.push(name);
            assert!(all[..=i].iter().zip(0..).all(|(name, at)| names.get(at).unwrap() == *name), "{i}");
        }
    }
}
