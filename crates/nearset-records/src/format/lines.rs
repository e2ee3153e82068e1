//! Documents by lines: a JSON object per line, a text per line, or a text per file.

use super::layout::{Adding, Extraction, Layout, Taken};
use crate::error::RecordFault;
use crate::extract::{Decoder, ItemField, Place, Raw, json, strip_line_end};
use crate::format::Format;
use crate::input::{Preamble, Span};

/// A JSON object per line. Blank lines are no records.
pub(super) struct Jsonl;

impl Layout for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn extensions(&self) -> &'static [&'static str] {
        // Large public corpora ship JSON Lines as `.json.gz`; a file that is one JSON document fails at its line 1.
        &["jsonl", "ndjson", "json-lines", "jsonlines", "json"]
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        split_lines(bytes, at_end, false, spans)
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        let fields = decoder.fields();
        let field = &fields.item;
        if fields.kind == ItemField::Vector && record.trim_start().starts_with('[') {
            let value = json::whole(record.as_bytes(), decoder.escapes())?;
            return Ok((decoder.numbers(&record[value.range])?, None));
        }
        let [item, id] = json::find(record.as_bytes(), [Some(field), fields.id.as_deref()], decoder.escapes())?;
        let Some(item) = item else {
            return self.joined(decoder, i, record);
        };
        let place = match (item.kind, fields.kind) {
            (json::Kind::String, ItemField::Text | ItemField::Hex | ItemField::Symbols) => {
                decoder.item(i, record, item.into())?
            }
            (json::Kind::String | json::Kind::Number, ItemField::Texts) => decoder.item(i, record, item.into())?,
            (json::Kind::Array | json::Kind::Object, ItemField::Texts) => decoder.texts(&record[item.range])?,
            (json::Kind::Array, ItemField::Vector) => decoder.numbers(&record[item.range])?,
            (found, kind) => {
                let (found, wanted) = (found.name(), kind.wanted());
                return Err(RecordFault::WrongType { field: field.clone(), found, wanted });
            }
        };
        Ok((place, id_of(decoder, i, record, id)?))
    }

    fn is_one_line(&self) -> bool {
        true
    }

    fn adding(&self) -> Adding {
        Adding::Object
    }
}

impl Jsonl {
    /// Joins the texts and numbers of several fields, one of which at least must be there.
    fn joined(&self, decoder: &mut Decoder<'_, '_>, i: usize, record: &str) -> Extraction {
        let fields = decoder.fields();
        if fields.cuts_joined() {
            return Err(RecordFault::CutJoined { fields: fields.item.clone() });
        }
        let (start, mut is_there) = (decoder.join_start(), false);
        for name in fields.joined() {
            let [found, _] = json::find(record.as_bytes(), [Some(name.trim()), None], decoder.escapes())?;
            match found.map(|value| (value.kind, value)) {
                None | Some((json::Kind::Null, _)) => continue,
                Some((json::Kind::String | json::Kind::Number, value)) => decoder.join(start, record, value.into())?,
                Some((found, _)) => {
                    let (field, found, wanted) = (name.to_owned(), found.name(), fields.kind.wanted());
                    return Err(RecordFault::WrongType { field, found, wanted });
                }
            }
            is_there = true;
        }
        if !is_there {
            return Err(RecordFault::MissingField { field: fields.item.clone(), found: json::keys(record) });
        }
        let text = decoder.joined(start);
        let [_, id] = json::find(record.as_bytes(), [None, fields.id.as_deref()], decoder.escapes())?;
        Ok((text, id_of(decoder, i, record, id)?))
    }
}

/// Decodes an id; one that is null or a structure names nothing.
fn id_of(
    decoder: &mut Decoder<'_, '_>,
    i: usize,
    record: &str,
    id: Option<json::Value>,
) -> Result<Option<Place>, RecordFault> {
    let is_name = |id: &json::Value| matches!(id.kind, json::Kind::String | json::Kind::Number);
    id.filter(is_name).map(|id| decoder.string(i, record, id.into())).transpose()
}

/// A document per line; an empty line is an empty document.
pub(super) struct Text;

impl Layout for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["txt", "text"]
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        split_lines(bytes, at_end, true, spans)
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        let range = 0..strip_line_end(record.as_bytes()).len();
        Ok((decoder.item(i, record, Raw::plain(range))?, None))
    }

    fn is_plain_text(&self) -> bool {
        true
    }

    fn is_one_line(&self) -> bool {
        true
    }
}

/// A document per file.
pub(super) struct TextFile;

impl Layout for TextFile {
    fn name(&self) -> &'static str {
        "text-file"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        if !at_end {
            return Taken::default();
        }
        spans.push(Span { start: 0, end: bytes.len(), line: 0 });
        Taken { bytes: bytes.len(), lines: 0 }
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        let record = decoder.record_text(i)?;
        Ok((decoder.item(i, record, Raw::plain(0..record.len()))?, None))
    }

    fn is_lines(&self) -> bool {
        false
    }

    fn is_whole_file(&self) -> bool {
        true
    }

    fn is_plain_text(&self) -> bool {
        true
    }

    /// Returns JSON Lines: documents of a file each have no place in one text file, so they come out as JSON objects.
    fn written_as(&self) -> Option<Format> {
        Some(Format::Jsonl)
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
