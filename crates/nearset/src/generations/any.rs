//! A filter of whatever kind a file holds or a plan asks for.

use crate::{
    Distance, ExactNearFilter, Item, ItemError, LshFamily, NearFilter,
    family::{Hashed, WorkLimit},
    filter::{MergeError, SpecError, Table, exact::Store},
    plan::{Metric, PlannedSpec},
};

/// A filter of any kind.
#[derive(Clone)]
#[non_exhaustive]
pub enum AnyFilter<'a> {
    /// Bands and a rule.
    Near(NearFilter<'a>),
    /// Bit strings, of which none within a radius is missed.
    Exact(ExactNearFilter<'a>),
}

/// What a filter says of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Whether something near was inserted.
    pub near: bool,
    /// Bands that hit, where there are bands.
    pub hits: Option<u32>,
}

impl AnyFilter<'static> {
    /// An empty filter.
    ///
    /// # Errors
    /// If no filter has this spec, or memory for it can't be had.
    pub fn from_planned(planned: &PlannedSpec) -> Result<Self, SpecError> {
        Self::from_planned_within(planned, WorkLimit::Usual)
    }

    pub(super) fn from_planned_within(planned: &PlannedSpec, limit: WorkLimit) -> Result<Self, SpecError> {
        Ok(match planned {
            PlannedSpec::Near(spec) => AnyFilter::Near(NearFilter::from_spec_within(spec.clone(), limit)?),
            PlannedSpec::Exact(spec) => AnyFilter::Exact(ExactNearFilter::from_spec_within(*spec, limit)?),
        })
    }
}

impl<'a> AnyFilter<'a> {
    /// What the filter is.
    pub fn spec(&self) -> PlannedSpec {
        match self {
            AnyFilter::Near(filter) => PlannedSpec::Near(filter.spec().clone()),
            AnyFilter::Exact(filter) => PlannedSpec::Exact(*filter.spec()),
        }
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            AnyFilter::Near(filter) => Metric::of_family(filter.spec().family),
            AnyFilter::Exact(filter) => Some(Metric::Hamming { bits: filter.spec().bits }),
        }
    }

    /// Items inserted, repeats included.
    pub fn len(&self) -> u64 {
        match self {
            AnyFilter::Near(filter) => filter.len(),
            AnyFilter::Exact(filter) => filter.len(),
        }
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        match self {
            AnyFilter::Near(filter) => filter.spec().bytes(),
            AnyFilter::Exact(filter) => filter.bytes(),
        }
    }

    /// Inserts an item. True when nothing near was there before.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn insert(&mut self, item: Item<'_>) -> Result<bool, ItemError> {
        match self {
            AnyFilter::Near(filter) => filter.insert(item),
            AnyFilter::Exact(filter) => filter.insert(item),
        }
    }

    /// Whether something near was inserted.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn contains_near(&self, item: Item<'_>) -> Result<bool, ItemError> {
        match self {
            AnyFilter::Near(filter) => filter.contains_near(item),
            AnyFilter::Exact(filter) => filter.contains_near(item),
        }
    }

    /// Looks an item up; `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn find(&self, item: Item<'_>, room: &mut Hashed) -> Result<Found, ItemError> {
        match self {
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                Ok(Found { near: filter.contains_hashed(room), hits: Some(filter.hits_hashed(room).hit) })
            }
            AnyFilter::Exact(filter) => Ok(Found { near: filter.contains_near(item)?, hits: None }),
        }
    }

    /// That another filter's bits mean the same.
    pub(super) fn expect_equal(&self, other: &AnyFilter<'_>) -> Result<(), MergeError> {
        match (self, other) {
            (AnyFilter::Near(ours), AnyFilter::Near(theirs)) => ours.spec().expect_equal(theirs.spec()),
            (AnyFilter::Exact(ours), AnyFilter::Exact(theirs)) => ours.spec().expect_equal(theirs.spec()),
            (ours, theirs) => {
                let (ours, theirs) = (ours.kind().to_owned(), theirs.kind().to_owned());
                Err(MergeError { what: "kind", ours, theirs })
            }
        }
    }

    /// Takes in all items of another filter.
    ///
    /// # Errors
    /// If the specs differ, naming the first difference; the filter is then unchanged.
    pub fn merge(&mut self, other: &AnyFilter<'_>) -> Result<(), MergeError> {
        match (self, other) {
            (AnyFilter::Near(ours), AnyFilter::Near(theirs)) => ours.merge(theirs),
            (AnyFilter::Exact(ours), AnyFilter::Exact(theirs)) => ours.merge(theirs),
            (ours, theirs) => ours.expect_equal(theirs),
        }
    }

    /// What kind of filter it is.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyFilter::Near(_) => "near filter",
            AnyFilter::Exact(_) => "exact near filter",
        }
    }

    /// The probability, as the filter is now, that a query at `distance` from one stored item is accepted.
    pub fn acceptance_probability(&self, distance: Distance) -> f64 {
        match self {
            AnyFilter::Near(filter) => filter.acceptance_probability(distance),
            AnyFilter::Exact(filter) => filter.acceptance_probability(distance),
        }
    }

    /// The probability, as the filter is now, that an item is accepted which has nothing in common with any that is stored.
    pub(super) fn unrelated_acceptance(&self) -> f64 {
        match self {
            AnyFilter::Near(filter) => filter.unrelated_acceptance(),
            AnyFilter::Exact(filter) => filter.unrelated_acceptance(),
        }
    }

    /// The exact distance of two items.
    ///
    /// # Errors
    /// If they are of a wrong kind or length.
    pub fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        match (self, self.metric()) {
            (AnyFilter::Near(filter), _) => filter.spec().family.distance(a, b),
            (_, Some(metric)) => metric.between(a, b),
            (_, None) => unreachable!("exact filters are of bit strings"),
        }
    }

    /// The tables that keys go to; a scan has none.
    pub(super) fn table(&self) -> Option<Table> {
        match self {
            AnyFilter::Near(filter) => Some(filter.spec().table),
            AnyFilter::Exact(filter) => filter.spec().construction.table(),
        }
    }

    /// Bytes that each item adds: those of its fold, where it is kept.
    pub(super) fn bytes_per_item(&self) -> u64 {
        match self {
            AnyFilter::Near(_) => 0,
            AnyFilter::Exact(filter) => 8 * filter.spec().fold_words() as u64,
        }
    }

    /// Folds that it keeps.
    pub(super) fn folds(&self) -> u64 {
        match self {
            AnyFilter::Exact(filter) => match filter.store() {
                Store::Folds(folds) => folds.len() as u64,
                Store::Keys(_) => 0,
            },
            AnyFilter::Near(_) => 0,
        }
    }

    /// How many distinct items its set bits amount to, if keys are random; of a scan, how many distinct folds it holds.
    ///
    /// Where a key is several bits they are counted, which takes a look at all tables.
    pub(super) fn load(&self) -> f64 {
        match self {
            AnyFilter::Near(filter) => filter.tables().load_with(0),
            AnyFilter::Exact(filter) => match filter.store() {
                Store::Keys(tables) => tables.load_with(0),
                Store::Folds(folds) => folds.len() as f64,
            },
        }
    }

    /// The most that [`Self::load`] can be after so many more items: were all their bits new.
    pub(super) fn most_load_with(&self, items: u64) -> f64 {
        match self {
            AnyFilter::Near(filter) => filter.tables().most_load_with(items),
            AnyFilter::Exact(filter) => match filter.store() {
                Store::Keys(tables) => tables.most_load_with(items),
                Store::Folds(folds) => folds.len() as f64 + items as f64,
            },
        }
    }

    /// An empty filter of a spec that differs in the size of its tables only.
    pub(super) fn beside(&self, spec: &PlannedSpec) -> Result<AnyFilter<'static>, SpecError> {
        Ok(match (self, spec) {
            (AnyFilter::Near(filter), PlannedSpec::Near(spec)) => AnyFilter::Near(filter.beside(spec.clone())?),
            (AnyFilter::Exact(filter), PlannedSpec::Exact(spec)) => AnyFilter::Exact(filter.beside(*spec)?),
            _ => unreachable!("sizes of tables do not change the kind"),
        })
    }

    pub(crate) fn sharing_functions_of(self, other: &AnyFilter<'_>) -> Self {
        match (self, other) {
            (AnyFilter::Near(filter), AnyFilter::Near(other)) => AnyFilter::Near(filter.sharing_functions_of(other)),
            (AnyFilter::Exact(filter), AnyFilter::Exact(other)) => AnyFilter::Exact(filter.sharing_functions_of(other)),
            (filter, _) => filter,
        }
    }

    /// Forgets all items.
    pub(super) fn clear(&mut self) {
        match self {
            AnyFilter::Near(filter) => filter.clear(),
            AnyFilter::Exact(filter) => filter.clear(),
        }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(super) fn try_into_owned(self) -> Result<AnyFilter<'static>, SpecError> {
        Ok(match self {
            AnyFilter::Near(filter) => AnyFilter::Near(filter.try_into_owned()?),
            AnyFilter::Exact(filter) => AnyFilter::Exact(filter.try_into_owned()?),
        })
    }

    /// The same filter, its tables borrowed.
    pub(super) fn view(&self) -> AnyFilter<'_> {
        match self {
            AnyFilter::Near(filter) => AnyFilter::Near(filter.view()),
            AnyFilter::Exact(filter) => AnyFilter::Exact(filter.view()),
        }
    }

    /// Makes room for what is kept of so many items beside the tables: their folds.
    pub(super) fn reserve(&mut self, items: u64) -> Result<(), SpecError> {
        match self {
            AnyFilter::Near(_) => Ok(()),
            AnyFilter::Exact(filter) => filter.reserve(items),
        }
    }

    /// A copy that owns its tables.
    pub fn into_owned(self) -> AnyFilter<'static> {
        match self {
            AnyFilter::Near(filter) => AnyFilter::Near(filter.into_owned()),
            AnyFilter::Exact(filter) => AnyFilter::Exact(filter.into_owned()),
        }
    }
}
