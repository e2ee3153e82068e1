//! The figures, as SVG inside the page: colours come from its style sheet, so they follow light and dark.

use std::fmt::Write;

use super::markup::{count, escape, percent, similarity};
use crate::run::{Measured, Report, SourceSummary};

/// Sources that have a bar of their own; the others share one.
const MOST_BARS: usize = 16;
const WIDTH: f64 = 720.0;
const MARGIN: f64 = 24.0;
const BAR: f64 = 16.0;
const STEP: f64 = 46.0;

/// The kinds of outcome, in the order in which bars show them: the class, the name, how many.
type Kind = (&'static str, &'static str, fn(&SourceSummary) -> u64);
const KINDS: [Kind; 4] = [
    ("kept", "kept", |source| source.kept),
    ("near", "near an earlier record", |source| source.near),
    ("against", "near an earlier filter", |source| source.against),
    ("faulty", "unreadable", |source| source.faulty),
];

/// Draws one bar per source: what of it was kept and what was removed. All are equally long, or a large source would flatten the others.
pub(super) fn sources(sources: &[SourceSummary]) -> String {
    let mut bars: Vec<SourceSummary> = sources.to_vec();
    if bars.len() > MOST_BARS {
        let rest = bars.split_off(MOST_BARS - 1);
        bars.push(SourceSummary::sum(format!("{} more files", count(rest.len() as u64)), &rest));
    }
    let names: Vec<&str> = bars.iter().take(sources.len().min(MOST_BARS - 1)).map(|bar| &*bar.name).collect();
    let mut labels = labels(&names);
    labels.extend(bars.iter().skip(labels.len()).map(|bar| shortened(&bar.name)));
    let (top, height) = (34.0, STEP * bars.len() as f64);
    let mut svg = open(WIDTH, top + height + 46.0, "sources", "Share of records kept and removed, by source");
    legend(&mut svg, &bars);
    let scale = WIDTH - 2.0 * MARGIN;
    for tenth in [0, 2, 4, 6, 8, 10] {
        let x = MARGIN + scale * f64::from(tenth) / 10.0;
        line(&mut svg, "grid", x, top, x, top + height);
        text(&mut svg, "soft", "middle", x, top + height + 18.0, &format!("{} %", 10 * tenth));
    }
    text(&mut svg, "soft", "middle", WIDTH / 2.0, top + height + 40.0, "of the records read");
    for (i, (bar, name)) in bars.iter().zip(&labels).enumerate() {
        let y = top + STEP * i as f64 + (STEP - BAR) - 4.0;
        text(&mut svg, "label", "start", MARGIN, y - 6.0, name);
        let mut x = MARGIN;
        for (class, name, of) in KINDS {
            let number = of(bar);
            let width = scale * number as f64 / bar.records.max(1) as f64;
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
        let share = percent(bar.removed() as f64 / bar.records.max(1) as f64);
        let removed = format!("{} of {} removed, {share}", count(bar.removed()), count(bar.records));
        text(&mut svg, "label", "end", WIDTH - MARGIN, y - 6.0, &removed);
    }
    svg.push_str("</svg>");
    svg
}

fn legend(svg: &mut String, bars: &[SourceSummary]) {
    let mut x = MARGIN;
    for (class, name, of) in KINDS {
        if class != "kept" && bars.iter().all(|bar| of(bar) == 0) {
            continue;
        }
        let _ = write!(svg, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"6\" width=\"12\" height=\"12\" rx=\"2\"/>");
        text(svg, "", "start", x + 18.0, 16.5, name);
        x += 34.0 + 8.6 * name.len() as f64;
    }
}

const LONGEST_NAME: usize = 32;

/// Returns short names that tell sources apart: what all have in common goes first, a folder or the ends of shards' names.
fn labels(names: &[&str]) -> Vec<String> {
    let folder = names.first().map_or(0, |first| {
        let mut alike = first.char_indices().map(|(at, _)| at).filter(|&at| first[..at].ends_with('/'));
        alike.rfind(|&at| names.iter().all(|name| name.starts_with(&first[..at]))).unwrap_or(0)
    });
    let names: Vec<&str> = names.iter().map(|name| &name[folder..]).collect();
    if names.len() < 2 || names.iter().all(|name| name.chars().count() <= LONGEST_NAME) {
        return names.into_iter().map(shortened).collect();
    }
    let alike = |mut chars: Vec<Box<dyn Iterator<Item = char> + '_>>| {
        let mut length = 0;
        while let Some(first) = chars[0].next().filter(|_| length < LONGEST_NAME * 8) {
            if !chars[1..].iter_mut().all(|other| other.next() == Some(first)) {
                break;
            }
            length += 1;
        }
        length
    };
    let before = alike(names.iter().map(|name| Box::new(name.chars()) as Box<dyn Iterator<Item = char>>).collect());
    let after =
        alike(names.iter().map(|name| Box::new(name.chars().rev()) as Box<dyn Iterator<Item = char>>).collect());
    let cut = |name: &&str| {
        let all: Vec<char> = name.chars().collect();
        let (from, to) = (before.min(all.len()), all.len().saturating_sub(after));
        let (from, to) = (from.min(to), to.max(from));
        // What differs, and as much around it as there is room for.
        let room = LONGEST_NAME.saturating_sub(to - from + 2) / 2;
        let (from, to) = (from.saturating_sub(room), (to + room).min(all.len()));
        let (start, end) = (if from > 0 { "\u{2026}" } else { "" }, if to < all.len() { "\u{2026}" } else { "" });
        shortened(&format!("{start}{}{end}", all[from..to].iter().collect::<String>()))
    };
    names.iter().map(cut).collect()
}

/// Returns the start and the end of a name that is too long.
fn shortened(name: &str) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let half = (LONGEST_NAME - 1) / 2;
    let (start, end) = (&all[..half], &all[all.len() - (LONGEST_NAME - 1 - half)..]);
    format!("{}\u{2026}{}", start.iter().collect::<String>(), end.iter().collect::<String>())
}

/// Draws how many pairs have which similarity, on a log scale.
pub(super) fn histogram(bins: &[(f64, u64)], near: f64) -> String {
    let (height, left, right, top, bottom) = (260.0, 76.0, 24.0, 34.0, 50.0);
    let from = bins.first().map_or(0.0, |bin| bin.0);
    // Copies are one more bin, at 1.
    let step = bins.windows(2).next().map_or(0.01, |pair| pair[1].0 - pair[0].0);
    let x = |similarity: f64| left + (similarity - from) / (1.0 + step - from) * (WIDTH - left - right);
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(0);
    let powers = (1..20).find(|&power| 10u64.pow(power) >= most).unwrap_or(1);
    // A single pair must be seen, so that the axis begins below 1.
    let y = |pairs: f64| top + (height - top - bottom) * (1.0 - (1.0 + pairs.log10()) / f64::from(powers + 1));
    let mut svg = open(WIDTH, height, "histogram", "Pairs of records by their similarity, log scale");
    for power in (0..=powers).step_by(powers.div_ceil(5) as usize) {
        let at = y(10f64.powi(power as i32));
        line(&mut svg, "grid", left, at, WIDTH - right, at);
        text(&mut svg, "soft", "end", left - 8.0, at + 4.5, &count(10u64.pow(power)));
    }
    for &(low, pairs) in bins.iter().filter(|bin| bin.1 > 0) {
        let (class, at) = (if low >= near - 1e-9 { "near" } else { "kept" }, y(pairs as f64));
        let what = if low >= 1.0 { "the same shingles".to_owned() } else { format!("{low:.2} or more") };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{at:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{what}: {} pairs</title></rect>",
            x(low) + 0.5,
            x(low + step) - x(low) - 1.0,
            height - bottom - at,
            count(pairs)
        );
    }
    line(&mut svg, "axis", left, height - bottom, WIDTH - right, height - bottom);
    for tenth in (from * 10.0).ceil() as u32..=10 {
        let at = f64::from(tenth) / 10.0;
        text(&mut svg, "soft", "middle", x(at), height - bottom + 20.0, &similarity(at));
    }
    line(&mut svg, "limit", x(near), top - 6.0, x(near), height - bottom);
    text(&mut svg, "", "middle", x(near), top - 12.0, &format!("near {}", similarity(near)));
    text(
        &mut svg,
        "soft",
        "middle",
        x(from.midpoint(1.0)),
        height - 8.0,
        "Jaccard similarity; the last bar has the same shingles",
    );
    text(&mut svg, "soft", "start", 8.0, 16.0, "pairs of records, log scale");
    svg.push_str("</svg>");
    svg
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
    fn bars_from_the_threshold_on_are_set_off() {
        let svg = histogram(&[(0.98, 1), (0.99, 10_000_000), (1.0, 7)], 0.99);
        assert_eq!(svg.matches("class=\"near\"").count(), 2, "{svg}");
        assert!(svg.contains("0.98 or more: 1 pairs") && svg.contains("the same shingles: 7 pairs"));
        assert!(!histogram(&[], 0.8).contains("NaN"));
    }

    #[test]
    fn a_large_source_does_not_flatten_the_others() {
        let source = |name: &str, kept: u64, near: u64| SourceSummary {
            name: name.to_owned(),
            records: kept + near,
            kept,
            near,
            ..SourceSummary::default()
        };
        let svg = sources(&[source("large.jsonl", 900_000, 100_000), source("small.jsonl", 5, 5)]);
        let half = (WIDTH - 2.0 * MARGIN) / 2.0;
        assert_eq!(svg.matches(&format!("width=\"{half:.1}\"")).count(), 2, "{svg}");
        assert!(svg.contains("5 of 10 removed, 50\u{a0}%"), "{svg}");
    }

    #[test]
    fn shards_are_told_apart_by_their_labels() {
        let names: Vec<String> = (0..12)
            .map(|i| format!("data/crawl/part-{i:05}-of-00012-6c7f2f0e-9d0b-4f7e-a2b2-1f3c7a9d0e11.c000.jsonl.zst"))
            .collect();
        let short = labels(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<&String> = short.iter().collect();
        assert_eq!(distinct.len(), 12, "{short:?}");
        assert!(short.iter().all(|name| name.chars().count() <= LONGEST_NAME), "{short:?}");
        assert!(short[7].contains("00007"), "{short:?}");
        assert_eq!(labels(&["crawl/a.jsonl", "crawl/b.jsonl"]), ["a.jsonl", "b.jsonl"]);
        assert_eq!(labels(&["one.jsonl"]), ["one.jsonl"]);
    }

    #[test]
    fn a_long_name_keeps_its_ends() {
        let short = shortened(&format!("start-{}-7.jsonl", "folder".repeat(20)));
        assert_eq!(short.chars().count(), LONGEST_NAME);
        assert!(short.starts_with("start-") && short.ends_with("-7.jsonl"));
    }

    #[test]
    fn charts_shrink_to_the_width_of_a_phone() {
        let style = include_str!("style.css");
        assert!(!style.contains("min-width: 640px") && style.contains("svg text { font-size: 17px; }"));
        // 17 of its units are then some 8 pixels on a screen of 360.
        assert!(sources(&[]).contains("viewBox=\"0 0 720 "));
    }
}
