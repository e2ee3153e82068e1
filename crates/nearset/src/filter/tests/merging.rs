//! Merged filters, and slices of one that are counted together.

use super::*;

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
