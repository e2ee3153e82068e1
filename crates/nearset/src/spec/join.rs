//! What decides which records a join compares.

use crate::{Seed, Shingling, Similarity};

/// Which records a join compares: those that share one of their smallest rare shingles.
///
/// Of the `k` smallest shingles in the union of two sets, each is in both with probability `J`, so two records of similarity `J` share
/// none of their `k` smallest with probability `(1 - J)^k` (Broder 1997).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct JoinSpec {
    /// The similarity from which on records are near.
    pub near: Similarity,
    /// The most of the pairs at exactly `near` that may be missed.
    pub max_false_negative: f64,
    /// How texts are cut.
    pub shingling: Shingling,
    /// From which the hashes of shingles are drawn.
    pub seed: Seed,
}

impl JoinSpec {
    /// How much is missed by default of what lies at exactly `near`: 1 in 1,000, since one key more costs little.
    pub const MAX_FALSE_NEGATIVE: f64 = 0.001;

    /// The most keys that a record is posted under. More would take more memory than the texts of short records.
    pub(crate) const MOST_KEYS: usize = 64;

    /// The least similarity of the rare parts of two records by which keys find them; below it, their common parts do.
    pub(crate) const LEAST_RARE: f64 = 0.25;

    /// A join of records of this similarity.
    pub(crate) const fn new(near: Similarity, max_false_negative: f64, shingling: Shingling, seed: Seed) -> Self {
        Self { near, max_false_negative, shingling, seed }
    }

    /// How many of its smallest shingles a record is posted under, if none of them is common.
    pub fn keys(&self) -> usize {
        self.keys_of(1, 0).0
    }

    /// The probability that two records of this similarity share a key, if none of their shingles is common.
    pub fn success_probability(&self, similarity: Similarity) -> f64 {
        -libm::expm1(self.keys() as f64 * libm::log1p(-similarity.value()))
    }

    /// How many of its smallest rare shingles a record of `shingles` is posted under, of which `common` are common; and whether that is
    /// not enough, so that it is also looked up by its common part.
    ///
    /// Take a record of `n` shingles, `c` of them common, and a partner of similarity `t`. Of the shared shingles the fewest are rare if the
    /// partner is a part of the record that has `tn` shingles, all `c` common ones among them: `tn - c` of the `n - c` rare ones. That is
    /// the similarity of the rare parts, by which the number of keys follows. Where it is below [`Self::LEAST_RARE`], as many keys are
    /// taken as find that similarity, and the common parts find the others.
    pub(crate) fn keys_of(&self, shingles: usize, common: usize) -> (usize, bool) {
        let near = self.near.value();
        let (n, c) = (shingles.max(1) as f64, common as f64);
        let keys = |similarity: f64| {
            libm::ceil(libm::log(self.max_false_negative) / libm::log1p(-similarity.min(1.0))).max(1.0) as usize
        };
        let of_rare = if n > c { (near * n - c) / (n - c) } else { 0.0 };
        let least = Self::LEAST_RARE.min(near);
        if of_rare >= least { (keys(of_rare), false) } else { (keys(least), true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_from_the_promise() {
        let spec =
            |near| JoinSpec::new(Similarity::jaccard(near).unwrap(), 0.001, Shingling::default(), Seed::default());
        // (1 - .8)^5 = 3.2e-4, (1 - .5)^10 = 9.8e-4.
        assert_eq!([0.8, 0.5, 1.0].map(|near| spec(near).keys()), [5, 10, 1]);
        // Of 100 shingles 60 are common: a part of 80 shares 20 of the 40 rare ones.
        assert_eq!(spec(0.8).keys_of(100, 60), (10, false));
        // From 74 on it shares less than a quarter of them; (1 - .25)^25 = 7.5e-4.
        assert_eq!([73, 74, 100].map(|common| spec(0.8).keys_of(100, common)), [(24, false), (25, true), (25, true)]);
        assert!((1.0 - spec(0.8).success_probability(spec(0.8).near) - 0.00032).abs() < 1e-9);
    }
}
