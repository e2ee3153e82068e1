//! Reading sources one after another, in batches of whole records.
//!
//! Claim: the preamble and the bytes of all batches of a source, put together, are the source's uncompressed bytes; and
//! an error comes only after every whole record before it was delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{Batch, Preamble, Span};
use super::decompress::Stream;
use super::parquet::ParquetRows;
use super::{Location, Source, expect_soon};
use crate::error::{InputError, RecordFault};
use crate::extract::Fields;
use crate::format::{Compression, Format, Layout};

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a Parquet file begins.
const PARQUET: &[u8] = b"PAR1";

/// A place between two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Which source, from 0.
    pub source: usize,
    /// How many records of the source lie before.
    pub record: u64,
    /// The line that comes next, from 1; the row where there are no lines. 0 stands for a source not yet opened.
    pub line: u64,
    /// How many uncompressed bytes of the source lie before, its preamble included; 0 for Parquet.
    pub offset: u64,
}

/// How to read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// What a record's item and id are called. Columns are looked up when a table is opened.
    pub fields: Fields,
    /// About how many bytes a batch has.
    pub batch_bytes: usize,
    /// The longest record that is read, against files that are not what they are taken for.
    pub max_record: usize,
}

impl ReadOptions {
    /// Batches of 1 MiB, records of at most 1 GiB.
    pub fn new(fields: Fields) -> Self {
        Self { fields, batch_bytes: 1 << 20, max_record: 1 << 30 }
    }
}

/// Reads sources in order.
pub struct Reader {
    sources: Arc<[Source]>,
    options: ReadOptions,
    next: Position,
    current: Option<Open>,
    pending: Option<InputError>,
    disk_bytes: Arc<AtomicU64>,
}

enum Open {
    Bytes(Box<ByteRecords>),
    Parquet(Box<ParquetRows>),
}

impl Reader {
    /// Reads from the start of the first source.
    pub fn new(sources: impl Into<Arc<[Source]>>, options: ReadOptions) -> Self {
        Self::open_at(sources, options, Position::default())
    }

    /// Continues where a batch ended ([`Batch::end`]), over the same sources.
    pub fn open_at(sources: impl Into<Arc<[Source]>>, options: ReadOptions, position: Position) -> Self {
        let sources = sources.into();
        let passed = sources.iter().take(position.source).filter_map(|source| source.bytes).sum();
        let disk_bytes = Arc::new(AtomicU64::new(passed));
        Self { sources, options, next: position, current: None, pending: None, disk_bytes }
    }

    /// Returns the sources.
    pub fn sources(&self) -> &Arc<[Source]> {
        &self.sources
    }

    /// Fills the batch with the next records, all from one source. `false` is the end. A batch may hold no record, only
    /// blank lines or a header.
    ///
    /// # Errors
    /// If the source cannot be opened, or not be read to its end. The next call continues with the next source.
    pub fn read_batch(&mut self, batch: &mut Batch) -> Result<bool, InputError> {
        batch.clear();
        // One long record must not hold its room for the rest of a run.
        if batch.bytes.capacity() / 8 > self.options.batch_bytes {
            batch.bytes = Vec::new();
        }
        loop {
            let Some(source) = self.sources.get(self.next.source) else {
                return Ok(false);
            };
            batch.name = Arc::clone(&source.name);
            batch.format = Some(source.format);
            if let Some(error) = self.pending.take() {
                self.leave_source();
                return Err(error);
            }
            if self.current.is_none() {
                expect_soon(self.sources.iter().skip(self.next.source + 1));
                match open(source, &self.options, self.next, &self.disk_bytes) {
                    Ok((opened, position)) => {
                        self.current = Some(opened);
                        self.next = position;
                    }
                    Err(error) => {
                        self.leave_source();
                        return Err(error);
                    }
                }
            }
            batch.start = self.next;
            let (delivered, end, error) = match self.current.as_mut() {
                Some(Open::Bytes(records)) => records.read(batch, &self.options, self.next),
                Some(Open::Parquet(rows)) => rows.read(batch, &self.options, self.next),
                None => (false, self.next, None),
            };
            // Records are named whether or not the source is whole behind them.
            let error = name_records(source, batch).or(error);
            self.next = end;
            batch.end = end;
            batch.disk_bytes = self.disk_bytes.load(Ordering::Relaxed);
            self.pending = error;
            if delivered {
                return Ok(true);
            }
            if self.pending.is_none() {
                let error = expect_all_named(source, self.next.record);
                self.leave_source();
                if let Some(error) = error {
                    return Err(error);
                }
            }
        }
    }

    fn leave_source(&mut self) {
        self.current = None;
        self.next = Position { source: self.next.source + 1, ..Position::default() };
        let passed = self.sources.iter().take(self.next.source).filter_map(|source| source.bytes).sum();
        self.disk_bytes.store(passed, Ordering::Relaxed);
    }
}

/// Gives the records of a batch their ids, where those stand in a file of their own.
fn name_records(source: &Source, batch: &mut Batch) -> Option<InputError> {
    let ids = &source.ids.as_ref()?.ids;
    let start = usize::try_from(batch.start.record).unwrap_or(usize::MAX);
    let own = ids.get(start..).unwrap_or_default();
    batch.ids = own.iter().take(batch.len()).map(|id| Some(id.to_string())).collect();
    let (name, ids) = (Arc::clone(&source.name), ids.len() as u64);
    let records = match batch.preamble.rows {
        Some(rows) if rows != ids => rows,
        _ if batch.ids.len() < batch.len() => batch.start.record + batch.len() as u64,
        _ => return None,
    };
    // Whose they are nobody knows.
    batch.clear();
    Some(InputError::WrongIds { name, records, ids })
}

/// Checks that no id is left over at the end of a source with so many records: an id too many may shift all behind it.
fn expect_all_named(source: &Source, records: u64) -> Option<InputError> {
    let ids = source.ids.as_ref().map(|file| file.ids.len() as u64).filter(|&ids| ids != records)?;
    Some(InputError::WrongIds { name: Arc::clone(&source.name), records, ids })
}

fn open(
    source: &Source,
    options: &ReadOptions,
    position: Position,
    disk_bytes: &Arc<AtomicU64>,
) -> Result<(Open, Position), InputError> {
    if source.format.is_columnar() {
        let rows = ParquetRows::open(source, options, position)?;
        let position = Position { line: position.record + 1, ..position };
        return Ok((Open::Parquet(Box::new(rows)), position));
    }
    let records = ByteRecords::open(source, options, position, disk_bytes)?;
    let position = if position.line == 0 { records.first } else { position };
    Ok((Open::Bytes(Box::new(records)), Position { source: position.source, ..position }))
}

/// Records that are ranges of a byte stream.
struct ByteRecords {
    stream: Stream,
    layout: &'static dyn Layout,
    preamble: Arc<Preamble>,
    /// The start of a record whose end has not been read yet.
    carry: Vec<u8>,
    at_end: bool,
    finished: bool,
    first: Position,
}

impl ByteRecords {
    fn open(
        source: &Source,
        options: &ReadOptions,
        position: Position,
        disk_bytes: &Arc<AtomicU64>,
    ) -> Result<Self, InputError> {
        let disk_before = disk_bytes.load(Ordering::Relaxed);
        let mut head = Head { stream: Stream::open(source, 0, disk_bytes)?, bytes: Vec::new(), at_end: false };
        let layout = source.format.layout();
        if source.bytes.is_none() && source.format == Format::Jsonl {
            head.fill_to(PARQUET.len())?;
            if head.bytes.starts_with(PARQUET) {
                return Err(InputError::ParquetNeedsFile { name: Arc::clone(&source.name) });
            }
        }
        let preamble = layout.preamble(&mut head, source, options)?;
        let offset = preamble.raw.len() as u64;
        let lines = memchr::memchr_iter(b'\n', &preamble.raw).count() as u64;
        let line = if layout.is_lines() { 1 + lines } else { 1 };
        let Head { mut stream, bytes: mut carry, mut at_end } = head;
        carry.drain(..preamble.raw.len());
        if position.offset > offset {
            let is_plain = source.compression == Compression::None && !preamble.is_turned;
            if !matches!(source.location, Location::Stdin) && is_plain {
                disk_bytes.store(disk_before, Ordering::Relaxed);
                stream = Stream::open(source, position.offset, disk_bytes)?;
                carry.clear();
                at_end = false;
            } else {
                let held = carry.len().min((position.offset - offset) as usize);
                carry.drain(..held);
                stream.skip(position.offset - offset - held as u64)?;
            }
        }
        Ok(Self {
            stream,
            layout,
            preamble: Arc::new(preamble),
            carry,
            at_end,
            // A file that is one record has no other behind it, not even an empty one.
            finished: layout.is_whole_file() && position.record > 0,
            first: Position { source: position.source, record: 0, line, offset },
        })
    }

    /// Returns whether something was delivered, where it ends, and the error that comes after it.
    fn read(
        &mut self,
        batch: &mut Batch,
        options: &ReadOptions,
        start: Position,
    ) -> (bool, Position, Option<InputError>) {
        if self.finished {
            return (false, start, None);
        }
        batch.preamble = Arc::clone(&self.preamble);
        batch.bytes.append(&mut self.carry);
        let mut target = options.batch_bytes.max(1);
        let mut error = None;
        let taken = loop {
            if !self.at_end && batch.bytes.len() < target {
                let wanted = target - batch.bytes.len();
                match self.stream.fill(&mut batch.bytes, wanted) {
                    Ok(read) => self.at_end = read < wanted,
                    Err(stop) => error = Some(stop),
                }
            }
            let taken =
                self.layout.split(&self.preamble, &batch.bytes, self.at_end && error.is_none(), &mut batch.spans);
            if taken.bytes > 0 || self.at_end || error.is_some() {
                break taken;
            }
            let limit = options.max_record.min(self.layout.longest());
            if batch.bytes.len() >= limit && self.layout.to_lines().is_some() {
                // A file that is a record can be named, and kept, without what is in it.
                batch.bytes = Vec::new();
                batch.spans.push(Span { start: 0, end: 0, line: 0 });
                batch.faults.push((0, RecordFault::FileTooLarge { limit }));
                self.finished = true;
                return (true, Position { record: start.record + 1, ..start }, None);
            }
            if batch.bytes.len() >= limit {
                let (name, line) = (Arc::clone(&batch.name), start.line);
                error = Some(InputError::RecordTooLong { name, line, limit });
                break taken;
            }
            // Doubling keeps the repeated look at a long record's bytes linear in its length.
            target = batch.bytes.len().max(target).saturating_mul(2);
        };
        self.carry.extend_from_slice(&batch.bytes[taken.bytes..]);
        batch.bytes.truncate(taken.bytes);
        let end = Position {
            source: start.source,
            record: start.record + batch.spans.len() as u64,
            line: start.line + u64::from(taken.lines),
            offset: start.offset + taken.bytes as u64,
        };
        if error.is_some() {
            self.finished = true;
        } else if self.at_end {
            self.finished = true;
            error = self.check_end(&batch.name, end).or_else(|| self.check_last(batch, start.line));
        }
        // A header is delivered though no record follows, so that an output can have it.
        let is_header = start == self.first && !self.preamble.raw.is_empty();
        (taken.bytes > 0 || !batch.spans.is_empty() || is_header, end, error)
    }

    /// The last record must not hold what may be others. It is delivered, to be named as faulty or kept as it is.
    fn check_last(&self, batch: &Batch, first_line: u64) -> Option<InputError> {
        let span = batch.spans.last().filter(|span| self.layout.swallows_rest(&batch.bytes[span.start..span.end]))?;
        let line = first_line + u64::from(span.line);
        Some(InputError::Swallowed { name: Arc::clone(&batch.name), line })
    }

    /// Arrays must end with a row, and with the row that their header promises.
    fn check_end(&self, name: &Arc<str>, end: Position) -> Option<InputError> {
        let name = Arc::clone(name);
        if !self.carry.is_empty() {
            let why =
                format!("{} bytes after row {} are no whole vector: the file is cut off", self.carry.len(), end.record);
            return Some(InputError::BadArray { name, why });
        }
        let rows = self.preamble.rows.filter(|&rows| rows != end.record)?;
        let why = format!("its header promises {rows} rows but {} are there: the file is cut off", end.record);
        Some(InputError::BadArray { name, why })
    }
}

/// The start of a stream, while the preamble is looked for.
pub(crate) struct Head {
    stream: Stream,
    pub bytes: Vec<u8>,
    pub at_end: bool,
}

impl Head {
    /// Reads until there are `wanted` bytes, or all.
    pub fn fill_to(&mut self, wanted: usize) -> Result<(), InputError> {
        if !self.at_end && self.bytes.len() < wanted {
            let missing = wanted - self.bytes.len();
            self.at_end = self.stream.fill(&mut self.bytes, missing)? < missing;
        }
        Ok(())
    }

    /// Returns a preamble that is a byte-order mark, or nothing.
    pub fn byte_order_mark(&mut self) -> Result<Preamble, InputError> {
        self.fill_to(BYTE_ORDER_MARK.len())?;
        let raw = self.bytes.strip_prefix(BYTE_ORDER_MARK).map_or(&[][..], |_| BYTE_ORDER_MARK).to_vec();
        Ok(Preamble { raw, ..Preamble::default() })
    }
}
