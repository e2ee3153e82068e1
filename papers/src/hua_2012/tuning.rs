//! Choosing R by the proximity measure, the paper's Figure 9.
//!
//! `χ = |p* - q| / |p - q|`: the distance of the query's true nearest record over that of the nearest one found, 1 at
//! best, and 0 if nothing is found. A filter finds no record, so the hashing under it is measured: an index over the
//! paper's L = 7 functions of M = 10 hashes with buckets .85 R wide. Wider buckets find nearer records, and more that
//! are of no use; the paper takes the R from which on χ gains nothing.

use nearset::{
    Index, Layout, LshSpec, Seed,
    family::{PStable, Stable},
};

use super::{
    filters,
    points::{Point, squared_distance},
    queries::Queries,
};
use crate::rate::in_parallel;

/// The results for one R.
pub struct Tuned {
    pub radius: f64,
    /// The mean of χ over the queries, by kind.
    pub proximity: Vec<f64>,
    /// The mean fraction of the records that share a bucket with a query, over all queries.
    pub candidates: f64,
}

/// Computes χ of queries at each radius.
pub fn tune<const D: usize>(
    stored: &[Point<D>],
    kinds: &[Queries<D>],
    queries: usize,
    radii: &[f64],
    seed: Seed,
) -> anyhow::Result<Vec<Tuned>> {
    let tuned = in_parallel(radii, |&radius| {
        let width = filters::WIDTH * radius;
        let family = PStable { dimension: D as u32, width, stable: Stable::Gaussian };
        let layout = Layout::new(filters::HASHES, filters::FUNCTIONS);
        let mut spec = LshSpec::new(family, layout, seed)?;
        spec.keeps_items = false;
        let mut index = Index::new(spec)?;
        for record in stored {
            index.insert(record.as_slice())?;
        }
        let (mut proximity, mut seen) = (Vec::new(), 0);
        for kind in kinds {
            let mut sum = 0.0;
            for query in kind.points.iter().take(queries) {
                let candidates = index.candidates(query.as_slice())?;
                seen += candidates.len();
                let found = nearest(query, candidates.iter().map(|&id| &stored[id as usize]));
                sum += if found > 0.0 { nearest(query, stored.iter()) / found } else { 1.0 };
            }
            proximity.push(sum / queries.min(kind.points.len()) as f64);
        }
        let asked: usize = kinds.iter().map(|kind| kind.points.len().min(queries)).sum();
        Ok(Tuned { radius, proximity, candidates: seen as f64 / (asked * stored.len()) as f64 })
    });
    tuned.into_iter().collect()
}

/// Returns the distance of the nearest of the records, or infinity if there are none.
fn nearest<'r, const D: usize>(query: &Point<D>, records: impl Iterator<Item = &'r Point<D>>) -> f64 {
    f64::from(records.map(|record| squared_distance(query, record)).fold(f32::INFINITY, f32::min)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hua_2012::competitor::clumps;

    #[test]
    fn wide_buckets_find_the_nearest_record() {
        let (stored, _) = clumps::stored_and_queries(3_000, 0, 9);
        let kinds = [Queries::zipf(&stored, 100, Seed::new(2))];
        let tuned = tune(&stored, &kinds, 100, &[10.0, 100_000.0], Seed::new(3)).unwrap();
        assert!(tuned[0].proximity[0] < 0.2 && tuned[0].candidates < 0.01);
        assert!(tuned[1].proximity[0] > 0.99 && tuned[1].candidates > 0.9);
    }
}
