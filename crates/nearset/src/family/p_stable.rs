//! Random projections cut into buckets, for Euclidean and Manhattan distance (Datar, Immorlica, Indyk & Mirrokni 2004).
//!
//! Claim: for `h(v) = floor((a·v + b) / w)`, with `a` of independent `s`-stable components and `b` uniform in `[0, w)`,
//! two vectors at distance `d` in `L_s` have projections `d X` apart, `X` standard `s`-stable, so that with `c = w/d`
//!
//! ```text
//! p(d) = ∫_0^1 c f(c t) (1 - t) dt                                   f the density of |X|
//! Gaussian, L2:  p = erf(c/√2) - √(2/π) (1 - e^(-c²/2)) / c          equal to 1 - 2Φ(-c) - 2/(√(2π) c) (1 - e^(-c²/2))
//! Cauchy,   L1:  p = (2/π) atan(c) - ln(1 + c²) / (π c)
//! ```
//!
//! Invariant: a projection is a sum in f64 over f32 components and f32 rows, taken as
//! [`project_wide`](crate::simd::dot::project_wide) defines it. Its error is below `(n/8 + 6) 2^-53 Σ|a_i v_i| / w`
//! buckets: for the 11 attributes of CoverType, with values up to 7,000, and `w = 100`, about 1e-12 of a bucket. Sums
//! in f32 would lose 1e-4 of a bucket there, and whole buckets for time stamps, which is why they are not used.
//! Reference: "Locality-sensitive hashing scheme based on p-stable distributions", SoCG 2004, section 3.2.

use std::{
    f64::consts::{FRAC_1_PI, FRAC_1_SQRT_2, FRAC_2_PI},
    hash::{Hash, Hasher},
};

use super::{
    Family, Functions, Hashed, Key, Layout, LshFamily, Metric, WorkBound,
    member::{BadParameter, Form, Member, Parameters, Stored},
    probing,
    projection::{
        self, CAUCHY_WORK, GAUSSIAN_WORK, band_rows, bytes_of_matrix, check_size, key_with, matrix, set_keys,
    },
};
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::{Distance, Item, ItemError, vector},
    simd::dot,
};

/// The distribution of a projection's components, which determines the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stable {
    /// Normal, 2-stable: for Euclidean distance.
    Gaussian,
    /// Cauchy, 1-stable: for Manhattan distance.
    Cauchy,
}

impl Stable {
    /// Returns the probability that one function with buckets of `width` maps two vectors at this distance to the same
    /// bucket.
    pub(crate) fn collision(self, distance: f64, width: f64) -> f64 {
        if distance == 0.0 {
            return 1.0;
        }
        let widths = width / distance;
        let probability = match self {
            Stable::Gaussian => gaussian_collision(widths),
            Stable::Cauchy => cauchy_collision(widths),
        };
        probability.clamp(0.0, 1.0)
    }

    /// Returns the probability that the two buckets are at most `reach` apart, so that probing finds one from the
    /// other.
    ///
    /// A shift by `s` buckets stays within reach with probability `min(1, max(0, reach + 1 - s))`, which is a
    /// difference of two plain collisions in wider buckets.
    pub(crate) fn collision_within(self, distance: f64, width: f64, reach: u32) -> f64 {
        let in_wider = |buckets: f64| match buckets {
            0.0 => 0.0,
            _ => buckets * self.collision(distance, buckets * width),
        };
        let reach = f64::from(reach);
        (in_wider(reach + 1.0) - in_wider(reach)).clamp(0.0, 1.0)
    }

    /// Returns the probability that a standard variable of this distribution is at most `x`.
    fn below(self, x: f64) -> f64 {
        match self {
            Stable::Gaussian => 0.5 * libm::erfc(-x * FRAC_1_SQRT_2),
            Stable::Cauchy => 0.5 + FRAC_1_PI * libm::atan(x),
        }
    }
}

/// Random projections in buckets of equal width: sensitive to L2 or L1.
/// Two are equal when they have the same dimension and distribution and the same *bits* in their widths, since any
/// other width puts the same vectors into other buckets.
///
/// ```
/// use nearset::{Distance, Family, family::{PStable, Stable}};
///
/// let family = Family::from(PStable { dimension: 11, width: 100.0, stable: Stable::Gaussian });
/// let (near, far) = (Distance::new(50.0)?, Distance::new(200.0)?);
/// assert!(family.collision_probability(near) > 0.5 && family.collision_probability(far) < 1.0 / 3.0);
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PStable {
    /// The number of components of a vector.
    pub dimension: u32,
    /// The width of a bucket, in the unit of the distance.
    pub width: f64,
    /// Gaussian for L2, Cauchy for L1.
    pub stable: Stable,
}

impl PStable {
    fn identity(&self) -> (u32, u64, Stable) {
        (self.dimension, self.width.to_bits(), self.stable)
    }
}

impl PartialEq for PStable {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for PStable {}

impl Hash for PStable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl LshFamily for PStable {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        if !(self.width > 0.0 && self.width.is_finite()) {
            let need = "finite and above 0";
            return Err(SpecError::BadParameter { parameter: "width", value: self.width, need });
        }
        check_size(self.dimension, self.dimension as usize, layout.functions())
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        self.stable.collision(distance.value(), self.width)
    }

    fn neighbour_probability(&self, distance: Distance, rows: u32, reach: u32) -> f64 {
        let p = self.collision_probability(distance);
        let within = self.stable.collision_within(distance.value(), self.width, reach).max(p);
        f64::from(rows) * (within - p) * libm::pow(p, f64::from(rows - 1))
    }

    fn neighbour_buckets(&self, rows: u32, reach: u32) -> u32 {
        rows.saturating_mul(2).saturating_mul(reach)
    }

    fn probed_probabilities(&self, distances: &[Distance], rows: u32, probes: u32) -> Vec<Vec<f64>> {
        let differences = probing::Differences {
            offset: &|rng| rng.unit(),
            moves: &|offset| moves(0, offset),
            moved: &|offset, by, distance| {
                let (to, spread) = (by as f64 - offset, distance.value() / self.width);
                match spread {
                    0.0 => f64::from(u8::from(by == 0)),
                    _ => (self.stable.below((to + 1.0) / spread) - self.stable.below(to / spread)).max(0.0),
                }
            },
        };
        probing::probabilities(|distance| self.band_probability(distance, rows), &differences, distances, rows, probes)
    }

    fn can_probe(&self) -> bool {
        true
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        projection::work_bound(
            self.dimension,
            layout,
            match self.stable {
                Stable::Gaussian => GAUSSIAN_WORK,
                Stable::Cauchy => CAUCHY_WORK,
            },
        )
    }

    fn bytes_of_functions(&self, layout: Layout) -> u64 {
        bytes_of_matrix(self.dimension as usize, layout)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        let (a, b) = (vector::components(a, self.dimension)?, vector::components(b, self.dimension)?);
        match self.stable {
            Stable::Gaussian => vector::l2(a, b),
            Stable::Cauchy => vector::l1(a, b),
        }
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let mut rng = Rng::new(seed.derive("p-stable rows", 0));
        let rows = matrix(self.dimension, layout.functions(), || match self.stable {
            Stable::Gaussian => rng.gaussian(),
            Stable::Cauchy => rng.cauchy(),
        });
        let mut rng = Rng::new(seed.derive("p-stable shifts", 0));
        let shifts = (0..layout.functions()).map(|_| rng.unit()).collect();
        Ok(Box::new(Projections { dimension: self.dimension, width: self.width, layout, rows, shifts }))
    }
}

/// Widths of buckets that plans try.
struct Widths {
    least: f64,
    most: f64,
    steps: u32,
}

/// As multiples of the near distance.
const WIDTHS: Widths = Widths { least: 1.0, most: 40.0, steps: 14 };

impl Member for PStable {
    fn name(&self) -> &'static str {
        match self.stable {
            Stable::Gaussian => "gaussian projections",
            Stable::Cauchy => "cauchy projections",
        }
    }

    fn metric(&self) -> Option<Metric> {
        Some(match self.stable {
            Stable::Gaussian => Metric::L2 { dimension: self.dimension },
            Stable::Cauchy => Metric::L1 { dimension: self.dimension },
        })
    }

    fn form(&self) -> Form {
        Form::Vector(self.dimension)
    }

    fn steps(&self) -> f64 {
        f64::from(self.dimension) / 4.0
    }

    fn reach(&self) -> Option<f64> {
        Some(2.0 * self.width)
    }

    fn number() -> u8 {
        8
    }

    fn put(&self, out: &mut Parameters) {
        let stable = match self.stable {
            Stable::Gaussian => 0,
            Stable::Cauchy => 1,
        };
        out.u32(self.dimension).f64(self.width).u8(stable);
    }

    fn take(from: &mut Stored<'_>) -> Result<Self, BadParameter> {
        let (dimension, width) = (from.u32()?, from.f64()?);
        let stable = from.one_of("stable distribution", [Stable::Gaussian, Stable::Cauchy])?;
        Ok(Self { dimension, width, stable })
    }

    fn variants(metric: Metric, near: Distance, far: Distance) -> Vec<Family> {
        let (dimension, stable) = match metric {
            Metric::L1 { dimension } => (dimension, Stable::Cauchy),
            Metric::L2 { dimension } => (dimension, Stable::Gaussian),
            _ => return Vec::new(),
        };
        let Widths { least, most, steps } = WIDTHS;
        let width = |step: u32| {
            near.value().max(far.value() * 1e-3)
                * least
                * libm::pow(most / least, f64::from(step) / f64::from(steps - 1))
        };
        (0..steps).map(|step| Self { dimension, width: width(step), stable }.into()).collect()
    }
}

/// Below this many widths, the terms of the closed forms cancel or underflow, and two terms of their series are exact
/// to the last digit.
const FEW_WIDTHS: f64 = 1e-4;

fn gaussian_collision(widths: f64) -> f64 {
    const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
    if widths < FEW_WIDTHS {
        return 0.5 * SQRT_2_OVER_PI * widths * (1.0 - widths * widths / 12.0);
    }
    libm::erf(widths * FRAC_1_SQRT_2) + SQRT_2_OVER_PI * libm::expm1(-0.5 * widths * widths) / widths
}

fn cauchy_collision(widths: f64) -> f64 {
    if widths < FEW_WIDTHS {
        return FRAC_1_PI * widths * (1.0 - widths * widths / 6.0);
    }
    // From 1e9 on the 1 no longer counts beside the square, which would overflow at 1e155.
    let log = if widths < 1e9 { libm::log1p(widths * widths) } else { 2.0 * libm::log(widths.min(f64::MAX)) };
    FRAC_2_PI * libm::atan(widths) - FRAC_1_PI * log / widths
}

/// Returns the moves one bucket down and one up, each scored by the square of the distance to its border, in widths.
fn moves(_: i64, offset: f64) -> [Option<(i64, f64)>; 2] {
    [Some((-1, offset * offset)), Some((1, (1.0 - offset) * (1.0 - offset)))]
}

struct Projections {
    dimension: u32,
    width: f64,
    layout: Layout,
    /// One row per function.
    rows: Vec<f32>,
    /// Each function's `b`, as a fraction of the width.
    shifts: Vec<f64>,
}

/// The number of functions hashed at a time, so that their projections need no heap.
const BLOCK: usize = 64;

impl Functions for Projections {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let vector = vector::components(item, self.dimension)?;
        vector::largest(vector)?;
        out.rows.clear();
        out.offsets.clear();
        let mut projections = [0.0; BLOCK];
        for (rows, shifts) in self.rows.chunks(BLOCK * vector.len()).zip(self.shifts.chunks(BLOCK)) {
            let projections = &mut projections[..shifts.len()];
            dot::project_wide(rows, vector, projections);
            for (projection, shift) in projections.iter().zip(shifts) {
                let buckets = projection / self.width + shift;
                // The bound rounds up to 2^63, the first number that an i64 cannot hold.
                if !(buckets.abs() < i64::MAX as f64) {
                    return Err(ItemError::TooFarOut { buckets });
                }
                let bucket = buckets.floor();
                out.rows.push(bucket as i64);
                out.offsets.push((buckets - bucket) as f32);
            }
        }
        set_keys(out, self.layout);
        Ok(())
    }

    /// Visits, for each function in turn, its bucket's neighbours: first one step below and above, then two, and so on.
    fn neighbours(&self, hashed: &Hashed, band: usize, reach: u32, visit: &mut dyn FnMut(Key)) {
        let rows = band_rows(hashed, self.layout, band);
        for (i, &bucket) in rows.iter().enumerate() {
            for step in 1..=i64::from(reach) {
                visit(key_with(rows, i, bucket.wrapping_sub(step)));
                visit(key_with(rows, i, bucket.wrapping_add(step)));
            }
        }
    }

    fn probe(&self, hashed: &Hashed, band: usize, count: u32, visit: &mut dyn FnMut(Key)) {
        probing::visit(hashed, self.layout, band, count, moves, visit);
    }
}

#[cfg(test)]
mod tests {
    use nearset_theory::locality_sensitive;

    use super::*;
    use crate::family::{laws, projection::pairs};

    const BOTH: [Stable; 2] = [Stable::Gaussian, Stable::Cauchy];

    /// Returns the density of `|X|`, for `x >= 0`.
    fn absolute_density(stable: Stable, x: f64) -> f64 {
        match stable {
            Stable::Gaussian => (2.0 / std::f64::consts::PI).sqrt() * (-x * x / 2.0).exp(),
            Stable::Cauchy => FRAC_2_PI / (1.0 + x * x),
        }
    }

    fn euclid(vector: &[f64]) -> f64 {
        vector.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    fn manhattan(vector: &[f64]) -> f64 {
        vector.iter().map(|x| x.abs()).sum()
    }

    fn hash(functions: &dyn Functions, vector: &[f32]) -> Result<Hashed, ItemError> {
        let mut hashed = Hashed::default();
        functions.hash(vector.into(), &mut hashed).map(|()| hashed)
    }

    #[test]
    fn obeys_the_laws() {
        let distances = [0.05, 0.5, 1.0, 2.0, 5.0, 30.0];
        for dimension in [1, 11, 40] {
            let family = PStable { dimension, width: 2.0, stable: Stable::Gaussian };
            laws::check(&family, &distances, &pairs::moved(dimension, euclid));
            let family = PStable { dimension, width: 2.0, stable: Stable::Cauchy };
            laws::check(&family, &distances, &pairs::moved(dimension, manhattan));
        }
    }

    #[test]
    fn closed_forms_are_the_integral() {
        // Simpson's rule over ∫_0^1 c f(c t) (1 - t) dt.
        let integral = |stable: Stable, widths: f64| {
            let steps = 20_000;
            let value = |i: usize| {
                let t = i as f64 / steps as f64;
                widths * absolute_density(stable, widths * t) * (1.0 - t)
            };
            let inner: f64 = (1..steps).map(|i| value(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
            (value(0) + inner + value(steps)) / (3.0 * steps as f64)
        };
        for widths in [0.5e-4, 0.999e-4, 1.001e-4, 8.5e-4, 0.01, 0.085, 0.3, 0.5, 1.0, 2.0, 2.5, 8.5, 10.0, 50.0, 85.0]
        {
            for stable in BOTH {
                let (found, expected) = (stable.collision(1.0, widths), integral(stable, widths));
                assert!((found / expected - 1.0).abs() < 1e-9, "{widths} widths: {found} for {expected}");
            }
        }
    }

    #[test]
    fn reach_adds_the_neighbouring_buckets() {
        for stable in BOTH {
            for distance in [0.1, 0.85, 5.0] {
                assert_eq!(stable.collision_within(distance, 0.85, 0), stable.collision(distance, 0.85));
                // By quadrature of the probability that a shift stays within one bucket.
                let steps = 400_000;
                let step = 2.0 * 0.85 / distance / f64::from(steps);
                let exact: f64 = (0..steps)
                    .map(|i| (f64::from(i) + 0.5) * step)
                    .map(|x| absolute_density(stable, x) * (2.0 - x * distance / 0.85).min(1.0))
                    .sum::<f64>()
                    * step;
                let found = stable.collision_within(distance, 0.85, 1);
                assert!((found / exact - 1.0).abs() <= 1e-8, "{stable:?}, d = {distance}: {found} for {exact}");
            }
        }
    }

    #[test]
    fn probing_the_neighbours_loses_far_less_than_the_basic_filter() {
        let (near, width) = (0.2, 0.85);
        let plain = Stable::Gaussian.collision(near, width);
        let within = Stable::Gaussian.collision_within(near, width, 1);
        assert!(within > 0.999);
        let basic = locality_sensitive::false_negative_bound(plain, 7);
        assert!(locality_sensitive::probed_false_negative_exact(plain, within, 7) < 0.6 * basic);
    }

    #[test]
    fn the_textbook_sensitivity_holds() {
        // The course notes' (w/2, 2w, 1/2, 1/3)-sensitive family.
        let family = PStable { dimension: 2, width: 1.0, stable: Stable::Gaussian };
        assert!(family.collision_probability(Distance::new(0.5).unwrap()) >= 0.5);
        assert!(family.collision_probability(Distance::new(2.0).unwrap()) <= 1.0 / 3.0);
        // The actual values there, to three decimals.
        for (distance, expected) in [(0.5, 0.610), (2.0, 0.195)] {
            let found = Stable::Gaussian.collision(distance, 1.0);
            assert!((found - expected).abs() <= 0.0005, "{found} at {distance} widths");
        }
    }

    #[test]
    fn probabilities_stay_probabilities_at_the_ends() {
        for stable in BOTH {
            for width in [1e-300, 1.0, 1e300] {
                let family = PStable { dimension: 1, width, stable };
                let mut before = 1.0;
                for exponent in -320..=308 {
                    let distance = Distance::new(10f64.powi(exponent)).unwrap();
                    let p = family.collision_probability(distance);
                    assert!((0.0..=before).contains(&p), "{stable:?}, w = {width}, d = {distance:?}: {p}");
                    before = p;
                }
                assert_eq!(family.collision_probability(Distance::ZERO), 1.0);
            }
            assert_eq!(stable.collision(1e-300, 1.0), 1.0);
            assert_eq!(stable.collision(f64::INFINITY, 1.0), 0.0);
        }
    }

    #[test]
    fn bucket_and_offset_give_the_projection_back() {
        let family = PStable { dimension: 1, width: 0.5, stable: Stable::Gaussian };
        let functions = family.draw(Seed::new(1), Layout::new(1, 100)).unwrap();
        let at = |x: f32| hash(&*functions, &[x]).unwrap();
        let position = |hashed: &Hashed, i: usize| hashed.rows[i] as f64 + f64::from(hashed.offsets[i]);
        let (zero, one, far) = (at(0.0), at(1.0), at(-1000.0));
        for i in 0..100 {
            let slope = position(&one, i) - position(&zero, i);
            let expected = position(&zero, i) - 1000.0 * slope;
            // Offsets are f32: an error of 1e-7 of a bucket, multiplied by 1000.
            assert!((position(&far, i) - expected).abs() < 2e-4, "{} for {expected}", position(&far, i));
            assert!((0.0..=1.0).contains(&far.offsets[i]));
        }
    }

    #[test]
    fn neighbours_reach_a_band_that_differs_in_one_bucket() {
        let layout = Layout::new(4, 300);
        let family = PStable { dimension: 20, width: 2.0, stable: Stable::Gaussian };
        let functions = family.draw(Seed::new(2), layout).unwrap();
        let (a, b) = pairs::moved(20, euclid)(2.0, &mut Rng::new(Seed::new(3)));
        let (mut hashed_a, mut hashed_b) = (Hashed::default(), Hashed::default());
        functions.hash(a.view(), &mut hashed_a).unwrap();
        functions.hash(b.view(), &mut hashed_b).unwrap();
        let mut found = [0; 3];
        for reach in 0..3 {
            for band in 0..300 {
                let (rows_a, rows_b) = (band_rows(&hashed_a, layout, band), band_rows(&hashed_b, layout, band));
                let steps: Vec<u64> =
                    rows_a.iter().zip(rows_b).map(|(a, b)| a.abs_diff(*b)).filter(|&s| s > 0).collect();
                let expected = steps.len() == 1 && steps[0] <= u64::from(reach);
                let mut visited = Vec::new();
                functions.neighbours(&hashed_a, band, reach, &mut |key| visited.push(Some(key)));
                assert_eq!(visited.len() as u32, 4 * 2 * reach);
                assert_eq!(visited.contains(&hashed_b.keys[band]), expected);
                found[reach as usize] += usize::from(expected);
            }
        }
        assert!(found[0] == 0 && found[1] > 0 && found[2] > found[1], "{found:?}");
    }

    #[test]
    fn large_coordinates_keep_near_vectors_together() {
        // Unit steps on top of coordinates of about 1e7, where f32 sums would add noise of a whole step.
        let family = PStable { dimension: 11, width: 4.0, stable: Stable::Gaussian };
        let functions = family.draw(Seed::new(4), Layout::new(1, 20_000)).unwrap();
        let a: Vec<f32> = (0..11).map(|i| 1e7 + 1000.0 * i as f32).collect();
        let mut b = a.clone();
        b[3] += 1.0;
        let (keys_a, keys_b) = (hash(&*functions, &a).unwrap().keys, hash(&*functions, &b).unwrap().keys);
        let equal = keys_a.iter().zip(&keys_b).filter(|(a, b)| a == b).count() as f64;
        let p = family.collision_probability(Distance::new(1.0).unwrap());
        // 6 sigma of Bin(20000, p).
        assert!((equal / 2e4 - p).abs() < 6.0 * (p * (1.0 - p) / 2e4).sqrt(), "{equal} of 20000, expected {p}");
    }

    #[test]
    fn what_has_no_bucket_is_an_error() {
        for stable in BOTH {
            let functions =
                PStable { dimension: 2, width: 1e-3, stable }.draw(Seed::new(5), Layout::new(2, 2)).unwrap();
            let error = |vector: &[f32]| hash(&*functions, vector).unwrap_err();
            assert!(matches!(error(&[1e30, 0.0]), ItemError::TooFarOut { .. }));
            assert!(matches!(error(&[f32::MAX, f32::MAX]), ItemError::TooFarOut { .. }));
            assert!(matches!(error(&[f32::NAN, 0.0]), ItemError::NotFinite { position: 0, .. }));
            assert!(matches!(error(&[0.0, f32::NEG_INFINITY]), ItemError::NotFinite { position: 1, .. }));
            assert_eq!(error(&[1.0; 3]), ItemError::WrongLength { expected: 2, found: 3, unit: "components" });
            assert!(hash(&*functions, &[0.0, 0.0]).is_ok(), "the zero vector has a bucket too");
        }
    }

    #[test]
    fn widths_are_checked_and_compared_by_their_bits() {
        let with = |width| PStable { dimension: 2, width, stable: Stable::Cauchy };
        for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = with(width).draw(Seed::new(1), Layout::new(1, 1)).map(|_| ()).unwrap_err();
            assert!(matches!(error, SpecError::BadParameter { parameter: "width", .. }), "{error}");
        }
        assert_eq!(with(f64::NAN), with(f64::NAN));
        assert_ne!(with(0.0), with(-0.0));
        assert_ne!(with(1.0), PStable { stable: Stable::Gaussian, ..with(1.0) });
    }
}
