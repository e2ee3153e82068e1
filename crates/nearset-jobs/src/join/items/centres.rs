//! Around which earlier record each next one belongs: the nearest of those kept.

use nearset::index::PreparedItem;

use super::super::stars::Placement;
use super::{Entries, ItemPlan};
use crate::crew::Crew;
use crate::run::RunError;

/// Puts records around those kept before them, the nearest of which each is near.
pub(in super::super) struct Centres {
    entries: Entries,
    /// How many records are near each entry.
    pub members: Vec<u32>,
    plan: ItemPlan,
    follow_chains: bool,
}

impl Centres {
    pub fn new(plan: &ItemPlan, follow_chains: bool) -> Self {
        Self { entries: Entries::new(plan), members: Vec::new(), plan: plan.clone(), follow_chains }
    }

    /// Takes the next records, and tells where each belongs; how near stands in the metric's own unit.
    pub fn add(
        &mut self,
        items: &[Option<&PreparedItem>],
        crew: &Crew,
        mut each: impl FnMut(usize, Placement) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let mut round = self.entries.begin(items, crew)?;
        for (i, item) in items.iter().enumerate() {
            let Some(item) = item else {
                each(i, Placement { near: None, entry: None })?;
                continue;
            };
            let near = round.near(&self.entries, i, item)?;
            let nearest = near.first().map(|one| (one.id, self.plan.metric.own_unit(one.distance)));
            if let Some((of, _)) = nearest {
                self.members[of as usize] += 1;
            }
            let is_entry = match nearest {
                None => true,
                Some(_) => self.follow_chains && self.entries.equal(item, &near).is_none(),
            };
            let entry = if is_entry { Some(self.insert(item)?) } else { None };
            each(i, Placement { near: nearest, entry })?;
        }
        Ok(())
    }

    /// Makes an item an entry that is not compared.
    pub fn insert(&mut self, item: &PreparedItem) -> Result<u32, RunError> {
        self.members.push(0);
        self.entries.insert(item)
    }

    /// Entries that records are near, and how many.
    pub fn copied(&self) -> impl Iterator<Item = (u32, u64)> {
        let counted = (0..).zip(&self.members).filter(|(_, members)| **members > 0);
        counted.map(|(entry, &members)| (entry, u64::from(members)))
    }

    pub fn bytes(&self) -> u64 {
        self.entries.bytes() + 4 * self.members.len() as u64
    }
}
