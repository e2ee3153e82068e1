//! Plans and filters as notebooks show them: a table and a curve.

use nearset::plan::Plan;
pub use nearset_view::words::{bytes, count, percent};
use nearset_view::words::{number, shape};

/// A heading, facts in a table, and a picture. All of it is words of the library's own and numbers, so nothing is escaped.
pub fn html(title: &str, facts: &[(&str, String)], svg: &str) -> String {
    let left = "style=\"text-align:left\"";
    let row = |(name, fact): &(&str, String)| format!("<tr><th {left}>{name}</th><td {left}>{fact}</td></tr>");
    let rows: String = facts.iter().map(row).collect();
    format!("<div><strong>{title}</strong><table>{rows}</table>{svg}</div>")
}

/// A plan's facts.
pub fn plan_facts(plan: &Plan) -> Vec<(&'static str, String)> {
    let (metric, terms) = (plan.request.metric, plan.terms());
    let own = |distance| number(metric.own_unit(distance));
    let unit = metric.unit();
    vec![
        ("metric", format!("{metric}, {} items", count(terms.capacity))),
        ("structure", format!("{} over {}: {}", plan.structure, plan.family, plan.structure.meaning())),
        ("shape", shape(plan)),
        ("memory", format!("{} bits per item, {} in all", number(plan.bits_per_item), bytes(plan.bytes))),
        ("near", format!("{} missed at {} {unit}", percent(plan.false_negative), own(terms.near))),
        ("far", format!("{} accepted at {} {unit}", percent(plan.false_positive), own(terms.far))),
    ]
}
