//! Decisions in the order in which records are wanted: all are made before the first record is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::index::ShingleKeys;
use nearset_records::{Extracted, Fields, OutputError, OutputFile, RecordError, Scratch, Source, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::rank::{Keep, Rank};
use super::super::stars::{Next, OwnSet, Placement, Stars};
use super::super::stream::{self, Cutter};
use super::super::texts::{Place, Texts};
use super::log::bytes;
use super::{Outcome, VerifiedDedupOptions, VerifiedDedupSummary, write_copies};
use crate::library::{LibraryWriter, Written};
use crate::run::{Decider, Decision, Ids, Part, Progress, RunError, Start, Tally, Verdict, Worker};

/// The decisions of a run that can be resumed.
const FILE: &str = "decisions.bin";

/// Records that are looked up together.
const AT_ONCE: usize = 4096;

/// By record: the entry that it is near, and how near.
type Removals = BTreeMap<u32, (u32, f64)>;

/// By record: the filter that it is near something in, and how many bands hit there.
type Screened = BTreeMap<u32, (usize, u32)>;

/// A record that was read.
struct Candidate {
    rank: Rank,
    place: Place,
    /// Where its keys are.
    keys: Range<usize>,
    /// Its number among marked records, if it is one.
    mark: Option<u32>,
}

/// What became of all records.
pub(super) struct Ranked {
    /// Records that go.
    removals: Removals,
    /// Records that are near something in a filter built before.
    screened: Screened,
    /// Where those entries lie.
    places: BTreeMap<u32, Place>,
    names: BTreeMap<u32, String>,
    wants_names: bool,
    texts: Texts,
    outcome: Outcome,
    /// Records that were passed.
    passed: u64,
    /// The inputs as they were before the first pass.
    inputs: Vec<String>,
    sources: Arc<[Source]>,
    /// The length of the file of decisions, once it is written.
    saved: Option<u64>,
    /// Filters that records were screened by; verdicts count libraries behind them.
    filters: usize,
    /// By entry of `places` that is in a library: which.
    stored: BTreeMap<u32, usize>,
    /// Where what is kept goes for later runs.
    library: Option<LibraryWriter>,
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// Bytes of the decisions.
    decisions: u64,
    /// Bytes of the texts that were copied.
    copies: Option<u64>,
    passed: u64,
    outcome: Outcome,
    /// How far the library has come.
    pub library: Option<Written>,
}

impl Ranked {
    /// Reads all records and decides on them, unless the run to be resumed has.
    pub fn new(
        start: &Start,
        options: &VerifiedDedupOptions,
        cutter: Cutter<'_>,
        stars: Stars,
        filters: usize,
        library: Option<LibraryWriter>,
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let cutter = cutter.with_field(options.keep.field().map(str::to_owned));
        if let (Some(saved), Some(folder)) = (start.saved::<Saved>()?, start.folder()) {
            return Self::load(saved, folder, stars, start, filters, library);
        }
        Self::decide_all(start, options, &cutter, stars, filters, library, progress)
    }

    fn decide_all(
        start: &Start,
        options: &VerifiedDedupOptions,
        cutter: &Cutter<'_>,
        mut stars: Stars,
        filters: usize,
        mut library: Option<LibraryWriter>,
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let inputs = states(&start.sources);
        // The keys of all records, and where each one's begin.
        let (mut keys, mut screened) = (Vec::<u64>::new(), BTreeMap::new());
        let mut records: Vec<Option<Candidate>> = Vec::new();
        let mut short = 0;
        let mut is_field_there = options.keep.field().is_none();
        let reading = (options.run.threads, options.run.on_error);
        let counts = stream::read(&start.sources, reading, (cutter, &cutter.fields), progress, |batch, cut| {
            let mut next = 0;
            for i in 0..batch.len() {
                let Some(document) = cut.documents.get(next).filter(|document| document.record == i) else {
                    records.push(None);
                    continue;
                };
                next += 1;
                is_field_there |= document.field.is_some();
                if let Some(hit) = document.screened {
                    // There are fewer than 2^32, or they can't be ranked.
                    screened.insert(records.len() as u32, hit);
                    records.push(None);
                    continue;
                }
                let rank = match options.keep {
                    Keep::Max(_) | Keep::Min(_) => Rank::of(document.field.as_deref()),
                    _ => Rank::Number(document.text_bytes as f64, None),
                };
                short += u64::from(cut.set(next - 1).len() < VerifiedDedupSummary::FEW_SHINGLES);
                let from = keys.len();
                keys.extend_from_slice(cut.keys(next - 1));
                let place = stars.texts.place(batch, i)?;
                // The cutter reads another field in the place of the id.
                let mark = match options.decisions.is_empty() {
                    true => None,
                    false => options.decisions.number(&stars.texts.id(place)?),
                };
                records.push(Some(Candidate { rank, place, keys: from..keys.len(), mark }));
            }
            let held = 8 * keys.len() + size_of_val(&records[..]);
            stars.expect_memory(held as u64, records.len() as u64)?;
            progress.filter_bytes.store(held as u64, Ordering::Relaxed);
            Ok(0)
        })?;
        if let (false, true, Some(field)) = (is_field_there, counts.records > counts.faulty, options.keep.field()) {
            return Err(RunError::NoField { field: field.to_owned() });
        }
        let mut order: Vec<u32> = (0..u32::try_from(records.len()).map_err(|_| RunError::TooMany)?).collect();
        order.sort_by(|&a, &b| {
            let rank =
                |record: u32| records[record as usize].as_ref().map_or(&Rank::Missing, |candidate| &candidate.rank);
            options.keep.order(rank(a), rank(b)).then(a.cmp(&b))
        });
        let (mut removals, mut read) = (BTreeMap::new(), ShingleKeys::default());
        for records_at_once in order.chunks(AT_ONCE) {
            progress.go_on()?;
            let passed = u64::from(records_at_once[0]);
            stars.expect_memory((8 * keys.len() + size_of_val(&records[..])) as u64, passed)?;
            let candidate = |record: u32| records[record as usize].as_ref();
            let proposals = stars.propose(records_at_once.len(), options.run.threads, |i| {
                let Candidate { place, keys: range, mark, .. } = candidate(records_at_once[i])?;
                let (keys, set, place) = (&keys[range.clone()], OwnSet::Unread, Some(*place));
                Some(Next { keys, set, place, mark: *mark })
            })?;
            for (&record, proposal) in records_at_once.iter().zip(&proposals) {
                let Some(Candidate { place, keys: range, mark, .. }) = candidate(record) else { continue };
                read.read(&keys[range.clone()]);
                let Placement { near, entry } = stars.add(&read, OwnSet::Unread, *mark, proposal, |_| Ok(*place))?;
                if let (Some(library), Some(_)) = (&mut library, entry) {
                    let (set, id) = (stars.texts.set(*place)?, stars.texts.id(*place)?);
                    library.push(&keys[range.clone()], &set, &id)?;
                }
                if let Some(near) = near {
                    removals.insert(record, near);
                }
            }
        }
        let outcome = Outcome::of(&mut stars, counts.records, short)?;
        let entries: BTreeSet<u32> = removals.values().map(|&(of, _)| of).collect();
        let stored = stored_of(&stars, &entries);
        let place_of = |entry: u32| Ok((entry, stars.texts.place_of(entry)?));
        let places = entries.into_iter().map(place_of).collect::<Result<_, RunError>>()?;
        Ok(Self {
            removals,
            screened,
            places,
            names: BTreeMap::new(),
            wants_names: start.wants_names(),
            texts: stars.texts,
            outcome,
            passed: 0,
            inputs,
            sources: Arc::clone(&start.sources),
            saved: None,
            filters,
            stored,
            library,
        })
    }

    fn load(
        saved: Saved,
        folder: &StateFolder,
        mut stars: Stars,
        start: &Start,
        filters: usize,
        library: Option<LibraryWriter>,
    ) -> Result<Self, RunError> {
        let (inputs, sources) = (states(&start.sources), Arc::clone(&start.sources));
        let wants_names = start.wants_names();
        let Saved { decisions, copies, passed, outcome, library: _ } = saved;
        stars.texts.restore_copies(copies)?;
        let read = || -> io::Result<(Removals, Screened, BTreeMap<u32, Place>)> {
            let mut file = std::io::BufReader::new(std::fs::File::open(folder.file(FILE))?.take(decisions));
            let (mut removals, mut screened, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            for _ in 0..u64::from_le_bytes(bytes(&mut file)?) {
                let (record, of) = (u32::from_le_bytes(bytes(&mut file)?), u32::from_le_bytes(bytes(&mut file)?));
                removals.insert(record, (of, f64::from_le_bytes(bytes(&mut file)?)));
            }
            for _ in 0..u64::from_le_bytes(bytes(&mut file)?) {
                let [record, filter, hits] = [bytes(&mut file)?, bytes(&mut file)?, bytes(&mut file)?];
                let hit = (u32::from_le_bytes(filter) as usize, u32::from_le_bytes(hits));
                screened.insert(u32::from_le_bytes(record), hit);
            }
            for _ in 0..u64::from_le_bytes(bytes(&mut file)?) {
                let entry = u32::from_le_bytes(bytes(&mut file)?);
                places.insert(entry, Place::from_bytes(bytes(&mut file)?));
            }
            Ok((removals, screened, places))
        };
        let (removals, screened, places) = read().map_err(|cause| folder.damaged(format!("{FILE}: {cause}")))?;
        let is_unknown = |&(filter, _): &(usize, u32)| filter >= filters;
        if removals.values().any(|(of, _)| !places.contains_key(of)) || screened.values().any(is_unknown) {
            return Err(folder.damaged(format!("{FILE}: a record is missing")).into());
        }
        Ok(Self {
            stored: stored_of(&stars, &places.keys().copied().collect()),
            removals,
            screened,
            places,
            names: BTreeMap::new(),
            wants_names,
            texts: stars.texts,
            outcome,
            passed,
            inputs,
            sources,
            saved: Some(decisions),
            filters,
            library,
        })
    }

    fn write_decisions(&self, folder: &StateFolder) -> io::Result<u64> {
        let mut file = Scratch::open(&folder.file(FILE), 0)?;
        file.append(&(self.removals.len() as u64).to_le_bytes())?;
        for (record, (of, similarity)) in &self.removals {
            file.append(&record.to_le_bytes())?;
            file.append(&of.to_le_bytes())?;
            file.append(&similarity.to_le_bytes())?;
        }
        file.append(&(self.screened.len() as u64).to_le_bytes())?;
        for (record, (filter, hits)) in &self.screened {
            for number in [*record, *filter as u32, *hits] {
                file.append(&number.to_le_bytes())?;
            }
        }
        file.append(&(self.places.len() as u64).to_le_bytes())?;
        for (entry, place) in &self.places {
            file.append(&entry.to_le_bytes())?;
            file.append(&place.to_bytes())?;
        }
        file.sync()
    }
}

/// Which of these entries are in a library, and in which.
fn stored_of(stars: &Stars, entries: &BTreeSet<u32>) -> BTreeMap<u32, usize> {
    entries.iter().filter_map(|&entry| stars.library_of(entry).map(|library| (entry, library))).collect()
}

/// The size of each file and when it changed.
pub(super) fn states(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| source.state()).collect()
}

impl Decider for Ranked {
    type Piece = ();
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, ()>, decisions: &mut Vec<Decision>, names: &mut Ids) -> Result<(), RunError> {
        let first = self.passed;
        self.passed += part.records.len() as u64;
        for i in part.sound_records() {
            // There are fewer than 2^32, or they could not have been ranked.
            let record = (first + (i - part.records.start) as u64) as u32;
            if let Some(&(filter, hits)) = self.screened.get(&record) {
                decisions.push(Decision { verdict: Verdict::Against { filter, hits }, family: None });
                continue;
            }
            let Some(&(of, similarity)) = self.removals.get(&record) else {
                decisions.push(Decision { verdict: Verdict::Kept, family: None });
                continue;
            };
            let name = if self.wants_names {
                if !self.names.contains_key(&of) {
                    self.names.insert(of, self.texts.id(self.places[&of])?);
                }
                names.push(&self.names[&of])
            } else {
                names.push("")
            };
            let library = self.stored.get(&of).map(|library| self.filters + library);
            let origin = self.places[&of].origin();
            let verdict = Verdict::NearTo { name, similarity, library, origin };
            decisions.push(Decision { verdict, family: Some(of.into()) });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.outcome.index_bytes
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    /// Reading, ranking and comparing are behind us.
    fn starts_with_checkpoint(&self) -> bool {
        true
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        let decisions = match self.saved {
            Some(length) => length,
            None => self.write_decisions(folder).map_err(|cause| OutputError::from_io(folder.path(), cause))?,
        };
        self.saved = Some(decisions);
        let saved = Saved {
            decisions,
            copies: self.texts.sync()?,
            passed: self.passed,
            outcome: self.outcome.clone(),
            library: self.library.as_mut().map(LibraryWriter::sync).transpose()?,
        };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    /// How many records are near each that stays.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        let mut copies = BTreeMap::<u32, u64>::new();
        self.removals.values().for_each(|&(of, _)| *copies.entry(of).or_default() += 1);
        for (of, copies) in copies {
            write_copies(out, &self.texts.id(self.places[&of])?, copies)?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_mut().map_or(Ok(()), LibraryWriter::complete)?)
    }

    fn commit(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_ref().map_or(Ok(()), LibraryWriter::commit)?)
    }

    /// Removals go by the number of a record, so that both passes must have read the same.
    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        if tally.records != self.outcome.records || states(&self.sources) != self.inputs {
            return Err(RunError::InputChanged);
        }
        let library = self.library.as_ref().map(LibraryWriter::pending);
        Ok(Outcome { library, ..self.outcome.clone() })
    }
}

/// What the second pass needs of records: whether they are sound.
pub(super) struct Naming<'w> {
    pub fields: &'w Fields,
}

impl Worker for Naming<'_> {
    type Piece = ();
    type Room = ();

    fn room(&self) {}

    fn clear(&self, (): &mut (), (): &mut ()) {}

    fn add(&self, (): &mut (), extracted: &Extracted<'_>, i: usize, (): &mut ()) -> Result<(), RecordError> {
        stream::text_of(extracted, i, self.fields).map(|_| ())
    }
}
