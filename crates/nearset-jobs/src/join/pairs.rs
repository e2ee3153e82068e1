//! All near pairs of a corpus.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nearset::Similarity;
use nearset::index::{NearPairs, ShingleIndex, ShingleKeys};
use serde::Serialize;

use super::alarm::{self, Alarm, Cause};
use super::budget::{Backlog, Budget, DECIDED_AT_ONCE, Entries, Names, Others};
use super::containment;
use super::edit;
use super::items::{Arrival, Families, ItemPlan, Preparer};
use super::needs::expect_memory;
use super::stars::settle;
use super::stream::{self, Counts, Cut, Cutter};
use super::texts::{OwnSet, Place, Texts};
use super::{Comparison, JoinOptions, JoinPlan, Planned};
use crate::crew::Crew;
use crate::run::{Ids, Progress, RunError};
use nearset_records::input::{Batch, Source};
use nearset_records::output::{TableFile, Value};
use nearset_records::scratch_folder;

/// The columns of the output, by what the metric's numbers are.
const SIMILARITIES: [&str; 3] = ["a", "b", "similarity"];
const DISTANCES: [&str; 3] = ["a", "b", "distance"];
/// How much of each is in the other.
const SHARES: [&str; 4] = ["a", "b", "a_in_b", "b_in_a"];

/// How to find pairs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PairsOptions {
    /// What is near, and how to read.
    pub join: JoinOptions,
    /// Where pairs go.
    pub out: PathBuf,
    /// Records of the same shingles that are all paired; further ones are paired with these only.
    pub most_copies: usize,
    /// Records that share a shingle of which a record is compared with the oldest only.
    pub bucket_limit: usize,
}

impl PairsOptions {
    /// The usual options.
    pub fn new(join: JoinOptions, out: impl Into<PathBuf>) -> Self {
        Self { join, out: out.into(), most_copies: NearPairs::MOST_COPIES, bucket_limit: ShingleIndex::LIMIT }
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PairsSummary {
    /// What was planned.
    pub plan: JoinPlan,
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Pairs written.
    pub pairs: u64,
    /// Near pairs that were not written, because each has a copy of a record that has many.
    pub pairs_left_out: u64,
    /// Records that were not compared with all that share shingles with them, because a limit left some out.
    pub cut_short: u64,
    /// Records that have the same shingles as an earlier one.
    pub copies: u64,
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

impl PairsSummary {
    fn new(plan: JoinPlan) -> Self {
        Self {
            plan,
            counts: Counts::default(),
            pairs: 0,
            pairs_left_out: 0,
            cut_short: 0,
            copies: 0,
            compared: None,
            read_again: 0,
            index_bytes: 0,
            alarms: Vec::new(),
            seconds: 0.0,
        }
    }
}

/// A run that is about to start.
pub struct Pairs {
    sources: Arc<[Source]>,
    options: PairsOptions,
    planned: Planned,
}

impl Pairs {
    /// Plans, and changes nothing.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, options: PairsOptions) -> Result<Self, RunError> {
        let sources = sources.into();
        let planned = options.join.plan_within(&sources)?;
        Ok(Self { sources, options, planned })
    }

    /// What will be done.
    pub fn plan(&self) -> &JoinPlan {
        &self.planned.plan
    }

    /// Finds all near pairs, each once, the earlier record first, in the order of the later one.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be; no output has appeared then.
    pub fn run(self, progress: &Progress) -> Result<PairsSummary, RunError> {
        let started = Instant::now();
        let columns = match self.plan().measure() {
            "distance" => &DISTANCES[..],
            "containment" => &SHARES,
            _ => &SIMILARITIES,
        };
        let table = self.options.join.table(&self.sources, (&self.options.out, columns))?;
        let Self { sources, options, planned: Planned { plan, comparison } } = self;
        let mut summary = PairsSummary::new(plan);
        match comparison {
            Comparison::Texts => of_texts(&sources, &options, table, &mut summary, progress)?,
            Comparison::Items(items) => of_items(&sources, &options, &items, table, &mut summary, progress)?,
            Comparison::Contained => {
                containment::pairs(&sources, &options.join, options.most_copies, table, &mut summary, progress)?;
            }
            Comparison::Edits(limit) => {
                let join = (&options.join, limit);
                edit::pairs(&sources, join, options.most_copies, table, &mut summary, progress)?;
            }
        }
        summary.seconds = started.elapsed().as_secs_f64();
        Ok(summary)
    }
}

/// Rows of the output, as pairs are found.
struct Rows {
    table: TableFile,
    names: Names,
    written: u64,
}

impl Rows {
    /// Takes the earlier ones that the next record is near.
    fn add(&mut self, id: &str, near: &[(u32, Similarity)], texts: &Texts) -> Result<(), RunError> {
        for &(earlier, similarity) in near {
            let earlier = self.names.get(earlier).map_err(|cause| texts.scratch_error(cause))?;
            self.table.row(&[Value::Text(&earlier), Value::Text(id), Value::Number(similarity.value())])?;
        }
        self.written += near.len() as u64;
        self.names.push(id);
        Ok(())
    }
}

fn of_texts(
    sources: &Arc<[Source]>,
    options: &PairsOptions,
    table: TableFile,
    summary: &mut PairsSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let cutter = options.join.cutter(sources, progress)?;
    let mut finder = Finder::new(sources, &options.join, &cutter, options.most_copies);
    finder.most_listed = options.bucket_limit;
    finder.pairs = finder.pairs.with_limits(options.most_copies, options.bucket_limit);
    let memory = summary.plan.budget(options.join.memory);
    let crew = Crew::new(options.join.threads);
    let mut budget = Budget::new(finder, memory, summary.plan.entry_bytes(), &crew);
    let mut rows = Rows { table, names: Names::default(), written: 0 };
    let decide = |finder: &mut Finder, (waiting, records): (&Backlog<Box<str>>, Range<usize>), rows: &mut Rows| {
        finder.decide((waiting, records), (&crew, progress), |texts, id, near| rows.add(id, near, texts))
    };
    let reading = options.join.reading();
    let counts = stream::read(sources, reading, (&cutter, &cutter.fields), progress, |batch, cut| {
        let before = rows.written;
        for i in 0..cut.documents.len() {
            let id = std::mem::take(&mut cut.documents[i].id);
            if budget.is_first() {
                budget.held.add_cut(batch, cut, i, |texts, near| rows.add(&id, near, texts))?;
            } else {
                let place = budget.held.texts.place(batch, cut.documents[i].record)?;
                let id_bytes = id.len() as u64;
                budget.push(place, cut.keys(i), id, id_bytes);
            }
        }
        let others = Others { until_round: rows.names.bytes(), until_end: 0 };
        progress.filter_bytes.store(budget.bytes(others), Ordering::Relaxed);
        let passed = batch.start().record + batch.len() as u64;
        if budget.advance(others, passed, |finder, waiting, records| decide(finder, (waiting, records), &mut rows))? {
            rows.names.next_round(&budget.held.texts)?;
        }
        Ok(rows.written - before)
    })?;
    budget.decide(|finder, waiting, records| decide(finder, (waiting, records), &mut rows))?;
    let mut finder = budget.held;
    summary.alarms = finder.alarms(counts.records)?;
    summary.pairs = rows.written;
    summary.pairs_left_out = finder.pairs.left_out;
    summary.cut_short = finder.pairs.cut_short;
    summary.copies = finder.pairs.copied_entries().map(|(_, count)| count).sum();
    (summary.compared, summary.read_again) = (Some(finder.texts.compared), finder.texts.read_again);
    summary.index_bytes = finder.bytes();
    summary.counts = counts;
    Ok(rows.table.finish()?)
}

fn of_items(
    sources: &Arc<[Source]>,
    PairsOptions { join, most_copies, .. }: &PairsOptions,
    items: &ItemPlan,
    mut table: TableFile,
    summary: &mut PairsSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let preparer = Preparer::new(items, &join.fields)?.with_ids(true);
    let crew = Crew::new(join.threads);
    let mut families = Families::new(items, *most_copies);
    let (mut ids, most_bytes) = (Ids::default(), summary.plan.most_bytes());
    let (mut written, mut records) = (0, 0);
    let mut add = |arrivals: &mut Vec<Arrival>, is_last| {
        let before = written;
        families.add(arrivals, is_last, &crew, |arrival, near| {
            for &(earlier, distance) in near {
                let near = Value::Number(items.metric.own_unit(distance));
                table.row(&[Value::Text(ids.get(earlier as usize)), Value::Text(&arrival.id), near])?;
            }
            written += near.len() as u64;
            records += 1;
            ids.push(&arrival.id);
            Ok(())
        })?;
        let taken = families.bytes() + ids.bytes();
        progress.filter_bytes.store(taken, Ordering::Relaxed);
        expect_memory(taken, most_bytes, records)?;
        Ok(written - before)
    };
    let of = (&preparer, &join.fields);
    let counts = stream::read(sources, join.reading(), of, progress, |_, arrivals| add(arrivals, false))?;
    add(&mut Vec::new(), true)?;
    let name = |entry: u32| ids.get(families.first[entry as usize] as usize);
    summary.alarms = alarm::named(Cause::Copies, families.copies.families(), counts.records, name);
    summary.pairs = written;
    summary.pairs_left_out = families.copies.left_out;
    summary.copies = families.copies.count();
    summary.index_bytes = families.bytes();
    summary.counts = counts;
    Ok(table.finish()?)
}

/// Finds, for each record, the earlier ones near it.
pub(super) struct Finder {
    pub pairs: NearPairs,
    pub texts: Texts,
    /// How many records are listed under one key, at most.
    pub most_listed: usize,
    near: Similarity,
    keys: ShingleKeys,
    /// How many records were taken.
    records: u32,
}

impl Finder {
    pub fn new(sources: &Arc<[Source]>, options: &JoinOptions, cutter: &Cutter<'_>, most_copies: usize) -> Self {
        let most_listed = ShingleIndex::LIMIT;
        let pairs = NearPairs::new(&cutter.spec).with_limits(most_copies, most_listed);
        let scratch = options.scratch.clone().unwrap_or_else(|| scratch_folder(None));
        let texts = Texts::new(sources, &options.fields, cutter, None, scratch);
        Self { pairs, texts, most_listed, near: cutter.spec.near, keys: ShingleKeys::default(), records: 0 }
    }

    /// Takes document `i` of a batch, tells the earlier ones near it, and returns its entry: none for a copy, or an empty text. Records are
    /// numbered as they come.
    pub fn add_cut(
        &mut self,
        batch: &Batch,
        cut: &Cut,
        i: usize,
        found: impl FnOnce(&Texts, &[(u32, Similarity)]) -> Result<(), RunError>,
    ) -> Result<Option<u32>, RunError> {
        self.texts.cache.adopt(&cut.sets);
        let set = OwnSet::Adopted(cut.set_place(i), &cut.sets);
        let record = cut.documents[i].record;
        self.add(cut.keys(i), set, |texts| texts.place(batch, record), found)
    }

    /// Takes the next record. `place` is asked for if it is to be read, or others are to be compared with it.
    fn add(
        &mut self,
        keys: &[u64],
        mut set: OwnSet<'_>,
        place: impl Fn(&mut Texts) -> Result<Place, RunError>,
        found: impl FnOnce(&Texts, &[(u32, Similarity)]) -> Result<(), RunError>,
    ) -> Result<Option<u32>, RunError> {
        self.records = self.records.checked_add(1).ok_or(RunError::TooMany)?;
        let Self { pairs, texts, near, .. } = self;
        self.keys.read(keys);
        let mut compared = 0;
        let (entry, near) = pairs.add(&self.keys, |entry| {
            compared += 1;
            texts.compare_own(entry, (&mut set, &place), *near)
        })?;
        texts.compared += compared;
        found(texts, near)?;
        if entry.is_some() {
            let place = place(texts)?;
            texts.push(place, &set);
        }
        Ok(entry)
    }

    /// Takes records that waited, and tells of each the earlier ones near it.
    pub fn decide<T>(
        &mut self,
        (waiting, records): (&Backlog<T>, Range<usize>),
        (crew, progress): (&Crew, &Progress),
        mut found: impl FnMut(&Texts, &T, &[(u32, Similarity)]) -> Result<(), RunError>,
    ) -> Result<(), RunError>
    where
        T: Sync,
    {
        for first in records.clone().step_by(DECIDED_AT_ONCE) {
            progress.go_on()?;
            let records = first..records.end.min(first + DECIDED_AT_ONCE);
            settle(&mut self.pairs.index, crew);
            self.texts.fetch(&self.pairs.index, (records.len(), crew), |i| waiting.keys(first + i))?;
            for record in records {
                let (keys, place) = (waiting.keys(record), waiting.place(record));
                let found = |texts: &Texts, near: &[_]| found(texts, waiting.own(record), near);
                self.add(keys, OwnSet::Unread, |_| Ok(place), found)?;
            }
        }
        Ok(())
    }

    pub fn alarms(&mut self, records: u64) -> Result<Vec<Alarm>, RunError> {
        let copied = self.pairs.copied_entries().map(|(entry, copies)| (entry, copies + 1));
        let large = alarm::worth_an_alarm(copied, records);
        let mut alarms = Vec::new();
        for (entry, size) in large {
            alarms.push(alarm::around(&mut self.texts, Cause::Copies, entry, size)?);
        }
        alarms.extend(alarm::lists(&mut self.texts, &self.pairs.index)?);
        Ok(alarms)
    }
}

impl Entries for Finder {
    fn index(&mut self) -> &mut ShingleIndex {
        &mut self.pairs.index
    }

    fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    fn most_listed(&self) -> usize {
        self.most_listed
    }

    fn bytes(&self) -> u64 {
        self.pairs.bytes() + self.texts.bytes()
    }
}

#[cfg(test)]
mod tests {
    use nearset::plan::Request;

    use super::*;
    use nearset_records::input::resolve;

    #[test]
    fn a_list_that_is_cut_short_raises_an_alarm_that_quotes_it() {
        let shared = (0..200).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        let lines: String = (0..300).map(|i| format!("{{\"id\":{i},\"text\":\"n{i} {shared}\"}}\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        std::fs::write(&path, lines).unwrap();
        let sources = resolve(&[path.to_str().unwrap()], None).unwrap().list;
        let mut options = PairsOptions::new(JoinOptions::new(Request::default()), folder.path().join("pairs.tsv"));
        let pairs = |options: &PairsOptions| {
            Pairs::prepare(sources.clone(), options.clone()).unwrap().run(&Progress::new()).unwrap()
        };
        let all = pairs(&options);
        assert_eq!((all.pairs, all.alarms.len()), (300 * 299 / 2, 0));
        options.bucket_limit = 20;
        options.join.force = true;
        let some = pairs(&options);
        // Each is compared with the oldest of every list it is in, some of which differ.
        assert!((300 * 20 - 210..all.pairs).contains(&some.pairs), "{} pairs", some.pairs);
        let alarm = &some.alarms[0];
        assert_eq!(alarm.cause, Cause::Shingle);
        assert!(alarm.records > 20 && alarm.excerpt.starts_with("w0 w1 w2 "), "{alarm:?}");
    }
}
