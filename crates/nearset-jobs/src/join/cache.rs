//! The shingle sets that were used last, in memory of a bounded size.
//!
//! Sets lie in *chunks*, the sets of a batch in one, as the threads that cut it have left them: nothing is copied. The oldest chunk goes
//! first; the sets in it that were used since they came get a second chance, and go behind the newest ones (Corbató 1968).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most memory that sets are held in, beside those of the last batch.
pub(super) const CACHE_BYTES: usize = 64 << 20;

/// Sets one behind the other, each with its length in front.
pub(super) type Sets = Arc<Vec<u64>>;

/// Sets by entry.
pub(super) struct Cache {
    /// The oldest first.
    chunks: VecDeque<Chunk>,
    /// Words that chunks may have in all, and have.
    most: usize,
    held: usize,
    /// Where the next chunk begins: words are counted on from chunk to chunk.
    end: u64,
    /// Where the chunk begins that was adopted last.
    adopted: u64,
    /// By entry of this round: where its set is, and whether it was used. 0 for those that are not here.
    places: Vec<AtomicU32>,
    /// The first entry of this round, and the same for those before it that are here.
    first: u32,
    older: BTreeMap<u32, AtomicU32>,
}

struct Chunk {
    /// Where its first word is, counted over all chunks that there were.
    start: u64,
    words: Sets,
    /// Its entries, and where their sets begin.
    entries: Vec<(u32, u32)>,
}

/// Set in the place of an entry that was used.
const USED: u32 = 1 << 31;

impl Default for Cache {
    fn default() -> Self {
        Self::new(CACHE_BYTES / size_of::<u64>())
    }
}

impl Cache {
    /// Takes at most so many bytes, and never more than [`CACHE_BYTES`].
    pub fn limit(&mut self, bytes: u64) {
        self.most = CACHE_BYTES.min(bytes as usize) / size_of::<u64>();
    }

    /// The most memory that sets are held in.
    pub fn most_bytes(&self) -> u64 {
        (self.most * size_of::<u64>()) as u64
    }

    /// With room for so many words, fewer than 2^30.
    fn new(most: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            most,
            held: 0,
            end: 1,
            adopted: 0,
            places: Vec::new(),
            first: 0,
            older: BTreeMap::new(),
        }
    }

    /// Counts on so many entries, before any other: no set is here, and those that come are found as those of earlier rounds are.
    pub fn count_on(&mut self, entries: u32) {
        self.first += entries;
    }

    /// Begins a round: entries are counted on, and no set is here.
    pub fn next_round(&mut self) {
        self.first += self.places.len() as u32;
        self.places.clear();
        self.older.clear();
        self.chunks.clear();
        self.held = 0;
    }

    fn place(&self, entry: u32) -> Option<&AtomicU32> {
        match entry.checked_sub(self.first) {
            Some(own) => Some(&self.places[own as usize]),
            None => self.older.get(&entry),
        }
    }

    fn place_mut(&mut self, entry: u32) -> &mut u32 {
        match entry.checked_sub(self.first) {
            Some(own) => self.places[own as usize].get_mut(),
            None => self.older.entry(entry).or_default().get_mut(),
        }
    }

    /// Makes room for one more entry, whose set is not here.
    pub fn add_entry(&mut self) {
        self.places.push(AtomicU32::new(0));
    }

    /// Takes over the sets of a batch, unless they are those that were adopted last. Returns sets that have gone, to be used again.
    pub fn adopt(&mut self, words: &Sets) -> Option<Sets> {
        if self.adopted_chunk().is_some_and(|adopted| Arc::ptr_eq(&adopted.words, words)) {
            return None;
        }
        let gone = self.push(Arc::clone(words));
        self.adopted = self.chunks.back().map_or(0, |newest| newest.start);
        gone
    }

    fn adopted_chunk(&mut self) -> Option<&mut Chunk> {
        let adopted = self.adopted;
        let at = self.chunks.partition_point(|chunk| chunk.start < adopted);
        self.chunks.get_mut(at).filter(|chunk| chunk.start == adopted)
    }

    /// Makes sets the newest chunk. Returns sets that have gone.
    fn push(&mut self, words: Sets) -> Option<Sets> {
        let mut gone = None;
        // So that this ends, and is worth what comes in.
        let mut moves = 2 * words.len();
        while self.held + words.capacity() > self.most && !self.chunks.is_empty() {
            gone = self.drop_oldest(&mut moves);
        }
        self.push_chunk(words, Vec::new());
        gone
    }

    fn push_chunk(&mut self, words: Sets, entries: Vec<(u32, u32)>) {
        self.held += words.capacity();
        let start = self.end;
        self.end += words.len() as u64;
        self.chunks.push_back(Chunk { start, words, entries });
    }

    /// Makes one of the adopted sets that of an entry: the one whose length is at this place.
    pub fn hold(&mut self, entry: u32, at: usize) {
        let Some(chunk) = self.adopted_chunk() else { return };
        chunk.entries.push((entry, at as u32));
        *self.place_mut(entry) = place_of(self.adopted, at as u32);
    }

    /// Holds copies of sets, by entry.
    pub fn insert(&mut self, sets: &[(u32, Vec<u64>)]) {
        let mut words = Vec::with_capacity(sets.iter().map(|(_, set)| set.len() + 1).sum());
        let mut entries = Vec::with_capacity(sets.len());
        for (entry, set) in sets {
            entries.push((*entry, words.len() as u32));
            words.push(set.len() as u64);
            words.extend_from_slice(set);
        }
        self.push(Arc::new(words));
        let start = self.chunks.back().map_or(0, |newest| newest.start);
        for &(entry, at) in &entries {
            *self.place_mut(entry) = place_of(start, at);
        }
        if let Some(newest) = self.chunks.back_mut() {
            newest.entries = entries;
        }
    }

    /// Whether the set of an entry is here.
    pub fn holds(&self, entry: u32) -> bool {
        self.place(entry).is_some_and(|place| place.load(Ordering::Relaxed) != 0)
    }

    /// The set of an entry, if it is here.
    pub fn get(&self, entry: u32) -> Option<&[u64]> {
        let place = self.place(entry)?;
        let at = place.load(Ordering::Relaxed);
        if at == 0 {
            return None;
        }
        if at & USED == 0 {
            place.store(at | USED, Ordering::Relaxed);
        }
        // Those that are here lie within 2^31 words.
        let first = self.chunks.front()?.start;
        let at = first + u64::from((at & !USED).wrapping_sub(first as u32) & !USED);
        let chunk = &self.chunks[self.chunks.partition_point(|chunk| chunk.start <= at) - 1];
        Some(set_at(&chunk.words, (at - chunk.start) as usize))
    }

    /// Drops the oldest chunk but for what was used of it, if so many words may be moved.
    fn drop_oldest(&mut self, moves: &mut usize) -> Option<Sets> {
        let Chunk { start, words, entries } = self.chunks.pop_front()?;
        self.held -= words.capacity();
        let mut used = Vec::new();
        for (entry, at) in entries {
            let place = self.place_mut(entry);
            // It may be in a newer chunk as well.
            if *place & !USED == place_of(start, at) {
                if *place & USED != 0 {
                    used.push((entry, at));
                }
                *place = 0;
                self.older.remove(&entry);
            }
        }
        let kept = || used.iter().map(|&(entry, at)| (entry, set_at(&words, at as usize)));
        let more: usize = kept().map(|(_, set)| set.len() + 1).sum();
        if more > 0 && more <= *moves {
            *moves -= more;
            let mut copies = Vec::with_capacity(more);
            let mut places = Vec::with_capacity(used.len());
            for (entry, set) in kept() {
                places.push((entry, copies.len() as u32));
                copies.push(set.len() as u64);
                copies.extend_from_slice(set);
            }
            for &(entry, at) in &places {
                *self.place_mut(entry) = place_of(self.end, at);
            }
            self.push_chunk(Arc::new(copies), places);
        }
        Some(words)
    }

    /// Memory of the sets.
    pub fn bytes(&self) -> u64 {
        (self.held * size_of::<u64>()) as u64
    }

    /// Memory of what finds them, which grows with the number of entries.
    pub fn directory_bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<u32>()) as u64
    }
}

/// Where a set is, in the place of an entry. If that is 0, which it is once in 2^31 words, the set is taken to be elsewhere.
fn place_of(start: u64, at: u32) -> u32 {
    (start + u64::from(at)) as u32 & !USED
}

/// The set whose length is at a place.
pub(super) fn set_at(words: &[u64], at: usize) -> &[u64] {
    &words[at + 1..][..words[at] as usize]
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    fn set(entry: u32, length: u64) -> Vec<u64> {
        (0..length).map(|i| u64::from(entry) << 32 | i).collect()
    }

    #[test]
    fn what_is_held_is_what_was_put_in() {
        let mut rng = Rng::new(Seed::new(1));
        let mut cache = Cache::new(1000);
        let lengths: Vec<u64> =
            (0..5000).map(|_| if rng.below(50) == 0 { rng.below(1200) } else { rng.below(40) }).collect();
        let (mut found, mut entry) = (0, 0u32);
        while (entry as usize) < lengths.len() {
            let batch = entry..(entry + 1 + rng.below(4) as u32).min(lengths.len() as u32);
            let (mut words, mut places) = (Vec::new(), Vec::new());
            for entry in batch.clone() {
                places.push(words.len());
                words.push(lengths[entry as usize]);
                words.extend(set(entry, lengths[entry as usize]));
            }
            let words = Arc::new(words);
            cache.adopt(&words);
            assert!(cache.adopt(&words).is_none(), "it is there already");
            for (entry, at) in batch.clone().zip(places) {
                cache.add_entry();
                cache.hold(entry, at);
                assert_eq!(cache.get(entry), Some(&set(entry, lengths[entry as usize])[..]), "the newest are held");
            }
            for _ in 0..6 {
                let other = batch.end.saturating_sub(1 + rng.below(60) as u32);
                if let Some(held) = cache.get(other) {
                    found += 1;
                    assert_eq!(held, set(other, lengths[other as usize]), "{other} of {batch:?}");
                } else {
                    cache.insert(&[(other, set(other, lengths[other as usize]))]);
                }
            }
            assert!(cache.held <= 1000 || cache.chunks.len() == 1, "{} words", cache.held);
            entry = batch.end;
        }
        assert!(found > 5000, "{found}");
    }

    #[test]
    fn what_is_used_stays_longer() {
        let mut cache = Cache::new(200);
        for batch in 0..100 {
            let mut words = Vec::new();
            for entry in 4 * batch..4 * batch + 4 {
                words.push(9);
                words.extend(set(entry, 9));
            }
            cache.adopt(&Arc::new(words));
            for i in 0..4 {
                cache.add_entry();
                cache.hold(4 * batch + i, 10 * i as usize);
            }
            assert_eq!(cache.get(0), Some(&set(0, 9)[..]), "{batch}");
        }
        assert!(cache.get(1).is_none() && cache.get(399).is_some());
    }
}
