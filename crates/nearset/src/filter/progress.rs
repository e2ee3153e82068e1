//! How far a filter has come, for those who tell it to others.
//!
//! Claim: all of it takes a constant time, whatever the size of the tables.

use super::Filter;
use crate::spec::WhenFull;

/// How far the newest generation of a filter has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// How many generations there are.
    pub generations: usize,
    /// The number of items inserted into the newest one, repeats included.
    pub items: u64,
    /// The number of items that it is made for.
    pub capacity: u64,
    /// The part of the capacity that is taken up: by distinct items, or where telling these would take a look at all tables, and where
    /// all of them count because they are to be forgotten, by insertions.
    pub fill: f64,
    /// Whether it ends when it is full of distinct items, and nothing is forgotten.
    pub ends_by_load: bool,
}

impl Filter<'_> {
    /// Returns how far it has come; `None` if nothing was said of what it is made for.
    pub fn progress(&self) -> Option<Progress> {
        let terms = self.terms.as_ref()?;
        let (generations, newest) = (self.filters.len(), self.newest());
        let (items, capacity) = (newest.len(), self.capacity_of(terms, generations - 1));
        let ends_by_load = !matches!(terms.when_full, WhenFull::Forget { .. });
        let is_told = ends_by_load && newest.counts_load();
        let taken = if is_told { newest.load().min(items as f64) } else { items as f64 };
        Some(Progress { generations, items, capacity, fill: taken / capacity as f64, ends_by_load })
    }
}
