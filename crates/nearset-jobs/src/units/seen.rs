//! Which units were there before: by 128-bit hashes, or in fixed memory by a Bloom filter.
//!
//! Invariant: the answers are a function of the units and their order, so a resumed run gives the same.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::black_box;
use std::io::{self, BufReader, ErrorKind, Read};
use std::num::NonZeroU128;

use nearset::{BloomFilter, Check, Seed};
use nearset_records::{OutputError, OutputFile, OutputOptions, Scratch, StateFolder};
use serde::{Deserialize, Serialize};

use crate::run::RunError;

/// The hash of a part.
pub(super) type Hash = NonZeroU128;

/// Spreads hashes over places, which nothing but speed depends on: anybody can find texts whose hashes share bits, but not what
/// becomes of them with the keys of this process.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    keys: [u64; 2],
}

impl Default for Spread {
    fn default() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self { keys: [random(), random()] }
    }
}

impl Spread {
    #[inline]
    fn of(&self, hash: u128) -> u64 {
        let [high, low] = [(hash >> 64) as u64 ^ self.keys[0], hash as u64 ^ self.keys[1]];
        let product = u128::from(high) * u128::from(low);
        (product >> 64) as u64 ^ product as u64
    }
}

impl BuildHasher for Spread {
    type Hasher = Spreading;

    fn build_hasher(&self) -> Spreading {
        Spreading { by: self.clone(), hash: 0 }
    }
}

pub(super) struct Spreading {
    by: Spread,
    hash: u64,
}

impl Hasher for Spreading {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes of 128 bits are hashed");
    }

    fn write_u128(&mut self, hash: u128) {
        self.hash = self.by.of(hash);
    }
}

/// Different hashes in places that the hash tells, or the next one that is free.
///
/// Whether many are there is asked in one go: a first look at the place of each lets the memory fetch them at the same time.
#[derive(Default)]
pub(super) struct Hashes {
    /// A power of two; 0 is a place that is free.
    places: Vec<u128>,
    taken: usize,
    spread: Spread,
}

impl Hashes {
    /// Places of the smallest table that has any.
    const FEWEST: usize = 1 << 4;

    /// How many are looked for at the same time.
    const TOGETHER: usize = 64;

    /// How many there may be: 7 of 8 places may be taken.
    fn most(places: usize) -> usize {
        places / 8 * 7
    }

    /// Where a hash is looked for first, if there are places. By the highest bits, so that a table that grows is written from its start to
    /// its end.
    fn first_place(&self, hash: u128) -> usize {
        (self.spread.of(hash) >> (u64::BITS - self.places.len().trailing_zeros())) as usize
    }

    /// The place of a hash, or the free one where it would be. There must be a free one.
    fn place(&self, hash: u128) -> usize {
        let mut place = self.first_place(hash);
        while self.places[place] != 0 && self.places[place] != hash {
            place = (place + 1) & (self.places.len() - 1);
        }
        place
    }

    fn contains(&self, hash: Hash) -> bool {
        !self.places.is_empty() && self.places[self.place(hash.get())] != 0
    }

    /// Lets the memory fetch the places of hashes that are soon looked for, at the same time: nothing here waits for a value.
    fn fetch(&self, hashes: &[Option<Hash>]) {
        if !self.places.is_empty() {
            let first = |hash: &Hash| self.places[self.first_place(hash.get())] as u64;
            black_box(hashes.iter().flatten().map(first).fold(0, |all, one| all ^ one));
        }
    }

    /// Whether the next new hash needs more places.
    fn is_full(&self) -> bool {
        self.taken >= Self::most(self.places.len())
    }

    /// Adds one that is known to be new.
    fn add(&mut self, place: usize, hash: u128) {
        self.places[place] = hash;
        self.taken += 1;
    }

    /// Adds a hash. False if it was there.
    fn insert(&mut self, hash: Hash) -> bool {
        if self.is_full() {
            if self.contains(hash) {
                return false;
            }
            self.grow(self.places.len() * 2);
        }
        let place = self.place(hash.get());
        let is_new = self.places[place] == 0;
        if is_new {
            self.add(place, hash.get());
        }
        is_new
    }

    fn grow(&mut self, places: usize) {
        let places = vec![0; places.max(Self::FEWEST)];
        let before = std::mem::replace(&mut self.places, places);
        self.taken = 0;
        for hash in before.into_iter().filter(|&hash| hash != 0) {
            self.add(self.place(hash), hash);
        }
    }

    /// Makes room for so many.
    fn reserve(&mut self, hashes: usize) {
        let places = (hashes.div_ceil(7) * 8).next_power_of_two();
        if places > self.places.len() {
            self.grow(places);
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(&self.places[..]) as u64
    }

    /// The same after the next time that it grows.
    fn grown_bytes(&self) -> u64 {
        (self.places.len() * 2).max(Self::FEWEST) as u64 * size_of::<Hash>() as u64
    }
}

/// Bytes that a hash takes at most: while a table grows, its own places, of which 7 of 8 are taken, and twice as many new ones.
pub(super) const BYTES_PER_HASH: u64 = (3 * size_of::<Hash>() as u64 * 8).div_ceil(7);

const LOG: &str = "units.log";

/// What was seen.
pub(super) enum Seen {
    /// All hashes; new ones are logged too, where a run can be resumed.
    Hashes { all: Hashes, log: Option<(StateFolder, Scratch)>, limit: Option<u64> },
    /// Hashes in a filter, which takes some of those that are new for seen.
    Filter(Box<BloomFilter<'static>>),
}

/// What a checkpoint refers to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Saved {
    /// The length of the log.
    Log(u64),
    /// The file of the filter.
    Filter(String),
}

impl Seen {
    /// One of so many parts is hardly less than those that are different, unless all are of templates.
    const REPEATED: u64 = 4;

    /// More than so many different parts are made room for as they come.
    const MOST_EXPECTED: u64 = 1 << 19;

    /// All hashes, within so many bytes of memory. `expected` may come, of which some are different.
    pub fn hashes(
        folder: Option<&StateFolder>,
        saved: Option<&Saved>,
        (limit, expected): (Option<u64>, Option<u64>),
    ) -> Result<Self, RunError> {
        let length = match saved {
            Some(Saved::Log(length)) => *length,
            _ => 0,
        };
        let mut all = Hashes::default();
        let first = (expected.unwrap_or(0) / Self::REPEATED).min(Self::MOST_EXPECTED);
        // So many are certain to fit, the places that they leave included.
        if limit.is_none_or(|limit| first.saturating_mul(2 * BYTES_PER_HASH) <= limit) {
            all.reserve(first as usize);
        }
        let mut log = None;
        if let Some(folder) = folder {
            folder.create()?;
            if length > 0 {
                replay(folder, length, &mut all).map_err(|cause| folder.damaged(format!("{LOG}: {cause}")))?;
            }
            let file = Scratch::open(&folder.file(LOG), length).map_err(|cause| folder.damaged(cause))?;
            log = Some((folder.clone(), file));
        }
        Ok(Self::Hashes { all, log, limit })
    }

    /// A filter for so many units.
    pub fn filter(
        capacity: u64,
        max_false_positive: f64,
        seed: Seed,
        folder: Option<&StateFolder>,
        saved: Option<&Saved>,
    ) -> Result<Self, RunError> {
        let filter = match (folder, saved) {
            (Some(folder), Some(Saved::Filter(name))) => {
                let bytes =
                    std::fs::read(folder.file(name)).map_err(|cause| folder.damaged(format!("{name}: {cause}")))?;
                let filter = BloomFilter::decode(&bytes, Check::Everything);
                filter.map_err(|cause| folder.damaged(format!("{name}: {cause}")))?.into_owned()
            }
            _ => BloomFilter::new(capacity, max_false_positive, seed)?,
        };
        Ok(Self::Filter(Box::new(filter)))
    }

    /// Overwrites `seen` with which of these hashes were there.
    pub fn contains_all(&self, hashes: &[Option<Hash>], seen: &mut Vec<bool>) {
        seen.clear();
        match self {
            Self::Hashes { all, .. } => {
                for some in hashes.chunks(Hashes::TOGETHER) {
                    all.fetch(some);
                    seen.extend(some.iter().map(|hash| hash.is_some_and(|hash| all.contains(hash))));
                }
            }
            Self::Filter(filter) => spread(hashes, filter.contains_all(&folded(hashes)), seen),
        }
    }

    /// Adds hashes, one after the other, and overwrites `seen` with which of them were there.
    pub fn insert_all(&mut self, hashes: &[Option<Hash>], seen: &mut Vec<bool>) -> Result<(), RunError> {
        seen.clear();
        match self {
            Self::Hashes { all, log, limit } => {
                for some in hashes.chunks(Hashes::TOGETHER) {
                    all.fetch(some);
                    for hash in some {
                        let Some(hash) = *hash else {
                            seen.push(false);
                            continue;
                        };
                        if let Some(limit) = *limit
                            && all.is_full()
                        {
                            // Twice the places, and those of now until they have moved.
                            let taken = all.bytes();
                            if taken + all.grown_bytes() > limit && !all.contains(hash) {
                                let records = all.taken as u64;
                                return Err(RunError::MemoryTaken { taken, records, resumable: false });
                            }
                        }
                        seen.push(!all.insert(hash));
                    }
                }
                if let Some((folder, file)) = log {
                    let is_new = |(hash, &seen): (&Option<Hash>, &bool)| hash.filter(|_| !seen);
                    let new = hashes.iter().zip(&*seen).filter_map(is_new);
                    let bytes: Vec<u8> = new.flat_map(|hash| hash.get().to_le_bytes()).collect();
                    file.append(&bytes).map_err(|cause| OutputError::from_io(folder.path(), cause))?;
                }
            }
            Self::Filter(filter) => {
                let new = filter.insert_all(&folded(hashes));
                spread(hashes, new.into_iter().map(|is_new| !is_new), seen);
            }
        }
        Ok(())
    }

    /// Returns its memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Hashes { all, .. } => all.bytes(),
            Self::Filter(filter) => filter.num_bits() / 8,
        }
    }

    /// Returns the bytes that a checkpoint writes: hashes were appended before.
    pub fn checkpoint_bytes(&self) -> u64 {
        match self {
            Self::Hashes { .. } => 0,
            Self::Filter(filter) => filter.num_bits() / 8,
        }
    }

    pub fn save(&mut self, folder: &StateFolder, checkpoint: u64) -> Result<Saved, RunError> {
        match self {
            Self::Hashes { log: Some((_, file)), .. } => {
                Ok(Saved::Log(file.sync().map_err(|cause| OutputError::from_io(folder.path(), cause))?))
            }
            Self::Hashes { .. } => Ok(Saved::Log(0)),
            Self::Filter(filter) => {
                let name = format!("units-{checkpoint}.bloom");
                let mut out = OutputFile::create(&folder.file(&name), &OutputOptions::default().with_force(true))?;
                filter.encode(&mut out).map_err(|cause| OutputError::from_io(folder.path(), cause))?;
                out.finish()?;
                Ok(Saved::Filter(name))
            }
        }
    }
}

/// Hashes of 64 bits, which are what a filter takes.
fn folded(hashes: &[Option<Hash>]) -> Vec<u64> {
    hashes.iter().flatten().map(|hash| hash.get() as u64 ^ (hash.get() >> 64) as u64).collect()
}

/// Appends the answers for those that have a hash, and false for the others.
fn spread(hashes: &[Option<Hash>], answers: impl IntoIterator<Item = bool>, seen: &mut Vec<bool>) {
    let mut answers = answers.into_iter();
    seen.extend(hashes.iter().map(|hash| hash.is_some() && answers.next().unwrap_or(false)));
}

fn replay(folder: &StateFolder, length: u64, all: &mut Hashes) -> io::Result<()> {
    let file = File::open(folder.file(LOG))?;
    // No room is made for what is not there.
    if file.metadata()?.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut file = BufReader::with_capacity(1 << 18, file.take(length));
    all.reserve((length / 16) as usize);
    for _ in 0..length / 16 {
        let mut hash = [0; 16];
        file.read_exact(&mut hash)?;
        if !Hash::new(u128::from_le_bytes(hash)).is_some_and(|hash| all.insert(hash)) {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Hashes in random order, of which many are the same, and some share half of their bits.
    fn hashes(count: u64) -> Vec<Option<Hash>> {
        let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = |i: u64| {
            let high = if i.is_multiple_of(50) { u64::MAX } else { spread(i) };
            Hash::new(u128::from(high) << 64 | u128::from(i))
        };
        (0..count)
            .map(|i| if i.is_multiple_of(9) { None } else { hash((spread(i) >> 32) % count.div_ceil(2)) })
            .collect()
    }

    #[test]
    fn a_hash_was_seen_if_an_equal_one_was_before() {
        for count in [0, 1, 13, 14, 15, 500, 20_000] {
            let (all, mut met) = (hashes(count), HashSet::new());
            let expected: Vec<bool> = all.iter().map(|hash| hash.is_some_and(|hash| !met.insert(hash))).collect();
            let mut seen = Seen::hashes(None, None, (None, None)).unwrap();
            let (mut found, mut known) = (Vec::new(), Vec::new());
            for part in all.chunks(77) {
                let mut answers = Vec::new();
                seen.insert_all(part, &mut answers).unwrap();
                found.append(&mut answers);
                seen.contains_all(part, &mut answers);
                known.append(&mut answers);
            }
            assert_eq!(found, expected);
            assert!(all.iter().zip(known).all(|(hash, known)| known == hash.is_some()));
            assert!(seen.bytes() <= (met.len() as u64 * BYTES_PER_HASH).max(16 * 16));
        }
    }

    #[test]
    fn hashes_that_were_chosen_to_share_bits_have_places_of_their_own() {
        let count = 50_000;
        for shift in [0, 64] {
            let mut all = Hashes::default();
            let chosen = |i: u128| Hash::new(i << shift | u128::from(u64::MAX) << (64 - shift)).unwrap();
            (0..count).for_each(|i| assert!(all.insert(chosen(i))));
            let mask = all.places.len() - 1;
            let way = |hash: u128| (all.place(hash).wrapping_sub(all.first_place(hash)) & mask) as u128;
            let ways: u128 = (0..count).map(|i| way(chosen(i).get())).sum();
            // Some 10 on average at most, and 10,000 and more where all begin at one place.
            assert!(ways < 100 * count, "{ways}");
        }
    }

    #[test]
    fn a_log_that_is_shorter_than_its_checkpoint_says_is_damage() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::of(&place.path().join("out.jsonl"), None);
        folder.create().unwrap();
        std::fs::write(folder.file(LOG), [1; 16]).unwrap();
        let opened = Seen::hashes(Some(&folder), Some(&Saved::Log(1 << 60)), (None, None));
        let told = opened.err().map(|error| nearset_records::chain(&error)).unwrap_or_default();
        assert!(told.contains(LOG), "{told}");
    }

    #[test]
    fn a_table_grows_within_its_memory_only() {
        let all = hashes(20_000);
        let mut seen = Seen::hashes(None, None, (Some(100_000), None)).unwrap();
        let (mut answers, mut stopped) = (Vec::new(), None);
        for part in all.chunks(10) {
            if let Err(error) = seen.insert_all(part, &mut answers) {
                stopped = Some(error);
                break;
            }
        }
        // 4,096 places of 16 bytes, of which 7 of 8 are taken: twice as many beside them don't fit.
        assert!(matches!(stopped, Some(RunError::MemoryTaken { taken: 65_536, records: 3_584, .. })), "{stopped:?}");
    }
}
