//! A filter of texts that grows.
//!
//! Unlike the library's `Generations`, it keeps grown filters emptier than it was told: a run over a corpus whose size is guessed grows
//! often, and asks every generation for every text.
//!
//! A filter's size is fixed when it is made. Where it proves too small, another one of twice the capacity is put beside it
//! and takes all further items; an item is near if any generation says so. All generations share their functions, so an
//! item is hashed once.
//!
//! Claim: growing costs nothing of the promise to near items, since the generation that holds the neighbour keeps it at
//! every load, and the other generations can only add hits. To far items it adds the chance hits of the older generations,
//! which [`Generations::acceptance`] counts. A table as full as a single filter's is hit by chance in a fifth of its bands,
//! and a few in ten thousand unrelated items then pass; over many generations that would add up. So all but a first one whose
//! size was known are kept emptier ([`GROWN_FILL`]), where it is about one in 100,000, for about twice the memory.
//! Invariant: where a generation ends depends on the items before and on nothing else, batches and threads included.

use nearset::family::Key;
use nearset::filter::{Hasher, SpecError};
use nearset::plan::curve::amplify;
use nearset::plan::{TextDedup, TextDedupError};
use nearset::{Distance, NearFilter, Spec};

/// A generation is full when its fill is that of its capacity and this much more: a filter that was made for exactly so many
/// items must not grow at the last of them.
const TOLERANCE: f64 = 1.02;

/// The fill of a generation that came by growing, or that is of guessed size, when it is full.
const GROWN_FILL: f64 = 0.12;

/// Tables for fewer items than this are so small that a few items decide their fill.
const LEAST_CAPACITY: u64 = 256;

/// How an item was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub near: bool,
    /// The most bands that hit in one generation.
    pub hits: u32,
}

/// Filters of growing size, of which the last takes the items.
pub(crate) struct Generations {
    wanted: TextDedup,
    capacity: u64,
    /// Whether the capacity is a guess, so that growing is to be expected.
    guessed: bool,
    filters: Vec<NearFilter<'static>>,
    answers: Vec<Answer>,
}

impl Generations {
    pub fn new(wanted: TextDedup, capacity: u64, guessed: bool) -> Result<Self, TextDedupError> {
        let mut generations = Self::from_filters(wanted, capacity, guessed, Vec::new());
        generations.filters.push(NearFilter::from_spec(generations.spec(0)?)?);
        Ok(generations)
    }

    /// Puts together what was saved.
    pub fn from_filters(wanted: TextDedup, capacity: u64, guessed: bool, filters: Vec<NearFilter<'static>>) -> Self {
        Self { wanted, capacity: capacity.max(LEAST_CAPACITY), guessed, filters, answers: Vec::new() }
    }

    /// The fill of a generation when it holds what it is made for.
    fn planned_fill(&self, generation: usize) -> f64 {
        let single = self.wanted.planned_fill();
        if generation == 0 && !self.guessed { single } else { GROWN_FILL.min(single) }
    }

    /// The spec of a generation. A spec's capacity is told at the fill of a single filter, and it is scaled to another.
    pub fn spec(&self, generation: usize) -> Result<Spec, TextDedupError> {
        let scale = (1.0 - self.wanted.planned_fill()).ln() / (1.0 - self.planned_fill(generation)).ln();
        self.wanted.spec((self.capacity_of(generation) as f64 * scale).ceil() as u64)
    }

    pub fn hasher(&self) -> Hasher {
        self.filters[0].hasher()
    }

    pub fn filters(&self) -> &[NearFilter<'static>] {
        &self.filters
    }

    pub fn into_filters(self) -> Vec<NearFilter<'static>> {
        self.filters
    }

    /// How many items generation `i` is made for.
    pub fn capacity_of(&self, generation: usize) -> u64 {
        self.capacity.saturating_mul(1 << generation.min(40))
    }

    pub fn bands(&self) -> usize {
        self.filters[0].spec().rule.bands() as usize
    }

    pub fn bytes(&self) -> u64 {
        self.filters.iter().map(|filter| filter.spec().bytes()).sum()
    }

    /// The fill is looked at whenever the last generation holds a multiple of this.
    fn interval(&self) -> u64 {
        (self.capacity_of(self.filters.len() - 1) / 64).clamp(1, 4096)
    }

    /// Inserts items in order, their keys one after the other, and answers for each.
    ///
    /// # Errors
    /// If there is no memory to grow.
    pub fn insert(&mut self, mut keys: &[Option<Key>]) -> Result<&[Answer], SpecError> {
        self.answers.clear();
        let bands = self.bands();
        while !keys.is_empty() {
            let interval = self.interval();
            let Some((newest, older)) = self.filters.split_last_mut() else { break };
            let room = (interval - newest.len() % interval).min((keys.len() / bands) as u64) as usize;
            let (now, later) = keys.split_at(room * bands);
            keys = later;
            let from = self.answers.len();
            newest.insert_keys_counting(now, |new, hits| self.answers.push(Answer { near: !new, hits }));
            for filter in older {
                let mut answers = self.answers[from..].iter_mut();
                filter.contains_keys_counting(now, |near, hits| {
                    if let Some(answer) = answers.next() {
                        answer.near |= near;
                        answer.hits = answer.hits.max(hits);
                    }
                });
            }
            if newest.len().is_multiple_of(interval) && newest.fill() >= self.fill_when_full() {
                self.grow()?;
            }
        }
        Ok(&self.answers)
    }

    /// The fill at which the newest generation is followed by another.
    pub fn fill_when_full(&self) -> f64 {
        1.0 - (1.0 - self.planned_fill(self.filters.len() - 1)).powf(TOLERANCE)
    }

    fn grow(&mut self) -> Result<(), SpecError> {
        let spec = match self.spec(self.filters.len()) {
            Ok(spec) => spec,
            Err(TextDedupError::Spec(error)) => return Err(error),
            // The wishes made a filter before, and the capacity is not among what they can be refused for.
            Err(_) => self.filters[self.filters.len() - 1].spec().clone(),
        };
        self.filters.push(NearFilter::from_spec(spec)?);
        Ok(())
    }

    /// The probability, as the filters are now, that an item is taken for a duplicate whose nearest earlier one lies at
    /// `distance`, in the generation where that is worst.
    pub fn acceptance(&self, distance: Distance) -> f64 {
        let farthest = Distance::new(1.0).expect("one is a distance");
        let at =
            |distance| self.filters.iter().map(|filter| filter.acceptance_probability(distance)).collect::<Vec<_>>();
        amplify::any_filter(&at(distance), &at(farthest)).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearset::Seed;
    use nearset::family::Hashed;

    fn keys(generations: &Generations, numbers: std::ops::Range<u64>) -> Vec<Option<Key>> {
        let (hasher, mut hashed, mut keys) = (generations.hasher(), Hashed::new(), Vec::new());
        for number in numbers {
            let set: Vec<u64> = (0..40)
                .map(|i| u64::from_le_bytes(Seed::new(number).derive("x", i).to_bytes()[..8].try_into().unwrap()))
                .collect();
            let mut set = set;
            set.sort_unstable();
            hasher.hash(&set[..], &mut hashed).unwrap();
            keys.extend_from_slice(&hashed.keys);
        }
        keys
    }

    #[test]
    fn growing_forgets_nothing_and_does_not_depend_on_batches() {
        let mut whole = Generations::new(TextDedup::default(), 100, false).unwrap();
        let all = keys(&whole, 0..1000);
        let answers = whole.insert(&all).unwrap().to_vec();
        // The first generation is as full as a single filter: of the 900 items behind it, some 0.4 are taken for near.
        assert!(answers.iter().filter(|answer| answer.near).count() <= 3, "unrelated items are new");
        assert!((2..=3).contains(&whole.filters().len()), "{} generations", whole.filters().len());
        let mut pieces = Generations::new(TextDedup::default(), 100, false).unwrap();
        let mut together = Vec::new();
        for piece in all.chunks(pieces.bands() * 7) {
            together.extend_from_slice(pieces.insert(piece).unwrap());
        }
        assert_eq!(together, answers);
        assert!(whole.insert(&all).unwrap().iter().all(|answer| answer.near), "every item is found again");
    }

    #[test]
    fn a_filter_of_the_right_size_does_not_grow() {
        for capacity in [1, 50, 256, 1000] {
            let mut exact = Generations::new(TextDedup::default(), capacity, false).unwrap();
            let all = keys(&exact, 0..capacity);
            exact.insert(&all).unwrap();
            assert_eq!(exact.filters().len(), 1, "at {capacity}");
        }
    }

    #[test]
    fn growth_keeps_the_near_promise() {
        let wanted = TextDedup::default();
        let mut grown = Generations::new(wanted, 100, false).unwrap();
        let all = keys(&grown, 0..1200);
        grown.insert(&all).unwrap();
        let at = |similarity: f64| grown.acceptance(Distance::new(1.0 - similarity).unwrap());
        assert!(grown.filters().len() > 1);
        assert!(at(wanted.near) >= 1.0 - wanted.max_false_negative);
        assert!(at(wanted.far) <= 1.1 * wanted.max_false_positive, "{}", at(wanted.far));
        assert!(at(0.0) < 1e-3, "{}", at(0.0));
        let mut guessed = Generations::new(wanted, 100, true).unwrap();
        guessed.insert(&all).unwrap();
        assert!(guessed.filters().len() > 1);
        let unrelated = guessed.acceptance(Distance::new(1.0).unwrap());
        assert!(unrelated < 2e-5, "{unrelated}");
    }
}
