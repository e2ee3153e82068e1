//! The bands' tables: all in one run of cache lines, band after band.

use std::{
    ops::{Index, IndexMut, Range},
    sync::Arc,
};

use nearset_theory::bloom;

use crate::{
    Seed,
    bloom::{BitArray, bits::owned, with_lines},
    error::SpecError,
    family::Key,
    hash::{mix, reduce},
    simd::{
        line::{self, Lanes, Line, Lines, Probe},
        places::{NOWHERE, places},
    },
    spec::Table,
};

/// Keys that are in the window at once: they stay in the second-level cache, and so do a few bands' tables, or the part of
/// them that so many items touch.
const WINDOW: usize = 16 << 10;

/// Keys whose places are worked out together: their spots stay in the first-level cache.
const GROUP: usize = 1024;

/// Keys in a cache line: bands are taken in groups of a multiple of it, so that no line of keys is fetched for two groups.
const LINE_KEYS: usize = 64 / size_of::<Option<Key>>();

/// How many keys ahead of the one that is looked at a line is fetched.
const AHEAD: usize = 48;

#[derive(Clone)]
pub(crate) struct Tables<'a> {
    place: Place,
    bits: BitArray<'a>,
    /// Bits that are set, kept up to date where a key is one bit.
    ones: u64,
}

/// Where a band's keys lie.
#[derive(Clone)]
pub(crate) struct Place {
    table: Table,
    bands: usize,
    /// Where each direct table starts, in bits, and where the last one ends; empty for tables of one size.
    starts: Arc<[u64]>,
    /// One a band, mixed into its keys, so that no two bands send a key to like places; empty for direct tables.
    seeds: Arc<[u64]>,
}

/// A key's line, and where in it.
#[derive(Clone, Copy)]
struct Spot {
    line: usize,
    within: u64,
}

impl Spot {
    #[inline(always)]
    fn of_bit(bit: u64) -> Self {
        Self { line: (bit / Line::BITS) as usize, within: bit % Line::BITS }
    }

    /// The bit that it is the spot of, in tables whose keys are one bit each.
    fn bit(self) -> u64 {
        self.line as u64 * Line::BITS + self.within
    }

    #[inline(always)]
    fn place(self, lanes: Lanes) -> line::Place {
        line::Place { line: self.line, probe: lanes.probe(self.within) }
    }
}

/// The spots of a window of keys, those left out that are none.
#[derive(Default)]
struct Spots {
    all: Vec<Spot>,
    /// `0..all.len()`.
    order: Vec<u64>,
}

impl Place {
    /// One table for each of `rows`, the number of bits in a band's keys, which only direct tables need.
    pub(crate) fn new(table: Table, rows: impl Iterator<Item = u32>, seed: Seed) -> Self {
        if table == Table::Direct {
            let mut end = 0;
            let ends = rows.map(|rows| {
                end += 1 << rows;
                end
            });
            let starts: Arc<[u64]> = std::iter::once(0).chain(ends).collect();
            return Self { table, bands: starts.len() - 1, starts, seeds: Arc::default() };
        }
        let seeds: Arc<[u64]> = (0..).zip(rows).map(|(band, _)| seed.derive("table", band).words()[0]).collect();
        Self { table, bands: seeds.len(), starts: Arc::default(), seeds }
    }

    /// The same in tables of another size, which costs no memory. Direct tables have but one.
    pub(crate) fn with_table(&self, table: Table) -> Self {
        debug_assert_eq!(table == Table::Direct, self.table == Table::Direct);
        Self { table, ..self.clone() }
    }

    /// The bits of a band's table.
    fn range(&self, band: usize) -> Range<u64> {
        let equal = |size: u64| band as u64 * size..(band as u64 + 1) * size;
        match self.table {
            Table::Direct => self.starts[band]..self.starts[band + 1],
            Table::Bits(bits) => equal(bits),
            Table::Lines { lines, .. } => equal(lines * Line::BITS),
        }
    }

    pub(crate) fn num_bits(&self) -> u64 {
        self.range(self.bands - 1).end
    }

    #[inline(always)]
    fn spot(&self, band: usize, key: Key) -> Spot {
        let hash = || mix(key.get() ^ self.seeds[band]);
        match self.table {
            Table::Direct => {
                let (start, end) = (self.starts[band], self.starts[band + 1]);
                Spot::of_bit(start + (key.get() & (end - start - 1)))
            }
            Table::Bits(bits) => Spot::of_bit(band as u64 * bits + reduce(hash(), bits)),
            Table::Lines { lines, .. } => {
                let hash = hash();
                Spot { line: (band as u64 * lines + reduce(hash, lines)) as usize, within: hash }
            }
        }
    }

    /// Takes the keys of some bands, a window of whole items after the other. In each it goes band by band, which keeps to few tables for long and gives
    /// the answers of item by item, since a band's table knows its own keys only. `visit` answers for a key's spot, and gets one
    /// that it will be asked for later; `each` gets an item's keys and hits. Keys that are none do not hit. For tables whose keys
    /// are one bit each.
    fn bit_by_bit(
        &self,
        (keys, of): (&[Option<Key>], Range<usize>),
        mut visit: impl FnMut(Spot, Option<Spot>) -> bool,
        mut each: impl FnMut(&[Option<Key>], &mut [bool]),
    ) {
        let (all, bands) = (self.bands, of.len());
        let window = (WINDOW / bands).clamp(1, (keys.len() / all).max(1));
        let (mut bits, mut hits) = (vec![NOWHERE; window * bands], vec![false; window * bands]);
        for keys in keys.chunks(window * all) {
            for (keys, bits) in keys.chunks(all).zip(bits.chunks_mut(bands)) {
                self.bits(&keys[of.clone()], of.start, bits);
            }
            let items = keys.len() / all;
            let bits = &bits[..items * bands];
            let (items_ahead, bands_ahead) = (AHEAD % items, AHEAD / items);
            for band in 0..bands {
                for at in (band..bits.len()).step_by(bands) {
                    let mut ahead = at + items_ahead * bands;
                    if ahead >= bits.len() {
                        // The next band, from the first item on.
                        ahead -= bits.len() - 1;
                    }
                    let later = bits.get(ahead + bands_ahead).filter(|bit| **bit != NOWHERE);
                    hits[at] =
                        bits[at] != NOWHERE && visit(Spot::of_bit(bits[at]), later.map(|bit| Spot::of_bit(*bit)));
                }
            }
            for (item, hits) in keys.chunks(all).zip(hits.chunks_mut(bands)) {
                each(&item[of.clone()], hits);
            }
        }
    }

    /// The bits of an item's keys from some band on, where a key is one bit.
    fn bits(&self, keys: &[Option<Key>], first: usize, out: &mut [u64]) {
        match self.table {
            Table::Bits(bits) => {
                places(keys, &self.seeds[first..], bits, out);
                if first > 0 {
                    let before = first as u64 * bits;
                    out.iter_mut().filter(|bit| **bit != NOWHERE).for_each(|bit| *bit += before);
                }
            }
            _ => {
                for (band, (key, bit)) in (first..).zip(keys.iter().zip(out)) {
                    *bit = key.map_or(NOWHERE, |key| self.spot(band, key).bit());
                }
            }
        }
    }

    /// [`Self::bit_by_bit`] for tables of lines: `visit` answers for the spots of a group of bands at a time.
    fn line_by_line(
        &self,
        keys: &[Option<Key>],
        mut visit: impl FnMut(&Spots, &mut [bool]),
        mut each: impl FnMut(&[Option<Key>], &mut [bool]),
    ) {
        let bands = self.bands;
        let window = (WINDOW / bands).clamp(1, (keys.len() / bands).max(1));
        let (mut spots, mut found, mut hits) = (Spots::default(), Vec::new(), vec![false; window * bands]);
        for keys in keys.chunks(window * bands) {
            let items = keys.len() / bands;
            let step = (GROUP / items).max(1).next_multiple_of(LINE_KEYS);
            for first in (0..bands).step_by(step) {
                let group = first..bands.min(first + step);
                spots.all.clear();
                spots.all.reserve(items * group.len());
                for band in group.clone() {
                    // A plain loop: what `extend` would call here is not always inlined, and then takes twice as long.
                    for key in keys[band..].iter().step_by(bands).flatten() {
                        spots.all.push(self.spot(band, *key));
                    }
                }
                let count = spots.all.len();
                spots.order.truncate(count);
                spots.order.extend(spots.order.len() as u64..count as u64);
                found.resize(count.max(found.len()), false);
                visit(&spots, &mut found[..count]);
                let mut found = found.iter();
                for band in group {
                    for (hit, key) in hits[band..].iter_mut().step_by(bands).zip(keys[band..].iter().step_by(bands)) {
                        *hit = key.is_some() && *found.next().expect("an answer for each key");
                    }
                }
            }
            for (item, hits) in keys.chunks(bands).zip(hits.chunks_mut(bands)) {
                each(item, hits);
            }
        }
    }

    fn insert_ahead<L: Lines + IndexMut<usize> + ?Sized>(
        &self,
        lines: &mut L,
        keys: &[Option<Key>],
        each: impl FnMut(&[Option<Key>], &mut [bool]),
    ) {
        let Table::Lines { hashes, .. } = self.table else {
            let set = |spot: Spot, later: Option<Spot>| {
                later.inspect(|later| line::prefetch(&lines[later.line]));
                self.set(&mut lines[spot.line], spot.within)
            };
            return self.bit_by_bit((keys, 0..self.bands), set, each);
        };
        let lanes = Lanes::new(hashes).expect("the spec was checked");
        let visit = |spots: &Spots, hits: &mut [bool]| {
            line::insert_each(lines, &spots.order, hits, |i| spots.all[i as usize].place(lanes));
            // The kernel tells what is new.
            hits.iter_mut().for_each(|hit| *hit = !*hit);
        };
        self.line_by_line(keys, visit, each);
    }

    fn contains_ahead<L: Lines + ?Sized>(
        &self,
        lines: &L,
        keys: &[Option<Key>],
        each: impl FnMut(&[Option<Key>], &mut [bool]),
    ) {
        let Table::Lines { hashes, .. } = self.table else {
            let is_set = |spot: Spot, later: Option<Spot>| {
                later.inspect(|later| line::prefetch(&lines[later.line]));
                self.is_set(&lines[spot.line], spot.within)
            };
            return self.bit_by_bit((keys, 0..self.bands), is_set, each);
        };
        let lanes = Lanes::new(hashes).expect("the spec was checked");
        let visit = |spots: &Spots, hits: &mut [bool]| {
            line::contains_each(lines, &spots.order, hits, |i| spots.all[i as usize].place(lanes));
        };
        self.line_by_line(keys, visit, each);
    }

    #[inline(always)]
    fn is_set(&self, line: &Line, within: u64) -> bool {
        match self.table {
            Table::Direct | Table::Bits(_) => line.0[(within / 64) as usize] >> (within % 64) & 1 == 1,
            Table::Lines { hashes, .. } => line::contains(line, Probe::new(within, hashes)),
        }
    }

    /// True when it was set before.
    #[inline(always)]
    fn set(&self, line: &mut Line, within: u64) -> bool {
        match self.table {
            Table::Direct | Table::Bits(_) => {
                let (word, bit) = (&mut line.0[(within / 64) as usize], 1 << (within % 64));
                let before = *word & bit != 0;
                *word |= bit;
                before
            }
            Table::Lines { hashes, .. } => !line::insert(line, Probe::new(within, hashes)),
        }
    }
}

/// What inserting an item's keys did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hits {
    /// Bands that were hit before.
    pub hits: u32,
    /// Bits that were not set before.
    pub new: u32,
}

/// Work that can be done while other work is: all of it is done when this returns.
pub(crate) type Run<'r> = &'r mut dyn for<'t> FnMut(Vec<Box<dyn FnOnce() + Send + 't>>);

/// Some bands, with the lines that are theirs alone. Lines at the ends have bits of other bands, too: they are copies.
struct Part<'l> {
    bands: Range<usize>,
    first: usize,
    lines: &'l mut [Line],
    ends: Vec<(usize, Line)>,
    /// By item.
    hits: Vec<Hits>,
}

impl<'l> Part<'l> {
    /// Splits lines among so many groups of bands, or fewer.
    fn split(place: &Place, lines: &'l mut [Line], groups: usize) -> Vec<Self> {
        // Keys that are in one line of memory go together.
        let step = place.bands.div_ceil(groups).next_multiple_of(LINE_KEYS);
        let groups = (0..place.bands).step_by(step).map(|start| {
            let bands = start..place.bands.min(start + step);
            let (from, to) = (place.range(bands.start).start, place.range(bands.end - 1).end);
            let first = from.div_ceil(Line::BITS);
            let own = first as usize..first.max(to / Line::BITS) as usize;
            let mut ends = vec![(from / Line::BITS) as usize, ((to - 1) / Line::BITS) as usize];
            ends.dedup();
            ends.retain(|line| !own.contains(line));
            (bands, own, ends.into_iter().map(|line| (line, lines[line])).collect())
        });
        let groups: Vec<(Range<usize>, Range<usize>, Vec<_>)> = groups.collect();
        let (mut rest, mut at) = (lines, 0);
        let part = |(bands, own, ends): (_, Range<usize>, _)| {
            let (_, behind) = std::mem::take(&mut rest).split_at_mut(own.start - at);
            let (lines, behind) = behind.split_at_mut(own.len());
            (rest, at) = (behind, own.end);
            Self { bands, first: own.start, lines, ends, hits: Vec::new() }
        };
        groups.into_iter().map(part).collect()
    }

    /// Sets the bits of item after item.
    fn insert(&mut self, place: &Place, keys: &[Option<Key>]) {
        let (bands, mut hits) = (self.bands.clone(), Vec::with_capacity(keys.len() / place.bands));
        let set = |spot: Spot, later: Option<Spot>| {
            later.inspect(|later| line::prefetch(&self[later.line]));
            place.set(&mut self[spot.line], spot.within)
        };
        place.bit_by_bit((keys, bands), set, |keys, hit| {
            let keyed = keys.iter().flatten().count() as u32;
            let hit = hit.iter().filter(|hit| **hit).count() as u32;
            hits.push(Hits { hits: hit, new: keyed - hit });
        });
        self.hits = hits;
    }
}

impl Index<usize> for Part<'_> {
    type Output = Line;

    #[inline]
    fn index(&self, line: usize) -> &Line {
        let end = || self.ends.iter().find(|(at, _)| *at == line).map(|(_, end)| end);
        self.lines.get(line.wrapping_sub(self.first)).or_else(end).expect("a line of these bands")
    }
}

impl IndexMut<usize> for Part<'_> {
    #[inline]
    fn index_mut(&mut self, line: usize) -> &mut Line {
        let Self { first, lines, ends, .. } = self;
        match lines.get_mut(line.wrapping_sub(*first)) {
            Some(line) => line,
            None => ends.iter_mut().find(|(at, _)| *at == line).map(|(_, end)| end).expect("a line of these bands"),
        }
    }
}

impl Tables<'static> {
    /// The same tables for another filter, their lines shared.
    pub(crate) fn share(&mut self) -> Self {
        Self { place: self.place.clone(), bits: self.bits.share(), ones: self.ones }
    }

    /// Empty tables.
    pub(crate) fn new(place: Place) -> Result<Self, SpecError> {
        let bits = BitArray::zeroed(place.num_bits().div_ceil(Line::BITS))?;
        Ok(Self { place, bits, ones: 0 })
    }
}

impl<'a> Tables<'a> {
    /// Tables around lines that others of this shape have filled, of whose bits `ones` are set.
    pub(crate) fn from_bits(place: Place, bits: BitArray<'a>, ones: u64) -> Self {
        debug_assert_eq!(bits.count() as u64, place.num_bits().div_ceil(Line::BITS));
        Self { place, bits, ones }
    }

    /// How many bits are set.
    pub(crate) fn ones(&self) -> u64 {
        match self.place.table {
            Table::Direct | Table::Bits(_) => self.ones,
            Table::Lines { .. } => self.bits.ones(),
        }
    }

    /// How many bits there are.
    pub(crate) fn num_bits(&self) -> u64 {
        self.place.num_bits()
    }

    pub(crate) fn bits(&self) -> &BitArray<'a> {
        &self.bits
    }

    pub(crate) fn bands(&self) -> usize {
        self.place.bands
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the number of set bits is known without counting them: where a key is one bit.
    pub(crate) fn counts_ones(&self) -> bool {
        !matches!(self.place.table, Table::Lines { .. })
    }

    /// Bits that a key sets.
    fn hashes(&self) -> u32 {
        match self.place.table {
            Table::Direct | Table::Bits(_) => 1,
            Table::Lines { hashes, .. } => hashes,
        }
    }

    /// [`Self::load_with`] the bits of so many items, none of which was set before.
    pub(crate) fn most_load_with(&self, items: u64) -> f64 {
        self.load_with(items.saturating_mul(self.place.bands as u64 * u64::from(self.hashes())))
    }

    /// How many distinct items of random keys would set as many bits and `more`. Full tables tell no more than that it takes at least
    /// so many items to fill all but half a bit.
    pub(crate) fn load_with(&self, more: u64) -> f64 {
        let (bits, ones) = (self.num_bits() as f64, self.ones().saturating_add(more) as f64);
        let fill = ones.min(bits - 0.5) / bits;
        bloom::keys_from_fill(bits / self.place.bands as f64, f64::from(self.hashes()), fill)
    }

    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.ones = 0;
    }

    pub(crate) fn into_owned(self) -> Tables<'static> {
        Tables { place: self.place, bits: self.bits.into_owned(), ones: self.ones }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<Tables<'static>, SpecError> {
        Ok(Tables { place: self.place, bits: self.bits.try_into_owned()?, ones: self.ones })
    }

    pub(crate) fn merge(&mut self, other: &Tables<'_>) {
        self.bits.union(&other.bits);
        self.ones = self.bits.ones();
    }

    pub(crate) fn contains(&self, band: usize, key: Key) -> bool {
        let Spot { line, within } = self.place.spot(band, key);
        self.place.is_set(self.bits.line(line), within)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, band: usize, key: Key) {
        line::prefetch(self.bits.line(self.place.spot(band, key).line));
    }

    pub(crate) fn hits_by_band(&self, keys: &[Option<Key>]) -> Vec<bool> {
        keys.iter().enumerate().map(|(band, key)| key.is_some_and(|key| self.contains(band, key))).collect()
    }

    pub(crate) fn hits_any(&self, keys: &[Option<Key>]) -> bool {
        keys.iter().enumerate().any(|(band, key)| key.is_some_and(|key| self.contains(band, key)))
    }

    pub(crate) fn count_hits(&self, keys: &[Option<Key>]) -> u32 {
        let hits = keys.iter().enumerate().map(|(band, key)| key.is_some_and(|key| self.contains(band, key)));
        hits.map(u32::from).sum()
    }

    /// Sets an item's bits; how many bands were hit before.
    pub(crate) fn insert(&mut self, keys: &[Option<Key>]) -> u32 {
        let (mut hits, mut keyed) = (0, 0);
        with_lines!(&mut self.bits, mut |lines| {
            for (band, key) in keys.iter().enumerate() {
                if let Some(key) = key {
                    let Spot { line, within } = self.place.spot(band, *key);
                    hits += u32::from(self.place.set(&mut lines[line], within));
                    keyed += 1;
                }
            }
        });
        self.ones += u64::from(keyed - hits);
        hits
    }

    /// Sets the bits of item after item, and gives each item's keys, which bands were hit before, and how many bits are set
    /// after it.
    pub(crate) fn insert_ahead(
        &mut self,
        keys: &[Option<Key>],
        mut each: impl FnMut(&[Option<Key>], &mut [bool], u64),
    ) {
        let (place, ones) = (&self.place, &mut self.ones);
        let count = |keys: &[Option<Key>], hits: &mut [bool]| {
            *ones += keys.iter().zip(&*hits).filter(|(key, hit)| key.is_some() && !**hit).count() as u64;
            each(keys, hits, *ones);
        };
        with_lines!(&mut self.bits, mut |lines| place.insert_ahead(lines, keys, count));
    }

    /// Sets the bits of item after item, and says what each did. The work is that of [`Self::insert_ahead`] in `parts` parts, each for some of
    /// the bands; `None`, and nothing is done, if it can't be split.
    pub(crate) fn insert_by(&mut self, keys: &[Option<Key>], parts: usize, run: Run<'_>) -> Option<Vec<Hits>> {
        self.bits.prepare_change();
        let (Table::Bits(_) | Table::Direct, BitArray::Flat(lines)) = (self.place.table, &mut self.bits) else {
            return None;
        };
        let (place, lines) = (&self.place, owned(lines));
        let mut parts = Part::split(place, lines, parts);
        run(parts.iter_mut().map(|part| Box::new(|| part.insert(place, keys)) as Box<_>).collect());
        let done: Vec<_> = parts.into_iter().map(|part| (part.ends, part.hits)).collect();
        let mut all = vec![Hits::default(); keys.len() / place.bands];
        for (ends, hits) in done {
            for (line, end) in ends {
                lines[line].0.iter_mut().zip(end.0).for_each(|(word, set)| *word |= set);
            }
            for (all, Hits { hits, new }) in all.iter_mut().zip(hits) {
                all.hits += hits;
                all.new += new;
            }
        }
        self.ones += all.iter().map(|item| u64::from(item.new)).sum::<u64>();
        Some(all)
    }

    /// Gives each item's keys and which bands are hit.
    pub(crate) fn contains_ahead(&self, keys: &[Option<Key>], each: impl FnMut(&[Option<Key>], &mut [bool])) {
        with_lines!(&self.bits, |lines| self.place.contains_ahead(lines, keys, each));
    }

    pub(crate) fn fill(&self) -> f64 {
        self.ones() as f64 / self.num_bits() as f64
    }

    /// The probability that a random key of so many bits hits a band's table: because it is stored, as short keys often are,
    /// or because its place is taken.
    pub(crate) fn random_hit(&self, band: usize, key_bits: u32) -> f64 {
        let range = self.place.range(band);
        let bits = (range.end - range.start) as f64;
        let fill = self.bits.ones_in(range.clone()) as f64 / bits;
        let (chance, hashes) = match self.place.table {
            // Every key has a place of its own.
            Table::Direct => return fill,
            Table::Bits(_) => (fill, 1),
            Table::Lines { hashes, .. } => {
                let lines = (range.start / Line::BITS) as usize..(range.end / Line::BITS) as usize;
                (self.bits.chance_hit_in(lines, hashes), hashes)
            }
        };
        let keys = bloom::keys_from_fill(bits, f64::from(hashes), fill);
        let stored = (keys * libm::exp2(-f64::from(key_bits))).min(1.0);
        stored + (1.0 - stored) * chance
    }

    pub(crate) fn chance_hit(&self) -> f64 {
        match self.place.table {
            Table::Direct | Table::Bits(_) => self.fill(),
            Table::Lines { hashes, .. } => self.bits.chance_hit(hashes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Rng;

    #[test]
    fn bands_can_be_filled_at_the_same_time() {
        let mut rng = Rng::new(Seed::new(3));
        for bits in [1, 3, 100, 511, 512, 513, 5000] {
            for bands in [1, 7, 8, 9, 33, 132] {
                let table = Table::Bits(bits);
                let place = Place::new(table, (0..bands).map(|_| 1), Seed::new(bits));
                let (mut whole, mut split) = (Tables::new(place.clone()).unwrap(), Tables::new(place).unwrap());
                for parts in 1..20 {
                    let key = |_| Key::new(rng.below(bits * 3)).filter(|_| parts % 5 > 0 || bands % 2 == 1);
                    let keys: Vec<Option<Key>> = (0..bands * [1, 5, 130][parts % 3]).map(key).collect();
                    let mut expected = Vec::new();
                    whole.insert_ahead(&keys, |keys, hits, ones| {
                        let hits = hits.iter().filter(|hit| **hit).count() as u32;
                        expected.push((hits, keys.iter().flatten().count() as u32 - hits, ones));
                    });
                    let mut ones = split.ones();
                    let run: Run<'_> = &mut |tasks| tasks.into_iter().rev().for_each(|task| task());
                    let found = split.insert_by(&keys, parts, run).unwrap();
                    let found = found.into_iter().map(|Hits { hits, new }| {
                        ones += u64::from(new);
                        (hits, new, ones)
                    });
                    assert!(found.eq(expected), "{bands} tables of {bits} bits in {parts} parts");
                    assert!(split.bits.parts().flatten().eq(whole.bits.parts().flatten()));
                    assert_eq!(split.ones(), whole.ones());
                }
            }
        }
    }
}
