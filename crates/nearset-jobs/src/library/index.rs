//! What the records of a segment are looked up by.
//!
//! Claim: [`Index::meet`] finds every record that is listed under one of some codes, and reads only what it looks at: the file is mapped,
//! and each 4 kB of it are held against their checksum when they are first looked at.
//! Invariant: the bytes are a function of the records in their order, whether they are written at once or merged.
//!
//! Codes are good hashes, so a code's place among sorted ones is nearly known (Perl, Itai & Avni 1978: interpolation search). Most codes
//! that are asked for are in no segment: one of sixteen bits per posting, in the order of the codes too, says so without a search.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::Mmap;
use nearset::index::ShingleKeys;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{LibraryError, Noted, SET_CHECK, StoredSet, hex};
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

/// Postings that are sorted at once, unless that would be less than a sixteenth of all.
const SORTED_AT_ONCE: u64 = 1 << 20;

/// A record that is to be listed.
pub(super) struct Entry<'e> {
    /// Shingles of its set.
    pub size: u32,
    pub id_bytes: u32,
    /// As [`ShingleKeys`] writes them.
    pub keys: &'e [u64],
}

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

/// Writes an index, its sections in their order.
struct IndexWriter<'w> {
    out: &'w mut dyn Write,
    path: PathBuf,
    hash: Xxh3,
    bytes: u64,
    /// What comes behind the last whole block.
    block: Vec<u8>,
    checks: Vec<u8>,
    records: u32,
    sets_end: u64,
    common_words: u64,
    ends: Vec<u64>,
    /// How many postings there will be.
    postings: u64,
    hints: Vec<u64>,
}

impl<'w> IndexWriter<'w> {
    fn new(path: &Path, out: &'w mut dyn Write) -> Self {
        Self {
            out,
            path: path.to_owned(),
            hash: Xxh3::new(),
            bytes: 0,
            block: Vec::with_capacity(BLOCK),
            checks: Vec::new(),
            records: 0,
            sets_end: 0,
            common_words: 0,
            ends: Vec::new(),
            postings: 0,
            hints: Vec::new(),
        }
    }

    fn too_large(&self) -> LibraryError {
        LibraryError::io(&self.path)(io::Error::other("a segment of more than 2^32 records"))
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LibraryError> {
        while !bytes.is_empty() {
            let (own, others) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(own);
            bytes = others;
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), LibraryError> {
        if !self.block.is_empty() {
            self.checks.extend_from_slice(&xxh3_64(&self.block).to_le_bytes());
            let block = std::mem::take(&mut self.block);
            self.put(&block)?;
            self.block = block;
            self.block.clear();
        }
        Ok(())
    }

    /// Writes what has no checksum of its own.
    fn put(&mut self, bytes: &[u8]) -> Result<(), LibraryError> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(LibraryError::io(&self.path))
    }

    /// Writes the place of the next record, behind the sets of those before it.
    fn place(&mut self, size: u32, id_bytes: u32) -> Result<(), LibraryError> {
        let place = StoredSet { segment: 0, offset: self.sets_end, size, id_bytes };
        self.sets_end = place.end().ok_or_else(|| self.too_large())?;
        self.records = self.records.checked_add(1).ok_or_else(|| self.too_large())?;
        let mut bytes = [0; PLACE];
        bytes[..8].copy_from_slice(&place.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&size.to_le_bytes());
        bytes[12..].copy_from_slice(&id_bytes.to_le_bytes());
        self.write(&bytes)
    }

    fn common(&mut self, record: u32, common: &[u64]) -> Result<(), LibraryError> {
        self.common_words += 1 + common.len() as u64;
        self.write(&(u64::from(record) | (common.len() as u64) << 32).to_le_bytes())?;
        common.iter().try_for_each(|hash| self.write(&hash.to_le_bytes()))
    }

    /// Says how many postings follow.
    fn begin_postings(&mut self, postings: u64) {
        self.postings = postings;
        self.hints = vec![0; hint_words(postings).unwrap_or(0) as usize];
    }

    /// Writes the next part: its postings in ascending order, the fingerprint in the upper half and the record in the lower one.
    fn part(&mut self, postings: &[u64]) -> Result<(), LibraryError> {
        let part = self.ends.len() as u64;
        for posting in postings {
            let hint = hint(part << 56 | posting >> 32 << 24, self.postings);
            self.hints[(hint / 64) as usize] |= 1 << (hint % 64);
            self.write(&posting.to_le_bytes())?;
        }
        self.ends.push(self.ends.last().copied().unwrap_or(0) + postings.len() as u64);
        Ok(())
    }

    fn finish(mut self, name: String) -> Result<Noted, LibraryError> {
        let hints = std::mem::take(&mut self.hints);
        hints.iter().try_for_each(|word| self.write(&word.to_le_bytes()))?;
        self.end_block()?;
        let mut tail = std::mem::take(&mut self.checks);
        let counts = [u64::from(self.records), self.common_words];
        self.ends.iter().chain(&counts).for_each(|number| tail.extend_from_slice(&number.to_le_bytes()));
        let check = xxh3_64(&tail);
        tail.extend_from_slice(&check.to_le_bytes());
        self.put(&tail)?;
        Ok(Noted { name, bytes: self.bytes, xxh3: hex(self.hash.digest()) })
    }
}

/// Calls a function for each of some records, in order.
pub(super) type EachEntry<'e> =
    dyn FnMut(&mut dyn FnMut(Entry<'_>) -> Result<(), LibraryError>) -> Result<(), LibraryError> + 'e;

/// Writes the index of some records to `out`, which is at `path`. They are gone through several times, so that postings need no more memory than
/// a fraction of them takes.
pub(super) fn write(each: &mut EachEntry<'_>, path: &Path, out: &mut dyn Write) -> Result<Noted, LibraryError> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let folder = path.parent().unwrap_or(path);
    let (mut writer, mut keys) = (IndexWriter::new(path, out), ShingleKeys::default());
    let (mut lengths, mut has_common) = (vec![0; PARTS], false);
    each(&mut |entry| {
        let rare = entry.keys.first().map_or(0, |first| first >> 32);
        if !keys.read(entry.keys) || keys.size() != entry.size as usize {
            return Err(LibraryError::damaged(folder, format!("{name}: the keys of a record make no sense")));
        }
        keys.codes().for_each(|code| lengths[part_of(code)] += 1);
        has_common |= entry.keys.len() as u64 > 1 + rare;
        writer.place(entry.size, entry.id_bytes)
    })?;
    if has_common {
        let mut record = 0;
        each(&mut |entry| {
            let rare = entry.keys.first().map_or(0, |first| first >> 32) as usize;
            let common = entry.keys.get(1 + rare..).unwrap_or_default();
            record += 1;
            if common.is_empty() { Ok(()) } else { writer.common(record - 1, common) }
        })?;
    }
    let postings: u64 = lengths.iter().sum();
    writer.begin_postings(postings);
    let passes = (postings / SORTED_AT_ONCE + 1).min(16) as usize;
    for first in (0..PARTS).step_by(PARTS.div_ceil(passes)) {
        let parts = first..PARTS.min(first + PARTS.div_ceil(passes));
        let mut lists: Vec<Vec<u64>> = lengths[parts.clone()].iter().map(|&n| Vec::with_capacity(n as usize)).collect();
        let mut record = 0;
        if postings > 0 {
            each(&mut |entry| {
                keys.read(entry.keys);
                for code in keys.codes().filter(|&code| parts.contains(&part_of(code))) {
                    lists[part_of(code) - parts.start].push(u64::from(fingerprint(code)) << 32 | record);
                }
                record += 1;
                Ok(())
            })?;
        }
        for list in &mut lists {
            list.sort_unstable();
            writer.part(list)?;
        }
    }
    writer.finish(name)
}

/// Writes the index of the records of several segments, whose sets follow each other as they do.
pub(super) fn merge(indexes: &[Index], path: &Path, out: &mut dyn Write) -> Result<Noted, LibraryError> {
    let mut writer = IndexWriter::new(path, out);
    let mut firsts = Vec::new();
    for index in indexes {
        firsts.push(writer.records);
        for record in 0..index.records {
            let StoredSet { size, id_bytes, .. } = index.place(record, 0)?;
            writer.place(size, id_bytes)?;
        }
    }
    for (index, first) in indexes.iter().zip(&firsts) {
        index.each_common(|record, words| writer.common(first + record, &words[1..]))?;
    }
    writer.begin_postings(indexes.iter().map(Index::postings).sum());
    let mut postings: Vec<u64> = Vec::new();
    for part in 0..PARTS {
        postings.clear();
        for (index, &first) in indexes.iter().zip(&firsts) {
            let start = if part == 0 { 0 } else { index.ends[part - 1] };
            let [start, end] = [start, index.ends[part]].map(|at| index.layout.postings + 8 * at as usize);
            let own = index.range(start..end)?.as_chunks().0;
            for &posting in own {
                let posting = u64::from_le_bytes(posting);
                if posting as u32 >= index.records {
                    return Err(index.damaged("it lists what is not there"));
                }
                postings.push(posting + u64::from(first));
            }
        }
        // Ascending runs, which this sort merges.
        postings.sort();
        writer.part(&postings)?;
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    writer.finish(name)
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
mod tests {
    use std::collections::BTreeMap;

    use nearset::{Rng, Seed};

    use super::*;

    /// Sizes, bytes of ids and keys of records: some that share keys, some with a common part, some with nothing.
    fn records(count: usize) -> Vec<(u32, u32, Vec<u64>)> {
        let mut rng = Rng::new(Seed::new(3));
        (0..count)
            .map(|_| {
                let rare = rng.below(9);
                let common = if rng.below(5) == 0 { rng.below(40) } else { 0 };
                let size = (rare + common + rng.below(100)) as u32;
                // Small hashes, as keys are, and few of them, so that there are lists.
                let mut keys: Vec<u64> = (0..rare + common).map(|_| rng.below(count as u64) << 30).collect();
                keys.insert(0, u64::from(size) | rare << 32);
                (size, rng.below(30) as u32, keys)
            })
            .collect()
    }

    fn written(records: &[(u32, u32, Vec<u64>)]) -> (Vec<u8>, Noted) {
        let mut out = Vec::new();
        let mut each = |each: &mut dyn FnMut(Entry<'_>) -> Result<(), LibraryError>| {
            records.iter().try_for_each(|&(size, id_bytes, ref keys)| each(Entry { size, id_bytes, keys }))
        };
        let noted = write(&mut each, Path::new("some/1.index"), &mut out).unwrap();
        (out, noted)
    }

    fn held(bytes: Vec<u8>) -> Result<Index, LibraryError> {
        Index::held(Path::new("some"), "1.index", bytes)
    }

    fn codes(keys: &[u64]) -> Vec<u64> {
        let mut read = ShingleKeys::default();
        assert!(read.read(keys));
        read.codes().collect()
    }

    #[test]
    fn every_record_is_met_by_its_codes_and_no_other() {
        for count in [0, 1, 7, 500, 20_000] {
            let records = records(count);
            let (bytes, noted) = written(&records);
            assert_eq!((noted.bytes, noted.xxh3), (bytes.len() as u64, hex(xxh3_64(&bytes))));
            let index = held(bytes).unwrap();
            index.check().unwrap();
            let mut expected = BTreeMap::<u64, Vec<(u64, u32, u32)>>::new();
            let (mut common, mut end) = (Vec::new(), 0);
            for (record, (size, id_bytes, keys)) in (0..).zip(&records) {
                for code in codes(keys) {
                    expected.entry(code).or_default().push((code, 1000 + record, *size));
                }
                let place = StoredSet { segment: 4, offset: end, size: *size, id_bytes: *id_bytes };
                assert_eq!(index.place(record, 4).unwrap(), place);
                end += 8 * u64::from(*size) + u64::from(*id_bytes) + 4;
                let rare = (keys[0] >> 32) as usize;
                if keys.len() > 1 + rare {
                    common.push((record, [&[u64::from(*size)], &keys[1 + rare..]].concat()));
                }
            }
            assert_eq!((index.records(), index.sets_end().unwrap()), (count as u32, end));
            let mut found = Vec::new();
            let collected = index.each_common(|record, words| {
                found.push((record, words.to_vec()));
                Ok::<_, LibraryError>(())
            });
            collected.unwrap();
            assert_eq!(found, common);
            // Codes that are there, their neighbours, and others.
            let mut rng = Rng::new(Seed::new(4));
            let mut asked: Vec<u64> = expected
                .keys()
                .flat_map(|code| [code.wrapping_sub(1 << 24), *code, code.wrapping_add(1 << 24)])
                .collect();
            asked.extend((0..5000).map(|_| rng.below(1 << 40) << 24));
            asked.extend([0, u64::MAX << 24]);
            asked.sort_unstable();
            asked.dedup();
            for most in [usize::MAX, 3] {
                let mut met = Vec::new();
                asked.iter().for_each(|&code| index.meet(code, (1000, most), &mut met).unwrap());
                let expected: Vec<_> = expected.values().flat_map(|list| list.iter().take(most)).copied().collect();
                assert_eq!(met, expected, "{count} records");
            }
        }
    }

    /// However many passes it takes, and whether it is written at once or merged.
    #[test]
    fn an_index_is_a_function_of_its_records() {
        let records = records(300_000);
        let all = written(&records);
        assert!(held(all.0.clone()).unwrap().postings() > SORTED_AT_ONCE);
        let parts = [0..0, 0..1, 1..40_000, 40_000..200_000, 200_000..300_000];
        let parts: Vec<Index> = parts.map(|part| held(written(&records[part]).0).unwrap()).into();
        let mut merged = Vec::new();
        let noted = merge(&parts, Path::new("some/1.index"), &mut merged).unwrap();
        assert!((merged, noted) == all);
    }

    #[test]
    fn whatever_is_damaged_is_found_where_it_is_looked_at() {
        let records = records(2000);
        let (whole, _) = written(&records);
        let mut asked: Vec<u64> = records.iter().flat_map(|(_, _, keys)| codes(keys)).collect();
        asked.sort_unstable();
        asked.dedup();
        let mut expected = Vec::new();
        let meet = |index: &Index, met: &mut Vec<_>| asked.iter().try_for_each(|&code| index.meet(code, (0, 9), met));
        meet(&held(whole.clone()).unwrap(), &mut expected).unwrap();
        let mut rng = Rng::new(Seed::new(5));
        for case in 0..500 {
            let mut bytes = whole.clone();
            match case {
                0..50 => bytes.truncate(rng.below(whole.len() as u64) as usize),
                50..100 => bytes.extend(std::iter::repeat_n(0, 1 + case - 50)),
                _ => bytes[rng.below(whole.len() as u64) as usize] ^= 1 << rng.below(8),
            }
            let Ok(index) = held(bytes) else { continue };
            assert!(index.check().is_err(), "{case}");
            let mut met = Vec::new();
            assert!(meet(&index, &mut met).is_err() || met == expected, "{case}");
        }
    }
}
