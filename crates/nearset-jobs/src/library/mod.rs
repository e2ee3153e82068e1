//! What earlier runs kept, for later ones to compare with and to name.
//!
//! A library is a folder of immutable segments under a manifest:
//!
//! ```text
//! manifest.json     what near means here, the model, the segments in their order; behind it the checksum of that line
//! N-RUN.model       the common shingles that no record is looked up by, 8 bytes each
//! N-RUN.index       what the records of a segment are looked up by, see `index`
//! N-RUN.sets        for each record: its set, 8 bytes per shingle, its id, a checksum of both
//! N-RUN.entries     for each record: the size of its set, the length of its id, its keys; what an index is made from, while a run goes on
//! ```
//!
//! Claim: whatever moment the machine stops at, the folder is the old library or the new one, and what it holds is in the output of a run
//! that has ended. Segments have names that only the run has which wrote them; the manifest appears by rename after all that it refers
//! to is on disk, and after the outputs; a new library is a folder under another name until then.
//! Invariant: the sets of a segment are those of its records one after the other, in one file or several, so that segments are merged by
//! appending small files and listing large ones. Eight of one tier become one of the next, so a library of n runs has fewer than
//! 8 log(n) segments, and each record was listed anew log(n) times.
//! In version 1 a segment has the file of entries for good and no index, which is made when it is opened, and written when it is extended.
//! Not here: who is near whom (`join`).

mod entries;
mod index;
mod read;
mod write;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nearset::plan::Request;
use nearset::{JoinSpec, Metric, Seed, Shingling};
use nearset_records::Cure;
use serde::{Deserialize, Deserializer, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::run::of_file;

pub use read::Library;
pub(crate) use read::{OpenLibrary, Segments, StoredSet};
pub use write::merge;
pub(crate) use write::{LibraryLock, LibraryWriter, Pending, Written, commit};

const MANIFEST: &str = "manifest.json";
const LOCK: &str = "lock";

/// The form that libraries are written in, and the one before it.
const VERSION: u32 = 2;
const WITHOUT_INDEX: u32 = 1;

/// Bytes of the checksum behind a set.
const SET_CHECK: usize = 4;

/// Why a library can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum LibraryError {
    #[error("{}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}: the folder {} does not exist: create it first", path.display(), folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("{} is no library: a library is a folder that a run has saved what it kept in", path.display())]
    NotALibrary { path: PathBuf },
    #[error("{}: the library is of version {found}, which this nearset does not know: use a newer one", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("{}: the library is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: made with {what} {theirs}, but this run has {ours}: give the same, or start another library", path.display())]
    Differs { path: PathBuf, what: &'static str, theirs: String, ours: String },
    #[error("{}: the library has changed since the run that is to be resumed", path.display())]
    Changed { path: PathBuf },
    #[error("{} exists", path.display())]
    Exists { path: PathBuf },
    #[error("{}: another run is writing this library: wait for it", path.display())]
    Locked { path: PathBuf },
}

impl LibraryError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        |cause| Self::Io { path: path.to_owned(), cause }
    }

    /// What can be done about it.
    pub fn cure(&self) -> Option<Cure> {
        match self {
            LibraryError::Exists { .. } => Some(Cure::ExtendOrRemove),
            LibraryError::Changed { .. } => Some(Cure::StartAgain),
            _ => None,
        }
    }

    fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}

/// Whether there is a library, or what looks like one, at a path.
pub fn is_library(path: &Path) -> bool {
    path.is_dir()
}

/// By what a run that is resumed knows that a library is the same.
pub(crate) fn state_of(path: &Path) -> String {
    of_file(&path.join(MANIFEST))
}

/// Everything about a library but its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    /// Numbers as text, so that they are read as they were written.
    near: String,
    max_false_negative: String,
    shingling: String,
    seed: String,
    /// Whether removed records are in it too, for what is near only them.
    chain: bool,
    model: Noted,
    segments: Vec<Segment>,
    /// The number of the next file.
    next: u64,
    /// The checksum that stands behind it.
    #[serde(skip)]
    check: String,
}

/// Records of a library, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    /// How often its records were merged.
    tier: u32,
    records: u64,
    /// What records are looked up by: in version 1 the entries that an index is made from.
    #[serde(alias = "entries")]
    index: Noted,
    /// The files of sets, which follow each other.
    #[serde(deserialize_with = "one_or_several")]
    sets: Vec<Noted>,
}

impl Segment {
    fn sets_bytes(&self) -> u64 {
        self.sets.iter().map(|file| file.bytes).sum()
    }
}

/// Version 1 has one file of sets in the place of a list.
fn one_or_several<'d, D: Deserializer<'d>>(files: D) -> Result<Vec<Noted>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Files {
        One(Noted),
        Several(Vec<Noted>),
    }
    Ok(match Files::deserialize(files)? {
        Files::One(file) => vec![file],
        Files::Several(files) => files,
    })
}

/// A file, and by what it is known to be whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    name: String,
    bytes: u64,
    xxh3: String,
}

impl Noted {
    fn of_bytes(name: String, bytes: &[u8]) -> Self {
        Self { name, bytes: bytes.len() as u64, xxh3: hex(xxh3_64(bytes)) }
    }

    /// Reads a whole file to note it.
    fn of_file(folder: &Path, name: String) -> io::Result<Self> {
        let (mut file, mut hash) = (File::open(folder.join(&name))?, Xxh3::new());
        let (mut buffer, mut bytes) = (vec![0; 1 << 18], 0);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self { name, bytes, xxh3: hex(hash.digest()) }),
                read => {
                    hash.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
    }

    /// That a file is as long as it was.
    fn check_length(&self, folder: &Path) -> Result<(), LibraryError> {
        let path = folder.join(&self.name);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() == self.bytes => Ok(()),
            Ok(metadata) => Err(LibraryError::damaged(
                folder,
                format!("{} has {} bytes instead of {}", self.name, metadata.len(), self.bytes),
            )),
            Err(cause) => Err(LibraryError::Io { path, cause }),
        }
    }

    /// That a file is byte for byte what it was.
    fn check(&self, folder: &Path) -> Result<(), LibraryError> {
        self.check_length(folder)?;
        let path = folder.join(&self.name);
        let found = Self::of_file(folder, self.name.clone()).map_err(LibraryError::io(&path))?;
        if found == *self { Ok(()) } else { Err(self.changed(folder)) }
    }

    fn changed(&self, folder: &Path) -> LibraryError {
        LibraryError::damaged(folder, format!("the checksum of {} is wrong", self.name))
    }
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

impl Manifest {
    fn load(folder: &Path) -> Result<Self, LibraryError> {
        let path = folder.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(LibraryError::NotALibrary { path: folder.to_owned() });
            }
            Err(cause) if cause.kind() == io::ErrorKind::InvalidData => {
                return Err(LibraryError::damaged(folder, format!("{MANIFEST} is no text")));
            }
            Err(cause) => return Err(LibraryError::Io { path, cause }),
        };
        let damaged = |what: &str| LibraryError::damaged(folder, format!("{MANIFEST} {what}"));
        let (line, check) = text.split_once('\n').ok_or_else(|| damaged("is cut off"))?;
        if check.strip_suffix('\n') != Some(&hex(xxh3_64(line.as_bytes()))) {
            return Err(damaged("does not fit its checksum"));
        }
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(line).map_err(|cause| damaged(&cause.to_string()))?;
        if ![WITHOUT_INDEX, VERSION].contains(&version) {
            return Err(LibraryError::Version { path: folder.to_owned(), found: version });
        }
        let mut manifest: Self = serde_json::from_str(line).map_err(|cause| damaged(&cause.to_string()))?;
        manifest.check = hex(xxh3_64(line.as_bytes()));
        // Names lead nowhere else, so that nothing else is read or removed.
        if let Some(file) = manifest.files().find(|file| !is_own_file(&file.name)) {
            return Err(damaged(&format!("names {:?}, which is no file of a library", file.name)));
        }
        let records = manifest.segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(segment.records));
        let bytes = manifest.files().try_fold(0u64, |sum, file| sum.checked_add(file.bytes));
        // What says where a set begins, or how long it is, takes more bytes than this.
        let has_too_many = |segment: &Segment| segment.records > segment.index.bytes / 12;
        // Runs count on from both, and no number of runs leads there.
        let is_far = manifest.next > u64::MAX / 2 || manifest.segments.iter().any(|one| one.tier > u32::MAX / 2);
        if records.zip(bytes).is_none() || is_far || manifest.segments.iter().any(has_too_many) {
            return Err(damaged("states numbers that are too large"));
        }
        Ok(manifest)
    }

    /// Whether a run has written something in it.
    fn has_run(&self, run: &str) -> bool {
        self.files().any(|file| file.name.contains(run))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let line = serde_json::to_string(self).expect("strings and numbers can be written");
        let check = hex(xxh3_64(line.as_bytes()));
        format!("{line}\n{check}\n").into_bytes()
    }

    fn files(&self) -> impl Iterator<Item = &Noted> {
        let segments = self.segments.iter().flat_map(|segment| [&segment.index].into_iter().chain(&segment.sets));
        [&self.model].into_iter().chain(segments)
    }

    fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.records).sum()
    }

    /// By what its keys are chosen; `None` if it makes no sense.
    fn spec(&self) -> Option<JoinSpec> {
        let metric = Metric::Jaccard { shingling: self.shingling.parse().ok()? };
        let mut wanted = Request::new(metric, self.near.parse().ok()?).seed(self.seed.parse().ok()?);
        wanted.max_false_negative = Some(self.max_false_negative.parse().ok()?);
        wanted.plan_join().ok()
    }

    /// That sets of this run and of the library are of the same shingles.
    fn expect_same_shingles(&self, folder: &Path, shingling: Shingling, seed: Seed) -> Result<(), LibraryError> {
        let differs = |what, theirs: &str, ours: String| {
            if theirs == ours {
                return Ok(());
            }
            Err(LibraryError::Differs { path: folder.to_owned(), what, theirs: theirs.to_owned(), ours })
        };
        differs("shingles", &self.shingling, shingling.to_string())?;
        differs("the seed", &self.seed, seed.to_string())
    }

    /// That removed records are in it only where they count. `is_extended` says that the run's own go there.
    fn expect_same_chains(&self, folder: &Path, chain: bool, is_extended: bool) -> Result<(), LibraryError> {
        if self.chain == chain || chain && !is_extended {
            return Ok(());
        }
        let [theirs, ours] =
            [self.chain, chain].map(|chain| if chain { "followed" } else { "not followed" }.to_owned());
        Err(LibraryError::Differs { path: folder.to_owned(), what: "chains", theirs, ours })
    }

    /// That keys are chosen as in this run.
    fn expect_same_promise(&self, folder: &Path, spec: &JoinSpec) -> Result<(), LibraryError> {
        let ours = [spec.near.value(), spec.max_false_negative].map(|number| number.to_string());
        let theirs = [&self.near, &self.max_false_negative];
        for ((what, theirs), ours) in ["near", "at most missed"].into_iter().zip(theirs).zip(ours) {
            if *theirs != ours {
                let (path, theirs) = (folder.to_owned(), theirs.clone());
                return Err(LibraryError::Differs { path, what, theirs, ours });
            }
        }
        Ok(())
    }
}

/// Whether a file is one that libraries are made of, the manifest aside.
fn is_own_file(name: &str) -> bool {
    let kinds = [".index", ".entries", ".sets", ".model"];
    let Some(stem) = kinds.iter().find_map(|kind| name.strip_suffix(kind)) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    stem.split_once('-').is_some_and(|(number, run)| is_number(number) && is_run(run))
}

/// Whether a text is the name of a run.
fn is_run(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The checksum behind a set and its id.
fn set_check(bytes: &[u8]) -> [u8; SET_CHECK] {
    (xxh3_64(bytes) as u32).to_le_bytes()
}
