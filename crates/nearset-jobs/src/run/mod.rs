//! The skeleton of runs that write records: read, work in parallel, decide in order, write, checkpoint.
//!
//! ```text
//! reader ──> workers ──> ordered commit ──> writer
//! bytes      Worker      Decider            files
//!    ^                                        │
//!    └───────────── a pool of jobs ───────────┘
//! ```
//!
//! Claim: the output is a function of the records, their order and the options: the same bytes for any number of threads. A run
//! that was stopped at any moment and resumed ends with the same bytes.
//! Invariant: a bounded number of jobs goes round, so memory is what the decider holds and a bounded number of batches.
//! What differs between runs is the `Decider` and the `Worker` that prepares for it. Progress, errors, Ctrl-C, checkpoints,
//! annotations, the list of removals and the page about the run are the same for all.

mod commit;
mod error;
mod job;
mod options;
mod passed;
mod progress;
mod samples;
mod state;
mod tally;
#[cfg(test)]
mod tests;
mod write;

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, unbounded};
use nearset::Seed;
use nearset_records::output::{check_sources, is_folder, is_same_output, is_written_through, partial_path};
use nearset_records::{
    Arena, Extracted, OutputError, OutputFile, OutputOptions, Position, ReadOptions, Reader, RecordError, Source,
    StateFolder, extract,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::in_order::{Feed, queue};
use commit::Committer;
use job::Job;
use passed::{Passed, Passing};
use state::{Phase, State};

pub use error::RunError;
pub(crate) use job::{Decision, Ids, Origin, Part, Verdict};
pub(crate) use nearset_records::input::state_of_file as of_file;
pub(crate) use options::{Fingerprint, named};
pub use options::{OnError, RunOptions};
pub use progress::Progress;
pub(crate) use samples::{LONGEST, Place, SAMPLED, Samples};
pub(crate) use tally::{Errors, Tally, record_bytes};
pub(crate) use write::{Manner, Outputs};

/// Jobs that wait for the writer, at most.
const WAITING: usize = 2;

/// What many threads find out about records before their turn comes.
pub(crate) trait Worker: Sync {
    /// What they find out about the sound records of a batch.
    type Piece: Default + Send + 'static;
    /// What each thread works with.
    type Room;

    fn room(&self) -> Self::Room;

    /// Clears what is known of other records.
    fn clear(&self, room: &mut Self::Room, piece: &mut Self::Piece);

    /// Adds what is known of record `i`, or says what is wrong with it.
    fn add(
        &self,
        room: &mut Self::Room,
        extracted: &Extracted<'_>,
        i: usize,
        piece: &mut Self::Piece,
    ) -> Result<(), RecordError>;

    /// Overwrites `piece` with what is known of the records, and adds those that are faulty to `faults`, in order.
    fn work(
        &self,
        room: &mut Self::Room,
        extracted: &Extracted<'_>,
        piece: &mut Self::Piece,
        faults: &mut Vec<(usize, RecordError)>,
    ) {
        self.clear(room, piece);
        let fault = |i| self.add(room, extracted, i, piece).err().map(|error| (i, error));
        faults.extend((0..extracted.len()).filter_map(fault));
    }
}

/// Decides, in order, which records stay.
pub(crate) trait Decider {
    /// What workers found out.
    type Piece: Default + Send + 'static;
    /// What the decider comes to.
    type Outcome: Serialize + DeserializeOwned;

    /// Decides on each sound record of a part. A verdict may refer to `names`, to which it is added.
    fn decide(
        &mut self,
        part: Part<'_, Self::Piece>,
        decisions: &mut Vec<Decision>,
        names: &mut Ids,
    ) -> Result<(), RunError>;

    /// Returns its memory.
    fn bytes(&self) -> u64;

    /// Returns the bytes that a checkpoint writes. It depends on the records alone, since it decides where checkpoints fall.
    fn checkpoint_bytes(&self) -> u64;

    /// Returns whether it holds something worth a checkpoint before the first record.
    fn starts_with_checkpoint(&self) -> bool {
        false
    }

    /// Returns whether a run may go on though inputs have changed behind what was read: not if decisions were taken from them.
    fn is_mendable(&self) -> bool {
        false
    }

    /// Saves what it needs to go on from here, beside what it saved at the checkpoint before.
    fn save(&mut self, folder: &StateFolder, checkpoint: u64) -> Result<serde_json::Value, RunError>;

    /// Writes what a later run can use.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError>;

    /// Completes what it keeps for later runs, which [`Self::commit`] makes visible.
    fn complete(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// Makes visible what it keeps for later runs: the last step, since they leave out what this run's output has.
    fn commit(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// Returns what it came to, when all records are decided on.
    fn outcome(&mut self, tally: &Tally) -> Result<Self::Outcome, RunError>;
}

/// A run whose options are checked, and what an earlier one left of it.
pub(crate) struct Start {
    pub sources: Arc<[Source]>,
    pub options: RunOptions,
    output: OutputOptions,
    manner: Manner,
    fingerprint: Fingerprint,
    folder: Option<StateFolder>,
    resumed: Option<State>,
}

/// What a run came to.
pub(crate) struct Done<O> {
    pub tally: Tally,
    pub outcome: O,
    /// Seconds in which the ordered commit was at work.
    pub commit_seconds: f64,
    /// Seconds in which the report was made.
    pub report_seconds: f64,
}

impl Start {
    /// Looks at the outputs and at what an earlier run left, and changes nothing. `decisive` are the job's own options that decide
    /// the output, `protected` files that it reads beside the sources.
    pub fn new(
        sources: Arc<[Source]>,
        options: RunOptions,
        manner: Manner,
        decisive: Fingerprint,
        protected: &[PathBuf],
    ) -> Result<Self, RunError> {
        let outputs: Vec<&Path> = options.outputs().map(PathBuf::as_path).collect();
        let same_before = |&i: &usize| outputs[..i].iter().any(|before| is_same_output(before, outputs[i]));
        if let Some(i) = (1..outputs.len()).find(same_before) {
            return Err(RunError::SameOutput { path: outputs[i].to_owned() });
        }
        if let Some(out) = &options.out {
            check_sources(out, &sources, &manner.added(options.annotate))?;
        }
        if let Some(folder) = options.scratch.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(RunError::NoScratchFolder { folder: folder.clone() });
        }
        let of = |out| StateFolder::of(out, options.checkpoint_bytes).with_scratch(options.scratch.as_deref());
        let folder = resumable_output(&options, &sources).map(of);
        let mut fingerprint = options.fingerprint(&sources);
        fingerprint.extend(decisive);
        let mut resumed: Option<State> = None;
        if let Some(folder) = folder.as_ref().filter(|folder| folder.exists()) {
            if options.resume {
                resumed = folder.load()?;
            } else if !options.force {
                return Err(RunError::Unfinished { folder: folder.path().to_owned() });
            }
        }
        if let Some(state) = &resumed
            && let Some((what, was, is)) = options::first_change(&state.mended(&sources, &fingerprint)?, &fingerprint)
        {
            return Err(RunError::Changed { what, was, is });
        }
        let output = write::options_for(&options, &sources, protected);
        Ok(Self { sources, options, output, manner, fingerprint, folder, resumed })
    }

    /// Returns the folder of the run's state, if it can be resumed.
    pub fn folder(&self) -> Option<&StateFolder> {
        self.folder.as_ref()
    }

    /// How outputs are opened that the decider writes.
    pub fn output(&self) -> &OutputOptions {
        &self.output
    }

    /// Returns how many records an earlier run has already dealt with.
    pub fn resumed_records(&self) -> u64 {
        self.resumed.as_ref().map_or(0, |state| state.tally.records)
    }

    /// Returns what the decider continues from, if this run is resumed.
    pub fn saved<T: DeserializeOwned>(&self) -> Result<Option<T>, RunError> {
        let (Some(state), Some(folder)) = (&self.resumed, &self.folder) else { return Ok(None) };
        match T::deserialize(&state.decider) {
            Ok(saved) => Ok(Some(saved)),
            Err(cause) => Err(folder.damaged(cause).into()),
        }
    }

    /// Ends a run that was stopped when everything was written and only the names were missing; `None` if this is not such a run.
    /// `commit` is [`Decider::commit`] without a decider.
    pub fn finish_stopped<O: DeserializeOwned>(
        &self,
        commit: impl FnOnce(&O) -> Result<(), RunError>,
    ) -> Result<Option<Done<O>>, RunError> {
        let (Some(state), Some(folder)) = (&self.resumed, &self.folder) else { return Ok(None) };
        if state.phase != Phase::Finishing {
            return Ok(None);
        }
        let outcome = O::deserialize(state.outcome.as_ref().unwrap_or(&serde_json::Value::Null));
        let outcome: O = outcome.map_err(|cause| folder.damaged(cause))?;
        write::finish_named(&self.options, &self.sources, self.output.clone(), state)?;
        commit(&outcome)?;
        self.remove_state()?;
        Ok(Some(Done { tally: state.tally.clone(), outcome, commit_seconds: 0.0, report_seconds: 0.0 }))
    }

    /// Opens the outputs and runs `body`. If that fails and there is no checkpoint, nothing of them is left.
    pub fn guarded<T>(&self, body: impl FnOnce(Outputs) -> Result<T, RunError>) -> Result<T, RunError> {
        if let (Some(folder), Some(out)) = (&self.folder, &self.options.out) {
            let partial = if is_folder(out) { out.clone() } else { partial_path(out) };
            folder.remove_leftover(&partial)?;
        }
        // From here on the outputs are locked: what lies under their partial names is this run's and no other's.
        let lengths = self.resumed.as_ref().map(|state| &state.outputs);
        let (output, manner) = (self.output.clone(), self.manner.clone());
        let outputs = Outputs::open(&self.options, &self.sources, output, manner, lengths, self.folder.is_some())?;
        let begin = || {
            if self.resumed.is_none() {
                self.remove_state()?;
            }
            body(outputs)
        };
        let outcome = begin();
        let resumable = self.folder.as_ref().is_some_and(StateFolder::exists);
        if outcome.is_err() && !resumable {
            write::remove_partial(&self.options, &self.sources);
            self.remove_state()?;
        }
        outcome.map_err(|error| match error {
            RunError::Interrupted { .. } => {
                let first = self.folder.as_ref().filter(|_| !resumable).map(|folder| folder.interval(0));
                RunError::Interrupted { resumable, first_checkpoint: first }
            }
            RunError::MemoryTaken { taken, records, .. } => RunError::MemoryTaken { taken, records, resumable },
            other => other,
        })
    }

    fn remove_state(&self) -> Result<(), RunError> {
        Ok(self.folder.as_ref().map_or(Ok(()), StateFolder::remove)?)
    }

    fn first_tally(&self, decider: &impl Decider, against: usize) -> Tally {
        // What is inside what is shown by the decider, and no sample is compared again.
        let is_sampled =
            self.options.report.is_some() && !matches!(self.manner, Manner::Leaks { .. } | Manner::Units { .. });
        let samples = Samples::new(if is_sampled { SAMPLED } else { 0 });
        let mut tally = Tally::new(&self.sources, against, samples);
        tally.next_checkpoint = match &self.folder {
            Some(_) if decider.starts_with_checkpoint() => 1,
            Some(folder) => folder.interval(decider.checkpoint_bytes()),
            None => u64::MAX,
        };
        tally
    }

    /// Reads to the end, and lets the outputs appear.
    pub fn carry_out<W: Worker, D: Decider<Piece = W::Piece>>(
        &self,
        outputs: Outputs,
        read: ReadOptions,
        (worker, decider): (&W, &mut D),
        seed: Seed,
        progress: &Progress,
        page: impl FnOnce(&D, &Tally, &D::Outcome) -> Result<String, RunError>,
    ) -> Result<Done<D::Outcome>, RunError> {
        let against = match &self.manner {
            Manner::Filter { against, .. } | Manner::Compared { against, .. } => against.len(),
            Manner::Screened { .. } | Manner::Leaks { .. } | Manner::Units { .. } => 0,
        };
        let (tally, position, passed, saved) = match &self.resumed {
            Some(state) => (state.tally.clone(), state.position, state.passed.clone(), state.decider.clone()),
            None => {
                let tally = self.first_tally(decider, against);
                (tally, Position::default(), Passed::default(), serde_json::Value::Null)
            }
        };
        let mut committer = Committer {
            options: &self.options,
            decider,
            tally,
            manner: &self.manner,
            fingerprint: &self.fingerprint,
            folder: self.folder.as_ref(),
            saved,
            seed,
            progress,
            decisions: Vec::new(),
        };
        let reader = Reader::open_at(Arc::clone(&self.sources), read, position);
        let passing = Passing::new(passed);
        let (mut outputs, commit_seconds) = self.read_all(reader, worker, &mut committer, (outputs, passing))?;
        let Tally { records, faulty, errors, .. } = &committer.tally;
        errors.expect_readable(self.options.on_error, *records, *faulty)?;
        let outcome = committer.decider.outcome(&committer.tally)?;
        let reporting = Instant::now();
        if let Some(report) = &mut outputs.report {
            report.write(page(committer.decider, &committer.tally, &outcome)?.as_bytes())?;
        }
        let report_seconds = reporting.elapsed().as_secs_f64();
        self.finish(&mut committer, &outcome, outputs)?;
        Ok(Done { tally: committer.tally, outcome, commit_seconds, report_seconds })
    }

    /// Reads to the end. The outputs come back complete but unnamed, with the seconds that the commit took.
    fn read_all<W: Worker, D: Decider<Piece = W::Piece>>(
        &self,
        reader: Reader,
        worker: &W,
        committer: &mut Committer<'_, D>,
        (outputs, mut passing): (Outputs, Passing),
    ) -> Result<(Outputs, f64), RunError> {
        let fields = &self.options.fields;
        let wants_ids = self.options.removed.is_some() || committer.tally.samples.is_wanted() || self.wants_names();
        let (feed, queue) = queue(self.options.threads);
        let (pool_in, pool) = unbounded();
        let (write_in, write) = bounded(WAITING);
        // Not within the scope: nobody can wake a thread that waits for a pipe, so a run that stops leaves it behind.
        let reading = thread::spawn(move || read_jobs(reader, feed, &pool));
        let folder = committer.folder;
        let mut busy = Duration::ZERO;
        let outputs = thread::scope(|scope| {
            let writer =
                scope.spawn(move || outputs.write_all(&write, &pool_in, folder.map(|folder| (folder, &mut passing))));
            let committed = queue.take_while(
                || (Arena::new(), worker.room()),
                |(arena, room), mut job: Job<W::Piece>| {
                    let Job { batch, piece, faults, ids, .. } = &mut job;
                    // What was half done is never looked at again.
                    let worked = panic::catch_unwind(AssertUnwindSafe(|| {
                        let extracted = extract(batch, fields, arena);
                        if wants_ids {
                            (0..extracted.len()).for_each(|i| {
                                ids.push(&extracted.id(i));
                            });
                        }
                        worker.work(room, &extracted, piece, faults);
                    }));
                    job.given_up = worked.is_err();
                    job
                },
                || committer.progress.go_on(),
                |mut job| {
                    let started = Instant::now();
                    committer.commit(&mut job)?;
                    busy += started.elapsed();
                    // If it fails, the writer says why.
                    write_in.send(job).map_err(|_| RunError::STOPPED)
                },
            );
            drop(write_in);
            // If the writer failed, the commit could not go on either, and the writer knows why.
            let outputs = writer.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
            committed.map(|()| outputs)
        })?;
        reading.join().map_err(|_| RunError::ReaderDied)?;
        Ok((outputs, busy.as_secs_f64()))
    }

    /// Returns whether records are to be named beside others that are near them.
    pub fn wants_names(&self) -> bool {
        match self.manner {
            Manner::Compared { saves, .. } => saves || self.options.annotate || self.options.removed.is_some(),
            Manner::Leaks { .. } => self.options.report.is_some(),
            _ => false,
        }
    }

    /// Completes the outputs, says so, and only then lets them appear: if it is stopped in between, resuming does the rest.
    fn finish<D: Decider>(
        &self,
        committer: &mut Committer<'_, D>,
        outcome: &D::Outcome,
        mut outputs: Outputs,
    ) -> Result<(), RunError> {
        committer.decider.complete()?;
        let mut saved = None;
        if let Some(path) = &self.options.save {
            let mut out = OutputFile::create(path, &self.output)?;
            committer.decider.write(&mut out)?;
            saved = Some(out);
        }
        if let Some(folder) = &self.folder {
            let mut state = committer.state(Phase::Finishing, Position::default());
            outputs.end()?;
            state.outputs = outputs.lengths()?;
            state.outputs.report = outputs.report.as_mut().map(OutputFile::checkpoint).transpose()?;
            state.outputs.saved = saved.as_mut().map(OutputFile::checkpoint).transpose()?;
            state.outcome = Some(
                serde_json::to_value(outcome)
                    .map_err(|cause| OutputError::from_io(folder.path(), std::io::Error::other(cause)))?,
            );
            folder.save(&state, state.tally.checkpoints)?;
            saved.iter_mut().for_each(OutputFile::keep_partial);
        }
        outputs.finish()?;
        // What screens later runs comes after the records that it tells them to leave out.
        if let Some(out) = saved {
            out.finish()?;
        }
        committer.decider.commit()?;
        self.remove_state()
    }
}

fn read_jobs<P: Default>(mut reader: Reader, mut feed: Feed<Job<P>>, pool: &Receiver<Job<P>>) {
    while feed.wait() {
        let mut job = pool.try_recv().unwrap_or_default();
        job.clear();
        match reader.read_batch(&mut job.batch) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => job.input_error = Some(error),
        }
        if !feed.send(job) {
            return;
        }
    }
}

/// Returns whether an unfinished run towards this output can be resumed.
pub fn is_resumable(out: &Path) -> bool {
    StateFolder::of(out, None).exists()
}

/// Returns the output, if a run over these sources can be resumed: a pipe can't be read or written twice, what may have another version then must
/// not be, and Parquet files and arrays are written from their ends.
fn resumable_output<'o>(options: &'o RunOptions, sources: &[Source]) -> Option<&'o Path> {
    let files =
        sources.iter().all(|source| source.bytes.is_some() && source.is_rereadable() && source.format.is_resumable());
    let pipes = options.outputs().any(|path| is_written_through(path));
    options.out.as_deref().filter(|_| files && !pipes)
}
