//! Which earlier records are near each next one: all of them.
//!
//! Invariant: equal items are one entry.

use std::collections::HashMap;

use nearset::index::{IndexError, Neighbour, PreparedItem};
use nearset::{Distance, Index, IndexSpec};

use super::super::copies::Copies;
use super::entries::unsearchable;
use super::{AT_ONCE, Arrival, ItemPlan, fingerprint};
use crate::crew::Crew;
use crate::run::RunError;

/// Bit strings that are looked up together. The more, the less often all are sorted.
const BITS_AT_ONCE: usize = 1 << 17;

/// Pairs that are held until their turn comes, at most; fewer records are looked up together then.
const MOST_PAIRS: usize = 1 << 24;

/// Pairs of one of some items and an entry near it, in the order of both, for the first items: as many as this says.
type Found = (Vec<(u32, Neighbour)>, usize);

/// What is near each of the first of some items, by many threads.
fn near(index: &Index<'_>, items: &[&PreparedItem], within: Distance, crew: &Crew) -> Result<Found, RunError> {
    let mut count = items.len();
    loop {
        let each = count.div_ceil(crew.threads()).max(1);
        let parts: Vec<&[&PreparedItem]> = items[..count].chunks(each).collect();
        // One item is never near more than there are.
        let most = if count <= 1 { usize::MAX } else { MOST_PAIRS / parts.len() };
        let found = crew.each(parts, |part| index.search_prepared(part, 0, within, most));
        let found = found.into_iter().collect::<Result<Option<Vec<_>>, IndexError>>().map_err(unsearchable)?;
        if let Some(parts) = found {
            let shifted = |(part, near): (usize, Vec<(u32, Neighbour)>)| {
                near.into_iter().map(move |(item, near)| (item + (part * each) as u32, near))
            };
            return Ok((parts.into_iter().enumerate().flat_map(shifted).collect(), count));
        }
        count = count.div_ceil(2);
    }
}

/// Finds, for each record, the earlier ones near it.
pub(in super::super) struct Families {
    index: Index<'static>,
    within: Distance,
    /// The entries of items, by what equal ones share.
    equal: HashMap<u128, u32>,
    /// The record that each entry stands for, the first of its copies.
    pub first: Vec<u32>,
    pub copies: Copies,
    records: u32,
    /// Records whose turn comes when there are enough of them.
    waiting: Vec<Arrival>,
}

impl Families {
    /// No records yet. Of each item, so many copies are listed beside the first.
    pub fn new(plan: &ItemPlan, most_copies: usize) -> Self {
        Self {
            index: plan.empty.clone(),
            within: plan.within,
            equal: HashMap::new(),
            first: Vec::new(),
            copies: Copies::new(most_copies),
            records: 0,
            waiting: Vec::new(),
        }
    }

    /// Takes the next records and, when there are enough of them or `is_last` says that no more will come, tells of each the earlier ones near
    /// it, in their order. Records are numbered as they come.
    pub fn add(
        &mut self,
        arrivals: &mut Vec<Arrival>,
        is_last: bool,
        crew: &Crew,
        mut each: impl FnMut(&Arrival, &[(u32, Distance)]) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        self.waiting.append(arrivals);
        let enough = match self.index.spec() {
            IndexSpec::Hamming(_) => BITS_AT_ONCE,
            _ => AT_ONCE,
        };
        if self.waiting.len() < enough && !is_last {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let items: Vec<Option<&PreparedItem>> = waiting.iter().map(|arrival| arrival.item.as_ref()).collect();
        let first = self.records;
        self.records =
            u32::try_from(items.len()).ok().and_then(|more| first.checked_add(more)).ok_or(RunError::TooMany)?;
        // All are entries before the first is looked up: those that come later are left aside in its turn.
        let mut entries: Vec<Option<u32>> = Vec::with_capacity(items.len());
        for (record, item) in (first..).zip(&items) {
            entries.push(item.map(|item| self.entry(item, record)).transpose()?);
        }
        let mut done = 0;
        while done < items.len() {
            let present: Vec<&PreparedItem> = items[done..].iter().copied().flatten().collect();
            let (pairs, mut count) = near(&self.index, &present, self.within, crew)?;
            let mut pairs = pairs.into_iter().peekable();
            let mut number = 0;
            let mut found: Vec<(u32, Distance)> = Vec::new();
            while done < items.len() && (count > 0 || items[done].is_none()) {
                found.clear();
                let record = first + done as u32;
                if let Some(entry) = entries[done] {
                    while let Some((_, near)) = pairs.next_if(|(item, _)| *item == number) {
                        let each = |earlier| found.push((earlier, near.distance));
                        self.copies.before(near.id, self.first[near.id as usize], record, each);
                    }
                    self.copies.note(entry, self.first[entry as usize], record);
                    (number, count) = (number + 1, count - 1);
                }
                found.sort_unstable_by_key(|&(earlier, _)| earlier);
                each(&waiting[done], &found)?;
                done += 1;
            }
        }
        Ok(())
    }

    /// The entry of an item, whose first record this may be.
    fn entry(&mut self, item: &PreparedItem, record: u32) -> Result<u32, RunError> {
        let same = fingerprint(item.into());
        if let Some(&entry) = self.equal.get(&same) {
            return Ok(entry);
        }
        let entry = self.index.insert_prepared(item).map_err(unsearchable)?;
        self.equal.insert(same, entry);
        self.first.push(record);
        Ok(entry)
    }

    pub fn bytes(&self) -> u64 {
        // Copies are listed up to a limit, which takes little beside this.
        self.index.bytes() + (4 + 2 * size_of::<(u128, u32)>() as u64) * self.first.len() as u64
    }
}
