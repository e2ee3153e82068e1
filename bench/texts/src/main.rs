//! Writes made-up texts as JSON Lines to standard output: `bench-texts DOCUMENTS BYTES`.
//!
//! Each document is a function of its number, so a copy of any earlier one can be made without holding it. Of ten documents, one is an
//! edited copy of one before it, anywhere; of a thousand, one belongs to one of a few large families. Words are drawn from 50,000 by
//! rank, as in a language. Run twice, it writes the same bytes.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use nearset::{Rng, Seed};

/// Words that there are.
const WORDS: u64 = 50_000;

/// One document in so many is an edited copy.
const COPIES: u64 = 10;

/// One document in so many is a member of a family, and how many families there are.
const MEMBERS: u64 = 1000;
const FAMILIES: u64 = 4;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut next = || {
        arguments.next().context("give the number of documents, and the bytes of each")?.map_err(anyhow::Error::from)
    };
    let (documents, bytes) = (next()?, next()?);
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let (mut text, mut room) = (Vec::new(), Vec::new());
    for number in 0..documents {
        text.clear();
        write_text(number, bytes as usize, &mut text, &mut room);
        write!(out, "{{\"id\":\"{number}\",\"text\":\"")?;
        out.write_all(&text)?;
        out.write_all(b"\"}\n")?;
    }
    Ok(out.flush()?)
}

fn write_text(number: u64, bytes: usize, text: &mut Vec<u8>, room: &mut Vec<u8>) {
    let mut rng = Rng::new(Seed::new(number).derive("document", 0));
    if number >= COPIES && rng.below(MEMBERS) == 0 {
        // Families begin with their first members and are numbered from the top.
        return edited(u64::MAX - rng.below(FAMILIES), bytes, &mut rng, text, room);
    }
    if number >= COPIES && rng.below(COPIES) == 0 {
        return edited(rng.below(number), bytes, &mut rng, text, room);
    }
    drawn(number, bytes, text);
}

/// The text that a document has if it is nobody's copy.
fn drawn(number: u64, bytes: usize, text: &mut Vec<u8>) {
    let mut rng = Rng::new(Seed::new(number).derive("words", 0));
    while text.len() < bytes {
        // By rank: half of all words are among the first 224.
        let rank = (WORDS as f64).powf(rng.unit()) as u64;
        word(rank, text);
        text.push(b' ');
    }
}

/// A copy of a document in which one to three words are others.
fn edited(of: u64, bytes: usize, rng: &mut Rng, text: &mut Vec<u8>, room: &mut Vec<u8>) {
    room.clear();
    drawn(of, bytes, room);
    let words = room.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).count() as u64;
    let others = [rng.below(words), rng.below(words), rng.below(words)];
    let changed = &others[..1 + rng.below(3) as usize];
    for (i, old) in (0..).zip(room.split(|&byte| byte == b' ').filter(|word| !word.is_empty())) {
        if changed.contains(&i) {
            word(rng.below(WORDS), text)
        } else {
            text.extend_from_slice(old)
        }
        text.push(b' ');
    }
}

/// The word of this rank: frequent ones are short.
fn word(rank: u64, text: &mut Vec<u8>) {
    let mut left = rank;
    loop {
        let syllable = (left % 60) as usize;
        text.push(b"bdfgklmnprst"[syllable / 5]);
        text.push(b"aeiou"[syllable % 5]);
        left /= 60;
        if left == 0 {
            break;
        }
    }
}
