//! Apache Parquet: rows are decoded by `input::parquet` and copied by `output::parquet`, by columns.

use super::layout::{Extraction, Layout, Taken};
use crate::extract::{Decoder, ItemField, Raw};
use crate::input::{Preamble, Span};

/// Apache Parquet. A batch's bytes are the items' own, not the file's.
pub(super) struct Parquet;

impl Layout for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["parquet"]
    }

    /// There is no stream to be split.
    fn split(&self, _: &Preamble, _: &[u8], _: bool, _: &mut Vec<Span>) -> Taken {
        Taken::default()
    }

    fn is_text(&self, kind: ItemField) -> bool {
        kind != ItemField::Vector
    }

    fn extract(&self, decoder: &mut Decoder<'_, '_>, i: usize) -> Extraction {
        if decoder.fields().kind == ItemField::Vector {
            return Ok((decoder.row(i, 0), None));
        }
        let record = decoder.record_text(i)?;
        Ok((decoder.item(i, record, Raw::plain(0..record.len()))?, None))
    }

    fn is_lines(&self) -> bool {
        false
    }

    fn is_columnar(&self) -> bool {
        true
    }
}
