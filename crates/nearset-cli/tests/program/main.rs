//! The real program on real files.

mod dedup;
mod failures;
mod formats;
mod resume;
mod support;
