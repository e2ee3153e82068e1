//! Indexes of every kind behind one face, so that one command searches them all.

use std::io;

use nearset::codec::Kind;
use nearset::family::WorkLimit;
use nearset::index::{HammingIndex, IndexError, LshIndex};
use nearset::plan::Metric;
use nearset::{DecodeError, Distance, Item, Neighbour};

/// An index of any kind.
#[derive(Clone)]
#[non_exhaustive]
pub enum AnyIndex<'a> {
    /// Bit strings, of which none that is near is missed.
    Hamming(HammingIndex<'a>),
    /// Items of any metric, found by locality-sensitive keys.
    Lsh(LshIndex<'a>),
}

impl<'a> AnyIndex<'a> {
    /// Opens a file's bytes, its spec held against a limit on work.
    ///
    /// # Errors
    /// If they are damaged, newer than this build, or no index.
    pub fn decode(bytes: &'a [u8], work: WorkLimit) -> Result<Self, DecodeError> {
        match Kind::of(bytes)? {
            Kind::Lsh => Ok(AnyIndex::Lsh(LshIndex::decode(bytes, work)?)),
            _ => Ok(AnyIndex::Hamming(HammingIndex::decode(bytes, work)?)),
        }
    }

    /// Writes the index as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            AnyIndex::Hamming(index) => index.encode(out),
            AnyIndex::Lsh(index) => index.encode(out),
        }
    }

    /// What kind of index it is.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyIndex::Hamming(_) => "Hamming index",
            AnyIndex::Lsh(_) => "near-neighbour index",
        }
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            AnyIndex::Hamming(index) => Some(Metric::Hamming { bits: index.spec().bits }),
            AnyIndex::Lsh(index) => Metric::of_family(index.spec().family),
        }
    }

    /// Whether it has its items, without which it knows no distances.
    pub fn keeps_items(&self) -> bool {
        match self {
            AnyIndex::Hamming(_) => true,
            AnyIndex::Lsh(index) => index.spec().keeps_items,
        }
    }

    /// Items that are in it.
    pub fn len(&self) -> u64 {
        match self {
            AnyIndex::Hamming(index) => u64::from(index.len()),
            AnyIndex::Lsh(index) => u64::from(index.len()),
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        match self {
            AnyIndex::Hamming(index) => index.bytes(),
            AnyIndex::Lsh(index) => index.bytes(),
        }
    }

    /// Whether the item of this id is in it.
    pub fn contains(&self, id: u32) -> bool {
        match self {
            AnyIndex::Hamming(index) => index.get(id).is_some(),
            AnyIndex::Lsh(index) => index.contains(id),
        }
    }

    /// Inserts an item, and returns its id.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or there are too many.
    pub fn insert(&mut self, item: Item<'_>) -> Result<u32, IndexError> {
        match self {
            AnyIndex::Hamming(index) => index.insert(item),
            AnyIndex::Lsh(index) => index.insert(item),
        }
    }

    /// Removes the item of this id. True if it was in.
    pub fn remove(&mut self, id: u32) -> bool {
        match self {
            AnyIndex::Hamming(index) => index.remove(id),
            AnyIndex::Lsh(index) => index.remove(id),
        }
    }

    /// Inserts an item under a name. [`Self::compact`] belongs after the last one.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or there are too many.
    pub fn push(&mut self, item: Item<'_>, name: &str) -> Result<(), IndexError> {
        match self {
            AnyIndex::Hamming(index) => {
                let id = index.push(item)?;
                index.labels_mut().insert(id, name);
            }
            AnyIndex::Lsh(index) => {
                let id = index.insert(item)?;
                index.labels_mut().insert(id, name);
            }
        }
        Ok(())
    }

    /// Makes searches fast after many insertions.
    pub fn compact(&mut self) {
        match self {
            AnyIndex::Hamming(index) => index.compact(),
            AnyIndex::Lsh(index) => index.compact(),
        }
    }

    /// What an item is called; by its number where it has no name.
    pub fn name(&self, id: u32) -> String {
        let labels = match self {
            AnyIndex::Hamming(index) => index.labels(),
            AnyIndex::Lsh(index) => index.labels(),
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
            (AnyIndex::Hamming(index), Some(within)) => index.within(item, within),
            (AnyIndex::Hamming(index), None) => index.nearest(item, top.unwrap_or(usize::MAX)),
            (AnyIndex::Lsh(index), Some(within)) => index.within(item, within),
            (AnyIndex::Lsh(index), None) => index.nearest(item, top.unwrap_or(usize::MAX)),
        }?;
        found.truncate(top.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Takes in all items of another index, after its own; each gets its old id plus the number that is returned.
    ///
    /// # Errors
    /// If they can't be in one index, saying why; it is then unchanged.
    pub fn merge(&mut self, other: &AnyIndex<'_>) -> Result<u32, IndexError> {
        match (self, other) {
            (AnyIndex::Hamming(ours), AnyIndex::Hamming(theirs)) => ours.merge(theirs),
            (AnyIndex::Lsh(ours), AnyIndex::Lsh(theirs)) => ours.merge(theirs),
            (ours, theirs) => {
                let (ours, theirs) = (ours.kind().to_owned(), theirs.kind().to_owned());
                Err(nearset::filter::MergeError { what: "kind", ours, theirs }.into())
            }
        }
    }

    /// A copy that owns its memory.
    pub fn into_owned(self) -> AnyIndex<'static> {
        match self {
            AnyIndex::Hamming(index) => AnyIndex::Hamming(index.into_owned()),
            AnyIndex::Lsh(index) => AnyIndex::Lsh(index.into_owned()),
        }
    }
}
