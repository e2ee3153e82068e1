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

    /// A join of records of this similarity.
    pub(crate) const fn new(near: Similarity, max_false_negative: f64, shingling: Shingling, seed: Seed) -> Self {
        Self { near, max_false_negative, shingling, seed }
    }

    /// How many of its smallest shingles a record is posted under, if none of them is common.
    pub fn keys(&self) -> usize {
        self.keys_of(1, 0)
    }

    /// The probability that two records of this similarity share a key, if none of their shingles is common.
    pub fn success_probability(&self, similarity: Similarity) -> f64 {
        -libm::expm1(self.keys() as f64 * libm::log1p(-similarity.value()))
    }

    /// How many of its smallest rare shingles a record is posted under, if it has `shingles` of which `common` are common.
    ///
    /// Take a partner of the same size `n` at similarity `t` that has all of the `c` common ones. The two share `2nt/(1+t)` shingles, so
    /// `x = 2nt/(1+t) - c` rare ones, and their `r = n - c` rare shingles have the similarity `x / (2r - x)`. A partner that lacks some of
    /// the common shingles shares more rare ones.
    pub(crate) fn keys_of(&self, shingles: usize, common: usize) -> usize {
        /// Where the common part may do alone, it is looked up too; a few keys find those that share more.
        const FEW: usize = 4;
        let near = self.near.value();
        let (n, c) = (shingles as f64, common as f64);
        let (rare, shared) = (n - c, 2.0 * n * near / (1.0 + near) - c);
        if shared <= 0.0 {
            return FEW;
        }
        let similarity = (shared / (2.0 * rare - shared)).min(1.0);
        libm::ceil(libm::log(self.max_false_negative) / libm::log1p(-similarity)).max(1.0) as usize
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
        // Of 100 shingles 80 are common: 8.9 of the 20 rare ones are shared, a similarity of .286.
        assert_eq!(spec(0.8).keys_of(100, 80), 21);
        assert_eq!(spec(0.8).keys_of(100, 95), 4);
        assert!((1.0 - spec(0.8).success_probability(spec(0.8).near) - 0.00032).abs() < 1e-9);
    }
}
