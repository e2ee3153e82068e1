//! Benchmark items inside the records of a corpus: found, and left out or cut out.
//!
//! - `measure`: how much of an item is inside a text, and how that is found fast.
//! - `items`, `set`: items out of files, with the weights of their 3-grams; what is found where.
//! - `promise`: what share of the items will be found if they leak with edits.
//! - `places`: where the words of a text are.
//!
//! Claim: what is found in a record depends on the record, the benchmark set and the thresholds alone, so neither threads nor shards nor
//! the order of records can show. A corpus that was cleaned is found clean. Memory: the set, and a bounded number of batches
//! and examples.
//! Not here: reading, writing and checkpoints (`run`), and how to print anything.

mod items;
mod measure;
mod places;
mod promise;
mod set;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nearset::{Item, Seed};
use nearset_records::output::json_string;
use nearset_records::{Extracted, OutputFile, ReadOptions, RecordError, Source, StateFolder};
use nearset_view::page::render_leaks;
use nearset_view::run::{BenchmarkSummary, Excerpt, Fact, LeakExample, LeakReport};
use serde::{Deserialize, Serialize};

use crate::join::Counts;
use crate::run::{
    Decider, Decision, Done, Fingerprint, Ids, Manner, Part, Progress, RunError, RunOptions, Start, Tally, Verdict,
    Worker,
};

pub use items::{BenchmarkItem, usual_fields};
pub use measure::Thresholds;
pub(crate) use places::char_start;
pub use promise::Promise;
pub use set::{Benchmark, BenchmarkOptions, Finder, FinderRoom, Finding, is_benchmark};

/// Findings of a benchmark that a report shows.
const SHOWN: usize = 40;

/// Bytes of a text that a report shows.
const LONGEST_SHOWN: usize = 6_000;

/// How to search, and what to write.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DecontaminateOptions {
    /// How to read, and what to write; there is nothing to save.
    pub run: RunOptions,
    /// Whether the items are cut out of their records, and the rest is kept.
    pub mask: bool,
    /// Files that were read for the benchmark set, which no output may replace.
    pub protected: Vec<PathBuf>,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecontaminateSummary {
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records that hold no item.
    pub clean: u64,
    /// Records that hold an item.
    pub contaminated: u64,
    /// Those of them that were kept without it.
    pub masked: u64,
    /// Items in records, each as often as it was found.
    pub findings: u64,
    /// By benchmark.
    pub benchmarks: Vec<BenchmarkSummary>,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// A run that is about to start.
pub struct Decontaminate<'f> {
    start: Start,
    finder: &'f Finder,
    options: DecontaminateOptions,
}

impl<'f> Decontaminate<'f> {
    /// Looks at the outputs and at what an earlier run left, and changes nothing.
    ///
    /// # Errors
    /// If two outputs are one file, the records can't go to one output of this name, or the run to be resumed was another one.
    pub fn prepare(
        sources: impl Into<Arc<[Source]>>,
        finder: &'f Finder,
        mut options: DecontaminateOptions,
    ) -> Result<Self, RunError> {
        options.run.save = None;
        options.run.fields.is_cut = options.mask;
        // Taken apart, so that a new option can't be forgotten here.
        let DecontaminateOptions { run, mask, protected } = &options;
        let items = finder.benchmark().items().len();
        if !(0..items).any(|item| finder.is_decidable(item)) {
            return Err(RunError::TooShort { items: items as u64 });
        }
        let Thresholds { share, mass } = finder.thresholds();
        let mut decisive = Fingerprint::new();
        decisive.insert("mask".to_owned(), mask.to_string());
        decisive.insert("share".to_owned(), share.to_string());
        decisive.insert("mass".to_owned(), mass.to_string());
        decisive.insert("the benchmark set".to_owned(), finder.benchmark().digest());
        let manner = Manner::Leaks { cut: mask.then(|| run.fields.item.clone()) };
        let start = Start::new(sources.into(), run.clone(), manner, decisive, protected)?;
        Ok(Self { start, finder, options })
    }

    /// Returns how many records an earlier run has already dealt with.
    pub fn resumed_records(&self) -> u64 {
        self.start.resumed_records()
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be. No output has appeared then; where there is a
    /// checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<DecontaminateSummary, RunError> {
        let started = Instant::now();
        let Self { start, finder, options } = &self;
        let fields = &options.run.fields;
        let done = match start.finish_stopped(|_| Ok(()))? {
            Some(done) => done,
            None => start.guarded(|outputs| {
                let saved = start.saved()?.unwrap_or_else(|| Leaks::new(finder.benchmark()));
                let worker = Searching { finder, mask: options.mask };
                let wants_examples = options.run.report.is_some();
                let mut decider = Judge { finder, options, leaks: saved, wants_examples };
                let page =
                    |judge: &Judge<'_>, tally: &Tally, leaks: &Leaks| Ok(judge.page(&start.sources, tally, leaks));
                let read = ReadOptions::new(fields.clone());
                start.carry_out(outputs, read, (&worker, &mut decider), Seed::default(), progress, page)
            })?,
        };
        let Done { tally, outcome: leaks, .. } = done;
        Ok(DecontaminateSummary {
            clean: tally.kept,
            contaminated: tally.near,
            masked: leaks.masked,
            findings: leaks.findings,
            benchmarks: leaks.by_benchmark(finder),
            counts: tally.into(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// What is found in a record.
#[derive(Default)]
struct Answer {
    findings: Vec<Finding>,
    /// The findings as JSON: the texts are at hand only where they are found.
    json: String,
    /// What is found of the text, for examples.
    texts: Vec<String>,
    /// What is left of the text, if that is kept.
    rest: Option<String>,
}

/// Looks for items, which any number of threads may do.
struct Searching<'w> {
    finder: &'w Finder,
    mask: bool,
}

impl Worker for Searching<'_> {
    type Piece = Vec<Answer>;
    type Room = FinderRoom;

    fn room(&self) -> FinderRoom {
        FinderRoom::default()
    }

    fn clear(&self, _: &mut FinderRoom, answers: &mut Vec<Answer>) {
        answers.clear();
    }

    fn add(
        &self,
        room: &mut FinderRoom,
        extracted: &Extracted<'_>,
        i: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), RecordError> {
        answers.push(match extracted.item(i).map_err(Clone::clone)? {
            Item::Text(text) => self.answer(text, room),
            _ => Answer::default(),
        });
        Ok(())
    }
}

impl Searching<'_> {
    fn answer(&self, text: &str, room: &mut FinderRoom) -> Answer {
        let findings = self.finder.find(text, room);
        if findings.is_empty() {
            return Answer::default();
        }
        let rest = self.mask.then(|| self.finder.mask(text, &findings, room));
        let rest = rest.filter(|rest| self.finder.has_words(rest, room));
        let texts = findings.iter().map(|finding| text[finding.bytes.clone()].to_owned()).collect();
        Answer { json: json(self.finder.benchmark(), text, &findings), findings, texts, rest }
    }
}

/// Returns findings as a JSON array.
fn json(benchmark: &Benchmark, text: &str, findings: &[Finding]) -> String {
    let mut out = b"[".to_vec();
    for (i, Finding { item, field, share, score, bytes, line }) in findings.iter().enumerate() {
        let found = &benchmark.items()[*item];
        out.extend_from_slice(if i == 0 { b"{\"benchmark\":" } else { b",{\"benchmark\":" });
        json_string(&benchmark.files()[found.file], &mut out);
        out.extend_from_slice(b",\"item\":");
        json_string(&found.id, &mut out);
        out.extend_from_slice(b",\"field\":");
        json_string(field, &mut out);
        let (start, end) = (bytes.start, bytes.end);
        let numbers =
            format!(",\"share\":{share:.4},\"score\":{score:.4},\"bytes\":[{start},{end}],\"line\":{line},\"text\":",);
        out.extend_from_slice(numbers.as_bytes());
        json_string(&text[bytes.clone()], &mut out);
        out.extend_from_slice(b",\"item_text\":");
        json_string(&evidence(found, field), &mut out);
        out.push(b'}');
    }
    out.push(b']');
    String::from_utf8(out).expect("texts as JSON are UTF-8")
}

/// Returns the text of the field that was found, or of all.
fn evidence(item: &BenchmarkItem, field: &str) -> String {
    let own = item.fields.iter().find(|(name, _)| name == field);
    own.map_or_else(|| item.text(), |(_, text)| text.clone())
}

/// What was found so far; it is also what a checkpoint holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Leaks {
    findings: u64,
    masked: u64,
    /// By item, the records that hold it.
    records: Vec<u64>,
    /// By benchmark, the records that hold any of its items.
    by_file: Vec<u64>,
    /// By benchmark, the most doubtful findings: of equal score the first.
    examples: Vec<Vec<(u64, LeakExample)>>,
}

impl Leaks {
    fn new(benchmark: &Benchmark) -> Self {
        let files = benchmark.files().len();
        Self {
            findings: 0,
            masked: 0,
            records: vec![0; benchmark.items().len()],
            by_file: vec![0; files],
            examples: vec![Vec::new(); files],
        }
    }

    fn by_benchmark(&self, finder: &Finder) -> Vec<BenchmarkSummary> {
        let benchmark = finder.benchmark();
        let mut all: Vec<BenchmarkSummary> = benchmark.files().iter().map(BenchmarkSummary::new).collect();
        for (number, item) in benchmark.items().iter().enumerate() {
            let of = &mut all[item.file];
            of.items += 1;
            of.found += u64::from(self.records[number] > 0);
            if !finder.is_decidable(number) {
                of.too_short.push(item.id.clone());
            }
        }
        all.iter_mut().zip(&self.by_file).for_each(|(of, &records)| of.records = records);
        all
    }
}

/// Judges records by what was found in them, each alone.
struct Judge<'j> {
    finder: &'j Finder,
    options: &'j DecontaminateOptions,
    leaks: Leaks,
    wants_examples: bool,
}

impl Judge<'_> {
    /// Notes what was found in a record.
    fn note(&mut self, answer: &Answer, place: impl Fn() -> (String, String)) {
        let leaks = &mut self.leaks;
        let benchmark = self.finder.benchmark();
        leaks.findings += answer.findings.len() as u64;
        leaks.masked += u64::from(answer.rest.is_some());
        let mut items: Vec<usize> = answer.findings.iter().map(|finding| finding.item).collect();
        items.sort_unstable();
        items.dedup();
        items.iter().for_each(|&item| leaks.records[item] += 1);
        let mut files: Vec<usize> = items.iter().map(|&item| benchmark.items()[item].file).collect();
        files.sort_unstable();
        files.dedup();
        files.iter().for_each(|&file| leaks.by_file[file] += 1);
        if !self.wants_examples {
            return;
        }
        for (finding, text) in answer.findings.iter().zip(&answer.texts) {
            let item = &benchmark.items()[finding.item];
            let examples = &mut leaks.examples[item.file];
            // Of equal scores the first stays. Scores are positive, so their bits are in their order.
            let order = finding.score.to_bits();
            let at = examples.partition_point(|(other, _)| *other <= order);
            if at == SHOWN {
                continue;
            }
            let (id, place) = place();
            let bytes =
                format!("{place}, line {}, bytes {} to {}", finding.line, finding.bytes.start, finding.bytes.end);
            let example = LeakExample {
                score: finding.score,
                share: finding.share,
                field: finding.field.clone(),
                record: Excerpt { id, place: bytes, text: shortened(text) },
                item: Excerpt {
                    id: item.id.clone(),
                    place: benchmark.files()[item.file].clone(),
                    text: shortened(&evidence(item, &finding.field)),
                },
            };
            examples.insert(at, (order, example));
            examples.truncate(SHOWN);
        }
    }

    fn page(&self, sources: &[Source], tally: &Tally, leaks: &Leaks) -> String {
        let run = &self.options.run;
        let mut warnings = Vec::new();
        if run.out.is_none() {
            warnings.push("This was a dry run: no record was written.".to_owned());
        } else if run.annotate {
            warnings.push("All records were kept; those that hold items are marked in the output.".to_owned());
        }
        if tally.faulty > 0 {
            warnings.push(format!("{} records could not be read and were left out.", tally.faulty));
        }
        let Thresholds { share, mass } = self.finder.thresholds();
        let output = run.out.as_ref().map_or("a dry run".to_owned(), |out| format!("output {}", out.display()));
        let classes = self.finder.promise();
        let report = LeakReport {
            title: match sources {
                [only] => format!("Benchmark items in {}", only.name),
                many => format!("Benchmark items in {} files", many.len()),
            },
            made_by: format!("nearset {} decontaminate, {output}", env!("CARGO_PKG_VERSION")),
            warnings,
            records: tally.records,
            bytes: tally.bytes,
            contaminated: tally.near,
            masked: leaks.masked,
            findings: leaks.findings,
            benchmarks: leaks.by_benchmark(self.finder),
            promise: classes.iter().map(Promise::row).collect(),
            examples: leaks.examples.iter().map(|all| all.iter().map(|(_, one)| one.clone()).collect()).collect(),
            options: vec![
                Fact::new("share", share),
                Fact::new("mass", mass),
                Fact::new("mask", self.options.mask),
                Fact::new("background documents", self.finder.benchmark().background()),
                Fact::new("text field", &run.fields.item),
            ],
        };
        render_leaks(&report)
    }
}

/// Cuts a text to what a page shows.
fn shortened(text: &str) -> String {
    text[..char_start(text, LONGEST_SHOWN)].to_owned()
}

impl Decider for Judge<'_> {
    type Piece = Vec<Answer>;
    type Outcome = Leaks;

    fn decide(
        &mut self,
        part: Part<'_, Vec<Answer>>,
        decisions: &mut Vec<Decision>,
        names: &mut Ids,
    ) -> Result<(), RunError> {
        let sound = part.sound();
        for (i, answer) in part.sound_records().zip(&part.piece[sound]) {
            if answer.findings.is_empty() {
                decisions.push(Decision { verdict: Verdict::Kept, family: None });
                continue;
            }
            let place = || {
                let place = format!("{}:{}", part.batch.name(), part.batch.line(i));
                let id = part.ids.get(i);
                (if id == place { String::new() } else { id.to_owned() }, place)
            };
            self.note(answer, place);
            let benchmark = self.finder.benchmark();
            let surest = answer.findings.iter().fold(&answer.findings[0], |a, b| if b.score > a.score { b } else { a });
            let item = &benchmark.items()[surest.item];
            let verdict = Verdict::Leaks {
                findings: names.push(&answer.json),
                name: names.push(&format!("{}: {}", benchmark.files()[item.file], item.id)),
                share: surest.share,
                rest: answer.rest.as_deref().map(|rest| names.push(rest)),
            };
            decisions.push(Decision { verdict, family: None });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.finder.bytes()
    }

    fn checkpoint_bytes(&self) -> u64 {
        // Two digits and a comma per item.
        3 * self.leaks.records.len() as u64
    }

    fn save(&mut self, folder: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        serde_json::to_value(&self.leaks).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&mut self, _: &mut OutputFile) -> Result<(), RunError> {
        Ok(())
    }

    fn outcome(&mut self, _: &Tally) -> Result<Leaks, RunError> {
        Ok(self.leaks.clone())
    }
}
