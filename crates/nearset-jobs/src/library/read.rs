//! Libraries that are there.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nearset::index::{CommonShingles, ShingleKeys};
use nearset::{JoinSpec, Seed, Shingling};
use nearset_records::{Scratch, read_exact_at};

use super::entries::{self, Entries};
use super::index::{self, Index};
use super::{LibraryError, Manifest, Noted, SET_CHECK, Segment, WITHOUT_INDEX, set_check};

/// What earlier runs kept.
#[derive(Debug, Clone)]
pub struct Library {
    path: PathBuf,
    manifest: Manifest,
    model: CommonShingles,
}

/// Where a set lies among those of its segment, and its record's id behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredSet {
    /// The segment, counted over all libraries of a run.
    pub segment: u32,
    pub offset: u64,
    /// Shingles.
    pub size: u32,
    pub id_bytes: u32,
}

impl Library {
    /// Opens a library, and checks that all of its files are there and as long as they were.
    ///
    /// # Errors
    /// If there is none, it is damaged, or of a version that is not known.
    pub fn open(path: &Path) -> Result<Self, LibraryError> {
        let manifest = Manifest::load(path)?;
        manifest.files().try_for_each(|file| file.check_length(path))?;
        let model_path = path.join(&manifest.model.name);
        let bytes = std::fs::read(&model_path).map_err(LibraryError::io(&model_path))?;
        if Noted::of_bytes(manifest.model.name.clone(), &bytes) != manifest.model {
            return Err(manifest.model.changed(path));
        }
        let model = bytes.as_chunks().0.iter().map(|&hash| u64::from_le_bytes(hash)).collect();
        Ok(Self { path: path.to_owned(), manifest, model })
    }

    /// Reads all of it, and compares every checksum.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn check(&self) -> Result<(), LibraryError> {
        for segment in &self.manifest.segments {
            segment.index.check(&self.path)?;
            self.index(segment)?.check()?;
            segment.sets.iter().try_for_each(|file| file.check(&self.path))?;
        }
        Ok(())
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records it holds.
    pub fn records(&self) -> u64 {
        self.manifest.records()
    }

    /// How many segments they are in.
    pub fn segments(&self) -> usize {
        self.manifest.segments.len()
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.manifest.files().map(|file| file.bytes).sum()
    }

    /// The similarity from which on its records are near, as it was given.
    pub fn near(&self) -> &str {
        &self.manifest.near
    }

    /// How texts were cut, as it was given.
    pub fn shingling(&self) -> &str {
        &self.manifest.shingling
    }

    /// From which the hashes of shingles were drawn, as it was given.
    pub fn seed(&self) -> &str {
        &self.manifest.seed
    }

    /// How many shingles are so common that no record is looked up by them.
    pub fn common_shingles(&self) -> usize {
        self.model.as_slice().len()
    }

    pub(crate) fn damaged(&self, what: &str) -> LibraryError {
        LibraryError::damaged(&self.path, what)
    }

    pub(crate) fn model(&self) -> &CommonShingles {
        &self.model
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// That its sets are of the shingles of a run.
    pub(crate) fn expect_same_shingles(&self, shingling: Shingling, seed: Seed) -> Result<(), LibraryError> {
        self.manifest.expect_same_shingles(&self.path, shingling, seed)
    }

    /// That removed records are in it only where they count.
    pub(crate) fn expect_same_chains(&self, chain: bool) -> Result<(), LibraryError> {
        self.manifest.expect_same_chains(&self.path, chain, false)
    }

    /// Whether the keys of its records are those that a run would choose.
    pub(crate) fn has_keys_of(&self, spec: &JoinSpec, model: &CommonShingles) -> bool {
        self.manifest.expect_same_promise(&self.path, spec).is_ok() && self.model.as_slice() == model.as_slice()
    }

    /// Whether a run that chooses keys so looks its records up where they lie, and holds no list of them.
    pub(crate) fn is_read_in_place(&self, spec: &JoinSpec, model: &CommonShingles) -> bool {
        self.manifest.version != WITHOUT_INDEX && self.has_keys_of(spec, model)
    }

    /// Opens what the records of a segment are looked up by.
    fn index(&self, segment: &Segment) -> Result<Index, LibraryError> {
        let index = if self.manifest.version == WITHOUT_INDEX {
            let mut held = Vec::new();
            let path = self.path.join(&segment.index.name);
            write_index(&self.path, &segment.index, &path, &mut held)?;
            Index::held(&self.path, &segment.index.name, held)?
        } else {
            Index::open(&self.path, &segment.index)?
        };
        if (index.records().into(), index.sets_end()?) != (segment.records, segment.sets_bytes()) {
            return Err(self.damaged(&format!("{}: it does not fit its sets", segment.index.name)));
        }
        Ok(index)
    }
}

/// Writes the index of a segment that has entries instead to `out`, which is at `path`.
pub(super) fn write_index(
    folder: &Path,
    noted: &Noted,
    path: &Path,
    out: &mut dyn Write,
) -> Result<Noted, LibraryError> {
    let Noted { name, bytes, xxh3 } = noted;
    let file = File::open(folder.join(name)).map_err(LibraryError::io(&folder.join(name)))?;
    let entries = Entries { folder, name, bytes: *bytes, xxh3: Some(xxh3) };
    index::write(&mut |each| entries.each(|at, bytes| read_exact_at(&file, at, bytes), each), path, out)
}

/// Files of sets that are open at once; further ones are opened when they are read.
const MOST_OPEN: usize = 128;

/// The segments of several libraries, read where they lie.
#[derive(Default)]
pub(crate) struct Segments {
    all: Vec<OpenSegment>,
    /// Files of sets that are open.
    open: usize,
}

struct OpenSegment {
    folder: PathBuf,
    /// The number of its first record, counted over all segments.
    first: u32,
    index: Index,
    /// The files of sets, and where each ends among all of them.
    sets: Vec<(String, u64, Option<File>)>,
}

impl Segments {
    /// Adds those of a library. Returns the number of the first.
    pub fn add(&mut self, library: &Library) -> Result<usize, LibraryError> {
        let added = self.all.len();
        if u32::try_from(library.records()).ok().and_then(|more| self.records().checked_add(more)).is_none() {
            return Err(LibraryError::io(&library.path)(io::Error::other("more than 2^32 records")));
        }
        for segment in &library.manifest.segments {
            let (mut sets, mut end) = (Vec::new(), 0);
            for Noted { name, bytes, .. } in &segment.sets {
                end += bytes;
                sets.push((name.clone(), end, None));
            }
            let (folder, first, index) = (library.path.clone(), self.records(), library.index(segment)?);
            self.all.push(OpenSegment { folder, first, index, sets });
        }
        // Open files stay readable when another run has merged them, which it does with the last ones.
        let newest_first = self.all[added..].iter_mut().rev().flat_map(|OpenSegment { folder, sets, .. }| {
            sets.iter_mut().rev().map(|(name, _, file)| (folder.join(name), file))
        });
        for (path, file) in newest_first.take(MOST_OPEN.saturating_sub(self.open)) {
            *file = Some(File::open(&path).map_err(LibraryError::io(&path))?);
            self.open += 1;
        }
        Ok(added)
    }

    /// Lists the records of a segment anew, by other keys. Until then, what is needed for it lies in `scratch`.
    pub fn choose_anew(
        &mut self,
        segment: usize,
        (model, spec): (&CommonShingles, &JoinSpec),
        scratch: &mut Scratch,
    ) -> Result<(), LibraryError> {
        let OpenSegment { folder, first, index, .. } = &self.all[segment];
        let path = folder.join(index.name());
        let (mut keys, mut words, mut line, begin) = (ShingleKeys::default(), Vec::new(), Vec::new(), scratch.len());
        for entry in *first..first + index.records() {
            let place = self.place(entry)?;
            keys.choose(&self.set(place)?, model, spec);
            words.clear();
            keys.write(&mut words);
            let written = entries::write(place.size as usize, place.id_bytes as usize, &words, &mut line);
            debug_assert!(written, "keys are a part of the set");
            scratch.append(&line).map_err(LibraryError::io(&path))?;
        }
        let entries = Entries { folder, name: index.name(), bytes: scratch.len() - begin, xxh3: None };
        let mut held = Vec::new();
        let read = |at: u64, bytes: &mut [u8]| scratch.read_at(begin + at, bytes);
        index::write(&mut |each| entries.each(read, each), &path, &mut held)?;
        let index = Index::held(folder, index.name(), held)?;
        self.all[segment].index = index;
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// How many records they hold.
    pub fn records(&self) -> u32 {
        self.all.last().map_or(0, |last| last.first + last.index.records())
    }

    /// Memory of what is not in files.
    pub fn bytes(&self) -> u64 {
        self.all.iter().map(|segment| segment.index.held_bytes()).sum()
    }

    /// The number of a segment's first record, and what its records are looked up by.
    pub fn index(&self, segment: usize) -> (u32, &Index) {
        (self.all[segment].first, &self.all[segment].index)
    }

    /// The records that are listed under these codes, the oldest of each and at most so many: the code, the record's number and its size.
    pub fn met(&self, codes: &[u64], most: usize) -> Result<Vec<(u64, u32, u32)>, LibraryError> {
        let mut met = Vec::new();
        for &code in codes {
            let end = met.len().saturating_add(most);
            for OpenSegment { first, index, .. } in &self.all {
                index.meet(code, (*first, end - met.len()), &mut met)?;
            }
        }
        Ok(met)
    }

    /// Where a record lies.
    pub fn place(&self, record: u32) -> Result<StoredSet, LibraryError> {
        let segment = self.all.partition_point(|segment| segment.first <= record) - 1;
        let OpenSegment { first, index, .. } = &self.all[segment];
        index.place(record - first, segment as u32)
    }

    /// Reads a set.
    pub fn set(&self, place: StoredSet) -> Result<Vec<u64>, LibraryError> {
        let bytes = self.read(place)?;
        let (set, _) = bytes.split_at(8 * place.size as usize);
        Ok(set.as_chunks().0.iter().map(|&hash| u64::from_le_bytes(hash)).collect())
    }

    /// Reads the id of a record.
    pub fn id(&self, place: StoredSet) -> Result<String, LibraryError> {
        let mut bytes = self.read(place)?;
        let id = bytes.split_off(8 * place.size as usize);
        let OpenSegment { folder, index, .. } = &self.all[place.segment as usize];
        let damaged = |_| LibraryError::damaged(folder, format!("{}: an id is no text", index.name()));
        String::from_utf8(id).map_err(damaged)
    }

    fn read(&self, place: StoredSet) -> Result<Vec<u8>, LibraryError> {
        let OpenSegment { folder, index, sets, .. } = &self.all[place.segment as usize];
        let at = sets.partition_point(|(_, end, _)| *end <= place.offset);
        // Nothing is allocated that the file does not have.
        let Some((name, _, file)) = sets.get(at).filter(|(_, end, _)| place.end().is_some_and(|own| own <= *end))
        else {
            return Err(LibraryError::damaged(folder, format!("{}: it does not fit its sets", index.name())));
        };
        let start = if at == 0 { 0 } else { sets[at - 1].1 };
        let mut bytes = vec![0; place.bytes() as usize + SET_CHECK];
        let mut read = |file: &File| read_exact_at(file, place.offset - start, &mut bytes);
        let path = folder.join(name);
        match file {
            Some(file) => read(file),
            None => File::open(&path).and_then(|file| read(&file)),
        }
        .map_err(LibraryError::io(&path))?;
        let check = bytes.split_off(place.bytes() as usize);
        if check != set_check(&bytes) {
            return Err(LibraryError::damaged(folder, format!("{name}: the checksum of a set is wrong")));
        }
        Ok(bytes)
    }
}
