//! Vectors and bit rows: each kernel with its floor beside it.
//!
//! `cargo bench -p nearset --bench vector`. Throughput counts the bytes that a kernel reads; compare within one run.

use divan::{Bencher, black_box, counter::BytesCount};
use nearset::{
    Item, Layout, LshFamily, Seed,
    family::{CrossPolytope, Hashed, Hyperplane, PStable, Stable},
    hash::Rng,
    simd::{self, dot, hadamard},
};

fn main() {
    divan::main();
}

const DIMENSIONS: [usize; 3] = [50, 384, 768];

fn random(length: usize) -> Vec<f32> {
    let mut rng = Rng::new(Seed::new(1));
    (0..length).map(|_| rng.gaussian() as f32).collect()
}

fn words(length: usize) -> Vec<u64> {
    let mut rng = Rng::new(Seed::new(2));
    (0..length).map(|_| rng.next_u64()).collect()
}

mod project_128_rows {
    use super::*;

    const ROWS: usize = 128;

    /// The floor: reading the rows once, with one addition per number.
    #[divan::bench(args = DIMENSIONS)]
    fn read(bencher: Bencher, dimension: usize) {
        let rows = words(dimension * ROWS / 2);
        bencher
            .counter(BytesCount::of_slice(&rows))
            .bench_local(|| black_box(&rows).iter().fold(0u64, |sum, &word| sum.wrapping_add(word)));
    }

    #[divan::bench(args = DIMENSIONS)]
    fn narrow(bencher: Bencher, dimension: usize) {
        let (rows, vector, mut out) = (random(dimension * ROWS), random(dimension), [0.0; ROWS]);
        bencher
            .counter(BytesCount::of_slice(&rows))
            .bench_local(|| dot::project(black_box(&rows), black_box(&vector), black_box(&mut out)));
    }

    #[divan::bench(args = DIMENSIONS)]
    fn wide(bencher: Bencher, dimension: usize) {
        let (rows, vector, mut out) = (random(dimension * ROWS), random(dimension), [0.0; ROWS]);
        bencher
            .counter(BytesCount::of_slice(&rows))
            .bench_local(|| dot::project_wide(black_box(&rows), black_box(&vector), black_box(&mut out)));
    }

    /// The obvious loop, summed in one chain.
    #[divan::bench(args = DIMENSIONS)]
    fn naive(bencher: Bencher, dimension: usize) {
        let (rows, vector) = (random(dimension * ROWS), random(dimension));
        bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
            let rows = black_box(&rows).chunks_exact(dimension);
            rows.map(|row| row.iter().zip(black_box(&vector)).map(|(a, b)| a * b).sum::<f32>()).fold(0.0, f32::max)
        });
    }
}

#[divan::bench(args = DIMENSIONS)]
fn dot_of_two(bencher: Bencher, dimension: usize) {
    let (a, b) = (random(dimension), random(dimension));
    bencher.counter(BytesCount::of_slice(&a)).bench_local(|| dot::dot(black_box(&a), black_box(&b)));
}

#[divan::bench(args = [64, 128, 512, 1024])]
fn rotate_one_round(bencher: Bencher, length: usize) {
    let (start, mut vector) = (random(length), random(length));
    let signs: Vec<u32> = words(hadamard::sign_words(length)).into_iter().map(|word| word as u32).collect();
    bencher.counter(BytesCount::of_slice(&start)).bench_local(|| {
        vector.copy_from_slice(&start);
        hadamard::rotate(black_box(&mut vector), black_box(&signs));
    });
}

fn hash_128(bencher: Bencher, family: impl LshFamily, dimension: usize) {
    let functions = family.draw(Seed::new(1), Layout::new(8, 16)).expect("the parameters are valid");
    let (vector, mut hashed) = (random(dimension), Hashed::new());
    bencher
        .counter(BytesCount::of_slice(&vector))
        .bench_local(|| functions.hash(Item::Vector(black_box(&vector)), &mut hashed));
}

mod hash_with_128_functions {
    use super::*;

    #[divan::bench(args = DIMENSIONS)]
    fn hyperplane(bencher: Bencher, dimension: usize) {
        hash_128(bencher, Hyperplane { dimension: dimension as u32 }, dimension);
    }

    #[divan::bench(args = DIMENSIONS)]
    fn gaussian(bencher: Bencher, dimension: usize) {
        let family = PStable { dimension: dimension as u32, width: 1.0, stable: Stable::Gaussian };
        hash_128(bencher, family, dimension);
    }

    #[divan::bench(args = DIMENSIONS)]
    fn cross_polytope(bencher: Bencher, dimension: usize) {
        hash_128(bencher, CrossPolytope { dimension: dimension as u32 }, dimension);
    }
}

/// One query against 32 MiB of rows, beyond the caches, and 256 KiB, within them.
mod scan {
    use super::*;

    const BITS: [usize; 3] = [64, 128, 256];
    const LARGE: usize = 32 << 20;
    const SMALL: usize = 256 << 10;

    fn within<const BYTES: usize>(bencher: Bencher, bits: usize) {
        let (rows, query, mut found) = (words(BYTES / 8), words(bits / 64 + 1), Vec::new());
        let query = &query[1..];
        bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
            found.clear();
            // Far enough from half of the bits that hits are rare.
            simd::scan_within(black_box(query), black_box(&rows), bits as u32 / 8, &mut found);
            found.len()
        });
    }

    #[divan::bench(args = BITS)]
    fn large(bencher: Bencher, bits: usize) {
        within::<LARGE>(bencher, bits);
    }

    #[divan::bench(args = BITS)]
    fn small(bencher: Bencher, bits: usize) {
        within::<SMALL>(bencher, bits);
    }

    /// The floor: counting the bits of every row, and nothing else.
    #[divan::bench]
    fn popcount_large(bencher: Bencher) {
        popcount::<LARGE>(bencher);
    }

    #[divan::bench]
    fn popcount_small(bencher: Bencher) {
        popcount::<SMALL>(bencher);
    }

    fn popcount<const BYTES: usize>(bencher: Bencher) {
        let (rows, zeros) = (words(BYTES / 8), vec![0; 1024]);
        bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
            black_box(&rows).chunks_exact(1024).map(|block| u64::from(simd::hamming(block, &zeros))).sum::<u64>()
        });
    }

    /// The obvious loop, one row at a time.
    #[divan::bench(args = BITS)]
    fn naive_large(bencher: Bencher, bits: usize) {
        let (rows, query) = (words(LARGE / 8), words(bits / 64 + 1));
        let query = &query[1..];
        bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
            let rows = black_box(&rows).chunks_exact(query.len());
            rows.filter(|row| simd::hamming(query, row) <= bits as u32 / 8).count()
        });
    }
}
