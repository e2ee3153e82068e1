//! What an operator may set: `CONFIG SET near.memory-limit 1gb`, `CONFIG SET near.when-full refuse`,
//! `CONFIG SET near.unlimited-work yes`.
//!
//! They speak when a client's command is carried out. What was carried out on a primary is never refused by a replica or while
//! the server loads its files, whatever these say there.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use nearset::family::WorkLimit;
use nearset::generations::WhenFull;
use redis_module::raw;

/// Bytes that one key may take.
static MEMORY_LIMIT: AtomicI64 = AtomicI64::new(DEFAULT_LIMIT);
const DEFAULT_LIMIT: i64 = 512 << 20;

static WHEN_FULL: AtomicI32 = AtomicI32::new(GROW);
const GROW: c_int = 0;
const REFUSE: c_int = 1;

/// Whether filters are taken that keep the server busy for longer than usual with each item.
static UNLIMITED_WORK: AtomicBool = AtomicBool::new(false);

/// Bytes that one key may take.
pub fn memory_limit() -> u64 {
    MEMORY_LIMIT.load(Ordering::Relaxed).unsigned_abs()
}

/// How much work a client's filter may ask for.
pub fn work_limit() -> WorkLimit {
    if UNLIMITED_WORK.load(Ordering::Relaxed) { WorkLimit::Unlimited } else { WorkLimit::Usual }
}

/// What filters do when they are full, unless they were reserved with another wish.
pub fn when_full() -> WhenFull {
    if WHEN_FULL.load(Ordering::Relaxed) == REFUSE { WhenFull::Refuse } else { WhenFull::Grow }
}

extern "C" fn limit(_name: *const c_char, _data: *mut c_void) -> c_longlong {
    MEMORY_LIMIT.load(Ordering::Relaxed)
}

extern "C" fn set_limit(
    _name: *const c_char,
    value: c_longlong,
    _data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    MEMORY_LIMIT.store(value, Ordering::Relaxed);
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

extern "C" fn unlimited_work(_name: *const c_char, _data: *mut c_void) -> c_int {
    UNLIMITED_WORK.load(Ordering::Relaxed).into()
}

extern "C" fn set_unlimited_work(
    _name: *const c_char,
    value: c_int,
    _data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    UNLIMITED_WORK.store(value != 0, Ordering::Relaxed);
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
        let (Some(numeric), Some(choice), Some(yes_or_no), Some(load)) = (
            raw::RedisModule_RegisterNumericConfig,
            raw::RedisModule_RegisterEnumConfig,
            raw::RedisModule_RegisterBoolConfig,
            raw::RedisModule_LoadConfigs,
        ) else {
            return false;
        };
        let ok = raw::REDISMODULE_OK as c_int;
        numeric(
            ctx,
            c"memory-limit".as_ptr(),
            DEFAULT_LIMIT,
            raw::REDISMODULE_CONFIG_MEMORY,
            1,
            c_longlong::MAX,
            Some(limit),
            Some(set_limit),
            None,
            ptr::null_mut(),
        ) == ok
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
            && yes_or_no(
                ctx,
                c"unlimited-work".as_ptr(),
                0,
                raw::REDISMODULE_CONFIG_DEFAULT,
                Some(unlimited_work),
                Some(set_unlimited_work),
                None,
                ptr::null_mut(),
            ) == ok
            && load(ctx) == ok
    }
}
