//! The near-neighbour index: `k = ln n / ln(1/p2)` functions per key, `L = n^ρ` tables, `ρ = ln p1 / ln p2`.
//!
//! Measured on the notes' screening of fingerprints: grids of 100 x 100 squares, 20 % of them set, near up to 1,000
//! differing squares and far from 2,500 on, so that `p1 = .9` and `p2 = .75`.

use nearset::{
    BitString, Index, Layout, LshSpec, Rng, Seed,
    family::{BitSampling, Sampling},
};
use nearset_theory::near_neighbour::{Sensitivity, hamming};

use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings::{self, Positions},
    table::Table,
};

const SQUARES: u32 = 10_000;
const NEAR: usize = 1_000;
const FAR: usize = 2_500;

fn sensitivity() -> Sensitivity {
    let p = |distance: usize| hamming(distance as f64, f64::from(SQUARES));
    Sensitivity { p1: p(NEAR), p2: p(FAR) }
}

/// Returns the notes' choice for `items` prints: the tables rounded up, and the functions of a key up or down.
fn rounded(items: u64, rows_up: bool) -> Layout {
    let (sensitivity, items) = (sensitivity(), items as f64);
    let rows = sensitivity.rows(items);
    let rows = if rows_up { rows.ceil() } else { rows.floor() };
    Layout::new(rows as u32, sensitivity.tables(items).ceil() as u32)
}

fn layout(items: u64) -> Layout {
    rounded(items, true)
}

fn success(layout: Layout) -> f64 {
    sensitivity().success(f64::from(layout.rows), f64::from(layout.bands))
}

fn index(layout: Layout, seed: Seed) -> anyhow::Result<Index<'static>> {
    let family = BitSampling { bits: SQUARES, sampling: Sampling::Uniform };
    let mut spec = LshSpec::new(family, layout, seed)?;
    spec.keeps_items = false;
    Ok(Index::new(spec)?)
}

/// Makes a grid in which each square is set with probability .2.
fn print(rng: &mut Rng) -> BitString {
    let mut print = BitString::zeros(SQUARES as usize);
    (0..SQUARES as usize).filter(|_| rng.unit() < 0.2).for_each(|square| print.set(square, true));
    print
}

/// Measures whether near prints are found, and how many others a query meets.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    screening(run)?;
    prints(run)?;
    let by_tables = success_by_tables(run)?;
    let by_rows = candidates_by_rows(run)?;
    run.figure("index", &Figure {
        title: "The near-neighbour index: k functions per key, L tables".into(),
        notes: vec![format!(
            "Grids of 100 x 100 squares; near is {} differing squares (p1 = .9), far {} (p2 = .75); bars are 95 % intervals",
            count(NEAR as f64),
            count(FAR as f64)
        )],
        panels: vec![by_tables, by_rows],
        columns: 2,
    })
}

/// Measures the notes' index for more and more prints.
fn screening(run: &mut Run) -> anyhow::Result<()> {
    let (sizes, indexes, queries) =
        run.full_or_quick((&[1_000, 10_000, 100_000][..], 20, 500), (&[1_000][..], 10, 200));
    let family = sensitivity();
    let mut table = Table::new([
        "prints n",
        "k",
        "rounded",
        "L",
        "near found, exact",
        "measured",
        "standard errors apart",
        "others met per query",
        "bound L n p2^k",
        "their mean distance",
        "queries",
    ]);
    let guarantee = 1.0 - (-1f64).exp();
    let (mut least, mut largest, mut bound_holds) = ([1f64; 2], 0f64, true);
    let mut exact_down = Vec::new();
    for (&items, rows_up) in sizes.iter().flat_map(|items| [(items, false), (items, true)]) {
        let layout = rounded(items, rows_up);
        run.progress(format!("{} prints, k = {}, L = {}", count(items as f64), layout.rows, layout.bands));
        // The larger they are, the fewer are made: an index of 100,000 prints is as good as many small ones.
        let seeds: Vec<u64> = (0..indexes.min(200_000 / items).max(2)).collect();
        let parts = in_parallel(&seeds, |&seed| -> anyhow::Result<(Rate, u64, f64)> {
            let mut rng = Rng::new(Seed::new(seed).derive("prints", items));
            let (mut index, mut positions) = (index(layout, Seed::new(seed))?, Positions::new(SQUARES));
            let (mut asked, mut apart, mut last) = (Vec::new(), 0.0, print(&mut rng));
            for i in 0..items {
                let print = print(&mut rng);
                let id = index.insert(&print)?;
                if i < queries {
                    let query = strings::flipped(&print, positions.draw(NEAR, &mut rng));
                    apart += f64::from(differing(&query, &last));
                    asked.push((id, query));
                }
                last = print;
            }
            let (mut found, mut others) = (Rate::default(), 0);
            for (id, query) in &asked {
                let met = index.candidates(query)?;
                let near = met.contains(id);
                found = found + Rate::count([near]);
                others += (met.len() - usize::from(near)) as u64;
            }
            Ok((found, others, apart))
        });
        let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let found: Rate = parts.iter().map(|part| part.0).sum();
        let others = parts.iter().map(|part| part.1).sum::<u64>() as f64 / found.of as f64;
        let distance = parts.iter().map(|part| part.2).sum::<f64>() / found.of as f64;
        let bound = family.far_candidates(items as f64, f64::from(layout.rows), f64::from(layout.bands));
        let apart = found.sigmas_from(success(layout));
        let least = &mut least[usize::from(rows_up)];
        (*least, largest) = (least.min(success(layout)), largest.max(apart));
        bound_holds &= others <= bound;
        if !rows_up {
            exact_down.push(format!("{} at k = {}", significant(success(layout), 3), layout.rows));
        }
        run.require((distance - 3_560.0).abs() < 15.0, format!("other prints lie at {distance:.0} squares"));
        table.row([
            count(items as f64),
            layout.rows.to_string(),
            if rows_up { "up".into() } else { "down".to_owned() },
            layout.bands.to_string(),
            significant(success(layout), 4),
            significant(found.value(), 4),
            format!("{apart:.1}"),
            significant(others, 3),
            significant(bound, 3),
            count(distance),
            found.of.to_string(),
        ]);
    }
    run.table("screening", &table)?;
    // The queries of one index share its functions, which widens the spread a little beyond independent ones.
    run.require(largest <= 5.0, format!("the index: {largest:.1} standard errors from the formula"));
    run.require(bound_holds, "a query meets more prints than the bound says");
    run.require(least[0] >= guarantee, format!("k rounded down finds {}", least[0]));
    run.verdict(
        ("Section 3.4", "k = ln n / ln(1/p2) and L = n^ρ find a near print with probability 1-(1-p1^k)^L"),
        "screening.tsv",
        &format!("ρ = ln .9 / ln .75 = {}", significant(family.exponent(), 3)),
        &format!("measured within {largest:.1} standard errors"),
        Outcome::reproduced_if(
            largest <= 5.0,
            "5 standard errors: queries of an index share its functions",
            "near prints are found more or less often",
        ),
    );
    run.verdict(
        ("Section 3.4", "that is about 1 - 1/e or more"),
        "screening.tsv",
        &significant(guarantee, 3),
        &format!("{}; with k rounded up {} at least", exact_down.join(", "), significant(least[1], 3)),
        Outcome::reproduced_if(
            least[0] >= guarantee,
            "exact, with k rounded down to whole functions; rounding up costs up to a factor p1 of each table's hits",
            "k is rounded to whole functions",
        ),
    );
    run.verdict(
        ("Section 3.4", "a query meets at most L n p2^k far prints on average"),
        "screening.tsv",
        "about one per table",
        "far fewer: unrelated prints lie at 3,560 squares, not at 2,500",
        Outcome::reproduced_if(bound_holds, "an upper bound; flipping 1,000 squares at random makes a query denser (26 % set), hence 3,560 and not 3,200", "more are met"),
    );
    Ok(())
}

fn differing(a: &BitString, b: &BitString) -> u32 {
    a.bits().words().iter().zip(b.bits().words()).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Measures prints of the notes' own model: of one finger and of two, their distances, and whether the index finds the
/// former.
fn prints(run: &mut Run) -> anyhow::Result<()> {
    const ITEMS: u64 = 1_000;
    run.progress("prints of one finger and of two");
    let indexes = run.full_or_quick(20, 5);
    let layout = layout(ITEMS);
    let seeds: Vec<u64> = (0..indexes).collect();
    let parts = in_parallel(&seeds, |&seed| -> anyhow::Result<(f64, f64, Rate)> {
        let mut rng = Rng::new(Seed::new(seed).derive("fingers", 0));
        let mut index = index(layout, Seed::new(seed))?;
        let (mut same, mut different, mut found) = (0.0, 0.0, Rate::default());
        let mut last = print(&mut rng);
        for _ in 0..ITEMS {
            let stored = print(&mut rng);
            let id = index.insert(&stored)?;
            let mut again = BitString::zeros(SQUARES as usize);
            for square in 0..SQUARES as usize {
                // .8 where the other print has a minutia; .05 elsewhere, so that a fifth of all squares has one.
                let chance = if stored.bits().bit(square) { 0.8 } else { 0.05 };
                again.set(square, rng.unit() < chance);
            }
            same += f64::from(differing(&stored, &again));
            different += f64::from(differing(&stored, &last));
            found = found + Rate::count([index.candidates(&again)?.contains(&id)]);
            last = stored;
        }
        Ok((same / ITEMS as f64, different / ITEMS as f64, found))
    });
    let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let mean = |of: &dyn Fn(&(f64, f64, Rate)) -> f64| parts.iter().map(of).sum::<f64>() / parts.len() as f64;
    let (same, different) = (mean(&|part| part.0), mean(&|part| part.1));
    let found: Rate = parts.iter().map(|part| part.2).sum();
    let p = 1.0 - 800.0 / f64::from(SQUARES);
    let expected = 1.0 - (1.0 - p.powi(layout.rows as i32)).powi(layout.bands as i32);
    let mut table =
        Table::new(["prints of", "differing squares, notes", "measured", "found by the index, exact", "measured"]);
    let found_measured = significant(found.value(), 4);
    table.row(["one finger", "800", &count(same), &significant(expected, 4), &found_measured]);
    table.row(["two fingers", "3,200", &count(different), "-", "-"]);
    run.table("prints", &table)?;
    // Means of 20,000 distances with standard deviations of some 27 and 47 squares.
    let near = (same - 800.0).abs() < 4.0 && (different - 3_200.0).abs() < 4.0;
    run.require(near, format!("prints lie at {same:.0} and {different:.0} squares"));
    run.verdict(
        ("Section 3.4, fingerprints", "prints of one finger differ in some 800 squares, of two in some 3,200"),
        "prints.tsv",
        "800 and 3,200",
        &format!(
            "{} and {}; an index for 1,000 and 2,500 finds {} of the former",
            count(same),
            count(different),
            significant(found.value(), 3)
        ),
        Outcome::reproduced_if(near, "4 squares, of means over all prints", "they differ in other numbers of squares"),
    );
    Ok(())
}

/// Measures how often near prints are found by more and more tables.
fn success_by_tables(run: &mut Run) -> anyhow::Result<Panel> {
    const ITEMS: u64 = 500;
    run.progress("near prints over the number of tables");
    let indexes = run.full_or_quick(40, 5);
    let sizes: Vec<u64> = vec![1_000, 10_000, 100_000];
    let numbers = run.full_or_quick(&[1, 2, 5, 10, 20, 30, 50, 80, 120][..], &[10, 30]);
    let mut table = Table::new(["k of n prints", "k", "tables L", "near found, exact", "measured", "queries"]);
    let (mut series, mut lines, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    for (size, colour) in sizes.into_iter().zip([Colour::Green, Colour::Blue, Colour::Vermilion]) {
        let rows = layout(size).rows;
        let mut points = Vec::new();
        for &bands in numbers {
            let layout = Layout::new(rows, bands);
            let seeds: Vec<u64> = (0..indexes).collect();
            let found = in_parallel(&seeds, |&seed| -> anyhow::Result<Rate> {
                let mut rng = Rng::new(Seed::new(seed).derive("prints", u64::from(bands)));
                let (mut index, mut positions) = (index(layout, Seed::new(seed))?, Positions::new(SQUARES));
                let mut found = Rate::default();
                let prints: Vec<BitString> = (0..ITEMS).map(|_| print(&mut rng)).collect();
                let ids = prints.iter().map(|print| index.insert(print)).collect::<Result<Vec<_>, _>>()?;
                for (id, print) in ids.iter().zip(&prints) {
                    let met = index.candidates(&strings::flipped(print, positions.draw(NEAR, &mut rng)))?;
                    found = found + Rate::count([met.contains(id)]);
                }
                Ok(found)
            });
            let found = found.into_iter().sum::<anyhow::Result<Rate>>()?;
            let exact = success(layout);
            run.require(
                found.sigmas_from(exact) <= 6.0,
                format!("k = {rows}, L = {bands}: {} for {exact}", found.value()),
            );
            table.row([
                count(size as f64),
                rows.to_string(),
                bands.to_string(),
                significant(exact, 4),
                significant(found.value(), 4),
                found.of.to_string(),
            ]);
            points.push(Point::measured(f64::from(bands), found));
        }
        let name = format!("k = {rows} (n = {})", count(size as f64));
        series.push(Series::new(name, Shape::Dots, colour, points));
        let curve = (1..=130).map(|bands| (f64::from(bands), success(Layout::new(rows, bands))));
        lines.push(Series::new("", Shape::Line, colour, curve));
    }
    series.extend(lines);
    rules.push(Rule::Horizontal(1.0 - (-1f64).exp(), "1 - 1/e".into()));
    run.table("tables", &table)?;
    Ok(Panel {
        title: "near prints found".into(),
        x: Axis::even("tables L").within(0.0, 130.0),
        y: Axis::even("found").within(0.0, 1.0),
        series,
        rules,
        ..Panel::default()
    })
}

/// Measures how many prints a query meets if all of them lie exactly at the far distance.
fn candidates_by_rows(run: &mut Run) -> anyhow::Result<Panel> {
    const ITEMS: u64 = 1_000;
    run.progress("far prints over the functions of a key");
    let indexes = run.full_or_quick(60, 10);
    let chosen = layout(ITEMS);
    let numbers: Vec<u32> = run.full_or_quick((4..=36).step_by(4).collect(), vec![chosen.rows]);
    let expected = |rows: u32| {
        let band = sensitivity().p2.powi(rows as i32);
        ITEMS as f64 * (1.0 - (1.0 - band).powi(chosen.bands as i32))
    };
    let mut table =
        Table::new(["k", "tables L", "far prints met, exact", "measured", "standard error", "bound L n p2^k"]);
    let mut points = Vec::new();
    for &rows in &numbers {
        let layout = Layout::new(rows, chosen.bands);
        let seeds: Vec<u64> = (0..indexes).collect();
        let met = in_parallel(&seeds, |&seed| -> anyhow::Result<f64> {
            let mut rng = Rng::new(Seed::new(seed).derive("far", u64::from(rows)));
            let (mut index, mut positions) = (index(layout, Seed::new(seed))?, Positions::new(SQUARES));
            let query = print(&mut rng);
            for _ in 0..ITEMS {
                index.insert(&strings::flipped(&query, positions.draw(FAR, &mut rng)))?;
            }
            Ok(index.candidates(&query)?.len() as f64)
        });
        let met = met.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        let mean = met.iter().sum::<f64>() / met.len() as f64;
        let variance = met.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (met.len() - 1) as f64;
        let error = (variance / met.len() as f64).sqrt();
        run.require(
            (mean - expected(rows)).abs() <= 4.5 * error,
            format!("k = {rows}: {mean} far prints for {}", expected(rows)),
        );
        table.row([
            rows.to_string(),
            chosen.bands.to_string(),
            significant(expected(rows), 4),
            significant(mean, 4),
            significant(error, 2),
            significant(sensitivity().far_candidates(ITEMS as f64, f64::from(rows), f64::from(chosen.bands)), 4),
        ]);
        points.push(Point { x: f64::from(rows), y: mean, error: Some((mean - 1.96 * error, mean + 1.96 * error)) });
    }
    run.table("far", &table)?;
    let bound = (2..=38).map(|rows| {
        (f64::from(rows), sensitivity().far_candidates(ITEMS as f64, f64::from(rows), f64::from(chosen.bands)))
    });
    let exact = (2..=38).map(|rows| (f64::from(rows), expected(rows)));
    Ok(Panel {
        title: format!("prints met when all 1,000 lie at 2,500, L = {}", chosen.bands),
        x: Axis::even("functions per key, k").within(2.0, 38.0),
        y: Axis::powers("far prints met per query").within(0.2, 3_000.0),
        series: vec![
            Series::new("far prints, measured", Shape::Squares, Colour::Black, points),
            Series::new("exact", Shape::Line, Colour::Black, exact),
            Series::new("bound L n p2^k", Shape::Dashed, Colour::Purple, bound),
        ],
        rules: vec![Rule::Vertical(f64::from(chosen.rows), format!("k = {}", chosen.rows))],
        ..Panel::default()
    })
}
