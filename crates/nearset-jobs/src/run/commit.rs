//! The ordered commit: the one place where records meet those before them.
//!
//! Invariant: everything here is a function of the records in their order, so neither threads nor batches nor the way records
//! are split over files can show in it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::{Item, Seed};
use nearset_records::{Arena, Batch, Fields, Position, StateFolder, extract};

use super::job::{Decision, Job, Part, Verdict};
use super::options::{Fingerprint, OnError, RunOptions};
use super::passed::Passed;
use super::samples::{Place, is_sampled};
use super::state::{Lengths, Phase, State, StateVersion};
use super::tally::{Tally, record_bytes};
use super::{Decider, Manner, Progress, RunError};

/// All that changes as records go by.
pub(super) struct Committer<'r, D> {
    pub options: &'r RunOptions,
    pub decider: &'r mut D,
    pub tally: Tally,
    pub manner: &'r Manner,
    pub fingerprint: &'r Fingerprint,
    /// Where checkpoints go, if the run can be resumed.
    pub folder: Option<&'r StateFolder>,
    /// What the decider saved at the last checkpoint.
    pub saved: serde_json::Value,
    /// From which samples for the report are drawn.
    pub seed: Seed,
    pub progress: &'r Progress,
    pub decisions: Vec<Decision>,
}

impl<D: Decider> Committer<'_, D> {
    /// Decides on the records of a batch, whose turn it is.
    pub fn commit(&mut self, job: &mut Job<D::Piece>) -> Result<(), RunError> {
        if job.given_up {
            return Err(RunError::WorkerDied { name: Arc::clone(job.batch.name()), line: job.batch.start().line });
        }
        let (mut from, mut seen) = (0, self.tally.bytes);
        for i in 0..job.batch.len() {
            seen += record_bytes(job.batch.raw(i));
            if self.folder.is_some() && seen >= self.tally.next_checkpoint {
                self.decide(job, from, i + 1)?;
                self.checkpoint(job, i + 1)?;
                from = i + 1;
            }
        }
        self.decide(job, from, job.batch.len())?;
        if let Some(error) = job.input_error.take() {
            // What can't be reached now, or is named wrongly, is not damaged.
            if self.options.on_error == OnError::Fail || error.is_fatal() {
                return Err(error.into());
            }
            self.tally.errors.push(&error);
            if let Some(source) = self.tally.sources.iter_mut().find(|source| *source.name == **job.batch.name()) {
                source.broken = true;
            }
        }
        self.report_progress(&job.batch);
        Ok(())
    }

    fn report_progress(&self, batch: &Batch) {
        let set = |counter: &std::sync::atomic::AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        set(&self.progress.records, self.tally.records);
        set(&self.progress.bytes, self.tally.bytes);
        set(&self.progress.disk_bytes, batch.disk_bytes());
        set(&self.progress.removed, self.tally.near + self.tally.against.iter().sum::<u64>());
        set(&self.progress.faulty, self.tally.faulty);
        set(&self.progress.filter_bytes, self.decider.bytes());
    }

    /// Decides on the records `from..to`; those before are decided.
    fn decide(&mut self, job: &mut Job<D::Piece>, from: usize, to: usize) -> Result<(), RunError> {
        if from == to {
            return Ok(());
        }
        let first_fault = job.faults.partition_point(|&(faulty, _)| faulty < from);
        if let (OnError::Fail, Some((_, error))) =
            (self.options.on_error, job.faults.get(first_fault).filter(|&&(faulty, _)| faulty < to))
        {
            return Err(error.clone().into());
        }
        self.decisions.clear();
        let (part, names) = Part::new(job, from..to);
        self.decider.decide(part, &mut self.decisions, names)?;
        let mut decisions = self.decisions.iter();
        let mut faults = job.faults[first_fault..].iter().peekable();
        let tally = &mut self.tally;
        let source = &mut tally.sources[job.batch.start().source];
        for i in from..to {
            let number = tally.records;
            tally.records += 1;
            tally.bytes += record_bytes(job.batch.raw(i));
            source.records += 1;
            if let Some((_, error)) = faults.next_if(|(faulty, _)| *faulty == i) {
                tally.faulty += 1;
                source.faulty += 1;
                tally.errors.push(error);
                job.verdicts.push(Verdict::Faulty);
                continue;
            }
            let &Decision { verdict, family } = decisions.next().expect("a decision on each record that is not faulty");
            if let Some(before) = verdict.against() {
                tally.against[before] += 1;
                source.against += 1;
            } else if verdict.is_near() {
                tally.near += 1;
                tally.marked += u64::from(self.manner.is_marked(verdict));
                source.near += 1;
            } else {
                tally.kept += 1;
                source.kept += 1;
            }
            job.verdicts.push(verdict);
            if tally.samples.is_wanted() {
                let start = job.batch.start();
                if verdict.is_kept() {
                    tally.samples.keep(start.source, start.record + i as u64);
                }
                // What an earlier filter caught says nothing about this run's own.
                if verdict.against().is_none() && is_sampled(job.batch.raw(i)) {
                    tally.samples.see(self.seed, number, verdict.is_near(), family, || Place {
                        record: number,
                        source: start.source,
                        line: job.batch.line(i),
                        id: job.ids.get(i).to_owned(),
                        text: text_of(&job.batch, i, &self.options.fields),
                    });
                }
            }
        }
        Ok(())
    }

    /// Saves the decider as it is behind the first `records` records, and asks the writer for the rest.
    fn checkpoint(&mut self, job: &mut Job<D::Piece>, records: usize) -> Result<(), RunError> {
        let Some(folder) = self.folder else { return Ok(()) };
        self.tally.checkpoints += 1;
        self.tally.next_checkpoint = self.tally.bytes + folder.interval(self.decider.checkpoint_bytes());
        folder.create()?;
        self.saved = self.decider.save(folder, self.tally.checkpoints)?;
        let state = self.state(Phase::Reading, job.position_behind(records));
        job.checkpoints.push((records, Box::new(state)));
        Ok(())
    }

    pub fn state(&self, phase: Phase, position: Position) -> State {
        State {
            version: StateVersion::default(),
            fingerprint: self.fingerprint.clone(),
            phase,
            position,
            passed: Passed::default(),
            is_mendable: self.decider.is_mendable(),
            tally: self.tally.clone(),
            decider: self.saved.clone(),
            outputs: Lengths::default(),
            outcome: None,
        }
    }
}

/// Returns the text of a record. Few are remembered, so it is read again rather than carried along for all.
pub(super) fn text_of(batch: &Batch, i: usize, fields: &Fields) -> String {
    let alone = batch.only(i);
    match extract(&alone, fields, &mut Arena::new()).item(0) {
        Ok(Item::Text(text)) => text.to_owned(),
        _ => String::new(),
    }
}
