//! The locality-sensitive Bloom filter (Hua, Xiao, Veeravalli & Feng 2012).
//!
//! Claim: there are `L` functions, each a concatenation of `M` hashes `floor((a·v + b)/ω)` with `a` from an s-stable
//! distribution and `b` uniform in `[0, ω)`. Two points at distance `κ` agree in one hash with probability
//! `∫_0^ω (1/κ) f_s(t/κ) (1 - t/ω) dt`, where `f_s` is the density of `|X|`. The closed forms for the Gaussian and
//! Cauchy distributions belong to the hash family: `Stable::collision` in the `nearset` crate.
//! The basic filter accepts when all `L` bits are set. The improved one also consults a half-full verification filter
//! of `k` hashes, which halves false positives `k` times; and where exactly one bit is missing it tries the
//! neighbouring buckets.

use std::f64::consts::LN_2;

/// Returns the false-positive rate of the basic filter: `(1 - Π(1 - q_i))^L`, where item `i` sets the query's bit of
/// one function with probability `q_i`.
pub fn false_positive(bit_set_by: impl IntoIterator<Item = f64>, functions: u32) -> f64 {
    let ln_all_miss: f64 = bit_set_by.into_iter().map(|q| libm::log1p(-q)).sum();
    libm::pow(-libm::expm1(ln_all_miss), f64::from(functions))
}

/// Returns the false-positive rate of the improved filter: the basic rate times `(1/2)^k`.
pub fn verified_false_positive(basic: f64, verification_hashes: u32) -> f64 {
    basic * libm::exp2(-f64::from(verification_hashes))
}

/// Returns an upper bound on the false-negative rate of the basic filter: `1 - P1^L`, where `P1` is the probability
/// that one function agrees on near points.
pub fn false_negative_bound(agreement: f64, functions: u32) -> f64 {
    1.0 - libm::pow(agreement, f64::from(functions))
}

/// Approximates the false-negative rate of the improved filter: `1 - q1^L - L q1^(L-1) (1-q1) Σ e^(-C x(δ)²)`, summed
/// over the two neighbours `δ = ±1`, where `x(δ)` is the query's distance from that side of its bucket.
pub fn probed_false_negative(agreement: f64, functions: u32, decay: f64, to_sides: [f64; 2]) -> f64 {
    let found: f64 = to_sides.iter().map(|x| libm::exp(-decay * x * x)).sum();
    probed(agreement, functions, (1.0 - agreement) * found)
}

/// Returns the same without the heuristic: `1 - q1^L - L q1^(L-1) (q' - q1)`, with the exact probability `q'` that a
/// function agrees on the query's bucket or on one that is probed (`Stable::collision_within` in the `nearset` crate).
pub fn probed_false_negative_exact(agreement: f64, agreement_within_reach: f64, functions: u32) -> f64 {
    probed(agreement, functions, agreement_within_reach - agreement)
}

fn probed(agreement: f64, functions: u32, by_neighbour: f64) -> f64 {
    let count = f64::from(functions);
    let all = libm::pow(agreement, count);
    let all_but_one = count * libm::pow(agreement, count - 1.0) * by_neighbour;
    (1.0 - all - all_but_one).clamp(0.0, 1.0)
}

/// Returns the paper's balance, `λ f+ + (1-λ) f-`; the paper takes `λ = .3`.
pub fn balance(false_positive: f64, false_negative: f64, weight: f64) -> f64 {
    weight * false_positive + (1.0 - weight) * false_negative
}

/// Returns the size in bits of an array that `settings` single bits, repeats included, leave half full:
/// `settings / ln 2`.
pub fn half_full_bits(settings: f64) -> f64 {
    settings / LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assert_close, assert_printed, binomial, bloom};

    #[test]
    fn false_positives_basic_and_verified() {
        // Equal items: one minus the probability that none of n sets the bit, to the L-th power.
        let basic = false_positive(std::iter::repeat_n(1e-3, 1000), 7);
        assert_close(basic, libm::pow(1.0 - libm::pow(0.999, 1000.0), 7.0), 1e-10);
        assert_close(verified_false_positive(basic, 8), basic / 256.0, 1e-12);
        assert_eq!(false_positive([0.2, 1.0], 3), 1.0);
        assert_eq!(false_positive([], 3), 0.0);
    }

    #[test]
    fn false_negatives_basic_and_probed() {
        assert_close(false_negative_bound(0.9, 7), 1.0 - libm::pow(0.9, 7.0), 1e-12);
        // Neighbours out of reach leave the basic bound; a neighbour that always has the item forgives one miss of L.
        assert_close(probed_false_negative(0.9, 7, 1e9, [1.0, 1.0]), false_negative_bound(0.9, 7), 1e-12);
        let one_miss = binomial::below(7, 0.9, 6);
        assert_close(probed_false_negative(0.9, 7, 1.0, [0.0, 1e9]), one_miss, 1e-10);
        assert_close(probed_false_negative_exact(0.9, 1.0, 7), one_miss, 1e-10);
    }

    #[test]
    fn the_balance_weighs_both_errors() {
        assert_close(balance(0.1, 0.2, 0.3), 0.17, 1e-12);
        assert_eq!((balance(0.1, 0.2, 1.0), balance(0.1, 0.2, 0.0)), (0.1, 0.2));
    }

    #[test]
    fn the_papers_arrays_are_saturated() {
        const KILOBYTE: f64 = 8.0 * 1024.0;
        let (items, functions, hashes) = (581_012.0, 7.0, 8.0);
        let (array, verification) = (10.0 * KILOBYTE, 2.0 * KILOBYTE);
        assert_printed(functions * items / array, 50.0, 0);
        assert_printed(hashes * items / verification, 284.0, 0);
        // Next to no bits are expected to be 0 in either, so every query is accepted.
        for (bits, settings) in [(array, functions * items), (verification, hashes * items)] {
            assert!(bits * (1.0 - 1.0 / bits).powf(settings) < 1e-15);
            assert_eq!(bloom::load(bits, settings), 1.0);
        }
        assert_printed(half_full_bits(functions * items) / KILOBYTE, 716.0, 0);
        assert_printed(half_full_bits(hashes * items) / KILOBYTE, 819.0, 0);
    }
}
