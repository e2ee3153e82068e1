//! Vectors as rows of numbers: NumPy arrays (format version 1 to 3, `numpy.lib.format`), `.fvecs` and `.bvecs` files. How an array lies in an
//! `.npz` archive is the business of `input`.
//!
//! Of arrays only what a vector per row needs: two dimensions of little-endian floats or whole numbers. All else is refused with
//! the line of Python that converts it. Rows of bytes are also bit strings, eight bits per byte, as `numpy.packbits` makes them.

use std::sync::Arc;

use super::layout::{Extraction, Layout, Taken};
use crate::error::InputError;
use crate::extract::{Decoder, ItemField};
use crate::input::{Element, Head, Preamble, ReadOptions, Source, Span};

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
        let bad = |why| InputError::BadArray { name: Arc::clone(&source.name), why };
        let cut = || bad("not a NumPy array: it ends within its header".to_owned());
        head.fill_to(12)?;
        let size = NpyHeader::size(&head.bytes).map_err(bad)?.ok_or_else(cut)?;
        head.fill_to(size)?;
        let raw = head.bytes.get(..size).ok_or_else(cut)?;
        let NpyHeader { rows, dimensions, element, is_fortran } = NpyHeader::parse(raw).map_err(bad)?;
        expect_items(source, options, element)?;
        let (raw, row_bytes) = (raw.to_vec(), dimensions * element.bytes());
        if is_fortran {
            let count = usize::try_from(rows).ok().and_then(|rows| rows.checked_mul(row_bytes));
            let count = count.filter(|&count| count <= options.max_record).ok_or_else(|| {
                let why = "lies in Fortran order, of which it is too large to be turned: convert it with numpy.ascontiguousarray";
                bad(why.to_owned())
            })?;
            // In steps, so that nothing is made room for that is not there.
            let mut wanted = size;
            while wanted < size + count && !head.at_end {
                wanted = (2 * wanted).max(1 << 20).min(size + count);
                head.fill_to(wanted)?;
            }
            let Some(columns) = head.bytes.get(size..size + count) else {
                return Err(bad(format!(
                    "its header promises {rows} rows and they are not there: the file is cut off"
                )));
            };
            let turned = in_rows(columns, dimensions, element.bytes());
            head.bytes[size..size + count].copy_from_slice(&turned);
        }
        Ok(Preamble { raw, element, row_bytes, is_turned: is_fortran, rows: Some(rows), ..Preamble::default() })
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
        Ok((decoder.row(i, 0), None))
    }

    fn is_lines(&self) -> bool {
        false
    }

    fn is_alike(&self, a: &Preamble, b: &Preamble) -> bool {
        (a.row_bytes, a.element) == (b.row_bytes, b.element)
    }

    fn counts_first(&self) -> bool {
        true
    }

    fn counted(&self, preamble: &Preamble, rows: u64) -> Result<Vec<u8>, String> {
        NpyHeader::with_rows(&preamble.raw, rows)
    }
}

/// Returns an array that lies column by column row by row.
fn in_rows(columns: &[u8], dimensions: usize, element_bytes: usize) -> Vec<u8> {
    let rows = columns.len() / (dimensions * element_bytes).max(1);
    let mut turned = Vec::with_capacity(columns.len());
    for row in 0..rows {
        for column in 0..dimensions {
            let at = (column * rows + row) * element_bytes;
            turned.extend_from_slice(&columns[at..at + element_bytes]);
        }
    }
    turned
}

/// Vectors of numbers, each after its own length.
pub(super) struct Vecs {
    pub name: &'static str,
    pub extensions: &'static [&'static str],
    pub element: Element,
}

/// Bytes of a vector's length.
const LENGTH: usize = 4;

impl Layout for Vecs {
    fn name(&self) -> &'static str {
        self.name
    }

    fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    fn preamble(&self, _: &mut Head, source: &Source, options: &ReadOptions) -> Result<Preamble, InputError> {
        expect_items(source, options, self.element)?;
        Ok(Preamble { element: self.element, ..Preamble::default() })
    }

    fn split(&self, _: &Preamble, bytes: &[u8], _: bool, spans: &mut Vec<Span>) -> Taken {
        let mut taken = Taken::default();
        while let Some((head, rest)) = bytes[taken.bytes..].split_first_chunk::<LENGTH>() {
            let width = self.element.bytes() * u32::from_le_bytes(*head) as usize;
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
        Ok((decoder.row(i, LENGTH), None))
    }

    fn is_lines(&self) -> bool {
        false
    }
}

/// Refuses to read vectors where something else is wanted: every record would be at fault, and none of them is.
fn expect_items(source: &Source, options: &ReadOptions, element: Element) -> Result<(), InputError> {
    match options.fields.kind {
        ItemField::Vector => Ok(()),
        ItemField::Hex if element == Element::U1 => Ok(()),
        other => Err(InputError::HoldsVectors { name: Arc::clone(&source.name), wanted: other.noun() }),
    }
}

/// What a `.npy` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NpyHeader {
    rows: u64,
    dimensions: usize,
    element: Element,
    /// Whether columns lie one after the other, rather than rows.
    is_fortran: bool,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read; NumPy itself pads to 64 bytes and writes 128.
pub(crate) const MAX_ARRAY_HEADER: usize = 64 << 10;

/// Returns how many dimensions an array has, by the bytes that it begins with.
pub(crate) fn array_dimensions(head: &[u8]) -> Option<usize> {
    let size = NpyHeader::size(head).ok().flatten()?;
    let shape = NpyHeader::text(head.get(..size)?).and_then(NpyHeader::shape);
    shape.and_then(NpyHeader::sizes).ok().map(|sizes| sizes.len())
}

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
        if size > MAX_ARRAY_HEADER {
            return Err(format!("a header of {size} bytes: the file is damaged, or not of plain numbers"));
        }
        Ok(Some(size))
    }

    /// Returns the dictionary of a whole header.
    fn text(header: &[u8]) -> Result<&str, String> {
        let text_start = if header[6] == 1 { 10 } else { 12 };
        std::str::from_utf8(&header[text_start..]).map_err(|_| "its header is not text".to_owned())
    }

    /// Returns what stands in the dictionary from a value on.
    fn value<'t>(text: &'t str, key: &str) -> Result<&'t str, String> {
        let rest = text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
        rest.ok_or_else(|| format!("its header has no {key}"))
    }

    /// Returns the lengths of the array, as they stand there.
    fn shape(text: &str) -> Result<&str, String> {
        let rest = Self::value(text, "shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        rest.map(|(shape, _)| shape).ok_or_else(|| "its header has no readable shape".to_owned())
    }

    fn sizes(shape: &str) -> Result<Vec<u64>, String> {
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        sizes.map(|size| size.parse().map_err(|_| format!("its shape ({shape}) is not readable"))).collect()
    }

    /// Reads a whole header.
    fn parse(header: &[u8]) -> Result<Self, String> {
        let text = Self::text(header)?;
        let value = |key| Self::value(text, key);
        let quoted = value("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let found = quoted.map_or("a record type", |(found, _)| found);
        let element = Element::named(found).ok_or_else(|| {
            format!("holds {found}, not little-endian floats or whole numbers: convert it with array.astype('<f4')")
        })?;
        let is_fortran = value("fortran_order")?.starts_with("True");
        let shape = Self::shape(text)?;
        let sizes = Self::sizes(shape)?;
        let &[rows, dimensions] = sizes.as_slice() else {
            return Err(format!("has shape ({shape}), but a vector per row needs two dimensions: use array.reshape"));
        };
        let dimensions = usize::try_from(dimensions)
            .ok()
            .filter(|&dimensions| dimensions > 0 && dimensions <= (1 << 24))
            .ok_or_else(|| format!("has {dimensions} dimensions: between 1 and 16,777,216 are read"))?;
        Ok(Self { rows, dimensions, element, is_fortran })
    }

    /// Returns the header of another number of rows, padded to the same size so that it can be written over.
    fn with_rows(header: &[u8], rows: u64) -> Result<Vec<u8>, String> {
        let parsed = Self::parse(header)?;
        let text_start = if header[6] == 1 { 10 } else { 12 };
        let (descr, dimensions) = (parsed.element.name(), parsed.dimensions);
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
