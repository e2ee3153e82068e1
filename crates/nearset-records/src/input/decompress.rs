//! Opening a source as a stream of uncompressed bytes that knows where it is.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use xxhash_rust::xxh3::Xxh3;

use super::{Location, Source, npz};
use crate::error::InputError;
use crate::format::Compression;
use crate::remote::{Object, RemoteReader};

pub(super) const DISK_BUFFER: usize = 256 << 10;

/// Files made with `zstd --long=31`, as some public corpora are, need a window of 2 GiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;

/// The same bound for xz, in KiB: its largest preset takes 64 MiB, and a header can ask for 4 GiB before a byte is read.
const XZ_MEMORY_KB_MAX: u32 = 2 << 20;

/// What was read of standard input and is still to be given out: there is one such pipe.
static AHEAD: Mutex<VecDeque<u8>> = Mutex::new(VecDeque::new());

/// Standard input, with what was read ahead of it.
struct Stdin;

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ahead = AHEAD.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.is_empty() {
            drop(ahead);
            return io::stdin().read(buffer);
        }
        let read = ahead.read(buffer)?;
        if ahead.is_empty() {
            *ahead = VecDeque::new();
        }
        Ok(read)
    }
}

/// Looks at up to `bytes` bytes of standard input; a reader of it as a source still gets them. What was read
/// before an error is kept; the next read meets the error again, or continues behind it.
///
/// # Errors
/// If it can't be read.
pub fn peek_stdin(bytes: usize) -> io::Result<Vec<u8>> {
    let mut ahead = AHEAD.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = bytes.saturating_sub(ahead.len());
    let mut more = Vec::new();
    let read = io::stdin().take(wanted as u64).read_to_end(&mut more);
    ahead.extend(more);
    read?;
    Ok(ahead.iter().take(bytes).copied().collect())
}

/// Uncompressed bytes of a source.
pub(crate) struct Stream {
    name: Arc<str>,
    compression: Compression,
    inner: Inner,
    read: u64,
}

/// Plain bytes are not boxed: the standard library reads it into memory without clearing that first.
enum Inner {
    File { file: File, disk_bytes: Arc<AtomicU64> },
    Remote { reader: RemoteReader, disk_bytes: Arc<AtomicU64> },
    Other(Box<dyn Read + Send>),
}

impl Stream {
    /// Opens the source and skips `offset` uncompressed bytes. Bytes taken from disk are added to `disk_bytes`.
    pub fn open(source: &Source, offset: u64, disk_bytes: &Arc<AtomicU64>) -> Result<Self, InputError> {
        let name = Arc::clone(&source.name);
        let mut skip = offset;
        let (compression, inner) = match &source.location {
            Location::Stdin => {
                let (head, rest) =
                    peek(Stdin).map_err(|cause| InputError::Read { name: Arc::clone(&name), read: 0, cause })?;
                let compression = Compression::sniff(head.get_ref());
                let chain: Chain<_, _> = head.chain(rest);
                let counting = BufReader::with_capacity(DISK_BUFFER, Counting::new(chain, disk_bytes));
                (compression, Inner::Other(decoder(compression, counting)))
            }
            _ if source.compression == Compression::Npz => {
                (Compression::Npz, Inner::Other(npz::open(source, disk_bytes)?))
            }
            Location::File(path) => {
                let unreadable = |cause| InputError::Unreadable { path: path.clone(), cause };
                let mut file = File::open(path).map_err(unreadable)?;
                if source.compression == Compression::None && offset > 0 && source.bytes.is_some() {
                    let found = file.metadata().map_err(unreadable)?.len();
                    if found < offset {
                        return Err(InputError::ResumeBeyondEnd { name, found, wanted: offset });
                    }
                    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
                    disk_bytes.fetch_add(offset, Ordering::Relaxed);
                    skip = 0;
                }
                let inner = match source.compression {
                    Compression::None => Inner::File { file, disk_bytes: Arc::clone(disk_bytes) },
                    packed => {
                        let counting = BufReader::with_capacity(DISK_BUFFER, Counting::new(file, disk_bytes));
                        Inner::Other(decoder(packed, counting))
                    }
                };
                (source.compression, inner)
            }
            Location::Remote(object) => {
                let unreadable = |cause| InputError::Remote { name: Arc::clone(&name), cause };
                if source.compression == Compression::None && offset > 0 && source.bytes.is_some() {
                    if let Some(found) = source.bytes.filter(|&found| found < offset) {
                        return Err(InputError::ResumeBeyondEnd { name, found, wanted: offset });
                    }
                    disk_bytes.fetch_add(offset, Ordering::Relaxed);
                    skip = 0;
                }
                if source.compression == Compression::None && offset == 0 && object.is_ranged {
                    expect_plain(object, &name)?;
                }
                let reader = RemoteReader::open(object, offset - skip).map_err(unreadable)?;
                let inner = match source.compression {
                    Compression::None => Inner::Remote { reader, disk_bytes: Arc::clone(disk_bytes) },
                    packed => {
                        let counting = BufReader::with_capacity(DISK_BUFFER, Counting::new(reader, disk_bytes));
                        Inner::Other(decoder(packed, counting))
                    }
                };
                (source.compression, inner)
            }
        };
        let mut stream = Self { name, compression, inner, read: offset - skip };
        stream.skip(skip)?;
        Ok(stream)
    }

    /// Appends up to `wanted` bytes; fewer only at the end or at an error, and what came before an error is kept.
    pub fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> Result<usize, InputError> {
        let start = bytes.len();
        // Without this, the room would be cleared before every read.
        bytes.reserve(wanted);
        let result = match &mut self.inner {
            Inner::File { file, .. } => file.take(wanted as u64).read_to_end(bytes),
            Inner::Remote { reader, .. } => append(reader, bytes, wanted),
            Inner::Other(inner) => inner.take(wanted as u64).read_to_end(bytes),
        };
        let read = bytes.len() - start;
        self.read += read as u64;
        if let Inner::File { disk_bytes, .. } | Inner::Remote { disk_bytes, .. } = &self.inner {
            disk_bytes.fetch_add(read as u64, Ordering::Relaxed);
        }
        result.map_err(|error| self.explain(error))
    }

    /// Steps over bytes that were read in an earlier run.
    pub fn skip(&mut self, wanted: u64) -> Result<(), InputError> {
        let goal = self.read + wanted;
        let mut scrap = Vec::new();
        while self.read < goal {
            scrap.clear();
            let step = usize::try_from(goal - self.read).unwrap_or(usize::MAX).min(DISK_BUFFER);
            if self.fill(&mut scrap, step)? == 0 {
                return Err(InputError::ResumeBeyondEnd {
                    name: Arc::clone(&self.name),
                    found: self.read,
                    wanted: goal,
                });
            }
        }
        Ok(())
    }

    fn explain(&self, cause: io::Error) -> InputError {
        let (name, read) = (Arc::clone(&self.name), self.read);
        let cause = match InputError::from_io(&name, read, cause) {
            InputError::Read { cause, .. } => cause,
            remote => return remote,
        };
        if self.compression == Compression::Npz && cause.raw_os_error().is_none() {
            let why = format!("the array is damaged or cut off after {read} bytes ({cause}): fetch the file again");
            return InputError::BadArray { name, why };
        }
        let Some(packing) = self.compression.tool() else { return InputError::Read { name, read, cause } };
        // An error with a code comes from the operating system; one without comes from the decoder.
        if cause.raw_os_error().is_some() {
            InputError::Read { name, read, cause }
        } else if cause.kind() == io::ErrorKind::UnexpectedEof {
            InputError::Truncated { name, packing, read }
        } else {
            InputError::Corrupt { name, packing, read, cause }
        }
    }
}

/// Refuses an object of a list that is packed though its name does not tell. The bytes are those that are read next, and held until then.
fn expect_plain(object: &Object, name: &Arc<str>) -> Result<(), InputError> {
    let head = RemoteReader::open(object, 0).map_err(io::Error::from);
    let head = head.and_then(|mut reader| reader.next_bytes(Compression::SNIFFED));
    let head = head.map_err(|cause| InputError::from_io(name, 0, cause))?;
    match Compression::sniff(&head).tool() {
        Some(packing) => Err(InputError::PackedObject { name: Arc::clone(name), packing }),
        None => Ok(()),
    }
}

/// Appends up to `wanted` bytes.
fn append(reader: &mut RemoteReader, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
    let end = bytes.len() + wanted;
    while bytes.len() < end {
        let more = reader.next_bytes(end - bytes.len())?;
        if more.is_empty() {
            break;
        }
        bytes.extend_from_slice(&more);
    }
    Ok(wanted - (end - bytes.len()))
}

fn decoder<R: BufRead + Send + 'static>(compression: Compression, reader: R) -> Box<dyn Read + Send> {
    match compression {
        // An array is taken out of its file by a reader of its own.
        Compression::None | Compression::Npz => Box::new(reader),
        Compression::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Compression::Zstd => match zstd::Decoder::with_buffer(reader)
            .and_then(|mut decoder| decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map(|()| decoder))
        {
            Ok(decoder) => Box::new(decoder),
            Err(error) => Box::new(Failing(Some(error))),
        },
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(reader)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(reader, true, XZ_MEMORY_KB_MAX)),
    }
}

/// Gives its error at the first read.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Returns the bytes that tell a packing, or fewer if there are no more, and the rest.
fn peek<R: Read>(mut reader: R) -> io::Result<(Cursor<Vec<u8>>, R)> {
    let mut head = Vec::with_capacity(Compression::SNIFFED);
    reader.by_ref().take(Compression::SNIFFED as u64).read_to_end(&mut head)?;
    Ok((Cursor::new(head), reader))
}

pub(super) struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R> Counting<R> {
    pub fn new(inner: R, count: &Arc<AtomicU64>) -> Self {
        Self { inner, count: Arc::clone(count) }
    }
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Returns the checksum (XXH3) of each part of a source's uncompressed bytes: of those up to the first end, of those from there to the next,
/// and so on. Parts that are not there to their end have none.
///
/// # Errors
/// If the source cannot be read.
pub fn checksums(source: &Source, ends: &[u64]) -> Result<Vec<u64>, InputError> {
    const AT_ONCE: u64 = 1 << 20;
    let mut stream = Stream::open(source, 0, &Arc::default())?;
    let (mut at, mut bytes, mut sums) = (0, Vec::new(), Vec::new());
    for &end in ends {
        let mut sum = Xxh3::new();
        while at < end {
            let wanted = (end - at).min(AT_ONCE) as usize;
            bytes.clear();
            if stream.fill(&mut bytes, wanted)? < wanted {
                return Ok(sums);
            }
            sum.update(&bytes);
            at += wanted as u64;
        }
        sums.push(sum.digest());
    }
    Ok(sums)
}
