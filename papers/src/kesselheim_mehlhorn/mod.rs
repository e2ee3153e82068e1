//! Kesselheim & Mehlhorn, course notes on locality-sensitive hashing.
//!
//! The Bloom filter and Figure 1 ([`bloom`]), the families for sets, bits, directions and buckets ([`families`]), and
//! the near-neighbour index made from them: how many functions per key, how many tables, and what they find ([`index`]).

mod bloom;
mod families;
mod index;

use crate::run::Run;

/// Reruns the notes' Bloom filter, families and index.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    bloom::run(run)?;
    families::run(run)?;
    index::run(run)?;
    run.headline("the index finds near items as predicted; the bound for buckets (Lemma 4.10) fails from five dimensions on, and Gaussian directions keep it")
}
