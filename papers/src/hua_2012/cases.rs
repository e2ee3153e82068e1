//! Observation 1, its three cases, Theorem 5, and overflow over t, missing functions and λ.

use std::hint::black_box;

use nearset::{
    Distance, Family, Filter, Item, Layout, Rng, Seed, Spec, Table as Tables,
    family::{Hashed, Hyperplane, PStable, Stable},
    spec::Hasher,
};
use nearset_theory::{locality_sensitive as theory, near_neighbour};

use super::theorems::{self, Swept};
use crate::{
    figure::{Axis, Colour, Figure, Panel, Rule, Series, Shape},
    format::{count, significant},
    rate::Rate,
    run::{Outcome, Run},
    table::Table,
    time::least_seconds,
};

const RATIOS: [f64; 4] = [1.5, 2.0, 3.0, 4.0];
const LAMBDAS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Runs them all.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    exponents(run)?;
    angles(run)?;
    theorem_5(run)?;
    sweep(run)
}

/// Calculates ρ = ln P1 / ln P2 for Hamming distance and for both stable distributions.
fn exponents(run: &mut Run) -> anyhow::Result<()> {
    run.progress("Observation 1");
    let mut table = Table::new(["case", "c", "R/d, or best ω/R", "P1", "P2", "ρ", "1/c"]);
    let mut hamming_below = true;
    for c in RATIOS {
        for part in [0.001, 0.01, 0.1, 0.2] {
            let (p1, p2) = (near_neighbour::hamming(part, 1.0), near_neighbour::hamming(c * part, 1.0));
            let rho = p1.ln() / p2.ln();
            hamming_below &= rho <= 1.0 / c;
            table.row([
                "1, Hamming".into(),
                c.to_string(),
                part.to_string(),
                significant(p1, 4),
                significant(p2, 4),
                significant(rho, 4),
                significant(1.0 / c, 4),
            ]);
        }
    }
    let mut series = Vec::new();
    let (mut stable_below, mut printed, mut cauchy_above) = (true, Vec::new(), 0f64);
    for (name, stable, colour) in
        [("2, L2 (Gaussian)", Stable::Gaussian, Colour::Blue), ("2, L1 (Cauchy)", Stable::Cauchy, Colour::Vermilion)]
    {
        let p = |distance: f64, width: f64| -> f64 {
            let family = Family::from(PStable { dimension: 1, width, stable });
            Distance::new(distance).map_or(f64::NAN, |distance| family.collision_probability(distance))
        };
        for c in RATIOS {
            let of = |width: f64| {
                let (p1, p2) = (p(1.0, width), p(c, width));
                (width, p1, p2, p1.ln() / p2.ln())
            };
            let all: Vec<_> = (0..=80).map(|step| of(libm::exp2(f64::from(step) / 8.0 - 2.0))).collect();
            let Some(&(width, p1, p2, rho)) = all.iter().min_by(|a, b| a.3.total_cmp(&b.3)) else { continue };
            match stable {
                Stable::Gaussian => stable_below &= rho < 1.0 / c,
                _ => cauchy_above = cauchy_above.max(rho * c - 1.0),
            }
            table.row([
                name.to_owned(),
                c.to_string(),
                significant(width, 3),
                significant(p1, 4),
                significant(p2, 4),
                significant(rho, 4),
                significant(1.0 / c, 4),
            ]);
            if c == 2.0 {
                series.push(Series::new(name, Shape::Line, colour, all.iter().map(|at| (at.0, at.3))));
                if stable == Stable::Gaussian {
                    printed.push(significant(of(0.85).3, 3));
                }
            }
        }
    }
    run.table("exponents", &table)?;
    run.figure(
        "exponents",
        &Figure {
            title: "ρ over the width of buckets, c = 2".into(),
            notes: vec!["ρ = ln P1 / ln P2, P1 at distance R and P2 at 2 R. The paper's ω is .85.".into()],
            panels: vec![Panel {
                x: Axis::powers("ω, in units of R").within(0.2, 300.0),
                y: Axis::even("ρ").within(0.4, 0.9),
                series,
                rules: vec![Rule::Horizontal(0.5, "1/c".into()), Rule::Vertical(0.85, "ω = .85".into())],
                ..Panel::default()
            }],
            columns: 1,
        },
    )?;
    run.require(hamming_below && stable_below, "ρ is above 1/c");
    run.verdict(
        ("Observation 1; Case 1", "Hamming distance: P1 = 1 - R/d, P2 = 1 - cR/d and ρ = 1/c"),
        "exponents.tsv",
        "ρ = 1/c",
        "ρ < 1/c at every R/d; .4997 at R/d = .001 and c = 2, .4368 at R/d = .2",
        Outcome::Differs(
            "1/c is the limit for R/d near 0, and an upper bound elsewhere, which is all that sublinear search needs"
                .into(),
        ),
    );
    run.verdict(
        ("Case 2; Definition 3; Definition 4", "stable distributions: ρ < 1/c"),
        "exponents.tsv",
        "ρ < 1/c",
        &format!(
            "L2 (Gaussian): below 1/c at the best width for every c tried, and {} at ω = .85 R and c = 2; L1 (Cauchy): up to {} above 1/c",
            printed.join(""),
            if cauchy_above > 0.0 { format!("{} %", significant(100.0 * cauchy_above, 2)) } else { "nothing".into() }
        ),
        Outcome::Differs("it is so for L2 at the best width, though not at every width. For L1, which the case includes by s in [0, 2), ρ only comes down to 1/c as buckets widen, and is above it at every width".into()),
    );
    Ok(())
}

/// Measures Case 3.
fn angles(run: &mut Run) -> anyhow::Result<()> {
    const DIMENSION: u32 = 16;
    let functions = run.full_or_quick(4_000, 1_000);
    let mut farthest = 0f64;
    for twelfth in [1u32, 2, 4, 6] {
        let angle = std::f64::consts::PI * f64::from(twelfth) / 12.0;
        let mut rate = Rate::default();
        for seed in 0..50 {
            let hasher = Hasher::new(Hyperplane { dimension: DIMENSION }, Layout::new(1, functions), Seed::new(seed))?;
            let (mut a, mut b) = ([0f32; DIMENSION as usize], [0f32; DIMENSION as usize]);
            (a[0], b[0], b[1]) = (1.0, angle.cos() as f32, angle.sin() as f32);
            let [mut first, mut second] = [Hashed::default(), Hashed::default()];
            hasher.hash(Item::Vector(&a), &mut first)?;
            hasher.hash(Item::Vector(&b), &mut second)?;
            rate = rate + Rate::count(first.keys.iter().zip(&second.keys).map(|(a, b)| a == b));
        }
        farthest = farthest.max(rate.sigmas_from(near_neighbour::angle(angle)));
    }
    run.require(farthest <= 4.5, format!("Case 3: {farthest:.1} standard errors"));
    run.verdict(
        ("Case 3", "angles: p and q collide with 1 - arccos(p·q / |p||q|)/π"),
        "exponents.tsv",
        "1 - θ/π",
        &format!("hyperplanes at 15, 30, 60 and 90 degrees: within {farthest:.1} standard errors"),
        Outcome::reproduced_if(farthest <= 4.5, "4.5 standard errors", "the measured rate is another"),
    );
    Ok(())
}

/// Measures how a query's time and the space grow.
fn theorem_5(run: &mut Run) -> anyhow::Result<()> {
    run.progress("Theorem 5");
    let mut table =
        Table::new(["attributes d", "functions L", "hashes M", "µs per query", "d L M, thousands", "ns per d L M"]);
    const QUERIES: usize = 20;
    let shapes =
        [(64u32, 7u32, 10u32), (128, 7, 10), (256, 7, 10), (256, 14, 10), (256, 28, 10), (256, 7, 20), (256, 7, 40)];
    let mut filters = Vec::new();
    for (d, functions, hashes) in shapes {
        let family = PStable { dimension: d, width: 32.0, stable: Stable::Gaussian };
        let spec = Spec::new(family, Layout::new(hashes, functions), functions, Tables::Bits(1 << 16), Seed::new(5))?;
        let (mut filter, mut room) = (Filter::new(&spec.into())?, Hashed::default());
        let mut rng = Rng::new(Seed::new(6));
        let points: Vec<Vec<f32>> = (0..QUERIES).map(|_| (0..d).map(|_| rng.gaussian() as f32).collect()).collect();
        filter.insert(points[0].as_slice(), &mut room)?;
        filters.push((filter, room, points));
    }
    let times = least_seconds(run.full_or_quick(200, 30), &mut filters, |(filter, room, points)| {
        for point in points {
            black_box(filter.contains_near(black_box(point.as_slice()), room)?);
        }
        Ok(())
    })?;
    let mut per_step = Vec::new();
    for ((d, functions, hashes), time) in shapes.into_iter().zip(times) {
        let best = time / QUERIES as f64;
        let steps = f64::from(d) * f64::from(functions) * f64::from(hashes);
        per_step.push(1e9 * best / steps);
        table.row([
            d.to_string(),
            functions.to_string(),
            hashes.to_string(),
            significant(1e6 * best, 3),
            significant(steps / 1000.0, 3),
            significant(1e9 * best / steps, 2),
        ]);
    }
    run.table("theorem-5", &table)?;
    let (low, high) = per_step.iter().fold((f64::INFINITY, 0f64), |(low, high), &at| (low.min(at), high.max(at)));
    run.verdict(
        ("Theorem 5; Section 4.3", "a query takes O(dL) + O(k)"),
        "theorem-5.tsv",
        "O(dL) + O(k)",
        &format!("{} to {} ns for each of d L M steps: doubling M doubles the time as doubling L does", significant(low, 2), significant(high, 2)),
        Outcome::Differs("a function concatenates M hashes, each a product over d attributes, so the work is O(dLM); with M fixed at 10 that is what the theorem says".into()),
    );
    let slots = distinct(run.full_or_quick(20_000, 2_000))?;
    let told: Vec<String> = slots
        .iter()
        .map(|(hashes, width, part)| format!("{} at M = {hashes}, ω = {width}", significant(*part, 2)))
        .collect();
    run.verdict(
        ("Theorem 5", "space is O(dn/ω) + O(nk/ln 2) bits"),
        "theorem-5.tsv",
        "O(dn/ω) for the array, nk/ln 2 for verification",
        &format!("different buckets per record: {}", told.join(", ")),
        Outcome::Differs("nk/ln 2 is right for verification; a function of M hashes has so many buckets that nearly every record has one of its own until ω is many times R, so the array needs n L / ln 2 bits for half-full bits and does not shrink as 1/ω".into()),
    );
    Ok(())
}

/// Counts different buckets of one function per record, for M = 1 and 10 and some widths, over Gaussian records with a
/// deviation of 30 R.
fn distinct(records: u32) -> anyhow::Result<Vec<(u32, f64, f64)>> {
    let mut all = Vec::new();
    for hashes in [1u32, 10] {
        for width in [1.0, 4.0, 16.0, 64.0] {
            let family = PStable { dimension: 8, width, stable: Stable::Gaussian };
            let hasher = Hasher::new(family, Layout::new(hashes, 1), Seed::new(5))?;
            let (mut rng, mut room) = (Rng::new(Seed::new(8)), Hashed::default());
            let mut keys = Vec::new();
            for _ in 0..records {
                let record: [f32; 8] = std::array::from_fn(|_| (30.0 * rng.gaussian()) as f32);
                hasher.hash(Item::Vector(&record), &mut room)?;
                keys.extend_from_slice(&room.keys);
            }
            keys.sort_unstable();
            keys.dedup();
            all.push((hashes, width, keys.len() as f64 / f64::from(records)));
        }
    }
    Ok(all)
}

/// Sweeps t, the number of functions that may miss, and λ.
fn sweep(run: &mut Run) -> anyhow::Result<()> {
    run.progress("overflow over t, missing functions and λ");
    let (repetitions, queries) = run.full_or_quick((10, 10_000), (2, 1_000));
    let all = theorems::sweep(repetitions, queries, Seed::new(50))?;
    let mut table = Table::new([
        "ω / R",
        "functions that may miss",
        "t",
        "missed",
        "accepted",
        "λ = .1",
        "λ = .3",
        "λ = .5",
        "λ = .7",
        "λ = .9",
    ]);
    let balance = |at: &Swept, lambda: f64| theory::balance(at.accepted.value(), at.missed.value(), lambda);
    for at in &all {
        let (bands, reach) = at.probing.map_or((0, 0), |probing| (probing.bands, probing.reach));
        let fixed = [at.width.to_string(), bands.to_string(), reach.to_string()];
        let rates = [significant(at.missed.value(), 3), significant(at.accepted.value(), 3)];
        let balances = LAMBDAS.map(|lambda| significant(balance(at, lambda), 3));
        table.row(fixed.into_iter().chain(rates).chain(balances));
    }
    run.table("overflow", &table)?;
    let best = |lambda: f64| all.iter().min_by(|a, b| balance(a, lambda).total_cmp(&balance(b, lambda)));
    let told: Vec<String> = LAMBDAS
        .iter()
        .filter_map(|&lambda| {
            let at = best(lambda)?;
            let (bands, reach) = at.probing.map_or((0, 0), |probing| (probing.bands, probing.reach));
            Some(format!(
                "λ = {lambda}: {bands} functions, t = {reach}, ω = {} R ({})",
                at.width,
                significant(balance(at, lambda), 2)
            ))
        })
        .collect();
    let missed_falls = all.chunks(7).all(|of_width| {
        let missed = |i: usize| of_width[i].missed.value();
        missed(1) >= missed(2) - 0.01 && missed(2) >= missed(3) - 0.01 && missed(1) >= missed(4) - 0.01
    });
    let accepted_rises =
        all.chunks(7).all(|of_width| of_width[6].accepted.value() >= of_width[1].accepted.value() - 0.001);
    run.require(missed_falls && accepted_rises, "overflow: a larger t misses more, or accepts less");
    run.verdict(
        ("Section 3.4; Figure 5", "larger t and more functions: fewer false negatives, more false positives"),
        "overflow.tsv",
        "a direction; t = 1 and one function are used",
        &format!(
            "{} of {} settings of the sweep; missed falls and accepted rises at every width",
            all.len(),
            count(all.len() as f64)
        ),
        Outcome::reproduced_if(
            missed_falls && accepted_rises,
            "a direction, at each of 4 widths, up to .01",
            "t works the other way",
        ),
    );
    run.verdict(
        ("Section 3.4", "the best t, functions and λ"),
        "overflow.tsv",
        "left open",
        &format!("least balance: {}", told.join("; ")),
        Outcome::Beyond("the paper sets λ = .3, t = 1 and one function without a comparison; verified filters, far queries drawn like the records".into()),
    );
    Ok(())
}
