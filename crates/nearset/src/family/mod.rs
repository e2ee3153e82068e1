//! Locality-sensitive hash families: `Pr[h(x) = h(y)] = p(d)`, non-increasing in the distance `d` of `x` and `y`.
//!
//! Claim: every family here obeys `laws`, one suite for all: the measured collision rate is `collision_probability`,
//! equal items always collide, functions drawn from different seeds are independent, and values do not depend on the CPU.
//! Invariant: a family is a plain value (its parameters); functions exist only after [`LshFamily::draw`].
//! Not here: how many functions to draw (`plan`), what to do with their values (`filter`, `index`).
//!
//! A *band* is an AND of `rows` functions. Its values together make one [`Key`], which two items share with probability
//! `p(d)^rows`.

mod any;
mod bit_sampling;
mod cross_polytope;
mod hyperplane;
#[cfg(test)]
pub(crate) mod laws;
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

pub use any::Family;
pub use bit_sampling::BitSampling;
pub use cross_polytope::CrossPolytope;
pub use hyperplane::Hyperplane;
pub use metric::{Metric, MetricError, MetricName, Shape};
pub use minhash::{Estimate, MinHash, PermutationMinHash, Signature, SignatureError, Sketcher};
pub use minutiae::Minutiae;
pub use p_stable::{PStable, Stable};
pub use positions::Sampling;
pub use probing::MOST_PROBES;
#[cfg(test)]
pub(crate) use projection::pairs;
pub use symbol_sampling::{Symbol, SymbolSampling};
pub use weighted_minhash::{ConsistentMinHash, WeightedMinHash};
pub(crate) use work::product;
pub use work::{WorkBound, WorkError, WorkLimit};

use crate::{
    Seed,
    hash::mix,
    item::{Distance, Item, ItemError, ShinglingError},
};

/// What an item hashes to in one band: equal for two items when all of the band's functions agree on them.
///
/// Keys of different bands are not comparable: a table mixes a band's own seed into its keys.
pub type Key = NonZeroU64;

/// How many functions to draw, and how they are grouped: `bands` groups of `rows` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Functions in a band, all of which must agree.
    pub rows: u32,
    /// Bands.
    pub bands: u32,
}

impl Layout {
    /// A layout of `bands` bands of `rows` functions each.
    pub const fn new(rows: u32, bands: u32) -> Self {
        Self { rows, bands }
    }

    /// Functions in all.
    pub const fn functions(self) -> usize {
        self.rows as usize * self.bands as usize
    }
}

/// What an item hashes to under the drawn functions. Made to be reused from item to item.
#[derive(Debug, Clone, Default)]
pub struct Hashed {
    /// One key a band; `None` where the item has no value in that band.
    pub keys: Vec<Option<Key>>,
    /// Values of the single functions, `rows` a band, where a family can probe neighbours; else empty.
    pub(crate) rows: Vec<i64>,
    /// Where in its bucket the item lies, from 0 to 1, beside each of `rows`; each family says how it measures.
    pub(crate) offsets: Vec<f32>,
    /// Room for what a family works out on the way, such as an item's shingles.
    pub(crate) scratch: Vec<u64>,
    /// The same for families of vectors.
    pub(crate) vector: Vec<f32>,
    /// The same for weighted sets.
    pub(crate) weighted: Vec<(u64, f64)>,
    /// Room for a signature.
    pub(crate) slots: Vec<u64>,
    /// Room for a list of positions in it.
    pub(crate) positions: Vec<u32>,
}

impl Hashed {
    /// Empty, with room to grow.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A family of locality-sensitive hash functions for one metric.
pub trait LshFamily {
    /// That functions can be drawn in this layout. Cheap: nothing is drawn.
    ///
    /// # Errors
    /// If the family has no such functions: more rows than positions, say.
    fn check(&self, layout: Layout) -> Result<(), FamilyError>;

    /// `Pr[h(x) = h(y)]` for one function and two items at this distance.
    fn collision_probability(&self, distance: Distance) -> f64;

    /// `Pr` that a whole band of `rows` functions agrees. Above `p(d)^rows` nowhere; below it where a band's functions are
    /// drawn without replacement.
    fn band_probability(&self, distance: Distance, rows: u32) -> f64 {
        libm::pow(self.collision_probability(distance), f64::from(rows))
    }

    /// The distribution of how many bands agree, from none to all, where the family knows it to differ from the binomial
    /// one: its bands then are not independent.
    fn agreeing_bands(&self, _distance: Distance, _layout: Layout) -> Option<Vec<f64>> {
        None
    }

    /// `Pr` that a band does not agree, but would if a single function's value were moved by at most `reach` steps, so
    /// that [`Functions::neighbours`] finds it.
    fn neighbour_probability(&self, _distance: Distance, _rows: u32, _reach: u32) -> f64 {
        0.0
    }

    /// How many buckets [`Functions::neighbours`] visits in a band.
    fn neighbour_buckets(&self, _rows: u32, _reach: u32) -> u32 {
        0
    }

    /// For each distance, `Pr` that a band agrees in the item's own bucket, or in one of the first two that a query looks
    /// into, and so on up to `probes` in the order of [`Functions::probe`]. A family that can't probe gains nothing by it.
    fn probed_probabilities(&self, distances: &[Distance], rows: u32, probes: u32) -> Vec<Vec<f64>> {
        distances.iter().map(|&distance| vec![self.band_probability(distance, rows); probes.max(1) as usize]).collect()
    }

    /// Whether [`Functions::probe`] visits any bucket.
    fn can_probe(&self) -> bool {
        false
    }

    /// Whether every function's value is one bit, and a band's key spells them out.
    fn values_are_bits(&self) -> bool {
        false
    }

    /// The most that drawing functions in this layout costs, and hashing an item by them; nothing is looked up.
    fn work_bound(&self, layout: Layout) -> WorkBound;

    /// About how many bytes drawn functions take: what a limit on memory has to count beside tables.
    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        size_of::<u32>() as u64 * layout.functions() as u64
    }

    /// The exact distance that the family's functions are sensitive to.
    ///
    /// # Errors
    /// If the items are of a wrong kind or length, or have no distance.
    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError>;

    /// Draws functions. The same seed and layout give the same functions on every platform.
    ///
    /// # Errors
    /// Those of [`Self::check`].
    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, FamilyError>;
}

/// Functions drawn from a family.
pub trait Functions: Send + Sync {
    /// Hashes an item under all functions; `out` is overwritten.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError>;

    /// The keys of the buckets beside the item's own in one band: each made by moving a single function's value by at
    /// most `reach` steps. Families whose values have no neighbours give none.
    fn neighbours(&self, _hashed: &Hashed, _band: usize, _reach: u32, _visit: &mut dyn FnMut(Key)) {}

    /// The keys of up to `count` buckets beside the item's own in one band, the likeliest to hold a near item first, several
    /// functions' values moved where that is likelier than one. Families whose values have no neighbours give none.
    fn probe(&self, _hashed: &Hashed, _band: usize, _count: u32, _visit: &mut dyn FnMut(Key)) {}
}

/// Why functions can't be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// A layout with no functions in it.
    #[error("{rows} rows in {bands} bands: both must be at least 1")]
    EmptyLayout {
        /// Rows asked for.
        rows: u32,
        /// Bands asked for.
        bands: u32,
    },
    /// More functions than a draw may have.
    #[error("{functions} functions were asked for; {limit} is the most")]
    TooManyFunctions {
        /// How many.
        functions: usize,
        /// The most.
        limit: usize,
    },
    /// Texts can't be cut that way.
    #[error(transparent)]
    Shingling(#[from] ShinglingError),
    /// A parameter of the family is out of range.
    #[error("{parameter} is {value}: it must be {need}")]
    BadParameter {
        /// Its name.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        need: &'static str,
    },
}

impl Layout {
    /// The check that every family makes before it draws.
    pub(crate) fn check(self) -> Result<(), FamilyError> {
        const LIMIT: usize = 1 << 24;
        if self.rows == 0 || self.bands == 0 {
            return Err(FamilyError::EmptyLayout { rows: self.rows, bands: self.bands });
        }
        if self.functions() > LIMIT {
            return Err(FamilyError::TooManyFunctions { functions: self.functions(), limit: LIMIT });
        }
        Ok(())
    }
}

/// From which a structure of this seed draws its functions.
pub(crate) fn functions_seed(seed: Seed) -> Seed {
    seed.derive("functions", 0)
}

/// The constant of [`key_of_rows`].
pub(crate) const KEY_BASE: u64 = 0xd6e8_feb8_6659_fd93;

/// The key of a band from its functions' values.
///
/// A polynomial in an odd constant modulo 2^64, then a bijection: one multiplication a row, and two different tuples share
/// a key with probability about 2^-64.
#[inline(always)]
pub(crate) fn key_of_rows(rows: impl IntoIterator<Item = u64>) -> Key {
    let sum = rows.into_iter().fold(0u64, |sum, row| sum.wrapping_mul(KEY_BASE).wrapping_add(row));
    key(mix(sum))
}

/// A key from any word: zero, which stands for "no key", becomes another.
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
