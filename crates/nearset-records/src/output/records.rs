//! Kept records, byte for byte as they went in.
//!
//! Invariant: the output is the first source's preamble and the kept records, in the order they are given; the only byte
//! added is a line feed where a source ended without one and another record follows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::annotate::{self, Columns, Value, json_string};
use super::{Added, OutputFile, OutputOptions, is_written_through};
use crate::error::{InputError, OutputError, RecordError, RecordFault};
use crate::extract::strip_line_end;
use crate::format::{Adding, Compression, Format, detect};
use crate::input::{Batch, Preamble};

/// How far an output has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// The length of the partial file.
    pub length: u64,
    /// Whether the preamble has been written.
    pub started: bool,
    /// Whether the last record lacks its line end.
    pub open_line: bool,
    /// Which of several outputs it is; those before are complete.
    #[serde(default)]
    pub shard: usize,
}

/// The first source that records came from, which all others must be like.
struct First {
    name: Arc<str>,
    format: Format,
    preamble: Arc<Preamble>,
}

/// Writes records of one format. Parquet has its own writer.
pub struct RecordWriter {
    out: OutputFile,
    /// The name that the output was given.
    path: PathBuf,
    added: Vec<Added>,
    /// The preamble that was written, and whose it is.
    first: Option<First>,
    /// Where the added fields go in a table's rows.
    columns: Columns,
    started: bool,
    open_line: bool,
    rows: u64,
    scratch: Vec<u8>,
}

impl RecordWriter {
    /// Starts an output. `added` are the fields that [`RecordWriter::annotate`] sets.
    ///
    /// # Errors
    /// As [`OutputFile::create`]; and if the extension is that of another kind of file, or of one that cannot be written
    /// this way.
    pub fn create(path: &Path, added: Vec<Added>, options: &OutputOptions) -> Result<Self, OutputError> {
        Ok(Self::over(path, OutputFile::create(path, options)?, added, Checkpoint::default()))
    }

    /// Goes on behind a checkpoint.
    ///
    /// # Errors
    /// As [`OutputFile::resume`].
    pub fn resume(
        path: &Path,
        added: Vec<Added>,
        checkpoint: Checkpoint,
        options: &OutputOptions,
    ) -> Result<Self, OutputError> {
        Ok(Self::over(path, OutputFile::resume(path, checkpoint.length, options)?, added, checkpoint))
    }

    fn over(path: &Path, out: OutputFile, added: Vec<Added>, checkpoint: Checkpoint) -> Self {
        let Checkpoint { started, open_line, .. } = checkpoint;
        let columns = Columns::default();
        Self {
            out,
            path: path.to_owned(),
            added,
            first: None,
            columns,
            started,
            open_line,
            rows: 0,
            scratch: Vec::new(),
        }
    }

    /// As [`OutputFile::keep_partial`].
    pub fn keep_partial(&mut self) {
        self.out.keep_partial();
    }

    fn unsupported(&self, why: String) -> OutputError {
        OutputError::Unsupported { path: self.path.clone(), why }
    }

    /// Makes ready for the records of a batch; the first one's preamble is written. To be called once per batch, also when
    /// none of its records is kept.
    ///
    /// # Errors
    /// If the batch's format is not the output's, or its columns are not those of the batches before.
    pub fn begin(&mut self, batch: &Batch) -> Result<(), OutputError> {
        let batch = batch.written();
        let preamble = batch.preamble();
        if let Some(first) = &self.first {
            // A batch without a record and a header is one of a source that broke off.
            if Arc::ptr_eq(&first.preamble, preamble) || batch.is_empty() && preamble.raw.is_empty() {
                return Ok(());
            }
            if first.format != batch.format() {
                return Err(OutputError::MixedFormats {
                    path: self.path.clone(),
                    first: (Arc::clone(&first.name), first.format),
                    other: (Arc::clone(batch.name()), batch.format()),
                });
            }
            if !first.format.layout().is_alike(&first.preamble, preamble) {
                return Err(OutputError::HeaderMismatch {
                    path: self.path.clone(),
                    name: Arc::clone(batch.name()),
                    first: Arc::clone(&first.name),
                });
            }
            return Ok(());
        }
        check_format(&self.path, &self.added, batch.format(), batch.name())?;
        self.columns = Columns::new(&preamble.columns, &self.added)
            .map_err(|fault| self.unsupported(format!("{}: {fault}", batch.name())))?;
        let (name, format) = (Arc::clone(batch.name()), batch.format());
        self.first = Some(First { name, format, preamble: Arc::clone(preamble) });
        if self.started {
            return Ok(());
        }
        self.started = true;
        let raw = &preamble.raw;
        if format.layout().written_as().is_some() {
            return Ok(());
        }
        if let (Some(delimiter), false) = (format.delimiter(), self.added.is_empty()) {
            self.scratch.clear();
            self.columns
                .header(raw, delimiter, &self.added, &mut self.scratch)
                .map_err(|cause| InputError::BadHeader { name: Arc::clone(batch.name()), cause })?;
            self.out.write(&self.scratch)?;
        } else {
            self.out.write(raw)?;
        }
        self.open_line = format.delimiter().is_some() && !raw.ends_with(b"\n");
        Ok(())
    }

    /// Closes a line that its source left open.
    fn next_record(&mut self, batch: &Batch, record: &[u8]) -> Result<(), OutputError> {
        if self.open_line {
            self.out.write(b"\n")?;
        }
        self.open_line = batch.format().layout().is_lines() && !record.ends_with(b"\n");
        self.rows += 1;
        Ok(())
    }

    /// Writes record `i` as it is.
    ///
    /// # Errors
    /// If the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn copy(&mut self, batch: &Batch, i: usize) -> Result<(), OutputError> {
        let batch = batch.written();
        if batch.format().layout().written_as().is_some() {
            return self.write_document(batch, i, None, &[]);
        }
        let record = batch.raw(i);
        self.next_record(batch, record)?;
        self.out.write(record)
    }

    /// Writes record `i` with another text, which [`Added::own_text`] names.
    ///
    /// # Errors
    /// If the text is a part of another field, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`.
    pub fn replace(&mut self, batch: &Batch, i: usize, text: &str) -> Result<(), OutputError> {
        let batch = batch.written();
        let layout = batch.format().layout();
        if layout.written_as().is_some() {
            return self.write_document(batch, i, Some(text), &[]);
        }
        if layout.adding() != Adding::Nowhere {
            return self.annotate(batch, i, &[Value::Text(text)]);
        }
        let record = batch.raw(i);
        self.next_record(batch, record)?;
        self.out.write(text.as_bytes())?;
        self.out.write(&record[strip_line_end(record).len()..])
    }

    /// Writes record `i` with the added fields set to `values`, in the order they were named. Those of an earlier run are replaced where they
    /// stand.
    ///
    /// # Errors
    /// If the record has no end to add them at, it has a field of such a name that no earlier run has added, or the device is full or fails.
    ///
    /// # Panics
    /// If there is no record `i`, or there are more or fewer values than names.
    pub fn annotate(&mut self, batch: &Batch, i: usize, values: &[Value<'_>]) -> Result<(), OutputError> {
        let batch = batch.written();
        assert_eq!(values.len(), Added::values(&self.added), "a value for each added field");
        if batch.format().layout().written_as().is_some() {
            return self.write_document(batch, i, None, values);
        }
        let record = batch.raw(i);
        self.next_record(batch, record)?;
        self.scratch.clear();
        let written = match batch.format().delimiter() {
            Some(delimiter) => self.columns.row(record, delimiter, &self.added, values, &mut self.scratch),
            None => annotate::json_object(record, &self.added, values, &mut self.scratch),
        };
        written.map_err(|fault| self.record_error(batch, i, fault))?;
        self.out.write(&self.scratch)
    }

    /// Writes record `i`, which could not be read, as it is; added fields are null where it has room for them.
    pub(super) fn pass_through(&mut self, batch: &Batch, i: usize) -> Result<(), OutputError> {
        let batch = batch.written();
        let is_added = !self.added.is_empty() && !self.added.iter().any(|added| added.is_own);
        if !is_added || batch.format().layout().written_as().is_some() {
            return self.copy(batch, i);
        }
        let nulls = vec![Value::Null; Added::values(&self.added)];
        match self.annotate(batch, i, &nulls) {
            // It is no object, or no row; the line before it is closed.
            Err(OutputError::Record(_)) => self.out.write(batch.raw(i)),
            written => written,
        }
    }

    fn record_error(&self, batch: &Batch, i: usize, fault: RecordFault) -> RecordError {
        RecordError { name: Arc::clone(batch.name()), line: batch.line(i), fault }
    }

    /// `{"id": file, "text": content}` and the added fields.
    fn write_document(
        &mut self,
        batch: &Batch,
        i: usize,
        text: Option<&str>,
        values: &[Value<'_>],
    ) -> Result<(), OutputError> {
        let own = || {
            std::str::from_utf8(batch.raw(i))
                .map_err(|error| self.record_error(batch, i, RecordFault::InvalidUtf8 { offset: error.valid_up_to() }))
        };
        let text = text.map_or_else(own, Ok)?;
        let mut document = b"{\"id\":".to_vec();
        json_string(batch.name(), &mut document);
        document.extend_from_slice(b",\"text\":");
        json_string(text, &mut document);
        document.extend_from_slice(b"}\n");
        self.scratch.clear();
        let added = if values.is_empty() { &[][..] } else { &self.added };
        annotate::json_object(&document, added, values, &mut self.scratch)
            .map_err(|fault| self.record_error(batch, i, fault))?;
        self.out.write(&self.scratch)
    }

    /// Makes everything written so far durable and says where that is.
    ///
    /// # Errors
    /// If the device is full or fails, or the output cannot be resumed.
    pub fn checkpoint(&mut self) -> Result<Checkpoint, OutputError> {
        if let Some(First { format, .. }) = self.counted_first() {
            let (path, what) = (self.out.path().to_owned(), format.name());
            return Err(OutputError::NotResumable { path, what });
        }
        let length = self.out.checkpoint()?;
        Ok(Checkpoint { length, started: self.started, open_line: self.open_line, shard: 0 })
    }

    fn counted_first(&self) -> Option<&First> {
        self.first.as_ref().filter(|first| first.format.layout().counts_first())
    }

    /// Lets the output appear under its name.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn finish(self) -> Result<(), OutputError> {
        self.complete()?.finish()
    }

    /// Writes what comes last.
    pub(super) fn complete(mut self) -> Result<OutputFile, OutputError> {
        if let Some(first) = self.counted_first() {
            let counted = first.format.layout().counted(&first.preamble, self.rows);
            self.out.patch_start(&counted.map_err(|why| self.unsupported(why))?)?;
        }
        Ok(self.out)
    }
}

/// Checks that records of a format, with these fields added, can go to an output of this name. `name` is whose they are.
pub(super) fn check_format(path: &Path, added: &[Added], input: Format, name: &str) -> Result<(), OutputError> {
    let unsupported = |why| Err(OutputError::Unsupported { path: path.to_owned(), why });
    let (named, packed) = detect(path);
    let layout = input.layout();
    if layout.is_columnar() {
        return unsupported(format!("{name} is Parquet, which needs an output called .parquet"));
    }
    let wanted = layout.written_as().unwrap_or(input);
    if let Some(output) = named.filter(|&output| output != wanted) {
        return unsupported(format!(
            "named as {output}, but {name} is {input} and records come out as they went in: name it .{}",
            wanted.layout().extensions().first().unwrap_or(&wanted.layout().name())
        ));
    }
    if layout.counts_first() && packed == Compression::Npz {
        return unsupported(
            "arrays are read from .npz archives and not written to them: name one output .npy".to_owned(),
        );
    }
    if layout.counts_first() && packed != Compression::None {
        return unsupported(format!("the row count of {input} is known last, so it cannot be compressed"));
    }
    if layout.counts_first() && is_written_through(path) {
        return unsupported(format!("the row count of {input} is known last, so it needs a file: name one"));
    }
    if added.iter().any(|added| added.is_own) && layout.adding() == Adding::Nowhere && !layout.is_plain_text() {
        return unsupported(format!(
            "texts of {input} can't be written anew: cut JSONL, CSV, TSV, Parquet or plain text"
        ));
    }
    if added.iter().any(|added| !added.is_own) && wanted.layout().adding() == Adding::Nowhere {
        return unsupported(format!("{input} has no fields to add to: annotate JSONL, CSV, TSV or Parquet"));
    }
    Ok(())
}
