//! How far a filter has come, and going on before it is full: for servers, which tell the one, and forget by time.
//!
//! Claim: [`Filter::age`] is a function of the filter and of how many generations are to end, and of no clock: who repeats it where an
//! equal filter is comes to an equal one. [`Filter::hide`] changes answers and nothing that is written.
//! Not here: time, and who decides that it is over.

use super::{Filter, Generation};
use crate::{error::SpecError, spec::WhenFull};

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
    /// Returns how far it has come, in a constant time; `None` if nothing was said of what it is made for.
    pub fn progress(&self) -> Option<Progress> {
        let terms = self.terms.as_ref()?;
        let (generations, newest) = (self.filters.len(), self.newest());
        let (items, capacity) = (newest.len(), self.capacity_of(terms, generations - 1));
        let ends_by_load = !matches!(terms.when_full, WhenFull::Forget { .. });
        let is_told = ends_by_load && newest.counts_load();
        let taken = if is_told { newest.load().min(items as f64) } else { items as f64 };
        Some(Progress { generations, items, capacity, fill: taken / capacity as f64, ends_by_load })
    }

    /// How many generations a window has; 0 for a filter that does not forget.
    pub fn window(&self) -> usize {
        match self.terms.map(|terms| terms.when_full) {
            Some(WhenFull::Forget { generations }) => generations as usize,
            _ => 0,
        }
    }

    /// Returns how many generations are added when so many end, and how many forgotten.
    fn aging(&self, generations: usize) -> (usize, usize) {
        let ended = generations.min(self.window());
        let added = ended.min(self.window().saturating_sub(self.filters.len()));
        (added, ended - added)
    }

    /// Returns how many bytes [`Self::age`] allocates.
    pub fn room_to_age(&self, generations: usize) -> u64 {
        self.newest().spec().bytes().saturating_mul(self.aging(generations).0 as u64)
    }

    /// Ends the newest generation of a window although it is not full, so many times over; at most as often as forgets all. Other
    /// filters stay as they are. Returns how many generations were added, and how many were forgotten.
    ///
    /// # Errors
    /// If memory can't be had; the filter is then unchanged.
    pub fn age(&mut self, generations: usize) -> Result<(usize, usize), SpecError> {
        let (added, forgotten) = self.aging(generations);
        let spec = self.newest().spec();
        let fresh = (0..added).map(|_| self.newest().beside(&spec)).collect::<Result<Vec<_>, _>>()?;
        self.filters.extend(fresh);
        self.filters.rotate_left(forgotten);
        let kept = self.filters.len() - forgotten;
        self.filters[kept..].iter_mut().for_each(Generation::clear);
        self.hidden = 0;
        Ok((added, forgotten))
    }

    /// Answers questions from now on as if [`Self::age`] had been done, and keeps the items.
    pub fn hide(&mut self, generations: usize) {
        self.hidden = self.aging(generations).1.min(self.filters.len());
    }
}
