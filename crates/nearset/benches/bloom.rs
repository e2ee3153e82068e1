//! `BloomFilter` beside other crates' filters: the same pre-hashed keys, 10 bits per key, in one run.
//!
//! `cargo bench -p nearset --bench bloom [keys ...]` prints nanoseconds per operation, the best of several rounds in
//! which the filters take turns, and the measured false-positive rate. The last lines compare with the faster peer.

use std::{hint::black_box, time::Instant};

use nearset::{BloomFilter, Seed};

const BITS_PER_KEY: u64 = 10;

/// The number of keys handled between two readings of the clock: their hashes, made outside the timing, stay in the
/// second-level cache.
const CHUNK: u64 = 8_192;

/// The operations of each filter; `insert` and the queries return how many answers were true.
trait Contender {
    fn name(&self) -> &'static str;
    fn empty(&mut self, keys: u64);
    fn insert(&mut self, hashes: &[u64]) -> usize;
    fn contains(&self, hashes: &[u64]) -> usize;
}

struct Batch(BloomFilter<'static>);
struct SplitBlock(sbbf_rs_safe::Filter);
struct Fastbloom(fastbloom::BloomFilter);

fn bloom(keys: u64) -> BloomFilter<'static> {
    // The rate that takes about 10 bits per key.
    BloomFilter::new(keys, 0.0113, Seed::new(42)).expect("the benchmark's sizes are valid")
}

fn count(answers: impl IntoIterator<Item = bool>) -> usize {
    answers.into_iter().filter(|&answer| answer).count()
}

impl Contender for Batch {
    fn name(&self) -> &'static str {
        "nearset, batches"
    }
    fn empty(&mut self, keys: u64) {
        self.0 = bloom(keys);
    }
    fn insert(&mut self, hashes: &[u64]) -> usize {
        count(self.0.insert_all(hashes))
    }
    fn contains(&self, hashes: &[u64]) -> usize {
        count(self.0.contains_all(hashes))
    }
}

impl Contender for SplitBlock {
    fn name(&self) -> &'static str {
        "sbbf-rs-safe"
    }
    fn empty(&mut self, keys: u64) {
        self.0 = sbbf_rs_safe::Filter::new(BITS_PER_KEY as usize, keys as usize);
    }
    fn insert(&mut self, hashes: &[u64]) -> usize {
        count(hashes.iter().map(|&hash| !self.0.insert_hash(hash)))
    }
    fn contains(&self, hashes: &[u64]) -> usize {
        count(hashes.iter().map(|&hash| self.0.contains_hash(hash)))
    }
}

fn fastbloom(keys: u64) -> fastbloom::BloomFilter {
    fastbloom::BloomFilter::with_num_bits((keys * BITS_PER_KEY) as usize).seed(&42).expected_items(keys as usize)
}

impl Contender for Fastbloom {
    fn name(&self) -> &'static str {
        "fastbloom"
    }
    fn empty(&mut self, keys: u64) {
        self.0 = fastbloom(keys);
    }
    fn insert(&mut self, hashes: &[u64]) -> usize {
        count(hashes.iter().map(|&hash| !self.0.insert_hash(hash)))
    }
    fn contains(&self, hashes: &[u64]) -> usize {
        count(hashes.iter().map(|&hash| self.0.contains_hash(hash)))
    }
}

/// Spreads numbers over all 64 bits: the last steps of MurmurHash3.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the nanoseconds per key that `work` takes over the keys numbered `first..first + keys`, and the sum of its
/// answers. The time is the median over chunks, so that chunks during which another process had the core do not count.
fn time(first: u64, keys: u64, mut work: impl FnMut(&[u64]) -> usize) -> (f64, usize) {
    let (mut times, mut sum) = (Vec::new(), 0);
    let mut hashes = Vec::with_capacity(CHUNK as usize);
    for start in (first..first + keys).step_by(CHUNK as usize) {
        hashes.clear();
        hashes.extend((start..(start + CHUNK).min(first + keys)).map(mix));
        let clock = Instant::now();
        sum += black_box(work(black_box(&hashes)));
        times.push(clock.elapsed().as_secs_f64() * 1e9 / hashes.len() as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    (times[times.len() / 2], sum)
}

/// The best times of a contender, in nanoseconds, and its false-positive rate.
#[derive(Clone, Copy)]
struct Row {
    insert: f64,
    hit: f64,
    miss: f64,
    false_positives: f64,
}

fn measure(keys: u64) {
    let asked = keys.min(10_000_000);
    let rounds = if keys <= 10_000_000 { 15 } else { 2 };
    let mut contenders: [Box<dyn Contender>; 3] = [
        Box::new(Batch(bloom(1))),
        Box::new(SplitBlock(sbbf_rs_safe::Filter::new(10, 1))),
        Box::new(Fastbloom(fastbloom(1))),
    ];
    let mut rows = [Row { insert: f64::MAX, hit: f64::MAX, miss: f64::MAX, false_positives: 0.0 }; 3];
    for _ in 0..rounds {
        for (contender, row) in contenders.iter_mut().zip(&mut rows) {
            contender.empty(keys);
            row.insert = row.insert.min(time(0, keys, |hashes| contender.insert(hashes)).0);
            for _ in 0..3 {
                let (hit, found) = time(0, asked, |hashes| contender.contains(hashes));
                assert_eq!(found as u64, asked, "{} lost keys", contender.name());
                let (miss, found) = time(1 << 40, asked, |hashes| contender.contains(hashes));
                (row.hit, row.miss) = (row.hit.min(hit), row.miss.min(miss));
                row.false_positives = found as f64 / asked as f64;
            }
            // Frees the memory for the next one.
            contender.empty(1);
        }
    }
    println!("\n{keys:e} keys, {BITS_PER_KEY} bits per key: ns per operation");
    println!("{:<25}{:>8}{:>8}{:>8}{:>10}", "", "insert", "hit", "miss", "fp");
    for (contender, row) in contenders.iter().zip(&rows) {
        let Row { insert, hit, miss, false_positives } = row;
        println!("{:<25}{insert:>8.1}{hit:>8.1}{miss:>8.1}{false_positives:>10.5}", contender.name());
    }
    let peers = &rows[1..];
    let fastest = |cost: fn(&Row) -> f64| peers.iter().map(cost).fold(f64::MAX, f64::min);
    for (contender, row) in contenders[..1].iter().zip(&rows) {
        println!(
            "{:<25}{:>7.2}x{:>7.2}x{:>7.2}x",
            format!("{} / peer", contender.name()),
            row.insert / fastest(|row| row.insert),
            row.hit / fastest(|row| row.hit),
            row.miss / fastest(|row| row.miss),
        );
    }
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000, 100_000_000] } else { sizes };
    sizes.into_iter().for_each(measure);
}
