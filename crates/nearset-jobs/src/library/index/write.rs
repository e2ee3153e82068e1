//! Writes an index: of records, or of segments that are merged.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nearset::index::ShingleKeys;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{BLOCK, Index, PARTS, PLACE, fingerprint, hint, hint_words, part_of};
use crate::library::{LibraryError, Noted, StoredSet, hex};

/// Postings that are sorted at once, unless that would be less than a sixteenth of all.
pub(super) const SORTED_AT_ONCE: u64 = 1 << 20;

/// A record that is to be listed.
pub struct Entry<'e> {
    /// Shingles of its set.
    pub size: u32,
    pub id_bytes: u32,
    /// As [`ShingleKeys`] writes them.
    pub keys: &'e [u64],
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
pub type EachEntry<'e> =
    dyn FnMut(&mut dyn FnMut(Entry<'_>) -> Result<(), LibraryError>) -> Result<(), LibraryError> + 'e;

/// Writes the index of some records to `out`, which is at `path`. They are gone through several times, so that postings need no more memory than
/// a fraction of them takes.
pub fn write(each: &mut EachEntry<'_>, path: &Path, out: &mut dyn Write) -> Result<Noted, LibraryError> {
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
pub fn merge(indexes: &[Index], path: &Path, out: &mut dyn Write) -> Result<Noted, LibraryError> {
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
