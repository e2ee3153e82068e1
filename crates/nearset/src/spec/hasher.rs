//! The functions of a spec, without tables.

use std::sync::Arc;

use super::Spec;
use crate::{
    Family, Layout, Seed,
    error::SpecError,
    family::{Functions, Hashed, LshFamily, functions_seed},
    item::{Item, ItemError},
};

/// Hashes items for filters of one spec. The filter may lie on another thread or machine.
#[derive(Clone)]
pub struct Hasher(pub(crate) Arc<dyn Functions>);

impl Hasher {
    /// Draws functions from a seed itself. Those of a filter are its own: see [`FilterSpec::hasher`](super::FilterSpec::hasher).
    ///
    /// ```
    /// use nearset::{BitString, Layout, Seed, family::{BitSampling, Hashed}, spec::Hasher};
    ///
    /// let hasher = Hasher::new(BitSampling::new(64), Layout::new(8, 4), Seed::new(1))?;
    /// let mut hashed = Hashed::default();
    /// hasher.hash(&BitString::zeros(64), &mut hashed)?;
    /// assert_eq!(hashed.keys.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the family has no such functions.
    pub fn new(family: impl Into<Family>, layout: Layout, seed: Seed) -> Result<Self, SpecError> {
        Ok(Self(family.into().draw(seed, layout)?.into()))
    }

    /// The same where the spec was checked before.
    pub(crate) fn of_checked(spec: &Spec) -> Self {
        let drawn = spec.family.draw(functions_seed(spec.seed), spec.layout());
        Self(drawn.expect("the spec was checked before").into())
    }

    /// Hashes an item; `out` is overwritten.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub fn hash<'i>(&self, item: impl Into<Item<'i>>, out: &mut Hashed) -> Result<(), ItemError> {
        self.0.hash(item.into(), out)
    }
}
