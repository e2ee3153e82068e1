//! Joins of items that are held in memory: hashes, vectors, strings, and texts by other measures than Jaccard's.
//!
//! Claim: a distance stated here is exact. Of bit strings none within `near` is missed; of other items those at exactly `near` are
//! missed as rarely as the plan states. Whether two records are compared depends on the two alone, so that neither threads nor
//! batches nor the order of other records can show.
//! Invariant: records are looked up among those before them by all threads, and those of one round among themselves in order.
//! Limit: what others are compared with is held, in an [`Index`](nearset::Index).

mod centres;
mod entries;
mod families;
mod plan;

use std::hash::{DefaultHasher, Hasher};

use nearset::family::{Form, Hashed};
use nearset::index::PreparedItem;
use nearset::item::ItemBuffer;
use nearset::{Index, Item, ItemError, Shingler};
use nearset_records::{Extracted, Fields, RecordError, RecordFault};

use super::stream::shingle;
use crate::run::{RunError, Worker};
use crate::screen::{Against, first_hit};
pub(super) use centres::Centres;
use entries::Entries;
pub(super) use families::Families;
pub(super) use plan::ItemPlan;

/// Records that are looked up together; those among them are then compared in order.
pub(super) const AT_ONCE: usize = 4096;

/// A record whose item is ready to be looked up.
pub(super) struct Arrival {
    /// Its number in the batch.
    pub record: usize,
    /// Empty where ids are not wanted.
    pub id: Box<str>,
    /// What stands in the id field, where that is asked for.
    pub field: Option<Box<str>>,
    /// The filter built before that it is near something in, and how many bands hit there.
    pub screened: Option<(usize, u32)>,
    /// Bytes of its text, if it is one.
    pub text_bytes: usize,
    /// `None` for an empty text, which is near nothing.
    pub item: Option<PreparedItem>,
}

impl Arrival {
    /// Its memory, about.
    pub fn bytes(&self) -> u64 {
        let item = self.item.as_ref().map_or(0, |item| {
            let mut words = 0;
            for_each_word(item.into(), |_| words += 8);
            words
        });
        (size_of::<Self>() + self.id.len()) as u64 + item
    }
}

/// Makes items ready, on any thread.
#[derive(Clone)]
pub(super) struct Preparer<'a> {
    /// Without items: what is made ready by it fits every index of its spec.
    index: &'a Index<'static>,
    shingler: Option<Shingler>,
    is_weighted: bool,
    pub fields: Fields,
    against: &'a [Against<'a>],
    wants_ids: bool,
    wants_field: bool,
}

impl<'a> Preparer<'a> {
    pub fn new(plan: &'a ItemPlan, fields: &Fields) -> Result<Self, RunError> {
        let (shingler, is_weighted) = match plan.metric.form() {
            Form::Set(shingling) => (Some(shingling), false),
            Form::Weighted(shingling) => (Some(shingling), true),
            _ => (None, false),
        };
        let shingler = shingler.map(|shingling| Shingler::new(shingling, plan.seed)).transpose()?;
        let fields = fields.clone();
        Ok(Self {
            index: &plan.empty,
            shingler,
            is_weighted,
            fields,
            against: &[],
            wants_ids: false,
            wants_field: false,
        })
    }

    /// The same, where items are screened by filters built before.
    pub fn with_screen(mut self, against: &'a [Against<'a>]) -> Self {
        self.against = against;
        self
    }

    /// The same, where records are to be named.
    pub fn with_ids(mut self, wanted: bool) -> Self {
        self.wants_ids = wanted;
        self
    }

    /// The same, where another field is wanted in the place of the id.
    pub fn with_field(mut self, field: Option<String>) -> Self {
        self.wants_field = field.is_some();
        self.fields = self.fields.with_id(field);
        self
    }

    /// Makes an item ready; `None` for an empty text.
    pub fn prepare(&self, item: Item<'_>, shingles: &mut Vec<u64>) -> Result<Option<PreparedItem>, ItemError> {
        let (Item::Text(text), Some(shingler)) = (item, &self.shingler) else {
            return self.index.prepare(item).map(Some);
        };
        if text.is_empty() {
            return Ok(None);
        }
        if self.is_weighted {
            let bag = shingler.bag(text);
            let whole = [(shingler.whole(text), 1.0)];
            return self.index.prepare(Item::Weighted(if bag.is_empty() { &whole } else { &bag })).map(Some);
        }
        shingle(shingler, text, shingles);
        self.index.prepare(Item::Set(shingles)).map(Some)
    }

    fn arrival(&self, extracted: &Extracted<'_>, i: usize, room: &mut Room) -> Result<Arrival, RecordError> {
        let item = extracted.item(i).map_err(Clone::clone)?;
        let unhashable = |cause| extracted.error(i, RecordFault::Unhashable { field: self.fields.item.clone(), cause });
        let screened = first_hit(self.against, item, None, &mut room.hashed);
        Ok(Arrival {
            record: i,
            id: if self.wants_ids { (*extracted.id(i)).into() } else { Box::default() },
            field: if self.wants_field { extracted.own_id(i).map(Into::into) } else { None },
            text_bytes: if let Item::Text(text) = item { text.len() } else { 0 },
            // What a filter made before calls near is not compared, but must be of the right kind.
            item: self.prepare(item, &mut room.shingles).map_err(unhashable)?,
            screened,
        })
    }
}

/// What one thread works with.
#[derive(Default)]
pub(super) struct Room {
    shingles: Vec<u64>,
    hashed: Hashed,
}

impl Worker for Preparer<'_> {
    type Piece = Vec<Arrival>;
    type Room = Room;

    fn room(&self) -> Room {
        Room::default()
    }

    fn clear(&self, _: &mut Room, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
    }

    fn add(
        &self,
        room: &mut Room,
        extracted: &Extracted<'_>,
        i: usize,
        arrivals: &mut Vec<Arrival>,
    ) -> Result<(), RecordError> {
        arrivals.push(self.arrival(extracted, i, room)?);
        Ok(())
    }
}

/// A number that equal items share, and others hardly ever.
fn fingerprint(item: Item<'_>) -> u128 {
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    hashers[1].write_u8(1);
    for_each_word(item, |word| hashers.iter_mut().for_each(|hasher| hasher.write_u64(word)));
    let [low, high] = hashers.map(|hasher| hasher.finish());
    u128::from(high) << 64 | u128::from(low)
}

/// Calls `each` with the words that an item of a known form is made of.
pub(super) fn for_each_word(item: Item<'_>, mut each: impl FnMut(u64)) {
    match item {
        Item::Bits(bits) => bits.words().iter().for_each(|&word| each(word)),
        Item::Set(set) => set.iter().for_each(|&element| each(element)),
        Item::Weighted(set) => set.iter().for_each(|&(element, weight)| {
            each(element);
            each(weight.to_bits());
        }),
        Item::Vector(vector) => vector.iter().for_each(|component| each(component.to_bits().into())),
        Item::Symbols(nearset::Symbols::Bytes(symbols)) => symbols.iter().for_each(|&symbol| each(symbol.into())),
        Item::Symbols(nearset::Symbols::Wide(symbols)) => symbols.iter().for_each(|&symbol| each(symbol.into())),
        Item::Text(text) => text.bytes().for_each(|byte| each(byte.into())),
        _ => {}
    }
}

/// The item of a form that [`for_each_word`] took apart; `None` if it can't have been.
pub(super) fn from_words(form: Form, words: &[u64]) -> Option<ItemBuffer> {
    let mut items = ItemBuffer::default();
    match form {
        Form::Bits(bits) => items.push(Item::Bits(nearset::Bits::new(words, bits as usize).ok()?)),
        Form::Set(_) => items.push(Item::Set(words)),
        Form::Weighted(_) => {
            let (pairs, rest) = words.as_chunks::<2>();
            if !rest.is_empty() {
                return None;
            }
            items.push(Item::Weighted(
                &pairs.iter().map(|&[element, bits]| (element, f64::from_bits(bits))).collect::<Vec<_>>(),
            ));
        }
        Form::Vector(_) => {
            let component = |&word: &u64| u32::try_from(word).ok().map(f32::from_bits);
            items.push(Item::Vector(&words.iter().map(component).collect::<Option<Vec<_>>>()?));
        }
        Form::Symbols(_) => {
            let symbol = |&word: &u64| u32::try_from(word).ok();
            let symbols = words.iter().map(symbol).collect::<Option<Vec<_>>>()?;
            items.push(Item::Symbols(nearset::Symbols::Wide(&symbols)));
        }
        _ => return None,
    }
    Some(items)
}
