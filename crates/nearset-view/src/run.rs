//! What a run did, as plain data.

use serde::{Deserialize, Serialize};

/// What happened to the records of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceSummary {
    /// The file's name.
    pub name: String,
    /// Records read.
    pub records: u64,
    /// Records with nothing near before them.
    pub kept: u64,
    /// Records near an earlier one.
    pub near: u64,
    /// Records near something in a filter given by `--against`.
    pub against: u64,
    /// Records that could not be read.
    pub faulty: u64,
    /// Whether reading it broke off.
    pub broken: bool,
}

impl SourceSummary {
    /// Returns a source of which nothing has been read yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Records near an earlier one or near something in a filter built before.
    pub fn removed(&self) -> u64 {
        self.near + self.against
    }

    /// Several sources as one.
    pub fn sum<'s>(name: String, sources: impl IntoIterator<Item = &'s SourceSummary>) -> Self {
        sources.into_iter().fold(Self { name, ..Self::default() }, |sum, source| Self {
            name: sum.name,
            records: sum.records + source.records,
            kept: sum.kept + source.kept,
            near: sum.near + source.near,
            against: sum.against + source.against,
            faulty: sum.faulty + source.faulty,
            broken: sum.broken || source.broken,
        })
    }
}

/// How likely a record is caught whose nearest earlier one has a similarity.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CurvePoint {
    /// The similarity.
    pub similarity: f64,
    /// The probability.
    pub caught: f64,
}

impl CurvePoint {
    /// Returns a point of a curve.
    pub fn new(similarity: f64, caught: f64) -> Self {
        Self { similarity, caught }
    }
}

/// What becomes of records by how like the nearest earlier one they are, in the few numbers that matter.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Promise {
    /// What is caught at `near`.
    pub near: CurvePoint,
    /// The least that is promised to be caught at exactly `near`.
    pub least_near: f64,
    /// What is caught a little above it.
    pub above: Vec<CurvePoint>,
    /// What is lost though it is not near; `None` where each record is compared before it goes.
    pub lost: Option<Loss>,
}

/// What is lost though it is not near.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loss {
    /// What is lost at `far`.
    pub far: CurvePoint,
    /// The most that is promised to be lost at exactly `far`.
    pub most_far: f64,
    /// What is lost of records that have nothing in common with an earlier one.
    pub unrelated: f64,
}

impl Promise {
    /// Asks the probability of being caught at each similarity; `far` is the similarity at which losses are stated, with the most that may be
    /// lost.
    ///
    /// # Errors
    /// The first of `caught`.
    pub fn new<E>(
        near: f64,
        max_false_negative: f64,
        far: Option<(f64, f64)>,
        caught: impl Fn(f64) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let point = |similarity: f64| Ok(CurvePoint { similarity, caught: caught(similarity)? });
        let above = [0.05, 0.1].map(|more| near + more).into_iter().filter(|&similarity| similarity < 0.995);
        let loss = |(far, most_far)| Ok(Loss { far: point(far)?, most_far, unrelated: caught(0.0)? });
        Ok(Self {
            near: point(near)?,
            least_near: 1.0 - max_false_negative,
            above: above.map(point).collect::<Result<_, E>>()?,
            lost: far.map(loss).transpose()?,
        })
    }
}

/// How often records of a range of similarities were removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The least similarity of the range.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The mean similarity of what was checked.
    pub similarity: f64,
    /// The estimated rate.
    pub removed: f64,
    /// The lower end of its 95 % interval.
    pub at_least: f64,
    /// The upper end.
    pub at_most: f64,
    /// Records that were compared.
    pub checked: u64,
}

/// Everything that the page tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// Which program made it, and for which output.
    pub made_by: String,
    /// What the reader must know before anything else: records left out, a filter that had to grow.
    pub warnings: Vec<String>,
    /// What happened to the records of each source, in order.
    pub sources: Vec<SourceSummary>,
    /// Bytes of records read.
    pub bytes: u64,
    /// Bytes of the filter, or of the index that records were compared by.
    pub memory: u64,
    /// Whether each record was compared with another before it went, rather than looked up in a filter.
    pub compared_all: bool,
    /// How likely a record is caught whose nearest earlier one has a similarity, as stated beforehand.
    pub promised: Vec<CurvePoint>,
    /// What of it is said in words.
    pub promise: Promise,
    /// The same, as measured by comparing a sample exactly.
    pub measured: Vec<Measured>,
    /// Bytes of the longest record that is sampled.
    pub longest_sampled: u64,
    /// How many sampled records were compared exactly with others.
    pub compared: u64,
    /// With which others.
    pub others: Others,
    /// Why no record was compared exactly, if none was.
    pub unchecked: Option<String>,
    /// What was repeated most often, most often first.
    pub repeated: Vec<Repeated>,
    /// Sampled removals, each beside the nearest record that was kept.
    pub removals: Vec<Removal>,
    /// The filter's numbers, by name.
    pub plan: Vec<Fact>,
    /// What the run was told, by name.
    pub options: Vec<Fact>,
}

/// The records that a sampled one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Others {
    /// All earlier ones.
    #[default]
    Earlier,
    /// All earlier ones that were kept.
    EarlierKept,
    /// All that were kept; if it was kept itself, all earlier ones of them.
    Kept,
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Excerpt {
    /// Its id; empty where it has none.
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
    /// Returns a fact from anything that can be written.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}
/// What was found of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct BenchmarkSummary {
    /// The file's name.
    pub name: String,
    /// Its items.
    pub items: u64,
    /// Those of them that are in some record.
    pub found: u64,
    /// Records that hold one.
    pub records: u64,
    /// Ids of items that are too short to decide on.
    pub too_short: Vec<String>,
}

impl BenchmarkSummary {
    /// Returns a benchmark of which nothing is known yet.
    pub fn new(name: impl ToString) -> Self {
        Self { name: name.to_string(), ..Self::default() }
    }
}

/// What share of the items of a length is found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromiseRow {
    /// The length in words.
    pub words: String,
    /// How many items there are.
    pub items: u64,
    /// By share of words edited, the share that is found.
    pub found: Vec<(f64, f64)>,
}

/// An item beside the part of a record that holds it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LeakExample {
    /// How many times the weight is there that is needed.
    pub score: f64,
    /// Which share of the item's weight is there.
    pub share: f64,
    /// The field that was found.
    pub field: String,
    /// The part of the record.
    pub record: Excerpt,
    /// The item.
    pub item: Excerpt,
}

/// Everything that a page about benchmark items in a corpus shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeakReport {
    /// The heading.
    pub title: String,
    /// The program and its output.
    pub made_by: String,
    /// What a reader must know first.
    pub warnings: Vec<String>,
    /// Records read.
    pub records: u64,
    /// Bytes of records read.
    pub bytes: u64,
    /// Records that hold an item.
    pub contaminated: u64,
    /// Those of them that were kept without it.
    pub masked: u64,
    /// Items in records, each as often as it was found.
    pub findings: u64,
    /// By benchmark, in order.
    pub benchmarks: Vec<BenchmarkSummary>,
    /// What is found of leaks with edits.
    pub promise: Vec<PromiseRow>,
    /// By benchmark, findings, the most doubtful first.
    pub examples: Vec<Vec<LeakExample>>,
    /// How it was run.
    pub options: Vec<Fact>,
}
