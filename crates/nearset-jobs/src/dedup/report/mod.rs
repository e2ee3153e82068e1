//! From a run to the page about it: what is remembered of it, a sample compared exactly, and what comes of both.
//!
//! Invariant: the page is a function of the records, their order and the options. It names neither time nor threads, so equal runs
//! give equal pages.

mod measured;
mod recheck;
mod run;
mod samples;

pub(super) use run::page_of_run;
pub(super) use samples::{Place, SAMPLED, Samples, is_sampled};
