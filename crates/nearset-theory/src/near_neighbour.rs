//! The near-neighbour index: how many functions per key, and how many tables.
//!
//! Claim: with a family that is `(near, far, p1, p2)`-sensitive, `k = ln n / ln(1/p2)` functions per key leave about
//! one far item per bucket, and `L = n^ρ` tables, `ρ = ln p1 / ln p2`, find a near item with probability at least
//! `1 - (1 - p1^k)^L`, which is `1 - 1/e` or more with whole `L` and `k` not rounded (course notes by Kesselheim &
//! Mehlhorn).

use super::{all_of, any_of};

/// A family's two promises: within `near` it collides with probability at least `p1`, beyond `far` with at most `p2`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// The least collision probability within the near distance.
    pub p1: f64,
    /// The greatest collision probability beyond the far distance.
    pub p2: f64,
}

impl Sensitivity {
    /// Returns `ρ = ln p1 / ln p2`: an index of `n` items probes about `n^ρ` tables.
    pub fn exponent(&self) -> f64 {
        libm::log(self.p1) / libm::log(self.p2)
    }

    /// Returns `k = ln n / ln(1/p2)`, not rounded.
    pub fn rows(&self, items: f64) -> f64 {
        libm::log(items) / -libm::log(self.p2)
    }

    /// Returns `L = n^ρ`, not rounded.
    pub fn tables(&self, items: f64) -> f64 {
        libm::pow(items, self.exponent())
    }

    /// Returns `1 - (1 - p1^k)^L`, the probability that at least one table has the near item in the query's bucket.
    pub fn success(&self, rows: f64, tables: f64) -> f64 {
        any_of(all_of((self.p1, 1.0 - self.p1), rows), tables).0
    }

    /// Returns an upper bound on the mean number of far items that a query meets over all tables: `L n p2^k`.
    pub fn far_candidates(&self, items: f64, rows: f64, tables: f64) -> f64 {
        tables * items * libm::pow(self.p2, rows)
    }
}

/// Returns the collision probability of bit sampling: `1 - d/l` for Hamming distance `d` over `l` positions.
pub fn hamming(distance: f64, length: f64) -> f64 {
    (1.0 - distance / length).clamp(0.0, 1.0)
}

/// Returns the collision probability of random hyperplanes: `1 - φ/π` for an angle in radians.
pub fn angle(radians: f64) -> f64 {
    (1.0 - radians / std::f64::consts::PI).clamp(0.0, 1.0)
}

/// Returns the collision probability of projecting the *plane* on a random line that is cut into buckets of `width` at
/// a random offset: `E[max(0, 1 - d |cos θ| / width)]`, `θ` uniform. The notes prove from it that the family is
/// `(w/2, 2w, 1/2, 1/3)`-sensitive.
pub fn random_line(distance: f64, width: f64) -> f64 {
    use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
    let ratio = distance / width;
    if ratio <= 1.0 {
        return 1.0 - FRAC_2_PI * ratio;
    }
    let least = libm::acos(1.0 / ratio);
    FRAC_2_PI * ((FRAC_PI_2 - least) - ratio * (1.0 - libm::sin(least)))
}

/// Returns the collision probability of projecting `dimension`-dimensional space on a random direction of *length 1*
/// that is cut into buckets of `width` at a random offset: `E[max(0, 1 - d |cos θ| / width)]`, where `θ` has the density
/// `sin^(dimension - 2)`. In the plane this is [`random_line`].
///
/// The more dimensions, the nearer `θ` is to a right angle, so that far points collide more and more often: the notes'
/// bound of 1/3 at `2w` holds up to four dimensions. Gaussian directions, whose length grows with the dimension, do not
/// have this problem.
///
/// # Panics
/// If there are fewer than two dimensions.
pub fn random_direction(distance: f64, width: f64, dimension: u32) -> f64 {
    assert!(dimension >= 2, "{dimension} dimensions have no random direction");
    // Simpson's rule over the angle; the integrand's one kink costs no more than 1e-7 with this many steps.
    const STEPS: u32 = 20_000;
    let (mut mass, mut collided) = (0.0, 0.0);
    for step in 0..=STEPS {
        let angle = std::f64::consts::FRAC_PI_2 * f64::from(step) / f64::from(STEPS);
        let weight = match step {
            0 | STEPS => 1.0,
            _ => f64::from(2 + 2 * (step % 2)),
        };
        let density = weight * libm::pow(libm::sin(angle), f64::from(dimension - 2));
        mass += density;
        collided += density * (1.0 - distance * libm::cos(angle) / width).max(0.0);
    }
    collided / mass
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assert_close, assert_printed};

    #[test]
    fn one_far_item_per_bucket_and_success_above_one_minus_one_over_e() {
        for (p1, p2) in [(0.9, 0.5), (0.95, 0.4), (0.5, 1.0 / 3.0)] {
            let family = Sensitivity { p1, p2 };
            for items in [1e3, 1e6, 1e12] {
                let (rows, tables) = (family.rows(items), family.tables(items));
                assert_close(items * libm::pow(p2, rows), 1.0, 1e-9);
                assert_close(family.far_candidates(items, rows, tables), tables, 1e-9);
                assert_close(libm::pow(p1, rows) * tables, 1.0, 1e-9);
                assert!(family.success(rows, tables.ceil()) >= 1.0 - (-1.0f64).exp());
            }
        }
    }

    #[test]
    fn hamming_with_worked_numbers() {
        // 64 bits, near 8, far 32: p1 = 7/8, p2 = 1/2, so k = log2 n and L = n^log2(8/7).
        let family = Sensitivity { p1: hamming(8.0, 64.0), p2: hamming(32.0, 64.0) };
        assert_eq!((family.p1, family.p2), (0.875, 0.5));
        assert_close(family.rows(1024.0), 10.0, 1e-12);
        assert_printed(family.exponent(), 0.1926, 4);
        assert_printed(family.tables(1024.0), 3.80, 2);
    }

    #[test]
    fn angles_run_from_certain_to_impossible() {
        use std::f64::consts::PI;
        assert_eq!((angle(0.0), angle(PI / 2.0), angle(PI)), (1.0, 0.5, 0.0));
        assert_close(angle(PI / 3.0), 2.0 / 3.0, 1e-12);
    }

    #[test]
    fn the_plane_is_sensitive_as_the_notes_say() {
        let width = 3.7;
        let (near, far) = (width / 2.0, 2.0 * width);
        assert_close(random_line(near, width), 1.0 - std::f64::consts::FRAC_1_PI, 1e-12);
        assert!(random_line(near, width) >= 0.5);
        assert!(random_line(far, width) <= 1.0 / 3.0);
        assert_printed(random_line(far, width), 0.163, 3);
    }

    #[test]
    fn directions_of_length_one_lose_the_far_bound_in_five_dimensions() {
        for ratio in [0.1, 0.5, 1.3, 2.0, 10.0] {
            assert!((random_direction(ratio, 1.0, 2) - random_line(ratio, 1.0)).abs() < 1e-6);
        }
        // In space |cos θ| is uniform: E[max(0, 1 - 2u)] = 1/4.
        assert!((random_direction(2.0, 1.0, 3) - 0.25).abs() < 1e-6);
        assert!(random_direction(2.0, 1.0, 4) <= 1.0 / 3.0);
        assert_printed(random_direction(2.0, 1.0, 5), 0.3594, 4);
        assert_printed(random_direction(2.0, 1.0, 100), 0.84, 2);
    }

    #[test]
    fn the_random_line_is_the_mean_over_directions() {
        for ratio in [0.1, 0.5, 1.0, 1.3, 2.0, 10.0] {
            let steps = 100_000;
            let mean = (0..steps)
                .map(|i| (f64::from(i) + 0.5) / f64::from(steps) * std::f64::consts::FRAC_PI_2)
                .map(|theta| (1.0 - ratio * libm::cos(theta)).max(0.0))
                .sum::<f64>()
                / f64::from(steps);
            assert_close(random_line(ratio, 1.0), mean, 1e-6);
        }
    }
}
