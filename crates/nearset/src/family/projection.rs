//! What the families that project vectors on random rows share: the matrix, the band keys of its values, and their
//! neighbours.

use super::{Hashed, Key, Layout, WorkBound, key_of_rows};
use crate::error::SpecError;

/// The maximum number of components of a vector.
const MOST_COMPONENTS: u32 = 1 << 24;
/// The maximum number of numbers that drawn functions may hold: a gigabyte of them.
const MOST_NUMBERS: usize = 1 << 28;

/// Draws a matrix with one row of `dimension` numbers per function; [`check_size`] must come first.
pub(super) fn matrix(dimension: u32, functions: usize, mut draw: impl FnMut() -> f64) -> Vec<f32> {
    (0..dimension as usize * functions).map(|_| draw() as f32).collect()
}

/// The number of operations to draw a Gaussian number.
pub(super) const GAUSSIAN_WORK: u64 = 28;
/// The number of operations to draw a Cauchy number.
pub(super) const CAUCHY_WORK: u64 = 15;

/// Returns the work of a matrix with one row of `dimension` numbers per function, each drawn in `number` operations.
pub(super) fn work_bound(dimension: u32, layout: Layout, number: u64) -> WorkBound {
    let (dimension, functions) = (u64::from(dimension), layout.functions() as u64);
    let numbers = dimension.saturating_mul(functions);
    let (draw, hash) = (numbers.saturating_mul(number), numbers.saturating_add(25 * functions));
    WorkBound { draw, hash, item_bytes: size_of::<f32>() as u64 * dimension, ..WorkBound::default() }
}

/// Returns the bytes of functions that hold `numbers` numbers each.
pub(super) fn bytes_of_matrix(numbers: usize, layout: Layout) -> u64 {
    (size_of::<f32>() as u64).saturating_mul(numbers as u64).saturating_mul(layout.functions() as u64)
}

/// Checks that vectors of `dimension` can be hashed by `functions` functions that hold `numbers` numbers each.
pub(super) fn check_size(dimension: u32, numbers: usize, functions: usize) -> Result<(), SpecError> {
    if !(1..=MOST_COMPONENTS).contains(&dimension) {
        let need = "at least 1 and at most 2^24";
        return Err(SpecError::BadParameter { parameter: "dimension", value: f64::from(dimension), need });
    }
    let limit = MOST_NUMBERS / numbers;
    if functions > limit { Err(SpecError::TooManyFunctions { functions, limit }) } else { Ok(()) }
}

/// Fills `out.keys` from `out.rows`.
pub(super) fn set_keys(out: &mut Hashed, layout: Layout) {
    out.keys.clear();
    let bands = out.rows.chunks_exact(layout.rows as usize);
    out.keys.extend(bands.map(|band| Some(key_of_rows(band.iter().map(|&value| value as u64)))));
}

/// Returns the rows of one band.
pub(super) fn band_rows(hashed: &Hashed, layout: Layout, band: usize) -> &[i64] {
    let rows = layout.rows as usize;
    &hashed.rows[band * rows..(band + 1) * rows]
}

/// Returns the key of a band with one function's value replaced.
pub(super) fn key_with(rows: &[i64], position: usize, value: i64) -> Key {
    key_of_rows(rows.iter().enumerate().map(|(i, &own)| if i == position { value as u64 } else { own as u64 }))
}

#[cfg(test)]
pub(crate) mod pairs {
    //! Pairs of random vectors at a given distance, for the laws.

    use crate::{family::laws::ItemBuffer, hash::Rng};

    fn direction(dimension: u32, rng: &mut Rng) -> Vec<f64> {
        (0..dimension).map(|_| rng.gaussian()).collect()
    }

    fn inner(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    /// Returns the sum of `scale_a * a` and `scale_b * b`.
    fn combined(a: &[f64], scale_a: f64, b: &[f64], scale_b: f64) -> ItemBuffer {
        ItemBuffer::from(crate::Item::Vector(
            &a.iter().zip(b).map(|(x, y)| (scale_a * x + scale_b * y) as f32).collect::<Vec<_>>(),
        ))
    }

    /// Makes unit vectors this angle apart, the second one stretched.
    pub(crate) fn at_angle(dimension: u32) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
        move |angle, rng| {
            let a = direction(dimension, rng);
            let mut b = direction(dimension, rng);
            let along = inner(&a, &b) / inner(&a, &a);
            b.iter_mut().zip(&a).for_each(|(b, a)| *b -= along * a);
            let (length_a, length_b) = (inner(&a, &a).sqrt(), inner(&b, &b).sqrt());
            let second = combined(&a, 3.0 * angle.cos() / length_a, &b, 3.0 * angle.sin() / length_b);
            (combined(&a, 1.0 / length_a, &b, 0.0), second)
        }
    }

    /// Makes a random vector, and one moved away from it in a random direction whose norm is scaled to the distance.
    pub(crate) fn moved(dimension: u32, norm: fn(&[f64]) -> f64) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
        move |distance, rng| {
            let (a, step) = (direction(dimension, rng), direction(dimension, rng));
            (combined(&a, 2.0, &step, 0.0), combined(&a, 2.0, &step, distance / norm(&step)))
        }
    }
}
