//! Slide 49: random projections are slower than MinHash, but more accurate.
//!
//! Pairs of equally large sets with a given Jaccard similarity J, once as sets for MinHash and once as vectors of zeros
//! and ones for hyperplanes. Both estimate J: MinHash by the part of its values that agree, hyperplanes by the angle,
//! whose cosine is `2J/(1+J)` for sets of one size. They are compared at the same number of functions and at the same
//! number of stored bits: a value of MinHash takes 32 bits, a hyperplane's side one.

use std::{hint::black_box, time::Instant};

use nearset::{
    Family, Item, Layout, Rng, Seed,
    family::{Hashed, Hyperplane, MinHash},
    spec::Hasher,
};

use crate::{
    format::significant,
    run::{Outcome, Run},
    table::Table,
};

/// Elements of the universe, and so the vectors' dimension.
const UNIVERSE: u32 = 2_048;
/// Elements of a pair's union.
const UNION: usize = 600;
/// MinHash functions.
const FUNCTIONS: u32 = 128;
/// Bits that a stored value of MinHash takes.
const VALUE_BITS: u32 = 32;
const SIMILARITIES: [f64; 3] = [0.5, 0.8, 0.95];

/// The root mean squared errors at each of [`SIMILARITIES`], and the best time for an item.
struct Measured {
    name: String,
    bits: u32,
    errors: [f64; 3],
    /// What theory says of them.
    expected: [f64; 3],
    microseconds: f64,
}

/// Measures both.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    run.progress("projections beside MinHash");
    let draws = run.full_or_quick(20, 4);
    let hyperplanes = Family::from(Hyperplane { dimension: UNIVERSE });
    let minhash = Family::from(MinHash::default());
    let mut all = Vec::new();
    for (name, family, functions, bits) in [
        ("MinHash", minhash, FUNCTIONS, FUNCTIONS * VALUE_BITS),
        ("hyperplanes, as many functions", hyperplanes, FUNCTIONS, FUNCTIONS),
        ("hyperplanes, as many bits", hyperplanes, FUNCTIONS * VALUE_BITS, FUNCTIONS * VALUE_BITS),
    ] {
        all.push(measure(name, family, functions, bits, draws)?);
    }
    let mut table = Table::new([
        "hash",
        "bits per item",
        "error at J = .5",
        "predicted",
        "error at J = .8",
        "predicted",
        "error at J = .95",
        "predicted",
        "µs per item",
    ]);
    for row in &all {
        let mut cells = vec![row.name.clone(), row.bits.to_string()];
        for (error, expected) in row.errors.iter().zip(row.expected) {
            cells.extend([significant(*error, 3), significant(expected, 3)]);
        }
        cells.push(significant(row.microseconds, 3));
        table.row(cells);
    }
    run.table("projections", &table)?;
    let [minhash, functions, bits] = all.as_slice() else { unreachable!("three were measured") };
    for row in &all {
        let off = row.errors.iter().zip(row.expected).map(|(error, expected)| (error / expected - 1.0).abs());
        // The error of a root mean square over n pairs is 1/√(2n): 4 % in full, 9 % in quick runs, and somewhat more as
        // pairs share functions.
        let off = off.fold(0.0, f64::max);
        run.require(off < 0.35, format!("{}: errors {off:.2} off what theory says", row.name));
    }
    let worse = functions.errors.iter().zip(minhash.errors).all(|(a, b)| *a > b);
    let better = bits.errors.iter().zip(minhash.errors).all(|(a, b)| *a < b);
    run.require(worse && better, "slide 49: errors changed sides");
    run.verdict(
        ("slide 49", "random projections are slower but more accurate"),
        "projections.tsv",
        "said, no number given",
        &format!(
            "at J = .8 the error is {} for MinHash's {} with as many functions, {} with as many bits, at {} and {} times MinHash's time",
            significant(functions.errors[1], 2),
            significant(minhash.errors[1], 2),
            significant(bits.errors[1], 2),
            significant(functions.microseconds / minhash.microseconds, 2),
            significant(bits.microseconds / minhash.microseconds, 2),
        ),
        Outcome::Differs("it depends on what is counted: for the same number of functions projections are less accurate, for the same stored bits (32 for a value of MinHash, 1 for a side of a plane) more accurate; the time is that of dense vectors of 2,048 components".into()),
    );
    Ok(())
}

fn measure(name: &str, family: Family, functions: u32, bits: u32, draws: u64) -> anyhow::Result<Measured> {
    let vectors = matches!(family, Family::Hyperplane(_));
    let estimate = |agreement: f64| match vectors {
        false => agreement,
        true => {
            let cosine = (std::f64::consts::PI * (1.0 - agreement)).cos();
            cosine / (2.0 - cosine)
        }
    };
    let (mut errors, mut best) = ([0.0; 3], f64::INFINITY);
    // Drawing thousands of hyperplanes takes long, so some pairs share them.
    const PAIRS: usize = 15;
    for seed in 0..draws {
        let hasher = Hasher::new(family, Layout::new(1, functions), Seed::new(seed))?;
        let mut rng = Rng::new(Seed::new(seed).derive("sets", 49));
        for (similarity, error) in (0..PAIRS).flat_map(|_| SIMILARITIES.into_iter().zip(0..)) {
            let error = &mut errors[error];
            let pair = pair(similarity, &mut rng);
            let mut hashed = [Hashed::default(), Hashed::default()];
            for (set, hashed) in pair.iter().zip(&mut hashed) {
                match vectors {
                    false => hasher.hash(Item::Set(set), hashed)?,
                    true => {
                        let vector = vector(set);
                        let started = Instant::now();
                        hasher.hash(Item::Vector(black_box(&vector)), hashed)?;
                        best = best.min(started.elapsed().as_secs_f64());
                        continue;
                    }
                }
                // Functions are drawn with the first item, so the second hash is the one that counts.
                let started = Instant::now();
                hasher.hash(Item::Set(black_box(set)), hashed)?;
                best = best.min(started.elapsed().as_secs_f64());
            }
            let agree = hashed[0].keys.iter().zip(&hashed[1].keys).filter(|(a, b)| a == b).count();
            let off = estimate(agree as f64 / f64::from(functions)) - similarity;
            *error += off * off / (draws as usize * PAIRS) as f64;
        }
    }
    let expected = SIMILARITIES.map(|similarity| {
        let root = |p: f64| (p * (1.0 - p) / f64::from(functions)).sqrt();
        match vectors {
            false => root(similarity),
            true => {
                let cosine = 2.0 * similarity / (1.0 + similarity);
                let angle = cosine.acos();
                let of_cosine = std::f64::consts::PI * angle.sin() * root(1.0 - angle / std::f64::consts::PI);
                2.0 / (2.0 - cosine).powi(2) * of_cosine
            }
        }
    });
    Ok(Measured { name: name.into(), bits, errors: errors.map(f64::sqrt), expected, microseconds: 1e6 * best })
}

/// Makes two sets of one size with this similarity.
fn pair(similarity: f64, rng: &mut Rng) -> [Vec<u64>; 2] {
    let common = (similarity * UNION as f64).round() as usize;
    let own = (UNION - common) / 2;
    let all = rng.distinct(UNION, u64::from(UNIVERSE));
    let mut all: Vec<u64> = all.into_iter().collect();
    crate::strings::shuffle(&mut all, rng);
    [0, own].map(|skip| all[..common].iter().chain(&all[common + skip..common + skip + own]).copied().collect())
}

fn vector(set: &[u64]) -> Vec<f32> {
    let mut vector = vec![0.0; UNIVERSE as usize];
    set.iter().for_each(|&element| vector[element as usize] = 1.0);
    vector
}
