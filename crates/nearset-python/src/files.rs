//! Where filters and indexes are read from and written to: files by their names, files that Python has opened, and what fsspec knows.
//!
//! Invariant: a name without a scheme is a file of this machine, which is read or written by the library, whole or not at all. All else
//! is read and written by Python (`_places`).

use std::path::{Path, PathBuf};

use nearset_records::{OutputFile, OutputOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::error;

/// How a file is written: over one that is there only if that is wanted.
pub fn options(force: bool) -> OutputOptions {
    let mut options = OutputOptions::default();
    options.force = force;
    options
}

/// What is opened.
pub enum Source {
    /// A file of this machine.
    Path(PathBuf),
    /// What was read from elsewhere.
    Bytes(Py<PyBytes>),
}

/// What is said where something else than a file of this machine is to be mapped.
pub fn not_mappable() -> PyErr {
    PyValueError::new_err("mapped=True needs the path of a file of this machine: what comes from elsewhere is copied")
}

/// Where something is saved.
pub enum Target {
    /// A file of this machine.
    Path(PathBuf),
    /// Elsewhere.
    Other(Py<PyAny>),
}

/// The path that an object is, unless Python is to read or write it.
fn path_of(object: Borrowed<'_, '_, PyAny>, method: &str) -> PyResult<Option<PathBuf>> {
    let is_url = match object.cast::<PyString>() {
        Ok(name) => name.to_cow()?.contains("://"),
        Err(_) => false,
    };
    // Some paths can read and write, too.
    if is_url || object.hasattr("fs")? || (object.hasattr(method)? && !object.hasattr("__fspath__")?) {
        return Ok(None);
    }
    let found = object.get_type().name()?;
    let path = object.extract::<PathBuf>();
    path.map(Some)
        .map_err(|_| PyTypeError::new_err(format!("{found} was given where a path, a URL or a file is needed")))
}

impl<'py> FromPyObject<'_, 'py> for Source {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(path) = path_of(object, "read")? {
            return Ok(Self::Path(path));
        }
        let read = object.py().import("nearset._places")?.getattr("read")?.call1((object,))?;
        Ok(Self::Bytes(read.cast_into::<PyBytes>()?.unbind()))
    }
}

impl<'py> FromPyObject<'_, 'py> for Target {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(match path_of(object, "write")? {
            Some(path) => Self::Path(path),
            None => Self::Other(object.to_owned().unbind()),
        })
    }
}

/// Writes bytes under a name.
pub fn save(py: Python<'_>, path: &Path, force: bool, bytes: &[u8]) -> PyResult<()> {
    let write = || {
        let mut out = OutputFile::create(path, &options(force))?;
        out.write(bytes)?;
        out.finish()
    };
    py.detach(write).map_err(|cause| error::output(&cause))
}

/// Writes bytes elsewhere.
pub fn save_elsewhere(target: &Bound<'_, PyAny>, force: bool, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
    let py = target.py();
    let arguments = PyDict::new(py);
    arguments.set_item("force", force)?;
    py.import("nearset._places")?.getattr("write")?.call((target, bytes), Some(&arguments)).map(drop)
}
