//! From what the user typed to an ordered list of sources.
//!
//! Invariant: the order depends only on the arguments and the file names, never on the file system's own order, because
//! the order decides which of two near records is the earlier one.

use std::fs;
use std::io::{self, Read};
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use crate::error::InputError;
use crate::format::{Compression, Format, detect, unsupported_packing};
use crate::remote::{self, Object, RemoteReader, Scheme, Url};

/// Where a source's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// An object of a store, or what a web server has.
    Remote(Object),
}

/// Ids that stand in a file of their own.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdsFile {
    /// The file, which is an input as well.
    pub path: PathBuf,
    /// Its lines.
    pub ids: Box<[Box<str>]>,
}

/// One file, or the pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// Where the bytes come from.
    pub location: Location,
    /// What messages call it.
    pub name: Arc<str>,
    /// How records lie in it.
    pub format: Format,
    /// How it is packed; for the pipe this is found out when it is opened.
    pub compression: Compression,
    /// Its size as it lies on disk, where known.
    pub bytes: Option<u64>,
    /// The ids of its records in their order, where they stand in a file of their own.
    pub ids: Option<Arc<IdsFile>>,
}

impl Source {
    /// Returns the path, if it is a file.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::File(path) => Some(path),
            Location::Stdin | Location::Remote(_) => None,
        }
    }

    /// Returns the name by which it can be told from outputs: a path, or the URL of an object. The pipe has none.
    pub fn place(&self) -> Option<PathBuf> {
        match &self.location {
            Location::Stdin => None,
            Location::File(path) => Some(path.clone()),
            Location::Remote(object) => Some(PathBuf::from(&*object.url)),
        }
    }

    /// Returns whether it is an object of a store, or of a web server.
    pub fn is_remote(&self) -> bool {
        matches!(self.location, Location::Remote(_))
    }

    /// Returns the size and the time of change, for those who want to know whether it has changed. A file is looked at now. An object is
    /// told as it was when it was resolved: reading another version of it fails.
    pub fn state(&self) -> String {
        match &self.location {
            Location::Stdin => String::new(),
            Location::File(path) => state_of_file(path),
            Location::Remote(object) => object.state(),
        }
    }

    /// Returns whether it can be read twice and is then the same, or says that it is not: no pipe can, and no object of a server that states
    /// nothing by which its versions are told apart.
    pub fn is_rereadable(&self) -> bool {
        match &self.location {
            Location::Remote(object) => object.tag.is_some(),
            Location::Stdin | Location::File(_) => self.bytes.is_some(),
        }
    }

    /// Returns whether any place of it can be read without all that is before: not of a pipe, nor of an object of a server that sends no parts.
    pub fn is_seekable(&self) -> bool {
        match &self.location {
            Location::Remote(object) => object.is_ranged && object.size.is_some(),
            Location::Stdin | Location::File(_) => self.bytes.is_some(),
        }
    }

    /// Returns whether a record can be read again where it lies: in a plain file of lines. Others have to be read from their start, and each
    /// record of an object would take a request.
    pub fn is_read_in_place(&self) -> bool {
        self.bytes.is_some()
            && self.path().is_some()
            && self.compression == Compression::None
            && !self.format.is_columnar()
            && !self.format.layout().counts_first()
            && self.format.layout().to_lines().is_none()
    }

    /// Returns the number of records that the file itself states; `None` where it states none.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn stated_records(&self) -> Result<Option<u64>, InputError> {
        match self.format.layout() {
            layout if layout.is_whole_file() => Ok(Some(1)),
            layout if layout.is_columnar() => super::parquet::num_rows(self).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the same records in a file at another place, packed in any way.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn at(&self, path: &Path) -> Result<Self, InputError> {
        Ok(Self { ids: self.ids.clone(), ..Self::file(path.to_owned(), Some(self.format))? })
    }

    /// Returns a checksum (XXH3) of the ids that stand in a file of their own, where they do.
    pub fn ids_checksum(&self) -> Option<u64> {
        let file = self.ids.as_ref()?;
        let mut sum = Xxh3::new();
        for id in &file.ids {
            sum.update(id.as_bytes());
            sum.update(b"\n");
        }
        Some(sum.digest())
    }

    fn stdin(format: Option<Format>) -> Result<Self, InputError> {
        let name: Arc<str> = "<stdin>".into();
        let format = format.unwrap_or(Format::Jsonl);
        if format.is_columnar() {
            return Err(InputError::ParquetNeedsFile { name });
        }
        let compression = Compression::None;
        Ok(Self { location: Location::Stdin, name, format, compression, bytes: None, ids: None })
    }

    fn object(object: Object, format: Option<Format>, is_listed: bool) -> Result<Self, InputError> {
        let name: Arc<str> = object.name().into();
        let path = PathBuf::from(Url::parse(&object.url).map_or("", |url| url.path()));
        let (detected, mut compression) = detect(&path);
        if let Some(packing) = unsupported_packing(&path) {
            return Err(InputError::UnknownPacking { path: PathBuf::from(&*name), packing });
        }
        let Some(format) = format.or(detected) else {
            return Err(InputError::UnknownExtension { path: PathBuf::from(&*name) });
        };
        if format.is_columnar() && compression != Compression::None {
            return Err(InputError::ParquetNeedsFile { name });
        }
        // A list may be long, so the packing of its objects goes by their names until they are opened.
        if !is_listed && !format.is_columnar() {
            let head = RemoteReader::open(&object, 0)
                .map_err(io::Error::from)
                .and_then(|mut reader| reader.next_bytes(Compression::SNIFFED))
                .map_err(|cause| InputError::from_io(&name, 0, cause))?;
            let packed = Compression::sniff(&head);
            compression = if packed == Compression::None { compression } else { packed };
        }
        let bytes = object.size;
        Ok(Self { location: Location::Remote(object), name, format, compression, bytes, ids: None })
    }

    fn file(path: PathBuf, format: Option<Format>) -> Result<Self, InputError> {
        let (detected, compression) = detect(&path);
        let name: Arc<str> = path.to_string_lossy().into();
        if let Some(packing) = unsupported_packing(&path) {
            return Err(InputError::UnknownPacking { path, packing });
        }
        // What is not there has no wrong ending.
        let (bytes, head) = match look_at(&path) {
            Ok(found) => found,
            Err(cause) => return Err(InputError::Unreadable { path, cause }),
        };
        // A shell's <(…) has no ending, and is read as standard input is.
        let of_pipe = (bytes.is_none() && path.extension().is_none()).then_some(Format::Jsonl);
        let Some(format) = format.or(detected).or(of_pipe) else {
            return Err(InputError::UnknownExtension { path });
        };
        if format.is_columnar() && (compression != Compression::None || bytes.is_none()) {
            return Err(InputError::ParquetNeedsFile { name });
        }
        // Names are lost on the way more often than packings are.
        let packed = Compression::sniff(&head);
        let compression = match packed {
            // An empty file is packed in no way.
            Compression::None if bytes == Some(0) && compression != Compression::Npz => Compression::None,
            Compression::None => compression,
            packed => packed,
        };
        Ok(Self { location: Location::File(path), name, format, compression, bytes, ids: None })
    }
}

/// Returns a file's size and time of change.
pub fn state_of_file(path: &Path) -> String {
    let Ok(metadata) = path.metadata() else {
        return "unreadable".to_owned();
    };
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = changed.map_or(0, |time| time.as_nanos());
    format!("{} bytes, changed at {nanoseconds}", metadata.len())
}

/// Returns a file's size, and the bytes that tell what it is. A named pipe has a name but no size, and what is read from it is gone.
fn look_at(path: &Path) -> io::Result<(Option<u64>, Vec<u8>)> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        // A pipe that is opened and closed again ends its writer.
        return Ok((None, Vec::new()));
    }
    let mut head = Vec::new();
    fs::File::open(path)?.take(LOOKED_AT).read_to_end(&mut head)?;
    Ok((Some(metadata.len()), head))
}

/// Bytes at the start of a file that tell a packing, or a picture.
const LOOKED_AT: u64 = 16;
const _: () = assert!(Compression::SNIFFED as u64 <= LOOKED_AT);

/// The sources in the order they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sources {
    /// What will be read.
    pub list: Vec<Source>,
    /// Files in named folders that were passed over because their extension tells no format.
    pub skipped: Vec<PathBuf>,
    /// Pictures in named folders that were passed over because there are records beside them.
    pub skipped_pictures: Vec<PathBuf>,
    /// Which of the list come from folders, in order.
    walked: Vec<Range<usize>>,
}

impl Sources {
    /// Takes note that what came behind the first `before` sources comes from a folder.
    fn were_walked(&mut self, before: usize) {
        let end = self.list.len();
        match self.walked.last_mut() {
            Some(last) if last.end == before => last.end = end,
            _ => self.walked.push(before..end),
        }
    }

    /// Returns the bytes on disk, if every source's size is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.list.iter().map(|source| source.bytes).sum()
    }
}

/// Turns files, folders (walked in sorted order; hidden files and files of no known format are passed over), glob
/// patterns, URLs of all these and `-` into sources. `format` overrules the extensions, and makes every file of a folder count; if it is a picture, every
/// picture. Without it, pictures in folders count only where there is nothing else: a text may come with its illustrations.
///
/// # Errors
/// If an argument matches nothing or cannot be read, or a format is neither told nor given.
pub fn resolve<S: AsRef<str>>(arguments: &[S], format: Option<Format>) -> Result<Sources, InputError> {
    let mut sources = Sources::default();
    for argument in arguments {
        let argument = argument.as_ref();
        let path = Path::new(argument);
        if argument.is_empty() {
            return Err(InputError::EmptyName);
        } else if argument == "-" {
            sources.list.push(Source::stdin(format)?);
        } else if let Some(url) = Url::parse(argument) {
            add_url(&mut sources, &url, format)?;
        } else if path.is_dir() {
            add_folder(&mut sources, path, format)?;
        } else if path.exists() || !argument.contains(['*', '?', '[', '{']) {
            // A name that exists is meant literally, brackets and all.
            sources.list.push(Source::file(path.to_owned(), format)?);
        } else {
            add_matches(&mut sources, argument, format)?;
        }
    }
    if format.is_none() {
        pass_over_pictures(&mut sources);
    }
    if sources.list.is_empty() { Err(InputError::Nothing) } else { Ok(sources) }
}

/// Leaves out the pictures of folders where there are records of other formats.
fn pass_over_pictures(sources: &mut Sources) {
    let is_picture = |source: &Source| source.format.layout().to_lines().is_some();
    if sources.list.iter().all(is_picture) {
        return;
    }
    let mut number = 0..;
    let mut walked = mem::take(&mut sources.walked).into_iter().flatten().peekable();
    let skipped = &mut sources.skipped_pictures;
    sources.list.retain(|source| {
        let is_walked = number.next().is_some_and(|number| walked.next_if_eq(&number).is_some());
        let is_skipped = is_walked && is_picture(source);
        skipped.extend(source.place().filter(|_| is_skipped));
        !is_skipped
    });
}

fn add_matches(sources: &mut Sources, pattern: &str, format: Option<Format>) -> Result<(), InputError> {
    // What is hidden is passed over, as in folders, unless the pattern has a name that begins so.
    let names_hidden = pattern.split('/').any(|name| name.starts_with('.') && name != "." && name != "..");
    let options = glob::MatchOptions { require_literal_leading_dot: !names_hidden, ..glob::MatchOptions::default() };
    let mut any = false;
    let mut paths = Vec::new();
    for alternative in alternatives(pattern) {
        let matches = glob::glob_with(&alternative, options)
            .map_err(|cause| InputError::BadPattern { pattern: pattern.to_owned(), cause })?;
        for path in matches {
            paths.push(path.map_err(|error| InputError::Unreadable {
                path: error.path().to_owned(),
                cause: io::Error::from(error.error().kind()),
            })?);
        }
    }
    paths.sort();
    paths.dedup();
    for path in paths {
        any = true;
        if path.is_dir() {
            add_folder(sources, &path, format)?;
        } else {
            sources.list.push(Source::file(path, format)?);
        }
    }
    if any { Ok(()) } else { Err(InputError::NoMatch { pattern: pattern.to_owned() }) }
}

/// Adds an object, the objects of a folder, or those that match a pattern.
fn add_url(sources: &mut Sources, url: &Url<'_>, format: Option<Format>) -> Result<(), InputError> {
    let name: Arc<str> = url.to_string().into();
    let failed = |cause| InputError::Remote { name: Arc::clone(&name), cause };
    // In names on web servers, ? begins a query.
    let is_pattern = if url.scheme.is_store() { ['*', '?', '[', '{'] } else { ['*', '*', '[', '{'] };
    if url.path().contains(is_pattern) {
        // A name that exists is meant literally, as of files. Why it can't be looked at, the list will say.
        if url.scheme.is_store()
            && let Ok(object) = remote::look_at(url)
        {
            sources.list.push(Source::object(object, format, false)?);
            return Ok(());
        }
        return add_matching_objects(sources, url, format);
    }
    let is_folder = url.key.is_empty() || url.key.ends_with('/');
    if !is_folder || !url.scheme.is_store() {
        match remote::look_at(url) {
            Ok(object) => {
                sources.list.push(Source::object(object, format, false)?);
                return Ok(());
            }
            // It may be a folder whose name was not ended as one's.
            Err(error) if !(error.is_not_found() && url.scheme.is_store()) => return Err(failed(error)),
            Err(not_found) => {
                let below = remote::list(url, url.key).map_err(|_| failed(not_found.clone()))?;
                if below.is_empty() {
                    return Err(failed(not_found));
                }
                return add_objects(sources, url, below, format);
            }
        }
    }
    let below = remote::list(url, url.key).map_err(failed)?;
    add_objects(sources, url, below, format)
}

/// Adds the objects of a folder, as [`walk`] adds its files.
fn add_objects(
    sources: &mut Sources,
    url: &Url<'_>,
    mut objects: Vec<(String, Object)>,
    format: Option<Format>,
) -> Result<(), InputError> {
    let before = sources.list.len();
    let folder = url.key.trim_end_matches('/').len();
    // Folder by folder, as files are: a slash comes before every other sign of a name.
    objects.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    for (key, object) in objects {
        let below = key.get(folder..).unwrap_or(&key);
        if below.split('/').any(|name| name.starts_with('.')) {
            continue;
        }
        if is_wanted_object(&key, format) {
            sources.list.push(Source::object(object, format, true)?);
        } else {
            sources.skipped.push(PathBuf::from(object.name()));
        }
    }
    if sources.list.len() == before {
        return Err(InputError::EmptyFolder { path: PathBuf::from(url.to_string()) });
    }
    sources.were_walked(before);
    Ok(())
}

/// Adds the objects that match a pattern, and those of folders that do.
fn add_matching_objects(sources: &mut Sources, url: &Url<'_>, format: Option<Format>) -> Result<(), InputError> {
    let name = url.to_string();
    let failed = |cause| InputError::Remote { name: name.as_str().into(), cause };
    if url.scheme == Scheme::Http {
        let all = alternatives(url.whole);
        // A web server can't be asked what it has, but these are names.
        let all: Vec<Url<'_>> = all.iter().filter_map(|one| Url::parse(one)).collect();
        if all.iter().any(|one| one.path().contains(['*', '['])) {
            return Err(failed(remote::RemoteError::NoList));
        }
        for one in all {
            let named: Arc<str> = one.to_string().into();
            let object = remote::look_at(&one).map_err(|cause| InputError::Remote { name: named, cause })?;
            sources.list.push(Source::object(object, format, false)?);
        }
        return Ok(());
    }
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
    let names_hidden = url.key.split('/').any(|name| name.starts_with('.'));
    let first_sign = url.key.find(['*', '?', '[', '{']).unwrap_or(0);
    let folder = url.key[..first_sign].rfind('/').map_or("", |slash| &url.key[..slash]);
    let patterns = alternatives(url.key.trim_end_matches('/'))
        .iter()
        .map(|pattern| glob::Pattern::new(pattern))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| InputError::BadPattern { pattern: name.clone(), cause })?;
    let matches = |name: &str| patterns.iter().any(|pattern| pattern.matches_with(name, options));
    let mut found = remote::list(url, folder).map_err(failed)?;
    found.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    let before = sources.list.len() + sources.skipped.len();
    for (key, object) in found {
        let is_hidden = key.split('/').any(|name| name.starts_with('.')) && !names_hidden;
        let in_folder = key.match_indices('/').any(|(slash, _)| matches(&key[..slash]));
        if is_hidden || !(in_folder || matches(&key)) {
            continue;
        }
        if in_folder && !is_wanted_object(&key, format) {
            sources.skipped.push(PathBuf::from(object.name()));
            continue;
        }
        let before = sources.list.len();
        sources.list.push(Source::object(object, format, true)?);
        if in_folder {
            sources.were_walked(before);
        }
    }
    if sources.list.len() + sources.skipped.len() == before {
        return Err(InputError::NoMatch { pattern: name });
    }
    Ok(())
}

/// Returns the patterns that a pattern with `{a,b}` stands for, as shells read it. Braces without a comma are meant literally.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut depth = 0;
    let mut cuts = Vec::new();
    for (at, c) in pattern.char_indices() {
        match c {
            '{' => {
                depth += 1;
                if depth == 1 {
                    cuts = vec![at];
                }
            }
            ',' if depth == 1 => cuts.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && cuts.len() > 1 {
                    let (before, after) = (&pattern[..cuts[0]], &pattern[at + 1..]);
                    cuts.push(at);
                    let part = |ends: &[usize]| &pattern[ends[0] + 1..ends[1]];
                    return cuts
                        .windows(2)
                        .flat_map(|ends| alternatives(&format!("{before}{}{after}", part(ends))))
                        .collect();
                }
            }
            _ => {}
        }
    }
    vec![pattern.to_owned()]
}

fn add_folder(sources: &mut Sources, folder: &Path, format: Option<Format>) -> Result<(), InputError> {
    let before = sources.list.len();
    walk(sources, folder, format)?;
    if sources.list.len() == before {
        return Err(InputError::EmptyFolder { path: folder.to_owned() });
    }
    sources.were_walked(before);
    Ok(())
}

/// Returns the format that a name tells, also below a packing that is not supported: such a file holds records, so it must be refused rather than
/// passed over.
fn told_format(path: &Path) -> Option<Format> {
    match unsupported_packing(path) {
        Some(_) => detect(&path.with_extension("")).0,
        None => detect(path).0,
    }
}

/// Returns whether a file of a folder counts.
fn is_wanted(path: &Path, format: Option<Format>) -> bool {
    let told = told_format(path);
    let Some(format) = format else { return told.is_some() };
    // What has the right name is to be read, or to be named as broken.
    let is_named = path.extension().is_some();
    let is_told = || look_at(path).ok().and_then(|(_, head)| format.is_told_by(&head, is_named));
    told == Some(format) || is_told().unwrap_or(true)
}

/// Returns whether an object of a folder counts. Looking into each would take a request, so all go by their names.
fn is_wanted_object(key: &str, format: Option<Format>) -> bool {
    let told = told_format(Path::new(key));
    let Some(format) = format else { return told.is_some() };
    told == Some(format) || format.is_told_by(&[], true).is_none()
}

/// Whether a folder is one that nearset has made: the state of an unfinished run, or a library.
fn is_own_folder(path: &Path) -> bool {
    let ends_with = |end: &str| path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(end.as_bytes()));
    ends_with(".resume") && path.join("state.json").exists()
        || (path.join("manifest.json").exists() || ends_with(".partial")) && path.join("lock").exists()
}

fn walk(sources: &mut Sources, folder: &Path, format: Option<Format>) -> Result<(), InputError> {
    let unreadable = |cause| InputError::Unreadable { path: folder.to_owned(), cause };
    let mut entries = fs::read_dir(folder).map_err(unreadable)?.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link to a folder may lead back up, so only real folders are entered.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if !is_own_folder(&path) {
                walk(sources, &path, format)?;
            }
        } else if path.is_dir() || !is_wanted(&path, format) {
            sources.skipped.push(path);
        } else {
            sources.list.push(Source::file(path, format)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_go_by_their_names() {
        for (key, format, wanted) in
            [("a/b.jsonl", None, true), ("a/b.bin", None, false), ("b", Some(Format::Text), true)]
        {
            assert_eq!(is_wanted_object(key, format), wanted, "{key}");
        }
    }

    #[cfg(feature = "pictures")]
    #[test]
    fn of_objects_pictures_are_those_with_a_picture_s_name() {
        for (key, wanted) in [("photos/a.JPG", true), ("photos/notes.txt", false), ("photos/0a1b2c", false)] {
            assert_eq!(is_wanted_object(key, Some(Format::Picture)), wanted, "{key}");
        }
    }

    #[test]
    fn braces_stand_for_their_parts() {
        assert_eq!(alternatives("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(alternatives("{a,b{c,d}}-{1,2}"), ["a-1", "a-2", "bc-1", "bc-2", "bd-1", "bd-2"]);
        assert_eq!(alternatives("x{,.gz}"), ["x", "x.gz"]);
        for literal in ["a{b}c", "a}b{c", "{", "a{b,c", "a"] {
            assert_eq!(alternatives(literal), [literal]);
        }
    }
}
