//! The curve as it was, from samples compared exactly.
//!
//! Removed and kept records are sampled apart, because duplicates are rare among all records and rarer still where the curve
//! turns. With `N` records removed, `n` of them checked and `a` of these in a bin, about `A = N a/n` removed records lie there;
//! likewise `B` kept ones. The rate is `A / (A + B)`.
//!
//! Claim: the interval holds the true rate in about 95 % of runs. It is normal for the log odds `ln(A/B)`, whose variance is
//! `(1/a - 1/n)(1 - n/N)` for the removed and the same for the kept; half a record is added to each count, so that a bin of one
//! kind only has an interval too (Haldane 1956, Anscombe 1956).

use nearset_view::run::Measured;

/// A record whose similarity with its nearest earlier one was computed exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Checked {
    /// That similarity.
    pub similarity: f64,
    /// Whether the record was removed.
    pub removed: bool,
}

/// Where ranges begin and end: finer where the curve of a usual threshold is steep.
const EDGES: [f64; 15] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Fewer records than this say nothing that a picture should show.
const FEWEST: u64 = 5;

/// Two-sided 95 % of the normal distribution.
const DEVIATIONS: f64 = 1.96;

/// Returns the measured curve, from uniform samples of the `removed` and of the `kept` records of a run.
pub(super) fn measured(sample: &[Checked], removed: u64, kept: u64) -> Vec<Measured> {
    let of = |kind: bool| sample.iter().filter(move |checked| checked.removed == kind);
    let strata = [(removed, of(true).count() as u64), (kept, of(false).count() as u64)];
    let highs = EDGES.iter().skip(1).copied().chain([1.0]);
    EDGES
        .iter()
        .zip(highs)
        .filter_map(|(&low, high)| {
            // The last range holds its upper end, where the copies are.
            let inside = |checked: &&Checked| {
                checked.similarity >= low && (checked.similarity < high || (high == 1.0 && checked.similarity == 1.0))
            };
            let counts = [true, false].map(|kind| of(kind).filter(inside).count() as u64);
            let checked = counts[0] + counts[1];
            if checked < FEWEST {
                return None;
            }
            let similarity =
                sample.iter().filter(inside).map(|checked| checked.similarity).sum::<f64>() / checked as f64;
            let [removed, at_least, at_most] = rate(counts, strata);
            Some(Measured { low, high, similarity, removed, at_least, at_most, checked })
        })
        .collect()
}

/// Returns the rate and its interval, from counts in a bin and the sizes of strata and of samples.
fn rate(counts: [u64; 2], strata: [(u64, u64); 2]) -> [f64; 3] {
    let scaled = |plus: f64| -> [f64; 2] {
        std::array::from_fn(|i| {
            let (size, sampled) = strata[i];
            (counts[i] as f64 + plus) * size as f64 / (sampled.max(1)) as f64
        })
    };
    let [a, b] = scaled(0.0);
    let plain = a / (a + b);
    let whole = strata.iter().all(|(size, sampled)| size <= sampled);
    if whole {
        return [plain; 3];
    }
    // A stratum without records has no odds to be uncertain about: half a record stands for what was not drawn of it.
    let [a, b] = scaled(0.5).map(|count| count.max(0.5));
    let variance: f64 = counts
        .iter()
        .zip(strata)
        .map(|(&count, (size, sampled))| {
            let drawn = sampled as f64 / size.max(1) as f64;
            (1.0 / (count as f64 + 0.5) - 1.0 / (sampled as f64 + 1.0)).max(0.0) * (1.0 - drawn).max(0.0)
        })
        .sum();
    let odds = |deviations: f64| {
        let odds = ((a / b).ln() + deviations * variance.sqrt()).exp();
        odds / (1.0 + odds)
    };
    [plain, odds(-DEVIATIONS).min(plain), odds(DEVIATIONS).max(plain)]
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    #[test]
    fn a_whole_population_is_measured_without_error() {
        let sample: Vec<Checked> = (0..100).map(|i| Checked { similarity: 0.82, removed: i % 4 != 0 }).collect();
        let curve = measured(&sample, 75, 25);
        assert_eq!(curve.len(), 1);
        let Measured { low, high, similarity, removed, at_least, at_most, checked } = curve[0];
        assert_eq!((low, high, checked), (0.8, 0.85, 100));
        assert!((similarity - 0.82).abs() < 1e-12);
        assert_eq!((removed, at_least, at_most), (0.75, 0.75, 0.75));
    }

    #[test]
    fn copies_are_in_the_last_range_and_few_records_in_none() {
        let copies = vec![Checked { similarity: 1.0, removed: true }; 5];
        let curve = measured(&copies, 1000, 1000);
        assert_eq!((curve[0].low, curve[0].high, curve[0].removed, curve[0].at_most), (0.95, 1.0, 1.0, 1.0));
        assert!(curve[0].at_least < 1.0, "five records do not prove a certainty");
        assert!(measured(&copies[1..], 1000, 1000).is_empty());
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // 4,000 records at one similarity, of which 30 % are removed, among 40,000 others that are kept and 6,000 removed copies.
        let mut rng = Rng::new(Seed::new(5));
        let (removed, kept, trials) = (1_200 + 6_000, 2_800 + 40_000, 2_000);
        let mut held = 0;
        for _ in 0..trials {
            let mut sample = Vec::new();
            for _ in 0..500 {
                let near = rng.unit() < 1_200.0 / removed as f64;
                sample.push(Checked { similarity: if near { 0.77 } else { 1.0 }, removed: true });
                let near = rng.unit() < 2_800.0 / kept as f64;
                sample.push(Checked { similarity: if near { 0.77 } else { 0.05 }, removed: false });
            }
            let curve = measured(&sample, removed, kept);
            let bin = curve.iter().find(|bin| bin.low == 0.75).expect("over a hundred records lie there");
            held += u32::from(bin.at_least <= 0.3 && 0.3 <= bin.at_most);
        }
        // 2,000 trials at 95 %: sigma is .0049, 4 of them.
        let share = f64::from(held) / f64::from(trials);
        assert!((share - 0.95).abs() < 0.0195, "{share}");
    }
}
