//! What a spec does under a goal, at any distance.

use nearset_theory::bloom::lines_false_positive;

use super::{model::Model, tables};
use crate::{Distance, Spec, Table, family::LshFamily, spec::Rule};

/// A spec under a goal, empty and at capacity. A rule that follows the fill has another threshold in each.
pub(super) struct Prediction<'m, 'g> {
    model: &'m Model<'g>,
    empty: Spec,
    full: Spec,
    /// The chance, at capacity, that a band of a far query hits, its far item apart: other items' keys and full tables.
    pub(super) chance: f64,
    /// The chance, at capacity, that a key which nobody stored hits its table.
    fill: f64,
    /// The chance that verification lets a tuple pass that nobody stored; 1 where there is none.
    passes: f64,
    /// The chance that verification lets a query pass because of another item's whole tuple.
    crowd_verified: f64,
}

/// Exact distributions of dependent bands are worked out up to so many steps where a curve needs many of them.
const CHEAP_STEPS: f64 = 2e5;

/// Nodes and weights by which a mean over the normal distribution is taken (Gauss and Hermite, seven nodes).
const HERMITE: [(f64, f64); 7] = [
    (-3.750_439_717_725_742, 5.482_688_559_722_18e-4),
    (-2.366_759_410_734_541, 3.075_712_396_758_65e-2),
    (-1.154_405_394_739_968, 2.401_231_786_050_127e-1),
    (0.0, 4.571_428_571_428_571e-1),
    (1.154_405_394_739_968, 2.401_231_786_050_127e-1),
    (2.366_759_410_734_541, 3.075_712_396_758_65e-2),
    (3.750_439_717_725_742, 5.482_688_559_722_18e-4),
];

/// The spec with the threshold that its rule has at some fill.
fn with_fixed_threshold(spec: &Spec, fill: f64) -> Spec {
    let fixed = spec.rule.threshold_at(fill).and_then(|threshold| Rule::threshold(spec.rule.bands(), threshold).ok());
    Spec { rule: fixed.unwrap_or_else(|| spec.rule.clone()), ..spec.clone() }
}

impl<'m, 'g> Prediction<'m, 'g> {
    pub(super) fn new(model: &'m Model<'g>, spec: &Spec) -> Self {
        let capacity = model.goal.capacity;
        let crowd = model.band(spec.rows).crowd;
        let fill = tables::chance_hit(spec.table, capacity);
        let chance = 1.0 - (1.0 - crowd) * (1.0 - fill);
        // What a direct table is filled with is the crowd itself.
        let fill = if spec.table == Table::Direct { crowd } else { fill };
        let passes = spec.verification.map(|shape| lines_false_positive(capacity, shape.lines, shape.hashes));
        let crowd_verified = match passes {
            Some(_) => model.any_of_crowd_by(|distance| spec.acceptance_probability(distance, 0.0, 0.0)),
            None => 0.0,
        };
        let bits = spec.bits_per_band() as f64 * f64::from(spec.rule.bands());
        let empty = with_fixed_threshold(spec, 0.0);
        let full = with_fixed_threshold(spec, tables::low_fill(fill, bits));
        Self { model, empty, full, chance, fill, passes: passes.unwrap_or(1.0), crowd_verified }
    }

    /// The part of queries at this distance that a filter with the one item accepts.
    pub(super) fn at_empty(&self, distance: Distance) -> f64 {
        acceptance(&self.empty, distance, 0.0, if self.empty.verification.is_some() { 0.0 } else { 1.0 })
    }

    /// The part of queries at this distance from their nearest item that the filter accepts at capacity.
    pub(super) fn at_capacity(&self, distance: Distance) -> f64 {
        let alone = acceptance(&self.full, distance, self.chance, self.passes);
        1.0 - (1.0 - alone) * (1.0 - self.crowd_verified)
    }

    /// The part of near items that is lost, empty or at capacity, whichever is worse: chance hits help a threshold, a rule
    /// that follows the fill takes that back, and they hinder probing.
    pub(super) fn false_negative(&self) -> f64 {
        let near = self.model.goal.near;
        let none = if self.empty.verification.is_some() { 0.0 } else { 1.0 };
        let empty = self.empty.acceptance_probability(near, 0.0, none);
        let chance = if self.full.verification.is_some() { self.chance } else { self.fill };
        1.0 - empty.min(self.full.acceptance_probability(near, chance, none))
    }

    /// The part of far items that is accepted at capacity, averaged over how crowded queries are.
    pub(super) fn false_positive(&self) -> f64 {
        let band = self.model.band(self.full.rows);
        let accepted = |chance| self.full.acceptance_probability(self.model.goal.far, chance, self.passes);
        let alone = match band.spread {
            0.0 => accepted(self.chance),
            _ => {
                let fill = tables::chance_hit(self.full.table, self.model.goal.capacity);
                let at = |deviations| accepted(1.0 - (1.0 - band.crowd_at(deviations)) * (1.0 - fill));
                HERMITE.iter().map(|&(deviations, weight)| weight * at(deviations)).sum()
            }
        };
        1.0 - (1.0 - alone) * (1.0 - self.crowd_verified)
    }
}

fn acceptance(spec: &Spec, distance: Distance, chance: f64, passes: f64) -> f64 {
    let layout = spec.layout();
    let dependent = spec.family.positions().is_some();
    let steps = distance.value() * layout.functions() as f64 * f64::from(layout.bands);
    if dependent && steps > CHEAP_STEPS && spec.verification.is_none() && spec.probing.is_none() {
        let agree = spec.family.band_probability(distance, layout.rows);
        return spec.rule.probability(1.0 - (1.0 - agree) * (1.0 - chance), chance);
    }
    spec.acceptance_probability(distance, chance, passes)
}
