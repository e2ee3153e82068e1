//! Pigeonhole blocks: split the bits, search each block within a share of the radius.
//!
//! Claim: with radii such that `Σ(rad_i + 1) = r + 1`, two strings at distance `r` or less are within `rad_i` of each other in
//! some block `i`; were they not, they would differ in `Σ(rad_i + 1) > r` positions (Norouzi, Punjani & Fleet 2012 search so;
//! the general radii are Qin et al. 2018's).
//! Invariant: a block's key is linear over XOR, so the key of a block with one bit turned over is the key XOR that bit's
//! word, and a whole ball of keys costs one XOR each.
//!
//! Insertion stores an item's own keys only. Storing a part of the ball as well would save queries some look-ups, but each
//! stored key costs bits for ever, and a look-up whose line was fetched ahead costs nanoseconds.

use nearset_theory::zero_fn::Pigeonhole;

use crate::{Seed, family::Key, filter::tables::Tables, hash::Rng, item::Bits, spec::Table};

/// Set in every key, so that none is zero; a direct table does not look at it.
pub(super) const NEVER_ZERO: u64 = 1 << 63;

/// The word that a position adds to the key of a random linear hash: two different strings agree in it with probability
/// 2^-63.
pub(super) fn random_word(rng: &mut Rng) -> u64 {
    rng.next_u64() & !NEVER_ZERO
}

/// Calls `visit` with the position of every set bit.
#[inline(always)]
pub(super) fn each_set(bits: Bits<'_>, mut visit: impl FnMut(usize)) {
    for (word, &bits) in bits.words().iter().enumerate() {
        let mut left = bits;
        while left != 0 {
            visit(64 * word + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Which positions make which block, and how.
pub(super) struct Blocks {
    cut: Pigeonhole,
    /// Every position's block, and its word there.
    positions: Vec<(u32, u64)>,
    /// The words once more, block after block.
    words: Vec<u64>,
}

impl Blocks {
    pub(super) fn draw(cut: Pigeonhole, table: Table, seed: Seed) -> Self {
        let mut rng = Rng::new(seed);
        let length: u32 = cut.blocks().map(|(length, _)| length).sum();
        // Neighbouring bits of real hashes differ together; in a random order they fall on different blocks.
        let mut order: Vec<u32> = (0..length).collect();
        rng.shuffle(&mut order);
        let mut positions = vec![(0, 0); length as usize];
        let mut words = Vec::with_capacity(length as usize);
        for (block, (length, _)) in (0..).zip(cut.blocks()) {
            for i in 0..length {
                let word = if table == Table::Direct { 1 << i } else { random_word(&mut rng) };
                positions[order[words.len()] as usize] = (block, word);
                words.push(word);
            }
        }
        Self { cut, positions, words }
    }

    pub(super) fn cut(&self) -> Pigeonhole {
        self.cut
    }

    /// One key a block.
    pub(super) fn keys(&self, bits: Bits<'_>, keys: &mut Vec<Option<Key>>) {
        keys.clear();
        keys.resize(self.cut.blocks().count(), Key::new(NEVER_ZERO));
        each_set(bits, |position| {
            let (block, word) = self.positions[position];
            let key = &mut keys[block as usize];
            *key = key.and_then(|key| Key::new(key.get() ^ word));
        });
    }

    /// Whether any block has a stored key within its radius.
    pub(super) fn any_near(&self, keys: &[Option<Key>], tables: &Tables<'_>) -> bool {
        // Equal blocks first: one look-up each finds repeats and most near ones.
        if tables.hits_any(keys) {
            return true;
        }
        let mut rest = &self.words[..];
        for (block, (length, radius)) in self.cut.blocks().enumerate() {
            let (words, others) = rest.split_at(length as usize);
            rest = others;
            let Some(key) = keys[block] else { continue };
            let mut probes = Probes { tables, block, waiting: [key; WAITING], count: 0 };
            if radius > 0 && (probes.ball(key.get(), words, radius) || probes.any_waiting()) {
                return true;
            }
        }
        false
    }
}

/// Keys whose lines are on their way before the first of them is tested.
const WAITING: usize = 32;

struct Probes<'t, 'a> {
    tables: &'t Tables<'a>,
    block: usize,
    waiting: [Key; WAITING],
    count: usize,
}

impl Probes<'_, '_> {
    /// Looks up every key that is made by turning over from 1 to `radius` of the bits with these words.
    fn ball(&mut self, key: u64, words: &[u64], radius: u32) -> bool {
        words.iter().enumerate().any(|(i, word)| {
            let turned = key ^ word;
            self.look_up(turned) || (radius > 1 && self.ball(turned, &words[i + 1..], radius - 1))
        })
    }

    #[inline(always)]
    fn look_up(&mut self, key: u64) -> bool {
        let Some(key) = Key::new(key) else { return false };
        self.tables.prefetch(self.block, key);
        self.waiting[self.count] = key;
        self.count += 1;
        self.count == WAITING && self.any_waiting()
    }

    fn any_waiting(&mut self) -> bool {
        let waiting = &self.waiting[..std::mem::take(&mut self.count)];
        waiting.iter().any(|&key| self.tables.contains(self.block, key))
    }
}
