//! Which of some texts are few edits from another, and how few.
//!
//! Claim: what is found is what comparing all texts finds; up to a limit few are compared.
//! Invariant: records are told by their place in the input, faulty ones aside. Empty texts are near nothing.

use std::sync::Arc;

use nearset_records::{Fields, Source};

use super::index::{Limit, Room, Texts};
use super::{Held, Reader, limit};
use crate::join::{Counts, Keep, TextMeasure};
use crate::run::{OnError, Progress, RunError};

/// Texts that others are looked for among.
pub struct EditSearch {
    held: Held,
    /// By text, where its records start, and where the last ones end.
    starts: Vec<u32>,
    records: Vec<u32>,
    is_limited: bool,
}

/// What a thread works with that looks for texts.
#[derive(Default)]
pub struct Searching {
    room: Room,
    text: Texts,
}

impl EditSearch {
    /// Reads all texts. Those up to `within` are found fast, as many edits or as much similarity as `measure` says; without it all are compared.
    ///
    /// # Errors
    /// If an input fails, a record is faulty and none may be, or `within` is nothing that `measure` counts.
    pub fn read(
        sources: &Arc<[Source]>,
        fields: &Fields,
        reading: (usize, OnError),
        (measure, within): (TextMeasure, Option<f64>),
        progress: &Progress,
    ) -> Result<(Self, Counts), RunError> {
        let is_similarity = measure == TextMeasure::EditSimilarity;
        let limit = match within {
            Some(near) => limit(measure, near).ok_or(RunError::NotNear { near, is_similarity })?,
            None if is_similarity => Limit::Similarity(0.0),
            None => Limit::Edits(usize::MAX),
        };
        let reader = Reader::new(fields, &[], None);
        // Texts are looked for that nobody has seen yet, so they may have any length.
        let any = u32::MAX as usize;
        let (held, counts) = Held::read(sources, reading, (&reader, &Keep::First), (limit, any), u64::MAX, progress)?;
        let mut records: Vec<(u32, u32)> =
            (0..).zip(&held.of).filter_map(|(record, text)| Some(((*text)?, record))).collect();
        records.sort_unstable();
        let texts = 0..=held.order.len() as u32;
        let starts = texts.map(|text| records.partition_point(|&(one, _)| one < text) as u32).collect();
        let records = records.into_iter().map(|(_, record)| record).collect();
        Ok((Self { held, starts, records, is_limited: within.is_some() }, counts))
    }

    /// Returns how many records there are, those with empty texts included.
    pub fn records(&self) -> u64 {
        self.held.of.len() as u64
    }

    /// Returns the memory that they take.
    pub fn bytes(&self) -> u64 {
        self.held.bytes() + self.held.ids.bytes() + 4 * (self.starts.len() + self.records.len()) as u64
    }

    /// Returns the id of a record.
    pub fn name(&self, record: u32) -> &str {
        self.held.ids.get(record as usize)
    }

    /// Returns the records nearest to a text, `top` at most, and how near they are: the nearest first, of equally near ones the earlier.
    pub fn search(&self, text: &str, top: Option<usize>, room: &mut Searching) -> Vec<(u32, f64)> {
        if text.is_empty() || top == Some(0) {
            return Vec::new();
        }
        let Searching { room, text: asked } = room;
        asked.clear();
        asked.push(text);
        let (chars, length) = (asked.chars(0), asked.length(0));
        let Held { index, limit, first, .. } = &self.held;
        let found = match top {
            Some(top) if !self.is_limited => index.nearest(chars, top, |text| first[text as usize], room),
            _ => index.near_other(chars, room),
        };
        let rows = found.into_iter().flat_map(|(text, edits)| {
            let stated = limit.stated(edits, length.max(index.texts().length(text)));
            let range = self.starts[text as usize] as usize..self.starts[text as usize + 1] as usize;
            self.records[range].iter().map(move |&record| (record, stated))
        });
        let mut rows: Vec<(u32, f64)> = rows.collect();
        rows.sort_unstable_by_key(|&(record, stated)| (limit.far(stated), record));
        rows.truncate(top.unwrap_or(usize::MAX));
        rows
    }
}
