//! The cost of one binomial tail to a planner: `cargo bench -p nearset-theory --bench binomial`.
//!
//! A plan may evaluate a hundred thousand tails or more in 100 ms, so one tail must cost about a microsecond, and all
//! tails of one distribution together not much more than one alone.

use divan::{Bencher, black_box};
use nearset_theory::binomial::{self, Tails};

fn main() {
    divan::main();
}

const TRIALS: [u32; 4] = [16, 128, 640, 5_000];

#[divan::bench(args = TRIALS)]
fn one_tail(trials: u32) -> f64 {
    binomial::at_least(black_box(trials), black_box(0.3), trials * 2 / 5)
}

#[divan::bench(args = TRIALS)]
fn threshold_for_one_percent(trials: u32) -> u32 {
    binomial::smallest_threshold(black_box(trials), black_box(0.3), 0.01)
}

#[divan::bench(args = TRIALS)]
fn all_tails(bencher: Bencher, trials: u32) {
    let mut tails = Tails::default();
    bencher.bench_local(|| {
        tails.refill(black_box(trials), black_box(0.3));
        tails.at_least(trials / 2)
    });
}
