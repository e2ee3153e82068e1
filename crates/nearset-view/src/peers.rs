//! What others would choose for the same request: the curve beside ours.

use nearset::Metric;
use nearset::plan::Plan;
use nearset::spec::Terms;
use nearset_theory::{amplify::s_curve, binomial, distance_sensitive as paper};

use crate::words::count;

/// Another's choice, and how likely it accepts at a number in the metric's own unit.
pub struct Peer {
    /// Its name and choice, as the legend of a chart has it.
    pub name: String,
    /// The probability of acceptance.
    pub accepts: Box<dyn Fn(f64) -> f64>,
}

/// Returns the choice of the best-known tool or paper for the metric, if there is one.
pub fn peer(plan: &Plan) -> Option<Peer> {
    let near = plan.request.near;
    match plan.request.metric {
        Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => {
            let (bands, rows) = datasketch(near);
            let name = format!(
                "datasketch, threshold {}, 128 permutations: {bands} bands of {rows} rows, any is enough",
                near
            );
            Some(Peer { name, accepts: Box::new(move |similarity| s_curve(similarity, rows, bands)) })
        }
        Metric::Hamming { bits } => kirsch_mitzenmacher(plan.terms(), f64::from(bits)),
        _ => None,
    }
}

/// Permutations of a MinHash in datasketch where nothing is said.
const PERMUTATIONS: u32 = 128;

/// Bands and rows that datasketch takes for a threshold: those with the least sum of the areas of false positives and false
/// negatives, by its rectangles of width .001.
fn datasketch(threshold: f64) -> (u32, u32) {
    const STEP: f64 = 0.001;
    let area = |from: f64, to: f64, height: &dyn Fn(f64) -> f64| {
        let steps = ((to - from) / STEP).ceil().max(0.0) as u32;
        (0..steps).map(|i| height(from + STEP * f64::from(i) + 0.5 * STEP) * STEP).sum::<f64>()
    };
    let error = |bands, rows| {
        let accepted = |similarity: f64| s_curve(similarity.min(1.0), rows, bands);
        0.5 * area(0.0, threshold, &accepted) + 0.5 * area(threshold, 1.0, &|similarity| 1.0 - accepted(similarity))
    };
    let shapes = (1..=PERMUTATIONS).flat_map(|bands| (1..=PERMUTATIONS / bands).map(move |rows| (bands, rows)));
    let scored = shapes.map(|(bands, rows)| (error(bands, rows), (bands, rows)));
    scored.min_by(|a, b| a.0.total_cmp(&b.0)).map_or((1, PERMUTATIONS), |(_, shape)| shape)
}

/// Returns the paper's rule for rows and threshold, with as many tables as its own bounds ask for to keep the same promises.
fn kirsch_mitzenmacher(terms: &Terms, bits: f64) -> Option<Peer> {
    // Where the bounds ask for more tables than this, nobody would build it.
    const MOST_TABLES: f64 = 1e8;
    let (near, far, items) = (terms.near.value() / bits, terms.far.value() / bits, terms.capacity as f64);
    if terms.max_false_negative == 0.0 || far >= 1.0 {
        return None;
    }
    let rows = paper::sampled_bits(near, far, items);
    let one = |bound: fn(f64, u32, u32) -> f64| -bound(near, rows, 1).ln();
    let tables = (-terms.max_false_negative.ln() / one(paper::false_negative_bound))
        .max(-terms.max_false_positive.ln() / one(paper::false_positive_bound))
        .ceil();
    if !(tables <= MOST_TABLES) {
        return None;
    }
    let filter = paper::Filter::printed(items, near, far, tables as u32);
    let per_item = filter.bits_per_item();
    let size = if per_item < 1e6 { count(per_item as u64) } else { format!("{per_item:.1e}") };
    let name = format!(
        "Kirsch & Mitzenmacher's rule: {} tables of {rows} sampled bits, {} must hit; {size} bits per item",
        count(tables as u64),
        count(filter.threshold.into())
    );
    let chance = paper::chance_hit(rows, items);
    let accepts = move |distance: f64| {
        let hit = paper::hit(paper::agreement(distance / bits, rows), chance);
        binomial::at_least(filter.tables, hit, filter.threshold)
    };
    Some(Peer { name, accepts: Box::new(accepts) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasketch_is_imitated() {
        // The b and r of MinHashLSH(threshold, num_perm=128) in datasketch 2.0.0.
        assert_eq!([0.5, 0.7, 0.8, 0.9].map(datasketch), [(25, 5), (14, 9), (9, 13), (5, 25)]);
    }
}
