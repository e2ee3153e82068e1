//! Texts that a deduplicator may meet and that are nothing like prose, made to find what is slow.

use nearset::{Rng, Seed};

/// Makes the text with which all others are compared: sentences of words as long and as frequent as those of English.
pub fn prose(bytes: usize) -> String {
    let mut rng = Rng::new(Seed::new(1));
    let word = |rng: &mut Rng| {
        let length = 2 + rng.below(4) + rng.below(6);
        (0..length).map(|_| letter(rng)).collect::<String>()
    };
    let words: Vec<String> = (0..20_000).map(|_| word(&mut rng)).collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // Frequencies fall with the rank, as in Zipf's law.
        let rank = (20_000f64.powf(1.0 - rng.unit()) as usize).min(words.len()) - 1;
        text.push_str(&words[rank]);
        text.push_str(if rng.below(12) == 0 { ". " } else { " " });
    }
    cut(text, bytes)
}

/// Makes every awkward text, with its name.
pub fn awkward(bytes: usize) -> Vec<(&'static str, String)> {
    let repeat = |piece: &str| cut(piece.repeat(bytes.div_ceil(piece.len())), bytes);
    let after = |first: &str, piece: &str| cut(format!("{first}{}", repeat(piece)), bytes);
    let cycle = |distinct: u64| {
        let sentence: String = (0..distinct).map(|n| format!("w{n} ")).collect();
        repeat(&sentence)
    };
    vec![
        ("one sentence", repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ")),
        ("one word", repeat("ab ")),
        ("one letter, spaced", repeat("a ")),
        ("one letter", repeat("a")),
        ("2 words", cycle(2)),
        ("10 words", cycle(10)),
        ("100 words", cycle(100)),
        ("1,000 words", cycle(1000)),
        ("10,000 words", cycle(10_000)),
        ("palindrome", repeat("one two three four five six seven six five four three two ")),
        ("random letters, spaced", of(bytes, 2, |rng| vec![letter(rng), ' '])),
        ("random words, long", of(bytes, 3, |rng| (0..17).map(|_| letter(rng)).chain([' ']).collect())),
        ("random letters", of(bytes, 4, |rng| vec![letter(rng)])),
        ("random capitals", of(bytes, 5, |rng| vec![letter(rng).to_ascii_uppercase()])),
        ("Chinese", of(bytes, 6, |rng| vec![pick(rng, 0x4e00, 3000)])),
        ("Chinese, repeated", repeat("人人生而自由，在尊严和权利上一律平等。")),
        ("Cyrillic", of(bytes, 7, |rng| spaced(rng, 0x410, 64))),
        ("Cyrillic, one word", of(bytes, 8, |rng| vec![pick(rng, 0x410, 64)])),
        ("Thai", of(bytes, 9, |rng| vec![pick(rng, 0xe01, 58)])),
        ("Arabic with marks", of(bytes, 10, |rng| vec![pick(rng, 0x628, 19), pick(rng, 0x64b, 8)])),
        ("Hindi", repeat("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता ")),
        ("Hindi with dots below", of(bytes, 11, |rng| vec![pick(rng, 0x915, 37), '\u{93c}', '\u{94d}'])),
        ("Hangul", of(bytes, 12, |rng| spaced(rng, 0xac00, 11_172))),
        (
            "Hangul, jamo",
            of(bytes, 13, |rng| vec![pick(rng, 0x1100, 19), pick(rng, 0x1161, 21), pick(rng, 0x11a8, 27)]),
        ),
        ("Hangul, jamo repeated", repeat("\u{1112}\u{1161}\u{11ab}")),
        ("Hangul, vowels", repeat("\u{1161}")),
        ("Hangul, syllables and tails", of(bytes, 14, |rng| vec![pick_lv(rng), pick(rng, 0x11a8, 27)])),
        ("letters that grow", repeat("İẞŉǰΐ ")),
        ("letters that grow, one word", repeat("İẞŉǰΐﬃ")),
        ("Greek, iota subscripts", repeat("ᾳᾼᾷᾂ\u{345} ")),
        ("Greek, iotas and marks", of(bytes, 15, |rng| vec![pick(rng, 0x1f80, 48), pick(rng, 0x300, 70)])),
        ("decomposed letters", of(bytes, 16, |rng| vec![letter(rng), pick(rng, 0x300, 5)])),
        ("Vietnamese, decomposed", repeat("Tie\u{302}\u{301}ng Vie\u{323}\u{302}t ")),
        ("one letter, one mark for ever", after("e", "\u{301}")),
        ("one letter, marks out of order", after("e", "\u{301}\u{316}")),
        ("one letter, random marks", of(bytes, 17, |rng| vec![pick(rng, 0x300, 70)]).replacen(|_| true, "e", 1)),
        ("marks that decompose", after("e", "\u{344}")),
        ("letters, two marks out of order", of(bytes, 18, |rng| vec![letter(rng), '\u{301}', '\u{323}'])),
        ("letters, random marks", of(bytes, 24, |rng| vec![letter(rng), pick(rng, 0x300, 70), pick(rng, 0x300, 70)])),
        ("kana with voice marks", repeat("か\u{3099}き\u{3099}は\u{309a}")),
        ("letters that compose and don't stay so", repeat("\u{958}\u{fb2c}")),
        ("invisible", after("e", "\u{ad}")),
        ("letters and invisible", repeat("e\u{200d}\u{301}")),
        ("marks alone", repeat("\u{301}")),
        ("punctuation", repeat("!?.,;:-_()[]{}")),
        ("wide punctuation", repeat("。、「」—…")),
        ("spaces", repeat(" \t\n\u{a0}\u{2003}\u{200b}")),
        ("zero bytes", repeat("\0")),
        ("zero bytes and letters", repeat("a\0")),
        ("emoji", repeat("👩\u{200d}👩\u{200d}👧\u{200d}👦🏳\u{fe0f}\u{200d}🌈")),
        ("letters outside the plane", of(bytes, 19, |rng| vec![pick(rng, 0x10400, 80)])),
        ("mathematical letters", of(bytes, 20, |rng| vec![pick(rng, 0x1d400, 26), ' '])),
        ("one letter of each script", of(bytes, 21, |rng| vec![any_letter(rng)])),
        ("accented letters, spaced", of(bytes, 22, |rng| vec![pick(rng, 0xe0, 23), ' '])),
        ("ASCII and one accent in each word", of(bytes, 23, |rng| vec![letter(rng), 'é', ' '])),
    ]
}

/// Joins random pieces, up to `bytes` bytes.
fn of(bytes: usize, seed: u64, piece: impl Fn(&mut Rng) -> Vec<char>) -> String {
    let mut rng = Rng::new(Seed::new(seed));
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        text.extend(piece(&mut rng));
    }
    cut(text, bytes)
}

fn letter(rng: &mut Rng) -> char {
    char::from(b'a' + rng.below(26) as u8)
}

/// Picks one of `count` characters.
fn pick(rng: &mut Rng, first: u32, count: u64) -> char {
    char::from_u32(first + rng.below(count) as u32).expect("surrogates are never requested")
}

/// Picks a syllable that a final consonant may join.
fn pick_lv(rng: &mut Rng) -> char {
    char::from_u32(0xac00 + 28 * rng.below(399) as u32).expect("a syllable")
}

fn spaced(rng: &mut Rng, first: u32, count: u64) -> Vec<char> {
    let length = 2 + rng.below(6);
    (0..length).map(|_| pick(rng, first, count)).chain([' ']).collect()
}

fn any_letter(rng: &mut Rng) -> char {
    let all = std::iter::repeat_with(|| char::from_u32(rng.below(0x1_2000) as u32));
    all.flatten().find(|c| c.is_alphabetic() && !c.is_ascii()).expect("many are letters")
}

/// Cuts a text down to at most `bytes` bytes.
fn cut(mut text: String, bytes: usize) -> String {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}
