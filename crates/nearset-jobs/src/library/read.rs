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
        let (library, ()) = Self::open_with(path, Self::check_lengths)?;
        Ok(library)
    }

    /// Opens a library with what `read` reads of its files: both anew, if another run has extended it meanwhile and removed what it merged.
    fn open_with<T>(
        path: &Path,
        mut read: impl FnMut(&Self) -> Result<T, LibraryError>,
    ) -> Result<(Self, T), LibraryError> {
        let mut manifest = Manifest::load(path)?;
        loop {
            let check = manifest.check.clone();
            let opened = Self::with_model(path, manifest).and_then(|library| Ok((read(&library)?, library)));
            let missing = match opened {
                Ok((read, library)) => return Ok((library, read)),
                Err(LibraryError::Io { path, cause }) if cause.kind() == io::ErrorKind::NotFound => path,
                Err(error) => return Err(error),
            };
            manifest = Manifest::load(path)?;
            if manifest.check == check {
                let name = missing.file_name().unwrap_or_default().to_string_lossy();
                return Err(LibraryError::damaged(path, format!("{name} is missing")));
            }
        }
    }

    /// Opens a library, and says how many of its records may be found by their common part, and are held to be found so.
    pub(crate) fn open_with_common(path: &Path) -> Result<(Self, u64), LibraryError> {
        Self::open_with(path, |library| {
            // Where the index is not in a file, all records are listed in memory.
            let segments = library.manifest.segments.iter().filter(|_| library.manifest.version != WITHOUT_INDEX);
            segments.map(|segment| Ok(library.index(segment)?.most_common())).sum()
        })
    }

    fn with_model(path: &Path, manifest: Manifest) -> Result<Self, LibraryError> {
        let model_path = path.join(&manifest.model.name);
        let bytes = std::fs::read(&model_path).map_err(LibraryError::io(&model_path))?;
        if Noted::of_bytes(manifest.model.name.clone(), &bytes) != manifest.model {
            return Err(manifest.model.changed(path));
        }
        let model = bytes.as_chunks().0.iter().map(|&hash| u64::from_le_bytes(hash)).collect();
        Ok(Self { path: path.to_owned(), manifest, model })
    }

    fn check_lengths(&self) -> Result<(), LibraryError> {
        self.manifest.files().try_for_each(|file| file.check_length(&self.path))
    }

    /// Reads all of it, as it is now, and compares every checksum.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn check(&self) -> Result<(), LibraryError> {
        let (_, ()) = Self::open_with(&self.path, |library| {
            library.manifest.segments.iter().try_for_each(|segment| {
                segment.index.check(&library.path)?;
                library.index(segment)?.check()?;
                segment.sets.iter().try_for_each(|file| file.check(&library.path))
            })
        })?;
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

/// A library whose files are open.
pub(crate) struct OpenLibrary {
    pub library: Library,
    segments: Vec<OpenSegment>,
}

impl OpenLibrary {
    /// Opens libraries with their files, which stay readable while other runs extend the libraries, and remove files that they have merged.
    pub fn open_all(paths: &[PathBuf]) -> Result<Vec<Self>, LibraryError> {
        let mut all = Vec::with_capacity(paths.len());
        for path in paths {
            let (library, segments) = Library::open_with(path, |library| {
                library.check_lengths()?;
                library.manifest.segments.iter().map(|segment| OpenSegment::new(library, segment)).collect()
            })?;
            all.push(Self { library, segments });
            let files = all.iter_mut().flat_map(|one| &mut one.segments).flat_map(|segment| &mut segment.sets);
            let mut open: Vec<&mut SetsFile> = files.filter(|sets| sets.file.is_some()).collect();
            open.sort_by_key(|sets| sets.end - sets.start);
            // Large files stay where they are when segments are merged.
            open.into_iter().skip(MOST_OPEN).for_each(|sets| sets.file = None);
        }
        Ok(all)
    }
}

/// The segments of several libraries, read where they lie.
#[derive(Default)]
pub(crate) struct Segments {
    all: Vec<OpenSegment>,
}

struct OpenSegment {
    folder: PathBuf,
    /// The number of its first record, counted over all segments.
    first: u32,
    index: Index,
    sets: Vec<SetsFile>,
}

/// A file of sets, and where it lies among all those of its segment.
struct SetsFile {
    name: String,
    start: u64,
    end: u64,
    file: Option<File>,
}

impl SetsFile {
    fn open(&self, folder: &Path) -> Result<File, LibraryError> {
        let path = folder.join(&self.name);
        File::open(&path).map_err(LibraryError::io(&path))
    }
}

impl OpenSegment {
    /// Opens the index of a segment, and as many files of its sets as may be open, the smallest first.
    fn new(library: &Library, segment: &Segment) -> Result<Self, LibraryError> {
        let (folder, index) = (library.path.clone(), library.index(segment)?);
        let mut end = 0;
        let sets = segment.sets.iter().map(|Noted { name, bytes, .. }| {
            let start = end;
            end += bytes;
            SetsFile { name: name.clone(), start, end, file: None }
        });
        let mut sets: Vec<SetsFile> = sets.collect();
        let mut smallest: Vec<&mut SetsFile> = sets.iter_mut().collect();
        smallest.sort_by_key(|sets| sets.end - sets.start);
        for sets in smallest.into_iter().take(MOST_OPEN) {
            sets.file = Some(sets.open(&folder)?);
        }
        Ok(Self { folder, first: 0, index, sets })
    }
}

impl Segments {
    /// Adds those of a library. Returns the number of the first.
    pub fn add(&mut self, opened: OpenLibrary) -> Result<usize, LibraryError> {
        let added = self.all.len();
        let OpenLibrary { library, segments } = opened;
        if u32::try_from(library.records()).ok().and_then(|more| self.records().checked_add(more)).is_none() {
            return Err(LibraryError::io(&library.path)(io::Error::other("more than 2^32 records")));
        }
        for segment in segments {
            let first = self.records();
            self.all.push(OpenSegment { first, ..segment });
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
        let (folder, sets) = self.file_of(place)?;
        String::from_utf8(id).map_err(|_| LibraryError::damaged(folder, format!("{}: an id is no text", sets.name)))
    }

    /// The file that a set lies in, and its folder.
    fn file_of(&self, place: StoredSet) -> Result<(&Path, &SetsFile), LibraryError> {
        let OpenSegment { folder, index, sets, .. } = &self.all[place.segment as usize];
        let at = sets.partition_point(|file| file.end <= place.offset);
        match sets.get(at).filter(|file| place.end().is_some_and(|own| own <= file.end)) {
            Some(sets) => Ok((folder, sets)),
            None => Err(LibraryError::damaged(folder, format!("{}: it does not fit its sets", index.name()))),
        }
    }

    fn read(&self, place: StoredSet) -> Result<Vec<u8>, LibraryError> {
        // Nothing is allocated that the file does not have.
        let (folder, sets) = self.file_of(place)?;
        let mut bytes = vec![0; place.bytes() as usize + SET_CHECK];
        let mut read = |file: &File| {
            read_exact_at(file, place.offset - sets.start, &mut bytes)
                .map_err(LibraryError::io(&folder.join(&sets.name)))
        };
        match &sets.file {
            Some(file) => read(file)?,
            None => read(&sets.open(folder)?)?,
        }
        let check = bytes.split_off(place.bytes() as usize);
        if check != set_check(&bytes) {
            return Err(LibraryError::damaged(folder, format!("{}: the checksum of a set is wrong", sets.name)));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::write::tests::{expect_records, extend};
    use super::*;

    /// The eighth run merges the segments of all, and removes their files.
    #[test]
    fn a_library_is_read_while_another_run_extends_it() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one.library", "other.library"].map(|name| folder.path().join(name));
        let mut expected = extend(&paths[0], 0, 5);
        expected.extend((1..8).flat_map(|run| extend(&paths[1], run, 3)));
        let opened = OpenLibrary::open_all(&paths).unwrap();
        assert_eq!(opened[1].library.segments(), 7);
        extend(&paths[1], 8, 3);
        assert_eq!(Library::open(&paths[1]).unwrap().segments(), 1);
        let mut read = Segments::default();
        for library in opened {
            read.add(library).unwrap();
        }
        expect_records(&read, &expected);
    }

    #[test]
    fn files_that_go_away_are_damage_only_if_the_manifest_still_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        (0..7).for_each(|run| drop(extend(&path, run, 3)));
        let mut tries = 0;
        let (library, ()) = Library::open_with(&path, |library| {
            tries += 1;
            if tries == 1 {
                extend(&path, 7, 3);
            }
            library.check_lengths()
        })
        .unwrap();
        assert_eq!((tries, library.records(), library.segments()), (2, 24, 1));
        let name = library.manifest.segments[0].sets[0].name.clone();
        std::fs::remove_file(path.join(&name)).unwrap();
        let told = Library::open(&path).unwrap_err().to_string();
        assert!(told.ends_with(&format!("the library is damaged: {name} is missing")), "{told}");
    }

    #[test]
    fn an_id_that_is_no_text_is_damage_of_the_file_that_it_lies_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        let (set, id) = extend(&path, 0, 1).remove(0);
        let opened = OpenLibrary::open_all(std::slice::from_ref(&path)).unwrap().remove(0);
        let name = opened.library.manifest.segments[0].sets[0].name.clone();
        let mut read = Segments::default();
        read.add(opened).unwrap();
        let mut bytes = std::fs::read(path.join(&name)).unwrap();
        let end = 8 * set.len() + id.len();
        bytes[end - 1] = 0xff;
        let check = set_check(&bytes[..end]);
        bytes[end..].copy_from_slice(&check);
        std::fs::write(path.join(&name), bytes).unwrap();
        let told = read.id(read.place(0).unwrap()).unwrap_err().to_string();
        assert!(told.ends_with(&format!("{name}: an id is no text")), "{told}");
    }

    #[test]
    fn of_many_files_the_smallest_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        extend(&path, 0, 3);
        // One more file than may be open: the largest one is opened when it is read.
        let expected = extend(&path, 1, 3 * MOST_OPEN as u64);
        let mut opened = OpenLibrary::open_all(&vec![path; MOST_OPEN]).unwrap();
        let is_open = |one: &OpenLibrary| [0, 1].map(|segment| one.segments[segment].sets[0].file.is_some());
        assert!(opened.iter().all(|one| is_open(one) == [true, false]));
        let mut read = Segments::default();
        read.add(opened.remove(0)).unwrap();
        let place = read.place(3).unwrap();
        assert_eq!(read.set(place).unwrap(), expected[0].0);
    }
}
