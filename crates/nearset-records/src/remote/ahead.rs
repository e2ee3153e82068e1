//! Reading an object at any place, with ranges fetched ahead of the reader.
//!
//! Invariant: a reader that only looks at the start costs one small request. One that goes on finds up to [`MOST_AHEAD`] ranges under
//! way, of up to [`LARGEST`] bytes, so a reader holds 40 MiB at most.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::fetch::{Answer, Patience, Pending, expect_same, fetch, get};
use super::url::Url;
use super::{Object, RemoteError, blocks};

/// Bytes of a range: the second one's, and the largest's.
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 4 << 20;

/// Ranges that are under way for one who reads on and on.
const MOST_AHEAD: usize = 8;

/// The same for each column of a Parquet file.
const MOST_AHEAD_PER_COLUMN: usize = 4;

/// Columns of a Parquet file that are read at the same time; those that are left aside are opened anew.
const MOST_COLUMNS: usize = 2;

/// Consecutive ranges of an object.
struct Ahead {
    object: Arc<Object>,
    size: u64,
    /// One that was read, so that a reader may go back a little, and those that come behind it.
    ranges: VecDeque<Fetched>,
    /// Where the next one begins, and how long it is.
    next: u64,
    length: u64,
    /// How many may be under way.
    ahead: usize,
    most_ahead: usize,
    is_dropped: Arc<AtomicBool>,
}

struct Fetched {
    start: u64,
    end: u64,
    bytes: Bytes,
    pending: Option<Pending>,
}

impl Ahead {
    fn new(object: Arc<Object>, size: u64, offset: u64, most_ahead: usize) -> Self {
        let is_dropped = Arc::default();
        Self { object, size, ranges: VecDeque::new(), next: offset, length: 0, ahead: 0, most_ahead, is_dropped }
    }

    /// Whether an offset is in what was fetched, or next to it.
    fn covers(&self, offset: u64) -> bool {
        self.ranges.front().map_or(self.next, |first| first.start) <= offset && offset <= self.next
    }

    /// Returns bytes from an offset that is covered, as many as are there at once; none at the end.
    fn at(&mut self, offset: u64) -> Result<Bytes, RemoteError> {
        if offset >= self.size {
            return Ok(Bytes::new());
        }
        while self.ranges.get(1).is_some_and(|second| second.end <= offset) {
            self.ranges.pop_front();
        }
        if offset >= self.next {
            self.fetch_next()?;
        }
        let missing = || RemoteError::Connection { why: format!("the bytes from {offset} on did not come") };
        let current = self.ranges.iter().position(|range| offset < range.end).ok_or_else(missing)?;
        while self.ranges.len() - 1 - current < self.ahead && self.next < self.size {
            self.fetch_next()?;
        }
        let range = &mut self.ranges[current];
        if let Some(pending) = range.pending.take() {
            match pending.wait() {
                Ok(bytes) => range.bytes = bytes,
                Err(error) => {
                    // Whoever asks again gets it fetched again.
                    self.next = range.start;
                    self.ranges.truncate(current);
                    return Err(error);
                }
            }
            self.ahead = (2 * self.ahead).clamp(1, self.most_ahead);
        }
        let range = &self.ranges[current];
        match usize::try_from(offset.saturating_sub(range.start)) {
            Ok(from) if from < range.bytes.len() => Ok(range.bytes.slice(from..)),
            _ => Err(missing()),
        }
    }

    fn fetch_next(&mut self) -> Result<(), RemoteError> {
        let first = self.length == 0;
        let (start, end) = if first {
            let block = blocks::range(self.next, self.size);
            (block.start, block.end)
        } else {
            (self.next, (self.next + self.length).min(self.size))
        };
        let (bytes, pending) = if first {
            (blocks::block(&self.object, start..end)?, None)
        } else {
            match Pending::start(&self.object, start..end, &self.is_dropped) {
                Ok(pending) => (Bytes::new(), Some(pending)),
                // A machine that has no thread left may still fetch.
                Err(_) => (fetch(&self.object, start..end, &self.is_dropped)?, None),
            }
        };
        self.length = if first { SMALLEST } else { (2 * self.length).min(LARGEST) };
        self.next = end;
        self.ranges.push_back(Fetched { start, end, bytes, pending });
        Ok(())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Reads an object from a place to its end.
pub(crate) struct RemoteReader(Way);

enum Way {
    Ranges { ahead: Ahead, at: u64 },
    Whole(Whole),
}

impl RemoteReader {
    pub fn open(object: &Object, offset: u64) -> Result<Self, RemoteError> {
        Ok(Self(match object.size.filter(|_| object.is_ranged) {
            Some(size) => {
                Way::Ranges { ahead: Ahead::new(Arc::new(object.clone()), size, offset, MOST_AHEAD), at: offset }
            }
            None => {
                let mut whole = Whole {
                    object: object.clone(),
                    answer: None,
                    rest: Bytes::new(),
                    at: 0,
                    patience: Patience::default(),
                };
                whole.skip(offset)?;
                Way::Whole(whole)
            }
        }))
    }

    /// Returns the next bytes, at most so many; none at the end.
    pub fn next_bytes(&mut self, most: usize) -> io::Result<Bytes> {
        match &mut self.0 {
            Way::Ranges { ahead, at } => {
                let mut bytes = ahead.at(*at)?;
                bytes.truncate(most);
                *at += bytes.len() as u64;
                Ok(bytes)
            }
            Way::Whole(whole) => Ok(whole.next_bytes(most)?),
        }
    }
}

impl Read for RemoteReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.next_bytes(buffer.len())?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// An object of a server that sends no parts: what breaks off is read again from its start.
struct Whole {
    object: Object,
    answer: Option<Answer>,
    rest: Bytes,
    /// Bytes that were given out.
    at: u64,
    patience: Patience,
}

impl Whole {
    fn next_bytes(&mut self, most: usize) -> Result<Bytes, RemoteError> {
        while self.rest.is_empty() {
            match self.next_piece() {
                Ok(Some(piece)) => {
                    self.patience.renew();
                    self.rest = piece;
                }
                Ok(None) => return Ok(Bytes::new()),
                Err(error) => {
                    self.answer = None;
                    self.patience.wait(error)?;
                }
            }
        }
        let given = self.rest.split_to(self.rest.len().min(most));
        self.at += given.len() as u64;
        Ok(given)
    }

    /// The piece behind what was given out.
    fn next_piece(&mut self) -> Result<Option<Bytes>, RemoteError> {
        let mut skipped = 0;
        let is_new = self.answer.is_none();
        if is_new {
            if self.at > 0 && !self.object.tag.is_some() {
                let why = "the connection was cut, and the server states neither an ETag nor a time of change, so nothing tells whether the \
                           rest is of the same version: fetch the file first";
                return Err(RemoteError::Unsupported { why: why.to_owned() });
            }
            let Some(url) = Url::parse(&self.object.url) else { return Err(RemoteError::NotBuilt) };
            let answer = get(&url, None)?;
            expect_same(&self.object, &answer)?;
            self.answer = Some(answer);
        }
        let Some(answer) = &mut self.answer else { return Ok(None) };
        loop {
            let before = if is_new { skipped } else { self.at };
            match answer.pieces.next()? {
                // Some of it was given out before the connection was cut.
                Some(piece) if is_new && before + (piece.len() as u64) <= self.at => skipped += piece.len() as u64,
                Some(piece) if is_new => return Ok(Some(piece.slice((self.at - before) as usize..))),
                Some(piece) => return Ok(Some(piece)),
                None if before < self.object.size.unwrap_or(self.at) => {
                    return Err(RemoteError::Connection { why: "the answer is cut off".to_owned() });
                }
                None => return Ok(None),
            }
        }
    }

    fn skip(&mut self, offset: u64) -> Result<(), RemoteError> {
        while self.at < offset {
            let most = usize::try_from(offset - self.at).unwrap_or(usize::MAX);
            if self.next_bytes(most)?.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// An object that is read at any place.
pub(crate) struct RemoteFile {
    object: Arc<Object>,
    size: u64,
    /// The last one used comes last.
    columns: Mutex<Vec<Ahead>>,
}

impl RemoteFile {
    pub fn open(object: &Object) -> Result<Self, RemoteError> {
        let Some(size) = object.size.filter(|_| object.is_ranged) else {
            let why = match object.tag.is_some() {
                true => "the server sends no parts of files, and Parquet is read from its end: fetch the file first",
                false => {
                    "the server states neither an ETag nor a time of change, so parts of several versions could be mixed, and Parquet is read \
                     from its end: fetch the file first"
                }
            };
            return Err(RemoteError::Unsupported { why: why.to_owned() });
        };
        Ok(Self { object: Arc::new(object.clone()), size, columns: Mutex::default() })
    }

    pub fn len(&self) -> u64 {
        self.size
    }

    /// Returns the bytes from an offset on, fewer only at the end.
    pub fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        // Who asks for more than there is may have it from a damaged file.
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = length.min(left);
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut column = match columns.iter().position(|column| column.covers(offset)) {
            Some(found) => columns.remove(found),
            None => {
                if columns.len() >= MOST_COLUMNS {
                    columns.remove(0);
                }
                Ahead::new(Arc::clone(&self.object), self.size, offset, MOST_AHEAD_PER_COLUMN)
            }
        };
        let mut first = column.at(offset)?;
        first.truncate(length);
        if first.len() < length {
            let mut all = Vec::with_capacity(length);
            all.extend_from_slice(&first);
            while all.len() < length {
                let mut more = column.at(offset + all.len() as u64)?;
                if more.is_empty() {
                    break;
                }
                more.truncate(length - all.len());
                all.extend_from_slice(&more);
            }
            first = all.into();
        }
        columns.push(column);
        Ok(first)
    }
}
