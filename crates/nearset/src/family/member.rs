//! What the rest of the library asks a family, beside its functions: every fact about it, in one place.
//!
//! Invariant: nothing here has a default that would be wrong for some family; what a new one must say, the compiler asks for.

use super::{Family, LshFamily, Metric};
use crate::item::{Distance, Shingling};

/// A family that specs can hold, planners choose and files name.
pub(crate) trait Member: LshFamily {
    /// What plans call it.
    fn name(&self) -> &'static str;

    /// The metric whose distance it is sensitive to; `None` where only programs know its items.
    fn metric(&self) -> Option<Metric>;

    /// What its items are.
    fn form(&self) -> Form;

    /// Steps of evaluating one function, by which planners compare: a sampled position is 1.
    fn steps(&self) -> f64;

    /// Positions of an item, where a function looks at one of them. Bands then share positions, so that they are not independent, and
    /// a difference reaches few of them.
    fn positions(&self) -> Option<u32> {
        None
    }

    /// How often single bits agree that functions can be reduced to, for sketches that are scanned.
    fn bit_agreement(&self, _distance: Distance) -> Option<f64> {
        None
    }

    /// The distance by which its functions hardly ever agree any more, where neither the metric nor its items bound distances.
    fn reach(&self) -> Option<f64> {
        None
    }

    /// Its number in files: given once and never again.
    fn number() -> u8
    where
        Self: Sized;

    /// Writes its parameters.
    fn put(&self, out: &mut Parameters);

    /// Reads what [`Self::put`] wrote.
    fn take(from: &mut Stored<'_>) -> Result<Self, BadParameter>
    where
        Self: Sized;

    /// The families of this kind that are worth trying where near and far lie at these distances by a metric; none for other metrics.
    fn variants(metric: Metric, near: Distance, far: Distance) -> Vec<Family>
    where
        Self: Sized;
}

/// The facts that families of minima share, whose one parameter is how texts are cut.
macro_rules! minima_of_shingles {
    ($metric:ident, $form:ident) => {
        fn metric(&self) -> Option<$crate::family::Metric> {
            Some($crate::family::Metric::$metric { shingling: self.shingling })
        }

        fn form(&self) -> $crate::family::member::Form {
            $crate::family::member::Form::$form(self.shingling)
        }

        /// Values that differ agree in a bit half of the time.
        fn bit_agreement(&self, distance: $crate::item::Distance) -> Option<f64> {
            Some(0.5 + 0.5 * self.collision_probability(distance))
        }

        fn put(&self, out: &mut $crate::family::member::Parameters) {
            out.shingling(self.shingling);
        }

        fn take(from: &mut $crate::family::member::Stored<'_>) -> Result<Self, $crate::family::member::BadParameter> {
            Ok(Self { shingling: from.shingling()? })
        }

        $crate::family::member::one_variant!($metric, shingling);
    };
}
pub(crate) use minima_of_shingles;

/// The facts that families over directions share, whose one parameter is the number of components.
macro_rules! of_directions {
    () => {
        fn metric(&self) -> Option<$crate::family::Metric> {
            Some($crate::family::Metric::Angle { dimension: self.dimension })
        }

        fn form(&self) -> $crate::family::member::Form {
            $crate::family::member::Form::Vector(self.dimension)
        }

        fn put(&self, out: &mut $crate::family::member::Parameters) {
            out.u32(self.dimension);
        }

        fn take(from: &mut $crate::family::member::Stored<'_>) -> Result<Self, $crate::family::member::BadParameter> {
            Ok(Self { dimension: from.u32()? })
        }

        $crate::family::member::one_variant!(Angle, dimension);
    };
}
pub(crate) use of_directions;

/// The one variant of a family that has the parameter of its metric and no other.
macro_rules! one_variant {
    ($metric:ident, $parameter:ident) => {
        fn variants(
            metric: $crate::family::Metric,
            _near: $crate::item::Distance,
            _far: $crate::item::Distance,
        ) -> Vec<$crate::family::Family> {
            match metric {
                $crate::family::Metric::$metric { $parameter } => vec![Self { $parameter }.into()],
                _ => Vec::new(),
            }
        }
    };
}
pub(crate) use one_variant;

/// What the items of a metric or a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Bit strings of this length.
    Bits(u32),
    /// Strings of this many symbols.
    Symbols(u32),
    /// Vectors of this many components.
    Vector(u32),
    /// Sets, or texts that are cut into sets.
    Set(Shingling),
    /// Weighted sets, or texts that are cut into shingles which are counted.
    Weighted(Shingling),
}

impl Form {
    /// Returns what one item is called, or several.
    pub const fn noun(self, several: bool) -> &'static str {
        match (self, several) {
            (Form::Bits(_), false) => "hash",
            (Form::Bits(_), true) => "hashes",
            (Form::Symbols(_), false) => "string",
            (Form::Symbols(_), true) => "strings",
            (Form::Vector(_), false) => "vector",
            (Form::Vector(_), true) => "vectors",
            (Form::Set(_) | Form::Weighted(_), false) => "text",
            (Form::Set(_) | Form::Weighted(_), true) => "texts",
        }
    }

    /// The option that states how long items are, where all are of one length.
    pub const fn length_option(self) -> Option<&'static str> {
        match self {
            Form::Bits(_) => Some("bits"),
            Form::Symbols(_) => Some("length"),
            Form::Vector(_) => Some("dimension"),
            Form::Set(_) | Form::Weighted(_) => None,
        }
    }

    /// Bits, symbols or components of an item, where all have as many.
    pub(crate) const fn length(self) -> Option<u32> {
        match self {
            Form::Bits(length) | Form::Symbols(length) | Form::Vector(length) => Some(length),
            Form::Set(_) | Form::Weighted(_) => None,
        }
    }

    /// How texts are cut, where items may be texts.
    pub(crate) const fn shingling(self) -> Option<Shingling> {
        match self {
            Form::Set(shingling) | Form::Weighted(shingling) => Some(shingling),
            _ => None,
        }
    }
}

/// Parameters on their way into a file, little-endian.
#[derive(Default)]
pub(crate) struct Parameters(pub(crate) Vec<u8>);

impl Parameters {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn f64(&mut self, value: f64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn shingling(&mut self, shingling: Shingling) -> &mut Self {
        let (unit, length) = match shingling {
            Shingling::Words(length) => (0, length),
            Shingling::Chars(length) => (1, length),
            Shingling::Bytes(length) => (2, length),
            Shingling::Code(length) => (3, length),
            Shingling::Kmers(length) => (4, length),
        };
        self.u8(unit).0.extend(length.to_le_bytes());
        self
    }
}

/// Parameters on their way out of a file.
pub(crate) struct Stored<'a>(pub(crate) &'a [u8]);

/// Bytes that are no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadParameter {
    /// There are too few.
    Short { expected: u64, found: u64 },
    /// A number that stands for nothing.
    Unknown { what: &'static str, found: u8 },
}

impl Stored<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadParameter> {
        let short = BadParameter::Short { expected: N as u64, found: self.0.len() as u64 };
        let (taken, rest) = self.0.split_first_chunk().ok_or(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadParameter> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadParameter> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, BadParameter> {
        self.array().map(f64::from_le_bytes)
    }

    /// One of several that are numbered from 0 on.
    pub(crate) fn one_of<T: Copy, const N: usize>(
        &mut self,
        what: &'static str,
        all: [T; N],
    ) -> Result<T, BadParameter> {
        let found = self.u8()?;
        all.get(usize::from(found)).copied().ok_or(BadParameter::Unknown { what, found })
    }

    pub(crate) fn shingling(&mut self) -> Result<Shingling, BadParameter> {
        let (unit, length) = (self.u8()?, self.array().map(u16::from_le_bytes)?);
        match unit {
            0 => Ok(Shingling::Words(length)),
            1 => Ok(Shingling::Chars(length)),
            2 => Ok(Shingling::Bytes(length)),
            3 => Ok(Shingling::Code(length)),
            4 => Ok(Shingling::Kmers(length)),
            found => Err(BadParameter::Unknown { what: "shingle unit", found }),
        }
    }
}
