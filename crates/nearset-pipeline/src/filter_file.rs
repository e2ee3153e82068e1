//! Filters and indexes as files: opened by memory map, saved whole or not at all.
//!
//! Invariant: a file is checked to its last byte when it is opened, so a damaged one is refused before it answers anything.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use nearset::codec::Kind;
use nearset::family::WorkLimit;
use nearset::{AnyFilter, DecodeError, Generations, NearFilter};

use crate::any_index::AnyIndex;
use crate::error::OutputError;
use crate::output::{OutputFile, OutputOptions};

/// Why a file of a filter or index cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum FilterFileError {
    #[error("{}: {cause}: check the path", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}", path.display())]
    Decode { path: PathBuf, cause: DecodeError },
    #[error(
        "{}: holds a filter of {generations} generations, which only answer together: ask it with `nearset query`", path.display()
    )]
    Several { path: PathBuf, generations: usize },
    #[error("{}: holds {found}, not a filter: ask it with `nearset search`", path.display())]
    IsIndex { path: PathBuf, found: Kind },
    #[error("{}: holds {found}, which keeps no items: build an index with `nearset build --index`", path.display())]
    IsFilter { path: PathBuf, found: Kind },
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
            Err(cause) => Err(FilterFileError::Unreadable { path: path.to_owned(), cause }),
        }
    }

    /// The same file, its spec held against another limit on work.
    pub fn within(self, work: WorkLimit) -> Self {
        Self { work, ..self }
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// The filter in it, of whatever kind.
    ///
    /// # Errors
    /// If the file is damaged, another structure, of several generations or newer than this build.
    pub fn any(&self) -> Result<AnyFilter<'_>, FilterFileError> {
        self.expect_filter()?;
        AnyFilter::decode_within(&self.map, self.work).map_err(|cause| self.undecodable(cause))
    }

    /// What it holds, by its header.
    ///
    /// # Errors
    /// If it is no file of nearset's, or newer than this build.
    pub fn kind(&self) -> Result<Kind, FilterFileError> {
        Kind::of(&self.map).map_err(|cause| self.undecodable(cause))
    }

    /// The index in it, of whatever kind.
    ///
    /// # Errors
    /// If the file is damaged, another structure or newer than this build.
    pub fn index(&self) -> Result<AnyIndex<'_>, FilterFileError> {
        let found = self.kind()?;
        if !found.is_index() {
            return Err(FilterFileError::IsFilter { path: self.path.clone(), found });
        }
        AnyIndex::decode(&self.map, self.work).map_err(|cause| self.undecodable(cause))
    }

    /// The filter in it, of whatever kind and of however many generations.
    ///
    /// # Errors
    /// As [`FilterFile::any`].
    pub fn generations(&self) -> Result<Generations<'_>, FilterFileError> {
        self.expect_filter()?;
        Generations::decode(&self.map, self.work).map_err(|cause| self.undecodable(cause))
    }

    fn expect_filter(&self) -> Result<(), FilterFileError> {
        match self.kind()? {
            found if found.is_index() => Err(FilterFileError::IsIndex { path: self.path.clone(), found }),
            _ => Ok(()),
        }
    }

    fn undecodable(&self, cause: DecodeError) -> FilterFileError {
        match cause {
            DecodeError::Several { generations } => FilterFileError::Several { path: self.path.clone(), generations },
            cause => FilterFileError::Decode { path: self.path.clone(), cause },
        }
    }

    /// The near filter in it, whose tables stay in the file.
    ///
    /// # Errors
    /// If the file is damaged, of another kind or newer than this build.
    pub fn filter(&self) -> Result<NearFilter<'_>, FilterFileError> {
        NearFilter::decode(&self.map, self.work).map_err(|cause| self.undecodable(cause))
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is only read, and as bytes. Filters are replaced by rename and never written in place, so the bytes
    // do not change under a reader unless someone else overwrites the file, which no program can rule out for a map.
    unsafe { Mmap::map(file) }
}

/// Writes a filter to an output, which the caller finishes.
///
/// # Errors
/// If the device is full or fails.
pub fn write_filter(filter: &NearFilter<'_>, out: &mut OutputFile) -> Result<(), OutputError> {
    write_with(out, |writing| filter.encode(writing))
}

/// Saves a filter under its name, whole or not at all.
///
/// # Errors
/// If it exists and may not be replaced, or the device is full or fails.
pub fn save_filter(filter: &AnyFilter<'_>, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    save_with(path, options, |writing| filter.encode(writing))
}

/// Saves generations under their name, whole or not at all.
///
/// # Errors
/// As [`save_filter`].
pub fn save_generations(filter: &Generations<'_>, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    save_with(path, options, |writing| filter.encode(writing))
}

/// Saves an index under its name, whole or not at all.
///
/// # Errors
/// As [`save_filter`].
pub fn save_index(index: &AnyIndex<'_>, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
    save_with(path, options, |writing| index.encode(writing))
}

fn save_with(
    path: &Path,
    options: &OutputOptions,
    encode: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
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
