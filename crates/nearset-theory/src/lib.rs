//! The formulas of the literature behind nearset's filters and indexes, one module per paper or topic.
//!
//! Claim: each formula gives the values printed in its source; the tests beside it hold those values.
//! Invariant: these are pure functions of numbers, which know nothing of hash families, items or filters. Logarithms
//! and powers come from `libm`, so a plan is the same, bit for bit, on every machine.
//! Not here: the search for the best parameters, and the structures themselves, which belong to the `nearset` crate.
//!
//! All papers share one notation. A pair at some distance agrees in one hash with probability `p`, and in a *band* of
//! `rows` hashes with `p^rows`. A table answers "yes" to a key that it has never seen with probability `load`, so a
//! band *hits* with `q = 1 - (1 - p^rows)(1 - load)`, and a filter of `bands` tables accepts with
//! `Pr[Bin(bands, q) >= threshold]` ([`amplify::acceptance`]). Counts of items are `f64`, since plans reach 1e12 and
//! more.
//!
//! Probabilities a rounding error outside 0 to 1 are taken as 0 or 1; a NaN gives a NaN.

pub mod amplify;
pub mod balanced;
pub mod binomial;
pub mod bloom;
pub mod distance_sensitive;
pub mod locality_sensitive;
pub mod minutiae;
pub mod near_neighbour;
pub mod zero_fn;

/// Returns `(1 - miss)^count`, the probability of `count` events at once, and its complement, both to full precision.
///
/// Takes and returns a probability together with its complement, so that neither `1e-20` nor `1 - 1e-20` is lost.
fn all_of((hit, miss): (f64, f64), count: f64) -> (f64, f64) {
    if hit < 0.5 {
        let all = libm::pow(hit, count);
        return (all, 1.0 - all);
    }
    let exponent = count * libm::log1p(-miss);
    (libm::exp(exponent), -libm::expm1(exponent))
}

/// Returns `1 - (1 - hit)^count`, the probability of at least one of `count` events, and its complement, both to full
/// precision.
fn any_of((hit, miss): (f64, f64), count: f64) -> (f64, f64) {
    let (none, any) = all_of((miss, hit), count);
    (any, none)
}

/// Returns a generator of random draws for simulations, fixed by its seed.
#[cfg(test)]
fn generator(seed: u8) -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &[seed; 32])
}

/// Returns a uniformly random set of `count` numbers below `range`.
#[cfg(test)]
fn distinct(rng: &mut impl proptest::prelude::RngExt, count: u32, range: u32) -> std::collections::BTreeSet<u32> {
    let mut drawn = std::collections::BTreeSet::new();
    while drawn.len() < count as usize {
        drawn.insert(rng.random_range(0..range));
    }
    drawn
}

#[cfg(test)]
#[track_caller]
fn assert_close(found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected.abs(), "{found:e}, expected {expected:e}");
}

/// Compares with a value printed to `decimals` decimal places.
#[cfg(test)]
#[track_caller]
fn assert_printed(found: f64, printed: f64, decimals: i32) {
    let half_unit = 0.5 * libm::pow(10.0, f64::from(-decimals));
    assert!((found - printed).abs() <= half_unit * (1.0 + 1e-9), "{found}, printed {printed}");
}
