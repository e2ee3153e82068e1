//! One output: compressed by its extension, written beside its place and renamed into it, or through what is no regular file.
//!
//! Invariant: after [`OutputFile::checkpoint`] the partial file is a whole compressed file up to the returned length (a
//! new gzip member, zstd frame, or bzip2 or xz stream starts behind it), so cutting it there is all that resuming takes. Where checkpoints
//! fall is therefore part of a compressed file's bytes: a run that must be reproducible takes them at record counts, not
//! at times.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

use super::object::{begin_upload, check_object};
use super::target::{STDOUT_NAME, Target, folder_of};
use crate::error::OutputError;
use crate::format::{Compression, detect, unsupported_packing};
use crate::input::Source;
use crate::remote::{Upload, is_same_object};

const BUFFER: usize = 256 << 10;

/// What messages call an output that is written through.
const WRITTEN_THROUGH: &str = "what goes through a pipe or device, or to a store,";

/// The zstd level where none is asked for, as in the `zstd` program.
const DEFAULT_ZSTD_LEVEL: i32 = 3;

/// The gzip level where none is asked for, as in the `gzip` program.
const DEFAULT_GZIP_LEVEL: u32 = 6;

/// The bzip2 level where none is asked for, as in the `bzip2` program.
const DEFAULT_BZIP2_LEVEL: u32 = 9;

/// The xz level where none is asked for, as in the `xz` program.
const DEFAULT_XZ_LEVEL: u32 = 6;

/// How to write.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OutputOptions {
    /// Files that must not be written to.
    pub inputs: Vec<PathBuf>,
    /// Whether an existing output may be replaced.
    pub force: bool,
    /// How to pack; `None` goes by the extension.
    pub compression: Option<Compression>,
    /// The compression level; `None` is the usual one.
    pub level: Option<i32>,
    /// Whether an unfinished output is kept for a later [`OutputFile::resume`] when it is dropped.
    pub keep_partial: bool,
}

impl OutputOptions {
    /// Options that protect the sources.
    pub fn protecting(sources: &[Source]) -> Self {
        let ids = sources.iter().filter_map(|source| Some(source.ids.as_ref()?.path.clone()));
        let inputs = sources.iter().filter_map(Source::place).chain(ids).collect();
        Self { inputs, ..Self::default() }
    }

    /// Returns the same, where existing outputs may be replaced or not.
    pub fn with_force(self, force: bool) -> Self {
        Self { force, ..self }
    }
}

/// Returns where an output is written until it is finished: beside the file that its name leads to. One that is written through has none.
pub fn partial_path(path: &Path) -> PathBuf {
    match Target::of(path) {
        Ok(Target::File(file)) => beside(&file),
        _ => beside(path),
    }
}

/// Gives an output its name that was completed beside its place.
pub(super) fn publish(path: &Path) -> Result<(), OutputError> {
    let file = match Target::of(path) {
        Ok(Target::File(file)) => file,
        _ => path.to_owned(),
    };
    let renamed = fs::rename(beside(&file), &file).and_then(|()| sync_folder(&file));
    renamed.map_err(|cause| OutputError::from_io(path, cause))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// A file that appears under its name only when it is finished; or standard output, a pipe, a device or a socket, which is written through.
pub struct OutputFile {
    path: PathBuf,
    /// `None` for what is written through.
    place: Option<Place>,
    encoder: Encoder,
    compression: Compression,
    level: Option<i32>,
    /// Whether a compressed stream has been opened: even an empty output needs one to be valid.
    any_member: bool,
    keep_partial: bool,
}

/// Where an unfinished file lies, and where it belongs.
struct Place {
    partial: PathBuf,
    file: PathBuf,
}

impl OutputFile {
    /// Starts an output; `-` is standard output.
    ///
    /// # Errors
    /// If the output is also an input, exists and may not be replaced, or cannot be created there.
    pub fn create(path: &Path, options: &OutputOptions) -> Result<Self, OutputError> {
        let write = |cause| OutputError::from_io(path, cause);
        let target = check_target(path, options)?;
        let Target::File(file) = target else {
            let device = match target {
                Target::Remote(url) => Device::Upload(begin_upload(path, &url)?),
                Target::STDOUT => Device::Stdout(io::stdout()),
                other => Device::Through(other.open().map_err(write)?),
            };
            return Ok(Self::over(path, None, device, 0, options));
        };
        let place = Place { partial: beside(&file), file };
        let partial = open_partial(path, &place.partial)?;
        // What an earlier run left behind; a device, which has no length, refuses to be cut.
        if partial.metadata().map_err(write)?.len() > 0 {
            partial.set_len(0).map_err(write)?;
        }
        Ok(Self::over(path, Some(place), Device::File(partial), 0, options))
    }

    /// Finds out whether an output could be created, before the work is done that it is for. What is written through is not opened: a reader
    /// at the other end would take the closing for the end.
    ///
    /// # Errors
    /// As [`OutputFile::create`].
    pub fn check(path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
        match check_target(path, options)? {
            Target::File(_) => Self::create(path, options).map(drop),
            Target::Remote(url) => begin_upload(path, &url).map(drop),
            _ => Ok(()),
        }
    }

    /// Goes on with the unfinished output of a run that was stopped, behind a checkpoint.
    ///
    /// # Errors
    /// If there is no such output, it is shorter than the checkpoint, or it is written through.
    pub fn resume(path: &Path, length: u64, options: &OutputOptions) -> Result<Self, OutputError> {
        let Target::File(file) = check_target(path, options)? else {
            return Err(OutputError::NotResumable { path: path.to_owned(), what: WRITTEN_THROUGH });
        };
        let place = Place { partial: beside(&file), file };
        let found = fs::metadata(&place.partial).map_or(0, |metadata| metadata.len());
        if found < length {
            return Err(OutputError::ResumeBeyondEnd { path: place.partial, wanted: length, found });
        }
        let mut partial = open_partial(path, &place.partial)?;
        let write = |cause| OutputError::from_io(path, cause);
        partial.set_len(length).map_err(write)?;
        partial.seek(SeekFrom::Start(length)).map_err(write)?;
        Ok(Self::over(path, Some(place), Device::File(partial), length, options))
    }

    fn over(path: &Path, place: Option<Place>, device: Device, length: u64, options: &OutputOptions) -> Self {
        let name = if path == Path::new("-") { Path::new(STDOUT_NAME) } else { path };
        Self {
            path: name.to_owned(),
            place,
            encoder: Encoder::Idle(Sink { to: BufWriter::with_capacity(BUFFER, device), length }),
            compression: options.compression.unwrap_or(detect(path).1),
            level: options.level,
            any_member: length > 0,
            keep_partial: options.keep_partial,
        }
    }

    /// Leaves the unfinished output for a later [`OutputFile::resume`] when it is dropped.
    pub fn keep_partial(&mut self) {
        self.keep_partial = true;
    }

    /// Returns where the output will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the output is packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.try_write(bytes).map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if matches!(self.encoder, Encoder::Idle(_)) {
            self.open_member()?;
        }
        match &mut self.encoder {
            Encoder::Plain(sink) => sink.write_all(bytes),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
            Encoder::Bzip2(encoder) => encoder.write_all(bytes),
            Encoder::Xz(encoder) => encoder.write_all(bytes),
            Encoder::Idle(_) | Encoder::Failed => Err(io::Error::other("the output failed before")),
        }
    }

    fn open_member(&mut self) -> io::Result<()> {
        let Encoder::Idle(sink) = std::mem::replace(&mut self.encoder, Encoder::Failed) else {
            return Ok(());
        };
        self.any_member = true;
        self.encoder = match self.compression {
            Compression::None | Compression::Npz => Encoder::Plain(sink),
            Compression::Gzip => {
                let level = self.level.map_or(DEFAULT_GZIP_LEVEL, |level| level.clamp(0, 9) as u32);
                Encoder::Gzip(Box::new(GzEncoder::new(sink, flate2::Compression::new(level))))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(sink, self.level.unwrap_or(DEFAULT_ZSTD_LEVEL))?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(Box::new(encoder))
            }
            Compression::Bzip2 => {
                let level = self.level.map_or(DEFAULT_BZIP2_LEVEL, |level| level.clamp(1, 9) as u32);
                Encoder::Bzip2(Box::new(BzEncoder::new(sink, bzip2::Compression::new(level))))
            }
            Compression::Xz => {
                let level = self.level.map_or(DEFAULT_XZ_LEVEL, |level| level.clamp(0, 9) as u32);
                Encoder::Xz(Box::new(XzWriter::new(sink, XzOptions::with_preset(level))?))
            }
        };
        Ok(())
    }

    fn close_member(&mut self) -> io::Result<&mut Sink> {
        let sink = match std::mem::replace(&mut self.encoder, Encoder::Failed) {
            Encoder::Idle(sink) | Encoder::Plain(sink) => sink,
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
            Encoder::Bzip2(encoder) => encoder.finish()?,
            Encoder::Xz(encoder) => encoder.finish()?,
            Encoder::Failed => return Err(io::Error::other("the output failed before")),
        };
        self.encoder = Encoder::Idle(sink);
        match &mut self.encoder {
            Encoder::Idle(sink) => {
                sink.flush()?;
                Ok(sink)
            }
            _ => Err(io::Error::other("the output failed before")),
        }
    }

    /// Makes everything written so far durable; the length is what [`OutputFile::resume`] takes.
    ///
    /// # Errors
    /// If the device is full or fails, or the output is written through.
    pub fn checkpoint(&mut self) -> Result<u64, OutputError> {
        if self.place.is_none() {
            return Err(OutputError::NotResumable { path: self.path.clone(), what: WRITTEN_THROUGH });
        }
        let sync = |sink: &mut Sink| sink.sync().map(|()| sink.length);
        self.close_member().and_then(sync).map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    /// Overwrites the first bytes of an uncompressed file.
    pub(crate) fn patch_start(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let patch = |sink: &mut Sink| match sink.to.get_mut() {
            Device::File(file) => {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(bytes)?;
                file.seek(SeekFrom::End(0)).map(drop)
            }
            Device::Through(_) | Device::Stdout(_) | Device::Upload(_) => {
                Err(io::Error::other("what was written can't be written over"))
            }
        };
        self.close_member().and_then(patch).map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    /// Lets the output appear under its name.
    ///
    /// # Errors
    /// If the device is full or fails, or the file cannot be renamed.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.try_finish().map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    /// Makes the output whole and durable beside its place, where [`publish`] finds it.
    pub(super) fn complete(mut self) -> Result<(), OutputError> {
        self.keep_partial = true;
        self.try_complete().map_err(|cause| OutputError::from_io(&self.path, cause))
    }

    fn try_complete(&mut self) -> io::Result<()> {
        if !self.any_member {
            self.open_member()?;
        }
        // Without this the name could outlive a power cut and the bytes not.
        if let Device::File(file) = self.close_member()?.to.get_ref() {
            file.sync_all()?;
        }
        Ok(())
    }

    fn try_finish(&mut self) -> io::Result<()> {
        self.try_complete()?;
        let Some(place) = &self.place else {
            return match self.close_member()?.to.get_mut() {
                Device::Upload(upload) => upload.complete(),
                _ => Ok(()),
            };
        };
        fs::rename(&place.partial, &place.file)?;
        match self.place.take() {
            Some(place) => sync_folder(&place.file),
            None => Ok(()),
        }
    }
}

/// For encoders that write by themselves.
impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(sink) | Encoder::Idle(sink) => sink.flush(),
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
            Encoder::Xz(encoder) => encoder.flush(),
            Encoder::Failed => Err(io::Error::other("the output failed before")),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && !self.keep_partial
        {
            // Nothing can be done about a failure here, and the name says that the file is partial.
            let _ = fs::remove_file(&place.partial);
        }
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder_of(path))?.sync_all()?;
    }
    Ok(())
}

fn open_partial(path: &Path, partial: &Path) -> Result<File, OutputError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(partial)
        .map_err(|cause| OutputError::from_io(path, cause))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(OutputError::Busy { path: path.to_owned() }),
        // A file system without locks offers no protection against a second run, but is still good to write to.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Returns what the name leads to, if it may be written to.
fn check_target(path: &Path, options: &OutputOptions) -> Result<Target, OutputError> {
    if let Some(packing) = unsupported_packing(path) {
        return Err(OutputError::UnknownPacking { path: path.to_owned(), packing });
    }
    if detect(path).1 == Compression::Npz {
        let why = "archives of arrays are read and not written: choose another ending, .npy for an array".to_owned();
        return Err(OutputError::Unsupported { path: path.to_owned(), why });
    }
    let target = Target::of(path).map_err(|cause| OutputError::from_io(path, cause))?;
    let written = match &target {
        Target::File(file) => {
            let folder = folder_of(file);
            if folder.exists() && !folder.is_dir() {
                return Err(OutputError::InFile { path: path.to_owned(), folder: folder.to_owned() });
            }
            if !folder.is_dir() {
                return Err(OutputError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
            }
            if file.is_dir() {
                return Err(OutputError::IsFolder { path: path.to_owned() });
            }
            // The partial file is written to as well.
            vec![path.to_owned(), beside(file)]
        }
        Target::Remote(_) => vec![path.to_owned()],
        // A terminal may be both ends of a run.
        _ if is_character_device(path) => Vec::new(),
        _ if target == Target::STDOUT => vec![PathBuf::from("/dev/stdout")],
        _ => vec![path.to_owned()],
    };
    for written in written {
        if let Some(input) = options.inputs.iter().find(|input| **input == written || same_file(input, &written)) {
            return Err(OutputError::IsInput { path: written, input: input.clone() });
        }
    }
    if let Target::Remote(url) = &target {
        check_object(path, url, options)?;
    }
    // A block device keeps what is written to it, like a file.
    let keeps = matches!(target, Target::File(_)) || is_block_device(path);
    if keeps && path.exists() && !options.force {
        return Err(OutputError::Exists { path: path.to_owned() });
    }
    Ok(target)
}

#[cfg(unix)]
fn is_character_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let path = if path == Path::new("-") { Path::new("/dev/stdout") } else { path };
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

#[cfg(unix)]
fn is_block_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

#[cfg(not(unix))]
fn is_character_device(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn is_block_device(_: &Path) -> bool {
    false
}

/// Returns whether both names lead to one file, through links of any kind, or to one object.
fn same_file(a: &Path, b: &Path) -> bool {
    if is_same_object(a, b) {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

enum Encoder {
    /// No compressed stream is open.
    Idle(Sink),
    Plain(Sink),
    Gzip(Box<GzEncoder<Sink>>),
    Zstd(Box<zstd::Encoder<'static, Sink>>),
    Bzip2(Box<BzEncoder<Sink>>),
    Xz(Box<XzWriter<Sink>>),
    Failed,
}

enum Device {
    /// The partial file.
    File(File),
    /// A pipe, a device or a socket.
    Through(File),
    Stdout(io::Stdout),
    /// An object of a store.
    Upload(Upload),
}

impl Write for Device {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Device::File(file) | Device::Through(file) => file.write(bytes),
            Device::Stdout(stdout) => stdout.write(bytes),
            Device::Upload(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Device::File(file) | Device::Through(file) => file.flush(),
            Device::Stdout(stdout) => stdout.flush(),
            Device::Upload(upload) => upload.flush(),
        }
    }
}

/// The compressed bytes on their way to the device, counted.
struct Sink {
    to: BufWriter<Device>,
    length: u64,
}

impl Sink {
    fn sync(&mut self) -> io::Result<()> {
        match self.to.get_ref() {
            Device::File(file) => file.sync_data(),
            Device::Through(_) | Device::Stdout(_) | Device::Upload(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
