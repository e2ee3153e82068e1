//! Arguments that several functions take.

use nearset::family::WorkLimit;
use nearset::{Seed, Shingling};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use crate::error;

/// A seed as Python says it: a number below 2^64, 16 bytes, or the text that the program takes.
pub struct SeedArgument(pub Seed);

impl<'py> FromPyObject<'_, 'py> for SeedArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            let seed = <[u8; 16]>::try_from(bytes)
                .map_err(|_| PyValueError::new_err(format!("a seed of {} bytes: it must have 16", bytes.len())))?;
            return Ok(Self(Seed::from_bytes(seed)));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return text.to_cow()?.parse().map(Self).map_err(error::value);
        }
        match object.extract::<u64>() {
            Ok(number) => Ok(Self(Seed::new(number))),
            Err(cause) if cause.is_instance_of::<PyTypeError>(object.py()) => {
                Err(PyTypeError::new_err("a seed is a whole number, 16 bytes, or 32 hexadecimal digits"))
            }
            Err(_) => Err(PyValueError::new_err("a seed is a whole number from 0 to 2^64 - 1, or 16 bytes")),
        }
    }
}

/// A whole number from 0 on, which may come as a float: `1e6`.
#[derive(Clone, Copy)]
pub struct Whole<T>(pub T);

impl<'py, T: TryFrom<u64>> FromPyObject<'_, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = if let Ok(float) = object.cast::<PyFloat>() {
            let value = float.value();
            let is_whole = value.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&value);
            is_whole.then_some(value as u64)
        } else {
            match object.extract::<u64>() {
                Err(cause) if cause.is_instance_of::<PyTypeError>(object.py()) => return Err(cause),
                number => number.ok(),
            }
        };
        let fitting = number.and_then(|number| T::try_from(number).ok());
        fitting.map(Self).ok_or_else(|| {
            let most = if size_of::<T>() < 8 { u64::from(u32::MAX) } else { u64::MAX };
            PyValueError::new_err(format!("{}: it must be a whole number from 0 to {most}", *object))
        })
    }
}

/// The seed as Python reads it: a number where it is one, else 16 bytes.
pub fn seed_to_python<'py>(py: Python<'py>, seed: Seed) -> PyResult<Bound<'py, PyAny>> {
    match seed.to_string().parse::<u64>() {
        Ok(number) if Seed::new(number) == seed => Ok(number.into_pyobject(py)?.into_any()),
        _ => Ok(PyBytes::new(py, &seed.to_bytes()).into_any()),
    }
}

/// The seed, or the library's.
pub fn seed(given: Option<SeedArgument>) -> Seed {
    given.map_or_else(Seed::default, |seed| seed.0)
}

/// How texts are cut, as the program takes it: `words:5`.
pub fn shingling(given: Option<&str>) -> PyResult<Shingling> {
    given.map_or_else(|| Ok(Shingling::default()), |text| text.parse().map_err(error::value))
}

/// Threads to work with.
pub fn threads(given: Option<Whole<usize>>) -> PyResult<usize> {
    match given.map(|threads| threads.0) {
        Some(0) => Err(PyValueError::new_err("threads=0: at least one thread is needed")),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// The limit on work that a caller's ``unlimited_work`` means.
pub fn work_limit(unlimited_work: bool) -> WorkLimit {
    if unlimited_work { WorkLimit::Unlimited } else { WorkLimit::Usual }
}
