//! Signatures of sets and weighted sets: the time that `n` elements take at `k` slots, beside the definitions, which
//! take `n * k` steps, and the floor, which is a copy of the elements.
//!
//! `cargo bench --bench sketch`

use divan::{Bencher, black_box};
use nearset::{
    Family, Item, Layout, Rng, Seed,
    family::{Hashed, MinHash, WeightedMinHash},
    spec::Hasher,
};

const SIZES: [usize; 7] = [1, 10, 50, 100, 300, 1000, 5000];

fn main() {
    divan::main();
}

fn set(size: usize) -> Vec<u64> {
    let mut rng = Rng::new(Seed::new(size as u64));
    (0..size).map(|_| rng.next_u64()).collect()
}

fn hash(bencher: Bencher, family: impl Into<Family>, layout: Layout, size: usize) {
    let functions = Hasher::new(family, layout, Seed::new(42)).expect("the layout has functions");
    let (set, mut hashed) = (set(size), Hashed::default());
    bencher.bench_local(|| functions.hash(black_box(Item::Set(&set)), &mut hashed));
}

/// Includes the keys of bands of 4 rows.
#[divan::bench(args = SIZES, consts = [128, 256, 640, 1024])]
fn fast_sketch<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash(bencher, MinHash::default(), Layout::new(4, SLOTS / 4), size);
}

/// The definition: in each slot, the least of a function of its own over all elements.
#[divan::bench(args = [1, 10, 50, 300, 1000], consts = [128, 256, 640, 1024])]
fn permutations<const SLOTS: usize>(bencher: Bencher, size: usize) {
    let mut rng = Rng::new(Seed::new(42));
    let functions: Vec<(u64, u64)> = (0..SLOTS).map(|_| (rng.next_u64() | 1, rng.next_u64())).collect();
    let (set, mut slots) = (set(size), vec![0; SLOTS]);
    bencher.bench_local(|| {
        slots.fill(u64::MAX);
        for &element in black_box(&set) {
            for (slot, &(factor, summand)) in slots.iter_mut().zip(&functions) {
                let value = element.wrapping_mul(factor).wrapping_add(summand);
                *slot = (*slot).min(value ^ (value >> 32));
            }
        }
        black_box(&slots);
    });
}

fn hash_weighted(bencher: Bencher, family: impl Into<Family>, layout: Layout, size: usize) {
    let functions = Hasher::new(family, layout, Seed::new(42)).expect("the layout has functions");
    let mut rng = Rng::new(Seed::new(size as u64));
    let mut set: Vec<(u64, f64)> = (0..size).map(|_| (rng.next_u64(), 4.0 * (1.0 - rng.unit()))).collect();
    set.sort_unstable_by_key(|&(element, _)| element);
    let mut hashed = Hashed::default();
    bencher.bench_local(|| functions.hash(black_box(Item::Weighted(&set)), &mut hashed));
}

#[divan::bench(args = SIZES, consts = [128, 256, 640, 1024])]
fn weighted_darts<const SLOTS: u32>(bencher: Bencher, size: usize) {
    hash_weighted(bencher, WeightedMinHash::default(), Layout::new(4, SLOTS / 4), size);
}

#[divan::bench(args = SIZES)]
fn copying_the_set(bencher: Bencher, size: usize) {
    let (from, mut to) = (set(size), set(size));
    bencher.bench_local(|| black_box(&mut to).copy_from_slice(black_box(&from)));
}
