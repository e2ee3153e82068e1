//! Files that appear under their names whole or not at all.

use std::path::Path;

use nearset_records::{OutputFile, OutputOptions};
use pyo3::prelude::*;

use crate::error;

/// How a file is written: over one that is there only if that is wanted.
pub fn options(force: bool) -> OutputOptions {
    let mut options = OutputOptions::default();
    options.force = force;
    options
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
