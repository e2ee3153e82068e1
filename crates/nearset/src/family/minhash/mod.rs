//! MinHash, for the Jaccard distance of sets (Broder 1997): `p(d) = 1 - d`.
//!
//! Claim: every slot of a signature holds the least, over the set's elements, of a random function of element and slot. So
//! two sets agree in a slot with probability exactly their Jaccard similarity, and the signature of a union is the slotwise
//! minimum of the signatures, bit for bit.
//! Invariant: an empty set has no key in any band, so it is near to nothing.
//!
//! [`MinHash`] computes a signature of `k` slots in `O(set + k)` steps where the set is not tiny ([`sketch`] says how);
//! [`PermutationMinHash`] takes `k` independent minima, `O(set * k)`: the textbook's definition, for comparison.

#[cfg(test)]
mod laws;
mod permutation;
mod signature;
mod sketch;

pub use permutation::PermutationMinHash;
pub use signature::{Estimate, Signature, SignatureError};
use sketch::FastSketch;

use super::{FamilyError, Functions, Hashed, KEY_BASE, Layout, LshFamily, key};
use crate::{
    Seed,
    item::{self, Distance, Item, ItemError, ItemKind},
    simd::sketch as kernel,
};

/// MinHash by fast similarity sketching, of sets and of texts as sets of shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MinHash {}

impl MinHash {
    /// Draws the functions of signatures with `slots` slots, to compare items by signature rather than by key.
    ///
    /// # Errors
    /// If there are no slots, or too many.
    pub fn sketcher(&self, seed: Seed, slots: u32) -> Result<Sketcher, FamilyError> {
        Layout::new(1, slots).check()?;
        Ok(Sketcher { seed, sketch: FastSketch::new(seed, slots as usize) })
    }
}

impl LshFamily for MinHash {
    fn check(&self, layout: Layout) -> Result<(), FamilyError> {
        layout.check()
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value()).max(0.0)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        set_distance(a, b)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, FamilyError> {
        layout.check()?;
        let sketch = FastSketch::new(seed, layout.functions());
        Ok(Box::new(Banded { sketch, layout }))
    }
}

fn set_distance(a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
    let (mut set_a, mut set_b) = (Vec::new(), Vec::new());
    elements(a, &mut set_a)?;
    elements(b, &mut set_b)?;
    Ok(item::jaccard(&set_a, &set_b).jaccard_distance())
}

/// The elements of a set, or the shingles of a text.
fn elements(item: Item<'_>, out: &mut Vec<u64>) -> Result<(), ItemError> {
    out.clear();
    match item {
        Item::Set(set) => out.extend_from_slice(set),
        other => return Err(ItemError::WrongKind { expected: ItemKind::Set, found: other.kind() }),
    }
    Ok(())
}

/// A way to make signatures.
trait Sketch: Send + Sync {
    /// Writes the signature of a set that is not empty. `elements` may be overwritten; `positions` is room to work in.
    fn sketch(&self, elements: &mut [u64], slots: &mut [u64], positions: &mut Vec<u32>);
}

/// Makes signatures.
///
/// ```
/// use nearset::{Item, Seed, family::MinHash};
///
/// let sketcher = MinHash::default().sketcher(Seed::new(42), 256)?;
/// let a = sketcher.signature(Item::Set(&[1, 2, 3, 4]))?;
/// let b = sketcher.signature(Item::Set(&[2, 3, 4, 5]))?;
/// let estimate = a.jaccard(&b)?;
/// assert!(estimate.low.value() < 0.6 && 0.6 < estimate.high.value());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sketcher {
    seed: Seed,
    sketch: FastSketch,
}

impl Sketcher {
    /// The signature of a set or text.
    ///
    /// # Errors
    /// If the item is neither.
    pub fn signature(&self, item: Item<'_>) -> Result<Signature, ItemError> {
        let mut signature = Signature::empty(self.seed, self.sketch.slots());
        self.sketch_into(item, &mut Hashed::new(), &mut signature)?;
        Ok(signature)
    }

    /// Overwrites `signature` by the item's; allocates nothing once `work` and `signature` have served an item of this size.
    ///
    /// # Errors
    /// If the item is neither a set nor a text.
    pub fn sketch_into(&self, item: Item<'_>, work: &mut Hashed, signature: &mut Signature) -> Result<(), ItemError> {
        elements(item, &mut work.scratch)?;
        let slots = signature.reset(self.seed, self.sketch.slots());
        if !work.scratch.is_empty() {
            self.sketch.sketch(&mut work.scratch, slots, &mut work.positions);
        }
        Ok(())
    }
}

/// Signatures cut into bands: row `r` of band `b` is slot `r * bands + b`, so that neighbouring bands are worked out side
/// by side in vector registers.
struct Banded<S> {
    sketch: S,
    layout: Layout,
}

impl<S: Sketch> Functions for Banded<S> {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        elements(item, &mut out.scratch)?;
        let bands = self.layout.bands as usize;
        out.keys.clear();
        if out.scratch.is_empty() {
            out.keys.resize(bands, None);
            return Ok(());
        }
        out.slots.clear();
        out.slots.resize(self.layout.functions(), kernel::EMPTY);
        self.sketch.sketch(&mut out.scratch, &mut out.slots, &mut out.positions);
        // The elements have served; their room takes the keys on their way out.
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
    use crate::family::key_of_rows;

    #[test]
    fn an_empty_set_has_no_keys() {
        let functions = MinHash::default().draw(Seed::new(1), Layout::new(2, 10)).unwrap();
        let mut hashed = Hashed::new();
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
        let mut hashed = Hashed::new();
        functions.hash(Item::Set(&set), &mut hashed).unwrap();
        for (band, key) in hashed.keys.iter().enumerate() {
            let rows = (0..4).map(|row| signature.slots()[row * 15 + band]);
            assert_eq!(*key, Some(key_of_rows(rows)));
        }
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
            ItemError::WrongKind { expected: ItemKind::Set, found: ItemKind::Vector }
        );
        assert!(MinHash::default().sketcher(Seed::new(4), 0).is_err());
    }
}
