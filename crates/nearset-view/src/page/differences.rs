//! Two texts side by side: what they share, in order, and where they differ.
//!
//! Claim: the shared words are a longest common subsequence of the words that are compared, and every word up to the limit is
//! in the result once, with the space behind it. As in shingles of words, case and punctuation do not count; a character
//! of a script without spaces is a word.
//! Invariant: time and memory are bounded by the limit, not by the texts.

use std::ops::Range;

/// Words of each text that are compared; the table has the square of it.
const COMPARED: usize = 1_000;

/// A stretch of both texts: the same words, or different ones, of which one side may have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stretch<'t> {
    pub shared: bool,
    /// Of the left and of the right text.
    pub words: [Vec<&'t str>; 2],
}

/// Returns two texts as stretches, shared and different in turn, and whether each has more words than were compared.
pub(super) fn differences<'t>(left: &'t str, right: &'t str) -> (Vec<Stretch<'t>>, [bool; 2]) {
    let first = |text: &'t str| -> (Vec<&'t str>, bool) {
        let mut words = words(text);
        let first: Vec<&str> = words.by_ref().take(COMPARED).collect();
        (first, words.next().is_some())
    };
    let ((a, more_a), (b, more_b)) = (first(left), first(right));
    (aligned(&a, &b), [more_a, more_b])
}

fn aligned<'t>(left: &[&'t str], right: &[&'t str]) -> Vec<Stretch<'t>> {
    let (a, b) = (comparable(left), comparable(right));
    let width = b.len() + 1;
    // Row i, column j: the longest common subsequence of a[i..] and b[j..].
    let mut longest = vec![0u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut push = |shared: bool, word: [Option<&'t str>; 2]| {
        if stretches.last().is_none_or(|last| last.shared != shared) {
            stretches.push(Stretch { shared, ..Stretch::default() });
        }
        if let Some(last) = stretches.last_mut() {
            last.words.iter_mut().zip(word).for_each(|(words, word)| words.extend(word));
        }
    };
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            push(true, [Some(left[i]), Some(right[j])]);
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            push(false, [Some(left[i]), None]);
            i += 1;
        } else {
            push(false, [None, Some(right[j])]);
            j += 1;
        }
    }
    stretches
}

/// Returns what of each word is compared.
fn comparable(words: &[&str]) -> Vec<String> {
    let letters = |word: &&str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    words.iter().map(letters).collect()
}

/// Words, each with the punctuation and the space behind it; together they are the text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut pieces = pieces(text).peekable();
    let is_word = move |piece: &Range<usize>| text[piece.clone()].contains(char::is_alphanumeric);
    std::iter::from_fn(move || {
        let mut word = pieces.next()?;
        let mut complete = is_word(&word);
        while let Some(more) = pieces.next_if(|next| !(complete && is_word(next))) {
            complete = complete || is_word(&more);
            word.end = more.end;
        }
        Some(&text[word])
    })
}

/// Returns where the text is cut: behind spaces, and around characters that need none.
fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = text.len() - text.trim_start().len();
    std::iter::from_fn(move || {
        let mut before: Option<char> = None;
        let cut = text[start..].char_indices().find_map(|(at, c)| {
            let cut = before.is_some_and(|before| {
                !c.is_whitespace() && (before.is_whitespace() || is_spaceless(before) || is_spaceless(c))
            });
            before = Some(c);
            cut.then_some(start + at)
        });
        let piece = start..cut.unwrap_or(text.len());
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns whether words of the script are written without spaces: Chinese, Japanese and what else lies beyond the radicals.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches that differ as `[left|right]`, others by their left side.
    fn shown(left: &str, right: &str) -> String {
        let show = |stretch: &Stretch| {
            let [left, right] = stretch.words.clone().map(|words| words.concat());
            if stretch.shared { left } else { format!("[{left}|{right}]") }
        };
        differences(left, right).0.iter().map(show).collect()
    }

    #[test]
    fn words_put_together_are_the_text() {
        let text = "- a  b,\n条款 x第1条 ** z ";
        assert_eq!(words(text).collect::<Vec<_>>(), ["- a  ", "b,\n", "条", "款 ", "x", "第", "1", "条 ** ", "z "]);
        assert_eq!(words(text).collect::<String>(), text);
        assert_eq!(words(" \n").count(), 0);
        assert_eq!(words("**").collect::<Vec<_>>(), ["**"]);
    }

    #[test]
    fn shared_words_are_found_in_order() {
        assert_eq!(shown("the quick brown fox", "The slow brown  fox\njumps"), "the [quick |slow ]brown fox[|jumps]");
        assert_eq!(shown("a b c", "b c"), "[a |]b c");
        assert_eq!(shown("", ""), "");
        assert_eq!(shown("a b", "c"), "[a b|c]");
    }

    #[test]
    fn punctuation_is_no_difference() {
        assert_eq!(shown("/* * the end. */", "-- The END"), "/* * the end. */");
        assert_eq!(shown("a new = b", "a old b !"), "a [new = |old ]b");
    }

    #[test]
    fn long_texts_are_compared_as_far_as_the_limit() {
        let long = "word ".repeat(COMPARED + 1);
        let (stretches, more) = differences(&long, "word");
        assert_eq!(stretches.iter().map(|stretch| stretch.words[0].len()).sum::<usize>(), COMPARED);
        assert_eq!(more, [true, false]);
    }
}
