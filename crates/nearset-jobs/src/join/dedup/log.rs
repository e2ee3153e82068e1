//! What an unfinished run knows, appended record by record, so that a checkpoint only has to note how long it is.
//!
//! Layout, little-endian: `0`, the entry that a record is near (4 bytes); or `1`, a new entry: its place (24), the length of its id (4),
//! how many words its keys take (4), the keys (8 each), the id.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};

use nearset::index::CommonShingles;
use nearset_records::{Scratch, StateFolder};

use super::super::texts::Place;
use crate::run::RunError;

const FILE: &str = "entries.log";

const MEMBER: u8 = 0;
const ENTRY: u8 = 1;

/// The longest id that is believed.
const LONGEST_ID: usize = 1 << 30;

/// The log of a run that can be resumed.
pub(super) struct Log {
    folder: StateFolder,
    file: Scratch,
    line: Vec<u8>,
}

/// A record that others are compared with.
pub(super) struct Entry<'l> {
    pub keys: &'l [u64],
    pub place: Place,
    pub id: &'l str,
}

/// What the log says, in its order.
pub(super) enum Event<'l> {
    /// A record is near this entry.
    Member(u32),
    Entry(Entry<'l>),
}

impl Log {
    /// The log of so many bytes: 0 for a new one.
    pub fn open(folder: &StateFolder, length: u64) -> Result<Self, RunError> {
        folder.create()?;
        let file = Scratch::open(&folder.file(FILE), length).map_err(|cause| folder.damaged(cause))?;
        Ok(Self { folder: folder.clone(), file, line: Vec::new() })
    }

    pub fn member(&mut self, of: u32) -> Result<(), RunError> {
        self.line.clear();
        self.line.push(MEMBER);
        self.line.extend_from_slice(&of.to_le_bytes());
        self.append()
    }

    pub fn entry(&mut self, entry: &Entry<'_>) -> Result<(), RunError> {
        let line = &mut self.line;
        line.clear();
        line.push(ENTRY);
        line.extend_from_slice(&entry.place.to_bytes());
        line.extend_from_slice(&(entry.id.len() as u32).to_le_bytes());
        line.extend_from_slice(&(entry.keys.len() as u32).to_le_bytes());
        entry.keys.iter().for_each(|key| line.extend_from_slice(&key.to_le_bytes()));
        line.extend_from_slice(entry.id.as_bytes());
        self.append()
    }

    fn append(&mut self) -> Result<(), RunError> {
        match self.file.append(&self.line) {
            Ok(_) => Ok(()),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// Makes it durable, and says how long it is.
    pub fn sync(&mut self) -> Result<u64, RunError> {
        self.file.sync().map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> RunError {
        nearset_records::OutputError::from_io(self.folder.path(), cause).into()
    }
}

/// Reads the first `length` bytes of a log.
pub(super) fn replay(folder: &StateFolder, length: u64, mut each: impl FnMut(Event<'_>)) -> Result<(), RunError> {
    let mut read = || -> io::Result<()> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(folder.file(FILE))?.take(length));
        let mut keys = Vec::new();
        let mut id = Vec::new();
        while let Some(kind) = next(&mut file)? {
            if kind == [MEMBER] {
                each(Event::Member(u32::from_le_bytes(bytes(&mut file)?)));
                continue;
            }
            let place = Place::from_bytes(bytes(&mut file)?);
            let id_bytes = u32::from_le_bytes(bytes(&mut file)?) as usize;
            let words = u32::from_le_bytes(bytes(&mut file)?);
            keys.clear();
            for _ in 0..words {
                keys.push(u64::from_le_bytes(bytes(&mut file)?));
            }
            if kind != [ENTRY] || id_bytes > LONGEST_ID {
                return Err(ErrorKind::InvalidData.into());
            }
            id.clear();
            if file.by_ref().take(id_bytes as u64).read_to_end(&mut id)? < id_bytes {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let id = std::str::from_utf8(&id).map_err(|_| ErrorKind::InvalidData)?;
            each(Event::Entry(Entry { keys: &keys, place, id }));
        }
        Ok(())
    };
    read().map_err(|cause| folder.damaged(format!("{FILE}: {cause}")).into())
}

/// The common shingles that the run has begun with: a mended input would have others, and keys that fit none of those before.
const MODEL: &str = "model.bin";

pub(super) fn save_model(folder: &StateFolder, model: &CommonShingles) -> Result<(), RunError> {
    folder.create()?;
    let path = folder.file(MODEL);
    let bytes: Vec<u8> = model.as_slice().iter().flat_map(|hash| hash.to_le_bytes()).collect();
    let written = Scratch::open(&path, 0).and_then(|mut file| file.append(&bytes).and_then(|_| file.sync()));
    written.map(drop).map_err(|cause| nearset_records::OutputError::from_io(&path, cause).into())
}

pub(super) fn load_model(folder: &StateFolder) -> Result<CommonShingles, RunError> {
    let bytes = std::fs::read(folder.file(MODEL)).map_err(|cause| folder.damaged(format!("{MODEL}: {cause}")))?;
    Ok(bytes.as_chunks().0.iter().map(|&hash| u64::from_le_bytes(hash)).collect())
}

/// The next byte; `None` at the end.
fn next(file: &mut impl Read) -> io::Result<Option<[u8; 1]>> {
    match bytes(file) {
        Ok(byte) => Ok(Some(byte)),
        Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(cause) => Err(cause),
    }
}

pub(super) fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
