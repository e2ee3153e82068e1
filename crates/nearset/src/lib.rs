//! Have I seen anything near this?
//!
//! A Bloom filter answers "have I seen exactly this?" in a few bits per item. nearset does the same for *near*:
//! near-duplicate documents, perceptual hashes, embeddings, records.
//!
//! Data flows one way, and so do the modules' dependencies:
//!
//! - [`Seed`] and [`Rng`]: where every random choice comes from.
//! - [`item`]: views of texts, sets, bit strings, symbol strings and vectors, and their exact distances.
//! - [`family`]: locality-sensitive hash functions, `Pr[h(x) = h(y)] = p(d)`, that give an item its band keys.
//! - [`BloomFilter`]: the classic Bloom filter, and the bits of all the others.
//! - [`spec`]: what filters, indexes and joins are, as plain data.
//! - [`plan`]: which functions, tables and thresholds keep a promise, and what they will do.
//! - [`Filter`]: sets that answer from a few bits per item, and that grow, refuse or forget when they are full.
//! - [`index`]: sets that keep their items, and answer which one is near and how near.
//! - [`Kind`], [`Opening`], [`DecodeError`]: filters and indexes as bytes, which they `encode` and `decode`.
//!
//! There is no I/O here, no thread, no clock and no randomness but what a [`Seed`] gives.

mod bloom;
mod codec;
mod error;
pub mod family;
mod filter;
mod hash;
pub mod index;
pub mod item;
mod merge;
pub mod plan;
mod room;
mod simd;
pub mod spec;

pub use bloom::BloomFilter;
pub use codec::{Check, DecodeError, Kind, Opening, length_of};
pub use family::{Family, Layout, Metric, MetricError, MetricName, Shape};
#[cfg(feature = "server")]
pub use filter::Progress;
pub use filter::{Filter, GenerationState, InsertError, Match, Overfull};
pub use hash::{Rng, Seed};
pub use index::{Index, Neighbour};
pub use item::{BitString, Bits, Distance, Item, ItemError, Shingler, Shingling, Similarity, Symbols};
pub use merge::MergeError;
pub use spec::{ExactSpec, FilterSpec, HammingSpec, IndexSpec, JoinSpec, LshSpec, Spec, Table};

/// The README's Rust runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
