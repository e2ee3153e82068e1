//! Outputs: whole or not at all.
//!
//! Claim: under the name the user gave there is either what was there before or the finished output, whatever happens in
//! between; and no input is ever written to. Pipes, devices and sockets are written through, and stay what they are.

mod added;
mod annotate;
mod any;
mod file;
mod object;
mod parquet;
mod records;
mod shards;
mod table;
mod target;

pub use added::{Added, AddedKind};
pub use annotate::{Value, json_string};
pub use any::{AnyWriter, check_sources};
pub use file::{OutputFile, OutputOptions, partial_path};
pub use parquet::ParquetWriter;
pub use records::{Checkpoint, RecordWriter};
pub use shards::{ShardWriter, is_folder, publish_shards, remove_partial_shards};
pub use table::TableFile;
pub use target::{is_same_output, is_stdout, is_written_through};
