//! Decisions in the order in which records are wanted: all are made before the first record is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::index::ShingleKeys;
use nearset_records::{Extracted, Fields, OutputError, OutputFile, RecordError, Scratch, Source, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::rank::{Keep, Rank};
use super::super::stars::Stars;
use super::super::stream::{self, Cutter};
use super::super::texts::{Place, Texts};
use super::{Outcome, VerifiedDedupOptions};
use crate::run::{Decider, Decision, Ids, Part, Progress, RunError, Start, Tally, Verdict, Worker, of_file};

/// The decisions of a run that can be resumed.
const FILE: &str = "decisions.bin";

/// By record: the entry that it is near, and how near.
type Removals = BTreeMap<u32, (u32, f64)>;

/// What became of all records.
pub(super) struct Ranked {
    /// Records that go.
    removals: Removals,
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
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Bytes of the decisions.
    decisions: u64,
    /// Bytes of the texts that were copied.
    copies: Option<u64>,
    passed: u64,
    outcome: Outcome,
}

impl Ranked {
    /// Reads all records and decides on them, unless the run to be resumed has.
    pub fn new(start: &Start, options: &VerifiedDedupOptions, progress: &Progress) -> Result<Self, RunError> {
        let (wanted, fields) = (&options.wanted, &options.run.fields);
        let field = match &options.keep {
            Keep::Field(name) => Some(name.clone()),
            _ => None,
        };
        let cutter = Cutter::new(&start.sources, wanted, fields, progress)?.with_field(field);
        let stars = Stars::new(&start.sources, fields, options.follow_chains, &cutter, start.folder());
        if let (Some(saved), Some(folder)) = (start.saved::<Saved>()?, start.folder()) {
            return Self::load(saved, folder, stars.texts, start);
        }
        Self::decide_all(start, options, &cutter, stars, progress)
    }

    fn decide_all(
        start: &Start,
        options: &VerifiedDedupOptions,
        cutter: &Cutter,
        mut stars: Stars,
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let inputs = states(&start.sources);
        // The keys of all records, and where each one's begin.
        let (mut keys, mut records) = (Vec::<u64>::new(), Vec::new());
        let reading = (options.run.threads, options.run.on_error);
        let counts = stream::read(&start.sources, reading, cutter, progress, |batch, cut| {
            let mut next = 0;
            for i in 0..batch.len() {
                let Some(document) = cut.documents.get(next).filter(|document| document.record == i) else {
                    records.push(None);
                    continue;
                };
                let rank = match options.keep {
                    Keep::Field(_) => Rank::of(document.field.as_deref()),
                    _ => Rank::Number(document.text_bytes as f64),
                };
                let from = keys.len();
                keys.extend_from_slice(cut.keys(next));
                let range = from..keys.len();
                records.push(Some((rank, stars.texts.place(batch, i)?, document.set.len(), range)));
                next += 1;
            }
            progress.filter_bytes.store(8 * keys.len() as u64, Ordering::Relaxed);
            Ok(0)
        })?;
        let mut order: Vec<u32> = (0..u32::try_from(records.len()).map_err(|_| RunError::TooMany)?).collect();
        order.sort_by(|&a, &b| {
            let rank = |record: u32| records[record as usize].as_ref().map(|(rank, ..)| rank);
            rank(b).cmp(&rank(a)).then(a.cmp(&b))
        });
        let (mut removals, mut read) = (BTreeMap::new(), ShingleKeys::new());
        for record in order {
            progress.go_on()?;
            let Some((_, place, size, range)) = &records[record as usize] else { continue };
            let (place, size) = (*place, *size);
            read.read(&keys[range.clone()]);
            if stars.is_alone(&read, place, size) {
                continue;
            }
            let set = stars.texts.set(place)?;
            if let Some(near) = stars.add(&read, set, |_| Ok(place))?.near {
                removals.insert(record, near);
            }
        }
        let outcome = Outcome::of(&mut stars, counts.records)?;
        let entries: BTreeSet<u32> = removals.values().map(|&(of, _)| of).collect();
        let places = entries.into_iter().map(|entry| (entry, stars.texts.place_of(entry))).collect();
        Ok(Self {
            removals,
            places,
            names: BTreeMap::new(),
            wants_names: start.wants_names(),
            texts: stars.texts,
            outcome,
            passed: 0,
            inputs,
            sources: Arc::clone(&start.sources),
            saved: None,
        })
    }

    fn load(saved: Saved, folder: &StateFolder, mut texts: Texts, start: &Start) -> Result<Self, RunError> {
        let (inputs, sources) = (states(&start.sources), Arc::clone(&start.sources));
        let wants_names = start.wants_names();
        let Saved { decisions, copies, passed, outcome } = saved;
        texts.restore_copies(copies)?;
        let read = || -> io::Result<(Removals, BTreeMap<u32, Place>)> {
            let mut file = std::io::BufReader::new(std::fs::File::open(folder.file(FILE))?.take(decisions));
            let (mut removals, mut places) = (BTreeMap::new(), BTreeMap::new());
            for _ in 0..u64::from_le_bytes(bytes(&mut file)?) {
                let (record, of) = (u32::from_le_bytes(bytes(&mut file)?), u32::from_le_bytes(bytes(&mut file)?));
                removals.insert(record, (of, f64::from_le_bytes(bytes(&mut file)?)));
            }
            for _ in 0..u64::from_le_bytes(bytes(&mut file)?) {
                let entry = u32::from_le_bytes(bytes(&mut file)?);
                places.insert(entry, Place::from_bytes(bytes(&mut file)?));
            }
            Ok((removals, places))
        };
        let (removals, places) = read().map_err(|cause| folder.damaged(format!("{FILE}: {cause}")))?;
        if removals.values().any(|(of, _)| !places.contains_key(of)) {
            return Err(folder.damaged(format!("{FILE}: a record is missing")).into());
        }
        let (names, saved) = (BTreeMap::new(), Some(decisions));
        Ok(Self { removals, places, names, wants_names, texts, outcome, passed, inputs, sources, saved })
    }

    fn write_decisions(&self, folder: &StateFolder) -> io::Result<u64> {
        let mut file = Scratch::open(&folder.file(FILE), 0)?;
        file.append(&(self.removals.len() as u64).to_le_bytes())?;
        for (record, (of, similarity)) in &self.removals {
            file.append(&record.to_le_bytes())?;
            file.append(&of.to_le_bytes())?;
            file.append(&similarity.to_le_bytes())?;
        }
        file.append(&(self.places.len() as u64).to_le_bytes())?;
        for (entry, place) in &self.places {
            file.append(&entry.to_le_bytes())?;
            file.append(&place.to_bytes())?;
        }
        file.sync()
    }
}

/// The size of each file and when it changed.
fn states(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| source.path().map(of_file).unwrap_or_default()).collect()
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
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
            let Some(&(of, similarity)) = self.removals.get(&record) else {
                decisions.push(Decision { verdict: Verdict::Kept, family: None });
                continue;
            };
            if self.wants_names {
                if !self.names.contains_key(&of) {
                    self.names.insert(of, self.texts.id(self.places[&of])?);
                }
                names.push(&self.names[&of]);
            } else {
                names.push("");
            }
            let verdict = Verdict::NearTo { name: names.len() as u32 - 1, similarity };
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
        let saved = Saved { decisions, copies: self.texts.sync()?, passed: self.passed, outcome: self.outcome.clone() };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&self, _: &mut OutputFile) -> Result<(), RunError> {
        Ok(())
    }

    /// Removals go by the number of a record, so that both passes must have read the same.
    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        if tally.records != self.outcome.records || states(&self.sources) != self.inputs {
            return Err(RunError::InputChanged);
        }
        Ok(self.outcome.clone())
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

    fn work(&self, (): &mut (), extracted: &Extracted<'_>, (): &mut (), faults: &mut Vec<(usize, RecordError)>) {
        let fault = |i: usize| stream::text_of(extracted, i, self.fields).err().map(|error| (i, error));
        faults.extend((0..extracted.len()).filter_map(fault));
    }
}
