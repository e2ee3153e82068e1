//! The near-neighbour index: tables of locality-sensitive keys, for any family (Indyk & Motwani 1998).
//!
//! Claim: an item at distance `d` from a query is among its candidates with probability `1 - (1 - P(d))^bands`, `P(d)` the
//! chance that a band agrees, at least (as [`LshSpec::success_probability`] states); an equal item always, if it has any key. What
//! `within` and `nearest` return was verified by its exact distance.
//! Invariant: an item's id is its place in the order of insertion and never changes; removing one or rewriting tables moves none.
//! Reference: the course notes on near neighbours by Kesselheim & Mehlhorn. For `n` items and a family with `p1` at near and `p2`
//! at far, `k = ln n / ln(1/p2)` rows leave about one far candidate a table and `n^ρ` tables find a near item; the planner
//! starts from there.
//! Not here: choosing rows, tables and probes (`plan`), bytes on disk (`codec`).
//!
//! Tables are log-structured: new items wait in a small buffer that queries scan, full buffers become sorted runs, and a run is
//! merged with the one before while that is not [`FANOUT`] times larger. So an insertion costs `O(log n)` sequential steps a
//! table, and a query looks into a few runs. Removed items are marked, and dropped once they are half of all.

mod gather;
#[cfg(test)]
mod glove_tests;
mod items;
mod runs;
#[cfg(test)]
mod tests;
mod verify;

use std::{
    borrow::Cow,
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

pub(crate) use items::{Kept, Shape};
use items::{Prepared, prepare};
use runs::Buffer;
pub(crate) use runs::{Run, addresses, entry, slot};
use verify::Verifier;

use super::{IndexError, Labels, Neighbour, Removed, spend};
use crate::{
    Distance, Item, ItemError, LshSpec,
    family::{Functions, Hashed, Key, LshFamily, functions_seed},
    hash::mix,
};

/// A run is left alone while it is more than so many times as large as the one after it.
const FANOUT: u64 = 4;

/// Ids that an index with names may have given for each item that is left, when it takes in another.
const IDS_PER_NAMED_ITEM: u32 = 64;
/// As many ids are never too many: their names take 8 MB.
const MOST_SPARSE_IDS: u32 = 1 << 20;

/// An index that finds near items by their keys.
#[derive(Clone)]
pub(crate) struct LshIndex<'a> {
    spec: LshSpec,
    /// Drawn when first needed: opening a small file must not take more memory than it has bytes. Copies share them.
    functions: Arc<OnceLock<Box<dyn Functions>>>,
    /// Mixed into keys, so that who lacks the seed can't aim at a bucket.
    salt: u64,
    /// The id of the next item.
    next: u32,
    /// The ids of the slots, ascending.
    ids: Cow<'a, [u32]>,
    removed: Removed,
    kept: Option<Kept<'a>>,
    labels: Labels<'a>,
    /// The oldest and largest first.
    runs: Vec<Run<'a>>,
    buffer: Buffer,
    /// Whether runs are left as they are, because there will be few of them before they are gathered.
    is_brief: bool,
}

/// What a compact index consists of.
pub(crate) struct Parts<'i, 'a> {
    pub(crate) next: u32,
    pub(crate) ids: &'i [u32],
    pub(crate) run: Option<&'i Run<'a>>,
    pub(crate) kept: Option<&'i Kept<'a>>,
    pub(crate) labels: &'i Labels<'a>,
}

/// A query, hashed.
pub(crate) struct Query<'i> {
    pub(crate) item: Prepared<'i>,
    pub(crate) hashed: Hashed,
}

impl LshIndex<'static> {
    /// An empty index of a spec that was checked.
    pub(crate) fn of_checked(spec: LshSpec) -> Self {
        Self::from_parts(spec, 0, Cow::default(), None, None, Labels::default())
    }
}

impl<'a> LshIndex<'a> {
    /// An index from parts that fit together: one run at most, of the items of all ids.
    pub(crate) fn from_parts(
        spec: LshSpec,
        next: u32,
        ids: Cow<'a, [u32]>,
        run: Option<Run<'a>>,
        kept: Option<Kept<'a>>,
        labels: Labels<'a>,
    ) -> Self {
        debug_assert!(spec.check_possible().is_ok());
        let salt = spec.seed.derive("index", 0).words()[0];
        let kept = kept.or_else(|| spec.keeps_items.then(|| Kept::new(&spec.family)));
        let (functions, removed, runs) = (Arc::default(), Removed::default(), run.into_iter().collect());
        Self {
            spec,
            functions,
            salt,
            next,
            ids,
            removed,
            kept,
            labels,
            runs,
            buffer: Buffer::default(),
            is_brief: false,
        }
    }

    fn functions(&self) -> &dyn Functions {
        &**self.functions.get_or_init(|| {
            let drawn = self.spec.family.draw(functions_seed(self.spec.seed), self.spec.layout);
            drawn.expect("the spec was checked when the index was made")
        })
    }

    /// What the index is.
    pub(crate) fn spec(&self) -> &LshSpec {
        &self.spec
    }

    /// How many items are in.
    pub(crate) fn len(&self) -> u32 {
        self.slots() - self.removed.count()
    }

    /// Whether no item is in.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names of items.
    pub(crate) fn labels(&self) -> &Labels<'a> {
        &self.labels
    }

    /// Names of items, to be added to.
    pub(crate) fn labels_mut(&mut self) -> &mut Labels<'a> {
        &mut self.labels
    }

    /// Whether the item of this id is in.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.slot_of(id).is_some()
    }

    /// Bytes of all tables, as they are now.
    pub(crate) fn table_bytes(&self) -> u64 {
        let waiting = self.buffer.items as usize * self.bands() * size_of::<u64>();
        (self.runs.iter().map(Run::bytes).sum::<usize>() + waiting) as u64
    }

    /// Bytes that items, tables and names take.
    pub(crate) fn bytes(&self) -> u64 {
        let (ids, kept) = (size_of_val(&*self.ids), self.kept.as_ref().map_or(0, Kept::bytes));
        self.table_bytes() + (ids + kept) as u64 + self.labels.bytes()
    }

    fn bands(&self) -> usize {
        self.spec.layout.bands as usize
    }

    fn slots(&self) -> u32 {
        self.ids.len() as u32
    }

    fn slot_of(&self, id: u32) -> Option<u32> {
        // Until something was removed and dropped, ids are slots.
        let at = match self.ids.get(id as usize) {
            Some(&found) if found == id => id as usize,
            _ => self.ids.binary_search(&id).ok()?,
        };
        (!self.removed.contains(at as u32)).then_some(at as u32)
    }

    fn fingerprint(&self, key: Key) -> u32 {
        (mix(key.get() ^ self.salt) >> 32) as u32
    }

    /// An item hashed, for this index and those that share its functions.
    pub(crate) fn query<'i>(&self, item: Item<'i>) -> Result<Query<'i>, ItemError> {
        let (item, mut hashed) = (prepare(&self.spec, item)?, Hashed::default());
        self.functions().hash(item.view(), &mut hashed)?;
        Ok(Query { item, hashed })
    }

    /// Inserts an item, near ones and repeats too, and gives it the next id.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash, or no id is left; the index is then unchanged.
    pub(crate) fn insert<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<u32, IndexError> {
        if self.next == u32::MAX {
            return Err(IndexError::Full);
        }
        let query = self.query(item.into())?;
        Ok(self.insert_query(&query))
    }

    /// Inserts an item that was hashed, where an id is left.
    pub(crate) fn insert_query(&mut self, Query { item, hashed }: &Query<'_>) -> u32 {
        self.insert_view(item.view(), hashed)
    }

    /// Inserts an item that was prepared and hashed by an index of this spec.
    ///
    /// # Errors
    /// If it was not, or no id is left; the index is then unchanged.
    pub(crate) fn insert_hashed(&mut self, item: Item<'_>, hashed: &Hashed) -> Result<u32, IndexError> {
        if self.next == u32::MAX {
            return Err(IndexError::Full);
        }
        self.expect_prepared(item, hashed)?;
        Ok(self.insert_view(item, hashed))
    }

    fn insert_view(&mut self, item: Item<'_>, hashed: &Hashed) -> u32 {
        let (id, slot) = (self.next, self.slots());
        self.next += 1;
        self.ids.to_mut().push(id);
        if let Some(kept) = &mut self.kept {
            kept.push(item);
        }
        let salt = self.salt;
        let fingerprint = |key: &Option<Key>| key.map(|key| (mix(key.get() ^ salt) >> 32) as u32);
        self.buffer.push(slot, hashed.keys.iter().map(fingerprint));
        if self.buffer.items == Buffer::FULL {
            self.flush();
        }
        id
    }

    /// Makes a run of the buffer.
    fn flush(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.runs.push(Run::new(self.bands(), buffer.items, |band, out| out.extend_from_slice(buffer.band(band))));
        self.buffer = buffer;
        self.buffer.clear();
        if !self.is_brief {
            self.settle();
        }
    }

    /// Merges runs until each is more than [`FANOUT`] times as large as the one after it.
    fn settle(&mut self) {
        while let [.., before, last] = &self.runs[..]
            && u64::from(before.items) <= FANOUT * u64::from(last.items)
        {
            let items = before.items + last.items;
            let merged = Run::new(self.bands(), items, |band, out| {
                out.extend_from_slice(before.band(band));
                out.extend_from_slice(last.band(band));
            });
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(merged);
        }
    }

    /// Removes the item of this id. True if it was in.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let Some(slot) = self.slot_of(id) else { return false };
        self.removed.insert(slot);
        if 2 * u64::from(self.removed.count()) > u64::from(self.slots()) {
            self.compact();
        }
        true
    }

    /// Rewrites the tables as one run, without what was removed. Queries then look into one run only; saving does this to a
    /// copy, so an index that is to be saved and is large is better made compact before.
    pub(crate) fn compact(&mut self) {
        if self.is_compact() {
            return;
        }
        let (mut new, mut live) = (Vec::with_capacity(self.ids.len()), 0);
        for slot in 0..self.slots() {
            new.push(live);
            live += u32::from(!self.removed.contains(slot));
        }
        let runs = if live == 0 { Vec::new() } else { vec![self.merged_run(live, |slot| new[slot as usize])] };
        if self.removed.count() > 0 {
            let removed = std::mem::take(&mut self.removed);
            let keeps = |slot: u32| !removed.contains(slot);
            if let Some(kept) = &mut self.kept {
                let mut rest = Kept::new(&self.spec.family);
                rest.extend(kept, self.ids.len() as u32, keeps);
                *kept = rest;
            }
            let ids = (0..).zip(&*self.ids).filter(|(slot, _)| keeps(*slot)).map(|(_, &id)| id).collect::<Vec<_>>();
            let mut labels = Labels::default();
            ids.iter()
                .filter_map(|&id| Some((id, self.labels.get(id)?)))
                .for_each(|(id, name)| labels.insert(id, name));
            (self.ids, self.labels) = (ids.into(), labels);
        }
        self.runs = runs;
        self.buffer = Buffer::default();
    }

    /// All entries of items that are in, as one run of them, their slots renumbered.
    fn merged_run(&self, items: u32, new: impl Fn(u32) -> u32) -> Run<'static> {
        Run::new(self.bands(), items, |band, out| {
            let bands = self.runs.iter().map(|run| run.band(band)).chain([self.buffer.band(band)]);
            // Renumbering keeps the order of slots, so what was sorted stays so.
            let renumbered = |&old: &u64| entry((old >> 32) as u32, new(slot(old)));
            bands.for_each(|entries| {
                out.extend(entries.iter().filter(|&&entry| !self.removed.contains(slot(entry))).map(renumbered));
            });
        })
    }

    fn is_compact(&self) -> bool {
        self.removed.count() == 0 && self.buffer.items == 0 && self.runs.len() <= 1
    }

    /// The parts of [`Self::from_parts`], if the index is compact.
    pub(crate) fn parts(&self) -> Option<Parts<'_, 'a>> {
        let (run, kept) = (self.runs.first(), self.kept.as_ref());
        self.is_compact().then(|| Parts { next: self.next, ids: &self.ids, run, kept, labels: &self.labels })
    }

    /// Takes in all items of another index, in their order; each gets its old id plus the number that is returned.
    ///
    /// # Errors
    /// If the specs differ, naming the first difference, or ids run out; the index is then unchanged.
    pub(crate) fn merge(&mut self, other: &LshIndex<'_>) -> Result<u32, IndexError> {
        self.spec.expect_equal(&other.spec)?;
        let (first, shift) = (self.next, self.slots());
        let next = first.checked_add(other.next).ok_or(IndexError::Full)?;
        // A file may state any id, and a name takes room for every id before its own.
        let items = self.slots().saturating_add(other.slots());
        if !other.labels.is_empty() && next > IDS_PER_NAMED_ITEM.saturating_mul(items).max(MOST_SPARSE_IDS) {
            return Err(IndexError::SparseNames { ids: next, items });
        }
        self.next = next;
        let mut compacted;
        let other = if other.is_compact() {
            other
        } else {
            compacted = other.clone();
            compacted.compact();
            &compacted
        };
        self.ids.to_mut().extend(other.ids.iter().map(|id| first + id));
        if let (Some(ours), Some(theirs)) = (&mut self.kept, &other.kept) {
            ours.extend(theirs, other.slots(), |_| true);
        }
        self.labels.append(first, &other.labels);
        if !other.is_empty() {
            self.runs.push(other.merged_run(other.slots(), |slot| slot + shift));
            self.settle();
        }
        Ok(first)
    }

    /// Calls `each` with the slots in the buckets that a query looks into: all tables' own buckets first, then those beside.
    /// A slot comes once for every bucket that it is found in.
    fn visit<B>(&self, hashed: &Hashed, mut each: impl FnMut(u32) -> ControlFlow<B>) -> ControlFlow<B> {
        for (band, key) in hashed.keys.iter().enumerate() {
            if let Some(key) = key {
                self.visit_bucket(band, *key, &mut each)?;
            }
        }
        if self.spec.probes == 1 {
            return ControlFlow::Continue(());
        }
        for (band, _) in hashed.keys.iter().enumerate().filter(|(_, key)| key.is_some()) {
            let mut stopped = ControlFlow::Continue(());
            self.functions().probe(hashed, band, self.spec.probes - 1, &mut |key| {
                if stopped.is_continue() {
                    stopped = self.visit_bucket(band, key, &mut each);
                }
            });
            stopped?;
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn visit_bucket<B>(&self, band: usize, key: Key, each: &mut impl FnMut(u32) -> ControlFlow<B>) -> ControlFlow<B> {
        let fingerprint = self.fingerprint(key);
        let runs = self.runs.iter().flat_map(|run| run.bucket(band, fingerprint).iter().copied());
        for entry in runs.chain(self.buffer.bucket(band, fingerprint)) {
            if !self.removed.contains(slot(entry)) {
                each(slot(entry))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The slots of all candidates from a slot on, ascending, each once.
    ///
    /// # Errors
    /// If more than `most` are in the buckets.
    fn candidate_slots(&self, hashed: &Hashed, first: u32, most: u64) -> Result<Vec<u32>, IndexError> {
        let mut slots = Vec::new();
        let ended = self.visit(hashed, |slot| {
            if slot >= first {
                slots.push(slot);
            }
            if slots.len() as u64 > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if ended.is_break() {
            return Err(IndexError::Budget);
        }
        slots.sort_unstable();
        slots.dedup();
        // Tables that were not checked may say anything.
        slots.truncate(slots.partition_point(|&slot| slot < self.slots()));
        Ok(slots)
    }

    /// The ids of the items that share a bucket with the query in any table, ascending. Those at distance `d` are among them with
    /// the probability that [`LshSpec::success_probability`] states; the others are there by chance, so verify.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub(crate) fn candidates<'i>(&self, item: impl Into<Item<'i>>) -> Result<Vec<u32>, IndexError> {
        let slots = self.candidate_slots(&self.query(item.into())?.hashed, 0, u64::MAX)?;
        Ok(slots.into_iter().filter_map(|slot| self.ids.get(slot as usize).copied()).collect())
    }

    /// The nearest candidates, up to `top` of them and none beyond `within`, the nearest first; of equally near ones those inserted
    /// first.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash, or items are not kept.
    pub(crate) fn search<'i>(
        &self,
        item: impl Into<Item<'i>>,
        top: Option<usize>,
        within: Option<Distance>,
    ) -> Result<Vec<Neighbour>, IndexError> {
        self.search_query(&self.query(item.into())?, top, within, &Removed::default(), &mut { u64::MAX })
    }

    /// The candidates of an item that was prepared and hashed by an index of this spec that are no farther than this and whose id is `from` or
    /// more, the nearest first.
    ///
    /// # Errors
    /// If it was not, or items are not kept.
    pub(crate) fn within_from(
        &self,
        item: Item<'_>,
        hashed: &Hashed,
        from: u32,
        distance: Distance,
    ) -> Result<Vec<Neighbour>, IndexError> {
        self.expect_prepared(item, hashed)?;
        let first = self.ids.partition_point(|&id| id < from) as u32;
        let mut found = Verifier::new(self, item)?.within(self.candidate_slots(hashed, first, u64::MAX)?, distance);
        found.sort_unstable();
        Ok(found)
    }

    /// Checks that an item was prepared and hashed for an index like this one.
    fn expect_prepared(&self, item: Item<'_>, hashed: &Hashed) -> Result<(), IndexError> {
        let is_of_form = match (Shape::of(&self.spec.family), item) {
            (Shape::Bits(bits), Item::Bits(item)) => item.len() == bits,
            (Shape::Symbols(length), Item::Symbols(item)) => item.len() == length,
            (Shape::Vector(dimension), Item::Vector(item)) => item.len() == dimension,
            (Shape::Set, Item::Set(_)) | (Shape::Weighted, Item::Weighted(_)) => true,
            _ => false,
        };
        if is_of_form && hashed.keys.len() == self.bands() { Ok(()) } else { Err(IndexError::PreparedForAnother) }
    }

    /// [`Self::search`] of a query that is hashed already, in all slots but some, comparing not more words than this.
    pub(crate) fn search_query(
        &self,
        query: &Query<'_>,
        top: Option<usize>,
        within: Option<Distance>,
        except: &Removed,
        budget: &mut u64,
    ) -> Result<Vec<Neighbour>, IndexError> {
        let verifier = Verifier::new(self, query.item.view())?;
        let mut slots = self.candidate_slots(&query.hashed, 0, *budget)?;
        slots.retain(|&slot| !except.contains(slot));
        spend(budget, slots.iter().map(|&slot| verifier.kept.words_of(slot)).sum())?;
        let top = top.unwrap_or(usize::MAX);
        let mut found = match within {
            Some(distance) => verifier.within(slots, distance),
            None => verifier.nearest(slots, top),
        };
        found.sort_unstable();
        found.truncate(top);
        Ok(found)
    }

    /// A copy that owns its tables, such as one of a memory-mapped index that is to grow.
    pub(crate) fn into_owned(self) -> LshIndex<'static> {
        LshIndex {
            spec: self.spec,
            functions: self.functions,
            salt: self.salt,
            next: self.next,
            ids: self.ids.into_owned().into(),
            removed: self.removed,
            kept: self.kept.map(Kept::into_owned),
            labels: self.labels.into_owned(),
            runs: self.runs.into_iter().map(Run::into_owned).collect(),
            buffer: self.buffer,
            is_brief: self.is_brief,
        }
    }
}
