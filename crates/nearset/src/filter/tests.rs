//! The laws of generations, of every kind of filter and every answer to being full.

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

/// `count` bits flipped at distinct random positions.
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

fn changed(string: &BitString, count: usize, rng: &mut Rng) -> BitString {
    let mut changed = string.clone();
    rng.distinct(count, u64::from(BITS)).into_iter().for_each(|position| changed.flip(position as usize));
    changed
}

#[test]
fn a_window_knows_the_last_ones_and_no_older_ones() {
    let items = strings(1_000, 3);
    let mut room = Hashed::default();
    for (name, spec) in specs() {
        for generations in 1..=4 {
            let mut window = made(&spec, terms(WhenFull::Forget { generations }));
            for (i, batch) in items.chunks(37).enumerate() {
                window.insert_all(batch).unwrap();
                let seen = &items[..37 * i + batch.len()];
                let known = (u64::from(generations) - 1) * CAPACITY;
                let last = &seen[seen.len().saturating_sub(known as usize)..];
                assert!(window.contains_all(last).unwrap().iter().all(|&near| near), "{name}: one of the last is gone");
                assert!(
                    window.len() <= u64::from(generations) * CAPACITY && window.filters().len() <= generations as usize
                );
                if name == "scan" {
                    // Random strings are nowhere near each other, and a scan of whole strings has no chance hits.
                    let kept = window.len() as usize;
                    for old in &seen[..seen.len() - kept] {
                        assert!(
                            !window.contains_near(old, &mut room).unwrap(),
                            "what is older than the window is known"
                        );
                    }
                }
            }
            assert_eq!(window.filters().len(), generations as usize);
            assert!(window.older().iter().all(|filter| filter.len() == CAPACITY), "{name}: cut at other places");
        }
    }
}

#[test]
fn progress_is_by_distinct_items_where_these_are_counted_along_and_not_forgotten() {
    let items = strings(CAPACITY as usize, 31);
    each(|name, mut filter| {
        let half = CAPACITY as usize / 2;
        filter.insert_all(&items[..half]).unwrap();
        filter.insert_all(&items[..half]).unwrap();
        let progress = filter.progress().unwrap();
        assert_eq!((progress.generations, progress.items, progress.capacity), (1, 2 * half as u64, CAPACITY), "{name}");
        let forgets = matches!(filter.terms().unwrap().when_full, WhenFull::Forget { .. });
        assert_eq!(progress.ends_by_load, !forgets, "{name}");
        let is_told = !forgets && filter.newest().counts_load();
        let expected = if is_told { 0.5 } else { 1.0 };
        // Loads are estimates: six sigma of some 50 items in tables of 500 bits.
        assert!((progress.fill - expected).abs() < 0.1, "{name}: {progress:?}");
        assert_eq!(progress.fill == 1.0, !is_told, "{name}: {progress:?}");
    });
    assert_eq!(Filter::new(&specs()[0].1).unwrap().progress(), None);
}

/// A window that has had so many generations, the last one half full.
fn aged(spec: &FilterSpec, generations: u32, items: &[BitString]) -> Filter<'static> {
    let mut window = made(spec, terms(WhenFull::Forget { generations }));
    window.insert_all(items).unwrap();
    window
}

#[test]
fn ending_a_generation_is_as_if_it_had_been_full() {
    let items = strings(260, 32);
    for (name, spec) in specs() {
        for ended in 0..6 {
            let mut window = aged(&spec, 4, &items[..210]);
            assert_eq!(window.filters().len(), 3, "{name}");
            let room = window.room_to_age(ended);
            let before = window.bytes();
            let (added, forgotten) = window.age(ended).unwrap();
            assert_eq!((added, forgotten), (ended.min(1), ended.min(4).saturating_sub(1)), "{name}: {ended}");
            assert_eq!(window.bytes(), if name == "scan" { window.bytes() } else { before + room }, "{name}: {ended}");
            // What each generation holds now, the oldest first.
            let lens: Vec<u64> = window.filters().iter().map(Generation::len).collect();
            let mut expected = vec![100, 100, 10];
            expected.extend(std::iter::repeat_n(0, ended.min(4)));
            assert_eq!(lens, expected[expected.len().saturating_sub(4)..], "{name}: {ended}");
            // A file of it goes on as it does.
            let written = bytes(&window);
            let mut read = Filter::decode(&written, Check::Everything).unwrap().into_owned();
            assert_eq!(read.insert_all(&items[210..]).unwrap(), window.insert_all(&items[210..]).unwrap(), "{name}");
            assert!(bytes(&read) == bytes(&window), "{name}: {ended}");
        }
    }
}

#[test]
fn hidden_generations_are_not_asked_and_not_lost() {
    let (items, mut room) = (strings(210, 33), Hashed::default());
    for (name, spec) in specs() {
        let mut window = aged(&spec, 4, &items);
        let written = bytes(&window);
        for ended in [1, 2, 3, 4, 9, 0] {
            window.hide(ended);
            let mut expected = aged(&spec, 4, &items);
            expected.age(ended).unwrap();
            assert_eq!(window.contains_all(&items).unwrap(), expected.contains_all(&items).unwrap(), "{name}: {ended}");
            assert_eq!(window.len(), expected.len(), "{name}: {ended}");
            for item in items.iter().step_by(9) {
                let found = window.find(item, &mut room).unwrap();
                assert_eq!(found.near, expected.find(item, &mut room).unwrap().near, "{name}: {ended}");
                assert_eq!(found.near, window.contains_near(item, &mut room).unwrap(), "{name}: {ended}");
                assert_eq!(found.bands, expected.find(item, &mut room).unwrap().bands, "{name}: {ended}");
            }
            let wrong = BitString::zeros(BITS as usize + 1);
            assert!(window.contains_near(&wrong, &mut room).is_err() && window.contains_all([&wrong]).is_err());
            assert!(bytes(&window) == written, "{name}: {ended}");
        }
    }
    let mut grows = made(&specs()[0].1, terms(WhenFull::Grow));
    grows.insert_all(&items).unwrap();
    grows.hide(9);
    assert_eq!((grows.age(9).unwrap(), grows.window(), grows.len()), ((0, 0), 0, 210));
}

#[test]
fn repeats_and_what_it_was_made_for_do_not_fill_a_filter() {
    let items = strings(120, 4);
    for (name, spec) in specs() {
        for when_full in [WhenFull::Grow, WhenFull::Refuse] {
            let mut filter = made(&spec, terms(when_full));
            filter.insert_all(&items[..CAPACITY as usize]).unwrap();
            assert_eq!(filter.filters().len(), 1, "{name}: grew at the last one it was made for");
            // Direct tables of few rows know few items apart, so that their estimate is rougher.
            assert!(filter.load().abs_diff(CAPACITY) <= 10, "{name}: a load of {}", filter.load());
            // Where a filter that refuses can't tell repeats, it counts them.
            let tells = spec.near().is_some() && name != "lines";
            if when_full == WhenFull::Grow || tells {
                for _ in 0..10 {
                    let answers = filter.insert_all(&items[..CAPACITY as usize]).unwrap();
                    assert!(answers.iter().all(|new| !new), "{name}: a repeat is new");
                }
                assert_eq!(filter.filters().len(), 1, "{name}: repeats made it grow");
            }
        }
    }
}

#[test]
fn a_filter_that_refuses_changes_nothing_then() {
    let items = strings(45 * 9, 5);
    for (name, spec) in specs() {
        let mut filter = made(&spec, terms(WhenFull::Refuse));
        let mut refused = 0;
        let mut room = Hashed::default();
        for batch in items.chunks(9) {
            let before = bytes(&filter);
            match filter.insert_all(batch) {
                Ok(_) => assert_eq!(refused, 0, "{name}: took some after it had refused as many"),
                Err(InsertError::Full { capacity, load }) => {
                    assert!(capacity == CAPACITY && load > CAPACITY, "{name}: {load}");
                    assert!(bytes(&filter) == before, "{name}: refused, but changed");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > 0 && (90..=115).contains(&filter.len()), "{name}: {} of {CAPACITY}", filter.len());
        let error = items.iter().find_map(|item| filter.insert(item, &mut room).err()).unwrap();
        assert!(error.to_string().contains("reserve a larger one"), "{error}");
    }
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
fn room_is_never_more_than_was_said() {
    let items = strings(1_500, 7);
    each(|name, mut filter| {
        let (mut rng, mut rest) = (Rng::new(Seed::new(70)), &items[..]);
        while !rest.is_empty() {
            let size = (1 << rng.below(10)).min(rest.len());
            let batch = rest.split_off(..size).unwrap();
            let (before, room) = (filter.bytes(), filter.room_needed(size as u64));
            if filter.insert_all(batch).is_ok() {
                assert!(
                    filter.bytes().saturating_sub(before) <= room,
                    "{name}: {size} items took more than {room} bytes"
                );
            }
        }
        assert_eq!(Filter::new(&filter.spec()).unwrap().bytes(), filter.spec().bytes(), "{name}");
        if let Some(most) = filter.spec().most_bytes() {
            assert!(filter.bytes() <= most, "{name}");
        }
    });
}

#[test]
fn merging_is_inserting_both() {
    let items = strings(90, 8);
    each(|name, empty| {
        let filled = |items: &[BitString]| {
            let mut filter = empty.clone();
            filter.insert_all(items).unwrap();
            filter
        };
        let (a, b, both) = (filled(&items[..50]), filled(&items[50..]), filled(&items));
        let mut merged = a.clone();
        merged.merge(&b).unwrap();
        assert!(bytes(&merged) == bytes(&both), "{name}");
        let alone = Filter::with_terms(vec![b.filters()[0].clone()], None);
        let mut merged = alone.clone();
        merged.merge(&a).unwrap();
        assert!(bytes(&merged) == bytes(&both), "{name}: terms are taken over where there were none");
        let mut merged = a;
        merged.merge(&alone).unwrap();
        assert!(bytes(&merged) == bytes(&both), "{name}: no terms agree with any");
    });
}

#[test]
fn merged_generations_hold_what_both_held() {
    let items = strings(800, 9);
    let (few, many) = items.split_at(150);
    each(|name, empty| {
        let when_full = empty.terms().unwrap().when_full;
        if when_full == WhenFull::Refuse {
            return;
        }
        let filled = |items: &[BitString]| {
            let mut filter = empty.clone();
            filter.insert_all(items).unwrap();
            filter
        };
        for (mut one, other) in [(filled(few), filled(many)), (filled(many), filled(few))] {
            let known = |filter: &Filter<'_>| {
                items.iter().map(|item| filter.contains_near(item, &mut Hashed::default()).unwrap()).collect::<Vec<_>>()
            };
            let (before, added, room) = (known(&one), known(&other), one.room_to_merge(&other).unwrap());
            let (bytes_before, items_before) = (one.bytes(), one.len());
            one.merge(&other).unwrap();
            assert!(one.bytes() - bytes_before <= room, "{name}");
            assert_eq!(one.len(), items_before + other.len(), "{name}");
            for ((after, before), added) in known(&one).into_iter().zip(before).zip(added) {
                assert!(after || !(before || added), "{name}: merging lost an item");
            }
            // What was merged is a file like any other, and goes on.
            let saved = bytes(&one);
            let mut opened = Filter::decode(&saved, Check::Everything).unwrap();
            let more = strings(150, 10);
            assert_eq!(insert_each(&mut opened, &more), insert_each(&mut one, &more), "{name}");
        }
    });
}

#[test]
fn unlike_filters_are_not_merged() {
    let spec = &specs()[0].1;
    let mut one = made(spec, terms(WhenFull::Grow));
    one.insert_all(&strings(250, 11)).unwrap();
    assert!(one.filters().len() > 1);
    let before = bytes(&one);
    let refused = |one: &mut Filter<'_>, other: Filter<'_>| one.merge(&other).unwrap_err().to_string();
    let other_terms = made(spec, terms(WhenFull::Refuse));
    assert!(refused(&mut one, other_terms).contains("way of being full: Grow here, Refuse there"));
    for (_, other) in &specs()[1..] {
        refused(&mut one, made(other, terms(WhenFull::Grow)));
    }
    let request = Request::default().far(0.5).capacity(100);
    let of_texts = Filter::new(&request.plan_filter().unwrap().spec).unwrap();
    assert!(
        refused(&mut one, of_texts)
            .contains("metric: hamming over 128 bits here, jaccard over shingles of words:5 there")
    );
    // The second generation's table is not the first one's.
    let second = Filter::with_terms(vec![one.filters()[1].clone()], None);
    assert!(refused(&mut one, second).contains("table"));
    assert!(bytes(&one) == before);
}

/// The terms of a filter of bit strings, and one that was filled beyond its capacity.
fn planned(when_full: WhenFull, inserted: &[BitString]) -> (Terms, Filter<'static>) {
    let metric = Metric::Hamming { bits: BITS };
    let request = Request::new(metric, 6.0).far(36.0).capacity(500).errors(0.02, 0.01).when_full(when_full);
    let plan = match request.plan_filter() {
        Ok(plan) => plan,
        Err(PlanError::LargerThanItems { plan, .. }) => *plan,
        Err(error) => panic!("{error}"),
    };
    let near = plan.runners_up.iter().filter_map(|runner| runner.spec.as_ref()).find(|spec| spec.near().is_some());
    let spec = if plan.spec.near().is_some() { &plan.spec } else { near.unwrap() };
    let mut filter = Filter::new(spec).unwrap();
    filter.insert_all(inserted).unwrap();
    (*plan.terms(), filter)
}

#[test]
fn promises_are_kept_by_all_generations_together() {
    let items = strings(4_000, 12);
    for when_full in [WhenFull::Grow, WhenFull::Forget { generations: 4 }] {
        let (goal, filter) = planned(when_full, &items);
        assert!(filter.filters().len() >= 3, "{} generations", filter.filters().len());
        let predicted = filter.predicted_errors().unwrap();
        assert!(predicted.0 <= goal.max_false_negative, "{predicted:?}");
        let mut rng = Rng::new(Seed::new(13));
        let mut accepted = |items: &[BitString], distance: Distance, draws: usize| {
            let one = |_| {
                let item = &items[rng.below(items.len() as u64) as usize];
                changed(item, distance.value() as usize, &mut rng)
            };
            let queries: Vec<BitString> = (0..draws).map(one).collect();
            filter.contains_all(&queries).unwrap().into_iter().filter(|&near| near).count() as f64 / draws as f64
        };
        // 6 sigma over 20,000 draws, of the promise or the prediction as a probability; one draw of functions serves them
        // all, which the prediction averages over: hence a fifth more.
        let draws = 20_000;
        let sigmas = |p: f64| 6.0 * libm::sqrt(p * (1.0 - p) / draws as f64);
        let known = &items[items.len() - 1_500..];
        let missed = 1.0 - accepted(known, goal.near, draws);
        let most = goal.max_false_negative;
        assert!(missed <= 1.2 * most + sigmas(most), "{when_full:?}: missed {missed}");
        let wrong = accepted(known, goal.far, draws);
        let expected = predicted.1;
        assert!(wrong <= 1.2 * expected + sigmas(expected), "{when_full:?}: {wrong} accepted, {expected} predicted");
        if when_full != WhenFull::Grow {
            assert!(expected <= goal.max_false_positive, "{expected} predicted");
        }
    }
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
        let counted = by_keys.insert_keys(&keys).unwrap();
        assert!(bytes(&by_keys) == bytes(&by_items));
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
            answers => assert!(answers.unwrap().is_empty()),
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

/// A filter cut into slices of bands, each of them a filter of its own, answers as the whole one is predicted to.
#[test]
fn slices_that_are_counted_together_keep_the_promise() {
    let whole = texts(400);
    let bands = whole.rule.bands();
    let cuts = [0, 31, 70, bands];
    let slice = |range: &[u32]| {
        let spec = FilterSpec::from(whole.slice(range[0]..range[1]).unwrap());
        made(&spec, terms(WhenFull::Refuse))
    };
    let terms_of_all = Terms { capacity: 400, ..terms(WhenFull::Refuse) };
    let mut slices: Vec<Filter<'static>> = cuts.windows(2).map(slice).collect();
    slices.iter_mut().for_each(|slice| slice.terms = Some(terms_of_all));
    let (hasher, mut room) = (Hasher::of_checked(&whole), Hashed::default());
    let bits = whole.bits_per_band() * u64::from(bands);
    let mut rng = Rng::new(Seed::new(16));
    let sets: Vec<Vec<u64>> = (0..400).map(|_| (0..40).map(|_| rng.next_u64()).collect()).collect();
    let mut ask = |set: &[u64], insert: bool| {
        hasher.hash(set, &mut room).unwrap();
        let (mut hits, mut set_bits) = (0, 0);
        for (slice, range) in slices.iter_mut().zip(cuts.windows(2)) {
            let keys = &room.keys[range[0] as usize..range[1] as usize];
            let counted = if insert { slice.insert_keys(keys).unwrap() } else { slice.contains_keys(keys).unwrap() };
            hits += counted[0].hits;
            set_bits += counted[0].set_bits.unwrap();
        }
        hits >= whole.rule.threshold_at(set_bits as f64 / bits as f64).unwrap()
    };
    assert!(sets.iter().filter(|set| ask(set, true)).count() <= 3, "unrelated items are new");
    assert!(sets.iter().all(|set| ask(set, false)), "a repeat is not found");
    let mut single = laws::empty(whole.clone());
    single.insert_all(sets.iter().map(|set| &set[..])).unwrap();
    for replaced in [3, 5, 7] {
        // Each of 2,000 queries shares 40 - replaced of 40 + replaced elements with one set; 6 sigma, and the seed is fixed.
        let draws = 2_000;
        let similar = |draw: usize| {
            let mut set = sets[draw % sets.len()].clone();
            set[..replaced].iter_mut().for_each(|element| *element = rng.next_u64());
            set
        };
        let accepted = (0..draws).map(similar).filter(|set| ask(set, false)).count() as f64 / draws as f64;
        let distance = Distance::new(2.0 * replaced as f64 / (40.0 + replaced as f64)).unwrap();
        let expected = single.acceptance_probability(distance);
        let sigma = libm::sqrt(expected * (1.0 - expected) / draws as f64).max(1.0 / draws as f64);
        assert!((accepted - expected).abs() <= 6.0 * sigma, "{replaced}: {accepted}, not {expected} within {sigma}");
    }
}

#[test]
fn what_has_no_slices_says_so() {
    let whole = texts(100);
    let all = whole.rule.bands();
    for range in [0..0, 3..all + 1, all..all] {
        assert!(matches!(whole.slice(range), Err(SpecError::Slice { .. })));
    }
    assert!(whole.slice(0..all).is_ok());
    let probed = &specs()[3].1;
    assert_eq!(probed.near().unwrap().slice(0..2), Err(SpecError::Undivided));
}

#[test]
fn growth_ends_somewhere_and_a_scan_needs_none() {
    let one = Terms { capacity: 1, ..terms(WhenFull::Grow) };
    let items = strings(3_000, 17);
    let mut direct = made(&specs()[1].1, one);
    let mut room = Hashed::default();
    let error = items.iter().find_map(|item| direct.insert(item, &mut room).err()).unwrap();
    assert_eq!(error, InsertError::TooManyGenerations { capacity: 1 });
    assert_eq!(direct.filters().len(), MOST_GENERATIONS);
    let before = direct.len();
    assert!(direct.insert(&items[2_999], &mut room).is_err() && direct.len() == before);
    let mut batch = made(&specs()[1].1, one);
    assert_eq!(batch.insert_all(&items), Err(error));
    assert!(batch.is_empty(), "a batch that might be too many is refused whole");
    batch.insert_all(&items[..MOST_GENERATIONS]).unwrap();
    let mut scan = made(&specs()[6].1, one);
    scan.insert_all(&items).unwrap();
    assert_eq!((scan.filters().len(), scan.load()), (1, 3_000));
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

/// What grows is emptier than what it grew from, so that many generations accept little more of what is unrelated than the first.
#[test]
fn growth_keeps_strangers_out() {
    let mut filter = Filter::new(&Request::default().capacity(CAPACITY).plan_filter().unwrap().spec).unwrap();
    let bands = filter.spec().near().unwrap().rule.bands() as usize;
    let mut rng = Rng::new(Seed::new(21));
    let mut keys = || (0..bands).map(|_| crate::family::Key::new(rng.next_u64() | 1)).collect::<Vec<_>>();
    let mut worst = [0.0; 6];
    for (generations, worst) in (1..).zip(&mut worst) {
        while filter.filters().len() == generations {
            if filter.is_full() {
                *worst = filter.unrelated_acceptance().max(*worst);
                let capacity = filter.capacity().unwrap();
                assert_eq!(capacity, ((1 << generations) - 1) * CAPACITY);
                assert!(filter.load().abs_diff(capacity) <= capacity / 20, "{} of {capacity}", filter.load());
                filter.expect_not_overfull(0).unwrap();
            }
            filter.insert_keys(&keys()).unwrap();
        }
    }
    assert!(worst.iter().all(|&worst| worst > 0.0 && worst <= crate::plan::MAX_UNRELATED), "{worst:?}");
    assert!(worst[5] <= worst[0] + 1e-5, "{worst:?}");
}

#[test]
fn merging_can_overfill_and_it_is_said() {
    for (name, spec) in specs() {
        let full = |seed| {
            let mut filter = made(&spec, terms(WhenFull::Refuse));
            filter.insert_all(&strings(CAPACITY as usize, seed)).unwrap();
            filter
        };
        let mut merged = full(1);
        merged.expect_not_overfull(0).unwrap();
        merged.merge(&full(2)).unwrap();
        match merged.expect_not_overfull(0) {
            Ok(()) => assert_eq!(name, "scan", "twice the items are too many"),
            Err(error) => {
                assert_eq!(error.capacity, Some(CAPACITY), "{name}");
                assert!(error.load.abs_diff(2 * CAPACITY) <= CAPACITY / 4, "{name}: {error}");
            }
        }
        assert!(!full(1).has_room_for(&full(2)));
        let half = made(&spec, terms(WhenFull::Refuse));
        assert!(half.has_room_for(&full(2)));
    }
}

/// Loads are estimates, coarse ones where few items are expected: what grew by itself is never called overfull.
#[test]
fn what_grew_is_not_overfull_however_small_it_began() {
    let items = strings(400, 9);
    for (name, spec) in specs() {
        for capacity in (1..=20).chain([33, 64, 150, 300]) {
            let terms = Terms { capacity, ..terms(WhenFull::Grow) };
            let mut filter = made(&spec, terms);
            for batch in items.chunks(7) {
                filter.insert_all(batch).unwrap();
                filter.expect_not_overfull(0).unwrap_or_else(|error| panic!("{name}, {capacity}: {error}"));
            }
        }
    }
}

/// Nothing says what it is made for, so what it accepts by chance decides.
#[test]
fn a_filter_on_no_terms_is_overfull_when_it_accepts_strangers() {
    for (name, spec) in specs() {
        let mut filter = Filter::new(&spec).unwrap();
        assert_eq!(filter.capacity(), None);
        let outcome = strings(6400, 3).chunks(7).find_map(|batch| {
            let refused = filter.expect_not_overfull(batch.len() as u64).err();
            filter.insert_all(batch).unwrap();
            refused
        });
        match outcome {
            Some(error) => assert!(error.unrelated > 0.01 && error.capacity.is_none(), "{name}: {error}"),
            None => assert_eq!(name, "scan"),
        }
        // Tables that are full to the last bit tell a number all the same.
        if filter.hasher().is_none() {
            continue;
        }
        filter.extend(&strings(60_000, 4)).unwrap();
        assert!(filter.load() < 1 << 20, "{name}: {}", filter.load());
        assert!(filter.unrelated_acceptance() > 0.9, "{name}");
    }
}
