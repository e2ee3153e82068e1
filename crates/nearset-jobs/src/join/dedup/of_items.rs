//! Decisions on items that are held in memory: hashes, vectors, strings, and texts by other measures than Jaccard's.
//!
//! Where the first is kept, one pass decides in the order of reading and writes. Otherwise a first pass decides on all records in the order
//! in which they are wanted, and a second one writes ([`super::decided`]).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use nearset::index::PreparedItem;
use nearset_records::{Extracted, OutputFile, ReadOptions, RecordError, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::alarm::{self, Cause};
use super::super::items::{AT_ONCE, Arrival, Centres, ItemPlan, Preparer, for_each_word, from_words};
use super::super::needs::expect_memory;
use super::super::rank::{Keep, Rank};
use super::super::stars::Placement;
use super::super::stream;
use super::super::texts::Place;
use super::decided::{Decided, Sound, Verdicts, states};
use super::log::{Entry, Event, Log, replay};
use super::{JoinPlan, Outcome, VerifiedDedupOptions, write_copies};
use crate::crew::Crew;
use crate::run::{Decider, Decision, Done, Ids, Outputs, Part, Progress, RunError, Start, Tally, Verdict, Worker};
use crate::screen::Against;

/// Refuses what is for texts only.
pub(super) fn check(options: &VerifiedDedupOptions) -> Result<(), RunError> {
    let metric = match options.text_measure {
        Some(measure) => measure.as_str().to_owned(),
        None => options.wanted.metric.to_string(),
    };
    let given = [
        ("a library", options.library.is_some() || !options.libraries.is_empty()),
        ("a report", options.run.report.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((what, _)) => Err(RunError::TextsOnly { what, metric }),
        None => Ok(()),
    }
}

/// Decides on all records, and writes.
pub(super) fn compare(
    (start, options): (&Start, &VerifiedDedupOptions),
    (items, plan): (&ItemPlan, &JoinPlan),
    outputs: Outputs,
    against: &[Against<'_>],
    progress: &Progress,
) -> Result<Done<Outcome>, RunError> {
    let (seed, fields) = (options.wanted.seed, &options.run.fields);
    let read = ReadOptions::new(fields.clone());
    let preparer = Preparer::new(items, fields)?.with_screen(against).with_ids(true);
    let most_bytes = plan.most_bytes();
    let kept = Kept::new(items, options.follow_chains, most_bytes);
    if options.keep == Keep::First {
        let mut decider = InOrder::new(kept, start)?;
        let page = |_: &InOrder, _: &Tally, _: &Outcome| Ok(String::new());
        return start.carry_out(outputs, read, (&preparer, &mut decider), seed, progress, page);
    }
    let mut decider = ranked(kept, start, options, &preparer, progress)?;
    let page = |_: &Decided, _: &Tally, _: &Outcome| Ok(String::new());
    start.carry_out(outputs, read, (&Sound(&preparer), &mut decider), seed, progress, page)
}

/// The items kept so far, with their names.
struct Kept {
    plan: ItemPlan,
    centres: Centres,
    names: Ids,
    most_bytes: u64,
}

impl Kept {
    fn new(plan: &ItemPlan, follow_chains: bool, most_bytes: u64) -> Self {
        let centres = Centres::new(plan, follow_chains);
        Self { plan: plan.clone(), centres, names: Ids::default(), most_bytes }
    }

    fn bytes(&self) -> u64 {
        self.centres.bytes() + self.names.bytes()
    }

    /// Checks that there is memory left, behind so many records.
    fn expect_memory(&self, other_bytes: u64, records: u64) -> Result<(), RunError> {
        expect_memory(self.bytes() + other_bytes, self.most_bytes, records)
    }

    /// Takes the next records, and tells where each belongs and what the one is called that it is near.
    fn add(
        &mut self,
        arrivals: &[&Arrival],
        crew: &Crew,
        mut each: impl FnMut(usize, Placement, &str) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let Self { centres, names, .. } = self;
        for (round, arrivals) in arrivals.chunks(AT_ONCE).enumerate() {
            let items: Vec<Option<&PreparedItem>> =
                arrivals.iter().map(|arrival| arrival.item.as_ref().filter(|_| arrival.screened.is_none())).collect();
            centres.add(&items, crew, |i, placement| {
                if placement.entry.is_some() {
                    names.push(&arrivals[i].id);
                }
                let name = placement.near.map_or("", |(of, _)| names.get(of as usize));
                each(round * AT_ONCE + i, placement, name)
            })?;
        }
        Ok(())
    }

    fn outcome(&self, records: u64) -> Outcome {
        let sizes = self.centres.copied().map(|(entry, members)| (entry, members + 1));
        Outcome {
            records,
            cut_short: 0,
            short: 0,
            unknown_ids: 0,
            compared: None,
            read_again: 0,
            index_bytes: self.centres.bytes(),
            alarms: alarm::named(Cause::Cluster, sizes, records, |entry| self.names.get(entry as usize)),
            library: None,
        }
    }

    /// Writes how many records are near each that stays.
    fn write_copies(&self, out: &mut OutputFile) -> Result<(), RunError> {
        self.centres.copied().try_for_each(|(entry, copies)| write_copies(out, self.names.get(entry as usize), copies))
    }
}

/// Decides in the order of reading: each record is compared with those kept before it.
struct InOrder {
    kept: Kept,
    log: Option<Log>,
    crew: Crew,
    words: Vec<u64>,
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Bytes of the log.
    log: u64,
}

impl InOrder {
    /// Nothing is kept yet, or what the run to be resumed has kept.
    fn new(kept: Kept, start: &Start) -> Result<Self, RunError> {
        let mut new = Self { kept, log: None, crew: Crew::new(start.options.threads), words: Vec::new() };
        let Some(folder) = start.folder() else { return Ok(new) };
        let saved: Option<Saved> = start.saved()?;
        if let Some(saved) = &saved {
            new.restore(saved, folder)?;
        }
        new.log = Some(Log::open(folder, saved.map_or(0, |saved| saved.log))?);
        Ok(new)
    }

    fn restore(&mut self, saved: &Saved, folder: &StateFolder) -> Result<(), RunError> {
        let Kept { plan, centres, names, .. } = &mut self.kept;
        let (mut is_damaged, mut inserted) = (false, Ok(0));
        replay(folder, saved.log, |event| match event {
            Event::Member(of) => match centres.members.get_mut(of as usize) {
                Some(members) => *members += 1,
                None => is_damaged = true,
            },
            Event::Entry(Entry { keys, id, .. }) => {
                let item = from_words(plan.metric.form(), keys);
                match item.and_then(|item| plan.empty.prepare(item.view()).ok()) {
                    Some(item) if inserted.is_ok() => inserted = centres.insert(&item),
                    _ => is_damaged = true,
                }
                names.push(id);
            }
        })?;
        inserted?;
        if is_damaged { Err(folder.damaged("it holds what is no item").into()) } else { Ok(()) }
    }
}

impl Decider for InOrder {
    type Piece = Vec<Arrival>;
    type Outcome = Outcome;

    fn decide(
        &mut self,
        part: Part<'_, Vec<Arrival>>,
        decisions: &mut Vec<Decision>,
        names: &mut Ids,
    ) -> Result<(), RunError> {
        let Self { kept, log, crew, words } = self;
        kept.expect_memory(0, part.batch.start().record)?;
        let arrivals: Vec<&Arrival> = part.piece[part.sound()].iter().collect();
        kept.add(&arrivals, crew, |i, Placement { near, entry }, name| {
            let arrival = arrivals[i];
            decisions.push(decision(arrival, near, name, names));
            let Some(log) = log else { return Ok(()) };
            if let Some((of, _)) = near {
                log.member(of)?;
            }
            if let (Some(_), Some(item)) = (entry, &arrival.item) {
                words.clear();
                for_each_word(item.into(), |word| words.push(word));
                log.entry(&Entry { keys: words, place: Place::default(), id: &arrival.id })?;
            }
            Ok(())
        })
    }

    fn bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// The log is written as records go by, so a checkpoint hardly writes anything.
    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        let log = self.log.as_mut().map_or(Ok(0), Log::sync)?;
        serde_json::to_value(Saved { log }).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        self.kept.write_copies(out)
    }

    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        Ok(self.kept.outcome(tally.records))
    }
}

/// What becomes of a record, by the entry that it is near.
fn decision(arrival: &Arrival, near: Option<(u32, f64)>, name: &str, names: &mut Ids) -> Decision {
    if let Some((filter, hits)) = arrival.screened {
        return Decision { verdict: Verdict::Against { filter, hits }, family: None };
    }
    let Some((of, similarity)) = near else { return Decision { verdict: Verdict::Kept, family: None } };
    let verdict = Verdict::NearTo { name: names.push(name), similarity, library: None, origin: None };
    Decision { verdict, family: Some(of.into()) }
}

/// Decides on all records in the order in which they are wanted.
fn ranked(
    mut kept: Kept,
    start: &Start,
    options: &VerifiedDedupOptions,
    preparer: &Preparer<'_>,
    progress: &Progress,
) -> Result<Decided, RunError> {
    let inputs = states(&start.sources);
    let mut ranked: Vec<(Rank, u64, Arrival)> = Vec::new();
    let (mut records, mut held, mut screened) = (0, 0, BTreeMap::new());
    let mut is_field_there = options.keep.field().is_none();
    let reading = (options.run.threads, options.run.on_error);
    let by_field = match options.keep.field() {
        Some(field) => preparer.clone().with_field(Some(field.to_owned())),
        None => preparer.clone(),
    };
    let of = (&by_field, &by_field.fields);
    let counts = stream::read(&start.sources, reading, of, progress, |batch, arrivals| {
        for arrival in std::mem::take(arrivals) {
            let record = records + arrival.record as u64;
            is_field_there |= arrival.field.is_some();
            screened.extend(arrival.screened.map(|hit| (record, hit)));
            let rank = match options.keep {
                Keep::Max(_) | Keep::Min(_) => Rank::of(arrival.field.as_deref()),
                _ => Rank::Number(arrival.text_bytes as f64, None),
            };
            held += arrival.bytes();
            ranked.push((rank, record, arrival));
        }
        records += batch.len() as u64;
        kept.expect_memory(held, records)?;
        progress.filter_bytes.store(held, Ordering::Relaxed);
        Ok(0)
    })?;
    if let (false, true, Some(field)) = (is_field_there, counts.records > counts.faulty, options.keep.field()) {
        return Err(RunError::NoField { field: field.to_owned() });
    }
    ranked.sort_by(|a, b| options.keep.order(&a.0, &b.0).then(a.1.cmp(&b.1)));
    let (mut removals, mut entries) = (BTreeMap::new(), Vec::new());
    let crew = Crew::new(options.run.threads);
    for ranked in ranked.chunks(AT_ONCE) {
        progress.go_on()?;
        kept.expect_memory(held, ranked[0].1)?;
        let arrivals: Vec<&Arrival> = ranked.iter().map(|(.., arrival)| arrival).collect();
        kept.add(&arrivals, &crew, |i, Placement { near, entry }, _| {
            removals.extend(near.map(|near| (ranked[i].1, near)));
            entries.extend(entry.map(|_| ranked[i].1));
            Ok(())
        })?;
    }
    drop(ranked);
    if options.keep.field().is_some() {
        // Another field was read in the place of the id.
        kept.names = names_of(&entries, start, options, progress)?;
    }
    let outcome = kept.outcome(counts.records);
    Decided::new(Verdicts { removals, screened, names: kept.names }, outcome, inputs, start)
}

/// What these records are called, by one more reading.
pub(super) fn names_of(
    records: &[u64],
    start: &Start,
    options: &VerifiedDedupOptions,
    progress: &Progress,
) -> Result<Ids, RunError> {
    let entry_of: BTreeMap<u64, usize> = records.iter().copied().zip(0..).collect();
    let mut names: Vec<Box<str>> = vec![Box::default(); records.len()];
    let (mut first, reading) = (0, (options.run.threads, options.run.on_error));
    stream::read(&start.sources, reading, (&Naming, &options.run.fields), progress, |batch, ids| {
        for (record, id) in (first..).zip(std::mem::take(ids)) {
            if let Some(&entry) = entry_of.get(&record) {
                names[entry] = id;
            }
        }
        first += batch.len() as u64;
        Ok(0)
    })?;
    let mut all = Ids::default();
    for name in names {
        all.push(&name);
    }
    Ok(all)
}

/// Names records.
struct Naming;

impl Worker for Naming {
    type Piece = Vec<Box<str>>;
    type Room = ();

    fn room(&self) {}

    fn clear(&self, (): &mut (), ids: &mut Vec<Box<str>>) {
        ids.clear();
    }

    fn add(
        &self,
        (): &mut (),
        extracted: &Extracted<'_>,
        i: usize,
        ids: &mut Vec<Box<str>>,
    ) -> Result<(), RecordError> {
        ids.push(Box::from(&*extracted.id(i)));
        Ok(())
    }
}
