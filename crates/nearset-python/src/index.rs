//! Indexes: which stored item is near, and how near. One set of methods over whichever index it is.

use nearset::index::IndexError;
use nearset::item::ItemBuffer;
use nearset::plan::IndexPlan as Planned;
use nearset::{BitString, HammingSpec, Index as Library, IndexSpec, Item, Metric};
use nearset_jobs::{FilterFile, save_index};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::batch::{self, Fault, present};
use crate::files::{self, Source, Target};
use crate::items::{self, Many};
use crate::options::{self, SeedArgument, Whole};
use crate::plan::{Reduced, arguments};
use crate::shared::{Shared, reduce};
use crate::{draw, error};

/// A stored item that was found, and how near it is. It unpacks: ``for id, near in index.nearest(item, 3)``.
#[pyclass(frozen, get_all, eq, module = "nearset")]
#[derive(PartialEq)]
pub struct Neighbour {
    /// The item's place in the order of insertion, from 0 on.
    id: u32,
    /// How near it is, exactly, in the metric's own unit: a similarity or cosine, differing bits, a distance.
    near: f64,
}

#[pymethods]
impl Neighbour {
    #[new]
    fn new(id: u32, near: f64) -> Self {
        Self { id, near }
    }

    fn __getnewargs__(&self) -> (u32, f64) {
        (self.id, self.near)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok((self.id, self.near).into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (self.id, self.near).into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("Neighbour(id={}, near={})", self.id, self.near)
    }
}

fn failed(cause: &IndexError) -> PyErr {
    match cause {
        IndexError::Item(cause) => error::item(cause),
        IndexError::Spec(cause) => error::spec(cause),
        _ => error::value(cause),
    }
}

/// The same for one of many items.
fn failed_at(position: usize, cause: IndexError) -> Fault {
    match cause {
        IndexError::Item(cause) => Fault::Item { position, cause },
        other => Fault::Other(failed(&other)),
    }
}

/// Items that are kept, and found by what is near: an :class:`LshIndex` or a :class:`HammingIndex`.
///
/// An item's id is its place in the order of insertion, from 0 on, and never changes.
#[pyclass(frozen, subclass, module = "nearset")]
pub struct Index {
    index: Shared<Library<'static>>,
    metric: Metric,
}

/// An index for any metric, by tables of locality-sensitive keys. What it returns is near by its exact distance; how much it may
/// miss is the plan's promise.
///
/// Args:
///     plan: What :func:`plan_index` returned.
///
/// >>> import nearset
/// >>> plan = nearset.plan_index("jaccard", near=0.7, far=0.2, capacity=1000, shingling="words:2")
/// >>> index = nearset.LshIndex(plan)
/// >>> index.insert("the boats lay at their ropes until the wind turned at noon")
/// 0
/// >>> index.insert("gulls came back to the quiet water beside the old walls")
/// 1
/// >>> [(found.id, round(found.near, 3)) for found in index.nearest("The boats lay at their ropes until the wind turned", 1)]
/// [(0, 0.818)]
#[pyclass(frozen, extends = Index, module = "nearset")]
pub struct LshIndex;

/// An index of bit strings that finds all within a distance, and the nearest, missing nothing.
///
/// Args:
///     bits: Bits of every item.
///     radius: The distance up to which searches are to be fast. Farther ones compare the query with every item.
///     seed: From which the order of bits is drawn.
///
/// >>> import nearset
/// >>> index = nearset.HammingIndex(64, radius=8)
/// >>> index.insert_all(["d1c4b1a3f0e8877e", "2e3b4e5c0f177881"]).tolist()
/// [0, 1]
/// >>> index.within("d1c4b1a3f0e8877f", 4)
/// [Neighbour(id=0, near=1)]
#[pyclass(frozen, extends = Index, module = "nearset")]
pub struct HammingIndex;

fn to_python(py: Python<'_>, index: Library<'static>) -> PyResult<Py<PyAny>> {
    let is_lsh = matches!(index.spec(), IndexSpec::Lsh(_));
    let base = PyClassInitializer::from(Index::new(index)?);
    Ok(match is_lsh {
        true => Bound::new(py, base.add_subclass(LshIndex))?.into_any().unbind(),
        false => Bound::new(py, base.add_subclass(HammingIndex))?.into_any().unbind(),
    })
}

/// The index in a file, of whichever kind.
pub fn open(py: Python<'_>, path: Source, unlimited_work: bool) -> PyResult<Py<PyAny>> {
    to_python(py, opened(py, path, unlimited_work)?)
}

fn opened(py: Python<'_>, path: Source, unlimited_work: bool) -> PyResult<Library<'static>> {
    let path = match path {
        Source::Path(path) => path,
        Source::Bytes(bytes) => return decoded(py, bytes.as_bytes(py), unlimited_work),
    };
    py.detach(|| {
        let file = FilterFile::open(&path).map_err(|cause| error::filter_file(&cause))?;
        let file = file.within(options::work_limit(unlimited_work));
        Ok(file.index().map_err(|cause| error::filter_file(&cause))?.into_owned())
    })
}

fn decoded(py: Python<'_>, bytes: &[u8], unlimited_work: bool) -> PyResult<Library<'static>> {
    let limit = options::work_limit(unlimited_work);
    py.detach(|| Ok(Library::decode(bytes, limit).map_err(|cause| error::decode(&cause))?.into_owned()))
}

fn expect(index: Library<'static>, lsh: bool) -> PyResult<Library<'static>> {
    match (index.spec(), lsh) {
        (IndexSpec::Lsh(_), true) | (IndexSpec::Hamming(_), false) => Ok(index),
        _ => Err(PyValueError::new_err("it is another kind of index: open it by nearset.open, or by its own class")),
    }
}

impl Index {
    fn new(index: Library<'static>) -> PyResult<Self> {
        let Some(metric) = index.metric() else {
            return Err(PyTypeError::new_err("Python has no items for this index's hash family: use the Rust library"));
        };
        Ok(Self { index: Shared::new(index), metric })
    }

    /// What holds the index.
    pub fn shared(&self) -> &Shared<Library<'static>> {
        &self.index
    }

    fn neighbour(&self, found: &nearset::Neighbour) -> Neighbour {
        Neighbour { id: found.id, near: self.metric.own_unit(found.distance) }
    }

    fn one(&self, item: &Bound<'_, PyAny>, many: &str) -> PyResult<ItemBuffer> {
        let one = items::one(self.metric, item, many)?;
        present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None is no item"))?;
        Ok(one)
    }

    /// What `ask` finds for each of many items, by many threads.
    fn ask_all(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        threads: Option<Whole<usize>>,
        ask: impl Fn(&Library<'_>, Item<'_>) -> Result<Vec<nearset::Neighbour>, IndexError> + Sync + Send,
    ) -> PyResult<Vec<Vec<nearset::Neighbour>>> {
        let many = Many::new(self.metric, items)?;
        let mut all = Vec::with_capacity(many.len().unwrap_or(0));
        batch::run(
            py,
            (self.metric, &many),
            options::threads(threads)?,
            None,
            BitString::default,
            |room, piece| {
                let index = self.index.read_detached();
                let mut found = Vec::with_capacity(piece.len());
                piece.try_each(room, |i, item| {
                    let position = piece.position(i);
                    let asked = ask(&index, present(position, item)?);
                    found.push(asked.map_err(|cause| failed_at(position, cause))?);
                    Ok::<(), Fault>(())
                })?;
                Ok::<_, Fault>(found)
            },
            |found| {
                all.extend(found?);
                Ok(())
            },
        )?;
        Ok(all)
    }
}

/// Ids and nearnesses of the nearest items, one row per query.
type Nearest<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

#[pymethods]
impl Index {
    /// Inserts an item and returns its id.
    fn insert(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<u32> {
        let one = self.one(item, "insert_all")?;
        let item = present(0, one.get(0))?;
        self.index.write(py)?.insert(item).map_err(|cause| failed(&cause))
    }

    /// Inserts items in order and returns their ids.
    ///
    /// Args:
    ///     items: As for :meth:`Filter.insert_all`.
    fn insert_all<'py>(&self, py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.index.check_home()?;
        let many = Many::new(self.metric, items)?;
        let mut ids: Vec<i64> = Vec::with_capacity(many.len().unwrap_or(0));
        batch::run(
            py,
            (self.metric, &many),
            1,
            None,
            BitString::default,
            |room, piece| {
                let mut index = self.index.write_detached();
                let mut ids = Vec::with_capacity(piece.len());
                piece.try_each(room, |i, item| {
                    let position = piece.position(i);
                    let id = index.insert(present(position, item)?).map_err(|cause| failed_at(position, cause))?;
                    ids.push(i64::from(id));
                    Ok::<(), Fault>(())
                })?;
                Ok::<_, Fault>(ids)
            },
            |inserted| {
                ids.extend(inserted?);
                Ok(())
            },
        )?;
        Ok(ids.into_pyarray(py))
    }

    /// Removes the item of this id. True if it was in. Its id is not given again.
    fn remove(&self, py: Python<'_>, id: u32) -> PyResult<bool> {
        Ok(self.index.write(py)?.remove(id))
    }

    /// The items that are nearest, the nearest first.
    ///
    /// Args:
    ///     item: The query.
    ///     top: How many, at most.
    fn nearest(&self, py: Python<'_>, item: &Bound<'_, PyAny>, top: Whole<usize>) -> PyResult<Vec<Neighbour>> {
        let one = self.one(item, "nearest_all")?;
        let found =
            self.index.read(py).search(present(0, one.get(0))?, Some(top.0), None).map_err(|cause| failed(&cause))?;
        Ok(found.iter().map(|found| self.neighbour(found)).collect())
    }

    /// The items that are at least this near, the nearest first.
    ///
    /// Args:
    ///     item: The query.
    ///     near: In the metric's own unit: a similarity or cosine, differing bits, a distance.
    fn within(&self, py: Python<'_>, item: &Bound<'_, PyAny>, near: f64) -> PyResult<Vec<Neighbour>> {
        let distance = self.metric.distance(near).map_err(error::value)?;
        let one = self.one(item, "within_all")?;
        let found = self
            .index
            .read(py)
            .search(present(0, one.get(0))?, None, Some(distance))
            .map_err(|cause| failed(&cause))?;
        Ok(found.iter().map(|found| self.neighbour(found)).collect())
    }

    /// :meth:`nearest` of many items, by all cores: two matrices with one row per query, ids and how near they are. Where there are
    /// fewer than ``top``, a row ends with the id -1 and not a number.
    #[pyo3(signature = (items, top, *, threads=None))]
    fn nearest_all<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        top: Whole<usize>,
        threads: Option<Whole<usize>>,
    ) -> PyResult<Nearest<'py>> {
        let top = top.0;
        let all = self.ask_all(py, items, threads, |index, item| index.search(item, Some(top), None))?;
        let (mut ids, mut near) = (batch::room(all.len(), top)?, batch::room(all.len(), top)?);
        ids.resize(all.len() * top, -1i64);
        near.resize(all.len() * top, f64::NAN);
        for (row, found) in all.iter().enumerate() {
            for (column, found) in found.iter().enumerate() {
                ids[row * top + column] = i64::from(found.id);
                near[row * top + column] = self.metric.own_unit(found.distance);
            }
        }
        let shape = [all.len(), top];
        Ok((ids.into_pyarray(py).reshape(shape)?, near.into_pyarray(py).reshape(shape)?))
    }

    /// :meth:`within` of many items, by all cores: one list a query.
    #[pyo3(signature = (items, near, *, threads=None))]
    fn within_all(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        near: f64,
        threads: Option<Whole<usize>>,
    ) -> PyResult<Vec<Vec<Neighbour>>> {
        let distance = self.metric.distance(near).map_err(error::value)?;
        let all = self.ask_all(py, items, threads, |index, item| index.search(item, None, Some(distance)))?;
        Ok(all.iter().map(|found| found.iter().map(|found| self.neighbour(found)).collect()).collect())
    }

    /// Takes in all items of another index, in their order; each gets its old id plus the number that is returned.
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<u32> {
        let theirs = other.get().index.read(slf.py()).clone();
        slf.get().index.write(slf.py())?.merge(&theirs).map_err(|cause| failed(&cause))
    }

    /// A copy: another index with the same items.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let copy = self.index.read(py).clone();
        to_python(py, copy)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.index.read(py).len() as usize
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __contains__(&self, py: Python<'_>, id: u32) -> bool {
        self.index.read(py).contains(id)
    }

    /// What an item is called in the file that the program made of it; its id where it has no name.
    fn name(&self, py: Python<'_>, id: u32) -> String {
        self.index.read(py).name(id)
    }

    /// What near means: ``jaccard``, ``hamming``, ``cosine``, …
    #[getter]
    fn metric(&self) -> &'static str {
        self.metric.name().as_str()
    }

    /// Memory of tables, items and all.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> u64 {
        self.index.read(py).bytes()
    }

    /// The index as the bytes of its file.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.index.read(py).encode(&mut bytes)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Saves the index under a name, whole or not at all.
    ///
    /// Args:
    ///     path: Where: as for :func:`nearset.open`.
    ///     force: Whether to replace what is there.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, py: Python<'_>, path: Target, force: bool) -> PyResult<()> {
        match path {
            Target::Path(path) => {
                let index = self.index.read(py);
                save_index(&index, &path, &files::options(force)).map_err(|cause| error::output(&cause))
            }
            Target::Other(target) => files::save_elsewhere(target.bind(py), force, &self.encode(py)?),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        // Who unpickles trusts the bytes.
        reduce(slf.as_any(), (slf.get().encode(slf.py())?, true))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (name, index) = (slf.get_type().name()?, slf.get());
        let guard = index.index.read(slf.py());
        let shape = match guard.spec() {
            IndexSpec::Lsh(spec) => format!("{} tables of {} rows", spec.layout.bands, spec.layout.rows),
            IndexSpec::Hamming(spec) => format!("quick within {} bits", spec.radius),
            _ => guard.kind().to_owned(),
        };
        let (items, bytes) = (draw::count(guard.len()), draw::bytes(guard.bytes()));
        Ok(format!("<{name}: {}; {shape}; {items} items, {bytes}>", index.metric))
    }
}

#[pymethods]
impl LshIndex {
    #[new]
    fn new(plan: &IndexPlan) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(Index::new(plan.empty_index()?)?).add_subclass(Self))
    }

    /// The ids of items that share a bucket with this one, ascending, their distances not looked at.
    fn candidates(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let index = slf.as_super().get();
        let one = index.one(item, "nearest_all")?;
        index.index.read(slf.py()).candidates(present(0, one.get(0))?).map_err(|cause| failed(&cause))
    }

    /// The LSH index in a file.
    #[staticmethod]
    #[pyo3(signature = (path, *, unlimited_work=false))]
    fn open(py: Python<'_>, path: Source, unlimited_work: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(opened(py, path, unlimited_work)?, true)?)
    }

    /// The LSH index in the bytes of a file.
    #[staticmethod]
    #[pyo3(signature = (bytes, unlimited_work=false))]
    fn decode(py: Python<'_>, bytes: &[u8], unlimited_work: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(decoded(py, bytes, unlimited_work)?, true)?)
    }
}

#[pymethods]
impl HammingIndex {
    #[new]
    #[pyo3(signature = (bits, *, radius, seed=None))]
    fn new(bits: Whole<u32>, radius: Whole<u32>, seed: Option<SeedArgument>) -> PyResult<PyClassInitializer<Self>> {
        let spec = HammingSpec::new(bits.0, radius.0, options::seed(seed));
        let index = Library::new(spec).map_err(|cause| error::spec(&cause))?;
        Ok(PyClassInitializer::from(Index::new(index)?).add_subclass(Self))
    }

    /// The Hamming index in a file.
    #[staticmethod]
    #[pyo3(signature = (path, *, unlimited_work=false))]
    fn open(py: Python<'_>, path: Source, unlimited_work: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(opened(py, path, unlimited_work)?, false)?)
    }

    /// The Hamming index in the bytes of a file.
    #[staticmethod]
    #[pyo3(signature = (bytes, unlimited_work=false))]
    fn decode(py: Python<'_>, bytes: &[u8], unlimited_work: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(decoded(py, bytes, unlimited_work)?, false)?)
    }
}

/// The quickest index that finds near items as often as was asked. Made by :func:`plan_index`.
#[pyclass(frozen, module = "nearset")]
pub struct IndexPlan(pub Planned);

impl IndexPlan {
    fn empty_index(&self) -> PyResult<Library<'static>> {
        Library::new(self.0.spec.clone()).map_err(error::value)
    }
}

#[pymethods]
impl IndexPlan {
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let request = &self.0.request;
        let again = py.import("nearset._core")?.getattr("_plan_again")?;
        Ok((again, ("plan_index", request.metric.name().as_str(), arguments(py, request)?)))
    }

    /// An empty index.
    fn index(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, self.empty_index()?)
    }

    /// How likely an item at the near distance is found.
    #[getter]
    fn success(&self) -> f64 {
        self.0.success
    }

    /// How many items per query meets that it has nothing to do with, on average at capacity.
    #[getter]
    fn candidates(&self) -> f64 {
        self.0.candidates
    }

    /// Bytes of all tables for one item, the items themselves not counted.
    #[getter]
    fn table_bytes_per_item(&self) -> f64 {
        self.0.table_bytes_per_item
    }

    /// The hash family.
    #[getter]
    fn family(&self) -> &'static str {
        self.0.family
    }

    /// Functions in a table's key.
    #[getter]
    fn rows(&self) -> u32 {
        self.0.spec.layout.rows
    }

    /// Tables.
    #[getter]
    fn bands(&self) -> u32 {
        self.0.spec.layout.bands
    }

    /// The plan in words, one fact a line.
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (layout, found) = (self.0.spec.layout, draw::percent(self.0.success));
        format!(
            "<IndexPlan: {}; {} tables of {} rows; {found} found at near>",
            self.0.request.metric, layout.bands, layout.rows
        )
    }
}
