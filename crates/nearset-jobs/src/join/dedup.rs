//! Near-duplicates out of a corpus, each compared with a record that stays before it goes.
//!
//! Claim: a record is removed only if one that was compared with it, and is kept, has the similarity `near` or more, by their
//! exact shingle sets; where chains are followed, one that is itself kept or removed.
//! Records are decided on in the order in which they are wanted, the most wanted first, and each is compared with those kept
//! before it. Where the first is kept, that is the order of reading, and one pass decides and writes. Otherwise a first pass
//! reads how much each is wanted, and a second one writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nearset::family::Key;
use nearset::index::{Placed, StarClusters};
use nearset::item::SortedSet;
use serde::Serialize;

use super::alarm::{self, Alarm, Cause};
use super::error::JoinError;
use super::rank::{Keep, Rank};
use super::stream::{self, Counts, Cutter};
use super::texts::{Place, Texts};
use super::write::{Outputs, Verdict};
use super::{JoinOptions, JoinPlan};
use crate::dedup::{Ids, Progress};
use nearset_records::input::Source;
use nearset_records::output::is_same_output;

/// How to remove duplicates.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifiedDedupOptions {
    /// What is near, and how to read.
    pub join: JoinOptions,
    /// Which of several near records is kept.
    pub keep: Keep,
    /// Whether a record goes that is near only a removed one: in a chain A ~ B ~ C, C for being near B.
    pub follow_chains: bool,
    /// Keep every record and add to each what it is near, instead of leaving those out.
    pub annotate: bool,
    /// Where kept records go; `None` is a dry run.
    pub out: Option<PathBuf>,
    /// Where to say what was left out and why.
    pub removed: Option<PathBuf>,
}

impl VerifiedDedupOptions {
    /// The first is kept, chains are not followed, and no output is named.
    pub fn new(join: JoinOptions) -> Self {
        Self { join, keep: Keep::First, follow_chains: false, annotate: false, out: None, removed: None }
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
    /// Pairs of records that were compared.
    pub compared: u64,
    /// Texts that were read again for it.
    pub read_again: u64,
    /// Memory of what records are compared with, ids and cache aside.
    pub index_bytes: u64,
    /// Families so large that somebody should look at them.
    pub alarms: Vec<Alarm>,
    /// Seconds that this run took.
    pub seconds: f64,
}

/// Removes duplicates.
///
/// # Errors
/// If an input or output fails, or a record is faulty and none may be; no output has appeared then.
pub fn verified_dedup(
    sources: impl Into<Arc<[Source]>>,
    options: &VerifiedDedupOptions,
    progress: &Progress,
) -> Result<VerifiedDedupSummary, JoinError> {
    let (sources, started) = (sources.into(), Instant::now());
    let plan = options.join.plan()?;
    if let (Some(out), Some(removed)) = (&options.out, &options.removed)
        && is_same_output(out, removed)
    {
        return Err(JoinError::SameOutput { path: out.clone() });
    }
    if options.keep != Keep::First {
        stream::check_files(&sources, "what is kept is known only after all was read (--keep first would do)")?;
    }
    let reason = if options.follow_chains { "near an earlier record" } else { "near a kept record" };
    let (out, removed) = (options.out.as_deref(), options.removed.as_deref());
    let mut outputs = Outputs::open(out, removed, options.annotate, reason, &sources, options.join.force)?;
    let cutter = Cutter::new(&options.join)?.with_ids(options.annotate || removed.is_some());
    let mut decider = Decider::new(&sources, &options.join, options.follow_chains, &cutter)?;
    let counts = match &options.keep {
        Keep::First => in_order(&sources, options, &cutter, progress, &mut decider, &mut outputs)?,
        _ => ranked(&sources, options, &cutter, progress, &mut decider, &mut outputs)?,
    };
    let alarms = decider.alarms(counts.records)?;
    outputs.finish()?;
    let (kept, near) = counts.sources.iter().fold((0, 0), |(k, n), source| (k + source.kept, n + source.near));
    Ok(VerifiedDedupSummary {
        plan,
        counts,
        kept,
        near,
        compared: decider.texts.compared,
        read_again: decider.texts.read_again,
        index_bytes: decider.bytes(),
        alarms,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// What is decided about a record.
pub(super) struct Decision {
    /// The entry it is near, and how near.
    pub near: Option<(u32, f64)>,
    /// Its own entry, if others are to be compared with it.
    pub entry: Option<u32>,
}

/// The records kept so far, and what is near them.
pub(super) struct Decider {
    clusters: StarClusters,
    pub texts: Texts,
    /// How many are near each entry.
    pub members: Vec<u32>,
}

impl Decider {
    pub fn new(
        sources: &Arc<[Source]>,
        options: &JoinOptions,
        follow_chains: bool,
        cutter: &Cutter,
    ) -> Result<Self, JoinError> {
        let near = options.wanted.plan_join()?.near;
        let clusters = StarClusters::new(cutter.bands(), near).following_chains(follow_chains);
        let texts = Texts::new(sources, &options.fields, cutter.shingler);
        Ok(Self { clusters, texts, members: Vec::new() })
    }

    /// Decides on the next record. `place` is asked for if others are to be compared with it.
    pub fn decide(
        &mut self,
        keys: &[Option<Key>],
        set: SortedSet,
        place: impl FnOnce(&mut Texts) -> Result<Place, JoinError>,
    ) -> Result<Decision, JoinError> {
        let texts = &mut self.texts;
        let placed = self.clusters.add(keys, |entry, least| texts.compare(entry, &set, least))?;
        let (near, entry) = match placed {
            Placed::Member { of, similarity, entry } => {
                self.members[of as usize] += 1;
                (Some((of, similarity.value())), entry)
            }
            Placed::Centre { entry } => (None, entry),
            _ => (None, None),
        };
        if entry.is_some() {
            let place = place(texts)?;
            texts.push(place, set);
            self.members.push(0);
        }
        Ok(Decision { near, entry })
    }

    /// Whether nothing shares a band with a record; it is then kept, without being read.
    fn is_alone(&mut self, keys: &[Option<Key>], place: Place, size: usize) -> Result<bool, JoinError> {
        if keys.contains(&None) {
            return Ok(true);
        }
        if self.clusters.has_candidates(keys) {
            return Ok(false);
        }
        self.clusters.add(keys, |_, _| Ok::<_, JoinError>(None))?;
        self.texts.push_unread(place, size);
        self.members.push(0);
        Ok(true)
    }

    pub fn bytes(&self) -> u64 {
        self.clusters.index().bytes() + 4 * self.members.len() as u64 + self.texts.bytes()
    }

    pub fn alarms(&mut self, records: u64) -> Result<Vec<Alarm>, JoinError> {
        let sizes = (0..).zip(&self.members).map(|(entry, &members)| (entry, u64::from(members) + 1));
        let large = alarm::worth_an_alarm(sizes, records);
        let mut alarms = alarm::buckets(&mut self.texts, self.clusters.index())?;
        for (entry, size) in large {
            alarms.push(alarm::around(&mut self.texts, Cause::Cluster, entry, size)?);
        }
        Ok(alarms)
    }
}

/// One pass that decides in the order of reading.
fn in_order(
    sources: &Arc<[Source]>,
    options: &VerifiedDedupOptions,
    cutter: &Cutter,
    progress: &Progress,
    decider: &mut Decider,
    outputs: &mut Outputs,
) -> Result<Counts, JoinError> {
    let mut ids = Ids::default();
    stream::read(sources, &options.join, cutter, progress, |batch, cut, source| {
        outputs.begin(batch)?;
        let mut removed = 0;
        for i in 0..cut.documents.len() {
            let document = match &mut cut.documents[i] {
                Ok(document) => document,
                Err(error) => {
                    outputs.record(batch, i, "", Verdict::Faulty(error))?;
                    continue;
                }
            };
            let (set, id) = (std::mem::take(&mut document.set), std::mem::take(&mut document.id));
            let Decision { near, entry } = decider.decide(cut.keys(i), set, |texts| texts.place(batch, i))?;
            if entry.is_some() && cutter.wants_ids {
                ids.push(&id);
            }
            let verdict = match near {
                Some((of, similarity)) => Verdict::Near { of: ids.get(of as usize), similarity },
                None => Verdict::Kept,
            };
            source.near += u64::from(near.is_some());
            source.kept += u64::from(near.is_none());
            removed += u64::from(near.is_some());
            outputs.record(batch, i, &id, verdict)?;
        }
        progress.filter_bytes.store(decider.bytes(), Ordering::Relaxed);
        Ok(removed)
    })
}

/// Two passes: what is wanted most is known before anything is written.
fn ranked(
    sources: &Arc<[Source]>,
    options: &VerifiedDedupOptions,
    cutter: &Cutter,
    progress: &Progress,
    decider: &mut Decider,
    outputs: &mut Outputs,
) -> Result<Counts, JoinError> {
    let field = match &options.keep {
        Keep::Field(name) => Some(name.clone()),
        _ => None,
    };
    let first = Cutter::new(&options.join)?.with_field(field);
    let bands = first.bands();
    let (mut keys, mut records) = (Vec::new(), Vec::new());
    stream::read(sources, &options.join, &first, progress, |batch, cut, _| {
        for i in 0..cut.documents.len() {
            keys.extend_from_slice(cut.keys(i));
            let record = match &cut.documents[i] {
                Ok(document) => {
                    let rank = match options.keep {
                        Keep::Field(_) => Rank::of(document.field.as_deref()),
                        _ => Rank::Number(document.text_bytes as f64),
                    };
                    Some((rank, decider.texts.place(batch, i)?, document.set.len()))
                }
                Err(_) => None,
            };
            records.push(record);
        }
        progress.filter_bytes.store(8 * keys.len() as u64, Ordering::Relaxed);
        Ok(0)
    })?;
    let mut order: Vec<u32> = (0..u32::try_from(records.len()).map_err(|_| JoinError::TooMany)?).collect();
    order.sort_by(|&a, &b| {
        let rank = |record: u32| records[record as usize].as_ref().map(|(rank, ..)| rank);
        rank(b).cmp(&rank(a)).then(a.cmp(&b))
    });
    let mut removals: BTreeMap<u32, (u32, f64)> = BTreeMap::new();
    for record in order {
        if progress.is_stopped() {
            return Err(JoinError::Interrupted);
        }
        let Some((_, place, size)) = records[record as usize] else { continue };
        let keys = &keys[record as usize * bands..][..bands];
        if decider.is_alone(keys, place, size)? {
            continue;
        }
        let set = decider.texts.set(place)?;
        if let Some(near) = decider.decide(keys, set, |_| Ok(place))?.near {
            removals.insert(record, near);
        }
    }
    drop((keys, records));
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut record = 0;
    stream::read(sources, &options.join, cutter, progress, |batch, cut, source| {
        outputs.begin(batch)?;
        for (i, document) in cut.documents.iter().enumerate() {
            let near = removals.get(&record);
            record += 1;
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    outputs.record(batch, i, "", Verdict::Faulty(error))?;
                    continue;
                }
            };
            source.near += u64::from(near.is_some());
            source.kept += u64::from(near.is_none());
            let verdict = match near {
                Some((of, similarity)) if cutter.wants_ids => {
                    let place = decider.texts.place_of(*of);
                    if !names.contains_key(of) {
                        names.insert(*of, decider.texts.id(place)?);
                    }
                    Verdict::Near { of: &names[of], similarity: *similarity }
                }
                Some((_, similarity)) => Verdict::Near { of: "", similarity: *similarity },
                None => Verdict::Kept,
            };
            outputs.record(batch, i, &document.id, verdict)?;
        }
        Ok(0)
    })
}
