//! The form of characters that depend on each other: a letter with marks that compose with it or are not in order, and
//! Hangul syllables in parts.
//!
//! Claim: what [`Segment::normalised`] gives is `words::normalise` of the segment, in time that grows with its length alone,
//! however many marks are stacked on a letter; and nothing is allocated once there is room.
//!
//! The definition takes the text apart, orders, folds, orders and composes. Here one order does for both: folding keeps
//! combining classes, but for the iota subscript, which is a mark of the highest class before it and a letter after it. So
//! it comes last of the marks on its letter, and what follows it is no mark. Texts have few different segments, so the form of
//! a short one is remembered.

use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical};

use super::{
    table::{Entry, entry},
    words::{Class, fold},
};

/// A folded character that has no parts.
#[derive(Debug, Clone, Copy)]
struct Part {
    c: char,
    /// The combining class, by which it is put into order, of the character that it was before folding.
    order: u8,
    combining_class: u8,
    /// May compose with a letter before it.
    composes: bool,
}

/// Bytes of a segment whose form is remembered.
const SHORT: usize = 16;

/// The form of a short segment.
#[derive(Debug, Clone, Copy)]
struct Memory {
    /// The segment, then zeros; all zeros if there is none.
    segment: [u8; SHORT],
    form: [u8; SHORT],
    length: usize,
}

/// Room to work in.
#[derive(Debug, Default)]
pub(super) struct Segment {
    parts: Vec<Part>,
    in_order: bool,
    form: Vec<u8>,
    memories: Vec<Memory>,
}

impl Segment {
    /// The form of a segment that stands in a word, or is one.
    pub(super) fn normalised(&mut self, segment: &str) -> &[u8] {
        const MEMORIES: usize = 256;
        if segment.len() > SHORT {
            self.normalise(segment);
            return &self.form;
        }
        let mut padded = [0; SHORT];
        padded[..segment.len()].copy_from_slice(segment.as_bytes());
        let number = u128::from_le_bytes(padded);
        let hash = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ ((number >> 64) as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let place = (hash >> 40) as usize % MEMORIES;
        if self.memories.is_empty() {
            self.memories.resize(MEMORIES, Memory { segment: [0; SHORT], form: [0; SHORT], length: 0 });
        }
        if self.memories[place].segment != padded {
            self.normalise(segment);
            let length = self.form.len();
            if length > SHORT {
                return &self.form;
            }
            let mut memory = Memory { segment: padded, form: [0; SHORT], length };
            memory.form[..length].copy_from_slice(&self.form);
            self.memories[place] = memory;
        }
        let memory = &self.memories[place];
        &memory.form[..memory.length]
    }

    /// Works out the form.
    fn normalise(&mut self, segment: &str) {
        self.parts.clear();
        self.in_order = true;
        for c in segment.chars() {
            let entry = entry(c);
            match entry.one {
                Some(form) if entry.simple => self.push_simple(form, entry),
                _ if entry.class == Class::Ignorable => {}
                _ => decompose_canonical(c, |part| self.push_folded(part)),
            }
        }
        if !self.in_order {
            // Each letter with its marks; sorting is stable and, for few different classes, linear.
            let letters = self.parts.chunk_by_mut(|_, next| next.order != 0);
            letters.for_each(|letter| letter.sort_by_key(|part| part.order));
        }
        self.compose();
        self.form.clear();
        self.form.reserve(4 * self.parts.len());
        for part in &self.parts {
            self.form.extend_from_slice(part.c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Adds a part where it belongs, if that is only a few places back.
    #[inline(always)]
    fn push(&mut self, part: Part) {
        /// Longer ways back are left to a sort, else they would be quadratic.
        const MOST_STEPS: usize = 4;
        self.parts.push(part);
        if part.order == 0 || !self.in_order {
            return;
        }
        let mut at = self.parts.len() - 1;
        let least = at.saturating_sub(MOST_STEPS);
        while at > least && self.parts[at - 1].order > part.order {
            self.parts[at] = self.parts[at - 1];
            at -= 1;
        }
        self.parts[at] = part;
        self.in_order &= at == 0 || self.parts[at - 1].order <= part.order;
    }

    #[inline(always)]
    fn push_simple(&mut self, form: char, entry: &Entry) {
        let combining_class = if entry.class == Class::Mark { entry.first_class } else { 0 };
        self.push(Part { c: form, order: entry.first_class, combining_class, composes: entry.composes });
    }

    /// Adds a character that has no parts itself, but may have some when it is folded.
    fn push_folded(&mut self, c: char) {
        let entry = entry(c);
        if let Some(form) = entry.one.filter(|_| entry.simple) {
            return self.push_simple(form, entry);
        }
        let mut push = |folded| {
            decompose_canonical(folded, |part| {
                let combining_class = canonical_combining_class(part);
                let order = if entry.first_class == 0 { combining_class } else { entry.first_class };
                self.push(Part { c: part, order, combining_class, composes: true });
            });
        };
        // The form is what folding gives, composed; the table spares folding, which is slow.
        match entry.form() {
            "" => fold(c).for_each(push),
            form => form.chars().for_each(&mut push),
        }
    }

    /// Composes each letter with what follows it, where nothing of an equal or higher class stands between (UAX 15, D117).
    fn compose(&mut self) {
        let mut kept = 0;
        let mut letter: Option<usize> = None;
        for i in 0..self.parts.len() {
            let part = self.parts[i];
            if part.composes
                && let Some(letter) = letter
                && (letter + 1 == kept || self.parts[kept - 1].combining_class < part.combining_class)
                && let Some(composed) = compose(self.parts[letter].c, part.c)
            {
                self.parts[letter].c = composed;
                continue;
            }
            if part.combining_class == 0 {
                letter = Some(kept);
            }
            self.parts[kept] = part;
            kept += 1;
        }
        self.parts.truncate(kept);
    }
}
