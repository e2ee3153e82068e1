//! The frame of every file: header, sections, lines.

use std::{borrow::Cow, fmt, io};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Check, DecodeError, Reader, Writer};
use crate::{bloom::BitArray, error::SpecError, simd::line::Line};

/// The first bytes of every file. The first is no ASCII, so that a text file is not taken for one.
pub(crate) const MAGIC: [u8; 8] = *b"\x89NEARSET";
const VERSION: u8 = 1;
const HEADER: usize = 64;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A [`BloomFilter`](crate::BloomFilter).
    Bloom,
    /// A [`Filter`](crate::Filter) with bands, on no terms.
    Near,
    /// An exact [`Filter`](crate::Filter), on no terms.
    ExactNear,
    /// An [`Index`](crate::Index) of bit strings that misses nothing.
    Hamming,
    /// An [`Index`](crate::Index) by locality-sensitive keys.
    Lsh,
    /// A [`Filter`](crate::Filter) on terms, with all its generations.
    Generations,
    /// A [`FilterSpec`](crate::FilterSpec).
    Description,
}

impl Kind {
    const ALL: [(u8, Kind); 7] = [
        (1, Kind::Bloom),
        (2, Kind::Near),
        (3, Kind::ExactNear),
        (4, Kind::Hamming),
        (5, Kind::Lsh),
        (6, Kind::Generations),
        (7, Kind::Description),
    ];

    pub(super) fn number(self) -> u8 {
        Self::ALL.into_iter().find(|&(_, kind)| kind == self).expect("every kind has a number").0
    }

    /// What a file holds, from its first bytes; nothing but the header is read.
    ///
    /// # Errors
    /// If the bytes are not a file of nearset's, or of a newer version.
    pub fn of(bytes: &[u8]) -> Result<Self, DecodeError> {
        let start = bytes.get(..MAGIC.len()).unwrap_or(bytes);
        if start != MAGIC {
            return Err(DecodeError::NotNearset { found: start.to_vec() });
        }
        let mut reader = Reader::new(&bytes[MAGIC.len()..]);
        match reader.u8()? {
            VERSION => {}
            0 => return Err(DecodeError::NoSuchVersion { found: 0 }),
            found => return Err(DecodeError::TooNew { found, newest: VERSION }),
        }
        let found = reader.u8()?;
        let kind = Self::ALL.into_iter().find(|&(number, _)| number == found);
        kind.map(|(_, kind)| kind).ok_or(DecodeError::Unknown { what: "structure", found: u64::from(found) })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bloom => "a Bloom filter",
            Kind::Near => "a near filter",
            Kind::ExactNear => "an exact near filter",
            Kind::Hamming => "a Hamming index",
            Kind::Lsh => "a near-neighbour index",
            Kind::Generations => "a filter in generations",
            Kind::Description => "a filter's description",
        })
    }
}

/// How many bytes a file has, from its first 24: for those to whom it comes in parts. Whether it is intact is known only when all of
/// them are there.
///
/// # Errors
/// If the bytes are too few or not the beginning of a file of nearset's, or of a newer version.
pub fn length_of(start: &[u8]) -> Result<u64, DecodeError> {
    Kind::of(start)?;
    let mut reader = Reader::new(start);
    // Magic, version, kind, reserved bytes and the description's length come before.
    reader.take(MAGIC.len() + 8)?;
    reader.u64()
}

/// A structure that lies in a file: sections that describe it, and arrays of lines.
pub(crate) trait Body {
    const KIND: Kind;

    /// What is not lines, each part under a number of its own.
    fn sections(&self) -> Vec<(u16, Vec<u8>)>;

    /// The bytes of all sections together, each with its number and length: what is counted for them need not be.
    fn described(&self) -> usize {
        self.sections().iter().map(|(_, section)| SECTION + section.len()).sum()
    }

    /// The arrays, in the order in which they are read back. The frame fills each up with zeros to a multiple of 64 bytes.
    fn arrays(&self) -> Vec<Cow<'_, [u8]>>;
}

/// What arrays are made of.
pub(crate) trait Number: bytemuck::Pod {
    /// With its bytes in the file's order, or from that back in the platform's.
    fn turned(self) -> Self;
}

impl Number for u8 {
    fn turned(self) -> Self {
        self
    }
}

impl Number for u32 {
    fn turned(self) -> Self {
        self.to_le()
    }
}

impl Number for u64 {
    fn turned(self) -> Self {
        self.to_le()
    }
}

impl Number for Line {
    fn turned(self) -> Self {
        Line(self.0.map(u64::to_le))
    }
}

/// An array as [`Body::arrays`] gives it.
pub(crate) fn to_bytes<T: Number>(numbers: &[T]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytemuck::cast_slice(numbers));
    }
    let turned: Vec<T> = numbers.iter().map(|number| number.turned()).collect();
    Cow::Owned(bytemuck::cast_slice(&turned).to_vec())
}

/// What stands before each section: its number and its length.
pub(crate) const SECTION: usize = size_of::<u16>() + size_of::<u32>();

/// Sections from this number on may be skipped by a reader that does not know them.
const OPTIONAL: u16 = 0x8000;

const ZEROS: [u8; HEADER] = [0; HEADER];

/// Each array, and the zeros that fill it up.
fn padded<'b>(arrays: &'b [Cow<'_, [u8]>]) -> impl Iterator<Item = &'b [u8]> {
    arrays.iter().flat_map(|array| {
        let padding = array.len().next_multiple_of(HEADER) - array.len();
        [&array[..], &ZEROS[..padding]]
    })
}

/// All that stands before the arrays.
pub(crate) fn head<B: Body>(body: &B, arrays: &[Cow<'_, [u8]>]) -> Vec<u8> {
    let mut description = Writer::default();
    for (number, section) in body.sections() {
        description.u16(number).u32(section.len() as u32).put(&section);
    }
    let mut description = description.bytes;
    let described = description.len() as u32;
    description.resize(description.len().next_multiple_of(HEADER), 0);

    let mut sum = Xxh3::new();
    padded(arrays).for_each(|part| sum.update(part));
    let length = HEADER + description.len() + padded(arrays).map(<[u8]>::len).sum::<usize>();

    let mut header = Writer::default();
    header.put(&MAGIC).u8(VERSION).u8(B::KIND.number()).u16(0).u32(described);
    header.u64(length as u64).u64(sum.digest()).u64(0).u64(0).u64(0);
    let mut checked = Xxh3::new();
    checked.update(&header.bytes);
    checked.update(&description);
    header.u64(checked.digest()).put(&description);
    header.bytes
}

pub(crate) fn encode<B: Body>(body: &B, out: &mut dyn io::Write) -> io::Result<()> {
    encode_from(body, 0, out)
}

/// Bytes that stand before the arrays.
pub(crate) fn head_length<B: Body>(body: &B) -> u64 {
    (HEADER + body.described().next_multiple_of(HEADER)) as u64
}

/// How many bytes the file has.
pub(crate) fn file_length<B: Body>(body: &B) -> u64 {
    head_length(body) + padded(&body.arrays()).map(|part| part.len() as u64).sum::<u64>()
}

/// Writes the file from a position on. What stands before the arrays takes a look at all of them, and is left alone where it is not
/// wanted.
pub(crate) fn encode_from<B: Body>(body: &B, from: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let arrays = body.arrays();
    let mut at = head_length(body);
    if from < at {
        out.write_all(&head(body, &arrays)[from as usize..])?;
    }
    for part in padded(&arrays) {
        let skipped = from.saturating_sub(at).min(part.len() as u64);
        out.write_all(&part[skipped as usize..])?;
        at += part.len() as u64;
    }
    Ok(())
}

/// A file taken apart, its sums checked, nothing in it believed yet.
pub(crate) struct Frame<'a> {
    sections: Vec<(u16, &'a [u8])>,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(crate) fn open(bytes: &'a [u8], expected: Kind, check: Check) -> Result<Self, DecodeError> {
        let found = Kind::of(bytes)?;
        let header = Reader::new(bytes).take(HEADER)?;
        let mut reader = Reader::new(&header[MAGIC.len() + 2..]);
        let (reserved, described) = (reader.u16()?, reader.u32()? as usize);
        let (length, payload_sum) = (reader.u64()?, reader.u64()?);
        let more_reserved: [u8; 24] = reader.array()?;
        let sum = reader.u64()?;

        // Where addresses have 32 bits, rounding up may leave them.
        let padded = described.checked_next_multiple_of(HEADER).unwrap_or(usize::MAX);
        let description = Reader::new(&bytes[HEADER..]).take(padded)?;
        let mut checked = Xxh3::new();
        checked.update(&header[..HEADER - size_of::<u64>()]);
        checked.update(description);
        if checked.digest() != sum {
            return Err(DecodeError::Checksum { part: "header" });
        }
        // From here on the header is what some writer wrote, though that need not have been nearset.
        if found != expected {
            return Err(DecodeError::WrongKind { expected, found });
        }
        if reserved != 0 || more_reserved != [0; 24] {
            return Err(DecodeError::BadValue { what: "a reserved field", found: "not zero".into() });
        }
        if length != bytes.len() as u64 {
            return Err(match bytes.len() as u64 {
                found if found < length => DecodeError::Truncated { expected: length, found },
                found => DecodeError::Leftover { what: "the tables", bytes: (found - length) as usize },
            });
        }
        if description[described..].iter().any(|&byte| byte != 0) {
            return Err(DecodeError::BadValue { what: "padding", found: "not zero".into() });
        }
        let payload = &bytes[HEADER + padded..];
        if check == Check::Everything && xxh3_64(payload) != payload_sum {
            return Err(DecodeError::Checksum { part: "tables" });
        }

        let (mut sections, mut last) = (Vec::new(), None);
        let mut reader = Reader::new(&description[..described]);
        while !reader.is_empty() {
            let (number, length) = (reader.u16()?, reader.u32()?);
            let section = reader.take(length as usize)?;
            // One order, and none twice: a filter has one description only.
            if last.is_some_and(|last| last >= number) {
                let found = format!("{number} after one that is no smaller");
                return Err(DecodeError::BadValue { what: "a section's number", found });
            }
            last = Some(number);
            // Those that may be skipped are not kept, so that many of them take no memory.
            if number < OPTIONAL {
                sections.push((number, section));
            }
        }
        Ok(Self { sections, payload })
    }

    /// The section of this number.
    pub(crate) fn section(&self, number: u16, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        self.optional(number).ok_or(DecodeError::BadValue { what, found: "missing".into() })
    }

    /// The section of this number, if the file has it.
    pub(crate) fn optional(&self, number: u16) -> Option<Reader<'a>> {
        self.sections.iter().find(|(found, _)| *found == number).map(|(_, bytes)| Reader::new(bytes))
    }

    /// That every section that must be understood is among these.
    pub(crate) fn expect_only(&self, known: &[u16]) -> Result<(), DecodeError> {
        match self.sections.iter().find(|(number, _)| *number < OPTIONAL && !known.contains(number)) {
            Some((number, _)) => Err(DecodeError::Unknown { what: "section", found: u64::from(*number) }),
            None => Ok(()),
        }
    }

    /// The next bytes of the payload.
    pub(crate) fn payload(&mut self, expected: u64) -> Result<&'a [u8], DecodeError> {
        let found = self.payload.len() as u64;
        if expected > found {
            return Err(DecodeError::Truncated { expected, found });
        }
        let (array, rest) = self.payload.split_at(expected as usize);
        self.payload = rest;
        Ok(array)
    }

    /// The next array, of so many lines.
    pub(crate) fn array(&mut self, lines: u64) -> Result<BitArray<'a>, DecodeError> {
        let array = self.payload(lines.saturating_mul(size_of::<Line>() as u64))?;
        BitArray::from_bytes(array).map_err(|error| match error {
            SpecError::Memory { .. } => DecodeError::Memory { bytes: array.len() as u64 },
            other => DecodeError::BadValue { what: "a table", found: other.to_string() },
        })
    }

    /// The next array, of so many numbers: borrowed where the platform can read them in place, else copied.
    pub(crate) fn numbers<T: Number>(&mut self, count: u64) -> Result<Cow<'a, [T]>, DecodeError> {
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        let padded = bytes.checked_next_multiple_of(size_of::<Line>() as u64).unwrap_or(u64::MAX);
        let (array, padding) = self.payload(padded)?.split_at(bytes as usize);
        if padding.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::BadValue { what: "padding", found: "not zero".into() });
        }
        if cfg!(target_endian = "little")
            && let Ok(borrowed) = bytemuck::try_cast_slice(array)
        {
            return Ok(Cow::Borrowed(borrowed));
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(array.len() / size_of::<T>()).map_err(|_| DecodeError::Memory { bytes })?;
        copy.extend(array.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>).map(T::turned));
        Ok(Cow::Owned(copy))
    }

    /// That no lines are left.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        Reader::new(self.payload).finish("the tables")
    }
}
