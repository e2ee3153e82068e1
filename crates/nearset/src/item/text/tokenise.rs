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

use std::{cell::Cell, str::Chars};

use super::{
    segment::{Form, Segment, compose_known},
    table::{Entry, Joining, Kind, decode, encode, encoded_length, page},
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
            // The next chunk begins with the span that goes on there, unless it fills this one.
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
    /// Kept from text to text: memory that is met for the first time costs more than a long word that is worked out in it.
    static FORMS: Cell<Forms> = const { Cell::new(Forms::new()) };
}

/// Bytes that each thread keeps at most.
const MOST_KEPT: usize = 16 << 20;

/// Hands the words of the first span to the sink, if there is one, and of those behind it up to one that is short and ASCII. Returns
/// how many spans those are.
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

/// A word in the making. Small, so that it stays in registers.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The form, or its first 16 bytes, as a little-endian number.
    padded: u128,
    length: usize,
    lone: bool,
    /// The last character that began afresh, composed with marks behind it, and where in the form it is.
    fresh: char,
    fresh_at: usize,
    /// The combining class of the last part; [`Entry::SEVERAL`] if more than one character began afresh together.
    last_class: u8,
    /// Marks follow the last character in the form, none of which composes with it.
    marked: bool,
}

impl Word {
    #[inline(always)]
    fn begin_afresh(&mut self, c: char, entry: &Entry) {
        (self.fresh, self.fresh_at) = (c, self.length);
        (self.last_class, self.marked) = (entry.last_class, false);
    }

    /// Adds up to 4 bytes, given as a little-endian number.
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

    /// Adds a character that does not begin afresh, if it is in order and composes with the character before it or with none.
    /// If not, nothing is done.
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

    /// Adds a character that does not begin afresh and all of those that belong to it. Returns the next one.
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

    /// Hands the word over, if there is one, and starts anew.
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

/// Room for the form of one word, and to work it out.
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

    /// A word of ASCII in lower case.
    fn lower_case(&mut self, word: &str) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(word.as_bytes());
        self.bytes.make_ascii_lowercase();
        &self.bytes
    }
}

/// Writes bytes, where there may be room for them.
#[inline(always)]
fn put<const N: usize>(bytes: &mut Vec<u8>, at: usize, put: [u8; N]) {
    if at + N > bytes.len() {
        grow(bytes, at + N);
    }
    bytes[at..at + N].copy_from_slice(&put);
}

/// Makes room for so many bytes, and as many again, so that long words do not make it over and over.
#[cold]
fn grow(bytes: &mut Vec<u8>, length: usize) {
    bytes.resize((2 * length).max(64), 0);
}
