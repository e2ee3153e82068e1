//! Cells of a row (RFC 4180): the separator and line ends are plain inside quotes, and a doubled quote is one.
//!
//! A quote opens a cell only as its first byte; elsewhere in an unquoted cell it is itself, as spreadsheets write it.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use crate::error::RecordFault;

/// A cell's content within its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub range: Range<usize>,
    /// Whether it holds doubled quotes.
    pub escaped: bool,
}

impl Cell {
    /// Returns the cell with its quotes, where it has them.
    pub fn raw<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        let Range { start, end } = self.range;
        // Before a cell without quotes stands a separator, or nothing.
        let quoted = start > 0 && row[start - 1] == b'"';
        if quoted { &row[start - 1..end + 1] } else { &row[start..end] }
    }
}

/// Returns the row without its line end.
pub(crate) fn strip_line_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// The cells of a row, in order; a fault ends them.
pub(crate) struct Cells<'a> {
    row: &'a [u8],
    delimiter: u8,
    at: Option<usize>,
}

impl<'a> Cells<'a> {
    pub fn new(row: &'a [u8], delimiter: u8) -> Self {
        Self { row: strip_line_end(row), delimiter, at: Some(0) }
    }

    fn lines(&self) -> usize {
        1 + memchr_iter(b'\n', self.row).count()
    }

    fn quoted(&mut self, start: usize) -> Result<Cell, RecordFault> {
        let mut escaped = false;
        let mut at = start;
        loop {
            at += memchr(b'"', &self.row[at..]).ok_or_else(|| RecordFault::UnclosedQuote { lines: self.lines() })? + 1;
            match self.row.get(at) {
                Some(b'"') => {
                    escaped = true;
                    at += 1;
                }
                Some(&byte) if byte == self.delimiter => {
                    self.at = Some(at + 1);
                    break;
                }
                None => break,
                Some(_) => return Err(RecordFault::AfterQuote { offset: at, lines: self.lines() }),
            }
        }
        Ok(Cell { range: start..at - 1, escaped })
    }
}

impl Iterator for Cells<'_> {
    type Item = Result<Cell, RecordFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at.take()?;
        if self.row.get(start) == Some(&b'"') {
            return Some(self.quoted(start + 1));
        }
        let end = match memchr(self.delimiter, &self.row[start..]) {
            Some(length) => {
                self.at = Some(start + length + 1);
                start + length
            }
            None => self.row.len(),
        };
        Some(Ok(Cell { range: start..end, escaped: false }))
    }
}

/// Returns all cells of a row, decoded.
pub(crate) fn row_cells(row: &[u8], delimiter: u8) -> Result<Vec<String>, RecordFault> {
    let text = std::str::from_utf8(row).map_err(|error| RecordFault::InvalidUtf8 { offset: error.valid_up_to() })?;
    Cells::new(row, delimiter)
        .map(|cell| {
            let cell = cell?;
            let content = &text[cell.range];
            Ok(if cell.escaped { content.replace("\"\"", "\"") } else { content.to_owned() })
        })
        .collect()
}
