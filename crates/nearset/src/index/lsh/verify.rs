//! Candidates compared: the exact distances of the items in some slots from a query.

use super::{Kept, LshIndex, items::Cosines};
use crate::{
    Distance, Item,
    index::{IndexError, Neighbour},
};

/// What candidates are verified by.
pub(super) struct Verifier<'i> {
    index: &'i LshIndex<'i>,
    pub(super) kept: &'i Kept<'i>,
    query: Item<'i>,
    cosines: Option<Cosines>,
}

impl<'i> Verifier<'i> {
    /// For a prepared query.
    pub(super) fn new(index: &'i LshIndex<'i>, query: Item<'i>) -> Result<Self, IndexError> {
        let kept = index.kept.as_ref().ok_or(IndexError::ItemsNotKept)?;
        Ok(Self { index, kept, query, cosines: Cosines::new(&index.spec.family, query) })
    }

    /// The item in a slot with its exact distance.
    fn neighbour(&self, slot: u32) -> Option<Neighbour> {
        let id = *self.index.ids.get(slot as usize)?;
        let distance = self.kept.distance(&self.index.spec.family, self.query, slot)?;
        Some(Neighbour { id, distance })
    }

    /// The part of the slots whose items are no farther than this, with their distances.
    pub(super) fn within(&self, mut slots: Vec<u32>, distance: Distance) -> Vec<Neighbour> {
        if let Some(cosines) = &self.cosines {
            let at_most = cosines.at_most(self.kept, &slots);
            retain(&mut slots, &at_most, cosines.at(distance));
        }
        let found = slots.into_iter().filter_map(|slot| self.neighbour(slot));
        found.filter(|neighbour| neighbour.distance <= distance).collect()
    }

    /// The `top` nearest of the slots' items, and a few that are hardly farther.
    pub(super) fn nearest(&self, mut slots: Vec<u32>, top: usize) -> Vec<Neighbour> {
        if let Some(cosines) = &self.cosines {
            let at_most = cosines.at_most(self.kept, &slots);
            let least = cosines.of_top(&mut at_most.clone(), top);
            retain(&mut slots, &at_most, least);
        }
        slots.into_iter().filter_map(|slot| self.neighbour(slot)).collect()
    }
}

/// Leaves out the slots of which less than `least` was said.
fn retain(slots: &mut Vec<u32>, said: &[f32], least: f32) {
    let mut said = said.iter();
    slots.retain(|_| said.next().is_some_and(|said| *said >= least));
}
