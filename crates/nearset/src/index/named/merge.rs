//! Merging segments, which takes long: begun by who has the index, carried out anywhere, put in place by who has it.

use std::{collections::TryReserveError, sync::Arc};

use super::{
    FANOUT, NamedIndex,
    segment::{Placed, Segment, gather},
};
use crate::{Index, hash::ByteHash, index::Removed};

/// Segments of an index, and what becomes of them: see [`NamedIndex::merge_due`].
#[non_exhaustive]
pub struct SegmentMerge {
    /// Bytes that it takes until the segments that it replaces are dropped, about.
    pub bytes: u64,
    like: Index<'static>,
    names: ByteHash,
    /// As they were when it began.
    old: Vec<Placed>,
    new: Option<Arc<Segment>>,
}

impl SegmentMerge {
    /// Merges the segments. This takes a few microseconds per item, and memory.
    ///
    /// # Errors
    /// If there is no memory for the new one. There is nothing to be put in place then, and the index goes on as it is.
    pub fn run(&mut self) -> Result<(), TryReserveError> {
        let parts: Vec<_> = self.old.iter().map(|placed| (&placed.segment.index, &placed.removed)).collect();
        self.new = Some(Arc::new(Segment::new(gather(&self.like, &parts)?, self.names)?));
        Ok(())
    }
}

impl NamedIndex {
    /// Returns the next merge that would make searches faster, or free memory: to be [run](SegmentMerge::run), on any thread, and then
    /// [put in place](Self::put_in_place). One at a time is enough.
    pub fn merge_due(&self) -> Option<SegmentMerge> {
        let old = self.segments_to_merge()?.to_vec();
        let bytes = old.iter().map(Placed::bytes_of_live).sum();
        Some(SegmentMerge { bytes, like: self.newest.emptied(), names: self.names, old, new: None })
    }

    fn segments_to_merge(&self) -> Option<&[Placed]> {
        let classes: Vec<u32> = self.segments.iter().map(Placed::class).collect();
        let highest = classes.iter().max()?;
        for class in 0..=*highest {
            let mut start = 0;
            for alike in classes.chunk_by(|a, b| (*a <= class) == (*b <= class)) {
                if alike.len() >= FANOUT && alike[0] <= class {
                    return Some(&self.segments[start..start + alike.len()]);
                }
                start += alike.len();
            }
        }
        let garbage = self.segments.iter().position(Placed::is_garbage)?;
        Some(&self.segments[garbage..=garbage])
    }

    /// Puts a merge in place that was run, and removes what was removed meanwhile. False if the segments are not there any more.
    ///
    /// What it replaced is dropped with the merge, which is better done where time does not matter.
    pub fn put_in_place(&mut self, merge: &SegmentMerge) -> bool {
        let (Some(new), Some(first)) = (&merge.new, merge.old.first()) else { return false };
        let Some(start) = self.segments.iter().position(|placed| Arc::ptr_eq(&placed.segment, &first.segment)) else {
            return false;
        };
        let end = start + merge.old.len();
        let is_there = |(now, then): (&Placed, &Placed)| Arc::ptr_eq(&now.segment, &then.segment);
        if end > self.segments.len() || !self.segments[start..end].iter().zip(&merge.old).all(is_there) {
            return false;
        }
        let (mut removed, mut before) = (Removed::default(), 0);
        for (now, then) in self.segments[start..end].iter().zip(&merge.old) {
            now.removed.since(&then.removed).for_each(|slot| {
                removed.insert(before + then.removed.live_below(slot));
            });
            before += then.live();
        }
        let merged = Placed { segment: Arc::clone(new), removed };
        self.segments.splice(start..end, (merged.live() > 0).then_some(merged));
        true
    }
}
