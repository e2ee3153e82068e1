//! Libraries that are made or extended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nearset::JoinSpec;
use nearset::index::{CommonShingles, ShingleKeys};
use nearset_records::Scratch;
use serde::{Deserialize, Serialize};

use super::read::StoredEntry;
use super::{
    LOCK, Library, LibraryError, MANIFEST, Manifest, NEXT_MANIFEST, Noted, Segment, Segments, VERSION, is_library,
    number_of, set_check,
};

/// Segments of one tier that become one of the next.
const FAN_IN: usize = 8;

/// How far a segment has come, for a run that is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Written {
    records: u64,
    entries: u64,
    sets: u64,
}

/// A library that this run adds a segment to.
pub(crate) struct LibraryWriter {
    path: PathBuf,
    /// Held until the library is complete.
    _lock: File,
    /// The library as it will be, the new segment aside.
    manifest: Manifest,
    /// Whether the folder is this run's own.
    is_new: bool,
    names: [String; 2],
    entries: Scratch,
    sets: Scratch,
    records: u64,
    line: Vec<u8>,
    /// Whether what was written stays when this goes away: a run can be resumed, or all of it is complete.
    is_kept: bool,
}

impl LibraryWriter {
    /// Opens a library to be extended, or a new one. `extends` says that the library is also read; otherwise one that is there is
    /// replaced, if that is allowed by `force`. `resumed` is how far the same run has come.
    pub fn open(
        path: &Path,
        spec: &JoinSpec,
        model: &CommonShingles,
        extends: Option<&Library>,
        force: bool,
        resumed: Option<Written>,
    ) -> Result<Self, LibraryError> {
        let failed = |cause| LibraryError::Io { path: path.to_owned(), cause };
        let is_new = !is_library(path);
        if let Some(library) = extends {
            library.manifest().expect_same_promise(path, spec)?;
        } else if path.join(MANIFEST).exists() && !force && resumed.is_none() {
            return Err(LibraryError::Exists { path: path.to_owned() });
        } else if !is_new && !path.join(MANIFEST).exists() && resumed.is_none() && !is_leftover(path).map_err(failed)? {
            return Err(LibraryError::NotALibrary { path: path.to_owned() });
        }
        if is_new {
            fs::create_dir(path).map_err(failed)?;
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LibraryError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        if resumed.is_none() {
            // Of a run that was killed, and whose output never appeared.
            let _ = fs::remove_file(path.join(NEXT_MANIFEST));
        }
        let replaced = Manifest::load(path).ok();
        let manifest = match extends {
            Some(library) => library.manifest().clone(),
            None => {
                let next = replaced.map_or(1, |manifest| manifest.next);
                new_manifest(path, spec, model, next).map_err(failed)?
            }
        };
        let names = ["entries", "sets"].map(|kind| format!("{}.{kind}", manifest.next));
        let Written { records, entries, sets } = resumed.unwrap_or_default();
        let open = |name: &str, length| Scratch::open(&path.join(name), length).map_err(failed);
        let (entries, sets) = (open(&names[0], entries)?, open(&names[1], sets)?);
        let path = path.to_owned();
        Ok(Self {
            path,
            _lock: lock,
            manifest,
            is_new,
            names,
            entries,
            sets,
            records,
            line: Vec::new(),
            is_kept: resumed.is_some(),
        })
    }

    /// Adds a record.
    pub fn push(&mut self, keys: &[u64], set: &[u64], id: &str) -> Result<(), LibraryError> {
        let failed = |cause| LibraryError::Io { path: self.path.clone(), cause };
        let line = &mut self.line;
        line.clear();
        for number in [set.len(), id.len(), keys.len()] {
            let number =
                u32::try_from(number).map_err(|_| failed(io::Error::other("a record of more than 2^32 shingles")))?;
            line.extend_from_slice(&number.to_le_bytes());
        }
        keys.iter().for_each(|key| line.extend_from_slice(&key.to_le_bytes()));
        self.entries.append(line).map_err(failed)?;
        line.clear();
        set.iter().for_each(|hash| line.extend_from_slice(&hash.to_le_bytes()));
        line.extend_from_slice(id.as_bytes());
        let check = set_check(line);
        line.extend_from_slice(&check);
        self.sets.append(line).map_err(failed)?;
        self.records += 1;
        Ok(())
    }

    /// Makes what was added durable, for a run that goes on from here.
    pub fn sync(&mut self) -> Result<Written, LibraryError> {
        self.is_kept = true;
        let failed = |cause| LibraryError::Io { path: self.path.clone(), cause };
        let entries = self.entries.sync().map_err(failed)?;
        Ok(Written { records: self.records, entries, sets: self.sets.sync().map_err(failed)? })
    }

    /// Completes the library, which [`commit`] then makes the one that is there.
    pub fn complete(&mut self) -> Result<(), LibraryError> {
        self.sync()?;
        self.is_kept = false;
        let mut manifest = self.manifest.clone();
        let mut complete = || -> io::Result<()> {
            if self.records > 0 {
                let [entries, sets] = self.names.clone().map(|name| Noted::of_file(&self.path, name));
                let segment = Segment { tier: 0, records: self.records, entries: entries?, sets: sets? };
                manifest.segments.push(segment);
                manifest.next += 1;
                merge_tiers(&self.path, &mut manifest)?;
            }
            write_whole(&self.path.join(NEXT_MANIFEST), &manifest.to_bytes())?;
            File::open(&self.path)?.sync_all()
        };
        complete().map_err(LibraryError::io(&self.path))?;
        self.is_kept = true;
        Ok(())
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LibraryWriter {
    /// Removes what was written, where the run ended without its output and can't be resumed.
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // What can't be removed is not in the manifest, and the next run overwrites it.
        self.names.iter().for_each(|name| drop(fs::remove_file(self.path.join(name))));
        if self.is_new {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether a folder holds nothing but what a run left that was killed before it had a manifest.
fn is_leftover(path: &Path) -> io::Result<bool> {
    let is_ours = |name: &str| name == LOCK || name == NEXT_MANIFEST || number_of(name).is_some();
    for entry in fs::read_dir(path)? {
        if !is_ours(&entry?.file_name().to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn new_manifest(path: &Path, spec: &JoinSpec, model: &CommonShingles, next: u64) -> io::Result<Manifest> {
    let name = format!("model-{next}.bin");
    let bytes: Vec<u8> = model.as_slice().iter().flat_map(|hash| hash.to_le_bytes()).collect();
    write_whole(&path.join(&name), &bytes)?;
    Ok(Manifest {
        version: VERSION,
        near: spec.near.value().to_string(),
        max_false_negative: spec.max_false_negative.to_string(),
        shingling: spec.shingling.to_string(),
        seed: spec.seed.to_string(),
        model: Noted::of_bytes(name, &bytes),
        segments: Vec::new(),
        next: next + 1,
    })
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Merges segments, the newest first, until no tier has [`FAN_IN`] of them.
fn merge_tiers(path: &Path, manifest: &mut Manifest) -> io::Result<()> {
    while let Some(tier) = manifest.segments.last().map(|segment| segment.tier) {
        let same = manifest.segments.iter().rev().take_while(|segment| segment.tier == tier).count();
        if same < FAN_IN {
            break;
        }
        let merged = manifest.segments.split_off(manifest.segments.len() - FAN_IN);
        let append = |kind: &str, files: &mut dyn Iterator<Item = &Noted>| -> io::Result<Noted> {
            let name = format!("{}.{kind}", manifest.next);
            let mut out = File::create(path.join(&name))?;
            for file in files {
                io::copy(&mut File::open(path.join(&file.name))?, &mut out)?;
            }
            out.sync_all()?;
            Noted::of_file(path, name)
        };
        let segment = Segment {
            tier: tier + 1,
            records: merged.iter().map(|segment| segment.records).sum(),
            entries: append("entries", &mut merged.iter().map(|segment| &segment.entries))?,
            sets: append("sets", &mut merged.iter().map(|segment| &segment.sets))?,
        };
        manifest.segments.push(segment);
        manifest.next += 1;
    }
    Ok(())
}

/// Makes a completed library the one that is there. Where that was done, it does nothing.
pub(crate) fn commit(path: &Path) -> Result<(), LibraryError> {
    let commit = || -> io::Result<()> {
        match fs::rename(path.join(NEXT_MANIFEST), path.join(MANIFEST)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            outcome => outcome?,
        }
        File::open(path)?.sync_all()
    };
    commit().map_err(LibraryError::io(path))?;
    let manifest = Manifest::load(path)?;
    // What can't be removed only takes room.
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if number_of(&name).is_some() && manifest.files().all(|file| file.name != name) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Makes one library of several: the records of all, in the order in which they are named. Keys are chosen by the first one's model.
///
/// # Errors
/// If one of them is damaged or of other shingles or another promise, or the output can't be written.
pub fn merge(paths: &[PathBuf], out: &Path, force: bool) -> Result<u64, LibraryError> {
    let libraries = paths.iter().map(|path| Library::open(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = libraries.first() else { return Ok(0) };
    let manifest = first.manifest();
    let damaged = |what: &str| LibraryError::damaged(first.path(), what);
    let spec = manifest.spec().ok_or_else(|| damaged("its promise can't be read"))?;
    for library in &libraries {
        library.expect_same_shingles(spec.shingling, spec.seed)?;
        library.manifest().expect_same_promise(library.path(), &spec)?;
    }
    let mut writer = LibraryWriter::open(out, &spec, first.model(), None, force, None)?;
    let mut copy = || {
        let (mut segments, mut keys, mut words) = (Segments::default(), ShingleKeys::new(), Vec::new());
        for library in &libraries {
            let number = segments.add(library)?;
            let is_same = library.has_keys_of(&spec, first.model());
            library.each_entry(number, |StoredEntry { keys: stored, set: place }| {
                let (set, id) = (segments.set(place)?, segments.id(place)?);
                words.clear();
                if is_same {
                    words.extend_from_slice(stored);
                } else {
                    keys.choose(&set, first.model(), &spec);
                    keys.write(&mut words);
                }
                writer.push(&words, set.as_slice(), &id)
            })?;
        }
        writer.complete()
    };
    copy()?;
    commit(out)?;
    Ok(writer.records)
}
