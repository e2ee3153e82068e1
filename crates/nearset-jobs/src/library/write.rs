//! Libraries that are made or extended.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use nearset::JoinSpec;
use nearset::index::{CommonShingles, ShingleKeys};
use nearset_records::resume::sync_folder;
use nearset_records::{Scratch, output::partial_path};
use serde::{Deserialize, Serialize};

use super::entries::{self, Entries};
use super::index::{self, Index};
use super::read::write_index;
use super::{
    LOCK, Library, LibraryError, MANIFEST, Manifest, Noted, OpenLibrary, Segment, Segments, VERSION, WITHOUT_INDEX,
    hex, is_own_file, is_run, set_check,
};

/// Segments of one tier that become one of the next.
const FAN_IN: usize = 8;

/// Bytes of neighbouring files of sets that are copied into one when segments are merged; larger ones stay as they are.
const MOST_COPIED: u64 = 64 << 20;

/// What a run is to make of a library, for one that is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// A name that no other run has.
    run: String,
    /// The checksum of the manifest that is extended; nothing for a new library.
    base: Option<String>,
    records: u64,
}

/// How far a segment has come, for a run that is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pending: Pending,
    names: [String; 2],
    entries: u64,
    sets: u64,
}

/// The right to write a library, which one run has at a time.
pub(crate) struct LibraryLock {
    path: PathBuf,
    /// Where files go: the library itself, or where a new one is made.
    folder: PathBuf,
    extends: bool,
    _file: File,
}

impl LibraryLock {
    /// Takes it for a library that is there and is to be extended, or for a new one.
    pub fn take(path: &Path, extends: bool) -> Result<Self, LibraryError> {
        if !extends && fs::symlink_metadata(path).is_ok() {
            let (is_library, path) = (path.join(MANIFEST).exists(), path.to_owned());
            return Err(if is_library { LibraryError::Exists { path } } else { LibraryError::NotALibrary { path } });
        }
        let folder = if extends { path.to_owned() } else { partial_path(path) };
        if !extends && !folder.is_dir() {
            fs::create_dir(&folder).map_err(|cause| match path.parent() {
                Some(parent) if cause.kind() == io::ErrorKind::NotFound => {
                    LibraryError::NoFolder { path: path.to_owned(), folder: parent.to_owned() }
                }
                _ => LibraryError::Io { path: path.to_owned(), cause },
            })?;
        }
        let open = || OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK));
        let file = open().map_err(LibraryError::io(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), folder, extends, _file: file }),
            Err(TryLockError::WouldBlock) => Err(LibraryError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(cause)) => Err(LibraryError::Io { path: path.to_owned(), cause }),
        }
    }

    /// Removes what a run left that was killed, from where a new library is made.
    fn clear(&self) -> Result<(), LibraryError> {
        for entry in fs::read_dir(&self.folder).map_err(LibraryError::io(&self.folder))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == MANIFEST || is_own_file(&name) {
                fs::remove_file(entry.path()).map_err(LibraryError::io(&self.folder))?;
            } else if name != LOCK {
                return Err(LibraryError::NotALibrary { path: self.folder.clone() });
            }
        }
        Ok(())
    }
}

/// A library that this run adds a segment to.
pub(crate) struct LibraryWriter {
    lock: LibraryLock,
    /// The library as it will be, the new segment aside.
    manifest: Manifest,
    pending: Pending,
    names: [String; 2],
    entries: Scratch,
    sets: Scratch,
    line: Vec<u8>,
    /// Whether what was written stays when this goes away: a run can be resumed, or all of it is complete.
    is_kept: bool,
}

impl LibraryWriter {
    /// Opens a library under its lock: `base`, which was read after the lock was taken, or a new one. `resumed` is how far the same run
    /// has come.
    pub fn open(
        lock: LibraryLock,
        (spec, chain): (&JoinSpec, bool),
        model: &CommonShingles,
        base: Option<&Library>,
        resumed: Option<Written>,
    ) -> Result<Self, LibraryError> {
        let (path, folder) = (lock.path.clone(), lock.folder.clone());
        if let Some(library) = base {
            library.manifest().expect_same_promise(&path, spec)?;
            library.manifest().expect_same_chains(&path, chain, true)?;
        }
        let checksum = base.map(|library| library.manifest().check.clone());
        let is_resumed = resumed.is_some();
        if !is_resumed && !lock.extends {
            lock.clear()?;
        }
        let number = base.map_or(1, |library| library.manifest().next);
        let Written { pending, names, entries, sets } = resumed.unwrap_or_else(|| {
            let run = new_run();
            let names = ["entries", "sets"].map(|kind| format!("{number}-{run}.{kind}"));
            Written { pending: Pending { run, base: checksum.clone(), records: 0 }, names, entries: 0, sets: 0 }
        });
        let is_there = |name: &String| is_own_file(name) && folder.join(name).is_file();
        if pending.base != checksum || !is_run(&pending.run) || is_resumed && !names.iter().all(is_there) {
            return Err(LibraryError::Changed { path });
        }
        let manifest = match base {
            Some(library) => library.manifest().clone(),
            None => new_manifest(&folder, &pending.run, (spec, chain), model).map_err(LibraryError::io(&folder))?,
        };
        let open = |name: &str, length| Scratch::open(&folder.join(name), length).map_err(LibraryError::io(&folder));
        let (entries, sets) = (open(&names[0], entries)?, open(&names[1], sets)?);
        Ok(Self { lock, manifest, pending, names, entries, sets, line: Vec::new(), is_kept: is_resumed })
    }

    fn failed(&self) -> impl Fn(io::Error) -> LibraryError + use<> {
        let path = self.lock.path.clone();
        move |cause| LibraryError::Io { path: path.clone(), cause }
    }

    /// Adds a record.
    pub fn push(&mut self, keys: &[u64], set: &[u64], id: &str) -> Result<(), LibraryError> {
        let failed = self.failed();
        let line = &mut self.line;
        if !entries::write(set.len(), id.len(), keys, line) {
            return Err(failed(io::Error::other("a record of more than 2^32 shingles")));
        }
        self.entries.append(line).map_err(&failed)?;
        line.clear();
        set.iter().for_each(|hash| line.extend_from_slice(&hash.to_le_bytes()));
        line.extend_from_slice(id.as_bytes());
        let check = set_check(line);
        line.extend_from_slice(&check);
        self.sets.append(line).map_err(&failed)?;
        self.pending.records += 1;
        Ok(())
    }

    /// Makes what was added durable, for a run that goes on from here.
    pub fn sync(&mut self) -> Result<Written, LibraryError> {
        let failed = self.failed();
        self.is_kept = true;
        let (entries, sets) = (self.entries.sync().map_err(&failed)?, self.sets.sync().map_err(&failed)?);
        Ok(Written { pending: self.pending.clone(), names: self.names.clone(), entries, sets })
    }

    /// What [`commit`] needs to know.
    pub fn pending(&self) -> Pending {
        self.pending.clone()
    }

    /// Completes the library, which [`commit`] then makes the one that is there.
    pub fn complete(&mut self) -> Result<(), LibraryError> {
        let failed = self.failed();
        self.sets.sync().map_err(&failed)?;
        let (folder, run, mut manifest) = (&self.lock.folder, &self.pending.run, self.manifest.clone());
        if manifest.version == WITHOUT_INDEX {
            for segment in &mut manifest.segments {
                segment.index = write_file(folder, &format!("{}-{run}.index", manifest.next), |path, out| {
                    write_index(folder, &segment.index, path, out)
                })?;
                manifest.next += 1;
            }
            manifest.version = VERSION;
        }
        if self.pending.records > 0 {
            let [name, sets] = &self.names;
            let entries = Entries { folder, name, bytes: self.entries.len(), xxh3: None };
            let read = |at: u64, bytes: &mut [u8]| self.entries.read_at(at, bytes);
            let index = write_file(folder, &format!("{}-{run}.index", manifest.next), |path, out| {
                index::write(&mut |each| entries.each(read, each), path, out)
            })?;
            let sets = Noted::of_file(folder, sets.clone()).map_err(&failed)?;
            manifest.segments.push(Segment { tier: 0, records: self.pending.records, index, sets: vec![sets] });
            manifest.next += 1;
            merge_tiers(folder, run, &mut manifest, MOST_COPIED)?;
        }
        let name = if self.lock.extends { next_manifest(run) } else { MANIFEST.to_owned() };
        write_whole(&folder.join(name), &manifest.to_bytes()).map_err(&failed)?;
        sync_folder(folder).map_err(&failed)?;
        self.is_kept = true;
        Ok(())
    }

    /// Makes the completed library the one that is there.
    pub fn commit(&self) -> Result<(), LibraryError> {
        commit_locked(&self.lock.path, &self.pending)
    }
}

impl Drop for LibraryWriter {
    /// Removes what was written, where the run ended without its output and can't be resumed.
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // What can't be removed is in no manifest.
        if !self.lock.extends {
            let _ = fs::remove_dir_all(&self.lock.folder);
            return;
        }
        // Merged segments and indexes are named by the run, too.
        for entry in fs::read_dir(&self.lock.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(&self.pending.run) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A name that no other run has.
fn new_run() -> String {
    // The hasher's keys are random.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hex(hasher.finish())
}

/// What the next manifest is called until it is the one that is there.
fn next_manifest(run: &str) -> String {
    format!("manifest-{run}.next")
}

fn new_manifest(
    folder: &Path,
    run: &str,
    (spec, chain): (&JoinSpec, bool),
    model: &CommonShingles,
) -> io::Result<Manifest> {
    let name = format!("1-{run}.model");
    let bytes: Vec<u8> = model.as_slice().iter().flat_map(|hash| hash.to_le_bytes()).collect();
    write_whole(&folder.join(&name), &bytes)?;
    Ok(Manifest {
        version: VERSION,
        near: spec.near.value().to_string(),
        max_false_negative: spec.max_false_negative.to_string(),
        shingling: spec.shingling.to_string(),
        seed: spec.seed.to_string(),
        chain,
        model: Noted::of_bytes(name, &bytes),
        segments: Vec::new(),
        next: 2,
        check: String::new(),
    })
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes a file of a library to its end.
fn write_file(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&Path, &mut dyn Write) -> Result<Noted, LibraryError>,
) -> Result<Noted, LibraryError> {
    let path = folder.join(name);
    let mut out = BufWriter::with_capacity(1 << 18, File::create(&path).map_err(LibraryError::io(&path))?);
    let noted = write(&path, &mut out)?;
    let file = out.into_inner().map_err(|cause| LibraryError::io(&path)(cause.into_error()))?;
    file.sync_all().map_err(LibraryError::io(&path))?;
    Ok(noted)
}

/// Merges segments, the newest first, until no tier has [`FAN_IN`] of them. Neighbouring files of sets become one if they have at most so many
/// bytes together.
fn merge_tiers(folder: &Path, run: &str, manifest: &mut Manifest, most_copied: u64) -> Result<(), LibraryError> {
    while let Some(tier) = manifest.segments.last().map(|segment| segment.tier) {
        let same = manifest.segments.iter().rev().take_while(|segment| segment.tier == tier).count();
        if same < FAN_IN {
            break;
        }
        let merged = manifest.segments.split_off(manifest.segments.len() - FAN_IN);
        let indexes =
            merged.iter().map(|segment| Index::open(folder, &segment.index)).collect::<Result<Vec<_>, _>>()?;
        let index = write_file(folder, &format!("{}-{run}.index", manifest.next), |path, out| {
            index::merge(&indexes, path, out)
        })?;
        let records = merged.iter().map(|segment| segment.records).sum();
        manifest.next += 1;
        let mut sets = Vec::new();
        for some in small_together(merged.into_iter().flat_map(|segment| segment.sets), most_copied) {
            // A damaged file is listed as it is: its copy would have a checksum that fits.
            if some.len() == 1 || some.iter().any(|file| file.check(folder).is_err()) {
                sets.extend(some);
                continue;
            }
            let name = format!("{}-{run}.sets", manifest.next);
            manifest.next += 1;
            let path = folder.join(&name);
            let append = || -> io::Result<Noted> {
                let mut out = File::create(&path)?;
                for file in &some {
                    io::copy(&mut File::open(folder.join(&file.name))?, &mut out)?;
                }
                out.sync_all()?;
                Noted::of_file(folder, name)
            };
            sets.push(append().map_err(LibraryError::io(&path))?);
        }
        manifest.segments.push(Segment { tier: tier + 1, records, index, sets });
    }
    Ok(())
}

/// Files in their order, as runs of neighbours that have at most so many bytes together.
fn small_together(files: impl Iterator<Item = Noted>, most_bytes: u64) -> Vec<Vec<Noted>> {
    let (mut runs, mut bytes): (Vec<Vec<Noted>>, u64) = (Vec::new(), 0);
    for file in files {
        bytes = bytes.saturating_add(file.bytes);
        match runs.last_mut().filter(|_| bytes <= most_bytes) {
            Some(run) => run.push(file),
            None => {
                bytes = file.bytes;
                runs.push(vec![file]);
            }
        }
    }
    runs
}

/// Makes the library that a stopped run has completed the one that is there. Where that was done, it does nothing.
pub(crate) fn commit(path: &Path, pending: &Pending) -> Result<(), LibraryError> {
    let is_made_new = pending.base.is_none() && partial_path(path).is_dir();
    let _lock = LibraryLock::take(path, !is_made_new)?;
    commit_locked(path, pending)
}

fn commit_locked(path: &Path, pending: &Pending) -> Result<(), LibraryError> {
    let changed = || LibraryError::Changed { path: path.to_owned() };
    let made = if pending.base.is_some() { path.join(next_manifest(&pending.run)) } else { partial_path(path) };
    if !made.exists() {
        // It is done, or another library is there.
        let there = Manifest::load(path)?;
        let is_done = there.has_run(&pending.run) || pending.records == 0 && pending.base == Some(there.check);
        return if is_done { Ok(()) } else { Err(changed()) };
    }
    match &pending.base {
        Some(base) if Manifest::load(path)?.check != *base => return Err(changed()),
        Some(_) => fs::rename(&made, path.join(MANIFEST)).map_err(LibraryError::io(path))?,
        None if !Manifest::load(&made)?.has_run(&pending.run) => return Err(changed()),
        None => fs::rename(&made, path).map_err(LibraryError::io(path))?,
    }
    let sync = || match path.parent() {
        Some(parent) if pending.base.is_none() && parent != Path::new("") => sync_folder(parent),
        _ => sync_folder(path),
    };
    sync().map_err(LibraryError::io(path))?;
    remove_unnamed(path, &Manifest::load(path)?);
    Ok(())
}

/// Removes files that are no longer named. What can't be removed only takes room.
fn remove_unnamed(path: &Path, manifest: &Manifest) {
    let named: HashSet<&str> = manifest.files().map(|file| &*file.name).collect();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_next = name.strip_prefix("manifest-").and_then(|name| name.strip_suffix(".next")).is_some_and(is_run);
        if is_next || is_own_file(&name) && !named.contains(&*name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes one library of several: the records of all, in the order in which they are named. Keys are chosen by the first one's model.
///
/// # Errors
/// If one of them is damaged or of other shingles or another promise, or the output is there or can't be written.
pub fn merge(paths: &[PathBuf], out: &Path) -> Result<u64, LibraryError> {
    let opened = OpenLibrary::open_all(paths)?;
    let Some(OpenLibrary { library: first, .. }) = opened.first() else { return Ok(0) };
    let chain = first.manifest().chain;
    let spec = first.manifest().spec().ok_or_else(|| first.damaged("its promise can't be read"))?;
    for OpenLibrary { library, .. } in &opened {
        library.expect_same_shingles(spec.shingling, spec.seed)?;
        library.manifest().expect_same_promise(library.path(), &spec)?;
        library.manifest().expect_same_chains(library.path(), chain, true)?;
    }
    let lock = LibraryLock::take(out, false)?;
    let model = first.model().clone();
    let mut writer = LibraryWriter::open(lock, (&spec, chain), &model, None, None)?;
    let (mut segments, mut keys, mut words) = (Segments::default(), ShingleKeys::default(), Vec::new());
    for library in opened {
        segments.add(library)?;
    }
    for record in 0..segments.records() {
        let place = segments.place(record)?;
        let (set, id) = (segments.set(place)?, segments.id(place)?);
        words.clear();
        keys.choose(&set, &model, &spec);
        keys.write(&mut words);
        writer.push(&words, &set, &id)?;
    }
    writer.complete()?;
    writer.commit()?;
    Ok(writer.pending.records)
}

#[cfg(test)]
pub(super) mod tests {
    use nearset::plan::Request;

    use super::*;

    /// Makes a library, or extends it by so many records of one run. Returns their sets and ids.
    pub(in crate::library) fn extend(path: &Path, run: u64, records: u64) -> Vec<(Vec<u64>, String)> {
        let (spec, model) = (Request::default().plan_join().unwrap(), CommonShingles::default());
        let base = path.exists().then(|| Library::open(path).unwrap());
        let lock = LibraryLock::take(path, base.is_some()).unwrap();
        let mut writer = LibraryWriter::open(lock, (&spec, false), &model, base.as_ref(), None).unwrap();
        let (mut keys, mut written) = (ShingleKeys::default(), Vec::new());
        for record in 0..records {
            let set: Vec<u64> = (0..20 + record).map(|i| (run + 1) << 40 | record << 20 | i).collect();
            let (id, mut words) = (format!("{run}-{record}"), Vec::new());
            keys.choose(&set, &model, &spec);
            keys.write(&mut words);
            writer.push(&words, &set, &id).unwrap();
            written.push((set, id));
        }
        writer.complete().unwrap();
        writer.commit().unwrap();
        written
    }

    /// That these records, and no others, are in a library.
    pub(in crate::library) fn expect_records(read: &Segments, expected: &[(Vec<u64>, String)]) {
        assert_eq!(read.records() as usize, expected.len());
        for (record, (set, id)) in (0..).zip(expected) {
            let place = read.place(record).unwrap();
            assert_eq!((&read.set(place).unwrap(), &read.id(place).unwrap()), (set, id), "{record}");
        }
    }

    /// A large file among small ones is listed, and those before and behind it become one each.
    #[test]
    fn small_files_beside_a_large_one_are_copied_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        let mut expected = Vec::new();
        for run in 0..FAN_IN as u64 - 1 {
            expected.extend(extend(&path, run, if run == 3 { 100 } else { 2 }));
        }
        let mut manifest = Manifest::load(&path).unwrap();
        let large = manifest.segments[3].sets[0].clone();
        // The first segment is the last one too.
        manifest.segments.push(manifest.segments[0].clone());
        expected.extend_from_within(..2);
        merge_tiers(&path, &new_run(), &mut manifest, large.bytes - 1).unwrap();
        let [merged] = &manifest.segments[..] else { panic!("{:?}", manifest.segments) };
        assert!(merged.sets.len() == 3 && merged.sets[1] == large, "{:?}", merged.sets);
        write_whole(&path.join(MANIFEST), &manifest.to_bytes()).unwrap();
        Library::open(&path).unwrap().check().unwrap();
        let mut read = Segments::default();
        read.add(OpenLibrary::open_all(&[path]).unwrap().remove(0)).unwrap();
        expect_records(&read, &expected);
    }

    #[test]
    fn manifests_whose_numbers_leave_no_room_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        extend(&path, 0, 1);
        let whole = Manifest::load(&path).unwrap();
        for change in [
            (|manifest| manifest.next = u64::MAX - 1) as fn(&mut Manifest),
            |manifest| manifest.next = u64::MAX,
            |manifest| manifest.segments[0].tier = u32::MAX,
        ] {
            let mut manifest = whole.clone();
            change(&mut manifest);
            write_whole(&path.join(MANIFEST), &manifest.to_bytes()).unwrap();
            let told = Manifest::load(&path).unwrap_err().to_string();
            assert!(told.ends_with("manifest.json states numbers that are too large"), "{told}");
        }
    }

    /// Whether small files of sets are copied into one, or large ones listed, a library holds the same.
    #[test]
    fn merged_segments_hold_what_their_parts_hold() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.library");
        let mut expected: Vec<_> = (0..FAN_IN as u64 - 1).flat_map(|run| extend(&path, run, 3 + run)).collect();
        // The first segment is the last one too.
        let mut segments = Manifest::load(&path).unwrap().segments;
        segments.push(segments[0].clone());
        expected.extend_from_within(..segments[0].records as usize);
        let mut indexes = Vec::new();
        for (most_copied, files) in [(MOST_COPIED, 1), (100, FAN_IN)] {
            let mut manifest = Manifest { segments: segments.clone(), ..Manifest::load(&path).unwrap() };
            merge_tiers(&path, &new_run(), &mut manifest, most_copied).unwrap();
            let [merged] = &manifest.segments[..] else { panic!("{:?}", manifest.segments) };
            assert_eq!((merged.tier, merged.sets.len(), merged.records), (1, files, expected.len() as u64));
            indexes.push(merged.index.xxh3.clone());
            write_whole(&path.join(MANIFEST), &manifest.to_bytes()).unwrap();
            Library::open(&path).unwrap().check().unwrap();
            let mut read = Segments::default();
            read.add(OpenLibrary::open_all(std::slice::from_ref(&path)).unwrap().remove(0)).unwrap();
            expect_records(&read, &expected);
        }
        assert_eq!(indexes[0], indexes[1]);
    }
}
