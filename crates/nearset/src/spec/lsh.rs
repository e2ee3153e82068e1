//! What decides an index's answers.

use crate::{
    Distance, Family, Layout, MergeError, Seed,
    error::SpecError,
    family::{LshFamily, MOST_PROBES, WorkBound, WorkLimit, product},
};

/// Everything that decides which items an index finds by locality-sensitive keys.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LshSpec {
    /// The hash family, with its parameters.
    pub family: Family,
    /// From which functions are drawn.
    pub seed: Seed,
    /// `bands` tables of keys of `rows` functions.
    pub layout: Layout,
    /// Buckets of each table that a query looks into, its own included. More than 1 only for families that can probe.
    pub probes: u32,
    /// Whether items are kept, so that candidates are verified. Without them an index can name candidates only.
    pub keeps_items: bool,
}

impl LshSpec {
    /// An index that keeps its items and looks into one bucket a table.
    ///
    /// # Errors
    /// If no index has this spec.
    pub fn new(family: impl Into<Family>, layout: Layout, seed: Seed) -> Result<Self, SpecError> {
        let spec = Self { family: family.into(), seed, layout, probes: 1, keeps_items: true };
        spec.check()?;
        Ok(spec)
    }

    /// The most that hashing and looking up one item costs; candidates that a search compares come on top of it. A spec that no index
    /// has costs more than any limit.
    pub(crate) fn work_bound(&self) -> WorkBound {
        if self.check_possible().is_ok() { self.work_of_possible() } else { WorkBound::ENDLESS }
    }

    fn work_of_possible(&self) -> WorkBound {
        let (rows, bands) = (u64::from(self.layout.rows), u64::from(self.layout.bands));
        let beside = match u64::from(self.probes) {
            1 => 0,
            // All steps of a band are sorted, then each bucket's key is made of all its rows.
            probes => product([bands, rows * STEP_WORK + probes * (rows + BUCKET_WORK)]),
        };
        WorkBound { look_up: (BUCKET_WORK * bands).saturating_add(beside), ..self.family.work_bound(self.layout) }
    }

    /// Checks that an index of this spec can be, and that its [`work_bound`](Self::work_bound) keeps the usual limit.
    ///
    /// # Errors
    /// If not, saying why.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        self.check_within(WorkLimit::Usual)
    }

    /// [`Self::check`] by another limit on work.
    ///
    /// # Errors
    /// If no index has this spec, or it asks for too much work.
    pub(crate) fn check_within(&self, limit: WorkLimit) -> Result<(), SpecError> {
        self.check_possible()?;
        limit.check(&self.work_of_possible())
    }

    /// Checks that an index of this spec can be, whatever work it is.
    pub(crate) fn check_possible(&self) -> Result<(), SpecError> {
        let most = if self.family.can_probe() { MOST_PROBES } else { 1 };
        if !(1..=most).contains(&self.probes) {
            return Err(SpecError::Probes { probes: self.probes, most });
        }
        self.family.check(self.layout)
    }

    /// That another index's tables mean the same.
    ///
    /// # Errors
    /// If they do not, naming the first difference.
    pub(crate) fn expect_equal(&self, other: &LshSpec) -> Result<(), MergeError> {
        // Taken apart, so that a new field can't be forgotten here.
        let LshSpec { family, seed, layout, probes, keeps_items } = self;
        MergeError::unless_equal("hash family", family, &other.family)?;
        MergeError::unless_equal("seed", seed, &other.seed)?;
        MergeError::unless_equal("number of rows", &layout.rows, &other.layout.rows)?;
        MergeError::unless_equal("number of bands", &layout.bands, &other.layout.bands)?;
        MergeError::unless_equal("number of probes", probes, &other.probes)?;
        MergeError::unless_equal("keeping of items", keeps_items, &other.keeps_items)
    }

    /// The probability that a query at this distance from a stored item has it among its candidates: `1 - (1 - P)^bands`, `P`
    /// the chance that a band agrees in one of its probed buckets; exact too where a family's bands are not independent.
    #[cfg(test)]
    pub(crate) fn success_probability(&self, distance: Distance) -> f64 {
        let band = self.family.probed_probabilities(&[distance], self.layout.rows, self.probes);
        self.success_given(distance, band.first().and_then(|probes| probes.last()).copied().unwrap_or(0.0))
    }

    /// The same where it is known how likely a band agrees.
    pub(crate) fn success_given(&self, distance: Distance, band: f64) -> f64 {
        match self.family.agreeing_bands(distance, self.layout) {
            Some(agreeing) => 1.0 - agreeing.first().copied().unwrap_or(1.0),
            None if band >= 1.0 => 1.0,
            None => -libm::expm1(f64::from(self.layout.bands) * libm::log1p(-band)),
        }
    }
}

/// Operations of finding a bucket in the runs of a band.
const BUCKET_WORK: u64 = 50;

/// Operations of sorting a step from a function's value to a neighbouring one.
const STEP_WORK: u64 = 40;
