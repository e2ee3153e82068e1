//! Which units were there before: by 128-bit hashes, or in fixed memory by a Bloom filter.
//!
//! Invariant: the answers are a function of the units and their order, so a resumed run gives the same.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufReader, ErrorKind, Read};

use nearset::{BloomFilter, Check, Seed};
use nearset_records::{OutputError, OutputFile, OutputOptions, Scratch, StateFolder};
use serde::{Deserialize, Serialize};

use crate::run::RunError;

/// Hashes are random already.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes of 128 bits are hashed");
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

pub(super) type Hashes = HashSet<u128, BuildHasherDefault<AsItIs>>;

/// Bytes of a place for a hash: the hash, and what tells that it is taken.
const PLACE: u64 = 17;

/// Bytes that a hash takes at most: while a table grows, its own places, of which 7 of 8 are taken, and twice as many new ones.
pub(super) const BYTES_PER_HASH: u64 = (3 * PLACE * 8).div_ceil(7);

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
    /// All hashes, within so many bytes of memory.
    pub fn hashes(folder: Option<&StateFolder>, saved: Option<&Saved>, limit: Option<u64>) -> Result<Self, RunError> {
        let length = match saved {
            Some(Saved::Log(length)) => *length,
            _ => 0,
        };
        let mut all = Hashes::default();
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

    pub fn contains(&self, hash: u128) -> bool {
        match self {
            Self::Hashes { all, .. } => all.contains(&hash),
            Self::Filter(filter) => filter.contains_all(&[folded(hash)])[0],
        }
    }

    /// Adds a hash. False if it was there.
    pub fn insert(&mut self, hash: u128) -> Result<bool, RunError> {
        match self {
            Self::Hashes { all, log, limit } => {
                if all.len() == all.capacity()
                    && let Some(limit) = *limit
                {
                    // Twice the places, and those of now until they have moved.
                    let (taken, grown) = (place_bytes(all.capacity()), place_bytes(2 * all.capacity().max(4)));
                    if taken + grown > limit && !all.contains(&hash) {
                        return Err(RunError::MemoryTaken { taken, records: all.len() as u64, resumable: false });
                    }
                }
                let is_new = all.insert(hash);
                if let (true, Some((folder, file))) = (is_new, log) {
                    let appended = file.append(&hash.to_le_bytes());
                    appended.map_err(|cause| OutputError::from_io(folder.path(), cause))?;
                }
                Ok(is_new)
            }
            Self::Filter(filter) => Ok(filter.insert_all(&[folded(hash)])[0]),
        }
    }

    /// Returns its memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Hashes { all, .. } => place_bytes(all.capacity()),
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

/// Bytes of a table with room for so many: 7 of 8 places may be taken.
fn place_bytes(capacity: usize) -> u64 {
    PLACE * (capacity as u64 * 8).div_ceil(7).next_power_of_two()
}

/// A hash of 64 bits, which is what a filter takes.
fn folded(hash: u128) -> u64 {
    hash as u64 ^ (hash >> 64) as u64
}

fn replay(folder: &StateFolder, length: u64, all: &mut Hashes) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(folder.file(LOG))?.take(length));
    all.reserve((length / 16) as usize);
    for _ in 0..length / 16 {
        let mut hash = [0; 16];
        file.read_exact(&mut hash)?;
        if !all.insert(u128::from_le_bytes(hash)) {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}
