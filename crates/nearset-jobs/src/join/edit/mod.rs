//! Pairs, clusters, removal and search by edit distance.
//!
//! Claim: none within the limit is missed, and the numbers stated are exact.
//! Invariant: equal texts are one. An edit is a character inserted, deleted or replaced; case and spaces count. Limit: all texts are held.

mod distance;
mod index;
mod keys;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::family::Hashed;
use nearset_records::output::{TableFile, Value};
use nearset_records::{Extracted, Fields, RecordError, Source};

use super::alarm::{self, Alarm, Cause};
use super::components::UnionFind;
use super::copies::Copies;
use super::equal::Equal;
use super::needs::expect_memory;
use super::rank::{Keep, Rank};
use super::stream::{self, Counts, text_of};
use super::{ClusterSummary, JoinOptions, PairsSummary, TextMeasure};
use crate::crew::Crew;
use crate::run::{Ids, OnError, Progress, RunError, Worker};
use crate::screen::{Against, first_hit};
use distance::Pattern;
pub(super) use index::Limit;
use index::{EditIndex, Room, Texts};
pub use search::{EditSearch, Searching};

/// Texts whose neighbours are looked for together. A few, because one may be near all others of them.
const AT_ONCE: usize = 512;

/// Texts that one thread looks up in one go.
const EACH: usize = 32;

/// What a text takes beside its characters and what it is found by.
const BYTES_PER_TEXT: u64 = 140;

/// What a text is found by, about: some chunks, or what is left of it by deletions.
const KEY_BYTES_PER_TEXT: u64 = 160;

/// Returns from where on texts are near; `None` if `near` is no number of edits, or no similarity.
pub(super) fn limit(measure: TextMeasure, near: f64) -> Option<Limit> {
    match measure {
        TextMeasure::Edit => {
            (near >= 0.0 && near.fract() == 0.0 && near <= f64::from(u32::MAX)).then_some(Limit::Edits(near as usize))
        }
        TextMeasure::EditSimilarity => (near > 0.0 && near <= 1.0).then_some(Limit::Similarity(near)),
        TextMeasure::Containment => None,
    }
}

/// The memory of a record whose text has so many bytes, its id aside.
pub(super) fn bytes_per_record(text_bytes: u64) -> u64 {
    text_bytes + KEY_BYTES_PER_TEXT + BYTES_PER_TEXT
}

/// A record on its way.
pub(super) struct Arrival {
    /// Its number in the batch.
    record: usize,
    id: Box<str>,
    /// What stands in the id field, where that is asked for.
    field: Option<Box<str>>,
    /// The filter built before that it is near something in, and how many bands hit there. It has no text then.
    screened: Option<(usize, u32)>,
    text: Box<str>,
}

/// Takes texts out of records.
pub(super) struct Reader<'a> {
    pub fields: Fields,
    against: &'a [Against<'a>],
    wants_field: bool,
}

impl<'a> Reader<'a> {
    /// Records that are near something in filters built before are set aside; `field` is wanted in the place of the id.
    pub fn new(fields: &Fields, against: &'a [Against<'a>], field: Option<&str>) -> Self {
        let wants_field = field.is_some();
        let fields = if wants_field { fields.clone().with_id(field.map(str::to_owned)) } else { fields.clone() };
        Self { fields, against, wants_field }
    }

    fn arrival(&self, extracted: &Extracted<'_>, i: usize, hashed: &mut Hashed) -> Result<Arrival, RecordError> {
        let text = text_of(extracted, i, &self.fields)?;
        let screened = first_hit(self.against, text.into(), None, hashed);
        Ok(Arrival {
            record: i,
            id: (*extracted.id(i)).into(),
            field: if self.wants_field { extracted.own_id(i).map(Into::into) } else { None },
            screened,
            text: if screened.is_some() { Box::default() } else { text.into() },
        })
    }
}

impl Worker for Reader<'_> {
    type Piece = Vec<Arrival>;
    type Room = Hashed;

    fn room(&self) -> Hashed {
        Hashed::default()
    }

    fn clear(&self, _: &mut Hashed, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
    }

    fn add(
        &self,
        room: &mut Hashed,
        extracted: &Extracted<'_>,
        i: usize,
        arrivals: &mut Vec<Arrival>,
    ) -> Result<(), RecordError> {
        arrivals.push(self.arrival(extracted, i, room)?);
        Ok(())
    }
}

/// Which texts are near kept ones.
pub(super) struct Nearest {
    /// By text, kept ones near it in the order of their turns, each nearer than those before it; of a kept one there are none. Where chains are followed, all
    /// texts count as kept, but only those whose turn comes before the text's.
    nearest: Vec<Vec<(u32, f64)>>,
    follow_chains: bool,
}

/// All texts of a corpus.
pub(super) struct Held {
    index: EditIndex,
    limit: Limit,
    /// By record its text; `None` where it is empty.
    of: Vec<Option<u32>>,
    /// The most wanted record of each text.
    pub first: Vec<u32>,
    /// Texts, the most wanted first.
    order: Vec<u32>,
    /// When it is each record's turn: the most wanted first.
    turns: Vec<u32>,
    /// What records are called.
    pub ids: Ids,
    /// By record: the filter that it is near something in, and how many bands hit there.
    pub screened: BTreeMap<u64, (usize, u32)>,
    /// The number of each record in the input, faulty ones counted.
    pub numbers: Vec<u64>,
    compared: u64,
}

impl Held {
    /// Reads all records. Those that `keep` wants most are decided on first. Others may be looked up whose texts have up to `longest` characters.
    pub fn read(
        sources: &Arc<[Source]>,
        reading: (usize, OnError),
        (reader, keep): (&Reader<'_>, &Keep),
        (limit, longest): (Limit, usize),
        most_bytes: u64,
        progress: &Progress,
    ) -> Result<(Self, Counts), RunError> {
        let (mut texts, mut equal) = (Texts::default(), Equal::default());
        let (mut of, mut ids, mut ranks) = (Vec::new(), Ids::default(), Vec::new());
        let (mut screened, mut numbers, mut first) = (BTreeMap::new(), Vec::new(), 0);
        let mut is_field_there = keep.field().is_none();
        let counts = stream::read(sources, reading, (reader, &reader.fields), progress, |batch, arrivals| {
            for arrival in std::mem::take(arrivals) {
                let number = first + arrival.record as u64;
                screened.extend(arrival.screened.map(|hit| (number, hit)));
                is_field_there |= arrival.field.is_some();
                match keep {
                    Keep::First => {}
                    Keep::Longest => ranks.push(Rank::Number(arrival.text.len() as f64, None)),
                    Keep::Max(_) | Keep::Min(_) => ranks.push(Rank::of(arrival.field.as_deref())),
                }
                ids.push(&arrival.id);
                numbers.push(number);
                if arrival.text.is_empty() {
                    of.push(None);
                    continue;
                }
                let next = texts.count() as u32;
                let text = equal.number(&arrival.text, |text| texts.is(text, &arrival.text), next);
                if text == next {
                    texts.push(&arrival.text);
                }
                of.push(Some(text));
            }
            first += batch.len() as u64;
            let taken = texts.bytes() + ids.bytes() + texts.count() as u64 * (KEY_BYTES_PER_TEXT + BYTES_PER_TEXT);
            expect_memory(taken, most_bytes, first)?;
            progress.filter_bytes.store(taken, Ordering::Relaxed);
            Ok(0)
        })?;
        if let (false, true, Some(field)) = (is_field_there, counts.records > counts.faulty, keep.field()) {
            return Err(RunError::NoField { field: field.to_owned() });
        }
        drop(equal);
        let mut records: Vec<u32> = (0..u32::try_from(of.len()).map_err(|_| RunError::TooMany)?).collect();
        if !ranks.is_empty() {
            records.sort_by(|&a, &b| keep.order(&ranks[a as usize], &ranks[b as usize]).then(a.cmp(&b)));
        }
        let (mut order, mut wanted) = (Vec::with_capacity(texts.count()), vec![u32::MAX; texts.count()]);
        let mut turns = vec![0; records.len()];
        for (turn, record) in (0..).zip(records) {
            turns[record as usize] = turn;
            if let Some(text) = of[record as usize]
                && wanted[text as usize] == u32::MAX
            {
                wanted[text as usize] = record;
                order.push(text);
            }
        }
        let index = EditIndex::new(texts, (limit, longest)).ok_or(RunError::TooMany)?;
        Ok((Self { index, limit, of, first: wanted, order, turns, ids, screened, numbers, compared: 0 }, counts))
    }

    pub fn bytes(&self) -> u64 {
        self.index.bytes() + 28 * self.of.len() as u64
    }

    /// Pairs of texts that were compared.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// What users are told about two texts.
    fn stated(&self, a: u32, b: u32, edits: u32) -> f64 {
        let texts = self.index.texts();
        self.limit.stated(edits, texts.length(a).max(texts.length(b)))
    }

    fn is_nearer(&self, a: f64, b: f64) -> bool {
        self.limit.far(a) < self.limit.far(b)
    }

    /// What is stated of a text and itself.
    fn itself(&self) -> f64 {
        self.limit.stated(0, 1)
    }

    /// Looks texts up, by many threads, and returns what is near each.
    fn near_each(&mut self, texts: &[u32], shorter: bool, crew: &Crew) -> Vec<Vec<(u32, u32)>> {
        let index = &self.index;
        let parts = crew.each(texts.chunks(EACH).collect(), |texts: &[u32]| {
            let mut room = Room::default();
            let near = texts.iter().map(|&text| index.near(text, shorter, &mut room)).collect::<Vec<_>>();
            (near, room.compared)
        });
        self.compared += parts.iter().map(|(_, compared)| compared).sum::<u64>();
        parts.into_iter().flat_map(|(near, _)| near).collect()
    }

    /// Returns every near pair of texts once.
    fn pairs(&mut self, crew: &Crew, progress: &Progress) -> Result<Vec<(u32, u32, u32)>, RunError> {
        let (mut pairs, order) = (Vec::new(), self.order.clone());
        for round in order.chunks(AT_ONCE) {
            progress.go_on()?;
            for (&text, near) in round.iter().zip(self.near_each(round, true, crew)) {
                pairs.extend(near.into_iter().map(|(other, edits)| (text, other, edits)));
            }
        }
        Ok(pairs)
    }

    /// Decides which texts are kept, those that are wanted most first.
    pub fn nearest(&mut self, follow_chains: bool, crew: &Crew, progress: &Progress) -> Result<Nearest, RunError> {
        let order = self.order.clone();
        let mut place = vec![0u32; order.len()];
        (0..).zip(&order).for_each(|(at, &text)| place[text as usize] = at);
        let mut nearest: Vec<Vec<(u32, f64)>> = vec![Vec::new(); order.len()];
        for round in order.chunks(AT_ONCE) {
            progress.go_on()?;
            let asked = |text: &u32| follow_chains || nearest[*text as usize].is_empty();
            let round: Vec<u32> = round.iter().copied().filter(asked).collect();
            let near = self.near_each(&round, false, crew);
            for (kept, near) in round.into_iter().zip(near) {
                // One of the same round may be near it.
                if !follow_chains && !nearest[kept as usize].is_empty() {
                    continue;
                }
                for (text, edits) in near {
                    // One that is wanted more is gone, or the kept one would be; a copy of it may still come.
                    let is_before = place[text as usize] < place[kept as usize];
                    let stated = self.stated(kept, text, edits);
                    let is_nearer = nearest[text as usize].last().is_none_or(|&(_, best)| self.is_nearer(stated, best));
                    if is_nearer && !(follow_chains && is_before) {
                        nearest[text as usize].push((kept, stated));
                    }
                }
            }
        }
        Ok(Nearest { nearest, follow_chains })
    }

    /// The text that a record goes for, and how near that is; `None` if the record stays, or is empty.
    fn removal(&self, record: usize, Nearest { nearest, follow_chains }: &Nearest) -> Option<(u32, f64)> {
        let text = self.of[record]?;
        let is_first = self.first[text as usize] as usize == record;
        if *follow_chains && !is_first {
            return Some((text, self.itself()));
        }
        let is_before = |&&(kept, _): &&(u32, f64)| self.turns[self.first[kept as usize] as usize] < self.turns[record];
        let found = nearest[text as usize].iter().take_while(is_before).last().copied();
        // Copies of what stays go for it.
        found.or((!is_first).then_some((text, self.itself())))
    }

    /// By record that goes: the text that it is near, and how near.
    pub fn removals<'h>(&'h self, nearest: &'h Nearest) -> impl Iterator<Item = (usize, (u32, f64))> {
        (0..self.of.len()).filter_map(move |record| self.removal(record, nearest).map(|near| (record, near)))
    }

    /// Alarms about texts of these names that very many records are near.
    pub fn alarms(names: &Ids, removals: impl Iterator<Item = u32>, records: u64) -> Vec<Alarm> {
        let mut sizes = BTreeMap::<u32, u64>::new();
        removals.for_each(|text| *sizes.entry(text).or_insert(1) += 1);
        alarm::named(Cause::Cluster, sizes.into_iter(), records, |text| names.get(text as usize))
    }
}

/// Writes every near pair.
pub(super) fn pairs(
    sources: &Arc<[Source]>,
    (join, limit): (&JoinOptions, Limit),
    most_copies: usize,
    mut table: TableFile,
    summary: &mut PairsSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let reader = Reader::new(&join.fields, &[], None);
    let (mut held, counts) =
        Held::read(sources, join.reading(), (&reader, &Keep::First), (limit, 0), summary.plan.most_bytes(), progress)?;
    let pairs = held.pairs(&Crew::new(join.threads), progress)?;
    let texts = held.order.len();
    // By text, what is near it: itself, for copies, and others.
    let mut near: Vec<(u32, u32, u32)> = (0..texts as u32).map(|text| (text, text, 0)).collect();
    near.extend(pairs.into_iter().flat_map(|(a, b, edits)| [(a, b, edits), (b, a, edits)]));
    near.sort_unstable();
    let mut copies = Copies::new(most_copies);
    let mut rows: Vec<(u32, f64)> = Vec::new();
    for (record, text) in (0..).zip(&held.of) {
        let Some(text) = *text else { continue };
        let start = near.partition_point(|&(one, ..)| one < text);
        rows.clear();
        for &(_, other, edits) in near[start..].iter().take_while(|&&(one, ..)| one == text) {
            let stated = held.stated(text, other, edits);
            copies.before(other, held.first[other as usize], record, |earlier| rows.push((earlier, stated)));
        }
        rows.sort_unstable_by_key(|&(earlier, _)| earlier);
        for &(earlier, stated) in &rows {
            let [a, b] = [earlier, record].map(|record| Value::Text(held.ids.get(record as usize)));
            table.row(&[a, b, Value::Number(stated)])?;
        }
        summary.pairs += rows.len() as u64;
        copies.note(text, held.first[text as usize], record);
    }
    table.finish()?;
    let name = |text: u32| held.ids.get(held.first[text as usize] as usize);
    summary.alarms = alarm::named(Cause::Copies, copies.families(), counts.records, name);
    (summary.copies, summary.pairs_left_out) = (copies.count(), copies.left_out);
    summary.compared = Some(held.compared);
    summary.index_bytes = held.bytes();
    summary.counts = counts;
    Ok(())
}

/// Writes every record with the nearest kept one, or with the first that chains connect it with.
pub(super) fn cluster(
    sources: &Arc<[Source]>,
    (join, limit): (&JoinOptions, Limit),
    follow_chains: bool,
    mut table: TableFile,
    summary: &mut ClusterSummary,
    progress: &Progress,
) -> Result<(), RunError> {
    let reader = Reader::new(&join.fields, &[], None);
    let (mut held, counts) =
        Held::read(sources, join.reading(), (&reader, &Keep::First), (limit, 0), summary.plan.most_bytes(), progress)?;
    // By record; of an empty one it is nothing.
    let centres: Vec<Option<(u32, f64)>> = if follow_chains {
        let connected = held.components(&Crew::new(join.threads), progress)?;
        held.of.iter().map(|text| text.map(|text| connected[text as usize])).collect()
    } else {
        let nearest = held.nearest(false, &Crew::new(join.threads), progress)?;
        let centre = |(record, text): (usize, &Option<u32>)| {
            text.map(|text| held.removal(record, &nearest).unwrap_or((text, held.itself())))
        };
        held.of.iter().enumerate().map(centre).collect()
    };
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    for (record, centre) in centres.into_iter().enumerate() {
        let id = Value::Text(held.ids.get(record));
        let (centre, near) = match centre {
            Some(centre) => centre,
            None => {
                *sizes.entry(record as u32).or_default() += 1;
                table.row(&[id, id, Value::Null])?;
                continue;
            }
        };
        let centre = held.first[centre as usize];
        *sizes.entry(centre).or_default() += 1;
        table.row(&[id, Value::Text(held.ids.get(centre as usize)), Value::Number(near)])?;
    }
    table.finish()?;
    summary.note_sizes(sizes.values().copied());
    let name = |centre: u32| held.ids.get(centre as usize);
    summary.alarms = alarm::named(Cause::Cluster, sizes.into_iter(), counts.records, name);
    summary.compared = Some(held.compared);
    summary.index_bytes = held.bytes();
    summary.counts = counts;
    Ok(())
}

impl Held {
    /// By text: the first one that chains connect it with, and how near that is.
    fn components(&mut self, crew: &Crew, progress: &Progress) -> Result<Vec<(u32, f64)>, RunError> {
        let mut components = UnionFind::default();
        components.grow(self.order.len());
        self.pairs(crew, progress)?.into_iter().for_each(|(a, b, _)| components.union(a, b));
        let mut pattern = Pattern::default();
        let texts = self.index.texts();
        let stated = |text: u32| {
            let first = components.find(text);
            if first == text {
                return (text, self.itself());
            }
            pattern.set(texts.chars(text));
            let edits = pattern.within(texts.chars(first), usize::MAX).unwrap_or(usize::MAX);
            (first, self.stated(text, first, edits as u32))
        };
        Ok((0..self.order.len() as u32).map(stated).collect())
    }
}
