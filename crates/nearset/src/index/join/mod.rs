//! Which kept records a new one has to be compared with: those that share a rare shingle with it.
//!
//! Claim: a record and a kept one of similarity `near` or more are candidates with probability `1 - max_false_negative` at least,
//! but for what a limit cuts short, and that is said of every record. Candidates are a function of the record, the options, the
//! model of common shingles, and the records inserted before it, and of nothing else.
//!
//! How: see `keys` for rare shingles, `groups` for records that hardly have any. The similarity itself is the caller's to
//! compute, from sets that it may keep or cut anew.
//!
//! Why not MinHash bands: to miss 0.1 % at .8 they take 25 keys of 7 rows each, where the 5 smallest shingles do, and no MinHash
//! functions are evaluated. Where all records share a template of some similarity, bands of any layout propose it, and common
//! shingles name it.

mod groups;
mod keys;
mod model;
mod posts;

pub use keys::RecordKeys;
pub use model::CommonShingles;

use groups::Groups;
use keys::Promise;
use posts::Posts;

use crate::{Seed, Similarity, index::Candidate, item::SortedSet};

/// Kept records by their shingles.
///
/// ```
/// use nearset::index::{CommonShingles, KeptRecords, RecordKeys};
/// use nearset::{Seed, Similarity, item::SortedSet};
///
/// let mut kept = KeptRecords::new(Similarity::jaccard(0.8)?, 0.001, CommonShingles::default(), Seed::default());
/// let (old, new): (SortedSet, SortedSet) = (Vec::from_iter(0..100).into(), Vec::from_iter(5..105).into());
/// let mut keys = RecordKeys::new();
/// kept.choose_keys(&old, &mut keys);
/// let entry = kept.insert(&keys);
///
/// kept.choose_keys(&new, &mut keys);
/// let mut candidates = Vec::new();
/// kept.find(&keys, &mut candidates);
/// assert!(candidates.is_empty() || candidates[0].id == entry);
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug)]
pub struct KeptRecords {
    promise: Promise,
    near: Similarity,
    model: CommonShingles,
    posts: Posts,
    groups: Groups,
    sizes: Vec<u32>,
    /// Entries that were met, with repeats.
    met: Vec<u32>,
}

impl KeptRecords {
    /// Creates an index without records.
    ///
    /// `near` is the similarity from which on records are to be found, and `max_false_negative` how many of those at exactly that
    /// similarity may be missed.
    pub fn new(near: Similarity, max_false_negative: f64, model: CommonShingles, seed: Seed) -> Self {
        let promise = Promise { near: near.value(), max_false_negative };
        let groups = Groups::new(near.value(), seed);
        Self { promise, near, model, posts: Posts::new(), groups, sizes: Vec::new(), met: Vec::new() }
    }

    /// Returns the shingles that propose nothing.
    pub fn model(&self) -> &CommonShingles {
        &self.model
    }

    /// Returns how many records were inserted.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Returns whether no record was inserted.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Chooses what a record is posted and looked up under.
    pub fn choose_keys(&self, record: &SortedSet, keys: &mut RecordKeys) {
        keys.choose(record.as_slice(), &self.model, self.promise);
    }

    /// Overwrites `candidates` with the records to compare: those that share most keys first, then the oldest. Returns whether a
    /// limit left some out.
    pub fn find(&mut self, keys: &RecordKeys, candidates: &mut Vec<Candidate>) -> bool {
        let Self { posts, groups, sizes, met, near, .. } = self;
        met.clear();
        candidates.clear();
        let mut cut_short = keys.short;
        let is_possible = |entry: u32| SortedSet::sizes_allow(sizes[entry as usize] as usize, keys.size(), *near);
        let mut meet = |entry: u32| {
            if is_possible(entry) {
                met.push(entry);
            }
        };
        for &key in &keys.rare {
            cut_short |= posts.list(key, &mut meet);
        }
        if !keys.common.is_empty() {
            cut_short |= groups.find(&keys.common, &mut meet);
        }
        met.sort_unstable();
        candidates.extend(met.chunk_by(|a, b| a == b).map(|run| Candidate { id: run[0], shared: run.len() as u32 }));
        candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
        cut_short
    }

    /// Inserts a record. Returns its number, counted from 0.
    pub fn insert(&mut self, keys: &RecordKeys) -> u32 {
        let entry = self.sizes.len() as u32;
        self.sizes.push(keys.size);
        keys.rare.iter().for_each(|&key| self.posts.post(key, entry));
        if !keys.common.is_empty() {
            self.groups.insert(&keys.common, keys.size, entry);
        }
        entry
    }

    /// Returns the bytes that are allocated, the model's apart.
    pub fn bytes(&self) -> u64 {
        self.posts.bytes() + self.groups.bytes() + 4 * self.sizes.capacity() as u64
    }
}

#[cfg(test)]
mod tests;
