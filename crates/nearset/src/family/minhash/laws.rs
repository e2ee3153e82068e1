//! Laws of MinHash beyond those of all families: the estimator's bias and variance, also for sets smaller than the
//! signature, and the coverage of its confidence interval.

use super::{permutation::Permutations, sketch::FastSketch, *};
use crate::{
    family::laws::{self, ItemBuffer},
    hash::Rng,
};

/// Two sets whose Jaccard similarity is as close to `similarity` as one of `size` elements allows: `shared` elements in
/// both, the rest of `size` in the first, `extra` in the second.
#[derive(Debug, Clone, Copy)]
struct Shape {
    size: usize,
    shared: usize,
    extra: usize,
}

impl Shape {
    fn nearest(size: usize, similarity: f64) -> Self {
        let extras = 0..=10 * size;
        let shapes = extras.map(|extra| {
            let shared = (similarity * (size + extra) as f64).round().min(size as f64) as usize;
            Shape { size, shared, extra }
        });
        // Among equally close ones the sizes should be equal, as in practice.
        let error = |shape: &Shape| (shape.similarity() - similarity).abs();
        shapes
            .min_by(|a, b| (error(a) - error(b)).signum().total_cmp(&0.0).then(a.imbalance().cmp(&b.imbalance())))
            .unwrap()
    }

    fn imbalance(&self) -> usize {
        (self.shared + self.extra).abs_diff(self.size)
    }

    fn similarity(&self) -> f64 {
        self.shared as f64 / (self.size + self.extra) as f64
    }

    fn draw(&self, rng: &mut Rng) -> (Vec<u64>, Vec<u64>) {
        let all: Vec<u64> = (0..self.size + self.extra).map(|_| rng.next_u64()).collect();
        let b = all[..self.shared].iter().chain(&all[self.size..]).copied().collect();
        (all[..self.size].to_vec(), b)
    }
}

/// Sums, over repetitions, of how many slots, and bands of five, two signatures agree in.
#[derive(Default)]
struct Moments {
    repetitions: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.repetitions += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.repetitions
    }

    fn variance(&self) -> f64 {
        (self.squares - self.sum * self.sum / self.repetitions) / (self.repetitions - 1.0)
    }
}

const ROWS: usize = 5;

/// Runs `repetitions` pairs through a sketch, `PAIRS` under each of many seeds, so that both the functions and the sets
/// are drawn anew; `visit` gets the numbers of agreeing slots and bands for each.
fn simulate<S: Sketch>(
    make: impl Fn(Seed) -> S,
    slots: usize,
    shape: Shape,
    seeds: u64,
    visit: &mut dyn FnMut(usize, usize),
) {
    const PAIRS: u64 = 50;
    let mut rng = Rng::new(Seed::new(slots as u64).derive("sets", shape.size as u64));
    let mut positions = Vec::new();
    for seed in 0..seeds {
        let sketch = make(Seed::new(11).derive("variance", seed));
        for _ in 0..PAIRS {
            let (mut a, mut b) = shape.draw(&mut rng);
            let mut signatures = [vec![kernel::EMPTY; slots], vec![kernel::EMPTY; slots]];
            for (elements, signature) in [&mut a, &mut b].into_iter().zip(&mut signatures) {
                if !elements.is_empty() {
                    sketch.sketch(elements, signature, &mut positions);
                }
            }
            let agree: Vec<bool> = signatures[0].iter().zip(&signatures[1]).map(|(a, b)| a == b).collect();
            let bands = slots / ROWS;
            let whole = (0..bands).filter(|band| (0..ROWS).all(|row| agree[row * bands + band])).count();
            visit(agree.iter().filter(|&&agree| agree).count(), whole);
        }
    }
}

const SIMILARITIES: [f64; 4] = [0.1, 0.5, 0.8, 0.95];
const SIZES: [usize; 5] = [1, 5, 50, 300, 5000];
const SLOTS: [usize; 3] = [128, 640, 1024];

/// The variance of a sample variance over `n` draws of a nearly normal value is `2/(n-1)` of its square: with 4,000
/// draws, a standard error of 2.2 %. The limit of 1.1 is on the true ratio; a measured one must not exceed 1.1 plus 3
/// standard errors. Real ratios lie between .5 and 1, so red means a bug. The bias gets 6 sigma.
#[test]
fn the_estimator_has_no_bias_and_the_variance_of_independent_slots() {
    println!("   size      J  slots  variance / (J(1-J)/k)  bands of 5: variance / independent");
    for size in SIZES {
        for target in SIMILARITIES {
            for slots in SLOTS {
                let shape = Shape::nearest(size, target);
                let similarity = shape.similarity();
                let (mut single, mut banded) = (Moments::default(), Moments::default());
                simulate(|seed| FastSketch::new(seed, slots), slots, shape, 80, &mut |agreeing, whole| {
                    single.add(agreeing as f64 / slots as f64);
                    banded.add(whole as f64);
                });
                let independent = similarity * (1.0 - similarity) / slots as f64;
                let sigma = (independent / single.repetitions).sqrt();
                assert!(
                    (single.mean() - similarity).abs() <= 6.0 * sigma,
                    "{shape:?}, {slots} slots: mean {} is {} sigma away",
                    single.mean(),
                    (single.mean() - similarity) / sigma
                );
                if independent == 0.0 {
                    assert_eq!(single.variance(), 0.0, "{shape:?} is a pair of equal sets");
                    continue;
                }
                let ratio = single.variance() / independent;
                let whole = similarity.powi(ROWS as i32);
                let band_ratio = banded.variance() / ((slots / ROWS) as f64 * whole * (1.0 - whole));
                // Where bands hardly ever agree there is nothing to measure.
                let bands = if whole > 1e-3 { format!("{band_ratio:28.3}") } else { String::new() };
                println!("{size:7} {similarity:6.3} {slots:6} {ratio:10.3} {bands}");
                let standard_error = (2.0 / (single.repetitions - 1.0)).sqrt();
                assert!(ratio <= 1.1 + 3.0 * standard_error, "{shape:?}, {slots} slots: variance ratio {ratio}");
            }
        }
    }
}

/// Wilson's interval promises 95 % on average for independent slots. At any one similarity and length the discrete
/// count moves it by a percent or two; where slots spread better than independent ones it covers more.
#[test]
fn the_interval_covers_the_truth_as_documented() {
    let (mut all, mut cells) = (0.0, 0.0);
    for (size, slots) in [(50, 128), (300, 128), (300, 1024), (40, 640)] {
        for target in [0.1, 0.3, 0.5, 0.8, 0.9, 0.95] {
            let shape = Shape::nearest(size, target);
            let (mut covered, mut pairs) = (0.0, 0.0);
            simulate(|seed| FastSketch::new(seed, slots), slots, shape, 80, &mut |agreeing, _| {
                let estimate = Estimate::from_agreements(agreeing, slots);
                pairs += 1.0;
                let (low, high) = (estimate.low.value(), estimate.high.value());
                covered += f64::from((low..=high).contains(&shape.similarity()));
            });
            let coverage = covered / pairs;
            assert!(coverage >= 0.93, "{shape:?}, {slots} slots: covered {coverage}");
            all += coverage;
            cells += 1.0;
        }
    }
    let average: f64 = all / cells;
    assert!((0.95..0.995).contains(&average), "covered {average} on average");
}

/// The definition obeys the same laws, so the bounds above demand nothing special.
#[test]
fn independent_permutations_have_the_variance_of_theory() {
    let shape = Shape::nearest(50, 0.5);
    let mut single = Moments::default();
    simulate(|seed| Permutations::new(seed, 128), 128, shape, 120, &mut |agreeing, _| {
        single.add(agreeing as f64 / 128.0)
    });
    let ratio = single.variance() / (0.25 / 128.0);
    // Six standard errors of 1.8 %.
    assert!((ratio - 1.0).abs() < 0.11, "{ratio}");
}

/// Makes sets of `size` elements, with `distance * size` of a union of `size` outside the intersection.
fn pair(size: usize) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
    move |distance, rng| {
        let all: Vec<u64> = (0..size).map(|_| rng.next_u64()).collect();
        let apart = (distance * size as f64).round() as usize;
        let mut a = all[..size - apart / 2].to_vec();
        rng.shuffle(&mut a);
        (
            ItemBuffer::from(crate::Item::Set(&a)),
            ItemBuffer::from(crate::Item::Set(
                &all[..size - apart].iter().chain(&all[size - apart / 2..]).copied().collect::<Vec<_>>(),
            )),
        )
    }
}

const DISTANCES: [f64; 6] = [0.0, 0.05, 0.2, 0.4, 0.6, 0.9];

#[test]
fn fast_minhash_obeys_the_laws() {
    for size in [20, 100, 1000] {
        laws::check(&MinHash::default(), &DISTANCES, &pair(size));
    }
}

#[test]
fn permutation_minhash_obeys_the_laws() {
    laws::check(&PermutationMinHash::default(), &DISTANCES, &pair(100));
}
