//! How many edits turn one text into another: characters inserted, deleted or replaced (Levenshtein 1966).
//!
//! Claim: [`Pattern::within`] is the number of edits if that is at most `most`, and `None` otherwise; `by_definition` in the tests says what it is.
//! Reference: differences between neighbouring cells of the dynamic programme are one bit each, 64 cells in a few instructions (Myers 1999, in
//! the form of Hyyrö 2003). Only blocks that a path of at most `most` edits can meet are worked out (Ukkonen 1985). Numbers never
//! fall along a diagonal, so the one that ends in the last cell is watched, and tells as early as possible that there are too many.

use std::collections::HashMap;

/// The characters of a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chars<'a> {
    /// All are below 256.
    Narrow(&'a [u8]),
    Wide(&'a [u32]),
}

impl Chars<'_> {
    pub fn len(self) -> usize {
        match self {
            Chars::Narrow(chars) => chars.len(),
            Chars::Wide(chars) => chars.len(),
        }
    }

    /// Calls `each` with every character in turn.
    #[inline(always)]
    pub fn for_each(self, mut each: impl FnMut(u32)) {
        match self {
            Chars::Narrow(chars) => chars.iter().for_each(|&char| each(char.into())),
            Chars::Wide(chars) => chars.iter().for_each(|&char| each(char)),
        }
    }
}

/// Words of places that a pattern may take, whatever its length and its alphabet: 8 MB.
const MOST_PLACES: usize = 1 << 20;

/// A text that many others are compared with.
#[derive(Debug)]
pub(super) struct Pattern {
    length: usize,
    /// Its characters, in one of the two forms.
    bytes: Vec<u8>,
    numbers: Vec<u32>,
    /// Words of 64 characters.
    words: usize,
    /// For each different character, where it stands in the text, so many words each. The first ones are those of characters that are not in it.
    places: Vec<u64>,
    /// Words of `places`, at most. Beyond that, which many different characters of a long text would take, `runs` has those that are not 0.
    most_places: usize,
    is_sparse: bool,
    /// Character by character, the words that it stands in and where; behind the last character's, where each one's start.
    runs: Vec<(u32, u64)>,
    starts: Vec<u32>,
    /// Where in `places`, or in `starts`, a character's words start.
    narrow: [u32; 256],
    wide: HashMap<u32, u32>,
    /// For each word, which cells of the current column are one more than those above them, and which are one less.
    more: Vec<u64>,
    less: Vec<u64>,
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
            length: 0,
            bytes: Vec::new(),
            numbers: Vec::new(),
            words: 0,
            places: Vec::new(),
            most_places: MOST_PLACES,
            is_sparse: false,
            runs: Vec::new(),
            starts: Vec::new(),
            narrow: [0; 256],
            wide: HashMap::new(),
            more: Vec::new(),
            less: Vec::new(),
        }
    }
}

impl Pattern {
    /// Takes the place of what was there before.
    pub fn set(&mut self, text: Chars<'_>) {
        let Self { length, bytes, numbers, words, places, most_places, is_sparse, narrow, wide, .. } = self;
        bytes.clear();
        numbers.clear();
        match text {
            Chars::Narrow(chars) => bytes.extend_from_slice(chars),
            Chars::Wide(chars) => numbers.extend_from_slice(chars),
        }
        *length = text.len();
        *words = length.div_ceil(64);
        narrow.fill(0);
        wide.clear();
        places.clear();
        *is_sparse = *words > *most_places;
        places.resize(if *is_sparse { 0 } else { *words }, 0);
        let mut at = 0;
        text.for_each(|char| {
            if *is_sparse {
                return;
            }
            let start = match narrow.get_mut(char as usize) {
                Some(start) => start,
                None => wide.entry(char).or_insert(0),
            };
            if *start == 0 {
                if places.len() + *words > *most_places {
                    *is_sparse = true;
                    return;
                }
                *start = places.len() as u32;
                places.resize(places.len() + *words, 0);
            }
            places[*start as usize + at / 64] |= 1 << (at % 64);
            at += 1;
        });
        if self.is_sparse {
            self.set_sparse(text);
        }
    }

    /// Lists the words in which each character stands.
    #[cold]
    fn set_sparse(&mut self, text: Chars<'_>) {
        let Self { runs, starts, places, narrow, wide, .. } = self;
        places.clear();
        places.shrink_to(0);
        narrow.fill(0);
        wide.clear();
        runs.clear();
        starts.clear();
        // Characters that are not there have no words.
        starts.push(0);
        let mut standing: Vec<(u32, u32)> = Vec::with_capacity(text.len());
        text.for_each(|char| standing.push((char, standing.len() as u32)));
        standing.sort_unstable();
        for same in standing.chunk_by(|(a, _), (b, _)| a == b) {
            let start = match narrow.get_mut(same[0].0 as usize) {
                Some(start) => start,
                None => wide.entry(same[0].0).or_insert(0),
            };
            *start = starts.len() as u32;
            starts.push(runs.len() as u32);
            for word in same.chunk_by(|(_, a), (_, b)| a / 64 == b / 64) {
                runs.push((word[0].1 / 64, word.iter().fold(0, |bits, (_, at)| bits | 1 << (at % 64))));
            }
        }
        starts.push(runs.len() as u32);
    }

    /// Returns the number of edits between the pattern and a text, if there are at most so many.
    pub fn within(&mut self, text: Chars<'_>, most: usize) -> Option<usize> {
        if self.length.abs_diff(text.len()) > most {
            return None;
        }
        // There are never more edits than that.
        let most = most.min(self.length.max(text.len()));
        if self.length == 0 || text.len() == 0 {
            return Some(self.length.max(text.len()));
        }
        match text {
            Chars::Narrow(chars) => {
                let ends = if self.bytes.is_empty() { (0, 0) } else { equal_ends(&self.bytes, chars) };
                self.within_ends(chars, ends, most, |pattern, &char| pattern.narrow[char as usize])
            }
            Chars::Wide(chars) => {
                let ends = if self.numbers.is_empty() { (0, 0) } else { equal_ends(&self.numbers, chars) };
                self.within_ends(chars, ends, most, Self::start_of)
            }
        }
    }

    /// The same for a text that starts with so many whole words of the pattern, and ends with so many of its characters: they take no edits.
    #[inline(always)]
    fn within_ends<C>(
        &mut self,
        chars: &[C],
        (words, characters): (usize, usize),
        most: usize,
        start: impl Fn(&Self, &C) -> u32,
    ) -> Option<usize> {
        let chars = &chars[64 * words..chars.len() - characters];
        let length = self.length - 64 * words - characters;
        match length {
            0 => (chars.len() <= most).then_some(chars.len()),
            _ if self.is_sparse => self.within_words::<_, true>(chars, (words, length), most, start),
            1..=64 => self.within_a_word(chars, (words, length), most, start),
            _ => self.within_words::<_, false>(chars, (words, length), most, start),
        }
    }

    /// Where the places of a character start.
    fn start_of(&self, char: &u32) -> u32 {
        match self.narrow.get(*char as usize) {
            Some(&start) => start,
            None => self.wide.get(char).copied().unwrap_or(0),
        }
    }

    #[inline(always)]
    fn within_a_word<C>(
        &self,
        chars: &[C],
        (word, length): (usize, usize),
        most: usize,
        start: impl Fn(&Self, &C) -> u32,
    ) -> Option<usize> {
        let offset = length as isize - chars.len() as isize;
        let (mut more, mut less, mut edits) = (!0, 0, offset.unsigned_abs());
        for (column, char) in (1..).zip(chars) {
            let equal = self.places[start(self, char) as usize + word];
            // One more than in the column before stands above the first row, and what lies below the last one is never read.
            let (kept, _) = step(equal, (&mut more, &mut less), Carry { more: 1, less: 0 });
            let row = column + offset;
            if row >= 1 {
                edits += usize::from(kept >> (row - 1) & 1 == 0);
                if edits > most {
                    return None;
                }
            }
        }
        Some(edits)
    }

    #[inline(always)]
    fn within_words<C, const SPARSE: bool>(
        &mut self,
        chars: &[C],
        (skipped, length): (usize, usize),
        most: usize,
        start: impl Fn(&Self, &C) -> u32,
    ) -> Option<usize> {
        let offset = length as isize - chars.len() as isize;
        // A path that leaves these diagonals takes more edits to leave and to come back.
        let (lowest, highest) = ((offset - most as isize) / 2, (offset + most as isize) / 2);
        let words = length.div_ceil(64);
        self.more.clear();
        self.more.resize(words, !0);
        self.less.clear();
        self.less.resize(words, 0);
        let mut edits = offset.unsigned_abs();
        for (column, char) in (1..).zip(chars) {
            let start = start(self, char) as usize;
            let first = ((column + lowest).max(1) - 1) as usize / 64;
            let last = ((column + highest).min(length as isize) - 1) as usize / 64;
            let row = column + offset;
            let mut carry = Carry { more: 1, less: 0 };
            let mut run = &[][..];
            if SPARSE {
                run = &self.runs[self.starts[start] as usize..self.starts[start + 1] as usize];
                run = &run[run.partition_point(|&(word, _)| (word as usize) < skipped + first)..];
            }
            for word in first..=last {
                let equal = match (SPARSE, run) {
                    (false, _) => self.places[start + skipped + word],
                    (true, [(at, equal), others @ ..]) if *at as usize == skipped + word => {
                        run = others;
                        *equal
                    }
                    _ => 0,
                };
                let cells = (&mut self.more[word], &mut self.less[word]);
                let (kept, next) = step(equal, cells, carry);
                carry = next;
                if row >= 1 && (row - 1) as usize / 64 == word {
                    edits += usize::from(kept >> ((row - 1) % 64) & 1 == 0);
                }
            }
            if edits > most {
                return None;
            }
        }
        Some(edits)
    }
}

/// How many whole words of 64 characters two texts begin with in common, and how many further characters they end with.
fn equal_ends<C: PartialEq>(a: &[C], b: &[C]) -> (usize, usize) {
    let words = a.chunks_exact(64).zip(b.chunks_exact(64)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[64 * words..], &b[64 * words..]);
    (words, a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count())
}

/// What a block hands to the one below it: whether its last cell is one more than in the column before, or one less.
#[derive(Clone, Copy)]
struct Carry {
    more: u64,
    less: u64,
}

/// Takes 64 cells to the next column. Returns which of them are what stood diagonally above them; the others are one more.
#[inline(always)]
fn step(equal: u64, (more, less): (&mut u64, &mut u64), carry: Carry) -> (u64, Carry) {
    let (above, below) = (*more, *less);
    let equal = equal | carry.less;
    let kept = ((equal & above).wrapping_add(above) ^ above) | equal | below;
    let right_more = below | !(kept | above);
    let right_less = kept & above;
    let next = Carry { more: right_more >> 63, less: right_less >> 63 };
    let (right_more, right_less) = (right_more << 1 | carry.more, right_less << 1 | carry.less);
    *more = right_less | !(kept | right_more);
    *less = right_more & kept;
    (kept, next)
}

#[cfg(test)]
pub(super) mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    /// The edits between two texts.
    pub fn by_definition(a: &[u32], b: &[u32]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, a) in a.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in b.iter().enumerate() {
                let replaced = diagonal + usize::from(a != b);
                diagonal = row[j + 1];
                row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[b.len()]
    }

    /// A text of so many characters of an alphabet, and the same with so many edits.
    pub fn edited(rng: &mut Rng, length: usize, alphabet: &[u32], edits: usize) -> [Vec<u32>; 2] {
        let any = |rng: &mut Rng| alphabet[rng.below(alphabet.len() as u64) as usize];
        let text: Vec<u32> = (0..length).map(|_| any(rng)).collect();
        let mut other = text.clone();
        for _ in 0..edits {
            let at = rng.below(other.len() as u64 + 1) as usize;
            match rng.below(3) {
                0 => other.insert(at, any(rng)),
                1 if at < other.len() => drop(other.remove(at)),
                _ if at < other.len() => other[at] = any(rng),
                _ => {}
            }
        }
        [text, other]
    }

    pub const ALPHABETS: [&[u32]; 4] = [
        &[97, 98],
        &[65, 67, 71, 84],
        &[97, 0xe9, 0x4e2d, 0x1f600, 0, 255, 256, 0x10ffff],
        &[32, 101, 116, 97, 111, 105, 110],
    ];

    fn within(a: &[u32], b: &[u32], most: usize) -> [Option<usize>; 2] {
        let narrow = |text: &[u32]| text.iter().map(|&char| u8::try_from(char).ok()).collect::<Option<Vec<u8>>>();
        let found = [MOST_PLACES, 0, 12].map(|most_places| {
            let mut pattern = Pattern { most_places, ..Pattern::default() };
            pattern.set(Chars::Wide(a));
            let wide = pattern.within(Chars::Wide(b), most);
            if let Some(b) = narrow(b) {
                assert_eq!(pattern.within(Chars::Narrow(&b), most), wide);
            }
            if let (Some(a), Some(b)) = (narrow(a), narrow(b)) {
                pattern.set(Chars::Narrow(&a));
                assert_eq!(pattern.within(Chars::Narrow(&b), most), wide);
            }
            pattern.set(Chars::Wide(b));
            [wide, pattern.within(Chars::Wide(a), most)]
        });
        assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn a_pattern_takes_memory_in_proportion_to_its_length() {
        let text: Vec<u32> = (0..200_000).map(|at| 1000 + at).collect();
        let mut pattern = Pattern::default();
        pattern.set(Chars::Wide(&text));
        let bytes = 8 * pattern.places.capacity() + 16 * pattern.runs.capacity() + 4 * pattern.starts.capacity();
        assert!(bytes < 64 * text.len(), "{bytes}");
        assert_eq!(pattern.within(Chars::Wide(&text[1..]), 5), Some(1));
        // A short one after it is as it would be alone.
        pattern.set(Chars::Wide(&text[..300]));
        assert!(!pattern.is_sparse);
        assert_eq!(pattern.within(Chars::Wide(&text[2..301]), 5), Some(3));
    }

    #[test]
    fn edits_are_those_of_the_definition() {
        let mut rng = Rng::new(Seed::new(1));
        for round in 0..4000 {
            let length = [0, 1, 2, 7, 31, 63, 64, 65, 100, 128, 129, 200, 300][rng.below(13) as usize];
            let alphabet = ALPHABETS[round % ALPHABETS.len()];
            let edits = rng.below(1 + length as u64 / 3) as usize;
            let [a, mut b] = edited(&mut rng, length, alphabet, edits);
            if round % 7 == 0 {
                b = edited(&mut rng, length + round % 5, alphabet, 0)[0].clone();
            }
            let expected = by_definition(&a, &b);
            for most in [0, 1, 2, 5, expected.saturating_sub(1), expected, expected + 1, 70, usize::MAX] {
                let found = (expected <= most).then_some(expected);
                assert_eq!(within(&a, &b, most), [found; 2], "{a:?} {b:?} within {most}");
            }
        }
    }

    #[test]
    fn long_texts_are_compared_in_a_band() {
        let mut rng = Rng::new(Seed::new(2));
        for edits in [0, 3, 40, 200] {
            let [a, b] = edited(&mut rng, 3000, ALPHABETS[1], edits);
            let expected = by_definition(&a, &b);
            for most in [expected, expected + 1, expected + 64, 5000] {
                assert_eq!(within(&a, &b, most), [Some(expected); 2]);
            }
            assert_eq!(within(&a, &b, expected.saturating_sub(1))[0].is_some(), expected == 0);
        }
    }

    #[test]
    fn known_words_are_as_far_apart_as_they_are_known_to_be() {
        for (a, b, edits) in [("kitten", "sitting", 3), ("Saturday", "Sunday", 3), ("", "abc", 3), ("żółw", "zolw", 3)]
        {
            let [a, b] = [a, b].map(|text| text.chars().map(u32::from).collect::<Vec<u32>>());
            assert_eq!(within(&a, &b, 9), [Some(edits); 2]);
        }
    }
}
