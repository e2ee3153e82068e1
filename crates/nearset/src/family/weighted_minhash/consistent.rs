//! Improved consistent weighted sampling, as written in Ioffe, "Improved consistent sampling, weighted minhash and L1
//! sketching", ICDM 2010.
//!
//! For a slot and an element of weight `w` draw `r, c ~ Gamma(2, 1)` and `b ~ U(0, 1)`, and let
//! `t = floor(ln w / r + b)`, `y = exp(r (t - b))`, `a = c / (y e^r)`. The slot samples the element with the least `a`;
//! two sets agree when they sample the same element with the same `t`.

use super::{Banded, WeightedSketch, weighted_distance};
use crate::{
    Seed,
    error::SpecError,
    family::{Functions, Layout, LshFamily, WorkBound},
    hash::{Rng, mix},
    item::{Distance, Item, ItemError, Shingler, Shingling},
};

/// Weighted MinHash by consistent weighted sampling, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ConsistentMinHash {
    /// How texts are cut. Weighted sets are used as they are.
    pub shingling: Shingling,
}

impl LshFamily for ConsistentMinHash {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        self.shingling.check()?;
        layout.check()
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        (1.0 - distance.value()).max(0.0)
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let slots = layout.functions() as u64;
        WorkBound { draw: 3 * slots, hash: 3 * slots, element: 100 * slots, ..WorkBound::default() }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        weighted_distance(self.shingling, a, b)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let shingler = Shingler::new(self.shingling, seed)?;
        Ok(Box::new(Banded { shingler, sketch: Samples::new(seed, layout.functions()), layout }))
    }
}

pub(super) struct Samples {
    keys: Vec<u64>,
}

impl Samples {
    pub(super) fn new(seed: Seed, slots: usize) -> Self {
        let mut rng = Rng::new(seed.derive("consistent minhash", 0));
        Self { keys: (0..slots).map(|_| rng.next_u64()).collect() }
    }
}

impl WeightedSketch for Samples {
    fn sketch(&self, weights: &[(u64, f64)], slots: &mut [u64], _: &mut Vec<u64>) {
        for (slot, key) in slots.iter_mut().zip(&self.keys) {
            let mut least = f64::INFINITY;
            for &(element, weight) in weights {
                let mut state = mix(element ^ key);
                let mut uniform = || {
                    state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                    ((state >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
                };
                let r = -libm::log(uniform() * uniform());
                let c = -libm::log(uniform() * uniform());
                let b = uniform();
                let t = libm::floor(libm::log(weight) / r + b);
                let ln_a = libm::log(c) - r * (t - b) - r;
                if ln_a < least {
                    least = ln_a;
                    *slot = mix(mix(element ^ key) ^ (t as i64 as u64));
                }
            }
        }
    }
}
