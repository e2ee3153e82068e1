//! Kirsch & Mitzenmacher, "Distance-Sensitive Bloom Filters" (2006).

use crate::run::Run;

/// Reruns Table 1, Figures 1 and 2, and the same with half-full tables.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    run.progress("nothing yet");
    Ok(())
}
