//! Lines that several filters share until one of them changes some.
//!
//! Claim: sharing takes the same time however many lines there are, but for a word per half a megabyte; a change copies the page that it
//! falls on, once. Whoever shares lines sees them as they were, and may read them on another thread.
//! Invariant: `leaves` is empty, or has an entry for every leaf: those with pages changed here since the lines were shared, and `None` for
//! those all of whose pages are the base's. `own` of the pages are there.

use std::{
    array,
    ops::{Index, IndexMut},
    sync::Arc,
};

use crate::simd::line::{Line, Lines};

/// Lines per page: 1 kB. An item changes a line in each band, and each may copy a page; so pages are small.
const PAGE: usize = 16;

/// Pages per leaf, which lists them. One list of all would be long to make for the first change.
const LEAF: usize = 512;

/// What copying a page takes, the allocation's own bytes included.
const PAGE_BYTES: u64 = (PAGE + 4) as u64 * size_of::<Line>() as u64;

/// What copying a leaf takes, in the same way: allocators round up what is more than 4 kB to the next kilobyte.
const LEAF_BYTES: u64 = (size_of::<[Option<Page>; LEAF]>() + 16 * size_of::<Line>()) as u64;

/// Pages that are moved back into the base before a change, once nobody else has it, about: half a millisecond's work.
const FOLDED_AT_ONCE: usize = 2048;

type Page = Arc<[Line; PAGE]>;
type Leaf = Arc<[Option<Page>; LEAF]>;

/// Lines that are shared, and the pages of them that were changed.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    base: Arc<Vec<Line>>,
    leaves: Vec<Option<Leaf>>,
    own: usize,
}

impl Pages {
    pub(crate) fn of(lines: Vec<Line>) -> Self {
        Self { base: Arc::new(lines), leaves: Vec::new(), own: 0 }
    }

    /// All lines in order, in one or more parts.
    pub(crate) fn parts<'s>(&'s self) -> impl Iterator<Item = &'s [Line]> {
        let whole = self.leaves.is_empty().then_some(&self.base[..]);
        let paged = if self.leaves.is_empty() { &[][..] } else { &self.base[..] };
        let page = |(page, base): (usize, &'s [Line])| self.page(page).map_or(base, |page| &page[..base.len()]);
        whole.into_iter().chain(paged.chunks(PAGE).enumerate().map(page))
    }

    /// A page that is not the base's.
    #[inline]
    fn page(&self, page: usize) -> Option<&[Line; PAGE]> {
        self.leaves.get(page / LEAF)?.as_ref()?[page % LEAF].as_deref()
    }

    /// The lines in one run, if nobody else has them and all changes are folded into them.
    pub(crate) fn into_lines(self) -> Result<Vec<Line>, Self> {
        if self.own > 0 {
            return Err(self);
        }
        Arc::try_unwrap(self.base).map_err(|base| Self { base, leaves: self.leaves, own: 0 })
    }

    /// Moves some changes into the base, if nobody else has it. True when none are left.
    pub(crate) fn fold(&mut self) -> bool {
        let Some(base) = Arc::get_mut(&mut self.base) else { return false };
        let mut left = FOLDED_AT_ONCE;
        for (slot, base) in self.leaves.iter_mut().zip(base.chunks_mut(PAGE * LEAF)) {
            let Some(leaf) = slot else { continue };
            if left == 0 {
                break;
            }
            for (page, base) in Arc::make_mut(leaf).iter_mut().zip(base.chunks_mut(PAGE)) {
                let Some(page) = page.take() else { continue };
                base.copy_from_slice(&page[..base.len()]);
                self.own -= 1;
                left = left.saturating_sub(1);
            }
            // What the leaf itself takes, however few pages it has.
            left = left.saturating_sub(LEAF / 16);
            *slot = None;
        }
        self.own == 0
    }

    /// Makes all lines empty, without giving up what others see or taking memory for them.
    pub(crate) fn clear(&mut self) {
        let empty: Page = Arc::new([Line::EMPTY; PAGE]);
        let leaf: Leaf = Arc::new(array::from_fn(|_| Some(Arc::clone(&empty))));
        self.own = self.base.len().div_ceil(PAGE);
        self.leaves = vec![Some(leaf); self.own.div_ceil(LEAF)];
    }

    /// Bytes that so many changes of a line may have to copy, at most.
    pub(crate) fn bytes_to_copy(&self, changes: u64) -> u64 {
        let all = self.base.len().div_ceil(PAGE) as u64;
        let leaves = changes.min(all.div_ceil(LEAF as u64)).saturating_mul(LEAF_BYTES);
        if Arc::strong_count(&self.base) == 1 {
            // Pages that were cleared are one page, until they are changed.
            let pages = changes.min(self.own as u64).saturating_mul(PAGE_BYTES);
            return if self.own > 0 { pages + leaves } else { 0 };
        }
        // Pages that were shared after they were changed are copied as well, so that none is left out.
        changes.min(all).saturating_mul(PAGE_BYTES)
            + leaves
            + all.div_ceil(LEAF as u64) * size_of::<Option<Leaf>>() as u64
    }

    /// A page that is changed for the first time.
    #[cold]
    fn copy(&mut self, page: usize) {
        if self.leaves.is_empty() {
            self.leaves = vec![None; self.base.len().div_ceil(PAGE * LEAF)];
        }
        let base = &self.base[page * PAGE..];
        let base = &base[..base.len().min(PAGE)];
        let mut copy = [Line::EMPTY; PAGE];
        copy[..base.len()].copy_from_slice(base);
        let leaf = self.leaves[page / LEAF].get_or_insert_with(|| Arc::new([const { None }; LEAF]));
        Arc::make_mut(leaf)[page % LEAF] = Some(Arc::new(copy));
        self.own += 1;
    }
}

impl Index<usize> for Pages {
    type Output = Line;

    #[inline]
    fn index(&self, line: usize) -> &Line {
        match self.page(line / PAGE) {
            Some(page) => &page[line % PAGE],
            None => &self.base[line],
        }
    }
}

impl IndexMut<usize> for Pages {
    #[inline]
    fn index_mut(&mut self, line: usize) -> &mut Line {
        assert!(line < self.base.len(), "a line beyond the last");
        let page = line / PAGE;
        if self.page(page).is_none() {
            if Arc::get_mut(&mut self.base).is_some() {
                let base = Arc::get_mut(&mut self.base).expect("nobody else had it on the line above");
                return &mut base[line];
            }
            self.copy(page);
        }
        let leaf = Arc::make_mut(self.leaves[page / LEAF].as_mut().expect("it was made above"));
        let page = leaf[page % LEAF].as_mut().expect("it was made above");
        &mut Arc::make_mut(page)[line % PAGE]
    }
}

impl Lines for Pages {
    #[inline]
    fn count(&self) -> usize {
        self.base.len()
    }
}
