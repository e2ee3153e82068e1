//! `NEAR.DUMP` and `NEAR.LOAD`: filters as nearset's own file, in chunks.
//!
//! A cursor is the position of a chunk in the file. Those that DUMP gives have the dump's mark in their upper bits: all its chunks
//! are of the filter as it was when the first one was asked for, however it changes meanwhile. A key has one dump at a time. LOAD does
//! not look at the mark. `NEAR.LOAD key ABANDON ""` lets go of
//! what has come so far, which replicas are told when the last chunk shows that a file is damaged: the error itself would be
//! theirs too.

use std::io;
use std::sync::Arc;

use nearset::family::WorkLimit;
use nearset::spec::SpecError;
use nearset::{DecodeError, Filter};

use super::docs::{Argument, Command, Keys, entry};
use super::expect;
use crate::background::{self, Worker};
use crate::config;
use crate::data_type::Stored;
use crate::items::{number, shown};
use crate::memory::{self, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Call, Key, look_after};
use crate::value::{Dump, Incoming, Value, decode, weight};

/// The most that DUMP gives at once, and what it gives unless it is asked for less.
const CHUNK: usize = 16 << 20;

/// What is loaded, as errors name it.
const FILE: &str = "the filter's file";

/// Bits of a cursor that are the position.
const POSITION_BITS: u32 = 48;

pub const DUMP: Command = Command {
    name: c"NEAR.DUMP",
    entry: entry!(dump),
    flags: c"readonly",
    is_trusted: true,
    summary:
        c"A chunk of the filter as a file, and the cursor of the next one, which is 0 after the last; begin with 0",
    complexity:
        c"O(bytes of the chunk), and of the filter for the first one; on another thread where the filter is large",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::whole(c"cursor"), Argument::whole(c"bytes").after(c"COUNT").optional()],
};

pub const LOAD: Command = Command {
    name: c"NEAR.LOAD",
    entry: entry!(load),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Takes the chunks of a filter's file in order; with the last one the filter is checked and there",
    complexity: c"O(bytes of the chunk), and of the filter for the last one, on another thread where it is large",
    arity: -4,
    keys: &[Keys::ADD],
    arguments: &[
        Argument::KEY,
        Argument::one_of(c"position", &[Argument::whole(c"cursor"), Argument::word(c"abandon", c"ABANDON")]),
        Argument::text(c"chunk"),
        Argument::word(c"replace", c"REPLACE").optional(),
    ],
};

pub fn cursor(text: &[u8]) -> Outcome<u64> {
    number(text).ok_or_else(|| Refusal::Because(format!("{} is no cursor: begin with 0", shown(text))))
}

pub fn position(cursor: u64) -> u64 {
    cursor & ((1 << POSITION_BITS) - 1)
}

/// The part of what is written that is wanted.
struct Window {
    room: usize,
    part: Vec<u8>,
    /// Whether anything came after it.
    more: bool,
}

impl io::Write for Window {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() {
            self.more = true;
            return Err(io::Error::other("the window is full"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a command asks for that dumps.
#[derive(Clone, Copy)]
pub struct Asked {
    pub cursor: u64,
    /// Bytes that are wanted, at most.
    room: usize,
    /// Bytes that the chunk takes, at most.
    chunk: u64,
}

impl Asked {
    /// Reads what is asked of a key whose file has little beside so many bytes.
    pub fn of(call: &Call<'_>, bytes: u64) -> Outcome<Self> {
        let mut room = CHUNK;
        if call.count() > 3 {
            if call.count() != 5 || !call.argument(3).eq_ignore_ascii_case(b"COUNT") {
                return Err(Refusal::Arity);
            }
            let wanted = number(call.argument(4)).filter(|count| (1..=CHUNK).contains(count));
            let Some(wanted) = wanted else {
                return refuse!("COUNT is {}: it must be from 1 to {CHUNK} bytes", shown(call.argument(4)));
            };
            room = wanted;
        }
        let cursor = cursor(call.argument(2))?;
        Ok(Self { cursor, room, chunk: (room as u64).min(bytes.saturating_add(memory::UNFORESEEN)) })
    }

    /// Bytes for a moment: the server makes a copy of the chunk.
    pub fn passing(self) -> u64 {
        2 * self.chunk
    }

    pub fn mark(self) -> u64 {
        self.cursor >> POSITION_BITS
    }

    /// Replies with the chunk of what `encode` writes from a position on, and ends the dump after the last one.
    pub fn reply<T: Send + Sync>(
        self,
        worker: &Worker<'_>,
        dump: &Dump<T>,
        whole: Arc<T>,
        encode: impl FnOnce(&T, u64, &mut dyn io::Write) -> io::Result<()>,
    ) -> Outcome {
        let (cursor, position) = (self.cursor, position(self.cursor));
        let mut part = Vec::new();
        part.try_reserve_exact(self.chunk as usize).map_err(|_| memory::no_memory("the chunk"))?;
        let mut window = Window { room: self.room, part, more: false };
        // The only error is that the window is full.
        let _ = encode(&whole, position, &mut window);
        let is_beyond = window.part.is_empty();
        let next = if window.more { dump.mark << POSITION_BITS | (position + window.part.len() as u64) } else { 0 };
        if worker.is_thread() {
            memory::expect_room_here("the chunk", window.part.len())?;
        }
        if next == 0 {
            drop(whole);
            dump.end();
        }
        if is_beyond {
            return refuse!("cursor {cursor} lies beyond the end: begin with 0");
        }
        worker.unlocked(|call| {
            call.array(2);
            call.count_reply(next);
            call.bulk(&window.part);
        });
        Ok(())
    }
}

fn dump(call: &Call<'_>) -> Outcome {
    let mut key = call.read(1)?;
    let bytes = expect(&key)?.bytes();
    let asked = Asked::of(call, bytes)?;
    let floor = memory::allow(call, Need { what: "the chunk", total: 0, more: 0, passing: asked.passing() })?;
    drop(floor);
    let Some(value) = key.as_mut().and_then(Key::value_mut) else { return Err(super::no_key()) };
    let dump = match asked.mark() {
        0 => {
            let dump = begun(call, &mut value.dump, bytes);
            dump.make(value.filter_mut()?.share());
            dump
        }
        mark => under_way(&value.dump, mark)?,
    };
    let Some(filter) = dump.whole() else { return over() };
    background::work(call, bytes > background::SMALL, move |worker| {
        asked.reply(worker, &dump, filter, |filter, position, out| filter.encode_from(position, out))
    })
}

pub fn over<T>() -> Outcome<T> {
    refuse!("the dump of this cursor is over, or another one of this key began: begin again with cursor 0")
}

/// Returns the dump that has this mark.
pub fn under_way<T: Send + Sync>(dump: &Option<Arc<Dump<T>>>, mark: u64) -> Outcome<Arc<Dump<T>>> {
    dump.as_ref().filter(|dump| dump.mark == mark).map_or_else(over, |dump| Ok(Arc::clone(dump)))
}

/// Begins a dump in the place of the key's last one.
pub fn begun<T: Send + Sync>(call: &Call<'_>, last: &mut Option<Arc<Dump<T>>>, bytes: u64) -> Arc<Dump<T>> {
    let dump = Arc::new(Dump::begin(bytes));
    *last = Some(Arc::clone(&dump));
    let watched = Arc::downgrade(&dump);
    let milliseconds = Dump::<T>::PATIENCE.as_millis() as i64;
    look_after(
        call.context(),
        milliseconds,
        Box::new(move || watched.upgrade().is_some_and(|dump| dump.end_if_idle())),
    );
    dump
}

fn load(call: &Call<'_>) -> Outcome {
    let replace = match call.count() {
        4 => false,
        5 if call.argument(4).eq_ignore_ascii_case(b"REPLACE") => true,
        _ => return Err(Refusal::Arity),
    };
    let mut key = call.write(1)?;
    if call.argument(2).eq_ignore_ascii_case(b"ABANDON") {
        abandon(call, &mut key);
        call.ok();
        return Ok(());
    }
    let (position, chunk) = (position(cursor(call.argument(2))?), call.argument(3));
    if position == 0 { begin(call, &mut key, chunk, replace) } else { go_on(call, &mut key, position, chunk) }
}

/// Checks that a file may be begun with.
fn expect_free(key: &Key<'_>, replace: bool) -> Outcome {
    if !replace && key.value().is_some_and(|value| value.filter.is_some()) {
        return refuse!("the key exists: DEL it first, or say REPLACE");
    }
    Ok(())
}

fn begin(call: &Call<'_>, key: &mut Key<'_>, chunk: &[u8], replace: bool) -> Outcome {
    expect_free(key, replace)?;
    let mut incoming = Incoming::begin(chunk).map_err(Refusal::because)?;
    if chunk.len() == incoming.length() && is_long(call, chunk.len()) {
        memory::hold_against_limit(call, chunk.len() as u64, FILE)?;
        // As if the command came when the filter is there.
        return check_later(call, None, move |call| {
            let key = call.write_during(1)?;
            expect_free(&key, replace).map(|()| key)
        });
    }
    take(call, &mut incoming, chunk)?;
    if incoming.is_whole() {
        let filter = finish(&Worker::Command(call), Rules::of(call), incoming.bytes());
        return loaded(call, key, filter);
    }
    match key.value_mut() {
        Some(value) => value.incoming = Some(incoming),
        None => key.set(Value::begun(incoming)),
    }
    taken(call, key);
    Ok(())
}

fn go_on(call: &Call<'_>, key: &mut Key<'_>, position: u64, chunk: &[u8]) -> Outcome {
    let Some(incoming) = key.value_mut().and_then(|value| value.incoming.as_mut()) else {
        return refuse!("nothing is being loaded into this key: begin with cursor 0");
    };
    let before = incoming.len();
    if position != before as u64 {
        return refuse!(
            "the chunk at {before} is next, not that at {position}: send chunks in order, or begin again with 0"
        );
    }
    if chunk.is_empty() {
        return refuse!("the chunk is empty");
    }
    take(call, incoming, chunk)?;
    if !incoming.is_whole() {
        taken(call, key);
        return Ok(());
    }
    if is_long(call, incoming.length()) {
        // Replicas and files of the server's have all but the last chunk, until it is sent on.
        incoming.truncate(before);
        let file = incoming.share();
        let known = Arc::downgrade(&file);
        return check_later(call, Some(file), move |call| {
            let key: Key<'_> = call.write_during(1)?;
            let incoming = key.value().and_then(|value| value.incoming.as_ref());
            if incoming.is_some_and(|incoming| incoming.is_of(&known) && incoming.len() == before) {
                return Ok(key);
            }
            refuse!("the file was let go, or begun anew, while its last chunk was checked: begin again with cursor 0")
        });
    }
    let filter = finish(&Worker::Command(call), Rules::of(call), incoming.bytes());
    if let Err(Unfinished::NoRoom(_)) = &filter {
        incoming.truncate(before);
    }
    loaded(call, key, filter)
}

/// Returns whether a file of so many bytes is better checked on another thread.
pub fn is_long(call: &Call<'_>, bytes: usize) -> bool {
    bytes as u64 > background::SMALL && call.can_wait()
}

/// Checks a file on another thread, the command's chunk if it is whole, and puts the filter into the key that `key` finds then.
fn check_later(
    call: &Call<'_>,
    file: Option<Arc<Vec<u8>>>,
    key: impl for<'c> FnOnce(&'c Call<'c>) -> Outcome<Key<'c>> + Send + 'static,
) -> Outcome {
    let rules = Rules::of(call);
    background::work(call, true, move |worker| {
        let filter = match &file {
            Some(file) => finish(worker, rules, file),
            None => worker.unlocked(|call| finish(worker, rules, call.argument(3))),
        };
        drop(file);
        worker.locked(|call| loaded(call, &mut key(call)?, filter))
    })
}

/// Takes a chunk, if there is room for it.
pub fn take(call: &Call<'_>, incoming: &mut Incoming, chunk: &[u8]) -> Outcome {
    let room = incoming.room_for_all(chunk.len());
    let need =
        Need { what: FILE, total: incoming.length() as u64, more: room as u64, passing: call.bytes_to_send_on() };
    let floor = memory::allow(call, need)?;
    incoming.push(chunk, room)?;
    drop(floor);
    Ok(())
}

/// Why a file that has come in whole is no filter.
enum Unfinished {
    /// There is no room, and there may be later: the last chunk can be sent again.
    NoRoom(Refusal),
    /// The file is damaged, and what has come of it is let go.
    Damaged(Refusal),
}

/// What a file is held against.
#[derive(Clone, Copy)]
struct Rules {
    limit: WorkLimit,
    may_be_overfull: bool,
}

impl Rules {
    fn of(call: &Call<'_>) -> Self {
        Self { limit: call.work_limit(), may_be_overfull: !call.limits_apply() || config::allows_overfull() }
    }
}

/// Returns the filter of a file that has come in whole.
fn finish(worker: &Worker<'_>, rules: Rules, file: &[u8]) -> Result<Filter<'static>, Unfinished> {
    let length = file.len() as u64;
    let passing = worker.unlocked(|call| call.bytes_to_send_on());
    let need = Need { what: "the filter", total: length, more: length, passing };
    let _floor = worker.allow(need).map_err(Unfinished::NoRoom)?;
    let filter = decode(file, rules.limit).map_err(|error| match error {
        DecodeError::Memory { .. } => Unfinished::NoRoom(memory::no_memory("the filter")),
        DecodeError::Spec(error @ SpecError::Memory { .. }) => Unfinished::NoRoom(memory::refused("the filter", error)),
        damage => Unfinished::Damaged(Refusal::because(damage)),
    })?;
    if !rules.may_be_overfull {
        let cure =
            |cause| Refusal::Because(format!("{cause}, or CONFIG SET near.allow-overfull yes to take it as it is"));
        filter.expect_not_overfull(0).map_err(|cause| Unfinished::Damaged(cure(cause)))?;
    }
    // Its functions come on top of what the file has.
    let held = worker.locked(|call| memory::hold_against_limit(call, weight(&filter), "the filter"));
    held.map_err(Unfinished::NoRoom)?;
    Ok(filter)
}

/// Puts the filter in its place.
fn loaded(call: &Call<'_>, key: &mut Key<'_>, filter: Result<Filter<'static>, Unfinished>) -> Outcome {
    match filter {
        Ok(filter) => {
            match key.value_mut() {
                Some(value) => {
                    let old = std::mem::replace(value, Value::of(filter));
                    let bytes = old.bytes();
                    background::discard(old, bytes);
                }
                None => key.set(Value::of(filter)),
            }
            taken(call, key);
            Ok(())
        }
        Err(Unfinished::NoRoom(why)) => Err(why),
        Err(Unfinished::Damaged(why)) => {
            abandon(call, key);
            Err(why)
        }
    }
}

/// Lets go of what has come so far, here and on replicas.
fn abandon(call: &Call<'_>, key: &mut Key<'_>) {
    let Some(value) = key.value_mut() else { return };
    if value.incoming.take().is_none() {
        return;
    }
    if value.filter.is_none() {
        key.delete();
    }
    call.replicate_as(LOAD.name, key, c"ABANDON", b"");
    key.changed(c"near.load");
}

fn taken(call: &Call<'_>, key: &Key<'_>) {
    call.replicate();
    key.changed(c"near.load");
    call.ok();
}
