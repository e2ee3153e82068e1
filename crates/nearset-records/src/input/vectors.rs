//! The header of a NumPy array file (format version 1 to 3, `numpy.lib.format`).
//!
//! Only what a vector a row needs: two dimensions, C order, little-endian 32- or 64-bit floats. All else is refused with
//! the line of Python that converts it.

/// What a `.npy` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    /// The bytes of the header, its magic included.
    pub header_bytes: usize,
    pub rows: u64,
    pub dimensions: usize,
    /// 4 or 8.
    pub element_bytes: usize,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read; NumPy itself pads to 64 bytes and writes 128.
const MAX_HEADER: usize = 64 << 10;

impl NpyHeader {
    /// How many bytes the header has, once enough of it is there to tell.
    pub fn size(head: &[u8]) -> Result<Option<usize>, String> {
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
    pub fn parse(header: &[u8]) -> Result<Self, String> {
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
        Ok(Self { header_bytes: header.len(), rows, dimensions, element_bytes })
    }

    /// The header of another number of rows, padded to the same size so that it can be written over.
    pub fn with_rows(header: &[u8], rows: u64) -> Result<Vec<u8>, String> {
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
