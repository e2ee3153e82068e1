//! The state of an unfinished run: a folder `OUT.resume` beside the output.
//!
//! Claim: whatever moment the machine stops at, the folder holds one consistent checkpoint or none. The state file appears by
//! rename after everything it refers to is on disk, and what it no longer refers to is removed only after that.
//! Invariant: cutting each output to the length in the state and reading on from its position gives the bytes of a run that was
//! never stopped, because checkpoints fall on records and not on times.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use nearset::{Check, Filter};
use serde::{Deserialize, Serialize};

use super::DedupError;
use super::summary::{Outcome, Tally};
use crate::capacity::Capacity;
use nearset_records::error::OutputError;
use nearset_records::input::Position;
use nearset_records::output::{Checkpoint, OutputOptions, partial_path};

const STATE: &str = "state.json";

/// Bytes of records between checkpoints, at the least.
const LEAST_INTERVAL: u64 = 1 << 30;

/// Between checkpoints so many times the filter's bytes are read, so that saving it takes a small part of the time.
const FILTERS_APART: u64 = 8;

/// The form that states are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum StateVersion {
    /// One file for the whole filter.
    #[default]
    #[serde(rename = "2")]
    OneFilter,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Records are to come.
    Reading,
    /// All outputs are complete; some may still lack their names.
    Finishing,
}

/// One checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    /// What a state of another form is known by.
    pub version: StateVersion,
    pub fingerprint: BTreeMap<String, String>,
    pub phase: Phase,
    pub position: Position,
    pub capacity: Capacity,
    pub tally: Tally,
    /// The file of the filter.
    pub filter: Option<String>,
    pub outputs: Lengths,
    /// What the filters came to, when all outputs are complete.
    pub outcome: Option<Outcome>,
}

/// How far the outputs have come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Lengths {
    pub out: Option<Checkpoint>,
    pub removed: Option<u64>,
    /// The page about the run; only when all outputs are complete.
    pub report: Option<u64>,
    /// The saved filter; only when all outputs are complete.
    pub saved: Option<u64>,
}

/// The folder of a run's state.
#[derive(Debug, Clone)]
pub(super) struct StateFolder {
    path: PathBuf,
    interval: Option<u64>,
}

impl StateFolder {
    /// Beside the output.
    pub fn of(out: &Path, interval: Option<u64>) -> Self {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".resume");
        Self { path: out.with_file_name(name), interval }
    }

    /// Bytes of records until the next checkpoint.
    pub fn interval(&self, filter_bytes: u64) -> u64 {
        self.interval.unwrap_or(LEAST_INTERVAL.max(FILTERS_APART.saturating_mul(filter_bytes))).max(1)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.join(STATE).exists()
    }

    /// Removes the folder, the state itself after what it refers to: as long as it is there, the run is not over.
    pub fn remove(&self) -> Result<(), OutputError> {
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

    /// Removes what a run leaves that is killed while it removes its state: the folder without one. A run that is at work may have
    /// one too, but it has a partial output.
    pub fn remove_leftover(&self, out: &Path) -> Result<(), OutputError> {
        let is_leftover = self.path.is_dir() && !self.exists() && !partial_path(out).exists();
        if is_leftover { self.remove() } else { Ok(()) }
    }

    /// Reads the state, if there is one.
    pub fn load(&self) -> Result<Option<State>, DedupError> {
        let path = self.path.join(STATE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(DedupError::BadState { path, cause: cause.to_string() }),
        };
        match serde_json::from_slice(&bytes) {
            Ok(state) => Ok(Some(state)),
            Err(cause) => Err(DedupError::BadState { path, cause: cause.to_string() }),
        }
    }

    /// Reads the filter of a state.
    pub fn load_filter(&self, state: &State) -> Result<Filter<'static>, DedupError> {
        let Some(name) = &state.filter else {
            let path = self.path.join(STATE);
            return Err(DedupError::BadState { path, cause: "it names no filter".to_owned() });
        };
        let path = self.path.join(name);
        let bytes =
            fs::read(&path).map_err(|cause| DedupError::BadState { path: path.clone(), cause: cause.to_string() })?;
        let filter =
            Filter::decode(&bytes, Check::Everything).map_err(|cause| DedupError::BadSnapshot { path, cause })?;
        Ok(filter.into_owned())
    }

    /// Saves the filter for a checkpoint, beside that of the one before.
    pub fn save_filter(&self, filter: &Filter<'_>, checkpoint: u64) -> Result<String, OutputError> {
        fs::create_dir_all(&self.path).map_err(|cause| OutputError::from_io(&self.path, cause))?;
        let name = format!("filter-{checkpoint}.nearset");
        let options = OutputOptions::default().with_force(true);
        crate::filter_file::save_filter(filter, &self.path.join(&name), &options)?;
        Ok(name)
    }

    /// Makes a state the present one.
    pub fn save(&self, state: &State) -> Result<(), OutputError> {
        let failed = |cause| OutputError::from_io(&self.path, cause);
        fs::create_dir_all(&self.path).map_err(failed)?;
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
        self.remove_others(state);
        Ok(())
    }

    /// Removes filters of older checkpoints. A file that cannot be removed only takes room, until the run is done.
    fn remove_others(&self, state: &State) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let older = name
                .strip_prefix("filter-")
                .and_then(|rest| rest.split_once('.'))
                .is_some_and(|(number, _)| number.parse::<u64>().is_ok_and(|number| number < state.tally.checkpoints));
            if older && state.filter.as_ref() != Some(&name) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        fs::File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// The first thing that differs between two fingerprints.
pub(super) fn first_change(
    was: &BTreeMap<String, String>,
    is: &BTreeMap<String, String>,
) -> Option<(String, String, String)> {
    let nothing = || "not there".to_owned();
    let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
    names.map(|name| (name, was.get(name), is.get(name))).find(|(_, was, is)| was != is).map(|(name, was, is)| {
        (name.clone(), was.cloned().unwrap_or_else(nothing), is.cloned().unwrap_or_else(nothing))
    })
}
