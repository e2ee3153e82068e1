//! Commands are made known to the server when the module is loaded.

use std::ffi::{CStr, CString, c_int};
use std::ptr;

use redis_module::raw;

use super::COMMANDS;
use super::docs::{Argument, Command, Keys};

/// The version of the module in which all commands came.
const SINCE: &CStr = c"0.1.0";

/// The access category of commands that anybody may use who may use filters, where the server lets modules have one.
const CATEGORY: &CStr = c"near";

/// That of commands for clients that are trusted. They are in no other but `dangerous`, so that nobody comes by them with `+@read`.
const TRUSTED: &CStr = c"near-trusted";

const VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// False if the server is too old.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> bool {
    // SAFETY: the pointers were set when the module was initialised; the context is the module's own while it is loaded.
    let has_category = unsafe {
        match (raw::RedisModule_AddACLCategory, raw::RedisModule_SetCommandACLCategories) {
            (Some(add), Some(_)) => {
                [CATEGORY, TRUSTED].iter().all(|name| add(ctx, name.as_ptr()) == raw::REDISMODULE_OK as c_int)
            }
            _ => false,
        }
    };
    COMMANDS.iter().all(|command| create(ctx, command, has_category))
}

fn create(ctx: *mut raw::RedisModuleCtx, command: &Command, has_category: bool) -> bool {
    let ok = raw::REDISMODULE_OK as c_int;
    // The last key of all, as servers count that know no key specs.
    let last = command.keys.iter().map(|keys| if keys.last < 0 { keys.last } else { keys.first }).next_back();
    let mut keys: Vec<_> = command.keys.iter().map(key_spec).chain([zeroed_keys()]).collect();
    let mut kept = Vec::new();
    let arguments = argument_list(command.arguments, &mut kept);
    let mut info = raw::RedisModuleCommandInfo {
        version: &VERSION,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: SINCE.as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: command.arity,
        key_specs: keys.as_mut_ptr(),
        args: arguments,
    };
    // SAFETY: as above. All that `info` points to lives until the end of this function, and the server copies it.
    unsafe {
        let (Some(create), Some(get), Some(set)) =
            (raw::RedisModule_CreateCommand, raw::RedisModule_GetCommand, raw::RedisModule_SetCommandInfo)
        else {
            return false;
        };
        let name = command.name.as_ptr();
        if create(ctx, name, Some(command.entry), command.flags.as_ptr(), 1, last.unwrap_or(1), 1) != ok {
            return false;
        }
        let created = get(ctx, name);
        if created.is_null() || set(created, &raw mut info) != ok {
            return false;
        }
        raw::RedisModule_SetCommandACLCategories
            .is_none_or(|set| set(created, categories(command, has_category).as_ptr()) == ok)
    }
}

/// Returns the access categories of a command, which servers from 7.2 on want to be told, although its flags say the same.
fn categories(command: &Command, has_category: bool) -> CString {
    let flags = command.flags.to_bytes();
    let has = |flag: &[u8]| flags.split(|byte| *byte == b' ').any(|word| word == flag);
    let mut names = vec![
        if has(b"write") { c"write" } else { c"read" }.to_bytes(),
        if has(b"fast") { c"fast" } else { c"slow" }.to_bytes(),
    ];
    if command.is_trusted {
        names = vec![c"dangerous".to_bytes()];
    }
    if has_category {
        names.push(if command.is_trusted { TRUSTED } else { CATEGORY }.to_bytes());
    }
    CString::new(names.join(&b' ')).unwrap_or_default()
}

fn key_spec(keys: &Keys) -> raw::RedisModuleCommandKeySpec {
    let mut spec = zeroed_keys();
    spec.flags = keys.flags.into();
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = keys.first;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range.lastkey = keys.last;
    spec.fk.range.keystep = 1;
    spec.fk.range.limit = 0;
    spec
}

/// Returns what ends a list of them.
fn zeroed_keys() -> raw::RedisModuleCommandKeySpec {
    // SAFETY: a C struct of numbers, unions of numbers and pointers, for which zeros stand for "nothing".
    unsafe { std::mem::zeroed() }
}

/// Returns a list that ends with zeros, as the server reads it; null for an empty one. `kept` owns it and its parts.
fn argument_list(
    arguments: &[Argument],
    kept: &mut Vec<Vec<raw::RedisModuleCommandArg>>,
) -> *mut raw::RedisModuleCommandArg {
    if arguments.is_empty() {
        return ptr::null_mut();
    }
    let mut list: Vec<_> = arguments.iter().map(|argument| raw_argument(argument, kept)).collect();
    // SAFETY: a C struct of numbers and pointers, for which zeros stand for the end of the list.
    list.push(unsafe { std::mem::zeroed() });
    // What a vector holds stays where it is when the vector itself moves.
    let start = list.as_mut_ptr();
    kept.push(list);
    start
}

fn raw_argument(argument: &Argument, kept: &mut Vec<Vec<raw::RedisModuleCommandArg>>) -> raw::RedisModuleCommandArg {
    raw::RedisModuleCommandArg {
        name: argument.name.as_ptr(),
        type_: argument.kind,
        key_spec_index: argument.key,
        token: argument.token.map_or(ptr::null(), CStr::as_ptr),
        summary: ptr::null(),
        since: ptr::null(),
        flags: argument.flags as c_int,
        deprecated_since: ptr::null(),
        subargs: argument_list(argument.parts, kept),
        display_text: ptr::null(),
    }
}
