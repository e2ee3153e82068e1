//! Libraries that are there.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use nearset::index::CommonShingles;
use nearset::{JoinSpec, Seed, Shingling};
use nearset_records::read_exact_at;
use xxhash_rust::xxh3::Xxh3;

use super::{ENTRY_HEAD, LibraryError, Manifest, Noted, SET_CHECK, Segment, hex, set_check};

/// What earlier runs kept.
#[derive(Debug, Clone)]
pub struct Library {
    path: PathBuf,
    manifest: Manifest,
    model: CommonShingles,
}

/// A record of a library.
pub(crate) struct StoredEntry<'l> {
    /// As [`ShingleKeys`](nearset::index::ShingleKeys) writes them.
    pub keys: &'l [u64],
    pub set: StoredSet,
}

/// Where a set lies, and its record's id behind it.
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
            self.each_of(segment, 0, &mut |_| Ok(()))?;
            segment.sets.check(&self.path)?;
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

    /// Calls `each` for every record, in order; segments are counted from `first_segment` on.
    pub(crate) fn each_entry<E: From<LibraryError>>(
        &self,
        first_segment: u32,
        mut each: impl FnMut(StoredEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        (first_segment..)
            .zip(&self.manifest.segments)
            .try_for_each(|(number, segment)| self.each_of(segment, number, &mut each))
    }

    fn each_of<E: From<LibraryError>>(
        &self,
        segment: &Segment,
        number: u32,
        each: &mut impl FnMut(StoredEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = self.path.join(&segment.entries.name);
        let damaged = |what: &str| {
            let what = format!("{}: {what}", segment.entries.name);
            E::from(LibraryError::damaged(&self.path, what))
        };
        let failed = |cause| E::from(LibraryError::Io { path: path.clone(), cause });
        let (mut file, mut hash) = (File::open(&path).map_err(failed)?, Xxh3::new());
        let (mut piece, mut keys) = (Vec::new(), Vec::new());
        let (mut unread, mut offset, mut records) = (segment.entries.bytes, 0, 0);
        while unread > 0 || !piece.is_empty() {
            let (held, more) = (piece.len(), unread.min(PIECE));
            piece.resize(held + more as usize, 0);
            file.read_exact(&mut piece[held..]).map_err(failed)?;
            hash.update(&piece[held..]);
            unread -= more;
            let mut left = &piece[..];
            while let Some((size, id_bytes, words, behind)) = split_entry(left) {
                left = behind;
                keys.clear();
                keys.extend(words.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
                let set = StoredSet { segment: number, offset, size, id_bytes };
                offset += set.bytes() + SET_CHECK as u64;
                if offset > segment.sets.bytes {
                    return Err(damaged("it does not fit its sets"));
                }
                records += 1;
                each(StoredEntry { keys: &keys, set })?;
            }
            let read = piece.len() - left.len();
            if more == 0 && read == 0 {
                return Err(damaged("it is cut off"));
            }
            piece.drain(..read);
        }
        if hex(hash.digest()) != segment.entries.xxh3 {
            return Err(E::from(segment.entries.changed(&self.path)));
        }
        if (records, offset) != (segment.records, segment.sets.bytes) {
            return Err(damaged("it does not fit its sets"));
        }
        Ok(())
    }
}

/// Bytes of entries that are read at once.
const PIECE: u64 = 1 << 20;

/// The first entry of some, if all of it is there: the size of its set, the length of its id, its keys, and what comes behind.
fn split_entry(bytes: &[u8]) -> Option<(u32, u32, &[u8], &[u8])> {
    let (head, behind) = bytes.split_first_chunk::<ENTRY_HEAD>()?;
    let [size, id_bytes, key_words] =
        [0, 4, 8].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let (words, behind) = behind.split_at_checked(8 * key_words as usize)?;
    Some((size, id_bytes, words, behind))
}

impl StoredSet {
    /// Bytes of the set and the id.
    fn bytes(self) -> u64 {
        8 * u64::from(self.size) + u64::from(self.id_bytes)
    }
}

/// The sets of several libraries, read where they lie.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    files: Vec<(PathBuf, String, File)>,
}

impl Segments {
    /// Adds those of a library. Returns the number of the first.
    pub fn add(&mut self, library: &Library) -> Result<u32, LibraryError> {
        let first = self.files.len() as u32;
        for segment in &library.manifest.segments {
            let path = library.path.join(&segment.sets.name);
            let file = File::open(&path).map_err(LibraryError::io(&path))?;
            self.files.push((library.path.clone(), segment.sets.name.clone(), file));
        }
        Ok(first)
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
        String::from_utf8(id).map_err(|_| self.damaged(place, "an id is no text"))
    }

    fn damaged(&self, place: StoredSet, what: &str) -> LibraryError {
        let (folder, name, _) = &self.files[place.segment as usize];
        LibraryError::damaged(folder, format!("{name}: {what}"))
    }

    fn read(&self, place: StoredSet) -> Result<Vec<u8>, LibraryError> {
        let (folder, name, file) = &self.files[place.segment as usize];
        // The file's length fits what entries say, which was checked when they were read.
        let mut bytes = vec![0; place.bytes() as usize + SET_CHECK];
        read_exact_at(file, place.offset, &mut bytes)
            .map_err(|cause| LibraryError::Io { path: folder.join(&*name), cause })?;
        let check = bytes.split_off(place.bytes() as usize);
        if check != set_check(&bytes) {
            return Err(self.damaged(place, "the checksum of a set is wrong"));
        }
        Ok(bytes)
    }
}
