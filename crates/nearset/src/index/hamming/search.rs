//! Blocks looked up shell by shell, from the cheapest on.
//!
//! A *step* looks up, in one block, the keys at one distance from the query's. Each step that is done, where those of smaller
//! distance in its block were done before, adds one to `Σ(rad_i + 1)`: so after `s` steps everything within `s - 1` has been met, and one
//! list of steps serves every radius up to the planned one, and nearest neighbours too.

use std::{
    collections::TryReserveError,
    sync::{Arc, OnceLock},
};

use super::{
    cut::{self, Cut},
    rows::Rows,
    table::Table,
};
use crate::{Seed, hash::Rng, room, simd::ranked::Hit};

/// Ways to turn over bits of a key above its lowest six, by how many are turned.
pub(super) struct Turns {
    turns: Vec<u32>,
    ends: Vec<usize>,
}

impl Turns {
    fn new(address: u32, radius: u32) -> Self {
        let bits = address.saturating_sub(6);
        let (mut turns, mut ends) = (vec![0], vec![1]);
        for turned in 1..=radius.min(bits) {
            // The next number with as many set bits (Gosper's hack), while it fits.
            let mut turn = (1u32 << turned) - 1;
            while turn >> bits == 0 {
                turns.push(turn);
                let lowest = turn & turn.wrapping_neg();
                let carried = turn + lowest;
                turn = (((turn ^ carried) >> 2) / lowest) | carried;
            }
            ends.push(turns.len());
        }
        Self { turns, ends }
    }

    /// Those that turn over so many bits.
    pub(super) fn of(&self, turned: u32) -> &[u32] {
        let turned = turned as usize;
        let start = if turned == 0 { 0 } else { self.ends.get(turned - 1).copied().unwrap_or(usize::MAX) };
        self.ends.get(turned).map_or(&[], |&end| &self.turns[start..end])
    }
}

/// Where a block's bits stand in the string.
struct Block {
    positions: Vec<u32>,
    address: usize,
    turns: Arc<Turns>,
}

impl Block {
    fn key(&self, row: &[u64]) -> u32 {
        let bit = |&position: &u32| (row[position as usize / 64] >> (position % 64) & 1) as u32;
        let parts = self.positions.chunks(self.address);
        parts.fold(0, |key, part| key ^ part.iter().rev().fold(0, |part, position| part << 1 | bit(position)))
    }
}

/// One shell of one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) block: usize,
    shell: u32,
    /// Estimated, of this step and all before it.
    pub(super) cost: f64,
}

/// What is worked out from the cuts when first needed.
pub(super) struct Search {
    blocks: Vec<Block>,
    pub(super) steps: Vec<Step>,
}

impl Search {
    pub(super) fn new(bits: u32, seed: Seed, cuts: &[Cut], items: u32) -> Self {
        // Neighbouring bits of real hashes differ together; in a random order they fall on different blocks.
        let mut order: Vec<u32> = if cuts.is_empty() { Vec::new() } else { (0..bits).collect() };
        Rng::new(seed.derive("blocks", 0)).shuffle(&mut order);
        let mut order = order.into_iter();
        let mut turns: Vec<(Cut, Arc<Turns>)> = Vec::new();
        let mut turns_of = |cut: Cut| match turns.iter().find(|(known, _)| *known == cut) {
            Some((_, turns)) => turns.clone(),
            None => {
                turns.push((cut, Arc::new(Turns::new(cut.address, cut.radius))));
                turns[turns.len() - 1].1.clone()
            }
        };
        let blocks = cuts.iter().map(|&cut| Block {
            positions: order.by_ref().take(cut.width as usize).collect(),
            address: cut.address as usize,
            turns: turns_of(cut),
        });
        let blocks = blocks.collect();

        let shells = cuts.iter().enumerate().flat_map(|(block, cut)| {
            (0..=cut.radius).map(move |shell| Step { block, shell, cost: cut.shell_cost(shell, f64::from(items)) })
        });
        let mut steps: Vec<Step> = shells.collect();
        steps.sort_by(|a, b| a.shell.cmp(&b.shell).then(a.cost.total_cmp(&b.cost)));
        let mut sum = 0.0;
        for step in &mut steps {
            sum += step.cost;
            step.cost = sum;
        }
        Self { blocks, steps }
    }

    pub(super) fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The query's key in every block.
    pub(super) fn keys(&self, query: &[u64]) -> Vec<u32> {
        self.blocks.iter().map(|block| block.key(query)).collect()
    }

    /// Steps that are done one after the other at the same distance from the query's keys.
    pub(super) fn shells(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.chunk_by(|a, b| a.shell == b.shell)
    }

    /// Collects the ids that look-ups meet, one after the other; of each not many more than `most`.
    ///
    /// Every part waits for memory, so each is done for all look-ups before the next, with all that it needs on its way.
    pub(super) fn take(&self, lookups: &[Lookup], blocks: &Blocks<'_>, most: usize, scratch: &mut Scratch) {
        let Scratch { ids, ends, hits, hit_ends, buckets, bucket_ends } = scratch;
        let turns_of = |lookup: &Lookup| &*self.blocks[lookup.step.block].turns;
        let table_of = |lookup: &Lookup| &blocks.tables[lookup.step.block];
        ids.clear();
        hits.clear();
        buckets.clear();
        [&mut *ends, &mut *hit_ends, &mut *bucket_ends].into_iter().for_each(Vec::clear);
        for (i, lookup) in lookups.iter().enumerate() {
            if let Some(next) = lookups.get(i + 1) {
                table_of(next).prefetch(next.key, next.step.shell, turns_of(next));
            }
            table_of(lookup).hits(lookup.key, lookup.step.shell, turns_of(lookup), hits);
            hit_ends.push(hits.len());
        }
        let mut start = 0;
        for (lookup, &end) in lookups.iter().zip(&*hit_ends) {
            table_of(lookup).buckets(&hits[start..end], buckets);
            bucket_ends.push(buckets.len());
            start = end;
        }
        let mut start = 0;
        for (lookup, &end) in lookups.iter().zip(&*bucket_ends) {
            table_of(lookup).ids(&buckets[start..end], blocks.items, most, ids);
            ends.push(ids.len());
            start = end;
        }
    }
}

/// A step of one of several queries.
#[derive(Clone, Copy)]
pub(super) struct Lookup {
    pub(super) step: Step,
    /// The query's key in the step's block.
    pub(super) key: u32,
    /// Which query it is.
    pub(super) query: usize,
}

/// Room that is reused from query to query.
#[derive(Default)]
pub(super) struct Scratch {
    /// What was met.
    pub(super) ids: Vec<u32>,
    /// Where the ids of each look-up end.
    pub(super) ends: Vec<usize>,
    hits: Vec<Hit>,
    hit_ends: Vec<usize>,
    buckets: Vec<u32>,
    bucket_ends: Vec<usize>,
}

/// The items that are looked up by blocks: all that were there when it was built.
#[derive(Clone)]
pub(crate) struct Blocks<'a> {
    pub(crate) cuts: Vec<Cut>,
    pub(crate) tables: Vec<Table<'a>>,
    /// How many there were, those since removed included.
    pub(crate) items: u32,
    search: OnceLock<Arc<Search>>,
}

impl<'a> Blocks<'a> {
    /// From parts that fit together.
    pub(crate) fn new(cuts: Vec<Cut>, tables: Vec<Table<'a>>, items: u32) -> Self {
        Self { cuts, tables, items, search: OnceLock::new() }
    }

    /// Blocks of all rows but the removed.
    pub(super) fn build(
        bits: u32,
        radius: u32,
        seed: Seed,
        rows: &Rows<'_>,
    ) -> Result<Blocks<'static>, TryReserveError> {
        Self::build_as(cut::cheapest(bits, radius, rows.len()), bits, seed, rows)
    }

    pub(super) fn build_as(
        cuts: Vec<Cut>,
        bits: u32,
        seed: Seed,
        rows: &Rows<'_>,
    ) -> Result<Blocks<'static>, TryReserveError> {
        let items = rows.len();
        let search = Search::new(bits, seed, &cuts, items);
        let mut pairs = room::of(if cuts.is_empty() { 0 } else { items as usize })?;
        let tables = cuts.iter().zip(&search.blocks).map(|(&cut, block)| {
            let kept = (0..items).filter(|&id| !rows.is_removed(id));
            pairs.clear();
            pairs.extend(kept.map(|id| u64::from(block.key(rows.row(id))) << 32 | u64::from(id)));
            Table::build(cut, &mut pairs)
        });
        let tables = tables.collect::<Result<_, _>>()?;
        Ok(Blocks { cuts, tables, items, search: Arc::new(search).into() })
    }

    pub(super) fn search(&self, bits: u32, seed: Seed) -> &Search {
        self.search.get_or_init(|| Arc::new(Search::new(bits, seed, &self.cuts, self.items)))
    }

    pub(super) fn into_owned(self) -> Blocks<'static> {
        let tables = self.tables.into_iter().map(Table::into_owned).collect();
        Blocks { cuts: self.cuts, tables, items: self.items, search: self.search }
    }
}
