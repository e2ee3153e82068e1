//! The commands: one module per group, each command with what `COMMAND DOCS` says of it.

mod band_keys;
mod docs;
mod index;
mod items;
mod merge;
#[allow(unsafe_code)]
mod register;
mod reserve;
mod tell;
mod transfer;
mod window;

pub use register::register;
pub use window::WINDOW;

use crate::background;
use crate::refusal::{Outcome, Refusal};
use crate::server::{Call, Key};
use crate::value::Value;
use docs::Command;
use nearset::Filter;

const COMMANDS: [&Command; 25] = [
    &reserve::RESERVE,
    &reserve::INSERT,
    &items::ADD,
    &items::MADD,
    &items::EXISTS,
    &items::MEXISTS,
    &items::HITS,
    &band_keys::ADDKEYS,
    &band_keys::EXISTSKEYS,
    &tell::CARD,
    &tell::INFO,
    &tell::SPEC,
    &merge::MERGE,
    &window::WINDOW,
    &transfer::DUMP,
    &transfer::LOAD,
    &index::RESERVE,
    &index::ADD,
    &index::SEARCH,
    &index::GET,
    &index::REM,
    &index::CARD,
    &index::INFO,
    &index::LOAD,
    &index::DUMP,
];

/// Returns the filter of a key that must have one.
fn expect<'k>(key: &'k Option<Key<'_>>) -> Outcome<&'k Filter<'static>> {
    match key.as_ref().and_then(Key::value) {
        Some(value) => value.filter(),
        None => Err(no_key()),
    }
}

/// Returns the filter of a key that must have one, to be changed.
fn expect_mut<'k>(key: &'k mut Key<'_>) -> Outcome<&'k mut Filter<'static>> {
    key.value_mut().map_or_else(|| Err(no_key()), Value::filter_mut)
}

/// Lets a command that hashes items wait until the filter's functions are drawn, where that takes long.
fn expect_functions(call: &Call<'_>, key: Option<&mut Key<'_>>) -> Outcome {
    let Some(value) = key.and_then(Key::value_mut) else { return Ok(()) };
    let Some(filter) = value.filter.as_mut() else { return Ok(()) };
    let bytes = filter.bytes_to_prepare(0);
    background::await_functions(call, bytes, &mut value.drawing, || {
        let filter = filter.share();
        move || drop(filter.hasher())
    })
}

pub fn no_key() -> Refusal {
    Refusal::because("the key does not exist: make it with NEAR.RESERVE")
}
