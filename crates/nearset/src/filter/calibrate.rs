//! Thresholds for what really is: after a build, and on a labelled sample.
//!
//! A threshold changes no bit of a filter, so it can be chosen last, when the fill is known rather than foreseen. Where
//! items come in large families, hits of many relatives add up and formulas for one neighbour are too low; a few
//! hundred queries whose truth is known settle it.

use nearset_theory::binomial;

use crate::{
    LshFamily, NearFilter, Table,
    plan::{FarModel, Goal, Request, RequestError, search::chance_at},
    spec::Decision,
};

/// A threshold with what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// The hits that are to be enough.
    pub threshold: u32,
    /// The part of near items that it misses; from a sample, the upper end of its 95 % interval.
    pub false_negative: f64,
    /// The part of far items that it accepts; from a sample, the upper end of its 95 % interval.
    pub false_positive: f64,
    /// Whether both keep the request's promises.
    pub keeps: bool,
}

/// Why a threshold can't be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// A rule of several steps, one that follows the fill by itself, a verified or a probing filter.
    #[error(
        "only a filter with one fixed threshold, without verification or probing, can be given another one; a rule that \
         keeps a promise follows the fill by itself"
    )]
    NoThreshold,
    /// The request makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Nothing to learn from.
    #[error("{what}: at least one labelled query is needed")]
    NoSample {
        /// Of which kind.
        what: &'static str,
    },
}

/// The best threshold for a filter as it is now: the one that misses least among those that keep the false positives,
/// and where none keeps both promises, the one that exceeds the worse of them least.
///
/// It holds for the present load: a filter that goes on growing has its threshold chosen again. Apply it by
/// [`NearFilter::with_threshold`].
///
/// # Errors
/// If the filter has no single threshold, or the request makes no sense.
pub fn recalibrate(filter: &NearFilter<'_>, request: &Request) -> Result<Calibration, CalibrateError> {
    let spec = filter.spec();
    let bands = spec.rule.bands();
    let fixed = matches!(spec.rule.decision(), Decision::Steps(_)) && spec.rule.threshold_at(0.0).is_some();
    if !fixed || spec.verification.is_some() || spec.probing.is_some() {
        return Err(CalibrateError::NoThreshold);
    }
    let goal = request.filter_goal()?;
    let present = Goal { capacity: filter.len().max(1), ..goal.clone() };
    let crowd = chance_at(&present, spec.family, spec.rows);
    let fill = filter.chance_hit();
    let chance = match (spec.table, &goal.far_model) {
        // The bits that random items set in a direct table are their agreement, not an addition to it.
        (Table::Direct, FarModel::Random) => fill,
        (Table::Direct, _) => fill.max(crowd),
        _ => 1.0 - (1.0 - crowd) * (1.0 - fill),
    };
    let agree = |distance| spec.family.band_probability(distance, spec.rows);
    let near = binomial::Tails::new(bands, agree(goal.near));
    let far = binomial::Tails::new(bands, 1.0 - (1.0 - agree(goal.far)) * (1.0 - chance));
    Ok(best(bands, &goal, |threshold| (near.below(threshold), far.at_least(threshold))))
}

/// The best threshold by labelled queries: how many bands hit for each query that has something near, and for each that has
/// not. Errors are the upper ends of their 95 % intervals (Clopper & Pearson 1934), so a small sample makes for caution: a
/// promise of 1 in 1,000 needs some 3,000 queries before it can be confirmed.
///
/// # Errors
/// If either kind is empty, or the request makes no sense.
pub fn calibrate(bands: u32, request: &Request, near: &[u32], far: &[u32]) -> Result<Calibration, CalibrateError> {
    for (what, hits) in [("no near queries", near), ("no far queries", far)] {
        if hits.is_empty() {
            return Err(CalibrateError::NoSample { what });
        }
    }
    let below = |hits: &[u32], threshold| hits.iter().filter(|&&hit| hit < threshold).count();
    let goal = request.filter_goal()?;
    Ok(best(bands, &goal, |threshold| {
        (upper(below(near, threshold), near.len()), upper(far.len() - below(far, threshold), far.len()))
    }))
}

fn best(bands: u32, goal: &Goal, errors: impl Fn(u32) -> (f64, f64)) -> Calibration {
    let all = (1..=bands).map(|threshold| {
        let (false_negative, false_positive) = errors(threshold);
        let keeps = false_negative <= goal.max_false_negative && false_positive <= goal.max_false_positive;
        Calibration { threshold, false_negative, false_positive, keeps }
    });
    let excess =
        |c: &Calibration| (c.false_negative / goal.max_false_negative).max(c.false_positive / goal.max_false_positive);
    let all: Vec<Calibration> = all.collect();
    let kept = all.iter().filter(|c| c.keeps).min_by(|a, b| a.false_negative.total_cmp(&b.false_negative));
    *kept.or(all.iter().min_by(|a, b| excess(a).total_cmp(&excess(b)))).expect("a filter has at least one band")
}

/// The rate at which so few or fewer would be seen in 5 % of the samples.
fn upper(seen: usize, of: usize) -> f64 {
    if seen == of {
        return 1.0;
    }
    let (mut low, mut high) = (seen as f64 / of as f64, 1.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if binomial::cdf(of as u32, middle, seen as u32) > 0.05 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    #[test]
    fn upper_ends_are_those_of_clopper_and_pearson() {
        // The rule of three, and a tabled value: 5 of 100 is below .1024 with 95 %.
        assert!((upper(0, 1_000) - 0.00299).abs() < 1e-5);
        assert!((upper(5, 100) - 0.1023).abs() < 2e-4, "{}", upper(5, 100));
        assert_eq!(upper(4, 4), 1.0);
    }

    #[test]
    fn a_sample_moves_the_threshold_between_its_two_kinds() {
        let request = Request::new(Metric::Hamming { bits: 64 }, 3.0).far(20.0).capacity(100).errors(0.05, 0.01);
        let near: Vec<u32> = (0..500).map(|i| if i % 100 == 0 { 5 } else { 12 + i % 5 }).collect();
        let far: Vec<u32> = (0..500).map(|i| i % 9).collect();
        let best = calibrate(20, &request, &near, &far).unwrap();
        assert!(best.keeps && best.threshold == 9, "{best:?}");
        assert!(calibrate(20, &request, &[], &far).is_err());
        let hard = calibrate(20, &request, &[4; 50], &[6; 50]).unwrap();
        assert!(!hard.keeps);
    }

    /// A filter that holds a tenth of what its threshold was made for loses near items; the threshold for the fill that really
    /// is loses fewer, and both errors are what is predicted, within 6 sigma.
    #[test]
    fn a_filter_emptier_than_foreseen_gets_a_lower_threshold_that_does_what_it_predicts() {
        use crate::{
            Layout, Seed, Spec,
            family::{BitSampling, Sampling, laws::bit_pair},
            hash::Rng,
        };
        let request = Request::new(Metric::Hamming { bits: 1024 }, 40.0).far(400.0).capacity(1_000).errors(0.02, 0.01);
        let family = BitSampling { bits: 1024, sampling: Sampling::Uniform };
        let spec = Spec::new(family, Layout::new(16, 60), 44, Table::Bits(1_443), Seed::new(5)).unwrap();
        let mut filter = NearFilter::from_spec(spec).unwrap();
        let (make, mut rng) = (bit_pair(1024), Rng::new(Seed::new(6)));
        let pairs: Vec<_> = (0..100).map(|_| make(40.0, &mut rng)).collect();
        filter.insert_all(pairs.iter().map(|(stored, _)| stored.view())).unwrap();

        let best = recalibrate(&filter, &request).unwrap();
        assert!(best.keeps && best.threshold < 44, "{best:?}");
        let filter = filter.with_threshold(best.threshold).unwrap();
        assert_eq!(recalibrate(&filter, &request).unwrap(), best);

        let rate = |pairs: &[_]| {
            let queries = pairs.iter().map(|(_, query): &(_, crate::family::laws::ItemBuffer)| query.view());
            let near = filter.contains_all(queries).unwrap();
            near.iter().filter(|&&near| near).count() as f64 / near.len() as f64
        };
        let far: Vec<_> = (0..2_000).map(|_| make(400.0, &mut rng)).collect();
        let sigma = |p: f64, tries: f64| (p * (1.0 - p) / tries).sqrt();
        let (found, accepted) = (rate(&pairs), rate(&far));
        assert!(1.0 - found <= best.false_negative + 6.0 * sigma(best.false_negative, 100.0), "{found} {best:?}");
        assert!(accepted <= best.false_positive + 6.0 * sigma(best.false_positive, 2_000.0), "{accepted} {best:?}");
    }
}
