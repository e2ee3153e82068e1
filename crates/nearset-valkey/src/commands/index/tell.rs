//! `NEAR.INDEX.CARD`, `NEAR.INDEX.INFO`: what an index is, and how it is now.

use nearset::IndexSpec;

use super::{IndexKey, expect};
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::data_type::Stored;
use crate::fields::{self, Field, Fields};
use crate::index::IndexValue;
use crate::items::shown;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;

pub const CARD: Command = Command {
    name: c"NEAR.INDEX.CARD",
    entry: entry!(card),
    flags: c"readonly fast",
    is_trusted: false,
    summary: c"How many items an index has; 0 if there is no such key",
    complexity: c"O(1)",
    arity: 2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY],
};

pub const INFO: Command = Command {
    name: c"NEAR.INDEX.INFO",
    entry: entry!(info),
    flags: c"readonly fast",
    is_trusted: false,
    summary: c"What an index is, and how it is now: items, segments that a search looks into, bytes; or one of these",
    complexity: c"O(1)",
    arity: -2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::text(c"field").optional()],
};

fn card(call: &Call<'_>) -> Outcome {
    if call.count() != 2 {
        return Err(Refusal::Arity);
    }
    let key: Option<IndexKey<'_>> = call.read(1)?;
    let items = if key.is_none() { 0 } else { expect(&key)?.index().state().items };
    call.count_reply(items);
    Ok(())
}

fn info(call: &Call<'_>) -> Outcome {
    if call.count() > 3 {
        return Err(Refusal::Arity);
    }
    let key: Option<IndexKey<'_>> = call.read(1)?;
    let value = expect(&key)?;
    let wanted = call.arguments_from(2).next();
    let all = told(value, wanted);
    match (wanted, &all[..]) {
        (None, _) => fields::reply(call, &all),
        (Some(_), [(_, field)]) => field.reply(call),
        (Some(wanted), _) => {
            let names: Vec<&str> = told(value, None).into_iter().map(|(name, _)| name).collect();
            return refuse!("{} is no field of this index: there are {}", shown(wanted), names.join(", "));
        }
    }
    Ok(())
}

/// Returns what an index is and how it is now: all fields, or the one of this name, if there is one.
pub fn told(value: &IndexValue, wanted: Option<&[u8]>) -> Fields {
    let index = value.index();
    let mut fields = value.metric.map_or_else(Fields::new, fields::metric_fields);
    fields.extend(value.near.map(|near| ("near", Field::Number(near))));
    match index.empty().spec() {
        IndexSpec::Hamming(_) => fields.push(("structure", Field::Text("exact".into()))),
        IndexSpec::Lsh(spec) => {
            fields.push(("structure", Field::Text("near".into())));
            fields.push(("bands", Field::Count(spec.layout.bands.into())));
            fields.push(("rows", Field::Count(spec.layout.rows.into())));
            fields.push(("probes", Field::Count(spec.probes.into())));
        }
        _ => {}
    }
    let state = index.state();
    drop(index);
    fields.push(("items", Field::Count(state.items)));
    fields.push(("segments", Field::Count(state.segments as u64)));
    fields.push(("bytes", Field::Count(value.bytes())));
    fields.retain(|(name, _)| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name.as_bytes())));
    fields
}
