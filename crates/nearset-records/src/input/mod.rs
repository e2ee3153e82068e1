//! Inputs: what the user named, as an ordered list of sources, read in batches of whole records.
//!
//! The work is cut so that one thread can read, many can extract and one can write: a [`Reader`] only decompresses and
//! finds where records end; what is *in* a record is the business of [`mod@crate::extract`].

mod batch;
mod decompress;
mod ids;
mod parquet;
mod reader;
mod resolve;

pub(crate) use batch::Span;
pub use batch::{Batch, Preamble};
pub use decompress::{checksums, peek_stdin};
pub use ids::expect_id_field;
pub(crate) use reader::{BYTE_ORDER_MARK, Head};
pub use reader::{Position, ReadOptions, Reader};
pub use resolve::{Location, Source, Sources, resolve};

pub(crate) use parquet::open_file as open_parquet;
