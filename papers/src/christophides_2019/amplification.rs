//! AND, OR and their cascades, each as a filter's rule over single MinHash functions.

use nearset::{Seed, Shingling, Spec, Table as Tables, family::MinHash};
use nearset_theory::amplify::{Cascade, Step};

use super::pairs;
use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::significant,
    run::{Outcome, Run},
    table::Table,
};

/// A construction, and the values that the notes print for it.
struct Construction {
    name: &'static str,
    /// The number of functions that make a key, by an AND directly over the functions.
    rows: u32,
    /// The steps after it.
    steps: &'static [Step],
    /// The `p` of the first printed value, in tenths; the others follow.
    first: u32,
    printed: &'static [f64],
    colour: Colour,
}

const CONSTRUCTIONS: [Construction; 3] = [
    Construction {
        name: "AND of 4, then OR of 4",
        rows: 4,
        steps: &[Step::Or(4)],
        first: 2,
        printed: &[0.0064, 0.0320, 0.0985, 0.2275, 0.4260, 0.6666, 0.8785, 0.9860],
        colour: Colour::Blue,
    },
    Construction {
        name: "OR of 4, then AND of 4",
        rows: 1,
        steps: &[Step::Or(4), Step::And(4)],
        first: 1,
        printed: &[0.0140, 0.1215, 0.3334, 0.5740, 0.7725, 0.9015, 0.9680, 0.9936],
        colour: Colour::Vermilion,
    },
    Construction {
        name: "OR-AND, then AND-OR, of 4 each",
        rows: 1,
        steps: &[Step::Or(4), Step::And(4), Step::And(4), Step::Or(4)],
        first: 2,
        printed: &[0.0008715],
        colour: Colour::Green,
    },
];

impl Construction {
    fn cascade(&self) -> Cascade {
        let and = (self.rows > 1).then_some(Step::And(self.rows));
        Cascade::new(and.into_iter().chain(self.steps.iter().copied()))
    }

    fn printed(&self, tenths: u32) -> Option<f64> {
        self.printed.get(tenths.checked_sub(self.first)? as usize).copied()
    }
}

/// Compares printed, exact and measured values.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let (filters, each) = run.full_or_quick((100, 200), (10, 50));
    let similarities: Vec<f64> = (1..10).map(|tenths| f64::from(tenths) / 10.0).collect();
    let mut table =
        Table::new(["construction", "p", "printed", "exact", "measured", "standard errors apart", "trials"]);
    let (mut series, mut lines, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    let mut outcomes = Vec::new();
    for construction in &CONSTRUCTIONS {
        run.progress(construction.name);
        let family = MinHash { shingling: Shingling::default() };
        // So empty that chance hits do not count: 8 bits per key, at most 1,800 keys in 512 lines.
        let tables = Tables::Lines { lines: 512, hashes: 8 };
        let rule = nearset::spec::Rule::cascade(construction.steps.iter().copied())?;
        let spec = Spec::by_rule(family, construction.rows, rule, tables, Seed::default());
        let measured = pairs::acceptance(&spec, &similarities, filters, each)?;
        let cascade = construction.cascade();
        let (mut largest, mut as_printed) = (0f64, 0);
        for (tenths, (&p, &rate)) in (1..).zip(similarities.iter().zip(&measured)) {
            let (exact, printed) = (cascade.probability(p), construction.printed(tenths));
            // To half a unit of the last printed place.
            let agrees =
                printed.is_none_or(|printed| (printed - exact).abs() <= if printed < 0.001 { 5e-8 } else { 5.1e-5 });
            run.require(agrees, format!("{} at {p}: {exact} for {printed:?}", construction.name));
            as_printed += usize::from(agrees && printed.is_some());
            let apart = rate.sigmas_from(exact);
            largest = largest.max(apart);
            table.row([
                construction.name.to_owned(),
                p.to_string(),
                printed.map_or("-".into(), |printed| printed.to_string()),
                significant(exact, 4),
                significant(rate.value(), 4),
                format!("{apart:.1}"),
                rate.of.to_string(),
            ]);
        }
        run.require(largest <= 4.5, format!("{}: {largest:.1} standard errors from the formula", construction.name));
        outcomes.push((construction, as_printed, largest));
        let points = similarities.iter().zip(&measured).map(|(&x, &rate)| Point::measured(x, rate));
        series.push(Series::new(construction.name, Shape::Dots, construction.colour, points));
        let curve = (0..=200).map(|i| f64::from(i) / 200.0).map(|p| (p, cascade.probability(p)));
        lines.push(Series::new("", Shape::Line, construction.colour, curve));
        if let (Some(fixed), 4) = (cascade.fixed_point(), cascade.steps().len()) {
            rules.push(Rule::Vertical(fixed, format!("fixed point of the cascade, {}", significant(fixed, 3))));
        }
    }
    series.extend(lines);
    series.push(Series::new("p itself", Shape::Dashed, Colour::Black, [(0.0, 0.0), (1.0, 1.0)]));
    run.table("amplification", &table)?;
    run.figure("amplification", &Figure {
        title: "Amplification: AND, OR and a cascade of both".into(),
        notes: vec!["Lines are exact; dots are pairs of sets with Jaccard similarity p in filters of such rules, with 95 % intervals".into()],
        panels: vec![Panel {
            x: Axis::even("p, agreement of one function").within(0.0, 1.0),
            y: Axis::even("agreement after all steps").within(0.0, 1.0),
            series,
            rules,
            ..Panel::default()
        }],
        columns: 1,
    })?;
    // The cascade's one printed value has its own verdict.
    for (construction, as_printed, largest) in outcomes.into_iter().filter(|(it, ..)| it.printed.len() > 1) {
        let printed: Vec<String> = construction.printed.iter().map(f64::to_string).collect();
        let all = as_printed == construction.printed.len() && largest <= 4.5;
        let place = match construction.rows {
            1 => "slide 59; slide 63; slide 64",
            _ => "slide 57; slide 61; slide 62",
        };
        run.verdict(
            (place, &format!("{}: the table", construction.name)),
            "amplification.tsv",
            &printed.join(" "),
            &format!("{as_printed} of {} as printed; measured within {largest:.1} standard errors", printed.len()),
            Outcome::reproduced_if(all, "half a unit of the fourth place; 4.5 standard errors", "a value is another"),
        );
    }
    let cascade = CONSTRUCTIONS[2].cascade();
    let high = cascade.probability(0.8);
    run.require((high - 0.999_999_6).abs() < 5e-8, format!("the cascade takes .8 to {high}"));
    run.verdict(
        (
            "slide 60; slide 65",
            "OR-AND, then AND-OR, makes a (.2, .8, .8, .2)-sensitive family (.2, .8, .9999996, .0008715)-sensitive",
        ),
        "amplification.tsv",
        ".9999996 and .0008715",
        &format!("{:.7} and {:.7}", high, cascade.probability(0.2)),
        Outcome::reproduced_if(
            (high - 0.999_999_6).abs() < 5e-8,
            "half a unit of the seventh place",
            "a value is another",
        ),
    );
    Ok(())
}
