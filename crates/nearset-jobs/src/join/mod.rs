//! Which records are near which, exactly: near pairs, clusters, and duplicates removed only after they were compared.
//!
//! ```text
//! reader ──> workers ──────────> batch by batch, all threads ──> in order, one thread ──> rows or records
//!            shingles, keys      who shares a rare shingle?      the same, among the
//!                                compare sets; those that memory records of the batch
//!                                no longer holds are read again
//! ```
//!
//! Claim: a similarity stated here is the exact Jaccard similarity of two records' shingle sets, and what comes out is a
//! function of the records, their order and the options: the same for any number of threads.
//! Invariant: texts are not held. A record that others may be compared with leaves its keys and its place in the input;
//! beyond that, a cache of fixed size (`cache::CACHE_BYTES`) and a bounded number of batches is all there is in memory. What
//! cannot be read again at its place (compressed files, Parquet, pipes) is copied to scratch space.
//! Not here: who is a candidate (`nearset::index`), and how to print anything.

mod alarm;
mod cache;
mod cluster;
mod components;
mod decisions;
mod dedup;
pub mod explore;
mod in_memory;
mod model;
mod pairs;
mod rank;
mod stars;
mod stream;
mod texts;

use std::path::Path;
use std::sync::Arc;

use nearset::index::ShingleIndex;
use nearset::plan::{PlanError, Request};
use serde::Serialize;
use std::path::PathBuf;

pub use alarm::{Alarm, Cause};
pub use cluster::{ClusterOptions, ClusterSummary, cluster};
pub use decisions::{Decisions, PairDecision};
pub use dedup::{VerifiedDedup, VerifiedDedupOptions, VerifiedDedupSummary};
pub use in_memory::{Near, TextComparison, TextCutter};
pub use pairs::{PairsOptions, PairsSummary, pairs};
pub use rank::{Keep, KeepError};
pub use stream::Counts;

use crate::capacity::Capacity;
use crate::run::{OnError, Progress, RunError};
use nearset_records::Source;
use nearset_records::extract::{Fields, ItemField};
use nearset_records::output::{OutputOptions, TableFile};
use stream::Cutter;

/// What is near, and how to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JoinOptions {
    /// What is near, and what may be missed.
    pub wanted: Request,
    /// What a record's text and id are called.
    pub fields: Fields,
    /// What to do with a record that cannot be read.
    pub on_error: OnError,
    /// Threads that hash.
    pub threads: usize,
    /// Whether existing outputs may be replaced.
    pub force: bool,
}

impl JoinOptions {
    /// The usual options.
    pub fn new(wanted: Request) -> Self {
        Self {
            wanted,
            fields: Fields::new("text", ItemField::Text),
            on_error: OnError::Fail,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            force: false,
        }
    }

    /// What will be done.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn plan(&self) -> Result<JoinPlan, PlanError> {
        JoinPlan::new(&self.wanted, &self.wanted)
    }

    /// Starts a table of results, and makes ready to cut texts for it.
    fn begin(
        &self,
        sources: &Arc<[Source]>,
        (out, columns): (&Path, &'static [&'static str]),
        progress: &Progress,
    ) -> Result<(TableFile, Cutter<'static>), RunError> {
        let output = OutputOptions::protecting(sources).with_force(self.force);
        let table = TableFile::create(out, columns, &output)?;
        Ok((table, Cutter::new(sources, &self.wanted, &self.fields, progress)?.with_ids(true)))
    }

    fn reading(&self) -> (usize, OnError) {
        (self.threads, self.on_error)
    }
}

/// What will be done, before it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JoinPlan {
    /// The similarity from which on texts are near.
    pub near: f64,
    /// What may be missed of the pairs at exactly `near`, at most.
    pub max_false_negative: f64,
    /// What is expected to be missed there.
    pub missed: f64,
    /// How texts are cut.
    pub shingling: String,
    /// Shingles under which a record is looked up, if none of its own is common.
    pub keys: usize,
    /// Memory that each record takes that others are compared with, its id aside.
    pub bytes_per_record: u64,
    /// The most memory that shingle sets are held in, not to be read again.
    pub cache_bytes: u64,
    /// What all records would take, where that was asked for.
    pub needs: Option<Needs>,
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
    /// Bytes of scratch space beside them that take the place of memory which is not there.
    pub spilled_bytes: u64,
    /// Where they go.
    pub scratch: PathBuf,
}

impl JoinPlan {
    /// What is near as `wanted` says, among candidates that are looked up as `layout` says.
    fn new(wanted: &Request, layout: &Request) -> Result<Self, PlanError> {
        let near = wanted.plan_join()?.near;
        let spec = layout.plan_join()?;
        let index = ShingleIndex::expected_bytes(spec.keys());
        Ok(Self {
            near: wanted.near,
            max_false_negative: spec.max_false_negative,
            missed: 1.0 - spec.success_probability(near),
            shingling: spec.shingling.to_string(),
            keys: spec.keys(),
            bytes_per_record: index + texts::BYTES_A_RECORD,
            cache_bytes: cache::CACHE_BYTES as u64,
            needs: None,
        })
    }
}
