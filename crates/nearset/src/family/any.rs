//! Every family as one value, so that a spec can hold any and a file can name it.

use super::{
    BitSampling, CrossPolytope, FamilyError, Functions, Hyperplane, Layout, LshFamily, MinHash, Minutiae, PStable,
    SymbolSampling, WeightedMinHash, WorkBound,
};
use crate::{
    Seed,
    item::{Distance, Item, ItemError},
};

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Any of the families, with its parameters.
        ///
        /// Equal families draw equal functions from equal seeds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[$doc])* $name($name),)*
        }

        $(impl From<$name> for Family {
            fn from(family: $name) -> Self {
                Family::$name(family)
            }
        })*

        impl Family {
            /// Returns what near means to the family, or `None` for families that only programs use.
            pub fn metric(&self) -> Option<super::Metric> {
                super::Metric::of_family(*self)
            }

            fn inner(&self) -> &dyn LshFamily {
                match self {
                    $(Family::$name(family) => family,)*
                }
            }
        }
    };
}

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
}

impl LshFamily for Family {
    fn check(&self, layout: Layout) -> Result<(), FamilyError> {
        self.inner().check(layout)
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        self.inner().collision_probability(distance)
    }

    fn band_probability(&self, distance: Distance, rows: u32) -> f64 {
        self.inner().band_probability(distance, rows)
    }

    fn agreeing_bands(&self, distance: Distance, layout: Layout) -> Option<Vec<f64>> {
        self.inner().agreeing_bands(distance, layout)
    }

    fn neighbour_probability(&self, distance: Distance, rows: u32, reach: u32) -> f64 {
        self.inner().neighbour_probability(distance, rows, reach)
    }

    fn neighbour_buckets(&self, rows: u32, reach: u32) -> u32 {
        self.inner().neighbour_buckets(rows, reach)
    }

    fn probed_probabilities(&self, distances: &[Distance], rows: u32, probes: u32) -> Vec<Vec<f64>> {
        self.inner().probed_probabilities(distances, rows, probes)
    }

    fn can_probe(&self) -> bool {
        self.inner().can_probe()
    }

    fn values_are_bits(&self) -> bool {
        self.inner().values_are_bits()
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        self.inner().work_bound(layout)
    }

    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        self.inner().bytes_of_functions(layout)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        self.inner().distance(a, b)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, FamilyError> {
        self.inner().draw(seed, layout)
    }
}
