//! What a Hamming index is.

use crate::{
    Seed,
    error::{MOST_ITEM_BITS, SpecError},
    family::WorkBound,
};

/// What an index of bit strings is that misses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HammingSpec {
    /// Bits of every item.
    pub bits: u32,
    /// The distance up to which searches are to be fast. Farther ones compare the query with every item.
    pub radius: u32,
    /// From which the order of bits is drawn, so that no outsider can crowd a block.
    pub seed: Seed,
}

impl HammingSpec {
    /// An index of strings of `bits` bits, in which searches up to `radius` are fast.
    pub const fn new(bits: u32, radius: u32, seed: Seed) -> Self {
        Self { bits, radius, seed }
    }

    /// Checks that an index with this spec can be built: items have bits, and not absurdly many.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if (1..=MOST_ITEM_BITS).contains(&self.bits) { Ok(()) } else { Err(SpecError::ItemBits { found: self.bits }) }
    }

    /// The most that looking up one item costs beside what is stored, which is looked at on top of it. It grows with the item's length
    /// alone, so that no limit is needed.
    pub(crate) fn work_bound(&self) -> WorkBound {
        let bits = u64::from(self.bits);
        WorkBound { draw: 40 * bits, hash: 3 * bits, item_bytes: bits.div_ceil(8), ..WorkBound::default() }
    }

    pub(crate) fn words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }
}
