//! Which records are near which, exactly: near pairs, clusters, and duplicates removed only after they were compared.
//!
//! ```text
//! reader ──> workers ──────────> batch by batch, all threads ──> in order, one thread ──> rows or records
//!            shingles, keys      who shares a rare shingle?      the same, among the
//!                                compare sets; those that memory records of the batch
//!                                no longer holds are read again
//! ```
//!
//! Claim: a similarity or distance stated here is exact, of texts by default the Jaccard similarity of their shingle sets, and what comes
//! out is a function of the records, their order and the options: the same for any number of threads.
//! Invariant: texts that are compared by Jaccard similarity are not held. A record that others may be compared with leaves its keys and its place in the input;
//! beyond that, a cache of fixed size (`cache::CACHE_BYTES`) and a bounded number of batches is all there is in memory. What
//! cannot be read again at its place (compressed files, Parquet, pipes) is copied to scratch space. Items of other metrics are held (`items`).
//! Not here: who is a candidate (`nearset::index`), and how to print anything.

mod alarm;
mod budget;
mod cache;
mod cluster;
mod components;
mod containment;
mod copies;
mod decisions;
mod dedup;
mod edit;
mod equal;
pub mod explore;
mod in_memory;
mod inside;
mod items;
mod model;
mod needs;
mod pairs;
mod rank;
mod stars;
pub(crate) mod stream;
mod texts;

use std::path::Path;
use std::sync::Arc;

use nearset::Metric;
use nearset::plan::Request;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

pub use alarm::{Alarm, Cause};
pub use cluster::{Cluster, ClusterOptions, ClusterSummary};
pub use decisions::{Decisions, PairDecision};
pub use dedup::{VerifiedDedup, VerifiedDedupOptions, VerifiedDedupSummary};
pub use edit::{EditSearch, Searching};
pub use in_memory::{Near, TextComparison, TextCutter};
pub use pairs::{Pairs, PairsOptions, PairsSummary};
pub use rank::{Keep, KeepError};
pub use stream::Counts;

use crate::capacity::{Capacity, estimate};
use crate::run::{OnError, Progress, RunError};
use edit::Limit;
use items::ItemPlan;
use nearset_records::extract::{Fields, ItemField};
use nearset_records::output::{OutputOptions, TableFile};
use nearset_records::{ReadOptions, Source};
use needs::{BYTES_PER_NAME, Demand};
use stream::Cutter;

/// How texts are measured against each other by what is no metric of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TextMeasure {
    /// By how much of a text is in another, rather than how much both have in common.
    Containment,
    /// By how many characters are inserted, deleted or replaced to turn one into the other.
    Edit,
    /// By how much those leave: 1 less the edits per character of the longer text.
    EditSimilarity,
}

impl TextMeasure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Containment, Self::Edit, Self::EditSimilarity];

    /// Whether it counts edits. The others count shingles.
    pub const fn counts_edits(self) -> bool {
        matches!(self, Self::Edit | Self::EditSimilarity)
    }

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Containment => "containment",
            Self::Edit => "edit",
            Self::EditSimilarity => "edit-similarity",
        }
    }
}

/// What is near, and how to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JoinOptions {
    /// What is near, and what may be missed.
    pub wanted: Request,
    /// How texts are measured where the metric does not say it. The metric then only says how texts are cut, if they are.
    pub text_measure: Option<TextMeasure>,
    /// What a record's text and id are called.
    pub fields: Fields,
    /// What to do with a record that cannot be read.
    pub on_error: OnError,
    /// Threads that hash.
    pub threads: usize,
    /// Whether existing outputs may be replaced.
    pub force: bool,
    /// Memory that records may take; `None` is what there is.
    pub memory: Option<u64>,
    /// Where copies of texts go, and what memory can't hold; otherwise in a folder for temporary files.
    pub scratch: Option<PathBuf>,
}

impl JoinOptions {
    /// The usual options.
    pub fn new(wanted: Request) -> Self {
        Self {
            wanted,
            text_measure: None,
            fields: Fields::new("text", ItemField::Text),
            on_error: OnError::Fail,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            force: false,
            memory: None,
            scratch: None,
        }
    }

    /// Plans, for these sources.
    fn plan(&self, sources: &Arc<[Source]>) -> Result<Planned, RunError> {
        Planned::new(sources, (&self.wanted, &self.wanted), self.text_measure, &self.fields)
    }

    /// The same, if what is held of all records is no more than there is. Texts that are read again are held as far as memory lasts.
    fn plan_within(&self, sources: &Arc<[Source]>) -> Result<Planned, RunError> {
        if let Some(folder) = self.scratch.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(RunError::NoScratchFolder { folder: folder.clone() });
        }
        let mut planned = self.plan(sources)?;
        let plan = &mut planned.plan;
        let demand = Demand {
            memory: self.memory,
            scratch: self.scratch.clone(),
            bytes_per_record: BYTES_PER_NAME,
            fixed_bytes: 0,
            spilled_per_record: plan.reads_again().then(|| plan.spilled_bytes() + BYTES_PER_NAME),
            is_new: true,
        };
        plan.needs = Some(Needs::new(sources, &self.fields, plan, demand)?);
        Ok(planned)
    }

    /// Starts a table of results.
    fn table(
        &self,
        sources: &[Source],
        (out, columns): (&Path, &'static [&'static str]),
    ) -> Result<TableFile, RunError> {
        let output = OutputOptions::protecting(sources).with_force(self.force);
        Ok(TableFile::create(out, columns, &output)?)
    }

    /// Makes ready to cut texts.
    fn cutter(&self, sources: &[Source], progress: &Progress) -> Result<Cutter<'static>, RunError> {
        Ok(Cutter::new(sources, &self.wanted, &self.fields, progress)?.with_ids(true))
    }

    fn reading(&self) -> (usize, OnError) {
        (self.threads, self.on_error)
    }
}

/// What will be done, before it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JoinPlan {
    /// What distance means.
    #[serde(serialize_with = "as_words")]
    pub metric: Metric,
    /// How texts are measured where the metric does not say it; the metric then only says how texts are cut.
    pub text_measure: Option<TextMeasure>,
    /// From where on records are near, in the metric's own unit.
    pub near: f64,
    /// What may be missed of the pairs at exactly `near`, at most.
    pub max_false_negative: f64,
    /// What is expected to be missed there.
    pub missed: f64,
    /// How texts are cut, where records are texts.
    pub shingling: Option<String>,
    /// Shingles under which a record is looked up, if none of its own is common; tables of other items, or 0 where nothing is missed.
    pub keys: usize,
    /// Memory that each record takes that others are compared with, its id aside.
    pub bytes_per_record: u64,
    /// The most memory that shingle sets are held in, not to be read again.
    pub cache_bytes: u64,
    /// What all records would take, where that was asked for.
    pub needs: Option<Needs>,
}

fn as_words<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(metric)
}

impl JoinPlan {
    /// Whether records are texts that are read again where they are compared, rather than held.
    pub fn reads_again(&self) -> bool {
        matches!(self.metric, Metric::Jaccard { .. }) && self.text_measure.is_none()
    }

    /// What a number that says how near two records are is called.
    pub fn measure(&self) -> &'static str {
        match self.text_measure {
            Some(TextMeasure::Containment) => "containment",
            _ if self.larger_is_nearer() => "similarity",
            _ => "distance",
        }
    }

    /// Whether nearer records have the larger number.
    pub fn larger_is_nearer(&self) -> bool {
        match self.text_measure {
            Some(measure) => measure != TextMeasure::Edit,
            None => self.metric.larger_is_nearer(),
        }
    }
}

/// What a run takes if it keeps all records.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Needs {
    /// How many there are.
    pub records: Capacity,
    /// Memory in all.
    pub bytes: u64,
    /// Memory that the run may take; `None` where nothing is known about that.
    pub available: Option<u64>,
    /// Bytes of texts that are copied, since they can't be read again where they lie.
    pub scratch_bytes: u64,
    /// Whether what memory can't hold goes to scratch space. Otherwise a run over a pipe stops where memory ends.
    pub spills: bool,
    /// Bytes of scratch space beside them that take the place of memory which is not there.
    pub spilled_bytes: u64,
    /// Where they go.
    pub scratch: PathBuf,
}

/// A plan, and how it is carried out.
struct Planned {
    plan: JoinPlan,
    comparison: Comparison,
}

/// How records are compared.
enum Comparison {
    /// Texts by Jaccard similarity, which are read again.
    Texts,
    /// Texts by what is inside what.
    Contained,
    /// Texts by edits.
    Edits(Limit),
    /// Other items, which are held.
    Items(Box<ItemPlan>),
}

/// Bytes to expect in the index per key of a record: its tables are three eighths to three quarters full.
const BYTES_A_KEY: f64 = 8.0 / 0.53;

/// And per record.
const INDEX_BYTES_A_RECORD: u64 = 5;

impl Planned {
    /// What is near as `wanted` says; texts among candidates that are looked up as `layout` says.
    fn new(
        sources: &Arc<[Source]>,
        (wanted, layout): (&Request, &Request),
        text_measure: Option<TextMeasure>,
        fields: &Fields,
    ) -> Result<Self, RunError> {
        let is_by_edits = text_measure.is_some_and(TextMeasure::counts_edits);
        let shingling = wanted.metric.shape().shingling.filter(|_| !is_by_edits).map(|shingling| shingling.to_string());
        let plan = |max_false_negative, missed, keys, bytes_per_record, cache_bytes| JoinPlan {
            metric: wanted.metric,
            text_measure,
            near: wanted.near,
            max_false_negative,
            missed,
            shingling,
            keys,
            bytes_per_record,
            cache_bytes,
            needs: None,
        };
        if let Some(measure) = text_measure.filter(|_| is_by_edits) {
            let is_similarity = measure == TextMeasure::EditSimilarity;
            let limit =
                edit::limit(measure, wanted.near).ok_or(RunError::NotNear { near: wanted.near, is_similarity })?;
            let records = estimate(sources, &ReadOptions::new(fields.clone()))?;
            let bytes = edit::bytes_per_record(records.mean_bytes.unwrap_or(0.0) as u64);
            return Ok(Self { plan: plan(0.0, 0.0, 0, bytes, 0), comparison: Comparison::Edits(limit) });
        }
        if text_measure == Some(TextMeasure::Containment) {
            let spec = wanted.plan_join()?;
            let missed = 1.0 - spec.success_probability(spec.near);
            // A shingle for each word or two, at 8 bytes, and what it is looked up by.
            let records = estimate(sources, &ReadOptions::new(fields.clone()))?;
            let bytes = 2 * records.mean_bytes.unwrap_or(0.0) as u64 + 40 * spec.keys() as u64 + 80;
            return Ok(Self {
                plan: plan(spec.max_false_negative, missed, spec.keys(), bytes, 0),
                comparison: Comparison::Contained,
            });
        }
        if let Metric::Jaccard { .. } = wanted.metric {
            let (near, spec) = (wanted.plan_join()?.near, layout.plan_join()?);
            let bytes = (BYTES_A_KEY * spec.keys() as f64) as u64 + INDEX_BYTES_A_RECORD + texts::BYTES_A_RECORD;
            let missed = 1.0 - spec.success_probability(near);
            let plan = plan(spec.max_false_negative, missed, spec.keys(), bytes, cache::CACHE_BYTES as u64);
            return Ok(Self { plan, comparison: Comparison::Texts });
        }
        let records = estimate(sources, &ReadOptions::new(fields.clone()))?;
        let items = ItemPlan::new(sources, wanted, fields, records)?;
        let plan = plan(items.max_false_negative, items.missed, items.tables, items.bytes_per_record, 0);
        Ok(Self { plan, comparison: Comparison::Items(Box::new(items)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_measure_of_texts_has_no_index_is_told() {
        for measure in TextMeasure::ALL {
            let told = measure.as_str().parse::<nearset::family::MetricName>().unwrap_err().to_string();
            assert!(told.contains("is no metric of filters and indexes, as "), "{told}");
        }
    }
}
