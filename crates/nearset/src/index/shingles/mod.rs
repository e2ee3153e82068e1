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

use groups::{Groups, GroupsRoom};
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

/// What one thread looks records up with, and what it found last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    /// Those that share most keys first, then the oldest.
    pub(crate) list: Vec<Candidate>,
    /// Whether a limit left some out.
    pub(crate) cut_short: bool,
    /// Lists that are full.
    full: Vec<(u64, [u32; 2])>,
    /// How many were found by the common part.
    grouped: usize,
    groups: GroupsRoom,
    /// Entries under one key.
    listed: Vec<u32>,
    /// Those with a common part, and their sizes.
    in_groups: Vec<(u32, u32)>,
    /// Those under all keys whose size is near, with repeats.
    met: Vec<u32>,
}

/// What was known of a record's candidates when so many records were in the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    entries: u32,
    /// How many groups there were, which of them may be near, and how many entries they gave.
    groups: usize,
    near_groups: Vec<u32>,
    grouped: usize,
}

/// Records by their shingles.
#[derive(Debug)]
pub struct ShingleIndex {
    near: Similarity,
    posts: Posts,
    groups: Groups,
    /// Entries of earlier rounds and runs, whose postings are elsewhere: those that this round's records share.
    older: Older,
    /// By entry of this round.
    sizes: Vec<u32>,
    /// The last entry with a common part.
    last_grouped: Option<u32>,
    full: BTreeMap<u64, FullList>,
}

/// Lists of entries that are not in the tables.
#[derive(Debug, Default)]
struct Older {
    /// How many entries are older than those in the tables.
    entries: u32,
    /// Codes in ascending order, and where their lists end.
    codes: Vec<u64>,
    ends: Vec<u32>,
    /// Entries and their sizes.
    listed: Vec<(u32, u32)>,
}

impl Older {
    fn list(&self, key: u64) -> &[(u32, u32)] {
        if self.codes.is_empty() {
            return &[];
        }
        let Ok(at) = self.codes.binary_search(&posts::code(key)) else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.listed[start as usize..self.ends[at] as usize]
    }
}

/// A shingle, or a common part, with more records than are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullList {
    /// The shingle, or a hash of the common part.
    pub key: u64,
    /// How many records are listed.
    pub listed: usize,
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
            older: Older::default(),
            sizes: Vec::new(),
            last_grouped: None,
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

    /// Overwrites `candidates` with the records to compare.
    pub(crate) fn find(&self, keys: &ShingleKeys, candidates: &mut Candidates) {
        let all_met = self.meet_rare(keys, 0, candidates);
        debug_assert!(all_met);
        if !keys.common.is_empty() {
            self.meet_grouped(keys, (0, 0), candidates);
        }
        candidates.count_shared();
    }

    /// Returns what a later look-up can leave out, behind [`Self::find`].
    pub(crate) fn seen(&self, keys: &ShingleKeys, candidates: &Candidates) -> Seen {
        let (groups, grouped) = match keys.common.is_empty() {
            true => (0, 0),
            false => (self.groups.sketched(), candidates.grouped),
        };
        let near_groups = if groups == 0 { &[][..] } else { &candidates.groups.found };
        let near_groups = near_groups.iter().map(|&group| group as u32).collect();
        Seen { entries: self.entries(), groups, near_groups, grouped }
    }

    /// Returns whether a record that came since may be a candidate.
    pub(crate) fn may_find_since(&self, keys: &ShingleKeys, seen: &Seen) -> bool {
        keys.rare.iter().any(|&key| self.posts.may_list(key, seen.entries))
            || !keys.common.is_empty() && self.last_grouped.is_some_and(|last| last >= seen.entries)
    }

    /// Overwrites `candidates` with the records that came since. Returns whether that is all that [`Self::find`] would find beside those
    /// seen before: not if a limit is reached, which depends on all of them.
    pub(crate) fn find_since(&self, keys: &ShingleKeys, seen: &Seen, candidates: &mut Candidates) -> bool {
        if !self.meet_rare(keys, seen.entries, candidates) {
            return false;
        }
        if !keys.common.is_empty() && self.last_grouped.is_some_and(|last| last >= seen.entries) {
            candidates.groups.found.clear();
            candidates.groups.found.extend(seen.near_groups.iter().map(|&group| group as usize));
            self.meet_grouped(keys, (seen.entries, seen.groups), candidates);
            if candidates.cut_short || seen.grouped + candidates.grouped >= self.groups.limit {
                return false;
            }
        }
        candidates.count_shared();
        true
    }

    /// Meets the records from `since` on that share a rare shingle. Where only some are wanted, returns whether no list is full.
    fn meet_rare(&self, keys: &ShingleKeys, since: u32, candidates: &mut Candidates) -> bool {
        let Candidates { listed, met, full, cut_short, grouped, .. } = candidates;
        met.clear();
        full.clear();
        (*cut_short, *grouped) = (false, 0);
        let near_sizes = sizes_near(keys.size(), self.near);
        if since == 0 {
            keys.rare.iter().for_each(|&key| self.posts.prefetch(key));
        }
        for &key in &keys.rare {
            if since > 0 && !self.posts.may_list(key, since) {
                continue;
            }
            // Of all that were posted, the oldest are listed.
            let older = self.older.list(key);
            let older = &older[..older.len().min(self.posts.limit)];
            self.posts.list(key, listed);
            listed.truncate(self.posts.limit - older.len());
            let is_full = older.len() + listed.len() >= self.posts.limit;
            if is_full && since > 0 {
                return false;
            }
            if since <= self.older.entries {
                let near =
                    older.iter().filter(|&&(entry, size)| entry >= since && near_sizes.contains(&(size as usize)));
                met.extend(near.map(|&(entry, _)| entry));
            }
            let new = &listed[listed.partition_point(|&entry| entry < since)..];
            let first = met.len();
            met.resize(first + new.len(), 0);
            let mut possible = first;
            // Whether a size is near can't be foreseen, so all are written, and others go over those that are not.
            for &entry in new {
                met[possible] = entry;
                let size = self.sizes[(entry - self.older.entries) as usize] as usize;
                possible += usize::from(near_sizes.contains(&size));
            }
            met.truncate(possible);
            let mut first = older.iter().map(|&(entry, _)| entry).chain(listed.iter().copied());
            if let (true, Some(one), Some(other)) = (is_full, first.next(), first.next()) {
                full.push((key, [one, other]));
            }
            *cut_short |= is_full;
        }
        true
    }

    /// Meets the records from one on whose common part may be near, where so many groups are known.
    fn meet_grouped(&self, keys: &ShingleKeys, from: (u32, usize), candidates: &mut Candidates) {
        let Candidates { in_groups, met, full, cut_short, grouped, groups, .. } = candidates;
        let is_full = self.groups.find(&keys.common, keys.size, from, in_groups, groups);
        *grouped = in_groups.len();
        let near_sizes = sizes_near(keys.size(), self.near);
        let near = in_groups.iter().filter(|(_, size)| near_sizes.contains(&(*size as usize)));
        met.extend(near.map(|&(entry, _)| entry));
        if let (true, &[(one, _), (other, _), ..]) = (is_full, &in_groups[..]) {
            full.push((groups::hash_of(&keys.common), [one, other]));
        }
        *cut_short |= is_full;
    }

    /// Counts the full lists that a look-up met.
    pub(crate) fn count_full(&mut self, candidates: &Candidates) {
        let listed = self.posts.limit;
        for &(key, items) in &candidates.full {
            self.full.entry(key).or_insert(FullList { key, listed, cut_short: 0, items }).cut_short += 1;
        }
    }

    /// Makes what was inserted found sooner, if that is much.
    pub(crate) fn settle(&mut self) {
        self.posts.settle();
    }

    /// Makes what was inserted found sooner, if that is much, by tasks that can be done at the same time: `run` does them all.
    pub fn settle_by(&mut self, run: impl FnOnce(Vec<Box<dyn FnOnce() + Send + '_>>)) {
        self.posts.settle_by(run);
    }

    /// Returns how many records there are, in all rounds.
    pub(crate) fn entries(&self) -> u32 {
        self.older.entries + self.sizes.len() as u32
    }

    /// Calls `each` with the entries that a record would be compared with, as far as they are known.
    pub fn candidates(&self, keys: &mut ShingleKeys, each: impl FnMut(u32)) {
        if keys.size() == 0 || self.entries() == 0 {
            return;
        }
        let mut candidates = std::mem::take(&mut keys.candidates);
        self.find(keys, &mut candidates);
        candidates.list.iter().map(|candidate| candidate.id).for_each(each);
        keys.candidates = candidates;
    }

    /// Returns what was inserted in this round, as the code of a key, the entry and its size: the part of a 256th of all codes, in ascending
    /// order.
    pub fn postings(&self, part: u8) -> impl Iterator<Item = (u64, u32, u32)> {
        let size_of = |entry: u32| self.sizes[(entry - self.older.entries) as usize];
        self.posts.sorted(part).map(move |(code, entry)| (code, entry, size_of(entry)))
    }

    /// Counts on so many entries of earlier runs whose postings are elsewhere, before the first record is inserted:
    /// [`next_round`](Self::next_round) takes those that are wanted. `each_common` calls what it is given with the entry and the keys of
    /// each that has a common part, by which it is found from now on.
    ///
    /// # Errors
    /// Those of `each_common`.
    pub fn count_on<E>(
        &mut self,
        entries: u32,
        each_common: impl FnOnce(&mut dyn FnMut(u32, &ShingleKeys)) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(self.sizes.is_empty(), "entries of earlier runs come first");
        self.older.entries += entries;
        let outcome = each_common(&mut |entry, keys| self.group(keys, entry, Groups::append));
        self.groups.sort();
        outcome
    }

    /// Makes an entry found by its common part.
    fn group(&mut self, keys: &ShingleKeys, entry: u32, add: impl FnOnce(&mut Groups, &[u64], u32, u32)) {
        if !keys.common.is_empty() {
            add(&mut self.groups, &keys.common, keys.size, entry);
            self.last_grouped = Some(entry);
        }
    }

    /// Begins a round, or goes on with one: postings go elsewhere, and of those of earlier rounds the ones are given that share a
    /// [code](ShingleKeys::codes) with records to come, in ascending order. Entries are counted on, and what has a common part is found as
    /// before.
    pub fn next_round(&mut self, is_new: bool, met: impl IntoIterator<Item = (u64, u32, u32)>) {
        if is_new {
            self.older.entries = self.entries();
            self.posts.clear();
            self.sizes.clear();
            // What is listed for one round is no measure of the next.
            self.older = Older { entries: self.older.entries, ..Older::default() };
        }
        let Older { codes, ends, listed, .. } = &mut self.older;
        codes.clear();
        ends.clear();
        listed.clear();
        for (code, entry, size) in met {
            if codes.last() != Some(&code) {
                codes.push(code);
                ends.push(listed.len() as u32);
            }
            listed.push((entry, size));
            if let Some(end) = ends.last_mut() {
                *end = listed.len() as u32;
            }
        }
    }

    /// Inserts a record, and returns its entry, counted from 0. It is found at once.
    pub fn insert(&mut self, keys: &ShingleKeys) -> u32 {
        let entry = self.entries();
        self.sizes.push(keys.size);
        keys.rare.iter().for_each(|&key| self.posts.post(key, entry));
        self.group(keys, entry, Groups::insert);
        entry
    }

    /// Returns the shingles under which not all records are listed.
    pub fn full_lists(&self) -> impl Iterator<Item = &FullList> {
        self.full.values()
    }

    /// Takes over what an earlier run knows of such shingles.
    pub fn restore_full_lists(&mut self, lists: impl IntoIterator<Item = FullList>) {
        self.full.extend(lists.into_iter().map(|list| (list.key, list)));
    }

    /// Returns the bytes that are allocated.
    pub fn bytes(&self) -> u64 {
        let older = 12 * self.older.codes.capacity() + 8 * self.older.listed.capacity();
        self.posts.bytes() + self.groups.bytes() + (older + 4 * self.sizes.capacity()) as u64
    }
}

impl Candidates {
    /// Lists who was met, and how often.
    fn count_shared(&mut self) {
        let Self { met, list, .. } = self;
        list.clear();
        met.sort_unstable();
        list.extend(met.chunk_by(|a, b| a == b).map(|run| Candidate { id: run[0], shared: run.len() as u32 }));
        list.sort_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
    }
}

#[cfg(test)]
mod tests;
