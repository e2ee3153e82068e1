//! Latent semantic indexing of records: the few directions that separate most of them.
//!
//! Claim: standardised records `A` (n x d) have the singular value decomposition `A = U Σ Vᵀ`; the `p` leading columns
//! of `V` keep the stated fraction of the variance, and a record's semantic vector is its projection on them.
//! The columns of `V` are the eigenvectors of `AᵀA`, a d x d matrix of at most 11 x 11, found by Jacobi rotations; `U`
//! is never needed.
//! Reference: Deerwester et al., "Indexing by latent semantic analysis" (1990); Golub & Van Loan, "Matrix
//! Computations", section 8.5.

use super::points::{Point, moments};

/// The fraction of the variance that the kept directions must have.
const KEPT: f64 = 0.9;

/// A map from records to semantic vectors.
pub struct Semantics<const D: usize> {
    mean: [f64; D],
    deviation: [f64; D],
    directions: Vec<[f64; D]>,
}

impl<const D: usize> Semantics<D> {
    /// Learns the directions from records.
    pub fn of(records: &[Point<D>]) -> Self {
        let (mean, deviation) = moments(records);
        // An attribute that never varies carries no information; dividing it by 1 leaves it at 0.
        let deviation = deviation.map(|deviation| if deviation > 0.0 { deviation } else { 1.0 });
        let mut correlation = [[0.0; D]; D];
        for record in records {
            let standard: [f64; D] = std::array::from_fn(|i| (f64::from(record[i]) - mean[i]) / deviation[i]);
            for (row, &x) in correlation.iter_mut().zip(&standard) {
                row.iter_mut().zip(&standard).for_each(|(sum, y)| *sum += x * y);
            }
        }
        let (values, vectors) = eigen(correlation);
        let (all, mut kept) = (values.iter().sum::<f64>(), 0.0);
        let enough = values.iter().take_while(|&&value| {
            let more = kept < KEPT * all;
            kept += value;
            more
        });
        let directions = vectors[..enough.count()].to_vec();
        Self { mean, deviation, directions }
    }

    /// Returns the number of directions kept.
    pub fn len(&self) -> usize {
        self.directions.len()
    }

    /// Returns a record's semantic vector.
    pub fn vector(&self, record: &Point<D>) -> Vec<f64> {
        let standard: [f64; D] = std::array::from_fn(|i| (f64::from(record[i]) - self.mean[i]) / self.deviation[i]);
        self.directions.iter().map(|direction| direction.iter().zip(&standard).map(|(a, b)| a * b).sum()).collect()
    }
}

/// Returns the eigenvalues of a symmetric matrix, the greatest first, and the unit vector of each.
fn eigen<const D: usize>(mut matrix: [[f64; D]; D]) -> ([f64; D], [[f64; D]; D]) {
    let mut vectors: [[f64; D]; D] = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    // Cyclic sweeps converge quadratically; a dozen reach the last bit for matrices of this size.
    for _ in 0..30 {
        for p in 0..D {
            for q in p + 1..D {
                if matrix[p][q] == 0.0 {
                    continue;
                }
                let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
                let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
                let sine = tangent * cosine;
                let rotate = |a: &mut f64, b: &mut f64| (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
                for row in &mut matrix {
                    let (mut a, mut b) = (row[p], row[q]);
                    rotate(&mut a, &mut b);
                    (row[p], row[q]) = (a, b);
                }
                for rows in [&mut matrix, &mut vectors] {
                    let (upper, lower) = rows.split_at_mut(q);
                    upper[p].iter_mut().zip(&mut lower[0]).for_each(|(a, b)| rotate(a, b));
                }
            }
        }
    }
    let mut order: [usize; D] = std::array::from_fn(|i| i);
    order.sort_by(|&a, &b| matrix[b][b].total_cmp(&matrix[a][a]));
    (order.map(|i| matrix[i][i].max(0.0)), order.map(|i| vectors[i]))
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    #[test]
    fn eigenvectors_are_scaled_and_not_rotated() {
        let mut rng = Rng::new(Seed::new(1));
        let half: [[f64; 7]; 7] = std::array::from_fn(|_| std::array::from_fn(|_| rng.gaussian()));
        let matrix: [[f64; 7]; 7] =
            std::array::from_fn(|i| std::array::from_fn(|j| (0..7).map(|k| half[i][k] * half[j][k]).sum()));
        let (values, vectors) = eigen(matrix);
        assert!(values.is_sorted_by(|a, b| a >= b));
        let trace: f64 = (0..7).map(|i| matrix[i][i]).sum();
        assert!((values.iter().sum::<f64>() - trace).abs() < 1e-9 * trace);
        for (value, vector) in values.iter().zip(&vectors) {
            let length: f64 = vector.iter().map(|x| x * x).sum();
            assert!((length - 1.0).abs() < 1e-12);
            for i in 0..7 {
                let image: f64 = (0..7).map(|j| matrix[i][j] * vector[j]).sum();
                assert!((image - value * vector[i]).abs() < 1e-9 * trace, "{image} for {}", value * vector[i]);
            }
        }
    }

    #[test]
    fn correlated_attributes_become_one_direction() {
        let mut rng = Rng::new(Seed::new(2));
        let records: Vec<[f32; 4]> = (0..2_000)
            .map(|_| {
                let (x, noise) = (rng.gaussian(), 0.05 * rng.gaussian());
                [100.0 * x, 3.0 * x + noise, 7.0, -x].map(|value| value as f32)
            })
            .collect();
        let semantics = Semantics::of(&records);
        assert_eq!(semantics.len(), 1);
        let (a, b) = (semantics.vector(&[100.0, 3.0, 7.0, -1.0])[0], semantics.vector(&[-100.0, -3.0, 7.0, 1.0])[0]);
        assert!((a + b).abs() < 0.3 && (a - b).abs() > 3.0, "{a} and {b} are opposite");
    }
}
