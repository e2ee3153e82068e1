//! The laws of near filters, one suite for all: a filter's test names its spec and how to make items.

use super::{Filter, Generation};
use crate::{
    BloomFilter, Check, FilterSpec, Seed, Spec,
    bloom::BitArray,
    family::{
        Hashed,
        laws::{ItemBuffer, MakePair},
    },
    hash::Rng,
    item::Distance,
};

/// Every law. `make(d, rng)` makes two random items at distance `d`; items of different calls must be far from each other.
#[track_caller]
pub(crate) fn check(spec: &Spec, items: usize, distances: &[f64], make: MakePair<'_>) {
    check_repeats_are_seen(spec, items, make, distances[0]);
    check_monoid(spec, items, make, distances[0]);
    check_batches(spec, items, make, distances[0]);
    check_sharing(spec, items, make, distances[0]);
    check_codec(spec, items, make, distances[0]);
    check_acceptance(spec, items, distances, make);
}

fn random_items(count: usize, seed: u64, make: MakePair<'_>, distance: f64) -> Vec<ItemBuffer> {
    let mut rng = Rng::new(Seed::new(seed));
    (0..count).map(|_| make(distance, &mut rng).0).collect()
}

/// An empty filter on no terms.
pub(crate) fn empty(spec: impl Into<FilterSpec>) -> Filter<'static> {
    Filter::new(&spec.into()).unwrap()
}

fn filled(spec: &Spec, items: &[ItemBuffer]) -> Filter<'static> {
    let mut filter = empty(spec.clone());
    for item in items {
        filter.insert(item.view(), &mut Hashed::default()).unwrap();
    }
    filter
}

pub(crate) fn bytes(filter: &Filter<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes).unwrap();
    bytes
}

/// The tables, without the count of items, which depends on how often an item was inserted.
fn bits(filter: &Filter<'_>) -> Vec<u8> {
    let [Generation::Near(filter)] = filter.filters() else { panic!("one generation with bands") };
    let arrays = [filter.tables().bits()].into_iter().chain(filter.verification().map(BloomFilter::bits));
    arrays.flat_map(BitArray::to_bytes).collect::<Vec<_>>().concat()
}

fn has_keys(filter: &Filter<'_>, item: &ItemBuffer) -> usize {
    let mut hashed = Hashed::default();
    filter.hasher().unwrap().hash(item.view(), &mut hashed).unwrap();
    hashed.keys.iter().flatten().count()
}

fn check_repeats_are_seen(spec: &Spec, count: usize, make: MakePair<'_>, distance: f64) {
    let items = random_items(count, 21, make, distance);
    let mut filter = filled(spec, &items);
    for item in &items {
        // Minutiae give a print keys in few bands, so even a repeat may fall short of a threshold.
        if has_keys(&filter, item) as u32 == spec.rule.bands() {
            assert!(
                filter.contains_near(item.view(), &mut Hashed::default()).unwrap(),
                "an inserted item is not found"
            );
            assert!(!filter.insert(item.view(), &mut Hashed::default()).unwrap(), "a repeat is taken for new");
        }
    }
    assert!(filter.len() >= count as u64);
}

fn check_monoid(spec: &Spec, count: usize, make: MakePair<'_>, distance: f64) {
    let items = random_items(count, 22, make, distance);
    let (left, rest) = items.split_at(count / 3);
    let (middle, right) = rest.split_at(count / 3);
    let [a, b, c] = [left, middle, right].map(|part| filled(spec, part));
    let merged = |x: &Filter<'static>, y: &Filter<'_>| {
        let mut x = x.clone();
        x.merge(y).unwrap();
        x
    };
    let all = filled(spec, &items);
    assert_eq!(bytes(&merged(&merged(&a, &b), &c)), bytes(&all), "merging is not inserting into one");
    assert_eq!(bytes(&merged(&a, &b)), bytes(&merged(&b, &a)), "merging does not commute");
    assert_eq!(bytes(&merged(&a, &merged(&b, &c))), bytes(&all), "merging does not associate");
    assert_eq!(bits(&merged(&all, &all)), bits(&all), "merging is not idempotent");
    let empty = empty(spec.clone());
    assert_eq!(bytes(&merged(&empty, &all)), bytes(&all), "the empty filter is not neutral");
}

/// Batches answer as one insertion after the other does.
fn check_batches(spec: &Spec, count: usize, make: MakePair<'_>, distance: f64) {
    let mut items = random_items(count, 23, make, distance);
    items.extend_from_within(..count / 2);
    let mut one_by_one = empty(spec.clone());
    let expected: Vec<bool> =
        items.iter().map(|item| one_by_one.insert(item.view(), &mut Hashed::default()).unwrap()).collect();
    let mut batch = empty(spec.clone());
    assert_eq!(batch.insert_all(items.iter().map(ItemBuffer::view)).unwrap(), expected);
    assert_eq!(bytes(&batch), bytes(&one_by_one));
    let queries = random_items(count, 24, make, distance);
    let expected: Vec<bool> =
        queries.iter().map(|item| batch.contains_near(item.view(), &mut Hashed::default()).unwrap()).collect();
    assert_eq!(batch.contains_all(queries.iter().map(ItemBuffer::view)).unwrap(), expected);
}

/// A filter that was shared stays as it was, whatever becomes of the other one; and both go on as if they had been copied.
fn check_sharing(spec: &Spec, items: usize, make: MakePair<'_>, distance: f64) {
    let items = random_items(items.max(6), 21, make, distance);
    let (first, rest) = items.split_at(items.len() / 3);
    let (second, third) = rest.split_at(rest.len() / 2);
    let filled = |parts: &[&[ItemBuffer]]| {
        let mut filter = empty(spec.clone());
        parts.iter().for_each(|part| drop(filter.insert_all(part.iter().map(ItemBuffer::view)).unwrap()));
        filter
    };
    let mut live = filled(&[first]);
    let mut shared = live.share();
    live.insert_all(second.iter().map(ItemBuffer::view)).unwrap();
    assert_eq!(bytes(&shared), bytes(&filled(&[first])), "a change to one filter shows in the other");
    let both = live.share();
    for item in third {
        live.insert(item.view(), &mut Hashed::default()).unwrap();
    }
    shared.insert_all(third.iter().map(ItemBuffer::view)).unwrap();
    assert_eq!(bytes(&live), bytes(&filled(&[first, second, third])));
    assert_eq!(bytes(&both), bytes(&filled(&[first, second])));
    assert_eq!(bytes(&shared), bytes(&filled(&[first, third])));
    assert_eq!(bytes(&both.try_into_owned().unwrap()), bytes(&filled(&[first, second])));
    drop(shared);
    live.insert_all(third.iter().map(ItemBuffer::view)).unwrap();
    assert_eq!(live.bytes_to_prepare(9), 0, "nobody shares its tables any more");
}

fn check_codec(spec: &Spec, count: usize, make: MakePair<'_>, distance: f64) {
    let items = random_items(count, 26, make, distance);
    let filter = filled(spec, &items);
    let written = bytes(&filter);
    let read = Filter::decode(&written, Check::Everything).unwrap();
    assert_eq!((read.spec(), read.len()), (filter.spec(), filter.len()));
    assert_eq!(bytes(&read), written, "decoding then encoding changes bytes");
    for item in random_items(50, 27, make, distance).iter().chain(&items) {
        assert_eq!(
            read.contains_near(item.view(), &mut Hashed::default()),
            filter.contains_near(item.view(), &mut Hashed::default())
        );
    }
}

/// The measured acceptance at each distance from one stored item, by a fresh filter's functions each few queries.
/// 6 sigma: about 2e-9 by chance. Seeds are fixed, so red means a bug.
pub(crate) fn check_acceptance(spec: &Spec, items: usize, distances: &[f64], make: MakePair<'_>) {
    const FILTERS: u64 = 100;
    let queries = items.clamp(1, 100);
    for (i, &d) in distances.iter().enumerate() {
        let (mut accepted, mut expected) = (0.0, 0.0);
        for draw in 0..FILTERS {
            let mut rng = Rng::new(Seed::new(28).derive("items", draw * 100 + i as u64));
            let spec = Spec { seed: Seed::new(29).derive("filter", draw * 100 + i as u64), ..spec.clone() };
            let pairs: Vec<_> = (0..items).map(|_| make(d, &mut rng)).collect();
            let mut filter = empty(spec);
            filter.insert_all(pairs.iter().map(|(stored, _)| stored.view())).unwrap();
            expected += filter.acceptance_probability(Distance::new(d).unwrap()) * queries as f64;
            let answers = filter.contains_all(pairs[..queries].iter().map(|(_, query)| query.view())).unwrap();
            accepted += answers.into_iter().filter(|&near| near).count() as f64;
        }
        let tries = (FILTERS * queries as u64) as f64;
        let (rate, expected) = (accepted / tries, expected / tries);
        let sigma = (expected * (1.0 - expected) / tries).sqrt().max(0.5 / tries);
        assert!(
            (rate - expected).abs() <= 6.0 * sigma,
            "distance {d}: accepted {rate:.5}, expected {expected:.5}, sigma {sigma:.5}"
        );
    }
}
