//! `NEAR.MERGE`: all items of several filters in one.
//!
//! Large filters are merged on another thread, as they were when the command came. Meanwhile they answer questions; what would
//! change one of them waits, so that replicas, which merge when they are told to, come to the same filter.

use std::sync::Arc;

use super::docs::{Argument, Command, Keys, entry};
use super::expect;
use crate::background::{self, Ending, Job};
use crate::data_type::Stored;
use crate::fill::{Before, Change};
use crate::items::shown;
use crate::memory::{self, Floor, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Call, Key};
use crate::value::{Value, bytes_to_copy, weight};
use crate::window::{Window, move_on};
use nearset::Filter;
use nearset::spec::SpecError;
use redis_module::raw;

pub const MERGE: Command = Command {
    name: c"NEAR.MERGE",
    entry: entry!(merge),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Takes the items of filters of equal spec into one, which is made if there is none",
    complexity: c"O(bytes of all filters), on another thread where they are large",
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
    let mut opened = open_sources(call)?;
    for source in &mut opened {
        if let Some(value) = source.as_mut().and_then(Key::value_mut) {
            value.wait(call)?;
        }
    }
    // Windows are matched from the newest generation, so that none may lag behind.
    for key in std::iter::once(&mut destination).chain(opened.iter_mut().flatten()) {
        move_on(call, key)?;
    }
    let sources = opened.iter().map(expect).collect::<Outcome<Vec<_>>>()?;
    let target = destination.value_mut().map(Value::filter_mut).transpose()?;
    let Some((first, rest)) = sources.split_first() else {
        let Some(_) = target else { return Err(super::no_key()) };
        call.ok();
        return Ok(());
    };
    let bytes = target.as_ref().map_or(0, |filter| filter.bytes());
    let bytes = sources.iter().map(|source| source.bytes()).fold(bytes, u64::saturating_add);
    if bytes > background::SMALL && call.can_wait() {
        let floor = match &target {
            Some(filter) => check(call, filter, &sources, 0, 0)?,
            None => check(call, first, rest, weight(first), 0)?,
        };
        return merge_later(call, floor, &mut destination, &mut opened);
    }
    let change = match target {
        Some(filter) => {
            let floor = check(call, filter, &sources, 0, bytes_to_copy(filter, u64::MAX))?;
            let before = Before::of(filter);
            merge_all(filter, &sources)?;
            drop(floor);
            before.and_now(filter, 0)
        }
        None => {
            let floor = check(call, first, rest, weight(first), 0)?;
            let first = opened.first_mut().and_then(|key| key.as_mut()?.value_mut()?.filter.as_mut());
            let Some(shared) = first.map(Filter::share) else { return Err(super::no_key()) };
            let mut filter = shared.try_into_owned().map_err(no_room)?;
            let sources = opened.iter().map(expect).collect::<Outcome<Vec<_>>>()?;
            merge_all(&mut filter, &sources[1..])?;
            drop(floor);
            let change = Before::NOTHING.and_now(&filter, 0);
            destination.set(Value::of(filter).lasting(window_of(&opened)));
            change
        }
    };
    merged(call, &destination, change);
    call.ok();
    Ok(())
}

/// Returns how long a filter remembers that is made of these: as the first one does.
fn window_of(sources: &[Option<Key<'_>>]) -> Option<Window> {
    sources.first()?.as_ref()?.value()?.window
}

/// Opens all sources but the destination, which has all its own items already.
fn open_sources<'c>(call: &'c Call<'_>) -> Outcome<Vec<Option<Key<'c>>>> {
    let mut opened = Vec::new();
    for argument in 2..call.count() {
        let source = call.read(argument)?;
        if source.is_none() {
            let name = shown(call.argument(argument));
            return refuse!("the key {name} does not exist: make it with NEAR.RESERVE");
        }
        if call.argument(argument) != call.argument(1) {
            opened.push(source);
        }
    }
    Ok(opened)
}

/// Merges filters as they are now on another thread, and holds up what would change them.
fn merge_later(call: &Call<'_>, floor: Floor, destination: &mut Key<'_>, sources: &mut [Option<Key<'_>>]) -> Outcome {
    // Beside the work, so that it ends where there is not even room to begin.
    let ending = Ending(Job::begin());
    let values =
        std::iter::once(destination.value_mut()).chain(sources.iter_mut().map(|key| key.as_mut()?.value_mut()));
    let mut filters = Vec::new();
    for value in values.flatten() {
        value.job = Some(Arc::clone(&ending.0));
        filters.extend(value.filter.as_mut().map(Filter::share));
    }
    // A mark of a job that is over means nothing, so none has to be taken away.
    background::work(call, true, move |worker| {
        let merged = merge_shared(filters);
        drop(floor);
        if matches!(merged, Err(Refusal::Memory(_))) {
            // What was deleted may still share its tables.
            background::await_discarded();
        }
        let old = worker.locked(|call| put(call, &ending.0, merged))?;
        drop(ending);
        worker.unlocked(|call| call.ok());
        drop(old);
        Ok(())
    })
}

/// Merges all filters after the first into a copy of it.
fn merge_shared(mut filters: Vec<Filter<'static>>) -> Outcome<Filter<'static>> {
    let rest = filters.split_off(1);
    let Some(first) = filters.pop() else { return Err(super::no_key()) };
    let mut merged = first.try_into_owned().map_err(no_room)?;
    merge_all(&mut merged, &rest.iter().collect::<Vec<_>>())?;
    Ok(merged)
}

/// Puts the merged filter into its place, if nothing happened to any of them in between; returns what was there before. Where there
/// was no memory for another one, the filter that is there takes in the others, which takes none unless copies of it share its tables.
fn put(call: &Call<'_>, job: &Arc<Job>, made: Outcome<Filter<'static>>) -> Outcome<Option<Filter<'static>>> {
    let is_marked = |value: Option<&Value>| {
        value.is_some_and(|value| value.job.as_ref().is_some_and(|found| Arc::ptr_eq(found, job)))
    };
    let mut destination = call.write_during(1)?;
    let is_new = destination.value().is_none();
    let sources = open_sources(call)?;
    let mut all = sources.iter().map(|source| source.as_ref().and_then(Key::value));
    if !(is_new || is_marked(destination.value())) || !all.all(is_marked) {
        return refuse!("one of the keys was changed while they were merged: send the command again");
    }
    let before = destination.value().and_then(|value| value.filter.as_ref()).map_or(Before::NOTHING, Before::of);
    let old = match (destination.value_mut(), made) {
        (Some(value), Ok(merged)) => value.filter.replace(merged),
        (Some(value), Err(refusal @ Refusal::Memory(_))) => {
            let filter = value.filter_mut()?;
            if bytes_to_copy(filter, u64::MAX) > 0 {
                return Err(refusal);
            }
            merge_all(filter, &sources.iter().map(expect).collect::<Outcome<Vec<_>>>()?)?;
            None
        }
        (None, Ok(merged)) => {
            destination.set(Value::of(merged).lasting(window_of(&sources)));
            None
        }
        (_, Err(refusal)) => return Err(refusal),
    };
    let now = destination.value().map_or_else(|| Err(super::no_key()), Value::filter)?;
    let change = before.and_now(now, 0);
    merged(call, &destination, change);
    Ok(old)
}

/// That nothing will fail half way: the filters fit together, and what they come to is allowed, `copied` bytes of it for a new
/// filter and `passing` for a moment.
fn check(
    call: &Call<'_>,
    filter: &Filter<'_>,
    sources: &[&Filter<'static>],
    copied: u64,
    passing: u64,
) -> Outcome<Floor> {
    let mut room = 0u64;
    // A filter on no terms takes on those of the first source that has some, which all others are then held to.
    let on_terms = sources.iter().copied().find(|source| source.spec().terms().is_some());
    for source in sources {
        on_terms.map_or(Ok(0), |first| first.room_to_merge(source)).map_err(Refusal::because)?;
        room = room.saturating_add(filter.room_to_merge(source).map_err(Refusal::because)?);
    }
    let need =
        Need { what: MERGED, total: weight(filter).saturating_add(room), more: copied.saturating_add(room), passing };
    memory::allow(call, need)
}

fn no_room(error: SpecError) -> Refusal {
    memory::refused(MERGED, error)
}

fn merge_all(filter: &mut Filter<'static>, sources: &[&Filter<'static>]) -> Outcome {
    filter.reserve_to_merge(sources).map_err(no_room)?;
    sources.iter().try_for_each(|source| filter.merge(source)).map_err(Refusal::because)
}

fn merged(call: &Call<'_>, key: &Key<'_>, change: Change) {
    call.replicate();
    key.changed(c"near.merge");
    change.publish(key);
}
