//! Exact near filters: queries per second, bytes per item, and how fast a scan reads.
//!
//! `cargo bench -p nearset --bench exact [items]` prints one line per construction, the best of several rounds: for
//! queries that are far from everything, which are the most expensive, and for queries at the radius.

use std::{hint::black_box, time::Instant};

use nearset::{BitString, ExactSpec, Filter, FilterSpec, Rng, Seed, spec::Construction};

const ROUNDS: usize = 5;

fn random(bits: usize, rng: &mut Rng) -> BitString {
    let bytes: Vec<u8> = (0..bits / 8).map(|_| rng.next_u64() as u8).collect();
    BitString::from_bytes(&bytes)
}

fn best_seconds(mut run: impl FnMut() -> usize) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let count = black_box(run());
        best = (best.0.min(start.elapsed().as_secs_f64()), count);
    }
    best
}

fn main() {
    let items: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let seed = Seed::new(42);
    let all = [
        ("pigeonhole, 5 blocks", ExactSpec::pigeonhole(256, 4, 5, items, 0.01, seed), 20_000),
        ("pigeonhole, 3 blocks", ExactSpec::pigeonhole(256, 4, 3, items, 0.01, seed), 5_000),
        ("pigeonhole, 9 blocks", ExactSpec::pigeonhole(256, 8, 9, items, 0.01, seed), 20_000),
        ("pigeonhole, 5 blocks", ExactSpec::pigeonhole(256, 8, 5, items, 0.01, seed), 5_000),
        ("covering", ExactSpec::covering(256, 4, items, 0.01, seed), 20_000),
        ("folded scan, 64", ExactSpec::new(256, 8, Construction::FoldedScan { width: 64 }, seed), 50),
        ("folded scan, 128", ExactSpec::new(256, 31, Construction::FoldedScan { width: 128 }, seed), 50),
        ("whole scan", ExactSpec::new(256, 31, Construction::FoldedScan { width: 256 }, seed), 50),
    ];
    println!("{items} items of 256 bits; the best of {ROUNDS} rounds");
    println!("construction           radius  bytes/item  inserts/s  far queries/s  accepted  near queries/s    GB/s");
    for (name, spec, count) in all {
        let spec = spec.expect("the benchmark's specs are valid");
        let mut rng = Rng::new(Seed::new(1));
        let stored: Vec<BitString> = (0..items).map(|_| random(256, &mut rng)).collect();
        let mut filter = Filter::new(&FilterSpec::from(spec)).expect("the benchmark's specs are valid");
        let start = Instant::now();
        filter.extend(&stored).expect("all items have 256 bits");
        let inserts = items as f64 / start.elapsed().as_secs_f64();
        let far: Vec<BitString> = (0..count).map(|_| random(256, &mut rng)).collect();
        let near: Vec<BitString> = (0..count)
            .map(|_| {
                let mut query = stored[rng.below(items) as usize].clone();
                let flips = rng.distinct(spec.radius as usize, 256);
                flips.into_iter().for_each(|at| query.flip(at as usize));
                query
            })
            .collect();
        let ask = |queries: &[BitString]| {
            best_seconds(|| {
                filter.contains_all(queries).expect("all items have 256 bits").into_iter().filter(|&near| near).count()
            })
        };
        let ((far_seconds, accepted), (near_seconds, found)) = (ask(&far), ask(&near));
        assert_eq!(found, count, "{name}: a near item was missed");
        let (queries, bytes) = (count as f64, filter.bytes() as f64);
        let scanned = if name.contains("scan") { queries * bytes / far_seconds / 1e9 } else { 0.0 };
        println!(
            "{name:<22} {:>6} {:>11.1} {inserts:>10.0} {:>14.0} {:>9.5} {:>15.0} {scanned:>7.1}",
            spec.radius,
            bytes / items as f64,
            queries / far_seconds,
            accepted as f64 / queries,
            queries / near_seconds,
        );
    }
}
