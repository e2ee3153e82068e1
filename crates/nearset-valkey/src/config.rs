//! What an operator may set: `CONFIG SET near.memory-limit 1gb`, `CONFIG SET near.batch-limit 32mb`,
//! `CONFIG SET near.when-full refuse`, `CONFIG SET near.unlimited-work yes`, `CONFIG SET near.allow-overfull yes`; and
//! [`near.seed`](crate::seed).
//!
//! They speak when a client's command is carried out. What was carried out on a primary is never refused by a replica or while
//! the server loads its files, whatever these say there.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use nearset::family::WorkLimit;
use nearset::spec::WhenFull;
use redis_module::raw;

use crate::seed;

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

/// Whether filters are taken that keep the server busy for longer than usual with each item.
static UNLIMITED_WORK: AtomicBool = AtomicBool::new(false);

/// Whether files are taken of filters that hold more than they are made for.
static ALLOW_OVERFULL: AtomicBool = AtomicBool::new(false);

/// Returns the bytes that one key may take.
pub fn memory_limit() -> u64 {
    MEMORY_LIMIT.load(Ordering::Relaxed).unsigned_abs()
}

/// Returns how much work a client's filter may ask for.
pub fn work_limit() -> WorkLimit {
    if UNLIMITED_WORK.load(Ordering::Relaxed) { WorkLimit::Unlimited } else { WorkLimit::Usual }
}

/// Returns whether a client's file may hold a filter with more in it than it is made for.
pub fn allows_overfull() -> bool {
    ALLOW_OVERFULL.load(Ordering::Relaxed)
}

/// Returns the bytes of items that one command may bring.
pub fn batch_limit() -> u64 {
    BATCH_LIMIT.load(Ordering::Relaxed).unsigned_abs()
}

/// Returns what filters do when they are full, unless they were reserved with another wish.
pub fn when_full() -> WhenFull {
    if WHEN_FULL.load(Ordering::Relaxed) == REFUSE { WhenFull::Refuse } else { WhenFull::Grow }
}

/// Returns the number that a setting's private data points to.
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

/// Returns the answer that a setting's private data points to.
///
/// # Safety
/// The pointer must be one that [`register`] gave to the server.
unsafe fn answer_of(data: *mut c_void) -> &'static AtomicBool {
    // SAFETY: the caller promises it, and both are static.
    unsafe { &*data.cast::<AtomicBool>() }
}

unsafe extern "C" fn answer(_name: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the server passes what was registered.
    unsafe { answer_of(data) }.load(Ordering::Relaxed).into()
}

unsafe extern "C" fn set_answer(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { answer_of(data) }.store(value != 0, Ordering::Relaxed);
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
        let no_unless_said = |name: &CStr, value: &'static AtomicBool| {
            yes_or_no(
                ctx,
                name.as_ptr(),
                0,
                raw::REDISMODULE_CONFIG_DEFAULT,
                Some(answer),
                Some(set_answer),
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
            && no_unless_said(c"unlimited-work", &UNLIMITED_WORK)
            && no_unless_said(c"allow-overfull", &ALLOW_OVERFULL)
            && seed::register(ctx)
            && load(ctx) == ok
    }
}
