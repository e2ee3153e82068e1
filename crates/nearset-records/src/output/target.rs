//! What an output's name leads to, links followed.
//!
//! Claim: a name that leads to anything but a regular file is written through: it is neither replaced nor removed, nor is anything
//! put beside it. A link to a regular file stays, and what it leads to is replaced.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::remote::{is_same_object, is_url};

/// Links that are followed until they are taken for a circle, as by Linux.
const MOST_LINKS: usize = 40;

/// The descriptor of standard output.
const STDOUT: u32 = 1;

/// What messages call standard output.
pub(super) const STDOUT_NAME: &str = "<stdout>";

/// What an output's name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A regular file, there or not: written beside its place and renamed into it.
    File(PathBuf),
    /// A device, named pipe or socket.
    Through(PathBuf),
    /// A descriptor that was open when the program started, such as `/dev/stdout` or `>(gzip)`. Where it leads to a regular file, that
    /// file is the shell's: it may have been opened to append, and others may go on writing to it.
    Descriptor(u32),
    /// An object of a store, which appears when all of it was sent.
    Remote(String),
}

impl Target {
    pub const STDOUT: Self = Self::Descriptor(STDOUT);

    /// `-` is standard output.
    pub fn of(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::STDOUT);
        }
        if let Some(url) = path.to_str().filter(|path| is_url(path)) {
            return Ok(Self::Remote(url.to_owned()));
        }
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            if let Some(number) = descriptor(&path) {
                return Ok(Self::Descriptor(number));
            }
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => path = folder_of(&path).join(fs::read_link(&path)?),
                Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => return Ok(Self::Through(path)),
                // What can't be looked at can't be created either, and creating it says why.
                _ => return Ok(Self::File(path)),
            }
        }
        Err(io::Error::other("its links lead round in a circle"))
    }

    /// Opens what is written through.
    pub fn open(&self) -> io::Result<File> {
        match self {
            Self::File(path) => OpenOptions::new().write(true).open(path),
            Self::Through(path) => open_through(path),
            Self::Descriptor(number) => duplicate(*number),
            Self::Remote(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Returns the number behind names such as `/dev/fd/3` and `/proc/self/fd/3`.
fn descriptor(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let number = name.parse().ok().filter(|_| name.bytes().all(|byte| byte.is_ascii_digit()))?;
    let folder = folder_of(path).canonicalize().ok()?;
    let own = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];
    own.iter().any(|own| Path::new(own).canonicalize().is_ok_and(|own| own == folder)).then_some(number)
}

#[cfg(unix)]
fn open_through(path: &Path) -> io::Result<File> {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;
    if fs::metadata(path)?.file_type().is_socket() {
        return UnixStream::connect(path).map(|stream| File::from(OwnedFd::from(stream)));
    }
    OpenOptions::new().write(true).open(path)
}

#[cfg(not(unix))]
fn open_through(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Returns the descriptor once more, with the place that it is at. Opening its name would start a regular file from its first byte.
#[cfg(unix)]
#[allow(unsafe_code)]
fn duplicate(number: u32) -> io::Result<File> {
    use std::os::fd::BorrowedFd;
    let number = i32::try_from(number).ok().filter(|&number| number >= 0).ok_or(io::ErrorKind::NotFound)?;
    // SAFETY: it is borrowed for this call only, whose one use of it is to duplicate it. If it is not open, that is an error; if another
    // thread closes it at this moment, that, or a duplicate of what was opened instead.
    Ok(File::from(unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn duplicate(_: u32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the folder of a path.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns whether an output is not a file of its own but written through: standard output, a pipe, a device, a socket, an object of a store. Its
/// bytes are gone as they are written, so a run towards it can't be resumed.
pub fn is_written_through(path: &Path) -> bool {
    !matches!(Target::of(path), Ok(Target::File(_)) | Err(_))
}

/// Returns whether an output is standard output, by whatever name, that in messages included.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new(STDOUT_NAME) || matches!(Target::of(path), Ok(Target::STDOUT))
}

/// Returns whether two names are those of one output, in which what is written to both would be mixed up: one file, one object, or one folder. Nothing is
/// in `/dev/null`.
pub fn is_same_output(a: &Path, b: &Path) -> bool {
    let same = || match (Target::of(a), Target::of(b)) {
        _ if a.is_dir() && b.is_dir() => a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b),
        (Ok(Target::File(a)), Ok(Target::File(b))) => in_full(&a) == in_full(&b),
        (Ok(Target::Remote(_)), Ok(Target::Remote(_))) => is_same_object(a, b),
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    a != Path::new("/dev/null") && (a == b || same())
}

/// Returns a file's name by which folder it lies in, however that was named.
fn in_full(path: &Path) -> PathBuf {
    match (folder_of(path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}
