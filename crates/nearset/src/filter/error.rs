//! Why items are not inserted.

use crate::{
    error::{MOST_GENERATIONS, SpecError},
    item::{BatchError, ItemError},
};

/// Why items were not inserted, or keys are not those of items.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// It is of a wrong kind or length, or has no hash.
    #[error(transparent)]
    Item(#[from] ItemError),
    /// One of a batch is.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// There is no room, and the terms say to refuse.
    #[error(
        "the filter is full: it was made for {capacity} items and these would make it {load}; reserve a larger one, or one that \
         grows or forgets"
    )]
    Full {
        /// How many items it was made for.
        capacity: u64,
        /// What its load would have been.
        load: u64,
    },
    /// It grew as often as it may, or all of a batch might make it.
    #[error(
        "the filter would have more than {MOST_GENERATIONS} generations, from {capacity} items on: reserve one whose capacity is \
         what is expected"
    )]
    TooManyGenerations {
        /// How many items the first generation was made for.
        capacity: u64,
    },
    /// The filter has no bands.
    #[error("an exact near filter has no bands whose keys could be given: give it items")]
    NoBands,
    /// The filter looks beside an item's keys.
    #[error("a filter that probes neighbours needs more of an item than its keys: give it items")]
    Probing,
    /// Not a whole number of items.
    #[error("{found} keys are not those of whole items, which have {bands} each, one per band")]
    CutOff {
        /// How many keys were given.
        found: usize,
        /// How many an item has.
        bands: u32,
    },
    /// There is no memory for a new generation, or none can be so large.
    #[error("no room to grow: {0}")]
    Spec(SpecError),
}

impl From<SpecError> for InsertError {
    fn from(error: SpecError) -> Self {
        InsertError::Spec(error)
    }
}

/// A filter that holds more than it is made for.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "the filter is overfull: {}, and {:.3} % of all unrelated items are called near: build it again{}",
    match capacity {
        Some(capacity) => format!("what is made for {capacity} items holds about {load}"),
        None => format!("it holds about {load} items, it does not say how many it is made for"),
    },
    100.0 * unrelated,
    if capacity.is_some() { " with a capacity for all of its items" } else { "" }
)]
#[non_exhaustive]
pub struct Overfull {
    /// How many items the overfull generation is made for, where that was said.
    pub capacity: Option<u64>,
    /// How many distinct items its set bits amount to.
    pub load: u64,
    /// The part of unrelated items that it accepts.
    pub unrelated: f64,
}
