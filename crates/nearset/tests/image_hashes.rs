//! Real perceptual hashes: everything near in a sample of PDQ hashes and among pictures and their distortions is found.

use std::{fs, process::Command};

use nearset::{BitString, Distance, HammingSpec, Index, Metric, Neighbour, Seed};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

fn index(bits: u32, radius: u32, items: &[BitString]) -> Index<'static> {
    let mut index = Index::new(HammingSpec::new(bits, radius, Seed::default())).unwrap();
    items.iter().for_each(|item| assert!(index.push(item, None).is_ok()));
    index.compact();
    index
}

/// Returns what comparing with every item finds.
fn compared(items: &[BitString], query: &BitString, radius: u32) -> Vec<Neighbour> {
    let metric = Metric::Hamming { bits: query.bits().len() as u32 };
    let distance = |item: &BitString| metric.between(item.into(), query.into()).unwrap();
    let all = (0..).zip(items).map(|(id, item)| Neighbour { id, distance: distance(item) });
    let mut near: Vec<Neighbour> = all.filter(|found| found.distance <= Distance::from_count(radius)).collect();
    near.sort();
    near
}

#[test]
fn every_needle_of_the_pdq_sample_is_found() {
    let read = |name: &str| -> Option<Vec<BitString>> {
        let text = fs::read_to_string(format!("{DATA}/pdq-sample/{name}")).ok()?;
        Some(text.lines().map(|line| BitString::from_hex(line.trim()).unwrap()).collect())
    };
    let (Some(haystack), Some(needles)) = (read("haystack.txt"), read("needles.txt")) else {
        eprintln!("skipped: {DATA}/pdq-sample is not here");
        return;
    };
    assert_eq!((haystack.len(), needles.len()), (1_350, 100));
    let index = index(256, 31, &haystack);
    for needle in &needles {
        let found = index.search(needle, None, Some(Distance::from_count(31))).unwrap();
        assert_eq!(found, compared(&haystack, needle, 31));
        assert!(found[0].distance <= Distance::from_count(4), "every needle has a hash within 4 bits");
        assert_eq!(index.search(needle, Some(1), None).unwrap(), found[..1]);
    }
    // Each pair is found from both sides, and each hash finds itself.
    let prepared: Vec<_> = haystack.iter().map(|hash| index.prepare(hash).unwrap()).collect();
    let prepared: Vec<_> = prepared.iter().collect();
    let all = index.search_prepared(&prepared, 0, Distance::from_count(31), usize::MAX).unwrap();
    let found = all.unwrap().len();
    assert_eq!((found - haystack.len()) / 2, 857, "pairs within 31 bits, as the sample's description says");
}

/// Hashes of pictures are far from random: bits are correlated, and many hashes are equal.
#[test]
fn what_is_near_a_distorted_picture_is_what_comparing_with_all_finds() {
    let path = format!("{DATA}/image-hashes/hashes.tsv.xz");
    let decoded = Command::new("xz").args(["-dc", &path]).output().ok().filter(|output| output.status.success());
    let Some(output) = decoded else {
        eprintln!("skipped: `xz -dc {path}` gives nothing here");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    // Columns of ahash, phash and pdq, with the radii that are in common use.
    for (column, bits, radius) in [(2, 64, 5), (4, 64, 8), (5, 256, 31)] {
        let of = |row: &Vec<&str>| BitString::from_hex(row[column]).unwrap();
        let originals: Vec<BitString> = rows.iter().filter(|row| row[1] == "orig").map(of).collect();
        let queries: Vec<BitString> = rows.iter().filter(|row| row[1] != "orig").step_by(7).map(of).collect();
        assert_eq!(originals.len(), 6_967);
        let index = index(bits, radius, &originals);
        let search = |query: &BitString| index.search(query, None, Some(Distance::from_count(radius))).unwrap();
        let all: Vec<Vec<Neighbour>> = queries.iter().map(search).collect();
        for (query, found) in queries.iter().zip(&all) {
            assert_eq!(*found, compared(&originals, query, radius), "{bits} bits, radius {radius}");
        }
        assert!(all.iter().filter(|found| !found.is_empty()).count() > queries.len() / 3);
    }
}
