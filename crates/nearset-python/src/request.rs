//! What is wanted of texts, as Python states it.

use nearset::Metric;
use nearset::plan::{Plan, PlanError, Request as Library};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::{self, SeedArgument, Whole, seed_to_python};
use crate::spec::{self, FilterSpec};
use crate::{error, filter};

/// What is wanted of near-duplicate texts: what is near, and what may go wrong. :func:`dedup` and its likes on clusters take one.
///
/// Args:
///     near: The Jaccard similarity from which on texts are near.
///     far: The similarity below which they are not; 0.2 below ``near`` unless given, or half of it below 0.4.
///     max_false_negative: The most of what lies at exactly ``near`` that may be missed.
///     max_false_positive: The most of what lies at exactly ``far`` that may be dropped.
///     shingling: How texts are cut into sets: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
///     seed: From which the hash functions are drawn.
///
/// What is left out is what the program takes, too.
///
/// Where ``near`` is too low for any filter, texts can still be compared; ``caught``, ``filter`` and ``spec`` raise a :class:`ValueError` that says
/// so, and so do ``far``, ``max_false_negative`` and ``max_false_positive``, which are those of the filter.
///
/// >>> import nearset
/// >>> wanted = nearset.Request(near=0.8)
/// >>> round(wanted.caught(0.9), 3) > 0.99, wanted.caught(0.6) < 0.01
/// (True, True)
/// >>> wanted.filter(capacity=1000)
/// <NearFilter: jaccard over shingles of words:5; 132 bands of 5 rows, enough must hit; 0 of 1,000 items, 0 % of 101.6 kB set>
#[pyclass(frozen, module = "nearset")]
pub struct Request {
    pub(crate) request: Library,
    /// The plan of a filter for one text: what is promised, and what it does, are the same for any number. Where texts are too far apart for any
    /// filter, they can still be compared.
    plan: Result<Plan, PlanError>,
}

impl Request {
    fn planned(&self, capacity: u64, when_full: &str) -> PyResult<Plan> {
        let request = self.request.clone().capacity(capacity).when_full(spec::when_full(when_full)?);
        request.plan_dedup().map_err(|cause| error::plan(&request, &cause))
    }

    fn plan(&self) -> PyResult<&Plan> {
        self.plan.as_ref().map_err(|cause| error::plan(&self.request, cause))
    }
}

#[pymethods]
impl Request {
    #[new]
    #[pyo3(signature = (near=None, *, far=None, max_false_negative=None, max_false_positive=None, shingling=None, seed=None))]
    fn new(
        near: Option<f64>,
        far: Option<f64>,
        max_false_negative: Option<f64>,
        max_false_positive: Option<f64>,
        shingling: Option<&str>,
        seed: Option<SeedArgument>,
    ) -> PyResult<Self> {
        let metric = Metric::Jaccard { shingling: options::shingling(shingling)? };
        let mut request = Library::new(metric, near.unwrap_or(Library::NEAR)).seed(options::seed(seed));
        request.far = far;
        (request.max_false_negative, request.max_false_positive) = (max_false_negative, max_false_positive);
        match request.clone().capacity(1).plan_dedup() {
            Err(cause) if !matches!(cause, PlanError::TooClose { .. }) || far.is_some() => {
                Err(error::plan(&request, &cause))
            }
            plan => Ok(Self { request, plan }),
        }
    }

    /// The Jaccard similarity from which on texts are near.
    #[getter]
    fn near(&self) -> f64 {
        self.request.near
    }

    /// The similarity below which they are not.
    #[getter]
    fn far(&self) -> PyResult<f64> {
        match self.request.far {
            Some(far) => Ok(far),
            None => Ok(self.request.metric.own_unit(self.plan()?.terms().far)),
        }
    }

    /// The most of what lies at exactly ``near`` that may be missed.
    #[getter]
    fn max_false_negative(&self) -> PyResult<f64> {
        Ok(self.plan()?.terms().max_false_negative)
    }

    /// The most of what lies at exactly ``far`` that may be dropped.
    #[getter]
    fn max_false_positive(&self) -> PyResult<f64> {
        Ok(self.plan()?.terms().max_false_positive)
    }

    /// How texts are cut.
    #[getter]
    fn shingling(&self) -> String {
        self.request.metric.shape().shingling.unwrap_or_default().to_string()
    }

    /// From which the hash functions are drawn.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(py, self.request.seed)
    }

    /// The probability, at capacity, that a text is caught whose nearest earlier one has this similarity.
    fn caught(&self, similarity: f64) -> PyResult<f64> {
        self.plan()?.accepted(similarity).map_err(error::value)
    }

    /// An empty filter for ``capacity`` texts.
    ///
    /// Args:
    ///     capacity: How many distinct texts are expected.
    ///     when_full: As for :meth:`Plan.filter`.
    #[pyo3(signature = (capacity, *, when_full="grow"))]
    fn filter(&self, py: Python<'_>, capacity: Whole<u64>, when_full: &str) -> PyResult<Py<PyAny>> {
        let plan = self.planned(capacity.0, when_full)?;
        filter::to_python(py, nearset::Filter::new(&plan.spec).map_err(|cause| error::spec(&cause))?)
    }

    /// The spec of such a filter, which takes no memory: for a server that is to hold it.
    ///
    /// Args:
    ///     capacity: How many distinct texts are expected.
    ///     when_full: As for :meth:`Plan.filter`.
    #[pyo3(signature = (capacity, *, when_full="grow"))]
    fn spec(&self, capacity: Whole<u64>, when_full: &str) -> PyResult<FilterSpec> {
        FilterSpec::planned(self.planned(capacity.0, when_full)?.spec)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((f64,), Bound<'py, PyDict>)> {
        let rest = PyDict::new(py);
        rest.set_item("far", self.request.far)?;
        rest.set_item("max_false_negative", self.request.max_false_negative)?;
        rest.set_item("max_false_positive", self.request.max_false_positive)?;
        rest.set_item("shingling", self.shingling())?;
        rest.set_item("seed", seed_to_python(py, self.request.seed)?)?;
        Ok(((self.request.near,), rest))
    }

    fn __repr__(&self) -> String {
        let (near, seed) = (self.request.near, self.request.seed);
        let promise = self.plan.as_ref().map_or_else(
            |_| String::new(),
            |plan| {
                let terms = plan.terms();
                let far = self.request.far.unwrap_or_else(|| self.request.metric.own_unit(terms.far));
                let (missed, dropped) = (terms.max_false_negative, terms.max_false_positive);
                format!("far={far:.6}, max_false_negative={missed}, max_false_positive={dropped}, ")
            },
        );
        format!("Request(near={near}, {promise}shingling='{}', seed={seed})", self.shingling())
    }
}
