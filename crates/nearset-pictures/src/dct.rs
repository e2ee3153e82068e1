//! The discrete cosine transform, of the frequencies that are looked at only.

use std::f64::consts::PI;
use std::ops::Range;

/// Returns the frequencies in `range` x `range` of a square picture, row by row: `D A D'` with `D[i][k] = sqrt(2 / n) cos(pi i (2 k + 1) / 2 n)`.
///
/// `libm` and sums in one order give the same bits everywhere.
pub fn frequencies(picture: &[f32], side: usize, range: Range<usize>) -> Vec<f32> {
    let scale = libm::sqrt(2.0 / side as f64) as f32;
    // Rounded once, as the reference does.
    let cosine = |i: usize, k: usize| {
        (f64::from(scale) * libm::cos(PI / 2.0 / side as f64 * i as f64 * (2 * k + 1) as f64)) as f32
    };
    let matrix: Vec<Vec<f32>> = range.map(|i| (0..side).map(|k| cosine(i, k)).collect()).collect();
    let mut frequencies = Vec::with_capacity(matrix.len() * matrix.len());
    let mut half = vec![0.0f32; side];
    for of_rows in &matrix {
        half.fill(0.0);
        for (weight, row) in of_rows.iter().zip(picture.chunks_exact(side)) {
            half.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        frequencies
            .extend(matrix.iter().map(|of_columns| half.iter().zip(of_columns).fold(0.0, |sum, (a, b)| sum + a * b)));
    }
    frequencies
}
