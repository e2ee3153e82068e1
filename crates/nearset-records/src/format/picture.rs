//! Pictures: a record per file, which is read and written as a line of JSON with its hashes.
//!
//! `{"id": file, "hash": PDQ, "quality": 0 to 100, "width": pixels, "height": pixels}`, and `pdq`, `phash` or `dhash` where the item is called so.
//! Invariant: the hashes of a picture with too little to see say nothing about it, so such pictures are compared by the bytes of their files.

use nearset_pictures::{Algorithm, LEAST_QUALITY, Picture, hash, is_picture};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::Format;
use super::layout::{Extraction, Layout, Taken};
use crate::error::{InputError, RecordFault};
use crate::extract::{Decoder, Fields, ItemField};
use crate::input::{Batch, Head, Position, Preamble, ReadOptions, Source, Span};
use crate::output::json_string;

/// A picture per file.
pub(super) struct Pictures;

/// The largest file that is taken for a picture.
const LONGEST: usize = 256 << 20;

impl Layout for Pictures {
    fn name(&self) -> &'static str {
        "picture"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["jpg", "jpeg", "jpe", "jfif", "png", "apng", "webp", "gif", "tif", "tiff", "bmp"]
    }

    fn preamble(&self, _: &mut Head, _: &Source, _: &ReadOptions) -> Result<Preamble, InputError> {
        Ok(Preamble::default())
    }

    fn split(&self, _: &Preamble, bytes: &[u8], at_end: bool, spans: &mut Vec<Span>) -> Taken {
        if !at_end {
            return Taken::default();
        }
        spans.push(Span { start: 0, end: bytes.len(), line: 0 });
        Taken { bytes: bytes.len(), lines: 0 }
    }

    fn to_lines(&self) -> Option<fn(&Batch, &Fields) -> Batch> {
        Some(to_lines)
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn is_told_by(&self, head: &[u8], is_named: bool) -> Option<bool> {
        Some(is_picture(head, is_named))
    }

    fn is_text(&self, _: ItemField) -> bool {
        false
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, _: usize) -> Extraction {
        Err(RecordFault::WrongType { field: decoder.fields().item.clone(), found: "a picture", wanted: "its hash" })
    }

    fn is_lines(&self) -> bool {
        false
    }

    fn is_whole_file(&self) -> bool {
        true
    }

    fn written_as(&self) -> Option<Format> {
        Some(Format::Jsonl)
    }
}

/// Hashes the picture of a batch.
fn to_lines(batch: &Batch, fields: &Fields) -> Batch {
    let algorithms: Vec<Algorithm> = fields.item.split(',').filter_map(|name| name.parse().ok()).collect();
    let mut line = b"{\"id\":".to_vec();
    json_string(batch.name(), &mut line);
    let (mut picture, mut faults, mut stand_in) = (None, Vec::new(), None);
    if let Some((_, fault)) = batch.faults.first() {
        faults.push((0, fault.clone()));
    } else if !batch.is_empty() {
        // A batch without a record is one of a source that broke off.
        match hash(batch.raw(0), &algorithms) {
            Ok(hashed) => {
                append(&hashed, &algorithms, &mut line);
                let digits = if matches!(algorithms[..], [Algorithm::PHash | Algorithm::DHash]) { 16 } else { 64 };
                stand_in = (hashed.quality < LEAST_QUALITY).then(|| digest(batch.raw(0))[..digits].into());
                picture = Some(hashed);
            }
            Err(fault) => faults.push((0, fault.into())),
        }
    }
    line.extend_from_slice(b"}\n");
    let spans = batch.spans.iter().map(|_| Span { start: 0, end: line.len(), line: 0 }).collect();
    Batch {
        spans,
        bytes: line,
        // There are no lines in the file.
        start: Position { line: 0, ..batch.start },
        end: batch.end,
        name: batch.name.clone(),
        format: Some(Format::Jsonl),
        faults,
        disk_bytes: batch.disk_bytes,
        stand_in,
        picture,
        ..Batch::default()
    }
}

fn append(picture: &Picture, algorithms: &[Algorithm], line: &mut Vec<u8>) {
    let hashes = [("hash", Algorithm::Pdq)].into_iter().chain(algorithms.iter().map(|&one| (one.name(), one)));
    for (name, digits) in hashes.filter_map(|(name, algorithm)| Some((name, picture.hex(algorithm)?))) {
        line.extend_from_slice(format!(",\"{name}\":\"{digits}\"").as_bytes());
    }
    let Picture { quality, width, height, .. } = picture;
    line.extend_from_slice(format!(",\"quality\":{quality},\"width\":{width},\"height\":{height}").as_bytes());
}

/// 256 bits that equal files share, and others are far from.
fn digest(bytes: &[u8]) -> String {
    format!("{:032x}{:032x}", xxh3_128_with_seed(bytes, 0), xxh3_128_with_seed(bytes, 1))
}
