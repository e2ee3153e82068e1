//! Items of several indexes in one: what segments are made of.

use std::{collections::TryReserveError, sync::Arc};

use super::{Kept, Labels, LshIndex, Removed, Run, entry, slot};
use crate::{Item, family::LshFamily, room};

impl<'a> LshIndex<'a> {
    /// A compact index like this one of the items of others with its spec, in their order and with their names or numbers, but for those
    /// in the slots beside each; ids count from 0 on. No item is hashed again. What is inserted into it afterwards is to be gathered soon.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn gather(
        like: &LshIndex<'a>,
        parts: &[(&LshIndex<'a>, &Removed)],
    ) -> Result<LshIndex<'static>, TryReserveError> {
        let spec = like.spec.clone();
        let stays =
            |(part, except): (&LshIndex<'a>, &Removed), slot| !except.contains(slot) && !part.removed.contains(slot);
        let staying = || {
            parts.iter().flat_map(|&part| {
                (0..part.0.slots()).filter(move |&slot| stays(part, slot)).map(move |slot| (part.0, slot))
            })
        };
        let count = staying().count();
        let mut labels = Labels::default();
        labels
            .reserve(count, staying().map(|(part, slot)| part.labels.bytes_of_copy(part.ids[slot as usize])).sum())?;
        let mut kept = spec.keeps_items.then(|| Kept::new(&spec.family));
        if let Some(kept) = &mut kept {
            kept.reserve(staying().filter_map(|(part, slot)| Some((part.kept.as_ref()?, slot))))?;
        }
        let (mut slots, mut live) = (Vec::with_capacity(parts.len()), 0);
        for &(part, except) in parts {
            let mut new = room::of(part.ids.len())?;
            for (slot, &id) in (0..).zip(&*part.ids) {
                let stays = stays((part, except), slot);
                new.push(stays.then_some(live));
                if stays {
                    part.labels.copy(id, &mut labels, live);
                    live += 1;
                }
            }
            if let (Some(ours), Some(theirs)) = (&mut kept, &part.kept) {
                ours.extend(theirs, part.slots(), |slot| stays((part, except), slot));
            }
            slots.push(new);
        }
        let fill = |band, out: &mut Vec<u64>| {
            for ((part, _), new) in parts.iter().zip(&slots) {
                let bands = part.runs.iter().map(|run| run.band(band)).chain([part.buffer.band(band)]);
                let renumbered = |&old: &u64| {
                    let new = new.get(slot(old) as usize).copied().flatten()?;
                    Some(entry((old >> 32) as u32, new))
                };
                bands.for_each(|entries| out.extend(entries.iter().filter_map(renumbered)));
            }
        };
        let run = if live > 0 { Some(Run::try_new(like.bands(), live, fill)?) } else { None };
        let mut ids = room::of(count)?;
        ids.extend(0..live);
        let mut gathered = LshIndex::from_parts(spec, live, ids.into(), run, kept, labels);
        gathered.share_functions(like);
        gathered.is_brief = true;
        Ok(gathered)
    }

    /// Takes over the functions of an index of the same spec, drawn or not yet.
    pub(crate) fn share_functions(&mut self, other: &LshIndex<'_>) {
        self.functions = Arc::clone(&other.functions);
    }

    /// Bytes of the functions.
    pub(crate) fn bytes_of_functions(&self) -> u64 {
        self.spec.family.bytes_of_functions(self.spec.layout)
    }

    /// The item of this id as it is kept, if it is; `room` takes what can't be lent as it lies.
    pub(crate) fn item<'k>(&'k self, id: u32, room: &'k mut Vec<(u64, f64)>) -> Option<Item<'k>> {
        self.kept.as_ref()?.item(self.slot_of(id)?, room)
    }

    /// Whether ids are slots, without gaps, and everything lies in one run.
    pub(crate) fn is_gathered(&self) -> bool {
        self.is_compact() && self.next == self.slots()
    }

    /// Whether functions are drawn.
    pub(crate) fn is_prepared(&self) -> bool {
        self.functions.get().is_some()
    }

    /// Draws the functions, which the first item would else wait for.
    pub(crate) fn prepare(&self) {
        self.functions();
    }
}
