//! Items out of Python objects.
//!
//! Claim: a numpy matrix and, mostly, an Arrow column are read where they lie; everything else is copied once, piece by piece,
//! so that a list of texts is never in memory twice.
//! What an object is depends on what near means: a `str` is a text to Jaccard and hexadecimal digits to Hamming.

use nearset::family::Form;
use nearset::item::ItemBuffer;
use nearset::{BitString, Bits, Item, Metric, Symbols};
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyIterator, PyList, PyMemoryView, PyString, PyTuple};

use crate::arrow::{self, Column};
use crate::bloom::BloomFilter;
use crate::error;

/// A buffer of one object's item; `many` is the method that takes several.
pub fn one(metric: Metric, object: &Bound<'_, PyAny>, many: &str) -> PyResult<ItemBuffer> {
    let mut items = ItemBuffer::default();
    match push(&mut items, metric, object) {
        Ok(()) => Ok(items),
        Err(error) => Err(naming(many, object, error)?),
    }
}

/// The error, which names the method that takes several items if it may have been meant.
pub fn naming(many: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyResult<PyErr> {
    let py = object.py();
    let several = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyUntypedArray>()
        || object.hasattr("__arrow_c_stream__")?
        || object.hasattr("to_pylist")?;
    let kind = error.get_type(py);
    if several && (kind.is(py.get_type::<PyTypeError>()) || kind.is(py.get_type::<PyValueError>())) {
        return Ok(PyErr::from_type(kind, format!("{}; many items go to {many}", error.value(py))));
    }
    Ok(error)
}

/// Copies an object as what it is to the metric.
pub fn push(items: &mut ItemBuffer, metric: Metric, object: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_missing(object)? {
        items.push_missing();
        return Ok(());
    }
    match metric.form() {
        Form::Set(_) | Form::Weighted(_) if object.is_instance_of::<PyString>() => {
            let text = object.cast::<PyString>()?;
            items.fill(|out: &mut String| push_text(text, out))
        }
        Form::Set(_) => items.fill(|out: &mut Vec<u64>| push_set(object, out)),
        Form::Weighted(_) => items.fill(|out: &mut Vec<(u64, f64)>| push_weighted(object, out)),
        Form::Bits(bits) => push_bits(items, object, bits as usize),
        Form::Symbols(_) => push_symbols(items, object),
        _ => {
            let vector = as_array::<f32>(object)?;
            items.fill(|out: &mut Vec<f32>| extend(out, &vector))
        }
    }
}

fn push_set(object: &Bound<'_, PyAny>, out: &mut Vec<u64>) -> PyResult<()> {
    if let Ok(array) = object.cast::<PyArray1<u64>>() {
        return extend(out, array);
    }
    if object.is_instance_of::<PyBytes>() {
        return Err(wrong_type(object, "a text or a set of whole numbers"));
    }
    let elements = object.try_iter().map_err(|_| wrong_type(object, "a text or a set of whole numbers"))?;
    for element in elements {
        let element = element?;
        let number = element.extract::<u64>().map_err(|cause| {
            if cause.is_instance_of::<PyTypeError>(object.py()) {
                wrong_type(&element, "a whole number in a set")
            } else {
                PyValueError::new_err("elements of sets are whole numbers from 0 to 2^64 - 1: hash them first")
            }
        })?;
        out.push(number);
    }
    Ok(())
}

fn push_weighted(object: &Bound<'_, PyAny>, out: &mut Vec<(u64, f64)>) -> PyResult<()> {
    let weights =
        object.cast::<PyDict>().map_err(|_| wrong_type(object, "a text or a dict from whole numbers to weights"))?;
    for (element, weight) in weights.iter() {
        out.push((element.extract()?, weight.extract()?));
    }
    Ok(())
}

fn push_bits(items: &mut ItemBuffer, object: &Bound<'_, PyAny>, len: usize) -> PyResult<()> {
    if let Ok(digits) = object.cast::<PyString>() {
        return items.push_hex(&digits.to_cow()?).map_err(|cause| error::item(&cause));
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        items.push_bit_bytes(bytes.as_bytes());
    } else if let Ok(bytes) = object.cast::<PyByteArray>() {
        items.push_bit_bytes(&bytes.to_vec());
    } else if let Ok(bytes) = object.cast::<PyArray1<u8>>() {
        items.push_bit_bytes(contiguous(bytes)?.readonly().as_slice()?);
    } else if let Ok(words) = object.cast::<PyArray1<u64>>() {
        let words = contiguous(words)?;
        let words = words.readonly();
        let bits = Bits::new(words.as_slice()?, len).map_err(|cause| error::item(&cause))?;
        items.push(Item::Bits(bits));
    } else if let Ok(flags) = object.cast::<PyArrayDyn<bool>>() {
        // Row by row: image hashes come as squares.
        let mut bits = BitString::zeros(flags.len());
        flags.readonly().as_array().iter().enumerate().for_each(|(i, &flag)| bits.set(i, flag));
        items.push(Item::Bits(bits.bits()));
    } else if let Ok(filter) = object.cast::<BloomFilter>() {
        items.push(Item::from(&*filter.get().shared().read(object.py())));
    } else if object.is_instance_of::<PyMemoryView>() {
        items.push_bit_bytes(object.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes());
    } else {
        return Err(wrong_type(
            object,
            "hexadecimal digits, bytes, a numpy array of uint8, uint64 or bool, or a BloomFilter",
        ));
    }
    Ok(())
}

fn push_symbols(items: &mut ItemBuffer, object: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(text) = object.cast::<PyString>() {
        // One number per character, as for bytes: a character beyond ASCII is one symbol, not several.
        let text = text.to_cow()?;
        items.fill(|out: &mut Vec<u32>| {
            out.extend(text.chars().map(u32::from));
            Ok(())
        })
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        items.push(Item::Symbols(Symbols::Bytes(bytes.as_bytes())));
        Ok(())
    } else if let Ok(bytes) = object.cast::<PyArray1<u8>>() {
        let bytes = contiguous(bytes)?;
        items.push(Item::Symbols(Symbols::Bytes(bytes.readonly().as_slice()?)));
        Ok(())
    } else if let Ok(symbols) = object.cast::<PyArray1<u32>>() {
        items.fill(|out: &mut Vec<u32>| extend(out, symbols))
    } else {
        Err(wrong_type(object, "a str, bytes, or a numpy array of uint8 or uint32"))
    }
}

/// `None`, and the NaN or NA by which pandas marks what is missing.
fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyString>() {
        return Ok(false);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.value().is_nan());
    }
    Ok(object.is_none() || object.get_type().name()? == "NAType")
}

fn wrong_type(object: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{found} was given where {wanted} is needed"))
}

/// Adds a string's UTF-8. One copy: the older of the supported interpreters lend out no UTF-8.
fn push_text(text: &Bound<'_, PyString>, out: &mut String) -> PyResult<()> {
    let bytes = text.encode_utf8()?;
    out.push_str(std::str::from_utf8(bytes.as_bytes()).map_err(error::value)?);
    Ok(())
}

fn extend<T: Element + Copy>(out: &mut Vec<T>, array: &Bound<'_, PyArray1<T>>) -> PyResult<()> {
    out.extend_from_slice(contiguous(array)?.readonly().as_slice()?);
    Ok(())
}

/// The same array, its elements side by side.
fn contiguous<'py, T: Element>(array: &Bound<'py, PyArray1<T>>) -> PyResult<Bound<'py, PyArray1<T>>> {
    if array.is_c_contiguous() { Ok(array.clone()) } else { as_array::<T>(array.as_any()) }
}

fn numpy<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static AS_CONTIGUOUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = AS_CONTIGUOUS.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("numpy")?.getattr("ascontiguousarray")?.unbind())
    })?;
    Ok(function.bind(py))
}

/// The object as a numpy array of one dimension; itself where it is one.
fn as_array<'py, T: Element>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = numpy(object.py())?.call1((object, T::get_dtype(object.py())))?;
    let found = array.cast::<PyUntypedArray>()?.ndim();
    match array.cast_into::<PyArray1<T>>() {
        Ok(array) => Ok(array),
        Err(_) => Err(PyValueError::new_err(format!("an array of {found} dimensions where one item has 1"))),
    }
}

fn as_matrix<'py, T: Element>(object: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray2<'py, T>> {
    let array = numpy(object.py())?.call1((object, T::get_dtype(object.py())))?;
    Ok(array.cast_into::<PyArray2<T>>()?.readonly())
}

/// Many items, held.
pub enum Many<'py> {
    Columns(Vec<Column>),
    Vectors(PyReadonlyArray2<'py, f32>),
    Bytes(PyReadonlyArray2<'py, u8>),
    Words(PyReadonlyArray2<'py, u64>),
    Wide(PyReadonlyArray2<'py, u32>),
    Objects { iterator: Py<PyIterator>, len: Option<usize> },
}

impl<'py> Many<'py> {
    /// Reads what there is: an Arrow column, a numpy matrix with one item per row, or any iterable of items.
    pub fn new(metric: Metric, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(wrong_type(object, "a list, a column or a matrix of items"));
        }
        if let Some(columns) = arrow::columns(metric, object)? {
            return Ok(Many::Columns(columns));
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            let is_set = metric.shape().shingling.is_some();
            match (array.ndim(), array.dtype().kind()) {
                (0, _) => return Err(wrong_type(object, "a list, a column or a matrix of items")),
                // Squares of bits are the items of some, and rows of them are packed one by one.
                (2, kind) if kind != b'b' => return Self::matrix(metric, array),
                (1, b'b' | b'i' | b'u' | b'f') if !is_set => {
                    return Err(PyValueError::new_err(
                        "an array of one dimension is one item where many are needed: give a matrix with one item per row",
                    ));
                }
                _ => {}
            }
        }
        let len = object.len().ok();
        let iterator =
            arrow::objects(object).map_err(|cause| match cause.is_instance_of::<PyTypeError>(object.py()) {
                true => wrong_type(object, "a list, a column or a matrix of items"),
                false => cause,
            })?;
        Ok(Many::Objects { iterator: iterator.unbind(), len })
    }

    fn matrix(metric: Metric, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let dtype = array.dtype();
        let is = |other: Bound<'py, numpy::PyArrayDescr>| dtype.is_equiv_to(&other);
        let py = array.py();
        Ok(match metric.form() {
            Form::Vector(_) => Many::Vectors(as_matrix(array)?),
            Form::Bits(_) | Form::Symbols(_) if is(u8::get_dtype(py)) => Many::Bytes(as_matrix(array)?),
            Form::Bits(_) | Form::Set(_) if is(u64::get_dtype(py)) => Many::Words(as_matrix(array)?),
            Form::Symbols(_) if is(u32::get_dtype(py)) => Many::Wide(as_matrix(array)?),
            _ => {
                let found = dtype.str()?;
                return Err(PyTypeError::new_err(format!(
                    "a matrix of {found} holds no items of {metric}: bits come as uint8 or uint64, symbols as uint8 or \
                     uint32, sets as uint64, vectors as float32"
                )));
            }
        })
    }

    /// How many items there are, if that is known beforehand.
    pub fn len(&self) -> Option<usize> {
        match self {
            Many::Columns(columns) => Some(columns.iter().map(Column::len).sum()),
            Many::Vectors(matrix) => Some(matrix.shape()[0]),
            Many::Bytes(matrix) => Some(matrix.shape()[0]),
            Many::Words(matrix) => Some(matrix.shape()[0]),
            Many::Wide(matrix) => Some(matrix.shape()[0]),
            Many::Objects { len, .. } => *len,
        }
    }

    /// What threads may read without Python.
    pub fn view(&self) -> PyResult<View<'_>> {
        fn rows<'a, T: Element>(matrix: &'a PyReadonlyArray2<'_, T>) -> PyResult<Rows<'a, T>> {
            Ok(Rows { all: matrix.as_slice()?, width: matrix.shape()[1], count: matrix.shape()[0] })
        }
        Ok(match self {
            Many::Columns(columns) => View::Columns(columns),
            Many::Vectors(matrix) => View::Vectors(rows(matrix)?),
            Many::Bytes(matrix) => View::Bytes(rows(matrix)?),
            Many::Words(matrix) => View::Words(rows(matrix)?),
            Many::Wide(matrix) => View::Wide(rows(matrix)?),
            Many::Objects { iterator, .. } => View::Objects(iterator),
        })
    }
}

/// A matrix with one item per row.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    all: &'a [T],
    width: usize,
    count: usize,
}

impl<'a, T> Rows<'a, T> {
    fn row(self, i: usize) -> &'a [T] {
        &self.all[i * self.width..(i + 1) * self.width]
    }
}

/// Many items, lent to threads.
#[derive(Clone, Copy)]
pub enum View<'a> {
    Columns(&'a [Column]),
    Vectors(Rows<'a, f32>),
    Bytes(Rows<'a, u8>),
    Words(Rows<'a, u64>),
    Wide(Rows<'a, u32>),
    Objects(&'a Py<PyIterator>),
}

impl<'a> View<'a> {
    /// Rows of each part, where items lie in place.
    pub fn parts(&self) -> Vec<usize> {
        match self {
            View::Columns(columns) => columns.iter().map(Column::len).collect(),
            View::Vectors(rows) => vec![rows.count],
            View::Bytes(rows) => vec![rows.count],
            View::Words(rows) => vec![rows.count],
            View::Wide(rows) => vec![rows.count],
            View::Objects(_) => Vec::new(),
        }
    }

    /// Item `i` of a part; bits that are not aligned are copied to `room`.
    pub fn item<'i>(
        &self,
        metric: Metric,
        part: usize,
        i: usize,
        room: &'i mut BitString,
    ) -> Result<Option<Item<'i>>, nearset::ItemError>
    where
        'a: 'i,
    {
        Ok(Some(match (self, metric.form()) {
            (View::Columns(columns), _) => return Ok(columns[part].item(i, room)),
            (View::Vectors(rows), _) => Item::Vector(rows.row(i)),
            (View::Bytes(rows), Form::Symbols(_)) => Item::Symbols(Symbols::Bytes(rows.row(i))),
            (View::Bytes(rows), _) => {
                room.set_bytes(rows.row(i));
                Item::Bits(room.bits())
            }
            (View::Words(rows), Form::Bits(bits)) => Item::Bits(Bits::new(rows.row(i), bits as usize)?),
            (View::Words(rows), _) => Item::Set(rows.row(i)),
            (View::Wide(rows), _) => Item::Symbols(Symbols::Wide(rows.row(i))),
            (View::Objects(_), _) => return Ok(None),
        }))
    }
}
