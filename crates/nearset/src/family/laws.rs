//! The laws of hash families, one suite for all.
//!
//! A family's test names the family, its distances, and how to make two items that far apart; [`check`] does the rest.

use super::{Functions, Hashed, Key, Layout, LshFamily};
use crate::{
    Seed,
    hash::Rng,
    item::{BitString, Distance, Item},
    simd::{self, Level},
};

pub(crate) use crate::item::ItemBuffer;

/// Makes two random items at the given distance.
pub(crate) type MakePair<'a> = &'a dyn Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer);

/// Makes random strings that differ in `distance` of `bits` positions.
pub(crate) fn bit_pair(bits: usize) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
    move |distance, rng| {
        let bytes: Vec<u8> = (0..bits / 8).map(|_| rng.next_u64() as u8).collect();
        let a = BitString::from_bytes(&bytes);
        let mut b = a.clone();
        rng.distinct(distance as usize, bits as u64).into_iter().for_each(|at| b.flip(at as usize));
        (ItemBuffer::from(crate::Item::from(&a)), ItemBuffer::from(crate::Item::from(&b)))
    }
}

/// The number of functions per draw and of draws per distance: 20,000 collisions are tried in all.
const BANDS: u32 = 200;
const DRAWS: u64 = 100;

/// Checks every law. `distances` are five or more at which `make` can make pairs.
#[track_caller]
pub(crate) fn check(family: &dyn LshFamily, distances: &[f64], make: MakePair<'_>) {
    assert!(distances.len() >= 5, "a curve needs five points");
    check_monotone(family, distances);
    check_collision_rate(family, 1, distances, make);
    check_collision_rate(family, 3, distances, make);
    check_neighbour_rate(family, 3, distances, make);
    check_equal_items_collide(family, distances, make);
    check_determinism(family, distances, make);
    check_seeds_are_independent(family, distances, make);
}

fn distance(value: f64) -> Distance {
    Distance::new(value).unwrap()
}

pub(crate) fn keys(functions: &dyn Functions, item: Item<'_>) -> Vec<Option<Key>> {
    let mut hashed = Hashed::default();
    functions.hash(item, &mut hashed).unwrap();
    hashed.keys
}

/// Returns, for each band, whether both items have a key there and the same one.
fn agreements(functions: &dyn Functions, a: &ItemBuffer, b: &ItemBuffer) -> Vec<bool> {
    let (a, b) = (keys(functions, a.view()), keys(functions, b.view()));
    a.iter().zip(&b).map(|(a, b)| a.is_some() && a == b).collect()
}

fn check_monotone(family: &dyn LshFamily, distances: &[f64]) {
    let last = distances.iter().copied().fold(0.0, f64::max);
    let curve: Vec<f64> = (0..=1000).map(|i| family.collision_probability(distance(last * i as f64 / 1e3))).collect();
    for (i, pair) in curve.windows(2).enumerate() {
        assert!(pair[1] <= pair[0] + 1e-12, "p rises from {} to {} at {}", pair[0], pair[1], last * i as f64 / 1e3);
    }
    assert!(curve.iter().all(|p| (0.0..=1.0).contains(p)));
}

/// 6 sigma: about 2e-9 by chance at each distance. The seeds are fixed, so red means a bug.
#[track_caller]
pub(crate) fn check_collision_rate(family: &dyn LshFamily, rows: u32, distances: &[f64], make: MakePair<'_>) {
    for (i, &d) in distances.iter().enumerate() {
        let mut rng = Rng::new(Seed::new(1).derive("pairs", i as u64));
        let mut seen = 0.0;
        for draw in 0..DRAWS {
            let (a, b) = make(d, &mut rng);
            let real = family.distance(a.view(), b.view()).unwrap().value();
            assert!((real - d).abs() <= 1e-3 * d.max(1e-3), "the pair made for distance {d} is {real} apart");
            let seed = Seed::new(2).derive("draw", DRAWS * i as u64 + draw);
            let functions = family.draw(seed, Layout::new(rows, BANDS)).unwrap();
            seen += agreements(&*functions, &a, &b).into_iter().filter(|&agree| agree).count() as f64;
        }
        let tries = DRAWS as f64 * f64::from(BANDS);
        let expected = family.band_probability(distance(d), rows);
        let sigma = (expected * (1.0 - expected) / tries).sqrt().max(0.5 / tries);
        let rate = seen / tries;
        assert!(
            (rate - expected).abs() <= 6.0 * sigma,
            "{rows} rows, distance {d}: measured {rate:.5}, expected {expected:.5}, sigma {sigma:.5}"
        );
    }
}

/// Checks how often a band that does not agree is found beside its own bucket, with the same tolerance.
#[track_caller]
pub(crate) fn check_neighbour_rate(family: &dyn LshFamily, rows: u32, distances: &[f64], make: MakePair<'_>) {
    for (i, &d) in distances.iter().enumerate() {
        for reach in [0, 1, 2] {
            let mut rng = Rng::new(Seed::new(10).derive("pairs", i as u64));
            let mut seen = 0.0;
            for draw in 0..DRAWS / 4 {
                let (a, b) = make(d, &mut rng);
                let functions = family.draw(Seed::new(11).derive("draw", draw), Layout::new(rows, BANDS)).unwrap();
                let mut hashed = Hashed::default();
                functions.hash(a.view(), &mut hashed).unwrap();
                for (band, theirs) in keys(&*functions, b.view()).into_iter().enumerate() {
                    let mut beside = false;
                    functions.neighbours(&hashed, band, reach, &mut |key| beside |= Some(key) == theirs);
                    assert!(!(beside && hashed.keys[band] == theirs), "a bucket is its own neighbour");
                    seen += f64::from(u8::from(beside));
                }
            }
            let tries = (DRAWS / 4) as f64 * f64::from(BANDS);
            let expected = family.neighbour_probability(distance(d), rows, reach);
            let sigma = (expected * (1.0 - expected) / tries).sqrt().max(0.5 / tries);
            let rate = seen / tries;
            assert!(
                (rate - expected).abs() <= 6.0 * sigma,
                "reach {reach}, distance {d}: measured {rate:.5}, expected {expected:.5}, sigma {sigma:.5}"
            );
        }
    }
}

fn check_equal_items_collide(family: &dyn LshFamily, distances: &[f64], make: MakePair<'_>) {
    let mut rng = Rng::new(Seed::new(3));
    for &d in distances {
        let (a, _) = make(d, &mut rng);
        let functions = family.draw(Seed::new(4), Layout::new(2, 50)).unwrap();
        let copy = a.clone();
        assert_eq!(keys(&*functions, a.view()), keys(&*functions, copy.view()));
    }
}

fn check_determinism(family: &dyn LshFamily, distances: &[f64], make: MakePair<'_>) {
    let mut rng = Rng::new(Seed::new(5));
    for &d in distances {
        let (a, b) = make(d, &mut rng);
        let layout = Layout::new(3, 40);
        let at = |level| {
            simd::at_level(level, || {
                let functions = family.draw(Seed::new(6), layout).unwrap();
                (keys(&*functions, a.view()), keys(&*functions, b.view()))
            })
        };
        let expected = at(Level::Scalar);
        for level in Level::available() {
            assert_eq!(at(level), expected, "{level:?} differs from scalar");
        }
        let other = family.draw(Seed::new(7), layout).unwrap();
        let other = (keys(&*other, a.view()), keys(&*other, b.view()));
        assert!(
            other != expected || expected.0.iter().all(Option::is_none),
            "another seed gave the same keys for both items"
        );
    }
}

/// Function `i` of one seed and function `i` of another agree on a pair together as often as the product predicts, and
/// so do neighbouring functions of one seed, up to what balanced sampling takes away.
fn check_seeds_are_independent(family: &dyn LshFamily, distances: &[f64], make: MakePair<'_>) {
    let d = distances[distances.len() / 2];
    let mut rng = Rng::new(Seed::new(8));
    let p = family.collision_probability(distance(d));
    let (mut joint, mut tries) = (0.0, 0.0);
    for draw in 0..DRAWS {
        let (a, b) = make(d, &mut rng);
        let agree = |part| {
            let functions = family.draw(Seed::new(9).derive("joint", 2 * draw + part), Layout::new(1, BANDS)).unwrap();
            agreements(&*functions, &a, &b)
        };
        joint += agree(0).into_iter().zip(agree(1)).filter(|&(x, y)| x && y).count() as f64;
        tries += f64::from(BANDS);
    }
    let expected = p * p;
    let sigma = (expected * (1.0 - expected) / tries).sqrt();
    let rate = joint / tries;
    assert!((rate - expected).abs() <= 6.0 * sigma, "joint rate {rate:.5}, expected {expected:.5}, sigma {sigma:.5}");
}
