//! What "near" means: a metric, its own unit, and the families that hash it.
//!
//! People state nearness in the metric's own unit: differing bits or symbols, a similarity for sets and cosines, a
//! distance for L1 and L2. Everything inside is a [`Distance`]; the conversions are here and nowhere else.
//! All that is known of a metric is its row in `ROWS`: what it is called, how its own numbers become distances, what its items
//! are. Front ends read it from here.

use std::{fmt, str::FromStr};

use super::{
    BitSampling, DiceMinHash, Form, Hyperplane, LshFamily, MinHash, PStable, Stable, SymbolSampling, WeightedMinHash,
};
use crate::{Distance, Family, ItemError, Shingling, Similarity};

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
    /// One minus the Dice (Sørensen) similarity of sets or texts, `2 |A ∩ B| / (|A| + |B|)`.
    Dice {
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
    /// [`Metric::Dice`], "dice".
    Dice,
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

/// What there is to know of a metric.
struct Row {
    name: MetricName,
    /// As people write it.
    text: &'static str,
    /// What else they write.
    aliases: &'static [&'static str],
    /// Its everyday name.
    title: &'static str,
    scale: Scale,
    /// The metric over items of this shape.
    with: fn(Parts) -> Result<Metric, MetricError>,
}

/// How a metric's own numbers become distances.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Differing positions, which are the distance.
    Count,
    /// A similarity from 0 to 1, one minus which is the distance.
    Similarity,
    /// A cosine, whose angle is the distance.
    Cosine,
    /// The distance itself, without a bound.
    Distance,
}

/// A shape, asked for what a metric needs of it.
struct Parts {
    name: MetricName,
    shape: Shape,
}

impl Parts {
    fn length(&self) -> Result<u32, MetricError> {
        match self.shape.length {
            Some(0) | None => Err(MetricError::NoLength { name: self.name }),
            Some(length) => Ok(length),
        }
    }

    fn shingling(&self) -> Shingling {
        self.shape.shingling.unwrap_or_default()
    }
}

/// One row per metric, in the order of [`MetricName`].
const ROWS: [Row; 8] = [
    Row {
        name: MetricName::Hamming,
        text: "hamming",
        aliases: &[],
        title: "Hamming distance",
        scale: Scale::Count,
        with: |parts| Ok(Metric::Hamming { bits: parts.length()? }),
    },
    Row {
        name: MetricName::Symbols,
        text: "symbols",
        aliases: &[],
        title: "differing symbols",
        scale: Scale::Count,
        with: |parts| Ok(Metric::Symbols { length: parts.length()? }),
    },
    Row {
        name: MetricName::Jaccard,
        text: "jaccard",
        aliases: &[],
        title: "Jaccard similarity",
        scale: Scale::Similarity,
        with: |parts| Ok(Metric::Jaccard { shingling: parts.shingling() }),
    },
    Row {
        name: MetricName::WeightedJaccard,
        text: "weighted-jaccard",
        aliases: &[],
        title: "weighted Jaccard similarity",
        scale: Scale::Similarity,
        with: |parts| Ok(Metric::WeightedJaccard { shingling: parts.shingling() }),
    },
    Row {
        name: MetricName::Dice,
        text: "dice",
        aliases: &["sorensen", "sørensen", "sorensen-dice"],
        title: "Dice similarity",
        scale: Scale::Similarity,
        with: |parts| Ok(Metric::Dice { shingling: parts.shingling() }),
    },
    Row {
        name: MetricName::Cosine,
        text: "cosine",
        aliases: &["angle"],
        title: "cosine",
        scale: Scale::Cosine,
        with: |parts| Ok(Metric::Angle { dimension: parts.length()? }),
    },
    Row {
        name: MetricName::L1,
        text: "l1",
        aliases: &["manhattan"],
        title: "L1 distance",
        scale: Scale::Distance,
        with: |parts| Ok(Metric::L1 { dimension: parts.length()? }),
    },
    Row {
        name: MetricName::L2,
        text: "l2",
        aliases: &["euclidean"],
        title: "L2 distance",
        scale: Scale::Distance,
        with: |parts| Ok(Metric::L2 { dimension: parts.length()? }),
    },
];

// Every row is at its name's place.
const _: () = {
    let mut i = 0;
    while i < ROWS.len() {
        assert!(ROWS[i].name as usize == i);
        i += 1;
    }
};

impl MetricName {
    /// Every name.
    pub const ALL: [Self; ROWS.len()] = {
        let mut all = [Self::Hamming; ROWS.len()];
        let mut i = 0;
        while i < ROWS.len() {
            all[i] = ROWS[i].name;
            i += 1;
        }
        all
    };

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the name as people write it.
    pub const fn as_str(self) -> &'static str {
        self.row().text
    }

    /// Returns the metric's everyday name: "Jaccard similarity".
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Joins names into a list for a sentence: "hamming, cosine or l2".
    pub(crate) fn list(names: impl IntoIterator<Item = Self>) -> String {
        let names: Vec<&str> = names.into_iter().map(Self::as_str).collect();
        match &names[..] {
            [] => String::new(),
            [only] => (*only).to_owned(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    /// Returns the metric of this name over items of this shape.
    ///
    /// # Errors
    /// If the metric needs a length and none is known.
    pub fn with(self, shape: Shape) -> Result<Metric, MetricError> {
        (self.row().with)(Parts { name: self, shape })
    }

    /// Returns what items of the metric are, whatever their length and however they are cut.
    pub fn form(self) -> Form {
        let any = Shape { length: Some(1), shingling: None };
        self.with(any).expect("a length is all that a metric can lack").form()
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
        let row = ROWS.iter().find(|row| row.text == lower || row.aliases.contains(&lower.as_str()));
        row.map(|row| row.name).ok_or_else(|| MetricError::Unknown { found: text.to_owned() })
    }
}

/// Why a metric, or a number in it, is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A name that nothing has.
    #[error("{found:?} is no metric{}: use {}", why_none(found), MetricName::list(MetricName::ALL))]
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

/// Why a name that joins of texts know is no metric; nothing about others.
fn why_none(name: &str) -> &'static str {
    match &*name.to_ascii_lowercase() {
        "edit" | "edit-similarity" => {
            " of filters and indexes, as no hash is known to collide with a probability that edits decide"
        }
        "containment" => " of filters and indexes, as it is not the same both ways",
        _ => "",
    }
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
            Metric::Dice { .. } => MetricName::Dice,
            Metric::Angle { .. } => MetricName::Cosine,
            Metric::L1 { .. } => MetricName::L1,
            Metric::L2 { .. } => MetricName::L2,
        }
    }

    /// Returns what its items are.
    pub const fn form(self) -> Form {
        match self {
            Metric::Hamming { bits } => Form::Bits(bits),
            Metric::Symbols { length } => Form::Symbols(length),
            Metric::Jaccard { shingling } | Metric::Dice { shingling } => Form::Set(shingling),
            Metric::WeightedJaccard { shingling } => Form::Weighted(shingling),
            Metric::Angle { dimension } | Metric::L1 { dimension } | Metric::L2 { dimension } => {
                Form::Vector(dimension)
            }
        }
    }

    const fn scale(self) -> Scale {
        self.name().row().scale
    }

    /// Returns what its own numbers count.
    pub const fn unit(self) -> &'static str {
        match (self.scale(), self.form()) {
            (Scale::Count, Form::Bits(_)) => "bits",
            (Scale::Count, _) => "symbols",
            (Scale::Similarity, _) => "similarity",
            (Scale::Cosine, _) => "cosine",
            (Scale::Distance, _) => "distance",
        }
    }

    /// Returns what is fixed about its items.
    pub const fn shape(self) -> Shape {
        Shape { length: self.form().length(), shingling: self.form().shingling() }
    }

    /// Returns whether its own numbers grow as items get nearer.
    pub const fn larger_is_nearer(self) -> bool {
        matches!(self.scale(), Scale::Similarity | Scale::Cosine)
    }

    /// Returns the least and the greatest of its own numbers.
    fn range(self) -> (f64, f64) {
        match self.scale() {
            Scale::Count => (0.0, f64::from(self.form().length().unwrap_or(u32::MAX))),
            Scale::Similarity => (0.0, 1.0),
            Scale::Cosine => (-1.0, 1.0),
            Scale::Distance => (0.0, f64::MAX),
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
        let converted: Result<Distance, ItemError> = match self.scale() {
            _ if !(least..=most).contains(&own) => Err(ItemError::NotADistance { value: own }),
            Scale::Similarity => Similarity::jaccard(own).map(Similarity::jaccard_distance),
            Scale::Cosine => Similarity::angle_of_cosine(own),
            Scale::Count | Scale::Distance => Distance::new(own),
        };
        converted.map_err(|_| MetricError::OutOfRange { found: own, unit: self.unit(), name: self.name(), least, most })
    }

    /// Returns the number in the metric's own unit that stands for this distance.
    pub fn own_unit(self, distance: Distance) -> f64 {
        match self.scale() {
            Scale::Similarity => 1.0 - distance.value(),
            Scale::Cosine => libm::cos(distance.value()),
            Scale::Count | Scale::Distance => distance.value(),
        }
    }

    /// Returns the largest distance that two items can have, if there is one.
    pub fn farthest(self) -> Option<Distance> {
        let value = match self.scale() {
            Scale::Count => self.range().1,
            Scale::Similarity => 1.0,
            Scale::Cosine => std::f64::consts::PI,
            Scale::Distance => return None,
        };
        Some(Distance::new(value).expect("lengths and constants are distances"))
    }

    /// Returns what is usually far if this is near, for metrics whose numbers mean the same everywhere: half of the
    /// similarity, for sets.
    pub(crate) fn usual_far(self, near: Distance) -> Option<Distance> {
        match self.scale() {
            Scale::Similarity => self.distance(0.5 * self.own_unit(near)).ok(),
            Scale::Count | Scale::Cosine | Scale::Distance => None,
        }
    }

    /// Returns whether distances are whole numbers.
    pub const fn is_whole(self) -> bool {
        matches!(self.scale(), Scale::Count)
    }

    /// Returns where an item lies that has nothing to do with another; `None` where nothing says.
    pub(crate) fn unrelated(self) -> Option<Unrelated> {
        match self.scale() {
            Scale::Count => self.form().length().map(Unrelated::Coins),
            Scale::Similarity => Some(Unrelated::Farthest),
            Scale::Cosine => self.form().length().map(Unrelated::Directions),
            Scale::Distance => None,
        }
    }

    /// Returns the exact distance between two items.
    ///
    /// # Errors
    /// If the items are of a wrong kind or length, or have no distance.
    pub fn between(self, a: crate::Item<'_>, b: crate::Item<'_>) -> Result<Distance, ItemError> {
        self.any_family().distance(a, b)
    }

    /// Returns a family of this metric, for its distance.
    pub(crate) fn any_family(self) -> Family {
        match self {
            Metric::Hamming { bits } => BitSampling::new(bits).into(),
            Metric::Symbols { length } => SymbolSampling::new(length).into(),
            Metric::Jaccard { shingling } => MinHash { shingling }.into(),
            Metric::WeightedJaccard { shingling } => WeightedMinHash { shingling }.into(),
            Metric::Dice { shingling } => DiceMinHash { shingling }.into(),
            Metric::Angle { dimension } => Hyperplane { dimension }.into(),
            Metric::L1 { dimension } => PStable { dimension, width: ANY_WIDTH, stable: Stable::Cauchy }.into(),
            Metric::L2 { dimension } => PStable { dimension, width: ANY_WIDTH, stable: Stable::Gaussian }.into(),
        }
    }

    /// Returns the bits that an item itself takes, as its owner would keep it, or `None` if items vary.
    pub(crate) fn bits_of_an_item(self) -> Option<f64> {
        let bits = match self.form() {
            Form::Bits(_) => 1.0,
            Form::Symbols(_) => 8.0,
            Form::Vector(_) => 32.0,
            Form::Set(_) | Form::Weighted(_) => return None,
        };
        self.form().length().map(|length| bits * f64::from(length))
    }
}

/// How items lie that have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrelated {
    /// This many positions agree by the toss of a coin each.
    Coins(u32),
    /// Directions are uniform on the sphere of this dimension.
    Directions(u32),
    /// They have nothing in common.
    Farthest,
}

/// Writes the metric and what is fixed: "hamming over 256 bits".
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self.form() {
            Form::Bits(bits) => write!(f, "{name} over {bits} bits"),
            Form::Symbols(length) => write!(f, "hamming over {length} symbols"),
            Form::Set(shingling) | Form::Weighted(shingling) => write!(f, "{name} over shingles of {shingling}"),
            Form::Vector(dimension) => write!(f, "{name} over {dimension} components"),
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
        assert!(
            "edits".parse::<MetricName>().unwrap_err().to_string().starts_with("\"edits\" is no metric: use hamming")
        );
        for name in ["edit", "Edit-Similarity", "containment"] {
            let why = name.parse::<MetricName>().unwrap_err().to_string();
            assert!(why.contains("no metric of filters and indexes, as") && why.contains(": use hamming"), "{why}");
        }
        assert!(MetricName::L2.with(Shape::default()).unwrap_err().to_string().contains("components"));
        let metric = Metric::Hamming { bits: 64 };
        assert_eq!(
            metric.distance(65.0).unwrap_err().to_string(),
            "65 bits lies outside of hamming: it must be from 0 to 64"
        );
    }
}
