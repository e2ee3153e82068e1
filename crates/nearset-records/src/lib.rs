//! Records in and out of files.
//!
//! - [`mod@format`]: what a file holds and how it is packed, by its name.
//! - [`input`]: files, folders, globs, objects and the pipe as one ordered list, read in batches of whole records.
//! - [`mod@extract`]: texts, bit strings, vectors and ids out of a batch.
//! - [`output`]: kept records byte for byte, in files that appear whole or not at all, and can be continued behind a checkpoint.
//! - [`error`], [`cure`]: what can go wrong, and what a user can do about it.
//! - [`remote`]: files that are not here, but in object stores and on web servers.
//! - [`resume`], [`scratch`]: the state of an unfinished run, and room for what is read again.
//!
//! One thread reads, many extract, one writes in order: batches own their bytes and carry their position, so nothing here
//! depends on which thread does what. There is no hashing here, and no default that decides an answer: those are `nearset`'s.
//!
//! ```
//! use nearset_records::{Arena, Batch, Fields, ItemField, ReadOptions, Reader, extract, resolve};
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

pub mod cure;
pub mod error;
pub mod extract;
pub mod format;
pub mod input;
pub mod output;
pub mod remote;
pub mod resume;
pub mod scratch;

pub use cure::Cure;
pub use error::{InputError, OutputError, RecordError, RecordFault, chain};
pub use extract::{Arena, Extracted, Fields, ItemField, extract};
pub use format::{Compression, Format};
pub use input::{Batch, Position, ReadOptions, Reader, Source, Sources, resolve};
pub use output::{Added, AddedKind, AnyWriter, Checkpoint, OutputFile, OutputOptions, ParquetWriter, RecordWriter};
pub use resume::StateFolder;
pub use scratch::{Scratch, free_space, read_exact_at, scratch_folder};
