//! The threshold that loses nothing: where it works, what it costs, and where it cannot, beside the other ways to lose
//! nothing.
//!
//! With `l_n = ceil(k l'/l)` uses of a position, a query within `r` loses at most `r l_n` tables, so `t = k - r l_n`
//! never loses it. That threshold must still reject unrelated strings: this takes `l' < l/r`, and tables filled to less
//! than `1 - r l'/l`.

use nearset::{
    BitString, ExactSpec, Filter, FilterSpec, Layout, Metric, Rng, Seed, Spec, Table as Tables,
    plan::{Plan, PlanError, Request, RunnerUp, Structure},
    spec::Construction,
};
use nearset_theory::{balanced::Balanced, binomial, distance_sensitive::chance_hit, zero_fn};

use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings::{self, Positions},
    table::Table,
};

/// The false-positive rate that every filter here may have.
const PROMISE: f64 = 0.01;

/// Runs the threshold's examples, its window, its cost and its limits.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    examples(run)?;
    window(run)?;
    cost(run)?;
    limits(run)
}

fn accepted(filter: &Filter<'_>, queries: &[BitString]) -> anyhow::Result<Rate> {
    Ok(Rate::count(filter.contains_all(queries)?))
}

/// Measures false negatives at exactly the radius, and false positives of random strings.
fn measure(
    spec: &FilterSpec,
    bits: u32,
    radius: u32,
    items: u64,
    queries: u64,
    seed: Seed,
) -> anyhow::Result<(Rate, Rate)> {
    let mut rng = Rng::new(seed);
    let stored = strings::random(bits, items, &mut rng);
    let mut filter = Filter::new(spec)?;
    filter.extend(&stored)?;
    let mut positions = Positions::new(bits);
    let near: Vec<BitString> = (0..queries)
        .map(|_| {
            let item = &stored[rng.below(items) as usize];
            strings::flipped(item, positions.draw(radius as usize, &mut rng))
        })
        .collect();
    let far = strings::random(bits, queries, &mut rng);
    Ok((accepted(&filter, &near)?.miss(), accepted(&filter, &far)?))
}

/// Runs the worked examples, built as in the survey: direct tables of `2^l'` bits.
fn examples(run: &mut Run) -> anyhow::Result<()> {
    let balanced = |length, radius, rows, tables| Balanced { length, radius, rows, tables };
    let all = [
        (balanced(256, 8, 16, 16), 10_000),
        (balanced(256, 4, 22, 11), 1_000_000),
        (balanced(1_024, 31, 23, 44), 1_000_000),
    ];
    let (queries, examples) = run.full_or_quick((200_000, &all[..]), (20_000, &all[..1]));
    let mut table = Table::new([
        "bits l",
        "radius r",
        "strings",
        "l'",
        "k",
        "threshold",
        "bits a string",
        "missed at r",
        "fp of random strings",
        "exact",
        "queries each",
    ]);
    let (mut missed, mut apart) = (0, 0f64);
    for &(example, items) in examples {
        let Balanced { length, radius, rows, tables } = example;
        run.progress(format!("no false negatives: {length} bits, radius {radius}, {} strings", count(items as f64)));
        let spec = Spec::balanced(length, radius, Layout::new(rows, tables), Tables::Direct, Seed::new(1))?;
        let (lost, wrong) = measure(&FilterSpec::from(spec), length, radius, items, queries, Seed::new(2))?;
        let exact = example.false_positive(items as f64);
        missed += lost.yes;
        apart = apart.max(wrong.sigmas_from(exact));
        table.row([
            length.to_string(),
            radius.to_string(),
            count(items as f64),
            rows.to_string(),
            tables.to_string(),
            example.threshold().map_or("none".into(), |threshold| threshold.to_string()),
            count(example.bits_per_item(items as f64)),
            lost.yes.to_string(),
            significant(wrong.value(), 3),
            significant(exact, 3),
            count(queries as f64),
        ]);
    }
    run.table("examples", &table)?;
    run.require(missed == 0, format!("{missed} near strings were missed"));
    run.require(apart <= 4.5, format!("false positives lie {apart:.1} standard errors from the tail"));
    run.verdict(
        "the threshold k - r⌈kl′/l⌉ never loses an item within r",
        "examples.tsv",
        "no false negatives",
        &format!(
            "{missed} of {} queries at exactly r lost; false positives within {apart:.1} standard errors of the exact tail",
            count((queries * examples.len() as u64) as f64)
        ),
        Outcome::reproduced_if(missed == 0, "near items were lost"),
    );
    Ok(())
}

/// Measures false positives over `l'`: between chance hits, which fewer bits cause, and lost tables, which more bits
/// cause.
fn window(run: &mut Run) -> anyhow::Result<()> {
    const BITS: u32 = 256;
    const RADIUS: u32 = 8;
    const ITEMS: u64 = 10_000;
    let queries = run.full_or_quick(50_000, 5_000);
    let measured_rows: Vec<u32> = run.full_or_quick((10..=22).collect(), vec![14, 16]);
    let numbers = [16, 64, 256];
    let filter = |rows, tables| Balanced { length: BITS, radius: RADIUS, rows, tables };
    let mut table = Table::new(["l'", "k", "threshold", "fill", "1 - r l'/l", "fp exact", "fp measured"]);
    let mut series = Vec::new();
    for (tables, colour) in numbers.into_iter().zip([Colour::Vermilion, Colour::Green, Colour::Blue]) {
        run.progress(format!("the window of l': {tables} tables"));
        let measured = in_parallel(&measured_rows, |&rows| {
            // A table of 2^22 bits for each of 256 would fill memory to no purpose: fewer tables show as much.
            let spec = Spec::balanced(BITS, RADIUS, Layout::new(rows, tables), Tables::Direct, Seed::new(3));
            let spec = spec.ok().filter(|_| tables <= 64)?;
            Some(measure(&FilterSpec::from(spec), BITS, RADIUS, ITEMS, queries, Seed::new(u64::from(rows))))
        });
        let mut points = Vec::new();
        let mut rates = vec![None; 41];
        for (&rows, outcome) in measured_rows.iter().zip(measured) {
            let Some((lost, wrong)) = outcome.transpose()? else { continue };
            run.require(lost.yes == 0, format!("{} of {queries} near strings lost at l' = {rows}", lost.yes));
            points.push(Point::measured(f64::from(rows), wrong));
            rates[rows as usize] = Some(wrong);
        }
        for rows in 4..=36 {
            let filter = filter(rows, tables);
            table.row([
                rows.to_string(),
                tables.to_string(),
                filter.threshold().map_or("none".into(), |threshold| threshold.to_string()),
                significant(chance_hit(rows, ITEMS as f64), 3),
                significant(filter.load_limit(), 3),
                significant(filter.false_positive(ITEMS as f64), 3),
                rates[rows as usize].map_or("-".into(), |rate| significant(rate.value(), 3)),
            ]);
        }
        let exact = (4..=36).map(|rows| (f64::from(rows), filter(rows, tables).false_positive(ITEMS as f64)));
        series.push(Series::new(format!("k = {tables}"), Shape::Line, colour, exact));
        if !points.is_empty() {
            series.insert(0, Series::new(format!("k = {tables}, measured"), Shape::Dots, colour, points));
        }
    }
    let opens = (1..BITS).find(|&rows| chance_hit(rows, ITEMS as f64) < filter(rows, 1).load_limit()).unwrap_or(0);
    let figure = Figure {
        title: "Where a threshold without false negatives can work".into(),
        notes: vec![
            format!(
                "Random strings of {BITS} bits, {} stored, radius {RADIUS}: false positives of the threshold k - r⌈kl′/l⌉; lines are exact.",
                count(ITEMS as f64)
            ),
            "Left of the window chance hits reach the threshold, right of it so many tables can be lost that none is left.".into(),
        ],
        panels: vec![Panel {
            x: Axis::even("sampled bits a table, l′").within(4.0, 36.0),
            y: Axis::powers("false positives").within(1e-6, 1.0),
            series,
            rules: vec![
                Rule::Vertical(f64::from(opens), "fill < 1 - rl′/l from here".into()),
                Rule::Vertical(f64::from(BITS / RADIUS), "l/r".into()),
            ],
            ..Panel::default()
        }],
        columns: 1,
    };
    run.table("window", &table)?;
    run.figure("window", &figure)?;
    run.verdict(
        "the threshold can be used while it is above 0",
        "window.tsv",
        "t = k - r⌈kl′/l⌉ > 0",
        &format!(
            "{BITS} bits, r = {RADIUS}, {} strings: only from l′ = {opens} on, and below l/r = {}",
            count(ITEMS as f64),
            BITS / RADIUS
        ),
        Outcome::Differs("chance hits must stay below it too: tables may be filled to 1 - rl′/l at most".into()),
    );
    Ok(())
}

/// The structures that lose nothing, in drawing order.
const STRUCTURES: [(Structure, Colour); 4] = [
    (Structure::Balanced, Colour::Blue),
    (Structure::Pigeonhole, Colour::Vermilion),
    (Structure::Covering, Colour::Purple),
    (Structure::FoldedScan, Colour::Green),
];

/// Returns the size that each structure takes for a request without false negatives, if it can.
fn sizes(bits: u32, radius: u32, items: u64) -> anyhow::Result<Vec<Size>> {
    let metric = Metric::Hamming { bits };
    // Nearer than any random string: 5 standard deviations below the mean of half the bits.
    let far = (f64::from(bits) / 2.0 - 2.5 * f64::from(bits).sqrt()).floor();
    let request = Request::new(metric, f64::from(radius)).far(far).capacity(items).errors(0.0, PROMISE);
    let all = match request.plan_filter() {
        Ok(plan) => of_plan(plan),
        Err(PlanError::LargerThanItems { plan, .. }) => of_plan(*plan),
        Err(PlanError::Impossible { tried, .. }) => of_runners_up(tried).collect(),
        Err(error) => return Err(error.into()),
    };
    Ok(all.into_iter().chain(folded(bits, radius, items)?).collect())
}

type Size = (Structure, f64, Option<FilterSpec>);

fn of_plan(plan: Plan) -> Vec<Size> {
    let Plan { structure, bits_per_item, spec, runners_up, .. } = plan;
    std::iter::once((structure, bits_per_item, Some(spec))).chain(of_runners_up(runners_up)).collect()
}

fn of_runners_up(all: Vec<RunnerUp>) -> impl Iterator<Item = Size> {
    all.into_iter().filter_map(|other| Some((other.structure, other.bits_per_item?, other.spec)))
}

/// Returns the narrowest folds that keep random strings apart, all of which a query compares.
fn folded(bits: u32, radius: u32, items: u64) -> anyhow::Result<Option<Size>> {
    let narrowest = (64..=bits).step_by(64).find(|&width| items as f64 * binomial::cdf(width, 0.5, radius) <= PROMISE);
    let size = narrowest.map(|width| {
        let spec = ExactSpec::new(bits, radius, Construction::FoldedScan { width }, Seed::default())?;
        Ok((Structure::FoldedScan, f64::from(width), Some(FilterSpec::from(spec))))
    });
    size.transpose()
}

/// Computes the bits per string over the radius, for each structure, and checks every filter that fits the measured
/// set.
fn cost(run: &mut Run) -> anyhow::Result<()> {
    const BITS: u32 = 256;
    const MEASURED: u64 = 10_000;
    let radii: Vec<u32> = run.full_or_quick((1..=40).collect(), vec![4, 8]);
    let queries = run.full_or_quick(10_000, 1_000);
    let mut table = Table::new([
        "strings",
        "radius",
        "structure",
        "bits a string",
        "missed at the radius",
        "fp of random strings",
        "queries each",
    ]);
    let (mut panels, mut reaches) = (Vec::new(), String::new());
    let mut checked = Rate::default();
    for items in [MEASURED, 1_000_000] {
        run.progress(format!("what losing nothing costs, {} strings", count(items as f64)));
        let rows = in_parallel(&radii, |&radius| -> anyhow::Result<_> {
            let mut rows = Vec::new();
            for (structure, bits, spec) in sizes(BITS, radius, items)? {
                let seed = Seed::new(u64::from(radius));
                let measured = match spec.filter(|_| items == MEASURED) {
                    Some(spec) => Some(measure(&spec, BITS, radius, items, queries, seed)?),
                    None => None,
                };
                rows.push((radius, structure, bits, measured));
            }
            Ok(rows)
        });
        let rows: Vec<_> = rows.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
        for (radius, structure, bits, measured) in &rows {
            if let Some((lost, wrong)) = measured {
                checked = checked + *lost;
                run.require(lost.yes == 0, format!("{structure}, radius {radius}: {} near strings lost", lost.yes));
                // A promise is a bound, so only an excess counts: 4.5 standard errors, in some hundred filters.
                let excess = wrong.value() > PROMISE && wrong.sigmas_from(PROMISE) > 4.5;
                run.require(!excess, format!("{structure}, radius {radius}: false positives {}", wrong.value()));
            }
            let cell = |value: Option<String>| value.unwrap_or("-".into());
            table.row([
                count(items as f64),
                radius.to_string(),
                structure.to_string(),
                significant(*bits, 3),
                cell(measured.map(|(lost, _)| lost.yes.to_string())),
                cell(measured.map(|(_, wrong)| significant(wrong.value(), 2))),
                cell(measured.map(|(lost, _)| lost.of.to_string())),
            ]);
        }
        if items == MEASURED {
            let sizes: Vec<_> = rows.iter().map(|(radius, structure, bits, _)| (*radius, *structure, *bits)).collect();
            reaches = reach(&sizes);
        }
        let mut series: Vec<Series> = STRUCTURES
            .into_iter()
            .map(|(structure, colour)| {
                let points = rows.iter().filter(|row| row.1 == structure).map(|row| (f64::from(row.0), row.2));
                Series::new(structure.to_string(), Shape::DotsOnLine, colour, points)
            })
            .collect();
        let least = (1..=40).map(|radius| (f64::from(radius), zero_fn::hamming_lower_bound(BITS, radius, PROMISE)));
        series.push(Series::new("no filter takes less", Shape::Dotted, Colour::Black, least));
        panels.push(Panel {
            title: format!("{} strings", count(items as f64)),
            x: Axis::even("radius r, bits").within(0.0, 41.0),
            y: Axis::powers("bits a string").within(8.0, 2_000.0),
            series,
            rules: vec![Rule::Horizontal(f64::from(BITS), "the strings themselves".into())],
            ..Panel::default()
        });
    }
    run.table("cost", &table)?;
    let figure = Figure {
        title: "What it costs to lose nothing: strings of 256 bits, 1 % false positives".into(),
        notes: vec!["Each line ends where the structure can't keep the promise any more. Against random strings, planned by nearset.".into()],
        panels,
        columns: 2,
    };
    run.figure("cost", &figure)?;
    run.verdict(
        "no false negatives, at what cost beside pigeonhole and covering filters",
        "cost.tsv",
        "not compared",
        &format!(
            "{} strings of {BITS} bits: {reaches}; {} of {} near queries lost",
            count(MEASURED as f64),
            checked.yes,
            count(checked.of as f64)
        ),
        Outcome::Undecided("the survey compares with neither".into()),
    );
    Ok(())
}

/// Returns up to which radius balanced sampling is the smallest, and up to which each structure works at all.
fn reach(sizes: &[(u32, Structure, f64)]) -> String {
    let largest = |fits: &dyn Fn(&(u32, Structure, f64)) -> bool| {
        sizes.iter().filter(|size| fits(size)).map(|(radius, ..)| *radius).max().unwrap_or(0)
    };
    let smallest = largest(&|&(radius, structure, bits)| {
        structure == Structure::Balanced && sizes.iter().all(|other| other.0 != radius || other.2 >= bits)
    });
    let works = |structure| largest(&|size| size.1 == structure);
    format!(
        "balanced is the smallest up to r = {smallest} and works up to {}, pigeonhole up to {}, covering up to {}",
        works(Structure::Balanced),
        works(Structure::Pigeonhole),
        works(Structure::Covering)
    )
}

/// Returns the largest radius at which up to 200 direct tables keep the false positives.
fn largest_radius(length: u32, items: f64) -> u32 {
    let possible = |radius: u32| {
        (1..=length / radius).any(|rows| {
            (1..=200).any(|tables| Balanced { length, radius, rows, tables }.false_positive(items) <= PROMISE)
        })
    };
    (1..=length).take_while(|radius| possible(*radius)).last().unwrap_or(0)
}

/// Finds the largest radii, beyond which it cannot work.
fn limits(run: &mut Run) -> anyhow::Result<()> {
    run.progress("the largest radii");
    // Calculated before this run.
    let expected = [(1e3, [4, 8, 16]), (1e4, [3, 6, 13]), (1e6, [2, 4, 9])];
    let mut table = Table::new(["strings", "64 bits", "128 bits", "256 bits"]);
    for (items, radii) in expected {
        let found = [64, 128, 256].map(|length| largest_radius(length, items));
        run.require(found == radii, format!("largest radii {found:?} for {items} strings, {radii:?} before"));
        table.row(std::iter::once(count(items)).chain(found.map(|radius| radius.to_string())));
    }
    run.table("limits", &table)?;
    run.verdict(
        "how large a radius it serves",
        "limits.tsv",
        "not stated",
        &format!("256 bits and a million strings: up to r = {} at 1 % false positives", largest_radius(256, 1e6)),
        Outcome::Undecided("there is no figure of theirs to compare with".into()),
    );
    Ok(())
}
