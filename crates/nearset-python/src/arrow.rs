//! Arrow columns, by the PyCapsule interface: pyarrow, polars, pandas and whatever else speaks it.
//!
//! Claim: texts, bit strings of fixed size and vectors of `float32` are read where they lie in the other library's memory; other
//! columns are taken item by item, as any iterable is.
//! Invariant: a column is validated when it comes in, texts to their last byte, so reading it later is safe.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::{FromPyArrow, Table};
use arrow_schema::DataType;
use nearset::family::Form;
use nearset::{BitString, Item, Metric};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

/// A column of items.
pub struct Column {
    array: ArrayRef,
    kind: Kind,
}

enum Kind {
    Text,
    LargeText,
    TextView,
    Bits,
    Vector { values: ScalarBuffer<f32>, ends: Ends },
}

/// Where the lists of a column end.
enum Ends {
    Every(usize),
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Ends {
    fn range(&self, i: usize) -> Range<usize> {
        match self {
            Ends::Every(width) => i * width..(i + 1) * width,
            Ends::Small(ends) => ends[i] as usize..ends[i + 1] as usize,
            Ends::Large(ends) => ends[i] as usize..ends[i + 1] as usize,
        }
    }
}

impl Column {
    /// The column, if its items are such that they are read in place.
    fn new(metric: Metric, array: ArrayRef) -> PyResult<Option<Self>> {
        array.to_data().validate_full().map_err(invalid)?;
        let form = metric.form();
        let (is_text, is_vector) = (metric.shape().shingling.is_some(), matches!(form, Form::Vector(_)));
        let kind = match array.data_type() {
            DataType::Utf8 if is_text => Kind::Text,
            DataType::LargeUtf8 if is_text => Kind::LargeText,
            DataType::Utf8View if is_text => Kind::TextView,
            DataType::FixedSizeBinary(_) if matches!(form, Form::Bits(_)) => Kind::Bits,
            DataType::FixedSizeList(_, width) if is_vector => {
                let Some(values) = components(array.as_fixed_size_list().values()) else { return Ok(None) };
                Kind::Vector { values, ends: Ends::Every(*width as usize) }
            }
            DataType::List(_) if is_vector => {
                let list = array.as_list::<i32>();
                let Some(values) = components(list.values()) else { return Ok(None) };
                Kind::Vector { values, ends: Ends::Small(list.offsets().clone()) }
            }
            DataType::LargeList(_) if is_vector => {
                let list = array.as_list::<i64>();
                let Some(values) = components(list.values()) else { return Ok(None) };
                Kind::Vector { values, ends: Ends::Large(list.offsets().clone()) }
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { array, kind }))
    }

    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Item `i`, `None` where it is null; bits are copied to `room`.
    pub fn item<'i>(&'i self, i: usize, room: &'i mut BitString) -> Option<Item<'i>> {
        if self.array.is_null(i) {
            return None;
        }
        Some(match &self.kind {
            Kind::Text => Item::Text(self.array.as_string::<i32>().value(i)),
            Kind::LargeText => Item::Text(self.array.as_string::<i64>().value(i)),
            Kind::TextView => Item::Text(self.array.as_string_view().value(i)),
            Kind::Bits => {
                room.set_bytes(self.array.as_fixed_size_binary().value(i));
                Item::Bits(room.bits())
            }
            Kind::Vector { values, ends } => Item::Vector(&values[ends.range(i)]),
        })
    }
}

/// The numbers of all lists: in place where they are `float32` without nulls, else copied. What is null within a list becomes
/// NaN, which the library refuses with its place.
fn components(values: &ArrayRef) -> Option<ScalarBuffer<f32>> {
    match values.data_type() {
        DataType::Float32 if values.null_count() == 0 => Some(values.as_primitive::<Float32Type>().values().clone()),
        DataType::Float32 => {
            Some(values.as_primitive::<Float32Type>().iter().map(|value| value.unwrap_or(f32::NAN)).collect())
        }
        DataType::Float64 => Some(
            values
                .as_primitive::<Float64Type>()
                .iter()
                .map(|value| value.map_or(f32::NAN, |value| value as f32))
                .collect(),
        ),
        _ => None,
    }
}

fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(format!("the Arrow data is damaged: {error}"))
}

/// Returns the columns of an object, one per chunk; `None` if its items can't be read in place.
pub fn columns(metric: Metric, object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Column>>> {
    if object.hasattr("__arrow_c_array__")? {
        let array = array(object)?;
        if let DataType::Struct(fields) = array.data_type() {
            let [field] = &fields[..] else { return Err(several(fields.len())) };
            let column = Column::new(metric, array.as_struct().column(0).clone())?;
            return column.map(|column| Some(vec![column])).ok_or_else(|| unreadable(metric, field.data_type()));
        }
        return Ok(Column::new(metric, array)?.map(|column| vec![column]));
    }
    let streams = object.hasattr("__arrow_c_stream__")?;
    if streams && let Ok(chunks) = object.getattr("chunks") {
        return chunks.try_iter()?.map(|chunk| Column::new(metric, array(&chunk?)?)).collect();
    }
    // A stream of bare columns is not among what arrow-pyarrow reads, one of tables is.
    let framed = match object.getattr("to_frame") {
        Ok(to_frame) if streams || is_arrow_backed(object)? => to_frame.call0()?,
        _ if streams => object.clone(),
        _ => return Ok(None),
    };
    let table = match Table::from_pyarrow_bound(&framed) {
        // pandas needs pyarrow to speak Arrow; without it, its values are taken one by one.
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => return Ok(None),
        table => table?,
    };
    let schema = table.schema();
    let names = schema.fields().iter().filter(|field| !field.name().starts_with("__index_level_")).count();
    if names != 1 {
        return Err(several(names));
    }
    let batches = table.record_batches().iter();
    let columns: Option<Vec<Column>> =
        batches.map(|batch| Column::new(metric, batch.column(0).clone())).collect::<PyResult<_>>()?;
    match columns {
        // A table's own items are its rows or the names of its columns, never the items of its only column.
        None if framed.is(object) => Err(unreadable(metric, schema.field(0).data_type())),
        columns => Ok(columns),
    }
}

/// An object's items one by one; those of a column of pyarrow's as Python's own.
pub fn objects<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    match object.getattr("to_pylist") {
        Ok(to_list) => to_list.call0()?.try_iter(),
        Err(_) => object.try_iter(),
    }
}

/// Whether a pandas column before version 3 holds Arrow data.
fn is_arrow_backed(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(dtype) = object.getattr("dtype") else { return Ok(false) };
    if dtype.hasattr("pyarrow_dtype")? {
        return Ok(true);
    }
    Ok(dtype.getattr("storage").is_ok_and(|storage| storage.extract::<String>().is_ok_and(|name| name == "pyarrow")))
}

fn array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(make_array(ArrayData::from_pyarrow_bound(object)?))
}

fn several(columns: usize) -> PyErr {
    PyTypeError::new_err(format!("a table of {columns} columns was given where one column of items is needed"))
}

fn unreadable(metric: Metric, found: &DataType) -> PyErr {
    PyTypeError::new_err(format!(
        "a table whose column is of {found} holds no items of {metric}: give the column itself"
    ))
}
