//! Parquet with chosen rows: schema, all columns, key-value metadata and compression kept.
//!
//! Claim: every kept row has exactly its values, nulls and nesting, because rows are told apart by repetition levels and
//! filtered as levels and values, never assembled. Columns are copied one after another, so memory is bounded by the
//! encoded pages of one column chunk (the encoder holds them back while it builds a dictionary), not by a row group.
//! Invariant: a row group goes in and at most one comes out, so no more is decided at once than a row group's rows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::TypePtr;

use super::added::{Column, drop_absent, extended};
use super::{Added, OutputFile, OutputOptions, Value};
use crate::error::{InputError, OutputError};
use crate::extract::{Fields, ItemField};
use crate::format::{Compression, Format};
use crate::input::{AnyFile, Source, item_columns, open_parquet};

/// Rows are copied this many at a time.
const STEP: usize = 1024;

/// Copies the kept rows of Parquet sources into one Parquet file.
///
/// Its footer comes last, so a stopped run cannot go on from a length. What it takes is a decision a row: a run that
/// saved those gives them again and gets the same file without looking at any item.
pub struct ParquetWriter {
    path: PathBuf,
    sources: Arc<[Source]>,
    /// The number that the first of them has for those who decide.
    first: usize,
    writer: SerializedFileWriter<OutputFile>,
    /// The first source's.
    schema: TypePtr,
    /// Columns that annotating adds, and whose place each takes: by leaf column of the sources, or behind them.
    added: Vec<(Column, Option<usize>)>,
    /// How many of them have values; the others become null.
    values: usize,
    /// Whether the texts themselves are written anew.
    replaces_text: bool,
    current: Current,
}

/// The source whose rows are being decided.
struct Current {
    index: usize,
    file: SerializedFileReader<AnyFile>,
    group: usize,
    /// Decisions for the first rows of the row group.
    keep: Vec<bool>,
}

impl ParquetWriter {
    /// Starts an output with the schema of the first source and the `added` columns, behind it or in the place of those that an earlier run has
    /// added.
    ///
    /// # Errors
    /// As [`OutputFile::create`]; and if there is no source, one is not Parquet, or a column of an added name is there that no earlier run has
    /// added.
    pub fn create(
        path: &Path,
        sources: impl Into<Arc<[Source]>>,
        mut added: Vec<Added>,
        options: &OutputOptions,
    ) -> Result<Self, OutputError> {
        let sources: Arc<[Source]> = sources.into();
        let unsupported = |why| OutputError::Unsupported { path: path.to_owned(), why };
        if let Some(other) = sources.iter().find(|source| source.format != Format::Parquet) {
            let why = format!(
                "{} is {}, and records come out as they went in: name the output as {}",
                other.name, other.format, other.format
            );
            return Err(unsupported(why));
        }
        let Some(first) = sources.first() else {
            return Err(OutputError::Input(InputError::Nothing));
        };
        let file = open_parquet(first)?;
        let described = file.metadata().file_metadata().schema_descr();
        let schema = described.root_schema_ptr();
        drop_absent(&schema, &mut added);
        // Readers, which open later, would refuse them too.
        for own in added.iter().filter(|added| added.is_own) {
            let mut fields = Fields::new(&*own.name, ItemField::Text);
            fields.is_cut = true;
            item_columns(&first.name, described, &fields)?;
        }
        let values = Added::values(&added);
        let (extended, fields) =
            extended(&schema, &added).map_err(|cause| unsupported(format!("{}: {cause}", first.name)))?;
        // A field whose place is taken is one column, so its root is no other's.
        let leaf =
            |field: usize| (0..described.num_columns()).find(|&leaf| described.get_column_root_idx(leaf) == field);
        let replaces_text = added.iter().any(|added| added.is_own);
        let added: Vec<(Column, Option<usize>)> =
            added.iter().zip(fields).map(|(added, field)| (Column::new(added.kind), field.and_then(leaf))).collect();
        let properties = Arc::new(properties(file.metadata(), &added));
        let options = OutputOptions { compression: Some(Compression::None), ..options.clone() };
        let out = OutputFile::create(path, &options)?;
        let writer = SerializedFileWriter::new(out, extended, properties).map_err(|cause| writing(path, cause))?;
        let current = Current { index: 0, file, group: 0, keep: Vec::new() };
        Ok(Self { path: path.to_owned(), sources, first: 0, writer, schema, added, values, replaces_text, current })
    }

    /// Says that the first source is number `first` in decisions.
    pub(super) fn count_sources_from(&mut self, first: usize) {
        self.first = first;
    }

    /// Keeps the next row of a source as it is; added columns are null, and so is a text that would be written anew.
    pub(super) fn pass_through(&mut self, source: usize) -> Result<(), OutputError> {
        let values = vec![Value::Null; self.values];
        self.decide(source, Some(&values))
    }

    /// Returns whether the texts are written anew, so that a row is kept with its text.
    pub(super) fn replaces_text(&self) -> bool {
        self.replaces_text
    }

    /// Says what becomes of the next row of a source: kept with the values of the added columns, or left out. Sources come in order;
    /// rows of a source that are never decided are left out.
    ///
    /// # Errors
    /// If a source cannot be read or has another schema than the first, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no such source, a later one came before, or the values are not those of the added columns.
    pub fn decide(&mut self, source: usize, kept: Option<&[Value<'_>]>) -> Result<(), OutputError> {
        let source = source - self.first;
        assert!(source >= self.current.index, "source {source} after source {}", self.current.index);
        if source > self.current.index {
            self.end_source()?;
            self.start_source(source)?;
        }
        let Some(rows) = self.current.group_rows() else {
            let name = Arc::clone(&self.sources[source].name);
            let cause = ParquetError::General("a decision beyond its last row".to_owned());
            return Err(OutputError::Input(InputError::Parquet { name, cause }));
        };
        self.current.keep.push(kept.is_some());
        if let Some(values) = kept {
            assert_eq!(values.len(), self.values, "a value for each added column");
            let values = values.iter().chain(std::iter::repeat(&Value::Null));
            self.added.iter_mut().zip(values).for_each(|((column, _), &value)| column.push(value));
        }
        if self.current.keep.len() == rows {
            self.copy_group()?;
        }
        Ok(())
    }

    fn start_source(&mut self, index: usize) -> Result<(), OutputError> {
        let source = &self.sources[index];
        let file = open_parquet(source)?;
        // Writers name the root as they please; what counts are the columns.
        if file.metadata().file_metadata().schema().get_fields() != self.schema.get_fields() {
            return Err(OutputError::HeaderMismatch {
                path: self.path.clone(),
                name: Arc::clone(&source.name),
                first: Arc::clone(&self.sources[0].name),
            });
        }
        self.current = Current { index, file, group: 0, keep: Vec::new() };
        Ok(())
    }

    fn end_source(&mut self) -> Result<(), OutputError> {
        if let Some(rows) = self.current.group_rows()
            && !self.current.keep.is_empty()
        {
            self.current.keep.resize(rows, false);
            self.copy_group()?;
        }
        Ok(())
    }

    /// Copies the kept rows of the row group that is now decided.
    fn copy_group(&mut self) -> Result<(), OutputError> {
        let Current { index, file, group, keep } = &mut self.current;
        if keep.contains(&true) {
            let name = &self.sources[*index].name;
            let read = |cause| OutputError::Input(InputError::Parquet { name: Arc::clone(name), cause });
            let rows = file.get_row_group(*group).map_err(read)?;
            let mut out = self.writer.next_row_group().map_err(|cause| writing(&self.path, cause))?;
            for leaf in 0..rows.num_columns() {
                if let Some((column, _)) = self.added.iter_mut().find(|(_, place)| *place == Some(leaf)) {
                    column.write(&mut out).map_err(|cause| writing(&self.path, cause))?;
                    continue;
                }
                let reader = rows.get_column_reader(leaf).map_err(read)?;
                copy_column(reader, &mut out, keep).map_err(|failure| match failure {
                    Failure::Read(cause) => read(cause),
                    Failure::Write(cause) => writing(&self.path, cause),
                })?;
            }
            for (column, _) in self.added.iter_mut().filter(|(_, place)| place.is_none()) {
                column.write(&mut out).map_err(|cause| writing(&self.path, cause))?;
            }
            out.close().map_err(|cause| writing(&self.path, cause))?;
        }
        *group += 1;
        keep.clear();
        Ok(())
    }

    /// Writes the footer and lets the output appear under its name.
    ///
    /// # Errors
    /// If the last rows cannot be copied, or the device is full or fails.
    pub fn finish(self) -> Result<(), OutputError> {
        self.complete()?.finish()
    }

    /// Writes the footer.
    pub(super) fn complete(mut self) -> Result<OutputFile, OutputError> {
        self.end_source()?;
        self.writer.into_inner().map_err(|cause| writing(&self.path, cause))
    }
}

impl Current {
    /// Returns the rows of the present row group; groups without rows are passed over.
    fn group_rows(&mut self) -> Option<usize> {
        loop {
            let metadata = self.file.metadata();
            if self.group >= metadata.num_row_groups() {
                return None;
            }
            match usize::try_from(metadata.row_group(self.group).num_rows()) {
                Ok(rows) if rows > 0 => return Some(rows),
                _ => self.group += 1,
            }
        }
    }
}

/// Under this key lies a description of all columns in Arrow's terms, which readers refuse if there are others.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Returns the writer's settings that give a file like the one read, up to columns that are added.
fn properties(metadata: &ParquetMetaData, added: &[(Column, Option<usize>)]) -> WriterProperties {
    let mut described = metadata.file_metadata().key_value_metadata().cloned();
    if let (Some(pairs), false) = (&mut described, added.is_empty()) {
        pairs.retain(|pair| pair.key != ARROW_SCHEMA);
    }
    let mut builder = WriterProperties::builder().set_key_value_metadata(described).set_max_row_group_row_count(None);
    if let Some(group) = metadata.row_groups().first() {
        // Rows stay sorted by what comes before a column whose values are replaced.
        let stays = |leaf: usize| added.iter().all(|(_, place)| *place != Some(leaf));
        let sorted = group.sorting_columns().map(|columns| {
            columns.iter().take_while(|column| stays(column.column_idx as usize)).cloned().collect::<Vec<_>>()
        });
        builder = builder.set_sorting_columns(sorted.filter(|columns| !columns.is_empty()));
        for column in group.columns() {
            let path = column.column_path().clone();
            builder = builder
                .set_column_compression(path.clone(), column.compression())
                .set_column_dictionary_enabled(path, column.dictionary_page_offset().is_some());
        }
    }
    builder.build()
}

/// Returns what a failed write means: the device's error where there is one below.
fn writing(path: &Path, cause: ParquetError) -> OutputError {
    match cause {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => OutputError::from_io(path, *error),
            Err(error) => OutputError::Parquet { path: path.to_owned(), cause: ParquetError::External(error) },
        },
        cause => OutputError::Parquet { path: path.to_owned(), cause },
    }
}

enum Failure {
    Read(ParquetError),
    Write(ParquetError),
}

fn copy_column(
    reader: ColumnReader,
    out: &mut SerializedRowGroupWriter<'_, OutputFile>,
    keep: &[bool],
) -> Result<(), Failure> {
    let Some(mut writer) = out.next_column().map_err(Failure::Write)? else {
        return Err(Failure::Write(ParquetError::General("a column more than the schema has".to_owned())));
    };
    match (reader, writer.untyped()) {
        (ColumnReader::BoolColumnReader(from), ColumnWriter::BoolColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::Int32ColumnReader(from), ColumnWriter::Int32ColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::Int64ColumnReader(from), ColumnWriter::Int64ColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::Int96ColumnReader(from), ColumnWriter::Int96ColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::FloatColumnReader(from), ColumnWriter::FloatColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::DoubleColumnReader(from), ColumnWriter::DoubleColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::ByteArrayColumnReader(from), ColumnWriter::ByteArrayColumnWriter(to)) => copy(from, to, keep),
        (ColumnReader::FixedLenByteArrayColumnReader(from), ColumnWriter::FixedLenByteArrayColumnWriter(to)) => {
            copy(from, to, keep)
        }
        _ => Err(Failure::Read(ParquetError::General("a row group departs from the schema".to_owned()))),
    }?;
    writer.close().map_err(Failure::Write)
}

/// Copies the kept rows of one column chunk.
fn copy<T: DataType>(
    mut from: ColumnReaderImpl<T>,
    to: &mut ColumnWriterImpl<'_, T>,
    mut keep: &[bool],
) -> Result<(), Failure> {
    let descriptor = Arc::clone(to.get_descriptor());
    let (max_definition, max_repetition) = (descriptor.max_def_level(), descriptor.max_rep_level());
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    while !keep.is_empty() {
        definitions.clear();
        repetitions.clear();
        values.clear();
        let step = keep.len().min(STEP);
        let (rows, _, levels) = from
            .read_records(step, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(Failure::Read)?;
        if rows != step {
            return Err(Failure::Read(ParquetError::General("a column has fewer rows than its row group".to_owned())));
        }
        filter(&mut definitions, &mut repetitions, &mut values, levels, max_definition, &keep[..step]);
        let definitions = (max_definition > 0).then_some(definitions.as_slice());
        let repetitions = (max_repetition > 0).then_some(repetitions.as_slice());
        to.write_batch(&values, definitions, repetitions).map_err(Failure::Write)?;
        keep = &keep[step..];
    }
    Ok(())
}

/// Removes the levels and values of rows that are not kept. A row starts where nothing repeats (level 0); a value is
/// there where everything is defined (the highest level).
fn filter<V>(
    definitions: &mut Vec<i16>,
    repetitions: &mut Vec<i16>,
    values: &mut Vec<V>,
    levels: usize,
    max_definition: i16,
    keep: &[bool],
) {
    let mut row = 0;
    let mut kept_levels = 0;
    let mut value_kept = Vec::with_capacity(values.len());
    for level in 0..levels {
        if level > 0 && repetitions.get(level).is_none_or(|&repetition| repetition == 0) {
            row += 1;
        }
        let kept = keep[row];
        if definitions.get(level).is_none_or(|&definition| definition == max_definition) {
            value_kept.push(kept);
        }
        if kept {
            if let Some(&definition) = definitions.get(level) {
                definitions[kept_levels] = definition;
            }
            if let Some(&repetition) = repetitions.get(level) {
                repetitions[kept_levels] = repetition;
            }
            kept_levels += 1;
        }
    }
    definitions.truncate(kept_levels);
    repetitions.truncate(kept_levels);
    let mut kept = value_kept.into_iter();
    values.retain(|_| kept.next().unwrap_or(false));
}
