//! Christophides, "Finding Similar Sets", slides of a course (2019), after Leskovec, Rajaraman & Ullman.
//!
//! The worked examples ([`examples`]), MinHash banding and its S-curve ([`banding`]), AND, OR and their cascades ([`amplification`]), and fingerprints as
//! sets of minutiae ([`fingerprints`]); and whether random projections are more accurate ([`projections`]).

mod amplification;
mod banding;
mod examples;
mod fingerprints;
mod pairs;
mod projections;

use crate::run::Run;

/// Reruns the notes' tables and curves with filters over real sets.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    examples::run(run)?;
    banding::run(run)?;
    projections::run(run)?;
    amplification::run(run)?;
    fingerprints::run(run)?;
    run.headline("the printed tables are as calculated and as measured; two values were cut off instead of rounded, and one count is twice its formula")
}
