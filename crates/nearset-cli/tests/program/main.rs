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
mod plan;
mod reference;
mod report;
mod resume;
mod search;
mod shards;
mod support;
mod units;
