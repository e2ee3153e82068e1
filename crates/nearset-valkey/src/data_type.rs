//! The types of keys: how the server saves, loads, rewrites, copies, weighs and frees what they hold.
//!
//! Claim: an RDB file holds filters and indexes as nearset's own files, whose version and checksums are checked when they are loaded;
//! saving takes [`PIECE`](crate::value::PIECE) bytes beside them. An append-only file that is rewritten holds the same bytes in commands.
//! Not here: which parts a value has ([`Stored`] is implemented beside it), and their bytes (`nearset::codec`).

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use redis_module::native_types::RedisType;
use redis_module::raw;

use crate::index::IndexValue;
use crate::info::memory_is_over;
use crate::refusal::Outcome;
use crate::server::{Call, api, log};
use crate::stream::{Digest, Journal, Stream};
use crate::value::Value;
use crate::{background, memory, seed};

/// The newest encoding of keys in RDB files.
const ENCODING: c_int = 1;

/// What keys of a type hold.
pub trait Stored: Send + Sized + 'static {
    fn data_type() -> &'static RedisType;
    fn save(&self, to: &Stream);
    fn load(from: &Stream) -> Result<Self, String>;
    fn rewrite(&self, journal: &Journal);
    fn digest(&self, digest: &Digest);
    /// Returns the memory that it takes.
    fn bytes(&self) -> u64;
    /// Returns a copy, as `COPY` makes it; an error if there is no memory for it.
    fn copy(&mut self) -> Outcome<Self>;
    /// Lets a command wait for what is under way, if it can.
    fn wait(&mut self, _call: &Call<'_>) -> Outcome {
        Ok(())
    }
}

/// Servers want exactly nine characters. Beside filters it keeps the server's seed.
pub static FILTER_TYPE: RedisType = RedisType::new(
    "nearset--",
    ENCODING,
    raw::RedisModuleTypeMethods {
        aux_load: Some(seed::load),
        aux_save: Some(seed::save),
        aux_save_triggers: raw::REDISMODULE_AUX_BEFORE_RDB as c_int,
        aux_save2: Some(seed::save_if_used),
        ..methods::<Value>()
    },
);

pub static INDEX_TYPE: RedisType = RedisType::new("nearindex", ENCODING, methods::<IndexValue>());

const fn methods<V: Stored>() -> raw::RedisModuleTypeMethods {
    raw::RedisModuleTypeMethods {
        version: raw::REDISMODULE_TYPE_METHOD_VERSION as u64,
        rdb_load: Some(load::<V>),
        rdb_save: Some(save::<V>),
        aof_rewrite: Some(rewrite::<V>),
        mem_usage: Some(memory::<V>),
        digest: Some(digest::<V>),
        free: Some(free::<V>),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        // `free` gives what is large to a thread whose end can be waited for; the server's own can't be.
        free_effort: None,
        unlink: None,
        copy: Some(copy::<V>),
        defrag: Some(defrag),
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    }
}

/// Returns the server's pointer as what it is.
///
/// # Safety
/// The pointer must be one that [`Key::set`](crate::server::Key::set), [`load`] or [`copy`] gave to the server.
unsafe fn value_of<'v, V: Stored>(value: *const c_void) -> &'v V {
    // SAFETY: the caller promises it.
    unsafe { &*value.cast::<V>() }
}

unsafe extern "C" fn save<V: Stored>(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes one of our values, and its own stream.
    unsafe { value_of::<V>(value).save(&Stream::of(io)) };
}

unsafe extern "C" fn load<V: Stored>(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    // SAFETY: the stream is the server's own.
    let stream = unsafe { Stream::of(io) };
    let loaded = catch_unwind(AssertUnwindSafe(|| match encoding {
        ENCODING => V::load(&stream),
        newer => Err(format!("encoding {newer} is newer than this module reads ({ENCODING}): load a newer module")),
    }));
    let why = match loaded {
        Ok(Ok(value)) => return Box::into_raw(Box::new(value)).cast(),
        Ok(Err(why)) => why,
        Err(_) => "a condition that should not arise".to_owned(),
    };
    // SAFETY: the stream is the server's own.
    let ctx = unsafe { api!(RedisModule_GetContextFromIO(io)) };
    log(ctx, &format!("nearset: a key can't be loaded: {why}"));
    ptr::null_mut()
}

unsafe extern "C" fn rewrite<V: Stored>(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: the server passes one of our values, its own stream and the key's name.
    unsafe { value_of::<V>(value).rewrite(&Journal::of(io, key)) };
}

unsafe extern "C" fn memory<V: Stored>(value: *const c_void) -> usize {
    // SAFETY: the server passes one of our values.
    unsafe { value_of::<V>(value) }.bytes() as usize
}

unsafe extern "C" fn digest<V: Stored>(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes one of our values and its own digest.
    unsafe { value_of::<V>(value).digest(&Digest::of(digest)) };
}

/// Giving back pages is what takes time, so a large value is freed on another thread; but not while the server evicts keys: it
/// counts what it has got by each, and would evict one after the other while the first is still being freed.
unsafe extern "C" fn free<V: Stored>(value: *mut c_void) {
    // SAFETY: the server passes one of our values for the last time.
    let value = unsafe { Box::from_raw(value.cast::<V>()) };
    if !memory_is_over() {
        let bytes = value.bytes();
        background::discard(value, bytes);
    }
}

unsafe extern "C" fn copy<V: Stored>(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes one of our values, and owns what is returned. Of null it says to the client that the key was not
    // copied, and leaves everything as it is.
    // Only this thread touches values.
    let value = unsafe { &mut *value.cast::<V>().cast_mut() };
    let copy = memory::allow_copy(value.bytes()).and_then(|_floor| value.copy());
    match copy {
        Ok(copy) => Box::into_raw(Box::new(copy)).cast(),
        Err(why) => {
            log(ptr::null_mut(), &format!("nearset: a key can't be copied: {why}"));
            ptr::null_mut()
        }
    }
}

/// Moves what is small. Tables are whole pages, which do not fragment.
unsafe extern "C" fn defrag(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server passes the place where it keeps one of our values, whose memory it may move: nothing points to it.
    unsafe {
        let moved = api!(RedisModule_DefragAlloc(ctx, *value));
        if !moved.is_null() {
            *value = moved;
        }
    }
    0
}
