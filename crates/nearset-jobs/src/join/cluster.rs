//! Every record with its cluster: stars around records that are not near each other, or what chains connect.
//!
//! Stars are known as records come, so their rows are written in one pass. What chains connect is known only at the end, so
//! the input is read once more for the rows.

mod of_items;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nearset::Similarity;
use nearset::index::ShingleKeys;
use serde::Serialize;

use super::alarm::{self, Alarm, Cause};
use super::budget::{Backlog, Budget, Entries, Names, Others};
use super::components::UnionFind;
use super::containment;
use super::edit;
use super::pairs::Finder;
use super::stars::{MOST_LISTED, Next, Placement, Stars};
use super::stream::{self, Counts, Cutter};
use super::texts::{OwnSet, Texts};
use super::{Comparison, JoinOptions, JoinPlan, Planned};
use crate::crew::Crew;
use crate::run::{Progress, RunError};
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
        let planned = options.join.plan_within(&sources)?;
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

/// Rows of the output, as stars grow.
struct Rows {
    table: TableFile,
    /// Of entries.
    names: Names,
    /// Clusters of an empty record.
    empty: u64,
    joined: u64,
}

impl Rows {
    fn add(&mut self, id: &str, placement: &Placement, texts: &Texts) -> Result<(), RunError> {
        match *placement {
            Placement { near: Some((of, similarity)), .. } => {
                self.joined += 1;
                let centre = self.names.get(of).map_err(|cause| texts.scratch_error(cause))?;
                self.table.row(&[Value::Text(id), Value::Text(&centre), Value::Number(similarity)])?;
            }
            Placement { near: None, entry: Some(_) } => {
                self.names.push(id);
                self.table.row(&[Value::Text(id), Value::Text(id), Value::Number(1.0)])?;
            }
            Placement { near: None, entry: None } => {
                self.empty += 1;
                self.table.row(&[Value::Text(id), Value::Text(id), Value::Null])?;
            }
        }
        Ok(())
    }
}

fn stars(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter<'_>,
    progress: &Progress,
    table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let ClusterOptions { join, .. } = options;
    let crew = Crew::new(join.threads);
    let scratch = join.scratch.clone().unwrap_or_else(|| scratch_folder(None));
    let stars = Stars::new(sources, &join.fields, false, MOST_LISTED, cutter, None, scratch);
    let mut budget = Budget::new(stars, summary.plan.budget(join.memory), summary.plan.entry_bytes(), &crew);
    let mut rows = Rows { table, names: Names::default(), empty: 0, joined: 0 };
    let decide = |stars: &mut Stars, (waiting, records): (&Backlog<Box<str>>, Range<usize>), rows: &mut Rows| {
        let room = (&crew, progress);
        stars.decide(
            (waiting, records),
            room,
            |_| None,
            |stars, record, placement| rows.add(waiting.own(record), &placement, &stars.texts),
        )
    };
    let mut keys = ShingleKeys::default();
    summary.counts = stream::read(sources, join.reading(), (cutter, &cutter.fields), progress, |batch, cut| {
        let before = rows.joined;
        if budget.is_first() {
            let stars = &mut budget.held;
            stars.texts.cache.adopt(&cut.sets);
            let own_set = |i: usize| OwnSet::Adopted(cut.set_place(i), &cut.sets);
            let proposals = stars.propose(cut.documents.len(), &crew, |i| {
                Some(Next { keys: cut.keys(i), set: own_set(i), place: None, mark: None })
            })?;
            for (i, (document, proposal)) in cut.documents.iter().zip(proposals).enumerate() {
                keys.read(cut.keys(i));
                let place = |texts: &mut Texts| texts.place(batch, document.record);
                let placement = stars.add(&keys, own_set(i), None, &proposal, place)?;
                rows.add(&document.id, &placement, &stars.texts)?;
            }
        } else {
            for i in 0..cut.documents.len() {
                let id = std::mem::take(&mut cut.documents[i].id);
                let (place, id_bytes) = (budget.held.texts.place(batch, cut.documents[i].record)?, id.len() as u64);
                budget.push(place, cut.keys(i), id, id_bytes);
            }
        }
        let others = Others { until_round: rows.names.bytes(), until_end: 0 };
        progress.filter_bytes.store(budget.bytes(others), Ordering::Relaxed);
        let passed = batch.start().record + batch.len() as u64;
        if budget.advance(others, passed, |stars, waiting, records| decide(stars, (waiting, records), &mut rows))? {
            rows.names.next_round(&budget.held.texts)?;
        }
        Ok(rows.joined - before)
    })?;
    budget.decide(|stars, waiting, records| decide(stars, (waiting, records), &mut rows))?;
    let mut stars = budget.held;
    summary.alarms = stars.alarms(summary.counts.records)?;
    rows.table.finish()?;
    let sizes = stars.members.iter().map(|&members| u64::from(members) + 1);
    summary.note_sizes(sizes.chain((0..rows.empty).map(|_| 1)));
    (summary.compared, summary.read_again) = (Some(stars.texts.compared), stars.texts.read_again);
    summary.cut_short = stars.clusters.cut_short;
    summary.index_bytes = stars.bytes();
    Ok(())
}

/// Records that chains of near pairs connect.
#[derive(Default)]
struct Chains {
    components: UnionFind,
    items: u32,
    joined: u64,
}

impl Chains {
    /// Takes the earlier ones that the next record is near.
    fn add(&mut self, near: &[(u32, Similarity)]) {
        self.components.grow(self.items as usize + 1);
        near.iter().for_each(|&(earlier, _)| self.components.union(earlier, self.items));
        self.joined += u64::from(!near.is_empty());
        self.items += 1;
    }
}

fn chains(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    cutter: &Cutter<'_>,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let ClusterOptions { join, .. } = options;
    let crew = Crew::new(join.threads);
    // Copies need not be paired with each other: the first one connects them.
    let finder = Finder::new(sources, join, cutter, 0);
    let mut budget = Budget::new(finder, summary.plan.budget(join.memory), summary.plan.entry_bytes(), &crew);
    let mut chains = Chains::default();
    let decide = |finder: &mut Finder, (waiting, records): (&Backlog<()>, Range<usize>), chains: &mut Chains| {
        finder.decide((waiting, records), (&crew, progress), |_, (), near| {
            chains.add(near);
            Ok(())
        })
    };
    summary.counts = stream::read(sources, join.reading(), (cutter, &cutter.fields), progress, |batch, cut| {
        let before = chains.joined;
        for i in 0..cut.documents.len() {
            if budget.is_first() {
                budget.held.add_cut(batch, cut, i, |_, near| {
                    chains.add(near);
                    Ok(())
                })?;
            } else {
                let place = budget.held.texts.place(batch, cut.documents[i].record)?;
                budget.push(place, cut.keys(i), (), 0);
            }
        }
        // One of each record, in the components and where they are counted.
        let others = Others { until_round: 0, until_end: 8 * u64::from(chains.items) };
        progress.filter_bytes.store(budget.bytes(others), Ordering::Relaxed);
        let passed = batch.start().record + batch.len() as u64;
        budget.advance(others, passed, |finder, waiting, records| decide(finder, (waiting, records), &mut chains))?;
        Ok(chains.joined - before)
    })?;
    budget.decide(|finder, waiting, records| decide(finder, (waiting, records), &mut chains))?;
    let (holds_names, mut finder) = (budget.is_first(), budget.held);
    let Chains { mut components, items, .. } = chains;
    summary.index_bytes = finder.bytes() + 4 * u64::from(items);
    // By the first record of each cluster: how many are in it.
    let mut sizes = vec![0u32; items as usize];
    (0..items).for_each(|one| sizes[components.find(one) as usize] += 1);
    summary.note_sizes(sizes.iter().filter(|&&size| size > 0).map(|&size| size.into()));
    let entry_of =
        |finder: &Finder, item: u32| finder.pairs.items().binary_search(&item).ok().map(|entry| entry as u32);
    // The first record of a cluster comes before all others, so its name is known when they come; or it is read again.
    let mut names: BTreeMap<u32, Box<str>> = BTreeMap::new();
    let mut item = 0;
    let counts = stream::read(sources, join.reading(), (cutter, &cutter.fields), progress, |_, cut| {
        for (i, document) in cut.documents.iter().enumerate() {
            if item == items {
                return Err(RunError::InputChanged);
            }
            let first = components.find(item);
            let entry = entry_of(&finder, first).filter(|_| !cut.set(i).is_empty());
            let similarity = match entry {
                None => Value::Null,
                Some(_) if first == item => Value::Number(1.0),
                Some(entry) => {
                    let found = finder.texts.compare(entry, cut.set(i), Similarity::default())?;
                    Value::Number(found.map_or(0.0, Similarity::value))
                }
            };
            if first == item {
                if sizes[first as usize] > 1 && holds_names {
                    names.insert(item, document.id.clone());
                }
                table.row(&[Value::Text(&document.id), Value::Text(&document.id), similarity])?;
            } else if let Some(name) = names.get(&first) {
                table.row(&[Value::Text(&document.id), Value::Text(name), similarity])?;
            } else {
                let entry = entry.filter(|_| !holds_names).ok_or(RunError::InputChanged)?;
                let name = finder.texts.id(finder.texts.place_of(entry)?)?;
                table.row(&[Value::Text(&document.id), Value::Text(&name), similarity])?;
            }
            item += 1;
        }
        Ok(0)
    })?;
    if item != items || counts.bytes != summary.counts.bytes {
        return Err(RunError::InputChanged);
    }
    let sizes = (0..).zip(&sizes).map(|(first, &size)| (first, size.into()));
    for (first, size) in alarm::worth_an_alarm(sizes, summary.counts.records) {
        if let Some(entry) = entry_of(&finder, first) {
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
