//! The corpus: read once, then asked about at every threshold.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use anyhow::{Context, Result, anyhow};
use nearset_jobs::join::PairDecision;
use nearset_jobs::join::explore::{ExploreOptions, Explored, Marks, Outcome, explore};
use nearset_jobs::run::Progress;
use nearset_records::{Format, Sources};
use nearset_view::page;
use nearset_view::words::{bytes, count, percent};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cures;
use crate::options::Usage;

/// Pairs, clusters and records that one answer shows.
const SHOWN_PAIRS: usize = 8;
const SHOWN_CLUSTERS: usize = 40;
const SHOWN_RECORDS: usize = 40;

/// A corpus that is being read, or was.
pub struct Corpus {
    progress: Arc<Progress>,
    total_bytes: Option<u64>,
    /// What `nearset dedup` is given to do the same.
    typed: String,
    /// Where it writes: other formats keep their own in a folder.
    output: &'static str,
    explored: Arc<OnceLock<Result<Explored, String>>>,
    is_there: bool,
    marks: Mutex<Marks>,
    /// How many pairs have which similarity, once that was asked for.
    bins: OnceLock<Vec<(f64, u64)>>,
    /// The last answer: a page asks several questions about one threshold.
    last: Mutex<Option<Arc<Outcome>>>,
}

/// A threshold, and the file that is looked at.
#[derive(Deserialize)]
pub struct At {
    near: f64,
    source: Option<usize>,
    kept: Option<u32>,
    #[serde(default)]
    text: String,
}

/// Two records.
#[derive(Deserialize)]
pub struct Two {
    near: f64,
    a: u32,
    b: u32,
    /// Whether they are duplicates; nothing takes the mark away.
    duplicate: Option<bool>,
}

impl Corpus {
    /// Begins to read, on a thread of its own. What makes it fail is sent.
    pub fn start(
        sources: Option<Sources>,
        options: ExploreOptions,
        typed: String,
        failed: Sender<Option<anyhow::Error>>,
    ) -> Result<Self> {
        let corpus = Self {
            progress: Arc::new(Progress::new()),
            total_bytes: sources.as_ref().and_then(Sources::total_bytes),
            typed,
            output: match &sources {
                Some(sources) if sources.list.iter().any(|source| source.format != Format::Jsonl) => "kept/",
                _ => "kept.jsonl",
            },
            explored: Arc::new(OnceLock::new()),
            is_there: sources.is_some(),
            marks: Mutex::new(Marks::new()),
            bins: OnceLock::new(),
            last: Mutex::new(None),
        };
        let Some(sources) = sources else { return Ok(corpus) };
        let (progress, cell) = (Arc::clone(&corpus.progress), Arc::clone(&corpus.explored));
        let read = move || {
            let explored = explore(sources.list, &options, &progress).map_err(|error| {
                let error = anyhow::Error::from(error);
                let why = cures::words("explore", &error);
                let why = cures::hint("explore", &error).map_or(why.clone(), |hint| format!("{why}: {hint}"));
                // Nobody waits any more where the program is ending.
                let _ = failed.send(Some(error));
                why
            });
            if let Ok(explored) = &explored {
                eprintln!("read      {} records in {:.1} s", count(explored.records()), explored.seconds);
            }
            let _ = cell.set(explored);
        };
        thread::Builder::new().name("explore".into()).spawn(read).context("cannot start a thread")?;
        Ok(corpus)
    }

    /// Ends reading.
    pub fn stop(&self) {
        self.progress.stop();
    }

    fn explored(&self) -> Result<&Explored> {
        match self.explored.get() {
            Some(Ok(explored)) => Ok(explored),
            Some(Err(why)) => Err(anyhow!("{why}")),
            None if self.is_there => Err(anyhow!("the files are still being read")),
            None => Err(Usage("no file of records was given: name one after nearset explore".to_owned()).into()),
        }
    }

    /// How far reading has come, and what came of it.
    pub fn state(&self) -> Value {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let mut state = json!({
            "status": if self.is_there { "reading" } else { "none" },
            "records": read(&self.progress.records),
            "pairs": read(&self.progress.removed),
            "bytes": read(&self.progress.disk_bytes),
            "total_bytes": self.total_bytes,
        });
        match self.explored.get() {
            Some(Ok(explored)) => {
                let sources: Vec<&str> = explored.counts.sources.iter().map(|source| &source.name[..]).collect();
                state = json!({
                    "status": "ready",
                    "records": explored.records(),
                    "pairs": explored.pairs(),
                    "lowest": explored.lowest,
                    "candidates": explored.candidates,
                    "sources": sources,
                    "seconds": explored.seconds,
                    "read": format!("{} records, {}", count(explored.records()), bytes(explored.counts.bytes)),
                    "faulty": explored.counts.faulty,
                    "errors": explored.counts.errors,
                });
            }
            Some(Err(why)) => state = json!({ "status": "failed", "error": why }),
            None => {}
        }
        state
    }

    fn current_marks(&self) -> Marks {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn outcome(&self, near: f64) -> Result<(&Explored, Arc<Outcome>)> {
        let explored = self.explored()?;
        if !(0.0..=1.0).contains(&near) {
            return Err(Usage(format!("{near} is no similarity: those lie between 0 and 1")).into());
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(outcome) if outcome.near == near.max(explored.lowest) => Ok((explored, Arc::clone(outcome))),
            _ => {
                let outcome = Arc::new(explored.decide(near, &self.current_marks()));
                *last = Some(Arc::clone(&outcome));
                Ok((explored, outcome))
            }
        }
    }

    /// How many records go at a threshold, and the command that removes them.
    pub fn decide(&self, at: At) -> Result<Value> {
        let (explored, outcome) = self.outcome(at.near)?;
        let bins = self.bins.get_or_init(|| explored.histogram().iter().map(|bin| (bin.from, bin.pairs)).collect());
        let sources: Vec<Value> = explored
            .counts
            .sources
            .iter()
            .zip(&outcome.by_source)
            .map(|(source, removed)| json!({ "name": source.name, "records": source.records, "removed": removed }))
            .collect();
        let all = explored.records();
        let decisions = if self.current_marks().is_empty() { "" } else { " --decisions decisions.jsonl" };
        Ok(json!({
            "near": outcome.near,
            "records": all,
            "removed": outcome.removed,
            "kept": all - outcome.removed,
            "words": format!(
                "{} of {} records go ({}), {} stay",
                count(outcome.removed), count(all), percent(outcome.removed as f64 / all.max(1) as f64), count(all - outcome.removed),
            ),
            "sources": sources,
            "svg": page::histogram(bins, outcome.near),
            "command": format!(
                "nearset dedup {} --near {} --candidates {} --exhaustive{decisions} -o {} --removed removed.jsonl",
                self.typed, outcome.near, explored.candidates, self.output,
            ),
        }))
    }

    /// The pairs next to a threshold, the most doubtful first.
    pub fn border(&self, at: At) -> Result<Value> {
        let (explored, outcome) = self.outcome(at.near)?;
        let pairs = explored.border(&outcome, &self.current_marks(), at.source, SHOWN_PAIRS);
        let shown: Result<Vec<Value>> = pairs
            .iter()
            .map(|pair| {
                let (kept, other) = (explored.excerpt(pair.kept)?, explored.excerpt(pair.other)?);
                let what = if pair.goes { "goes" } else { "stays" };
                Ok(json!({
                    "a": pair.kept, "b": pair.other, "similarity": pair.similarity, "goes": pair.goes,
                    "html": page::pair(("stays", &kept), (what, &other)),
                }))
            })
            .collect();
        Ok(json!({ "near": outcome.near, "pairs": shown? }))
    }

    /// The largest clusters.
    pub fn clusters(&self, at: At) -> Result<Value> {
        let (explored, outcome) = self.outcome(at.near)?;
        let clusters = explored.clusters(&outcome, at.source, SHOWN_CLUSTERS);
        let shown: Result<Vec<Value>> = clusters
            .iter()
            .map(|cluster| {
                let kept = explored.excerpt(cluster.kept)?;
                Ok(json!({
                    "kept": cluster.kept, "records": cluster.records, "giant": cluster.giant, "template": cluster.template,
                    "id": kept.id, "place": kept.place, "html": page::excerpt(&kept.text),
                }))
            })
            .collect();
        Ok(json!({ "near": outcome.near, "clusters": shown? }))
    }

    /// The records that go for one that stays.
    pub fn members(&self, at: At) -> Result<Value> {
        let (explored, outcome) = self.outcome(at.near)?;
        let kept = at.kept.filter(|&kept| u64::from(kept) < explored.records()).context("there is no such record")?;
        let members = explored.members(&outcome, kept, SHOWN_RECORDS);
        let shown: Result<Vec<Value>> = members
            .iter()
            .map(|member| {
                let record = explored.excerpt(member.record)?;
                Ok(json!({
                    "record": member.record, "similarity": member.similarity, "id": record.id, "place": record.place,
                    "html": page::excerpt(&record.text),
                }))
            })
            .collect();
        Ok(json!({ "near": outcome.near, "kept": kept, "members": shown? }))
    }

    /// The first records with these letters in their id or text.
    pub fn search(&self, at: At) -> Result<Value> {
        let (explored, outcome) = self.outcome(at.near)?;
        if at.text.trim().is_empty() {
            return Err(Usage("what is to be searched for?".to_owned()).into());
        }
        let found = explored.search(at.text.trim(), at.source, SHOWN_RECORDS)?;
        let shown: Result<Vec<Value>> = found
            .iter()
            .map(|&record| {
                let excerpt = explored.excerpt(record)?;
                let of = explored.verdict(&outcome, record);
                let of_id = of.map(|of| explored.excerpt(of.record)).transpose()?.map(|of| of.id);
                Ok(json!({
                    "record": record, "id": excerpt.id, "place": excerpt.place, "html": page::excerpt(&excerpt.text),
                    "of": of.map(|of| of.record), "of_id": of_id, "similarity": of.map(|of| of.similarity),
                }))
            })
            .collect();
        Ok(json!({ "near": outcome.near, "found": shown?, "most": SHOWN_RECORDS }))
    }

    /// Two records side by side.
    pub fn pair(&self, two: Two) -> Result<Value> {
        let (explored, outcome) = self.outcome(two.near)?;
        let (a, b) = checked(explored, &two)?;
        let what = |record| if explored.verdict(&outcome, record).is_some() { "goes" } else { "stays" };
        let (left, right) = (explored.excerpt(a)?, explored.excerpt(b)?);
        Ok(json!({
            "a": a, "b": b, "similarity": explored.similarity(a, b), "goes": explored.verdict(&outcome, b).is_some(),
            "html": page::pair((what(a), &left), (what(b), &right)),
        }))
    }

    /// Marks a pair, or takes its mark away.
    pub fn mark(&self, two: Two) -> Result<Value> {
        let explored = self.explored()?;
        let pair = checked(explored, &two)?;
        {
            let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
            match two.duplicate {
                Some(duplicate) => drop(marks.insert(pair, duplicate)),
                None => drop(marks.remove(&pair)),
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.marks()
    }

    /// All marks, what they say of the precision, and the file of decisions.
    pub fn marks(&self) -> Result<Value> {
        let (explored, marks) = (self.explored()?, self.current_marks());
        let mut decisions = String::new();
        let mut shown = Vec::new();
        for (&(a, b), &duplicate) in &marks {
            let [a_id, b_id] = [explored.excerpt(a)?.id, explored.excerpt(b)?.id];
            shown.push(json!({
                "a": a, "b": b, "a_id": a_id, "b_id": b_id, "duplicate": duplicate, "similarity": explored.similarity(a, b),
            }));
            decisions += &serde_json::to_string(&PairDecision { a: a_id, b: b_id, duplicate })?;
            decisions.push('\n');
        }
        Ok(json!({ "marks": shown, "precision": explored.precision(&marks), "decisions": decisions }))
    }
}

/// Two records that are there, the earlier first.
fn checked(explored: &Explored, two: &Two) -> Result<(u32, u32)> {
    let (a, b) = (two.a.min(two.b), two.a.max(two.b));
    match a != b && [a, b].into_iter().all(|record| explored.is_compared(record)) {
        true => Ok((a, b)),
        false => Err(anyhow!("there is no such pair of records; an empty text is near nothing")),
    }
}
