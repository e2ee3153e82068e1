//! Generations of two filters as one.
//!
//! Generations that grew are matched from the oldest, which both began with; those of windows from the newest, since "the last million"
//! is counted back from now. What only the other has is copied.

use super::{Filter, Generation};
use crate::{
    MergeError,
    spec::{Terms, WhenFull},
};

/// Which generations belong together.
struct Matching<'o, 'b> {
    /// Where among ours the matched ones begin.
    from: usize,
    /// The other's that match them, one by one.
    matched: &'o [Generation<'b>],
    /// Those that only the other has.
    copied: &'o [Generation<'b>],
    /// Where among ours copies of them go.
    to: usize,
}

impl Filter<'_> {
    fn matching<'o, 'b>(&self, other: &'o Filter<'b>, terms: Option<&Terms>) -> Matching<'o, 'b> {
        let both = self.filters.len().min(other.filters.len());
        if let Some(Terms { when_full: WhenFull::Forget { .. }, .. }) = terms {
            let (copied, matched) = other.filters.split_at(other.filters.len() - both);
            Matching { from: self.filters.len() - both, matched, copied, to: 0 }
        } else {
            let (matched, copied) = other.filters.split_at(both);
            Matching { from: 0, matched, copied, to: self.filters.len() }
        }
    }

    /// How many bytes [`Self::bytes`] may grow by when the other is merged into this one: for those who merge several, and all or
    /// none.
    ///
    /// # Errors
    /// If it can't be merged: those of [`Self::merge`].
    #[cfg(any(test, feature = "server"))]
    pub fn room_to_merge(&self, other: &Filter<'_>) -> Result<u64, MergeError> {
        self.expect_mergeable(other)?;
        let Matching { matched, copied, .. } = self.matching(other, self.terms.as_ref().or(other.terms.as_ref()));
        // A scan takes in what the other holds; tables stay as large as they are.
        let scanned = matched.iter().filter(|filter| filter.table().is_none()).map(Generation::bytes);
        Ok(copied.iter().map(Generation::bytes).chain(scanned).sum())
    }

    /// Whether no generation can come to hold more than it is made for when the other is merged into this one, whatever both hold.
    pub fn has_room_for(&self, other: &Filter<'_>) -> bool {
        let Some(terms) = self.terms.as_ref().or(other.terms.as_ref()) else { return false };
        let Matching { from, matched, .. } = self.matching(other, Some(terms));
        let both = self.filters[from..].iter().zip(matched).enumerate();
        both.map(|(i, (ours, theirs))| (ours.len().saturating_add(theirs.len()), self.capacity_of(terms, from + i)))
            .all(|(items, capacity)| items <= capacity)
    }

    /// Checks that [`Self::merge`] will not be refused.
    fn expect_mergeable(&self, other: &Filter<'_>) -> Result<(), MergeError> {
        // Before the terms: a similarity beside a number of bits does not tell that the items are of different kinds.
        if let (Some(ours), Some(theirs)) = (self.metric(), other.metric())
            && ours != theirs
        {
            return Err(MergeError { what: "metric", ours: ours.to_string(), theirs: theirs.to_string() });
        }
        if let (Some(ours), Some(theirs)) = (&self.terms, &other.terms) {
            ours.expect_equal(theirs)?;
        }
        let Matching { from, matched, .. } = self.matching(other, self.terms.as_ref().or(other.terms.as_ref()));
        self.filters[from..].iter().zip(matched).try_for_each(|(ours, theirs)| ours.expect_equal(theirs))
    }

    /// Takes in all items of another filter, generation by generation. A full filter that refuses items does not refuse this.
    ///
    /// Each generation has then the items of both, so that the newest may be over its capacity and end with the next insertion.
    ///
    /// # Errors
    /// If the terms differ, where both have some, or the specs do, naming the first difference; the filter is then unchanged.
    pub fn merge(&mut self, other: &Filter<'_>) -> Result<(), MergeError> {
        self.expect_mergeable(other)?;
        let terms = self.terms.or(other.terms);
        let Matching { from, matched, copied, to } = self.matching(other, terms.as_ref());
        for (ours, theirs) in self.filters[from..].iter_mut().zip(matched) {
            ours.merge(theirs)?;
        }
        let copies = copied.iter().map(|theirs| theirs.clone().into_owned().sharing_functions_of(&self.filters[0]));
        let copies: Vec<Generation<'static>> = copies.collect();
        self.filters.splice(to..to, copies);
        self.terms = terms;
        Ok(())
    }
}
