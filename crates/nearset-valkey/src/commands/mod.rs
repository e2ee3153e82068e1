//! The commands: one module a group, each command with what `COMMAND DOCS` says of it.

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

use crate::config;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Call, Key};
use crate::value::Value;
use docs::Command;
use nearset::Generations;

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

/// That a key may come to so many bytes, if it is a client who wants it.
fn hold_against_limit(call: &Call<'_>, bytes: u64, what: &str) -> Outcome {
    let limit = config::memory_limit();
    if bytes <= limit || !call.limits_apply() {
        return Ok(());
    }
    refuse!("{what} takes {bytes} bytes, and near.memory-limit allows {limit}: raise it, or ask for less")
}

/// The filter of a key that must have one.
fn expect<'k>(key: &'k Option<Key<'_>>) -> Outcome<&'k Generations<'static>> {
    match key.as_ref().and_then(Key::value) {
        Some(value) => value.filter(),
        None => Err(no_key()),
    }
}

/// The filter of a key that must have one, to be changed.
fn expect_mut<'k>(key: &'k mut Key<'_>) -> Outcome<&'k mut Generations<'static>> {
    key.value_mut().map_or_else(|| Err(no_key()), Value::filter_mut)
}

fn no_key() -> Refusal {
    Refusal::because("the key does not exist: make it with NEAR.RESERVE")
}
