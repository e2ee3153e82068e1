//! The queries, uniform and Zipf, and the truth about them.
//!
//! *Uniform*: every attribute uniform between its least and greatest value, as the paper says.
//! *Zipf*: records by popularity, the `i`-th most popular with probability `∝ i^-.85`, each attribute then moved by a
//! Gaussian of 5 % of its standard deviation. The paper does not say what its Zipf queries are drawn from; unchanged
//! records would make every answer yes.

use nearset::{Rng, Seed};

use super::points::{Point, bounds, moments, squared_distance};
use crate::rate::in_parallel;

/// The exponent of popularity.
const EXPONENT: f64 = 0.85;

/// How far Zipf queries are moved, in standard deviations of each attribute.
const MOVED: f64 = 0.05;

/// Queries, with the distance of each to what is stored.
pub struct Queries<const D: usize> {
    /// Their kind, for tables.
    pub name: &'static str,
    /// The queries.
    pub points: Vec<Point<D>>,
    /// The squared distance of each query's nearest record.
    nearest: Vec<f32>,
}

impl<const D: usize> Queries<D> {
    /// Draws queries uniformly from the box that holds all records.
    pub fn uniform(stored: &[Point<D>], count: usize, seed: Seed) -> Self {
        Self::of("uniform", stored, uniform(stored, count, seed))
    }

    /// Draws popular records, slightly moved, within the same box.
    pub fn zipf(stored: &[Point<D>], count: usize, seed: Seed) -> Self {
        let ((low, high), (_, deviation)) = (bounds(stored), moments(stored));
        let mut rng = Rng::new(seed.derive("zipf", 0));
        let mut by_popularity: Vec<u32> = (0..stored.len() as u32).collect();
        crate::strings::shuffle(&mut by_popularity, &mut rng);
        let mut cumulated = Vec::with_capacity(stored.len());
        let mut total = 0.0;
        for rank in 1..=stored.len() {
            total += libm::pow(rank as f64, -EXPONENT);
            cumulated.push(total);
        }
        let draw = |_| {
            let at = total * rng.unit();
            let rank = cumulated.partition_point(|&below| below <= at).min(stored.len() - 1);
            let record = stored[by_popularity[rank] as usize];
            std::array::from_fn(|i| (record[i] + (MOVED * deviation[i] * rng.gaussian()) as f32).clamp(low[i], high[i]))
        };
        Self::of("Zipf(.85)", stored, (0..count).map(draw).collect())
    }

    fn of(name: &'static str, stored: &[Point<D>], points: Vec<Point<D>>) -> Self {
        let nearest_to = |query: &Point<D>| {
            stored.iter().map(|record| squared_distance(query, record)).fold(f32::INFINITY, f32::min)
        };
        let nearest = in_parallel(&points, nearest_to);
        Self { name, points, nearest }
    }

    /// Returns whether each query has a record within the radius.
    pub fn truth(&self, radius: f64) -> Vec<bool> {
        self.nearest.iter().map(|&squared| squared <= (radius * radius) as f32).collect()
    }

    /// Returns the distance of each query's nearest record.
    pub fn nearest(&self) -> impl Iterator<Item = f64> {
        self.nearest.iter().map(|&squared| f64::from(squared).sqrt())
    }
}

/// Draws points uniformly from the box that holds all records.
pub fn uniform<const D: usize>(stored: &[Point<D>], count: usize, seed: Seed) -> Vec<Point<D>> {
    let (low, high) = bounds(stored);
    let mut rng = Rng::new(seed.derive("uniform", 0));
    (0..count).map(|_| std::array::from_fn(|i| low[i] + (high[i] - low[i]) * rng.unit() as f32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_that_of_the_nearest_record() {
        let stored = [[0.0, 0.0], [10.0, 10.0]];
        let queries = Queries::of("some", &stored, vec![[3.0, 4.0], [10.0, 9.0]]);
        assert_eq!(queries.nearest().collect::<Vec<_>>(), [5.0, 1.0]);
        assert_eq!(queries.truth(4.9), [false, true]);
        assert_eq!(queries.truth(5.0), [true, true]);
    }

    #[test]
    fn popular_records_are_queried_most() {
        let stored: Vec<[f32; 2]> = (0..1000).map(|i| [i as f32, 0.0]).collect();
        let queries = Queries::zipf(&stored, 20_000, Seed::new(3));
        let weights: Vec<f64> = (1..=1000).map(|rank| libm::pow(f64::from(rank), -EXPONENT)).collect();
        let share = weights[0] / weights.iter().sum::<f64>();
        // The most popular record's queries lie within 4 sigma = 58 of it, which few others share.
        let mut nearby = [0u64; 1000];
        for query in &queries.points {
            nearby[(query[0].round() as usize).min(999)] += 1;
        }
        let window = nearby.windows(117).map(|window| window.iter().sum::<u64>()).max().unwrap();
        assert!(window as f64 > 0.9 * share * 20_000.0, "{window}");
        let uniform = Queries::uniform(&stored, 1000, Seed::new(3));
        assert!(uniform.points.iter().all(|[x, y]| (0.0..=999.0).contains(x) && *y == 0.0));
    }
}
