//! The shingle sets that were used last, in memory of a fixed size.
//!
//! Sets lie one behind the other in a ring. A new one takes the place of the oldest; of those, the ones that were used since they
//! came get a second chance, and go to the end of the ring again (Corbató 1968).

use std::collections::VecDeque;

use bytemuck::{cast_slice, cast_slice_mut};
use memmap2::MmapMut;

/// The most memory that sets are held in.
pub(super) const CACHE_BYTES: usize = 64 << 20;

/// Sets by entry.
pub(super) struct Cache {
    /// The ring. What of it was never used takes no memory; `None` if there is no room at all.
    ring: Option<MmapMut>,
    /// Its words, and how many of them were ever used.
    most: u64,
    used: u64,
    /// The sets in the ring, the oldest first.
    order: VecDeque<Held>,
    /// Where the next set goes; places are counted on from round to round.
    end: u64,
    /// By entry: one more than its place in the ring, and whether it was used. 0 for those that are not here.
    places: Vec<u32>,
    /// The last set that is larger than the ring.
    large: Option<(u32, Vec<u64>)>,
}

struct Held {
    entry: u32,
    start: u64,
    length: u64,
}

/// Set in the place of an entry that was used.
const USED: u32 = 1 << 31;

impl Default for Cache {
    fn default() -> Self {
        Self::new(CACHE_BYTES / size_of::<u64>())
    }
}

impl Cache {
    /// With room for so many hashes, fewer than 2^31.
    fn new(most: usize) -> Self {
        let ring = MmapMut::map_anon(most * size_of::<u64>()).ok();
        // Sets lie anywhere, and large pages make them faster to reach. Where there are none, small ones do.
        #[cfg(target_os = "linux")]
        let _ = ring.as_ref().map(|ring| ring.advise(memmap2::Advice::HugePage));
        let most = if ring.is_some() { most as u64 } else { 0 };
        Self { ring, most, used: 0, order: VecDeque::new(), end: 0, places: Vec::new(), large: None }
    }

    fn words(&self) -> &[u64] {
        self.ring.as_deref().map_or(&[], cast_slice)
    }

    /// Words of the ring that are about to be written.
    fn words_mut(&mut self, start: u64, length: u64) -> &mut [u64] {
        let at = start % self.most;
        self.used = self.used.max(at + length);
        let words: &mut [u64] = self.ring.as_deref_mut().map_or(&mut [], cast_slice_mut);
        &mut words[at as usize..][..length as usize]
    }

    /// Makes room for so many more entries.
    pub fn reserve(&mut self, entries: usize) {
        self.places.reserve(entries);
    }

    /// Makes room for one more entry, whose set is not here.
    pub fn add_entry(&mut self) {
        self.places.push(0);
    }

    pub fn holds(&self, entry: u32) -> bool {
        self.places[entry as usize] != 0 || self.large.as_ref().is_some_and(|(large, _)| *large == entry)
    }

    /// The set of an entry that is here; otherwise nothing.
    pub fn get(&mut self, entry: u32) -> &[u64] {
        match &mut self.places[entry as usize] {
            place if *place != 0 => {
                *place |= USED;
                let start = (*place & !USED) as usize - 1;
                // In front of each set stands its length.
                let length = self.words()[start] as usize;
                &self.words()[start + 1..][..length]
            }
            _ => self.large.as_ref().filter(|(large, _)| *large == entry).map_or(&[], |(_, set)| set),
        }
    }

    pub fn insert(&mut self, entry: u32, set: &[u64]) {
        let length = set.len() as u64 + 1;
        if length > self.most {
            self.large = Some((entry, set.to_vec()));
            return;
        }
        let start = loop {
            let start = self.next_start(length);
            let Some(oldest) = self.order.front() else { break start };
            if start + length <= oldest.start + self.most {
                break start;
            }
            self.pass_oldest();
        };
        let words = self.words_mut(start, length);
        words[0] = set.len() as u64;
        words[1..].copy_from_slice(set);
        self.hold(Held { entry, start, length });
    }

    /// Where a set of this length goes, so that it does not reach over the end of the ring.
    fn next_start(&self, length: u64) -> u64 {
        let left = self.most - self.end % self.most;
        if length <= left { self.end } else { self.end + left }
    }

    /// Drops the oldest set, or moves it to the end if it was used.
    fn pass_oldest(&mut self) {
        let Some(Held { entry, start: from, length }) = self.order.pop_front() else { return };
        let place = std::mem::take(&mut self.places[entry as usize]);
        let free_from = self.order.front().map_or(from + length, |next| next.start);
        let start = self.next_start(length);
        if place & USED == 0 || start + length > free_from + self.most {
            return;
        }
        let (from, at) = ((from % self.most) as usize, (start % self.most) as usize);
        self.used = self.used.max(at as u64 + length);
        let words: &mut [u64] = self.ring.as_deref_mut().map_or(&mut [], cast_slice_mut);
        words.copy_within(from..from + length as usize, at);
        self.hold(Held { entry, start, length });
    }

    fn hold(&mut self, held: Held) {
        self.places[held.entry as usize] = (held.start % self.most) as u32 + 1;
        self.end = held.start + held.length;
        self.order.push_back(held);
    }

    /// Memory of the sets.
    pub fn bytes(&self) -> u64 {
        let large = self.large.as_ref().map_or(0, |(_, set)| set.len());
        (self.used + large as u64) * size_of::<u64>() as u64 + (self.order.capacity() * size_of::<Held>()) as u64
    }

    /// Memory of what finds them, which grows with the number of entries.
    pub fn directory_bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<u32>()) as u64
    }
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
        let mut found = 0;
        for (entry, &length) in (0..).zip(&lengths) {
            cache.add_entry();
            cache.insert(entry, &set(entry, length));
            assert_eq!(cache.get(entry), set(entry, length), "the last one is always held");
            for _ in 0..3 {
                let other = entry.saturating_sub(rng.below(60) as u32);
                if cache.holds(other) {
                    found += 1;
                    assert_eq!(cache.get(other), set(other, lengths[other as usize]), "{other} of {entry}");
                } else {
                    cache.insert(other, &set(other, lengths[other as usize]));
                }
            }
            assert!(cache.used <= 1000);
        }
        assert!(found > 5000, "{found}");
    }

    #[test]
    fn what_is_used_stays_longer() {
        let mut cache = Cache::new(100);
        cache.add_entry();
        cache.insert(0, &set(0, 9));
        for entry in 1..200 {
            cache.add_entry();
            cache.insert(entry, &set(entry, 9));
            assert!(cache.holds(0), "{entry}");
            assert_eq!(cache.get(0), set(0, 9));
        }
        assert!(!cache.holds(1) && cache.holds(199));
    }
}
