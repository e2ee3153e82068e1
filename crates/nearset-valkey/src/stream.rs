//! The server's own streams, as values need them: its RDB file or a payload of `RESTORE`, its append-only file, and a digest.
//!
//! Invariant: a part of a value, such as a filter's file, is strings of [`PIECE`](crate::value::PIECE) bytes, then an empty one.

use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::{io, slice};

use nearset::family::WorkLimit;
use redis_module::raw;

use crate::config;
use crate::server::{api, described};
use crate::value::{Incoming, Pieces};

/// What writes a part.
pub type Part<'v> = &'v dyn Fn(&mut dyn io::Write) -> io::Result<()>;

/// A stream that a value is saved to or loaded from, for as long as the server lends it.
pub struct Stream(*mut raw::RedisModuleIO);

impl Stream {
    /// # Safety
    /// The pointer must be the server's own, and outlive the stream.
    pub unsafe fn of(io: *mut raw::RedisModuleIO) -> Self {
        Self(io)
    }

    pub fn put_count(&self, count: u64) {
        // SAFETY: the stream is the server's own, here and in all functions below.
        unsafe { api!(RedisModule_SaveUnsigned(self.0, count)) };
    }

    pub fn put_number(&self, number: f64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SaveDouble(self.0, number)) };
    }

    pub fn put(&self, bytes: &[u8]) {
        // SAFETY: as above; the server copies the bytes.
        unsafe { api!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }

    pub fn put_part(&self, part: Part<'_>) {
        Pieces::cut(part, |piece| self.put(piece));
        self.put(&[]);
    }

    pub fn count(&self) -> Result<u64, String> {
        // SAFETY: as above.
        let count = unsafe { api!(RedisModule_LoadUnsigned(self.0)) };
        self.expect_more().map(|()| count)
    }

    pub fn number(&self) -> Result<f64, String> {
        // SAFETY: as above.
        let number = unsafe { api!(RedisModule_LoadDouble(self.0)) };
        self.expect_more().map(|()| number)
    }

    fn expect_more(&self) -> Result<(), String> {
        // SAFETY: as above.
        if unsafe { api!(RedisModule_IsIOError(self.0)) } != 0 { Err("the data is cut off".into()) } else { Ok(()) }
    }

    /// Reads a string, and returns what is made of it.
    pub fn string<T>(&self, read: impl FnOnce(&[u8]) -> Result<T, String>) -> Result<T, String> {
        let mut length = 0;
        // SAFETY: as above. What the server gives holds `length` bytes and is ours to free.
        let start = unsafe { api!(RedisModule_LoadStringBuffer(self.0, &mut length)) };
        if start.is_null() {
            return Err("the data is cut off".into());
        }
        // SAFETY: as above; the bytes are used before they are freed.
        let made = read(unsafe { slice::from_raw_parts(start.cast(), length) });
        // SAFETY: as above, and freed once.
        unsafe { api!(RedisModule_Free(start.cast())) };
        made
    }

    /// Reads a part.
    pub fn part(&self) -> Result<Incoming, String> {
        let mut incoming: Option<Incoming> = None;
        while self.string(|piece| take_piece(&mut incoming, piece))? {}
        incoming.ok_or_else(|| "a part of it is empty: the data is damaged".to_owned())
    }

    /// Returns the limit on work: a client's `RESTORE` has one, while the server's own file and its primary are obeyed without.
    pub fn work_limit(&self) -> WorkLimit {
        // SAFETY: as above, and so is the context that the stream gives.
        let flags = unsafe { api!(RedisModule_GetContextFlags(api!(RedisModule_GetContextFromIO(self.0)))) };
        let obeyed = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
        if flags & obeyed as c_int != 0 { WorkLimit::Unlimited } else { config::work_limit() }
    }
}

/// Returns whether more pieces are to come.
fn take_piece(incoming: &mut Option<Incoming>, piece: &[u8]) -> Result<bool, String> {
    if piece.is_empty() {
        return Ok(false);
    }
    let incoming = match incoming {
        Some(incoming) => incoming,
        None => incoming.insert(Incoming::begin(piece).map_err(|error| error.to_string())?),
    };
    let room = incoming.room_for(piece.len());
    incoming.push(piece, room).map_err(|why| why.to_string())?;
    Ok(true)
}

/// An append-only file that is rewritten, at one of its keys.
pub struct Journal {
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
}

impl Journal {
    /// # Safety
    /// The pointers must be the server's own, and outlive the journal.
    pub unsafe fn of(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString) -> Self {
        Self { io, key }
    }

    /// Writes `command key cursor piece` for every piece of a part, with a word at the end if there is one.
    pub fn load(&self, command: &CStr, part: Part<'_>, word: Option<&CStr>) {
        let format = if word.is_some() { c"slbc" } else { c"slb" };
        let word = word.unwrap_or_default();
        let mut cursor: c_longlong = 0;
        // SAFETY: the stream is the server's own. The format names a string of the server's, a number, a buffer with its length and
        // perhaps a C string, in this order; what it does not name is not read.
        Pieces::cut(part, |piece| unsafe {
            api!(RedisModule_EmitAOF(
                self.io,
                command.as_ptr(),
                format.as_ptr(),
                self.key,
                cursor,
                piece.as_ptr().cast::<c_char>(),
                piece.len(),
                word.as_ptr()
            ));
            cursor += piece.len() as c_longlong;
        });
    }

    /// Writes `command key DESCRIPTION bytes`, with `NEAR near` at the end if it is known.
    pub fn reserve(&self, command: &CStr, description: &[u8], near: Option<f64>) {
        described!(RedisModule_EmitAOF(self.io), command, self.key, description, near);
    }

    /// Writes `command key seconds AT next`.
    pub fn window(&self, command: &CStr, seconds: &str, next: u64) {
        // SAFETY: as above, with a buffer, a C string and a number.
        unsafe {
            api!(RedisModule_EmitAOF(
                self.io,
                command.as_ptr(),
                c"sbcl".as_ptr(),
                self.key,
                seconds.as_ptr().cast::<c_char>(),
                seconds.len(),
                c"AT".as_ptr(),
                next as c_longlong
            ))
        };
    }

    /// Writes `command key bytes`.
    pub fn write(&self, command: &CStr, bytes: &[u8]) {
        // SAFETY: as above, with one buffer.
        unsafe {
            api!(RedisModule_EmitAOF(
                self.io,
                command.as_ptr(),
                c"sb".as_ptr(),
                self.key,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ))
        };
    }
}

/// What `DEBUG DIGEST` makes of values.
pub struct Digest(*mut raw::RedisModuleDigest);

impl Digest {
    /// # Safety
    /// The pointer must be the server's own, and outlive the digest.
    pub unsafe fn of(digest: *mut raw::RedisModuleDigest) -> Self {
        Self(digest)
    }

    pub fn add(&self, bytes: &[u8]) {
        // SAFETY: the digest is the server's own.
        unsafe { api!(RedisModule_DigestAddStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }

    /// Ends a sequence: what comes next is another element of the value.
    pub fn end(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_DigestEndSequence(self.0)) };
    }
}
