//! Runs over records.
//!
//! - [`run`]: what runs that write records have in common: options, progress, errors, checkpoints.
//! - [`decontaminate`]: benchmark items inside records, by how much of an item is in a window of a text.
//! - [`dedup`]: near-duplicates out of a corpus, in one pass, by a filter.
//! - [`join`]: near pairs, clusters and verified removal: texts are compared exactly, by reading them again.
//! - `hash`, with the feature `pictures`: the hashes of pictures.
//! - [`query`]: records screened against a filter.
//! - [`library`]: what earlier runs kept, for later ones to compare with.
//! - [`background`]: how far apart a file's items lie.
//! - [`capacity`]: how many records there will be.
//! - [`memory`]: how much of it a run may take.
//! - [`measure`]: what a filter really does on someone's own items.
//! - [`in_order`], [`scan`]: any work on pieces, or on all records, by many threads and in order.
//! - [`rounds`]: verified removal for engines that shuffle, such as Spark.
//! - [`screen`]: filters built before, by which texts are screened.
//! - [`text_pairs`]: near pairs of texts that are in memory.
//! - [`units`]: repeated paragraphs, lines or sentences out of texts.
//! - [`filter_file`]: filters and indexes as files.
//!
//! Claim: what a run gives is a function of the records, their order and the options, whatever thread does what.
//! Not here: how records lie in files (`nearset-records`), and how to print anything (`nearset-view`).

pub mod background;
pub mod capacity;
mod crew;
pub mod decontaminate;
pub mod dedup;
pub mod filter_file;
#[cfg(feature = "pictures")]
pub mod hash;
pub mod in_order;
pub mod join;
pub mod library;
pub mod measure;
pub mod memory;
pub mod query;
mod report;
pub mod rounds;
pub mod run;
pub mod scan;
pub mod screen;
pub mod text_pairs;
pub mod units;

pub use filter_file::{FilterFile, FilterFileError, HeldFilter, check_save, save_filter, save_index, write_filter};
