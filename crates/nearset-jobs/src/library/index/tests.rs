use std::collections::BTreeMap;

use nearset::index::ShingleKeys;
use nearset::{Rng, Seed};

use super::write::SORTED_AT_ONCE;
use super::*;
use crate::library::hex;

/// Sizes, bytes of ids and keys of records: some that share keys, some with a common part, some with nothing.
fn records(count: usize) -> Vec<(u32, u32, Vec<u64>)> {
    let mut rng = Rng::new(Seed::new(3));
    (0..count)
        .map(|_| {
            let rare = rng.below(9);
            let common = if rng.below(5) == 0 { rng.below(40) } else { 0 };
            let size = (rare + common + rng.below(100)) as u32;
            // Small hashes, as keys are, and few of them, so that there are lists.
            let mut keys: Vec<u64> = (0..rare + common).map(|_| rng.below(count as u64) << 30).collect();
            keys.insert(0, u64::from(size) | rare << 32);
            (size, rng.below(30) as u32, keys)
        })
        .collect()
}

fn written(records: &[(u32, u32, Vec<u64>)]) -> (Vec<u8>, Noted) {
    let mut out = Vec::new();
    let mut each = |each: &mut dyn FnMut(Entry<'_>) -> Result<(), LibraryError>| {
        records.iter().try_for_each(|&(size, id_bytes, ref keys)| each(Entry { size, id_bytes, keys }))
    };
    let noted = write(&mut each, Path::new("some/1.index"), &mut out).unwrap();
    (out, noted)
}

fn held(bytes: Vec<u8>) -> Result<Index, LibraryError> {
    Index::held(Path::new("some"), "1.index", bytes)
}

fn codes(keys: &[u64]) -> Vec<u64> {
    let mut read = ShingleKeys::default();
    assert!(read.read(keys));
    read.codes().collect()
}

#[test]
fn every_record_is_met_by_its_codes_and_no_other() {
    for count in [0, 1, 7, 500, 20_000] {
        let records = records(count);
        let (bytes, noted) = written(&records);
        assert_eq!((noted.bytes, noted.xxh3), (bytes.len() as u64, hex(xxh3_64(&bytes))));
        let index = held(bytes).unwrap();
        index.check().unwrap();
        let mut expected = BTreeMap::<u64, Vec<(u64, u32, u32)>>::new();
        let (mut common, mut end) = (Vec::new(), 0);
        for (record, (size, id_bytes, keys)) in (0..).zip(&records) {
            for code in codes(keys) {
                expected.entry(code).or_default().push((code, 1000 + record, *size));
            }
            let place = StoredSet { segment: 4, offset: end, size: *size, id_bytes: *id_bytes };
            assert_eq!(index.place(record, 4).unwrap(), place);
            end += 8 * u64::from(*size) + u64::from(*id_bytes) + 4;
            let rare = (keys[0] >> 32) as usize;
            if keys.len() > 1 + rare {
                common.push((record, [&[u64::from(*size)], &keys[1 + rare..]].concat()));
            }
        }
        assert_eq!((index.records(), index.sets_end().unwrap()), (count as u32, end));
        let mut found = Vec::new();
        let collected = index.each_common(|record, words| {
            found.push((record, words.to_vec()));
            Ok::<_, LibraryError>(())
        });
        collected.unwrap();
        assert_eq!(found, common);
        let most_common = index.most_common();
        assert!((found.len() as u64..=count as u64).contains(&most_common), "{most_common} of {}", found.len());
        // Codes that are there, their neighbours, and others.
        let mut rng = Rng::new(Seed::new(4));
        let mut asked: Vec<u64> =
            expected.keys().flat_map(|code| [code.wrapping_sub(1 << 24), *code, code.wrapping_add(1 << 24)]).collect();
        asked.extend((0..5000).map(|_| rng.below(1 << 40) << 24));
        asked.extend([0, u64::MAX << 24]);
        asked.sort_unstable();
        asked.dedup();
        for most in [usize::MAX, 3] {
            let mut met = Vec::new();
            asked.iter().for_each(|&code| index.meet(code, (1000, most), &mut met).unwrap());
            let expected: Vec<_> = expected.values().flat_map(|list| list.iter().take(most)).copied().collect();
            assert_eq!(met, expected, "{count} records");
        }
    }
}

/// However many passes it takes, and whether it is written at once or merged.
#[test]
fn an_index_is_a_function_of_its_records() {
    let records = records(300_000);
    let all = written(&records);
    assert!(held(all.0.clone()).unwrap().postings() > SORTED_AT_ONCE);
    let parts = [0..0, 0..1, 1..40_000, 40_000..200_000, 200_000..300_000];
    let parts: Vec<Index> = parts.map(|part| held(written(&records[part]).0).unwrap()).into();
    let mut merged = Vec::new();
    let noted = merge(&parts, Path::new("some/1.index"), &mut merged).unwrap();
    assert!((merged, noted) == all);
}

#[test]
fn whatever_is_damaged_is_found_where_it_is_looked_at() {
    let records = records(2000);
    let (whole, _) = written(&records);
    let mut asked: Vec<u64> = records.iter().flat_map(|(_, _, keys)| codes(keys)).collect();
    asked.sort_unstable();
    asked.dedup();
    let mut expected = Vec::new();
    let meet = |index: &Index, met: &mut Vec<_>| asked.iter().try_for_each(|&code| index.meet(code, (0, 9), met));
    meet(&held(whole.clone()).unwrap(), &mut expected).unwrap();
    let mut rng = Rng::new(Seed::new(5));
    for case in 0..500 {
        let mut bytes = whole.clone();
        match case {
            0..50 => bytes.truncate(rng.below(whole.len() as u64) as usize),
            50..100 => bytes.extend(std::iter::repeat_n(0, 1 + case - 50)),
            _ => bytes[rng.below(whole.len() as u64) as usize] ^= 1 << rng.below(8),
        }
        let Ok(index) = held(bytes) else { continue };
        assert!(index.check().is_err(), "{case}");
        let mut met = Vec::new();
        assert!(meet(&index, &mut met).is_err() || met == expected, "{case}");
    }
}
