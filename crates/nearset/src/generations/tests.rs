//! The laws of generations, of every kind of filter and every answer to being full.

use super::*;
use crate::{
    BitString, Check, ExactSpec, Layout, Seed, Spec, Table,
    family::BitSampling,
    filter::{Construction, Probing},
    hash::Rng,
};

const BITS: u32 = 128;
const CAPACITY: u64 = 100;

fn strings(count: usize, seed: u64) -> Vec<BitString> {
    let mut rng = Rng::new(Seed::new(seed));
    let string = |_| {
        let mut bits = BitString::zeros(BITS as usize);
        (0..BITS as usize).for_each(|position| bits.set(position, rng.chance(0.5)));
        bits
    };
    (0..count).map(string).collect()
}

fn terms(when_full: WhenFull) -> Terms {
    Terms {
        near: Distance::from_count(3),
        far: Distance::from_count(40),
        max_false_negative: 0.05,
        max_false_positive: 0.001,
        capacity: CAPACITY,
        when_full,
    }
}

/// A filter of each kind of table and rule, for about a hundred strings.
fn specs() -> Vec<(&'static str, PlannedSpec)> {
    let near = |rows, bands, threshold, table| {
        Spec::new(BitSampling::new(BITS), Layout::new(rows, bands), threshold, table, Seed::new(5)).unwrap()
    };
    let bits = near(16, 12, 6, Table::Bits(500));
    let exact =
        |construction| PlannedSpec::Exact(ExactSpec { bits: BITS, radius: 3, seed: Seed::new(5), construction });
    let lines = Table::Lines { lines: 3, hashes: 6 };
    let probed = Spec { probing: Some(Probing { bands: 2, reach: 1 }), ..bits.clone() };
    vec![
        ("bits", PlannedSpec::Near(bits)),
        ("direct", PlannedSpec::Near(near(9, 12, 10, Table::Direct))),
        ("lines", PlannedSpec::Near(near(16, 12, 6, lines))),
        ("probed", PlannedSpec::Near(probed)),
        ("pigeonhole", exact(Construction::Pigeonhole { blocks: 4, table: lines })),
        ("covering", exact(Construction::Covering { table: Table::Bits(2000) })),
        ("scan", exact(Construction::FoldedScan { width: 128 })),
    ]
}

const ENDS: [WhenFull; 4] =
    [WhenFull::Grow, WhenFull::Refuse, WhenFull::Forget { generations: 1 }, WhenFull::Forget { generations: 3 }];

fn each(mut check: impl FnMut(&str, Generations<'static>)) {
    for (name, spec) in specs() {
        for when_full in ENDS {
            let empty = Generations::from_plan(&spec, terms(when_full)).unwrap();
            check(&format!("{name}, {when_full:?}"), empty);
        }
    }
}

fn bytes(generations: &Generations<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    generations.encode(&mut bytes).unwrap();
    bytes
}

/// One after the other; `None` where refused.
fn insert_each(generations: &mut Generations<'_>, items: &[BitString]) -> Vec<Option<bool>> {
    let mut room = Hashed::new();
    let mut insert = |item| match generations.insert(item, &mut room) {
        Ok(new) => Some(new),
        Err(InsertError::Full { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    items.iter().map(&mut insert).collect()
}

#[test]
fn answers_do_not_depend_on_batches() {
    let mut items = strings(350, 1);
    items.extend_from_within(40..120);
    each(|name, empty| {
        let refuses = empty.terms().unwrap().when_full == WhenFull::Refuse;
        // Refusing is all or nothing, so a batch that fits is compared.
        let items = if refuses { &items[..CAPACITY as usize] } else { &items[..] };
        let mut one_by_one = empty.clone();
        let expected: Vec<bool> = insert_each(&mut one_by_one, items).into_iter().map(Option::unwrap).collect();
        for size in [1, 7, 64, 430] {
            let mut batches = empty.clone();
            let answers: Vec<bool> = items.chunks(size).flat_map(|batch| batches.insert_all(batch).unwrap()).collect();
            assert!(answers == expected, "{name}: batches of {size}");
            assert!(bytes(&batches) == bytes(&one_by_one), "{name}: batches of {size}");
        }
        let mut room = Hashed::new();
        let all = one_by_one.contains_all(items).unwrap();
        for (item, near) in items.iter().zip(all) {
            assert_eq!(one_by_one.contains_near(item, &mut room).unwrap(), near, "{name}");
            assert_eq!(one_by_one.find(item, &mut room).unwrap().near, near, "{name}");
        }
    });
}

#[test]
fn a_file_goes_on_as_the_filter_that_was_written() {
    let items = strings(430, 2);
    each(|name, mut whole| {
        let mut copied = whole.clone();
        for part in items.chunks(43) {
            let saved = bytes(&copied);
            let mut opened = Generations::decode(&saved, Check::Everything).unwrap();
            assert_eq!(insert_each(&mut opened, part), insert_each(&mut whole, part), "{name}");
            assert!(bytes(&opened) == bytes(&whole), "{name}: at {}", whole.len());
            copied = opened.into_owned();
        }
        let described = Generations::from_description(&whole.describe().encode()).unwrap();
        assert!(described.is_empty() && described.describe() == whole.describe(), "{name}");
    });
}
