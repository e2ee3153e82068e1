//! Strings over any alphabet: DNA, records of coded fields, sequences of ids.

use super::ItemError;

/// A borrowed string of symbols. Symbols are numbers; bytes and wider numbers compare by value.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Symbols<'a> {
    /// An alphabet of at most 256 symbols.
    Bytes(&'a [u8]),
    /// A larger alphabet.
    Wide(&'a [u32]),
}

impl Symbols<'_> {
    /// Returns the number of symbols.
    #[allow(clippy::len_without_is_empty)]
    pub(crate) const fn len(self) -> usize {
        match self {
            Symbols::Bytes(symbols) => symbols.len(),
            Symbols::Wide(symbols) => symbols.len(),
        }
    }

    /// Returns the symbol at a position.
    ///
    /// # Panics
    /// If there is no such position.
    #[inline(always)]
    pub(crate) fn symbol(self, position: usize) -> u32 {
        match self {
            Symbols::Bytes(symbols) => u32::from(symbols[position]),
            Symbols::Wide(symbols) => symbols[position],
        }
    }

    /// Returns the number of positions in which the two differ.
    ///
    /// # Errors
    /// If the lengths are unequal.
    pub(crate) fn hamming(self, other: Symbols<'_>) -> Result<u32, ItemError> {
        self.expect_len(other.len())?;
        let differing = match (self, other) {
            (Symbols::Bytes(a), Symbols::Bytes(b)) => a.iter().zip(b).filter(|(a, b)| a != b).count(),
            (Symbols::Wide(a), Symbols::Wide(b)) => a.iter().zip(b).filter(|(a, b)| a != b).count(),
            _ => (0..self.len()).filter(|&i| self.symbol(i) != other.symbol(i)).count(),
        };
        Ok(differing as u32)
    }

    /// Checks the length, with a typed error for a string of the wrong one.
    pub(crate) fn expect_len(self, expected: usize) -> Result<(), ItemError> {
        if self.len() == expected {
            Ok(())
        } else {
            Err(ItemError::WrongLength { expected, found: self.len(), unit: "symbols" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_wide_symbols_compare_by_value() {
        let (narrow, wide) = (Symbols::Bytes(b"ACGT"), [65, 67, 0x1_0047, 84]);
        assert_eq!(narrow.hamming(Symbols::Wide(&wide)).unwrap(), 1);
        assert_eq!(narrow.hamming(Symbols::Bytes(b"TGCA")).unwrap(), 4);
        assert!(narrow.hamming(Symbols::Bytes(b"ACG")).is_err());
    }
}
