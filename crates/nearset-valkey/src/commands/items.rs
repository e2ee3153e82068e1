//! `NEAR.ADD`, `NEAR.MADD`, `NEAR.EXISTS`, `NEAR.MEXISTS`, `NEAR.HITS`: items, as [`crate::items`] reads them.

use nearset::Generations;
use nearset::family::Key;
use nearset::generations::AnyFilter;

use super::docs::{Argument, Command, Keys, entry};
use super::{expect, expect_mut, hold_against_limit};
use crate::items::{read_all, read_one, with_room};
use crate::refusal::{Outcome, Refusal};
use crate::server::{self, Call};
use crate::value::weight;

const ITEM: Argument = Argument::one_of(
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
    summary: c"How many bands of an item hit, of how many, and how likely an item with that rate of hits is accepted",
    complexity: c"O(length of the item + bands)",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, ITEM],
};

/// What insertion may have to allocate is held against the limit first.
pub fn hold_room(call: &Call<'_>, filter: &Generations<'_>, items: usize) -> Outcome {
    match filter.room_needed(items as u64) {
        0 => Ok(()),
        room => hold_against_limit(call, weight(filter).saturating_add(room), "the filter, grown,"),
    }
}

/// Room that a batch may take for a moment whatever the limit, which is about what keys hold.
const BATCH: u64 = 64 << 20;

/// The keys of a batch are all made before the first is used, and may take far more than the items did.
fn hold_batch(call: &Call<'_>, filter: &Generations<'_>, items: usize) -> Outcome {
    let Some(AnyFilter::Near(newest)) = filter.filters().last() else { return Ok(()) };
    let of_item = size_of::<Key>() as u64 * u64::from(newest.spec().rule.bands());
    match of_item.saturating_mul(items as u64) {
        ..=BATCH => Ok(()),
        bytes => hold_against_limit(call, bytes, "hashing so many items at once"),
    }
}

pub fn inserted(call: &Call<'_>, key: &server::Key<'_>) {
    call.replicate();
    key.changed(c"near.add");
}

fn add(call: &Call<'_>) -> Outcome {
    let mut key = call.write(1)?;
    let filter = expect_mut(&mut key)?;
    let arguments = call.arguments_from(2);
    let new = with_room(arguments, |room| {
        let item = read_one(filter.metric(), arguments, &mut room.copies)?;
        hold_room(call, filter, 1)?;
        filter.insert(item, &mut room.hashed).map_err(Refusal::because)
    })?;
    inserted(call, &key);
    call.integer(new.into());
    Ok(())
}

fn add_many(call: &Call<'_>) -> Outcome {
    let mut key = call.write(1)?;
    let filter = expect_mut(&mut key)?;
    let arguments = call.arguments_from(2);
    let new = with_room(arguments, |room| {
        let items = read_all(filter.metric(), arguments, &mut room.copies)?;
        hold_batch(call, filter, items.len())?;
        hold_room(call, filter, items.len())?;
        filter.insert_all(items).map_err(Refusal::because)
    })?;
    inserted(call, &key);
    reply_all(call, &new);
    Ok(())
}

fn exists(call: &Call<'_>) -> Outcome {
    let key = call.read(1)?;
    if key.is_none() {
        // Nothing is near anything in a filter that is not there; what the item is like nobody can say.
        call.integer(0);
        return Ok(());
    }
    let filter = expect(&key)?;
    let arguments = call.arguments_from(2);
    let near = with_room(arguments, |room| {
        let item = read_one(filter.metric(), arguments, &mut room.copies)?;
        filter.contains_near(item, &mut room.hashed).map_err(Refusal::because)
    })?;
    call.integer(near.into());
    Ok(())
}

fn exist(call: &Call<'_>) -> Outcome {
    let key = call.read(1)?;
    if key.is_none() {
        reply_all(call, &vec![false; call.count() - 2]);
        return Ok(());
    }
    let filter = expect(&key)?;
    let arguments = call.arguments_from(2);
    let near = with_room(arguments, |room| {
        let items = read_all(filter.metric(), arguments, &mut room.copies)?;
        hold_batch(call, filter, items.len())?;
        filter.contains_all(items).map_err(Refusal::because)
    })?;
    reply_all(call, &near);
    Ok(())
}

fn hits(call: &Call<'_>) -> Outcome {
    let key = call.read(1)?;
    let filter = expect(&key)?;
    let arguments = call.arguments_from(2);
    let hits = with_room(arguments, |room| {
        let item = read_one(filter.metric(), arguments, &mut room.copies)?;
        filter.hits(item, &mut room.hashed).map_err(Refusal::because)
    })?;
    call.array(3);
    call.integer(hits.hit.into());
    call.integer(hits.bands.into());
    call.double(filter.acceptance_of_hits(hits));
    Ok(())
}

pub fn reply_all(call: &Call<'_>, answers: &[bool]) {
    call.array(answers.len());
    for &answer in answers {
        call.integer(answer.into());
    }
}
