//! Vectors as rows of numbers: NumPy arrays (format version 1 to 3, `numpy.lib.format`) and `.fvecs` files.
//!
//! Of arrays only what a vector per row needs: two dimensions, C order, little-endian 32- or 64-bit floats. All else is refused with
//! the line of Python that converts it.

use std::sync::Arc;

use super::layout::{Extraction, Layout, Taken};
use crate::error::InputError;
use crate::extract::{Decoder, ItemField};
use crate::input::{Head, Preamble, ReadOptions, Source, Span};

/// A two-dimensional NumPy array, a vector per row.
pub(super) struct Npy;

impl Layout for Npy {
    fn name(&self) -> &'static str {
        "npy"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["npy"]
    }

    fn preamble(&self, head: &mut Head, source: &Source, options: &ReadOptions) -> Result<Preamble, InputError> {
        expect_vectors(source, options)?;
        let bad = |why| InputError::BadArray { name: Arc::clone(&source.name), why };
        let cut = || bad("not a NumPy array: it ends within its header".to_owned());
        head.fill_to(12)?;
        let size = NpyHeader::size(&head.bytes).map_err(bad)?.ok_or_else(cut)?;
        head.fill_to(size)?;
        let raw = head.bytes.get(..size).ok_or_else(cut)?;
        let NpyHeader { rows, dimensions, element_bytes, .. } = NpyHeader::parse(raw).map_err(bad)?;
        let (raw, row_bytes, rows) = (raw.to_vec(), dimensions * element_bytes, Some(rows));
        Ok(Preamble { raw, columns: Vec::new(), element_bytes, row_bytes, rows })
    }

    fn split(&self, preamble: &Preamble, bytes: &[u8], _: bool, spans: &mut Vec<Span>) -> Taken {
        let width = preamble.row_bytes.max(1);
        let rows = bytes.len() / width;
        spans.extend((0..rows).map(|row| Span { start: row * width, end: (row + 1) * width, line: row as u32 }));
        Taken { bytes: rows * width, lines: rows as u32 }
    }

    fn is_text(&self, _: ItemField) -> bool {
        false
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        Ok((decoder.floats(i, 0), None))
    }

    fn is_lines(&self) -> bool {
        false
    }

    fn is_alike(&self, a: &Preamble, b: &Preamble) -> bool {
        (a.row_bytes, a.element_bytes) == (b.row_bytes, b.element_bytes)
    }

    fn counts_first(&self) -> bool {
        true
    }

    fn counted(&self, preamble: &Preamble, rows: u64) -> Result<Vec<u8>, String> {
        NpyHeader::with_rows(&preamble.raw, rows)
    }
}

/// Vectors of 32-bit floats, each after its own length.
pub(super) struct Fvecs;

/// Bytes of a vector's length.
const LENGTH: usize = 4;

impl Layout for Fvecs {
    fn name(&self) -> &'static str {
        "fvecs"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["fvecs"]
    }

    fn preamble(&self, _: &mut Head, source: &Source, options: &ReadOptions) -> Result<Preamble, InputError> {
        expect_vectors(source, options)?;
        Ok(Preamble { element_bytes: 4, ..Preamble::default() })
    }

    fn split(&self, _: &Preamble, bytes: &[u8], _: bool, spans: &mut Vec<Span>) -> Taken {
        let mut taken = Taken::default();
        while let Some((head, rest)) = bytes[taken.bytes..].split_first_chunk::<LENGTH>() {
            let width = 4 * u32::from_le_bytes(*head) as usize;
            if rest.len() < width {
                break;
            }
            spans.push(Span { start: taken.bytes, end: taken.bytes + LENGTH + width, line: taken.lines });
            taken.bytes += LENGTH + width;
            taken.lines += 1;
        }
        taken
    }

    fn is_text(&self, _: ItemField) -> bool {
        false
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        Ok((decoder.floats(i, LENGTH), None))
    }

    fn is_lines(&self) -> bool {
        false
    }
}

/// Refuses to read vectors where something else is wanted: every record would be at fault, and none of them is.
fn expect_vectors(source: &Source, options: &ReadOptions) -> Result<(), InputError> {
    match options.fields.kind {
        ItemField::Vector => Ok(()),
        other => Err(InputError::HoldsVectors { name: Arc::clone(&source.name), wanted: other.noun() }),
    }
}

/// What a `.npy` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NpyHeader {
    rows: u64,
    dimensions: usize,
    /// 4 or 8.
    element_bytes: usize,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read; NumPy itself pads to 64 bytes and writes 128.
const MAX_HEADER: usize = 64 << 10;

impl NpyHeader {
    /// Returns how many bytes the header has, once enough of it is there to tell.
    fn size(head: &[u8]) -> Result<Option<usize>, String> {
        if head.len() < 12 {
            return Ok(None);
        }
        if !head.starts_with(MAGIC) {
            return Err("not a NumPy array: it does not start with \\x93NUMPY".to_owned());
        }
        let size = match head[6] {
            1 => 10 + usize::from(u16::from_le_bytes([head[8], head[9]])),
            2 | 3 => 12usize.saturating_add(u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize),
            version => return Err(format!("NumPy format version {version} is not known: save the array again")),
        };
        if size > MAX_HEADER {
            return Err(format!("a header of {size} bytes: the file is damaged, or not of plain numbers"));
        }
        Ok(Some(size))
    }

    /// Reads a whole header.
    fn parse(header: &[u8]) -> Result<Self, String> {
        let text_start = if header[6] == 1 { 10 } else { 12 };
        let text = std::str::from_utf8(&header[text_start..]).map_err(|_| "its header is not text".to_owned())?;
        let value = |key: &str| {
            let quoted = format!("'{key}':");
            text.split_once(&quoted).map(|(_, rest)| rest.trim_start()).ok_or(format!("its header has no {key}"))
        };
        let element_bytes = match value("descr")?.split('\'').nth(1) {
            Some("<f4") => 4,
            Some("<f8") => 8,
            found => {
                let found = found.unwrap_or("a record type");
                return Err(format!("holds {found}, not <f4 or <f8: convert it with array.astype('<f4')"));
            }
        };
        if !value("fortran_order")?.starts_with("False") {
            return Err("lies in Fortran order: convert it with numpy.ascontiguousarray".to_owned());
        }
        let shape = value("shape")?
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map(|(shape, _)| shape)
            .ok_or("its header has no readable shape")?;
        let sizes: Vec<u64> = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.parse().map_err(|_| format!("its shape ({shape}) is not readable")))
            .collect::<Result<_, _>>()?;
        let &[rows, dimensions] = sizes.as_slice() else {
            return Err(format!("has shape ({shape}), but a vector a row needs two dimensions: use array.reshape"));
        };
        let dimensions = usize::try_from(dimensions)
            .ok()
            .filter(|&dimensions| dimensions > 0 && dimensions <= (1 << 24))
            .ok_or_else(|| format!("has {dimensions} dimensions: between 1 and 16,777,216 are read"))?;
        Ok(Self { rows, dimensions, element_bytes })
    }

    /// Returns the header of another number of rows, padded to the same size so that it can be written over.
    fn with_rows(header: &[u8], rows: u64) -> Result<Vec<u8>, String> {
        let parsed = Self::parse(header)?;
        let text_start = if header[6] == 1 { 10 } else { 12 };
        let descr = if parsed.element_bytes == 4 { "<f4" } else { "<f8" };
        let dimensions = parsed.dimensions;
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}");
        let room = header.len() - text_start - 1;
        if text.len() > room {
            return Err("its header leaves no room for the number of rows".to_owned());
        }
        let mut bytes = header[..text_start].to_vec();
        bytes.extend_from_slice(format!("{text:room$}\n").as_bytes());
        Ok(bytes)
    }
}
