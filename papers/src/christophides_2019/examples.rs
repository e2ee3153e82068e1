//! The slides' worked examples, recalculated with nearset's shingles and sets.

use std::ops::Range;

use nearset::{Rng, Seed, Shingler, Shingling, item::SortedSet};

use crate::{
    format::{count, significant},
    run::{Outcome, Run},
    table::Table,
};

/// One example: the slide, what is calculated, the printed value and ours.
struct Example {
    slide: u32,
    what: &'static str,
    printed: f64,
    ours: f64,
    relation: Relation,
}

/// How the printed value is meant.
#[derive(Clone, Copy)]
enum Relation {
    /// Equal, to this difference: half a unit of the last printed place.
    Within(f64),
    AtMost,
    AtLeast,
}

impl Example {
    fn agrees(&self) -> bool {
        match self.relation {
            Relation::Within(difference) => (self.printed - self.ours).abs() <= difference * (1.0 + 1e-9),
            Relation::AtMost => self.ours <= self.printed,
            Relation::AtLeast => self.ours >= self.printed,
        }
    }
}

const fn example(slide: u32, what: &'static str, printed: f64, ours: f64, within: f64) -> Example {
    Example { slide, what, printed, ours, relation: Relation::Within(within) }
}

/// Recalculates them.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    run.progress("worked examples");
    let bytes = |length| Shingler::new(Shingling::Bytes(length), Seed::default());
    let [first, second] = ["abcab", "cabc"].map(|text| bytes(2).map(|shingler| shingler.shingle_set(text)));
    let (first, second) = (first?, second?);
    let nines = bytes(9)?.shingle_set("aaabbbcccabcabcabc");
    let word = changed_by_a_word(10)?;
    let (halves, moved) = (changed_by_moving(10, 0..500, 500..1_000)?, changed_by_moving(10, 200..500, 500..800)?);
    let band = |similarity: f64| similarity.powi(5);
    let missed = |similarity: f64| (1.0 - band(similarity)).powi(20);
    let [million, ten_million, hundred_thousand] = [1e6f64, 1e7, 1e5].map(|n| n * (n - 1.0) / 2.0);
    let day = 1e5;
    let examples = [
        example(6, "2-shingles of abcab", 3.0, first.len() as f64, 0.0),
        Example {
            slide: 6,
            what: "10-shingles that change with a word of 5 characters: those within 10 of it",
            printed: 24.0,
            ours: word,
            relation: Relation::AtMost,
        },
        Example {
            slide: 6,
            what: "10-shingles that change when two halves change places: 2 k",
            printed: 20.0,
            ours: halves,
            relation: Relation::AtMost,
        },
        Example {
            slide: 6,
            what: "10-shingles that change when two paragraphs in the middle do: 2 k",
            printed: 20.0,
            ours: moved,
            relation: Relation::AtMost,
        },
        example(7, "2-shingles that abcab and cabc do not share", 0.0, 3.0 * (1.0 - jaccard(&first, &second)), 0.0),
        example(8, "bytes of two 9-shingles, hashed to 4 bytes each", 8.0, 4.0 * 2.0, 0.0),
        example(9, "4-shingles of 20 characters", 160_000.0, 20f64.powi(4), 0.0),
        example(12, "Jaccard similarity, 3 common of 8", 0.375, jaccard(&[1, 2, 3, 4, 5], &[3, 4, 5, 6, 7, 8]), 0.0),
        example(13, "comparisons of a million documents", 5e11, million, 1e6),
        example(13, "days for them, a million per second", 5.0, million / 1e6 / day, 0.01),
        Example {
            slide: 13,
            what: "days for ten million: more than a year",
            printed: 365.0,
            ours: ten_million / 1e6 / day,
            relation: Relation::AtLeast,
        },
        example(15, "similarity of C1 and C2", 0.4, jaccard(&[1, 2, 4], &[0, 2, 4, 5]), 0.0),
        example(25, "bytes of a signature of 100 values", 400.0, 4.0 * 100.0, 0.0),
        example(33, "comparisons of ten million columns", 1e14, ten_million, 1e12),
        example(39, "MB of 100,000 signatures", 40.0, 1e5 * 100.0 * 4.0 / 1e6, 0.0),
        example(39, "pairs of them", 5e9, hundred_thousand, 1e5),
        example(40, "one band at .8", 0.328, band(0.8), 5e-4),
        example(40, "no band of 20 at .8", 0.00035, missed(0.8), 5e-6),
        example(41, "one band at .3", 0.00243, band(0.3), 5e-6),
        example(41, "some band of 20 at .3", 0.0474, 1.0 - missed(0.3), 5e-5),
    ];
    let mut table = Table::new(["slide", "what", "printed", "ours", "to within", "agrees"]);
    let number = |value: f64| if value.abs() >= 1e4 { count(value) } else { significant(value, 4) };
    for it in &examples {
        let agrees = it.agrees();
        let within = match it.relation {
            Relation::Within(0.0) => "exact".into(),
            Relation::Within(difference) => number(difference),
            Relation::AtMost => "at most".into(),
            Relation::AtLeast => "at least".into(),
        };
        table.row([
            it.slide.to_string(),
            it.what.to_owned(),
            number(it.printed),
            number(it.ours),
            within,
            if agrees { "yes".into() } else { "no".to_owned() },
        ]);
    }
    let signatures = one_pass();
    let shown = signatures.map(|column| format!("({}, {})", column[0], column[1]));
    let as_printed = signatures == [[1, 2], [0, 0]];
    table.row([
        "28",
        "signatures of both columns",
        "(1, 2), (0, 0)",
        &shown.join(", "),
        "-",
        if as_printed { "yes" } else { "no" },
    ]);
    run.table("examples", &table)?;
    run.require(as_printed, "slide 28: other signatures");
    run.require(nines.len() == 10, "a text of 18 bytes has ten 9-shingles");
    for (place, slides, claim) in [
        ("slide 6; slide 7", &[6, 7][..], "shingles of small texts, and what an edit changes"),
        ("slide 8; slide 9; slide 25; slide 39", &[8, 9, 25, 39], "sizes of hashed shingles and signatures"),
        ("slide 12; slide 15", &[12, 15], "Jaccard similarities of two drawn examples"),
        ("slide 13", &[13], "comparing all pairs takes days and years"),
        ("slide 33", &[33], "10⁷ columns are some 10¹⁴ comparisons, 3 years"),
        ("slide 40", &[40], "at .8 a band agrees with .328, and .00035 of the pairs are missed"),
        ("slide 41", &[41], "at .3 a pair becomes a candidate with .0474"),
    ] {
        let of = || examples.iter().filter(|it| slides.contains(&it.slide));
        let agree = of().filter(|it| it.agrees()).count();
        let (ours, why) = match place {
            "slide 33" => (
                "n(n-1)/2 = 5 · 10¹³: half of it, 1.6 years".to_owned(),
                "the slide's own formula has the half that its example leaves out",
            ),
            "slide 41" => {
                ("1-(1-.00243)²⁰ = .0475".to_owned(), "the printed value was cut off, not rounded: it is .04749")
            }
            "slide 40" => (
                ".32768 and .000356: .00036".to_owned(),
                "the slide goes on from the rounded .328, and .000353 was cut off; from .32768 it is .00036",
            ),
            "slide 6; slide 7" => (
                format!(
                    "{agree} of {} values; two paragraphs that change places in the middle change 3(k-1) = 27",
                    of().count()
                ),
                "where two paragraphs in the middle of a text change places there are three new borders, each of which k - 1 shingles cross; 2 k holds for one or two borders",
            ),
            _ => (format!("{agree} of {} values", of().count()), "a value is another"),
        };
        let all = agree == of().count();
        let known = ["slide 6; slide 7", "slide 33", "slide 40", "slide 41"];
        run.require(all != known.contains(&place), format!("{place}: {agree} values agree"));
        run.verdict(
            (place, claim),
            "examples.tsv",
            "see the table",
            &ours,
            Outcome::reproduced_if(all, "as in the table", why),
        );
    }
    run.verdict(
        ("slide 26; slide 27; slide 28", "one pass over the rows gives the signatures"),
        "examples.tsv",
        "(1, 2) and (0, 0)",
        &shown.join(" and "),
        Outcome::reproduced_if(as_printed, "exact", "a value is another"),
    );
    Ok(())
}

/// A text of distinct-looking characters, in which shingles do not repeat.
fn text(length: usize, rng: &mut Rng) -> String {
    (0..length).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// Counts the shingles of a text that are gone once a word of five characters is another.
fn changed_by_a_word(length: u16) -> anyhow::Result<f64> {
    let mut rng = Rng::new(Seed::new(6));
    let before = text(1_000, &mut rng);
    let after = format!("{}{}{}", &before[..500], "-----", &before[505..]);
    gone(&before, &after, length)
}

/// Counts the shingles that are gone once two neighbouring paragraphs have changed places.
fn changed_by_moving(length: u16, first: Range<usize>, second: Range<usize>) -> anyhow::Result<f64> {
    let mut rng = Rng::new(Seed::new(7));
    let before = text(1_000, &mut rng);
    let (start, end) = (&before[..first.start], &before[second.end..]);
    let after = format!("{start}{}{}{end}", &before[second], &before[first]);
    gone(&before, &after, length)
}

fn gone(before: &str, after: &str, length: u16) -> anyhow::Result<f64> {
    let shingler = Shingler::new(Shingling::Bytes(length), Seed::default())?;
    let (before, after) = (shingler.shingle_set(before), shingler.shingle_set(after));
    Ok(before.iter().filter(|shingle| after.binary_search(shingle).is_err()).count() as f64)
}

/// Slide 28: rows 1 to 5, columns {1, 3, 4} and {2, 3, 5}, h = x mod 5 and g = 2x + 1 mod 5.
fn one_pass() -> [[u32; 2]; 2] {
    let columns: [&[u32]; 2] = [&[1, 3, 4], &[2, 3, 5]];
    let mut signatures = [[u32::MAX; 2]; 2];
    for row in 1..=5 {
        for (column, signature) in columns.iter().zip(&mut signatures) {
            if column.contains(&row) {
                let values = [row % 5, (2 * row + 1) % 5];
                signature.iter_mut().zip(values).for_each(|(least, value)| *least = value.min(*least));
            }
        }
    }
    signatures
}

/// The similarity of two sets.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let [a, b] = [a, b].map(SortedSet::from);
    a.jaccard(&b).value()
}
