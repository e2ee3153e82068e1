//! Damage of every sort to a small file of every kind.

use nearset::{
    BloomFilter, Check, DecodeError, Filter, FilterSpec, Index, Kind, Opening, family::WorkLimit, index::IndexError,
};
use proptest::prelude::*;

use crate::{
    any::{Any, payload_start, sign},
    fields::sign_all,
    samples,
};

/// Returns the error of opening; a panic fails the test by itself.
#[track_caller]
fn refusal(name: &str, bytes: &[u8]) -> DecodeError {
    match Any::open(bytes, Check::Everything) {
        Ok(_) => panic!("{name}: damaged, but opened"),
        Err(error) => error,
    }
}

/// Opening may succeed if the result is what the bytes say: encoding it gives them back.
fn refused_or_understood(name: &str, bytes: &[u8]) {
    if let Ok(opened) = Any::open(bytes, Check::Everything) {
        assert!(opened.encode() == bytes, "{name}: read as something other than what was written");
    }
    let _ = Any::open(bytes, Check::HeaderOnly);
}

#[test]
fn every_flipped_byte_is_refused() {
    for sample in samples::all() {
        let mut bytes = sample.bytes();
        for at in 0..bytes.len() {
            for pattern in [0x01, 0x80, 0x55, 0xff] {
                bytes[at] ^= pattern;
                let error = refusal(sample.name, &bytes);
                assert!(!error.to_string().is_empty());
                bytes[at] ^= pattern;
            }
        }
        assert!(Any::open(&bytes, Check::Everything).is_ok(), "{}: intact again, but refused", sample.name);
    }
}

#[test]
fn every_truncation_is_refused_also_without_reading_the_tables() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        for length in 0..bytes.len() {
            refusal(sample.name, &bytes[..length]);
            assert!(Any::open(&bytes[..length], Check::HeaderOnly).is_err(), "{}: {length} bytes", sample.name);
        }
    }
}

#[test]
fn leftover_bytes_are_refused() {
    for sample in samples::all() {
        for extra in [1, 63, 64, 4096] {
            let mut bytes = sample.bytes();
            bytes.resize(bytes.len() + extra, 0);
            let error = refusal(sample.name, &bytes);
            assert!(matches!(error, DecodeError::Leftover { bytes, .. } if bytes == extra), "{error}");
            // The same with a matching length: then the tables are too long.
            let length = (bytes.len() as u64).to_le_bytes();
            bytes[16..24].copy_from_slice(&length);
            sign(&mut bytes);
            let error = refusal(sample.name, &bytes);
            assert!(matches!(error, DecodeError::Leftover { bytes, .. } if bytes == extra), "{error}");
        }
    }
}

#[test]
fn other_files_and_newer_files_are_named() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            sign(&mut bytes);
            refusal(sample.name, &bytes)
        };
        assert!(matches!(with(0, b'P'), DecodeError::NotNearset { .. }));
        let newer = with(8, 2);
        assert!(matches!(newer, DecodeError::TooNew { found: 2, newest: 1 }), "{newer}");
        assert!(newer.to_string().contains("upgrade"));
        assert!(matches!(with(8, 0), DecodeError::NoSuchVersion { found: 0 }));
        assert!(matches!(with(9, 200), DecodeError::Unknown { what: "structure", found: 200 }));
    }
    assert!(matches!(refusal("empty", b""), DecodeError::NotNearset { .. }));
    assert!(matches!(refusal("text", b"id\ttext\n1\tabc\n"), DecodeError::NotNearset { .. }));
}

#[test]
fn a_file_opens_only_as_what_it_is() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let kind = Kind::of(&bytes).unwrap();
        let wrong = [
            (Kind::Bloom, BloomFilter::decode(&bytes, Check::Everything).err()),
            (Kind::Near, Filter::decode(&bytes, Check::Everything).err()),
            (Kind::Hamming, Index::decode(&bytes, Check::Everything).err()),
            (Kind::Description, FilterSpec::decode(&bytes, Check::Everything).err()),
        ];
        for (asked, error) in wrong {
            let is_filter = matches!(kind, Kind::Near | Kind::ExactNear | Kind::Generations);
            match error {
                None => assert!(
                    asked == kind || asked == Kind::Near && is_filter || asked == Kind::Hamming && kind == Kind::Lsh,
                    "{}",
                    sample.name
                ),
                Some(DecodeError::WrongKind { expected, found }) => assert_eq!((expected, found), (asked, kind)),
                Some(other) => panic!("{}: {other}", sample.name),
            }
        }
    }
}

/// Damages the generations' own files, and signs both them and the whole file again.
#[test]
fn damage_within_a_generation_is_refused_or_understood() {
    for sample in samples::all().iter().filter(|sample| sample.name.starts_with("generations")) {
        let bytes = sample.bytes();
        let mut start = payload_start(&bytes).unwrap();
        while start < bytes.len() {
            let length = u64::from_le_bytes(bytes[start + 16..start + 24].try_into().unwrap()) as usize;
            let generation = start..start + length;
            let described = payload_start(&bytes[generation.clone()]).unwrap();
            for at in (8..56).chain(64..described) {
                for number in [u64::MAX, 1 << 40, u64::from(u32::MAX), 1 << 24, 0xffff, 6, 2, 1, 0] {
                    for width in [1, 4, 8] {
                        let mut bytes = bytes.clone();
                        let inner = &mut bytes[generation.clone()];
                        let end = (at + width).min(described);
                        inner[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
                        sign(inner);
                        sign(&mut bytes);
                        refused_or_understood(sample.name, &bytes);
                    }
                }
            }
            start += length;
        }
    }
}

/// Generations that no filter would have derived from each other.
#[test]
fn generations_that_do_not_follow_from_each_other_are_refused() {
    let sample = samples::all().into_iter().find(|sample| sample.name == "generations-grown-emptier").unwrap();
    let bytes = sample.bytes();
    let start = payload_start(&bytes).unwrap();
    let first = u64::from_le_bytes(bytes[start + 16..start + 24].try_into().unwrap()) as usize;
    let second = bytes.len() - start - first;
    // The lengths are the first section, after its number and its own length.
    assert_eq!(bytes[70..78], (first as u64).to_le_bytes());
    let with = |files: [&[u8]; 2]| {
        let mut bytes = [&bytes[..start], files[0], files[1]].concat();
        for (at, file) in [70, 78].into_iter().zip(files) {
            bytes[at..at + 8].copy_from_slice(&(file.len() as u64).to_le_bytes());
        }
        let length = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        sign(&mut bytes);
        bytes
    };
    let (old, new) = bytes[start..].split_at(first);
    assert_eq!(new.len(), second);
    assert!(with([old, new]) == bytes);
    for files in [[new, old], [old, old], [new, new]] {
        let error = refusal(sample.name, &with(files));
        assert!(matches!(error, DecodeError::BadValue { what: "a generation's spec", .. }), "{error}");
    }
    let error = refusal(sample.name, &with([&bytes, new]));
    assert!(
        matches!(error, DecodeError::WrongKind { found: Kind::Generations, .. }),
        "no generations in generations: {error}"
    );
}

/// Huge numbers at every place of header and description that might be a length, with correct checksums, so that only
/// validation stands between them and an allocation.
#[test]
fn huge_numbers_are_refused_or_understood_wherever_they_stand() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let described = payload_start(&bytes).unwrap();
        for at in (10..56).chain(64..described) {
            for huge in [u64::MAX, 1 << 63, 1 << 40, 1 << 36, u64::from(u32::MAX), 1 << 31, 1 << 24, 0xffff] {
                for width in [2, 4, 8] {
                    let mut bytes = bytes.clone();
                    let end = (at + width).min(described);
                    bytes[at..end].copy_from_slice(&huge.to_le_bytes()[..end - at]);
                    sign(&mut bytes);
                    refused_or_understood(sample.name, &bytes);
                }
            }
        }
    }
}

/// The lengths themselves, which are always refused.
#[test]
fn huge_lengths_are_refused() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let with = |at: usize, value: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            sign(&mut bytes);
            refusal(sample.name, &bytes)
        };
        for huge in [u32::MAX, u32::MAX - 63, 1 << 31, bytes.len() as u32] {
            with(12, &huge.to_le_bytes());
            // The first section's length.
            with(66, &huge.to_le_bytes());
        }
        for huge in [u64::MAX, u64::MAX - 63, 1 << 63, bytes.len() as u64 + 1, bytes.len() as u64 - 1, 0] {
            with(16, &huge.to_le_bytes());
        }
    }
}

/// A section written twice has two meanings.
#[test]
fn repeated_and_unknown_sections_are_refused_and_optional_ones_skipped() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let start = payload_start(&bytes).unwrap();
        let described = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let with_section = |number: u16| {
            let mut description = bytes[64..64 + described].to_vec();
            description.extend_from_slice(&number.to_le_bytes());
            description.extend_from_slice(&3u32.to_le_bytes());
            description.extend_from_slice(b"new");
            let described = description.len() as u32;
            description.resize(description.len().next_multiple_of(64), 0);
            let mut changed = [&bytes[..64], &description[..], &bytes[start..]].concat();
            changed[12..16].copy_from_slice(&described.to_le_bytes());
            let length = (changed.len() as u64).to_le_bytes();
            changed[16..24].copy_from_slice(&length);
            sign(&mut changed);
            changed
        };
        assert!(matches!(refusal(sample.name, &with_section(1)), DecodeError::BadValue { .. }));
        let unknown = refusal(sample.name, &with_section(77));
        assert!(matches!(unknown, DecodeError::Unknown { what: "section", found: 77 }), "{unknown}");
        let optional = with_section(0x8001);
        let opened = Any::open(&optional, Check::Everything).unwrap_or_else(|error| panic!("{}: {error}", sample.name));
        assert_eq!(opened.encode(), bytes, "{}", sample.name);
    }
}

/// Unchecked tables may give wrong answers, but must answer.
#[test]
fn damage_that_was_not_looked_for_does_no_worse_than_a_wrong_answer() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let start = payload_start(&bytes).unwrap();
        for at in start..bytes.len() {
            for value in [0, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                if let Ok(opened) = Any::open(&bytes, Check::HeaderOnly) {
                    sample.queries.iter().step_by(4).for_each(|query| drop(opened.contains(query)));
                }
            }
        }
    }
}

/// Stored values must be ones that insertion could have stored.
#[test]
fn signed_nonsense_in_tables_is_refused() {
    for sample in samples::all() {
        let bytes = sample.bytes();
        let start = payload_start(&bytes).unwrap();
        for at in start..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            sign(&mut bytes);
            refused_or_understood(sample.name, &bytes);
        }
    }
}

/// A damaged table that is not checked gives a wrong answer, and nothing worse.
#[test]
fn unchecked_tables_answer_whatever_they_hold() {
    for sample in samples::all() {
        let mut bytes = sample.bytes();
        for at in (payload_start(&bytes).unwrap()..bytes.len()).step_by(5) {
            bytes[at] ^= 0xff;
            // Padding and lengths are always checked.
            if let Ok(opened) = Any::open(&bytes, Check::HeaderOnly) {
                for query in sample.queries.iter().step_by(4) {
                    assert!(opened.contains(query).is_ok(), "{}", sample.name);
                }
            }
            bytes[at] ^= 0xff;
        }
    }
}

/// Returns a sample's file with something changed, signed again.
fn changed(sample: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let sample = samples::all().into_iter().find(|found| found.name == sample).unwrap();
    let mut bytes = sample.bytes();
    change(&mut bytes);
    sign_all(&mut bytes);
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Every combination of stand-ins is tried through verification: 384^4 of them at a reach of 64.
#[test]
fn probing_that_tries_endless_combinations_is_refused_with_the_cure() {
    let with = |reach: u32| {
        changed("near-gaussian-verified-probed", |bytes| {
            // The last fields of the spec, which is preceded by its length.
            let end = 70 + u32::from_le_bytes(bytes[66..70].try_into().unwrap()) as usize;
            put(bytes, end - 8, 4);
            put(bytes, end - 4, reach);
        })
    };
    assert!(Any::open(&with(1), Check::Everything).is_ok());
    for reach in [16, 64, 1 << 20, u32::MAX] {
        let error = refusal("probed", &with(reach));
        assert!(matches!(error, DecodeError::Work(_)), "{error}");
        assert!(error.to_string().contains("use fewer rows, bands, probes"), "{error}");
    }
    let work = Opening { check: Check::Everything, work: WorkLimit::Unlimited };
    assert!(Filter::decode(&with(64), work).is_ok(), "it opens if the limit is lifted");
}

/// Rows take no space in a file.
#[test]
fn rows_that_take_seconds_per_item_are_refused() {
    let with_rows = |sample: &str, at: usize, rows: u32| changed(sample, |bytes| put(bytes, at, rows));
    // After the family's fields and the seed, in the spec that starts at 70.
    for (sample, at, most, too_many) in [
        ("near-weighted-minhash", 70 + 4 + 16, 2_000, 100_000),
        // A file of 256 bytes, which took seconds to draw.
        ("near-cross-polytope", 70 + 5 + 16, 2_000, 65_520),
        ("near-cauchy", 70 + 14 + 16, 10_000, 1_000_000),
        ("lsh-empty", 70 + 4 + 16, 1_000, 838_860),
        ("lsh-gaussian-without-items", 70 + 14 + 16, 3, 4_192_732),
    ] {
        let (few, many) = (with_rows(sample, at, most), with_rows(sample, at, too_many));
        assert!(Any::open(&few, Check::Everything).is_ok(), "{sample}: {most} rows are few enough");
        let error = refusal(sample, &many);
        assert!(matches!(error, DecodeError::Work(_)), "{sample}: {error}");
    }
}

/// Returns where the counts start, after the spec.
fn counts(bytes: &[u8]) -> usize {
    70 + u32::from_le_bytes(bytes[66..70].try_into().unwrap()) as usize + 6
}

/// A file may state that any number of items was inserted.
#[test]
fn counts_of_items_stop_at_the_largest_number() {
    for name in ["near-cauchy", "exact-covering", "exact-folded-scan"] {
        let bytes = changed(name, |bytes| {
            let at = counts(bytes);
            bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        });
        let mut filter = Filter::decode(&bytes, Check::Everything).unwrap();
        let other = Filter::decode(&bytes, Check::Everything).unwrap();
        filter.merge(&other).unwrap();
        assert_eq!(filter.len(), u64::MAX, "{name}");
    }
}

/// Names take space for every id before their own, and a file may state any id.
#[test]
fn names_of_ids_far_beyond_the_items_are_not_merged() {
    let bytes = changed("lsh-named", |bytes| {
        let at = counts(bytes) + 8;
        bytes[at..at + 8].copy_from_slice(&(1u64 << 30).to_le_bytes());
    });
    let mut index = Index::decode(&bytes, Check::Everything).unwrap();
    let other = index.clone();
    let error = index.merge(&other).unwrap_err();
    assert!(matches!(error, IndexError::SparseNames { .. }), "{error}");
    assert_eq!(index.len(), other.len(), "the index is unchanged");
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
        prop_assert!(Any::open(&bytes, Check::Everything).is_err());
    }

    #[test]
    fn random_bytes_behind_a_good_header_are_refused_or_understood(
        kind in 1u8..=7,
        mut description in prop::collection::vec(any::<u8>(), 0..150),
        payload in prop::collection::vec(any::<u8>(), 0..300),
        spec_length in 0u32..100,
    ) {
        let described = description.len() as u32;
        description.resize(description.len().next_multiple_of(64), 0);
        if described >= 6 {
            description[..2].copy_from_slice(&1u16.to_le_bytes());
            description[2..6].copy_from_slice(&spec_length.to_le_bytes());
        }
        let mut bytes = b"\x89NEARSET\x01".to_vec();
        bytes.extend_from_slice(&[kind, 0, 0]);
        bytes.extend_from_slice(&described.to_le_bytes());
        bytes.extend_from_slice(&((64 + description.len() + payload.len()) as u64).to_le_bytes());
        bytes.resize(64, 0);
        bytes.extend_from_slice(&description);
        bytes.extend_from_slice(&payload);
        sign(&mut bytes);
        refused_or_understood("random", &bytes);
    }
}
