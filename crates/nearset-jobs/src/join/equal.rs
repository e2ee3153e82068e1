//! Which of some numbered things are equal: found by a hash, and then compared.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

/// Numbers of different things, which are held elsewhere.
#[derive(Default)]
pub(super) struct Equal {
    /// Hashes and numbers.
    table: HashTable<(u64, u32)>,
    state: RandomState,
}

impl Equal {
    /// What a different thing takes here, at most: 17 bytes for a place in the table, of which half may be empty, and half as much
    /// again while it grows.
    pub const BYTES_EACH: u64 = 60;

    /// Returns the number of what `is_equal` says it of, or gives `next` to a thing that is none of those.
    pub fn number(&mut self, thing: &(impl Hash + ?Sized), is_equal: impl Fn(u32) -> bool, next: u32) -> u32 {
        self.with_hash(self.state.hash_one(thing), is_equal, next)
    }

    fn with_hash(&mut self, hash: u64, is_equal: impl Fn(u32) -> bool, next: u32) -> u32 {
        let same = |&(other, number): &(u64, u32)| other == hash && is_equal(number);
        self.table.entry(hash, same, |&(hash, _)| hash).or_insert((hash, next)).get().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_things_of_one_hash_are_different() {
        let (mut equal, mut held) = (Equal::default(), Vec::<&str>::new());
        let mut number = |thing: &'static str| {
            let number = equal.with_hash(7, |number| held[number as usize] == thing, held.len() as u32);
            if number as usize == held.len() {
                held.push(thing);
            }
            number
        };
        assert_eq!(["a", "b", "a", "c", "b", "c"].map(&mut number), [0, 1, 0, 2, 1, 2]);
    }
}
