//! Decisions that are all made before the first record is written: in the order of reading where memory is too small for one pass, or in that in
//! which records are wanted.
//!
//! A first pass cuts all records and decides on them within a budget of memory (`budget`). A second pass writes.
//!
//! Claim: the decisions are the same as if everything were in memory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset_records::{OutputError, OutputFile, Scratch, Source, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::budget::{Backlog, Budget, Others};
use super::super::rank::{Keep, Rank};
use super::super::stars::{Placement, Stars};
use super::super::stream::{self, Cutter};
use super::super::texts::{Place, Texts};
use super::decided::states;
use super::events::{Cause, Event, EventLog, Events};
use super::ranking::{Candidate, Ranking};
use super::{Outcome, VerifiedDedupOptions, VerifiedDedupSummary, write_copies};
use crate::crew::Crew;
use crate::library::{LibraryWriter, Written};
use crate::run::{Decider, Decision, Ids, Part, Progress, RunError, Start, Tally, Verdict};

/// The decisions of a run that can be resumed.
const FILE: &str = "decisions.bin";

/// Names that are held, not to be read again.
const NAMES: usize = 1 << 12;

/// What is known of a record that waits.
struct Own {
    /// Its number among all records.
    number: u64,
    /// Its number among marked records, if it is one.
    mark: Option<u32>,
}

/// The first pass.
struct FirstPass<'d> {
    budget: Budget<Stars, Own>,
    events: EventLog<'d>,
    /// Where what is kept goes for later runs.
    library: Option<LibraryWriter>,
    crew: Crew,
    progress: &'d Progress,
}

impl FirstPass<'_> {
    /// Decides on what waits if it is time to. `records` were read so far, and `ranked` bytes are held of records that are not waiting yet.
    fn advance(&mut self, ranked: u64, records: u64) -> Result<(), RunError> {
        let Self { budget, events, library, crew, progress } = self;
        let others = Others { until_round: 0, until_end: ranked };
        progress.filter_bytes.store(budget.bytes(others), Ordering::Relaxed);
        let decide = |stars: &mut Stars, waiting: &Backlog<Own>, records: Range<usize>| {
            decide(stars, (waiting, records), (events, library), (crew, progress))
        };
        budget.advance(others, records, decide).map(|_| ())
    }

    fn finish(&mut self) -> Result<(), RunError> {
        let Self { budget, events, library, crew, progress } = self;
        budget.decide(|stars, waiting, records| decide(stars, (waiting, records), (events, library), (crew, progress)))
    }
}

fn decide(
    stars: &mut Stars,
    (waiting, records): (&Backlog<Own>, Range<usize>),
    (events, library): (&mut EventLog<'_>, &mut Option<LibraryWriter>),
    (crew, progress): (&Crew, &Progress),
) -> Result<(), RunError> {
    stars.decide(
        (waiting, records),
        (crew, progress),
        |own| own.mark,
        |stars, record, Placement { near, entry }| {
            let place = waiting.place(record);
            if let (Some(library), Some(_)) = (library.as_mut(), entry) {
                let (set, id) = (stars.texts.set(place)?, stars.texts.id(place)?);
                library.push(waiting.keys(record), &set, &id)?;
            }
            let Some((of, similarity)) = near else { return Ok(()) };
            progress.removed.fetch_add(1, Ordering::Relaxed);
            let library = stars.library_of(of).map(|library| library as u32);
            let cause = Cause::Near { of, similarity, library, place: stars.texts.place_of(of)? };
            let event = Event { record: waiting.own(record).number, cause };
            events.push(event).map_err(|cause| stars.texts.scratch_error(cause))
        },
    )
}

/// What became of all records.
pub(super) struct InRounds {
    texts: Texts,
    events: Events,
    /// Names of those that others are near, by their entries: some of them.
    names: BTreeMap<u32, String>,
    wants_names: bool,
    outcome: Outcome,
    /// Records that were passed.
    passed: u64,
    /// The inputs as they were before the first pass.
    inputs: Vec<String>,
    sources: Arc<[Source]>,
    /// Filters that records were screened by; verdicts count libraries behind them.
    filters: usize,
    /// Entries whose copies are counted in one pass over the decisions.
    most_counted: u32,
    library: Option<LibraryWriter>,
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// Bytes of the decisions, and where each sorted part of them ends.
    decisions: u64,
    parts: Vec<u64>,
    /// Bytes of the texts that were copied.
    copies: Option<u64>,
    passed: u64,
    outcome: Outcome,
    /// How far the library has come.
    pub library: Option<Written>,
}

impl InRounds {
    /// Reads all records and decides on them within `memory`, unless the run to be resumed has. An entry takes `entry_bytes`.
    pub fn new(
        start: &Start,
        options: &VerifiedDedupOptions,
        cutter: &Cutter<'_>,
        mut stars: Stars,
        (filters, library): (usize, Option<LibraryWriter>),
        (memory, entry_bytes): (u64, u64),
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let inputs = states(&start.sources);
        // An entry that is counted takes some 64 bytes.
        let most_counted = (memory / 64).clamp(1 << 12, 1 << 24) as u32;
        let new = |texts, events, outcome, passed, library| Self {
            texts,
            events,
            names: BTreeMap::new(),
            wants_names: start.wants_names(),
            outcome,
            passed,
            inputs,
            sources: Arc::clone(&start.sources),
            filters,
            most_counted,
            library,
        };
        if let (Some(saved), Some(folder)) = (start.saved::<Saved>()?, start.folder()) {
            let Saved { decisions, parts, copies, passed, outcome, library: _ } = saved;
            stars.texts.restore_copies(copies)?;
            let opened = Scratch::open(&folder.scratch_file(FILE), decisions);
            let opened = opened.and_then(|file| Events::new(file, parts, passed)).and_then(|events| {
                let libraries = options.libraries.len();
                let mut are_known = true;
                events.each(|event| {
                    are_known &= match event.cause {
                        Cause::Near { library, place, .. } => {
                            library.is_none_or(|at| (at as usize) < libraries) && stars.texts.has(place)
                        }
                        Cause::Screened { filter, .. } => (filter as usize) < filters,
                    }
                })?;
                if are_known { Ok(events) } else { Err(ErrorKind::InvalidData.into()) }
            });
            let events = opened.map_err(|cause| folder.damaged(cause))?;
            return Ok(new(stars.texts, events, outcome, passed, library));
        }
        let events = match start.folder() {
            Some(folder) => {
                folder.create()?;
                let path = folder.scratch_file(FILE);
                Some(Scratch::open(&path, 0).map_err(|cause| OutputError::from_io(&path, cause))?)
            }
            None => None,
        };
        let at_once = (memory / 64 / size_of::<Event>() as u64).clamp(64, 1 << 20) as usize;
        let is_first_kept = options.keep == Keep::First;
        let scratch_folder = stars.texts.scratch_folder().to_owned();
        let state_folder = start.folder().map(|folder| folder.path().to_owned());
        let failed = |cause| RunError::Scratch { folder: scratch_folder.clone(), cause };
        let not_logged = |cause| {
            let folder = state_folder.as_ref().unwrap_or(&scratch_folder).clone();
            RunError::Scratch { folder, cause }
        };
        let scratch = || Scratch::unnamed(&scratch_folder);
        let mut wanted = (!is_first_kept).then(|| Ranking::new(&options.keep, memory / 3, scratch));
        let crew = Crew::new(options.run.threads);
        let mut deciding = FirstPass {
            budget: Budget::new(stars, memory, entry_bytes, &crew),
            events: EventLog::new(events, at_once, scratch),
            library,
            crew,
            progress,
        };
        let (mut short, mut passed, mut is_field_there) = (0, 0, options.keep.field().is_none());
        let reading = (options.run.threads, options.run.on_error);
        let counts = stream::read(&start.sources, reading, (cutter, &cutter.fields), progress, |batch, cut| {
            for (i, document) in cut.documents.iter().enumerate() {
                let number = passed + document.record as u64;
                is_field_there |= document.field.is_some();
                if let Some((filter, hits)) = document.screened {
                    let cause = Cause::Screened { filter: filter as u32, hits };
                    deciding.events.push(Event { record: number, cause }).map_err(not_logged)?;
                    continue;
                }
                short += u64::from(cut.set(i).len() < VerifiedDedupSummary::FEW_SHINGLES);
                let texts = &mut deciding.budget.held.texts;
                let place = texts.place(batch, document.record)?;
                let Some(wanted) = &mut wanted else {
                    let own = Own { number, mark: document.mark };
                    deciding.budget.push(place, cut.keys(i), own, 0);
                    continue;
                };
                let rank = match options.keep {
                    Keep::Max(_) | Keep::Min(_) => Rank::of(document.field.as_deref()),
                    _ => Rank::Number(document.text_bytes as f64, None),
                };
                // The cutter reads another field in the place of the id.
                let mark = match options.decisions.is_empty() {
                    true => None,
                    false => options.decisions.number(&texts.id(place)?),
                };
                let candidate = Candidate { rank, number, place, mark, keys: cut.keys(i).to_vec() };
                wanted.push(candidate).map_err(failed)?;
            }
            passed += batch.len() as u64;
            deciding.advance(wanted.as_ref().map_or(0, Ranking::bytes), passed)?;
            Ok(0)
        })?;
        if let (false, true, Some(field)) = (is_field_there, counts.records > counts.faulty, options.keep.field()) {
            return Err(RunError::NoField { field: field.to_owned() });
        }
        if let Some(wanted) = wanted {
            let mut sorted = wanted.sorted().map_err(failed)?;
            while let Some(candidate) = sorted.next().map_err(failed)? {
                let Candidate { number, place, mark, keys, .. } = candidate;
                deciding.budget.push(place, &keys, Own { number, mark }, 0);
                deciding.advance(sorted.bytes(), passed)?;
            }
        }
        deciding.finish()?;
        let FirstPass { budget: Budget { held: mut stars, .. }, events, library, .. } = deciding;
        let outcome = Outcome::of(&mut stars, counts.records, short)?;
        let events = events.finish().map_err(not_logged)?;
        Ok(new(stars.texts, events, outcome, 0, library))
    }

    /// The name of an entry.
    fn name(&mut self, of: u32, place: Place) -> Result<&str, RunError> {
        if !self.names.contains_key(&of) {
            if self.names.len() >= NAMES {
                self.names.clear();
            }
            self.names.insert(of, self.texts.id(place)?);
        }
        Ok(&self.names[&of])
    }
}

impl Decider for InRounds {
    type Piece = ();
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, ()>, decisions: &mut Vec<Decision>, names: &mut Ids) -> Result<(), RunError> {
        let first = self.passed;
        self.passed += part.records.len() as u64;
        for i in part.sound_records() {
            let record = first + (i - part.records.start) as u64;
            let caused = self.events.of(record).map_err(|cause| match cause.kind() {
                // Records are numbered as in the first pass.
                ErrorKind::InvalidData => RunError::InputChanged,
                _ => self.texts.scratch_error(cause),
            })?;
            decisions.push(match caused {
                None => Decision { verdict: Verdict::Kept, family: None },
                Some(Cause::Screened { filter, hits }) => {
                    Decision { verdict: Verdict::Against { filter: filter as usize, hits }, family: None }
                }
                Some(Cause::Near { of, similarity, library, place }) => {
                    let name = if self.wants_names { names.push(self.name(of, place)?) } else { names.push("") };
                    let library = library.map(|library| self.filters + library as usize);
                    let verdict = Verdict::NearTo { name, similarity, library, origin: place.origin() };
                    Decision { verdict, family: Some(of.into()) }
                }
            });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.outcome.index_bytes
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    /// Reading and comparing are behind us.
    fn starts_with_checkpoint(&self) -> bool {
        true
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        let synced = self.events.file.as_mut().map_or(Ok(0), Scratch::sync);
        let decisions = synced.map_err(|cause| OutputError::from_io(folder.path(), cause))?;
        let saved = Saved {
            decisions,
            parts: self.events.ends.clone(),
            copies: self.texts.sync()?,
            passed: self.passed,
            outcome: self.outcome.clone(),
            library: self.library.as_mut().map(LibraryWriter::sync).transpose()?,
        };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    /// How many records are near each that stays.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        let most = self.most_counted;
        let mut first = 0u32;
        loop {
            let (mut counted, mut is_more) = (BTreeMap::<u32, (u64, Place)>::new(), false);
            let all = self.events.each(|event| {
                let Cause::Near { of, place, .. } = event.cause else { return };
                match of.checked_sub(first) {
                    Some(within) if within < most => counted.entry(of).or_insert((0, place)).0 += 1,
                    Some(_) => is_more = true,
                    None => {}
                }
            });
            all.map_err(|cause| self.texts.scratch_error(cause))?;
            for (copies, place) in counted.into_values() {
                write_copies(out, &self.texts.id(place)?, copies)?;
            }
            if !is_more {
                return Ok(());
            }
            first = first.saturating_add(most);
        }
    }

    fn complete(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_mut().map_or(Ok(()), LibraryWriter::complete)?)
    }

    fn commit(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_ref().map_or(Ok(()), LibraryWriter::commit)?)
    }

    /// Removals go by the number of a record, so that both passes must have read the same.
    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        if tally.records != self.outcome.records || !self.events.is_at_end() || states(&self.sources) != self.inputs {
            return Err(RunError::InputChanged);
        }
        let library = self.library.as_ref().map(LibraryWriter::pending);
        Ok(Outcome { library, ..self.outcome.clone() })
    }
}
