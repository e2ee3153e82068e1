//! Bytes at any place of a source as it lies there, for those who look at a few of them before a run.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::{Location, Source};
use crate::remote::{self, Object, RemoteReader};

/// Objects whose starts are fetched at once.
const SOON: usize = 8;

/// Fetches the starts of the first of these sources, which will be opened soon, beside what is done now. Of files there is nothing to fetch.
pub fn expect_soon<'s>(sources: impl Iterator<Item = &'s Source>) {
    for source in sources.take(SOON) {
        if let Location::Remote(object) = &source.location
            && !source.format.is_columnar()
        {
            remote::expect_soon(object, &[0]);
        }
    }
}

/// Reads a source at any place, as it is stored.
pub struct Places(Kind);

enum Kind {
    File(File),
    Remote(Object),
}

impl Places {
    /// Opens a source. `soon` are places that will be looked at: those of an object are fetched at once.
    ///
    /// # Errors
    /// If it can't be opened, or is a pipe.
    pub fn open(source: &Source, soon: &[u64]) -> io::Result<Self> {
        Ok(Self(match &source.location {
            Location::Stdin => return Err(io::ErrorKind::Unsupported.into()),
            Location::File(path) => Kind::File(File::open(path)?),
            Location::Remote(object) => {
                remote::expect_soon(object, soon);
                Kind::Remote(object.clone())
            }
        }))
    }

    /// Appends up to `wanted` bytes from a place on; fewer only at the end.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn read(&mut self, offset: u64, wanted: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.0 {
            Kind::File(file) => {
                file.seek(SeekFrom::Start(offset))?;
                file.take(wanted).read_to_end(bytes)
            }
            Kind::Remote(object) => RemoteReader::open(object, offset)?.take(wanted).read_to_end(bytes),
        }
    }
}
