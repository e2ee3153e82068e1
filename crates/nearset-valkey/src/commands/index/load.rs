//! `NEAR.INDEX.LOAD`: all items of an index's file, in chunks.
//!
//! The file is that of `nearset build --index`, or a segment that the server wrote into its own append-only file. Its items come in with
//! the last chunk, each in place of the item that has its name; until then the index answers as before. A large file is checked and its
//! items are taken in on another thread, by a copy that shares all segments. What would change the index meanwhile waits.

use std::sync::Arc;

use nearset::DecodeError;
use nearset::family::WorkLimit;
use nearset::index::{IndexError, NamedIndex};
use nearset::spec::SpecError;

use super::{IndexKey, expect_mut};
use crate::background::{self, Ending, Job, Worker};
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::commands::transfer::{cursor, is_long, position, take};
use crate::data_type::Stored;
use crate::index::GROWN;
use crate::memory::{self, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;
use crate::value::{Incoming, decode_index};

pub const LOAD: Command = Command {
    name: c"NEAR.INDEX.LOAD",
    entry: entry!(load),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Takes the chunks of an index's file in order; with the last one its items are checked and added, each in place of the item of its name",
    complexity: c"O(bytes of the chunk), and of the file for the last one, on another thread where it is large",
    arity: 4,
    keys: &[Keys::ADD],
    arguments: &[
        Argument::KEY,
        Argument::one_of(c"position", &[Argument::whole(c"cursor"), Argument::word(c"abandon", c"ABANDON")]),
        Argument::text(c"chunk"),
    ],
};

fn load(call: &Call<'_>) -> Outcome {
    if call.count() != 4 {
        return Err(Refusal::Arity);
    }
    let mut key: IndexKey<'_> = call.write(1)?;
    let value = expect_mut(&mut key)?;
    if call.argument(2).eq_ignore_ascii_case(b"ABANDON") {
        abandon(call, &mut key);
        call.ok();
        return Ok(());
    }
    let (position, chunk) = (position(cursor(call.argument(2))?), call.argument(3));
    let mut incoming = match &mut value.incoming {
        _ if position == 0 => Incoming::begin(chunk).map_err(Refusal::because)?,
        Some(_) => value.incoming.take().ok_or(Refusal::Arity)?,
        None => return refuse!("nothing is being loaded into this key: begin with cursor 0"),
    };
    let before = incoming.len();
    if let Err(why) = next_chunk(call, &mut incoming, position, chunk) {
        if before > 0 {
            value.incoming = Some(incoming);
        }
        return Err(why);
    }
    if !incoming.is_whole() {
        value.incoming = Some(incoming);
        taken(call, &key);
        call.ok();
        return Ok(());
    }
    let is_long = is_long(call, incoming.length());
    // Replicas and files of the server's have all but the last chunk, until it is sent on.
    let file = incoming.share();
    incoming.truncate(before);
    if before > 0 {
        value.incoming = Some(incoming);
    }
    let limit = call.work_limit();
    // Beside the work, so that it ends where there is not even room to begin.
    let ending = Ending(Job::begin());
    if is_long {
        value.job = Some(Arc::clone(&ending.0));
    }
    let bytes = value.bytes();
    let index = NamedIndex::clone(&value.index());
    drop(key);
    background::work(call, is_long, move |worker| {
        let made = finish(worker, index, bytes, limit, &file);
        drop(file);
        let old = worker.locked(|call| put(call, worker.is_thread().then_some(&ending.0), made))?;
        drop(ending);
        worker.unlocked(|call| call.ok());
        drop(old);
        Ok(())
    })
}

/// Puts the index with the file's items in its place, if nothing happened to it in between; returns what was there before.
fn put(call: &Call<'_>, job: Option<&Arc<Job>>, made: Result<NamedIndex, Unfinished>) -> Outcome<NamedIndex> {
    let mut key: IndexKey<'_> = call.write_during(1)?;
    let value = expect_mut(&mut key)?;
    if let Some(job) = job
        && !value.job.as_ref().is_some_and(|found| Arc::ptr_eq(found, job))
    {
        return refuse!("the key was changed while the file was checked: send the last chunk again");
    }
    let index = match made {
        Ok(index) => index,
        Err(Unfinished::NotTaken(why)) => return Err(why),
        Err(Unfinished::Damaged(why)) => {
            abandon(call, &mut key);
            return Err(why);
        }
    };
    let old = std::mem::replace(&mut *value.index(), index);
    value.incoming = None;
    value.merge_if_due();
    taken(call, &key);
    Ok(old)
}

fn taken(call: &Call<'_>, key: &IndexKey<'_>) {
    call.replicate();
    key.changed(c"near.index.load");
}

/// Why the items of a file that has come in whole are not taken.
enum Unfinished {
    /// There is no room, and there may be later: the last chunk can be sent again.
    NotTaken(Refusal),
    /// The file is damaged or does not fit, and what has come of it is let go.
    Damaged(Refusal),
}

fn next_chunk(call: &Call<'_>, incoming: &mut Incoming, position: u64, chunk: &[u8]) -> Outcome {
    let before = incoming.len();
    if position != before as u64 {
        return refuse!(
            "the chunk at {before} is next, not that at {position}: send chunks in order, or begin again with 0"
        );
    }
    if chunk.is_empty() {
        return refuse!("the chunk is empty");
    }
    take(call, incoming, chunk)
}

/// Returns the index, of so many bytes, with the items of a file.
fn finish(
    worker: &Worker<'_>,
    mut index: NamedIndex,
    bytes: u64,
    limit: WorkLimit,
    file: &[u8],
) -> Result<NamedIndex, Unfinished> {
    const ITEMS: &str = "the file's items";
    // The tables and names of the file are copied once, and names are put in order.
    let (length, more) = (file.len() as u64, 2 * file.len() as u64);
    let passing = length.saturating_add(worker.unlocked(|call| call.bytes_to_send_on()));
    let need = Need { what: GROWN, total: bytes.saturating_add(more), more, passing };
    drop(worker.allow(need).map_err(Unfinished::NotTaken)?);
    let loaded = decode_index(file, limit).map_err(|error| match error {
        DecodeError::Memory { .. } => Unfinished::NotTaken(memory::no_memory(ITEMS)),
        DecodeError::Spec(error @ SpecError::Memory { .. }) => Unfinished::NotTaken(memory::refused(ITEMS, error)),
        damage => Unfinished::Damaged(Refusal::because(damage)),
    })?;
    index.take_in(loaded, &[]).map_err(|error| match error {
        IndexError::Memory(_) => Unfinished::NotTaken(memory::no_memory(ITEMS)),
        damage => Unfinished::Damaged(Refusal::because(damage)),
    })?;
    Ok(index)
}

/// Lets go of what has come so far, here and on replicas.
fn abandon(call: &Call<'_>, key: &mut IndexKey<'_>) {
    let was_there = key.value_mut().is_some_and(|value| value.incoming.take().is_some());
    if was_there {
        call.replicate_as(LOAD.name, key, c"ABANDON", b"");
        key.changed(c"near.index.load");
    }
}
