//! Plans and filters as charts: how likely a query is called near, by how far its nearest stored item is.
//!
//! Claim: every front end draws the same picture of the same plan or filter.
//! Not here: how a chart becomes SVG (`plot`), and other tools' choices (`peers`).

use nearset::plan::{CurvePoint, Plan};
use nearset::{Distance, Filter, Metric};

use crate::peers;
use crate::plot::{Bound, Chart, Line, Look, Mark};
use crate::words::{axis, bytes, count, metric, number, rate, shape};

/// A point of a curve: the metric's own number, and the probability of being accepted.
pub type Point = (f64, f64);

/// Steps of a filter's curve.
const STEPS: u32 = 200;

/// Steps of a peer's curve.
const PEER_STEPS: u32 = 160;

/// Returns a plan's curve, at capacity and with one item, with what it promises.
pub fn plan_chart(plan: &Plan) -> Chart {
    let (metric, terms) = (plan.request.metric, plan.terms());
    let own = |distance| metric.own_unit(distance);
    let points = |of: fn(&CurvePoint) -> f64| -> Vec<Point> {
        ascending(plan.curve.iter().map(|point| (own(point.distance), of(point))).collect())
    };
    let stored = count(terms.capacity);
    let full = points(|point| point.full);
    let x = ends(&full);
    let (near, far) = (own(terms.near), own(terms.far));
    let near_left = near < far;
    let (near_end, far_end) = if near_left { x } else { (x.1, x.0) };
    let mark = |at, name: &str, left| Mark { at, name: format!("{name} {}", number(at)), left };
    let (from, to) = (own(plan.grey_zone.start), own(plan.grey_zone.end));
    let (bits, all) = (number(plan.bits_per_item), bytes(plan.bytes));
    Chart {
        subtitle: vec![format!(
            "{} over {}, {bits} bits per item, {all} for {stored} items",
            plan.structure, plan.family
        )],
        x,
        lines: vec![
            Line { name: format!("nearset with {stored} items: {}", shape(plan)), points: full, look: Look::Main },
            with_one_item(points(|point| point.empty)),
        ],
        marks: vec![mark(near, "near", near_left), mark(far, "far", !near_left)],
        bounds: vec![
            Bound { x: (near_end, near), y: 1.0 - terms.max_false_negative },
            Bound { x: (far, far_end), y: terms.max_false_positive },
        ],
        promise: format!(
            "promised: at least {} at near, at most {} at far",
            rate(1.0 - terms.max_false_negative),
            rate(terms.max_false_positive)
        ),
        zone: Some((from, to, format!("grey zone, {} to {}: nothing is promised", number(from), number(to)))),
        ..over(metric)
    }
}

/// Returns a plan's chart, with what the best-known tool or paper would do for the same request.
pub fn plan_chart_beside_peers(plan: &Plan) -> Chart {
    let mut chart = plan_chart(plan);
    if let Some(peer) = peers::peer(plan) {
        let (from, to) = chart.x;
        let across = (0..=PEER_STEPS).map(|i| from + (to - from) * f64::from(i) / f64::from(PEER_STEPS));
        let points = across.map(|at| (at, (peer.accepts)(at))).collect();
        chart.lines.push(Line { name: peer.name, points, look: Look::Other });
    }
    chart
}

/// Returns the curve of a filter, one or several generations, as it is now, and with one item.
pub fn filter_chart(filter: &Filter<'_>, metric: Metric) -> Chart {
    let points = ascending(filter_curve(filter, metric, STEPS));
    let x = ends(&points);
    let marks =
        half(&points).map(|at| Mark { at, name: format!("half at {}", number(at)), left: at > 0.5 * (x.0 + x.1) });
    let name = format!("as it is now, with {} items", count(filter.len()));
    let mut lines = vec![Line { name, points, look: Look::Main }];
    if let Some(spec) = filter.spec().near() {
        let empty = |distance| (metric.own_unit(distance), spec.acceptance_probability(distance, 0.0, 0.0));
        lines.push(with_one_item(ascending(distances(filter, metric, STEPS).map(empty).collect())));
    }
    Chart {
        subtitle: vec![format!("{}, {}", filter.kind(), bytes(filter.bytes()))],
        x,
        lines,
        marks: marks.into_iter().collect(),
        ..over(metric)
    }
}

/// Returns how likely the filter, with all its generations as they are now, accepts a query, in `steps` steps over the metric's range.
pub fn filter_curve(filter: &Filter<'_>, metric: Metric, steps: u32) -> Vec<Point> {
    let point = |distance| (metric.own_unit(distance), filter.acceptance_probability(distance));
    distances(filter, metric, steps).map(point).collect()
}

/// By ascending numbers, as charts want them.
pub fn ascending(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Returns where half of the queries are accepted, if the curve gets there.
pub fn half(points: &[Point]) -> Option<f64> {
    let crossing = |pair: &&[Point]| (pair[0].1 < 0.5) != (pair[1].1 < 0.5);
    let pair = points.windows(2).find(crossing)?;
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    Some(x0 + (x1 - x0) * (0.5 - y0) / (y1 - y0))
}

/// Returns a chart of acceptance with nothing in it yet.
fn over(of: Metric) -> Chart {
    Chart {
        title: format!("How likely a query is called near: {}", metric(of)),
        x_label: axis(of),
        y_label: "called near".into(),
        ..Chart::default()
    }
}

fn with_one_item(points: Vec<Point>) -> Line {
    Line { name: "the same with one item".to_owned(), points, look: Look::Variant }
}

fn ends(points: &[Point]) -> (f64, f64) {
    (points.first().map_or(0.0, |point| point.0), points.last().map_or(1.0, |point| point.0))
}

/// Steps of the metric's range, or of the family's reach where there is no range.
fn distances(filter: &Filter<'_>, metric: Metric, steps: u32) -> impl Iterator<Item = Distance> + use<> {
    let reach = metric.farthest().map(Distance::value).or_else(|| filter.spec().near()?.family.reach());
    let reach = reach.unwrap_or(1.0);
    (0..=steps).filter_map(move |step| Distance::new(reach * f64::from(step) / f64::from(steps)).ok())
}
