//! Randomly rotated cross-polytopes, for the angle between vectors (Andoni, Indyk, Laarhoven, Razenshteyn & Schmidt
//! 2015).
//!
//! Claim: rotate a vector at random and take the nearest of the `2D` vertices `±e_i`, that is, the coordinate of the
//! largest absolute value and its sign. Two vectors at angle `φ` share it with the probability that `curve` computes. A
//! value carries `1 + log2 D` bits, and at high dimension no hash of the angle separates near from far better: for
//! `D = 512` a vertex is shared with probability .83 at .1 radians and 1/1024 at a right angle, where ten hyperplanes
//! give .72.
//! Invariant: a vector's length does not matter; multiplying it by a power of two leaves every value unchanged.
//! Reference: "Practical and optimal LSH for angular distance", NIPS 2015.
//!
//! `D` is the next power of two, missing components being zero. The stand-in for a random rotation depends on it:
//!
//! - up to 32, a matrix of independent Gaussians: exactly the case that the formula of `curve` describes;
//! - above 32, rounds of random signs and a Hadamard transform, `D log D` additions each and `D` bits to store. On
//!   dense vectors the rates are those of a true rotation; sparse ones need more rounds the fewer coordinates there
//!   are, because a transform of few numbers takes few values. Three rounds, the paper's number, miss the curve by up
//!   to 18 % for vectors of two components at `D = 64`, 8 % at 128, and less than 1 % at 512. So there are 6 rounds at
//!   64, 4 up to 256, and 3 beyond.
//!
//! Ties go to the first coordinate. Values have no neighbours: every vertex but the opposite one is as far as any
//! other.

mod curve;

use super::{
    Functions, Hashed, Layout, LshFamily, WorkBound, key_of_rows,
    member::{Member, of_directions},
    product,
    projection::{GAUSSIAN_WORK, bytes_of_matrix, check_size, matrix},
};
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::{Distance, Item, ItemError, vector},
    simd::{dot, hadamard},
};

/// The nearest vertex of a randomly rotated cross-polytope: sensitive to the angle, in radians.
///
/// ```
/// use nearset::{Distance, Family, family::CrossPolytope};
///
/// let family = Family::from(CrossPolytope { dimension: 384 });
/// let near = family.collision_probability(Distance::new(0.1)?);
/// let unrelated = family.collision_probability(Distance::new(std::f64::consts::FRAC_PI_2)?);
/// assert!(near > 0.8 && unrelated < 0.001);
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CrossPolytope {
    /// The number of components of a vector.
    pub dimension: u32,
}

/// Up to this many coordinates, rotations are Gaussian matrices.
const MOST_GAUSSIAN: usize = 32;

impl CrossPolytope {
    /// Returns the number of coordinates of a rotated vector: half the number of vertices.
    fn coordinates(&self) -> usize {
        (self.dimension as usize).next_power_of_two()
    }

    /// Returns how many numbers or words one function holds.
    fn size(&self) -> usize {
        let coordinates = self.coordinates();
        match coordinates {
            ..=MOST_GAUSSIAN => coordinates * self.dimension as usize,
            _ => rounds(coordinates) * hadamard::sign_words(coordinates),
        }
    }
}

/// Returns the number of rounds of signs and transform in a rotation.
fn rounds(coordinates: usize) -> usize {
    match coordinates {
        0..=64 => 6,
        65..=256 => 4,
        _ => 3,
    }
}

impl LshFamily for CrossPolytope {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        // At least one, so that a dimension of zero reaches the check that refuses it.
        check_size(self.dimension, self.size().max(1), layout.functions())
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        curve::collision_probability(self.coordinates(), distance.value())
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let (coordinates, size) = (self.coordinates(), self.size() as u64);
        let (number, rotation) = match coordinates {
            ..=MOST_GAUSSIAN => (GAUSSIAN_WORK, size + 80),
            // Eight additions count as one operation, and every word of signs is drawn.
            _ => (2, (rounds(coordinates) * coordinates) as u64 * u64::from(coordinates.ilog2()) / 8 + 100),
        };
        let functions = layout.functions() as u64;
        let item_bytes = size_of::<f32>() as u64 * u64::from(self.dimension);
        WorkBound {
            draw: product([functions, size, number]),
            hash: product([functions, rotation]),
            item_bytes,
            ..WorkBound::default()
        }
    }

    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        bytes_of_matrix(self.size(), layout)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        vector::angle(vector::components(a, self.dimension)?, vector::components(b, self.dimension)?)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let coordinates = self.coordinates();
        let mut rng = Rng::new(seed.derive("cross-polytope", 0));
        let rotations = if coordinates <= MOST_GAUSSIAN {
            Rotations::Gaussian(matrix(self.dimension, layout.functions() * coordinates, || rng.gaussian()))
        } else {
            Rotations::Signs((0..self.size() * layout.functions()).map(|_| (rng.next_u64() >> 32) as u32).collect())
        };
        Ok(Box::new(Vertices { family: *self, layout, rotations }))
    }
}

impl Member for CrossPolytope {
    fn name(&self) -> &'static str {
        "cross-polytopes"
    }

    /// Three rounds of a transform over the next power of two.
    fn steps(&self) -> f64 {
        let coordinates = f64::from(self.dimension.next_power_of_two());
        3.0 * coordinates * libm::log2(coordinates) / 8.0
    }

    fn number() -> u8 {
        7
    }

    of_directions!();
}

struct Vertices {
    family: CrossPolytope,
    layout: Layout,
    rotations: Rotations,
}

/// The rotations of all functions, one after the other.
enum Rotations {
    /// Matrices with one row per coordinate.
    Gaussian(Vec<f32>),
    /// The sign bits of all rounds.
    Signs(Vec<u32>),
}

impl Functions for Vertices {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let vector = vector::components(item, self.family.dimension)?;
        let largest = vector::largest(vector)?;
        if largest == 0.0 {
            return Err(ItemError::ZeroVector);
        }
        let (coordinates, size) = (self.family.coordinates(), self.family.size());
        let Hashed { keys, rows, offsets, vector: scratch, .. } = out;
        keys.clear();
        rows.clear();
        offsets.clear();
        // The scaled vector, padded with zeros where rotations take a power of two, then room for the rotated one.
        vector::scale_to_one(vector, largest, scratch);
        let length = match self.rotations {
            Rotations::Gaussian(_) => vector.len(),
            Rotations::Signs(_) => coordinates,
        };
        scratch.resize(length + coordinates, 0.0);
        let (vector, rotated) = scratch.split_at_mut(length);
        let mut vertex = |function: usize| {
            let own = function * size..(function + 1) * size;
            match &self.rotations {
                Rotations::Gaussian(matrices) => dot::project(&matrices[own], vector, rotated),
                Rotations::Signs(signs) => {
                    rotated.copy_from_slice(vector);
                    hadamard::rotate(rotated, &signs[own]);
                }
            }
            nearest_vertex(rotated)
        };
        let rows = self.layout.rows as usize;
        let bands = (0..self.layout.bands as usize).map(|band| band * rows..(band + 1) * rows);
        keys.extend(bands.map(|functions| Some(key_of_rows(functions.map(&mut vertex)))));
        Ok(())
    }
}

/// Returns twice the position of the component with the largest absolute value, plus 1 if it is negative.
fn nearest_vertex(rotated: &[f32]) -> u64 {
    let position = hadamard::position_of_largest(rotated);
    2 * position as u64 + u64::from(rotated[position].is_sign_negative())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{laws, projection::pairs};

    const DISTANCES: [f64; 5] = [0.02, 0.2, 0.6, 1.0, 1.5];

    fn hash(functions: &dyn Functions, vector: &[f32]) -> Result<Hashed, ItemError> {
        let mut hashed = Hashed::default();
        functions.hash(vector.into(), &mut hashed).map(|()| hashed)
    }

    #[test]
    fn gaussian_matrices_obey_the_laws() {
        // 3 components make 4 coordinates, 9 make 16.
        for dimension in [3, 9] {
            laws::check(&CrossPolytope { dimension }, &DISTANCES, &pairs::at_angle(dimension));
        }
    }

    #[test]
    fn rotations_obey_the_laws() {
        for dimension in [50, 128, 512] {
            laws::check(&CrossPolytope { dimension }, &DISTANCES, &pairs::at_angle(dimension));
        }
    }

    #[test]
    fn sparse_vectors_collide_as_often_as_dense_ones() {
        for dimension in [33, 100, 200, 300] {
            let family = CrossPolytope { dimension };
            let functions = family.draw(Seed::new(1), Layout::new(1, 20_000)).unwrap();
            for angle in [0.1f32, 0.2, 0.4, 0.8, 1.0, 1.5] {
                let (mut a, mut b) = (vec![0.0; dimension as usize], vec![0.0; dimension as usize]);
                (a[3], b[3], b[7]) = (1.0, angle.cos(), angle.sin());
                let (a, b) = (hash(&*functions, &a).unwrap().keys, hash(&*functions, &b).unwrap().keys);
                let rate = a.iter().zip(&b).filter(|(a, b)| a == b).count() as f64 / 2e4;
                let p = family.collision_probability(Distance::new(f64::from(angle)).unwrap());
                let sigmas = (rate - p) / (p * (1.0 - p) / 2e4).sqrt();
                assert!(
                    sigmas.abs() <= 6.0,
                    "{dimension} components, angle {angle}: {rate} for {p}, {sigmas:.1} sigma"
                );
            }
        }
    }

    #[test]
    fn every_vertex_is_equally_likely() {
        // 64 coordinates, 128 vertices: over 100,000 functions each count is Bin(1e5, 1/128), sigma 27.8.
        let functions = CrossPolytope { dimension: 64 }.draw(Seed::new(2), Layout::new(1, 100_000)).unwrap();
        let (vector, _) = pairs::at_angle(64)(1.0, &mut Rng::new(Seed::new(3)));
        let mut counts = std::collections::BTreeMap::new();
        for key in laws::keys(&*functions, vector.view()) {
            *counts.entry(key).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 128);
        assert!(counts.values().all(|count: &f64| (count - 781.25).abs() < 6.0 * 27.8), "{counts:?}");
    }

    #[test]
    fn powers_of_two_change_nothing_however_large() {
        for dimension in [10, 100] {
            let functions = CrossPolytope { dimension }.draw(Seed::new(4), Layout::new(2, 100)).unwrap();
            let (item, _) = pairs::at_angle(dimension)(1.0, &mut Rng::new(Seed::new(5)));
            let crate::Item::Vector(vector) = item.view() else { panic!("the test item is not a vector") };
            let expected = hash(&*functions, vector).unwrap().keys;
            for exponent in [-100, 1, 125] {
                let scaled: Vec<f32> = vector.iter().map(|x| x * 2f32.powi(exponent)).collect();
                assert_eq!(hash(&*functions, &scaled).unwrap().keys, expected, "2^{exponent}");
            }
        }
    }

    #[test]
    fn what_has_no_angle_is_an_error() {
        for dimension in [3, 40] {
            let functions = CrossPolytope { dimension }.draw(Seed::new(1), Layout::new(1, 1)).unwrap();
            let error = |position: usize, value: f32| {
                let mut vector = vec![0.0; dimension as usize];
                vector[position] = value;
                hash(&*functions, &vector).unwrap_err()
            };
            assert_eq!(error(1, 0.0), ItemError::ZeroVector);
            assert!(matches!(error(1, f32::NAN), ItemError::NotFinite { position: 1, .. }));
            assert!(matches!(error(2, f32::INFINITY), ItemError::NotFinite { position: 2, .. }));
            assert!(matches!(hash(&*functions, &[1.0; 2]), Err(ItemError::WrongLength { found: 2, .. })));
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let check = |dimension, layout| CrossPolytope { dimension }.check(layout);
        let one = Layout::new(1, 1);
        assert!(matches!(check(0, one), Err(SpecError::BadParameter { parameter: "dimension", .. })));
        assert!(matches!(check(u32::MAX, one), Err(SpecError::BadParameter { .. })));
        assert!(matches!(check(1 << 24, Layout::new(10, 100)), Err(SpecError::TooManyFunctions { .. })));
        assert!(check(1 << 24, one).is_ok());
    }
}
