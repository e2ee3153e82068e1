//! Under which of its shingles a record is posted and looked up.
//!
//! A record is posted under the `k` smallest of its *rare* shingles. Of the `k` smallest in the union of two sets each is in both
//! with probability `J`, so two records of similarity `J` share none of their keys with probability `(1 - J)^k` (Broder 1997).
//!
//! Common shingles are no keys, since their lists would be long, and what is left must do the work. Take a record of `n` shingles,
//! `c` of them common and `r = n - c` rare, and a partner of its size at similarity `t` that has all of its common ones. The two
//! share `2nt/(1+t)` shingles, so `x = 2nt/(1+t) - c` rare ones, and the similarity of their rare parts is `x / (2r - x)`: that
//! decides `k`. A partner that lacks some of the common shingles shares more rare ones.
//!
//! If `c >= t n`, a partner may share nothing rare at all. Such a record is also looked up by its common part: see `groups`.

use super::CommonShingles;

/// How near records must be to be found, and how surely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Promise {
    pub near: f64,
    pub max_false_negative: f64,
}

/// More keys would take more memory than the texts of short records.
const MOST_KEYS: usize = 64;

/// What a record is posted and looked up under. Made to be reused from record to record.
#[derive(Debug, Clone, Default)]
pub struct RecordKeys {
    /// The smallest rare shingles, ascending.
    pub(super) rare: Vec<u64>,
    /// The common shingles, ascending, where they alone can make the record near another; else empty.
    pub(super) common: Vec<u64>,
    /// How many distinct shingles the record has.
    pub(super) size: u32,
    /// Fewer rare shingles than the promise needs.
    pub(super) short: bool,
    sorted: Vec<u64>,
}

impl RecordKeys {
    /// Creates empty keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many distinct shingles the record has.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Chooses the keys of a record whose distinct shingles are given in ascending order.
    pub(super) fn choose(&mut self, shingles: &[u64], model: &CommonShingles, promise: Promise) {
        debug_assert!(shingles.is_sorted());
        self.rare.clear();
        self.common.clear();
        self.size = u32::try_from(shingles.len()).unwrap_or(u32::MAX);
        let n = shingles.len() as f64;
        if model.is_empty() {
            let wanted = keys_needed(n, 0.0, promise);
            self.rare.extend(shingles.iter().take(wanted));
            self.short = false;
            return;
        }
        self.sorted.clear();
        self.sorted.extend(shingles.iter().copied().filter(|&hash| model.contains(hash)));
        let c = self.sorted.len() as f64;
        if c >= promise.near * n && c > 0.0 {
            std::mem::swap(&mut self.common, &mut self.sorted);
        }
        let wanted = keys_needed(n, c, promise);
        let rare = shingles.iter().copied().filter(|&hash| !model.contains(hash));
        self.rare.extend(rare.take(wanted.min(MOST_KEYS)));
        self.short = wanted > MOST_KEYS && self.rare.len() == MOST_KEYS;
    }
}

/// How many of its rare shingles a record of `n` shingles, `c` of them common, must be posted under.
fn keys_needed(n: f64, c: f64, promise: Promise) -> usize {
    let Promise { near, max_false_negative } = promise;
    let rare = n - c;
    let shared = 2.0 * n * near / (1.0 + near) - c;
    if shared >= rare || rare <= 0.0 {
        return 1;
    }
    // The common part alone may do it, and then `groups` finds the partner; a few keys find those that share more.
    if shared <= 0.0 {
        return 4;
    }
    let similarity = shared / (2.0 * rare - shared);
    libm::ceil(libm::log(max_false_negative) / libm::log1p(-similarity)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMISE: Promise = Promise { near: 0.8, max_false_negative: 0.001 };

    #[test]
    fn keys_follow_from_the_promise() {
        // (1 - .8)^5 = 3.2e-4, (1 - .5)^10 = 9.8e-4.
        assert_eq!(keys_needed(100.0, 0.0, PROMISE), 5);
        assert_eq!(keys_needed(100.0, 0.0, Promise { near: 0.5, ..PROMISE }), 10);
        assert_eq!(keys_needed(100.0, 0.0, Promise { near: 1.0, ..PROMISE }), 1);
        // 80 of 100 common: 8.9 of 20 rare ones are shared, a similarity of .286.
        assert_eq!(keys_needed(100.0, 80.0, PROMISE), 21);
        assert_eq!(keys_needed(100.0, 95.0, PROMISE), 4);
    }

    #[test]
    fn common_shingles_are_no_keys_and_are_kept_where_they_suffice() {
        let model: CommonShingles = (0..80).collect();
        let mut keys = RecordKeys::new();
        keys.choose(&Vec::from_iter(0..100), &model, PROMISE);
        assert_eq!(keys.rare, Vec::from_iter(80..100));
        assert_eq!((keys.common.len(), keys.size()), (80, 100));
        keys.choose(&Vec::from_iter(40..140), &model, PROMISE);
        assert!(keys.common.is_empty() && keys.rare.len() < 12 && keys.rare[0] == 80);
    }
}
