//! MinHash signatures.

use nearset::family::{Hashed, MinHash as Library, Signature as LibrarySignature, Sketcher};
use nearset::{BitString, Metric, Seed, Shingling};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::batch::{self, Fault, present};
use crate::error;
use crate::items::{self, Many};
use crate::options::{self, SeedArgument, Whole, seed_to_python};

/// Makes signatures of texts, or of sets of whole numbers, by which their Jaccard similarity can be told.
///
/// Args:
///     slots: Values in a signature: the error of an estimate is about ``0.5 / slots ** 0.5``.
///     shingling: How texts are cut: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
///     seed: From which the functions are drawn. Only signatures of one seed can be compared.
///
/// >>> import nearset
/// >>> minhash = nearset.MinHash(256, shingling="words:2")
/// >>> a = minhash.signature("one two three four five")
/// >>> b = minhash.signature("two three four five six")
/// >>> estimate = a.jaccard(b)
/// >>> estimate.low < 0.6 < estimate.high
/// True
/// >>> (a | b) == minhash.signature("one two three four five six")
/// True
#[pyclass(frozen, module = "nearset")]
pub struct MinHash {
    sketcher: Sketcher,
    shingling: Shingling,
    seed: Seed,
    slots: u32,
}

/// What a MinHash is made of.
type Arguments = (u32, Shingling, Seed);

impl MinHash {
    fn arguments(&self) -> Arguments {
        (self.slots, self.shingling, self.seed)
    }

    fn metric(&self) -> Metric {
        Metric::Jaccard { shingling: self.shingling }
    }
}

#[pymethods]
impl MinHash {
    #[new]
    #[pyo3(signature = (slots, *, shingling=None, seed=None))]
    fn new(slots: Whole<u32>, shingling: Option<&str>, seed: Option<SeedArgument>) -> PyResult<Self> {
        let (shingling, seed) = (options::shingling(shingling)?, options::seed(seed));
        let sketcher = Library { shingling }.sketcher(seed, slots.0).map_err(error::value)?;
        Ok(Self { sketcher, shingling, seed, slots: slots.0 })
    }

    /// Values in a signature.
    #[getter]
    fn slots(&self) -> u32 {
        self.slots
    }

    /// How texts are cut.
    #[getter]
    fn shingling(&self) -> String {
        self.shingling.to_string()
    }

    /// From which the functions are drawn.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(py, self.seed)
    }

    /// The signature of a text, or of a set of whole numbers below 2^64.
    fn signature(&self, item: &Bound<'_, PyAny>) -> PyResult<Signature> {
        let one = items::one(self.metric(), item, "signatures")?;
        let item = present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None has no signature"))?;
        let signature = self.sketcher.signature(item).map_err(|cause| error::item(&cause))?;
        Ok(Signature { signature, of: self.arguments() })
    }

    /// The signatures' values of many items, one per row, by all cores.
    ///
    /// Args:
    ///     items: As for :meth:`Filter.insert_all`.
    ///     threads: Threads; one per core unless given.
    #[pyo3(signature = (items, *, threads=None))]
    fn signatures<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        threads: Option<Whole<usize>>,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let many = Many::new(self.metric(), items)?;
        let mut all: Vec<u64> = batch::room(many.len().unwrap_or(0), self.slots as usize)?;
        batch::run(
            py,
            (self.metric(), &many),
            options::threads(threads)?,
            None,
            || {
                (
                    Hashed::default(),
                    self.sketcher.signature(nearset::Item::Set(&[])).expect("the empty set has a signature"),
                    BitString::default(),
                )
            },
            |(hashed, signature, room), piece| {
                let mut slots = Vec::with_capacity(piece.len() * self.slots as usize);
                piece.try_each(room, |i, item| {
                    let position = piece.position(i);
                    let sketched = self.sketcher.sketch_into(present(position, item)?, hashed, signature);
                    sketched.map_err(|cause| Fault::Item { position, cause })?;
                    slots.extend_from_slice(signature.slots());
                    Ok::<(), Fault>(())
                })?;
                Ok::<Vec<u64>, Fault>(slots)
            },
            |slots| {
                all.extend(slots?);
                Ok(())
            },
        )?;
        let rows = all.len() / self.slots as usize;
        all.into_pyarray(py).reshape([rows, self.slots as usize])
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let make = slf.py().import("nearset._core")?.getattr("_minhash")?;
        (make, arguments(slf.py(), slf.get().arguments())?).into_pyobject(slf.py())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.arguments() == other.get().arguments())
    }

    fn __repr__(&self) -> String {
        format!("MinHash({}, shingling='{}', seed={})", self.slots, self.shingling, self.seed)
    }
}

fn arguments(py: Python<'_>, (slots, shingling, seed): Arguments) -> PyResult<Bound<'_, PyTuple>> {
    (slots, shingling.to_string(), seed_to_python(py, seed)?).into_pyobject(py)
}

/// A MinHash, all arguments in order, for pickles.
#[pyfunction]
pub fn _minhash(slots: u32, shingling: &str, seed: SeedArgument) -> PyResult<MinHash> {
    MinHash::new(Whole(slots), Some(shingling), Some(seed))
}

/// A signature from its values, for pickles.
#[pyfunction]
pub fn _signature(slots: u32, shingling: &str, seed: SeedArgument, values: Vec<u64>) -> PyResult<Signature> {
    let minhash = _minhash(slots, shingling, seed)?;
    let signature = minhash.sketcher.restore(&values).map_err(error::value)?;
    Ok(Signature { signature, of: minhash.arguments() })
}

/// An estimated similarity with its 95 % confidence interval.
#[pyclass(frozen, get_all, eq, module = "nearset")]
#[derive(PartialEq)]
pub struct Estimate {
    /// The part of values that agree.
    similarity: f64,
    /// The interval's lower bound.
    low: f64,
    /// The interval's upper bound.
    high: f64,
}

#[pymethods]
impl Estimate {
    #[new]
    fn new(similarity: f64, low: f64, high: f64) -> Self {
        Self { similarity, low, high }
    }

    fn __getnewargs__(&self) -> (f64, f64, f64) {
        (self.similarity, self.low, self.high)
    }

    fn __float__(&self) -> f64 {
        self.similarity
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (self.similarity, self.low, self.high).into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("Estimate(similarity={}, low={:.4}, high={:.4})", self.similarity, self.low, self.high)
    }
}

/// What a set looked like, in a few hundred values. Made by :class:`MinHash`.
#[pyclass(frozen, module = "nearset")]
pub struct Signature {
    signature: LibrarySignature,
    of: Arguments,
}

#[pymethods]
impl Signature {
    /// The values; all 2^64 - 1 for an empty set.
    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, self.signature.slots())
    }

    /// Estimates the Jaccard similarity of the two sets. Empty sets are similar to nothing.
    fn jaccard(&self, other: &Self) -> PyResult<Estimate> {
        let (similarity, within) = self.signature.jaccard(&other.signature).map_err(error::value)?;
        let (similarity, low, high) = (similarity.value(), within.start().value(), within.end().value());
        Ok(Estimate { similarity, low, high })
    }

    /// The signature of the union of both sets.
    fn __or__(&self, other: &Self) -> PyResult<Self> {
        let mut signature = self.signature.clone();
        signature.merge(&other.signature).map_err(error::value)?;
        Ok(Self { signature, of: self.of })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.signature == other.get().signature)
    }

    fn __len__(&self) -> usize {
        self.signature.slots().len()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, signature) = (slf.py(), slf.get());
        let make = py.import("nearset._core")?.getattr("_signature")?;
        let (slots, shingling, seed) = signature.of;
        let values = signature.signature.slots().to_vec();
        (make, (slots, shingling.to_string(), seed_to_python(py, seed)?, values)).into_pyobject(py)
    }

    /// Whether the set was empty.
    fn is_empty(&self) -> bool {
        self.signature.slots().contains(&u64::MAX)
    }

    fn __repr__(&self) -> String {
        let (slots, shingling, seed) = self.of;
        let empty = if self.signature.slots().contains(&u64::MAX) { " of an empty set" } else { "" };
        format!("<Signature{empty}: {slots} slots, shingles of {shingling}, seed {seed}>")
    }
}
