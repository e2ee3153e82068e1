//! Items and ids out of a batch's raw bytes: the work of a decoder thread.
//!
//! Claim: a text that needs no unescaping is borrowed from the batch; everything else lies in one [`Arena`] that a decoder
//! keeps from batch to batch. A faulty record is one error and does not affect its neighbours.

mod csv;
pub(crate) mod json;

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use nearset::family::Form;
use nearset::item::ItemBuffer;
use nearset::{Item, ItemError};

use crate::error::{RecordError, RecordFault};
use crate::input::{Batch, Preamble};

pub(crate) use csv::{Cell, Cells, row_cells, strip_line_end};

/// What the item's field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemField {
    /// A text.
    Text,
    /// A text, a number, or texts and numbers in lists and objects of JSON or a list in Parquet: all of them, one per line.
    Texts,
    /// A bit string in hexadecimal digits, with or without `0x` before them, or in Base64.
    Hex,
    /// A string, each character of which is a symbol.
    Symbols,
    /// Numbers: an array in JSON, a list in Parquet, numbers between commas or spaces in other texts.
    Vector,
}

/// Returns what a record's field must hold for items of this form; `None` where files have none for it.
pub fn item_field(form: Form) -> Option<ItemField> {
    match form {
        Form::Bits(_) => Some(ItemField::Hex),
        Form::Set(_) | Form::Weighted(_) => Some(ItemField::Text),
        Form::Vector(_) => Some(ItemField::Vector),
        Form::Symbols(_) => Some(ItemField::Symbols),
        _ => None,
    }
}

impl ItemField {
    /// Returns what items of this kind are called.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            ItemField::Text | ItemField::Texts => "texts",
            ItemField::Hex => "hashes in hexadecimal digits",
            ItemField::Symbols => "strings of symbols",
            ItemField::Vector => "vectors",
        }
    }

    pub(crate) fn wanted(self) -> &'static str {
        match self {
            ItemField::Text | ItemField::Symbols => "a string",
            ItemField::Texts => "a string, or strings in an array",
            ItemField::Hex => "a string of hexadecimal digits",
            ItemField::Vector => "an array of numbers",
        }
    }
}

/// What a record's item and id are called. Lines of plain text and rows of arrays have no names and ignore them.
///
/// In JSON and Parquet `meta.text` also means the field `text` of `meta`. In JSON, tables and Parquet `name,street` also means the texts of both fields, joined
/// by a space; what is empty is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fields {
    /// The field or column of the item.
    pub item: String,
    /// The field or column of the id; where a record has none, its id is `file:line`.
    pub id: Option<String>,
    /// What the item is.
    pub kind: ItemField,
    /// Whether the text is cut and put back, so that it is one field.
    pub is_cut: bool,
}

impl Fields {
    /// Names the item's field and its kind; the id is called `id`.
    pub fn new(item: impl Into<String>, kind: ItemField) -> Self {
        Self { item: item.into(), id: Some("id".to_owned()), kind, is_cut: false }
    }

    /// Returns the names of the fields that are joined, where no single field has the item's name; none if that names one field.
    pub(crate) fn joined(&self) -> impl Iterator<Item = &str> {
        let is_joined = self.kind == ItemField::Text && self.item.contains(',');
        self.item.split(',').filter(move |_| is_joined)
    }

    /// Returns whether there is no place for what is left of a text, where no field has the item's name: it is joined from several.
    pub(crate) fn cuts_joined(&self) -> bool {
        self.is_cut && self.joined().next().is_some()
    }

    /// Returns the same with another id field.
    pub fn with_id(mut self, id: Option<String>) -> Self {
        self.id = id;
        self
    }
}

/// Where a decoded value lies.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// Text in the batch.
    Batch(Range<usize>),
    /// Text in the arena.
    Arena(Range<usize>),
    /// An item that is no text, by its number in the arena.
    Item(usize),
}

/// What one decoder decodes into; its allocations are kept from batch to batch.
#[derive(Debug, Default)]
pub struct Arena {
    /// Decoded texts: bytes, so that they are checked to be UTF-8 once per batch rather than piece by piece.
    text: Vec<u8>,
    /// Items that are no texts.
    others: ItemBuffer,
    items: Vec<Result<Place, Box<RecordError>>>,
    ids: Vec<Option<Place>>,
    /// Where the backslashes of one JSON line are.
    escapes: Vec<usize>,
}

impl Arena {
    /// Returns an empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.others.clear();
        self.items.clear();
        self.ids.clear();
    }
}

/// The items of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Extracted<'a> {
    batch: &'a Batch,
    /// The batch's bytes, if all of them are valid UTF-8; otherwise no place refers to them.
    text: &'a str,
    /// The arena's texts.
    decoded: &'a str,
    arena: &'a Arena,
}

impl<'a> Extracted<'a> {
    /// Returns where the records lie.
    pub fn batch(&self) -> &'a Batch {
        self.batch
    }

    /// Returns how many records there are.
    pub fn len(&self) -> usize {
        self.arena.items.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.arena.items.is_empty()
    }

    /// Returns the item of record `i`.
    ///
    /// # Errors
    /// If the record is faulty.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn item(&self, i: usize) -> Result<Item<'a>, &'a RecordError> {
        match &self.arena.items[i] {
            Ok(Place::Batch(range)) => Ok(Item::Text(&self.text[range.clone()])),
            Ok(Place::Arena(range)) => Ok(Item::Text(&self.decoded[range.clone()])),
            Ok(Place::Item(number)) => Ok(self.arena.others.get(*number).expect("an item that was decoded")),
            Err(error) => Err(error),
        }
    }

    /// Returns what is known of the picture, where the batch is one that could be read.
    #[cfg(feature = "pictures")]
    pub fn picture(&self) -> Option<&'a nearset_pictures::Picture> {
        self.batch.picture.as_ref()
    }

    /// Returns a fault of record `i`, with its place.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn error(&self, i: usize, fault: RecordFault) -> RecordError {
        RecordError { name: Arc::clone(self.batch.name()), line: self.batch.line(i), fault }
    }

    /// Returns the id of record `i`: its id field, or `file:line`.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn id(&self, i: usize) -> Cow<'a, str> {
        match self.own_id(i) {
            Some(id) => Cow::Borrowed(id),
            // A file that is one record has no lines.
            None if self.batch.format().layout().is_whole_file() || self.batch.line(i) == 0 => {
                Cow::Borrowed(self.batch.name())
            }
            None => Cow::Owned(format!("{}:{}", self.batch.name(), self.batch.line(i))),
        }
    }

    /// Returns what stands in the id field of record `i`.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn own_id(&self, i: usize) -> Option<&'a str> {
        match &self.arena.ids[i] {
            Some(Place::Batch(range)) => Some(&self.text[range.clone()]),
            Some(Place::Arena(range)) => Some(&self.decoded[range.clone()]),
            _ => self.batch.ids.get(i)?.as_deref(),
        }
    }
}

/// Decodes the items and ids of a batch.
pub fn extract<'a>(batch: &'a Batch, fields: &Fields, arena: &'a mut Arena) -> Extracted<'a> {
    arena.clear();
    let batch = batch.readable(fields);
    let layout = batch.format().layout();
    let text = layout.is_text(fields.kind).then(|| simdutf8::basic::from_utf8(batch.bytes()).ok()).flatten();
    let position = |name: &str| batch.preamble().columns.iter().position(|column| column == name);
    let item = position(&fields.item).map_or_else(
        || fields.joined().filter_map(|name| column(&batch.preamble().columns, name)).collect(),
        |column| vec![column],
    );
    let columns = (item, fields.id.as_deref().and_then(position));
    let mut decoder = Decoder { batch, fields, text, columns, arena };
    let mut faults = batch.faults.iter().peekable();
    for i in 0..batch.len() {
        let text_mark = decoder.arena.text.len();
        let result = match faults.next_if(|(faulty, _)| *faulty == i) {
            Some((_, fault)) => Err(fault.clone()),
            None => layout.extract(&mut decoder, i),
        };
        let result = match (result, &batch.stand_in) {
            (Ok((_, id)), Some(stand_in)) if fields.kind == ItemField::Hex => {
                decoder.hash(stand_in).map(|item| (item, id))
            }
            (result, _) => result,
        };
        match result {
            Ok((item, id)) => {
                decoder.arena.items.push(Ok(item));
                decoder.arena.ids.push(id);
            }
            Err(fault) => {
                decoder.arena.text.truncate(text_mark);
                let error = RecordError { name: Arc::clone(batch.name()), line: batch.line(i), fault };
                decoder.arena.items.push(Err(Box::new(error)));
                decoder.arena.ids.push(None);
            }
        }
    }
    let arena = &*arena;
    let decoded = simdutf8::basic::from_utf8(&arena.text).expect("texts decoded from valid UTF-8 are valid UTF-8");
    Extracted { batch, text: text.unwrap_or_default(), decoded, arena }
}

/// Decodes the records of a batch into an arena.
pub(crate) struct Decoder<'a, 'b> {
    batch: &'a Batch,
    fields: &'b Fields,
    text: Option<&'a str>,
    /// The item's columns and the id's, for tables.
    columns: (Vec<usize>, Option<usize>),
    arena: &'b mut Arena,
}

/// A string within a record, before it is decoded.
pub(crate) struct Raw {
    range: Range<usize>,
    escape: Escape,
}

impl Raw {
    /// Returns a string that needs no decoding.
    pub fn plain(range: Range<usize>) -> Self {
        Self { range, escape: Escape::None }
    }

    /// Returns a cell in which quotes are doubled.
    pub fn doubled_quotes(range: Range<usize>) -> Self {
        Self { range, escape: Escape::DoubledQuotes }
    }
}

#[derive(PartialEq, Eq)]
enum Escape {
    None,
    /// Which of the line's escapes.
    Json(Range<usize>),
    DoubledQuotes,
}

impl From<json::Value> for Raw {
    fn from(value: json::Value) -> Self {
        let escape = if value.escapes.is_empty() { Escape::None } else { Escape::Json(value.escapes) };
        Self { range: value.range, escape }
    }
}

impl<'a, 'b> Decoder<'a, 'b> {
    /// Returns what is wanted of a record.
    pub fn fields(&self) -> &'b Fields {
        self.fields
    }

    /// Returns the item's columns and the id's, for tables.
    pub fn columns(&self) -> (&[usize], Option<usize>) {
        (&self.columns.0, self.columns.1)
    }

    /// Returns what stands before the source's first record.
    pub fn preamble(&self) -> &'a Preamble {
        self.batch.preamble()
    }

    /// Room for the places of a line's escapes.
    pub fn escapes(&mut self) -> &mut Vec<usize> {
        &mut self.arena.escapes
    }

    /// Returns record `i` as text.
    pub fn record_text(&self, i: usize) -> Result<&'a str, RecordFault> {
        match self.text {
            // A record starts and ends at an ASCII byte, so within valid text the slice is valid.
            Some(text) => text.get(self.batch.range(i)).ok_or(RecordFault::InvalidUtf8 { offset: 0 }),
            None => std::str::from_utf8(self.batch.raw(i))
                .map_err(|error| RecordFault::InvalidUtf8 { offset: error.valid_up_to() }),
        }
    }

    /// Decodes the item that stands as text in the record.
    pub fn item(&mut self, i: usize, record: &str, raw: Raw) -> Result<Place, RecordFault> {
        if matches!(self.fields.kind, ItemField::Text | ItemField::Texts) {
            return self.string(i, record, raw);
        }
        let mut decoded = Vec::new();
        let text = if raw.escape == Escape::None {
            &record[raw.range]
        } else {
            decode(record, raw, &self.arena.escapes, &mut decoded)?;
            // Hexadecimal digits and numbers are ASCII, so anything that is replaced here is refused below.
            &String::from_utf8_lossy(&decoded)
        };
        let place = match self.fields.kind {
            ItemField::Hex => self.hash(text)?,
            ItemField::Symbols => self.symbols(text),
            _ => self.numbers(text)?,
        };
        Ok(place)
    }

    /// Returns a bit string. What has other characters than hexadecimal digits may be Base64, whose padding or letters then tell.
    fn hash(&mut self, text: &str) -> Result<Place, RecordFault> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        match (self.arena.others.push_hex(digits), base64(text)) {
            (Ok(()), _) => {}
            (Err(_), Some(bytes)) => self.arena.others.push_bit_bytes(&bytes),
            (Err(cause), None) => return Err(RecordFault::BadHex { field: self.fields.item.clone(), cause }),
        }
        Ok(self.last_item())
    }

    /// Returns the characters of a text as symbols.
    pub fn symbols(&mut self, text: &str) -> Place {
        let filled: Result<(), Infallible> = self.arena.others.fill(|symbols: &mut Vec<u32>| {
            symbols.extend(text.chars().map(u32::from));
            Ok(())
        });
        let Ok(()) = filled;
        self.last_item()
    }

    /// Returns a string where it stands, or decoded into the arena.
    pub fn string(&mut self, i: usize, record: &str, raw: Raw) -> Result<Place, RecordFault> {
        let start = self.arena.text.len();
        if raw.escape == Escape::None {
            if self.text.is_some() {
                let base = self.batch.range(i).start;
                return Ok(Place::Batch(base + raw.range.start..base + raw.range.end));
            }
            self.arena.text.extend_from_slice(record[raw.range].as_bytes());
        } else {
            decode(record, raw, &self.arena.escapes, &mut self.arena.text)?;
        }
        Ok(Place::Arena(start..self.arena.text.len()))
    }

    /// Returns where the next text starts that is joined of several.
    pub fn join_start(&self) -> usize {
        self.arena.text.len()
    }

    /// Adds a string to the text that started there.
    pub fn join(&mut self, start: usize, record: &str, raw: Raw) -> Result<(), RecordFault> {
        if raw.range.is_empty() {
            return Ok(());
        }
        if self.arena.text.len() > start {
            self.arena.text.push(b' ');
        }
        decode(record, raw, &self.arena.escapes, &mut self.arena.text)
    }

    /// Returns the text that started there.
    pub fn joined(&self, start: usize) -> Place {
        Place::Arena(start..self.arena.text.len())
    }

    /// Returns all strings and numbers of a JSON value, one per line.
    pub fn texts(&mut self, value: &str) -> Result<Place, RecordFault> {
        fn append(value: &serde_json::Value, start: usize, out: &mut Vec<u8>) {
            let mut line = |text: &str| {
                if out.len() > start {
                    out.push(b'\n');
                }
                out.extend_from_slice(text.as_bytes());
            };
            match value {
                serde_json::Value::String(text) => line(text),
                serde_json::Value::Number(number) => line(&number.to_string()),
                serde_json::Value::Array(values) => values.iter().for_each(|value| append(value, start, out)),
                serde_json::Value::Object(members) => members.values().for_each(|value| append(value, start, out)),
                serde_json::Value::Bool(_) | serde_json::Value::Null => {}
            }
        }
        let value = serde_json::from_str(value)
            .map_err(|error| RecordFault::InvalidJson { column: error.column(), why: "a value is broken" })?;
        let start = self.arena.text.len();
        append(&value, start, &mut self.arena.text);
        Ok(Place::Arena(start..self.arena.text.len()))
    }

    /// Returns numbers between commas or white space, in brackets or not.
    pub fn numbers(&mut self, text: &str) -> Result<Place, RecordFault> {
        let field = || self.fields.item.clone();
        self.arena.others.push_numbers(text).map_err(|cause| match cause {
            ItemError::NotANumber { found } => RecordFault::BadNumber { field: field(), found },
            cause => RecordFault::Unhashable { field: field(), cause },
        })?;
        Ok(self.last_item())
    }

    fn last_item(&self) -> Place {
        Place::Item(self.arena.others.len() - 1)
    }

    /// Returns a text that lies in pieces.
    pub fn text(&mut self, i: usize, record: &str, pieces: &[Range<usize>]) -> Place {
        if let ([piece], Some(_)) = (pieces, self.text) {
            let base = self.batch.range(i).start;
            return Place::Batch(base + piece.start..base + piece.end);
        }
        let start = self.arena.text.len();
        for piece in pieces {
            self.arena.text.extend_from_slice(record[piece.clone()].as_bytes());
        }
        Place::Arena(start..self.arena.text.len())
    }

    /// Returns the numbers of record `i` behind its first `skipped` bytes; as a bit string, where hashes are wanted.
    pub fn row(&mut self, i: usize, skipped: usize) -> Place {
        let raw = &self.batch.raw(i)[skipped..];
        if self.fields.kind == ItemField::Hex {
            self.arena.others.push_bit_bytes(raw);
            return self.last_item();
        }
        let element = self.batch.preamble().element;
        let filled: Result<(), Infallible> = self.arena.others.fill(|vector: &mut Vec<f32>| {
            element.append(raw, vector);
            Ok(())
        });
        let Ok(()) = filled;
        self.last_item()
    }
}

/// Returns the column of a name; a space before or behind it is no part of the name unless the table says so.
pub(crate) fn column(columns: &[String], name: &str) -> Option<usize> {
    let position = |name: &str| columns.iter().position(|column| column == name);
    position(name).or_else(|| columns.iter().position(|column| column.trim() == name.trim()))
}

/// Returns the bytes of a text in Base64 (RFC 4648), by either alphabet and padded to whole groups; `None` if it is none.
fn base64(text: &str) -> Option<Vec<u8>> {
    let padding = text.bytes().rev().take_while(|&byte| byte == b'=').count();
    if text.is_empty() || !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for byte in text[..text.len() - padding].bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(value), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // What is left over of the last group is nothing.
    (bits == 0).then_some(bytes)
}

fn decode(record: &str, raw: Raw, escapes: &[usize], out: &mut Vec<u8>) -> Result<(), RecordFault> {
    match raw.escape {
        Escape::Json(which) => return json::unescape(record.as_bytes(), raw.range, &escapes[which], out),
        Escape::DoubledQuotes => {
            let mut parts = record[raw.range].split("\"\"");
            out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
            for part in parts {
                out.push(b'"');
                out.extend_from_slice(part.as_bytes());
            }
        }
        Escape::None => out.extend_from_slice(record[raw.range].as_bytes()),
    }
    Ok(())
}
