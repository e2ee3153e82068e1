//! Table 1 and Figures 1 and 2: the filter as printed, for 1 to 25 tables, in both readings of "flipping".

use anyhow::ensure;
use nearset::{
    Rng, Seed, Spec,
    family::{BitSampling, Sampling},
    spec::DistanceSensitive,
};
use nearset_theory::distance_sensitive::{self, Filter, Noise};

use super::{
    FAR, READINGS, SETTINGS, Setting, reading_name,
    workload::{LENGTH, Queries},
};
use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Series, Shape},
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings,
    table::Table,
};

pub const MOST_TABLES: u32 = 25;
/// The number of trials behind a printed number: 10 runs of 50,000 queries.
const PRINTED_TRIALS: u64 = 500_000;

/// A row of the paper's Table 1.
struct Printed {
    items: u64,
    tables: u32,
    /// k l', the number of sampled bits.
    sampled: u32,
    /// m / n l, the filter's size as a part of the strings'.
    part: f64,
    threshold: u32,
    false_positive: f64,
    false_negative: f64,
}

const fn printed(items: u64, tables: u32, threshold: u32, false_positive: f64, false_negative: f64) -> Printed {
    // The columns are proportional to k: 21 and 24 samples, .032 and .0256 for each table.
    let (rows, part) = if items == 1_000 { (21, 0.032) } else { (24, 0.0256) };
    let (sampled, part) = (tables * rows, tables as f64 * part);
    Printed { items, tables, sampled, part, threshold, false_positive, false_negative }
}

const TABLE_1: [Printed; 10] = [
    printed(1_000, 5, 1, 0.047440, 0.124236),
    printed(1_000, 10, 1, 0.092350, 0.015366),
    printed(1_000, 15, 1, 0.134926, 0.001934),
    printed(1_000, 20, 2, 0.015720, 0.002816),
    printed(1_000, 25, 2, 0.023874, 0.000372),
    printed(10_000, 5, 1, 0.025958, 0.019746),
    printed(10_000, 10, 2, 0.001338, 0.004950),
    printed(10_000, 15, 3, 0.000068, 0.001250),
    printed(10_000, 20, 3, 0.000158, 0.000034),
    printed(10_000, 25, 4, 0.000006, 0.000012),
];

/// The results for one number of tables.
pub struct Measured {
    pub setting: Setting,
    pub noise: Noise,
    pub tables: u32,
    pub threshold: u32,
    pub false_positive: Rate,
    pub false_negative: Rate,
    pub hits: Hits,
}

/// How many near and how many far queries hit each number of tables.
#[derive(Clone)]
pub struct Hits {
    near: Vec<u64>,
    far: Vec<u64>,
}

impl Hits {
    /// Returns the false positives and the false negatives at a threshold.
    pub fn errors(&self, threshold: u32) -> (Rate, Rate) {
        let accepted = |hits: &[u64]| Rate { yes: hits[threshold as usize..].iter().sum(), of: hits.iter().sum() };
        (accepted(&self.far), accepted(&self.near).miss())
    }

    /// Returns the threshold at which the larger of both errors is least.
    pub fn best_threshold(&self) -> u32 {
        let larger = |threshold: &u32| {
            let (positive, negative) = self.errors(*threshold);
            positive.value().max(negative.value())
        };
        (1..self.near.len() as u32).min_by(|a, b| larger(a).total_cmp(&larger(b))).unwrap_or(1)
    }

    fn add(mut self, other: &Self) -> Self {
        for (own, other) in [(&mut self.near, &other.near), (&mut self.far, &other.far)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
        self
    }

    /// Returns the mean part of the tables that near and that far queries hit.
    fn means(&self) -> [f64; 2] {
        [&self.near, &self.far].map(|hits| {
            let total: u64 = hits.iter().sum();
            let sum: u64 = (0..).zip(hits).map(|(hit, count): (u64, _)| hit * count).sum();
            sum as f64 / (total as f64 * (hits.len() - 1) as f64)
        })
    }
}

impl Measured {
    /// Returns the best threshold with its false positives and false negatives: the paper tells to tune it (Section 2).
    pub fn tuned(&self) -> (u32, Rate, Rate) {
        let threshold = self.hits.best_threshold();
        let (positive, negative) = self.hits.errors(threshold);
        (threshold, positive, negative)
    }

    fn exact(&self) -> Filter {
        Filter::printed(self.setting.items as f64, self.setting.near, FAR, self.tables)
    }

    pub fn expected_positive(&self) -> f64 {
        self.exact().false_positive(FAR, self.noise)
    }

    pub fn expected_negative(&self) -> f64 {
        self.exact().false_negative(self.setting.near, self.noise)
    }

    /// Returns the larger of the two distances from the exact binomials, in standard errors.
    fn sigmas(&self) -> f64 {
        let positive = self.false_positive.sigmas_from(self.expected_positive());
        positive.max(self.false_negative.sigmas_from(self.expected_negative()))
    }

    pub fn bits_per_item(&self) -> f64 {
        self.exact().bits_per_item()
    }
}

/// Runs the experiment and draws it.
pub fn run(run: &mut Run) -> anyhow::Result<Vec<Measured>> {
    let (runs, queries) = run.full_or_quick((10, 50_000), (2, 10_000));
    let numbers: Vec<u32> = run.full_or_quick((1..=MOST_TABLES).collect(), vec![5, 10, 15, 20, 25]);
    let mut all = Vec::new();
    for setting in SETTINGS {
        for noise in READINGS {
            run.progress(format!("{} strings, {}", count(setting.items as f64), reading_name(noise)));
            let seeds: Vec<u64> = (0..runs).collect();
            let parts = in_parallel(&seeds, |&seed| {
                one_run(setting, Sampling::Uniform, noise, &numbers, queries, Seed::new(seed))
            });
            let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            for (i, &tables) in numbers.iter().enumerate() {
                let threshold = Filter::printed(setting.items as f64, setting.near, FAR, tables).threshold;
                let hits = parts[1..].iter().fold(parts[0][i].clone(), |sum, part| sum.add(&part[i]));
                let (false_positive, false_negative) = hits.errors(threshold);
                all.push(Measured { setting, noise, tables, threshold, false_positive, false_negative, hits });
            }
        }
    }
    run.table("figures-1-2", &table(&all))?;
    for (setting, name) in SETTINGS.into_iter().zip(["figure-1", "figure-2"]) {
        run.figure(name, &figure(setting, &all, runs, queries))?;
    }
    judge(run, &all)?;
    Ok(all)
}

/// Counts hits for each number of tables, over one set of strings and one draw of functions.
pub fn one_run(
    setting: Setting,
    sampling: Sampling,
    noise: Noise,
    numbers: &[u32],
    queries: usize,
    seed: Seed,
) -> anyhow::Result<Vec<Hits>> {
    let spec = |tables| -> anyhow::Result<Spec> {
        let Setting { items: capacity, near } = setting;
        let paper = DistanceSensitive { length: LENGTH, capacity, near, far: FAR, tables };
        let family = BitSampling { bits: LENGTH, sampling }.into();
        let mut spec = paper.printed(seed.derive("filter", capacity))?;
        spec.family = family;
        Ok(spec)
    };
    let mut items = strings::random(LENGTH, setting.items, &mut Rng::new(seed.derive("strings", setting.items)));
    let mut drawn = Queries::new(&mut items, &spec(MOST_TABLES)?, seed.derive("queries", setting.items))?;
    let stored = drawn.stored()?;
    let near = drawn.draw(noise, setting.near, queries)?;
    let far = drawn.draw(noise, FAR, queries)?;

    numbers
        .iter()
        .map(|&tables| {
            // Functions are drawn one after the other, so a filter of fewer tables has the first functions of a larger
            // one, and a string needs to be hashed only once.
            let first = |keys: &[Option<_>]| -> Vec<Option<_>> {
                keys.chunks(MOST_TABLES as usize).flat_map(|keys| &keys[..tables as usize]).copied().collect()
            };
            let threshold = Filter::printed(setting.items as f64, setting.near, FAR, tables).threshold;
            let mut filter = nearset::Filter::new(&spec(tables)?.into())?;
            filter.insert_keys(&first(&stored))?;
            let its_own = filter.contains_all(&items[..10])?;
            ensure!(
                its_own.iter().all(|near| *near),
                "{tables} tables do not have the first functions of {MOST_TABLES}"
            );
            let hits = |keys: &[Option<_>]| -> anyhow::Result<Vec<u64>> {
                let mut hits = vec![0; tables as usize + 1];
                for found in filter.contains_keys(keys)? {
                    ensure!(found.near == (found.hits >= threshold), "{found:?} at a threshold of {threshold}");
                    hits[found.hits as usize] += 1;
                }
                Ok(hits)
            };
            Ok(Hits { near: hits(&first(&near))?, far: hits(&first(&far))? })
        })
        .collect()
}

fn table(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "strings",
        "reading",
        "sampled bits l'",
        "tables k",
        "threshold",
        "bits per string",
        "false positives",
        "exact",
        "false negatives",
        "exact",
        "bound on fp",
        "bound on fn",
        "trials",
        "largest deviation, standard errors",
    ]);
    for row in all {
        let rows = row.exact().rows;
        let near = row.setting.near;
        table.row([
            row.setting.items.to_string(),
            reading_name(row.noise).to_owned(),
            rows.to_string(),
            row.tables.to_string(),
            row.threshold.to_string(),
            format!("{:.0}", row.bits_per_item()),
            significant(row.false_positive.value(), 4),
            significant(row.expected_positive(), 4),
            significant(row.false_negative.value(), 4),
            significant(row.expected_negative(), 4),
            significant(distance_sensitive::false_positive_bound(near, rows, row.tables), 4),
            significant(distance_sensitive::false_negative_bound(near, rows, row.tables), 4),
            row.false_positive.of.to_string(),
            format!("{:.1}", row.sigmas()),
        ]);
    }
    table
}

fn figure(setting: Setting, all: &[Measured], runs: u64, queries: usize) -> Figure {
    let panel = |noise| {
        let rows: Vec<&Measured> = all.iter().filter(|row| row.setting == setting && row.noise == noise).collect();
        let curve = |value: fn(&Measured) -> f64| rows.iter().map(move |row| (f64::from(row.tables), value(row)));
        let dots =
            |rate: fn(&Measured) -> Rate| rows.iter().map(move |row| Point::measured(f64::from(row.tables), rate(row)));
        let mut series = Vec::new();
        if noise == Noise::Rerandomise {
            let printed = TABLE_1.iter().filter(|row| row.items == setting.items);
            let points = printed.flat_map(|row| {
                [(f64::from(row.tables), row.false_positive), (f64::from(row.tables), row.false_negative)]
            });
            series.push(Series::new("printed in Table 1", Shape::Squares, Colour::Black, points));
        }
        series.extend([
            Series::new("false positives", Shape::Dots, Colour::Vermilion, dots(|row| row.false_positive)),
            Series::new("", Shape::Line, Colour::Vermilion, curve(Measured::expected_positive)),
            Series::new("false negatives", Shape::Dots, Colour::Blue, dots(|row| row.false_negative)),
            Series::new("", Shape::Line, Colour::Blue, curve(Measured::expected_negative)),
        ]);
        Panel {
            title: match noise {
                Noise::Rerandomise => "the fraction is drawn anew (half of it stays)".into(),
                Noise::Flip => "the fraction is flipped, as the text says".into(),
            },
            x: Axis::even("tables k").within(0.0, 26.0),
            y: Axis::powers("rate").within(1e-6, 1.0),
            series,
            ..Panel::default()
        }
    };
    let Setting { items, near, .. } = setting;
    Figure {
        title: format!("Errors of the filter as printed, {} strings of 65,536 bits", count(items as f64)),
        notes: vec![format!(
            "ε = {near}, δ = {FAR}, threshold ⌈k(1-ε)^l′/2⌉; lines are exact tails, dots {runs} runs of {} near and far queries",
            count(queries as f64)
        )],
        panels: READINGS.into_iter().map(panel).collect(),
        columns: 2,
    }
}

/// Compares with Table 1 side by side, and gives the verdicts on it.
fn judge(run: &mut Run, all: &[Measured]) -> anyhow::Result<()> {
    let mut table = Table::new([
        "n",
        "k",
        "k l'",
        "m / n l",
        "threshold",
        "fp printed",
        "fp drawn anew",
        "standard errors apart",
        "fp flipped",
        "fn printed",
        "fn drawn anew",
        "standard errors apart",
        "fn flipped",
        "best threshold, flipped",
        "its fp",
        "its fn",
    ]);
    let mut columns_agree = true;
    let (mut within, mut largest, mut flipped_within) = (0, 0f64, 0);
    for row in &TABLE_1 {
        let find =
            |noise| all.iter().find(|m| m.setting.items == row.items && m.noise == noise && m.tables == row.tables);
        let (Some(anew), Some(flipped)) = (find(Noise::Rerandomise), find(Noise::Flip)) else { continue };
        run.require(anew.threshold == row.threshold, format!("threshold {} of k = {}", anew.threshold, row.tables));
        let as_printed = |rate: f64| Rate { yes: (rate * PRINTED_TRIALS as f64).round() as u64, of: PRINTED_TRIALS };
        let (positive, negative) = (as_printed(row.false_positive), as_printed(row.false_negative));
        let apart = [anew.false_positive.sigmas_apart(positive), anew.false_negative.sigmas_apart(negative)];
        for (name, apart, printed, expected) in [
            ("false positives", apart[0], positive, anew.expected_positive()),
            ("false negatives", apart[1], negative, anew.expected_negative()),
        ] {
            let exact = printed.sigmas_from(expected);
            let (n, k) = (row.items, row.tables);
            run.require(
                apart <= 4.0,
                format!("Table 1, n = {n}, k = {k}, {name}: {apart:.1} standard errors from ours"),
            );
            run.require(
                exact <= 4.0,
                format!("Table 1, n = {n}, k = {k}, {name}: {exact:.1} standard errors from the tail"),
            );
            within += usize::from(apart <= 4.0 && exact <= 4.0);
            largest = largest.max(apart);
        }
        flipped_within += usize::from(flipped.false_positive.sigmas_apart(positive) <= 4.0)
            + usize::from(flipped.false_negative.sigmas_apart(negative) <= 4.0);
        let (best, best_positive, best_negative) = flipped.tuned();
        let sampled = row.tables * anew.exact().rows;
        let part = anew.bits_per_item() / f64::from(LENGTH);
        columns_agree &= sampled == row.sampled && (part - row.part).abs() <= 0.0005;
        table.row([
            count(row.items as f64),
            row.tables.to_string(),
            sampled.to_string(),
            significant(part, 3),
            row.threshold.to_string(),
            format!("{:.6}", row.false_positive),
            format!("{:.6}", anew.false_positive.value()),
            format!("{:.1}", apart[0]),
            format!("{:.6}", flipped.false_positive.value()),
            format!("{:.6}", row.false_negative),
            format!("{:.6}", anew.false_negative.value()),
            format!("{:.1}", apart[1]),
            format!("{:.6}", flipped.false_negative.value()),
            best.to_string(),
            significant(best_positive.value(), 2),
            significant(best_negative.value(), 2),
        ]);
    }
    run.table("table-1", &table)?;
    run.require(columns_agree, "Table 1: k l' or m / n l is another");
    run.verdict(
        ("Table 1", "the columns k l' and m / n l"),
        "table-1.tsv",
        "105 to 600 samples; .16 to .8 and .128 to .64",
        "10 of 10 rows as printed",
        Outcome::reproduced_if(columns_agree, "exact; half a unit of the third place", "a value is another"),
    );
    run.verdict(
        ("Table 1; Section 4", "fp and fn for n = 1,000 and 10,000, k = 5, 10, 15, 20, 25"),
        "table-1.tsv",
        "20 rates, each of 500,000 queries",
        &format!(
            "{within} of 20 within 4 standard errors, the farthest {largest:.1}, if an ε-fraction of bits is drawn anew"
        ),
        Outcome::reproduced_if(
            within == 20,
            "4 standard errors of the difference",
            "a rate lies farther off than chance explains",
        ),
    );
    run.verdict(
        ("Section 4", "the queries come from *flipping* an ε- or δ-fraction of an item's bits"),
        "table-1.tsv",
        "the same 20 rates",
        &format!("{flipped_within} of 20 within 4 standard errors"),
        Outcome::Differs(
            "flipped queries lie twice as far away: the printed rates are those of bits drawn anew, half of which stay"
                .into(),
        ),
    );
    let largest = all.iter().map(Measured::sigmas).fold(0.0, f64::max);
    // Two rates for each of up to 100 rows: 4.5 sigma in any of them happens by chance once in 700 seeds.
    run.require(largest <= 4.5, format!("a measured rate lies {largest:.1} standard errors from the exact tail"));
    run.verdict(
        ("Figure 1; Figure 2", "errors over k, with a step wherever the threshold rises"),
        "figures-1-2.tsv",
        "curves for k = 1 to 25",
        &format!("{} rates, all within {largest:.1} standard errors of exact binomial tails", 2 * all.len()),
        Outcome::reproduced_if(
            largest <= 4.5,
            "4.5 standard errors of exact tails; the steps are at the printed ⌈t⌉ (the text says ⌊t⌋)",
            "a rate lies farther off than chance explains",
        ),
    );
    tuned(run, all);
    bounds(run, all);
    Ok(())
}

/// Judges the advice to tune the threshold, and Proposition 2.1 with its corollaries.
fn tuned(run: &mut Run, all: &[Measured]) {
    let flipped = || all.iter().filter(|row| row.noise == Noise::Flip);
    let told: Vec<String> = SETTINGS
        .iter()
        .filter_map(|&setting| {
            let row = flipped().find(|row| row.setting == setting && row.tables == MOST_TABLES)?;
            let (threshold, positive, negative) = row.tuned();
            Some(format!(
                "n = {}: t = {threshold} for {}, fn {} for {}, fp {} for {}",
                count(setting.items as f64),
                row.threshold,
                significant(negative.value(), 2),
                significant(row.false_negative.value(), 2),
                significant(positive.value(), 2),
                significant(row.false_positive.value(), 2)
            ))
        })
        .collect();
    let larger = |positive: Rate, negative: Rate| positive.value().max(negative.value());
    let better = flipped().all(|row| {
        let (_, positive, negative) = row.tuned();
        larger(positive, negative) <= larger(row.false_positive, row.false_negative)
    });
    run.require(better, "a tuned threshold is worse than the printed one");
    run.verdict(
        ("Section 2; Remark 3.1", "t is to be chosen by experiment for the application"),
        "table-1.tsv",
        "t = k(1-ε)^l′/2 for the proofs",
        &format!("k = 25, flipped, by the larger of both errors: {}", told.join("; ")),
        Outcome::reproduced_if(better, "a direction: the tuned t is at least as good at every k", "it is worse"),
    );
    // Of exactly so many flipped bits: p(ε) and p(δ) by drawing with replacement from all positions.
    let (mut hold, mut shown) = (true, Vec::new());
    for row in flipped() {
        let (rows, items) = (row.exact().rows, row.setting.items as f64);
        let [near, far] = row.hits.means();
        let least = distance_sensitive::agreement(row.setting.near, rows);
        let far_agrees = distance_sensitive::agreement(FAR, rows);
        let (exact, most) = (far_agrees + (items - 1.0) * libm::exp2(-f64::from(rows)), items * far_agrees);
        // Near hits are many, so one per cent is enough; of the few far ones, a tenth and four standard errors.
        let looked_up = row.hits.far.iter().sum::<u64>() as f64 * f64::from(row.tables);
        let off = 0.1 * exact + 4.0 * libm::sqrt(exact / looked_up);
        hold &= near >= least * 0.99 && far <= exact + off && far <= most;
        if row.tables == MOST_TABLES {
            shown.push(format!(
                "n = {}: near {} ≥ {}, far {} ≤ {} ≤ {}",
                count(items),
                significant(near, 3),
                significant(least, 3),
                significant(far, 2),
                significant(exact, 2),
                significant(most, 2)
            ));
        }
    }
    run.require(hold, "Proposition 2.1: a table is hit outside of its bounds");
    run.verdict(
        ("Proposition 2.1; Corollary 2.1; Corollary 3.1", "a table is hit with p_L(d) at least and Σ p_H(d) at most"),
        "figures-1-2.tsv",
        "q ≥ (1-ε)^l′ near; q ≤ Σ p_H ≤ n(1-δ)^l′ far",
        &format!("k = 25, {}", shown.join("; ")),
        Outcome::reproduced_if(
            hold,
            "1 % below the lower bound and 10 % above the sum, for tables that a run's queries share",
            "a bound does not hold",
        ),
    );
}

/// Checks the Chernoff bounds, which are for strings *at* the two distances.
fn bounds(run: &mut Run, all: &[Measured]) {
    let flipped = || all.iter().filter(|row| row.noise == Noise::Flip);
    let bound = |row: &Measured, of: fn(f64, u32, u32) -> f64| of(row.setting.near, row.exact().rows, row.tables);
    let hold = flipped().all(|row| {
        row.false_positive.value() <= bound(row, distance_sensitive::false_positive_bound)
            && row.false_negative.value() <= bound(row, distance_sensitive::false_negative_bound)
    });
    run.require(hold, "a measured rate is above the paper's bound");
    let Some(last) = flipped().find(|row| row.tables == MOST_TABLES && row.setting.items == 1_000) else { return };
    run.verdict(
        ("Theorem 3.1; Section 3.1", "fn < exp(-k(1-ε)^2l′/2) and fp ≤ exp(-k(1-ε)^2l′/8)"),
        "figures-1-2.tsv",
        &format!(
            "n = 1,000, k = 25: fn < {}, fp ≤ {}",
            significant(bound(last, distance_sensitive::false_negative_bound), 3),
            significant(bound(last, distance_sensitive::false_positive_bound), 3)
        ),
        &format!(
            "fn {}, fp {}: they hold, and say little",
            significant(last.false_negative.value(), 3),
            significant(last.false_positive.value(), 2)
        ),
        Outcome::reproduced_if(hold, "upper bounds", "a measured rate is above its bound"),
    );
}
