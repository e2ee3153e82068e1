//! Outputs: whole or not at all.
//!
//! Claim: under the name the user gave there is either what was there before or the finished output, whatever happens in
//! between; and no input is ever written to.

mod annotate;
mod file;
mod parquet;
mod records;

pub use annotate::Value;
pub(crate) use annotate::json_string;
pub use file::{OutputFile, OutputOptions, partial_path};
pub use parquet::ParquetWriter;
pub use records::{Checkpoint, RecordWriter};
