//! Many items at once: all are hashed before the first is inserted, and memory is fetched ahead of its use.
//!
//! Claim: the answers are those of one insertion after the other, wherever generations end; and a batch with an item that has no hash,
//! or one for which a filter has no room on its terms, or the system no memory, changes nothing.

use super::{Filter, Generation, InsertError, NearFilter, ends::new_bits, near_filters, tables::Run};
use crate::{
    Item, ItemError,
    family::{Hashed, Key},
    item::BatchError,
};

/// What a filter says of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// Whether something near was there.
    pub near: bool,
    /// The number of bands that hit, in the generation where most did, the newest of equals.
    pub hits: u32,
    /// The number of bands that there are; an exact near filter has none.
    pub bands: u32,
    /// Bits of that generation that were set before the item; `None` where a key is several bits, or there are no keys.
    pub set_bits: Option<u64>,
}

impl Match {
    /// Adds what another generation says.
    pub(super) fn add(&mut self, near: bool, hits: u32, filter: &NearFilter<'_>) {
        self.near |= near;
        if hits > self.hits || self.bands == 0 {
            (self.hits, self.bands, self.set_bits) = (hits, filter.spec().rule.bands(), set_bits(filter));
        }
    }
}

/// A batch as it is inserted.
enum Hashes<'i> {
    /// Keys, one item's after the other's.
    Flat(Vec<Option<Key>>),
    /// Items with what probing needs.
    Each(Vec<Hashed>),
    /// Items themselves, of the right kind and length.
    Items(Vec<Item<'i>>),
}

impl Filter<'_> {
    /// Hashes all items, for answers or without.
    fn hash_all<'i, I>(&self, items: I, answers: bool) -> Result<Hashes<'i>, BatchError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let items = items.into_iter().map(Into::into).enumerate();
        let at = |position: usize| move |cause: ItemError| BatchError { position, cause };
        Ok(match &self.filters[0] {
            Generation::Near(filter) if filter.spec().probing.is_none() || !answers => {
                let (mut room, mut keys) = (Hashed::default(), Vec::new());
                for (position, item) in items {
                    filter.hash(item, &mut room).map_err(at(position))?;
                    keys.extend_from_slice(&room.keys);
                }
                Hashes::Flat(keys)
            }
            Generation::Near(filter) => Hashes::Each(
                items
                    .map(|(position, item)| {
                        let mut hashed = Hashed::default();
                        filter.hash(item, &mut hashed).map_err(at(position))?;
                        Ok(hashed)
                    })
                    .collect::<Result<_, BatchError>>()?,
            ),
            Generation::Exact(filter) => Hashes::Items(
                items
                    .map(|(position, item)| filter.bits_of(item).map(Item::Bits).map_err(at(position)))
                    .collect::<Result<_, BatchError>>()?,
            ),
        })
    }

    /// Inserts items in order; the answers are those of inserting one after the other.
    ///
    /// # Errors
    /// If an item has no hash, the filter refuses because all of them would be too many, they might make it grow more often than
    /// it may, or there is no memory to grow: nothing is inserted then.
    pub fn insert_all<'i, I>(&mut self, items: I) -> Result<Vec<bool>, InsertError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let hashes = self.hash_all(items, true);
        let inserted = hashes.map_err(InsertError::from).and_then(|hashes| self.insert_hashes(hashes));
        self.release();
        inserted
    }

    fn insert_hashes(&mut self, hashes: Hashes<'_>) -> Result<Vec<bool>, InsertError> {
        match hashes {
            Hashes::Flat(keys) => {
                let found = self.insert_whole_keys(&keys, None)?;
                Ok(found.into_iter().map(|found| !found.near).collect())
            }
            Hashes::Each(all) => {
                self.expect_room(all.len() as u64, |newest| {
                    all.iter().map(|hashed| new_bits(&hashed.keys, newest.count_hits(hashed))).sum()
                })?;
                self.reserve(all.len() as u64)?;
                all.iter().map(|hashed| self.insert_hashed(hashed)).collect()
            }
            Hashes::Items(items) => {
                self.expect_room(items.len() as u64, |_| 0)?;
                self.reserve(items.len() as u64)?;
                self.insert_bits(&items)
            }
        }
    }

    fn insert_bits(&mut self, mut items: &[Item<'_>]) -> Result<Vec<bool>, InsertError> {
        let mut answers = Vec::with_capacity(items.len());
        while !items.is_empty() {
            let now = items.split_off(..self.next_part(items.len())?).unwrap_or_default();
            let from = answers.len();
            let Some((newest, older)) = self.filters.split_last_mut() else { break };
            for (i, filter) in std::iter::once(newest).chain(older).enumerate() {
                let Generation::Exact(filter) = filter else { unreachable!("all generations are of one kind") };
                if i == 0 {
                    answers.extend(filter.insert_all(now.iter().copied())?);
                } else {
                    let near = filter.contains_all(now.iter().copied())?;
                    answers[from..].iter_mut().zip(near).for_each(|(new, near)| *new &= !near);
                }
            }
        }
        Ok(answers)
    }

    /// Makes room, and says how many of the next items go into the newest generation.
    fn next_part(&mut self, items: usize) -> Result<usize, InsertError> {
        self.make_room()?;
        Ok(usize::try_from(self.until_full()).unwrap_or(usize::MAX).min(items))
    }

    /// Inserts items without saying what was near: the quickest way to fill a filter, above all an exact one that compares with
    /// every item it holds.
    ///
    /// # Errors
    /// As [`Self::insert_all`].
    pub fn extend<'i, I>(&mut self, items: I) -> Result<(), InsertError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        let hashes = self.hash_all(items, false);
        let inserted = hashes.map_err(InsertError::from).and_then(|hashes| match hashes {
            Hashes::Items(items) => self.extend_bits(&items),
            hashes => self.insert_hashes(hashes).map(drop),
        });
        self.release();
        inserted
    }

    fn extend_bits(&mut self, mut items: &[Item<'_>]) -> Result<(), InsertError> {
        self.expect_room(items.len() as u64, |_| 0)?;
        self.reserve(items.len() as u64)?;
        while !items.is_empty() {
            let now = items.split_off(..self.next_part(items.len())?).unwrap_or_default();
            if let Generation::Exact(newest) = self.newest_mut() {
                newest.extend(now.iter().copied())?;
            }
        }
        Ok(())
    }

    /// Queries items in order.
    ///
    /// # Errors
    /// At the first item that has no hash, whose position the error names.
    pub fn contains_all<'i, I>(&self, items: I) -> Result<Vec<bool>, BatchError>
    where
        I: IntoIterator,
        I::Item: Into<Item<'i>>,
    {
        Ok(match self.hash_all(items, true)? {
            Hashes::Flat(keys) => self.count(&keys).into_iter().map(|found| found.near).collect(),
            Hashes::Each(all) => {
                let near = |hashed| near_filters(self.known()).any(|filter| filter.contains_hashed(hashed));
                all.iter().map(near).collect()
            }
            Hashes::Items(items) => {
                let mut answers = vec![false; items.len()];
                for filter in self.known() {
                    let Generation::Exact(filter) = filter else { unreachable!("all generations are of one kind") };
                    let near = filter.contains_all(items.iter().copied())?;
                    answers.iter_mut().zip(near).for_each(|(answer, near)| *answer |= near);
                }
                answers
            }
        })
    }

    /// Inserts items hashed elsewhere, and says what was there before each: their keys are given one item after the other.
    ///
    /// How many bands hit, and how full the tables were, is for filters that are [slices](crate::Spec::slice) of one.
    ///
    /// # Errors
    /// If the keys are not those of whole items, or are not enough for this filter; else as [`Self::insert_all`].
    pub fn insert_keys(&mut self, keys: &[Option<Key>]) -> Result<Vec<Match>, InsertError> {
        let inserted = self.expect_keys(keys).and_then(|()| self.insert_whole_keys(keys, None));
        self.release();
        inserted
    }

    /// [`Self::insert_keys`], by `parts` tasks that can be done at the same time, each for some of the bands: `run` does them all, and may
    /// be called several times.
    ///
    /// # Errors
    /// As [`Self::insert_keys`].
    pub fn insert_keys_by(
        &mut self,
        keys: &[Option<Key>],
        parts: usize,
        mut run: impl for<'t> FnMut(Vec<Box<dyn FnOnce() + Send + 't>>),
    ) -> Result<Vec<Match>, InsertError> {
        let run = Some((parts, &mut run as Run<'_>)).filter(|_| parts > 1);
        let inserted = self.expect_keys(keys).and_then(|()| self.insert_whole_keys(keys, run));
        self.release();
        inserted
    }

    fn insert_whole_keys(
        &mut self,
        mut keys: &[Option<Key>],
        mut run: Option<(usize, Run<'_>)>,
    ) -> Result<Vec<Match>, InsertError> {
        let Generation::Near(first) = &self.filters[0] else { unreachable!("only bands have keys") };
        let bands = first.spec().rule.bands() as usize;
        self.expect_room((keys.len() / bands) as u64, |newest| {
            let (mut items, mut bits) = (keys.chunks(bands), 0);
            newest.contains_keys(keys, |_, hits| bits += items.next().map_or(0, |item| new_bits(item, hits)));
            bits
        })?;
        self.reserve((keys.len() / bands) as u64)?;
        let mut answers = Vec::with_capacity(keys.len() / bands);
        while !keys.is_empty() {
            let part = self.next_part(keys.len() / bands)?;
            let now = keys.split_off(..part * bands).unwrap_or_default();
            let from = answers.len();
            if let Generation::Near(newest) = self.newest_mut() {
                let run = run.as_mut().map(|(parts, run)| (*parts, &mut **run as Run<'_>));
                insert_counting(newest, now, run, &mut answers);
            }
            for older in near_filters(self.older()).rev() {
                join_counting(older, now, &mut answers[from..]);
            }
        }
        Ok(answers)
    }

    /// Looks up items hashed elsewhere: their keys are given one item after the other.
    ///
    /// # Errors
    /// If the keys are not those of whole items, or are not enough for this filter.
    pub fn contains_keys(&self, keys: &[Option<Key>]) -> Result<Vec<Match>, InsertError> {
        self.expect_keys(keys)?;
        Ok(self.count(keys))
    }

    fn count(&self, keys: &[Option<Key>]) -> Vec<Match> {
        let mut answers = Vec::new();
        if self.known().is_empty() {
            let bands = self.bands();
            answers.resize(keys.len() / bands as usize, Match { near: false, hits: 0, bands, set_bits: Some(0) });
        }
        for filter in near_filters(self.known()).rev() {
            if answers.is_empty() {
                let (bands, set_bits) = (filter.spec().rule.bands(), set_bits(filter));
                filter.contains_keys(keys, |near, hits| answers.push(Match { near, hits, bands, set_bits }));
            } else {
                join_counting(filter, keys, &mut answers);
            }
        }
        answers
    }

    /// Checks that these are keys of whole items which this filter can be asked by.
    fn expect_keys(&self, keys: &[Option<Key>]) -> Result<(), InsertError> {
        let Generation::Near(filter) = &self.filters[0] else { return Err(InsertError::NoBands) };
        if filter.spec().probing.is_some() {
            return Err(InsertError::Probing);
        }
        let bands = filter.spec().rule.bands();
        if !keys.len().is_multiple_of(bands as usize) {
            return Err(InsertError::CutOff { found: keys.len(), bands });
        }
        Ok(())
    }
}

fn set_bits(filter: &NearFilter<'_>) -> Option<u64> {
    filter.tables().counts_ones().then(|| filter.tables().ones())
}

fn insert_counting(
    filter: &mut NearFilter<'_>,
    keys: &[Option<Key>],
    run: Option<(usize, Run<'_>)>,
    answers: &mut Vec<Match>,
) {
    let bands = filter.spec().rule.bands();
    let mut items = keys.chunks(bands as usize);
    let mut set_bits = set_bits(filter);
    let each = |new: bool, hits| {
        answers.push(Match { near: !new, hits, bands, set_bits });
        let item = items.next().unwrap_or_default();
        set_bits = set_bits.map(|bits| bits + new_bits(item, hits));
    };
    match run {
        Some(run) => filter.insert_keys_by(keys, run, each),
        None => filter.insert_keys(keys, each),
    }
}

/// Adds what an older generation says.
fn join_counting(filter: &NearFilter<'_>, keys: &[Option<Key>], answers: &mut [Match]) {
    let (mut answers, set_bits) = (answers.iter_mut(), set_bits(filter));
    filter.contains_keys(keys, |near, hits| {
        if let Some(answer) = answers.next() {
            answer.near |= near;
            if hits > answer.hits {
                (answer.hits, answer.set_bits) = (hits, set_bits);
            }
        }
    });
}
