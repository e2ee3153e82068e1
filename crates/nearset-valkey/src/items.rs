//! Items as clients send them.
//!
//! | metric | an item |
//! |---|---|
//! | jaccard, weighted-jaccard | a text in UTF-8 |
//! | hamming | the hash's bytes, or twice as many hexadecimal digits |
//! | symbols | a byte per symbol |
//! | cosine, l1, l2 | 4 bytes per component (FP32, little-endian), perhaps after the word `FP32`, or `VALUES n x1 … xn` |
//!
//! Texts and symbols are used in place; hashes and vectors are copied once, into room that is kept from command to command.
//! What an item must be like is the library's to say.

use std::cell::RefCell;

use nearset::family::{Form, Hashed, Key};
use nearset::item::ItemBuffer;
use nearset::{Bits, Item, Metric, Symbols};

use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Arguments;

/// Memory that is kept from command to command.
#[derive(Default)]
pub struct Room {
    pub hashed: Hashed,
    pub keys: Vec<Option<Key>>,
    /// Items that can't be used where they lie.
    pub copies: ItemBuffer,
}

/// What hashing a command's items may leave behind in the room is in proportion to their bytes; after more than this it is given
/// back.
const KEPT: usize = 1 << 17;

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Lends the room to a command with these items.
pub fn with_room<T>(items: Arguments<'_>, work: impl FnOnce(&mut Room) -> T) -> T {
    ROOM.with_borrow_mut(|room| {
        let done = work(room);
        if items.map(<[u8]>::len).sum::<usize>() > KEPT {
            *room = Room::default();
        }
        done
    })
}

/// Returns the only item that the arguments say.
pub fn read_one<'r>(metric: Option<Metric>, arguments: Arguments<'r>, copies: &'r mut ItemBuffer) -> Outcome<Item<'r>> {
    match read_all(metric, arguments, copies)?[..] {
        [item] => Ok(item),
        _ => Err(Refusal::Arity),
    }
}

/// Returns all items that the arguments say, in order.
pub fn read_all<'r>(
    metric: Option<Metric>,
    arguments: Arguments<'r>,
    copies: &'r mut ItemBuffer,
) -> Outcome<Vec<Item<'r>>> {
    let Some(metric) = metric else {
        return refuse!("items of this filter have no form here: hash them yourself, and send NEAR.ADDKEYS");
    };
    let at = |position: usize, why: String| Refusal::Because(format!("item {position}: {why}"));
    copies.clear();
    match metric.form() {
        Form::Set(_) | Form::Weighted(_) => arguments
            .enumerate()
            .map(|(position, bytes)| match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Item::Text(text)),
                Err(error) => Err(at(position, format!("a text must be UTF-8: {error}"))),
            })
            .collect(),
        Form::Symbols(_) => Ok(arguments.map(|bytes| Item::Symbols(Symbols::Bytes(bytes))).collect()),
        Form::Bits(bits) => {
            for (position, bytes) in arguments.enumerate() {
                add_hash(copies, bytes, bits).map_err(|why| at(position, why))?;
            }
            let items = (0..copies.len()).filter_map(|i| copies.get(i));
            let trimmed = |(position, item): (usize, Item<'r>)| match item {
                // Bytes and digits may hold a few bits more than the metric has.
                Item::Bits(all) => {
                    let bits = Bits::new(all.words(), bits as usize);
                    bits.map(Item::Bits).map_err(|error| at(position, error.to_string()))
                }
                other => Ok(other),
            };
            items.enumerate().map(trimmed).collect()
        }
        Form::Vector(dimension) => {
            let mut arguments = arguments;
            for position in 0.. {
                let Some(first) = arguments.next() else { break };
                add_vector(copies, first, &mut arguments, dimension).map_err(|why| at(position, why))?;
            }
            Ok((0..copies.len()).filter_map(|i| copies.get(i)).collect())
        }
        _ => refuse!("items of {metric} have no form here"),
    }
}

fn add_hash(copies: &mut ItemBuffer, bytes: &[u8], bits: u32) -> Result<(), String> {
    let (raw, digits) = (bits.div_ceil(8) as usize, bits.div_ceil(4) as usize);
    if bytes.len() == raw {
        copies.push_bit_bytes(bytes);
        Ok(())
    } else if bytes.len() == digits || bytes.len() == 2 * raw {
        let hex = std::str::from_utf8(bytes).map_err(|_| "not hexadecimal digits".to_owned())?;
        copies.push_hex(hex).map_err(|error| error.to_string())
    } else {
        let found = bytes.len();
        Err(format!("{bits} bits are {raw} bytes, or {digits} hexadecimal digits; {found} bytes were sent"))
    }
}

fn add_vector(copies: &mut ItemBuffer, first: &[u8], rest: &mut Arguments<'_>, dimension: u32) -> Result<(), String> {
    copies.fill(|components: &mut Vec<f32>| {
        if first.len() == 4 * dimension as usize {
            add_components(components, first);
            Ok(())
        } else if first.eq_ignore_ascii_case(b"VALUES") {
            let count = rest.next().and_then(number::<usize>).ok_or("VALUES needs the number of components")?;
            if count > rest.len() {
                return Err(format!("VALUES {count} is followed by {} numbers", rest.len()));
            }
            for text in rest.by_ref().take(count) {
                components.push(number(text).ok_or_else(|| format!("{} is not a number", shown(text)))?);
            }
            Ok(())
        } else if first.eq_ignore_ascii_case(b"FP32") {
            add_blob(components, rest.next().ok_or("FP32 needs the vector's bytes")?)
        } else {
            add_blob(components, first)
        }
    })
}

fn add_blob(components: &mut Vec<f32>, blob: &[u8]) -> Result<(), String> {
    if !blob.len().is_multiple_of(4) {
        let found = blob.len();
        return Err(format!("a vector is 4 bytes per component (FP32), or VALUES n x1 … xn; {found} bytes were sent"));
    }
    add_components(components, blob);
    Ok(())
}

fn add_components(components: &mut Vec<f32>, blob: &[u8]) {
    let (all, _) = blob.as_chunks::<4>();
    components.extend(all.iter().map(|bytes| f32::from_le_bytes(*bytes)));
}

/// Returns a number as Rust reads it, without blanks.
pub fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns an argument as an error shows it.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let (start, dots) = if bytes.len() > MOST { (&bytes[..MOST], "…") } else { (bytes, "") };
    format!("'{}{dots}'", start.escape_ascii())
}
