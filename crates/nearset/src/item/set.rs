//! Sets of 64-bit hashes: Jaccard similarity and containment, counted exactly.
//!
//! Claim: order and repeats do not matter, and an empty set is near to nothing, not even to another empty one.
//! Invariant: a slice in ascending order is read where it lies; only others are copied, to be sorted.

use std::borrow::Cow;

use super::Similarity;

/// `|A ∩ B| / |A ∪ B|`, and 0 where both are empty.
///
/// ```
/// use nearset::item::jaccard;
///
/// assert_eq!(jaccard(&[1, 2, 3], &[4, 3, 2, 2]).value(), 0.5);
/// assert_eq!(jaccard(&[], &[]).value(), 0.0);
/// ```
pub fn jaccard(a: &[u64], b: &[u64]) -> Similarity {
    let overlap = Overlap::of(a, b);
    fraction(overlap.both, overlap.a + overlap.b - overlap.both)
}

/// The part of `inner` that `outer` holds too, `|A ∩ B| / |A|`, and 0 where `inner` is empty.
///
/// ```
/// use nearset::item::containment;
///
/// assert_eq!(containment(&[1, 2], &[1, 2, 3, 4]).value(), 1.0);
/// assert_eq!(containment(&[1, 2, 3, 4], &[1, 2]).value(), 0.5);
/// ```
pub fn containment(inner: &[u64], outer: &[u64]) -> Similarity {
    let overlap = Overlap::of(inner, outer);
    fraction(overlap.both, overlap.a)
}

fn fraction(part: usize, whole: usize) -> Similarity {
    let value = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Similarity::jaccard(value).expect("a part is not more than the whole")
}

/// How many distinct elements two sets have, and have in common.
struct Overlap {
    a: usize,
    b: usize,
    both: usize,
}

impl Overlap {
    fn of(a: &[u64], b: &[u64]) -> Self {
        let (a, b) = (ascending(a), ascending(b));
        let (mut a, mut b) = (&a[..], &b[..]);
        let mut overlap = Overlap { a: 0, b: 0, both: 0 };
        while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
            if x <= y {
                a = after(a, x);
                overlap.a += 1;
            }
            if y <= x {
                b = after(b, y);
                overlap.b += 1;
            }
            overlap.both += usize::from(x == y);
        }
        overlap.a += distinct(a);
        overlap.b += distinct(b);
        overlap
    }
}

/// What follows the run of elements equal to the first.
fn after(set: &[u64], first: u64) -> &[u64] {
    let run = set.iter().position(|&element| element != first);
    &set[run.unwrap_or(set.len())..]
}

fn distinct(ascending: &[u64]) -> usize {
    ascending.chunk_by(|x, y| x == y).count()
}

fn ascending(set: &[u64]) -> Cow<'_, [u64]> {
    if set.is_sorted() {
        return Cow::Borrowed(set);
    }
    let mut copy = set.to_vec();
    copy.sort_unstable();
    Cow::Owned(copy)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_set_is_near_to_nothing() {
        assert_eq!(jaccard(&[], &[]).value(), 0.0);
        assert_eq!(jaccard(&[], &[7]).value(), 0.0);
        assert_eq!(containment(&[], &[7]).value(), 0.0);
        assert_eq!(containment(&[7], &[]).value(), 0.0);
    }

    #[test]
    fn ascending_sets_are_not_copied() {
        assert!(matches!(ascending(&[1, 2, 2, 9]), Cow::Borrowed(_)));
        assert!(matches!(ascending(&[2, 1]), Cow::Owned(_)));
    }

    proptest! {
        #[test]
        fn counts_agree_with_tree_sets(
            a in prop::collection::vec(0u64..40, 0..60),
            b in prop::collection::vec(0u64..40, 0..60),
        ) {
            let tree_a: BTreeSet<u64> = a.iter().copied().collect();
            let tree_b: BTreeSet<u64> = b.iter().copied().collect();
            let both = tree_a.intersection(&tree_b).count() as f64;
            let either = tree_a.union(&tree_b).count().max(1) as f64;
            prop_assert_eq!(jaccard(&a, &b).value(), both / either);
            prop_assert_eq!(jaccard(&b, &a).value(), both / either);
            prop_assert_eq!(containment(&a, &b).value(), both / tree_a.len().max(1) as f64);
        }
    }
}
