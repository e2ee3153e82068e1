//! What the records of a segment are looked up by.
//!
//! Claim: [`Index::meet`] finds every record that is listed under one of some codes, and reads only what it looks at: the file is mapped,
//! and each 4 kB of it are held against their checksum when they are first looked at.
//! Invariant: the bytes are a function of the records in their order, whether they are written at once or merged.
//!
//! Codes are good hashes, so a code's place among sorted ones is nearly known (Perl, Itai & Avni 1978: interpolation search). Most codes
//! that are asked for are in no segment: one of sixteen bits per posting, in the order of the codes too, says so without a search.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

mod write;

pub(super) use write::{Entry, merge, write};

use super::{LibraryError, Noted, SET_CHECK, StoredSet};
use crate::filter_file::map;

/// Bytes that have a checksum of their own.
const BLOCK: usize = 4096;

/// Parts of all codes, by their upper 8 bits.
const PARTS: usize = 256;

/// Bytes of a place: where a set begins among those of its segment, its shingles, and the bytes of its id.
const PLACE: usize = 16;

/// Bits per posting that say which codes there may be.
const HINTS: u64 = 16;

/// Bytes behind the checksums of blocks: where each part ends, the records, the words of common parts, a checksum.
const TAIL: usize = 8 * (PARTS + 3);

/// Where the parts of an index begin.
struct Layout {
    common: usize,
    postings: usize,
    hints: usize,
    checks: usize,
    tail: usize,
}

impl Layout {
    /// `None` if there are more than can be.
    fn new(records: u64, common_words: u64, postings: u64) -> Option<Self> {
        let common = records.checked_mul(PLACE as u64)?;
        let first_posting = common.checked_add(common_words.checked_mul(8)?)?;
        let hints = first_posting.checked_add(postings.checked_mul(8)?)?;
        let checks = hints.checked_add(8 * hint_words(postings)?)?;
        let tail = checks.checked_add(8 * checks.div_ceil(BLOCK as u64))?;
        tail.checked_add(TAIL as u64)?;
        let place = |at: u64| usize::try_from(at).ok();
        Some(Self {
            common: place(common)?,
            postings: place(first_posting)?,
            hints: place(hints)?,
            checks: place(checks)?,
            tail: place(tail)?,
        })
    }
}

fn hint_words(postings: u64) -> Option<u64> {
    Some(postings.checked_mul(HINTS)?.div_ceil(64))
}

/// The bit that says whether a code may be there.
fn hint(code: u64, postings: u64) -> u64 {
    ((u128::from(code) * u128::from(HINTS * postings)) >> 64) as u64
}

fn part_of(code: u64) -> usize {
    (code >> 56) as usize
}

/// What a code is in its part.
fn fingerprint(code: u64) -> u32 {
    (code >> 24) as u32
}

enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

/// What the records of a segment are looked up by.
pub(crate) struct Index {
    folder: PathBuf,
    name: String,
    bytes: Bytes,
    layout: Layout,
    /// By part.
    ends: Vec<u64>,
    records: u32,
    /// By block: whether it was held against its checksum.
    checked: Vec<AtomicU64>,
}

impl Index {
    /// Maps the file of an index.
    pub(super) fn open(folder: &Path, noted: &Noted) -> Result<Self, LibraryError> {
        let path = folder.join(&noted.name);
        let mapped = File::open(&path).and_then(|file| map(&file)).map_err(LibraryError::io(&path))?;
        Self::new(folder, &noted.name, Bytes::Mapped(mapped))
    }

    /// Takes an index that was built in memory, of a file of this name.
    pub fn held(folder: &Path, name: &str, bytes: Vec<u8>) -> Result<Self, LibraryError> {
        Self::new(folder, name, Bytes::Held(bytes))
    }

    fn new(folder: &Path, name: &str, bytes: Bytes) -> Result<Self, LibraryError> {
        let all: &[u8] = match &bytes {
            Bytes::Mapped(map) => map,
            Bytes::Held(held) => held,
        };
        let damaged = || LibraryError::damaged(folder, format!("{name}: it makes no sense"));
        let tail = all.last_chunk::<TAIL>().ok_or_else(damaged)?;
        let mut words = tail.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
        let ends: Vec<u64> = words.by_ref().take(PARTS).collect();
        let [records, common_words, check] = [words.next(), words.next(), words.next()].map(Option::unwrap_or_default);
        let layout = Layout::new(records, common_words, ends[PARTS - 1]).ok_or_else(damaged)?;
        if layout.tail + TAIL != all.len() || !ends.is_sorted() {
            return Err(damaged());
        }
        if xxh3_64(&all[layout.checks..all.len() - 8]) != check {
            return Err(LibraryError::damaged(folder, format!("the checksum of {name} is wrong")));
        }
        let records = u32::try_from(records).map_err(|_| damaged())?;
        let blocks = layout.checks.div_ceil(BLOCK);
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), bytes, layout, ends, records, checked })
    }

    fn damaged(&self, what: &str) -> LibraryError {
        LibraryError::damaged(&self.folder, format!("{}: {what}", self.name))
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Held(held) => held,
        }
    }

    /// Bytes in memory.
    pub fn held_bytes(&self) -> u64 {
        match &self.bytes {
            Bytes::Mapped(_) => 0,
            Bytes::Held(held) => held.capacity() as u64,
        }
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many records it lists.
    pub fn records(&self) -> u32 {
        self.records
    }

    fn postings(&self) -> u64 {
        self.ends[PARTS - 1]
    }

    /// As many records as may be found by their common part, or more: each of those takes a word and one per shingle.
    pub fn most_common(&self) -> u64 {
        let words = (self.layout.postings - self.layout.common) as u64 / 8;
        (words / 2).min(self.records.into())
    }

    /// That a block is what was written.
    #[inline]
    fn check_block(&self, block: usize) -> Result<(), LibraryError> {
        if self.checked[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1 {
            return Ok(());
        }
        self.check_new_block(block)
    }

    #[cold]
    fn check_new_block(&self, block: usize) -> Result<(), LibraryError> {
        let (start, end) = (block * BLOCK, self.layout.checks.min((block + 1) * BLOCK));
        let check = &self.bytes()[self.layout.checks + 8 * block..][..8];
        if check != xxh3_64(&self.bytes()[start..end]).to_le_bytes() {
            return Err(LibraryError::damaged(&self.folder, format!("the checksum of {} is wrong", self.name)));
        }
        self.checked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes in front of the checksums.
    fn range(&self, range: Range<usize>) -> Result<&[u8], LibraryError> {
        (range.start / BLOCK..range.end.div_ceil(BLOCK)).try_for_each(|block| self.check_block(block))?;
        Ok(&self.bytes()[range])
    }

    /// The word at a multiple of 8.
    #[inline]
    fn word(&self, at: usize) -> Result<u64, LibraryError> {
        self.check_block(at / BLOCK)?;
        let word = self.bytes()[at..].first_chunk().copied().unwrap_or_default();
        Ok(u64::from_le_bytes(word))
    }

    fn posting(&self, at: u64) -> Result<u64, LibraryError> {
        self.word(self.layout.postings + 8 * at as usize)
    }

    /// Where the set of a record lies, in the segment of this number.
    pub fn place(&self, record: u32, segment: u32) -> Result<StoredSet, LibraryError> {
        let at = PLACE * record as usize;
        let (offset, sizes) = (self.word(at)?, self.word(at + 8)?);
        Ok(StoredSet { segment, offset, size: sizes as u32, id_bytes: (sizes >> 32) as u32 })
    }

    /// Where the last set ends, its checksum included.
    pub fn sets_end(&self) -> Result<u64, LibraryError> {
        let Some(last) = self.records.checked_sub(1) else { return Ok(0) };
        self.place(last, 0)?.end().ok_or_else(|| self.damaged("it does not fit its sets"))
    }

    #[inline]
    fn may_list(&self, code: u64) -> Result<bool, LibraryError> {
        let hint = hint(code, self.postings());
        Ok(self.word(self.layout.hints + (hint / 64 * 8) as usize)? >> (hint % 64) & 1 == 1)
    }

    /// Appends the records that are listed under a code, at most so many and the oldest first: the code, the record's number with `first`
    /// added, and its size.
    pub fn meet(
        &self,
        code: u64,
        (first, most): (u32, usize),
        met: &mut Vec<(u64, u32, u32)>,
    ) -> Result<(), LibraryError> {
        debug_assert!(code.trailing_zeros() >= 24, "codes are the upper 40 bits of hashes");
        if most == 0 || self.postings() == 0 || !self.may_list(code)? {
            return Ok(());
        }
        let end = self.ends[part_of(code)];
        let from = self.first_from(code)?;
        for at in (from..end).take(most) {
            let posting = self.posting(at)?;
            let record = posting as u32;
            if (posting >> 32) as u32 != fingerprint(code) {
                break;
            }
            if record >= self.records {
                return Err(self.damaged("it lists what is not there"));
            }
            met.push((code, first + record, self.word(PLACE * record as usize + 8)? as u32));
        }
        Ok(())
    }

    /// The first posting of a code's part that does not come before it.
    fn first_from(&self, code: u64) -> Result<u64, LibraryError> {
        let part = part_of(code);
        // What comes before `low` is smaller, and what comes from `high` on is not.
        let (mut low, mut high) = (if part == 0 { 0 } else { self.ends[part - 1] }, self.ends[part]);
        let is_smaller = |at: u64| Ok::<_, LibraryError>(((self.posting(at)? >> 32) as u32) < fingerprint(code));
        let guess = low + ((u128::from(fingerprint(code)) * u128::from(high - low)) >> 32) as u64;
        let mut step = 4;
        if guess < high && is_smaller(guess)? {
            low = guess + 1;
            while low + step < high {
                if !is_smaller(low + step)? {
                    high = low + step;
                    break;
                }
                low += step + 1;
                step *= 2;
            }
        } else {
            high = guess.min(high);
            while low + step < high {
                if is_smaller(high - step)? {
                    low = high - step + 1;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if is_smaller(middle)? { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Calls `each` for every record that is looked up by its common part, with what [`ShingleKeys`] reads: no rare shingles, and the common part.
    pub fn each_common<E: From<LibraryError>>(
        &self,
        mut each: impl FnMut(u32, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut at, end) = (self.layout.common, self.layout.postings);
        let mut words = Vec::new();
        while at < end {
            let head = self.word(at)?;
            let (record, shingles) = (head as u32, (head >> 32) as usize);
            at += 8;
            if record >= self.records || shingles > (end - at) / 8 {
                return Err(self.damaged("it lists what is not there").into());
            }
            words.clear();
            words.push(self.word(PLACE * record as usize + 8)? & u64::from(u32::MAX));
            let common = self.range(at..at + 8 * shingles)?;
            words.extend(common.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
            each(record, &words)?;
            at += 8 * shingles;
        }
        Ok(())
    }

    /// Reads all of it, and holds it against what it must be.
    pub fn check(&self) -> Result<(), LibraryError> {
        let mut end = 0;
        for record in 0..self.records {
            let place = self.place(record, 0)?;
            if place.offset != end {
                return Err(self.damaged("it does not fit its sets"));
            }
            end = place.end().ok_or_else(|| self.damaged("it does not fit its sets"))?;
        }
        self.each_common(|_, _| Ok::<_, LibraryError>(()))?;
        let mut start = 0;
        for (part, &end) in self.ends.iter().enumerate() {
            let mut last = None;
            for at in start..end {
                let posting = self.posting(at)?;
                let code = (part as u64) << 56 | posting >> 32 << 24;
                if last > Some(posting) || posting as u32 >= self.records || !self.may_list(code)? {
                    return Err(self.damaged("its lists are out of order"));
                }
                last = Some(posting);
            }
            start = end;
        }
        Ok(())
    }
}

impl StoredSet {
    /// Bytes of the set and the id.
    pub(super) fn bytes(self) -> u64 {
        8 * u64::from(self.size) + u64::from(self.id_bytes)
    }

    /// Where it ends, its checksum included.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.bytes() + SET_CHECK as u64)
    }
}

#[cfg(test)]
mod tests;
