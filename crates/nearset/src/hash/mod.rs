//! Seeds and the frozen base hashes: the only source of randomness in the library.
//!
//! Claim: the same seed gives the same values on every platform and in every version of a format.
//! Invariant: everything here is pinned by `testdata/hash`; a change that moves one value is a new format, not a fix.
//! Not here: hash *families* (`family`), which turn these values into locality-sensitive hashes.
//!
//! Three layers, from slow and strong to fast:
//! - [`Seed::derive`] is SipHash-2-4 with 128 bits of output, keyed by the seed: nobody can predict what is derived
//!   from a seed without knowing it (Aumasson & Bernstein 2012).
//! - [`ByteHash`] hashes bytes under a derived key, 16 bytes per step, by folded 64 x 64 -> 128 bit multiplication.
//! - [`mix`] is a bijection on 64 bits (Stafford's variant 13 of the MurmurHash3 finaliser), for values that are
//!   already random-like.

mod bytes;
mod rng;
mod seed;

pub(crate) use bytes::ByteHash;
pub use rng::Rng;
pub use seed::Seed;

/// A bijection on 64 bits in which every output bit depends on every input bit.
#[inline(always)]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the exclusive or of the two halves of the 128-bit product.
#[inline(always)]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Maps a hash to `0..range` by its high bits (Lemire 2019), without a division.
#[inline(always)]
pub(crate) const fn reduce(hash: u64, range: u64) -> u64 {
    ((hash as u128 * range as u128) >> 64) as u64
}
