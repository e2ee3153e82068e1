//! The functions of a spec, without tables.

use std::sync::Arc;

use super::{Spec, SpecError};
use crate::{
    family::{Functions, Hashed, LshFamily, functions_seed},
    item::{Item, ItemError},
};

/// Hashes items for filters of one spec. The filter may lie on another thread or machine.
#[derive(Clone)]
pub struct Hasher(pub(crate) Arc<dyn Functions>);

impl Hasher {
    /// Draws the functions of a spec.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn new(spec: &Spec) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Self::of_checked(spec))
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
