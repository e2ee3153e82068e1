//! Records kept, and the list of those that are not.

use std::path::Path;
use std::sync::Arc;

use nearset_records::error::{OutputError, RecordError};
use nearset_records::input::{Batch, Source};
use nearset_records::output::{Added, AddedKind, AnyWriter, OutputFile, OutputOptions, Value, json_string};

/// The fields that annotating adds.
fn added() -> Vec<Added> {
    vec![
        Added::new("near_duplicate", AddedKind::Bool),
        Added::new("duplicate_of", AddedKind::Text),
        Added::new("similarity", AddedKind::Number),
    ]
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict<'a> {
    Kept,
    Near { of: &'a str, similarity: f64 },
    Faulty(&'a RecordError),
}

/// Outputs of a run.
pub(super) struct Outputs {
    out: Option<AnyWriter>,
    removed: Option<OutputFile>,
    annotate: bool,
    /// What a removed record is near.
    reason: &'static str,
    line: Vec<u8>,
}

impl Outputs {
    pub fn open(
        out: Option<&Path>,
        removed: Option<&Path>,
        annotate: bool,
        reason: &'static str,
        sources: &Arc<[Source]>,
        force: bool,
    ) -> Result<Self, OutputError> {
        let mut options = OutputOptions::protecting(sources);
        options.force = force;
        let added = if annotate { added() } else { Vec::new() };
        Ok(Self {
            out: out.map(|path| AnyWriter::open(path, sources, added, None, &options)).transpose()?,
            removed: removed.map(|path| OutputFile::create(path, &options)).transpose()?,
            annotate,
            reason,
            line: Vec::new(),
        })
    }

    /// Makes ready for the records of a batch.
    pub fn begin(&mut self, batch: &Batch) -> Result<(), OutputError> {
        self.out.as_mut().map_or(Ok(()), |out| out.begin(batch))
    }

    /// Writes record `i`, the next one of the batch.
    pub fn record(&mut self, batch: &Batch, i: usize, id: &str, verdict: Verdict<'_>) -> Result<(), OutputError> {
        if let Some(out) = &mut self.out {
            match verdict {
                Verdict::Kept if self.annotate => {
                    out.annotate(batch, i, &[Value::Bool(false), Value::Null, Value::Null])?;
                }
                Verdict::Near { of, similarity } if self.annotate => {
                    out.annotate(batch, i, &[Value::Bool(true), Value::Text(of), Value::Number(similarity)])?;
                }
                Verdict::Kept => out.copy(batch, i)?,
                Verdict::Near { .. } | Verdict::Faulty(_) => out.leave_out(batch)?,
            }
        }
        match verdict {
            Verdict::Kept => Ok(()),
            _ => self.removal(batch, i, id, verdict),
        }
    }

    fn removal(&mut self, batch: &Batch, i: usize, id: &str, verdict: Verdict<'_>) -> Result<(), OutputError> {
        let Some(removed) = &mut self.removed else { return Ok(()) };
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"id\":");
        json_string(id, line);
        line.extend_from_slice(b",\"file\":");
        json_string(batch.name(), line);
        line.extend_from_slice(format!(",\"line\":{}", batch.line(i)).as_bytes());
        let unreadable;
        let reason = match verdict {
            Verdict::Near { of, similarity } => {
                line.extend_from_slice(b",\"near\":");
                json_string(of, line);
                line.extend_from_slice(format!(",\"similarity\":{similarity}").as_bytes());
                self.reason
            }
            Verdict::Faulty(error) => {
                unreadable = format!("unreadable: {}", error.fault);
                &unreadable
            }
            Verdict::Kept => "",
        };
        line.extend_from_slice(b",\"reason\":");
        json_string(reason, line);
        line.extend_from_slice(b"}\n");
        removed.write(line)
    }

    /// Lets the outputs appear under their names.
    pub fn finish(self) -> Result<(), OutputError> {
        if let Some(removed) = self.removed {
            removed.finish()?;
        }
        self.out.map_or(Ok(()), AnyWriter::finish)
    }
}
