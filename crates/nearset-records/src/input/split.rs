//! Where records end.
//!
//! Invariant: a splitter is a function of the bytes alone, so a record is the same wherever a read happened to stop.

use memchr::{memchr, memchr2};

use super::batch::Span;

/// How bytes are cut into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Splitter {
    /// At line feeds; blank lines are no records unless they are kept.
    Lines { keep_blank: bool },
    /// At line feeds outside of quotes (RFC 4180); blank lines are no records.
    Rows { delimiter: u8 },
    /// Nowhere: the whole source is one record.
    Whole,
    /// Every so many bytes.
    Fixed { bytes: usize },
    /// Each record after its own number of 4-byte elements.
    Fvecs,
}

/// What [`Splitter::split`] took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Bytes of whole records and blank lines.
    pub bytes: usize,
    /// Lines in them.
    pub lines: u32,
}

impl Splitter {
    /// Appends the spans of the whole records in `bytes`. At the end of the source a last record without a line end is
    /// whole too.
    pub fn split(self, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        match self {
            Splitter::Lines { keep_blank } => split_lines(bytes, at_end, keep_blank, spans),
            Splitter::Rows { delimiter } => split_rows(bytes, at_end, delimiter, spans),
            Splitter::Whole if at_end => {
                spans.push(Span { start: 0, end: bytes.len(), line: 0 });
                Taken { bytes: bytes.len(), lines: 0 }
            }
            Splitter::Whole => Taken::default(),
            Splitter::Fixed { bytes: width } => split_fixed(bytes, width, spans),
            Splitter::Fvecs => split_fvecs(bytes, spans),
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn split_lines(bytes: &[u8], at_end: bool, keep_blank: bool, spans: &mut Vec<Span>) -> Taken {
    let mut taken = Taken::default();
    let mut push = |start: usize, end: usize| {
        // Only short lines can be blank in practice; the first byte settles it for the others.
        if keep_blank || !is_blank(&bytes[start..end]) {
            spans.push(Span { start, end, line: taken.lines });
        }
        taken.lines += 1;
        taken.bytes = end;
    };
    let mut start = 0;
    for newline in memchr::memchr_iter(b'\n', bytes) {
        push(start, newline + 1);
        start = newline + 1;
    }
    if at_end && start < bytes.len() {
        push(start, bytes.len());
    }
    taken
}

fn split_rows(bytes: &[u8], at_end: bool, delimiter: u8, spans: &mut Vec<Span>) -> Taken {
    let mut taken = Taken::default();
    let mut start = 0;
    while start < bytes.len() {
        let Some(end) =
            row_end(&bytes[start..], delimiter).map(|length| start + length).or(at_end.then_some(bytes.len()))
        else {
            break;
        };
        if !is_blank_row(&bytes[start..end]) {
            spans.push(Span { start, end, line: taken.lines });
        }
        taken.lines += memchr::memchr_iter(b'\n', &bytes[start..end]).count() as u32;
        start = end;
    }
    taken.bytes = start;
    taken
}

/// A line of tabs is a row of empty cells, so only a line end makes a row blank.
fn is_blank_row(row: &[u8]) -> bool {
    matches!(row, b"\n" | b"\r\n" | b"\r")
}

/// The length of the first row with its line feed, or `None` if it does not end here.
pub(crate) fn row_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
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

fn split_fixed(bytes: &[u8], width: usize, spans: &mut Vec<Span>) -> Taken {
    let rows = bytes.len() / width;
    spans.extend((0..rows).map(|row| Span { start: row * width, end: (row + 1) * width, line: row as u32 }));
    Taken { bytes: rows * width, lines: rows as u32 }
}

fn split_fvecs(bytes: &[u8], spans: &mut Vec<Span>) -> Taken {
    let mut taken = Taken::default();
    while let Some((head, rest)) = bytes[taken.bytes..].split_first_chunk::<4>() {
        let width = 4 * u32::from_le_bytes(*head) as usize;
        if rest.len() < width {
            break;
        }
        spans.push(Span { start: taken.bytes, end: taken.bytes + 4 + width, line: taken.lines });
        taken.bytes += 4 + width;
        taken.lines += 1;
    }
    taken
}
