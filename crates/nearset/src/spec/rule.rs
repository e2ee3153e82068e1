//! When a filter accepts.
//!
//! An AND below the tables is a band of `rows` functions. Above them, hits are counted, by one of two rules:
//!
//! - Steps of amplification: a [`Step`] gathers groups and accepts a group when enough of its members hit. One step over all
//!   bands is the threshold of the distance-sensitive Bloom filter, the AND of the LSBF or the OR of banding; several are the
//!   cascades of the notes.
//! - A promise kept at every fill. Chance hits grow with the tables' fill `f`, so a threshold that suits a full filter loses
//!   near items while it is empty, and one that suits an empty filter lets everything pass when it is full. This rule takes the
//!   largest threshold that loses at most `max_false_negative` of the items whose bands agree with probability `agreement`,
//!   *at the present fill*: the largest `t` with `Pr[Bin(bands, 1 - (1 - agreement)(1 - f)) < t] <= max_false_negative`. The fill is a
//!   function of the set of items, so the rule is one too, and a repeat, which hits every band, always passes.

use crate::error::{MOST_BANDS, MOST_STEPS, SpecError};
use nearset_theory::{
    amplify::{Cascade, Step},
    binomial,
};

/// A rule over the bands that hit.
///
/// ```
/// use nearset::spec::{Rule, Step};
///
/// // OR of 4, AND of 4 of those: the notes' OR-AND construction, .2 -> .1215 and .8 -> .9936.
/// let rule = Rule::cascade([Step::Or(4), Step::And(4)])?;
/// assert_eq!((rule.bands(), rule.threshold_at(0.0)), (16, None));
///
/// // Of items that agree in a third of 128 bands, at most 2 % are lost, however full the tables are.
/// let rule = Rule::promise(128, 1.0 / 3.0, 0.02)?;
/// assert_eq!(rule.threshold_at(0.0), Some(32));
/// assert_eq!(rule.threshold_at(0.3), Some(57));
/// # Ok::<(), nearset::spec::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    bands: u32,
    decision: Decision,
}

/// How hits decide.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// By steps of amplification, from the bands up.
    Steps(Cascade),
    /// By the largest threshold that keeps a promise at the present fill.
    Promise {
        /// The probability that a band of a near item agrees.
        agreement: f64,
        /// How many of those items may be lost.
        max_false_negative: f64,
    },
}

impl Rule {
    /// At least `threshold` of `bands`.
    ///
    /// # Errors
    /// If `threshold` is 0 or more than `bands`.
    pub(crate) fn threshold(bands: u32, threshold: u32) -> Result<Self, SpecError> {
        Self::cascade([Step::AtLeast { of: bands, need: threshold }])
    }

    /// Steps one above the other.
    ///
    /// # Errors
    /// If there is none or more than 16, or a step needs none or more than all of its members, or there are more than 2^16
    /// bands.
    pub fn cascade(steps: impl IntoIterator<Item = Step>) -> Result<Self, SpecError> {
        let steps: Vec<Step> = steps.into_iter().map(plain).collect();
        if steps.is_empty() {
            return Err(SpecError::EmptyRule);
        }
        if steps.len() > MOST_STEPS {
            return Err(SpecError::TooManySteps { found: steps.len() });
        }
        if let Some(step) = steps.iter().find(|step| step.need() == 0 || step.need() > step.of()) {
            return Err(SpecError::Need { need: step.need(), of: step.of() });
        }
        match steps.iter().try_fold(1u32, |product, step| product.checked_mul(step.of())) {
            Some(bands) if bands <= MOST_BANDS => Ok(Self { bands, decision: Decision::Steps(Cascade::new(steps)) }),
            _ => Err(SpecError::TooManyBands),
        }
    }

    /// The largest threshold that, at the present fill, loses at most `max_false_negative` of the items whose bands agree with
    /// probability `agreement`.
    ///
    /// # Errors
    /// If there is no band or more than 2^16, or a number is not a probability that a promise can be made of.
    pub fn promise(bands: u32, agreement: f64, max_false_negative: f64) -> Result<Self, SpecError> {
        if bands == 0 {
            return Err(SpecError::EmptyRule);
        }
        if bands > MOST_BANDS {
            return Err(SpecError::TooManyBands);
        }
        if !(agreement > 0.0 && agreement <= 1.0) {
            return Err(SpecError::Probability { what: "agreement", found: agreement });
        }
        if !(max_false_negative > 0.0 && max_false_negative < 1.0) {
            return Err(SpecError::Probability { what: "max_false_negative", found: max_false_negative });
        }
        Ok(Self { bands, decision: Decision::Promise { agreement, max_false_negative } })
    }

    /// How hits decide.
    pub(crate) fn decision(&self) -> &Decision {
        &self.decision
    }

    /// How many bands the rule is over.
    pub fn bands(&self) -> u32 {
        self.bands
    }

    /// The number of hits that decides when chance hits a band with probability `chance`; `None` for rules of several steps.
    ///
    /// At least 1: where a promise can't be kept by any threshold, one hit is asked for, so that an empty filter accepts nothing.
    pub fn threshold_at(&self, chance: f64) -> Option<u32> {
        match &self.decision {
            Decision::Steps(cascade) => match cascade.steps() {
                [step] => Some(step.need()),
                _ => None,
            },
            Decision::Promise { agreement, max_false_negative } => {
                let hit = 1.0 - (1.0 - agreement) * (1.0 - chance);
                Some(binomial::largest_threshold(self.bands, hit, *max_false_negative).max(1))
            }
        }
    }

    /// Whether the number of hits that decides depends on the fill.
    pub fn follows_fill(&self) -> bool {
        matches!(self.decision, Decision::Promise { .. })
    }

    /// Whether every band must hit.
    pub(crate) fn is_and(&self) -> bool {
        match &self.decision {
            Decision::Steps(cascade) => cascade.steps().iter().all(|step| step.need() == step.of()),
            Decision::Promise { .. } => false,
        }
    }

    /// Whether these hits, one per band, are accepted by the steps. `hits` is used as room to work in.
    pub(crate) fn accepts(steps: &[Step], hits: &mut [bool]) -> bool {
        let mut members = hits.len();
        for step in steps {
            let of = step.of() as usize;
            members /= of;
            for group in 0..members {
                let hit = hits[group * of..][..of].iter().filter(|&&hit| hit).count();
                hits[group] = hit >= step.need() as usize;
            }
        }
        hits[0]
    }

    /// The probability of acceptance when each band hits with probability `band`, independently, while chance alone would hit
    /// with `chance`.
    pub(crate) fn probability(&self, band: f64, chance: f64) -> f64 {
        match (&self.decision, self.threshold_at(chance)) {
            (Decision::Promise { .. }, Some(threshold)) => binomial::at_least(self.bands, band, threshold),
            (Decision::Promise { .. }, None) => unreachable!("a promise has a threshold"),
            (Decision::Steps(cascade), _) => cascade.probability(band),
        }
    }
}

/// One way to say a step, so that equal rules are equal values: an OR of 4 is 1 of 4.
fn plain(step: Step) -> Step {
    Step::AtLeast { of: step.of(), need: step.need() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(rule: &Rule, hits: &[bool]) -> bool {
        let Decision::Steps(cascade) = rule.decision() else { panic!("{rule:?} has no steps") };
        Rule::accepts(cascade.steps(), &mut hits.to_vec())
    }

    #[test]
    fn hits_are_judged_step_by_step() {
        let or_and = Rule::cascade([Step::Or(2), Step::And(2)]).unwrap();
        for (hits, accepted) in [
            ([true, false, false, true], true),
            ([true, true, false, false], false),
            ([true, true, true, true], true),
            ([false; 4], false),
        ] {
            assert_eq!(accepts(&or_and, &hits), accepted, "{hits:?}");
        }
        let two_of_three = Rule::threshold(3, 2).unwrap();
        assert!(accepts(&two_of_three, &[true, false, true]));
        assert!(!accepts(&two_of_three, &[false, false, true]));
        assert_eq!(Rule::cascade([Step::Or(4)]), Rule::threshold(4, 1));
    }

    #[test]
    fn a_promise_is_kept_at_every_fill_and_by_no_larger_threshold() {
        let (agreement, most) = (0.8f64.powi(5), 0.02);
        let rule = Rule::promise(128, agreement, most).unwrap();
        for chance in [0.0, 0.1, 0.3, 0.5, 0.9, 0.999] {
            let hit = 1.0 - (1.0 - agreement) * (1.0 - chance);
            let threshold = rule.threshold_at(chance).unwrap();
            assert!(1.0 - rule.probability(hit, chance) <= most);
            assert!(binomial::below(128, hit, threshold + 1) > most, "{} would do at {chance}", threshold + 1);
        }
        assert_eq!(rule.threshold_at(1.0), Some(128));
    }

    #[test]
    fn impossible_rules_are_refused() {
        assert_eq!(Rule::threshold(3, 0), Err(SpecError::Need { need: 0, of: 3 }));
        assert_eq!(Rule::threshold(3, 4), Err(SpecError::Need { need: 4, of: 3 }));
        assert_eq!(Rule::cascade([]), Err(SpecError::EmptyRule));
        assert_eq!(Rule::cascade([Step::Or(u32::MAX); 4]), Err(SpecError::TooManyBands));
        assert_eq!(Rule::cascade([Step::Or(1); 255]), Err(SpecError::TooManySteps { found: 255 }));
        assert!(Rule::promise(0, 0.5, 0.1).is_err());
        for bad in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(Rule::promise(8, bad, 0.1).is_err());
            assert!(Rule::promise(8, 0.5, bad).is_err());
        }
    }

    #[test]
    fn cascades_follow_the_notes() {
        // (4,4,4,4): OR-AND, then AND-OR; .8 -> .9999996 and .2 -> .0008715.
        let rule = Rule::cascade([Step::Or(4), Step::And(4), Step::And(4), Step::Or(4)]).unwrap();
        assert!((rule.probability(0.8, 0.0) - 0.999_999_6).abs() < 5e-8);
        assert!((rule.probability(0.2, 0.0) - 0.000_871_5).abs() < 5e-8);
    }
}
