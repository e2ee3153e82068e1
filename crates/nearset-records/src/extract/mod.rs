//! Items and ids out of a batch's raw bytes: the work of a worker thread.
//!
//! Claim: a text that needs no unescaping is borrowed from the batch; everything else lies in one [`Arena`] that a worker
//! keeps from batch to batch. A faulty record is an error of its own and does not touch its neighbours.

mod csv;
pub(crate) mod json;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use nearset::{BitString, Bits, Item, Metric};

use crate::error::{RecordError, RecordFault};
use crate::format::Format;
use crate::input::Batch;

pub(crate) use csv::{Cells, row_cells, strip_line_end};

/// What the item's field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemField {
    /// A text.
    Text,
    /// A bit string in hexadecimal digits.
    Hex,
    /// Numbers: an array in JSON, a list in Parquet, numbers between commas or spaces in other texts.
    Vector,
}

/// What a record's field must hold for a metric; `None` where files have no form for it.
pub fn item_field(metric: Metric) -> Option<ItemField> {
    match metric {
        Metric::Hamming { .. } => Some(ItemField::Hex),
        Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => Some(ItemField::Text),
        Metric::Angle { .. } | Metric::L1 { .. } | Metric::L2 { .. } => Some(ItemField::Vector),
        _ => None,
    }
}

impl ItemField {
    fn wanted(self) -> &'static str {
        match self {
            ItemField::Text => "a string",
            ItemField::Hex => "a string of hexadecimal digits",
            ItemField::Vector => "an array of numbers",
        }
    }
}

/// What a record's item and id are called. Lines of plain text and rows of arrays have no names and ignore them.
///
/// In JSON and Parquet `meta.text` also means the field `text` of `meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fields {
    /// The field or column of the item.
    pub item: String,
    /// The field or column of the id; where a record has none, its id is `file:line`.
    pub id: Option<String>,
    /// What the item is.
    pub kind: ItemField,
}

impl Fields {
    /// An item of that name and kind; the id is called `id`.
    pub fn new(item: impl Into<String>, kind: ItemField) -> Self {
        Self { item: item.into(), id: Some("id".to_owned()), kind }
    }

    /// The same with another id field.
    pub fn with_id(mut self, id: Option<String>) -> Self {
        self.id = id;
        self
    }
}

/// Where a decoded value lies.
#[derive(Debug, Clone)]
enum Place {
    /// Text in the batch.
    Batch(Range<usize>),
    /// Text in the arena.
    Arena(Range<usize>),
    Bits {
        words: Range<usize>,
        len: usize,
    },
    Floats(Range<usize>),
}

/// What one worker decodes into; its allocations are kept from batch to batch.
#[derive(Debug, Default)]
pub struct Arena {
    /// Decoded texts: bytes, so that they are checked to be UTF-8 once a batch rather than piece by piece.
    text: Vec<u8>,
    words: Vec<u64>,
    floats: Vec<f32>,
    items: Vec<Result<Place, Box<RecordError>>>,
    ids: Vec<Option<Place>>,
    /// Where the backslashes of one JSON line are.
    escapes: Vec<usize>,
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.words.clear();
        self.floats.clear();
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
    /// Where the records lie.
    pub fn batch(&self) -> &'a Batch {
        self.batch
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.arena.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.arena.items.is_empty()
    }

    /// The item of record `i`.
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
            Ok(Place::Floats(range)) => Ok(Item::Vector(&self.arena.floats[range.clone()])),
            Ok(Place::Bits { words, len }) => {
                let words = &self.arena.words[words.clone()];
                // Words of a bit string have no bits beyond its length, so the whole words are as good a view.
                Ok(Item::Bits(Bits::new(words, *len).unwrap_or(Bits::from_words(words))))
            }
            Err(error) => Err(error),
        }
    }

    /// A fault of record `i`, with its place.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn error(&self, i: usize, fault: RecordFault) -> RecordError {
        RecordError { name: Arc::clone(self.batch.name()), line: self.batch.line(i), fault }
    }

    /// The id of record `i`: its id field, or `file:line`.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn id(&self, i: usize) -> Cow<'a, str> {
        match self.own_id(i) {
            Some(id) => Cow::Borrowed(id),
            None if self.batch.format() == Format::TextFile => Cow::Borrowed(self.batch.name()),
            None => Cow::Owned(format!("{}:{}", self.batch.name(), self.batch.line(i))),
        }
    }

    /// What stands in the id field of record `i`.
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
    let is_binary = matches!(batch.format(), Format::Npy | Format::Fvecs)
        || (batch.format() == Format::Parquet && fields.kind == ItemField::Vector);
    let text = if is_binary { None } else { simdutf8::basic::from_utf8(batch.bytes()).ok() };
    let columns = (batch.format().delimiter().is_some()).then(|| {
        let position = |name: &str| batch.preamble().columns.iter().position(|column| column == name);
        (position(&fields.item), fields.id.as_deref().and_then(position))
    });
    let mut worker = Worker { batch, fields, text, columns, arena };
    let mut faults = batch.faults.iter().peekable();
    for i in 0..batch.len() {
        let text_mark = worker.arena.text.len();
        let result = match faults.next_if(|(faulty, _)| *faulty == i) {
            Some((_, fault)) => Err(fault.clone()),
            None if is_binary => Ok((worker.floats(i), None)),
            None => worker.record(i),
        };
        match result {
            Ok((item, id)) => {
                worker.arena.items.push(Ok(item));
                worker.arena.ids.push(id);
            }
            Err(fault) => {
                worker.arena.text.truncate(text_mark);
                let error = RecordError { name: Arc::clone(batch.name()), line: batch.line(i), fault };
                worker.arena.items.push(Err(Box::new(error)));
                worker.arena.ids.push(None);
            }
        }
    }
    let arena = &*arena;
    let decoded = simdutf8::basic::from_utf8(&arena.text).expect("texts decoded from valid UTF-8 are valid UTF-8");
    Extracted { batch, text: text.unwrap_or_default(), decoded, arena }
}

struct Worker<'a, 'b> {
    batch: &'a Batch,
    fields: &'b Fields,
    text: Option<&'a str>,
    /// The item's and the id's column, for tables.
    columns: Option<(Option<usize>, Option<usize>)>,
    arena: &'b mut Arena,
}

/// A string within a record, before it is decoded.
struct Raw {
    range: Range<usize>,
    escape: Escape,
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

impl<'a> Worker<'a, '_> {
    /// Record `i` as text.
    fn record_text(&self, i: usize) -> Result<&'a str, RecordFault> {
        match self.text {
            // A record starts and ends at an ASCII byte, so within valid text the slice is valid.
            Some(text) => text.get(self.batch.range(i)).ok_or(RecordFault::InvalidUtf8 { offset: 0 }),
            None => std::str::from_utf8(self.batch.raw(i))
                .map_err(|error| RecordFault::InvalidUtf8 { offset: error.valid_up_to() }),
        }
    }

    fn record(&mut self, i: usize) -> Result<(Place, Option<Place>), RecordFault> {
        let record = self.record_text(i)?;
        match self.batch.format() {
            Format::Jsonl => self.json(i, record),
            Format::Csv | Format::Tsv => self.row(i, record),
            Format::Text => {
                let range = 0..strip_line_end(record.as_bytes()).len();
                Ok((self.item(i, record, Raw { range, escape: Escape::None })?, None))
            }
            _ => Ok((self.item(i, record, Raw { range: 0..record.len(), escape: Escape::None })?, None)),
        }
    }

    fn json(&mut self, i: usize, record: &str) -> Result<(Place, Option<Place>), RecordFault> {
        let field = &self.fields.item;
        if self.fields.kind == ItemField::Vector && record.trim_start().starts_with('[') {
            let value = json::whole(record.as_bytes(), &mut self.arena.escapes)?;
            return Ok((self.numbers(&record[value.range])?, None));
        }
        let [item, id] =
            json::find(record.as_bytes(), [Some(field), self.fields.id.as_deref()], &mut self.arena.escapes)?;
        let Some(item) = item else {
            return Err(RecordFault::MissingField { field: field.clone(), found: json::keys(record) });
        };
        let place = match (item.kind, self.fields.kind) {
            (json::Kind::String, ItemField::Text | ItemField::Hex) => self.item(i, record, item.into())?,
            (json::Kind::Array, ItemField::Vector) => self.numbers(&record[item.range])?,
            (found, kind) => {
                let (found, wanted) = (found.name(), kind.wanted());
                return Err(RecordFault::WrongType { field: field.clone(), found, wanted });
            }
        };
        let id = match id {
            Some(id) if matches!(id.kind, json::Kind::String | json::Kind::Number) => {
                Some(self.string(i, record, id.into())?)
            }
            // An id that is null or a structure names nothing.
            _ => None,
        };
        Ok((place, id))
    }

    fn row(&mut self, i: usize, record: &str) -> Result<(Place, Option<Place>), RecordFault> {
        let (item_column, id_column) = self.columns.unwrap_or_default();
        let mut item = None;
        let mut id = None;
        let mut cells = 0;
        for cell in csv::Cells::new(record.as_bytes(), self.batch.format().delimiter().unwrap_or(b',')) {
            let cell = cell?;
            if Some(cells) == item_column {
                item = Some(cell.clone());
            }
            if Some(cells) == id_column {
                id = Some(cell);
            }
            cells += 1;
        }
        let raw = |cell: csv::Cell| Raw {
            range: cell.range,
            escape: if cell.escaped { Escape::DoubledQuotes } else { Escape::None },
        };
        let Some(item) = item else {
            let (column, wanted) = (self.fields.item.clone(), item_column.map_or(0, |column| column + 1));
            return Err(RecordFault::MissingCell { column, wanted, found: cells });
        };
        let item = self.item(i, record, raw(item))?;
        let id = id.filter(|id| !id.range.is_empty()).map(|id| self.string(i, record, raw(id))).transpose()?;
        Ok((item, id))
    }

    /// Decodes the item that stands as text in the record.
    fn item(&mut self, i: usize, record: &str, raw: Raw) -> Result<Place, RecordFault> {
        if self.fields.kind == ItemField::Text {
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
            ItemField::Hex => {
                let bits = BitString::from_hex(text)
                    .map_err(|cause| RecordFault::BadHex { field: self.fields.item.clone(), cause })?;
                let start = self.arena.words.len();
                self.arena.words.extend_from_slice(bits.bits().words());
                Place::Bits { words: start..self.arena.words.len(), len: bits.bits().len() }
            }
            _ => self.numbers(text)?,
        };
        Ok(place)
    }

    /// A string where it stands, or decoded into the arena.
    fn string(&mut self, i: usize, record: &str, raw: Raw) -> Result<Place, RecordFault> {
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

    /// Numbers between commas or white space, in brackets or not.
    fn numbers(&mut self, text: &str) -> Result<Place, RecordFault> {
        let inner = text.trim();
        let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
        let start = self.arena.floats.len();
        for number in inner.split([',', ' ', '\t', '\r', '\n']).filter(|number| !number.is_empty()) {
            match number.parse::<f32>() {
                Ok(value) if value.is_finite() => self.arena.floats.push(value),
                _ => {
                    self.arena.floats.truncate(start);
                    let (field, found) = (self.fields.item.clone(), number.chars().take(40).collect());
                    return Err(RecordFault::BadNumber { field, found });
                }
            }
        }
        Ok(Place::Floats(start..self.arena.floats.len()))
    }

    /// A row of an array, or a list of a Parquet column.
    fn floats(&mut self, i: usize) -> Place {
        let raw = self.batch.raw(i);
        let raw = if self.batch.format() == Format::Fvecs { &raw[4..] } else { raw };
        let start = self.arena.floats.len();
        if self.batch.preamble().element_bytes == 8 {
            self.arena.floats.extend(raw.as_chunks::<8>().0.iter().map(|&bytes| f64::from_le_bytes(bytes) as f32));
        } else {
            self.arena.floats.extend(raw.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        }
        Place::Floats(start..self.arena.floats.len())
    }
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
