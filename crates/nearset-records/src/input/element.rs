//! One number of an array.

/// What one number of an array is. All are little-endian, and read as 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Element {
    F2,
    #[default]
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
}

/// All of them, with what NumPy calls them.
const ELEMENTS: [(Element, &str); 11] = [
    (Element::F2, "<f2"),
    (Element::F4, "<f4"),
    (Element::F8, "<f8"),
    (Element::I1, "|i1"),
    (Element::I2, "<i2"),
    (Element::I4, "<i4"),
    (Element::I8, "<i8"),
    (Element::U1, "|u1"),
    (Element::U2, "<u2"),
    (Element::U4, "<u4"),
    (Element::U8, "<u8"),
];

impl Element {
    /// Returns the one that NumPy calls so. The first sign is the order of bytes, which makes no difference to one of them.
    pub fn named(name: &str) -> Option<Self> {
        let byte = name.strip_prefix(['<', '>', '=', '|']).filter(|kind| kind.ends_with('1'));
        let is_named = |known: &str| known == name || byte == Some(&known[1..]);
        ELEMENTS.into_iter().find(|(_, known)| is_named(known)).map(|(element, _)| element)
    }

    /// Returns what NumPy calls it.
    pub fn name(self) -> &'static str {
        ELEMENTS[self as usize].1
    }

    /// Returns the bytes that it takes.
    pub fn bytes(self) -> usize {
        match self {
            Element::I1 | Element::U1 => 1,
            Element::F2 | Element::I2 | Element::U2 => 2,
            Element::F4 | Element::I4 | Element::U4 => 4,
            Element::F8 | Element::I8 | Element::U8 => 8,
        }
    }

    /// Appends the numbers that lie in `raw`.
    pub fn append(self, raw: &[u8], vector: &mut Vec<f32>) {
        fn each<const N: usize>(raw: &[u8], vector: &mut Vec<f32>, read: impl Fn([u8; N]) -> f32) {
            vector.extend(raw.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)));
        }
        match self {
            Element::F2 => each(raw, vector, |bytes| half(u16::from_le_bytes(bytes))),
            Element::F4 => each(raw, vector, f32::from_le_bytes),
            Element::F8 => each(raw, vector, |bytes| f64::from_le_bytes(bytes) as f32),
            Element::I1 => each(raw, vector, |bytes| i8::from_le_bytes(bytes).into()),
            Element::I2 => each(raw, vector, |bytes| i16::from_le_bytes(bytes).into()),
            Element::I4 => each(raw, vector, |bytes| i32::from_le_bytes(bytes) as f32),
            Element::I8 => each(raw, vector, |bytes| i64::from_le_bytes(bytes) as f32),
            Element::U1 => each(raw, vector, |bytes| u8::from_le_bytes(bytes).into()),
            Element::U2 => each(raw, vector, |bytes| u16::from_le_bytes(bytes).into()),
            Element::U4 => each(raw, vector, |bytes| u32::from_le_bytes(bytes) as f32),
            Element::U8 => each(raw, vector, |bytes| u64::from_le_bytes(bytes) as f32),
        }
    }
}

/// A number of 16 bits (IEEE 754 binary16), exactly.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, bits & 1023);
    let magnitude = match exponent {
        0 => f32::from(fraction) / 16_777_216.0,
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_row() {
        assert!(ELEMENTS.iter().enumerate().all(|(row, (element, _))| *element as usize == row));
    }

    #[test]
    fn the_order_of_one_byte_is_any() {
        for name in ["|u1", "<u1", ">u1", "=u1"] {
            assert_eq!(Element::named(name), Some(Element::U1), "{name}");
        }
        assert_eq!(Element::named(">i1"), Some(Element::I1));
        assert_eq!([">f4", "|b1", "u1", "x", ""].map(Element::named), [None; 5]);
    }

    /// By numpy.float16.
    #[test]
    fn halves_are_exact() {
        let known = [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, wanted) in known {
            assert_eq!(half(bits), wanted, "{bits:04x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
