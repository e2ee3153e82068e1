//! Filters that have an answer to being full: they grow, they refuse, or they forget.
//!
//! A filter's size is fixed when it is made. [`Generations`] are several filters in a row, oldest first, of which the newest takes
//! all items; an item is near if any generation says so. All share their functions, so that an item is hashed once.
//!
//! Claim: growing costs nothing of the promise to near items, since the generation that holds the neighbour keeps it, and the others
//! can only add hits. To far items it adds the chance hits of the other generations, which [`Generations::predicted_errors`]
//! counts; a window that forgets is planned with them ([`Generations::plan`]). A window of `g` generations of `capacity` items
//! knows the last `(g - 1) * capacity` insertions at least, and the last `g * capacity` at most.
//! Invariant: where a generation ends depends on the items before and on nothing else, batches and files included.
//! Not here: limits on memory. Whoever has one asks [`Description::bytes`] and [`Generations::room_needed`] first.

mod ahead;
mod any;
mod batch;
mod ends;
mod error;
mod merge;
mod terms;
#[cfg(test)]
mod tests;

pub use any::{AnyFilter, Found};
pub use batch::Counted;
pub(crate) use ends::{most_generations, next_specs_in_files};
pub use error::{InsertError, KeysError, Overfull};
pub use terms::{Description, ReserveError, Terms, WhenFull};

use std::collections::VecDeque;

use nearset_theory::amplify;

use crate::{
    DecodeError, Distance, Item, ItemError, NearFilter,
    family::Hashed,
    filter::{Hasher, Hits, PredictedErrors, SpecError},
    plan::{Goal, Metric, Plan, PlanError, PlannedSpec, plan},
};

/// A filter on no terms is overfull when it accepts more than this of what is unrelated to all that it holds.
const OVERFULL_BY_CHANCE: f64 = 0.01;

/// The most generations that there may be: each is asked for every item.
pub(crate) const MOST_GENERATIONS: usize = 1024;

/// Filters in a row, of which the newest takes the items.
///
/// ```
/// use nearset::family::Hashed;
/// use nearset::generations::{Description, WhenFull};
/// use nearset::plan::TextDedup;
///
/// // Texts that are 80 % alike, among the last 100 at least: two generations of 100, of which one is being filled.
/// let window = WhenFull::Forget { generations: 2 };
/// let mut seen = Description::of_texts(&TextDedup::new(0.8), 100, window)?.make()?;
///
/// let text = |number: u32| (0..30).map(|word| format!("{number}.{word} ")).collect::<String>();
/// let texts: Vec<String> = (0..201).map(text).collect();
/// let mut room = Hashed::new();
/// assert!(seen.insert(&texts[0], &mut room)?, "nothing near was there");
/// seen.insert_all(&texts[1..101])?;
/// assert!(seen.contains_near(&texts[0], &mut room)?, "a hundred others later");
/// seen.insert_all(&texts[101..])?;
/// assert!(!seen.contains_near(&texts[0], &mut room)?, "and forgotten after two hundred");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Generations<'a> {
    terms: Option<Terms>,
    /// At least one, oldest first; without terms, exactly one.
    filters: Vec<AnyFilter<'a>>,
    /// Empty generations for the insertion that comes next: see [`Self::reserve`].
    ahead: VecDeque<AnyFilter<'a>>,
}

impl Generations<'static> {
    /// The cheapest filter that keeps a goal as one generation. Where several generations are foreseen, they share what may be
    /// accepted of far items, so that all together keep the goal.
    ///
    /// # Errors
    /// If there is none.
    pub fn plan(goal: &Goal, when_full: WhenFull) -> Result<Plan, PlanError> {
        plan(&terms::of_one_generation(goal, when_full))
    }

    /// An empty filter of a plan's spec.
    ///
    /// # Errors
    /// If no filter has this spec, the terms make no sense, or memory can't be had.
    pub fn from_plan(spec: &PlannedSpec, terms: Terms) -> Result<Self, ReserveError> {
        Ok(Description::new(spec.clone(), Some(terms))?.make()?)
    }

    /// An empty filter equal to the one that was described, by [`Description::encode`].
    ///
    /// # Errors
    /// If the bytes are not an intact description, or memory can't be had.
    pub fn from_description(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Description::decode(bytes)?.make()?)
    }
}

impl<'a> Generations<'a> {
    /// A filter on no terms: it neither grows nor refuses.
    pub fn from_filter(filter: AnyFilter<'a>) -> Self {
        Self::with_terms(vec![filter], None)
    }

    /// Generations that fit together.
    pub(crate) fn with_terms(filters: Vec<AnyFilter<'a>>, terms: Option<Terms>) -> Self {
        debug_assert!(!filters.is_empty() && (terms.is_some() || filters.len() == 1));
        Self { terms, filters, ahead: VecDeque::new() }
    }

    /// What the filter is, without its items.
    pub fn describe(&self) -> Description {
        Description::of_filter(&self.filters[0], self.terms)
    }

    /// What was promised, if anything was.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// The generations, oldest first.
    pub fn filters(&self) -> &[AnyFilter<'a>] {
        &self.filters
    }

    fn newest(&self) -> &AnyFilter<'a> {
        &self.filters[self.filters.len() - 1]
    }

    fn newest_mut(&mut self) -> &mut AnyFilter<'a> {
        let newest = self.filters.len() - 1;
        &mut self.filters[newest]
    }

    fn older(&self) -> &[AnyFilter<'a>] {
        &self.filters[..self.filters.len() - 1]
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        self.filters[0].metric()
    }

    /// What kind of filter it is.
    pub fn kind(&self) -> &'static str {
        self.filters[0].kind()
    }

    /// Items inserted and not forgotten, repeats included.
    pub fn len(&self) -> u64 {
        self.filters.iter().map(AnyFilter::len).fold(0, u64::saturating_add)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        self.filters.iter().map(AnyFilter::bytes).sum()
    }

    /// How many distinct items the set bits amount to, if keys are random; of a scan, how many it holds. Items that share keys count
    /// for less than one, and repeats for nothing; never more than were inserted.
    ///
    /// Where a key is several bits they are counted, which takes a look at all tables.
    pub fn load(&self) -> u64 {
        let load = |filter: &AnyFilter<'_>| (libm::round(filter.load()) as u64).min(filter.len());
        self.filters.iter().map(load).fold(0, u64::saturating_add)
    }

    /// How many distinct items it is made for as it is now, all generations together; `None` if nothing was said.
    pub fn capacity(&self) -> Option<u64> {
        self.terms.as_ref()?;
        Some(self.capacities().fold(0, u64::saturating_add))
    }

    /// How many items each generation is made for, oldest first; none if nothing was said.
    pub fn capacities(&self) -> impl Iterator<Item = u64> {
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
    /// # Errors
    /// If there is more in it, saying how much.
    pub fn expect_not_overfull(&self) -> Result<(), Overfull> {
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

    /// [`Self::expect_not_overfull`] for those who insert so many items into a filter on no terms, which does not refuse them by
    /// itself. Looking can take a scan of all tables, so it is done at every 64th item.
    ///
    /// # Errors
    /// If it is overfull.
    pub fn expect_not_overfull_before(&self, items: u64) -> Result<(), Overfull> {
        let len = self.newest().len();
        let looks = self.terms.is_none() && len / ends::LOOKS != len.saturating_add(items) / ends::LOOKS;
        if looks { self.expect_not_overfull() } else { Ok(()) }
    }

    /// What hashes items for it, if it has bands.
    pub fn hasher(&self) -> Option<Hasher> {
        match &self.filters[0] {
            AnyFilter::Near(filter) => Some(filter.hasher()),
            AnyFilter::Exact(_) => None,
        }
    }

    /// About how many bytes of [`Description::bytes_of_functions`] are not allocated before an item is hashed; 0 once one was.
    pub fn bytes_to_draw(&self) -> u64 {
        match &self.filters[0] {
            AnyFilter::Near(filter) if filter.has_functions() => 0,
            _ => self.describe().bytes_of_functions(),
        }
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
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                self.insert_hashed(room)
            }
            AnyFilter::Exact(filter) => {
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
        self.expect_room(1, |newest| ends::new_bits(&hashed.keys, newest.hits_hashed(hashed).hit))?;
        self.make_room()?;
        let new = match self.newest_mut() {
            AnyFilter::Near(filter) => filter.insert_hashed(hashed),
            AnyFilter::Exact(_) => unreachable!("an exact near filter hashes nothing"),
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
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                Ok(near_filters(&self.filters).any(|filter| filter.contains_hashed(room)))
            }
            AnyFilter::Exact(_) => any(&self.filters, |filter| filter.contains_near(item)),
        }
    }

    /// Looks an item up. `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn find<'i>(&self, item: impl Into<Item<'i>>, room: &mut Hashed) -> Result<Found, ItemError> {
        let item = item.into();
        match &self.filters[0] {
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                Ok(self.find_hashed(room))
            }
            AnyFilter::Exact(_) => Ok(Found { near: self.contains_near(item, room)?, hits: None }),
        }
    }

    /// Looks up an item that its [`Self::hasher`] hashed. Exact near filters have none, and find nothing this way.
    pub fn find_hashed(&self, hashed: &Hashed) -> Found {
        let near = near_filters(&self.filters).any(|filter| filter.contains_hashed(hashed));
        Found { near, hits: near_filters(&self.filters).map(|filter| filter.hits_hashed(hashed).hit).max() }
    }

    /// How many bands hit in the generation where most do. An exact near filter has one band, as it were: it hits or it does not.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn hits<'i>(&self, item: impl Into<Item<'i>>, room: &mut Hashed) -> Result<Hits, ItemError> {
        let item = item.into();
        match &self.filters[0] {
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                Ok(self.most_hits(room))
            }
            AnyFilter::Exact(_) => Ok(Hits { hit: self.contains_near(item, room)?.into(), bands: 1 }),
        }
    }

    fn most_hits(&self, hashed: &Hashed) -> Hits {
        let all = near_filters(&self.filters).map(|filter| filter.hits_hashed(hashed));
        all.max_by_key(|hits| hits.hit).unwrap_or(Hits { hit: 0, bands: 1 })
    }

    /// How likely an item is accepted whose bands hit as often as these did: the part of all draws of functions that would call it
    /// near. Far from 0 and 1, the answer was a matter of luck.
    pub fn acceptance_of_hits(&self, hits: Hits) -> f64 {
        let hit = f64::from(hits.hit) / f64::from(hits.bands);
        let accepts = |filter: &AnyFilter<'_>| match filter {
            AnyFilter::Near(filter) => filter.spec().rule.probability(hit, filter.chance_hit()),
            AnyFilter::Exact(_) => hit,
        };
        self.filters.iter().map(accepts).fold(0.0, f64::max)
    }

    /// The probability, as the filters are now, that a query is accepted whose nearest item lies at `distance`, in the generation
    /// where that is most likely.
    pub fn acceptance_probability(&self, distance: Distance) -> f64 {
        acceptance_probability(&self.filters, distance)
    }

    /// The errors to expect as the filters are now, at the distances of the terms, each in the generation where it is worst.
    pub fn predicted_errors(&self) -> Option<PredictedErrors> {
        let terms = self.terms?;
        let (least, _) = acceptance_range(&self.filters, terms.near);
        let (_, most) = acceptance_range(&self.filters, terms.far);
        Some(PredictedErrors { false_negative: 1.0 - least, false_positive: most })
    }

    /// The exact distance of two items.
    ///
    /// # Errors
    /// If they are of a wrong kind or length.
    pub fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        self.filters[0].distance(a, b)
    }

    /// A copy that owns its tables.
    pub fn into_owned(self) -> Generations<'static> {
        Generations::with_terms(self.filters.into_iter().map(AnyFilter::into_owned).collect(), self.terms)
    }

    /// [`Self::into_owned`] for those who survive a refusal of memory.
    ///
    /// # Errors
    /// If memory for the tables can't be had.
    pub fn try_into_owned(self) -> Result<Generations<'static>, SpecError> {
        let filters = self.filters.into_iter().map(AnyFilter::try_into_owned).collect::<Result<_, _>>()?;
        Ok(Generations::with_terms(filters, self.terms))
    }

    /// [`Clone::clone`] for those who survive a refusal of memory. The two share their functions.
    ///
    /// # Errors
    /// If memory for the tables can't be had.
    pub fn try_clone(&self) -> Result<Generations<'static>, SpecError> {
        let copies = self.filters.iter().map(|filter| filter.view().try_into_owned()).collect::<Result<_, _>>()?;
        Ok(Generations::with_terms(copies, self.terms))
    }
}

/// The probability, as the filters are now, that one of several accepts a query whose nearest item lies at `distance`, in the filter
/// where that is most likely.
pub fn acceptance_probability(filters: &[AnyFilter<'_>], distance: Distance) -> f64 {
    acceptance_range(filters, distance).1
}

/// The same where it is least likely, and where it is most.
fn acceptance_range(filters: &[AnyFilter<'_>], distance: Distance) -> (f64, f64) {
    let holding: Vec<f64> = filters.iter().map(|filter| filter.acceptance_probability(distance)).collect();
    match filters {
        [_] => (holding[0], holding[0]),
        _ => {
            let unrelated = filters.iter().map(AnyFilter::unrelated_acceptance);
            amplify::any_filter(&holding, &unrelated.collect::<Vec<_>>())
        }
    }
}

/// The filters with bands among generations: all of them, or none.
fn near_filters<'f, 'a>(filters: &'f [AnyFilter<'a>]) -> impl DoubleEndedIterator<Item = &'f NearFilter<'a>> {
    filters.iter().filter_map(|filter| match filter {
        AnyFilter::Near(filter) => Some(filter),
        AnyFilter::Exact(_) => None,
    })
}

/// Whether one of them says so.
fn any<'a>(
    filters: &[AnyFilter<'a>],
    says: impl Fn(&AnyFilter<'a>) -> Result<bool, ItemError>,
) -> Result<bool, ItemError> {
    for filter in filters {
        if says(filter)? {
            return Ok(true);
        }
    }
    Ok(false)
}
