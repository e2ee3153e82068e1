//! Kesselheim & Mehlhorn, course notes on locality-sensitive hashing.
//!
//! The families for bits, directions and the plane ([`families`]), and the near-neighbour index made from them: how
//! many functions per key, how many tables, and what they find ([`index`]).

mod families;
mod index;

use crate::run::Run;

/// Reruns the notes' families and their index.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    families::run(run)?;
    index::run(run)?;
    run.headline("the index finds near items as predicted; whole numbers of functions take it a little below 1 - 1/e")
}
