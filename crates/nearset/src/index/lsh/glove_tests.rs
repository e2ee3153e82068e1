//! The near-neighbour index on real embeddings: what is planned is what is found.

use std::{fs, path::Path};

use super::LshIndex;
use crate::{
    Distance, Item, Layout, LshSpec, Metric, Seed,
    family::{CrossPolytope, Hyperplane, LshFamily},
    item::vector::angle,
    plan::{Background, FarModel, Request},
};

const DIMENSION: u32 = 50;

/// Reads the first vectors of the 50,000 most frequent words, or prints a message and returns `None` if the data is
/// missing.
fn words(count: usize) -> Option<Vec<Vec<f32>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/glove/glove_top50k_f32.npy");
    let Ok(file) = fs::read(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    // The header states its own length.
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let (numbers, _) = file[header..].as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Some(numbers.chunks_exact(DIMENSION as usize).take(count).map(<[f32]>::to_vec).collect())
}

fn index(spec: &LshSpec, words: &[Vec<f32>]) -> LshIndex<'static> {
    let mut index = LshIndex::of_checked(spec.clone());
    for word in words {
        index.insert(word.as_slice()).unwrap();
    }
    index
}

/// Returns every pair of a query and an item within `near`, apart from the query itself, with its distance.
fn truth(words: &[Vec<f32>], queries: &[usize], near: Distance) -> Vec<(usize, u32, Distance)> {
    let mut pairs = Vec::new();
    for &query in queries {
        for (id, word) in (0..).zip(words) {
            let distance = angle(&words[query], word).unwrap();
            if distance <= near && id as usize != query {
                pairs.push((query, id, distance));
            }
        }
    }
    pairs
}

/// Returns the fraction of the pairs that is found, and the fraction predicted for their distances.
fn recall(index: &LshIndex<'_>, words: &[Vec<f32>], pairs: &[(usize, u32, Distance)]) -> (f64, f64) {
    let LshSpec { family, layout, probes, .. } = index.spec();
    let distances: Vec<Distance> = pairs.iter().map(|&(.., distance)| distance).collect();
    let bands = family.probed_probabilities(&distances, layout.rows, *probes);
    let missed = bands.iter().map(|band| (1.0 - band[*probes as usize - 1]).powi(layout.bands as i32));
    let predicted = 1.0 - missed.sum::<f64>() / pairs.len() as f64;
    let mut found = 0;
    for of_one in pairs.chunk_by(|a, b| a.0 == b.0) {
        let candidates = index.candidates(words[of_one[0].0].as_slice()).unwrap();
        found += of_one.iter().filter(|(_, id, _)| candidates.binary_search(id).is_ok()).count();
    }
    (found as f64 / pairs.len() as f64, predicted)
}

/// Pairs share words, so there are fewer independent ones; assuming a tenth is a generous allowance.
fn sigma(rate: f64, pairs: usize) -> f64 {
    (rate * (1.0 - rate) / (0.1 * pairs as f64)).sqrt()
}

#[test]
fn recall_rises_with_probes_and_is_as_predicted() {
    let Some(words) = words(10_000) else { return };
    let metric = Metric::Angle { dimension: DIMENSION };
    let queries: Vec<usize> = (0..10_000).step_by(50).collect();
    let pairs = truth(&words, &queries, metric.distance(0.8).unwrap());
    assert!(pairs.len() > 300, "{} pairs", pairs.len());
    let check = |index: &LshIndex<'_>| {
        let (found, predicted) = recall(index, &words, &pairs);
        println!("{:>2} probes: {found:.3} found, {predicted:.3} predicted", index.spec().probes);
        assert!((found - predicted).abs() <= 6.0 * sigma(predicted, pairs.len()), "{found}, predicted {predicted}");
        found
    };
    let planes = LshSpec::new(Hyperplane { dimension: DIMENSION }, Layout::new(16, 4), Seed::new(3)).unwrap();
    let mut planes = index(&planes, &words);
    let mut before = 0.0;
    for probes in [1, 2, 4, 8, 16, 32, 64] {
        planes.spec.probes = probes;
        let found = check(&planes);
        assert!(found > before, "{found} with {probes} probes, {before} with half as many");
        before = found;
    }
    let polytopes = LshSpec::new(CrossPolytope { dimension: DIMENSION }, Layout::new(1, 4), Seed::new(3)).unwrap();
    check(&index(&polytopes, &words));
}

#[test]
fn a_planned_index_keeps_its_promise_with_the_candidates_that_it_expects() {
    let Some(words) = words(20_000) else { return };
    let metric = Metric::Angle { dimension: DIMENSION };
    let (near, far) = (metric.distance(0.85).unwrap(), metric.distance(0.5).unwrap());
    let mut request = Request::new(metric, 0.85).far(0.5).capacity(words.len() as u64);
    request.max_false_negative = Some(0.1);
    // The distances between words that have nothing to do with each other.
    let sample = (0..4_000).map(|i| angle(&words[i], &words[words.len() - 1 - i]).unwrap());
    let sample: Vec<Distance> = sample.filter(|distance| *distance >= far).collect();
    request.far_model = Some(FarModel::Measured(Background::from_distances(sample).unwrap()));
    let plan = request.plan_index().unwrap();
    println!("{plan}");
    let index = index(&plan.spec, &words);
    let queries: Vec<usize> = (0..words.len()).step_by(40).collect();
    let pairs = truth(&words, &queries, near);
    let (found, predicted) = recall(&index, &words, &pairs);
    println!("{found:.3} found of {} pairs, {predicted:.3} predicted", pairs.len());
    // All pairs are nearer than `near`, so at least the promised fraction is found.
    assert!(found >= 0.9 - 6.0 * sigma(0.9, pairs.len()), "{found}");
    assert!((found - predicted).abs() <= 6.0 * sigma(predicted, pairs.len()), "{found}, predicted {predicted}");
    let met: usize = queries.iter().map(|&query| index.candidates(words[query].as_slice()).unwrap().len()).sum();
    let mean = met as f64 / queries.len() as f64;
    println!("{mean:.0} candidates a query, {:.0} expected", plan.candidates);
    // The expectation rests on the upper end of a sampled interval.
    assert!(mean <= 2.0 * plan.candidates && mean >= 0.05 * plan.candidates);
    for &query in queries.iter().step_by(10) {
        let item = Item::Vector(&words[query]);
        let nearest = index.search(item, Some(3), None).unwrap();
        assert_eq!((nearest[0].id as usize, nearest[0].distance), (query, Distance::ZERO));
        for neighbour in nearest {
            let exact = plan.spec.family.distance(item, words[neighbour.id as usize].as_slice().into());
            assert_eq!(neighbour.distance, exact.unwrap());
        }
    }
}
