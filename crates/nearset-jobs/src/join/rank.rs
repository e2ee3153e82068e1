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
    /// The one whose field of this name is largest: numbers by value and above all other texts, those by their bytes, and a
    /// record without the field last; of equals, the first.
    Field(String),
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::First => "first",
            Keep::Longest => "longest",
            Keep::Field(name) => name,
        })
    }
}

impl FromStr for Keep {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "first" => Keep::First,
            "longest" => Keep::Longest,
            field => Keep::Field(field.to_owned()),
        })
    }
}

/// How much a record is wanted; the largest is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rank {
    Missing,
    Text(Box<str>),
    Number(f64),
}

impl Rank {
    /// What stands in a field.
    pub fn of(value: Option<&str>) -> Self {
        match value.map(|text| (text, text.trim().parse::<f64>())) {
            None => Rank::Missing,
            Some((_, Ok(number))) if !number.is_nan() => Rank::Number(number),
            Some((text, _)) => Rank::Text(text.into()),
        }
    }
}

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let kind = |rank: &Rank| match rank {
            Rank::Missing => 0,
            Rank::Text(_) => 1,
            Rank::Number(_) => 2,
        };
        match (self, other) {
            (Rank::Text(a), Rank::Text(b)) => a.cmp(b),
            (Rank::Number(a), Rank::Number(b)) => a.total_cmp(b),
            _ => kind(self).cmp(&kind(other)),
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
        let ranks = [None, Some("2024-01-31"), Some("2024-02-01"), Some("-3"), Some("9"), Some("10.5")].map(Rank::of);
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert_eq!(Rank::of(Some("NaN")), Rank::Text("NaN".into()));
    }
}
