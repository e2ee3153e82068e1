//! Rounds of random signs and a Hadamard transform: a rotation in `n log n` additions.
//!
//! Claim: the bits are the same at every level. Stages run from the smallest stride to the largest, and each butterfly
//! is one addition and one subtraction, so there is nothing to reorder. Strides below 16 are shuffles in registers,
//! written for each level; the others are plain loops, compiled for each level, that take two stages per pass over the
//! vector.
//! Invariant: nothing is normalised, so each round multiplies the length by `sqrt(n)`.
//! Reference: Ailon & Chazelle, "The fast Johnson-Lindenstrauss transform and approximate nearest neighbors", 2009.

#![allow(unsafe_code)]

use super::Level;

/// Returns the number of words of sign bits that one round takes for a vector of this length.
pub(crate) const fn sign_words(length: usize) -> usize {
    length.div_ceil(32)
}

/// Flips the components whose bit is set and takes the Hadamard transform, in place, once per round. `signs` holds
/// [`sign_words`] words per round, with component `i` at bit `i % 32` of word `i / 32`.
///
/// # Panics
/// If the vector's length is not a power of two, or the last round's signs are cut short.
pub(crate) fn rotate(vector: &mut [f32], signs: &[u32]) {
    assert!(vector.len().is_power_of_two(), "a Hadamard transform takes a power of two as the number of components");
    assert!(signs.len().is_multiple_of(sign_words(vector.len())), "every round takes the same number of sign words");
    #[cfg(target_arch = "x86_64")]
    if vector.len() >= CHUNK {
        match Level::current() {
            // SAFETY: the level says that the CPU has these features.
            Level::Avx512 => return unsafe { avx512::rotate(vector, signs) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2::rotate(vector, signs) },
            Level::Scalar => {}
        }
    }
    if vector.len() >= CHUNK {
        rotate_chunks(vector, signs, first_stages);
    } else {
        for &word in signs {
            flip(vector, word);
            stages(vector, 1);
        }
    }
}

/// Returns the position of the component with the largest absolute value, the first of several, or 0 if there are no
/// components.
///
/// NaN counts as larger than any number.
pub(crate) fn position_of_largest(vector: &[f32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match Level::current() {
        // SAFETY: the level says that the CPU has these features.
        Level::Avx512 => return unsafe { avx512::position_of_largest(vector) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { avx2::position_of_largest(vector) },
        Level::Scalar => {}
    }
    find_largest(vector)
}

/// The strides within a chunk of this many components are taken in registers.
const CHUNK: usize = 16;

/// Rotates chunk by chunk: `first_stages` flips signs in a chunk and takes the strides that lie within it.
#[inline(always)]
fn rotate_chunks(vector: &mut [f32], signs: &[u32], first_stages: impl Fn(&mut [f32; CHUNK], u16)) {
    for signs in signs.chunks_exact(sign_words(vector.len())) {
        let halves = signs.iter().flat_map(|&word| [word as u16, (word >> 16) as u16]);
        for (chunk, signs) in vector.as_chunks_mut().0.iter_mut().zip(halves) {
            first_stages(chunk, signs);
        }
        stages(vector, CHUNK);
    }
}

fn first_stages(chunk: &mut [f32; CHUNK], signs: u16) {
    flip(chunk, u32::from(signs));
    stages(chunk, 1);
}

#[inline(always)]
fn flip(components: &mut [f32], signs: u32) {
    for (i, component) in components.iter_mut().enumerate() {
        *component = f32::from_bits(component.to_bits() ^ (signs >> i << 31));
    }
}

/// Takes the stages from a stride on.
#[inline(always)]
fn stages(vector: &mut [f32], mut stride: usize) {
    while 4 * stride <= vector.len() {
        for four in vector.chunks_exact_mut(4 * stride) {
            let (front, back) = four.split_at_mut(2 * stride);
            let ((a, b), (c, d)) = (front.split_at_mut(stride), back.split_at_mut(stride));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (sum_front, difference_front) = (*a + *b, *a - *b);
                let (sum_back, difference_back) = (*c + *d, *c - *d);
                (*a, *b) = (sum_front + sum_back, difference_front + difference_back);
                (*c, *d) = (sum_front - sum_back, difference_front - difference_back);
            }
        }
        stride *= 4;
    }
    if stride < vector.len() {
        let (low, high) = vector.split_at_mut(stride);
        for (x, y) in low.iter_mut().zip(high) {
            (*x, *y) = (*x + *y, *x - *y);
        }
    }
}

/// Uses two passes with no dependence between neighbours, which vectorise, rather than one pass with such a dependence.
#[inline(always)]
fn find_largest(vector: &[f32]) -> usize {
    let magnitude = |x: &f32| x.to_bits() << 1;
    let most = vector.iter().map(magnitude).fold(0, u32::max);
    let blocks = vector.chunks(64);
    let holds = |block: &[f32]| block.iter().fold(false, |any, x| any | (magnitude(x) == most));
    let first = 64 * blocks.take_while(|block| !holds(block)).count();
    first + vector[first..].iter().take_while(|x| magnitude(x) != most).count()
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::CHUNK;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn position_of_largest(vector: &[f32]) -> usize {
        super::find_largest(vector)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn rotate(vector: &mut [f32], signs: &[u32]) {
        super::rotate_chunks(vector, signs, |chunk, signs| first_stages(chunk, signs));
    }

    /// A stage adds the component to its partner, or subtracts it where it is the upper of the two.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn first_stages(chunk: &mut [f32; CHUNK], signs: u16) {
        // SAFETY: the pointer is that of an array of 16 floats; the load needs no alignment.
        let mut x = negate(unsafe { _mm512_loadu_ps(chunk.as_ptr()) }, signs);
        x = _mm512_add_ps(_mm512_permute_ps::<0b10_11_00_01>(x), negate(x, 0xaaaa));
        x = _mm512_add_ps(_mm512_permute_ps::<0b01_00_11_10>(x), negate(x, 0xcccc));
        x = _mm512_add_ps(_mm512_shuffle_f32x4::<0b10_11_00_01>(x, x), negate(x, 0xf0f0));
        x = _mm512_add_ps(_mm512_shuffle_f32x4::<0b01_00_11_10>(x, x), negate(x, 0xff00));
        // SAFETY: as for the load.
        unsafe { _mm512_storeu_ps(chunk.as_mut_ptr(), x) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn negate(x: __m512, lanes: u16) -> __m512 {
        _mm512_mask_xor_ps(x, lanes, x, _mm512_set1_ps(-0.0))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::CHUNK;

    #[target_feature(enable = "avx2")]
    pub(super) fn position_of_largest(vector: &[f32]) -> usize {
        super::find_largest(vector)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn rotate(vector: &mut [f32], signs: &[u32]) {
        super::rotate_chunks(vector, signs, |chunk, signs| first_stages(chunk, signs));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_stages(chunk: &mut [f32; CHUNK], signs: u16) {
        let [low, high] = [0, 8].map(|start| {
            // SAFETY: 8 floats from `start` on lie within the array of 16; the load needs no alignment.
            let mut x = negate(unsafe { _mm256_loadu_ps(chunk.as_ptr().add(start)) }, signs >> start);
            x = _mm256_add_ps(_mm256_permute_ps::<0b10_11_00_01>(x), negate(x, 0xaa));
            x = _mm256_add_ps(_mm256_permute_ps::<0b01_00_11_10>(x), negate(x, 0xcc));
            _mm256_add_ps(_mm256_permute2f128_ps::<1>(x, x), negate(x, 0xf0))
        });
        // SAFETY: as for the loads.
        unsafe {
            _mm256_storeu_ps(chunk.as_mut_ptr(), _mm256_add_ps(low, high));
            _mm256_storeu_ps(chunk.as_mut_ptr().add(8), _mm256_sub_ps(low, high));
        }
    }

    /// Moves bit `i` of `lanes` to the sign of lane `i`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn negate(x: __m256, lanes: u16) -> __m256 {
        let shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
        let moved = _mm256_sllv_epi32(_mm256_set1_epi32(i32::from(lanes)), shifts);
        _mm256_xor_ps(x, _mm256_and_ps(_mm256_castsi256_ps(moved), _mm256_set1_ps(-0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, hash::Rng, simd::at_level};

    /// Computes the sum that a Hadamard matrix stands for, over integers, which floats hold exactly.
    fn transform_by_the_book(vector: &[f32]) -> Vec<f32> {
        let entry = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..vector.len()).map(|i| vector.iter().enumerate().map(|(j, x)| entry(i, j) * x).sum()).collect()
    }

    #[test]
    fn every_level_is_the_transform() {
        let mut rng = Rng::new(Seed::new(1));
        for exponent in 0..=10 {
            let length = 1 << exponent;
            let whole: Vec<f32> = (0..length).map(|_| rng.below(10) as f32 - 5.0).collect();
            let signs: Vec<u32> = (0..sign_words(length)).map(|_| rng.next_u64() as u32).collect();
            let sign = |i: usize| if signs[i / 32] >> (i % 32) & 1 == 1 { -1.0 } else { 1.0 };
            let flipped: Vec<f32> = whole.iter().enumerate().map(|(i, x)| sign(i) * x).collect();
            let expected = transform_by_the_book(&flipped);
            for level in Level::available() {
                let mut rotated = whole.clone();
                at_level(level, || rotate(&mut rotated, &signs));
                assert_eq!(rotated, expected, "{level:?}, {length} components");
            }
        }
    }

    #[test]
    fn every_level_rounds_alike() {
        let mut rng = Rng::new(Seed::new(2));
        for exponent in 0..=12 {
            let length = 1 << exponent;
            let vector: Vec<f32> = (0..length).map(|_| rng.gaussian() as f32).collect();
            let signs: Vec<u32> = (0..2 * sign_words(length)).map(|_| rng.next_u64() as u32).collect();
            let bits = |level| -> Vec<u32> {
                let mut vector = vector.clone();
                at_level(level, || rotate(&mut vector, &signs));
                vector.into_iter().map(f32::to_bits).collect()
            };
            let expected = bits(Level::Scalar);
            for level in Level::available() {
                assert_eq!(bits(level), expected, "{level:?}, {length} components");
            }
        }
    }

    #[test]
    fn every_level_finds_the_first_of_the_largest() {
        let mut rng = Rng::new(Seed::new(3));
        for length in (1..200).chain([511, 512, 513]) {
            // Few different values, so that there are ties.
            let vector: Vec<f32> = (0..length).map(|_| rng.below(9) as f32 - 4.0).collect();
            let most = vector.iter().fold(0f32, |most, x| most.max(x.abs()));
            let expected = vector.iter().position(|x| x.abs() == most).unwrap();
            for level in Level::available() {
                assert_eq!(at_level(level, || position_of_largest(&vector)), expected, "{level:?}, {length}");
            }
        }
        assert_eq!(position_of_largest(&[]), 0);
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn other_lengths_are_refused() {
        rotate(&mut [1.0, 2.0, 3.0], &[0]);
    }
}
