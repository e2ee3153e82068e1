//! Specs in bytes.

use std::borrow::Cow;

use super::{
    Body, Check, DecodeError, Frame, Kind, Opening, Reader, SECTION, Writer, encode, generations::unlike_the_first,
};
use crate::{
    Family, Seed,
    bloom::{BitArray, BloomFilter},
    family::{
        WorkLimit,
        member::{BadParameter, Stored},
    },
    filter::{
        NearFilter,
        near::verification_seed,
        tables::{Place, Tables},
    },
    spec::{Decision, GenerationSpec, Probing, Rule, Spec, Step, Table, Verification},
};

/// The section that says what a structure is.
pub(super) const SPEC: u16 = 1;
/// The section that says how many items were inserted, and how many bits of the tables they set.
pub(super) const COUNTS: u16 = 2;

pub(crate) fn write_family(family: &Family, out: &mut Writer) {
    let (number, parameters) = family.put();
    out.u8(number).put(&parameters.0);
}

pub(crate) fn read_family(reader: &mut Reader<'_>) -> Result<Family, DecodeError> {
    let number = reader.u8()?;
    let mut stored = Stored(reader.rest());
    let family = Family::take(number, &mut stored).map_err(|bad| match bad {
        BadParameter::Short { expected, found } => DecodeError::Truncated { expected, found },
        BadParameter::Unknown { what, found } => unknown(what, found),
    })?;
    reader.skip_to(stored.0);
    Ok(family)
}

pub(super) fn unknown(what: &'static str, found: u8) -> DecodeError {
    DecodeError::Unknown { what, found: u64::from(found) }
}

pub(super) fn write_table(table: Table, out: &mut Writer) {
    match table {
        Table::Direct => out.u8(0),
        Table::Bits(bits) => out.u8(1).u64(bits),
        Table::Lines { lines, hashes } => out.u8(2).u64(lines).u8(hashes as u8),
    };
}

pub(super) fn read_table(reader: &mut Reader<'_>) -> Result<Table, DecodeError> {
    Ok(match reader.u8()? {
        0 => Table::Direct,
        1 => Table::Bits(reader.u64()?),
        2 => Table::Lines { lines: reader.u64()?, hashes: reader.u8()?.into() },
        found => return Err(unknown("table", found)),
    })
}

/// In the place of the number of steps: the rule is a promise.
const PROMISE: u8 = 255;

pub(super) fn write_spec(spec: &Spec) -> Vec<u8> {
    let mut out = Writer::default();
    write_family(&spec.family, &mut out);
    out.put(&spec.seed.to_bytes()).u32(spec.rows);
    match spec.rule.decision() {
        Decision::Steps(cascade) => {
            out.u8(cascade.steps().len() as u8);
            cascade.steps().iter().for_each(|step| {
                out.u32(step.of()).u32(step.need());
            });
        }
        Decision::Promise { agreement, max_false_negative } => {
            out.u8(PROMISE).u32(spec.rule.bands()).f64(*agreement).f64(*max_false_negative);
        }
    }
    write_table(spec.table, &mut out);
    match spec.verification {
        None => out.u8(0),
        Some(Verification { lines, hashes }) => out.u8(1).u64(lines).u8(hashes as u8),
    };
    match spec.probing {
        None => out.u8(0),
        Some(Probing { bands, reach }) => out.u8(1).u32(bands).u32(reach),
    };
    out.bytes
}

pub(super) fn read_spec(mut reader: Reader<'_>, limit: WorkLimit) -> Result<Spec, DecodeError> {
    let family = read_family(&mut reader)?;
    let seed = Seed::from_bytes(reader.array()?);
    let rows = reader.u32()?;
    let rule = match reader.u8()? {
        PROMISE => Rule::promise(reader.u32()?, reader.f64()?, reader.f64()?),
        steps => {
            let steps = (0..steps).map(|_| Ok(Step::AtLeast { of: reader.u32()?, need: reader.u32()? }));
            Rule::cascade(steps.collect::<Result<Vec<_>, DecodeError>>()?)
        }
    };
    let rule = rule?;
    let table = read_table(&mut reader)?;
    let verification = match reader.u8()? {
        0 => None,
        1 => Some(Verification { lines: reader.u64()?, hashes: reader.u8()?.into() }),
        found => return Err(unknown("verification", found)),
    };
    let probing = match reader.u8()? {
        0 => None,
        1 => Some(Probing { bands: reader.u32()?, reach: reader.u32()? }),
        found => return Err(unknown("probing", found)),
    };
    reader.finish("the spec")?;
    let spec = Spec { family, seed, rows, rule, table, verification, probing };
    spec.check_within(limit)?;
    Ok(spec)
}

impl Body for NearFilter<'_> {
    const KIND: Kind = Kind::Near;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let mut counts = Writer::default();
        counts.u64(self.len()).u64(self.tables().ones());
        vec![(SPEC, write_spec(self.spec())), (COUNTS, counts.bytes)]
    }

    fn described(&self) -> usize {
        2 * SECTION + write_spec(self.spec()).len() + COUNTED
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        let arrays = [self.tables().bits()].into_iter().chain(self.verification().map(BloomFilter::bits));
        arrays.flat_map(BitArray::to_bytes).collect()
    }
}

impl<'a> NearFilter<'a> {
    /// Opens a file that holds nothing else, and if it is to follow another filter, has one of the specs that may follow.
    pub(super) fn decode_after(
        bytes: &'a [u8],
        Opening { check, work }: Opening,
        after: Option<(&NearFilter<'_>, &[GenerationSpec])>,
    ) -> Result<Self, DecodeError> {
        let mut frame = Frame::open(bytes, Kind::Near, check)?;
        frame.expect_only(&[SPEC, COUNTS])?;
        let spec = read_spec(frame.section(SPEC, "the spec")?, work)?;
        if after.is_some_and(|(_, specs)| {
            !specs.iter().any(|next| matches!(next, GenerationSpec::Near(next) if *next == spec))
        }) {
            return Err(unlike_the_first());
        }
        let (items, ones) = read_counts(&frame)?;
        let place = match after {
            Some((older, _)) => older.tables().place().with_table(spec.table),
            None => Place::new(spec.table, spec.rows_by_band(), spec.seed),
        };
        let tables = read_tables(&mut frame, place, ones, check)?;
        let verification = match spec.verification {
            None => None,
            Some(Verification { lines, hashes }) => {
                Some(read_bloom(frame.array(lines)?, hashes, verification_seed(&spec))?)
            }
        };
        frame.finish()?;
        let filter = Self::from_parts(spec, tables, verification, items);
        Ok(match after {
            Some((older, _)) => filter.sharing_functions_of(older),
            None => filter,
        })
    }
}

/// Bytes of the section of counts.
pub(super) const COUNTED: usize = 2 * size_of::<u64>();

/// Items inserted, and what of them is stored.
pub(super) fn read_counts(frame: &Frame<'_>) -> Result<(u64, u64), DecodeError> {
    let mut counts = frame.section(COUNTS, "the counts")?;
    let both = (counts.u64()?, counts.u64()?);
    counts.finish("the counts")?;
    Ok(both)
}

/// The next array as the tables of a checked spec.
pub(super) fn read_tables<'a>(
    frame: &mut Frame<'a>,
    place: Place,
    ones: u64,
    check: Check,
) -> Result<Tables<'a>, DecodeError> {
    let num_bits = place.num_bits();
    let array = frame.array(num_bits.div_ceil(512))?;
    if check == Check::Everything && array.ones_in(0..num_bits) != array.ones() {
        return Err(DecodeError::BadValue { what: "padding", found: "not zero".into() });
    }
    if check == Check::Everything && array.ones() != ones || ones > num_bits {
        return Err(DecodeError::BadValue { what: "the number of set bits", found: ones.to_string() });
    }
    Ok(Tables::from_bits(place, array, ones))
}

fn read_bloom<'a>(array: BitArray<'a>, hashes: u32, seed: Seed) -> Result<BloomFilter<'a>, DecodeError> {
    BloomFilter::from_parts(array, hashes, seed).map_err(DecodeError::Spec)
}

impl Body for BloomFilter<'_> {
    const KIND: Kind = Kind::Bloom;

    fn sections(&self) -> Vec<(u16, Vec<u8>)> {
        let mut out = Writer::default();
        out.put(&self.seed().to_bytes()).u64(self.bits().count() as u64).u8(self.hashes() as u8);
        vec![(SPEC, out.bytes)]
    }

    fn arrays(&self) -> Vec<Cow<'_, [u8]>> {
        self.bits().to_bytes().collect()
    }
}

impl<'a> BloomFilter<'a> {
    /// Writes the filter as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        encode(self, out)
    }

    /// Opens a file's bytes. Tables that lie 64-byte aligned in them, as in a memory map, are used in place.
    ///
    /// # Errors
    /// If the bytes are not an intact Bloom filter that this build reads.
    pub fn decode(bytes: &'a [u8], check: Check) -> Result<Self, DecodeError> {
        let mut frame = Frame::open(bytes, Kind::Bloom, check)?;
        frame.expect_only(&[SPEC])?;
        let mut spec = frame.section(SPEC, "the spec")?;
        let (seed, lines, hashes) = (Seed::from_bytes(spec.array()?), spec.u64()?, spec.u8()?.into());
        spec.finish("the spec")?;
        let array = frame.array(lines)?;
        frame.finish()?;
        read_bloom(array, hashes, seed)
    }
}
