//! The index against all pairs.

use std::collections::BTreeSet;

use nearset::{Item, Rng, Seed};
use nearset_records::{Arena, Batch, Fields, Format, ItemField, ReadOptions, Reader, extract, resolve};

use super::super::distance::tests::{ALPHABETS, by_definition, edited};
use super::*;

/// Different texts of these lengths, in families of texts that are a few edits apart.
fn families(rng: &mut Rng, count: usize, lengths: &[usize], alphabet: &[u32]) -> Vec<Vec<u32>> {
    let mut texts: BTreeSet<Vec<u32>> = BTreeSet::new();
    while texts.len() < count {
        let length = lengths[rng.below(lengths.len() as u64) as usize];
        let edits = rng.below(2 + length as u64 / 5) as usize;
        texts.extend(edited(rng, length, alphabet, edits).into_iter().filter(|text| !text.is_empty()));
    }
    let mut texts: Vec<Vec<u32>> = texts.into_iter().collect();
    // Not by length.
    texts.sort_by_key(|text| text.iter().fold(0u32, |sum, &char| sum.wrapping_mul(31).wrapping_add(char)));
    texts
}

fn index_of(texts: &[Vec<u32>], limit: Limit) -> EditIndex {
    let mut all = Texts::default();
    for text in texts {
        all.push(&text.iter().map(|&char| char::from_u32(char).unwrap()).collect::<String>());
    }
    EditIndex::new(all, (limit, 0)).unwrap()
}

/// What lies between two texts, if they are near.
fn between(a: &[u32], b: &[u32], limit: Limit) -> Option<u32> {
    let edits = by_definition(a, b);
    let near = match limit {
        Limit::Edits(most) => edits <= most,
        Limit::Similarity(near) => similarity(edits, a.len().max(b.len())) >= near,
    };
    near.then_some(edits as u32)
}

/// Checks the index against all pairs, and returns how many are near.
fn check(texts: &[Vec<u32>], limit: Limit) -> usize {
    let index = index_of(texts, limit);
    let mut expected: Vec<Vec<(u32, u32)>> = vec![Vec::new(); texts.len()];
    for a in 0..texts.len() {
        for b in 0..a {
            if let Some(edits) = between(&texts[a], &texts[b], limit) {
                expected[a].push((b as u32, edits));
                expected[b].push((a as u32, edits));
            }
        }
    }
    let mut room = Room::default();
    let mut once = 0;
    for (text, expected) in (0..).zip(&mut expected) {
        let mut found = index.near(text, false, &mut room);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, *expected, "{limit:?}: near {:?}", texts[text as usize]);
        once += index.near(text, true, &mut room).len();
    }
    assert_eq!(2 * once, expected.iter().map(Vec::len).sum::<usize>(), "each pair once");
    check_others(texts, limit);
    once
}

/// Checks what is found near texts of which half are not there, longer ones than any that is among them.
fn check_others(texts: &[Vec<u32>], limit: Limit) {
    let (there, others) = texts.split_at(texts.len() / 2);
    let mut all = Texts::default();
    for text in there {
        all.push(&text.iter().map(|&char| char::from_u32(char).unwrap()).collect::<String>());
    }
    let index = EditIndex::new(all, (limit, u32::MAX as usize)).unwrap();
    let mut room = Room::default();
    let mut longer: Vec<u32> = there.iter().max_by_key(|text| text.len()).unwrap().clone();
    longer.extend_from_within(..longer.len() / 4);
    for text in others.iter().chain(&there[..5]).chain([&longer]) {
        let near = |(number, other): (u32, &Vec<u32>)| Some((number, between(text, other, limit)?));
        let expected: Vec<(u32, u32)> = (0..).zip(there).filter_map(near).collect();
        let mut found = index.near_other(Chars::Wide(text), &mut room);
        found.sort_unstable();
        assert_eq!(found, expected, "{limit:?}: near {text:?}");
        // The nearest of all, later ones first among equals.
        let far = |&(number, edits): &(u32, u32)| {
            (limit.far(limit.stated(edits, text.len().max(there[number as usize].len()))), u32::MAX - number)
        };
        let mut all: Vec<(u32, u32)> =
            (0..).zip(there).map(|(number, other)| (number, by_definition(text, other) as u32)).collect();
        all.sort_unstable_by_key(far);
        for top in [1, 3, 10] {
            let mut found = index.nearest(Chars::Wide(text), top, |number| u32::MAX - number, &mut room);
            found.sort_unstable_by_key(far);
            assert_eq!(found, all[..top], "{limit:?}: the {top} nearest to {text:?}");
        }
    }
}

#[test]
fn nothing_within_so_many_edits_is_missed() {
    let mut rng = Rng::new(Seed::new(1));
    let mut near = 0;
    for alphabet in ALPHABETS {
        for edits in [0, 1, 2, 3, 5, 12] {
            for lengths in [&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..], &[14, 17, 20, 23, 40], &[60, 64, 80, 130]] {
                near += check(&families(&mut rng, 60, lengths, alphabet), Limit::Edits(edits));
            }
        }
    }
    assert!(near > 5000, "{near}");
}

#[test]
fn nothing_of_so_much_similarity_is_missed() {
    let mut rng = Rng::new(Seed::new(2));
    let mut near = 0;
    for alphabet in ALPHABETS {
        for least in [1.0, 0.95, 0.9, 0.8, 2.0 / 3.0, 0.5, 0.1] {
            for lengths in [&[1, 3, 5, 6, 7, 8, 9, 10, 11][..], &[14, 17, 20, 30, 40], &[60, 90, 130]] {
                near += check(&families(&mut rng, 50, lengths, alphabet), Limit::Similarity(least));
            }
        }
    }
    assert!(near > 5000, "{near}");
}

#[test]
fn few_are_compared_where_few_are_near() {
    let mut rng = Rng::new(Seed::new(3));
    let letters: Vec<u32> = (97..123).collect();
    for (length, limit) in [(8, Limit::Edits(2)), (60, Limit::Edits(3)), (60, Limit::Similarity(0.9))] {
        let texts = families(&mut rng, 2000, &[length], &letters);
        let index = index_of(&texts, limit);
        let mut room = Room::default();
        let found: usize = (0..2000).map(|text| index.near(text, true, &mut room).len()).sum();
        assert!(room.compared < 2 * found as u64 + 2000, "{limit:?}: {} compared for {found}", room.compared);
    }
}

#[test]
fn a_similarity_that_was_typed_is_near() {
    for thousandths in 1..=1000_usize {
        let near: f64 = format!("{}.{:03}", thousandths / 1000, thousandths % 1000).parse().unwrap();
        for longer in 1..=200 {
            let edits = longer * (1000 - thousandths) / 1000;
            assert_eq!(Limit::Similarity(near).edits(longer), edits, "{longer} characters at {near}");
        }
    }
}

#[test]
fn the_similarity_itself_is_near() {
    for near in [0.9, 0.8, 0.7, 1.0 / 3.0, 0.999, 1.0] {
        let limit = Limit::Similarity(near);
        for longer in 1..1000 {
            let edits = limit.edits(longer);
            assert!(similarity(edits, longer) >= near, "{edits} of {longer} at {near}");
            assert!(edits == longer || similarity(edits + 1, longer) < near, "{edits} of {longer} at {near}");
            let longest = limit.longest_near(longer, 5000);
            assert!(longest == 5000 || longest + 1 - longer > limit.edits(longest + 1));
        }
    }
}

/// Different real texts, each made of a line of a table or of a sequence; none where the data is not there.
fn real(name: &str, most: usize, text: impl Fn(&str) -> String) -> Vec<Vec<u32>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let format = if name.ends_with("csv") { Format::Text } else { Format::Fasta };
    let Ok(sources) = resolve(&[path.to_str().unwrap()], Some(format)) else {
        eprintln!("{} is not there: nothing is checked with it", path.display());
        return Vec::new();
    };
    let fields = Fields::new("text", ItemField::Text);
    let mut reader = Reader::new(sources.list, ReadOptions::new(fields.clone()));
    let (mut batch, mut arena, mut texts) = (Batch::new(), Arena::new(), BTreeSet::new());
    while texts.len() < most && reader.read_batch(&mut batch).unwrap() {
        let extracted = extract(&batch, &fields, &mut arena);
        for i in 0..extracted.len() {
            if let Ok(Item::Text(line)) = extracted.item(i) {
                texts.insert(text(line).chars().map(u32::from).collect::<Vec<u32>>());
            }
        }
    }
    texts.into_iter().filter(|text| !text.is_empty()).take(most).collect()
}

/// Checks the index against all pairs by the same comparison.
fn check_real(texts: &[Vec<u32>], limit: Limit) {
    let index = index_of(texts, limit);
    let (mut pattern, mut room) = (Pattern::default(), Room::default());
    for text in 0..texts.len() as u32 {
        pattern.set(index.texts.chars(text));
        let mut expected: Vec<(u32, u32)> = Vec::new();
        for other in (0..texts.len() as u32).filter(|&other| other != text) {
            let most = limit.edits(index.texts.length(text).max(index.texts.length(other)));
            expected.extend(pattern.within(index.texts.chars(other), most).map(|edits| (other, edits as u32)));
        }
        let mut found = index.near(text, false, &mut room);
        found.sort_unstable();
        assert_eq!(found, expected, "{limit:?}");
    }
}

#[test]
fn nothing_is_missed_of_real_names_records_and_amplicons() {
    let column = |column: usize| move |line: &str| line.split(',').nth(column).unwrap_or("").trim().to_owned();
    for number in [1, 2, 4, 6] {
        check_real(&real("febrl/dataset4b.csv", 3000, column(number)), Limit::Edits(2));
    }
    let whole = real("febrl/dataset1.csv", 1000, |line| line.split_once(',').map_or("", |(_, rest)| rest).to_owned());
    for limit in [Limit::Edits(2), Limit::Edits(6), Limit::Similarity(0.9), Limit::Similarity(0.75)] {
        check_real(&whole, limit);
    }
    let amplicons = real("dna/BioMarKs50k.fsa.gz", 1500, str::to_owned);
    for limit in [Limit::Edits(2), Limit::Similarity(0.97)] {
        check_real(&amplicons, limit);
    }
}
