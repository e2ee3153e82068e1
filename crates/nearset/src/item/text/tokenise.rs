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
    table::entry,
    words::{Class, normalise},
};
use crate::simd::text::{CHUNK, EDGES, is_span_byte, span_edges};

/// What becomes of the words.
pub(super) trait Sink {
    /// A word of 1 to 16 bytes as a little-endian number. Of a script without spaces if `lone`.
    fn short(&mut self, padded: u128, length: usize, lone: bool);
    /// A word of any length.
    fn long(&mut self, word: &[u8], lone: bool);
    /// About how many more words will follow at most.
    fn reserve(&mut self, words: usize);
}

/// Words of up to so many bytes need no allocation.
const BUFFER: usize = 64;

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const LOWER_CASE: u64 = 0x2020_2020_2020_2020;

/// Keeps the first `length` bytes.
pub(super) const MASKS: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut length = 1;
    while length <= 16 {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
};

/// Hands every word of the text to the sink, in order.
#[inline]
pub(super) fn tokenise(text: &str, sink: &mut impl Sink) {
    let bytes = text.as_bytes();
    let mut edges = [0u16; EDGES];
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + CHUNK);
        let mut count = span_edges(&bytes[start..end], &mut edges);
        let mut next = end;
        if count % 2 == 1 {
            // The last span reaches the chunk's end.
            let open = start + edges[count - 1] as usize;
            if end == bytes.len() {
                edges[count] = (end - start) as u16;
                count += 1;
            } else {
                count -= 1;
                next = open;
                if open == start {
                    let rest = bytes[end..].iter().position(|&byte| !is_span_byte(byte));
                    next = rest.map_or(bytes.len(), |rest| end + rest);
                    span(&text[start..next], sink);
                }
            }
        }
        let (pairs, _) = edges[..count].as_chunks::<2>();
        sink.reserve(pairs.len());
        for &[from, to] in pairs {
            let (from, length) = (start + from as usize, (to - from) as usize);
            match short_ascii(bytes, from, length) {
                Some(padded) => sink.short(padded, length, false),
                None => span(&text[from..from + length], sink),
            }
        }
        start = next;
    }
}

/// The span in lower case and zero-padded, if it is short, ASCII, and not at the text's very end.
#[inline(always)]
fn short_ascii(bytes: &[u8], from: usize, length: usize) -> Option<u128> {
    let [low_mask, high_mask] = *MASKS.get(length)?;
    let (halves, _) = bytes.get(from..from + 16)?.as_chunks::<8>();
    let low = u64::from_le_bytes(halves[0]) & low_mask;
    let high = u64::from_le_bytes(halves[1]) & high_mask;
    if (low | high) & HIGH_BITS != 0 {
        return None;
    }
    let (low, high) = (low | LOWER_CASE & low_mask, high | LOWER_CASE & high_mask);
    Some(u128::from(low) | u128::from(high) << 64)
}

/// Hands the words of one span to the sink.
#[cold]
#[inline(never)]
fn span(span: &str, sink: &mut impl Sink) {
    if span.is_ascii() {
        let lower = span.to_ascii_lowercase();
        match short_ascii_padded(lower.as_bytes()) {
            Some(padded) => sink.short(padded, span.len(), false),
            None => sink.long(lower.as_bytes(), false),
        }
        return;
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
        word.plain &= entry.plain
            && word.length + 4 <= BUFFER
            && (entry.combining_class == 0 || entry.combining_class >= word.combining_class);
        if word.plain {
            word.form[word.length..word.length + 4].copy_from_slice(&entry.form);
            word.length += entry.length as usize;
            word.combining_class = entry.combining_class;
        }
    }
    word.finish(span, sink);
}

fn short_ascii_padded(bytes: &[u8]) -> Option<u128> {
    let mut padded = [0; 16];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u128::from_le_bytes(padded))
}

/// A word in the making.
struct Word {
    /// The characters' forms, joined, while all are plain.
    form: [u8; BUFFER],
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
        Word { form: [0; BUFFER], length: 0, start: 0, lone: false, plain: true, combining_class: 0 }
    }
}

impl Word {
    fn is_empty(&self) -> bool {
        self.length == 0 && self.plain
    }

    /// Hands the word over, if there is one, and starts afresh. `span` ends where the word does.
    #[inline]
    fn finish(&mut self, span: &str, sink: &mut impl Sink) {
        if self.is_empty() {
            return;
        }
        if !self.plain {
            sink.long(normalise(&span[self.start..]).as_bytes(), self.lone);
        } else if self.length <= 16 {
            let [low_mask, high_mask] = MASKS[self.length];
            let (halves, _) = self.form.as_chunks::<8>();
            let low = u64::from_le_bytes(halves[0]) & low_mask;
            let high = u64::from_le_bytes(halves[1]) & high_mask;
            sink.short(u128::from(low) | u128::from(high) << 64, self.length, self.lone);
        } else {
            sink.long(&self.form[..self.length], self.lone);
        }
        self.length = 0;
        self.plain = true;
        self.combining_class = 0;
    }
}
