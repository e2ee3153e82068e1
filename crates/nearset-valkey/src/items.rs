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
    mut arguments: Arguments<'r>,
    copies: &'r mut ItemBuffer,
) -> Outcome<Vec<Item<'r>>> {
    let form = form_of(metric)?;
    copies.clear();
    let mut placed = Vec::with_capacity(arguments.len());
    for position in 0.. {
        let Some(first) = arguments.next() else { break };
        placed.push(take(form, first, &mut arguments, copies).map_err(|why| at(position, why))?);
    }
    lent(form, placed, copies)
}

/// Returns all items that the arguments say, each after its id.
pub fn read_named<'r>(
    metric: Option<Metric>,
    mut arguments: Arguments<'r>,
    copies: &'r mut ItemBuffer,
) -> Outcome<Vec<(&'r str, Item<'r>)>> {
    let form = form_of(metric)?;
    copies.clear();
    let (mut names, mut placed) = (Vec::new(), Vec::new());
    for position in 0.. {
        let Some(name) = arguments.next() else { break };
        names.push(id(name).map_err(|why| at(position, why))?);
        let first = arguments.next().ok_or(Refusal::Arity)?;
        placed.push(take(form, first, &mut arguments, copies).map_err(|why| at(position, why))?);
    }
    Ok(names.into_iter().zip(lent(form, placed, copies)?).collect())
}

/// Returns the first item that the arguments say, and what follows it.
pub fn read_first<'r>(
    metric: Option<Metric>,
    mut arguments: Arguments<'r>,
    copies: &'r mut ItemBuffer,
) -> Outcome<(Item<'r>, Arguments<'r>)> {
    let form = form_of(metric)?;
    copies.clear();
    let first = arguments.next().ok_or(Refusal::Arity)?;
    let placed = take(form, first, &mut arguments, copies).map_err(|why| at(0, why))?;
    let item = lent(form, vec![placed], copies)?.pop().ok_or(Refusal::Arity)?;
    Ok((item, arguments))
}

/// Returns an item's id: any text but an empty one.
pub fn id(bytes: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(bytes) {
        Ok("") => Err("the id is empty".into()),
        Ok(id) => Ok(id),
        Err(error) => Err(format!("an id must be UTF-8: {error}")),
    }
}

fn at(position: usize, why: String) -> Refusal {
    Refusal::Because(format!("item {position}: {why}"))
}

fn form_of(metric: Option<Metric>) -> Outcome<Form> {
    let Some(metric) = metric else {
        return refuse!("items of this filter have no form here: hash them yourself, and send NEAR.ADDKEYS");
    };
    Ok(metric.form())
}

/// Reads an item that begins with this argument: where it lies, or `None` for one that was copied.
fn take<'r>(
    form: Form,
    first: &'r [u8],
    rest: &mut Arguments<'r>,
    copies: &mut ItemBuffer,
) -> Result<Option<Item<'r>>, String> {
    match form {
        Form::Set(_) | Form::Weighted(_) => match std::str::from_utf8(first) {
            Ok(text) => Ok(Some(Item::Text(text))),
            Err(error) => Err(format!("a text must be UTF-8: {error}")),
        },
        Form::Symbols(_) => Ok(Some(Item::Symbols(Symbols::Bytes(first)))),
        Form::Bits(bits) => add_hash(copies, first, bits).map(|()| None),
        Form::Vector(dimension) => add_vector(copies, first, rest, dimension).map(|()| None),
        _ => Err("items of this metric have no form here".into()),
    }
}

/// Returns items from where they lie. Bytes and digits may hold a few bits more than the metric has.
fn lent<'r>(form: Form, placed: Vec<Option<Item<'r>>>, copies: &'r ItemBuffer) -> Outcome<Vec<Item<'r>>> {
    let lend = |(position, placed): (usize, Option<Item<'r>>)| match (placed.or_else(|| copies.get(position)), form) {
        (Some(Item::Bits(all)), Form::Bits(bits)) => {
            let bits = Bits::new(all.words(), bits as usize);
            bits.map(Item::Bits).map_err(|error| at(position, error.to_string()))
        }
        (Some(item), _) => Ok(item),
        (None, _) => Err(at(position, "missing".into())),
    };
    placed.into_iter().enumerate().map(lend).collect()
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
