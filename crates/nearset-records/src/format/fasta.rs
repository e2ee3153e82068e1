//! Sequences of biology: FASTA and FASTQ.
//!
//! The id is the first word of the header, the text the sequence without its line breaks. Sequences may be broken over lines.
//! Invariant: what is no record is one record for the splitter, up to the next line that may start another, and a fault when it is
//! decoded; so one broken record does not cost those behind it.

use std::ops::Range;

use memchr::memchr;

use super::layout::{Extraction, Layout, Taken};
use crate::error::RecordFault;
use crate::extract::{Decoder, ItemField, strip_line_end};
use crate::input::{Preamble, Span};

/// `>name`, and the sequence below it.
pub(super) struct Fasta;

impl Layout for Fasta {
    fn name(&self) -> &'static str {
        "fasta"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["fa", "fasta", "fna", "faa", "ffn", "frn"]
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        split(bytes, at_end, spans, |rest| {
            // Everything up to the next header is one record, the blank lines before it included.
            let mut lines = Lines { bytes: rest, at: 0 };
            lines.next()?;
            let next = lines.find(|line| rest[line.start] == b'>');
            next.map(|line| line.start)
        })
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        let mut lines = Lines { bytes: record.as_bytes(), at: 0 };
        let header = lines.next().map_or(0..0, |line| content(record, line));
        if !record[header.clone()].starts_with('>') {
            return Err(bad("sequence without a name: a FASTA record starts with a line >NAME"));
        }
        // Old files have comments.
        let sequence = lines.map(|line| content(record, line)).filter(|line| !record[line.clone()].starts_with(';'));
        sequences(decoder, i, record, header, sequence.collect())
    }
}

/// `@name`, the sequence, `+`, and a letter of quality for each of the sequence.
pub(super) struct Fastq;

impl Layout for Fastq {
    fn name(&self) -> &'static str {
        "fastq"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["fq", "fastq"]
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        split(bytes, at_end, spans, |rest| match read(rest, false) {
            Read::Whole { end, .. } => Some(end),
            Read::Unfinished => None,
            Read::Broken(_) => {
                let mut lines = Lines { bytes: rest, at: 0 };
                lines.next()?;
                lines.find(|line| rest[line.start] == b'@').map(|line| line.start)
            }
        })
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        match read(record.as_bytes(), true) {
            Read::Whole { header, sequence, .. } => sequences(decoder, i, record, header, sequence),
            Read::Unfinished => Err(bad(
                "the record ends before its quality does: a FASTQ record has as many letters of quality as of sequence; is the file \
                 whole?",
            )),
            Read::Broken(cause) => Err(bad(cause)),
        }
    }
}

const NO_NAME: &str = "a FASTQ record starts with a line @NAME, and this one does not: check the records before it";

const NO_PLUS: &str =
    "a FASTQ record has a line + behind its sequence, and this one has none: is the file whole, and is it FASTQ?";

fn bad(why: &'static str) -> RecordFault {
    RecordFault::BadSequence { why }
}

/// What stands at the start of some bytes.
enum Read {
    Whole {
        header: Range<usize>,
        sequence: Vec<Range<usize>>,
        end: usize,
    },
    /// It may be whole when more is read.
    Unfinished,
    Broken(&'static str),
}

/// Reads a FASTQ record. A quality may start with any letter, so it is told by its length. Where the bytes end with the record, its last line
/// may lack its end.
fn read(bytes: &[u8], ends: bool) -> Read {
    let text = |line: Range<usize>| line.start..line.start + strip_line_end(&bytes[line]).len();
    let mut lines = Lines { bytes, at: 0 };
    let line = |lines: &mut Lines| if ends { lines.next() } else { lines.whole() }.map(text);
    let Some(header) = line(&mut lines) else { return Read::Unfinished };
    if bytes.get(header.start) != Some(&b'@') {
        return Read::Broken(NO_NAME);
    }
    let mut sequence = Vec::new();
    loop {
        let Some(line) = line(&mut lines) else {
            return if ends { Read::Broken(NO_PLUS) } else { Read::Unfinished };
        };
        match bytes[line.clone()].first() {
            Some(b'+') => break,
            Some(b'@') => {
                return Read::Broken(NO_PLUS);
            }
            _ => sequence.push(line),
        }
    }
    let wanted: usize = sequence.iter().map(Range::len).sum();
    let mut found = 0;
    loop {
        // The quality of an empty sequence is an empty line, which may be missing.
        if wanted == 0 && bytes.get(lines.at).map_or(ends, |&byte| byte == b'@') {
            break;
        }
        let Some(line) = line(&mut lines) else { return Read::Unfinished };
        found += line.len();
        if found >= wanted {
            break;
        }
    }
    if found > wanted {
        return Read::Broken(
            "its quality is not as long as its sequence: a FASTQ record has a letter of quality for each of its sequence; fetch the file \
             again, or leave the record out",
        );
    }
    Read::Whole { header, sequence, end: lines.at }
}

/// Appends a span for each record; `end` says where the one at the start of some bytes ends, if that is among them.
fn split(bytes: &[u8], at_end: bool, spans: &mut Vec<Span>, end: impl Fn(&[u8]) -> Option<usize>) -> Taken {
    let mut taken = Taken::default();
    while taken.bytes < bytes.len() {
        let rest = &bytes[taken.bytes..];
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let length = match end(&rest[blank..]) {
            _ if blank == rest.len() && !at_end => break,
            Some(length) => length,
            None if at_end => rest.len() - blank,
            None => break,
        };
        let count = |part: &[u8]| memchr::memchr_iter(b'\n', part).count() as u32;
        taken.lines += count(&rest[..blank]);
        let start = taken.bytes + blank;
        if length > 0 {
            spans.push(Span { start, end: start + length, line: taken.lines });
        }
        taken.lines += count(&rest[blank..blank + length]);
        taken.bytes = start + length;
    }
    taken
}

/// Lines with their ends.
struct Lines<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Lines<'_> {
    /// Returns the next line, if its end is there.
    fn whole(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.at += memchr(b'\n', self.bytes.get(start..)?)? + 1;
        Some(start..self.at)
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        self.at += memchr(b'\n', rest).map_or(rest.len(), |length| length + 1);
        Some(start..self.at)
    }
}

fn content(record: &str, line: Range<usize>) -> Range<usize> {
    line.start..line.start + strip_line_end(&record.as_bytes()[line]).len()
}

fn sequences(
    decoder: &mut Decoder<'_, '_>,
    i: usize,
    record: &str,
    header: Range<usize>,
    sequence: Vec<Range<usize>>,
) -> Extraction {
    let kind = decoder.fields().kind;
    if !matches!(kind, ItemField::Text | ItemField::Symbols) {
        let (field, wanted) = (decoder.fields().item.clone(), kind.wanted());
        return Err(RecordFault::WrongType { field, found: "a sequence", wanted });
    }
    // `>` or `@`, then the name.
    let name = &record[header.start + 1..header.end];
    let start = header.start + 1 + (name.len() - name.trim_start().len());
    let length = name.trim_start().find(char::is_whitespace).unwrap_or(name.trim_start().len());
    let id = (length > 0).then(|| decoder.text(i, record, std::slice::from_ref(&(start..start + length))));
    let item = match kind {
        ItemField::Symbols => decoder.symbols(&sequence.into_iter().map(|line| &record[line]).collect::<String>()),
        _ => decoder.text(i, record, &sequence),
    };
    Ok((item, id))
}
