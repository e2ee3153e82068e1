//! Items as an index keeps them: in the form that distances are worked out from, all in a few arrays.
//!
//! Invariant: a text is kept as the set (or bag) of its shingles' hashes, ascending, under the seed that its keys come from; so a
//! query is cut into shingles once.

use std::{borrow::Cow, collections::TryReserveError};

use crate::{
    Distance, Family, Metric, Shingler, Symbols,
    error::SpecError,
    family::{Form, LshFamily, functions_seed},
    item::{self, Bits, Item, ItemError},
    simd::dot::project_selected,
};

use super::LshSpec;

/// An item in the form in which it is hashed, kept and compared.
pub(crate) enum Prepared<'i> {
    /// Ascending, each element once.
    Set(Cow<'i, [u64]>),
    /// Ascending by element, each once.
    Weighted(Cow<'i, [(u64, f64)]>),
    Other(Item<'i>),
}

impl Prepared<'_> {
    pub(crate) fn view(&self) -> Item<'_> {
        match self {
            Prepared::Set(set) => Item::Set(set),
            Prepared::Weighted(set) => Item::Weighted(set),
            Prepared::Other(item) => *item,
        }
    }
}

/// Brings an item into that form. What the family does not take is left as it is, for hashing to refuse.
pub(crate) fn prepare<'i>(spec: &LshSpec, item: Item<'i>) -> Result<Prepared<'i>, ItemError> {
    let shingler = |shingling| -> Result<Shingler, SpecError> { Shingler::new(shingling, functions_seed(spec.seed)) };
    Ok(match (spec.family.form(), item) {
        (Form::Set(shingling), Item::Text(text)) => Prepared::Set(shingler(shingling)?.shingle_set(text).into()),
        (Form::Set(_), Item::Set(set)) if !set.is_sorted_by(|a, b| a < b) => {
            let mut set = set.to_vec();
            set.sort_unstable();
            set.dedup();
            Prepared::Set(set.into())
        }
        (Form::Set(_), Item::Set(set)) => Prepared::Set(set.into()),
        (Form::Weighted(shingling), Item::Text(text)) => Prepared::Weighted(shingler(shingling)?.bag(text).into()),
        (Form::Weighted(_), Item::Weighted(set)) => {
            item::check_weights(set)?;
            Prepared::Weighted(item::ascending_weights(set)?)
        }
        (_, item) => Prepared::Other(item),
    })
}

/// Tells quickly which vectors lie surely farther than wanted: their cosines with a query in f32, a fraction of what exact
/// angles cost.
pub(crate) struct Cosines {
    unit: Vec<f32>,
    /// How far a cosine may be off. A sum in f32 is off by `2^-24` of the sum of its terms' sizes for every addition on the way, of
    /// which `dot` makes an eighth of the dimension and a few at most; the root and the quotient add some.
    error: f32,
}

/// Squares of norms in here lose no digits to underflow and do not overflow.
const SAFE: std::ops::Range<f32> = 1e-30..1e30;

impl Cosines {
    pub(crate) fn new(family: &Family, query: Item<'_>) -> Option<Self> {
        let (Some(Metric::Angle { .. }), Item::Vector(query)) = (family.metric(), query) else {
            return None;
        };
        let norm = item::vector::norm_square(query).sqrt();
        let unit = query.iter().map(|&x| (f64::from(x) / norm) as f32).collect();
        Some(Self { unit, error: (query.len() as f32 / 8.0 + 20.0) * f32::EPSILON })
    }

    /// The cosines of the query with the vectors in these slots, or a little more, but not less; 2 where it takes f64 to tell.
    pub(crate) fn at_most(&self, kept: &Kept<'_>, slots: &[u32]) -> Vec<f32> {
        let mut found = Vec::with_capacity(slots.len());
        project_selected(bytemuck::cast_slice(&kept.halves), slots, &self.unit, |dot, square| {
            found.push(if SAFE.contains(&square) { dot / square.sqrt() + self.error } else { 2.0 });
        });
        found
    }

    /// The least that [`Self::at_most`] can say of a vector at this distance.
    pub(crate) fn at(&self, distance: Distance) -> f32 {
        if distance.value() >= std::f64::consts::PI { -2.0 } else { libm::cos(distance.value()) as f32 - f32::EPSILON }
    }

    /// What the `top` nearest of these all reach, given what [`Self::at_most`] says of each.
    pub(crate) fn of_top(&self, at_most: &mut [f32], top: usize) -> f32 {
        if top == 0 || top >= at_most.len() {
            return -2.0;
        }
        let (_, last, _) = at_most.select_nth_unstable_by(top - 1, |a, b| b.total_cmp(a));
        // Its true cosine is at least this; whoever says less is farther.
        if *last > 1.5 { -2.0 } else { *last - 2.0 * self.error }
    }
}

/// How items of a family are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// So many bits each, in whole words.
    Bits(usize),
    /// So many symbols each.
    Symbols(usize),
    /// So many components each.
    Vector(usize),
    /// As many elements as there are, of one word.
    Set,
    /// As many elements as there are, of two words: element and weight.
    Weighted,
}

impl Shape {
    pub(crate) fn of(family: &Family) -> Self {
        match family.form() {
            Form::Bits(bits) => Shape::Bits(bits as usize),
            Form::Symbols(length) => Shape::Symbols(length as usize),
            Form::Vector(dimension) => Shape::Vector(dimension as usize),
            Form::Set(_) => Shape::Set,
            Form::Weighted(_) => Shape::Weighted,
        }
    }

    /// Words, and numbers of 32 bits, that each item takes, where all take as many.
    pub(crate) fn each(self) -> (usize, usize) {
        match self {
            Shape::Bits(bits) => (bits.div_ceil(64), 0),
            Shape::Symbols(length) | Shape::Vector(length) => (0, length),
            Shape::Set | Shape::Weighted => (0, 0),
        }
    }

    pub(crate) fn varies(self) -> bool {
        matches!(self, Shape::Set | Shape::Weighted)
    }
}

/// Items in the order of their slots.
#[derive(Clone)]
pub(crate) struct Kept<'a> {
    pub(crate) shape: Shape,
    /// Where each item's words end, if items vary in length.
    pub(crate) ends: Cow<'a, [u64]>,
    pub(crate) words: Cow<'a, [u64]>,
    pub(crate) halves: Cow<'a, [u32]>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(family: &Family) -> Self {
        let shape = Shape::of(family);
        Self { shape, ends: Cow::default(), words: Cow::default(), halves: Cow::default() }
    }

    pub(crate) fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Bits(bits) => self.words.to_mut().extend_from_slice(bits.words()),
            Item::Symbols(symbols) => self.halves.to_mut().extend((0..symbols.len()).map(|i| symbols.symbol(i))),
            Item::Vector(vector) => self.halves.to_mut().extend(vector.iter().map(|x| x.to_bits())),
            Item::Set(set) => self.words.to_mut().extend_from_slice(set),
            Item::Weighted(set) => {
                self.words.to_mut().extend(set.iter().flat_map(|&(element, weight)| [element, weight.to_bits()]));
            }
            Item::Text(_) => unreachable!("texts are kept as sets"),
        }
        if self.shape.varies() {
            let end = self.words.len() as u64;
            self.ends.to_mut().push(end);
        }
    }

    fn varying(&self, slot: usize) -> Option<&[u64]> {
        let from = if slot == 0 { 0 } else { *self.ends.get(slot - 1)? };
        self.words.get(from as usize..*self.ends.get(slot)? as usize)
    }

    /// How many words the item in a slot has, and one for finding it.
    pub(crate) fn words_of(&self, slot: u32) -> u64 {
        let (words, halves) = self.shape.each();
        1 + (self.varying(slot as usize).map_or(words, <[u64]>::len) + halves / 2) as u64
    }

    /// The item in a slot, `None` if there is none; `room` takes what can't be lent as it lies.
    pub(crate) fn item<'k>(&'k self, slot: u32, room: &'k mut Vec<(u64, f64)>) -> Option<Item<'k>> {
        let slot = slot as usize;
        let (words, halves) = self.shape.each();
        let words = || self.words.get(slot * words..(slot + 1) * words);
        let halves = || self.halves.get(slot * halves..(slot + 1) * halves);
        Some(match self.shape {
            Shape::Bits(bits) => Item::Bits(Bits::new(words()?, bits).ok()?),
            Shape::Symbols(_) => Item::Symbols(Symbols::Wide(halves()?)),
            Shape::Vector(_) => Item::Vector(bytemuck::cast_slice(halves()?)),
            Shape::Set => Item::Set(self.varying(slot)?),
            Shape::Weighted => {
                room.clear();
                let pairs = self.varying(slot)?.as_chunks::<2>().0;
                room.extend(pairs.iter().map(|&[element, weight]| (element, f64::from_bits(weight))));
                Item::Weighted(room)
            }
        })
    }

    /// The exact distance of the item in a slot from a prepared one; `None` where there is none, as a damaged file may have it.
    pub(crate) fn distance(&self, family: &Family, query: Item<'_>, slot: u32) -> Option<Distance> {
        let mut room = Vec::new();
        family.distance(query, self.item(slot, &mut room)?).ok()
    }

    /// Makes room for items in slots of others.
    pub(crate) fn reserve<'k>(
        &mut self,
        items: impl Iterator<Item = (&'k Kept<'k>, u32)>,
    ) -> Result<(), TryReserveError> {
        let (mut count, mut varying) = (0, 0);
        for (other, slot) in items {
            count += 1;
            varying += other.varying(slot as usize).map_or(0, <[u64]>::len);
        }
        let (words, halves) = self.shape.each();
        self.ends.to_mut().try_reserve_exact(if self.shape.varies() { count } else { 0 })?;
        self.words.to_mut().try_reserve_exact(if self.shape.varies() { varying } else { count * words })?;
        self.halves.to_mut().try_reserve_exact(count * halves)
    }

    /// Appends other items, those left out for which `keeps` is false.
    pub(crate) fn extend(&mut self, other: &Kept<'_>, items: u32, keeps: impl Fn(u32) -> bool) {
        let mut room = Vec::new();
        for slot in (0..items).filter(|&slot| keeps(slot)) {
            if let Some(item) = other.item(slot, &mut room) {
                self.push(item);
            }
        }
    }

    /// What of it no insertion could have kept.
    pub(crate) fn fault(&self, items: u32) -> Option<&'static str> {
        if self.shape.varies() && !self.ends.is_sorted() {
            return Some("ends out of order");
        }
        let mut room = Vec::new();
        for slot in 0..items {
            match self.item(slot, &mut room) {
                None => return Some("an item with bits beyond its length"),
                Some(Item::Set(set)) if !set.is_sorted_by(|a, b| a < b) => return Some("a set out of order"),
                Some(Item::Weighted(set)) if !set.is_sorted_by(|a, b| a.0 < b.0) => return Some("a set out of order"),
                Some(Item::Weighted(set)) if item::check_weights(set).is_err() => return Some("a weight that is none"),
                Some(Item::Vector(vector)) if vector.iter().any(|x| !x.is_finite()) => {
                    return Some("a component that is not finite");
                }
                Some(_) => {}
            }
            if self.shape == Shape::Weighted && self.varying(slot as usize).is_some_and(|words| words.len() % 2 == 1) {
                return Some("an element without weight");
            }
        }
        None
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.words) + size_of_val(&*self.halves)
    }

    pub(crate) fn into_owned(self) -> Kept<'static> {
        Kept {
            shape: self.shape,
            ends: self.ends.into_owned().into(),
            words: self.words.into_owned().into(),
            halves: self.halves.into_owned().into(),
        }
    }
}
