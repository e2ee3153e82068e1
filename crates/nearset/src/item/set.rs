//! Sets of 64-bit hashes: Jaccard similarity and containment, counted exactly.
//!
//! Claim: order and repeats do not matter, and an empty set is near nothing, not even another empty one.
//! Invariant: a slice in ascending order is read in place; only others are copied, to be sorted. A [`SortedSet`] is
//! ascending by construction, so comparing two of them takes one walk, which ends when the outcome is certain.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::Similarity;

/// Returns `|A ∩ B| / |A ∪ B|`, or 0 if both are empty.
pub(crate) fn jaccard(a: &[u64], b: &[u64]) -> Similarity {
    let overlap = Overlap::of(a, b);
    fraction(overlap.both, overlap.a + overlap.b - overlap.both)
}

/// Returns the Dice similarity of two sets, `2 |A ∩ B| / (|A| + |B|)`, or 0 if both are empty.
pub(crate) fn dice(a: &[u64], b: &[u64]) -> Similarity {
    let overlap = Overlap::of(a, b);
    fraction(2 * overlap.both, overlap.a + overlap.b)
}

/// A set of distinct 64-bit hashes in ascending order.
///
/// ```
/// use nearset::item::SortedSet;
///
/// let (a, b) = (SortedSet::from(vec![3, 1, 2, 3]), SortedSet::from(vec![2, 3, 4]));
/// assert_eq!(a.as_slice(), [1, 2, 3]);
/// assert_eq!(a.jaccard(&b).value(), 0.5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SortedSet(Box<[u64]>);

impl From<&[u64]> for SortedSet {
    fn from(hashes: &[u64]) -> Self {
        let mut sorted = sorted(hashes);
        sorted.dedup();
        Self(sorted.into_boxed_slice())
    }
}

/// Appends the distinct ones of some hashes in ascending order.
///
/// ```
/// let mut sets = vec![7];
/// nearset::item::append_sorted(&[3, 1, 2, 3], &mut sets);
/// assert_eq!(sets, [7, 1, 2, 3]);
/// ```
pub fn append_sorted(hashes: &[u64], sets: &mut Vec<u64>) {
    let from = sets.len();
    sets.resize(from + hashes.len(), 0);
    sort_into(hashes, &mut sets[from..], 0);
    let Some(first) = sets[from..].windows(2).position(|two| two[0] == two[1]) else { return };
    let first = from + first;
    let mut distinct = first;
    for at in first..sets.len() {
        let hash = sets[at];
        sets[distinct] = hash;
        // One that the next equals is written over.
        distinct += usize::from(sets.get(at + 1) != Some(&hash));
    }
    sets.truncate(distinct);
}

impl From<Vec<u64>> for SortedSet {
    fn from(hashes: Vec<u64>) -> Self {
        Self::from(&hashes[..])
    }
}

/// Returns the hashes in ascending order, faster than by comparisons alone if they are good hashes.
pub(crate) fn sorted(hashes: &[u64]) -> Vec<u64> {
    let mut sorted = vec![0; hashes.len()];
    sort_into(hashes, &mut sorted, 0);
    sorted
}

/// Writes the hashes, all of which begin with the same `shared` bits, in ascending order. They are distributed to
/// places by their next bits, which bring good hashes nearly to their final place, and only the hashes of one place are
/// then compared.
fn sort_into(hashes: &[u64], sorted: &mut [u64], shared: u32) {
    const FEWEST: usize = 32;
    /// More hashes than this are distributed twice, at first to so few places that all stay in the CPU's caches.
    const MOST_AT_ONCE: usize = u16::MAX as usize;
    const FIRST_BITS: u32 = 8;

    if hashes.len() < FEWEST || u32::try_from(hashes.len()).is_err() {
        sorted.copy_from_slice(hashes);
        return sorted.sort_unstable();
    }
    if hashes.len() <= MOST_AT_ONCE {
        return sort_few_into(hashes, sorted, shared);
    }
    let place = |hash: u64| (hash << shared >> (64 - FIRST_BITS)) as usize;
    let mut ends = [0; 1 << FIRST_BITS];
    hashes.iter().for_each(|&hash| ends[place(hash)] += 1);
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    for &hash in hashes {
        let end = &mut ends[place(hash)];
        *end -= 1;
        sorted[*end] = hash;
    }
    let (mut room, mut rest) = (Vec::new(), sorted);
    // What was the end of each place has become its start.
    for (start, end) in ends.iter().zip(ends[1..].iter().chain([&end])) {
        let (at_place, others) = rest.split_at_mut(end - start);
        rest = others;
        // Repeats, or poor hashes.
        if at_place.len() > hashes.len() >> (FIRST_BITS - 2) {
            at_place.sort_unstable();
        } else {
            room.clear();
            room.extend_from_slice(at_place);
            sort_into(&room, at_place, shared + FIRST_BITS);
        }
    }
}

/// [`sort_into`] for at most 65,535 hashes, so that two bytes count them.
fn sort_few_into(hashes: &[u64], sorted: &mut [u64], shared: u32) {
    /// As long as the counts stay in a cache, there are more places than hashes, so that few hashes share one: the
    /// branches of insertion can't be predicted.
    const MORE_BITS: u32 = 2;
    const MOST_BITS: u32 = 16;
    /// Insertion is quadratic. If as many hashes share a place, which takes repeats or poor hashes, they are sorted by
    /// comparison.
    const MANY: u16 = 64;
    /// In each of the four parts of a word.
    const ONES: u64 = u64::MAX / u16::MAX as u64;

    let bits = MOST_BITS.min(hashes.len().ilog2() + MORE_BITS);
    let place = |hash: u64| (hash << shared >> (64 - bits)) as usize;
    let mut ends = vec![0u16; 1 << bits];
    hashes.iter().for_each(|&hash| ends[place(hash)] += 1);
    let (mut end, mut many) = (0, 0);
    // Four counts at once: a product with ones adds to each part those below it.
    for counts in ends.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = counts.map(u64::from);
        let word = a | b << 16 | c << 32 | d << 48;
        many |= word;
        let sums = word.wrapping_mul(ONES).wrapping_add(end * ONES);
        end = sums >> 48;
        *counts = [sums as u16, (sums >> 16) as u16, (sums >> 32) as u16, end as u16];
    }
    for &hash in hashes {
        let end = &mut ends[place(hash)];
        *end -= 1;
        sorted[usize::from(*end)] = hash;
    }
    if many & !(ONES * u64::from(MANY - 1)) != 0 {
        let mut rest = &mut *sorted;
        // What was the end of each place has become its start.
        for (start, end) in ends.iter().zip(ends[1..].iter().chain([&(hashes.len() as u16)])) {
            let (at_place, others) = rest.split_at_mut(usize::from(end - start));
            rest = others;
            if at_place.len() >= usize::from(MANY) {
                at_place.sort_unstable();
            }
        }
    }
    insert_each(sorted);
}

/// Sorts elements that are nearly in order: only those of one place, usually one or two, can be out of order.
#[inline(always)]
fn insert_each(few: &mut [u64]) {
    for i in 1..few.len() {
        let element = few[i];
        let mut at = i;
        while at > 0 && few[at - 1] > element {
            few[at] = few[at - 1];
            at -= 1;
        }
        few[at] = element;
    }
}

impl SortedSet {
    /// Returns the hashes in ascending order.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Returns `|A ∩ B| / |A ∪ B|`, or 0 if both are empty.
    pub fn jaccard(&self, other: &Self) -> Similarity {
        self.jaccard_at_least(other, Similarity::NONE).unwrap_or(Similarity::NONE)
    }

    /// Returns the similarity if it is at least `least`. Most pairs below it are rejected by their sizes or their first
    /// elements.
    pub(crate) fn jaccard_at_least(&self, other: &Self, least: Similarity) -> Option<Similarity> {
        similarity_at_least(&self.0, &other.0, least, |_, _| true)
    }
}

/// Returns the similarity of two ascending sets if it is at least `least`. The walk through both ends where, by how many of the
/// elements seen so far are in both, `goes_on` says so.
pub(crate) fn similarity_at_least(
    a: &[u64],
    b: &[u64],
    least: Similarity,
    goes_on: impl Fn(usize, usize) -> bool,
) -> Option<Similarity> {
    let needed = needed_overlap(a.len(), b.len(), least);
    let both = overlap_at_least(a, b, needed, goes_on)?;
    Some(fraction(both, a.len() + b.len() - both))
}

/// Returns the sizes of sets that can be that similar to a set of this size, not empty.
pub(crate) fn sizes_near(size: usize, least: Similarity) -> RangeInclusive<usize> {
    if least == Similarity::NONE {
        return 0..=usize::MAX;
    }
    let allowed = |other: usize| fraction(size.min(other), size.max(other)) >= least;
    // Rounding may put the estimates off by one; the fraction itself decides.
    let mut fewest = (size as f64 * least.value()) as usize + 1;
    while fewest > 1 && allowed(fewest - 1) {
        fewest -= 1;
    }
    let mut most = (size as f64 / least.value()) as usize + 1;
    while most > size && !allowed(most) {
        most -= 1;
    }
    fewest..=most
}

/// Returns the least overlap that gives sets of these sizes a similarity of `least`.
fn needed_overlap(a: usize, b: usize, least: Similarity) -> usize {
    let enough = |both: usize| fraction(both, a + b - both) >= least;
    let estimate = least.value() / (1.0 + least.value()) * (a + b) as f64;
    // Rounding may put the estimate off by one; the fraction itself decides. Above the smaller size no overlap is
    // enough.
    let mut needed = (estimate as usize).saturating_sub(1);
    while needed <= a.min(b) && !enough(needed) {
        needed += 1;
    }
    needed
}

/// Returns how many elements two ascending sets share, if `needed` or more, unless `goes_on` ends it before.
fn overlap_at_least(
    mut a: &[u64],
    mut b: &[u64],
    needed: usize,
    goes_on: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    /// The number of steps between two checks of what can still be reached.
    const STRIDE: usize = 32;
    let (mut seen, mut both) = (0, 0);
    while both + a.len().min(b.len()) >= needed {
        if a.is_empty() || b.is_empty() {
            return Some(both);
        }
        if !goes_on(seen, both) {
            return None;
        }
        let (mut i, mut j) = (0, 0);
        let steps = STRIDE.min(a.len()).min(b.len());
        // No step leaves the slices: each moves both positions by at most one.
        for _ in 0..steps {
            let (x, y) = (a[i], b[j]);
            both += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
        (a, b) = (&a[i..], &b[j..]);
        seen += steps;
    }
    None
}

fn fraction(part: usize, whole: usize) -> Similarity {
    let value = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Similarity::jaccard(value).expect("a part is at most the whole")
}

/// The numbers of distinct elements in two sets and in their intersection.
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

/// Returns what follows the run of elements equal to the first.
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
    use crate::{Seed, hash::Rng};

    #[test]
    fn an_empty_set_is_near_to_nothing() {
        assert_eq!(jaccard(&[], &[]).value(), 0.0);
        assert_eq!(jaccard(&[], &[7]).value(), 0.0);
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
        }

        #[test]
        fn sets_are_sorted_whatever_their_elements(
            hashes in prop::collection::vec(any::<u64>(), 0..300),
            shift in 0u32..64,
        ) {
            // Small numbers all fall into one place, and repeats occur.
            let elements: Vec<u64> = hashes.iter().map(|hash| hash >> shift).collect();
            let tree: BTreeSet<u64> = elements.iter().copied().collect();
            let mut sets = vec![7];
            append_sorted(&elements, &mut sets);
            prop_assert_eq!(&sets[1..], Vec::from_iter(tree));
            let set = SortedSet::from(elements);
            prop_assert_eq!(set.as_slice(), &sets[1..]);
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
            let (a, b) = (a.as_slice().len(), b.as_slice().len());
            prop_assert!(a == 0 || sizes_near(a, similarity).contains(&b));
        }
    }

    #[test]
    fn sizes_are_near_if_one_can_be_a_part_of_the_other() {
        for size in (1..200).chain([12_345, 1 << 24]) {
            for least in [0.01, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0] {
                let least = Similarity::jaccard(least).unwrap();
                let sizes = sizes_near(size, least);
                for other in [*sizes.start(), *sizes.end()] {
                    assert!(fraction(size.min(other), size.max(other)) >= least, "{size}, {other}, {least:?}");
                }
                for other in [sizes.start() - 1, sizes.end() + 1] {
                    assert!(fraction(size.min(other), size.max(other)) < least, "{size}, {other}, {least:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn large_sets_are_sorted_with_and_without_repeats(
            seed in any::<u64>(),
            count in prop_oneof![(1usize << 16) - 4..(1 << 16) + 4, (1usize << 18) - 2..1 << 19],
            distinct in prop_oneof![1usize..4, 100usize..5000, Just(1 << 19)],
            shift in prop_oneof![Just(0u32), 1u32..64],
        ) {
            let mut rng = Rng::new(Seed::new(seed));
            let alphabet: Vec<u64> = (0..distinct.min(count)).map(|_| rng.next_u64() >> shift).collect();
            let elements: Vec<u64> = (0..count).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect();
            let tree: BTreeSet<u64> = elements.iter().copied().collect();
            let set = SortedSet::from(elements);
            prop_assert_eq!(set.as_slice(), Vec::from_iter(tree));
        }
    }
}
