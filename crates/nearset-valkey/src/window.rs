//! Filters that forget by time: a generation ends when its time is over, if it is not full before.
//!
//! Claim: a window of `g` generations that lasts `t` knows what came in the last `t`, unless more came than it is made for, and nothing
//! that is older than `t · g / (g - 1)`.
//! Invariant: who ends a generation is the primary, when a client writes. It sends on how many ended and when the next one will, so that
//! replicas and files come to the same filter without looking at a clock. Questions only hide what is over by the clock of the server
//! that is asked.

use nearset::Filter;

use crate::commands::{WINDOW, no_key};
use crate::fill::Change;
use crate::memory::{self, Need};
use crate::refusal::{Outcome, refuse};
use crate::server::{Call, Key, now};
use crate::value::{Value, weight};

/// Generations of a window of which nothing but the time is said: one is filled, and the others last the time together.
pub const USUAL_GENERATIONS: u32 = 5;

/// The longest that a window lasts: a hundred years.
const LONGEST: u64 = 100 * 365 * 24 * 3600 * 1000;

/// How long a filter remembers, and when its newest generation ends. Milliseconds, the latter since 1970.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub lasts: u64,
    pub next: u64,
}

/// Returns milliseconds from seconds, which may have a fraction.
pub fn milliseconds(seconds: f64) -> Result<u64, String> {
    let milliseconds = (1000.0 * seconds).round();
    if (1.0..=LONGEST as f64).contains(&milliseconds) {
        return Ok(milliseconds as u64);
    }
    Err(format!("{seconds} seconds: it must be from 0.001 to {}", LONGEST / 1000))
}

/// Returns seconds as [`milliseconds`] reads them, without a loss.
pub fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

impl Window {
    /// A window whose newest generation begins now.
    pub fn begin(lasts: u64, filter: &Filter<'_>) -> Outcome<Self> {
        expect_window(filter)?;
        let mut window = Self { lasts, next: now() };
        window.next = window.next.saturating_add(window.step(filter));
        Ok(window)
    }

    /// Whether the numbers are such as a window has.
    pub fn is_possible(self) -> bool {
        (1..=LONGEST).contains(&self.lasts) && self.next <= i64::MAX as u64
    }

    /// How long a generation takes items.
    fn step(self, filter: &Filter<'_>) -> u64 {
        let full = filter.window().saturating_sub(1).max(1) as u64;
        self.lasts.div_ceil(full).max(1)
    }

    /// How many generations have ended by now.
    fn ended(self, filter: &Filter<'_>, now: u64) -> u64 {
        now.checked_sub(self.next).map_or(0, |over| 1 + over / self.step(filter))
    }
}

/// Checks that a filter forgets, and keeps a full generation beside the one that is filled.
pub fn expect_window(filter: &Filter<'_>) -> Outcome {
    match filter.window() {
        0 => refuse!("the filter forgets nothing: reserve it with EXPIRE-AFTER"),
        1 => refuse!("the filter has one generation, and would forget what has just come: reserve it with 2 or more"),
        _ => Ok(()),
    }
}

/// Ends the generations whose time is over, here and on replicas, before a client's command changes the filter of a key.
pub fn move_on(call: &Call<'_>, key: &mut Key<'_>) -> Outcome {
    if !call.limits_apply() || call.is_replica() {
        return Ok(());
    }
    let Some(Value { filter: Some(filter), window: Some(window), .. }) = key.value_mut() else { return Ok(()) };
    let ended = window.ended(filter, now());
    if ended == 0 {
        return Ok(());
    }
    let next = window.next.saturating_add(ended.saturating_mul(window.step(filter)));
    let (generations, lasts) = (usize::try_from(ended).unwrap_or(usize::MAX), window.lasts);
    let change = age(call, filter, generations)?;
    window.next = next;
    let generations = generations.min(filter.window());
    call.replicate_window(WINDOW.name, key, &seconds(lasts), next, generations as u64);
    told(key, change);
    Ok(())
}

/// Ends generations, if there is memory for those that begin.
pub fn age(call: &Call<'_>, filter: &mut Filter<'static>, generations: usize) -> Outcome<Change> {
    const GROWN: &str = "the window, grown,";
    let more = filter.room_to_age(generations);
    let total = weight(filter).saturating_add(more);
    let floor = memory::allow(call, Need { what: GROWN, total, more, passing: 0 })?;
    let (grown, forgotten) = filter.age(generations).map_err(|error| memory::refused(GROWN, error))?;
    drop(floor);
    Ok(Change::aged(grown as u64, forgotten as u64))
}

/// Tells what became of a key that time has passed for.
pub fn told(key: &Key<'_>, change: Change) {
    key.signal();
    change.publish(key);
}

/// Returns the filter of a key that must have one, which answers without what is over by now.
pub fn known<'k>(key: &'k mut Option<Key<'_>>) -> Outcome<&'k Filter<'static>> {
    let value = key.as_mut().and_then(Key::value_mut).ok_or_else(no_key)?;
    value.hide_old();
    value.filter()
}

impl Value {
    /// Has the filter answer without what is over by now.
    pub fn hide_old(&mut self) {
        if let (Some(filter), Some(window)) = (&mut self.filter, self.window) {
            filter.hide(usize::try_from(window.ended(filter, now())).unwrap_or(usize::MAX));
        }
    }
}
