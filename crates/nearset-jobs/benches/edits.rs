//! Near texts by edits, beside all pairs by the same comparison with a length filter, on one thread.
//!
//! `cargo bench -p nearset-jobs --bench edits` prints one row per corpus and limit. Of all pairs some records are compared with all others and
//! timed, and all are reckoned to take as long each; what both find near those must be the same. Corpora that are not there are left out. A folder that
//! is named behind `--` gets the different texts of each, one per line, for peers.

use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use nearset::{Item, Rng, Seed};
use nearset_records::{Arena, Batch, Fields, Format, ItemField, ReadOptions, Reader, extract, resolve};

#[allow(dead_code, unused_imports)]
#[path = "../src/join/edit/distance.rs"]
mod distance;
#[allow(dead_code, unused_imports)]
#[path = "../src/join/edit/index/mod.rs"]
mod index;
#[path = "../src/join/edit/keys.rs"]
mod keys;

use distance::Pattern;
use index::{EditIndex, Limit, Room, Texts};

/// Records that are compared with all others.
const ASKED: usize = 200;

fn main() {
    println!(
        "| records | different | characters | near | pairs | compared | seconds | all pairs | times | of different |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let records = febrl();
    for (name, column) in [("given names", 1), ("surnames", 2), ("streets", 4), ("suburbs", 6)] {
        let column = records.iter().map(|fields| fields[column].clone());
        compare(name, column, &[Limit::Edits(1), Limit::Edits(2)]);
    }
    let whole = records.iter().map(|fields| fields[1..].join(" "));
    compare(
        "whole records",
        whole,
        &[Limit::Edits(2), Limit::Edits(4), Limit::Similarity(0.9), Limit::Similarity(0.8)],
    );
    let words = std::fs::read_to_string(data().join("glove/vocab_top50k.txt")).unwrap_or_default();
    // The peer knows no others.
    let words = words.lines().filter(|word| word.is_ascii()).map(str::to_owned);
    compare("words", words, &[Limit::Edits(1), Limit::Edits(2), Limit::Similarity(0.8)]);
    compare("amplicons", amplicons().into_iter(), &[Limit::Edits(2), Limit::Similarity(0.99)]);
}

/// Seconds that this thread has run, which other programs can't lengthen; of the clock where no system tells.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.as_deref().and_then(|told| told.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Returns what comes of it, and how many seconds it takes, on average of as many turns as make them exact.
fn timed<T>(mut run: impl FnMut() -> T) -> (T, f64) {
    /// The system counts in steps of some milliseconds.
    const ENOUGH: f64 = 0.25;
    let start = seconds();
    for turns in 1.. {
        let outcome = run();
        let taken = seconds() - start;
        if taken >= ENOUGH {
            return (outcome, taken / f64::from(turns));
        }
    }
    unreachable!("turns never end")
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data")
}

/// The fields of made-up persons, typing errors included.
fn febrl() -> Vec<Vec<String>> {
    let mut records = Vec::new();
    for name in ["dataset1", "dataset4a", "dataset4b"] {
        let text = std::fs::read_to_string(data().join(format!("febrl/{name}.csv"))).unwrap_or_default();
        let fields = |line: &str| line.split(',').map(|field| field.trim().to_owned()).collect::<Vec<_>>();
        records.extend(text.lines().skip(1).map(fields).filter(|fields| fields.len() == 11));
    }
    records
}

fn amplicons() -> Vec<String> {
    let path = data().join("dna/BioMarKs50k.fsa.gz");
    let Some(sources) = path.to_str().and_then(|path| resolve(&[path], Some(Format::Fasta)).ok()) else {
        return Vec::new();
    };
    let fields = Fields::new("text", ItemField::Text);
    let mut reader = Reader::new(sources.list, ReadOptions::new(fields.clone()));
    let (mut batch, mut arena, mut texts) = (Batch::new(), Arena::new(), Vec::new());
    while reader.read_batch(&mut batch).expect("the amplicons can be read") {
        let extracted = extract(&batch, &fields, &mut arena);
        texts.extend((0..extracted.len()).filter_map(|i| match extracted.item(i) {
            Ok(Item::Text(text)) => Some(text.to_owned()),
            _ => None,
        }));
    }
    texts
}

fn compare(name: &str, records: impl Iterator<Item = String>, limits: &[Limit]) {
    let records: Vec<String> = records.filter(|text| !text.is_empty()).collect();
    if records.is_empty() {
        eprintln!("{name}: the data is not there, left out");
        return;
    }
    if let Some(folder) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        let mut seen = HashSet::new();
        let different: Vec<&str> = records.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
        std::fs::write(Path::new(&folder).join(format!("{name}.txt")), different.join("\n"))
            .expect("the texts can be written");
    }
    for &limit in limits {
        let ((index, compared, pairs, of), taken) = timed(|| {
            let (mut all, mut equal) = (Texts::default(), HashMap::<&str, u32>::new());
            let of: Vec<u32> = records
                .iter()
                .map(|text| {
                    *equal.entry(text).or_insert_with(|| {
                        all.push(text);
                        all.count() as u32 - 1
                    })
                })
                .collect();
            let texts = all.count() as u32;
            let index = EditIndex::new(all, (limit, 0)).expect("there are few texts");
            let mut room = Room::default();
            let pairs: usize = (0..texts).map(|text| black_box(index.near(text, true, &mut room)).len()).sum();
            (index, room.compared, pairs, of)
        });
        let texts = index.texts().count() as u32;

        let asked = Rng::new(Seed::new(1)).distinct(ASKED.min(of.len()), of.len() as u64);
        let asked: Vec<u32> = asked.into_iter().map(|record| of[record as usize]).collect();
        let mut pattern = Pattern::default();
        let (plainly_found, plain) = timed(|| {
            let found = asked.iter().map(|&text| plainly(&index, text, &of, limit, &mut pattern));
            found.collect::<Vec<_>>()
        });
        for (&text, mut expected) in asked.iter().zip(plainly_found) {
            expected.sort_unstable();
            expected.dedup();
            let mut near = index.near(text, false, &mut Room::default());
            near.sort_unstable();
            assert_eq!(near, expected, "{name}: what is near text {text} by {limit:?}");
        }
        // Each pair is asked for from both sides here.
        let plain = plain / asked.len() as f64 * of.len() as f64 / 2.0;
        let near = match limit {
            Limit::Edits(edits) => format!("{edits} edits"),
            Limit::Similarity(least) => format!("{least}"),
        };
        let characters = (0..texts).map(|text| index.texts().length(text)).sum::<usize>() / texts as usize;
        let (records, times) = (of.len(), plain / taken);
        let of_texts = plain * (f64::from(texts) / records as f64).powi(2) / taken;
        println!(
            "| {records} {name} | {texts} | {characters} | {near} | {pairs} | {compared} | {taken:.3} | {plain:.2} | {times:.0} | {of_texts:.0} |"
        );
    }
}

/// The different texts near one, by comparing it with all records of a length that can be.
fn plainly(index: &EditIndex, text: u32, of: &[u32], limit: Limit, pattern: &mut Pattern) -> Vec<(u32, u32)> {
    let texts = index.texts();
    pattern.set(texts.chars(text));
    let (mut found, length) = (Vec::new(), texts.length(text));
    for &other in of {
        let most = limit.edits(length.max(texts.length(other)));
        if length.abs_diff(texts.length(other)) <= most
            && let Some(edits) = pattern.within(texts.chars(other), most)
            && other != text
        {
            found.push((other, edits as u32));
        }
    }
    found
}
