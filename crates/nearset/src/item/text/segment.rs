//! The form of characters that depend on each other: a letter with marks that compose with it or are out of order, and
//! Hangul syllables in parts.
//!
//! Claim: [`Segments::append`] appends `words::normalise` of a segment, in time that depends only on its length, however
//! many marks are stacked on a letter; and nothing is allocated once there is room.
//!
//! The definition decomposes the text, orders, folds, orders and composes. Here one ordering does for both: folding
//! keeps combining classes, except for the iota subscript, which is a mark of the highest class before folding and a
//! letter after it. So it comes last of the marks on its letter, and no mark follows it.
//!
//! Texts repeat their segments and words, so the forms of short ones are remembered.

use std::{
    mem,
    sync::atomic::{AtomicU64, Ordering},
};

use unicode_normalization::char::compose;

use super::{
    latin::{LATIN, Latin},
    table::{Kind, Part, decode, encode, encoded_length, next_char, page},
};
use crate::{
    hash::fold,
    simd::text::{join, padded_words},
};

/// The combining class of the iota subscript, and of no other character.
const IOTA: usize = 240;

/// Bytes of the longest form that is remembered.
const SHORT: usize = 16;

/// Computes the forms of segments.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The marks on a letter, by their combining classes.
    marks: Vec<Marks>,
    /// A bit for each class of which there are marks.
    classes: [u64; 4],
    /// Segments, each at a place computed from its bytes.
    known: Vec<Known>,
    /// How many segments were not found there.
    unknown: usize,
    luck: Luck,
    /// Whether the last word was looked up.
    looked_up: bool,
    /// The number of bytes allocated for marks.
    capacity: usize,
}

/// Marks of one class in UTF-8, and unused bytes after them.
#[derive(Debug, Clone, Default)]
struct Marks {
    bytes: Vec<u8>,
    length: usize,
}

/// A segment or word and its form, in UTF-8, then zeros, as little-endian numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The segment, in at most 15 bytes; in the last, the length of the form and [`Known::WORD`].
    segment: [u64; 2],
    form: [u64; 2],
}

impl Known {
    /// Tells that a segment is a whole word that is not lone.
    const WORD: u64 = 1 << 63;

    #[inline(always)]
    fn is(&self, segment: [u64; 2]) -> bool {
        self.segment[0] ^ segment[0] | (self.segment[1] ^ segment[1]) << 8 == 0
    }

    #[inline(always)]
    fn length(&self) -> usize {
        (self.segment[1] >> 56 & 0x1f) as usize
    }
}

/// Whether looking words up is worth its time: most texts repeat their words, and in those that do not, few are looked
/// up.
#[derive(Debug)]
struct Luck {
    asked: usize,
    /// Negative if few were found lately.
    found: i32,
}

impl Default for Luck {
    fn default() -> Self {
        Self { asked: 0, found: Self::MOST }
    }
}

impl Luck {
    /// The number of misses after which few are looked up.
    const MOST: i32 = 64;

    #[inline(always)]
    fn tries(&mut self) -> bool {
        /// An odd number, so that no word of a short cycle is left out.
        const ONE_IN: usize = 17;
        self.asked = self.asked.wrapping_add(1);
        self.found >= 0 || self.asked.is_multiple_of(ONE_IN)
    }

    #[inline(always)]
    fn tell(&mut self, found: bool) {
        self.found = (self.found + if found { 2 } else { -1 }).clamp(-Self::MOST, Self::MOST);
    }
}

impl Segments {
    /// Bytes of the longest segment that is remembered.
    pub(super) const LONGEST_KNOWN: usize = SHORT - 1;

    /// Returns the number of bytes allocated for marks.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Writes the form of a segment, `text[from..to]`, at `at`, and zeros after it up to 16 bytes at least. Returns
    /// where it ends.
    #[inline(always)]
    pub(super) fn append(&mut self, text: &[u8], from: usize, to: usize, bytes: &mut Vec<u8>, at: usize) -> usize {
        if to - from > Self::LONGEST_KNOWN {
            return self.work_out(&text[from..to], bytes, at);
        }
        let segment = padded_words(text, from, to - from, 0);
        if to - from <= Latin::LONGEST
            && let Some((form, length)) = LATIN.form(segment[0], to - from)
        {
            put(bytes, at, form.to_le_bytes());
            return at + length;
        }
        if let Some(known) = self.find(segment) {
            put(bytes, at, join(known.form).to_le_bytes());
            return at + known.length();
        }
        let end = self.work_out(&text[from..to], bytes, at);
        if end - at <= SHORT {
            self.remember(segment, padded_words(bytes, at, end - at, 0), end - at, 0);
        }
        end
    }

    /// Returns the form of a word in a span of its own, and the form's length, if it is known.
    #[inline(always)]
    pub(super) fn word(&mut self, word: [u64; 2]) -> Option<(u128, usize)> {
        self.looked_up = self.luck.tries();
        if !self.looked_up {
            return None;
        }
        let known = self.find(word).filter(|known| known.segment[1] & Known::WORD != 0);
        let form = known.map(|known| (join(known.form), known.length()));
        self.luck.tell(form.is_some());
        form
    }

    /// Remembers the word that was not found just before.
    #[inline(always)]
    pub(super) fn remember_word(&mut self, word: [u64; 2], form: u128, length: usize) {
        if self.looked_up {
            self.remember(word, [form as u64, (form >> 64) as u64], length, Known::WORD);
        }
    }

    #[inline(always)]
    fn find(&self, segment: [u64; 2]) -> Option<&Known> {
        let place = place_of(segment, self.known.len().max(1));
        // A segment is at its place or the next, where it moves when another arrives.
        [place, place ^ 1].into_iter().filter_map(|place| self.known.get(place)).find(|known| known.is(segment))
    }

    fn remember(&mut self, segment: [u64; 2], form: [u64; 2], length: usize, word: u64) {
        /// Few at first, as most texts have few segments and are short.
        const PLACES: usize = 1 << 7;
        const MOST_PLACES: usize = 1 << 13;
        self.unknown += 1;
        if self.unknown > self.known.len() && self.known.len() < MOST_PLACES {
            let places = (4 * self.known.len()).clamp(PLACES, MOST_PLACES);
            self.known.clear();
            self.known.resize(places, Known::default());
            self.unknown = 0;
        }
        let place = place_of(segment, self.known.len());
        let known = Known { segment: [segment[0], segment[1] | (length as u64) << 56 | word], form };
        self.known[place ^ 1] = mem::replace(&mut self.known[place], known);
    }

    /// The same as [`Segments::append`], computed.
    #[inline(never)]
    fn work_out(&mut self, mut segment: &[u8], bytes: &mut Vec<u8>, at: usize) -> usize {
        if self.marks.is_empty() {
            self.marks.resize(256, Marks::default());
        }
        /// Marks of equal classes, after which more are expected. Of random ones none is: where the branch that ends a
        /// run can't be predicted, it costs more than a run saves.
        const LONG_RUN: u32 = 8;
        let mut form = Composer { bytes, end: at, letter: None, follows: false };
        let (mut last_class, mut run) = (0, 0);
        while let Some((c, _)) = next_char(&mut segment) {
            let page = page(c);
            let info = page.info(c);
            let class = page.order(c);
            run = if class == last_class { run + 1 } else { 0 };
            last_class = class;
            match class {
                0 if info.kind() == Kind::Ignorable => {}
                0 => match page.only_part(c) {
                    Some(part) => self.add_part(part, page.form(c) as u32, &mut form),
                    None => {
                        let parts = page.parts(c).iter();
                        parts.for_each(|&part| self.add_part(part, encode(part.char()), &mut form));
                    }
                },
                class => {
                    self.add_mark(class, page.form(c), info.length());
                    if run >= LONG_RUN {
                        self.add_run(class, &mut segment);
                    }
                }
            }
        }
        self.put_marks(&mut form);
        put(form.bytes, form.end, [0; SHORT]);
        form.end
    }

    #[inline(always)]
    fn add_part(&mut self, part: Part, encoded: u32, form: &mut Composer<'_>) {
        match part.order() {
            0 => {
                if self.classes != [0; 4] {
                    self.put_marks(form);
                }
                form.add_letter(part, encoded);
            }
            class => self.add_mark(class, encoded.into(), encoded_length(encoded)),
        }
    }

    #[inline(always)]
    fn add_mark(&mut self, class: u8, mark: u64, length: usize) {
        let marks = &mut self.marks[class as usize];
        if marks.length + 8 > marks.bytes.len() {
            self.capacity += marks.grow();
        }
        marks.bytes[marks.length..marks.length + 8].copy_from_slice(&mark.to_le_bytes());
        if marks.length == 0 {
            self.classes[class as usize / 64] |= 1 << (class % 64);
        }
        marks.length += length;
    }

    /// Adds marks as long as they are of one class, of which there are marks already.
    #[inline(always)]
    fn add_run(&mut self, class: u8, segment: &mut &[u8]) {
        let marks = &mut self.marks[class as usize];
        let (mut length, mut rest) = (marks.length, *segment);
        while let Some((c, _)) = next_char(&mut rest)
            && page(c).order(c) == class
        {
            if length + 8 > marks.bytes.len() {
                self.capacity += marks.grow();
            }
            marks.bytes[length..length + 8].copy_from_slice(&page(c).form(c).to_le_bytes());
            length += page(c).info(c).length();
            *segment = rest;
        }
        marks.length = length;
    }

    /// Puts the marks in the order of their classes, and composes each with the letter where nothing of an equal or
    /// higher class stands between (UAX 15, D117).
    #[inline(always)]
    fn put_marks(&mut self, form: &mut Composer<'_>) {
        for (high, classes) in self.classes.iter_mut().enumerate() {
            while *classes != 0 {
                let class = 64 * high + classes.trailing_zeros() as usize;
                *classes &= *classes - 1;
                let marks = &mut self.marks[class];
                let length = mem::take(&mut marks.length);
                let mut rest = &marks.bytes[..length];
                if class == IOTA {
                    form.add_iotas(rest);
                    continue;
                }
                let mut next = rest;
                while let Some((mark, _)) = next_char(&mut next)
                    && page(mark).composes(mark)
                    && form.compose(mark)
                {
                    rest = next;
                }
                if !rest.is_empty() {
                    form.follows = false;
                    match marks.bytes[length - rest.len()..].first_chunk::<8>() {
                        Some(&eight) if rest.len() <= 8 => form.put_few(eight, rest.len()),
                        _ => form.put_all(rest),
                    }
                }
            }
        }
    }
}

impl Marks {
    /// Makes room for as many bytes again, and returns how many more there are.
    #[cold]
    fn grow(&mut self) -> usize {
        let more = self.bytes.len().max(64);
        self.bytes.resize(self.bytes.len() + more, 0);
        more
    }
}

/// A form under construction.
struct Composer<'a> {
    bytes: &'a mut Vec<u8>,
    end: usize,
    /// The last letter, and where it is.
    letter: Option<(char, usize)>,
    /// Whether nothing stands between the letter and what comes next.
    follows: bool,
}

impl Composer<'_> {
    #[inline(always)]
    fn add_letter(&mut self, part: Part, encoded: u32) {
        let c = part.char();
        if self.follows && part.composes() && self.compose(c.into()) {
            return;
        }
        (self.letter, self.follows) = (Some((c, self.end)), true);
        put(self.bytes, self.end, encoded.to_le_bytes());
        self.end += encoded_length(encoded);
    }

    fn add_iotas(&mut self, iotas: &[u8]) {
        const LETTER: char = 'ι';
        self.put_all(iotas);
        (self.letter, self.follows) = (Some((LETTER, self.end - LETTER.len_utf8())), true);
    }

    /// Replaces the letter by what it composes to with `next`, if it does.
    #[inline(always)]
    fn compose(&mut self, next: u32) -> bool {
        let Some((letter, at)) = self.letter else { return false };
        let composed = compose_known(letter, char::from_u32(next).unwrap_or_default());
        if composed == 0 {
            return false;
        }
        let (old, new) = (letter.len_utf8(), encoded_length(composed));
        let marks = at + old..self.end;
        self.end = self.end + new - old;
        if marks.is_empty() {
            put(self.bytes, at, composed.to_le_bytes());
        } else {
            put(self.bytes, self.end.max(marks.end), [0; 4]);
            self.bytes.copy_within(marks, at + new);
            self.bytes[at..at + new].copy_from_slice(&composed.to_le_bytes()[..new]);
        }
        self.letter = Some((decode(composed), at));
        true
    }

    /// Appends the first bytes of eight: copying eight is faster than copying fewer of a number that can't be predicted.
    #[inline(always)]
    fn put_few(&mut self, marks: [u8; 8], length: usize) {
        put(self.bytes, self.end, marks);
        self.end += length;
    }

    fn put_all(&mut self, marks: &[u8]) {
        let end = self.end + marks.len();
        if end > self.bytes.len() {
            grow(self.bytes, end);
        }
        self.bytes[self.end..end].copy_from_slice(marks);
        self.end = end;
    }
}

#[inline(always)]
fn place_of([low, high]: [u64; 2], places: usize) -> usize {
    fold(low ^ 0x9e37_79b9_7f4a_7c15, high ^ 0xd6e8_feb8_6659_fd93) as usize & (places - 1)
}

/// Writes bytes, growing the vector if there is no room for them.
#[inline(always)]
pub(super) fn put<const N: usize>(bytes: &mut Vec<u8>, at: usize, put: [u8; N]) {
    if at + N > bytes.len() {
        grow(bytes, at + N);
    }
    bytes[at..at + N].copy_from_slice(&put);
}

/// Makes room for `length` bytes, and as many again, so that long words do not grow it over and over.
#[cold]
fn grow(bytes: &mut Vec<u8>, length: usize) {
    bytes.resize((2 * length).max(64), 0);
}

/// Returns what two characters compose to, each folded, in UTF-8 as a little-endian number, or 0 if they do not
/// compose.
///
/// [`compose`] is slow, and texts have few different pairs, so its results are remembered.
#[inline(always)]
fn compose_known(letter: char, next: char) -> u32 {
    const PLACES: u32 = 12;
    const PAIR: u32 = 42;
    const KEY: u32 = 33;
    /// Each entry holds 30 bits of a pair, whose other 12 determine its place; a bit that marks it as used; and what
    /// the pair composes to.
    static KNOWN: [AtomicU64; 1 << PLACES] = [const { AtomicU64::new(0) }; 1 << PLACES];
    // There are many syllables, and they are composed by arithmetic.
    if matches!(next, '\u{1161}'..='\u{11c2}') {
        return compose_syllable(letter.into(), next.into()).unwrap_or(0);
    }
    let pair = u64::from(letter) << 21 | u64::from(next);
    // Odd, so that different pairs stay different.
    let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << PAIR) - 1);
    let place = &KNOWN[(mixed >> (PAIR - PLACES)) as usize];
    let key = mixed << (64 - PAIR + PLACES) | 1 << KEY;
    let known = place.load(Ordering::Relaxed);
    if known >> KEY << KEY == key {
        return known as u32;
    }
    let composed = compose(letter, next).map_or(0, encode);
    place.store(key | u64::from(composed), Ordering::Relaxed);
    composed
}

/// Returns the Hangul syllable of a leading consonant and a vowel, or of such a syllable and a final consonant, in UTF-8
/// as a little-endian number (Unicode, section 3.12).
#[inline(always)]
pub(super) fn compose_syllable(letter: u32, next: u32) -> Option<u32> {
    const LEADING: u32 = 0x1100;
    const VOWEL: u32 = 0x1161;
    const FINAL: u32 = 0x11a7;
    const SYLLABLE: u32 = 0xac00;
    const VOWELS: u32 = 21;
    const FINALS: u32 = 28;
    let (leading, syllable) = (letter.wrapping_sub(LEADING), letter.wrapping_sub(SYLLABLE));
    let (vowel, last) = (next.wrapping_sub(VOWEL), next.wrapping_sub(FINAL));
    let composed = if leading < 19 && vowel < VOWELS {
        SYLLABLE + (leading * VOWELS + vowel) * FINALS
    } else if syllable < 19 * VOWELS * FINALS && syllable.is_multiple_of(FINALS) && (1..FINALS).contains(&last) {
        letter + last
    } else {
        return None;
    };
    Some(0x80_80e0 | composed >> 12 | (composed >> 6 & 0x3f) << 8 | (composed & 0x3f) << 16)
}
