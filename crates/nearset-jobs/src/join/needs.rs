//! What a run will take of memory and scratch space, before it starts.

use std::path::PathBuf;

use nearset_records::{Fields, ReadOptions, Source, free_space, scratch_folder};

use super::budget::LEAST_BYTES;
use super::{JoinPlan, Needs};
use crate::capacity::{Known, Survey, survey};
use crate::memory;
use crate::run::RunError;

/// What a record takes in scratch space if memory is too small, its keys aside: its place, and what becomes of it.
pub(super) const BYTES_SPILLED: u64 = 80;

/// What an id takes that is held in memory, about.
pub(super) const BYTES_PER_NAME: u64 = 32;

/// What a run holds, and may take.
pub(super) struct Demand {
    /// Memory that the run may take; `None` is what there is.
    pub memory: Option<u64>,
    /// Where the user wants copies to go, and what memory can't hold.
    pub scratch: Option<PathBuf>,
    /// What is held of each record, beside what the plan says.
    pub bytes_per_record: u64,
    /// What is held of nobody's records.
    pub fixed_bytes: u64,
    /// What each record takes in scratch space if memory is too small; `None` if the run can't go on then.
    pub spilled_per_record: Option<u64>,
    /// Whether it begins anew. A run that goes on has been through this, and has copied some of it.
    pub is_new: bool,
}

impl Needs {
    /// # Errors
    /// If memory or scratch space is too small.
    pub(super) fn new(sources: &[Source], fields: &Fields, plan: &JoinPlan, demand: Demand) -> Result<Self, RunError> {
        let Demand { memory, scratch, bytes_per_record, fixed_bytes, spilled_per_record, is_new } = demand;
        let Survey { capacity, copied_bytes } = survey(sources, &ReadOptions::new(fields.clone()))?;
        // What is held need not be read again.
        let copied_bytes = if plan.reads_again() { copied_bytes } else { 0 };
        let raw_bytes = sources.iter().filter_map(|source| source.bytes).sum::<u64>().saturating_add(copied_bytes);
        // A shingle takes 8 bytes, and a text has one per byte at most.
        let cache = if capacity.known == Known::Guessed { u64::MAX } else { raw_bytes.saturating_mul(8) };
        let each = plan.bytes_per_record + bytes_per_record;
        let held = capacity.records.saturating_mul(each).saturating_add(fixed_bytes);
        let bytes = held.saturating_add(plan.cache_bytes.min(cache));
        let available = memory.or_else(memory::available);
        let scratch = scratch.unwrap_or_else(|| scratch_folder(None));
        let scratch = if scratch.as_os_str().is_empty() { PathBuf::from(".") } else { scratch };
        let mut spilled_bytes = 0;
        if let Some(available) = available.filter(|&available| capacity.known != Known::Guessed && bytes > available) {
            match spilled_per_record {
                Some(each) if fixed_bytes <= available.max(LEAST_BYTES) => {
                    spilled_bytes = capacity.records.saturating_mul(each);
                }
                _ if is_new => {
                    return Err(RunError::Memory {
                        needed: bytes,
                        records: capacity.records,
                        what: "records",
                        available,
                    });
                }
                _ => {}
            }
        }
        let scratch_bytes = copied_bytes + spilled_bytes;
        if let Some(free) = free_space(&scratch).filter(|&free| is_new && scratch_bytes > free) {
            return Err(RunError::NoRoom { needed: scratch_bytes, folder: scratch, free });
        }
        Ok(Self {
            records: capacity,
            bytes,
            available,
            scratch_bytes: copied_bytes,
            spills: spilled_per_record.is_some(),
            spilled_bytes,
            scratch,
        })
    }
}

/// Checks that there is memory left, behind so many records.
pub(super) fn expect_memory(taken: u64, most_bytes: u64, records: u64) -> Result<(), RunError> {
    if taken <= most_bytes { Ok(()) } else { Err(RunError::MemoryTaken { taken, records, resumable: false }) }
}

impl JoinPlan {
    /// Memory that a run may take which holds all that it compares with.
    pub(super) fn most_bytes(&self) -> u64 {
        self.needs.as_ref().and_then(|needs| needs.available).unwrap_or(u64::MAX)
    }

    /// The memory that a run keeps to which can use scratch space for the rest.
    pub(super) fn budget(&self, given: Option<u64>) -> u64 {
        let available = || self.needs.as_ref().and_then(|needs| needs.available);
        // What was not given is left alone in part: others take memory, too, and so does reading.
        given.unwrap_or_else(|| available().map_or(u64::MAX, |available| available / 4 * 3))
    }

    /// What an entry takes while it is compared with: what the plan says, and what is found that shares its keys.
    pub(super) fn entry_bytes(&self) -> u64 {
        self.bytes_per_record + 8 * self.keys as u64 + size_of::<u32>() as u64
    }

    /// What a record takes in scratch space if memory is too small.
    pub(super) fn spilled_bytes(&self) -> u64 {
        BYTES_SPILLED + 16 * self.keys as u64
    }
}
