//! The near filter: every paper's filter in one structure.
//!
//! An item's family gives it one key a band. Inserting sets the key's bits in that band's table; a query counts the bands
//! that hit and accepts by the spec's [`Rule`].
//!
//! Claim: with chance hits `f` and band agreement `P(d)`, a query at distance `d` from one stored item is accepted with the
//! probability that [`Spec::acceptance_probability`] states. An item that was inserted is always accepted.
//! Invariant: table `i` is written only by band `i`, and bits are only ever set, so `merge` is OR.
//! Not here: choosing parameters (`plan`), bytes on disk (`codec`).

use std::sync::{Arc, OnceLock};

use super::tables::{Hits, Place, Run, Tables};
use crate::{
    BloomFilter, MergeError, Spec,
    error::SpecError,
    family::{Form, Functions, Hashed, Key, key_of_rows},
    item::{Distance, Item, ItemError},
    spec::{Decision, Hasher, Rule},
};

/// A set of items that knows whether anything near was put into it.
#[derive(Clone)]
pub(crate) struct NearFilter<'a> {
    spec: Spec,
    /// Drawn when first needed: opening a small file must not take more memory than it has bytes. Shared by filters that
    /// differ in the size of their tables only.
    functions: Arc<OnceLock<Arc<dyn Functions>>>,
    tables: Tables<'a>,
    verification: Option<BloomFilter<'a>>,
    items: u64,
    threshold: Threshold,
}

/// The number of hits in force, and until when.
#[derive(Debug, Clone, Copy)]
struct Threshold {
    /// `None` for rules of several steps.
    hits: Option<u32>,
    /// It changes when so many bits are set.
    until: u64,
}

impl Threshold {
    /// What the rule says when `ones` of `bits` are set.
    fn at(rule: &Rule, ones: u64, bits: u64) -> Self {
        let hits_at = |ones: u64| rule.threshold_at(ones as f64 / bits as f64);
        let hits = hits_at(ones);
        if !rule.follows_fill() || hits_at(bits) == hits {
            return Self { hits, until: u64::MAX };
        }
        let (mut same, mut other) = (ones, bits);
        while other - same > 1 {
            let middle = same + (other - same) / 2;
            if hits_at(middle) == hits {
                same = middle;
            } else {
                other = middle;
            }
        }
        Self { hits, until: other }
    }

    /// Brought up to date where bits were added.
    fn after(self, rule: &Rule, ones: u64, bits: u64) -> Self {
        if ones < self.until { self } else { Self::at(rule, ones, bits) }
    }

    /// Whether the bands that hit, `count` of them, are enough.
    fn accepts(self, rule: &Rule, count: u32, hits: &mut [bool]) -> bool {
        match (self.hits, rule.decision()) {
            (Some(need), _) => count >= need,
            (None, Decision::Steps(cascade)) => Rule::accepts(cascade.steps(), hits),
            (None, Decision::Promise { .. }) => unreachable!("a promise has a threshold"),
        }
    }
}

/// What decides on items whose bits were set, one after the other.
struct Answering<'f, 'v> {
    rule: &'f Rule,
    verification: &'f mut Option<BloomFilter<'v>>,
    threshold: &'f mut Threshold,
    items: &'f mut u64,
}

impl Answering<'_, '_> {
    /// Whether nothing near was there before the next item. Behind it, `ones` of `bits` are set.
    fn answer(&mut self, keys: &[Option<Key>], (hits, was_set): (u32, &mut [bool]), (ones, bits): (u64, u64)) -> bool {
        let near = self.threshold.accepts(self.rule, hits, was_set);
        if self.rule.follows_fill() {
            *self.threshold = self.threshold.after(self.rule, ones, bits);
        }
        let seen = self
            .verification
            .as_mut()
            .is_none_or(|verification| joint_key(keys).is_none_or(|joint| !verification.insert_hash(joint.get())));
        *self.items = self.items.saturating_add(1);
        !(near && seen)
    }
}

impl NearFilter<'static> {
    /// The same filter for another one, its tables shared.
    pub(crate) fn share(&mut self) -> Self {
        NearFilter {
            spec: self.spec.clone(),
            functions: Arc::clone(&self.functions),
            tables: self.tables.share(),
            verification: self.verification.as_mut().map(BloomFilter::share),
            items: self.items,
            threshold: self.threshold,
        }
    }

    /// An empty filter of a spec that was checked.
    ///
    /// # Errors
    /// If memory for it can't be had.
    pub(crate) fn of_checked(spec: Spec) -> Result<Self, SpecError> {
        let place = Place::new(spec.table, spec.rows_by_band(), spec.seed);
        Self::empty(spec, place)
    }

    fn empty(spec: Spec, place: Place) -> Result<Self, SpecError> {
        let tables = Tables::new(place)?;
        let verification = match spec.verification {
            Some(shape) => Some(BloomFilter::with_lines(shape.lines, shape.hashes, verification_seed(&spec))?),
            None => None,
        };
        Ok(Self::from_parts(spec, tables, verification, 0))
    }
}

pub(crate) fn verification_seed(spec: &Spec) -> crate::Seed {
    spec.seed.derive("verification", 0)
}

impl<'a> NearFilter<'a> {
    /// A filter from parts that fit together.
    pub(crate) fn from_parts(
        spec: Spec,
        tables: Tables<'a>,
        verification: Option<BloomFilter<'a>>,
        items: u64,
    ) -> Self {
        debug_assert!(spec.check_possible().is_ok());
        // Counting the ones of lines reads them all, which opening a memory map must not, unless the rule asks for it.
        let ones = if spec.rule.follows_fill() { tables.ones() } else { 0 };
        let threshold = Threshold::at(&spec.rule, ones, tables.num_bits());
        Self { spec, functions: Arc::default(), tables, verification, items, threshold }
    }

    fn functions(&self) -> &Arc<dyn Functions> {
        self.functions.get_or_init(|| Hasher::of_checked(&self.spec).0)
    }

    /// An empty filter of a spec that differs in the size of its tables only. The two share their functions.
    pub(crate) fn beside(&self, spec: Spec) -> Result<NearFilter<'static>, SpecError> {
        spec.check_possible()?;
        let place = self.tables.place().with_table(spec.table);
        Ok(NearFilter::empty(spec, place)?.sharing_functions_of(self))
    }

    pub(crate) fn sharing_functions_of(self, other: &NearFilter<'_>) -> Self {
        Self { functions: Arc::clone(&other.functions), ..self }
    }

    /// Forgets all items.
    pub(crate) fn clear(&mut self) {
        self.tables.clear();
        if let Some(verification) = &mut self.verification {
            verification.clear();
        }
        self.items = 0;
        self.threshold = Threshold::at(&self.spec.rule, 0, self.tables.num_bits());
    }

    /// What the filter is.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How many items were inserted, repeats and near ones included. A file may state any number, so that counting stops at the
    /// largest.
    pub(crate) fn len(&self) -> u64 {
        self.items
    }

    /// What hashes items for this filter, apart from it: for threads that hash while another one inserts.
    pub(crate) fn hasher(&self) -> Hasher {
        Hasher(self.functions().clone())
    }

    /// Hashes an item for the `_hashed` methods. The same for all filters of equal spec, so that items can be hashed on
    /// many threads and inserted on one.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub(crate) fn hash<'i>(&self, item: impl Into<Item<'i>>, out: &mut Hashed) -> Result<(), ItemError> {
        let item = item.into();
        // Drawing functions may take as long as an item of the stated length is worth, which must be there first.
        if self.functions.get().is_none() {
            match self.spec.family.form() {
                Form::Bits(length) => item.bits()?.expect_len(length as usize)?,
                Form::Symbols(length) => item.symbols()?.expect_len(length as usize)?,
                Form::Vector(_) | Form::Set(_) | Form::Weighted(_) => {}
            }
        }
        self.functions().hash(item, out)
    }

    fn hashed<'i>(&self, item: impl Into<Item<'i>>) -> Result<Hashed, ItemError> {
        let mut hashed = Hashed::default();
        self.hash(item, &mut hashed)?;
        Ok(hashed)
    }

    /// Inserts an item. True when nothing near was there before, like `HashSet::insert`.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash; the filter is then unchanged.
    pub(crate) fn insert<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<bool, ItemError> {
        let hashed = self.hashed(item)?;
        Ok(self.insert_hashed(&hashed))
    }

    /// Whether something near was inserted.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub(crate) fn contains_near<'i>(&self, item: impl Into<Item<'i>>) -> Result<bool, ItemError> {
        let hashed = self.hashed(item)?;
        Ok(self.contains_hashed(&hashed))
    }

    /// [`Self::insert`] of an item hashed before.
    pub(crate) fn insert_hashed(&mut self, hashed: &Hashed) -> bool {
        let mut near;
        match self.threshold.hits {
            Some(threshold) if self.spec.probing.is_none() => near = self.tables.insert(&hashed.keys) >= threshold,
            _ => {
                near = self.contains_hashed(hashed);
                self.tables.insert(&hashed.keys);
            }
        }
        self.refresh_threshold();
        if let Some(verification) = &mut self.verification
            && let Some(joint) = joint_key(&hashed.keys)
        {
            near &= !verification.insert_hash(joint.get());
        }
        self.items = self.items.saturating_add(1);
        !near
    }

    fn refresh_threshold(&mut self) {
        if self.spec.rule.follows_fill() {
            self.threshold = self.threshold.after(&self.spec.rule, self.tables.ones(), self.tables.num_bits());
        }
    }

    /// [`Self::contains_near`] of an item hashed before.
    pub(crate) fn contains_hashed(&self, hashed: &Hashed) -> bool {
        let Some(threshold) = self.threshold.hits else {
            let mut hits = self.tables.hits_by_band(&hashed.keys);
            return self.threshold.accepts(&self.spec.rule, count(&hits), &mut hits) && self.verified(&hashed.keys);
        };
        if self.spec.probing.is_some() {
            return self.contains_probing(hashed, threshold);
        }
        self.tables.count_hits(&hashed.keys) >= threshold && self.verified(&hashed.keys)
    }

    /// How many bands hit, neighbouring buckets not counted.
    pub(crate) fn count_hits(&self, hashed: &Hashed) -> u32 {
        self.tables.count_hits(&hashed.keys)
    }

    /// Whether an item hashed before is near something, and how many bands hit, which is counted once.
    pub(crate) fn find_hashed(&self, hashed: &Hashed) -> (bool, u32) {
        let hits = self.tables.count_hits(&hashed.keys);
        let near = match self.threshold.hits {
            Some(threshold) if self.spec.probing.is_none() => hits >= threshold && self.verified(&hashed.keys),
            _ => self.contains_hashed(hashed),
        };
        (near, hits)
    }

    fn verified(&self, keys: &[Option<Key>]) -> bool {
        match &self.verification {
            None => true,
            Some(verification) => joint_key(keys).is_some_and(|joint| verification.contains_hash(joint.get())),
        }
    }

    /// Where at most `probing.bands` bands miss, their neighbouring buckets stand in for them, each choice tried through
    /// verification if there is any.
    fn contains_probing(&self, hashed: &Hashed, threshold: u32) -> bool {
        let probing = self.spec.probing.expect("the caller checked");
        let hits = self.tables.hits_by_band(&hashed.keys);
        let missing: Vec<usize> = (0..hits.len()).filter(|&band| !hits[band] && hashed.keys[band].is_some()).collect();
        let hit = hits.iter().filter(|&&hit| hit).count() as u32;
        if hit >= threshold {
            return self.verified(&hashed.keys);
        }
        if threshold - hit > probing.bands {
            return false;
        }
        let stand_ins: Vec<(usize, Vec<Key>)> = missing
            .into_iter()
            .map(|band| {
                let mut found = Vec::new();
                self.functions().neighbours(hashed, band, probing.reach, &mut |key| {
                    if self.tables.contains(band, key) {
                        found.push(key);
                    }
                });
                (band, found)
            })
            .filter(|(_, found)| !found.is_empty())
            .collect();
        if self.verification.is_none() {
            return hit + (stand_ins.len() as u32).min(probing.bands) >= threshold;
        }
        // Verification needs all bands, so every missing one must have a stand-in.
        hit + stand_ins.len() as u32 == self.spec.rule.bands()
            && self.any_choice_verified(&mut hashed.keys.clone(), &stand_ins)
    }

    fn any_choice_verified(&self, keys: &mut [Option<Key>], stand_ins: &[(usize, Vec<Key>)]) -> bool {
        match stand_ins {
            [] => self.verified(keys),
            [(band, choices), rest @ ..] => choices.iter().any(|&choice| {
                keys[*band] = Some(choice);
                self.any_choice_verified(keys, rest)
            }),
        }
    }

    /// Inserts items hashed before, whose keys are given one item after the other: `each` gets whether nothing near was there, and how
    /// many bands hit.
    ///
    /// Neighbouring buckets are not tried, which keys alone do not tell.
    ///
    /// # Panics
    /// If the keys are not a whole number of items'.
    pub(crate) fn insert_keys(&mut self, keys: &[Option<Key>], mut each: impl FnMut(bool, u32)) {
        self.expect_whole(keys);
        let mut answering = Answering {
            rule: &self.spec.rule,
            verification: &mut self.verification,
            threshold: &mut self.threshold,
            items: &mut self.items,
        };
        let bits = self.tables.num_bits();
        self.tables.insert_ahead(keys, |item, was_set, ones| {
            let hits = count(was_set);
            each(answering.answer(item, (hits, was_set), (ones, bits)), hits);
        });
    }

    /// [`Self::insert_keys`], by `parts` tasks that can be done at the same time, if bands can be told apart in the tables: `run` does them
    /// all.
    pub(crate) fn insert_keys_by(
        &mut self,
        keys: &[Option<Key>],
        (parts, run): (usize, Run<'_>),
        mut each: impl FnMut(bool, u32),
    ) {
        self.expect_whole(keys);
        let (bits, mut ones) = (self.tables.num_bits(), self.tables.ones());
        // A rule of several steps asks which bands hit.
        let hits = self.threshold.hits.and_then(|_| self.tables.insert_by(keys, parts, run));
        let Some(hits) = hits else { return self.insert_keys(keys, each) };
        let mut answering = Answering {
            rule: &self.spec.rule,
            verification: &mut self.verification,
            threshold: &mut self.threshold,
            items: &mut self.items,
        };
        for (item, Hits { hits, new }) in keys.chunks(self.spec.rule.bands() as usize).zip(hits) {
            ones += u64::from(new);
            each(answering.answer(item, (hits, &mut []), (ones, bits)), hits);
        }
    }

    /// Looks up items hashed before, whose keys are given one item after the other: `each` gets whether something near was there, and
    /// how many bands hit.
    ///
    /// # Panics
    /// As [`Self::insert_keys`].
    pub(crate) fn contains_keys(&self, keys: &[Option<Key>], mut each: impl FnMut(bool, u32)) {
        self.expect_whole(keys);
        self.tables.contains_ahead(keys, |item, set| {
            let hits = count(set);
            each(self.threshold.accepts(&self.spec.rule, hits, set) && self.verified(item), hits);
        });
    }

    fn expect_whole(&self, keys: &[Option<Key>]) {
        assert!(keys.len().is_multiple_of(self.spec.rule.bands() as usize), "the keys of an item are cut off");
    }

    /// Takes in all items of another filter.
    ///
    /// # Errors
    /// If the specs differ, naming the first difference; the filter is then unchanged.
    pub(crate) fn merge(&mut self, other: &NearFilter<'_>) -> Result<(), MergeError> {
        self.spec.expect_equal(&other.spec)?;
        self.tables.merge(&other.tables);
        if let (Some(ours), Some(theirs)) = (&mut self.verification, &other.verification) {
            ours.merge(theirs)?;
        }
        self.items = self.items.saturating_add(other.items);
        self.refresh_threshold();
        Ok(())
    }

    /// The chance that a key which was not inserted hits a table, as the tables are now.
    pub(crate) fn chance_hit(&self) -> f64 {
        self.tables.chance_hit()
    }

    /// The probability, as the tables are now, that a query at `distance` from one stored item is accepted.
    ///
    /// It counts agreement with that one item and chance hits. Where unrelated items share keys with the query more often
    /// than chance (few rows, or texts with common phrases), state that in a far model: see `plan`.
    pub(crate) fn acceptance_probability(&self, distance: Distance) -> f64 {
        let false_verification = self.verification.as_ref().map_or(1.0, BloomFilter::false_positive_rate);
        self.spec.acceptance_probability(distance, self.chance_hit(), false_verification)
    }

    /// The same for a query that has nothing in common with any stored item.
    pub(crate) fn unrelated_acceptance(&self) -> f64 {
        let false_verification = self.verification.as_ref().map_or(1.0, BloomFilter::false_positive_rate);
        self.spec.unrelated_acceptance(self.chance_hit(), false_verification)
    }

    /// A copy that owns its tables, such as one of a memory-mapped filter that is to grow.
    pub(crate) fn into_owned(self) -> NearFilter<'static> {
        NearFilter {
            spec: self.spec,
            functions: self.functions,
            tables: self.tables.into_owned(),
            verification: self.verification.map(BloomFilter::into_owned),
            items: self.items,
            threshold: self.threshold,
        }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    ///
    /// # Errors
    /// If memory for it can't be had.
    pub(crate) fn try_into_owned(self) -> Result<NearFilter<'static>, SpecError> {
        Ok(NearFilter {
            spec: self.spec,
            functions: self.functions,
            tables: self.tables.try_into_owned()?,
            verification: self.verification.map(BloomFilter::try_into_owned).transpose()?,
            items: self.items,
            threshold: self.threshold,
        })
    }

    /// Whether an item was hashed before, or anything else needed the functions.
    pub(crate) fn has_functions(&self) -> bool {
        self.functions.get().is_some()
    }

    pub(crate) fn tables(&self) -> &Tables<'a> {
        &self.tables
    }

    pub(crate) fn verification(&self) -> Option<&BloomFilter<'a>> {
        self.verification.as_ref()
    }
}

/// The tuple of all keys as one, if there are all.
fn joint_key(keys: &[Option<Key>]) -> Option<Key> {
    if keys.contains(&None) {
        return None;
    }
    Some(key_of_rows(keys.iter().flatten().map(|key| key.get())))
}

/// How many bands hit.
fn count(hits: &[bool]) -> u32 {
    hits.iter().map(|&hit| u32::from(hit)).sum()
}
