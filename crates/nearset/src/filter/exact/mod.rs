//! Near filters that miss nothing, for Hamming distance: whatever lies within the radius of a stored item is accepted.
//!
//! Claim: `contains_near` is true for every string within `radius` of an inserted one, always and not only probably, except by
//! a scan of samples, which misses as much as it states. What is accepted beyond the radius is what [`ExactNearFilter::acceptance_probability`] states.
//! Invariant: the stored bits are a function of the *set* of items and the spec, so merging is a union. The folds of a scan
//! are kept sorted and without repeats for that reason.
//! Not here: choosing a construction (`plan`), bytes on disk (`codec`). Balanced sampling (2014), the same promise by a
//! threshold, is a spec of a near filter.
//!
//! Four constructions, the scans in one file; where `n` items are stored:
//!
//! | construction | looks at | stores | suits |
//! |---|---|---|---|
//! | pigeonhole blocks | a ball of keys in each block | `blocks` keys per item | radii up to about a tenth of the bits |
//! | covering masks (Pagh 2016) | `2^(r+1) - 1` keys | as many keys per item | radii up to 6, long strings |
//! | folded scan | every stored fold | `width` bits per item | any radius, up to some millions of items |
//! | sampled scan (2006) | every stored sample | `width` bits per item | long strings, where some may be missed |

pub(crate) mod covering;
pub(crate) mod folds;
pub(crate) mod pigeonhole;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use nearset_theory::{binomial, zero_fn};

use self::{
    covering::Masks,
    folds::{Folder, Folds, Sampler},
    pigeonhole::Blocks,
};
use super::tables::{Place, Tables};
use crate::{
    ExactSpec, MergeError,
    error::SpecError,
    family::Key,
    item::{BatchError, Bits, Distance, Item, ItemError},
    spec::Construction,
};

/// Steps that the exact acceptance of a fold may take; strings for which it takes more are long enough for the mean.
const MOST_STEPS: u64 = 20_000_000;

/// A set of bit strings that knows whether anything within its radius was put into it, and never says no when it was.
#[derive(Clone)]
pub(crate) struct ExactNearFilter<'a> {
    spec: ExactSpec,
    /// Drawn when first needed: opening a small file must not take more memory than it has bytes. Shared by filters that
    /// differ in the size of their tables only.
    functions: Arc<OnceLock<Functions>>,
    store: Store<'a>,
    items: u64,
}

/// What is kept of the items.
#[derive(Clone)]
pub(crate) enum Store<'a> {
    /// Their keys, in one table a block or mask.
    Keys(Tables<'a>),
    /// Their folds.
    Folds(Folds<'a>),
}

/// What takes an item to its keys or its fold.
enum Functions {
    Pigeonhole(Blocks),
    Covering(Masks),
    FoldedScan(Folder),
    SampledScan(Sampler),
}

/// An item's keys or its fold, in room that is reused from item to item.
#[derive(Default)]
struct Sketch {
    keys: Vec<Option<Key>>,
    fold: Vec<u64>,
}

impl ExactNearFilter<'static> {
    /// The same filter for another one, what it keeps shared.
    pub(crate) fn share(&mut self) -> Self {
        let store = match &mut self.store {
            Store::Keys(tables) => Store::Keys(tables.share()),
            Store::Folds(folds) => Store::Folds(folds.share()),
        };
        Self { spec: self.spec, functions: Arc::clone(&self.functions), store, items: self.items }
    }

    /// An empty filter of a spec that was checked.
    ///
    /// # Errors
    /// If memory for it can't be had.
    pub(crate) fn of_checked(spec: ExactSpec) -> Result<Self, SpecError> {
        let store = match spec.construction.table() {
            Some(table) => Store::Keys(Tables::new(Place::new(table, spec.key_bits(), spec.seed))?),
            None => Store::Folds(Folds::new(spec.fold_words())),
        };
        Ok(Self::from_parts(spec, store, 0))
    }
}

/// Items hashed, and their lines fetched, ahead of those that are looked up.
const WINDOW: usize = 32;

impl<'a> ExactNearFilter<'a> {
    /// A filter from parts that fit together.
    pub(crate) fn from_parts(spec: ExactSpec, store: Store<'a>, items: u64) -> Self {
        debug_assert!(spec.check_possible().is_ok());
        Self { spec, functions: Arc::default(), store, items }
    }

    fn functions(&self) -> &Functions {
        self.functions.get_or_init(|| {
            let ExactSpec { bits, radius, seed, construction } = self.spec;
            let seed = seed.derive("functions", 0);
            match construction {
                Construction::Pigeonhole { blocks, table } => {
                    let cut = zero_fn::Pigeonhole::new(bits, radius, blocks);
                    Functions::Pigeonhole(Blocks::draw(cut.expect("the spec was checked"), table, seed))
                }
                Construction::Covering { .. } => Functions::Covering(Masks::draw(bits, radius, seed)),
                Construction::FoldedScan { width } => Functions::FoldedScan(Folder::draw(bits, width, seed)),
                Construction::SampledScan { width, .. } => Functions::SampledScan(Sampler::draw(bits, width, seed)),
            }
        })
    }

    /// An empty filter of a spec that differs in the size of its tables only. The two share their functions.
    pub(crate) fn beside(&self, spec: ExactSpec) -> Result<ExactNearFilter<'static>, SpecError> {
        spec.check_possible()?;
        let store = match (&self.store, spec.construction.table()) {
            (Store::Keys(tables), Some(table)) => Store::Keys(Tables::new(tables.place().with_table(table))?),
            _ => Store::Folds(Folds::new(spec.fold_words())),
        };
        Ok(ExactNearFilter::from_parts(spec, store, 0).sharing_functions_of(self))
    }

    pub(crate) fn sharing_functions_of(self, other: &ExactNearFilter<'_>) -> Self {
        Self { functions: Arc::clone(&other.functions), ..self }
    }

    /// Forgets all items.
    pub(crate) fn clear(&mut self) {
        match &mut self.store {
            Store::Keys(tables) => tables.clear(),
            Store::Folds(folds) => *folds = Folds::new(self.spec.fold_words()),
        }
        self.items = 0;
    }

    /// What the filter is.
    pub(crate) fn spec(&self) -> &ExactSpec {
        &self.spec
    }

    /// How many items were inserted, repeats and near ones included. A file may state any number, so that counting stops at the
    /// largest.
    pub(crate) fn len(&self) -> u64 {
        self.items
    }

    /// Bytes that keys or folds take.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.store {
            Store::Keys(tables) => tables.bits().len() / 8,
            Store::Folds(folds) => 8 * folds.rows().len() as u64,
        }
    }

    /// The item as a bit string of the right length.
    pub(crate) fn bits_of<'i>(&self, item: Item<'i>) -> Result<Bits<'i>, ItemError> {
        let bits = item.bits()?;
        bits.expect_len(self.spec.bits as usize)?;
        Ok(bits)
    }

    fn sketch(&self, item: Item<'_>, out: &mut Sketch) -> Result<(), ItemError> {
        let bits = self.bits_of(item)?;
        match self.functions() {
            Functions::Pigeonhole(blocks) => blocks.keys(bits, &mut out.keys),
            Functions::Covering(masks) => masks.keys(bits, &mut out.keys),
            Functions::FoldedScan(folder) => folder.fold(bits, &mut out.fold),
            Functions::SampledScan(sampler) => sampler.sample(bits, &mut out.fold),
        }
        Ok(())
    }

    fn contains_sketch(&self, sketch: &Sketch) -> bool {
        match (&self.store, self.functions()) {
            (Store::Keys(tables), Functions::Pigeonhole(blocks)) => blocks.any_near(&sketch.keys, tables),
            (Store::Keys(tables), _) => tables.hits_any(&sketch.keys),
            (Store::Folds(folds), _) => folds.any_within(&sketch.fold, self.within()),
        }
    }

    /// By how many bits folds or samples may differ.
    fn within(&self) -> u32 {
        self.spec.construction.scan(self.spec.radius).map_or(0, |(_, within)| within)
    }

    fn prefetch(&self, sketch: &Sketch) {
        if let Store::Keys(tables) = &self.store {
            let keys = sketch.keys.iter().enumerate();
            keys.for_each(|(table, key)| key.iter().for_each(|&key| tables.prefetch(table, key)));
        }
    }

    /// Inserts an item. True when nothing near was there before, like `HashSet::insert`.
    ///
    /// A folded scan keeps its folds sorted, so that each insertion moves half of them on average, about as much work as the
    /// scan that answers. [`Self::insert_all`] and [`Self::extend`] sort once.
    ///
    /// # Errors
    /// If the item is no bit string, or of another length; the filter is then unchanged.
    pub(crate) fn insert<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<bool, ItemError> {
        let mut sketch = Sketch::default();
        self.sketch(item.into(), &mut sketch)?;
        let near = self.contains_sketch(&sketch);
        match &mut self.store {
            Store::Keys(tables) => {
                tables.insert(&sketch.keys);
            }
            Store::Folds(folds) => folds.insert(&sketch.fold),
        }
        self.items = self.items.saturating_add(1);
        Ok(!near)
    }

    /// Whether something near was inserted. Never false when an item within the radius was.
    ///
    /// # Errors
    /// If the item is no bit string, or of another length.
    pub(crate) fn contains_near<'i>(&self, item: impl Into<Item<'i>>) -> Result<bool, ItemError> {
        let mut sketch = Sketch::default();
        self.sketch(item.into(), &mut sketch)?;
        Ok(self.contains_sketch(&sketch))
    }

    /// Inserts items in order; the answers are those of inserting one after the other.
    ///
    /// # Errors
    /// At the first item that is no bit string of the right length, whose position the error names; the items before it are
    /// inserted.
    pub(crate) fn insert_all<'i, I>(&mut self, items: I) -> Result<Vec<bool>, BatchError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let mut answers = Vec::new();
        let mut recent = Vec::new();
        let outcome = in_windows(self, items, |filter, sketch| {
            let near = filter.contains_sketch(sketch);
            let near = match &mut filter.store {
                Store::Keys(tables) => {
                    tables.insert(&sketch.keys);
                    near
                }
                Store::Folds(_) => {
                    let near = near || folds::any_within(&recent, &sketch.fold, filter.within());
                    recent.extend_from_slice(&sketch.fold);
                    near
                }
            };
            filter.items = filter.items.saturating_add(1);
            answers.push(!near);
        });
        if let Store::Folds(folds) = &mut self.store {
            folds.union(recent);
        }
        outcome.map(|()| answers)
    }

    /// Inserts items without asking what was near: the quickest way to fill a filter, a folded scan above all, where each
    /// answer would cost a pass over all folds.
    ///
    /// # Errors
    /// As [`Self::insert_all`].
    pub(crate) fn extend<'i, I>(&mut self, items: I) -> Result<(), BatchError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let mut recent = Vec::new();
        let outcome = in_windows(self, items, |filter, sketch| {
            match &mut filter.store {
                Store::Keys(tables) => {
                    tables.insert(&sketch.keys);
                }
                Store::Folds(_) => recent.extend_from_slice(&sketch.fold),
            }
            filter.items = filter.items.saturating_add(1);
        });
        if let Store::Folds(folds) = &mut self.store {
            folds.union(recent);
        }
        outcome
    }

    /// Queries items in order, fetching memory ahead of its use.
    ///
    /// # Errors
    /// At the first item that is no bit string of the right length, whose position the error names.
    pub(crate) fn contains_all<'i, I>(&self, items: I) -> Result<Vec<bool>, BatchError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let mut answers = Vec::new();
        let mut this = self;
        in_windows(&mut this, items, |filter, sketch| answers.push(filter.contains_sketch(sketch)))?;
        Ok(answers)
    }

    /// Takes in all items of another filter.
    ///
    /// # Errors
    /// If the specs differ, naming the first difference; the filter is then unchanged.
    pub(crate) fn merge(&mut self, other: &ExactNearFilter<'_>) -> Result<(), MergeError> {
        self.spec.expect_equal(&other.spec)?;
        match (&mut self.store, &other.store) {
            (Store::Keys(ours), Store::Keys(theirs)) => ours.merge(theirs),
            (Store::Folds(ours), Store::Folds(theirs)) => ours.union_sorted(theirs.rows()),
            _ => unreachable!("equal specs have equal stores"),
        }
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }

    /// The probability, as the filter is now, that a query at `distance` from one stored item is accepted: 1 up to the
    /// radius. Differences are taken to fall on random positions and the other items to be random strings; between
    /// whole distances it is linear.
    ///
    /// Beyond the radius a block, mask or fold may still be near though the whole is not, however large the tables are. To that
    /// come chance hits in the tables, and other items that happen to share a key with the query.
    pub(crate) fn acceptance_probability(&self, distance: Distance) -> f64 {
        let distance = distance.value().min(f64::from(self.spec.bits));
        let (whole, part) = (distance.floor(), distance.fract());
        let here = self.acceptance_at(whole as u32);
        if part == 0.0 { here } else { here + part * (self.acceptance_at(whole as u32 + 1) - here) }
    }

    /// The probability, as the filter is now, that a string is accepted which has nothing in common with any that is stored.
    pub(crate) fn unrelated_acceptance(&self) -> f64 {
        let missed = match (&self.store, self.functions()) {
            (Store::Keys(tables), Functions::Pigeonhole(blocks)) => {
                let missed = blocks.cut().blocks().enumerate().map(|(block, (length, radius))| {
                    libm::pow(1.0 - tables.random_hit(block, length), zero_fn::ball(length, radius))
                });
                missed.product()
            }
            (Store::Keys(tables), Functions::Covering(masks)) => {
                let missed = masks.weights().enumerate().map(|(mask, weight)| 1.0 - tables.random_hit(mask, weight));
                missed.product()
            }
            (Store::Keys(_), Functions::FoldedScan(_) | Functions::SampledScan(_)) => {
                unreachable!("a scan has no tables")
            }
            (Store::Folds(folds), _) => self.none_within(folds.len()),
        };
        1.0 - missed
    }

    /// The probability that a random string's fold or sample is near another's.
    fn random_within(&self) -> f64 {
        let ExactSpec { bits, radius, construction, .. } = self.spec;
        let (width, within) = construction.scan(radius).expect("folds are of a scan");
        binomial::cdf(width.min(bits), 0.5, within)
    }

    /// The probability that a random string is near none of so many others.
    fn none_within(&self, others: usize) -> f64 {
        // Where everything is near, the logarithm is infinite, and nothing times that is no number.
        if others == 0 { 1.0 } else { libm::exp(others as f64 * libm::log1p(-self.random_within())) }
    }

    fn acceptance_at(&self, distance: u32) -> f64 {
        let ExactSpec { bits, radius, construction, .. } = self.spec;
        if distance <= radius && !matches!(construction, Construction::SampledScan { .. }) {
            return 1.0;
        }
        match (&self.store, self.functions()) {
            (Store::Keys(tables), Functions::Pigeonhole(blocks)) => {
                let cut = blocks.cut();
                let chances = cut.blocks().enumerate().map(|(block, (length, radius))| {
                    1.0 - libm::pow(1.0 - tables.random_hit(block, length), zero_fn::ball(length, radius))
                });
                cut.acceptance(distance, &chances.collect::<Vec<_>>())
            }
            (Store::Keys(tables), Functions::Covering(masks)) => {
                let misses = masks.weights().enumerate().map(|(mask, weight)| 1.0 - tables.random_hit(mask, weight));
                1.0 - (1.0 - zero_fn::covering_acceptance(radius, distance)) * misses.product::<f64>()
            }
            (Store::Folds(folds), _) => {
                let others = folds.len().saturating_sub(1);
                let this = match construction {
                    Construction::SampledScan { width, within } => {
                        zero_fn::prefix_acceptance(bits, width, distance, within)
                    }
                    _ => {
                        let (width, _) = construction.scan(radius).expect("folds are of a scan");
                        let cells = width.min(bits);
                        let steps =
                            u64::from(bits).saturating_mul(u64::from(radius) + 1).saturating_mul(distance.into());
                        match steps {
                            ..=MOST_STEPS => zero_fn::fold_acceptance(bits, cells, distance, radius),
                            _ => zero_fn::mean_fold_acceptance(bits, cells, distance, radius),
                        }
                    }
                };
                1.0 - (1.0 - this) * self.none_within(others)
            }
            (Store::Keys(_), Functions::FoldedScan(_) | Functions::SampledScan(_)) => {
                unreachable!("a scan has no tables")
            }
        }
    }

    /// A copy that owns its tables, such as one of a memory-mapped filter that is to grow.
    pub(crate) fn into_owned(self) -> ExactNearFilter<'static> {
        let store = match self.store {
            Store::Keys(tables) => Store::Keys(tables.into_owned()),
            Store::Folds(folds) => Store::Folds(folds.into_owned()),
        };
        ExactNearFilter { spec: self.spec, functions: self.functions, store, items: self.items }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<ExactNearFilter<'static>, SpecError> {
        let store = match self.store {
            Store::Keys(tables) => Store::Keys(tables.try_into_owned()?),
            Store::Folds(folds) => Store::Folds(folds.try_into_owned()?),
        };
        Ok(ExactNearFilter { spec: self.spec, functions: self.functions, store, items: self.items })
    }

    /// Makes room for the folds of so many more items, so that inserting or merging them allocates nothing for what is kept.
    pub(crate) fn reserve(&mut self, items: u64) -> Result<(), SpecError> {
        match &mut self.store {
            Store::Keys(_) => Ok(()),
            Store::Folds(folds) => folds.reserve(items),
        }
    }

    pub(crate) fn store(&self) -> &Store<'a> {
        &self.store
    }
}

/// Lends a filter as it is borrowed, exclusively or not.
trait Lends<'a> {
    fn filter(&self) -> &ExactNearFilter<'a>;
}

impl<'a> Lends<'a> for ExactNearFilter<'a> {
    fn filter(&self) -> &ExactNearFilter<'a> {
        self
    }
}

impl<'a> Lends<'a> for &ExactNearFilter<'a> {
    fn filter(&self) -> &ExactNearFilter<'a> {
        self
    }
}

/// Sketches a window of items and fetches their lines, then visits each.
fn in_windows<'a, 'i, F: Lends<'a>, I>(
    filter: &mut F,
    items: I,
    mut each: impl FnMut(&mut F, &Sketch),
) -> Result<(), BatchError>
where
    I: IntoIterator,
    I::Item: Into<Item<'i>>,
{
    let mut sketches: [Sketch; WINDOW] = std::array::from_fn(|_| Sketch::default());
    let mut items = items.into_iter().enumerate();
    loop {
        let (mut sketched, mut outcome) = (0, Ok(()));
        for (sketch, (position, item)) in sketches.iter_mut().zip(&mut items) {
            if let Err(cause) = filter.filter().sketch(item.into(), sketch) {
                outcome = Err(BatchError { position, cause });
                break;
            }
            filter.filter().prefetch(sketch);
            sketched += 1;
        }
        sketches[..sketched].iter().for_each(|sketch| each(filter, sketch));
        if outcome.is_err() || sketched < WINDOW {
            return outcome;
        }
    }
}
