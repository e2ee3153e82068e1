//! Buckets beside an item's own, likeliest first: query-directed multi-probe (Lv, Josephson, Wang, Charikar & Li 2007).
//!
//! Claim: sets of steps come by non-decreasing score, the sum of their steps' squared distances to the bucket's border,
//! with none visited twice and none left out before the last that is visited. The smaller the score, the likelier the
//! bucket holds a near item.
//! Invariant: the order depends only on an item's rows and offsets, so it is the same on every CPU.
//! Reference: "Multi-Probe LSH: efficient indexing for high-dimensional similarity search", VLDB 2007, sections 4.4 and
//! 4.5.
//!
//! Steps are sorted by score, and a set is a bit mask over them. Starting from `{0}`, every set but the first has one
//! parent: it arose by *shifting* the last step to the next one, or by *adding* the next one. Neither makes a score
//! smaller, so a heap yields them in order.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{Hashed, Key, Layout, key_of_rows, projection::band_rows};
use crate::{Seed, hash::Rng, item::Distance};

/// The maximum number of buckets per table that can be tried, including the item's own: a set of steps is a mask of 64
/// bits.
pub(crate) const MOST_PROBES: u32 = 64;

/// A move of one function's value to a neighbouring one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// The function within the band.
    pub(super) row: usize,
    /// How far its value moves.
    pub(super) by: i64,
    /// The square of the item's distance from the border that is crossed.
    pub(super) score: f64,
}

/// A set of steps in the queue, which returns the least score first.
#[derive(PartialEq)]
struct Set {
    score: f64,
    steps: u64,
}

impl Eq for Set {}

impl Ord for Set {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(other.steps.cmp(&self.steps))
    }
}

impl PartialOrd for Set {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The sets of steps, in order.
pub(super) struct Sets {
    steps: Vec<Step>,
    queue: BinaryHeap<Set>,
}

impl Sets {
    /// Prepares at most `count` sets: a set holding a step is preceded by every better step alone, so no more steps
    /// than that can matter.
    pub(super) fn new(mut steps: Vec<Step>, count: u32) -> Self {
        steps.sort_unstable_by(|a, b| a.score.total_cmp(&b.score).then(a.row.cmp(&b.row)).then(a.by.cmp(&b.by)));
        steps.truncate(count.min(MOST_PROBES) as usize);
        let first = steps.first().map(|step| Set { score: step.score, steps: 1 });
        Self { steps, queue: first.into_iter().collect() }
    }

    /// Returns the positions of a set's steps.
    fn places(mut set: u64) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let place = (set != 0).then(|| set.trailing_zeros() as usize)?;
            set &= set - 1;
            Some(place)
        })
    }

    /// Returns the steps of a set.
    pub(super) fn steps(&self, set: u64) -> impl Iterator<Item = &Step> {
        Self::places(set).map(|place| &self.steps[place])
    }

    fn push(&mut self, steps: u64) {
        let score = self.steps(steps).map(|step| step.score).sum();
        self.queue.push(Set { score, steps });
    }

    /// Returns whether no function is moved two ways at once.
    fn is_possible(&self, set: u64) -> bool {
        // Sets are small: two or three steps.
        self.steps(set).enumerate().all(|(i, step)| self.steps(set).take(i).all(|before| before.row != step.row))
    }

    /// Returns the next set and its score.
    pub(super) fn next(&mut self) -> Option<(f64, u64)> {
        loop {
            let Set { score, steps } = self.queue.pop()?;
            let last = 63 - steps.leading_zeros();
            if (last as usize) + 1 < self.steps.len() {
                let next = 1 << (last + 1);
                self.push(steps & !(1 << last) | next);
                self.push(steps | next);
            }
            if self.is_possible(steps) {
                return Some((score, steps));
            }
        }
    }
}

/// Visits the keys of up to `count` buckets beside the item's own in one band, in order. `steps` gives the moves of one
/// function in whose bucket the item has this offset.
pub(super) fn visit(
    hashed: &Hashed,
    layout: Layout,
    band: usize,
    count: u32,
    moves: impl Fn(i64, f64) -> [Option<(i64, f64)>; 2],
    visit: &mut dyn FnMut(Key),
) {
    let rows = band_rows(hashed, layout, band);
    let offsets = &hashed.offsets[band * rows.len()..][..rows.len()];
    let steps = rows.iter().zip(offsets).enumerate().flat_map(|(row, (&value, &offset))| {
        let both = moves(value, f64::from(offset)).into_iter().flatten();
        both.map(move |(by, score)| Step { row, by, score })
    });
    let mut sets = Sets::new(steps.collect(), count);
    let mut moved = rows.to_vec();
    for _ in 0..count {
        let Some((_, set)) = sets.next() else { return };
        moved.copy_from_slice(rows);
        sets.steps(set).for_each(|step| moved[step.row] = moved[step.row].wrapping_add(step.by));
        visit(key_of_rows(moved.iter().map(|&value| value as u64)));
    }
}

/// How the values of one function on two items near each other differ, as defined by a family.
pub(super) struct Differences<'f> {
    /// Draws where in its bucket an item lies.
    pub(super) offset: &'f dyn Fn(&mut Rng) -> f64,
    /// Returns the steps from there, each with its score.
    pub(super) moves: &'f dyn Fn(f64) -> [Option<(i64, f64)>; 2],
    /// Returns the probability that the value for an item at a distance is moved by this much.
    pub(super) moved: &'f dyn Fn(f64, i64, Distance) -> f64,
}

/// The number of draws of a band over which its probabilities are averaged. Given the offsets they are exact, so few
/// draws are enough: the standard error is about 2 % of what probing adds.
const DRAWS: u32 = 500;

/// The maximum number of functions drawn in all: bands of more than 256 rows are averaged over fewer draws, since a
/// file may state any number of rows.
const MOST_DRAWN: u32 = 256 * DRAWS;

/// Returns, for each distance, the probabilities that an item there lies in the first bucket, in one of the first two,
/// and so on. The first, `own`, is known exactly.
pub(super) fn probabilities(
    own: impl Fn(Distance) -> f64,
    differences: &Differences<'_>,
    distances: &[Distance],
    rows: u32,
    probes: u32,
) -> Vec<Vec<f64>> {
    let probes = probes.clamp(1, MOST_PROBES);
    let mut all: Vec<Vec<f64>> = distances.iter().map(|&distance| vec![own(distance); probes as usize]).collect();
    if probes == 1 {
        return all;
    }
    let mut beside = vec![vec![0.0; probes as usize]; distances.len()];
    let mut rng = Rng::new(Seed::new(0).derive("multi-probe", u64::from(rows)));
    let draws = DRAWS.min(MOST_DRAWN / rows.max(1)).max(1);
    for _ in 0..draws {
        let offsets: Vec<f64> = (0..rows).map(|_| (differences.offset)(&mut rng)).collect();
        let steps = offsets.iter().enumerate().flat_map(|(row, &offset)| {
            let both = (differences.moves)(offset).into_iter().flatten();
            both.map(move |(by, score)| Step { row, by, score })
        });
        let mut sets = Sets::new(steps.collect(), probes - 1);
        let visited: Vec<u64> = (1..probes).map_while(|_| sets.next().map(|(_, set)| set)).collect();
        for (&distance, beside) in distances.iter().zip(&mut beside) {
            let still = |offset: f64| (differences.moved)(offset, 0, distance).max(f64::MIN_POSITIVE);
            let none: f64 = offsets.iter().map(|&offset| still(offset)).product();
            let ratio = |step: &Step| {
                let offset = offsets[step.row];
                (differences.moved)(offset, step.by, distance) / still(offset)
            };
            let ratios: Vec<f64> = sets.steps.iter().map(ratio).collect();
            for (&set, sum) in visited.iter().zip(&mut beside[1..]) {
                *sum += none * Sets::places(set).map(|place| ratios[place]).product::<f64>();
            }
        }
    }
    for (all, beside) in all.iter_mut().zip(beside) {
        let mut sum = 0.0;
        for (chance, beside) in all.iter_mut().zip(beside) {
            sum += beside / f64::from(draws);
            *chance = (*chance + sum).min(1.0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(scores: &[f64], ways: usize) -> Vec<Step> {
        let step = |(i, &score): (usize, &f64)| Step { row: i / ways, by: [-1, 1][i % ways], score };
        scores.iter().enumerate().map(step).collect()
    }

    /// Returns the score of every possible set, by brute force.
    fn all_scores(steps: &[Step]) -> Vec<f64> {
        let sets = Sets { steps: steps.to_vec(), queue: BinaryHeap::new() };
        let possible = (1..1u64 << steps.len()).filter(|&set| sets.is_possible(set));
        let mut scores: Vec<f64> = possible.map(|set| sets.steps(set).map(|step| step.score).sum()).collect();
        scores.sort_unstable_by(f64::total_cmp);
        scores
    }

    proptest! {
        #[test]
        fn sets_come_in_order_and_none_is_left_out(
            scores in prop::collection::vec(0.0..1.0f64, 2..10),
            ways in 1usize..=2,
            count in 1u32..=64,
        ) {
            let steps = steps(&scores, ways);
            let mut sets = Sets::new(steps.clone(), count);
            let found: Vec<(f64, u64)> = (0..count).map_while(|_| sets.next()).collect();
            prop_assert!(found.is_sorted_by(|a, b| a.0 <= b.0));
            let mut distinct: Vec<u64> = found.iter().map(|found| found.1).collect();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), found.len());
            let expected = all_scores(&steps);
            prop_assert_eq!(found.len(), expected.len().min(count as usize));
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found.0 - expected).abs() < 1e-12);
            }
        }
    }
}
