//! The server, as far as commands need it: arguments, replies, keys, replication.
//!
//! Claim: what a command sees of the server is safe to use. A [`Call`] lives as long as the command that it belongs to, so its
//! arguments can be borrowed without copying; a panic ends the command with an error, never the server.
//! Invariant: one thread at a time runs commands, which the server guarantees by its own lock.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_longlong, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use nearset::family::WorkLimit;
use redis_module::raw;

#[cfg(debug_assertions)]
use crate::allocator::tally;
use crate::config;
use crate::data_type::Stored;
use crate::info::{self, ServerMemory};
#[cfg(debug_assertions)]
use crate::memory;
use crate::refusal::{Outcome, Refusal};
use crate::stats;
use crate::value::Value;

/// Calls a function of the module API, which is there from version 7 of the server on.
macro_rules! api {
    ($name:ident ( $($argument:expr),* $(,)? )) => {
        raw::$name.expect(concat!(stringify!($name), " is part of the server's module API"))($($argument),*)
    };
}
pub(crate) use api;

/// Sends `command key DESCRIPTION bytes`, with `NEAR near` at the end if it is known, by a function that takes a format and what it names.
macro_rules! described {
    ($send:ident($to:expr), $command:expr, $key:expr, $description:expr, $near:expr) => {{
        let (description, near): (&[u8], Option<f64>) = ($description, $near);
        let format = if near.is_some() { c"scbcb" } else { c"scb" };
        let near = near.map_or_else(String::new, |near| near.to_string());
        // SAFETY: the place is the server's own, and so is the key's name. The format names a string of the server's, and a C string and
        // a buffer with its length, perhaps twice; what it does not name is not read.
        unsafe {
            api!($send(
                $to,
                $command.as_ptr(),
                format.as_ptr(),
                $key,
                c"DESCRIPTION".as_ptr(),
                description.as_ptr().cast::<c_char>(),
                description.len(),
                c"NEAR".as_ptr(),
                near.as_ptr().cast::<c_char>(),
                near.len()
            ))
        };
    }};
}
pub(crate) use described;

/// One command that a client sent.
pub struct Call<'a> {
    ctx: *mut raw::RedisModuleCtx,
    arguments: &'a [*mut raw::RedisModuleString],
    /// Whether it is a command that just came, rather than one that waited or another thread's.
    is_first: bool,
}

/// What a command's implementation looks like.
pub type Run = fn(&Call<'_>) -> Outcome;

/// Carries a command out, and answers with its refusal or its panic if there is one.
pub fn answer(ctx: *mut raw::RedisModuleCtx, argv: *mut *mut raw::RedisModuleString, argc: c_int, run: Run) -> c_int {
    answer_as(true, ctx, argv, argc, run)
}

/// [`answer`] for a command that has waited.
pub fn answer_again(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    run: Run,
) -> c_int {
    answer_as(false, ctx, argv, argc, run)
}

fn answer_as(
    is_first: bool,
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    run: Run,
) -> c_int {
    stats::COMMANDS.add(is_first.into());
    // SAFETY: the server passes `argc` arguments that live until the command ends.
    let arguments = unsafe { slice::from_raw_parts(argv, argc as usize) };
    let call = Call { ctx, arguments, is_first };
    #[cfg(debug_assertions)]
    tally::begin();
    // Whatever a panic leaves behind in a filter is bits that were set or not, each of which is a valid state.
    loop {
        match catch_unwind(AssertUnwindSafe(|| run(&call))) {
            // What was under way may be over by now.
            Ok(Err(Refusal::Wait(job))) => {
                if job.postpone(&call, run) {
                    break;
                }
            }
            outcome => {
                call.end(outcome);
                break;
            }
        }
    }
    #[cfg(debug_assertions)]
    call.expect_foreseen();
    raw::REDISMODULE_OK as c_int
}

/// Returns the bytes of one of the server's strings.
///
/// # Safety
/// The string must live as long as the caller says.
pub unsafe fn bytes_of<'s>(string: *const raw::RedisModuleString) -> &'s [u8] {
    let mut length = 0;
    // SAFETY: the server gives an address that holds `length` bytes for as long as the string lives.
    unsafe {
        let start = api!(RedisModule_StringPtrLen(string, &mut length));
        slice::from_raw_parts(start.cast(), length)
    }
}

impl<'a> Call<'a> {
    /// Another thread's, for a client that waits.
    pub fn of(ctx: *mut raw::RedisModuleCtx, arguments: &'a [*mut raw::RedisModuleString], is_first: bool) -> Self {
        Self { ctx, arguments, is_first }
    }

    pub fn context(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    pub fn strings(&self) -> &'a [*mut raw::RedisModuleString] {
        self.arguments
    }

    /// Returns whether the client can wait while others are served: not in transactions and scripts, nor a primary or a file.
    pub fn can_wait(&self) -> bool {
        self.is_first
            && !self.has_flag(
                raw::REDISMODULE_CTX_FLAGS_MULTI
                    | raw::REDISMODULE_CTX_FLAGS_LUA
                    | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
                    | raw::REDISMODULE_CTX_FLAGS_REPLICATED
                    | raw::REDISMODULE_CTX_FLAGS_LOADING,
            )
    }

    pub fn is_replica(&self) -> bool {
        self.has_flag(raw::REDISMODULE_CTX_FLAGS_SLAVE)
    }

    /// Answers with a refusal or a panic, if there was one.
    pub fn end(&self, outcome: std::thread::Result<Outcome>) {
        stats::REFUSED.add(u64::from(!matches!(outcome, Ok(Ok(())))));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(Refusal::Arity)) => {
                let name = String::from_utf8_lossy(self.argument(0));
                self.error(&format!("ERR wrong number of arguments for '{name}' command"));
            }
            Ok(Err(Refusal::WrongType)) => {
                self.error("WRONGTYPE Operation against a key holding the wrong kind of value");
            }
            Ok(Err(Refusal::Memory(why))) => self.error(&format!("OOM {why}")),
            Ok(Err(Refusal::Because(why))) => self.error(&format!("ERR {why}")),
            Ok(Err(Refusal::Wait(_))) | Err(_) => {
                self.error("ERR nearset met a condition that should not arise; the server's log has the details");
            }
        }
    }

    /// Returns how many arguments there are, the command's name included.
    pub fn count(&self) -> usize {
        self.arguments.len()
    }

    /// Returns an argument in place; the command's name is number 0.
    pub fn argument(&self, i: usize) -> &'a [u8] {
        // SAFETY: arguments live until the command ends, which `'a` does not outlive.
        unsafe { bytes_of(self.arguments[i]) }
    }

    /// Returns the arguments from one on.
    pub fn arguments_from(&self, first: usize) -> Arguments<'a> {
        Arguments { strings: self.arguments.get(first..).unwrap_or_default() }
    }

    /// Returns some of the arguments.
    pub fn arguments(&self, range: std::ops::Range<usize>) -> Arguments<'a> {
        Arguments { strings: self.arguments.get(range).unwrap_or_default() }
    }

    pub fn integer(&self, value: i64) {
        // SAFETY: the context is the command's own, here and in all replies below.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.ctx, value)) };
    }

    /// Numbers beyond 2^63 are shown as the largest that the protocol has.
    pub fn count_reply(&self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A fraction. The older protocol has none, and the server would write all digits of one, such as 0.80000000000000004: there
    /// it is a text with as few as say the same.
    pub fn double(&self, value: f64) {
        if self.has_flag(raw::REDISMODULE_CTX_FLAGS_RESP3) {
            // SAFETY: as above.
            unsafe { api!(RedisModule_ReplyWithDouble(self.ctx, value)) };
        } else if value != 0.0 && value.abs() < 1e-4 {
            self.bulk(format!("{value:e}").as_bytes());
        } else {
            self.bulk(value.to_string().as_bytes());
        }
    }

    pub fn bulk(&self, bytes: &[u8]) {
        // SAFETY: as above; the server copies the bytes.
        unsafe { api!(RedisModule_ReplyWithStringBuffer(self.ctx, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }

    pub fn null(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull(self.ctx)) };
    }

    pub fn ok(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.ctx, c"OK".as_ptr())) };
    }

    /// As many replies as this follow as one array.
    pub fn array(&self, length: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithArray(self.ctx, length as c_long)) };
    }

    /// As many pairs of replies as this follow as one map; an array of them in the older protocol.
    pub fn map(&self, pairs: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap(self.ctx, pairs as c_long)) };
    }

    fn error(&self, message: &str) {
        // An error is one line, and ends at the first zero byte.
        let line: Vec<u8> = message.bytes().map(|byte| if byte < b' ' { b' ' } else { byte }).collect();
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: as above; the server copies the message.
        unsafe { api!(RedisModule_ReplyWithError(self.ctx, line.as_ptr())) };
    }

    /// Logs a command that took more memory than it held against the limits.
    #[cfg(debug_assertions)]
    fn expect_foreseen(&self) {
        let (taken, foreseen) = (tally::most(), memory::foreseen());
        if self.limits_apply() && taken > foreseen.saturating_add(memory::UNFORESEEN) {
            let name = self.argument(0).escape_ascii();
            log(self.ctx, &format!("nearset: {name} took {taken} bytes where {foreseen} were foreseen"));
        }
    }

    /// Returns what the server holds its own memory against, if anything.
    pub fn memory(&self) -> Option<ServerMemory> {
        info::memory_of(self.ctx)
    }

    /// Returns whether a client asks for this, rather than the primary or the server's own file, which are obeyed without limits.
    pub fn limits_apply(&self) -> bool {
        !self.has_flag(raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING)
    }

    /// Returns how much work a filter may ask for that comes with this command.
    pub fn work_limit(&self) -> WorkLimit {
        if self.limits_apply() { config::work_limit() } else { WorkLimit::Unlimited }
    }

    /// Returns whether any of these is said of the command's circumstances.
    fn has_flag(&self, flags: u32) -> bool {
        // SAFETY: as above.
        let said = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) };
        said & flags as c_int != 0
    }

    /// Returns the bytes of the server's own copies while [`Self::replicate`] sends the command on: as the append-only file has it, in that
    /// file's buffer, and in that of replicas.
    pub fn bytes_to_send_on(&self) -> u64 {
        3 * self.arguments_from(0).map(|argument| argument.len() as u64).sum::<u64>()
    }

    /// Sends the command on to replicas and into the append-only file as it came.
    pub fn replicate(&self) {
        let Some((name, rest)) = self.arguments.split_first() else { return };
        // SAFETY: as above; a name of our own commands ends with a zero byte as all strings of the server's do. The format names an
        // array of strings and its length. `ReplicateVerbatim` would not know the arguments of a client that waits.
        unsafe {
            let mut length = 0;
            let name = api!(RedisModule_StringPtrLen(*name, &mut length));
            api!(RedisModule_Replicate(self.ctx, name, c"v".as_ptr(), rest.as_ptr(), rest.len()));
        }
    }

    /// Sends the command on as another one with the same key and the arguments from one on.
    pub fn replicate_items(&self, command: &CStr, first: usize) {
        let (key, items) = (self.arguments[1], &self.arguments[first..]);
        // SAFETY: as above; the format names a string of the server's, and an array of them with its length.
        unsafe {
            api!(RedisModule_Replicate(self.ctx, command.as_ptr(), c"sv".as_ptr(), key, items.as_ptr(), items.len()))
        };
    }

    /// Sends `command key word bytes` on in the command's place.
    pub fn replicate_as<V: Stored>(&self, command: &CStr, key: &Key<'_, V>, word: &CStr, bytes: &[u8]) {
        // SAFETY: as above; the format names a string of the server's, a C string and a buffer with its length, in this order.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx,
                command.as_ptr(),
                c"scb".as_ptr(),
                key.name,
                word.as_ptr(),
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ))
        };
    }

    /// Sends `command key DESCRIPTION bytes` on in the command's place, with `NEAR near` at the end if it is known.
    pub fn replicate_described<V: Stored>(
        &self,
        command: &CStr,
        key: &Key<'_, V>,
        description: &[u8],
        near: Option<f64>,
    ) {
        described!(RedisModule_Replicate(self.ctx), command, key.name, description, near);
    }

    /// Sends `command key seconds AT next ROTATE generations` on, before or in place of the command.
    pub fn replicate_window(&self, command: &CStr, key: &Key<'_>, seconds: &str, next: u64, generations: u64) {
        // SAFETY: as above; the format names a string of the server's, a buffer with its length, and a C string and a number, twice.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx,
                command.as_ptr(),
                c"sbclcl".as_ptr(),
                key.name,
                seconds.as_ptr().cast::<c_char>(),
                seconds.len(),
                c"AT".as_ptr(),
                next as c_longlong,
                c"ROTATE".as_ptr(),
                generations as c_longlong
            ))
        };
    }

    /// Opens a key for reading; `None` if there is no such key.
    pub fn read<V: Stored>(&self, argument: usize) -> Outcome<Option<Key<'_, V>>> {
        let key = self.open(argument, raw::REDISMODULE_READ);
        if key.is_empty() {
            return Ok(None);
        }
        key.expect_type().map(|()| Some(key))
    }

    /// Opens a key for writing; it may hold nothing yet. The command waits if something is under way with it.
    pub fn write<V: Stored>(&self, argument: usize) -> Outcome<Key<'_, V>> {
        let mut key: Key<'_, V> = self.write_during(argument)?;
        if let Some(value) = key.value_mut() {
            value.wait(self)?;
        }
        Ok(key)
    }

    /// [`Self::write`] for what is under way itself.
    pub fn write_during<V: Stored>(&self, argument: usize) -> Outcome<Key<'_, V>> {
        let key = self.open(argument, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE);
        if !key.is_empty() {
            key.expect_type()?;
        }
        Ok(key)
    }

    fn open<V: Stored>(&self, argument: usize, mode: u32) -> Key<'_, V> {
        let name = self.arguments[argument];
        // SAFETY: the context is the command's own and the name one of its arguments.
        let key = unsafe { api!(RedisModule_OpenKey(self.ctx, name, mode as c_int)) };
        Key { key, name, ctx: self.ctx, call: PhantomData }
    }
}

/// Arguments of a command, in place.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    strings: &'a [*mut raw::RedisModuleString],
}

impl<'a> Arguments<'a> {
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        // SAFETY: arguments live until the command ends, which `'a` does not outlive.
        self.strings.get(i).map(|string| unsafe { bytes_of(*string) })
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let next = self.get(0)?;
        self.strings = &self.strings[1..];
        Some(next)
    }
}

/// An open key, which holds a value of one type or nothing.
pub struct Key<'c, V: Stored = Value> {
    /// Null where a key that does not exist was opened for reading.
    key: *mut raw::RedisModuleKey,
    name: *mut raw::RedisModuleString,
    ctx: *mut raw::RedisModuleCtx,
    call: PhantomData<(&'c (), V)>,
}

impl<V: Stored> Key<'_, V> {
    fn is_empty(&self) -> bool {
        // SAFETY: the key is open; the server takes a null pointer for an empty one.
        self.key.is_null() || unsafe { api!(RedisModule_KeyType(self.key)) } == raw::REDISMODULE_KEYTYPE_EMPTY as c_int
    }

    fn expect_type(&self) -> Outcome {
        // SAFETY: the key is open.
        let found = unsafe { api!(RedisModule_ModuleTypeGetType(self.key)) };
        if found == *V::data_type().raw_type.borrow() { Ok(()) } else { Err(Refusal::WrongType) }
    }

    fn pointer(&self) -> Option<*mut V> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the key is open, and `expect_type` found our type when it was opened.
        Some(unsafe { api!(RedisModule_ModuleTypeGetValue(self.key)) }.cast())
    }

    pub fn value(&self) -> Option<&V> {
        // SAFETY: the value is of this type, and only this thread touches it. No other key of the command has it: where a command
        // takes several, it leaves out those of equal name.
        self.pointer().map(|value| unsafe { &*value })
    }

    pub fn value_mut(&mut self) -> Option<&mut V> {
        // SAFETY: as above.
        self.pointer().map(|value| unsafe { &mut *value })
    }

    /// Puts a value into an empty key, or in place of what it holds.
    pub fn set(&mut self, value: V) {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open for writing, and the server now owns the value, which it frees by the type's `free`.
        unsafe { api!(RedisModule_ModuleTypeSetValue(self.key, *V::data_type().raw_type.borrow(), value.cast())) };
    }

    pub fn delete(&mut self) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_DeleteKey(self.key)) };
    }

    /// Tells transactions and clients that watch this key what happened to it.
    pub fn changed(&self, event: &CStr) {
        self.signal();
        self.publish(event);
    }

    /// Tells transactions that watch this key that it is another.
    pub fn signal(&self) {
        // SAFETY: context and name are the command's own.
        unsafe { api!(RedisModule_SignalModifiedKey(self.ctx, self.name)) };
    }

    /// Tells clients that listen what else a change came to.
    pub fn publish(&self, event: &CStr) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_NotifyKeyspaceEvent(self.ctx, raw::REDISMODULE_NOTIFY_MODULE, event.as_ptr(), self.name));
        }
    }
}

impl<V: Stored> Drop for Key<'_, V> {
    fn drop(&mut self) {
        // SAFETY: the key is open, and closed once; the server takes a null pointer.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}

/// Returns the time, in milliseconds since 1970.
pub fn now() -> u64 {
    // SAFETY: the function takes nothing.
    u64::try_from(unsafe { api!(RedisModule_Milliseconds()) }).unwrap_or(0)
}

/// Something that is looked after from time to time; true as long as it is to be looked after again.
pub type Care = Box<dyn FnMut() -> bool>;

/// Runs something on the server's thread after so many milliseconds, and again and again while it wants to be.
pub fn look_after(ctx: *mut raw::RedisModuleCtx, milliseconds: i64, care: Care) {
    let care = Box::into_raw(Box::new((milliseconds, care)));
    // SAFETY: the context is a command's or a timer's own; the timer owns what it is given, and frees it when it is over.
    unsafe { api!(RedisModule_CreateTimer(ctx, milliseconds, Some(timer), care.cast())) };
}

unsafe extern "C" fn timer(ctx: *mut raw::RedisModuleCtx, care: *mut c_void) {
    // SAFETY: the server passes what `look_after` gave it, once.
    let (milliseconds, mut care) = *unsafe { Box::from_raw(care.cast::<(i64, Care)>()) };
    if care() {
        look_after(ctx, milliseconds, care);
    }
}

/// Returns whether a key is copied for a client, as far as the server tells who has no call: neither as a replica nor from its own file.
pub fn limits_apply_to_copies() -> bool {
    // SAFETY: the server takes a null context.
    let said = unsafe { api!(RedisModule_GetContextFlags(ptr::null_mut())) };
    said & (raw::REDISMODULE_CTX_FLAGS_SLAVE | raw::REDISMODULE_CTX_FLAGS_LOADING) as c_int == 0
}

/// Writes a line to the server's log.
pub fn log(ctx: *mut raw::RedisModuleCtx, message: &str) {
    let line = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the server takes a null context too; the format takes one C string.
    unsafe { api!(RedisModule_Log(ctx, c"warning".as_ptr(), c"%s".as_ptr(), line.as_ptr())) };
}

const _: () = assert!(size_of::<c_longlong>() == size_of::<i64>());

/// Tells the server what the module takes care of itself: streams that end early, and keys that are opened for writing and
/// then not changed. Loading from a primary while the old keys still answer is fine too, and so are slots that come in before
/// they are the node's own, since nothing lives beside the keys.
pub fn announce(ctx: *mut raw::RedisModuleCtx) {
    /// Without it, Valkey 9 refuses `CLUSTER MIGRATESLOTS`. Redis gives this bit no meaning, nor its header a name.
    const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;
    const OPTIONS: u32 = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
        | HANDLE_ATOMIC_SLOT_MIGRATION;
    // SAFETY: the context is the module's own, while it is being loaded.
    unsafe { api!(RedisModule_SetModuleOptions(ctx, OPTIONS as c_int)) };
}
