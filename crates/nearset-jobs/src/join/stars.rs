//! Records kept so far, and those that are near one of them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use nearset::Similarity;
use nearset::index::{Placed, Proposal, ShingleIndex, ShingleKeys, StarClusters};
use nearset::item::append_sorted;
use nearset_records::{Fields, Source, StateFolder};

use super::alarm::{self, Alarm, Cause};
use super::budget::{Backlog, DECIDED_AT_ONCE, Entries};
use super::decisions::{Decisions, Marked};
use super::needs::expect_memory;
use super::stream::Cutter;
use super::texts::{AT_ONCE, OwnSet, Place, Room, Texts};
use crate::crew::Crew;
use crate::library::OpenLibrary;
use crate::run::{Progress, RunError};

/// Where a record belongs.
pub(super) struct Placement {
    /// The entry it is near, and how near.
    pub near: Option<(u32, f64)>,
    /// Its own entry, if others are to be compared with it.
    pub entry: Option<u32>,
}

fn larger(a: Similarity, b: Similarity) -> Similarity {
    if a < b { b } else { a }
}

/// A record whose turn comes soon.
pub(super) struct Next<'c> {
    /// As [`ShingleKeys`] writes them.
    pub keys: &'c [u64],
    pub set: OwnSet<'c>,
    /// Where it lies, if its set is not in memory.
    pub place: Option<Place>,
    /// Its number among marked records, if it is one.
    pub mark: Option<u32>,
}

/// The records kept so far, and how many are near each.
pub(super) struct Stars {
    pub clusters: StarClusters,
    pub texts: Texts,
    /// The similarity from which on records are near; candidates may be looked up for a lower one.
    near: Similarity,
    /// Whether a record goes that is near only a removed one.
    follow_chains: bool,
    /// How many records are listed under one key, at most.
    most_listed: usize,
    /// What was said about pairs of records.
    pub marked: Marked,
    /// How many are near each entry.
    pub members: Vec<u32>,
    /// Where the entries of each library end; those of the run itself come behind.
    libraries: Vec<u32>,
    /// Memory that may be taken, cached sets included.
    pub most_bytes: u64,
}

/// How many records are listed under one key, and found by it, unless all are wanted.
pub(super) const MOST_LISTED: usize = 1024;

impl Stars {
    pub fn new(
        sources: &Arc<[Source]>,
        fields: &Fields,
        follow_chains: bool,
        most_listed: usize,
        cutter: &Cutter<'_>,
        folder: Option<&StateFolder>,
        scratch: PathBuf,
    ) -> Self {
        let clusters = StarClusters::new(&cutter.spec, most_listed).following_chains(follow_chains);
        let texts = Texts::new(sources, fields, cutter, folder, scratch);
        let (members, libraries) = (Vec::new(), Vec::new());
        let (near, marked, most_bytes) = (cutter.spec.near, Marked::default(), u64::MAX);
        Self { clusters, texts, near, follow_chains, most_listed, marked, members, libraries, most_bytes }
    }

    /// The same, where some pairs are decided on.
    pub fn with_decisions(mut self, decisions: &Decisions) -> Self {
        self.marked = Marked::new(decisions.clone());
        self
    }

    /// The same, where records are near from this similarity on.
    pub fn near_from(mut self, near: Similarity) -> Self {
        self.near = near;
        self
    }

    /// Makes the records of a library entries, before those of the run itself.
    pub fn add_library(&mut self, opened: OpenLibrary, cutter: &Cutter<'_>) -> Result<(), RunError> {
        let library = &opened.library;
        library.expect_same_shingles(cutter.spec.shingling, cutter.spec.seed)?;
        let is_same = library.has_keys_of(&cutter.spec, &cutter.model);
        let records = u32::try_from(library.records()).ok().filter(|&more| self.stored().checked_add(more).is_some());
        let records = records.ok_or(RunError::TooMany)?;
        let first = self.texts.segments.add(opened)?;
        let mut scratch = if is_same {
            None
        } else {
            Some(self.texts.unnamed_scratch().map_err(|cause| self.texts.scratch_error(cause))?)
        };
        let (mut keys, texts) = (ShingleKeys::default(), &mut self.texts);
        for segment in first..texts.segments.len() {
            if let Some(scratch) = &mut scratch {
                texts.segments.choose_anew(segment, (&cutter.model, &cutter.spec), scratch)?;
            }
            let (first, index) = texts.segments.index(segment);
            self.clusters.index.count_on(index.records(), |insert| {
                index.each_common(|record, words| {
                    keys.read(words);
                    insert(first + record, &keys);
                    Ok::<_, RunError>(())
                })
            })?;
        }
        texts.cache.count_on(records);
        self.members.resize(self.members.len() + records as usize, 0);
        self.libraries.push(self.members.len() as u32);
        Ok(())
    }

    /// Finds out which records of libraries share a key with the next ones.
    fn meet<'c>(
        &mut self,
        records: usize,
        crew: &Crew,
        record: impl Fn(usize) -> Option<Next<'c>>,
    ) -> Result<(), RunError> {
        let segments = &self.texts.segments;
        if segments.len() == 0 {
            return Ok(());
        }
        let (mut keys, mut codes, mut sorted) = (ShingleKeys::default(), Vec::new(), Vec::new());
        for next in (0..records).filter_map(record) {
            keys.read(next.keys);
            codes.extend(keys.codes());
        }
        append_sorted(&codes, &mut sorted);
        // Fewer are looked up before another thread has begun.
        const WORTH_A_THREAD: usize = 1 << 16;
        let threads = crew.threads().min(sorted.len() * segments.len() / WORTH_A_THREAD + 1);
        let parts = sorted.chunks(sorted.len().div_ceil(threads).max(1)).collect();
        let met = crew.each(parts, |codes| segments.met(codes, self.most_listed));
        let met = met.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.clusters.index.next_round(false, met.into_iter().flatten());
        Ok(())
    }

    /// The library that an entry is in, if it is in one.
    pub fn library_of(&self, entry: u32) -> Option<usize> {
        let library = self.libraries.partition_point(|&end| end <= entry);
        (library < self.libraries.len()).then_some(library)
    }

    /// How many entries are in libraries.
    pub fn stored(&self) -> u32 {
        self.libraries.last().copied().unwrap_or(0)
    }

    /// Looks up and compares the next records, on many threads: what is found spares [`Self::add`] most of its work, and changes nothing.
    /// Only these can be added next.
    pub fn propose<'c>(
        &mut self,
        records: usize,
        crew: &Crew,
        record: impl Fn(usize) -> Option<Next<'c>> + Sync,
    ) -> Result<Vec<Proposal>, RunError> {
        self.meet(records, crew, &record)?;
        self.propose_met(records, crew, record)
    }

    /// [`Self::propose`], where those of libraries and earlier rounds that share a key with them are known.
    fn propose_met<'c>(
        &mut self,
        records: usize,
        crew: &Crew,
        record: impl Fn(usize) -> Option<Next<'c>> + Sync,
    ) -> Result<Vec<Proposal>, RunError> {
        let mut proposals = vec![Proposal::default(); records];
        if crew.threads().min(records.div_ceil(AT_ONCE)) <= 1 {
            return Ok(proposals);
        }
        settle(&mut self.clusters.index, crew);
        let (parts, of) = (proposals.chunks_mut(AT_ONCE).enumerate(), (&self.clusters, self.near));
        self.texts.with_rooms(crew, parts, |texts, room, (part, proposals)| {
            for (i, proposal) in (part * AT_ONCE..).zip(proposals) {
                // What a marked record is near may depend on the records of this batch that it is marked with.
                let Some(next) = record(i).filter(|next| next.mark.is_none()) else { continue };
                *proposal = propose_one(of, texts, next, room)?;
            }
            Ok(())
        })?;
        Ok(proposals)
    }

    /// Decides on records that waited, and tells of each what became of it.
    pub fn decide<T: Sync>(
        &mut self,
        (waiting, records): (&Backlog<T>, Range<usize>),
        (crew, progress): (&Crew, &Progress),
        mark: impl Fn(&T) -> Option<u32> + Sync,
        mut decided: impl FnMut(&mut Self, usize, Placement) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let mut keys = ShingleKeys::default();
        for first in records.clone().step_by(DECIDED_AT_ONCE) {
            progress.go_on()?;
            let records = first..records.end.min(first + DECIDED_AT_ONCE);
            settle(&mut self.clusters.index, crew);
            let keys_of = |i: usize| waiting.keys(first + i);
            self.texts.fetch(&self.clusters.index, (records.len(), crew), keys_of)?;
            let proposals = self.propose_met(records.len(), crew, |i| {
                let place = Some(waiting.place(first + i));
                Some(Next { keys: keys_of(i), set: OwnSet::Unread, place, mark: mark(waiting.own(first + i)) })
            })?;
            for (record, proposal) in records.zip(&proposals) {
                keys.read(waiting.keys(record));
                let (place, mark) = (waiting.place(record), mark(waiting.own(record)));
                let placement = self.add(&keys, OwnSet::Unread, mark, proposal, |_| Ok(place))?;
                decided(self, record, placement)?;
            }
        }
        Ok(())
    }

    /// Takes the next record. `place` is asked for if it is to be read, or others are to be compared with it.
    pub fn add(
        &mut self,
        keys: &ShingleKeys,
        mut set: OwnSet<'_>,
        mark: Option<u32>,
        proposal: &Proposal,
        place: impl Fn(&mut Texts) -> Result<Place, RunError>,
    ) -> Result<Placement, RunError> {
        if self.members.len() >= u32::MAX as usize {
            return Err(RunError::TooMany);
        }
        let (near, texts) = (self.near, &mut self.texts);
        let (forced, different) =
            (mark.and_then(|mark| self.marked.duplicate_of(mark)), self.marked.different_from(mark));
        let mut compare = |entry: u32, least: Similarity| texts.compare_own(entry, (&mut set, &place), least);
        let placed = match forced {
            Some(of) => {
                let none = Similarity::jaccard(0.0).unwrap_or(near);
                let similarity = compare(of, none)?.unwrap_or(none);
                let is_entry = self.follow_chains && keys.size() > 0 && similarity.value() < 1.0;
                let entry = is_entry.then(|| self.clusters.index.insert(keys));
                Placed::Member { of, similarity, entry, compared: 1 }
            }
            None => self.clusters.add(keys, proposal, |entry, least| {
                if different.contains(&entry) { Ok(None) } else { compare(entry, larger(least, near)) }
            })?,
        };
        let (near, entry) = match placed {
            Placed::Member { of, similarity, entry, compared } => {
                self.members[of as usize] += 1;
                texts.compared += u64::from(compared);
                (Some((of, similarity.value())), entry)
            }
            Placed::Centre { entry, compared } => {
                texts.compared += u64::from(compared);
                (None, entry)
            }
            _ => (None, None),
        };
        if entry.is_some() {
            let place = place(texts)?;
            texts.push(place, &set);
            self.members.push(0);
        }
        if let Some(mark) = mark {
            self.marked.meet(mark, entry)?;
        }
        Ok(Placement { near, entry })
    }

    /// Makes a record an entry that is not compared.
    pub fn insert(&mut self, keys: &ShingleKeys, place: Place) {
        self.clusters.index.insert(keys);
        self.texts.push_unread(place);
        self.members.push(0);
    }

    /// Entries that records are near, and how many.
    pub fn copied(&self) -> Vec<(u32, u64)> {
        let counted = (0..).zip(&self.members).filter(|(_, members)| **members > 0);
        counted.map(|(entry, &members)| (entry, u64::from(members))).collect()
    }

    /// That there is memory left, behind so many records.
    pub fn expect_memory(&self, other_bytes: u64, records: u64) -> Result<(), RunError> {
        expect_memory(self.bytes() + other_bytes + self.texts.cached_bytes(), self.most_bytes, records)
    }

    pub fn alarms(&mut self, records: u64) -> Result<Vec<Alarm>, RunError> {
        let sizes = (0..).zip(&self.members).map(|(entry, &members)| (entry, u64::from(members) + 1));
        let large = alarm::worth_an_alarm(sizes, records);
        let mut alarms = alarm::lists(&mut self.texts, &self.clusters.index)?;
        for (entry, size) in large {
            alarms.push(alarm::around(&mut self.texts, Cause::Cluster, entry, size)?);
        }
        Ok(alarms)
    }
}

/// Makes what was added found sooner, on many threads.
pub(super) fn settle(index: &mut ShingleIndex, crew: &Crew) {
    index.settle_by(|tasks| drop(crew.each(tasks, |task| task())));
}

fn propose_one(
    (clusters, near): (&StarClusters, Similarity),
    texts: &Texts,
    next: Next<'_>,
    room: &mut Room,
) -> Result<Proposal, RunError> {
    let Next { keys, mut set, place, .. } = next;
    let Room { keys: read, reread } = room;
    read.read(keys);
    clusters.propose(read, |entry, least| {
        let set = set.get(|| place.map_or(Ok(Vec::new()), |place| texts.read_set(place, reread)))?;
        texts.compare_by(reread, entry, set, larger(least, near))
    })
}

impl Entries for Stars {
    fn index(&mut self) -> &mut ShingleIndex {
        &mut self.clusters.index
    }

    fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    fn most_listed(&self) -> usize {
        self.most_listed
    }

    fn bytes(&self) -> u64 {
        self.clusters.index.bytes() + 4 * self.members.len() as u64 + self.texts.bytes()
    }
}
