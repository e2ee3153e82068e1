//! Signatures of sets and weighted sets: the time that `n` elements take at `k` slots, beside the definitions, which
//! take `n * k` steps, and the floor, which is a copy of the elements.
//!
//! `cargo bench --bench sketch`

use divan::{Bencher, black_box};
use nearset::{
    Item, Layout, LshFamily, Seed,
    family::{ConsistentMinHash, Hashed, MinHash, PermutationMinHash, WeightedMinHash},
    hash::Rng,
};

const SIZES: [usize; 7] = [1, 10, 50, 100, 300, 1000, 5000];

fn main() {
    divan::main();
}

fn set(size: usize) -> Vec<u64> {
    let mut rng = Rng::new(Seed::new(size as u64));
    (0..size).map(|_| rng.next_u64()).collect()
}

fn hash(bencher: Bencher, family: &dyn LshFamily, layout: Layout, size: usize) {
    let functions = family.draw(Seed::new(42), layout).expect("the layout has functions");
    let (set, mut hashed) = (set(size), Hashed::new());
    bencher.bench_local(|| functions.hash(black_box(Item::Set(&set)), &mut hashed));
}

/// Includes the keys of bands of 4 rows.
#[divan::bench(args = SIZES, consts = [128, 256, 640, 1024])]
fn fast_sketch<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash(bencher, &MinHash::default(), Layout::new(4, SLOTS / 4), size);
}

#[divan::bench(args = [1, 10, 50, 300, 1000], consts = [128, 256, 640, 1024])]
fn permutations<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash(bencher, &PermutationMinHash::default(), Layout::new(4, SLOTS / 4), size);
}

fn hash_weighted(bencher: Bencher, family: &dyn LshFamily, layout: Layout, size: usize) {
    let functions = family.draw(Seed::new(42), layout).expect("the layout has functions");
    let mut rng = Rng::new(Seed::new(size as u64));
    let mut set: Vec<(u64, f64)> = (0..size).map(|_| (rng.next_u64(), 4.0 * rng.unit_positive())).collect();
    set.sort_unstable_by_key(|&(element, _)| element);
    let mut hashed = Hashed::new();
    bencher.bench_local(|| functions.hash(black_box(Item::Weighted(&set)), &mut hashed));
}

#[divan::bench(args = SIZES, consts = [128, 256, 640, 1024])]
fn weighted_darts<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash_weighted(bencher, &WeightedMinHash::default(), Layout::new(4, SLOTS / 4), size);
}

#[divan::bench(args = [1, 10, 50, 300], consts = [128, 256], sample_count = 20)]
fn weighted_consistent_sampling<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash_weighted(bencher, &ConsistentMinHash::default(), Layout::new(4, SLOTS / 4), size);
}

#[divan::bench(args = SIZES)]
fn copying_the_set(bencher: Bencher, size: usize) {
    let (from, mut to) = (set(size), set(size));
    bencher.bench_local(|| black_box(&mut to).copy_from_slice(black_box(&from)));
}
