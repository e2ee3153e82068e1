//! Near filters and Hamming filters: one set of methods over whichever it is.

use std::sync::RwLockReadGuard;

use nearset::family::{Hashed, Key};
use nearset::spec::Construction;
use nearset::{BitString, Distance, Filter as Library, Metric, Spec};
use nearset::{GenerationState, InsertError};
use nearset_jobs::{FilterFile, HeldFilter, save_filter};
use nearset_records::extract::item_field;
use nearset_view::curves::filter_chart;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch::{self, Fault, present};
use crate::files::{self, Source, Target};
use crate::items::{self, Many};
use crate::options::{self, Whole, seed_to_python};
use crate::plan::Plan;
use crate::shared::{Shared, reduce};
use crate::{draw, error, spec};

/// A set of items that knows whether anything near was put into it: a :class:`NearFilter` or a :class:`HammingFilter`.
///
/// It knows how many items it is made for (``capacity``) and how many are in it (``load``). Beyond its capacity it grows, or it
/// refuses more by a :class:`FullError`.
///
/// Items are what the metric says: texts (``str``), sets (of whole numbers below 2^64), bit strings (hexadecimal digits,
/// bytes, numpy arrays of ``uint8``, ``uint64`` or ``bool``, a :class:`BloomFilter`), vectors (anything that numpy takes for ``float32``).
#[pyclass(frozen, subclass, module = "nearset")]
pub struct Filter {
    filter: Shared<HeldFilter>,
    metric: Metric,
}

/// A filter whose items' bands of hashes are counted: near when enough of them hit.
///
/// Args:
///     plan: What :func:`plan` returned.
///     when_full: What happens to items beyond the plan's capacity: the filter grows (``grow``), or it refuses them (``refuse``).
///
/// >>> import nearset
/// >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000)
/// >>> seen = nearset.NearFilter(plan)
/// >>> seen.insert("Permission is hereby granted, free of charge, to any person obtaining a copy of this software")
/// True
/// >>> "permission is hereby granted free of charge to any person obtaining a copy of THIS software" in seen
/// True
/// >>> "Redistribution and use in source and binary forms, with or without modification, are permitted" in seen
/// False
/// >>> len(seen)
/// 1
#[pyclass(frozen, extends = Filter, module = "nearset")]
pub struct NearFilter;

/// A filter of bit strings without bands: it misses nothing within its radius, or no more than it states where the plan's
/// structure is ``sketch-scan``, which compares samples of every string.
///
/// Args:
///     plan: What :func:`plan` returned for ``max_false_negative=0``, or where its structure is ``sketch-scan``.
///     when_full: As for :class:`NearFilter`.
///
/// >>> import nearset
/// >>> plan = nearset.plan("hamming", near=2, far=20, capacity=1_000_000, length=64, max_false_negative=0)
/// >>> seen = nearset.HammingFilter(plan)
/// >>> seen.insert("d1c4b1a3f0e8877e")
/// True
/// >>> "d1c4b1a3f0e8877d" in seen      # two bits away: never missed
/// True
#[pyclass(frozen, extends = Filter, module = "nearset")]
pub struct HammingFilter;

/// A filter as the Python object of its class.
pub fn to_python(py: Python<'_>, filter: impl Into<HeldFilter>) -> PyResult<Py<PyAny>> {
    let filter = filter.into();
    let is_near = is_near(filter.get());
    let base = PyClassInitializer::from(Filter::new(filter)?);
    Ok(match is_near {
        true => Bound::new(py, base.add_subclass(NearFilter))?.into_any().unbind(),
        false => Bound::new(py, base.add_subclass(HammingFilter))?.into_any().unbind(),
    })
}

/// The filter in a file, which must not hold more than it is made for unless that is allowed; a copy of it, or mapped.
pub fn open(
    py: Python<'_>,
    path: Source,
    unlimited_work: bool,
    allow_overfull: bool,
    mapped: bool,
) -> PyResult<HeldFilter> {
    let path = match path {
        Source::Path(path) => path,
        Source::Bytes(_) if mapped => return Err(files::not_mappable()),
        Source::Bytes(bytes) => return decode(py, bytes.as_bytes(py), unlimited_work, allow_overfull),
    };
    py.detach(|| {
        let file = FilterFile::open(&path).map_err(|cause| error::filter_file(&cause))?;
        let file = file.within(options::work_limit(unlimited_work));
        let mut held = file.held(allow_overfull).map_err(|cause| error::filter_file(&cause))?;
        if !mapped {
            held.to_mut();
        }
        Ok(held)
    })
}

/// The filter in bytes, likewise.
pub fn decode(py: Python<'_>, bytes: &[u8], unlimited_work: bool, allow_overfull: bool) -> PyResult<HeldFilter> {
    py.detach(|| {
        let limit = options::work_limit(unlimited_work);
        let filter = Library::decode(bytes, limit).map_err(|cause| error::decode(&cause))?;
        if !allow_overfull {
            filter.expect_not_overfull(0).map_err(|cause| error::overfull(&cause))?;
        }
        Ok(filter.into_owned().into())
    })
}

fn is_near(filter: &Library<'_>) -> bool {
    filter.spec().near().is_some()
}

/// What is said of filters that only programs make.
pub fn no_items() -> PyErr {
    PyTypeError::new_err("Python has no items for this filter's hash family: use the Rust library")
}

fn expect(filter: impl Into<HeldFilter>, near: bool) -> PyResult<HeldFilter> {
    let filter = filter.into();
    if is_near(filter.get()) == near {
        return Ok(filter);
    }
    let class = if near { "HammingFilter" } else { "NearFilter" };
    Err(PyValueError::new_err(format!("it is a {class}: use that class, plan.filter() or nearset.open")))
}

/// Takes in the items of another filter, unless that makes more than there is room for. What is refused leaves ours as it is, and in its file
/// if it is mapped.
fn merge(ours: &mut HeldFilter, theirs: &Library<'_>) -> PyResult<()> {
    let has_room = ours.get().has_room_for(theirs);
    if has_room && !ours.is_mapped() {
        return ours.to_mut().merge(theirs).map_err(error::value);
    }
    let mut both = ours.get().clone();
    both.merge(theirs).map_err(error::value)?;
    if !has_room {
        both.expect_not_overfull(0).map_err(|cause| error::overfull(&cause))?;
    }
    let both = both.into_owned();
    *ours = both.into();
    Ok(())
}

impl Filter {
    fn new(filter: HeldFilter) -> PyResult<Self> {
        let metric =
            filter.get().spec().metric().filter(|&metric| item_field(metric.form()).is_some() || metric.is_whole());
        Ok(Self { filter: Shared::new(filter), metric: metric.ok_or_else(no_items)? })
    }

    /// What holds the filter.
    pub fn shared(&self) -> &Shared<HeldFilter> {
        &self.filter
    }

    /// The filter, to look into.
    pub fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, HeldFilter> {
        self.filter.read(py)
    }

    fn distance(&self, own: f64) -> PyResult<Distance> {
        self.metric.distance(own).map_err(error::value)
    }

    /// The filter in words: what near means, its shape, what is in it.
    fn words(&self, py: Python<'_>) -> Vec<(&'static str, String)> {
        let guard = self.read(py);
        let filter = guard.get();
        let mut words = vec![("metric", self.metric.to_string())];
        let (spec, newest) = (filter.spec(), newest(filter));
        let (shape, set) = match (spec.near(), spec.exact()) {
            (Some(spec), _) => {
                let when = match (spec.rule.follows_fill(), spec.rule.threshold_at(newest.chance_hit.unwrap_or(0.0))) {
                    (true, Some(hits)) if newest.len > 0 => {
                        format!("{hits} must hit at this load")
                    }
                    (true, _) => "enough must hit".to_owned(),
                    (_, Some(hits)) => format!("{hits} must hit"),
                    (_, None) => "by a cascade".to_owned(),
                };
                let shape = format!("{} bands of {} rows, {when}", spec.rule.bands(), spec.rows);
                (shape, format!("{} of {} set", draw::percent(newest.fill.unwrap_or(0.0)), draw::bytes(newest.bytes)))
            }
            (None, Some(spec)) => {
                let shape = match spec.construction {
                    Construction::SampledScan { width, within } => {
                        format!("{width} sampled bits per item, {within} may differ")
                    }
                    _ => format!("nothing within {} bits missed", spec.radius),
                };
                (shape, draw::bytes(newest.bytes))
            }
            (None, None) => (filter.kind().to_owned(), draw::bytes(filter.bytes())),
        };
        let (shape, set) = match filter.generations().len() {
            1 => (shape, set),
            several => (format!("{several} generations, the newest of {shape}"), draw::bytes(filter.bytes())),
        };
        let items = match filter.capacity() {
            Some(capacity) => format!("{} of {}", draw::count(filter.len()), draw::count(capacity)),
            None => draw::count(filter.len()),
        };
        words.push(("shape", shape));
        words.push(("items", items));
        words.push(("memory", set));
        words
    }
}

#[pymethods]
impl Filter {
    /// Inserts an item. True when nothing near was there before, like adding to a set that tells.
    fn insert(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let one = items::one(self.metric, item, "insert_all")?;
        let item = present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None cannot be inserted"))?;
        let mut guard = self.filter.write(py)?;
        guard.get().expect_not_overfull(1).map_err(|cause| error::overfull_for_more(&cause))?;
        guard.to_mut().insert(item, &mut Hashed::default()).map_err(|cause| error::insert(&cause))
    }

    /// Whether something near was inserted; the same as ``item in filter``.
    fn contains_near(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let one = items::one(self.metric, item, "contains_all")?;
        let item = present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None cannot be looked up"))?;
        let found = self.read(py).get().find(item, &mut Hashed::default()).map_err(|cause| error::item(&cause))?;
        Ok(found.near)
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains_near(py, item)
    }

    /// Inserts items in order and says for each whether nothing near was there before, as if inserted one after the other.
    ///
    /// Args:
    ///     items: A list or other iterable, a numpy matrix with one item per row, or an Arrow column (pyarrow, polars, pandas);
    ///         the last two are read in place.
    ///     threads: Threads that hash; one per core unless given.
    ///
    /// Returns a numpy array of ``bool``. If an item does not do, those before it are inserted, and the error names it. A filter
    /// that refuses takes pieces of a batch until one has no room.
    #[pyo3(signature = (items, *, threads=None))]
    fn insert_all<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        threads: Option<Whole<usize>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.filter.check_home()?;
        let many = Many::new(self.metric, items)?;
        let mut new = Vec::with_capacity(many.len().unwrap_or(0));
        let (hasher, bands) = {
            let guard = self.read(py);
            let filter = guard.get();
            let spec = filter.spec();
            let takes_keys = spec.near().is_some_and(|spec| spec.probing.is_none());
            let bands = spec.near().map_or(1, |spec| spec.rule.bands() as usize);
            (filter.hasher().filter(|_| takes_keys), bands)
        };
        match hasher {
            Some(hasher) => batch::run(
                py,
                (self.metric, &many),
                options::threads(threads)?,
                None,
                || (Hashed::default(), BitString::default()),
                |(hashed, room), piece| {
                    let mut keys: Vec<Option<Key>> = Vec::new();
                    let outcome = piece.try_each(room, |i, item| {
                        let position = piece.position(i);
                        let hash = hasher.hash(present(position, item)?, hashed);
                        hash.map_err(|cause| Fault::Item { position, cause })?;
                        keys.extend_from_slice(&hashed.keys);
                        Ok::<(), Fault>(())
                    });
                    (keys, outcome)
                },
                |(keys, outcome)| {
                    let mut guard = self.filter.write_detached();
                    let items = keys.len() / bands;
                    let room = guard.get().expect_not_overfull(items as u64);
                    room.map_err(|cause| Fault::Other(error::overfull_for_more(&cause)))?;
                    let inserted = guard.to_mut().insert_keys(&keys);
                    let found = inserted.map_err(|cause| Fault::Other(error::insert(&cause)))?;
                    new.extend(found.into_iter().map(|found| !found.near));
                    outcome
                },
            )?,
            // One after the other, on one thread: what is looked beside, or compared with all that is stored, is more than keys.
            None => batch::run(
                py,
                (self.metric, &many),
                1,
                None,
                BitString::default,
                |room, piece| {
                    let mut guard = self.filter.write_detached();
                    let (mut new, mut hashed) = (Vec::with_capacity(piece.len()), Hashed::default());
                    let outcome = piece.try_each(room, |i, item| {
                        let position = piece.position(i);
                        let room = guard.get().expect_not_overfull(1);
                        room.map_err(|cause| Fault::Other(error::overfull_for_more(&cause)))?;
                        let inserted = guard.to_mut().insert(present(position, item)?, &mut hashed);
                        new.push(inserted.map_err(|cause| match cause {
                            InsertError::Item(cause) => Fault::Item { position, cause },
                            cause => Fault::Other(error::insert(&cause)),
                        })?);
                        Ok::<(), Fault>(())
                    });
                    outcome.map(|()| new)
                },
                |inserted| {
                    new.extend(inserted?);
                    Ok(())
                },
            )?,
        }
        Ok(new.into_pyarray(py))
    }

    /// Whether something near was inserted, for each of many items.
    ///
    /// Args:
    ///     items: As for :meth:`insert_all`.
    ///     threads: Threads that look up; one per core unless given.
    #[pyo3(signature = (items, *, threads=None))]
    fn contains_all<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        threads: Option<Whole<usize>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let many = Many::new(self.metric, items)?;
        let mut near = Vec::with_capacity(many.len().unwrap_or(0));
        let hasher = {
            let guard = self.read(py);
            let filter = guard.get();
            let takes_keys = filter.spec().near().is_some_and(|spec| spec.probing.is_none());
            filter.hasher().filter(|_| takes_keys)
        };
        batch::run(
            py,
            (self.metric, &many),
            options::threads(threads)?,
            None,
            || (Hashed::default(), BitString::default()),
            |(hashed, room), piece| {
                let (mut keys, mut found) = (Vec::new(), Vec::new());
                piece.try_each(room, |i, item| {
                    let position = piece.position(i);
                    let item = present(position, item)?;
                    let failed = |cause| Fault::Item { position, cause };
                    match &hasher {
                        Some(hasher) => {
                            hasher.hash(item, hashed).map_err(failed)?;
                            keys.extend_from_slice(&hashed.keys);
                        }
                        None => {
                            let guard = self.filter.read_detached();
                            found.push(guard.get().contains_near(item, hashed).map_err(failed)?);
                        }
                    }
                    Ok::<(), Fault>(())
                })?;
                if hasher.is_some() {
                    // Keys of a whole piece are looked up with memory fetched ahead.
                    let guard = self.filter.read_detached();
                    let all = guard.get().contains_keys(&keys).map_err(|cause| Fault::Other(error::value(cause)))?;
                    found = all.into_iter().map(|found| found.near).collect();
                }
                Ok::<Vec<bool>, Fault>(found)
            },
            |found| {
                near.extend(found?);
                Ok(())
            },
        )?;
        Ok(near.into_pyarray(py))
    }

    /// Takes in all items of another filter of the same spec; the same as ``filter |= other``. The filter must have room for them:
    /// parts that are to be merged are made with the capacity of the whole.
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        if slf.is(other) {
            return Ok(());
        }
        let theirs = other.get().read(py).get().clone().into_owned();
        let mut ours = slf.get().filter.write(py)?;
        merge(&mut ours, &theirs)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        Self::merge(slf, other)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let mut both = HeldFilter::from(slf.get().read(py).get().clone().into_owned());
        merge(&mut both, other.get().read(py).get())?;
        to_python(py, both)
    }

    /// A copy: another filter with the same items.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let copy = self.read(py).get().clone().into_owned();
        to_python(py, copy)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.read(py).get().len() as usize
    }

    /// Whether both are made alike and hold the same.
    fn __eq__(&self, py: Python<'_>, other: &Self) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let encoded = |filter: &Library<'_>| {
            let mut bytes = Vec::new();
            filter.encode(&mut bytes).map(|()| bytes).ok()
        };
        let (one, other) = (&self.filter, &other.filter);
        py.detach(|| {
            let both = one.read_both_detached(other);
            let [one, other] = both.each_ref().map(|held| held.get());
            one.spec() == other.spec() && one.len() == other.len() && encoded(one) == encoded(other)
        })
    }

    /// An empty filter is a filter: without this, ``if filter:`` would ask for its length.
    fn __bool__(&self) -> bool {
        true
    }

    /// The filter as the bytes of its file.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.read(py).get().encode(&mut bytes)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Saves the filter under a name, whole or not at all.
    ///
    /// Args:
    ///     path: Where: as for :func:`nearset.open`.
    ///     force: Whether to replace what is there.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, py: Python<'_>, path: Target, force: bool) -> PyResult<()> {
        match path {
            Target::Path(path) => {
                let guard = self.read(py);
                save_filter(guard.get(), &path, &files::options(force)).map_err(|cause| error::output(&cause))
            }
            Target::Other(target) => files::save_elsewhere(target.bind(py), force, &self.encode(py)?),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        // Who unpickles trusts the bytes.
        reduce(slf.as_any(), (slf.get().encode(slf.py())?, true, true))
    }

    /// How many distinct items it is made for as it is now; ``None`` if nothing was said when it was made.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> Option<u64> {
        self.read(py).get().capacity()
    }

    /// How many distinct items its set bits amount to, repeats and near ones counting for little.
    #[getter]
    fn load(&self, py: Python<'_>) -> u64 {
        self.read(py).get().load()
    }

    /// What happens to items beyond its capacity: ``grow``, ``refuse`` or ``forget``; ``None`` if nothing was said.
    #[getter]
    fn when_full(&self, py: Python<'_>) -> Option<&'static str> {
        self.read(py).get().spec().terms().map(|terms| spec::name_of(terms.when_full))
    }

    /// How many generations it has: one, until it grows.
    #[getter]
    fn generations(&self, py: Python<'_>) -> usize {
        self.read(py).get().generations().len()
    }

    /// Whether the next new item makes it grow, or is refused.
    #[getter]
    fn is_full(&self, py: Python<'_>) -> bool {
        self.read(py).get().is_full()
    }

    /// The part of unrelated items that it calls near, as it is now.
    #[getter]
    fn unrelated_acceptance(&self, py: Python<'_>) -> f64 {
        self.read(py).get().unrelated_acceptance()
    }

    /// What near means: ``jaccard``, ``hamming``, ``cosine``, …
    #[getter]
    fn metric(&self) -> &'static str {
        self.metric.name().as_str()
    }

    /// Memory of the filter.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> u64 {
        self.read(py).get().bytes()
    }

    /// The probability, as the filter is now, that an item is called near whose nearest stored one is this near.
    ///
    /// Args:
    ///     near: In the metric's own unit: a similarity or cosine, differing bits, a distance.
    fn acceptance_probability(&self, py: Python<'_>, near: f64) -> PyResult<f64> {
        let distance = self.distance(near)?;
        Ok(self.read(py).get().acceptance_probability(distance))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?;
        let words: Vec<(&str, String)> = slf.get().words(slf.py());
        let text: Vec<String> = words
            .iter()
            .map(|(name, words)| if *name == "items" { format!("{words} items") } else { words.clone() })
            .collect();
        let [metric, shape, items, memory] = &text[..] else { return Ok(format!("<{name}>")) };
        Ok(format!("<{name}: {metric}; {shape}; {items}, {memory}>"))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?.to_string();
        let filter = slf.get();
        let words = filter.words(slf.py());
        let guard = filter.read(slf.py());
        let curve = filter_chart(guard.get(), filter.metric).to_svg();
        Ok(draw::html(&name, &words, &curve))
    }
}

#[pymethods]
impl NearFilter {
    #[new]
    #[pyo3(signature = (plan, *, when_full="grow"))]
    fn new(plan: &Plan, when_full: &str) -> PyResult<PyClassInitializer<Self>> {
        let filter = expect(plan.empty_filter(when_full)?, true)?;
        Ok(PyClassInitializer::from(Filter::new(filter)?).add_subclass(Self))
    }

    /// The near filter in a file. One that holds more than it is made for calls unrelated items near, and is refused by a
    /// :class:`FullError` unless ``allow_overfull`` is true. ``mapped`` as for :func:`nearset.open`.
    #[staticmethod]
    #[pyo3(signature = (path, *, unlimited_work=false, allow_overfull=false, mapped=false))]
    fn open(
        py: Python<'_>,
        path: Source,
        unlimited_work: bool,
        allow_overfull: bool,
        mapped: bool,
    ) -> PyResult<Py<PyAny>> {
        to_python(py, expect(open(py, path, unlimited_work, allow_overfull, mapped)?, true)?)
    }

    /// The near filter in the bytes of a file.
    #[staticmethod]
    #[pyo3(signature = (bytes, unlimited_work=false, allow_overfull=false))]
    fn decode(py: Python<'_>, bytes: &[u8], unlimited_work: bool, allow_overfull: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(decode(py, bytes, unlimited_work, allow_overfull)?, true)?)
    }

    /// How many bands of an item hit, and of how many.
    fn hits(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<(u32, u32)> {
        let filter = slf.as_super().get();
        let one = items::one(filter.metric, item, "contains_all")?;
        let item = present(0, one.get(0)).map_err(|_| PyTypeError::new_err("None cannot be looked up"))?;
        let found =
            filter.read(slf.py()).get().find(item, &mut Hashed::default()).map_err(|cause| error::item(&cause))?;
        Ok((found.hits, found.bands))
    }

    /// Functions in a band.
    #[getter]
    fn rows(slf: &Bound<'_, Self>) -> u32 {
        of_near(slf, |spec, _| spec.rows)
    }

    /// Bands.
    #[getter]
    fn bands(slf: &Bound<'_, Self>) -> u32 {
        of_near(slf, |spec, _| spec.rule.bands())
    }

    /// How many bands must hit as the filter is now, the newest generation of one that has grown; ``None`` where one number does not decide.
    #[getter]
    fn threshold(slf: &Bound<'_, Self>) -> Option<u32> {
        of_near(slf, |spec, filter| spec.rule.threshold_at(newest(filter).chance_hit.unwrap_or(0.0)))
    }

    /// The part of the bits that is set, in the newest generation of a filter that has grown.
    #[getter]
    fn fill(slf: &Bound<'_, Self>) -> f64 {
        of_near(slf, |_, filter| newest(filter).fill.unwrap_or(0.0))
    }

    /// From which the hash functions are drawn.
    #[getter]
    fn seed<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        seed_to_python(slf.py(), of_near(slf, |spec, _| spec.seed))
    }
}

fn of_near<T>(slf: &Bound<'_, NearFilter>, get: impl FnOnce(&Spec, &Library<'_>) -> T) -> T {
    let guard = slf.as_super().get().read(slf.py());
    let filter = guard.get();
    get(filter.spec().near().expect("the class holds near filters only"), filter)
}

/// The newest generation as it is now.
fn newest(filter: &Library<'_>) -> GenerationState {
    filter.generations().next_back().expect("a filter has a generation")
}

#[pymethods]
impl HammingFilter {
    #[new]
    #[pyo3(signature = (plan, *, when_full="grow"))]
    fn new(plan: &Plan, when_full: &str) -> PyResult<PyClassInitializer<Self>> {
        let filter = expect(plan.empty_filter(when_full)?, false)?;
        Ok(PyClassInitializer::from(Filter::new(filter)?).add_subclass(Self))
    }

    /// The Hamming filter in a file; ``allow_overfull`` and ``mapped`` as for :meth:`NearFilter.open`.
    #[staticmethod]
    #[pyo3(signature = (path, *, unlimited_work=false, allow_overfull=false, mapped=false))]
    fn open(
        py: Python<'_>,
        path: Source,
        unlimited_work: bool,
        allow_overfull: bool,
        mapped: bool,
    ) -> PyResult<Py<PyAny>> {
        to_python(py, expect(open(py, path, unlimited_work, allow_overfull, mapped)?, false)?)
    }

    /// The Hamming filter in the bytes of a file.
    #[staticmethod]
    #[pyo3(signature = (bytes, unlimited_work=false, allow_overfull=false))]
    fn decode(py: Python<'_>, bytes: &[u8], unlimited_work: bool, allow_overfull: bool) -> PyResult<Py<PyAny>> {
        to_python(py, expect(decode(py, bytes, unlimited_work, allow_overfull)?, false)?)
    }

    /// The number of differing bits up to which nothing is missed, or little by a scan of samples.
    #[getter]
    fn radius(slf: &Bound<'_, Self>) -> u32 {
        let guard = slf.as_super().get().read(slf.py());
        guard.get().spec().exact().expect("the class holds filters of bit strings only").radius
    }
}
