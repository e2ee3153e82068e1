//! How fast a run will be, from hashing its first records once.

use std::sync::Arc;
use std::time::Instant;

use nearset_records::{Arena, Batch, ReadOptions, Reader, Source, extract};

use crate::run::Worker;

/// The part of all work that hashing is, measured on a corpus of 3 kB per document; reading, committing and writing take the rest.
const HASHING: f64 = 0.6;

/// Bytes per second, or `None` where the first input cannot be read twice. Disks and compression may be slower.
pub(super) fn expected(sources: &[Source], read: &ReadOptions, worker: &impl Worker, threads: usize) -> Option<f64> {
    let first = sources.first().filter(|source| source.bytes.is_some())?;
    let mut batch = Batch::new();
    let mut reader = Reader::new(Arc::from([first.clone()]), read.clone());
    if !reader.read_batch(&mut batch).ok()? {
        return None;
    }
    let (mut arena, mut room, mut piece, mut faults) = (Arena::new(), worker.room(), Default::default(), Vec::new());
    let mut work = || {
        faults.clear();
        worker.work(&mut room, &extract(&batch, &read.fields, &mut arena), &mut piece, &mut faults);
    };
    // The first round finds caches cold and rooms unallocated, which a long run does not.
    work();
    let started = Instant::now();
    work();
    let seconds = started.elapsed().as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = batch.bytes().len() as f64;
    (bytes > 0.0 && seconds > 0.0).then(|| HASHING * bytes / seconds * threads.clamp(1, cores) as f64)
}
