//! A file-metadata trace with the published shape of the MSN trace, which itself is not public.
//!
//! Known about it: 1.25 million files, and for each the time of its last access, its reads, its writes, where in the
//! sequence of operations it was touched, and its size. Not known: units and joint distribution. So this is our own
//! model, and what the paper printed about the trace can be compared with it in kind, not in number:
//!
//! - Files come in folders of 1 to 200 (heavy-tailed: `200^u`, `u` uniform), created and used together. A folder has a
//!   time within six hours, a typical size (log-normal, median 16 units of 1,024 bytes, σ = 1.6) and a typical popularity.
//! - A file's size is its folder's times a log-normal of σ = .5, at most 1 GiB; its last access is within some minutes
//!   of its folder's (Gaussian, σ = 120 s).
//! - Reads are geometric with a mean drawn for the folder (log-normal, median 1.5, σ = 1), writes likewise (median .5).
//! - The sequence is the rank of the access time, since operations are numbered in order.
//!
//! The units are chosen so that no attribute drowns the others by its unit alone: seconds, reads, writes, thousands of
//! operations, units of 1,024 bytes.

use nearset::{Rng, Seed};

use super::points::Point;

/// Access time, reads, writes, operation sequence, size.
pub const ATTRIBUTES: usize = 5;

/// The number of files in the trace.
pub const FILES: usize = 1_250_000;

const SECONDS: f64 = 6.0 * 3600.0;
const MOST_KIB: f64 = 1_048_576.0;

/// Generates `count` files in random order.
pub fn files(count: usize, seed: Seed) -> Vec<Point<ATTRIBUTES>> {
    let mut rng = Rng::new(seed);
    let mut files = Vec::with_capacity(count);
    while files.len() < count {
        let folder = libm::pow(200.0, rng.unit()) as usize;
        let time = SECONDS * rng.unit();
        let size = 16.0 * libm::exp(1.6 * rng.gaussian());
        let (reads, writes) = (1.5 * libm::exp(rng.gaussian()), 0.5 * libm::exp(rng.gaussian()));
        for _ in 0..folder.min(count - files.len()) {
            let accessed = (time + 120.0 * rng.gaussian()).clamp(0.0, SECONDS).round();
            let kib = (size * libm::exp(0.5 * rng.gaussian())).clamp(1.0, MOST_KIB).round();
            files.push([accessed as f32, geometric(reads, &mut rng), geometric(writes, &mut rng), 0.0, kib as f32]);
        }
    }
    let mut by_time: Vec<usize> = (0..count).collect();
    by_time.sort_by(|&a, &b| files[a][0].total_cmp(&files[b][0]));
    for (rank, file) in by_time.into_iter().enumerate() {
        files[file][3] = rank as f32 / 1000.0;
    }
    crate::strings::shuffle(&mut files, &mut rng);
    files
}

/// Draws a geometric count, starting at 0, with this mean.
fn geometric(mean: f64, rng: &mut Rng) -> f32 {
    libm::floor(libm::log(1.0 - rng.unit()) / libm::log(mean / (1.0 + mean))) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hua_2012::points::{bounds, moments};

    #[test]
    fn traces_have_the_stated_shape_and_repeat() {
        let files = files(20_000, Seed::new(1));
        assert_eq!(files, super::files(20_000, Seed::new(1)));
        let (low, high) = bounds(&files);
        assert!(low.iter().all(|&value| value >= 0.0) && high[0] <= 21_600.0 && high[3] < 20.0);
        let (mean, _) = moments(&files);
        // Folders' means are log-normal: 1.5 e^(1/2) reads and .5 e^(1/2) writes per file. With about 500 folders of
        // unequal size the standard error is some 10 %; the tolerance is 4 of them.
        assert!((mean[1] / 2.47 - 1.0).abs() < 0.4 && (mean[2] / 0.82 - 1.0).abs() < 0.4, "{mean:?}");
    }
}
