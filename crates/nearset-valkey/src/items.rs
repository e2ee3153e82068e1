//! Items as clients send them.
//!
//! | metric | an item |
//! |---|---|
//! | jaccard, weighted-jaccard | a text in UTF-8 |
//! | hamming | the hash's bytes, or twice as many hexadecimal digits |
//! | symbols | a byte a symbol |
//! | cosine, l1, l2 | 4 bytes a component (FP32, little-endian), perhaps after the word `FP32`, or `VALUES n x1 … xn` |
//!
//! Texts and symbols are used in place; hashes and vectors are copied once, into room that is kept from command to command.
//! What an item must be like is the library's to say.

use std::cell::RefCell;
use std::ops::Range;

use nearset::family::{Form, Hashed, Key};
use nearset::{BitString, Bits, Item, Metric, Symbols};

use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Arguments;

/// Memory that is kept from command to command.
#[derive(Default)]
pub struct Room {
    pub hashed: Hashed,
    pub keys: Vec<Option<Key>>,
    pub copies: Copies,
}

/// What hashing a command's items may leave behind in the room is in proportion to their bytes; after more than this it is given
/// back.
const KEPT: usize = 1 << 17;

/// Items that can't be used where they lie.
#[derive(Default)]
pub struct Copies {
    words: Vec<u64>,
    components: Vec<f32>,
    /// Where in `words` or `components` each item lies.
    places: Vec<Range<usize>>,
    bits: BitString,
}

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

/// The only item that the arguments say.
pub fn read_one<'r>(metric: Option<Metric>, arguments: Arguments<'r>, copies: &'r mut Copies) -> Outcome<Item<'r>> {
    match read_all(metric, arguments, copies)?[..] {
        [item] => Ok(item),
        _ => Err(Refusal::Arity),
    }
}

/// All items that the arguments say, in order.
pub fn read_all<'r>(
    metric: Option<Metric>,
    arguments: Arguments<'r>,
    copies: &'r mut Copies,
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
                copies.add_hash(bytes, bits).map_err(|why| at(position, why))?;
            }
            let copies = &*copies;
            let words = |(position, place): (usize, &Range<usize>)| {
                let bits = Bits::new(&copies.words[place.clone()], bits as usize);
                bits.map(Item::Bits).map_err(|error| at(position, error.to_string()))
            };
            copies.places.iter().enumerate().map(words).collect()
        }
        Form::Vector(dimension) => {
            let mut arguments = arguments;
            for position in 0.. {
                let Some(first) = arguments.next() else { break };
                copies.add_vector(first, &mut arguments, dimension).map_err(|why| at(position, why))?;
            }
            let copies = &*copies;
            Ok(copies.places.iter().map(|place| Item::Vector(&copies.components[place.clone()])).collect())
        }
        _ => refuse!("items of {metric} have no form here"),
    }
}

impl Copies {
    fn clear(&mut self) {
        self.words.clear();
        self.components.clear();
        self.places.clear();
    }

    fn add_hash(&mut self, bytes: &[u8], bits: u32) -> Result<(), String> {
        let (raw, digits) = (bits.div_ceil(8) as usize, bits.div_ceil(4) as usize);
        let start = self.words.len();
        if bytes.len() == raw {
            self.bits.set_bytes(bytes);
        } else if bytes.len() == digits || bytes.len() == 2 * raw {
            let hex = std::str::from_utf8(bytes).map_err(|_| "not hexadecimal digits".to_owned())?;
            self.bits = BitString::from_hex(hex).map_err(|error| error.to_string())?;
        } else {
            let found = bytes.len();
            return Err(format!(
                "{bits} bits are {raw} bytes, or {digits} hexadecimal digits; {found} bytes were sent"
            ));
        }
        self.words.extend_from_slice(self.bits.bits().words());
        self.places.push(start..self.words.len());
        Ok(())
    }

    fn add_vector(&mut self, first: &[u8], rest: &mut Arguments<'_>, dimension: u32) -> Result<(), String> {
        let start = self.components.len();
        if first.len() == 4 * dimension as usize {
            self.add_components(first);
        } else if first.eq_ignore_ascii_case(b"VALUES") {
            let count = rest.next().and_then(number::<usize>).ok_or("VALUES needs the number of components")?;
            if count > rest.len() {
                return Err(format!("VALUES {count} is followed by {} numbers", rest.len()));
            }
            for text in rest.by_ref().take(count) {
                let component = number(text).ok_or_else(|| format!("{} is not a number", shown(text)))?;
                self.components.push(component);
            }
        } else if first.eq_ignore_ascii_case(b"FP32") {
            self.add_blob(rest.next().ok_or("FP32 needs the vector's bytes")?)?;
        } else {
            self.add_blob(first)?;
        }
        self.places.push(start..self.components.len());
        Ok(())
    }

    fn add_blob(&mut self, blob: &[u8]) -> Result<(), String> {
        if !blob.len().is_multiple_of(4) {
            let found = blob.len();
            return Err(format!(
                "a vector is 4 bytes a component (FP32), or VALUES n x1 … xn; {found} bytes were sent"
            ));
        }
        self.add_components(blob);
        Ok(())
    }

    fn add_components(&mut self, blob: &[u8]) {
        let (components, _) = blob.as_chunks::<4>();
        self.components.extend(components.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    }
}

/// A number as Rust reads it, without blanks.
pub fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An argument as an error shows it.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let (start, dots) = if bytes.len() > MOST { (&bytes[..MOST], "…") } else { (bytes, "") };
    format!("'{}{dots}'", start.escape_ascii())
}
