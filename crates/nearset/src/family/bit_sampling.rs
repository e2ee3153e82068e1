//! Bit sampling, for the Hamming distance (Indyk & Motwani 1998).
//!
//! `h(x) = x[i]` for a random position `i`: two strings of `l` bits that differ in `d` agree with probability
//! `p(d) = 1 - d/l`. A band of `rows` sampled bits is packed into its key, so that a table of `2^rows` entries can be
//! addressed by the bits themselves, as the distance-sensitive Bloom filter is defined (Kirsch & Mitzenmacher 2006).
//!
//! With [`Sampling::Balanced`] a band's positions are distinct, and `Pr[band agrees]` is `C(l-d, rows) / C(l, rows)`.

use super::{
    Family, Functions, Hashed, Key, Layout, LshFamily, Metric, Sampling, WorkBound, key, key_of_rows,
    member::{BadParameter, Form, Member, Parameters, Stored},
};
use crate::{
    Seed,
    error::SpecError,
    item::{Bits, Distance, Item, ItemError},
};

/// Sampled bits of strings of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitSampling {
    /// The length of every string, in bits.
    pub bits: u32,
    /// How positions are drawn.
    pub sampling: Sampling,
}

impl BitSampling {
    /// Creates the balanced sampling of strings of `bits` bits.
    pub const fn new(bits: u32) -> Self {
        Self { bits, sampling: Sampling::Balanced }
    }
}

impl LshFamily for BitSampling {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        self.sampling.check(self.bits, layout)
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        self.band_probability(distance, 1)
    }

    fn band_probability(&self, distance: Distance, rows: u32) -> f64 {
        self.sampling.band_probability(distance.value(), f64::from(self.bits), rows)
    }

    fn agreeing_bands(&self, distance: Distance, layout: Layout) -> Option<Vec<f64>> {
        self.sampling.agreeing_bands(distance.value(), self.bits, layout)
    }

    /// Exactly one of the rows lies among the differing positions.
    fn neighbour_probability(&self, distance: Distance, rows: u32, reach: u32) -> f64 {
        if reach == 0 {
            return 0.0;
        }
        let (differing, length) = (distance.value().min(f64::from(self.bits)), f64::from(self.bits));
        f64::from(rows)
            * match self.sampling {
                Sampling::Uniform => differing / length * self.sampling.band_probability(differing, length, rows - 1),
                // The differing row comes first, then the others out of one position fewer.
                Sampling::Balanced => {
                    differing / length
                        * self.sampling.band_probability((differing - 1.0).max(0.0), length - 1.0, rows - 1)
                }
            }
    }

    fn neighbour_buckets(&self, rows: u32, reach: u32) -> u32 {
        rows * reach.min(1)
    }

    fn values_are_bits(&self) -> bool {
        true
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let hash = 2 * layout.functions() as u64 + 3 * u64::from(layout.bands);
        let item_bytes = u64::from(self.bits.div_ceil(8));
        WorkBound { draw: self.sampling.work_of_drawing(layout, self.bits), hash, item_bytes, ..WorkBound::default() }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        let (a, b) = (a.bits()?, b.bits()?);
        a.expect_len(self.bits as usize)?;
        Distance::new(f64::from(a.hamming(b)?))
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let positions = self.sampling.draw(seed, layout, self.bits);
        Ok(Box::new(SampledBits { bits: self.bits as usize, rows: layout.rows as usize, positions }))
    }
}

impl Member for BitSampling {
    fn name(&self) -> &'static str {
        "bit sampling"
    }

    fn metric(&self) -> Option<Metric> {
        Some(Metric::Hamming { bits: self.bits })
    }

    fn form(&self) -> Form {
        Form::Bits(self.bits)
    }

    fn steps(&self) -> f64 {
        1.0
    }

    fn positions(&self) -> Option<u32> {
        Some(self.bits)
    }

    fn number() -> u8 {
        1
    }

    fn put(&self, out: &mut Parameters) {
        out.u32(self.bits).u8(self.sampling.number());
    }

    fn take(from: &mut Stored<'_>) -> Result<Self, BadParameter> {
        Ok(Self { bits: from.u32()?, sampling: from.one_of("sampling", Sampling::ALL)? })
    }

    fn variants(metric: Metric, _near: Distance, _far: Distance) -> Vec<Family> {
        let Metric::Hamming { bits } = metric else { return Vec::new() };
        vec![Self::new(bits).into(), Self { bits, sampling: Sampling::Uniform }.into()]
    }
}

/// The number of rows that fit into a key beside the bit that marks their end.
const PACKED_ROWS: usize = 63;

struct SampledBits {
    bits: usize,
    rows: usize,
    positions: Vec<u32>,
}

impl SampledBits {
    /// The key is injective if the rows fit: the bits themselves under a leading 1.
    fn key(&self, packed: &[u64]) -> Key {
        if self.rows <= PACKED_ROWS { key(packed[0] | 1 << self.rows) } else { key_of_rows(packed.iter().copied()) }
    }

    fn words_per_band(&self) -> usize {
        self.rows.div_ceil(64)
    }
}

impl Functions for SampledBits {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let bits: Bits<'_> = item.bits()?;
        bits.expect_len(self.bits)?;
        out.keys.clear();
        out.scratch.clear();
        for band in self.positions.chunks(self.rows) {
            let start = out.scratch.len();
            for word in band.chunks(64) {
                let packed = word.iter().rev().fold(0, |packed, &at| packed << 1 | u64::from(bits.bit(at as usize)));
                out.scratch.push(packed);
            }
            out.keys.push(Some(self.key(&out.scratch[start..])));
        }
        Ok(())
    }

    /// Flips one sampled bit at a time. Any `reach` of 1 or more does the same, since a bit has one neighbour.
    fn neighbours(&self, hashed: &Hashed, band: usize, reach: u32, visit: &mut dyn FnMut(Key)) {
        if reach == 0 {
            return;
        }
        let words = self.words_per_band();
        let mut packed = hashed.scratch[band * words..][..words].to_vec();
        for row in 0..self.rows {
            packed[row / 64] ^= 1 << (row % 64);
            visit(self.key(&packed));
            packed[row / 64] ^= 1 << (row % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        family::laws::{self, bit_pair},
        item::BitString,
    };

    #[test]
    fn obeys_the_laws() {
        let distances = [1.0, 16.0, 64.0, 100.0, 200.0, 256.0];
        laws::check(&BitSampling::new(256), &distances, &bit_pair(256));
        let uniform = BitSampling { bits: 256, sampling: Sampling::Uniform };
        laws::check(&uniform, &distances, &bit_pair(256));
    }

    /// Short strings show the effect of drawing without replacement: 8 of 24 positions avoid 4 differences in .171 of
    /// draws, and with replacement in .233.
    #[test]
    fn balanced_bands_of_short_strings_agree_as_drawing_without_replacement_predicts() {
        laws::check_collision_rate(&BitSampling::new(24), 8, &[1.0, 2.0, 4.0, 8.0], &bit_pair(24));
    }

    #[test]
    fn long_bands_agree_as_often_as_short_ones_predict() {
        let family = BitSampling { bits: 1024, sampling: Sampling::Uniform };
        laws::check_collision_rate(&family, 70, &[1.0, 5.0, 20.0], &bit_pair(1024));
    }

    #[test]
    fn neighbours_are_the_keys_of_strings_one_bit_away() {
        for (bits, rows) in [(64u32, 10u32), (128, 63), (128, 64), (256, 100)] {
            let functions = BitSampling::new(bits).draw(Seed::new(1), Layout::new(rows, 1)).unwrap();
            let mut string = BitString::from_bytes(&vec![0x5a; bits as usize / 8]);
            let mut hashed = Hashed::default();
            functions.hash(Item::Bits(string.bits()), &mut hashed).unwrap();
            let own = hashed.keys[0].unwrap();
            let mut near = vec![own];
            functions.neighbours(&hashed, 0, 1, &mut |key| near.push(key));
            near.sort_unstable();
            near.dedup();
            assert_eq!(near.len(), rows as usize + 1);
            for at in 0..bits as usize {
                string.flip(at);
                functions.hash(Item::Bits(string.bits()), &mut hashed).unwrap();
                assert!(near.contains(&hashed.keys[0].unwrap()));
                string.flip(at);
            }
        }
    }

    #[test]
    fn impossible_draws_say_why() {
        let error = BitSampling::new(8).draw(Seed::new(1), Layout::new(9, 1)).err().unwrap();
        assert!(error.to_string().contains("rows is 9"), "{error}");
        assert!(BitSampling::new(0).draw(Seed::new(1), Layout::new(1, 1)).is_err());
        assert!(BitSampling::new(8).draw(Seed::new(1), Layout::new(0, 1)).is_err());
        let functions = BitSampling::new(8).draw(Seed::new(1), Layout::new(1, 1)).unwrap();
        assert!(functions.hash(Item::Bits(BitString::zeros(9).bits()), &mut Hashed::default()).is_err());
        assert!(functions.hash(Item::Text("x"), &mut Hashed::default()).is_err());
    }
}
