//! What the paper compares, and the plainest competitor: a scan.
//!
//! The question is always the same: is a record within `radius` of the query? Everything is in memory; *accesses* count
//! how many pages of 4,096 bytes a query would read if nothing were cached: pages of records for a scan, nodes for a tree (a
//! node is a page), and pages of bits for a filter.

use super::points::{Point, squared_distance};

/// Bytes per page.
pub const PAGE: usize = 4096;

/// An answer, and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whether a record is near, as far as the competitor can tell.
    pub near: bool,
    /// The number of pages read.
    pub accesses: u32,
}

/// A way to answer the question.
pub trait Competitor<const D: usize> {
    /// Returns its name in tables and figures.
    fn name(&self) -> &str;

    /// Returns the bytes that it holds.
    fn bytes(&self) -> u64;

    /// Answers one query.
    fn ask(&self, query: &Point<D>, radius: f64) -> Answer;

    /// Returns the answer alone, which is what is timed.
    fn is_near(&self, query: &Point<D>, radius: f64) -> bool {
        self.ask(query, radius).near
    }
}

/// The paper's *Baseline*: all records in their original order, compared until one is near. It is never wrong.
pub struct Scan<'a, const D: usize>(pub &'a [Point<D>]);

impl<const D: usize> Scan<'_, D> {
    const RECORDS_A_PAGE: usize = PAGE / (4 * D);
}

impl<const D: usize> Competitor<D> for Scan<'_, D> {
    fn name(&self) -> &str {
        "Baseline"
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.0) as u64
    }

    fn ask(&self, query: &Point<D>, radius: f64) -> Answer {
        let most = (radius * radius) as f32;
        // A page at a time: within one, comparing without a branch is quicker than stopping early.
        let is_near = |page: &[Point<D>]| {
            page.iter().fold(false, |near, record| near | (squared_distance(query, record) <= most))
        };
        let pages = self.0.chunks(Self::RECORDS_A_PAGE);
        let total = pages.len();
        match pages.into_iter().position(is_near) {
            Some(before) => Answer { near: true, accesses: before as u32 + 1 },
            None => Answer { near: false, accesses: total as u32 },
        }
    }
}

/// Random points in clumps, with which all competitors are tested.
#[cfg(test)]
pub mod clumps {
    use nearset::{Rng, Seed};

    use super::*;

    /// Makes stored points and queries: about half of the queries near a clump, the others anywhere.
    pub fn stored_and_queries(stored: usize, queries: usize, seed: u64) -> (Vec<Point<6>>, Vec<Point<6>>) {
        let mut rng = Rng::new(Seed::new(seed));
        let anywhere = |rng: &mut Rng| -> Point<6> { std::array::from_fn(|_| rng.below(3000) as f32) };
        let middles: Vec<Point<6>> = (0..40).map(|_| anywhere(&mut rng)).collect();
        let beside = |rng: &mut Rng| -> Point<6> {
            let middle = middles[rng.below(40) as usize];
            middle.map(|value| (value + (60.0 * rng.gaussian()) as f32).round().clamp(0.0, 2999.0))
        };
        let records = (0..stored).map(|_| beside(&mut rng)).collect();
        let asked = (0..queries).map(|i| if i % 2 == 0 { beside(&mut rng) } else { anywhere(&mut rng) }).collect();
        (records, asked)
    }

    /// Returns whether each query has a record within the radius, by definition.
    pub fn truth(stored: &[Point<6>], queries: &[Point<6>], radius: f64) -> Vec<bool> {
        let is_near = |query| stored.iter().any(|record| squared_distance(query, record) <= (radius * radius) as f32);
        queries.iter().map(is_near).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_right_and_stops_at_the_first_page_that_is_near() {
        let (stored, queries) = clumps::stored_and_queries(3_000, 300, 1);
        let scan = Scan(&stored);
        for radius in [0.0, 40.0, 120.0, 1000.0] {
            let answers: Vec<bool> = queries.iter().map(|query| scan.is_near(query, radius)).collect();
            assert_eq!(answers, clumps::truth(&stored, &queries, radius));
        }
        // 170 records of 24 bytes make a page.
        assert_eq!(scan.ask(&stored[400], 0.0), Answer { near: true, accesses: 3 });
        assert_eq!(scan.ask(&[9e6; 6], 1.0), Answer { near: false, accesses: 18 });
    }
}
