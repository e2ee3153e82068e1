//! A named index is compared with a list of what is in it.

use super::*;
use crate::{BitString, HammingSpec, MetricName, Rng, Seed, Shape, plan::Request};

/// What a test keeps of an index: names and items, in the order of insertion.
struct Listed<T>(Vec<(String, T)>);

impl<T> Listed<T> {
    fn insert(&mut self, name: &str, item: T) -> bool {
        let is_new = !self.remove(name);
        self.0.push((name.to_owned(), item));
        is_new
    }

    fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| other != name);
        self.0.len() < before
    }
}

/// Merges everything that is due.
fn settle(index: &mut NamedIndex) {
    while let Some(mut merge) = index.merge_due() {
        merge.run().unwrap();
        assert!(index.put_in_place(&merge));
    }
}

fn insert<'i>(index: &mut NamedIndex, name: &'i str, item: impl Into<Item<'i>>) -> bool {
    index.insert([(name, item.into())]).unwrap()[0]
}

fn contains(index: &NamedIndex, name: &str) -> bool {
    let mut is_in = false;
    index.for_each(Some(name), |found, _| is_in = found == name);
    is_in
}

fn empty_hamming(bits: u32) -> NamedIndex {
    NamedIndex::from(Index::new(HammingSpec::new(bits, 8, Seed::default())).unwrap())
}

fn written_and_read(index: &NamedIndex) -> NamedIndex {
    let mut again = NamedIndex::from(index.newest.emptied());
    index.parts(|part, left_out| {
        let mut bytes = Vec::new();
        part.encode(&mut bytes).unwrap();
        let part = Index::decode(&bytes, crate::Check::Everything).unwrap().into_owned();
        again.take_in(part, left_out).unwrap();
    });
    again
}

fn all(index: &NamedIndex) -> Vec<String> {
    let mut names = Vec::new();
    index.for_each(None, |name, item| names.push(format!("{name} {}", item.is_some())));
    names
}

#[test]
fn whatever_happens_to_it_a_named_index_is_a_list_of_hashes() {
    const BITS: usize = 64;
    for seed in 0..20 {
        let mut draw = Rng::new(Seed::from(seed));
        let (mut index, mut listed) = (empty_hamming(BITS as u32), Listed(Vec::new()));
        let mut under_way = None;
        for step in 0..600 {
            let name = format!("name {}", draw.below(60));
            match draw.below(20) {
                0..10 => {
                    // Few different ones, so that many are equally near.
                    let hash = BitString::from_bytes(&(0..8).map(|_| draw.below(2) as u8).collect::<Vec<_>>());
                    let is_new = insert(&mut index, &name, &hash);
                    assert_eq!(is_new, listed.insert(&name, hash), "{seed}, {step}");
                }
                10..14 => assert_eq!(index.remove(&name), listed.remove(&name), "{seed}, {step}"),
                14..16 => index.seal().unwrap(),
                16 => under_way = under_way.or_else(|| index.merge_due()),
                17 => {
                    if let Some(mut merge) = under_way.take() {
                        merge.run().unwrap();
                        index.put_in_place(&merge);
                    }
                }
                18 => index = index.clone(),
                _ => index = written_and_read(&index),
            }
            assert_eq!(index.state().items, listed.0.len() as u64);
            assert_eq!(contains(&index, &name), listed.0.iter().any(|(other, _)| *other == name));
            let query = BitString::from_bytes(&(0..8).map(|_| draw.below(2) as u8).collect::<Vec<_>>());
            let mut expected: Vec<(&str, u32)> = listed
                .0
                .iter()
                .map(|(name, hash)| (name.as_str(), hash.bits().hamming(query.bits()).unwrap()))
                .collect();
            expected.sort_by_key(|(_, distance)| *distance);
            let told = |found: Vec<(&str, Distance)>| {
                found.iter().map(|(name, distance)| (name.to_string(), distance.value() as u32)).collect::<Vec<_>>()
            };
            let expected: Vec<(String, u32)> =
                expected.into_iter().map(|(name, distance)| (name.to_owned(), distance)).collect();
            assert_eq!(told(index.search(&query, Some(7), None, u64::MAX).unwrap()), expected[..expected.len().min(7)]);
            let near = expected.partition_point(|(_, distance)| *distance <= 2);
            assert_eq!(
                told(index.search(&query, None, Some(Distance::from_count(2)), u64::MAX).unwrap()),
                expected[..near]
            );
        }
        let names: Vec<String> = listed.0.iter().map(|(name, _)| format!("{name} true")).collect();
        assert_eq!(all(&index), names);
        settle(&mut index);
        assert_eq!(all(&index), names);
    }
}

#[test]
fn texts_are_found_by_their_exact_similarity_in_every_segment() {
    let metric = MetricName::Jaccard.with(Shape { length: None, shingling: Some("words:1".parse().unwrap()) }).unwrap();
    let plan = Request::new(metric, 0.6).capacity(1_000).plan_index().unwrap();
    let mut index = NamedIndex::from(Index::new(plan.spec).unwrap());
    assert_eq!(index.empty().metric(), Some(metric));
    for i in 0..400 {
        let words: Vec<String> = (0..10).map(|word| format!("w{}", 10 * i + word)).collect();
        assert!(insert(&mut index, &format!("text {i}"), words.join(" ").as_str()));
        if i % 40 == 39 {
            index.seal().unwrap();
        }
    }
    index.remove("text 77");
    assert!(!insert(&mut index, "text 5", "entirely other words than all of the others have"));
    for round in 0..2 {
        for i in 0..400 {
            // 9 of 11 words are common to both.
            let words: Vec<String> = (1..10).map(|word| format!("w{}", 10 * i + word)).chain(["more".into()]).collect();
            let found =
                index.search(words.join(" ").as_str(), Some(3), Some(metric.distance(0.6).unwrap()), u64::MAX).unwrap();
            let found: Vec<(&str, f64)> =
                found.into_iter().map(|(name, distance)| (name, metric.own_unit(distance))).collect();
            if i == 77 || i == 5 {
                assert_eq!(found, [], "{round}");
            } else {
                assert_eq!(found, [(format!("text {i}").as_str(), 1.0 - (1.0 - 9.0 / 11.0))], "{round}");
            }
        }
        settle(&mut index);
        assert!(index.state().segments < 5);
        index = written_and_read(&index);
    }
}

#[test]
fn inserting_makes_segments_and_merging_keeps_them_few() {
    let mut index = empty_hamming(64);
    let mut draw = Rng::new(Seed::from(7));
    let mut most = 0;
    for i in 0..40 * FULL_ITEMS {
        let hash = BitString::from_bytes(&draw.next_u64().to_le_bytes());
        insert(&mut index, &i.to_string(), &hash);
        if i % FULL_ITEMS == 0 {
            settle(&mut index);
            most = most.max(index.state().segments);
        }
    }
    assert_eq!(index.state().items, 40 * u64::from(FULL_ITEMS));
    // Three of each of three classes, and what is newest.
    assert!(most <= 10, "{most}");
    assert!(index.state().bytes < 40 * u64::from(FULL_ITEMS) * 100, "{} bytes", index.state().bytes);
    for i in 0..40 * FULL_ITEMS {
        assert!(index.remove(&i.to_string()));
    }
    settle(&mut index);
    assert!(index.state().items == 0 && index.state().bytes < 1 << 20, "{} bytes", index.state().bytes);
}

#[test]
fn an_index_of_a_file_is_taken_in_with_names_and_numbers() {
    let hash = |i: u64| BitString::from_bytes(&i.to_le_bytes());
    let mut file = Index::new(HammingSpec::new(64, 3, Seed::from(5))).unwrap();
    for (i, name) in [None, Some("twice"), Some("gone"), Some("twice"), None].into_iter().enumerate() {
        file.push(&hash(i as u64), name).unwrap();
    }
    file.remove(2);
    let mut index = empty_hamming(64);
    insert(&mut index, "twice", &hash(70));
    insert(&mut index, "old", &hash(71));
    index.take_in(file, &[]).unwrap();
    assert_eq!(all(&index), ["old true", "0 true", "twice true", "4 true"]);
    let found = index.search(&hash(3), Some(1), None, u64::MAX).unwrap();
    assert_eq!(found, [("twice", Distance::from_count(0))]);
    let mut told = 0;
    index.for_each(Some("twice"), |_, item| {
        told += 1;
        assert!(matches!(item, Some(Item::Bits(bits)) if bits == hash(3).bits()));
    });
    assert!(told == 1 && !contains(&index, "gone"));
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut index = empty_hamming(64);
    let hash = BitString::from_bytes(&[1; 8]);
    insert(&mut index, "one", &hash);
    let (hash_item, text) = (Item::from(&hash), Item::from("a text"));
    assert_eq!(index.insert([("two", hash_item), ("", hash_item)]), Err(IndexError::NoName { position: 1 }));
    let refused = index.insert([("two", hash_item), ("one", text)]);
    assert!(matches!(refused, Err(IndexError::Batch(BatchError { position: 1, .. }))), "{refused:?}");
    let other = Index::new(HammingSpec::new(32, 3, Seed::default())).unwrap();
    assert!(matches!(index.take_in(other, &[]), Err(IndexError::Merge(_))));
    let mut same = Index::new(HammingSpec::new(64, 8, Seed::default())).unwrap();
    same.push(&hash, Some("one")).unwrap();
    assert_eq!(index.take_in(same, &[2]), Err(IndexError::LeftOut));
    assert_eq!(all(&index), ["one true"]);
    assert!(!index.remove("two") && index.remove("one") && !index.remove("one"));
}

#[test]
fn a_search_ends_where_its_budget_does() {
    let metric = MetricName::Jaccard.with(Shape { length: None, shingling: Some("words:1".parse().unwrap()) }).unwrap();
    let plan = Request::new(metric, 0.6).capacity(1_000).plan_index().unwrap();
    let mut texts = NamedIndex::from(Index::new(plan.spec).unwrap());
    let mut hashes = empty_hamming(64);
    let hash = BitString::from_bytes(&[1; 8]);
    for i in 0..1000 {
        insert(&mut texts, &i.to_string(), "one two three four");
        insert(&mut hashes, &i.to_string(), &hash);
    }
    for within in [None, Some(Distance::ZERO)] {
        // 1,000 sets of 4 words, and one word to find each; 1,000 hashes of a word.
        assert_eq!(texts.search("one two three four", Some(1), within, 100), Err(IndexError::Budget));
        assert_eq!(texts.search("one two three four", Some(1), within, 4_999), Err(IndexError::Budget));
        assert_eq!(hashes.search(&hash, Some(1), within, 999), Err(IndexError::Budget));
        assert_eq!(hashes.search(&hash, Some(1), within, 9_000).unwrap(), [("0", Distance::ZERO)]);
        let most = 1_000 * 200;
        assert_eq!(texts.search("one two three four", Some(1), within, most).unwrap(), [("0", Distance::ZERO)]);
    }
}
