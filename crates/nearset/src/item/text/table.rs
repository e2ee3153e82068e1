//! Characters looked up instead of worked out: for most, the form within a word does not depend on their neighbours.
//!
//! Claim: a word's form is that of its first character and then, as long as each next one *begins afresh* or *joins*, their
//! forms, one after the other.
//! - A character begins afresh if its form starts with a letter that neither composes with what is before it nor is put into
//!   another order with it. Unicode has such places in mind when it speaks of normalisation boundaries (UAX 15, section 9).
//! - It joins if nothing in its form composes with what is before it, and the combining classes of its decomposition do not
//!   fall below the last one before them: then nothing changes places, and the quick check for NFC passes what is appended.
//!   Folding keeps every combining class but that of the iota subscript, whose form is a letter.
//!
//! Where it does not join because it may compose, but is a single mark in order, only one letter is in question, and the
//! tokeniser sees to it. What does none of this is for `segment`, together with all back to where the word last began afresh.
//! Invariant: an entry is computed from `words`, a page of 256 when its first character is met, so the two can't differ.

use std::{iter, sync::OnceLock};

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfc_quick};

use super::words::{Class, class, fold, normalise};

/// Bytes that a form may take.
pub(super) const LONGEST_FORM: usize = 8;

/// What the tokeniser needs to know of a character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub class: Class,
    pub begins_afresh: bool,
    /// Joins where the combining classes allow it.
    pub joins: bool,
    /// Has no parts, and neither has the form, which is one character. That is a mark where this is one, else a letter.
    pub simple: bool,
    /// The form's first character may compose with what is before it.
    pub composes: bool,
    /// The combining class of the first part, where the character is taken apart: the order of marks on one letter.
    pub first_class: u8,
    /// The same of the last part.
    pub last_class: u8,
    /// The form's length in bytes; 0 where there is none, or it is too long.
    pub length: u8,
    /// The form in UTF-8, then zeros.
    pub form: [u8; LONGEST_FORM],
    /// The form, where it is one character.
    pub one: Option<char>,
}

impl Entry {
    fn new(c: char) -> Self {
        let parts: Vec<char> = iter::once(c).nfd().collect();
        let mut entry = Entry {
            class: class(c),
            begins_afresh: false,
            joins: false,
            simple: false,
            composes: false,
            first_class: canonical_combining_class(parts[0]),
            last_class: canonical_combining_class(parts[parts.len() - 1]),
            length: 0,
            form: [0; LONGEST_FORM],
            one: None,
        };
        let text = normalise(c.encode_utf8(&mut [0; 4]));
        let in_words = matches!(entry.class, Class::Letter | Class::Lone | Class::Mark);
        if !in_words || text.is_empty() || text.len() > LONGEST_FORM {
            return entry;
        }
        entry.length = text.len() as u8;
        entry.form[..text.len()].copy_from_slice(text.as_bytes());

        let stays = |c: char| is_nfc_quick(iter::once(c)) == IsNormalized::Yes;
        let form: Vec<char> = text.chars().collect();
        let form_parts: Vec<char> = parts.iter().flat_map(|&part| fold(part)).nfd().collect();
        let classes: Vec<u8> = form.iter().map(|&c| canonical_combining_class(c)).collect();
        let [first, last] = [classes[0], classes[classes.len() - 1]];
        entry.begins_afresh = entry.first_class == 0
            && canonical_combining_class(form_parts[0]) == 0
            && stays(form_parts[0])
            && stays(form[0]);
        entry.joins = form.iter().all(|&c| stays(c))
            && (first == 0 || first == entry.first_class)
            && last <= entry.last_class
            && classes.is_sorted();
        entry.one = (form.len() == 1).then_some(form[0]);
        let form_class = if entry.class == Class::Mark { entry.first_class } else { 0 };
        entry.simple = parts == [c] && form.len() == 1 && form_parts == form && first == form_class;
        entry.composes = !stays(form[0]);
        entry
    }

    /// The form, or nothing where there is none in the table.
    pub(super) fn form(&self) -> &str {
        std::str::from_utf8(&self.form[..self.length as usize]).unwrap_or_default()
    }
}

type Page = OnceLock<Box<[Entry; 256]>>;

static PAGES: [Page; 0x1100] = [const { OnceLock::new() }; 0x1100];

/// The entry of a character.
#[inline]
pub(super) fn entry(c: char) -> &'static Entry {
    let code = c as usize;
    let page = PAGES[code >> 8].get_or_init(|| {
        let first = c as u32 & !0xff;
        // A page of surrogates, which are no characters, is never asked for.
        Box::new(std::array::from_fn(|i| Entry::new(char::from_u32(first + i as u32).unwrap_or('\0'))))
    });
    &page[code & 0xff]
}
