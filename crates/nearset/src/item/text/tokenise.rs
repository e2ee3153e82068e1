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

use std::cell::Cell;

use super::{
    segment::{Segments, compose_syllable, put},
    table::{Kind, char_at, next_char, page},
};
use crate::simd::text::{CHUNK, Span, Spans, are_ascii, is_span_byte, padded_words};

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
    let mut forms = FORMS.take().unwrap_or_default();
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + CHUNK);
        let (mut spans, open) = room.find(&bytes[start..end], end == bytes.len());
        while !spans.is_empty() {
            spans = &spans[sink.short_ascii(&bytes[start..], spans)..];
            spans = &spans[other_spans(&bytes[start..], spans, &mut forms, sink)..];
        }
        sink.pause();
        start = match open {
            None => end,
            // The next chunk begins with the span that continues there, unless it fills this one.
            Some(from) if from > 0 => start + from as usize,
            Some(_) => {
                let to = end + span_bytes(&bytes[end..]);
                long_span(bytes, start, to, &mut forms, sink);
                to
            }
        };
    }
    if forms.bytes.capacity() + forms.segments.capacity() <= MOST_KEPT {
        FORMS.set(Some(forms));
    }
}

thread_local! {
    /// Kept from text to text: touching new memory costs more than computing a long word in it. Boxed, since moving it costs more than
    /// cutting a line of a few words.
    static FORMS: Cell<Option<Box<Forms>>> = const { Cell::new(None) };
}

/// Returns whether a character from U+0300 to U+0344 is next: the most common marks.
#[inline(always)]
fn is_common_mark(span: &[u8], next: usize) -> bool {
    // Without a branch between the two first bytes that they have.
    span.get(next..next + 2).is_some_and(|bytes| (0xcc80..0xcd85).contains(&u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// The maximum number of bytes that each thread keeps.
const MOST_KEPT: usize = 16 << 20;

/// Returns how many bytes continue a span.
fn span_bytes(bytes: &[u8]) -> usize {
    // Without a branch for each byte, so that vector instructions do it.
    let all = |block: &[u8]| block.iter().fold(true, |all, &byte| all & is_span_byte(byte));
    let whole = 64 * bytes.chunks(64).take_while(|block| all(block)).count();
    let rest = bytes.get(whole..).unwrap_or_default();
    bytes.len().min(whole + rest.iter().position(|&byte| !is_span_byte(byte)).unwrap_or(0))
}

/// Hands to the sink the words of the first span, if there is one, and of those after it up to one that is short and
/// ASCII. Returns the number of these spans.
#[inline(never)]
fn other_spans(text: &[u8], spans: &[Span], forms: &mut Forms, sink: &mut impl Sink) -> usize {
    for (done, &[from, to]) in spans.iter().enumerate() {
        let (from, to) = (usize::from(from), usize::from(to));
        if to - from > 16 {
            span(text, from, to, forms, sink);
            continue;
        }
        let bytes = padded_words(text, from, to - from, 0);
        if are_ascii(bytes) {
            if done > 0 {
                return done;
            }
            span(text, from, to, forms, sink);
        } else if to - from > Segments::LONGEST_KNOWN {
            characters(text, from, to, forms, sink);
        } else if let Some((form, length)) = forms.segments.word(bytes) {
            sink.short(form, length, false);
        } else if let Some((form, length)) = characters(text, from, to, forms, sink) {
            forms.segments.remember_word(bytes, form, length);
        }
    }
    spans.len()
}

#[inline(never)]
fn long_span(text: &[u8], from: usize, to: usize, forms: &mut Forms, sink: &mut impl Sink) {
    span(text, from, to, forms, sink);
}

/// Hands the words of one span to the sink.
#[inline(always)]
fn span(text: &[u8], from: usize, to: usize, forms: &mut Forms, sink: &mut impl Sink) {
    let span = &text[from..to];
    if span[0].is_ascii() && span.is_ascii() {
        sink.long(forms.lower_case(span), false);
    } else {
        characters(text, from, to, forms, sink);
    }
}

/// Hands the words of one span to the sink, character by character. Returns the form of the word and its length if
/// there is only one, which is not lone and has up to 16 bytes.
#[inline(never)]
fn characters(text: &[u8], from: usize, to: usize, forms: &mut Forms, sink: &mut impl Sink) -> Option<(u128, usize)> {
    let span = &text[..to];
    let (mut word, mut at) = (Word::default(), from);
    let words_before = forms.words;
    'span: loop {
        // Most characters.
        let (c, next) = loop {
            let Some((c, bytes, next)) = char_at(span, at) else { break 'span };
            let page = page(c);
            let info = page.info(c);
            if !info.is_fresh_letter() {
                break (c, next);
            }
            if word.lone | info.is_lone() {
                word.finish(forms, sink);
                word.lone = info.is_lone();
            }
            let form = if info.must_look_up() { page.form(c) } else { bytes.into() };
            word.begin_afresh(at);
            word.append(form, info.length(), &mut forms.bytes);
            at = next;
        };
        let page = page(c);
        let info = page.info(c);
        let kind = info.kind();
        match kind {
            Kind::FreshMark if word.length > 0 => {
                word.begin_afresh(at);
                word.append(page.form(c), info.length(), &mut forms.bytes);
            }
            Kind::Mark if word.length > 0 => {
                at = word.add_segment(text, next, to, forms);
                continue;
            }
            Kind::Letter | Kind::Lone => {
                if word.lone || kind == Kind::Lone {
                    word.finish(forms, sink);
                    word.lone = kind == Kind::Lone;
                }
                if word.length == 0 {
                    word.begin_afresh(at);
                } else if let Some(form) = compose_syllable(word.fresh(forms), c) {
                    word.length = word.fresh_at;
                    word.append(form.into(), 3, &mut forms.bytes);
                    at = next;
                    continue;
                }
                at = word.add_segment(text, next, to, forms);
                continue;
            }
            Kind::Separator => word.finish(forms, sink),
            Kind::Fresh | Kind::FreshLone | Kind::FreshMark | Kind::Mark | Kind::Ignorable => {}
        }
        at = next;
    }
    let last = word.padded(forms).map(|padded| (padded, word.length)).filter(|_| !word.lone);
    word.finish(forms, sink);
    last.filter(|_| forms.words == words_before.wrapping_add(1))
}

/// Returns whether what comes next belongs to the letter before, at least if a mark follows.
#[inline(always)]
fn is_marked(span: &[u8], next: usize) -> bool {
    match span.get(next) {
        Some(..0x80) | None => false,
        _ if is_common_mark(span, next) => true,
        _ => char_at(span, next).is_some_and(|(c, ..)| matches!(page(c).info(c).kind(), Kind::Mark | Kind::Ignorable)),
    }
}

/// A word under construction, small enough to stay in registers.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The length of the form so far.
    length: usize,
    lone: bool,
    /// The position of the last character that began afresh, in the form and in the text.
    fresh_at: usize,
    fresh_from: usize,
}

impl Word {
    #[inline(always)]
    fn begin_afresh(&mut self, from: usize) {
        (self.fresh_at, self.fresh_from) = (self.length, from);
    }

    /// Returns the first character of the form from where the last one began afresh.
    #[inline(always)]
    fn fresh(&self, forms: &Forms) -> u32 {
        next_char(&mut &forms.bytes[self.fresh_at..self.length]).map_or(0, |(c, _)| c)
    }

    /// Appends up to 8 bytes, given as a little-endian number.
    #[inline(always)]
    fn append(&mut self, form: u64, length: usize, bytes: &mut Vec<u8>) {
        // Zeros follow, because short words are read as 16 bytes.
        put(bytes, self.length, u128::from(form).to_le_bytes());
        self.length += length;
    }

    /// Replaces the form of the last character that began afresh by that of all from there up to `next`, and of those
    /// that follow and belong to them. Returns where what follows begins.
    #[inline(always)]
    fn add_segment(&mut self, text: &[u8], next: usize, to: usize, forms: &mut Forms) -> usize {
        let (end, next) = forms.put_segments(text, self.fresh_from, [next, to], self.fresh_at, self.lone);
        self.length = end;
        next
    }

    /// Returns the form as a little-endian number, if it has 1 to 16 bytes.
    #[inline(always)]
    fn padded(&self, forms: &Forms) -> Option<u128> {
        match self.length {
            1..=16 => forms.bytes.first_chunk().map(|&padded| u128::from_le_bytes(padded)),
            _ => None,
        }
    }

    /// Hands the word over, if there is one, and starts a new one.
    #[inline(always)]
    fn finish(&mut self, forms: &mut Forms, sink: &mut impl Sink) {
        forms.words = forms.words.wrapping_add(1);
        match self.padded(forms) {
            Some(padded) => sink.short(padded, self.length, self.lone),
            None if self.length > 0 => sink.long(&forms.bytes[..self.length], self.lone),
            None => {}
        }
        *self = Word::default();
    }
}

/// Scratch space for the form of one word and for computing it.
#[derive(Default)]
struct Forms {
    bytes: Vec<u8>,
    segments: Segments,
    /// The number of times that words were finished.
    words: usize,
}

impl Forms {
    /// Writes at `at` the form of the segment that begins at `text[from]` and goes on from `next` on, in a span that
    /// ends at `to`, and of segments that follow without a gap in the same word. Returns where the form ends, and where
    /// the next character begins.
    #[inline(never)]
    fn put_segments(
        &mut self,
        text: &[u8],
        mut from: usize,
        [mut next, to]: [usize; 2],
        mut at: usize,
        lone: bool,
    ) -> (usize, usize) {
        let span = &text[..to];
        loop {
            // Where the letter ends that begins afresh after the segment, if there is one.
            let letter_end = loop {
                match span.get(next) {
                    None => break None,
                    // Letters and digits.
                    Some(..0x80) => break Some(next + 1),
                    _ if is_common_mark(span, next) => next += 2,
                    _ => {
                        let Some((c, _, end)) = char_at(span, next) else { break None };
                        let info = page(c).info(c);
                        if info.is_fresh_letter() && !info.is_lone() {
                            break Some(end);
                        }
                        match info.kind() {
                            Kind::Mark | Kind::Ignorable => next = end,
                            Kind::Letter if !lone => next = end,
                            _ => break None,
                        }
                    }
                }
            };
            let end = self.segments.append(text, from, next, &mut self.bytes, at);
            match letter_end {
                Some(letter_end) if !lone && is_marked(span, letter_end) => (from, next, at) = (next, letter_end, end),
                _ => return (end, next),
            }
        }
    }

    /// Returns an ASCII word in lower case.
    fn lower_case(&mut self, word: &[u8]) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(word);
        self.bytes.make_ascii_lowercase();
        &self.bytes
    }
}
