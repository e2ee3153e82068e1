//! A batch: raw bytes of whole records, and where each record lies in them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Element, Position};
use crate::error::RecordFault;
use crate::extract::Fields;
use crate::format::Format;

/// What stands before a source's first record: a byte-order mark, a CSV header line, a NumPy header.
///
/// It belongs to the file and not to a record, so a writer puts the first source's preamble at the head of its output
/// and no other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Preamble {
    /// The bytes as they stand in the file.
    pub raw: Vec<u8>,
    /// The names of the columns, for formats that have them.
    pub columns: Vec<String>,
    /// One number, for arrays.
    pub(crate) element: Element,
    /// The bytes of one row, for arrays.
    pub(crate) row_bytes: usize,
    /// Whether records lie otherwise in the file than they are read.
    pub(crate) is_turned: bool,
    /// How many records the preamble announces, where it does.
    pub(crate) rows: Option<u64>,
}

/// Where one record lies in its batch's bytes, and its line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
    /// Relative to the batch's first line.
    pub line: u32,
}

/// Whole records, as bytes, from one source.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    pub(crate) start: Position,
    pub(crate) end: Position,
    pub(crate) name: Arc<str>,
    pub(crate) format: Option<Format>,
    pub(crate) preamble: Arc<Preamble>,
    /// Ids that do not lie in the bytes, one per record (Parquet); empty otherwise.
    pub(crate) ids: Vec<Option<String>>,
    /// Records known to be faulty when they were read (a null in Parquet), in order.
    pub(crate) faults: Vec<(usize, RecordFault)>,
    pub(crate) disk_bytes: u64,
    /// The same records as lines of JSON, for formats that are read and written so: made by whoever needs them first.
    pub(crate) lines: OnceLock<Box<Batch>>,
    /// What its one record is compared by in the place of its item, in hexadecimal digits.
    pub(crate) stand_in: Option<Box<str>>,
    #[cfg(feature = "pictures")]
    pub(crate) picture: Option<nearset_pictures::Picture>,
}

impl Batch {
    /// Returns an empty batch, to be filled by [`super::Reader::read_batch`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many records there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns all bytes, with what lies between the records (blank lines of JSONL and CSV).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns record `i` as it stands in the file, its line end included. For Parquet, the item's bytes.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn raw(&self, i: usize) -> &[u8] {
        &self.bytes[self.range(i)]
    }

    /// Returns where record `i` lies in [`Batch::bytes`].
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.spans[i].start..self.spans[i].end
    }

    /// Returns the line on which record `i` starts, from 1; the row where there are no lines.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn line(&self, i: usize) -> u64 {
        self.start.line + u64::from(self.spans[i].line)
    }

    /// Returns where the batch starts.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Returns where the batch ends: what [`super::Reader::open_at`] takes to go on behind it.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Returns record `i` alone, in a batch of its own.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn only(&self, i: usize) -> Batch {
        if let Some(lines) = self.lines.get() {
            return lines.only(i);
        }
        let raw = self.raw(i);
        Batch {
            bytes: raw.to_vec(),
            spans: vec![Span { start: 0, end: raw.len(), line: self.spans[i].line }],
            ids: self.ids.get(i).cloned().into_iter().collect(),
            faults: self
                .faults
                .iter()
                .filter(|(faulty, _)| *faulty == i)
                .map(|(_, fault)| (0, fault.clone()))
                .collect(),
            name: Arc::clone(&self.name),
            preamble: Arc::clone(&self.preamble),
            lines: OnceLock::new(),
            stand_in: self.stand_in.clone(),
            ..*self
        }
    }

    /// Returns a record that was read again, with all else as in this batch.
    pub fn with_record(&self, bytes: Vec<u8>, line: u64) -> Batch {
        Batch {
            spans: vec![Span { start: 0, end: bytes.len(), line: 0 }],
            bytes,
            start: Position { line, ..self.start },
            end: self.end,
            name: Arc::clone(&self.name),
            format: self.format,
            preamble: Arc::clone(&self.preamble),
            ..Batch::default()
        }
    }

    /// Returns the name of the source.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the format of the source.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(Format::Jsonl)
    }

    /// Returns what stands before the source's first record.
    pub fn preamble(&self) -> &Arc<Preamble> {
        &self.preamble
    }

    /// Returns the bytes read from disk so far, over all sources, for progress against [`super::Sources::total_bytes`].
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Returns the records in the form in which they are read: lines of JSON, for formats that have no fields of their own.
    pub(crate) fn readable(&self, fields: &Fields) -> &Batch {
        match self.format().layout().to_lines() {
            Some(to_lines) => self.lines.get_or_init(|| Box::new(to_lines(self, fields))),
            None => self,
        }
    }

    /// Returns the records in the form in which they are written: that in which they were read.
    pub(crate) fn written(&self) -> &Batch {
        self.lines.get().map_or(self, |lines| lines)
    }

    pub(crate) fn clear(&mut self) {
        self.lines.take();
        self.bytes.clear();
        self.spans.clear();
        self.ids.clear();
        self.faults.clear();
    }
}
