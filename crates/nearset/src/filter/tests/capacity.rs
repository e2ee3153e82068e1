//! What becomes of filters that are full: they refuse, grow, or say that they are overfull.

use super::*;

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
