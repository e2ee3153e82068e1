//! The folded-sketch scan: compare a short fold of the query with that of every item.
//!
//! Claim: XOR-folding takes every position to one cell, so a difference in one position moves the fold by at most one: folds
//! are never farther apart than their strings, and none within the radius is lost. Folds as wide as the strings make an exact
//! scan. A scan of samples is the same with some of the string's bits in place of a fold, and may lose a near string whose
//! differences fall on too many of them.
//! Invariant: the stored folds are in strictly ascending order, so that they are a function of the set of items.

use std::{borrow::Cow, ops::Deref, sync::Arc};

use super::pigeonhole::each_set;
use crate::{
    Seed,
    error::SpecError,
    hash::Rng,
    item::Bits,
    simd::{line::Line, scan_within},
};

/// Every position's cell.
pub(super) struct Folder {
    words: usize,
    /// Empty where a fold is the string itself.
    cells: Vec<u32>,
}

impl Folder {
    pub(super) fn draw(bits: u32, width: u32, seed: Seed) -> Self {
        let words = width as usize / 64;
        if width >= bits {
            return Self { words, cells: Vec::new() };
        }
        // In a random order: differences that lie together, as in real hashes, must not cancel out in one cell.
        let mut cells: Vec<u32> = (0..bits).map(|position| position % width).collect();
        Rng::new(seed).shuffle(&mut cells);
        Self { words, cells }
    }

    pub(super) fn fold(&self, bits: Bits<'_>, fold: &mut Vec<u64>) {
        fold.clear();
        if self.cells.is_empty() {
            fold.extend_from_slice(bits.words());
            return;
        }
        fold.resize(self.words, 0);
        each_set(bits, |position| {
            let cell = self.cells[position];
            fold[cell as usize / 64] ^= 1 << (cell % 64);
        });
    }
}

/// The positions that a sample has, in its order.
pub(super) struct Sampler {
    positions: Vec<u32>,
}

impl Sampler {
    /// Draws `width` distinct positions.
    pub(super) fn draw(bits: u32, width: u32, seed: Seed) -> Self {
        let drawn = Rng::new(seed).distinct(width as usize, u64::from(bits));
        let mut positions: Vec<u32> = drawn.into_iter().map(|position| position as u32).collect();
        // In ascending order an item is read from front to back.
        positions.sort_unstable();
        Self { positions }
    }

    pub(super) fn sample(&self, bits: Bits<'_>, sample: &mut Vec<u64>) {
        sample.clear();
        let words = bits.words();
        let bit = |position: u32| words[position as usize / 64] >> (position % 64) & 1;
        sample.extend(
            self.positions
                .chunks(64)
                .map(|positions| (0..).zip(positions).fold(0, |word, (at, &position)| word | bit(position) << at)),
        );
    }
}

/// Folds of `words` words each, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Folds<'a> {
    words: usize,
    rows: Rows<'a>,
}

/// Rows of words. Shared ones are copied as a whole before a change: an insertion moves half of them anyway.
#[derive(Debug, Clone)]
enum Rows<'a> {
    Borrowed(&'a [u64]),
    Owned(Arc<Vec<u64>>),
}

impl Deref for Rows<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Rows::Borrowed(rows) => rows,
            Rows::Owned(rows) => rows,
        }
    }
}

impl Rows<'_> {
    fn to_mut(&mut self) -> &mut Vec<u64> {
        if let Rows::Borrowed(rows) = self {
            *self = Rows::Owned(Arc::new(rows.to_vec()));
        }
        match self {
            Rows::Owned(rows) => Arc::make_mut(rows),
            Rows::Borrowed(_) => unreachable!("the rows were just made our own"),
        }
    }

    /// Whether a change copies all of them.
    fn is_shared(&self) -> bool {
        match self {
            Rows::Borrowed(_) => true,
            Rows::Owned(rows) => Arc::strong_count(rows) > 1,
        }
    }
}

/// Rows scanned before looking whether one was found: few enough to stop early, enough to hide the stop.
const STRIDE: usize = 4096;

/// Whether any row is within the radius of the query.
pub(super) fn any_within(rows: &[u64], query: &[u64], radius: u32) -> bool {
    let mut found = Vec::new();
    rows.chunks(STRIDE * query.len()).any(|rows| {
        scan_within(query, rows, radius, &mut found);
        !found.is_empty()
    })
}

impl Folds<'static> {
    pub(super) fn new(words: usize) -> Self {
        Self { words, rows: Rows::Borrowed(&[]) }
    }

    /// The same folds for another filter.
    pub(super) fn share(&self) -> Self {
        self.clone()
    }
}

impl<'a> Folds<'a> {
    /// Folds from words; `None` if they are not whole rows.
    pub(crate) fn from_rows(words: usize, rows: Cow<'a, [u64]>) -> Option<Self> {
        let whole = rows.len().is_multiple_of(words);
        let rows = match rows {
            Cow::Borrowed(rows) => Rows::Borrowed(rows),
            Cow::Owned(rows) => Rows::Owned(Arc::new(rows)),
        };
        whole.then_some(Self { words, rows })
    }

    /// Whether each row is above the one before it.
    pub(crate) fn is_sorted(&self) -> bool {
        self.rows.chunks_exact(self.words).is_sorted_by(|a, b| a < b)
    }

    pub(crate) fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// How many distinct folds there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.words
    }

    pub(super) fn any_within(&self, query: &[u64], radius: u32) -> bool {
        any_within(&self.rows, query, radius)
    }

    pub(super) fn insert(&mut self, fold: &[u64]) {
        let row = self.position(fold);
        if row == self.len() || self.row(row) != fold {
            let at = row * self.words;
            self.rows.to_mut().splice(at..at, fold.iter().copied());
        }
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.rows[i * self.words..(i + 1) * self.words]
    }

    /// Takes in rows in any order, repeats among them.
    pub(super) fn union(&mut self, rows: Vec<u64>) {
        let mut sorted: Vec<&[u64]> = rows.chunks_exact(self.words).collect();
        sorted.sort_unstable();
        sorted.dedup();
        self.union_sorted(&sorted.concat());
    }

    /// Makes room for so many more rows.
    pub(super) fn reserve(&mut self, rows: u64) -> Result<(), SpecError> {
        let more = usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(self.words);
        if self.rows.is_shared() {
            self.rows = Rows::Owned(Arc::new(copied(&self.rows)?));
        }
        let refused = no_memory(self.rows.len().saturating_add(more));
        self.rows.to_mut().try_reserve(more).map_err(|_| refused)
    }

    /// Takes in rows in strictly ascending order.
    pub(super) fn union_sorted(&mut self, others: &[u64]) {
        let words = self.words;
        let missing = others.chunks_exact(words).filter(|other| !self.contains(other)).count() * words;
        if missing == 0 {
            return;
        }
        let rows = self.rows.to_mut();
        let mut ours = rows.len();
        rows.resize(ours + missing, 0);
        // From the end on, so that no row is written over before it was moved: `end - ours` words are still to come of the others.
        let mut end = rows.len();
        for other in others.chunks_exact(words).rev() {
            while ours > 0 && rows[ours - words..ours] > *other {
                rows.copy_within(ours - words..ours, end - words);
                (ours, end) = (ours - words, end - words);
            }
            if ours == 0 || rows[ours - words..ours] != *other {
                rows[end - words..end].copy_from_slice(other);
                end -= words;
            }
            if end == ours {
                break;
            }
        }
    }

    /// Whether it has this row.
    fn contains(&self, fold: &[u64]) -> bool {
        let at = self.position(fold);
        at < self.len() && self.row(at) == fold
    }

    /// How many rows are below this one.
    fn position(&self, fold: &[u64]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.row(middle) < fold { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(super) fn into_owned(self) -> Folds<'static> {
        self.try_into_owned().expect("there is memory for a copy")
    }

    /// [`Self::into_owned`], where a refused copy is an error.
    pub(super) fn try_into_owned(self) -> Result<Folds<'static>, SpecError> {
        let rows = match self.rows {
            Rows::Owned(rows) if Arc::strong_count(&rows) == 1 => rows,
            rows => Arc::new(copied(&rows)?),
        };
        Ok(Folds { words: self.words, rows: Rows::Owned(rows) })
    }

    /// Bytes that a change copies first.
    pub(crate) fn bytes_to_copy(&self) -> u64 {
        if self.rows.is_shared() { size_of_val(self.rows()) as u64 } else { 0 }
    }
}

fn copied(rows: &[u64]) -> Result<Vec<u64>, SpecError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(rows.len()).map_err(|_| no_memory(rows.len()))?;
    copy.extend_from_slice(rows);
    Ok(copy)
}

fn no_memory(words: usize) -> SpecError {
    SpecError::Memory { lines: (size_of::<u64>() as u64 * words as u64).div_ceil(Line::BITS / 8) }
}
