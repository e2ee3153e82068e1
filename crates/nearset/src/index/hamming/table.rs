//! One block's buckets: which ids have which key.
//!
//! Claim: looking up a key that no item has, as most looked-up keys are, costs one bit of a bitmap that lies in a near cache;
//! a bucket of one item costs one more access, and no bucket is an object of its own.
//! Invariant: the `i`-th set bit of `occupied`, counted by `ranks`, belongs to `entries[i]`, which is the bucket's only id, or
//! with its top bit set the place in `lists` where its ids stand in ascending order, the last one with its top bit set.

use std::{borrow::Cow, collections::TryReserveError};

use super::{cut::Cut, search::Turns};
use crate::{
    room,
    simd::{
        line::{Line, prefetch},
        ranked::{Hit, prefetch_words, ranks_of, set_among},
    },
};

/// Set in an entry that is a place in the lists, and in the last id of a list.
const MARK: u32 = 1 << 31;

/// The most items of an index: an id leaves room for the mark.
pub(crate) const MOST_ITEMS: u32 = MARK - 1;

#[derive(Clone)]
pub(crate) struct Table<'a> {
    /// One bit a key: whether any item has it.
    pub(crate) occupied: Cow<'a, [Line]>,
    /// Set bits before each line.
    pub(crate) ranks: Cow<'a, [u32]>,
    pub(crate) entries: Cow<'a, [u32]>,
    pub(crate) lists: Cow<'a, [u32]>,
}

/// Lines of the bitmap of so many keys.
pub(crate) fn lines_for(address: u32) -> u64 {
    1 << address.saturating_sub(9)
}

/// Bit `v` of `AT_DISTANCE[d][low]` is set when `v` and `low` differ in `d` of their six bits.
static AT_DISTANCE: [[u64; 64]; 7] = {
    let mut masks = [[0; 64]; 7];
    let mut pair = 0usize;
    while pair < 64 * 64 {
        let (low, other) = (pair / 64, pair % 64);
        masks[(low ^ other).count_ones() as usize][low] |= 1 << other;
        pair += 1;
    }
    masks
};

impl<'a> Table<'a> {
    /// The buckets of items with these keys; each pair is a key above an id of 32 bits. They are left sorted.
    pub(super) fn build(cut: Cut, pairs: &mut [u64]) -> Result<Table<'static>, TryReserveError> {
        pairs.sort_unstable();
        let lines = lines_for(cut.address) as usize;
        let mut occupied = room::of(lines)?;
        occupied.resize(lines, Line::EMPTY);
        let buckets = || pairs.chunk_by(|a, b| a >> 32 == b >> 32);
        let mut entries = room::of(buckets().count())?;
        let mut lists = room::of(buckets().map(<[u64]>::len).filter(|&length| length > 1).sum())?;
        for bucket in buckets() {
            let key = (bucket[0] >> 32) as usize;
            occupied[key / 512].0[key / 64 % 8] |= 1 << (key % 64);
            if let &[only] = bucket {
                entries.push(only as u32);
            } else {
                entries.push(MARK | lists.len() as u32);
                lists.extend(bucket.iter().map(|&pair| pair as u32));
                *lists.last_mut().expect("no bucket is empty") |= MARK;
            }
        }
        let mut set_before = room::of(lines)?;
        set_before.extend(ranks(&occupied));
        Ok(Table { occupied: occupied.into(), ranks: set_before.into(), entries: entries.into(), lists: lists.into() })
    }

    /// What is wrong with a table that was read from a file, if anything is, for ids below `items`.
    pub(crate) fn find_fault(&self, cut: Cut, items: u32) -> Option<&'static str> {
        let words = bytemuck::cast_slice::<Line, u64>(&self.occupied);
        let keys = 1usize << cut.address;
        if words[0].checked_shr(keys as u32).is_some_and(|beyond| beyond != 0)
            || words[keys.div_ceil(64)..].iter().any(|&word| word != 0)
        {
            return Some("a key is too long");
        }
        if !ranks(&self.occupied).eq(self.ranks.iter().copied()) {
            return Some("the ranks do not count the keys");
        }
        let keys: u64 = self.occupied.iter().map(|line| u64::from(line.ones())).sum();
        if keys != self.entries.len() as u64 {
            return Some("there are not as many buckets as keys");
        }
        let mut rest = &self.lists[..];
        for &entry in &*self.entries {
            if entry & MARK == 0 {
                if entry >= items {
                    return Some("an id is of no item");
                }
                continue;
            }
            if (entry ^ MARK) as usize != self.lists.len() - rest.len() {
                return Some("a list stands where none should");
            }
            let Some(last) = rest.iter().position(|id| id & MARK != 0) else { return Some("a list has no end") };
            let (list, others) = rest.split_at(last + 1);
            rest = others;
            let ids = list.iter().map(|id| id & !MARK);
            if last == 0 || !ids.clone().is_sorted_by(|a, b| a < b) || ids.max() >= Some(items) {
                return Some("a list is not of several items in order");
            }
        }
        (!rest.is_empty()).then_some("a list belongs to no key")
    }

    /// Words that hold keys which differ from this one in exactly `shell` bits: where they are, and those keys among theirs.
    fn words_at(key: u32, shell: u32, turns: &Turns) -> impl Iterator<Item = (u32, &[u32], u64)> {
        let (high, low) = (key >> 6, (key & 63) as usize);
        // The bits that are not turned over above the lowest six are turned over among them.
        let masks = move |turned: u32| AT_DISTANCE.get((shell - turned) as usize);
        (0..=shell).filter_map(move |turned| Some((high, turns.of(turned), masks(turned)?[low])))
    }

    /// Fetches what [`Self::hits`] will look at.
    pub(super) fn prefetch(&self, key: u32, shell: u32, turns: &Turns) {
        Self::words_at(key, shell, turns).for_each(|(at, turns, _)| prefetch_words(&self.occupied, at, turns));
    }

    /// Appends the keys of items that differ from this one in exactly `shell` bits.
    pub(super) fn hits(&self, key: u32, shell: u32, turns: &Turns, hits: &mut Vec<Hit>) {
        Self::words_at(key, shell, turns)
            .for_each(|(at, turns, mask)| set_among(&self.occupied, at, turns, mask, hits));
    }

    /// Appends the buckets of keys that were found, and fetches them.
    pub(super) fn buckets(&self, hits: &[Hit], buckets: &mut Vec<u32>) {
        let before = buckets.len();
        ranks_of(&self.occupied, &self.ranks, hits, buckets);
        // A file whose tables were not checked may say anything: what is of no item is passed over, here and below.
        buckets[before..].iter().filter_map(|&bucket| self.entries.get(bucket as usize)).for_each(prefetch);
    }

    /// Appends the ids in these buckets, all of them below `items`; and stops when there are more than `most`.
    pub(super) fn ids(&self, buckets: &[u32], items: u32, most: usize, ids: &mut Vec<u32>) {
        let enough = ids.len().saturating_add(most);
        for entry in buckets.iter().filter_map(|&bucket| self.entries.get(bucket as usize)) {
            if *entry < items {
                ids.push(*entry);
                continue;
            }
            let list = self.lists.get((entry & !MARK) as usize..).unwrap_or_default();
            let length = list.iter().position(|id| id & MARK != 0).map_or(list.len(), |last| last + 1);
            let rest = enough.saturating_sub(ids.len()).saturating_add(1);
            ids.extend(list[..length.min(rest)].iter().map(|id| id & !MARK).filter(|&id| id < items));
            if ids.len() > enough {
                return;
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let small = self.ranks.len() + self.entries.len() + self.lists.len();
        size_of_val(&*self.occupied) as u64 + 4 * small as u64
    }

    pub(super) fn into_owned(self) -> Table<'static> {
        Table {
            occupied: self.occupied.into_owned().into(),
            ranks: self.ranks.into_owned().into(),
            entries: self.entries.into_owned().into(),
            lists: self.lists.into_owned().into(),
        }
    }
}

/// Set bits before each line.
fn ranks(lines: &[Line]) -> impl Iterator<Item = u32> {
    lines.iter().scan(0u32, |before, line| {
        let rank = *before;
        *before = before.wrapping_add(line.ones());
        Some(rank)
    })
}
