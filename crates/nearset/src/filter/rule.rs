//! When a filter accepts: amplification over the bands that hit.
//!
//! An AND below the tables is a band of `rows` functions. Above them, hits are counted: a [`Step`] gathers groups and accepts
//! a group when enough of its members hit. One step over all bands is the threshold of the distance-sensitive Bloom
//! filter, the AND of the LSBF or the OR of banding; several are the cascades of the notes. One value gives the decision
//! and its curve.

use crate::plan::curve::amplify::{Cascade, Step};

/// A rule over bands, from the step next to the bands up to the one that decides.
///
/// ```
/// use nearset::{filter::Rule, plan::curve::amplify::Step};
///
/// // OR of 4, AND of 4 of those: the notes' OR-AND construction, .2 -> .1215 and .8 -> .9936.
/// let rule = Rule::cascade([Step::Or(4), Step::And(4)])?;
/// assert!((rule.probability(0.2) - 0.1215).abs() < 5e-5);
/// assert!((rule.probability(0.8) - 0.9936).abs() < 5e-5);
/// # Ok::<(), nearset::filter::RuleError>(())
/// ```
#[derive(Debug, Clone, Eq)]
pub struct Rule {
    cascade: Cascade,
    bands: u32,
}

/// The most bands that a filter may have.
const MOST_BANDS: u32 = 1 << 16;

impl Rule {
    /// At least `threshold` of `bands`.
    ///
    /// # Errors
    /// If `threshold` is 0 or more than `bands`.
    pub fn threshold(bands: u32, threshold: u32) -> Result<Self, RuleError> {
        Self::cascade([Step::AtLeast { of: bands, need: threshold }])
    }

    /// Steps one above the other.
    ///
    /// # Errors
    /// If there is none, or a step needs none or more than all of its members, or there are more than 2^16 bands.
    pub fn cascade(steps: impl IntoIterator<Item = Step>) -> Result<Self, RuleError> {
        let steps: Vec<Step> = steps.into_iter().collect();
        if steps.is_empty() {
            return Err(RuleError::Empty);
        }
        if let Some(step) = steps.iter().find(|step| step.need() == 0 || step.need() > step.of()) {
            return Err(RuleError::Need { need: step.need(), of: step.of() });
        }
        match steps.iter().try_fold(1u32, |product, step| product.checked_mul(step.of())) {
            Some(bands) if bands <= MOST_BANDS => Ok(Self { cascade: Cascade::new(steps), bands }),
            _ => Err(RuleError::TooManyBands),
        }
    }

    /// The steps, from the bands up.
    pub fn steps(&self) -> &[Step] {
        self.cascade.steps()
    }

    /// How many bands the rule is over.
    pub fn bands(&self) -> u32 {
        self.bands
    }

    /// The number of hits that decides, where one number does.
    pub fn single_threshold(&self) -> Option<u32> {
        match self.steps() {
            [step] => Some(step.need()),
            _ => None,
        }
    }

    /// Whether every band must hit.
    pub fn is_and(&self) -> bool {
        self.steps().iter().all(|step| step.need() == step.of())
    }

    /// Whether these hits, one a band, are accepted. `hits` is used as room to work in.
    pub(crate) fn accepts(&self, hits: &mut [bool]) -> bool {
        let mut members = hits.len();
        for step in self.steps() {
            let of = step.of() as usize;
            members /= of;
            for group in 0..members {
                let hit = hits[group * of..][..of].iter().filter(|&&hit| hit).count();
                hits[group] = hit >= step.need() as usize;
            }
        }
        hits[0]
    }

    /// The probability of acceptance when each band hits with probability `band`, independently.
    pub fn probability(&self, band: f64) -> f64 {
        self.cascade.probability(band)
    }
}

/// By what is needed of how many: an OR of 4 is 1 of 4.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        let counts = |rule: &Self| rule.steps().iter().map(|step| (step.of(), step.need())).collect::<Vec<_>>();
        counts(self) == counts(other)
    }
}

/// Why a rule can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// No level at all.
    #[error("a rule needs at least one level")]
    Empty,
    /// A threshold that is always or never reached.
    #[error("{need} of {of} can't be needed: a threshold lies between 1 and the number of bands")]
    Need {
        /// Members needed.
        need: u32,
        /// Members there are.
        of: u32,
    },
    /// More bands than a filter may have.
    #[error("more than {MOST_BANDS} bands: use fewer")]
    TooManyBands,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_judged_level_by_level() {
        let or_and = Rule::cascade([Step::Or(2), Step::And(2)]).unwrap();
        for (hits, accepted) in [
            ([true, false, false, true], true),
            ([true, true, false, false], false),
            ([true, true, true, true], true),
            ([false; 4], false),
        ] {
            assert_eq!(or_and.accepts(&mut hits.clone()), accepted, "{hits:?}");
        }
        let two_of_three = Rule::threshold(3, 2).unwrap();
        assert!(two_of_three.accepts(&mut [true, false, true]));
        assert!(!two_of_three.accepts(&mut [false, false, true]));
    }

    #[test]
    fn impossible_rules_are_refused() {
        assert_eq!(Rule::threshold(3, 0), Err(RuleError::Need { need: 0, of: 3 }));
        assert_eq!(Rule::threshold(3, 4), Err(RuleError::Need { need: 4, of: 3 }));
        assert_eq!(Rule::cascade([]), Err(RuleError::Empty));
        assert!(Rule::cascade([Step::Or(u32::MAX); 4]).is_err());
    }

    #[test]
    fn cascades_follow_the_notes() {
        // (4,4,4,4): OR-AND, then AND-OR; .8 -> .9999996 and .2 -> .0008715.
        let rule = Rule::cascade([Step::Or(4), Step::And(4), Step::And(4), Step::Or(4)]).unwrap();
        assert!((rule.probability(0.8) - 0.999_999_6).abs() < 5e-8);
        assert!((rule.probability(0.2) - 0.000_871_5).abs() < 5e-8);
    }
}
