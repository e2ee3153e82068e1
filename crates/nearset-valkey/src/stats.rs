//! What the module has done since the server started: its section of `INFO`.
//!
//! Claim: keeping it costs a command some additions and, where items are hashed, two looks at the clock. Nothing here looks at keys.
//! What replicas and a server that loads its files repeat is counted where it is repeated.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use redis_module::{InfoContext, basic_info_command_handler, raw};

use crate::server::api;

/// A number that only grows.
pub struct Count {
    /// As `INFO` names it, after `near_`.
    name: &'static CStr,
    value: AtomicU64,
}

impl Count {
    const fn new(name: &'static CStr) -> Self {
        Self { name, value: AtomicU64::new(0) }
    }

    pub fn add(&self, more: u64) {
        self.value.fetch_add(more, Ordering::Relaxed);
    }
}

pub static COMMANDS: Count = Count::new(c"commands");
pub static REFUSED: Count = Count::new(c"commands_refused");
/// Commands whose work another thread did.
pub static ON_THREADS: Count = Count::new(c"commands_on_threads");
pub static ADDED: Count = Count::new(c"items_added");
pub static ASKED: Count = Count::new(c"items_asked");
static HASHING: Count = Count::new(c"hashing_usec");
/// Filters that came to be nearly full.
pub static NEARLY_FULL: Count = Count::new(c"filters_nearly_full");
pub static GROWN: Count = Count::new(c"generations_added");
pub static FORGOTTEN: Count = Count::new(c"generations_forgotten");

const ALL: [&Count; 9] = [&COMMANDS, &REFUSED, &ON_THREADS, &ADDED, &ASKED, &HASHING, &NEARLY_FULL, &GROWN, &FORGOTTEN];

/// Does what hashes items, looks them up or adds them, and counts its time.
pub fn hashing<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    HASHING.add(began.elapsed().as_nanos() as u64);
    done
}

/// Registers the section.
pub fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: the context is the module's own, while it is being loaded; the function has the type that the server calls it by.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx, Some(tell))) };
}

/// The time is counted in nanoseconds, since most commands take less than a microsecond or two, and told in microseconds.
unsafe extern "C" fn tell(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // SAFETY: the context is the server's own for this call; it refuses a section that was not asked for, and copies names.
    unsafe {
        if api!(RedisModule_InfoAddSection(info, c"stats".as_ptr())) == raw::REDISMODULE_OK as c_int {
            for count in ALL {
                let value = count.value.load(Ordering::Relaxed);
                let value = if std::ptr::eq(count, &raw const HASHING) { value / 1000 } else { value };
                api!(RedisModule_InfoAddFieldULongLong(info, count.name.as_ptr(), value));
            }
        }
    }
    // In a crash report, where Rust's own stack was.
    basic_info_command_handler(&InfoContext::new(info), for_crash_report != 0);
}
