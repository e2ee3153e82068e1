//! An index of either structure, so that one command searches them all.

use super::{HammingIndex, IndexError, LshIndex, Neighbour};
use crate::{Distance, Item, MergeError, Metric};

/// An index of any metric, of the structure that suits it.
#[derive(Clone)]
#[non_exhaustive]
pub enum Index<'a> {
    /// Bit strings, of which none that is near is missed.
    Hamming(HammingIndex<'a>),
    /// Items of any metric, found by locality-sensitive keys.
    Lsh(LshIndex<'a>),
}

impl<'a> From<HammingIndex<'a>> for Index<'a> {
    fn from(index: HammingIndex<'a>) -> Self {
        Index::Hamming(index)
    }
}

impl<'a> From<LshIndex<'a>> for Index<'a> {
    fn from(index: LshIndex<'a>) -> Self {
        Index::Lsh(index)
    }
}

impl Index<'_> {
    /// What kind of index it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Index::Hamming(_) => "Hamming index",
            Index::Lsh(_) => "near-neighbour index",
        }
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            Index::Hamming(index) => Some(Metric::Hamming { bits: index.spec().bits }),
            Index::Lsh(index) => index.spec().family.metric(),
        }
    }

    /// Whether it has its items, without which it knows no distances.
    pub fn keeps_items(&self) -> bool {
        match self {
            Index::Hamming(_) => true,
            Index::Lsh(index) => index.spec().keeps_items,
        }
    }

    /// Items that are in it.
    pub fn len(&self) -> u64 {
        match self {
            Index::Hamming(index) => u64::from(index.len()),
            Index::Lsh(index) => u64::from(index.len()),
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Index::Hamming(index) => index.bytes(),
            Index::Lsh(index) => index.bytes(),
        }
    }

    /// Whether the item of this id is in it.
    pub fn contains(&self, id: u32) -> bool {
        match self {
            Index::Hamming(index) => index.get(id).is_some(),
            Index::Lsh(index) => index.contains(id),
        }
    }

    /// Inserts an item, and returns its id.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or there are too many.
    pub fn insert(&mut self, item: Item<'_>) -> Result<u32, IndexError> {
        match self {
            Index::Hamming(index) => index.insert(item),
            Index::Lsh(index) => index.insert(item),
        }
    }

    /// Removes the item of this id. True if it was in.
    pub fn remove(&mut self, id: u32) -> bool {
        match self {
            Index::Hamming(index) => index.remove(id),
            Index::Lsh(index) => index.remove(id),
        }
    }

    /// Inserts an item under a name. [`Self::compact`] belongs after the last one.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or there are too many.
    pub fn push(&mut self, item: Item<'_>, name: &str) -> Result<(), IndexError> {
        match self {
            Index::Hamming(index) => {
                let id = index.push(item)?;
                index.labels_mut().insert(id, name);
            }
            Index::Lsh(index) => {
                let id = index.insert(item)?;
                index.labels_mut().insert(id, name);
            }
        }
        Ok(())
    }

    /// Makes searches fast after many insertions.
    pub fn compact(&mut self) {
        match self {
            Index::Hamming(index) => index.compact(),
            Index::Lsh(index) => index.compact(),
        }
    }

    /// What an item is called; by its number where it has no name.
    pub fn name(&self, id: u32) -> String {
        let labels = match self {
            Index::Hamming(index) => index.labels(),
            Index::Lsh(index) => index.labels(),
        };
        labels.get(id).map_or_else(|| id.to_string(), str::to_owned)
    }

    /// The nearest items, at most `top` of them and none beyond `within`, the nearest first.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or the index keeps no items.
    pub fn search(
        &self,
        item: Item<'_>,
        top: Option<usize>,
        within: Option<Distance>,
    ) -> Result<Vec<Neighbour>, IndexError> {
        let mut found = match (self, within) {
            (Index::Hamming(index), Some(within)) => index.within(item, within),
            (Index::Hamming(index), None) => index.nearest(item, top.unwrap_or(usize::MAX)),
            (Index::Lsh(index), Some(within)) => index.within(item, within),
            (Index::Lsh(index), None) => index.nearest(item, top.unwrap_or(usize::MAX)),
        }?;
        found.truncate(top.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Takes in all items of another index, after its own; each gets its old id plus the number that is returned.
    ///
    /// # Errors
    /// If they can't be in one index, saying why; it is then unchanged.
    pub fn merge(&mut self, other: &Index<'_>) -> Result<u32, IndexError> {
        match (self, other) {
            (Index::Hamming(ours), Index::Hamming(theirs)) => ours.merge(theirs),
            (Index::Lsh(ours), Index::Lsh(theirs)) => ours.merge(theirs),
            (ours, theirs) => {
                let (ours, theirs) = (ours.kind().to_owned(), theirs.kind().to_owned());
                Err(MergeError { what: "kind", ours, theirs }.into())
            }
        }
    }

    /// A copy that owns its memory.
    pub fn into_owned(self) -> Index<'static> {
        match self {
            Index::Hamming(index) => Index::Hamming(index.into_owned()),
            Index::Lsh(index) => Index::Lsh(index.into_owned()),
        }
    }
}
