//! Two texts side by side: which words they share, in order.
//!
//! Claim: the shared words are a longest common subsequence of the words that are compared, and every word up to the limit is
//! in the result once, with the space behind it. As in shingles of words, case and punctuation do not count; a character
//! of a script without spaces is a word.
//! Invariant: time and memory are bounded by the limit, not by the texts.

/// Words of each text that are compared; the table has the square of it.
const COMPARED: usize = 1_000;

/// A run of words that both texts have, or only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run<'t> {
    pub shared: bool,
    pub words: Vec<&'t str>,
}

/// The words of both texts as runs, each text's in its order, and whether there are more words than were compared.
pub(super) fn differences<'t>(left: &'t str, right: &'t str) -> ([Vec<Run<'t>>; 2], [bool; 2]) {
    let first = |text: &'t str| -> (Vec<&'t str>, bool) {
        let mut words = words(text);
        let first: Vec<&str> = words.by_ref().take(COMPARED).collect();
        (first, words.next().is_some())
    };
    let ((a, more_a), (b, more_b)) = (first(left), first(right));
    let (in_a, in_b) = shared(&a, &b);
    ([runs(&a, &in_a), runs(&b, &in_b)], [more_a, more_b])
}

/// Words with the space behind them; together they are the text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let mut before: Option<char> = None;
        let end = rest.char_indices().find_map(|(at, c)| {
            let starts = before.is_some_and(|before| {
                !c.is_whitespace() && (before.is_whitespace() || is_spaceless(before) || is_spaceless(c))
            });
            before = Some(c);
            starts.then_some(at)
        });
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether words of the script are written without spaces: Chinese, Japanese and what else lies beyond the radicals.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Which words of each belong to a longest common subsequence.
fn shared(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let (a, b) = (comparable(a), comparable(b));
    let width = b.len() + 1;
    // Row i, column j: the longest common subsequence of a[i..] and b[j..].
    let mut longest = vec![0u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] && !a[i].is_empty() {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    // What is punctuation only goes with the word before it.
    let (mut in_a, mut in_b) = (vec![None; a.len()], vec![None; b.len()]);
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] && !a[i].is_empty() {
            (in_a[i], in_b[j]) = (Some(true), Some(true));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            in_a[i] = (!a[i].is_empty()).then_some(false);
            i += 1;
        } else {
            in_b[j] = (!b[j].is_empty()).then_some(false);
            j += 1;
        }
    }
    (filled(in_a), filled(in_b))
}

/// What of each word is compared; nothing of punctuation.
fn comparable(words: &[&str]) -> Vec<String> {
    words
        .iter()
        .map(|word| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect())
        .collect()
}

fn filled(shared: Vec<Option<bool>>) -> Vec<bool> {
    let mut last = true;
    shared
        .into_iter()
        .map(|shared| {
            last = shared.unwrap_or(last);
            last
        })
        .collect()
}

fn runs<'t>(words: &[&'t str], shared: &[bool]) -> Vec<Run<'t>> {
    let mut runs: Vec<Run> = Vec::new();
    for (&word, &shared) in words.iter().zip(shared) {
        match runs.last_mut() {
            Some(run) if run.shared == shared => run.words.push(word),
            _ => runs.push(Run { shared, words: vec![word] }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(runs: &[Run]) -> String {
        let shown = |run: &Run| {
            let words = run.words.concat();
            if run.shared { words } else { format!("[{words}]") }
        };
        runs.iter().map(shown).collect()
    }

    #[test]
    fn words_put_together_are_the_text() {
        let text = "a  b\n条款 x第1条 z ";
        assert_eq!(words(text).collect::<Vec<_>>(), ["a  ", "b\n", "条", "款 ", "x", "第", "1", "条 ", "z "]);
        assert_eq!(words(text).collect::<String>(), text);
        assert_eq!(words(" \n").count(), 0);
    }

    #[test]
    fn shared_words_are_found_in_order() {
        let ([left, right], more) = differences("the quick brown fox jumps", "The slow brown  fox\njumps high");
        assert_eq!(shown(&left), "the [quick ]brown fox jumps");
        assert_eq!(shown(&right), "The [slow ]brown  fox\njumps [high]");
        assert_eq!(more, [false, false]);
    }

    #[test]
    fn punctuation_is_no_difference() {
        let ([left, right], _) = differences("/* * the end. */", "-- The END");
        assert_eq!((shown(&left), shown(&right)), ("/* * the end. */".to_owned(), "-- The END".to_owned()));
        let ([left, right], _) = differences("a new = b", "a old b !");
        assert_eq!((shown(&left), shown(&right)), ("a [new = ]b".to_owned(), "a [old ]b !".to_owned()));
    }

    #[test]
    fn empty_and_unrelated_texts_share_nothing() {
        assert_eq!(differences("", "").0, [vec![], vec![]]);
        let ([left, right], _) = differences("a b", "c");
        assert_eq!((shown(&left), shown(&right)), ("[a b]".to_owned(), "[c]".to_owned()));
    }

    #[test]
    fn long_texts_are_compared_as_far_as_the_limit() {
        let long = "word ".repeat(COMPARED + 1);
        let ([left, _], more) = differences(&long, "word");
        assert_eq!((left.iter().map(|run| run.words.len()).sum::<usize>(), more), (COMPARED, [true, false]));
    }
}
