//! What a filter is before it holds anything.

use super::{ExactSpec, Hasher, Spec, Terms, WhenFull};
use crate::{
    Metric,
    error::SpecError,
    family::{LshFamily, WorkBound, WorkLimit},
};

/// What a filter is without its items or memory: the spec of its first generation, and the terms that it is made on.
///
/// Callers with a limit compare [`Self::bytes`] with it before [`Filter::new`](crate::Filter::new) allocates. As bytes it
/// makes an equal filter elsewhere, and hashes items for it there.
///
/// ```
/// use nearset::{Check, Metric, plan::Request, spec::{FilterSpec, WhenFull}};
///
/// let metric = Metric::Jaccard { shingling: "words:5".parse()? };
/// // Seen among the last 30,000 texts at least: four generations, one of which is being filled.
/// let request = Request::new(metric, 0.8).far(0.5).capacity(10_000).when_full(WhenFull::Forget { generations: 4 });
/// let spec = request.plan_filter()?.spec;
/// assert!(spec.most_bytes() == Some(4 * spec.bytes()));
///
/// let elsewhere = FilterSpec::decode(&spec.encode(), Check::Everything)?;
/// assert_eq!(elsewhere, spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FilterSpec {
    pub(crate) first: GenerationSpec,
    pub(crate) terms: Option<Terms>,
}

/// What one generation is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GenerationSpec {
    Near(Spec),
    Exact(ExactSpec),
}

impl GenerationSpec {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            GenerationSpec::Near(spec) => spec.bytes(),
            GenerationSpec::Exact(spec) => spec.bytes(),
        }
    }

    pub(crate) fn work_bound(&self) -> WorkBound {
        match self {
            GenerationSpec::Near(spec) => spec.work_bound(),
            GenerationSpec::Exact(spec) => spec.work_bound(),
        }
    }

    /// The same for so many times the items.
    pub(crate) fn scaled(&self, factor: u64) -> Result<Self, SpecError> {
        Ok(match self {
            GenerationSpec::Near(spec) => GenerationSpec::Near(spec.with_tables_scaled(factor)?),
            GenerationSpec::Exact(spec) => GenerationSpec::Exact(spec.with_tables_scaled(factor)?),
        })
    }
}

/// A filter on no terms: it neither grows nor refuses.
impl From<Spec> for FilterSpec {
    fn from(spec: Spec) -> Self {
        Self { first: GenerationSpec::Near(spec), terms: None }
    }
}

/// A filter on no terms: it neither grows nor refuses.
impl From<ExactSpec> for FilterSpec {
    fn from(spec: ExactSpec) -> Self {
        Self { first: GenerationSpec::Exact(spec), terms: None }
    }
}

impl FilterSpec {
    /// The same filter on these terms.
    ///
    /// # Errors
    /// If the terms make no sense.
    pub fn on_terms(self, terms: Terms) -> Result<Self, SpecError> {
        terms.check()?;
        Ok(Self { terms: Some(terms), ..self })
    }

    /// The spec of the first generation, if the filter has bands.
    pub fn near(&self) -> Option<&Spec> {
        match &self.first {
            GenerationSpec::Near(spec) => Some(spec),
            GenerationSpec::Exact(_) => None,
        }
    }

    /// The spec of the first generation, if the filter is exact.
    pub fn exact(&self) -> Option<&ExactSpec> {
        match &self.first {
            GenerationSpec::Near(_) => None,
            GenerationSpec::Exact(spec) => Some(spec),
        }
    }

    /// What was promised, if anything was.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match &self.first {
            GenerationSpec::Near(spec) => spec.family.metric(),
            GenerationSpec::Exact(spec) => Some(Metric::Hamming { bits: spec.bits }),
        }
    }

    /// Checks that a filter of this spec can be, and that its [`work_bound`](Self::work_bound) keeps the limit.
    ///
    /// # Errors
    /// If not, saying why.
    pub fn check(&self, limit: WorkLimit) -> Result<(), SpecError> {
        match &self.first {
            GenerationSpec::Near(spec) => spec.check_possible()?,
            GenerationSpec::Exact(spec) => spec.check_possible()?,
        }
        if let Some(terms) = &self.terms {
            terms.check()?;
        }
        limit.check(&self.work_bound())
    }

    /// The most that an item costs in all generations of a window; of a filter that grows, in the first one.
    pub fn work_bound(&self) -> WorkBound {
        let generations = self.terms.map_or(1, |terms| terms.when_full.shares());
        self.first.work_bound().in_each_of(generations as usize)
    }

    /// Bytes that an empty filter of this spec holds.
    pub fn bytes(&self) -> u64 {
        self.first.bytes()
    }

    /// About how many bytes its hash functions take beside its tables, once it is asked: many where vectors are long.
    pub fn bytes_of_functions(&self) -> u64 {
        self.near().map_or(0, |spec| spec.family.bytes_of_functions(spec.layout()))
    }

    /// Bytes that the filter may come to: all generations of a window, with all items where they are kept to be compared. `None` where
    /// there is no bound: if it grows, or keeps items on no terms.
    pub fn most_bytes(&self) -> Option<u64> {
        let one = match (&self.first, self.bytes()) {
            (GenerationSpec::Exact(spec), 0) => {
                let items = libm::ceil(Terms::TOLERANCE * self.terms?.capacity as f64) as u64;
                items.saturating_mul(8 * spec.fold_words() as u64)
            }
            (_, bytes) => bytes,
        };
        match self.terms.map(|terms| terms.when_full) {
            Some(WhenFull::Grow) => None,
            None | Some(WhenFull::Refuse) => Some(one),
            Some(WhenFull::Forget { generations }) => Some(one.saturating_mul(generations.into())),
        }
    }

    /// What hashes items for the filter, if it has bands and can be. No tables are allocated.
    pub fn hasher(&self) -> Option<Hasher> {
        let spec = self.near()?;
        spec.check_possible().ok()?;
        Some(Hasher::of_checked(spec))
    }
}
