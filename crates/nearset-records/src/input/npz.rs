//! The array in a `.npz` file: a zip archive of `.npy` files, as `numpy.savez` and `numpy.savez_compressed` write it (PKWARE's APPNOTE 6.3, ZIP64
//! included).
//!
//! Claim: what is read is the only array of two dimensions, streamed, and its end is an error unless it has the size and the checksum that the
//! archive states.
//! Invariant: nothing but the list of files is allocated by the archive's word, and that only where it is there and short.
//! Not here: writing archives, and archives of anything else.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::decompress::{Counting, DISK_BUFFER};
use super::{Location, Places, Source};
use crate::error::InputError;
use crate::format::{MAX_ARRAY_HEADER, array_dimensions};
use crate::remote::RemoteReader;

/// The longest list of files that is read: of some ten thousand.
const MAX_LIST: u64 = 1 << 20;

/// The record that ends an archive, without its comment, and that of ZIP64 with the place where it lies.
const END: usize = 22;
const END_64: u64 = 56;
const PLACE_OF_END_64: usize = 20;

/// What a field of 32 bits holds whose value needs 64.
const ELSEWHERE: u32 = u32::MAX;

/// Names that a message shows.
const SHOWN: usize = 10;

/// Returns the array's bytes, as they would lie in a `.npy` file. Bytes taken from disk are added to `disk_bytes`.
///
/// # Errors
/// If the file can't be read, is no such archive, or holds no array that is meant without saying so.
pub(super) fn open(source: &Source, disk_bytes: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, InputError> {
    let mut archive = Archive::new(source)?;
    let members = archive.list()?;
    let arrays: Vec<&Member> = members.iter().filter(|member| member.name.ends_with(".npy")).collect();
    if let [one] = arrays[..] {
        return archive.open(one, disk_bytes);
    }
    let (mut flat, mut others) = (Vec::new(), Vec::new());
    for member in arrays {
        match archive.dimensions(member)? {
            Some(2) => flat.push(member),
            _ => others.push(member),
        }
    }
    match flat[..] {
        [one] => archive.open(one, disk_bytes),
        [] if others.is_empty() => Err(archive.bad("holds no array".to_owned())),
        [] => Err(archive.bad(format!(
            "holds {}, of which none has two dimensions, a vector per row: use array.reshape",
            names(&others)
        ))),
        [first, ..] => Err(archive.bad(format!(
            "holds {}: save the one that is meant by itself, as in numpy.save('{first}.npy', numpy.load('{}')['{first}'])",
            names(&flat),
            source.name,
            first = first.array()
        ))),
    }
}

fn names(members: &[&Member]) -> String {
    let shown: Vec<&str> = members.iter().take(SHOWN).map(|member| member.array()).collect();
    let more =
        if members.len() > SHOWN { format!(" and {} more arrays", members.len() - SHOWN) } else { String::new() };
    format!("the arrays {}{more}", shown.join(", "))
}

/// A file in the archive.
struct Member {
    name: String,
    is_encrypted: bool,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    /// Where its own head lies.
    place: u64,
}

impl Member {
    /// Returns what NumPy calls the array.
    fn array(&self) -> &str {
        self.name.strip_suffix(".npy").unwrap_or(&self.name)
    }
}

struct Archive<'s> {
    source: &'s Source,
    places: Places,
    size: u64,
}

impl<'s> Archive<'s> {
    fn new(source: &'s Source) -> Result<Self, InputError> {
        let bad = |why: &str| InputError::BadArray { name: Arc::clone(&source.name), why: why.to_owned() };
        let size = source.bytes.ok_or_else(|| bad("an .npz is read from its end: save it to a file first"))?;
        let places = Places::open(source, &[size.saturating_sub(END as u64)]);
        let places = places.map_err(|cause| InputError::from_io(&source.name, 0, cause))?;
        Ok(Self { source, places, size })
    }

    fn bad(&self, why: String) -> InputError {
        InputError::BadArray { name: Arc::clone(&self.source.name), why }
    }

    fn damaged(&self, what: &str) -> InputError {
        self.bad(format!("{what}: the file is damaged or cut off; fetch it again"))
    }

    /// Returns bytes of the file, all of them.
    fn read(&mut self, place: u64, wanted: u64) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        if place.checked_add(wanted).is_none_or(|end| end > self.size) {
            return Err(self.damaged("states a place beyond its end"));
        }
        let read = self.places.read(place, wanted, &mut bytes);
        read.map_err(|cause| InputError::from_io(&self.source.name, place, cause))?;
        if bytes.len() as u64 == wanted { Ok(bytes) } else { Err(self.damaged("has become shorter")) }
    }

    /// Returns the files in the archive.
    fn list(&mut self) -> Result<Vec<Member>, InputError> {
        let end_bytes = self.size.min((PLACE_OF_END_64 + END + usize::from(u16::MAX)) as u64);
        let end = self.read(self.size - end_bytes, end_bytes)?;
        // Behind the record there is nothing but its comment.
        let is_end = |at: &usize| {
            end[*at..].starts_with(b"PK\x05\x06") && at + END + usize::from(short(&end, at + 20)) == end.len()
        };
        let at = (0..(end.len() + 1).saturating_sub(END)).rev().find(is_end);
        let at = at.ok_or_else(|| self.damaged("not an .npz: no zip archive ends at its end"))?;
        let (mut bytes, mut place) = (u64::from(int(&end, at + 12)), u64::from(int(&end, at + 16)));
        let place_of_64 = at.checked_sub(PLACE_OF_END_64).filter(|&at| end[at..].starts_with(b"PK\x06\x07"));
        if let Some(at) = place_of_64 {
            let end = self.read(long(&end, at + 8), END_64)?;
            if !end.starts_with(b"PK\x06\x06") {
                return Err(self.damaged("has no end where it states one"));
            }
            (bytes, place) = (long(&end, 40), long(&end, 48));
        }
        if bytes > MAX_LIST {
            return Err(self.bad(format!("a list of files of {bytes} bytes: the file is damaged, or not of arrays")));
        }
        let list = self.read(place, bytes)?;
        let (mut members, mut rest) = (Vec::new(), &list[..]);
        while !rest.is_empty() {
            let (member, behind) = member(rest).ok_or_else(|| self.damaged("has an unreadable list of files"))?;
            members.push(member);
            rest = behind;
        }
        Ok(members)
    }

    /// Returns what is in a file of the archive.
    fn open(&mut self, member: &Member, disk_bytes: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, InputError> {
        let head = self.read(member.place, 30)?;
        if !head.starts_with(b"PK\x03\x04") {
            return Err(self.damaged(&format!("{} is not where the list of files says", member.name)));
        }
        // Its name and more stand there once more, and not always as in the list.
        let start = member.place + 30 + u64::from(short(&head, 26)) + u64::from(short(&head, 28));
        if start.checked_add(member.packed).is_none_or(|end| end > self.size) {
            return Err(self.damaged(&format!("{} goes on behind its end", member.name)));
        }
        let packed = self.bytes_from(start).map_err(|cause| InputError::from_io(&self.source.name, start, cause))?;
        let packed = BufReader::with_capacity(DISK_BUFFER, Counting::new(packed.take(member.packed), disk_bytes));
        let inner: Box<dyn Read + Send> = match member.method {
            _ if member.is_encrypted => return Err(self.bad(format!("{} is encrypted: save it anew", member.name))),
            0 => Box::new(packed),
            8 => Box::new(DeflateDecoder::new(packed)),
            other => {
                let why = format!("{} is packed by method {other} of zip: save it anew with numpy.savez", member.name);
                return Err(self.bad(why));
            }
        };
        Ok(Box::new(Checked { inner, left: member.size, sum: Crc::new(), wanted: member.checksum }))
    }

    fn bytes_from(&self, start: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(match &self.source.location {
            Location::Stdin => return Err(io::ErrorKind::Unsupported.into()),
            Location::File(path) => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(start))?;
                Box::new(file)
            }
            Location::Remote(object) => Box::new(RemoteReader::open(object, start)?),
        })
    }

    /// Returns how many dimensions an array has, where its header says so.
    fn dimensions(&mut self, member: &Member) -> Result<Option<usize>, InputError> {
        let mut head = Vec::new();
        let read = self.open(member, &Arc::default())?.take(MAX_ARRAY_HEADER as u64).read_to_end(&mut head);
        match read.map_err(|cause| InputError::from_io(&self.source.name, 0, cause)) {
            // What is damaged behind its header is found when it is read, if it is.
            Ok(_) | Err(InputError::Read { .. }) => Ok(array_dimensions(&head)),
            Err(unreachable) => Err(unreachable),
        }
    }
}

/// Returns the first file of a list, and the rest of the list.
fn member(list: &[u8]) -> Option<(Member, &[u8])> {
    let (head, rest) = list.split_first_chunk::<46>().filter(|(head, _)| head.starts_with(b"PK\x01\x02"))?;
    let (name, rest) = rest.split_at_checked(short(head, 28).into())?;
    let (mut extra, rest) = rest.split_at_checked(short(head, 30).into())?;
    let (_, rest) = rest.split_at_checked(short(head, 32).into())?;
    let [mut packed, mut size, mut place] = [20, 24, 42].map(|at| u64::from(int(head, at)));
    while let Some((kind, behind)) = extra.split_first_chunk::<4>() {
        let (mut values, behind) = behind.split_at_checked(short(kind, 2).into())?;
        // ZIP64: those that have no room above, in this order.
        for value in [&mut size, &mut packed, &mut place] {
            if short(kind, 0) == 1 && *value == u64::from(ELSEWHERE) {
                let (long, others) = values.split_first_chunk()?;
                (*value, values) = (u64::from_le_bytes(*long), others);
            }
        }
        extra = behind;
    }
    let name = String::from_utf8_lossy(name).into_owned();
    let is_encrypted = short(head, 8) & 1 == 1;
    let member = Member { name, is_encrypted, method: short(head, 10), checksum: int(head, 16), packed, size, place };
    Some((member, rest))
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn int(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(int(bytes, at)) | u64::from(int(bytes, at + 4)) << 32
}

/// A file of the archive, compared with what its list says.
struct Checked {
    inner: Box<dyn Read + Send>,
    left: u64,
    sum: Crc,
    wanted: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "more bytes than it states"))?;
        if read == 0 && !buffer.is_empty() {
            if self.left > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.sum.sum() != self.wanted {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "another checksum than it states"));
            }
        }
        Ok(read)
    }
}
