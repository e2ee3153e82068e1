//! `NEAR.MERGE`: all items of several filters in one.

use super::docs::{Argument, Command, Keys, entry};
use super::expect;
use crate::items::shown;
use crate::memory::{self, Floor, Need};
use crate::refusal::{Outcome, Refusal};
use crate::server::{Call, Key};
use crate::value::{Value, weight};
use nearset::Filter;
use nearset::spec::SpecError;
use redis_module::raw;

pub const MERGE: Command = Command {
    name: c"NEAR.MERGE",
    entry: entry!(merge),
    flags: c"write deny-oom",
    summary: c"Takes the items of filters of equal spec into one, which is made if there is none",
    complexity: c"O(bytes of all filters)",
    arity: -3,
    keys: &[
        Keys::CHANGE,
        Keys { first: 2, last: -1, flags: raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS },
    ],
    arguments: &[Argument::key(c"destination", 0), Argument::key(c"source", 1).several()],
};

/// What is made, as errors name it.
const MERGED: &str = "the merged filter";

fn merge(call: &Call<'_>) -> Outcome {
    let mut destination = call.write(1)?;
    let mut opened = Vec::new();
    for argument in 2..call.count() {
        let source = call.read(argument)?;
        if source.is_none() {
            let name = shown(call.argument(argument));
            return Err(Refusal::Because(format!("the key {name} does not exist: make it with NEAR.RESERVE")));
        }
        // A filter has all its own items already.
        if call.argument(argument) != call.argument(1) {
            opened.push(source);
        }
    }
    let sources = opened.iter().map(expect).collect::<Outcome<Vec<_>>>()?;
    match destination.value_mut().map(Value::filter_mut).transpose()? {
        Some(filter) => {
            let Some(_) = sources.first() else {
                call.ok();
                return Ok(());
            };
            let floor = check(call, filter, &sources, 0)?;
            merge_all(filter, &sources)?;
            drop(floor);
        }
        None => {
            let Some((first, rest)) = sources.split_first() else { return Err(super::no_key()) };
            let floor = check(call, first, rest, weight(first))?;
            let mut filter = first.try_clone().map_err(no_room)?;
            merge_all(&mut filter, rest)?;
            drop(floor);
            destination.set(Value::of(filter));
        }
    }
    merged(call, &destination);
    Ok(())
}

/// That nothing will fail half way: the filters fit together, and what they come to is allowed, `copied` bytes of it for a new
/// filter.
fn check(call: &Call<'_>, filter: &Filter<'_>, sources: &[&Filter<'static>], copied: u64) -> Outcome<Floor> {
    let mut room = 0u64;
    // A filter on no terms takes on those of the first source that has some, which all others are then held to.
    let on_terms = sources.iter().copied().find(|source| source.spec().terms().is_some());
    for source in sources {
        on_terms.map_or(Ok(0), |first| first.room_to_merge(source)).map_err(Refusal::because)?;
        room = room.saturating_add(filter.room_to_merge(source).map_err(Refusal::because)?);
    }
    let need = Need {
        what: MERGED,
        total: weight(filter).saturating_add(room),
        more: copied.saturating_add(room),
        passing: 0,
    };
    memory::allow(call, need)
}

fn no_room(error: SpecError) -> Refusal {
    memory::refused(MERGED, error)
}

fn merge_all(filter: &mut Filter<'static>, sources: &[&Filter<'static>]) -> Outcome {
    filter.reserve_to_merge(sources).map_err(no_room)?;
    sources.iter().try_for_each(|source| filter.merge(source)).map_err(Refusal::because)
}

fn merged(call: &Call<'_>, key: &Key<'_>) {
    call.replicate();
    key.changed(c"near.merge");
    call.ok();
}
