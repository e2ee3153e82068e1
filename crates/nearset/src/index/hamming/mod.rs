//! Exact search among bit strings by Hamming distance: a multi-index, or a scan where that is faster.
//!
//! Claim: `within` returns every stored string within the radius, repeats and ties included, and `nearest` the nearest; never
//! fewer. The radius of the spec decides how fast, not what: other distances have exact answers too.
//! Invariant: every row below `blocks.items` that was not removed stands in every block's table; rows from there on are few,
//! and compared one by one.
//! Not here: filters that only say whether anything is near ([`Filter`](crate::Filter)); bytes on disk (`codec`).
//!
//! Strings are cut into blocks (Norouzi, Punjani & Fleet 2012, "Fast search in Hamming space with multi-index hashing"), each
//! searched within a share of the radius such that none is missed (`cut`). Each block's keys lie in a table (`table`) which is
//! looked up at growing distances (`search`), and what is met there is compared whole.

pub(crate) mod cut;
mod join;
pub(crate) mod rows;
pub(crate) mod search;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::{collections::TryReserveError, ops::Range};

use self::{
    rows::Rows,
    search::{Blocks, Lookup, Scratch, Step},
    table::MOST_ITEMS,
};
use super::{IndexError, Labels, Neighbour, Removed, spend};
use crate::{
    Bits, HammingSpec, MergeError,
    item::{Distance, Item, ItemError},
    room,
    simd::{hamming, scan_within, select_within},
};

/// Bit strings that can be found again by what is near them. Nothing near is ever missed.
#[derive(Clone)]
pub(crate) struct HammingIndex<'a> {
    spec: HammingSpec,
    rows: Rows<'a>,
    labels: Labels<'a>,
    blocks: Blocks<'a>,
}

/// Rows that may be inserted before all are indexed again: so many, or a part of those indexed. What is not indexed costs every
/// query some nanoseconds a row, and indexing again some microseconds a row divided by the part.
const SHORTEST_TAIL: u32 = 4096;
const TAIL_PART: u32 = 16;

/// Queries that look into one block after the other together: enough to look at most of a table's lines more than once.
const TOGETHER: usize = 1024;

/// Look-ups whose memory is fetched together: what they find is to stay in the nearest cache.
const LOOKUPS_TOGETHER: usize = 96;

impl HammingIndex<'static> {
    /// An empty index of a spec that was checked.
    pub(crate) fn of_checked(spec: HammingSpec) -> Self {
        Self::from_parts(spec, Rows::new(spec.words()), Labels::default(), Blocks::new(Vec::new(), Vec::new(), 0))
    }
}

impl<'a> HammingIndex<'a> {
    /// An index from parts that fit together.
    pub(crate) fn from_parts(spec: HammingSpec, rows: Rows<'a>, labels: Labels<'a>, blocks: Blocks<'a>) -> Self {
        debug_assert!(spec.check().is_ok());
        Self { spec, rows, labels, blocks }
    }

    pub(crate) fn rows(&self) -> &Rows<'a> {
        &self.rows
    }

    pub(crate) fn blocks(&self) -> &Blocks<'a> {
        &self.blocks
    }

    /// What the index is.
    pub(crate) fn spec(&self) -> &HammingSpec {
        &self.spec
    }

    /// How many items are in it, repeats included, removed ones not.
    pub(crate) fn len(&self) -> u32 {
        self.rows.len() - self.rows.num_removed()
    }

    /// The id that the next item gets: one more than that of the last.
    pub(crate) fn next_id(&self) -> u32 {
        self.rows.len()
    }

    /// Whether the item of this id is in.
    pub(crate) fn contains(&self, id: u32) -> bool {
        id < self.rows.len() && !self.rows.is_removed(id)
    }

    /// Names of items.
    pub(crate) fn labels(&self) -> &Labels<'a> {
        &self.labels
    }

    /// Names of items, to be added to.
    pub(crate) fn labels_mut(&mut self) -> &mut Labels<'a> {
        &mut self.labels
    }

    /// Bytes that items, tables and names take.
    pub(crate) fn bytes(&self) -> u64 {
        let tables: u64 = self.blocks.tables.iter().map(|table| table.bytes()).sum();
        self.rows.bytes() + self.labels.bytes() + tables
    }

    /// Each block's bits and the radius within which it is searched; none where every search is a scan.
    pub(crate) fn block_radii(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks.cuts.iter().map(|cut| (cut.width, cut.radius))
    }

    /// The words of an item that fits in.
    pub(crate) fn row_of<'i>(&self, item: impl Into<Item<'i>>) -> Result<&'i [u64], ItemError> {
        let bits = item.into().bits()?;
        bits.expect_len(self.spec.bits as usize)?;
        Ok(bits.words())
    }

    /// Inserts an item that every search compares until the next [`Self::compact`], and returns its id: for filling an index whose
    /// items come one after the other.
    ///
    /// # Errors
    /// If the item is no bit string of the right length, or the index is full; it is then unchanged.
    pub(crate) fn push<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<u32, IndexError> {
        let row = self.row_of(item)?;
        if self.rows.len() == MOST_ITEMS {
            return Err(IndexError::Full);
        }
        Ok(self.push_row(row))
    }

    /// Inserts the words of an item where there is room for it.
    pub(crate) fn push_row(&mut self, row: &[u64]) -> u32 {
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// Indexes all again when too many rows are not.
    fn settle(&mut self) {
        if self.rows.len() - self.blocks.items > SHORTEST_TAIL.max(self.blocks.items / TAIL_PART) {
            self.compact();
        }
    }

    /// Inserts an item, and returns its id. Now and then all are indexed again; many are inserted faster by [`Self::push`].
    ///
    /// # Errors
    /// If the item is no bit string of the right length, or the index is full; it is then unchanged.
    pub(crate) fn insert<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<u32, IndexError> {
        let id = self.push(item)?;
        self.settle();
        Ok(id)
    }

    /// Removes an item; false if it is not in the index. Its id is not given again.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        self.rows.remove(id)
    }

    /// Takes in all items of another index, in their order; each gets its old id plus the number that is returned.
    ///
    /// # Errors
    /// If items are of another length, or ids run out; the index is then unchanged.
    pub(crate) fn merge(&mut self, other: &HammingIndex<'_>) -> Result<u32, IndexError> {
        // Radius and seed decide how fast each is, and not what is in it.
        MergeError::unless_equal("number of bits", &self.spec.bits, &other.spec.bits)?;
        let first = self.next_id();
        if other.rows.len() > MOST_ITEMS - first {
            return Err(IndexError::Full);
        }
        for id in 0..other.rows.len() {
            self.rows.push(other.rows.row(id));
            if other.rows.is_removed(id) {
                self.rows.remove(first + id);
            }
        }
        self.labels.append(first, &other.labels);
        self.settle();
        Ok(first)
    }

    /// Makes the tables anew, for the items that are there now: after many insertions or removals, searches are faster then.
    pub(crate) fn compact(&mut self) {
        room::expect(self.try_compact());
    }

    fn try_compact(&mut self) -> Result<(), TryReserveError> {
        let HammingSpec { bits, radius, seed } = self.spec;
        self.blocks = Blocks::build(bits, radius, seed, &self.rows)?;
        Ok(())
    }

    /// An index of the items of others of as many bits, in their order and with their names or numbers, but for those in the rows beside
    /// each; ids count from 0 on.
    pub(crate) fn gather<'p>(
        spec: HammingSpec,
        parts: impl Iterator<Item = (&'p HammingIndex<'static>, &'p Removed)> + Clone,
    ) -> Result<HammingIndex<'static>, TryReserveError> {
        let mut gathered = HammingIndex::of_checked(spec);
        let kept = parts.flat_map(|(part, except)| {
            let is_in = move |&id: &u32| part.contains(id) && !except.contains(id);
            (0..part.rows.len()).filter(is_in).map(move |id| (part, id))
        });
        gathered.rows.reserve(kept.clone().count())?;
        let bytes_of_names = kept.clone().map(|(part, id)| part.labels.bytes_of_copy(id)).sum();
        gathered.labels.reserve(kept.clone().count(), bytes_of_names)?;
        for (part, id) in kept {
            part.labels.copy(id, &mut gathered.labels, gathered.rows.len());
            gathered.rows.push(part.rows.row(id));
        }
        gathered.try_compact()?;
        Ok(gathered)
    }

    /// The item of this id.
    pub(crate) fn item(&self, id: u32) -> Option<Item<'_>> {
        if !self.contains(id) {
            return None;
        }
        Bits::new(self.rows.row(id), self.spec.bits as usize).ok().map(Item::Bits)
    }

    /// A copy that owns its memory, such as one of a memory-mapped index that is to grow.
    pub(crate) fn into_owned(self) -> HammingIndex<'static> {
        HammingIndex {
            spec: self.spec,
            rows: self.rows.into_owned(),
            labels: self.labels.into_owned(),
            blocks: self.blocks.into_owned(),
        }
    }

    /// The items nearest to the query, up to `top` of them and none beyond `within`, the nearest first: of equally near ones those
    /// inserted first. Fewer only where there are fewer.
    ///
    /// # Errors
    /// If the query is no bit string of the right length.
    pub(crate) fn search<'i>(
        &self,
        query: impl Into<Item<'i>>,
        top: Option<usize>,
        within: Option<Distance>,
    ) -> Result<Vec<Neighbour>, IndexError> {
        self.search_except(query, top, within, &Removed::default(), &mut { u64::MAX })
    }

    /// [`Self::search`] among all rows but some, comparing not more words than this.
    pub(crate) fn search_except<'i>(
        &self,
        query: impl Into<Item<'i>>,
        top: Option<usize>,
        within: Option<Distance>,
        except: &Removed,
        budget: &mut u64,
    ) -> Result<Vec<Neighbour>, IndexError> {
        let (query, top) = (self.row_of(query)?, top.unwrap_or(usize::MAX));
        // What is met may be near, and is then sorted.
        const SORTED: usize = 8;
        let each = query.len();
        if let Some(distance) = within {
            let radius = distance.value() as u32;
            let met = self.meet(&[query], radius).pop().flatten();
            let rest = self.rows.len() - if met.is_some() { self.blocks.items } else { 0 };
            let looked_up = met.as_ref().map_or(0, Vec::len) * (each + SORTED);
            spend(budget, (looked_up + rest as usize * each) as u64)?;
            let mut found = self.near_rows(query, met, 0, radius, except);
            found.truncate(top);
            return Ok(found);
        }
        spend(budget, self.rows.len() as u64 * each as u64)?;
        let is_in = |id| !self.rows.is_removed(id) && !except.contains(id);
        let mut best = Best { top, found: Vec::new(), is_in: &is_in };
        if top > 0 {
            self.collect_nearest(query, &mut best);
        }
        Ok(neighbours(best.found))
    }

    /// All items from an id on that are within a radius of each of some queries, the nearest first.
    fn rows_within(&self, queries: &[&[u64]], from: u32, radius: u32, except: &Removed) -> Vec<Vec<Neighbour>> {
        // Rows behind those that are indexed are compared one by one anyway.
        let is_indexed = from < self.blocks.items;
        let met = if is_indexed { self.meet(queries, radius) } else { vec![None; queries.len()] };
        let answers = queries.iter().zip(met);
        answers.map(|(query, met)| self.near_rows(query, met, from, radius, except)).collect()
    }

    /// Every row from an id on within the radius of a query, of those that it met, or of all.
    fn near_rows(
        &self,
        query: &[u64],
        met: Option<Vec<u32>>,
        from: u32,
        radius: u32,
        except: &Removed,
    ) -> Vec<Neighbour> {
        let (words, mut found) = (self.rows.words(), Vec::new());
        if let Some(ids) = &met {
            select_within(query, words, ids, radius, &mut found);
        }
        let first = if met.is_some() { self.blocks.items } else { from.min(self.rows.len()) };
        scan(query, &words[first as usize * query.len()..], first, radius, &mut found);
        found.retain(|&(_, id)| id >= from && !self.rows.is_removed(id) && !except.contains(id));
        found.sort_unstable();
        // What is near in several blocks was met in each.
        found.dedup();
        neighbours(found)
    }

    /// What a query within a radius costs, about.
    fn lookup_cost(&self, radius: u32) -> f64 {
        let HammingSpec { bits, seed, .. } = self.spec;
        let [indexed, others] = [self.blocks.items, self.rows.len() - self.blocks.items].map(f64::from);
        let scan = cut::scan_cost(bits, indexed);
        let steps = match radius <= self.spec.radius && !self.blocks.cuts.is_empty() {
            true => self.blocks.search(bits, seed).steps[radius as usize].cost,
            false => scan,
        };
        steps.min(scan) + cut::scan_cost(bits, others)
    }

    /// The ids of everything indexed that might be within the radius of each query; `None` where a scan is better.
    fn meet(&self, queries: &[&[u64]], radius: u32) -> Vec<Option<Vec<u32>>> {
        let HammingSpec { bits, seed, .. } = self.spec;
        let items = f64::from(self.blocks.items);
        // Without blocks, or beyond their reach, there is nothing to be looked up.
        if radius > self.spec.radius || self.blocks.cuts.is_empty() {
            return vec![None; queries.len()];
        }
        let search = self.blocks.search(bits, seed);
        let steps = &search.steps[..=radius as usize];
        if steps[radius as usize].cost > cut::scan_cost(bits, items) {
            return vec![None; queries.len()];
        }
        let most = cut::most_candidates(bits, items);
        let keys: Vec<Vec<u32>> = queries.iter().map(|query| search.keys(query)).collect();
        let mut met = vec![Some(Vec::new()); queries.len()];
        let (mut lookups, mut scratch) = (Vec::new(), Scratch::default());
        let mut take = |lookups: &mut Vec<Lookup>, met: &mut [Option<Vec<u32>>]| {
            search.take(lookups, &self.blocks, most, &mut scratch);
            let mut start = 0;
            for (lookup, &end) in lookups.iter().zip(&scratch.ends) {
                let ids = &scratch.ids[start..end];
                met[lookup.query] = met[lookup.query].take().filter(|met| met.len() + ids.len() <= most);
                met[lookup.query].iter_mut().for_each(|met| met.extend_from_slice(ids));
                start = end;
            }
            lookups.clear();
        };
        // Block by block, so that a block's table stays near while all queries look into it.
        for block in 0..search.num_blocks() {
            for (query, keys) in keys.iter().enumerate() {
                if met[query].is_none() {
                    continue;
                }
                let steps = steps.iter().filter(|step| step.block == block);
                lookups.extend(steps.map(|&step| Lookup { step, key: keys[block], query }));
                if lookups.len() >= LOOKUPS_TOGETHER {
                    take(&mut lookups, &mut met);
                }
            }
        }
        take(&mut lookups, &mut met);
        met
    }

    fn collect_nearest(&self, query: &[u64], best: &mut Best<'_>) {
        let HammingSpec { bits, seed, .. } = self.spec;
        let items = f64::from(self.blocks.items);
        let (scan_cost, most) = (cut::scan_cost(bits, items), cut::most_candidates(bits, items));
        self.scan_nearest(query, self.blocks.items..self.rows.len(), best);
        let search = self.blocks.search(bits, seed);
        let (keys, mut scratch, mut done) = (search.keys(query), Scratch::default(), 0);
        for steps in search.shells() {
            if steps[steps.len() - 1].cost > scan_cost {
                break;
            }
            let lookup = |&step: &Step| Lookup { step, key: keys[step.block], query: 0 };
            search.take(&steps.iter().map(lookup).collect::<Vec<_>>(), &self.blocks, most, &mut scratch);
            if scratch.ids.len() > most {
                break;
            }
            done += steps.len();
            let radius = best.radius();
            best.take(|found| select_within(query, self.rows.words(), &scratch.ids, radius, found));
            // So many steps have met everything within one less.
            if (best.radius() as usize) < done {
                return;
            }
        }
        self.scan_nearest(query, 0..self.blocks.items, best);
    }

    /// Compares all rows of a range, some at a time: the more of them are known, the fewer are near enough.
    fn scan_nearest(&self, query: &[u64], rows: Range<u32>, best: &mut Best<'_>) {
        const STRIDE: usize = 4096;
        let words = query.len();
        for first in rows.clone().step_by(STRIDE) {
            let end = rows.end.min(first.saturating_add(STRIDE as u32));
            let rows = &self.rows.words()[first as usize * words..end as usize * words];
            let radius = best.radius();
            best.take(|found| scan(query, rows, first, radius, found));
        }
    }
}

/// Appends the distance and number of every row within the radius; rows are numbered from `first`.
fn scan(query: &[u64], rows: &[u64], first: u32, radius: u32, found: &mut Vec<(u32, u32)>) {
    let mut numbers = Vec::new();
    scan_within(query, rows, radius, &mut numbers);
    found.extend(numbers.into_iter().map(|number| {
        let distance = hamming(query, &rows[number * query.len()..][..query.len()]);
        (distance, first + number as u32)
    }));
}

/// The nearest so far, as distances and ids.
struct Best<'r> {
    top: usize,
    found: Vec<(u32, u32)>,
    /// Whether a row counts.
    is_in: &'r dyn Fn(u32) -> bool,
}

impl Best<'_> {
    /// Adds what `collect` appends, and keeps what is among the nearest.
    fn take(&mut self, collect: impl FnOnce(&mut Vec<(u32, u32)>)) {
        let before = self.found.len();
        collect(&mut self.found);
        if self.found.len() > before {
            self.found.retain(|&(_, id)| (self.is_in)(id));
            self.found.sort_unstable();
            self.found.dedup();
            self.found.truncate(self.top);
        }
    }

    /// What lies farther is none of the nearest.
    fn radius(&self) -> u32 {
        if self.found.len() < self.top { u32::MAX } else { self.found[self.top - 1].0 }
    }
}

fn neighbours(found: Vec<(u32, u32)>) -> Vec<Neighbour> {
    let neighbour = |(distance, id)| Neighbour { id, distance: Distance::from_count(distance) };
    found.into_iter().map(neighbour).collect()
}
