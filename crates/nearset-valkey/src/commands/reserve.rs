//! `NEAR.RESERVE`: plans a filter from what is wanted of it, and says what it promises.

use nearset::Filter;
use nearset::family::WorkLimit;

use super::docs::{Argument, Command, Keys, entry};
use crate::memory::{self, Need};
use crate::refusal::{Outcome, refuse};
use crate::server::Call;
use crate::value::Value;
use crate::{fields, options};

pub const RESERVE: Command = Command {
    name: c"NEAR.RESERVE",
    entry: entry!(reserve),
    flags: c"write deny-oom",
    summary: c"Makes a filter from what is near, what is far, how many items are expected and which errors may be made, and says what it promises",
    complexity: c"O(bytes of the filter); planning takes up to seconds where near and far are close, unless the description of a plan is given",
    arity: -4,
    keys: &[Keys::CREATE],
    arguments: &[
        Argument::KEY,
        Argument::one_of(
            c"filter",
            &[
                Argument::block(
                    c"goal",
                    &[
                        Argument::text(c"metric").after(c"METRIC"),
                        Argument::real(c"near").after(c"NEAR"),
                        Argument::real(c"far").after(c"FAR").optional(),
                        Argument::whole(c"capacity").after(c"CAPACITY"),
                        Argument::real(c"max-false-negative").after(c"MAXFN").optional(),
                        Argument::real(c"max-false-positive").after(c"MAXFP").optional(),
                        Argument::whole(c"length").after(c"LENGTH").optional(),
                        Argument::text(c"shingle").after(c"SHINGLE").optional(),
                        Argument::text(c"seed").after(c"SEED").optional(),
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
                                            &[
                                                Argument::word(c"items", c"ITEMS"),
                                                Argument::word(c"generations", c"GENERATIONS"),
                                            ],
                                        )
                                        .optional(),
                                    ],
                                ),
                            ],
                        )
                        .optional(),
                        Argument::one_of(
                            c"minimise",
                            &[Argument::word(c"bytes", c"BYTES"), Argument::word(c"time", c"TIME")],
                        )
                        .after(c"MINIMISE")
                        .optional(),
                        Argument::one_of(
                            c"unrelated",
                            &[
                                Argument::real(c"background").after(c"BACKGROUND"),
                                Argument::word(c"worst-case", c"WORSTCASE"),
                            ],
                        )
                        .optional(),
                    ],
                ),
                Argument::text(c"description").after(c"DESCRIPTION"),
            ],
        ),
    ],
};

fn reserve(call: &Call<'_>) -> Outcome {
    let mut key = call.write(1)?;
    if let Some(value) = key.value() {
        value.filter()?;
        return refuse!("the key exists: DEL it first, or take another name");
    }
    let description = options::describe(call.arguments_from(2), call.work_limit())?;
    // What is bounded is held against the limit as it will be one day, rather than failing then.
    let bytes = description.most_bytes().unwrap_or_else(|| description.bytes());
    let functions = description.bytes_of_functions();
    let floor = memory::allow(
        call,
        Need {
            what: "the filter",
            total: bytes.saturating_add(functions),
            more: description.bytes().saturating_add(functions),
            passing: 0,
        },
    )?;
    let filter =
        Filter::new_within(&description, WorkLimit::Unlimited).map_err(|error| memory::refused("the filter", error))?;
    drop(floor);
    let bytes = filter.bytes();
    key.set(Value::of(filter));
    call.replicate_as(RESERVE.name, &key, c"DESCRIPTION", &description.encode());
    key.changed(c"near.reserve");

    let mut promise = fields::promise(&description);
    promise.push(("bytes", fields::Field::Count(bytes)));
    fields::reply(call, &promise);
    Ok(())
}
