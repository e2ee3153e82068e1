//! Sets of 64-bit hashes: Jaccard similarity and containment, counted exactly.
//!
//! Claim: order and repeats do not matter, and an empty set is near to nothing, not even to another empty one.
//! Invariant: a slice in ascending order is read where it lies; only others are copied, to be sorted. A [`SortedSet`] is
//! ascending by construction, so comparing two of them takes one walk, which ends when the outcome is certain.

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

/// A set of 64-bit hashes in ascending order, each once.
///
/// ```
/// use nearset::{Similarity, item::SortedSet};
///
/// let (a, b) = (SortedSet::from(vec![3, 1, 2, 3]), SortedSet::from(vec![2, 3, 4]));
/// assert_eq!(a.as_slice(), [1, 2, 3]);
/// assert_eq!(a.jaccard(&b).value(), 0.5);
/// assert!(a.jaccard_at_least(&b, Similarity::jaccard(0.5)?).is_some());
/// assert!(a.jaccard_at_least(&b, Similarity::jaccard(0.6)?).is_none());
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SortedSet(Box<[u64]>);

impl From<&[u64]> for SortedSet {
    fn from(hashes: &[u64]) -> Self {
        let mut sorted = distributed(hashes).unwrap_or_else(|| {
            let mut copy = hashes.to_vec();
            copy.sort_unstable();
            copy
        });
        sorted.dedup();
        Self(sorted.into_boxed_slice())
    }
}

impl From<Vec<u64>> for SortedSet {
    fn from(hashes: Vec<u64>) -> Self {
        Self::from(&hashes[..])
    }
}

/// The elements in ascending order, by distribution: good hashes have nearly their final place in their high bits. `None` where
/// there are too few for it to pay, or too many share a place, so that it would be quadratic.
fn distributed(hashes: &[u64]) -> Option<Vec<u64>> {
    const FEWEST: usize = 32;
    const MOST_AT_A_PLACE: u32 = 64;
    if hashes.len() < FEWEST || u32::try_from(hashes.len()).is_err() {
        return None;
    }
    let bits = hashes.len().ilog2();
    let place = |hash: u64| (hash >> (64 - bits)) as usize;
    let mut ends = vec![0u32; 1 << bits];
    hashes.iter().for_each(|&hash| ends[place(hash)] += 1);
    let mut end = 0;
    for count in &mut ends {
        if *count > MOST_AT_A_PLACE {
            return None;
        }
        end += *count;
        *count = end;
    }
    let mut sorted = vec![0; hashes.len()];
    for &hash in hashes {
        let end = &mut ends[place(hash)];
        *end -= 1;
        sorted[*end as usize] = hash;
    }
    // Only elements of one place, one or two as a rule, can be out of order now.
    for i in 1..sorted.len() {
        let element = sorted[i];
        let mut at = i;
        while at > 0 && sorted[at - 1] > element {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = element;
    }
    Some(sorted)
}

impl SortedSet {
    /// The hashes, ascending.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `|A ∩ B| / |A ∪ B|`, and 0 where both are empty.
    pub fn jaccard(&self, other: &Self) -> Similarity {
        self.jaccard_at_least(other, Similarity::NONE).unwrap_or(Similarity::NONE)
    }

    /// The similarity, if it is `least` or more: most pairs that are not are told by their sizes or their first elements.
    pub fn jaccard_at_least(&self, other: &Self, least: Similarity) -> Option<Similarity> {
        let (a, b) = (self.as_slice(), other.as_slice());
        let needed = needed_overlap(a.len(), b.len(), least);
        let both = overlap_at_least(a, b, needed)?;
        Some(fraction(both, a.len() + b.len() - both))
    }

    /// Whether sets of these sizes can be that similar.
    pub fn sizes_allow(a: usize, b: usize, least: Similarity) -> bool {
        fraction(a.min(b), a.max(b)) >= least
    }
}

/// The least overlap of sets of these sizes that makes their similarity `least`.
fn needed_overlap(a: usize, b: usize, least: Similarity) -> usize {
    let enough = |both: usize| fraction(both, a + b - both) >= least;
    let estimate = least.value() / (1.0 + least.value()) * (a + b) as f64;
    // Rounding may put the estimate off by one; the fraction itself decides. Above the smaller size nothing is enough.
    let mut needed = (estimate as usize).saturating_sub(1);
    while needed <= a.min(b) && !enough(needed) {
        needed += 1;
    }
    needed
}

/// How many elements two ascending sets share, if `needed` or more.
fn overlap_at_least(mut a: &[u64], mut b: &[u64], needed: usize) -> Option<usize> {
    /// Steps between two looks at what can still be reached.
    const STRIDE: usize = 32;
    let mut both = 0;
    while both + a.len().min(b.len()) >= needed {
        if a.is_empty() || b.is_empty() {
            return Some(both);
        }
        let (mut i, mut j) = (0, 0);
        let steps = STRIDE.min(a.len()).min(b.len());
        // No step leaves the slices: each moves both places by at most one.
        for _ in 0..steps {
            let (x, y) = (a[i], b[j]);
            both += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
        (a, b) = (&a[i..], &b[j..]);
    }
    None
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

        #[test]
        fn sets_are_sorted_whatever_their_elements(
            hashes in prop::collection::vec(any::<u64>(), 0..300),
            shift in 0u32..64,
        ) {
            // Small numbers all fall to one place, and repeats occur.
            let elements: Vec<u64> = hashes.iter().map(|hash| hash >> shift).collect();
            let tree: BTreeSet<u64> = elements.iter().copied().collect();
            let set = SortedSet::from(elements);
            prop_assert_eq!(set.as_slice(), Vec::from_iter(tree));
        }

        #[test]
        fn sorted_sets_tell_every_threshold_apart(
            a in prop::collection::vec(0u64..90, 0..120),
            b in prop::collection::vec(0u64..90, 0..120),
            least in 0.0f64..=1.0,
        ) {
            let similarity = jaccard(&a, &b);
            let (a, b) = (SortedSet::from(a), SortedSet::from(b));
            prop_assert_eq!(a.jaccard(&b), similarity);
            let least = Similarity::jaccard(least).unwrap();
            prop_assert_eq!(a.jaccard_at_least(&b, least), Some(similarity).filter(|&found| found >= least));
            // At the threshold itself, rounding must not decide.
            prop_assert_eq!(a.jaccard_at_least(&b, similarity), Some(similarity));
            prop_assert!(SortedSet::sizes_allow(a.len(), b.len(), similarity));
        }
    }
}
