//! Filters: sets that answer "seen anything near?" from a few bits per item, and have an answer to being full.
//!
//! A structure's size is fixed when it is made. A [`Filter`] is several of one kind in a row, its generations, oldest first, of which
//! the newest takes all items; an item is near if any generation says so. All share their functions, so that an item is hashed once.
//!
//! Claim: growing costs nothing of the promise to near items, since the generation that holds the neighbour keeps it, and the others
//! can only add hits. To far items it adds the chance hits of the other generations, which [`Filter::predicted_errors`]
//! counts; a window that forgets is planned with them. A window of `g` generations of `capacity` items
//! knows the last `(g - 1) * capacity` insertions at least, and the last `g * capacity` at most.
//! Every generation is a commutative, idempotent monoid: merging is a bitwise OR, and the bits are a function of the *set* of
//! items, whatever their order, their repeats and the number of threads.
//! Invariant: where a generation ends depends on the items before and on nothing else, batches and files included. Bits are only ever
//! set, and an item's bits depend on nothing but the item and the spec.
//! Not here: choosing parameters (`plan`), bytes on disk (`codec`), limits on memory. Callers that have one ask
//! [`FilterSpec::bytes`] and [`Filter::room_needed`] first.

mod ahead;
mod batch;
mod ends;
mod error;
pub(crate) mod exact;
mod generation;
#[cfg(test)]
pub(crate) mod laws;
mod merge;
pub(crate) mod near;
#[cfg(any(test, feature = "server"))]
mod progress;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

pub use batch::Match;
pub(crate) use ends::{most_generations, next_specs_in_files};
pub use error::{InsertError, Overfull};
pub(crate) use exact::ExactNearFilter;
pub(crate) use generation::Generation;
pub use generation::GenerationState;
pub(crate) use near::NearFilter;
#[cfg(feature = "server")]
pub use progress::Progress;

use std::collections::VecDeque;

use nearset_theory::amplify;

use crate::{
    Distance, Item, ItemError, Metric,
    error::SpecError,
    family::{Hashed, WorkLimit},
    spec::{FilterSpec, Hasher, Terms},
};

/// A filter on no terms is overfull when it accepts more than this of what is unrelated to all that it holds.
const OVERFULL_BY_CHANCE: f64 = 0.01;

/// A set of items that knows whether anything near was put into it, and what to do when it is full.
///
/// ```
/// use nearset::{Filter, family::Hashed, plan::Request, spec::WhenFull};
///
/// // Texts that are 80 % alike, among the last 100 at least: two generations of 100, of which one is being filled.
/// let request = Request::default().capacity(100).when_full(WhenFull::Forget { generations: 2 });
/// let mut seen = Filter::new(&request.plan_filter()?.spec)?;
///
/// let text = |number: u32| (0..30).map(|word| format!("{number}.{word} ")).collect::<String>();
/// let texts: Vec<String> = (0..201).map(text).collect();
/// let mut room = Hashed::default();
/// assert!(seen.insert(&texts[0], &mut room)?, "nothing near was there");
/// seen.insert_all(&texts[1..101])?;
/// assert!(seen.contains_near(&texts[0], &mut room)?, "a hundred others later");
/// seen.insert_all(&texts[101..])?;
/// assert!(!seen.contains_near(&texts[0], &mut room)?, "and forgotten after two hundred");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Filter<'a> {
    terms: Option<Terms>,
    /// At least one, oldest first; without terms, exactly one.
    filters: Vec<Generation<'a>>,
    /// Empty generations for the insertion that comes next: see [`Self::reserve`].
    ahead: VecDeque<Generation<'a>>,
    /// How many of the oldest generations are not asked any more: see [`Self::hide`].
    hidden: usize,
}

impl Filter<'static> {
    /// Makes an empty filter.
    ///
    /// # Errors
    /// If no filter has this spec, or memory for it can't be had.
    pub fn new(spec: &FilterSpec) -> Result<Self, SpecError> {
        Self::new_within(spec, WorkLimit::Usual)
    }

    /// [`Self::new`] by another limit on work.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_within(spec: &FilterSpec, limit: WorkLimit) -> Result<Self, SpecError> {
        spec.check(limit)?;
        Ok(Self::with_terms(vec![Generation::of_checked(&spec.first)?], spec.terms))
    }

    /// Returns the filter as it is now, at once and in no memory of its own: tables are shared, and a change to either filter first
    /// copies the kilobyte that it falls on. For copies, and for work on another thread while this one goes on.
    /// [`Self::try_into_owned`] makes the tables its own. Functions are shared as well.
    pub fn share(&mut self) -> Self {
        Self::with_terms(self.filters.iter_mut().map(Generation::share).collect(), self.terms)
    }
}

impl<'a> Filter<'a> {
    /// Generations that fit together.
    pub(crate) fn with_terms(filters: Vec<Generation<'a>>, terms: Option<Terms>) -> Self {
        debug_assert!(!filters.is_empty() && (terms.is_some() || filters.len() == 1));
        Self { terms, filters, ahead: VecDeque::new(), hidden: 0 }
    }

    /// What the filter is, without its items.
    pub fn spec(&self) -> FilterSpec {
        FilterSpec { first: self.filters[0].spec(), terms: self.terms }
    }

    /// What was promised, if anything was.
    pub(crate) fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// Describes its generations, oldest first.
    ///
    /// Where a key is several bits they are counted, which takes a look at all tables.
    pub fn generations(&self) -> impl ExactSizeIterator<Item = GenerationState> + DoubleEndedIterator {
        let capacity = |generation| self.terms.as_ref().map(|terms| self.capacity_of(terms, generation));
        self.filters.iter().enumerate().map(move |(i, filter)| filter.state(capacity(i)))
    }

    pub(crate) fn filters(&self) -> &[Generation<'a>] {
        &self.filters
    }

    /// Those that are asked.
    fn known(&self) -> &[Generation<'a>] {
        &self.filters[self.hidden..]
    }

    fn newest(&self) -> &Generation<'a> {
        &self.filters[self.filters.len() - 1]
    }

    fn newest_mut(&mut self) -> &mut Generation<'a> {
        let newest = self.filters.len() - 1;
        &mut self.filters[newest]
    }

    fn older(&self) -> &[Generation<'a>] {
        &self.filters[..self.filters.len() - 1]
    }

    /// What near means to it; `None` for families that only programs use.
    pub(crate) fn metric(&self) -> Option<Metric> {
        self.filters[0].metric()
    }

    /// What kind of filter it is.
    pub fn kind(&self) -> &'static str {
        self.filters[0].kind()
    }

    /// Items inserted and not forgotten, repeats included.
    pub fn len(&self) -> u64 {
        self.known().iter().map(Generation::len).fold(0, u64::saturating_add)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        self.filters.iter().map(Generation::bytes).sum()
    }

    /// How many distinct items the set bits amount to, if keys are random; of a scan, how many it holds. Items that share keys count
    /// for less than one, and repeats for nothing; never more than were inserted.
    ///
    /// Where a key is several bits they are counted, which takes a look at all tables.
    pub fn load(&self) -> u64 {
        let load = |filter: &Generation<'_>| (libm::round(filter.load()) as u64).min(filter.len());
        self.known().iter().map(load).fold(0, u64::saturating_add)
    }

    /// How many distinct items it is made for as it is now, all generations together; `None` if nothing was said.
    pub fn capacity(&self) -> Option<u64> {
        self.terms.as_ref()?;
        Some(self.capacities().fold(0, u64::saturating_add))
    }

    /// How many items each generation is made for, oldest first; none if nothing was said.
    fn capacities(&self) -> impl Iterator<Item = u64> {
        self.terms.iter().flat_map(|terms| (0..self.filters.len()).map(|i| self.capacity_of(terms, i)))
    }

    /// Whether the newest generation holds what it is made for, so that the next new item makes the filter grow, or is refused.
    pub fn is_full(&self) -> bool {
        let Some(capacity) = self.capacities().last() else { return false };
        self.newest().len() >= capacity && self.newest().load() >= ends::TOLERANCE * capacity as f64
    }

    /// The probability, as the filters are now, that an item is accepted which has nothing in common with any that is stored.
    pub fn unrelated_acceptance(&self) -> f64 {
        let refused = self.filters.iter().map(|filter| 1.0 - filter.unrelated_acceptance());
        1.0 - refused.product::<f64>()
    }

    /// Checks that no more is in the filter than it is made for, so that its answers mean what was promised. Whoever removes or
    /// skips data by a filter asks this first.
    ///
    /// Filters on terms never take too many items themselves, but merging can bring them together in a generation. A filter on no
    /// terms is overfull when it accepts more than 1 % of what is unrelated.
    ///
    /// Who inserts `more` items into a filter on no terms, which does not refuse them by itself, asks before: looking can take a scan
    /// of all tables, so it is then done at every 64th item.
    ///
    /// # Errors
    /// If there is more in it, saying how much.
    pub fn expect_not_overfull(&self, more: u64) -> Result<(), Overfull> {
        let len = self.newest().len();
        let looks = self.terms.is_none() && len / ends::LOOKS != len.saturating_add(more) / ends::LOOKS;
        if more > 0 && !looks {
            return Ok(());
        }
        let unrelated = || self.unrelated_acceptance();
        if self.terms.is_none() {
            let (load, unrelated) = (self.load(), unrelated());
            let is_overfull = unrelated > OVERFULL_BY_CHANCE;
            return if is_overfull { Err(Overfull { capacity: None, load, unrelated }) } else { Ok(()) };
        }
        // A scan keeps its items apart, however many there are.
        let overfull = self.filters.iter().zip(self.capacities()).find(|(filter, capacity)| {
            filter.table().is_some() && filter.len() > *capacity && filter.load() > ends::overfull_from(*capacity)
        });
        match overfull {
            None => Ok(()),
            Some((filter, capacity)) => {
                let load = libm::round(filter.load()) as u64;
                Err(Overfull { capacity: Some(capacity), load: load.min(filter.len()), unrelated: unrelated() })
            }
        }
    }

    /// What hashes items for it, if it has bands.
    pub fn hasher(&self) -> Option<Hasher> {
        match &self.filters[0] {
            Generation::Near(filter) => Some(filter.hasher()),
            Generation::Exact(_) => None,
        }
    }

    /// About how many bytes are allocated before so many items are inserted, apart from those of [`Self::room_needed`]: of
    /// [`FilterSpec::bytes_of_functions`] if no item was hashed yet, and copies of tables that are shared. Looking items up inserts
    /// none; a merge may insert up to `u64::MAX`, and into every generation.
    pub fn bytes_to_prepare(&self, inserted: u64) -> u64 {
        let functions = match &self.filters[0] {
            Generation::Near(filter) if filter.has_functions() => 0,
            _ => self.spec().bytes_of_functions(),
        };
        let changed = if inserted == u64::MAX { &self.filters[..] } else { std::slice::from_ref(self.newest()) };
        changed.iter().map(|filter| filter.bytes_to_copy(inserted)).fold(functions, u64::saturating_add)
    }

    /// Inserts an item. True when nothing near was there before. `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, the filter is full and refuses, or there is no memory to grow; nothing is changed
    /// then.
    pub fn insert<'i>(&mut self, item: impl Into<Item<'i>>, room: &mut Hashed) -> Result<bool, InsertError> {
        let inserted = self.insert_one(item.into(), room);
        self.release();
        inserted
    }

    fn insert_one(&mut self, item: Item<'_>, room: &mut Hashed) -> Result<bool, InsertError> {
        match self.newest() {
            Generation::Near(filter) => {
                filter.hash(item, room)?;
                self.insert_hashed(room)
            }
            Generation::Exact(filter) => {
                filter.bits_of(item)?;
                self.expect_room(1, |_| 0)?;
                self.make_room()?;
                self.newest_mut().reserve(1)?;
                let new = self.newest_mut().insert(item)?;
                Ok(new && !any(self.older(), |older| older.contains_near(item))?)
            }
        }
    }

    fn insert_hashed(&mut self, hashed: &Hashed) -> Result<bool, InsertError> {
        self.expect_room(1, |newest| ends::new_bits(&hashed.keys, newest.count_hits(hashed)))?;
        self.make_room()?;
        let new = match self.newest_mut() {
            Generation::Near(filter) => filter.insert_hashed(hashed),
            Generation::Exact(_) => unreachable!("an exact near filter hashes nothing"),
        };
        Ok(new && !near_filters(self.older()).any(|older| older.contains_hashed(hashed)))
    }

    /// Whether something near is in it. `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn contains_near<'i>(&self, item: impl Into<Item<'i>>, room: &mut Hashed) -> Result<bool, ItemError> {
        let item = item.into();
        match &self.filters[0] {
            Generation::Near(filter) => {
                filter.hash(item, room)?;
                Ok(near_filters(self.known()).any(|filter| filter.contains_hashed(room)))
            }
            Generation::Exact(filter) => {
                filter.bits_of(item)?;
                any(self.known(), |filter| filter.contains_near(item))
            }
        }
    }

    /// Looks an item up. `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn find<'i>(&self, item: impl Into<Item<'i>>, room: &mut Hashed) -> Result<Match, ItemError> {
        let item = item.into();
        match &self.filters[0] {
            Generation::Near(filter) => {
                filter.hash(item, room)?;
                Ok(self.find_hashed(room))
            }
            Generation::Exact(_) => {
                Ok(Match { near: self.contains_near(item, room)?, hits: 0, bands: 0, set_bits: None })
            }
        }
    }

    /// Looks up an item that its [`Self::hasher`] hashed. Exact near filters have none, and find nothing this way.
    pub fn find_hashed(&self, hashed: &Hashed) -> Match {
        let mut found = Match { near: false, hits: 0, bands: 0, set_bits: None };
        for filter in near_filters(self.known()).rev() {
            let (near, hits) = filter.find_hashed(hashed);
            found.add(near, hits, filter);
        }
        found.bands = self.bands();
        found
    }

    /// How many bands an item has; an exact near filter has none.
    fn bands(&self) -> u32 {
        match &self.filters[0] {
            Generation::Near(filter) => filter.spec().rule.bands(),
            Generation::Exact(_) => 0,
        }
    }

    /// How likely an item is accepted whose bands hit as often as this one's did: the part of all draws of functions that would
    /// call it near. Far from 0 and 1, the answer was a matter of luck.
    pub fn acceptance_of_hits(&self, found: Match) -> f64 {
        let hit = f64::from(found.hits) / f64::from(found.bands.max(1));
        let accepts = |filter: &Generation<'_>| match filter {
            Generation::Near(filter) => filter.spec().rule.probability(hit, filter.chance_hit()),
            Generation::Exact(_) => f64::from(u8::from(found.near)),
        };
        self.filters.iter().map(accepts).fold(0.0, f64::max)
    }

    /// The probability, as the filters are now, that a query is accepted whose nearest item lies at `distance`, in the generation
    /// where that is most likely.
    pub fn acceptance_probability(&self, distance: Distance) -> f64 {
        acceptance_range(&self.filters, distance).1
    }

    /// The errors to expect as the filters are now, each in the generation where it is worst: how likely a query at the near distance of
    /// the terms is missed, and how likely one at the far distance is accepted.
    pub fn predicted_errors(&self) -> Option<(f64, f64)> {
        let terms = self.terms?;
        let (least, _) = acceptance_range(&self.filters, terms.near);
        let (_, most) = acceptance_range(&self.filters, terms.far);
        Some((1.0 - least, most))
    }

    /// A copy that owns its tables.
    pub fn into_owned(self) -> Filter<'static> {
        Filter::with_terms(self.filters.into_iter().map(Generation::into_owned).collect(), self.terms)
    }

    /// [`Self::into_owned`] for those who survive a refusal of memory.
    ///
    /// # Errors
    /// If memory for the tables can't be had.
    pub fn try_into_owned(self) -> Result<Filter<'static>, SpecError> {
        let filters = self.filters.into_iter().map(Generation::try_into_owned).collect::<Result<_, _>>()?;
        Ok(Filter::with_terms(filters, self.terms))
    }
}

/// How likely one of several generations accepts a query whose nearest item lies at `distance`: where that is least likely, and
/// where it is most.
fn acceptance_range(filters: &[Generation<'_>], distance: Distance) -> (f64, f64) {
    let holding: Vec<f64> = filters.iter().map(|filter| filter.acceptance_probability(distance)).collect();
    match filters {
        [_] => (holding[0], holding[0]),
        _ => {
            let unrelated = filters.iter().map(Generation::unrelated_acceptance);
            amplify::any_filter(&holding, &unrelated.collect::<Vec<_>>())
        }
    }
}

/// The filters with bands among generations: all of them, or none.
fn near_filters<'f, 'a>(filters: &'f [Generation<'a>]) -> impl DoubleEndedIterator<Item = &'f NearFilter<'a>> {
    filters.iter().filter_map(|filter| match filter {
        Generation::Near(filter) => Some(filter),
        Generation::Exact(_) => None,
    })
}

/// Whether one of them says so.
fn any<'a>(
    filters: &[Generation<'a>],
    says: impl Fn(&Generation<'a>) -> Result<bool, ItemError>,
) -> Result<bool, ItemError> {
    for filter in filters {
        if says(filter)? {
            return Ok(true);
        }
    }
    Ok(false)
}
