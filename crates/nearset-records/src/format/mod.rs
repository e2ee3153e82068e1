//! What a file holds and how it is packed, told by its name.
//!
//! Invariant: the extension decides, never the content, so that the same command means the same thing tomorrow. The one
//! exception is a pipe, which has no name: its compression is told by its first bytes.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

mod arrays;
mod fasta;
mod layout;
mod lines;
mod parquet;
#[cfg(feature = "pictures")]
mod picture;
mod table;

pub(crate) use arrays::{MAX_ARRAY_HEADER, array_dimensions};
pub(crate) use layout::{Adding, Layout};

use crate::input::Element;

/// How records lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A JSON object per line. Blank lines are no records.
    Jsonl,
    /// A document per line; an empty line is an empty document.
    Text,
    /// A document per file.
    TextFile,
    /// Comma-separated values under a header line, quoted as in RFC 4180.
    Csv,
    /// Tab-separated values under a header line, quoted as in RFC 4180.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// A two-dimensional NumPy array of numbers, a vector per row.
    Npy,
    /// Vectors of 32-bit floats, each after its own length.
    Fvecs,
    /// Vectors of bytes, each after its own length.
    Bvecs,
    /// Sequences below their names.
    Fasta,
    /// Sequences below their names, each with its quality.
    Fastq,
    /// A picture per file, which is read and written as its hashes.
    #[cfg(feature = "pictures")]
    Picture,
}

const CSV: table::Table = table::Table { name: "csv", extensions: &["csv"], delimiter: b',' };
const TSV: table::Table = table::Table { name: "tsv", extensions: &["tsv"], delimiter: b'\t' };

const FVECS: arrays::Vecs = arrays::Vecs { name: "fvecs", extensions: &["fvecs"], element: Element::F4 };
const BVECS: arrays::Vecs = arrays::Vecs { name: "bvecs", extensions: &["bvecs"], element: Element::U1 };

/// All formats, in the order of the enumeration.
const FORMATS: &[(Format, &dyn Layout)] = &[
    (Format::Jsonl, &lines::Jsonl),
    (Format::Text, &lines::Text),
    (Format::TextFile, &lines::TextFile),
    (Format::Csv, &CSV),
    (Format::Tsv, &TSV),
    (Format::Parquet, &parquet::Parquet),
    (Format::Npy, &arrays::Npy),
    (Format::Fvecs, &FVECS),
    (Format::Bvecs, &BVECS),
    (Format::Fasta, &fasta::Fasta),
    (Format::Fastq, &fasta::Fastq),
    #[cfg(feature = "pictures")]
    (Format::Picture, &picture::Pictures),
];

/// Returns the extensions that are known, as messages list them.
pub fn known_extensions() -> String {
    let all: Vec<String> =
        FORMATS.iter().flat_map(|(_, layout)| layout.extensions()).map(|extension| format!(".{extension}")).collect();
    format!("{}, each but .parquet also with {KNOWN_PACKINGS}; .npz", all.join(" "))
}

/// Returns the names that [`Format::from_str`] takes, as messages list them.
pub fn known_formats() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|(_, layout)| layout.name()).collect();
    names.join(", ")
}

impl Format {
    /// Returns what sets the format apart.
    pub(crate) fn layout(self) -> &'static dyn Layout {
        FORMATS[self as usize].1
    }

    /// Returns the format's name, as [`Format::from_str`] takes it.
    pub fn name(self) -> &'static str {
        self.layout().name()
    }

    /// Returns the byte between two cells of a row, for formats made of rows.
    pub(crate) fn delimiter(self) -> Option<u8> {
        match self.layout().adding() {
            Adding::Cells(delimiter) => Some(delimiter),
            _ => None,
        }
    }

    /// Returns whether records lie by columns, so that they are at no place in their file and a file is read from its end.
    pub fn is_columnar(self) -> bool {
        self.layout().is_columnar()
    }

    /// Returns whether a record is one line, and each line one record.
    pub fn is_one_line(self) -> bool {
        self.layout().is_one_line()
    }

    /// Returns whether a source states how many records it has.
    pub fn states_records(self) -> bool {
        self.is_columnar() || self.layout().is_whole_file()
    }

    /// Returns whether an unfinished output can be continued: not where its end or its start says how many records there are.
    pub fn is_resumable(self) -> bool {
        !self.is_columnar() && !self.layout().counts_first()
    }

    /// Returns whether a file is told by what is in it, where a folder is walked for files of this format. `is_named` says that its name has an
    /// ending, and none of the format's.
    pub(crate) fn is_told_by(self, head: &[u8], is_named: bool) -> Option<bool> {
        self.layout().is_told_by(head, is_named)
    }

    fn from_extension(extension: &str) -> Option<Self> {
        FORMATS.iter().find(|(_, layout)| layout.extensions().contains(&extension)).map(|(format, _)| *format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that is not known by that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no format is called {found:?}: use one of {}", known_formats())]
pub struct UnknownFormat {
    /// What was asked for.
    pub found: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = FORMATS.iter().find(|(_, layout)| layout.name() == name).map(|(format, _)| *format);
        named.or_else(|| Format::from_extension(name)).ok_or_else(|| UnknownFormat { found: name.to_owned() })
    }
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard, of one or several frames.
    Zstd,
    /// bzip2, of one or several streams.
    Bzip2,
    /// xz, of one or several streams.
    Xz,
    /// An array of NumPy in a `.npz` archive. It is read and not written.
    Npz,
}

impl Compression {
    /// How many bytes [`Compression::sniff`] looks at.
    pub(crate) const SNIFFED: usize = 10;

    /// Returns what the first bytes of a stream say.
    pub(crate) fn sniff(head: &[u8]) -> Self {
        match head {
            // The third byte is the method, of which there is only one.
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // All of this is printable, so a text could begin with the first letters alone. What follows the level is a block, or
            // the end of a stream that holds nothing.
            [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y', ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Compression::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            _ => Compression::None,
        }
    }

    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" | "bzip2" => Compression::Bzip2,
            "xz" => Compression::Xz,
            _ => return None,
        })
    }

    /// Returns the program that packs and unpacks this way, which is also what messages call the packing.
    pub(crate) fn tool(self) -> Option<&'static str> {
        Some(match self {
            Compression::None | Compression::Npz => return None,
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
        })
    }
}

/// The packings that are written and read, as error messages list them.
pub(crate) const KNOWN_PACKINGS: &str = ".gz, .zst, .bz2 or .xz";

/// Endings of packings and archives that are neither read nor written. A file must not carry such a name and hold something else.
const OTHER_PACKINGS: &[&str] =
    &["7z", "br", "brotli", "lz", "lz4", "lzma", "lzo", "rar", "snappy", "sz", "tar", "tbz2", "tgz", "txz", "z", "zip"];

/// Returns the ending of a path that names a packing which is not supported.
pub(crate) fn unsupported_packing(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let (_, extension) = name.rsplit_once('.')?;
    OTHER_PACKINGS.iter().copied().find(|&other| other == extension)
}

/// Returns what a path's extensions say; the format is `None` where none is known.
pub fn detect(path: &Path) -> (Option<Format>, Compression) {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.len() > 4 && name.ends_with(".npz") {
        return (Some(Format::Npy), Compression::Npz);
    }
    let packed = name.rsplit_once('.').and_then(|(stem, ending)| Some((stem, Compression::from_extension(ending)?)));
    let (stem, compression) = packed.unwrap_or((&name, Compression::None));
    let format = stem.rsplit_once('.').and_then(|(_, extension)| Format::from_extension(extension));
    // Parquet is compressed inside and read from its end, which a compressed stream cannot offer.
    let format = format.filter(|&format| !format.is_columnar() || compression == Compression::None);
    (format, compression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_format_and_compression() {
        let told = |name: &str| detect(Path::new(name));
        assert_eq!(told("a.jsonl"), (Some(Format::Jsonl), Compression::None));
        assert_eq!(told("dir.csv/c4-train.00000-of-01024.JSON.GZ"), (Some(Format::Jsonl), Compression::Gzip));
        assert_eq!(told("a.tsv.zst"), (Some(Format::Tsv), Compression::Zstd));
        assert_eq!(told("a.parquet"), (Some(Format::Parquet), Compression::None));
        assert_eq!(told("a.parquet.gz"), (None, Compression::Gzip));
        assert_eq!(told("a.csv.BZ2"), (Some(Format::Csv), Compression::Bzip2));
        assert_eq!(told("a.jsonl.xz"), (Some(Format::Jsonl), Compression::Xz));
        assert_eq!(told("reads_1.FQ.gz"), (Some(Format::Fastq), Compression::Gzip));
        assert_eq!(told("genome.fna"), (Some(Format::Fasta), Compression::None));
        assert_eq!(told("a.jsonl.zstd"), (Some(Format::Jsonl), Compression::Zstd));
        assert_eq!(told("vectors.NPZ"), (Some(Format::Npy), Compression::Npz));
        assert_eq!(told("vectors.npz.gz"), (None, Compression::Gzip));
        assert_eq!(told("gz"), (None, Compression::None));
        assert_eq!(told("a.docx"), (None, Compression::None));
        assert_eq!(told("jsonl"), (None, Compression::None));
    }

    #[test]
    fn packings_that_are_not_supported_are_known_by_name() {
        let told = |name: &str| unsupported_packing(Path::new(name));
        for (name, packing) in [("a.jsonl.lz4", "lz4"), ("a.csv.br", "br"), ("a.jsonl.Z", "z"), ("dir/a.ZIP", "zip")] {
            assert_eq!(told(name), Some(packing));
        }
        assert_eq!(["a.jsonl", "a.jsonl.gz", "a.bak", "zip", "a.lz4/b.txt"].map(told), [None; 5]);
    }

    #[test]
    fn bytes_tell_a_packing_and_no_text_does() {
        assert_eq!(Compression::sniff(b"BZh91AY&SY\x00"), Compression::Bzip2);
        assert_eq!(Compression::sniff(b"BZh9\x17rE8P\x90"), Compression::Bzip2);
        assert_eq!(Compression::sniff(b"\xfd7zXZ\0"), Compression::Xz);
        assert_eq!(Compression::sniff(b"BZh9 is how a line may begin"), Compression::None);
    }

    #[test]
    fn every_format_has_its_row() {
        assert!(FORMATS.iter().enumerate().all(|(row, (format, _))| *format as usize == row));
    }

    #[test]
    fn every_format_is_known_by_its_name() {
        for name in known_formats().split(", ") {
            assert_eq!(name.parse::<Format>().unwrap().name(), name);
        }
        assert!("xml".parse::<Format>().unwrap_err().to_string().contains("fvecs"));
    }
}
