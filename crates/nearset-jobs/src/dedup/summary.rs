//! What a run did, for people and for scripts.

use std::path::PathBuf;
use std::time::Instant;

use nearset_view::run::{CurvePoint, Promise};
use serde::{Deserialize, Serialize};

use super::options::DedupOptions;
use crate::capacity::Capacity;
use crate::join::Counts;
use crate::run::Done;

/// What the filters came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub generations: Vec<GenerationSummary>,
    pub curve: Vec<CurvePoint>,
    pub false_negative: f64,
    pub false_positive: f64,
    pub crowded: u64,
}

/// One filter of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GenerationSummary {
    /// Items that it is made for.
    pub capacity: u64,
    /// Items that it took.
    pub items: u64,
    /// The part of its bits that is set.
    pub fill: f64,
    /// Its memory.
    pub bytes: u64,
}

/// What will be done, before it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DedupPlan {
    /// The similarity from which on texts are duplicates.
    pub near: f64,
    /// The similarity below which they are not.
    pub far: f64,
    /// What is promised to be missed at exactly `near`, at most.
    pub max_false_negative: f64,
    /// What is promised to be caught at exactly `far`, at most.
    pub max_false_positive: f64,
    /// How texts are cut.
    pub shingling: String,
    /// Rows of a band.
    pub rows: u32,
    /// Bands.
    pub bands: u32,
    /// For how many texts, and how that is known.
    pub capacity: Capacity,
    /// Memory of the filter.
    pub bytes: u64,
    /// The probability of being caught, at capacity.
    pub curve: Vec<CurvePoint>,
    /// What of that is told to people.
    #[serde(skip)]
    pub promise: Promise,
    /// Threads that hash.
    pub threads: usize,
    /// How many records an earlier run has already dealt with.
    pub resumed_records: u64,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// What was planned.
    pub plan: DedupPlan,
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records kept.
    pub kept: u64,
    /// Records near an earlier one.
    pub near: u64,
    /// Records near something in each filter given by `--against`, with its name.
    pub against: Vec<(String, u64)>,
    /// The filters that took the records.
    pub generations: Vec<GenerationSummary>,
    /// The probability of being caught, as the filters were in the end.
    pub curve: Vec<CurvePoint>,
    /// What would be missed at exactly `near`, as the filters were in the end.
    pub false_negative: f64,
    /// What would be caught at exactly `far`, as the filters were in the end.
    pub false_positive: f64,
    /// Records that were called near and are no copies, if they are so many that bands may be crowded: what many records have
    /// in common fills the same bits, and then a record looks near that is near no single one. 0 if they are few.
    pub crowded: u64,
    /// Where the filter was saved.
    pub saved: Option<PathBuf>,
    /// Seconds that this run took.
    pub seconds: f64,
    /// Seconds in which the ordered commit was at work, of these.
    pub commit_seconds: f64,
    /// Seconds in which the report was made, of these.
    pub report_seconds: f64,
}

impl Summary {
    pub(super) fn new(plan: DedupPlan, done: Done<Outcome>, options: &DedupOptions, started: Instant) -> Self {
        let Done { tally, outcome, commit_seconds, report_seconds } = done;
        let Outcome { generations, curve, false_negative, false_positive, crowded } = outcome;
        Self {
            plan,
            kept: tally.kept,
            near: tally.near,
            against: options.screen.names().into_iter().zip(tally.against.iter().copied()).collect(),
            counts: tally.into(),
            generations,
            curve,
            false_negative,
            false_positive,
            crowded,
            saved: options.run.save.clone(),
            seconds: started.elapsed().as_secs_f64(),
            commit_seconds,
            report_seconds,
        }
    }
}
