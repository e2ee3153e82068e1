//! Near pairs of texts that Python has.

use nearset::BitString;
use nearset_jobs::join::TextComparison;
use nearset_jobs::text_pairs::text_pairs;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::batch;
use crate::dedup::each_text;
use crate::error;
use crate::items::Many;
use crate::options::{self, Whole};
use crate::request::Request;

/// Positions of the earlier and of the later text of each pair, and how similar they are.
type Pairs<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// All near pairs, in the order of the later text.
#[pyfunction]
#[pyo3(signature = (wanted, texts, skip_missing, threads, progress))]
pub fn _pairs<'py>(
    py: Python<'py>,
    wanted: &Request,
    texts: &Bound<'py, PyAny>,
    skip_missing: bool,
    threads: Option<Whole<usize>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Pairs<'py>> {
    let metric = wanted.request.metric;
    let many = Many::new(metric, texts)?;
    let spec = wanted.request.plan_join().map_err(|cause| error::plan(&wanted.request, &cause))?;
    let cutter = TextComparison::new(&wanted.request).map_err(|cause| error::plan(&wanted.request, &cause))?.cutter();
    let (mut positions, mut sets, mut position) = (Vec::new(), Vec::new(), 0i64);
    batch::run(
        py,
        (metric, &many),
        options::threads(threads)?,
        progress.as_ref(),
        BitString::default,
        |room, piece| {
            let mut cut = Vec::with_capacity(piece.len());
            let outcome = each_text(&piece, room, skip_missing, |text| {
                cut.push(text.map(|text| cutter.cut(text)));
                Ok(())
            });
            outcome.map(|()| cut)
        },
        |cut| {
            for set in cut? {
                if let Some(set) = set {
                    positions.push(position);
                    sets.push(set);
                }
                position += 1;
            }
            Ok(())
        },
    )?;
    let (mut a, mut b, mut similarity) = (Vec::new(), Vec::new(), Vec::new());
    py.detach(|| {
        text_pairs(&spec, &sets, |earlier, later, near| {
            a.push(positions[earlier]);
            b.push(positions[later]);
            similarity.push(near);
        });
    });
    Ok((a.into_pyarray(py), b.into_pyarray(py), similarity.into_pyarray(py)))
}
