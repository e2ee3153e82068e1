//! What can be near: borrowed views of items, and their exact distances.
//!
//! Claim: a distance returned here is exact; anything without a distance (a NaN, a zero vector's angle, unequal
//! lengths) is a typed error, never a silent number.
//! Not here: hashing items so that near ones collide (`family`).

mod bits;
mod buffer;
mod distance;
mod set;
mod symbols;
mod text;
pub(crate) mod vector;
mod weighted;

use crate::error::SpecError;

pub use bits::{BitString, Bits};
pub use buffer::ItemBuffer;
pub use distance::{Distance, Similarity};
pub(crate) use set::sorted;
pub use set::{SortedSet, append_sorted};
pub(crate) use set::{dice, jaccard};
pub(crate) use set::{similarity_at_least, sizes_near};
pub use symbols::Symbols;
pub use text::{Shingler, Shingling};
pub(crate) use weighted::weighted_jaccard;
pub(crate) use weighted::{ascending as ascending_weights, check_weights};

/// One item, borrowed from its owner.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A document, to be cut into shingles.
    Text(&'a str),
    /// A set of 64-bit hashes, in any order; repeats do not count.
    Set(&'a [u64]),
    /// Elements with positive weights, each element once.
    Weighted(&'a [(u64, f64)]),
    /// A bit string.
    Bits(Bits<'a>),
    /// A string over an alphabet.
    Symbols(Symbols<'a>),
    /// A dense vector.
    Vector(&'a [f32]),
}

impl<'a> Item<'a> {
    /// Returns the kind of this item, as named in errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Item::Text(_) => kind::TEXT,
            Item::Set(_) => kind::SET,
            Item::Weighted(_) => kind::WEIGHTED,
            Item::Bits(_) => kind::BITS,
            Item::Symbols(_) => kind::SYMBOLS,
            Item::Vector(_) => kind::VECTOR,
        }
    }

    /// Returns the item as the bit string that a family needs.
    pub(crate) fn bits(self) -> Result<Bits<'a>, ItemError> {
        match self {
            Item::Bits(bits) => Ok(bits),
            other => Err(ItemError::WrongKind { expected: kind::BITS, found: other.kind() }),
        }
    }

    /// Returns the item as the symbol string that a family needs.
    pub(crate) fn symbols(self) -> Result<Symbols<'a>, ItemError> {
        match self {
            Item::Symbols(symbols) => Ok(symbols),
            other => Err(ItemError::WrongKind { expected: kind::SYMBOLS, found: other.kind() }),
        }
    }
}

/// The kinds of items, as named in errors.
pub(crate) mod kind {
    pub(crate) const TEXT: &str = "a text";
    pub(crate) const SET: &str = "a set of hashes";
    pub(crate) const WEIGHTED: &str = "a weighted set";
    pub(crate) const BITS: &str = "a bit string";
    pub(crate) const SYMBOLS: &str = "a symbol string";
    pub(crate) const VECTOR: &str = "a vector";
}

impl<'a> From<&'a str> for Item<'a> {
    fn from(text: &'a str) -> Self {
        Item::Text(text)
    }
}

impl<'a> From<&'a String> for Item<'a> {
    fn from(text: &'a String) -> Self {
        Item::Text(text)
    }
}

impl<'a> From<&'a [u64]> for Item<'a> {
    fn from(set: &'a [u64]) -> Self {
        Item::Set(set)
    }
}

impl<'a> From<Bits<'a>> for Item<'a> {
    fn from(bits: Bits<'a>) -> Self {
        Item::Bits(bits)
    }
}

impl<'a> From<&'a BitString> for Item<'a> {
    fn from(bits: &'a BitString) -> Self {
        Item::Bits(bits.bits())
    }
}

impl<'a> From<Symbols<'a>> for Item<'a> {
    fn from(symbols: Symbols<'a>) -> Self {
        Item::Symbols(symbols)
    }
}

impl<'a> From<&'a [f32]> for Item<'a> {
    fn from(vector: &'a [f32]) -> Self {
        Item::Vector(vector)
    }
}

/// Why an item has no hash or no distance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The family hashes another kind of item.
    #[error("{found} was given where {expected} is needed")]
    WrongKind {
        /// The kind that the family takes.
        expected: &'static str,
        /// The kind that was given.
        found: &'static str,
    },
    /// The item's length differs from that of the family or of the other item.
    #[error("length {found} where {expected} is needed: every item must have the same number of {unit}")]
    WrongLength {
        /// The length that is needed.
        expected: usize,
        /// The length that was given.
        found: usize,
        /// What is counted, in the plural.
        unit: &'static str,
    },
    /// A component is NaN or infinite.
    #[error("component {position} is {value}: only finite numbers have a distance")]
    NotFinite {
        /// Its position, counted from 0.
        position: usize,
        /// Its value.
        value: f64,
    },
    /// A vector of zeros has no direction, so it has no angle.
    #[error("a vector of zeros has no direction, so no angle: leave it out, or use L1 or L2")]
    ZeroVector,
    /// A weight is negative.
    #[error("the weight of element {position} is {value}: weights must not be negative")]
    NegativeWeight {
        /// Its position, counted from 0.
        position: usize,
        /// Its value.
        value: f64,
    },
    /// A weight is so large or small that its hash would leave the range of numbers.
    #[error("the weight of element {position} is {value}: weights must be 0 or lie between 1e-270 and 1e270")]
    WeightOutOfRange {
        /// Its position, counted from 0.
        position: usize,
        /// Its value.
        value: f64,
    },
    /// An element of a weighted set occurs twice.
    #[error("element {element:#x} occurs twice: add up its weights first")]
    RepeatedElement {
        /// The element.
        element: u64,
    },
    /// Texts cannot be cut that way.
    #[error(transparent)]
    Shingling(Box<SpecError>),
    /// A character is not a hexadecimal digit.
    #[error("character {position} is {found:?}, not a hexadecimal digit")]
    BadHex {
        /// Its position, counted from 0.
        position: usize,
        /// The character.
        found: char,
    },
    /// Something that is no finite number stands in the place of one.
    #[error("{found:?} is not a number")]
    NotANumber {
        /// Its first characters.
        found: String,
    },
    /// A vector's projection is too many buckets away from the origin.
    #[error("a projection of {buckets:e} bucket widths does not fit into 64 bits: take wider buckets")]
    TooFarOut {
        /// The projection, in bucket widths.
        buckets: f64,
    },
    /// A number cannot be a distance.
    #[error("{value} is not a distance: it must be a finite number and not negative")]
    NotADistance {
        /// The number.
        value: f64,
    },
    /// A number cannot be a similarity.
    #[error("{value} is not a similarity: it must lie between {least} and 1")]
    NotASimilarity {
        /// The number.
        value: f64,
        /// The least possible similarity.
        least: f64,
    },
}

impl From<SpecError> for ItemError {
    fn from(error: SpecError) -> Self {
        ItemError::Shingling(Box::new(error))
    }
}

/// The error for an item of a batch that has no hash.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("item {position} of the batch: {cause}")]
pub struct BatchError {
    /// Its position in the batch, counted from 0.
    pub position: usize,
    /// Why it has no hash.
    pub cause: ItemError,
}
