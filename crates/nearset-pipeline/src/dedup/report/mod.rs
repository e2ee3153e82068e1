//! What a run did, as one HTML page that needs nothing but itself.
//!
//! Claim: whatever the texts hold, the page shows it and never obeys it: every string is escaped on its one way into the page,
//! which has no script and forbids any by its content security policy.
//! Invariant: the page is a function of the records, their order and the options. It names neither time nor threads, so equal runs
//! give equal pages.

mod differences;
mod figures;
mod markup;
mod measured;
mod page;
mod recheck;
mod run;
mod samples;
#[cfg(test)]
mod tests;

pub(super) use run::page_of_run;
pub(super) use samples::{Place, SAMPLED, Samples, is_sampled};

use super::{CurvePoint, SourceSummary, Stated};
use measured::Measured;

/// Everything that the page tells.
#[derive(Debug, Clone, PartialEq, Default)]
struct Report {
    /// The heading.
    title: String,
    /// Which program made it, and for which output.
    made_by: String,
    /// What the reader must know before anything else: records left out, a filter that had to grow.
    warnings: Vec<String>,
    /// What happened to the records of each source, in order.
    sources: Vec<SourceSummary>,
    /// Bytes of records read.
    bytes: u64,
    /// Bytes of the filter.
    filter_bytes: u64,
    /// How likely a record is caught whose nearest earlier one has a similarity, as the filter states.
    promised: Vec<CurvePoint>,
    /// What of it is said in words.
    stated: Stated,
    /// The same, as measured by comparing a sample exactly.
    measured: Vec<Measured>,
    /// How many records were compared exactly.
    compared: u64,
    /// Why no record was compared exactly, if none was.
    unchecked: Option<String>,
    /// What was repeated most often, most often first.
    repeated: Vec<Repeated>,
    /// Sampled removals, each beside the nearest record that was kept.
    removals: Vec<Removal>,
    /// The filter's numbers, by name.
    plan: Vec<Fact>,
    /// What the run was told, by name.
    options: Vec<Fact>,
}

/// A record that came again and again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Repeated {
    /// One of the removed records, as [`Excerpt::text`] its beginning at least.
    example: Excerpt,
    /// How many such records were removed, at least.
    removed: u64,
}

/// A record: where it stands, and its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Excerpt {
    /// Its id, or where there is none, nothing.
    id: String,
    /// Its file and line.
    place: String,
    /// Its text; the page shows no more than it has room for.
    text: String,
}

/// A removed record beside the nearest one that was kept.
#[derive(Debug, Clone, PartialEq, Default)]
struct Removal {
    /// What was removed.
    removed: Excerpt,
    /// The nearest earlier record that was kept, if any is near at all.
    kept: Option<Excerpt>,
    /// The exact similarity of the two.
    similarity: f64,
}

/// A named number or choice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Fact {
    /// Its name.
    name: String,
    /// Its value, with its unit.
    value: String,
}

impl Fact {
    /// A fact from anything that can be written.
    fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}
