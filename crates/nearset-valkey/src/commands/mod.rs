//! The commands: one module per group, each command with what `COMMAND DOCS` says of it.

mod band_keys;
mod docs;
mod items;
mod merge;
#[allow(unsafe_code)]
mod register;
mod reserve;
mod tell;
mod transfer;

pub use register::register;

use crate::refusal::{Outcome, Refusal};
use crate::server::Key;
use crate::value::Value;
use docs::Command;
use nearset::Filter;

const COMMANDS: [&Command; 14] = [
    &reserve::RESERVE,
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
    &transfer::DUMP,
    &transfer::LOAD,
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

fn no_key() -> Refusal {
    Refusal::because("the key does not exist: make it with NEAR.RESERVE")
}
