//! Locality-sensitive hash families: `Pr[h(x) = h(y)] = p(d)`, non-increasing in the distance `d` between `x` and `y`.
//!
//! Claim: every family here obeys `laws`, one suite for all: the measured collision rate is `collision_probability`,
//! equal items always collide, functions drawn from different seeds are independent, and values do not depend on the
//! CPU.
//! Invariant: a family is a plain value (its parameters); functions exist only once they are drawn.
//! Not here: how many functions to draw (`plan`), what to do with their values (`filter`, `index`).
//!
//! A *band* is an AND of `rows` functions. Its values together make one [`Key`], which two items share with probability
//! `p(d)^rows`.

mod any;
mod bit_sampling;
mod cross_polytope;
mod dice;
mod hyperplane;
#[cfg(test)]
pub(crate) mod laws;
pub(crate) mod member;
mod metric;
mod minhash;
mod minutiae;
mod p_stable;
mod positions;
mod probing;
mod projection;
mod symbol_sampling;
mod weighted_minhash;
mod work;

use std::num::NonZeroU64;

use any::families;
pub use bit_sampling::BitSampling;
pub use cross_polytope::CrossPolytope;
pub use dice::DiceMinHash;
pub use hyperplane::Hyperplane;
pub use member::Form;
pub(crate) use metric::Unrelated;
pub use metric::{Metric, MetricError, MetricName, Shape};
pub use minhash::{MinHash, Signature, Sketcher};
pub use minutiae::Minutiae;
pub use p_stable::{PStable, Stable};
pub use positions::Sampling;
pub(crate) use probing::MOST_PROBES;
#[cfg(test)]
pub(crate) use projection::pairs;
pub use symbol_sampling::{Symbol, SymbolSampling};
pub use weighted_minhash::WeightedMinHash;
pub(crate) use work::product;
pub use work::{WorkBound, WorkLimit};

use crate::{
    Seed,
    error::SpecError,
    hash::mix,
    item::{Distance, Item, ItemError},
};

families! {
    /// Sampled bits, for the Hamming distance.
    BitSampling,
    /// Sampled symbols, for the Hamming distance over any alphabet.
    SymbolSampling,
    /// Minutiae triples, for fingerprints.
    Minutiae,
    /// MinHash, for the Jaccard distance of sets and texts.
    MinHash,
    /// MinHash by weights, for the weighted Jaccard distance.
    WeightedMinHash,
    /// Random hyperplanes, for the angle.
    Hyperplane,
    /// Rotated cross-polytopes, for the angle at high dimension.
    CrossPolytope,
    /// P-stable projections, for L1 and L2.
    PStable,
    /// MinHash, for the Dice distance of sets and texts.
    DiceMinHash,
}

/// What an item hashes to in one band: equal for two items when all of the band's functions agree on them.
///
/// Keys of different bands are not comparable: a table mixes a band's own seed into its keys.
pub type Key = NonZeroU64;

/// How many functions to draw, and how they are grouped: `bands` groups of `rows` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The number of functions in a band, all of which must agree.
    pub rows: u32,
    /// The number of bands.
    pub bands: u32,
}

impl Layout {
    /// Creates a layout of `bands` bands of `rows` functions each.
    pub const fn new(rows: u32, bands: u32) -> Self {
        Self { rows, bands }
    }

    /// Returns the number of functions in all.
    pub(crate) const fn functions(self) -> usize {
        self.rows as usize * self.bands as usize
    }
}

/// The hashes of an item under the drawn functions. Made to be reused from item to item.
#[derive(Debug, Clone, Default)]
pub struct Hashed {
    /// One key per band; `None` if the item has no value in that band.
    pub keys: Vec<Option<Key>>,
    /// The values of the single functions, `rows` per band, if the family can probe neighbours; otherwise empty.
    pub(crate) rows: Vec<i64>,
    /// Where in its bucket the item lies, from 0 to 1, for each of `rows`; each family defines how it measures.
    pub(crate) offsets: Vec<f32>,
    /// Scratch space for a family's intermediate results, such as an item's shingles.
    pub(crate) scratch: Vec<u64>,
    /// The same for families of vectors.
    pub(crate) vector: Vec<f32>,
    /// The same for weighted sets.
    pub(crate) weighted: Vec<(u64, f64)>,
    /// Scratch space for a signature.
    pub(crate) slots: Vec<u64>,
    /// Scratch space for a list of positions in it.
    pub(crate) positions: Vec<u32>,
}

/// A family of locality-sensitive hash functions for one metric.
pub(crate) trait LshFamily {
    /// Checks that functions can be drawn in this layout. Cheap: nothing is drawn.
    ///
    /// # Errors
    /// If the family has no such functions, for example because there are more rows than positions.
    fn check(&self, layout: Layout) -> Result<(), SpecError>;

    /// Returns `Pr[h(x) = h(y)]` for one function and two items at this distance.
    fn collision_probability(&self, distance: Distance) -> f64;

    /// Returns the probability that a whole band of `rows` functions agrees. It is never above `p(d)^rows`, and below
    /// it where a band's functions are drawn without replacement.
    fn band_probability(&self, distance: Distance, rows: u32) -> f64 {
        libm::pow(self.collision_probability(distance), f64::from(rows))
    }

    /// Returns the distribution of how many bands agree, from none to all, if the family knows it to differ from the
    /// binomial one because its bands are not independent.
    fn agreeing_bands(&self, _distance: Distance, _layout: Layout) -> Option<Vec<f64>> {
        None
    }

    /// Returns the probability that a band does not agree, but would if a single function's value were moved by at most
    /// `reach` steps, so that [`Functions::neighbours`] finds it.
    fn neighbour_probability(&self, _distance: Distance, _rows: u32, _reach: u32) -> f64 {
        0.0
    }

    /// Returns how many buckets [`Functions::neighbours`] visits in a band.
    fn neighbour_buckets(&self, _rows: u32, _reach: u32) -> u32 {
        0
    }

    /// Returns, for each distance, the probability that a band agrees in the item's own bucket, or in one of the first
    /// two that a query looks into, and so on up to `probes`, in the order of [`Functions::probe`]. A family that
    /// cannot probe gains nothing by it.
    fn probed_probabilities(&self, distances: &[Distance], rows: u32, probes: u32) -> Vec<Vec<f64>> {
        distances.iter().map(|&distance| vec![self.band_probability(distance, rows); probes.max(1) as usize]).collect()
    }

    /// Returns whether [`Functions::probe`] visits any bucket.
    fn can_probe(&self) -> bool {
        false
    }

    /// Returns whether every function's value is one bit, and a band's key spells out these bits.
    fn values_are_bits(&self) -> bool {
        false
    }

    /// Returns the greatest cost of drawing functions in this layout, and of hashing an item by them; look-ups are not
    /// included.
    fn work_bound(&self, layout: Layout) -> WorkBound;

    /// Estimates the bytes that drawn functions take, which a limit on memory has to count beside tables.
    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        size_of::<u32>() as u64 * layout.functions() as u64
    }

    /// Returns the exact distance to which the family's functions are sensitive.
    ///
    /// # Errors
    /// If the items are of a wrong kind or length, or have no distance.
    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError>;

    /// Draws functions. The same seed and layout give the same functions on every platform.
    ///
    /// # Errors
    /// Those of [`Self::check`].
    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError>;
}

/// Functions drawn from a family.
pub(crate) trait Functions: Send + Sync {
    /// Hashes an item under all functions; `out` is overwritten.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError>;

    /// Visits the keys of the buckets beside the item's own in one band, each made by moving a single function's value
    /// by at most `reach` steps. Families whose values have no neighbours visit none.
    fn neighbours(&self, _hashed: &Hashed, _band: usize, _reach: u32, _visit: &mut dyn FnMut(Key)) {}

    /// Visits the keys of up to `count` buckets beside the item's own in one band, the likeliest to hold a near item
    /// first, with several functions' values moved where that is likelier than one. Families whose values have no
    /// neighbours visit none.
    fn probe(&self, _hashed: &Hashed, _band: usize, _count: u32, _visit: &mut dyn FnMut(Key)) {}
}

impl Layout {
    /// Checks the layout, as every family does before it draws.
    pub(crate) fn check(self) -> Result<(), SpecError> {
        const LIMIT: usize = 1 << 24;
        if self.rows == 0 || self.bands == 0 {
            return Err(SpecError::EmptyLayout { rows: self.rows, bands: self.bands });
        }
        if self.functions() > LIMIT {
            return Err(SpecError::TooManyFunctions { functions: self.functions(), limit: LIMIT });
        }
        Ok(())
    }
}

/// Returns the seed from which a structure with this seed draws its functions.
pub(crate) fn functions_seed(seed: Seed) -> Seed {
    seed.derive("functions", 0)
}

/// The constant of [`key_of_rows`].
pub(crate) const KEY_BASE: u64 = 0xd6e8_feb8_6659_fd93;

/// Returns the key of a band from its functions' values.
///
/// It is a polynomial in an odd constant modulo 2^64, then a bijection: one multiplication per row, and two different
/// tuples share a key with probability about 2^-64.
#[inline(always)]
pub(crate) fn key_of_rows(rows: impl IntoIterator<Item = u64>) -> Key {
    let sum = rows.into_iter().fold(0u64, |sum, row| sum.wrapping_mul(KEY_BASE).wrapping_add(row));
    key(mix(sum))
}

/// Returns a key from any word: zero, which stands for "no key", becomes another.
#[inline(always)]
pub(crate) fn key(word: u64) -> Key {
    NonZeroU64::new(word).unwrap_or(NonZeroU64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_rows_apart() {
        let tuples = [vec![0, 1], vec![1, 0], vec![0, 0], vec![u64::MAX, 0], vec![1, 1], vec![0, u64::MAX]];
        let mut keys: Vec<Key> = tuples.into_iter().map(key_of_rows).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
