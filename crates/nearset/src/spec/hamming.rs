//! What a Hamming index is.

use super::{ExactSpecError, SpecError, exact::MOST_ITEM_BITS};
use crate::{Seed, family::WorkBound};

/// What a [`HammingIndex`](crate::HammingIndex) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HammingSpec {
    /// Bits of every item.
    pub bits: u32,
    /// The distance up to which searches are to be fast. Farther ones compare the query with every item.
    pub radius: u32,
    /// From which the order of bits is drawn, so that no outsider can crowd a block.
    pub seed: Seed,
}

impl HammingSpec {
    /// That an index of this spec can be.
    ///
    /// # Errors
    /// If items have no bits, or absurdly many.
    pub fn check(&self) -> Result<(), SpecError> {
        if (1..=MOST_ITEM_BITS).contains(&self.bits) {
            Ok(())
        } else {
            Err(ExactSpecError::Bits { found: self.bits }.into())
        }
    }

    /// The most that looking up one item costs beside what is stored, which is looked at on top of it. It grows with the item's length
    /// alone, so that no limit is needed.
    pub fn work_bound(&self) -> WorkBound {
        let bits = u64::from(self.bits);
        WorkBound { draw: 40 * bits, hash: 3 * bits, item_bytes: bits.div_ceil(8), ..WorkBound::default() }
    }

    pub(crate) fn words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }
}
