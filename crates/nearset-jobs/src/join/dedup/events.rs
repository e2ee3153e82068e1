//! What becomes of records, in the order in which they are decided on, for a second pass that reads them in theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};

use nearset_records::Scratch;

use super::super::texts::Place;

/// A record that goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Event {
    /// Its number among all records.
    pub record: u64,
    pub cause: Cause,
}

/// What it is near, or was screened by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cause {
    /// The entry that it is near and how near, the library that this is in, and where it lies.
    Near { of: u32, similarity: f64, library: Option<u32>, place: Place },
    /// The filter, and how many bands hit there.
    Screened { filter: u32, hits: u32 },
}

impl Event {
    pub const BYTES: usize = 32 + Place::BYTES;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.record.to_le_bytes());
        match self.cause {
            Cause::Near { of, similarity, library, place } => {
                bytes[12..16].copy_from_slice(&of.to_le_bytes());
                bytes[16..24].copy_from_slice(&similarity.to_le_bytes());
                bytes[24..28].copy_from_slice(&library.unwrap_or(u32::MAX).to_le_bytes());
                bytes[32..].copy_from_slice(&place.to_bytes());
            }
            Cause::Screened { filter, hits } => {
                bytes[8] = 1;
                bytes[12..16].copy_from_slice(&filter.to_le_bytes());
                bytes[16..20].copy_from_slice(&hits.to_le_bytes());
            }
        }
        bytes
    }

    /// `None` of bytes that say nothing.
    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let mut place = [0; Place::BYTES];
        place.copy_from_slice(&bytes[32..]);
        let cause = match bytes[8] {
            0 => Cause::Near {
                of: word(12),
                similarity: f64::from_bits(long(16)),
                library: Some(word(24)).filter(|&library| library < u32::MAX),
                place: Place::from_bytes(place),
            },
            1 => Cause::Screened { filter: word(12), hits: word(16) },
            _ => return None,
        };
        Some(Self { record: long(0), cause })
    }
}

/// Events as they happen: parts of them are sorted by their records and written one behind the other.
pub(super) struct EventLog<'s> {
    /// Where there is none, one is made when it is needed.
    file: Option<Scratch>,
    scratch: Box<dyn Fn() -> io::Result<Scratch> + 's>,
    ends: Vec<u64>,
    waiting: Vec<Event>,
    most: usize,
}

impl<'s> EventLog<'s> {
    /// So many are sorted at once. Without a file, further ones go to one that `scratch` makes.
    pub fn new(file: Option<Scratch>, most: usize, scratch: impl Fn() -> io::Result<Scratch> + 's) -> Self {
        Self { file, scratch: Box::new(scratch), ends: Vec::new(), waiting: Vec::new(), most }
    }

    pub fn push(&mut self, event: Event) -> io::Result<()> {
        self.waiting.push(event);
        if self.waiting.len() >= self.most { self.write_part() } else { Ok(()) }
    }

    fn write_part(&mut self) -> io::Result<()> {
        self.waiting.sort_unstable_by_key(|event| event.record);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert((self.scratch)()?),
        };
        for event in self.waiting.drain(..) {
            file.append(&event.to_bytes())?;
        }
        self.ends.push(file.len());
        Ok(())
    }

    /// Ends the first pass.
    pub fn finish(mut self) -> io::Result<Events> {
        if self.file.is_some() && (self.ends.is_empty() || !self.waiting.is_empty()) {
            self.write_part()?;
        }
        match self.file {
            Some(file) => Events::new(file, self.ends, 0),
            None => {
                self.waiting.sort_unstable_by_key(|event| event.record);
                Ok(Events::held(self.waiting))
            }
        }
    }
}

/// Events by their records, in ascending order.
pub(super) struct Events {
    /// None where all are held.
    pub file: Option<Scratch>,
    /// Where each part ends.
    pub ends: Vec<u64>,
    held: Vec<Event>,
    parts: Vec<Part>,
    /// The next record of each part.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// A part, as far as it is not read yet.
struct Part {
    /// What is read and comes next, the last one first.
    read: Vec<Event>,
    at: u64,
    end: u64,
}

/// Events of a part that are read at once.
const AT_ONCE: usize = 64;

impl Events {
    /// Those that are in memory, in the order of their records.
    fn held(held: Vec<Event>) -> Self {
        let next = BinaryHeap::from_iter(held.first().map(|event| Reverse((event.record, 0))));
        let parts = vec![Part { read: held.iter().rev().copied().collect(), at: 0, end: 0 }];
        Self { file: None, ends: Vec::new(), held, parts, next }
    }

    /// Those of records from one on.
    ///
    /// # Errors
    /// If the file can't be read, or does not consist of such parts.
    pub fn new(file: Scratch, ends: Vec<u64>, first: u64) -> io::Result<Self> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let bounds: Vec<_> = starts.zip(ends.iter().copied()).collect();
        let is_whole = |end: &u64| end.is_multiple_of(Event::BYTES as u64);
        if !ends.is_sorted() || ends.last() != Some(&file.len()) || !ends.iter().all(is_whole) {
            return Err(ErrorKind::InvalidData.into());
        }
        let (file, held) = (Some(file), Vec::new());
        let mut new = Self { file, ends, held, parts: Vec::new(), next: BinaryHeap::new() };
        for (part, (start, end)) in bounds.into_iter().enumerate() {
            let (mut low, mut high) = (0, end.saturating_sub(start) / Event::BYTES as u64);
            while low < high {
                let middle = low + (high - low) / 2;
                if new.at(start + middle * Event::BYTES as u64)?.record < first {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            new.parts.push(Part { read: Vec::new(), at: start + low * Event::BYTES as u64, end });
            new.load(part)?;
        }
        Ok(new)
    }

    /// The event at a place of the file.
    fn at(&self, at: u64) -> io::Result<Event> {
        let mut bytes = [0; Event::BYTES];
        if let Some(file) = &self.file {
            file.read_at(at, &mut bytes)?;
        }
        Event::from_bytes(&bytes).ok_or(ErrorKind::InvalidData.into())
    }

    /// Calls `each` for all of them, in no order.
    pub fn each(&self, mut each: impl FnMut(Event)) -> io::Result<()> {
        let Some(file) = &self.file else {
            self.held.iter().copied().for_each(each);
            return Ok(());
        };
        let mut bytes = vec![0; 1024 * Event::BYTES];
        let mut at = 0;
        while at < file.len() {
            let length = ((file.len() - at) as usize).min(bytes.len());
            file.read_at(at, &mut bytes[..length])?;
            for event in bytes[..length].as_chunks().0 {
                each(Event::from_bytes(event).ok_or(ErrorKind::InvalidData)?);
            }
            at += length as u64;
        }
        Ok(())
    }

    /// Makes the next event of a part known.
    fn load(&mut self, part: usize) -> io::Result<()> {
        let Part { read, at, end } = &mut self.parts[part];
        if let (true, true, Some(file)) = (read.is_empty(), at < end, &self.file) {
            let mut bytes = vec![0; ((*end - *at) as usize).min(AT_ONCE * Event::BYTES)];
            file.read_at(*at, &mut bytes)?;
            *at += bytes.len() as u64;
            for event in bytes.as_chunks().0.iter().rev() {
                read.push(Event::from_bytes(event).ok_or(ErrorKind::InvalidData)?);
            }
        }
        self.next.extend(read.last().map(|event| Reverse((event.record, part))));
        Ok(())
    }

    /// Whether all were asked for.
    pub fn is_at_end(&self) -> bool {
        self.next.is_empty()
    }

    /// The decision on a record, if it goes. Records are asked for in ascending order.
    pub fn of(&mut self, record: u64) -> io::Result<Option<Cause>> {
        let Some(&Reverse((next, part))) = self.next.peek().filter(|Reverse((next, _))| *next <= record) else {
            return Ok(None);
        };
        self.next.pop();
        let event = self.parts[part].read.pop().filter(|_| next == record).ok_or(ErrorKind::InvalidData)?;
        self.load(part)?;
        Ok(Some(event.cause))
    }
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    #[test]
    fn events_come_by_their_records_from_any_one_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(Seed::new(2));
        let mut order: Vec<u64> = (0..3000).filter(|record| record % 3 > 0).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let event = |record: u64| Event {
            record,
            cause: match record % 5 {
                0 => Cause::Screened { filter: 3, hits: record as u32 },
                1 => Cause::Near { of: 7, similarity: 0.9, library: Some(2), place: Place::default() },
                _ => {
                    Cause::Near { of: record as u32, similarity: 0.8, library: None, place: Place::from_bytes([9; 24]) }
                }
            },
        };
        let scratch = || Scratch::unnamed(folder.path());
        for (most, has_file) in [(1, true), (100, false), (5000, true), (5000, false)] {
            let mut log = EventLog::new(has_file.then(|| scratch().unwrap()), most, scratch);
            order.iter().for_each(|&record| log.push(event(record)).unwrap());
            let mut events = log.finish().unwrap();
            let is_held = events.file.is_none();
            assert_eq!(is_held, most == 5000 && !has_file);
            for first in if is_held { vec![0] } else { vec![0, 1, 1499, 2999, 3000] } {
                if let Some(file) = events.file.take() {
                    events = Events::new(file, events.ends, first).unwrap();
                }
                for record in first..3000 {
                    let expected = (record % 3 > 0).then(|| event(record).cause);
                    assert_eq!(events.of(record).unwrap(), expected, "{record} from {first} on, parts of {most}");
                }
                assert!(events.is_at_end());
                let mut all = 0;
                events.each(|one| all += u64::from(event(one.record) == one)).unwrap();
                assert_eq!(all, 2000);
            }
            let Some(file) = events.file else { continue };
            let mut ends = events.ends;
            let mut events = Events::new(file, ends.clone(), 0).unwrap();
            assert!(events.of(2).is_err(), "record 1 was not asked for");
            ends.pop();
            assert!(Events::new(events.file.unwrap(), ends, 0).is_err(), "a part is not told");
        }
    }

    #[test]
    fn bytes_that_say_nothing_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Scratch::unnamed(folder.path()).unwrap();
        let event = Event { record: 3, cause: Cause::Screened { filter: 0, hits: 1 } };
        let mut bytes = event.to_bytes();
        assert_eq!(Event::from_bytes(&bytes), Some(event));
        bytes[8] = 2;
        file.append(&bytes).unwrap();
        let length = file.len();
        assert!(Events::new(file, vec![length], 0).is_err());
    }
}
