use super::*;
use crate::Seed;
use crate::{BitString, hash::Rng};

fn random(bits: usize, rng: &mut Rng) -> BitString {
    let mut string = BitString::zeros(bits);
    (0..bits).for_each(|position| string.set(position, rng.chance(0.5)));
    string
}

/// The string with so many distinct bits turned over.
fn turned(string: &BitString, count: usize, rng: &mut Rng) -> BitString {
    let mut other = string.clone();
    rng.distinct(count, string.bits().len() as u64).into_iter().for_each(|position| other.flip(position as usize));
    other
}

/// Half of them far from each other, half in clusters, with repeats.
fn mixed(bits: usize, count: usize, rng: &mut Rng) -> Vec<BitString> {
    let mut items: Vec<BitString> = Vec::new();
    while items.len() < count {
        let item = match rng.below(4) {
            0 | 1 => random(bits, rng),
            2 if !items.is_empty() => items[rng.below(items.len() as u64) as usize].clone(),
            _ if !items.is_empty() => {
                let near = items[rng.below(items.len() as u64) as usize].clone();
                let most = (bits / 4).max(1) as u64;
                turned(&near, rng.below(most + 1) as usize, rng)
            }
            _ => random(bits, rng),
        };
        items.push(item);
    }
    items
}

fn by_the_book(items: &[BitString], query: &BitString) -> Vec<Neighbour> {
    let distance = |item: &BitString| Distance::from_count(item.bits().hamming(query.bits()).unwrap());
    let mut all: Vec<Neighbour> =
        (0..).zip(items).map(|(id, item)| Neighbour { id, distance: distance(item) }).collect();
    all.sort();
    all
}

/// All answers for one query at the given radii, and some numbers of nearest ones.
#[track_caller]
fn check(index: &HammingIndex<'_>, items: &[BitString], query: &BitString, radii: &[u32]) {
    let all = by_the_book(items, query);
    let HammingSpec { bits, radius: planned, .. } = *index.spec();
    for &radius in radii {
        let end = all.partition_point(|neighbour| neighbour.distance <= Distance::from_count(radius));
        let found = index.search(query, None, Some(Distance::from_count(radius))).unwrap();
        assert_eq!(found, all[..end], "{bits} bits, {} items, radius {radius} of {planned}", items.len());
    }
    for top in [0, 1, 2, 10, items.len(), items.len() + 1] {
        let expected = &all[..top.min(all.len())];
        assert_eq!(
            index.search(query, Some(top), None).unwrap(),
            expected,
            "{bits} bits, nearest {top}, radius {planned}"
        );
    }
}

fn push_all(index: &mut HammingIndex<'_>, items: &[BitString]) {
    items.iter().for_each(|item| assert!(index.push(item).is_ok()));
}

fn index(items: &[BitString], bits: usize, radius: u32) -> HammingIndex<'static> {
    let spec = HammingSpec { bits: bits as u32, radius, seed: Seed::new(5) };
    let mut index = HammingIndex::of_checked(spec);
    push_all(&mut index, items);
    index.compact();
    index
}

/// Blocks of this shape, whatever they cost.
fn with_cuts(items: &[BitString], bits: usize, radius: u32, cuts: Vec<cut::Cut>) -> HammingIndex<'static> {
    let mut index = HammingIndex::of_checked(HammingSpec { bits: bits as u32, radius, seed: Seed::new(5) });
    push_all(&mut index, items);
    index.blocks = Blocks::build_as(cuts, bits as u32, index.spec.seed, &index.rows).unwrap();
    index
}

#[test]
fn answers_are_those_of_comparing_with_every_item() {
    let mut rng = Rng::new(Seed::new(1));
    for bits in (1..=20).chain([31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 192, 200, 255, 256, 257, 300]) {
        let items = mixed(bits, 400, &mut rng);
        for radius in [0, 1, 2, 3, bits / 16, bits / 8, bits / 4, bits] {
            let index = index(&items, bits, radius as u32);
            for _ in 0..4 {
                let near = &items[rng.below(items.len() as u64) as usize];
                let query = turned(near, radius.min(bits), &mut rng);
                let radii =
                    [0, radius / 2, radius.saturating_sub(1), radius, radius + 1, bits].map(|radius| radius as u32);
                check(&index, &items, &query, &radii);
                check(&index, &items, &random(bits, &mut rng), &radii);
            }
        }
    }
}

/// Small sets are scanned, so the blocks are forced here: every shape in turn, at every radius.
#[test]
fn blocks_of_any_shape_miss_nothing() {
    let mut rng = Rng::new(Seed::new(2));
    let mut shapes = 0;
    for bits in [3usize, 8, 24, 40, 64, 70, 130, 256, 300] {
        let items = mixed(bits, 3_000, &mut rng);
        for _ in 0..12 {
            let mut cuts = Vec::new();
            let mut left = bits as u32;
            while left > 0 && (cuts.is_empty() || rng.chance(0.8)) {
                let width = 1 + rng.below(u64::from(left.min(14))) as u32;
                let radius = rng.below(u64::from(width.min(9))) as u32;
                let address = if radius == 0 { 1 + rng.below(u64::from(width)) as u32 } else { width };
                cuts.push(cut::Cut { width, address, radius });
                left -= width;
            }
            let radius = cuts.iter().map(|cut| cut.radius + 1).sum::<u32>() - 1;
            assert!(cuts.iter().all(cut::Cut::is_possible));
            shapes += 1;
            let index = with_cuts(&items, bits, radius, cuts);
            for _ in 0..3 {
                let near = &items[rng.below(items.len() as u64) as usize];
                let query = turned(near, (radius as usize).min(bits), &mut rng);
                let all = by_the_book(&items, &query);
                for radius in 0..=radius {
                    // What blocks meet must hold all that is near, whether or not a scan would be cheaper.
                    let search = index.blocks.search(bits as u32, index.spec.seed);
                    let keys = search.keys(query.bits().words());
                    let mut scratch = Scratch::default();
                    let steps = search.steps[..=radius as usize].iter();
                    let lookups = steps.map(|&step| Lookup { step, key: keys[step.block], query: 0 });
                    search.take(&lookups.collect::<Vec<_>>(), &index.blocks, usize::MAX, &mut scratch);
                    let near = all.iter().take_while(|neighbour| neighbour.distance <= Distance::from_count(radius));
                    let met: std::collections::BTreeSet<u32> = scratch.ids.into_iter().collect();
                    assert!(near.clone().all(|neighbour| met.contains(&neighbour.id)), "{:?}", index.blocks.cuts);
                }
                check(&index, &items, &query, &[0, radius / 2, radius]);
            }
        }
    }
    assert_eq!(shapes, 9 * 12);
}

#[test]
fn queries_at_the_very_radius_are_answered_through_tables() {
    let mut rng = Rng::new(Seed::new(3));
    for (bits, radius) in [(256, 31), (256, 7), (64, 8), (64, 3), (128, 12)] {
        let items: Vec<BitString> = (0..20_000).map(|_| random(bits, &mut rng)).collect();
        let index = index(&items, bits, radius as u32);
        assert!(index.block_radii().count() > 0, "{bits} bits, radius {radius}: a scan is not what is to be tested");
        for _ in 0..300 {
            let id = rng.below(items.len() as u64) as u32;
            let query = turned(&items[id as usize], radius, &mut rng);
            assert!(index.meet(&[query.bits().words()], radius as u32)[0].is_some());
            let found = index.search(&query, None, Some(Distance::from_count(radius as u32))).unwrap();
            assert!(found.iter().any(|neighbour| neighbour.id == id), "{bits} bits, radius {radius}");
        }
        for query in items.iter().take(20) {
            let near = turned(query, radius / 2, &mut rng);
            check(&index, &items, &near, &[0, radius as u32 / 2, radius as u32, radius as u32 + 1]);
        }
    }
}

#[test]
fn repeats_are_all_found_however_many() {
    let mut rng = Rng::new(Seed::new(4));
    let mut items: Vec<BitString> = (0..10_000).map(|_| random(64, &mut rng)).collect();
    // Few enough to be listed, and so many that a scan is better.
    for (copies, from) in [(300, 0), (9_000, 1)] {
        let copied = items[from].clone();
        items.extend(std::iter::repeat_n(copied, copies));
    }
    let index = index(&items, 64, 4);
    for from in [0, 1, 2] {
        check(&index, &items, &items[from].clone(), &[0, 1, 4]);
        check(&index, &items, &turned(&items[from], 4, &mut rng), &[0, 3, 4]);
    }
}

#[test]
fn nothing_and_one_thing_can_be_searched() {
    let query = BitString::from_hex("d1c4b1a3f0e8877e").unwrap();
    let spec = HammingSpec { bits: 64, radius: 8, seed: Seed::new(1) };
    let mut index = HammingIndex::of_checked(spec);
    assert_eq!(index.len(), 0);
    check(&index, &[], &query, &[0, 8, 64]);
    assert_eq!(index.insert(&query).unwrap(), 0);
    check(&index, std::slice::from_ref(&query), &query, &[0, 8, 64]);
    index.compact();
    check(&index, std::slice::from_ref(&query), &query, &[0, 8, 64]);
    let far = BitString::zeros(64);
    assert!(index.search(&far, None, Some(Distance::from_count(8))).unwrap().is_empty());
    assert_eq!(index.search(&far, Some(5), None).unwrap().len(), 1);
    assert!(index.remove(0) && !index.remove(0) && !index.remove(7));
    assert!(index.len() == 0 && !index.contains(0));
    assert!(index.search(&query, Some(5), None).unwrap().is_empty());
}

#[test]
fn insertion_removal_and_merging_keep_answers_exact() {
    let mut rng = Rng::new(Seed::new(6));
    let items = mixed(96, 12_000, &mut rng);
    let mut index = index(&items[..5_000], 96, 6);
    // Some are indexed again on the way, and the last ones are not.
    for item in &items[5_000..9_500] {
        index.insert(item).unwrap();
    }
    assert_ne!(index.blocks.items, 5_000);
    assert_ne!(index.blocks.items, 9_500);
    let mut other = HammingIndex::of_checked(HammingSpec { bits: 96, radius: 3, seed: Seed::new(9) });
    push_all(&mut other, &items[9_500..]);
    other.labels_mut().insert(2, "third of the other");
    assert_eq!(index.merge(&other).unwrap(), 9_500);
    assert_eq!(index.labels().get(9_502), Some("third of the other"));
    assert_eq!(index.len(), 12_000);
    for query in items.iter().step_by(1_500) {
        check(&index, &items, &turned(query, 5, &mut rng), &[0, 5, 6, 7]);
    }

    let removed: Vec<u32> = (0..12_000).filter(|_| rng.chance(0.3)).collect();
    removed.iter().for_each(|&id| assert!(index.remove(id)));
    assert_eq!(index.len(), 12_000 - removed.len() as u32);
    for _ in 0..2 {
        for query in items.iter().step_by(2_000) {
            let query = turned(query, 4, &mut rng);
            let kept = |neighbour: &Neighbour| removed.binary_search(&neighbour.id).is_err();
            let all: Vec<Neighbour> = by_the_book(&items, &query).into_iter().filter(kept).collect();
            let end = all.partition_point(|neighbour| neighbour.distance.value() <= 6.0);
            assert_eq!(index.search(&query, None, Some(Distance::from_count(6))).unwrap(), all[..end]);
            assert_eq!(index.search(&query, Some(20), None).unwrap(), all[..20]);
        }
        index.compact();
    }
    assert_eq!(index.next_id(), 12_000);
}

#[test]
fn many_queries_are_answered_like_each_one() {
    let mut rng = Rng::new(Seed::new(7));
    let items = mixed(100, 5_000, &mut rng);
    let index = index(&items, 100, 9);
    let queries: Vec<BitString> = items.iter().step_by(50).map(|item| turned(item, 9, &mut rng)).collect();
    let mut each = Vec::new();
    for (number, query) in (0..).zip(&queries) {
        let mut near = index.search(query, None, Some(Distance::from_count(9))).unwrap();
        near.sort_by_key(|near| near.id);
        each.extend(near.into_iter().map(|near| (number, near)));
    }
    let rows: Vec<&[u64]> = queries.iter().map(|query| query.bits().words()).collect();
    assert_eq!(index.look_up_all(&rows, 0, 9, usize::MAX).as_ref(), Some(&each));
    assert_eq!(index.join(&rows, 0, 9, usize::MAX), Some(each));
}

#[test]
fn what_does_not_belong_is_refused() {
    let spec = HammingSpec { bits: 64, radius: 8, seed: Seed::new(1) };
    let mut index = HammingIndex::of_checked(spec);
    let short = BitString::zeros(63);
    let error = index.insert(&short).unwrap_err();
    assert!(matches!(error, IndexError::Item(ItemError::WrongLength { expected: 64, found: 63, .. })), "{error}");
    assert!(matches!(index.insert("a text"), Err(IndexError::Item(ItemError::WrongKind { .. }))));
    assert!(index.search(&short, None, Some(Distance::ZERO)).is_err() && index.search(&short, Some(1), None).is_err());
    assert_eq!(index.len(), 0);
    let other = HammingIndex::of_checked(HammingSpec { bits: 63, ..spec });
    assert!(index.merge(&other).is_err());
    assert!(HammingSpec { bits: 0, ..spec }.check().is_err());
}
