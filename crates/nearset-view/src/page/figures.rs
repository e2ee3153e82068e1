//! The figures, as SVG inside the page: colours come from its style sheet, so they follow light and dark.

use std::fmt::Write;

use super::markup::{count, escape, percent, similarity};
use crate::run::{Measured, Report, SourceSummary};

/// Sources that have a bar of their own; the others share one.
const MOST_BARS: usize = 16;
const WIDTH: f64 = 1000.0;
const BAR: f64 = 20.0;
const STEP: f64 = 30.0;

/// The kinds of outcome, in the order in which bars show them: the class, the name, how many.
type Kind = (&'static str, &'static str, fn(&SourceSummary) -> u64);
const KINDS: [Kind; 4] = [
    ("kept", "kept", |source| source.kept),
    ("near", "near an earlier record", |source| source.near),
    ("against", "near an earlier filter", |source| source.against),
    ("faulty", "unreadable", |source| source.faulty),
];

/// Draws one bar per source: what of it was kept and what was removed.
pub(super) fn sources(sources: &[SourceSummary]) -> String {
    let mut bars: Vec<SourceSummary> = sources.to_vec();
    if bars.len() > MOST_BARS {
        let rest = bars.split_off(MOST_BARS - 1);
        bars.push(SourceSummary::sum(format!("{} more files", count(rest.len() as u64)), &rest));
    }
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
    let (left, right) = ((8.0 * longest as f64 + 16.0).max(60.0), 190.0);
    let most = bars.iter().map(|bar| bar.records).max().unwrap_or(0);
    let ticks = ticks(most);
    let end = ticks.last().copied().unwrap_or(1).max(most).max(1) as f64;
    let scale = (WIDTH - left - right) / end;
    let (top, height) = (34.0, STEP * bars.len() as f64);
    let mut svg = open(WIDTH, top + height + 46.0, "sources", "Records kept and removed, by source");
    legend(&mut svg, &bars, left);
    for tick in ticks {
        let x = left + tick as f64 * scale;
        line(&mut svg, "grid", x, top, x, top + height);
        text(&mut svg, "soft", "middle", x, top + height + 18.0, &count(tick));
    }
    text(&mut svg, "soft", "middle", left + (WIDTH - left - right) / 2.0, top + height + 40.0, "records read");
    for (i, bar) in bars.iter().enumerate() {
        let y = top + STEP * i as f64 + (STEP - BAR) / 2.0;
        text(&mut svg, "", "end", left - 10.0, y + 15.0, &shortened(&bar.name));
        let mut x = left;
        for (class, name, of) in KINDS {
            let number = of(bar);
            let width = number as f64 * scale;
            if number > 0 {
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"><title>{}: {} {name}</title></rect>",
                    width.max(0.6),
                    escape(&bar.name),
                    count(number),
                );
            }
            x += width;
        }
        let share = bar.removed() as f64 / bar.records.max(1) as f64;
        let label = format!("{} removed, {}", count(bar.removed()), percent(share));
        text(&mut svg, "label", "start", x + 8.0, y + 15.0, &label);
    }
    svg.push_str("</svg>");
    svg
}

fn legend(svg: &mut String, bars: &[SourceSummary], left: f64) {
    let mut x = left;
    for (class, name, of) in KINDS {
        if class != "kept" && bars.iter().all(|bar| of(bar) == 0) {
            continue;
        }
        let _ = write!(svg, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"6\" width=\"12\" height=\"12\" rx=\"2\"/>");
        text(svg, "", "start", x + 18.0, 16.5, name);
        x += 44.0 + 7.2 * name.len() as f64;
    }
}

const LONGEST_NAME: usize = 32;

/// Returns a name's end, which tells files of one folder apart.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= LONGEST_NAME {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - LONGEST_NAME + 1).collect();
    format!("\u{2026}{end}")
}

/// Round numbers from 0 up to the first that is not below `most`.
fn ticks(most: u64) -> Vec<u64> {
    let step = (0..19)
        .flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)))
        .find(|step| most <= step.saturating_mul(5))
        .unwrap_or(u64::MAX / 5);
    (0..=most.div_ceil(step).max(1)).map(|i| i * step).collect()
}

/// Returns the promised curve, and what was measured.
pub(super) fn curve(report: &Report) -> String {
    let (width, height) = (WIDTH, 400.0);
    let (left, right, top, bottom) = (64.0, 24.0, 44.0, 52.0);
    // What lies far below `far` is not removed anyway: the picture begins where something happens.
    let lowest = report.measured.iter().filter(|point| point.removed > 0.02).map(|point| point.low);
    let (near, far) = (report.promise.near.similarity, report.promise.lost.map(|lost| lost.far.similarity));
    let from = (lowest.fold(far.unwrap_or(near) - 0.3, f64::min) * 10.0).floor().clamp(0.0, 8.0) / 10.0;
    let x = |similarity: f64| left + (similarity - from) / (1.0 - from) * (width - left - right);
    let y = |rate: f64| top + (1.0 - rate) * (height - top - bottom);
    let mut svg =
        open(width, height, "curve", "How likely a record is removed, by its similarity with the nearest earlier one");
    for i in 0..=5u32 {
        let rate = f64::from(i) / 5.0;
        line(&mut svg, "grid", left, y(rate), width - right, y(rate));
        text(&mut svg, "soft", "end", left - 8.0, y(rate) + 4.5, &format!("{} %", 20 * i));
    }
    let first = (from * 10.0).round() as u32;
    for tenth in first..=10 {
        let at = f64::from(tenth) / 10.0;
        line(&mut svg, "grid", x(at), top, x(at), y(0.0));
        text(&mut svg, "soft", "middle", x(at), y(0.0) + 20.0, &format!("{at:.1}"));
    }
    line(&mut svg, "axis", left, y(0.0), width - right, y(0.0));
    line(&mut svg, "axis", left, top, left, y(0.0));
    text(
        &mut svg,
        "soft",
        "middle",
        x(from.midpoint(1.0)),
        height - 10.0,
        "Jaccard similarity with the nearest earlier record",
    );
    text(&mut svg, "soft", "start", 8.0, 16.0, "records removed");
    for (at, name) in [(near, "near")].into_iter().chain(far.map(|far| (far, "far"))) {
        if at > from && at < 1.0 {
            line(&mut svg, "limit", x(at), top - 6.0, x(at), y(0.0));
            text(&mut svg, "", "middle", x(at), top - 12.0, &format!("{name} {}", similarity(at)));
        }
    }
    let inside = report.promised.iter().filter(|point| point.similarity >= from);
    let path: Vec<String> = inside.map(|point| format!("{:.1},{:.1}", x(point.similarity), y(point.caught))).collect();
    let _ = write!(svg, "<polyline class=\"promised\" points=\"{}\"/>", path.join(" "));
    for point in report.measured.iter().filter(|point| point.similarity >= from) {
        measured_point(&mut svg, point, x(point.similarity), &y);
    }
    svg.push_str("</svg>");
    svg
}

fn measured_point(svg: &mut String, point: &Measured, x: f64, y: &impl Fn(f64) -> f64) {
    line(svg, "bar", x, y(point.at_least), x, y(point.at_most));
    for end in [point.at_least, point.at_most] {
        line(svg, "bar", x - 5.0, y(end), x + 5.0, y(end));
    }
    let _ = write!(
        svg,
        "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"5\"><title>{} to {}: {} removed ({} to {}), {} checked</title></circle>",
        y(point.removed),
        point.low,
        point.high,
        escape(&percent(point.removed)),
        escape(&percent(point.at_least)),
        escape(&percent(point.at_most)),
        count(point.checked),
    );
}

fn open(width: f64, height: f64, name: &str, title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{name}-title\"><title id=\"{name}-title\">{}</title>",
        escape(title)
    )
}

fn line(svg: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let _ = write!(svg, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
}

fn text(svg: &mut String, class: &str, anchor: &str, x: f64, y: f64, words: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(words)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_end() {
        assert_eq!(ticks(0), [0, 1]);
        assert_eq!(ticks(7), [0, 2, 4, 6, 8]);
        assert_eq!(ticks(53_446), [0, 20_000, 40_000, 60_000]);
        assert!(ticks(u64::MAX / 2).len() <= 6);
    }

    #[test]
    fn many_sources_share_a_bar() {
        let source = |i: u64| SourceSummary {
            name: format!("part-{i:03}.jsonl"),
            records: 10 + i,
            kept: 10,
            near: i,
            ..SourceSummary::default()
        };
        let svg = sources(&(0..100).map(source).collect::<Vec<_>>());
        assert!(svg.contains("part-014.jsonl") && !svg.contains("part-015.jsonl"));
        assert!(svg.contains(">85 more files<"));
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let name = format!("{}/part-7.jsonl", "folder".repeat(20));
        let short = shortened(&name);
        assert_eq!(short.chars().count(), LONGEST_NAME);
        assert!(short.starts_with('\u{2026}') && short.ends_with("/part-7.jsonl"));
    }
}
