//! Whether the field is there that is to be the id of records, and ids in files of their own.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::resolve::IdsFile;
use super::{Batch, ReadOptions, Reader, Source};
use crate::error::{InputError, RecordFault};
use crate::extract::{Arena, Fields, ItemField, extract};

/// Bytes of records that are looked at.
const LOOKED_AT: usize = 1 << 16;

/// Refuses an id field that the first records of the first file do not have: without ids they would go by the names of their lines, in
/// silence. Some of them may lack it. A pipe can't be looked at.
///
/// # Errors
/// If none of them has it.
pub fn expect_id_field(sources: &[Source], field: &str) -> Result<(), InputError> {
    let Some(first) = sources.first().filter(|source| source.bytes.is_some()) else { return Ok(()) };
    // An id may be a text or a number.
    let fields = Fields::new(field, ItemField::Texts).with_id(None);
    let mut options = ReadOptions::new(fields.clone());
    options.batch_bytes = LOOKED_AT;
    let mut batch = Batch::new();
    let name = Arc::clone(&first.name);
    match Reader::new(Arc::from([first.clone()]), options).read_batch(&mut batch) {
        Ok(true) => {}
        Err(InputError::MissingColumn { column, found, .. }) => {
            return Err(InputError::MissingIdField { name, field: column, found });
        }
        // Whatever else is wrong with it, reading it says so.
        _ => return Ok(()),
    }
    let mut arena = Arena::new();
    let extracted = extract(&batch, &fields, &mut arena);
    let missing = |i: usize| match extracted.item(i).map_err(|error| &error.fault) {
        Err(RecordFault::MissingField { found, .. }) => Some(found.clone()),
        _ => None,
    };
    match (0..extracted.len()).map(missing).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next()) {
        Some(found) => Err(InputError::MissingIdField { name, field: field.to_owned(), found }),
        None => Ok(()),
    }
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
