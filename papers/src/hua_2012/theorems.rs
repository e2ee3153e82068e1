//! The paper's theorems on false positives and false negatives, against filters made to measure.
//!
//! The workload is the one that the theorems describe. There are 2,000 records of 8 attributes, Gaussian with a
//! deviation of 30 R, which leaves them some 120 R apart; *near* queries lie exactly R from a record, in a random
//! direction; *far* queries are drawn like the records. Arrays are half full. L = 7 and M = 10 as in the paper; the
//! width of buckets runs from its ω = .85 upwards, since .85 alone would show nothing but misses. Every repetition
//! draws new functions and new records.

use nearset::{Distance, Filter, Rng, Seed, Spec, family::Hashed, spec::Probing};
use nearset_theory::locality_sensitive as theory;

use super::{
    filters,
    points::{Point, squared_distance},
};
use crate::rate::{Rate, in_parallel};

const DIMENSION: usize = 8;
const RECORDS: usize = 2_000;
/// The deviation of records and far queries, in units of R.
const DEVIATION: f64 = 30.0;
/// The number of far queries whose distances to all records are computed for the theorem on false positives.
const SAMPLED: usize = 100;

/// Widths of buckets in units of R; the first is the paper's ω.
pub const WIDTHS: [f64; 8] = [0.85, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Which of the paper's two improvements a filter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    pub verified: bool,
    pub overflow: bool,
}

impl Variant {
    pub const BASIC: Self = Self { verified: false, overflow: false };
    pub const VERIFIED: Self = Self { verified: true, overflow: false };
    pub const OVERFLOW: Self = Self { verified: false, overflow: true };
    pub const BOTH: Self = Self { verified: true, overflow: true };
    pub const ALL: [Self; 4] = [Self::BASIC, Self::VERIFIED, Self::OVERFLOW, Self::BOTH];

    pub fn name(self) -> &'static str {
        match (self.verified, self.overflow) {
            (false, false) => "basic",
            (true, false) => "with verification",
            (false, true) => "with overflow",
            (true, true) => "with both",
        }
    }

    fn spec(self, width: f64, seed: Seed) -> anyhow::Result<Spec> {
        let mut spec = filters::half_full::<DIMENSION>(width, RECORDS, seed)?;
        let (verification, probing) = (spec.verification, spec.probing);
        spec.verification = verification.filter(|_| self.verified);
        spec.probing = probing.filter(|_| self.overflow);
        Ok(spec)
    }
}

/// One width and variant: what the paper's theorems state, what the library predicts, and what was counted.
pub struct Outcome {
    pub width: f64,
    pub variant: Variant,
    /// The theorem's false negatives: a bound without overflow, an approximation with it.
    pub false_negative: f64,
    /// The theorem's false positives; it does not account for those caused by overflow.
    pub false_positive: f64,
    /// The library's prediction of both.
    pub predicted: (f64, f64),
    pub missed: Rate,
    pub accepted: Rate,
}

impl Outcome {
    /// Returns the paper's balance of both errors, λ = .3, as counted.
    pub fn balance(&self) -> f64 {
        theory::balance(self.accepted.value(), self.missed.value(), 0.3)
    }
}

/// Runs every width and variant, each with `repetitions` filters and, in each of them, `queries` queries of both kinds.
pub fn outcomes(repetitions: u64, queries: usize, seed: Seed) -> anyhow::Result<Vec<Outcome>> {
    let cells: Vec<(f64, Variant)> =
        WIDTHS.iter().flat_map(|&width| Variant::ALL.map(|variant| (width, variant))).collect();
    in_parallel(&cells, |&(width, variant)| outcome(width, variant, repetitions, queries, seed)).into_iter().collect()
}

fn outcome(width: f64, variant: Variant, repetitions: u64, queries: usize, seed: Seed) -> anyhow::Result<Outcome> {
    let (mut missed, mut accepted, mut hit_by_records) = (Rate::default(), Rate::default(), Vec::new());
    let mut predicted = (0.0, 0.0);
    let near = Distance::new(1.0)?;
    for repetition in 0..repetitions {
        // The same records and queries for every width and variant, but with their own functions.
        let mut rng = Rng::new(seed.derive("records", repetition));
        let spec = variant.spec(width, seed.derive("functions", repetition))?;
        let slots = spec.bits_per_band() as f64;
        let mut filter = Filter::new(&spec.into())?;
        let (stored, errors) = fill_and_ask(&mut filter, queries, &mut rng)?;
        (missed, accepted) = (missed + errors.0, accepted + errors.1);
        for _ in 0..SAMPLED.div_ceil(repetitions as usize) {
            let query = anywhere(&mut rng);
            // A record sets the query's bit by agreeing with it, or by chance.
            let sets = |record: &Point<DIMENSION>| {
                let distance = f64::from(squared_distance(&query, record)).sqrt();
                let agrees = libm::pow(filters::collision(distance, width), f64::from(filters::HASHES));
                agrees + (1.0 - agrees) / slots
            };
            hit_by_records.push(theory::false_positive(stored.iter().map(sets), filters::FUNCTIONS));
        }
        // Unrelated records lie farther than this from nearly every far query; only chance counts there.
        predicted.0 += (1.0 - filter.acceptance_probability(near)) / repetitions as f64;
        predicted.1 += filter.acceptance_probability(Distance::new(4.0 * DEVIATION)?) / repetitions as f64;
    }
    let hashes = f64::from(filters::HASHES);
    let same = filters::collision(near.value(), width);
    let within = filters::collision_within(near.value(), width, filters::OVERFLOW.reach).max(same);
    let agreement = libm::pow(same, hashes);
    let beside = hashes * (within - same) * libm::pow(same, hashes - 1.0);
    let basic = hit_by_records.iter().sum::<f64>() / hit_by_records.len() as f64;
    Ok(Outcome {
        width,
        variant,
        false_negative: match variant.overflow {
            false => theory::false_negative_bound(agreement, filters::FUNCTIONS),
            true => theory::probed_false_negative_exact(agreement, agreement + beside, filters::FUNCTIONS),
        },
        false_positive: match variant.verified {
            false => basic,
            true => theory::verified_false_positive(basic, filters::VERIFICATION_HASHES),
        },
        predicted,
        missed,
        accepted,
    })
}

/// One probing at one width, as counted.
pub struct Swept {
    pub width: f64,
    /// How many functions may miss, and how far their neighbours may lie; none without overflow.
    pub probing: Option<Probing>,
    pub missed: Rate,
    pub accepted: Rate,
}

/// The probings of the sweep: t from 1 to 3, for one missing function and for two.
const PROBINGS: [Option<Probing>; 7] = [
    None,
    Some(Probing { bands: 1, reach: 1 }),
    Some(Probing { bands: 1, reach: 2 }),
    Some(Probing { bands: 1, reach: 3 }),
    Some(Probing { bands: 2, reach: 1 }),
    Some(Probing { bands: 2, reach: 2 }),
    Some(Probing { bands: 2, reach: 3 }),
];

/// Counts the errors of verified filters over t, the number of functions that may miss, and the width of buckets.
pub fn sweep(repetitions: u64, queries: usize, seed: Seed) -> anyhow::Result<Vec<Swept>> {
    let widths = [16.0, 32.0, 64.0, 128.0];
    let cells: Vec<_> = widths.iter().flat_map(|&width| PROBINGS.map(|probing| (width, probing))).collect();
    let swept = in_parallel(&cells, |&(width, probing)| {
        let (mut missed, mut accepted) = (Rate::default(), Rate::default());
        for repetition in 0..repetitions {
            let mut rng = Rng::new(seed.derive("records", repetition));
            let mut spec = filters::half_full::<DIMENSION>(width, RECORDS, seed.derive("functions", repetition))?;
            spec.probing = probing;
            let (_, errors) = fill_and_ask(&mut Filter::new(&spec.into())?, queries, &mut rng)?;
            (missed, accepted) = (missed + errors.0, accepted + errors.1);
        }
        Ok(Swept { width, probing, missed, accepted })
    });
    swept.into_iter().collect()
}

/// Fills a filter with random records, and counts near queries that it misses and others that it accepts. Returns the records too.
fn fill_and_ask(
    filter: &mut Filter<'_>,
    queries: usize,
    rng: &mut Rng,
) -> anyhow::Result<(Vec<Point<DIMENSION>>, (Rate, Rate))> {
    let stored: Vec<Point<DIMENSION>> = (0..RECORDS).map(|_| anywhere(rng)).collect();
    let (mut missed, mut accepted, mut room) = (Rate::default(), Rate::default(), Hashed::default());
    for record in &stored {
        filter.insert(record.as_slice(), &mut room)?;
    }
    for _ in 0..queries {
        let near = beside(&stored[rng.below(RECORDS as u64) as usize], rng);
        missed = missed + Rate::count([!filter.contains_near(near.as_slice(), &mut room)?]);
        accepted = accepted + Rate::count([filter.contains_near(anywhere(rng).as_slice(), &mut room)?]);
    }
    Ok((stored, (missed, accepted)))
}

fn anywhere(rng: &mut Rng) -> Point<DIMENSION> {
    std::array::from_fn(|_| (DEVIATION * rng.gaussian()) as f32)
}

/// Returns a random point at distance 1 from a record.
fn beside(record: &Point<DIMENSION>, rng: &mut Rng) -> Point<DIMENSION> {
    let step: [f64; DIMENSION] = std::array::from_fn(|_| rng.gaussian());
    let length = step.iter().map(|x| x * x).sum::<f64>().sqrt();
    std::array::from_fn(|i| record[i] + (step[i] / length) as f32)
}
