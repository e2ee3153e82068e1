//! Times on a machine that does other things too.

use std::time::Instant;

/// Returns the least seconds that each task took, over passes in which all take turns: a pass of some milliseconds is
/// seldom interrupted, and what slows the machine for a while slows all of them. So the ratios hold.
pub fn least_seconds<T>(
    passes: usize,
    tasks: &mut [T],
    run: impl Fn(&mut T) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    let mut least = vec![f64::INFINITY; tasks.len()];
    for _ in 0..passes {
        for (task, least) in tasks.iter_mut().zip(&mut least) {
            let started = Instant::now();
            run(task)?;
            *least = least.min(started.elapsed().as_secs_f64());
        }
    }
    Ok(least)
}
