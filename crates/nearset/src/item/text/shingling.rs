//! How a text is cut, in the notation that people write: `words:5`.

use crate::error::{LONGEST_SHINGLE, SpecError};
use std::{fmt, str::FromStr};

/// What a shingle of a text is.
///
/// ```
/// use nearset::Shingling;
///
/// assert_eq!("words:5".parse::<Shingling>()?, Shingling::default());
/// assert_eq!(Shingling::Chars(9).to_string(), "chars:9");
/// # Ok::<(), nearset::spec::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shingling {
    /// This many consecutive words.
    Words(u16),
    /// This many consecutive characters of the words, normalised and joined by single spaces.
    Chars(u16),
    /// This many consecutive bytes of the unchanged text.
    Bytes(u16),
    /// This many consecutive tokens of source code: names and numbers, and every other character that is no white space.
    Code(u16),
    /// This many consecutive bases of DNA or RNA, or their reverse complement.
    Kmers(u16),
}

impl Shingling {
    /// Returns the number of words, characters, bytes, tokens or bases in a shingle.
    pub(crate) const fn length(self) -> u16 {
        match self {
            Shingling::Words(length)
            | Shingling::Chars(length)
            | Shingling::Bytes(length)
            | Shingling::Code(length)
            | Shingling::Kmers(length) => length,
        }
    }

    /// Checks the length, as every user of a shingling does first.
    pub(crate) fn check(self) -> Result<(), SpecError> {
        match self.length() {
            1..=LONGEST_SHINGLE => Ok(()),
            _ => Err(SpecError::ShingleLength { found: self.length() }),
        }
    }
}

impl Default for Shingling {
    /// Returns shingles of five words, the customary choice in this field.
    fn default() -> Self {
        Shingling::Words(5)
    }
}

impl fmt::Display for Shingling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shingling::Words(length) => write!(f, "words:{length}"),
            Shingling::Chars(length) => write!(f, "chars:{length}"),
            Shingling::Bytes(length) => write!(f, "bytes:{length}"),
            Shingling::Code(length) => write!(f, "code:{length}"),
            Shingling::Kmers(length) => write!(f, "kmers:{length}"),
        }
    }
}

/// Reads what `Display` writes.
impl FromStr for Shingling {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let unknown = || SpecError::UnknownShingling { found: text.to_owned() };
        let (unit, length) = text.split_once(':').ok_or_else(unknown)?;
        let length = length.parse().map_err(|_| unknown())?;
        let shingling = match unit {
            "words" => Shingling::Words(length),
            "chars" => Shingling::Chars(length),
            "bytes" => Shingling::Bytes(length),
            "code" => Shingling::Code(length),
            "kmers" => Shingling::Kmers(length),
            _ => return Err(unknown()),
        };
        shingling.check()?;
        Ok(shingling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_are_inverse() {
        for shingling in
            [Shingling::Words(1), Shingling::Chars(255), Shingling::Bytes(13), Shingling::Code(4), Shingling::Kmers(21)]
        {
            assert_eq!(shingling.to_string().parse(), Ok(shingling));
        }
    }

    #[test]
    fn errors_name_the_cure() {
        for bad in ["", "words", "words:", "words:five", "lines:3", "words:-1", "words: 5", "words:65536"] {
            let message = bad.parse::<Shingling>().unwrap_err().to_string();
            assert!(message.contains("words:N"), "{message}");
        }
        for bad in ["words:0", "chars:256"] {
            let message = bad.parse::<Shingling>().unwrap_err().to_string();
            assert!(message.contains("from 1 to 255"), "{message}");
        }
    }
}
