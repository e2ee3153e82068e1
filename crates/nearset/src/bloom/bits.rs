//! The memory of a filter: whole cache lines, owned or borrowed.
//!
//! Claim: bytes of a memory-mapped file serve as a filter without being copied, if they start at a multiple of 64.
//! Invariant: there is at least one line. As bytes, the lines are little-endian words on every platform.

use std::{borrow::Cow, ops::Range};

use nearset_theory::bloom;

use crate::{
    error::{MOST_LINES, SpecError},
    simd::line::Line,
};

const LINE_BYTES: usize = size_of::<Line>();

/// The lines of a filter. Borrowed lines are copied before the first change to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BitArray<'a>(Cow<'a, [Line]>);

impl<'a> BitArray<'a> {
    /// Lines with no bit set.
    pub(crate) fn zeroed(lines: u64) -> Result<BitArray<'static>, SpecError> {
        let length = Self::check_count(lines)?;
        let owned = bytemuck::allocation::try_zeroed_vec(length).map_err(|()| SpecError::Memory { lines })?;
        Ok(BitArray(Cow::Owned(owned)))
    }

    /// Lines from their bytes: borrowed where the platform can read them in place, else copied.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<BitArray<'a>, SpecError> {
        if !bytes.len().is_multiple_of(LINE_BYTES) {
            return Err(SpecError::Ragged { found: bytes.len() });
        }
        let lines = (bytes.len() / LINE_BYTES) as u64;
        Self::check_count(lines)?;
        if cfg!(target_endian = "little")
            && let Ok(borrowed) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(BitArray(Cow::Borrowed(borrowed)));
        }
        let mut copy = BitArray::zeroed(lines)?;
        let (words, _) = bytes.as_chunks::<8>();
        let lanes = copy.lines_mut().iter_mut().flat_map(|line| &mut line.0);
        for (lane, word) in lanes.zip(words) {
            *lane = u64::from_le_bytes(*word);
        }
        Ok(copy)
    }

    /// Lines that were made elsewhere.
    #[cfg(test)]
    pub(crate) fn from_lines(lines: impl Into<Cow<'a, [Line]>>) -> Result<BitArray<'a>, SpecError> {
        let lines = lines.into();
        Self::check_count(lines.len() as u64)?;
        Ok(BitArray(lines))
    }

    fn check_count(lines: u64) -> Result<usize, SpecError> {
        match usize::try_from(lines) {
            Ok(length) if (1..=MOST_LINES).contains(&lines) => Ok(length),
            _ => Err(SpecError::Lines { found: lines }),
        }
    }

    /// The bytes as [`BitArray::from_bytes`] reads them.
    pub(crate) fn to_bytes(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(&self.0))
        } else {
            Cow::Owned(self.0.iter().flat_map(|line| line.0).flat_map(u64::to_le_bytes).collect())
        }
    }

    /// The lines.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[Line] {
        &self.0
    }

    /// The lines, to be changed; copied first if they are borrowed.
    #[inline(always)]
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        if self.is_borrowed() {
            self.own();
        }
        match &mut self.0 {
            Cow::Owned(lines) => lines,
            Cow::Borrowed(_) => unreachable!("the lines were just made our own"),
        }
    }

    /// Apart from `lines_mut`, so that inserting a key carries no code for it.
    #[cold]
    #[inline(never)]
    fn own(&mut self) {
        self.0.to_mut();
    }

    /// Whether the memory belongs to somebody else.
    #[inline(always)]
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self.0, Cow::Borrowed(_))
    }

    /// The same lines in memory of their own.
    pub(crate) fn into_owned(self) -> BitArray<'static> {
        BitArray(Cow::Owned(self.0.into_owned()))
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<BitArray<'static>, SpecError> {
        match self.0 {
            Cow::Owned(lines) => Ok(BitArray(Cow::Owned(lines))),
            Cow::Borrowed(lines) => {
                let refused = |_| SpecError::Memory { lines: lines.len() as u64 };
                let mut owned = Vec::new();
                owned.try_reserve_exact(lines.len()).map_err(refused)?;
                owned.extend_from_slice(lines);
                Ok(BitArray(Cow::Owned(owned)))
            }
        }
    }

    /// The same lines, borrowed.
    pub(crate) fn view(&self) -> BitArray<'_> {
        BitArray(Cow::Borrowed(&self.0))
    }

    /// How many bits there are.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64 * Line::BITS
    }

    /// How many bits are set.
    pub(crate) fn ones(&self) -> u64 {
        self.0.iter().map(|line| u64::from(line.ones())).sum()
    }

    /// How many bits are set among those of a range.
    pub(crate) fn ones_in(&self, range: Range<u64>) -> u64 {
        let words: &[u64] = bytemuck::cast_slice(&self.0);
        let (first, last) = ((range.start / 64) as usize, (range.end / 64) as usize);
        // Whole words up to the one in which the range ends, then what was too much before it and is missing after it.
        let whole: u64 = words[first..last].iter().map(|word| u64::from(word.count_ones())).sum();
        let below = |word: usize, bits: u64| words.get(word).map_or(0, |word| (word & ((1 << bits) - 1)).count_ones());
        whole + u64::from(below(last, range.end % 64)) - u64::from(below(first, range.start % 64))
    }

    /// The share of bits that are set.
    pub(crate) fn fill(&self) -> f64 {
        self.ones() as f64 / self.len() as f64
    }

    /// Clears every bit, in the memory that is there.
    pub(crate) fn clear(&mut self) {
        self.lines_mut().fill(Line([0; 8]));
    }

    /// Sets every bit that is set in `other`.
    ///
    /// # Panics
    /// If the sizes differ; filters compare theirs first and return an error.
    pub(crate) fn union(&mut self, other: &BitArray<'_>) {
        assert_eq!(self.0.len(), other.0.len(), "only tables of one size have a union");
        for (line, other) in self.lines_mut().iter_mut().zip(other.lines()) {
            for (lane, other) in line.0.iter_mut().zip(other.0) {
                *lane |= other;
            }
        }
    }

    /// The probability that a key with `hashes` bits in its line, which was not inserted, finds them all set.
    pub(crate) fn chance_hit(&self, hashes: u32) -> f64 {
        chance_hit(&self.0, hashes)
    }

    /// How many distinct keys with `hashes` bits each make the present fill likeliest; infinite when every bit is set.
    pub(crate) fn estimated_keys(&self, hashes: u32) -> f64 {
        bloom::keys_from_fill(self.len() as f64, f64::from(hashes), self.fill())
    }
}

/// The mean over lines of the chance that a key which was not inserted finds its bits set.
pub(crate) fn chance_hit(lines: &[Line], hashes: u32) -> f64 {
    lines.iter().map(|line| chance_hit_in(line, hashes as usize)).sum::<f64>() / lines.len() as f64
}

/// The chance that a key which falls into this line finds its bits set.
fn chance_hit_in(line: &Line, hashes: usize) -> f64 {
    let fills = line.0.map(|lane| f64::from(lane.count_ones()) / 64.0);
    // With a bit in every lane it makes no difference where a key starts.
    let starts = if hashes == 8 { 1 } else { 8 };
    let windows = (0..starts).map(|start| (start..start + hashes).map(|lane| fills[lane % 8]).product::<f64>());
    windows.sum::<f64>() / starts as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting_bytes(lines: usize) -> Vec<Line> {
        (0..lines as u64).map(|line| Line(std::array::from_fn(|lane| line << 32 | lane as u64))).collect()
    }

    #[test]
    fn aligned_bytes_are_borrowed_and_others_copied() {
        let lines = counting_bytes(3);
        let bytes = BitArray::from_lines(&lines[..]).unwrap();
        let bytes = bytes.to_bytes();
        let aligned = BitArray::from_bytes(&bytes).unwrap();
        assert_eq!(aligned.lines(), lines);
        assert_eq!(aligned.is_borrowed(), cfg!(target_endian = "little"));

        let mut buffer = vec![Line::EMPTY; 4];
        let shifted = &mut bytemuck::cast_slice_mut::<Line, u8>(&mut buffer)[8..8 + 3 * 64];
        shifted.copy_from_slice(&bytes);
        let copied = BitArray::from_bytes(shifted).unwrap();
        assert!(!copied.is_borrowed());
        assert_eq!(copied.lines(), lines);
    }

    #[test]
    fn borrowed_lines_are_copied_before_a_change() {
        let lines = counting_bytes(2);
        let mut bits = BitArray::from_lines(&lines[..]).unwrap();
        bits.lines_mut()[1].0[0] = u64::MAX;
        assert!(!bits.is_borrowed());
        assert_eq!(lines, counting_bytes(2));
    }

    #[test]
    fn ones_are_counted_within_any_range() {
        let lines = counting_bytes(3);
        let bits = BitArray::from_lines(&lines[..]).unwrap();
        let is_set = |bit: u64| lines[(bit / 512) as usize].0[(bit % 512 / 64) as usize] >> (bit % 64) & 1;
        for range in [0..0, 0..1536, 3..5, 0..64, 66..129, 130..1000, 700..1536, 64..64] {
            assert_eq!(bits.ones_in(range.clone()), range.clone().map(is_set).sum::<u64>(), "{range:?}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused_before_anything_is_allocated() {
        assert_eq!(BitArray::zeroed(0).unwrap_err(), SpecError::Lines { found: 0 });
        assert_eq!(BitArray::zeroed(u64::MAX).unwrap_err(), SpecError::Lines { found: u64::MAX });
        assert_eq!(BitArray::from_bytes(&[]).unwrap_err(), SpecError::Lines { found: 0 });
        assert_eq!(BitArray::from_bytes(&[0; 65]).unwrap_err(), SpecError::Ragged { found: 65 });
    }
}
