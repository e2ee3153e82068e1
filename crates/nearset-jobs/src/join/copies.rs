//! Records that are equal to others. A thousand copies are found by the first of them, and their pairs are listed up to a limit.

use std::collections::BTreeMap;

/// The copies of entries, beside the record that each entry stands for, the first of them.
pub(super) struct Copies {
    of: BTreeMap<u32, Listed>,
    most: usize,
    /// Pairs with copies beyond those that are listed: near, and not told.
    pub left_out: u64,
}

#[derive(Default)]
struct Listed {
    records: Vec<u32>,
    count: u64,
}

impl Copies {
    /// None yet. Of each entry so many are listed.
    pub fn new(most: usize) -> Self {
        Self { of: BTreeMap::new(), most, left_out: 0 }
    }

    /// Calls `each` with the records of an entry, the first of which is `first`, that come before one.
    pub fn before(&mut self, entry: u32, first: u32, record: u32, mut each: impl FnMut(u32)) {
        if first >= record {
            return;
        }
        each(first);
        if let Some(copies) = self.of.get(&entry) {
            copies.records.iter().copied().for_each(each);
            self.left_out += copies.count - copies.records.len() as u64;
        }
    }

    /// Notes that a record is of an entry, if it is not the first.
    pub fn note(&mut self, entry: u32, first: u32, record: u32) {
        if first == record {
            return;
        }
        let copies = self.of.entry(entry).or_default();
        copies.count += 1;
        if copies.records.len() < self.most {
            copies.records.push(record);
        }
    }

    pub fn count(&self) -> u64 {
        self.of.values().map(|copies| copies.count).sum()
    }

    /// Entries that have copies, with how many records are equal, the first one included.
    pub fn families(&self) -> impl Iterator<Item = (u32, u64)> {
        self.of.iter().map(|(&entry, copies)| (entry, copies.count + 1))
    }
}
