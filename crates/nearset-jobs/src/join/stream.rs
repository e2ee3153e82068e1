//! Records on their way: cut and hashed by many threads, taken in order by one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::family::Hashed;
use nearset::index::{CommonShingles, ShingleKeys};
use nearset::item::append_sorted;
use nearset::plan::{PlanError, Request};
use nearset::{Item, JoinSpec, Shingler};
use nearset_view::run::SourceSummary;
use serde::Serialize;

use nearset_records::{Batch, Cure, Extracted, Fields, ReadOptions, Reader, RecordError, RecordFault, Source};

use super::cache::{Sets, set_at};
use super::decisions::Decisions;
use super::model;
use crate::run::{Errors, OnError, Progress, RunError, Tally, Worker, record_bytes};
use crate::scan::scan_while;
use crate::screen::{Against, first_hit};

/// A record, cut.
pub(super) struct Document {
    /// Its number in the batch.
    pub record: usize,
    pub text_bytes: usize,
    /// Empty where ids are not wanted.
    pub id: Box<str>,
    /// What stands in the id field, where that is asked for.
    pub field: Option<Box<str>>,
    /// Its number among marked records, if it is one.
    pub mark: Option<u32>,
    /// The filter built before that it is near something in, and how many bands hit there. It is not cut then.
    pub screened: Option<(usize, u32)>,
}

/// A batch's sound records, cut.
#[derive(Default)]
pub(super) struct Cut {
    pub documents: Vec<Document>,
    /// The keys of all documents, one after the other.
    keys: Vec<u64>,
    /// The shingle sets of all documents in the same way, each ascending and behind its length.
    pub sets: Sets,
    /// Where the keys and the set of each end.
    ends: Vec<(usize, usize)>,
}

impl Cut {
    /// The keys of a document, as [`ShingleKeys`] writes them.
    pub fn keys(&self, document: usize) -> &[u64] {
        &self.keys[self.start(document).0..self.ends[document].0]
    }

    /// Whether most of a document is shingles that many records share, so that it is looked up by those.
    pub fn has_common_part(&self, document: usize) -> bool {
        let keys = self.keys(document);
        keys.first().is_some_and(|&first| keys.len() as u64 > 1 + (first >> 32))
    }

    /// The shingle set of a document.
    pub fn set(&self, document: usize) -> &[u64] {
        set_at(&self.sets, self.set_place(document))
    }

    /// Where it is in `sets`.
    pub fn set_place(&self, document: usize) -> usize {
        self.start(document).1
    }

    fn start(&self, document: usize) -> (usize, usize) {
        if document == 0 { (0, 0) } else { self.ends[document - 1] }
    }
}

/// Cuts a text: its shingles, or the hash of its bytes where it has none, so that equal texts are equal. An empty text has none.
pub(super) fn shingle(shingler: &Shingler, text: &str, shingles: &mut Vec<u64>) {
    shingler.shingles(text, shingles);
    if shingles.is_empty() && !text.is_empty() {
        shingles.push(shingler.whole(text));
    }
}

/// What cuts texts for a join.
pub(super) fn shingler(spec: &JoinSpec) -> Result<Shingler, PlanError> {
    Ok(Shingler::new(spec.shingling, spec.seed)?)
}

/// What workers do.
pub(super) struct Cutter<'a> {
    pub shingler: Shingler,
    pub spec: JoinSpec,
    pub model: CommonShingles,
    pub fields: Fields,
    against: &'a [Against<'a>],
    decisions: Option<&'a Decisions>,
    pub wants_ids: bool,
    pub wants_field: bool,
}

impl<'a> Cutter<'a> {
    /// Looks at a sample of the sources first.
    pub fn new(sources: &[Source], wanted: &Request, fields: &Fields, progress: &Progress) -> Result<Self, RunError> {
        Self::with_model(None, sources, wanted, fields, progress)
    }

    /// The same, unless the model is known.
    pub fn with_model(
        model: Option<&CommonShingles>,
        sources: &[Source],
        wanted: &Request,
        fields: &Fields,
        progress: &Progress,
    ) -> Result<Self, RunError> {
        let spec = wanted.plan_join()?;
        let shingler = shingler(&spec)?;
        let model = match model {
            Some(model) => model.clone(),
            None => model::learn(sources, fields, &shingler, progress)?,
        };
        let fields = fields.clone();
        let (against, decisions) = (&[], None);
        Ok(Self { shingler, spec, model, fields, against, decisions, wants_ids: false, wants_field: false })
    }

    /// The same, where texts are screened by filters built before.
    pub fn with_screen(mut self, against: &'a [Against<'a>]) -> Self {
        self.against = against;
        self
    }

    /// The same, where some pairs of records are decided on.
    pub fn with_decisions(mut self, decisions: &'a Decisions) -> Self {
        self.decisions = Some(decisions).filter(|decisions| !decisions.is_empty());
        self
    }

    /// The same, where records are to be named.
    pub fn with_ids(mut self, wanted: bool) -> Self {
        self.wants_ids = wanted;
        self
    }

    /// The same, where another field is wanted in the place of the id.
    pub fn with_field(mut self, field: Option<String>) -> Self {
        self.wants_field = field.is_some();
        self.fields = self.fields.with_id(field);
        self
    }

    fn document(&self, extracted: &Extracted<'_>, i: usize, room: &mut CutterRoom) -> Result<Document, RecordError> {
        let CutterRoom { shingles, hashed, .. } = room;
        let text = text_of(extracted, i, &self.fields)?;
        let screened = first_hit(self.against, text.into(), None, hashed);
        match screened {
            Some(_) => shingles.clear(),
            None => shingle(&self.shingler, text, shingles),
        }
        Ok(Document {
            record: i,
            text_bytes: text.len(),
            id: if self.wants_ids { (*extracted.id(i)).into() } else { Box::default() },
            field: if self.wants_field { extracted.own_id(i).map(Into::into) } else { None },
            mark: self.decisions.and_then(|decisions| decisions.number(&extracted.id(i))),
            screened,
        })
    }
}

/// The text of a record.
pub(super) fn text_of<'a>(extracted: &Extracted<'a>, i: usize, fields: &Fields) -> Result<&'a str, RecordError> {
    match extracted.item(i).map_err(Clone::clone)? {
        Item::Text(text) => Ok(text),
        _ => {
            let fault = RecordFault::WrongType { field: fields.item.clone(), found: "no text", wanted: "a text" };
            Err(extracted.error(i, fault))
        }
    }
}

/// What one thread cuts with.
pub(super) struct CutterRoom {
    shingles: Vec<u64>,
    keys: ShingleKeys,
    hashed: Hashed,
    /// Words that the sets of a batch take at most, as far as is known.
    words: usize,
}

impl Worker for Cutter<'_> {
    type Piece = Cut;
    type Room = CutterRoom;

    fn room(&self) -> CutterRoom {
        CutterRoom { shingles: Vec::new(), keys: ShingleKeys::default(), hashed: Hashed::default(), words: 0 }
    }

    fn clear(&self, room: &mut CutterRoom, cut: &mut Cut) {
        cut.documents.clear();
        cut.keys.clear();
        cut.ends.clear();
        // Those that are still held elsewhere stay as they are.
        if Arc::get_mut(&mut cut.sets).is_none() {
            cut.sets = Arc::default();
        }
        let sets = Arc::make_mut(&mut cut.sets);
        sets.clear();
        sets.reserve(room.words);
    }

    fn add(
        &self,
        room: &mut CutterRoom,
        extracted: &Extracted<'_>,
        i: usize,
        cut: &mut Cut,
    ) -> Result<(), RecordError> {
        let document = self.document(extracted, i, room)?;
        // Nobody else holds them since they were cleared.
        let sets = Arc::make_mut(&mut cut.sets);
        let at = sets.len();
        sets.push(0);
        append_sorted(&room.shingles, sets);
        sets[at] = (sets.len() - at - 1) as u64;
        room.keys.choose(&sets[at + 1..], &self.model, &self.spec);
        room.keys.write(&mut cut.keys);
        cut.ends.push((cut.keys.len(), sets.len()));
        cut.documents.push(document);
        room.words = room.words.max(sets.len());
        Ok(())
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Records read, faulty ones included.
    pub records: u64,
    /// Bytes of records read.
    pub bytes: u64,
    /// Records that could not be read.
    pub faulty: u64,
    /// The first errors, with file and line.
    pub errors: Vec<String>,
    /// How many more there were.
    pub more_errors: u64,
    /// By source, in order.
    pub sources: Vec<SourceSummary>,
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        let Tally { records, bytes, faulty, errors, sources, .. } = tally;
        Self { records, bytes, faulty, errors: errors.shown, more_errors: errors.more, sources }
    }
}

/// Reads all sources and hands their batches over in order, with what a worker makes of them.
pub(crate) fn read<W: Worker>(
    sources: &Arc<[Source]>,
    (threads, on_error): (usize, OnError),
    (worker, fields): (&W, &Fields),
    progress: &Progress,
    mut each: impl FnMut(&Batch, &mut W::Piece) -> Result<u64, RunError>,
) -> Result<Counts, RunError> {
    let mut counts = Counts::default();
    let mut errors = Errors::default();
    counts.sources = sources.iter().map(|source| SourceSummary::new(&*source.name)).collect();
    let reader = Reader::new(Arc::clone(sources), ReadOptions::new(fields.clone()));
    scan_while(
        reader,
        fields,
        threads,
        |extracted, _| {
            let (mut piece, mut faults) = (W::Piece::default(), Vec::new());
            worker.work(&mut worker.room(), extracted, &mut piece, &mut faults);
            (piece, faults)
        },
        || progress.go_on(),
        |batch, result| {
            let (mut piece, faults) = match result {
                Ok(piece) => piece,
                // What can't be reached now, or is named wrongly, is not damaged.
                Err(error) if on_error == OnError::Fail || error.is_fatal() => return Err(error.into()),
                Err(error) => {
                    errors.push(&error);
                    if let Some(source) = counts.sources.iter_mut().find(|source| *source.name == **batch.name()) {
                        source.broken = true;
                    }
                    return Ok(());
                }
            };
            if let (OnError::Fail, Some((_, error))) = (on_error, faults.first()) {
                return Err(error.clone().into());
            }
            let source = &mut counts.sources[batch.start().source];
            source.records += batch.len() as u64;
            source.faulty += faults.len() as u64;
            counts.bytes += (0..batch.len()).map(|i| record_bytes(batch.raw(i))).sum::<u64>();
            counts.records += batch.len() as u64;
            counts.faulty += faults.len() as u64;
            faults.iter().for_each(|(_, error)| errors.push(error));
            let found = each(&batch, &mut piece)?;
            progress.removed.fetch_add(found, Ordering::Relaxed);
            progress.records.store(counts.records, Ordering::Relaxed);
            progress.bytes.store(counts.bytes, Ordering::Relaxed);
            progress.disk_bytes.store(batch.disk_bytes(), Ordering::Relaxed);
            progress.faulty.store(counts.faulty, Ordering::Relaxed);
            Ok(())
        },
    )?;
    errors.expect_readable(on_error, counts.records, counts.faulty)?;
    (counts.errors, counts.more_errors) = (errors.shown, errors.more);
    Ok(counts)
}

/// That every source can be read twice.
pub(super) fn check_files(sources: &[Source], why: &'static str, cure: Cure) -> Result<(), RunError> {
    sources
        .iter()
        .find(|source| !source.is_rereadable())
        .map_or(Ok(()), |source| Err(RunError::once(source, why, cure)))
}
