//! Fingerprints: functions that look only at prints with minutiae in three chosen squares, joined by OR and AND.
//!
//! A square holds a minutia with probability .2, and with .8 given that the other print of the same finger has one
//! there; so with .05 given that it has none, since each print by itself is a print like any other.

use nearset::{
    BitString, Filter, Rng, Seed, Spec, Table as Tables,
    family::{Hashed, Minutiae},
};
use nearset_theory::{amplify::Step, minutiae};

use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    table::Table,
};

const MODEL: minutiae::Minutiae = minutiae::Minutiae::NOTES;
/// A grid of 100 x 100.
const SQUARES: u32 = 10_000;
/// The numbers of functions joined by OR; the notes take 1,024.
const FUNCTIONS: [u32; 7] = [16, 64, 256, 512, 1_024, 2_048, 4_096];

/// Groups of functions: OR within a group, AND over groups.
#[derive(Clone, Copy, PartialEq)]
struct Groups {
    of: u32,
    groups: u32,
}

impl Groups {
    fn spec(self) -> anyhow::Result<Spec> {
        let occupied = (MODEL.occupancy * f64::from(SQUARES)) as u32;
        let steps = [Step::Or(self.of), Step::And(self.groups)];
        // There is one print per filter, and a key only if all three squares are occupied, so one bit per function is
        // enough.
        let family = Minutiae { squares: SQUARES, occupied };
        Ok(Spec::by_rule(family, 1, nearset::spec::Rule::cascade(steps)?, Tables::Bits(1), Seed::default()))
    }

    fn exact(self, function: f64) -> f64 {
        (1.0 - (1.0 - function).powf(f64::from(self.of))).powf(f64::from(self.groups))
    }
}

fn print(rng: &mut Rng, occupied: impl Fn(usize) -> f64) -> BitString {
    let mut print = BitString::zeros(SQUARES as usize);
    for square in 0..SQUARES as usize {
        if rng.unit() < occupied(square) {
            print.set(square, true);
        }
    }
    print
}

/// The outcomes for pairs of prints of one finger and of two.
#[derive(Clone, Copy, Default)]
struct Outcomes {
    same: Rate,
    different: Rate,
}

fn one_draw(groups: Groups, pairs: usize, seed: Seed) -> anyhow::Result<Outcomes> {
    let mut rng = Rng::new(seed.derive("prints", u64::from(groups.of)));
    let mut spec = groups.spec()?;
    spec.seed = seed;
    let (empty, mut room) = (Filter::new(&spec.into())?, Hashed::default());
    // Functions are drawn with the first hash; copies share them.
    empty.contains_near(&BitString::zeros(SQUARES as usize), &mut room)?;
    let mut outcomes = Outcomes::default();
    for _ in 0..pairs {
        let stored = print(&mut rng, |_| MODEL.occupancy);
        let unseen = MODEL.occupancy * (1.0 - MODEL.agreement) / (1.0 - MODEL.occupancy);
        let same = print(&mut rng, |square| if stored.bits().bit(square) { MODEL.agreement } else { unseen });
        let different = print(&mut rng, |_| MODEL.occupancy);
        let mut filter = empty.clone();
        filter.insert(&stored, &mut room)?;
        outcomes.same = outcomes.same + Rate::count([filter.contains_near(&same, &mut room)?]);
        outcomes.different = outcomes.different + Rate::count([filter.contains_near(&different, &mut room)?]);
    }
    Ok(outcomes)
}

/// Compares printed, exact and measured values.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let (draws, pairs) = run.full_or_quick((40, 100), (10, 30));
    let numbers = run.full_or_quick(&FUNCTIONS[..], &[1_024]);
    let (same, different) = (MODEL.same_finger(), MODEL.different_fingers());
    let mut table = Table::new([
        "functions in a group",
        "groups",
        "same finger, exact",
        "measured",
        "different fingers, exact",
        "measured",
        "standard errors apart",
        "pairs each",
    ]);
    let (mut measured, mut largest) = (Vec::new(), 0f64);
    for groups in [1, 2] {
        for &of in numbers {
            let groups = Groups { of, groups };
            run.progress(format!("fingerprints: {} x {of} functions", groups.groups));
            let seeds: Vec<u64> = (0..draws).collect();
            let parts = in_parallel(&seeds, |&seed| one_draw(groups, pairs, Seed::new(seed)));
            let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            let outcomes = Outcomes {
                same: parts.iter().map(|part| part.same).sum(),
                different: parts.iter().map(|part| part.different).sum(),
            };
            let apart = outcomes.same.sigmas_from(groups.exact(same));
            let apart = apart.max(outcomes.different.sigmas_from(groups.exact(different)));
            largest = largest.max(apart);
            table.row([
                of.to_string(),
                groups.groups.to_string(),
                significant(groups.exact(same), 3),
                significant(outcomes.same.value(), 3),
                significant(groups.exact(different), 3),
                significant(outcomes.different.value(), 3),
                format!("{apart:.1}"),
                outcomes.same.of.to_string(),
            ]);
            measured.push((groups, outcomes));
        }
    }
    run.table("fingerprints", &table)?;
    run.figure("fingerprints", &figure(&measured))?;
    run.require(largest <= 4.5, format!("fingerprints: {largest:.1} standard errors from the formula"));
    let at =
        |groups| measured.iter().find(|(at, _)| *at == Groups { of: 1_024, groups }).map(|(_, outcomes)| *outcomes);
    let printed = (same - 0.004_096).abs() < 1e-12 && (different - 0.000_064).abs() < 1e-12;
    run.require(printed, format!("a function joins {same} and {different}"));
    run.verdict(
        ("slide 70; slide 71", "three squares: one finger collides with .2³·.8³, two with .2⁶"),
        "fingerprints.tsv",
        ".004096 and .000064",
        &format!("{same:.6} and {different:.6}"),
        Outcome::reproduced_if(printed, "exact", "a value is another"),
    );
    for (groups, claim, theirs) in [
        (1, "an OR of 1,024 such functions", ".985 and .063"),
        (2, "an AND as well: far fewer false positives for few more false negatives", "said, no number given"),
    ] {
        let Some(outcomes) = at(groups) else { continue };
        run.verdict(
            ("slide 71", claim),
            "fingerprints.tsv",
            theirs,
            &format!(
                "{} and {}, of {} pairs of prints each",
                significant(outcomes.same.value(), 3),
                significant(outcomes.different.value(), 2),
                count(outcomes.same.of as f64)
            ),
            Outcome::reproduced_if(
                largest <= 4.5,
                if groups == 1 { "4.5 standard errors" } else { "a direction; two groups of 1,024" },
                "a measured rate is another",
            ),
        );
    }
    Ok(())
}

fn figure(measured: &[(Groups, Outcomes)]) -> Figure {
    let panel = |groups: u32| {
        let rows = || measured.iter().filter(move |(at, _)| at.groups == groups);
        let dots =
            |rate: fn(&Outcomes) -> Rate| rows().map(move |(at, row)| Point::measured(f64::from(at.of), rate(row)));
        let curve = |function: f64| {
            let numbers = (0..=90).map(|i| 2f64.powf(4.0 + f64::from(i) / 10.0));
            numbers.map(move |of| (of, Groups { of: of as u32, groups }.exact(function)))
        };
        Panel {
            title: if groups == 1 { "one group".into() } else { "two groups, both of which must agree".into() },
            x: Axis::powers("functions in a group").within(14.0, 8_200.0),
            y: Axis::even("prints brought together").within(0.0, 1.0),
            series: vec![
                Series::new("prints of the same finger", Shape::Dots, Colour::Blue, dots(|row| row.same)),
                Series::new("prints of two fingers", Shape::Dots, Colour::Vermilion, dots(|row| row.different)),
                Series::new("", Shape::Line, Colour::Blue, curve(MODEL.same_finger())),
                Series::new("", Shape::Line, Colour::Vermilion, curve(MODEL.different_fingers())),
            ],
            rules: vec![Rule::Vertical(1_024.0, "the notes' 1,024".into())],
            ..Panel::default()
        }
    };
    Figure {
        title: "Fingerprints: functions of three squares, joined by OR".into(),
        notes: vec!["A square is occupied in 20 % of prints, in 80 % where the finger's other print is; lines are exact, bars 95 %".into()],
        panels: vec![panel(1), panel(2)],
        columns: 2,
    }
}
