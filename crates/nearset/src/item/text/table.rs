//! Characters looked up instead of computed: for most, the form within a word does not depend on their neighbours.
//!
//! Claim: a word's form is that of its first character followed, as long as each next one *begins afresh*, by their
//! forms, one after the other. A character begins afresh if its form starts with a letter that neither composes with
//! what precedes it nor is reordered with it. Unicode calls such places normalisation boundaries (UAX 15, section 9).
//! What does not begin afresh is left to `segment`, together with the last character that does.
//! Invariant: entries are computed from `words`, a page of 256 at a time when its first character is met, so the two
//! cannot differ.

use std::{iter, ops::Range, sync::OnceLock};

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfc_quick};

use super::words::{Class, class, fold, normalise};

/// Bytes of the longest form in the table.
const LONGEST_FORM: usize = 8;

/// What a character does in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A letter that begins afresh.
    Fresh,
    /// Like [`Kind::Fresh`], and a word of its own.
    FreshLone,
    /// A letter that begins afresh and has a form of more than 4 bytes.
    FreshLong,
    /// A letter that does not begin afresh, or whose form is longer than [`LONGEST_FORM`].
    Letter,
    /// Like [`Kind::Letter`], and a word of its own.
    Lone,
    /// A character that belongs to the one before it.
    Mark,
    /// A character that is skipped.
    Ignorable,
    /// A character that ends a word.
    Separator,
}

/// What the tokeniser needs to know about a character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub kind: Kind,
    /// The form's length in bytes, where the character begins afresh.
    pub length: u8,
    /// The combining class of the last part if the form is one character; otherwise [`Entry::SEVERAL`].
    pub last_class: u8,
    pub joining: Joining,
    /// The form in UTF-8, then zeros, as a little-endian number; for a long form, the first 4 bytes.
    pub form: u32,
}

/// What a character does after one that began afresh, if it has only one part and is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// It stands after it.
    Follows,
    /// It may compose with it.
    Composes,
    /// It has several parts, or changes its combining class.
    Depends,
}

impl Entry {
    /// A value above every combining class.
    pub(super) const SEVERAL: u8 = 255;
}

/// A folded character that has no parts: the unit of segments.
///
/// It is one number, since segments may be as long as texts: the order in the highest 8 bits, then three flags, then
/// the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part(u32);

impl Part {
    const COMPOSES: u32 = 1 << 21;
    const LETTER: u32 = 1 << 22;
    const SEVERAL: u32 = 1 << 23;

    /// Creates a part of a character, with the combining class that the character in its place had before folding.
    fn new(c: char, class_before: u8) -> Self {
        let class = canonical_combining_class(c);
        let order = if class_before == 0 { class } else { class_before };
        debug_assert!(class == 0 || class == order, "folding {c:?} changes a combining class");
        let letter = if class == 0 { Self::LETTER } else { 0 };
        let composes = if is_nfc_quick(iter::once(c)) == IsNormalized::Yes { 0 } else { Self::COMPOSES };
        Self(u32::from(c) | letter | composes | u32::from(order) << 24)
    }

    /// Returns the character.
    #[inline(always)]
    pub(super) fn char(self) -> char {
        char::from_u32(self.0 & (Self::COMPOSES - 1)).unwrap_or_default()
    }

    /// Returns the same part with another character.
    #[inline(always)]
    pub(super) fn with_char(self, c: char) -> Self {
        Self(self.0 & !(Self::COMPOSES - 1) | u32::from(c))
    }

    /// Returns the key by which parts are ordered: the combining class of the character before folding.
    #[inline(always)]
    pub(super) fn order(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Returns the combining class.
    #[inline(always)]
    pub(super) fn combining_class(self) -> u8 {
        if self.is_letter() { 0 } else { self.order() }
    }

    /// Returns whether the combining class is 0.
    #[inline(always)]
    pub(super) fn is_letter(self) -> bool {
        self.0 & Self::LETTER != 0
    }

    /// Returns whether the part may compose with a letter before it.
    #[inline(always)]
    pub(super) fn composes(self) -> bool {
        self.0 & Self::COMPOSES != 0
    }

    /// Returns a stand-in that tells where several parts are.
    fn several(from: usize, count: usize) -> Self {
        debug_assert!(from <= 0xffff && count <= 0xff);
        Self(Self::SEVERAL | (count as u32) << 24 | from as u32)
    }

    #[inline(always)]
    fn place_of_several(self) -> Option<Range<usize>> {
        let from = (self.0 & 0xffff) as usize;
        (self.0 & Self::SEVERAL != 0).then(|| from..from + self.order() as usize)
    }
}

/// Returns a character in UTF-8, then zeros, as a little-endian number.
#[inline(always)]
pub(super) fn encode(c: char) -> u32 {
    let c = u32::from(c);
    // Six bits of the character, counted from the end.
    let next = |n: u32| c >> (6 * n) & 0x3f | 0x80;
    match c {
        ..0x80 => c,
        0x80..0x800 => 0xc0 | c >> 6 | next(0) << 8,
        0x800..0x1_0000 => 0xe0 | c >> 12 | next(1) << 8 | next(0) << 16,
        _ => 0xf0 | c >> 18 | next(2) << 8 | next(1) << 16 | next(0) << 24,
    }
}

/// Returns the number of bytes of a character as [`encode`] returns it: none of them is 0.
#[inline(always)]
pub(super) fn encoded_length(form: u32) -> usize {
    (u32::BITS - form.leading_zeros()).div_ceil(8) as usize
}

/// Returns the character that [`encode`] maps to `form`.
#[inline(always)]
pub(super) fn decode(form: u32) -> char {
    let [a, b, c, d] = form.to_le_bytes().map(u32::from);
    let tail = |byte: u32| byte & 0x3f;
    let c = match a {
        ..0x80 => a,
        0x80..0xe0 => (a & 0x1f) << 6 | tail(b),
        0xe0..0xf0 => (a & 0xf) << 12 | tail(b) << 6 | tail(c),
        _ => (a & 7) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d),
    };
    char::from_u32(c).unwrap_or_default()
}

/// 256 consecutive characters.
pub(super) struct Page {
    entries: [Entry; 256],
    /// Each character's only part, or where its parts are in `more`.
    first: [Part; 256],
    more: Vec<Part>,
    /// Bytes of long forms beyond the first 4.
    rest: [u32; 256],
}

impl Page {
    fn new(first: u32) -> Self {
        let mut page = Page {
            entries: [Entry { kind: Kind::Separator, length: 0, last_class: 0, joining: Joining::Depends, form: 0 };
                256],
            first: [Part::default(); 256],
            more: Vec::new(),
            rest: [0; 256],
        };
        for i in 0..256 {
            // A page of surrogates, which are not characters, is never requested.
            let c = char::from_u32(first + i as u32).unwrap_or('\0');
            let parts: Vec<Part> = iter::once(c)
                .nfd()
                .flat_map(|part| {
                    let class = canonical_combining_class(part);
                    fold(part).flat_map(|folded| iter::once(folded).nfd()).map(move |c| Part::new(c, class))
                })
                .collect();
            (page.entries[i], page.rest[i]) = entry_of(c, &parts);
            page.first[i] = match parts[..] {
                [only] => only,
                _ => Part::several(page.more.len(), parts.len()),
            };
            if parts.len() > 1 {
                page.more.extend(parts);
            }
        }
        page
    }

    /// Returns the entry of a character of this page.
    #[inline(always)]
    pub(super) fn entry(&self, c: char) -> &Entry {
        &self.entries[c as usize & 0xff]
    }

    /// Returns the bytes of a character's form beyond the first 4, if it begins afresh and has a long form.
    #[inline(always)]
    pub(super) fn rest_of_form(&self, c: char) -> u32 {
        self.rest[c as usize & 0xff]
    }

    /// Returns the parts of a character of this page.
    #[inline(always)]
    pub(super) fn parts(&self, c: char) -> &[Part] {
        let first = &self.first[c as usize & 0xff];
        match first.place_of_several() {
            None => std::slice::from_ref(first),
            Some(place) => &self.more[place],
        }
    }

    /// Returns the part of a character of this page, if it has only one.
    #[inline(always)]
    pub(super) fn only_part(&self, c: char) -> Option<Part> {
        let first = self.first[c as usize & 0xff];
        first.place_of_several().is_none().then_some(first)
    }
}

/// Returns the entry of a character, and its form beyond the first 4 bytes.
fn entry_of(c: char, parts: &[Part]) -> (Entry, u32) {
    let form = normalise(c.encode_utf8(&mut [0; 4]));
    let mut bytes = [0; LONGEST_FORM];
    let fits = (1..=LONGEST_FORM).contains(&form.len());
    if fits {
        bytes[..form.len()].copy_from_slice(form.as_bytes());
    }
    let stays = |c: char| is_nfc_quick(iter::once(c)) == IsNormalized::Yes;
    let is_fresh = fits
        && parts.first().is_some_and(|part| part.order() == 0 && part.is_letter() && !part.composes())
        && form.chars().next().is_some_and(stays);
    let kind = match class(c) {
        Class::Letter if is_fresh && form.len() > 4 => Kind::FreshLong,
        Class::Letter if is_fresh => Kind::Fresh,
        Class::Letter => Kind::Letter,
        Class::Lone if is_fresh && form.len() <= 4 => Kind::FreshLone,
        Class::Lone => Kind::Lone,
        Class::Mark => Kind::Mark,
        Class::Ignorable => Kind::Ignorable,
        Class::Separator => Kind::Separator,
    };
    let last_class = match parts.last() {
        Some(last) if form.chars().count() == 1 => last.order(),
        _ => Entry::SEVERAL,
    };
    let joining = match parts {
        [part] if form.len() > 4 || part.is_letter() && part.order() != 0 => Joining::Depends,
        [part] if part.composes() => Joining::Composes,
        [_] => Joining::Follows,
        _ => Joining::Depends,
    };
    let whole = u64::from_le_bytes(bytes);
    (
        Entry { kind, length: form.len().min(LONGEST_FORM) as u8, last_class, joining, form: whole as u32 },
        (whole >> 32) as u32,
    )
}

static PAGES: [OnceLock<Box<Page>>; 0x1100] = [const { OnceLock::new() }; 0x1100];

/// Returns the page of a character.
#[inline]
pub(super) fn page(c: char) -> &'static Page {
    PAGES[c as usize >> 8].get_or_init(|| Box::new(Page::new(c as u32 & !0xff)))
}
