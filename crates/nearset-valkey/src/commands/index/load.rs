//! `NEAR.INDEX.LOAD`: all items of an index's file, in chunks.
//!
//! The file is that of `nearset build --index`, or a segment that the server wrote into its own append-only file. Its items come in with
//! the last chunk, each in place of the item that has its name; until then the index answers as before.

use nearset::DecodeError;
use nearset::index::IndexError;
use nearset::spec::SpecError;

use super::{IndexKey, expect_mut};
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::commands::transfer::{cursor, position, take};
use crate::index::IndexValue;
use crate::memory;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;
use crate::value::Incoming;

pub const LOAD: Command = Command {
    name: c"NEAR.INDEX.LOAD",
    entry: entry!(load),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Takes the chunks of an index's file in order; with the last one its items are checked and added, each in place of the item of its name",
    complexity: c"O(bytes of the chunk), and of the file for the last one",
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
    let mut incoming = match value.incoming.take() {
        _ if position == 0 => Incoming::begin(chunk).map_err(Refusal::because)?,
        Some(incoming) => incoming,
        None => return refuse!("nothing is being loaded into this key: begin with cursor 0"),
    };
    let before = incoming.len();
    let taken = next_chunk(call, &mut incoming, position, chunk).and_then(|()| match incoming.is_whole() {
        true => finish(call, value, &incoming).map(|()| true),
        false => Ok(false),
    });
    match taken {
        Ok(true) => {}
        Ok(false) => value.incoming = Some(incoming),
        Err(Unfinished::Damaged(why)) => {
            // Replicas have all but the last chunk.
            value.incoming = (before > 0).then_some(incoming);
            abandon(call, &mut key);
            return Err(why);
        }
        Err(Unfinished::NotTaken(why)) => {
            incoming.truncate(before);
            value.incoming = (before > 0).then_some(incoming);
            return Err(why);
        }
    }
    value.merge_if_due();
    call.replicate();
    key.changed(c"near.index.load");
    call.ok();
    Ok(())
}

/// Why a chunk or a file is not taken.
enum Unfinished {
    /// The chunk is not the next one, or there is no room for it now.
    NotTaken(Refusal),
    /// The file is damaged or does not fit, and what has come of it is let go.
    Damaged(Refusal),
}

fn next_chunk(call: &Call<'_>, incoming: &mut Incoming, position: u64, chunk: &[u8]) -> Result<(), Unfinished> {
    let before = incoming.len();
    let out_of_order = if position != before as u64 {
        refuse!("the chunk at {before} is next, not that at {position}: send chunks in order, or begin again with 0")
    } else if chunk.is_empty() {
        refuse!("the chunk is empty")
    } else {
        take(call, incoming, chunk)
    };
    out_of_order.map_err(Unfinished::NotTaken)
}

fn finish(call: &Call<'_>, value: &mut IndexValue, incoming: &Incoming) -> Result<(), Unfinished> {
    let length = incoming.length() as u64;
    // The tables and names of the file are copied once, and names are put in order.
    value
        .hold_growth(call, 2 * length, length.saturating_add(call.bytes_to_send_on()))
        .map_err(Unfinished::NotTaken)?;
    let index = incoming.decode_index(call.work_limit()).map_err(|error| match error {
        DecodeError::Memory { .. } => Unfinished::NotTaken(memory::no_memory("the file's items")),
        DecodeError::Spec(error @ SpecError::Memory { .. }) => {
            Unfinished::NotTaken(memory::refused("the file's items", error))
        }
        damage => Unfinished::Damaged(Refusal::because(damage)),
    })?;
    value.index().take_in(index, &[]).map_err(|error| match error {
        IndexError::Memory(_) => Unfinished::NotTaken(memory::no_memory("the file's items")),
        damage => Unfinished::Damaged(Refusal::because(damage)),
    })
}

/// Lets go of what has come so far, here and on replicas.
fn abandon(call: &Call<'_>, key: &mut IndexKey<'_>) {
    let was_there = key.value_mut().is_some_and(|value| value.incoming.take().is_some());
    if was_there {
        call.replicate_as(LOAD.name, key, c"ABANDON", b"");
        key.changed(c"near.index.load");
    }
}
