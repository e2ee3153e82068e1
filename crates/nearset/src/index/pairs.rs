//! All near pairs of a corpus of sets.
//!
//! Claim: every pair that is returned is as similar as stated, exactly; a pair of similarity `near` or more is returned with
//! probability `1 - max_false_negative` or more ([`ShingleIndex`] says how), each once.
//! Invariant: sets that are equal are looked up by one of them, the first; the others are its copies. So a thousand copies
//! cost a thousand verifications and not half a million, and a pair of families costs one.
//! Not here: reading texts, which may be too many for memory. [`NearPairs`] asks its caller to compare.

use std::collections::BTreeMap;

use super::{Candidates, ShingleIndex, ShingleKeys};
use crate::{JoinSpec, Similarity};

/// Earlier items, with their similarities.
type Near<'p> = &'p [(u32, Similarity)];

/// Finds the earlier items that each next one is near to.
///
/// Items are numbered in the order in which they come, from 0 on. Those without keys (empty sets) are near nothing.
#[derive(Debug)]
pub struct NearPairs {
    /// The index of the items that are no copies. What is inserted here is no item, and is not to be proposed.
    pub index: ShingleIndex,
    /// The item that each entry of the index stands for.
    first: Vec<u32>,
    /// Copies of entries, as far as they are listed, and how many there are.
    copies: BTreeMap<u32, Copies>,
    /// How many copies are listed.
    listed: usize,
    most_copies: usize,
    items: u32,
    /// Pairs with copies beyond those that are listed: near, and not returned.
    pub left_out: u64,
    /// Items that were not compared with all that share a key with them, because a limit left some out.
    pub cut_short: u64,
    candidates: Candidates,
    found: Vec<(u32, Similarity)>,
}

/// What an entry takes whose copies are counted, about.
const BYTES_PER_COPIED: usize = 60;

#[derive(Debug, Clone, Default)]
struct Copies {
    listed: Vec<u32>,
    count: u64,
}

impl NearPairs {
    /// Copies of one item that are paired with others, where no other number is set.
    pub const MOST_COPIES: usize = 100;

    /// Creates a finder without items.
    pub fn new(spec: &JoinSpec) -> Self {
        Self {
            index: ShingleIndex::new(spec),
            first: Vec::new(),
            copies: BTreeMap::new(),
            listed: 0,
            most_copies: Self::MOST_COPIES,
            items: 0,
            left_out: 0,
            cut_short: 0,
            candidates: Candidates::default(),
            found: Vec::new(),
        }
    }

    /// Sets how many copies of one item are paired with others (the pairs of the rest are only counted), and how many items are listed
    /// under one shingle; `usize::MAX` lifts every limit, so that candidates depend on two items alone.
    pub fn with_limits(mut self, most_copies: usize, limit: usize) -> Self {
        self.most_copies = most_copies;
        self.index = if limit == usize::MAX { self.index.without_limits() } else { self.index.with_limit(limit) };
        self
    }

    /// Takes the next item, and returns its entry in the index (none for a copy, or a set without elements) and the earlier ones near it
    /// with their similarities, in their order. `similarity` compares
    /// it with an entry of the index, and says nothing if that is not near.
    ///
    /// # Errors
    /// Those of `similarity`; the item is then forgotten.
    pub fn add<E>(
        &mut self,
        keys: &ShingleKeys,
        mut similarity: impl FnMut(u32) -> Result<Option<Similarity>, E>,
    ) -> Result<(Option<u32>, Near<'_>), E> {
        self.found.clear();
        let item = self.items;
        self.items += 1;
        if keys.size() == 0 {
            return Ok((None, &self.found));
        }
        self.index.settle();
        self.index.find(keys, &mut self.candidates);
        self.index.count_full(&self.candidates);
        self.cut_short += u64::from(self.candidates.cut_short);
        let mut equal = None;
        for candidate in &self.candidates.list {
            let entry = candidate.id;
            let Some(similarity) = similarity(entry)? else { continue };
            self.found.push((self.first[entry as usize], similarity));
            if let Some(copies) = self.copies.get(&entry) {
                self.found.extend(copies.listed.iter().map(|&copy| (copy, similarity)));
                self.left_out += copies.count - copies.listed.len() as u64;
            }
            if similarity.value() == 1.0 {
                equal = Some(entry);
            }
        }
        self.found.sort_unstable_by_key(|&(earlier, _)| earlier);
        let entry = match equal {
            Some(entry) => {
                let copies = self.copies.entry(entry).or_default();
                copies.count += 1;
                if copies.listed.len() < self.most_copies {
                    copies.listed.push(item);
                    self.listed += 1;
                }
                None
            }
            None => {
                self.first.push(item);
                Some(self.index.insert(keys))
            }
        };
        Ok((entry, &self.found))
    }

    /// Returns the bytes that are allocated, about.
    pub fn bytes(&self) -> u64 {
        // A list that grows has room for twice as many.
        let copies = BYTES_PER_COPIED * self.copies.len() + 8 * self.listed;
        self.index.bytes() + (4 * self.first.capacity() + copies) as u64
    }

    /// The items that the entries of the index stand for, in their order.
    pub fn items(&self) -> &[u32] {
        &self.first
    }

    /// Entries that have copies, with how many.
    pub fn copied_entries(&self) -> impl Iterator<Item = (u32, u64)> {
        self.copies.iter().map(|(&entry, copies)| (entry, copies.count))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{Seed, hash::Rng, index::CommonShingles, item::SortedSet, plan::Request};

    /// Calls `pair` for every near pair of sets, the earlier first, in the order of the later one.
    fn near_pairs(sets: &[SortedSet], join: &JoinSpec, mut pair: impl FnMut(usize, usize, Similarity)) {
        let common = CommonShingles::of_sample(sets.iter().map(SortedSet::as_slice), sets.len());
        let mut pairs = NearPairs::new(join).with_limits(usize::MAX, usize::MAX);
        let (mut keys, mut entries) = (ShingleKeys::default(), Vec::new());
        for (i, set) in sets.iter().enumerate() {
            let set = set.as_slice();
            keys.choose(set, &common, join);
            let compare =
                |entry: u32| Ok::<_, Infallible>(join.similarity_at_least(set, entries[entry as usize], join.near));
            let Ok((entry, near)) = pairs.add(&keys, compare);
            near.iter().for_each(|&(earlier, similarity)| pair(earlier as usize, i, similarity));
            if entry.is_some() {
                entries.push(set);
            }
        }
    }

    /// Families of sets: copies with some elements exchanged, and some exact copies.
    fn families(seed: u64, count: usize) -> Vec<SortedSet> {
        let mut rng = Rng::new(Seed::new(seed));
        let mut sets: Vec<SortedSet> = Vec::new();
        for _ in 0..count {
            let mut elements = match rng.below(4) {
                0 => Vec::from_iter((0..rng.below(60)).map(|_| rng.next_u64())),
                _ if sets.is_empty() => vec![1],
                _ => sets[rng.below(sets.len() as u64) as usize].as_slice().to_vec(),
            };
            for _ in 0..rng.below(3) {
                if !elements.is_empty() {
                    let at = rng.below(elements.len() as u64) as usize;
                    elements[at] = rng.next_u64();
                }
            }
            sets.push(elements.into());
        }
        sets
    }

    #[test]
    fn pairs_are_those_of_comparing_all() {
        let sets = families(1, 1500);
        let request = Request { near: 0.7, max_false_negative: Some(1e-6), ..Request::default() };
        let join = request.plan_join().unwrap();
        let mut found = Vec::new();
        near_pairs(&sets, &join, |a, b, similarity| found.push((a, b, similarity)));
        let mut compared = Vec::new();
        for (b, later) in sets.iter().enumerate() {
            for (a, earlier) in sets[..b].iter().enumerate() {
                let similarity = later.jaccard(earlier);
                if similarity >= join.near {
                    compared.push((a, b, similarity));
                }
            }
        }
        assert!(compared.len() > 4_000, "{} pairs", compared.len());
        // At 1e-6 a pair at exactly .7, hardly one is missed; most are nearer, and are missed more rarely.
        assert_eq!(found, compared);
    }

    #[test]
    fn copies_cost_a_verification_each_and_are_listed_up_to_a_limit() {
        let join = Request::default().plan_join().unwrap();
        let mut pairs = NearPairs::new(&join).with_limits(3, ShingleIndex::LIMIT);
        let set = SortedSet::from(vec![1, 2, 3, 4, 5]);
        let mut keys = ShingleKeys::default();
        keys.choose(set.as_slice(), &CommonShingles::default(), &join);
        let (mut returned, mut verified) = (0, 0);
        for _ in 0..100_000 {
            let compare = |_| {
                verified += 1;
                Ok::<_, ()>(Some(set.jaccard(&set)))
            };
            returned += pairs.add(&keys, compare).unwrap().1.len() as u64;
        }
        assert_eq!(verified, 99_999);
        assert_eq!(pairs.items().len(), 1);
        assert_eq!(pairs.copied_entries().collect::<Vec<_>>(), [(0, 99_999)]);
        assert_eq!(returned + pairs.left_out, 100_000 * 99_999 / 2);
        assert_eq!(returned, 4 * 99_999 - (3 + 2 + 1), "the first one and three copies");
    }
}
