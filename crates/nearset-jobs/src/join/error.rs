//! Why a run ends without its output.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nearset::plan::PlanError;

use nearset_records::error::{InputError, OutputError, RecordError};

/// Why a run ends without its output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum JoinError {
    #[error(transparent)]
    Wanted(#[from] PlanError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{0} ({cure})", cure = .0.cure())]
    Record(RecordError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{name}:{line}: the record cannot be read again to be compared ({cause}): did the file change meanwhile?")]
    ReadAgain { name: Arc<str>, line: u64, cause: String },
    #[error(
        "the temporary copy of compressed or piped texts in {}: {cause}: set TMPDIR to a folder with room, or unpack the \
         inputs first, which are then read in place",
        folder.display()
    )]
    Spool { folder: PathBuf, cause: io::Error },
    #[error("{name}: {why}, and a pipe can't be read twice: save it to a file first")]
    Pipe { name: Arc<str>, why: &'static str },
    #[error("more than 2^32 - 2 records: split the corpus")]
    TooMany,
    #[error("{} is named twice among the outputs: give each its own file", path.display())]
    SameOutput { path: PathBuf },
    #[error("stopped; nothing was written")]
    Interrupted,
}

// By hand, so that what the message already holds is not printed once more as its source.
impl From<RecordError> for JoinError {
    fn from(error: RecordError) -> Self {
        JoinError::Record(error)
    }
}
