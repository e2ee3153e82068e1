//! The seed of filters that are reserved without one: a secret of the server's.
//!
//! Claim: who does not know it can't make items that a filter mistakes for each other, nor copies that it misses, any better than by
//! chance. All filters of a server have the same, so that they merge.
//! Invariant: what `near.seed` says; else what the server's RDB file or its primary says; else 128 bits drawn when the module was loaded,
//! which are saved once a filter has them.
//! Not here: the seeds of filters, each of which keeps its own.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nearset::Seed;
use redis_module::raw;

use crate::server::{api, bytes_of};

struct State {
    /// What an operator said.
    told: Option<Seed>,
    /// What was drawn or loaded.
    own: Option<Seed>,
    /// Whether a filter has it, here or where it was loaded from.
    is_used: bool,
}

static STATE: Mutex<State> = Mutex::new(State { told: None, own: None, is_used: false });

/// What was told, as the server gets it back.
static TEXT: AtomicPtr<raw::RedisModuleString> = AtomicPtr::new(ptr::null_mut());

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the seed of a filter that is reserved without one.
pub fn of_server() -> Seed {
    let mut state = state();
    state.told.or(state.own.inspect(|_| state.is_used = true)).unwrap_or_default()
}

/// Registers the setting and draws a seed. False if the server can't.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> bool {
    let mut drawn = [0; size_of::<u128>()];
    // SAFETY: the pointers were set when the module was initialised; the room has the length that is told; the callbacks have the types
    // that the server calls them by.
    unsafe {
        let (Some(random), Some(register)) = (raw::RedisModule_GetRandomBytes, raw::RedisModule_RegisterStringConfig)
        else {
            return false;
        };
        random(drawn.as_mut_ptr(), drawn.len());
        state().own = Some(Seed::from_bytes(drawn));
        let flags = raw::REDISMODULE_CONFIG_SENSITIVE;
        register(ctx, c"seed".as_ptr(), c"".as_ptr(), flags, Some(told), Some(tell), None, ptr::null_mut())
            == raw::REDISMODULE_OK as c_int
    }
}

unsafe extern "C" fn told(_name: *const c_char, _data: *mut c_void) -> *mut raw::RedisModuleString {
    let text = TEXT.load(Ordering::Relaxed);
    if text.is_null() {
        // SAFETY: the server takes a null context for a string that is freed by hand; it is kept for good.
        let empty = unsafe { api!(RedisModule_CreateString(ptr::null_mut(), c"".as_ptr(), 0)) };
        TEXT.store(empty, Ordering::Relaxed);
        return empty;
    }
    text
}

unsafe extern "C" fn tell(
    _name: *const c_char,
    text: *mut raw::RedisModuleString,
    _data: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the server passes a string of its own, which is kept beyond the call, and a place for the error; contexts may be null.
    unsafe {
        let bytes = bytes_of(text);
        let seed = match std::str::from_utf8(bytes).map(str::parse::<Seed>) {
            _ if bytes.is_empty() => None,
            Ok(Ok(seed)) => Some(seed),
            _ => {
                let why = c"a seed is a number or 32 hexadecimal digits; none for one that the server draws";
                *error = api!(RedisModule_CreateString(ptr::null_mut(), why.as_ptr(), why.count_bytes()));
                return raw::REDISMODULE_ERR as c_int;
            }
        };
        state().told = seed;
        api!(RedisModule_RetainString(ptr::null_mut(), text));
        let old = TEXT.swap(text, Ordering::Relaxed);
        if !old.is_null() {
            api!(RedisModule_FreeString(ptr::null_mut(), old));
        }
    }
    raw::REDISMODULE_OK as c_int
}

/// Saves the seed, or that there is none: for servers that want something to be written.
pub unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, _when: c_int) {
    let State { own, is_used, .. } = *state();
    let bytes = own.filter(|_| is_used).map_or(Vec::new(), |seed| seed.to_bytes().to_vec());
    // SAFETY: the stream is the server's own, and it copies the bytes.
    unsafe { api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len())) };
}

/// Saves the seed if a filter has it. A file in which nothing was written can be loaded without the module.
pub unsafe extern "C" fn save_if_used(io: *mut raw::RedisModuleIO, when: c_int) {
    if state().is_used {
        // SAFETY: as the caller promises.
        unsafe { save(io, when) };
    }
}

pub unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, _encoding: c_int, _when: c_int) -> c_int {
    let mut length = 0;
    // SAFETY: the stream is the server's own. What it gives holds `length` bytes, and is ours to free, once.
    unsafe {
        let start = api!(RedisModule_LoadStringBuffer(io, &mut length));
        if start.is_null() {
            return raw::REDISMODULE_ERR as c_int;
        }
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length);
        let seed = bytes.try_into().map(Seed::from_bytes);
        let is_damaged = seed.is_err() && !bytes.is_empty();
        api!(RedisModule_Free(start.cast()));
        if let Ok(seed) = seed {
            let mut state = state();
            (state.own, state.is_used) = (Some(seed), true);
        }
        if is_damaged { raw::REDISMODULE_ERR as c_int } else { raw::REDISMODULE_OK as c_int }
    }
}
