//! What is told of a filter, under the names that RESERVE, SPEC and INFO share.

use nearset::Generations;
use nearset::generations::{AnyFilter, Description, Terms, WhenFull};
use nearset::plan::{Metric, PlannedSpec};

use crate::server::Call;

/// A value that is told.
pub enum Field {
    Count(u64),
    Number(f64),
    Text(String),
    Bytes(Vec<u8>),
}

pub type Fields = Vec<(&'static str, Field)>;

impl Field {
    pub fn reply(&self, call: &Call<'_>) {
        match self {
            Field::Count(count) => call.count_reply(*count),
            Field::Number(number) => call.double(*number),
            Field::Text(text) => call.bulk(text.as_bytes()),
            Field::Bytes(bytes) => call.bulk(bytes),
        }
    }
}

/// All of them as one map.
pub fn reply(call: &Call<'_>, fields: &Fields) {
    call.map(fields.len());
    for (name, field) in fields {
        call.bulk(name.as_bytes());
        field.reply(call);
    }
}

/// What a filter is, and what it promises.
pub fn promise(description: &Description) -> Fields {
    let mut fields = Fields::new();
    if let Some(metric) = description.metric() {
        fields.push(("metric", Field::Text(metric.name().to_string())));
        fields.extend(match metric {
            Metric::Jaccard { shingling } | Metric::WeightedJaccard { shingling } => {
                Some(("shingle", Field::Text(shingling.to_string())))
            }
            Metric::Hamming { bits: length }
            | Metric::Symbols { length }
            | Metric::Angle { dimension: length }
            | Metric::L1 { dimension: length }
            | Metric::L2 { dimension: length } => Some(("length", Field::Count(length.into()))),
            _ => None,
        });
        if let Some(terms) = description.terms() {
            fields.push(("near", Field::Number(shortened(metric.own_unit(terms.near)))));
            fields.push(("far", Field::Number(shortened(metric.own_unit(terms.far)))));
        }
    }
    if let Some(terms) = description.terms() {
        promised(terms, &mut fields);
    }
    match description.spec() {
        PlannedSpec::Near(spec) => {
            fields.push(("structure", Field::Text("near".into())));
            fields.push(("bands", Field::Count(spec.rule.bands().into())));
            fields.push(("rows", Field::Count(spec.rows.into())));
        }
        PlannedSpec::Exact(_) => fields.push(("structure", Field::Text("exact".into()))),
        _ => {}
    }
    fields
}

/// Without what a distance and back costs of the last digits: 0.7 rather than 0.7000000000000001.
fn shortened(value: f64) -> f64 {
    let short = (value * 1e12).round() / 1e12;
    if (short - value).abs() <= 1e-12 * value.abs() { short } else { value }
}

fn promised(terms: &Terms, fields: &mut Fields) {
    fields.push(("capacity", Field::Count(terms.capacity)));
    fields.push(("max-false-negative", Field::Number(terms.max_false_negative)));
    fields.push(("max-false-positive", Field::Number(terms.max_false_positive)));
    let when_full = match terms.when_full {
        WhenFull::Grow => "grow",
        WhenFull::Refuse => "refuse",
        WhenFull::Forget { .. } => "forget",
        _ => "unknown",
    };
    fields.push(("when-full", Field::Text(when_full.into())));
    if let WhenFull::Forget { generations } = terms.when_full {
        fields.push(("generations-kept", Field::Count(generations.into())));
    }
}

/// How a filter is now.
pub fn state(filter: &Generations<'_>) -> Fields {
    // Different items are at most as many as there are: where all bits are set, an estimate by bits knows no bound.
    let newest = filter.filters().last().map_or(0, AnyFilter::len);
    let mut fields = vec![
        ("items", Field::Count(filter.len())),
        ("generations", Field::Count(filter.filters().len() as u64)),
        ("load", Field::Count(filter.load().min(newest))),
        ("bytes", Field::Count(filter.bytes())),
    ];
    if let Some(errors) = filter.predicted_errors() {
        fields.push(("predicted-false-negative", Field::Number(errors.false_negative)));
        fields.push(("predicted-false-positive", Field::Number(errors.false_positive)));
    }
    fields
}
