//! Room for what is large, where memory may be refused: what a server makes beside its other work must not end it.

use std::collections::TryReserveError;

/// An empty vector with room for so many.
pub(crate) fn of<T>(count: usize) -> Result<Vec<T>, TryReserveError> {
    let mut room = Vec::new();
    room.try_reserve_exact(count)?;
    Ok(room)
}

/// What was made, by who can't go on without it.
///
/// # Panics
/// If there was no memory for it.
pub(crate) fn expect<T>(made: Result<T, TryReserveError>) -> T {
    made.unwrap_or_else(|refused| panic!("{refused}"))
}
