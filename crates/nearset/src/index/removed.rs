//! Which of an index's items were removed: one bit per slot, as far as the last removed one needs.

/// Slots whose items were removed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Removed {
    words: Vec<u64>,
    count: u32,
}

impl Removed {
    /// Removed slots as [`Self::words`] says them; `None` if one of them is not below `items`.
    pub(crate) fn from_words(words: &[u64], items: u32) -> Option<Self> {
        let end = words.len() - words.iter().rev().take_while(|&&word| word == 0).count();
        let words = &words[..end];
        let last = words.last().map(|word| 64 * (end as u64 - 1) + u64::from(word.ilog2()));
        let count = words.iter().map(|word| word.count_ones()).sum();
        last.is_none_or(|last| last < u64::from(items)).then(|| Self { words: words.to_vec(), count })
    }

    /// One bit per slot, the lowest of the first word first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// True if it was not in before.
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        let new = !self.contains(slot);
        let word = slot as usize / 64;
        self.words.resize(self.words.len().max(word + 1), 0);
        self.words[word] |= 1 << (slot % 64);
        self.count += u32::from(new);
        new
    }

    /// The slots that are in, but not in `before`, ascending.
    pub(crate) fn since<'r>(&'r self, before: &'r Removed) -> impl Iterator<Item = u32> + 'r {
        self.words.iter().enumerate().flat_map(move |(at, word)| {
            let mut rest = word & !before.words.get(at).copied().unwrap_or(0);
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(64 * at as u32 + bit)
            })
        })
    }

    /// How many slots below this one are not in.
    pub(crate) fn live_below(&self, slot: u32) -> u32 {
        let (whole, bits) = (slot as usize / 64, slot % 64);
        let below: u32 = self.words.iter().take(whole).map(|word| word.count_ones()).sum();
        let rest = self.words.get(whole).map_or(0, |word| (word & ((1 << bits) - 1)).count_ones());
        slot - below - rest
    }

    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_counted_told_apart_and_read_again() {
        let mut first = Removed::default();
        for slot in [3, 64, 200, 3] {
            first.insert(slot);
        }
        let mut second = first.clone();
        assert!(second.insert(65) && second.insert(7) && !second.insert(64));
        assert_eq!(second.since(&first).collect::<Vec<_>>(), [7, 65]);
        assert_eq!((first.count(), second.count()), (3, 5));
        assert_eq!([0, 3, 4, 64, 65, 66, 300].map(|slot| second.live_below(slot)), [0, 3, 3, 62, 62, 62, 295]);
        let again = Removed::from_words(second.words(), 201).unwrap();
        assert_eq!((again.words(), again.count()), (second.words(), 5));
        assert!(Removed::from_words(second.words(), 200).is_none());
        assert!(Removed::from_words(&[0, 0], 0).is_some_and(|none| none.count() == 0 && none.words().is_empty()));
    }
}
