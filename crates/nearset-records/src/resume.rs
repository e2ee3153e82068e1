//! The state of an unfinished run: a folder `OUT.resume` beside the output.
//!
//! Claim: whatever moment the machine stops at, the folder holds one consistent checkpoint or none. The state file appears by
//! rename after everything it refers to is on disk, and what it no longer refers to is removed only after that.
//! Not here: what a state holds.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::OutputError;

const STATE: &str = "state.json";

/// Bytes of records between checkpoints, at the least.
const LEAST_INTERVAL: u64 = 1 << 30;

/// How many times as many bytes are read between two checkpoints as one of them writes, so that saving takes a small part of the time.
const SAVES_APART: u64 = 8;

/// The folder of a run's state.
#[derive(Debug, Clone)]
pub struct StateFolder {
    path: PathBuf,
    interval: Option<u64>,
    /// Where scratch files go, if not in the folder, and what their names begin with.
    scratch: Option<(PathBuf, String)>,
}

impl StateFolder {
    /// Names the folder beside the output. `interval` is that of checkpoints; `None` goes by what one writes.
    pub fn of(out: &Path, interval: Option<u64>) -> Self {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".resume");
        Self { path: out.with_file_name(name), interval, scratch: None }
    }

    /// The same, with scratch files in another folder.
    pub fn with_scratch(mut self, folder: Option<&Path>) -> Self {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Outputs of one name in several folders may share the folder for scratch files.
        let place = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let place = xxh3_64(place.as_os_str().as_encoded_bytes());
        self.scratch = folder.map(|folder| (folder.to_owned(), format!("{name}-{place:016x}")));
        self
    }

    /// The path of a scratch file, which goes away with the state.
    pub fn scratch_file(&self, name: &str) -> PathBuf {
        match &self.scratch {
            Some((folder, prefix)) => folder.join(format!("{prefix}.{name}")),
            None => self.file(name),
        }
    }

    /// Returns how many bytes of records are read until the next checkpoint, if it writes `saved_bytes`.
    pub fn interval(&self, saved_bytes: u64) -> u64 {
        self.interval.unwrap_or(LEAST_INTERVAL.max(SAVES_APART.saturating_mul(saved_bytes))).max(1)
    }

    /// Returns where the folder lies, if it is there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whether it holds a state.
    pub fn exists(&self) -> bool {
        self.path.join(STATE).exists()
    }

    /// Creates the folder, unless it exists.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn create(&self) -> Result<(), OutputError> {
        fs::create_dir_all(&self.path).map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    /// Removes the folder, the state itself after what it refers to: as long as it is there, the run is not over.
    ///
    /// # Errors
    /// If something in it can't be removed.
    pub fn remove(&self) -> Result<(), OutputError> {
        if let Some((folder, prefix)) = &self.scratch {
            // What can't be removed there is no state.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&format!("{prefix}.")) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        let remove = || {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_name() != STATE {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir_all(&self.path)
        };
        match remove() {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(OutputError::from_io(&self.path, cause)),
            _ => Ok(()),
        }
    }

    /// Removes a folder without a state, which is left by a run that is killed while it removes its state. A run at work may have such a
    /// folder too, but `partial`, where its output is until it is complete, exists then.
    ///
    /// # Errors
    /// As [`StateFolder::remove`].
    pub fn remove_leftover(&self, partial: &Path) -> Result<(), OutputError> {
        let is_leftover = self.path.is_dir() && !self.exists() && !partial.exists();
        if is_leftover { self.remove() } else { Ok(()) }
    }

    /// Reads the state, if there is one.
    ///
    /// # Errors
    /// If it can't be read, or is not such a state.
    pub fn load<S: DeserializeOwned>(&self) -> Result<Option<S>, OutputError> {
        let path = self.path.join(STATE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(OutputError::BadState { path, cause: cause.into() }),
        };
        match serde_json::from_slice(&bytes) {
            Ok(state) => Ok(Some(state)),
            Err(cause) => Err(OutputError::BadState { path, cause: cause.into() }),
        }
    }

    /// Returns the error of a state that does not fit what it refers to.
    pub fn damaged(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> OutputError {
        OutputError::BadState { path: self.path.join(STATE), cause: cause.into() }
    }

    /// Makes `state` the current one, as that of checkpoint number `checkpoint`. Files of earlier checkpoints, `NAME-NUMBER.EXTENSION`, are removed.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn save(&self, state: &impl Serialize, checkpoint: u64) -> Result<(), OutputError> {
        let failed = |cause| OutputError::from_io(&self.path, cause);
        self.create()?;
        let new = self.path.join("state.json.new");
        let bytes = serde_json::to_vec(state).map_err(|cause| failed(cause.into()))?;
        let write = || {
            let mut file = fs::File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, self.path.join(STATE))?;
            sync_folder(&self.path)
        };
        write().map_err(failed)?;
        self.remove_older(checkpoint);
        Ok(())
    }

    /// Removes the files of older checkpoints. A file that cannot be removed only takes room, until the run is done.
    fn remove_older(&self, checkpoint: u64) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.split_once('-').and_then(|(_, rest)| rest.split_once('.')).map(|(number, _)| number);
            if number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number < checkpoint) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Makes the names in a folder durable, where a system has a way to.
///
/// # Errors
/// If the folder can't be opened.
pub fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        fs::File::open(path)?.sync_all()?;
    }
    Ok(())
}
