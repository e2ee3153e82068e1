//! Decisions in the order of reading: each record is compared with those kept before it.

use nearset::index::{FullList, ShingleKeys};
use nearset_records::{OutputFile, StateFolder};
use serde::{Deserialize, Serialize};

use super::super::budget::Entries;
use super::super::cache::Sets;
use super::super::decisions::SavedMarks;
use super::super::stars::{Next, Placement, Stars};
use super::super::stream::Cut;
use super::super::texts::{OwnSet, Texts};
use super::log::{Entry, Event, Log, replay};
use super::{Outcome, VerifiedDedupSummary, write_copies};
use crate::crew::Crew;
use crate::library::{LibraryWriter, Written};
use crate::run::{Decider, Decision, Ids, Part, RunError, Start, Tally, Verdict};

/// The records kept so far, with their names and the log of them.
pub(super) struct InOrder {
    stars: Stars,
    /// The names of entries, where they are wanted.
    names: Ids,
    wants_names: bool,
    log: Option<Log>,
    keys: ShingleKeys,
    crew: Crew,
    /// Sets that have gone from the cache, whose memory is used again.
    gone: Option<Sets>,
    /// Records of few shingles.
    short: u64,
    /// Filters that records were screened by; verdicts count libraries behind them.
    filters: usize,
    /// Where what is kept goes for later runs.
    library: Option<LibraryWriter>,
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// Bytes of the log.
    log: u64,
    /// Bytes of the texts that were copied.
    copies: Option<u64>,
    /// Shingles of more records than are listed: the shingle, records that are, look-ups, two entries.
    full: Vec<(u64, usize, u64, [u32; 2])>,
    cut_short: u64,
    short: u64,
    compared: u64,
    read_again: u64,
    /// How far the library has come.
    pub library: Option<Written>,
    /// Marked records that were met.
    #[serde(default)]
    marked: SavedMarks,
}

impl InOrder {
    /// Nothing is kept yet, or what the run to be resumed has kept.
    pub fn new(stars: Stars, start: &Start, filters: usize, library: Option<LibraryWriter>) -> Result<Self, RunError> {
        let (names, wants_names) = (Ids::default(), start.wants_names());
        let mut new = Self {
            stars,
            names,
            wants_names,
            log: None,
            keys: ShingleKeys::default(),
            crew: Crew::new(start.options.threads),
            gone: None,
            short: 0,
            filters,
            library,
        };
        let Some(folder) = start.folder() else { return Ok(new) };
        let saved: Option<Saved> = start.saved()?;
        if let Some(saved) = &saved {
            new.restore(saved, folder)?;
        }
        new.log = Some(Log::open(folder, saved.map_or(0, |saved| saved.log))?);
        Ok(new)
    }

    fn restore(&mut self, saved: &Saved, folder: &StateFolder) -> Result<(), RunError> {
        let Self { stars, names, wants_names, keys: read, .. } = self;
        let mut is_damaged = false;
        replay(folder, saved.log, |event| match event {
            Event::Member(of) => match stars.members.get_mut(of as usize) {
                Some(members) => *members += 1,
                None => is_damaged = true,
            },
            Event::Entry(Entry { keys, place, id }) => {
                is_damaged |= !read.read(keys);
                stars.insert(read, place);
                if *wants_names {
                    names.push(id);
                }
            }
        })?;
        let entries = stars.members.len() as u32;
        let full = saved.full.iter().map(|&(key, listed, cut_short, items)| {
            let is_known = items.iter().all(|&entry| entry < entries);
            is_known.then_some(FullList { key, listed, cut_short, items })
        });
        is_damaged |= !stars.marked.restore(&saved.marked, entries);
        match full.collect::<Option<Vec<FullList>>>() {
            Some(full) if !is_damaged => stars.clusters.index.restore_full_lists(full),
            _ => return Err(folder.damaged("it names records that were not kept").into()),
        }
        stars.clusters.cut_short = saved.cut_short;
        stars.texts.restore_copies(saved.copies)?;
        (stars.texts.compared, stars.texts.read_again) = (saved.compared, saved.read_again);
        self.short = saved.short;
        Ok(())
    }
}

impl Decider for InOrder {
    type Piece = Cut;
    type Outcome = Outcome;

    fn decide(&mut self, part: Part<'_, Cut>, decisions: &mut Vec<Decision>, names: &mut Ids) -> Result<(), RunError> {
        self.stars.expect_memory(self.names.bytes(), part.batch.start().record)?;
        let (sound, sets) = (part.sound(), Sets::clone(&part.piece.sets));
        self.gone = self.stars.texts.cache.adopt(&sets).or(self.gone.take());
        let own_set = |document: usize| OwnSet::Adopted(part.piece.set_place(document), &sets);
        let proposals = self.stars.propose(sound.len(), &self.crew, |i| {
            let document = sound.start + i;
            let is_screened = part.piece.documents[document].screened.is_some();
            let mark = part.piece.documents[document].mark;
            (!is_screened).then(|| Next { keys: part.piece.keys(document), set: own_set(document), place: None, mark })
        })?;
        for (document, proposal) in sound.zip(proposals) {
            let cut = &part.piece.documents[document];
            if let Some((filter, hits)) = cut.screened {
                decisions.push(Decision { verdict: Verdict::Against { filter, hits }, family: None });
                continue;
            }
            let record = cut.record;
            let keys = part.piece.keys(document);
            self.keys.read(keys);
            self.short += u64::from(self.keys.size() < VerifiedDedupSummary::FEW_SHINGLES);
            let place = |texts: &mut Texts| texts.place(part.batch, record);
            let Placement { near, entry } =
                self.stars.add(&self.keys, own_set(document), cut.mark, &proposal, place)?;
            let id = if self.wants_names { part.ids.get(record) } else { "" };
            let verdict = match near {
                Some((of, similarity)) => {
                    let library = self.stars.library_of(of);
                    let name = match library {
                        Some(_) if self.wants_names => {
                            names.push(&self.stars.texts.id(self.stars.texts.place_of(of)?)?)
                        }
                        Some(_) => names.push(""),
                        None => names.push(self.names.get((of - self.stars.stored()) as usize)),
                    };
                    let library = library.map(|library| self.filters + library);
                    let origin = self.stars.texts.place_of(of)?.origin();
                    Verdict::NearTo { name, similarity, library, origin }
                }
                None => Verdict::Kept,
            };
            if let (Some((of, _)), Some(log)) = (near, &mut self.log) {
                log.member(of)?;
            }
            if let Some(entry) = entry {
                if self.wants_names {
                    self.names.push(id);
                }
                if let Some(log) = &mut self.log {
                    log.entry(&Entry { keys, place: self.stars.texts.place_of(entry)?, id })?;
                }
                if let Some(library) = &mut self.library {
                    library.push(keys, part.piece.set(document), id)?;
                }
            }
            decisions.push(Decision { verdict, family: near.map(|(of, _)| u64::from(of)) });
        }
        if part.records.end == part.batch.len() {
            part.piece.sets = self.gone.take().unwrap_or_default();
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.stars.bytes()
    }

    /// The log is written as records go by, so a checkpoint hardly writes anything.
    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    fn is_mendable(&self) -> bool {
        true
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        let log = self.log.as_mut().map_or(Ok(0), Log::sync)?;
        let texts = &mut self.stars.texts;
        let full = self.stars.clusters.index.full_lists();
        let saved = Saved {
            log,
            copies: texts.sync()?,
            full: full.map(|list| (list.key, list.listed, list.cut_short, list.items)).collect(),
            cut_short: self.stars.clusters.cut_short,
            short: self.short,
            compared: texts.compared,
            read_again: texts.read_again,
            library: self.library.as_mut().map(LibraryWriter::sync).transpose()?,
            marked: self.stars.marked.save(),
        };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    /// How many records are near each that stays.
    fn write(&mut self, out: &mut OutputFile) -> Result<(), RunError> {
        let Self { stars, names, .. } = self;
        for (entry, copies) in stars.copied() {
            match stars.library_of(entry) {
                Some(_) => write_copies(out, &stars.texts.id(stars.texts.place_of(entry)?)?, copies)?,
                None => write_copies(out, names.get((entry - stars.stored()) as usize), copies)?,
            }
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_mut().map_or(Ok(()), LibraryWriter::complete)?)
    }

    fn commit(&mut self) -> Result<(), RunError> {
        Ok(self.library.as_ref().map_or(Ok(()), LibraryWriter::commit)?)
    }

    fn outcome(&mut self, tally: &Tally) -> Result<Outcome, RunError> {
        let outcome = Outcome::of(&mut self.stars, tally.records, self.short)?;
        Ok(Outcome { library: self.library.as_ref().map(LibraryWriter::pending), ..outcome })
    }
}
