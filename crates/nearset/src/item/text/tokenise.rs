//! Text to words at speed: the rules of `words`, worked through 2 KiB at a time.
//!
//! Claim: gives exactly the words of the definition, whatever the SIMD level.
//!
//! A kernel cuts the text into *spans*, maximal runs of ASCII letters, digits and bytes outside ASCII. An ASCII byte that
//! is in no span separates whatever stands around it, so spans can be treated one by one:
//! - ASCII of up to 16 bytes, which is nearly every word of most languages' text: two loads and a mask. Lower case is
//!   `byte | 0x20`, which leaves digits as they are.
//! - Longer ASCII: a copy in lower case.
//! - Anything else: character by character through `table`, and by `segment` where characters of a word depend on each other.

use unicode_normalization::char::compose;

use super::{
    segment::Segment,
    table::{Entry, LONGEST_FORM, entry},
    words::Class,
};
use crate::simd::text::{CHUNK, Span, Spans, is_short_ascii, is_span_byte};

/// What becomes of the words.
pub(super) trait Sink {
    /// Takes words from the first of the spans on, up to one that is longer than 16 bytes or not ASCII, or fewer. Returns how
    /// many it has taken.
    fn short_ascii(&mut self, bytes: &[u8], spans: &[Span]) -> usize;
    /// A word of 1 to 16 bytes, as a little-endian number. Of a script without spaces if `lone`.
    fn short(&mut self, padded: u128, length: usize, lone: bool);
    /// A word of any length.
    fn long(&mut self, word: &[u8], lone: bool);
    /// Called from time to time, between words.
    fn pause(&mut self);
}

/// Hands every word of the text to the sink, in order.
#[inline]
pub(super) fn tokenise(text: &str, sink: &mut impl Sink) {
    let bytes = text.as_bytes();
    let mut room = Spans::new();
    let mut forms = Forms::default();
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + CHUNK);
        let (mut spans, open) = room.find(&bytes[start..end], end == bytes.len());
        while !spans.is_empty() {
            spans = &spans[sink.short_ascii(&bytes[start..], spans)..];
            // Where one span is not short ASCII, the next few may be so neither.
            while let Some((&[from, to], others)) = spans.split_first() {
                let (from, to) = (start + from as usize, start + to as usize);
                span(&text[from..to], &mut forms, sink);
                spans = others;
                if others.first().is_none_or(|&span| is_short_ascii(&bytes[start..], span)) {
                    break;
                }
            }
        }
        sink.pause();
        start = match open {
            None => end,
            // The next chunk begins with the span that goes on there, unless it fills this one.
            Some(from) if from > 0 => start + from as usize,
            Some(_) => {
                let rest = bytes[end..].iter().position(|&byte| !is_span_byte(byte));
                let to = rest.map_or(bytes.len(), |rest| end + rest);
                span(&text[start..to], &mut forms, sink);
                to
            }
        };
    }
}

/// Hands the words of one span to the sink.
#[inline(never)]
fn span(span: &str, forms: &mut Forms, sink: &mut impl Sink) {
    if span.as_bytes()[0].is_ascii() && span.is_ascii() {
        return sink.long(forms.lower_case(span), false);
    }
    let (mut word, mut chars) = (Word::default(), span.char_indices());
    // Most spans are one word, of letters that all begin afresh.
    let room = forms.first();
    let mut next = chars.next();
    while let Some((at, c)) = next {
        let entry = entry(c);
        if entry.class != Class::Letter || !entry.begins_afresh || word.length + LONGEST_FORM > room.len() {
            break;
        }
        if word.length < 16 {
            word.padded |= u128::from(u64::from_le_bytes(entry.form)) << (8 * word.length);
        }
        room[word.length..word.length + LONGEST_FORM].copy_from_slice(&entry.form);
        word.segment = (at, word.length);
        word.length += entry.length as usize;
        (word.letter, word.last_class) = (entry.one, entry.last_class);
        next = chars.next();
    }
    word.letter_at = word.segment.1;
    while let Some((at, c)) = next {
        next = chars.next();
        let entry = entry(c);
        match entry.class {
            Class::Ignorable => continue,
            Class::Separator => {
                word.finish(span, at, forms, sink);
                continue;
            }
            Class::Mark if word.is_empty() => continue,
            Class::Mark => {}
            Class::Letter if !word.lone && !word.is_empty() => {}
            Class::Letter | Class::Lone => {
                word.finish(span, at, forms, sink);
                word.lone = entry.class == Class::Lone;
            }
        }
        word.push(entry, span, at, forms);
    }
    word.finish(span, span.len(), forms, sink);
}

/// A word in the making. Its form is elsewhere, so that this stays in registers.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The form, or its first 16 bytes, as a little-endian number. Means nothing once more than 16 have been worked out.
    padded: u128,
    length: usize,
    lone: bool,
    /// Where the word last began afresh: in the span, and in the form.
    segment: (usize, usize),
    /// The last segment has to be worked out as a whole, when its end is known. Its form so far means nothing.
    open: bool,
    /// The combining class of the last part.
    last_class: u8,
    /// The last letter, where all behind it in the form are marks that did not compose with it.
    letter: Option<char>,
    /// Where in the form it is.
    letter_at: usize,
    /// The combining class of the last of those marks.
    mark_class: u8,
}

impl Word {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.length == 0 && !self.open
    }

    /// Adds the character that is at `at` in the span.
    #[inline(always)]
    fn push(&mut self, entry: &Entry, span: &str, at: usize, forms: &mut Forms) {
        if entry.begins_afresh || self.is_empty() {
            if self.open {
                self.close(span, at, forms);
            }
            self.segment = (at, self.length);
            self.open = entry.length == 0;
            (self.letter, self.letter_at) = (entry.one, self.length);
        } else if self.open || entry.first_class != 0 && entry.first_class < self.last_class {
            self.open = true;
        } else if entry.joins {
            self.letter = self.letter.filter(|_| entry.simple && entry.class == Class::Mark);
            self.mark_class = entry.last_class;
        } else {
            let composed;
            (*self, composed) = self.composed(entry, forms);
            if composed {
                return;
            }
        }
        if !self.open {
            self.append(entry.form, entry.length, forms);
            self.last_class = entry.last_class;
        }
    }

    #[inline(always)]
    fn append(&mut self, form: [u8; LONGEST_FORM], length: u8, forms: &mut Forms) {
        if self.length < 16 {
            self.padded |= u128::from(u64::from_le_bytes(form)) << (8 * self.length);
        }
        forms.put(self.length, form);
        self.length += length as usize;
    }

    /// The word whose last letter is composed with a character that is in order, if the two compose, or whose segment is open if
    /// that is not so easy; and whether they have composed. If neither, the character is to be appended as it is. By value
    /// and apart, so that what calls it can keep words in registers.
    #[inline(never)]
    fn composed(mut self, entry: &Entry, forms: &mut Forms) -> (Self, bool) {
        let (Some(letter), Some(form), true) = (self.letter, entry.one, entry.simple) else {
            self.open = true;
            return (self, false);
        };
        let class = entry.first_class;
        let marks_between = self.length > self.letter_at + letter.len_utf8();
        // Nothing composes across a mark of an equal or higher class (UAX 15, D117).
        let composed = if marks_between && self.mark_class >= class { None } else { compose(letter, form) };
        if let Some(composed) = composed {
            if marks_between {
                self.open = true;
                return (self, false);
            }
            let mut form = [0; LONGEST_FORM];
            let length = composed.encode_utf8(&mut form).len() as u8;
            self.length = self.letter_at;
            if self.length < 16 {
                self.padded &= (1 << (8 * self.length)) - 1;
            }
            self.append(form, length, forms);
            self.letter = Some(composed);
            self.last_class = class;
            return (self, true);
        }
        self.mark_class = class;
        if class == 0 {
            (self.letter, self.letter_at) = (Some(form), self.length);
        }
        (self, false)
    }

    /// Works out the segment that ends at `at` in the span.
    #[inline(always)]
    fn close(&mut self, span: &str, at: usize, forms: &mut Forms) {
        let (start, length) = self.segment;
        (self.padded, self.length) = forms.put_normalised(length, &span[start..at]);
        self.open = false;
    }

    /// Hands the word over, if there is one, and starts afresh. It ends at `at` in the span.
    #[inline(always)]
    fn finish(&mut self, span: &str, at: usize, forms: &mut Forms, sink: &mut impl Sink) {
        if self.is_empty() {
            return;
        }
        if self.open {
            self.close(span, at, forms);
        }
        if self.length <= 16 {
            sink.short(self.padded, self.length, self.lone);
        } else {
            sink.long(&forms.bytes[..self.length], self.lone);
        }
        self.padded = 0;
        self.length = 0;
        self.last_class = 0;
    }
}

/// Room for the form of one word, and to work it out.
#[derive(Default)]
struct Forms {
    bytes: Vec<u8>,
    segment: Segment,
}

impl Forms {
    /// Room enough for most words.
    #[inline(always)]
    fn first(&mut self) -> &mut [u8; 64] {
        if self.bytes.len() < 64 {
            self.bytes.resize(64, 0);
        }
        self.bytes.first_chunk_mut().expect("there are as many")
    }

    #[inline(always)]
    fn put(&mut self, at: usize, form: [u8; LONGEST_FORM]) {
        if at + LONGEST_FORM > self.bytes.len() {
            self.grow(at + LONGEST_FORM);
        }
        self.bytes[at..at + LONGEST_FORM].copy_from_slice(&form);
    }

    /// Makes room for so many bytes, and as many again, so that long words do not make it over and over.
    #[cold]
    fn grow(&mut self, length: usize) {
        self.bytes.resize((2 * length).max(64), 0);
    }

    /// Writes the form of a segment. Returns the word's form as a number, if it is short, and its length.
    #[inline(never)]
    fn put_normalised(&mut self, at: usize, segment: &str) -> (u128, usize) {
        let form = self.segment.normalised(segment);
        let end = at + form.len();
        if end > self.bytes.len() {
            self.bytes.resize(2 * end, 0);
        }
        self.bytes[at..end].copy_from_slice(form);
        if end > 16 {
            return (0, end);
        }
        let mut short = [0; 16];
        short[..end].copy_from_slice(&self.bytes[..end]);
        (u128::from_le_bytes(short), end)
    }

    /// A word of ASCII in lower case.
    fn lower_case(&mut self, word: &str) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(word.as_bytes());
        self.bytes.make_ascii_lowercase();
        &self.bytes
    }
}
