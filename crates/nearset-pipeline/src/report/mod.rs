//! What a run did, as one HTML page that needs nothing but itself.
//!
//! Claim: whatever the texts hold, the page shows it and never obeys it: every string is escaped on its one way into the page,
//! which has no script and forbids any by its content security policy.
//! Invariant: the page is a function of the [`Report`] alone, so that equal runs give equal pages.
//! Not here: reading the records again and comparing them exactly, which the caller does.

mod differences;
mod figures;
mod markup;
mod measured;
mod page;
#[cfg(test)]
mod tests;

pub use measured::{Checked, Measured, measured};
pub use page::render;

/// Everything that the page tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The heading, such as the output's name.
    pub title: String,
    /// Which program made it, and when.
    pub made_by: String,
    /// What happened to the records of each source, in order.
    pub sources: Vec<SourceCounts>,
    /// What was asked for.
    pub promise: Promise,
    /// How likely a record is removed whose nearest earlier one has a similarity, as the filter states.
    pub promised: Vec<CurvePoint>,
    /// The same, as measured by comparing a sample exactly.
    pub measured: Vec<Measured>,
    /// What was repeated most often, most often first.
    pub repeated: Vec<Repeated>,
    /// Sampled removals, each beside the nearest record that was kept.
    pub removals: Vec<Removal>,
    /// What the reader must know before anything else: records left out, a filter that had to grow.
    pub warnings: Vec<String>,
    /// The filter's numbers, by name.
    pub plan: Vec<Fact>,
    /// What the run was told, by name.
    pub options: Vec<Fact>,
    /// How long it took.
    pub timing: Timing,
}

/// What happened to the records of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceCounts {
    /// The file's name.
    pub name: String,
    /// Records kept.
    pub kept: u64,
    /// Records removed because they are near an earlier one.
    pub near: u64,
    /// Records removed because they are near something in a filter built before.
    pub against: u64,
    /// Records that could not be read.
    pub faulty: u64,
}

impl SourceCounts {
    /// Records read.
    pub fn read(&self) -> u64 {
        self.kept + self.removed() + self.faulty
    }

    /// Records removed, for whatever is near them.
    pub fn removed(&self) -> u64 {
        self.near + self.against
    }

    fn sum<'s>(name: String, sources: impl IntoIterator<Item = &'s SourceCounts>) -> Self {
        sources.into_iter().fold(Self { name, ..Self::default() }, |sum, source| Self {
            name: sum.name,
            kept: sum.kept + source.kept,
            near: sum.near + source.near,
            against: sum.against + source.against,
            faulty: sum.faulty + source.faulty,
        })
    }
}

/// What was asked for: similarities, and the rates of error allowed at them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Promise {
    /// The similarity from which on records are duplicates.
    pub near: f64,
    /// The similarity below which they are not.
    pub far: f64,
    /// The most of what lies at exactly `near` that may be missed.
    pub max_false_negative: f64,
    /// The most of what lies at exactly `far` that may be removed.
    pub max_false_positive: f64,
}

/// A point of the promised curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// The similarity with the nearest earlier record.
    pub similarity: f64,
    /// The probability of being removed.
    pub removed: f64,
}

/// A record that came again and again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repeated {
    /// One of the removed records, as [`Excerpt::text`] its beginning at least.
    pub example: Excerpt,
    /// How many such records were removed, at least.
    pub removed: u64,
}

/// A record: where it stands, and its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// Its id, or where there is none, nothing.
    pub id: String,
    /// Its file and line.
    pub place: String,
    /// Its text; the page shows no more than it has room for.
    pub text: String,
}

/// A removed record beside the nearest one that was kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Removal {
    /// What was removed.
    pub removed: Excerpt,
    /// The nearest earlier record that was kept, if any is near at all.
    pub kept: Option<Excerpt>,
    /// The exact similarity of the two.
    pub similarity: f64,
}

/// A named number or choice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value, with its unit.
    pub value: String,
}

impl Fact {
    /// A fact from anything that can be written.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// How long a run took, and over what.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// Seconds from the first byte read to the last one written.
    pub seconds: f64,
    /// Bytes of records read.
    pub bytes: u64,
    /// Bytes of the filter.
    pub filter_bytes: u64,
    /// Threads that hashed.
    pub threads: usize,
}
