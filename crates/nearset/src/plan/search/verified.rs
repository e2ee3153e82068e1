//! Verified filters with probing (Hua et al. 2012): every band must hit, and all of them with one item's keys.
//!
//! A grid over bands, rows, bands that may be made good, and fills; for each cell the laxest verification that still keeps
//! the false positives, by their slope. False negatives are taken at capacity too: where a missing band is hit by chance,
//! probing does not look beside it, so such a filter loses more near items the fuller it is.

use super::{Candidate, Failure, Objective, model::Model, tables, threshold::steps};
use crate::{
    BloomFilter, Layout, Spec, Table,
    family::LshFamily,
    spec::{Probing, Rule, Verification},
};

/// Fills of the bands' tables that are tried.
const FILLS: [f64; 2] = [0.2, 0.5];

/// The most bands that are tried: each costs a table, and probing makes good two at most.
const MOST_BANDS: u32 = 6;

/// The longest bands that are tried.
const MOST_ROWS: u32 = 96;

/// The same where two bands may be made good, whose stand-ins multiply.
const MOST_ROWS_TWICE: u32 = 24;

/// The best filter, if any keeps the promises.
pub(super) fn search(model: &Model<'_>, objective: &Objective) -> Result<Candidate, Failure> {
    let most_functions = super::most_functions(&model.family);
    let mut best: Option<Cell> = None;
    for bands in 2..=MOST_BANDS {
        for made_good in 1..=2.min(bands - 1) {
            let probing = Probing { bands: made_good, reach: 1 };
            let longest = if made_good == 1 { MOST_ROWS } else { MOST_ROWS_TWICE };
            for rows in steps(1, super::most_rows(&model.family).min(most_functions / bands).min(longest), 0.2) {
                if model.family.neighbour_buckets(rows, 1) == 0 {
                    return Err(Failure::Nothing);
                }
                let Some(spec) = bare(model, Layout::new(rows, bands), probing) else { continue };
                // Longer bands only lose more.
                if 1.0 - spec.acceptance_probability(model.goal.near, 0.0, 0.0) > model.goal.max_false_negative {
                    break;
                }
                best = FILLS
                    .into_iter()
                    .filter_map(|fill| cell(model, &spec, fill, objective))
                    .chain(best)
                    .min_by(|a, b| a.score.total_cmp(&b.score));
            }
        }
    }
    // Other items' tuples, which the slope leaves out, may take a part of what is allowed.
    let best = best.ok_or(Failure::Nothing)?;
    let found = [1.0, 0.9, 0.7, 0.4].into_iter().find_map(|part| {
        let (lines, hashes) = BloomFilter::planned(model.goal.capacity, part * best.passes).ok()?;
        Candidate::checked(model, Spec { verification: Some(Verification { lines, hashes }), ..best.spec.clone() })
    });
    found.ok_or(Failure::Nothing)
}

/// A rate that verification lets pass, small enough for twice of it to do twice the harm.
const FEW: f64 = 1e-6;

/// A filter but for its verification.
struct Cell {
    score: f64,
    spec: Spec,
    passes: f64,
}

/// All that does not depend on sizes.
fn bare(model: &Model<'_>, layout: Layout, probing: Probing) -> Option<Spec> {
    Some(Spec {
        family: model.family,
        seed: model.goal.seed,
        rows: layout.rows,
        rule: Rule::threshold(layout.bands, layout.bands).ok()?,
        table: Table::Bits(1),
        verification: Some(Verification { lines: 1, hashes: 8 }),
        probing: Some(probing),
    })
}

fn cell(model: &Model<'_>, bare: &Spec, fill: f64, objective: &Objective) -> Option<Cell> {
    let goal = model.goal;
    let band = model.band(bare.rows);
    let filled = 1.0 - (1.0 - band.crowd) * (1.0 - fill);
    if 1.0 - bare.acceptance_probability(goal.near, filled, 0.0) > goal.max_false_negative {
        return None;
    }
    // Nearly linear in what verification lets pass, from none on.
    let accepted = |passes: f64| bare.acceptance_probability(goal.far, filled, passes);
    let (none, few) = (accepted(0.0), accepted(FEW));
    if none >= goal.max_false_positive {
        return None;
    }
    let passes = ((goal.max_false_positive - none) * FEW / (few - none)).clamp(2.0 * FEW, 0.9);
    let bits = tables::bits_for(fill, goal.capacity)?;
    let total = bits * f64::from(bare.rule.bands()) + tables::line_bits(passes, goal.capacity);
    let spec = Spec { table: Table::Bits(bits as u64), ..bare.clone() };
    Some(Cell { score: objective.score(total, objective.steps_of(&spec)), spec, passes })
}
