//! Scratch space: a file that is appended to and read at any place, and that goes away with the run.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes that are held back before they are written.
const BUFFER: usize = 1 << 20;

/// A file that is appended to and read at any place.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// Bytes in the file; `pending` comes behind them.
    length: u64,
    pending: Vec<u8>,
}

impl Scratch {
    /// Creates a file without a name in a folder: it goes away however the program ends.
    ///
    /// # Errors
    /// If there is no room, or no such folder.
    pub fn unnamed(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(folder)?, length: 0, pending: Vec::new() })
    }

    /// Opens the file of this name, cut to this length: 0 for a new one, what [`Scratch::sync`] returned for one that is continued.
    ///
    /// # Errors
    /// If it can't be opened, or is shorter.
    pub fn open(path: &Path, length: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.set_len(length)?;
        Ok(Self { file, length, pending: Vec::new() })
    }

    /// Returns the bytes appended so far.
    pub fn len(&self) -> u64 {
        self.length + self.pending.len() as u64
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes, and says where they begin.
    ///
    /// # Errors
    /// If there is no room.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.len();
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BUFFER {
            self.flush()?;
        }
        Ok(offset)
    }

    /// Fills the buffer with the bytes from `offset` on.
    ///
    /// # Errors
    /// If there are not as many, or the disk fails.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let in_file = self.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (written, waiting) = bytes.split_at_mut(in_file);
        read_exact_at(&self.file, offset, written)?;
        let from = offset.saturating_sub(self.length) as usize;
        let pending = self.pending.get(from..).and_then(|pending| pending.get(..waiting.len()));
        waiting.copy_from_slice(pending.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Makes everything durable, and says how long it is.
    ///
    /// # Errors
    /// If there is no room, or the disk fails.
    pub fn sync(&mut self) -> io::Result<u64> {
        self.flush()?;
        self.file.sync_data()?;
        Ok(self.length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.write_all(&self.pending)?;
            self.length += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }
}

/// The folder for scratch files of a run that has named none: the one for temporary files, unless that lies in memory, which scratch space is
/// there to spare. Then it is `/var/tmp`, or the folder of the output.
pub fn scratch_folder(out: Option<&Path>) -> PathBuf {
    let temporary = std::env::temp_dir();
    if !is_memory(&temporary) {
        return temporary;
    }
    let beside = out.and_then(Path::parent).map(|parent| if parent == Path::new("") { Path::new(".") } else { parent });
    let others = [Some(Path::new("/var/tmp")), beside];
    let is_disk = |folder: &&Path| folder.is_dir() && !is_memory(folder);
    others.into_iter().flatten().find(is_disk).map_or(temporary, Path::to_owned)
}

/// Bytes that can still be written to a folder, if that can be known.
pub fn free_space(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(folder).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    #[cfg(not(unix))]
    return None;
}

/// Whether a folder lies in memory and not on a disk.
fn is_memory(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        const TMPFS: i64 = 0x0102_1994;
        const RAMFS: i64 = 0x8584_58f6;
        // The field's type differs by platform.
        #[allow(clippy::unnecessary_cast)]
        rustix::fs::statfs(folder).is_ok_and(|stat| [TMPFS, RAMFS].contains(&(stat.f_type as i64)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}

/// Fills the buffer with a file's bytes from `offset` on, wherever others read in it.
///
/// # Errors
/// If there are not as many, or the disk fails.
pub fn read_exact_at(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let (mut offset, mut bytes) = (offset, bytes);
        while !bytes.is_empty() {
            let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += read as u64;
            bytes = &mut bytes[read..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_can_be_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let mut scratch = Scratch::open(&path, 0).unwrap();
        assert_eq!((scratch.append(b"one").unwrap(), scratch.append(b"two").unwrap()), (0, 3));
        let length = scratch.sync().unwrap();
        scratch.append(&vec![7; 2 * BUFFER]).unwrap();
        drop(scratch);
        let mut again = Scratch::open(&path, length).unwrap();
        assert_eq!(again.append(b"three").unwrap(), 6);
        let mut bytes = [0; 5];
        again.read_at(3, &mut bytes).unwrap();
        assert_eq!(&bytes, b"twoth");
        assert!(Scratch::open(&path, 100).is_err());
    }
}
