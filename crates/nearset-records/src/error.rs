//! What can go wrong with files: each error names the file and what was found, keeps its source, and has a cure.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nearset::ItemError;

use crate::cure::Cure;
use crate::format::{Format, KNOWN_PACKINGS, UnknownFormat, known_extensions};
use crate::remote::RemoteError;

/// Why an input cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum InputError {
    #[error("no input was given: name files, folders, globs, or - for standard input")]
    Nothing,
    #[error("an input has an empty name: is a variable of the shell not set?")]
    EmptyName,
    #[error("{pattern}: no file matches: check the path, and quote the pattern if the shell should not expand it")]
    NoMatch { pattern: String },
    #[error("{pattern}: not a valid glob pattern")]
    BadPattern {
        pattern: String,
        #[source]
        cause: glob::PatternError,
    },
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{name}: cannot be reached")]
    Remote {
        name: Arc<str>,
        #[source]
        cause: RemoteError,
    },
    #[error(
        "{name}: is packed with {packing}, which its name does not tell: name it so, as in .jsonl.{packing}, or name the object itself"
    )]
    PackedObject { name: Arc<str>, packing: &'static str },
    #[error("{}: the extension tells no format (known: {})", path.display(), known_extensions())]
    UnknownExtension { path: PathBuf },
    #[error(
        "{}: .{packing} is not unpacked: unpack it first and name the file it gives, or pipe that to - (read are {KNOWN_PACKINGS})",
        path.display()
    )]
    UnknownPacking { path: PathBuf, packing: &'static str },
    #[error(transparent)]
    UnknownFormat(#[from] UnknownFormat),
    #[error("{}: the folder holds no file of a known format (known: {})", path.display(), known_extensions())]
    EmptyFolder { path: PathBuf },
    #[error("{name}: Parquet is read from its end, so it cannot come compressed or through a pipe: save it to a file")]
    ParquetNeedsFile { name: Arc<str> },
    #[error(
        "{name}: the {packing} stream ends too early, after {read} uncompressed bytes: the file is cut off; fetch it \
         again, or recover the whole records before the cut with `{packing} -dc` and drop the last line"
    )]
    Truncated { name: Arc<str>, packing: &'static str, read: u64 },
    #[error("{name}: the {packing} stream is damaged after {read} uncompressed bytes")]
    Corrupt {
        name: Arc<str>,
        packing: &'static str,
        read: u64,
        #[source]
        cause: io::Error,
    },
    #[error("{name}: cannot read on after {read} bytes")]
    Read {
        name: Arc<str>,
        read: u64,
        #[source]
        cause: io::Error,
    },
    #[error(
        "{name}:{line}: a record longer than {limit} bytes: is this the right format? (in CSV, a quote that is never \
         closed swallows what follows)"
    )]
    RecordTooLong { name: Arc<str>, line: u64, limit: usize },
    #[error("{name}: may have more records behind line {line}, in a quoted cell that is never closed")]
    Swallowed { name: Arc<str>, line: u64 },
    #[error("{name}: no column is called {column:?}: there are {}{}", list(found), other_separator(found))]
    MissingColumn { name: Arc<str>, column: String, found: Vec<String> },
    #[error(
        "{name}: no column is called {fields:?}, and what is left of texts that are cut can't be put back into several"
    )]
    CutJoined { name: Arc<str>, fields: String },
    #[error("{name}: no record has the field {field:?} that is to be a part of its text: there are {}", list(found))]
    MissingPart { name: Arc<str>, field: String, found: Vec<String> },
    #[error("{name}: no record has the field {field:?} that is to be its id: there are {}", list(found))]
    MissingIdField { name: Arc<str>, field: String, found: Vec<String> },
    #[error("{name}: holds vectors, and {wanted} are needed here")]
    HoldsVectors { name: Arc<str>, wanted: &'static str },
    #[error("a file of ids names the records of one array, and {found} inputs are given: name one")]
    IdsOfOne { found: usize },
    #[error(
        "{name}: records of {format} have room for ids of their own, and a file of ids is for arrays: put them into a field"
    )]
    IdsInside { name: Arc<str>, format: Format },
    #[error(
        "{name}: {records} records{}, and {ids} ids: one id per record is needed, in the same order",
        if ids < records { " or more" } else { "" }
    )]
    WrongIds { name: Arc<str>, records: u64, ids: u64 },
    #[error("{name}: the header line is broken")]
    BadHeader {
        name: Arc<str>,
        #[source]
        cause: RecordFault,
    },
    #[error("{name}: {why}")]
    BadArray { name: Arc<str>, why: String },
    #[error("{name}: column {column:?} holds {found}, but {wanted} is needed")]
    ColumnType { name: Arc<str>, column: String, found: String, wanted: &'static str },
    #[error("{name}: not a readable Parquet file")]
    Parquet {
        name: Arc<str>,
        #[source]
        cause: parquet::errors::ParquetError,
    },
    #[error("{name}: only {found} bytes are there but the run stopped at byte {wanted}: the input has changed since")]
    ResumeBeyondEnd { name: Arc<str>, found: u64, wanted: u64 },
}

/// Why an output cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum OutputError {
    #[error("{}: is also an input ({}): writing would destroy it; choose another output", path.display(), input.display())]
    IsInput { path: PathBuf, input: PathBuf },
    #[error("{}: exists already", path.display())]
    Exists { path: PathBuf },
    #[error("{}: the folder {} does not exist: create it first", path.display(), folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("{}: {} is a file, not a folder: choose another name", path.display(), folder.display())]
    InFile { path: PathBuf, folder: PathBuf },
    #[error("{}: another run is writing to it: wait for it, or choose another output", path.display())]
    Busy { path: PathBuf },
    #[error("{}: is a folder: name a file", path.display())]
    IsFolder { path: PathBuf },
    #[error("{}: the extension tells no format (known: {})", path.display(), known_extensions())]
    UnknownExtension { path: PathBuf },
    #[error(
        "{}: .{packing} is not written: name it {KNOWN_PACKINGS}, or write to - and pipe that on", path.display()
    )]
    UnknownPacking { path: PathBuf, packing: &'static str },
    #[error("{}: filters and indexes are opened where they lie, so they are not packed: leave the last ending out", path.display())]
    PackedFilter { path: PathBuf },
    #[error("{}: no space left on the device; nothing was written under that name: free some and run again", path.display())]
    NoSpace { path: PathBuf },
    #[error("{}: permission denied: choose a folder you may write to", path.display())]
    NoPermission { path: PathBuf },
    #[error("{}: cannot write", path.display())]
    Write {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}: cannot go on from byte {wanted}, the file has {found}", path.display())]
    ResumeBeyondEnd { path: PathBuf, wanted: u64, found: u64 },
    #[error("{}: the state of the unfinished run is damaged, or another version's", path.display())]
    BadState {
        path: PathBuf,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    #[error("{}: {what} cannot be resumed", path.display())]
    NotResumable { path: PathBuf, what: &'static str },
    #[error("{}: {why}", path.display())]
    Unsupported { path: PathBuf, why: String },
    #[error(
        "{}: {} is {} and {} is {}, and records come out as they went in",
        path.display(), first.0, first.1, other.0, other.1
    )]
    MixedFormats { path: PathBuf, first: (Arc<str>, Format), other: (Arc<str>, Format) },
    #[error(
        "{}: the header of {name} differs from the first input's ({first}): give each kind of table its own output",
        path.display()
    )]
    HeaderMismatch { path: PathBuf, name: Arc<str>, first: Arc<str> },
    #[error("{}: cannot write Parquet", path.display())]
    Parquet {
        path: PathBuf,
        #[source]
        cause: parquet::errors::ParquetError,
    },
    #[error("{}: cannot be written", path.display())]
    Remote {
        path: PathBuf,
        #[source]
        cause: RemoteError,
    },
    #[error("{}: whether it is there already can't be told", path.display())]
    Unseen {
        path: PathBuf,
        #[source]
        cause: RemoteError,
    },
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl OutputError {
    /// Turns an I/O error on `path` into what it means to the user.
    pub fn from_io(path: &std::path::Path, cause: io::Error) -> Self {
        let path = path.to_owned();
        if let Some(cause) = cause.get_ref().and_then(|cause| cause.downcast_ref::<RemoteError>()) {
            return OutputError::Remote { path, cause: cause.clone() };
        }
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OutputError::NoSpace { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => OutputError::NoPermission { path },
            _ => OutputError::Write { path, cause },
        }
    }
}

/// A record that gives no item, where it is, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordError {
    /// The file's name.
    pub name: Arc<str>,
    /// The line that the record starts on, from 1; the row where there are no lines; 0 where the file is one record.
    pub line: u64,
    /// What is wrong.
    pub fault: RecordFault,
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RecordFault {
    #[error("column {column}: invalid JSON: {why}")]
    InvalidJson { column: usize, why: &'static str },
    #[error(
        "{found} instead of a JSON object: JSON Lines has one object per line; `jq -c '.[]'` makes such lines of an array"
    )]
    NotAnObject { found: &'static str },
    #[error(
        "a JSON object that goes on in the next line: JSON Lines has one object per line; `jq -c .` writes a file so"
    )]
    SpreadOverLines,
    #[error("no field {field:?}: there are {}", list(found))]
    MissingField { field: String, found: Vec<String> },
    #[error("no field {fields:?}, and what is left of texts that are cut can't be put back into several")]
    CutJoined { fields: String },
    #[error("field {field:?} is {found}, not {wanted}")]
    WrongType { field: String, found: &'static str, wanted: &'static str },
    #[error("invalid UTF-8 at byte {offset} of the record: convert the file to UTF-8")]
    InvalidUtf8 { offset: usize },
    #[error("column {column}: \\u{code:04x} is half of a surrogate pair and stands for no character")]
    LoneSurrogate { column: usize, code: u16 },
    #[error(
        "byte {offset} of the record: a quoted cell is followed by something other than a separator{}",
        if *lines > 1 { format!("; the record takes {lines} lines up to there") } else { String::new() }
    )]
    AfterQuote { offset: usize, lines: usize },
    #[error(
        "a quoted cell is never closed{}",
        if *lines > 1 { format!(", and takes in all {lines} lines from here to the end of the file") } else { String::new() }
    )]
    UnclosedQuote { lines: usize },
    #[error("{found} cells, but column {column:?} is number {wanted}")]
    MissingCell { column: String, wanted: usize, found: usize },
    #[error(
        "{found} cells, but the header names {columns} columns: put cells that contain the separator in quotes, or name the missing columns"
    )]
    ExtraCells { found: usize, columns: usize },
    #[error("{why}")]
    BadSequence { why: &'static str },
    #[error("a file of more than {} MB, which is not looked at: save it anew in fewer", limit >> 20)]
    FileTooLarge { limit: usize },
    #[cfg(feature = "pictures")]
    #[error(transparent)]
    Picture(#[from] nearset_pictures::PictureError),
    #[error("field {field:?}")]
    BadHex {
        field: String,
        #[source]
        cause: ItemError,
    },
    #[error("field {field:?}")]
    Unhashable {
        field: String,
        #[source]
        cause: ItemError,
    },
    #[error("field {field:?}: {found:?} is not a number")]
    BadNumber { field: String, found: String },
    #[error("field {field:?} is a part of another, which can't be written anew: move it to the top of the record")]
    Nested { field: String },
    #[error("column {column:?} is null or empty here")]
    Null { column: String },
    #[error(
        "field {field:?} is there already and holds {found}, which no earlier run of nearset has added: it would be overwritten; rename it \
         first"
    )]
    FieldTaken { field: String, found: &'static str },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.name, self.fault),
            line => write!(f, "{}:{line}: {}", self.name, self.fault),
        }
    }
}

// The place and the fault are one sentence, so the source is the fault's.
impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.fault.source()
    }
}

impl InputError {
    /// Returns whether no run goes on behind it, whatever is to be done with what is damaged: what can't be reached now may be there at another
    /// time, and ids that are not those of the records would name others.
    pub fn is_fatal(&self) -> bool {
        matches!(self, InputError::Remote { .. } | InputError::WrongIds { .. })
    }

    /// Turns an error of reading on, after so many bytes, into what it means to the user.
    pub fn from_io(name: &Arc<str>, read: u64, cause: io::Error) -> Self {
        let name = Arc::clone(name);
        match cause.get_ref().and_then(|cause| cause.downcast_ref::<RemoteError>()) {
            Some(cause) => InputError::Remote { name, cause: cause.clone() },
            None => InputError::Read { name, read, cause },
        }
    }

    /// Returns what can be done about it.
    pub fn cure(&self) -> Option<Cure> {
        match self {
            InputError::Unreadable { cause, .. } => Some(match cause.kind() {
                io::ErrorKind::NotFound => Cure::CheckPath,
                io::ErrorKind::PermissionDenied => Cure::MakeReadable,
                _ => Cure::CheckDisk,
            }),
            InputError::UnknownExtension { .. } => Some(Cure::NameFormat),
            InputError::Corrupt { read: 0, .. } => Some(Cure::RenameOrFetchAgain),
            InputError::Corrupt { .. } => Some(Cure::FetchAgain),
            InputError::Truncated { .. }
            | InputError::Read { .. }
            | InputError::RecordTooLong { .. }
            | InputError::Swallowed { .. } => Some(Cure::SkipRest),
            InputError::MissingColumn { found, .. } if !other_separator(found).is_empty() => None,
            InputError::MissingColumn { .. } => Some(Cure::NameField),
            InputError::CutJoined { .. } => Some(Cure::NameOneField),
            InputError::MissingPart { .. } => Some(Cure::NameField),
            InputError::MissingIdField { .. } => Some(Cure::NameIdField),
            InputError::HoldsVectors { .. } => Some(Cure::CompareAsVectors),
            InputError::ResumeBeyondEnd { .. } => Some(Cure::StartAgain),
            _ => None,
        }
    }
}

impl OutputError {
    /// Returns what can be done about it.
    pub fn cure(&self) -> Option<Cure> {
        match self {
            OutputError::Exists { .. } => Some(Cure::Replace),
            OutputError::Unseen { .. } => Some(Cure::WriteUnseen),
            OutputError::ResumeBeyondEnd { .. } | OutputError::BadState { .. } | OutputError::NotResumable { .. } => {
                Some(Cure::StartAgain)
            }
            OutputError::MixedFormats { .. } => Some(Cure::SplitOrNameFormat),
            OutputError::Input(error) => error.cure(),
            OutputError::Record(error) => error.cure(),
            _ => None,
        }
    }
}

impl RecordError {
    /// Returns what can be done about it, beside mending the record.
    pub fn cure(&self) -> Option<Cure> {
        match self.fault {
            RecordFault::MissingField { .. } => Some(Cure::NameFieldOrSkip),
            RecordFault::CutJoined { .. } => Some(Cure::NameOneField),
            // Every line of such a file would be left out.
            RecordFault::SpreadOverLines => None,
            RecordFault::UnclosedQuote { lines: 2.. } => Some(Cure::SkipRest),
            RecordFault::InvalidUtf8 { offset: 0 } if self.line == 1 => None,
            RecordFault::InvalidJson { column: 1, .. } if self.line == 1 => Some(Cure::NameFormatOrSkip),
            RecordFault::WrongType { found: "an object", .. } => Some(Cure::NameInnerFieldOrSkip),
            RecordFault::WrongType { .. } if self.line == 1 => Some(Cure::NameFieldOrSkip),
            // It can be read.
            RecordFault::FieldTaken { .. } => None,
            _ => Some(Cure::Skip),
        }
    }
}

/// Returns an error and its sources in one line, from the outermost to the first. What a message already says is not repeated: some
/// libraries put the source into their own text.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = inner.source();
    }
    text
}

/// Returns what to say about a header that looks like one cell because its cells are separated by something else.
fn other_separator(found: &[String]) -> String {
    let [header] = found else { return String::new() };
    match [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")]
        .into_iter()
        .find(|(separator, _)| header.contains(*separator))
    {
        Some((_, name)) => format!(
            " (its cells seem to be separated by {name}: .csv means commas and .tsv tabs, so convert the file or rename it)"
        ),
        None => String::new(),
    }
}

/// Returns names for a message, not more of them than a reader takes in.
fn list(names: &[String]) -> ListOfNames<'_> {
    ListOfNames(names)
}

struct ListOfNames<'a>(&'a [String]);

impl fmt::Display for ListOfNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, name) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{name:?}", if i == 0 { "" } else { ", " })?;
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}
