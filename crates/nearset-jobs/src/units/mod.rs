//! Paragraphs, lines or sentences that were there before, cut out of the texts that repeat them.
//!
//! - `split`: what the parts of a text are.
//! - `seen`: which parts were there before.
//!
//! Claim: a part goes if, and only if, an equal one stays before it, in this text or an earlier one: equal in its words, as
//! [`Shingler::normalise`] gives them, by 128 bits of their hash. What has no words stays. By a Bloom filter instead, a part that was
//! not there before goes at the rate that the plan states. What is left of a text has its bytes. The output is a function of the records, their
//! order and the options.
//! Not here: reading, writing and checkpoints (`run`), and how to print anything.

mod seen;
mod split;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use memchr::memchr_iter;
use nearset::{Item, Seed, Shingler, Shingling};
use nearset_records::output::json_string;
use nearset_records::{
    Arena, Batch, Extracted, InputError, OutputFile, ReadOptions, Reader, RecordError, Source, StateFolder, extract,
};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::capacity::{found, survey};
use crate::decontaminate::char_start;
use crate::join::Counts;
use crate::memory;
use crate::run::{
    Decider, Decision, Done, Fingerprint, Ids, Manner, Part, Progress, RunError, RunOptions, Start, Tally, Verdict,
    Worker,
};
use seen::{BYTES_PER_HASH, Hash, Saved, Seen, Spread};

pub use split::Unit;

/// What becomes of texts that lose all their parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Empty {
    /// Their records are left out.
    #[default]
    Drop,
    /// Their records stay, with an empty text.
    Keep,
}

impl fmt::Display for Empty {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Drop => "drop",
            Self::Keep => "keep",
        })
    }
}

impl FromStr for Empty {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "drop" => Ok(Self::Drop),
            "keep" => Ok(Self::Keep),
            other => Err(format!("{other:?} is none of drop, keep")),
        }
    }
}

/// What is cut, and what is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnitOptions {
    /// How to read, and what to write; there is nothing to save or to report.
    pub run: RunOptions,
    /// What is cut out where it is repeated.
    pub unit: Unit,
    /// Of words and characters: parts are equal if their words are. Of bytes: if they are equal but for the space around them.
    pub shingling: Shingling,
    /// Parts of fewer words stay.
    pub min_words: usize,
    /// The share of a text's bytes beyond which its record is left out as a whole, and none of its parts counts as seen.
    pub max_share: f64,
    /// What becomes of texts that lose all their parts.
    pub empty: Empty,
    /// Whether a Bloom filter of fixed size tells what was seen, instead of all hashes.
    pub by_filter: bool,
    /// How many distinct parts the filter is made for; otherwise estimated from a sample.
    pub capacity: Option<u64>,
    /// The rate at which the filter may take a new part for one that was seen.
    pub max_false_positive: f64,
    /// Bytes that hashes may take; `None` is what the machine has left.
    pub memory: Option<u64>,
    /// From which the filter's functions are drawn.
    pub seed: Seed,
}

impl UnitOptions {
    /// The usual rate at which a filter may take a new part for one that was seen.
    pub const MAX_FALSE_POSITIVE: f64 = 1e-6;

    /// Bytes of memory that a different part takes at most, unless a filter tells what was seen.
    pub const BYTES_PER_UNIT: u64 = BYTES_PER_HASH;

    /// The usual options for a kind of part.
    pub fn new(unit: Unit) -> Self {
        Self {
            run: RunOptions::default(),
            unit,
            shingling: Shingling::default(),
            min_words: 1,
            max_share: 1.0,
            empty: Empty::default(),
            by_filter: false,
            capacity: None,
            max_false_positive: Self::MAX_FALSE_POSITIVE,
            memory: None,
            seed: Seed::default(),
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        // Taken apart, so that a new option can't be forgotten here.
        let Self { run: _, unit, shingling, min_words, max_share, empty, by_filter, capacity, .. } = self;
        let Self { max_false_positive, memory: _, seed, .. } = self;
        let all = [
            ("unit", unit.to_string()),
            ("shingle", shingling.to_string()),
            ("min words", min_words.to_string()),
            ("max share", max_share.to_string()),
            ("empty", empty.to_string()),
            ("no verify", by_filter.to_string()),
            ("capacity", format!("{capacity:?}")),
            ("max fp", max_false_positive.to_string()),
            ("seed", seed.to_string()),
        ];
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// What a run will do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UnitPlan {
    /// About how many parts there are; `None` if an input is a pipe.
    pub units: Option<u64>,
    /// Bytes of memory: of a filter, or of all hashes if no part is repeated.
    pub bytes: Option<u64>,
    /// The rate at which a new part is taken for one that was seen.
    pub false_positive: f64,
    /// Records that an earlier run has already dealt with.
    pub resumed_records: u64,
}

/// A part that was cut out, and how often at least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Frequent {
    /// How often it was cut out.
    pub times: u64,
    /// How it begins.
    pub text: String,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UnitSummary {
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records of which nothing is repeated.
    pub untouched: u64,
    /// What was cut.
    #[serde(flatten)]
    pub cuts: Cuts,
    /// Bytes of what was seen, at the end.
    pub memory_bytes: u64,
    /// The rate at which a new part is taken for one that was seen, at the end.
    pub false_positive: f64,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// What was cut so far; it is also what a checkpoint holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cuts {
    /// Parts that could be compared, and those of them that are repeated.
    pub units: u64,
    /// Parts that are repeated, and their bytes.
    pub repeated: u64,
    /// Bytes of text, and of the parts that are repeated.
    pub text_bytes: u64,
    /// Bytes of parts that are repeated.
    pub repeated_bytes: u64,
    /// Records that were kept without some of their parts.
    pub cut_records: u64,
    /// Records of nothing but repeated parts.
    pub emptied: u64,
    /// Records of which more was repeated than may be.
    pub mostly_repeated: u64,
    /// What was cut most often.
    pub frequent: Vec<Frequent>,
}

/// A run that is about to start.
pub struct DedupUnits {
    start: Start,
    options: UnitOptions,
    shingler: Shingler,
    plan: UnitPlan,
}

impl DedupUnits {
    /// Looks at the inputs, the outputs and at what an earlier run left, and changes nothing.
    ///
    /// # Errors
    /// If there is not enough memory for what a sample of the inputs promises, an output can't be written, or the run to be resumed was
    /// another one.
    pub fn prepare(sources: impl Into<Arc<[Source]>>, mut options: UnitOptions) -> Result<Self, RunError> {
        options.run.save = None;
        options.run.report = None;
        options.run.fields.is_cut = !options.run.annotate;
        let cut = options.run.fields.is_cut.then(|| options.run.fields.item.clone());
        let manner = Manner::Units { unit: options.unit.name(), cut };
        let shingler = Shingler::new(options.shingling, Seed::default())?;
        let start = Start::new(sources.into(), options.run.clone(), manner, options.fingerprint(), &[])?;
        let resumed_records = start.resumed_records();
        let mut plan = UnitPlan { units: None, bytes: None, false_positive: 0.0, resumed_records };
        plan.units = match options.capacity {
            None => estimated(&start.sources, &options, &shingler)?,
            given => given,
        };
        if options.by_filter {
            let capacity = *options.capacity.get_or_insert(plan.units.unwrap_or(crate::capacity::PIPE * 16).max(1000));
            let Seen::Filter(filter) = Seen::filter(capacity, options.max_false_positive, options.seed, None, None)?
            else {
                unreachable!("a filter was asked for");
            };
            plan.bytes = Some(filter.num_bits() / 8);
            plan.false_positive = options.max_false_positive;
        } else {
            options.memory = options.memory.or_else(memory::available);
            plan.bytes = plan.units.map(|units| units.saturating_mul(BYTES_PER_HASH));
        }
        if let (Some(needed), Some(available)) = (plan.bytes, options.memory.or_else(memory::available))
            && needed > available
        {
            return Err(RunError::Memory { needed, records: plan.units.unwrap_or(0), what: "parts", available });
        }
        Ok(Self { start, options, shingler, plan })
    }

    /// Returns what the run will do.
    pub fn plan(&self) -> &UnitPlan {
        &self.plan
    }

    /// Does it.
    ///
    /// # Errors
    /// If an input or output fails, memory is at its end, or a record is faulty and none may be. No output has appeared then; where there
    /// is a checkpoint, what is needed to resume is kept.
    pub fn run(self, progress: &Progress) -> Result<UnitSummary, RunError> {
        let started = Instant::now();
        let Self { start, options, shingler, plan } = &self;
        let done = match start.finish_stopped(|_| Ok(()))? {
            Some(done) => done,
            None => start.guarded(|outputs| {
                let saved = start.saved::<Checkpoint>()?;
                let folder = start.folder();
                let state = saved.as_ref().map(|saved| &saved.seen);
                let seen = match options.by_filter {
                    true => {
                        let capacity = options.capacity.unwrap_or(1);
                        Seen::filter(capacity, options.max_false_positive, options.seed, folder, state)?
                    }
                    false => Seen::hashes(folder, state, (options.memory, plan.units))?,
                };
                let (cuts, frequent) = saved.map(|saved| (saved.cuts, saved.frequent)).unwrap_or_default();
                let hash = |high, low| Hash::new(u128::from(high) << 64 | u128::from(low));
                let frequent = frequent.into_iter().filter_map(|(high, low, one)| Some((hash(high, low)?, one)));
                let worker = Cutting { options, shingler };
                let mut decider = Cutter {
                    options,
                    seen,
                    cuts,
                    was_seen: Vec::new(),
                    met: HashSet::default(),
                    frequent: frequent.collect(),
                };
                let read = ReadOptions::new(options.run.fields.clone());
                let nothing = |_: &Cutter<'_>, _: &Tally, _: &Outcome| Ok(String::new());
                start.carry_out(outputs, read, (&worker, &mut decider), options.seed, progress, nothing)
            })?,
        };
        let Done { tally, outcome, .. } = done;
        Ok(UnitSummary {
            untouched: tally.kept,
            counts: tally.into(),
            cuts: outcome.cuts,
            memory_bytes: outcome.bytes,
            false_positive: outcome.false_positive,
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// About how many parts the sources have, from the first records of some of them; `None` if one is a pipe or nothing can be read.
fn estimated(sources: &[Source], options: &UnitOptions, shingler: &Shingler) -> Result<Option<u64>, InputError> {
    const SAMPLED: usize = 16;
    const SAMPLE: usize = 1 << 20;
    let in_place = sources.iter().filter(|source| source.is_read_in_place());
    if sources.iter().any(|source| source.bytes.is_none()) {
        return Ok(None);
    }
    let read = ReadOptions::new(options.run.fields.clone());
    let total = in_place.filter_map(|source| source.bytes).sum::<u64>() + survey(sources, &read)?.copied_bytes;
    let (mut units, mut bytes, mut room) = (0, 0, Room::default());
    for source in sources.iter().step_by(sources.len().div_ceil(SAMPLED).max(1)) {
        let mut read = read.clone();
        read.batch_bytes = SAMPLE;
        let mut reader = Reader::open_at(Arc::from([source.clone()]), read, Default::default());
        let (mut batch, mut arena) = (Batch::new(), Arena::new());
        if !found(reader.read_batch(&mut batch))?.unwrap_or(false) {
            continue;
        }
        let extracted = extract(&batch, &options.run.fields, &mut arena);
        for i in 0..extracted.len() {
            bytes += batch.raw(i).len() as u64;
            let Ok(Item::Text(text)) = extracted.item(i) else { continue };
            options.unit.split(text, &mut room.parts);
            let parts = std::mem::take(&mut room.parts);
            units +=
                parts.iter().filter(|part| key(options, shingler, &text[(*part).clone()], &mut room).is_some()).count()
                    as u64;
            room.parts = parts;
        }
    }
    Ok((bytes > 0).then(|| (units as f64 / bytes as f64 * total as f64).ceil() as u64))
}

/// What a thread works with.
#[derive(Default)]
struct Room {
    parts: Vec<Range<usize>>,
    normal: Vec<u8>,
    words: Vec<u64>,
}

/// Returns the hash of what a part is compared by; `None` if it has too few words to be cut.
fn key(options: &UnitOptions, shingler: &Shingler, part: &str, room: &mut Room) -> Option<Hash> {
    let part = match options.shingling {
        // Between words no space is kept in any case.
        Shingling::Words(_) | Shingling::Chars(_) => part,
        Shingling::Bytes(_) | Shingling::Code(_) | Shingling::Kmers(_) => part.trim(),
    };
    shingler.normalise(part, &mut room.normal);
    if room.normal.is_empty() {
        return None;
    }
    if options.min_words > 1 && words(options.shingling, part, &room.normal, &mut room.words) < options.min_words {
        return None;
    }
    // 0 is no hash; no text is known that has it.
    Some(Hash::new(xxh3_128(&room.normal)).unwrap_or(Hash::MIN))
}

/// Counts the words of a part.
fn words(shingling: Shingling, part: &str, normal: &[u8], room: &mut Vec<u64>) -> usize {
    if part.is_ascii() {
        return match shingling {
            // One space between two words.
            Shingling::Words(_) | Shingling::Chars(_) => memchr_iter(b' ', normal).count() + 1,
            _ => {
                let has_letters = |word: &&[u8]| word.iter().any(u8::is_ascii_alphanumeric);
                normal.split(u8::is_ascii_whitespace).filter(has_letters).count()
            }
        };
    }
    let cutter = Shingler::new(Shingling::Words(1), Seed::default()).expect("a word is a shingle");
    cutter.shingles(part, room);
    room.len()
}

/// What workers find out about a batch.
#[derive(Default)]
struct Pieces {
    /// The texts of sound records, one after the other.
    text: String,
    /// Where parts end in it.
    parts: Vec<usize>,
    /// What they are compared by.
    hashes: Vec<Option<Hash>>,
    /// By record, where its parts end.
    ends: Vec<usize>,
}

/// Splits and hashes, which any number of threads may do.
struct Cutting<'w> {
    options: &'w UnitOptions,
    shingler: &'w Shingler,
}

impl Worker for Cutting<'_> {
    type Piece = Pieces;
    type Room = Room;

    fn room(&self) -> Room {
        Room::default()
    }

    fn clear(&self, _: &mut Room, Pieces { text: texts, parts, hashes, ends }: &mut Pieces) {
        texts.clear();
        parts.clear();
        hashes.clear();
        ends.clear();
    }

    fn add(
        &self,
        room: &mut Room,
        extracted: &Extracted<'_>,
        i: usize,
        Pieces { text: texts, parts, hashes, ends }: &mut Pieces,
    ) -> Result<(), RecordError> {
        let text = match extracted.item(i).map_err(Clone::clone)? {
            Item::Text(text) => text,
            _ => "",
        };
        self.options.unit.split(text, &mut room.parts);
        let own = std::mem::take(&mut room.parts);
        for part in &own {
            hashes.push(key(self.options, self.shingler, &text[part.clone()], room));
            parts.push(texts.len() + part.end);
        }
        room.parts = own;
        texts.push_str(text);
        ends.push(parts.len());
        Ok(())
    }
}

/// What a checkpoint refers to.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    seen: Saved,
    cuts: Cuts,
    /// Both halves of a part's hash, and how often it was cut.
    frequent: Vec<(u64, u64, Frequent)>,
}

/// What a run came to.
#[derive(Serialize, Deserialize)]
struct Outcome {
    cuts: Cuts,
    bytes: u64,
    false_positive: f64,
}

/// Decides in order which parts stay.
struct Cutter<'j> {
    options: &'j UnitOptions,
    seen: Seen,
    cuts: Cuts,
    /// By part: whether it is repeated.
    was_seen: Vec<bool>,
    /// New parts of the text that is looked at.
    met: HashSet<Hash, Spread>,
    /// How often parts were cut, by their hash: the most frequent ones, and some others.
    frequent: HashMap<Hash, Frequent, Spread>,
}

impl Cutter<'_> {
    /// Parts whose frequency is told.
    const TOLD: usize = 100;
    /// Parts whose frequency is counted, at most; then those of the lowest are forgotten.
    const COUNTED: usize = 2_000;
    /// Bytes of a part that are told.
    const LONGEST: usize = 200;

    fn count(&mut self, hash: Hash, part: &str) {
        if let Some(known) = self.frequent.get_mut(&hash) {
            known.times += 1;
            if known.text.is_empty() {
                let part = part.trim();
                known.text = part[..char_start(part, Self::LONGEST)].to_owned();
            }
            return;
        }
        if self.frequent.len() >= Self::COUNTED {
            let mut all: Vec<(Hash, Frequent)> = self.frequent.drain().collect();
            let half = Self::COUNTED / 2;
            all.select_nth_unstable_by(half, |(a, one), (b, other)| other.times.cmp(&one.times).then(a.cmp(b)));
            all.truncate(half);
            self.frequent.extend(all);
        }
        // Most are forgotten before they are met again, so texts are kept from the second time on.
        self.frequent.insert(hash, Frequent { times: 1, text: String::new() });
    }

    /// The most frequent parts, by how often they were cut and then by their text.
    fn most_frequent(&self) -> Vec<Frequent> {
        let mut all: Vec<Frequent> = self.frequent.values().filter(|one| one.times > 1).cloned().collect();
        all.sort_unstable_by(|one, other| other.times.cmp(&one.times).then_with(|| one.text.cmp(&other.text)));
        all.truncate(Self::TOLD);
        all
    }
}

impl Decider for Cutter<'_> {
    type Piece = Pieces;
    type Outcome = Outcome;

    fn decide(
        &mut self,
        part: Part<'_, Pieces>,
        decisions: &mut Vec<Decision>,
        names: &mut Ids,
    ) -> Result<(), RunError> {
        let sound = part.sound();
        let Pieces { text, parts, hashes, ends } = &*part.piece;
        let behind = |records: usize| records.checked_sub(1).map_or(0, |last| ends[last]);
        // Where no record goes as a whole, whatever is looked at counts as seen, and all can be looked up at the same time.
        let all_count = self.options.max_share >= 1.0;
        let all_from = behind(sound.start);
        let mut was_seen = std::mem::take(&mut self.was_seen);
        if all_count {
            self.seen.insert_all(&hashes[all_from..behind(sound.end)], &mut was_seen)?;
        }
        let mut repeated: Vec<(Range<usize>, Hash)> = Vec::new();
        for record in sound {
            let own = behind(record)..ends[record];
            let start = own.start.checked_sub(1).map_or(0, |before| parts[before]);
            let own_hashes = &hashes[own.clone()];
            if !all_count {
                self.seen.contains_all(own_hashes, &mut was_seen);
                self.met.clear();
                for (hash, seen) in own_hashes.iter().zip(&mut was_seen) {
                    *seen = hash.is_some_and(|hash| *seen || !self.met.insert(hash));
                }
            }
            let own_seen = if all_count { &was_seen[own.start - all_from..own.end - all_from] } else { &was_seen };
            repeated.clear();
            let (mut from, mut units) = (start, 0);
            for ((&end, hash), &was_seen) in parts[own].iter().zip(own_hashes).zip(own_seen) {
                if let Some(hash) = *hash {
                    units += 1;
                    if was_seen {
                        repeated.push((from..end, hash));
                    }
                }
                from = end;
            }
            let whole = &text[start..from];
            let repeated_bytes: usize = repeated.iter().map(|(range, _)| range.len()).sum();
            let share = repeated_bytes as f64 / whole.len().max(1) as f64;
            let is_too_much = share > self.options.max_share;
            if !(all_count || is_too_much) {
                self.seen.insert_all(own_hashes, &mut was_seen)?;
            }
            self.cuts.units += units;
            self.cuts.text_bytes += whole.len() as u64;
            if repeated.is_empty() {
                decisions.push(Decision { verdict: Verdict::Kept, family: None });
                continue;
            }
            self.cuts.repeated += repeated.len() as u64;
            self.cuts.repeated_bytes += repeated_bytes as u64;
            for (range, hash) in &repeated {
                self.count(*hash, &text[range.clone()]);
            }
            let is_empty = rest(text, start..from, &repeated).all(|part| part.trim().is_empty());
            let is_kept = match (is_too_much, is_empty) {
                (true, _) => {
                    self.cuts.mostly_repeated += 1;
                    false
                }
                (_, true) => {
                    self.cuts.emptied += 1;
                    self.options.empty == Empty::Keep
                }
                _ => {
                    self.cuts.cut_records += 1;
                    true
                }
            };
            let RunOptions { annotate, removed, .. } = &self.options.run;
            let spans = annotate.then(|| names.push(&spans(start, &repeated)));
            let listed = removed.is_some().then(|| names.push(&listed(text, start, &repeated)));
            let rest = is_kept.then(|| names.push_parts(rest(text, start..from, &repeated)));
            let verdict = Verdict::Repeats { spans, listed, share, rest, is_too_much };
            decisions.push(Decision { verdict, family: None });
        }
        self.was_seen = was_seen;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.seen.bytes()
    }

    fn checkpoint_bytes(&self) -> u64 {
        self.seen.checkpoint_bytes()
    }

    fn save(&mut self, folder: &StateFolder, checkpoint: u64) -> Result<serde_json::Value, RunError> {
        let seen = self.seen.save(folder, checkpoint)?;
        let frequent = self
            .frequent
            .iter()
            .map(|(hash, one)| ((hash.get() >> 64) as u64, hash.get() as u64, one.clone()))
            .collect();
        let saved = Checkpoint { seen, cuts: self.cuts.clone(), frequent };
        serde_json::to_value(saved).map_err(|cause| folder.damaged(cause).into())
    }

    fn write(&mut self, _: &mut OutputFile) -> Result<(), RunError> {
        Ok(())
    }

    fn outcome(&mut self, _: &Tally) -> Result<Outcome, RunError> {
        let false_positive = match &self.seen {
            Seen::Filter(filter) => filter.false_positive_rate(),
            Seen::Hashes { .. } => 0.0,
        };
        let cuts = Cuts { frequent: self.most_frequent(), ..self.cuts.clone() };
        Ok(Outcome { cuts, bytes: self.seen.bytes(), false_positive })
    }
}

/// What is left of a text without what is repeated.
fn rest<'t>(text: &'t str, of: Range<usize>, repeated: &'t [(Range<usize>, Hash)]) -> impl Iterator<Item = &'t str> {
    let ends = repeated.iter().map(|(range, _)| range.start).chain([of.end]);
    let starts = [of.start].into_iter().chain(repeated.iter().map(|(range, _)| range.end));
    starts.zip(ends).map(|(start, end)| &text[start..end])
}

/// Where repeated parts are, in bytes of their text, as JSON.
fn spans(start: usize, repeated: &[(Range<usize>, Hash)]) -> String {
    let all: Vec<String> =
        repeated.iter().map(|(range, _)| format!("[{},{}]", range.start - start, range.end - start)).collect();
    format!("[{}]", all.join(","))
}

/// Repeated parts, where they are in bytes and lines of their text, as JSON.
fn listed(text: &str, start: usize, repeated: &[(Range<usize>, Hash)]) -> String {
    let mut out = b"[".to_vec();
    let (mut line, mut from) = (1, start);
    for (i, (range, _)) in repeated.iter().enumerate() {
        line += text[from..range.start].bytes().filter(|&byte| byte == b'\n').count();
        from = range.start;
        let comma = if i == 0 { "" } else { "," };
        let (first, last) = (range.start - start, range.end - start);
        out.extend_from_slice(format!("{comma}{{\"bytes\":[{first},{last}],\"line\":{line},\"text\":").as_bytes());
        json_string(&text[range.clone()], &mut out);
        out.push(b'}');
    }
    out.push(b']');
    String::from_utf8(out).expect("texts as JSON are UTF-8")
}
