//! Text as a set or bag of shingles, each hashed to 64 bits.
//!
//! Claim: re-spacing, re-casing and re-punctuating a text leaves its shingles of words and characters unchanged
//! (`words` has the rules and the exceptions), and two different shingles of five words share a hash with probability
//! 2^-58 at most.
//! Invariant: the hashes are frozen by `testdata/hash/shingles.tsv`, at every SIMD level.
//! Not here: the distance between two sets, and which shingles represent a text (MinHash).
//!
//! A text shorter than a shingle is one shingle as a whole; a text of no words (for bytes: no bytes) has none.
//!
//! - `words:n`: with `w` the byte hashes of the words, `mix(n C + Σ w[i+t] B^(n-1-t))`, `t` in `0..n`, modulo 2^64. It
//!   rolls, and takes no pass over the bytes. Why it does not collide: the words' hashes are as good as random, so the
//!   difference of two sums, `Σ w c(w)` over the distinct words, vanishes with probability `2^(v-64)`, where `2^v` is
//!   the highest power of two that divides every coefficient `c(w)`. These are sums of `±B^t`. A word at a place of its
//!   own has an odd one, `v = 0`. For the same words in another order `v` grows, but slowly, because `B = 3 (mod 8)`:
//!   an exchange of neighbours has `B - 1`, `v = 1`, and no sum of five terms has more than `v = 6`. Long shingles that
//!   repeat two words over and over are weaker: a Thue-Morse sequence of 128 words and its complement have `v = 34`.
//! - `chars:n`: the byte hash of `n` consecutive characters of the normalised words, joined by one space. Between two
//!   letters of scripts without spaces there is none.
//! - `bytes:n`: the byte hash of `n` consecutive bytes of the unchanged text.
//! - `code:n`: as `words:n` over tokens, whose case counts: runs of letters, digits, underscores and all that is not ASCII; and every other
//!   character but white space alone. So `a+b` and `a-b` differ, as do `C`, `C#` and `C++`, and layout does not count.
//! - `kmers:n`: the byte hash of `n` consecutive bases, or of their reverse complement, whichever comes first in the alphabet. Bases are `A`, `C`, `G` and
//!   `T` of either case, `U` is `T`, white space between them does not count, and anything else ends a run. Of a text without a run of `n` bases the
//!   longest run is one shingle.
//!
//! Each kind has its own key, so that equal bytes do not make equal shingles of different kinds.

mod latin;
mod segment;
mod shingling;
mod table;
mod tokenise;
mod words;

pub use shingling::Shingling;

use tokenise::{Sink, tokenise};

use super::sorted;
use crate::{
    Seed,
    error::SpecError,
    hash::{ByteHash, mix},
    simd::text::{
        Polynomial, Span, hash_char_windows, hash_short_spans, hash_windows, join_ascii_words, join_short_spans, roll,
    },
};

const BASE: u64 = 0x9fb2_1c65_1e98_df2b;
const WHOLE: u64 = 0x2545_f491_4f6c_dd1d;
/// White space that `u8::is_ascii_whitespace` leaves out.
const VERTICAL_TAB: u8 = 0x0b;
const COUNT: u64 = 0xe703_7ed1_a0b4_28db;

/// Cuts texts into hashed shingles.
///
/// ```
/// use nearset::{Seed, Shingler, Shingling};
///
/// let shingler = Shingler::new(Shingling::Words(3), Seed::new(42))?;
/// let set = shingler.shingle_set("The quick brown fox");
/// assert_eq!(set.len(), 2);
/// assert_eq!(set, shingler.shingle_set("the QUICK, brown -- fox!"));
/// # Ok::<(), nearset::spec::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shingler {
    shingling: Shingling,
    hash: ByteHash,
}

impl Shingler {
    /// Creates the shingler of a seed.
    ///
    /// # Errors
    /// If the shingles' length is 0 or above 255.
    pub fn new(shingling: Shingling, seed: Seed) -> Result<Self, SpecError> {
        shingling.check()?;
        let kind = match shingling {
            Shingling::Words(_) => 0,
            Shingling::Chars(_) => 1,
            Shingling::Bytes(_) => 2,
            Shingling::Code(_) => 3,
            Shingling::Kmers(_) => 4,
        };
        Ok(Self { shingling, hash: ByteHash::new(seed.derive("shingle", kind)) })
    }

    /// Returns the kind and length of its shingles.
    pub(crate) fn shingling(&self) -> Shingling {
        self.shingling
    }

    /// Overwrites `out` with one hash per shingle, in the text's order, repeats included.
    pub fn shingles(&self, text: &str, out: &mut Vec<u64>) {
        out.clear();
        match self.shingling {
            Shingling::Words(length) => self.word_shingles(text, length.into(), out),
            Shingling::Chars(length) => self.char_shingles(text, length.into(), out),
            Shingling::Bytes(length) => self.windows(text.as_bytes(), length.into(), out),
            Shingling::Code(length) => self.code_shingles(text, length.into(), out),
            Shingling::Kmers(length) => self.kmer_shingles(text, length.into(), out),
        }
    }

    /// Overwrites `out` with what of a text is cut: its words in the form in which they are hashed, joined by single spaces (but not
    /// where their script has none); for shingles of code its tokens, joined in the same way; for k-mers the text in upper case
    /// without white space; for shingles of bytes, the text itself.
    pub fn normalise(&self, text: &str, out: &mut Vec<u8>) {
        out.clear();
        match self.shingling {
            Shingling::Bytes(_) => out.extend_from_slice(text.as_bytes()),
            Shingling::Code(_) => {
                for token in tokens(text) {
                    if !out.is_empty() {
                        out.push(b' ');
                    }
                    out.extend_from_slice(token);
                }
            }
            Shingling::Kmers(_) => {
                let letters = text.bytes().filter(|byte| !is_space(*byte));
                out.extend(letters.map(|byte| byte.to_ascii_uppercase()));
            }
            Shingling::Words(_) | Shingling::Chars(_) => {
                // Most lines are nothing but ASCII, and the rest is as if it began afresh behind a separator.
                let ascii = join_ascii_words(text.as_bytes(), out);
                if ascii < text.len() {
                    tokenise(&text[ascii..], &mut JoinWords { bytes: out, after_lone: false });
                }
            }
        }
    }

    /// Returns the hash of a text as it is, for texts that have no shingles: it differs from that of any shingle of bytes.
    pub fn whole(&self, text: &str) -> u64 {
        mix(self.hash.hash(text.as_bytes()) ^ WHOLE)
    }

    /// Returns the hashes of the distinct shingles in ascending order.
    pub fn shingle_set(&self, text: &str) -> Vec<u64> {
        let mut set = Vec::new();
        self.shingles(text, &mut set);
        set = sorted(&set);
        set.dedup();
        set
    }

    /// Returns each distinct shingle's hash and count, in ascending order of hashes: a weighted set.
    pub fn bag(&self, text: &str) -> Vec<(u64, f64)> {
        let mut hashes = Vec::new();
        self.shingles(text, &mut hashes);
        sorted(&hashes).chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f64)).collect()
    }

    fn word_shingles(&self, text: &str, length: usize, out: &mut Vec<u64>) {
        let mut sink = HashWords { hash: self.hash, length, out, rolled: 0 };
        tokenise(text, &mut sink);
        sink.finish();
    }

    fn code_shingles(&self, text: &str, length: usize, out: &mut Vec<u64>) {
        let mut sink = HashWords { hash: self.hash, length, out, rolled: 0 };
        tokens(text).for_each(|token| sink.long(token, false));
        sink.finish();
    }

    fn kmer_shingles(&self, text: &str, length: usize, out: &mut Vec<u64>) {
        let (mut run, mut complement, mut longest) = (Vec::new(), Vec::new(), Vec::new());
        // A character that is no base ends the last run, too.
        for byte in text.bytes().chain([0]).filter(|&byte| !is_space(byte)) {
            if let Some(base) = base(byte) {
                run.push(base);
                continue;
            }
            complement.clear();
            complement.extend(run.iter().rev().map(|&base| opposite(base)));
            let ends = (length..=run.len()).rev();
            out.extend(run.windows(length).zip(ends).map(|(bases, end)| {
                // The same bases, read on the other strand.
                self.hash.hash(bases.min(&complement[end - length..end]))
            }));
            if run.len() > longest.len() && out.is_empty() {
                longest.clear();
                longest.extend_from_slice(run.as_slice().min(&complement));
            }
            run.clear();
        }
        if out.is_empty() && !longest.is_empty() {
            out.push(self.hash.hash(&longest));
        }
    }

    fn char_shingles(&self, text: &str, length: usize, out: &mut Vec<u64>) {
        let mut bytes = Vec::with_capacity(text.len() + 16);
        self.normalise(text, &mut bytes);
        if bytes.is_ascii() {
            return self.windows(&bytes, length, out);
        }
        hash_char_windows(&self.hash, &bytes, length, out);
        if out.is_empty() {
            out.push(self.hash.hash(&bytes));
        }
    }

    /// Appends the hash of every window of `length` bytes, or of all bytes if there are fewer.
    fn windows(&self, bytes: &[u8], length: usize, out: &mut Vec<u64>) {
        if bytes.len() < length {
            out.extend((!bytes.is_empty()).then(|| self.hash.hash(bytes)));
            return;
        }
        hash_windows(&self.hash, bytes, length, out);
    }
}

/// Returns the tokens of source code: names and numbers, and every other character that is no white space.
fn tokens(text: &str) -> impl Iterator<Item = &[u8]> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        loop {
            let first = *rest.first()?;
            let name = rest.iter().take_while(|byte| is_name(byte)).count();
            let (token, behind) = rest.split_at(name.max(1));
            rest = behind;
            if !is_space(first) {
                return Some(token);
            }
        }
    })
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == VERTICAL_TAB
}

/// Returns the base that a letter stands for.
fn base(letter: u8) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        base @ (b'A' | b'C' | b'G' | b'T') => Some(base),
        b'U' => Some(b'T'),
        _ => None,
    }
}

/// Returns the base that pairs with one.
fn opposite(base: u8) -> u8 {
    match base {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        _ => b'A',
    }
}

/// Returns the hash of a shingle of `words` words.
fn polynomial(words: usize) -> Polynomial {
    Polynomial { base: BASE, offset: COUNT.wrapping_mul(words as u64) }
}

/// Hashes words, and rolls their hashes into shingles while they are still in the cache.
struct HashWords<'a> {
    hash: ByteHash,
    length: usize,
    /// Shingles, followed by words that are not rolled yet.
    out: &'a mut Vec<u64>,
    rolled: usize,
}

impl HashWords<'_> {
    fn roll(&mut self) {
        self.rolled += roll(&mut self.out[self.rolled..], self.length, polynomial(self.length));
    }

    /// Leaves the shingles; words that are too few for one are one together.
    fn finish(mut self) {
        self.roll();
        if self.rolled > 0 {
            self.out.truncate(self.rolled);
        } else if !self.out.is_empty() {
            let shingle = polynomial(self.out.len()).of(self.out);
            self.out.clear();
            self.out.push(shingle);
        }
    }
}

impl Sink for HashWords<'_> {
    #[inline(always)]
    fn short_ascii(&mut self, bytes: &[u8], spans: &[Span]) -> usize {
        hash_short_spans(&self.hash, bytes, spans, self.out)
    }

    #[inline(always)]
    fn short(&mut self, padded: u128, length: usize, _: bool) {
        self.out.push(self.hash.hash_padded(padded, length));
    }

    fn long(&mut self, word: &[u8], _: bool) {
        self.out.push(self.hash.hash(word));
    }

    fn pause(&mut self) {
        self.roll();
    }
}

/// Joins words by single spaces.
struct JoinWords<'a> {
    bytes: &'a mut Vec<u8>,
    after_lone: bool,
}

impl JoinWords<'_> {
    #[inline(always)]
    fn space(&mut self, lone: bool) {
        if !(self.bytes.is_empty() || lone && self.after_lone) {
            self.bytes.push(b' ');
        }
        self.after_lone = lone;
    }
}

impl Sink for JoinWords<'_> {
    #[inline(always)]
    fn short_ascii(&mut self, bytes: &[u8], spans: &[Span]) -> usize {
        let count = join_short_spans(bytes, spans, self.bytes);
        self.after_lone &= count == 0;
        count
    }

    #[inline(always)]
    fn short(&mut self, padded: u128, length: usize, lone: bool) {
        self.space(lone);
        let end = self.bytes.len() + length;
        self.bytes.extend_from_slice(&padded.to_le_bytes());
        self.bytes.truncate(end);
    }

    fn long(&mut self, word: &[u8], lone: bool) {
        self.space(lone);
        self.bytes.extend_from_slice(word);
    }

    fn pause(&mut self) {}
}

#[cfg(test)]
mod tests;
