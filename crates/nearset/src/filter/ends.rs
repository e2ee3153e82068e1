//! Where a generation ends, and what comes after it.
//!
//! A generation that grows or refuses ends by its load: repeats and near items set few bits, and it is bits that cost the promise to
//! far items. One that is forgotten ends after as many insertions as it is made for, since "seen in the last million" counts them all.
//! Invariant: all of this is worked out from the filters and the terms, so that a filter read from a file goes on as the one that
//! was written.

use super::{Filter, Generation, InsertError, NearFilter};
use crate::{
    error::{MOST_GENERATIONS, SpecError},
    family::Key,
    spec::{GenerationSpec, Table, Terms, WhenFull},
};

pub(super) const TOLERANCE: f64 = Terms::TOLERANCE;

/// The load of a generation that has what it was made for is looked at after every part of its capacity as small as this.
pub(super) const LOOKS: u64 = 64;

/// The load from which on a generation is overfull: more than estimates and the time between looks account for, the fewer items the
/// more so.
pub(super) fn overfull_from(capacity: u64) -> f64 {
    let capacity = capacity as f64;
    1.1 * capacity + 3.0 * libm::sqrt(capacity) + 3.0
}

/// Bits that an item sets in tables where so many of its bands hit, and a key is one bit.
pub(super) fn new_bits(keys: &[Option<Key>], hits: u32) -> u64 {
    keys.iter().flatten().count() as u64 - u64::from(hits)
}

/// How many times larger than the first generation's the tables of the second one are, for twice the items.
///
/// Every generation adds its chance hits to those of the others, so that generations as full as the first would soon accept what is
/// unrelated. All that come by growth are half as full, where chance hits are far rarer: the promise of the first is nearly that of all.
const FIRST_GROWTH: u64 = 4;

/// How many times larger than their predecessors' the tables of all further ones are.
const GROWTH: u64 = 2;

/// What follows the newest of `generations` generations, whose spec this is.
pub(crate) fn next_spec(
    spec: &GenerationSpec,
    when_full: WhenFull,
    generations: usize,
) -> Result<GenerationSpec, SpecError> {
    let factor = if generations == 1 { FIRST_GROWTH } else { GROWTH };
    match when_full {
        WhenFull::Grow => spec.scaled(factor),
        WhenFull::Refuse | WhenFull::Forget { .. } => Ok(spec.clone()),
    }
}

/// All specs that may follow in a file: the first version's second generation was as full as its first.
pub(crate) fn next_specs_in_files(
    spec: &GenerationSpec,
    when_full: WhenFull,
    generations: usize,
) -> Result<Vec<GenerationSpec>, SpecError> {
    let next = next_spec(spec, when_full, generations)?;
    Ok(match (when_full, generations) {
        (WhenFull::Grow, 1) => vec![next, spec.scaled(GROWTH)?],
        _ => vec![next],
    })
}

/// The most generations that there are on these terms.
pub(crate) fn most_generations(when_full: WhenFull) -> usize {
    match when_full {
        WhenFull::Grow => MOST_GENERATIONS,
        WhenFull::Refuse => 1,
        WhenFull::Forget { generations } => generations as usize,
    }
}

impl Filter<'_> {
    /// How many items a generation is made for, counted from the oldest. Direct tables can't be larger, so that each is made for as
    /// many as the first.
    pub(super) fn capacity_of(&self, terms: &Terms, generation: usize) -> u64 {
        if terms.when_full == WhenFull::Grow && self.filters[0].table() != Some(Table::Direct) {
            terms.capacity.saturating_mul(1u64.checked_shl(generation as u32).unwrap_or(u64::MAX))
        } else {
            terms.capacity
        }
    }

    /// How many items may go into the newest generation before it is asked again whether it is full; 0 if it is.
    pub(super) fn until_full(&self) -> u64 {
        let Some(terms) = &self.terms else { return u64::MAX };
        let (capacity, len) = (self.capacity_of(terms, self.filters.len() - 1), self.newest().len());
        match terms.when_full {
            WhenFull::Refuse => u64::MAX,
            // A scan grows by itself, and several are no better than one.
            WhenFull::Grow if self.newest().table().is_none() => u64::MAX,
            // Fewer items than it is made for do not fill it, whatever an estimate says.
            _ if len < capacity => capacity - len,
            WhenFull::Forget { .. } => 0,
            WhenFull::Grow => {
                let interval = (capacity / LOOKS).max(1);
                let since = (len - capacity) % interval;
                if since == 0 && self.newest().load() >= TOLERANCE * capacity as f64 { 0 } else { interval - since }
            }
        }
    }

    /// If the newest generation is full, puts another one after it.
    pub(super) fn make_room(&mut self) -> Result<(), InsertError> {
        let Some(terms) = self.terms else { return Ok(()) };
        if self.until_full() > 0 {
            return Ok(());
        }
        if self.filters.len() < most_generations(terms.when_full) {
            let next = self.next_generation(terms.when_full)?;
            self.filters.push(next);
        } else if let WhenFull::Forget { .. } = terms.when_full {
            // The oldest one's memory serves again, so that a window that is full allocates nothing.
            self.filters.rotate_left(1);
            self.newest_mut().clear();
        } else {
            return Err(InsertError::TooManyGenerations { capacity: terms.capacity });
        }
        Ok(())
    }

    /// That so many items are not stopped half way: a filter which refuses has room for them, and one that grows can't come to
    /// more generations than there may be. `new_bits` tells how many bits they would set, where a key is one bit; elsewhere each
    /// is taken to be distinct from all others.
    pub(super) fn expect_room(
        &self,
        items: u64,
        new_bits: impl FnOnce(&NearFilter<'_>) -> u64,
    ) -> Result<(), InsertError> {
        let Some(Terms { capacity, when_full, .. }) = self.terms else { return Ok(()) };
        match when_full {
            WhenFull::Refuse => {}
            // Tables that double can't be so many.
            WhenFull::Grow if self.filters[0].table() == Some(Table::Direct) => return self.expect_generations(items),
            WhenFull::Grow | WhenFull::Forget { .. } => return Ok(()),
        }
        if self.newest().len().saturating_add(items) <= capacity {
            return Ok(());
        }
        let load = match self.newest() {
            Generation::Near(filter) if filter.tables().counts_ones() => filter.tables().load_with(new_bits(filter)),
            newest => newest.load() + items as f64,
        };
        if load <= TOLERANCE * capacity as f64 {
            return Ok(());
        }
        Err(InsertError::Full { capacity, load: libm::round(load) as u64 })
    }

    fn expect_generations(&self, items: u64) -> Result<(), InsertError> {
        let Some(Terms { capacity, .. }) = self.terms else { return Ok(()) };
        let more = items.saturating_sub(self.until_full()).div_ceil(capacity);
        if more <= (MOST_GENERATIONS - self.filters.len()) as u64 {
            return Ok(());
        }
        Err(InsertError::TooManyGenerations { capacity })
    }

    /// How many bytes [`Self::bytes`] may grow by when so many items are inserted next, at most: for a caller that holds it against
    /// a limit before it inserts.
    pub fn room_needed(&self, items: u64) -> u64 {
        let room = items.saturating_mul(self.newest().bytes_per_item());
        let Ok(ahead) = self.generations_ahead(items) else { return u64::MAX };
        ahead.iter().fold(room, |room, next| room.saturating_add(next.bytes()))
    }

    /// The generations that so many items may add at most, were each of them new.
    pub(super) fn generations_ahead(&self, items: u64) -> Result<Vec<GenerationSpec>, SpecError> {
        let mut ahead = Vec::new();
        let (Some(terms), mut taken) = (&self.terms, self.until_full()) else { return Ok(ahead) };
        if taken < items && terms.when_full == WhenFull::Grow {
            let capacity = self.capacity_of(terms, self.filters.len() - 1);
            if self.newest().most_load_with(items) < TOLERANCE * capacity as f64 {
                return Ok(ahead);
            }
        }
        for generation in self.filters.len()..most_generations(terms.when_full) {
            if taken >= items {
                break;
            }
            let next = next_spec(ahead.last().unwrap_or(&self.newest().spec()), terms.when_full, generation)?;
            ahead.push(next);
            taken = taken.saturating_add(self.capacity_of(terms, generation));
        }
        Ok(ahead)
    }
}
