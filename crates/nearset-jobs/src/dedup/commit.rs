//! The ordered commit: the one place where records meet those before them.
//!
//! Invariant: everything here is a function of the records in their order, so neither threads nor batches nor the way records
//! are split over files can show in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::spec::Hasher;
use nearset::{Filter, Item};
use nearset_view::run::Stated;

use super::DedupError;
use super::job::{Job, Verdict};
use super::options::{DedupOptions, OnError};
use super::progress::Progress;
use super::report::{Place, is_sampled, page_of_run};
use super::state::{Lengths, Phase, State, StateFolder, StateVersion};
use super::summary::{DedupPlan, Outcome, Tally};
use crate::capacity::Capacity;
use nearset_records::extract::{Arena, Fields, extract};
use nearset_records::input::{Batch, Position, Source};

/// All that changes as records go by.
pub(super) struct Committer<'r> {
    pub options: &'r DedupOptions,
    pub filter: Filter<'static>,
    pub tally: Tally,
    pub hasher: Hasher,
    pub bands: usize,
    pub capacity: Capacity,
    pub fingerprint: BTreeMap<String, String>,
    /// Where checkpoints go, if the run can be resumed.
    pub folder: Option<&'r StateFolder>,
    /// The filter's file of the last checkpoint.
    pub saved: Option<String>,
    pub progress: &'r Progress,
}

impl Committer<'_> {
    /// Decides on the records of a batch, whose turn it is.
    pub fn commit(&mut self, job: &mut Job) -> Result<(), DedupError> {
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
            if self.options.on_error == OnError::Fail {
                return Err(error.into());
            }
            self.tally.errors.push(&error);
            if let Some(source) = self.tally.sources.iter_mut().find(|source| *source.name == **job.batch.name()) {
                source.broken = true;
            }
        }
        self.report_progress(job);
        Ok(())
    }

    fn report_progress(&self, job: &Job) {
        let set = |counter: &std::sync::atomic::AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        set(&self.progress.records, self.tally.records);
        set(&self.progress.bytes, self.tally.bytes);
        set(&self.progress.disk_bytes, job.batch.disk_bytes());
        set(&self.progress.removed, self.tally.near + self.tally.against.iter().sum::<u64>());
        set(&self.progress.faulty, self.tally.faulty);
        set(&self.progress.filter_bytes, self.filter.bytes());
    }

    /// Decides on the records `from..to`; those before are decided.
    fn decide(&mut self, job: &mut Job, from: usize, to: usize) -> Result<(), DedupError> {
        if from == to {
            return Ok(());
        }
        let bands = self.bands;
        let faults_before = |record: usize| job.faults.partition_point(|&(faulty, _)| faulty < record);
        let (first_fault, end_fault) = (faults_before(from), faults_before(to));
        if let (OnError::Fail, Some((_, error))) = (self.options.on_error, job.faults.get(first_fault)) {
            return Err(error.clone().into());
        }
        let keys = &job.keys[(from - first_fault) * bands..(to - end_fault) * bands];
        let answers = self.filter.insert_keys_counting(keys)?;
        let mut answers = answers.iter().zip(keys.chunks(bands));
        let mut faults = job.faults[first_fault..end_fault].iter().peekable();
        let mut against = job.against[job.against.partition_point(|&(record, ..)| record < from)..].iter().peekable();
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
            let (answer, keys) = answers.next().expect("an answer for each record that is not faulty");
            let verdict = match against.next_if(|&&(record, ..)| record == i) {
                Some(&(_, filter, hits)) => Verdict::Against { filter, hits },
                None if answer.near => Verdict::Near { hits: answer.hits },
                None => Verdict::New { hits: answer.hits },
            };
            match verdict {
                Verdict::Against { filter, .. } => {
                    tally.against[filter] += 1;
                    source.against += 1;
                }
                Verdict::Near { .. } => {
                    tally.near += 1;
                    source.near += 1;
                }
                Verdict::New { .. } => {
                    tally.kept += 1;
                    source.kept += 1;
                }
                Verdict::Faulty => {}
            }
            job.verdicts.push(verdict);
            if tally.samples.is_wanted() {
                let start = job.batch.start();
                if matches!(verdict, Verdict::New { .. }) {
                    tally.samples.keep(start.source, start.record + i as u64);
                }
                // What an earlier filter caught says nothing about this run's own.
                if !matches!(verdict, Verdict::Against { .. }) && is_sampled(job.batch.raw(i)) {
                    let (key, removed) = (keys[0].map(|key| key.get()), matches!(verdict, Verdict::Near { .. }));
                    tally.samples.see(self.options.wanted.seed, number, removed, key, || Place {
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

    /// Saves the filter as it is behind the first `records` records, and asks the writer for the rest.
    fn checkpoint(&mut self, job: &mut Job, records: usize) -> Result<(), DedupError> {
        let Some(folder) = self.folder else { return Ok(()) };
        self.tally.checkpoints += 1;
        self.tally.next_checkpoint = self.tally.bytes + folder.interval(self.filter.bytes());
        self.saved = Some(folder.save_filter(&self.filter, self.tally.checkpoints)?);
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
            capacity: self.capacity,
            tally: self.tally.clone(),
            filter: self.saved.clone(),
            outputs: Lengths::default(),
            outcome: None,
        }
    }

    /// What the filter has come to.
    pub fn outcome(&self) -> Outcome {
        super::outcome(&self.filter)
    }

    /// The page about the run, when all records are decided on; the inputs are read once more.
    pub fn report(&self, sources: &Arc<[Source]>, plan: &DedupPlan) -> Result<String, DedupError> {
        let promised = super::curve(&self.filter, (0..=100).map(|hundredth| f64::from(hundredth) / 100.0));
        let run = (sources, self.options, plan);
        let stated = Stated::new(&self.options.terms()?, |similarity| {
            Ok::<_, DedupError>(super::caught(&self.filter, similarity))
        })?;
        page_of_run(run, &self.tally, &self.outcome(), (promised, stated), self.progress)
    }
}

/// The text of a record. Few are remembered, so it is read again rather than carried along for all.
fn text_of(batch: &Batch, i: usize, fields: &Fields) -> String {
    let alone = batch.only(i);
    match extract(&alone, fields, &mut Arena::new()).item(0) {
        Ok(Item::Text(text)) => text.to_owned(),
        _ => String::new(),
    }
}

/// The bytes of a record, its line end counted as one byte whether it is there or not.
pub(crate) fn record_bytes(raw: &[u8]) -> u64 {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    raw.strip_suffix(b"\r").unwrap_or(raw).len() as u64 + 1
}
