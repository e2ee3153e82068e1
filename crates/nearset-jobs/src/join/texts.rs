//! Texts that later records are compared with: where they lie, and the last ones used.
//!
//! Invariant: a text is an *entry*, numbered as in the index, those of libraries first. What is held of another is its place (24 bytes) and where
//! its set is in the cache (4 bytes); sets themselves are in a cache of fixed size and are made anew from the input when they have left it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use nearset::index::{ShingleIndex, ShingleKeys};
use nearset::item::append_sorted;
use nearset::{Item, JoinSpec, Shingler, Similarity};
use nearset_records::{
    Arena, Batch, Fields, ReadOptions, Reader, Scratch, Source, StateFolder, extract, read_exact_at,
};

use super::cache::{Cache, set_at};
use super::stream::{Cutter, shingle};
use crate::crew::Crew;
use crate::library::{Segments, StoredSet};
use crate::run::{Origin, RunError};

/// What an entry takes, beside the index and its id.
pub(super) const BYTES_A_RECORD: u64 = (size_of::<Place>() + size_of::<u32>()) as u64;

/// Files that are open at once.
const MOST_FILES: usize = 64;

/// Where a record lies: in its source, or if that can't be read at any place in the temporary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    offset: u64,
    line: u64,
    bytes: u32,
    source: u32,
}

impl Place {
    /// Bytes of a place in a file.
    pub const BYTES: usize = 24;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.line.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[20..].copy_from_slice(&self.source.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Self { offset: long(0), line: long(8), bytes: word(16), source: word(20) }
    }
}

/// Set in the source of what lies in a library.
const STORED: u32 = 1 << 31;

impl From<StoredSet> for Place {
    fn from(StoredSet { segment, offset, size, id_bytes }: StoredSet) -> Self {
        Self { offset, line: size.into(), bytes: id_bytes, source: segment | STORED }
    }
}

impl Place {
    /// Its source and line; `None` of what lies in a library.
    pub fn origin(self) -> Option<Origin> {
        (self.source & STORED == 0).then_some(Origin { source: self.source, line: self.line })
    }

    /// The source that it is in.
    pub fn source(self) -> usize {
        self.source as usize
    }

    /// Where it lies in a library, if it does.
    fn stored(self) -> Option<StoredSet> {
        let Self { offset, line, bytes, source } = self;
        let stored = StoredSet { segment: source & !STORED, offset, size: line as u32, id_bytes: bytes };
        (source & STORED != 0).then_some(stored)
    }
}

/// The copy of texts, in the folder of a run that can be resumed.
const COPY: &str = "texts.copy";

/// What one thread reads texts again with.
#[derive(Default)]
pub(super) struct Reread {
    files: BTreeMap<u32, File>,
    arena: Arena,
    /// Sets that were read for a comparison, by entry.
    sets: BTreeMap<u32, Vec<u64>>,
    words: usize,
    /// How many texts were read.
    pub texts: u64,
}

/// Words of the sets that one thread holds, to compare with them again.
const MOST_WORDS: usize = 1 << 19;

impl Reread {
    fn hold(&mut self, entry: u32, set: Vec<u64>) -> &[u64] {
        if self.words + set.len() > MOST_WORDS {
            self.sets.clear();
            self.words = 0;
        }
        self.words += set.len();
        self.sets.entry(entry).or_insert(set)
    }

    /// Returns the sets that it holds, and how many texts were read since.
    pub fn take(&mut self) -> (Vec<(u32, Vec<u64>)>, u64) {
        self.words = 0;
        (std::mem::take(&mut self.sets).into_iter().collect(), std::mem::take(&mut self.texts))
    }
}

/// What each thread looks up and compares with.
#[derive(Default)]
pub(super) struct Room {
    pub keys: ShingleKeys,
    pub reread: Reread,
}

/// Candidates of one record whose sets are fetched before it is compared, those that share most with it. Further ones are read when their turn
/// comes.
const MOST_FETCHED: usize = 256;

/// Records that a thread looks up in one go.
pub(super) const AT_ONCE: usize = 64;

/// The set of a record whose turn it is.
pub(super) enum OwnSet<'c> {
    /// At this place of the sets that were adopted last, which these are.
    Adopted(usize, &'c [u64]),
    /// Not in memory: it is read if it is wanted.
    Unread,
    Read(Vec<u64>),
}

impl OwnSet<'_> {
    pub fn get(&mut self, read: impl FnOnce() -> Result<Vec<u64>, RunError>) -> Result<&[u64], RunError> {
        if let Self::Unread = self {
            *self = Self::Read(read()?);
        }
        Ok(match self {
            Self::Adopted(at, sets) => set_at(sets, *at),
            Self::Read(set) => set,
            Self::Unread => &[],
        })
    }
}

/// Texts that later records are compared with.
pub(super) struct Texts {
    sources: Arc<[Source]>,
    fields: Fields,
    spec: JoinSpec,
    shingler: Shingler,
    /// By source: a batch without records, of the source's name, format and columns.
    templates: Vec<OnceLock<Batch>>,
    /// Where copies lie in a run that can be resumed; otherwise in an unnamed file in `scratch`.
    folder: Option<StateFolder>,
    scratch: PathBuf,
    copies: Option<Scratch>,
    /// What lies in libraries: the first entries.
    pub segments: Segments,
    /// The places of this round's entries of this run, and those of earlier rounds in scratch space.
    places: Vec<Place>,
    older: Option<Scratch>,
    pub cache: Cache,
    /// What texts are read again with, one record after the other, and by each thread.
    reread: Reread,
    rooms: Vec<Room>,
    /// Pairs of sets that were compared.
    pub compared: u64,
    /// Texts that were read again for it.
    pub read_again: u64,
}

impl Texts {
    pub fn new(
        sources: &Arc<[Source]>,
        fields: &Fields,
        cutter: &Cutter<'_>,
        folder: Option<&StateFolder>,
        scratch: PathBuf,
    ) -> Self {
        Self {
            sources: Arc::clone(sources),
            fields: fields.clone(),
            spec: cutter.spec,
            shingler: cutter.shingler,
            templates: vec![OnceLock::new(); sources.len()],
            folder: folder.cloned(),
            scratch,
            copies: None,
            segments: Segments::default(),
            places: Vec::new(),
            older: None,
            cache: Cache::default(),
            reread: Reread::default(),
            rooms: Vec::new(),
            compared: 0,
            read_again: 0,
        }
    }

    /// Where record `i` of a batch can be read again.
    pub fn place(&mut self, batch: &Batch, i: usize) -> Result<Place, RunError> {
        let source = batch.start().source;
        self.templates[source].get_or_init(|| batch.with_record(Vec::new(), 1));
        let raw = batch.raw(i);
        let offset = if self.sources[source].is_read_in_place() {
            batch.start().offset + batch.range(i).start as u64
        } else {
            self.copy(raw).map_err(|cause| self.scratch_error(cause))?
        };
        // Records are at most 1 GiB long, and a source is a path in memory.
        let (bytes, source) = (raw.len() as u32, source as u32);
        Ok(Place { offset, line: batch.line(i), bytes, source })
    }

    fn copy(&mut self, raw: &[u8]) -> io::Result<u64> {
        let copies = match (&mut self.copies, &self.folder) {
            (Some(copies), _) => copies,
            (none, Some(folder)) => {
                folder.create().map_err(io::Error::other)?;
                none.insert(Scratch::open(&folder.scratch_file(COPY), 0)?)
            }
            (none, None) => none.insert(Scratch::unnamed(&self.scratch)?),
        };
        copies.append(raw)
    }

    /// Makes the copies durable, and says how long they are; `None` if there are none.
    pub fn sync(&mut self) -> Result<Option<u64>, RunError> {
        let synced = self.copies.as_mut().map(Scratch::sync).transpose();
        synced.map_err(|cause| self.scratch_error(cause))
    }

    /// Goes on with the copies of a run that was stopped.
    pub fn restore_copies(&mut self, length: Option<u64>) -> Result<(), RunError> {
        if let (Some(length), Some(folder)) = (length, &self.folder) {
            let copies = Scratch::open(&folder.scratch_file(COPY), length).map_err(|cause| folder.damaged(cause))?;
            self.copies = Some(copies);
        }
        Ok(())
    }

    pub fn scratch_error(&self, cause: io::Error) -> RunError {
        let of_state = self.folder.as_ref().and_then(|folder| folder.scratch_file(COPY).parent().map(Path::to_owned));
        let folder = of_state.unwrap_or_else(|| self.scratch.clone());
        RunError::Scratch { folder, cause }
    }

    /// Makes a text an entry.
    pub fn push(&mut self, place: Place, set: &OwnSet<'_>) {
        let entry = self.entries();
        self.push_unread(place);
        match set {
            OwnSet::Adopted(at, _) => self.cache.hold(entry, *at),
            OwnSet::Read(set) => self.cache.insert(&[(entry, set.to_vec())]),
            OwnSet::Unread => {}
        }
    }

    /// Makes a text an entry whose set is read when it is needed.
    pub fn push_unread(&mut self, place: Place) {
        self.places.push(place);
        self.cache.add_entry();
    }

    /// Its memory, the cache aside.
    pub fn bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<Place>()) as u64 + self.cache.directory_bytes() + self.segments.bytes()
    }

    /// Memory of the sets that are held.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Whether a place may be one of its own.
    pub fn has(&self, place: Place) -> bool {
        match place.stored() {
            Some(stored) => (stored.segment as usize) < self.segments.len(),
            None => place.source() < self.sources.len(),
        }
    }

    /// Where an entry lies.
    pub fn place_of(&self, entry: u32) -> Result<Place, RunError> {
        let Some(entry) = entry.checked_sub(self.segments.records()) else {
            return Ok(self.segments.place(entry)?.into());
        };
        let at = u64::from(entry) * Place::BYTES as u64;
        let Some((older, own)) = self.older.as_ref().map(|older| (older, at.checked_sub(older.len()))) else {
            return Ok(self.places[entry as usize]);
        };
        if let Some(own) = own {
            return Ok(self.places[own as usize / Place::BYTES]);
        }
        let mut bytes = [0; Place::BYTES];
        older.read_at(at, &mut bytes).map_err(|cause| self.scratch_error(cause))?;
        Ok(Place::from_bytes(bytes))
    }

    /// Where scratch files go that have no name.
    pub fn scratch_folder(&self) -> &Path {
        &self.scratch
    }

    /// A file that goes away with the run.
    pub fn unnamed_scratch(&self) -> io::Result<Scratch> {
        Scratch::unnamed(&self.scratch)
    }

    /// Begins a round: what is known of entries goes to scratch space.
    pub fn next_round(&mut self) -> Result<(), RunError> {
        let mut append = || -> io::Result<()> {
            let older = match &mut self.older {
                Some(older) => older,
                none => none.insert(Scratch::unnamed(&self.scratch)?),
            };
            std::mem::take(&mut self.places)
                .into_iter()
                .try_for_each(|place| older.append(&place.to_bytes()).map(|_| ()))
        };
        append().map_err(|cause| self.scratch_error(cause))?;
        self.cache.next_round();
        Ok(())
    }

    /// Whether an entry is of an earlier round.
    fn is_older(&self, entry: u32) -> bool {
        let older = self.older.as_ref().map_or(0, Scratch::len);
        u64::from(entry) * (Place::BYTES as u64) < older + u64::from(self.segments.records()) * Place::BYTES as u64
    }

    /// Does each of some tasks, on many threads with a room each. Sets that were read again for it are kept.
    pub fn with_rooms<T: Send>(
        &mut self,
        crew: &Crew,
        tasks: impl ExactSizeIterator<Item = T> + Send,
        work: impl Fn(&Self, &mut Room, T) -> Result<(), RunError> + Sync,
    ) -> Result<(), RunError> {
        let mut rooms = std::mem::take(&mut self.rooms);
        let threads = crew.threads().min(tasks.len()).max(1);
        rooms.resize_with(threads.max(rooms.len()), Room::default);
        let done = crew.share_out(&mut rooms[..threads], tasks, |room, task| work(self, room, task));
        for room in &mut rooms {
            let (sets, texts) = room.reread.take();
            self.keep(&sets, texts);
        }
        self.rooms = rooms;
        done
    }

    /// Reads the sets of earlier rounds that records of these keys will be compared with, in the order in which they lie.
    pub fn fetch<'k>(
        &mut self,
        index: &ShingleIndex,
        (records, crew): (usize, &Crew),
        keys: impl Fn(usize) -> &'k [u64] + Sync,
    ) -> Result<(), RunError> {
        if self.older.is_none() && self.segments.len() == 0 {
            return Ok(());
        }
        let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); records.div_ceil(AT_ONCE)];
        self.with_rooms(crew, wanted.iter_mut().enumerate(), |texts, room, (part, wanted)| {
            for next in part * AT_ONCE..records.min((part + 1) * AT_ONCE) {
                room.keys.read(keys(next));
                let mut left = MOST_FETCHED;
                index.candidates(&mut room.keys, |entry| {
                    if left > 0 && texts.is_older(entry) {
                        wanted.push(entry);
                        left -= 1;
                    }
                });
            }
            wanted.sort_unstable();
            wanted.dedup();
            Ok(())
        })?;
        let mut entries: Vec<u32> = wanted.into_iter().flatten().collect();
        entries.sort_unstable();
        entries.dedup();
        entries.retain(|&entry| !self.cache.holds(entry));
        self.with_rooms(crew, entries.chunks(AT_ONCE), |texts, room, entries| {
            entries.iter().try_for_each(|&entry| texts.read_older(entry, &mut room.reread))
        })
    }

    /// Reads the set of an entry, which is left in `reread` while there is room.
    fn read_older(&self, entry: u32, reread: &mut Reread) -> Result<(), RunError> {
        if reread.words < MOST_WORDS {
            let set = self.read_set(self.place_of(entry)?, reread)?;
            reread.hold(entry, set);
        }
        Ok(())
    }

    /// How many entries there are.
    pub fn entries(&self) -> u32 {
        let older = self.older.as_ref().map_or(0, Scratch::len);
        self.segments.records() + (older / Place::BYTES as u64) as u32 + self.places.len() as u32
    }

    /// The similarity of a set and an entry, if it is that large.
    pub fn compare(&mut self, entry: u32, set: &[u64], least: Similarity) -> Result<Option<Similarity>, RunError> {
        let mut reread = std::mem::take(&mut self.reread);
        let similarity = self.compare_by(&mut reread, entry, set, least);
        self.reread = reread;
        self.keep_reread();
        similarity
    }

    /// [`Self::compare`] for a record whose set is read where `place` says, if it is not in memory.
    pub fn compare_own(
        &mut self,
        entry: u32,
        (set, place): (&mut OwnSet<'_>, &impl Fn(&mut Self) -> Result<Place, RunError>),
        least: Similarity,
    ) -> Result<Option<Similarity>, RunError> {
        let set = set.get(|| {
            let place = place(self)?;
            self.set(place)
        })?;
        self.compare(entry, set, least)
    }

    /// [`Self::compare`] on any thread. What is read again for it is left in `reread`.
    pub fn compare_by(
        &self,
        reread: &mut Reread,
        entry: u32,
        set: &[u64],
        least: Similarity,
    ) -> Result<Option<Similarity>, RunError> {
        let other = match self.cache.get(entry) {
            Some(held) => held,
            None if reread.sets.contains_key(&entry) => &reread.sets[&entry],
            None => {
                let read = self.read_set(self.place_of(entry)?, reread)?;
                reread.hold(entry, read)
            }
        };
        Ok(self.spec.similarity_at_least(set, other, least))
    }

    fn keep_reread(&mut self) {
        let (sets, texts) = self.reread.take();
        self.keep(&sets, texts);
    }

    /// Takes over sets that were read again.
    pub fn keep(&mut self, sets: &[(u32, Vec<u64>)], texts: u64) {
        self.read_again += texts;
        if !sets.is_empty() {
            self.cache.insert(sets);
        }
    }

    /// The set of the record at a place.
    pub fn set(&mut self, place: Place) -> Result<Vec<u64>, RunError> {
        let mut reread = std::mem::take(&mut self.reread);
        let set = self.read_set(place, &mut reread);
        self.reread = reread;
        self.keep_reread();
        set
    }

    pub fn read_set(&self, place: Place, reread: &mut Reread) -> Result<Vec<u64>, RunError> {
        reread.texts += 1;
        if let Some(stored) = place.stored() {
            return Ok(self.segments.set(stored)?);
        }
        self.read_text(place, reread, |text| {
            let (mut shingles, mut set) = (Vec::new(), Vec::new());
            shingle(&self.shingler, text, &mut shingles);
            append_sorted(&shingles, &mut set);
            set
        })
    }

    /// The id of the record at a place.
    pub fn id(&mut self, place: Place) -> Result<String, RunError> {
        if let Some(stored) = place.stored() {
            return Ok(self.segments.id(stored)?);
        }
        let mut reread = std::mem::take(&mut self.reread);
        let record = self.record(place, &mut reread.files);
        let id = record.map(|batch| extract(&batch, &self.fields, &mut reread.arena).id(0).into_owned());
        self.reread = reread;
        id
    }

    /// Reads a record of the inputs once more, on any thread: its id, its file and line, and its text.
    pub fn read_again<T>(
        &self,
        place: Place,
        reread: &mut Reread,
        take: impl FnOnce(&str, &str, &str) -> T,
    ) -> Result<T, RunError> {
        let batch = self.record(place, &mut reread.files)?;
        let extracted = extract(&batch, &self.fields, &mut reread.arena);
        let stands = format!("{}:{}", batch.name(), place.line);
        match extracted.item(0) {
            Ok(Item::Text(text)) => Ok(take(&extracted.id(0), &stands, text)),
            Ok(_) => Err(again(&batch, place, "it holds no text")),
            Err(error) => Err(again(&batch, place, error.fault.clone())),
        }
    }

    /// Reads the text at a place once more. Of a library's records there is none.
    pub fn with_text<T>(&mut self, place: Place, take: impl FnOnce(&str) -> T) -> Result<T, RunError> {
        if place.stored().is_some() {
            return Ok(take(""));
        }
        let mut reread = std::mem::take(&mut self.reread);
        let taken = self.read_text(place, &mut reread, take);
        self.reread = reread;
        taken
    }

    fn read_text<T>(&self, place: Place, reread: &mut Reread, take: impl FnOnce(&str) -> T) -> Result<T, RunError> {
        let batch = self.record(place, &mut reread.files)?;
        match extract(&batch, &self.fields, &mut reread.arena).item(0) {
            Ok(Item::Text(text)) => Ok(take(text)),
            Ok(_) => Err(again(&batch, place, "it holds no text")),
            Err(error) => Err(again(&batch, place, error.fault.clone())),
        }
    }

    fn record(&self, place: Place, files: &mut BTreeMap<u32, File>) -> Result<Batch, RunError> {
        let template = self.template(place.source as usize)?;
        let mut bytes = vec![0; place.bytes as usize];
        let source = &self.sources[place.source as usize];
        if !source.is_read_in_place() {
            let Some(copies) = &self.copies else {
                return Err(again(template, place, "nothing was copied"));
            };
            copies.read_at(place.offset, &mut bytes).map_err(|cause| self.scratch_error(cause))?;
            return Ok(template.with_record(bytes, place.line));
        }
        if files.len() >= MOST_FILES && !files.contains_key(&place.source) {
            files.clear();
        }
        let opened = match files.entry(place.source) {
            std::collections::btree_map::Entry::Occupied(open) => Ok(open.into_mut()),
            std::collections::btree_map::Entry::Vacant(closed) => {
                source.path().map_or(Err(io::ErrorKind::NotFound.into()), File::open).map(|file| closed.insert(file))
            }
        };
        match opened.and_then(|file| read_exact_at(file, place.offset, &mut bytes)) {
            Ok(()) => Ok(template.with_record(bytes, place.line)),
            Err(cause) => Err(again(template, place, cause)),
        }
    }

    /// A batch without records of a source; a resumed run has not read those before it, and looks at their start.
    fn template(&self, source: usize) -> Result<&Batch, RunError> {
        if let Some(template) = self.templates[source].get() {
            return Ok(template);
        }
        let mut options = ReadOptions::new(self.fields.clone());
        options.batch_bytes = 1;
        let mut batch = Batch::new();
        Reader::new(Arc::from([self.sources[source].clone()]), options).read_batch(&mut batch)?;
        Ok(self.templates[source].get_or_init(|| batch.with_record(Vec::new(), 1)))
    }
}

fn again(batch: &Batch, place: Place, cause: impl Into<Box<dyn Error + Send + Sync>>) -> RunError {
    RunError::ReadAgain { name: Arc::clone(batch.name()), line: place.line, cause: cause.into() }
}
