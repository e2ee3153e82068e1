//! Counters that another thread may watch, and the way to stop a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::RunError;

/// How far a run has come.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Records decided on.
    pub records: AtomicU64,
    /// Bytes of these records.
    pub bytes: AtomicU64,
    /// Bytes read from disk, compressed as they lie there.
    pub disk_bytes: AtomicU64,
    /// Records found to be near another.
    pub removed: AtomicU64,
    /// Records that could not be read.
    pub faulty: AtomicU64,
    /// Memory of the filter.
    pub filter_bytes: AtomicU64,
    /// Whether all records are decided on and the inputs are read once more for the report.
    pub rechecking: AtomicBool,
    stop: AtomicBool,
}

impl Progress {
    /// Returns a run that has not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to end. It keeps what is needed to resume it, if there is a checkpoint.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// An error as soon as the run is asked to end.
    pub(crate) fn go_on(&self) -> Result<(), RunError> {
        if self.is_stopped() { Err(RunError::STOPPED) } else { Ok(()) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
