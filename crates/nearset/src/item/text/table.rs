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

/// Where the blocks of Han, Hangul and other scripts with thousands of letters begin.
const FIRST_LARGE_SCRIPT: char = '\u{2e80}';

/// What a character does in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A letter that begins afresh.
    Fresh,
    /// Like [`Kind::Fresh`], and a word of its own.
    FreshLone,
    /// A character that belongs to the one before it, but begins afresh: its form follows.
    FreshMark,
    /// A letter that does not begin afresh, or whose form is longer than [`LONGEST_FORM`].
    Letter,
    /// Like [`Kind::Letter`], and a word of its own.
    Lone,
    /// A character that belongs to the one before it and does not begin afresh.
    Mark,
    /// A character that is skipped.
    Ignorable,
    /// A character that ends a word.
    Separator,
}

/// What the tokeniser needs to know about every character, in one byte, so that the letters of large scripts stay in
/// the CPU's caches: from the lowest bit, a [`Kind`], whether the form must be looked up, the form's length,
/// and whether it is a letter that begins afresh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Info(u8);

impl Info {
    const LOOK_UP: u8 = 1 << 3;
    const FRESH_LETTER: u8 = 1 << 7;

    fn new(kind: Kind, look_up: bool, length: usize) -> Self {
        debug_assert!((1..=LONGEST_FORM).contains(&length));
        let look_up = if look_up { Self::LOOK_UP } else { 0 };
        let fresh = if matches!(kind, Kind::Fresh | Kind::FreshLone) { Self::FRESH_LETTER } else { 0 };
        Self(kind as u8 | look_up | (length as u8 - 1) << 4 | fresh)
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        match self.0 & 7 {
            0 => Kind::Fresh,
            1 => Kind::FreshLone,
            2 => Kind::FreshMark,
            3 => Kind::Letter,
            4 => Kind::Lone,
            5 => Kind::Mark,
            6 => Kind::Ignorable,
            _ => Kind::Separator,
        }
    }

    /// Tests for [`Kind::Fresh`] and [`Kind::FreshLone`]. Most characters are of these kinds, and one bit is predicted
    /// better than a jump to one of many places.
    #[inline(always)]
    pub(super) fn is_fresh_letter(self) -> bool {
        self.0 & Self::FRESH_LETTER != 0
    }

    /// Returns whether a letter that begins afresh is a word of its own.
    #[inline(always)]
    pub(super) fn is_lone(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether the form must be looked up, because it may be another than the character itself.
    #[inline(always)]
    pub(super) fn must_look_up(self) -> bool {
        self.0 & Self::LOOK_UP != 0
    }

    /// Returns the length of the form in bytes, if the form is in the table.
    #[inline(always)]
    pub(super) fn length(self) -> usize {
        usize::from(self.0 >> 4 & 7) + 1
    }
}

/// A folded character that has no parts: the unit of segments.
///
/// It is one number: the order in the highest 8 bits, then three flags, then the character.
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

    /// Returns the key by which parts are ordered: the combining class of the character before folding.
    #[inline(always)]
    pub(super) fn order(self) -> u8 {
        (self.0 >> 24) as u8
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

/// Takes the next character of UTF-8, and returns it and its bytes as a little-endian number.
#[inline(always)]
pub(super) fn next_char(rest: &mut &[u8]) -> Option<(u32, u32)> {
    let tail = |byte: u8| u32::from(byte & 0x3f);
    let (c, bytes);
    (c, bytes, *rest) = match **rest {
        [a @ ..0x80, ref rest @ ..] => (u32::from(a), [a, 0, 0, 0], rest),
        [a @ ..0xe0, b, ref rest @ ..] => (u32::from(a & 0x1f) << 6 | tail(b), [a, b, 0, 0], rest),
        [a @ ..0xf0, b, c, ref rest @ ..] => (u32::from(a & 0xf) << 12 | tail(b) << 6 | tail(c), [a, b, c, 0], rest),
        [a, b, c, d, ref rest @ ..] => {
            (u32::from(a & 7) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d), [a, b, c, d], rest)
        }
        _ => return None,
    };
    Some((c, u32::from_le_bytes(bytes)))
}

/// Returns the character at a position of UTF-8, its bytes as a little-endian number, and the position after it.
#[inline(always)]
pub(super) fn char_at(text: &[u8], at: usize) -> Option<(u32, u32, usize)> {
    let mut rest = text.get(at..)?;
    let (c, bytes) = next_char(&mut rest)?;
    Some((c, bytes, text.len() - rest.len()))
}

/// 256 consecutive characters.
pub(super) struct Page {
    infos: [Info; 256],
    /// The forms in UTF-8, then zeros, as little-endian numbers; 0 for those that are empty or too long.
    forms: [u64; 256],
    /// See [`Page::order`].
    orders: [u8; 256],
    /// Each character's only part, or where its parts are in `more`.
    first: [Part; 256],
    more: Vec<Part>,
}

impl Page {
    fn new(first: u32) -> Self {
        let mut page = Page {
            infos: [Info::new(Kind::Separator, false, 1); 256],
            forms: [0; 256],
            orders: [0; 256],
            first: [Part::default(); 256],
            more: Vec::new(),
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
            (page.infos[i], page.forms[i]) = info_of(c, &parts);
            let order = parts.first().map_or(0, |part| part.order());
            if page.forms[i] != 0
                && page.infos[i].kind() != Kind::Ignorable
                && parts.iter().all(|part| part.order() == order)
            {
                page.orders[i] = order;
            }
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

    #[inline(always)]
    pub(super) fn info(&self, c: u32) -> Info {
        self.infos[c as usize & 0xff]
    }

    /// Returns the form of a character of this page, in UTF-8, then zeros, as a little-endian number.
    #[inline(always)]
    pub(super) fn form(&self, c: u32) -> u64 {
        self.forms[c as usize & 0xff]
    }

    /// Returns the order of the parts of a character of this page, if that is the same for all and they are its form.
    /// Otherwise returns 0.
    #[inline(always)]
    pub(super) fn order(&self, c: u32) -> u8 {
        self.orders[c as usize & 0xff]
    }

    /// Returns whether a character of this page, if it is a part, may compose with a letter before it.
    #[inline(always)]
    pub(super) fn composes(&self, c: u32) -> bool {
        self.first[c as usize & 0xff].composes()
    }

    /// Returns the part of a character of this page, if it has only one: this is its form, too.
    #[inline(always)]
    pub(super) fn only_part(&self, c: u32) -> Option<Part> {
        let first = self.first[c as usize & 0xff];
        first.place_of_several().is_none().then_some(first)
    }

    /// Returns the parts of a character of this page.
    #[inline(always)]
    pub(super) fn parts(&self, c: u32) -> &[Part] {
        let first = &self.first[c as usize & 0xff];
        match first.place_of_several() {
            None => std::slice::from_ref(first),
            Some(place) => &self.more[place],
        }
    }
}

/// Returns what is to be known about a character, and its form.
fn info_of(c: char, parts: &[Part]) -> (Info, u64) {
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
        Class::Letter if is_fresh => Kind::Fresh,
        Class::Letter => Kind::Letter,
        Class::Lone if is_fresh => Kind::FreshLone,
        Class::Lone => Kind::Lone,
        Class::Mark if is_fresh => Kind::FreshMark,
        Class::Mark => Kind::Mark,
        Class::Ignorable => Kind::Ignorable,
        Class::Separator => Kind::Separator,
    };
    let length = if fits { form.len() } else { 1 };
    // Scripts of the first blocks are small enough to be looked up, and have two cases, which no branch should depend on.
    let look_up = c < FIRST_LARGE_SCRIPT || !form.chars().eq([c]);
    (Info::new(kind, look_up, length), u64::from_le_bytes(bytes))
}

static PAGES: [OnceLock<Box<Page>>; 0x1100] = [const { OnceLock::new() }; 0x1100];

/// Returns the page of a character.
#[inline(always)]
pub(super) fn page(c: u32) -> &'static Page {
    PAGES[c as usize >> 8].get_or_init(|| Box::new(Page::new(c & !0xff)))
}
