//! What every run that writes records is told, and what of it decides the output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearset_records::{Fields, ItemField, Source};

/// What to do with a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum OnError {
    /// Stop, and leave no output.
    #[default]
    Fail,
    /// Leave it out, count it and say so.
    Skip,
    /// Write it as it is, compared with nothing, count it and say so.
    Keep,
}

/// How to read, and what to write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// What a record's text and id are called.
    pub fields: Fields,
    /// What to do with a record that cannot be read.
    pub on_error: OnError,
    /// Keep every record and add to each what was found, instead of leaving those out that are near another.
    pub annotate: bool,
    /// Where kept records go; `None` is a dry run.
    pub out: Option<PathBuf>,
    /// Where to say what was left out and why.
    pub removed: Option<PathBuf>,
    /// Whether the texts of what was left out stand there too.
    pub removed_text: bool,
    /// Where a page about the run goes. It takes a second reading of the inputs, to compare a sample of records exactly.
    pub report: Option<PathBuf>,
    /// Where what the decider came to goes: a filter, or how many copies each kept record has.
    pub save: Option<PathBuf>,
    /// Where texts go that can't be read again where they lie; `None` is the state of the run, or a folder for temporary files.
    pub scratch: Option<PathBuf>,
    /// Whether existing outputs may be replaced.
    pub force: bool,
    /// Whether to go on where a run that was stopped took its last checkpoint.
    pub resume: bool,
    /// Threads that hash.
    pub threads: usize,
    /// Bytes of records between checkpoints; `None` goes by what a checkpoint writes.
    pub checkpoint_bytes: Option<u64>,
}

impl Default for RunOptions {
    /// Returns the usual options; no output is named yet.
    fn default() -> Self {
        Self {
            fields: Fields::new("text", ItemField::Text),
            on_error: OnError::Fail,
            annotate: false,
            out: None,
            removed: None,
            removed_text: false,
            report: None,
            save: None,
            scratch: None,
            force: false,
            resume: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            checkpoint_bytes: None,
        }
    }
}

/// Everything that decides an output's bytes, by the name the user knows it by.
pub(crate) type Fingerprint = BTreeMap<String, String>;

impl RunOptions {
    /// Returns all files that the run writes.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.out, &self.removed, &self.save, &self.report].into_iter().flatten()
    }

    /// Returns everything here that decides the output's bytes. Threads are not among it, nor what to do with faulty records: a run that
    /// stopped at one can go on without it.
    pub(super) fn fingerprint(&self, sources: &[Source]) -> Fingerprint {
        // Taken apart, so that a new option can't be forgotten here.
        let Self {
            fields,
            on_error: _,
            annotate,
            out,
            removed,
            removed_text,
            report,
            save,
            scratch,
            force: _,
            resume: _,
            threads: _,
            checkpoint_bytes,
        } = self;
        let mut all = Fingerprint::new();
        let mut note = |name: &str, value: String| all.insert(name.to_owned(), value);
        note("the version of nearset", env!("CARGO_PKG_VERSION").to_owned());
        note("text field", fields.item.clone());
        note("id field", fields.id.clone().unwrap_or_else(|| "none".to_owned()));
        note("annotate", annotate.to_string());
        note("removed", named(removed.as_deref()));
        note("removed text", removed_text.to_string());
        note("save", named(save.as_deref()));
        note("scratch", named(scratch.as_deref()));
        note("the output", named(out.as_deref()));
        note("the distance of checkpoints", format!("{checkpoint_bytes:?}"));
        note("report", named(report.as_deref()));
        note("the number of inputs", sources.len().to_string());
        for (i, source) in sources.iter().enumerate() {
            note(&format!("input {}", i + 1), format!("{} ({})", source.name, source.format));
            note(&state_of_input(i), source.state());
            if let Some(sum) = source.ids_checksum() {
                note(&format!("the ids of input {}", i + 1), format!("{sum:016x}"));
            }
        }
        all
    }
}

/// Returns what a fingerprint calls the state of an input, which may change where it was not read yet.
pub(super) fn state_of_input(source: usize) -> String {
    format!("the size or time of input {}", source + 1)
}

/// Returns a path, or that there is none.
pub(crate) fn named(path: Option<&Path>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| path.display().to_string())
}

/// Returns the first thing that differs between two fingerprints.
pub(super) fn first_change(was: &Fingerprint, is: &Fingerprint) -> Option<(String, String, String)> {
    let nothing = || "not there".to_owned();
    let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
    names.map(|name| (name, was.get(name), is.get(name))).find(|(_, was, is)| was != is).map(|(name, was, is)| {
        (name.clone(), was.cloned().unwrap_or_else(nothing), is.cloned().unwrap_or_else(nothing))
    })
}
