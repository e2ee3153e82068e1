//! Near-duplicates out of a corpus, in one pass and fixed memory.
//!
//! ```text
//! reader ──> workers ──> ordered commit ──> writer
//! bytes      keys        near or new        files
//!    ^                                        │
//!    └───────────── a pool of jobs ───────────┘
//! ```
//!
//! Claim: the output is a function of the records, their order and the options: the same bytes for any number of threads, and,
//! at one capacity, for one file or the same records split over many. A run that was stopped at any moment and resumed ends
//! with the same bytes.
//! Invariant: a fixed number of jobs goes round, so memory is the filter and a bounded number of batches, whatever the input.
//! Every record is inserted, kept or not, so what is near is decided against all records before.
//! Not here: how to print anything.

mod commit;
mod error;
mod job;
mod options;
mod progress;
mod report;
mod speed;
mod state;
mod summary;
mod texts;
mod threads;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nearset::plan::{Plan, PlanError, RequestError};
use nearset::spec::Terms;
use nearset::{Filter, NearFilter, Similarity};
use nearset_view::run::{CurvePoint, SourceSummary, Stated};

pub(crate) use commit::record_bytes;
pub use error::DedupError;
pub(crate) use job::Ids;
pub use job::{Against, TextSketcher};
pub use options::{DedupOptions, OnError};
pub use progress::Progress;
pub(crate) use summary::Errors;
pub use summary::{DedupPlan, GenerationSummary, Summary};
pub use texts::{Sketched, TextRun};

use crate::capacity::{self, Capacity, Known};
use crate::filter_file::FilterFile;
use commit::Committer;
use nearset_records::format::Format;
use nearset_records::input::{Position, ReadOptions, Source};
use nearset_records::output::{OutputFile, check_sources, is_same_output, is_written_through};
use report::{SAMPLED, Samples};
use state::{Phase, State, StateFolder};
use summary::{Outcome, Tally};
use write::Outputs;

/// Similarities at which plans and summaries state what is caught, beside near and far themselves.
const CURVE_STEP: f64 = 0.05;

/// Batches hold about so many records, within the bounds below: keys take more room than short records do, and batches that
/// stay in a core's cache on their way take 3 to 6 % less time than some of 1 MiB.
const RECORDS_A_BATCH: f64 = 1024.0;
const BATCH_BYTES: std::ops::RangeInclusive<f64> = 65536.0..=262144.0;

/// A run that is about to start.
pub struct Dedup {
    sources: Arc<[Source]>,
    options: DedupOptions,
    read: ReadOptions,
    capacity: Capacity,
    folder: Option<StateFolder>,
    resumed: Option<State>,
    speed: Option<f64>,
}

impl Dedup {
    /// Looks at the inputs and at what an earlier run left, and changes nothing.
    ///
    /// # Errors
    /// If the promise can't be made, two outputs are one file, the records can't go to one output of this name, or the run to be resumed was
    /// another one.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, options: DedupOptions) -> Result<Self, DedupError> {
        let sources = sources.into();
        options.terms()?;
        let outputs: Vec<&Path> = options.outputs().map(PathBuf::as_path).collect();
        let same_before = |&i: &usize| outputs[..i].iter().any(|before| is_same_output(before, outputs[i]));
        if let Some(i) = (1..outputs.len()).find(same_before) {
            return Err(DedupError::SameOutput { path: outputs[i].to_owned() });
        }
        if let Some(out) = &options.out {
            check_sources(out, &sources, &write::added(&options))?;
        }
        let folder = resumable_output(&options, &sources).map(|out| StateFolder::of(out, options.checkpoint_bytes));
        let mut resumed = None;
        if let Some(folder) = folder.as_ref().filter(|folder| folder.exists()) {
            if options.resume {
                resumed = folder.load()?;
            } else if !options.force {
                return Err(DedupError::Unfinished { folder: folder.path().to_owned() });
            }
        }
        if let Some(state) = &resumed
            && let Some((what, was, is)) = state::first_change(&state.fingerprint, &options.fingerprint(&sources)?)
        {
            return Err(DedupError::Changed { what, was, is });
        }
        let mut read = ReadOptions::new(options.fields.clone());
        let capacity = match (&resumed, options.capacity) {
            (Some(state), _) => state.capacity,
            (None, Some(records)) => Capacity { records, known: Known::Given, mean_bytes: None },
            (None, None) => capacity::estimate(&sources, &read),
        };
        let wanted_bytes = capacity.mean_bytes.unwrap_or(0.0) * RECORDS_A_BATCH;
        read.batch_bytes = wanted_bytes.clamp(*BATCH_BYTES.start(), *BATCH_BYTES.end()) as usize;
        let hasher = plan(&options, 1)?.spec.hasher().expect("a filter of texts has bands");
        let speed = speed::expected(&sources, &read, hasher, options.threads);
        Ok(Self { sources, options, read, capacity, folder, resumed, speed })
    }

    /// What will be done.
    ///
    /// # Errors
    /// If no such filter can be.
    pub fn plan(&self) -> Result<DedupPlan, DedupError> {
        let plan = plan(&self.options, self.capacity.records)?;
        let terms = plan.terms();
        let spec = plan.spec.near().expect("a filter of texts has bands");
        let caught = |similarity| {
            plan.accepted(similarity)
                .map_err(|source| PlanError::from(RequestError::OutOfRange { what: "near", source }))
        };
        let curve = similarities(terms)
            .map(|similarity| Ok(CurvePoint::new(similarity, caught(similarity)?)))
            .collect::<Result<_, DedupError>>()?;
        Ok(DedupPlan {
            near: plan.request.near,
            far: plan.request.metric.own_unit(terms.far),
            max_false_negative: terms.max_false_negative,
            max_false_positive: terms.max_false_positive,
            shingling: self.options.shingling().to_string(),
            rows: spec.rows,
            bands: spec.rule.bands(),
            capacity: self.capacity,
            bytes: spec.bytes(),
            curve,
            stated: Stated::new(terms, caught)?,
            threads: self.options.threads.max(1),
            bytes_per_second: self.speed,
            resumed_records: self.resumed.as_ref().map_or(0, |state| state.tally.records),
        })
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be. No output has appeared then; where there is a
    /// checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<Summary, DedupError> {
        let started = Instant::now();
        let plan = self.plan()?;
        if let Some(state) = self.resumed.as_ref().filter(|state| state.phase == Phase::Finishing) {
            write::finish_named(&self.options, &self.sources, state)?;
            self.remove_state()?;
            let outcome = state.outcome.clone().unwrap_or_else(Outcome::unknown);
            return Ok(Summary::new(plan, state.tally.clone(), outcome, &self.options, started));
        }
        if let (Some(folder), Some(out)) = (&self.folder, &self.options.out) {
            folder.remove_leftover(out)?;
        }
        // From here on the outputs are locked: what lies under their partial names is this run's and no other's.
        let lengths = self.resumed.as_ref().map(|state| &state.outputs);
        let outputs = Outputs::open(&self.options, &self.sources, lengths, self.folder.is_some(), plan.bands)?;
        let outcome = self.read_and_write(&plan, outputs, progress, started);
        if outcome.is_err() && !self.folder.as_ref().is_some_and(StateFolder::exists) {
            write::remove_partial(&self.options);
            self.remove_state()?;
        }
        outcome.map_err(|error| match error {
            DedupError::Interrupted { .. } => {
                DedupError::Interrupted { resumable: self.folder.as_ref().is_some_and(StateFolder::exists) }
            }
            other => other,
        })
    }

    fn remove_state(&self) -> Result<(), DedupError> {
        Ok(self.folder.as_ref().map_or(Ok(()), StateFolder::remove)?)
    }

    fn read_and_write(
        &self,
        plan: &DedupPlan,
        outputs: Outputs,
        progress: &Progress,
        started: Instant,
    ) -> Result<Summary, DedupError> {
        let Self { sources, options, folder, resumed, .. } = self;
        write::check_save(options, sources)?;
        let open = |path: &PathBuf| FilterFile::open(path).map(|file| file.within(options.work));
        let files = options.against.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let spec = crate::dedup::plan(options, self.capacity.records)?.spec;
        let own = spec.near().expect("a filter of texts has bands");
        let open = if options.allow_overfull { FilterFile::filter } else { FilterFile::filter_to_trust };
        let filters = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let screen = |(filter, path): (_, &PathBuf)| {
            Against::new(filter, own).map_err(|cause| DedupError::AgainstKind { path: path.clone(), cause })
        };
        let against = filters.iter().zip(&options.against).map(screen).collect::<Result<Vec<_>, DedupError>>()?;
        let (filter, tally, saved, position) = match (resumed, folder) {
            (Some(state), Some(folder)) => {
                (folder.load_filter(state)?, state.tally.clone(), state.filter.clone(), state.position)
            }
            _ => {
                self.remove_state()?;
                let filter = Filter::new(&spec)?;
                let tally = self.empty_tally(filter.bytes());
                (filter, tally, None, Position::default())
            }
        };
        let mut committer = Committer {
            options,
            hasher: filter.hasher().expect("a filter of texts has bands"),
            bands: plan.bands as usize,
            filter,
            tally,
            capacity: self.capacity,
            fingerprint: options.fingerprint(sources)?,
            folder: folder.as_ref(),
            saved,
            progress,
        };
        let reader = nearset_records::input::Reader::open_at(Arc::clone(sources), self.read.clone(), position);
        let (mut outputs, commit_seconds) = threads::run(reader, &against, &mut committer, outputs)?;
        let reporting = Instant::now();
        if let Some(report) = &mut outputs.report {
            report.write(committer.report(sources, plan)?.as_bytes())?;
        }
        let report_seconds = reporting.elapsed().as_secs_f64();
        self.finish(&committer, outputs)?;
        let outcome = committer.outcome();
        let mut summary = Summary::new(plan.clone(), committer.tally, outcome, options, started);
        summary.commit_seconds = commit_seconds;
        summary.report_seconds = report_seconds;
        Ok(summary)
    }

    /// Completes the outputs, says so, and only then lets them appear: if it is stopped in between, resuming does the rest.
    fn finish(&self, committer: &Committer<'_>, mut outputs: Outputs) -> Result<(), DedupError> {
        let mut saved = write::write_saved(&self.options, &self.sources, &committer.filter)?;
        if let Some(folder) = &self.folder {
            let mut state = committer.state(Phase::Finishing, Position::default());
            state.outputs = outputs.lengths()?;
            state.outputs.report = outputs.report.as_mut().map(OutputFile::checkpoint).transpose()?;
            state.outputs.saved = saved.as_mut().map(OutputFile::checkpoint).transpose()?;
            state.outcome = Some(committer.outcome());
            folder.save(&state)?;
            saved.iter_mut().for_each(OutputFile::keep_partial);
        }
        if let Some(out) = saved {
            out.finish()?;
        }
        outputs.finish()?;
        self.remove_state()
    }

    fn empty_tally(&self, filter_bytes: u64) -> Tally {
        let named = |source: &Source| SourceSummary::new(&*source.name);
        Tally {
            against: vec![0; self.options.against.len()],
            sources: self.sources.iter().map(named).collect(),
            samples: Samples::new(if self.options.report.is_some() { SAMPLED } else { 0 }),
            next_checkpoint: self.folder.as_ref().map_or(u64::MAX, |folder| folder.interval(filter_bytes)),
            ..Tally::default()
        }
    }
}

/// The filter of a run over about so many texts.
fn plan(options: &DedupOptions, capacity: u64) -> Result<Plan, PlanError> {
    options.wanted.clone().capacity(capacity).plan_dedup()
}

/// Whether an unfinished run towards this output can be resumed.
pub fn is_resumable(out: &Path) -> bool {
    StateFolder::of(out, None).exists()
}

/// The output, if a run over these sources can be resumed: a pipe can't be read or written twice, and Parquet files and arrays are written
/// from their ends.
fn resumable_output<'o>(options: &'o DedupOptions, sources: &[Source]) -> Option<&'o Path> {
    let files = sources.iter().all(|source| {
        source.bytes.is_some() && source.path().is_some() && !matches!(source.format, Format::Parquet | Format::Npy)
    });
    let pipes = options.outputs().any(|path| is_written_through(path));
    options.out.as_deref().filter(|_| files && !pipes)
}

/// Where the curve is stated: every .05 from far to .1 above near.
fn similarities(terms: &Terms) -> impl Iterator<Item = f64> + use<> {
    let (near, far) = (1.0 - terms.near.value(), 1.0 - terms.far.value());
    let (first, last) = ((far / CURVE_STEP).round() as u32, ((near + 0.1) / CURVE_STEP).round() as u32);
    (first..=last).map(|step| f64::from(step) / 20.0).filter(|&similarity| similarity < 1.0)
}

/// The probability, as the filter is now, of being caught at similarities.
fn curve(filter: &Filter<'_>, similarities: impl Iterator<Item = f64>) -> Vec<CurvePoint> {
    similarities.map(|similarity| CurvePoint::new(similarity, caught(filter, similarity))).collect()
}

fn caught(filter: &Filter<'_>, similarity: f64) -> f64 {
    let distance = Similarity::jaccard(similarity).map(Similarity::jaccard_distance);
    distance.map_or(f64::NAN, |distance| filter.acceptance_probability(distance))
}

fn outcome(filter: &Filter<'_>) -> Outcome {
    let describe = |(filter, capacity): (&NearFilter<'_>, u64)| GenerationSummary {
        capacity,
        items: filter.len(),
        fill: filter.fill(),
        bytes: filter.spec().bytes(),
    };
    let terms = filter.terms().expect("a run's filter is on terms");
    Outcome {
        generations: filter.near_generations().zip(filter.capacities()).map(describe).collect(),
        curve: curve(filter, similarities(terms)),
        false_negative: 1.0 - filter.acceptance_probability(terms.near),
        false_positive: filter.acceptance_probability(terms.far),
    }
}
