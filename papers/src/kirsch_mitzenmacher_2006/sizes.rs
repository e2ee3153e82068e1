//! What the same promises cost today: the paper's rule and nearset's plans over the same strings, on the same axes.
//!
//! The paper's sizes cover the worst case, all strings exactly at δ. On strings that are random apart from the one at
//! δ, tables may be half full, more of them may be used, and the threshold may come from exact tails instead of
//! Chernoff bounds.

use nearset::{
    Filter, Layout, Metric, Rng, Seed, Spec, Table as Tables,
    family::{BitSampling, Sampling},
    plan::{Plan, Request, Structure},
};
use nearset_theory::{binomial, distance_sensitive as formula, distance_sensitive::Noise};

use super::{
    FAR, SETTINGS, Setting,
    printed::Measured,
    workload::{LENGTH, Queries},
};
use crate::{
    figure::{Axis, Colour, Figure, Label, Panel, Point, Series, Shape, Side},
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings,
    table::Table,
};

/// The number of queries hashed at a time.
const BATCH: usize = 2_000;
/// Upper bounds on both errors, from lax to strict.
const PROMISES: [f64; 6] = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001];

/// A filter that is not the paper's, and its results.
struct Today {
    setting: Setting,
    name: String,
    promise: f64,
    spec: Spec,
    threshold: u32,
    false_positive: Rate,
    false_negative: Rate,
}

impl Today {
    fn bits_per_item(&self) -> f64 {
        (self.spec.bits_per_band() * u64::from(self.spec.layout().bands)) as f64 / self.setting.items as f64
    }

    fn worse(&self) -> Rate {
        worse(self.false_positive, self.false_negative)
    }
}

fn worse(a: Rate, b: Rate) -> Rate {
    if a.value() >= b.value() { a } else { b }
}

/// Measures today's filters and draws them beside the paper's.
pub fn run(run: &mut Run, paper: &[Measured]) -> anyhow::Result<()> {
    let (runs, queries) = run.full_or_quick((10, 10_000), (2, 4_000));
    let promises: Vec<f64> = run.full_or_quick(PROMISES.to_vec(), vec![0.01]);
    let mut all = Vec::new();
    for setting in SETTINGS {
        let mut specs = vec![("direct tables, exact tails".to_owned(), 0.01, half_full(setting)?)];
        for &promise in &promises {
            specs.push(("planned by nearset".to_owned(), promise, planned(setting, promise)?));
        }
        for (name, promise, spec) in specs {
            run.progress(format!("{} strings, {name}, both errors {promise}", count(setting.items as f64)));
            let seeds: Vec<u64> = (0..runs).collect();
            let parts = in_parallel(&seeds, |&seed| one_run(setting, &spec, queries, Seed::new(seed)));
            let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            all.push(Today {
                setting,
                name,
                promise,
                threshold: parts[0].2,
                spec,
                false_positive: parts.iter().map(|part| part.0).sum(),
                false_negative: parts.iter().map(|part| part.1).sum(),
            });
        }
    }
    run.table("sizes", &table(paper, &all))?;
    run.figure("sizes", &figure(paper, &all))?;
    judge(run, paper, &all)
}

/// Returns the paper's structure with tables about half full: the fewest that lose at most 1 % of near strings and
/// accept at most 1 % of unrelated ones.
fn half_full(setting: Setting) -> anyhow::Result<Spec> {
    let items = setting.items as f64;
    let about = items.log2().round() as u32;
    let fewest = |rows: u32| {
        let chance = formula::chance_hit(rows, items);
        let near = formula::hit(formula::agreement(setting.near, rows), chance);
        (1..4_000).find_map(|tables| {
            let threshold = binomial::smallest_threshold(tables, chance, 0.01);
            let filter = formula::Filter { items, rows, tables, threshold };
            (binomial::below(tables, near, threshold) <= 0.01).then_some(filter)
        })
    };
    let smallest =
        (about - 2..=about + 1).filter_map(fewest).min_by(|a, b| a.bits_per_item().total_cmp(&b.bits_per_item()));
    let filter = smallest.ok_or_else(|| anyhow::anyhow!("no filter keeps 1 % with fewer than 4,000 tables"))?;
    let family = BitSampling { bits: LENGTH, sampling: Sampling::Uniform };
    let layout = Layout::new(filter.rows, filter.tables);
    Ok(Spec::new(family, layout, filter.threshold, Tables::Direct, Seed::default())?)
}

/// Returns the planner's choice, with at most this rate of both errors at exactly ε and δ.
fn planned(setting: Setting, promise: f64) -> anyhow::Result<Spec> {
    let metric = Metric::Hamming { bits: LENGTH };
    let at = |fraction: f64| (fraction * f64::from(LENGTH)).round();
    let request = Request::new(metric, at(setting.near)).far(at(FAR)).capacity(setting.items);
    bands_of(&request.errors(promise, promise).plan_filter()?)
}

/// Returns the planned filter of bands, which may be a runner-up to a scan.
pub fn bands_of(plan: &Plan) -> anyhow::Result<Spec> {
    let runners_up = plan.runners_up.iter().filter(|runner| runner.structure == Structure::Threshold);
    let specs = std::iter::once(&plan.spec).chain(runners_up.filter_map(|runner| runner.spec.as_ref()));
    let near = specs.filter_map(|spec| spec.near()).next().cloned();
    near.ok_or_else(|| anyhow::anyhow!("the plan has no filter of bands: {plan}"))
}

/// Returns the false positives, the false negatives, and the threshold in force.
fn one_run(setting: Setting, spec: &Spec, queries: usize, seed: Seed) -> anyhow::Result<(Rate, Rate, u32)> {
    let mut spec = spec.clone();
    spec.seed = seed.derive("filter", setting.items);
    let mut filter = Filter::new(&spec.clone().into())?;
    let mut items = strings::random(LENGTH, setting.items, &mut Rng::new(seed.derive("strings", setting.items)));
    let mut drawn = Queries::new(&mut items, &spec, seed.derive("queries", setting.items))?;
    filter.insert_keys(&drawn.stored()?)?;
    let mut accepted = |fraction| -> anyhow::Result<Rate> {
        let batches = (0..queries.div_ceil(BATCH)).map(|_| {
            let keys = drawn.draw(Noise::Flip, fraction, BATCH)?;
            Ok(Rate::count(filter.contains_keys(&keys)?.iter().map(|found| found.near)))
        });
        batches.sum()
    };
    let (near, far) = (accepted(setting.near)?, accepted(FAR)?);
    let fill = filter.generations().next().and_then(|state| state.fill).unwrap_or(0.0);
    let threshold = spec.rule.threshold_at(fill).unwrap_or(0);
    Ok((far, near.miss(), threshold))
}

fn table(paper: &[Measured], today: &[Today]) -> Table {
    let mut table = Table::new(["n", "filter", "l'", "k", "threshold", "bits per element", "fn", "fp", "queries each"]);
    for setting in SETTINGS {
        if let Some(row) = largest(paper, setting) {
            let rows = formula::sampled_bits(setting.near, FAR, setting.items as f64);
            table.row([
                count(setting.items as f64),
                "as printed".into(),
                rows.to_string(),
                row.tables.to_string(),
                row.threshold.to_string(),
                count(row.bits_per_item()),
                significant(row.false_negative.value(), 3),
                significant(row.false_positive.value(), 3),
                count(row.false_negative.of as f64),
            ]);
            let (threshold, positive, negative) = row.tuned();
            table.row([
                count(setting.items as f64),
                "as printed, best threshold".into(),
                rows.to_string(),
                row.tables.to_string(),
                threshold.to_string(),
                count(row.bits_per_item()),
                significant(negative.value(), 3),
                significant(positive.value(), 3),
                count(negative.of as f64),
            ]);
        }
        for row in today.iter().filter(|row| row.setting == setting) {
            table.row([
                count(setting.items as f64),
                format!("{}, both errors ≤ {}", row.name, row.promise),
                row.spec.rows.to_string(),
                row.spec.layout().bands.to_string(),
                row.threshold.to_string(),
                count(row.bits_per_item()),
                significant(row.false_negative.value(), 3),
                significant(row.false_positive.value(), 3),
                count(row.false_negative.of as f64),
            ]);
        }
    }
    table
}

/// Returns the paper's filter with all 25 tables, on flipped bits.
fn largest(paper: &[Measured], setting: Setting) -> Option<&Measured> {
    paper.iter().filter(|row| row.setting == setting && row.noise == Noise::Flip).max_by_key(|row| row.tables)
}

fn figure(paper: &[Measured], today: &[Today]) -> Figure {
    let panel = |setting: Setting| {
        let printed = paper.iter().filter(|row| row.setting == setting && row.noise == Noise::Flip);
        let printed: Vec<Point> = printed
            .map(|row| {
                let (_, positive, negative) = row.tuned();
                Point::measured(row.bits_per_item(), worse(positive, negative))
            })
            .collect();
        let ours = |name: &str| -> Vec<Point> {
            let rows = today.iter().filter(|row| row.setting == setting && row.name == name);
            let mut points: Vec<Point> = rows.map(|row| Point::measured(row.bits_per_item(), row.worse())).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            points
        };
        let (direct, planned) = (ours("direct tables, exact tails"), ours("planned by nearset"));
        let label = |points: &[Point], side, words: &str| {
            points.last().map(|point| Label::new((point.x, point.y), side, format!("{} {words}", count(point.x))))
        };
        let labels = [label(&printed, Side::Right, "bits"), label(&direct, Side::Left, "bits")];
        Panel {
            title: format!("{} strings, ε = {}, δ = {FAR}", count(setting.items as f64), setting.near),
            x: Axis::powers("bits per element").within(5.0, 500_000.0),
            y: Axis::powers("the larger of both errors").within(1e-4, 1.0),
            series: vec![
                Series::new(
                    "direct tables half full, threshold from exact tails",
                    Shape::Squares,
                    Colour::Green,
                    direct,
                ),
                Series::new("planned by nearset", Shape::DotsOnLine, Colour::Blue, planned),
                Series::new(
                    "the paper's sizes at their best threshold, k = 1 to 25",
                    Shape::DotsOnLine,
                    Colour::Vermilion,
                    printed,
                ),
            ],
            labels: labels.into_iter().flatten().collect(),
            ..Panel::default()
        }
    };
    Figure {
        title: "What two decades bought: memory for the same errors on the same strings".into(),
        notes: vec![
            "Strings of 65,536 bits; exactly an ε- or δ-fraction flipped; measured, with 95 % intervals. The paper's sizes also cover".into(),
            "the worst case, every stored string exactly at δ; ours take the others to be unrelated.".into(),
        ],
        panels: SETTINGS.into_iter().map(panel).collect(),
        columns: 2,
    }
}

fn judge(run: &mut Run, paper: &[Measured], today: &[Today]) -> anyhow::Result<()> {
    for row in today.iter().filter(|row| row.name == "planned by nearset") {
        for (name, rate) in [("fn", row.false_negative), ("fp", row.false_positive)] {
            // A promise is a bound: 4 standard errors above it is a drift.
            let slack = 4.0 * (row.promise * (1.0 - row.promise) / rate.of as f64).sqrt();
            let (found, items) = (rate.value(), row.setting.items);
            run.require(
                found <= row.promise + slack,
                format!("planned for {items}: {name} {found} for {}", row.promise),
            );
        }
    }
    for setting in SETTINGS {
        let at_one_percent =
            |name: &str| today.iter().find(|row| row.setting == setting && row.name == name && row.promise == 0.01);
        let (Some(direct), Some(planned), Some(printed)) = (
            at_one_percent("direct tables, exact tails"),
            at_one_percent("planned by nearset"),
            largest(paper, setting),
        ) else {
            continue;
        };
        let bits = direct.bits_per_item();
        let (best, best_positive, best_negative) = printed.tuned();
        if setting == SETTINGS[0] {
            run.headline(&format!(
                "Table 1 is reproduced if bits are drawn anew rather than flipped; {} bits per element today for the paper's {} at its best threshold (fn {} for {}, fp {} for {}; at the printed threshold {} and {}), without its promise for the worst case",
                count(bits),
                count(printed.bits_per_item()),
                significant(direct.false_negative.value(), 2),
                significant(best_negative.value(), 2),
                significant(direct.false_positive.value(), 2),
                significant(best_positive.value(), 2),
                significant(printed.false_negative.value(), 2),
                significant(printed.false_positive.value(), 1)
            ))?;
        }
        let expected = if setting.items == 1_000 { 274.0 } else { 120.0 };
        run.require((bits - expected).abs() < 1.0, format!("{bits:.0} bits per element, {expected} before"));
        run.verdict(
            (
                "Section 3.2",
                &format!("the size for n = {}, ε = {}, δ = {FAR}", count(setting.items as f64), setting.near),
            ),
            "sizes.tsv",
            &format!(
                "k = 25 tables of 2^l′ bits: {} bits per element, at its best t = {best} fn {}, fp {}",
                count(printed.bits_per_item()),
                significant(best_negative.value(), 2),
                significant(best_positive.value(), 2)
            ),
            &format!(
                "{} bits per element: fn {}, fp {}; {} planned by nearset: fn {}, fp {}",
                count(bits),
                significant(direct.false_negative.value(), 2),
                significant(direct.false_positive.value(), 2),
                count(planned.bits_per_item()),
                significant(planned.false_negative.value(), 2),
                significant(planned.false_positive.value(), 2),
            ),
            Outcome::Differs(
                "the paper's size covers all strings at δ at once, ours one at δ and the others unrelated".into(),
            ),
        );
    }
    Ok(())
}
