//! The classic Bloom filter, exact membership, blocked to one cache line per key (Bloom 1970; Putze, Sanders & Singler
//! 2007).
//!
//! Claim: what was inserted is found; what was not is found with at most the planned probability while no more than the
//! planned number of keys are in.
//! Invariant: the bits are a function of the set of keys, the number of lines, the bits per key and the seed.
//! Not here: nearness (`near`), bytes on disk (`codec`).
//!
//! A key's 64-bit hash is mixed with the filter's seed; its high bits choose the line and a product of it the bits in the
//! line, one in each of up to eight lanes. The price of touching one line only is that lines fill unevenly, which costs
//! about one bit a key at an error of 1 % and grows as the error gets smaller; sizes are planned with that included.

pub(crate) mod bits;
mod pages;

use nearset_theory::bloom::lines_false_positive;

use crate::{
    MergeError,
    error::{MOST_LINES, SpecError},
    hash::{ByteHash, Seed, fold, reduce},
    item::{Bits, Item},
    simd::line::{self, Lanes, Place},
};

pub(crate) use bits::{BitArray, with_lines};

/// A set of keys that may say yes to a key it doesn't hold, and never says no to one that it does.
///
/// ```
/// use nearset::{BloomFilter, Seed};
///
/// let mut seen = BloomFilter::new(1_000_000, 0.01, Seed::new(42))?;
/// assert!(seen.insert(b"one"));
/// assert!(!seen.insert(b"one"));
/// assert!(seen.contains(b"one"));
/// assert!(!seen.contains(b"two"));
/// # Ok::<(), nearset::spec::SpecError>(())
/// ```
///
/// A Bloom filter is itself an item of filters by Hamming distance (Kirsch & Mitzenmacher 2006): one filter over a collection of
/// them tells whether any of the sets is close to a query's set. Sets that differ in `c` elements, added or missing, have Bloom
/// filters that differ in at most `c` times the bits per key.
///
/// ```
/// use nearset::{BloomFilter, Filter, Metric, Seed, family::Hashed, plan::Request};
///
/// let bloom_of = |keys: std::ops::Range<u32>| -> Result<BloomFilter, nearset::spec::SpecError> {
///     let mut bloom = BloomFilter::new(1_000, 0.01, Seed::new(42))?;
///     keys.for_each(|key| _ = bloom.insert(&key.to_le_bytes()));
///     Ok(bloom)
/// };
/// let bits = bloom_of(0..0)?.num_bits() as u32;
/// // Near: at most three elements differ, eight bits each. Far: a tenth of all bits differ.
/// let request = Request::new(Metric::Hamming { bits }, 24.0).far(f64::from(bits / 10)).capacity(1_000);
/// let (mut seen, mut room) = (Filter::new(&request.plan_filter()?.spec)?, Hashed::default());
/// seen.insert(&bloom_of(0..900)?, &mut room)?;
/// assert!(seen.contains_near(&bloom_of(2..901)?, &mut room)?);
/// assert!(!seen.contains_near(&bloom_of(5_000..5_900)?, &mut room)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Many keys at once are faster by [`insert_all`](Self::insert_all) and [`contains_all`](Self::contains_all), which take their hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BloomFilter<'a> {
    bits: BitArray<'a>,
    seed: Seed,
    keys: Keys,
}

/// The filter's bits, as an item by Hamming distance.
impl<'a> From<&'a BloomFilter<'_>> for Item<'a> {
    fn from(bloom: &'a BloomFilter<'_>) -> Self {
        let lines = bloom.bits.flat().expect("only tables of a filter are shared");
        Item::Bits(Bits::from_words(bytemuck::cast_slice(lines)))
    }
}

/// How keys are taken to places: what a filter and its shared view have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keys {
    bytes: ByteHash,
    remix: [u64; 2],
    lanes: Lanes,
}

impl Keys {
    fn new(lanes: Lanes, seed: Seed) -> Self {
        let [xor, factor] = seed.derive("bloom remix", 0).words();
        Self { bytes: ByteHash::new(seed), remix: [xor, factor | 1], lanes }
    }

    #[inline(always)]
    fn place(&self, hash: u64, lines: usize) -> Place {
        let mixed = fold(hash ^ self.remix[0], self.remix[1]);
        Place { line: reduce(mixed, lines as u64) as usize, probe: self.lanes.probe(mixed) }
    }
}

impl BloomFilter<'static> {
    /// The lowest false-positive rate that a filter can be planned for.
    pub(crate) const LOWEST_FALSE_POSITIVE: f64 = 1e-9;

    /// An empty filter, as small as can be, in which `capacity` distinct keys give at most `max_false_positive`.
    pub fn new(capacity: u64, max_false_positive: f64, seed: Seed) -> Result<Self, SpecError> {
        let (lines, hashes) = Self::planned(capacity, max_false_positive)?;
        Self::with_lines(lines, hashes, seed)
    }

    /// Lines and bits per key of the smallest filter in which `capacity` distinct keys give at most `max_false_positive`.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn planned(capacity: u64, max_false_positive: f64) -> Result<(u64, u32), SpecError> {
        let lowest = Self::LOWEST_FALSE_POSITIVE;
        if !(max_false_positive > lowest && max_false_positive < 1.0) {
            return Err(SpecError::FalsePositive { found: max_false_positive, lowest });
        }
        if capacity == 0 {
            return Err(SpecError::NoKeys);
        }
        Ok(smallest(capacity, max_false_positive))
    }

    /// An empty filter of `lines` lines of 64 bytes, with `hashes` (1 to 8) bits per key.
    pub(crate) fn with_lines(lines: u64, hashes: u32, seed: Seed) -> Result<Self, SpecError> {
        lanes(hashes)?;
        Self::from_parts(BitArray::<'static>::zeroed(lines)?, hashes, seed)
    }
}

impl BloomFilter<'static> {
    /// The same filter for another one, its lines shared.
    pub(crate) fn share(&mut self) -> Self {
        Self { bits: self.bits.share(), seed: self.seed, keys: self.keys }
    }
}

impl<'a> BloomFilter<'a> {
    /// A filter around lines that another one of these parameters has filled.
    pub(crate) fn from_parts(bits: BitArray<'a>, hashes: u32, seed: Seed) -> Result<Self, SpecError> {
        let keys = Keys::new(lanes(hashes)?, seed);
        Ok(Self { bits, seed, keys })
    }

    /// The same filter in memory of its own.
    pub fn into_owned(self) -> BloomFilter<'static> {
        BloomFilter { bits: self.bits.into_owned(), seed: self.seed, keys: self.keys }
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<BloomFilter<'static>, SpecError> {
        Ok(BloomFilter { bits: self.bits.try_into_owned()?, seed: self.seed, keys: self.keys })
    }

    /// The hash by which this filter knows the bytes: inserting either is the same.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        self.keys.bytes.hash(bytes)
    }

    /// Inserts bytes. True when they were certainly not in before.
    #[inline]
    pub fn insert(&mut self, bytes: &[u8]) -> bool {
        self.insert_hash(self.hash(bytes))
    }

    /// Whether the bytes were inserted, or look as if they were.
    #[inline]
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.contains_hash(self.hash(bytes))
    }

    /// Inserts a key by its 64-bit hash, which is mixed with the filter's seed. True when it was certainly not in before.
    ///
    /// Keys with equal hashes are one key.
    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        let keys = &self.keys;
        with_lines!(&mut self.bits, mut |lines| line::insert_at(lines, move |lines| keys.place(hash, lines)))
    }

    /// Whether a key of this hash was inserted, or looks as if it was.
    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        let keys = &self.keys;
        with_lines!(&self.bits, |lines| line::contains_at(lines, move |lines| keys.place(hash, lines)))
    }

    /// Inserts keys by their hashes, those of [`Self::hash`] or any other that are 64 random bits, and says of each whether it was
    /// certainly not in before. Keys with equal hashes are one key.
    pub fn insert_all(&mut self, hashes: &[u64]) -> Vec<bool> {
        let mut answers = vec![false; hashes.len()];
        let (keys, count) = (self.keys, self.bits.count());
        with_lines!(&mut self.bits, mut |lines| {
            line::insert_each(lines, hashes, &mut answers, move |hash| keys.place(hash, count));
        });
        answers
    }

    /// Looks keys up by their hashes.
    pub fn contains_all(&self, hashes: &[u64]) -> Vec<bool> {
        let mut answers = vec![false; hashes.len()];
        let (keys, count) = (self.keys, self.bits.count());
        with_lines!(&self.bits, |lines| {
            line::contains_each(lines, hashes, &mut answers, move |hash| keys.place(hash, count));
        });
        answers
    }

    /// Takes in all keys of the other filter, as if each had been inserted here.
    ///
    /// # Errors
    /// If the filters were not built alike, naming the first difference; the filter is then unchanged.
    pub fn merge(&mut self, other: &BloomFilter<'_>) -> Result<(), MergeError> {
        MergeError::unless_equal("number of lines", &self.bits.count(), &other.bits.count())?;
        MergeError::unless_equal("bits per key", &self.hashes(), &other.hashes())?;
        MergeError::unless_equal("seed", &self.seed, &other.seed)?;
        self.bits.union(&other.bits);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.bits.clear();
    }

    /// An estimate, from the share of set bits, of how many distinct keys are in; infinite when every bit is set.
    ///
    /// No count is kept: the bits then depend on nothing but the set of keys, and merging needs no bookkeeping.
    pub fn estimated_len(&self) -> f64 {
        self.bits.estimated_keys(self.hashes())
    }

    /// The share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.bits.fill()
    }

    /// The probability, at this moment, that a key which was not inserted is found: exact, by the bits of every line.
    pub fn false_positive_rate(&self) -> f64 {
        self.bits.chance_hit(self.hashes())
    }

    /// How many bits the filter has.
    pub fn num_bits(&self) -> u64 {
        self.bits.len()
    }

    /// How many bits a key has in its line.
    pub(crate) fn hashes(&self) -> u32 {
        self.keys.lanes.count()
    }

    /// The seed.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The filter's memory, for a codec.
    pub(crate) fn bits(&self) -> &BitArray<'a> {
        &self.bits
    }
}

fn lanes(hashes: u32) -> Result<Lanes, SpecError> {
    Lanes::new(hashes).ok_or(SpecError::Hashes { hashes })
}

/// The fewest lines that keep to the rate, and with how many bits per key; among equals the lowest rate.
fn smallest(capacity: u64, max_false_positive: f64) -> (u64, u32) {
    let keeps = |lines, hashes| lines_false_positive(capacity, lines, hashes) <= max_false_positive;
    let candidates = (1..=8).map(|hashes| {
        let mut enough = 1;
        while enough <= MOST_LINES && !keeps(enough, hashes) {
            enough *= 2;
        }
        let mut too_few = enough / 2;
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if keeps(middle, hashes) { enough = middle } else { too_few = middle }
        }
        (enough, lines_false_positive(capacity, enough, hashes), hashes)
    });
    let best = candidates.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map_or((MOST_LINES + 1, 8), |(lines, _, hashes)| (lines, hashes))
}

#[cfg(test)]
mod tests;
