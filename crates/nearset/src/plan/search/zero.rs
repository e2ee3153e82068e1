//! No false negatives at all, for Hamming distances: balanced sampling with the threshold that never loses a near item
//! (Gregersen, Faarhoff & Marker 2014).
//!
//! A difference reaches at most `uses = ceil(rows bands / length)` bands, so the threshold is `bands - radius uses`. More
//! bands at the same number of uses only help, so each whole number of uses is tried with all the bands that it allows, and
//! a single use with fewer as well.

use nearset_theory::{balanced::Balanced, binomial};

use super::{
    Candidate, Failure, MOST_BITS, Objective,
    model::Model,
    tables,
    threshold::{largest_hit, steps},
};
use crate::{Layout, Spec, Table, error::MOST_DIRECT_ROWS, family::LshFamily, plan::Minimise};

/// How often a position is used, at most.
const MOST_USES: u32 = 12;

/// So many of the best are built and checked by exact distributions.
const TRIES: usize = 4;

/// So many numbers of bands are tried between the fewest and the most.
const BANDS: u32 = 64;

/// Numbers of rows are tried one by one while this is less than a step, and then at this ratio.
const ROWS: f64 = 0.002;

/// All numbers from `from` up to `to`, or, where they are many, `BANDS` of them at equal ratios: their costs differ by less
/// than the ratio of neighbours.
fn spread(from: u32, to: u32) -> impl Iterator<Item = u32> {
    let count = to.saturating_sub(from).min(BANDS);
    let ratio = libm::pow(f64::from(to) / f64::from(from), 1.0 / f64::from(count.max(1)));
    let mut last = 0;
    (0..count).filter_map(move |step| {
        let at = match to - from <= BANDS {
            true => from + step,
            false => (f64::from(from) * libm::pow(ratio, f64::from(step))) as u32,
        };
        let new = at > last;
        last = at;
        new.then_some(at)
    })
}

/// The best filter, if any keeps the false positives.
pub(super) fn search(model: &Model<'_>, length: u32, objective: &Objective) -> Result<Candidate, Failure> {
    let goal = model.goal;
    let radius = goal.near.value() as u32;
    let mut cells: Vec<(f64, Layout, u32, f64, bool)> = Vec::new();
    let most_functions = super::most_functions(&model.family);
    for rows in steps(1, (length / radius.max(1)).min(most_functions / (radius + 1)), ROWS) {
        let band = model.band(rows);
        let most = most_functions / rows;
        let full = (1..=MOST_USES).map(|uses| u64::from(uses) * u64::from(length) / u64::from(rows));
        let full = full.map_while(|bands| u32::try_from(bands).ok().filter(|bands| *bands <= most));
        let last = (length / rows > most).then_some(most);
        for bands in spread(radius + 1, (length / rows).min(most)).chain(full).chain(last) {
            let Some(threshold) = (Balanced { length, radius, rows, tables: bands }).threshold() else { continue };
            let agree = band.far_hit(0.0);
            if binomial::at_least(bands, agree, threshold) > goal.max_false_positive {
                continue;
            }
            let allowed = largest_hit(bands, threshold, goal.max_false_positive).max(agree);
            let chance = (allowed - agree) / (1.0 - agree);
            let hashed = tables::bits_for(chance, goal.capacity).unwrap_or(f64::INFINITY);
            let direct = match model.family.values_are_bits() && rows <= MOST_DIRECT_ROWS {
                true => libm::exp2(f64::from(rows)),
                false => f64::INFINITY,
            };
            let layout = Layout::new(rows, bands);
            let bits = f64::from(bands) * hashed.min(direct);
            let score = objective.score(bits, objective.steps(&model.family, layout));
            cells.push((score, layout, threshold, chance, direct <= hashed));
        }
    }
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = cells.iter().take(TRIES).find_map(|&(_, layout, threshold, chance, direct)| {
        let table = if direct { Table::Direct } else { tables::table_for(chance, goal.capacity)? };
        Candidate::checked(model, Spec::new(model.family, layout, threshold, table, goal.seed).ok()?)
    });
    found.ok_or(match cells.first() {
        Some(&(score, ..)) if objective.minimise == Minimise::Bytes && score > MOST_BITS => {
            Failure::TooLarge { bits: score }
        }
        _ => Failure::Nothing,
    })
}
