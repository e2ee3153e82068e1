//! `dedup`: the program's decisions on texts that Python has.

use nearset::plan::{Plan, Request};
use nearset::{BitString, Filter as Library, Item, Metric};
use nearset_jobs::dedup::{Sketched, TextRun, TextSketcher};
use nearset_jobs::screen::Against;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{self, Fault};
use crate::description::{self, Description};
use crate::filter::{self, Filter};
use crate::items::Many;
use crate::options::{self, SeedArgument, Whole};
use crate::{error, options::seed_to_python};

/// What is to be removed from a corpus of texts: the promises behind :func:`dedup`.
///
/// Args:
///     near: The Jaccard similarity around which texts become duplicates.
///     far: The similarity below which they are not; 0.1 below ``near`` unless given.
///     max_false_negative: The most of what lies at exactly ``near`` that may be missed.
///     max_false_positive: The most of what lies at exactly ``far`` that may be dropped.
///     shingling: How texts are cut into sets: ``words:N``, ``chars:N`` or ``bytes:N``.
///     seed: From which the hash functions are drawn.
///
/// What is left out is what the program takes, too.
///
/// >>> import nearset
/// >>> wanted = nearset.TextDedup(near=0.8)
/// >>> round(wanted.caught(0.9), 3) > 0.99, wanted.caught(0.6) < 0.01
/// (True, True)
/// >>> wanted.filter(capacity=1000)
/// <NearFilter: jaccard over shingles of words:5; 132 bands of 5 rows, enough must hit; 0 of 1,000 items, 0 % of 101.6 kB set>
#[pyclass(frozen, module = "nearset")]
pub struct TextDedup {
    request: Request,
    /// The plan for one text: what is promised, and what it does, are the same for any number.
    plan: Plan,
}

impl TextDedup {
    fn planned(&self, capacity: u64, when_full: &str) -> PyResult<Plan> {
        let request = self.request.clone().capacity(capacity).when_full(description::when_full(when_full)?);
        request.plan_dedup().map_err(|cause| error::plan(&cause))
    }
}

#[pymethods]
impl TextDedup {
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
        let mut request = Request::new(metric, near.unwrap_or(Request::NEAR)).seed(options::seed(seed));
        request.far = far;
        (request.max_false_negative, request.max_false_positive) = (max_false_negative, max_false_positive);
        let plan = request.clone().capacity(1).plan_dedup().map_err(|cause| error::plan(&cause))?;
        Ok(Self { request, plan })
    }

    /// The Jaccard similarity around which texts become duplicates.
    #[getter]
    fn near(&self) -> f64 {
        self.request.near
    }

    /// The similarity below which they are not.
    #[getter]
    fn far(&self) -> f64 {
        self.request.far.unwrap_or_else(|| self.request.metric.own_unit(self.plan.terms().far))
    }

    /// The most of what lies at exactly ``near`` that may be missed.
    #[getter]
    fn max_false_negative(&self) -> f64 {
        self.plan.terms().max_false_negative
    }

    /// The most of what lies at exactly ``far`` that may be dropped.
    #[getter]
    fn max_false_positive(&self) -> f64 {
        self.plan.terms().max_false_positive
    }

    /// How texts are cut.
    #[getter]
    fn shingling(&self) -> String {
        self.request.shingling().unwrap_or_default().to_string()
    }

    /// From which the hash functions are drawn.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(py, self.request.seed)
    }

    /// The probability, at capacity, that a text is caught whose nearest earlier one has this similarity.
    fn caught(&self, similarity: f64) -> PyResult<f64> {
        self.plan.accepted(similarity).map_err(error::value)
    }

    /// An empty filter for so many texts.
    ///
    /// Args:
    ///     capacity: How many distinct texts are expected.
    ///     when_full: As for :meth:`Plan.filter`.
    #[pyo3(signature = (capacity, *, when_full="grow"))]
    fn filter(&self, py: Python<'_>, capacity: Whole<u64>, when_full: &str) -> PyResult<Py<PyAny>> {
        let plan = self.planned(capacity.0, when_full)?;
        filter::to_python(py, Library::new(&plan.spec).map_err(|cause| error::spec(&cause))?)
    }

    /// Such a filter without its memory: for a server that is to hold it.
    ///
    /// Args:
    ///     capacity: How many distinct texts are expected.
    ///     when_full: As for :meth:`Plan.filter`.
    #[pyo3(signature = (capacity, *, when_full="grow"))]
    fn describe(&self, capacity: Whole<u64>, when_full: &str) -> PyResult<Description> {
        Description::planned(self.planned(capacity.0, when_full)?.spec)
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
        format!(
            "TextDedup(near={near}, far={:.6}, max_false_negative={}, max_false_positive={}, shingling='{}', seed={seed})",
            self.far(),
            self.max_false_negative(),
            self.max_false_positive(),
            self.shingling()
        )
    }
}

/// The positions of the texts that are kept, and the filter that the run has filled.
type Kept<'py> = (Bound<'py, PyArray1<i64>>, Py<PyAny>);

/// Decides on texts, as the program does on records.
#[pyfunction]
#[pyo3(signature = (wanted, texts, capacity, against, skip_missing, threads, progress))]
#[allow(clippy::too_many_arguments)]
pub fn dedup<'py>(
    py: Python<'py>,
    wanted: &TextDedup,
    texts: &Bound<'py, PyAny>,
    capacity: Option<Whole<u64>>,
    against: Vec<PyRef<'py, Filter>>,
    skip_missing: bool,
    threads: Option<Whole<usize>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Kept<'py>> {
    let metric = wanted.request.metric;
    let many = Many::new(metric, texts)?;
    let capacity = capacity.map(|capacity| capacity.0).or(many.len().map(|len| len as u64));
    let mut run = TextRun::new(wanted.request.clone(), capacity).map_err(|cause| error::plan(&cause))?;
    let hasher = run.hasher();
    let held: Vec<_> = against.iter().map(|filter| filter.read(py)).collect();
    let spec = run.filter().spec();
    let own = spec.near().expect("a filter of texts has bands");
    let screens = held
        .iter()
        .map(|filter| Against::new(filter, Some(own)).map_err(|cause| PyTypeError::new_err(cause.to_string())))
        .collect::<PyResult<Vec<Against<'_>>>>()?;
    let mut kept = Vec::new();
    let mut position = 0i64;
    batch::run(
        py,
        (metric, &many),
        options::threads(threads)?,
        progress.as_ref(),
        || (TextSketcher::new(hasher.clone(), &screens), BitString::default()),
        |(sketcher, room), piece| {
            let mut sketched = Sketched::default();
            let mut missing = Vec::new();
            let outcome = piece.try_each(room, |i, item| match item {
                None if skip_missing => {
                    missing.push(i);
                    Ok(())
                }
                Some(Item::Text(text)) => {
                    let pushed = sketched.push(sketcher, text);
                    pushed.map_err(|cause| Fault::Item { position: piece.position(i), cause })
                }
                Some(_) => Err(Fault::Other(PyTypeError::new_err(format!("item {} is no text", piece.position(i))))),
                None => Err(Fault::Other(PyValueError::new_err(format!(
                    "item {} is missing (None or null): missing='skip' leaves such texts out",
                    piece.position(i)
                )))),
            });
            (piece.len(), missing, outcome.map(|()| sketched))
        },
        |(len, missing, sketched)| {
            let mut missing = missing.into_iter().map(|i| position + i as i64).peekable();
            let mut next = position;
            let decided = run.decide(&sketched?, |new| {
                while missing.next_if_eq(&next).is_some() {
                    next += 1;
                }
                if new {
                    kept.push(next);
                }
                next += 1;
            });
            position += len as i64;
            decided.map_err(|cause| Fault::Other(error::insert(&cause)))
        },
    )?;
    drop(screens);
    drop(held);
    Ok((kept.into_pyarray(py), filter::to_python(py, run.into_filter())?))
}
