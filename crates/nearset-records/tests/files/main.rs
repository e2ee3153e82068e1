//! Real files, read and written: every format, every failure.

mod arrays;
mod batches;
mod extraction;
mod outputs;
mod parquets;
mod resolving;
mod sequences;
mod support;
mod tables;
