//! Weighted MinHash, for the weighted Jaccard distance `1 - Σ min / Σ max`: `p(d) = 1 - d`.
//!
//! Claim: two weighted sets agree in a slot with probability exactly their weighted Jaccard similarity. Multiplying all
//! weights of both by a constant changes nothing, and elements of weight 0 count as absent.
//! Invariant: an item without weight has no key in any band, so it is near nothing.
//!
//! [`WeightedMinHash`] throws darts ([`darts`] explains how), in `O(set + k log k)` steps; `ConsistentMinHash` is
//! improved consistent weighted sampling, `O(set * k)` steps with several logarithms each, for comparison. A text is
//! the bag of its shingles: each has its count as its weight.

#[cfg(test)]
mod consistent;
mod darts;
#[cfg(test)]
mod laws;

#[cfg(test)]
pub(crate) use consistent::ConsistentMinHash;
pub(crate) use darts::Darts;

use super::{
    Functions, Hashed, KEY_BASE, Layout, LshFamily, Sketcher, WorkBound, key,
    member::{Member, minima_of_shingles},
    work::log,
};
use crate::{
    Seed,
    error::SpecError,
    item::{self, Distance, Item, ItemError, Shingler, Shingling, kind},
    simd::sketch as kernel,
};

/// Weighted MinHash by darts, of weighted sets and of texts as bags of shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WeightedMinHash {
    /// How texts are cut. Weighted sets are used as they are.
    pub shingling: Shingling,
}

impl WeightedMinHash {
    /// Draws the functions of signatures with `slots` slots, to compare items by signature rather than by key. Merging
    /// such signatures gives that of the set in which each element has the larger of its two weights.
    ///
    /// # Errors
    /// If there are no slots, or too many.
    pub fn sketcher(&self, seed: Seed, slots: u32) -> Result<Sketcher, SpecError> {
        self.check(Layout::new(1, slots))?;
        Ok(Sketcher::weighted(seed, Shingler::new(self.shingling, seed)?, Darts::new(seed, slots as usize)))
    }
}

impl LshFamily for WeightedMinHash {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        self.shingling.check()?;
        layout.check()
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value()).max(0.0)
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let slots = layout.functions() as u64;
        // Each of `k (ln k + 3)` darts takes 25 operations; one set in 20 throws twice as many again.
        WorkBound {
            draw: 3 * STRIPS,
            hash: 75 * slots * (log(slots) + 3),
            element: ELEMENT_WORK,
            ..WorkBound::default()
        }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        weighted_distance(self.shingling, a, b)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let shingler = Shingler::new(self.shingling, seed)?;
        Ok(Box::new(Banded { shingler, sketch: Darts::new(seed, layout.functions()), layout }))
    }
}

impl Member for WeightedMinHash {
    fn name(&self) -> &'static str {
        "weighted minhash"
    }

    fn steps(&self) -> f64 {
        2.0
    }

    fn number() -> u8 {
        5
    }

    minima_of_shingles!(WeightedJaccard, Weighted);
}

/// The exponents of two between which a weight must lie, so that no time at which a dart lands leaves the range of
/// numbers.
const EXPONENTS: std::ops::Range<i32> = -900..900;

/// The number of strips of [`Darts`], each with a drawn multiplier.
const STRIPS: u64 = 2000;

/// The number of operations per element of a weighted set, or per byte of a text: it is shingled and sorted, and its
/// strips are looked at.
const ELEMENT_WORK: u64 = 300;

/// Writes the elements of positive weight to `work.weighted`: a text's shingles with their counts, or a weighted set's
/// elements, each checked to occur once.
pub(crate) fn weights(shingler: &Shingler, item: Item<'_>, work: &mut Hashed) -> Result<(), ItemError> {
    work.weighted.clear();
    match item {
        Item::Text(text) => {
            shingler.shingles(text, &mut work.scratch);
            let sorted = item::sorted(&work.scratch);
            let runs = sorted.chunk_by(|a, b| a == b);
            work.weighted.extend(runs.map(|run| (run[0], run.len() as f64)));
        }
        Item::Weighted(set) => {
            item::check_weights(set)?;
            check_elements(set, &mut work.scratch)?;
            for (position, &(element, value)) in set.iter().enumerate() {
                if value > 0.0 && !EXPONENTS.contains(&exponent(value)) {
                    return Err(ItemError::WeightOutOfRange { position, value });
                }
                if value > 0.0 {
                    work.weighted.push((element, value));
                }
            }
        }
        other => return Err(ItemError::WrongKind { expected: kind::WEIGHTED, found: other.kind() }),
    }
    Ok(())
}

fn check_elements(set: &[(u64, f64)], scratch: &mut Vec<u64>) -> Result<(), ItemError> {
    if set.is_sorted_by(|(x, _), (y, _)| x < y) {
        return Ok(());
    }
    scratch.clear();
    scratch.extend(set.iter().map(|&(element, _)| element));
    scratch.sort_unstable();
    match scratch.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ItemError::RepeatedElement { element: pair[0] }),
        None => Ok(()),
    }
}

/// Returns the `e` with `2^e <= value < 2^(e+1)`; far below [`EXPONENTS`] for subnormal numbers.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

fn weighted_distance(shingling: Shingling, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
    let shingler = Shingler::new(shingling, Seed::default())?;
    let (mut weights_a, mut weights_b) = (Hashed::default(), Hashed::default());
    weights(&shingler, a, &mut weights_a)?;
    weights(&shingler, b, &mut weights_b)?;
    Ok(item::weighted_jaccard(&weights_a.weighted, &weights_b.weighted)?.jaccard_distance())
}

/// A way to make signatures of weighted sets.
trait WeightedSketch: Send + Sync {
    /// Overwrites the slots with the signature of a non-empty set, all of positive weight; `scratch` is scratch space.
    fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64], scratch: &mut Vec<u64>);
}

/// Signatures cut into bands: row `r` of band `b` is slot `r * bands + b`, as in plain MinHash.
struct Banded<S> {
    shingler: Shingler,
    sketch: S,
    layout: Layout,
}

impl<S: WeightedSketch> Functions for Banded<S> {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        weights(&self.shingler, item, out)?;
        let bands = self.layout.bands as usize;
        out.keys.clear();
        if out.weighted.is_empty() {
            out.keys.resize(bands, None);
            return Ok(());
        }
        out.slots.clear();
        out.slots.resize(self.layout.functions(), kernel::EMPTY);
        self.sketch.sketch(&out.weighted, &mut out.slots, &mut out.scratch);
        out.scratch.clear();
        out.scratch.resize(bands, 0);
        kernel::columns(KEY_BASE, &out.slots, &mut out.scratch);
        out.keys.extend(out.scratch.iter().map(|&word| Some(key(word))));
        Ok(())
    }
}
