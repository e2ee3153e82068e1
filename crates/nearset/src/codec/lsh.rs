//! Near-neighbour indexes in bytes.

use std::borrow::Cow;

use super::{
    Body, Check, DecodeError, Frame, Kind, Opening, Reader, Writer, encode, encode_from,
    frame::to_bytes,
    spec::{COUNTS, SPEC, read_counts, read_family, unknown, write_family},
};
use crate::{
    Layout, LshSpec, Seed,
    family::WorkLimit,
    index::{
        Labels, LshIndex,
        lsh::{Kept, Parts, Run, Shape, addresses},
    },
};

/// The section that says how many names there are, and how long all of them; left out where there are none.
const NAMES: u16 = 3;

fn write_spec(spec: &LshSpec) -> Vec<u8> {
    let LshSpec { family, seed, layout, probes, keeps_items } = spec;
    let mut out = Writer::default();
    write_family(family, &mut out);
    out.put(&seed.to_bytes()).u32(layout.rows).u32(layout.bands).u32(*probes).u8(u8::from(*keeps_items));
    out.bytes
}

fn read_spec(mut reader: Reader<'_>, limit: WorkLimit) -> Result<LshSpec, DecodeError> {
    let family = read_family(&mut reader)?;
    let seed = Seed::from_bytes(reader.array()?);
    let layout = Layout::new(reader.u32()?, reader.u32()?);
    let probes = reader.u32()?;
    let keeps_items = match reader.u8()? {
        0 => false,
        1 => true,
        found => return Err(unknown("keeping of items", found)),
    };
    reader.finish("the spec")?;
    let spec = LshSpec { family, seed, layout, probes, keeps_items };
    spec.check_within(limit)?;
    Ok(spec)
}

/// An index that is compact.
struct Compact<'i, 'a> {
    spec: &'i LshSpec,
    parts: Parts<'i, 'a>,
}

impl Body for Compact<'_, '_> {
    const KIND: Kind = Kind::Lsh;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let mut counts = Writer::default();
        counts.u64(self.parts.ids.len() as u64).u64(u64::from(self.parts.next));
        let mut sections = vec![(SPEC, write_spec(self.spec)), (COUNTS, counts.bytes)];
        let Labels { ends, text } = self.parts.labels;
        if !ends.is_empty() {
            let mut names = Writer::default();
            names.u64(ends.len() as u64).u64(text.len() as u64);
            sections.push((NAMES, names.bytes));
        }
        sections
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        let Parts { ids, run, kept, labels, .. } = self.parts;
        let mut arrays = Vec::new();
        if let Some(run) = run {
            arrays.extend([to_bytes(ids), to_bytes(&run.ends), to_bytes(&run.starts), to_bytes(&run.entries)]);
            if let Some(kept) = kept {
                arrays.extend([to_bytes(&kept.ends), to_bytes(&kept.words), to_bytes(&kept.halves)]);
            }
        }
        arrays.extend([to_bytes(&labels.ends), to_bytes(&labels.text)]);
        arrays
    }
}

impl<'a> LshIndex<'a> {
    /// Writes the index as a file, compact: a copy is made so unless it is already.
    ///
    /// # Errors
    /// What the writer reports.
    pub(crate) fn encode(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        self.encode_from(0, out)
    }

    /// [`Self::encode`] from a position in the file on.
    ///
    /// # Errors
    /// What the writer reports.
    pub(crate) fn encode_from(&self, from: u64, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        if let Some(parts) = self.parts() {
            let compact = Compact { spec: self.spec(), parts };
            return if from == 0 { encode(&compact, out) } else { encode_from(&compact, from, out) };
        }
        let mut compact = self.clone();
        compact.compact();
        compact.encode_from(from, out)
    }

    /// Opens a file's bytes. Tables and items that lie 64-byte aligned in them, as in a memory map, are used in place.
    ///
    /// # Errors
    /// If the bytes are not an intact near-neighbour index that this build reads.
    pub(crate) fn decode(bytes: &'a [u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let Opening { check, work } = opening.into();
        let mut frame = Frame::open(bytes, Kind::Lsh, check)?;
        frame.expect_only(&[SPEC, COUNTS, NAMES])?;
        let spec = read_spec(frame.section(SPEC, "the spec")?, work)?;
        let (items, next) = read_counts(&frame)?;
        let bad = |what, found: String| Err(DecodeError::BadValue { what, found });
        let (Ok(items), Ok(next)) = (u32::try_from(items), u32::try_from(next)) else {
            return bad("the number of items", items.max(next).to_string());
        };
        if items > next {
            return bad("the number of items", format!("{items} of {next} ids"));
        }
        if items == 0 {
            let labels = read_labels(&mut frame, next, check)?;
            frame.finish()?;
            return Ok(Self::from_parts(spec, next, Cow::default(), None, None, labels));
        }
        let ids = frame.numbers(u64::from(items))?;
        let run = read_run(&mut frame, items, spec.layout.bands)?;
        let kept = if spec.keeps_items { Some(read_kept(&mut frame, items, &spec)?) } else { None };
        let labels = read_labels(&mut frame, next, check)?;
        frame.finish()?;
        if check == Check::Everything {
            if !ids.is_sorted_by(|a, b| a < b) || ids.last().is_some_and(|&last| last >= next) {
                return bad("the list of ids", "out of order".into());
            }
            if let Some(fault) = run.fault() {
                return bad("a table", fault.into());
            }
            if let Some(fault) = kept.as_ref().and_then(|kept| kept.fault(items)) {
                return bad("an item", fault.into());
            }
        }
        Ok(Self::from_parts(spec, next, ids, Some(run), kept, labels))
    }
}

/// The names, if any item has one: the last array of a file.
fn read_labels<'a>(frame: &mut Frame<'a>, next: u32, check: Check) -> Result<Labels<'a>, DecodeError> {
    let Some(mut names) = frame.optional(NAMES) else { return Ok(Labels::default()) };
    let (count, text) = (names.u64()?, names.u64()?);
    names.finish("the names")?;
    let bad = |found: String| DecodeError::BadValue { what: "the list of names", found };
    if count == 0 || count > u64::from(next) {
        return Err(bad(format!("{count} names of {next} ids")));
    }
    let labels = Labels { ends: frame.numbers(count)?, text: frame.numbers(text)? };
    match labels.find_fault() {
        Some(fault) if check == Check::Everything => Err(bad(fault.into())),
        _ => Ok(labels),
    }
}

fn read_run<'a>(frame: &mut Frame<'a>, items: u32, bands: u32) -> Result<Run<'a>, DecodeError> {
    let ends: Cow<'a, [u64]> = frame.numbers(u64::from(bands))?;
    let starts = frame.numbers(u64::from(bands).saturating_mul(addresses(items)))?;
    let entries = frame.numbers(ends.last().copied().unwrap_or(0))?;
    Ok(Run { items, ends, starts, entries })
}

fn read_kept<'a>(frame: &mut Frame<'a>, items: u32, spec: &LshSpec) -> Result<Kept<'a>, DecodeError> {
    let shape = Shape::of(&spec.family);
    let all = |each: usize| u64::from(items).saturating_mul(each as u64);
    let ends: Cow<'a, [u64]> = frame.numbers(if shape.varies() { u64::from(items) } else { 0 })?;
    let (words, halves) = shape.each();
    let words = frame.numbers(ends.last().copied().unwrap_or(all(words)))?;
    let halves = frame.numbers(all(halves))?;
    Ok(Kept { shape, ends, words, halves })
}
