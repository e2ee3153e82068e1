//! Bytes on disk and on the wire: `docs/format.md` has them in tables.
//!
//! Claim: encoding then decoding is the identity, the same filter or index has the same bytes everywhere, and damaged, foreign
//! or newer bytes are a typed error that says what was found and what to do: never a panic, and never an allocation beyond
//! the bytes that are there.
//! Invariant: what version 1 wrote is read for ever; `testdata/format/v1` holds files of every kind.
//! Not here: files. Whoever opens one gives its bytes, by reading or by memory map; tables that lie aligned in them are used
//! in place.

mod bytes;
mod exact;
mod frame;
mod generations;
mod hamming;
mod index;
mod lsh;
mod spec;

pub(crate) use bytes::{Reader, Writer};
pub(crate) use frame::{Body, Frame, SECTION, encode, encode_from, file_length, head, head_length};
pub use frame::{Kind, length_of};

use crate::{error::SpecError, family::WorkLimit};

/// Whether to read every byte before trusting a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// Header, spec and tables: reads the whole file once.
    #[default]
    Everything,
    /// Header and spec. A flipped bit in a table then goes unseen, and is a wrong answer rather than an error; for files that
    /// were checked before, and are too large to be read at every start.
    HeaderOnly,
}

/// How bytes are opened: what is read before they are trusted, and how much work their spec may ask for.
///
/// ```
/// use nearset::{Check, DecodeError, Filter, Opening, family::WorkLimit};
///
/// fn open_my_own(bytes: &[u8]) -> Result<Filter<'_>, DecodeError> {
///     Filter::decode(bytes, Opening { check: Check::Everything, work: WorkLimit::Unlimited })
/// }
/// # assert!(open_my_own(b"").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opening {
    /// What is read first.
    pub check: Check,
    /// How much work each item may take.
    pub work: WorkLimit,
}

impl From<Check> for Opening {
    /// By the usual limit on work.
    fn from(check: Check) -> Self {
        Self { check, work: WorkLimit::Usual }
    }
}

impl From<WorkLimit> for Opening {
    /// Everything is checked.
    fn from(work: WorkLimit) -> Self {
        Self { check: Check::Everything, work }
    }
}

/// Why bytes are not a filter or an index that this build can use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Some other file.
    #[error("neither a filter nor an index of nearset's, by its first bytes")]
    NotNearset {
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// A newer format.
    #[error("format version {found} is newer than this build reads ({newest}): upgrade nearset")]
    TooNew {
        /// The file's version.
        found: u8,
        /// The newest that this build reads.
        newest: u8,
    },
    /// A version that never was.
    #[error("format version {found} does not exist: the file is damaged; restore it from a copy or build it again")]
    NoSuchVersion {
        /// The file's version.
        found: u8,
    },
    /// Another structure than was asked for.
    #[error("the file holds {found}, not {expected}: open it as what it is")]
    WrongKind {
        /// What was asked for.
        expected: Kind,
        /// What the file holds.
        found: Kind,
    },
    /// A structure, family or section that this build does not know.
    #[error("{what} number {found} is unknown to this build: upgrade nearset, or restore the file if it is damaged")]
    Unknown {
        /// What is unknown.
        what: &'static str,
        /// Its number.
        found: u64,
    },
    /// The end is missing.
    #[error("the file is cut off: {expected} bytes were to come and {found} are there; copy or build it again")]
    Truncated {
        /// Bytes that were to come.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// Bytes after the end.
    #[error("{bytes} bytes too many after {what}: the file is damaged; restore it from a copy or build it again")]
    Leftover {
        /// After what.
        what: &'static str,
        /// How many.
        bytes: usize,
    },
    /// Header or spec were changed.
    #[error("the checksum of the {part} does not match: the file is damaged; restore it from a copy or build it again")]
    Checksum {
        /// Which part.
        part: &'static str,
    },
    /// A value that can't stand there.
    #[error("{what} is {found}, which can't be: the file is damaged; restore it from a copy or build it again")]
    BadValue {
        /// Of what.
        what: &'static str,
        /// The value.
        found: String,
    },
    /// A spec that no filter has.
    #[error("the file's spec can't be: {0}")]
    Spec(SpecError),
    /// What the file holds finds no room.
    #[error("no memory for {bytes} bytes of the file: free some, or open it where there is more")]
    Memory {
        /// How many.
        bytes: u64,
    },
    /// A spec that asks for more work than may be.
    #[error("the file is refused: {0}")]
    Work(SpecError),
}

impl From<SpecError> for DecodeError {
    fn from(error: SpecError) -> Self {
        match error {
            SpecError::Work { .. } => DecodeError::Work(error),
            other => DecodeError::Spec(other),
        }
    }
}
