//! The laws of generations, of every kind of filter and every answer to being full.

mod capacity;
mod merging;
mod windows;

use super::*;
use crate::{
    BitString, Check, ExactSpec, Family, Layout, Seed, Spec, Table,
    error::{MOST_GENERATIONS, SpecError},
    family::BitSampling,
    hash::Rng,
    plan::{PlanError, Request},
    spec::{Construction, Probing, WhenFull},
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

fn made(spec: &FilterSpec, terms: Terms) -> Filter<'static> {
    Filter::new(&spec.clone().on_terms(terms).unwrap()).unwrap()
}

fn texts(capacity: u64) -> Spec {
    Request::default().capacity(capacity).plan_dedup().unwrap().spec.near().unwrap().clone()
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
fn specs() -> Vec<(&'static str, FilterSpec)> {
    let near = |rows, bands, threshold, table| {
        Spec::new(BitSampling::new(BITS), Layout::new(rows, bands), threshold, table, Seed::new(5)).unwrap()
    };
    let bits = near(16, 12, 6, Table::Bits(500));
    let exact = |construction| FilterSpec::from(ExactSpec { bits: BITS, radius: 3, seed: Seed::new(5), construction });
    let lines = Table::Lines { lines: 3, hashes: 6 };
    let probed = Spec { probing: Some(Probing { bands: 2, reach: 1 }), ..bits.clone() };
    vec![
        ("bits", FilterSpec::from(bits)),
        ("direct", FilterSpec::from(near(9, 12, 10, Table::Direct))),
        ("lines", FilterSpec::from(near(16, 12, 6, lines))),
        ("probed", FilterSpec::from(probed)),
        ("pigeonhole", exact(Construction::Pigeonhole { blocks: 4, table: lines })),
        ("covering", exact(Construction::Covering { table: Table::Bits(2000) })),
        ("scan", exact(Construction::FoldedScan { width: 128 })),
    ]
}

const ENDS: [WhenFull; 4] =
    [WhenFull::Grow, WhenFull::Refuse, WhenFull::Forget { generations: 1 }, WhenFull::Forget { generations: 3 }];

fn each(mut check: impl FnMut(&str, Filter<'static>)) {
    for (name, spec) in specs() {
        for when_full in ENDS {
            let empty = made(&spec, terms(when_full));
            check(&format!("{name}, {when_full:?}"), empty);
        }
    }
}

fn bytes(generations: &Filter<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    generations.encode(&mut bytes).unwrap();
    bytes
}

/// One after the other; `None` where refused.
fn insert_each(generations: &mut Filter<'_>, items: &[BitString]) -> Vec<Option<bool>> {
    let mut room = Hashed::default();
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
        let mut room = Hashed::default();
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
            let mut opened = Filter::decode(&saved, Check::Everything).unwrap();
            assert_eq!(insert_each(&mut opened, part), insert_each(&mut whole, part), "{name}");
            assert!(bytes(&opened) == bytes(&whole), "{name}: at {}", whole.len());
            copied = opened.into_owned();
        }
        let described = Filter::new(&FilterSpec::decode(&whole.spec().encode(), Check::Everything).unwrap()).unwrap();
        assert!(described.is_empty() && described.spec() == whole.spec(), "{name}");
    });
}

/// Filters of every kind and end are shared at every stage, and what was shared stays as it was while the other one goes on.
#[test]
fn what_was_shared_stays_as_it_was_and_the_other_goes_on_alike() {
    each(|name, mut alone| {
        let mut live = alone.clone();
        for part in strings(900, 5).chunks(300) {
            let shared = live.share();
            assert_eq!(insert_each(&mut live, part), insert_each(&mut alone.clone(), part), "{name}");
            assert!(bytes(&shared) == bytes(&alone), "{name}: a change shows in what was shared");
            insert_each(&mut alone, part);
            assert!(bytes(&live) == bytes(&alone), "{name}: it goes on otherwise than alone");
        }
    });
}

#[test]
fn a_file_is_written_from_any_position_on() {
    each(|name, mut filter| {
        insert_each(&mut filter, &strings(700, 6));
        let shared = filter.share();
        insert_each(&mut filter, &strings(20, 7));
        for filter in [filter, shared] {
            let whole = bytes(&filter);
            let last = whole.len() as u64;
            let edges = [0, 1, 63, 64, 65, 127, 128, 200, 300, last / 3, last / 2 + 1, last - 64, last - 1, last];
            for from in edges {
                let mut rest = Vec::new();
                filter.encode_from(from, &mut rest).unwrap();
                assert!(rest == whole[from as usize..], "{name}: from {from} of {last}");
            }
        }
    });
}

/// `count` bits flipped at distinct random positions.
fn changed(string: &BitString, count: usize, rng: &mut Rng) -> BitString {
    let mut changed = string.clone();
    rng.distinct(count, u64::from(BITS)).into_iter().for_each(|position| changed.flip(position as usize));
    changed
}

#[test]
fn a_batch_with_an_item_of_a_wrong_kind_changes_nothing() {
    each(|name, mut filter| {
        let items = strings(10, 6);
        filter.insert_all(&items[..5]).unwrap();
        let before = bytes(&filter);
        let mut batch: Vec<Item<'_>> = items[5..].iter().map(Item::from).collect();
        batch.insert(3, Item::Text("no bits"));
        let error = filter.insert_all(batch.iter().copied()).unwrap_err();
        assert!(matches!(&error, InsertError::Batch(error) if error.position == 3), "{name}: {error}");
        assert!(filter.contains_all(batch).is_err());
        assert!(filter.insert("no bits", &mut Hashed::default()).is_err());
        assert!(bytes(&filter) == before, "{name}: refused, but changed");
    });
}

#[test]
fn keys_answer_as_items_do_and_count() {
    let items = strings(260, 14);
    for when_full in ENDS {
        let mut by_items = made(&specs()[0].1, terms(when_full));
        let mut by_keys = by_items.clone();
        let items = if when_full == WhenFull::Refuse { &items[..100] } else { &items[..] };
        let hasher = by_items.spec().hasher().unwrap();
        let (mut room, mut keys) = (Hashed::default(), Vec::new());
        for item in items {
            hasher.hash(item, &mut room).unwrap();
            keys.extend_from_slice(&room.keys);
        }
        let expected = insert_each(&mut by_items, items);
        let mut at_once = by_keys.clone();
        let counted = by_keys.insert_keys(&keys).unwrap();
        assert!(bytes(&by_keys) == bytes(&by_items));
        let by_tasks = at_once.insert_keys_by(&keys, 3, |tasks| tasks.into_iter().rev().for_each(|task| task()));
        assert!(by_tasks.unwrap() == counted && bytes(&at_once) == bytes(&by_items));
        let mut again = made(&specs()[0].1, terms(when_full));
        for ((item, counted), new) in items.iter().zip(counted).zip(expected) {
            assert_eq!(Some(!counted.near), new);
            again.make_room().unwrap();
            assert_eq!(counted.hits, again.find(item, &mut room).unwrap().hits);
            let most = again.filters().iter().rev().map(|filter| match filter {
                Generation::Near(filter) => (filter.count_hits(&room), filter.tables().ones()),
                Generation::Exact(_) => unreachable!(),
            });
            let sets: Vec<(u32, u64)> = most.collect();
            assert!(sets.contains(&(counted.hits, counted.set_bits.unwrap())), "{counted:?} is none of {sets:?}");
            again.insert(item, &mut room).unwrap();
        }
        let near: Vec<bool> = by_keys.contains_keys(&keys[..24]).unwrap().iter().map(|found| found.near).collect();
        assert_eq!(near, by_items.contains_all(&items[..2]).unwrap());
        assert!(matches!(by_keys.insert_keys(&keys[..13]), Err(InsertError::CutOff { .. })));
    }
    for (name, spec) in specs() {
        let filter = made(&spec, terms(WhenFull::Grow));
        match filter.contains_keys(&[]) {
            Err(InsertError::NoBands) => assert!(spec.near().is_none()),
            Err(InsertError::Probing) => assert_eq!(name, "probed"),
            answers => {
                assert!(answers.unwrap().is_empty());
                let (hasher, mut room, mut keys) = (spec.hasher().unwrap(), Hashed::default(), Vec::new());
                for item in &items {
                    hasher.hash(item, &mut room).unwrap();
                    keys.extend_from_slice(&room.keys);
                }
                let (mut at_once, mut one_by_one) = (filter.clone(), filter);
                let by_tasks = at_once.insert_keys_by(&keys, 2, |tasks| tasks.into_iter().for_each(|task| task()));
                assert!(by_tasks.unwrap() == one_by_one.insert_keys(&keys).unwrap(), "{name}");
                assert!(bytes(&at_once) == bytes(&one_by_one), "{name}");
            }
        }
    }
}

#[test]
fn hits_say_how_likely_acceptance_was() {
    let items = strings(50, 15);
    let mut filter = made(&specs()[0].1, terms(WhenFull::Grow));
    filter.insert_all(&items).unwrap();
    let mut room = Hashed::default();
    let found = filter.find(&items[0], &mut room).unwrap();
    assert!(found.near && found.hits == 12 && found.bands == 12, "{found:?}");
    let at = |hits| filter.acceptance_of_hits(Match { hits, ..found });
    // 6 of 12 must hit: a coin's bands do so with probability 1/2 + C(12, 6) / 2^13.
    assert!((at(6) - (0.5 + 924.0 / 8192.0)).abs() < 1e-9, "{}", at(6));
    assert_eq!((at(0), at(12)), (0.0, 1.0));
}

#[test]
fn senseless_terms_say_why() {
    let spec = &specs()[0].1;
    let why = |change: fn(&mut Terms)| {
        let mut terms = terms(WhenFull::Grow);
        change(&mut terms);
        spec.clone().on_terms(terms).err().unwrap().to_string()
    };
    assert!(why(|terms| terms.capacity = 0).contains("at least 1 item"));
    assert!(why(|terms| terms.near = terms.far).contains("near must be below far"));
    assert!(why(|terms| terms.max_false_positive = 1.0).contains("false-positive rate of 1"));
    assert!(why(|terms| terms.max_false_negative = f64::NAN).contains("NaN"));
    for generations in [0, 1025] {
        let terms = terms(WhenFull::Forget { generations });
        let error = spec.clone().on_terms(terms).err().unwrap();
        assert_eq!(error, SpecError::Generations { found: generations });
    }
}

#[test]
fn unrelated_items_are_accepted_by_chance_only() {
    use crate::family::{Hyperplane, Minutiae, PStable, Stable};
    let width = 4.0;
    let families: [(Family, u32); 5] = [
        (PStable { dimension: 8, width, stable: Stable::Gaussian }.into(), 6),
        (PStable { dimension: 8, width, stable: Stable::Cauchy }.into(), 6),
        (Minutiae { squares: 64, occupied: 20 }.into(), 2),
        (Hyperplane { dimension: 8 }.into(), 12),
        (BitSampling::new(64).into(), 12),
    ];
    for (family, rows) in families {
        let spec = Spec::new(family, Layout::new(rows, 8), 4, Table::Bits(100), Seed::new(1)).unwrap();
        let filter = made(&FilterSpec::from(spec), terms(WhenFull::Grow));
        let unrelated = filter.unrelated_acceptance();
        assert!((0.0..1e-6).contains(&unrelated), "{family:?}: {unrelated}");
    }
}

#[test]
fn aligned_files_are_used_in_place() {
    use crate::simd::line::Line;
    let mut filter = made(&specs()[0].1, terms(WhenFull::Grow));
    let items = strings(250, 18);
    for part in items.chunks(125) {
        filter.insert_all(part).unwrap();
        let bytes = bytes(&filter);
        let mut aligned = vec![Line([0; 8]); bytes.len() / 64];
        bytemuck::cast_slice_mut(&mut aligned).copy_from_slice(&bytes);
        let opened = Filter::decode(bytemuck::cast_slice(&aligned), Check::HeaderOnly).unwrap();
        assert_eq!(opened.filters().len(), filter.filters().len());
        assert!(near_filters(opened.filters()).all(|filter| filter.tables().bits().is_borrowed()));
    }
    assert!(filter.filters().len() > 1);
}

/// Those who print an error and then its sources would print a cause twice.
#[test]
fn errors_name_their_cause_once() {
    fn check(error: impl std::error::Error, cause: &str) {
        assert!(error.to_string().contains(cause), "{error}");
        assert!(error.source().is_none_or(|source| !error.to_string().contains(&source.to_string())), "{error}");
    }
    let filter = Filter::new(&FilterSpec::from(texts(100))).unwrap();
    let strings = strings(1, 3);
    let batch = filter.contains_all([strings[0].bits()]).unwrap_err();
    check(batch.clone(), &batch.cause.to_string());
    check(InsertError::from(batch.clone()), &batch.cause.to_string());
    let spec = FilterSpec::from(texts(100)).on_terms(Terms { capacity: 0, ..terms(WhenFull::Grow) }).err().unwrap();
    check(InsertError::from(spec.clone()), &spec.to_string());
    let request = Request { near: 7.0, ..Request::default() };
    check(request.plan_dedup().err().unwrap(), "near");
}
