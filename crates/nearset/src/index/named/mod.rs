//! An index whose items have names of the caller's: added, replaced, removed and found while it is in use.
//!
//! Claim: an insertion or removal takes a bounded time, however many items there are; what takes longer is a [`SegmentMerge`], which any
//! thread can carry out. Answers depend on what was inserted and removed in which order, and not on what was merged when.
//! Invariant: a name that is in stands for one item, in one place. Segments are in the order of insertion and immutable, except for
//! which of their items were removed since; only neighbours are merged, so that the order is kept. Copies share them.
//! Not here: threads, and when to merge on which; bytes on disk (`codec`).
//!
//! Items are inserted into a small index, which becomes a segment when it is full ([`FULL_ITEMS`], [`FULL_BYTES`]). As soon as there are
//! [`FANOUT`] neighbours of about one size, they are due to be merged. So `n` items lie in `O(log n)` segments and are rewritten as
//! often (O'Neil, Cheng, Gawlick & O'Neil 1996, "The log-structured merge-tree").

mod merge;
mod segment;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, TryReserveError},
    sync::Arc,
};

pub use self::merge::SegmentMerge;
use self::segment::{HashedItem, Placed, Segment, gather};
use super::{Index, IndexError, Neighbour, Removed, Structure};
use crate::{Distance, Item, hash::ByteHash, item::BatchError, room};

/// Insertions after which the newest items become a segment: few enough to be sorted within a few milliseconds.
const FULL_ITEMS: u32 = 4096;

/// Bytes of them at which they do so earlier.
const FULL_BYTES: u64 = 1 << 20;

/// Neighbouring segments of about one size that are merged.
const FANOUT: usize = 4;

/// Bytes of a name among the newest items beside its letters: where it lies, its id, and its share of the tree.
const NAME: u64 = 48;

/// A set of items with names, found again by what is near them.
#[derive(Clone)]
pub struct NamedIndex {
    /// The newest items.
    newest: Index<'static>,
    /// Their ids, by name.
    ids: BTreeMap<Box<str>, u32>,
    /// What those names take.
    bytes_of_names: u64,
    /// Insertions into it.
    inserted: u32,
    /// The oldest first.
    segments: Vec<Placed>,
    names: ByteHash,
    len: u64,
}

/// How a [`NamedIndex`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedState {
    /// Items that are in.
    pub items: u64,
    /// Segments that every search looks into, the newest items among them.
    pub segments: usize,
    /// Bytes that items, tables and names take, and those of items that were removed and not merged away yet.
    pub bytes: u64,
    /// Bytes of the functions that items are hashed with, which come on top; copies share them.
    pub bytes_of_functions: u64,
    /// Whether they are drawn, rather than with the first item.
    pub is_prepared: bool,
}

impl From<Index<'static>> for NamedIndex {
    /// Items keep their names; those without are called by their number. Of several with one name the last one stays.
    fn from(index: Index<'static>) -> Self {
        let names = ByteHash::new(index.seed().derive("names", 0));
        let newest = index.emptied();
        let mut named =
            Self { newest, ids: BTreeMap::new(), bytes_of_names: 0, inserted: 0, segments: Vec::new(), names, len: 0 };
        room::expect(named.append(index, Removed::default()));
        named
    }
}

impl NamedIndex {
    /// Returns an index of the same spec without items.
    pub fn empty(&self) -> Index<'static> {
        self.newest.emptied()
    }

    /// Returns how the index is now.
    pub fn state(&self) -> NamedState {
        let bytes = self.newest.bytes() + self.bytes_of_names + self.segments.iter().map(Placed::bytes).sum::<u64>();
        let (bytes_of_functions, is_prepared) = match &self.newest.0 {
            Structure::Lsh(index) => (index.bytes_of_functions(), index.is_prepared()),
            Structure::Hamming(_) => (0, true),
        };
        NamedState { items: self.len, segments: self.segments.len() + 1, bytes, bytes_of_functions, is_prepared }
    }

    /// Draws functions now rather than with the first item, for copies too.
    pub fn prepare(&self) {
        if let Structure::Lsh(index) = &self.newest.0 {
            index.prepare();
        }
    }

    /// The segment and the slot of a name that is not among the newest.
    fn find(&self, name: &str) -> Option<(usize, u32)> {
        let hash = segment::hash_of(self.names, name);
        let mut newest_first = self.segments.iter().enumerate().rev();
        newest_first.find_map(|(at, placed)| Some((at, placed.find(name, hash)?)))
    }

    /// Inserts items under names in order, all or none, each in place of the one that has its name. True for each whose name none had.
    ///
    /// # Errors
    /// If a name is empty, or an item of a wrong kind or length, or without a hash: the error has its position.
    pub fn insert<'i>(
        &mut self,
        items: impl IntoIterator<Item = (&'i str, Item<'i>)>,
    ) -> Result<Vec<bool>, IndexError> {
        let hashed =
            items.into_iter().enumerate().map(|(position, (name, item))| match self.newest.prepare_query(item) {
                _ if name.is_empty() => Err(IndexError::NoName { position }),
                Ok(prepared) => Ok((name, prepared)),
                Err(cause) => Err(BatchError { position, cause }.into()),
            });
        let hashed = hashed.collect::<Result<Vec<_>, _>>()?;
        Ok(hashed.into_iter().map(|(name, item)| self.insert_prepared(name, item)).collect())
    }

    fn insert_prepared(&mut self, name: &str, item: HashedItem<'_>) -> bool {
        let id = self.newest.push_prepared(item, name);
        let was_in = match self.ids.get_mut(name) {
            Some(known) => self.newest.remove(std::mem::replace(known, id)),
            None => {
                self.ids.insert(name.into(), id);
                self.bytes_of_names += name.len() as u64 + NAME;
                self.remove_from_segments(name)
            }
        };
        self.len += u64::from(!was_in);
        self.inserted += 1;
        if self.inserted >= FULL_ITEMS || self.newest.bytes() >= FULL_BYTES {
            // Where there is no memory for a segment, they wait for the next insertion.
            let _ = self.seal();
        }
        !was_in
    }

    /// Removes the item of this name. True if it was in.
    pub fn remove(&mut self, name: &str) -> bool {
        let was_in = match self.ids.remove(name) {
            Some(id) => {
                self.bytes_of_names -= name.len() as u64 + NAME;
                self.newest.remove(id)
            }
            None => self.remove_from_segments(name),
        };
        self.len -= u64::from(was_in);
        was_in
    }

    fn remove_from_segments(&mut self, name: &str) -> bool {
        let found = self.find(name);
        found.is_some_and(|(at, slot)| self.segments[at].removed.insert(slot))
    }

    /// Makes a segment of the newest items.
    ///
    /// # Errors
    /// If there is no memory for it; nothing has changed then.
    fn seal(&mut self) -> Result<(), TryReserveError> {
        let segment = Segment::new(self.gathered()?, self.names)?;
        self.newest = segment.index.emptied();
        self.ids.clear();
        (self.inserted, self.bytes_of_names) = (0, 0);
        if segment.len() > 0 {
            self.segments.push(Placed { segment: Arc::new(segment), removed: Removed::default() });
        }
        Ok(())
    }

    /// The newest items alone, with ids that have no gaps.
    fn gathered(&self) -> Result<Index<'static>, TryReserveError> {
        gather(&self.newest, &[(&self.newest, &Removed::default())])
    }

    /// Returns one index of all items in the order of insertion, such as a file has.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn gather(&self) -> Result<Index<'static>, TryReserveError> {
        let none = Removed::default();
        let segments = self.segments.iter().map(|placed| (&placed.segment.index, &placed.removed));
        gather(&self.newest, &segments.chain([(&self.newest, &none)]).collect::<Vec<_>>())
    }

    /// Calls `each` with the name of every item in the order of insertion, or of the one of this name, if it is in; and with the item as
    /// it is kept, if it is: texts are sets of hashes.
    pub fn for_each(&self, only: Option<&str>, mut each: impl FnMut(&str, Option<Item<'_>>)) {
        let mut tell = |index: &Index<'static>, id: u32| {
            let mut is_told = false;
            index.with_item(id, &mut |item| {
                is_told = true;
                each(index.label(id), Some(item));
            });
            if !is_told {
                each(index.label(id), None);
            }
        };
        if let Some(name) = only {
            match (self.ids.get(name), self.find(name)) {
                (Some(&id), _) => tell(&self.newest, id),
                (None, Some((at, slot))) => tell(&self.segments[at].segment.index, slot),
                (None, None) => {}
            }
            return;
        }
        for Placed { segment, removed } in &self.segments {
            (0..segment.len()).filter(|&slot| !removed.contains(slot)).for_each(|slot| tell(&segment.index, slot));
        }
        let mut ids: Vec<u32> = self.ids.values().copied().collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| tell(&self.newest, id));
    }

    /// Finds the nearest items, at most `top` of them and none beyond `within`, the nearest first; of equally near ones those
    /// inserted first.
    ///
    /// Bit strings are never missed; other items are found as often as was planned. All distances are exact. A search compares some
    /// hundred million words per second, and not more than `budget` of them.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, the index keeps no items, or the budget is too small.
    pub fn search<'i>(
        &self,
        item: impl Into<Item<'i>>,
        top: Option<usize>,
        within: Option<Distance>,
        mut budget: u64,
    ) -> Result<Vec<(&str, Distance)>, IndexError> {
        let item = item.into();
        let none = Removed::default();
        let all = self.segments.iter().map(|placed| (&placed.segment.index, &placed.removed));
        let all = all.chain([(&self.newest, &none)]);
        let mut found: Vec<(usize, Neighbour)> = Vec::new();
        match &self.newest.0 {
            Structure::Hamming(_) => {
                for (at, (index, removed)) in all.clone().enumerate() {
                    if let Structure::Hamming(index) = &index.0 {
                        found.extend(
                            index
                                .search_except(item, top, within, removed, &mut budget)?
                                .into_iter()
                                .map(|one| (at, one)),
                        );
                    }
                }
            }
            Structure::Lsh(newest) => {
                let query = newest.query(item)?;
                for (at, (index, removed)) in all.clone().enumerate() {
                    if let Structure::Lsh(index) = &index.0 {
                        found.extend(
                            index
                                .search_query(&query, top, within, removed, &mut budget)?
                                .into_iter()
                                .map(|one| (at, one)),
                        );
                    }
                }
            }
        }
        // Stable, so that of equally near ones those of older segments come first.
        found.sort_by(|(_, a), (_, b)| a.distance.partial_cmp(&b.distance).expect("a distance is a number"));
        found.truncate(top.unwrap_or(usize::MAX));
        let indexes: Vec<&Index<'_>> = all.map(|(index, _)| index).collect();
        Ok(found.into_iter().map(|(at, Neighbour { id, distance })| (indexes[at].label(id), distance)).collect())
    }

    /// Calls `each` with indexes that together hold all items, in the order of insertion, and with which of their items to leave out: one
    /// bit per id, the lowest of the first word first. There is at least one index. [`Self::take_in`] makes the same of them again.
    pub fn parts(&self, mut each: impl FnMut(&Index<'static>, &[u64])) {
        for Placed { segment, removed } in &self.segments {
            each(&segment.index, removed.words());
        }
        if !self.ids.is_empty() || self.segments.is_empty() {
            each(&room::expect(self.gathered()), &[]);
        }
    }

    /// Takes in the items of an index, but for some of them, each in place of the item that has its name. Those without a name are called
    /// by their number.
    ///
    /// # Errors
    /// If the specs differ, items are to be left out that are not there, or there is no memory; the items of the index are then the same.
    pub fn take_in(&mut self, index: Index<'static>, left_out: &[u64]) -> Result<(), IndexError> {
        self.newest.expect_alike(&index)?;
        let items = if index.is_gathered() { index.len() as u32 } else { 0 };
        let left_out = Removed::from_words(left_out, items).ok_or(IndexError::LeftOut)?;
        self.append(index, left_out).map_err(IndexError::Memory)
    }

    fn append(&mut self, index: Index<'static>, mut removed: Removed) -> Result<(), TryReserveError> {
        if index.is_empty() {
            return Ok(());
        }
        self.seal()?;
        let fits = index.spec() == self.newest.spec() && index.is_gathered() && index.is_named();
        let index = if fits {
            index.with_functions_of(&self.newest)
        } else {
            gather(&self.newest, &[(&index, &std::mem::take(&mut removed))])?
        };
        let segment = Segment::new(index, self.names)?;
        segment.repeats(|slot| {
            removed.insert(slot);
        });
        if self.len > 0 {
            for slot in (0..segment.len()).filter(|&slot| !removed.contains(slot)) {
                self.len -= u64::from(self.remove_from_segments(segment.name(slot)));
            }
        }
        let placed = Placed { segment: Arc::new(segment), removed };
        self.len += u64::from(placed.live());
        self.segments.push(placed);
        Ok(())
    }
}
