//! A plan as a chart.

use nearset::plan::{CurvePoint, Plan};
use nearset_pipeline::plot::{Bound, Chart, Line, Look, Mark};

use super::{peers, words};

/// Points of a peer's curve.
const PEER_POINTS: u32 = 160;

pub fn chart(plan: &Plan) -> Chart {
    let goal = &plan.goal;
    let metric = goal.metric;
    let own = |distance| metric.own_unit(distance);
    let points = |of: fn(&CurvePoint) -> f64| {
        let mut points: Vec<(f64, f64)> = plan.curve.iter().map(|point| (own(point.distance), of(point))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let full = points(|point| point.full);
    let x = (full.first().map_or(0.0, |point| point.0), full.last().map_or(1.0, |point| point.0));
    let stored = words::count(goal.capacity);
    let mut lines = vec![
        Line { name: format!("nearset with {stored} items: {}", words::shape(plan)), points: full, look: Look::Main },
        Line { name: "the same with one item".into(), points: points(|point| point.empty), look: Look::Variant },
    ];
    if let Some(peer) = peers::peer(goal) {
        let across = (0..=PEER_POINTS).map(|i| x.0 + (x.1 - x.0) * f64::from(i) / f64::from(PEER_POINTS));
        let points = across.map(|at| (at, (peer.accepts)(at))).collect();
        lines.push(Line { name: peer.name, points, look: Look::Other });
    }
    let (near, far) = (own(goal.near), own(goal.far));
    let near_left = near < far;
    let (near_end, far_end) = if near_left { x } else { (x.1, x.0) };
    let mark = |at, name: &str, left| Mark { at, name: format!("{name} {}", words::number(at)), left };
    let (from, to) = (own(plan.grey_zone.from), own(plan.grey_zone.to));
    Chart {
        title: format!("How likely a query is called near: {}", words::metric(metric)),
        subtitle: vec![format!(
            "{} over {}, {} bits an item, {} for {stored} items",
            plan.structure,
            plan.family,
            words::number(plan.bits_per_item),
            words::bytes(plan.bytes as f64)
        )],
        x_label: words::axis(metric).into(),
        y_label: "called near".into(),
        x,
        lines,
        marks: vec![mark(near, "near", near_left), mark(far, "far", !near_left)],
        bounds: vec![
            Bound { x: (near_end, near), y: 1.0 - goal.max_false_negative },
            Bound { x: (far, far_end), y: goal.max_false_positive },
        ],
        promise: format!(
            "promised: at least {} at near, at most {} at far",
            words::percent(1.0 - goal.max_false_negative),
            words::percent(goal.max_false_positive)
        ),
        zone: Some((
            from,
            to,
            format!("grey zone, {} to {}: nothing is promised", words::number(from), words::number(to)),
        )),
    }
}
