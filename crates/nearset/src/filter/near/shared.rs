//! A near filter that many threads insert into at once.
//!
//! Invariant: the bits in the end are those of inserting on one thread; what each thread is told on the way depends on the others.

use std::sync::Arc;

use super::{Threshold, count, joint_key};
use crate::{
    Spec,
    bloom::SharedBloom,
    family::{Functions, Hashed},
    filter::tables::{Added, TablesShared},
    item::{Item, ItemError},
};

/// A near filter lent to many threads. Made by [`NearFilter::shared`](super::NearFilter::shared).
pub struct SharedNearFilter<'a> {
    pub(super) functions: Arc<dyn Functions>,
    pub(super) spec: &'a Spec,
    pub(super) tables: TablesShared<'a>,
    pub(super) verification: Option<SharedBloom<'a>>,
    pub(super) items: Added<'a>,
    pub(super) threshold: &'a mut Threshold,
}

impl Drop for SharedNearFilter<'_> {
    fn drop(&mut self) {
        *self.threshold = self.threshold_now();
    }
}

impl SharedNearFilter<'_> {
    fn threshold_now(&self) -> Threshold {
        let (ones, bits) = self.tables.ones_of_bits();
        self.threshold.after(&self.spec.rule, ones, bits)
    }

    /// Inserts an item. True when nothing near was there before; neighbouring buckets are not tried.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub fn insert<'i>(&self, item: impl Into<Item<'i>>) -> Result<bool, ItemError> {
        let mut hashed = Hashed::new();
        self.functions.hash(item.into(), &mut hashed)?;
        Ok(self.insert_hashed(&hashed))
    }

    /// [`Self::insert`] of an item hashed before.
    pub fn insert_hashed(&self, hashed: &Hashed) -> bool {
        let threshold = self.threshold_now();
        let mut hits = self.tables.insert(&hashed.keys);
        let mut near = threshold.accepts(&self.spec.rule, count(&hits), &mut hits);
        if let Some(verification) = &self.verification
            && let Some(joint) = joint_key(&hashed.keys)
        {
            near &= !verification.insert_hash(joint.get());
        }
        self.items.add(1);
        !near
    }
}
