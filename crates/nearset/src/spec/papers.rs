//! The papers' filters, each as the spec that it is.
//!
//! Nothing here is a structure of its own: a constructor works out a paper's parameters and returns a [`Spec`].

use nearset_theory::{balanced::Balanced, bloom, distance_sensitive};

use super::{Probing, Spec, Table, Verification};
use crate::{
    BloomFilter, Family, Layout, Seed, Shingling,
    error::SpecError,
    family::{BitSampling, MinHash, Sampling, Symbol, SymbolSampling},
};

/// What the distance-sensitive Bloom filter of Kirsch & Mitzenmacher (2006) is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistanceSensitive {
    /// The length of every string, in bits or symbols.
    pub length: u32,
    /// Items.
    pub capacity: u64,
    /// ε: strings that differ in at most this fraction are near.
    pub near: f64,
    /// δ: strings that differ in at least this fraction are far.
    pub far: f64,
    /// k: tables.
    pub tables: u32,
}

impl DistanceSensitive {
    /// The filter of binary strings as printed: `l' = ceil(log_{(1-ε)/(1-δ)} 4n)` sampled bits address a table of `2^l'` bits,
    /// and `t = k (1-ε)^l' / 2` of the `k` tables must hit.
    ///
    /// # Errors
    /// If no filter has this spec: the tables of large goals do not fit any machine.
    pub fn printed(&self, seed: Seed) -> Result<Spec, SpecError> {
        let rows = distance_sensitive::sampled_bits(self.near, self.far, self.capacity as f64);
        let threshold = distance_sensitive::printed_threshold(self.near, rows, self.tables).ceil() as u32;
        let family = BitSampling { bits: self.length, sampling: Sampling::Uniform };
        Spec::new(family, Layout::new(rows, self.tables), threshold.max(1), Table::Direct, seed)
    }

    /// The filter of strings over a larger alphabet as printed: each sampled symbol is reduced to one bit, so that
    /// differing symbols agree half of the time. Its tables are hashed into half-full ones, since the printed `2^l'` bits (2^49
    /// for 1,000 items at .1 and .4) fit nowhere.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn reduced_symbols(&self, seed: Seed) -> Result<Spec, SpecError> {
        let rows = distance_sensitive::sampled_reduced_symbols(self.near, self.far, self.capacity as f64);
        let threshold = distance_sensitive::printed_threshold(self.near / 2.0, rows, self.tables).ceil() as u32;
        let family = SymbolSampling { length: self.length, symbol: Symbol::OneBit, sampling: Sampling::Uniform };
        let table = half_full(self.capacity);
        Spec::new(family, Layout::new(rows, self.tables), threshold.max(1), table, seed)
    }
}

/// A table that `keys` distinct keys fill by half: the most informative bit there is.
fn half_full(keys: u64) -> Table {
    Table::Bits(((keys as f64) * bloom::slots_per_key(0.5)).ceil().max(1.0) as u64)
}

impl Spec {
    /// The distance-sensitive Bloom filter, improved: hashed tables that are half full at `capacity`, over any family, and a
    /// threshold of the caller's. Whole symbols are hashed, so larger alphabets need no reduction to one bit.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn distance_sensitive(
        family: impl Into<Family>,
        layout: Layout,
        threshold: u32,
        capacity: u64,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        Self::new(family, layout, threshold, half_full(capacity), seed)
    }

    /// The locality-sensitive Bloom filter (Hua, Xiao, Veeravalli & Feng 2012): `functions` concatenations of `hashes` each,
    /// all of which must hit, and hit together: the joint tuple is looked up in a verification filter with `verify` bits per key
    /// (8 in the paper). Where up to `probing.bands` of them miss (1 in the paper), values within `probing.reach` stand in.
    /// Tables and verification are half full at `capacity`.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn locality_sensitive(
        family: impl Into<Family>,
        functions: u32,
        hashes: u32,
        capacity: u64,
        verify: u32,
        probing: Option<Probing>,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        let bits = capacity as f64 * f64::from(verify) * bloom::slots_per_key(0.5);
        let lines = (bits / 512.0).ceil().max(1.0) as u64;
        let spec = Self {
            verification: Some(Verification { lines, hashes: verify }),
            probing,
            ..Self::new(family, Layout::new(hashes, functions), functions, half_full(capacity), seed)?
        };
        spec.check()?;
        Ok(spec)
    }

    /// Balanced sampling with the threshold that never loses a near item (Gregersen, Faarhoff & Marker 2014): a difference
    /// reaches at most `ceil(rows x bands / bits)` bands, so at least `bands - radius x ceil(rows x bands / bits)` hit. The survey's
    /// tables are direct.
    ///
    /// # Errors
    /// If that threshold is not above 0, or no filter has this spec.
    pub fn balanced(bits: u32, radius: u32, layout: Layout, table: Table, seed: Seed) -> Result<Self, SpecError> {
        let balanced = Balanced { length: bits, radius, rows: layout.rows, tables: layout.bands };
        let threshold = balanced.threshold().ok_or(SpecError::NoThreshold { radius, lost: balanced.lost_tables() })?;
        Self::new(BitSampling::new(bits), layout, threshold, table, seed)
    }

    /// Banded MinHash over Bloom tables: near when any band hits. Each table gets a blocked Bloom filter with `1/bands` of the
    /// chance hits that are allowed in all.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn banded_minhash(
        shingling: Shingling,
        layout: Layout,
        capacity: u64,
        max_chance_hit: f64,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        let a_band = max_chance_hit / f64::from(layout.bands);
        let (lines, hashes) = BloomFilter::planned(capacity, a_band)?;
        Self::new(MinHash { shingling }, layout, 1, Table::Lines { lines, hashes }, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Rule, Step};
    use crate::{
        BitString,
        family::{
            Hashed, Hyperplane, PStable, Stable,
            laws::{ItemBuffer, bit_pair},
            pairs,
        },
        filter::laws,
        hash::Rng,
    };

    fn seed() -> Seed {
        Seed::new(1)
    }

    fn set_pair(size: usize) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
        move |distance, rng| {
            // |A| = |B| = size, with c common: J = c / (2 size - c).
            let similarity = 1.0 - distance;
            let common = (2.0 * size as f64 * similarity / (1.0 + similarity)).round() as usize;
            let a: Vec<u64> = (0..size).map(|_| rng.next_u64()).collect();
            let b: Vec<_> = a[..common].iter().copied().chain((common..size).map(|_| rng.next_u64())).collect();
            (ItemBuffer::from(crate::Item::Set(&a)), ItemBuffer::from(crate::Item::Set(&b)))
        }
    }

    /// Eight components, thousands of bucket widths from any other pair.
    fn vector_pair(stable: Stable) -> impl Fn(f64, &mut Rng) -> (ItemBuffer, ItemBuffer) {
        move |distance, rng| {
            let step: Vec<f64> = (0..8).map(|_| rng.gaussian()).collect();
            let length: f64 = match stable {
                Stable::Cauchy => step.iter().map(|x| x.abs()).sum(),
                _ => step.iter().map(|x| x * x).sum::<f64>().sqrt(),
            };
            let a: Vec<f32> = (0..8).map(|_| (4_000.0 * rng.gaussian()) as f32).collect();
            let b: Vec<_> =
                a.iter().zip(&step).map(|(a, step)| (f64::from(*a) + distance * step / length) as f32).collect();
            (ItemBuffer::from(crate::Item::Vector(&a)), ItemBuffer::from(crate::Item::Vector(&b)))
        }
    }

    fn symbol_pair(distance: f64, rng: &mut Rng) -> (ItemBuffer, ItemBuffer) {
        let a: Vec<u32> = (0..300).map(|_| rng.below(50) as u32).collect();
        let mut b = a.clone();
        rng.distinct(distance as usize, 300).into_iter().for_each(|at| b[at as usize] += 50);
        (
            ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&a))),
            ItemBuffer::from(crate::Item::Symbols(crate::Symbols::Wide(&b))),
        )
    }

    #[test]
    fn distance_sensitive_filters_obey_the_laws() {
        let paper = DistanceSensitive { length: 1024, capacity: 60, near: 0.05, far: 0.4, tables: 12 };
        let printed = paper.printed(seed()).unwrap();
        assert_eq!((printed.rows, printed.table), (12, Table::Direct));
        laws::check(&printed, 60, &[0.0, 51.0, 150.0, 250.0, 410.0], &bit_pair(1024));

        let symbols = DistanceSensitive { length: 300, capacity: 60, near: 0.05, far: 0.5, tables: 12 };
        laws::check(&symbols.reduced_symbols(seed()).unwrap(), 60, &[0.0, 15.0, 40.0, 90.0, 150.0], &symbol_pair);

        let whole = SymbolSampling { sampling: Sampling::Uniform, ..SymbolSampling::new(300) };
        let whole = Spec::distance_sensitive(whole, Layout::new(12, 30), 18, 60, seed()).unwrap();
        laws::check(&whole, 60, &[0.0, 5.0, 15.0, 40.0, 150.0], &symbol_pair);
    }

    #[test]
    fn locality_sensitive_filters_obey_the_laws() {
        let once = Some(Probing { bands: 1, reach: 1 });
        for probing in [None, once] {
            for stable in [Stable::Gaussian, Stable::Cauchy] {
                let family = PStable { dimension: 8, width: 4.0, stable };
                let spec = Spec::locality_sensitive(family, 4, 3, 100, 8, probing, seed()).unwrap();
                laws::check(&spec, 100, &[0.0, 0.05, 0.2, 0.6, 2.0], &vector_pair(stable));
            }
            let bits = BitSampling { bits: 512, sampling: Sampling::Uniform };
            let hamming = Spec::locality_sensitive(bits, 5, 14, 100, 8, probing, seed()).unwrap();
            laws::check(&hamming, 100, &[0.0, 2.0, 8.0, 20.0, 100.0], &bit_pair(512));
            let angle = Spec::locality_sensitive(Hyperplane { dimension: 64 }, 5, 16, 100, 8, probing, seed()).unwrap();
            laws::check(&angle, 100, &[1e-3, 0.02, 0.05, 0.1, 0.5], &pairs::at_angle(64));
        }
    }

    #[test]
    fn two_missing_bands_can_be_made_good_too() {
        let family = BitSampling { bits: 512, sampling: Sampling::Uniform };
        let probing = Some(Probing { bands: 2, reach: 1 });
        let spec = Spec::locality_sensitive(family, 5, 14, 100, 8, probing, seed()).unwrap();
        laws::check(&spec, 100, &[0.0, 4.0, 8.0, 20.0, 100.0], &bit_pair(512));
        let threshold = Spec { probing, ..Spec::new(family, Layout::new(14, 6), 5, Table::Bits(600), seed()).unwrap() };
        laws::check(&threshold, 60, &[0.0, 4.0, 16.0, 30.0, 150.0], &bit_pair(512));
    }

    #[test]
    fn balanced_filters_obey_the_laws_and_miss_nothing_within_their_radius() {
        let spec = Spec::balanced(256, 4, Layout::new(22, 11), Table::Bits(500), seed()).unwrap();
        assert_eq!(spec.rule.threshold_at(0.0), Some(7));
        laws::check(&spec, 100, &[1.0, 4.0, 6.0, 10.0, 30.0], &bit_pair(256));

        let make = bit_pair(256);
        let mut rng = Rng::new(Seed::new(2));
        let mut filter = laws::empty(spec);
        let pairs: Vec<_> = (0..1_000).map(|_| make(4.0, &mut rng)).collect();
        filter.insert_all(pairs.iter().map(|(stored, _)| stored.view())).unwrap();
        let found = filter.contains_all(pairs.iter().map(|(_, query)| query.view())).unwrap();
        assert!(found.into_iter().all(|near| near), "an item at distance 4 is missed");

        let error = Spec::balanced(256, 31, Layout::new(22, 11), Table::Direct, seed()).unwrap_err();
        assert!(error.to_string().contains("up to 31 bands can miss"), "{error}");
    }

    #[test]
    fn banded_minhash_obeys_the_laws() {
        let spec = Spec::banded_minhash(Shingling::default(), Layout::new(4, 16), 100, 0.01, seed()).unwrap();
        laws::check(&spec, 100, &[0.0, 0.1, 0.25, 0.5, 0.75], &set_pair(90));
        let threshold = Spec::distance_sensitive(spec.family, Layout::new(4, 64), 40, 100, seed()).unwrap();
        laws::check(&threshold, 100, &[0.0, 0.1, 0.25, 0.5, 0.75], &set_pair(90));
    }

    #[test]
    fn promises_obey_the_laws() {
        let family = BitSampling { bits: 512, sampling: Sampling::Uniform };
        let agreement = (1.0f64 - 26.0 / 512.0).powi(16);
        let rule = Rule::promise(60, agreement, 0.02).unwrap();
        let spec = Spec { rule, ..Spec::new(family, Layout::new(16, 60), 1, Table::Bits(150), seed()).unwrap() };
        laws::check(&spec, 100, &[0.0, 10.0, 26.0, 50.0, 100.0, 250.0], &bit_pair(512));
        for items in [1, 10, 50] {
            laws::check_acceptance(&spec, items, &[26.0, 60.0, 250.0], &bit_pair(512));
        }
        let lines = Spec { table: Table::Lines { lines: 1, hashes: 4 }, ..spec };
        assert!(lines.check().unwrap_err().to_string().contains("one bit per key"));
    }

    #[test]
    fn cascades_obey_the_laws() {
        let family = BitSampling { bits: 256, sampling: Sampling::Uniform };
        for steps in
            [vec![Step::Or(4), Step::And(4)], vec![Step::And(3), Step::Or(3), Step::AtLeast { of: 3, need: 2 }]]
        {
            let spec = Spec::by_rule(family, 16, Rule::cascade(steps).unwrap(), Table::Bits(4_000), seed());
            laws::check(&spec, 50, &[0.0, 3.0, 8.0, 16.0, 64.0], &bit_pair(256));
        }
    }

    #[test]
    fn an_empty_text_is_near_to_nothing() {
        let spec = Spec::banded_minhash(Shingling::default(), Layout::new(4, 16), 100, 0.01, seed()).unwrap();
        let mut filter = laws::empty(spec);
        let nothing: &[u64] = &[];
        assert!(filter.insert(nothing, &mut Hashed::default()).unwrap());
        assert!(filter.insert(nothing, &mut Hashed::default()).unwrap(), "an empty set is not even near itself");
        assert!(!filter.contains_near(nothing, &mut Hashed::default()).unwrap());
    }

    #[test]
    fn impossible_specs_say_why() {
        let bits = BitSampling::new(64);
        let new = |layout, threshold, table| Spec::new(bits, layout, threshold, table, seed()).unwrap_err().to_string();
        assert!(new(Layout::new(2, 4), 5, Table::Direct).contains("5 of 4"));
        assert!(new(Layout::new(2, 4), 1, Table::Bits(0)).contains("at least one bit"));
        assert!(new(Layout::new(40, 4), 1, Table::Direct).contains("2^40 bits"));
        assert!(new(Layout::new(2, 4), 1, Table::Lines { lines: 1, hashes: 9 }).contains("from 1 to 8"));
        assert!(new(Layout::new(2, 60_000), 1, Table::Bits(1 << 60)).contains("more than"));
        assert!(new(Layout::new(65, 1), 1, Table::Bits(8)).contains("rows is 65"));
        let hyperplane = Spec::new(Hyperplane { dimension: 3 }, Layout::new(2, 2), 1, Table::Direct, seed());
        assert!(hyperplane.unwrap_err().to_string().contains("single bits"));
        let mut spec = Spec::new(bits, Layout::new(2, 4), 3, Table::Bits(64), seed()).unwrap();
        spec.verification = Some(Verification { lines: 1, hashes: 8 });
        assert!(spec.check().unwrap_err().to_string().contains("every band must hit"));
    }

    #[test]
    fn filters_of_different_specs_do_not_merge() {
        let spec = Spec::new(BitSampling::new(64), Layout::new(8, 8), 6, Table::Bits(1 << 10), seed()).unwrap();
        let mut filter = laws::empty(spec.clone());
        filter.insert(&BitString::zeros(64), &mut Hashed::default()).unwrap();
        let before = laws::bytes(&filter);
        let uniform = BitSampling { bits: 64, sampling: Sampling::Uniform };
        let others = [
            (Spec { seed: Seed::new(2), ..spec.clone() }, "seed: Seed(1) here, Seed(2) there"),
            (Spec { family: BitSampling::new(65).into(), ..spec.clone() }, "metric"),
            (Spec { family: uniform.into(), ..spec.clone() }, "hash family"),
            (Spec { table: Table::Bits(1 << 11), ..spec.clone() }, "table: Bits(1024) here, Bits(2048) there"),
            (Spec { rows: 9, ..spec.clone() }, "number of rows: 8 here, 9 there"),
            (Spec { rule: Rule::threshold(8, 5).unwrap(), ..spec.clone() }, "rule"),
            (Spec { probing: Some(Probing { bands: 1, reach: 1 }), ..spec.clone() }, "probing"),
        ];
        for (other, named) in others {
            let error = filter.merge(&laws::empty(other)).unwrap_err().to_string();
            assert!(error.contains(named), "{error:?} does not name {named:?}");
        }
        assert_eq!(laws::bytes(&filter), before);
    }
}
