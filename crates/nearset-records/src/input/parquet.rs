//! Rows of a Parquet file: the item's column and the id's, decoded; the others are left alone.
//!
//! A batch's bytes are then the items' own bytes (text, or little-endian 32-bit floats), not the file's. The rows are
//! copied by [`crate::output::ParquetWriter`], which reads them again by number.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::batch::{Batch, Preamble, Span};
use super::{Location, Position, ReadOptions, Source};
use crate::error::{InputError, RecordFault};
use crate::extract::{Fields, ItemField};
use crate::remote::{RemoteError, RemoteFile};

/// Rows are decoded this many at a time until the batch is full.
const STEP: usize = 64;

/// A file that is read at any place, wherever it lies.
pub(crate) enum AnyFile {
    Here(File),
    Remote(Arc<RemoteFile>),
}

impl Length for AnyFile {
    fn len(&self) -> u64 {
        match self {
            AnyFile::Here(file) => Length::len(file),
            AnyFile::Remote(file) => file.len(),
        }
    }
}

impl ChunkReader for AnyFile {
    type T = AnyRead;

    fn get_read(&self, start: u64) -> Result<AnyRead, ParquetError> {
        Ok(match self {
            AnyFile::Here(file) => AnyRead::Here(file.get_read(start)?),
            AnyFile::Remote(file) => AnyRead::Remote { file: Arc::clone(file), at: start },
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            AnyFile::Here(file) => file.get_bytes(start, length),
            AnyFile::Remote(file) => {
                let bytes = file.read_at(start, length)?;
                let is_whole = bytes.len() == length;
                let why = || ParquetError::EOF(format!("{length} bytes at {start} are not all there"));
                is_whole.then_some(bytes).ok_or_else(why)
            }
        }
    }
}

/// Reads such a file from a place on.
pub(crate) enum AnyRead {
    Here(BufReader<File>),
    Remote { file: Arc<RemoteFile>, at: u64 },
}

impl Read for AnyRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            AnyRead::Here(file) => file.read(buffer),
            AnyRead::Remote { file, at } => {
                let bytes = file.read_at(*at, buffer.len())?;
                buffer[..bytes.len()].copy_from_slice(&bytes);
                *at += bytes.len() as u64;
                Ok(bytes.len())
            }
        }
    }
}

pub(crate) fn open_file(source: &Source) -> Result<SerializedFileReader<AnyFile>, InputError> {
    let name = || Arc::clone(&source.name);
    let file = match &source.location {
        Location::Stdin => return Err(InputError::ParquetNeedsFile { name: name() }),
        Location::File(path) => {
            AnyFile::Here(File::open(path).map_err(|cause| InputError::Unreadable { path: path.to_owned(), cause })?)
        }
        Location::Remote(object) => {
            let opened = RemoteFile::open(object).map_err(|cause| InputError::Remote { name: name(), cause })?;
            AnyFile::Remote(Arc::new(opened))
        }
    };
    SerializedFileReader::new(file).map_err(|cause| explain(name(), cause))
}

/// An error of reading Parquet, which may be that its bytes can't be reached.
fn explain(name: Arc<str>, cause: ParquetError) -> InputError {
    let remote = match &cause {
        ParquetError::External(inner) => inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref),
        _ => None,
    };
    match remote.and_then(|inner| inner.downcast_ref::<RemoteError>()) {
        Some(cause) => InputError::Remote { name, cause: cause.clone() },
        None => InputError::Parquet { name, cause },
    }
}

/// Returns the rows of a file, by its footer.
pub(super) fn num_rows(source: &Source) -> Result<u64, InputError> {
    let rows = open_file(source)?.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Returns the leaf column that a name means: its whole dotted path, or the list that it is the only leaf of.
fn column_index(schema: &SchemaDescriptor, column: &str) -> Option<usize> {
    let columns = schema.columns();
    let exact = columns.iter().position(|leaf| leaf.path().string() == column);
    exact.or_else(|| {
        let prefix = format!("{column}.");
        let mut below = (0..columns.len()).filter(|&i| columns[i].path().string().starts_with(&prefix));
        below.next().filter(|_| below.next().is_none())
    })
}

/// The rows of one file.
pub(crate) struct ParquetRows {
    name: Arc<str>,
    file: SerializedFileReader<AnyFile>,
    /// One column, or those whose texts are joined.
    items: Vec<usize>,
    item_name: String,
    max_definition: i16,
    id: Option<usize>,
    preamble: Arc<Preamble>,
    group: usize,
    /// Rows left in the row group that the columns read from.
    rows_left: usize,
    columns: Option<Columns>,
}

struct Columns {
    item: ItemColumn,
    id: Option<ColumnReader>,
}

enum ItemColumn {
    Bytes(ColumnReaderImpl<ByteArrayType>),
    Floats(ColumnReaderImpl<FloatType>),
    Doubles(ColumnReaderImpl<DoubleType>),
    /// Several, whose texts are joined by a space.
    Joined(Vec<ColumnReader>),
}

/// Returns the columns that an item is made from.
pub(crate) fn item_columns(
    name: &Arc<str>,
    schema: &SchemaDescriptor,
    fields: &Fields,
) -> Result<Vec<usize>, InputError> {
    let missing = |column: &str| {
        let found = schema.columns().iter().map(|leaf| leaf.path().string()).collect();
        InputError::MissingColumn { name: Arc::clone(name), column: column.to_owned(), found }
    };
    let joined: Vec<&str> = fields.joined().map(str::trim).collect();
    match column_index(schema, &fields.item) {
        Some(item) => Ok(vec![item]),
        None if joined.is_empty() => Err(missing(&fields.item)),
        None if fields.cuts_joined() => {
            Err(InputError::CutJoined { name: Arc::clone(name), fields: fields.item.clone() })
        }
        None => joined.into_iter().map(|column| column_index(schema, column).ok_or_else(|| missing(column))).collect(),
    }
}

impl ParquetRows {
    pub fn open(source: &Source, options: &ReadOptions, position: Position) -> Result<Self, InputError> {
        let file = open_file(source)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let name = Arc::clone(&source.name);
        let item_name = options.fields.item.clone();
        let columns: Vec<String> = schema.columns().iter().map(|leaf| leaf.path().string()).collect();
        let items = item_columns(&name, &schema, &options.fields)?;
        let item = items[0];
        // Of several, the first that can't be a text is the one to name.
        let wrong = items.iter().copied().find(|&item| items.len() > 1 && !is_short_text(&schema, item));
        let item = wrong.unwrap_or(item);
        let leaf = schema.column(item);
        let max_definition = leaf.max_def_level();
        let (fits, wanted) = match options.fields.kind {
            _ if items.len() > 1 => (is_short_text(&schema, item), "a string or a whole number"),
            ItemField::Text | ItemField::Hex | ItemField::Symbols => {
                (leaf.physical_type() == Type::BYTE_ARRAY && leaf.max_rep_level() == 0, "a string")
            }
            ItemField::Texts => {
                (leaf.physical_type() == Type::BYTE_ARRAY && leaf.max_rep_level() <= 1, "a string or a list of strings")
            }
            ItemField::Vector => {
                let floats = matches!(leaf.physical_type(), Type::FLOAT | Type::DOUBLE);
                (floats && leaf.max_rep_level() == 1, "a list of floats")
            }
        };
        if !fits {
            let nesting = if leaf.max_rep_level() > 0 { "a list of " } else { "" };
            let found = format!("{nesting}{}", leaf.physical_type());
            return Err(InputError::ColumnType { name, column: item_name, found, wanted });
        }
        let id = options.fields.id.as_ref().and_then(|id| column_index(&schema, id));
        // Ids of other types than these fall back to the row's number.
        let id = id.filter(|&id| is_short_text(&schema, id));
        let preamble = Arc::new(Preamble { columns, ..Preamble::default() });
        let mut rows =
            Self { name, file, items, item_name, max_definition, id, preamble, group: 0, rows_left: 0, columns: None };
        rows.skip(position.record).map_err(|cause| rows.explain(cause))?;
        Ok(rows)
    }

    fn explain(&self, cause: ParquetError) -> InputError {
        explain(Arc::clone(&self.name), cause)
    }

    /// Opens the columns of the next row group that has rows, unless one is open. `false` is the end of the file.
    fn open_group(&mut self) -> Result<bool, ParquetError> {
        while self.rows_left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.group)?;
            let mut columns =
                self.items.iter().map(|&item| group.get_column_reader(item)).collect::<Result<Vec<_>, _>>()?;
            let single = if columns.len() == 1 { columns.pop() } else { None };
            let item = match single {
                None => ItemColumn::Joined(columns),
                Some(ColumnReader::ByteArrayColumnReader(column)) => ItemColumn::Bytes(column),
                Some(ColumnReader::FloatColumnReader(column)) => ItemColumn::Floats(column),
                Some(ColumnReader::DoubleColumnReader(column)) => ItemColumn::Doubles(column),
                Some(_) => return Err(ParquetError::General("a row group departs from the schema".to_owned())),
            };
            let id = self.id.map(|id| group.get_column_reader(id)).transpose()?;
            self.rows_left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.columns = Some(Columns { item, id });
            self.group += 1;
        }
        Ok(true)
    }

    fn skip(&mut self, mut rows: u64) -> Result<(), ParquetError> {
        while rows > 0 && self.open_group()? {
            let step = usize::try_from(rows).unwrap_or(usize::MAX).min(self.rows_left);
            if let Some(columns) = &mut self.columns
                && step < self.rows_left
            {
                match &mut columns.item {
                    ItemColumn::Bytes(column) => column.skip_records(step)?,
                    ItemColumn::Floats(column) => column.skip_records(step)?,
                    ItemColumn::Doubles(column) => column.skip_records(step)?,
                    ItemColumn::Joined(columns) => {
                        columns.iter_mut().try_for_each(|column| skip_short_texts(column, step))?;
                        step
                    }
                };
                columns.id.as_mut().map(|id| skip_short_texts(id, step)).transpose()?;
            }
            self.rows_left -= step;
            rows -= step as u64;
        }
        Ok(())
    }

    /// As for byte records: whether something was delivered, where it ends, and the error that comes after it.
    pub fn read(
        &mut self,
        batch: &mut Batch,
        options: &ReadOptions,
        start: Position,
    ) -> (bool, Position, Option<InputError>) {
        batch.preamble = Arc::clone(&self.preamble);
        let mut error = None;
        while batch.bytes.len() < options.batch_bytes {
            match self.step(batch) {
                Ok(true) => {}
                Ok(false) => break,
                Err(cause) => {
                    error = Some(self.explain(cause));
                    break;
                }
            }
        }
        let rows = batch.spans.len() as u64;
        let end = Position { record: start.record + rows, line: start.line + rows, ..start };
        (rows > 0, end, error)
    }

    /// Decodes a few rows. `false` is the end.
    fn step(&mut self, batch: &mut Batch) -> Result<bool, ParquetError> {
        if !self.open_group()? {
            return Ok(false);
        }
        let rows = self.rows_left.min(STEP);
        let Some(columns) = &mut self.columns else {
            return Ok(false);
        };
        // Ids first: if the item's column fails, the batch must not have more items than ids.
        let ids = columns.id.as_mut().map(|id| short_texts(id, rows)).transpose()?;
        let has_ids = ids.is_some();
        let column = (self.item_name.as_str(), self.max_definition);
        let decoded = match &mut columns.item {
            ItemColumn::Bytes(values) => items(values, rows, batch, column, |bytes, is_first, value| {
                if !is_first {
                    bytes.push(b'\n');
                }
                bytes.extend_from_slice(value.data());
            })?,
            ItemColumn::Floats(values) => {
                items(values, rows, batch, column, |bytes, _, value| bytes.extend(value.to_le_bytes()))?
            }
            ItemColumn::Doubles(values) => items(values, rows, batch, column, |bytes, _, value| {
                bytes.extend((*value as f32).to_le_bytes());
            })?,
            ItemColumn::Joined(columns) => joined(columns, rows, batch)?,
        };
        if decoded != rows || ids.as_ref().is_some_and(|ids| ids.len() != rows) {
            return Err(ParquetError::General("a column has fewer rows than its row group".to_owned()));
        }
        if has_ids {
            batch.ids.extend(ids.unwrap_or_default());
        }
        self.rows_left -= rows;
        Ok(true)
    }
}

/// Decodes up to `rows` items: one value or one list per row. `append` is told whether a value is the first of its row.
fn items<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    batch: &mut Batch,
    (name, max_definition): (&str, i16),
    append: impl Fn(&mut Vec<u8>, bool, &T::T),
) -> Result<usize, ParquetError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (records, _, levels) =
        column.read_records(rows, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
    // A value is there where everything is defined; a column that must have values has no levels at all.
    let present = |level: usize| definitions.get(level).is_none_or(|&definition| definition == max_definition);
    let mut values_seen = 0;
    for level in 0..levels {
        let starts_row = repetitions.is_empty() || repetitions[level] == 0;
        if starts_row {
            let line = batch.spans.len();
            batch.spans.push(Span { start: batch.bytes.len(), end: batch.bytes.len(), line: line as u32 });
        }
        let row = batch.spans.len() - 1;
        if present(level) {
            let value =
                values.get(values_seen).ok_or_else(|| ParquetError::General("levels outrun values".to_owned()))?;
            let is_first = batch.spans[row].start == batch.bytes.len();
            append(&mut batch.bytes, is_first, value);
            values_seen += 1;
            batch.spans[row].end = batch.bytes.len();
        } else if batch.faults.last().is_none_or(|&(last, _)| last != row) {
            batch.faults.push((row, RecordFault::Null { column: name.to_owned() }));
        }
    }
    Ok(records)
}

/// Returns whether a column holds what an id may be, one per row.
fn is_short_text(schema: &SchemaDescriptor, column: usize) -> bool {
    let leaf = schema.column(column);
    leaf.max_rep_level() == 0 && matches!(leaf.physical_type(), Type::BYTE_ARRAY | Type::INT32 | Type::INT64)
}

fn skip_short_texts(column: &mut ColumnReader, rows: usize) -> Result<(), ParquetError> {
    match column {
        ColumnReader::ByteArrayColumnReader(column) => column.skip_records(rows)?,
        ColumnReader::Int32ColumnReader(column) => column.skip_records(rows)?,
        ColumnReader::Int64ColumnReader(column) => column.skip_records(rows)?,
        _ => 0,
    };
    Ok(())
}

/// Decodes up to `rows` items: the texts of several columns, those that are empty or null left out. What is no text stays as it is, so that
/// extracting finds it.
fn joined(columns: &mut [ColumnReader], rows: usize, batch: &mut Batch) -> Result<usize, ParquetError> {
    let cells = columns.iter_mut().map(|column| cells(column, rows)).collect::<Result<Vec<_>, _>>()?;
    let shortest = cells.iter().map(Vec::len).min().unwrap_or(0);
    for row in 0..shortest {
        let (start, line) = (batch.bytes.len(), batch.spans.len() as u32);
        for cell in cells.iter().filter_map(|cells| cells[row].as_ref()).filter(|cell| !cell.is_empty()) {
            if batch.bytes.len() > start {
                batch.bytes.push(b' ');
            }
            batch.bytes.extend_from_slice(cell.data());
        }
        batch.spans.push(Span { start, end: batch.bytes.len(), line });
    }
    Ok(shortest)
}

/// Decodes strings, and whole numbers as they are written. What is no text is none.
fn short_texts(column: &mut ColumnReader, rows: usize) -> Result<Vec<Option<String>>, ParquetError> {
    match column {
        ColumnReader::ByteArrayColumnReader(column) => {
            values(column, rows, |id| std::str::from_utf8(id.data()).ok().map(str::to_owned))
        }
        ColumnReader::Int32ColumnReader(column) => values(column, rows, |id| Some(id.to_string())),
        ColumnReader::Int64ColumnReader(column) => values(column, rows, |id| Some(id.to_string())),
        _ => Ok(vec![None; rows]),
    }
}

/// Decodes the bytes of strings, and whole numbers as they are written.
fn cells(column: &mut ColumnReader, rows: usize) -> Result<Vec<Option<ByteArray>>, ParquetError> {
    match column {
        ColumnReader::ByteArrayColumnReader(column) => values(column, rows, |cell| Some(cell.clone())),
        ColumnReader::Int32ColumnReader(column) => values(column, rows, |cell| Some(cell.to_string().as_str().into())),
        ColumnReader::Int64ColumnReader(column) => values(column, rows, |cell| Some(cell.to_string().as_str().into())),
        _ => Ok(vec![None; rows]),
    }
}

fn values<T: DataType, V>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    show: impl Fn(&T::T) -> Option<V>,
) -> Result<Vec<Option<V>>, ParquetError> {
    let (mut definitions, mut values) = (Vec::new(), Vec::new());
    let (records, found, _) = column.read_records(rows, Some(&mut definitions), None, &mut values)?;
    if definitions.is_empty() || found == records {
        return Ok(values.iter().map(show).collect());
    }
    let highest = definitions.iter().copied().max().unwrap_or(0);
    let mut values = values.iter();
    let mut next = |level: i16| if level == highest { values.next().and_then(&show) } else { None };
    Ok(definitions.into_iter().map(&mut next).collect())
}
