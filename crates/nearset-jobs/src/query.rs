//! Records screened against a filter: those near something in it, those near nothing, or all with what was found.
//!
//! Claim: every record is answered by the filter as it was opened, so neither their order nor threads can show.
//! Not here: reading, writing and checkpoints (`run`), and how to print anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nearset::Match;
use nearset::family::Hashed;
use nearset::{Filter, Seed};
use nearset_records::{Extracted, OutputFile, ReadOptions, RecordError, RecordFault, Source, StateFolder};
use serde::Serialize;

use crate::join::Counts;
use crate::run::{
    Decider, Decision, Done, Fingerprint, Ids, Manner, Part, Progress, RunError, RunOptions, Start, Tally, Verdict,
    Worker, of_file,
};

/// Which records are written, unless all are annotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Keep {
    /// Those near something in the filter.
    Near,
    /// Those near nothing in it.
    #[default]
    Far,
}

/// How to screen.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueryOptions {
    /// How to read, and what to write; there is no filter to save, and nothing to report.
    pub run: RunOptions,
    /// Which records are written.
    pub keep: Keep,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QuerySummary {
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records that were answered.
    pub items: u64,
    /// Records near something in the filter.
    pub near: u64,
    /// Records that could not be read.
    pub skipped: u64,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// A run that is about to start.
pub struct Query<'f> {
    start: Start,
    filter: &'f Filter<'f>,
    options: QueryOptions,
}

impl<'f> Query<'f> {
    /// Looks at the outputs and at what an earlier run left, and changes nothing. `path` is where the filter lies.
    ///
    /// # Errors
    /// If two outputs are one file, the records can't go to one output of this name, or the run to be resumed was another one.
    pub fn prepare(
        sources: impl Into<Arc<[Source]>>,
        (filter, path): (&'f Filter<'f>, &Path),
        mut options: QueryOptions,
    ) -> Result<Self, RunError> {
        (options.run.save, options.run.report) = (None, None);
        // Taken apart, so that a new option can't be forgotten here.
        let QueryOptions { run, keep } = &options;
        let mut decisive = Fingerprint::new();
        decisive.insert("keep".to_owned(), format!("{keep:?}"));
        decisive.insert("the filter".to_owned(), format!("{}, {}", path.display(), of_file(path)));
        let manner = Manner::Screened {
            filter: path.display().to_string(),
            bands: filter.spec().near().map(|spec| spec.rule.bands()),
        };
        let protected: &[PathBuf] = &[path.to_owned()];
        let start = Start::new(sources.into(), run.clone(), manner, decisive, protected)?;
        Ok(Self { start, filter, options })
    }

    /// Returns how many records an earlier run has already dealt with.
    pub fn resumed_records(&self) -> u64 {
        self.start.resumed_records()
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be. No output has appeared then; where there is a
    /// checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<QuerySummary, RunError> {
        let started = Instant::now();
        let Self { start, filter, options } = &self;
        let fields = &options.run.fields;
        let done = match start.finish_stopped(|_| Ok(()))? {
            Some(done) => done,
            None => start.guarded(|outputs| {
                let worker = Asking { filter, field: &fields.item };
                let mut decider = Screen { keep: options.keep, bytes: filter.bytes() };
                let page = |_: &Screen, _: &Tally, _: &()| Ok(String::new());
                let read = ReadOptions::new(fields.clone());
                start.carry_out(outputs, read, (&worker, &mut decider), Seed::default(), progress, page)
            })?,
        };
        let Done { tally, outcome: (), .. } = done;
        Ok(QuerySummary {
            items: tally.kept + tally.near,
            near: tally.near,
            skipped: tally.faulty,
            counts: tally.into(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// Asks the filter, which any number of threads may do.
struct Asking<'w> {
    filter: &'w Filter<'w>,
    /// The item's field, for errors.
    field: &'w str,
}

impl Worker for Asking<'_> {
    type Piece = Vec<Match>;
    type Room = Hashed;

    fn room(&self) -> Hashed {
        Hashed::default()
    }

    fn clear(&self, _: &mut Hashed, answers: &mut Vec<Match>) {
        answers.clear();
    }

    fn add(
        &self,
        room: &mut Hashed,
        extracted: &Extracted<'_>,
        i: usize,
        answers: &mut Vec<Match>,
    ) -> Result<(), RecordError> {
        let unhashable = |cause| extracted.error(i, RecordFault::Unhashable { field: self.field.to_owned(), cause });
        let item = extracted.item(i).map_err(Clone::clone)?;
        answers.push(self.filter.find(item, room).map_err(unhashable)?);
        Ok(())
    }
}

/// Keeps records by the filter's answers alone, so a checkpoint has nothing to hold.
struct Screen {
    keep: Keep,
    bytes: u64,
}

impl Decider for Screen {
    type Piece = Vec<Match>;
    type Outcome = ();

    fn decide(
        &mut self,
        part: Part<'_, Vec<Match>>,
        decisions: &mut Vec<Decision>,
        _: &mut Ids,
    ) -> Result<(), RunError> {
        let verdict = |&Match { near, hits, bands, .. }: &Match| Verdict::Screened {
            near,
            hits: (bands > 0).then_some(hits),
            kept: near == (self.keep == Keep::Near),
        };
        let sound = part.sound();
        decisions.extend(part.piece[sound].iter().map(|found| Decision { verdict: verdict(found), family: None }));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    fn is_mendable(&self) -> bool {
        true
    }

    fn save(&mut self, _: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        Ok(serde_json::Value::Null)
    }

    fn write(&mut self, _: &mut OutputFile) -> Result<(), RunError> {
        Ok(())
    }

    fn outcome(&mut self, _: &Tally) -> Result<(), RunError> {
        Ok(())
    }
}
