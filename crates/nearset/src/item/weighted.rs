//! Weighted sets and bags: Jaccard similarity as the sum of minima over the sum of maxima.
//!
//! Claim: an element of weight 0 counts as absent, and the similarity does not change when all weights of both items
//! are multiplied by one constant. A set without weight is near nothing.
//! Invariant: items in ascending order of elements are read in place; only others are copied, to be sorted.

use std::borrow::Cow;

use super::{ItemError, Similarity};

/// Returns `Σ min(a, b) / Σ max(a, b)` over the elements of both, or 0 if neither has any weight.
///
/// # Errors
/// If a weight is negative, infinite or NaN, or an element occurs twice in one item.
pub(crate) fn weighted_jaccard(a: &[(u64, f64)], b: &[(u64, f64)]) -> Result<Similarity, ItemError> {
    check_weights(a)?;
    check_weights(b)?;
    let (a, b) = (ascending(a)?, ascending(b)?);
    let largest = a.iter().chain(&*b).map(|&(_, weight)| weight).fold(0.0, f64::max);
    // Scaling by a power of two is exact, and keeps sums of huge weights finite.
    let scale = if largest > 1e290 { 2f64.powi(-64) } else { 1.0 };
    let (mut minima, mut maxima) = (0.0, 0.0);
    merge(&a, &b, 0.0, |x, y| {
        minima += x.min(y) * scale;
        maxima += x.max(y) * scale;
    });
    Similarity::jaccard(if maxima > 0.0 { minima / maxima } else { 0.0 })
}

/// Checks the weights, as everything that reads weights must.
pub(crate) fn check_weights(item: &[(u64, f64)]) -> Result<(), ItemError> {
    for (position, &(_, value)) in item.iter().enumerate() {
        if !value.is_finite() {
            return Err(ItemError::NotFinite { position, value });
        }
        if value < 0.0 {
            return Err(ItemError::NegativeWeight { position, value });
        }
    }
    Ok(())
}

/// Returns the item in ascending order of elements, each occurring once.
pub(crate) fn ascending<W: Copy>(item: &[(u64, W)]) -> Result<Cow<'_, [(u64, W)]>, ItemError> {
    if item.is_sorted_by(|(x, _), (y, _)| x < y) {
        return Ok(Cow::Borrowed(item));
    }
    let mut copy = item.to_vec();
    copy.sort_unstable_by_key(|&(element, _)| element);
    match copy.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(ItemError::RepeatedElement { element: pair[0].0 }),
        None => Ok(Cow::Owned(copy)),
    }
}

/// Visits the weights of every element of either item, in ascending order, so that sums are the same everywhere.
fn merge<W: Copy>(mut a: &[(u64, W)], mut b: &[(u64, W)], absent: W, mut visit: impl FnMut(W, W)) {
    loop {
        match (a, b) {
            ([], []) => return,
            ([(x, weight), rest @ ..], [(y, other), rest_b @ ..]) if x == y => {
                visit(*weight, *other);
                (a, b) = (rest, rest_b);
            }
            ([(x, weight), rest @ ..], others) if others.first().is_none_or(|(y, _)| x < y) => {
                visit(*weight, absent);
                a = rest;
            }
            (_, [(_, other), rest @ ..]) => {
                visit(absent, *other);
                b = rest;
            }
            ([_, ..], []) => unreachable!("the arm above takes what is left of `a`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_weights_are_named() {
        let found = |weights: &[(u64, f64)]| weighted_jaccard(weights, &[(1, 1.0)]).unwrap_err();
        assert_eq!(found(&[(1, 1.0), (2, f64::INFINITY)]), ItemError::NotFinite { position: 1, value: f64::INFINITY });
        assert!(matches!(found(&[(1, f64::NAN)]), ItemError::NotFinite { position: 0, .. }));
        assert_eq!(found(&[(1, -0.5)]), ItemError::NegativeWeight { position: 0, value: -0.5 });
        assert_eq!(found(&[(9, 1.0), (1, 1.0), (9, 2.0)]), ItemError::RepeatedElement { element: 9 });
    }

    #[test]
    fn huge_and_tiny_weights_have_a_similarity() {
        let similarity = |a: &[(u64, f64)], b: &[(u64, f64)]| weighted_jaccard(a, b).unwrap().value();
        let third = similarity(&[(1, f64::MAX), (2, f64::MAX)], &[(2, f64::MAX), (3, f64::MAX)]);
        assert!((third - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(similarity(&[(1, 2e-320)], &[(1, 4e-320)]), 0.5);
    }

    #[test]
    fn what_has_no_weight_is_near_to_nothing() {
        assert_eq!(weighted_jaccard(&[], &[]).unwrap().value(), 0.0);
        assert_eq!(weighted_jaccard(&[(1, 0.0)], &[(1, 0.0)]).unwrap().value(), 0.0);
    }

    #[test]
    fn ascending_items_are_not_copied() {
        assert!(matches!(ascending(&[(1, 1.0), (5, 0.0)]), Ok(Cow::Borrowed(_))));
        assert!(matches!(ascending(&[(5, 1.0), (1, 0.0)]), Ok(Cow::Owned(_))));
    }

    proptest! {
        #[test]
        fn sums_agree_with_maps(
            a in prop::collection::btree_map(0u64..30, 0u32..9, 0..30),
            b in prop::collection::btree_map(0u64..30, 0u32..9, 0..30),
        ) {
            let of = |map: &BTreeMap<u64, u32>, element| u64::from(map.get(&element).copied().unwrap_or(0));
            let minima: u64 = (0..30).map(|x| of(&a, x).min(of(&b, x))).sum();
            let maxima: u64 = (0..30).map(|x| of(&a, x).max(of(&b, x))).sum();
            let expected = minima as f64 / maxima.max(1) as f64;
            let counts = |map: &BTreeMap<u64, u32>| map.iter().rev().map(|(&x, &n)| (x, n)).collect::<Vec<_>>();
            let (a, b) = (counts(&a), counts(&b));
            let weights = |bag: &[(u64, u32)]| bag.iter().map(|&(x, n)| (x, f64::from(n) * 0.25)).collect::<Vec<_>>();
            prop_assert_eq!(weighted_jaccard(&weights(&a), &weights(&b)).unwrap().value(), expected);
        }
    }
}
