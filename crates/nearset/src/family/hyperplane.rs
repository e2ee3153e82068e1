//! Random hyperplanes, for the angle between vectors (Charikar 2002; Goemans & Williamson 1995).
//!
//! Claim: a plane through the origin with a Gaussian normal `a` has two vectors at angle `φ` on the same side with
//! probability `1 - φ/π`: in the plane that they span the normal's direction is uniform, and it separates them within
//! `φ` of each half turn.
//! Invariant: a vector's length does not matter, and multiplying it by a power of two leaves every value unchanged.
//! Reference: M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
//!
//! The value is the side, 1 for `a·v >= 0`, in f32 as [`dot`](crate::simd::dot) defines it; rounding can only move a
//! vector that lies within about 1e-6 radians of the plane. The offset beside it is the sine of the angle between
//! vector and plane: the smaller it is, the likelier it is that a near vector has fallen on the other side.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::{
    Functions, Hashed, Key, Layout, LshFamily, WorkBound,
    member::{Member, of_directions},
    probing,
    projection::{self, GAUSSIAN_WORK, band_rows, bytes_of_matrix, check_size, key_with, matrix, set_keys},
};
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::{Distance, Item, ItemError, vector},
    simd::dot,
};

/// Random hyperplanes: sensitive to the angle, in radians.
///
/// ```
/// use nearset::{Distance, Family, family::Hyperplane};
///
/// let family = Family::from(Hyperplane { dimension: 384 });
/// assert_eq!(family.collision_probability(Distance::new(std::f64::consts::FRAC_PI_4)?), 0.75);
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hyperplane {
    /// The number of components of a vector.
    pub dimension: u32,
}

impl LshFamily for Hyperplane {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        check_size(self.dimension, self.dimension as usize, layout.functions())
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value() / PI).max(0.0)
    }

    fn neighbour_probability(&self, distance: Distance, rows: u32, reach: u32) -> f64 {
        let p = self.collision_probability(distance);
        if reach == 0 { 0.0 } else { f64::from(rows) * (1.0 - p) * libm::pow(p, f64::from(rows - 1)) }
    }

    fn neighbour_buckets(&self, rows: u32, reach: u32) -> u32 {
        rows * reach.min(1)
    }

    /// A row's projection of a vector is Gaussian, and that of one at angle `φ` is `cos φ` times it plus `sin φ` times
    /// another: they lie on different sides with probability `Φ(-|z| cot φ)`.
    fn probed_probabilities(&self, distances: &[Distance], rows: u32, probes: u32) -> Vec<Vec<f64>> {
        let differences = probing::Differences {
            offset: &|rng| rng.gaussian().abs(),
            moves: &|offset| moves(0, offset),
            moved: &|offset, by, angle| {
                let other_side = 0.5 * libm::erfc(offset * FRAC_1_SQRT_2 / libm::tan(angle.value()));
                if by == 0 { 1.0 - other_side } else { other_side }
            },
        };
        probing::probabilities(|distance| self.band_probability(distance, rows), &differences, distances, rows, probes)
    }

    fn can_probe(&self) -> bool {
        true
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        projection::work_bound(self.dimension, layout, GAUSSIAN_WORK)
    }

    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        bytes_of_matrix(self.dimension as usize, layout)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        vector::angle(vector::components(a, self.dimension)?, vector::components(b, self.dimension)?)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let mut rng = Rng::new(seed.derive("hyperplane", 0));
        let normals = matrix(self.dimension, layout.functions(), || rng.gaussian());
        let lengths = normals.chunks_exact(self.dimension as usize).map(|normal| vector::norm_square(normal).sqrt());
        let lengths = lengths.map(|length| length as f32).collect();
        Ok(Box::new(Planes { dimension: self.dimension, layout, normals, lengths }))
    }
}

impl Member for Hyperplane {
    fn name(&self) -> &'static str {
        "hyperplanes"
    }

    fn steps(&self) -> f64 {
        f64::from(self.dimension) / 8.0
    }

    fn bit_agreement(&self, distance: Distance) -> Option<f64> {
        Some(self.collision_probability(distance))
    }

    fn number() -> u8 {
        6
    }

    of_directions!();
}

/// Returns the move from a side to the other one, scored by the square of the sine of the angle to the plane.
fn moves(side: i64, offset: f64) -> [Option<(i64, f64)>; 2] {
    [Some((1 - 2 * side, offset * offset)), None]
}

struct Planes {
    dimension: u32,
    layout: Layout,
    /// One row per function.
    normals: Vec<f32>,
    /// The norm of each row.
    lengths: Vec<f32>,
}

/// The number of functions hashed at a time, so that their dot products need no heap.
const BLOCK: usize = 64;

/// Vectors whose largest component lies in this range have dot products that neither overflow nor lose digits to
/// underflow.
const SAFE: std::ops::Range<f32> = 1.0 / (1u64 << 60) as f32..(1u64 << 60) as f32;

impl Functions for Planes {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let mut vector = vector::components(item, self.dimension)?;
        let largest = vector::largest(vector)?;
        if largest == 0.0 {
            return Err(ItemError::ZeroVector);
        }
        let Hashed { rows, offsets, vector: scaled, .. } = out;
        if !SAFE.contains(&largest) {
            vector::scale_to_one(vector, largest, scaled);
            vector = scaled;
        }
        let length = vector::norm_square(vector).sqrt() as f32;
        rows.clear();
        offsets.clear();
        let mut dots = [0.0; BLOCK];
        for (normals, lengths) in self.normals.chunks(BLOCK * vector.len()).zip(self.lengths.chunks(BLOCK)) {
            let dots = &mut dots[..lengths.len()];
            dot::project(normals, vector, dots);
            rows.extend(dots.iter().map(|&dot| i64::from(dot >= 0.0)));
            offsets.extend(dots.iter().zip(lengths).map(|(dot, normal)| (dot.abs() / (normal * length)).min(1.0)));
        }
        set_keys(out, self.layout);
        Ok(())
    }

    /// Visits the other side of each plane in turn; a plane has only two sides, so a longer reach adds nothing.
    fn neighbours(&self, hashed: &Hashed, band: usize, reach: u32, visit: &mut dyn FnMut(Key)) {
        if reach > 0 {
            let rows = band_rows(hashed, self.layout, band);
            rows.iter().enumerate().for_each(|(i, &side)| visit(key_with(rows, i, 1 - side)));
        }
    }

    fn probe(&self, hashed: &Hashed, band: usize, count: u32, visit: &mut dyn FnMut(Key)) {
        probing::visit(hashed, self.layout, band, count, moves, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{laws, projection::pairs};

    #[test]
    fn obeys_the_laws() {
        let distances = [0.05, 0.3, 1.0, PI / 2.0, 2.5, 3.1];
        for dimension in [2, 19, 64] {
            laws::check(&Hyperplane { dimension }, &distances, &pairs::at_angle(dimension));
        }
    }

    fn functions(dimension: u32, layout: Layout) -> Box<dyn Functions> {
        Hyperplane { dimension }.draw(Seed::new(1), layout).unwrap()
    }

    fn hash(functions: &dyn Functions, vector: &[f32]) -> Result<Hashed, ItemError> {
        let mut hashed = Hashed::default();
        functions.hash(vector.into(), &mut hashed).map(|()| hashed)
    }

    #[test]
    fn powers_of_two_change_nothing_however_large() {
        let functions = functions(40, Layout::new(2, 300));
        let mut rng = Rng::new(Seed::new(2));
        let vector: Vec<f32> = (0..40).map(|_| rng.gaussian() as f32).collect();
        let expected = hash(&*functions, &vector).unwrap();
        for exponent in [-100, -60, 1, 60, 125] {
            let scaled: Vec<f32> = vector.iter().map(|x| x * 2f32.powi(exponent)).collect();
            let found = hash(&*functions, &scaled).unwrap();
            assert_eq!((found.keys, found.offsets), (expected.keys.clone(), expected.offsets.clone()), "2^{exponent}");
        }
    }

    #[test]
    fn offsets_are_sines_of_the_angle_to_the_plane() {
        // In one dimension the normal and the vector always lie on one line, at a right angle to the "plane".
        let hashed = hash(&*functions(1, Layout::new(1, 50)), &[-3.0]).unwrap();
        assert!(hashed.offsets.iter().all(|offset| (offset - 1.0).abs() < 1e-6));
        // In two dimensions the angle to the plane is uniform in (0, pi/2): half of the sines lie below sin(pi/4).
        // Bin(4000, 1/2) has sigma 31.6.
        let hashed = hash(&*functions(2, Layout::new(1, 4000)), &[1.0, 2.0]).unwrap();
        let low = hashed.offsets.iter().filter(|&&offset| f64::from(offset) < 0.5f64.sqrt()).count();
        assert!((low as f64 - 2000.0).abs() < 6.0 * 31.6, "{low}");
    }

    #[test]
    fn the_near_side_of_the_nearest_plane_is_among_the_neighbours() {
        let layout = Layout::new(8, 200);
        let functions = functions(30, layout);
        let (a, b) = pairs::at_angle(30)(0.1, &mut Rng::new(Seed::new(3)));
        let (mut hashed_a, mut hashed_b) = (Hashed::default(), Hashed::default());
        functions.hash(a.view(), &mut hashed_a).unwrap();
        functions.hash(b.view(), &mut hashed_b).unwrap();
        for band in 0..200 {
            let (rows_a, rows_b) = (band_rows(&hashed_a, layout, band), band_rows(&hashed_b, layout, band));
            let differing = rows_a.iter().zip(rows_b).filter(|(a, b)| a != b).count();
            let mut visited = Vec::new();
            functions.neighbours(&hashed_a, band, 1, &mut |key| visited.push(Some(key)));
            assert_eq!(visited.len(), 8);
            assert_eq!(visited.contains(&hashed_b.keys[band]), differing == 1, "band {band} differs in {differing}");
            functions.neighbours(&hashed_a, band, 0, &mut |_| panic!("without reach there are no neighbours"));
        }
    }

    #[test]
    fn what_has_no_angle_is_an_error() {
        let functions = functions(3, Layout::new(1, 1));
        let error = |vector: &[f32]| hash(&*functions, vector).unwrap_err();
        assert_eq!(error(&[0.0, -0.0, 0.0]), ItemError::ZeroVector);
        assert_eq!(error(&[1.0]), ItemError::WrongLength { expected: 3, found: 1, unit: "components" });
        assert!(matches!(error(&[1.0, f32::NAN, 0.0]), ItemError::NotFinite { position: 1, .. }));
        assert!(matches!(error(&[1.0, 0.0, f32::INFINITY]), ItemError::NotFinite { position: 2, .. }));
        assert!(matches!(functions.hash("text".into(), &mut Hashed::default()), Err(ItemError::WrongKind { .. })));
        assert!(hash(&*functions, &[1e-45, 0.0, 0.0]).is_ok());
        assert!(hash(&*functions, &[f32::MAX; 3]).is_ok());
    }

    #[test]
    fn impossible_parameters_are_refused_before_anything_is_allocated() {
        let draw = |dimension, layout| Hyperplane { dimension }.draw(Seed::new(1), layout).map(|_| ()).unwrap_err();
        assert!(matches!(draw(0, Layout::new(1, 1)), SpecError::BadParameter { parameter: "dimension", .. }));
        assert!(matches!(draw(u32::MAX, Layout::new(1, 1)), SpecError::BadParameter { .. }));
        assert!(matches!(draw(3, Layout::new(0, 1)), SpecError::EmptyLayout { .. }));
        let limit = (1 << 28) / 100_000;
        assert_eq!(draw(100_000, Layout::new(100, 100)), SpecError::TooManyFunctions { functions: 10_000, limit });
    }
}
