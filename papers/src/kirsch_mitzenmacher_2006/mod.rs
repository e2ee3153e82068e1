//! Kirsch & Mitzenmacher, "Distance-Sensitive Bloom Filters" (ALENEX 2006).
//!
//! The filter as printed in both readings of its experiment ([`printed`]), what its sizes would be today on the same
//! strings ([`sizes`]), the scanned sketch and filters over Bloom filters ([`scan`]), its open questions ([`growth`],
//! [`edits`]), and its reduction of larger alphabets to bits ([`alphabet`]).

mod alphabet;
mod edits;
mod growth;
pub(crate) mod printed;
mod scan;
mod sizes;
mod workload;

use nearset_theory::distance_sensitive::Noise;

use crate::run::Run;

/// One of the paper's two settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Setting {
    /// The number of strings stored.
    pub items: u64,
    /// ε.
    pub near: f64,
}

pub(crate) const SETTINGS: [Setting; 2] = [Setting { items: 1_000, near: 0.1 }, Setting { items: 10_000, near: 0.05 }];
/// δ.
pub(crate) const FAR: f64 = 0.4;
const READINGS: [Noise; 2] = [Noise::Rerandomise, Noise::Flip];

fn reading_name(noise: Noise) -> &'static str {
    match noise {
        Noise::Rerandomise => "drawn anew",
        Noise::Flip => "flipped",
    }
}

/// Reruns Table 1, Figures 1 and 2, the larger alphabets, and the same goals with today's sizes.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let printed = printed::run(run)?;
    sizes::run(run, &printed)?;
    scan::run(run, &printed)?;
    growth::run(run)?;
    alphabet::run(run)?;
    edits::run(run)
}
