//! Where the words of a text are.
//!
//! The cutter says what a text's words are, not where. Texts that hold something are few, so they are cut again here: ASCII characters
//! other than letters and digits end a word whatever stands around them, as do the stops of East Asia, so pieces between
//! them are counted one by one, and within a piece the place is found by halving.

use std::ops::Range;

use nearset::{Seed, Shingler, Shingling};

/// The pieces of a text, and the words before each.
pub(super) struct Places<'t> {
    text: &'t str,
    words: Shingler,
    room: Vec<u64>,
    /// Where a piece with words begins, and how many words precede it.
    pieces: Vec<(usize, usize)>,
}

impl<'t> Places<'t> {
    pub fn new(text: &'t str) -> Self {
        let words = Shingler::new(Shingling::Words(1), Seed::default()).expect("a word is a shingle");
        let mut places = Self { text, words, room: Vec::new(), pieces: Vec::new() };
        let (mut start, mut before) = (0, 0);
        let (mut ends, mut piece, mut after_lone) = (Vec::new(), 0, false);
        for (at, c) in text.char_indices() {
            if is_stop(c) {
                ends.push((at, c.len_utf8()));
                piece = at + c.len_utf8();
            } else if is_lone(c) && after_lone && at - piece >= LONG_PIECE {
                ends.push((at, 0));
                piece = at;
            }
            after_lone = is_lone(c);
        }
        ends.push((text.len(), 0));
        for (end, stop) in ends {
            let words = places.count(start..end);
            if words > 0 {
                places.pieces.push((start, before));
                before += words;
            }
            start = end + stop;
        }
        places
    }

    fn count(&mut self, range: Range<usize>) -> usize {
        if range.is_empty() {
            return 0;
        }
        self.words.shingles(&self.text[range], &mut self.room);
        self.room.len()
    }

    /// Returns where the words `first..=last` are.
    pub fn bytes(&mut self, first: usize, last: usize) -> Range<usize> {
        let start = self.start(first);
        let end = self.start(last + 1).max(start);
        // What separates the next word does not belong to this one; marks on its last letter do.
        let words = self.text[start..end].trim_end_matches(|c: char| !c.is_alphanumeric());
        let marks = self.text[start + words.len()..end].chars().take_while(|&c| is_mark(c)).map(char::len_utf8);
        start..start + words.len() + marks.sum::<usize>()
    }

    /// Returns where a word starts; the end of the text if it has no such word.
    fn start(&mut self, word: usize) -> usize {
        let piece = self.pieces.partition_point(|&(_, before)| before <= word);
        let Some(&(start, before)) = piece.checked_sub(1).and_then(|piece| self.pieces.get(piece)) else {
            return self.text.len();
        };
        let end = self.pieces.get(piece).map_or(self.text.len(), |&(start, _)| start);
        let wanted = word - before;
        // The shortest head of the piece that has the word ends behind its first character.
        let (mut without, mut with) = (start, end);
        if self.count(start..end) <= wanted {
            return self.text.len();
        }
        loop {
            let mut middle = char_start(self.text, without + (with - without) / 2);
            if middle == without {
                // The next character, unless it is the last one.
                middle += self.text[without..with].chars().next().map_or(0, char::len_utf8);
                if middle == with || middle == without {
                    break;
                }
            }
            if self.count(start..middle) > wanted {
                with = middle;
            } else {
                without = middle;
            }
        }
        without
    }
}

/// Returns where the character at a byte starts; the length of the text if it is beyond.
pub(crate) fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn is_stop(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric() || c.is_whitespace() || "、。，．！？：；（）「」『』".contains(c)
}

/// From how many bytes on a piece without stops ends between two characters that are words by themselves.
const LONG_PIECE: usize = 256;

/// Whether a character is a word by itself, whatever stands around it: Chinese characters and kana.
fn is_lone(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}')
}

/// Whether a character that is no letter belongs to the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{65f}' | '\u{900}'..='\u{dff}'
        | '\u{e31}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}')
}

/// Returns the text without some of its bytes, which are in order and may overlap. Where words would become one, a space is
/// between them.
pub(super) fn without(text: &str, cuts: &[Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        if cut.end <= at {
            continue;
        }
        rest.push_str(&text[at..cut.start.max(at)]);
        at = cut.end;
        let is_open = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        if is_open(rest.chars().next_back()) && is_open(text[at..].chars().next()) {
            rest.push(' ');
        }
    }
    rest.push_str(&text[at..]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_are() {
        let text = "  The <b>quick</b>,\n snake_case x漢字、かなy  ... e\u{301}t\u{e9}\u{301}! end.  ";
        let expected = [
            "The",
            "b",
            "quick",
            "b",
            "snake",
            "case",
            "x",
            "漢",
            "字",
            "か",
            "な",
            "y",
            "e\u{301}t\u{e9}\u{301}",
            "end",
        ];
        let mut places = Places::new(text);
        for (i, word) in expected.iter().enumerate() {
            let found = &text[places.bytes(i, i)];
            assert_eq!(found, *word, "word {i}");
        }
        assert_eq!(&text[places.bytes(2, 5)], "quick</b>,\n snake_case");
        assert_eq!(places.bytes(expected.len(), expected.len()), text.len()..text.len());
    }

    #[test]
    fn long_texts_without_stops_are_cut_in_pieces() {
        let text = "漢字かな混じり文".repeat(5000);
        let mut places = Places::new(&text);
        assert!(places.pieces.len() > 400, "{} pieces", places.pieces.len());
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for word in [0, 1, 85, 86, 87, 20_000, 39_999] {
            assert_eq!(places.bytes(word, word), starts[word]..starts[word] + 3, "word {word}");
        }
    }

    #[test]
    fn what_separates_words_stays() {
        for text in ["one two?\n\n• three", "one two. “three", "one two ——— 🙂🙂"] {
            assert_eq!(&text[Places::new(text).bytes(0, 1)], "one two", "{text}");
        }
    }

    #[test]
    fn cutting_leaves_words_apart() {
        let text = "one two, three漢字four";
        let cut = |words: &[(usize, usize)]| {
            let mut places = Places::new(text);
            let cuts: Vec<_> = words.iter().map(|&(first, last)| places.bytes(first, last)).collect();
            without(text, &cuts)
        };
        assert_eq!(cut(&[(1, 1)]), "one , three漢字four");
        assert_eq!(cut(&[(3, 4)]), "one two, three four");
        assert_eq!(cut(&[(0, 1), (1, 2)]), "漢字four");
        assert_eq!(cut(&[(0, 5)]), "");
    }
}
