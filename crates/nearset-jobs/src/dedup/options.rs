//! What a run is told, and what of it decides the output.

use nearset::Shingling;
use nearset::plan::{PlanError, Request};
use nearset::spec::Terms;

use crate::run::{Fingerprint, RunOptions};
use crate::screen::Screen;

/// How to deduplicate by a filter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DedupOptions {
    /// What is near, and what is promised.
    pub wanted: Request,
    /// How to read, and what to write.
    pub run: RunOptions,
    /// Distinct texts to make room for; `None` estimates them.
    pub capacity: Option<u64>,
    /// Filters built before.
    pub screen: Screen,
}

impl DedupOptions {
    /// The usual options; no output is named yet.
    pub fn new(wanted: Request) -> Self {
        Self { wanted, run: RunOptions::default(), capacity: None, screen: Screen::default() }
    }

    /// What is promised, no default left open.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn terms(&self) -> Result<Terms, PlanError> {
        Ok(*self.wanted.clone().capacity(1).plan_dedup()?.terms())
    }

    /// How texts are cut.
    pub fn shingling(&self) -> Shingling {
        self.wanted.metric.shape().shingling.unwrap_or_default()
    }

    /// Everything here that decides the output's bytes.
    pub(super) fn fingerprint(&self) -> Result<Fingerprint, PlanError> {
        // Taken apart, so that a new option can't be forgotten here.
        let Self { wanted, run: _, capacity, screen } = self;
        let mut all = Fingerprint::new();
        let mut note = |name: &str, value: String| all.insert(name.to_owned(), value);
        let terms = self.terms()?;
        note("near", format!("{}, far at {:.4}", wanted.near, wanted.metric.own_unit(terms.far)));
        note("max false negative", terms.max_false_negative.to_string());
        note("max false positive", terms.max_false_positive.to_string());
        note("shingling", self.shingling().to_string());
        note("seed", wanted.seed.to_string());
        note("capacity", format!("{capacity:?}"));
        screen.note(&mut all);
        Ok(all)
    }
}
