//! What is told of a filter, under the names that RESERVE, SPEC and INFO share.

use nearset::spec::{Terms, WhenFull};
use nearset::{Filter, FilterSpec};

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

/// Returns what a filter is, and what it promises.
pub fn promise(spec: &FilterSpec) -> Fields {
    let mut fields = Fields::new();
    if let Some(metric) = spec.metric() {
        fields.push(("metric", Field::Text(metric.name().to_string())));
        let shape = metric.shape();
        fields.extend(shape.shingling.map(|shingling| ("shingle", Field::Text(shingling.to_string()))));
        fields.extend(shape.length.map(|length| ("length", Field::Count(length.into()))));
        if let Some(terms) = spec.terms() {
            fields.push(("near", Field::Number(shortened(metric.own_unit(terms.near)))));
            fields.push(("far", Field::Number(shortened(metric.own_unit(terms.far)))));
        }
    }
    if let Some(terms) = spec.terms() {
        promised(terms, &mut fields);
    }
    match spec.near() {
        Some(spec) => {
            fields.push(("structure", Field::Text("near".into())));
            fields.push(("bands", Field::Count(spec.rule.bands().into())));
            fields.push(("rows", Field::Count(spec.rows.into())));
        }
        None => fields.push(("structure", Field::Text("exact".into()))),
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
pub fn state(filter: &Filter<'_>) -> Fields {
    let mut fields = vec![
        ("items", Field::Count(filter.len())),
        ("generations", Field::Count(filter.generations().len() as u64)),
        ("load", Field::Count(filter.load())),
        ("unrelated", Field::Number(filter.unrelated_acceptance())),
        ("bytes", Field::Count(filter.bytes())),
    ];
    if let Some(capacity) = filter.capacity() {
        fields.push(("capacity", Field::Count(capacity)));
    }
    if let Some((missed, accepted)) = filter.predicted_errors() {
        fields.push(("predicted-false-negative", Field::Number(missed)));
        fields.push(("predicted-false-positive", Field::Number(accepted)));
    }
    fields
}
