//! Gregersen, Faarhoff & Marker, "Similarity Filters: A Survey" (draft, 2014).
//!
//! It adds two things to the filter of 2006: *balanced sampling*, which looks at every position equally often
//! ([`sampling`]), and from it a threshold that never loses a near item ([`zero`]). The latter stands beside the other
//! ways to lose none.

mod sampling;
mod zero;

use crate::run::Run;

/// Reruns Figures 2 and 3 with and without balanced sampling, and the threshold without false negatives.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    sampling::run(run)?;
    zero::run(run)?;
    run.headline(
        "balanced sampling changes nothing over long strings and much over short ones; its threshold loses nothing, for small radii",
    )
}
