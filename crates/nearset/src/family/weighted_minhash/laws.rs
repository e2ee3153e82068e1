//! Laws of weighted MinHash beyond those of all families: there is no bias, the variance is that of independent slots,
//! whatever the spread and the scale of weights; zero weights count as absent; merging takes the larger weight.

use proptest::prelude::*;

use super::{consistent::Samples, *};
use crate::{
    family::laws::{self, ItemBuffer},
    hash::Rng,
};

/// Makes two weighted sets of `size` elements at about the requested distance: weights are spread over some orders of
/// magnitude, and one set's are lowered, element by element, until the sum of minima fits exactly.
fn pair(size: usize, distance: f64, scale: f64, rng: &mut Rng) -> [Vec<(u64, f64)>; 2] {
    let mut a: Vec<(u64, f64)> = (0..size).map(|_| (rng.next_u64(), scale * libm::exp(2.0 * rng.gaussian()))).collect();
    let mut b = a.clone();
    let total: f64 = a.iter().map(|(_, weight)| weight).sum();
    // With the sum of maxima fixed at `total`, each unit taken from either set's weights lowers the sum of minima by
    // one.
    let mut surplus = distance * total;
    for (i, (x, y)) in a.iter_mut().zip(&mut b).enumerate() {
        let lowered = if i % 2 == 0 { &mut x.1 } else { &mut y.1 };
        let part = if i + 1 == size { surplus } else { (distance * *lowered * 2.0 * rng.unit()).min(surplus) };
        let taken = part.min(*lowered);
        *lowered -= taken;
        surplus -= taken;
    }
    for (x, y) in a.iter_mut().zip(&mut b).rev() {
        let taken = surplus.min(x.1.min(y.1));
        if y.1 <= x.1 {
            y.1 -= taken;
        } else {
            x.1 -= taken;
        }
        surplus -= taken;
    }
    [a, b]
}

fn owned(size: usize, scale: f64) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
    move |distance, rng| {
        let [a, b] = pair(size, distance, scale, rng);
        (ItemBuffer::from(crate::Item::Weighted(&a)), ItemBuffer::from(crate::Item::Weighted(&b)))
    }
}

const DISTANCES: [f64; 6] = [0.0, 0.05, 0.2, 0.4, 0.6, 0.9];

#[test]
fn darts_obey_the_laws() {
    for (size, scale) in [(3, 1.0), (40, 1e-3), (40, 3e5)] {
        laws::check(&WeightedMinHash::default(), &DISTANCES, &owned(size, scale));
    }
}

#[test]
fn consistent_sampling_obeys_the_laws() {
    laws::check(&ConsistentMinHash::default(), &DISTANCES, &owned(12, 1.0));
}

/// Returns the mean and variance of the fraction of slots that agree, over functions and sets drawn anew.
fn moments<S: WeightedSketch>(
    make: impl Fn(Seed) -> S,
    slots: usize,
    size: usize,
    distance: f64,
    repetitions: u64,
) -> (f64, f64) {
    let mut rng = Rng::new(Seed::new(21));
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut signatures = [vec![0; slots], vec![0; slots]];
    for repetition in 0..repetitions {
        let sketch = make(Seed::new(22).derive("repetition", repetition));
        let sets = pair(size, distance, 1.0, &mut rng);
        for (set, signature) in sets.iter().zip(&mut signatures) {
            let seen: Vec<(u64, f64)> = set.iter().copied().filter(|&(_, weight)| weight > 0.0).collect();
            sketch.sketch(&seen, signature, &mut Vec::new());
        }
        let agreeing = signatures[0].iter().zip(&signatures[1]).filter(|(a, b)| a == b).count();
        let part = agreeing as f64 / slots as f64;
        sum += part;
        squares += part * part;
    }
    let count = repetitions as f64;
    (sum / count, (squares - sum * sum / count) / (count - 1.0))
}

/// A sample variance over 2,000 draws has a standard error of 3.2 %; the measured ratio may exceed 1.1 by three of
/// them. The bias gets 6 sigma.
#[test]
fn the_estimator_has_no_bias_and_the_variance_of_independent_slots() {
    const REPETITIONS: u64 = 2000;
    println!("   size      J  slots  variance / (J(1-J)/k)");
    for (size, slots) in [(1, 128), (5, 128), (50, 128), (50, 640), (300, 128)] {
        for similarity in [0.1, 0.5, 0.8, 0.95] {
            let distance = 1.0 - similarity;
            let (mean, variance) = moments(|seed| Darts::new(seed, slots), slots, size, distance, REPETITIONS);
            let independent = similarity * distance / slots as f64;
            let sigma = (independent / REPETITIONS as f64).sqrt();
            assert!((mean - similarity).abs() <= 6.0 * sigma, "{size} elements, {slots} slots, J {similarity}: {mean}");
            let ratio = variance / independent;
            println!("{size:7} {similarity:6.2} {slots:6} {ratio:10.3}");
            let standard_error = (2.0 / (REPETITIONS as f64 - 1.0)).sqrt();
            assert!(ratio <= 1.1 + 3.0 * standard_error, "{size} elements, {slots} slots, J {similarity}: {ratio}");
        }
    }
    let (mean, variance) = moments(|seed| Samples::new(seed, 64), 64, 5, 0.5, REPETITIONS);
    // 6 sigma of the mean, 6 standard errors of the variance.
    assert!((mean - 0.5).abs() <= 6.0 * (0.25f64 / 64.0 / REPETITIONS as f64).sqrt(), "{mean}");
    assert!((variance / (0.25 / 64.0) - 1.0).abs() <= 0.19, "{variance}");
}

fn signature(set: &[(u64, f64)]) -> crate::family::Signature {
    WeightedMinHash::default().sketcher(Seed::new(5), 150).unwrap().signature(Item::Weighted(set)).unwrap()
}

#[test]
fn elements_of_no_weight_count_as_absent() {
    assert_eq!(signature(&[(1, 2.5), (7, 0.0), (3, 0.25)]), signature(&[(1, 2.5), (3, 0.25)]));
    assert!(signature(&[(1, 0.0)]).is_empty());
    let functions = WeightedMinHash::default().draw(Seed::new(1), Layout::new(1, 3)).unwrap();
    let mut hashed = Hashed::default();
    functions.hash(Item::Weighted(&[(1, 0.0)]), &mut hashed).unwrap();
    assert_eq!(hashed.keys, vec![None; 3]);
}

#[test]
fn a_text_is_the_bag_of_its_shingles() {
    let family = WeightedMinHash { shingling: Shingling::Words(1) };
    let sketcher = family.sketcher(Seed::new(6), 90).unwrap();
    let bag = Shingler::new(family.shingling, Seed::new(6)).unwrap().bag("a rose is a rose");
    assert_eq!(
        sketcher.signature("A rose is a rose!".into()).unwrap(),
        sketcher.signature(Item::Weighted(&bag)).unwrap()
    );
    let distance = family.distance("a rose is a rose".into(), "a rose".into()).unwrap();
    assert!((distance.value() - 0.6).abs() < 1e-15);
}

#[test]
fn bad_items_are_refused() {
    let sketcher = WeightedMinHash::default().sketcher(Seed::new(1), 10).unwrap();
    let error = |set: &[(u64, f64)]| sketcher.signature(Item::Weighted(set)).unwrap_err();
    assert!(matches!(error(&[(1, f64::NAN)]), ItemError::NotFinite { position: 0, .. }));
    assert!(matches!(error(&[(1, 1.0), (2, -1.0)]), ItemError::NegativeWeight { position: 1, .. }));
    assert_eq!(error(&[(5, 1.0), (2, 1.0), (5, 1.0)]), ItemError::RepeatedElement { element: 5 });
    for value in [1e-300, 1e300, 5e-324] {
        assert_eq!(error(&[(1, value)]), ItemError::WeightOutOfRange { position: 0, value });
    }
    let found = sketcher.signature(Item::Vector(&[1.0])).unwrap_err();
    assert_eq!(found, ItemError::WrongKind { expected: kind::WEIGHTED, found: kind::VECTOR });
}

#[test]
fn the_ends_of_the_range_have_signatures() {
    for weight in [2f64.powi(-899), 2f64.powi(899)] {
        let whole = signature(&[(1, weight), (2, weight)]);
        let half = signature(&[(1, weight)]);
        let (_, within) = whole.jaccard(&half).unwrap();
        assert!(within.start().value() < 0.5 && 0.5 < within.end().value(), "{within:?}");
    }
}

proptest! {
    #[test]
    fn merging_takes_the_larger_weight(
        a in prop::collection::btree_map(0u64..40, 0.001f64..100.0, 0..20),
        b in prop::collection::btree_map(0u64..40, 0.001f64..100.0, 0..20),
    ) {
        let mut union = a.clone();
        b.iter().for_each(|(&x, &weight)| {
            let entry = union.entry(x).or_insert(weight);
            *entry = entry.max(weight);
        });
        let of = |map: std::collections::BTreeMap<u64, f64>| signature(&map.into_iter().collect::<Vec<_>>());
        let mut merged = of(a);
        merged.merge(&of(b)).unwrap();
        prop_assert_eq!(merged, of(union));
    }
}
