//! Have I seen anything near this?
//!
//! A Bloom filter answers "have I seen exactly this?" in a few bits per item. nearset does the same for *near*:
//! near-duplicate documents, perceptual hashes, embeddings, records.
//!
//! Data flows one way, and so do the modules' dependencies:
//!
//! - [`hash`]: seeds and the frozen base hashes.
//! - [`item`]: views of texts, sets, bit strings, symbol strings and vectors, and their exact distances.
//! - [`family`]: locality-sensitive hash functions, `Pr[h(x) = h(y)] = p(d)`, that give an item its band keys.
//! - [`bloom`]: bits, and the classic Bloom filter over them.
//! - [`spec`]: what filters, indexes and joins are, as plain data.
//! - [`plan`]: which functions, tables and thresholds keep a promise, and what they will do.
//! - [`filter`]: sets that answer from a few bits per item, and that grow, refuse or forget when they are full.
//! - [`index`]: sets that keep their items, and answer which one is near and how near.
//! - [`codec`]: filters and indexes as bytes.
//!
//! There is no I/O here, no thread, no clock and no randomness but what a [`Seed`] gives.

pub mod bloom;
pub mod codec;
pub mod family;
pub mod filter;
pub mod hash;
pub mod index;
pub mod item;
mod merge;
pub mod plan;
/// No part of the API: kernels, which benches and the other crates of this workspace use.
#[doc(hidden)]
pub mod simd;
pub mod spec;

pub use bloom::BloomFilter;
pub use codec::{Check, DecodeError};
pub use family::{Family, Layout, LshFamily, Metric, MetricError, MetricName, Shape};
pub use filter::{ExactNearFilter, Filter, NearFilter};
pub use hash::Seed;
pub use index::{HammingIndex, Index, LshIndex, Neighbour};
pub use item::{BitString, Bits, Distance, Item, ItemError, Shingler, Shingling, ShinglingError, Similarity, Symbols};
pub use merge::MergeError;
pub use spec::{ExactSpec, FilterSpec, HammingSpec, JoinSpec, LshSpec, Spec, Table};

/// The README's Rust runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
