//! Where keys fall in tables of bits, band by band.
//!
//! Claim: the bits are those of the definition, computed without a division or a 128-bit product, which vector
//! registers lack.

#![allow(unsafe_code)]

use std::num::NonZeroU64;

use super::Level;
use crate::hash::{mix, reduce};

/// The place of no key.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// Writes the bit of each key in tables of `bits` bits that lie one after the other, key `i` in table `i`, found by the
/// key's hash under that table's seed.
///
/// # Panics
/// If there are fewer seeds or places than keys.
pub(crate) fn places(keys: &[Option<NonZeroU64>], seeds: &[u64], bits: u64, out: &mut [u64]) {
    let (seeds, out) = (&seeds[..keys.len()], &mut out[..keys.len()]);
    match (u32::try_from(bits), Level::current()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        (Ok(bits), Level::Avx512) => unsafe { x86::places_avx512(keys, seeds, bits, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Ok(bits), Level::Avx2) => unsafe { x86::places_avx2(keys, seeds, bits, out) },
        _ => places_scalar(keys, seeds, bits, out),
    }
}

fn places_scalar(keys: &[Option<NonZeroU64>], seeds: &[u64], bits: u64, out: &mut [u64]) {
    for (table, ((key, seed), place)) in (0..).zip(keys.iter().zip(seeds).zip(out)) {
        *place = key.map_or(NOWHERE, |key| table * bits + reduce(mix(key.get() ^ seed), bits));
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
    pub(super) fn places_avx512(keys: &[Option<NonZeroU64>], seeds: &[u64], bits: u32, out: &mut [u64]) {
        by_halves(keys, seeds, bits, out);
    }

    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn places_avx2(keys: &[Option<NonZeroU64>], seeds: &[u64], bits: u32, out: &mut [u64]) {
        by_halves(keys, seeds, bits, out);
    }

    /// The scalar twin, with `reduce` computed from the hash's halves: for a factor below 2^32 no sum overflows, and
    /// the low 32 bits of the lower half's product never carry. Written for the compiler to vectorise.
    #[inline(always)]
    fn by_halves(keys: &[Option<NonZeroU64>], seeds: &[u64], bits: u32, out: &mut [u64]) {
        let bits = u64::from(bits);
        for (table, ((key, seed), place)) in (0u64..).zip(keys.iter().zip(seeds).zip(out)) {
            let key = key.map_or(0, NonZeroU64::get);
            let hash = mix(key ^ seed);
            let reduced = ((hash >> 32) * bits + (((hash & 0xffff_ffff) * bits) >> 32)) >> 32;
            *place = if key == 0 { NOWHERE } else { table * bits + reduced };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::at_level;

    proptest! {
        #[test]
        fn every_level_agrees_with_the_definition(
            keys in prop::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 0..70),
            seed in any::<u64>(),
            bits in prop_oneof![1u64..=1 << 33, Just(u64::from(u32::MAX)), Just(1 << 32), Just(1)],
        ) {
            let seeds: Vec<u64> = (0..keys.len() as u64).map(|table| mix(seed ^ table)).collect();
            let keys: Vec<Option<NonZeroU64>> = keys.into_iter().map(NonZeroU64::new).collect();
            let run = |level| {
                let mut out = vec![1; keys.len()];
                at_level(level, || places(&keys, &seeds, bits, &mut out));
                out
            };
            let expected = run(Level::Scalar);
            for (table, place) in (0..).zip(&expected).filter(|(_, place)| **place != NOWHERE) {
                prop_assert!((table * bits..(table + 1) * bits).contains(place));
            }
            for level in Level::available() {
                prop_assert_eq!(&run(level), &expected, "{:?}", level);
            }
        }
    }
}
