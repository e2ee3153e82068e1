//! The measurements, as tables and figures.

use super::{
    evaluation::{Evaluation, Measured},
    filters,
    nodes::{Nodes, Staleness},
    theorems::{Outcome, Variant, WIDTHS},
    tuning::Tuned,
};
use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Rule, Series, Shape},
    format::{count, significant},
    rate::Rate,
    run::Run,
    table::Table,
};

/// All competitors, in the order of legends.
const COMPETITORS: [(&str, Colour); 7] = [
    ("Baseline", Colour::Black),
    ("LSB-tree", Colour::Green),
    ("SmartStore", Colour::Orange),
    ("LSBF as printed", Colour::Purple),
    ("LSBF half full", Colour::Sky),
    ("LSBF tuned", Colour::Blue),
    ("nearset planned", Colour::Vermilion),
];

/// Formats a rate with three digits, or as nothing if there were no queries.
pub fn rate(rate: Rate) -> String {
    if rate.of == 0 { "-".into() } else { significant(rate.value(), 3) }
}

/// Writes the tables of the comparison.
pub fn evaluation_tables(run: &Run, evaluation: &Evaluation) -> anyhow::Result<()> {
    let mut table = Table::new([
        "data",
        "queries",
        "R",
        "near",
        "competitor",
        "accuracy",
        "missed",
        "accepted",
        "accepted beyond 4 R",
        "µs",
        "accesses",
        "kB",
    ]);
    for measured in &evaluation.measured {
        table.row([
            measured.data.to_owned(),
            measured.kind.to_owned(),
            measured.radius.to_string(),
            rate(measured.near),
            measured.competitor.clone(),
            rate(measured.right),
            rate(measured.missed),
            rate(measured.accepted),
            rate(measured.accepted_far),
            significant(measured.microseconds, 3),
            significant(measured.accesses, 3),
            count(measured.bytes as f64 / 1000.0),
        ]);
    }
    run.table("evaluation", &table)?;
    let mut filled = Table::new(["data", "R", "filter", "shape", "fill", "bits per record"]);
    for filter in &evaluation.filled {
        filled.row([
            filter.data.to_owned(),
            filter.radius.to_string(),
            filter.name.clone(),
            filter.shape.clone(),
            // A fill of 1 must not be the rounding of .9999.
            if filter.fill == 1.0 { "1".into() } else { format!("{:.4}", filter.fill) },
            significant(8.0 * filter.bytes as f64 / filter.records as f64, 3),
        ]);
    }
    run.table("fill", &filled)?;
    let mut refused = Table::new(["data", "R", "why the planner has no locality-sensitive Bloom filter"]);
    for (data, radius, why) in &evaluation.refused {
        refused.row([data.to_string(), radius.to_string(), why.clone()]);
    }
    run.table("refused", &refused)
}

/// Writes the space beside SmartStore's, the paper's Table 1: each competitor at the paper's R.
pub fn space_table(run: &Run, evaluation: &Evaluation, at: &[(&'static str, f64)]) -> anyhow::Result<()> {
    let mut table = Table::new(["competitor", "data", "kB", "of SmartStore", "paper"]);
    for (name, _) in COMPETITORS {
        for &(data, radius) in at {
            let Some(bytes) = bytes(evaluation, data, radius, name) else { continue };
            let store = bytes_of_store(evaluation, data, radius);
            let printed = match (name, data) {
                ("SmartStore", _) => "1",
                ("LSB-tree", "forest") => "0.42",
                ("LSB-tree", _) => "0.68",
                ("LSBF as printed", "forest") => "0.09",
                ("LSBF as printed", _) => "0.15",
                _ => "-",
            };
            let size = significant(bytes / 1000.0, 3);
            table.row([name.into(), data.to_owned(), size, significant(bytes / store, 2), printed.into()]);
        }
        if name == "LSB-tree" {
            for &(data, radius) in at {
                let Some((_, bytes)) = evaluation.codes.iter().find(|(of, _)| *of == data) else { continue };
                let part = significant(*bytes as f64 / bytes_of_store(evaluation, data, radius), 2);
                let size = significant(*bytes as f64 / 1000.0, 3);
                table.row(["LSB-tree, codes and ids only", data, &size, &part, "as above"]);
            }
        }
    }
    run.table("space", &table)
}

/// Returns the bytes of a competitor.
pub fn bytes(evaluation: &Evaluation, data: &str, radius: f64, name: &str) -> Option<f64> {
    let found = evaluation.measured.iter().find(|m| m.data == data && m.radius == radius && m.competitor == name);
    found.map(|measured| measured.bytes as f64)
}

fn bytes_of_store(evaluation: &Evaluation, data: &str, radius: f64) -> f64 {
    bytes(evaluation, data, radius, "SmartStore").unwrap_or(f64::NAN)
}

/// Returns the kinds of records and queries that occur, in order.
fn pairs(evaluation: &Evaluation) -> Vec<(&'static str, &'static str)> {
    let mut pairs: Vec<_> = evaluation.measured.iter().map(|measured| (measured.data, measured.kind)).collect();
    let mut seen = Vec::new();
    pairs.retain(|pair| {
        !seen.contains(pair) && {
            seen.push(*pair);
            true
        }
    });
    pairs
}

fn radii(evaluation: &Evaluation, data: &str) -> Vec<f64> {
    let mut radii: Vec<f64> = evaluation.measured.iter().filter(|m| m.data == data).map(|m| m.radius).collect();
    radii.sort_by(f64::total_cmp);
    radii.dedup();
    radii
}

/// Draws bars by R, with one panel per kind of records and queries.
fn bars(evaluation: &Evaluation, axis: &Axis, value: &dyn Fn(&Measured) -> f64) -> Vec<Panel> {
    let panel = |(data, kind): (&'static str, &'static str)| {
        let radii = radii(evaluation, data);
        let series = COMPETITORS.iter().map(|&(name, colour)| {
            let own = evaluation.measured.iter().filter(|m| (m.data, m.kind) == (data, kind) && m.competitor == name);
            let place = |radius: f64| radii.iter().position(|&other| other == radius).unwrap_or(0) as f64;
            Series::new(name, Shape::Bars, colour, own.map(|m| (place(m.radius), value(m))))
        });
        Panel {
            title: format!("{data}, {kind} queries"),
            x: Axis::names("R", radii.iter().map(f64::to_string)),
            y: axis.clone(),
            series: series.collect(),
            ..Panel::default()
        }
    };
    pairs(evaluation).into_iter().map(panel).collect()
}

/// Draws latency, accuracy and accesses, and the two errors separately.
pub fn evaluation_figures(run: &Run, evaluation: &Evaluation) -> anyhow::Result<()> {
    let latency = bars(evaluation, &Axis::powers("µs per query").within(0.1, 10_000.0), &|m| m.microseconds);
    let note = |text: &str| vec![text.to_owned()];
    run.figure(
        "latency",
        &Figure {
            title: "Latency: all in memory, one thread".into(),
            notes: note(
                "Mean over the queries of the best of several passes. Where no bar is, the planner has no filter.",
            ),
            panels: latency,
            columns: 2,
        },
    )?;
    let accuracy = bars(evaluation, &Axis::even("right answers, %").within(0.0, 105.0), &|m| 100.0 * m.right.value());
    run.figure(
        "accuracy",
        &Figure {
            title: "Accuracy: right answers, one number for both errors".into(),
            notes: note(
                "Where every query has a record within R, as on the forest at R = 2000, always saying yes is right. A stub is 0 %; no bar: no filter is planned.",
            ),
            panels: accuracy,
            columns: 2,
        },
    )?;
    let accesses =
        bars(evaluation, &Axis::powers("pages of 4,096 bytes per query").within(0.5, 20_000.0), &|m| m.accesses);
    run.figure(
        "accesses",
        &Figure {
            title: "Accesses: pages that a query would read if nothing were cached".into(),
            notes: note("Pages of records for the Baseline, nodes for trees, pages of bits for filters."),
            panels: accesses,
            columns: 2,
        },
    )?;
    run.figure("errors", &errors(evaluation))
}

/// Draws missed and accepted by R, for both kinds of queries together.
fn errors(evaluation: &Evaluation) -> Figure {
    let mut data: Vec<&'static str> = pairs(evaluation).into_iter().map(|(data, _)| data).collect();
    data.dedup();
    let panel = |data: &'static str, what: &str, promised: bool, of: &dyn Fn(&Measured) -> Rate| {
        let radii = radii(evaluation, data);
        let series = COMPETITORS.iter().skip(1).enumerate().map(|(i, &(name, colour))| {
            let points = radii.iter().enumerate().filter_map(|(place, &radius)| {
                let own =
                    evaluation.measured.iter().filter(|m| m.data == data && m.radius == radius && m.competitor == name);
                let rate: Rate = own.map(of).sum();
                // Side by side, so that equal rates do not hide each other.
                (rate.of > 0).then(|| Point::measured(place as f64 + 0.06 * (i as f64 - 2.5), rate))
            });
            Series::new(name, Shape::DotsOnLine, colour, points)
        });
        Panel {
            title: format!("{data}: {what}"),
            x: Axis::names("R", radii.iter().map(f64::to_string)),
            y: Axis::even("part of the queries").within(-0.02, 1.02),
            series: series.collect(),
            rules: if promised { vec![Rule::Horizontal(filters::ALLOWED, String::new())] } else { Vec::new() },
            ..Panel::default()
        }
    };
    let panels = data.into_iter().flat_map(|data| {
        [
            panel(data, "near, missed", true, &|m| m.missed),
            panel(data, "beyond R, accepted", false, &|m| m.accepted),
            panel(data, "beyond 4 R, accepted", true, &|m| m.accepted_far),
        ]
    });
    Figure {
        title: "Both errors apart".into(),
        notes: vec![
            "With 95 % intervals. Dashed: the 5 % that the planned filter allows, of queries near and of queries with nothing within 4 R.".into(),
            "Where a query's nearest record lies between R and 4 R nothing is promised.".into(),
        ],
        panels: panels.collect(),
        columns: 3,
    }
}

/// Reports χ by R, for each kind of records.
pub fn tuning(run: &Run, tuned: &[(&'static str, Vec<Tuned>, f64)]) -> anyhow::Result<()> {
    let mut table = Table::new(["data", "R", "χ, uniform", "χ, Zipf(.85)", "records in the query's buckets"]);
    for (data, all, _) in tuned {
        for at in all {
            let [uniform, zipf] = [0, 1].map(|i| significant(at.proximity[i], 3));
            table.row([data.to_string(), at.radius.to_string(), uniform, zipf, significant(at.candidates, 3)]);
        }
    }
    run.table("tuning", &table)?;
    let panel = |(data, all, paper): &(&'static str, Vec<Tuned>, f64)| {
        let line = |name: &str, shape, colour, value: &dyn Fn(&Tuned) -> f64| {
            Series::new(name, shape, colour, all.iter().map(|at| (at.radius, value(at))))
        };
        Panel {
            title: data.to_string(),
            x: Axis::powers("R"),
            y: Axis::even("χ, or part of the records").within(0.0, 1.12),
            series: vec![
                line("χ, uniform queries", Shape::DotsOnLine, Colour::Blue, &|at| at.proximity[0]),
                line("χ, Zipf(.85) queries", Shape::DotsOnLine, Colour::Vermilion, &|at| at.proximity[1]),
                line("records in the query's buckets", Shape::Dashed, Colour::Black, &|at| at.candidates),
            ],
            rules: vec![Rule::Vertical(*paper, "paper's R".into())],
            ..Panel::default()
        }
    };
    run.figure("tuning", &Figure {
        title: "Choosing R by the proximity measure χ = |p* - q| / |p - q|".into(),
        notes: vec!["L = 7 functions of M = 10 hashes, buckets .85 R wide; 100,000 records. χ is 1 where the nearest record is found, 0 where none is.".into()],
        panels: tuned.iter().map(panel).collect(),
        columns: 2,
    })
}

/// Reports the theorems' rates and the counted ones.
pub fn theorems(run: &Run, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let mut table = Table::new([
        "ω / R",
        "filter",
        "missed: theorem",
        "missed: library",
        "missed: counted",
        "accepted: theorem",
        "accepted: library",
        "accepted: counted",
        "balance",
    ]);
    for outcome in outcomes {
        table.row([
            outcome.width.to_string(),
            outcome.variant.name().to_owned(),
            significant(outcome.false_negative, 3),
            significant(outcome.predicted.0, 3),
            rate(outcome.missed),
            significant(outcome.false_positive, 3),
            significant(outcome.predicted.1, 3),
            rate(outcome.accepted),
            significant(outcome.balance(), 3),
        ]);
    }
    run.table("theorems", &table)?;
    let of = |variant: Variant| outcomes.iter().filter(move |outcome| outcome.variant == variant);
    let dots = |variants: &[Variant], value: &dyn Fn(&Outcome) -> Rate| -> Vec<Series> {
        let series = variants.iter().map(|&variant| {
            let points = of(variant).map(|outcome| Point::measured(outcome.width, value(outcome)));
            Series::new(variant.name(), Shape::Dots, colour(variant), points)
        });
        series.collect()
    };
    let line = |name: &str, shape, variant, value: &dyn Fn(&Outcome) -> f64| {
        Series::new(name, shape, colour(variant), of(variant).map(|outcome| (outcome.width, value(outcome))))
    };
    let (basic, verified) = ("theorem, basic", "theorem, verification");
    let mut plain = dots(&[Variant::BASIC, Variant::VERIFIED], &|outcome| outcome.missed);
    plain.push(line(basic, Shape::Line, Variant::BASIC, &|o| o.false_negative));
    plain.push(line("library, basic", Shape::Dotted, Variant::BASIC, &|o| o.predicted.0));
    let mut probed = dots(&[Variant::OVERFLOW, Variant::BOTH], &|outcome| outcome.missed);
    probed.push(line("theorem, overflow", Shape::Line, Variant::OVERFLOW, &|o| o.false_negative));
    probed.push(line("library, overflow", Shape::Dotted, Variant::OVERFLOW, &|o| o.predicted.0));
    probed.push(line("library, both", Shape::Dotted, Variant::BOTH, &|o| o.predicted.0));
    let mut accepted = dots(&Variant::ALL, &|outcome| outcome.accepted);
    accepted.push(line(basic, Shape::Line, Variant::BASIC, &|o| o.false_positive));
    accepted.push(line(verified, Shape::Line, Variant::VERIFIED, &|o| o.false_positive));
    for (variant, name) in
        Variant::ALL.into_iter().zip(["library, basic", "library, verification", "library, overflow", "library, both"])
    {
        accepted.push(line(name, Shape::Dotted, variant, &|o| o.predicted.1));
    }
    let balance = Variant::ALL.iter().map(|&variant| {
        let points = of(variant).map(|outcome| (outcome.width, outcome.balance()));
        Series::new(variant.name(), Shape::DotsOnLine, colour(variant), points)
    });
    let widths = || Axis::powers("ω, in units of R").within(0.7, 1.2 * WIDTHS[WIDTHS.len() - 1]);
    let panel = |title: &str, y, series| Panel { title: title.into(), x: widths(), y, series, ..Panel::default() };
    let part = || Axis::even("part of the queries").within(0.0, 1.02);
    let figure = Figure {
        title: "The theorems: solid lines are theirs, dotted ones the library's, dots are counted".into(),
        notes: vec![
            "L = 7, M = 10, arrays half full, 2,000 records. Near queries lie exactly R from a record, far ones some 120 R from all.".into(),
            "Verification multiplies false positives by about 2⁻⁸; overflow brings a part of them back, which no theorem counts.".into(),
        ],
        panels: vec![
            panel("near queries missed, without overflow", part(), plain),
            panel("near queries missed, with overflow", part(), probed),
            panel("far queries accepted", Axis::powers("part of the queries").within(3e-6, 1.5), accepted),
            panel("the balance, .3 accepted + .7 missed", Axis::even("balance").within(0.0, 0.75), balance.collect()),
        ],
        columns: 2,
    };
    run.figure("theorems", &figure)
}

fn colour(variant: Variant) -> Colour {
    match (variant.verified, variant.overflow) {
        (false, false) => Colour::Black,
        (true, false) => Colour::Blue,
        (false, true) => Colour::Orange,
        (true, true) => Colour::Vermilion,
    }
}

/// Reports summaries over nodes.
pub fn nodes(run: &Run, nodes: &[Nodes], stale: &[Staleness]) -> anyhow::Result<()> {
    let mut table = Table::new([
        "nodes",
        "merged = one filter",
        "accepted: merged",
        "accepted: apart",
        "missed: merged",
        "missed: apart",
        "kB kept: merged",
        "kB kept: apart",
        "kB sent: merged",
        "kB sent: apart",
    ]);
    let kilobytes = |bytes: u64| count(bytes as f64 / 1000.0);
    for at in nodes {
        table.row([
            at.nodes.to_string(),
            if at.equal { "bit for bit".into() } else { "no".to_owned() },
            rate(at.merged),
            rate(at.apart),
            rate(at.merged_missed),
            rate(at.apart_missed),
            kilobytes(at.merged_bytes),
            kilobytes(at.apart_bytes),
            kilobytes(at.merged_traffic),
            kilobytes(at.apart_traffic),
        ]);
    }
    run.table("nodes", &table)?;
    let mut lags = Table::new(["records between exchanges", "recent records missed", "expected", "kB sent per record"]);
    for at in stale {
        let sent = significant(at.traffic_per_record / 1000.0, 3);
        lags.row([count(at.lag as f64), rate(at.missed), significant(at.expected, 3), sent]);
    }
    run.table("staleness", &lags)?;
    // Half-full tables, all of which must hit.
    let one = libm::exp2(-f64::from(filters::FUNCTIONS));
    let measured = |name: &str, shape, colour, value: &dyn Fn(&Nodes) -> Rate| {
        Series::new(name, shape, colour, nodes.iter().map(|at| Point::measured(at.nodes as f64, value(at))))
    };
    let megabytes = |name: &str, shape, colour, value: &dyn Fn(&Nodes) -> u64| {
        Series::new(name, shape, colour, nodes.iter().map(|at| (at.nodes as f64, value(at) as f64 / 1e6)))
    };
    let count_axis = || Axis::even("nodes").within(0.0, 31.0);
    let lag_axis = || Axis::powers("records between exchanges");
    run.figure("nodes", &Figure {
        title: "A filter per node: merged, or kept apart".into(),
        notes: vec!["Basic filters. Merged, they have the bits of one filter of all records; apart, each is sized for a node's share and all are asked.".into()],
        panels: vec![
            Panel {
                title: "queries for nothing near accepted".into(),
                x: count_axis(),
                y: Axis::even("part of the queries"),
                series: vec![
                    measured("merged", Shape::Dots, Colour::Blue, &|at| at.merged),
                    measured("apart", Shape::Squares, Colour::Vermilion, &|at| at.apart),
                    Series::new("1 - (1 - 2⁻⁷)^N", Shape::Dashed, Colour::Black, (1..=30).map(|n| (f64::from(n), 1.0 - libm::pow(1.0 - one, f64::from(n))))),
                ],
                ..Panel::default()
            },
            Panel {
                title: "sent in one exchange, all nodes together".into(),
                x: count_axis(),
                y: Axis::even("MB"),
                series: vec![
                    megabytes("merged", Shape::Dots, Colour::Blue, &|at| at.merged_traffic),
                    megabytes("apart", Shape::Squares, Colour::Vermilion, &|at| at.apart_traffic),
                ],
                ..Panel::default()
            },
            Panel {
                title: "30 nodes: recent records missed when updates lag".into(),
                x: lag_axis(),
                y: Axis::even("part of the queries").within(0.0, 1.02),
                series: vec![
                    Series::new("measured", Shape::Dots, Colour::Green, stale.iter().map(|at| Point::measured(at.lag as f64, at.missed))),
                    Series::new("expected", Shape::Line, Colour::Green, stale.iter().map(|at| (at.lag as f64, at.expected))),
                ],
                ..Panel::default()
            },
            Panel {
                title: "30 nodes: sent per record".into(),
                x: lag_axis(),
                y: Axis::powers("kB"),
                series: vec![Series::new("merged", Shape::Dots, Colour::Blue, stale.iter().map(|at| (at.lag as f64, at.traffic_per_record / 1000.0)))],
                ..Panel::default()
            },
        ],
        columns: 2,
    })
}
