//! Whether fields are there that records may lack (ids, and parts of a text), and ids in files of their own.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::resolve::IdsFile;
use super::{Batch, ReadOptions, Reader, Source};
use crate::error::{InputError, RecordFault};
use crate::extract::{Arena, Fields, ItemField, extract};
use crate::format::Format;

/// Bytes of records that are looked at for an id.
const LOOKED_AT: usize = 1 << 16;

/// Bytes of records that are looked at for a part of their texts, of which most may have none.
const LOOKED_AT_FOR_PARTS: u64 = 64 << 20;

/// Refuses an id field that the first records of the first file do not have: without ids they would go by the names of their lines, in
/// silence. Some of them may lack it. A pipe can't be looked at.
///
/// # Errors
/// If none of them has it.
pub fn expect_id_field(sources: &[Source], field: &str) -> Result<(), InputError> {
    let Some(first) = sources.first().filter(|source| source.bytes.is_some()) else { return Ok(()) };
    match fields_instead(first, field, LOOKED_AT, LOOKED_AT as u64) {
        Some(found) => {
            Err(InputError::MissingIdField { name: Arc::clone(&first.name), field: field.to_owned(), found })
        }
        None => Ok(()),
    }
}

/// Refuses a field that is to be a part of each text, and that no record at the start of the first file has: misspelt, it would leave texts
/// alike that are not, in silence. Some of them may lack it. A pipe can't be looked at, and tables tell by their columns.
///
/// # Errors
/// If none of them has it.
pub fn expect_joined_fields(sources: &[Source], fields: &Fields) -> Result<(), InputError> {
    let is_told = |source: &&Source| source.bytes.is_some() && source.format == Format::Jsonl;
    let Some(first) = sources.first().filter(is_told) else { return Ok(()) };
    let mut parts = fields.joined().map(str::trim).peekable();
    // A field may be called so itself.
    if parts.peek().is_none() || fields_instead(first, &fields.item, LOOKED_AT, LOOKED_AT as u64).is_none() {
        return Ok(());
    }
    let missing = |part| fields_instead(first, part, 1 << 20, LOOKED_AT_FOR_PARTS).map(|found| (part, found));
    match parts.find_map(missing) {
        Some((part, found)) => {
            Err(InputError::MissingPart { name: Arc::clone(&first.name), field: part.to_owned(), found })
        }
        None => Ok(()),
    }
}

/// Returns the fields that a source's first records have, if none of them has this one. They are read in batches, up to so many bytes.
fn fields_instead(source: &Source, field: &str, batch_bytes: usize, most_bytes: u64) -> Option<Vec<String>> {
    // An id may be a text or a number.
    let fields = Fields::new(field, ItemField::Texts).with_id(None);
    let mut options = ReadOptions::new(fields.clone());
    options.batch_bytes = batch_bytes;
    let mut reader = Reader::new(Arc::from([source.clone()]), options);
    let (mut batch, mut arena) = (Batch::new(), Arena::new());
    let (mut instead, mut read) = (None, 0);
    while read < most_bytes {
        match reader.read_batch(&mut batch) {
            Ok(true) => {}
            Err(InputError::MissingColumn { found, .. }) => return Some(found),
            // Whatever else is wrong with it, reading it says so.
            Ok(false) => break,
            Err(_) => return None,
        }
        read += batch.bytes().len() as u64;
        let extracted = extract(&batch, &fields, &mut arena);
        for i in 0..extracted.len() {
            match extracted.item(i).map_err(|error| &error.fault) {
                Err(RecordFault::MissingField { found, .. }) => {
                    instead.get_or_insert_with(|| found.clone());
                }
                _ => return None,
            }
        }
    }
    instead
}

/// Gives an array the ids that stand in a text file, one per line.
///
/// # Errors
/// If the file can't be read, or the ids are not those of one array.
pub fn name_by_file(sources: &mut [Source], path: &Path) -> Result<(), InputError> {
    let [source] = sources else { return Err(InputError::IdsOfOne { found: sources.len() }) };
    if source.format.layout().is_text(ItemField::Vector) || source.format.is_columnar() {
        let name = Arc::clone(&source.name);
        return Err(InputError::IdsInside { name, format: source.format });
    }
    let unreadable = |cause| InputError::Unreadable { path: path.to_owned(), cause };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let ids = text.lines().map(Into::into).collect();
    source.ids = Some(Arc::new(IdsFile { path: path.to_owned(), ids }));
    Ok(())
}
