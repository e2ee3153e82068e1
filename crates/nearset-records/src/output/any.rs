//! Kept records in whatever format their sources have.

use std::path::Path;
use std::sync::Arc;

use super::{Added, Checkpoint, OutputOptions, ParquetWriter, RecordWriter, Value, records};
use crate::error::OutputError;
use crate::format::{Compression, Format, detect};
use crate::input::{Batch, Source};

/// Checks that records of all these sources can go to one output of this name, before any is read.
///
/// # Errors
/// If they can't, saying what to name the output.
pub fn check_sources(path: &Path, sources: &[Source], added: &[Added]) -> Result<(), OutputError> {
    let Some(first) = sources.first() else { return Ok(()) };
    if let Some(other) = sources.iter().find(|source| source.format != first.format) {
        return Err(OutputError::MixedFormats {
            path: path.to_owned(),
            first: (Arc::clone(&first.name), first.format),
            other: (Arc::clone(&other.name), other.format),
        });
    }
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
        }
    }

    /// Leaves the next record out.
    ///
    /// # Errors
    /// If a source cannot be read, or the device is full or fails.
    pub fn leave_out(&mut self, batch: &Batch) -> Result<(), OutputError> {
        match self {
            Self::Bytes(_) => Ok(()),
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
        match self {
            Self::Bytes(out) => out.copy(batch, i),
            Self::Parquet(out) if out.replaces_text() => self.replace(batch, i, &String::from_utf8_lossy(batch.raw(i))),
            Self::Parquet(out) => out.decide(batch.start().source, Some(&[])),
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
        match self {
            Self::Bytes(out) => out.replace(batch, i, text),
            Self::Parquet(out) => out.decide(batch.start().source, Some(&[Value::Text(text)])),
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
        match self {
            Self::Bytes(out) => out.annotate(batch, i, values),
            Self::Parquet(out) => out.decide(batch.start().source, Some(values)),
        }
    }

    /// As [`RecordWriter::keep_partial`]; a Parquet file's footer comes last, so a part of one is of no use.
    pub fn keep_partial(&mut self) {
        if let Self::Bytes(out) = self {
            out.keep_partial();
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
        }
    }
}
