//! Records on their way: cut and hashed by many threads, taken in order by one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::family::{FamilyError, Functions, Hashed, Key};
use nearset::item::SortedSet;
use nearset::plan::PlanError;
use nearset::spec::SpecError;
use nearset::{Item, Shingler};
use nearset_view::run::SourceSummary;
use serde::Serialize;

use super::JoinOptions;
use super::error::JoinError;
use crate::dedup::{Errors, OnError, Progress, record_bytes};
use crate::scan::scan;
use nearset_records::error::{RecordError, RecordFault};
use nearset_records::extract::{Extracted, Fields};
use nearset_records::input::{Batch, ReadOptions, Reader, Source};

/// A record, cut.
pub(super) struct Document {
    pub set: SortedSet,
    pub text_bytes: usize,
    /// Empty where ids are not wanted.
    pub id: Box<str>,
    /// What stands in the id field, where that is asked for.
    pub field: Option<Box<str>>,
}

/// A batch's records, cut.
pub(super) struct Cut {
    pub documents: Vec<Result<Document, RecordError>>,
    bands: usize,
    /// Keys of all records, `bands` each; none for faulty ones.
    keys: Vec<Option<Key>>,
}

impl Cut {
    /// The keys of record `i`.
    pub fn keys(&self, i: usize) -> &[Option<Key>] {
        &self.keys[i * self.bands..(i + 1) * self.bands]
    }
}

/// What workers do.
pub(super) struct Cutter {
    pub shingler: Shingler,
    functions: Box<dyn Functions>,
    bands: usize,
    fields: Fields,
    pub wants_ids: bool,
    pub wants_field: bool,
}

impl Cutter {
    pub fn new(options: &JoinOptions) -> Result<Self, JoinError> {
        let spec = options.wanted.plan_join()?;
        let uncut = |error: FamilyError| PlanError::from(SpecError::from(error));
        let shingler = Shingler::new(spec.family.shingling, spec.seed).map_err(FamilyError::from);
        Ok(Self {
            shingler: shingler.map_err(uncut)?,
            functions: spec.functions().map_err(uncut)?,
            bands: spec.layout.bands as usize,
            fields: options.fields.clone(),
            wants_ids: false,
            wants_field: false,
        })
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

    pub fn bands(&self) -> usize {
        self.bands
    }

    fn cut(&self, extracted: &Extracted<'_>, hashed: &mut Hashed) -> Cut {
        let mut shingles = Vec::new();
        let mut keys = Vec::with_capacity(extracted.len() * self.bands);
        let mut document = |i: usize| {
            let before = keys.len();
            let cut = self.document(extracted, i, &mut shingles, hashed);
            if cut.is_ok() {
                keys.extend_from_slice(&hashed.keys);
            }
            keys.resize(before + self.bands, None);
            cut
        };
        let documents = (0..extracted.len()).map(&mut document).collect();
        Cut { documents, bands: self.bands, keys }
    }

    fn document(
        &self,
        extracted: &Extracted<'_>,
        i: usize,
        shingles: &mut Vec<u64>,
        hashed: &mut Hashed,
    ) -> Result<Document, RecordError> {
        let Item::Text(text) = extracted.item(i).map_err(Clone::clone)? else {
            let fault = RecordFault::WrongType { field: self.fields.item.clone(), found: "no text", wanted: "a text" };
            return Err(extracted.error(i, fault));
        };
        self.shingler.shingles(text, shingles);
        self.functions
            .hash(Item::Set(shingles), hashed)
            .map_err(|cause| extracted.error(i, RecordFault::Unhashable { field: self.fields.item.clone(), cause }))?;
        Ok(Document {
            set: SortedSet::from(&shingles[..]),
            text_bytes: text.len(),
            id: if self.wants_ids { (*extracted.id(i)).into() } else { Box::default() },
            field: if self.wants_field { extracted.own_id(i).map(Into::into) } else { None },
        })
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

/// Reads all sources and hands their batches over in order.
pub(super) fn read(
    sources: &Arc<[Source]>,
    options: &JoinOptions,
    cutter: &Cutter,
    progress: &Progress,
    mut each: impl FnMut(&Batch, &mut Cut, &mut SourceSummary) -> Result<u64, JoinError>,
) -> Result<Counts, JoinError> {
    let mut counts = Counts::default();
    let mut errors = Errors::default();
    counts.sources = sources.iter().map(|source| SourceSummary::new(&*source.name)).collect();
    let reader = Reader::new(Arc::clone(sources), ReadOptions::new(cutter.fields.clone()));
    scan(
        reader,
        &cutter.fields,
        options.threads,
        |extracted, hashed| cutter.cut(extracted, hashed),
        |batch, result| {
            if progress.is_stopped() {
                return Err(JoinError::Interrupted);
            }
            let mut cut = match result {
                Ok(cut) => cut,
                Err(error) if options.on_error == OnError::Fail => return Err(error.into()),
                Err(error) => {
                    errors.push(&error);
                    if let Some(source) = counts.sources.iter_mut().find(|source| *source.name == **batch.name()) {
                        source.broken = true;
                    }
                    return Ok(());
                }
            };
            let source = &mut counts.sources[batch.start().source];
            for (i, document) in cut.documents.iter().enumerate() {
                counts.bytes += record_bytes(batch.raw(i));
                source.records += 1;
                if let Err(error) = document {
                    if options.on_error == OnError::Fail {
                        return Err(error.clone().into());
                    }
                    counts.faulty += 1;
                    source.faulty += 1;
                    errors.push(error);
                }
            }
            counts.records += cut.documents.len() as u64;
            let found = each(&batch, &mut cut, source)?;
            progress.removed.fetch_add(found, Ordering::Relaxed);
            progress.records.store(counts.records, Ordering::Relaxed);
            progress.bytes.store(counts.bytes, Ordering::Relaxed);
            progress.disk_bytes.store(batch.disk_bytes(), Ordering::Relaxed);
            progress.faulty.store(counts.faulty, Ordering::Relaxed);
            Ok(())
        },
    )?;
    (counts.errors, counts.more_errors) = (errors.shown, errors.more);
    Ok(counts)
}

/// That every source can be read twice.
pub(super) fn check_files(sources: &[Source], why: &'static str) -> Result<(), JoinError> {
    match sources.iter().find(|source| source.bytes.is_none()) {
        Some(pipe) => Err(JoinError::Pipe { name: Arc::clone(&pipe.name), why }),
        None => Ok(()),
    }
}
