//! What sets a file format apart: where its records end, what is in them, and how they are written.
//!
//! A format is one implementation of [`Layout`] and one row of the table in `format`. Everything else asks it.

use crate::error::{InputError, RecordFault};
use crate::extract::{Decoder, Fields, ItemField, Place};
use crate::format::Format;
use crate::input::{Batch, Head, Preamble, ReadOptions, Source, Span};

/// An item and, where the record has one, its id.
pub(crate) type Extraction = Result<(Place, Option<Place>), RecordFault>;

/// What [`Layout::split`] took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Bytes of whole records and of what lies between them.
    pub bytes: usize,
    /// Lines in them; rows where there are no lines.
    pub lines: u32,
}

/// Where fields can be added to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adding {
    Nowhere,
    /// Before the closing brace of a JSON object.
    Object,
    /// As cells behind those of the header, with this byte between two.
    Cells(u8),
}

/// A file format.
pub(crate) trait Layout: Sync {
    /// Returns its name, as [`Format::from_str`] takes it.
    fn name(&self) -> &'static str;

    /// Returns the extensions of its files.
    fn extensions(&self) -> &'static [&'static str];

    /// Reads what stands before the first record.
    fn preamble(&self, head: &mut Head, _: &Source, _: &ReadOptions) -> Result<Preamble, InputError> {
        head.byte_order_mark()
    }

    /// Appends the spans of the whole records in `bytes`. It is a function of the bytes alone, so a record is the same wherever a
    /// read happened to stop. At the end of the source a last record without a line end is whole too.
    fn split(&self, preamble: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken;

    /// Returns whether records are UTF-8, given what their items are.
    fn is_text(&self, _: ItemField) -> bool {
        true
    }

    /// Returns what makes lines of JSON of a batch, for formats whose records are read and written so.
    fn to_lines(&self) -> Option<fn(&Batch, &Fields) -> Batch> {
        None
    }

    /// Returns whether the last record of a source may have taken others in, because what closes it is missing.
    fn swallows_rest(&self, _: &[u8]) -> bool {
        false
    }

    /// Returns the longest record that is read.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// Returns whether a file's first bytes are those of this format, given whether its name has an ending that is none of the format's; `None`
    /// where bytes tell nothing.
    fn is_told_by(&self, _: &[u8], _: bool) -> Option<bool> {
        None
    }

    /// Decodes the item and the id of record `i`.
    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction;

    /// Returns whether a record ends with a line end, which the last of a source may lack.
    fn is_lines(&self) -> bool {
        true
    }

    /// Returns whether a record is one line, and each line one record.
    fn is_one_line(&self) -> bool {
        false
    }

    /// Returns whether a record is a text and nothing else.
    fn is_plain_text(&self) -> bool {
        false
    }

    /// Returns whether a source is one record, which is then called by the source's name.
    fn is_whole_file(&self) -> bool {
        false
    }

    /// Returns whether records lie by columns, so that a file is read from its end and written by its own writer.
    fn is_columnar(&self) -> bool {
        false
    }

    /// Returns the format that records are written in, where it is not their own.
    fn written_as(&self) -> Option<Format> {
        None
    }

    /// Returns where fields can be added to a record.
    fn adding(&self) -> Adding {
        Adding::Nowhere
    }

    /// Returns whether records of sources with these preambles can go to one output.
    fn is_alike(&self, a: &Preamble, b: &Preamble) -> bool {
        a.columns == b.columns
    }

    /// Returns whether the number of records stands before them, so that an output needs a file that can be written over.
    fn counts_first(&self) -> bool {
        false
    }

    /// Returns the preamble of an output with this many records, of the same size as the one that was written.
    fn counted(&self, preamble: &Preamble, _: u64) -> Result<Vec<u8>, String> {
        Ok(preamble.raw.clone())
    }
}
