//! Why two structures can't be one, or be compared.

use std::fmt;

/// Structures that can't be merged or compared, because their bits mean different things.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "they differ in their {what}: {ours} here, {theirs} there; only what was built with one spec can be merged or compared"
)]
#[non_exhaustive]
pub struct MergeError {
    /// What differs first.
    pub what: &'static str,
    /// How it is in the one merged into.
    pub ours: String,
    /// How it is in the other.
    pub theirs: String,
}

impl MergeError {
    pub(crate) fn unless_equal<T: PartialEq + fmt::Debug>(
        what: &'static str,
        ours: &T,
        theirs: &T,
    ) -> Result<(), Self> {
        if ours == theirs {
            return Ok(());
        }
        Err(Self { what, ours: format!("{ours:?}"), theirs: format!("{theirs:?}") })
    }
}
