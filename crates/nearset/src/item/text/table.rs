//! Characters looked up instead of worked out: for most, the form within a word does not depend on their neighbours.
//!
//! Claim: a word whose characters are all `plain`, their combining classes in canonical order, normalises to the forms of
//! its characters, joined. For those forms then pass Unicode's quick check for NFC (UAX 15, section 9) as a whole, and
//! folding keeps every combining class but that of the iota subscript, which is not plain.
//! Invariant: an entry is computed from `words`, a page of 256 when its first character is met, so the two can't differ.

use std::sync::OnceLock;

use unicode_normalization::{IsNormalized, char::canonical_combining_class, is_nfc_quick};

use super::words::{Class, class, normalise};

/// What the tokeniser needs to know of a character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub class: Class,
    /// The form does not depend on neighbours. False where there is none.
    pub plain: bool,
    /// The order of marks on one letter.
    pub combining_class: u8,
    /// The form's length in bytes.
    pub length: u8,
    /// The form in UTF-8, then zeros.
    pub form: [u8; 4],
}

impl Entry {
    fn new(c: char) -> Self {
        let mut entry = Entry {
            class: class(c),
            plain: false,
            combining_class: canonical_combining_class(c),
            length: 0,
            form: [0; 4],
        };
        if matches!(entry.class, Class::Letter | Class::Lone | Class::Mark) {
            let text = normalise(c.encode_utf8(&mut [0; 4]));
            let mut chars = text.chars();
            if let (Some(form), None) = (chars.next(), chars.next()) {
                entry.plain = is_nfc_quick([form].into_iter()) == IsNormalized::Yes
                    && canonical_combining_class(form) == entry.combining_class;
                entry.length = form.encode_utf8(&mut entry.form).len() as u8;
            }
        }
        entry
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
