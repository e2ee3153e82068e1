//! Bit strings: perceptual hashes, fingerprints, binary sketches.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`; in bytes, bit `i % 8` of byte `i / 8`. The Hamming distance does not
//! depend on the order, but sampled positions do, so it is fixed here.

use super::ItemError;
use crate::simd;

/// A bit string, borrowed as words whose bits beyond the length are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits<'a> {
    words: &'a [u64],
    len: usize,
}

impl<'a> Bits<'a> {
    /// Borrows the first `len` bits of the words.
    ///
    /// # Errors
    /// If there are more or fewer words than `len` bits need, or a bit beyond `len` is set.
    pub fn new(words: &'a [u64], len: usize) -> Result<Self, ItemError> {
        if words.len() != len.div_ceil(64) {
            return Err(ItemError::WrongLength { expected: len.div_ceil(64), found: words.len(), unit: "words" });
        }
        match words.last() {
            Some(last) if !len.is_multiple_of(64) && last >> (len % 64) != 0 => {
                let highest = 64 * words.len() - last.leading_zeros() as usize;
                Err(ItemError::WrongLength { expected: len, found: highest, unit: "bits" })
            }
            _ => Ok(Self { words, len }),
        }
    }

    /// Borrows all bits of the words.
    pub(crate) const fn from_words(words: &'a [u64]) -> Self {
        Self { words, len: 64 * words.len() }
    }

    /// Returns the number of bits.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns the words.
    pub const fn words(self) -> &'a [u64] {
        self.words
    }

    /// Returns whether bit `position` is set.
    ///
    /// # Panics
    /// If `position` lies beyond the last word.
    #[inline(always)]
    pub fn bit(self, position: usize) -> bool {
        self.words[position / 64] >> (position % 64) & 1 == 1
    }

    /// Returns the number of positions in which the two differ.
    ///
    /// # Errors
    /// If the lengths are unequal.
    pub(crate) fn hamming(self, other: Bits<'_>) -> Result<u32, ItemError> {
        self.expect_len(other.len)?;
        Ok(simd::hamming(self.words, other.words))
    }

    /// Checks the length, with a typed error for a string of the wrong one.
    pub(crate) fn expect_len(self, expected: usize) -> Result<(), ItemError> {
        if self.len == expected {
            Ok(())
        } else {
            Err(ItemError::WrongLength { expected, found: self.len, unit: "bits" })
        }
    }
}

/// A bit string that owns its words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BitString {
    words: Vec<u64>,
    len: usize,
}

impl BitString {
    /// Creates a string of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// Creates a string of all bits of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut bits = Self::default();
        bits.set_bytes(bytes);
        bits
    }

    /// Parses a string with four bits per hexadecimal digit, in either case; two digits make a byte, high digit first,
    /// as is usual.
    ///
    /// ```
    /// use nearset::BitString;
    ///
    /// let a = BitString::from_hex("f800ff")?;
    /// assert_eq!(a.bits().len(), 24);
    /// assert_eq!(a, BitString::from_hex("F800FF")?);
    /// # Ok::<(), nearset::ItemError>(())
    /// ```
    ///
    /// # Errors
    /// If a character is not a hexadecimal digit.
    pub fn from_hex(hex: &str) -> Result<Self, ItemError> {
        let mut bits = Self::zeros(4 * hex.len());
        for (position, found) in hex.char_indices() {
            let digit = found.to_digit(16).ok_or(ItemError::BadHex { position, found })?;
            // The high digit comes first, except for the last of an odd number, which stands alone.
            let nibble =
                if position.is_multiple_of(2) && position + 1 < hex.len() { position + 1 } else { position & !1 };
            bits.words[nibble / 16] |= u64::from(digit) << (4 * (nibble % 16));
        }
        Ok(bits)
    }

    /// Replaces the contents by the bits of other bytes, keeping the allocation.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.len = 8 * bytes.len();
        self.words.clear();
        self.words.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
    }

    /// Sets or clears one bit.
    ///
    /// # Panics
    /// If `position` is not below the length.
    pub fn set(&mut self, position: usize, value: bool) {
        assert!(position < self.len, "bit {position} of {}", self.len);
        let (word, bit) = (&mut self.words[position / 64], 1 << (position % 64));
        *word = if value { *word | bit } else { *word & !bit };
    }

    /// Flips one bit.
    ///
    /// # Panics
    /// If `position` is not below the length.
    pub fn flip(&mut self, position: usize) {
        self.set(position, !self.bits().bit(position));
    }

    /// Borrows the string.
    pub fn bits(&self) -> Bits<'_> {
        Bits { words: &self.words, len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_and_bytes_agree() {
        let bytes = [0xf8, 0x0f, 0x4e, 0x01, 0x02, 0x03, 0x04, 0x05, 0xa6];
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(BitString::from_hex(&hex).unwrap(), BitString::from_bytes(&bytes));
        assert_eq!(BitString::from_hex("f").unwrap().bits().len(), 4);
        assert_eq!(BitString::from_hex("00f").unwrap().bits().words()[0].count_ones(), 4);
    }

    #[test]
    fn bad_input_is_named() {
        assert_eq!(BitString::from_hex("0g"), Err(ItemError::BadHex { position: 1, found: 'g' }));
        assert_eq!(BitString::from_hex("é0"), Err(ItemError::BadHex { position: 0, found: 'é' }));
        let words = [1u64 << 10];
        assert!(Bits::new(&words, 11).is_ok());
        assert_eq!(Bits::new(&words, 10), Err(ItemError::WrongLength { expected: 10, found: 11, unit: "bits" }));
        assert!(Bits::new(&words, 65).is_err());
        let (a, b) = (BitString::zeros(5), BitString::zeros(6));
        assert!(a.bits().hamming(b.bits()).is_err());
    }
}
