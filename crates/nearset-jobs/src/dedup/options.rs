//! What a run is told, and what of it decides the output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use nearset::Shingling;
use nearset::family::WorkLimit;
use nearset::plan::{PlanError, Request};
use nearset::spec::Terms;

use nearset_records::extract::{Fields, ItemField};
use nearset_records::input::Source;

/// What to do with a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum OnError {
    /// Stop, and leave no output.
    #[default]
    Fail,
    /// Leave it out, count it and say so.
    Skip,
}

/// How to deduplicate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DedupOptions {
    /// What is near, and what is promised.
    pub wanted: Request,
    /// What a record's text and id are called.
    pub fields: Fields,
    /// Distinct texts to make room for; `None` estimates them.
    pub capacity: Option<u64>,
    /// What to do with a record that cannot be read.
    pub on_error: OnError,
    /// Keep every record and add to each whether it is a near duplicate, instead of leaving those out.
    pub annotate: bool,
    /// Where kept records go; `None` is a dry run.
    pub out: Option<PathBuf>,
    /// Where to say what was left out and why.
    pub removed: Option<PathBuf>,
    /// Where to save the filter.
    pub save: Option<PathBuf>,
    /// Filters built before: what is near anything in them is left out too.
    pub against: Vec<PathBuf>,
    /// Whether filters built before may hold more than they are made for.
    pub allow_overfull: bool,
    /// How much work filters built before may ask for.
    pub work: WorkLimit,
    /// Whether existing outputs may be replaced.
    pub force: bool,
    /// Whether to go on where a run that was stopped took its last checkpoint.
    pub resume: bool,
    /// Threads that hash.
    pub threads: usize,
    /// Bytes of records between checkpoints; `None` goes by the size of the filter.
    pub checkpoint_bytes: Option<u64>,
    /// Where a page about the run goes. It takes a second reading of the inputs, to compare a sample of records exactly.
    pub report: Option<PathBuf>,
}

impl DedupOptions {
    /// The usual options; no output is named yet.
    pub fn new(wanted: Request) -> Self {
        Self {
            wanted,
            fields: Fields::new("text", ItemField::Text),
            capacity: None,
            on_error: OnError::Fail,
            annotate: false,
            out: None,
            removed: None,
            save: None,
            against: Vec::new(),
            allow_overfull: false,
            work: WorkLimit::Usual,
            force: false,
            resume: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            checkpoint_bytes: None,
            report: None,
        }
    }

    /// What is promised, no default left open.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn terms(&self) -> Result<Terms, PlanError> {
        Ok(*self.wanted.clone().capacity(1).plan_dedup()?.terms())
    }

    /// How texts are cut.
    pub fn shingling(&self) -> Shingling {
        self.wanted.shingling().unwrap_or_default()
    }

    /// All files that the run writes.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.out, &self.removed, &self.save, &self.report].into_iter().flatten()
    }

    /// Everything that decides the output's bytes, by the name the user knows it by. Threads are not among it, nor what to do
    /// with faulty records: a run that stopped at one can go on without it.
    pub(super) fn fingerprint(&self, sources: &[Source]) -> Result<BTreeMap<String, String>, PlanError> {
        // Taken apart, so that a new option can't be forgotten here.
        let Self {
            wanted,
            fields,
            capacity,
            on_error: _,
            annotate,
            out,
            removed,
            save,
            against,
            allow_overfull: _,
            work: _,
            force: _,
            resume: _,
            threads: _,
            checkpoint_bytes,
            report,
        } = self;
        let mut all = BTreeMap::new();
        let mut note = |name: &str, value: String| all.insert(name.to_owned(), value);
        note("the version of nearset", env!("CARGO_PKG_VERSION").to_owned());
        let terms = self.terms()?;
        note("--near", format!("{}, far at {:.4}", wanted.near, wanted.metric.own_unit(terms.far)));
        note("--max-fn", terms.max_false_negative.to_string());
        note("--max-fp", terms.max_false_positive.to_string());
        note("--shingle", self.shingling().to_string());
        note("--seed", wanted.seed.to_string());
        note("--text-field", fields.item.clone());
        note("--id-field", format!("{:?}", fields.id));
        note("--capacity", format!("{capacity:?}"));
        note("--annotate", annotate.to_string());
        note("--removed", format!("{removed:?}"));
        note("--save", format!("{save:?}"));
        note("the output", format!("{out:?}"));
        note("the distance of checkpoints", format!("{checkpoint_bytes:?}"));
        note("--report", format!("{report:?}"));
        note("the number of --against", against.len().to_string());
        for path in against {
            note(&format!("--against {}", path.display()), of_file(path));
        }
        note("the number of inputs", sources.len().to_string());
        for (i, source) in sources.iter().enumerate() {
            let state = source.path().map(of_file).unwrap_or_default();
            note(&format!("input {}", i + 1), format!("{} ({}), {state}", source.name, source.format));
        }
        Ok(all)
    }
}

/// A file's size and time of change.
fn of_file(path: &Path) -> String {
    let Ok(metadata) = path.metadata() else {
        return "unreadable".to_owned();
    };
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = changed.map_or(0, |time| time.as_nanos());
    format!("{} bytes, changed at {nanoseconds}", metadata.len())
}
