//! Columns that annotating adds to a Parquet file: collected row by row, written a row group at a time.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{Type, TypePtr};

use super::Value;

/// A field that annotating adds, or one of the record's own that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// Its name.
    pub name: String,
    /// What it holds, null aside.
    pub kind: AddedKind,
    /// Whether it is the record's own, which must be there.
    pub is_own: bool,
    /// Whether it is one that another annotation has added: nothing is set to it, and where it is there it becomes null.
    pub is_stale: bool,
}

/// What an added field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddedKind {
    /// True or false.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A string.
    Text,
}

impl Added {
    /// Returns a field of this name and kind.
    pub fn new(name: impl Into<String>, kind: AddedKind) -> Self {
        Self { name: name.into(), kind, is_own: false, is_stale: false }
    }

    /// Returns a field that this annotation does not add, and that does not stay where another one has added it. These come last, and have no
    /// values.
    pub fn stale(name: impl Into<String>, kind: AddedKind) -> Self {
        Self { is_stale: true, ..Self::new(name, kind) }
    }

    /// Returns how many values an annotation has.
    pub(super) fn values(added: &[Added]) -> usize {
        added.iter().filter(|added| !added.is_stale).count()
    }

    /// Returns the text of the records themselves, for [`super::AnyWriter::replace`].
    pub fn own_text(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: AddedKind::Text, is_own: true, is_stale: false }
    }
}

/// Returns the columns that annotations have appended: the mark, and those behind it as long as they are called as added ones are.
pub(super) fn appended<'c>(columns: impl Iterator<Item = &'c str> + Clone, added: &[Added]) -> Range<usize> {
    let is_added = |column: &&str| added.iter().any(|added| added.name == **column);
    let mark = added.first().and_then(|mark| columns.clone().position(|column| column == mark.name));
    mark.map_or(0..0, |mark| mark..mark + columns.skip(mark).take_while(is_added).count())
}

/// Leaves out stale columns that are not there, or that nearset has not added.
pub(super) fn drop_absent(schema: &TypePtr, added: &mut Vec<Added>) {
    let fields = schema.get_fields();
    let appended = &fields[appended(fields.iter().map(|field| field.name()), added)];
    let annotated = added.first().zip(appended.first()).is_some_and(|(mark, column)| mark.kind.is_kind_of(column));
    let is_appended =
        |added: &Added| appended.iter().any(|column| column.name() == added.name && added.kind.is_kind_of(column));
    added.retain(|added| !added.is_stale || annotated && is_appended(added));
}

/// Returns the schema with the columns behind its own, or in the place of those that an earlier run has added; and, by added column, the field whose
/// place it takes.
pub(super) fn extended(schema: &TypePtr, added: &[Added]) -> Result<(TypePtr, Vec<Option<usize>>), ParquetError> {
    let mut fields = schema.get_fields().to_vec();
    let place = |added: &Added| schema.get_fields().iter().position(|field| field.name() == added.name);
    let places: Vec<Option<usize>> = added.iter().map(place).collect();
    // The first one stands for the others, as in a record.
    let annotated = places.first().is_some_and(Option::is_some);
    for (Added { name, kind, is_own, .. }, place) in added.iter().zip(&places) {
        let (physical, logical) = match kind {
            AddedKind::Bool => (PhysicalType::BOOLEAN, None),
            AddedKind::Integer => (PhysicalType::INT64, None),
            AddedKind::Number => (PhysicalType::DOUBLE, None),
            AddedKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        match *place {
            None if *is_own => {
                let cause =
                    format!("{name:?} is no column but a part of one, which can't be written anew: move it to the top");
                return Err(ParquetError::General(cause));
            }
            None => fields.push(Arc::new(column)),
            Some(place) if (annotated || *is_own) && kind.is_kind_of(&fields[place]) => {
                fields[place] = Arc::new(column)
            }
            Some(_) => {
                let cause = format!(
                    "there is a column called {name:?} already, which no earlier run of nearset has added: it would be overwritten; rename \
                     it first"
                );
                return Err(ParquetError::General(cause));
            }
        }
    }
    Ok((Arc::new(Type::group_type_builder(schema.name()).with_fields(fields).build()?), places))
}

impl AddedKind {
    /// Returns whether a column holds values of this kind. Programs that rewrite a file may have changed a number's type.
    fn is_kind_of(self, column: &Type) -> bool {
        if !column.is_primitive() || column.get_basic_info().repetition() == Repetition::REPEATED {
            return false;
        }
        let physical = column.get_physical_type();
        match self {
            AddedKind::Bool => physical == PhysicalType::BOOLEAN,
            AddedKind::Integer | AddedKind::Number => matches!(
                physical,
                PhysicalType::INT32 | PhysicalType::INT64 | PhysicalType::FLOAT | PhysicalType::DOUBLE
            ),
            AddedKind::Text => physical == PhysicalType::BYTE_ARRAY,
        }
    }
}

/// The values of one column, for the kept rows of a row group.
pub(super) struct Column {
    values: Values,
    /// A level a row: 1 where there is a value.
    definitions: Vec<i16>,
}

enum Values {
    Bool(Vec<bool>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Column {
    pub fn new(kind: AddedKind) -> Self {
        let values = match kind {
            AddedKind::Bool => Values::Bool(Vec::new()),
            AddedKind::Integer => Values::Integer(Vec::new()),
            AddedKind::Number => Values::Number(Vec::new()),
            AddedKind::Text => Values::Text(Vec::new()),
        };
        Self { values, definitions: Vec::new() }
    }

    /// The next row's value.
    ///
    /// # Panics
    /// If it is of another kind.
    pub fn push(&mut self, value: Value<'_>) {
        self.definitions.push(i16::from(value != Value::Null));
        match (&mut self.values, value) {
            (_, Value::Null) => {}
            (Values::Bool(values), Value::Bool(value)) => values.push(value),
            (Values::Integer(values), Value::Integer(value)) => values.push(value),
            (Values::Number(values), Value::Number(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => values.push(ByteArray::from(value)),
            (_, other) => panic!("{other:?} in a column of another kind"),
        }
    }

    /// Writes the rows as the row group's next column, and forgets them.
    pub fn write<W: Write + Send>(&mut self, out: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let levels = &self.definitions;
        match &mut self.values {
            Values::Bool(values) => write::<BoolType, W>(out, values, levels)?,
            Values::Integer(values) => write::<Int64Type, W>(out, values, levels)?,
            Values::Number(values) => write::<DoubleType, W>(out, values, levels)?,
            Values::Text(values) => write::<ByteArrayType, W>(out, values, levels)?,
        }
        self.definitions.clear();
        Ok(())
    }
}

fn write<T: DataType, W: Write + Send>(
    out: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: &[i16],
) -> Result<(), ParquetError> {
    let Some(mut column) = out.next_column()? else {
        return Err(ParquetError::General("a column more than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(values, Some(levels), None)?;
    values.clear();
    column.close()
}
