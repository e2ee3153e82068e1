//! The threads of a run and what flows between them.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};

use super::DedupError;
use super::commit::Committer;
use super::job::{Against, Job, Worker};
use super::write::Outputs;
use nearset_records::input::Reader;

/// Jobs that go round, a thread: one at work, one waiting for its turn.
const JOBS_A_THREAD: usize = 2;

/// Jobs for the reader, the committer and the writer.
const MORE_JOBS: usize = 4;

/// How often a waiting run looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Reads to the end. The outputs come back complete but unnamed, with the seconds that the commit took.
pub(super) fn run(
    reader: Reader,
    against: &[Against<'_>],
    committer: &mut Committer<'_>,
    outputs: Outputs,
) -> Result<(Outputs, f64), DedupError> {
    let options = committer.options;
    let num_workers = options.threads.max(1);
    let jobs = JOBS_A_THREAD * num_workers + MORE_JOBS;
    let (pool_in, pool) = bounded(jobs);
    let (work_in, work) = bounded::<Job>(jobs);
    let (done_in, done) = bounded(jobs);
    let (write_in, write) = bounded(jobs);
    // Nothing is ever sent here: it closes when the committer gives up, and with it all workers.
    let (alive, given_up) = bounded::<()>(0);
    for _ in 0..jobs {
        let _ = pool_in.send(Job::default());
    }
    let at_end = Arc::new(AtomicBool::new(false));
    let reading = Arc::clone(&at_end);
    // Not within the scope: nobody can wake a thread that waits for a pipe, so a run that stops leaves it behind.
    thread::spawn(move || read_all(reader, &pool, &work_in, &reading));
    let wants_ids = options.removed.is_some() || committer.tally.samples.is_wanted();
    let folder = committer.folder;
    let hasher = committer.hasher.clone();
    thread::scope(|scope| {
        for _ in 0..num_workers {
            let mut worker = Worker::new(&options.fields, hasher.clone(), against, wants_ids);
            let (work, done_in, given_up) = (work.clone(), done_in.clone(), given_up.clone());
            scope.spawn(move || sketch_all(|job| worker.sketch(job), &work, &done_in, &given_up));
        }
        drop((done_in, work, given_up));
        let writer = scope.spawn(move || outputs.write_all(&write, &pool_in, folder));
        let committed = commit_all(committer, &done, write_in, &at_end);
        drop((alive, done));
        // If the writer failed, the commit could not go on either, and the writer knows why.
        let outputs = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((outputs, committed?))
    })
}

fn read_all(mut reader: Reader, pool: &Receiver<Job>, work: &Sender<Job>, at_end: &AtomicBool) {
    for (sequence, mut job) in (0..).zip(pool) {
        job.clear();
        match reader.read_batch(&mut job.batch) {
            Ok(true) => {}
            Ok(false) => {
                at_end.store(true, Ordering::Release);
                return;
            }
            Err(error) => job.input_error = Some(error),
        }
        job.sequence = sequence;
        if work.send(job).is_err() {
            return;
        }
    }
}

/// Works on jobs until there are no more. One over which it panics is passed on as such: if it vanished, all would wait for it.
fn sketch_all(mut sketch: impl FnMut(&mut Job), work: &Receiver<Job>, done: &Sender<Job>, given_up: &Receiver<()>) {
    loop {
        select! {
            recv(work) -> job => {
                let Ok(mut job) = job else { return };
                // What was half done is never looked at again.
                job.given_up = panic::catch_unwind(AssertUnwindSafe(|| sketch(&mut job))).is_err();
                if done.send(job).is_err() {
                    return;
                }
            }
            recv(given_up) -> _ => return,
        }
    }
}

/// Commits jobs in their order, whatever order they are done in.
fn commit_all(
    committer: &mut Committer<'_>,
    done: &Receiver<Job>,
    write: Sender<Job>,
    at_end: &AtomicBool,
) -> Result<f64, DedupError> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    let mut busy = Duration::ZERO;
    loop {
        if committer.progress.is_stopped() {
            return Err(DedupError::Interrupted { resumable: false });
        }
        let job: Job = match done.recv_timeout(LOOK) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if job.given_up {
            return Err(DedupError::WorkerDied { name: Arc::clone(job.batch.name()), line: job.batch.start().line });
        }
        early.insert(job.sequence, job);
        while let Some(mut job) = early.remove(&next) {
            next += 1;
            let started = Instant::now();
            committer.commit(&mut job)?;
            busy += started.elapsed();
            if write.send(job).is_err() {
                // The writer says why.
                return Ok(busy.as_secs_f64());
            }
        }
    }
    if !at_end.load(Ordering::Acquire) {
        return Err(DedupError::ReaderDied);
    }
    Ok(busy.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_a_worker_panics_over_comes_back() {
        let (work_in, work) = bounded(3);
        let (done_in, done) = bounded(3);
        let (_alive, given_up) = bounded(0);
        for sequence in 0..3 {
            work_in.send(Job { sequence, ..Job::default() }).unwrap();
        }
        drop(work_in);
        sketch_all(|job| assert!(job.sequence != 1, "as a bug would"), &work, &done_in, &given_up);
        drop(done_in);
        let came: Vec<(u64, bool)> = done.iter().map(|job| (job.sequence, job.given_up)).collect();
        assert_eq!(came, [(0, false), (1, true), (2, false)]);
    }
}
