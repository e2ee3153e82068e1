//! `NEAR.INDEX.RESERVE`: an index for items of a metric, and up to where they are near.

use nearset::Index;
use nearset::index::NamedIndex;

use super::IndexKey;
use super::tell::told;
use crate::background::{self, Worker};
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::commands::reserve::{key_exists, wish};
use crate::index::IndexValue;
use crate::memory::Need;
use crate::refusal::Outcome;
use crate::server::Call;
use crate::{fields, options};

/// What is wanted of an index.
const GOAL: &[Argument] = &[
    wish::METRIC,
    wish::NEAR,
    wish::FAR,
    wish::CAPACITY.optional(),
    wish::MAXFN,
    wish::LENGTH,
    wish::SHINGLE,
    wish::SEED,
    wish::MINIMISE,
    wish::UNRELATED,
];

pub const RESERVE: Command = Command {
    name: c"NEAR.INDEX.RESERVE",
    entry: entry!(reserve),
    flags: c"write deny-oom",
    is_trusted: false,
    summary:
        c"Makes an index from what is near and, for other items than hashes, how many are expected, and says what it is",
    complexity: c"O(1), and planning, which takes up to seconds where near and far are close, on another thread",
    arity: -4,
    keys: &[Keys::CREATE],
    arguments: &[
        Argument::KEY,
        Argument::one_of(
            c"index",
            &[
                Argument::block(c"goal", GOAL),
                Argument::block(
                    c"described",
                    &[
                        Argument::text(c"description").after(c"DESCRIPTION"),
                        Argument::real(c"near").after(c"NEAR").optional(),
                    ],
                ),
            ],
        ),
    ],
};

fn reserve(call: &Call<'_>) -> Outcome {
    expect_absent(&call.write(1)?)?;
    let limit = call.work_limit();
    if call.argument(2).eq_ignore_ascii_case(b"DESCRIPTION") {
        let passing = 4 * call.argument(3).len() as u64;
        Worker::Command(call).allow(Need { what: "the index", total: passing / 4, more: 0, passing }).map(drop)?;
        let (index, near) = options::describe_index(call.arguments_from(2), limit)?;
        return put(call, NamedIndex::from(index), near);
    }
    background::plan(call, true, move |worker| {
        let (index, near) = worker.unlocked(|call| options::describe_index(call.arguments_from(2), limit))?;
        let index = prepared(worker, index)?;
        worker.locked(|call| put(call, index, near))
    })
}

/// Draws the functions now rather than at the first item, which would wait.
fn prepared(worker: &Worker<'_>, index: Index<'static>) -> Outcome<NamedIndex> {
    let index = NamedIndex::from(index);
    let functions = index.state().bytes_of_functions;
    let floor = worker.allow(Need { what: "the index", total: functions, more: functions, passing: 0 })?;
    drop(floor);
    if worker.is_thread() {
        index.prepare();
    }
    Ok(index)
}

fn expect_absent(key: &IndexKey<'_>) -> Outcome {
    if key.value().is_none() { Ok(()) } else { key_exists() }
}

fn put(call: &Call<'_>, index: NamedIndex, near: Option<f64>) -> Outcome {
    let mut key: IndexKey<'_> = call.write_during(1)?;
    expect_absent(&key)?;
    let value = IndexValue::of(index, near);
    let (description, fields) = (value.description(), told(&value, None));
    // A description may bring items.
    let is_empty = value.index().state().items == 0;
    key.set(value);
    if is_empty {
        call.replicate_described(RESERVE.name, &key, &description, near);
    } else {
        call.replicate();
    }
    key.changed(c"near.index.reserve");
    fields::reply(call, &fields);
    Ok(())
}
