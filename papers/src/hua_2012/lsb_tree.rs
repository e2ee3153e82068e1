//! The LSB-tree, as a rival (Tao, Yi, Sheng & Kalnis 2009).
//!
//! A record `o` is hashed by `m` projections `floor((a·o + b)/w)`, `a` Gaussian; the bits of the `m` values are
//! interleaved into a Z-order value, by which a B-tree orders the records. Two records that share a prefix of `v` bits
//! lie in one cell of side `2^(u - v/m) w` in all `m` projections, so a long common prefix makes small distances
//! likely, at every scale at once.
//!
//! Claim: the record found has a distance of at most 4 times the nearest one's with constant probability for a forest
//! of `sqrt(dn/B)` trees; a single tree is the same search without the guarantee, and is what the 2012 paper ran.
//! A query starts at its own Z-order value and takes entries on both sides, the longest common prefix first, until
//! - (E1) `4 B L / d` entries were looked at, with `B` the words of a page and `L` the number of trees, or
//! - (E2) the nearest record so far is within `2^(u - v/m + 1)`, with `v` the longest prefix that is left.
//!
//! As an answer to "is a record within `R`?" it stops at the first record that is, and not by (E2), which would end the
//! search at a record that is good enough for a nearest one and too far for `R`.
//!
//! Tuned as in its paper and its authors' program: ratio 2, `w = 4`, `m = ceil(log_{1/p2}(dn/B))` with `p2` the
//! collision probability at distance 2, `f = ceil(log2 d + log2 t)` for coordinates in `[0, t]`, `b` uniform in
//! `[0, 2^f w²)`, `u` bits for the greatest value that a projection can have; leaves hold Z-order value, id and
//! coordinates.
//! Reference: "Quality and efficiency in high dimensional nearest neighbor search", SIGMOD 2009, sections 3 to 5.

use std::collections::BinaryHeap;

use nearset::{Rng, Seed};

use super::{
    competitor::{Answer, Competitor, PAGE},
    filters,
    pages::{BTree, KEY_BITS, Key, common_prefix},
    points::{Point, bounds, squared_distance},
};
use crate::rate::in_parallel;

const WIDTH: f64 = 4.0;
/// Words of 4 bytes in a page: the paper's `B`.
const WORDS: f64 = (PAGE / 4) as f64;

/// One or more trees over the same records.
pub struct LsbTree<const D: usize> {
    name: String,
    /// Coordinates start here, since the method needs them to start at 0.
    origin: Point<D>,
    /// `u`, the bits of one projection.
    bits: u32,
    projections: Vec<Vec<Projection<D>>>,
    trees: Vec<BTree<Point<D>>>,
}

/// `a` and `b` of one hash function.
struct Projection<const D: usize> {
    direction: [f64; D],
    offset: f64,
}

/// The next entry on one side of the query in one tree. Ordered by its prefix, then by anything fixed.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    prefix: u32,
    tree: usize,
    rising: bool,
    position: usize,
}

impl<const D: usize> LsbTree<D> {
    /// Builds `trees` trees over the records; 1 is the LSB-tree, `sqrt(dn/B)` the forest with its guarantee.
    ///
    /// # Panics
    /// If a Z-order value does not fit into a key, which takes coordinates of more than a billion.
    pub fn new(stored: &[Point<D>], trees: usize, seed: Seed) -> Self {
        let (origin, high) = bounds(stored);
        let greatest = (0..D).map(|i| f64::from(high[i] - origin[i])).fold(1.0, f64::max);
        let pages = D as f64 * stored.len() as f64 / WORDS;
        let far = filters::collision(2.0, WIDTH);
        let functions = (pages.max(2.0).ln() / -far.ln()).ceil() as usize;
        let shift = 2f64.powf((D as f64).log2().ceil() + greatest.log2().ceil()) * WIDTH * WIDTH;
        let mut rng = Rng::new(seed);
        let mut draw =
            |_| Projection { direction: std::array::from_fn(|_| rng.gaussian()), offset: shift * rng.unit() };
        let projections: Vec<Vec<_>> = (0..trees).map(|_| (0..functions).map(&mut draw).collect()).collect();
        let reach = |projection: &Projection<D>| {
            2.0 * (projection.direction.iter().map(|a| a.abs()).sum::<f64>() * greatest + projection.offset) / WIDTH
        };
        let most = projections.iter().flatten().map(reach).fold(1.0, f64::max);
        let bits = most.log2().ceil() as u32;
        assert!(bits as usize * functions <= KEY_BITS, "{functions} values of {bits} bits are too long for a key");
        let mut tree = Self { name: String::new(), origin, bits, projections, trees: Vec::new() };
        tree.name = if trees == 1 { "LSB-tree".into() } else { format!("LSB-forest ({trees} trees)") };
        tree.trees = in_parallel(&tree.projections, |functions| {
            let entries = stored.iter().map(|record| (tree.z_order(functions, record), *record)).collect();
            BTree::load(entries, PAGE / tree.leaf_entry(), PAGE / tree.inner_entry())
        });
        tree
    }

    fn functions(&self) -> usize {
        self.projections[0].len()
    }

    fn z_order_bytes(&self) -> usize {
        (self.functions() * self.bits as usize).div_ceil(8)
    }

    /// Returns the size of a leaf entry: Z-order value, id, coordinates.
    fn leaf_entry(&self) -> usize {
        self.z_order_bytes() + 4 + 4 * D
    }

    /// Returns the size of an inner entry: Z-order value, child.
    fn inner_entry(&self) -> usize {
        self.z_order_bytes() + 4
    }

    /// Returns the bytes of the same trees with Z-order values and ids in their leaves, and no coordinates.
    pub fn code_bytes(&self) -> u64 {
        let bytes = |tree: &BTree<_>| (tree.len() + tree.inner_entries()) * self.inner_entry();
        self.trees.iter().map(bytes).sum::<usize>() as u64
    }

    /// Returns the distance of the nearest record that a search for the nearest one finds.
    pub fn distance_of_nearest(&self, query: &Point<D>) -> f64 {
        f64::from(self.nearest(query, None).0).sqrt()
    }

    fn z_order(&self, functions: &[Projection<D>], record: &Point<D>) -> Key {
        // Projections may be negative: half of the range is added, as in the authors' program.
        let (half, most) = (2f64.powi(self.bits as i32 - 1), 2f64.powi(self.bits as i32) - 1.0);
        let cell = |function: &Projection<D>| {
            let projected: f64 = (0..D).map(|i| function.direction[i] * f64::from(record[i] - self.origin[i])).sum();
            ((projected + function.offset) / WIDTH + half).floor().clamp(0.0, most) as u64
        };
        let mut key = Key::default();
        for (j, function) in functions.iter().enumerate() {
            let value = cell(function);
            for level in 0..self.bits {
                let at = level as usize * functions.len() + j;
                key[at / 64] |= (value >> (self.bits - 1 - level) & 1) << (63 - at % 64);
            }
        }
        key
    }

    /// Returns the squared distance of the nearest record found, and the cost. The search ends as soon as a record is
    /// within `enough`, if that is given, and otherwise at one that is good enough for a nearest one.
    fn nearest(&self, query: &Point<D>, enough: Option<f32>) -> (f32, u32) {
        let keys: Vec<Key> = self.projections.iter().map(|functions| self.z_order(functions, query)).collect();
        let (mut accesses, mut queue) = (0, BinaryHeap::new());
        let next = |tree: usize, rising: bool, position: usize| {
            let prefix = common_prefix(&self.trees[tree].entry(position).0, &keys[tree]);
            Next { prefix, tree, rising, position }
        };
        for (i, tree) in self.trees.iter().enumerate() {
            let position = tree.first_not_below(&keys[i]);
            accesses += tree.height();
            if position < tree.len() {
                queue.push(next(i, true, position));
            }
            if position > 0 {
                queue.push(next(i, false, position - 1));
                // The leaf where the descent ended holds the rising side's first entry.
                accesses += u32::from(position < tree.len() && tree.page_of(position) != tree.page_of(position - 1));
            }
        }
        let most = (4.0 * WORDS * self.trees.len() as f64 / D as f64) as usize;
        let (mut best, mut seen) = (f32::INFINITY, 0);
        while let Some(Next { prefix, tree: i, rising, position }) = queue.pop() {
            let level = self.bits as i32 - (prefix / self.functions() as u32) as i32;
            if seen >= most || best <= enough.unwrap_or(4f32.powi(level + 1)) {
                break;
            }
            let tree = &self.trees[i];
            best = best.min(squared_distance(query, &tree.entry(position).1));
            seen += 1;
            let beside =
                if rising { Some(position + 1).filter(|&at| at < tree.len()) } else { position.checked_sub(1) };
            if let Some(beside) = beside {
                accesses += u32::from(tree.page_of(beside) != tree.page_of(position));
                queue.push(next(i, rising, beside));
            }
        }
        (best, accesses)
    }
}

impl<const D: usize> Competitor<D> for LsbTree<D> {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        let bytes = |tree: &BTree<_>| tree.len() * self.leaf_entry() + tree.inner_entries() * self.inner_entry();
        self.trees.iter().map(bytes).sum::<usize>() as u64
    }

    fn ask(&self, query: &Point<D>, radius: f64) -> Answer {
        let enough = (radius * radius) as f32;
        let (nearest, accesses) = self.nearest(query, Some(enough));
        Answer { near: nearest <= enough, accesses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hua_2012::competitor::clumps, rate::Rate};

    /// Returns `L = ceil(sqrt(dn/B))`, the number of trees in a forest that keeps the method's promise.
    fn forest_size(records: usize) -> usize {
        (6.0 * records as f64 / WORDS).sqrt().ceil() as usize
    }

    #[test]
    fn what_it_finds_is_there_and_a_forest_finds_nearly_all() {
        let (stored, queries) = clumps::stored_and_queries(20_000, 400, 2);
        let truth = clumps::truth(&stored, &queries, 90.0);
        let found = |trees: usize| -> Rate {
            let forest = LsbTree::new(&stored, trees, Seed::new(5));
            let answers = queries.iter().map(|query| forest.is_near(query, 90.0));
            let pairs: Vec<(bool, bool)> = answers.zip(truth.iter().copied()).collect();
            assert!(pairs.iter().all(|&(near, truth)| truth || !near), "a record that is not there was found");
            Rate::count(pairs.into_iter().filter(|(_, truth)| *truth).map(|(near, _)| near))
        };
        let (tree, forest) = (found(1), found(forest_size(20_000)));
        assert!(tree.of > 150, "{tree:?}");
        assert!(tree.value() > 0.5 && forest.value() > 0.97, "{tree:?} and {forest:?}");
    }

    #[test]
    fn a_forest_keeps_its_ratio_of_four() {
        let (stored, queries) = clumps::stored_and_queries(20_000, 300, 3);
        let forest = LsbTree::new(&stored, forest_size(20_000), Seed::new(6));
        let good = queries.iter().map(|query| {
            let exact = stored.iter().map(|record| squared_distance(query, record)).fold(f32::INFINITY, f32::min);
            forest.nearest(query, None).0 <= 16.0 * exact.max(1.0)
        });
        // Theorem 1 of the paper promises at least 1/2 - 1/e = 13 %; in practice it is nearly always.
        assert!(Rate::count(good).value() > 0.95);
    }

    #[test]
    fn equal_records_share_a_key_and_near_ones_a_prefix() {
        let (stored, _) = clumps::stored_and_queries(2_000, 0, 4);
        let tree = LsbTree::new(&stored, 1, Seed::new(7));
        let key = |record: &Point<6>| tree.z_order(&tree.projections[0], record);
        let mut beside = stored[0];
        beside[0] += 1.0;
        assert_eq!(common_prefix(&key(&stored[0]), &key(&stored[0])), 512);
        let (near, far) =
            (common_prefix(&key(&stored[0]), &key(&beside)), common_prefix(&key(&stored[0]), &key(&[0.0; 6])));
        assert!(near > far, "{near} bits beside it, {far} in the corner");
    }
}
