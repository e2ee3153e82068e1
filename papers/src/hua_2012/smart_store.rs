//! SmartStore, as a rival (Hua, Jiang, Zhu, Feng & Tian 2009).
//!
//! Records with similar semantic vectors ([`Semantics`]) are kept together in one of `groups` storage units, and each
//! unit has an R-tree over its records' attributes (`rstar`, one page per node; records are inserted one by one, since
//! bulk loading cuts every axis at least once and makes nodes of 2^11 children). A query goes to the semantically
//! nearest units, and to at most `scope` of them: that is the system's idea, *a single or a minimal number of groups*
//! instead of all.
//!
//! Claim: what it finds is there. With `scope` equal to `groups` nothing is missed; with 1, as it is run here, a query
//! at the edge of a group misses what lies across it.
//! Grouping minimises the sum of squared semantic distances to the groups' centres, which is the system's own
//! criterion, by Lloyd's iterations on a sample. There are 30 groups, one per node of the 2012 paper's cluster.
//! Reference: "SmartStore: a new metadata organization paradigm with semantic-awareness for next-generation file
//! systems", SC 2009, sections 2 and 3.

use nearset::{Rng, Seed};
use rstar::{ParentNode, RStarInsertionStrategy, RTree, RTreeNode, RTreeParams};

use super::{
    competitor::{Answer, Competitor, PAGE},
    points::{Point, squared_distance},
    semantics::Semantics,
};
use crate::rate::in_parallel;

/// The number of groups, one per node.
pub const GROUPS: usize = 30;

/// The number of records from which centres are found.
const SAMPLE: usize = 20_000;
const ITERATIONS: usize = 12;

/// Grouped records.
pub struct SmartStore<const D: usize> {
    semantics: Semantics<D>,
    groups: Vec<Group<D>>,
    scope: usize,
}

struct Group<const D: usize> {
    centre: Vec<f64>,
    tree: RTree<Point<D>, PageOf<D>>,
}

/// Nodes as large as a page: two corners and a pointer for each child.
struct PageOf<const D: usize>;

impl<const D: usize> PageOf<D> {
    const CHILD: usize = 8 * D + 8;
}

impl<const D: usize> RTreeParams for PageOf<D> {
    const MIN_SIZE: usize = Self::MAX_SIZE / 3;
    const MAX_SIZE: usize = PAGE / Self::CHILD;
    const REINSERTION_COUNT: usize = Self::MAX_SIZE / 5;
    type DefaultInsertionStrategy = RStarInsertionStrategy;
}

impl<const D: usize> SmartStore<D> {
    /// Groups the records; a query looks into `scope` groups.
    pub fn new(stored: &[Point<D>], groups: usize, scope: usize, seed: Seed) -> Self {
        let semantics = Semantics::of(stored);
        let mut rng = Rng::new(seed);
        let sampled = rng.distinct(SAMPLE.min(stored.len()), stored.len() as u64);
        let sample: Vec<Vec<f64>> = sampled.into_iter().map(|i| semantics.vector(&stored[i as usize])).collect();
        let centres = centres(&sample, groups);
        let chunks: Vec<&[Point<D>]> = stored.chunks(1 << 14).collect();
        let assigned = in_parallel(&chunks, |chunk| -> Vec<usize> {
            chunk.iter().map(|record| nearest_first(&centres, &semantics.vector(record))[0]).collect()
        });
        let mut members: Vec<Vec<Point<D>>> = vec![Vec::new(); centres.len()];
        for (record, group) in stored.iter().zip(assigned.into_iter().flatten()) {
            members[group].push(*record);
        }
        let trees = in_parallel(&members, |members| {
            let mut tree = RTree::new_with_params();
            members.iter().for_each(|record| tree.insert(*record));
            tree
        });
        let groups = centres.into_iter().zip(trees).map(|(centre, tree)| Group { centre, tree }).collect();
        Self { semantics, groups, scope }
    }

    /// Returns the number of nodes in all trees.
    fn nodes(&self) -> usize {
        fn beneath<const D: usize>(node: &ParentNode<Point<D>>) -> usize {
            debug_assert!(node.children().len() <= PageOf::<D>::MAX_SIZE, "a node is larger than a page");
            let below = node.children().iter().map(|child| match child {
                RTreeNode::Leaf(_) => 0,
                RTreeNode::Parent(node) => beneath(node),
            });
            1 + below.sum::<usize>()
        }
        self.groups.iter().map(|group| beneath(group.tree.root())).sum()
    }
}

/// Finds the centres of groups: evenly spaced vectors at first, then Lloyd's iterations.
fn centres(vectors: &[Vec<f64>], groups: usize) -> Vec<Vec<f64>> {
    // Vectors come in random order.
    let mut centres: Vec<Vec<f64>> =
        vectors.iter().step_by((vectors.len() / groups).max(1)).take(groups).cloned().collect();
    for _ in 0..ITERATIONS {
        let mut sums = vec![(vec![0.0; centres[0].len()], 0usize); centres.len()];
        for vector in vectors {
            let (sum, count) = &mut sums[nearest_first(&centres, vector)[0]];
            sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
            *count += 1;
        }
        for (centre, (sum, count)) in centres.iter_mut().zip(sums) {
            // A group that is nearest to nothing keeps its centre.
            if count > 0 {
                *centre = sum.into_iter().map(|sum| sum / count as f64).collect();
            }
        }
    }
    centres
}

/// Returns the positions of the centres, the nearest to the vector first.
fn nearest_first<C: AsRef<[f64]>>(centres: &[C], vector: &[f64]) -> Vec<usize> {
    let distance = |centre: &C| -> f64 { centre.as_ref().iter().zip(vector).map(|(a, b)| (a - b) * (a - b)).sum() };
    let distances: Vec<f64> = centres.iter().map(distance).collect();
    let mut order: Vec<usize> = (0..centres.len()).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    order
}

impl<const D: usize> AsRef<[f64]> for Group<D> {
    fn as_ref(&self) -> &[f64] {
        &self.centre
    }
}

/// Returns whether a record beneath the node is near, visiting the nodes nearest to the query first.
fn search<const D: usize>(node: &ParentNode<Point<D>>, query: &Point<D>, most: f32, accesses: &mut u32) -> bool {
    *accesses += 1;
    let mut within = Vec::new();
    for child in node.children() {
        match child {
            RTreeNode::Leaf(record) if squared_distance(query, record) <= most => return true,
            RTreeNode::Leaf(_) => {}
            RTreeNode::Parent(node) => {
                let distance = node.envelope().distance_2(query);
                if distance <= most {
                    within.push((distance, node));
                }
            }
        }
    }
    within.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    within.into_iter().any(|(_, node)| search(node, query, most, accesses))
}

impl<const D: usize> Competitor<D> for SmartStore<D> {
    fn name(&self) -> &str {
        "SmartStore"
    }

    /// Counts records with their ids, nodes, and the semantic index, of which every node of the cluster has a copy.
    fn bytes(&self) -> u64 {
        let records: usize = self.groups.iter().map(|group| group.tree.size()).sum();
        let index = self.groups.len() * self.groups.len() * (8 * self.semantics.len() + PageOf::<D>::CHILD);
        (records * (4 * D + 4) + self.nodes() * PageOf::<D>::CHILD + index) as u64
    }

    fn ask(&self, query: &Point<D>, radius: f64) -> Answer {
        let most = (radius * radius) as f32;
        // The index over the groups is one page.
        let mut accesses = 1;
        let order = nearest_first(&self.groups, &self.semantics.vector(query));
        let near = order.into_iter().take(self.scope).any(|group| {
            let root = self.groups[group].tree.root();
            root.envelope().distance_2(query) <= most && search(root, query, most, &mut accesses)
        });
        Answer { near, accesses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hua_2012::competitor::clumps, rate::Rate};

    #[test]
    fn all_groups_together_are_exact() {
        let (stored, queries) = clumps::stored_and_queries(8_000, 400, 5);
        let store = SmartStore::new(&stored, 20, 20, Seed::new(1));
        assert_eq!(store.groups.iter().map(|group| group.tree.size()).sum::<usize>(), 8_000);
        // Between a third full and full nodes of 73.
        assert!((8_000 / 73..8_000 / 20).contains(&store.nodes()), "{} nodes", store.nodes());
        for radius in [0.0, 60.0, 300.0] {
            let answers: Vec<bool> = queries.iter().map(|query| store.is_near(query, radius)).collect();
            assert_eq!(answers, clumps::truth(&stored, &queries, radius), "at {radius}");
        }
    }

    #[test]
    fn one_group_finds_most_and_nothing_that_is_not_there() {
        let (stored, queries) = clumps::stored_and_queries(8_000, 400, 6);
        let (one, all) =
            (SmartStore::new(&stored, 20, 1, Seed::new(1)), SmartStore::new(&stored, 20, 20, Seed::new(1)));
        let truth = clumps::truth(&stored, &queries, 60.0);
        let mut found = Vec::new();
        for (query, truth) in queries.iter().zip(truth) {
            let (less, more) = (one.ask(query, 60.0), all.ask(query, 60.0));
            assert!(less.accesses <= more.accesses && (truth || !less.near));
            found.extend(truth.then_some(less.near));
        }
        let found = Rate::count(found);
        assert!(found.value() > 0.8, "{found:?}");
    }

    #[test]
    fn groups_gather_what_is_alike() {
        let vectors: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i % 4) * 10.0, f64::from(i) * 0.01]).collect();
        let mut centres: Vec<f64> = centres(&vectors, 4).into_iter().map(|centre| centre[0]).collect();
        centres.sort_by(f64::total_cmp);
        assert_eq!(centres, [0.0, 10.0, 20.0, 30.0]);
    }
}
