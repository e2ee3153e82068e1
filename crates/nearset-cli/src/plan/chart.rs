//! A plan as a chart, beside what others would do.

use nearset::plan::Plan;
use nearset_pipeline::curves::plan_chart;
use nearset_pipeline::plot::{Chart, Line, Look};

use super::peers;

/// Points of a peer's curve.
const PEER_POINTS: u32 = 160;

pub fn chart(plan: &Plan) -> Chart {
    let mut chart = plan_chart(plan);
    if let Some(peer) = peers::peer(&plan.goal) {
        let (from, to) = chart.x;
        let across = (0..=PEER_POINTS).map(|i| from + (to - from) * f64::from(i) / f64::from(PEER_POINTS));
        let points = across.map(|at| (at, (peer.accepts)(at))).collect();
        chart.lines.push(Line { name: peer.name, points, look: Look::Other });
    }
    chart
}
