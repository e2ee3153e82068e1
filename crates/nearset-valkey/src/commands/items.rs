//! `NEAR.ADD`, `NEAR.MADD`, `NEAR.EXISTS`, `NEAR.MEXISTS`, `NEAR.HITS`: items, as [`crate::items`] reads them.

use nearset::InsertError;
use nearset::family::{Form, Key};
use nearset::{Filter, Match, Metric};

use super::docs::{Argument, Command, Keys, entry};
use super::{expect_functions, expect_mut};
use crate::background;
use crate::config;
use crate::fill::{Before, Change};
use crate::items::{read_all, read_one, with_room};
use crate::memory::{self, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{self, Arguments, Call};
use crate::stats;
use crate::value::{bytes_to_copy, weight};
use crate::window::{known, move_on};

pub const ITEM: Argument = Argument::one_of(
    c"item",
    &[
        Argument::text(c"text-or-bytes"),
        Argument::text(c"vector").after(c"FP32"),
        Argument::block(
            c"components",
            &[Argument::whole(c"count").after(c"VALUES"), Argument::real(c"component").several()],
        ),
    ],
);

pub const ADD: Command = Command {
    name: c"NEAR.ADD",
    entry: entry!(add),
    flags: c"write deny-oom fast",
    is_trusted: false,
    summary: c"Adds an item: 1 when nothing near was there before, else 0",
    complexity: c"O(length of the item + bands)",
    arity: -3,
    keys: &[Keys::ADD],
    arguments: &[Argument::KEY, ITEM],
};

pub const MADD: Command = Command {
    name: c"NEAR.MADD",
    entry: entry!(add_many),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Adds items in order, all or none: for each 1 when nothing near was there before, else 0",
    complexity: c"O(length of the items + items * bands)",
    arity: -3,
    keys: &[Keys::ADD],
    arguments: &[Argument::KEY, ITEM.several()],
};

pub const EXISTS: Command = Command {
    name: c"NEAR.EXISTS",
    entry: entry!(exists),
    flags: c"readonly fast",
    is_trusted: false,
    summary: c"Whether anything near an item was added: 1 or 0",
    complexity: c"O(length of the item + bands)",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, ITEM],
};

pub const MEXISTS: Command = Command {
    name: c"NEAR.MEXISTS",
    entry: entry!(exist),
    flags: c"readonly",
    is_trusted: false,
    summary: c"For each item, whether anything near was added: 1 or 0",
    complexity: c"O(length of the items + items * bands)",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, ITEM.several()],
};

pub const HITS: Command = Command {
    name: c"NEAR.HITS",
    entry: entry!(hits),
    flags: c"readonly fast",
    is_trusted: true,
    summary: c"How many bands of an item hit, of how many, and how likely an item with that rate of hits is accepted",
    complexity: c"O(length of the item + bands)",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, ITEM],
};

/// What grows, as errors name it.
const GROWN: &str = "the filter, grown,";

/// Allocates what insertion may need before the first item is inserted, if it is allowed.
pub fn reserve_room(call: &Call<'_>, filter: &mut Filter<'_>, items: usize) -> Outcome {
    if call.limits_apply() && !config::allows_overfull() {
        filter.expect_not_overfull(items as u64).map_err(Refusal::because)?;
    }
    let more = filter.room_needed(items as u64);
    let copied = bytes_to_copy(filter, items as u64);
    if more == 0 && copied == 0 {
        return Ok(());
    }
    let total = weight(filter).saturating_add(more);
    let passing = call.bytes_to_send_on().saturating_add(copied);
    let floor = memory::allow(call, Need { what: GROWN, total, more, passing })?;
    filter.reserve(items as u64).map_err(|error| match error {
        InsertError::Spec(error) => memory::refused(GROWN, error),
        other => Refusal::because(other),
    })?;
    drop(floor);
    Ok(())
}

/// Room that a batch may take for a moment whatever the limit, which is about what keys hold.
const BATCH: u64 = 64 << 20;

/// Holds what a command works with against the limits before the first item is read: the items themselves, and their keys, which
/// are all made before the first is used and may take far more than the items did.
pub fn hold_batch(call: &Call<'_>, filter: &Filter<'_>, arguments: Arguments<'_>) -> Outcome {
    let bytes = hold_bytes(call, arguments)?;
    let items = arguments.len() as u64;
    let bands = filter.spec().near().map_or(0, |spec| spec.rule.bands());
    let keys = items.saturating_mul(size_of::<Key>() as u64 * u64::from(bands));
    if keys > BATCH {
        memory::hold_against_limit(call, keys, "hashing this many items at once")?;
    }
    // Keys are made in room that doubles, and while it is moved both are there.
    let hashing = bytes
        .saturating_mul(per_byte(filter.spec().metric()))
        .saturating_add(items * PER_ITEM)
        .saturating_add(3 * keys);
    let passing = hashing.saturating_add(2 * filter.bytes_to_prepare(0)).saturating_add(call.bytes_to_send_on());
    memory::allow(call, Need { what: "hashing the items", total: 0, more: 0, passing }).map(drop)
}

/// Returns the bytes that reading and hashing take per byte of an item, at most: texts of one-byte letters have as many shingles as bytes,
/// which take 26 bytes each, or 40 where they are counted; other items are copied.
pub fn per_byte(metric: Option<Metric>) -> u64 {
    match metric.map(Metric::form) {
        Some(Form::Set(_)) => 32,
        Some(Form::Weighted(_)) => 48,
        _ => 8,
    }
}

/// The same per item, beside its keys: where it lies, the answer, and the server's reply.
pub const PER_ITEM: u64 = 256;

/// Holds a client's items against `near.batch-limit`; how many bytes they have.
pub fn hold_bytes(call: &Call<'_>, items: Arguments<'_>) -> Outcome<u64> {
    let (bytes, limit) = (items.map(|item| item.len() as u64).sum(), config::batch_limit());
    if bytes <= limit || !call.limits_apply() {
        return Ok(bytes);
    }
    refuse!(
        "the items have {bytes} bytes, and near.batch-limit allows {limit} in one command, during which the server does nothing \
         else: send fewer or shorter ones, or raise it"
    )
}

/// Inserts so many items into a filter, and counts them.
pub fn counted<T>(
    filter: &mut Filter<'_>,
    items: usize,
    insert: impl FnOnce(&mut Filter<'_>) -> Result<T, InsertError>,
) -> Outcome<(T, Change)> {
    let before = Before::of(filter);
    let new = stats::hashing(|| insert(filter)).map_err(Refusal::because)?;
    stats::ADDED.add(items as u64);
    Ok((new, before.and_now(filter, items)))
}

/// Looks so many items up, and counts them.
pub fn asked<T, E: std::fmt::Display>(items: usize, look: impl FnOnce() -> Result<T, E>) -> Outcome<T> {
    let found = stats::hashing(look).map_err(Refusal::because)?;
    stats::ASKED.add(items as u64);
    Ok(found)
}

pub fn inserted(call: &Call<'_>, key: &server::Key<'_>, change: Change) {
    call.replicate();
    key.changed(c"near.add");
    change.publish(key);
}

fn add(call: &Call<'_>) -> Outcome {
    let mut key = call.write(1)?;
    expect_functions(call, Some(&mut key))?;
    move_on(call, &mut key)?;
    let filter = expect_mut(&mut key)?;
    let arguments = call.arguments_from(2);
    let (new, change) = with_room(arguments, |room| {
        hold_batch(call, filter, arguments)?;
        let item = read_one(filter.spec().metric(), arguments, &mut room.copies)?;
        reserve_room(call, filter, 1)?;
        counted(filter, 1, |filter| filter.insert(item, &mut room.hashed))
    })?;
    inserted(call, &key, change);
    call.integer(new.into());
    Ok(())
}

fn add_many(call: &Call<'_>) -> Outcome {
    add_items(call, &mut call.write(1)?, 2)
}

/// Adds the items that the arguments from one on say to the filter of a key.
pub fn add_items(call: &Call<'_>, key: &mut server::Key<'_>, first: usize) -> Outcome {
    expect_functions(call, Some(key))?;
    move_on(call, key)?;
    let filter = expect_mut(key)?;
    let arguments = call.arguments_from(first);
    let (new, change) = with_room(arguments, |room| {
        hold_batch(call, filter, arguments)?;
        let items = read_all(filter.spec().metric(), arguments, &mut room.copies)?;
        reserve_room(call, filter, items.len())?;
        counted(filter, items.len(), |filter| filter.insert_all(items))
    })?;
    call.replicate_items(MADD.name, first);
    key.changed(c"near.add");
    change.publish(key);
    reply_all(call, new);
    Ok(())
}

/// Adds items to a filter that no key has yet.
pub fn add_to(filter: &mut Filter<'_>, arguments: Arguments<'_>) -> Outcome<(Vec<bool>, Change)> {
    with_room(arguments, |room| {
        let items = read_all(filter.spec().metric(), arguments, &mut room.copies)?;
        counted(filter, items.len(), |filter| filter.insert_all(items))
    })
}

fn exists(call: &Call<'_>) -> Outcome {
    let mut key = call.read(1)?;
    expect_functions(call, key.as_mut())?;
    if key.is_none() {
        // Nothing is near anything in a filter that does not exist; whether the item would fit it is unknown.
        call.integer(0);
        return Ok(());
    }
    let filter = known(&mut key)?;
    let arguments = call.arguments_from(2);
    let near = with_room(arguments, |room| {
        hold_batch(call, filter, arguments)?;
        let item = read_one(filter.spec().metric(), arguments, &mut room.copies)?;
        asked(1, || filter.contains_near(item, &mut room.hashed))
    })?;
    call.integer(near.into());
    Ok(())
}

fn exist(call: &Call<'_>) -> Outcome {
    let mut key = call.read(1)?;
    expect_functions(call, key.as_mut())?;
    if key.is_none() {
        reply_all(call, vec![false; call.count() - 2]);
        return Ok(());
    }
    let filter = known(&mut key)?;
    let arguments = call.arguments_from(2);
    let near = with_room(arguments, |room| {
        hold_batch(call, filter, arguments)?;
        let items = read_all(filter.spec().metric(), arguments, &mut room.copies)?;
        asked(items.len(), || filter.contains_all(items))
    })?;
    reply_all(call, near);
    Ok(())
}

fn hits(call: &Call<'_>) -> Outcome {
    let mut key = call.read(1)?;
    expect_functions(call, key.as_mut())?;
    let filter = known(&mut key)?;
    let arguments = call.arguments_from(2);
    let found = with_room(arguments, |room| {
        hold_batch(call, filter, arguments)?;
        let item = read_one(filter.spec().metric(), arguments, &mut room.copies)?;
        asked(1, || filter.find(item, &mut room.hashed))
    })?;
    if filter.bytes() <= background::SMALL || !call.can_wait() {
        reply_hits(call, filter, found);
        return Ok(());
    }
    // How likely it is accepted may take a look at all tables.
    let filter = key.as_mut().and_then(server::Key::value_mut).and_then(|value| value.filter.as_mut());
    let Some(filter) = filter.map(Filter::share) else { return Err(super::no_key()) };
    background::work(call, true, move |worker| {
        worker.unlocked(|call| reply_hits(call, &filter, found));
        Ok(())
    })
}

fn reply_hits(call: &Call<'_>, filter: &Filter<'_>, found: Match) {
    call.array(3);
    // An exact near filter has one band, as it were: it hits or it does not.
    let (hits, bands) = if found.bands == 0 { (found.near.into(), 1) } else { (found.hits, found.bands) };
    call.integer(hits.into());
    call.integer(bands.into());
    call.double(filter.acceptance_of_hits(found));
}

pub fn reply_all(call: &Call<'_>, answers: impl IntoIterator<Item = bool, IntoIter: ExactSizeIterator>) {
    let answers = answers.into_iter();
    call.array(answers.len());
    for answer in answers {
        call.integer(answer.into());
    }
}
