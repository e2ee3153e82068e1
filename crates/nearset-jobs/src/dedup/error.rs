//! Why a run ends without its output.

use std::path::PathBuf;
use std::sync::Arc;

use nearset::filter::InsertError;
use nearset::plan::PlanError;
use nearset::spec::SpecError;
use nearset::{DecodeError, ItemError, ShinglingError};

use crate::filter_file::FilterFileError;
use nearset_records::error::{InputError, OutputError, RecordError};

/// Why a run ends without its output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum DedupError {
    #[error(transparent)]
    Wanted(#[from] PlanError),
    #[error(transparent)]
    Shingling(#[from] ShinglingError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{0} ({cure})", cure = .0.cure())]
    Record(RecordError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Filter(#[from] FilterFileError),
    #[error("the filter cannot grow: {0}")]
    Grow(InsertError),
    #[error("{}: holds no texts ({cause}): only filters over shingles can be used with --against", path.display())]
    AgainstKind { path: PathBuf, cause: ItemError },
    #[error(
        "{what} has changed since the run that is to be resumed (it was {was}, it is {is}): change it back, or start \
         again without --resume, with --force"
    )]
    Changed { what: String, was: String, is: String },
    #[error(
        "{}: an unfinished run left its state here: go on with --resume, or start again with --force",
        folder.display()
    )]
    Unfinished { folder: PathBuf },
    #[error(
        "{}: the state of the unfinished run is damaged, or another version's ({cause}): start again without --resume, with --force",
        path.display()
    )]
    BadState { path: PathBuf, cause: String },
    #[error("{}: the saved filter is damaged ({cause}): start again without --resume, with --force", path.display())]
    BadSnapshot { path: PathBuf, cause: DecodeError },
    #[error("{name} is named twice among the outputs: give each its own file", name = path.display())]
    SameOutput { path: PathBuf },
    #[error("stopped{}", if *.resumable { ": go on with the same command and --resume" } else { "; nothing was written" })]
    Interrupted { resumable: bool },
    #[error("the reading thread died: this is a bug in nearset")]
    ReaderDied,
    #[error(
        "a thread died over the records from {name}:{line} on: this is a bug in nearset; please report it with them"
    )]
    WorkerDied { name: Arc<str>, line: u64 },
}

// By hand, so that what the message already holds is not printed once more as its source.
impl From<RecordError> for DedupError {
    fn from(error: RecordError) -> Self {
        DedupError::Record(error)
    }
}

impl From<SpecError> for DedupError {
    fn from(error: SpecError) -> Self {
        DedupError::Grow(error.into())
    }
}

impl From<InsertError> for DedupError {
    fn from(error: InsertError) -> Self {
        DedupError::Grow(error)
    }
}
