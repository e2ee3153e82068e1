//! From what the user typed to an ordered list of sources.
//!
//! Invariant: the order depends only on the arguments and the file names, never on the file system's own order, because
//! the order decides which of two near records is the earlier one.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::InputError;
use crate::format::{Compression, Format, detect, unsupported_packing};

/// Where a source's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
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
}

impl Source {
    /// Returns the path, unless it is the pipe.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::Stdin => None,
            Location::File(path) => Some(path),
        }
    }

    /// Returns whether a record can be read again where it lies: in a plain file of lines. Others have to be read from their start.
    pub fn is_read_in_place(&self) -> bool {
        self.bytes.is_some()
            && self.path().is_some()
            && self.compression == Compression::None
            && !self.format.is_columnar()
    }

    /// Returns the number of records that the file itself states; `None` where it states none, or can't be read.
    pub fn stated_records(&self) -> Option<u64> {
        match self.format.layout() {
            layout if layout.is_whole_file() => Some(1),
            layout if layout.is_columnar() => super::parquet::num_rows(self).ok(),
            _ => None,
        }
    }

    /// Returns the same records in a file at another place, packed in any way.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn at(&self, path: &Path) -> Result<Self, InputError> {
        Self::file(path.to_owned(), Some(self.format))
    }

    fn stdin(format: Option<Format>) -> Result<Self, InputError> {
        let name: Arc<str> = "<stdin>".into();
        let format = format.unwrap_or(Format::Jsonl);
        if format.is_columnar() {
            return Err(InputError::ParquetNeedsFile { name });
        }
        Ok(Self { location: Location::Stdin, name, format, compression: Compression::None, bytes: None })
    }

    fn file(path: PathBuf, format: Option<Format>) -> Result<Self, InputError> {
        let (detected, compression) = detect(&path);
        let name: Arc<str> = path.to_string_lossy().into();
        if let Some(packing) = unsupported_packing(&path) {
            return Err(InputError::UnknownPacking { path, packing });
        }
        let Some(format) = format.or(detected) else {
            return Err(InputError::UnknownExtension { path });
        };
        if format.is_columnar() && compression != Compression::None {
            return Err(InputError::ParquetNeedsFile { name });
        }
        let (bytes, head) = match look_at(&path) {
            Ok(found) => found,
            Err(cause) => return Err(InputError::Unreadable { path, cause }),
        };
        // Names are lost on the way more often than packings are.
        let packed = Compression::sniff(&head);
        let compression = if packed == Compression::None { compression } else { packed };
        Ok(Self { location: Location::File(path), name, format, compression, bytes })
    }
}

/// Returns a file's size, and the bytes that tell a packing. A named pipe has a name but no size, and what is read from it is gone.
fn look_at(path: &Path) -> io::Result<(Option<u64>, Vec<u8>)> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        // A pipe that is opened and closed again ends its writer.
        return Ok((None, Vec::new()));
    }
    let mut head = Vec::new();
    fs::File::open(path)?.take(Compression::SNIFFED as u64).read_to_end(&mut head)?;
    Ok((Some(metadata.len()), head))
}

/// The sources in the order they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sources {
    /// What will be read.
    pub list: Vec<Source>,
    /// Files in named folders that were passed over because their extension tells no format.
    pub skipped: Vec<PathBuf>,
}

impl Sources {
    /// Returns the bytes on disk, if every source's size is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.list.iter().map(|source| source.bytes).sum()
    }
}

/// Turns files, folders (walked in sorted order; hidden files and files of no known format are passed over), glob
/// patterns and `-` into sources. `format` overrules the extensions, and makes every file of a folder count.
///
/// # Errors
/// If an argument matches nothing or cannot be read, or a format is neither told nor given.
pub fn resolve<S: AsRef<str>>(arguments: &[S], format: Option<Format>) -> Result<Sources, InputError> {
    let mut sources = Sources::default();
    for argument in arguments {
        let argument = argument.as_ref();
        let path = Path::new(argument);
        if argument == "-" {
            sources.list.push(Source::stdin(format)?);
        } else if path.is_dir() {
            add_folder(&mut sources, path, format)?;
        } else if path.exists() || !argument.contains(['*', '?', '[', '{']) {
            // A name that exists is meant literally, brackets and all.
            sources.list.push(Source::file(path.to_owned(), format)?);
        } else {
            add_matches(&mut sources, argument, format)?;
        }
    }
    if sources.list.is_empty() { Err(InputError::Nothing) } else { Ok(sources) }
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
    if sources.list.len() == before { Err(InputError::EmptyFolder { path: folder.to_owned() }) } else { Ok(()) }
}

/// Returns the format that a name tells, also below a packing that is not supported: such a file holds records, so it must be refused rather than
/// passed over.
fn told_format(path: &Path) -> Option<Format> {
    match unsupported_packing(path) {
        Some(_) => detect(&path.with_extension("")).0,
        None => detect(path).0,
    }
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
        } else if path.is_dir() || (format.is_none() && told_format(&path).is_none()) {
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
    fn braces_stand_for_their_parts() {
        assert_eq!(alternatives("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(alternatives("{a,b{c,d}}-{1,2}"), ["a-1", "a-2", "bc-1", "bc-2", "bd-1", "bd-2"]);
        assert_eq!(alternatives("x{,.gz}"), ["x", "x.gz"]);
        for literal in ["a{b}c", "a}b{c", "{", "a{b,c", "a"] {
            assert_eq!(alternatives(literal), [literal]);
        }
    }
}
