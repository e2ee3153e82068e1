//! Rows of a Parquet file: the item's column and the id's, decoded; the others are left alone.
//!
//! A batch's bytes are then the items' own bytes (text, or little-endian 32-bit floats), not the file's. The rows are
//! copied by [`crate::output::ParquetWriter`], which reads them again by number.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::batch::{Batch, Preamble, Span};
use super::{Position, ReadOptions, Source};
use crate::error::{InputError, RecordFault};
use crate::extract::ItemField;

/// Rows are decoded this many at a time until the batch is full.
const STEP: usize = 64;

pub(crate) fn open_file(source: &Source) -> Result<SerializedFileReader<File>, InputError> {
    let name = || Arc::clone(&source.name);
    let Some(path) = source.path() else {
        return Err(InputError::ParquetNeedsFile { name: name() });
    };
    let file = File::open(path).map_err(|cause| InputError::Unreadable { path: path.to_owned(), cause })?;
    SerializedFileReader::new(file).map_err(|cause| InputError::Parquet { name: name(), cause })
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
    file: SerializedFileReader<File>,
    item: usize,
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
}

impl ParquetRows {
    pub fn open(source: &Source, options: &ReadOptions, position: Position) -> Result<Self, InputError> {
        let file = open_file(source)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let name = Arc::clone(&source.name);
        let item_name = options.fields.item.clone();
        let columns: Vec<String> = schema.columns().iter().map(|leaf| leaf.path().string()).collect();
        let Some(item) = column_index(&schema, &item_name) else {
            return Err(InputError::MissingColumn { name, column: item_name, found: columns });
        };
        let leaf = schema.column(item);
        let max_definition = leaf.max_def_level();
        let (fits, wanted) = match options.fields.kind {
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
        let id = id.filter(|&id| {
            let leaf = schema.column(id);
            leaf.max_rep_level() == 0 && matches!(leaf.physical_type(), Type::BYTE_ARRAY | Type::INT32 | Type::INT64)
        });
        let preamble = Arc::new(Preamble { columns, element_bytes: 4, ..Preamble::default() });
        let mut rows =
            Self { name, file, item, item_name, max_definition, id, preamble, group: 0, rows_left: 0, columns: None };
        rows.skip(position.record).map_err(|cause| rows.explain(cause))?;
        Ok(rows)
    }

    fn explain(&self, cause: ParquetError) -> InputError {
        InputError::Parquet { name: Arc::clone(&self.name), cause }
    }

    /// Opens the columns of the next row group that has rows, unless one is open. `false` is the end of the file.
    fn open_group(&mut self) -> Result<bool, ParquetError> {
        while self.rows_left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.group)?;
            let item = match group.get_column_reader(self.item)? {
                ColumnReader::ByteArrayColumnReader(column) => ItemColumn::Bytes(column),
                ColumnReader::FloatColumnReader(column) => ItemColumn::Floats(column),
                ColumnReader::DoubleColumnReader(column) => ItemColumn::Doubles(column),
                _ => return Err(ParquetError::General("a row group departs from the schema".to_owned())),
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
                };
                match &mut columns.id {
                    Some(ColumnReader::ByteArrayColumnReader(column)) => column.skip_records(step)?,
                    Some(ColumnReader::Int32ColumnReader(column)) => column.skip_records(step)?,
                    Some(ColumnReader::Int64ColumnReader(column)) => column.skip_records(step)?,
                    _ => 0,
                };
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
        let ids = columns.id.as_mut().map(|id| read_ids(id, rows)).transpose()?;
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

fn read_ids(column: &mut ColumnReader, rows: usize) -> Result<Vec<Option<String>>, ParquetError> {
    fn read<T: DataType>(
        column: &mut ColumnReaderImpl<T>,
        rows: usize,
        show: impl Fn(&T::T) -> Option<String>,
    ) -> Result<Vec<Option<String>>, ParquetError> {
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
    match column {
        ColumnReader::ByteArrayColumnReader(column) => {
            read(column, rows, |id| std::str::from_utf8(id.data()).ok().map(str::to_owned))
        }
        ColumnReader::Int32ColumnReader(column) => read(column, rows, |id| Some(id.to_string())),
        ColumnReader::Int64ColumnReader(column) => read(column, rows, |id| Some(id.to_string())),
        _ => Ok(vec![None; rows]),
    }
}
