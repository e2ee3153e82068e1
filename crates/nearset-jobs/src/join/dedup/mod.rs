//! Near-duplicates out of a corpus, each compared with a record that stays before it goes.
//!
//! Claim: a record is removed only if one that was compared with it, and is kept, has the similarity `near` or more, by their
//! exact shingle sets; where chains are followed, one that is itself kept or removed.
//! Records are decided on in the order in which they are wanted, the most wanted first, and each is compared with those kept
//! before it. Where the first is kept, that is the order of reading, and one pass decides and writes ([`in_order`]); if memory is too small
//! for that, or another one is kept, a first pass decides in rounds that fit, and a second one writes ([`in_rounds`]). Items other than texts are
//! held and compared ([`of_items`]).
//! Not here: reading, writing and checkpoints (`run`), and how to print anything.

mod decided;
mod events;
mod in_order;
mod in_rounds;
mod log;
mod of_contained;
mod of_edits;
mod of_items;
mod ranking;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nearset::Similarity;
use nearset::plan::Request;
use nearset_records::output::{is_same_output, json_string};
use nearset_records::{Cure, OutputFile, ReadOptions, Source, scratch_folder};
use nearset_view::run::{CurvePoint, Fact, Others, Promise};
use nearset_view::words::{bytes, count, percent, similarity};
use serde::{Deserialize, Serialize};

use super::alarm::Alarm;
use super::budget::Entries;
use super::decisions::Decisions;
use super::needs::{BYTES_PER_NAME, Demand};
use super::rank::Keep;
use super::stars::{MOST_LISTED, Stars};
use super::stream::{self, Counts, Cutter};
use super::{Comparison, JoinPlan, Needs, Planned, TextMeasure};
use crate::library::{self, Library, LibraryLock, LibraryWriter, OpenLibrary, Pending, Written};
use crate::report::{self, About};
use crate::run::{Done, Fingerprint, Manner, Outputs, Progress, RunError, RunOptions, Start, Tally, named};
use crate::screen::{Against, Screen};
use decided::Naming;
use in_order::InOrder;
use in_rounds::InRounds;

/// How to remove duplicates by comparing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifiedDedupOptions {
    /// What is near, and what may be missed.
    pub wanted: Request,
    /// How to read, and what to write.
    pub run: RunOptions,
    /// Which of several near records is kept.
    pub keep: Keep,
    /// Whether a record goes that is near only a removed one: in a chain A ~ B ~ C, C for being near B.
    pub follow_chains: bool,
    /// Filters built before. What is near something in them is not compared.
    pub screen: Screen,
    /// What earlier runs kept. What is near a record there goes, and is compared with it.
    pub libraries: Vec<PathBuf>,
    /// The library that what is kept goes to: a new one, or one of `libraries`, which is then extended.
    pub library: Option<PathBuf>,
    /// Memory that the run may take; `None` is what there is.
    pub memory: Option<u64>,
    /// Whether a record is compared with all that share a key with it, however many.
    pub exhaustive: bool,
    /// The similarity that candidates are looked up for, where it is below `near`: the same pairs are then compared whatever `near` is.
    pub candidates: Option<f64>,
    /// What was said about pairs of records, which holds whatever their similarity.
    pub decisions: Decisions,
    /// How texts are measured where the metric does not say it. By containment the longest text is decided on first.
    pub text_measure: Option<TextMeasure>,
}

impl VerifiedDedupOptions {
    /// The first is kept, chains are not followed, and no output is named.
    pub fn new(wanted: Request) -> Self {
        Self {
            wanted,
            run: RunOptions::default(),
            keep: Keep::First,
            follow_chains: false,
            screen: Screen::default(),
            libraries: Vec::new(),
            library: None,
            memory: None,
            exhaustive: false,
            candidates: None,
            decisions: Decisions::default(),
            text_measure: None,
        }
    }

    /// What decides which records are compared.
    fn layout(&self) -> Request {
        let mut layout = self.wanted.clone();
        layout.near = self.candidates.map_or(layout.near, |candidates| candidates.min(layout.near));
        layout
    }

    /// Which of the libraries is extended.
    fn extended(&self) -> Option<usize> {
        let library = self.library.as_ref()?;
        self.libraries.iter().position(|path| is_same_output(library, path))
    }

    /// Everything here that decides the output's bytes.
    fn fingerprint(&self, plan: &JoinPlan) -> Fingerprint {
        // Taken apart, so that a new option can't be forgotten here.
        let Self {
            wanted,
            run: _,
            keep,
            follow_chains,
            screen,
            libraries,
            library: saved,
            memory: _,
            exhaustive,
            candidates,
            decisions,
            text_measure,
        } = self;
        let mut all = Fingerprint::new();
        let mut note = |name: &str, value: String| all.insert(name.to_owned(), value);
        note("verify", "true".to_owned());
        note("near", wanted.near.to_string());
        note("max false negative", plan.max_false_negative.to_string());
        note(
            "metric",
            text_measure.map_or_else(|| plan.metric.name().to_string(), |measure| measure.as_str().to_owned()),
        );
        note("the length of items", format!("{:?}", plan.metric.shape().length));
        note("shingling", plan.shingling.clone().unwrap_or_default());
        note("seed", wanted.seed.to_string());
        note("keep", format!("{keep:?}"));
        note("chain", follow_chains.to_string());
        note("exhaustive", exhaustive.to_string());
        if let Some(candidates) = candidates {
            note("candidates", candidates.to_string());
        }
        if !decisions.is_empty() {
            note("decisions", format!("{:016x}", decisions.digest()));
        }
        note("the library", named(saved.as_deref()));
        for (i, path) in (1..).zip(libraries) {
            // One that is extended changes as the run ends, and is compared by its checksum.
            let is_extended = saved.as_ref().is_some_and(|saved| is_same_output(saved, path));
            let state = if is_extended { "extended".to_owned() } else { library::state_of(path) };
            note(&format!("library {i} to compare with"), format!("{}, {state}", path.display()));
        }
        screen.note(&mut all);
        all
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerifiedDedupSummary {
    /// What was planned.
    pub plan: JoinPlan,
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records kept.
    pub kept: u64,
    /// Records near a kept one.
    pub near: u64,
    /// Records of these that are less near than is wanted, and were marked as duplicates.
    pub marked: u64,
    /// Records near something in each filter built before, with its name. They were not compared.
    pub against: Vec<(String, u64)>,
    /// Records near one of each library, with its name. They were compared.
    pub libraries: Vec<(String, u64)>,
    /// The library that what was kept went to.
    pub saved: Option<PathBuf>,
    /// Records that stayed and may be near another one, because a limit left some out that they were to be compared with.
    pub cut_short: u64,
    /// Ids that decisions name, and no record has.
    pub unknown_ids: u64,
    /// Records of fewer than [`Self::FEW_SHINGLES`] shingles, in which one changed word hides a copy.
    pub short: u64,
    /// Pairs of records that were compared, where that was counted.
    pub compared: Option<u64>,
    /// Texts that were read again for it.
    pub read_again: u64,
    /// Memory of what records are compared with, ids and cache aside.
    pub index_bytes: u64,
    /// Families so large that somebody should look at them.
    pub alarms: Vec<Alarm>,
    /// Seconds that this run took.
    pub seconds: f64,
    /// Seconds in which the report was made, of these.
    pub report_seconds: f64,
}

impl VerifiedDedupSummary {
    /// Of 16 shingles of 5 words one changed word leaves a similarity of .52.
    pub const FEW_SHINGLES: usize = 16;

    /// Whether most records are so short that near copies among them are hardly seen.
    pub fn is_mostly_short(&self) -> bool {
        2 * self.short > self.counts.records - self.counts.faulty
    }
}

/// What comparing came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Outcome {
    /// Records that were decided on.
    records: u64,
    cut_short: u64,
    #[serde(default)]
    unknown_ids: u64,
    short: u64,
    compared: Option<u64>,
    read_again: u64,
    index_bytes: u64,
    alarms: Vec<Alarm>,
    /// What is to become of the library.
    library: Option<Pending>,
}

impl Outcome {
    fn of(stars: &mut Stars, records: u64, short: u64) -> Result<Self, RunError> {
        let alarms = stars.alarms(records)?;
        let (compared, read_again) = (Some(stars.texts.compared), stars.texts.read_again);
        let cut_short = stars.clusters.cut_short;
        let (unknown_ids, index_bytes, library) = (stars.marked.unknown(), stars.bytes(), None);
        Ok(Self { records, cut_short, unknown_ids, short, compared, read_again, index_bytes, alarms, library })
    }
}

/// What a run takes if it keeps all records, unless that is more than there is.
fn needs(start: &Start, options: &VerifiedDedupOptions, plan: &JoinPlan) -> Result<Needs, RunError> {
    let named = if start.wants_names() { BYTES_PER_NAME } else { 0 };
    // Records are held, or lie in scratch space, until all are ranked.
    let ranked = if options.keep == Keep::First { 0 } else { 8 * plan.keys as u64 + BYTES_PER_RANK };
    let scratch = match (&options.run.scratch, start.folder()) {
        (Some(folder), _) => folder.clone(),
        (None, Some(state)) => state.path().parent().map_or_else(PathBuf::new, Path::to_owned),
        (None, None) => scratch_folder(options.run.out.as_deref()),
    };
    let can_spill = plan.reads_again() && start.sources.iter().all(Source::is_rereadable);
    let demand = Demand {
        memory: options.memory,
        scratch: Some(scratch),
        bytes_per_record: named + ranked,
        fixed_bytes: stored_bytes(options, plan)?,
        spilled_per_record: can_spill.then(|| plan.spilled_bytes() + ranked),
        is_new: start.resumed_records() == 0,
    };
    Needs::new(&start.sources, &options.run.fields, plan, demand)
}

/// What the records of libraries take: hardly anything where they are looked up in their files, the common parts of templates aside.
fn stored_bytes(options: &VerifiedDedupOptions, plan: &JoinPlan) -> Result<u64, RunError> {
    let libraries: Vec<(Library, u64)> =
        options.libraries.iter().map(|path| Library::open_with_common(path)).collect::<Result<_, _>>()?;
    let Some((first, _)) = libraries.get(options.extended().unwrap_or(0)) else { return Ok(0) };
    let spec = options.layout().plan_join()?;
    let bytes = libraries.iter().map(|(library, common)| {
        let is_in_place = library.is_read_in_place(&spec, first.model());
        let (each, common) = if is_in_place { (BYTES_STORED, *common) } else { (plan.bytes_per_record, 0) };
        library.records().saturating_mul(each).saturating_add(common.saturating_mul(BYTES_GROUPED))
    });
    Ok(bytes.fold(0, u64::saturating_add))
}

/// What a record of a library takes that is looked up in its file.
const BYTES_STORED: u64 = size_of::<u32>() as u64;

/// What such a record takes besides that is found by its common part, where each has another one.
const BYTES_GROUPED: u64 = 128;

/// What a record takes until it is ranked, its keys aside.
const BYTES_PER_RANK: u64 = 88;

/// Writes how many records are near one that stays.
fn write_copies(out: &mut OutputFile, id: &str, copies: u64) -> Result<(), RunError> {
    let mut line = b"{\"id\":".to_vec();
    json_string(id, &mut line);
    line.extend_from_slice(format!(",\"copies\":{copies}}}\n").as_bytes());
    Ok(out.write(&line)?)
}

/// A run that is about to start.
pub struct VerifiedDedup {
    start: Start,
    options: VerifiedDedupOptions,
    plan: JoinPlan,
    comparison: Comparison,
}

impl VerifiedDedup {
    /// Looks at the inputs and at what an earlier run left, and changes nothing.
    ///
    /// # Errors
    /// If the promise can't be made, two outputs are one file, the records can't go to one output of this name, a pipe would have to be read
    /// twice, or the run to be resumed was another one.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, options: VerifiedDedupOptions) -> Result<Self, RunError> {
        let sources = sources.into();
        let Planned { mut plan, comparison } =
            Planned::new(&sources, (&options.wanted, &options.layout()), options.text_measure, &options.run.fields)?;
        if !plan.reads_again() {
            of_items::check(&options)?;
        }
        let reason = if options.follow_chains { "near an earlier record" } else { "near a kept record" };
        let mut against = options.screen.names();
        against.extend(options.libraries.iter().map(|path| path.display().to_string()));
        if let Some(library) = &options.library
            && options.run.outputs().any(|output| is_same_output(output, library))
        {
            return Err(RunError::SameOutput { path: library.clone() });
        }
        let saves = options.library.is_some() || options.run.save.is_some();
        let (near, measure) = (options.wanted.near, plan.measure());
        let manner = Manner::Compared { reason, near, measure, against, saves };
        let (run, decisive) = (options.run.clone(), options.fingerprint(&plan));
        let mut protected = options.screen.filters.clone();
        protected.extend(options.decisions.path().map(Path::to_owned));
        let start = Start::new(sources, run, manner, decisive, &protected)?;
        if options.keep != Keep::First || options.text_measure.is_some() {
            let why = "what is kept is known only after all was read";
            stream::check_files(&start.sources, why, Cure::SaveToFileOrKeepFirst)?;
        }
        plan.needs = Some(needs(&start, &options, &plan)?);
        Ok(Self { start, options, plan, comparison })
    }

    /// What will be done.
    pub fn plan(&self) -> &JoinPlan {
        &self.plan
    }

    /// How many records an earlier run has already dealt with.
    pub fn resumed_records(&self) -> u64 {
        self.start.resumed_records()
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, or a record is faulty and none may be. No output has appeared then; where there is a
    /// checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<VerifiedDedupSummary, RunError> {
        let started = Instant::now();
        let commit = |outcome: &Outcome| match (&self.options.library, &outcome.library) {
            (Some(path), Some(pending)) => Ok(library::commit(path, pending)?),
            _ => Ok(()),
        };
        let done = match self.start.finish_stopped(commit)? {
            Some(done) => done,
            None => self.start.guarded(|outputs| {
                self.options.screen.opened(None, |against| self.compare(outputs, against, progress))
            })?,
        };
        let Done { tally, outcome, report_seconds, .. } = done;
        let Outcome {
            records: _,
            cut_short,
            unknown_ids,
            short,
            compared,
            read_again,
            index_bytes,
            alarms,
            library: _,
        } = outcome;
        Ok(VerifiedDedupSummary {
            plan: self.plan,
            kept: tally.kept,
            near: tally.near,
            marked: tally.marked,
            against: self.options.screen.names().into_iter().zip(tally.against.iter().copied()).collect(),
            libraries: {
                let counts = tally.against.iter().skip(self.options.screen.filters.len());
                let name = |path: &PathBuf| path.display().to_string();
                self.options.libraries.iter().map(name).zip(counts.copied()).collect()
            },
            saved: self.options.library.clone(),
            counts: tally.into(),
            cut_short,
            unknown_ids,
            short,
            compared,
            read_again,
            index_bytes,
            alarms,
            seconds: started.elapsed().as_secs_f64(),
            report_seconds,
        })
    }

    fn compare(
        &self,
        outputs: Outputs,
        against: &[Against<'_>],
        progress: &Progress,
    ) -> Result<Done<Outcome>, RunError> {
        let Self { start, options, .. } = self;
        let (wanted, fields) = (&options.wanted, &options.run.fields);
        let (of, plan) = ((start, options), &self.plan);
        match &self.comparison {
            Comparison::Contained => return of_contained::compare(of, plan, outputs, against, progress),
            Comparison::Edits(limit) => return of_edits::compare(of, (*limit, plan), outputs, against, progress),
            Comparison::Items(items) => return of_items::compare(of, (items, plan), outputs, against, progress),
            Comparison::Texts => {}
        }
        // Before the library is read that is extended, so that nobody else extends it meanwhile.
        let extended = options.extended();
        if let Some(path) = &options.run.save {
            OutputFile::check(path, start.output())?;
        }
        let lock = options.library.as_ref().map(|path| LibraryLock::take(path, extended.is_some())).transpose()?;
        let opened = OpenLibrary::open_all(&options.libraries)?;
        let libraries: Vec<&Library> = opened.iter().map(|OpenLibrary { library, .. }| library).collect();
        libraries.iter().try_for_each(|library| library.expect_same_chains(options.follow_chains))?;
        let is_in_rounds = self.is_in_rounds()?;
        let saved = start.folder().filter(|_| !is_in_rounds && start.resumed_records() > 0).map(log::load_model);
        let saved = saved.transpose()?;
        let model = saved.as_ref().or_else(|| libraries.get(extended.unwrap_or(0)).map(|library| library.model()));
        let cutter =
            Cutter::with_model(model, &start.sources, &options.layout(), fields, progress)?.with_screen(against);
        // Records that are ranked are cut for another field than the id.
        let cutter = match options.keep {
            Keep::First => cutter.with_decisions(&options.decisions),
            _ => cutter.with_field(options.keep.field().map(str::to_owned)),
        };
        let library = match lock {
            Some(lock) => {
                let (promise, base) = ((&cutter.spec, options.follow_chains), extended.map(|at| libraries[at]));
                Some(LibraryWriter::open(lock, promise, &cutter.model, base, self.written()?)?)
            }
            None => None,
        };
        let needs = self.plan.needs.as_ref();
        let scratch = needs.map_or_else(std::env::temp_dir, |needs| needs.scratch.clone());
        let most_listed = if options.exhaustive { usize::MAX } else { MOST_LISTED };
        let (follow_chains, folder) = (options.follow_chains, start.folder());
        let mut stars = Stars::new(&start.sources, fields, follow_chains, most_listed, &cutter, folder, scratch)
            .near_from(wanted.plan_join()?.near)
            .with_decisions(&options.decisions);
        stars.most_bytes = self.plan.most_bytes();
        opened.into_iter().try_for_each(|library| stars.add_library(library, &cutter))?;
        let read = ReadOptions::new(fields.clone());
        if is_in_rounds {
            // Two passes: the first decides in rounds that fit into memory.
            let memory = self.plan.budget(options.memory);
            let (stored, room) = ((against.len(), library), (memory, self.plan.entry_bytes()));
            let mut decider = InRounds::new(start, options, &cutter, stars, stored, room, progress)?;
            return start.carry_out(
                outputs,
                read,
                (&Naming { fields }, &mut decider),
                wanted.seed,
                progress,
                |_, tally, outcome| self.page(tally, outcome, progress),
            );
        }
        // One pass that decides in the order of reading.
        let mut decider = InOrder::new(stars, start, against.len(), library)?;
        if let (Some(folder), None) = (start.folder(), &saved) {
            log::save_model(folder, &cutter.model)?;
        }
        start.carry_out(outputs, read, (&cutter, &mut decider), wanted.seed, progress, |_, tally, outcome| {
            self.page(tally, outcome, progress)
        })
    }

    /// Whether all is decided before anything is written: not the first is kept, or memory is too small to hold what is kept, or was when the run
    /// began that is resumed.
    fn is_in_rounds(&self) -> Result<bool, RunError> {
        if self.options.keep != Keep::First {
            return Ok(true);
        }
        Ok(match self.start.saved::<serde_json::Value>()? {
            Some(saved) => serde_json::from_value::<in_rounds::Saved>(saved).is_ok(),
            None => self.plan.needs.as_ref().is_some_and(|needs| needs.spilled_bytes > 0),
        })
    }

    /// How far the run to be resumed had come with its library.
    fn written(&self) -> Result<Option<Written>, RunError> {
        if self.options.library.is_none() {
            return Ok(None);
        }
        Ok(match self.is_in_rounds()? {
            false => self.start.saved::<in_order::Saved>()?.and_then(|saved| saved.library),
            true => self.start.saved::<in_rounds::Saved>()?.and_then(|saved| saved.library),
        })
    }

    /// The page about the run, when all records are decided on; the inputs are read once more.
    fn page(&self, tally: &Tally, outcome: &Outcome, progress: &Progress) -> Result<String, RunError> {
        let Self { start, options, plan, .. } = self;
        let wanted = &options.wanted;
        let spec = options.layout().plan_join()?;
        let found =
            |similarity: f64| Similarity::jaccard(similarity).map_or(f64::NAN, |at| spec.success_probability(at));
        let promised = (0..=100).map(|hundredth| f64::from(hundredth) / 100.0);
        let caught = |similarity: f64| if similarity < wanted.near { 0.0 } else { found(similarity) };
        let about = About {
            sources: &start.sources,
            options: &options.run,
            shingling: spec.shingling,
            warnings: Vec::new(),
            memory: outcome.index_bytes,
            compared_all: true,
            others: match (&options.keep, options.follow_chains) {
                (_, true) => Others::Earlier,
                (Keep::First, false) => Others::EarlierKept,
                _ => Others::Kept,
            },
            promised: promised.map(|similarity| CurvePoint::new(similarity, caught(similarity))).collect(),
            promise: Promise::new(wanted.near, plan.max_false_negative, None, |similarity| {
                Ok::<_, RunError>(found(similarity))
            })?,
            plan: vec![
                Fact::new("shingles", spec.shingling),
                Fact::new("keys per record", plan.keys),
                Fact::new("memory", bytes(outcome.index_bytes)),
                Fact::new("pairs compared", count(outcome.compared.unwrap_or(0))),
                Fact::new(format!("caught at {}", similarity(plan.near)), percent(1.0 - plan.missed)),
            ],
            facts: vec![
                Fact::new("verify", true),
                Fact::new("near", wanted.near),
                Fact::new("max false negative", plan.max_false_negative),
                Fact::new("shingling", spec.shingling),
                Fact::new("keep", &options.keep),
                Fact::new("chain", options.follow_chains),
            ],
        };
        report::page(about, tally, progress)
    }
}
