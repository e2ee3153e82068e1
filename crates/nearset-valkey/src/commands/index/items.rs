//! `NEAR.INDEX.ADD`, `NEAR.INDEX.SEARCH`, `NEAR.INDEX.GET`, `NEAR.INDEX.REM`: items by id, and by what is near.

use nearset::family::Form;
use nearset::index::{IndexError, NamedIndex, USUAL_TOP};
use nearset::{Distance, Item, Metric};

use super::{IndexKey, expect, expect_mut};
use crate::background;
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::commands::items::{ITEM, PER_ITEM, hold_bytes, per_byte};
use crate::fields::shortened;
use crate::index::{IndexValue, bytes_of_item};
use crate::items::{id, number, read_first, read_named, shown, with_room};
use crate::memory::{self, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Arguments, Call};
use crate::stats;

/// The most ids that a search gives.
const MOST_FOUND: usize = 10_000;

pub const ADD: Command = Command {
    name: c"NEAR.INDEX.ADD",
    entry: entry!(add),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Adds items under ids, all or none, each in place of the item that had its id: how many ids are new",
    complexity: c"O(length of the items + items * tables)",
    arity: -4,
    keys: &[Keys::ADD],
    arguments: &[Argument::KEY, Argument::block(c"entry", &[Argument::text(c"id"), ITEM]).several()],
};

pub const SEARCH: Command = Command {
    name: c"NEAR.INDEX.SEARCH",
    entry: entry!(search),
    flags: c"readonly",
    is_trusted: false,
    summary: c"The ids of the nearest items, each with its exact similarity or distance, the nearest first; none if there is no such key",
    complexity: c"O(length of the item + tables + items that are compared), on another thread where these are many",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[
        Argument::KEY,
        ITEM,
        Argument::whole(c"count").after(c"K").optional(),
        Argument::real(c"limit").after(c"WITHIN").optional(),
    ],
};

pub const GET: Command = Command {
    name: c"NEAR.INDEX.GET",
    entry: entry!(get),
    flags: c"readonly fast",
    is_trusted: false,
    summary: c"The item of an id as it is kept: a hash or a vector, and of a text the number of its shingles; nil if there is none",
    complexity: c"O(length of the item)",
    arity: 3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::text(c"id")],
};

pub const REM: Command = Command {
    name: c"NEAR.INDEX.REM",
    entry: entry!(remove),
    flags: c"write fast",
    is_trusted: false,
    summary: c"Removes the items of ids: how many there were",
    complexity: c"O(ids)",
    arity: -3,
    keys: &[Keys::CHANGE],
    arguments: &[Argument::KEY, Argument::text(c"id").several()],
};

/// Bytes that an index keeps per byte of an item, at most: one hash per letter of a text, with a weight where letters are weighed.
fn kept_per_byte(metric: Option<Metric>) -> u64 {
    match metric.map(Metric::form) {
        Some(Form::Set(_)) => 8,
        Some(Form::Weighted(_)) => 16,
        Some(Form::Symbols(_)) => 4,
        // Numbers may be written with one digit each.
        _ => 4,
    }
}

/// Bytes that an item takes beside itself and its tables: where it lies, its id in order of ids and by name, and what is not used yet of
/// vectors that grow.
const PER_ENTRY: u64 = 256;

fn add(call: &Call<'_>) -> Outcome {
    let mut key: IndexKey<'_> = call.write(1)?;
    let value = expect_mut(&mut key)?;
    value.expect_functions(call)?;
    let arguments = call.arguments_from(2);
    let metric = value.metric;
    hold(call, value, metric, arguments)?;
    let new = with_room(arguments, |room| {
        let items = read_named(metric, arguments, &mut room.copies)?;
        stats::hashing(|| value.index().insert(items)).map_err(refused)
    })?;
    stats::ADDED.add(new.len() as u64);
    value.merge_if_due();
    call.replicate();
    key.changed(c"near.index.add");
    call.count_reply(new.into_iter().filter(|is_new| *is_new).count() as u64);
    Ok(())
}

/// Holds what items take, now and for a moment, against the limits.
fn hold(call: &Call<'_>, value: &mut IndexValue, metric: Option<Metric>, arguments: Arguments<'_>) -> Outcome {
    let bytes = hold_bytes(call, arguments)?;
    let (items, tables) = (arguments.len() as u64 / 2, value.tables);
    // Runs are merged into new ones.
    let more = bytes
        .saturating_mul(2 * kept_per_byte(metric))
        .saturating_add(items.saturating_mul(PER_ENTRY.saturating_add(24 * tables)));
    let hashing = bytes.saturating_mul(per_byte(metric)).saturating_add(items.saturating_mul(PER_ITEM + 24 * tables));
    value.hold_growth(call, more, hashing.saturating_add(call.bytes_to_send_on()))
}

/// Returns why items are not taken, in the words of other commands.
fn refused(error: IndexError) -> Refusal {
    match error {
        IndexError::Batch(error) => Refusal::Because(format!("item {}: {}", error.position, error.cause)),
        other => Refusal::because(other),
    }
}

fn search(call: &Call<'_>) -> Outcome {
    let mut key: Option<IndexKey<'_>> = call.read(1)?;
    let Some(value) = key.as_mut().and_then(|key| key.value_mut()) else {
        call.array(0);
        return Ok(());
    };
    value.expect_functions(call)?;
    let (metric, arguments) = (value.metric, call.arguments_from(2));
    let passing = hold_bytes(call, arguments)?.saturating_mul(per_byte(metric));
    memory::allow(call, Need { what: "the search", total: 0, more: 0, passing }).map(drop)?;
    let near = value.near;
    let index = value.index();
    if find(call, &index, metric, near, QUICK)? {
        return Ok(());
    }
    // All items may be met in every table, in room that doubles.
    let passing = index.state().items.saturating_mul(12 * value.tables);
    memory::allow(call, Need { what: "the search", total: 0, more: 0, passing }).map(drop)?;
    if !call.can_wait() {
        return find(call, &index, metric, near, u64::MAX).map(drop);
    }
    // Segments are shared, and the newest items are few.
    let index = NamedIndex::clone(&index);
    background::work(call, true, move |worker| {
        worker.unlocked(|call| find(call, &index, metric, near, u64::MAX)).map(drop)
    })
}

/// Words that are compared at once, at most, which takes a millisecond or two and no memory to speak of.
const QUICK: u64 = 1 << 18;

/// Replies with what a search finds. False if more than this would have to be compared.
fn find(call: &Call<'_>, index: &NamedIndex, metric: Option<Metric>, near: Option<f64>, budget: u64) -> Outcome<bool> {
    let arguments = call.arguments_from(2);
    with_room(arguments, |room| {
        let (item, options) = read_first(metric, arguments, &mut room.copies)?;
        let (top, within) = search_options(near, metric, options)?;
        let found = match stats::hashing(|| index.search(item, Some(top), within, budget)) {
            Err(IndexError::Budget) => return Ok(false),
            found => found.map_err(Refusal::because)?,
        };
        stats::ASKED.add(1);
        call.array(found.len());
        for (name, distance) in found {
            call.array(2);
            call.bulk(name.as_bytes());
            call.double(metric.map_or(distance.value(), |metric| shortened(metric.own_unit(distance))));
        }
        Ok(true)
    })
}

/// Returns how many to find and up to where: what is near, unless something else is said.
fn search_options(
    near: Option<f64>,
    metric: Option<Metric>,
    mut options: Arguments<'_>,
) -> Outcome<(usize, Option<Distance>)> {
    let (mut top, mut within) = (None, None);
    while let Some(name) = options.next() {
        let Some(text) = options.next() else { return refuse!("{} needs a value", shown(name)) };
        let is_repeated = if name.eq_ignore_ascii_case(b"K") {
            let count = number(text).filter(|count| (1..=MOST_FOUND).contains(count));
            let Some(count) = count else { return refuse!("K is {}: it must be from 1 to {MOST_FOUND}", shown(text)) };
            top.replace(count).is_some()
        } else if name.eq_ignore_ascii_case(b"WITHIN") {
            let Some(own) = number::<f64>(text) else { return refuse!("WITHIN: {} is not a number", shown(text)) };
            within.replace(own).is_some()
        } else {
            return refuse!("{} is no option: use K or WITHIN", shown(name));
        };
        if is_repeated {
            return refuse!("{} was given twice", shown(name));
        }
    }
    let within = match (within.or(near), metric) {
        (Some(own), Some(metric)) => {
            Some(metric.distance(own).map_err(|error| Refusal::Because(format!("WITHIN: {error}")))?)
        }
        _ => None,
    };
    Ok((top.unwrap_or(USUAL_TOP), within))
}

fn get(call: &Call<'_>) -> Outcome {
    if call.count() != 3 {
        return Err(Refusal::Arity);
    }
    let key: Option<IndexKey<'_>> = call.read(1)?;
    let name = id(call.argument(2)).map_err(Refusal::Because)?;
    let mut is_told = false;
    if key.is_some() {
        expect(&key)?.index().for_each(Some(name), |_, item| {
            is_told = true;
            match item {
                Some(Item::Set(set)) => call.count_reply(set.len() as u64),
                Some(Item::Weighted(set)) => call.count_reply(set.len() as u64),
                Some(item) => call.bulk(&bytes_of_item(item)),
                None => call.bulk(&[]),
            }
        });
    }
    if !is_told {
        call.null();
    }
    Ok(())
}

fn remove(call: &Call<'_>) -> Outcome {
    let mut key: IndexKey<'_> = call.write(1)?;
    let arguments = call.arguments_from(2);
    let names = arguments.map(id).collect::<Result<Vec<_>, _>>().map_err(Refusal::Because)?;
    let removed = match key.value_mut() {
        Some(value) => {
            let removed = {
                let mut index = value.index();
                names.into_iter().filter(|name| index.remove(name)).count()
            };
            value.merge_if_due();
            removed
        }
        None => 0,
    };
    if removed > 0 {
        call.replicate();
        key.changed(c"near.index.rem");
    }
    call.count_reply(removed as u64);
    Ok(())
}
