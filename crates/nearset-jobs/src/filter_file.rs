//! Filters and indexes as files: opened by memory map, saved whole or not at all.
//!
//! Invariant: a file is checked to its last byte when it is opened, so a damaged one is refused before it answers anything.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use nearset::Kind;
use nearset::Overfull;
use nearset::family::WorkLimit;
use nearset::{DecodeError, Filter, Index};

use nearset_records::Cure;
use nearset_records::error::OutputError;
use nearset_records::format::{Compression, detect};
use nearset_records::output::{OutputFile, OutputOptions};

use crate::decontaminate::is_benchmark;

/// Why a file of a filter or index cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum FilterFileError {
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}", path.display())]
    Decode {
        path: PathBuf,
        #[source]
        cause: DecodeError,
    },
    #[error("{}", path.display())]
    Overfull {
        path: PathBuf,
        #[source]
        cause: Overfull,
    },
    #[error("{} is a folder, and no file of a filter or index", path.display())]
    IsFolder { path: PathBuf },
    #[error("{}: holds benchmark items, not a filter or an index", path.display())]
    IsBenchmark { path: PathBuf },
    #[error("{}: holds {found}, not a filter", path.display())]
    IsIndex { path: PathBuf, found: Kind },
    #[error("{}: holds a filter, which keeps no items", path.display())]
    IsFilter { path: PathBuf, found: Kind },
}

impl FilterFileError {
    /// Returns what can be done about it.
    pub fn cure(&self) -> Option<Cure> {
        match self {
            Self::Unreadable { .. } => Some(Cure::CheckPath),
            Self::IsFolder { .. } => Some(Cure::CompareWithLibrary),
            Self::Decode { cause: DecodeError::Work(_), .. } => Some(Cure::LiftWorkLimit),
            Self::Decode { cause: DecodeError::NotNearset { .. }, .. } => Some(Cure::BuildFirst),
            Self::Decode { .. } => None,
            Self::Overfull { .. } => Some(Cure::AllowOverfull),
            Self::IsBenchmark { .. } => Some(Cure::Decontaminate),
            Self::IsIndex { .. } => Some(Cure::Search),
            Self::IsFilter { .. } => Some(Cure::BuildIndex),
        }
    }
}

/// The file of a filter or index, mapped into memory.
pub struct FilterFile {
    path: PathBuf,
    map: Mmap,
    work: WorkLimit,
}

impl FilterFile {
    /// Maps a file. Only what is looked up is read, once [`FilterFile::filter`] has checked it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> Result<Self, FilterFileError> {
        let map = File::open(path).and_then(|file| map(&file));
        match map {
            Ok(map) => Ok(Self { path: path.to_owned(), map, work: WorkLimit::Usual }),
            Err(_) if path.is_dir() => Err(FilterFileError::IsFolder { path: path.to_owned() }),
            Err(cause) => Err(FilterFileError::Unreadable { path: path.to_owned(), cause }),
        }
    }

    /// Returns the same file, its spec held against another limit on work.
    pub fn within(self, work: WorkLimit) -> Self {
        Self { work, ..self }
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Returns what it holds, by its header.
    ///
    /// # Errors
    /// If it is no file of nearset's, or newer than this build.
    pub fn kind(&self) -> Result<Kind, FilterFileError> {
        Kind::of(&self.map).map_err(|cause| self.undecodable(cause))
    }

    /// Returns the index in it, of whatever kind.
    ///
    /// # Errors
    /// If the file is damaged, another structure or newer than this build.
    pub fn index(&self) -> Result<Index<'_>, FilterFileError> {
        let found = self.kind()?;
        if !matches!(found, Kind::Hamming | Kind::Lsh) {
            return Err(FilterFileError::IsFilter { path: self.path.clone(), found });
        }
        Index::decode(&self.map, self.work).map_err(|cause| self.undecodable(cause))
    }

    /// Returns the filter in it, of whatever kind and of however many generations. Its tables stay in the file.
    ///
    /// # Errors
    /// If the file is damaged, another structure or newer than this build.
    pub fn filter(&self) -> Result<Filter<'_>, FilterFileError> {
        match self.kind()? {
            found @ (Kind::Hamming | Kind::Lsh) => Err(FilterFileError::IsIndex { path: self.path.clone(), found }),
            _ => Filter::decode(&self.map, self.work).map_err(|cause| self.undecodable(cause)),
        }
    }

    /// [`FilterFile::filter`], for those who act on its answers: it must not hold more than it is made for.
    ///
    /// # Errors
    /// If it holds more, too.
    pub fn filter_to_trust(&self) -> Result<Filter<'_>, FilterFileError> {
        let filter = self.filter()?;
        match filter.expect_not_overfull(0) {
            Ok(()) => Ok(filter),
            Err(cause) => Err(FilterFileError::Overfull { path: self.path.clone(), cause }),
        }
    }

    /// Returns the filter together with its file, which stays mapped until the filter is changed; `overfull` says whether it may hold more than
    /// it is made for.
    ///
    /// # Errors
    /// As [`FilterFile::filter`] and [`FilterFile::filter_to_trust`].
    #[allow(unsafe_code)]
    pub fn held(self, overfull: bool) -> Result<HeldFilter, FilterFileError> {
        let filter = if overfull { self.filter()? } else { self.filter_to_trust()? };
        // SAFETY: what it borrows from is mapped as long as it is there: `HeldFilter` drops the map after the filter, lends the filter for no
        // longer than itself, and lets go of the map only where the filter is a copy.
        let filter = unsafe { std::mem::transmute::<Filter<'_>, Filter<'static>>(filter) };
        Ok(HeldFilter { filter, map: Some(self.map) })
    }

    fn undecodable(&self, cause: DecodeError) -> FilterFileError {
        let path = self.path.clone();
        if matches!(cause, DecodeError::NotNearset { .. }) && is_benchmark(&path) {
            return FilterFileError::IsBenchmark { path };
        }
        FilterFileError::Decode { path, cause }
    }
}

/// A filter that may lie in a mapped file, whose memory processes share.
pub struct HeldFilter {
    // Before the map, since it is dropped first.
    filter: Filter<'static>,
    map: Option<Mmap>,
}

impl HeldFilter {
    /// Returns the filter, to look into.
    pub fn get(&self) -> &Filter<'_> {
        &self.filter
    }

    /// Returns whether it lies in a file.
    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Returns the filter, to change it: it is copied to memory first, unless it lies there.
    pub fn to_mut(&mut self) -> &mut Filter<'static> {
        if self.is_mapped() {
            self.filter = self.get().clone().into_owned();
            self.map = None;
        }
        &mut self.filter
    }
}

impl From<Filter<'static>> for HeldFilter {
    fn from(filter: Filter<'static>) -> Self {
        Self { filter, map: None }
    }
}

#[allow(unsafe_code)]
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is only read, and as bytes. Filters and libraries are saved under their names by rename and never in place, so the
    // bytes do not change under a reader unless someone else overwrites the file or cuts it short, which no program can rule out for a map:
    // Python therefore keeps a map for longer than opening takes only where its caller promises that.
    unsafe { Mmap::map(file) }
}

/// Writes a filter to an output, which the caller finishes.
///
/// # Errors
/// If the device is full or fails.
pub fn write_filter(filter: &Filter<'_>, out: &mut OutputFile) -> Result<(), OutputError> {
    write_with(out, |writing| filter.encode(writing))
}

/// Saves a filter under its name, whole or not at all.
///
/// # Errors
/// If it exists and may not be replaced, or the device is full or fails.
pub fn save_filter(filter: &Filter<'_>, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    save_with(path, options, |writing| filter.encode(writing))
}

/// Saves an index under its name, whole or not at all.
///
/// # Errors
/// As [`save_filter`].
pub fn save_index(index: &Index<'_>, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    save_with(path, options, |writing| index.encode(writing))
}

/// Finds out whether a filter or an index could be saved, before the work is done that it is for.
///
/// # Errors
/// As [`save_filter`].
pub fn check_save(path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    expect_plain(path)?;
    OutputFile::check(path, options)
}

fn expect_plain(path: &Path) -> Result<(), OutputError> {
    match detect(path) {
        (_, Compression::None) => Ok(()),
        _ => Err(OutputError::PackedFilter { path: path.to_owned() }),
    }
}

fn save_with(
    path: &Path,
    options: &OutputOptions,
    encode: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    expect_plain(path)?;
    let mut out = OutputFile::create(path, options)?;
    write_with(&mut out, encode)?;
    out.finish()
}

fn write_with(out: &mut OutputFile, encode: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
    let mut writing = Writing { out, failed: None };
    let outcome = encode(&mut writing);
    match (writing.failed, outcome) {
        (Some(failed), _) => Err(failed),
        (None, Err(cause)) => Err(OutputError::from_io(out.path(), cause)),
        (None, Ok(())) => Ok(()),
    }
}

/// An output as a stream, its own error kept.
struct Writing<'a> {
    out: &'a mut OutputFile,
    failed: Option<OutputError>,
}

impl Write for Writing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.out.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failed = Some(error);
                Err(io::Error::other("the output failed"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
