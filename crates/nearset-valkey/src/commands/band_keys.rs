//! `NEAR.ADDKEYS` and `NEAR.EXISTSKEYS`: items that the client hashed, by what `NEAR.SPEC` describes.
//!
//! An item is one argument: 8 bytes per band, little-endian, 0 where it has no value in that band.

use nearset::Filter;
use nearset::family::Key as BandKey;
use nearset::{InsertError, Match};

use super::docs::{Argument, Command, Keys, entry};
use super::expect_mut;
use super::items::{asked, counted, hold_bytes, inserted, reply_all, reserve_room};
use crate::items::with_room;
use crate::memory::{self, Need};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{Arguments, Call};
use crate::window::{known, move_on};

const ARGUMENTS: &[Argument] =
    &[Argument::KEY, Argument::word(c"hits", c"HITS").optional(), Argument::text(c"keys").several()];

pub const ADDKEYS: Command = Command {
    name: c"NEAR.ADDKEYS",
    entry: entry!(add),
    flags: c"write deny-oom",
    is_trusted: true,
    summary: c"Adds items by their band keys, as NEAR.MADD does by the items; with HITS, answers with the bands that hit and the bits that were set before",
    complexity: c"O(items * bands)",
    arity: -3,
    keys: &[Keys::ADD],
    arguments: ARGUMENTS,
};

pub const EXISTSKEYS: Command = Command {
    name: c"NEAR.EXISTSKEYS",
    entry: entry!(exist),
    flags: c"readonly",
    is_trusted: true,
    summary: c"Looks items up by their band keys, as NEAR.MEXISTS does by the items; with HITS, answers with the bands that hit and the bits that are set",
    complexity: c"O(items * bands)",
    arity: -3,
    keys: &[Keys::READ],
    arguments: ARGUMENTS,
};

/// Bytes per item for its counts, its answer, and the server's reply.
const PER_ANSWER: u64 = 128;

/// Returns whether hits are asked for, and the items.
fn parse<'a>(call: &Call<'a>) -> Outcome<(bool, Arguments<'a>)> {
    let mut items = call.arguments_from(2);
    // Keys are at least 8 bytes, so that the word can't be an item.
    let counting = items.get(0).is_some_and(|first| first.eq_ignore_ascii_case(b"HITS"));
    if counting {
        items.next();
    }
    if items.len() == 0 { Err(Refusal::Arity) } else { Ok((counting, items)) }
}

fn read(call: &Call<'_>, filter: &Filter<'_>, items: Arguments<'_>, keys: &mut Vec<Option<BandKey>>) -> Outcome {
    let spec = filter.spec();
    let Some(spec) = spec.near() else { return Err(Refusal::because(InsertError::NoBands)) };
    let bands = spec.rule.bands();
    // By what was sent, not by what should have been: items may be too short.
    let bytes = hold_bytes(call, items)?;
    let answers = items.len() as u64 * PER_ANSWER;
    let passing = bytes.saturating_add(answers).saturating_add(call.bytes_to_send_on());
    let floor = memory::allow(call, Need { what: "the items' keys", total: 0, more: 0, passing })?;
    drop(floor);
    keys.clear();
    keys.reserve_exact(bytes as usize / 8);
    for (position, bytes) in items.enumerate() {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != bands as usize || !rest.is_empty() {
            let (expected, found) = (8 * u64::from(bands), bytes.len());
            return refuse!("item {position}: {bands} bands are {expected} bytes, 8 each; {found} were sent");
        }
        keys.extend(words.iter().map(|word| BandKey::new(u64::from_le_bytes(*word))));
    }
    Ok(())
}

fn add(call: &Call<'_>) -> Outcome {
    let (counting, items) = parse(call)?;
    let mut key = call.write(1)?;
    move_on(call, &mut key)?;
    let filter = expect_mut(&mut key)?;
    let change = with_room(items, |room| {
        read(call, filter, items, &mut room.keys)?;
        reserve_room(call, filter, items.len())?;
        let (found, change) = counted(filter, items.len(), |filter| filter.insert_keys(&room.keys))?;
        if counting {
            reply_counted(call, &found);
        } else {
            reply_all(call, found.iter().map(|found| !found.near));
        }
        Ok(change)
    })?;
    inserted(call, &key, change);
    Ok(())
}

fn exist(call: &Call<'_>) -> Outcome {
    let (counting, items) = parse(call)?;
    let mut key = call.read(1)?;
    if key.is_none() && !counting {
        reply_all(call, vec![false; items.len()]);
        return Ok(());
    }
    let filter = known(&mut key)?;
    with_room(items, |room| {
        read(call, filter, items, &mut room.keys)?;
        let found = asked(items.len(), || filter.contains_keys(&room.keys))?;
        if counting {
            reply_counted(call, &found);
        } else {
            reply_all(call, found.iter().map(|found| found.near));
        }
        Ok(())
    })
}

/// Two numbers per item, all in one array; -1 where a key stands for several bits, which are not counted.
fn reply_counted(call: &Call<'_>, counted: &[Match]) {
    call.array(2 * counted.len());
    for item in counted {
        call.integer(item.hits.into());
        call.integer(item.set_bits.map_or(-1, |bits| bits as i64));
    }
}
