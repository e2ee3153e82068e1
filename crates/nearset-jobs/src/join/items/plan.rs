//! How items are found that are then compared exactly.
//!
//! Invariant: a plan is a function of the sources and the request, so that a resumed run plans the same.

use std::sync::Arc;

use nearset::plan::{Background, FarModel, Minimise, Request};
use nearset::{Distance, HammingSpec, Index, IndexSpec, JoinSpec, Metric, Seed};
use nearset_records::{Arena, Batch, Fields, InputError, ReadOptions, Reader, Source, extract};

use crate::capacity::{Capacity, found};
use crate::measure::Keeper;
use crate::run::RunError;

/// Items whose distances tell how far apart unrelated ones lie.
const SAMPLED: usize = 1000;

/// Bytes of each source that are read for them.
const SAMPLED_BYTES: usize = 1 << 20;

/// Sources that are sampled, at most.
const MOST_SOURCES: usize = 50;

/// The part of all pairs that is nearer than what a plan takes for far.
const NEARER: f64 = 0.01;

/// How items of a metric are found and compared.
#[derive(Clone)]
pub(in super::super) struct ItemPlan {
    pub metric: Metric,
    pub within: Distance,
    pub seed: Seed,
    /// An index of the planned spec, without items.
    pub empty: Index<'static>,
    pub max_false_negative: f64,
    /// What is expected to be missed of the pairs at exactly `near`.
    pub missed: f64,
    /// Tables under which an item is looked up; 0 where it depends on how many there are.
    pub tables: usize,
    /// Memory that an item takes, its id aside.
    pub bytes_per_record: u64,
}

impl ItemPlan {
    /// Plans for so many records.
    pub fn new(sources: &[Source], wanted: &Request, fields: &Fields, records: Capacity) -> Result<Self, RunError> {
        let metric = wanted.metric;
        let within = metric.distance(wanted.near).map_err(|cause| {
            nearset::plan::PlanError::from(nearset::plan::RequestError::OutOfRange { what: "near", cause })
        })?;
        if let Metric::Hamming { bits } = metric {
            let empty = Index::new(HammingSpec::new(bits, within.value() as u32, wanted.seed))?;
            // Some twenty blocks of tables for a million items.
            let bytes_per_record = u64::from(bits.div_ceil(64)) * 8 + HAMMING_TABLE_BYTES;
            return Ok(Self {
                metric,
                within,
                seed: wanted.seed,
                empty,
                max_false_negative: 0.0,
                missed: 0.0,
                tables: 0,
                bytes_per_record,
            });
        }
        let max_false_negative = wanted.max_false_negative.unwrap_or(JoinSpec::MAX_FALSE_NEGATIVE);
        let mut request = wanted.clone();
        request.max_false_negative = Some(max_false_negative);
        request.minimise = Minimise::Time;
        // Where records are split otherwise, their number may be estimated otherwise.
        request.capacity = records.records.next_power_of_two().max(FEWEST);
        let sampled = background(sources, metric, fields)?;
        request.far = Some(far(metric, within, sampled.as_ref()));
        request.far_model = sampled.map(FarModel::Measured);
        let plan = request.plan_index()?;
        let tables = plan.spec.layout.bands as usize;
        let missed = 1.0 - plan.success;
        let item_bytes = match metric.shape().length {
            Some(length) => 4 * u64::from(length),
            // A shingle for each word or two, at 8 bytes.
            None => records.mean_bytes.unwrap_or(0.0) as u64,
        };
        let bytes_per_record = plan.table_bytes_per_item as u64 + item_bytes + 16;
        let empty = Index::new(IndexSpec::Lsh(plan.spec))?;
        Ok(Self { metric, within, seed: wanted.seed, empty, max_false_negative, missed, tables, bytes_per_record })
    }
}

/// What the tables of a Hamming index take for each item, about: `make bench-hamming` prints it.
const HAMMING_TABLE_BYTES: u64 = 150;

/// Items that a plan is made for, at least: for few, tables hardly matter.
const FEWEST: u64 = 1024;

/// Where unrelated items lie: what is nearer than all but a hundredth of the pairs is far enough not to be met often.
fn far(metric: Metric, near: Distance, sampled: Option<&Background>) -> f64 {
    let farthest = metric.farthest().map_or(f64::INFINITY, Distance::value);
    // Without a sample, half-way between near and the farthest, or twice as far.
    let usual = if farthest.is_finite() { 0.5 * (near.value() + farthest) } else { 2.0 * near.value() };
    let far = sampled.map_or(usual, |sampled| sampled.quantile(NEARER).value());
    // Far must be farther than near, and a family whose members are all near has no other.
    let least = near.value() + 0.1 * (usual - near.value()).max(f64::MIN_POSITIVE);
    let far = if metric.is_whole() { far.max(least).ceil().max(near.value() + 1.0) } else { far.max(least) };
    metric.own_unit(Distance::new(far).unwrap_or(near))
}

/// The distances of sampled pairs; `None` where there is too little to be sampled.
fn background(sources: &[Source], metric: Metric, fields: &Fields) -> Result<Option<Background>, InputError> {
    let files: Vec<&Source> = sources.iter().filter(|source| source.bytes.is_some()).collect();
    let sampled: Vec<&Source> = files.iter().copied().step_by(files.len().div_ceil(MOST_SOURCES).max(1)).collect();
    let keeper = Keeper::new(metric);
    let mut items = Vec::new();
    for source in &sampled {
        let most = SAMPLED.div_ceil(sampled.len());
        let mut options = ReadOptions::new(fields.clone());
        options.batch_bytes = SAMPLED_BYTES;
        let mut reader = Reader::new(Arc::from([(*source).clone()]), options);
        let (mut batch, mut arena) = (Batch::new(), Arena::new());
        if !found(reader.read_batch(&mut batch))?.unwrap_or(false) {
            continue;
        }
        let extracted = extract(&batch, fields, &mut arena);
        let step = extracted.len().div_ceil(most).max(1);
        let kept = (0..extracted.len()).step_by(step).filter_map(|i| keeper.keep(extracted.item(i).ok()?));
        items.extend(kept.filter(|item| metric.between(item.view(), item.view()).is_ok()));
    }
    let pairs = (0..items.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let distances = pairs.filter_map(|(a, b)| metric.between(items[a].view(), items[b].view()).ok());
    Ok(Background::from_distances(distances.collect()))
}
