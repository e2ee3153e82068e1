//! Which shingles are too common to propose anything.
//!
//! Invariant: fixed before the first record is decided on, and stored with whatever a later run continues, so that which records
//! are candidates never depends on threads, batches or memory.

use crate::item::sorted;

/// The shingles that many records have: those of templates, licences and boilerplate.
#[derive(Debug, Clone, Default)]
pub struct CommonShingles {
    /// In ascending order.
    hashes: Vec<u64>,
    /// One bit for each value of the lowest bits of a hash, set if a common shingle has it: most others end here.
    maybe: Vec<u64>,
    /// Open addressing: one more than the place of a hash in `hashes`, or 0.
    slots: Vec<u32>,
}

/// Bits of a hash that `maybe` looks at: 8 kB, which stay in the first cache.
const LOWEST_BITS: u32 = 16;

const MAYBE_WORDS: usize = (1 << LOWEST_BITS) / 64;

impl CommonShingles {
    /// Finds the common shingles of a corpus of about `records` records by a sample of it. The hashes of each record must be distinct.
    ///
    /// A shingle that half a per cent of the corpus has is common, unless its list would have fewer than 100 records; and so is one
    /// whose list would have more than 1,000.
    pub fn of_sample<'a>(sample: impl IntoIterator<Item = &'a [u64]>, records: usize) -> Self {
        const FEWEST: f64 = 10.0;
        let (mut all, mut sampled) = (Vec::new(), 0);
        for record in sample {
            all.extend_from_slice(record);
            sampled += 1;
        }
        let records = records.max(sampled).max(1) as f64;
        let longest = (0.005 * records).clamp(100.0, 1000.0);
        let most = (longest * sampled as f64 / records).max(FEWEST) as usize;
        sorted(&all).chunk_by(|a, b| a == b).filter(|run| run.len() > most).map(|run| run[0]).collect()
    }

    /// Returns whether a shingle is common.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let bit = low_bits(hash);
        if self.maybe.get(bit / 64).is_none_or(|word| word >> (bit % 64) & 1 == 0) {
            return false;
        }
        self.hashes.get((self.slots[self.slot(hash)] as usize).wrapping_sub(1)) == Some(&hash)
    }

    /// Overwrites `common` with those of the shingles that are common, in their order.
    pub(super) fn common_of(&self, shingles: &[u64], common: &mut Vec<u64>) {
        common.clear();
        let Ok(maybe) = <&[u64; MAYBE_WORDS]>::try_from(&self.maybe[..]) else { return };
        common.resize(shingles.len(), 0);
        let mut found = 0;
        // Branches on hashes can't be foreseen, so all are written, and others go over those that are not common.
        for &hash in shingles {
            common[found] = hash;
            found += (maybe[low_bits(hash) / 64] >> (low_bits(hash) % 64) & 1) as usize;
        }
        common.truncate(found);
        common.retain(|&hash| self.contains(hash));
    }

    /// Returns where the hash stands, or would stand.
    fn slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 && self.hashes[self.slots[slot] as usize - 1] != hash {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Returns the common shingles in ascending order.
    pub fn as_slice(&self) -> &[u64] {
        &self.hashes
    }

    /// Returns how many shingles are common.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether no shingle is common.
    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

fn low_bits(hash: u64) -> usize {
    hash as usize & ((1 << LOWEST_BITS) - 1)
}

impl FromIterator<u64> for CommonShingles {
    fn from_iter<I: IntoIterator<Item = u64>>(hashes: I) -> Self {
        let mut common = Self { hashes: Vec::from_iter(hashes), ..Self::default() };
        common.hashes.sort_unstable();
        common.hashes.dedup();
        if common.is_empty() {
            return common;
        }
        common.maybe = vec![0; MAYBE_WORDS];
        common.slots = vec![0; (2 * common.len()).next_power_of_two()];
        for at in 0..common.len() {
            let hash = common.hashes[at];
            common.maybe[low_bits(hash) / 64] |= 1 << (low_bits(hash) % 64);
            let slot = common.slot(hash);
            common.slots[slot] = at as u32 + 1;
        }
        common
    }
}
