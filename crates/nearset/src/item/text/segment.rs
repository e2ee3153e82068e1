//! The form of characters that depend on each other: a letter with marks that compose with it or are out of order, and
//! Hangul syllables in parts.
//!
//! Claim: [`Segment::composed`] returns `words::normalise` of the segment, in time that depends only on its length,
//! however many marks are stacked on a letter; and nothing is allocated once there is room.
//!
//! The definition decomposes the text, orders, folds, orders and composes. Here one ordering does for both: folding
//! keeps combining classes, except for the iota subscript, which is a mark of the highest class before folding and a
//! letter after it. So it comes last of the marks on its letter, and no mark follows it.

use std::{
    str::Chars,
    sync::atomic::{AtomicU64, Ordering},
};

use unicode_normalization::char::compose;

use super::table::{Kind, Page, Part, decode, encode, encoded_length, page};

/// A segment, and scratch space for computing its form.
#[derive(Debug)]
pub(super) struct Segment {
    parts: Vec<Part>,
    room: Vec<Part>,
    /// A cache of character pairs that were segments, each at a place computed from the pair, and their forms in up to
    /// 8 bytes.
    pairs: Vec<((char, char), u64)>,
    /// How many pairs were not found there.
    unknown_pairs: usize,
}

/// The form of a segment, in UTF-8.
pub(super) enum Form<'a> {
    /// Up to 8 bytes, then zeros, as a little-endian number.
    Short(u64),
    /// Characters.
    Long(&'a [Part]),
}

impl Segment {
    pub(super) const fn new() -> Self {
        Self { parts: Vec::new(), room: Vec::new(), pairs: Vec::new(), unknown_pairs: 0 }
    }

    /// Returns the number of bytes allocated.
    pub(super) fn capacity(&self) -> usize {
        size_of::<Part>() * (self.parts.capacity() + self.room.capacity())
    }

    /// Returns the form of a character that began afresh, if there is one, of one that did not, and of all that follow
    /// and belong to them; and the next character.
    #[inline(never)]
    pub(super) fn after(
        &mut self,
        fresh: Option<char>,
        c: char,
        chars: &mut Chars<'_>,
        lone: bool,
    ) -> (Form<'_>, Option<char>) {
        let ahead = chars.clone().next();
        let goes_on =
            ahead.is_some_and(|c| matches!(page(c).entry(c).kind, Kind::Mark | Kind::Letter | Kind::Ignorable));
        if let Some(fresh) = fresh
            && !goes_on
            && let Some(form) = self.of_pair((fresh, c))
        {
            return (Form::Short(form), chars.next());
        }
        self.parts.clear();
        fresh.into_iter().for_each(|fresh| self.push(page(fresh), fresh));
        self.go_on(c, chars, lone)
    }

    /// The same for a form at the front that equals no single character.
    #[inline(never)]
    pub(super) fn after_form(
        &mut self,
        form: &[u8],
        c: char,
        chars: &mut Chars<'_>,
        lone: bool,
    ) -> (Form<'_>, Option<char>) {
        self.parts.clear();
        // Decomposed, a form yields what it was made of.
        str::from_utf8(form).unwrap_or_default().chars().for_each(|c| self.push(page(c), c));
        self.go_on(c, chars, lone)
    }

    #[inline(always)]
    fn go_on(&mut self, c: char, chars: &mut Chars<'_>, lone: bool) -> (Form<'_>, Option<char>) {
        self.push(page(c), c);
        let next = loop {
            let Some(c) = chars.next() else { break None };
            let page = page(c);
            match page.entry(c).kind {
                Kind::Letter if lone => break Some(c),
                Kind::Letter | Kind::Mark => self.push(page, c),
                Kind::Ignorable => {}
                _ => break Some(c),
            }
        };
        self.work_out();
        (Form::Long(&self.parts), next)
    }

    #[inline(always)]
    fn push(&mut self, page: &Page, c: char) {
        match page.only_part(c) {
            Some(part) => self.parts.push(part),
            None => page.parts(c).iter().for_each(|&part| self.parts.push(part)),
        }
    }

    /// Returns the form of two characters, if it has at most 8 bytes.
    fn of_pair(&mut self, pair: (char, char)) -> Option<u64> {
        /// Few at first, as most texts have few pairs and are short.
        const PLACES: usize = 1 << 7;
        const MOST_PLACES: usize = 1 << 13;
        let mixed = (u64::from(pair.0) << 21 | u64::from(pair.1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = |places: usize| (mixed >> 40) as usize & (places - 1);
        // A pair is at its place or the next, where it moves when another arrives.
        let at = place(self.pairs.len().max(1));
        for at in [at, at ^ 1] {
            if let Some((known, form)) = self.pairs.get(at)
                && *known == pair
            {
                return Some(*form);
            }
        }
        self.unknown_pairs += 1;
        if self.unknown_pairs > self.pairs.len() && self.pairs.len() < MOST_PLACES {
            let places = (4 * self.pairs.len()).clamp(PLACES, MOST_PLACES);
            self.pairs.clear();
            self.pairs.resize(places, Default::default());
            self.unknown_pairs = 0;
        }
        let at = place(self.pairs.len());
        self.parts.clear();
        self.push(page(pair.0), pair.0);
        self.push(page(pair.1), pair.1);
        self.work_out();
        let (mut form, mut length) = (0, 0);
        for part in &self.parts {
            let part = encode(part.char());
            if length + encoded_length(part) > 8 {
                return None;
            }
            form |= u64::from(part) << (8 * length);
            length += encoded_length(part);
        }
        self.pairs[at ^ 1] = std::mem::replace(&mut self.pairs[at], (pair, form));
        Some(form)
    }

    #[inline(always)]
    fn work_out(&mut self) {
        if !self.parts.is_sorted_by(|before, part| part.order() == 0 || before.order() <= part.order()) {
            self.put_in_order();
        }
        self.compose();
    }

    /// Sorts the marks of each letter by their classes, keeping the order of equal ones.
    fn put_in_order(&mut self) {
        /// Insertion is quadratic, and counting goes through all classes.
        const MOST_INSERTED: usize = 24;
        for letter in self.parts.chunk_by_mut(|_, next| next.order() != 0) {
            if letter.len() > MOST_INSERTED {
                sort_by_counting(letter, &mut self.room);
                continue;
            }
            for i in 1..letter.len() {
                let part = letter[i];
                let mut at = i;
                while at > 0 && letter[at - 1].order() > part.order() {
                    letter[at] = letter[at - 1];
                    at -= 1;
                }
                letter[at] = part;
            }
        }
    }

    /// Composes each letter with what follows it, where nothing of an equal or higher class stands between (UAX 15,
    /// D117).
    #[inline(always)]
    fn compose(&mut self) {
        let parts = &mut self.parts[..];
        let (mut kept, mut letter) = (0, None::<usize>);
        // The class of what stands between the letter and the next part.
        let mut class_between = None;
        for i in 0..parts.len() {
            let part = parts[i];
            if part.composes()
                && let Some(letter) = letter
                && class_between.is_none_or(|class| class < part.combining_class())
                && let composed @ 1.. = compose_known(parts[letter].char(), part.char())
            {
                parts[letter] = parts[letter].with_char(decode(composed));
                continue;
            }
            (letter, class_between) = match part.is_letter() {
                true => (Some(kept), None),
                false => (letter, Some(part.combining_class())),
            };
            parts[kept] = part;
            kept += 1;
        }
        self.parts.truncate(kept);
    }
}

fn sort_by_counting(parts: &mut [Part], room: &mut Vec<Part>) {
    let mut starts = [0; 256];
    parts.iter().for_each(|part| starts[part.order() as usize] += 1);
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    room.clear();
    room.extend_from_slice(parts);
    for &part in &room[..] {
        let at = &mut starts[part.order() as usize];
        parts[*at] = part;
        *at += 1;
    }
}

/// Returns what two characters compose to, each folded, in UTF-8 as a little-endian number, or 0 if they do not
/// compose.
///
/// [`compose`] is slow, and texts have few different pairs, so its results are remembered.
#[inline(always)]
pub(super) fn compose_known(letter: char, next: char) -> u32 {
    const PLACES: u32 = 12;
    const PAIR: u32 = 42;
    const KEY: u32 = 33;
    /// Each entry holds 30 bits of a pair, whose other 12 determine its place; a bit that marks it as used; and what
    /// the pair composes to.
    static KNOWN: [AtomicU64; 1 << PLACES] = [const { AtomicU64::new(0) }; 1 << PLACES];
    // There are many syllables, and they are composed by arithmetic.
    if matches!(next, '\u{1161}'..='\u{11c2}') {
        return compose(letter, next).map_or(0, encode);
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
    let folded = |c: char| decode(page(c).entry(c).form);
    let composed = compose(folded(letter), folded(next)).map_or(0, encode);
    place.store(key | u64::from(composed), Ordering::Relaxed);
    composed
}
