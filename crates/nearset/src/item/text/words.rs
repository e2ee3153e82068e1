//! What a word is, and the form in which it is hashed: the definition, written plainly.
//!
//! Claim: re-casing, re-spacing, re-punctuating, composing (NFC) or decomposing (NFD) a text leaves its words
//! unchanged.
//! Invariant: `table` is computed from this file and `tokenise` is tested against it, so each rule is stated only here.
//!
//! A word is a maximal run of letters and digits of any script, each with the marks that follow it.
//! - A mark belongs to the character before it. After a separator it belongs to that, and separates too: otherwise `≠`,
//!   which decomposes to `=` and a stroke, would be a word in one form and none in the other.
//! - Characters that are invisible by design (soft hyphen, joiners, variation selectors, bidi marks) are skipped, as if
//!   they were not there. The zero-width space separates, as its name says.
//! - Scripts written without spaces have no such runs, so each of their letters with its marks is a word.
//!
//! Its form is `NFC(fold(NFD(word)))`, where `fold` maps each character to upper case and then to lower case, twice.
//! Upper case comes first, because more letters coincide there: `ß` and `SS`, `ς` and `σ`, the ligature `ﬁ` and `FI`.
//! It is done twice, because capital `ẞ` becomes `ß` in the first round and `ss` in the second; a third round changes
//! no character.
//!
//! Exceptions: Greek iota subscript (U+0345, also part of letters such as `ᾳ`) is a mark in lower case and a letter in
//! upper case, so where another mark follows it, upper-casing the text moves that mark from the letter to the iota.
//! Characters newer than the Unicode tables of the compiler and of `unicode-normalization` separate until both know
//! them.

use std::iter;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// What a character does to the words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A character that ends a word.
    Separator,
    /// A character that is skipped.
    Ignorable,
    /// A character that stands in a word with its neighbours.
    Letter,
    /// A letter of a script without spaces: a word of its own.
    Lone,
    /// A character that belongs to the one before it.
    Mark,
}

const IOTA_SUBSCRIPT: char = '\u{345}';

/// Returns the class of a character.
pub(super) fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Class::Letter } else { Class::Separator };
    }
    if is_ignorable(c) {
        Class::Ignorable
    } else if is_combining_mark(c) && c != IOTA_SUBSCRIPT {
        Class::Mark
    } else if !c.is_alphanumeric() {
        Class::Separator
    } else if is_unspaced(c) {
        Class::Lone
    } else {
        Class::Letter
    }
}

/// Tests for Unicode's `Default_Ignorable_Code_Point`, without the zero-width space.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Tests for the blocks of scripts whose words are not separated by spaces: those of East Asia except Hangul, and those
/// that Unicode's line breaking (UAX 14) leaves to a dictionary.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'               // Thai, Lao
        | '\u{f00}'..='\u{fff}'             // Tibetan
        | '\u{1000}'..='\u{109f}'           // Myanmar
        | '\u{1780}'..='\u{17ff}'           // Khmer
        | '\u{1950}'..='\u{19df}'           // Tai Le, New Tai Lue
        | '\u{1a20}'..='\u{1aaf}'           // Tai Tham
        | '\u{2e80}'..='\u{312f}'           // radicals, iteration marks, kana, Bopomofo
        | '\u{31a0}'..='\u{31ff}'           // Bopomofo and Katakana extensions
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{a000}'..='\u{a4cf}'           // Yi
        | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' // Myanmar extensions
        | '\u{aa80}'..='\u{aadf}'           // Tai Viet
        | '\u{ff66}'..='\u{ff9f}'           // half-width Katakana
        | '\u{11700}'..='\u{1174f}'         // Ahom
        | '\u{16fe0}'..='\u{18dff}'         // Tangut, Khitan, old Chinese marks
        | '\u{1aff0}'..='\u{1b2ff}'         // Kana supplements, Nushu
        | '\u{20000}'..='\u{3ffff}')
}

/// Returns the form in which a word is hashed, without ignorable characters.
pub(super) fn normalise(word: &str) -> String {
    word.chars().filter(|&c| class(c) != Class::Ignorable).nfd().flat_map(fold).nfc().collect()
}

/// Maps to upper case, then lower case, twice, character by character, without context such as the final sigma's.
pub(super) fn fold(c: char) -> impl Iterator<Item = char> {
    let round = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    iter::once(c).flat_map(round).flat_map(round)
}

/// A word in the form in which it is hashed.
#[cfg(test)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    /// Whether its script is written without spaces.
    pub lone: bool,
}

/// Returns the words of a text, in order: the definition against which `tokenise` is tested.
#[cfg(test)]
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut word, mut lone) = (String::new(), false);
    // The line feed ends the last word.
    for c in text.chars().chain(iter::once('\n')) {
        let class = class(c);
        let ends = match class {
            Class::Separator | Class::Lone => true,
            Class::Letter => lone,
            Class::Ignorable | Class::Mark => false,
        };
        if ends && !word.is_empty() {
            words.push(Word { text: normalise(&word), lone });
            word.clear();
        }
        match class {
            Class::Letter | Class::Lone => {
                word.push(c);
                lone = class == Class::Lone;
            }
            Class::Mark if !word.is_empty() => word.push(c),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn forms(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    /// Returns the same text in other cases and normal forms.
    fn variants(text: &str) -> Vec<String> {
        let cased = [text.to_owned(), text.to_uppercase(), text.to_lowercase(), text.to_uppercase().to_lowercase()];
        cased.iter().flat_map(|text| [text.clone(), text.nfc().collect(), text.nfd().collect()]).collect()
    }

    /// Tests for the exception named in the module documentation.
    fn marks_an_iota_subscript(text: &str) -> bool {
        let seen: Vec<char> = text.chars().filter(|&c| class(c) != Class::Ignorable).collect();
        let has_iota = |c: char| iter::once(c).nfd().any(|part| part == IOTA_SUBSCRIPT);
        seen.windows(2).any(|pair| has_iota(pair[0]) && class(pair[1]) == Class::Mark)
    }

    #[test]
    fn words_of_many_scripts() {
        for (text, expected) in [
            ("", ""),
            (" \u{200b}—_'\u{301} ≠ ΅", ""),
            ("It's snake_case, 3.14", "it s snake case 3 14"),
            ("Straße STRASSE Straẞe", "strasse strasse strasse"),
            ("ὈΔΥΣΣΕΎΣ Ὀδυσσεύς", "ὀδυσσεύσ ὀδυσσεύσ"),
            ("ﬁx \u{212a}elvin Å", "fix kelvin å"),
            ("İstanbul ISPARTA ısparta", "i\u{307}stanbul isparta isparta"),
            ("co\u{ad}op\u{200d}erate\u{feff} zero\u{200b}width", "cooperate zero width"),
            ("мёд МЁД ме\u{308}д", "мёд мёд мёд"),
            ("الكِتاب", "الكِتاب"),
            ("Tiếng Việt", "tiếng việt"),
            ("हिन्दी में", "हिन्दी में"),
            ("한국어 \u{1112}\u{1161}\u{11ab}", "한국어 한"),
            ("漢字kanji、かな", "漢 字 kanji か な"),
            ("か\u{3099}ラーﾒﾝ", "が ラ ー ﾒ ﾝ"),
            ("ที่นี่", "ที่ นี่"),
            ("e\u{301}\u{301}", "é\u{301}"),
            ("x²①Ⅷ", "x²①ⅷ"),
        ] {
            assert_eq!(forms(text).join(" "), expected, "{text:?}");
        }
    }

    #[test]
    fn every_character_keeps_its_words_in_every_case_and_normal_form() {
        // Han and Hangul are regular and numerous, so they are sampled.
        let sampled =
            |c: &char| matches!(c, '㐀'..='\u{9fff}' | '가'..='힣' | '\u{20000}'..='\u{2f7ff}' | '\u{2fa20}'..);
        for c in ('\0'..=char::MAX).filter(|c| !sampled(c) || (*c as u32).is_multiple_of(97)) {
            for text in [
                format!("{c}"),
                format!("a{c}b"),
                format!("a{c}\u{301}b"),
                format!("가{c}\u{11a8}"),
                format!(" {c}\u{316}"),
            ] {
                if marks_an_iota_subscript(&text) {
                    continue;
                }
                let expected = forms(&text);
                for variant in variants(&text) {
                    assert_eq!(forms(&variant), expected, "{c:?} ({:x}) in {text:?} as {variant:?}", c as u32);
                }
            }
        }
    }

    #[test]
    fn a_third_round_of_folding_changes_no_character() {
        for c in '\0'..=char::MAX {
            let twice: String = fold(c).collect();
            assert_eq!(twice.chars().flat_map(fold).collect::<String>(), twice, "{c:?}");
        }
    }

    const LETTERS: &str = "[a-zA-Z0-9ßẞﬁﬃŉİıIiΣσςάΰᾳᾼϴµéÅ\u{301}\u{308}\u{323}\u{345}Ёжы\u{64e}\u{651}كﻻอี่กの\u{3099}ー字\
                           कि\u{94d}가각\u{1100}\u{1161}\u{11a8}ệ\u{ad}\u{200d}\u{fe0f}Ǆǅ]{0,12}";

    proptest! {
        #[test]
        fn cases_and_normal_forms_do_not_matter(text in prop::collection::vec(LETTERS, 0..6)) {
            let text: String = text.join(" ").nfc().collect();
            prop_assume!(!marks_an_iota_subscript(&text));
            let expected = forms(&text);
            for variant in variants(&text) {
                prop_assert_eq!(&forms(&variant), &expected, "{:?}", variant);
            }
        }

        #[test]
        fn spaces_and_punctuation_do_not_matter(pieces in prop::collection::vec((LETTERS, "[ \t\n.,;:!?\\-—_'\"、。「」\u{200b}\u{3000}]{1,3}"), 0..8)) {
            let plain: Vec<&str> = pieces.iter().map(|(word, _)| word.as_str()).collect();
            let punctuated: String = pieces.iter().map(|(word, gap)| format!("{word}{gap}")).collect();
            prop_assert_eq!(forms(&plain.join(" ")), forms(&punctuated));
        }

        #[test]
        fn no_word_is_empty(text in any::<String>()) {
            prop_assert!(words(&text).iter().all(|word| !word.text.is_empty()));
        }
    }
}
