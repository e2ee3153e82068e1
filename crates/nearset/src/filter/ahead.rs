//! Memory before it is needed, so that what was begun is not stopped half way by a refusal of memory.
//!
//! Claim: after [`Filter::reserve`], inserting as many items allocates nothing that is kept, and after
//! [`Filter::reserve_to_merge`], neither does merging the others.
//! Invariant: generations that were allocated ahead outlive no insertion, successful or not.

use super::{Filter, Generation, InsertError, ends::next_spec};
use crate::{error::SpecError, spec::WhenFull};

impl<'a> Filter<'a> {
    /// Allocates all that inserting so many items next may need. Insertions do so themselves; for those who want to know before.
    /// What is not used after all is given back by the next insertion.
    ///
    /// # Errors
    /// If memory can't be had; nothing is kept then.
    pub fn reserve(&mut self, items: u64) -> Result<(), InsertError> {
        let reserved = self.newest_mut().reserve(items).and_then(|()| {
            for spec in self.generations_ahead(items)?.iter().skip(self.ahead.len()) {
                self.ahead.push_back(self.newest().beside(spec)?);
            }
            Ok(())
        });
        reserved.inspect_err(|_| self.release()).map_err(InsertError::from)
    }

    /// Gives back generations that [`Self::reserve`] allocated.
    pub(crate) fn release(&mut self) {
        self.ahead.clear();
    }

    /// Takes the next generation, from those that were allocated ahead if there are any.
    pub(super) fn next_generation(&mut self, when_full: WhenFull) -> Result<Generation<'a>, SpecError> {
        if let Some(next) = self.ahead.pop_front() {
            return Ok(next);
        }
        let next = next_spec(&self.newest().spec(), when_full, self.filters.len())?;
        self.newest().beside(&next)
    }

    /// Makes room for all generations and folds of the others, as if each had an empty filter there: [`Self::merge`] of every one
    /// of them then allocates nothing, and can't fail half way. They must be such as [`Self::merge`] takes.
    ///
    /// # Errors
    /// If memory can't be had; the filter is then unchanged.
    pub fn reserve_to_merge(&mut self, others: &[&Filter<'_>]) -> Result<(), SpecError> {
        let terms = self.terms.or_else(|| others.iter().find_map(|other| other.terms));
        let forgets = terms.is_some_and(|terms| matches!(terms.when_full, WhenFull::Forget { .. }));
        let (before, most) = (self.filters.len(), others.iter().map(|other| other.filters.len()).max().unwrap_or(0));
        let length = before.max(most);
        // Where a filter's first generation lies among all: windows are matched from the newest, others from the oldest.
        let first = |filters: usize| if forgets { length - filters } else { 0 };
        let missing = if forgets { 0..length - before } else { before..length };
        let mut added = Vec::with_capacity(missing.len());
        for generation in missing.clone() {
            let like =
                others.iter().find_map(|other| other.filters.get(generation.checked_sub(first(other.filters.len()))?));
            let Some(like) = like else { unreachable!("the longest has all of them") };
            added.push(self.filters[0].beside(&like.spec())?);
        }
        let ours = first(before)..first(before) + before;
        for generation in 0..length {
            let theirs = others.iter().filter_map(|other| {
                other.filters.get(generation.checked_sub(first(other.filters.len()))?).map(Generation::folds)
            });
            let folds = theirs.sum();
            match generation.checked_sub(ours.start).filter(|_| ours.contains(&generation)) {
                Some(own) => self.filters[own].reserve(folds)?,
                None => added[generation - missing.start].reserve(folds)?,
            }
        }
        self.filters.splice(if forgets { 0..0 } else { before..before }, added);
        self.terms = terms;
        Ok(())
    }
}
