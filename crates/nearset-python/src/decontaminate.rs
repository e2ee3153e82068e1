//! Benchmark items inside texts that Python has.

use std::path::PathBuf;
use std::sync::Arc;

use nearset::{BitString, Metric, Shingling};
use nearset_jobs::decontaminate::{
    Benchmark as Set, BenchmarkItem, BenchmarkOptions, Finder, Thresholds, is_benchmark, usual_fields,
};
use nearset_jobs::run::RunError;
use nearset_records::{Fields, InputError, ItemField, Source, resolve};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::batch::{self, Fault};
use crate::dedup::each_text;
use crate::items::Many;
use crate::options::{self, Whole};
use crate::{error, files};

/// Benchmark items with the weights of their words, to be looked for in texts.
///
/// Args:
///     items: A file of records or several, a set that ``save`` or the program has written, or the items themselves: dicts with fields
///         such as ``question`` and ``answer``, or texts.
///     fields: Fields that are evidence, each alone and all together; if none are named, those that are usual.
///     background: Files of ordinary documents, of which what is common weighs less; their field is ``text``.
///     strict: Whether to leave alone what is doubtful.
///     share: The least share of an item's weight that must be there, instead of the usual one.
///     mass: The least weight that must be there, counted in 3-grams that only one item has, instead of the usual one.
#[pyclass(frozen, module = "nearset")]
pub struct Benchmark {
    finder: Finder,
}

/// An item in a text: the item's number, the field, share, score, and the first and the last character.
type Found = (usize, String, f64, f64, usize, usize);

#[pymethods]
impl Benchmark {
    #[new]
    #[pyo3(signature = (items, *, fields=None, background=None, strict=false, share=None, mass=None))]
    fn new(
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        fields: Option<Vec<String>>,
        background: Option<Vec<PathBuf>>,
        strict: bool,
        share: Option<f64>,
        mass: Option<f64>,
    ) -> PyResult<Self> {
        if strict && (share.is_some() || mass.is_some()) {
            return Err(PyValueError::new_err("strict stands for a share and a mass: leave it out, or them"));
        }
        let thresholds = Thresholds::new(strict, share, mass).map_err(error::value)?;
        // Only once can an iterator be gone through.
        let is_one = items.is_instance_of::<PyString>() || items.hasattr("__fspath__")? || items.hasattr("__len__")?;
        let listed = if is_one { None } else { items.try_iter().ok().map(|all| all.collect::<PyResult<Vec<_>>>()) };
        let listed = listed.transpose()?.map(|all| PyList::new(py, all)).transpose()?;
        let items = listed.as_ref().map_or(items, |listed| listed.as_any());
        let fields = fields.unwrap_or_default();
        let background = background.unwrap_or_default();
        let set = match paths(items)? {
            Some(paths) => py.detach(|| read(&paths, fields, &background))?,
            None if background.is_empty() => {
                let items = records(items, &fields)?;
                Set::new(vec!["items".to_owned()], items)
            }
            None => return Err(PyValueError::new_err("a background goes with items in files: save them to one")),
        };
        let finder = py.detach(|| Arc::new(set).finder(thresholds));
        Ok(Self { finder })
    }

    fn __len__(&self) -> usize {
        self.finder.benchmark().items().len()
    }

    /// Ids of items that are too short to be told from chance, and are never found.
    #[getter]
    fn too_short(&self) -> Vec<String> {
        let items = self.finder.benchmark().items().iter().enumerate();
        items.filter(|(i, _)| !self.finder.is_decidable(*i)).map(|(_, item)| item.id.clone()).collect()
    }

    /// The id of an item, and the file that it is from.
    fn _name(&self, item: usize) -> PyResult<(String, String)> {
        let set = self.finder.benchmark();
        let found = set.items().get(item).ok_or_else(|| PyValueError::new_err(format!("there is no item {item}")))?;
        Ok((found.id.clone(), set.files()[found.file].clone()))
    }

    /// Cuts the items out of a text, until nothing is found in what is left.
    fn mask(&self, text: &str) -> String {
        let mut room = self.finder.room();
        let findings = self.finder.find(text, &mut room);
        if findings.is_empty() { text.to_owned() } else { self.finder.mask(text, &findings, &mut room) }
    }

    /// Writes the set for later, for Python or for the program's ``decontaminate``.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let set = self.finder.benchmark();
        py.detach(|| set.save(&path, &files::options(force))).map_err(|cause| error::output(&cause))
    }

    fn __repr__(&self) -> String {
        format!("<nearset.Benchmark of {} items>", self.__len__())
    }
}

/// Returns the paths that are meant, unless the items themselves are given.
fn paths(items: &Bound<'_, PyAny>) -> PyResult<Option<Vec<PathBuf>>> {
    // A str is a path here, and a list of str a list of texts: a benchmark of one text is a list.
    if items.is_instance_of::<PyString>() || items.hasattr("__fspath__")? {
        return Ok(Some(vec![items.extract()?]));
    }
    let Ok(all) = items.try_iter() else { return Ok(None) };
    let mut paths = Vec::new();
    for one in all {
        let one = one?;
        if !one.hasattr("__fspath__")? {
            return Ok(None);
        }
        paths.push(one.extract()?);
    }
    Ok((!paths.is_empty()).then_some(paths))
}

fn read(paths: &[PathBuf], fields: Vec<String>, background: &[PathBuf]) -> PyResult<Set> {
    if let [only] = paths
        && is_benchmark(only)
    {
        if !fields.is_empty() || !background.is_empty() {
            return Err(PyValueError::new_err("a saved set has its fields and its background already"));
        }
        return Set::open(only).map_err(|cause| error::run(&cause));
    }
    let sources = |paths: &[PathBuf]| -> PyResult<Vec<Source>> {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let resolved = resolve(&names, None).map_err(|cause: InputError| error::run(&RunError::from(cause)))?;
        Ok(resolved.list)
    };
    let mut options = BenchmarkOptions::new(Fields::new("text", ItemField::Text));
    options.fields = fields;
    if !background.is_empty() {
        options.background = sources(background)?;
    }
    Set::read(&sources(paths)?, options).map_err(|cause| error::run(&cause))
}

/// Items that are dicts or texts.
fn records(items: &Bound<'_, PyAny>, fields: &[String]) -> PyResult<Vec<BenchmarkItem>> {
    let mut out = Vec::new();
    for (number, item) in items.try_iter()?.enumerate() {
        let item = item?;
        if let Ok(text) = item.extract::<String>() {
            out.push(BenchmarkItem::new(0, number.to_string(), vec![("text".to_owned(), text)]));
            continue;
        }
        let Ok(record) = item.cast::<PyDict>() else {
            return Err(PyTypeError::new_err(format!("item {number} is neither a dict nor a text")));
        };
        let names: Vec<String> = record.keys().iter().filter_map(|name| name.extract().ok()).collect();
        let all: Vec<&str> = names.iter().map(|name| &**name).collect();
        let wanted = if fields.is_empty() { usual_fields(&all) } else { fields.iter().map(|name| &**name).collect() };
        let mut evidence = Vec::new();
        for name in wanted {
            if let Some(value) = record.get_item(name)? {
                let text = text_of(&value);
                if !text.trim().is_empty() {
                    evidence.push((name.to_owned(), text));
                }
            }
        }
        if evidence.is_empty() {
            return Err(PyValueError::new_err(format!(
                "item {number} has none of the fields that are evidence: it has {}; name them by fields=",
                all.join(", ")
            )));
        }
        let id = match record.get_item("id")? {
            Some(id) if !id.is_none() => id.str()?.to_string(),
            _ => number.to_string(),
        };
        out.push(BenchmarkItem::new(0, id, evidence));
    }
    Ok(out)
}

/// The texts and numbers of a value, one per line.
fn text_of(value: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = value.extract::<String>() {
        return text;
    }
    if value.extract::<f64>().is_ok() {
        return value.to_string();
    }
    if let Ok(record) = value.cast::<PyDict>() {
        return record.values().iter().map(|one| text_of(&one)).collect::<Vec<_>>().join("\n");
    }
    let Ok(parts) = value.try_iter() else { return String::new() };
    parts.flatten().map(|one| text_of(&one)).collect::<Vec<_>>().join("\n")
}

/// What is found in texts: the positions of those that hold nothing, and of the others each position with what is found there.
#[pyfunction]
#[pyo3(signature = (benchmark, texts, skip_missing, threads, progress))]
#[allow(clippy::type_complexity)]
pub fn _find<'py>(
    py: Python<'py>,
    benchmark: &Benchmark,
    texts: &Bound<'py, PyAny>,
    skip_missing: bool,
    threads: Option<Whole<usize>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Vec<(i64, Vec<Found>)>)> {
    let metric = Metric::Jaccard { shingling: Shingling::default() };
    let many = Many::new(metric, texts)?;
    let finder = &benchmark.finder;
    let (mut clean, mut found, mut position) = (Vec::new(), Vec::new(), 0i64);
    batch::run(
        py,
        (metric, &many),
        options::threads(threads)?,
        progress.as_ref(),
        || (finder.room(), BitString::default()),
        |(room, bits), piece| {
            let mut answers = Vec::with_capacity(piece.len());
            each_text(&piece, bits, skip_missing, |text| {
                answers.push(text.map(|text| in_characters(finder, text, room)));
                Ok(())
            })
            .map(|()| answers)
        },
        |answers: Result<Vec<Option<Vec<Found>>>, Fault>| {
            for answer in answers? {
                match answer {
                    Some(findings) if findings.is_empty() => clean.push(position),
                    Some(findings) => found.push((position, findings)),
                    None => {}
                }
                position += 1;
            }
            Ok(())
        },
    )?;
    Ok((clean.into_pyarray(py), found))
}

/// What is in a text, by characters: Python counts those and not bytes.
fn in_characters(finder: &Finder, text: &str, room: &mut nearset_jobs::decontaminate::FinderRoom) -> Vec<Found> {
    let findings = finder.find(text, room);
    let mut places: Vec<usize> = findings.iter().flat_map(|found| [found.bytes.start, found.bytes.end]).collect();
    places.sort_unstable();
    places.dedup();
    let (mut from, mut before) = (0, 0);
    let counted = |&place: &usize| {
        before += text[from..place].chars().count();
        from = place;
        before
    };
    let characters: Vec<usize> = places.iter().map(counted).collect();
    let at = |bytes: usize| characters[places.partition_point(|&place| place < bytes)];
    let found = findings.into_iter();
    found
        .map(|found| (found.item, found.field, found.share, found.score, at(found.bytes.start), at(found.bytes.end)))
        .collect()
}
