//! Pairs, clusters and removal by containment: how much of a text is in another.
//!
//! Texts are decided on by their size, the one with most shingles first, so that what is inside a later page goes although it came before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::index::CommonShingles;
use nearset_records::output::{TableFile, Value};
use nearset_records::{Fields, Source};

use super::alarm::{self, Alarm, Cause};
use super::copies::Copies;
use super::inside::{Inside, Keys, Texts};
use super::needs::expect_memory;
use super::stream::{self, Counts, Cutter};
use super::{ClusterSummary, JoinOptions, PairsSummary};
use crate::crew::Crew;
use crate::run::{Ids, OnError, Progress, RunError};
use crate::screen::Against;
use nearset::plan::Request;

/// Texts whose insides are looked for together.
const AT_ONCE: usize = 1024;

/// All texts of a corpus.
pub(super) struct Held {
    pub texts: Texts,
    pub keys: Keys,
    /// What records are called.
    pub ids: Ids,
    /// By record: the filter that it is near something in, and how many bands hit there. Such a record is like an empty one.
    pub screened: BTreeMap<u64, (usize, u32)>,
    /// By text, in the order in which they were added: the number of the record in the input, faulty ones counted.
    pub numbers: Vec<u64>,
}

/// Cuts texts for a join by containment: nothing has to be learnt about them.
pub(super) fn cutter<'a>(
    sources: &[Source],
    wanted: &Request,
    fields: &Fields,
    against: &'a [Against<'a>],
    progress: &Progress,
) -> Result<Cutter<'a>, RunError> {
    let nothing = CommonShingles::of_sample(std::iter::empty::<&[u64]>(), 0);
    Ok(Cutter::with_model(Some(&nothing), sources, wanted, fields, progress)?.with_screen(against).with_ids(true))
}

impl Held {
    /// Reads all records.
    pub fn read(
        sources: &Arc<[Source]>,
        reading: (usize, OnError),
        cutter: &Cutter<'_>,
        most_bytes: u64,
        progress: &Progress,
    ) -> Result<(Self, Counts), RunError> {
        let mut texts = Texts::new(&cutter.spec);
        let (mut ids, mut screened, mut numbers) = (Ids::default(), BTreeMap::new(), Vec::new());
        let mut first = 0;
        let counts = stream::read(sources, reading, (cutter, &cutter.fields), progress, |batch, cut| {
            for (i, document) in cut.documents.iter().enumerate() {
                let number = first + document.record as u64;
                screened.extend(document.screened.map(|hit| (number, hit)));
                texts.push(cut.set(i));
                ids.push(&document.id);
                numbers.push(number);
            }
            first += batch.len() as u64;
            let taken = texts.bytes() + ids.bytes();
            expect_memory(taken, most_bytes, first)?;
            progress.filter_bytes.store(taken, Ordering::Relaxed);
            Ok(0)
        })?;
        u32::try_from(numbers.len()).map_err(|_| RunError::TooMany)?;
        let keys = texts.keys();
        Ok((Self { texts, keys, ids, screened, numbers }, counts))
    }

    pub fn bytes(&self) -> u64 {
        self.texts.bytes() + self.keys.bytes()
    }

    /// By text: the kept one that holds most of it and how much, or nothing if it is kept itself.
    pub fn holders(&self, crew: &Crew, progress: &Progress) -> Result<Vec<Option<(u32, f64)>>, RunError> {
        let texts = &self.texts;
        let mut order: Vec<u32> = (0..texts.first.len() as u32).collect();
        order.sort_by_key(|&text| (std::cmp::Reverse(texts.set(text).len()), text));
        let mut place = vec![0u32; order.len()];
        (0..).zip(&order).for_each(|(at, &text)| place[text as usize] = at);
        let mut best: Vec<Option<(u32, f64)>> = vec![None; order.len()];
        for round in order.chunks(AT_ONCE) {
            progress.go_on()?;
            let kept: Vec<u32> = round.iter().copied().filter(|&text| best[text as usize].is_none()).collect();
            let insides = texts.inside_each(&self.keys, &kept, crew);
            for (holder, insides) in kept.into_iter().zip(insides) {
                // One of the same round may hold it.
                if best[holder as usize].is_some() {
                    continue;
                }
                for Inside { text, both } in insides {
                    let share = texts.share(text, both);
                    let is_after = place[text as usize] > place[holder as usize];
                    let most = best[text as usize].map_or(0.0, |(_, most)| most);
                    if is_after && share > most {
                        best[text as usize] = Some((holder, share));
                    }
                }
            }
        }
        Ok(best)
    }

    /// By record that goes: the text that holds it, and how much of it.
    pub fn removals<'h>(&'h self, holders: &'h [Option<(u32, f64)>]) -> impl Iterator<Item = (usize, (u32, f64))> {
        self.texts.of.iter().enumerate().filter_map(move |(record, text)| {
            let text = (*text)?;
            // Copies go with the first of them, or for it.
            let copy = (self.texts.first[text as usize] as usize != record).then_some((text, 1.0));
            holders[text as usize].or(copy).map(|removal| (record, removal))
        })
    }

    /// Alarms about texts that hold very many records.
    pub fn alarms(&self, removals: impl Iterator<Item = u32>, records: u64) -> Vec<Alarm> {
        let mut sizes = BTreeMap::<u32, u64>::new();
        removals.for_each(|holder| *sizes.entry(holder).or_insert(1) += 1);
        let name = |text: u32| self.ids.get(self.texts.first[text as usize] as usize);
        alarm::named(Cause::Cluster, sizes.into_iter(), records, name)
    }
}

/// Writes every pair of which one is inside the other, with how much of each is in the other.
pub(super) fn pairs(
    sources: &Arc<[Source]>,
    join: &JoinOptions,
    most_copies: usize,
    mut table: TableFile,
    summary: &mut PairsSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let cutter = cutter(sources, &join.wanted, &join.fields, &[], progress)?;
    let (held, counts) = Held::read(sources, join.reading(), &cutter, summary.plan.most_bytes(), progress)?;
    let (texts, crew) = (&held.texts, Crew::new(join.threads));
    let all: Vec<u32> = (0..texts.first.len() as u32).collect();
    let mut near: Vec<(u32, u32, usize)> = Vec::new();
    for round in all.chunks(AT_ONCE) {
        progress.go_on()?;
        for (&holder, insides) in round.iter().zip(texts.inside_each(&held.keys, round, &crew)) {
            near.extend(insides.iter().flat_map(|one| [(holder, one.text, one.both), (one.text, holder, one.both)]));
        }
    }
    near.extend(all.iter().map(|&text| (text, text, texts.set(text).len())));
    near.sort_unstable();
    // Each may be inside the other.
    near.dedup();
    let mut copies = Copies::new(most_copies);
    let mut rows: Vec<(u32, f64, f64)> = Vec::new();
    for (record, text) in (0..).zip(&texts.of) {
        let Some(text) = *text else { continue };
        let start = near.partition_point(|&(one, ..)| one < text);
        rows.clear();
        for &(_, other, both) in near[start..].iter().take_while(|&&(one, ..)| one == text) {
            let (of_other, of_own) = (texts.share(other, both), texts.share(text, both));
            let each = |earlier| rows.push((earlier, of_other, of_own));
            copies.before(other, texts.first[other as usize], record, each);
        }
        rows.sort_unstable_by_key(|&(earlier, ..)| earlier);
        for &(earlier, of_other, of_own) in &rows {
            let ids = [earlier, record].map(|record| Value::Text(held.ids.get(record as usize)));
            table.row(&[ids[0], ids[1], Value::Number(of_other), Value::Number(of_own)])?;
        }
        summary.pairs += rows.len() as u64;
        copies.note(text, texts.first[text as usize], record);
    }
    table.finish()?;
    let name = |text: u32| held.ids.get(texts.first[text as usize] as usize);
    summary.alarms = alarm::named(Cause::Copies, copies.families(), counts.records, name);
    (summary.copies, summary.pairs_left_out) = (copies.count(), copies.left_out);
    summary.cut_short = held.keys.cut_short;
    summary.index_bytes = held.bytes();
    summary.counts = counts;
    Ok(())
}

/// Writes every record with the kept one that holds most of it.
pub(super) fn cluster(
    sources: &Arc<[Source]>,
    join: &JoinOptions,
    mut table: TableFile,
    summary: &mut ClusterSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let cutter = cutter(sources, &join.wanted, &join.fields, &[], progress)?;
    let (held, counts) = Held::read(sources, join.reading(), &cutter, summary.plan.most_bytes(), progress)?;
    let holders = held.holders(&Crew::new(join.threads), progress)?;
    let removals: BTreeMap<usize, (u32, f64)> = held.removals(&holders).collect();
    let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
    for (record, text) in held.texts.of.iter().enumerate() {
        let id = Value::Text(held.ids.get(record));
        let (centre, share) = match (removals.get(&record), text) {
            (Some(&(holder, share)), _) => (held.texts.first[holder as usize] as usize, Value::Number(share)),
            (None, Some(_)) => (record, Value::Number(1.0)),
            (None, None) => (record, Value::Null),
        };
        *sizes.entry(centre).or_default() += 1;
        table.row(&[id, Value::Text(held.ids.get(centre)), share])?;
    }
    table.finish()?;
    summary.note_sizes(sizes.into_values());
    summary.alarms = held.alarms(removals.values().map(|&(holder, _)| holder), counts.records);
    summary.cut_short = held.keys.cut_short;
    summary.index_bytes = held.bytes();
    summary.counts = counts;
    Ok(())
}
