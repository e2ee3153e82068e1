//! MinHash, for the Jaccard distance of sets (Broder 1997): `p(d) = 1 - d`.
//!
//! Claim: every slot of a signature holds the least value, over the set's elements, of a random function of element and
//! slot. So two sets agree in a slot with probability exactly their Jaccard similarity, and the signature of a union is
//! the slotwise minimum of the signatures, bit for bit.
//! Invariant: an empty set has no key in any band, so it is near nothing.
//!
//! [`MinHash`] computes a signature of `k` slots in `O(set + k)` steps unless the set is tiny ([`sketch`] explains
//! how); `PermutationMinHash` takes `k` independent minima, `O(set * k)`: the textbook definition, for comparison.

#[cfg(test)]
mod laws;
#[cfg(test)]
mod permutation;
mod signature;
mod sketch;

#[cfg(test)]
pub(crate) use permutation::PermutationMinHash;
#[cfg(test)]
pub(crate) use signature::Estimate;
pub use signature::Signature;
use sketch::FastSketch;

use super::{
    Functions, Hashed, KEY_BASE, Layout, LshFamily, WorkBound, key,
    member::{Member, minima_of_shingles},
    weighted_minhash::{Darts, weights},
};
use crate::{
    MergeError, Seed,
    error::SpecError,
    item::{self, Distance, Item, ItemError, Shingler, Shingling, Similarity, kind},
    simd::sketch as kernel,
};

/// MinHash by fast similarity sketching, of sets and of texts as sets of shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MinHash {
    /// How texts are cut. Sets are used as they are.
    pub shingling: Shingling,
}

impl MinHash {
    /// Draws the functions of signatures with `slots` slots, to compare items by signature rather than by key.
    ///
    /// # Errors
    /// If there are no slots, or too many.
    pub fn sketcher(&self, seed: Seed, slots: u32) -> Result<Sketcher, SpecError> {
        Layout::new(1, slots).check()?;
        let shingler = Shingler::new(self.shingling, seed)?;
        Ok(Sketcher { seed, shingler, sketch: AnySketch::Set(FastSketch::new(seed, slots as usize)) })
    }
}

impl LshFamily for MinHash {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        self.shingling.check()?;
        layout.check()
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value()).max(0.0)
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let slots = layout.functions();
        WorkBound {
            draw: 3 * slots as u64,
            hash: FastSketch::work_bound(slots),
            element: ELEMENT_WORK,
            ..WorkBound::default()
        }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        set_distance(self.shingling, a, b, item::jaccard)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let sketch = FastSketch::new(seed, layout.functions());
        Ok(Box::new(Banded { shingler: Shingler::new(self.shingling, seed)?, sketch, layout }))
    }
}

impl Member for MinHash {
    fn name(&self) -> &'static str {
        "minhash"
    }

    fn steps(&self) -> f64 {
        2.0
    }

    fn number() -> u8 {
        4
    }

    minima_of_shingles!(Jaccard, Set);
}

/// The number of operations per element of a set, or per byte of a text: it is shingled, mixed and thrown a few times.
const ELEMENT_WORK: u64 = 100;

/// Overwrites `out` with the elements of an item: a set's own, or a text's shingles, in any order and with repeats.
fn elements(shingler: &Shingler, item: Item<'_>, out: &mut Vec<u64>) -> Result<(), ItemError> {
    match item {
        Item::Text(text) => shingler.shingles(text, out),
        Item::Set(set) => {
            out.clear();
            out.extend_from_slice(set);
        }
        other => return Err(ItemError::WrongKind { expected: kind::SET, found: other.kind() }),
    }
    Ok(())
}

/// Returns the Jaccard distance of two sets or texts; hashes of shingles under one seed stand for the shingles.
pub(super) fn set_distance(
    shingling: Shingling,
    a: Item<'_>,
    b: Item<'_>,
    similarity: fn(&[u64], &[u64]) -> Similarity,
) -> Result<Distance, ItemError> {
    if let (Item::Set(a), Item::Set(b)) = (a, b) {
        return Ok(similarity(a, b).jaccard_distance());
    }
    let shingler = Shingler::new(shingling, Seed::default())?;
    let (mut set_a, mut set_b) = (Vec::new(), Vec::new());
    elements(&shingler, a, &mut set_a)?;
    elements(&shingler, b, &mut set_b)?;
    Ok(similarity(&set_a, &set_b).jaccard_distance())
}

/// A way to make signatures.
trait Sketch: Send + Sync {
    /// Writes the signature of a non-empty set. `elements` may be overwritten; `positions` is scratch space.
    fn sketch(&self, elements: &mut [u64], slots: &mut [u64], positions: &mut Vec<u32>);
}

/// Makes signatures.
///
/// ```
/// use nearset::{Seed, family::MinHash};
///
/// let sketcher = MinHash { shingling: "words:2".parse()? }.sketcher(Seed::new(42), 256)?;
/// let a = sketcher.signature("one two three four five".into())?;
/// let b = sketcher.signature("two three four five six".into())?;
/// let (_, within) = a.jaccard(&b)?;
/// assert!(within.start().value() < 0.6 && 0.6 < within.end().value());
/// let union = sketcher.signature("one two three four five six".into())?;
/// let mut merged = a.clone();
/// merged.merge(&b)?;
/// assert_eq!(merged, union);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sketcher {
    seed: Seed,
    shingler: Shingler,
    sketch: AnySketch,
}

#[derive(Debug, Clone)]
enum AnySketch {
    Set(FastSketch),
    Weighted(Darts),
}

impl Sketcher {
    pub(super) fn weighted(seed: Seed, shingler: Shingler, darts: Darts) -> Self {
        Self { seed, shingler, sketch: AnySketch::Weighted(darts) }
    }

    /// Returns the signature of the empty set: similar to nothing, and merging it changes nothing.
    pub(crate) fn empty(&self) -> Signature {
        let (weighted, slots) = match &self.sketch {
            AnySketch::Set(sketch) => (false, sketch.slots()),
            AnySketch::Weighted(darts) => (true, darts.slots()),
        };
        Signature::empty(self.seed, self.shingler.shingling(), weighted, slots)
    }

    /// Restores a signature from its slots, as returned by [`Signature::slots`] and stored elsewhere.
    ///
    /// # Errors
    /// If there are more or fewer than a signature of this sketcher has.
    pub fn restore(&self, slots: &[u64]) -> Result<Signature, MergeError> {
        let mut signature = self.empty();
        MergeError::unless_equal("number of slots", &signature.slots().len(), &slots.len())?;
        signature.reset(slots.len()).copy_from_slice(slots);
        Ok(signature)
    }

    /// Returns the signature of an item of the family's kind, or of a text.
    ///
    /// # Errors
    /// If the item is neither, or its weights are invalid.
    pub fn signature(&self, item: Item<'_>) -> Result<Signature, ItemError> {
        let mut signature = self.empty();
        self.sketch_into(item, &mut Hashed::default(), &mut signature)?;
        Ok(signature)
    }

    /// Overwrites `signature` with the item's; allocates nothing once `work` has been used for an item of this size.
    ///
    /// # Errors
    /// If the item is neither of the family's kind nor a text, or its weights are invalid.
    ///
    /// # Panics
    /// If another sketcher made `signature`.
    pub fn sketch_into(&self, item: Item<'_>, work: &mut Hashed, signature: &mut Signature) -> Result<(), ItemError> {
        match &self.sketch {
            AnySketch::Set(sketch) => {
                elements(&self.shingler, item, &mut work.scratch)?;
                let slots = signature.reset(sketch.slots());
                if !work.scratch.is_empty() {
                    sketch.sketch(&mut work.scratch, slots, &mut work.positions);
                }
            }
            AnySketch::Weighted(darts) => {
                weights(&self.shingler, item, work)?;
                let slots = signature.reset(darts.slots());
                if !work.weighted.is_empty() {
                    darts.sketch(&work.weighted, slots, &mut work.scratch);
                }
            }
        }
        Ok(())
    }
}

/// Signatures cut into bands: row `r` of band `b` is slot `r * bands + b`, so that neighbouring bands are computed side
/// by side in vector registers.
struct Banded<S> {
    shingler: Shingler,
    sketch: S,
    layout: Layout,
}

impl<S: Sketch> Functions for Banded<S> {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        elements(&self.shingler, item, &mut out.scratch)?;
        let bands = self.layout.bands as usize;
        out.keys.clear();
        if out.scratch.is_empty() {
            out.keys.resize(bands, None);
            return Ok(());
        }
        out.slots.clear();
        out.slots.resize(self.layout.functions(), kernel::EMPTY);
        self.sketch.sketch(&mut out.scratch, &mut out.slots, &mut out.positions);
        // The elements are no longer needed; their space takes the keys on their way out.
        out.scratch.clear();
        out.scratch.resize(bands, 0);
        kernel::columns(KEY_BASE, &out.slots, &mut out.scratch);
        out.keys.extend(out.scratch.iter().map(|&word| Some(key(word))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{WeightedMinHash, key_of_rows};

    /// Written by a separate program, from the definitions.
    const FROZEN: &str = include_str!("../../../../../testdata/hash/signatures.tsv");

    #[test]
    fn signatures_are_frozen() {
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let mut rows = 0;
        for line in FROZEN.lines().skip(1) {
            let [seed, family, item, slots] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let slots: Vec<u64> = slots.split(',').map(number).collect();
            let (seed, length) = (seed.parse().unwrap(), slots.len() as u32);
            let signature = if family == "minhash" {
                let set: Vec<u64> = item.split(',').map(number).collect();
                MinHash::default().sketcher(seed, length).unwrap().signature(Item::Set(&set))
            } else {
                let weight = |pair: &str| pair.split_once(':').map(|(x, weight)| (number(x), weight.parse().unwrap()));
                let set: Vec<(u64, f64)> = item.split(',').filter_map(weight).collect();
                WeightedMinHash::default().sketcher(seed, length).unwrap().signature(Item::Weighted(&set))
            };
            assert_eq!(signature.unwrap().slots(), slots, "{line}");
            rows += 1;
        }
        assert_eq!(rows, 9);
    }

    #[test]
    fn an_empty_set_has_no_keys() {
        let functions = MinHash::default().draw(Seed::new(1), Layout::new(2, 10)).unwrap();
        let mut hashed = Hashed::default();
        functions.hash(Item::Set(&[5]), &mut hashed).unwrap();
        assert!(hashed.keys.len() == 10 && hashed.keys.iter().all(Option::is_some));
        functions.hash(Item::Set(&[]), &mut hashed).unwrap();
        assert_eq!(hashed.keys, vec![None; 10]);
    }

    #[test]
    fn keys_are_those_of_the_signature_with_the_same_seed() {
        let (seed, set) = (Seed::new(3), [1, 5, 9, 200]);
        let signature = MinHash::default().sketcher(seed, 60).unwrap().signature(Item::Set(&set)).unwrap();
        let functions = MinHash::default().draw(seed, Layout::new(4, 15)).unwrap();
        let mut hashed = Hashed::default();
        functions.hash(Item::Set(&set), &mut hashed).unwrap();
        for (band, key) in hashed.keys.iter().enumerate() {
            let rows = (0..4).map(|row| signature.slots()[row * 15 + band]);
            assert_eq!(*key, Some(key_of_rows(rows)));
        }
    }

    #[test]
    fn a_text_is_the_set_of_its_shingles() {
        let (family, seed) = (MinHash { shingling: Shingling::Words(2) }, Seed::new(6));
        let (a, b) = ("a rose is a rose is a rose", "A rose is!");
        let sketcher = family.sketcher(seed, 99).unwrap();
        let shingles = Shingler::new(family.shingling, seed).unwrap().shingle_set(a);
        assert_eq!(sketcher.signature(a.into()).unwrap(), sketcher.signature(Item::Set(&shingles)).unwrap());
        assert_eq!(family.distance(a.into(), b.into()).unwrap().value(), 1.0 - 2.0 / 3.0);
        assert_eq!(family.distance("".into(), "".into()).unwrap().value(), 1.0);
        assert!(sketcher.signature("...".into()).unwrap().is_empty());
        let never = MinHash { shingling: Shingling::Words(0) };
        assert!(matches!(never.sketcher(seed, 9), Err(SpecError::ShingleLength { .. })));
    }

    #[test]
    fn a_signature_is_restored_from_its_slots() {
        let sketcher = MinHash::default().sketcher(Seed::new(4), 64).unwrap();
        let signature = sketcher.signature(Item::Set(&[1, 2, 3])).unwrap();
        assert_eq!(sketcher.restore(signature.slots()), Ok(signature));
        assert_eq!(sketcher.restore(&[1; 63]).unwrap_err().what, "number of slots");
    }

    #[test]
    fn order_and_repeats_do_not_matter() {
        let sketcher = MinHash::default().sketcher(Seed::new(4), 300).unwrap();
        let signature = |set: &[u64]| sketcher.signature(Item::Set(set)).unwrap();
        assert_eq!(signature(&[3, 1, 2, 3, 3, 1]), signature(&[1, 2, 3]));
    }

    #[test]
    fn other_items_are_refused() {
        let sketcher = MinHash::default().sketcher(Seed::new(4), 8).unwrap();
        assert_eq!(
            sketcher.signature(Item::Vector(&[1.0])).unwrap_err(),
            ItemError::WrongKind { expected: kind::SET, found: kind::VECTOR }
        );
        assert!(MinHash::default().sketcher(Seed::new(4), 0).is_err());
    }
}
