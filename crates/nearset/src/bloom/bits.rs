//! The memory of a filter: whole cache lines, owned, borrowed or shared.
//!
//! Claim: bytes of a memory-mapped file serve as a filter without being copied, if they start at a multiple of 64.
//! Invariant: there is at least one line. As bytes, the lines are little-endian words on every platform.

use std::{borrow::Cow, ops::Range};

use nearset_theory::bloom;

use super::pages::Pages;
use crate::{
    error::{MOST_LINES, SpecError},
    simd::line::Line,
};

const LINE_BYTES: usize = size_of::<Line>();

/// The lines of a filter. Borrowed and shared lines are copied before the first change to them.
#[derive(Debug, Clone)]
pub(crate) enum BitArray<'a> {
    Flat(Cow<'a, [Line]>),
    Shared(Pages),
}

/// Runs an expression with the lines of an array, whichever type they have: `with_lines!(array, |lines| …)`, or
/// `with_lines!(array, mut |lines| …)` to change them.
macro_rules! with_lines {
    ($array:expr, |$lines:ident| $do:expr) => {
        match $array {
            $crate::bloom::BitArray::Flat($lines) => {
                let $lines: &[$crate::simd::line::Line] = $lines;
                $do
            }
            $crate::bloom::BitArray::Shared($lines) => $do,
        }
    };
    ($array:expr, mut |$lines:ident| $do:expr) => {{
        let array: &mut $crate::bloom::BitArray<'_> = $array;
        array.prepare_change();
        match array {
            $crate::bloom::BitArray::Flat(lines) => {
                let $lines = $crate::bloom::bits::owned(lines);
                $do
            }
            $crate::bloom::BitArray::Shared($lines) => $do,
        }
    }};
}
pub(crate) use with_lines;

/// Lines of which it is known that they are owned.
#[inline(always)]
pub(crate) fn owned<'l>(lines: &'l mut Cow<'_, [Line]>) -> &'l mut [Line] {
    match lines {
        Cow::Owned(lines) => lines,
        Cow::Borrowed(_) => unreachable!("the lines were just made our own"),
    }
}

impl BitArray<'static> {
    /// The same lines for another one. It takes no memory, and from now on a change to either copies a page first.
    pub(crate) fn share(&mut self) -> Self {
        if let BitArray::Flat(Cow::Owned(lines)) = self {
            *self = BitArray::Shared(Pages::of(std::mem::take(lines)));
        }
        self.clone()
    }
}

impl<'a> BitArray<'a> {
    /// Lines with no bit set.
    pub(crate) fn zeroed(lines: u64) -> Result<BitArray<'static>, SpecError> {
        let length = Self::check_count(lines)?;
        let owned = bytemuck::allocation::try_zeroed_vec(length).map_err(|()| SpecError::Memory { lines })?;
        Ok(BitArray::Flat(Cow::Owned(owned)))
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
            return Ok(BitArray::Flat(Cow::Borrowed(borrowed)));
        }
        let mut copy = BitArray::zeroed(lines)?;
        let BitArray::Flat(Cow::Owned(owned)) = &mut copy else { unreachable!("lines are made in one run") };
        let (words, _) = bytes.as_chunks::<8>();
        for (lane, word) in owned.iter_mut().flat_map(|line| &mut line.0).zip(words) {
            *lane = u64::from_le_bytes(*word);
        }
        Ok(copy)
    }

    /// Lines that were made elsewhere.
    #[cfg(test)]
    pub(crate) fn from_lines(lines: impl Into<Cow<'a, [Line]>>) -> Result<BitArray<'a>, SpecError> {
        let lines = lines.into();
        Self::check_count(lines.len() as u64)?;
        Ok(BitArray::Flat(lines))
    }

    fn check_count(lines: u64) -> Result<usize, SpecError> {
        match usize::try_from(lines) {
            Ok(length) if (1..=MOST_LINES).contains(&lines) => Ok(length),
            _ => Err(SpecError::Lines { found: lines }),
        }
    }

    /// The bytes as [`BitArray::from_bytes`] reads them, in one or more parts of whole lines.
    pub(crate) fn to_bytes(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.parts().map(|lines| {
            if cfg!(target_endian = "little") {
                Cow::Borrowed(bytemuck::cast_slice(lines))
            } else {
                Cow::Owned(lines.iter().flat_map(|line| line.0).flat_map(u64::to_le_bytes).collect())
            }
        })
    }

    /// All lines in order, in one or more parts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[Line]> {
        let (flat, shared) = match self {
            BitArray::Flat(lines) => (Some(&lines[..]), None),
            BitArray::Shared(pages) => (None, Some(pages.parts())),
        };
        flat.into_iter().chain(shared.into_iter().flatten())
    }

    /// The lines in one run, which they are unless they are shared.
    pub(crate) fn flat(&self) -> Option<&[Line]> {
        match self {
            BitArray::Flat(lines) => Some(lines),
            BitArray::Shared(_) => None,
        }
    }

    /// One of the lines.
    #[inline(always)]
    pub(crate) fn line(&self, line: usize) -> &Line {
        with_lines!(self, |lines| &lines[line])
    }

    /// How many lines there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        with_lines!(self, |lines| crate::simd::line::Lines::count(lines))
    }

    /// What comes before a change: borrowed lines are copied, and those that nobody shares any more made one run again.
    #[inline(always)]
    pub(crate) fn prepare_change(&mut self) {
        if !matches!(self, BitArray::Flat(Cow::Owned(_))) {
            self.own();
        }
    }

    /// Apart from `prepare_change`, so that inserting a key carries no code for it.
    #[cold]
    #[inline(never)]
    fn own(&mut self) {
        match self {
            BitArray::Flat(lines) => {
                lines.to_mut();
            }
            BitArray::Shared(pages) => {
                if pages.fold() {
                    let pages = std::mem::replace(pages, Pages::of(Vec::new()));
                    *self = match pages.into_lines() {
                        Ok(lines) => BitArray::Flat(Cow::Owned(lines)),
                        Err(pages) => BitArray::Shared(pages),
                    };
                }
            }
        }
    }

    /// Bytes that so many changes of a line may have to copy before they are made, at most.
    pub(crate) fn bytes_to_copy(&self, changes: u64) -> u64 {
        match self {
            BitArray::Flat(_) => 0,
            BitArray::Shared(pages) => pages.bytes_to_copy(changes),
        }
    }

    /// Whether the memory belongs to somebody else.
    #[cfg(test)]
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self, BitArray::Flat(Cow::Borrowed(_)))
    }

    /// The same lines in memory of their own.
    pub(crate) fn into_owned(self) -> BitArray<'static> {
        self.try_into_owned().expect("there is memory for a copy")
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(crate) fn try_into_owned(self) -> Result<BitArray<'static>, SpecError> {
        let array = match self {
            BitArray::Flat(Cow::Owned(lines)) => return Ok(BitArray::Flat(Cow::Owned(lines))),
            BitArray::Shared(pages) => match pages.into_lines() {
                Ok(lines) => return Ok(BitArray::Flat(Cow::Owned(lines))),
                Err(pages) => BitArray::Shared(pages),
            },
            borrowed => borrowed,
        };
        let mut owned = Vec::new();
        owned.try_reserve_exact(array.count()).map_err(|_| SpecError::Memory { lines: array.count() as u64 })?;
        array.parts().for_each(|part| owned.extend_from_slice(part));
        Ok(BitArray::Flat(Cow::Owned(owned)))
    }

    /// How many bits there are.
    pub(crate) fn len(&self) -> u64 {
        self.count() as u64 * Line::BITS
    }

    /// How many bits are set.
    pub(crate) fn ones(&self) -> u64 {
        self.parts().flatten().map(|line| u64::from(line.ones())).sum()
    }

    /// How many bits are set among those of a range.
    pub(crate) fn ones_in(&self, range: Range<u64>) -> u64 {
        let (mut start, mut ones) = (0, 0);
        for part in self.parts() {
            let end = start + part.len() as u64 * Line::BITS;
            let (from, to) = (range.start.clamp(start, end), range.end.clamp(start, end));
            ones += ones_within(part, from - start..to.max(from) - start);
            start = end;
        }
        ones
    }

    /// The share of bits that are set.
    pub(crate) fn fill(&self) -> f64 {
        self.ones() as f64 / self.len() as f64
    }

    /// Clears every bit, in the memory that is there.
    pub(crate) fn clear(&mut self) {
        self.prepare_change();
        match self {
            BitArray::Flat(lines) => owned(lines).fill(Line::EMPTY),
            BitArray::Shared(pages) => pages.clear(),
        }
    }

    /// Sets every bit that is set in `other`.
    ///
    /// # Panics
    /// If the sizes differ; filters compare theirs first and return an error.
    pub(crate) fn union(&mut self, other: &BitArray<'_>) {
        assert_eq!(self.count(), other.count(), "only tables of one size have a union");
        with_lines!(self, mut |lines| {
            for (line, other) in other.parts().flatten().enumerate() {
                for (lane, other) in lines[line].0.iter_mut().zip(other.0) {
                    *lane |= other;
                }
            }
        });
    }

    /// The probability that a key with `hashes` bits in its line, which was not inserted, finds them all set.
    pub(crate) fn chance_hit(&self, hashes: u32) -> f64 {
        chance_hit(self.parts().flatten(), self.count(), hashes)
    }

    /// [`Self::chance_hit`] in some of the lines.
    pub(crate) fn chance_hit_in(&self, range: Range<usize>, hashes: u32) -> f64 {
        chance_hit(range.clone().map(|line| self.line(line)), range.len(), hashes)
    }

    /// How many distinct keys with `hashes` bits each make the present fill likeliest; infinite when every bit is set.
    pub(crate) fn estimated_keys(&self, hashes: u32) -> f64 {
        bloom::keys_from_fill(self.len() as f64, f64::from(hashes), self.fill())
    }
}

/// Whether all lines are equal, wherever they lie.
impl PartialEq for BitArray<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count() && self.parts().flatten().eq(other.parts().flatten())
    }
}

impl Eq for BitArray<'_> {}

fn ones_within(lines: &[Line], range: Range<u64>) -> u64 {
    let words: &[u64] = bytemuck::cast_slice(lines);
    let (first, last) = ((range.start / 64) as usize, (range.end / 64) as usize);
    // Whole words up to the one in which the range ends, then what was too much before it and is missing after it.
    let whole: u64 = words[first..last].iter().map(|word| u64::from(word.count_ones())).sum();
    let below = |word: usize, bits: u64| words.get(word).map_or(0, |word| (word & ((1 << bits) - 1)).count_ones());
    whole + u64::from(below(last, range.end % 64)) - u64::from(below(first, range.start % 64))
}

/// The mean over lines of the chance that a key which was not inserted finds its bits set.
fn chance_hit<'l>(lines: impl Iterator<Item = &'l Line>, count: usize, hashes: u32) -> f64 {
    lines.map(|line| chance_hit_in(line, hashes as usize)).sum::<f64>() / count as f64
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
        let bytes = bytes.to_bytes().next().unwrap();
        let aligned = BitArray::from_bytes(&bytes).unwrap();
        assert_eq!(aligned.flat(), Some(&lines[..]));
        assert_eq!(aligned.is_borrowed(), cfg!(target_endian = "little"));

        let mut buffer = vec![Line::EMPTY; 4];
        let shifted = &mut bytemuck::cast_slice_mut::<Line, u8>(&mut buffer)[8..8 + 3 * 64];
        shifted.copy_from_slice(&bytes);
        let copied = BitArray::from_bytes(shifted).unwrap();
        assert!(!copied.is_borrowed());
        assert_eq!(copied.flat(), Some(&lines[..]));
    }

    #[test]
    fn borrowed_lines_are_copied_before_a_change() {
        let lines = counting_bytes(2);
        let mut bits = BitArray::from_lines(&lines[..]).unwrap();
        with_lines!(&mut bits, mut |lines| lines[1].0[0] = u64::MAX);
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

    /// Three leaves of pages: the last leaf is short, and so is its last page.
    const SEVERAL_PAGES: usize = 16_534;

    fn owned_lines() -> BitArray<'static> {
        BitArray::from_lines(counting_bytes(SEVERAL_PAGES)).unwrap()
    }

    fn set(bits: &mut BitArray<'_>, line: usize) {
        with_lines!(bits, mut |lines| lines[line].0[7] = u64::MAX);
    }

    #[test]
    fn who_shares_lines_sees_them_as_they_were() {
        let (before, mut live) = (owned_lines(), owned_lines());
        let first = live.share();
        for line in [0, 63, 64, 9000, SEVERAL_PAGES - 1] {
            set(&mut live, line);
        }
        let second = live.share();
        set(&mut live, 1);
        set(&mut live, 100);
        let mut flat = owned_lines();
        for line in [0, 63, 64, 9000, SEVERAL_PAGES - 1] {
            set(&mut flat, line);
        }
        assert_eq!(first, before);
        assert_eq!(second, flat);
        set(&mut flat, 1);
        set(&mut flat, 100);
        assert_eq!(live, flat);
        assert!(live.to_bytes().collect::<Vec<_>>().concat() == flat.to_bytes().next().unwrap()[..]);
        assert_eq!((live.ones(), live.chance_hit(3)), (flat.ones(), flat.chance_hit(3)));
        for range in [0..1536, 3..5, 700..60_000, 32_768..32_768, 64 * 512 - 7..64 * 512 + 9] {
            assert_eq!(live.ones_in(range.clone()), flat.ones_in(range));
        }
        let copied = live.clone().try_into_owned().unwrap();
        assert_eq!((copied.flat().is_some(), &copied), (true, &live));
        let mut merged = first.clone();
        merged.union(&second);
        let mut expected = before.clone();
        expected.union(&second);
        assert_eq!(merged, expected);
    }

    #[test]
    fn lines_that_nobody_shares_any_more_are_one_run_again() {
        let mut live = owned_lines();
        let first = live.share();
        set(&mut live, 70);
        assert!(live.bytes_to_copy(1) > 0 && live.bytes_to_copy(1000) >= live.bytes_to_copy(3));
        drop(first);
        set(&mut live, 3);
        let mut flat = owned_lines();
        set(&mut flat, 70);
        set(&mut flat, 3);
        assert_eq!((live.flat(), live.bytes_to_copy(1000)), (flat.flat(), 0));
    }

    #[test]
    fn clearing_shared_lines_leaves_them_to_the_others() {
        let mut live = owned_lines();
        let first = live.share();
        live.clear();
        assert_eq!(live.ones(), 0);
        set(&mut live, 130);
        assert_eq!((live.ones(), first), (64, owned_lines()));
    }

    #[test]
    fn impossible_sizes_are_refused_before_anything_is_allocated() {
        assert_eq!(BitArray::zeroed(0).unwrap_err(), SpecError::Lines { found: 0 });
        assert_eq!(BitArray::zeroed(u64::MAX).unwrap_err(), SpecError::Lines { found: u64::MAX });
        assert_eq!(BitArray::from_bytes(&[]).unwrap_err(), SpecError::Lines { found: 0 });
        assert_eq!(BitArray::from_bytes(&[0; 65]).unwrap_err(), SpecError::Ragged { found: 65 });
    }
}
