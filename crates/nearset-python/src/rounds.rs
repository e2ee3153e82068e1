//! A compared dedup in rounds, for what brings texts together by their keys: `nearset.spark` and `nearset.datatrove`.

use nearset::index::CommonShingles;
use nearset::{BitString, Metric};
use nearset_jobs::rounds::{Bucket, Buckets, Finding, Meeting, Role, RoundJoin};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch;
use crate::dedup::each_text;
use crate::error;
use crate::items::Many;
use crate::options::Whole;
use crate::request::Request;

/// What cuts texts and chooses their keys.
#[pyclass(frozen, module = "nearset._core")]
pub struct _RoundJoin {
    join: RoundJoin,
    metric: Metric,
}

/// Numbers of all texts: keys and where each text's end, links and where they end, sizes, common shingles, unseen ones, hashes of sets.
type Meetings<'py> = (
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>),
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>),
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>),
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>),
);

#[pymethods]
impl _RoundJoin {
    #[classattr]
    const SAMPLE: usize = RoundJoin::SAMPLE;

    #[new]
    fn new(wanted: &Request, model: &[u8]) -> PyResult<Self> {
        let (hashes, rest) = model.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(PyValueError::new_err("a model of common shingles is cut short"));
        }
        let model = hashes.iter().map(|&hash| u64::from_le_bytes(hash)).collect::<CommonShingles>();
        let join = RoundJoin::new(&wanted.request, model).map_err(|cause| error::plan(&wanted.request, &cause))?;
        Ok(Self { join, metric: wanted.request.metric })
    }

    /// The common shingles of a sample of ``records`` texts.
    #[staticmethod]
    fn learn<'py>(
        py: Python<'py>,
        wanted: &Request,
        sample: Vec<String>,
        records: Whole<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let texts = sample.iter().map(String::as_str);
        let model = RoundJoin::learn(&wanted.request, texts, records.0)
            .map_err(|cause| error::plan(&wanted.request, &cause))?;
        let bytes: Vec<u8> = model.as_slice().iter().flat_map(|hash| hash.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Under what texts meet others.
    fn meetings<'py>(&self, py: Python<'py>, texts: &Bound<'py, PyAny>) -> PyResult<Meetings<'py>> {
        let (mut keys, mut key_ends) = (Vec::new(), vec![0]);
        let (mut links, mut link_ends) = (Vec::new(), vec![0]);
        let (mut sizes, mut commons, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
        let (mut high, mut low) = (Vec::new(), Vec::new());
        let signed = |hash: &u64| *hash as i64;
        each_in_order(py, self.metric, texts, |text, meeting: &mut Meeting| {
            self.join.meeting(text, meeting);
            keys.extend(meeting.keys.iter().map(signed));
            key_ends.push(keys.len() as i32);
            links.extend(meeting.links.iter().map(signed));
            link_ends.push(links.len() as i32);
            sizes.push(i32::try_from(meeting.size).unwrap_or(i32::MAX));
            commons.push(i32::try_from(meeting.common).unwrap_or(i32::MAX));
            unseen.push(meeting.unseen);
            high.push((meeting.hash >> 64) as i64);
            low.push(meeting.hash as i64);
        })?;
        Ok((
            (keys.into_pyarray(py), key_ends.into_pyarray(py)),
            (links.into_pyarray(py), link_ends.into_pyarray(py)),
            (sizes.into_pyarray(py), commons.into_pyarray(py), unseen.into_pyarray(py)),
            (high.into_pyarray(py), low.into_pyarray(py)),
        ))
    }
}

/// Goes through buckets of texts, one after the other.
#[pyclass(module = "nearset._core")]
pub struct _Buckets {
    buckets: Buckets,
    metric: Metric,
}

/// Near pairs: the later text, the earlier one and how similar they are. -1 and NaN stand for a text that waits, -2 and NaN for one that was
/// not compared with all of its bucket.
type Found<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl _Buckets {
    #[classattr]
    const LEADERS: usize = Buckets::LEADERS;

    /// Buckets in which texts are compared with at most so many leaders.
    #[new]
    #[pyo3(signature = (join, leaders=Buckets::LEADERS))]
    fn new(join: &_RoundJoin, leaders: usize) -> Self {
        Self { buckets: Buckets::new(join.join.clone()).with_leaders(leaders), metric: join.metric }
    }

    /// Takes the next texts, each in a bucket: its key and whether that is a common shingle, its number, its role, its text.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        shared: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, bool>),
        records: PyReadonlyArray1<'py, i64>,
        roles: PyReadonlyArray1<'py, i8>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Found<'py>> {
        let (keys, are_links, records) = (shared.0.as_slice()?, shared.1.as_slice()?, records.as_slice()?);
        let roles: Vec<Role> = roles.as_slice()?.iter().map(|&role| role_of(role)).collect::<PyResult<_>>()?;
        let (mut found, mut row) = (Vec::new(), 0);
        let Self { buckets, metric } = self;
        each_in_order(py, *metric, texts, |text, _: &mut ()| {
            let bucket = if are_links[row] { Bucket::Link(keys[row]) } else { Bucket::Key(keys[row]) };
            buckets.push(bucket, records[row], roles[row], text, &mut found);
            row += 1;
        })?;
        let parts = |finding: &Finding| match *finding {
            Finding::Near { record, of, similarity } => (record, of, similarity),
            Finding::Waits { record } => (record, -1, f64::NAN),
            Finding::CutShort { record } => (record, -2, f64::NAN),
        };
        let column = |of: fn((i64, i64, f64)) -> i64| found.iter().map(|one| of(parts(one))).collect::<Vec<_>>();
        let similarity: Vec<f64> = found.iter().map(|one| parts(one).2).collect();
        Ok((column(|one| one.0).into_pyarray(py), column(|one| one.1).into_pyarray(py), similarity.into_pyarray(py)))
    }
}

fn role_of(number: i8) -> PyResult<Role> {
    Ok(match number {
        0 => Role::Kept,
        1 => Role::Undecided,
        2 => Role::Asking,
        3 => Role::Paired,
        _ => return Err(PyValueError::new_err(format!("{number} is no role"))),
    })
}

/// Calls `each` for texts in their order, on one thread.
fn each_in_order<R: Default + Send>(
    py: Python<'_>,
    metric: Metric,
    texts: &Bound<'_, PyAny>,
    mut each: impl FnMut(&str, &mut R) + Send,
) -> PyResult<()> {
    let many = Many::new(metric, texts)?;
    let (mut room, mut own) = (BitString::default(), R::default());
    batch::each(py, (metric, &many), |piece| {
        each_text(&piece, &mut room, false, |text| {
            text.into_iter().for_each(|text| each(text, &mut own));
            Ok(())
        })
    })
}
