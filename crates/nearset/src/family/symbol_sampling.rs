//! Symbol sampling, for the Hamming distance over any alphabet.
//!
//! [`Symbol::Whole`] uses sampled symbols as they are: two strings of `l` symbols that differ in `d` agree with
//! probability `p(d) = 1 - d/l`, whatever the alphabet. [`Symbol::OneBit`] is the reduction of Kirsch & Mitzenmacher
//! (2006), which maps each sampled symbol to one bit by a pairwise independent hash, so that differing symbols still
//! agree half of the time: `p(d) = 1 - d/(2l)`. It addresses direct tables of `2^rows` bits; with hashed tables it only
//! costs rows, and is included for comparison.

use super::{
    Family, Functions, Hashed, Layout, LshFamily, Metric, Sampling, WorkBound, key, key_of_rows,
    member::{BadParameter, Form, Member, Parameters, Stored},
};
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::{Distance, Item, ItemError},
};

/// What is kept of a sampled symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Symbol {
    /// The whole symbol.
    #[default]
    Whole,
    /// One bit, by a pairwise independent hash drawn for each function.
    OneBit,
}

/// Sampled symbols of strings of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SymbolSampling {
    /// The length of every string, in symbols.
    pub length: u32,
    /// What is kept of a symbol.
    pub symbol: Symbol,
    /// How positions are drawn.
    pub sampling: Sampling,
}

impl SymbolSampling {
    /// Creates the balanced sampling of whole symbols.
    pub const fn new(length: u32) -> Self {
        Self { length, symbol: Symbol::Whole, sampling: Sampling::Balanced }
    }
}

impl LshFamily for SymbolSampling {
    fn check(&self, layout: Layout) -> Result<(), SpecError> {
        layout.check()?;
        self.sampling.check(self.length, layout)
    }

    fn collision_probability(&self, distance: Distance) -> f64 {
        self.band_probability(distance, 1)
    }

    fn band_probability(&self, distance: Distance, rows: u32) -> f64 {
        let length = f64::from(self.length);
        match self.symbol {
            Symbol::Whole => self.sampling.band_probability(distance.value(), length, rows),
            // A band agrees if each sampled position is equal, or differs and its bit still agrees: with balanced
            // sampling the number of differing positions in a band is hypergeometric.
            Symbol::OneBit if self.sampling == Sampling::Balanced => {
                Sampling::half_agreeing_probability(distance.value(), length, rows)
            }
            Symbol::OneBit => libm::pow((1.0 - distance.value() / (2.0 * length)).max(0.0), f64::from(rows)),
        }
    }

    fn agreeing_bands(&self, distance: Distance, layout: Layout) -> Option<Vec<f64>> {
        let whole = (self.symbol == Symbol::Whole).then_some(self.sampling)?;
        whole.agreeing_bands(distance.value(), self.length, layout)
    }

    fn values_are_bits(&self) -> bool {
        self.symbol == Symbol::OneBit
    }

    fn work_bound(&self, layout: Layout) -> WorkBound {
        let functions = layout.functions() as u64;
        let one_bit = if self.symbol == Symbol::OneBit { 4 * functions } else { 0 };
        let draw = self.sampling.work_of_drawing(layout, self.length) + one_bit;
        let hash = 3 * functions + 3 * u64::from(layout.bands);
        WorkBound { draw, hash, item_bytes: u64::from(self.length), ..WorkBound::default() }
    }

    fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        let (a, b) = (a.symbols()?, b.symbols()?);
        a.expect_len(self.length as usize)?;
        Distance::new(f64::from(a.hamming(b)?))
    }

    fn draw(&self, seed: Seed, layout: Layout) -> Result<Box<dyn Functions>, SpecError> {
        self.check(layout)?;
        let positions = self.sampling.draw(seed, layout, self.length);
        let one_bit = (self.symbol == Symbol::OneBit).then(|| {
            let mut rng = Rng::new(seed.derive("one bit", 0));
            positions.iter().map(|_| (rng.next_u64() | 1, rng.next_u64())).collect()
        });
        Ok(Box::new(SampledSymbols { length: self.length as usize, rows: layout.rows as usize, positions, one_bit }))
    }
}

impl Member for SymbolSampling {
    fn name(&self) -> &'static str {
        "symbol sampling"
    }

    fn metric(&self) -> Option<Metric> {
        Some(Metric::Symbols { length: self.length })
    }

    fn form(&self) -> Form {
        Form::Symbols(self.length)
    }

    fn steps(&self) -> f64 {
        1.0
    }

    fn positions(&self) -> Option<u32> {
        Some(self.length)
    }

    fn number() -> u8 {
        2
    }

    fn put(&self, out: &mut Parameters) {
        let symbol = match self.symbol {
            Symbol::Whole => 0,
            Symbol::OneBit => 1,
        };
        out.u32(self.length).u8(symbol).u8(self.sampling.number());
    }

    fn take(from: &mut Stored<'_>) -> Result<Self, BadParameter> {
        let (length, symbol) = (from.u32()?, from.one_of("symbol hash", [Symbol::Whole, Symbol::OneBit])?);
        Ok(Self { length, symbol, sampling: from.one_of("sampling", Sampling::ALL)? })
    }

    fn variants(metric: Metric, _near: Distance, _far: Distance) -> Vec<Family> {
        let Metric::Symbols { length } = metric else { return Vec::new() };
        vec![Self::new(length).into(), Self { sampling: Sampling::Uniform, ..Self::new(length) }.into()]
    }
}

struct SampledSymbols {
    length: usize,
    rows: usize,
    positions: Vec<u32>,
    /// The factor and addend of multiply-add-shift for each position.
    one_bit: Option<Vec<(u64, u64)>>,
}

impl Functions for SampledSymbols {
    fn hash(&self, item: Item<'_>, out: &mut Hashed) -> Result<(), ItemError> {
        let symbols = item.symbols()?;
        symbols.expect_len(self.length)?;
        out.keys.clear();
        for (band, positions) in self.positions.chunks(self.rows).enumerate() {
            let whole = positions.iter().map(|&at| u64::from(symbols.symbol(at as usize)));
            out.keys.push(Some(match &self.one_bit {
                None => key_of_rows(whole),
                Some(hashes) => {
                    let hashes = &hashes[band * self.rows..][..self.rows];
                    let bits = whole
                        .zip(hashes)
                        .map(|(symbol, &(factor, addend))| factor.wrapping_mul(symbol).wrapping_add(addend) >> 63);
                    if self.rows < 64 { key(bits.fold(1, |packed, bit| packed << 1 | bit)) } else { key_of_rows(bits) }
                }
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::laws::{self, ItemBuffer};

    fn pair(distance: f64, rng: &mut Rng) -> (ItemBuffer, ItemBuffer) {
        let a: Vec<u32> = (0..100).map(|_| rng.below(20) as u32).collect();
        let mut b = a.clone();
        for at in rng.distinct(distance as usize, 100) {
            let symbol = &mut b[at as usize];
            *symbol = (*symbol + 1 + rng.below(19) as u32) % 20;
        }
        (
            ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&a))),
            ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&b))),
        )
    }

    #[test]
    fn obeys_the_laws() {
        for symbol in [Symbol::Whole, Symbol::OneBit] {
            for sampling in [Sampling::Uniform, Sampling::Balanced] {
                let family = SymbolSampling { length: 100, symbol, sampling };
                laws::check(&family, &[1.0, 10.0, 30.0, 60.0, 100.0], &pair);
            }
        }
    }
}
