//! What a run has read of the input that it is in, so that the rest of it can be mended before the run goes on.
//!
//! Claim: a run goes on with an input that has changed only if what it has read of it is the same, byte for byte.
//! Invariant: the pieces lie end to end from the first byte of the source to where its last checkpoint fell.

use nearset_records::input::checksums;
use nearset_records::{Batch, InputError, Source};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// The source that a run was in when it took its last checkpoint, and checksums of what it had read of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Passed {
    source: usize,
    /// By checkpoint: where it fell, and the checksum of what lies between it and the one before.
    pieces: Vec<(u64, u64)>,
}

impl Passed {
    /// Returns whether a source still begins with what was read of it.
    pub fn is_start_of(&self, source: &Source) -> Result<bool, InputError> {
        let (ends, sums): (Vec<u64>, Vec<u64>) = self.pieces.iter().copied().unzip();
        Ok(checksums(source, &ends)? == sums)
    }
}

/// The same while reading.
pub(super) struct Passing {
    passed: Passed,
    /// Of what lies behind the last checkpoint.
    sum: Xxh3,
    /// Up to where the source was read.
    to: u64,
}

impl Passing {
    /// Goes on behind a checkpoint, or begins.
    pub fn new(passed: Passed) -> Self {
        let to = passed.pieces.last().map_or(0, |&(end, _)| end);
        Self { passed, sum: Xxh3::new(), to }
    }

    /// Takes note that a batch was passed up to this place in its source.
    pub fn pass(&mut self, batch: &Batch, until: u64) {
        let start = batch.start();
        if start.source != self.passed.source || self.to == 0 {
            *self = Self::new(Passed { source: start.source, pieces: Vec::new() });
            self.sum.update(&batch.preamble().raw);
            self.to = start.offset;
        }
        let bytes = batch.bytes().get(self.to.saturating_sub(start.offset) as usize..(until - start.offset) as usize);
        self.sum.update(bytes.unwrap_or_default());
        self.to = until;
    }

    /// Takes a checkpoint here.
    pub fn checkpoint(&mut self) -> Passed {
        self.passed.pieces.push((self.to, self.sum.digest()));
        self.sum.reset();
        self.passed.clone()
    }
}
