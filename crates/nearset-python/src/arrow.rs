//! Arrow columns, by the PyCapsule interface: pyarrow, polars, pandas and whatever else speaks it.
//!
//! Claim: texts, bit strings and vectors are read where they lie in the other library's memory.
//! Invariant: a column is validated when it comes in, texts to their last byte, so reading it later is safe.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{FromPyArrow, Table};
use arrow_schema::DataType;
use nearset::plan::Metric;
use nearset::{BitString, Item};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A column of items.
pub struct Column {
    array: ArrayRef,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    LargeText,
    TextView,
    Bits,
    Vector { width: usize },
}

impl Column {
    fn new(metric: Metric, array: ArrayRef) -> PyResult<Self> {
        array.to_data().validate_full().map_err(invalid)?;
        let is_text = matches!(metric, Metric::Jaccard { .. } | Metric::WeightedJaccard { .. });
        let is_vector = matches!(metric, Metric::Angle { .. } | Metric::L1 { .. } | Metric::L2 { .. });
        let kind = match array.data_type() {
            DataType::Utf8 if is_text => Kind::Text,
            DataType::LargeUtf8 if is_text => Kind::LargeText,
            DataType::Utf8View if is_text => Kind::TextView,
            DataType::FixedSizeBinary(_) if matches!(metric, Metric::Hamming { .. }) => Kind::Bits,
            DataType::FixedSizeList(field, width)
                if is_vector && *field.data_type() == DataType::Float32 && array_of_lists_is_dense(&array) =>
            {
                Kind::Vector { width: *width as usize }
            }
            other => {
                return Err(PyTypeError::new_err(format!(
                    "an Arrow column of {other} holds no items of {metric}: texts come as strings, bits as fixed-size \
                     binary, vectors as fixed-size lists of float32 without nulls inside"
                )));
            }
        };
        Ok(Self { array, kind })
    }

    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Item `i`, `None` where it is null; bits are copied to `room`.
    pub fn item<'i>(&'i self, i: usize, room: &'i mut BitString) -> Option<Item<'i>> {
        if self.array.is_null(i) {
            return None;
        }
        Some(match self.kind {
            Kind::Text => Item::Text(self.array.as_string::<i32>().value(i)),
            Kind::LargeText => Item::Text(self.array.as_string::<i64>().value(i)),
            Kind::TextView => Item::Text(self.array.as_string_view().value(i)),
            Kind::Bits => {
                room.set_bytes(self.array.as_fixed_size_binary().value(i));
                Item::Bits(room.bits())
            }
            Kind::Vector { width } => {
                let all = self.array.as_fixed_size_list().values().as_primitive::<Float32Type>().values();
                Item::Vector(&all[i * width..(i + 1) * width])
            }
        })
    }
}

fn array_of_lists_is_dense(array: &ArrayRef) -> bool {
    array.as_fixed_size_list().values().null_count() == 0
}

fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(format!("the Arrow data is damaged: {error}"))
}

/// The columns that an object is, one a chunk; `None` if it is none.
pub fn columns(metric: Metric, object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Column>>> {
    if object.hasattr("__arrow_c_array__")? {
        return Ok(Some(vec![Column::new(metric, only_column(array(object)?)?)?]));
    }
    let streams = object.hasattr("__arrow_c_stream__")?;
    if streams && let Ok(chunks) = object.getattr("chunks") {
        let chunks: PyResult<Vec<Column>> =
            chunks.try_iter()?.map(|chunk| Column::new(metric, array(&chunk?)?)).collect();
        return chunks.map(Some);
    }
    // A stream of bare columns is not among what arrow-pyarrow reads, one of tables is.
    let framed = match object.getattr("to_frame") {
        Ok(to_frame) if streams || is_arrow_backed(object)? => to_frame.call0()?,
        _ if streams => object.clone(),
        _ => return Ok(None),
    };
    match table_columns(metric, &framed) {
        // pandas needs pyarrow to speak Arrow; without it, its values are taken one by one.
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        columns => columns.map(Some),
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

/// The column of a table that came as one array.
fn only_column(array: ArrayRef) -> PyResult<ArrayRef> {
    match array.data_type() {
        DataType::Struct(fields) if fields.len() == 1 => Ok(array.as_struct().column(0).clone()),
        DataType::Struct(fields) => Err(several(fields.len())),
        _ => Ok(array),
    }
}

fn several(columns: usize) -> PyErr {
    PyTypeError::new_err(format!("a table of {columns} columns was given where one column of items is needed"))
}

fn table_columns(metric: Metric, framed: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    let table = Table::from_pyarrow_bound(framed)?;
    let names = table.schema().fields().iter().filter(|field| !field.name().starts_with("__index_level_")).count();
    if names != 1 {
        return Err(several(names));
    }
    table.record_batches().iter().map(|batch| Column::new(metric, batch.column(0).clone())).collect()
}
