use super::*;
use crate::{
    Seed, Shingling,
    hash::{Rng, mix},
    item::SortedSet,
};

/// A corpus of sets, and the similarity from which on two are near.
struct Corpus {
    name: &'static str,
    sets: Vec<SortedSet>,
}

fn set(elements: impl IntoIterator<Item = u64>) -> SortedSet {
    elements.into_iter().map(mix).collect::<Vec<u64>>().into()
}

/// An edited copy: so many of its elements are replaced.
fn edited(set: &SortedSet, replaced: usize, rng: &mut Rng) -> SortedSet {
    let mut elements = set.as_slice().to_vec();
    rng.shuffle(&mut elements);
    elements.truncate(elements.len().saturating_sub(replaced));
    elements.extend((0..replaced).map(|_| rng.next_u64()));
    elements.into()
}

/// Adds edited copies of one record in 20, from among the oldest, so that near pairs are far apart.
fn with_copies(name: &'static str, mut sets: Vec<SortedSet>, seed: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(seed));
    for i in 0..sets.len() / 20 {
        // Similarities from .8 to .95: of n elements, 2nJ/(1+J) stay.
        let similarity = 0.81 + 0.14 * rng.unit();
        let size = sets[i].as_slice().len();
        let replaced = size - (2.0 * size as f64 * similarity / (1.0 + similarity)).round() as usize;
        let copy = edited(&sets[i], replaced, &mut rng);
        sets.push(copy);
    }
    Corpus { name, sets }
}

fn plain(count: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(1));
    let sets = (0..count).map(|_| set((0..60 + rng.below(200)).map(|_| rng.next_u64()))).collect();
    with_copies("unrelated records", sets, 11)
}

fn template(count: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(2));
    let sets = (0..count).map(|_| set((0..196).chain((0..45).map(|_| rng.next_u64())))).collect();
    with_copies("a template and a text", sets, 12)
}

fn templates(count: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(3));
    let page = |rng: &mut Rng| {
        let template = rng.below(30) * 1000;
        let own = 5 + rng.below(120);
        set((template..template + 150).chain((0..own).map(|_| rng.next_u64())))
    };
    with_copies("thirty templates", (0..count).map(|_| page(&mut rng)).collect(), 13)
}

fn clause_book(count: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(4));
    let page = |rng: &mut Rng| {
        let clauses = rng.distinct(19, 24);
        set(clauses.into_iter().flat_map(|clause| 100 * clause..100 * clause + 30).chain([rng.next_u64()]))
    };
    with_copies("a book of clauses", (0..count).map(|_| page(&mut rng)).collect(), 14)
}

/// The contract, written plainly: a record goes if and only if a kept one before it is near enough.
fn by_comparing_all(sets: &[SortedSet], near: Similarity) -> Vec<Option<(usize, Similarity)>> {
    let mut kept: Vec<usize> = Vec::new();
    let mut verdicts = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        let mut nearest: Option<(usize, Similarity)> = None;
        for &other in &kept {
            let least = nearest.map_or(near, |(_, most)| most);
            if let Some(similarity) = set.jaccard_at_least(&sets[other], least)
                && nearest.is_none_or(|(_, most)| similarity > most)
            {
                nearest = Some((other, similarity));
            }
        }
        if nearest.is_none() {
            kept.push(i);
        }
        verdicts.push(nearest);
    }
    verdicts
}

struct Run {
    removed: usize,
    missed: usize,
    cut_short: usize,
    compared: usize,
    bytes_per_kept: f64,
}

/// Decides on all records by their candidates, and counts kept ones that are near one kept before.
fn run(corpus: &Corpus, near: f64) -> Run {
    let near = Similarity::jaccard(near).unwrap();
    let sample = corpus.sets.iter().step_by(4).map(SortedSet::as_slice);
    let model = CommonShingles::of_sample(sample, corpus.sets.len());
    let spec = JoinSpec::new(near, 0.001, Shingling::default(), Seed::new(5));
    let mut index = ShingleIndex::new(&spec);
    let (mut keys, mut candidates) = (ShingleKeys::default(), Candidates::default());
    let mut kept = Vec::<&SortedSet>::new();
    let mut run = Run { removed: 0, missed: 0, cut_short: 0, compared: 0, bytes_per_kept: 0.0 };
    for set in &corpus.sets {
        keys.choose(set.as_slice(), &model, &spec);
        index.settle();
        index.find(&keys, &mut candidates);
        run.cut_short += usize::from(candidates.cut_short);
        run.compared += candidates.list.len();
        let is_near = |other: &SortedSet| set.jaccard_at_least(other, near).is_some();
        let is_found = |other: &SortedSet| spec.similarity_at_least(set.as_slice(), other.as_slice(), near).is_some();
        if candidates.list.iter().any(|candidate| is_found(kept[candidate.id as usize])) {
            run.removed += 1;
            continue;
        }
        run.missed += usize::from(kept.iter().any(|other| is_near(other)));
        assert_eq!(index.insert(&keys) as usize, kept.len());
        kept.push(set);
    }
    run.bytes_per_kept = index.bytes() as f64 / kept.len() as f64;
    run
}

/// The worst partner: a part of the record that has all of its common shingles and the fewest rare ones.
fn parts(count: u64) -> Corpus {
    let mut rng = Rng::new(Seed::new(6));
    let mut sets = Vec::new();
    for i in 0..count {
        let common = 300 + 100 * i / count;
        let own: Vec<u64> = (0..500 - common).map(|_| rng.next_u64()).collect();
        let kept = own.len() - 100;
        sets.push(set((0..common).chain(own.iter().copied())));
        sets.push(set((0..common).chain(own[..kept].iter().copied())));
    }
    Corpus { name: "records and parts of them", sets }
}

#[test]
fn hardly_a_near_record_is_missed() {
    for corpus in [plain(4000), template(4000), templates(4000), clause_book(4000), parts(2000)] {
        let run = run(&corpus, 0.8);
        let near = run.removed + run.missed;
        let per_record = run.compared as f64 / corpus.sets.len() as f64;
        println!(
            "{}: {} near, {} missed, {} cut short, {per_record:.1} compared per record, {:.0} bytes",
            corpus.name, near, run.missed, run.cut_short, run.bytes_per_kept
        );
        assert!(near >= 150, "{}: {near} near", corpus.name);
        // The promise is 1 in 1,000 at exactly .8 and less above; 200 to 500 are near.
        assert!(run.missed <= 2 + near / 100, "{}: {} of {near} missed", corpus.name, run.missed);
        assert_eq!(run.cut_short, 0, "{}", corpus.name);
    }
}

#[test]
fn a_candidate_decides_as_comparing_all_does() {
    let near = Similarity::jaccard(0.8).unwrap();
    let corpus = plain(600);
    let expected = by_comparing_all(&corpus.sets, near);
    assert_eq!(expected.iter().flatten().count(), run(&corpus, 0.8).removed);
}

/// Those of a library come segment by segment, of any size, and a group is in the order of sizes.
#[test]
fn entries_that_are_counted_on_are_found_by_their_common_part_as_inserted_ones_are() {
    let near = Similarity::jaccard(0.8).unwrap();
    let spec = JoinSpec::new(near, 0.001, Shingling::default(), Seed::new(5));
    let model: CommonShingles = (0..80).collect();
    let mut rng = Rng::new(Seed::new(6));
    // One template, and texts that have nothing to do with each other.
    let records = (0..600u64).map(|record| {
        let (mut keys, own) = (ShingleKeys::default(), 1 + rng.below(19));
        let set: Vec<u64> = (0..80).chain((0..own).map(|i| 1000 + record * 100 + i)).collect();
        keys.choose(&set, &model, &spec);
        keys
    });
    let records: Vec<ShingleKeys> = records.collect();
    let (mut inserted, mut counted_on) = (ShingleIndex::new(&spec), ShingleIndex::new(&spec));
    for (segment, first) in records.chunks(200).zip((0..).step_by(200)) {
        let each = |insert: &mut dyn FnMut(u32, &ShingleKeys)| {
            (first..).zip(segment).for_each(|(entry, keys)| insert(entry, keys));
            Ok::<_, ()>(())
        };
        counted_on.count_on(200, each).unwrap();
        for keys in segment {
            inserted.insert(keys);
        }
    }
    inserted.settle();
    let bytes = counted_on.groups.bytes();
    assert!((600 * 8..64_000).contains(&bytes), "{bytes}");
    let mut met = 0;
    for keys in &records {
        let [mut all, mut found] = [Candidates::default(), Candidates::default()];
        inserted.meet_grouped(keys, (0, 0), &mut all);
        counted_on.meet_grouped(keys, (0, 0), &mut found);
        assert_eq!(all.met, found.met);
        met += found.met.len();
    }
    assert!(met > 10_000, "{met}");
}
