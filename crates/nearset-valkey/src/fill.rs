//! Filters as they fill: what is counted, and published as an event of the key, when one is nearly full, grows or forgets.

use nearset::{Filter, Progress};

use crate::server::Key;
use crate::stats;

/// A filter is nearly full from this part of its capacity on.
const NEARLY_FULL: f64 = 0.8;

/// How far a filter had come before items were added; `None` where nothing is told of that.
pub struct Before(Option<Progress>);

/// What became of a filter while items were added.
#[derive(Clone, Copy)]
pub struct Change {
    /// Whether it came to be nearly full, and then grows or refuses items rather than forgetting some.
    pub is_nearly_full: bool,
    /// Generations that were added.
    pub grown: u64,
    /// Generations that were forgotten.
    pub forgotten: u64,
}

impl Change {
    /// Returns that generations were added and forgotten by time, and counts it.
    pub fn aged(grown: u64, forgotten: u64) -> Self {
        Self { is_nearly_full: false, grown, forgotten }.counted()
    }

    fn counted(self) -> Self {
        stats::NEARLY_FULL.add(self.is_nearly_full.into());
        stats::GROWN.add(self.grown);
        stats::FORGOTTEN.add(self.forgotten);
        self
    }

    /// Publishes it, after the change itself.
    pub fn publish(self, key: &Key<'_>) {
        let events = [
            (c"near.nearly-full", self.is_nearly_full),
            (c"near.grow", self.grown > 0),
            (c"near.forget", self.forgotten > 0),
        ];
        events.into_iter().filter(|(_, happened)| *happened).for_each(|(event, _)| key.publish(event));
    }
}

impl Before {
    /// There was no filter.
    pub const NOTHING: Self = Self(None);

    pub fn of(filter: &Filter<'_>) -> Self {
        Self(filter.progress())
    }

    /// Returns what became of the filter by so many items, and counts it.
    pub fn and_now(&self, filter: &Filter<'_>, items: usize) -> Change {
        self.change(filter.progress(), items as u64).counted()
    }

    fn change(&self, now: Option<Progress>, items: u64) -> Change {
        let Some(now) = now else { return Change { is_nearly_full: false, grown: 0, forgotten: 0 } };
        let before = self.0.unwrap_or(Progress { items: 0, fill: 0.0, ..now });
        let grown = now.generations.saturating_sub(before.generations) as u64;
        // What is not in the newest generation now filled one or more that ended; the first one may have been overfull.
        let over = before.items.saturating_add(items).saturating_sub(now.items);
        let first = before.items.max(now.capacity);
        let ended = if over < first { 0 } else { 1 + (over - first) / now.capacity.max(1) };
        let crossed = before.fill < NEARLY_FULL && (now.fill >= NEARLY_FULL || grown > 0);
        Change {
            is_nearly_full: now.ends_by_load && crossed,
            grown,
            forgotten: if now.ends_by_load { 0 } else { ended.saturating_sub(grown) },
        }
    }
}
