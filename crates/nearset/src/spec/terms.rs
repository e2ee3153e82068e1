//! What was agreed when a filter was made.

use crate::{
    Distance, MergeError,
    error::{MOST_GENERATIONS, SpecError},
};

/// What happens to an item for which the newest generation has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// It goes into a new generation of twice the capacity.
    Grow,
    /// It is refused.
    Refuse,
    /// It goes into a new generation of the same capacity, and where that makes too many, the oldest is forgotten with all its items.
    Forget {
        /// How many generations are kept, the newest included.
        generations: u32,
    },
}

impl WhenFull {
    /// How many generations the promise on far items is shared by. Those that growth adds are not foreseen in it.
    pub(crate) fn shares(self) -> u32 {
        match self {
            WhenFull::Grow | WhenFull::Refuse => 1,
            WhenFull::Forget { generations } => generations.max(1),
        }
    }
}

/// What was promised of a filter when it was reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Terms {
    /// Up to here, items are found.
    pub near: Distance,
    /// From here on, they are not.
    pub far: Distance,
    /// The most of what lies at `near` that may be missed.
    pub max_false_negative: f64,
    /// The most of what lies at `far` that may be accepted, by all generations of a window together.
    pub max_false_positive: f64,
    /// How many items one generation is made for; the first, where they grow.
    pub capacity: u64,
    /// What happens to those beyond.
    pub when_full: WhenFull,
}

impl Terms {
    /// A generation is full at this many times its capacity: its load is an estimate, which must not end it early.
    pub(crate) const TOLERANCE: f64 = 1.02;

    /// Terms from their parts. [`FilterSpec::on_terms`](super::FilterSpec::on_terms) checks that they make sense.
    pub const fn new(
        near: Distance,
        far: Distance,
        max_false_negative: f64,
        max_false_positive: f64,
        capacity: u64,
        when_full: WhenFull,
    ) -> Self {
        Self { near, far, max_false_negative, max_false_positive, capacity, when_full }
    }

    /// That these are the other's too, or the first difference.
    pub(crate) fn expect_equal(&self, other: &Self) -> Result<(), MergeError> {
        let Self { near, far, max_false_negative, max_false_positive, capacity, when_full } = self;
        // 1 - 0.8 is not quite 0.2, and nobody wants to read so.
        let rounded = |distance: &Distance| (distance.value() * 1e12).round() / 1e12;
        let differs = |what, ours: &Distance, theirs: &Distance| match ours == theirs {
            true => Ok(()),
            false => Err(MergeError { what, ours: rounded(ours).to_string(), theirs: rounded(theirs).to_string() }),
        };
        differs("near distance", near, &other.near)?;
        differs("far distance", far, &other.far)?;
        MergeError::unless_equal("promised false negatives", max_false_negative, &other.max_false_negative)?;
        MergeError::unless_equal("promised false positives", max_false_positive, &other.max_false_positive)?;
        MergeError::unless_equal("capacity", capacity, &other.capacity)?;
        MergeError::unless_equal("way of being full", when_full, &other.when_full)
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.capacity == 0 {
            return Err(SpecError::NoCapacity);
        }
        if !(self.near < self.far) {
            return Err(SpecError::NearNotBelowFar { near: self.near.value(), far: self.far.value() });
        }
        for (what, found) in [("negative", self.max_false_negative), ("positive", self.max_false_positive)] {
            if !(0.0..1.0).contains(&found) {
                return Err(SpecError::NotARate { what, found });
            }
        }
        match self.when_full {
            WhenFull::Forget { generations: found } if !(1..=MOST_GENERATIONS as u32).contains(&found) => {
                Err(SpecError::Generations { found })
            }
            _ => Ok(()),
        }
    }
}
