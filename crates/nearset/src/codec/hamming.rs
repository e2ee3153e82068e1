//! Hamming indexes in bytes.

use std::{borrow::Cow, io};

use super::{
    Body, Check, DecodeError, Frame, Kind, Opening, Reader, Writer, encode,
    frame::to_bytes,
    spec::{COUNTS, SPEC},
};
use crate::{
    HammingSpec, Seed,
    index::{
        HammingIndex, Labels,
        hamming::{
            cut::{Cut, MOST_BLOCKS},
            rows::Rows,
            search::Blocks,
            table::{MOST_ITEMS, Table, lines_for},
        },
    },
    simd::line::Line,
};

impl Body for HammingIndex<'_> {
    const KIND: Kind = Kind::Hamming;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let HammingSpec { bits, radius, seed } = *self.spec();
        let (rows, blocks, labels) = (self.rows(), self.blocks(), self.labels());
        let (mut spec, mut counts) = (Writer::default(), Writer::default());
        spec.u32(bits).u32(radius).put(&seed.to_bytes()).u32(blocks.cuts.len() as u32);
        counts.u32(rows.len()).u32(blocks.items).u64(rows.removed().len() as u64);
        counts.u64(labels.len() as u64).u64(labels.text.len() as u64);
        for (cut, table) in blocks.cuts.iter().zip(&blocks.tables) {
            spec.u32(cut.width).u32(cut.address).u32(cut.radius);
            counts.u64(table.entries.len() as u64).u64(table.lists.len() as u64);
        }
        vec![(SPEC, spec.bytes), (COUNTS, counts.bytes)]
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        let rows = self.rows();
        let tables = self.blocks().tables.iter().flat_map(|table| {
            let Table { occupied, ranks, entries, lists } = table;
            [to_bytes(occupied), to_bytes(ranks), to_bytes(entries), to_bytes(lists)]
        });
        let labels = [to_bytes(&self.labels().ends), to_bytes(&self.labels().text)];
        [to_bytes(rows.lines()), to_bytes(rows.removed())].into_iter().chain(tables).chain(labels).collect()
    }
}

impl<'a> HammingIndex<'a> {
    /// Writes the index as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub(crate) fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        encode(self, out)
    }

    /// Opens a file's bytes. What lies 64-byte aligned in them, as in a memory map, is used in place.
    ///
    /// # Errors
    /// If the bytes are not an intact Hamming index that this build reads.
    pub(crate) fn decode(bytes: &'a [u8], opening: impl Into<Opening>) -> Result<Self, DecodeError> {
        let check = opening.into().check;
        let mut frame = Frame::open(bytes, Kind::Hamming, check)?;
        frame.expect_only(&[SPEC, COUNTS])?;
        let (spec, cuts) = read_spec(frame.section(SPEC, "the spec")?)?;
        let mut counts = frame.section(COUNTS, "the counts")?;
        let (rows, items) = (counts.u32()?, counts.u32()?);
        let (removed, names, text) = (counts.u64()?, counts.u64()?, counts.u64()?);
        if items > rows || rows > MOST_ITEMS || names > u64::from(rows) {
            return Err(bad("the number of items", format!("{rows}, {items} of them indexed, {names} named")));
        }
        let rows = read_rows(&mut frame, &spec, rows, removed, check)?;
        let mut tables = Vec::with_capacity(cuts.len());
        for &cut in &cuts {
            let lines = lines_for(cut.address);
            let table = Table {
                occupied: frame.numbers(lines)?,
                ranks: frame.numbers(lines)?,
                entries: frame.numbers(counts.u64()?)?,
                lists: frame.numbers(counts.u64()?)?,
            };
            if check == Check::Everything
                && let Some(fault) = table.find_fault(cut, items)
            {
                return Err(bad("a block's table", fault.into()));
            }
            tables.push(table);
        }
        counts.finish("the counts")?;
        let labels = Labels { ends: frame.numbers(names)?, text: frame.numbers(text)? };
        if check == Check::Everything
            && let Some(fault) = labels.find_fault()
        {
            return Err(bad("the list of names", fault.into()));
        }
        frame.finish()?;
        Ok(Self::from_parts(spec, rows, labels, Blocks::new(cuts, tables, items)))
    }
}

fn bad(what: &'static str, found: String) -> DecodeError {
    DecodeError::BadValue { what, found }
}

fn read_spec(mut reader: Reader<'_>) -> Result<(HammingSpec, Vec<Cut>), DecodeError> {
    let (bits, radius, seed) = (reader.u32()?, reader.u32()?, Seed::from_bytes(reader.array()?));
    let spec = HammingSpec { bits, radius, seed };
    spec.check()?;
    let blocks = reader.u32()?;
    if blocks > MOST_BLOCKS {
        return Err(bad("the number of blocks", blocks.to_string()));
    }
    let mut cuts = Vec::new();
    // What the blocks hold of the bits, and of the radius: a search relies on it.
    let (mut width, mut shells) = (0, 0);
    for _ in 0..blocks {
        let cut = Cut { width: reader.u32()?, address: reader.u32()?, radius: reader.u32()? };
        if !cut.is_possible() {
            return Err(bad("a block", format!("{cut:?}")));
        }
        width += u64::from(cut.width);
        shells += u64::from(cut.radius) + 1;
        cuts.push(cut);
    }
    reader.finish("the spec")?;
    if width > u64::from(bits) || (blocks > 0 && shells != u64::from(radius) + 1) {
        return Err(bad("the blocks' share", format!("{width} bits, {shells} distances")));
    }
    Ok((spec, cuts))
}

fn read_rows<'a>(
    frame: &mut Frame<'a>,
    spec: &HammingSpec,
    rows: u32,
    removed: u64,
    check: Check,
) -> Result<Rows<'a>, DecodeError> {
    let words = spec.words();
    let used = words as u64 * u64::from(rows);
    let lines = frame.numbers::<Line>(used.div_ceil(8))?;
    let removed = frame.numbers::<u64>(removed)?;
    if let Some(&last) = removed.last()
        && (last == 0 || 64 * (removed.len() as u64 - 1) + u64::from(last.ilog2()) >= u64::from(rows))
    {
        return Err(bad("the list of removed items", "not of items".into()));
    }
    if check == Check::Everything {
        let all: &[u64] = bytemuck::cast_slice(&lines);
        let (items, padding) = all.split_at(used as usize);
        let beyond = if spec.bits.is_multiple_of(64) { 0 } else { u64::MAX << (spec.bits % 64) };
        if padding.iter().any(|&word| word != 0) {
            return Err(bad("padding", "not zero".into()));
        }
        if items.iter().skip(words - 1).step_by(words).any(|last| last & beyond != 0) {
            return Err(bad("the list of items", "longer than they are".into()));
        }
    }
    Ok(Rows::from_parts(words, rows, lines, removed))
}
