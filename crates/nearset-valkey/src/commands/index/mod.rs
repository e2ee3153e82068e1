//! `NEAR.INDEX.*`: which items are near, and how near.

mod dump;
mod items;
mod load;
mod reserve;
mod tell;

pub use dump::DUMP;
pub use items::{ADD, GET, REM, SEARCH};
pub use load::LOAD;
pub use reserve::RESERVE;
pub use tell::{CARD, INFO};

use crate::index::IndexValue;
use crate::refusal::{Outcome, Refusal};
use crate::server::Key;

type IndexKey<'c> = Key<'c, IndexValue>;

/// Returns the index of a key that must have one.
fn expect<'k>(key: &'k Option<IndexKey<'_>>) -> Outcome<&'k IndexValue> {
    key.as_ref().and_then(Key::value).ok_or_else(no_key)
}

/// Returns the index of a key that must have one, to be changed.
fn expect_mut<'k>(key: &'k mut IndexKey<'_>) -> Outcome<&'k mut IndexValue> {
    key.value_mut().ok_or_else(no_key)
}

fn no_key() -> Refusal {
    Refusal::because("the key does not exist: make it with NEAR.INDEX.RESERVE")
}
