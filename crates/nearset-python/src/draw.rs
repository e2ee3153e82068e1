//! Plans and filters as notebooks show them: a table and a curve.

use nearset::Distance;
use nearset::plan::{CurvePoint, Metric, Plan};
use nearset_pipeline::AnyFilter;
use nearset_pipeline::plot::{Bound, Chart, Line, Look, Mark};
pub use nearset_pipeline::words::{bytes, count, percent};

/// Points of a filter's curve.
const POINTS: u32 = 100;

/// A heading, facts in a table, and a picture. All of it is words of the library's own and numbers, so nothing is escaped.
pub fn html(title: &str, facts: &[(&str, String)], svg: &str) -> String {
    let left = "style=\"text-align:left\"";
    let row = |(name, fact): &(&str, String)| format!("<tr><th {left}>{name}</th><td {left}>{fact}</td></tr>");
    let rows: String = facts.iter().map(row).collect();
    format!("<div><strong>{title}</strong><table>{rows}</table>{svg}</div>")
}

fn axis(metric: Metric) -> String {
    format!("{} of an item and its nearest stored one", metric.unit())
}

fn chart(title: String, metric: Metric, lines: Vec<Line>) -> Chart {
    let ends = lines.first().and_then(|line| Some((line.points.first()?.0, line.points.last()?.0)));
    Chart {
        title,
        x_label: axis(metric),
        y_label: "called near".into(),
        x: ends.unwrap_or((0.0, 1.0)),
        lines,
        ..Chart::default()
    }
}

/// How likely an item is called near, as the filter is now.
pub fn filter_svg(filter: &AnyFilter<'_>, metric: Metric, name: &str) -> String {
    let reach = metric.farthest().map_or(1.0, Distance::value);
    let at = |step: u32| Distance::new(reach * f64::from(step) / f64::from(POINTS)).ok();
    let mut points: Vec<(f64, f64)> = (0..=POINTS)
        .filter_map(at)
        .map(|distance| (metric.own_unit(distance), filter.acceptance_probability(distance)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = Line { name: format!("with {} items", count(filter.len())), points, look: Look::Main };
    chart(format!("{name}: {metric}"), metric, vec![line]).to_svg()
}

/// How likely an item is called near, once built.
pub fn plan_svg(plan: &Plan) -> String {
    let goal = &plan.goal;
    let metric = goal.metric;
    let own = |distance| metric.own_unit(distance);
    let points = |of: fn(&CurvePoint) -> f64| {
        let mut points: Vec<(f64, f64)> = plan.curve.iter().map(|point| (own(point.distance), of(point))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let full = Line {
        name: format!("with {} items: {}", count(goal.capacity), plan.structure.meaning()),
        points: points(|point| point.full),
        look: Look::Main,
    };
    let empty =
        Line { name: "the same with one item".into(), points: points(|point| point.empty), look: Look::Variant };
    let title = format!("How likely an item is called near: {metric}");
    let mut chart = chart(title, metric, vec![full, empty]);
    let (near, far) = (own(goal.near), own(goal.far));
    let near_left = near < far;
    let (near_end, far_end) = if near_left { chart.x } else { (chart.x.1, chart.x.0) };
    let mark = |at: f64, name: &str, left| Mark { at, name: format!("{name} {at}"), left };
    chart.marks = vec![mark(near, "near", near_left), mark(far, "far", !near_left)];
    chart.bounds = vec![
        Bound { x: (near_end, near), y: 1.0 - goal.max_false_negative },
        Bound { x: (far, far_end), y: goal.max_false_positive },
    ];
    let (found, accepted) = (percent(1.0 - goal.max_false_negative), percent(goal.max_false_positive));
    chart.promise = format!("promised: at least {found} at near, at most {accepted} at far");
    chart.zone = Some((own(plan.grey_zone.from), own(plan.grey_zone.to), "nothing is promised in between".into()));
    chart.to_svg()
}

/// A plan's facts.
pub fn plan_facts(plan: &Plan) -> Vec<(&'static str, String)> {
    let goal = &plan.goal;
    let own = |distance| goal.metric.own_unit(distance);
    let unit = goal.metric.unit();
    let mut facts = vec![
        ("metric", format!("{}, {} items", goal.metric, count(goal.capacity))),
        ("structure", format!("{} over {}: {}", plan.structure, plan.family, plan.structure.meaning())),
    ];
    if let (Some(layout), Some(threshold)) = (plan.layout(), plan.threshold()) {
        let when = if plan.follows_fill() { " at capacity, fewer before" } else { "" };
        facts.push(("shape", format!("{} bands of {} rows, {threshold} must hit{when}", layout.bands, layout.rows)));
    }
    facts.push(("memory", format!("{:.1} bits an item, {} in all", plan.bits_per_item, bytes(plan.bytes))));
    facts.push(("near", format!("{} missed at {} {unit}", percent(plan.false_negative), own(goal.near))));
    facts.push(("far", format!("{} accepted at {} {unit}", percent(plan.false_positive), own(goal.far))));
    facts
}
