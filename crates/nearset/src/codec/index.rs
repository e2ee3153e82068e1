//! Indexes of either structure in bytes.

use std::io;

#[cfg(any(test, feature = "server"))]
use super::encode_from;
use super::{DecodeError, Kind, Opening};
use crate::{
    Index,
    index::{HammingIndex, LshIndex, Structure},
};

impl<'a> Index<'a> {
    /// Opens a file's bytes.
    ///
    /// # Errors
    /// If the bytes are not an intact index that this build reads.
    pub fn decode(bytes: &'a [u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let opening = opening.into();
        match Kind::of(bytes)? {
            Kind::Lsh => Ok(Index(Structure::Lsh(LshIndex::decode(bytes, opening)?))),
            _ => Ok(Index(Structure::Hamming(HammingIndex::decode(bytes, opening)?))),
        }
    }

    /// Writes the index as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match &self.0 {
            Structure::Hamming(index) => index.encode(out),
            Structure::Lsh(index) => index.encode(out),
        }
    }

    /// [`Self::encode`] from a position in the file on, at no cost for what stands before it.
    ///
    /// # Errors
    /// What the writer reports.
    #[cfg(any(test, feature = "server"))]
    pub fn encode_from(&self, from: u64, out: &mut dyn io::Write) -> io::Result<()> {
        match &self.0 {
            Structure::Hamming(index) => encode_from(index, from, out),
            Structure::Lsh(index) => index.encode_from(from, out),
        }
    }
}
