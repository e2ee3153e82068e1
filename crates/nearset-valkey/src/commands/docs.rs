//! What the server is told of a command, and tells clients by `COMMAND DOCS`.

use std::ffi::{CStr, c_int};

use redis_module::raw;

pub type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

pub struct Command {
    pub name: &'static CStr,
    pub entry: Entry,
    /// Words that the server knows: `write`, `readonly`, `deny-oom`, `fast`.
    pub flags: &'static CStr,
    /// Whether it tells, or lets a client know, what makes a filter's answers unpredictable: only for those who may know the seed.
    pub is_trusted: bool,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    /// Arguments with the name; negative for "at least".
    pub arity: c_int,
    pub keys: &'static [Keys],
    pub arguments: &'static [Argument],
}

/// Where keys stand, and what becomes of them.
pub struct Keys {
    pub first: c_int,
    /// Relative to the first; -1 for the last argument.
    pub last: c_int,
    pub flags: u32,
}

impl Keys {
    pub const READ: Self = Self::one(raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS);
    pub const CREATE: Self = Self::one(raw::REDISMODULE_CMD_KEY_OW | raw::REDISMODULE_CMD_KEY_INSERT);
    pub const ADD: Self =
        Self::one(raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_INSERT);
    pub const CHANGE: Self = Self::one(raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE);

    const fn one(flags: u32) -> Self {
        Self { first: 1, last: 0, flags }
    }
}

pub struct Argument {
    pub name: &'static CStr,
    pub kind: raw::RedisModuleCommandArgType,
    pub token: Option<&'static CStr>,
    pub flags: u32,
    /// Which of the command's keys it is.
    pub key: c_int,
    pub parts: &'static [Argument],
}

impl Argument {
    const fn new(name: &'static CStr, kind: raw::RedisModuleCommandArgType) -> Self {
        Self { name, kind, token: None, flags: 0, key: -1, parts: &[] }
    }

    pub const KEY: Self = Self::key(c"key", 0);

    pub const fn key(name: &'static CStr, spec: c_int) -> Self {
        Self { key: spec, ..Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY) }
    }

    pub const fn text(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING)
    }

    pub const fn whole(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER)
    }

    pub const fn real(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE)
    }

    /// Returns a word that stands for itself.
    pub const fn word(name: &'static CStr, token: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN).after(token)
    }

    pub const fn one_of(name: &'static CStr, parts: &'static [Argument]) -> Self {
        Self { parts, ..Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF) }
    }

    pub const fn block(name: &'static CStr, parts: &'static [Argument]) -> Self {
        Self { parts, ..Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK) }
    }

    /// After this word.
    pub const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }

    pub const fn optional(self) -> Self {
        Self { flags: self.flags | raw::REDISMODULE_CMD_ARG_OPTIONAL, ..self }
    }

    pub const fn several(self) -> Self {
        Self { flags: self.flags | raw::REDISMODULE_CMD_ARG_MULTIPLE, ..self }
    }
}

/// The C function that the server calls for a command.
macro_rules! entry {
    ($run:path) => {{
        extern "C" fn entry(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            $crate::server::answer(ctx, argv, argc, $run)
        }
        entry
    }};
}
pub(crate) use entry;
