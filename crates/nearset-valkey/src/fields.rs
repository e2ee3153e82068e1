//! What is told of a filter, under the names that RESERVE, SPEC and INFO share.

use nearset::spec::{Terms, WhenFull};
use nearset::{Filter, FilterSpec, Metric};

use crate::server::Call;
use crate::window::Window;

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
        fields.extend(metric_fields(metric));
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

/// Returns how long a filter remembers, if not by the number of items alone.
pub fn window_field(window: Option<Window>) -> Option<(&'static str, Field)> {
    window.map(|window| ("seconds-kept", Field::Number(window.lasts as f64 / 1000.0)))
}

/// Returns what a metric is.
pub fn metric_fields(metric: Metric) -> Fields {
    let mut fields = vec![("metric", Field::Text(metric.name().to_string()))];
    let shape = metric.shape();
    fields.extend(shape.shingling.map(|shingling| ("shingle", Field::Text(shingling.to_string()))));
    fields.extend(shape.length.map(|length| ("length", Field::Count(length.into()))));
    fields
}

/// Without what a distance and back costs of the last digits: 0.7 rather than 0.7000000000000001.
pub fn shortened(value: f64) -> f64 {
    let short = (value * 1e12).round() / 1e12;
    if (short - value).abs() <= 4.0 * f64::EPSILON * value.abs().max(1.0) { short } else { value }
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

/// What is told of how a filter is now: a name, whether it may take a look at all tables, and what says it.
struct Telling {
    name: &'static str,
    counts: bool,
    tell: fn(&Filter<'_>) -> Option<Field>,
}

const STATE: [Telling; 8] = [
    Telling { name: "items", counts: false, tell: |filter| Some(Field::Count(filter.len())) },
    Telling {
        name: "generations",
        counts: false,
        tell: |filter| Some(Field::Count(filter.generations().len() as u64)),
    },
    Telling { name: "load", counts: true, tell: |filter| Some(Field::Count(filter.load())) },
    Telling { name: "unrelated", counts: true, tell: |filter| Some(Field::Number(filter.unrelated_acceptance())) },
    Telling { name: "bytes", counts: false, tell: |filter| Some(Field::Count(filter.bytes())) },
    Telling { name: "capacity", counts: false, tell: |filter| filter.capacity().map(Field::Count) },
    Telling {
        name: "predicted-false-negative",
        counts: true,
        tell: |filter| filter.predicted_errors().map(|(missed, _)| Field::Number(missed)),
    },
    Telling {
        name: "predicted-false-positive",
        counts: true,
        tell: |filter| filter.predicted_errors().map(|(_, accepted)| Field::Number(accepted)),
    },
];

/// Returns whether telling a field, or all of them, may take a look at all tables.
pub fn counts(wanted: Option<&[u8]>) -> bool {
    let is_wanted = |telling: &&Telling| wanted.is_none_or(|name| name.eq_ignore_ascii_case(telling.name.as_bytes()));
    STATE.iter().filter(is_wanted).any(|telling| telling.counts)
}

/// Returns what a filter promised and how it is now: all fields, or the one of this name, if there is one. Only what is told is
/// worked out.
pub fn told(filter: &Filter<'_>, window: Option<Window>, wanted: Option<&[u8]>) -> Fields {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name.as_bytes()));
    let now = STATE.iter().filter(|telling| is_wanted(telling.name));
    let now: Fields = now.filter_map(|telling| Some((telling.name, (telling.tell)(filter)?))).collect();
    let mut fields = promise(&filter.spec());
    fields.extend(window_field(window));
    // A filter that has grown is made for more than what was reserved.
    fields.retain(|(name, _)| is_wanted(name) && now.iter().all(|(told, _)| told != name));
    fields.extend(now);
    fields
}

/// Returns the names of all fields that there may be.
pub fn names(spec: &FilterSpec, window: Option<Window>) -> Vec<&'static str> {
    let mut names: Vec<&str> = promise(spec).into_iter().chain(window_field(window)).map(|(name, _)| name).collect();
    names.retain(|name| STATE.iter().all(|telling| telling.name != *name));
    names.extend(STATE.map(|telling| telling.name));
    names
}
