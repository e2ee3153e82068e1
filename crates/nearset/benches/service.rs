//! The upper bound for the server's module: the library alone, one thread, on the items that `bench/service.py` sends.
//!
//! `cargo bench -p nearset --bench service -- DESCRIPTION ITEMS BATCH ROUNDS KEYS` makes the filter that a server
//! described (`NEAR.SPEC`), inserts the first half of the items and then queries all of them: in batches, one by one,
//! and by their keys. It prints a line for each: its name, the least CPU seconds of all rounds, the number of items,
//! and how many were new or near. ITEMS holds each item as its length in 4 bytes, little-endian, and its bytes; KEYS is
//! written, with 8 bytes per band of every item.

use std::{fs, hint::black_box};

use nearset::{
    BitString, Bits, Check, Filter, FilterSpec, Item, Metric,
    family::{Hashed, Key},
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [description, items, batch, rounds, keys] = &arguments[..] else {
        eprintln!("skipped: bench/service.py runs this one, with a filter and items");
        return;
    };
    let (batch, rounds): (usize, usize) = (batch.parse().expect("a number"), rounds.parse().expect("a number"));
    let description = fs::read(description).expect("the description can be read");
    let bytes = fs::read(items).expect("the items can be read");
    let make = || {
        Filter::new(&FilterSpec::decode(&description, Check::Everything).expect("a description from the server"))
            .expect("room for it")
    };
    let empty = make();
    let items = cut(&bytes);
    let hashes: Vec<BitString> = match empty.spec().metric() {
        Some(Metric::Hamming { .. }) => items.iter().map(|bytes| BitString::from_bytes(bytes)).collect(),
        _ => Vec::new(),
    };
    // Texts are checked where a server must check them, while they are read.
    let items: Vec<Item<'_>> = match empty.spec().metric() {
        Some(Metric::Hamming { bits }) => hashes.iter().map(|hash| Item::Bits(first(hash, bits))).collect(),
        Some(Metric::Jaccard { .. }) => {
            items.iter().map(|bytes| Item::Text(std::str::from_utf8(bytes).expect("texts are UTF-8"))).collect()
        }
        other => panic!("items of {other:?} are not measured"),
    };
    let half = &items[..items.len() / 2];

    let mut filter = make();
    let mut best = f64::MAX;
    let mut new = 0;
    for _ in 0..rounds {
        filter = make();
        let clock = cpu_seconds();
        new = half.chunks(batch).map(|part| count(&filter.insert_all(part.iter().copied()).expect("room"))).sum();
        best = best.min(cpu_seconds() - clock);
    }
    println!("insert_all\t{best}\t{}\t{new}", half.len());

    least("contains_all", items.len(), rounds, || {
        items.chunks(batch).map(|part| count(&filter.contains_all(part.iter().copied()).expect("items"))).sum()
    });
    let mut room = Hashed::default();
    least("contains_near", items.len(), rounds, || {
        items.iter().filter(|item| filter.contains_near(**item, &mut room).expect("an item")).count()
    });

    let Some(hasher) = filter.hasher() else { return };
    let mut all: Vec<Option<Key>> = Vec::new();
    for item in &items {
        hasher.hash(*item, &mut room).expect("an item");
        all.extend_from_slice(&room.keys);
    }
    let bands = all.len() / items.len();
    let wire: Vec<u8> = all.iter().flat_map(|key| key.map_or(0, |key| key.get()).to_le_bytes()).collect();
    fs::write(keys, wire).expect("the keys can be written");
    least("contains_keys", items.len(), rounds, || {
        all.chunks(batch * bands)
            .map(|part| filter.contains_keys(part).expect("whole items").iter().filter(|found| found.near).count())
            .sum()
    });
}

/// Prints the least time that the work takes, and its result.
fn least(name: &str, items: usize, rounds: usize, mut work: impl FnMut() -> usize) {
    let mut best = (f64::MAX, 0);
    for _ in 0..rounds {
        let clock = cpu_seconds();
        let found = black_box(work());
        best = (best.0.min(cpu_seconds() - clock), found);
    }
    println!("{name}\t{}\t{items}\t{}", best.0, best.1);
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|&&answer| answer).count()
}

fn first(hash: &BitString, bits: u32) -> Bits<'_> {
    Bits::new(hash.bits().words(), bits as usize).expect("as many bytes as the filter's bits")
}

fn cut(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut items = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (item, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        items.push(item);
        bytes = rest;
    }
    items
}

/// Returns the time that this thread had a core, so that other processes do not count. The kernel updates it when a
/// thread yields its core, or milliseconds later.
fn cpu_seconds() -> f64 {
    std::thread::yield_now();
    let line = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports a thread's CPU time");
    line.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}
