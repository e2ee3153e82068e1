//! Three families: sampled bits, random hyperplanes, and random lines in the plane cut into buckets.

use std::f64::consts::PI;

use nearset::{
    Family, Item, Layout, Rng, Seed,
    family::{BitSampling, Hashed, Hyperplane, PStable, Sampling, Stable},
    item::Distance,
    spec::Hasher,
};
use nearset_theory::near_neighbour;

use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::significant,
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    strings::{self, Positions},
    table::Table,
};

const BITS: u32 = 10_000;
const DIMENSION: u32 = 32;
const WIDTH: f64 = 1.0;

/// One measured point: its position, how often two items collide, and how often they should.
struct Measured {
    family: &'static str,
    distance: f64,
    collided: Rate,
    expected: f64,
}

/// Measures the families at several distances.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let (pairs, functions) = run.full_or_quick((200, 500), (50, 200));
    let mut all = Vec::new();
    run.progress("bits");
    let bits = BitSampling { bits: BITS, sampling: Sampling::Uniform };
    for tenth in 0..=10 {
        let differing = f64::from(BITS) * f64::from(tenth) / 10.0;
        let collided = collisions(&bits.into(), pairs, functions, |family, rng| {
            let a = strings::random(BITS, 1, rng).remove(0);
            let b = strings::flipped(&a, Positions::new(BITS).draw(differing as usize, rng));
            family((&a).into(), (&b).into())
        })?;
        let expected = near_neighbour::hamming(differing, f64::from(BITS));
        all.push(Measured { family: "sampled bits", distance: differing, collided, expected });
    }
    run.progress("directions");
    for twelfth in 0..=12 {
        let angle = PI * f64::from(twelfth) / 12.0;
        let collided = collisions(&Hyperplane { dimension: DIMENSION }.into(), pairs, functions, |family, rng| {
            let [a, b] = directions(angle, rng);
            family(Item::Vector(&a), Item::Vector(&b))
        })?;
        all.push(Measured { family: "hyperplanes", distance: angle, collided, expected: near_neighbour::angle(angle) });
    }
    run.progress("the plane");
    let stable = Family::from(PStable { dimension: 2, width: WIDTH, stable: Stable::Gaussian });
    for quarter in 1..=12u32 {
        let distance = f64::from(quarter) / 4.0 * WIDTH;
        let collided = lines(distance, pairs * u64::from(functions), Seed::new(quarter.into()));
        let expected = near_neighbour::random_line(distance, WIDTH);
        all.push(Measured { family: "lines of the plane", distance, collided, expected });
        let collided = collisions(&stable, pairs, functions, |family, rng| {
            let (angle, at) = (2.0 * PI * rng.unit(), [10.0 * rng.gaussian(), 10.0 * rng.gaussian()]);
            let other = [at[0] + distance * angle.cos(), at[1] + distance * angle.sin()];
            let [a, b] = [at, other].map(|point| point.map(|x| x as f32));
            family(Item::Vector(&a), Item::Vector(&b))
        })?;
        let expected = stable.collision_probability(Distance::new(distance)?);
        all.push(Measured { family: "Gaussian projections", distance, collided, expected });
    }
    report(run, &all)
}

/// Tests whether two items collide, function by function.
type Ask<'a> = dyn FnMut(Item<'_>, Item<'_>) -> anyhow::Result<Rate> + 'a;

/// Measures how often a family's functions agree on pairs; every pair has its own functions.
fn collisions(
    family: &Family,
    pairs: u64,
    functions: u32,
    pair: impl Fn(&mut Ask<'_>, &mut Rng) -> anyhow::Result<Rate> + Sync,
) -> anyhow::Result<Rate> {
    let seeds: Vec<u64> = (0..pairs).collect();
    let rates = in_parallel(&seeds, |&seed| {
        let drawn = Hasher::new(*family, Layout::new(1, functions), Seed::new(seed))?;
        let [mut first, mut second] = [Hashed::default(), Hashed::default()];
        let mut ask = |a: Item<'_>, b: Item<'_>| {
            drawn.hash(a, &mut first)?;
            drawn.hash(b, &mut second)?;
            Ok(Rate::count(first.keys.iter().zip(&second.keys).map(|(a, b)| a == b)))
        };
        pair(&mut ask, &mut Rng::new(Seed::new(seed).derive("pair", 0)))
    });
    rates.into_iter().sum()
}

/// Makes two directions at an angle.
fn directions(angle: f64, rng: &mut Rng) -> [Vec<f32>; 2] {
    let mut direction = || -> Vec<f64> { (0..DIMENSION).map(|_| rng.gaussian()).collect() };
    let (mut a, mut b) = (direction(), direction());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let length = dot(&a, &a).sqrt();
    a.iter_mut().for_each(|x| *x /= length);
    let along = dot(&a, &b);
    b.iter_mut().zip(&a).for_each(|(b, a)| *b -= along * a);
    let length = dot(&b, &b).sqrt();
    let turned = a.iter().zip(&b).map(|(a, b)| (a * angle.cos() + b / length * angle.sin()) as f32).collect();
    [a.iter().map(|&x| x as f32).collect(), turned]
}

/// Projects points of the plane on a line in a random direction, cut at a random offset: the notes' own family.
fn lines(distance: f64, trials: u64, seed: Seed) -> Rate {
    let mut rng = Rng::new(seed);
    Rate::count((0..trials).map(|_| {
        let along = distance * (2.0 * PI * rng.unit()).cos();
        let start = rng.unit();
        (start + along / WIDTH).floor() == 0.0
    }))
}

fn report(run: &mut Run, all: &[Measured]) -> anyhow::Result<()> {
    let mut table = Table::new(["family", "distance", "p, formula", "p, measured", "standard errors apart", "trials"]);
    let mut largest = 0f64;
    for row in all {
        let apart = row.collided.sigmas_from(row.expected);
        largest = largest.max(apart);
        table.row([
            row.family.to_owned(),
            significant(row.distance, 4),
            significant(row.expected, 4),
            significant(row.collided.value(), 4),
            format!("{apart:.1}"),
            row.collided.of.to_string(),
        ]);
    }
    run.table("families", &table)?;
    run.figure("families", &figure(all)?)?;
    run.require(largest <= 4.5, format!("families: {largest:.1} standard errors from the formula"));
    for (claim, theirs, family) in [
        ("Hamming distance: p = 1 - d/l", "1 - d/l", "sampled bits"),
        ("angles: p = 1 - φ/π", "1 - φ/π", "hyperplanes"),
    ] {
        let farthest = all
            .iter()
            .filter(|row| row.family == family)
            .map(|row| row.collided.sigmas_from(row.expected))
            .fold(0.0, f64::max);
        run.verdict(
            claim,
            "families.tsv",
            theirs,
            &format!("measured within {farthest:.1} standard errors"),
            Outcome::reproduced_if(farthest <= 4.5, "the measured line is another"),
        );
    }
    let at = |distance| {
        let row = all.iter().find(|row| row.family == "lines of the plane" && row.distance == distance);
        row.map_or(0.0, |row| row.collided.value())
    };
    let (near, far) = (at(0.5 * WIDTH), at(2.0 * WIDTH));
    let holds = near >= 0.5 && far <= 1.0 / 3.0;
    run.require(holds, format!("lines of the plane: {near} and {far}"));
    run.verdict(
        "lines of the plane are (w/2, 2w, 1/2, 1/3)-sensitive",
        "families.tsv",
        "p ≥ 1/2 at w/2, p ≤ 1/3 at 2w",
        &format!("{} and {}: both hold with room to spare", significant(near, 3), significant(far, 3)),
        Outcome::reproduced_if(holds, "a bound does not hold"),
    );
    Ok(())
}

fn figure(all: &[Measured]) -> anyhow::Result<Figure> {
    let dots = |family: &'static str, name: &str, colour| {
        let rows = all.iter().filter(move |row| row.family == family);
        Series::new(name, Shape::Dots, colour, rows.map(|row| Point::measured(row.distance, row.collided)))
    };
    let curve = |to: f64, colour, p: &dyn Fn(f64) -> f64| {
        Series::new("", Shape::Line, colour, (1..=120).map(|i| to * f64::from(i) / 120.0).map(|x| (x, p(x))))
    };
    let stable = Family::from(PStable { dimension: 2, width: WIDTH, stable: Stable::Gaussian });
    let gaussian = |x: f64| Distance::new(x).map_or(f64::NAN, |distance| stable.collision_probability(distance));
    let p = || Axis::even("p, agreement of one function").within(0.0, 1.0);
    let panels = vec![
        Panel {
            title: "sampled bits of 10,000".into(),
            x: Axis::even("differing bits").within(0.0, 10_000.0),
            y: p(),
            series: vec![
                dots("sampled bits", "nearset's families", Colour::Blue),
                curve(10_000.0, Colour::Blue, &|x| near_neighbour::hamming(x, f64::from(BITS))),
            ],
            ..Panel::default()
        },
        Panel {
            title: "random hyperplanes".into(),
            x: Axis::even("angle, degrees").within(0.0, 180.0),
            y: p(),
            series: {
                let mut dots = dots("hyperplanes", "nearset's families", Colour::Blue);
                dots.points.iter_mut().for_each(|point| point.x = point.x.to_degrees());
                vec![dots, curve(180.0, Colour::Blue, &|x| near_neighbour::angle(x.to_radians()))]
            },
            ..Panel::default()
        },
        Panel {
            title: "projections of the plane".into(),
            x: Axis::even("distance, bucket widths w").within(0.0, 3.1),
            y: p(),
            series: vec![
                dots("Gaussian projections", "nearset's families", Colour::Blue),
                dots("lines of the plane", "lines in a random direction (the notes)", Colour::Vermilion),
                curve(3.1, Colour::Blue, &gaussian),
                curve(3.1, Colour::Vermilion, &|x| near_neighbour::random_line(x, WIDTH)),
            ],
            rules: vec![Rule::Vertical(0.5, "w/2".into()), Rule::Vertical(2.0, "2w".into())],
            ..Panel::default()
        },
    ];
    Ok(Figure {
        title: "Locality-sensitive families: how often two items collide".into(),
        notes: vec!["Lines are the formulas, dots measured with 95 % intervals".into()],
        panels,
        columns: 3,
    })
}
