//! How fast a run will be, from hashing its first records once.

use std::sync::Arc;
use std::time::Instant;

use nearset::spec::Hasher;

use super::job::{Job, Worker};
use nearset_records::input::{ReadOptions, Reader, Source};

/// The part of all work that hashing is, measured on a corpus of 3 kB a document; reading, committing and writing take the rest.
const HASHING: f64 = 0.6;

/// Bytes a second, or `None` where the first input cannot be read twice. Disks and compression may be slower.
pub(super) fn expected(sources: &[Source], read: &ReadOptions, hasher: Hasher, threads: usize) -> Option<f64> {
    let first = sources.first().filter(|source| source.bytes.is_some())?;
    let mut job = Job::default();
    let mut reader = Reader::new(Arc::from([first.clone()]), read.clone());
    if !reader.read_batch(&mut job.batch).ok()? {
        return None;
    }
    let mut worker = Worker::new(&read.fields, hasher, &[], false);
    // The first round finds caches cold and rooms unallocated, which a long run does not.
    worker.sketch(&mut job);
    job.clear();
    let started = Instant::now();
    worker.sketch(&mut job);
    let seconds = started.elapsed().as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = job.batch.bytes().len() as f64;
    (bytes > 0.0 && seconds > 0.0).then(|| HASHING * bytes / seconds * threads.clamp(1, cores) as f64)
}
