//! Clusters: stars around kept items.
//!
//! A *star* is a centre and the items near it. Items come in order; each joins the nearest centre before it, or becomes a
//! centre. So whatever is not a centre is near one, centres are not near each other (up to what keys miss), and in a chain
//! A ~ B ~ C, where A and C are not near, C is no member of A's star: deleting all but the centres deletes nothing that has
//! no near centre left.
//! A *component* is what chains of near pairs connect. It needs all pairs, and its ends may be strangers; whoever has the pairs
//! connects them.
//!
//! Claim: a star's member is as similar to its centre as stated, exactly, and its centre is the nearest of those verified.
//! Not here: comparing, which the caller does.

use super::{Candidate, FullList, ShingleIndex, ShingleKeys};
use crate::{JoinSpec, Similarity};

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Placed {
    /// It is near nothing before it. Items without keys (empty sets) are of this kind too, and are not indexed.
    Centre {
        /// Its entry in the index.
        entry: Option<u32>,
    },
    /// It is near an earlier one.
    Member {
        /// The entry it is near to: a centre, or where chains are followed any item.
        of: u32,
        /// How similar they are.
        similarity: Similarity,
        /// Its own entry in the index, where chains are followed and it is no copy.
        entry: Option<u32>,
    },
}

/// Puts items, in the order in which they come, around centres.
#[derive(Debug)]
pub struct StarClusters {
    index: ShingleIndex,
    near: Similarity,
    /// Keys of most items.
    keys: usize,
    follow_chains: bool,
    most_verified: usize,
    cut_short: u64,
    candidates: Vec<Candidate>,
}

impl StarClusters {
    /// Candidates that one item is compared with at most, those that share most keys. What is near shares more keys than what is
    /// not; if so many are not near, the next one hardly is.
    const MOST_VERIFIED: usize = 256;

    /// Items that are listed under one shingle at most.
    const LIMIT: usize = 1024;

    /// Creates clusters without items.
    pub fn new(spec: &JoinSpec) -> Self {
        Self {
            index: ShingleIndex::new(spec).with_limit(Self::LIMIT),
            near: spec.near,
            keys: spec.keys(),
            follow_chains: false,
            most_verified: Self::MOST_VERIFIED,
            cut_short: 0,
            candidates: Vec::new(),
        }
    }

    /// Sets whether what is near a member is a member too: in a chain A ~ B ~ C, C is near B.
    pub fn following_chains(mut self, follow: bool) -> Self {
        self.follow_chains = follow;
        self
    }

    /// Lifts every limit: an item is compared with all that share a key with it, however many.
    pub fn without_limits(mut self) -> Self {
        self.index = self.index.without_limits();
        self.most_verified = usize::MAX;
        self
    }

    /// Takes the next item. `similarity` compares it with an entry of the index, and returns nothing below the least that counts.
    ///
    /// # Errors
    /// Those of `similarity`; the item is then forgotten.
    pub fn add<E>(
        &mut self,
        keys: &ShingleKeys,
        mut similarity: impl FnMut(u32, Similarity) -> Result<Option<Similarity>, E>,
    ) -> Result<Placed, E> {
        if keys.size() == 0 {
            return Ok(Placed::Centre { entry: None });
        }
        let mut cut_short = self.index.find(keys, &mut self.candidates);
        cut_short |= self.candidates.len() > self.most_verified;
        let mut nearest: Option<(Similarity, u32)> = None;
        for candidate in self.candidates.iter().take(self.most_verified) {
            let least = nearest.map_or(self.near, |(most, _)| most);
            let Some(found) = similarity(candidate.id, least)? else { continue };
            // Of equally near ones, the oldest.
            if nearest.is_none_or(|(most, id)| found > most || candidate.id < id) {
                nearest = Some((found, candidate.id));
            }
            if found.value() == 1.0 {
                break;
            }
        }
        Ok(match nearest {
            None => {
                self.cut_short += u64::from(cut_short);
                Placed::Centre { entry: Some(self.index.insert(keys)) }
            }
            Some((similarity, of)) => {
                // Whatever is near a copy is as near to what it copies.
                let indexed = self.follow_chains && similarity.value() < 1.0;
                Placed::Member { of, similarity, entry: indexed.then(|| self.index.insert(keys)) }
            }
        })
    }

    /// Makes an item a centre without comparing it, and returns its entry: one that nothing shares a key with, or that an earlier run
    /// has placed.
    pub fn insert(&mut self, keys: &ShingleKeys) -> u32 {
        self.index.insert_later(keys)
    }

    /// Makes room for so many more items.
    pub fn reserve(&mut self, items: usize) {
        self.index.reserve(items, self.keys);
    }

    /// Takes over what an earlier run counted.
    pub fn restore(&mut self, lists: impl IntoIterator<Item = FullList>, cut_short: u64) {
        self.index.restore_full_lists(lists);
        self.cut_short = cut_short;
    }

    /// Returns whether an item with these keys would be compared with any other.
    pub fn has_candidates(&mut self, keys: &ShingleKeys) -> bool {
        self.index.look_up(keys, &mut self.candidates, false) || !self.candidates.is_empty()
    }

    /// Returns the index of centres, and of members where chains are followed.
    pub fn index(&self) -> &ShingleIndex {
        &self.index
    }

    /// Returns how many centres may be near another one, because a limit left candidates out.
    pub fn cut_short(&self) -> u64 {
        self.cut_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hash::mix, index::CommonShingles, item::SortedSet, plan::Request};

    fn spec() -> JoinSpec {
        Request::default().plan_join().unwrap()
    }

    fn place(mut clusters: StarClusters, sets: &[SortedSet]) -> Vec<Placed> {
        let (mut keys, mut entries, mut placed) = (ShingleKeys::default(), Vec::new(), Vec::new());
        for set in sets {
            keys.choose(set.as_slice(), &CommonShingles::default(), &spec());
            let compare = |entry: u32, least| {
                let other: &SortedSet = entries[entry as usize];
                Ok::<_, ()>(set.jaccard_at_least(other, least))
            };
            let one = clusters.add(&keys, compare).unwrap();
            if let Placed::Centre { entry: Some(entry) } | Placed::Member { entry: Some(entry), .. } = one {
                assert_eq!(entry as usize, entries.len());
                entries.push(set);
            }
            placed.push(one);
        }
        placed
    }

    fn range(from: u64, to: u64) -> SortedSet {
        // Hashes, of which the smallest are anywhere in the range.
        Vec::from_iter((from..to).map(mix)).into()
    }

    #[test]
    fn a_chain_keeps_what_is_near_no_centre() {
        // Neighbours share 90 of 110, ends 80 of 120.
        let sets = [range(0, 100), range(10, 110), range(20, 120)];
        let placed = place(StarClusters::new(&spec()), &sets);
        let similarity = Similarity::jaccard(90.0 / 110.0).unwrap();
        let member = |of, entry| Placed::Member { of, similarity, entry };
        let centre = |entry| Placed::Centre { entry: Some(entry) };
        assert_eq!(placed, [centre(0), member(0, None), centre(1)]);
        let placed = place(StarClusters::new(&spec()).following_chains(true), &sets);
        assert_eq!(placed, [centre(0), member(0, Some(1)), member(1, Some(2))]);
    }

    #[test]
    fn the_nearest_centre_is_joined_and_empty_sets_join_none() {
        // The second is .78 from the first, so both are centres; the third is nearer to the second.
        let sets = [range(0, 100), range(12, 112), range(9, 109), SortedSet::default(), SortedSet::default()];
        let placed = place(StarClusters::new(&spec()), &sets);
        let similarity = Similarity::jaccard(97.0 / 103.0).unwrap();
        assert_eq!(placed[2], Placed::Member { of: 1, similarity, entry: None });
        assert_eq!(placed[3..], [Placed::Centre { entry: None }; 2]);
    }
}
