//! The base hash of bytes.
//!
//! With key words `k0, k1` derived from the seed, and the input cut into 16-byte steps `(a, b)` of two little-endian
//! words, the last padded with zero bytes:
//!
//! ```text
//! s = k0;   for each step: s = fold(a ^ s, b ^ k1);   hash = fold(s ^ length, k1 ^ C)
//! ```
//!
//! where `fold` is the exclusive or of the two halves of the 128-bit product and `C` a constant. All input is read in
//! steps of equal size, so a word of up to 16 bytes, as nearly every word of text is, costs two multiplications and no
//! branch on its length.

use super::{Seed, fold};

const LAST: u64 = 0x9e37_79b9_7f4a_7c15;

/// A keyed hash of byte strings to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteHash {
    key: [u64; 2],
}

impl ByteHash {
    /// Creates the hash function of a seed.
    pub(crate) fn new(seed: Seed) -> Self {
        Self { key: seed.derive("byte hash", 0).words() }
    }

    /// Hashes the bytes.
    #[inline]
    pub(crate) fn hash(&self, bytes: &[u8]) -> u64 {
        let mut state = self.start();
        let (steps, rest) = bytes.as_chunks::<16>();
        for step in steps {
            state = self.step(state, *step);
        }
        if !rest.is_empty() {
            let last = match bytes.last_chunk::<16>() {
                // Shifting is faster than copying a few bytes.
                Some(last) => u128::from_le_bytes(*last) >> (8 * (16 - rest.len())),
                None => {
                    let mut last = [0; 16];
                    last[..rest.len()].copy_from_slice(rest);
                    u128::from_le_bytes(last)
                }
            };
            state = self.step(state, last.to_le_bytes());
        }
        self.finish(state, bytes.len())
    }

    /// Hashes at most 16 bytes, given zero-padded as a little-endian number.
    #[inline(always)]
    pub(crate) fn hash_padded(&self, padded: u128, length: usize) -> u64 {
        debug_assert!((1..=16).contains(&length));
        self.finish(self.step(self.start(), padded.to_le_bytes()), length)
    }

    /// Hashes at most 32 bytes, given zero-padded as two little-endian numbers. No branch depends on the length.
    #[inline(always)]
    pub(crate) fn hash_padded_twice(&self, [first, second]: [u128; 2], length: usize) -> u64 {
        debug_assert!((1..=32).contains(&length));
        let short = self.step(self.start(), first.to_le_bytes());
        let long = self.step(short, second.to_le_bytes());
        self.finish(if length > 16 { long } else { short }, length)
    }

    #[inline(always)]
    fn start(&self) -> u64 {
        self.key[0]
    }

    #[inline(always)]
    fn step(&self, state: u64, step: [u8; 16]) -> u64 {
        let both = u128::from_le_bytes(step);
        fold(both as u64 ^ state, (both >> 64) as u64 ^ self.key[1])
    }

    #[inline(always)]
    fn finish(&self, state: u64, length: usize) -> u64 {
        fold(state ^ length as u64, self.key[1] ^ LAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Rng;

    #[test]
    fn padded_and_whole_agree() {
        let hash = ByteHash::new(Seed::new(7));
        let bytes: Vec<u8> = (1..=16).collect();
        for length in 1..=16 {
            let mut padded = [0; 16];
            padded[..length].copy_from_slice(&bytes[..length]);
            assert_eq!(hash.hash_padded(u128::from_le_bytes(padded), length), hash.hash(&bytes[..length]));
        }
        let bytes: Vec<u8> = (1..=32).collect();
        for length in 1..=32 {
            let mut padded = [0; 32];
            padded[..length].copy_from_slice(&bytes[..length]);
            let both: [u128; 2] =
                std::array::from_fn(|i| u128::from_le_bytes(*padded[16 * i..].first_chunk().unwrap()));
            assert_eq!(hash.hash_padded_twice(both, length), hash.hash(&bytes[..length]));
        }
    }

    #[test]
    fn flipping_any_input_bit_flips_each_output_bit_half_the_time() {
        let hash = ByteHash::new(Seed::new(1));
        let mut rng = Rng::new(Seed::new(2));
        for length in [1usize, 3, 8, 9, 16, 17, 40] {
            let trials = 4_000;
            let mut flips = [0u32; 64];
            for _ in 0..trials {
                let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
                let before = hash.hash(&bytes);
                let bit = rng.below(8 * length as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
                let changed = before ^ hash.hash(&bytes);
                for (out, count) in flips.iter_mut().enumerate() {
                    *count += (changed >> out & 1) as u32;
                }
            }
            // Each count is Bin(4000, 1/2), sigma 31.6; 6 sigma over 448 counts happens by chance once in 1e6 seeds.
            for (out, count) in flips.iter().enumerate() {
                assert!((*count as f64 - 2_000.0).abs() < 6.0 * 31.6, "length {length}, output bit {out}: {count}");
            }
        }
    }

    #[test]
    fn short_inputs_do_not_collide() {
        let hash = ByteHash::new(Seed::new(3));
        let mut seen: Vec<u64> = (0..=u16::MAX).map(|n| hash.hash(&n.to_le_bytes())).collect();
        seen.extend((0..=u8::MAX).map(|n| hash.hash(&[n])));
        seen.extend((0..70).map(|zeros| hash.hash(&vec![0; zeros + 3])));
        seen.push(hash.hash(b""));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
