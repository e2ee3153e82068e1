//! Every record with its cluster: stars around records that are not near each other, or what chains connect.
//!
//! Stars are known as records come, so their rows are written in one pass. What chains connect is known only at the end, so
//! the input is read once more for the rows.

mod of_items;

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
use super::containment;
use super::edit;
use super::pairs::Finder;
use super::stars::{MOST_LISTED, Next, OwnSet, Placement, Stars};
use super::stream::{self, Counts, Cutter};
use super::texts::Texts;
use super::{Comparison, JoinOptions, JoinPlan, Planned};
use crate::run::{Ids, Progress, RunError};
use nearset_records::Cure;
use nearset_records::input::Source;
use nearset_records::output::{TableFile, Value};
use nearset_records::scratch_folder;

/// The columns of the output, by what the metric's numbers are.
const SIMILARITIES: [&str; 3] = ["id", "cluster", "similarity"];
const DISTANCES: [&str; 3] = ["id", "cluster", "distance"];
const SHARES: [&str; 3] = ["id", "cluster", "containment"];

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
    /// Pairs of records that were compared, where that was counted.
    pub compared: Option<u64>,
    /// Texts that were read again for it.
    pub read_again: u64,
    /// Memory of what records are compared with, ids and cache aside.
    pub index_bytes: u64,
    /// Families so large that somebody should look at them.
    pub alarms: Vec<Alarm>,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// A run that is about to start.
pub struct Cluster {
    sources: Arc<[Source]>,
    options: ClusterOptions,
    planned: Planned,
}

impl Cluster {
    /// Plans, and changes nothing.
    ///
    /// # Errors
    /// If the promise can't be made, or a pipe would have to be read twice.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, options: ClusterOptions) -> Result<Self, RunError> {
        let sources = sources.into();
        let planned = options.join.plan(&sources)?;
        if options.follow_chains && options.join.text_measure.is_none() {
            stream::check_files(&sources, "what chains connect is known only after all was read", Cure::SaveToFile)?;
        }
        Ok(Self { sources, options, planned })
    }

    /// What will be done.
    pub fn plan(&self) -> &JoinPlan {
        &self.planned.plan
    }

    /// Writes, for each record in order, its id, its cluster's (the id of the first record of it, its centre), and how near it is to
    /// that; an empty record, which is like nothing, has neither similarity nor distance.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be; no output has appeared then.
    pub fn run(self, progress: &Progress) -> Result<ClusterSummary, RunError> {
        let started = Instant::now();
        let Self { sources, options, planned: Planned { plan, comparison } } = self;
        let columns = match plan.measure() {
            "distance" => &DISTANCES,
            "containment" => &SHARES,
            _ => &SIMILARITIES,
        };
        let table = options.join.table(&sources, (&options.out, columns))?;
        let mut summary = ClusterSummary {
            plan,
            counts: Counts::default(),
            clusters: 0,
            clustered: 0,
            largest: 0,
            cut_short: 0,
            compared: None,
            read_again: 0,
            index_bytes: 0,
            alarms: Vec::new(),
            seconds: 0.0,
        };
        match comparison {
            Comparison::Items(items) if options.follow_chains => {
                of_items::chains(&sources, &options, &items, progress, table, &mut summary)?;
            }
            Comparison::Items(items) => of_items::stars(&sources, &options, &items, progress, table, &mut summary)?,
            Comparison::Contained => {
                containment::cluster(&sources, &options.join, table, &mut summary, progress)?;
            }
            Comparison::Edits(limit) => {
                let join = (&options.join, limit);
                edit::cluster(&sources, join, options.follow_chains, table, &mut summary, progress)?;
            }
            Comparison::Texts => {
                let cutter = options.join.cutter(&sources, progress)?;
                let cluster = if options.follow_chains { chains } else { stars };
                cluster(&sources, &options, &cutter, progress, table, &mut summary)?;
            }
        }
        summary.seconds = started.elapsed().as_secs_f64();
        Ok(summary)
    }
}

fn stars(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter<'_>,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let mut stars = Stars::new(sources, &options.join.fields, false, MOST_LISTED, cutter, None, scratch_folder(None));
    let mut keys = ShingleKeys::default();
    let mut ids = Ids::default();
    let mut empty = 0;
    summary.counts =
        stream::read(sources, options.join.reading(), (cutter, &cutter.fields), progress, |batch, cut| {
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
    (summary.compared, summary.read_again) = (Some(stars.texts.compared), stars.texts.read_again);
    summary.cut_short = stars.clusters.cut_short;
    summary.index_bytes = stars.bytes();
    Ok(())
}

fn chains(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter<'_>,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    // Copies need not be paired with each other: the first one connects them.
    let mut finder = Finder::new(sources, &options.join, cutter, 0);
    let mut components = UnionFind::default();
    let mut item = 0;
    summary.counts =
        stream::read(sources, options.join.reading(), (cutter, &cutter.fields), progress, |batch, cut| {
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
    let counts = stream::read(sources, options.join.reading(), (cutter, &cutter.fields), progress, |_, cut| {
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
    (summary.compared, summary.read_again) = (Some(finder.texts.compared), finder.texts.read_again);
    summary.cut_short = finder.pairs.cut_short;
    Ok(())
}

impl ClusterSummary {
    pub(super) fn note_sizes(&mut self, sizes: impl Iterator<Item = u64>) {
        for size in sizes {
            self.clusters += 1;
            self.clustered += if size > 1 { size } else { 0 };
            self.largest = self.largest.max(size);
        }
    }
}
