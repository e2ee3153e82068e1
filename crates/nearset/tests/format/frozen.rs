//! The frozen files of `testdata/format/v1`: written once, read forever.
//!
//! `MANIFEST.tsv` states what was inserted into each, and what each answers. Files are added, never edited:
//! `cargo test -p nearset --test format -- --ignored` writes the samples that do not exist yet.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use nearset::{Check, Kind, length_of};

use crate::{
    any::Any,
    samples::{self, Item, Sample},
};

const HEADING: &str =
    "#file\tkind\tspec\titems inserted, separated by |\tqueries and whether each is accepted, separated by |\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/format/v1")
}

fn manifest() -> String {
    fs::read_to_string(folder().join("MANIFEST.tsv"))
        .expect("testdata/format/v1/MANIFEST.tsv is part of the repository")
}

#[test]
#[ignore = "writes into testdata"]
fn write_missing_samples() {
    fs::create_dir_all(folder()).unwrap();
    let mut table = fs::read_to_string(folder().join("MANIFEST.tsv")).unwrap_or_else(|_| HEADING.into());
    for sample in samples::all() {
        let file = format!("{}.nearset", sample.name);
        if !folder().join(&file).exists() {
            let bytes = sample.bytes();
            assert!(bytes.len() < 1 << 14, "{file} has {} bytes", bytes.len());
            fs::write(folder().join(&file), &bytes).unwrap();
            table.push_str(&row(&sample, &file, &bytes));
        }
    }
    fs::write(folder().join("MANIFEST.tsv"), table).unwrap();
}

fn row(sample: &Sample, file: &str, bytes: &[u8]) -> String {
    let filter = sample.filter();
    let items: Vec<String> = sample.items.iter().map(Item::to_string).collect();
    let answer = |query: &Item| if filter.contains(query).unwrap() { "yes" } else { "no" };
    let queries: Vec<String> = sample.queries.iter().map(|query| format!("{} {query}", answer(query))).collect();
    let kind = Kind::of(bytes).unwrap();
    format!("{file}\t{kind}\t{}\t{}\t{}\n", sample.words, items.join("|"), queries.join("|"))
}

#[test]
fn frozen_files_are_read_and_answer_as_before() {
    let mut listed = BTreeSet::new();
    for line in manifest().lines().filter(|line| !line.starts_with('#')) {
        let [file, kind, _, items, queries] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line:?} does not have five columns");
        };
        let bytes = fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(Kind::of(&bytes).unwrap().to_string(), kind, "{file}");
        assert_eq!(length_of(&bytes[..24]).unwrap(), bytes.len() as u64, "{file}");
        assert!(length_of(&bytes[..23]).is_err(), "{file}");
        let filter = Any::open(&bytes, Check::Everything).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(filter.encode() == bytes, "{file}: written again, it has different bytes");
        for query in queries.split('|') {
            let (answer, item) = query.split_once(' ').unwrap_or_else(|| panic!("{file}: {query:?}"));
            let item: Item = item.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(filter.contains(&item).unwrap(), answer == "yes", "{file}: {item}");
        }
        for item in items.split('|').filter(|item| !item.is_empty()) {
            assert!(filter.contains(&item.parse().unwrap()).is_ok(), "{file}: {item}");
        }
        listed.insert(file.to_owned());
    }
    let there = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = there.filter(|name| name.ends_with(".nearset")).collect();
    assert_eq!(there, listed, "the manifest and the folder differ");
}

/// The same items in the same spec give the frozen bytes, so hashing and placement have not moved either.
#[test]
fn building_again_gives_the_frozen_bytes() {
    for sample in samples::all() {
        let file = format!("{}.nearset", sample.name);
        let frozen = fs::read(folder().join(&file))
            .unwrap_or_else(|error| panic!("{file}: {error}; run with --ignored to write what is missing"));
        assert!(sample.bytes() == frozen, "{file}: built again, it has different bytes");
        // All columns but the spec, whose wording is for people and may improve.
        let columns = |row: &str| row.trim_end().split('\t').map(str::to_owned).collect::<Vec<_>>();
        let built = columns(&row(&sample, &file, &frozen));
        let table = manifest();
        let listed = table.lines().map(columns).find(|row| row[0] == file).expect("every file is listed");
        assert_eq!((&listed[1], &listed[3..]), (&built[1], &built[3..]), "{file}");
    }
}

#[test]
fn items_in_the_manifest_are_read_as_written() {
    for sample in samples::all() {
        for item in sample.items.iter().chain(&sample.queries) {
            assert_eq!(item.to_string().parse::<Item>().as_ref(), Ok(item), "{}", sample.name);
            assert!(!item.to_string().contains(['|', '\t', '\n']));
        }
    }
}
