//! Why a run ends without its output.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nearset::InsertError;
use nearset::plan::PlanError;
use nearset::spec::SpecError;
use nearset::{DecodeError, ItemError};
use nearset_records::{Cure, InputError, OutputError, RecordError, Source};

use nearset_view::words;

use crate::filter_file::FilterFileError;
use crate::library::LibraryError;

/// Why a run ends without its output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RunError {
    #[error(transparent)]
    Wanted(#[from] PlanError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Filter(#[from] FilterFileError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("the filter cannot grow")]
    Grow(#[source] InsertError),
    #[error("{}: holds no texts: only filters over shingles can tell what is near them", path.display())]
    AgainstKind {
        path: PathBuf,
        #[source]
        cause: ItemError,
    },
    #[error("{what} has changed since the run that is to be resumed: it was {was}, it is {is}")]
    Changed { what: String, was: String, is: String },
    #[error("{}: an unfinished run left its state here", folder.display())]
    Unfinished { folder: PathBuf },
    #[error("{}: the saved filter is damaged", path.display())]
    BadSnapshot {
        path: PathBuf,
        #[source]
        cause: DecodeError,
    },
    #[error("{name} is named twice among the outputs: give each its own file", name = path.display())]
    SameOutput { path: PathBuf },
    #[error("stopped; {}", kept_so_far(*resumable, *first_checkpoint))]
    Interrupted {
        /// Whether there is a checkpoint to go on from.
        resumable: bool,
        /// If there is none yet, the bytes of records behind which the first one comes.
        first_checkpoint: Option<u64>,
    },
    #[error("the reading thread died: this is a bug in nearset")]
    ReaderDied,
    #[error(
        "a thread died over the records from {name}:{line} on: this is a bug in nearset; please report it with them"
    )]
    WorkerDied { name: Arc<str>, line: u64 },
    #[error("{name}:{line}: the record cannot be read again to be compared: did the file change meanwhile?")]
    ReadAgain {
        name: Arc<str>,
        line: u64,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    #[error("scratch space in {}", folder.display())]
    Scratch {
        folder: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}: there is no such folder for temporary files", folder.display())]
    NoScratchFolder { folder: PathBuf },
    #[error(
        "{} could be read, so nothing was written; the first: {first}",
        if *records == 1 { "not one record".to_owned() } else { format!("none of {} records", words::count(*records)) }
    )]
    NothingReadable { records: u64, first: String },
    #[error("an input has changed while it was read twice: nothing was written; run it again when the file is at rest")]
    InputChanged,
    #[error("{name}: {why}, and a pipe can't be read twice")]
    Pipe { name: Arc<str>, why: &'static str, cure: Cure },
    #[error(
        "{name}: {why}, and the server states neither an ETag nor a time of change, so nothing tells whether it changes between two readings"
    )]
    Unversioned { name: Arc<str>, why: &'static str, cure: Cure },
    #[error(
        "{} of memory are needed if all of {} {what} are kept, and {} are there",
        words::bytes(*needed), words::count(*records), words::bytes(*available)
    )]
    Memory { needed: u64, records: u64, what: &'static str, available: u64 },
    #[error(
        "{} of memory are taken behind {} records, which is all there is; {}",
        words::bytes(*taken), words::count(*records),
        if *resumable { "what was done so far is kept" } else { "nothing was written" }
    )]
    MemoryTaken { taken: u64, records: u64, resumable: bool },
    #[error(
        "{} of what stays from round to round are taken behind {} records, and a round needs a quarter of the {} that there are; nothing was \
         written",
        words::bytes(*taken), words::count(*records), words::bytes(*available)
    )]
    MemoryKept { taken: u64, records: u64, available: u64 },
    #[error(
        "{} of scratch space are needed in {}, where {} are free",
        words::bytes(*needed), folder.display(), words::bytes(*free)
    )]
    NoRoom { needed: u64, folder: PathBuf, free: u64 },
    #[error("no record has the field {field:?} that says which to keep: is it spelt so?")]
    NoField { field: String },
    #[error("{name}: holds no records, and so nothing to look for: is this the right file?")]
    EmptyBenchmark { name: Arc<str> },
    #[error(
        "{name}: no record has {}, and so nothing to look for{}",
        if wanted.is_empty() { "a field that is usual for questions or texts".to_owned() } else { wanted.join(", ") },
        if found.is_empty() { String::new() } else { format!("; the fields there are {}", found.join(", ")) }
    )]
    NoEvidence { name: Arc<str>, wanted: Vec<String>, found: Vec<String> },
    #[error(
        "{} too short to decide, and so there is nothing to look for",
        if *items == 1 { "the one item is".to_owned() } else { format!("all of {} items are", words::count(*items)) }
    )]
    TooShort { items: u64 },
    #[error("{name}: the item {id} has nothing in the fields that others have")]
    NoEvidenceInItem { name: Arc<str>, id: String },
    #[error("{}: {why}", path.display())]
    BadBenchmark { path: PathBuf, why: &'static str },
    #[error("{}{}: {why}", path.display(), if *line > 0 { format!(":{line}") } else { String::new() })]
    BadDecisions { path: PathBuf, line: u64, why: String },
    #[error("the id {id:?} is marked, and two records have it: which one was meant? Name a field of unique ids")]
    AmbiguousId { id: String },
    #[error("{what} is for texts that are compared by their Jaccard similarity, not for {metric}")]
    TextsOnly { what: &'static str, metric: String },
    #[error("near {near}: {}", if *is_similarity { "a similarity is above 0 and at most 1" } else { "edits are counted in whole numbers" })]
    NotNear { near: f64, is_similarity: bool },
    #[error("more than 2^32 - 2 records: split the corpus")]
    TooMany,
}

impl RunError {
    /// The end of a run that was asked to stop.
    pub(crate) const STOPPED: Self = Self::Interrupted { resumable: false, first_checkpoint: None };

    /// A source that would have to be read twice, and is not [`Source::is_rereadable`].
    pub(crate) fn once(source: &Source, why: &'static str, cure: Cure) -> Self {
        let name = Arc::clone(&source.name);
        if source.is_remote() { RunError::Unversioned { name, why, cure } } else { RunError::Pipe { name, why, cure } }
    }

    /// Returns what can be done about it.
    pub fn cure(&self) -> Option<Cure> {
        match self {
            RunError::Input(error) => error.cure(),
            RunError::Record(error) => error.cure(),
            RunError::Output(error) => error.cure(),
            RunError::Filter(error) => error.cure(),
            RunError::Library(error) => error.cure(),
            RunError::Changed { .. } => Some(Cure::ChangeBack),
            RunError::Unfinished { .. } => Some(Cure::ResumeOrStartAgain),
            RunError::BadSnapshot { .. } => Some(Cure::StartAgain),
            RunError::Interrupted { resumable: true, .. } => Some(Cure::Resume),
            RunError::NoScratchFolder { .. } => Some(Cure::CreateScratch),
            RunError::Scratch { .. } | RunError::NoRoom { .. } => Some(Cure::MakeRoom),
            RunError::Memory { .. } | RunError::MemoryTaken { .. } | RunError::MemoryKept { .. } => {
                Some(Cure::LessMemory)
            }
            RunError::Pipe { cure, .. } | RunError::Unversioned { cure, .. } => Some(*cure),
            RunError::NoEvidence { .. } => Some(Cure::NameEvidence),
            RunError::NoEvidenceInItem { .. } => Some(Cure::Skip),
            _ => None,
        }
    }
}

/// Returns what is left of a run that was stopped.
fn kept_so_far(resumable: bool, first_checkpoint: Option<u64>) -> String {
    match first_checkpoint {
        _ if resumable => "what was done so far is kept".to_owned(),
        Some(bytes) => format!(
            "nothing was written, and there is nothing to resume: the first checkpoint comes behind {} of records",
            words::bytes(bytes)
        ),
        None => "nothing was written".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_run_says_whether_there_is_anything_to_resume() {
        let said = |resumable, first_checkpoint| RunError::Interrupted { resumable, first_checkpoint }.to_string();
        assert_eq!(said(true, None), "stopped; what was done so far is kept");
        assert_eq!(said(false, None), "stopped; nothing was written");
        assert_eq!(
            said(false, Some(1 << 30)),
            "stopped; nothing was written, and there is nothing to resume: the first checkpoint comes behind 1.1 GB of records"
        );
    }
}
