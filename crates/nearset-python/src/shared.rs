//! What threads of Python share.
//!
//! Invariant: nobody waits for a lock with the interpreter held, so no two threads wait for each other. A panic leaves what is
//! locked as it was: bits that were set stay set.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

/// A value that many threads look into, and one at a time changes.
pub struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// To look into it; waiting lets go of the interpreter.
    pub fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, T> {
        self.0.read_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// To change it; waiting lets go of the interpreter.
    pub fn write(&self, py: Python<'_>) -> RwLockWriteGuard<'_, T> {
        self.0.write_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// To look into it, for threads that do not hold the interpreter.
    pub fn read_detached(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change it, for threads that do not hold the interpreter.
    pub fn write_detached(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
