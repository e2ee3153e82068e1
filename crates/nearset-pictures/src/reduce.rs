//! Large pictures to small ones, in one pass over their pixels.
//!
//! Every reduction here is separable: each pixel of the small picture is a sum over some columns and some rows, with a weight for each. PDQ's is
//! two box filters along rows and two along columns, of which every `n / 64`-th value is then taken; put together they are a tent of
//! `n / 64` weights, so that nearly every pixel of the large picture is looked at once.

use std::f64::consts::PI;

use crate::decode::Pixels;

/// What one side of a picture is reduced by.
pub struct Weights {
    /// For each of the values: the first of those that it is made of, and their weights.
    values: Vec<(usize, Vec<f32>)>,
}

impl Weights {
    /// PDQ's: two box filters of an `n / 2 to`-th of a side, each cut off at its ends, then the value in the middle of each part.
    pub fn tents(from: usize, to: usize) -> Self {
        let window = from.div_ceil(2 * to);
        let half = (window + 2) / 2;
        let around = |i: usize| i.saturating_sub(window - half)..(i + half).min(from);
        let tent = |value: usize| {
            let middle = ((value as f64 + 0.5) * from as f64 / to as f64) as usize;
            let outer = around(middle);
            let (start, end) = (around(outer.start).start, around(outer.end - 1).end);
            let mut weights = vec![0.0; end - start];
            for i in outer.clone() {
                let inner = around(i);
                let weight = 1.0 / (outer.len() * inner.len()) as f32;
                weights[inner.start - start..inner.end - start].iter_mut().for_each(|sum| *sum += weight);
            }
            (start, weights)
        };
        Self { values: (0..to).map(tent).collect() }
    }

    /// Pillow's Lanczos filter of three lobes.
    pub fn lanczos(from: usize, to: usize) -> Self {
        let scale = from as f64 / to as f64;
        let stretch = scale.max(1.0);
        let reach = 3.0 * stretch;
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { libm::sin(PI * x) / (PI * x) };
        let value = |value: usize| {
            let middle = (value as f64 + 0.5) * scale;
            let start = (middle - reach + 0.5).max(0.0) as usize;
            let end = ((middle + reach + 0.5) as usize).min(from);
            let weight = |i: usize| {
                let x = (i as f64 - middle + 0.5) / stretch;
                if (-3.0..3.0).contains(&x) { sinc(x) * sinc(x / 3.0) } else { 0.0 }
            };
            let weights: Vec<f64> = (start..end).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            (start, weights.into_iter().map(|weight| (weight / sum) as f32).collect())
        };
        Self { values: (0..to).map(value).collect() }
    }

    /// Returns by which weight each of `from` rows goes into which values.
    fn by_row(&self, from: usize) -> Vec<Vec<(usize, f32)>> {
        let mut rows = vec![Vec::new(); from];
        for (value, (start, weights)) in self.values.iter().enumerate() {
            for (row, &weight) in rows[*start..].iter_mut().zip(weights) {
                row.push((value, weight));
            }
        }
        rows
    }
}

/// Reduces luminance as PDQ has it: real numbers all the way.
pub fn smooth(pixels: &Pixels<'_>, columns: &Weights, rows: &Weights) -> Vec<f32> {
    reduce(pixels, columns, rows, |pixels, y, row| pixels.luminance(y, row), |value| value)
}

/// What [`step_by_step`] takes per pixel.
pub const STEPPED_BYTES: usize = 2 * size_of::<f32>();

/// The same in the steps of the reference, with its rounding errors: box filters along rows and columns, twice, and then the value in the
/// middle of each part.
pub fn step_by_step(pixels: &Pixels<'_>, side: usize) -> Vec<f32> {
    let (width, height) = (pixels.width, pixels.height);
    let mut luminance = vec![0.0; width * height];
    for (y, row) in luminance.chunks_exact_mut(width).enumerate() {
        pixels.exact_luminance(y, row);
    }
    if (width, height) == (side, side) {
        return luminance;
    }
    let mut filtered = vec![0.0; width * height];
    for _ in 0..2 {
        for y in 0..height {
            box_filter(&luminance[y * width..], &mut filtered[y * width..], (width, 1), width.div_ceil(2 * side));
        }
        for x in 0..width {
            box_filter(&filtered[x..], &mut luminance[x..], (height, width), height.div_ceil(2 * side));
        }
    }
    let middle = |value: usize, from: usize| ((value as f64 + 0.5) * from as f64 / side as f64) as usize;
    let pixel = |value: usize| luminance[middle(value / side, height) * width + middle(value % side, width)];
    (0..side * side).map(pixel).collect()
}

/// Means over a window that moves along a line of so many values, so far apart: what comes into it is added, and what leaves it subtracted.
fn box_filter(values: &[f32], means: &mut [f32], (length, stride): (usize, usize), window: usize) {
    let half = (window + 2) / 2;
    let mut sum = 0.0f32;
    // The window of value `i` ends at `i + half`, and holds `window` values where the line does.
    for at in 0..length + half - 1 {
        let is_full = at >= window;
        if at < length {
            sum += values[at * stride];
        }
        if is_full {
            sum -= values[(at - window) * stride];
        }
        if at + 1 >= half {
            let held = (at + 1).min(length) - (at + 1).saturating_sub(window);
            means[(at + 1 - half) * stride] = sum / held as f32;
        }
    }
}

/// Reduces grey values as Pillow has them: bytes after each step.
pub fn rounded(pixels: &Pixels<'_>, columns: &Weights, rows: &Weights) -> Vec<f32> {
    let byte = |value: f32| (value + 0.5).floor().clamp(0.0, 255.0);
    let mut reduced = reduce(pixels, columns, rows, |pixels, y, row| pixels.grey(y, row), byte);
    reduced.iter_mut().for_each(|value| *value = byte(*value));
    reduced
}

fn reduce(
    pixels: &Pixels<'_>,
    columns: &Weights,
    rows: &Weights,
    read: impl Fn(&Pixels<'_>, usize, &mut [f32]),
    rounded: impl Fn(f32) -> f32,
) -> Vec<f32> {
    let width = columns.values.len();
    let mut reduced = vec![0.0; width * rows.values.len()];
    let (mut row, mut narrow) = (vec![0.0; pixels.width], vec![0.0; width]);
    for (y, targets) in rows.by_row(pixels.height).iter().enumerate() {
        if targets.is_empty() {
            continue;
        }
        read(pixels, y, &mut row);
        for (value, (start, weights)) in narrow.iter_mut().zip(&columns.values) {
            *value = rounded(dot(&row[*start..*start + weights.len()], weights));
        }
        for &(target, weight) in targets {
            let sums = &mut reduced[target * width..(target + 1) * width];
            sums.iter_mut().zip(&narrow).for_each(|(sum, value)| *sum += weight * value);
        }
    }
    reduced
}

/// In eight sums, so that a processor can add several at once: always in the same order.
fn dot(values: &[f32], weights: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (values, weights) = (values.as_chunks::<8>(), weights.as_chunks::<8>());
    for (values, weights) in values.0.iter().zip(weights.0) {
        for i in 0..8 {
            sums[i] += values[i] * weights[i];
        }
    }
    let rest: f32 = values.1.iter().zip(weights.1).map(|(value, weight)| value * weight).sum();
    sums.iter().sum::<f32>() + rest
}
