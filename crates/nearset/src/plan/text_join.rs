//! Bands for finding the near pairs of a corpus of texts, where every find is verified by comparing the texts.
//!
//! Claim: two texts of similarity `near` or more share a band with probability `1 - max_false_negative` or more.
//! Why these bands: verification makes every answer right, so bands only have to miss little and to bring up few strangers. A
//! band of more rows brings up fewer, but more bands are needed then to miss as little, and each costs memory and a look-up an
//! item. What is chosen costs least, a stranger being a pair of half the similarity, its verification as dear as [`STRANGER`]
//! look-ups, since it reads a text again and cuts it, and a look-up as dear as [`SLOTS`] slots of a signature.
//! Not here: the filter that decides without texts (`text_dedup`).

use super::TextDedupError;
use crate::{
    Layout, LshFamily, Seed, Shingling,
    family::{Functions, MinHash},
};

/// Look-ups in a band that cost as much as one verification.
const STRANGER: f64 = 200.0;

/// Slots of a signature that cost as much as one look-up.
const SLOTS: f64 = 100.0;

/// More rows than any similarity below 1 that is worth planning for can use.
const MOST_ROWS: u32 = 64;

/// Beyond this, signatures would be longer than the texts.
const MOST_BANDS: f64 = 1024.0;

/// Which texts are to be found, and how surely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextJoin {
    /// The Jaccard similarity from which on texts are near.
    pub near: f64,
    /// The most of the pairs at exactly `near` that may be missed.
    pub max_false_negative: f64,
    /// How texts are cut.
    pub shingling: Shingling,
    /// From which functions are drawn.
    pub seed: Seed,
}

impl Default for TextJoin {
    fn default() -> Self {
        Self::new(0.8)
    }
}

impl TextJoin {
    /// The usual promise for a similarity.
    pub fn new(near: f64) -> Self {
        Self { near, max_false_negative: 0.02, shingling: Shingling::default(), seed: Seed::default() }
    }

    /// The cheapest bands that keep the promise.
    ///
    /// # Errors
    /// If a number is out of its range, or so near to its end that too many bands would be needed.
    pub fn layout(&self) -> Result<Layout, TextDedupError> {
        if !(self.near > 0.0 && self.near <= 1.0) {
            return Err(TextDedupError::Near { found: self.near });
        }
        let missed = self.max_false_negative;
        if !(missed > 0.0 && missed < 1.0) {
            return Err(TextDedupError::Rate { what: "negative", found: missed });
        }
        let shared = |similarity: f64, rows: u32| libm::pow(similarity, f64::from(rows));
        let needed = |rows: u32| libm::ceil(libm::log(missed) / libm::log1p(-shared(self.near, rows))).max(1.0);
        let cost =
            |rows: u32| needed(rows) * (1.0 + f64::from(rows) / SLOTS + STRANGER * shared(self.near / 2.0, rows));
        let rows = (1..=MOST_ROWS)
            .filter(|&rows| needed(rows) <= MOST_BANDS)
            .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
            .ok_or(TextDedupError::TooManyBands { near: self.near, missed })?;
        Ok(Layout::new(rows, needed(rows) as u32))
    }

    /// The probability that two texts of this similarity share a band of the layout, for independent rows.
    pub fn found(layout: Layout, similarity: f64) -> f64 {
        let apart = libm::log1p(-libm::pow(similarity, f64::from(layout.rows)));
        -libm::expm1(f64::from(layout.bands) * apart)
    }

    /// The functions whose keys are looked up.
    ///
    /// # Errors
    /// Those of [`Self::layout`], and if texts cannot be cut that way.
    pub fn functions(&self) -> Result<Box<dyn Functions>, TextDedupError> {
        let family = MinHash { shingling: self.shingling };
        Ok(family.draw(self.seed, self.layout()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_is_kept_by_sensibly_many_bands() {
        for (near, layout) in [(0.5, (4, 61)), (0.7, (6, 32)), (0.8, (7, 17)), (0.9, (8, 7)), (1.0, (14, 1))] {
            let join = TextJoin::new(near);
            let planned = join.layout().unwrap();
            assert_eq!((planned.rows, planned.bands), layout, "near {near}");
            assert!(TextJoin::found(planned, near) >= 1.0 - join.max_false_negative);
        }
        assert!(TextJoin::found(Layout::new(7, 17), 0.3) < 0.01, "strangers seldom meet");
    }

    #[test]
    fn senseless_wishes_say_why() {
        let why = |near, max_false_negative| {
            let join = TextJoin { max_false_negative, ..TextJoin::new(near) };
            join.layout().unwrap_err().to_string()
        };
        assert!(why(0.0, 0.02).contains("between 0 and 1"));
        assert!(why(1.5, 0.02).contains("between 0 and 1"));
        assert!(why(0.8, 0.0).contains("false-negative"));
        assert!(why(0.001, 0.02).contains("bands"));
    }
}
