//! Fast splitting of text into words: the rules of `words`, applied to 2 KiB at a time.
//!
//! Claim: the words are exactly those of the definition, whatever the SIMD level.
//!
//! A kernel cuts the text into *spans*, maximal runs of ASCII letters, digits and bytes outside ASCII. An ASCII byte
//! outside all spans separates whatever stands around it, so spans can be processed one by one:
//! - ASCII of up to 16 bytes, which is nearly every word of most languages' text: two loads and a mask. Lower case is
//!   `byte | 0x20`, which leaves digits unchanged.
//! - Longer ASCII: a copy in lower case.
//! - Anything else: character by character through `table`, and by `segment` where characters of a word depend on each
//!   other.

use std::{cell::Cell, str::Chars};

use super::{
    segment::{Form, Segment, compose_known},
    table::{Entry, Joining, Kind, decode, encode, encoded_length, page},
};
use crate::simd::text::{CHUNK, Span, Spans, is_short_ascii, is_span_byte};

/// A receiver of words.
pub(super) trait Sink {
    /// Takes words from the first of the spans on, at most up to one that is longer than 16 bytes or not ASCII. Returns
    /// how many it has taken.
    fn short_ascii(&mut self, bytes: &[u8], spans: &[Span]) -> usize;
    /// Takes a word of 1 to 16 bytes, as a little-endian number. It belongs to a script without spaces if `lone`.
    fn short(&mut self, padded: u128, length: usize, lone: bool);
    /// Takes a word of any length.
    fn long(&mut self, word: &[u8], lone: bool);
    /// Called from time to time, between words.
    fn pause(&mut self);
}

/// Hands every word of the text to the sink, in order.
#[inline]
pub(super) fn tokenise(text: &str, sink: &mut impl Sink) {
    let bytes = text.as_bytes();
    let mut room = Spans::new();
    let mut forms = FORMS.take();
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + CHUNK);
        let (mut spans, open) = room.find(&bytes[start..end], end == bytes.len());
        while !spans.is_empty() {
            spans = &spans[sink.short_ascii(&bytes[start..], spans)..];
            spans = &spans[other_spans(&text[start..], spans, &mut forms, sink)..];
        }
        sink.pause();
        start = match open {
            None => end,
            // The next chunk begins with the span that continues there, unless it fills this one.
            Some(from) if from > 0 => start + from as usize,
            Some(_) => {
                let rest = bytes[end..].iter().position(|&byte| !is_span_byte(byte));
                let to = rest.map_or(bytes.len(), |rest| end + rest);
                long_span(&text[start..to], &mut forms, sink);
                to
            }
        };
    }
    if forms.bytes.capacity() + forms.segment.capacity() <= MOST_KEPT {
        FORMS.set(forms);
    }
}

thread_local! {
    /// Kept from text to text: touching new memory costs more than computing a long word in it.
    static FORMS: Cell<Forms> = const { Cell::new(Forms::new()) };
}

/// The maximum number of bytes that each thread keeps.
const MOST_KEPT: usize = 16 << 20;

/// Hands to the sink the words of the first span, if there is one, and of those after it up to one that is short and
/// ASCII. Returns the number of these spans.
#[inline(never)]
fn other_spans(text: &str, spans: &[Span], forms: &mut Forms, sink: &mut impl Sink) -> usize {
    for (done, &[from, to]) in spans.iter().enumerate() {
        if done > 0 && is_short_ascii(text.as_bytes(), [from, to]) {
            return done;
        }
        span(&text[from as usize..to as usize], forms, sink);
    }
    spans.len()
}

/// Hands the words of one span to the sink.
#[inline(always)]
fn span(span: &str, forms: &mut Forms, sink: &mut impl Sink) {
    if span.as_bytes()[0].is_ascii() && span.is_ascii() {
        return sink.long(forms.lower_case(span), false);
    }
    let (mut word, mut chars) = (Word::default(), span.chars());
    let mut next = chars.next();
    while let Some(c) = next {
        let page = page(c);
        let entry = page.entry(c);
        match entry.kind {
            Kind::Fresh => {
                if word.lone {
                    word.finish(forms, sink);
                }
                word.begin_afresh(c, entry);
                word.append(entry.form, entry.length as usize, &mut forms.bytes);
            }
            Kind::FreshLone => {
                word.finish(forms, sink);
                word.lone = true;
                word.begin_afresh(c, entry);
                word.append(entry.form, entry.length as usize, &mut forms.bytes);
            }
            Kind::FreshLong => {
                if word.lone {
                    word.finish(forms, sink);
                }
                word.begin_afresh(c, entry);
                word.append(entry.form, 4, &mut forms.bytes);
                word.append(page.rest_of_form(c), entry.length as usize - 4, &mut forms.bytes);
            }
            Kind::Mark if word.length == 0 => {}
            Kind::Mark | Kind::Letter | Kind::Lone => {
                if entry.kind == Kind::Lone || entry.kind == Kind::Letter && word.lone {
                    word.finish(forms, sink);
                    word.lone = entry.kind == Kind::Lone;
                }
                if !word.join(c, entry, forms) {
                    next = word.add_segment(c, &mut chars, forms);
                    continue;
                }
            }
            Kind::Ignorable => {}
            Kind::Separator => word.finish(forms, sink),
        }
        next = chars.next();
    }
    word.finish(forms, sink);
}

#[inline(never)]
fn long_span(text: &str, forms: &mut Forms, sink: &mut impl Sink) {
    span(text, forms, sink);
}

/// A word under construction, small enough to stay in registers.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The form, or its first 16 bytes, as a little-endian number.
    padded: u128,
    length: usize,
    lone: bool,
    /// The last character that began afresh, composed with the marks after it, and its position in the form.
    fresh: char,
    fresh_at: usize,
    /// The combining class of the last part, or [`Entry::SEVERAL`] if more than one character began afresh together.
    last_class: u8,
    /// Whether marks that do not compose with the last character follow it in the form.
    marked: bool,
}

impl Word {
    #[inline(always)]
    fn begin_afresh(&mut self, c: char, entry: &Entry) {
        (self.fresh, self.fresh_at) = (c, self.length);
        (self.last_class, self.marked) = (entry.last_class, false);
    }

    /// Appends up to 4 bytes, given as a little-endian number.
    #[inline(always)]
    fn append(&mut self, form: u32, length: usize, bytes: &mut Vec<u8>) {
        let end = self.length + length;
        if self.length < 16 {
            self.padded |= u128::from(form) << (8 * self.length);
        }
        if end > 16 {
            if self.length <= 16 {
                put(bytes, 0, self.padded.to_le_bytes());
            }
            put(bytes, self.length, form.to_le_bytes());
        }
        self.length = end;
    }

    /// Appends a character that does not begin afresh, if it is in order and composes with the character before it or
    /// with none. Otherwise does nothing.
    #[inline(always)]
    fn join(&mut self, c: char, entry: &Entry, forms: &mut Forms) -> bool {
        let order = entry.last_class;
        let in_order = order >= self.last_class || order == 0 && self.last_class != Entry::SEVERAL;
        if !in_order || entry.joining == Joining::Depends || self.length == 0 {
            return false;
        }
        // Nothing composes across a mark of an equal or higher class (UAX 15, D117).
        if entry.joining == Joining::Composes && !(self.marked && self.last_class >= order) {
            let composed = compose_known(self.fresh, c);
            if composed != 0 && self.marked {
                return false;
            }
            if composed != 0 {
                self.truncate(self.fresh_at);
                self.append(composed, encoded_length(composed), &mut forms.bytes);
                (self.fresh, self.last_class) = (decode(composed), order);
                return true;
            }
        }
        if order == 0 {
            (self.fresh, self.fresh_at) = (c, self.length);
        }
        (self.last_class, self.marked) = (order, order != 0);
        self.append(entry.form, entry.length as usize, &mut forms.bytes);
        true
    }

    /// Appends a character that does not begin afresh and all that belong to it. Returns the next one.
    #[inline(always)]
    fn add_segment(&mut self, c: char, chars: &mut Chars<'_>, Forms { bytes, segment }: &mut Forms) -> Option<char> {
        let (form, next) = if self.length > 0 && self.marked {
            let short = self.padded.to_le_bytes();
            let form = if self.length <= 16 { &short[..self.length] } else { &bytes[..self.length] };
            segment.after_form(&form[self.fresh_at..], c, chars, self.lone)
        } else {
            segment.after((self.length > 0).then_some(self.fresh), c, chars, self.lone)
        };
        if self.length > 0 {
            self.truncate(self.fresh_at);
        }
        match form {
            Form::Short(form) => {
                self.append(form as u32, encoded_length(form as u32), bytes);
                self.append((form >> 32) as u32, encoded_length((form >> 32) as u32), bytes);
            }
            Form::Long(parts) => {
                for part in parts {
                    let form = encode(part.char());
                    self.append(form, encoded_length(form), bytes);
                }
            }
        }
        next
    }

    #[inline(always)]
    fn truncate(&mut self, length: usize) {
        self.length = length;
        if length < 16 {
            self.padded &= (1 << (8 * length)) - 1;
        }
    }

    /// Hands the word over, if there is one, and starts a new one.
    #[inline(always)]
    fn finish(&mut self, forms: &Forms, sink: &mut impl Sink) {
        match self.length {
            0 => {}
            length @ 1..=16 => sink.short(self.padded, length, self.lone),
            length => sink.long(&forms.bytes[..length], self.lone),
        }
        *self = Word::default();
    }
}

/// Scratch space for the form of one word and for computing it.
struct Forms {
    bytes: Vec<u8>,
    segment: Segment,
}

impl Default for Forms {
    fn default() -> Self {
        Self::new()
    }
}

impl Forms {
    const fn new() -> Self {
        Self { bytes: Vec::new(), segment: Segment::new() }
    }

    /// Returns an ASCII word in lower case.
    fn lower_case(&mut self, word: &str) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(word.as_bytes());
        self.bytes.make_ascii_lowercase();
        &self.bytes
    }
}

/// Writes bytes, growing the vector if there is no room for them.
#[inline(always)]
fn put<const N: usize>(bytes: &mut Vec<u8>, at: usize, put: [u8; N]) {
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
