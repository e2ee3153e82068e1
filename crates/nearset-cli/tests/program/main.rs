//! The real program on real files.

mod containment;
mod decontaminate;
mod dedup;
mod explore;
mod failures;
mod filters;
mod formats;
mod habits;
mod join;
mod library;
mod metrics;
mod outputs;
mod pictures;
mod plan;
mod reference;
#[cfg(feature = "remote")]
mod remote;
mod report;
mod resume;
mod search;
mod shards;
mod support;
mod units;
