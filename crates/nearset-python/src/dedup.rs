//! `dedup`: the program's decisions on texts that Python has.

use nearset::family::Hashed;
use nearset::{BitString, Filter as Library, Item, ItemError, Spec};
use nearset_jobs::dedup::{Sketched, TextRun, TextSketcher};
use nearset_jobs::join::TextComparison;
use nearset_jobs::screen::Against;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::batch::{self, Fault, Piece};
use crate::error;
use crate::filter::{self, Filter};
use crate::items::Many;
use crate::options::{self, Whole};
use crate::request::Request;

/// The positions of texts that are kept; and of those that are not, what each is near and how near. -1 and NaN stand for a filter.
type Compared<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// Decides on texts by comparing, as the program does on records.
#[pyfunction]
#[pyo3(signature = (wanted, texts, against, chain, skip_missing, threads, progress))]
#[allow(clippy::too_many_arguments)]
pub fn compare<'py>(
    py: Python<'py>,
    wanted: &Request,
    texts: &Bound<'py, PyAny>,
    against: Vec<PyRef<'py, Filter>>,
    chain: bool,
    skip_missing: bool,
    threads: Option<Whole<usize>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Compared<'py>> {
    let metric = wanted.request.metric;
    let many = Many::new(metric, texts)?;
    let run = TextComparison::new(&wanted.request).map_err(|cause| error::plan(&wanted.request, &cause))?;
    let mut run = run.following_chains(chain);
    let cutter = run.cutter();
    let held: Vec<_> = against.iter().map(|filter| filter.read(py)).collect();
    let screens = screens(held.iter().map(|filter| filter.get()), None)?;
    // The positions of texts that are compared, and of those that a filter has seen.
    let (mut compared, mut screened, mut position) = (Vec::new(), Vec::new(), 0i64);
    batch::run(
        py,
        (metric, &many),
        options::threads(threads)?,
        progress.as_ref(),
        || (Hashed::default(), BitString::default()),
        |(hashed, room), piece| {
            // Nothing for a text that is missing, and no set for one that a filter has seen.
            let mut sets = Vec::with_capacity(piece.len());
            let outcome = each_text(&piece, room, skip_missing, |text| {
                sets.push(text.map(|text| {
                    let is_seen = screens.iter().any(|screen| screen.has_seen(text, hashed));
                    (!is_seen).then(|| cutter.cut(text))
                }));
                Ok(())
            });
            outcome.map(|()| sets)
        },
        |sets| {
            for set in sets? {
                match set {
                    Some(Some(set)) => {
                        compared.push(position);
                        run.push([set]);
                    }
                    Some(None) => screened.push(position),
                    None => {}
                }
                position += 1;
            }
            Ok(())
        },
    )?;
    drop(screens);
    drop(held);
    let verdicts = py.detach(|| run.finish());
    let mut kept = Vec::new();
    let mut removed: Vec<(i64, i64, f64)> = screened.into_iter().map(|position| (position, -1, f64::NAN)).collect();
    for (&position, verdict) in compared.iter().zip(verdicts) {
        match verdict {
            None => kept.push(position),
            Some(near) => removed.push((position, compared[near.of as usize], near.similarity)),
        }
    }
    removed.sort_by_key(|&(position, ..)| position);
    let column = |which: fn(&(i64, i64, f64)) -> i64| removed.iter().map(which).collect::<Vec<_>>().into_pyarray(py);
    let similarity = removed.iter().map(|&(.., similarity)| similarity).collect::<Vec<_>>().into_pyarray(py);
    Ok((kept.into_pyarray(py), column(|one| one.0), column(|one| one.1), similarity))
}

/// Returns filters to screen texts by, beside the run's own of the spec `own`.
fn screens<'f>(filters: impl Iterator<Item = &'f Library<'f>>, own: Option<&Spec>) -> PyResult<Vec<Against<'f>>> {
    let screen = |filter| Against::new(filter, own).map_err(|cause| PyTypeError::new_err(cause.to_string()));
    filters.map(screen).collect()
}

/// Calls `each` for every text of a piece, with nothing for one that is missing where that is allowed.
pub(crate) fn each_text(
    piece: &Piece<'_>,
    room: &mut BitString,
    skip_missing: bool,
    mut each: impl FnMut(Option<&str>) -> Result<(), ItemError>,
) -> Result<(), Fault> {
    piece.try_each(room, |i, item| {
        let position = piece.position(i);
        let text = match item {
            None if skip_missing => None,
            Some(Item::Text(text)) => Some(text),
            Some(_) => return Err(Fault::Other(PyTypeError::new_err(format!("item {position} is no text")))),
            None => {
                return Err(Fault::Other(PyValueError::new_err(format!(
                    "item {position} is missing (None or null): missing='skip' leaves such texts out"
                ))));
            }
        };
        each(text).map_err(|cause| Fault::Item { position, cause })
    })
}

/// The positions of the texts that are kept, and the filter that the run has filled.
type Kept<'py> = (Bound<'py, PyArray1<i64>>, Py<PyAny>);

/// Decides on texts by a filter, as the program does where records are not to be compared.
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
    let mut run =
        TextRun::new(wanted.request.clone(), capacity).map_err(|cause| error::plan(&wanted.request, &cause))?;
    let hasher = run.hasher();
    let held: Vec<_> = against.iter().map(|filter| filter.read(py)).collect();
    let spec = run.filter().spec();
    let own = spec.near().expect("a filter of texts has bands");
    let screens = screens(held.iter().map(|filter| filter.get()), Some(own))?;
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
            let mut next = 0;
            let outcome = each_text(&piece, room, skip_missing, |text| {
                next += 1;
                match text {
                    Some(text) => sketched.push(sketcher, text),
                    None => {
                        missing.push(next - 1);
                        Ok(())
                    }
                }
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
