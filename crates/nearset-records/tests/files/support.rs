//! What the tests share: writing inputs, and reading them back whole.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use nearset::Item;
use nearset_records::{
    Arena, Batch, Fields, Format, InputError, ItemField, Position, ReadOptions, Reader, Source, chain, extract, resolve,
};
use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

pub fn sources(paths: &[&Path], format: Option<Format>) -> Vec<Source> {
    let arguments: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    resolve(&arguments, format).unwrap().list
}

pub fn text_fields() -> Fields {
    Fields::new("text", ItemField::Text)
}

/// All batches up to the end or the first error.
pub fn batches(sources: &[Source], options: &ReadOptions) -> (Vec<Batch>, Option<InputError>) {
    batches_from(sources, options, Position::default())
}

pub fn batches_from(sources: &[Source], options: &ReadOptions, at: Position) -> (Vec<Batch>, Option<InputError>) {
    let mut reader = Reader::open_at(sources.to_vec(), options.clone(), at);
    let mut all = Vec::new();
    loop {
        let mut batch = Batch::new();
        match reader.read_batch(&mut batch) {
            Ok(true) => all.push(batch),
            Ok(false) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

/// Batches of a single file that must be readable to its end.
pub fn read(path: &Path, fields: &Fields) -> Vec<Batch> {
    let (batches, error) = batches(&sources(&[path], None), &ReadOptions::new(fields.clone()));
    assert!(error.is_none(), "{error:?}");
    batches
}

/// `id` and item, or the error's message, of every record.
pub fn records(batches: &[Batch], fields: &Fields) -> Vec<Result<(String, String), String>> {
    let mut arena = Arena::new();
    let mut all = Vec::new();
    for batch in batches {
        let extracted = extract(batch, fields, &mut arena);
        assert_eq!(extracted.len(), batch.len());
        for i in 0..extracted.len() {
            all.push(match extracted.item(i) {
                Ok(Item::Text(text)) => Ok((extracted.id(i).into_owned(), text.to_owned())),
                Ok(Item::Vector(vector)) => Ok((extracted.id(i).into_owned(), format!("{vector:?}"))),
                Ok(Item::Bits(bits)) => {
                    Ok((extracted.id(i).into_owned(), format!("{} {:x?}", bits.len(), bits.words())))
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(chain(error)),
            });
        }
    }
    all
}

/// The items alone, none of them faulty.
pub fn texts(batches: &[Batch], fields: &Fields) -> Vec<String> {
    records(batches, fields).into_iter().map(|record| record.unwrap().1).collect()
}

pub fn raw(batches: &[Batch]) -> Vec<u8> {
    batches.iter().flat_map(|batch| batch.bytes().iter().copied()).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// In blocks of 100 kB, so that a file of some hundred has several.
pub fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn bunzip2(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut bzip2::read::MultiBzDecoder::new(bytes), &mut out).unwrap();
    out
}

pub fn unxz(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut lzma_rust2::XzReader::new(bytes, true), &mut out).unwrap();
    out
}

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(bytes), &mut out).unwrap();
    out
}

pub fn unzstd(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).unwrap()
}

/// JSON Lines of so many documents.
pub fn corpus(documents: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..documents {
        let line =
            format!("{{\"id\": {i}, \"text\": \"document {i}\\nsecond line \\u00e9 {}\"}}\n", "x".repeat(i % 97));
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes
}
