//! Text to words at speed: the rules of `words`, worked through 2 KiB at a time.
//!
//! Claim: gives exactly the words of the definition, whatever the SIMD level.
//!
//! A kernel cuts the text into *spans*, maximal runs of ASCII letters, digits and bytes outside ASCII. An ASCII byte that
//! is in no span separates whatever stands around it, so spans can be treated one by one:
//! - ASCII of up to 16 bytes, which is nearly every word of most languages' text: two loads and a mask. Lower case is
//!   `byte | 0x20`, which leaves digits as they are.
//! - Longer ASCII: a copy in lower case.
//! - Anything else: character by character through `table`. A word with a character that is not plain is handed to the
//!   definition.

use super::{
    table::{Entry, entry},
    words::{Class, normalise},
};
use crate::simd::text::{CHUNK, Span, Spans, is_span_byte};

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

/// Words of up to so many bytes need no allocation.
const BUFFER: usize = 64;

/// Hands every word of the text to the sink, in order.
#[inline]
pub(super) fn tokenise(text: &str, sink: &mut impl Sink) {
    let bytes = text.as_bytes();
    let mut room = Spans::new();
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + CHUNK);
        let (mut spans, open) = room.find(&bytes[start..end], end == bytes.len());
        while !spans.is_empty() {
            spans = &spans[sink.short_ascii(&bytes[start..], spans)..];
            // Where one span is not short ASCII, the next few may begin outside ASCII too.
            while let Some((&[from, to], others)) = spans.split_first() {
                let (from, to) = (start + from as usize, start + to as usize);
                span(&text[from..to], sink);
                spans = others;
                if others.first().is_none_or(|&[next, _]| bytes[start + next as usize].is_ascii()) {
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
                span(&text[start..to], sink);
                to
            }
        };
    }
}

/// Hands the words of one span to the sink.
#[inline(never)]
fn span(span: &str, sink: &mut impl Sink) {
    if span.as_bytes()[0].is_ascii() && span.is_ascii() {
        return sink.long(span.to_ascii_lowercase().as_bytes(), false);
    }
    let mut word = Word::default();
    for (at, c) in span.char_indices() {
        let entry = entry(c);
        match entry.class {
            Class::Ignorable => continue,
            Class::Separator => {
                word.finish(&span[..at], sink);
                continue;
            }
            Class::Mark if word.is_empty() => continue,
            Class::Mark => {}
            Class::Letter if !word.lone && !word.is_empty() => {}
            Class::Letter | Class::Lone => {
                word.finish(&span[..at], sink);
                word.start = at;
                word.lone = entry.class == Class::Lone;
            }
        }
        word.push(entry);
    }
    word.finish(span, sink);
}

/// A word in the making.
struct Word {
    /// The characters' forms, joined, while all are plain.
    form: [u8; BUFFER],
    /// The first 16 bytes of `form`, as a little-endian number.
    padded: u128,
    length: usize,
    /// Where in the span it starts.
    start: usize,
    lone: bool,
    plain: bool,
    /// Of the last character.
    combining_class: u8,
}

impl Default for Word {
    fn default() -> Self {
        Word { form: [0; BUFFER], padded: 0, length: 0, start: 0, lone: false, plain: true, combining_class: 0 }
    }
}

impl Word {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.length == 0 && self.plain
    }

    #[inline(always)]
    fn push(&mut self, entry: &Entry) {
        let in_order = entry.combining_class == 0 || entry.combining_class >= self.combining_class;
        if !(self.plain && entry.plain && in_order && self.length + 4 <= BUFFER) {
            self.plain = false;
            return;
        }
        if self.length < 16 {
            self.padded |= u128::from(u32::from_le_bytes(entry.form)) << (8 * self.length);
        }
        self.form[self.length..self.length + 4].copy_from_slice(&entry.form);
        self.length += entry.length as usize;
        self.combining_class = entry.combining_class;
    }

    /// Hands the word over, if there is one, and starts afresh. `span` ends where the word does.
    #[inline(always)]
    fn finish(&mut self, span: &str, sink: &mut impl Sink) {
        if self.is_empty() {
            return;
        }
        if !self.plain {
            sink.long(normalise(&span[self.start..]).as_bytes(), self.lone);
        } else if self.length <= 16 {
            sink.short(self.padded, self.length, self.lone);
        } else {
            sink.long(&self.form[..self.length], self.lone);
        }
        self.padded = 0;
        self.length = 0;
        self.plain = true;
        self.combining_class = 0;
    }
}
