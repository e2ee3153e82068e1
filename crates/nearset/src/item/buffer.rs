//! Items that someone owns: copied, read or parsed once, and lent as views.
//!
//! Invariant: items of one kind lie side by side, so a buffer that is cleared and filled again does not allocate.

use std::ops::Range;

use super::{BitString, Bits, Item, ItemError, Symbols};

/// Owned items, one after the other.
///
/// ```
/// use nearset::{Item, item::ItemBuffer};
///
/// let mut items = ItemBuffer::default();
/// items.push("a text".into());
/// items.push_hex("00ff")?;
/// items.push_missing();
/// items.push_numbers("[0.5, 1]")?;
/// assert!(matches!(items.get(0), Some(Item::Text("a text"))));
/// assert!(matches!(items.get(1), Some(Item::Bits(bits)) if bits.len() == 16));
/// assert!(items.get(2).is_none());
/// assert!(matches!(items.get(3), Some(Item::Vector(&[0.5, 1.0]))));
/// # Ok::<(), nearset::ItemError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ItemBuffer {
    text: String,
    /// Elements of sets, and words of bit strings.
    words: Vec<u64>,
    weighted: Vec<(u64, f64)>,
    bytes: Vec<u8>,
    wide: Vec<u32>,
    floats: Vec<f32>,
    places: Vec<Place>,
    /// Room for a bit string that is being read.
    bits: BitString,
}

/// Where an item lies in the vector of its kind.
#[derive(Debug, Clone)]
pub enum Place {
    Missing,
    Text(Range<usize>),
    Set(Range<usize>),
    Weighted(Range<usize>),
    Bits { words: Range<usize>, len: usize },
    Bytes(Range<usize>),
    Wide(Range<usize>),
    Vector(Range<usize>),
}

impl ItemBuffer {
    /// Forgets all items, and keeps the memory.
    pub fn clear(&mut self) {
        let Self { text, words, weighted, bytes, wide, floats, places, bits: _ } = self;
        text.clear();
        words.clear();
        weighted.clear();
        bytes.clear();
        wide.clear();
        floats.clear();
        places.clear();
    }

    /// Returns how many items there are, missing ones included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the bytes of the items' data.
    pub fn bytes(&self) -> usize {
        self.text.len()
            + 8 * self.words.len()
            + 16 * self.weighted.len()
            + self.bytes.len()
            + 4 * (self.wide.len() + self.floats.len())
    }

    /// Returns item `i`, or `None` where it is missing.
    ///
    /// # Panics
    /// If there is no place `i`.
    pub fn get(&self, i: usize) -> Option<Item<'_>> {
        Some(match self.places[i].clone() {
            Place::Missing => return None,
            Place::Text(range) => Item::Text(&self.text[range]),
            Place::Set(range) => Item::Set(&self.words[range]),
            Place::Weighted(range) => Item::Weighted(&self.weighted[range]),
            Place::Bits { words, len } => {
                let words = &self.words[words];
                // Words of a bit string have no bits beyond its length, so the whole words are as good a view.
                Item::Bits(Bits::new(words, len).unwrap_or(Bits::from_words(words)))
            }
            Place::Bytes(range) => Item::Symbols(Symbols::Bytes(&self.bytes[range])),
            Place::Wide(range) => Item::Symbols(Symbols::Wide(&self.wide[range])),
            Place::Vector(range) => Item::Vector(&self.floats[range]),
        })
    }

    /// Returns the only item.
    ///
    /// # Panics
    /// If it is missing, or there are none or several.
    pub fn view(&self) -> Item<'_> {
        assert_eq!(self.len(), 1, "one item");
        self.get(0).expect("an item that is there")
    }

    /// Copies an item.
    pub fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Text(text) => {
                let start = self.text.len();
                self.text.push_str(text);
                self.places.push(Place::Text(start..self.text.len()));
            }
            Item::Set(set) => self.places.push(Place::Set(extended(&mut self.words, set))),
            Item::Weighted(set) => self.places.push(Place::Weighted(extended(&mut self.weighted, set))),
            Item::Bits(bits) => {
                let words = extended(&mut self.words, bits.words());
                self.places.push(Place::Bits { words, len: bits.len() });
            }
            Item::Symbols(Symbols::Bytes(symbols)) => {
                self.places.push(Place::Bytes(extended(&mut self.bytes, symbols)));
            }
            Item::Symbols(Symbols::Wide(symbols)) => self.places.push(Place::Wide(extended(&mut self.wide, symbols))),
            Item::Vector(vector) => self.places.push(Place::Vector(extended(&mut self.floats, vector))),
        }
    }

    /// Leaves the next place empty.
    pub fn push_missing(&mut self) {
        self.places.push(Place::Missing);
    }

    /// Reads a bit string from hexadecimal digits.
    ///
    /// # Errors
    /// If a character is none.
    pub fn push_hex(&mut self, digits: &str) -> Result<(), ItemError> {
        self.bits = BitString::from_hex(digits)?;
        self.push_read_bits();
        Ok(())
    }

    /// Reads a bit string from bytes, as [`BitString::from_bytes`] does.
    pub fn push_bit_bytes(&mut self, bytes: &[u8]) {
        self.bits.set_bytes(bytes);
        self.push_read_bits();
    }

    fn push_read_bits(&mut self) {
        let bits = self.bits.bits();
        let words = extended(&mut self.words, bits.words());
        self.places.push(Place::Bits { words, len: bits.len() });
    }

    /// Reads a vector from numbers between commas or white space, in brackets or not.
    ///
    /// # Errors
    /// If something else stands there, or a number is not finite.
    pub fn push_numbers(&mut self, text: &str) -> Result<(), ItemError> {
        let inner = text.trim();
        let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
        let numbers = inner.split([',', ' ', '\t', '\r', '\n']).filter(|number| !number.is_empty());
        self.fill(|vector: &mut Vec<f32>| {
            for number in numbers {
                match number.parse::<f32>() {
                    Ok(value) if value.is_finite() => vector.push(value),
                    _ => return Err(ItemError::NotANumber { found: number.chars().take(40).collect() }),
                }
            }
            Ok(())
        })
    }

    /// Adds an item that `fill` appends: a text to a `String`, a set to a `Vec<u64>`, a weighted one to a `Vec<(u64, f64)>`, the symbols
    /// of a string to a `Vec<u32>`, or the components of a vector to a `Vec<f32>`.
    ///
    /// ```
    /// use nearset::{Item, item::ItemBuffer};
    ///
    /// let mut items = ItemBuffer::default();
    /// items.fill(|text: &mut String| {
    ///     text.push_str("a text");
    ///     Ok::<_, std::convert::Infallible>(())
    /// })?;
    /// assert!(matches!(items.get(0), Some(Item::Text("a text"))));
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    ///
    /// # Errors
    /// That of `fill`; nothing is added then.
    pub fn fill<R: Room, E>(&mut self, fill: impl FnOnce(&mut R) -> Result<(), E>) -> Result<(), E> {
        let room = R::of(self);
        let start = room.len();
        let filled = fill(room);
        if filled.is_err() {
            room.truncate(start);
            return filled;
        }
        let range = start..room.len();
        self.places.push(R::place(range));
        filled
    }
}

/// What items of one kind are appended to. It is sealed: this module is private, so nothing outside can name it.
pub trait Room {
    fn of(items: &mut ItemBuffer) -> &mut Self;
    fn len(&self) -> usize;
    fn truncate(&mut self, len: usize);
    fn place(range: Range<usize>) -> Place;
}

macro_rules! rooms {
    ($($room:ty, $field:ident, $place:ident;)*) => {
        $(impl Room for $room {
            fn of(items: &mut ItemBuffer) -> &mut Self {
                &mut items.$field
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn truncate(&mut self, len: usize) {
                self.truncate(len);
            }
            fn place(range: Range<usize>) -> Place {
                Place::$place(range)
            }
        })*
    };
}

rooms! {
    String, text, Text;
    Vec<u64>, words, Set;
    Vec<(u64, f64)>, weighted, Weighted;
    Vec<u32>, wide, Wide;
    Vec<f32>, floats, Vector;
}

impl From<Item<'_>> for ItemBuffer {
    /// One item, copied.
    fn from(item: Item<'_>) -> Self {
        let mut one = Self::default();
        one.push(item);
        one
    }
}

fn extended<T: Copy>(all: &mut Vec<T>, more: &[T]) -> Range<usize> {
    let start = all.len();
    all.extend_from_slice(more);
    start..all.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_what_was_copied() {
        let bits = BitString::from_hex("00ff3").unwrap();
        let items = [
            Item::Text("text"),
            Item::Set(&[3, 1]),
            Item::Weighted(&[(1, 0.5)]),
            Item::Bits(bits.bits()),
            Item::Symbols(Symbols::Bytes(b"acgt")),
            Item::Symbols(Symbols::Wide(&[7, 1 << 20])),
            Item::Vector(&[0.5, -1.0]),
        ];
        let mut buffer = ItemBuffer::default();
        for round in 0..2 {
            buffer.clear();
            items.iter().chain(&items).for_each(|&item| buffer.push(item));
            assert_eq!(buffer.len(), 14, "round {round}");
            for (i, item) in items.iter().chain(&items).enumerate() {
                assert_eq!(format!("{:?}", buffer.get(i).unwrap()), format!("{item:?}"));
            }
        }
    }

    #[test]
    fn what_cannot_be_read_leaves_nothing_behind() {
        let mut buffer = ItemBuffer::default();
        assert_eq!(buffer.push_numbers("1 2, x"), Err(ItemError::NotANumber { found: "x".to_owned() }));
        assert_eq!(buffer.push_numbers("1 inf"), Err(ItemError::NotANumber { found: "inf".to_owned() }));
        assert!(buffer.push_hex("0g").is_err());
        assert_eq!(
            buffer.fill(|set: &mut Vec<u64>| {
                set.push(1);
                Err("no")
            }),
            Err("no")
        );
        assert_eq!((buffer.len(), buffer.bytes()), (0, 0));
    }
}
