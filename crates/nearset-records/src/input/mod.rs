//! Inputs: what the user named, as an ordered list of sources, read in batches of whole records.
//!
//! The work is cut so that one thread can read, many can extract and one can write: a [`Reader`] only decompresses and
//! finds where records end; what is *in* a record is the business of [`mod@crate::extract`].

mod batch;
mod decompress;
mod element;
mod ids;
mod npz;
mod parquet;
mod places;
mod reader;
mod resolve;

pub(crate) use batch::Span;
pub use batch::{Batch, Preamble};
pub use decompress::{checksums, peek_stdin};
pub(crate) use element::Element;
pub use ids::{expect_id_field, expect_joined_fields, name_by_file};
pub use places::{Places, expect_soon};
pub(crate) use reader::{BYTE_ORDER_MARK, Head};
pub use reader::{Position, ReadOptions, Reader};
pub use resolve::{IdsFile, Location, Source, Sources, resolve, state_of_file};

pub(crate) use parquet::{AnyFile, item_columns, open_file as open_parquet};
