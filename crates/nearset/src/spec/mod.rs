//! What filters, indexes and joins are: plain data that decides their answers, and nothing else.
//!
//! Claim: two structures with equal specs can be merged, and two that can be merged have equal specs.
//! Not here: choosing a spec (`plan`), holding bits (`filter`, `index`), bytes on disk (`codec`).

pub(crate) mod exact;
mod filter;
mod hamming;
mod hasher;
mod index;
mod join;
mod lsh;
pub(crate) mod near;
mod papers;
mod rule;
mod terms;

pub use crate::error::SpecError;
pub use exact::{Construction, ExactSpec};
pub use filter::FilterSpec;
pub(crate) use filter::GenerationSpec;
pub use hamming::HammingSpec;
pub use hasher::Hasher;
pub use index::IndexSpec;
pub use join::JoinSpec;
pub use lsh::LshSpec;
pub use near::{Probing, Spec, Table, Verification};
#[doc(no_inline)]
pub use nearset_theory::amplify::{Cascade, Step};
pub use papers::DistanceSensitive;
pub(crate) use rule::Decision;
pub use rule::Rule;
pub use terms::{Terms, WhenFull};
