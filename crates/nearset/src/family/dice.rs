//! MinHash for the Dice (Sørensen) distance of sets, `d = 1 - 2 |A ∩ B| / (|A| + |B|)`: `p(d) = (1 - d) / (1 + d)`.
//!
//! Claim: the functions are those of [`MinHash`], which agree with probability the Jaccard similarity `J`, and
//! `J = D / (2 - D)` for the Dice similarity `D = 1 - d`. So `p` falls with `d`, and a plan by Dice is one by Jaccard in other units.

use super::{
    Functions, Layout, LshFamily, MinHash, WorkBound,
    member::{Member, minima_of_shingles},
    minhash::set_distance,
};
use crate::{
    Seed,
    error::SpecError,
    item::{self, Distance, Item, ItemError, Shingling},
};

/// MinHash of sets and of texts, whose distance is that of Dice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DiceMinHash {
    /// How texts are cut. Sets are taken as they are.
    pub shingling: Shingling,
}

impl DiceMinHash {
    fn functions(self) -> MinHash {
        MinHash { shingling: self.shingling }
    }
}

/// `(1 - x) / (1 + x)` turns each of the two into the other: Jaccard's similarity and Dice's distance.
fn exchanged(x: f64) -> f64 {
    ((1.0 - x) / (1.0 + x)).max(0.0)
}

impl LshFamily for DiceMinHash {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        self.functions().check(layout)
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        exchanged(distance.value())
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        self.functions().work_bound(layout)
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        set_distance(self.shingling, a, b, item::dice)
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.functions().draw(seed, layout)
    }
}

impl Member for DiceMinHash {
    fn name(&self) -> &'static str {
        "minhash by dice"
    }

    fn steps(&self) -> f64 {
        self.functions().steps()
    }

    fn number() -> u8 {
        9
    }

    minima_of_shingles!(Dice, Set);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::laws::{self, ItemBuffer};

    #[test]
    fn laws_hold() {
        // Two sets of 60 elements that share a part `1 - d` of them.
        let make = |distance: f64, rng: &mut crate::hash::Rng| {
            let a: Vec<u64> = (0..60).map(|_| rng.next_u64()).collect();
            let shared = (60.0 * (1.0 - distance)).round() as usize;
            let b: Vec<u64> = a[..shared].iter().copied().chain((shared..60).map(|_| rng.next_u64())).collect();
            (ItemBuffer::from(crate::Item::Set(&a)), ItemBuffer::from(crate::Item::Set(&b)))
        };
        laws::check(&DiceMinHash::default(), &[0.0, 0.1, 0.25, 0.5, 0.75, 0.95], &make);
    }

    #[test]
    fn distances_are_by_definition() {
        let dice = |a: &[u64], b: &[u64]| DiceMinHash::default().distance(a.into(), b.into()).unwrap().value();
        // 2 * 2 / (3 + 4).
        assert_eq!(dice(&[1, 2, 3], &[2, 3, 4, 5]), 1.0 - 4.0 / 7.0);
        assert_eq!((dice(&[1, 2], &[2, 1, 1]), dice(&[1], &[2])), (0.0, 1.0));
        assert_eq!(dice(&[], &[]), 1.0, "what is empty is near nothing");
    }
}
