//! Rows of cells under a header line, quoted as in RFC 4180.

use std::sync::Arc;

use memchr::{memchr, memchr2};

use super::layout::{Adding, Extraction, Layout, Taken};
use crate::error::{InputError, RecordFault};
use crate::extract::{Cell, Cells, Decoder, Raw, column, row_cells};
use crate::input::{Head, Preamble, ReadOptions, Source, Span};

/// Rows with this byte between two cells.
pub(super) struct Table {
    pub name: &'static str,
    pub extensions: &'static [&'static str],
    pub delimiter: u8,
}

impl Layout for Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    /// Reads the header line; the item's column must be among its names.
    fn preamble(&self, head: &mut Head, source: &Source, options: &ReadOptions) -> Result<Preamble, InputError> {
        let mut preamble = head.byte_order_mark()?;
        let name = || Arc::clone(&source.name);
        let start = preamble.raw.len();
        let mut wanted = 4096;
        let end = loop {
            head.fill_to(wanted)?;
            if let Some(length) = row_end(&head.bytes[start..], self.delimiter) {
                break start + length;
            }
            if head.at_end {
                break head.bytes.len();
            }
            if wanted > options.max_record {
                return Err(InputError::RecordTooLong { name: name(), line: 1, limit: options.max_record });
            }
            wanted *= 2;
        };
        let header = &head.bytes[start..end];
        // An empty file is an empty table, whatever its columns would be called.
        if header.is_empty() {
            return Ok(preamble);
        }
        preamble.raw.extend_from_slice(header);
        preamble.columns =
            row_cells(header, self.delimiter).map_err(|cause| InputError::BadHeader { name: name(), cause })?;
        let item = &options.fields.item;
        if preamble.columns.contains(item) {
            return Ok(preamble);
        }
        if options.fields.cuts_joined() {
            return Err(InputError::CutJoined { name: name(), fields: item.clone() });
        }
        let mut joined = options.fields.joined().peekable();
        let missing = match joined.peek() {
            None => Some(item.as_str()),
            Some(_) => joined.find(|name| column(&preamble.columns, name).is_none()),
        };
        match missing {
            None => Ok(preamble),
            Some(missing) => {
                let found = std::mem::take(&mut preamble.columns);
                Err(InputError::MissingColumn { name: name(), column: missing.to_owned(), found })
            }
        }
    }

    /// Splits at line feeds outside of quotes; blank lines are no records.
    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        let mut taken = Taken::default();
        let mut start = 0;
        while start < bytes.len() {
            let end = row_end(&bytes[start..], self.delimiter).map(|length| start + length);
            let Some(end) = end.or(at_end.then_some(bytes.len())) else { break };
            if !is_blank_row(&bytes[start..end]) {
                spans.push(Span { start, end, line: taken.lines });
            }
            taken.lines += memchr::memchr_iter(b'\n', &bytes[start..end]).count() as u32;
            start = end;
        }
        taken.bytes = start;
        taken
    }

    fn swallows_rest(&self, record: &[u8]) -> bool {
        Cells::new(record, self.delimiter).any(|cell| matches!(cell, Err(RecordFault::UnclosedQuote { lines: 2.. })))
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        let (item_columns, id_column) = decoder.columns();
        let last = item_columns.iter().copied().max();
        let item_column = if let [column] = item_columns { Some(*column) } else { None };
        // Several are joined in the order in which they were named.
        let mut joined = if item_column.is_some() { Vec::new() } else { vec![None; item_columns.len()] };
        let (mut item, mut id, mut cells) = (None, None, 0);
        for cell in Cells::new(record.as_bytes(), self.delimiter) {
            let cell = cell?;
            for (joined, _) in joined.iter_mut().zip(item_columns).filter(|(_, column)| **column == cells) {
                *joined = Some(cell.clone());
            }
            if Some(cells) == item_column {
                item = Some(cell.clone());
            }
            if Some(cells) == id_column {
                id = Some(cell);
            }
            cells += 1;
        }
        // An unquoted separator splits a text, and what is behind it would not be compared.
        let columns = decoder.preamble().columns.len();
        if cells > columns {
            return Err(RecordFault::ExtraCells { found: cells, columns });
        }
        let raw = |cell: Cell| if cell.escaped { Raw::doubled_quotes(cell.range) } else { Raw::plain(cell.range) };
        let joined: Option<Vec<Cell>> = joined.into_iter().collect();
        let item = match (item, joined) {
            (Some(item), _) => decoder.item(i, record, raw(item))?,
            (None, Some(joined)) if !joined.is_empty() => {
                let start = decoder.join_start();
                for cell in joined {
                    decoder.join(start, record, raw(cell))?;
                }
                decoder.joined(start)
            }
            _ => {
                let (column, wanted) = (decoder.fields().item.clone(), last.map_or(0, |column| column + 1));
                return Err(RecordFault::MissingCell { column, wanted, found: cells });
            }
        };
        let id = id.filter(|id| !id.range.is_empty()).map(|id| decoder.string(i, record, raw(id))).transpose()?;
        Ok((item, id))
    }

    fn adding(&self) -> Adding {
        Adding::Cells(self.delimiter)
    }
}

/// Returns whether a row is blank, which only a lone line end is: a line of tabs is a row of empty cells.
fn is_blank_row(row: &[u8]) -> bool {
    matches!(row, b"\n" | b"\r\n" | b"\r")
}

/// Returns the length of the first row with its line feed, or `None` if it does not end here.
fn row_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        // Here a cell starts, and only here a quote opens one.
        if bytes.get(at) == Some(&b'"') {
            at += 1;
            loop {
                at += memchr(b'"', &bytes[at..])? + 1;
                if bytes.get(at) == Some(&b'"') {
                    at += 1;
                } else {
                    break;
                }
            }
        }
        at += memchr2(delimiter, b'\n', &bytes[at..])? + 1;
        if bytes[at - 1] == b'\n' {
            return Some(at);
        }
    }
}
