//! Every family as one value, so that a spec can hold any and a file can name it. The list of them is in `family`.

use super::{Family, Form, Functions, Layout, LshFamily, Metric, WorkBound};
use crate::{
    Seed,
    error::SpecError,
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
            fn inner(&self) -> &dyn member::Member {
                match self {
                    $(Family::$name(family) => family,)*
                }
            }

            /// Its number in files, and its parameters.
            pub(crate) fn put(&self) -> (u8, member::Parameters) {
                use member::Member as _;
                let mut out = member::Parameters::default();
                self.inner().put(&mut out);
                (match self { $(Family::$name(_) => $name::number(),)* }, out)
            }

            /// The family of a number, with the parameters that follow it in a file.
            pub(crate) fn take(number: u8, from: &mut member::Stored<'_>) -> Result<Self, member::BadParameter> {
                use member::Member as _;
                match number {
                    $(number if number == $name::number() => Ok($name::take(from)?.into()),)*
                    found => Err(member::BadParameter::Unknown { what: "hash family", found }),
                }
            }

            /// Families of a metric, each in the variants that are worth trying for near and far.
            pub(crate) fn candidates(metric: Metric, near: Distance, far: Distance) -> Vec<Vec<Family>> {
                use member::Member as _;
                [$($name::variants(metric, near, far)),*].into_iter().filter(|all| !all.is_empty()).collect()
            }
        }
    };
}

pub(super) use families;

impl Family {
    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        self.inner().metric()
    }

    /// What its items are.
    pub(crate) fn form(&self) -> Form {
        self.inner().form()
    }

    /// What plans call it.
    pub fn name(&self) -> &'static str {
        self.inner().name()
    }

    /// Returns `Pr[h(x) = h(y)]` for one function and two items at this distance.
    ///
    /// ```
    /// use nearset::{Distance, Family, family::BitSampling};
    ///
    /// let family = Family::from(BitSampling::new(64));
    /// assert_eq!(family.collision_probability(Distance::from_count(16)), 0.75);
    /// ```
    pub fn collision_probability(&self, distance: Distance) -> f64 {
        self.inner().collision_probability(distance)
    }

    pub(crate) fn steps(&self) -> f64 {
        self.inner().steps()
    }

    pub(crate) fn positions(&self) -> Option<u32> {
        self.inner().positions()
    }

    /// Returns the distance by which the family's functions hardly ever agree any more, where neither the metric nor the items bound
    /// distances: charts reach so far.
    #[doc(hidden)]
    pub fn reach(&self) -> Option<f64> {
        self.inner().reach()
    }

    pub(crate) fn bit_agreement(&self, distance: Distance) -> Option<f64> {
        self.inner().bit_agreement(distance)
    }
}

impl LshFamily for Family {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
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

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.inner().draw(seed, layout)
    }
}
