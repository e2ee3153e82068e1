//! Christophides, course notes on finding similar items (2019), after Leskovec, Rajaraman & Ullman.
//!
//! MinHash banding and its S-curve ([`banding`]), AND, OR and their cascades ([`amplification`]), and fingerprints as
//! sets of minutiae ([`fingerprints`]).

mod amplification;
mod banding;
mod fingerprints;
mod pairs;

use crate::run::Run;

/// Reruns the notes' tables and curves with filters over real sets.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    banding::run(run)?;
    amplification::run(run)?;
    fingerprints::run(run)?;
    run.headline("every printed value is as calculated, and measured on sets and prints as predicted")
}
