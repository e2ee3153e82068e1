//! Near filters and indexes inside Valkey and Redis.
//!
//! Claim: one module file for Redis 7 and Valkey 8 and 9. Persistence, replication, clustering, access control and clients come
//! from the server; every answer, plan, default and check comes from `nearset`. What is here reads arguments, writes replies and
//! keeps filters and indexes in keys.
//! Invariants: a command that is refused leaves its key as it was; what is carried out on a primary is sent on in a form that can't
//! fail on a replica, which plans nothing and has no limits; nothing is allocated for a client before it was held against
//! `near.memory-limit`, `maxmemory` and what the system gives.
//!
//! `unsafe` is where the server's C functions are called, and nowhere else: `allocator`, `background`, `seed`, `server`, `info`, `data_type`,
//! `stats`, `stream`, `config`, `commands::register`.

// Nothing is public but the functions that the server calls when it loads the module.
#![allow(missing_docs)]

#[allow(unsafe_code)]
mod allocator;
#[allow(unsafe_code)]
mod background;
mod commands;
#[allow(unsafe_code)]
mod config;
#[allow(unsafe_code)]
mod data_type;
mod fields;
mod fill;
mod index;
#[allow(unsafe_code)]
mod info;
mod items;
mod memory;
mod options;
mod refusal;
#[allow(unsafe_code)]
mod seed;
#[allow(unsafe_code)]
mod server;
#[allow(unsafe_code)]
mod stats;
#[allow(unsafe_code)]
mod stream;
mod value;
mod window;

use allocator::ServerAllocator;
use data_type::{FILTER_TYPE, INDEX_TYPE};
use redis_module::{Context, RedisString, Status, redis_module};

/// The module's version as the server shows it: 10,000 major + 100 minor + patch.
const VERSION: i32 = 100;

fn start(context: &Context, _arguments: &[RedisString]) -> Status {
    let ctx = context.get_raw();
    if !config::register(ctx) || !commands::register(ctx) {
        server::log(
            ctx,
            "nearset can't start: it needs version 7 or newer of the server, and near.* settings that it knows",
        );
        return Status::Err;
    }
    if let Err(why) = background::start() {
        server::log(ctx, &format!("nearset can't start: no threads can be had: {why}"));
        return Status::Err;
    }
    server::announce(ctx);
    stats::register(ctx);
    Status::Ok
}

redis_module! {
    name: "near",
    version: VERSION,
    allocator: (ServerAllocator, ServerAllocator),
    data_types: [FILTER_TYPE, INDEX_TYPE],
    init: start,
}
