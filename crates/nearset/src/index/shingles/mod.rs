//! Which records a new one has to be compared with: those that share a rare shingle with it.
//!
//! Claim: two records of similarity `near` or more are candidates with probability `1 - max_false_negative` at least, but for what a
//! limit cuts short, and that is said of every record. Candidates are a function of the record, the options, the model of common
//! shingles, and the records inserted before it, and of nothing else.
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

pub use keys::ShingleKeys;
pub use model::CommonShingles;

use std::collections::BTreeMap;

use groups::Groups;
use posts::Posts;

use crate::{JoinSpec, Similarity, item::sizes_near};

/// A record that shares keys with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the order of insertion.
    pub id: u32,
    /// How many keys they share.
    pub shared: u32,
}

/// Records by their shingles.
#[derive(Debug)]
pub struct ShingleIndex {
    near: Similarity,
    posts: Posts,
    groups: Groups,
    sizes: Vec<u32>,
    /// Entries under one key.
    listed: Vec<u32>,
    /// Those under all keys whose size is near, with repeats.
    met: Vec<u32>,
    full: BTreeMap<u64, FullList>,
}

/// A shingle, or a common part, with more records than are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullList {
    /// The shingle, or a hash of the common part.
    pub key: u64,
    /// How many look-ups did not see all of them.
    pub cut_short: u64,
    /// Two of the records.
    pub items: [u32; 2],
}

impl ShingleIndex {
    /// How many records are listed under one shingle by default: more than honest families have, and few enough that a corpus of one
    /// family ends.
    pub const LIMIT: usize = 8192;

    /// Creates an index without records.
    pub(crate) fn new(spec: &JoinSpec) -> Self {
        Self {
            near: spec.near,
            posts: Posts::new(Self::LIMIT),
            groups: Groups::new(spec, Self::LIMIT),
            sizes: Vec::new(),
            listed: Vec::new(),
            met: Vec::new(),
            full: BTreeMap::new(),
        }
    }

    /// Sets how many records are listed under one shingle, and looked up by one common part.
    pub(crate) fn with_limit(mut self, limit: usize) -> Self {
        self.posts.limit = limit.max(1);
        self.groups.limit = limit.max(1);
        self
    }

    /// Lifts every limit.
    pub(crate) fn without_limits(mut self) -> Self {
        self.groups.most = usize::MAX;
        self.with_limit(usize::MAX)
    }

    /// Returns how many records are listed under one shingle at most.
    pub fn limit(&self) -> usize {
        self.posts.limit
    }

    /// Overwrites `candidates` with the records to compare: those that share most keys first, then the oldest. Returns whether a
    /// limit left some out.
    pub(crate) fn find(&mut self, keys: &ShingleKeys, candidates: &mut Vec<Candidate>) -> bool {
        self.look_up(keys, candidates, true)
    }

    /// [`Self::find`], where full lists may be left uncounted.
    pub(crate) fn look_up(&mut self, keys: &ShingleKeys, candidates: &mut Vec<Candidate>, counts: bool) -> bool {
        let Self { posts, groups, sizes, listed, met, near, full } = self;
        met.clear();
        candidates.clear();
        let mut cut_short = false;
        let near_sizes = sizes_near(keys.size(), *near);
        let mut meet = |key: u64, listed: &[u32], is_full: bool| {
            let first = met.len();
            met.resize(first + listed.len(), 0);
            let mut possible = first;
            // Whether a size is near can't be foreseen, so all are written, and others go over those that are not.
            for &entry in listed {
                met[possible] = entry;
                possible += usize::from(near_sizes.contains(&(sizes[entry as usize] as usize)));
            }
            met.truncate(possible);
            if let (true, true, &[one, other, ..]) = (is_full, counts, listed) {
                full.entry(key).or_insert(FullList { key, cut_short: 0, items: [one, other] }).cut_short += 1;
            }
            cut_short |= is_full;
        };
        for &key in &keys.rare {
            let is_full = posts.list(key, listed);
            meet(key, listed, is_full);
        }
        if !keys.common.is_empty() {
            let is_full = groups.find(&keys.common, keys.size, listed);
            meet(groups::hash_of(&keys.common), listed, is_full);
        }
        met.sort_unstable();
        candidates.extend(met.chunk_by(|a, b| a == b).map(|run| Candidate { id: run[0], shared: run.len() as u32 }));
        candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
        cut_short
    }

    /// Inserts a record. Returns its number, counted from 0.
    pub(crate) fn insert(&mut self, keys: &ShingleKeys) -> u32 {
        self.insert_by(keys, Posts::post)
    }

    /// Makes room for so many more records.
    pub(crate) fn reserve(&mut self, records: usize, keys: usize) {
        self.sizes.reserve(records);
        self.posts.reserve(records.saturating_mul(keys));
    }

    /// [`Self::insert`], faster where many records come before the next is looked up.
    pub(crate) fn insert_later(&mut self, keys: &ShingleKeys) -> u32 {
        self.insert_by(keys, Posts::post_later)
    }

    fn insert_by(&mut self, keys: &ShingleKeys, post: fn(&mut Posts, u64, u32)) -> u32 {
        let entry = self.sizes.len() as u32;
        self.sizes.push(keys.size);
        keys.rare.iter().for_each(|&key| post(&mut self.posts, key, entry));
        if !keys.common.is_empty() {
            self.groups.insert(&keys.common, keys.size, entry);
        }
        entry
    }

    /// Returns the shingles under which not all records are listed.
    pub fn full_lists(&self) -> impl Iterator<Item = &FullList> {
        self.full.values()
    }

    /// Takes over what an earlier run knows of such shingles.
    pub(crate) fn restore_full_lists(&mut self, lists: impl IntoIterator<Item = FullList>) {
        self.full.extend(lists.into_iter().map(|list| (list.key, list)));
    }

    /// Returns the bytes to expect per record that is posted under so many keys: tables are three eighths to three quarters full.
    pub fn expected_bytes(keys: usize) -> u64 {
        (8.0 / 0.53 * keys as f64) as u64 + 5
    }

    /// Returns the bytes that are allocated.
    pub fn bytes(&self) -> u64 {
        self.posts.bytes() + self.groups.bytes() + 4 * self.sizes.capacity() as u64
    }
}

#[cfg(test)]
mod tests;
