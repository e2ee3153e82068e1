//! The promise, and the laws that all filters obey.

use super::*;
use crate::{
    BitString, Check, Seed,
    error::SpecError,
    family::{
        Hashed,
        laws::{ItemBuffer, MakePair},
    },
    filter::{Filter, Generation, InsertError, laws::empty},
    hash::Rng,
    spec::Table,
};

fn seed() -> Seed {
    Seed::new(1)
}

/// Random strings that differ in `distance` of `bits` positions, whatever the length.
fn pair(bits: usize) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
    move |distance, rng| {
        let mut a = BitString::zeros(bits);
        (0..bits).for_each(|position| a.set(position, rng.chance(0.5)));
        let mut b = a.clone();
        rng.distinct(distance as usize, bits as u64).into_iter().for_each(|at| b.flip(at as usize));
        (ItemBuffer::from(crate::Item::from(&a)), ItemBuffer::from(crate::Item::from(&b)))
    }
}

fn filled<'o>(spec: ExactSpec, items: impl IntoIterator<Item = &'o ItemBuffer>) -> Filter<'static> {
    let mut filter = empty(spec);
    items.into_iter().for_each(|item| assert!(filter.insert(item.view(), &mut Hashed::default()).is_ok()));
    filter
}

fn bytes(filter: &Filter<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes).unwrap();
    bytes
}

/// What is stored, without the count of items, which depends on how often an item was inserted.
fn stored(filter: &Filter<'_>) -> Vec<u8> {
    let [Generation::Exact(filter)] = filter.filters() else { panic!("one exact generation") };
    match filter.store() {
        Store::Keys(tables) => tables.bits().to_bytes().collect::<Vec<_>>().concat(),
        Store::Folds(folds) => bytemuck::cast_slice(folds.rows()).to_vec(),
    }
}

/// Every query at every distance from 0 to the radius, most of them at the radius: zero misses, not few.
#[track_caller]
fn check_nothing_is_missed(spec: ExactSpec, items: usize, queries: usize) {
    let make = pair(spec.bits as usize);
    let mut rng = Rng::new(Seed::new(31));
    let radius = f64::from(spec.radius);
    let mut distances = (0..=spec.radius).map(f64::from).chain(std::iter::repeat(radius)).take(items);
    let pairs: Vec<_> = distances.by_ref().map(|distance| make(distance, &mut rng)).collect();
    let mut filter = empty(spec);
    filter.extend(pairs.iter().map(|(stored, _)| stored.view())).unwrap();
    let missed = |answers: Vec<bool>| answers.into_iter().filter(|near| !near).count();
    assert_eq!(missed(filter.contains_all(pairs.iter().map(|(_, query)| query.view())).unwrap()), 0, "{spec:?}");

    let mut query = BitString::zeros(spec.bits as usize);
    for draw in 0..queries {
        let crate::Item::Bits(stored) = pairs[draw % items].0.view() else { unreachable!() };
        (0..stored.len()).for_each(|at| query.set(at, stored.bit(at)));
        let flips = rng.distinct(spec.radius as usize, u64::from(spec.bits));
        flips.into_iter().for_each(|at| query.flip(at as usize));
        assert!(filter.contains_near(&query, &mut Hashed::default()).unwrap(), "{spec:?}: draw {draw} is missed");
    }
}

#[test]
fn pigeonhole_blocks_miss_nothing() {
    for (bits, radius, blocks, items) in [
        (256, 4, 5, 5_000),
        (256, 4, 2, 300),
        (256, 8, 9, 5_000),
        (256, 8, 5, 2_000),
        (64, 3, 4, 5_000),
        (64, 3, 2, 2_000),
        (100, 5, 3, 1_000),
        (100, 0, 1, 1_000),
        (1_000, 20, 15, 500),
    ] {
        let spec = ExactSpec::pigeonhole(bits, radius, blocks, items as u64, 0.01, seed()).unwrap();
        check_nothing_is_missed(spec, items, 20_000);
    }
    for (bits, radius, blocks) in [(64, 3, 4), (64, 5, 4), (100, 9, 6), (31, 2, 2)] {
        check_nothing_is_missed(
            ExactSpec::new(bits, radius, Construction::Pigeonhole { blocks, table: Table::Direct }, seed()).unwrap(),
            300,
            20_000,
        );
    }
}

#[test]
fn covering_masks_miss_nothing() {
    for (bits, radius, items) in [(128, 6, 1_000), (256, 4, 5_000), (64, 3, 5_000), (100, 5, 1_000), (9, 2, 3)] {
        let spec = ExactSpec::covering(bits, radius, items as u64, 0.01, seed()).unwrap();
        check_nothing_is_missed(spec, items, 20_000);
    }
}

#[test]
fn folded_scans_miss_nothing() {
    for (bits, radius, width, items) in [
        (256, 31, 64, 200),
        (256, 31, 128, 1_000),
        (256, 31, 256, 1_000),
        (256, 4, 64, 1_000),
        (64, 3, 64, 1_000),
        (100, 10, 64, 1_000),
        (100, 10, 128, 1_000),
        (1_000, 60, 192, 300),
    ] {
        check_nothing_is_missed(ExactSpec::folded_scan(bits, radius, width, seed()).unwrap(), items, 20_000);
    }
}

#[test]
fn a_whole_scan_is_exact() {
    for bits in [100, 256] {
        let spec = ExactSpec::folded_scan(bits, 20, bits.next_multiple_of(64), seed()).unwrap();
        let make = pair(bits as usize);
        let mut rng = Rng::new(Seed::new(5));
        let mut filter = empty(spec);
        let pairs: Vec<_> = (0..2_000).map(|i| make(f64::from(19 + i % 4), &mut rng)).collect();
        filter.extend(pairs.iter().map(|(stored, _)| stored.view())).unwrap();
        let answers = filter.contains_all(pairs.iter().map(|(_, query)| query.view())).unwrap();
        assert!(answers.iter().enumerate().all(|(i, near)| *near == (i % 4 < 2)));
    }
}

/// Every law of `filter::laws` that has a meaning here, at five distances from the radius on.
#[track_caller]
fn check_laws(spec: ExactSpec, items: usize, distances: [f64; 5]) {
    let make = pair(spec.bits as usize);
    check_repeats_and_batches(spec, items, &make);
    check_monoid(spec, items, &make);
    check_codec(spec, items, &make);
    check_acceptance(spec, items, &distances, &make);
}

fn random_items(count: usize, seed: u64, make: MakePair<'_>) -> Vec<ItemBuffer> {
    let mut rng = Rng::new(Seed::new(seed));
    (0..count).map(|_| make(0.0, &mut rng).0).collect()
}

fn check_repeats_and_batches(spec: ExactSpec, count: usize, make: MakePair<'_>) {
    let mut items = random_items(count, 23, make);
    items.extend_from_within(..count / 2);
    let mut one_by_one = empty(spec);
    let expected: Vec<bool> =
        items.iter().map(|item| one_by_one.insert(item.view(), &mut Hashed::default()).unwrap()).collect();
    assert!(expected[count..].iter().all(|new| !new), "a repeat is taken for new");
    assert!(expected[0]);
    let mut batch = empty(spec);
    assert_eq!(batch.insert_all(items.iter().map(ItemBuffer::view)).unwrap(), expected);
    assert_eq!(bytes(&batch), bytes(&one_by_one));
    let mut unasked = empty(spec);
    unasked.extend(items.iter().map(ItemBuffer::view)).unwrap();
    assert_eq!(bytes(&unasked), bytes(&one_by_one));
    let queries = random_items(count, 24, make);
    let expected: Vec<bool> =
        queries.iter().map(|item| batch.contains_near(item.view(), &mut Hashed::default()).unwrap()).collect();
    assert_eq!(batch.contains_all(queries.iter().map(ItemBuffer::view)).unwrap(), expected);
}

fn check_monoid(spec: ExactSpec, count: usize, make: MakePair<'_>) {
    let items = random_items(count, 22, make);
    let (left, rest) = items.split_at(count / 3);
    let (middle, right) = rest.split_at(count / 3);
    // Parts that share items, so that a union is more than a concatenation.
    let [a, b, c] = [left, middle, right].map(|part| filled(spec, part.iter().chain(&left[..2])));
    let merged = |x: &Filter<'static>, y: &Filter<'_>| {
        let mut x = x.clone();
        x.merge(y).unwrap();
        x
    };
    let all = filled(spec, &items);
    assert_eq!(stored(&merged(&merged(&a, &b), &c)), stored(&all), "merging is not inserting into one");
    assert_eq!(bytes(&merged(&a, &b)), bytes(&merged(&b, &a)), "merging does not commute");
    assert_eq!(bytes(&merged(&a, &merged(&b, &c))), bytes(&merged(&merged(&a, &b), &c)), "it does not associate");
    assert_eq!(stored(&merged(&all, &all)), stored(&all), "merging is not idempotent");
    let reversed = filled(spec, items.iter().rev());
    assert_eq!(bytes(&reversed), bytes(&all), "the order of insertion shows");
    let nothing = empty(spec);
    assert_eq!(bytes(&merged(&nothing, &all)), bytes(&all), "the empty filter is not neutral");
    assert_eq!(bytes(&merged(&all, &nothing)), bytes(&all), "the empty filter is not neutral");
}

fn check_codec(spec: ExactSpec, count: usize, make: MakePair<'_>) {
    for items in [random_items(count, 26, make), Vec::new()] {
        let filter = filled(spec, &items);
        let written = bytes(&filter);
        for check in [Check::Everything, Check::HeaderOnly] {
            let read = Filter::decode(&written, check).unwrap();
            assert_eq!((read.spec(), read.len()), (filter.spec(), filter.len()));
            assert_eq!(bytes(&read), written, "decoding then encoding changes bytes");
            for item in random_items(50, 27, make).iter().chain(&items) {
                assert_eq!(
                    read.contains_near(item.view(), &mut Hashed::default()),
                    filter.contains_near(item.view(), &mut Hashed::default())
                );
            }
            let mut owned = read.into_owned();
            owned.merge(&filter).unwrap();
            assert_eq!(stored(&owned), stored(&filter));
        }
    }
}

/// The measured acceptance at each distance from one stored item, by a fresh filter's functions each few queries.
/// 6 sigma: about 2e-9 by chance. Seeds are fixed, so red means a bug.
fn check_acceptance(spec: ExactSpec, items: usize, distances: &[f64], make: MakePair<'_>) {
    const FILTERS: u64 = 100;
    for (i, &d) in distances.iter().enumerate() {
        let (mut accepted, mut expected) = (0.0, 0.0);
        for draw in 0..FILTERS {
            let mut rng = Rng::new(Seed::new(28).derive("items", draw * 100 + i as u64));
            let spec = ExactSpec { seed: Seed::new(29).derive("filter", draw * 100 + i as u64), ..spec };
            let pairs: Vec<_> = (0..items).map(|_| make(d, &mut rng)).collect();
            let mut filter = empty(spec);
            filter.extend(pairs.iter().map(|(stored, _)| stored.view())).unwrap();
            expected += filter.acceptance_probability(Distance::new(d).unwrap()) * items as f64;
            let answers = filter.contains_all(pairs.iter().map(|(_, query)| query.view())).unwrap();
            accepted += answers.into_iter().filter(|&near| near).count() as f64;
        }
        let tries = (FILTERS * items as u64) as f64;
        let (rate, expected) = (accepted / tries, expected / tries);
        let sigma = (expected * (1.0 - expected) / tries).sqrt().max(0.5 / tries);
        assert!(
            (rate - expected).abs() <= 6.0 * sigma,
            "{spec:?}, distance {d}: accepted {rate:.5}, expected {expected:.5}, sigma {sigma:.5}"
        );
    }
}

fn with_table(construction: impl Fn(Table) -> Construction, bits: u32, radius: u32, table: Table) -> ExactSpec {
    ExactSpec { bits, radius, seed: seed(), construction: construction(table) }
}

#[test]
fn pigeonhole_blocks_obey_the_laws() {
    // Small tables, so that chance hits are seen: 128 or so keys in 4 lines.
    let lines = Table::Lines { lines: 4, hashes: 6 };
    let blocks = |blocks| move |table| Construction::Pigeonhole { blocks, table };
    check_laws(with_table(blocks(5), 256, 4, lines), 100, [4.0, 5.0, 8.0, 16.0, 60.0]);
    check_laws(with_table(blocks(3), 100, 4, lines), 60, [4.0, 5.0, 8.0, 16.0, 50.0]);
    check_laws(with_table(blocks(4), 64, 3, Table::Bits(5_000)), 100, [3.0, 4.0, 6.0, 10.0, 32.0]);
    // Blocks of 17 and 16 bits: random items match by themselves.
    check_laws(with_table(blocks(6), 100, 8, Table::Direct), 100, [8.0, 9.0, 14.0, 20.0, 50.0]);
    check_laws(with_table(blocks(6), 100, 8, lines), 100, [8.0, 9.0, 14.0, 20.0, 50.0]);
}

#[test]
fn covering_masks_obey_the_laws() {
    let covering = |table| Construction::Covering { table };
    check_laws(with_table(covering, 128, 3, Table::Lines { lines: 4, hashes: 6 }), 100, [3.0, 4.0, 5.0, 7.0, 60.0]);
    check_laws(with_table(covering, 100, 5, Table::Bits(20_000)), 60, [5.0, 6.0, 8.0, 10.0, 50.0]);
}

#[test]
fn folded_scans_obey_the_laws() {
    let scan = |bits, radius, width| ExactSpec::folded_scan(bits, radius, width, seed()).unwrap();
    check_laws(scan(256, 31, 128), 100, [31.0, 36.0, 40.0, 48.0, 128.0]);
    check_laws(scan(256, 12, 64), 100, [12.0, 14.0, 16.0, 20.0, 100.0]);
    check_laws(scan(100, 10, 128), 100, [0.0, 10.0, 11.0, 14.0, 50.0]);
    // 20 of 64 cells: other items are accepted now and then.
    check_laws(scan(100, 20, 64), 20, [20.0, 22.0, 24.0, 30.0, 50.0]);
}

#[test]
fn sampled_scans_obey_the_laws() {
    let scan = |bits, radius, width, within| {
        ExactSpec::new(bits, radius, Construction::SampledScan { width, within }, seed()).unwrap()
    };
    check_laws(scan(256, 20, 128, 14), 100, [0.0, 20.0, 26.0, 32.0, 100.0]);
    check_laws(scan(1_000, 100, 64, 11), 100, [0.0, 100.0, 150.0, 250.0, 500.0]);
    // 22 of 64: other items are accepted now and then.
    check_laws(scan(100, 20, 64, 22), 20, [20.0, 30.0, 34.0, 40.0, 50.0]);
}

#[test]
fn between_whole_distances_acceptance_is_linear() {
    let spec = ExactSpec::folded_scan(256, 31, 128, seed()).unwrap();
    let filter = filled(spec, &random_items(10, 1, &pair(256)));
    let at = |distance: f64| filter.acceptance_probability(Distance::new(distance).unwrap());
    assert_eq!(at(36.5), 0.5 * (at(36.0) + at(37.0)));
    assert_eq!(at(1e9), at(256.0));
}

#[test]
fn filters_of_different_specs_do_not_merge() {
    let spec = ExactSpec::pigeonhole(64, 3, 2, 100, 0.01, seed()).unwrap();
    let mut filter = empty(spec);
    let others = [
        (ExactSpec { seed: Seed::new(2), ..spec }, "seed: Seed(1) here, Seed(2) there"),
        (ExactSpec { bits: 65, ..spec }, "metric: hamming over 64 bits here, hamming over 65 bits there"),
        (ExactSpec { radius: 2, ..spec }, "radius: 3 here, 2 there"),
        (ExactSpec::folded_scan(64, 3, 64, seed()).unwrap(), "construction"),
    ];
    for (other, named) in others {
        let error = filter.merge(&empty(other)).unwrap_err().to_string();
        assert!(error.contains(named), "{error:?} does not name {named:?}");
    }
}

#[test]
fn impossible_specs_say_why() {
    let refused = |result: Result<ExactSpec, SpecError>, says: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(says), "{error:?} does not say {says:?}");
    };
    refused(ExactSpec::pigeonhole(0, 0, 1, 10, 0.1, seed()), "1 to");
    refused(ExactSpec::pigeonhole(64, 3, 5, 10, 0.1, seed()), "from 1 to 4");
    refused(ExactSpec::pigeonhole(64, 3, 0, 10, 0.1, seed()), "from 1 to 4");
    refused(ExactSpec::pigeonhole(5, 4, 2, 10, 0.1, seed()), "accepts everything");
    refused(
        ExactSpec::new(256, 9, Construction::Pigeonhole { blocks: 1, table: Table::Direct }, seed()),
        "take more blocks",
    );
    refused(ExactSpec::new(256, 3, Construction::Pigeonhole { blocks: 4, table: Table::Direct }, seed()), "2^64 bits");
    refused(ExactSpec::covering(256, 7, 10, 0.1, seed()), "at most 6");
    refused(with_table(|table| Construction::Covering { table }, 64, 2, Table::Direct).checked(), "half of all bits");
    refused(ExactSpec::folded_scan(256, 4, 100, seed()), "multiple of 64");
    refused(ExactSpec::folded_scan(256, 4, 320, seed()), "at most 256");
    refused(ExactSpec::folded_scan(256, 64, 64, seed()), "wider folds");
    refused(ExactSpec::folded_scan(64, u32::MAX, 64, seed()), "smaller radius");
    let sampled = |bits, width, within| ExactSpec::new(bits, 4, Construction::SampledScan { width, within }, seed());
    refused(sampled(256, 100, 9), "multiple of 64");
    refused(sampled(256, 256, 9), "at most 192");
    refused(sampled(64, 64, 9), "at most 0");
    refused(sampled(256, 64, 64), "64");
}

#[test]
fn other_items_are_refused_and_named() {
    let spec = ExactSpec::folded_scan(64, 3, 64, seed()).unwrap();
    let mut filter = empty(spec);
    let refused = filter.insert("text", &mut Hashed::default());
    assert!(matches!(refused, Err(InsertError::Item(ItemError::WrongKind { .. }))));
    let (right, wrong) = (BitString::zeros(64), BitString::zeros(65));
    let InsertError::Batch(error) = filter.insert_all([&right, &right, &wrong, &right]).unwrap_err() else {
        panic!("an item is to blame")
    };
    assert_eq!((error.position, filter.len()), (2, 0));
    assert!(error.to_string().contains("item 2"), "{error}");
}
