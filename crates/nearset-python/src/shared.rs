//! What threads of Python share, and processes do not.
//!
//! Invariant: nobody waits for a lock with the interpreter held, nor with another one held but in one order, so no two threads wait for each
//! other. A panic leaves what is locked as it was: bits that were set stay set.
//! Invariant: a value is changed only in the process that it belongs to, which is the one that made, opened, unpickled or copied it. A process
//! that was forked from it has a copy without having asked for one, and so has a worker of `multiprocess`, whose pickler dill packs whatever a
//! function refers to: what they put in would silently be missing everywhere else, so that is an error. Looking into a copy is right in every
//! process.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use pyo3::types::PyTuple;

use crate::bloom::BloomFilter;
use crate::filter::Filter;
use crate::index::Index;

/// A value that many threads look into, and one at a time changes.
pub struct Shared<T> {
    value: RwLock<T>,
    /// The process that it belongs to.
    home: AtomicU32,
}

impl<T> Shared<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self { value: RwLock::new(value), home: AtomicU32::new(process::id()) }
    }

    /// To look into it; waiting lets go of the interpreter.
    pub fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, T> {
        self.value.read_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// To change it; waiting lets go of the interpreter.
    ///
    /// # Errors
    /// As [`Shared::check_home`].
    pub fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, T>> {
        self.check_home()?;
        Ok(self.value.write_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// To look into it, for threads that do not hold the interpreter.
    pub fn read_detached(&self) -> RwLockReadGuard<'_, T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To look into two, for threads that do not hold the interpreter. Always in the same order: two threads that held one each would wait for
    /// each other where others wait to change them.
    pub fn read_both_detached<'a>(&'a self, other: &'a Self) -> [RwLockReadGuard<'a, T>; 2] {
        if ptr::from_ref(self) < ptr::from_ref(other) {
            let one = self.read_detached();
            [one, other.read_detached()]
        } else {
            let other = other.read_detached();
            [self.read_detached(), other]
        }
    }

    /// To change it, for threads that do not hold the interpreter and have checked its home.
    pub fn write_detached(&self) -> RwLockWriteGuard<'_, T> {
        self.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that this process may change it.
    ///
    /// # Errors
    /// If it belongs to another process, of which this one has a copy.
    pub fn check_home(&self) -> PyResult<()> {
        let (home, here) = (self.home.load(Ordering::Relaxed), process::id());
        if home == here {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "it belongs to process {home} and this is process {here}, which has a copy: what is put into that would be missing in every other \
             process. Do it in one process (with datasets, leave num_proc out), or fill a part in each process, which copy() makes of this \
             copy, and merge the parts"
        )))
    }

    fn belong_to(&self, home: u32) {
        self.home.store(home, Ordering::Relaxed);
    }
}

/// How pickle makes an object again, by what its class decodes it from: the bytes of its file, and whatever trusts them.
pub fn reduce<'py>(
    object: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = object.py();
    let unpickle = py.import("nearset._core")?.getattr("_unpickle")?;
    let decode = object.get_type().getattr("decode")?;
    (unpickle, (decode, arguments.into_pyobject(py)?)).into_pyobject(py)
}

/// A filter or index out of a pickle. In a worker of `multiprocess` it is its parent's; elsewhere somebody has pickled it by its name, and it
/// belongs to this process.
///
/// By the process and not by the pickle: one that named its maker would differ from run to run, and with it what datasets takes for the
/// fingerprint of a function.
#[pyfunction]
pub fn _unpickle<'py>(decode: &Bound<'py, PyAny>, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let object = decode.call1(arguments)?;
    if let Some(parent) = parent_of_worker(decode.py())? {
        if let Ok(filter) = object.cast::<Filter>() {
            filter.get().shared().belong_to(parent);
        } else if let Ok(filter) = object.cast::<BloomFilter>() {
            filter.get().shared().belong_to(parent);
        } else if let Ok(index) = object.cast::<Index>() {
            index.get().shared().belong_to(parent);
        }
    }
    Ok(object)
}

/// The process that started this one by `multiprocess`.
fn parent_of_worker(py: Python<'_>) -> PyResult<Option<u32>> {
    let modules = py.import("sys")?.getattr("modules")?;
    // What has not been imported has started nothing.
    let Ok(module) = modules.get_item("multiprocess.process") else { return Ok(None) };
    let parent = module.call_method0("parent_process")?;
    if parent.is_none() { Ok(None) } else { parent.getattr("pid")?.extract().map(Some) }
}
