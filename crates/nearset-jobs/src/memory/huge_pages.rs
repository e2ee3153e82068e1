//! An allocator for programs that look up at random in large memory: most of such a look-up is finding the page.
//!
//! Claim: large memory lies in huge pages where the system grants them, and is zero without having been written: its pages are taken and cleared by
//! the threads that first write to them.
//! Invariant: what is large is so by the size and alignment alone, with which memory is also given back.
//! On systems other than Linux, this is the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};

/// Smaller memory comes from the system's allocator, which uses it again without asking the system.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Large memory in huge pages, smaller from the system's allocator.
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

#[cfg(target_os = "linux")]
mod large {
    use std::alloc::Layout;
    use std::ffi::c_void;
    use std::ptr;

    use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap};

    /// What every page is aligned to, at least.
    const PAGE: usize = 4096;

    pub fn is_large(layout: Layout) -> bool {
        layout.size() >= super::LARGE && layout.align() <= PAGE
    }

    pub fn map(bytes: usize) -> *mut u8 {
        // SAFETY: a private mapping at an address of the system's choice touches no memory that is in use.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let Ok(start) = mapped else { return ptr::null_mut() };
        // SAFETY: the range was mapped just now, and the advice changes nothing that is in it. Where it is not taken, pages are small.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        start.cast()
    }

    /// # Safety
    /// `start` came from [`map`] or [`remap`] for so many bytes, and nobody uses it any more.
    pub unsafe fn unmap(start: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises. Where it fails, which takes a process of too many mappings, the memory stays taken.
        let _ = unsafe { munmap(start.cast::<c_void>(), bytes) };
    }

    /// # Safety
    /// As for [`unmap`], unless null is returned.
    pub unsafe fn remap(start: *mut u8, from: usize, to: usize) -> *mut u8 {
        // SAFETY: as the caller promises; the range that it moves to is the system's choice.
        let moved = unsafe { mremap(start.cast::<c_void>(), from, to, MremapFlags::MAYMOVE) };
        moved.map_or(ptr::null_mut(), <*mut c_void>::cast)
    }
}

#[cfg(target_os = "linux")]
// SAFETY: large layouts are mapped here and all others are the system's, told apart by the layout, which is the same for all calls about some
// memory. Mappings are aligned to pages, and large layouts need no more.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large::is_large(layout) {
            return large::map(layout.size());
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if large::is_large(layout) {
            return large::map(layout.size());
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if large::is_large(layout) {
            // SAFETY: memory of a large layout was mapped, and the caller gives it up.
            return unsafe { large::unmap(memory, layout.size()) };
        }
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that it does not overflow when it is aligned.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (was_large, is_large) = (large::is_large(layout), large::is_large(new));
        if !was_large && !is_large {
            // SAFETY: as the caller promises.
            return unsafe { System.realloc(memory, layout, size) };
        }
        if was_large && is_large {
            // SAFETY: memory of a large layout was mapped.
            let moved = unsafe { large::remap(memory, layout.size(), size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the new memory overlaps none that is in use, and both have so many bytes.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

#[cfg(not(target_os = "linux"))]
// SAFETY: all of it is the system's allocator.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn written(memory: *mut u8, bytes: usize) {
        // Some places of every page.
        for at in (0..bytes).step_by(1031) {
            // SAFETY: within the memory.
            unsafe { memory.add(at).write(at as u8) };
        }
    }

    fn expect_written(memory: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(1031) {
            // SAFETY: within the memory.
            assert_eq!(unsafe { memory.add(at).read() }, at as u8, "byte {at} of {bytes}");
        }
    }

    #[test]
    fn memory_keeps_what_is_written_while_it_grows_and_shrinks() {
        for align in [1, 8, 64, 4096, 8192] {
            let sizes = [1000, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 77, 9 * LARGE, LARGE, 100_000, 2 * LARGE, 10];
            let layout = |size| Layout::from_size_align(size, align).unwrap();
            // SAFETY: sizes are not 0, and every layout is the one that the memory has.
            unsafe {
                let mut memory = HugePages.alloc_zeroed(layout(sizes[0]));
                assert!((0..sizes[0]).all(|at| memory.add(at).read() == 0));
                written(memory, sizes[0]);
                for pair in sizes.windows(2) {
                    memory = HugePages.realloc(memory, layout(pair[0]), pair[1]);
                    assert!(!memory.is_null() && memory.addr().is_multiple_of(align), "{align} {pair:?}");
                    expect_written(memory, pair[0].min(pair[1]));
                    written(memory, pair[1]);
                }
                HugePages.dealloc(memory, layout(sizes[sizes.len() - 1]));
            }
        }
    }

    #[test]
    fn large_memory_is_zero_and_asks_for_huge_pages() {
        let layout = Layout::from_size_align(256 << 20, 64).unwrap();
        // SAFETY: the layout is not empty, and the one that the memory has.
        unsafe {
            let memory = HugePages.alloc_zeroed(layout);
            assert!((0..layout.size()).step_by(1 << 24).all(|at| memory.add(at).read() == 0));
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let mut is_own = false;
            let advised = maps.lines().any(|line| {
                if let Some((range, _)) = line.split_once(' ')
                    && let Some((start, end)) = range.split_once('-')
                    && let [Ok(start), Ok(end)] = [start, end].map(|hex| usize::from_str_radix(hex, 16))
                {
                    is_own = (start..end).contains(&memory.addr());
                }
                is_own && line.starts_with("VmFlags:") && line.contains(" hg")
            });
            let granted = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok();
            assert_eq!(advised, granted, "whether the system knows huge pages decides");
            HugePages.dealloc(memory, layout);
        }
    }
}
