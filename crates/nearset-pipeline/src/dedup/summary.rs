//! What a run did, for people and for scripts.

use std::path::PathBuf;
use std::time::Instant;

use nearset::plan::TextDedup;
use serde::{Deserialize, Serialize};

use super::options::DedupOptions;
use super::report::Samples;
use crate::capacity::Capacity;

/// Errors that are kept word by word.
const SHOWN_ERRORS: usize = 20;

/// What happened to the records of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceSummary {
    /// The file's name.
    pub name: String,
    /// Records read.
    pub records: u64,
    /// Records with nothing near before them.
    pub kept: u64,
    /// Records near an earlier one.
    pub near: u64,
    /// Records near something in a filter given by `--against`.
    pub against: u64,
    /// Records that could not be read.
    pub faulty: u64,
    /// Whether reading it broke off.
    pub broken: bool,
}

impl SourceSummary {
    /// Records near an earlier one or near something in a filter built before.
    pub fn removed(&self) -> u64 {
        self.near + self.against
    }

    /// Several sources as one.
    pub(super) fn sum<'s>(name: String, sources: impl IntoIterator<Item = &'s SourceSummary>) -> Self {
        sources.into_iter().fold(Self { name, ..Self::default() }, |sum, source| Self {
            name: sum.name,
            records: sum.records + source.records,
            kept: sum.kept + source.kept,
            near: sum.near + source.near,
            against: sum.against + source.against,
            faulty: sum.faulty + source.faulty,
            broken: sum.broken || source.broken,
        })
    }
}

/// Everything that is counted in order, and that a resumed run takes over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub records: u64,
    /// Bytes of records, line ends counted as one: the same however the records are split over files.
    pub bytes: u64,
    pub kept: u64,
    pub near: u64,
    /// By filter.
    pub against: Vec<u64>,
    pub faulty: u64,
    pub errors: Errors,
    pub sources: Vec<SourceSummary>,
    pub next_checkpoint: u64,
    pub checkpoints: u64,
    pub samples: Samples,
}

/// What could not be read: the first of it word by word, the rest counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Errors {
    pub shown: Vec<String>,
    pub more: u64,
}

impl Errors {
    pub fn push(&mut self, error: &dyn std::error::Error) {
        if self.shown.len() < SHOWN_ERRORS {
            self.shown.push(error.to_string());
        } else {
            self.more += 1;
        }
    }
}

/// What the filters came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub generations: Vec<GenerationSummary>,
    pub curve: Vec<CurvePoint>,
    pub false_negative: f64,
    pub false_positive: f64,
}

impl Outcome {
    /// Of a run whose state does not tell.
    pub fn unknown() -> Self {
        Self { generations: Vec::new(), curve: Vec::new(), false_negative: f64::NAN, false_positive: f64::NAN }
    }
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

/// How likely a record is caught whose nearest earlier one has a similarity.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CurvePoint {
    /// The similarity.
    pub similarity: f64,
    /// The probability.
    pub caught: f64,
}

/// What becomes of records by how like the nearest earlier one they are, in the few numbers that matter.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Stated {
    /// What is caught at `near`.
    pub near: CurvePoint,
    /// The least that is promised to be caught at exactly `near`.
    pub least_near: f64,
    /// What is caught a little above it.
    pub above: Vec<CurvePoint>,
    /// What is lost at `far`, though it is not near.
    pub far: CurvePoint,
    /// The most that is promised to be lost at exactly `far`.
    pub most_far: f64,
    /// What is lost of records that have nothing in common with an earlier one.
    pub unrelated: f64,
}

impl Stated {
    /// Asks the probability of being caught at each similarity.
    pub(super) fn new<E>(wanted: &TextDedup, caught: impl Fn(f64) -> Result<f64, E>) -> Result<Self, E> {
        let point = |similarity: f64| Ok(CurvePoint { similarity, caught: caught(similarity)? });
        let above = [0.05, 0.1].map(|more| wanted.near + more).into_iter().filter(|&similarity| similarity < 0.995);
        Ok(Self {
            near: point(wanted.near)?,
            least_near: 1.0 - wanted.max_false_negative,
            above: above.map(point).collect::<Result<_, E>>()?,
            far: point(wanted.far)?,
            most_far: wanted.max_false_positive,
            unrelated: caught(0.0)?,
        })
    }
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
    pub stated: Stated,
    /// Threads that hash.
    pub threads: usize,
    /// How fast it should be, from hashing the first records; `None` for a pipe.
    pub bytes_per_second: Option<f64>,
    /// How many records an earlier run has already dealt with.
    pub resumed_records: u64,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// What was planned.
    pub plan: DedupPlan,
    /// Records read, faulty ones included.
    pub records: u64,
    /// Bytes of records read.
    pub bytes: u64,
    /// Records kept.
    pub kept: u64,
    /// Records near an earlier one.
    pub near: u64,
    /// Records near something in each filter given by `--against`, with its name.
    pub against: Vec<(String, u64)>,
    /// Records that could not be read.
    pub faulty: u64,
    /// The first errors, with file and line.
    pub errors: Vec<String>,
    /// How many more there were.
    pub more_errors: u64,
    /// By source, in order.
    pub sources: Vec<SourceSummary>,
    /// The filters that took the records.
    pub generations: Vec<GenerationSummary>,
    /// The probability of being caught, as the filters were in the end.
    pub curve: Vec<CurvePoint>,
    /// What would be missed at exactly `near`, as the filters were in the end.
    pub false_negative: f64,
    /// What would be caught at exactly `far`, as the filters were in the end.
    pub false_positive: f64,
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
    pub(super) fn new(
        plan: DedupPlan,
        tally: Tally,
        outcome: Outcome,
        options: &DedupOptions,
        started: Instant,
    ) -> Self {
        let Tally { records, bytes, kept, near, against, faulty, errors, sources, .. } = tally;
        let Outcome { generations, curve, false_negative, false_positive } = outcome;
        let names = options.against.iter().map(|path| path.display().to_string());
        Self {
            plan,
            records,
            bytes,
            kept,
            near,
            against: names.zip(against).collect(),
            faulty,
            errors: errors.shown,
            more_errors: errors.more,
            sources,
            generations,
            curve,
            false_negative,
            false_positive,
            saved: options.save.clone(),
            seconds: started.elapsed().as_secs_f64(),
            commit_seconds: 0.0,
            report_seconds: 0.0,
        }
    }
}
