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

use super::{Candidates, ShingleIndex, ShingleKeys, shingles::Seen};
use crate::{JoinSpec, Similarity};

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Placed {
    /// It is near nothing before it. Items without keys (empty sets) are of this kind too, and are not indexed.
    Centre {
        /// Its entry in the index.
        entry: Option<u32>,
        /// How many entries it was compared with.
        compared: u32,
    },
    /// It is near an earlier one.
    Member {
        /// The entry it is near to: a centre, or where chains are followed any item.
        of: u32,
        /// How similar they are.
        similarity: Similarity,
        /// Its own entry in the index, where chains are followed and it is no copy.
        entry: Option<u32>,
        /// How many entries it was compared with, up to an equal one.
        compared: u32,
    },
}

/// What is known of an item before its turn. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Proposal(Option<Proposed>);

#[derive(Debug, Clone)]
struct Proposed {
    seen: Seen,
    /// How many candidates there were.
    candidates: usize,
    nearest: Option<(Similarity, u32)>,
}

/// Puts items, in the order in which they come, around centres.
#[derive(Debug)]
pub struct StarClusters {
    /// The index of centres, and of members where chains are followed. What is inserted here is an item that is not compared: one that nothing
    /// shares a key with, or that an earlier run has placed.
    pub index: ShingleIndex,
    near: Similarity,
    follow_chains: bool,
    most_verified: usize,
    /// How many centres may be near another one, because a limit left candidates out.
    pub cut_short: u64,
    candidates: Candidates,
}

impl StarClusters {
    /// Candidates that one item is compared with at most, those that share most keys. What is near shares more keys than what is
    /// not; if so many are not near, the next one hardly is.
    const MOST_VERIFIED: usize = 256;

    /// Creates clusters without items, of which at most so many are listed under one shingle. `usize::MAX` lifts every limit: an item is
    /// compared with all that share a key with it, however many.
    pub fn new(spec: &JoinSpec, limit: usize) -> Self {
        let index = ShingleIndex::new(spec);
        let (index, most_verified) = match limit {
            usize::MAX => (index.without_limits(), usize::MAX),
            _ => (index.with_limit(limit), Self::MOST_VERIFIED),
        };
        Self {
            index,
            near: spec.near,
            follow_chains: false,
            most_verified,
            cut_short: 0,
            candidates: Candidates::default(),
        }
    }

    /// Sets whether what is near a member is a member too: in a chain A ~ B ~ C, C is near B.
    pub fn following_chains(mut self, follow: bool) -> Self {
        self.follow_chains = follow;
        self
    }

    /// Looks up and compares an item before its turn, on any thread. `similarity` compares it with an entry of the index, and returns
    /// nothing below the least that counts.
    ///
    /// # Errors
    /// Those of `similarity`.
    pub fn propose<E>(
        &self,
        keys: &mut ShingleKeys,
        similarity: impl FnMut(u32, Similarity) -> Result<Option<Similarity>, E>,
    ) -> Result<Proposal, E> {
        if keys.size() == 0 || self.index.entries() == 0 {
            return Ok(Proposal::default());
        }
        let mut candidates = std::mem::take(&mut keys.candidates);
        self.index.find(keys, &mut candidates);
        let proposal = self.proposal(keys, &candidates, similarity);
        keys.candidates = candidates;
        proposal
    }

    fn proposal<E>(
        &self,
        keys: &ShingleKeys,
        candidates: &Candidates,
        similarity: impl FnMut(u32, Similarity) -> Result<Option<Similarity>, E>,
    ) -> Result<Proposal, E> {
        // What a limit leaves out depends on all that came before.
        if candidates.cut_short || candidates.list.len() > self.most_verified {
            return Ok(Proposal::default());
        }
        let seen = self.index.seen(keys, candidates);
        let nearest = nearest(candidates, usize::MAX, (self.near, None), similarity)?;
        Ok(Proposal(Some(Proposed { seen, candidates: candidates.list.len(), nearest })))
    }

    /// Takes the next item, whatever is known of it. `similarity` is that of [`Self::propose`].
    ///
    /// # Errors
    /// Those of `similarity`; the item is then forgotten.
    pub fn add<E>(
        &mut self,
        keys: &ShingleKeys,
        proposal: &Proposal,
        similarity: impl FnMut(u32, Similarity) -> Result<Option<Similarity>, E>,
    ) -> Result<Placed, E> {
        if keys.size() == 0 {
            return Ok(Placed::Centre { entry: None, compared: 0 });
        }
        let Self { index, near, candidates, most_verified, .. } = self;
        let mut cut_short = false;
        let (nearest, compared) = match &proposal.0 {
            Some(Proposed { seen, candidates, nearest }) if !index.may_find_since(keys, seen) => {
                (*nearest, *candidates)
            }
            Some(Proposed { seen, candidates: before, nearest: known })
                if index.find_since(keys, seen, candidates) && before + candidates.list.len() <= *most_verified =>
            {
                (nearest(candidates, usize::MAX, (*near, *known), similarity)?, before + candidates.list.len())
            }
            _ => {
                index.settle();
                index.find(keys, candidates);
                index.count_full(candidates);
                cut_short = candidates.cut_short || candidates.list.len() > *most_verified;
                (
                    nearest(candidates, *most_verified, (*near, None), similarity)?,
                    candidates.list.len().min(*most_verified),
                )
            }
        };
        let compared = u32::try_from(compared).unwrap_or(u32::MAX);
        Ok(match nearest {
            None => {
                self.cut_short += u64::from(cut_short);
                Placed::Centre { entry: Some(self.index.insert(keys)), compared }
            }
            Some((similarity, of)) => {
                // Whatever is near a copy is as near to what it copies.
                let indexed = self.follow_chains && similarity.value() < 1.0;
                Placed::Member { of, similarity, entry: indexed.then(|| self.index.insert(keys)), compared }
            }
        })
    }
}

/// Returns the nearest of so many candidates, and of the one that is known. Of equally near ones, the oldest.
fn nearest<E>(
    candidates: &Candidates,
    most: usize,
    (near, known): (Similarity, Option<(Similarity, u32)>),
    mut similarity: impl FnMut(u32, Similarity) -> Result<Option<Similarity>, E>,
) -> Result<Option<(Similarity, u32)>, E> {
    let mut nearest = known;
    for candidate in candidates.list.iter().take(most) {
        if nearest.is_some_and(|(most, _)| most.value() == 1.0) {
            break;
        }
        let least = nearest.map_or(near, |(most, _)| most);
        let Some(found) = similarity(candidate.id, least)? else { continue };
        if nearest.is_none_or(|(most, id)| found > most || found == most && candidate.id < id) {
            nearest = Some((found, candidate.id));
        }
    }
    Ok(nearest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Rng, Seed, hash::mix, index::CommonShingles, item::SortedSet, plan::Request};

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
            let one = clusters.add(&keys, &Proposal::default(), compare).unwrap();
            if let Placed::Centre { entry: Some(entry), .. } | Placed::Member { entry: Some(entry), .. } = one {
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
        let placed = place(StarClusters::new(&spec(), 1024), &sets);
        let similarity = Similarity::jaccard(90.0 / 110.0).unwrap();
        let member = |of, entry, compared| Placed::Member { of, similarity, entry, compared };
        let centre = |entry, compared| Placed::Centre { entry: Some(entry), compared };
        assert_eq!(placed, [centre(0, 0), member(0, None, 1), centre(1, 1)]);
        let placed = place(StarClusters::new(&spec(), 1024).following_chains(true), &sets);
        assert_eq!(placed, [centre(0, 0), member(0, Some(1), 1), member(1, Some(2), 2)]);
    }

    #[test]
    fn the_nearest_centre_is_joined_and_empty_sets_join_none() {
        // The second is .78 from the first, so both are centres; the third is nearer to the second.
        let sets = [range(0, 100), range(12, 112), range(9, 109), SortedSet::default(), SortedSet::default()];
        let placed = place(StarClusters::new(&spec(), 1024), &sets);
        let similarity = Similarity::jaccard(97.0 / 103.0).unwrap();
        assert_eq!(placed[2], Placed::Member { of: 1, similarity, entry: None, compared: 2 });
        assert_eq!(placed[3..], [Placed::Centre { entry: None, compared: 0 }; 2]);
    }

    /// Sets of families, of templates, and of what many share, so that every limit is met.
    fn crowded(count: u64) -> Vec<SortedSet> {
        let mut rng = Rng::new(Seed::new(7));
        let mut sets: Vec<SortedSet> = Vec::new();
        for i in 0..count {
            let template = 1000 * rng.below(3);
            let own = 1_000_000 * i;
            let set = match rng.below(5) {
                0 => Vec::from_iter((template..template + 150).chain(own..own + 1 + rng.below(60))),
                1 => Vec::from_iter((7000..7004).chain(own..own + 30)),
                2 if i > 0 => {
                    let mut copy = sets[rng.below(i) as usize].as_slice().to_vec();
                    copy.iter_mut().take(rng.below(5) as usize).for_each(|element| *element ^= own);
                    sets.push(copy.into());
                    continue;
                }
                _ => Vec::from_iter(own..own + 20 + rng.below(100)),
            };
            sets.push(Vec::from_iter(set.into_iter().map(mix)).into());
        }
        sets
    }

    #[test]
    fn neither_proposals_nor_rounds_change_anything() {
        let sets = crowded(3000);
        let learnt = CommonShingles::of_sample(sets.iter().step_by(3).map(SortedSet::as_slice), sets.len());
        // Without a model, what many share fills lists; with one, it is looked up by groups.
        for (follow, model) in [(false, CommonShingles::default()), (true, learnt.clone()), (false, learnt)] {
            let clusters = || {
                let mut clusters = StarClusters::new(&spec(), 1024).following_chains(follow);
                clusters.index = clusters.index.with_limit(40);
                clusters.most_verified = 12;
                clusters
            };
            let run = |batch: usize, batches_of_round: usize| {
                let mut elsewhere = BTreeSet::new();
                let (mut clusters, mut entries) = (clusters(), Vec::<&SortedSet>::new());
                let (mut keys, mut placed) = (ShingleKeys::default(), Vec::new());
                for (number, batch_sets) in sets.chunks(batch.max(1)).enumerate() {
                    clusters.index.settle_by(|tasks| tasks.into_iter().rev().for_each(|task| task()));
                    if number > 0 && number % batches_of_round == 0 {
                        (0..=255).for_each(|part| elsewhere.extend(clusters.index.postings(part)));
                        let mut codes = BTreeSet::new();
                        for set in &sets[batch * number..sets.len().min(batch * (number + batches_of_round))] {
                            keys.choose(set.as_slice(), &model, &spec());
                            codes.extend(keys.codes());
                        }
                        clusters
                            .index
                            .next_round(true, elsewhere.iter().copied().filter(|(code, ..)| codes.contains(code)));
                    }
                    let sets = batch_sets;
                    let mut proposals = vec![Proposal::default(); sets.len()];
                    for (set, proposal) in sets.iter().zip(&mut proposals).take(batch) {
                        keys.choose(set.as_slice(), &model, &spec());
                        let compare =
                            |entry: u32, least| Ok::<_, ()>(set.jaccard_at_least(entries[entry as usize], least));
                        *proposal = clusters.propose(&mut keys, compare).unwrap();
                    }
                    for (set, proposal) in sets.iter().zip(&proposals) {
                        keys.choose(set.as_slice(), &model, &spec());
                        let compare =
                            |entry: u32, least| Ok::<_, ()>(set.jaccard_at_least(entries[entry as usize], least));
                        let one = clusters.add(&keys, proposal, compare).unwrap();
                        if let Placed::Centre { entry: Some(_), .. } | Placed::Member { entry: Some(_), .. } = one {
                            entries.push(set);
                        }
                        placed.push(one);
                    }
                }
                let full: Vec<crate::index::FullList> = clusters.index.full_lists().copied().collect();
                (placed, clusters.cut_short, full)
            };
            let expected = run(0, usize::MAX);
            assert!(!model.as_slice().is_empty() || expected.1 > 20 && !expected.2.is_empty(), "{}", expected.1);
            let members = expected.0.iter().filter(|placed| matches!(placed, Placed::Member { .. })).count();
            assert!(members > 300, "{members} members");
            for batch in [1, 2, 17, 250, 3000] {
                assert!(run(batch, usize::MAX) == expected, "batches of {batch}");
            }
            for (batch, round) in [(250, 1), (40, 3), (7, 60)] {
                assert!(run(batch, round) == expected, "rounds of {round} batches of {batch}");
            }
        }
    }
}
