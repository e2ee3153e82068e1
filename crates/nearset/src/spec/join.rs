//! What decides which records a join compares.

use crate::{Seed, Shingling, Similarity, item};

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

/// After how many elements of the union a comparison looks whether it is worth going on.
const CHECKS: [usize; 4] = [32, 64, 128, 256];

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
        self.keys_of(1, 0).0
    }

    /// The probability that two records of this similarity are found to be near, if they are and none of their shingles is common.
    pub fn success_probability(&self, similarity: Similarity) -> f64 {
        (-libm::expm1(self.keys() as f64 * libm::log1p(-similarity.value())) - self.given_up()).max(0.0)
    }

    /// The similarity of two sets of hashes in ascending order, if it is at least `least`.
    ///
    /// Where that is `near` or more, the walk through both ends as soon as hardly anything near would look so different: the smallest
    /// hashes are a random part of the union. By Bernstein's inequality that misses at most a fiftieth of what may be missed.
    ///
    /// ```
    /// use nearset::plan::Request;
    ///
    /// let join = Request::default().plan_join()?;
    /// assert_eq!(join.similarity_at_least(&[1, 2, 3, 4, 5], &[1, 2, 3, 4], join.near), Some(join.near));
    /// assert_eq!(join.similarity_at_least(&[1, 2, 3, 4, 5], &[1, 2, 3], join.near), None);
    /// # Ok::<(), nearset::plan::PlanError>(())
    /// ```
    pub fn similarity_at_least(&self, a: &[u64], b: &[u64], least: Similarity) -> Option<Similarity> {
        let near = self.near.value();
        item::similarity_at_least(a, b, least, |seen, both| {
            if !CHECKS.contains(&seen) || least < self.near || both as f64 >= seen as f64 * near {
                return true;
            }
            let few = libm::log(CHECKS.len() as f64 / self.given_up());
            let seen = seen as f64;
            let off = few / 3.0 + libm::sqrt(few * few / 9.0 + 2.0 * seen * near * (1.0 - near) * few);
            both as f64 >= seen * near - off
        })
    }

    /// The part of the pairs at `near` that a comparison may miss for looking too different at first.
    fn given_up(&self) -> f64 {
        self.max_false_negative / 50.0
    }

    /// The part of them that may share no key.
    fn missed_by_keys(&self) -> f64 {
        self.max_false_negative - self.given_up()
    }

    /// How many of its smallest rare shingles a record of `shingles` is posted under, of which `common` are common; and whether that is
    /// not enough, so that it is also looked up by its common part.
    ///
    /// Take a record of `n` shingles, `c` of them common, and a partner of similarity `t`. Of the shared shingles the fewest are rare if the
    /// partner is a part of the record that has `tn` shingles, all `c` common ones among them: `tn - c` of the `n - c` rare ones. That is
    /// the similarity of the rare parts, by which the number of keys follows. Where that would be more than [`Self::MOST_KEYS`], so many
    /// are taken, and the common parts find what they don't.
    pub(crate) fn keys_of(&self, shingles: usize, common: usize) -> (usize, bool) {
        let near = self.near.value();
        let (n, c) = (shingles.max(1) as f64, common as f64);
        let keys = |similarity: f64| {
            libm::ceil(libm::log(self.missed_by_keys()) / libm::log1p(-similarity.min(1.0))).max(1.0) as usize
        };
        let of_rare = if n > c { (near * n - c) / (n - c) } else { 0.0 };
        if of_rare >= self.least_rare().min(near) { (keys(of_rare), false) } else { (Self::MOST_KEYS, true) }
    }

    /// The least similarity of the rare parts of two records that [`Self::MOST_KEYS`] keys find.
    fn least_rare(&self) -> f64 {
        1.0 - libm::pow(self.missed_by_keys(), 1.0 / Self::MOST_KEYS as f64)
    }

    /// How many rare shingles two records may share without being found by their keys, if one of them has `rare` and is posted under
    /// [`Self::MOST_KEYS`] of them.
    pub(crate) fn unseen_rare(&self, rare: f64) -> f64 {
        if rare <= Self::MOST_KEYS as f64 { 0.0 } else { self.least_rare() * rare }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_from_the_promise() {
        let spec =
            |near| JoinSpec::new(Similarity::jaccard(near).unwrap(), 0.001, Shingling::default(), Seed::default());
        // (1 - .8)^5 = 3.2e-4, (1 - .5)^10 = 9.8e-4, and comparisons may miss 2e-5.
        assert_eq!([0.8, 0.5, 1.0].map(|near| spec(near).keys()), [5, 10, 1]);
        // Of 100 shingles 60 are common: a part of 80 shares 20 of the 40 rare ones.
        assert_eq!(spec(0.8).keys_of(100, 60), (10, false));
        // From 78 on it shares less than a tenth of them; (1 - .1)^64 = .0012.
        assert_eq!(
            [74, 77, 78, 100].map(|common| spec(0.8).keys_of(100, common)),
            [(27, false), (50, false), (64, true), (64, true)]
        );
        assert_eq!(spec(0.8).unseen_rare(64.0), 0.0);
        assert!((spec(0.8).unseen_rare(100.0) - 10.2).abs() < 0.1);
        assert!((1.0 - spec(0.8).success_probability(spec(0.8).near) - 0.00034).abs() < 1e-9);
    }
}
