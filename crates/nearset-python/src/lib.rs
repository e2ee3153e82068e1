//! `nearset._core`: nearset's engine as Python sees it.
//!
//! Claim: the same items, arguments and seed give what the library and the program give.
//! Invariant: arguments and answers are translated here and nothing else: no hashing, no default that decides an answer, no
//! planning. (The permutations of `sketches` are datasketch's, kept for who comes from there.)
//! Not here: what is more easily said in Python, in `python/nearset`.

mod arrow;
mod batch;
mod bloom;
mod decontaminate;
mod dedup;
mod draw;
mod error;
mod files;
mod filter;
mod index;
mod items;
mod minhash;
mod options;
mod pairs;
mod plan;
mod request;
mod rounds;
mod shared;
mod sketches;
mod spec;

use std::fs::File;
use std::io::Read as _;

use files::Source;
use nearset::Kind;
use nearset_jobs::memory::HugePages;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

/// Opens the file of a filter or an index, of whatever kind it is.
///
/// Args:
///     path: What ``save`` or the program wrote: a path, a URL of a filesystem that fsspec knows, or a file that is open for reading bytes.
///     unlimited_work: Open it although each item takes longer than usual, a seventh of a second or more: for files that you
///         trust.
///     allow_overfull: Whether a filter may hold more items than it is made for; it calls unrelated items near, and is refused by
///         a :class:`FullError` otherwise.
///     mapped: Whether a near or Hamming filter stays in its file, whose memory the processes that look into it share, until something is
///         inserted into it here. The file must not be written in place or cut short meanwhile, which changes answers or ends the process;
///         replacing it as ``save`` does, or removing it, does no harm.
///
/// Returns a :class:`NearFilter`, :class:`HammingFilter`, :class:`BloomFilter`, :class:`LshIndex` or :class:`HammingIndex`.
#[pyfunction]
#[pyo3(signature = (path, *, unlimited_work=false, allow_overfull=false, mapped=false))]
fn open(py: Python<'_>, path: Source, unlimited_work: bool, allow_overfull: bool, mapped: bool) -> PyResult<Py<PyAny>> {
    let kind = match &path {
        Source::Bytes(bytes) => Kind::of(bytes.as_bytes(py)),
        Source::Path(path) => {
            let mut start = Vec::new();
            let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
            read.map_err(|cause| error::unreadable(path, &cause))?;
            Kind::of(&start)
        }
    };
    match kind {
        Ok(Kind::Bloom | Kind::Lsh | Kind::Hamming) if mapped => Err(PyValueError::new_err(
            "mapped=True is for near and Hamming filters, and this is a Bloom filter or an index, which is copied: leave it out",
        )),
        Ok(Kind::Bloom) => Ok(Py::new(py, bloom::BloomFilter::open(py, path)?)?.into_any()),
        Ok(Kind::Lsh | Kind::Hamming) => index::open(py, path, unlimited_work),
        _ => filter::to_python(py, filter::open(py, path, unlimited_work, allow_overfull, mapped)?),
    }
}

/// The compiled part of nearset.
#[pymodule]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::bloom::BloomFilter;
    #[pymodule_export]
    use super::decontaminate::{_find, Benchmark};
    #[pymodule_export]
    use super::dedup::{compare, dedup};
    #[pymodule_export]
    use super::error::FullError;
    #[pymodule_export]
    use super::filter::{Filter, HammingFilter, NearFilter};
    #[pymodule_export]
    use super::index::{HammingIndex, Index, IndexPlan, LshIndex, Neighbour};
    #[pymodule_export]
    use super::minhash::{_minhash, _signature, Estimate, MinHash, Signature};
    #[pymodule_export]
    use super::open;
    #[pymodule_export]
    use super::pairs::_pairs;
    #[pymodule_export]
    use super::plan::{_plan_again, Plan, PlanError, plan, plan_index};
    #[pymodule_export]
    use super::request::Request;
    #[pymodule_export]
    use super::rounds::{_Buckets, _RoundJoin};
    #[pymodule_export]
    use super::shared::_unpickle;
    #[pymodule_export]
    use super::sketches::{_affine32, _affine64, _legacy, _sha1_hashes32, _sha1_hashes64};
    #[pymodule_export]
    use super::spec::FilterSpec;
}
