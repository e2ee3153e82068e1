//! Segments: indexes that don't change, with a way from names to items.

use std::{collections::TryReserveError, sync::Arc};

use super::FANOUT;
use crate::{
    Index, Item, ItemError, MergeError, Seed,
    hash::ByteHash,
    index::{
        HammingIndex, LshIndex, Removed, Structure,
        lsh::{Query, Run, entry, slot},
    },
    room,
    spec::IndexSpec,
};

/// Items that don't change.
pub(super) struct Segment {
    /// Its ids are slots without gaps, and every item has a name.
    pub(super) index: Index<'static>,
    /// Slots by the hash of their name.
    names: Run<'static>,
}

/// A segment with what was removed of it.
#[derive(Clone)]
pub(super) struct Placed {
    pub(super) segment: Arc<Segment>,
    pub(super) removed: Removed,
}

/// The hash that a name is found by.
pub(super) fn hash_of(names: ByteHash, name: &str) -> u32 {
    (names.hash(name.as_bytes()) >> 32) as u32
}

impl Segment {
    pub(super) fn new(index: Index<'static>, names: ByteHash) -> Result<Self, TryReserveError> {
        let items = index.len() as u32;
        let entries = (0..items).map(|slot| entry(hash_of(names, index.label(slot)), slot));
        let names = Run::try_new(1, items, |_, out| out.extend(entries.clone()))?;
        Ok(Self { index, names })
    }

    pub(super) fn len(&self) -> u32 {
        self.index.len() as u32
    }

    pub(super) fn name(&self, slot: u32) -> &str {
        self.index.label(slot)
    }

    fn bytes(&self) -> u64 {
        self.index.bytes() + self.names.bytes() as u64
    }

    /// Calls `each` with the slots whose name a later slot has too.
    pub(super) fn repeats(&self, mut each: impl FnMut(u32)) {
        for bucket in self.names.band(0).chunk_by(|a, b| a >> 32 == b >> 32).filter(|bucket| bucket.len() > 1) {
            let mut slots: Vec<u32> = bucket.iter().map(|&entry| slot(entry)).collect();
            // Stable, so that slots of one name stay in order.
            slots.sort_by_key(|&slot| self.name(slot));
            let pairs = slots.windows(2).filter(|pair| self.name(pair[0]) == self.name(pair[1]));
            pairs.for_each(|pair| each(pair[0]));
        }
    }
}

impl Placed {
    pub(super) fn live(&self) -> u32 {
        self.segment.len() - self.removed.count()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.segment.bytes() + self.removed.bytes()
    }

    /// What it would take without those that were removed, about.
    pub(super) fn bytes_of_live(&self) -> u64 {
        let share = f64::from(self.live()) / f64::from(self.segment.len().max(1));
        (self.segment.bytes() as f64 * share).ceil() as u64
    }

    /// The slot of a name, if it is in.
    pub(super) fn find(&self, name: &str, hash: u32) -> Option<u32> {
        let mut slots = self.segment.names.bucket(0, hash).iter().map(|&entry| slot(entry));
        slots.find(|&slot| !self.removed.contains(slot) && self.segment.name(slot) == name)
    }

    /// Segments of about one size have one class.
    pub(super) fn class(&self) -> u32 {
        const SMALLEST: u64 = 128 << 10;
        (self.segment.bytes() / SMALLEST + 1).ilog2() / FANOUT.ilog2()
    }

    /// Whether most of it was removed.
    pub(super) fn is_garbage(&self) -> bool {
        2 * u64::from(self.removed.count()) > u64::from(self.segment.len())
    }
}

/// An item that was checked and hashed, to be inserted.
pub(super) enum HashedItem<'i> {
    Hamming(&'i [u64]),
    Lsh(Box<Query<'i>>),
}

/// An index like this one of the items of others, in their order, but for those in the slots beside each. Who has no name gets its
/// number for one.
///
/// # Errors
/// If there is no memory for it.
pub(super) fn gather(
    like: &Index<'static>,
    parts: &[(&Index<'static>, &Removed)],
) -> Result<Index<'static>, TryReserveError> {
    Ok(Index(match &like.0 {
        Structure::Hamming(like) => {
            let parts = parts.iter().filter_map(|(index, except)| match &index.0 {
                Structure::Hamming(index) => Some((index, *except)),
                Structure::Lsh(_) => None,
            });
            Structure::Hamming(HammingIndex::gather(*like.spec(), parts)?)
        }
        Structure::Lsh(like) => {
            let parts = parts.iter().filter_map(|(index, except)| match &index.0 {
                Structure::Lsh(index) => Some((index, *except)),
                Structure::Hamming(_) => None,
            });
            Structure::Lsh(LshIndex::gather(like, &parts.collect::<Vec<_>>())?)
        }
    }))
}

impl Index<'static> {
    /// Checks and hashes an item.
    pub(super) fn prepare_query<'i>(&self, item: Item<'i>) -> Result<HashedItem<'i>, ItemError> {
        match &self.0 {
            Structure::Hamming(index) => index.row_of(item).map(HashedItem::Hamming),
            Structure::Lsh(index) => index.query(item).map(|query| HashedItem::Lsh(Box::new(query))),
        }
    }

    /// Inserts an item that this index prepared, under a name.
    pub(super) fn push_prepared(&mut self, item: HashedItem<'_>, name: &str) -> u32 {
        let id = match (&mut self.0, item) {
            (Structure::Hamming(index), HashedItem::Hamming(row)) => index.push_row(row),
            (Structure::Lsh(index), HashedItem::Lsh(query)) => index.insert_query(&query),
            _ => unreachable!("an item is prepared by the index that it is inserted into"),
        };
        self.labels_mut().insert(id, name);
        id
    }

    pub(super) fn seed(&self) -> Seed {
        match self.spec() {
            IndexSpec::Hamming(spec) => spec.seed,
            IndexSpec::Lsh(spec) => spec.seed,
        }
    }

    /// An index of the same spec without items.
    pub(super) fn emptied(&self) -> Index<'static> {
        room::expect(gather(self, &[]))
    }

    /// The item's name; every item of a segment has one.
    pub(super) fn label(&self, id: u32) -> &str {
        self.labels().get(id).unwrap_or_default()
    }

    /// Whether every item has a name.
    pub(super) fn is_named(&self) -> bool {
        (0..self.len() as u32).all(|id| self.labels().get(id).is_some())
    }

    /// Whether ids are slots, without gaps.
    pub(super) fn is_gathered(&self) -> bool {
        match &self.0 {
            Structure::Hamming(index) => index.len() == index.next_id(),
            Structure::Lsh(index) => index.is_gathered(),
        }
    }

    /// The same, drawing no functions of its own.
    pub(super) fn with_functions_of(mut self, other: &Index<'static>) -> Self {
        if let (Structure::Lsh(ours), Structure::Lsh(theirs)) = (&mut self.0, &other.0) {
            ours.share_functions(theirs);
        }
        self
    }

    /// Calls `each` with the item of an id, as it is kept. False if there is none.
    pub(super) fn with_item(&self, id: u32, each: &mut dyn FnMut(Item<'_>)) -> bool {
        match &self.0 {
            Structure::Hamming(index) => index.item(id).map(each).is_some(),
            Structure::Lsh(index) => index.item(id, &mut Vec::new()).map(each).is_some(),
        }
    }

    /// That items of another index can be found in one with these.
    pub(super) fn expect_alike(&self, other: &Index<'_>) -> Result<(), MergeError> {
        match (&self.0, &other.0) {
            // Radius and seed decide how fast a search is, and not what it finds.
            (Structure::Hamming(ours), Structure::Hamming(theirs)) => {
                MergeError::unless_equal("number of bits", &ours.spec().bits, &theirs.spec().bits)
            }
            (Structure::Lsh(ours), Structure::Lsh(theirs)) => ours.spec().expect_equal(theirs.spec()),
            _ => Err(MergeError { what: "kind", ours: self.kind().to_owned(), theirs: other.kind().to_owned() }),
        }
    }
}
