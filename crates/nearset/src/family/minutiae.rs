//! Minutiae triples, for fingerprints (Christophides 2019, after Leskovec, Rajaraman & Ullman).
//!
//! A print is a grid of squares, each occupied by a minutia or not. A function holds three squares and hashes *only*
//! prints that occupy all three, so a band may have no key, and two prints collide when both have one. For prints that
//! occupy `m` of `g` squares and differ in `d`, `m - d/2` squares are common, and `p(d) = C(m - d/2, 3) / C(g, 3)`. So
//! `p(0)` is not 1 but about `(m/g)^3`: an equal print has equal keys, in the few bands where it has any.
//!
//! Under the notes' model, a square is occupied with probability .2, and with .8 where the other print of the same
//! finger has a minutia: prints of one finger collide with probability `.2^3 x .8^3 = .004096`, those of two fingers
//! with `.2^6 = .000064`.

use super::{
    Family, Functions, Hashed, Key, Layout, LshFamily, Metric, WorkBound,
    member::{BadParameter, Form, Member, Parameters, Stored},
};
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::{Distance, Item, ItemError},
};

/// The number of squares that one function holds.
const SQUARES: u32 = 3;

/// Triples of occupied squares of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Minutiae {
    /// The number of squares in the grid, each one bit of a print.
    pub squares: u32,
    /// The number of squares that a print occupies, on which `collision_probability` depends; prints with more or fewer
    /// are hashed too.
    pub occupied: u32,
}

impl LshFamily for Minutiae {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        if self.squares < SQUARES {
            let (parameter, value) = ("squares", f64::from(self.squares));
            return Err(SpecError::BadParameter { parameter, value, need: "at least 3" });
        }
        if self.occupied > self.squares {
            let (parameter, value) = ("occupied", f64::from(self.occupied));
            return Err(SpecError::BadParameter { parameter, value, need: "at most the number of squares" });
        }
        Ok(())
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        let common = (f64::from(self.occupied) - distance.value() / 2.0).max(0.0);
        (0..SQUARES).map(|i| (common - f64::from(i)).max(0.0) / f64::from(self.squares - i)).product()
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let functions = layout.functions() as u64;
        let item_bytes = u64::from(self.squares.div_ceil(8));
        WorkBound { draw: 200 * functions, hash: 5 * functions, item_bytes, ..WorkBound::default() }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        let (a, b) = (a.bits()?, b.bits()?);
        a.expect_len(self.squares as usize)?;
        Distance::new(f64::from(a.hamming(b)?))
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let mut rng = Rng::new(seed.derive("minutiae", 0));
        let squares = (0..layout.functions())
            .flat_map(|_| rng.distinct(SQUARES as usize, u64::from(self.squares)))
            .map(|square| square as u32)
            .collect();
        Ok(Box::new(Triples { grid: self.squares as usize, band: (layout.rows * SQUARES) as usize, squares }))
    }
}

impl Member for Minutiae {
    fn name(&self) -> &'static str {
        "minutiae"
    }

    fn metric(&self) -> Option<Metric> {
        None
    }

    fn form(&self) -> Form {
        Form::Bits(self.squares)
    }

    fn steps(&self) -> f64 {
        1.0
    }

    fn number() -> u8 {
        3
    }

    fn put(&self, out: &mut Parameters) {
        out.u32(self.squares).u32(self.occupied);
    }

    fn take(from: &mut Stored<'_>) -> Result<Self, BadParameter> {
        Ok(Self { squares: from.u32()?, occupied: from.u32()? })
    }

    fn variants(_metric: Metric, _near: Distance, _far: Distance) -> Vec<Family> {
        Vec::new()
    }
}

struct Triples {
    grid: usize,
    /// The number of squares in a band, all of which must be occupied.
    band: usize,
    squares: Vec<u32>,
}

impl Functions for Triples {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let print = item.bits()?;
        print.expect_len(self.grid)?;
        out.keys.clear();
        out.keys.extend(
            self.squares
                .chunks(self.band)
                .map(|band| band.iter().all(|&square| print.bit(square as usize)).then_some(Key::MIN)),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        family::laws::{self, ItemBuffer},
        item::BitString,
    };

    #[test]
    fn obeys_the_laws() {
        let (squares, occupied) = (400usize, 200usize);
        let family = Minutiae { squares: 400, occupied: 200 };
        laws::check(&family, &[2.0, 40.0, 100.0, 160.0, 240.0], &|distance, rng| {
            let order = rng.distinct(squares, squares as u64);
            let print = |from: usize| {
                let mut print = BitString::zeros(squares);
                order[from..from + occupied].iter().for_each(|&square| print.set(square as usize, true));
                print
            };
            (
                ItemBuffer::from(crate::Item::from(&print(0))),
                ItemBuffer::from(crate::Item::from(&print(distance as usize / 2))),
            )
        });
    }

    #[test]
    fn a_print_that_lacks_a_square_has_no_key() {
        let functions = Minutiae { squares: 9, occupied: 3 }.draw(Seed::new(1), Layout::new(1, 20)).unwrap();
        assert!(laws::keys(&*functions, Item::Bits(BitString::zeros(9).bits())).iter().all(Option::is_none));
        let full = BitString::from_hex("ff8").unwrap();
        let full = crate::item::Bits::new(full.bits().words(), 12).unwrap();
        assert!(functions.hash(Item::Bits(full), &mut Hashed::default()).is_err());
    }
}
