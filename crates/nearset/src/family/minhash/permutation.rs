//! MinHash by the textbook: slot `j` is the least of `mix(x ^ key_j)` over the set.
//!
//! Slots are independent by construction and cost `O(set * k)`. This is what [`super::MinHash`] is measured against.

use super::{Banded, Sketch, set_distance};
use crate::{
    Seed,
    error::SpecError,
    family::{Functions, Layout, LshFamily, WorkBound},
    hash::{Rng, mix},
    item::{Distance, Item, ItemError, Shingler, Shingling},
};

/// MinHash by `k` independent permutations, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PermutationMinHash {
    /// How texts are cut. Sets are used as they are.
    pub shingling: Shingling,
}

impl LshFamily for PermutationMinHash {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        self.shingling.check()?;
        layout.check()
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value()).max(0.0)
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let slots = layout.functions() as u64;
        WorkBound { draw: 3 * slots, hash: 3 * slots, element: 2 * slots, ..WorkBound::default() }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        set_distance(self.shingling, a, b, crate::item::jaccard)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let sketch = Permutations::new(seed, layout.functions());
        Ok(Box::new(Banded { shingler: Shingler::new(self.shingling, seed)?, sketch, layout }))
    }
}

pub(super) struct Permutations {
    keys: Vec<u64>,
}

impl Permutations {
    pub(super) fn new(seed: Seed, slots: usize) -> Self {
        let mut rng = Rng::new(seed.derive("permutation minhash", 0));
        Self { keys: (0..slots).map(|_| rng.next_u64()).collect() }
    }
}

impl Sketch for Permutations {
    fn sketch(&self, elements: &mut [u64], slots: &mut [u64], _: &mut Vec<u32>) {
        for (slot, key) in slots.iter_mut().zip(&self.keys) {
            *slot = elements.iter().fold(u64::MAX, |least, element| least.min(mix(element ^ key)));
        }
    }
}
