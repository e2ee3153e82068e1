//! The tables: sorted runs of entries, addressed by their first bits.
//!
//! Claim: an item takes 8 bytes of entry and at most 4 of addresses in every table, whatever the buckets' sizes, and a bucket is
//! found in two reads.
//! Invariant: an entry is `fingerprint << 32 | slot`; a band's entries ascend, so a bucket's slots are in order, and runs are
//! merged without hashing anything again.
//!
//! A fingerprint is 32 bits of the band's key under the index's seed. Two different keys share one with probability 2^-32, so
//! among a million items one query in 4,000 meets one candidate too many in a table; verification rejects it.

use std::{borrow::Cow, collections::TryReserveError};

use crate::room;

/// Entries of items in all bands, sorted.
#[derive(Clone, Default)]
pub(crate) struct Run<'a> {
    /// Items that are in, those removed since included.
    pub(crate) items: u32,
    /// Where each band's entries end.
    pub(crate) ends: Cow<'a, [u64]>,
    /// For each band, where the entries of each address start, and where the last ones end, counted from the band's first.
    pub(crate) starts: Cow<'a, [u32]>,
    pub(crate) entries: Cow<'a, [u64]>,
}

pub(crate) const fn entry(fingerprint: u32, slot: u32) -> u64 {
    (fingerprint as u64) << 32 | slot as u64
}

const fn fingerprint(entry: u64) -> u32 {
    (entry >> 32) as u32
}

pub(crate) const fn slot(entry: u64) -> u32 {
    entry as u32
}

/// Bits of a fingerprint that address its bucket: one or two items an address.
const fn address_bits(items: u32) -> u32 {
    if items == 0 { 0 } else { items.ilog2() }
}

/// Numbers of [`Run::starts`] in a band.
pub(crate) const fn addresses(items: u32) -> u64 {
    (1 << address_bits(items)) + 1
}

const fn address(fingerprint: u32, bits: u32) -> usize {
    ((fingerprint as u64) >> (32 - bits)) as usize
}

/// Appends a band's `starts`.
fn push_starts(entries: &[u64], items: u32, starts: &mut Vec<u32>) {
    let bits = address_bits(items);
    let first = starts.len();
    starts.resize(first + addresses(items) as usize, 0);
    let starts = &mut starts[first..];
    for &entry in entries {
        starts[address(fingerprint(entry), bits) + 1] += 1;
    }
    let mut before = 0;
    for start in starts {
        before += *start;
        *start = before;
    }
}

impl Run<'static> {
    /// A run of `items` items; `fill(band, out)` appends the band's entries in any order, sorted runs of them by choice.
    pub(crate) fn new(bands: usize, items: u32, fill: impl FnMut(usize, &mut Vec<u64>)) -> Self {
        // The stable sort finds sorted runs and merges them.
        room::expect(Self::sorted_by(<[u64]>::sort, bands, items, fill))
    }

    /// The same where memory may be refused: the sort needs none, and takes twice as long.
    pub(crate) fn try_new(
        bands: usize,
        items: u32,
        fill: impl FnMut(usize, &mut Vec<u64>),
    ) -> Result<Self, TryReserveError> {
        Self::sorted_by(<[u64]>::sort_unstable, bands, items, fill)
    }

    fn sorted_by(
        sort: fn(&mut [u64]),
        bands: usize,
        items: u32,
        mut fill: impl FnMut(usize, &mut Vec<u64>),
    ) -> Result<Self, TryReserveError> {
        let mut ends = room::of(bands)?;
        let mut starts = room::of(bands * addresses(items) as usize)?;
        let mut entries = room::of(bands * items as usize)?;
        for band in 0..bands {
            let from = entries.len();
            fill(band, &mut entries);
            sort(&mut entries[from..]);
            push_starts(&entries[from..], items, &mut starts);
            ends.push(entries.len() as u64);
        }
        Ok(Self { items, ends: ends.into(), starts: starts.into(), entries: entries.into() })
    }
}

impl Run<'_> {
    /// All entries of a band.
    pub(crate) fn band(&self, band: usize) -> &[u64] {
        let from = if band == 0 { 0 } else { self.ends[band - 1] };
        self.entries.get(from as usize..self.ends[band] as usize).unwrap_or_default()
    }

    /// The entries of a fingerprint. Those of a file whose tables were not checked may be wrong, but are never out of bounds.
    #[inline]
    pub(crate) fn bucket(&self, band: usize, wanted: u32) -> &[u64] {
        let at = band * addresses(self.items) as usize + address(wanted, address_bits(self.items));
        let addressed = self.starts[at] as usize..self.starts[at + 1] as usize;
        let all = self.band(band).get(addressed).unwrap_or_default();
        let from = all.partition_point(|&entry| fingerprint(entry) < wanted);
        let count = all[from..].partition_point(|&entry| fingerprint(entry) == wanted);
        &all[from..from + count]
    }

    /// Bytes that the run holds.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.starts) + size_of_val(&*self.entries)
    }

    /// What of it is not as [`Run::new`] would have made it, every slot being below `items`.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if !self.ends.is_sorted() || self.ends.last().copied().unwrap_or(0) != self.entries.len() as u64 {
            return Some("ends out of order");
        }
        let bits = address_bits(self.items);
        for (band, starts) in self.starts.chunks(addresses(self.items) as usize).enumerate() {
            let entries = self.band(band);
            if !entries.is_sorted_by(|a, b| a < b) {
                return Some("entries out of order");
            }
            if entries.iter().any(|&entry| slot(entry) >= self.items) {
                return Some("an entry of no item");
            }
            let addressed = |(bucket, ends): (usize, &[u32])| {
                let bucket_entries = entries.get(ends[0] as usize..ends[1] as usize);
                bucket_entries
                    .is_some_and(|entries| entries.iter().all(|&entry| address(fingerprint(entry), bits) == bucket))
            };
            let whole = starts[0] == 0 && starts[starts.len() - 1] as usize == entries.len();
            if !(whole && starts.windows(2).enumerate().all(addressed)) {
                return Some("addresses of other entries");
            }
        }
        None
    }

    pub(crate) fn into_owned(self) -> Run<'static> {
        Run {
            items: self.items,
            ends: self.ends.into_owned().into(),
            starts: self.starts.into_owned().into(),
            entries: self.entries.into_owned().into(),
        }
    }
}

/// The newest items, too few to be worth sorting: a query scans them.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    pub(crate) items: u32,
    bands: Vec<Vec<u64>>,
}

impl Buffer {
    /// Items at which it becomes a run. Scanning so many entries takes about as long as one look into a run.
    pub(crate) const FULL: u32 = 128;

    pub(crate) fn push(&mut self, slot: u32, fingerprints: impl ExactSizeIterator<Item = Option<u32>>) {
        self.bands.resize_with(fingerprints.len(), Vec::new);
        for (band, fingerprint) in self.bands.iter_mut().zip(fingerprints) {
            band.extend(fingerprint.map(|fingerprint| entry(fingerprint, slot)));
        }
        self.items += 1;
    }

    /// A band's entries, in the order of insertion.
    pub(crate) fn band(&self, band: usize) -> &[u64] {
        self.bands.get(band).map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(crate) fn bucket(&self, band: usize, wanted: u32) -> impl Iterator<Item = u64> {
        self.band(band).iter().copied().filter(move |&entry| fingerprint(entry) == wanted)
    }

    pub(crate) fn clear(&mut self) {
        self.items = 0;
        self.bands.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn buckets_are_what_a_scan_finds(
            fingerprints in prop::collection::vec(prop_oneof![0..4u32, any::<u32>(), Just(u32::MAX)], 1..200),
        ) {
            let items = fingerprints.len() as u32;
            let all = |band: usize| (0..).zip(&fingerprints).map(move |(slot, f)| entry(f ^ band as u32, slot));
            let run = Run::new(2, items, |band, out| out.extend(all(band)));
            prop_assert_eq!(run.fault(), None);
            let spent = run.bytes() as f64 / (2.0 * f64::from(items));
            prop_assert!(spent <= 12.0 + 12.0 / f64::from(items), "{} bytes per item and table", spent);
            for band in 0..2 {
                for &wanted in fingerprints.iter().chain(&[7, u32::MAX - 1]) {
                    let expected: Vec<u64> = all(band).filter(|&entry| fingerprint(entry) == wanted).collect();
                    prop_assert_eq!(run.bucket(band, wanted), expected);
                }
            }
        }
    }
}
