//! Signatures: summaries of sets in a few hundred slots.
//!
//! Claim: the fraction of slots in which two signatures agree estimates their sets' Jaccard similarity without bias,
//! with variance `J(1-J)/k`; `merge` gives the signature of the union, bit for bit.
//! Invariant: signatures are compared and merged only when seed, shingling and length agree.

use std::ops::RangeInclusive;

use crate::{
    MergeError, Seed,
    item::{Shingling, Similarity},
    simd::sketch::EMPTY,
};

/// The signature of a set, or of a weighted set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    seed: Seed,
    shingling: Shingling,
    weighted: bool,
    slots: Vec<u64>,
}

/// An estimated similarity, with the bounds of its 95 % confidence interval (Wilson 1927).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// The fraction of slots that agree.
    pub(crate) similarity: Similarity,
    /// The interval's lower bound.
    pub(crate) low: Similarity,
    /// The interval's upper bound.
    pub(crate) high: Similarity,
}

impl Estimate {
    pub(super) fn from_agreements(agreeing: usize, slots: usize) -> Self {
        // The 0.975 quantile of the normal distribution.
        const Z: f64 = 1.959_963_984_540_054;
        let count = slots as f64;
        let part = agreeing as f64 / count;
        let centre = part + Z * Z / (2.0 * count);
        let spread = Z * libm::sqrt(part * (1.0 - part) / count + Z * Z / (4.0 * count * count));
        let scale = 1.0 + Z * Z / count;
        let similarity = |value: f64| Similarity::jaccard(value.clamp(0.0, 1.0)).expect("clamped to the range");
        // At the ends the bound is the end itself; rounding must not move it inside.
        let low = if agreeing == 0 { 0.0 } else { (centre - spread) / scale };
        let high = if agreeing == slots { 1.0 } else { (centre + spread) / scale };
        Self { similarity: similarity(part), low: similarity(low), high: similarity(high) }
    }
}

impl Signature {
    pub(super) fn empty(seed: Seed, shingling: Shingling, weighted: bool, slots: usize) -> Self {
        Self { seed, shingling, weighted, slots: vec![EMPTY; slots] }
    }

    /// Empties the signature and returns its slots, of which there must be `slots`.
    pub(super) fn reset(&mut self, slots: usize) -> &mut [u64] {
        assert_eq!(self.slots.len(), slots, "another sketcher made the signature");
        self.slots.fill(EMPTY);
        &mut self.slots
    }

    /// Returns the slots' values; `u64::MAX`, which is no value, throughout for an empty set.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Returns whether the set was empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.contains(&EMPTY)
    }

    /// Estimates the Jaccard similarity of the two sets, with its 95 % confidence interval (Wilson 1927). Empty sets are similar to
    /// nothing.
    ///
    /// The interval is that of independent slots. It covers the true similarity in 95 % of cases or more on average, and in
    /// 93 % or more at any one similarity from 128 slots on; up to 99 % where the set has about as many elements as the
    /// signature has slots, since the variance is then half of what the interval allows for.
    ///
    /// # Errors
    /// If the signatures differ in seed, shingling or length.
    pub fn jaccard(&self, other: &Signature) -> Result<(Similarity, RangeInclusive<Similarity>), MergeError> {
        self.check_comparable(other)?;
        let agreeing = self.slots.iter().zip(&other.slots).filter(|(a, b)| a == b && **a != EMPTY).count();
        let Estimate { similarity, low, high } = Estimate::from_agreements(agreeing, self.slots.len());
        Ok((similarity, low..=high))
    }

    /// Turns this signature into that of the union of both sets.
    ///
    /// # Errors
    /// If the signatures differ in seed, shingling or length; in that case nothing changes.
    pub fn merge(&mut self, other: &Signature) -> Result<(), MergeError> {
        self.check_comparable(other)?;
        self.slots.iter_mut().zip(&other.slots).for_each(|(a, &b)| *a = (*a).min(b));
        Ok(())
    }

    fn check_comparable(&self, other: &Signature) -> Result<(), MergeError> {
        let Self { seed, shingling, weighted, slots } = self;
        MergeError::unless_equal("seed", seed, &other.seed)?;
        MergeError::unless_equal("shingling", shingling, &other.shingling)?;
        MergeError::unless_equal("use of weights", weighted, &other.weighted)?;
        MergeError::unless_equal("number of slots", &slots.len(), &other.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        family::{MinHash, WeightedMinHash},
        item::Item,
    };

    fn signature(seed: u64, slots: u32, set: &[u64]) -> Signature {
        MinHash::default().sketcher(Seed::new(seed), slots).unwrap().signature(Item::Set(set)).unwrap()
    }

    #[test]
    fn mismatches_are_errors_and_change_nothing() {
        let a = signature(1, 64, &[1, 2]);
        let mut b = signature(2, 64, &[3]);
        let before = b.clone();
        let differ = |found: Result<(Similarity, RangeInclusive<Similarity>), MergeError>| found.unwrap_err().what;
        assert_eq!(differ(a.jaccard(&b)), "seed");
        assert!(b.merge(&a).is_err());
        assert_eq!(b, before);
        let chars = MinHash { shingling: Shingling::Chars(4) }.sketcher(Seed::new(1), 64).unwrap();
        assert_eq!(differ(a.jaccard(&chars.empty())), "shingling");
        let weighted = WeightedMinHash::default().sketcher(Seed::new(1), 64).unwrap();
        assert_eq!(differ(a.jaccard(&weighted.empty())), "use of weights");
        assert_eq!(differ(a.jaccard(&signature(1, 65, &[1]))), "number of slots");
    }

    #[test]
    fn an_empty_set_is_similar_to_nothing_and_neutral_in_a_union() {
        let (empty, full) = (signature(1, 64, &[]), signature(1, 64, &[1, 2]));
        assert!(empty.is_empty() && !full.is_empty());
        for other in [&empty, &full] {
            assert_eq!(empty.jaccard(other).unwrap().0.value(), 0.0);
        }
        let mut union = empty.clone();
        union.merge(&full).unwrap();
        assert_eq!(union, full);
    }

    #[test]
    fn the_interval_is_wilsons() {
        // Brown, Cai & DasGupta, "Interval estimation for a binomial proportion", 2001, section 3.1.1, worked for 3 of
        // 10.
        let estimate = Estimate::from_agreements(3, 10);
        assert!((estimate.low.value() - 0.107_791).abs() < 1e-6);
        assert!((estimate.high.value() - 0.603_222).abs() < 1e-6);
        assert_eq!(Estimate::from_agreements(0, 128).low.value(), 0.0);
        assert_eq!(Estimate::from_agreements(128, 128).high.value(), 1.0);
    }

    proptest! {
        #[test]
        fn merging_is_the_signature_of_the_union(
            a in prop::collection::vec(any::<u64>(), 0..400),
            b in prop::collection::vec(any::<u64>(), 0..400),
            slots in 1u32..700,
        ) {
            let mut merged = signature(5, slots, &a);
            merged.merge(&signature(5, slots, &b)).unwrap();
            let union: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, signature(5, slots, &union));
        }
    }
}
