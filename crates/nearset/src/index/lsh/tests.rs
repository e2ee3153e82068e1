//! The laws of near-neighbour indexes, for every family.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    Check, Family, Layout, Seed,
    family::{
        BitSampling, CrossPolytope, DiceMinHash, Hyperplane, MinHash, Minutiae, PStable, Stable, SymbolSampling,
        WeightedMinHash,
        laws::{ItemBuffer, MakePair, bit_pair},
        pairs,
    },
    hash::Rng,
    item::{self, BitString},
};

fn distance(value: f64) -> Distance {
    Distance::new(value).unwrap()
}

fn spec(family: impl Into<Family>, rows: u32, bands: u32) -> LshSpec {
    LshSpec::new(family, Layout::new(rows, bands), Seed::new(42)).unwrap()
}

fn filled(spec: &LshSpec, items: &[ItemBuffer]) -> LshIndex<'static> {
    let mut index = LshIndex::of_checked(spec.clone());
    for (expected, item) in (0..).zip(items) {
        assert_eq!(index.insert(item.view()), Ok(expected));
    }
    index
}

/// The ids of the items that are in, ascending.
fn ids(index: &LshIndex<'_>) -> impl Iterator<Item = u32> {
    (0..index.next).filter(|&id| index.contains(id))
}

fn bytes(index: &LshIndex<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    index.encode(&mut bytes).unwrap();
    bytes
}

/// Two sets of 60 whose Jaccard distance is as near to the given one as can be.
fn set_pair(distance: f64, rng: &mut Rng) -> (ItemBuffer, ItemBuffer) {
    let common = (60.0 * 2.0 * (1.0 - distance) / (2.0 - distance)).round() as usize;
    let a: Vec<u64> = (0..60).map(|_| rng.next_u64()).collect();
    let b: Vec<_> = (0..60).map(|i| if i < common { a[i] } else { rng.next_u64() }).collect();
    (ItemBuffer::from(crate::Item::Set(&a)), ItemBuffer::from(crate::Item::Set(&b)))
}

fn weighted_pair(distance: f64, rng: &mut Rng) -> (ItemBuffer, ItemBuffer) {
    let weights = |set: ItemBuffer| {
        let crate::Item::Set(set) = set.view() else { panic!("the test item is not a set") };
        ItemBuffer::from(crate::Item::Weighted(&set.iter().map(|&element| (element, 0.5)).collect::<Vec<_>>()))
    };
    let (a, b) = set_pair(distance, rng);
    (weights(a), weights(b))
}

fn euclid(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn manhattan(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x.abs()).sum()
}

fn symbol_pair(distance: f64, rng: &mut Rng) -> (ItemBuffer, ItemBuffer) {
    let a: Vec<u32> = (0..40).map(|_| rng.below(4) as u32).collect();
    let mut b = a.clone();
    rng.distinct(distance as usize, 40).into_iter().for_each(|at| b[at as usize] += 4);
    (
        ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&a))),
        ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&b))),
    )
}

/// A spec, how to make pairs of its items, and the distances at which success is measured.
type Case = (LshSpec, Box<dyn Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer)>, [f64; 3]);

/// Every family, probed where it can be.
fn cases() -> Vec<Case> {
    let probed = |spec: LshSpec| LshSpec { probes: 5, ..spec };
    let gaussian = PStable { dimension: 16, width: 4.0, stable: Stable::Gaussian };
    let cauchy = PStable { dimension: 16, width: 8.0, stable: Stable::Cauchy };
    vec![
        (spec(BitSampling::new(96), 8, 6), Box::new(bit_pair(96)), [2.0, 12.0, 30.0]),
        (spec(SymbolSampling::new(40), 4, 6), Box::new(symbol_pair), [1.0, 8.0, 20.0]),
        (spec(MinHash::default(), 3, 8), Box::new(set_pair), [0.2, 0.5, 0.8]),
        (spec(WeightedMinHash::default(), 3, 8), Box::new(weighted_pair), [0.2, 0.5, 0.8]),
        (spec(Hyperplane { dimension: 16 }, 10, 5), Box::new(pairs::at_angle(16)), [0.1, 0.5, 1.2]),
        (probed(spec(Hyperplane { dimension: 16 }, 12, 4)), Box::new(pairs::at_angle(16)), [0.1, 0.5, 1.2]),
        (spec(CrossPolytope { dimension: 16 }, 1, 6), Box::new(pairs::at_angle(16)), [0.1, 0.5, 1.2]),
        (spec(gaussian, 4, 5), Box::new(pairs::moved(16, euclid)), [0.5, 2.0, 6.0]),
        (probed(spec(gaussian, 6, 3)), Box::new(pairs::moved(16, euclid)), [0.5, 2.0, 6.0]),
        (probed(spec(cauchy, 4, 3)), Box::new(pairs::moved(16, manhattan)), [0.5, 2.0, 9.0]),
    ]
}

/// Clusters of three: an item, one near it, and the first again.
fn some_items(count: usize, distance: f64, make: MakePair<'_>) -> Vec<ItemBuffer> {
    let mut rng = Rng::new(Seed::new(31));
    (0..count.div_ceil(3))
        .flat_map(|_| {
            let (a, b) = make(distance, &mut rng);
            [a.clone(), b, a]
        })
        .take(count)
        .collect()
}

/// What the candidates are by definition: items with which the query shares a key in some band.
struct Book {
    functions: Box<dyn Functions>,
    keys: BTreeMap<u32, Vec<Option<Key>>>,
}

impl Book {
    fn new(index: &LshIndex<'_>) -> Self {
        let spec = index.spec();
        let functions = spec.family.draw(functions_seed(spec.seed), spec.layout).unwrap();
        Self { functions, keys: BTreeMap::new() }
    }

    fn hash(&self, item: &ItemBuffer) -> Hashed {
        let mut hashed = Hashed::default();
        self.functions.hash(item.view(), &mut hashed).unwrap();
        hashed
    }

    fn insert(&mut self, id: u32, item: &ItemBuffer) {
        self.keys.insert(id, self.hash(item).keys);
    }

    fn candidates(&self, item: &ItemBuffer, probes: u32) -> Vec<u32> {
        let hashed = self.hash(item);
        let tried: Vec<Vec<Key>> = (0..hashed.keys.len())
            .map(|band| {
                let mut tried: Vec<Key> = hashed.keys[band].into_iter().collect();
                self.functions.probe(&hashed, band, probes - 1, &mut |key| tried.push(key));
                tried
            })
            .collect();
        let shares = |keys: &[Option<Key>]| {
            keys.iter().zip(&tried).any(|(key, tried)| key.is_some_and(|key| tried.contains(&key)))
        };
        self.keys.iter().filter(|(_, keys)| shares(keys)).map(|(&id, _)| id).collect()
    }
}

#[test]
fn candidates_are_those_that_share_a_key_and_repeats_are_always_among_them() {
    for (spec, make, distances) in cases() {
        let items = some_items(400, distances[0], &make);
        let index = filled(&spec, &items);
        let mut book = Book::new(&index);
        (0..).zip(&items).for_each(|(id, item)| book.insert(id, item));
        for (id, item) in (0..).zip(&items) {
            let found = index.candidates(item.view()).unwrap();
            assert_eq!(found, book.candidates(item, spec.probes), "{spec:?}");
            assert!(found.contains(&id), "{spec:?}: item {id} does not find itself");
            let first = &index.search(item.view(), Some(2), None).unwrap();
            assert_eq!(first[0].distance, Distance::ZERO, "{spec:?}");
        }
    }
}

#[test]
fn removed_items_are_not_found_and_ids_stay() {
    for (spec, make, distances) in cases() {
        let items = some_items(500, distances[0], &make);
        let mut index = filled(&spec, &items);
        let mut book = Book::new(&index);
        (0..).zip(&items).for_each(|(id, item)| book.insert(id, item));
        // More than half, so that the tables are rewritten on the way.
        for id in (0..500).filter(|id| id % 5 != 2) {
            assert!(index.contains(id) && index.remove(id) && !index.contains(id));
            assert!(!index.remove(id), "removed twice");
            book.keys.remove(&id);
            if id % 50 == 0 {
                let query = &items[id as usize];
                assert_eq!(index.candidates(query.view()).unwrap(), book.candidates(query, spec.probes));
            }
        }
        assert_eq!(index.len(), 100);
        assert!(ids(&index).eq((0..500).filter(|id| id % 5 == 2)));
        assert_eq!(index.insert(items[0].view()), Ok(500), "ids are not given twice");
        book.insert(500, &items[0]);
        for item in &items {
            assert_eq!(index.candidates(item.view()).unwrap(), book.candidates(item, spec.probes));
            for found in index.search(item.view(), Some(3), None).unwrap() {
                let original = if found.id == 500 { &items[0] } else { &items[found.id as usize] };
                assert_eq!(found.distance, spec.family.distance(item.view(), original.view()).unwrap());
            }
        }
        assert!(!index.remove(999));
    }
}

#[test]
fn merging_is_inserting_into_one() {
    for (spec, make, distances) in cases() {
        let items = some_items(450, distances[0], &make);
        let all = filled(&spec, &items);
        for cut in [0, 1, 130, 300, 450] {
            let (mut left, right) = (filled(&spec, &items[..cut]), filled(&spec, &items[cut..]));
            assert_eq!(left.merge(&right), Ok(cut as u32));
            assert_eq!(bytes(&left), bytes(&all), "{spec:?} cut at {cut}");
            assert_eq!(left.len(), 450);
            for item in items.iter().step_by(50) {
                assert_eq!(left.candidates(item.view()), all.candidates(item.view()));
            }
        }
        // What was removed stays removed, and ids are shifted.
        let (mut left, mut right) = (filled(&spec, &items[..10]), filled(&spec, &items[..10]));
        right.remove(3);
        left.merge(&right).unwrap();
        assert!(ids(&left).eq((0..20).filter(|&id| id != 13)));
        assert_eq!(left.insert(items[0].view()), Ok(20));
    }
}

#[test]
fn merging_names_the_first_difference() {
    let one = spec(BitSampling::new(64), 8, 4);
    let why = |other: LshSpec| {
        let mut index = LshIndex::of_checked(one.clone());
        match index.merge(&LshIndex::of_checked(other)) {
            Err(IndexError::Merge(error)) => error.what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why(spec(BitSampling::new(32), 8, 4)), "hash family");
    assert_eq!(why(LshSpec { seed: Seed::new(1), ..one.clone() }), "seed");
    assert_eq!(why(spec(BitSampling::new(64), 7, 4)), "number of rows");
    assert_eq!(why(spec(BitSampling::new(64), 8, 5)), "number of bands");
    assert_eq!(why(LshSpec { keeps_items: false, ..one.clone() }), "keeping of items");
}

#[test]
fn a_file_answers_as_the_index_that_wrote_it() {
    for (spec, make, distances) in cases() {
        for keeps_items in [true, false] {
            let spec = LshSpec { keeps_items, ..spec.clone() };
            let items = some_items(300, distances[0], &make);
            for count in [0, 1, 2, 140, 300] {
                let mut index = filled(&spec, &items[..count]);
                (0..count as u32).step_by(7).for_each(|id| assert!(index.remove(id)));
                let written = bytes(&index);
                let opened = LshIndex::decode(&written, Check::Everything).unwrap();
                assert_eq!(bytes(&opened), written);
                assert!(ids(&opened).eq(ids(&index)));
                for item in items.iter().step_by(20) {
                    assert_eq!(opened.candidates(item.view()), index.candidates(item.view()));
                    assert_eq!(opened.search(item.view(), Some(5), None), index.search(item.view(), Some(5), None));
                }
                // It goes on where it was left.
                let mut grown = opened.into_owned();
                assert_eq!(grown.insert(items[0].view()), index.insert(items[0].view()));
                assert_eq!(bytes(&grown), bytes(&index));
            }
        }
    }
}

#[test]
fn success_is_as_predicted() {
    // One draw of functions serves 20 pairs; 200 draws, so 4,000 pairs. Pairs of one draw are independent too, because their
    // directions are.
    let (draws, pairs) = (200, 20);
    for (spec, make, distances) in cases() {
        for at in distances {
            let (mut rng, mut found, mut expected) = (Rng::new(Seed::new(77)), 0.0, 0.0);
            for draw in 0..draws {
                let spec = LshSpec { seed: Seed::new(draw), keeps_items: false, ..spec.clone() };
                let mut index = LshIndex::of_checked(spec.clone());
                let made: Vec<(ItemBuffer, ItemBuffer)> = (0..pairs).map(|_| make(at, &mut rng)).collect();
                made.iter().for_each(|(a, _)| assert!(index.insert(a.view()).is_ok()));
                found +=
                    (0..).zip(&made).filter(|(id, (_, b))| index.candidates(b.view()).unwrap().contains(id)).count()
                        as f64;
                if draw == 0 {
                    let (a, b) = &made[0];
                    expected = spec.success_probability(spec.family.distance(a.view(), b.view()).unwrap());
                }
            }
            let count = f64::from(draws as u32 * pairs);
            let (seen, sigma) = (found / count, (expected * (1.0 - expected) / count).sqrt());
            // 6 sigma of the measurement, and the 2 % that the prediction of probing is averaged to.
            let tolerance = 6.0 * sigma + if spec.probes > 1 { 0.02 * expected } else { 1e-9 };
            assert!((seen - expected).abs() <= tolerance, "{seen}, expected {expected} at {at}: {spec:?}");
        }
    }
}

#[test]
fn more_probes_find_more() {
    let make = pairs::at_angle(24);
    let mut rng = Rng::new(Seed::new(5));
    let made: Vec<(ItemBuffer, ItemBuffer)> = (0..500).map(|_| make(0.6, &mut rng)).collect();
    let items: Vec<ItemBuffer> = made.iter().map(|(a, _)| a.clone()).collect();
    let mut index = filled(&spec(Hyperplane { dimension: 24 }, 14, 2), &items);
    let mut before = 0;
    for probes in [1, 4, 16, 64] {
        index.spec.probes = probes;
        let hit = |(id, (_, b)): &(u32, &(ItemBuffer, ItemBuffer))| index.candidates(b.view()).unwrap().contains(id);
        let found = (0..).zip(&made).filter(hit).count();
        assert!(found > before, "{found} with {probes} probes, {before} before");
        before = found;
    }
    assert!(LshSpec { probes: 65, ..index.spec }.check().is_err());
    assert!(LshSpec { probes: 2, ..spec(MinHash::default(), 2, 2) }.check().is_err());
}

#[test]
fn ties_and_repeats_are_all_returned_in_order() {
    let item = BitString::from_hex("0123456789abcdef").unwrap();
    let mut near = item.clone();
    near.flip(5);
    let mut index = LshIndex::of_checked(spec(BitSampling::new(64), 4, 40));
    for i in 0..300 {
        index.insert(if i % 3 == 0 { &near } else { &item }).unwrap();
    }
    let found = index.search(&item, Some(usize::MAX), None).unwrap();
    let expected = (0..300).filter(|i| i % 3 != 0).chain((0..300).step_by(3));
    assert!(found.iter().map(|neighbour| neighbour.id).eq(expected));
    assert!(found.is_sorted());
    assert_eq!(index.search(&item, Some(7), None).unwrap(), found[..7]);
    assert_eq!(index.search(&item, None, Some(Distance::ZERO)).unwrap(), found[..200]);
    assert_eq!(index.search(&item, Some(0), None).unwrap(), []);
}

/// What is left out before exact distances are worked out was not wanted: angles of all sizes, and norms from one end to the other.
#[test]
fn quick_cosines_lose_nothing() {
    let mut rng = Rng::new(Seed::new(10));
    for scale in [1e-38f32, 1e-20, 1.0, 3e18, 1e38] {
        let items: Vec<Vec<f32>> = (0..300)
            .map(|i| {
                let spread = libm::exp(-f64::from(i % 30));
                let noise = (0..20).map(|at| f64::from(u8::from(at == 3)) + spread * (rng.unit() - 0.5));
                noise.map(|x| (x as f32).clamp(-1.0, 1.0) * scale).collect()
            })
            .collect();
        let mut index = LshIndex::of_checked(spec(Hyperplane { dimension: 20 }, 1, 30));
        items.iter().for_each(|item| assert!(index.insert(item.as_slice()).is_ok()));
        for item in items.iter().step_by(20) {
            let candidates = index.candidates(item.as_slice()).unwrap();
            let exact =
                |id: &u32| Neighbour { id: *id, distance: item::vector::angle(item, &items[*id as usize]).unwrap() };
            let mut expected: Vec<Neighbour> = candidates.iter().map(exact).collect();
            expected.sort_unstable();
            for top in [0, 1, 10, 299, 300, 1000] {
                assert_eq!(
                    index.search(item.as_slice(), Some(top), None).unwrap(),
                    expected[..top.min(expected.len())]
                );
            }
            for limit in [0, 10, 150, expected.len() - 1].map(|at| expected[at].distance) {
                let inside = expected.iter().take_while(|neighbour| neighbour.distance <= limit).count();
                assert_eq!(index.search(item.as_slice(), None, Some(limit)).unwrap(), expected[..inside]);
            }
            assert_eq!(index.search(item.as_slice(), None, Some(distance(4.0))).unwrap(), expected);
        }
    }
}

#[test]
fn a_table_takes_no_more_than_twelve_bytes_an_item() {
    let spec = LshSpec { keeps_items: false, ..spec(BitSampling::new(64), 20, 16) };
    let mut index = LshIndex::of_checked(spec);
    let mut rng = Rng::new(Seed::new(9));
    for count in 1..=20_000u32 {
        index.insert(&BitString::from_bytes(&rng.next_u64().to_le_bytes())).unwrap();
        if count >= 100 && (count % 997 == 0 || count.is_power_of_two()) {
            let each = index.table_bytes() as f64 / (16.0 * f64::from(count));
            // One number an address, and one more for each table and run.
            assert!(each <= 12.2, "{each} bytes per item and table at {count}");
        }
    }
    index.compact();
    let ids = 4.0 / 16.0;
    assert!(index.bytes() as f64 / (16.0 * 20_000.0) <= 12.01 + ids);
}

#[test]
fn an_index_without_items_has_no_distances() {
    let kept = LshSpec { keeps_items: false, ..spec(BitSampling::new(64), 4, 4) };
    let mut index = LshIndex::of_checked(kept);
    let item = BitString::zeros(64);
    index.insert(&item).unwrap();
    assert_eq!(index.candidates(&item), Ok(vec![0]));
    assert_eq!(index.search(&item, Some(1), None), Err(IndexError::ItemsNotKept));
    assert_eq!(index.search(&item, None, Some(Distance::ZERO)), Err(IndexError::ItemsNotKept));
    assert!(IndexError::ItemsNotKept.to_string().contains("build it with items kept"));
}

#[test]
fn what_has_no_hash_is_an_error_and_changes_nothing() {
    let mut index = LshIndex::of_checked(spec(Hyperplane { dimension: 3 }, 4, 4));
    index.insert([1.0, 2.0, 3.0].as_slice()).unwrap();
    let before = bytes(&index);
    assert!(matches!(index.insert("text"), Err(IndexError::Item(ItemError::WrongKind { .. }))));
    assert!(matches!(index.insert([0.0; 3].as_slice()), Err(IndexError::Item(ItemError::ZeroVector))));
    assert!(matches!(index.insert([f32::NAN; 3].as_slice()), Err(IndexError::Item(ItemError::NotFinite { .. }))));
    assert_eq!(bytes(&index), before);
}

#[test]
fn names_go_with_items_through_merging_saving_and_removal() {
    let spec = spec(BitSampling::new(64), 4, 4);
    let named = |names: &[&str]| {
        let mut index = LshIndex::of_checked(spec.clone());
        for name in names {
            let id = index.insert(&BitString::zeros(64)).unwrap();
            index.labels_mut().insert(id, name);
        }
        index
    };
    let mut index = named(&["a", "b", "c"]);
    assert_eq!(index.merge(&named(&["d", "e"])), Ok(3));
    let written = bytes(&index);
    let opened = LshIndex::decode(&written, Check::Everything).unwrap();
    assert_eq!(bytes(&opened), written);
    let mut index = opened.into_owned();
    for id in [1, 3, 4] {
        index.remove(id);
    }
    index.compact();
    let names: Vec<Option<&str>> = (0..5).map(|id| index.labels().get(id)).collect();
    assert_eq!(names, [Some("a"), None, Some("c"), None, None]);
    assert_eq!((index.len(), index.next), (2, 5));
    assert_eq!(bytes(&LshIndex::decode(&bytes(&index), Check::Everything).unwrap()), bytes(&index));
}

#[test]
fn empty_texts_are_near_to_nothing() {
    let mut index = LshIndex::of_checked(spec(MinHash::default(), 2, 4));
    for text in ["", "  ", "a text of some words", ""] {
        index.insert(text).unwrap();
    }
    assert!(index.candidates("").unwrap().is_empty());
    assert_eq!(index.candidates("a text of SOME words").unwrap(), [2]);
    assert_eq!(index.len(), 4);
    let written = bytes(&index);
    assert_eq!(bytes(&LshIndex::decode(&written, Check::Everything).unwrap()), written);
}

#[test]
fn a_text_and_the_set_of_its_shingles_are_one_item() {
    let text = "rain over the harbour kept boats at their ropes until noon";
    for family in [MinHash::default().into(), Family::from(WeightedMinHash::default())] {
        let mut index = LshIndex::of_checked(spec(family, 1, 40));
        index.insert(text).unwrap();
        assert_eq!(index.search(text, Some(1), None).unwrap(), [Neighbour { id: 0, distance: Distance::ZERO }]);
        let half = index.search("rain over the harbour kept boats at their ropes until dusk", Some(1), None).unwrap();
        let expected =
            family.distance(text.into(), "rain over the harbour kept boats at their ropes until dusk".into());
        assert_eq!(half[0].distance, expected.unwrap());
    }
}

#[test]
fn a_print_is_found_where_it_has_keys() {
    let mut print = BitString::zeros(400);
    Rng::new(Seed::new(2)).distinct(80, 400).into_iter().for_each(|square| print.set(square as usize, true));
    let mut index = LshIndex::of_checked(spec(Minutiae { squares: 400, occupied: 80 }, 1, 1024));
    index.insert(&print).unwrap();
    index.insert(&BitString::zeros(400)).unwrap();
    assert_eq!(index.candidates(&print).unwrap(), [0]);
    assert!(index.candidates(&BitString::zeros(400)).unwrap().is_empty(), "an empty print has no keys");
    assert_eq!(index.len(), 2);
}

#[derive(Debug, Clone)]
enum Deed {
    Insert(u8),
    Remove(u16),
    Compact,
    Reopen,
    Merge(Vec<u8>),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        20 => any::<u8>().prop_map(Deed::Insert),
        6 => any::<u16>().prop_map(Deed::Remove),
        1 => Just(Deed::Compact),
        1 => Just(Deed::Reopen),
        2 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Deed::Merge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is done in whatever order, the candidates are those of the definition.
    #[test]
    fn any_history_gives_the_candidates_of_the_definition(deeds in prop::collection::vec(deed(), 0..120)) {
        let spec = spec(BitSampling::new(8), 5, 3);
        let item = |byte: u8| ItemBuffer::from(crate::Item::from(&BitString::from_bytes(&[byte])));
        let mut index = LshIndex::of_checked(spec.clone());
        let mut book = Book::new(&index);
        let mut next = 0;
        for deed in deeds {
            match deed {
                Deed::Insert(byte) => {
                    let id = index.insert(item(byte).view()).unwrap();
                    prop_assert_eq!(id, next);
                    next += 1;
                    book.insert(id, &item(byte));
                }
                Deed::Remove(id) => {
                    let id = u32::from(id) % (next + 1);
                    prop_assert_eq!(index.remove(id), book.keys.remove(&id).is_some());
                }
                Deed::Compact => index.compact(),
                Deed::Reopen => {
                    let written = bytes(&index);
                    index = LshIndex::decode(&written, Check::Everything).unwrap().into_owned();
                }
                Deed::Merge(others) => {
                    let others: Vec<ItemBuffer> = others.into_iter().map(item).collect();
                    prop_assert_eq!(index.merge(&filled(&spec, &others)).unwrap(), next);
                    (next..).zip(&others).for_each(|(id, item)| book.insert(id, item));
                    next += others.len() as u32;
                }
            }
            prop_assert_eq!(index.len() as usize, book.keys.len());
        }
        for byte in (0..=255).step_by(5) {
            prop_assert_eq!(index.candidates(item(byte).view()).unwrap(), book.candidates(&item(byte), 1));
        }
    }
}

#[test]
fn an_index_by_dice_states_distances_by_dice() {
    let mut index = LshIndex::of_checked(spec(DiceMinHash::default(), 1, 40));
    index.insert(&[1u64, 2, 3, 4][..]).unwrap();
    let found = index.search(&[2u64, 3, 4, 5][..], None, Some(distance(0.25))).unwrap();
    // 2 * 3 / (4 + 4); by Jaccard the similarity would be .6, and too little.
    assert_eq!(found, [Neighbour { id: 0, distance: distance(0.25) }]);
}
