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

/// Postings that wait, at most: enough that each table gets hundreds at once, and few enough to stay in a cache.
const MOST_WAITING: usize = 1 << 16;

/// Postings whose places are fetched before they are put.
const AHEAD: usize = 12;

/// Fewer are not worth distributing.
const FEW_WAITING: usize = 1 << 10;

/// Keys are told apart by so many bits where it is asked whether something new is listed.
const LAST_BITS: u32 = 15;

/// Lists of entries.
#[derive(Debug, Clone)]
pub(super) struct Posts {
    tables: Vec<Table>,
    /// Entries under one key, at most.
    pub(super) limit: usize,
    /// Postings that are in no table yet.
    waiting: Vec<(u64, u32)>,
    /// Room to distribute them.
    by_table: Vec<u64>,
    /// By a few bits of a key: the last entry that was posted under a key with these bits.
    last: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
struct Table {
    /// A fingerprint of the key in the upper half and an entry in the lower one, or [`EMPTY`].
    slots: Vec<u64>,
    used: usize,
}

impl Posts {
    pub(super) fn new(limit: usize) -> Self {
        let last = vec![0; 1 << LAST_BITS];
        Self { tables: vec![Table::default(); TABLES], limit, waiting: Vec::new(), by_table: Vec::new(), last }
    }

    /// Returns whether an entry from `since` on may be listed under the key.
    #[inline]
    pub(super) fn may_list(&self, key: u64, since: u32) -> bool {
        self.last[last_place(key)] >= since
    }

    /// Overwrites `listed` with every entry under the key, the oldest first. Returns whether the list is full. What waits is not seen.
    pub(super) fn list(&self, key: u64, listed: &mut Vec<u32>) -> bool {
        debug_assert!(self.waiting.is_empty(), "postings are settled before lists are wanted");
        let (table, fingerprint) = place(key);
        let table = &self.tables[table];
        listed.clear();
        for slot in table.slots_from(fingerprint) {
            let posting = table.slots[slot];
            if posting == EMPTY {
                break;
            }
            if (posting >> 32) as u32 == fingerprint {
                listed.push(posting as u32);
            }
        }
        listed.len() >= self.limit
    }

    /// Posts an entry under a key, if its list has room. Postings wait to be brought to their tables together.
    ///
    /// # Panics
    /// If the entry is `u32::MAX`.
    pub(super) fn post(&mut self, key: u64, entry: u32) {
        assert!(entry < u32::MAX, "an index holds 2^32 - 1 entries at most");
        self.last[last_place(key)] = entry;
        self.waiting.push((key, entry));
        if self.waiting.len() == MOST_WAITING {
            self.settle();
        }
    }

    /// Puts what waits into its tables.
    #[inline]
    pub(super) fn settle(&mut self) {
        if !self.waiting.is_empty() {
            self.settle_by(|tasks| tasks.into_iter().for_each(|task| task()));
        }
    }

    /// Puts what waits into its tables by tasks that can be done at the same time, all of which `run` has to do.
    pub(super) fn settle_by(&mut self, run: impl FnOnce(Vec<Task<'_>>)) {
        let Self { tables, limit, waiting, by_table, .. } = self;
        let limit = *limit;
        if waiting.len() < FEW_WAITING {
            return waiting.drain(..).for_each(|(key, entry)| put(tables, key, entry, limit));
        }
        let mut ends = [0; TABLES + 1];
        waiting.iter().for_each(|&(key, _)| ends[place(key).0 + 1] += 1);
        (0..TABLES).for_each(|table| ends[table + 1] += ends[table]);
        by_table.resize(waiting.len(), 0);
        // What was the start of each table's postings becomes their end.
        for (key, entry) in waiting.drain(..) {
            let (table, fingerprint) = place(key);
            by_table[ends[table]] = u64::from(fingerprint) << 32 | u64::from(entry);
            ends[table] += 1;
        }
        let (mut postings, mut start) = (&by_table[..], 0);
        let tasks = tables.chunks_mut(TABLES / TASKS).zip(ends.chunks(TABLES / TASKS)).map(|(tables, ends)| {
            let (own, others) = postings.split_at(ends[ends.len() - 1] - start);
            postings = others;
            let lengths: Vec<usize> = ends.iter().map(|&end| end - std::mem::replace(&mut start, end)).collect();
            let task: Task<'_> = Box::new(move || put_all(tables, own, &lengths, limit));
            task
        });
        run(tasks.collect());
    }

    /// Returns the codes and entries of what is posted in a table, in ascending order.
    pub(super) fn sorted(&self, table: u8) -> impl Iterator<Item = (u64, u32)> + use<> {
        debug_assert!(self.waiting.is_empty(), "postings are settled before they are wanted");
        let slots = &self.tables[usize::from(table)].slots;
        let mut postings: Vec<u64> = slots.iter().copied().filter(|&slot| slot != EMPTY).collect();
        postings.sort_unstable();
        postings.into_iter().map(move |posting| (u64::from(table) << 56 | posting >> 32 << 24, posting as u32))
    }

    /// Forgets all postings.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.tables.iter_mut().for_each(|table| *table = Table::default());
    }

    /// Returns the bytes that are allocated, room of a fixed size aside.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| 8 * table.slots.capacity() as u64).sum()
    }
}

/// Puts postings into their tables, so many into each.
fn put_all(tables: &mut [Table], mut postings: &[u64], lengths: &[usize], limit: usize) {
    for (table, &length) in tables.iter_mut().zip(lengths) {
        let (own, others) = postings.split_at(length);
        postings = others;
        table.reserve(length);
        for (i, &posting) in own.iter().enumerate() {
            if let Some(&later) = own.get(i + AHEAD) {
                table.prefetch(later);
            }
            table.put(posting, limit);
        }
    }
}

fn put(tables: &mut [Table], key: u64, entry: u32, limit: usize) {
    let (table, fingerprint) = place(key);
    tables[table].reserve(1);
    tables[table].put(u64::from(fingerprint) << 32 | u64::from(entry), limit);
}

/// Returns the table that a key is in, and by what it is known there.
fn place(key: u64) -> (usize, u32) {
    // Keys are the smallest of many hashes, so their upper bits are mostly 0.
    let mixed = mix(key);
    ((mixed >> 56) as usize, mixed as u32)
}

/// Returns what a key is told apart by: the number of its table in the upper 8 bits, and 32 below.
pub(super) fn code(key: u64) -> u64 {
    let (table, fingerprint) = place(key);
    (table as u64) << 56 | u64::from(fingerprint) << 24
}

/// Returns where the last entry of a key is noted.
fn last_place(key: u64) -> usize {
    (mix(key) << 8 >> (64 - LAST_BITS)) as usize
}

impl Table {
    /// Returns all slots in the order in which a fingerprint is looked for.
    #[inline]
    fn slots_from(&self, fingerprint: u32) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len().wrapping_sub(1);
        (0..self.slots.len()).map(move |step| (fingerprint as usize).wrapping_add(step) & mask)
    }

    fn prefetch(&self, posting: u64) {
        let mask = self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get((posting >> 32) as usize & mask) {
            prefetch(slot);
        }
    }

    fn put(&mut self, posting: u64, limit: usize) {
        let fingerprint = (posting >> 32) as u32;
        let mut listed = 0;
        for slot in self.slots_from(fingerprint) {
            let other = self.slots[slot];
            if other == EMPTY {
                self.slots[slot] = posting;
                self.used += 1;
                return;
            }
            listed += usize::from((other >> 32) as u32 == fingerprint);
            if listed >= limit {
                return;
            }
        }
    }

    /// Makes room for so many more postings.
    fn reserve(&mut self, more: usize) {
        let mut slots = self.slots.len();
        while 4 * (self.used + more) > 3 * slots {
            slots = (2 * slots).max(16);
        }
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

    #[test]
    fn lists_hold_what_was_posted_in_order_up_to_the_limit() {
        let mut rng = Rng::new(Seed::new(1));
        const LIMIT: usize = 100;
        let (mut posts, mut expected) = (Posts::new(LIMIT), BTreeMap::<u64, Vec<u32>>::new());
        for entry in 0..200_000 {
            // Small keys, as the smallest hashes are, and some lists that fill up.
            let key = if rng.below(50) == 0 { rng.below(20) } else { 1000 + rng.below(1 << 40) / 100_000_000 };
            posts.post(key, entry);
            // First one by one, then many at once, then few.
            if entry < 50_000 || entry >= 150_000 && entry % 500 == 0 {
                posts.settle();
            }
            let list = expected.entry(key).or_default();
            if list.len() < LIMIT {
                list.push(entry);
            }
        }
        let mut found = Vec::new();
        posts.settle();
        for (&key, list) in &expected {
            assert!(list.iter().all(|&entry| posts.may_list(key, entry)), "{key}");
            let is_full = posts.list(key, &mut found);
            assert_eq!((&found, is_full), (list, list.len() == LIMIT), "{key}");
        }
        assert!(!posts.list(7_777_777, &mut found) && found.is_empty());
        assert!(expected.values().any(|list| list.len() == LIMIT));
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
