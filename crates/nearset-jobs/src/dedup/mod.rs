//! Near-duplicates out of a corpus, in one pass and fixed memory, by a filter.
//!
//! Claim: at one capacity, the output is the same for one file or the same records split over many.
//! Not here: reading, writing and checkpoints (`run`), and how to print anything.

mod by_filter;
mod options;
mod summary;
mod texts;

use std::sync::Arc;
use std::time::Instant;

use nearset::plan::{Plan, PlanError, RequestError};
use nearset::spec::Terms;
use nearset::{Distance, Filter};
use nearset_records::{ReadOptions, Source};
use nearset_view::run::{CurvePoint, Fact, Others, Promise};
use nearset_view::words::{bytes, count, percent, similarity};

use crate::capacity::{self, Capacity, Known};
use crate::crew::Crew;
use crate::filter_file::check_save;
use crate::report::{self, About};
use crate::run::{Manner, Progress, RunError, Start, Tally};
use by_filter::{ByFilter, Doubts, Saved, Sketching};
use summary::Outcome;

pub use by_filter::TextSketcher;
pub use options::DedupOptions;
pub use summary::{DedupPlan, GenerationSummary, Summary};
pub use texts::{Sketched, TextRun};

/// Similarities at which plans and summaries state what is caught, beside near and far themselves.
const CURVE_STEP: f64 = 0.05;

/// Batches hold about so many records, within the bounds below: keys take more room than short records do, and batches that
/// stay in a core's cache on their way take 3 to 6 % less time than some of 1 MiB.
const RECORDS_A_BATCH: f64 = 1024.0;
const BATCH_BYTES: std::ops::RangeInclusive<f64> = 65536.0..=262144.0;

/// A run that is about to start.
pub struct Dedup {
    start: Start,
    options: DedupOptions,
    read: ReadOptions,
    capacity: Capacity,
}

impl Dedup {
    /// Looks at the inputs and at what an earlier run left, and changes nothing.
    ///
    /// # Errors
    /// If the promise can't be made, two outputs are one file, the records can't go to one output of this name, or the run to be resumed was
    /// another one.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, options: DedupOptions) -> Result<Self, RunError> {
        let bands = plan(&options, 1)?.spec.near().expect("a filter of texts has bands").rule.bands();
        let manner = Manner::Filter { bands, against: options.screen.names() };
        let (run, decisive) = (options.run.clone(), options.fingerprint()?);
        let start = Start::new(sources.into(), run, manner, decisive, &options.screen.filters)?;
        let mut read = ReadOptions::new(options.run.fields.clone());
        let capacity = match (start.saved::<Saved>()?, options.capacity) {
            (Some(saved), _) => saved.capacity,
            (None, Some(records)) => {
                let mean_bytes = capacity::survey(&start.sources, &read)?.capacity.mean_bytes;
                Capacity { records, known: Known::Given, mean_bytes }
            }
            (None, None) => capacity::estimate(&start.sources, &read)?,
        };
        let wanted_bytes = capacity.mean_bytes.unwrap_or(0.0) * RECORDS_A_BATCH;
        read.batch_bytes = wanted_bytes.clamp(*BATCH_BYTES.start(), *BATCH_BYTES.end()) as usize;
        Ok(Self { start, options, read, capacity })
    }

    /// What will be done.
    ///
    /// # Errors
    /// If no such filter can be.
    pub fn plan(&self) -> Result<DedupPlan, RunError> {
        let plan = plan(&self.options, self.capacity.records)?;
        let terms = plan.terms();
        let spec = plan.spec.near().expect("a filter of texts has bands");
        let caught = |similarity| {
            plan.accepted(similarity).map_err(|cause| PlanError::from(RequestError::OutOfRange { what: "near", cause }))
        };
        let curve = similarities(terms)
            .map(|similarity| Ok(CurvePoint::new(similarity, caught(similarity)?)))
            .collect::<Result<_, RunError>>()?;
        Ok(DedupPlan {
            near: plan.request.near,
            far: plan.request.metric.own_unit(terms.far),
            max_false_negative: terms.max_false_negative,
            max_false_positive: terms.max_false_positive,
            shingling: self.options.shingling().to_string(),
            rows: spec.rows,
            bands: spec.rule.bands(),
            capacity: self.capacity,
            bytes: spec.bytes(),
            curve,
            promise: promise(terms, caught)?,
            threads: self.options.run.threads.max(1),
            resumed_records: self.start.resumed_records(),
        })
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be. No output has appeared then; where there is a
    /// checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<Summary, RunError> {
        let (started, plan) = (Instant::now(), self.plan()?);
        if let Some(done) = self.start.finish_stopped(|_| Ok(()))? {
            return Ok(Summary::new(plan, done, &self.options, started));
        }
        let done = self.start.guarded(|outputs| {
            let Self { start, options, read, capacity, .. } = &self;
            if let Some(path) = &options.run.save {
                check_save(path, start.output())?;
            }
            let spec = crate::dedup::plan(options, capacity.records)?.spec;
            options.screen.opened(spec.near(), |against| {
                let (filter, doubts) = match (start.saved::<Saved>()?, start.folder()) {
                    (Some(saved), Some(folder)) => (saved.load(folder)?, saved.doubts),
                    _ => (Filter::new(&spec)?, Doubts::default()),
                };
                let hasher = filter.hasher().expect("a filter of texts has bands");
                let copy_hits = by_filter::copy_hits(plan.near, plan.rows, plan.bands);
                let (bands, crew) = (plan.bands as usize, Crew::new(options.run.threads));
                let mut decider = ByFilter { filter, bands, crew, capacity: *capacity, copy_hits, doubts };
                let worker = Sketching { hasher, against, field: &options.run.fields.item };
                start.carry_out(
                    outputs,
                    read.clone(),
                    (&worker, &mut decider),
                    options.wanted.seed,
                    progress,
                    |decider, tally, outcome| self.page(&decider.filter, &plan, tally, outcome, progress),
                )
            })
        })?;
        Ok(Summary::new(plan, done, &self.options, started))
    }

    /// The page about the run, when all records are decided on; the inputs are read once more.
    fn page(
        &self,
        filter: &Filter<'_>,
        plan: &DedupPlan,
        tally: &Tally,
        outcome: &Outcome,
        progress: &Progress,
    ) -> Result<String, RunError> {
        let options = &self.options;
        let mut warnings = Vec::new();
        if outcome.generations.len() > 1 {
            warnings.push(format!(
                "The filter was made for {} records, which was too few, and grew to {} generations. The curve below is that of all of them \
                 together.",
                count(plan.capacity.records),
                outcome.generations.len()
            ));
        }
        if outcome.crowded > 0 {
            warnings.push(format!(
                "{} of the records that were called near are no copies. What many records have in common may have made them look near, \
                 although no single one is.",
                count(outcome.crowded)
            ));
        }
        let about = About {
            sources: &self.start.sources,
            options: &options.run,
            shingling: options.shingling(),
            warnings,
            memory: outcome.generations.iter().map(|generation| generation.bytes).sum(),
            compared_all: false,
            others: Others::Earlier,
            promised: curve(filter, (0..=100).map(|hundredth| f64::from(hundredth) / 100.0)),
            promise: promise(&options.terms()?, |similarity| Ok::<_, RunError>(caught(filter, similarity)))?,
            plan: plan_facts(plan, outcome),
            facts: option_facts(options, plan),
        };
        report::page(about, tally, progress)
    }
}

/// The filter of a run over about so many texts.
fn plan(options: &DedupOptions, capacity: u64) -> Result<Plan, PlanError> {
    options.wanted.clone().capacity(capacity).plan_dedup()
}

fn promise<E>(terms: &Terms, caught: impl Fn(f64) -> Result<f64, E>) -> Result<Promise, E> {
    let (near, far) = (1.0 - terms.near.value(), 1.0 - terms.far.value());
    Promise::new(near, terms.max_false_negative, Some((far, terms.max_false_positive)), caught)
}

/// Where the curve is stated: every .05 from far to .1 above near.
fn similarities(terms: &Terms) -> impl Iterator<Item = f64> + use<> {
    let (near, far) = (1.0 - terms.near.value(), 1.0 - terms.far.value());
    let (first, last) = ((far / CURVE_STEP).round() as u32, ((near + 0.1) / CURVE_STEP).round() as u32);
    (first..=last).map(|step| f64::from(step) / 20.0).filter(|&similarity| similarity < 1.0)
}

/// The probability, as the filter is now, of being caught at similarities.
fn curve(filter: &Filter<'_>, similarities: impl Iterator<Item = f64>) -> Vec<CurvePoint> {
    similarities.map(|similarity| CurvePoint::new(similarity, caught(filter, similarity))).collect()
}

fn caught(filter: &Filter<'_>, similarity: f64) -> f64 {
    let distance = Distance::new(1.0 - similarity);
    distance.map_or(f64::NAN, |distance| filter.acceptance_probability(distance))
}

fn plan_facts(plan: &DedupPlan, outcome: &Outcome) -> Vec<Fact> {
    let known = match plan.capacity.known {
        Known::Given => "as given",
        Known::Counted => "counted",
        Known::Sampled => "estimated from a sample",
        Known::Guessed => "a guess",
    };
    let items: u64 = outcome.generations.iter().map(|generation| generation.items).sum();
    let fill = outcome.generations.last().map_or(0.0, |generation| generation.fill);
    vec![
        Fact::new("shingles", &plan.shingling),
        Fact::new("bands, rows", format!("{} of {}", plan.bands, plan.rows)),
        Fact::new("made for", format!("{} records, {known}", count(plan.capacity.records))),
        Fact::new("holds", format!("{} records", count(items))),
        Fact::new("memory", bytes(outcome.generations.iter().map(|generation| generation.bytes).sum())),
        Fact::new("bits set", percent(fill)),
        Fact::new(format!("caught at {}", similarity(plan.near)), percent(1.0 - outcome.false_negative)),
        Fact::new(format!("lost at {}", similarity(plan.far)), percent(outcome.false_positive)),
    ]
}

/// What decides the result, but not the seed: it may be secret, and a page is for showing.
fn option_facts(options: &DedupOptions, plan: &DedupPlan) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("near", plan.near),
        Fact::new("max false negative", plan.max_false_negative),
        Fact::new("max false positive", plan.max_false_positive),
        Fact::new("shingling", options.shingling()),
    ];
    facts.extend(options.capacity.map(|records| Fact::new("capacity", count(records))));
    facts.extend(options.screen.names().iter().map(|filter| Fact::new("against", filter)));
    facts
}
