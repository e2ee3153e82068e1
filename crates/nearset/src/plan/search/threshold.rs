//! Threshold filters, with an OR of bands as the threshold 1.
//!
//! For given rows and bands everything else follows: the largest threshold that keeps the false negatives, the largest
//! hit probability that the threshold forgives at the false positives, what of it is left for chance hits, and from
//! that the smallest table. A threshold that follows the fill may count on chance hits, and so bears fuller tables; its
//! tables are of single bits, whose fill is known at any time. So the search is over two whole numbers: coarsely in steps of a few per cent, then over all
//! of them around the best cells.

use nearset_theory::{binomial, bloom};

use super::{
    Candidate, Failure, MOST_BITS, Objective,
    model::{Band, Model},
    tables,
};
use crate::{
    Layout, Spec, Table,
    error::MOST_DIRECT_ROWS,
    family::{LshFamily, Unrelated},
    plan::{FarModel, Goal},
    spec::{self},
};

/// Which thresholds are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// One band is enough.
    Or,
    /// The largest that keeps the false negatives.
    Best,
}

/// Rows and bands with what follows from them.
#[derive(Debug, Clone, Copy)]
struct Cell {
    layout: Layout,
    decision: Decision,
    table: TableKind,
    bits: f64,
}

/// What decides.
#[derive(Debug, Clone, Copy)]
enum Decision {
    /// So many hits.
    Fixed(u32),
    /// As many as the promise takes at the present fill.
    Follows,
}

/// A table, with the chance hit that it may have at capacity.
#[derive(Debug, Clone, Copy)]
enum TableKind {
    Direct,
    /// Of single bits, whose fill a rule can follow.
    Bits(f64),
    Any(f64),
}

/// The largest probability of a hit at which at most `max` of the queries reach the threshold.
pub(super) fn largest_hit(bands: u32, threshold: u32, max: f64) -> f64 {
    if threshold <= 1 {
        return -libm::expm1(libm::log1p(-max) / f64::from(bands));
    }
    if threshold == bands {
        return libm::pow(max, 1.0 / f64::from(bands));
    }
    // Newton's method for the logarithm of the tail over that of the hit, whose slope is `threshold pmf / tail`; halving
    // where a step would leave the bracket.
    let (mut low, mut high) = (0.0, 1.0);
    let mut hit = f64::from(threshold) / f64::from(bands) * 0.8;
    for _ in 0..60 {
        let tail = binomial::at_least(bands, hit, threshold);
        if tail <= max {
            low = hit;
            if tail > max * (1.0 - 1e-6) {
                break;
            }
        } else {
            high = hit;
        }
        let slope = f64::from(threshold) * binomial::pmf(bands, hit, threshold) / tail;
        // A little below the root, so that the last step lands on the side that keeps the promise.
        let step = (libm::log(max * (1.0 - 4e-7)) - libm::log(tail)) / slope;
        let next = hit * libm::exp(step);
        hit = if next > low && next < high { next } else { 0.5 * (low + high) };
        if high - low < 1e-12 {
            break;
        }
    }
    low
}

/// The largest chance hit at which a threshold that follows the fill keeps both promises, where one does when empty.
fn followed_chance(goal: &Goal, band: &Band, wide: &Band, bands: u32, least: f64) -> f64 {
    let keeps = |chance: f64| {
        let bits = f64::from(bands) * goal.capacity as f64 * bloom::slots_per_key(chance);
        let low = tables::low_fill(chance, bits);
        let threshold = binomial::largest_threshold(bands, band.near_hit(low), goal.max_false_negative);
        binomial::at_least(bands, wide.far_hit(chance), threshold) <= goal.max_false_positive
    };
    let (mut low, mut high) = (least, 1.0);
    while high - low > 5e-4 * (1.0 - low) {
        let middle = 0.5 * (low + high);
        if keeps(middle) { low = middle } else { high = middle }
    }
    low
}

/// Whether a direct table's fill is how often the crowd agrees with a query's band: where items are random, or lie as far away as
/// random ones do, to an eighth of the deviation of their distances. Nearer ones agree more often than the fill says, and farther ones
/// less.
fn fills_evenly(goal: &Goal) -> bool {
    match (&goal.far_model, goal.metric.unrelated()) {
        (FarModel::Random, _) => true,
        (FarModel::Background(own), Some(Unrelated::Coins(length))) => {
            let length = f64::from(length);
            (own - length / 2.0).abs() <= libm::sqrt(length) / 16.0
        }
        _ => false,
    }
}

/// The smallest filter of these rows and bands.
fn cell(model: &Model<'_>, band: &Band, layout: Layout, rule: Rule) -> Option<Cell> {
    let (goal, bands) = (model.goal, layout.bands);
    let limit = if rule == Rule::Or { 1 } else { bands };
    let largest = |near| binomial::largest_threshold(bands, near, goal.max_false_negative).min(limit);
    let cell = |decision, table, bits: f64| Cell { layout, decision, table, bits: bits * f64::from(bands) };

    let threshold = largest(band.near);
    let wide = band.widened(bands, binomial::normal_quantile(goal.max_false_positive).max(0.0));
    let (hit, agree) = (largest_hit(bands, threshold, goal.max_false_positive), wide.far_hit(0.0));
    let chance = (hit - agree) / (1.0 - agree);
    let empty = threshold > 0 && hit >= agree;
    let hashed = (empty).then(|| tables::bits_for(chance, goal.capacity)).flatten();
    let fixed = hashed.map(|bits| cell(Decision::Fixed(threshold), TableKind::Any(chance), bits));

    let follows = (empty && rule == Rule::Best).then(|| followed_chance(goal, band, &wide, bands, chance.max(0.0)));
    let follows = follows.and_then(|chance| {
        let bits = tables::single_bits(chance, goal.capacity)?;
        Some(cell(Decision::Follows, TableKind::Bits(chance), bits))
    });

    // A direct table has no chance hits but the crowd's agreement, which a rule may count on where items are random.
    let short = model.family.values_are_bits() && layout.rows <= MOST_DIRECT_ROWS;
    let direct = short.then(|| libm::exp2(f64::from(layout.rows)));
    let direct = direct.and_then(|bits| {
        if empty {
            return Some(cell(Decision::Fixed(threshold), TableKind::Direct, bits));
        }
        let filled = largest(band.near_hit(tables::low_fill(band.crowd, bits * f64::from(bands))));
        let keeps = fills_evenly(goal)
            && rule == Rule::Best
            && filled > 0
            && binomial::at_least(bands, agree, filled) <= goal.max_false_positive;
        keeps.then(|| cell(Decision::Follows, TableKind::Direct, bits))
    });
    [fixed, follows, direct].into_iter().flatten().min_by(|a, b| a.bits.total_cmp(&b.bits))
}

/// Cells of the coarse search that are looked at closely.
const CLOSE_LOOKS: usize = 8;

/// The best cells, best first.
fn coarse(model: &Model<'_>, rule: Rule, objective: &Objective) -> Vec<Cell> {
    let most_functions = super::most_functions(&model.family);
    let score = |cell: &Cell| objective.score(cell.bits, objective.steps(&model.family, cell.layout));
    let mut cells: Vec<Cell> = Vec::new();
    let mut best = f64::INFINITY;
    for rows in steps(1, super::most_rows(&model.family), 0.06) {
        let band = model.band(rows);
        let Some((first, fewest)) = first_bands(model, &band, rule) else { continue };
        if fewest > most_functions / rows {
            break;
        }
        let mut best_of_rows: Option<(f64, Cell)> = None;
        for bands in steps(first, most_functions / rows, 0.08) {
            let layout = Layout::new(rows, bands);
            // No table has less than a tenth of a bit an item, so more bands can only cost more.
            let least = f64::from(bands) * 0.1 * model.goal.capacity as f64;
            if objective.score(least, objective.steps(&model.family, layout)) > best {
                break;
            }
            let Some(cell) = cell(model, &band, layout, rule) else { continue };
            let score = score(&cell);
            match best_of_rows {
                Some((known, _)) if score > 1.3 * known => break,
                Some((known, _)) if score >= known => {}
                _ => best_of_rows = Some((score, cell)),
            }
        }
        if let Some((score, cell)) = best_of_rows {
            best = best.min(score);
            cells.push(cell);
        }
        // Far items no longer matter, however many bands there are: longer bands only lose near ones.
        if band.far_hit(0.0) < 1e-8 * model.goal.max_false_positive {
            break;
        }
    }
    cells.sort_by(|a, b| score(a).total_cmp(&score(b)));
    cells.truncate(CLOSE_LOOKS);
    cells
}

/// From how many bands on it is worth looking, and how many it takes at the least for near items; `None` where no number
/// of them tells near from far.
fn first_bands(model: &Model<'_>, band: &Band, rule: Rule) -> Option<(u32, u32)> {
    let goal = model.goal;
    let direct = model.family.values_are_bits() && fills_evenly(goal) && rule == Rule::Best;
    let (near, far) = (band.near_hit(if direct { band.crowd } else { 0.0 }), band.far_hit(0.0));
    if !(near > far) {
        return None;
    }
    let fewest = fewest_bands(near, goal.max_false_negative)?;
    if rule == Rule::Or {
        return Some((fewest, fewest));
    }
    // Where the normal approximation puts both promises, less a margin for its error.
    let z = |tail| binomial::normal_quantile(tail).max(0.0);
    let deviation = |p: f64| libm::sqrt(p * (1.0 - p));
    let gap = z(goal.max_false_negative) * deviation(near) + z(goal.max_false_positive) * deviation(far);
    let estimate = libm::pow(gap / (near - far), 2.0);
    let first = if estimate > 40.0 { (0.7 * estimate).min(f64::from(u32::MAX)) as u32 } else { 1 };
    Some((first.max(fewest), fewest))
}

/// The fewest bands of which at least one agrees often enough.
fn fewest_bands(agree: f64, max_false_negative: f64) -> Option<u32> {
    let bands = (libm::log(max_false_negative) / libm::log1p(-agree)).ceil().max(1.0);
    (bands <= f64::from(u32::MAX)).then_some(bands as u32)
}

/// From `first` to `last`, each by at least 1 and by about this part more than the one before.
pub(super) fn steps(first: u32, last: u32, part: f64) -> impl Iterator<Item = u32> {
    let next = move |now: &u32| Some(((f64::from(*now) * (1.0 + part)) as u32).max(now.saturating_add(1)));
    std::iter::successors(Some(first), next).take_while(move |now| *now <= last && *now < u32::MAX)
}

/// Whether the coarse search finds anything that a filter may be.
pub(super) fn is_possible(model: &Model<'_>, objective: &Objective) -> bool {
    coarse(model, Rule::Best, objective).iter().any(|cell| cell.bits <= MOST_BITS)
}

/// The best filter, if any keeps the promises.
pub(super) fn search(model: &Model<'_>, rule: Rule, objective: &Objective) -> Result<Candidate, Failure> {
    let most_functions = super::most_functions(&model.family);
    let coarse = coarse(model, rule, objective);
    let score = |cell: &Cell| objective.score(cell.bits, objective.steps(&model.family, cell.layout));
    let mut close: Vec<Cell> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for Cell { layout, .. } in coarse {
        let near_rows = (layout.rows / 16).max(1);
        let apart = (near_rows as usize / 3).max(1);
        for rows in (layout.rows.saturating_sub(near_rows).max(1)..=layout.rows + near_rows).step_by(apart) {
            if rows > super::most_rows(&model.family) || !seen.insert((rows, layout.bands)) {
                continue;
            }
            let band = model.band(rows);
            let span = layout.bands / 6 + 2;
            let last = (layout.bands + span).min(most_functions / rows);
            let stride = (span as usize / 40).max(1);
            let fewest = layout.bands.saturating_sub(span).max(1);
            close.extend(
                (fewest..=last).step_by(stride).filter_map(|bands| cell(model, &band, Layout::new(rows, bands), rule)),
            );
        }
    }
    close.sort_by(|a, b| score(a).total_cmp(&score(b)));
    match close.iter().map(|cell| cell.bits).min_by(f64::total_cmp) {
        Some(bits) if bits > 1.01 * MOST_BITS => return Err(Failure::TooLarge { bits }),
        _ => {}
    }
    // Sorted by their sizes to a per cent, and built with whole numbers: the first few that hold are compared.
    let built = close.iter().take(TRIES).filter_map(|cell| candidate(model, cell));
    built.take(COMPARED).min_by(|a, b| objective.compare(a, b)).ok_or(Failure::Nothing)
}

/// So many of the best cells are built and checked by exact distributions.
const TRIES: usize = 40;

/// So many that hold are compared.
const COMPARED: usize = 3;

fn candidate(model: &Model<'_>, cell: &Cell) -> Option<Candidate> {
    let (goal, Layout { rows, bands }) = (model.goal, cell.layout);
    let table = match cell.table {
        TableKind::Direct => Table::Direct,
        TableKind::Bits(chance) => Table::Bits(tables::single_bits(chance, goal.capacity)? as u64),
        TableKind::Any(chance) => tables::table_for(chance, goal.capacity)?,
    };
    let rule = match cell.decision {
        Decision::Fixed(threshold) => spec::Rule::threshold(bands, threshold),
        Decision::Follows => spec::Rule::promise(bands, model.band(rows).near, goal.max_false_negative),
    };
    let (rule, family, seed) = (rule.ok()?, model.family, goal.seed);
    Candidate::checked(model, Spec { family, seed, rows, rule, table, verification: None, probing: None })
}
