//! Filters in bytes, with all their generations, and their specs.
//!
//! A file of generations holds each generation's own file, whole.

use std::{borrow::Cow, io};

use super::{
    Body, Check, DecodeError, Frame, Kind, Opening, Reader, Writer, encode, encode_from, exact, file_length, head,
    head_length,
    spec::{self, SPEC, unknown},
};
use crate::{
    Distance,
    error::{MOST_GENERATIONS, SpecError},
    filter::{ExactNearFilter, Filter, Generation, NearFilter, most_generations, next_specs_in_files},
    spec::{FilterSpec, GenerationSpec, Terms, WhenFull},
};

/// The section that says how long each generation's file is.
const LENGTHS: u16 = 2;
/// The section of the terms.
const TERMS: u16 = 3;

fn write_terms(terms: &Terms) -> Vec<u8> {
    let Terms { near, far, max_false_negative, max_false_positive, capacity, when_full } = *terms;
    let mut out = Writer::default();
    out.f64(near.value()).f64(far.value()).f64(max_false_negative).f64(max_false_positive).u64(capacity);
    match when_full {
        WhenFull::Grow => out.u8(0),
        WhenFull::Refuse => out.u8(1),
        WhenFull::Forget { generations } => out.u8(2).u32(generations),
    };
    out.bytes
}

fn read_terms(mut reader: Reader<'_>) -> Result<Terms, DecodeError> {
    let mut distance = |what| {
        let found = reader.f64()?;
        Distance::new(found).map_err(|_| DecodeError::BadValue { what, found: found.to_string() })
    };
    let terms = Terms {
        near: distance("the near distance")?,
        far: distance("the far distance")?,
        max_false_negative: reader.f64()?,
        max_false_positive: reader.f64()?,
        capacity: reader.u64()?,
        when_full: match reader.u8()? {
            0 => WhenFull::Grow,
            1 => WhenFull::Refuse,
            2 => WhenFull::Forget { generations: reader.u32()? },
            found => return Err(unknown("end of a generation", found)),
        },
    };
    reader.finish("the terms")?;
    terms.check().map_err(bad_terms)?;
    Ok(terms)
}

fn bad_terms(error: SpecError) -> DecodeError {
    DecodeError::BadValue { what: "a part of the terms", found: error.to_string() }
}

impl Body for FilterSpec {
    const KIND: Kind = Kind::Description;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let (kind, spec) = match &self.first {
            GenerationSpec::Near(spec) => (Kind::Near, spec::write_spec(spec)),
            GenerationSpec::Exact(spec) => (Kind::ExactNear, exact::write_spec(spec)),
        };
        let spec = [&[kind.number()][..], &spec].concat();
        vec![(SPEC, spec), (TERMS, self.terms().map(write_terms).unwrap_or_default())]
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        Vec::new()
    }
}

impl FilterSpec {
    /// The spec as bytes, checked like a file.
    pub fn encode(&self) -> Vec<u8> {
        head(self, &[])
    }

    /// A spec from its bytes. Nothing of what it describes is allocated.
    ///
    /// # Errors
    /// If the bytes are not an intact spec that this build reads.
    pub fn decode(bytes: &[u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let limit = opening.into().work;
        let frame = Frame::open(bytes, Kind::Description, Check::Everything)?;
        frame.expect_only(&[SPEC, TERMS])?;
        let mut spec = frame.section(SPEC, "the spec")?;
        let first = match spec.u8()? {
            number if number == Kind::Near.number() => GenerationSpec::Near(spec::read_spec(spec, limit)?),
            number if number == Kind::ExactNear.number() => GenerationSpec::Exact(exact::read_spec(spec, limit)?),
            found => return Err(unknown("kind of filter", found)),
        };
        let terms = frame.section(TERMS, "the terms")?;
        let terms = if terms.is_empty() { None } else { Some(read_terms(terms)?) };
        frame.finish()?;
        let spec = Self { first, terms };
        spec.check(limit)?;
        Ok(spec)
    }
}

impl Generation<'_> {
    /// All that stands before the filter's arrays in its file, and the arrays.
    fn parts(&self) -> (Vec<u8>, Vec<Cow<'_, [u8]>>) {
        fn of<B: Body>(body: &B) -> (Vec<u8>, Vec<Cow<'_, [u8]>>) {
            let arrays = body.arrays();
            (head(body, &arrays), arrays)
        }
        match self {
            Generation::Near(filter) => of(filter),
            Generation::Exact(filter) => of(filter),
        }
    }
}

impl<'a> Generation<'a> {
    fn encode_from(&self, from: u64, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Generation::Near(filter) => encode_from(filter, from, out),
            Generation::Exact(filter) => encode_from(filter, from, out),
        }
    }

    fn file_length(&self) -> u64 {
        match self {
            Generation::Near(filter) => file_length(filter),
            Generation::Exact(filter) => file_length(filter),
        }
    }

    /// Opens a file that holds nothing else, and if it is to follow another filter, has one of the specs that may follow.
    fn decode_after(
        bytes: &'a [u8],
        opening: Opening,
        after: Option<(&Generation<'_>, &[GenerationSpec])>,
    ) -> Result<Self, DecodeError> {
        Ok(match after {
            None if Kind::of(bytes)? == Kind::ExactNear => {
                Generation::Exact(ExactNearFilter::decode_after(bytes, opening, None)?)
            }
            None => Generation::Near(NearFilter::decode_after(bytes, opening, None)?),
            Some((Generation::Near(older), specs)) => {
                Generation::Near(NearFilter::decode_after(bytes, opening, Some((older, specs)))?)
            }
            Some((Generation::Exact(older), specs)) => {
                Generation::Exact(ExactNearFilter::decode_after(bytes, opening, Some((older, specs)))?)
            }
        })
    }
}

/// A generation that does not follow from the one before it.
pub(super) fn unlike_the_first() -> DecodeError {
    DecodeError::BadValue { what: "a generation's spec", found: "another than the first one's makes it".into() }
}

/// Generations as the files that they are kept in.
struct Files<'g> {
    terms: &'g Terms,
    lengths: Vec<u8>,
    arrays: Vec<Cow<'g, [u8]>>,
}

impl<'g> Files<'g> {
    fn of(terms: &'g Terms, filters: &'g [Generation<'_>]) -> Self {
        let (mut lengths, mut arrays) = (Writer::default(), Vec::new());
        for filter in filters {
            let (head, payload) = filter.parts();
            let all = std::iter::once(Cow::Owned(head)).chain(payload);
            let from = arrays.len();
            arrays.extend(all);
            // The frame fills up each array as the generation's own frame does.
            lengths.u64(arrays[from..].iter().map(|array| array.len().next_multiple_of(64) as u64).sum());
        }
        Self { terms, lengths: lengths.bytes, arrays }
    }
}

impl Body for Files<'_> {
    const KIND: Kind = Kind::Generations;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        vec![(LENGTHS, self.lengths.clone()), (TERMS, write_terms(self.terms))]
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        self.arrays.iter().map(|array| Cow::Borrowed(&**array)).collect()
    }
}

impl<'a> Filter<'a> {
    /// Writes the filter as a file. A filter on no terms is written as the structure that it is.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.terms() {
            Some(terms) => encode(&Files::of(terms, self.filters()), out),
            None => self.filters().iter().try_for_each(|filter| filter.encode_from(0, out)),
        }
    }

    /// [`Self::encode`] from a position in the file on, at no cost for what stands before it.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode_from(&self, from: u64, out: &mut dyn io::Write) -> io::Result<()> {
        let mut at = 0;
        if let Some(terms) = self.terms() {
            if from == 0 {
                return self.encode(out);
            }
            let empty = Files { terms, lengths: vec![0; size_of::<u64>() * self.filters().len()], arrays: Vec::new() };
            at = head_length(&empty);
            if from < at {
                let files = Files::of(terms, self.filters());
                out.write_all(&head(&files, &files.arrays)[from as usize..])?;
            }
        }
        for filter in self.filters() {
            let length = filter.file_length();
            if from < at + length {
                filter.encode_from(from.saturating_sub(at), out)?;
            }
            at += length;
        }
        Ok(())
    }

    /// Opens a file's bytes, of generations or of a single structure. Tables that lie 64-byte aligned in them, as in a memory map, are
    /// used in place.
    ///
    /// # Errors
    /// If the bytes are not an intact filter that this build reads.
    pub fn decode(bytes: &'a [u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let opening = opening.into();
        if Kind::of(bytes)? != Kind::Generations {
            return Ok(Self::with_terms(vec![Generation::decode_after(bytes, opening, None)?], None));
        }
        let (terms, files) = open(bytes, opening.check)?;
        let window = if let WhenFull::Forget { generations } = terms.when_full { generations as usize } else { 1 };
        let generations = files.len().max(window);
        let mut filters: Vec<Generation<'a>> = Vec::with_capacity(files.len());
        for file in files {
            let filter = match filters.last() {
                None => {
                    let first = Generation::decode_after(file, opening, None)?;
                    opening.work.check(&first.spec().work_bound().in_each_of(generations))?;
                    first
                }
                Some(older) => {
                    let specs = next_specs_in_files(&older.spec(), terms.when_full, filters.len())?;
                    Generation::decode_after(file, opening, Some((older, &specs)))?
                }
            };
            filters.push(filter);
        }
        Ok(Self::with_terms(filters, Some(terms)))
    }
}

/// The frame of a file of generations, opened: its terms, and each generation's bytes.
fn open(bytes: &[u8], check: Check) -> Result<(Terms, Vec<&[u8]>), DecodeError> {
    let mut frame = Frame::open(bytes, Kind::Generations, check)?;
    frame.expect_only(&[LENGTHS, TERMS])?;
    let terms = read_terms(frame.section(TERMS, "the terms")?)?;
    let mut lengths = frame.section(LENGTHS, "the generations' lengths")?;
    let mut files = Vec::new();
    while !lengths.is_empty() {
        // Before anything is kept of it: no file makes a reader hold more than it has bytes.
        if files.len() == most_generations(terms.when_full).min(MOST_GENERATIONS) {
            return Err(DecodeError::BadValue { what: "the number of generations", found: "more than may be".into() });
        }
        files.push(frame.payload(lengths.u64()?)?);
    }
    if files.is_empty() {
        return Err(DecodeError::BadValue { what: "the number of generations", found: "0".into() });
    }
    frame.finish()?;
    Ok((terms, files))
}
