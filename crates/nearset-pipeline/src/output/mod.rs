//! Outputs: whole or not at all.
//!
//! Claim: under the name the user gave there is either what was there before or the finished output, whatever happens in
//! between; and no input is ever written to.

mod added;
mod annotate;
mod any;
mod file;
mod parquet;
mod records;
mod table;

pub use added::{Added, AddedKind};
pub use annotate::Value;
pub(crate) use annotate::json_string;
pub use any::AnyWriter;
pub use file::{OutputFile, OutputOptions, partial_path};
pub use parquet::ParquetWriter;
pub use records::{Checkpoint, RecordWriter};
pub use table::TableFile;
