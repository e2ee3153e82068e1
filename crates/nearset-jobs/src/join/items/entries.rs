//! The items that others are compared with.

use nearset::index::{IndexError, Neighbour, PreparedItem};
use nearset::{Distance, Index, IndexSpec};

use super::{ItemPlan, fingerprint};
use crate::crew::Crew;
use crate::run::RunError;

/// Items of bit strings that are compared one by one before they get tables.
const SMALLEST_PART: u64 = 8192;

/// A part is left alone while it is more than so many times as large as the one behind it.
const FANOUT: u64 = 4;

/// Items that one thread looks up in one go.
const FEWEST_AT_ONCE: usize = 64;

/// The items that others are compared with, numbered in the order in which they come.
pub(super) struct Entries {
    within: Distance,
    /// The first entry of each part, and the part. The tables of bit strings are made for all items at once, so that there are several parts
    /// of them, the larger ones first; of other items there is one.
    parts: Vec<(u32, Index<'static>)>,
    empty: Index<'static>,
    is_exact: bool,
    fingerprints: Vec<u128>,
}

impl Entries {
    /// No items yet.
    pub fn new(plan: &ItemPlan) -> Self {
        let is_exact = matches!(plan.empty.spec(), IndexSpec::Hamming(_));
        let parts = vec![(0, plan.empty.clone())];
        Self { within: plan.within, parts, empty: plan.empty.clone(), is_exact, fingerprints: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.fingerprints.len() as u32
    }

    pub fn bytes(&self) -> u64 {
        16 * self.fingerprints.len() as u64 + self.parts.iter().map(|(_, part)| part.bytes()).sum::<u64>()
    }

    /// Looks up the next items among those that are entries already, by many threads.
    pub fn begin(&mut self, items: &[Option<&PreparedItem>], crew: &Crew) -> Result<Round, RunError> {
        self.settle()?;
        let at_once = items.len().div_ceil(4 * crew.threads()).max(FEWEST_AT_ONCE);
        let found = crew.each(items.chunks(at_once).collect(), |items| self.find(items, 0));
        let mut older = Vec::with_capacity(items.len());
        for found in found {
            older.extend(found?);
        }
        Ok(Round { first: self.len(), older })
    }

    fn find(&self, items: &[Option<&PreparedItem>], first: u32) -> Result<Vec<Vec<Neighbour>>, RunError> {
        let present: Vec<&PreparedItem> = items.iter().copied().flatten().collect();
        let mut found: Vec<Vec<Neighbour>> = vec![Vec::new(); present.len()];
        for (start, part) in &self.parts {
            let end = u64::from(*start) + part.len();
            if u64::from(first) >= end && end > 0 {
                continue;
            }
            let from = first.saturating_sub(*start);
            let near = part.search_prepared(&present, from, self.within, usize::MAX).map_err(unsearchable)?;
            for (item, near) in near.into_iter().flatten() {
                found[item as usize].push(Neighbour { id: near.id + start, ..near });
            }
        }
        found.iter_mut().for_each(|near| near.sort_unstable());
        let mut found = found.into_iter();
        Ok(items.iter().map(|item| item.and_then(|_| found.next()).unwrap_or_default()).collect())
    }

    /// The entry among those found that is equal to an item, if one is.
    pub fn equal(&self, item: &PreparedItem, found: &[Neighbour]) -> Option<u32> {
        let nearest = found.iter().take_while(|near| near.distance.value() == 0.0);
        let mut nearest = nearest.peekable();
        nearest.peek()?;
        let own = fingerprint(item.into());
        nearest.find(|near| self.fingerprints[near.id as usize] == own).map(|near| near.id)
    }

    /// Makes an item an entry.
    pub fn insert(&mut self, item: &PreparedItem) -> Result<u32, RunError> {
        let Some((_, part)) = self.parts.last_mut() else { return Err(RunError::TooMany) };
        part.insert_prepared(item).map_err(unsearchable)?;
        self.fingerprints.push(fingerprint(item.into()));
        Ok(self.len() - 1)
    }

    /// Makes what was added quick to be found.
    fn settle(&mut self) -> Result<(), RunError> {
        let is_full = self.parts.last().is_some_and(|(_, part)| part.len() >= SMALLEST_PART);
        if !self.is_exact || !is_full {
            return Ok(());
        }
        while let [.., (_, before), (_, last)] = &self.parts[..]
            && before.len() <= FANOUT * last.len()
        {
            if let Some((_, last)) = self.parts.pop()
                && let Some((_, before)) = self.parts.last_mut()
            {
                before.merge(&last).map_err(unsearchable)?;
            }
        }
        if let Some((_, last)) = self.parts.last_mut() {
            last.compact();
        }
        self.parts.push((self.len(), self.empty.clone()));
        Ok(())
    }
}

/// Items that were looked up together.
pub(super) struct Round {
    /// The entries from here on came since.
    first: u32,
    older: Vec<Vec<Neighbour>>,
}

impl Round {
    /// What is near item `i`, whose turn it is, the nearest first; of equally near ones the earlier first.
    pub fn near(&mut self, entries: &Entries, i: usize, item: &PreparedItem) -> Result<Vec<Neighbour>, RunError> {
        let mut near = std::mem::take(&mut self.older[i]);
        if self.first < entries.len() {
            let newer = entries.find(&[Some(item)], self.first)?;
            near.extend(newer.into_iter().flatten());
            near.sort_unstable();
        }
        Ok(near)
    }
}

pub(super) fn unsearchable(error: IndexError) -> RunError {
    match error {
        IndexError::Full => RunError::TooMany,
        error => unreachable!("items are prepared by an index of the same spec, which keeps them: {error}"),
    }
}
