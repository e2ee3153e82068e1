//! The filter that removes near-duplicate texts: what is taken where a user says no more than "near".
//!
//! Claim: a text whose nearest earlier one has exactly the similarity `near` is caught with probability at least
//! `1 - max_false_negative` at every load, and one with nothing nearer than `far` with at most `max_false_positive` at
//! capacity, as long as it has one such neighbour. Of texts that have nothing in common with any earlier one, at most
//! 1 in 10,000 are lost, whatever `near` is.
//!
//! Why these defaults. A corpus has few texts at exactly `near` and many far above it, so `near` is the *middle* of the
//! curve: about half of what lies exactly there is caught, nearly all of what lies 0.07 above, nearly none 0.1 below. Promising
//! 98 % at exactly `near` moves the whole curve down by 0.05 and takes as many texts with it that are not near.
//!
//! Many rows: hits are counted against the union of all earlier texts, so partial overlaps with many of them add up. Bands
//! that agree rarely make that rare; with too many rows a text of few shingles has too few distinct bands. Tables 15 % full:
//! emptier ones take more bits per band, fuller ones more bands for the same promises, and bands are what hashing and committing
//! a text costs. A little more than half may be missed at exactly `near`, because the union of earlier texts adds what one
//! neighbour alone would not reach. Where `near` is high a few bands would tell it from `far`, and chance alone would fill enough
//! of so few: it is unrelated texts that need more.
//!
//! What the default (8 rows, 112 bands) does on licences, bible chapters and Python proposals, with exact similarities as
//! truth, `make bench-peers` measures: `bench/results/peers.md`. The shape was chosen on that corpus; others have other
//! families and other numbers.

use nearset_theory::binomial;

use crate::{
    Seed, Shingling, Spec, Table,
    family::{FamilyError, MinHash},
    filter::{Rule, SpecError},
    item::{ItemError, Similarity},
};

/// The part of the bits that is set at capacity.
const FILL: f64 = 0.15;

/// The most of what is unrelated to all earlier texts that is taken for a duplicate.
pub(crate) const MAX_UNRELATED: f64 = 1e-4;

/// The part of [`MAX_UNRELATED`] that a filter of one generation may use; the rest is for those that come by growth.
const FIRST_SHARE: f64 = 0.9;

/// How often a band of two texts agrees that are exactly `near`; from it the rows follow.
const AGREEMENT: f64 = 0.168;

/// Beyond this the gap between near and far is too small for any filter worth having.
const MOST_BANDS: u32 = 4096;

/// What is to be removed from a corpus of texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextDedup {
    /// The Jaccard similarity from which on texts are duplicates.
    pub near: f64,
    /// The similarity below which they are not.
    pub far: f64,
    /// The most of what lies at exactly `near` that may be missed.
    pub max_false_negative: f64,
    /// The most of what lies at exactly `far` that may be taken for a duplicate.
    pub max_false_positive: f64,
    /// How texts are cut.
    pub shingling: Shingling,
    /// From which functions are drawn.
    pub seed: Seed,
}

impl Default for TextDedup {
    fn default() -> Self {
        Self::new(0.8)
    }
}

impl TextDedup {
    /// The usual promises around a similarity.
    pub fn new(near: f64) -> Self {
        Self {
            near,
            far: near - 0.1,
            max_false_negative: 0.55,
            max_false_positive: 0.02,
            shingling: Shingling::default(),
            seed: Seed::default(),
        }
    }

    /// The filter for so many distinct texts. Specs of different capacities differ in their tables only: one text has the
    /// same keys for all of them.
    ///
    /// # Errors
    /// If a number is out of its range, or near and far are too close to be told apart.
    pub fn spec(&self, capacity: u64) -> Result<Spec, TextDedupError> {
        self.spec_of_one_in(capacity, 1)
    }

    /// The same for one of so many generations, which share what may be lost.
    pub(crate) fn spec_of_one_in(&self, capacity: u64, generations: u32) -> Result<Spec, TextDedupError> {
        let share = 1.0 / f64::from(generations.max(1));
        if !(self.near > 0.0 && self.near < 1.0) {
            return Err(TextDedupError::Near { found: self.near });
        }
        if !(self.far > 0.0 && self.far < self.near) {
            return Err(TextDedupError::Far { near: self.near, far: self.far });
        }
        for (what, found) in [("negative", self.max_false_negative), ("positive", self.max_false_positive)] {
            if !(found > 0.0 && found < 1.0) {
                return Err(TextDedupError::Rate { what, found });
            }
        }
        let rows = libm::round(libm::log(AGREEMENT) / libm::log(self.near)).clamp(1.0, 64.0);
        let hit = |similarity: f64, fill: f64| 1.0 - (1.0 - libm::pow(similarity, rows)) * (1.0 - fill);
        // A threshold is a whole number, so what lies far passes more often just before the fill at which it rises.
        let fills = (90..=104).map(|percent| FILL * f64::from(percent) / 100.0);
        let keeps = |bands: u32| {
            fills.clone().all(|fill| {
                let threshold = binomial::largest_threshold(bands, hit(self.near, fill), self.max_false_negative);
                let passes = |similarity| binomial::at_least(bands, hit(similarity, fill), threshold);
                threshold > 0
                    && passes(self.far) <= share * self.max_false_positive
                    && passes(0.0) <= share * FIRST_SHARE * MAX_UNRELATED
            })
        };
        let bands = (1..=MOST_BANDS / 4)
            .map(|quarter| 4 * quarter)
            .find(|&bands| keeps(bands))
            .ok_or(TextDedupError::TooClose { near: self.near, far: self.far })?;
        let bits = libm::ceil(capacity.max(1) as f64 / -libm::log(1.0 - FILL)) as u64;
        let spec = Spec {
            family: MinHash { shingling: self.shingling }.into(),
            seed: self.seed,
            rows: rows as u32,
            rule: Rule::promise(bands, libm::pow(self.near, rows), self.max_false_negative).map_err(SpecError::from)?,
            table: Table::Bits(bits),
            verification: None,
            probing: None,
        };
        spec.check()?;
        Ok(spec)
    }

    /// The probability at capacity that a text is caught whose nearest earlier one has this similarity.
    ///
    /// # Errors
    /// If there is no such similarity, or no such filter.
    pub fn caught(&self, similarity: f64) -> Result<f64, TextDedupError> {
        let distance = Similarity::jaccard(similarity)?.jaccard_distance();
        Ok(self.spec(1)?.acceptance_probability(distance, FILL, 0.0))
    }
}

/// Why there is no such filter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextDedupError {
    /// No similarity that something can be near by.
    #[error("near is {found}: it is a similarity between 0 and 1, such as 0.8")]
    Near {
        /// What was asked for.
        found: f64,
    },
    /// Far is not below near.
    #[error("far is {far} and near is {near}: far must lie between 0 and near")]
    Far {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// Not a rate.
    #[error("a false-{what} rate of {found} cannot be promised: it must lie between 0 and 1")]
    Rate {
        /// Which.
        what: &'static str,
        /// What was asked for.
        found: f64,
    },
    /// More bands than are sensible.
    #[error(
        "similarities of {near} and {far} are too close to be told apart this well: allow more false positives, or more \
         false negatives"
    )]
    TooClose {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// More bands than a signature may have.
    #[error(
        "to miss {missed} of what is {near} alike takes too many bands: ask for a higher similarity, or allow more misses"
    )]
    TooManyBands {
        /// Near.
        near: f64,
        /// What may be missed.
        missed: f64,
    },
    /// Not a similarity.
    #[error(transparent)]
    Similarity(#[from] ItemError),
    /// Functions can't be drawn.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// The filter can't be.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_takes_at_most_90_bytes_per_text() {
        let spec = TextDedup::default().spec(100_000).unwrap();
        assert_eq!((spec.rows, spec.rule.bands()), (8, 112));
        assert!(spec.bytes() <= 90 * 100_000, "{} bytes", spec.bytes());
    }

    /// At every load up to a filter's capacity, and a little beyond.
    #[test]
    fn unrelated_texts_are_spared_whatever_is_near() {
        for hundredths in (20..=99).chain([995, 999]) {
            let near = f64::from(hundredths) / if hundredths > 100 { 1000.0 } else { 100.0 };
            for max_false_negative in [0.55, 0.02] {
                let wanted = TextDedup { max_false_negative, ..TextDedup::new(near) };
                let spec = wanted.spec(1).unwrap();
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
        for near in [0.5, 0.7, 0.8, 0.9, 0.95] {
            for (max_false_negative, max_false_positive) in [(0.5, 0.02), (0.02, 0.1), (0.1, 0.01)] {
                let wanted = TextDedup { max_false_negative, max_false_positive, ..TextDedup::new(near) };
                let (at_near, at_far) = (wanted.caught(near).unwrap(), wanted.caught(wanted.far).unwrap());
                assert!(1.0 - at_near <= max_false_negative, "{near}: {at_near}");
                assert!(at_far <= max_false_positive, "{near}: {at_far}");
            }
        }
    }

    #[test]
    fn capacities_share_their_keys() {
        let (small, large) = (TextDedup::default().spec(10).unwrap(), TextDedup::default().spec(1 << 30).unwrap());
        assert_eq!(
            (&small.family, small.seed, small.rows, &small.rule),
            (&large.family, large.seed, large.rows, &large.rule)
        );
    }

    #[test]
    fn senseless_wishes_say_why() {
        let why = |change: fn(&mut TextDedup)| {
            let mut wanted = TextDedup::default();
            change(&mut wanted);
            wanted.spec(1).unwrap_err().to_string()
        };
        assert!(why(|wanted| wanted.near = 1.0).contains("between 0 and 1"));
        assert!(why(|wanted| wanted.far = 0.9).contains("between 0 and near"));
        assert!(why(|wanted| wanted.max_false_positive = 0.0).contains("false-positive"));
        assert!(why(|wanted| wanted.far = 0.7999).contains("too close"));
    }
}
