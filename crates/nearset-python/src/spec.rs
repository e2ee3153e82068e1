//! A filter without its items: what a server tells of one, and what hashes items for it where its tables are not.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use nearset::family::{Hashed, Key, WorkLimit};
use nearset::spec::{Hasher, WhenFull};
use nearset::{BitString, FilterSpec as Library, Metric, Spec};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::batch::{self, Fault, Input, present};
use crate::items::{self, Many};
use crate::options::{self, Whole};
use crate::{draw, error, filter};

/// A filter without its items: what makes an equal empty one elsewhere, and hashes items for it.
///
/// Made by :meth:`Plan.spec` and :meth:`Request.spec`, or from the bytes that a server gives by ``NEAR.SPEC``.
///
/// >>> import nearset
/// >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000)
/// >>> spec = plan.spec(when_full="refuse")
/// >>> spec
/// <FilterSpec: jaccard over shingles of words:5; 145 bands of 2 rows; made for 1,000 items, then it refuses; 25.2 kB>
/// >>> keys = spec.keys_all(["to be or not to be", "that is the question"])
/// >>> keys.shape == (2, spec.bands)
/// True
/// >>> nearset.FilterSpec.decode(spec.encode()) == spec
/// True
#[pyclass(frozen, module = "nearset")]
pub struct FilterSpec {
    spec: Library,
    metric: Metric,
    hasher: OnceLock<Option<Hasher>>,
}

/// What happens to items beyond the capacity.
pub fn when_full(said: &str) -> PyResult<WhenFull> {
    match said {
        "grow" => Ok(WhenFull::Grow),
        "refuse" => Ok(WhenFull::Refuse),
        other => Err(PyValueError::new_err(format!("when_full={other:?}: it is 'grow' or 'refuse'"))),
    }
}

/// What Python calls it.
pub fn name_of(when_full: WhenFull) -> &'static str {
    match when_full {
        WhenFull::Grow => "grow",
        WhenFull::Refuse => "refuse",
        WhenFull::Forget { .. } => "forget",
        _ => "unknown",
    }
}

impl FilterSpec {
    /// The spec of a plan, if an item does not take too long.
    pub fn planned(spec: Library) -> PyResult<Self> {
        spec.check(WorkLimit::Usual).map_err(|cause| error::spec(&cause))?;
        Self::new(spec)
    }

    pub fn new(spec: Library) -> PyResult<Self> {
        let metric = spec.metric().ok_or_else(filter::no_items)?;
        Ok(Self { spec, metric, hasher: OnceLock::new() })
    }

    fn bands_spec(&self) -> PyResult<&Spec> {
        self.spec.near().ok_or_else(|| PyTypeError::new_err("only near filters have bands, and keys for them"))
    }

    /// What hashes, where keys are all that the filter needs of an item.
    fn hasher(&self) -> PyResult<&Hasher> {
        if self.bands_spec()?.probing.is_some() {
            return Err(PyTypeError::new_err(
                "this filter looks beside an item's own buckets, for which it needs more than keys",
            ));
        }
        self.hasher
            .get_or_init(|| self.spec.hasher())
            .as_ref()
            .ok_or_else(|| PyTypeError::new_err("only near filters have bands, and keys for them"))
    }
}

#[pymethods]
impl FilterSpec {
    /// The spec in the bytes of :meth:`encode`.
    #[staticmethod]
    #[pyo3(signature = (bytes, unlimited_work=false))]
    fn decode(bytes: &[u8], unlimited_work: bool) -> PyResult<Self> {
        let limit = options::work_limit(unlimited_work);
        Self::new(Library::decode(bytes, limit).map_err(|cause| error::decode(&cause))?)
    }

    /// The spec as bytes, which ``NEAR.RESERVE key DESCRIPTION`` takes.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.spec.encode())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let decode = slf.get_type().getattr("decode")?;
        // Who unpickles trusts the bytes.
        (decode, (slf.get().encode(slf.py()), true)).into_pyobject(slf.py())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.spec == other.get().spec)
    }

    /// What near means: ``jaccard``, ``hamming``, ``cosine``, …
    #[getter]
    fn metric(&self) -> &'static str {
        self.metric.name().as_str()
    }

    /// Bands that an item has a key in; ``None`` for exact filters, which have none.
    #[getter]
    fn bands(&self) -> Option<u32> {
        self.spec.near().map(|spec| spec.rule.bands())
    }

    /// Functions in a band, where there are bands.
    #[getter]
    fn rows(&self) -> Option<u32> {
        self.spec.near().map(|spec| spec.rows)
    }

    /// Whether its :meth:`keys` are all that the filter needs of an item.
    #[getter]
    fn takes_keys(&self) -> bool {
        self.hasher().is_ok()
    }

    /// Bits, symbols or components of an item, where they are fixed.
    #[getter]
    fn length(&self) -> Option<u32> {
        self.metric.shape().length
    }

    /// How many items it is made for; ``None`` if nothing was promised.
    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.spec.terms().map(|terms| terms.capacity)
    }

    /// What happens then: ``grow``, ``refuse`` or ``forget``; ``None`` if nothing was promised.
    #[getter]
    fn when_full(&self) -> Option<&'static str> {
        self.spec.terms().map(|terms| name_of(terms.when_full))
    }

    /// Memory of such a filter; where it grows or forgets, of one generation.
    #[getter]
    fn bytes(&self) -> u64 {
        self.spec.bytes()
    }

    /// Bits of all bands' tables; ``None`` for exact filters, which have none.
    #[getter]
    fn num_bits(&self) -> Option<u64> {
        self.spec.near().map(|spec| spec.bits_per_band() * u64::from(spec.rule.bands()))
    }

    /// An empty filter: a :class:`NearFilter` or a :class:`HammingFilter`.
    fn filter(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        filter::to_python(
            py,
            nearset::Filter::new_within(&self.spec, WorkLimit::Unlimited).map_err(|cause| error::spec(&cause))?,
        )
    }

    /// An item's keys, one per band; 0 where it has no value in a band.
    fn keys<'py>(&self, py: Python<'py>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let hasher = self.hasher()?;
        let one = items::one(self.metric, item, "insert_all, contains_all or keys_all")?;
        let item = present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None has no keys"))?;
        let mut hashed = Hashed::default();
        hasher.hash(item, &mut hashed).map_err(|cause| error::item(&cause))?;
        Ok(words(&hashed).collect::<Vec<u64>>().into_pyarray(py))
    }

    /// The keys of items, one row per item and one column per band.
    ///
    /// Args:
    ///     items: As for :meth:`Filter.insert_all`.
    ///     threads: Threads that hash; one per core unless given.
    ///     first: The number of the first item, for the error that names one which does not do.
    #[pyo3(signature = (items, *, threads=None, first=Whole(0)))]
    fn keys_all<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        threads: Option<Whole<usize>>,
        first: Whole<usize>,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let hasher = self.hasher()?;
        let bands = self.bands_spec()?.rule.bands() as usize;
        let many = Many::new(self.metric, items)?;
        let mut all: Vec<u64> = batch::room(many.len().unwrap_or(0), bands)?;
        batch::run(
            py,
            Input { metric: self.metric, many: &many, first: first.0 },
            options::threads(threads)?,
            None,
            || (Hashed::default(), BitString::default()),
            |(hashed, room), piece| {
                let mut keys = Vec::with_capacity(piece.len() * bands);
                piece.try_each(room, |i, item| {
                    let position = piece.position(i);
                    let hash = hasher.hash(present(position, item)?, hashed);
                    hash.map_err(|cause| Fault::Item { position, cause })?;
                    keys.extend(words(hashed));
                    Ok::<(), Fault>(())
                })?;
                Ok::<Vec<u64>, Fault>(keys)
            },
            |keys| {
                all.extend(keys?);
                Ok(())
            },
        )?;
        let rows = all.len() / bands;
        all.into_pyarray(py).reshape([rows, bands])
    }

    /// A filter that holds only some bands of this one, for spreading it over machines. Its terms are to refuse when it is full:
    /// parts that grew would grow at different items.
    ///
    /// Args:
    ///     start: The first band.
    ///     stop: The band after the last.
    fn slice(&self, start: Whole<u32>, stop: Whole<u32>) -> PyResult<Self> {
        let slice = self.bands_spec()?.slice(start.0..stop.0).map_err(|cause| error::spec(&cause))?;
        let slice = Library::from(slice);
        let Some(mut terms) = self.spec.terms().copied() else { return Self::new(slice) };
        terms.when_full = WhenFull::Refuse;
        Self::new(slice.on_terms(terms).map_err(error::value)?)
    }

    /// Whether items are near by this filter's rule, given what all of its slices say of them together.
    ///
    /// Args:
    ///     hits: For each item, how many bands hit.
    ///     set_bits: For each item, how many bits were set before it.
    fn accepts<'py>(
        &self,
        py: Python<'py>,
        hits: PyReadonlyArray1<'py, i64>,
        set_bits: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (spec, bits) = (self.bands_spec()?, self.num_bits().unwrap_or(1));
        let (hits, set_bits) = (hits.as_array(), set_bits.as_array());
        if hits.len() != set_bits.len() {
            let (hits, set_bits) = (hits.len(), set_bits.len());
            return Err(PyValueError::new_err(format!("hits of {hits} items and set bits of {set_bits}")));
        }
        // A threshold never falls as bits are added, so between two that are equal there is no other.
        let mut known: BTreeMap<i64, u32> = BTreeMap::new();
        let near = hits.iter().zip(set_bits).map(|(&hits, &ones)| {
            let (below, above) = (known.range(..=ones).next_back(), known.range(ones..).next());
            let threshold = match (below, above) {
                (Some((_, &below)), Some((_, &above))) if below == above => below,
                _ => {
                    let threshold = spec.rule.threshold_at(ones as f64 / bits as f64).ok_or_else(cascade)?;
                    known.insert(ones, threshold);
                    threshold
                }
            };
            Ok(hits >= i64::from(threshold))
        });
        Ok(near.collect::<PyResult<Vec<bool>>>()?.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        let shape = match self.spec.near() {
            Some(spec) => format!("{} bands of {} rows", spec.rule.bands(), spec.rows),
            None => "exact".to_owned(),
        };
        let terms = match (self.capacity(), self.when_full()) {
            (Some(capacity), Some(when_full)) => {
                format!("; made for {} items, then it {when_full}s", draw::count(capacity))
            }
            _ => String::new(),
        };
        format!("<FilterSpec: {}; {shape}{terms}; {}>", self.metric, draw::bytes(self.bytes()))
    }
}

/// Keys as numbers.
fn words(hashed: &Hashed) -> impl Iterator<Item = u64> {
    hashed.keys.iter().map(|key| key.map_or(0, Key::get))
}

fn cascade() -> PyErr {
    PyTypeError::new_err("this filter decides by more than the number of hits")
}
