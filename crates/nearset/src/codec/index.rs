//! Indexes of either structure in bytes.

use std::io;

use super::{DecodeError, Kind, Opening};
use crate::{HammingIndex, Index, LshIndex};

impl<'a> Index<'a> {
    /// Opens a file's bytes.
    ///
    /// # Errors
    /// If the bytes are not an intact index that this build reads.
    pub fn decode(bytes: &'a [u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let opening = opening.into();
        match Kind::of(bytes)? {
            Kind::Lsh => Ok(Index::Lsh(LshIndex::decode(bytes, opening)?)),
            _ => Ok(Index::Hamming(HammingIndex::decode(bytes, opening)?)),
        }
    }

    /// Writes the index as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Index::Hamming(index) => index.encode(out),
            Index::Lsh(index) => index.encode(out),
        }
    }
}
