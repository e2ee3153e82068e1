//! Errors as Python has them: the kind by what went wrong, the words by the library, the cure by the arguments that Python has.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use nearset::item::BatchError;
use nearset::plan::{PlanError, Request, RequestError};
use nearset::spec::SpecError;
use nearset::{DecodeError, ItemError};
use nearset::{InsertError, Overfull};
use nearset_jobs::FilterFileError;
use nearset_jobs::run::RunError;
use nearset_records::{Cure, InputError, OutputError, chain};
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyIsADirectoryError, PyMemoryError, PyOSError, PyPermissionError,
    PyTypeError, PyUnicodeEncodeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    nearset,
    FullError,
    PyValueError,
    "A filter has no room for more items, or holds more than it is made for."
);

/// A value that does not do.
pub fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An item that does not do: of a wrong type, or of the right one with a wrong value.
pub fn item(error: &ItemError) -> PyErr {
    at_kind(error, error)
}

/// The same, where the message says which item.
pub fn batch(error: &BatchError) -> PyErr {
    at_kind(&error.cause, error)
}

/// What Python said of an item of many, with the position of that item.
pub fn at_item(py: Python<'_>, position: usize, error: PyErr) -> PyErr {
    let kind = error.get_type(py);
    // A kind of ValueError that is made of more than a message.
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return value(format!("item {position} is no text: {}", error.value(py)));
    }
    if kind.is(py.get_type::<PyTypeError>()) || kind.is(py.get_type::<PyValueError>()) {
        return PyErr::from_type(kind, format!("item {position}: {}", error.value(py)));
    }
    error
}

fn at_kind(kind: &ItemError, message: impl Display) -> PyErr {
    match kind {
        ItemError::WrongKind { .. } => PyTypeError::new_err(message.to_string()),
        _ => value(message),
    }
}

/// A filter that can't be made.
pub fn spec(error: &SpecError) -> PyErr {
    match error {
        SpecError::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => value(error),
    }
}

/// A filter for texts that can't be planned.
pub fn plan(request: &Request, error: &PlanError) -> PyErr {
    match error {
        PlanError::Spec(cause) => spec(cause),
        _ => value(unplanned(request, error)),
    }
}

/// Why there is no plan, in terms of what was asked for: a `far` that nobody gave is nobody's mistake.
pub fn unplanned(request: &Request, error: &PlanError) -> String {
    match error {
        PlanError::TooClose { near, far } if request.far.is_none() => format!(
            "near={near} is too low for a filter, which has to tell such texts from those that are {far} similar: take a higher near, state \
             a lower far, or allow more errors by max_false_negative and max_false_positive"
        ),
        PlanError::Request(RequestError::NearNotBelowFar { near, .. }) if request.far.is_none() => {
            format!("near={near} is as far as items of {} can be: everything would be near", request.metric.name())
        }
        _ => error.to_string(),
    }
}

/// An item that is not inserted.
pub fn insert(error: &InsertError) -> PyErr {
    match error {
        InsertError::Item(cause) => item(cause),
        InsertError::Batch(cause) => batch(cause),
        InsertError::Spec(cause) => spec(cause),
        InsertError::Full { .. } | InsertError::TooManyGenerations { .. } => FullError::new_err(error.to_string()),
        _ => value(error),
    }
}

/// A filter that holds too much to be used.
pub fn overfull(error: &Overfull) -> PyErr {
    FullError::new_err(message(error, Some(Cure::AllowOverfull)))
}

/// A filter that holds too much to be given more.
pub fn overfull_for_more(error: &Overfull) -> PyErr {
    FullError::new_err(error.to_string())
}

/// Bytes that are no filter.
pub fn decode(error: &DecodeError) -> PyErr {
    let cure = matches!(error, DecodeError::Work(_)).then_some(Cure::LiftWorkLimit);
    PyValueError::new_err(message(error, cure))
}

/// A file that can't be opened.
pub fn filter_file(error: &FilterFileError) -> PyErr {
    let message = message(error, error.cure());
    match error {
        FilterFileError::Unreadable { cause, .. } => io(cause.kind(), message),
        FilterFileError::Overfull { .. } => FullError::new_err(message),
        _ => value(message),
    }
}

/// A file that can't be written.
pub fn output(error: &OutputError) -> PyErr {
    let message = message(error, error.cure());
    match error {
        OutputError::Exists { .. } => PyFileExistsError::new_err(message),
        OutputError::NoFolder { .. } | OutputError::InFile { .. } => PyFileNotFoundError::new_err(message),
        OutputError::IsFolder { .. } => PyIsADirectoryError::new_err(message),
        OutputError::NoPermission { .. } => PyPermissionError::new_err(message),
        OutputError::Write { cause, .. } => io(cause.kind(), message),
        _ => PyOSError::new_err(message),
    }
}

/// A benchmark that can't be read.
pub fn run(error: &RunError) -> PyErr {
    let message = message(error, error.cure());
    match error {
        RunError::Input(InputError::Unreadable { cause, .. }) => io(cause.kind(), message),
        _ => value(message),
    }
}

/// An error with its sources, and what can be done about it in Python's terms.
fn message(error: &(dyn Error + 'static), cure: Option<Cure>) -> String {
    let text = chain(error);
    match cure {
        Some(cure) => format!("{text} ({})", in_arguments(cure)),
        None => text,
    }
}

fn in_arguments(cure: Cure) -> String {
    match cure {
        Cure::Replace => "choose another name, or pass force=True to replace it".into(),
        Cure::WriteUnseen => {
            "if you may write there and not look, force=True writes all the same, and replaces what is there".into()
        }
        Cure::NameEvidence => "name the fields that hold questions and answers by fields=".into(),
        Cure::AllowOverfull => "allow_overfull=True takes it as it is".into(),
        Cure::LiftWorkLimit => "unlimited_work=True lifts the limit".into(),
        Cure::Search => "nearset.open opens it as an index".into(),
        Cure::BuildIndex => "nearset.plan_index plans an index".into(),
        other => other.to_string(),
    }
}

/// A file that can't be read.
pub fn unreadable(path: &Path, cause: &std::io::Error) -> PyErr {
    io(cause.kind(), format!("{}: {cause}", path.display()))
}

fn io(kind: std::io::ErrorKind, error: impl Display) -> PyErr {
    let message = error.to_string();
    match kind {
        std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        std::io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}
