//! What the server's `INFO` says of its memory, and may be asked without a command.

use std::ffi::{CStr, CString};
use std::ptr;

use redis_module::raw;

use crate::server::api;

/// The server's memory beside its limit, `maxmemory`.
#[derive(Clone, Copy)]
pub struct ServerMemory {
    pub most: u64,
    /// Counted as the server does before it evicts or refuses: without buffers of replicas.
    pub used: u64,
    /// What is no key's and can't be evicted.
    pub own: u64,
    /// Whether it evicts keys rather than going beyond.
    pub evicts: bool,
}

/// Returns what the server holds its own memory against, if anything.
pub fn memory() -> Option<ServerMemory> {
    memory_of(ptr::null_mut())
}

/// The same, by a command's own context.
pub fn memory_of(ctx: *mut raw::RedisModuleCtx) -> Option<ServerMemory> {
    // SAFETY: the function takes nothing.
    let ratio = f64::from(unsafe { api!(RedisModule_GetUsedMemoryRatio()) });
    if ratio == 0.0 {
        return None;
    }
    let info = Info::of(ctx, c"memory");
    let most = info.count(c"maxmemory");
    let policy = info.text(c"maxmemory_policy");
    // With nothing that may expire there is nothing for these to evict.
    let evicts = match policy {
        b"noeviction" => false,
        policy if policy.starts_with(b"volatile") => may_expire(ctx),
        _ => true,
    };
    Some(ServerMemory { most, used: (ratio * most as f64) as u64, own: info.count(c"used_memory_overhead"), evicts })
}

/// Returns whether the server has more memory than `maxmemory` allows.
pub fn memory_is_over() -> bool {
    // SAFETY: the function takes nothing.
    unsafe { api!(RedisModule_GetUsedMemoryRatio()) > 1.0 }
}

/// Returns whether a key in one of the databases that there usually are has a time to live.
fn may_expire(ctx: *mut raw::RedisModuleCtx) -> bool {
    const DATABASES: u32 = 16;
    let info = Info::of(ctx, c"keyspace");
    (0..DATABASES).filter_map(|database| CString::new(format!("db{database}")).ok()).any(|database| {
        let mut counts = info.text(&database).split(|byte| *byte == b',');
        counts.any(|count| count.strip_prefix(b"expires=").is_some_and(|expires| expires != b"0"))
    })
}

/// A section of what `INFO` says.
struct Info {
    ctx: *mut raw::RedisModuleCtx,
    fields: *mut raw::RedisModuleServerInfoData,
}

impl Info {
    fn of(ctx: *mut raw::RedisModuleCtx, section: &CStr) -> Self {
        // SAFETY: the context is a command's own, or null, which the server takes; here and below.
        Self { ctx, fields: unsafe { api!(RedisModule_GetServerInfo(ctx, section.as_ptr())) } }
    }

    /// Returns a number; 0 if there is none.
    fn count(&self, field: &CStr) -> u64 {
        // SAFETY: the section was read and is freed below; the server takes a null pointer for the error.
        unsafe { api!(RedisModule_ServerInfoGetFieldUnsigned(self.fields, field.as_ptr(), ptr::null_mut())) }
    }

    /// Returns a text; empty if there is none.
    fn text(&self, field: &CStr) -> &[u8] {
        // SAFETY: as above. The server gives null, or a C string that lives as long as the section.
        unsafe {
            let start = api!(RedisModule_ServerInfoGetFieldC(self.fields, field.as_ptr()));
            if start.is_null() { &[] } else { CStr::from_ptr(start).to_bytes() }
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the section was read, and is freed once.
        unsafe { api!(RedisModule_FreeServerInfo(self.ctx, self.fields)) };
    }
}
