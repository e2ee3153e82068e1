//! Exact near filters in bytes.

use std::borrow::Cow;

use super::{
    Body, Check, DecodeError, Frame, Kind, Opening, Reader, SECTION, Writer,
    frame::to_bytes,
    generations::unlike_the_first,
    spec::{COUNTED, COUNTS, SPEC, read_counts, read_table, read_tables, unknown, write_table},
};
use crate::{
    Seed,
    family::WorkLimit,
    filter::{
        ExactNearFilter,
        exact::{Store, folds::Folds},
        tables::Place,
    },
    spec::{Construction, ExactSpec, GenerationSpec},
};

pub(super) fn write_spec(spec: &ExactSpec) -> Vec<u8> {
    let ExactSpec { bits, radius, seed, construction } = *spec;
    let mut out = Writer::default();
    out.u32(bits).u32(radius).put(&seed.to_bytes());
    match construction {
        Construction::Pigeonhole { blocks, table } => write_table(table, out.u8(1).u32(blocks)),
        Construction::Covering { table } => write_table(table, out.u8(2)),
        Construction::FoldedScan { width } => {
            out.u8(3).u32(width);
        }
        Construction::SampledScan { width, within } => {
            out.u8(4).u32(width).u32(within);
        }
    }
    out.bytes
}

pub(super) fn read_spec(mut reader: Reader<'_>, limit: WorkLimit) -> Result<ExactSpec, DecodeError> {
    let (bits, radius) = (reader.u32()?, reader.u32()?);
    let seed = Seed::from_bytes(reader.array()?);
    let construction = match reader.u8()? {
        1 => Construction::Pigeonhole { blocks: reader.u32()?, table: read_table(&mut reader)? },
        2 => Construction::Covering { table: read_table(&mut reader)? },
        3 => Construction::FoldedScan { width: reader.u32()? },
        4 => Construction::SampledScan { width: reader.u32()?, within: reader.u32()? },
        found => return Err(unknown("construction", found)),
    };
    reader.finish("the spec")?;
    let spec = ExactSpec { bits, radius, seed, construction };
    spec.check_within(limit)?;
    Ok(spec)
}

impl Body for ExactNearFilter<'_> {
    const KIND: Kind = Kind::ExactNear;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let mut counts = Writer::default();
        counts.u64(self.len()).u64(match self.store() {
            Store::Keys(tables) => tables.ones(),
            Store::Folds(folds) => folds.len() as u64,
        });
        vec![(SPEC, write_spec(self.spec())), (COUNTS, counts.bytes)]
    }

    fn described(&self) -> usize {
        2 * SECTION + write_spec(self.spec()).len() + COUNTED
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        match self.store() {
            Store::Keys(tables) => tables.bits().to_bytes().collect(),
            Store::Folds(folds) => vec![to_bytes(folds.rows())],
        }
    }
}

impl<'a> ExactNearFilter<'a> {
    /// Opens a file that holds nothing else, and if it is to follow another filter, has one of the specs that may follow.
    pub(super) fn decode_after(
        bytes: &'a [u8],
        Opening { check, work }: Opening,
        after: Option<(&ExactNearFilter<'_>, &[GenerationSpec])>,
    ) -> Result<Self, DecodeError> {
        let mut frame = Frame::open(bytes, Kind::ExactNear, check)?;
        frame.expect_only(&[SPEC, COUNTS])?;
        let spec = read_spec(frame.section(SPEC, "the spec")?, work)?;
        if after.is_some_and(|(_, specs)| !specs.contains(&GenerationSpec::Exact(spec))) {
            return Err(unlike_the_first());
        }
        let (items, stored) = read_counts(&frame)?;
        let store = match (spec.construction.table(), after.map(|(older, _)| older.store())) {
            (Some(table), Some(Store::Keys(older))) => {
                Store::Keys(read_tables(&mut frame, older.place().with_table(table), stored, check)?)
            }
            (Some(table), _) => {
                let place = Place::new(table, spec.key_bits(), spec.seed);
                Store::Keys(read_tables(&mut frame, place, stored, check)?)
            }
            (None, _) => {
                let rows = frame.numbers(stored.saturating_mul(spec.fold_words() as u64))?;
                Store::Folds(read_folds(&spec, rows, check)?)
            }
        };
        frame.finish()?;
        let filter = Self::from_parts(spec, store, items);
        Ok(match after {
            Some((older, _)) => filter.sharing_functions_of(older),
            None => filter,
        })
    }
}

fn read_folds<'a>(spec: &ExactSpec, rows: Cow<'a, [u64]>, check: Check) -> Result<Folds<'a>, DecodeError> {
    let bad = |found: &str| DecodeError::BadValue { what: "the list of folds", found: found.into() };
    let words = spec.fold_words();
    let folds = Folds::from_rows(words, rows).ok_or_else(|| bad("cut off"))?;
    if check == Check::Everything {
        let bits_of_last = spec.bits as usize - (64 * (words - 1)).min(spec.bits as usize);
        let beyond = if bits_of_last < 64 { u64::MAX << bits_of_last } else { 0 };
        if folds.rows().iter().skip(words - 1).step_by(words).any(|last| last & beyond != 0) {
            return Err(bad("longer than its items"));
        }
        if !folds.is_sorted() {
            return Err(bad("not in ascending order"));
        }
    }
    Ok(folds)
}
