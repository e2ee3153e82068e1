//! Kept records in whatever format their sources have.

use std::path::Path;
use std::sync::Arc;

use super::shards::{ShardWriter, check_shards, is_folder};
use super::{Added, Checkpoint, OutputOptions, ParquetWriter, RecordWriter, Value, records};
use crate::error::OutputError;
use crate::format::{Compression, Format, detect};
use crate::input::{Batch, Source};

/// Checks that records of all these sources can go to one output of this name, before any is read.
///
/// # Errors
/// If they can't, saying what to name the output.
pub fn check_sources(path: &Path, sources: &[Source], added: &[Added]) -> Result<(), OutputError> {
    if is_folder(path) {
        return check_shards(path, sources, added);
    }
    let Some(first) = sources.first() else { return Ok(()) };
    if let Some(other) = sources.iter().find(|source| source.format != first.format) {
        return Err(OutputError::MixedFormats {
            path: path.to_owned(),
            first: (Arc::clone(&first.name), first.format),
            other: (Arc::clone(&other.name), other.format),
        });
    }
    check_alone(path, first, added)
}

/// Checks that records of one source can go to an output of this name.
pub(super) fn check_alone(path: &Path, first: &Source, added: &[Added]) -> Result<(), OutputError> {
    if !first.format.is_columnar() {
        return records::check_format(path, added, first.format, &first.name);
    }
    let (named, packed) = detect(path);
    let name = &first.name;
    let why = match named.filter(|&format| format != Format::Parquet) {
        Some(other) => {
            format!("named as {other}, but {name} is Parquet and rows come out as they went in: name it .parquet")
        }
        None if packed != Compression::None => {
            format!("{name} is Parquet, which is compressed inside and not once more: name it .parquet")
        }
        None => return Ok(()),
    };
    Err(OutputError::Unsupported { path: path.to_owned(), why })
}

/// Where records go.
///
/// Each record of each batch is copied, annotated or left out, in order.
pub enum AnyWriter {
    /// Copied from their batches.
    Bytes(Box<RecordWriter>),
    /// Copied from their files, row group by row group.
    Parquet(Box<ParquetWriter>),
    /// One output per source.
    Shards(Box<ShardWriter>),
}

impl AnyWriter {
    /// Starts an output for records of these sources, or continues behind a checkpoint. `added` are the fields that
    /// [`AnyWriter::annotate`] sets.
    ///
    /// # Errors
    /// As [`RecordWriter::create`] and [`ParquetWriter::create`]; and if the sources differ in format, or the output's name is that of
    /// another one.
    pub fn open(
        path: &Path,
        sources: &Arc<[Source]>,
        added: Vec<Added>,
        resumed: Option<Checkpoint>,
        options: &OutputOptions,
    ) -> Result<Self, OutputError> {
        check_sources(path, sources, &added)?;
        if is_folder(path) {
            return Ok(Self::Shards(Box::new(ShardWriter::open(path, sources, added, resumed, options)?)));
        }
        if sources.iter().any(|source| source.format.is_columnar()) {
            return Ok(Self::Parquet(Box::new(ParquetWriter::create(path, Arc::clone(sources), added, options)?)));
        }
        let writer = match resumed {
            Some(checkpoint) => RecordWriter::resume(path, added, checkpoint, options)?,
            None => RecordWriter::create(path, added, options)?,
        };
        Ok(Self::Bytes(Box::new(writer)))
    }

    /// Makes ready for the records of a batch.
    ///
    /// # Errors
    /// As [`RecordWriter::begin`].
    pub fn begin(&mut self, batch: &Batch) -> Result<(), OutputError> {
        match self {
            Self::Bytes(out) => out.begin(batch),
            Self::Parquet(_) => Ok(()),
            Self::Shards(out) => out.of_source(batch.start().source)?.begin(batch),
        }
    }

    /// Returns where records of a batch go.
    fn of(&mut self, batch: &Batch) -> Result<&mut Self, OutputError> {
        match self {
            Self::Shards(out) => out.of_source(batch.start().source),
            own => Ok(own),
        }
    }

    /// Says that the first source is number `first` in batches.
    pub(super) fn count_sources_from(&mut self, first: usize) {
        if let Self::Parquet(out) = self {
            out.count_sources_from(first);
        }
    }

    /// Leaves the next record out.
    ///
    /// # Errors
    /// If a source cannot be read, or the device is full or fails.
    pub fn leave_out(&mut self, batch: &Batch) -> Result<(), OutputError> {
        match self.of(batch)? {
            Self::Bytes(_) | Self::Shards(_) => Ok(()),
            Self::Parquet(out) => out.decide(batch.start().source, None),
        }
    }

    /// Writes record `i`, which is the next one, as it is.
    ///
    /// # Errors
    /// If a source cannot be read, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`, or fields were to be added.
    pub fn copy(&mut self, batch: &Batch, i: usize) -> Result<(), OutputError> {
        match self.of(batch)? {
            Self::Bytes(out) => out.copy(batch, i),
            Self::Parquet(out) if out.replaces_text() => {
                let text = String::from_utf8_lossy(batch.raw(i));
                out.decide(batch.start().source, Some(&[Value::Text(&text)]))
            }
            Self::Parquet(out) => out.decide(batch.start().source, Some(&[])),
            Self::Shards(_) => Ok(()),
        }
    }

    /// Writes record `i`, which is the next one, with another text; [`Added::own_text`] is then the only field that is set.
    ///
    /// # Errors
    /// If the text is a part of another field, a source cannot be read, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn replace(&mut self, batch: &Batch, i: usize, text: &str) -> Result<(), OutputError> {
        match self.of(batch)? {
            Self::Bytes(out) => out.replace(batch, i, text),
            Self::Parquet(out) => out.decide(batch.start().source, Some(&[Value::Text(text)])),
            Self::Shards(_) => Ok(()),
        }
    }

    /// Writes record `i`, which is the next one, with the added fields set to `values`.
    ///
    /// # Errors
    /// If the record has no end to add them at, a source cannot be read, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`, or the values are not those of the added fields.
    pub fn annotate(&mut self, batch: &Batch, i: usize, values: &[Value<'_>]) -> Result<(), OutputError> {
        match self.of(batch)? {
            Self::Bytes(out) => out.annotate(batch, i, values),
            Self::Parquet(out) => out.decide(batch.start().source, Some(values)),
            Self::Shards(_) => Ok(()),
        }
    }

    /// Writes record `i`, which is the next one and could not be read, as it is: added fields are null where the record has room for them.
    ///
    /// # Errors
    /// If a source cannot be read, or the device is full or fails.
    pub fn pass_through(&mut self, batch: &Batch, i: usize) -> Result<(), OutputError> {
        match self.of(batch)? {
            Self::Bytes(out) => out.pass_through(batch, i),
            Self::Parquet(out) => out.pass_through(batch.start().source),
            Self::Shards(_) => Ok(()),
        }
    }

    /// As [`RecordWriter::keep_partial`]; a Parquet file's footer comes last, so a part of one is of no use.
    pub fn keep_partial(&mut self) {
        match self {
            Self::Bytes(out) => out.keep_partial(),
            Self::Parquet(_) => {}
            Self::Shards(out) => out.keep_partial(),
        }
    }

    /// As [`RecordWriter::checkpoint`]; `None` where the output cannot be resumed.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn checkpoint(&mut self) -> Result<Option<Checkpoint>, OutputError> {
        match self {
            Self::Bytes(out) => out.checkpoint().map(Some),
            Self::Parquet(_) => Ok(None),
            Self::Shards(out) => out.checkpoint(),
        }
    }

    /// Makes ready for the last checkpoint: there are no more records.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn end(&mut self) -> Result<(), OutputError> {
        match self {
            Self::Shards(out) => out.complete_all(),
            _ => Ok(()),
        }
    }

    /// Completes the output, which does not appear yet.
    pub(super) fn complete(self) -> Result<(), OutputError> {
        match self {
            Self::Bytes(out) => out.complete()?.complete(),
            Self::Parquet(out) => out.complete()?.complete(),
            Self::Shards(_) => Ok(()),
        }
    }

    /// Lets the output appear under its name.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn finish(self) -> Result<(), OutputError> {
        match self {
            Self::Bytes(out) => out.finish(),
            Self::Parquet(out) => out.finish(),
            Self::Shards(out) => out.finish(),
        }
    }
}
