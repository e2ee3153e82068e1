//! What a spec does under a goal, at any distance.

use super::{model::Model, tables};
use crate::{Distance, Family, LshFamily, Spec, filter::expected_false_positive, plan::Load};

/// A spec under a goal, empty and at capacity.
pub(super) struct Prediction<'m, 'g> {
    model: &'m Model<'g>,
    spec: &'m Spec,
    /// The chance that a band of a query hits, its near or far item apart: other items' keys and full tables.
    pub(super) chance: f64,
    /// The chance that verification lets a tuple pass that nobody stored; 1 where there is none.
    passes: f64,
    /// The part of `chance` that near items can count on.
    helpful: f64,
    /// The chance that verification lets a query pass because of another item's whole tuple.
    crowd_verified: f64,
}

/// Exact distributions of dependent bands are worked out up to so many steps where a curve needs many of them.
const CHEAP_STEPS: f64 = 2e5;

impl<'m, 'g> Prediction<'m, 'g> {
    pub(super) fn new(model: &'m Model<'g>, spec: &'m Spec) -> Self {
        let capacity = model.goal.capacity;
        let band = model.band(spec.rows);
        let load = tables::chance_hit(spec.table, capacity);
        let chance = 1.0 - (1.0 - band.crowd) * (1.0 - load);
        let helpful = match model.goal.load {
            Load::Any => 0.0,
            Load::Full => 1.0 - (1.0 - band.helpful) * (1.0 - load),
        };
        let passes = spec.verification.map(|shape| expected_false_positive(capacity, shape.lines, shape.hashes));
        let crowd_verified = match passes {
            Some(_) => model.any_of_crowd_by(|distance| spec.acceptance_probability(distance, 0.0, 0.0)),
            None => 0.0,
        };
        Self { model, spec, chance, passes: passes.unwrap_or(1.0), helpful, crowd_verified }
    }

    /// The part of queries at this distance that is accepted by what can be counted on.
    pub(super) fn counted_on(&self, distance: Distance) -> f64 {
        self.acceptance(distance, self.helpful, if self.spec.verification.is_some() { 0.0 } else { 1.0 })
    }

    /// The part of queries at this distance that an empty filter with the one item accepts.
    pub(super) fn at_empty(&self, distance: Distance) -> f64 {
        self.acceptance(distance, 0.0, if self.spec.verification.is_some() { 0.0 } else { 1.0 })
    }

    /// The part of queries at this distance from their nearest item that the filter accepts at capacity.
    pub(super) fn at_capacity(&self, distance: Distance) -> f64 {
        let alone = self.acceptance(distance, self.chance, self.passes);
        1.0 - (1.0 - alone) * (1.0 - self.crowd_verified)
    }

    fn acceptance(&self, distance: Distance, chance: f64, passes: f64) -> f64 {
        let layout = self.spec.layout();
        let dependent = matches!(self.model.family, Family::BitSampling(_) | Family::SymbolSampling(_));
        let steps = distance.value() * layout.functions() as f64 * f64::from(layout.bands);
        if dependent && steps > CHEAP_STEPS && self.spec.verification.is_none() && self.spec.probing.is_none() {
            let agree = self.spec.family.band_probability(distance, layout.rows);
            return self.spec.rule.probability(1.0 - (1.0 - agree) * (1.0 - chance));
        }
        self.spec.acceptance_probability(distance, chance, passes)
    }

    /// The part of near items that is lost, at worst over the loads that the goal speaks of: chance hits help a threshold,
    /// and hinder probing.
    pub(super) fn false_negative(&self) -> f64 {
        let near = self.model.goal.near;
        let missed = |chance, passes| 1.0 - self.spec.acceptance_probability(near, chance, passes);
        match self.spec.verification {
            Some(_) => missed(0.0, 0.0).max(missed(self.chance, 0.0)),
            None => missed(self.helpful, 1.0),
        }
    }

    /// The part of far items that is accepted at capacity.
    pub(super) fn false_positive(&self) -> f64 {
        let alone = self.spec.acceptance_probability(self.model.goal.far, self.chance, self.passes);
        1.0 - (1.0 - alone) * (1.0 - self.crowd_verified)
    }
}
