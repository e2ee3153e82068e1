//! Random bit strings, and others at a given distance from them.

use nearset::{BitString, Rng};

/// Makes uniformly random strings of `bits` bits.
///
/// # Panics
/// If `bits` is not a multiple of 8.
pub fn random(bits: u32, count: u64, rng: &mut Rng) -> Vec<BitString> {
    assert!(bits.is_multiple_of(8), "{bits} bits are not whole bytes");
    let mut bytes = vec![0; bits as usize / 8];
    let strings = (0..count).map(|_| {
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]));
        BitString::from_bytes(&bytes)
    });
    strings.collect()
}

/// Returns the string with these bits flipped.
pub fn flipped(string: &BitString, positions: &[u32]) -> BitString {
    let mut other = string.clone();
    positions.iter().for_each(|&at| other.flip(at as usize));
    other
}

/// A generator of distinct positions.
pub struct Positions {
    order: Vec<u32>,
}

impl Positions {
    /// Creates a generator of positions below this length.
    pub fn new(length: u32) -> Self {
        Self { order: (0..length).collect() }
    }

    /// Draws `count` distinct positions, uniformly.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn draw(&mut self, count: usize, rng: &mut Rng) -> &[u32] {
        // The first steps of a shuffle; whatever order they leave behind, the next draw is just as uniform.
        for i in 0..count {
            let other = i + rng.below((self.order.len() - i) as u64) as usize;
            self.order.swap(i, other);
        }
        &self.order[..count]
    }
}

/// Puts a slice into a uniformly random order (Fisher and Yates).
pub fn shuffle<T>(slice: &mut [T], rng: &mut Rng) {
    for end in (1..slice.len()).rev() {
        slice.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearset::Seed;

    #[test]
    fn strings_are_random_and_as_far_apart_as_requested() {
        let mut rng = Rng::new(Seed::new(1));
        let strings = random(1_000, 100, &mut rng);
        let ones: u32 =
            strings.iter().map(|string| string.bits().words().iter().map(|word| word.count_ones()).sum::<u32>()).sum();
        // Bin(100,000, 1/2): 5 sigma are 791.
        assert!((f64::from(ones) - 50_000.0).abs() < 791.0, "{ones}");
        let mut positions = Positions::new(1_000);
        let mut uses = [0u32; 1_000];
        for _ in 0..1_000 {
            let drawn = positions.draw(17, &mut rng);
            let flipped = flipped(&strings[0], drawn);
            let words = strings[0].bits().words().iter().zip(flipped.bits().words());
            assert_eq!(words.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>(), 17);
            drawn.iter().for_each(|&at| uses[at as usize] += 1);
        }
        // Each is Bin(1,000, .017), sigma 4.1; 6 sigma in any of a thousand happens by chance once in 10^6 seeds.
        assert!(uses.iter().all(|&uses| (f64::from(uses) - 17.0).abs() < 6.0 * 4.1), "{uses:?}");
    }
}
