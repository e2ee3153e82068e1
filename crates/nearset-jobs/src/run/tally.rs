//! What is counted as records go by.

use nearset_records::{Source, chain};
use nearset_view::run::SourceSummary;
use serde::{Deserialize, Serialize};

use super::samples::Samples;
use super::{OnError, RunError};

/// Errors that are kept word by word.
const SHOWN_ERRORS: usize = 20;

/// Everything that is counted in order, and that a resumed run takes over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub records: u64,
    /// Bytes of records, line ends counted as one: the same however the records are split over files.
    pub bytes: u64,
    pub kept: u64,
    pub near: u64,
    /// Of those near, how many are less near than wanted, and were marked.
    #[serde(default)]
    pub marked: u64,
    /// By filter.
    pub against: Vec<u64>,
    pub faulty: u64,
    pub errors: Errors,
    pub sources: Vec<SourceSummary>,
    pub next_checkpoint: u64,
    pub checkpoints: u64,
    pub samples: Samples,
}

impl Tally {
    /// Nothing yet.
    pub fn new(sources: &[Source], against: usize, samples: Samples) -> Self {
        let sources = sources.iter().map(|source| SourceSummary::new(&*source.name)).collect();
        Self { against: vec![0; against], sources, samples, ..Self::default() }
    }
}

/// What could not be read: the first of it word by word, the rest counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Errors {
    pub shown: Vec<String>,
    pub more: u64,
}

impl Errors {
    pub fn push(&mut self, error: &(dyn std::error::Error + 'static)) {
        if self.shown.len() < SHOWN_ERRORS {
            self.shown.push(chain(error));
        } else {
            self.more += 1;
        }
    }

    /// Refuses to call it done if all records were left out: a field was misspelt, say.
    pub fn expect_readable(&self, on_error: OnError, records: u64, faulty: u64) -> Result<(), RunError> {
        match self.shown.first() {
            Some(first) if records == faulty && on_error != OnError::Keep => {
                Err(RunError::NothingReadable { records, first: first.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of a record, its line end counted as one byte whether it is there or not.
pub(crate) fn record_bytes(raw: &[u8]) -> u64 {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    raw.strip_suffix(b"\r").unwrap_or(raw).len() as u64 + 1
}
