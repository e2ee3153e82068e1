//! The paper's workload: random strings of 65,536 bits, and queries made from them by noise.
//!
//! Claim: keys drawn here have the distribution that whole noisy strings would have, at a hundredth of the work. A
//! filter reads only the positions that its functions sample, so only those are disturbed, each with the probability
//! that it is among the disturbed ones of the whole string given those before it: drawing without replacement, one
//! position after the other.

use nearset::{
    BitString, FilterSpec, Rng, Seed, Spec,
    family::{Hashed, Key},
    spec::Hasher,
};
use nearset_theory::distance_sensitive::Noise;

/// The length of every string, in bits.
pub const LENGTH: u32 = 65_536;

/// Queries near and far from stored strings, as the keys that a filter sees.
pub struct Queries<'a> {
    items: &'a mut [BitString],
    hasher: Hasher,
    positions: Vec<u32>,
    rng: Rng,
}

impl<'a> Queries<'a> {
    /// Creates queries for filters of this spec, whose keys spell out sampled bits.
    pub fn new(items: &'a mut [BitString], spec: &Spec, seed: Seed) -> anyhow::Result<Self> {
        let hasher = hasher(spec)?;
        let positions = sampled_positions(spec, &hasher)?;
        Ok(Self { items, hasher, positions, rng: Rng::new(seed) })
    }

    /// Returns the stored strings' keys, one string after the other.
    pub fn stored(&self) -> anyhow::Result<Vec<Option<Key>>> {
        let (mut keys, mut hashed) = (Vec::new(), Hashed::default());
        for item in self.items.iter() {
            self.hasher.hash(item, &mut hashed)?;
            keys.extend_from_slice(&hashed.keys);
        }
        Ok(keys)
    }

    /// Returns the keys of `count` queries, each a random stored string with noise on a `fraction` of its bits.
    pub fn draw(&mut self, noise: Noise, fraction: f64, count: usize) -> anyhow::Result<Vec<Option<Key>>> {
        let (mut keys, mut hashed, mut flipped) = (Vec::new(), Hashed::default(), Vec::new());
        for _ in 0..count {
            let item = &mut self.items[self.rng.below(self.items.len() as u64) as usize];
            let mut disturbed = (fraction * f64::from(LENGTH)).round();
            for (&position, left) in self.positions.iter().zip((1..=LENGTH).rev()) {
                if self.rng.unit() * f64::from(left) >= disturbed {
                    continue;
                }
                disturbed -= 1.0;
                if noise == Noise::Flip || self.rng.next_u64() >> 63 == 1 {
                    item.flip(position as usize);
                    flipped.push(position);
                }
            }
            self.hasher.hash(&*item, &mut hashed)?;
            keys.extend_from_slice(&hashed.keys);
            flipped.drain(..).for_each(|position| item.flip(position as usize));
        }
        Ok(keys)
    }
}

fn hasher(spec: &Spec) -> anyhow::Result<Hasher> {
    FilterSpec::from(spec.clone()).hasher().ok_or_else(|| anyhow::anyhow!("no filter has this spec: {spec:?}"))
}

/// Returns every position that some function samples, once, found by hashing sixteen strings: the `i`-th has at each
/// position the `i`-th binary digit of that position's number, so that the bits sampled from all of them spell the
/// number.
fn sampled_positions(spec: &Spec, hasher: &Hasher) -> anyhow::Result<Vec<u32>> {
    let layout = spec.layout();
    anyhow::ensure!(layout.rows < 64, "keys of {} rows do not spell out their bits", layout.rows);
    let mut positions = vec![0; (layout.rows * layout.bands) as usize];
    let mut hashed = Hashed::default();
    for digit in 0..LENGTH.ilog2() {
        let mut string = BitString::zeros(LENGTH as usize);
        (0..LENGTH).filter(|at| at >> digit & 1 == 1).for_each(|at| string.set(at as usize, true));
        hasher.hash(&string, &mut hashed)?;
        for (band, key) in positions.chunks_mut(layout.rows as usize).zip(&hashed.keys) {
            let key = key.map_or(0, Key::get);
            (0..).zip(band).for_each(|(row, position)| *position |= ((key >> row & 1) as u32) << digit);
        }
    }
    positions.sort_unstable();
    positions.dedup();
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings;
    use nearset::spec::DistanceSensitive;

    fn spec() -> Spec {
        let paper = DistanceSensitive { length: LENGTH, capacity: 1_000, near: 0.1, far: 0.4, tables: 25 };
        paper.printed(Seed::new(1)).unwrap()
    }

    fn keys(hasher: &Hasher, item: &BitString) -> Vec<Option<Key>> {
        let mut hashed = Hashed::default();
        hasher.hash(item, &mut hashed).unwrap();
        hashed.keys
    }

    #[test]
    fn only_sampled_positions_decide_the_keys() {
        let hasher = hasher(&spec()).unwrap();
        let positions = sampled_positions(&spec(), &hasher).unwrap();
        assert!((500..=525).contains(&positions.len()), "{} of 525, some drawn twice", positions.len());
        let mut rng = Rng::new(Seed::new(2));
        let original = strings::random(LENGTH, 1, &mut rng).remove(0);
        let (mut whole, mut restricted) = (original.clone(), original.clone());
        for at in rng.distinct(6_554, u64::from(LENGTH)) {
            whole.flip(at as usize);
            if positions.binary_search(&(at as u32)).is_ok() {
                restricted.flip(at as usize);
            }
        }
        assert_ne!(whole, restricted);
        assert_eq!(keys(&hasher, &whole), keys(&hasher, &restricted));
        assert_ne!(keys(&hasher, &whole), keys(&hasher, &original));
    }

    #[test]
    fn queries_differ_from_their_item_as_often_as_the_noise_predicts() {
        let mut items = strings::random(LENGTH, 1, &mut Rng::new(Seed::new(3)));
        let original = items.clone();
        let mut queries = Queries::new(&mut items, &spec(), Seed::new(4)).unwrap();
        let stored = queries.stored().unwrap();
        for (noise, distance) in [(Noise::Flip, 0.1), (Noise::Rerandomise, 0.05)] {
            let count = 4_000;
            let drawn = queries.draw(noise, 0.1, count).unwrap();
            let same =
                drawn.chunks(25).flat_map(|keys| keys.iter().zip(&stored)).filter(|(a, b)| a == b).count() as f64;
            let (expected, bands) = ((1.0f64 - distance).powi(21), 25.0 * count as f64);
            // 6 sigma of as many independent bands; they share few positions, and the seed is fixed.
            let sigma = (expected * (1.0 - expected) / bands).sqrt();
            assert!((same / bands - expected).abs() < 6.0 * sigma, "{} for {expected}", same / bands);
        }
        assert_eq!(items, original, "the noise must be undone");
    }
}
