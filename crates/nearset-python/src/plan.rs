//! `plan`: what a filter will do and cost, before it is built.

use nearset::plan::{FarModel, Minimise, Plan as Planned, PlanError as LibraryError, Request};
use nearset::{Filter, MetricName, Shape};
use nearset_view::curves::plan_chart;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::index::IndexPlan;
use crate::options::{self, SeedArgument, Whole, seed_to_python};
use crate::spec::{self, FilterSpec};
use crate::{draw, error, filter};

pyo3::create_exception!(
    nearset,
    PlanError,
    PyValueError,
    "No filter is worth having; the message says what is.\n\n``plan`` is the smallest filter that keeps the promises all the \
     same, where there is one but the items themselves take less; else None."
);

/// The cheapest filter that keeps the promises, with what it will do. Made by :func:`plan`.
///
/// ``print(plan)`` explains it; in a notebook it draws itself.
#[pyclass(frozen, module = "nearset")]
pub struct Plan(Planned);

impl Plan {
    /// The filter that is planned.
    pub fn empty_filter(&self, when_full: &str) -> PyResult<Filter<'static>> {
        Filter::new(&self.library_spec(when_full)?).map_err(|cause| error::spec(&cause))
    }

    fn library_spec(&self, when_full: &str) -> PyResult<nearset::FilterSpec> {
        let mut terms = *self.0.terms();
        terms.when_full = spec::when_full(when_full)?;
        self.0.spec.clone().on_terms(terms).map_err(error::value)
    }
}

/// What :func:`plan` or :func:`plan_index` makes an equal plan of.
pub fn arguments<'py>(py: Python<'py>, request: &Request) -> PyResult<Bound<'py, PyDict>> {
    let shape = request.metric.shape();
    let (background, worst_case) = match request.far_model {
        Some(FarModel::Background(own)) => (Some(own), false),
        Some(FarModel::WorstCase) => (None, true),
        _ => (None, false),
    };
    let arguments = PyDict::new(py);
    arguments.set_item("near", request.near)?;
    arguments.set_item("far", request.far)?;
    arguments.set_item("capacity", request.capacity)?;
    arguments.set_item("length", shape.length)?;
    arguments.set_item("shingling", shape.shingling.map(|shingling| shingling.to_string()))?;
    arguments.set_item("max_false_negative", request.max_false_negative)?;
    arguments.set_item("background", background)?;
    arguments.set_item("worst_case", worst_case)?;
    arguments.set_item("seed", seed_to_python(py, request.seed)?)?;
    Ok(arguments)
}

/// A plan out of a pickle: what the function of this name makes of the arguments, also if it takes more than its items.
#[pyfunction]
pub fn _plan_again<'py>(function: &str, metric: &str, arguments: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let py = arguments.py();
    match py.import("nearset")?.getattr(function)?.call((metric,), Some(arguments)) {
        Err(error) if error.is_instance_of::<PlanError>(py) => match error.value(py).getattr("plan")? {
            larger if larger.is_none() => Err(error),
            larger => Ok(larger),
        },
        plan => plan,
    }
}

/// How pickle makes a plan again.
pub type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, &'static str, Bound<'py, PyDict>));

#[pymethods]
impl Plan {
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let request = &self.0.request;
        let arguments = arguments(py, request)?;
        arguments.set_item("max_false_positive", request.max_false_positive)?;
        arguments.set_item("minimise", if request.minimise == Minimise::Time { "time" } else { "bytes" })?;
        let again = py.import("nearset._core")?.getattr("_plan_again")?;
        Ok((again, ("plan", request.metric.name().as_str(), arguments)))
    }

    /// An empty filter: a :class:`NearFilter` or a :class:`HammingFilter`.
    ///
    /// Args:
    ///     when_full: What happens when it holds ``capacity`` items: ``grow`` by a generation for twice as many, or ``refuse``.
    #[pyo3(signature = (*, when_full="grow"))]
    fn filter(&self, py: Python<'_>, when_full: &str) -> PyResult<Py<PyAny>> {
        filter::to_python(py, self.empty_filter(when_full)?)
    }

    /// The spec of the filter that is planned, which takes no memory: for a server that is to hold it.
    ///
    /// Args:
    ///     when_full: As for :meth:`filter`.
    #[pyo3(signature = (*, when_full="grow"))]
    fn spec(&self, when_full: &str) -> PyResult<FilterSpec> {
        FilterSpec::planned(self.library_spec(when_full)?)
    }

    /// What near means.
    #[getter]
    fn metric(&self) -> &'static str {
        self.0.request.metric.name().as_str()
    }

    /// Up to here, items are to be found, in the metric's own unit.
    #[getter]
    fn near(&self) -> f64 {
        self.0.request.near
    }

    /// From here on, they are not.
    #[getter]
    fn far(&self) -> f64 {
        self.0.request.far.unwrap_or_else(|| self.0.request.metric.own_unit(self.0.terms().far))
    }

    /// How many distinct items are expected.
    #[getter]
    fn capacity(&self) -> u64 {
        self.0.request.capacity
    }

    /// From which the filter draws its functions.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(py, self.0.request.seed)
    }

    /// The kind of filter: ``banded``, ``threshold``, ``pigeonhole``, …
    #[getter]
    fn structure(&self) -> String {
        self.0.structure.to_string()
    }

    /// The hash family.
    #[getter]
    fn family(&self) -> &'static str {
        self.0.family
    }

    /// The part of near items that is missed, at any load.
    #[getter]
    fn false_negative(&self) -> f64 {
        self.0.false_negative
    }

    /// The part of far items that is accepted, at capacity.
    #[getter]
    fn false_positive(&self) -> f64 {
        self.0.false_positive
    }

    /// Memory for one of ``capacity`` items.
    #[getter]
    fn bits_per_item(&self) -> f64 {
        self.0.bits_per_item
    }

    /// Memory in all.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Functions in a band, where there are bands.
    #[getter]
    fn rows(&self) -> Option<u32> {
        self.0.spec.near().map(|spec| spec.rows)
    }

    /// Bands, where there are any.
    #[getter]
    fn bands(&self) -> Option<u32> {
        self.0.spec.near().map(|spec| spec.rule.bands())
    }

    /// How many bands must hit at capacity, where one number decides.
    #[getter]
    fn threshold(&self) -> Option<u32> {
        self.0.threshold()
    }

    /// From where to where nothing is promised, in the metric's own unit.
    #[getter]
    fn grey_zone(&self) -> (f64, f64) {
        let own = |distance| self.0.request.metric.own_unit(distance);
        (own(self.0.grey_zone.start), own(self.0.grey_zone.end))
    }

    /// The curve of acceptance: places in the metric's own unit, the probability there with one item, and at capacity.
    #[getter]
    #[allow(clippy::type_complexity)]
    fn curve<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let points = &self.0.curve;
        let column = |of: &dyn Fn(&nearset::plan::CurvePoint) -> f64| -> Vec<f64> { points.iter().map(of).collect() };
        let own = column(&|point| self.0.request.metric.own_unit(point.distance));
        let (empty, full) = (column(&|point| point.empty), column(&|point| point.full));
        (own.into_pyarray(py), empty.into_pyarray(py), full.into_pyarray(py))
    }

    /// The plan in words, one fact a line.
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let facts: Vec<String> = draw::plan_facts(&self.0).into_iter().map(|(_, fact)| fact).collect();
        format!("<Plan: {}>", facts.join("; "))
    }

    /// The curve of acceptance as a picture.
    fn svg(&self) -> String {
        plan_chart(&self.0).to_svg()
    }

    fn _repr_html_(&self) -> String {
        draw::html("Plan", &draw::plan_facts(&self.0), &self.svg())
    }
}

/// Plans the cheapest filter that keeps a promise, and says what it will do.
///
/// Of the items that are ``near`` something stored, at most ``max_false_negative`` are missed; of those with nothing nearer
/// than ``far``, at most ``max_false_positive`` are called near, with ``capacity`` items stored.
///
/// Args:
///     metric: ``jaccard``, ``hamming``, ``cosine`` or another one that ``nearset plan --help`` lists.
///     near: How near is near, in the metric's own unit: a similarity, a cosine, differing bits or symbols, a distance.
///     far: How far is far. Only ``jaccard`` can do without: the filter is that of :class:`Request` then.
///     capacity: How many distinct items are expected.
///     length: Bits, symbols or components of an item, for metrics whose items have one length.
///     shingling: How texts are cut: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
///     max_false_negative: The most that may be missed; 0 for none at all (``hamming``, ``symbols``).
///     max_false_positive: The most that may be called near wrongly.
///     minimise: ``bytes`` or ``time``.
///     background: How far unrelated items are, where that is known.
///     worst_case: Promise even to an item that has everything stored exactly at ``far``.
///     seed: From which the filter draws its functions: a number, or 16 secret bytes.
///
/// Raises :class:`PlanError` where no filter does it, with what does.
///
/// >>> import nearset
/// >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=100_000)
/// >>> plan.false_negative <= 0.02 and plan.false_positive <= 0.001
/// True
/// >>> plan.filter()
/// <NearFilter: jaccard over shingles of words:5; ...
#[pyfunction]
#[pyo3(signature = (
    metric, *, near, capacity, far=None, length=None, shingling=None, max_false_negative=None, max_false_positive=None,
    minimise=None, background=None, worst_case=false, seed=None
))]
#[allow(clippy::too_many_arguments)]
pub fn plan(
    py: Python<'_>,
    metric: &str,
    near: f64,
    capacity: Whole<u64>,
    far: Option<f64>,
    length: Option<Whole<u32>>,
    shingling: Option<&str>,
    max_false_negative: Option<f64>,
    max_false_positive: Option<f64>,
    minimise: Option<&str>,
    background: Option<f64>,
    worst_case: bool,
    seed: Option<SeedArgument>,
) -> PyResult<Plan> {
    let wishes = Wishes {
        near,
        far,
        capacity,
        length,
        shingling,
        max_false_negative,
        max_false_positive,
        minimise,
        background,
        worst_case,
        seed,
    };
    let request = wishes.request(metric)?;
    py.detach(|| request.plan_filter()).map(Plan).map_err(|cause| refused(py, &request, cause))
}

/// Plans the quickest index that finds near items as often as is asked, by tables of locality-sensitive keys.
///
/// Args:
///     metric: As for :func:`plan`, and so are the others. What an index returns is verified, so there are no false positives.
///
/// >>> import nearset
/// >>> plan = nearset.plan_index("cosine", near=0.9, far=0.3, capacity=100_000, length=128)
/// >>> plan.success >= 0.98
/// True
#[pyfunction]
#[pyo3(signature = (
    metric, *, near, capacity, far=None, length=None, shingling=None, max_false_negative=None, background=None,
    worst_case=false, seed=None
))]
#[allow(clippy::too_many_arguments)]
pub fn plan_index(
    py: Python<'_>,
    metric: &str,
    near: f64,
    capacity: Whole<u64>,
    far: Option<f64>,
    length: Option<Whole<u32>>,
    shingling: Option<&str>,
    max_false_negative: Option<f64>,
    background: Option<f64>,
    worst_case: bool,
    seed: Option<SeedArgument>,
) -> PyResult<IndexPlan> {
    let (max_false_positive, minimise) = (None, None);
    let wishes = Wishes {
        near,
        far,
        capacity,
        length,
        shingling,
        max_false_negative,
        max_false_positive,
        minimise,
        background,
        worst_case,
        seed,
    };
    let request = wishes.request(metric)?;
    py.detach(|| request.plan_index()).map(IndexPlan).map_err(|cause| refused(py, &request, cause))
}

/// A request as Python's arguments say it; what is `None` is the library's.
struct Wishes<'a> {
    near: f64,
    far: Option<f64>,
    capacity: Whole<u64>,
    length: Option<Whole<u32>>,
    shingling: Option<&'a str>,
    max_false_negative: Option<f64>,
    max_false_positive: Option<f64>,
    minimise: Option<&'a str>,
    background: Option<f64>,
    worst_case: bool,
    seed: Option<SeedArgument>,
}

impl Wishes<'_> {
    fn request(self, metric: &str) -> PyResult<Request> {
        let name: MetricName = metric.parse().map_err(error::value)?;
        let shingling = self.shingling.map(|text| options::shingling(Some(text))).transpose()?;
        let shape = Shape { length: self.length.map(|length| length.0), shingling };
        let metric = name.with(shape).map_err(error::value)?;
        let mut request = Request::new(metric, self.near).capacity(self.capacity.0).seed(options::seed(self.seed));
        request.far = self.far;
        (request.max_false_negative, request.max_false_positive) = (self.max_false_negative, self.max_false_positive);
        request.minimise = match self.minimise {
            Some("bytes") => Minimise::Bytes,
            Some("time") => Minimise::Time,
            Some(other) => return Err(PyValueError::new_err(format!("minimise={other:?}: it is 'bytes' or 'time'"))),
            None => request.minimise,
        };
        request.far_model = match (self.background, self.worst_case) {
            (Some(_), true) => return Err(PyValueError::new_err("background and worst_case exclude each other")),
            (Some(own), false) => Some(FarModel::Background(own)),
            (None, true) => Some(FarModel::WorstCase),
            (None, false) => None,
        };
        Ok(request)
    }
}

/// Why there is no plan.
fn refused(py: Python<'_>, request: &Request, cause: LibraryError) -> PyErr {
    let message = error::unplanned(request, &cause);
    if matches!(cause, LibraryError::Request(_)) {
        return error::value(message);
    }
    let error = PlanError::new_err(message);
    let larger = match cause {
        LibraryError::LargerThanItems { plan, .. } => Some(Plan(*plan)),
        _ => None,
    };
    match error.value(py).setattr("plan", larger) {
        Ok(()) => error,
        Err(other) => other,
    }
}
