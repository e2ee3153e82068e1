//! Files in, files out.
//!
//! - [`format`]: what a file holds and how it is packed, by its name.
//! - [`input`]: files, folders, globs and the pipe as one ordered list, read in batches of whole records.
//! - [`extract`]: texts, bit strings, vectors and ids out of a batch.
//! - [`output`]: kept records byte for byte, in files that appear whole or not at all.
//! - [`background`]: how far apart a file's items lie.
//! - [`capacity`]: how many records there will be.
//! - [`dedup`]: near-duplicates out of a corpus, in one pass, and a page about the run.
//! - [`join`]: near pairs, clusters and verified removal: texts are compared exactly, by reading them again.
//! - [`in_order`], [`scan`]: any work on pieces, or on all records, by many threads and in order.
//! - [`any_index`], [`filter_file`]: filters and indexes of every kind, and as files.
//! - [`measure`]: what a filter really does on someone's own items.
//! - [`plot`], [`curves`]: charts as SVG, and those of plans and filters.
//! - [`words`]: numbers, metrics and plans for people.
//!
//! One thread reads, many extract, one writes in order: batches own their bytes and carry their position, so nothing here
//! depends on which thread does what. There is no hashing here, and no default that decides an answer: those are `nearset`'s.
//!
//! ```
//! use nearset_pipeline::{Arena, Batch, Fields, ItemField, ReadOptions, Reader, extract, resolve};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("two.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"seven\"}\n{\"text\": \"nameless\"}\n")?;
//!
//! let fields = Fields::new("text", ItemField::Text);
//! let sources = resolve(&[path.to_string_lossy()], None)?;
//! let mut reader = Reader::new(sources.list, ReadOptions::new(fields.clone()));
//! let (mut batch, mut arena) = (Batch::new(), Arena::new());
//! assert!(reader.read_batch(&mut batch)?);
//! let records = extract(&batch, &fields, &mut arena);
//! assert_eq!((records.len(), &*records.id(0)), (2, "7"));
//! assert!(records.id(1).ends_with("two.jsonl:2"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod any_index;
pub mod background;
pub mod capacity;
pub mod curves;
pub mod dedup;
pub mod error;
pub mod extract;
pub mod filter_file;
pub mod format;
pub mod in_order;
pub mod input;
pub mod join;
pub mod measure;
pub mod output;
pub mod plot;
pub mod scan;
pub mod words;

pub use any_index::AnyIndex;
pub use error::{InputError, OutputError, RecordError, RecordFault};
pub use extract::{Arena, Extracted, Fields, ItemField, extract};
pub use filter_file::{FilterFile, FilterFileError, check_save, save_filter, save_index, write_filter};
pub use format::{Compression, Format};
pub use input::{Batch, Position, ReadOptions, Reader, Source, Sources, resolve};
pub use nearset::AnyFilter;
pub use output::{Added, AddedKind, AnyWriter, Checkpoint, OutputFile, OutputOptions, ParquetWriter, RecordWriter};
