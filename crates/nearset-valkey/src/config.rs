//! What an operator may set: `CONFIG SET near.memory-limit 1gb`, `CONFIG SET near.batch-limit 32mb`,
//! `CONFIG SET near.when-full refuse`.
//!
//! They speak when a client's command is carried out. What was carried out on a primary is never refused by a replica or while
//! the server loads its files, whatever these say there.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use nearset::generations::WhenFull;
use redis_module::raw;

/// Bytes that one key may take.
static MEMORY_LIMIT: AtomicI64 = AtomicI64::new(DEFAULT_LIMIT);
const DEFAULT_LIMIT: i64 = 512 << 20;

/// Bytes of items that one command may bring. A server does nothing else while it hashes them: about 30 ms by the rate of texts
/// that `make bench-service` measures.
static BATCH_LIMIT: AtomicI64 = AtomicI64::new(DEFAULT_BATCH);
const DEFAULT_BATCH: i64 = 8 << 20;

static WHEN_FULL: AtomicI32 = AtomicI32::new(GROW);
const GROW: c_int = 0;
const REFUSE: c_int = 1;

/// Bytes that one key may take.
pub fn memory_limit() -> u64 {
    MEMORY_LIMIT.load(Ordering::Relaxed).unsigned_abs()
}

/// Bytes of items that one command may bring.
pub fn batch_limit() -> u64 {
    BATCH_LIMIT.load(Ordering::Relaxed).unsigned_abs()
}

/// What filters do when they are full, unless they were reserved with another wish.
pub fn when_full() -> WhenFull {
    if WHEN_FULL.load(Ordering::Relaxed) == REFUSE { WhenFull::Refuse } else { WhenFull::Grow }
}

/// The number that a setting's private data points to.
///
/// # Safety
/// The pointer must be one that [`register`] gave to the server.
unsafe fn number_of(data: *mut c_void) -> &'static AtomicI64 {
    // SAFETY: the caller promises it, and both are static.
    unsafe { &*data.cast::<AtomicI64>() }
}

unsafe extern "C" fn limit(_name: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: the server passes what was registered.
    unsafe { number_of(data) }.load(Ordering::Relaxed)
}

unsafe extern "C" fn set_limit(
    _name: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { number_of(data) }.store(value, Ordering::Relaxed);
    raw::REDISMODULE_OK as c_int
}

extern "C" fn full(_name: *const c_char, _data: *mut c_void) -> c_int {
    WHEN_FULL.load(Ordering::Relaxed)
}

extern "C" fn set_full(
    _name: *const c_char,
    value: c_int,
    _data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    WHEN_FULL.store(value, Ordering::Relaxed);
    raw::REDISMODULE_OK as c_int
}

/// Registers the settings and reads what the server's configuration says of them. False if the server has no settings for
/// modules, which came with version 7.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> bool {
    const NAMES: [&CStr; 2] = [c"grow", c"refuse"];
    const VALUES: [c_int; 2] = [GROW, REFUSE];
    let mut names = NAMES.map(CStr::as_ptr);
    // SAFETY: the pointers were set when the module was initialised; names and values outlive the calls, which copy them;
    // the callbacks have the types that the server calls them by.
    unsafe {
        let (Some(numeric), Some(choice), Some(load)) =
            (raw::RedisModule_RegisterNumericConfig, raw::RedisModule_RegisterEnumConfig, raw::RedisModule_LoadConfigs)
        else {
            return false;
        };
        let ok = raw::REDISMODULE_OK as c_int;
        let bytes = |name: &CStr, default: i64, value: &'static AtomicI64| {
            numeric(
                ctx,
                name.as_ptr(),
                default,
                raw::REDISMODULE_CONFIG_MEMORY,
                1,
                c_longlong::MAX,
                Some(limit),
                Some(set_limit),
                None,
                ptr::from_ref(value).cast_mut().cast(),
            ) == ok
        };
        bytes(c"memory-limit", DEFAULT_LIMIT, &MEMORY_LIMIT)
            && bytes(c"batch-limit", DEFAULT_BATCH, &BATCH_LIMIT)
            && choice(
                ctx,
                c"when-full".as_ptr(),
                GROW,
                raw::REDISMODULE_CONFIG_DEFAULT,
                names.as_mut_ptr(),
                VALUES.as_ptr(),
                names.len() as c_int,
                Some(full),
                Some(set_full),
                None,
                ptr::null_mut(),
            ) == ok
            && load(ctx) == ok
    }
}
