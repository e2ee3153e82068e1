//! Files whose fields are changed one by one, and which are signed again, as a hostile writer would do.
//!
//! Fields are found by reading a file's description as `docs/format.md` lays it out, so that changing one leaves the
//! others in place. A file whose layout is not understood is left unchanged. The example `mutate_files` and the fuzzer
//! share this file.

use nearset::Rng;

use crate::any::{payload_start, sign};

/// A number in a file.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub at: usize,
    pub width: usize,
}

/// Goes through a description field by field.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    fields: Vec<Field>,
}

impl Walk<'_> {
    fn number(&mut self, width: usize) -> Option<u64> {
        let end = self.at.checked_add(width).filter(|&end| end <= self.end)?;
        let mut word = [0; 8];
        word[..width].copy_from_slice(self.bytes.get(self.at..end)?);
        self.fields.push(Field { at: self.at, width });
        self.at = end;
        Some(u64::from_le_bytes(word))
    }

    fn numbers(&mut self, widths: &[usize]) -> Option<()> {
        widths.iter().try_for_each(|&width| self.number(width).map(drop))
    }

    /// Steps over a seed of 16 bytes, whose value only decides where keys fall.
    fn seed(&mut self) {
        self.at += 16;
    }

    fn family(&mut self) -> Option<()> {
        match self.number(1)? {
            1 => self.numbers(&[4, 1]),
            2 => self.numbers(&[4, 1, 1]),
            3 => self.numbers(&[4, 4]),
            4 | 5 => self.numbers(&[1, 2]),
            6 | 7 => self.numbers(&[4]),
            8 => self.numbers(&[4, 8, 1]),
            _ => None,
        }
    }

    fn table(&mut self) -> Option<()> {
        match self.number(1)? {
            0 => Some(()),
            1 => self.numbers(&[8]),
            2 => self.numbers(&[8, 1]),
            _ => None,
        }
    }

    fn near_spec(&mut self) -> Option<()> {
        self.family()?;
        self.seed();
        self.number(4)?;
        match self.number(1)? {
            255 => self.numbers(&[4, 8, 8])?,
            steps => (0..steps).try_for_each(|_| self.numbers(&[4, 4]))?,
        }
        self.table()?;
        if self.number(1)? == 1 {
            self.numbers(&[8, 1])?;
        }
        if self.number(1)? == 1 {
            self.numbers(&[4, 4])?;
        }
        Some(())
    }

    fn exact_spec(&mut self) -> Option<()> {
        self.numbers(&[4, 4])?;
        self.seed();
        match self.number(1)? {
            1 => self.number(4).and_then(|_| self.table()),
            2 => self.table(),
            3 => self.numbers(&[4]),
            _ => None,
        }
    }

    fn spec(&mut self, kind: u8) -> Option<()> {
        match kind {
            1 => {
                self.seed();
                self.numbers(&[8, 1])
            }
            2 => self.near_spec(),
            3 => self.exact_spec(),
            4 => {
                self.numbers(&[4, 4])?;
                self.seed();
                let blocks = self.number(4)?;
                (0..blocks).try_for_each(|_| self.numbers(&[4, 4, 4]))
            }
            5 => {
                self.family()?;
                self.seed();
                self.numbers(&[4, 4, 4, 1])
            }
            7 => {
                let described = self.number(1)? as u8;
                self.spec(described)
            }
            _ => None,
        }
    }
}

/// Returns the fields of a file's sections, as far as they are understood, and of the files that generations hold.
pub fn fields(bytes: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    let (Some(start), Some(&kind)) = (payload_start(bytes), bytes.get(9)) else { return found };
    let described = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
    let mut at = 64;
    while at + 6 <= 64 + described {
        let number = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let length = u32::from_le_bytes(bytes[at + 2..at + 6].try_into().expect("four bytes")) as usize;
        let (from, end) = (at + 6, (at + 6).saturating_add(length).min(64 + described));
        found.push(Field { at: at + 2, width: 4 });
        let mut walk = Walk { bytes, at: from, end, fields: Vec::new() };
        let _ = match (kind, number) {
            (1..=5 | 7, 1) => walk.spec(kind),
            (6 | 7, 3) if length > 0 => walk.numbers(&[8, 8, 8, 8, 8, 1]).and_then(|()| walk.numbers(&[4])),
            (4, 2) => walk.numbers(&[4, 4]).and_then(|()| walk.eights()),
            _ => walk.eights(),
        };
        found.extend(walk.fields);
        at = end;
    }
    if kind == 6 {
        for (from, to) in generations(bytes, start) {
            found.extend(fields(&bytes[from..to]).into_iter().map(|field| Field { at: from + field.at, ..field }));
        }
    }
    found
}

impl Walk<'_> {
    /// Reads numbers of eight bytes to the end.
    fn eights(&mut self) -> Option<()> {
        while self.at < self.end {
            self.number(8)?;
        }
        Some(())
    }
}

/// Returns where the files within a file of generations lie.
pub fn generations(bytes: &[u8], start: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = start;
    while let Some(length) = bytes.get(at + 16..at + 24) {
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
        let Some(end) = usize::try_from(length).ok().and_then(|length| at.checked_add(length)) else { break };
        if length < 64 || end > bytes.len() {
            break;
        }
        found.push((at, end));
        at = end;
    }
    found
}

/// Signs the files that a file holds, then the file itself.
pub fn sign_all(bytes: &mut [u8]) {
    if bytes.get(9) == Some(&6)
        && let Some(start) = payload_start(bytes)
    {
        for (from, to) in generations(bytes, start) {
            sign(&mut bytes[from..to]);
        }
    }
    sign(bytes);
}

/// Changes one to four fields of a file; most of the time its tables are then made as large as the fields say. Then
/// signs it.
pub fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let places = fields(bytes);
    if places.is_empty() {
        return;
    }
    let count = 1 + rng.below(4);
    for _ in 0..count {
        let Field { at, width } = places[rng.below(places.len() as u64) as usize];
        let mut old = [0; 8];
        old[..width].copy_from_slice(&bytes[at..at + width]);
        let new = changed(u64::from_le_bytes(old), width, rng);
        bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
    }
    if rng.unit() < 0.7 {
        make_tables_fit(bytes, rng);
    }
    sign_all(bytes);
}

/// Returns a number that programs stumble over, or one that is likely to be believed.
fn changed(old: u64, width: usize, rng: &mut Rng) -> u64 {
    const EDGES: [u64; 14] = [0, 1, 2, 3, 7, 63, 64, 65, 255, 0xffff, 1 << 16, u32::MAX as u64, 1 << 40, u64::MAX];
    let bits = 8 * width as u32;
    match rng.below(8) {
        0 => EDGES[rng.below(EDGES.len() as u64) as usize],
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => old.wrapping_mul(1 + rng.below(64)),
        4 => old / (1 + rng.below(8)),
        // Every order of magnitude is equally likely.
        5 | 6 => rng.next_u64() >> (64 - bits + rng.below(u64::from(bits)) as u32),
        _ if width == 8 => {
            let numbers = [0.0, -0.0, 0.5, 1.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, -1.0, rng.unit()];
            numbers[rng.below(numbers.len() as u64) as usize].to_bits()
        }
        _ => 1 << rng.below(u64::from(bits)),
    }
}

/// The longest payload that is resized to fit.
const MOST_PAYLOAD: u64 = 1 << 16;

/// Makes the payload of a filter as long as its spec says, empty or with random bits, and corrects its counts: chance
/// hits make queries look further.
pub fn make_tables_fit(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let (Some(start), Some(shape)) = (payload_start(bytes), Shape::of(bytes)) else { return };
    let (tables, verification) = (shape.bits.div_ceil(512), shape.verification);
    let Some(length) = tables.checked_add(verification).and_then(|lines| lines.checked_mul(64)) else { return };
    if length > MOST_PAYLOAD {
        return;
    }
    bytes.truncate(start);
    bytes.resize(start + length as usize, 0);
    let mut ones = 0;
    if rng.unit() < 0.6 {
        for position in 0..64 * tables {
            let left = shape.bits.saturating_sub(8 * position).min(8);
            let byte = &mut bytes[start + position as usize];
            *byte = (rng.next_u64() & ((1 << left) - 1)) as u8;
            ones += u64::from(byte.count_ones());
        }
    }
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[16..24].copy_from_slice(&length);
    // The counts are the second section: items, then set bits.
    let spec = u32::from_le_bytes(bytes[66..70].try_into().expect("four bytes")) as usize;
    let counts = 70usize.saturating_add(spec).saturating_add(6 + 8);
    if counts.saturating_add(8) <= start {
        bytes[counts..counts + 8].copy_from_slice(&ones.to_le_bytes());
    }
}

/// The sizes of a filter's arrays.
struct Shape {
    bits: u64,
    /// Lines of the verification filter.
    verification: u64,
}

impl Shape {
    fn of(bytes: &[u8]) -> Option<Self> {
        let described = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?) as usize;
        let mut walk = Walk { bytes, at: 70, end: (64 + described).min(bytes.len()), fields: Vec::new() };
        match bytes.get(9)? {
            2 => walk.near_shape(),
            3 => walk.exact_shape(),
            _ => None,
        }
    }
}

impl Walk<'_> {
    fn table_bits(&mut self, rows: u64) -> Option<u64> {
        match self.number(1)? {
            0 => 1u64.checked_shl(u32::try_from(rows).ok()?),
            1 => self.number(8),
            2 => {
                let lines = self.number(8)?;
                self.number(1)?;
                lines.checked_mul(512)
            }
            _ => None,
        }
    }

    fn near_shape(&mut self) -> Option<Shape> {
        self.family()?;
        self.seed();
        let rows = self.number(4)?;
        let bands = match self.number(1)? {
            255 => {
                let bands = self.number(4)?;
                self.numbers(&[8, 8])?;
                bands
            }
            steps => (0..steps).try_fold(1u64, |bands, _| {
                let of = self.number(4)?;
                self.number(4)?;
                bands.checked_mul(of)
            })?,
        };
        let bits = self.table_bits(rows)?.checked_mul(bands)?;
        let verification = if self.number(1)? == 1 { self.number(8)? } else { 0 };
        Some(Shape { bits, verification })
    }

    /// Returns the shape of tables that are all of one size.
    fn exact_shape(&mut self) -> Option<Shape> {
        let (_, radius) = (self.number(4)?, self.number(4)?);
        self.seed();
        let tables = match self.number(1)? {
            1 => self.number(4)?,
            2 => (2u64 << radius.min(32)) - 1,
            _ => return Some(Shape { bits: 0, verification: 0 }),
        };
        Some(Shape { bits: self.table_bits(64)?.checked_mul(tables)?, verification: 0 })
    }
}
