//! Indexes: which stored item is near, and how near.
//!
//! Claim: whatever an index returns is near by its exact distance; an index differs from another in what it may miss, and each
//! says so at its head.
//! Invariant: an item's id is its place in the order of insertion, from 0 on, and never changes.
//! Not here: names of items in files (`nearset-pipeline`), bytes on disk (`codec`).

mod cluster;
pub(crate) mod lsh;
mod pairs;

use std::cmp::Ordering;

pub use cluster::{Placed, StarClusters, UnionFind};
pub use lsh::{IndexError, LshIndex, LshSpec, LshSpecError};
pub use pairs::{Added, BandIndex, Candidate, FullBucket, NearPairs, near_pairs};

use crate::Distance;

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
