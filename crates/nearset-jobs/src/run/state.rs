//! What a checkpoint holds.
//!
//! Invariant: cutting each output to the length in the state and reading on from its position gives the bytes of a run that was
//! never stopped, because checkpoints fall on records and not on times.

use nearset_records::{Checkpoint, InputError, Position, Source};
use serde::{Deserialize, Serialize};

use super::options::{Fingerprint, state_of_input};
use super::passed::Passed;
use super::tally::Tally;

/// The form that states are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum StateVersion {
    /// One state for every kind of run.
    #[default]
    #[serde(rename = "4")]
    AnyDecider,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Records are to come.
    Reading,
    /// All outputs are complete; some may still lack their names.
    Finishing,
}

/// One checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    /// What a state of another form is known by.
    pub version: StateVersion,
    pub fingerprint: Fingerprint,
    pub phase: Phase,
    pub position: Position,
    /// What was read of the source at that position.
    pub passed: Passed,
    /// Whether the rest of the inputs may be mended before the run goes on.
    pub is_mendable: bool,
    pub tally: Tally,
    /// What the decider continues from, in its own terms.
    pub decider: serde_json::Value,
    pub outputs: Lengths,
    /// What the decider came to, when all outputs are complete.
    pub outcome: Option<serde_json::Value>,
}

impl State {
    /// Returns its fingerprint, without changes of inputs that do no harm: behind what was read.
    pub fn mended(&self, sources: &[Source], now: &Fingerprint) -> Result<Fingerprint, InputError> {
        let mut fingerprint = self.fingerprint.clone();
        if self.phase != Phase::Reading || !self.is_mendable {
            return Ok(fingerprint);
        }
        for (i, source) in sources.iter().enumerate().skip(self.position.source) {
            let name = state_of_input(i);
            if let (Some(was), Some(is)) = (fingerprint.get_mut(&name), now.get(&name))
                && was != is
                && (i > self.position.source || self.passed.is_start_of(source)?)
            {
                was.clone_from(is);
            }
        }
        Ok(fingerprint)
    }
}

/// How far the outputs have come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Lengths {
    pub out: Option<Checkpoint>,
    pub removed: Option<u64>,
    /// The page about the run; only when all outputs are complete.
    pub report: Option<u64>,
    /// The saved filter; only when all outputs are complete.
    pub saved: Option<u64>,
}
