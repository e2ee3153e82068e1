use std::iter;

use proptest::prelude::*;
use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

use super::{
    table::{Kind, page},
    words::{fold, words},
    *,
};
use crate::{
    hash::{Rng, mix},
    simd::{Level, at_level},
};

/// Computes the shingles as the module documentation defines them.
fn by_definition(shingling: Shingling, seed: Seed, text: &str) -> Vec<u64> {
    let length = shingling.length() as usize;
    let hash = |kind| ByteHash::new(seed.derive("shingle", kind));
    match shingling {
        Shingling::Words(_) => {
            let hashes: Vec<u64> = words(text).iter().map(|word| hash(0).hash(word.text.as_bytes())).collect();
            windows_or_whole(&hashes, length, rolled)
        }
        Shingling::Chars(_) => {
            let words = words(text);
            let mut joined = Vec::new();
            for (at, word) in words.iter().enumerate() {
                if at > 0 && !(word.lone && words[at - 1].lone) {
                    joined.push(' ');
                }
                joined.extend(word.text.chars());
            }
            windows_or_whole(&joined, length, |window| hash(1).hash(String::from_iter(window).as_bytes()))
        }
        Shingling::Bytes(_) => windows_or_whole(text.as_bytes(), length, |window| hash(2).hash(window)),
        Shingling::Code(_) => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
            let mut tokens: Vec<String> = Vec::new();
            let mut before = None;
            for c in text.chars() {
                let is_space = matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
                match tokens.last_mut() {
                    Some(token) if is_name(c) && before.is_some_and(is_name) => token.push(c),
                    _ if is_space => {}
                    _ => tokens.push(c.to_string()),
                }
                before = Some(c);
            }
            let hashes: Vec<u64> = tokens.iter().map(|token| hash(3).hash(token.as_bytes())).collect();
            windows_or_whole(&hashes, length, rolled)
        }
        Shingling::Kmers(_) => {
            let spaces = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
            let letters = text.replace(spaces, "").to_ascii_uppercase().replace('U', "T");
            let runs: Vec<&str> = letters.split(|c| !"ACGT".contains(c)).collect();
            let kmer = |start: &str| start.get(..length).map(canonical);
            let kmers: Vec<String> =
                runs.iter().flat_map(|run| (0..run.len()).filter_map(|at| kmer(&run[at..]))).collect();
            // The first of the longest.
            let longest = runs.iter().rev().max_by_key(|run| run.len()).filter(|run| !run.is_empty());
            let all = if kmers.is_empty() { longest.map(|run| canonical(run)).into_iter().collect() } else { kmers };
            all.iter().map(|kmer| hash(4).hash(kmer.as_bytes())).collect()
        }
    }
}

fn canonical(bases: &str) -> String {
    let opposite = |base: char| "TGCA".chars().nth("ACGT".find(base).unwrap()).unwrap();
    let complement: String = bases.chars().rev().map(opposite).collect();
    complement.min(bases.to_owned())
}

fn rolled(window: &[u64]) -> u64 {
    let sum = window.iter().fold(0u64, |sum, word| sum.wrapping_mul(BASE).wrapping_add(*word));
    mix(sum.wrapping_add((window.len() as u64).wrapping_mul(COUNT)))
}

fn windows_or_whole<T>(units: &[T], length: usize, hash: impl Fn(&[T]) -> u64) -> Vec<u64> {
    match units.len() {
        0 => Vec::new(),
        count if count < length => vec![hash(units)],
        _ => units.windows(length).map(hash).collect(),
    }
}

const SHINGLINGS: [Shingling; 13] = [
    Shingling::Words(1),
    Shingling::Words(5),
    Shingling::Words(40),
    Shingling::Chars(1),
    Shingling::Chars(9),
    Shingling::Chars(30),
    Shingling::Bytes(1),
    Shingling::Bytes(13),
    Shingling::Bytes(20),
    Shingling::Code(1),
    Shingling::Code(7),
    Shingling::Kmers(1),
    Shingling::Kmers(4),
];

fn check(text: &str) {
    let seed = Seed::new(5);
    for shingling in SHINGLINGS {
        let shingler = Shingler::new(shingling, seed).unwrap();
        let expected = by_definition(shingling, seed, text);
        let mut out = vec![1, 2, 3];
        for level in Level::available() {
            at_level(level, || shingler.shingles(text, &mut out));
            assert_eq!(out, expected, "{shingling}, {level:?}, {text:?}");
        }
    }
}

#[test]
fn words_of_every_length_at_every_offset() {
    for offset in 0..70 {
        for length in [1, 2, 8, 15, 16, 17, 32, 33, 63, 64, 65, 130] {
            let text = format!("{}{} Zz", ".".repeat(offset), "aB3".repeat(length).split_at(length).0);
            check(&text);
            check(text.trim_end_matches(" Zz"));
        }
    }
}

#[test]
fn other_scripts_at_every_offset() {
    for offset in 0..66 {
        for piece in ["é", "e\u{301}", "ß", "字", "\u{200b}", "\u{ad}", "≠", "\u{301}", "🦀", "İ", "\0"] {
            check(&format!("{} {}{piece}tail {piece}", "w".repeat(offset), "X".repeat(offset % 18)));
        }
    }
}

#[test]
fn texts_around_a_chunk() {
    let filler = |length: usize| "Lorem ipsum ".chars().cycle().take(length).collect::<String>();
    for length in 2030..2070 {
        check(&filler(length));
        check(&format!("{}straße und {}", filler(length), filler(40)));
        check(&"x".repeat(length));
    }
    check(&"字".repeat(2000));
    check(&format!("{} {}", "é".repeat(3000), "ñ ".repeat(3000)));
    check(&"a\0".repeat(5000));
    check(&"longer".repeat(1000));
}

#[test]
fn long_words_of_other_scripts() {
    for count in 1..80 {
        check(&"ж".repeat(count));
        check(&format!("{}\u{301}", "ж".repeat(count)));
        check(&format!("x{}", "\u{316}\u{301}".repeat(count)));
        check(&format!("字{}", "\u{301}\u{316}".repeat(count)));
    }
}

/// Compares the words of many random texts of six characters with the definition.
fn check_mixtures(seed: u64, alphabets: &[&[char]]) {
    let mut rng = Rng::new(Seed::new(seed));
    let seed = Seed::new(9);
    let shingler = Shingler::new(Shingling::Words(2), seed).unwrap();
    let mut out = Vec::new();
    for _ in 0..100_000 {
        let letter = |rng: &mut Rng| {
            let alphabet = alphabets[rng.below(alphabets.len() as u64) as usize];
            alphabet[rng.below(alphabet.len() as u64) as usize]
        };
        let text: String = (0..6).map(|_| letter(&mut rng)).collect();
        shingler.shingles(&text, &mut out);
        assert_eq!(out, by_definition(Shingling::Words(2), seed, &text), "{text:?}");
    }
}

fn kind(c: char) -> Kind {
    page(c.into()).info(c.into()).kind()
}

#[test]
fn characters_that_begin_afresh_do_not_affect_each_other() {
    let is_fresh = |&c: &char| matches!(kind(c), Kind::Fresh | Kind::FreshLone);
    let fresh: Vec<char> = ('\u{80}'..='\u{fffd}').filter(is_fresh).collect();
    assert!(fresh.len() > 40_000);
    check_mixtures(8, &[&fresh]);
}

#[test]
fn characters_that_depend_on_each_other_are_normalised_as_defined() {
    let is_dependent = |&c: &char| matches!(kind(c), Kind::Letter | Kind::Lone | Kind::Mark);
    let dependent: Vec<char> = ('\u{80}'..=char::MAX).filter(is_dependent).collect();
    let composes = |&c: &char| page(c.into()).parts(c.into())[0].composes();
    let composing: Vec<char> = dependent.iter().copied().filter(composes).collect();
    assert!(dependent.len() > 500 && composing.len() > 50);
    // Letters with which they may compose, or be reordered: those that decompose, without Hangul, of which there are
    // too many.
    let has_parts = |&c: &char| page(c.into()).parts(c.into()).len() > 1;
    let composed: Vec<char> = ('\u{80}'..'\u{3400}').chain('\u{f900}'..='\u{1ffff}').filter(has_parts).collect();
    let hangul: Vec<char> = ('\u{1100}'..='\u{11ff}').chain(('가'..='힣').step_by(14)).collect();
    let latin_and_greek: Vec<char> = ('a'..='z').chain('α'..='ω').chain("AIİßẞΐᾳ\u{345}\u{ad}".chars()).collect();
    check_mixtures(10, &[&dependent, &composing, &composed, &latin_and_greek]);
    check_mixtures(11, &[&composing, &latin_and_greek]);
    check_mixtures(12, &[&hangul]);
    // Only marks, which are put in order, seldom compose and are longer than what is sorted by insertion.
    let marks: Vec<char> = dependent.iter().copied().filter(|&c| kind(c) == Kind::Mark).collect();
    let mut rng = Rng::new(Seed::new(13));
    for letter in "eαか한".chars() {
        let any = |_| marks[rng.below(marks.len() as u64) as usize];
        check(&iter::once(letter).chain((0..200).map(any)).collect::<String>());
    }
}

/// Short words and segments are remembered by their bytes, and more of them occur here than there is room for.
#[test]
fn what_was_seen_before_changes_no_word() {
    let mut rng = Rng::new(Seed::new(14));
    let mut below = |count: usize| rng.below(count as u64) as usize;
    let letters: Vec<char> = "aeouxAEÖßİﬁαωᾳᾂΐжЁكלकतอのか字\u{1100}\u{1112}가한\u{958}𝒜".chars().collect();
    let marks: Vec<char> =
        "\u{301}\u{300}\u{308}\u{323}\u{316}\u{345}\u{344}\u{64b}\u{651}\u{93c}\u{94d}\u{93e}\u{e38}\u{e48}\u{e31}\
                            \u{3099}\u{1161}\u{1175}\u{11a8}\u{ad}\u{200d}\u{34f}"
            .chars()
            .collect();
    let mut segment = |most: usize| -> String {
        let letter = letters[below(letters.len())];
        let count = below(most + 1);
        iter::once(letter).chain((0..count).map(|_| marks[below(marks.len())])).collect()
    };
    let few: Vec<String> = (0..200).map(|_| segment(3)).collect();
    let many: Vec<String> = (0..20_000).map(|_| segment(5)).collect();
    let seed = Seed::new(9);
    for (shingling, segments) in
        [(Shingling::Words(1), &few), (Shingling::Words(1), &many), (Shingling::Chars(3), &few)]
    {
        let shingler = Shingler::new(shingling, seed).unwrap();
        for _ in 0..40 {
            let text: String = (0..1000)
                .flat_map(|_| [&segments[below(segments.len())], ["", "", " ", "。", "é", "x"][below(6)]])
                .collect();
            let expected = by_definition(shingling, seed, &text);
            let mut out = Vec::new();
            for _ in 0..2 {
                shingler.shingles(&text, &mut out);
                assert!(out == expected, "{shingling}, {text:?}");
            }
            // Another thread remembers nothing yet.
            let fresh = std::thread::spawn(move || {
                shingler.shingles(&text, &mut out);
                out
            });
            assert!(fresh.join().unwrap() == expected);
        }
    }
}

/// `table` and `segment` rely on this for every character that exists.
#[test]
fn folding_moves_no_mark() {
    let class_of = canonical_combining_class;
    for c in ('\0'..=char::MAX).filter(|&c| iter::once(c).nfd().eq([c])) {
        let folded: Vec<u8> = fold(c).nfd().map(class_of).collect();
        let kept = if class_of(c) == 0 { folded.iter().all(|&class| class == 0) } else { folded == [class_of(c)] };
        assert!(kept || c == '\u{345}' && folded == [0], "{c:?} has class {}, then {folded:?}", class_of(c));
    }
}

#[test]
fn stacks_of_marks_of_any_height() {
    for marks in ["\u{301}", "\u{301}\u{316}", "\u{345}\u{301}\u{344}", "\u{1161}\u{11a8}", "\u{93c}\u{94d}"] {
        for letter in ["e", "α", "ᾳ", "\u{1112}", "한", "का", "字", "x\u{ad}"] {
            for count in [1, 2, 9, 40, 1500] {
                check(&format!("{letter}{} {letter}{}z", marks.repeat(count), marks.repeat(count)));
            }
        }
    }
}

#[test]
fn a_short_text_is_one_shingle_and_an_empty_one_none() {
    for shingling in SHINGLINGS {
        let shingler = Shingler::new(shingling, Seed::new(1)).unwrap();
        assert!(shingler.shingle_set("").is_empty());
        assert_eq!(shingler.shingle_set("a").len(), 1);
        assert_ne!(shingler.shingle_set("cat"), shingler.shingle_set("dog"));
    }
    let shingler = Shingler::new(Shingling::default(), Seed::new(1)).unwrap();
    assert!(shingler.shingle_set(" — ? \n").is_empty());
    assert_eq!(shingler.shingle_set("one two three").len(), 1);
}

#[test]
fn kinds_seeds_and_word_order_tell_shingles_apart() {
    let one = |shingling, seed, text: &str| Shingler::new(shingling, Seed::new(seed)).unwrap().shingle_set(text)[0];
    let mut hashes = vec![
        one(Shingling::Words(1), 1, "same"),
        one(Shingling::Chars(4), 1, "same"),
        one(Shingling::Bytes(4), 1, "same"),
        one(Shingling::Words(1), 2, "same"),
        one(Shingling::Words(5), 1, "a b b a"),
        one(Shingling::Words(5), 1, "b a a b"),
        one(Shingling::Words(5), 1, "a a"),
        one(Shingling::Words(5), 1, "aa"),
        one(Shingling::Words(5), 1, "a a a"),
    ];
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

#[test]
fn orders_of_five_words_lose_at_most_six_bits() {
    let lost = |signs: &[i64]| {
        let sum = signs.iter().fold(0u64, |sum, &sign| sum.wrapping_mul(BASE).wrapping_add(sign as u64));
        sum.trailing_zeros()
    };
    let signs = |code: u32| (0..5).map(|place| i64::from(code / 3u32.pow(place) % 3) - 1).collect::<Vec<i64>>();
    let all = (0..3u32.pow(5)).map(signs).filter(|signs| signs.iter().any(|&sign| sign != 0));
    assert_eq!(all.map(|signs| lost(&signs)).max(), Some(6));

    let thue_morse: Vec<i64> = (0..128u32).map(|place| 1 - 2 * i64::from(place.count_ones() % 2)).collect();
    assert_eq!(lost(&thue_morse), 34);
}

#[test]
fn a_bag_counts_what_a_set_holds() {
    let shingler = Shingler::new(Shingling::Words(1), Seed::new(1)).unwrap();
    let bag = shingler.bag("to be or not to be");
    assert_eq!(bag.iter().map(|&(hash, _)| hash).collect::<Vec<u64>>(), shingler.shingle_set("to be or not"));
    assert_eq!(bag.iter().map(|&(_, count)| count).sum::<f64>(), 6.0);
    assert_eq!(bag.iter().filter(|&&(_, count)| count == 2.0).count(), 2);
}

#[test]
fn chinese_shingles_by_runs_of_characters() {
    let words = Shingler::new(Shingling::Words(5), Seed::new(1)).unwrap();
    assert_eq!(words.shingle_set("我们在这里，看书。").len(), 3);
    let chars = Shingler::new(Shingling::Chars(5), Seed::new(1)).unwrap();
    assert_eq!(chars.shingle_set("我们在这里看书").len(), 3);
    assert_eq!(chars.shingle_set("我们在这里看书"), chars.shingle_set("我们 在这里，看书"));
}

proptest! {
    #[test]
    fn random_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn texts_of_awkward_pieces(pieces in prop::collection::vec(
        prop_oneof!["[a-zA-Z0-9]{1,20}", "[ .,'_\0-]{1,3}", "[éßẞΣςIİıﬁ\u{301}\u{316}\u{345}字のー\u{3099}ที่가\u{1161}\u{11a8}كِ\u{ad}\u{200b}]{1,4}", "[а-яА-ЯЁё]{1,20}"],
        0..60,
    )) {
        check(&pieces.concat());
    }
}

#[test]
fn both_strands_have_the_same_kmers() {
    let shingler = Shingler::new(Shingling::Kmers(5), Seed::new(1)).unwrap();
    let set = |text: &str| shingler.shingle_set(text);
    assert_eq!(set("ACGTTGCAACG"), set("CGTTGCAACGT"));
    assert_eq!(set("acguugc\r\n AACG"), set("ACGTTGCAACG"));
    assert_eq!(set("ACGTANACGTA").len(), 1, "N is no base, and ends a run");
    assert_eq!(set("ACG"), set("CGT"), "a text shorter than a shingle is one");
    assert_ne!(set("ACG"), set("ACC"));
    assert!(set("--- NN").is_empty());
    let mut shingles = Vec::new();
    shingler.shingles("GATTACAGATTACA", &mut shingles);
    assert_eq!(shingles.len(), 10);
    for text in ["ACGT", "ACG TNNACGUACG\nTTTx\u{e9}GGGGGA", "nacgtn", "UUUUU", "A", "AxCGxT"] {
        check(text);
    }
}

#[test]
fn code_is_cut_at_every_sign_and_its_layout_does_not_count() {
    let shingler = Shingler::new(Shingling::Code(2), Seed::new(1)).unwrap();
    let set = |text: &str| shingler.shingle_set(text);
    assert_eq!(set("if (a+b>1) {\n\tf_1(x);\n}"), set("if ( a + b > 1 ) { f_1 ( x ) ; }"));
    let different =
        ["a+b", "a-b", "A+b", "a b", "ab", "C", "C++", "C#", "na\u{ef}ve", "naive", "a\u{b}b_", "a=b", "a==b"];
    for (i, one) in different.iter().enumerate() {
        assert!(different[..i].iter().all(|other| set(one) != set(other)), "{one}");
    }
    assert_eq!(set("x = y"), set("x\u{b}=\r\ny "));
    let mut shingles = Vec::new();
    shingler.shingles("a->b", &mut shingles);
    assert_eq!(shingles.len(), 3, "a-, ->, >b");
    shingler.shingles("name", &mut shingles);
    assert_eq!(shingles.len(), 1, "a text shorter than a shingle is one");
    assert!(set(" \n\t").is_empty());
    let mut normal = Vec::new();
    shingler.normalise("\tif(C++ >na\u{ef}ve)\n", &mut normal);
    assert_eq!(normal, "if ( C + + > na\u{ef}ve )".as_bytes());
    // Words make the same of these.
    let words = Shingler::new(Shingling::Words(2), Seed::new(1)).unwrap();
    assert_eq!(words.shingle_set("a+b"), words.shingle_set("a-b"));
}
