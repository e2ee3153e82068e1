//! Lines that several filters share until one of them changes some.
//!
//! Claim: sharing takes the same time however many lines there are; a change copies the page that it falls on, once. Whoever
//! shares lines sees them as they were, and may read them on another thread.
//! Invariant: `pages` is empty, or has an entry for every page: those changed here since the lines were shared, and `None` for
//! those of the base. `own` of them are there.

use std::{
    iter::repeat_n,
    ops::{Index, IndexMut},
    sync::Arc,
};

use crate::simd::line::{Line, Lines};

/// Lines per page: 1 kB. An item changes a line in each band, and each may copy a page; so pages are small, at 8 bytes each for the
/// list of them.
const PAGE: usize = 16;

/// What copying a page takes, the allocation's own bytes included.
const PAGE_BYTES: u64 = (PAGE + 4) as u64 * size_of::<Line>() as u64;

/// Pages that are moved back into the base before a change, once nobody else has it: half a millisecond's work.
const FOLDED_AT_ONCE: usize = 2048;

type Page = Arc<[Line; PAGE]>;

/// Lines that are shared, and the pages of them that were changed.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    base: Arc<Vec<Line>>,
    pages: Vec<Option<Page>>,
    own: usize,
}

impl Pages {
    pub(crate) fn of(lines: Vec<Line>) -> Self {
        Self { base: Arc::new(lines), pages: Vec::new(), own: 0 }
    }

    /// All lines in order, in one or more parts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[Line]> {
        let whole = self.pages.is_empty().then_some(&self.base[..]);
        let paged = self.pages.iter().zip(self.base.chunks(PAGE));
        whole.into_iter().chain(paged.map(|(page, base)| page.as_ref().map_or(base, |page| &page[..base.len()])))
    }

    /// The lines in one run, if nobody else has them and all changes are folded into them.
    pub(crate) fn into_lines(self) -> Result<Vec<Line>, Self> {
        if self.own > 0 {
            return Err(self);
        }
        Arc::try_unwrap(self.base).map_err(|base| Self { base, pages: self.pages, own: 0 })
    }

    /// Moves some changes into the base, if nobody else has it. True when none are left.
    pub(crate) fn fold(&mut self) -> bool {
        let Some(base) = Arc::get_mut(&mut self.base) else { return false };
        if self.own > 0 {
            let changed = self.pages.iter_mut().zip(base.chunks_mut(PAGE)).filter(|(page, _)| page.is_some());
            for (page, base) in changed.take(FOLDED_AT_ONCE) {
                let Some(page) = page.take() else { continue };
                base.copy_from_slice(&page[..base.len()]);
                self.own -= 1;
            }
        }
        self.own == 0
    }

    /// Makes all lines empty, without giving up what others see or taking memory for them.
    pub(crate) fn clear(&mut self) {
        let empty: Page = Arc::new([Line::EMPTY; PAGE]);
        self.own = self.base.len().div_ceil(PAGE);
        self.pages = repeat_n(Some(empty), self.own).collect();
    }

    /// Bytes that so many changes of a line may have to copy, at most.
    pub(crate) fn bytes_to_copy(&self, changes: u64) -> u64 {
        if Arc::strong_count(&self.base) == 1 {
            // Pages that were cleared are one page, until they are changed.
            return changes.min(self.own as u64).saturating_mul(PAGE_BYTES);
        }
        let all = self.base.len().div_ceil(PAGE) as u64;
        // Pages that were shared after they were changed are copied as well, so that none is left out.
        changes.min(all).saturating_mul(PAGE_BYTES) + all * size_of::<Option<Page>>() as u64
    }

    /// A page that is changed for the first time.
    #[cold]
    fn copy(&mut self, page: usize) {
        if self.pages.is_empty() {
            self.pages = vec![None; self.base.len().div_ceil(PAGE)];
        }
        let base = &self.base[page * PAGE..];
        let base = &base[..base.len().min(PAGE)];
        let mut copy = [Line::EMPTY; PAGE];
        copy[..base.len()].copy_from_slice(base);
        self.pages[page] = Some(Arc::new(copy));
        self.own += 1;
    }
}

impl Index<usize> for Pages {
    type Output = Line;

    #[inline]
    fn index(&self, line: usize) -> &Line {
        match self.pages.get(line / PAGE) {
            Some(Some(page)) => &page[line % PAGE],
            _ => &self.base[line],
        }
    }
}

impl IndexMut<usize> for Pages {
    #[inline]
    fn index_mut(&mut self, line: usize) -> &mut Line {
        assert!(line < self.base.len(), "a line beyond the last");
        if !matches!(self.pages.get(line / PAGE), Some(Some(_))) {
            if Arc::get_mut(&mut self.base).is_some() {
                let base = Arc::get_mut(&mut self.base).expect("nobody else had it on the line above");
                return &mut base[line];
            }
            self.copy(line / PAGE);
        }
        let page = self.pages[line / PAGE].as_mut().expect("it was made above");
        &mut Arc::make_mut(page)[line % PAGE]
    }
}

impl Lines for Pages {
    #[inline]
    fn count(&self) -> usize {
        self.base.len()
    }
}
