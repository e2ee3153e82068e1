//! What "near" means: a metric, its own unit, and the families that hash it.
//!
//! People state nearness in the metric's own unit: differing bits or symbols, a similarity for sets and cosines, a
//! distance for L1 and L2. Everything inside is a [`Distance`]; the conversions are here and nowhere else.

use std::{fmt, str::FromStr};

use crate::{
    Distance, Family, ItemError, Shingling, Similarity,
    family::{BitSampling, Hyperplane, LshFamily, MinHash, PStable, Stable, SymbolSampling, WeightedMinHash},
};

/// A metric, with what is fixed about its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// Differing bits of bit strings.
    Hamming {
        /// The length of every string.
        bits: u32,
    },
    /// Differing symbols of strings over any alphabet.
    Symbols {
        /// The length of every string.
        length: u32,
    },
    /// One minus the Jaccard similarity of sets or texts.
    Jaccard {
        /// How texts are cut.
        shingling: Shingling,
    },
    /// One minus the weighted Jaccard similarity of weighted sets, or of texts whose repeats count.
    WeightedJaccard {
        /// How texts are cut.
        shingling: Shingling,
    },
    /// The angle between vectors.
    Angle {
        /// The number of components of a vector.
        dimension: u32,
    },
    /// Manhattan distance.
    L1 {
        /// The number of components of a vector.
        dimension: u32,
    },
    /// Euclidean distance.
    L2 {
        /// The number of components of a vector.
        dimension: u32,
    },
}

/// A metric's name, before what is fixed about its items is known: what a front end reads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricName {
    /// [`Metric::Hamming`], "hamming".
    Hamming,
    /// [`Metric::Symbols`], "symbols".
    Symbols,
    /// [`Metric::Jaccard`], "jaccard".
    Jaccard,
    /// [`Metric::WeightedJaccard`], "weighted-jaccard".
    WeightedJaccard,
    /// [`Metric::Angle`], "cosine".
    Cosine,
    /// [`Metric::L1`], "l1".
    L1,
    /// [`Metric::L2`], "l2".
    L2,
}

/// What is fixed about items, as far as it is known: from options, or from the first item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// The number of bits, symbols or components of an item.
    pub length: Option<u32>,
    /// How texts are cut; five words if nothing is given.
    pub shingling: Option<Shingling>,
}

impl MetricName {
    /// Every name.
    pub const ALL: [Self; 7] =
        [Self::Hamming, Self::Symbols, Self::Jaccard, Self::WeightedJaccard, Self::Cosine, Self::L1, Self::L2];

    /// Returns the name as people write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hamming => "hamming",
            Self::Symbols => "symbols",
            Self::Jaccard => "jaccard",
            Self::WeightedJaccard => "weighted-jaccard",
            Self::Cosine => "cosine",
            Self::L1 => "l1",
            Self::L2 => "l2",
        }
    }

    /// Returns the metric of this name over items of this shape.
    ///
    /// # Errors
    /// If the metric needs a length and none is known.
    pub fn with(self, shape: Shape) -> Result<Metric, MetricError> {
        let length = || match shape.length {
            Some(0) | None => Err(MetricError::NoLength { name: self }),
            Some(length) => Ok(length),
        };
        let shingling = shape.shingling.unwrap_or_default();
        Ok(match self {
            Self::Hamming => Metric::Hamming { bits: length()? },
            Self::Symbols => Metric::Symbols { length: length()? },
            Self::Jaccard => Metric::Jaccard { shingling },
            Self::WeightedJaccard => Metric::WeightedJaccard { shingling },
            Self::Cosine => Metric::Angle { dimension: length()? },
            Self::L1 => Metric::L1 { dimension: length()? },
            Self::L2 => Metric::L2 { dimension: length()? },
        })
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for MetricName {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "angle" => Ok(Self::Cosine),
            "manhattan" => Ok(Self::L1),
            "euclidean" => Ok(Self::L2),
            name => Self::ALL
                .into_iter()
                .find(|known| known.as_str() == name)
                .ok_or_else(|| MetricError::Unknown { found: text.to_owned() }),
        }
    }
}

/// Why a metric, or a number in it, is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A name that no metric has.
    #[error("{found:?} is no metric: use hamming, symbols, jaccard, weighted-jaccard, cosine, l1 or l2")]
    Unknown {
        /// The name.
        found: String,
    },
    /// A metric over items of unknown length.
    #[error("{name} needs the length of its items: the bits, symbols or components that each has")]
    NoLength {
        /// The metric.
        name: MetricName,
    },
    /// A number outside the metric's range.
    #[error("{found} {unit} lies outside of {name}: it must be from {least} to {most}")]
    OutOfRange {
        /// The number.
        found: f64,
        /// Its unit.
        unit: &'static str,
        /// The metric.
        name: MetricName,
        /// The least valid number.
        least: f64,
        /// The greatest valid number.
        most: f64,
    },
}

/// The width of a bucket until a plan has chosen one.
const ANY_WIDTH: f64 = 1.0;

impl Metric {
    /// Returns its name.
    pub const fn name(self) -> MetricName {
        match self {
            Metric::Hamming { .. } => MetricName::Hamming,
            Metric::Symbols { .. } => MetricName::Symbols,
            Metric::Jaccard { .. } => MetricName::Jaccard,
            Metric::WeightedJaccard { .. } => MetricName::WeightedJaccard,
            Metric::Angle { .. } => MetricName::Cosine,
            Metric::L1 { .. } => MetricName::L1,
            Metric::L2 { .. } => MetricName::L2,
        }
    }

    /// Returns what its own numbers count.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Hamming { .. } => "bits",
            Metric::Symbols { .. } => "symbols",
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => "similarity",
            Metric::Angle { .. } => "cosine",
            Metric::L1 { .. } | Metric::L2 { .. } => "distance",
        }
    }

    /// Returns what is fixed about its items.
    pub fn shape(self) -> Shape {
        match self {
            Metric::Hamming { bits: length }
            | Metric::Symbols { length }
            | Metric::Angle { dimension: length }
            | Metric::L1 { dimension: length }
            | Metric::L2 { dimension: length } => Shape { length: Some(length), shingling: None },
            Metric::Jaccard { shingling } | Metric::WeightedJaccard { shingling } => {
                Shape { length: None, shingling: Some(shingling) }
            }
        }
    }

    /// Returns whether its own numbers grow as items get nearer.
    pub const fn larger_is_nearer(self) -> bool {
        matches!(self, Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } | Metric::Angle { .. })
    }

    /// Returns the least and the greatest of its own numbers.
    fn range(self) -> (f64, f64) {
        match self {
            Metric::Hamming { bits: length } | Metric::Symbols { length } => (0.0, f64::from(length)),
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => (0.0, 1.0),
            Metric::Angle { .. } => (-1.0, 1.0),
            Metric::L1 { .. } | Metric::L2 { .. } => (0.0, f64::MAX),
        }
    }

    /// Returns the distance that a number in the metric's own unit stands for.
    ///
    /// ```
    /// use nearset::{MetricName, Shape};
    ///
    /// let jaccard = MetricName::Jaccard.with(Shape::default())?;
    /// assert_eq!(jaccard.distance(0.75)?.value(), 0.25);
    /// assert!(jaccard.distance(1.5).is_err());
    /// # Ok::<(), nearset::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// If the metric has no such number.
    pub fn distance(self, own: f64) -> Result<Distance, MetricError> {
        let (least, most) = self.range();
        let converted: Result<Distance, ItemError> = match self {
            _ if !(least..=most).contains(&own) => Err(ItemError::NotADistance { value: own }),
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => {
                Similarity::jaccard(own).map(Similarity::jaccard_distance)
            }
            Metric::Angle { .. } => Similarity::cosine(own).map(Similarity::angle),
            _ => Distance::new(own),
        };
        converted.map_err(|_| MetricError::OutOfRange { found: own, unit: self.unit(), name: self.name(), least, most })
    }

    /// Returns the number in the metric's own unit that stands for this distance.
    pub fn own_unit(self, distance: Distance) -> f64 {
        match self {
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => 1.0 - distance.value(),
            Metric::Angle { .. } => libm::cos(distance.value()),
            _ => distance.value(),
        }
    }

    /// Returns the largest distance that two items can have, if there is one.
    pub fn farthest(self) -> Option<Distance> {
        let value = match self {
            Metric::Hamming { bits: length } | Metric::Symbols { length } => f64::from(length),
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => 1.0,
            Metric::Angle { .. } => std::f64::consts::PI,
            Metric::L1 { .. } | Metric::L2 { .. } => return None,
        };
        Some(Distance::new(value).expect("lengths and constants are distances"))
    }

    /// Returns what is usually far if this is near, for metrics whose numbers mean the same everywhere: half of the
    /// similarity, for sets.
    pub fn usual_far(self, near: Distance) -> Option<Distance> {
        match self {
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => self.distance(0.5 * self.own_unit(near)).ok(),
            _ => None,
        }
    }

    /// Returns whether distances are whole numbers.
    pub const fn is_whole(self) -> bool {
        matches!(self, Metric::Hamming { .. } | Metric::Symbols { .. })
    }

    /// Returns the exact distance between two items.
    ///
    /// # Errors
    /// If the items are of a wrong kind or length, or have no distance.
    pub fn between(self, a: crate::Item<'_>, b: crate::Item<'_>) -> Result<Distance, ItemError> {
        self.any_family().distance(a, b)
    }

    /// Returns what near means to a family, or `None` for those that only programs use.
    pub(crate) fn of_family(family: Family) -> Option<Self> {
        Some(match family {
            Family::BitSampling(family) => Metric::Hamming { bits: family.bits },
            Family::SymbolSampling(family) => Metric::Symbols { length: family.length },
            Family::MinHash(family) => Metric::Jaccard { shingling: family.shingling },
            Family::WeightedMinHash(family) => Metric::WeightedJaccard { shingling: family.shingling },
            Family::Hyperplane(family) => Metric::Angle { dimension: family.dimension },
            Family::CrossPolytope(family) => Metric::Angle { dimension: family.dimension },
            Family::PStable(family) if family.stable == Stable::Cauchy => Metric::L1 { dimension: family.dimension },
            Family::PStable(family) => Metric::L2 { dimension: family.dimension },
            _ => return None,
        })
    }

    /// Returns a family of this metric, for its distance.
    fn any_family(self) -> Family {
        match self {
            Metric::Hamming { bits } => BitSampling::new(bits).into(),
            Metric::Symbols { length } => SymbolSampling::new(length).into(),
            Metric::Jaccard { shingling } => MinHash { shingling }.into(),
            Metric::WeightedJaccard { shingling } => WeightedMinHash { shingling }.into(),
            Metric::Angle { dimension } => Hyperplane { dimension }.into(),
            Metric::L1 { dimension } => PStable { dimension, width: ANY_WIDTH, stable: Stable::Cauchy }.into(),
            Metric::L2 { dimension } => PStable { dimension, width: ANY_WIDTH, stable: Stable::Gaussian }.into(),
        }
    }

    /// Returns the bits that an item itself takes, as its owner would keep it, or `None` if items vary.
    pub fn bits_of_an_item(self) -> Option<f64> {
        match self {
            Metric::Hamming { bits } => Some(f64::from(bits)),
            Metric::Angle { dimension } | Metric::L1 { dimension } | Metric::L2 { dimension } => {
                Some(32.0 * f64::from(dimension))
            }
            Metric::Symbols { length } => Some(8.0 * f64::from(length)),
            Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => None,
        }
    }
}

/// Writes the metric and what is fixed: "hamming over 256 bits".
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Metric::Hamming { bits } => write!(f, "{name} over {bits} bits"),
            Metric::Symbols { length } => write!(f, "hamming over {length} symbols"),
            Metric::Jaccard { shingling } | Metric::WeightedJaccard { shingling } => {
                write!(f, "{name} over shingles of {shingling}")
            }
            Metric::Angle { dimension } | Metric::L1 { dimension } | Metric::L2 { dimension } => {
                write!(f, "{name} over {dimension} components")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_units_convert_there_and_back() {
        let shape = Shape { length: Some(64), shingling: None };
        let own = |name: MetricName| match name {
            MetricName::Hamming | MetricName::Symbols => 12.0,
            MetricName::L1 | MetricName::L2 => 3.5,
            _ => 0.8,
        };
        for name in MetricName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
            let metric = name.with(shape).unwrap();
            assert_eq!(metric.name(), name);
            let back = metric.own_unit(metric.distance(own(name)).unwrap());
            assert!((back - own(name)).abs() < 1e-12, "{name}: {back}");
            assert!(metric.distance(f64::NAN).is_err() && metric.distance(-1.5).is_err());
        }
        assert_eq!("Euclidean".parse(), Ok(MetricName::L2));
    }

    #[test]
    fn errors_name_the_cure() {
        assert!("edit".parse::<MetricName>().unwrap_err().to_string().contains("use hamming"));
        assert!(MetricName::L2.with(Shape::default()).unwrap_err().to_string().contains("components"));
        let metric = Metric::Hamming { bits: 64 };
        assert_eq!(
            metric.distance(65.0).unwrap_err().to_string(),
            "65 bits lies outside of hamming: it must be from 0 to 64"
        );
    }
}
