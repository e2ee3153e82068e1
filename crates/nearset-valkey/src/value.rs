//! What a key holds: a filter, and what has come so far of one that is being loaded.
//!
//! Claim: a filter that is being loaded is seen by nobody until its last byte is in and checked; whatever was there before
//! answers until then. The bytes are nearset's own file, so what `nearset build` wrote can be loaded and what is dumped can be
//! opened everywhere.
//! Invariant: a key holds at least one of the two.

use std::io;

use nearset::DecodeError;
use nearset::Filter;
use nearset::family::WorkLimit;

use crate::memory;
use crate::refusal::{Outcome, Refusal, refuse};

/// So many bytes go into one string of the server's files, and are the most that saving a filter takes beside it.
pub const PIECE: usize = 1 << 20;

pub struct Value {
    pub filter: Option<Filter<'static>>,
    pub incoming: Option<Incoming>,
}

impl Value {
    pub fn of(filter: Filter<'static>) -> Self {
        Self { filter: Some(filter), incoming: None }
    }

    /// Returns the filter, unless it has not come in whole.
    pub fn filter(&self) -> Outcome<&Filter<'static>> {
        self.filter.as_ref().ok_or_else(|| not_yet(self.incoming.as_ref()))
    }

    pub fn filter_mut(&mut self) -> Outcome<&mut Filter<'static>> {
        self.filter.as_mut().ok_or_else(|| not_yet(self.incoming.as_ref()))
    }

    /// Memory, both parts together.
    pub fn bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, weight);
        let incoming = self.incoming.as_ref().map_or(0, |incoming| incoming.bytes.capacity() as u64);
        size_of::<Self>() as u64 + filter + incoming
    }

    /// Returns a copy, as `COPY` makes it; an error if there is no memory for it.
    pub fn copy(&self) -> Outcome<Self> {
        let filter = self.filter.as_ref().map(Filter::try_clone).transpose();
        let filter = filter.map_err(|error| memory::refused("the copy", error))?;
        let incoming = self.incoming.as_ref().map(Incoming::copy).transpose()?;
        Ok(Self { filter, incoming })
    }
}

/// Returns the memory of a filter, its functions included: what counts against the limit.
pub fn weight(filter: &Filter<'_>) -> u64 {
    filter.bytes().saturating_add(filter.spec().bytes_of_functions())
}

fn not_yet(incoming: Option<&Incoming>) -> Refusal {
    let (found, length) = incoming.map_or((0, 0), |incoming| (incoming.len(), incoming.length()));
    Refusal::Because(format!(
        "the key is being loaded, {found} of {length} bytes are in: send the rest with NEAR.LOAD, or DEL the key"
    ))
}

/// A file of which the first bytes have come.
pub struct Incoming {
    bytes: Vec<u8>,
    length: usize,
}

impl Incoming {
    /// Begins with a file's first bytes, of which the header says how many there are to be.
    pub fn begin(first: &[u8]) -> Result<Self, DecodeError> {
        let length = nearset::length_of(first)?;
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated { expected: length, found: 0 })?;
        Ok(Self { bytes: Vec::new(), length })
    }

    /// Returns how many bytes have arrived.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns how many bytes the whole has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns how many bytes are allocated when `chunk` bytes come next. They are allocated as they arrive, so that a header can't claim
    /// memory; everything is copied where it can't be extended in place.
    pub fn room_for(&self, chunk: usize) -> usize {
        let after = self.bytes.len().saturating_add(chunk);
        if after <= self.bytes.capacity() { 0 } else { after.saturating_mul(2).min(self.length.max(after)) }
    }

    /// Takes the next bytes, or changes nothing.
    pub fn push(&mut self, chunk: &[u8]) -> Outcome {
        let after = self.bytes.len() + chunk.len();
        if after > self.length {
            let length = self.length;
            return refuse!("the file has {length} bytes, and {after} would be in: the dump is damaged");
        }
        let room = self.room_for(chunk.len());
        if room > 0 {
            let more = room - self.bytes.len();
            self.bytes.try_reserve_exact(more).map_err(|_| memory::no_memory("the next bytes of the file"))?;
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// Lets go of all bytes but the first.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    fn copy(&self) -> Outcome<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.bytes.len()).map_err(|_| memory::no_memory("the copy"))?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, length: self.length })
    }

    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.length
    }

    /// Returns the filter, every byte checked, and its spec held against a limit on work.
    pub fn decode(&self, limit: WorkLimit) -> Result<Filter<'static>, DecodeError> {
        Ok(Filter::decode(&self.bytes, limit)?.try_into_owned()?)
    }

    /// What has come, as a file is written.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(&self.bytes)
    }
}

/// Passes what is written on in pieces of [`PIECE`] bytes, the last one shorter.
pub struct Pieces<F: FnMut(&[u8])> {
    room: Vec<u8>,
    each: F,
}

impl<F: FnMut(&[u8])> Pieces<F> {
    /// Cuts all that `write` writes.
    pub fn cut(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>, each: F) {
        let mut pieces = Self { room: Vec::new(), each };
        write(&mut pieces).expect("pieces are taken without errors");
        if !pieces.room.is_empty() {
            (pieces.each)(&pieces.room);
        }
    }
}

impl<F: FnMut(&[u8])> io::Write for Pieces<F> {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let written = bytes.len();
        while !bytes.is_empty() {
            if self.room.is_empty() && bytes.len() >= PIECE {
                (self.each)(&bytes[..PIECE]);
                bytes = &bytes[PIECE..];
                continue;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(PIECE - self.room.len()));
            self.room.extend_from_slice(taken);
            bytes = rest;
            if self.room.len() == PIECE {
                (self.each)(&self.room);
                self.room.clear();
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
