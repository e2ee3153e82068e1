//! ASCII letters and digits with one to three of the common marks, without a branch that depends on which these are.
//!
//! Claim: [`Latin::form`] is what `segment` computes, or nothing.
//! Why: random marks can't be predicted. A segment with two of them took 85 ns, most of it for mispredicted branches.
//!
//! The marks are those from U+0300 to U+036F, except for the few that are not one mark in every form. Sorting three by
//! their classes takes three comparisons. What a letter composes to is a walk from letter to letter, a step per mark.

use std::sync::LazyLock;

use unicode_normalization::char::compose;

use super::table::{decode, encode, encoded_length, page};

/// The number of the last character before the marks.
const BEFORE: u32 = 0x2ff;

/// The most marks that some letter composes with, one of which stands for those that none composes with.
const COMPOSING: usize = 32;

/// A power of two, of which somewhat fewer are used.
const LETTERS: usize = 512;

/// The tables.
pub(super) struct Latin {
    /// Each mark by its last seven bits.
    marks: [Mark; 128],
    /// Letters as characters in UTF-8, little-endian, and what each composes to with each mark. The first 128 are ASCII.
    letters: Box<[Letter; LETTERS]>,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    /// The combining class, or 0 for a mark that is left to `segment`.
    class: u8,
    /// Which of the composing marks this is.
    composing: u8,
    form: u16,
}

#[derive(Debug, Clone, Copy)]
struct Letter {
    form: u32,
    length: u32,
    /// The place of what this letter and each mark compose to, or 0.
    composed: [u16; COMPOSING],
}

pub(super) static LATIN: LazyLock<Latin> = LazyLock::new(Latin::new);

impl Letter {
    fn new(form: u32) -> Self {
        Self { form, length: encoded_length(form) as u32, composed: [0; COMPOSING] }
    }
}

impl Latin {
    /// Bytes of the longest segment that has a form here.
    pub(super) const LONGEST: usize = 7;

    fn new() -> Self {
        let mut marks = [Mark::default(); 128];
        let mut composing = Vec::new();
        for (at, mark) in marks[..0x70].iter_mut().enumerate() {
            let c = BEFORE + 1 + at as u32;
            let (page, class) = (page(c), page(c).order(c));
            let Some(part) = page.only_part(c) else { continue };
            if class == 0 || page.info(c).length() != 2 {
                continue;
            }
            let mut index = 0;
            // The iota subscript folds to a letter, which composes with nothing before it.
            if part.composes() && !part.is_letter() {
                let known = composing.iter().position(|&known| known == part.char());
                index = 1 + known.unwrap_or(composing.len());
                composing.extend(known.is_none().then(|| part.char()));
            }
            *mark = Mark { class, composing: index as u8, form: page.form(c) as u16 };
        }
        assert!(composing.len() < COMPOSING, "{} marks compose", composing.len());

        let ascii = (0..128).map(|c| page(c).form(c) as u32);
        let mut letters: Vec<Letter> = ascii.map(Letter::new).collect();
        let mut at = 0;
        while at < letters.len() {
            let letter = decode(letters[at].form);
            for (index, &mark) in composing.iter().enumerate() {
                let Some(form) = compose(letter, mark).filter(|_| letter.is_alphabetic()).map(encode) else { continue };
                let place = letters.iter().position(|known| known.form == form).unwrap_or(letters.len());
                if place == letters.len() {
                    letters.push(Letter::new(form));
                }
                letters[at].composed[index + 1] = place as u16;
            }
            at += 1;
        }
        assert!(letters.len() <= LETTERS, "{} letters", letters.len());
        letters.resize(LETTERS, Letter::new(0));
        let letters = letters.into_boxed_slice().try_into().expect("as many letters");
        Self { marks, letters }
    }

    /// Returns the form of a segment, given as a little-endian number, and the form's length, if it is one of these.
    #[inline(always)]
    pub(super) fn form(&self, segment: u64, length: usize) -> Option<(u128, usize)> {
        // The first bytes of marks, and the bits of them that all marks share.
        let (leads, shared) = match length {
            3 => (0xcc00, 0xfe80),
            5 => (0xcc00_cc00, 0xfe00_fe80),
            Self::LONGEST => (0xcc00_cc00_cc00, 0xfe00_fe00_fe80),
            _ => return None,
        };
        if segment & shared != leads {
            return None;
        }
        // Keys and results are values, never arrays: those would go through memory.
        let key = |at: u32| {
            let pair = segment >> (16 * at + 8);
            let place = (pair & 1) << 6 | pair >> 8 & 0x3f;
            let mark = &self.marks[place as usize];
            // By class, then in the order of the text.
            u32::from(mark.class) << 16 | at << 8 | place as u32
        };
        let sort = |a: u32, b: u32| (a.min(b), a.max(b));
        let form = Form { letter: &self.letters[(segment & 0x7f) as usize], rest: 0, bits: 0, blocked: 0 };
        let (first, form) = match length {
            3 => (key(0), self.add(form, key(0))),
            5 => {
                let (a, b) = sort(key(0), key(1));
                (a, self.add(self.add(form, a), b))
            }
            _ => {
                let (a, b) = sort(key(0), key(1));
                let (b, c) = sort(b, key(2));
                let (a, b) = sort(a, b);
                (a, self.add(self.add(self.add(form, a), b), c))
            }
        };
        // Marks that are left to `segment` come first.
        if first >> 16 == 0 {
            return None;
        }
        let length = form.letter.length as usize;
        Some((u128::from(form.letter.form) | u128::from(form.rest) << (8 * length), length + form.bits as usize / 8))
    }

    #[inline(always)]
    fn add<'a>(&'a self, form: Form<'a>, key: u32) -> Form<'a> {
        let (class, mark) = (key >> 16, &self.marks[(key & 0x7f) as usize]);
        let composed = form.letter.composed[usize::from(mark.composing) % COMPOSING];
        // A mark composes unless one of its class stands between it and the letter (UAX 15, D115).
        let stays = (composed == 0) | (class == form.blocked);
        Form {
            letter: if stays { form.letter } else { &self.letters[usize::from(composed) % LETTERS] },
            rest: form.rest | if stays { u64::from(mark.form) << form.bits } else { 0 },
            bits: form.bits + if stays { 16 } else { 0 },
            blocked: if stays { class } else { form.blocked },
        }
    }
}

/// A form under construction.
struct Form<'a> {
    letter: &'a Letter,
    /// The marks that stay, in UTF-8, and how many bits they have.
    rest: u64,
    bits: u32,
    /// The class of the last of them, or 0.
    blocked: u32,
}

#[cfg(test)]
mod tests {
    use super::{super::words::normalise, *};
    use crate::{Seed, hash::Rng};

    /// All pairs of marks, and some triples, on letters of both cases and a digit.
    #[test]
    fn forms_are_as_defined() {
        let mark = |n: u64| char::from_u32(BEFORE + 1 + n as u32).expect("a character");
        let pairs = (0..0x70).flat_map(|a| (0..0x70).map(move |b| vec![a, b]));
        let mut rng = Rng::new(Seed::new(1));
        let triples: Vec<_> = (0..5_000).map(|_| (0..3).map(|_| rng.below(0x70)).collect()).collect();
        let (mut formed, mut all) = (0, 0);
        for marks in (0..0x70).map(|a| vec![a]).chain(pairs).chain(triples) {
            for letter in ['a', 'e', 'o', 'u', 'S', 'x', '7'] {
                let segment: String = std::iter::once(letter).chain(marks.iter().map(|&n| mark(n))).collect();
                let mut padded = [0; 8];
                padded[..segment.len()].copy_from_slice(segment.as_bytes());
                all += 1;
                if let Some((form, length)) = LATIN.form(u64::from_le_bytes(padded), segment.len()) {
                    assert_eq!(&form.to_le_bytes()[..length], normalise(&segment).as_bytes(), "{segment:?}");
                    formed += 1;
                }
            }
        }
        // Two marks of 112 are left out.
        assert!(formed > all * 9 / 10, "{formed} of {all}");
    }
}
