//! Hashing vectors by 128 functions, beside the floor of reading as many numbers once.
//!
//! `cargo bench -p nearset --bench vector`. Throughput counts the bytes of a vector; compare within one run. How fast bit strings are
//! scanned is measured by `--bench exact`.

use divan::{Bencher, black_box, counter::BytesCount};
use nearset::{
    Family, Item, Layout, Rng, Seed,
    family::{CrossPolytope, Hashed, Hyperplane, PStable, Stable},
    spec::Hasher,
};

fn main() {
    divan::main();
}

const DIMENSIONS: [usize; 3] = [50, 384, 768];

fn random(length: usize) -> Vec<f32> {
    let mut rng = Rng::new(Seed::new(1));
    (0..length).map(|_| rng.gaussian() as f32).collect()
}

fn hash_128(bencher: Bencher, family: impl Into<Family>, dimension: usize) {
    let functions = Hasher::new(family, Layout::new(8, 16), Seed::new(1)).expect("the parameters are valid");
    let (vector, mut hashed) = (random(dimension), Hashed::default());
    bencher
        .counter(BytesCount::of_slice(&vector))
        .bench_local(|| functions.hash(Item::Vector(black_box(&vector)), &mut hashed));
}

/// The floor of projections: reading the rows of 128 functions once, with one addition per number.
#[divan::bench(args = DIMENSIONS)]
fn read_128_rows(bencher: Bencher, dimension: usize) {
    let rows = random(dimension * 128);
    bencher
        .counter(BytesCount::of_slice(&rows[..dimension]))
        .bench_local(|| black_box(&rows).iter().fold(0u32, |sum, number| sum.wrapping_add(number.to_bits())));
}

#[divan::bench(args = DIMENSIONS)]
fn hyperplane(bencher: Bencher, dimension: usize) {
    hash_128(bencher, Hyperplane { dimension: dimension as u32 }, dimension);
}

#[divan::bench(args = DIMENSIONS)]
fn gaussian(bencher: Bencher, dimension: usize) {
    hash_128(bencher, PStable { dimension: dimension as u32, width: 1.0, stable: Stable::Gaussian }, dimension);
}

#[divan::bench(args = DIMENSIONS)]
fn cross_polytope(bencher: Bencher, dimension: usize) {
    hash_128(bencher, CrossPolytope { dimension: dimension as u32 }, dimension);
}
