//! Why a run ends without its output.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nearset::filter::InsertError;
use nearset::plan::PlanError;
use nearset::spec::SpecError;
use nearset::{DecodeError, ItemError, ShinglingError};
use nearset_records::{InputError, OutputError, RecordError};

use crate::filter_file::FilterFileError;

/// Why a run ends without its output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RunError {
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
    #[error("{}: no filter is built that could be saved: build one from the output", path.display())]
    NothingToSave { path: PathBuf },
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
    #[error("{name}:{line}: the record cannot be read again to be compared ({cause}): did the file change meanwhile?")]
    ReadAgain { name: Arc<str>, line: u64, cause: String },
    #[error(
        "the copy of compressed or piped texts in {}: {cause}: make room there (for temporary files, set TMPDIR to a folder that has \
         it), or unpack the inputs first, which are then read in place",
        folder.display()
    )]
    Scratch { folder: PathBuf, cause: io::Error },
    #[error("an input has changed while it was read twice: nothing was written; run it again when the file is at rest")]
    InputChanged,
    #[error("{name}: {why}, and a pipe can't be read twice: save it to a file first")]
    Pipe { name: Arc<str>, why: &'static str },
    #[error("more than 2^32 - 2 records: split the corpus")]
    TooMany,
}

impl RunError {
    /// The end of a run that was asked to stop.
    pub(crate) const STOPPED: Self = Self::Interrupted { resumable: false };
}

// By hand, so that what the message already holds is not printed once more as its source.
impl From<RecordError> for RunError {
    fn from(error: RecordError) -> Self {
        RunError::Record(error)
    }
}

impl From<SpecError> for RunError {
    fn from(error: SpecError) -> Self {
        RunError::Grow(error.into())
    }
}

impl From<InsertError> for RunError {
    fn from(error: InsertError) -> Self {
        RunError::Grow(error)
    }
}
