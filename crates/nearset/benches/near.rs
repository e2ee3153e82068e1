//! A filter with 16 bands, in batches, beside one look-up in a split-block Bloom filter of the same number of keys.
//!
//! `cargo bench -p nearset --bench near [items ...]` prints nanoseconds per item for inserting, hits and misses, and
//! their ratio to one look-up of `sbbf-rs-safe`: 16 bands should cost at most 16 such look-ups. There are 10 bits per
//! key and band.

use std::{hint::black_box, time::Instant};

use nearset::{
    Filter, FilterSpec, Layout, Seed, Spec, Table,
    family::{Key, MinHash},
};

const BANDS: u64 = 16;
const BITS_PER_KEY: u64 = 10;

/// The number of items handled between two readings of the clock.
const CHUNK: u64 = 1_024;

/// Spreads numbers over all 64 bits: the last steps of MurmurHash3.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn keys_of(items: std::ops::Range<u64>, keys: &mut Vec<Option<Key>>) {
    keys.clear();
    keys.extend(items.flat_map(|item| (0..BANDS).map(move |band| Key::new(mix(item * BANDS + band)))));
}

/// Returns the median over chunks of nanoseconds per item, so that chunks during which another process had the core do
/// not count.
fn time<T>(
    items: std::ops::Range<u64>,
    mut make: impl FnMut(std::ops::Range<u64>) -> T,
    mut work: impl FnMut(T),
) -> f64 {
    let mut times = Vec::new();
    for start in items.clone().step_by(CHUNK as usize) {
        let chunk = start..(start + CHUNK).min(items.end);
        let (count, made) = (chunk.end - chunk.start, make(chunk));
        let clock = Instant::now();
        work(made);
        times.push(clock.elapsed().as_secs_f64() * 1e9 / count as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(items: u64) {
    let asked = items.min(2_000_000);
    let mut peer = sbbf_rs_safe::Filter::new(BITS_PER_KEY as usize, items as usize);
    for item in 0..items {
        peer.insert_hash(mix(item));
    }
    let hashes = |items: std::ops::Range<u64>| items.map(mix).collect::<Vec<u64>>();
    let mut look_up = f64::MAX;
    for _ in 0..5 {
        let ask = |hashes: Vec<u64>| {
            black_box(hashes.iter().filter(|&&hash| peer.contains_hash(hash)).count());
        };
        look_up = look_up.min(time(0..asked, hashes, ask));
    }
    drop(peer);

    println!("\n{items:e} items, {BANDS} bands: ns per item, and in look-ups of sbbf-rs-safe at {look_up:.1} ns");
    let lines = Table::Lines { lines: (items * BITS_PER_KEY).div_ceil(512), hashes: 8 };
    near_filter("any band of Bloom tables", items, lines, 1, look_up);
    // Half full: 1 / ln 2 bits per key.
    let bits = Table::Bits((items as f64 / std::f64::consts::LN_2) as u64);
    near_filter("13 bands of one-bit tables", items, bits, 13, look_up);
}

fn near_filter(name: &str, items: u64, table: Table, threshold: u32, look_up: f64) {
    let asked = items.min(2_000_000);
    let spec = Spec::new(MinHash::default(), Layout::new(1, BANDS as u32), threshold, table, Seed::new(42));
    let mut filter = Filter::new(&FilterSpec::from(spec.expect("possible"))).expect("memory for the benchmark");
    let keys = |items: std::ops::Range<u64>| {
        let mut keys = Vec::new();
        keys_of(items, &mut keys);
        keys
    };
    let insert = time(0..items, keys, |keys| drop(black_box(filter.insert_keys(&keys))));
    let (mut hit, mut miss) = (f64::MAX, f64::MAX);
    for _ in 0..5 {
        let ask = |keys: Vec<Option<Key>>| filter.contains_keys(&keys).expect("whole items");
        hit = hit.min(time(0..asked, keys, |keys| assert!(ask(keys).iter().all(|found| found.near))));
        let away = 1 << 40..(1 << 40) + asked;
        miss = miss.min(time(away, keys, |keys| drop(black_box(ask(keys)))));
    }
    println!("{name}, {} MB", filter.bytes() / 1_000_000);
    for (name, cost) in [("insert", insert), ("hit", hit), ("miss", miss)] {
        println!("  {name:<8}{cost:>8.1}{:>8.1} look-ups", cost / look_up);
    }
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000, 100_000_000] } else { sizes };
    sizes.into_iter().for_each(measure);
}
