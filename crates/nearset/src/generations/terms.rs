//! What was agreed when a filter was reserved, and the filter that follows from it, before anything is allocated.

use super::{AnyFilter, Generations, MOST_GENERATIONS};
use crate::{
    Distance, LshFamily,
    family::{WorkBound, WorkLimit},
    filter::{Hasher, MergeError, SpecError},
    item::Similarity,
    plan::{Goal, Metric, PlannedSpec, TextDedup, TextDedupError},
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
    fn shares(self) -> u32 {
        match self {
            WhenFull::Grow | WhenFull::Refuse => 1,
            WhenFull::Forget { generations } => generations.max(1),
        }
    }
}

/// What was promised of a filter when it was reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// That these are the other's too, or the first difference.
    pub(super) fn expect_equal(&self, other: &Self) -> Result<(), MergeError> {
        let Self { near, far, max_false_negative, max_false_positive, capacity, when_full } = self;
        MergeError::unless_equal("near distance", &near.value(), &other.near.value())?;
        MergeError::unless_equal("far distance", &far.value(), &other.far.value())?;
        MergeError::unless_equal("promised false negatives", max_false_negative, &other.max_false_negative)?;
        MergeError::unless_equal("promised false positives", max_false_positive, &other.max_false_positive)?;
        MergeError::unless_equal("capacity", capacity, &other.capacity)?;
        MergeError::unless_equal("way of being full", when_full, &other.when_full)
    }

    /// The terms of a goal.
    pub fn of(goal: &Goal, when_full: WhenFull) -> Self {
        Self {
            near: goal.near,
            far: goal.far,
            max_false_negative: goal.max_false_negative,
            max_false_positive: goal.max_false_positive,
            capacity: goal.capacity,
            when_full,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ReserveError> {
        if self.capacity == 0 {
            return Err(ReserveError::NoCapacity);
        }
        if !(self.near < self.far) {
            return Err(ReserveError::NearNotBelowFar { near: self.near.value(), far: self.far.value() });
        }
        for (what, found) in [("negative", self.max_false_negative), ("positive", self.max_false_positive)] {
            if !(0.0..1.0).contains(&found) {
                return Err(ReserveError::NotARate { what, found });
            }
        }
        match self.when_full {
            WhenFull::Forget { generations: found } if !(1..=MOST_GENERATIONS as u32).contains(&found) => {
                Err(ReserveError::Generations { found })
            }
            _ => Ok(()),
        }
    }
}

/// Goals as one generation has to keep them, so that all together keep them as they are.
pub(super) fn of_one_generation(goal: &Goal, when_full: WhenFull) -> Goal {
    Goal { max_false_positive: goal.max_false_positive / f64::from(when_full.shares()), ..goal.clone() }
}

/// A filter without items or memory: what it will be, and on which terms.
///
/// Whoever has a limit compares [`Self::bytes`] with it before [`Self::make`] allocates. As bytes it makes an equal filter
/// elsewhere, and hashes items for it there.
///
/// ```
/// use nearset::generations::{Description, Generations, Terms, WhenFull};
/// use nearset::plan::{Goal, Metric};
///
/// let metric = Metric::Jaccard { shingling: "words:5".parse()? };
/// let goal = Goal::new(metric, metric.distance(0.8)?, metric.distance(0.5)?, 10_000);
/// // Seen among the last 30,000 texts at least: four generations, of which one is being filled.
/// let when_full = WhenFull::Forget { generations: 4 };
/// let plan = Generations::plan(&goal, when_full)?;
/// let described = Description::new(plan.spec, Some(Terms::of(&goal, when_full)))?;
/// assert!(described.most_bytes() == Some(4 * described.bytes()));
///
/// let elsewhere = Description::decode(&described.encode())?;
/// assert_eq!(elsewhere, described);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    spec: PlannedSpec,
    terms: Option<Terms>,
}

impl Description {
    /// A filter of this spec, on these terms.
    ///
    /// # Errors
    /// If no filter has this spec, or the terms make no sense.
    pub fn new(spec: PlannedSpec, terms: Option<Terms>) -> Result<Self, ReserveError> {
        Self::new_within(spec, terms, WorkLimit::Usual)
    }

    /// [`Self::new`] by another limit on work.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_within(spec: PlannedSpec, terms: Option<Terms>, limit: WorkLimit) -> Result<Self, ReserveError> {
        match &spec {
            PlannedSpec::Near(spec) => spec.check_possible()?,
            PlannedSpec::Exact(spec) => spec.check_possible()?,
        }
        if let Some(terms) = &terms {
            terms.check()?;
        }
        let description = Self { spec, terms };
        limit.check(&description.work_bound()).map_err(SpecError::from)?;
        Ok(description)
    }

    /// The most that an item costs in all generations of a window; of a filter that grows, in the first one.
    pub fn work_bound(&self) -> WorkBound {
        let generations = self.terms.map_or(1, |terms| terms.when_full.shares());
        self.spec.work_bound().in_each_of(generations as usize)
    }

    /// The filter that removes near-duplicate texts, on the terms of those wishes.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn of_texts(wanted: &TextDedup, capacity: u64, when_full: WhenFull) -> Result<Self, ReserveError> {
        let spec = wanted.spec_of_one_in(capacity, when_full.shares())?;
        let distance = |similarity| Similarity::jaccard(similarity).map(Similarity::jaccard_distance);
        let terms = Terms {
            near: distance(wanted.near).map_err(TextDedupError::from)?,
            far: distance(wanted.far).map_err(TextDedupError::from)?,
            max_false_negative: wanted.max_false_negative,
            max_false_positive: wanted.max_false_positive,
            capacity,
            when_full,
        };
        Self::new(PlannedSpec::Near(spec), Some(terms))
    }

    pub(super) fn of_filter(filter: &AnyFilter<'_>, terms: Option<Terms>) -> Self {
        Self { spec: filter.spec(), terms }
    }

    /// What the filter is; where it grows or forgets, the first generation.
    pub fn spec(&self) -> &PlannedSpec {
        &self.spec
    }

    /// What was promised, if anything was.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        self.spec.metric()
    }

    /// Bytes that [`Self::make`] allocates.
    pub fn bytes(&self) -> u64 {
        self.spec.bytes()
    }

    /// About how many bytes its hash functions take beside its tables, once it is asked: much where vectors are long.
    pub fn bytes_of_functions(&self) -> u64 {
        self.spec.near().map_or(0, |spec| spec.family.bytes_of_functions(spec.layout()))
    }

    /// Bytes that the filter may come to: all generations of a window. `None` where there is no bound: if it grows, or keeps its
    /// items to compare them all.
    pub fn most_bytes(&self) -> Option<u64> {
        if self.bytes() == 0 {
            return None;
        }
        match self.terms.map(|terms| terms.when_full) {
            Some(WhenFull::Grow) => None,
            None | Some(WhenFull::Refuse) => Some(self.bytes()),
            Some(WhenFull::Forget { generations }) => Some(self.bytes().saturating_mul(generations.into())),
        }
    }

    /// How many bands an item has a key in, if the filter has bands.
    pub fn bands(&self) -> Option<u32> {
        self.spec.near().map(|spec| spec.rule.bands())
    }

    /// What hashes items for the filter, if it has bands. No tables are allocated.
    pub fn hasher(&self) -> Option<Hasher> {
        let spec = self.spec.near()?;
        Some(Hasher::of_checked(spec))
    }

    /// The filter, empty.
    ///
    /// # Errors
    /// If memory for it can't be had.
    pub fn make(&self) -> Result<Generations<'static>, SpecError> {
        Ok(Generations::with_terms(vec![AnyFilter::from_planned_within(&self.spec, WorkLimit::Unlimited)?], self.terms))
    }
}

/// Why no filter can be reserved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// No filter has the spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No filter of texts keeps the wishes.
    #[error(transparent)]
    Texts(#[from] TextDedupError),
    /// Room for nothing.
    #[error("a capacity of 0: a generation has room for at least 1 item")]
    NoCapacity,
    /// Near is not below far.
    #[error("near is at a distance of {near} and far at {far}: near must be below far")]
    NearNotBelowFar {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// Not a rate.
    #[error("a false-{what} rate of {found} cannot be promised: it must be at least 0 and below 1")]
    NotARate {
        /// Which.
        what: &'static str,
        /// What was asked for.
        found: f64,
    },
    /// No generation, or more than can be asked one after the other.
    #[error("{found} generations: there are from 1 to {MOST_GENERATIONS}; take a larger capacity for fewer of them")]
    Generations {
        /// How many were asked for.
        found: u32,
    },
}
