//! Entries: what an index is made from.
//!
//! For each record u32 shingles of its set, u32 bytes of its id, u32 words of its keys, and the keys.

use std::io;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::index::Entry;
use super::{LibraryError, hex};

/// Bytes of an entry before its keys.
const HEAD: usize = 12;

/// Bytes that are read at once.
const PIECE: u64 = 1 << 20;

/// Overwrites `line` with an entry. Returns whether it can be one.
pub(super) fn write(size: usize, id_bytes: usize, keys: &[u64], line: &mut Vec<u8>) -> bool {
    line.clear();
    for number in [size, id_bytes, keys.len()] {
        let Ok(number) = u32::try_from(number) else { return false };
        line.extend_from_slice(&number.to_le_bytes());
    }
    keys.iter().for_each(|key| line.extend_from_slice(&key.to_le_bytes()));
    true
}

/// Entries one after the other, in a file of a library or in scratch space.
pub(super) struct Entries<'e> {
    pub folder: &'e Path,
    pub name: &'e str,
    pub bytes: u64,
    /// The checksum of all, if it is known.
    pub xxh3: Option<&'e str>,
}

impl Entries<'_> {
    /// Calls `each` for every entry, in order; `read` fills a buffer with the bytes from an offset on.
    pub fn each(
        &self,
        read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
        each: &mut dyn FnMut(Entry<'_>) -> Result<(), LibraryError>,
    ) -> Result<(), LibraryError> {
        let path = self.folder.join(self.name);
        let (mut piece, mut keys, mut hash) = (Vec::new(), Vec::new(), Xxh3::new());
        let mut offset = 0;
        while offset < self.bytes || !piece.is_empty() {
            let (held, more) = (piece.len(), (self.bytes - offset).min(PIECE));
            piece.resize(held + more as usize, 0);
            read(offset, &mut piece[held..]).map_err(LibraryError::io(&path))?;
            hash.update(&piece[held..]);
            offset += more;
            let mut left = &piece[..];
            while let Some((size, id_bytes, words, behind)) = split(left) {
                left = behind;
                keys.clear();
                keys.extend(words.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
                each(Entry { size, id_bytes, keys: &keys })?;
            }
            let read = piece.len() - left.len();
            if more == 0 && read == 0 {
                return Err(LibraryError::damaged(self.folder, format!("{}: it is cut off", self.name)));
            }
            piece.drain(..read);
        }
        if self.xxh3.is_some_and(|xxh3| xxh3 != hex(hash.digest())) {
            return Err(LibraryError::damaged(self.folder, format!("the checksum of {} is wrong", self.name)));
        }
        Ok(())
    }
}

/// The first entry of some, if all of it is there: the size of its set, the length of its id, its keys, and what comes behind.
fn split(bytes: &[u8]) -> Option<(u32, u32, &[u8], &[u8])> {
    let (head, behind) = bytes.split_first_chunk::<HEAD>()?;
    let [size, id_bytes, key_words] =
        [0, 4, 8].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let (words, behind) = behind.split_at_checked(8 * key_words as usize)?;
    Some((size, id_bytes, words, behind))
}
