//! `dedup`: the program's decisions on texts that Python has.

use nearset::{BitString, Item};
use nearset_jobs::dedup::{Sketched, TextRun, TextSketcher};
use nearset_jobs::screen::Against;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::batch::{self, Fault};
use crate::error;
use crate::filter::{self, Filter};
use crate::items::Many;
use crate::options::{self, Whole};
use crate::request::Request;

/// The positions of the texts that are kept, and the filter that the run has filled.
type Kept<'py> = (Bound<'py, PyArray1<i64>>, Py<PyAny>);

/// Decides on texts, as the program does on records.
#[pyfunction]
#[pyo3(signature = (wanted, texts, capacity, against, skip_missing, threads, progress))]
#[allow(clippy::too_many_arguments)]
pub fn dedup<'py>(
    py: Python<'py>,
    wanted: &Request,
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
