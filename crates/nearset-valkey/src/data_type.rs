//! The type of keys that hold filters: how the server saves, loads, rewrites, copies, weighs and frees them.
//!
//! Claim: an RDB file holds a filter as nearset's own file, whose version and checksums are checked when it is loaded; saving
//! takes [`PIECE`](crate::value::PIECE) bytes beside the filter. An append-only file that is rewritten holds the same bytes as
//! `NEAR.LOAD`.
//! Invariant: encoding 1 is a number whose bits say which parts follow (1 a filter, 2 one being loaded, whose first bytes are
//! kept), then each part as strings, the last of which is empty.
//! Not here: the bytes of a filter (`nearset::codec`).

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use nearset::family::WorkLimit;
use redis_module::native_types::RedisType;
use redis_module::raw;

use crate::server::{api, log, memory_is_over};
use crate::value::{Incoming, Pieces, Value};
use crate::{background, config, memory, seed};

/// The newest encoding of keys in RDB files.
const ENCODING: c_int = 1;

const FILTER: u64 = 1;
const INCOMING: u64 = 2;

/// Servers want exactly nine characters.
pub static FILTER_TYPE: RedisType = RedisType::new(
    "nearset--",
    ENCODING,
    raw::RedisModuleTypeMethods {
        version: raw::REDISMODULE_TYPE_METHOD_VERSION as u64,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite),
        mem_usage: Some(memory),
        digest: Some(digest),
        free: Some(free),
        aux_load: Some(seed::load),
        aux_save: Some(seed::save),
        aux_save_triggers: raw::REDISMODULE_AUX_BEFORE_RDB as c_int,
        // `free` gives large filters to a thread whose end can be waited for; the server's own can't be.
        free_effort: None,
        unlink: None,
        copy: Some(copy),
        defrag: Some(defrag),
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: Some(seed::save_if_used),
    },
);

/// Returns the server's pointer as what it is.
///
/// # Safety
/// The pointer must be one that [`Key::set`](crate::server::Key::set), [`load`] or [`copy`] gave to the server.
unsafe fn value_of<'v>(value: *const c_void) -> &'v Value {
    // SAFETY: the caller promises it.
    unsafe { &*value.cast::<Value>() }
}

type Part<'v> = &'v dyn Fn(&mut dyn io::Write) -> io::Result<()>;

/// Each part of a value with its bit, and how its bytes are written.
fn parts(value: &Value, mut each: impl FnMut(u64, Part<'_>)) {
    if let Some(filter) = &value.filter {
        each(FILTER, &|out| filter.encode(out));
    }
    if let Some(incoming) = &value.incoming {
        each(INCOMING, &|out| incoming.encode(out));
    }
}

unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes one of our values, and its own stream, to which it copies what is saved.
    let value = unsafe { value_of(value) };
    let put =
        |bytes: &[u8]| unsafe { api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    let mut present = 0;
    parts(value, |bit, _| present |= bit);
    // SAFETY: as above.
    unsafe { api!(RedisModule_SaveUnsigned(io, present)) };
    parts(value, |_, part| {
        Pieces::cut(part, put);
        put(&[]);
    });
}

unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    let loaded = catch_unwind(AssertUnwindSafe(|| match encoding {
        ENCODING => read(io),
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

/// Returns the limit on work: a client's `RESTORE` has one, while the server's own file and its primary are obeyed without.
fn work_limit(io: *mut raw::RedisModuleIO) -> WorkLimit {
    // SAFETY: the stream is the server's own, and so is the context that it gives.
    let flags = unsafe { api!(RedisModule_GetContextFlags(api!(RedisModule_GetContextFromIO(io)))) };
    let obeyed = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
    if flags & obeyed as c_int != 0 { WorkLimit::Unlimited } else { config::work_limit() }
}

fn read(io: *mut raw::RedisModuleIO) -> Result<Value, String> {
    // SAFETY: the stream is the server's own.
    let present = unsafe { api!(RedisModule_LoadUnsigned(io)) };
    // SAFETY: as above.
    if unsafe { api!(RedisModule_IsIOError(io)) } != 0 {
        return Err("the data is cut off".into());
    }
    if present == 0 || present & !(FILTER | INCOMING) != 0 {
        return Err(format!("it has parts {present}, which this module does not know: the data is damaged"));
    }
    let mut value = Value::loaded(None, None);
    if present & FILTER != 0 {
        value.filter = Some(read_part(io)?.decode(work_limit(io)).map_err(|error| error.to_string())?);
    }
    if present & INCOMING != 0 {
        value.incoming = Some(read_part(io)?);
    }
    Ok(value)
}

/// Strings up to an empty one.
fn read_part(io: *mut raw::RedisModuleIO) -> Result<Incoming, String> {
    let mut incoming: Option<Incoming> = None;
    loop {
        let mut length = 0;
        // SAFETY: the stream is the server's own. What it gives holds `length` bytes and is ours to free.
        let start = unsafe { api!(RedisModule_LoadStringBuffer(io, &mut length)) };
        if start.is_null() {
            return Err("the data is cut off".into());
        }
        // SAFETY: as above; the bytes are used before they are freed.
        let taken = take_piece(&mut incoming, unsafe { slice::from_raw_parts(start.cast(), length) });
        // SAFETY: as above, and freed once.
        unsafe { api!(RedisModule_Free(start.cast())) };
        if !taken? {
            return incoming.ok_or_else(|| "a part of it is empty: the data is damaged".to_owned());
        }
    }
}

/// Returns whether more pieces are to come.
fn take_piece(incoming: &mut Option<Incoming>, piece: &[u8]) -> Result<bool, String> {
    if piece.is_empty() {
        return Ok(false);
    }
    if incoming.is_none() {
        *incoming = Some(Incoming::begin(piece).map_err(|error| error.to_string())?);
    }
    incoming.as_mut().map_or(Ok(()), |incoming| incoming.push(piece)).map_err(|why| why.to_string())?;
    Ok(true)
}

unsafe extern "C" fn rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, value: *mut c_void) {
    // SAFETY: the server passes one of our values, its own stream and the key's name. The format names a string of the
    // server's, a number, a buffer with its length and a C string, in this order.
    let value = unsafe { value_of(value) };
    parts(value, |_, part| {
        let mut cursor: c_longlong = 0;
        Pieces::cut(part, |piece| unsafe {
            api!(RedisModule_EmitAOF(
                io,
                c"NEAR.LOAD".as_ptr(),
                c"slbc".as_ptr(),
                key,
                cursor,
                piece.as_ptr().cast::<c_char>(),
                piece.len(),
                c"REPLACE".as_ptr()
            ));
            cursor += piece.len() as c_longlong;
        });
    });
}

unsafe extern "C" fn memory(value: *const c_void) -> usize {
    // SAFETY: the server passes one of our values.
    unsafe { value_of(value) }.bytes() as usize
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes one of our values and its own digest.
    let value = unsafe { value_of(value) };
    parts(value, |_, part| {
        Pieces::cut(part, |piece| unsafe {
            api!(RedisModule_DigestAddStringBuffer(digest, piece.as_ptr().cast::<c_char>(), piece.len()))
        });
        // SAFETY: as above.
        unsafe { api!(RedisModule_DigestEndSequence(digest)) };
    });
}

/// Giving back pages is what takes time, so a large filter is freed on another thread; but not while the server evicts keys: it
/// counts what it has got by each, and would evict one after the other while the first is still being freed.
unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server passes one of our values for the last time.
    let value = unsafe { Box::from_raw(value.cast::<Value>()) };
    if !memory_is_over() {
        let bytes = value.bytes();
        background::discard(value, bytes);
    }
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes one of our values, and owns what is returned. Of null it says to the client that the key was not
    // copied, and leaves everything as it is.
    // Only this thread touches values.
    let value = unsafe { &mut *value.cast::<Value>().cast_mut() };
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
