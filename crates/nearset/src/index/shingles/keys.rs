//! Under which of its shingles a record is posted and looked up.
//!
//! A record is posted under its smallest *rare* shingles, as many as [`JoinSpec`] says. Common shingles are no keys, since their
//! lists would be long. If they are most of the record, a partner may share hardly anything else with it: such a record is also looked
//! up by its common part, see `groups`.

use super::{Candidates, CommonShingles, posts};
use crate::JoinSpec;

/// What a record is posted and looked up under. Made to be reused from record to record, with the room that looking up takes.
#[derive(Debug, Clone, Default)]
pub struct ShingleKeys {
    /// The smallest rare shingles, ascending.
    pub(super) rare: Vec<u64>,
    /// The common shingles, ascending, where they alone can make the record near another; else empty.
    pub(super) common: Vec<u64>,
    /// How many distinct shingles the record has.
    pub(super) size: u32,
    /// Room for the common ones.
    found: Vec<u64>,
    /// Room to look the record up.
    pub(crate) candidates: Candidates,
}

impl ShingleKeys {
    /// Returns how many distinct shingles the record has.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns what the record is listed under, as [`postings`](super::ShingleIndex::postings) tell it.
    pub fn codes(&self) -> impl Iterator<Item = u64> {
        self.rare.iter().map(|&key| posts::code(key))
    }

    /// Appends the keys to a list of words, from which [`Self::read`] reads them: the size in the lower half of a word and the number of rare shingles in
    /// its upper half, the rare ones, and the common part if the record is looked up by it.
    pub fn write(&self, words: &mut Vec<u64>) {
        words.push(u64::from(self.size) | (self.rare.len() as u64) << 32);
        words.extend_from_slice(&self.rare);
        words.extend_from_slice(&self.common);
    }

    /// Reads what [`Self::write`] has written of one record, and nothing else. Returns whether it could be.
    pub fn read(&mut self, words: &[u64]) -> bool {
        let Some((&first, words)) = words.split_first() else { return false };
        let rare = (first >> 32) as usize;
        if rare > words.len() {
            return false;
        }
        self.size = first as u32;
        self.rare.clear();
        self.common.clear();
        self.rare.extend_from_slice(&words[..rare]);
        self.common.extend_from_slice(&words[rare..]);
        true
    }

    /// Chooses the keys of a record, from its shingles in ascending order.
    pub fn choose(&mut self, shingles: &[u64], model: &CommonShingles, spec: &JoinSpec) {
        self.rare.clear();
        self.common.clear();
        self.size = u32::try_from(shingles.len()).unwrap_or(u32::MAX);
        model.common_of(shingles, &mut self.found);
        let common = self.found.len();
        let (wanted, by_common_part) = spec.keys_of(shingles.len(), common);
        let is_rare = |hash: &u64| common == 0 || !model.contains(*hash);
        self.rare.extend(shingles.iter().copied().filter(is_rare).take(wanted));
        if by_common_part {
            std::mem::swap(&mut self.common, &mut self.found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, Shingling, Similarity};

    fn spec() -> JoinSpec {
        JoinSpec::new(Similarity::jaccard(0.8).unwrap(), 0.001, Shingling::default(), Seed::default())
    }

    fn set(from: u64, to: u64) -> Vec<u64> {
        Vec::from_iter(from..to)
    }

    #[test]
    fn common_shingles_are_no_keys_and_are_kept_where_they_suffice() {
        let model: CommonShingles = (0..80).collect();
        let mut keys = ShingleKeys::default();
        keys.choose(&set(0, 100), &model, &spec());
        assert_eq!(keys.rare, Vec::from_iter(80..100));
        assert_eq!((keys.common.len(), keys.size()), (80, 100));
        keys.choose(&set(40, 140), &model, &spec());
        assert!(keys.common.is_empty() && keys.rare.len() < 12 && keys.rare[0] == 80, "{keys:?}");
    }

    #[test]
    fn written_keys_are_read_again() {
        let model: CommonShingles = (0..80).collect();
        let (mut keys, mut again, mut words) = (ShingleKeys::default(), ShingleKeys::default(), Vec::new());
        for from in [0, 10, 40, 200] {
            keys.choose(&set(from, from + 100), &model, &spec());
            words.clear();
            keys.write(&mut words);
            assert!(again.read(&words));
            let parts = |keys: &ShingleKeys| (keys.rare.clone(), keys.common.clone(), keys.size);
            assert_eq!(parts(&again), parts(&keys));
        }
        assert!(!again.read(&[]) && !again.read(&[5 << 32]));
    }
}
