//! The items themselves, one row of words each, and which of them were removed.
//!
//! Claim: rows of 2, 4 or 8 words never straddle cache lines, so that comparing one costs one access to memory.
//! Invariant: a row stays where it is, so that its number can be its id; removing marks it.

use std::{borrow::Cow, collections::TryReserveError};

use crate::simd::line::Line;

#[derive(Clone)]
pub(crate) struct Rows<'a> {
    words: usize,
    count: u32,
    lines: Cow<'a, [Line]>,
    /// One bit a row, as far as the last removed one needs.
    removed: Cow<'a, [u64]>,
    num_removed: u32,
}

const LINE_WORDS: usize = 8;

impl Rows<'static> {
    pub(super) fn new(words: usize) -> Self {
        Self { words, count: 0, lines: Cow::Borrowed(&[]), removed: Cow::Borrowed(&[]), num_removed: 0 }
    }
}

impl<'a> Rows<'a> {
    /// Rows from what a file holds; as many lines as they need.
    pub(crate) fn from_parts(words: usize, count: u32, lines: Cow<'a, [Line]>, removed: Cow<'a, [u64]>) -> Self {
        debug_assert_eq!(lines.len(), (words * count as usize).div_ceil(LINE_WORDS));
        let num_removed = removed.iter().map(|word| word.count_ones()).sum();
        Self { words, count, lines, removed, num_removed }
    }

    /// Rows, removed ones included.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    pub(crate) fn num_removed(&self) -> u32 {
        self.num_removed
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn removed(&self) -> &[u64] {
        &self.removed
    }

    /// All rows' words, one row after the other.
    pub(crate) fn words(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.lines)[..self.words * self.count as usize]
    }

    pub(super) fn row(&self, id: u32) -> &[u64] {
        let start = self.words * id as usize;
        &bytemuck::cast_slice(&self.lines)[start..start + self.words]
    }

    /// Makes room for so many rows more.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), TryReserveError> {
        let lines = (self.words * (self.count as usize + rows)).div_ceil(LINE_WORDS);
        let more = lines - self.lines.len();
        self.lines.to_mut().try_reserve_exact(more)
    }

    pub(super) fn push(&mut self, row: &[u64]) {
        let start = self.words * self.count as usize;
        let end = start + self.words;
        let lines = self.lines.to_mut();
        lines.resize(end.div_ceil(LINE_WORDS), Line::EMPTY);
        bytemuck::cast_slice_mut(lines)[start..end].copy_from_slice(row);
        self.count += 1;
    }

    pub(super) fn is_removed(&self, id: u32) -> bool {
        self.removed.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Whether the row was there until now.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        if id >= self.count || self.is_removed(id) {
            return false;
        }
        let word = id as usize / 64;
        let removed = self.removed.to_mut();
        if removed.len() <= word {
            removed.resize(word + 1, 0);
        }
        removed[word] |= 1 << (id % 64);
        self.num_removed += 1;
        true
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.lines) as u64 + size_of_val(&*self.removed) as u64
    }

    pub(super) fn into_owned(self) -> Rows<'static> {
        let Self { words, count, num_removed, .. } = self;
        let (lines, removed) = (self.lines.into_owned().into(), self.removed.into_owned().into());
        Rows { words, count, lines, removed, num_removed }
    }
}
