//! Filters: sets that answer "seen it?" from a few bits an item.
//!
//! Claim: every filter here is a commutative, idempotent monoid: merging is a bitwise OR, and the bits are a function of
//! the *set* of items, whatever their order, their repeats and the number of threads.
//! Invariant: bits are only ever set, and an item's bits depend on nothing but the item and the filter's parameters.
//! Not here: choosing parameters for near filters (`plan`), bytes on disk (`codec`).

mod bits;
mod bloom;
pub(crate) mod exact;
#[cfg(test)]
pub(crate) mod laws;
pub(crate) mod near;
mod papers;
mod rule;
mod spec;
pub(crate) mod tables;

pub use bits::{BitArray, BitArrayError};
pub use bloom::{BloomError, BloomFilter, SharedBloom};
pub(crate) use exact::MOST_BITS;
pub use exact::{Construction, ExactNearFilter, ExactSpec, ExactSpecError};
pub use near::{BatchError, Hasher, Hits, NearFilter, PredictedErrors, SharedNearFilter};
pub use nearset_theory::amplify::{Cascade, Step};
pub use papers::DistanceSensitive;
pub use rule::{Decision, Rule, RuleError};
pub use spec::{MergeError, Probing, Spec, SpecError, Table, Verification};
