//! Items by the keys of their bands: who shares a band with whom, and how many.
//!
//! Invariant: items of one key form a chain, newest first; a band's table holds each chain's newest item. A key is stored with
//! its item, so tables are 4 bytes a slot and grow by walking over themselves.
//! Claim: a look-up walks at most `limit` items of a bucket, so no bucket makes the whole quadratic; buckets that this cuts
//! short are counted and named.

use std::collections::BTreeMap;

use crate::family::Key;

/// Stands for no item.
const NONE: u32 = u32::MAX;

/// Slots of a new table.
const FIRST_SLOTS: usize = 16;

/// An item that shares bands with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the order of insertion.
    pub id: u32,
    /// How many bands they share.
    pub shared: u32,
}

/// A bucket with more items than are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullBucket {
    /// Its band.
    pub band: u32,
    /// The key that its items share there.
    pub key: Key,
    /// Look-ups that did not see all of it.
    pub cut_short: u64,
    /// Two of its items, the older first.
    pub items: [u32; 2],
}

/// Items by the keys of their bands.
#[derive(Debug, Clone)]
pub struct BandIndex {
    bands: usize,
    limit: usize,
    /// The keys of item `i` in band `b`, at `i * bands + b`.
    keys: Vec<u64>,
    /// The next older item of the same key, laid out in the same way.
    older: Vec<u32>,
    tables: Vec<Table>,
    /// Bands shared with the item that is looked up; zero in between.
    shared: Vec<u16>,
    full: BTreeMap<(u32, Key), FullBucket>,
}

#[derive(Debug, Clone)]
struct Table {
    /// The newest item of each key, or [`NONE`]; a power of two many.
    slots: Vec<u32>,
    used: usize,
}

impl BandIndex {
    /// Items of a bucket that a look-up sees where no other limit is set: more than honest families have, and few enough that
    /// a corpus of one family ends.
    pub const LIMIT: usize = 8192;

    /// An empty index of items with so many bands.
    ///
    /// # Panics
    /// If there are no bands, or more than fit into 16 bits.
    pub fn new(bands: usize) -> Self {
        assert!((1..=usize::from(u16::MAX)).contains(&bands), "{bands} bands: there must be 1 to 65535");
        let table = Table { slots: vec![NONE; FIRST_SLOTS], used: 0 };
        Self {
            bands,
            limit: Self::LIMIT,
            keys: Vec::new(),
            older: Vec::new(),
            tables: vec![table; bands],
            shared: Vec::new(),
            full: BTreeMap::new(),
        }
    }

    /// The same with another limit on the items of a bucket that a look-up sees, the newest of them.
    pub(crate) fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }

    /// The most items of a bucket that a look-up sees.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// Its memory.
    pub fn bytes(&self) -> u64 {
        let slots: usize = self.tables.iter().map(|table| table.slots.capacity()).sum();
        (8 * self.keys.capacity() + 4 * (self.older.capacity() + slots) + 2 * self.shared.capacity()) as u64
    }

    /// The memory to expect for each item of so many bands: keys and chains with a tenth to spare, tables between half and
    /// three quarters full.
    pub fn expected_bytes(bands: usize) -> u64 {
        (bands as f64 * (12.0 * 1.1 + 4.0 / 0.56) + 2.2) as u64
    }

    /// Buckets that look-ups did not see all of, by band and key.
    pub fn full_buckets(&self) -> impl Iterator<Item = &FullBucket> {
        self.full.values()
    }

    /// Takes over what an earlier run knows of such buckets.
    pub fn restore_full_buckets(&mut self, buckets: impl IntoIterator<Item = FullBucket>) {
        self.full.extend(buckets.into_iter().map(|bucket| ((bucket.band, bucket.key), bucket)));
    }

    /// Overwrites `out` with the items that share a band with these keys: most shared bands first, then oldest first.
    ///
    /// # Panics
    /// If there are not as many keys as bands.
    pub fn candidates(&mut self, keys: &[Option<Key>], out: &mut Vec<Candidate>) {
        assert_eq!(keys.len(), self.bands, "a key for each band");
        out.clear();
        for (band, key) in keys.iter().enumerate() {
            let Some(key) = *key else { continue };
            let slot = self.slot(band, key);
            let mut item = self.tables[band].slots[slot];
            let newest = item;
            let mut walked = 0;
            while item != NONE && walked < self.limit {
                let shared = &mut self.shared[item as usize];
                if *shared == 0 {
                    out.push(Candidate { id: item, shared: 0 });
                }
                *shared += 1;
                walked += 1;
                item = self.older[item as usize * self.bands + band];
            }
            if item != NONE {
                let band = band as u32;
                let new = FullBucket { band, key, cut_short: 0, items: [item, newest] };
                self.full.entry((band, key)).or_insert(new).cut_short += 1;
            }
        }
        for candidate in out.iter_mut() {
            candidate.shared = std::mem::take(&mut self.shared[candidate.id as usize]).into();
        }
        out.sort_unstable_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
    }

    /// Inserts an item and says its place in the order of insertion.
    ///
    /// # Panics
    /// If there are not as many keys as bands, or an item without a key, or 2^32 - 1 items.
    pub fn insert(&mut self, keys: &[Option<Key>]) -> u32 {
        assert_eq!(keys.len(), self.bands, "a key for each band");
        let item = self.len() as u32;
        assert!(item < NONE, "an index holds 2^32 - 1 items at most");
        make_room(&mut self.keys, self.bands);
        make_room(&mut self.older, self.bands);
        make_room(&mut self.shared, 1);
        self.keys.extend(keys.iter().map(|key| key.expect("an item with keys in all bands").get()));
        self.shared.push(0);
        for (band, key) in keys.iter().enumerate() {
            let Some(key) = *key else { continue };
            let slot = self.slot(band, key);
            let table = &mut self.tables[band];
            let older = std::mem::replace(&mut table.slots[slot], item);
            self.older.push(older);
            if older == NONE {
                table.used += 1;
                if 4 * table.used > 3 * table.slots.len() {
                    self.grow(band);
                }
            }
        }
        item
    }

    /// Where the key's newest item stands, or would stand.
    fn slot(&self, band: usize, key: Key) -> usize {
        let slots = &self.tables[band].slots;
        let mut slot = home(key.get(), slots.len());
        loop {
            let item = slots[slot];
            if item == NONE || self.keys[item as usize * self.bands + band] == key.get() {
                return slot;
            }
            slot = (slot + 1) & (slots.len() - 1);
        }
    }

    fn grow(&mut self, band: usize) {
        let doubled = 2 * self.tables[band].slots.len();
        let old = std::mem::replace(&mut self.tables[band].slots, vec![NONE; doubled]);
        for item in old.into_iter().filter(|&item| item != NONE) {
            let key = self.keys[item as usize * self.bands + band];
            let slots = &mut self.tables[band].slots;
            let mut slot = home(key, doubled);
            while slots[slot] != NONE {
                slot = (slot + 1) & (doubled - 1);
            }
            slots[slot] = item;
        }
    }
}

/// Grows by a quarter rather than by doubling, since these are most of the memory.
fn make_room<T>(vector: &mut Vec<T>, more: usize) {
    if vector.capacity() - vector.len() < more {
        vector.reserve_exact((vector.len() / 4).max(more));
    }
}

/// The first slot that a key is looked for at: keys are uniform in their high bits.
fn home(key: u64, slots: usize) -> usize {
    (key >> (64 - slots.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, hash::Rng};

    fn key(word: u64) -> Option<Key> {
        Key::new(word)
    }

    #[test]
    fn candidates_are_those_that_share_a_band() {
        let mut rng = Rng::new(Seed::new(1));
        let mut index = BandIndex::new(5);
        let mut all: Vec<Vec<Option<Key>>> = Vec::new();
        let mut found = Vec::new();
        for _ in 0..2000 {
            // Few keys in the high bits and in the low ones, so that chains and clashes of slots occur.
            let keys: Vec<_> = (0..5).map(|_| key((rng.below(400) << 54) | (rng.below(3) + 1))).collect();
            index.candidates(&keys, &mut found);
            let shared = |other: &Vec<Option<Key>>| other.iter().zip(&keys).filter(|(a, b)| a == b).count() as u32;
            let mut expected: Vec<Candidate> = (0..)
                .zip(&all)
                .map(|(id, other)| Candidate { id, shared: shared(other) })
                .filter(|candidate| candidate.shared > 0)
                .collect();
            expected.sort_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
            assert_eq!(found, expected);
            assert_eq!(index.insert(&keys) as usize, all.len());
            all.push(keys);
        }
        assert_eq!(index.full_buckets().count(), 0);
    }

    #[test]
    fn a_giant_bucket_is_looked_at_in_part_and_named() {
        let mut index = BandIndex::new(2).with_limit(10);
        let mut found = Vec::new();
        for i in 0..1000 {
            let keys = [key(7), key(mix(i))];
            index.candidates(&keys, &mut found);
            assert_eq!(found.len(), (i as usize).min(10));
            index.insert(&keys);
        }
        let full: Vec<_> = index.full_buckets().copied().collect();
        // Those that came eleventh and later did not see all.
        assert_eq!(full.len(), 1);
        assert_eq!((full[0].band, full[0].key, full[0].cut_short), (0, key(7).unwrap(), 989));
        assert!(full[0].items[0] < full[0].items[1]);
    }

    #[test]
    fn memory_is_bounded_by_the_item() {
        let mut index = BandIndex::new(17);
        for i in 0..20_000u64 {
            let keys: Vec<_> = (0..17).map(|band| key(mix(17 * i + band))).collect();
            index.insert(&keys);
        }
        // Keys and chains with a quarter to spare, tables at 3/8 full, at worst.
        assert!(index.bytes() <= 20_000 * (17 * (15 + 11) + 3), "{} bytes", index.bytes());
        let expected = 20_000 * BandIndex::expected_bytes(17);
        assert!(index.bytes().abs_diff(expected) * 3 < expected, "{} bytes, {expected} expected", index.bytes());
    }

    fn mix(word: u64) -> u64 {
        crate::hash::mix(word) | 1
    }
}
