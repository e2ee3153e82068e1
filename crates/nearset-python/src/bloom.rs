//! The classic Bloom filter: exact membership.

use nearset::{BloomFilter as Library, Check, Item};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::files::{self, Source, Target};
use crate::options::{self, SeedArgument, Whole, seed_to_python};
use crate::shared::{Shared, reduce};
use crate::{arrow, draw, error, items};

/// A set of keys that may say yes to a key it does not hold, and never says no to one that it does.
///
/// Args:
///     capacity: How many distinct keys are expected.
///     max_false_positive: The most of the other keys that may be found.
///     seed: From which its functions are drawn: a number, or 16 secret bytes.
///
/// Keys are ``bytes`` or ``str``, or their 64-bit hashes, many at once, as numpy ``uint64``.
///
/// It is an item, too: filters and indexes of bit strings tell whether some set is close to another, by their Bloom filters
/// of one capacity, error and seed.
///
/// >>> import nearset
/// >>> seen = nearset.BloomFilter(1000, 0.01)
/// >>> seen.insert("one"), seen.insert("one")
/// (True, False)
/// >>> "one" in seen, "two" in seen
/// (True, False)
/// >>> seen
/// <BloomFilter: about 1 key, 1.3 kB, a false positive in ...>
#[pyclass(frozen, module = "nearset")]
pub struct BloomFilter(Shared<Library<'static>>);

/// A key's bytes: those of a string are its UTF-8.
fn key_bytes<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(text) = key.cast::<PyString>() {
        return text.encode_utf8();
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let found = key.get_type().name()?;
    Err(PyTypeError::new_err(format!("{found} was given where str or bytes is needed")))
}

/// A key's bytes; `many` is the method that takes several.
fn one_key<'py>(key: &Bound<'py, PyAny>, many: &str) -> PyResult<Bound<'py, PyBytes>> {
    match key_bytes(key) {
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(items::naming(many, key, error)?),
    }
}

impl BloomFilter {
    fn from_library(filter: Library<'static>) -> Self {
        Self(Shared::new(filter))
    }

    /// What holds the filter.
    pub fn shared(&self) -> &Shared<Library<'static>> {
        &self.0
    }

    /// Hashes of many keys: an array of them, or keys that are hashed here.
    fn hashes(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        if let Ok(array) = keys.cast::<PyArray1<u64>>() {
            return Ok(array.readonly().as_array().to_vec());
        }
        if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err("one key was given where many are needed: put it into a list"));
        }
        let filter = self.0.read(py);
        let hash = |(position, key): (usize, PyResult<Bound<'_, PyAny>>)| {
            let bytes = key_bytes(&key?).map_err(|cause| error::at_item(py, position, cause))?;
            Ok(filter.hash(bytes.as_bytes()))
        };
        arrow::objects(keys)?.enumerate().map(hash).collect()
    }

    fn facts(&self, py: Python<'_>) -> Vec<(&'static str, String)> {
        let filter = self.0.read(py);
        let keys = filter.estimated_len();
        let keys = if keys.is_finite() { draw::count(keys.round() as u64) } else { "full".to_owned() };
        let plural = if keys == "1" { "key" } else { "keys" };
        vec![
            ("keys", format!("about {keys} {plural}")),
            ("memory", draw::bytes(filter.num_bits() / 8)),
            ("errors", format!("a false positive in {} of look-ups", draw::percent(filter.false_positive_rate()))),
        ]
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, max_false_positive, *, seed=None))]
    fn new(capacity: Whole<u64>, max_false_positive: f64, seed: Option<SeedArgument>) -> PyResult<Self> {
        let filter = Library::new(capacity.0, max_false_positive, options::seed(seed));
        filter.map(Self::from_library).map_err(|cause| error::spec(&cause))
    }

    /// Inserts a key. True when it was certainly not in before.
    fn insert(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = one_key(key, "insert_all")?;
        Ok(self.0.write(py)?.insert(key.as_bytes()))
    }

    /// Whether a key was inserted, or looks as if it was; the same as ``key in filter``.
    fn contains(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = one_key(key, "contains_all")?;
        Ok(self.0.read(py).contains(key.as_bytes()))
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(py, key)
    }

    /// Inserts many keys in order and says for each whether it was certainly not in before.
    ///
    /// Args:
    ///     keys: An iterable or column of ``str`` or ``bytes``, or a numpy array of 64-bit hashes (``uint64``).
    fn insert_all<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.0.check_home()?;
        let hashes = self.hashes(py, keys)?;
        let new = py.detach(|| {
            let mut filter = self.0.write_detached();
            filter.insert_all(&hashes)
        });
        Ok(new.into_pyarray(py))
    }

    /// Whether each of many keys was inserted, or looks as if it was.
    fn contains_all<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let hashes = self.hashes(py, keys)?;
        let found = py.detach(|| {
            let filter = self.0.read_detached();
            filter.contains_all(&hashes)
        });
        Ok(found.into_pyarray(py))
    }

    /// Takes in all keys of another filter that was built alike; the same as ``filter |= other``.
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        if slf.is(other) {
            return Ok(());
        }
        let theirs = other.get().0.read(slf.py()).clone();
        slf.get().0.write(slf.py())?.merge(&theirs).map_err(error::value)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        Self::merge(slf, other)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let mut both = slf.get().0.read(slf.py()).clone();
        both.merge(&other.get().0.read(slf.py())).map_err(error::value)?;
        Ok(Self::from_library(both))
    }

    /// A copy: another filter with the same keys.
    fn copy(&self, py: Python<'_>) -> Self {
        Self::from_library(self.0.read(py).clone())
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (one, other) = (&self.0, &other.get().0);
        Ok(std::ptr::eq(one, other)
            || py.detach(|| {
                let [one, other] = one.read_both_detached(other);
                *one == *other
            }))
    }

    /// About how many distinct keys are in, by the share of set bits: no count is kept.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.0.read(py).estimated_len();
        if !keys.is_finite() {
            return Err(PyOverflowError::new_err("every bit is set: the filter holds more keys than can be told"));
        }
        Ok(keys.round() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// The probability, at this moment, that a key which was not inserted is found.
    #[getter]
    fn false_positive_rate(&self, py: Python<'_>) -> f64 {
        self.0.read(py).false_positive_rate()
    }

    /// The part of the bits that is set.
    #[getter]
    fn fill(&self, py: Python<'_>) -> f64 {
        self.0.read(py).fill()
    }

    /// Memory of the filter.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> u64 {
        self.0.read(py).num_bits() / 8
    }

    /// The filter's bits: an item by Hamming distance, whose digits (``bits.hex()``) the program and the server read too.
    #[getter]
    fn bits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let filter = self.0.read(py);
        let Item::Bits(bits) = Item::from(&*filter) else { unreachable!("a Bloom filter is a string of bits") };
        PyBytes::new_with(py, 8 * bits.words().len(), |out| {
            out.as_chunks_mut().0.iter_mut().zip(bits.words()).for_each(|(out, word)| *out = word.to_le_bytes());
            Ok(())
        })
    }

    /// From which its functions are drawn.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(py, self.0.read(py).seed())
    }

    /// The filter as the bytes of its file.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.0.read(py).encode(&mut bytes)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The filter in the bytes of a file.
    #[staticmethod]
    pub fn decode(bytes: &[u8]) -> PyResult<Self> {
        let filter = Library::decode(bytes, Check::Everything).map_err(|cause| error::decode(&cause))?;
        Ok(Self::from_library(filter.into_owned()))
    }

    /// Saves the filter under a name, whole or not at all.
    ///
    /// Args:
    ///     path: Where: as for :func:`nearset.open`.
    ///     force: Whether to replace what is there.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, py: Python<'_>, path: Target, force: bool) -> PyResult<()> {
        let bytes = self.encode(py)?;
        match path {
            Target::Path(path) => files::save(py, &path, force, bytes.as_bytes()),
            Target::Other(target) => files::save_elsewhere(target.bind(py), force, &bytes),
        }
    }

    /// The filter in a file, named as for :func:`nearset.open`.
    #[staticmethod]
    pub fn open(py: Python<'_>, path: Source) -> PyResult<Self> {
        match path {
            Source::Path(path) => {
                Self::decode(&std::fs::read(&path).map_err(|cause| error::unreadable(&path, &cause))?)
            }
            Source::Bytes(bytes) => Self::decode(bytes.as_bytes(py)),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        reduce(slf.as_any(), (slf.get().encode(slf.py())?,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let facts: Vec<String> = self.facts(py).into_iter().map(|(_, fact)| fact).collect();
        format!("<BloomFilter: {}>", facts.join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        draw::html("BloomFilter", &self.facts(py), "")
    }
}
