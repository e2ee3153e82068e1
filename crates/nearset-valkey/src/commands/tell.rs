//! `NEAR.CARD`, `NEAR.INFO`, `NEAR.SPEC`: what a filter is, what it promised, and how it is now.

use super::docs::{Argument, Command, Keys, entry};
use super::expect;
use crate::background;
use crate::fields::{self, Field};
use crate::items::shown;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Call, Key};
use crate::window::{Window, known};
use nearset::Filter;

pub const CARD: Command = Command {
    name: c"NEAR.CARD",
    entry: entry!(card),
    flags: c"readonly fast",
    is_trusted: false,
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
    is_trusted: false,
    summary: c"What a filter promised, and how it is now: items, generations, load, bytes, and the errors that it predicts of itself; or one of these",
    complexity: c"O(1), where the load is counted along; else O(bytes of the filter), on another thread where it is large",
    arity: -2,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::text(c"field").optional()],
};

pub const SPEC: Command = Command {
    name: c"NEAR.SPEC",
    entry: entry!(spec),
    flags: c"readonly fast",
    is_trusted: true,
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
    let mut key = call.read(1)?;
    let items = if key.is_none() { 0 } else { known(&mut key)?.len() };
    call.count_reply(items);
    Ok(())
}

fn info(call: &Call<'_>) -> Outcome {
    if call.count() > 3 {
        return Err(Refusal::Arity);
    }
    let mut key = call.read(1)?;
    let is_long = expect(&key)?.bytes() > background::SMALL && fields::counts(call.arguments_from(2).next());
    let Some(value) = key.as_mut().and_then(Key::value_mut) else { return Err(super::no_key()) };
    value.hide_old();
    let window = value.window;
    if !is_long || !call.can_wait() {
        return tell(call, value.filter()?, window);
    }
    let mut shared = value.shared()?;
    shared.hide_old();
    background::work(call, true, move |worker| worker.unlocked(|call| tell(call, shared.filter()?, window)))
}

fn tell(call: &Call<'_>, filter: &Filter<'_>, window: Option<Window>) -> Outcome {
    let wanted = call.arguments_from(2).next();
    let all = fields::told(filter, window, wanted);
    match (wanted, &all[..]) {
        (None, _) => fields::reply(call, &all),
        (Some(_), [(_, field)]) => field.reply(call),
        (Some(wanted), _) => {
            let names = fields::names(&filter.spec(), window).join(", ");
            return refuse!("{} is no field of this filter: there are {names}", shown(wanted));
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
