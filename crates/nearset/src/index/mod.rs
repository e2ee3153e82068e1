//! Indexes: which stored item is near, and how near.
//!
//! Claim: whatever an index returns is near by its exact distance; an index differs from another in what it may miss, and each
//! says so at its head.
//! Invariant: an item's id is its place in the order of insertion, from 0 on, and never changes.
//! Not here: names of items in files (`nearset-records`), bytes on disk (`codec`).

mod any;
mod cluster;
pub(crate) mod hamming;
mod labels;
pub(crate) mod lsh;
// The server's module alone uses it: what it needs is not part of the library's API.
#[cfg_attr(not(feature = "server"), allow(dead_code, unused_imports))]
mod named;
mod pairs;
mod prepared;
mod removed;
mod shingles;

use std::{cmp::Ordering, collections::TryReserveError};

pub use any::Index;
pub(crate) use any::Structure;
pub use cluster::{Placed, Proposal, StarClusters};
pub(crate) use hamming::HammingIndex;
pub(crate) use labels::Labels;
pub(crate) use lsh::LshIndex;
#[cfg(feature = "server")]
pub use named::{NamedIndex, NamedState, SegmentMerge};
pub use pairs::NearPairs;
pub use prepared::PreparedItem;
pub(crate) use removed::Removed;
pub(crate) use shingles::Candidates;
pub use shingles::{CommonShingles, FullList, ShingleIndex, ShingleKeys};

use crate::{Distance, ItemError, MergeError, error::SpecError, item::BatchError};

/// How many nearest items people are shown if they do not say.
pub const USUAL_TOP: usize = 10;

/// A stored item that was found, and how far from the query it is.
///
/// The nearer is the lesser; of equally near ones, the one inserted first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The item's place in the order of insertion.
    pub id: u32,
    /// Its exact distance from the query.
    pub distance: Distance,
}

impl Eq for Neighbour {}

impl Ord for Neighbour {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = self.distance.partial_cmp(&other.distance).expect("a distance is a number");
        nearer.then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Neighbour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Why an index can't do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The item is not of those that the index takes.
    #[error(transparent)]
    Item(#[from] ItemError),
    /// One of many items is not.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Distances of items that are not there.
    #[error("this index keeps no items, so it knows no distances: ask for candidates, or build it with items kept")]
    ItemsNotKept,
    /// A prepared item of another form or with other keys.
    #[error("the item was prepared for an index of another spec: prepare it with this one")]
    PreparedForAnother,
    /// No id is left.
    #[error("the index has given all of its ids: start another one")]
    Full,
    /// Names that would take far more memory than their items.
    #[error(
        "ids run up to {ids} for {items} items, and names are kept for every id: build the index again, which gives its items new ids"
    )]
    SparseNames {
        /// The id that the next item gets.
        ids: u32,
        /// Items that are in.
        items: u32,
    },
    /// An item that could not be found by its name.
    #[error("item {position} has no name: items of this index are found, replaced and removed by theirs")]
    NoName {
        /// Its place among those that were to be inserted.
        position: usize,
    },
    /// Items that are to be left out, and are not there.
    #[error("items are to be left out that are not there: the list is damaged, or of another index")]
    LeftOut,
    /// A search that would have to compare more than was allowed.
    #[error("the search would have to compare more than was allowed")]
    Budget,
    /// What the system refused.
    #[error("there is no memory for the items")]
    Memory(#[source] TryReserveError),
    /// There is no such index.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The indexes' tables mean different things.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// Takes so many words to compare off what may be compared.
///
/// # Errors
/// If that is less.
pub(crate) fn spend(budget: &mut u64, words: u64) -> Result<(), IndexError> {
    *budget = budget.checked_sub(words).ok_or(IndexError::Budget)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_comes_first_and_the_earlier_among_equals() {
        let at = |distance, id| Neighbour { id, distance: Distance::new(distance).unwrap() };
        let mut found = [at(2.0, 1), at(0.5, 9), at(2.0, 0), at(-0.0, 5), at(0.0, 4)];
        found.sort();
        assert_eq!(found.map(|neighbour| neighbour.id), [4, 5, 9, 0, 1]);
    }
}
