//! What decides the candidates of a join.

use crate::{
    Layout, LshFamily, Seed, Similarity,
    family::{FamilyError, Functions, MinHash},
};

/// Which pairs a join compares: those that share a band.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct JoinSpec {
    /// The similarity from which on items are near.
    pub near: Similarity,
    /// The hash family.
    pub family: MinHash,
    /// Rows and bands.
    pub layout: Layout,
    /// From which functions are drawn.
    pub seed: Seed,
}

impl JoinSpec {
    /// A join by these bands.
    pub const fn new(near: Similarity, family: MinHash, layout: Layout, seed: Seed) -> Self {
        Self { near, family, layout, seed }
    }

    /// The probability that two items of this similarity share a band, for independent rows.
    pub fn success_probability(&self, similarity: Similarity) -> f64 {
        let apart = libm::log1p(-libm::pow(similarity.value(), f64::from(self.layout.rows)));
        -libm::expm1(f64::from(self.layout.bands) * apart)
    }

    /// Draws the functions whose keys are looked up.
    ///
    /// # Errors
    /// If texts can't be cut that way.
    pub fn functions(&self) -> Result<Box<dyn Functions>, FamilyError> {
        self.family.draw(self.seed, self.layout)
    }
}
