//! One generation of a filter, of either structure.

use super::{ExactNearFilter, NearFilter, exact::Store, tables::Tables};
use crate::{
    Distance, Item, ItemError, MergeError, Metric,
    error::SpecError,
    spec::{GenerationSpec, Table},
};

/// One generation of a filter.
#[derive(Clone)]
pub(crate) enum Generation<'a> {
    /// Bands and a rule.
    Near(NearFilter<'a>),
    /// Bit strings, of which none within a radius is missed.
    Exact(ExactNearFilter<'a>),
}

/// What a generation of a filter is at the moment.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GenerationState {
    /// The number of items inserted, repeats included.
    pub len: u64,
    /// The number of items that it is made for; `None` if nothing was said.
    pub capacity: Option<u64>,
    /// The bytes that it takes.
    pub bytes: u64,
    /// The part of its tables' bits that is set; `None` for an exact near filter.
    pub fill: Option<f64>,
    /// The chance that a key which was not inserted hits a table; `None` for an exact near filter.
    pub chance_hit: Option<f64>,
}

impl Generation<'static> {
    /// The same filter for another one, its tables shared.
    pub(crate) fn share(&mut self) -> Self {
        match self {
            Generation::Near(filter) => Generation::Near(filter.share()),
            Generation::Exact(filter) => Generation::Exact(filter.share()),
        }
    }

    /// An empty one of a spec that was checked.
    pub(crate) fn of_checked(spec: &GenerationSpec) -> Result<Self, SpecError> {
        Ok(match spec {
            GenerationSpec::Near(spec) => Generation::Near(NearFilter::of_checked(spec.clone())?),
            GenerationSpec::Exact(spec) => Generation::Exact(ExactNearFilter::of_checked(*spec)?),
        })
    }
}

impl<'a> Generation<'a> {
    /// What the filter is.
    pub(crate) fn spec(&self) -> GenerationSpec {
        match self {
            Generation::Near(filter) => GenerationSpec::Near(filter.spec().clone()),
            Generation::Exact(filter) => GenerationSpec::Exact(*filter.spec()),
        }
    }

    /// What near means to it; `None` for families that only programs use.
    pub(crate) fn metric(&self) -> Option<Metric> {
        match self {
            Generation::Near(filter) => filter.spec().family.metric(),
            Generation::Exact(filter) => Some(Metric::Hamming { bits: filter.spec().bits }),
        }
    }

    /// Items inserted, repeats included.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Generation::Near(filter) => filter.len(),
            Generation::Exact(filter) => filter.len(),
        }
    }

    /// Memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Generation::Near(filter) => filter.spec().bytes(),
            Generation::Exact(filter) => filter.bytes(),
        }
    }

    pub(super) fn state(&self, capacity: Option<u64>) -> GenerationState {
        let (fill, chance_hit) = match self {
            Generation::Near(filter) => (Some(filter.tables().fill()), Some(filter.chance_hit())),
            Generation::Exact(_) => (None, None),
        };
        GenerationState { len: self.len(), capacity, bytes: self.bytes(), fill, chance_hit }
    }

    /// Inserts an item. True when nothing near was there before.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub(crate) fn insert(&mut self, item: Item<'_>) -> Result<bool, ItemError> {
        match self {
            Generation::Near(filter) => filter.insert(item),
            Generation::Exact(filter) => filter.insert(item),
        }
    }

    /// Whether something near was inserted.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub(crate) fn contains_near(&self, item: Item<'_>) -> Result<bool, ItemError> {
        match self {
            Generation::Near(filter) => filter.contains_near(item),
            Generation::Exact(filter) => filter.contains_near(item),
        }
    }

    /// That another filter's bits mean the same.
    pub(crate) fn expect_equal(&self, other: &Generation<'_>) -> Result<(), MergeError> {
        match (self, other) {
            (Generation::Near(ours), Generation::Near(theirs)) => ours.spec().expect_equal(theirs.spec()),
            (Generation::Exact(ours), Generation::Exact(theirs)) => ours.spec().expect_equal(theirs.spec()),
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
    pub(crate) fn merge(&mut self, other: &Generation<'_>) -> Result<(), MergeError> {
        match (self, other) {
            (Generation::Near(ours), Generation::Near(theirs)) => ours.merge(theirs),
            (Generation::Exact(ours), Generation::Exact(theirs)) => ours.merge(theirs),
            (ours, theirs) => ours.expect_equal(theirs),
        }
    }

    /// What kind of filter it is.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Generation::Near(_) => "near filter",
            Generation::Exact(_) => "exact near filter",
        }
    }

    /// The probability, as the filter is now, that a query at `distance` from one stored item is accepted.
    pub(crate) fn acceptance_probability(&self, distance: Distance) -> f64 {
        match self {
            Generation::Near(filter) => filter.acceptance_probability(distance),
            Generation::Exact(filter) => filter.acceptance_probability(distance),
        }
    }

    /// The probability, as the filter is now, that an item is accepted which has nothing in common with any that is stored.
    pub(crate) fn unrelated_acceptance(&self) -> f64 {
        match self {
            Generation::Near(filter) => filter.unrelated_acceptance(),
            Generation::Exact(filter) => filter.unrelated_acceptance(),
        }
    }

    /// The tables that keys go to; a scan has none.
    pub(crate) fn table(&self) -> Option<Table> {
        match self {
            Generation::Near(filter) => Some(filter.spec().table),
            Generation::Exact(filter) => filter.spec().construction.table(),
        }
    }

    /// Bytes that each item adds: those of its fold, where it is kept.
    pub(crate) fn bytes_per_item(&self) -> u64 {
        match self {
            Generation::Near(_) => 0,
            Generation::Exact(filter) => 8 * filter.spec().fold_words() as u64,
        }
    }

    /// Bytes that inserting so many items may have to copy first, because they are shared.
    pub(crate) fn bytes_to_copy(&self, items: u64) -> u64 {
        if items == 0 {
            return 0;
        }
        let of_tables = |tables: &Tables<'_>| tables.bits().bytes_to_copy(items.saturating_mul(tables.bands() as u64));
        match self {
            Generation::Near(filter) => {
                let verified = filter.verification().map_or(0, |bloom| bloom.bits().bytes_to_copy(items));
                of_tables(filter.tables()).saturating_add(verified)
            }
            Generation::Exact(filter) => match filter.store() {
                Store::Keys(tables) => of_tables(tables),
                Store::Folds(folds) => folds.bytes_to_copy(),
            },
        }
    }

    /// Folds that it keeps.
    pub(crate) fn folds(&self) -> u64 {
        match self {
            Generation::Exact(filter) => match filter.store() {
                Store::Folds(folds) => folds.len() as u64,
                Store::Keys(_) => 0,
            },
            Generation::Near(_) => 0,
        }
    }

    /// How many distinct items its set bits amount to, if keys are random; of a scan, how many distinct folds it holds.
    ///
    /// Where a key is several bits they are counted, which takes a look at all tables.
    pub(crate) fn load(&self) -> f64 {
        match self {
            Generation::Near(filter) => filter.tables().load_with(0),
            Generation::Exact(filter) => match filter.store() {
                Store::Keys(tables) => tables.load_with(0),
                Store::Folds(folds) => folds.len() as f64,
            },
        }
    }

    /// Whether [`Self::load`] is known without a look at all tables.
    #[cfg(any(test, feature = "server"))]
    pub(crate) fn counts_load(&self) -> bool {
        match self {
            Generation::Near(filter) => filter.tables().counts_ones(),
            Generation::Exact(filter) => match filter.store() {
                Store::Keys(tables) => tables.counts_ones(),
                Store::Folds(_) => true,
            },
        }
    }

    /// The most that [`Self::load`] can be after so many more items: were all their bits new.
    pub(crate) fn most_load_with(&self, items: u64) -> f64 {
        match self {
            Generation::Near(filter) => filter.tables().most_load_with(items),
            Generation::Exact(filter) => match filter.store() {
                Store::Keys(tables) => tables.most_load_with(items),
                Store::Folds(folds) => folds.len() as f64 + items as f64,
            },
        }
    }

    /// An empty filter of a spec that differs in the size of its tables only.
    pub(crate) fn beside(&self, spec: &GenerationSpec) -> Result<Generation<'static>, SpecError> {
        Ok(match (self, spec) {
            (Generation::Near(filter), GenerationSpec::Near(spec)) => Generation::Near(filter.beside(spec.clone())?),
            (Generation::Exact(filter), GenerationSpec::Exact(spec)) => Generation::Exact(filter.beside(*spec)?),
            _ => unreachable!("sizes of tables do not change the kind"),
        })
    }

    pub(crate) fn sharing_functions_of(self, other: &Generation<'_>) -> Self {
        match (self, other) {
            (Generation::Near(filter), Generation::Near(other)) => Generation::Near(filter.sharing_functions_of(other)),
            (Generation::Exact(filter), Generation::Exact(other)) => {
                Generation::Exact(filter.sharing_functions_of(other))
            }
            (filter, _) => filter,
        }
    }

    /// Forgets all items.
    pub(crate) fn clear(&mut self) {
        match self {
            Generation::Near(filter) => filter.clear(),
            Generation::Exact(filter) => filter.clear(),
        }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<Generation<'static>, SpecError> {
        Ok(match self {
            Generation::Near(filter) => Generation::Near(filter.try_into_owned()?),
            Generation::Exact(filter) => Generation::Exact(filter.try_into_owned()?),
        })
    }

    /// Makes room for what is kept of so many items beside the tables: their folds.
    pub(crate) fn reserve(&mut self, items: u64) -> Result<(), SpecError> {
        match self {
            Generation::Near(_) => Ok(()),
            Generation::Exact(filter) => filter.reserve(items),
        }
    }

    /// A copy that owns its tables.
    pub(crate) fn into_owned(self) -> Generation<'static> {
        match self {
            Generation::Near(filter) => Generation::Near(filter.into_owned()),
            Generation::Exact(filter) => Generation::Exact(filter.into_owned()),
        }
    }
}
