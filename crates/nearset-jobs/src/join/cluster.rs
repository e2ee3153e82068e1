//! Every record with its cluster: stars around records that are not near each other, or what chains connect.
//!
//! Stars are known as records come, so their rows are written in one pass. What chains connect is known only at the end, so
//! the input is read once more for the rows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nearset::Similarity;
use nearset::index::ShingleKeys;
use serde::Serialize;

use super::alarm::{self, Alarm, Cause};
use super::components::UnionFind;
use super::pairs::Finder;
use super::stars::{Next, OwnSet, Placement, Stars};
use super::stream::{self, Counts, Cutter};
use super::texts::Texts;
use super::{JoinOptions, JoinPlan};
use crate::run::{Ids, Progress, RunError};
use nearset_records::Cure;
use nearset_records::input::Source;
use nearset_records::output::{TableFile, Value};
use nearset_records::scratch_folder;

/// The columns of the output.
const COLUMNS: &[&str] = &["id", "cluster", "similarity"];

/// How to cluster.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClusterOptions {
    /// What is near, and how to read.
    pub join: JoinOptions,
    /// Where rows go.
    pub out: PathBuf,
    /// Whether clusters are what chains of near pairs connect, rather than stars.
    pub follow_chains: bool,
}

impl ClusterOptions {
    /// Stars.
    pub fn new(join: JoinOptions, out: impl Into<PathBuf>) -> Self {
        Self { join, out: out.into(), follow_chains: false }
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClusterSummary {
    /// What was planned.
    pub plan: JoinPlan,
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Clusters, those of one record included.
    pub clusters: u64,
    /// Records that are in a cluster with others.
    pub clustered: u64,
    /// The records of the largest cluster.
    pub largest: u64,
    /// Records that may be near another cluster, because a limit left some out that they were to be compared with.
    pub cut_short: u64,
    /// Pairs of records that were compared.
    pub compared: u64,
    /// Texts that were read again for it.
    pub read_again: u64,
    /// Memory of what records are compared with, ids and cache aside.
    pub index_bytes: u64,
    /// Families so large that somebody should look at them.
    pub alarms: Vec<Alarm>,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// Writes, for each record in order, its id, its cluster's (the id of the first record of it, its centre), and the similarity
/// with that; an empty record, which is like nothing, has none.
///
/// # Errors
/// If an input or output fails, or a record is faulty and none may be; no output has appeared then.
pub fn cluster(
    sources: impl Into<Arc<[Source]>>,
    options: &ClusterOptions,
    progress: &Progress,
) -> Result<ClusterSummary, RunError> {
    let (sources, started) = (sources.into(), Instant::now());
    let plan = options.join.plan()?;
    if options.follow_chains {
        stream::check_files(&sources, "what chains connect is known only after all was read", Cure::SaveToFile)?;
    }
    let (table, cutter) = options.join.begin(&sources, (&options.out, COLUMNS), progress)?;
    let mut summary = ClusterSummary {
        plan,
        counts: Counts::default(),
        clusters: 0,
        clustered: 0,
        largest: 0,
        cut_short: 0,
        compared: 0,
        read_again: 0,
        index_bytes: 0,
        alarms: Vec::new(),
        seconds: 0.0,
    };
    if options.follow_chains {
        chains(&sources, options, &cutter, progress, table, &mut summary)?;
    } else {
        stars(&sources, options, &cutter, progress, table, &mut summary)?;
    }
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

fn stars(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let mut stars = Stars::new(sources, &options.join.fields, false, cutter, None, scratch_folder(None));
    let mut keys = ShingleKeys::default();
    let mut ids = Ids::default();
    let mut empty = 0;
    summary.counts = stream::read(sources, options.join.reading(), cutter, progress, |batch, cut| {
        let mut joined = 0;
        stars.texts.cache.adopt(&cut.sets);
        let own_set = |i: usize| OwnSet::Adopted(cut.set_place(i), &cut.sets);
        let proposals = stars.propose(cut.documents.len(), options.join.threads, |i| {
            Some(Next { keys: cut.keys(i), set: own_set(i), place: None, mark: None })
        })?;
        for (i, (document, proposal)) in cut.documents.iter().zip(proposals).enumerate() {
            let (record, id) = (document.record, &document.id);
            keys.read(cut.keys(i));
            let place = |texts: &mut Texts| texts.place(batch, record);
            let Placement { near, entry } = stars.add(&keys, own_set(i), None, &proposal, place)?;
            match (near, entry) {
                (Some((of, similarity)), _) => {
                    joined += 1;
                    let centre = ids.get(of as usize);
                    table.row(&[Value::Text(id), Value::Text(centre), Value::Number(similarity)])?;
                }
                (None, Some(_)) => {
                    ids.push(id);
                    table.row(&[Value::Text(id), Value::Text(id), Value::Number(1.0)])?;
                }
                (None, None) => {
                    empty += 1;
                    table.row(&[Value::Text(id), Value::Text(id), Value::Null])?;
                }
            }
        }
        progress.filter_bytes.store(stars.bytes(), Ordering::Relaxed);
        Ok(joined)
    })?;
    summary.alarms = stars.alarms(summary.counts.records)?;
    table.finish()?;
    summary.note_sizes(stars.members.iter().map(|&members| u64::from(members) + 1).chain((0..empty).map(|_| 1)));
    (summary.compared, summary.read_again) = (stars.texts.compared, stars.texts.read_again);
    summary.cut_short = stars.clusters.cut_short;
    summary.index_bytes = stars.bytes();
    Ok(())
}

fn chains(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    // Copies need not be paired with each other: the first one connects them.
    let mut finder = Finder::new(sources, &options.join, cutter, 0);
    let mut components = UnionFind::default();
    let mut item = 0;
    summary.counts = stream::read(sources, options.join.reading(), cutter, progress, |batch, cut| {
        let mut joined = 0;
        for i in 0..cut.documents.len() {
            components.grow(item as usize + 1);
            let mut alone = true;
            finder.add(batch, cut, i, |earlier, _| {
                components.union(earlier, item);
                alone = false;
                Ok(())
            })?;
            joined += u64::from(!alone);
            item += 1;
        }
        progress.filter_bytes.store(finder.bytes(), Ordering::Relaxed);
        Ok(joined)
    })?;
    summary.index_bytes = finder.bytes() + 4 * u64::from(item);
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    for one in 0..item {
        *sizes.entry(components.find(one)).or_default() += 1;
    }
    summary.note_sizes(sizes.values().copied());
    let entry_of: BTreeMap<u32, u32> = finder.pairs.items().iter().copied().zip(0..).collect();
    // The first record of a cluster comes before all others, so its name is known when they come.
    let mut names: BTreeMap<u32, Box<str>> = BTreeMap::new();
    let items = std::mem::take(&mut item);
    let counts = stream::read(sources, options.join.reading(), cutter, progress, |_, cut| {
        for (i, document) in cut.documents.iter().enumerate() {
            if item == items {
                return Err(RunError::InputChanged);
            }
            let first = components.find(item);
            let similarity = match entry_of.get(&first) {
                _ if cut.set(i).is_empty() => Value::Null,
                Some(_) if first == item => Value::Number(1.0),
                Some(&entry) => {
                    let found = finder.texts.compare(entry, cut.set(i), Similarity::default())?;
                    Value::Number(found.map_or(0.0, Similarity::value))
                }
                None => Value::Null,
            };
            if first == item {
                if sizes[&first] > 1 {
                    names.insert(item, document.id.clone());
                }
                table.row(&[Value::Text(&document.id), Value::Text(&document.id), similarity])?;
            } else {
                let name = names.get(&first).ok_or(RunError::InputChanged)?;
                table.row(&[Value::Text(&document.id), Value::Text(name), similarity])?;
            }
            item += 1;
        }
        Ok(0)
    })?;
    if item != items || counts.bytes != summary.counts.bytes {
        return Err(RunError::InputChanged);
    }
    let large = alarm::worth_an_alarm(sizes.into_iter(), summary.counts.records);
    for (first, size) in large {
        if let Some(&entry) = entry_of.get(&first) {
            summary.alarms.push(alarm::around(&mut finder.texts, Cause::Cluster, entry, size)?);
        }
    }
    table.finish()?;
    (summary.compared, summary.read_again) = (finder.texts.compared, finder.texts.read_again);
    summary.cut_short = finder.pairs.cut_short;
    Ok(())
}

impl ClusterSummary {
    fn note_sizes(&mut self, sizes: impl Iterator<Item = u64>) {
        for size in sizes {
            self.clusters += 1;
            self.clustered += if size > 1 { size } else { 0 };
            self.largest = self.largest.max(size);
        }
    }
}
