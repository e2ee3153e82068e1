//! A seed as a value: derived by label, stored in every spec, compared on merge.

use std::{fmt, hash::Hasher, str::FromStr};

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::error::SpecError;

/// 128 bits from which every random choice of a structure is derived.
///
/// A small number is enough where only reproducibility matters: `Seed::new(42)`. Where strangers choose the items, use
/// 16 secret random bytes, so that nobody can aim items at chosen bits of a filter.
///
/// ```
/// use nearset::Seed;
///
/// let seed = Seed::new(42);
/// assert_eq!(seed.derive("band", 0), seed.derive("band", 0));
/// assert_ne!(seed.derive("band", 0), seed.derive("band", 1));
/// assert_ne!(seed.derive("band", 0), seed.derive("table", 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Creates the seed that stands for a number.
    pub const fn new(number: u64) -> Self {
        Self((number as u128).to_le_bytes())
    }

    /// Creates a seed from 16 bytes, which may be secret.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes of the seed, as stored in files.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Derives the seed of a part: SipHash-2-4-128 of the label's bytes, a zero byte and the index (8 bytes,
    /// little-endian), keyed by this seed.
    pub fn derive(self, label: &str, index: u64) -> Seed {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(label.as_bytes());
        hasher.write(&[0]);
        hasher.write(&index.to_le_bytes());
        Seed(hasher.finish128().as_bytes())
    }

    /// Returns the seed as two words, low half first. Use it on derived seeds: those of small numbers are mostly zero
    /// bits.
    pub(crate) fn words(self) -> [u64; 2] {
        let all = u128::from_le_bytes(self.0);
        [all as u64, (all >> 64) as u64]
    }
}

impl Default for Seed {
    /// Returns the seed 42, the customary choice in this field.
    fn default() -> Self {
        Self::new(42)
    }
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        Self::new(number)
    }
}

/// Writes the number if the seed stands for one, and 32 hexadecimal digits otherwise.
impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            [number, 0] => write!(f, "{number}"),
            _ => self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({self})")
    }
}

/// Reads what `Display` writes. 32 digits are always bytes, never a number.
impl FromStr for Seed {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let bad = || SpecError::UnknownSeed { found: text.to_owned() };
        if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let value = u128::from_str_radix(text, 16).map_err(|_| bad())?;
            return Ok(Self(value.to_be_bytes()));
        }
        text.parse::<u64>().map(Self::new).map_err(|_| bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_are_inverse() {
        for seed in [Seed::new(0), Seed::new(u64::MAX), Seed::default().derive("x", 1), Seed::from_bytes([255; 16])] {
            assert_eq!(seed.to_string().parse::<Seed>().unwrap(), seed);
        }
        assert!("-1".parse::<Seed>().is_err());
        assert!("".parse::<Seed>().is_err());
    }
}
