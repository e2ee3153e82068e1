//! Which of several near records is kept.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Which of several near records is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Keep {
    /// The one read first.
    #[default]
    First,
    /// The one with most bytes of text; of equally long ones, the first.
    Longest,
    /// The one whose field of this name is largest: numbers by value and before all other texts, those by their bytes, and a
    /// record without the field last; of equals, the first.
    Max(String),
    /// The one whose field of this name is smallest; otherwise the same.
    Min(String),
}

impl Keep {
    /// The field that decides, if one does.
    pub(super) fn field(&self) -> Option<&str> {
        match self {
            Keep::First | Keep::Longest => None,
            Keep::Max(field) | Keep::Min(field) => Some(field),
        }
    }

    /// Which of two comes first, the one that is wanted more.
    pub(super) fn order(&self, a: &Rank, b: &Rank) -> Ordering {
        match self {
            Keep::Min(_) if a.kind() == b.kind() => a.cmp(b),
            _ => b.cmp(a),
        }
    }
}

/// A word that names no way of choosing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no record to keep: first, longest, max:FIELD or min:FIELD do")]
pub struct KeepError(String);

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::First => f.write_str("first"),
            Keep::Longest => f.write_str("longest"),
            Keep::Max(field) => write!(f, "max:{field}"),
            Keep::Min(field) => write!(f, "min:{field}"),
        }
    }
}

impl FromStr for Keep {
    type Err = KeepError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.split_once(':')) {
            ("first", _) => Ok(Keep::First),
            ("longest", _) => Ok(Keep::Longest),
            (_, Some(("max", field))) if !field.is_empty() => Ok(Keep::Max(field.to_owned())),
            (_, Some(("min", field))) if !field.is_empty() => Ok(Keep::Min(field.to_owned())),
            _ => Err(KeepError(text.to_owned())),
        }
    }
}

/// How much a record is wanted; the largest is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rank {
    Missing,
    Text(Box<str>),
    /// Beside its value, a whole number as it is written: those of one value as reals may differ.
    Number(f64, Option<i128>),
}

impl Rank {
    /// What stands in a field.
    pub fn of(value: Option<&str>) -> Self {
        match value.map(|text| (text, text.trim().parse::<f64>())) {
            None => Rank::Missing,
            Some((text, Ok(number))) if !number.is_nan() => Rank::Number(number, text.trim().parse().ok()),
            Some((text, _)) => Rank::Text(text.into()),
        }
    }
}

impl Rank {
    fn kind(&self) -> u8 {
        match self {
            Rank::Missing => 0,
            Rank::Text(_) => 1,
            Rank::Number(..) => 2,
        }
    }
}

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Rank::Text(a), Rank::Text(b)) => a.cmp(b),
            (Rank::Number(a, x), Rank::Number(b, y)) => {
                a.total_cmp(b).then_with(|| x.zip(*y).map_or(Ordering::Equal, |(x, y)| x.cmp(&y)))
            }
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_above_texts_and_texts_above_nothing() {
        let ranks = [
            None,
            Some("2024-01-31"),
            Some("2024-02-01"),
            Some("-3"),
            Some("9"),
            Some("10.5"),
            Some("1700000000000000001"),
            Some("1700000000000000002"),
        ]
        .map(Rank::of);
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert_eq!(Rank::of(Some("NaN")), Rank::Text("NaN".into()));
    }

    #[test]
    fn the_smallest_is_wanted_first_and_nothing_last() {
        let mut ranks = [None, Some("10.5"), Some("b"), Some("-3"), Some("a"), Some("9")].map(Rank::of);
        let keep: Keep = "min:price".parse().unwrap();
        ranks.sort_by(|a, b| keep.order(a, b));
        assert_eq!(ranks, [Some("-3"), Some("9"), Some("10.5"), Some("a"), Some("b"), None].map(Rank::of));
        assert_eq!(keep.to_string(), "min:price");
    }

    #[test]
    fn a_field_without_max_or_min_is_refused() {
        for wrong in ["timestamp", "max:", "min", "newest:timestamp", ""] {
            assert_eq!(wrong.parse::<Keep>(), Err(KeepError(wrong.to_owned())));
        }
    }
}
