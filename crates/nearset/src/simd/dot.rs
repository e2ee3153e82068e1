//! Dot products of f32 vectors, and of many rows with one vector.
//!
//! Claim: a result has the same bits at every level. It is defined by a fixed order of operations:
//!
//! - narrow ([`dot`], [`project`]): component `i` goes to lane `i mod 16`; a lane adds up its products in order, each
//!   product rounded to f32 before it is added (no fused multiply-add); then lane `j` adds lane `j + 8`, then `j + 4`,
//!   `j + 2`, `j + 1`.
//! - wide ([`project_wide`]): the same with 8 lanes of f64. A product of two f32 is exact there, so fusing would not
//!   matter.
//!
//! The rounding error is at most about `(n/16 + 5) 2^-24` (narrow) or `(n/8 + 4) 2^-53` (wide) of the sum of the
//! products' absolute values. An overflow gives an infinity or NaN at every level, though not always the same NaN.
//!
//! Every level is the *same source*, compiled for different instructions: since Rust never reorders or fuses float
//! operations, the compiler's only choice is registers 4, 8 or 16 lanes wide. Several rows are taken at a time, because
//! each addition in the chain of one row waits for the result of the one before.

#![allow(unsafe_code)]

use super::{Level, line::prefetch};

const LANES: usize = 16;
const WIDE_LANES: usize = 8;

/// Returns the dot product of two vectors of equal length.
///
/// # Panics
/// If the lengths differ.
#[cfg(test)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut out = [0.0];
    project(a, b, &mut out);
    out[0]
}

/// Computes the dot product of each row of a matrix with one vector: `rows` holds `out.len()` rows, one after the
/// other.
///
/// # Panics
/// If `rows.len() != vector.len() * out.len()`.
pub(crate) fn project(rows: &[f32], vector: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), vector.len() * out.len(), "rows must be as long as the vector");
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { x86::project_avx512(rows, vector, out) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::project_avx2(rows, vector, out) },
        Level::Scalar => {}
    }
    project_rows::<2>(rows, vector, out);
}

/// Like [`project`], with sums in f64.
///
/// # Panics
/// If `rows.len() != vector.len() * out.len()`.
pub(crate) fn project_wide(rows: &[f32], vector: &[f32], out: &mut [f64]) {
    assert_eq!(rows.len(), vector.len() * out.len(), "rows must be as long as the vector");
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { x86::project_wide_avx512(rows, vector, out) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::project_wide_avx2(rows, vector, out) },
        Level::Scalar => {}
    }
    project_wide_rows::<2>(rows, vector, out);
}

/// Calls `each` with the dot product of each numbered row with the vector and with itself, in the order of `numbers`.
/// `rows` holds rows of `vector.len()` numbers, one after the other.
///
/// # Panics
/// If there is no row with some number.
pub(crate) fn project_selected(rows: &[f32], numbers: &[u32], vector: &[f32], each: impl FnMut(f32, f32)) {
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { x86::project_selected_avx512(rows, numbers, vector, each) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::project_selected_avx2(rows, numbers, vector, each) },
        Level::Scalar => {}
    }
    select_rows(rows, numbers, vector, each);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn project_selected_avx512(rows: &[f32], numbers: &[u32], vector: &[f32], each: impl FnMut(f32, f32)) {
        super::select_rows(rows, numbers, vector, each);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn project_selected_avx2(rows: &[f32], numbers: &[u32], vector: &[f32], each: impl FnMut(f32, f32)) {
        super::select_rows(rows, numbers, vector, each);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn project_avx512(rows: &[f32], vector: &[f32], out: &mut [f32]) {
        super::project_rows::<8>(rows, vector, out);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn project_avx2(rows: &[f32], vector: &[f32], out: &mut [f32]) {
        super::project_rows::<4>(rows, vector, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn project_wide_avx512(rows: &[f32], vector: &[f32], out: &mut [f64]) {
        super::project_wide_rows::<8>(rows, vector, out);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn project_wide_avx2(rows: &[f32], vector: &[f32], out: &mut [f64]) {
        super::project_wide_rows::<4>(rows, vector, out);
    }
}

/// Takes `TOGETHER` rows at a time.
#[inline(always)]
fn project_rows<const TOGETHER: usize>(rows: &[f32], vector: &[f32], out: &mut [f32]) {
    let length = vector.len();
    let (chunks, tail) = vector.as_chunks::<LANES>();
    let last: [f32; LANES] = padded(tail, tail.len());
    let (blocks, rest) = out.as_chunks_mut::<TOGETHER>();
    let done = blocks.len() * TOGETHER;
    for (i, block) in blocks.iter_mut().enumerate() {
        *block = dots(&rows[i * TOGETHER * length..], chunks, &last, tail.len());
    }
    for (i, out) in rest.iter_mut().enumerate() {
        [*out] = dots(&rows[(done + i) * length..], chunks, &last, tail.len());
    }
}

/// How many rows are on their way from memory while one is multiplied.
const AHEAD: usize = 6;

#[inline(always)]
fn select_rows(rows: &[f32], numbers: &[u32], vector: &[f32], mut each: impl FnMut(f32, f32)) {
    let length = vector.len();
    let (chunks, tail) = vector.as_chunks::<LANES>();
    let last: [f32; LANES] = padded(tail, tail.len());
    for (i, &number) in numbers.iter().enumerate() {
        if let Some(&later) = numbers.get(i + AHEAD)
            && let Some(row) = rows.get(later as usize * length..)
        {
            // A chunk is a cache line long.
            row.iter().take(length).step_by(LANES).for_each(prefetch);
        }
        let row = &rows[number as usize * length..];
        let (whole, rest) = row[..].as_chunks::<LANES>();
        let (mut products, mut squares) = ([0f32; LANES], [0f32; LANES]);
        for (chunk, row) in chunks.iter().zip(whole) {
            add_products(&mut products, row, chunk);
            add_products(&mut squares, row, row);
        }
        if !tail.is_empty() {
            let row = whole.get(chunks.len()).map_or(rest, |chunk| chunk);
            let row = padded(row, tail.len());
            add_products(&mut products, &row, &last);
            add_products(&mut squares, &row, &row);
        }
        each(sum(products), sum(squares));
    }
}

/// Adds up the lanes.
#[inline(always)]
fn sum(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Returns the dot products of the first rows in `rows` with a vector, cut into whole chunks and a padded `last` of
/// `tail` numbers.
#[inline(always)]
fn dots<const ROWS: usize>(rows: &[f32], chunks: &[[f32; LANES]], last: &[f32; LANES], tail: usize) -> [f32; ROWS] {
    let whole = LANES * chunks.len();
    let mut lanes = [[0f32; LANES]; ROWS];
    let starts: [&[f32]; ROWS] = std::array::from_fn(|row| &rows[row * (whole + tail)..]);
    let whole_rows = starts.map(|row| &row.as_chunks::<LANES>().0[..chunks.len()]);
    for (i, chunk) in chunks.iter().enumerate() {
        for row in 0..ROWS {
            add_products(&mut lanes[row], &whole_rows[row][i], chunk);
        }
    }
    if tail > 0 {
        for row in 0..ROWS {
            add_products(&mut lanes[row], &padded(&starts[row][whole..], tail), last);
        }
    }
    lanes.map(sum)
}

#[inline(always)]
fn add_products(lanes: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for lane in 0..LANES {
        lanes[lane] += a[lane] * b[lane];
    }
}

/// Returns the first `length` numbers, then zeros. A lane is never -0 (it starts at +0), so adding products of zeros
/// changes nothing.
#[inline(always)]
fn padded<const N: usize>(numbers: &[f32], length: usize) -> [f32; N] {
    // A row is mostly followed by the next one: reading into that and blanking it out again is one masked load.
    if let Some(chunk) = numbers.first_chunk::<N>() {
        return std::array::from_fn(|lane| if lane < length { chunk[lane] } else { 0.0 });
    }
    let mut chunk = [0.0; N];
    chunk[..length].copy_from_slice(&numbers[..length]);
    chunk
}

#[inline(always)]
fn project_wide_rows<const TOGETHER: usize>(rows: &[f32], vector: &[f32], out: &mut [f64]) {
    let length = vector.len();
    let (chunks, tail) = vector.as_chunks::<WIDE_LANES>();
    let last: [f32; WIDE_LANES] = padded(tail, tail.len());
    let (blocks, rest) = out.as_chunks_mut::<TOGETHER>();
    let done = blocks.len() * TOGETHER;
    for (i, block) in blocks.iter_mut().enumerate() {
        *block = dots_wide(&rows[i * TOGETHER * length..], chunks, &last, tail.len());
    }
    for (i, out) in rest.iter_mut().enumerate() {
        [*out] = dots_wide(&rows[(done + i) * length..], chunks, &last, tail.len());
    }
}

#[inline(always)]
fn dots_wide<const ROWS: usize>(
    rows: &[f32],
    chunks: &[[f32; WIDE_LANES]],
    last: &[f32; WIDE_LANES],
    tail: usize,
) -> [f64; ROWS] {
    let whole = WIDE_LANES * chunks.len();
    let mut lanes = [[0f64; WIDE_LANES]; ROWS];
    let starts: [&[f32]; ROWS] = std::array::from_fn(|row| &rows[row * (whole + tail)..]);
    let whole_rows = starts.map(|row| &row.as_chunks::<WIDE_LANES>().0[..chunks.len()]);
    for (i, chunk) in chunks.iter().enumerate() {
        for row in 0..ROWS {
            add_products_wide(&mut lanes[row], &whole_rows[row][i], chunk);
        }
    }
    if tail > 0 {
        for row in 0..ROWS {
            add_products_wide(&mut lanes[row], &padded(&starts[row][whole..], tail), last);
        }
    }
    lanes.map(|mut lanes| {
        let mut half = WIDE_LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
            half /= 2;
        }
        lanes[0]
    })
}

#[inline(always)]
fn add_products_wide(lanes: &mut [f64; WIDE_LANES], a: &[f32; WIDE_LANES], b: &[f32; WIDE_LANES]) {
    for lane in 0..WIDE_LANES {
        lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Seed, hash::Rng, simd::at_level};

    /// The definition, one operation at a time.
    fn dot_by_the_book(a: &[f32], b: &[f32]) -> f32 {
        let mut lanes = [0f32; 16];
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            let product = x * y;
            lanes[i % 16] += product;
        }
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        lanes[0]
    }

    fn wide_by_the_book(a: &[f32], b: &[f32]) -> f64 {
        let mut lanes = [0f64; 8];
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            lanes[i % 8] += f64::from(*x) * f64::from(*y);
        }
        for half in [4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        lanes[0]
    }

    /// Returns the bits, mapping all NaNs to one.
    fn bits(x: f32) -> u32 {
        if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
    }

    fn check(rows: &[f32], vector: &[f32], count: usize) {
        let row = |i: usize| &rows[i * vector.len()..(i + 1) * vector.len()];
        for level in Level::available() {
            let (mut narrow, mut wide) = (vec![0.0; count], vec![0.0; count]);
            at_level(level, || {
                project(rows, vector, &mut narrow);
                project_wide(rows, vector, &mut wide);
            });
            // Backwards and twice, since any rows may be requested, in any order.
            let numbers: Vec<u32> = (0..count as u32).rev().flat_map(|number| [number; 2]).collect();
            let mut selected = Vec::new();
            at_level(level, || {
                project_selected(rows, &numbers, vector, |dot, square| selected.push((bits(dot), bits(square))));
            });
            let expected = numbers.iter().map(|&number| {
                let row = row(number as usize);
                (bits(dot_by_the_book(row, vector)), bits(dot_by_the_book(row, row)))
            });
            assert!(selected.into_iter().eq(expected), "{level:?}, selected");
            for i in 0..count {
                assert_eq!(bits(narrow[i]), bits(dot_by_the_book(row(i), vector)), "{level:?}, row {i}");
                assert_eq!(wide[i].to_bits(), wide_by_the_book(row(i), vector).to_bits(), "{level:?}, row {i}, wide");
                assert_eq!(bits(at_level(level, || dot(row(i), vector))), bits(narrow[i]), "one row or many");
            }
        }
    }

    #[test]
    fn every_level_has_the_bits_of_the_definition_at_every_length() {
        let mut rng = Rng::new(Seed::new(1));
        for length in 0..100 {
            for count in [0, 1, 2, 3, 7, 8, 9, 17] {
                let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.gaussian() as f32).collect() };
                let (rows, vector) = (draw(length * count), draw(length));
                check(&rows, &vector, count);
            }
        }
    }

    /// Generates any finite float: subnormals, both zeros, the largest.
    fn float() -> impl Strategy<Value = f32> {
        prop_oneof![
            prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
            Just(f32::MAX),
            Just(f32::MIN_POSITIVE),
            -2f32..2.0,
        ]
    }

    proptest! {
        #[test]
        fn every_level_has_the_bits_of_the_definition_on_hard_numbers(
            (vector, rows) in (0usize..70).prop_flat_map(|length| {
                (prop::collection::vec(float(), length), prop::collection::vec(float(), length * 9))
            })
        ) {
            check(&rows, &vector, 9);
        }
    }

    #[test]
    #[should_panic(expected = "as long as the vector")]
    fn rows_of_another_length_are_refused() {
        dot(&[1.0, 2.0], &[1.0]);
    }
}
