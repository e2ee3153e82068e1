//! A B-tree in pages, bulk-loaded.
//!
//! Claim: entries lie in key order over leaves of equal size; finding the first entry that is not below a key reads one
//! page per level.
//! Invariant: a level holds the first key of each page of the level beneath it.

/// A Z-order value, the most significant word first.
pub type Key = [u64; KEY_BITS / 64];

/// The length of the longest Z-order value.
pub const KEY_BITS: usize = 512;

/// Keys in order with their values, in pages.
pub struct BTree<T> {
    entries: Vec<(Key, T)>,
    leaf: usize,
    inner: usize,
    /// From the leaves up; the last level is one page.
    levels: Vec<Vec<Key>>,
}

impl<T> BTree<T> {
    /// Builds a tree whose leaves have room for `leaf` entries and whose inner pages have room for `inner` children.
    pub fn load(mut entries: Vec<(Key, T)>, leaf: usize, inner: usize) -> Self {
        entries.sort_by_key(|(key, _)| *key);
        let mut levels: Vec<Vec<Key>> = Vec::new();
        let mut first: Vec<Key> = entries.chunks(leaf).map(|page| page[0].0).collect();
        while first.len() > 1 {
            let above = first.chunks(inner).map(|page| page[0]).collect();
            levels.push(std::mem::replace(&mut first, above));
        }
        Self { entries, leaf, inner, levels }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns entry `i` in key order.
    pub fn entry(&self, i: usize) -> &(Key, T) {
        &self.entries[i]
    }

    /// Returns the leaf of entry `i`.
    pub fn page_of(&self, i: usize) -> usize {
        i / self.leaf
    }

    /// Returns the number of pages from root to leaf.
    pub fn height(&self) -> u32 {
        self.levels.len() as u32 + 1
    }

    /// Returns the number of children of inner pages, over all levels.
    pub fn inner_entries(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    /// Returns the position of the first entry that is not below the key.
    pub fn first_not_below(&self, key: &Key) -> usize {
        let mut page = 0;
        for level in self.levels.iter().rev() {
            let children = page * self.inner..((page + 1) * self.inner).min(level.len());
            // The last child that starts below the key is the one before the first that does not.
            let start = children.start;
            page = start + level[children].partition_point(|first| first < key).saturating_sub(1);
        }
        let leaf = page * self.leaf..((page + 1) * self.leaf).min(self.entries.len());
        leaf.start + self.entries[leaf].partition_point(|(other, _)| other < key)
    }
}

/// Returns how many leading bits two keys share.
pub fn common_prefix(a: &Key, b: &Key) -> u32 {
    let mut bits = 0;
    for (a, b) in a.iter().zip(b) {
        let common = (a ^ b).leading_zeros();
        bits += common;
        if common < 64 {
            break;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    fn key(first: u64) -> Key {
        [first, 0, 0, 0, 0, 0, 0, 7]
    }

    #[test]
    fn descending_finds_what_a_search_over_all_finds() {
        let mut rng = Rng::new(Seed::new(1));
        for count in [0, 1, 5, 6, 37, 1_000] {
            let entries: Vec<(Key, u64)> = (0..count).map(|i| (key(rng.below(300)), i)).collect();
            let tree = BTree::load(entries, 5, 3);
            for wanted in 0..302 {
                let expected = (0..tree.len()).position(|i| tree.entry(i).0 >= key(wanted)).unwrap_or(tree.len());
                assert_eq!(tree.first_not_below(&key(wanted)), expected, "{wanted} among {count}");
            }
        }
        let tree = BTree::load((0..100).map(|i| (key(i), i)).collect(), 5, 3);
        // 20 leaves, 7 + 3 + 1 inner pages over them.
        assert_eq!((tree.height(), tree.inner_entries(), tree.page_of(99)), (4, 20 + 7 + 3, 19));
    }

    #[test]
    fn prefixes_run_over_words() {
        assert_eq!(common_prefix(&key(1), &key(1)), 512);
        assert_eq!(common_prefix(&key(0), &key(1)), 63);
        assert_eq!(common_prefix(&[0, 1 << 63, 0, 0, 0, 0, 0, 0], &[0; 8]), 64);
    }
}
