//! The notes' Bloom filter, and Figure 1: the two orders of AND and OR.

use nearset::{
    Layout, Rng, Seed,
    family::{BitSampling, Hashed, Sampling},
    spec::Hasher,
};
use nearset_theory::{
    amplify::{Cascade, Step},
    bloom,
};

use crate::{
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings::{self, Positions},
    table::Table,
};

/// k, the notes' example.
const HASHES: u32 = 6;

/// Measures a Bloom filter of one array, as the notes define it.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    run.progress("the Bloom filter");
    let (elements, queries) = run.full_or_quick((100_000u64, 2_000_000u64), (20_000, 200_000));
    let least = f64::from(HASHES) / std::f64::consts::LN_2;
    let mut table = Table::new([
        "bits per element",
        "hashes k",
        "(1 - e^(-km/n))^k",
        "false positives, measured",
        "standard errors apart",
        "array still 0",
        "e^(-km/n)",
    ]);
    let mut largest = 0f64;
    let mut at_least = 1.0;
    for per_element in [least, 10.0] {
        let bits = (per_element * elements as f64).ceil();
        let mut rng = Rng::new(Seed::new(2));
        let mut array = vec![false; bits as usize];
        for _ in 0..u64::from(HASHES) * elements {
            array[rng.below(bits as u64) as usize] = true;
        }
        let zero = array.iter().filter(|set| !**set).count() as f64 / bits;
        // Hash values of an element that is not in are as random as these.
        let found = Rate::count((0..queries).map(|_| (0..HASHES).all(|_| array[rng.below(bits as u64) as usize])));
        let expected = bloom::false_positive(per_element, f64::from(HASHES));
        let apart = found.sigmas_from(expected);
        largest = largest.max(apart);
        if per_element == least {
            at_least = found.value();
        }
        table.row([
            significant(per_element, 3),
            HASHES.to_string(),
            significant(expected, 4),
            significant(found.value(), 4),
            format!("{apart:.1}"),
            significant(zero, 4),
            significant(libm::exp(-f64::from(HASHES) / per_element), 4),
        ]);
    }
    run.table("bloom", &table)?;
    run.require(largest <= 4.5, format!("the Bloom filter: {largest:.1} standard errors from the formula"));
    run.verdict(
        ("Section 2", "false positives are (1 - e^(-km/n))^k, although entries are not independent"),
        "bloom.tsv",
        "a formula; the assumption is referred to a book",
        &format!("{} elements: within {largest:.1} standard errors", count(elements as f64)),
        Outcome::reproduced_if(largest <= 4.5, "4.5 standard errors", "the measured rate is another"),
    );
    run.verdict(
        ("Section 2", "k = 6 and f ≤ .02 need 10 bits per element"),
        "bloom.tsv",
        "k = (n/m) ln 2 ≈ .6185 n/m, so n ≈ 10 m",
        &format!("n = 6 m / ln 2 = {} m bits are enough: {} accepted", significant(least, 3), significant(at_least, 3)),
        Outcome::Differs("ln 2 is .6931; .6185 is 2^(-ln 2), the factor by which each further bit per element multiplies the false positives".into()),
    );
    figure_1(run)
}

/// The notes' Figure 1: p, AND of 4 then OR of 4, OR of 4 then AND of 4.
const FIGURE_1: [(f64, f64, f64); 4] =
    [(0.2, 0.0064, 0.1215), (0.4, 0.0985, 0.5740), (0.6, 0.4260, 0.9015), (0.8, 0.8785, 0.9936)];

/// Compares the printed values with exact and measured ones, the latter over sampled bits.
fn figure_1(run: &mut Run) -> anyhow::Result<()> {
    const BITS: u32 = 10_000;
    run.progress("Figure 1");
    let (pairs, groups) = run.full_or_quick((400, 100), (50, 50));
    let mut table =
        Table::new(["p", "construction", "printed", "exact", "measured", "standard errors apart", "trials"]);
    let (mut as_printed, mut of_figure, mut of_lemmas) = (0, 0f64, 0f64);
    for (p, and_or, or_and) in FIGURE_1 {
        let seeds: Vec<u64> = (0..pairs).collect();
        let parts = in_parallel(&seeds, |&seed| -> anyhow::Result<[Rate; 4]> {
            let mut rng = Rng::new(Seed::new(seed).derive("figure 1", (10.0 * p) as u64));
            let family = BitSampling { bits: BITS, sampling: Sampling::Uniform };
            let hasher = Hasher::new(family, Layout::new(1, 16 * groups), Seed::new(seed))?;
            let a = strings::random(BITS, 1, &mut rng).remove(0);
            let differing = ((1.0 - p) * f64::from(BITS)).round() as usize;
            let b = strings::flipped(&a, Positions::new(BITS).draw(differing, &mut rng));
            let [mut first, mut second] = [Hashed::default(), Hashed::default()];
            hasher.hash(&a, &mut first)?;
            hasher.hash(&b, &mut second)?;
            let agree: Vec<bool> = first.keys.iter().zip(&second.keys).map(|(a, b)| a == b).collect();
            let fours = || agree.chunks_exact(4);
            let squares = || agree.chunks_exact(16).map(|functions| functions.chunks_exact(4));
            let all = |four: &[bool]| four.iter().all(|agrees| *agrees);
            let any = |four: &[bool]| four.iter().any(|agrees| *agrees);
            Ok([
                Rate::count(fours().map(all)),
                Rate::count(fours().map(any)),
                Rate::count(squares().map(|mut fours| fours.any(all))),
                Rate::count(squares().map(|mut fours| fours.all(any))),
            ])
        });
        let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let steps: [(&str, &[Step], Option<f64>); 4] = [
            ("AND of 4", &[Step::And(4)], None),
            ("OR of 4", &[Step::Or(4)], None),
            ("AND of 4, then OR of 4", &[Step::And(4), Step::Or(4)], Some(and_or)),
            ("OR of 4, then AND of 4", &[Step::Or(4), Step::And(4)], Some(or_and)),
        ];
        for (i, (name, steps, printed)) in steps.into_iter().enumerate() {
            let exact = Cascade::new(steps.iter().copied()).probability(p);
            let measured: Rate = parts.iter().map(|part| part[i]).sum();
            let apart = measured.sigmas_from(exact);
            match printed {
                Some(printed) => {
                    as_printed += usize::from((printed - exact).abs() <= 5.1e-5);
                    of_figure = of_figure.max(apart);
                }
                None => of_lemmas = of_lemmas.max(apart),
            }
            table.row([
                p.to_string(),
                name.to_owned(),
                printed.map_or("-".into(), |printed| format!("{printed:.4}")),
                significant(exact, 4),
                significant(measured.value(), 4),
                format!("{apart:.1}"),
                measured.of.to_string(),
            ]);
        }
    }
    run.table("figure-1", &table)?;
    // A string's functions sample it with replacement, and exactly so many of its bits differ.
    run.require(
        of_figure.max(of_lemmas) <= 4.5,
        format!("Figure 1: {of_figure:.1} and {of_lemmas:.1} standard errors"),
    );
    run.require(as_printed == 8, format!("Figure 1: {as_printed} of 8 as printed"));
    run.verdict(
        ("Figure 1; Section 3.5", "AND of 4 and OR of 4, in both orders"),
        "figure-1.tsv",
        "eight values",
        &format!("{as_printed} of 8 as printed; measured over sampled bits within {of_figure:.1} standard errors"),
        Outcome::reproduced_if(
            as_printed == 8 && of_figure <= 4.5,
            "half a unit of the fourth place; 4.5 standard errors",
            "a value is another",
        ),
    );
    run.verdict(
        ("Lemma 4.5; Lemma 4.6", "an AND has p^k, an OR 1-(1-p)^k"),
        "figure-1.tsv",
        "p^k; 1-(1-p)^k (stated of F_and, for F_or)",
        &format!("measured for k = 4 within {of_lemmas:.1} standard errors"),
        Outcome::reproduced_if(of_lemmas <= 4.5, "4.5 standard errors", "a measured rate is another"),
    );
    Ok(())
}
