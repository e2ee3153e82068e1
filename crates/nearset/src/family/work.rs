//! The most that hashing and looking up one item costs, known before anything is hashed.
//!
//! Claim: an operation stands for about a nanosecond of one core, whatever the family or structure. A spec's figure is
//! an upper bound to within a small factor: `cargo run -p nearset --example work` prints the measured time beside it,
//! and the tests of the file format hold every operation on a mutated file against it.
//! Invariant: the work follows from the spec alone. Whatever grows with the number of stored items (a scan, an index's
//! candidates) is not included, since a file has to hold those items.
//!
//! A spec of a few bytes can ask for any number of functions or combinations, and a file often comes from a stranger.
//! So specs whose work is out of proportion to the items that they are for are refused: see [`WorkLimit`].

use crate::error::{DRAWING, EACH_ITEM, SpecError};

/// The most that a spec asks for, in nominal operations of about a nanosecond each.
///
/// The planner ranks filters by what a query usually takes, which is [`plan::Work`](crate::plan::Work).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkBound {
    /// Drawing the functions: once, when the first item is hashed.
    pub draw: u64,
    /// Hashing an item, of the most expensive size where sizes vary. The cost of each element comes on top of it.
    pub hash: u64,
    /// Reading one more element of an item, or byte of a text, where sizes vary.
    pub element: u64,
    /// Looking up a hashed item, in all tables and with every stand-in that probing can try.
    pub look_up: u64,
    /// Bytes per item; 0 where sizes vary.
    pub item_bytes: u64,
}

/// The number of operations that any item may take: about a seventh of a second. Planned filters mostly take less than
/// a thousandth of it. Exact near filters that look up 2^24 keys, and 2^16 bands in 1024 generations, come near the
/// limit.
const MOST_WORK: u64 = 150_000_000;

/// The number of operations that each byte of an item may add. A vector of any length can then be hashed by some 500
/// rows; shorter ones, by [`MOST_WORK`], by many more.
const MOST_WORK_PER_BYTE: u64 = 1 << 7;

/// How many items' work drawing may take: a random number costs some 40 times as much as its use, but is drawn once.
/// That is 1.2 s, or 43 million Gaussian numbers, 171 MB of them; 65,536 components may be projected on 800 rows.
const ITEMS_PER_DRAW: u64 = 8;

/// How much work a spec may ask for.
///
/// The usual limit is about a seventh of a second per item, longer for items of megabytes, and 8 times as much for
/// drawing the functions once. Planned filters stay within it, except those of very long vectors. Lift it for specs and
/// files from trusted sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WorkLimit {
    /// Refuses what takes too long for the items that it is for.
    #[default]
    Usual,
    /// Refuses nothing.
    Unlimited,
}

impl WorkLimit {
    /// Checks that a spec may ask for this much work.
    ///
    /// # Errors
    /// If it is too much.
    pub(crate) fn check(self, work: &WorkBound) -> Result<(), SpecError> {
        if self == WorkLimit::Unlimited {
            return Ok(());
        }
        let most = MOST_WORK.saturating_add(MOST_WORK_PER_BYTE.saturating_mul(work.item_bytes));
        let most_draw = most.saturating_mul(ITEMS_PER_DRAW);
        if work.per_item() > most {
            return Err(SpecError::Work { what: EACH_ITEM, found: work.per_item(), most });
        }
        if work.draw > most_draw {
            return Err(SpecError::Work { what: DRAWING, found: work.draw, most: most_draw });
        }
        Ok(())
    }
}

impl WorkBound {
    /// The work of what cannot be done at all.
    pub(crate) const ENDLESS: Self =
        Self { draw: u64::MAX, hash: u64::MAX, element: u64::MAX, look_up: u64::MAX, item_bytes: 0 };

    /// Returns the operations per item, not counting its elements where their number varies.
    pub(crate) fn per_item(&self) -> u64 {
        self.hash.saturating_add(self.look_up)
    }

    /// Returns the work of looking an item up in `structures` structures that share their functions.
    pub(crate) fn in_each_of(self, structures: usize) -> Self {
        Self { look_up: self.look_up.saturating_mul(structures as u64), ..self }
    }
}

/// Returns the product, saturating at the largest number.
pub(crate) fn product(factors: impl IntoIterator<Item = u64>) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}

/// Returns `ln n` rounded up, at least 1.
pub(super) fn log(n: u64) -> u64 {
    libm::ceil(libm::log(n.max(2) as f64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_items_may_take_longer_and_no_sum_overflows() {
        let of = |hash, item_bytes| WorkLimit::Usual.check(&WorkBound { hash, item_bytes, ..WorkBound::default() });
        assert!(of(MOST_WORK, 0).is_ok() && of(MOST_WORK + 1, 0).is_err());
        assert!(of(MOST_WORK + MOST_WORK_PER_BYTE, 1).is_ok());
        let huge = WorkBound::ENDLESS;
        assert_eq!(huge.in_each_of(1024).per_item(), u64::MAX);
        let error = WorkLimit::Usual.check(&huge).unwrap_err();
        assert!(error.to_string().contains("more than 150 ms: use fewer rows"), "{error}");
        assert_eq!(WorkLimit::Unlimited.check(&huge), Ok(()));
        let drawn = WorkLimit::Usual
            .check(&WorkBound { draw: ITEMS_PER_DRAW * MOST_WORK + 1, ..WorkBound::default() })
            .unwrap_err();
        assert!(matches!(drawn, SpecError::Work { what: DRAWING, .. }), "{drawn}");
    }
}
