//! Exact distances between dense vectors: angle and cosine, L1, L2.
//!
//! Claim: sums are taken in f64 over f32 components, whose squares, and the products of whose norms, neither overflow
//! nor vanish there: components of 1e38 and of 1e-45 are as good as any. Eight interleaved partial sums, always added
//! up in the same order, let the compiler use vector registers without changing a bit of the result.
//! Reference: for the angle, W. Kahan, "How futile are mindless assessments of roundoff in floating-point
//! computation?", 2006, section 12: `2 atan2(|a/|a| - b/|b||, |a/|a| + b/|b||)` keeps its digits where the arc cosine
//! of a rounded cosine has lost them all, near 0 and near pi.

use super::{Distance, Item, ItemError, kind};

/// Returns the angle between two vectors, in radians from 0 to pi; exactly 0 for equal vectors.
///
/// # Errors
/// If the lengths differ, a component is not finite, or a vector has no direction.
pub(crate) fn angle(a: &[f32], b: &[f32]) -> Result<Distance, ItemError> {
    same_length(a, b)?;
    let (norm_a, norm_b) = (direction_square(a)?.sqrt(), direction_square(b)?.sqrt());
    let apart = sum(a, b, |x, y| square(norm_b * x - norm_a * y));
    let together = sum(a, b, |x, y| square(norm_b * x + norm_a * y));
    Distance::new(2.0 * libm::atan2(apart.sqrt(), together.sqrt()))
}

/// Returns the sum of the absolute differences (Manhattan distance).
///
/// # Errors
/// If the lengths differ or a component is not finite.
pub(crate) fn l1(a: &[f32], b: &[f32]) -> Result<Distance, ItemError> {
    same_length(a, b)?;
    finite_sum(a, b, sum(a, b, |x, y| (x - y).abs())).and_then(Distance::new)
}

/// Returns the length of the difference (Euclidean distance).
///
/// # Errors
/// If the lengths differ or a component is not finite.
pub(crate) fn l2(a: &[f32], b: &[f32]) -> Result<Distance, ItemError> {
    same_length(a, b)?;
    finite_sum(a, b, sum(a, b, |x, y| square(x - y))).and_then(|sum| Distance::new(sum.sqrt()))
}

/// Returns the item's components, if it is a vector of this dimension.
pub(crate) fn components(item: Item<'_>, dimension: u32) -> Result<&[f32], ItemError> {
    let Item::Vector(vector) = item else {
        return Err(ItemError::WrongKind { expected: kind::VECTOR, found: item.kind() });
    };
    if vector.len() != dimension as usize {
        let (expected, found) = (dimension as usize, vector.len());
        return Err(ItemError::WrongLength { expected, found, unit: "components" });
    }
    Ok(vector)
}

/// Returns the largest absolute value among the components.
///
/// # Errors
/// If a component is not finite.
pub(crate) fn largest(vector: &[f32]) -> Result<f32, ItemError> {
    // Without its sign bit a float orders as its bits do, and NaN and infinity come last.
    let bits = vector.iter().fold(0, |most, x| most.max(x.abs().to_bits()));
    let largest = f32::from_bits(bits);
    if largest.is_finite() { Ok(largest) } else { Err(first_not_finite(vector)) }
}

/// Returns the square of the norm.
pub(crate) fn norm_square(vector: &[f32]) -> f64 {
    sum(vector, vector, |x, _| x * x)
}

/// Writes the vector to `out`, multiplied by the power of two that brings `largest` into `[1, 2)`.
///
/// No direction is lost: only components 2^126 times smaller than the largest are rounded.
pub(crate) fn scale_to_one(vector: &[f32], largest: f32, out: &mut Vec<f32>) {
    // In f64 even the smallest f32 is normal, so the exponent can be read off.
    let exponent = f64::from(largest).to_bits() >> 52;
    let factor = f64::from_bits((2 * 1023 - exponent) << 52);
    out.clear();
    out.extend(vector.iter().map(|&x| (f64::from(x) * factor) as f32));
}

#[inline(always)]
fn square(x: f64) -> f64 {
    x * x
}

#[inline(always)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (whole_a, rest_a) = a.as_chunks::<8>();
    let (whole_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..8 {
            lanes[lane] += term(f64::from(a[lane]), f64::from(b[lane]));
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane += term(f64::from(x), f64::from(y));
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = lanes;
    ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}

fn same_length(a: &[f32], b: &[f32]) -> Result<(), ItemError> {
    if a.len() == b.len() {
        return Ok(());
    }
    Err(ItemError::WrongLength { expected: a.len(), found: b.len(), unit: "components" })
}

/// Checks that all components are finite. Finite components have a finite sum in f64, so the sum alone tells.
fn finite_sum(a: &[f32], b: &[f32], sum: f64) -> Result<f64, ItemError> {
    if sum.is_finite() {
        return Ok(sum);
    }
    Err(first_not_finite(if a.iter().all(|x| x.is_finite()) { b } else { a }))
}

fn first_not_finite(vector: &[f32]) -> ItemError {
    let position = vector.iter().position(|x| !x.is_finite()).unwrap_or_default();
    ItemError::NotFinite { position, value: f64::from(vector[position]) }
}

fn direction_square(vector: &[f32]) -> Result<f64, ItemError> {
    let square = finite_sum(vector, vector, norm_square(vector))?;
    if square > 0.0 { Ok(square) } else { Err(ItemError::ZeroVector) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::{Seed, hash::Rng};

    type Measure = fn(&[f32], &[f32]) -> Result<f64, ItemError>;

    const MEASURES: [Measure; 3] = [
        |a, b| angle(a, b).map(Distance::value),
        |a, b| l1(a, b).map(Distance::value),
        |a, b| l2(a, b).map(Distance::value),
    ];

    fn random(length: usize, rng: &mut Rng) -> Vec<f32> {
        (0..length).map(|_| rng.gaussian() as f32).collect()
    }

    #[test]
    fn worked_values() {
        let (a, b) = ([3.0, 0.0, 4.0], [0.0, 5.0, 0.0]);
        assert_eq!(l1(&a, &b).unwrap().value(), 12.0);
        assert_eq!(l2(&a, &b).unwrap().value(), 50f64.sqrt());
        assert_eq!(angle(&a, &b).unwrap().value(), PI / 2.0);
        let angle = angle(&[1.0, 0.0], &[1.0, 1.0]).unwrap().value();
        assert!((angle - PI / 4.0).abs() < 1e-15);
    }

    #[test]
    fn tiny_and_nearly_straight_angles_keep_their_digits() {
        for exponent in [-40, -20, -10, -5] {
            let tiny = 2f32.powi(exponent);
            let expected = f64::from(tiny).atan();
            let near_zero = angle(&[1.0, 0.0], &[1.0, tiny]).unwrap().value();
            assert!((near_zero - expected).abs() <= 1e-15 * expected, "{near_zero} for {expected}");
            let near_pi = angle(&[1.0, 0.0], &[-1.0, tiny]).unwrap().value();
            assert!((PI - near_pi - expected).abs() <= 1e-15, "{near_pi}");
        }
    }

    #[test]
    fn a_vector_is_at_no_distance_from_itself_and_opposite_to_its_negative() {
        let mut rng = Rng::new(Seed::new(1));
        for length in 1..60 {
            let a = random(length, &mut rng);
            let negative: Vec<f32> = a.iter().map(|x| -x).collect();
            assert_eq!(angle(&a, &a).unwrap(), Distance::ZERO);
            assert_eq!(l1(&a, &a).unwrap(), Distance::ZERO);
            assert_eq!(l2(&a, &a).unwrap(), Distance::ZERO);
            assert_eq!(angle(&a, &negative).unwrap().value(), PI);
        }
    }

    #[test]
    fn distances_are_symmetric_and_angles_ignore_length() {
        let mut rng = Rng::new(Seed::new(2));
        for length in 1..60 {
            let (a, b) = (random(length, &mut rng), random(length, &mut rng));
            for measure in MEASURES {
                assert_eq!(measure(&a, &b), measure(&b, &a));
            }
            let tripled: Vec<f32> = b.iter().map(|x| 3.0 * x).collect();
            let (one, three) = (angle(&a, &b).unwrap().value(), angle(&a, &tripled).unwrap().value());
            assert!((one - three).abs() < 1e-6, "tripling rounds each component by up to 2^-24 of itself");
        }
    }

    #[test]
    fn huge_and_subnormal_components_have_distances() {
        for size in [1e30f32, f32::MAX, 1e-30, 1e-45] {
            let (a, b) = ([size; 40], [-size; 40]);
            let size = f64::from(size);
            let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-14;
            assert!(close(l1(&a, &b).unwrap().value(), 80.0 * size));
            assert!(close(l2(&a, &b).unwrap().value(), 2.0 * size * 40f64.sqrt()));
            assert_eq!(angle(&a, &b).unwrap().value(), PI);
            let mut turned = a;
            turned[20..].iter_mut().for_each(|x| *x = -*x);
            assert!((angle(&a, &turned).unwrap().value() - PI / 2.0).abs() < 1e-15);
        }
    }

    #[test]
    fn what_has_no_distance_is_an_error() {
        for measure in MEASURES {
            let wrong_length = ItemError::WrongLength { expected: 2, found: 3, unit: "components" };
            assert_eq!(measure(&[1.0, 2.0], &[1.0, 2.0, 3.0]), Err(wrong_length));
            for bad in [f32::INFINITY, f32::NEG_INFINITY] {
                let not_finite = Err(ItemError::NotFinite { position: 9, value: f64::from(bad) });
                let (good, mut spoilt) = ([1.0; 11], [1.0; 11]);
                spoilt[9] = bad;
                assert_eq!(measure(&good, &spoilt), not_finite);
                assert_eq!(measure(&spoilt, &good), not_finite);
                assert_eq!(measure(&spoilt, &spoilt), not_finite);
            }
            assert!(matches!(measure(&[1.0, f32::NAN], &[1.0, 0.0]), Err(ItemError::NotFinite { position: 1, .. })));
        }
        for empty in [&[][..], &[0.0, -0.0]] {
            assert_eq!(angle(empty, empty), Err(ItemError::ZeroVector));
            assert_eq!(l2(empty, empty), Ok(Distance::ZERO));
        }
    }

    #[test]
    fn scaling_takes_the_largest_component_to_between_one_and_two() {
        let mut out = Vec::new();
        for vector in [[1e-45f32, 0.0, -1e-44], [f32::MAX, 1.0, -3.0], [1.5, -1.0, 0.25], [1e-38, -1e-39, 1e-38]] {
            let largest = largest(&vector).unwrap();
            scale_to_one(&vector, largest, &mut out);
            let scaled = out.iter().fold(0f32, |most, x| most.max(x.abs()));
            assert!((1.0..2.0).contains(&scaled), "{vector:?} became {out:?}");
            assert!(angle(&vector, &out).unwrap().value() < 1e-15);
        }
    }
}
