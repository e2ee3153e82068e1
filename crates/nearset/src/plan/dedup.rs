//! The filter that removes near-duplicate texts: what is taken where a user says no more than "near".
//!
//! Claim: a text whose nearest earlier one has exactly the similarity `near` is caught with probability at least
//! `1 - max_false_negative` at every load, and one with nothing nearer than `far` with at most `max_false_positive` at
//! capacity, as long as it has one such neighbour. Of texts that have nothing in common with any earlier one, at most
//! 1 in 10,000 are lost, whatever `near` is.
//!
//! Why these defaults. `near` must be found, here as everywhere. So the curve falls below `near`, and texts go that are less near: half
//! of those at 0.73 where `near` is 0.8, and nearly none at 0.6.
//!
//! More rows than the fewest bands would need: hits are counted against the union of all earlier texts, so partial overlaps with
//! many of them add up. Bands that agree rarely make that rare, and take more of them for the same promises. Tables 15 % full:
//! emptier ones take more bits per band, fuller ones more bands, and bands are what hashing and committing a text costs. Where
//! `near` is high a few bands would tell it from `far`, and chance alone would fill enough of so few: it is unrelated texts that need more.
//!
//! What the default (5 rows, 132 bands) does on licences, bible chapters and Python proposals, with exact similarities as
//! truth, `make bench-peers` measures: `bench/results/peers.md`. Other corpora have other families and other numbers.

use nearset_theory::binomial;

use super::{
    Plan, PlanError, Request, RequestError,
    request::{FarModel, Goal, LOWEST_RATE, Minimise, check_rate},
    search,
};
use crate::{
    Metric, Similarity, Spec, Table,
    family::MinHash,
    spec::{FilterSpec, Rule, Terms, WhenFull},
};

/// The part of the bits that is set at capacity.
pub(super) const FILL: f64 = 0.15;

/// The most of what is unrelated to all earlier texts that is taken for a duplicate.
pub(crate) const MAX_UNRELATED: f64 = 1e-4;

/// The part of [`MAX_UNRELATED`] that a filter of one generation may use; the rest is for those that come by growth.
const FIRST_SHARE: f64 = 0.9;

/// How often a band of two texts agrees that are exactly `near`; from it the rows follow.
const AGREEMENT: f64 = 0.33;

/// More rows than this tell hardly more.
const MOST_ROWS: f64 = 64.0;

/// Beyond this the gap between near and far is too small for any filter worth having.
const MOST_BANDS: u32 = 4096;

pub(super) fn plan(request: &Request) -> Result<Plan, PlanError> {
    let Metric::Jaccard { shingling } = request.metric else {
        return Err(RequestError::NotTexts { what: "a filter that removes texts", metric: request.metric }.into());
    };
    if request.far.is_none() {
        if request.far_model.is_some() {
            return Err(RequestError::OnlyBesideFar { what: "far_model" }.into());
        }
        if request.minimise != Minimise::Bytes {
            return Err(RequestError::OnlyBesideFar { what: "minimise" }.into());
        }
    }
    let near = request.near;
    let far = request.far.unwrap_or((near - Request::DEDUP_GAP).max(near / 2.0));
    if !(near > 0.0 && near <= 1.0) {
        return Err(RequestError::Near { found: near }.into());
    }
    if !(far > 0.0 && far < near) {
        return Err(RequestError::Far { near, far }.into());
    }
    let missed = request.max_false_negative.unwrap_or(Request::MAX_FALSE_NEGATIVE);
    let dropped = request.max_false_positive.unwrap_or(Request::MAX_FALSE_POSITIVE);
    check_rate("false-negative", missed, LOWEST_RATE)?;
    check_rate("false-positive", dropped, LOWEST_RATE)?;
    if request.capacity == 0 {
        return Err(RequestError::NoCapacity.into());
    }
    let (rows, bands) = layout(near, far, missed, dropped, request.when_full.shares())?;
    let bits = libm::ceil(request.capacity as f64 / -libm::log(1.0 - FILL)) as u64;
    let spec = Spec {
        family: MinHash { shingling }.into(),
        seed: request.seed,
        rows: rows as u32,
        rule: Rule::promise(bands, libm::pow(near, rows), missed)?,
        table: Table::Bits(bits),
        verification: None,
        probing: None,
    };
    spec.check()?;
    let distance = |similarity| Similarity::jaccard(similarity).map(Similarity::jaccard_distance);
    let goal = Goal {
        metric: request.metric,
        near: distance(near).map_err(|_| RequestError::Near { found: near })?,
        far: distance(far).map_err(|_| RequestError::Far { near, far })?,
        capacity: request.capacity,
        max_false_negative: missed,
        max_false_positive: dropped,
        minimise: Minimise::Bytes,
        far_model: FarModel::Random,
        seed: request.seed,
        grows: request.when_full != WhenFull::Refuse,
    };
    let terms = Terms::new(goal.near, goal.far, missed, dropped, request.capacity, request.when_full);
    Ok(search::describe_dedup(request, &goal, FilterSpec::from(spec).on_terms(terms)?, FILL))
}

/// Rows, and the fewest bands that keep the promises in each of so many generations. They do not depend on the capacity: one text
/// has the same keys for all of them.
fn layout(near: f64, far: f64, missed: f64, dropped: f64, generations: u32) -> Result<(f64, u32), PlanError> {
    let share = 1.0 / f64::from(generations.max(1));
    // Equal texts always agree, however many rows there are.
    let rows = if near < 1.0 { libm::round(libm::log(AGREEMENT) / libm::log(near)) } else { MOST_ROWS };
    let rows = rows.clamp(1.0, MOST_ROWS);
    let hit = |similarity: f64, fill: f64| 1.0 - (1.0 - libm::pow(similarity, rows)) * (1.0 - fill);
    // A threshold is a whole number, so what lies far passes more often just before the fill at which it rises.
    let fills = (90..=104).map(|percent| FILL * f64::from(percent) / 100.0);
    let keeps = |bands: u32| {
        fills.clone().all(|fill| {
            let threshold = binomial::largest_threshold(bands, hit(near, fill), missed);
            let passes = |similarity| binomial::at_least(bands, hit(similarity, fill), threshold);
            threshold > 0 && passes(far) <= share * dropped && passes(0.0) <= share * FIRST_SHARE * MAX_UNRELATED
        })
    };
    let bands = (1..=MOST_BANDS / 4).map(|quarter| 4 * quarter).find(|&bands| keeps(bands));
    Ok((rows, bands.ok_or(PlanError::TooClose { near, far })?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(near: f64) -> Request {
        Request { near, ..Request::default() }.capacity(1)
    }

    fn spec(request: &Request) -> Spec {
        request.plan_dedup().unwrap().spec.near().unwrap().clone()
    }

    #[test]
    fn the_default_takes_at_most_104_bytes_per_text() {
        let spec = spec(&Request::default().capacity(100_000));
        assert_eq!((spec.rows, spec.rule.bands()), (5, 132));
        assert!(spec.bytes() <= 104 * 100_000, "{} bytes", spec.bytes());
    }

    /// At every load up to a filter's capacity, and a little beyond.
    #[test]
    fn unrelated_texts_are_spared_whatever_is_near() {
        for hundredths in (20..=100).chain([995, 999]) {
            let near = f64::from(hundredths) / if hundredths > 100 { 1000.0 } else { 100.0 };
            for missed in [0.55, 0.02] {
                let spec = spec(&Request { max_false_negative: Some(missed), ..texts(near) });
                // Between two looks at how full it is, a generation can take a little more than it is made for.
                let worst = (1..=104)
                    .map(|percent| FILL * f64::from(percent) / 100.0)
                    .map(|fill| spec.rule.probability(fill, fill))
                    .fold(0.0, f64::max);
                assert!(worst <= MAX_UNRELATED, "{near}: {worst} with {} bands", spec.rule.bands());
            }
        }
    }

    #[test]
    fn promises_are_kept_at_near_and_far() {
        for near in [0.5, 0.7, 0.8, 0.9, 0.95, 1.0] {
            for (missed, dropped) in [(0.5, 0.02), (0.02, 0.1), (0.1, 0.01)] {
                let plan = texts(near).errors(missed, dropped).plan_dedup().unwrap();
                let far = near - Request::DEDUP_GAP;
                let (at_near, at_far) = (plan.accepted(near).unwrap(), plan.accepted(far).unwrap());
                assert!(1.0 - at_near <= missed, "{near}: {at_near}");
                assert!(at_far <= dropped, "{near}: {at_far}");
                assert!(plan.false_negative <= missed && plan.false_positive <= dropped);
            }
        }
    }

    #[test]
    fn capacities_share_their_keys() {
        let (small, large) = (spec(&texts(0.8).capacity(10)), spec(&texts(0.8).capacity(1 << 30)));
        assert_eq!(
            (&small.family, small.seed, small.rows, &small.rule),
            (&large.family, large.seed, large.rows, &large.rule)
        );
    }

    #[test]
    fn texts_without_far_get_the_filter_that_removes_them() {
        let request = texts(0.8).capacity(1000);
        assert_eq!(request.plan_filter().unwrap().spec, request.plan_dedup().unwrap().spec);
        let far = request.clone().far(0.7);
        assert_ne!(far.plan_filter().unwrap().spec, far.plan_dedup().unwrap().spec);
    }

    #[test]
    fn senseless_wishes_say_why() {
        let why = |change: fn(&mut Request)| {
            let mut request = texts(0.8);
            change(&mut request);
            request.plan_dedup().unwrap_err().to_string()
        };
        assert!(why(|request| request.near = 1.01).contains("between 0 and 1"));
        assert!(why(|request| request.far = Some(0.9)).contains("between 0 and near"));
        assert!(why(|request| request.max_false_positive = Some(0.0)).contains("false-positive"));
        assert!(why(|request| request.far = Some(0.7999)).contains("too close"));
        assert!(why(|request| request.capacity = 0).contains("at least 1"));
        assert!(why(|request| request.minimise = Minimise::Time).contains("only beside far"));
        assert!(why(|request| request.metric = Metric::Hamming { bits: 64 }).contains("not for hamming"));
    }
}
