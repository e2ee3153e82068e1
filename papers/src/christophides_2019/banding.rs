//! MinHash banding: `b` bands of `r` rows make two sets candidates with probability `1 - (1 - s^r)^b`.

use nearset::{Layout, Seed, Shingling, Spec};
use nearset_theory::amplify::{s_curve, s_curve_threshold};

use super::pairs;
use crate::{
    figure::{Axis, Colour, Figure, Panel, Point, Series, Shape},
    format::significant,
    run::{Outcome, Run},
    table::Table,
};

/// Rows and bands; the first are the notes' own.
const LAYOUTS: [(Layout, Colour); 5] = [
    (Layout::new(5, 20), Colour::Blue),
    (Layout::new(1, 20), Colour::Orange),
    (Layout::new(3, 20), Colour::Green),
    (Layout::new(8, 20), Colour::Purple),
    (Layout::new(20, 5), Colour::Vermilion),
];

/// The values that the notes print for 20 bands of 5 rows.
const PRINTED: [(f64, f64); 7] =
    [(0.2, 0.006), (0.3, 0.047), (0.4, 0.186), (0.5, 0.470), (0.6, 0.802), (0.7, 0.975), (0.8, 0.9996)];

/// Measures the curves.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let (filters, each) = run.full_or_quick((100, 100), (10, 50));
    let layouts = run.full_or_quick(&LAYOUTS[..], &LAYOUTS[..1]);
    let similarities: Vec<f64> = (1..20).map(|i| f64::from(i) / 20.0).collect();
    let mut table =
        Table::new(["rows r", "bands b", "similarity", "printed", "1-(1-s^r)^b", "measured", "standard errors apart"]);
    let (mut series, mut lines) = (Vec::new(), Vec::new());
    let (mut largest, mut as_printed) = (0f64, true);
    for &(layout, colour) in layouts {
        let Layout { rows, bands } = layout;
        run.progress(format!("{bands} bands of {rows} rows"));
        let stored = (similarities.len() * each) as u64;
        let spec = Spec::banded_minhash(Shingling::default(), layout, stored, 1e-6, Seed::default())?;
        let measured = pairs::acceptance(&spec, &similarities, filters, each)?;
        for (&similarity, &rate) in similarities.iter().zip(&measured) {
            let expected = s_curve(similarity, rows, bands);
            let printed = PRINTED.iter().find(|(at, _)| *at == similarity && layout == LAYOUTS[0].0);
            // To one unit of the third place, or of the fourth where the notes give four.
            as_printed &= printed
                .is_none_or(|(_, printed)| (printed - expected).abs() < if *printed > 0.99 { 1e-4 } else { 1e-3 });
            let apart = rate.sigmas_from(expected);
            largest = largest.max(apart);
            table.row([
                rows.to_string(),
                bands.to_string(),
                similarity.to_string(),
                printed.map_or("-".into(), |(_, printed)| printed.to_string()),
                significant(expected, 4),
                significant(rate.value(), 4),
                format!("{apart:.1}"),
            ]);
        }
        let points = similarities.iter().zip(&measured).map(|(&x, &rate)| Point::measured(x, rate));
        series.push(Series::new(format!("{bands} bands of {rows}"), Shape::Dots, colour, points));
        let curve = (0..=200).map(|i| f64::from(i) / 200.0).map(|s| (s, s_curve(s, rows, bands)));
        lines.push(Series::new("", Shape::Line, colour, curve));
    }
    series.extend(lines);
    run.table("s-curves", &table)?;
    run.figure("s-curves", &Figure {
        title: "The S-curve of banding".into(),
        notes: vec!["Lines are 1-(1-s^r)^b; dots are pairs of sets in nearset's banded MinHash filters, with 95 % intervals".into()],
        panels: vec![Panel {
            x: Axis::even("Jaccard similarity s").within(0.0, 1.0),
            y: Axis::even("found").within(0.0, 1.0),
            series,
            ..Panel::default()
        }],
        columns: 1,
    })?;
    run.require(as_printed, "1-(1-s^5)^20 is not as printed");
    run.require(largest <= 4.5, format!("S-curves: {largest:.1} standard errors from the formula"));
    run.verdict(
        "20 bands of 5 rows find s = .2 … .8 with 1-(1-s^5)^20",
        "s-curves.tsv",
        ".006 .047 .186 .470 .802 .975 .9996",
        &format!("as printed; measured on sets within {largest:.1} standard errors, for other b and r too"),
        Outcome::reproduced_if(as_printed && largest <= 4.5, "the measured curve is another"),
    );
    let (thumb, at) = (s_curve_threshold(5, 20), s_curve(s_curve_threshold(5, 20), 5, 20));
    run.verdict(
        "the curve climbs near (1/b)^(1/r)",
        "s-curves.tsv",
        &format!("s ≈ {} for b = 20, r = 5", significant(thumb, 2)),
        &format!("there {} are found", significant(at, 2)),
        Outcome::reproduced_if((0.5..0.8).contains(&at), "the curve climbs elsewhere"),
    );
    Ok(())
}
