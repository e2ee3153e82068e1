//! `NEAR.RESERVE`: plans a filter from what is wanted of it, and says what it promises.

use nearset::family::WorkLimit;
use nearset::{Filter, FilterSpec};

use super::WINDOW;
use super::docs::{Argument, Command, Keys, entry};
use super::items::{MADD, add_items, add_to, hold_batch, reply_all};
use crate::background::{self, Worker};
use crate::memory::{self, Need};
use crate::options::Reservation;
use crate::refusal::{Outcome, refuse};
use crate::server::{Call, Key};
use crate::value::Value;
use crate::window::{Window, seconds};
use crate::{fields, options};

/// What filters and indexes may both be wished to be.
pub mod wish {
    use super::Argument;

    pub const METRIC: Argument = Argument::text(c"metric").after(c"METRIC");
    pub const NEAR: Argument = Argument::real(c"near").after(c"NEAR");
    pub const FAR: Argument = Argument::real(c"far").after(c"FAR").optional();
    pub const CAPACITY: Argument = Argument::whole(c"capacity").after(c"CAPACITY");
    pub const MAXFN: Argument = Argument::real(c"max-false-negative").after(c"MAXFN").optional();
    pub const LENGTH: Argument = Argument::whole(c"length").after(c"LENGTH").optional();
    pub const SHINGLE: Argument = Argument::text(c"shingle").after(c"SHINGLE").optional();
    pub const SEED: Argument = Argument::text(c"seed").after(c"SEED").optional();
    pub const MINIMISE: Argument =
        Argument::one_of(c"minimise", &[Argument::word(c"bytes", c"BYTES"), Argument::word(c"time", c"TIME")])
            .after(c"MINIMISE")
            .optional();
    pub const UNRELATED: Argument = Argument::one_of(
        c"unrelated",
        &[Argument::real(c"background").after(c"BACKGROUND"), Argument::word(c"worst-case", c"WORSTCASE")],
    )
    .optional();
}

/// Returns why nothing is reserved in a key that holds something.
pub fn key_exists<T>() -> Outcome<T> {
    refuse!("the key exists: DEL it first, or take another name")
}

/// What is wanted of a filter.
const GOAL: &[Argument] = &[
    wish::METRIC,
    wish::NEAR,
    wish::FAR,
    wish::CAPACITY,
    wish::MAXFN,
    Argument::real(c"max-false-positive").after(c"MAXFP").optional(),
    wish::LENGTH,
    wish::SHINGLE,
    wish::SEED,
    Argument::one_of(
        c"when-full",
        &[
            Argument::one_of(
                c"over-capacity",
                &[Argument::word(c"grow", c"GROW"), Argument::word(c"refuse", c"REFUSE")],
            )
            .after(c"WHENFULL"),
            Argument::block(
                c"expiry",
                &[
                    Argument::whole(c"count").after(c"EXPIRE-AFTER"),
                    Argument::one_of(
                        c"unit",
                        &[Argument::word(c"items", c"ITEMS"), Argument::word(c"generations", c"GENERATIONS")],
                    )
                    .optional(),
                ],
            ),
        ],
    )
    .optional(),
    Argument::block(c"time", &[Argument::real(c"seconds").after(c"EXPIRE-AFTER"), Argument::word(c"unit", c"SECONDS")])
        .optional(),
    wish::MINIMISE,
    wish::UNRELATED,
];

pub const RESERVE: Command = Command {
    name: c"NEAR.RESERVE",
    entry: entry!(reserve),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Makes a filter from what is near, what is far, how many items are expected and which errors may be made, and says what it promises",
    complexity: c"O(bytes of the filter), and planning, which takes up to seconds where near and far are close: both on another thread",
    arity: -4,
    keys: &[Keys::CREATE],
    arguments: &[
        Argument::KEY,
        Argument::one_of(
            c"filter",
            &[
                Argument::block(c"goal", GOAL),
                Argument::text(c"description").after(c"DESCRIPTION"),
            ],
        ),
    ],
};

pub const INSERT: Command = Command {
    name: c"NEAR.INSERT",
    entry: entry!(insert),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Adds items as NEAR.MADD does, to a filter that is made as NEAR.RESERVE does if there is none",
    complexity: c"O(length of the items + items * bands), and that of NEAR.RESERVE if the filter is made",
    arity: -8,
    keys: &[Keys::ADD],
    arguments: &[Argument::KEY, Argument::block(c"goal", GOAL), Argument::text(c"item").after(c"ITEMS").several()],
};

/// Returns where the items begin: after the first `ITEMS` that is not the unit of `EXPIRE-AFTER`.
fn items_from(call: &Call<'_>) -> Outcome<usize> {
    let is =
        |argument: usize, word: &[u8]| argument < call.count() && call.argument(argument).eq_ignore_ascii_case(word);
    let is_unit = |argument: usize| is(argument - 2, b"EXPIRE-AFTER") && is(argument + 1, b"ITEMS");
    let found = (4..call.count()).find(|argument| is(*argument, b"ITEMS") && !is_unit(*argument));
    match found.map(|items| items + 1).filter(|items| *items < call.count()) {
        Some(items) => Ok(items),
        None => {
            refuse!("ITEMS is missing, or nothing follows it: say what the filter is to be, then ITEMS and the items")
        }
    }
}

fn insert(call: &Call<'_>) -> Outcome {
    let items = items_from(call)?;
    let mut key = call.write(1)?;
    if key.value().is_some() {
        return add_items(call, &mut key, items);
    }
    let limit = call.work_limit();
    background::plan(call, true, move |worker| {
        let reserved = worker.unlocked(|call| options::describe(call.arguments(2..items - 1), limit))?;
        let mut filter = make(worker, &reserved.spec)?;
        worker.locked(|call| hold_batch(call, &filter, call.arguments_from(items)))?;
        let (new, change) = worker.unlocked(|call| add_to(&mut filter, call.arguments_from(items)))?;
        worker.locked(|call| {
            let mut key = call.write_during(1)?;
            // Another client was faster.
            if key.value().is_some() {
                return add_items(call, &mut key, items);
            }
            set(call, &mut key, &reserved, filter)?;
            call.replicate_items(MADD.name, items);
            key.changed(c"near.reserve");
            key.changed(c"near.add");
            change.publish(&key);
            reply_all(call, new);
            Ok(())
        })
    })
}

fn reserve(call: &Call<'_>) -> Outcome {
    expect_absent(&call.write(1)?)?;
    let limit = call.work_limit();
    let is_described = call.argument(2).eq_ignore_ascii_case(b"DESCRIPTION");
    let described = if is_described { Some(options::describe(call.arguments_from(2), limit)?) } else { None };
    let is_long = described.as_ref().is_none_or(|Reservation { spec, .. }| {
        spec.bytes() > background::SMALL || spec.bytes_of_functions() > background::FEW_FUNCTIONS
    });
    background::plan(call, is_long, move |worker| {
        let reserved = match described {
            Some(reserved) => reserved,
            None => worker.unlocked(|call| options::describe(call.arguments_from(2), limit))?,
        };
        let filter = make(worker, &reserved.spec)?;
        worker.locked(|call| put(call, &reserved, filter))
    })
}

fn expect_absent(key: &Key<'_>) -> Outcome {
    let Some(value) = key.value() else { return Ok(()) };
    value.filter()?;
    key_exists()
}

/// Returns bytes that the filter may come to, if that is bounded; else those that it begins with.
fn bytes(description: &FilterSpec) -> u64 {
    description.most_bytes().unwrap_or_else(|| description.bytes())
}

/// Allocates the filter, if it is allowed.
fn make(worker: &Worker<'_>, description: &FilterSpec) -> Outcome<Filter<'static>> {
    let functions = description.bytes_of_functions();
    // What keeps its items begins with none of them.
    let begins_with = if description.bytes() == 0 { bytes(description) } else { description.bytes() };
    // What is bounded is held against the limit as it will be one day, rather than failing then.
    let need = Need {
        what: "the filter",
        total: bytes(description).saturating_add(functions),
        more: begins_with.saturating_add(functions),
        passing: 0,
    };
    worker.locked(|call| expect_absent(&call.write_during(1)?))?;
    let floor = worker.allow(need)?;
    let spec = description.clone();
    let filter = worker.make(need.what, move || {
        Filter::new_within(&spec, WorkLimit::Unlimited).map_err(|error| memory::refused(need.what, error))
    })?;
    drop(floor);
    if worker.is_thread() && functions > background::FEW_FUNCTIONS {
        // Now rather than at the first item, which would wait.
        drop(filter.hasher());
    }
    Ok(filter)
}

/// Puts a filter into a key, here and on replicas. Its time begins now.
fn set(call: &Call<'_>, key: &mut Key<'_>, reserved: &Reservation, filter: Filter<'static>) -> Outcome {
    let window = reserved.lasts.map(|lasts| Window::begin(lasts, &filter)).transpose()?;
    key.set(Value::of(filter).lasting(window));
    call.replicate_as(RESERVE.name, key, c"DESCRIPTION", &reserved.spec.encode());
    if let Some(Window { lasts, next }) = window {
        call.replicate_window(WINDOW.name, key, &seconds(lasts), next, 0);
    }
    Ok(())
}

fn put(call: &Call<'_>, reserved: &Reservation, filter: Filter<'static>) -> Outcome {
    let mut key = call.write_during(1)?;
    expect_absent(&key)?;
    let bytes = if filter.bytes() == 0 { bytes(&reserved.spec) } else { filter.bytes() };
    set(call, &mut key, reserved, filter)?;
    key.changed(c"near.reserve");

    let mut promise = fields::promise(&reserved.spec);
    promise.extend(fields::window_field(key.value().and_then(|value| value.window)));
    promise.push(("bytes", fields::Field::Count(bytes)));
    fields::reply(call, &promise);
    Ok(())
}
