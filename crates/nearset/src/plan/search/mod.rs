//! The search for the cheapest filter that keeps a goal's promises.
//!
//! Claim: no filter of these structures is smaller by more than 2 % and keeps the promises too; a test sweeps.
//! Invariant: what is returned was checked by the same formulas that a filter states of itself.
//!
//! Each structure has a file; each gives its best candidate, or nothing. A draw has at most [`MOST_SAMPLED`] functions
//! where a function is one look at an item, and [`MOST_FUNCTIONS`] where it is a slot of a signature or a projection.

mod exact;
mod index;
mod model;
mod predict;
mod tables;
mod threshold;
mod verified;
mod zero;

use std::{cmp::Ordering, ops::Range};

use super::{
    CurvePoint, FarModel, Goal, Minimise, Plan, PlanError, Request, RunnerUp, Structure, Work, advice::advise,
    outcome::bytes,
};
use crate::{
    Distance, Family, Layout, Spec,
    error::{self},
    family::Form,
    spec::{Decision, FilterSpec, GenerationSpec, Terms},
};
pub use index::IndexPlan;
pub(super) use index::plan as plan_index;
use model::Model;
use predict::Prediction;

/// The most functions of families that look at sampled positions.
pub(super) const MOST_SAMPLED: u32 = 1 << 16;

/// The most functions of all other families.
pub(super) const MOST_FUNCTIONS: u32 = 4096;

fn most_functions(family: &Family) -> u32 {
    if family.positions().is_some() { MOST_SAMPLED } else { MOST_FUNCTIONS }
}

fn most_rows(family: &Family) -> u32 {
    family.positions().map_or(MOST_FUNCTIONS, |positions| positions.min(MOST_SAMPLED))
}

/// What is to be least.
struct Objective {
    minimise: Minimise,
    capacity: f64,
}

impl Objective {
    /// One number for size and work, the second deciding between equals only.
    fn score(&self, bits: f64, steps: f64) -> f64 {
        match self.minimise {
            Minimise::Bytes => bits * (1.0 + 1e-9 * steps),
            Minimise::Time => steps * (1.0 + 1e-9 * bits / self.capacity),
        }
    }

    fn steps(&self, family: &Family, layout: Layout) -> f64 {
        Work::of(family, layout).steps
    }

    fn steps_of(&self, spec: &Spec) -> f64 {
        Work::of_spec(spec).steps
    }

    fn compare(&self, a: &Candidate, b: &Candidate) -> Ordering {
        let score = |candidate: &Candidate| self.score(candidate.bits, candidate.work.steps);
        score(a).total_cmp(&score(b))
    }
}

/// A filter that keeps the promises.
struct Candidate {
    structure: Structure,
    spec: GenerationSpec,
    bits: f64,
    work: Work,
    false_negative: f64,
    false_positive: f64,
}

impl Candidate {
    /// The spec as a candidate, if exact distributions say too that it keeps the promises.
    fn checked(model: &Model<'_>, spec: Spec) -> Option<Self> {
        spec.check_possible().ok()?;
        let prediction = Prediction::new(model, &spec);
        let false_negative = match model.goal.max_false_negative {
            // The threshold guarantees it, whatever a sum of floats says.
            0.0 => 0.0,
            _ => prediction.false_negative(),
        };
        let false_positive = prediction.false_positive();
        let slack = 1.0 + 1e-9;
        if !(false_negative <= model.goal.max_false_negative * slack
            && false_positive <= model.goal.max_false_positive * slack)
        {
            return None;
        }
        let structure = match (spec.verification, spec.rule.threshold_at(0.0)) {
            (Some(_), _) => Structure::Verified,
            _ if model.goal.max_false_negative == 0.0 => Structure::Balanced,
            (None, Some(1)) if !matches!(spec.rule.decision(), Decision::Promise { .. }) => Structure::Banded,
            _ => Structure::Threshold,
        };
        let (bits, work) = (8.0 * spec.bytes() as f64, Work::of_spec(&spec));
        Some(Self { structure, spec: GenerationSpec::Near(spec), bits, work, false_negative, false_positive })
    }
}

/// Why a search came to nothing.
#[derive(Debug, Clone, Copy)]
enum Failure {
    /// Nothing keeps the promises.
    Nothing,
    /// What keeps them is larger than a filter may be.
    TooLarge { bits: f64 },
}

/// More bits than this no spec may have.
const MOST_BITS: f64 = error::MOST_BITS as f64;

/// One structure over one family, and what came of it.
struct Attempt {
    structure: Structure,
    family: &'static str,
    outcome: Result<Candidate, String>,
}

fn attempts(goal: &Goal, objective: &Objective) -> Vec<Attempt> {
    let attempt = |structure, family, found: Result<Candidate, Failure>| Attempt {
        structure,
        family,
        outcome: found.map_err(|why| reason(goal, structure, why)),
    };
    let mut all = Vec::new();
    let exact = || match goal.metric.form() {
        Form::Bits(bits) => exact::attempts(goal, bits, objective),
        _ => Vec::new(),
    };
    if goal.max_false_negative == 0.0 {
        // Only where a difference reaches a few positions can none be missed; the first variant samples them evenly.
        for family in families(goal).into_iter().filter_map(|variants| variants.into_iter().next()) {
            let Some(positions) = family.positions() else { continue };
            let balanced = zero::search(&Model::new(goal, family), positions, objective);
            all.push(attempt(Structure::Balanced, family.name(), balanced));
        }
        all.extend(exact());
        return all;
    }
    for variants in families(goal) {
        let name = variants[0].name();
        let models: Vec<Model<'_>> = variants.into_iter().map(|family| Model::new(goal, family)).collect();
        let best = |search: &dyn Fn(&Model<'_>) -> Result<Candidate, Failure>| {
            models
                .iter()
                .map(search)
                .reduce(|a, b| match (a, b) {
                    (Ok(a), Ok(b)) => Ok(if objective.compare(&a, &b).is_le() { a } else { b }),
                    (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
                    (Err(Failure::Nothing), Err(other)) => Err(other),
                    (Err(why), Err(_)) => Err(why),
                })
                .unwrap_or(Err(Failure::Nothing))
        };
        let or = best(&|model| threshold::search(model, threshold::Rule::Or, objective));
        let threshold = best(&|model| threshold::search(model, threshold::Rule::Best, objective));
        let verified = best(&|model| verified::search(model, objective));
        all.push(attempt(Structure::Banded, name, or));
        // The best threshold may be 1, and then it is the filter above.
        let threshold = threshold.and_then(|best| match best.structure {
            Structure::Threshold => Ok(best),
            _ => Err(Failure::Nothing),
        });
        all.push(attempt(Structure::Threshold, name, threshold));
        all.push(attempt(Structure::Verified, name, verified));
    }
    all.extend(exact());
    if let Form::Bits(bits) = goal.metric.form() {
        all.push(exact::sampled_scan(goal, bits));
    }
    all
}

/// Families of the metric, each in the variants that are worth trying.
fn families(goal: &Goal) -> Vec<Vec<Family>> {
    Family::candidates(goal.metric, goal.near, goal.far)
}

/// Why a structure that was tried came to nothing.
fn reason(goal: &Goal, structure: Structure, why: Failure) -> String {
    if let Failure::TooLarge { bits } = why {
        let (size, most) = (bytes(bits / 8.0), bytes(MOST_BITS / 8.0));
        return format!("takes {size}, and a filter may have {most}: split the items over several filters");
    }
    let most = most_functions(&goal.metric.any_family());
    let functions = format!("with up to {most} functions");
    match structure {
        Structure::Banded => format!("an OR that finds the near items finds too many far ones too, {functions}"),
        Structure::Threshold => format!("no threshold above 1 does better, or tells near from far at all, {functions}"),
        Structure::Verified => match goal.metric.form() {
            Form::Set(_) | Form::Weighted(_) => "values of MinHash have no neighbours to probe".into(),
            _ => "all bands can't agree often enough at near, even where two are made good".into(),
        },
        Structure::Pigeonhole => {
            "so wide a ball in each block, or so many blocks, that far items are met by chance".into()
        }
        Structure::SketchScan => "no sample of the bits tells near from far this well among so many items".into(),
        Structure::Covering => "masks double with each step of the radius (up to 6), or agree too often at far".into(),
        _ => "near items miss so many bands that chance hits of far ones reach the threshold".into(),
    }
}

/// Points of a plan's curve.
const CURVE_POINTS: u32 = 40;

/// The cheapest filter that keeps the goal's promises.
pub(super) fn plan(request: &Request, goal: &Goal) -> Result<Plan, PlanError> {
    let objective = Objective { minimise: goal.minimise, capacity: goal.capacity as f64 };
    let mut attempts = attempts(goal, &objective);
    let best = (0..attempts.len()).filter(|&i| attempts[i].outcome.is_ok()).min_by(|&a, &b| {
        match (&attempts[a].outcome, &attempts[b].outcome) {
            (Ok(a), Ok(b)) => objective.compare(a, b),
            _ => Ordering::Equal,
        }
    });
    let best = best.map(|best| attempts.remove(best));
    let Some(Attempt { family, outcome: Ok(best), .. }) = best else {
        return Err(impossible(request, goal, &objective, attempts));
    };
    let terms = request.terms(goal);
    terms.check()?;
    let plan = explain(request, goal, terms, family, best, attempts);
    let advice = advise(goal);
    match goal.metric.bits_of_an_item() {
        Some(item) if plan.bits_per_item > item && !advice.is_empty() => {
            Err(PlanError::LargerThanItems { item_bits: item, advice, plan: Box::new(plan) })
        }
        _ => Ok(plan),
    }
}

/// The filter that removes texts, as full as it is planned to be.
pub(super) fn describe_dedup(request: &Request, goal: &Goal, spec: FilterSpec, fill: f64) -> Plan {
    let near = spec.near().expect("a filter of texts has bands");
    let (work, accepted) = (Work::of_spec(near), |distance, fill| near.acceptance_probability(distance, fill, 0.0));
    let (empty, full) = (|distance| accepted(distance, 0.0), |distance| accepted(distance, fill));
    let (false_negative, false_positive) = (1.0 - empty(goal.near).min(full(goal.near)), full(goal.far));
    let (curve, grey_zone) = (curve(goal, empty, full), grey_zone(goal, empty, full));
    let bytes = near.bytes();
    Plan {
        request: request.clone(),
        goal: goal.clone(),
        structure: Structure::Threshold,
        family: near.family.name(),
        false_negative,
        false_positive,
        chance_hit: fill,
        bits_per_item: 8.0 * bytes as f64 / goal.capacity as f64,
        bytes,
        work,
        curve,
        grey_zone,
        runners_up: Vec::new(),
        removes: true,
        spec,
    }
}

/// How likely a query at some distance from its nearest item is accepted at capacity.
pub(super) fn accepted(plan: &Plan, distance: Distance) -> f64 {
    match &plan.spec.first {
        GenerationSpec::Near(spec) if plan.removes => spec.acceptance_probability(distance, plan.chance_hit, 0.0),
        GenerationSpec::Near(spec) => {
            let model = Model::new(&plan.goal, spec.family);
            Prediction::new(&model, spec).at_capacity(distance)
        }
        GenerationSpec::Exact(spec) => exact::predicted(&plan.goal, spec).0(distance, true),
    }
}

/// A plan in full, with the losers and why they lost.
fn explain(
    request: &Request,
    goal: &Goal,
    terms: Terms,
    family: &'static str,
    best: Candidate,
    losers: Vec<Attempt>,
) -> Plan {
    let capacity = goal.capacity as f64;
    let mut runners_up: Vec<RunnerUp> =
        losers.into_iter().map(|attempt| runner_up(goal, terms, &best, attempt)).collect();
    runners_up.sort_by(|a, b| {
        let bits = |runner: &RunnerUp| runner.bits_per_item.unwrap_or(f64::INFINITY);
        bits(a).total_cmp(&bits(b))
    });
    let (curve, grey_zone, fill) = match &best.spec {
        GenerationSpec::Near(spec) => {
            let model = Model::new(goal, spec.family);
            let prediction = Prediction::new(&model, spec);
            let full = |distance| prediction.at_capacity(distance);
            let curve = curve(goal, |distance| prediction.at_empty(distance), full);
            // At capacity near items are found as often, by a rule that follows the fill, or more often.
            (curve, grey_zone(goal, |distance| prediction.at_empty(distance), full), prediction.chance)
        }
        GenerationSpec::Exact(spec) => {
            let (accepted, chance) = exact::predicted(goal, spec);
            let (empty, full) = (|distance| accepted(distance, false), |distance| accepted(distance, true));
            (curve(goal, empty, full), grey_zone(goal, empty, full), chance)
        }
    };
    Plan {
        request: request.clone(),
        goal: goal.clone(),
        structure: best.structure,
        family,
        bits_per_item: best.bits / capacity,
        bytes: (best.bits / 8.0) as u64,
        false_negative: best.false_negative,
        false_positive: best.false_positive,
        chance_hit: fill,
        work: best.work,
        spec: FilterSpec { first: best.spec, terms: Some(terms) },
        removes: false,
        curve,
        grey_zone,
        runners_up,
    }
}

fn runner_up(goal: &Goal, terms: Terms, best: &Candidate, Attempt { structure, family, outcome }: Attempt) -> RunnerUp {
    match outcome {
        Err(why) => RunnerUp { structure, family, bits_per_item: None, work: None, spec: None, why },
        Ok(candidate) => {
            let why = match goal.minimise {
                Minimise::Bytes => format!("{:.2} times the bytes", candidate.bits / best.bits),
                Minimise::Time => format!("{:.2} times the work", candidate.work.steps / best.work.steps),
            };
            RunnerUp {
                structure,
                family,
                bits_per_item: Some(candidate.bits / goal.capacity as f64),
                work: Some(candidate.work),
                spec: Some(FilterSpec { first: candidate.spec, terms: Some(terms) }),
                why,
            }
        }
    }
}

/// From no distance to beyond far, whole numbers where distances are.
fn curve(goal: &Goal, empty: impl Fn(Distance) -> f64, full: impl Fn(Distance) -> f64) -> Vec<CurvePoint> {
    let far = goal.far.value();
    let end = goal.metric.farthest().map_or(2.0 * far, |most| most.value().min(2.0 * far));
    let mut values: Vec<f64> = (0..=CURVE_POINTS).map(|i| end * f64::from(i) / f64::from(CURVE_POINTS)).collect();
    if goal.metric.is_whole() {
        values.iter_mut().for_each(|value| *value = value.round());
    }
    values.extend([goal.near.value(), far]);
    values.sort_by(f64::total_cmp);
    values.dedup();
    let distances = values.into_iter().filter_map(|value| Distance::new(value).ok());
    distances.map(|distance| CurvePoint { distance, empty: empty(distance), full: full(distance) }).collect()
}

/// Where neither promise speaks: from the last distance that is found often enough to the first that is accepted
/// seldom enough.
fn grey_zone(goal: &Goal, counted_on: impl Fn(Distance) -> f64, full: impl Fn(Distance) -> f64) -> Range<Distance> {
    // The last distance between `low`, where `keeps` holds, and `high` at which it does, to a thousandth or a whole number.
    let last = |mut low: f64, mut high: f64, keeps: &dyn Fn(Distance) -> bool| {
        let least = if goal.metric.is_whole() { 1.0 } else { 1e-3 * (high - low) };
        while high - low > least {
            let middle = 0.5 * (low + high);
            let middle = if goal.metric.is_whole() { middle.floor() } else { middle };
            if Distance::new(middle).is_ok_and(keeps) { low = middle } else { high = middle }
        }
        (low, high)
    };
    let (near, far) = (goal.near.value(), goal.far.value());
    let found = |distance| counted_on(distance) >= 1.0 - goal.max_false_negative;
    let not_rejected = |distance| full(distance) > goal.max_false_positive;
    let distance = |value| Distance::new(value).unwrap_or(goal.far);
    distance(last(near, far, &found).0)..distance(last(near, far, &not_rejected).1)
}

/// What nothing keeps, and the nearest goal that something does.
fn impossible(request: &Request, goal: &Goal, objective: &Objective, attempts: Vec<Attempt>) -> PlanError {
    if goal.max_false_negative == 0.0 && attempts.is_empty() {
        return PlanError::NoZeroFalseNegatives { metric: goal.metric };
    }
    let tried = attempts.into_iter().filter_map(|Attempt { structure, family, outcome }| {
        Some(RunnerUp { structure, family, bits_per_item: None, work: None, spec: None, why: outcome.err()? })
    });
    let nearest = nearest(goal, objective).into_iter().map(|goal| Request {
        far: Some(goal.metric.own_unit(goal.far)),
        far_model: Some(goal.far_model),
        ..request.clone()
    });
    let (terms, advice) = (Box::new(request.terms(goal)), advise(goal));
    PlanError::Impossible { terms, tried: tried.collect(), nearest: nearest.collect(), advice }
}

/// Goals like this one that can be kept, each changed in one way.
fn nearest(goal: &Goal, objective: &Objective) -> Vec<Goal> {
    let possible = |goal: &Goal| match goal.max_false_negative {
        0.0 => attempts(goal, objective).iter().any(|attempt| attempt.outcome.is_ok()),
        _ => families(goal)
            .into_iter()
            .flatten()
            .any(|family| threshold::is_possible(&Model::new(goal, family), objective)),
    };
    let mut nearest = Vec::new();
    if goal.far_model == FarModel::WorstCase && goal.metric.farthest().is_some() {
        nearest.push(Goal { far_model: FarModel::Random, ..goal.clone() });
    }
    // The nearest far that works, by halving the way to the farthest.
    let (mut low, mut high) =
        (goal.far.value(), goal.metric.farthest().map_or(8.0 * goal.far.value(), Distance::value));
    let mut found = None;
    for _ in 0..5 {
        let middle = if goal.metric.is_whole() { (0.5 * (low + high)).round() } else { 0.5 * (low + high) };
        let Ok(far) = Distance::new(middle) else { break };
        let moved = Goal { far, ..goal.clone() };
        if far > goal.far && possible(&moved) {
            high = middle;
            found = Some(moved);
        } else {
            low = middle;
        }
    }
    nearest.extend(found);
    nearest.retain(|goal| goal.check().is_ok());
    let first_possible = |goal: &Goal| goal.far_model != FarModel::Random || possible(goal);
    nearest.retain(first_possible);
    nearest
}

#[cfg(test)]
mod tests;
