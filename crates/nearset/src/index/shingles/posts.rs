//! Lists of entries under 64-bit keys, in about 16 bytes per posting.
//!
//! Claim: [`Posts::list`] gives every entry that was posted under the key, the oldest first. Keys are told apart by 40 bits, so one
//! in a trillion pairs of keys shares its list: candidates are compared anyway.
//! Invariant: what a list holds depends on the postings alone. A list takes as many entries as its limit says; further ones are turned
//! away, so that no list makes the whole quadratic.
//!
//! Open addressing in 256 tables, each of which grows alone: the memory that growing takes for a moment is a 256th of all.

use crate::{hash::mix, simd::line::prefetch};

const TABLES: usize = 256;

/// Tasks that putting many postings is split into.
const TASKS: usize = 16;

/// A part of some work.
pub(super) type Task<'t> = Box<dyn FnOnce() + Send + 't>;

const EMPTY: u64 = u64::MAX;

/// Fewer postings wait, in all tables: they are looked through sooner than they would be put one by one.
const FEW_WAITING: usize = 1 << 14;

/// Postings that wait for one table, at most.
const MOST_IN_TABLE: usize = 1 << 8;

/// Postings whose places are fetched before they are put.
const AHEAD: usize = 12;

/// Keys are told apart by so many bits where it is asked whether something new is listed.
const LAST_BITS: u32 = 15;

/// Lists of entries.
#[derive(Debug, Clone)]
pub(super) struct Posts {
    tables: Vec<Table>,
    /// Entries under one key, at most.
    pub(super) limit: usize,
    /// How many postings wait.
    waiting: usize,
    /// By a few bits of a key: the last entry that was posted under a key with these bits.
    last: Vec<u32>,
}

/// Postings: a fingerprint of the key in the upper half and an entry in the lower one.
#[derive(Debug, Clone, Default)]
struct Table {
    /// A posting each, or [`EMPTY`].
    slots: Vec<u64>,
    used: usize,
    waiting: Waiting,
}

/// Postings that have no slot yet, in the order in which they came. Apart, fingerprints are looked through many at a time.
#[derive(Debug, Clone, Default)]
struct Waiting {
    fingerprints: Vec<u32>,
    entries: Vec<u32>,
}

impl Waiting {
    /// Appends the entries of a fingerprint.
    fn list(&self, fingerprint: u32, listed: &mut Vec<u32>) {
        // Hardly any waits for most keys. All are compared, without a branch for each.
        if self.fingerprints.iter().fold(false, |any, &other| any | (other == fingerprint)) {
            let all = self.fingerprints.iter().zip(&self.entries);
            listed.extend(all.filter(|(other, _)| **other == fingerprint).map(|(_, entry)| entry));
        }
    }

    fn postings(&self) -> impl Iterator<Item = u64> {
        self.fingerprints.iter().zip(&self.entries).map(|(&fingerprint, &entry)| posting(fingerprint, entry))
    }
}

fn posting(fingerprint: u32, entry: u32) -> u64 {
    u64::from(fingerprint) << 32 | u64::from(entry)
}

impl Posts {
    pub(super) fn new(limit: usize) -> Self {
        Self { tables: vec![Table::default(); TABLES], limit, waiting: 0, last: vec![0; 1 << LAST_BITS] }
    }

    /// Returns whether an entry from `since` on may be listed under the key.
    #[inline]
    pub(super) fn may_list(&self, key: u64, since: u32) -> bool {
        self.last[last_place(mix(key))] >= since
    }

    /// Fetches what [`Self::list`] will read first.
    pub(super) fn prefetch(&self, key: u64) {
        let (table, fingerprint) = place(mix(key));
        self.tables[table].prefetch(fingerprint);
    }

    /// Overwrites `listed` with every entry under the key, the oldest first. Returns whether the list is full.
    pub(super) fn list(&self, key: u64, listed: &mut Vec<u32>) -> bool {
        let (table, fingerprint) = place(mix(key));
        let table = &self.tables[table];
        listed.clear();
        for slot in table.slots_from(fingerprint) {
            let posting = table.slots[slot];
            if posting == EMPTY {
                break;
            }
            if fingerprint_of(posting) == fingerprint {
                listed.push(posting as u32);
            }
        }
        table.waiting.list(fingerprint, listed);
        listed.truncate(self.limit);
        listed.len() >= self.limit
    }

    /// Posts an entry under a key, if its list has room. Postings wait to be put together.
    ///
    /// # Panics
    /// If the entry is `u32::MAX`.
    pub(super) fn post(&mut self, key: u64, entry: u32) {
        assert!(entry < u32::MAX, "an index holds 2^32 - 1 entries at most");
        let mixed = mix(key);
        let (table, fingerprint) = place(mixed);
        self.last[last_place(mixed)] = entry;
        let waiting = &mut self.tables[table].waiting;
        waiting.fingerprints.push(fingerprint);
        waiting.entries.push(entry);
        self.waiting += 1;
        if waiting.entries.len() == MOST_IN_TABLE {
            self.waiting -= MOST_IN_TABLE;
            self.tables[table].put_all(self.limit);
        }
    }

    /// Puts what waits, if that is too much to wait for who could do it by many threads.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.waiting >= 2 * FEW_WAITING {
            self.settle_by(|tasks| tasks.into_iter().for_each(|task| task()));
        }
    }

    /// Puts what waits, unless that is little, by tasks that can be done at the same time, all of which `run` has to do.
    pub(super) fn settle_by(&mut self, run: impl FnOnce(Vec<Task<'_>>)) {
        if self.waiting < FEW_WAITING {
            return;
        }
        let Self { tables, limit, waiting, .. } = self;
        let limit = *limit;
        *waiting = 0;
        let put_all = |tables: &mut [Table]| tables.iter_mut().for_each(|table| table.put_all(limit));
        run(tables.chunks_mut(TABLES / TASKS).map(|tables| Box::new(move || put_all(tables)) as Task<'_>).collect());
    }

    /// Returns the codes and entries of what is posted in a table, in ascending order.
    pub(super) fn sorted(&self, table: u8) -> impl Iterator<Item = (u64, u32)> + use<> {
        let Table { slots, waiting, .. } = &self.tables[usize::from(table)];
        let mut postings: Vec<u64> = slots.iter().copied().filter(|&slot| slot != EMPTY).collect();
        postings.extend(waiting.postings());
        postings.sort_unstable();
        // What waits may be more than lists have room for.
        let (mut last, mut listed, limit) = (None, 0, self.limit);
        postings.retain(|&posting| {
            let fingerprint = Some(fingerprint_of(posting));
            listed = if fingerprint == last { listed + 1 } else { 1 };
            last = fingerprint;
            listed <= limit
        });
        postings.into_iter().map(move |posting| (u64::from(table) << 56 | posting >> 32 << 24, posting as u32))
    }

    /// Forgets all postings.
    pub(super) fn clear(&mut self) {
        self.tables.iter_mut().for_each(|table| *table = Table::default());
        self.waiting = 0;
    }

    /// Returns the bytes of all postings where they will be put, room of a fixed size aside: so it does not show when they are.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| 8 * table.slots_for(table.waiting.entries.len()) as u64).sum()
    }
}

/// Returns the table that a mixed key is in, and by what it is known there.
fn place(mixed: u64) -> (usize, u32) {
    ((mixed >> 56) as usize, mixed as u32)
}

/// Returns what a key is told apart by: the number of its table in the upper 8 bits, and 32 below.
pub(super) fn code(key: u64) -> u64 {
    // Keys are the smallest of many hashes, so their upper bits are mostly 0.
    let (table, fingerprint) = place(mix(key));
    (table as u64) << 56 | u64::from(fingerprint) << 24
}

/// Returns where the last entry of a mixed key is noted.
fn last_place(mixed: u64) -> usize {
    (mixed << 8 >> (64 - LAST_BITS)) as usize
}

fn fingerprint_of(posting: u64) -> u32 {
    (posting >> 32) as u32
}

impl Table {
    /// Returns all slots in the order in which a fingerprint is looked for.
    #[inline]
    fn slots_from(&self, fingerprint: u32) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len().wrapping_sub(1);
        (0..self.slots.len()).map(move |step| (fingerprint as usize).wrapping_add(step) & mask)
    }

    fn prefetch(&self, fingerprint: u32) {
        let mask = self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get(fingerprint as usize & mask) {
            prefetch(slot);
        }
    }

    /// Puts what waits.
    fn put_all(&mut self, limit: usize) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.reserve(waiting.entries.len());
        for (i, posting) in waiting.postings().enumerate() {
            if let Some(&later) = waiting.fingerprints.get(i + AHEAD) {
                self.prefetch(later);
            }
            self.put(posting, limit);
        }
        waiting.fingerprints.clear();
        waiting.entries.clear();
        self.waiting = waiting;
    }

    fn put(&mut self, posting: u64, limit: usize) {
        let fingerprint = fingerprint_of(posting);
        let mut listed = 0;
        for slot in self.slots_from(fingerprint) {
            let other = self.slots[slot];
            if other == EMPTY {
                self.slots[slot] = posting;
                self.used += 1;
                return;
            }
            listed += usize::from(fingerprint_of(other) == fingerprint);
            if listed >= limit {
                return;
            }
        }
    }

    /// Returns how many slots it has with so many more postings.
    fn slots_for(&self, more: usize) -> usize {
        let mut slots = self.slots.len();
        while 4 * (self.used + more) > 3 * slots {
            slots = (2 * slots).max(16);
        }
        slots
    }

    /// Makes room for so many more postings.
    fn reserve(&mut self, more: usize) {
        let slots = self.slots_for(more);
        if slots == self.slots.len() {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        self.used = 0;
        // A run may reach over the end: starting behind a gap keeps every list in its order.
        let gap = old.iter().position(|&slot| slot == EMPTY).unwrap_or(0);
        let (head, tail) = old.split_at(gap);
        tail.iter().chain(head).filter(|&&slot| slot != EMPTY).for_each(|&posting| self.put(posting, usize::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Seed, hash::Rng};

    const LIMIT: usize = 100;

    /// That every list is found, and all of them sorted, put or waiting.
    fn expect(posts: &Posts, expected: &BTreeMap<u64, Vec<u32>>) {
        let mut found = Vec::new();
        for (&key, list) in expected {
            assert!(list.iter().all(|&entry| posts.may_list(key, entry)), "{key}");
            let is_full = posts.list(key, &mut found);
            assert_eq!((&found, is_full), (list, list.len() == LIMIT), "{key}");
        }
        let all = expected.iter().flat_map(|(&key, list)| list.iter().map(move |&entry| (code(key), entry)));
        let mut all: Vec<(u64, u32)> = all.collect();
        all.sort_unstable();
        assert!((0..=255).flat_map(|part| posts.sorted(part)).eq(all), "not what was posted, in order");
    }

    #[test]
    fn lists_hold_what_was_posted_in_order_up_to_the_limit() {
        let mut rng = Rng::new(Seed::new(1));
        let mut posts = Posts::new(LIMIT);
        for settled_every in [u32::MAX, 7_000, 20_000] {
            posts.clear();
            let mut expected = BTreeMap::<u64, Vec<u32>>::new();
            for entry in 0..100_000 {
                // Small keys, as the smallest hashes are, and some lists that fill up.
                let key = if rng.below(50) == 0 { rng.below(10) } else { 1000 + rng.below(1 << 40) / 100_000_000 };
                posts.post(key, entry);
                let list = expected.entry(key).or_default();
                if list.len() < LIMIT {
                    list.push(entry);
                }
                if entry % settled_every == settled_every - 1 {
                    posts.settle_by(|tasks| tasks.into_iter().rev().for_each(|task| task()));
                }
                // Before and behind the first that are put.
                if [900, 15_000, 45_000].contains(&entry) {
                    expect(&posts, &expected);
                }
            }
            expect(&posts, &expected);
            let mut found = vec![1];
            assert!(!posts.list(7_777_777, &mut found) && found.is_empty());
            assert!(expected.values().any(|list| list.len() == LIMIT));
        }
        posts.clear();
        assert_eq!((0..=255).map(|part| posts.sorted(part).count()).sum::<usize>(), 0);
        assert!(!posts.list(3, &mut vec![]));
    }

    #[test]
    fn memory_does_not_show_when_postings_are_put() {
        let posted = |settled_every: u32| {
            let mut posts = Posts::new(LIMIT);
            for entry in 0..60_000 {
                posts.post(mix(entry.into()) >> 20, entry);
                if entry % settled_every == 0 {
                    posts.settle_by(|tasks| tasks.into_iter().for_each(|task| task()));
                }
            }
            posts.bytes()
        };
        assert_eq!(posted(1), posted(u32::MAX));
        assert_eq!(posted(1), posted(20_000));
    }

    #[test]
    fn a_posting_takes_eleven_to_twenty_two_bytes() {
        let mut posts = Posts::new(100);
        for entry in 0..1_000_000 {
            posts.post(mix(entry.into()) >> 20, entry);
            posts.settle();
            if entry >= 100_000 {
                let bytes = posts.bytes() as f64 / f64::from(entry + 1);
                assert!((10.0..23.0).contains(&bytes), "{bytes} bytes per posting of {entry}");
            }
        }
    }
}
