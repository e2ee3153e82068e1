//! The first bytes that a reader asks for, wherever it begins: blocks of fixed places, the last ones held.
//!
//! Before a run, files are looked at more than once and in few places each: for their packing, their header, a sample. A block serves all of
//! that with one request, and what will be looked at soon can be fetched at once.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;

use super::fetch::fetch;
use super::{Object, RemoteError, Tag};

const BLOCK: u64 = 256 << 10;

/// Blocks that are held, at most: 16 MiB of them.
const MOST_BLOCKS: usize = 64;

/// Blocks that are fetched at once before anyone asks for them.
const AT_ONCE: usize = 32;

/// Locked while it is fetched; others who want it wait.
type Slot = Arc<Mutex<Option<Bytes>>>;

/// An object, its version, and where the block begins.
type Key = (Arc<str>, (Tag, Option<u64>), u64);

static RECENT: Mutex<VecDeque<(Key, Slot)>> = Mutex::new(VecDeque::new());

/// Which block an offset is in.
pub(super) fn range(offset: u64, size: u64) -> Range<u64> {
    let start = offset / BLOCK * BLOCK;
    start..(start + BLOCK).min(size)
}

fn slot(object: &Object, start: u64) -> Slot {
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same =
        |(url, (tag, size), at): &Key| *at == start && *url == object.url && *tag == object.tag && *size == object.size;
    if let Some((_, slot)) = recent.iter().find(|(key, _)| is_same(key)) {
        return Arc::clone(slot);
    }
    if recent.len() >= MOST_BLOCKS {
        recent.pop_front();
    }
    let new = Slot::default();
    recent.push_back(((Arc::clone(&object.url), (object.tag.clone(), object.size), start), Arc::clone(&new)));
    new
}

/// Returns a block of an object.
pub(super) fn block(object: &Object, range: Range<u64>) -> Result<Bytes, RemoteError> {
    fill(object, range.clone(), &slot(object, range.start))
}

fn fill(object: &Object, range: Range<u64>, slot: &Slot) -> Result<Bytes, RemoteError> {
    let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = &*held {
        return Ok(bytes.clone());
    }
    let bytes = fetch(object, range, &AtomicBool::new(false))?;
    Ok(held.insert(bytes).clone())
}

/// Fetches the blocks at these places of an object, on threads of their own: they will be asked for soon.
pub(crate) fn expect_soon(object: &Object, offsets: &[u64]) {
    let Some(size) = object.size.filter(|_| object.is_ranged) else { return };
    let mut starts: Vec<u64> = offsets.iter().filter(|&&offset| offset < size).map(|offset| offset / BLOCK).collect();
    starts.dedup();
    for start in starts.into_iter().take(AT_ONCE) {
        let range = range(start * BLOCK, size);
        let (object, slot) = (object.clone(), slot(&object.clone(), range.start));
        if slot.try_lock().is_ok_and(|held| held.is_none()) {
            // Without a thread, who asks for the block fetches it.
            let _ = thread::Builder::new().name("fetch".to_owned()).spawn(move || drop(fill(&object, range, &slot)));
        }
    }
}
