//! `NEAR.INDEX.DUMP`: all items of an index as one file, in chunks, such as `nearset search` reads.

use nearset::Index;
use nearset::index::NamedIndex;

use super::{IndexKey, no_key};
use crate::background;
use crate::commands::docs::{Argument, Command, Keys, entry};
use crate::commands::transfer::{Asked, begun, over, under_way};
use crate::data_type::Stored;
use crate::memory::{self, Need};
use crate::refusal::Outcome;
use crate::server::{Call, Key};

pub const DUMP: Command = Command {
    name: c"NEAR.INDEX.DUMP",
    entry: entry!(dump),
    flags: c"readonly",
    is_trusted: true,
    summary: c"A chunk of the index as a file, and the cursor of the next one, which is 0 after the last; begin with 0",
    complexity:
        c"O(bytes of the chunk), and of the index for the first one; on another thread where the index is large",
    arity: -3,
    keys: &[Keys::READ],
    arguments: &[Argument::KEY, Argument::whole(c"cursor"), Argument::whole(c"bytes").after(c"COUNT").optional()],
};

/// Items of more bytes than this take longer than a few milliseconds to be put into one index.
const FEW: u64 = background::SMALL / 32;

fn dump(call: &Call<'_>) -> Outcome {
    let mut key: Option<IndexKey<'_>> = call.read(1)?;
    let value = key.as_mut().and_then(Key::value_mut).ok_or_else(no_key)?;
    let bytes = value.bytes();
    let asked = Asked::of(call, bytes)?;
    if asked.mark() != 0 {
        let passing = asked.passing();
        memory::allow(call, Need { what: "the chunk", total: 0, more: 0, passing }).map(drop)?;
        let dump = under_way(&value.dump, asked.mark())?;
        let Some(whole) = dump.whole() else { return over() };
        return background::work(call, bytes > FEW, move |worker| {
            asked.reply(worker, &dump, whole, Index::encode_from)
        });
    }
    // A second index of all items, until its last chunk was given.
    let floor = memory::allow(call, Need { what: "the dump", total: 0, more: bytes, passing: asked.passing() })?;
    let dump = begun(call, &mut value.dump, bytes);
    let index = NamedIndex::clone(&value.index());
    background::work(call, bytes > FEW, move |worker| {
        let gathered = index.gather().map_err(|_| memory::no_memory("the dump"));
        drop(floor);
        if gathered.is_err() {
            dump.end();
        }
        let whole = dump.make(gathered?);
        asked.reply(worker, &dump, whole, Index::encode_from)
    })
}
