//! What an index is before it holds anything.

use super::{HammingSpec, LshSpec};
use crate::{error::SpecError, family::WorkBound};

/// What an [`Index`](crate::Index) is without its items.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum IndexSpec {
    /// Bit strings, of which none that is near is missed.
    Hamming(HammingSpec),
    /// Items of any metric, found by locality-sensitive keys.
    Lsh(LshSpec),
}

impl From<HammingSpec> for IndexSpec {
    fn from(spec: HammingSpec) -> Self {
        IndexSpec::Hamming(spec)
    }
}

impl From<LshSpec> for IndexSpec {
    fn from(spec: LshSpec) -> Self {
        IndexSpec::Lsh(spec)
    }
}

impl IndexSpec {
    /// Returns the most that looking up one item costs, beside comparing it with what is found.
    pub fn work_bound(&self) -> WorkBound {
        match self {
            IndexSpec::Hamming(spec) => spec.work_bound(),
            IndexSpec::Lsh(spec) => spec.work_bound(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self {
            IndexSpec::Hamming(spec) => spec.check(),
            IndexSpec::Lsh(spec) => spec.check(),
        }
    }
}
