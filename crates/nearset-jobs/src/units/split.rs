//! The parts that a text is cut into: paragraphs, lines or sentences.
//!
//! Invariant: the parts of a text, one after the other, are the text. What separates two of them belongs to the first.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use memchr::memchr_iter;
use unicode_segmentation::UnicodeSegmentation;

/// A kind of part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Lines up to one that is empty or blank.
    Paragraph,
    /// What a line feed ends.
    Line,
    /// A sentence by the rules of Unicode (UAX 29).
    Sentence,
}

impl Unit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Paragraph, Self::Line, Self::Sentence];

    /// Returns what one is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paragraph => "paragraph",
            Self::Line => "line",
            Self::Sentence => "sentence",
        }
    }

    /// Overwrites `parts` with those of a text.
    pub(super) fn split(self, text: &str, parts: &mut Vec<Range<usize>>) {
        parts.clear();
        match self {
            Self::Line => lines(text, |line| parts.push(line)),
            Self::Sentence => parts.extend(text.split_sentence_bound_indices().map(|(at, part)| at..at + part.len())),
            Self::Paragraph => {
                let mut after_blank = false;
                lines(text, |line| {
                    let is_blank = text[line.clone()].trim().is_empty();
                    match parts.last_mut() {
                        Some(last) if is_blank || !after_blank => last.end = line.end,
                        _ => parts.push(line),
                    }
                    after_blank = is_blank;
                });
            }
        }
    }
}

/// Passes on every line with what ends it.
fn lines(text: &str, mut each: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for end in memchr_iter(b'\n', text.as_bytes()) {
        each(start..end + 1);
        start = end + 1;
    }
    if start < text.len() {
        each(start..text.len());
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|unit| unit.name() == name);
        known.ok_or_else(|| format!("{name:?} is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(unit: Unit, text: &str) -> Vec<&str> {
        let mut parts = Vec::new();
        unit.split(text, &mut parts);
        assert_eq!(parts.iter().map(|part| &text[part.clone()]).collect::<String>(), text);
        parts.into_iter().map(|part| &text[part]).collect()
    }

    #[test]
    fn a_line_has_what_ends_it() {
        assert_eq!(split(Unit::Line, "a\r\n\nb\n c"), ["a\r\n", "\n", "b\n", " c"]);
        assert_eq!(split(Unit::Line, "a\n"), ["a\n"]);
        assert!(split(Unit::Line, "").is_empty());
    }

    #[test]
    fn paragraphs_end_with_blank_lines() {
        assert_eq!(split(Unit::Paragraph, "a\nb\n\n \t\nc\n\r\nd"), ["a\nb\n\n \t\n", "c\n\r\n", "d"]);
        assert_eq!(split(Unit::Paragraph, "\n\na\n\n"), ["\n\n", "a\n\n"]);
    }

    #[test]
    fn sentences_are_those_of_unicode() {
        let text = "It costs 3.50 today. \"Why?\" he asked.\nどうも。はい";
        assert_eq!(
            split(Unit::Sentence, text),
            ["It costs 3.50 today. ", "\"Why?\" ", "he asked.\n", "どうも。", "はい"]
        );
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        assert!(Unit::ALL.into_iter().all(|unit| unit.to_string().parse() == Ok(unit)));
        assert_eq!("word".parse::<Unit>().unwrap_err(), "\"word\" is none of paragraph, line, sentence");
    }
}
