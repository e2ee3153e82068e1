//! One output per source, in a folder: names, subfolders and packings stay.
//!
//! Claim: all shards appear under their names when the last one is complete, and none before.
//! Invariant: sources come in order, so at most one shard is open; those before it are complete and lie beside their places.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::any::check_alone;
use super::file::publish;
use super::{Added, AnyWriter, Checkpoint, OutputOptions, partial_path};
use crate::error::OutputError;
use crate::input::Source;
use crate::remote::is_url;

/// Returns whether an output is a folder, to which each source's records go under the source's own name: one that is there, or a name that ends as
/// those of folders do.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(std::path::MAIN_SEPARATOR_STR.as_bytes())
}

/// Returns where the records of each source go: below the folder, by its path behind the folder that all sources have in common.
///
/// # Errors
/// If a source has no name, or two have one.
pub fn shard_paths(folder: &Path, sources: &[Source]) -> Result<Vec<PathBuf>, OutputError> {
    let unsupported = |why: String| OutputError::Unsupported { path: folder.to_owned(), why };
    if folder.to_str().is_some_and(is_url) {
        let why = "objects of a store are written one by one: name one, or a folder on this machine";
        return Err(unsupported(why.to_owned()));
    }
    if !matches!(folder.components().next_back(), Some(Component::Normal(_))) {
        return Err(unsupported("name a folder of its own, such as clean/".to_owned()));
    }
    let place = |source: &Source| {
        let named = source.is_remote().then(|| Path::new(&*source.name));
        let path = source.path().or(named).ok_or_else(|| {
            unsupported(format!("{} has no name that its records could go by: name a file", source.name))
        })?;
        if source.format.layout().is_whole_file() {
            let why = "files that are one document each come out as lines of JSON: name a file for them".to_owned();
            return Err(unsupported(why));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((
            fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned()),
            path.file_name().unwrap_or_default().to_owned(),
        ))
    };
    let places = sources.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let mut common = places.first().map_or_else(PathBuf::new, |(parent, _)| parent.clone());
    while !places.iter().all(|(parent, _)| parent.starts_with(&common)) {
        common.pop();
    }
    let (mut paths, mut seen) = (Vec::new(), BTreeSet::new());
    for ((parent, name), source) in places.iter().zip(sources) {
        let below = parent.strip_prefix(&common).unwrap_or(parent).components();
        // Where sources have nothing in common, some of what is left begins at the root, or leads up from a server's.
        let below: PathBuf = below.filter(|part| matches!(part, Component::Normal(_))).collect();
        let path = folder.join(below).join(name);
        if !seen.insert(path.clone()) {
            return Err(unsupported(format!(
                "{} is named twice among the inputs, and has one output there",
                source.name
            )));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// Gives shards that are complete their names, those that do not have them yet.
///
/// # Errors
/// If the device fails.
pub fn publish_shards(folder: &Path, sources: &[Source]) -> Result<(), OutputError> {
    let waits = |path: &PathBuf| partial_path(path).exists();
    shard_paths(folder, sources)?.iter().filter(|path| waits(path)).try_for_each(|path| publish(path))
}

/// Removes what an unfinished run has left in a folder.
pub fn remove_partial_shards(folder: &Path, sources: &[Source]) {
    for path in shard_paths(folder, sources).into_iter().flatten() {
        // What is not there need not be removed, and what cannot be removed is named as partial.
        let _ = fs::remove_file(partial_path(&path));
    }
}

/// Checks that each source's records can go to a file of its name, before any is read.
pub(super) fn check_shards(folder: &Path, sources: &[Source], added: &[Added]) -> Result<(), OutputError> {
    let paths = shard_paths(folder, sources)?;
    paths.iter().zip(sources).try_for_each(|(path, source)| check_alone(path, source, added))
}

/// Writes records to one output per source.
pub struct ShardWriter {
    sources: Arc<[Source]>,
    paths: Vec<PathBuf>,
    added: Vec<Added>,
    options: OutputOptions,
    /// The shard at hand; those before it are complete.
    current: Option<(usize, Box<AnyWriter>)>,
    is_finished: bool,
    /// Locked while the run lasts, where folders can be: the shards that are complete are not.
    _folder: Option<File>,
}

impl ShardWriter {
    /// Starts or continues outputs below a folder, which is created.
    ///
    /// # Errors
    /// If one of them exists and may not be replaced, is an input, or cannot be created.
    pub fn open(
        folder: &Path,
        sources: &Arc<[Source]>,
        added: Vec<Added>,
        resumed: Option<Checkpoint>,
        options: &OutputOptions,
    ) -> Result<Self, OutputError> {
        let paths = shard_paths(folder, sources)?;
        // Found out now rather than when their turn comes.
        if let Some(path) = paths.iter().find(|path| path.exists() && !options.force) {
            return Err(OutputError::Exists { path: path.clone() });
        }
        let failed = |cause| OutputError::from_io(folder, cause);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = if cfg!(unix) { Some(File::open(folder).map_err(failed)?) } else { None };
        if let Some(Err(TryLockError::WouldBlock)) = lock.as_ref().map(File::try_lock) {
            return Err(OutputError::Busy { path: folder.to_owned() });
        }
        let (sources, options) = (Arc::clone(sources), options.clone());
        let mut new = Self { sources, paths, added, options, current: None, is_finished: false, _folder: lock };
        if let Some(checkpoint) = resumed {
            for path in &new.paths[..checkpoint.shard.min(new.paths.len())] {
                let partial = partial_path(path);
                if !partial.exists() {
                    return Err(OutputError::ResumeBeyondEnd { path: partial, wanted: 1, found: 0 });
                }
            }
            new.start(checkpoint.shard, Some(checkpoint))?;
        }
        Ok(new)
    }

    fn start(&mut self, shard: usize, resumed: Option<Checkpoint>) -> Result<(), OutputError> {
        let path = &self.paths[shard];
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|cause| OutputError::from_io(parent, cause))?;
        }
        let source: Arc<[Source]> = Arc::from([self.sources[shard].clone()]);
        let mut writer = AnyWriter::open(path, &source, self.added.clone(), resumed, &self.options)?;
        writer.count_sources_from(shard);
        if self.options.keep_partial {
            writer.keep_partial();
        }
        self.current = Some((shard, Box::new(writer)));
        Ok(())
    }

    /// Returns the shard of a source, those before it being complete, also those without a record.
    pub(super) fn of_source(&mut self, source: usize) -> Result<&mut AnyWriter, OutputError> {
        while self.current.as_ref().is_none_or(|(shard, _)| *shard < source) {
            let next = self.current.as_ref().map_or(0, |(shard, _)| shard + 1);
            self.complete_current()?;
            self.start(next, None)?;
        }
        match &mut self.current {
            Some((_, writer)) => Ok(writer),
            None => unreachable!("a shard was started"),
        }
    }

    fn complete_current(&mut self) -> Result<(), OutputError> {
        match self.current.take() {
            Some((_, writer)) => writer.complete(),
            None => Ok(()),
        }
    }

    pub(super) fn keep_partial(&mut self) {
        self.options.keep_partial = true;
        if let Some((_, writer)) = &mut self.current {
            writer.keep_partial();
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<Option<Checkpoint>, OutputError> {
        let shard = self.current.as_ref().map_or(0, |(shard, _)| *shard);
        let checkpoint = self.of_source(shard)?.checkpoint()?;
        Ok(checkpoint.map(|checkpoint| Checkpoint { shard, ..checkpoint }))
    }

    /// Completes all shards, so that a checkpoint is one of the last.
    pub(super) fn complete_all(&mut self) -> Result<(), OutputError> {
        match self.paths.len().checked_sub(1) {
            Some(last) => self.of_source(last).map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.complete_all()?;
        self.complete_current()?;
        self.is_finished = true;
        self.paths.iter().try_for_each(|path| publish(path))
    }
}

impl Drop for ShardWriter {
    fn drop(&mut self) {
        if !self.is_finished && !self.options.keep_partial {
            self.paths.iter().for_each(|path| drop(fs::remove_file(partial_path(path))));
        }
    }
}
