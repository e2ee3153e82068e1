//! `NEAR.CARD`, `NEAR.INFO`, `NEAR.SPEC`: what a filter is, what it promised, and how it is now.

use super::docs::{Argument, Command, Keys, entry};
use super::expect;
use crate::fields::{self, Field};
use crate::items::shown;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;

pub const CARD: Command = Command {
    name: c"NEAR.CARD",
    entry: entry!(card),
    flags: c"readonly fast",
    summary: c"How many items were added, repeats included and forgotten ones not; 0 if there is no such key",
    complexity: c"O(1)",
    arity: 2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY],
};

pub const INFO: Command = Command {
    name: c"NEAR.INFO",
    entry: entry!(info),
    flags: c"readonly",
    summary: c"What a filter promised, and how it is now: items, generations, load, bytes, and the errors that it predicts of itself; or one of these",
    complexity: c"O(1), where the load is counted along; else O(bytes of the newest generation)",
    arity: -2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::text(c"field").optional()],
};

pub const SPEC: Command = Command {
    name: c"NEAR.SPEC",
    entry: entry!(spec),
    flags: c"readonly fast",
    summary: c"What a client needs that hashes items itself: the filter's description, for NEAR.RESERVE and for the libraries, and what it says",
    complexity: c"O(1)",
    arity: 2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY],
};

fn card(call: &Call<'_>) -> Outcome {
    if call.count() != 2 {
        return Err(Refusal::Arity);
    }
    let key = call.read(1)?;
    let items = if key.is_none() { 0 } else { expect(&key)?.len() };
    call.count_reply(items);
    Ok(())
}

fn info(call: &Call<'_>) -> Outcome {
    if call.count() > 3 {
        return Err(Refusal::Arity);
    }
    let key = call.read(1)?;
    let filter = expect(&key)?;
    let mut all = fields::promise(&filter.spec());
    // A filter that has grown is made for more than what was reserved.
    let state = fields::state(filter);
    all.retain(|(name, _)| state.iter().all(|(now, _)| now != name));
    all.extend(state);
    let Some(wanted) = call.arguments_from(2).next() else {
        fields::reply(call, &all);
        return Ok(());
    };
    match all.iter().find(|(name, _)| wanted.eq_ignore_ascii_case(name.as_bytes())) {
        Some((_, field)) => field.reply(call),
        None => {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            return refuse!("{} is no field of this filter: there are {}", shown(wanted), names.join(", "));
        }
    }
    Ok(())
}

fn spec(call: &Call<'_>) -> Outcome {
    if call.count() != 2 {
        return Err(Refusal::Arity);
    }
    let key = call.read(1)?;
    let filter = expect(&key)?;
    let description = filter.spec();
    let mut all = vec![("description", Field::Bytes(description.encode()))];
    all.extend(fields::promise(&description));
    let seed = description.near().map(|spec| spec.seed).or(description.exact().map(|spec| spec.seed));
    all.extend(seed.map(|seed| ("seed", Field::Text(seed.to_string()))));
    fields::reply(call, &all);
    Ok(())
}
