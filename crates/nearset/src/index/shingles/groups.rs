//! Records that their common part alone can make near others, looked up by that part.
//!
//! Pages of one template have the same common part and hardly share anything else. Records with one common part are a *group*, and
//! lie in the order of their sizes: two records of `n` and `m` shingles that share `s` have the similarity `s / (n + m - s)`, so a
//! record of size `n` is compared with those of size `s (1 + 1/near) - n` or less, where `s` is what both can share without being found
//! by their keys: their common parts, and where one has more rare shingles than keys, a few of those. Pages put together from a pool of clauses have common parts that differ, and each part is a group of its own:
//! those are compared by sketches of one bit per MinHash function (Li & König 2010), two of which differ in `(1 - J) / 2` of
//! their bits.
//!
//! Claim: two records that have the similarity `near` or more and share no rare shingle have common parts of that similarity too:
//! what they share is all common, and neither common part is larger than its record.
//! Limit: at most [`MOST_GROUPS`] groups are compared by sketches, so that the work per record is bounded. Beyond that a common part
//! is found only if it is the same.

use std::collections::HashMap;

use crate::{
    JoinSpec,
    family::{Hashed, MinHash, Signature, Sketcher},
    hash::mix,
    item::Item,
    simd::{hamming, scan_within},
};

/// Groups that are compared by sketches, unless a limit is lifted. A scan of that many takes about 50 µs.
const MOST_GROUPS: usize = 1 << 15;

/// Words of a sketch; the first few are scanned, and the rest decides on what passes.
const WORDS: usize = 16;
const FIRST_WORDS: usize = 4;

/// By how many standard deviations of its sketch a pair at exactly `near` may be off: 1 in 700 is off by more.
const SIGMAS: f64 = 3.0;

/// Groups of records with the same common part.
#[derive(Debug)]
pub(super) struct Groups {
    spec: JoinSpec,
    /// Entries that one look-up visits, at most.
    pub(super) limit: usize,
    /// Groups that are compared by sketches.
    pub(super) most: usize,
    sketcher: Sketcher,
    radius: u32,
    first_radius: u32,
    /// By a hash of the common part.
    by_part: HashMap<u64, u32>,
    /// By group: size and entry, ascending.
    lists: Vec<Vec<(u32, u32)>>,
    /// By group: how large its common part is.
    parts: Vec<u32>,
    /// The first words of each group's sketch, one group after the other, and the others.
    first_words: Vec<u64>,
    other_words: Vec<u64>,
    /// What entries are inserted with.
    room: GroupsRoom,
}

/// What one thread looks groups up with.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupsRoom {
    signature: Option<Signature>,
    work: Hashed,
    /// Groups that may be near, ascending.
    pub(super) found: Vec<usize>,
}

impl Groups {
    pub(super) fn new(spec: &JoinSpec, limit: usize) -> Self {
        let sketcher = MinHash::default()
            .sketcher(spec.seed.derive("common part", 0), 64 * WORDS as u32)
            .expect("a thousand slots are few enough");
        let differing = (1.0 - spec.near.value()) / 2.0;
        let radius = |words: usize| {
            let bits = 64.0 * words as f64;
            (bits * differing + SIGMAS * libm::sqrt(bits * differing * (1.0 - differing))) as u32
        };
        Self {
            spec: *spec,
            limit,
            most: MOST_GROUPS,
            sketcher,
            radius: radius(WORDS),
            first_radius: radius(FIRST_WORDS),
            by_part: HashMap::new(),
            lists: Vec::new(),
            parts: Vec::new(),
            first_words: Vec::new(),
            other_words: Vec::new(),
            room: GroupsRoom::default(),
        }
    }

    /// Overwrites `listed` with the entries from `since` on, and their sizes, whose common part may make them as near as needed to a record of
    /// this size and common part. `room.found` are the groups that they are in; those before `known` are there already. Returns whether some
    /// were left out.
    pub(super) fn find(
        &self,
        common: &[u64],
        size: u32,
        (since, known): (u32, usize),
        listed: &mut Vec<(u32, u32)>,
        room: &mut GroupsRoom,
    ) -> bool {
        listed.clear();
        if known == 0 {
            room.found.clear();
        }
        if known < self.sketched() || known == 0 {
            let sketch = self.sketch(common, room);
            let before = room.found.len();
            scan_within(
                &sketch[..FIRST_WORDS],
                &self.first_words[known * FIRST_WORDS..],
                self.first_radius,
                &mut room.found,
            );
            room.found[before..].iter_mut().for_each(|group| *group += known);
            room.found.retain(|&group| {
                let first = &self.first_words[group * FIRST_WORDS..][..FIRST_WORDS];
                let others = &self.other_words[group * (WORDS - FIRST_WORDS)..][..WORDS - FIRST_WORDS];
                group < known
                    || hamming(&sketch[..FIRST_WORDS], first) + hamming(&sketch[FIRST_WORDS..], others) <= self.radius
            });
        }
        let beyond =
            self.by_part.get(&hash_of(common)).map(|&group| group as usize).filter(|&group| group >= self.most);
        let near = self.spec.near.value();
        let rare = f64::from(size) - common.len() as f64;
        for group in room.found.iter().copied().chain(beyond) {
            let part = f64::from(self.parts[group]);
            let in_common = part.min(common.len() as f64);
            let is_possible = |other: u32| {
                let other_rare = f64::from(other) - part;
                // Who shares more of the rare ones is found by them.
                let unseen =
                    self.spec.unseen_rare(rare).max(self.spec.unseen_rare(other_rare)).min(rare).min(other_rare);
                let largest = (in_common + unseen) * (1.0 + 1.0 / near) - f64::from(size);
                // Rounding must not lose what lies exactly at `near`.
                f64::from(other) <= largest + 1e-6
            };
            let possible = self.lists[group].iter().take_while(|(other, _)| is_possible(*other));
            let new = possible.filter(|&&(_, entry)| entry >= since).take(self.limit - listed.len());
            listed.extend(new.map(|&(size, entry)| (entry, size)));
        }
        listed.len() == self.limit || self.lists.len() > self.most
    }

    /// Returns how many groups are compared by sketches.
    pub(super) fn sketched(&self) -> usize {
        self.lists.len().min(self.most)
    }

    /// Adds an entry with this common part.
    pub(super) fn insert(&mut self, common: &[u64], size: u32, entry: u32) {
        let list = self.list_of(common);
        let at = list.partition_point(|&other| other < (size, entry));
        list.insert(at, (size, entry));
    }

    /// Adds one of many entries, which are found once [`sort`](Self::sort) was called.
    pub(super) fn append(&mut self, common: &[u64], size: u32, entry: u32) {
        self.list_of(common).push((size, entry));
    }

    /// Brings the lists in order that were appended to.
    pub(super) fn sort(&mut self) {
        // What was there before is one ascending run, which this sort merges.
        self.lists.iter_mut().filter(|list| !list.is_sorted()).for_each(|list| list.sort());
    }

    /// The list of a common part, new or not.
    fn list_of(&mut self, common: &[u64]) -> &mut Vec<(u32, u32)> {
        let group = *self.by_part.entry(hash_of(common)).or_insert(self.lists.len() as u32) as usize;
        if group == self.lists.len() {
            self.lists.push(Vec::new());
            self.parts.push(common.len() as u32);
            if group < self.most {
                let mut room = std::mem::take(&mut self.room);
                let sketch = self.sketch(common, &mut room);
                self.room = room;
                self.first_words.extend_from_slice(&sketch[..FIRST_WORDS]);
                self.other_words.extend_from_slice(&sketch[FIRST_WORDS..]);
            }
        }
        &mut self.lists[group]
    }

    fn sketch(&self, common: &[u64], room: &mut GroupsRoom) -> [u64; WORDS] {
        let signature = room.signature.get_or_insert_with(|| self.sketcher.empty());
        let sketched = self.sketcher.sketch_into(Item::Set(common), &mut room.work, signature);
        debug_assert!(sketched.is_ok(), "sets have sketches");
        let mut sketch = [0; WORDS];
        for (word, slots) in sketch.iter_mut().zip(signature.slots().chunks(64)) {
            *word = slots.iter().fold(0, |word, &slot| word << 1 | mix(slot) & 1);
        }
        sketch
    }

    pub(super) fn bytes(&self) -> u64 {
        let entries: usize = self.lists.iter().map(|list| size_of::<(u32, u32)>() * list.capacity()).sum();
        let groups = size_of::<Vec<(u32, u32)>>() * self.lists.capacity() + 4 * self.parts.capacity();
        // Of the places of a table 7 in 8 are taken at most, and each has a byte of its own.
        let table = (size_of::<(u64, u32)>() + 1) * self.by_part.capacity() / 7 * 8;
        (entries + groups + table + 8 * (self.first_words.capacity() + self.other_words.capacity())) as u64
    }
}

/// Parts are told apart by 64 bits: a chance in 10^10 among 65,536 of them, and candidates are compared anyway.
pub(super) fn hash_of(common: &[u64]) -> u64 {
    common.iter().fold(common.len() as u64, |hash, &shingle| mix(hash ^ shingle))
}
