//! Memory from the server, so that `MEMORY USAGE`, `maxmemory` and eviction count what filters take.
//!
//! Claim: every alignment is honoured with whichever allocator the server was built with, and where the server can refuse
//! memory instead of aborting (7.0 on), it is asked to, so that a table that can't be had is an error to the client.
//! Invariant: what is aligned beyond [`NATURAL`] has the address that the server knows in the word before it.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr;

use redis_module::raw;

/// The alignment that every `malloc` gives.
const NATURAL: usize = 16;

pub struct ServerAllocator;

/// So many zeroed or undefined bytes from the server; null if it has none.
///
/// # Safety
/// The module must have been initialised. Before that there is no allocator and the process ends, as it must.
unsafe fn take(size: usize, zeroed: bool) -> *mut u8 {
    // SAFETY: the server set these pointers when it initialised the module, and nothing sets them afterwards.
    let taken: *mut c_void = unsafe {
        match (
            zeroed,
            raw::RedisModule_TryAlloc,
            raw::RedisModule_TryCalloc,
            raw::RedisModule_Alloc,
            raw::RedisModule_Calloc,
        ) {
            (false, Some(try_alloc), _, _, _) => try_alloc(size),
            (false, None, _, Some(alloc), _) => alloc(size),
            (true, _, Some(try_calloc), _, _) => try_calloc(1, size),
            (true, _, None, _, Some(calloc)) => calloc(1, size),
            _ => std::process::abort(),
        }
    };
    taken.cast()
}

/// Moves on to the next multiple of `align`, and leaves a note of where the allocation starts.
///
/// # Safety
/// `start` is null or has room for `align` bytes more than are asked for, and `align` is beyond [`NATURAL`].
unsafe fn align_up(start: *mut u8, align: usize) -> *mut u8 {
    if start.is_null() {
        return start;
    }
    // SAFETY: at least NATURAL and at most `align` bytes are skipped, so the note lies inside of the allocation.
    unsafe {
        let aligned = start.add(align - start.addr() % align);
        aligned.cast::<*mut u8>().sub(1).write(start);
        aligned
    }
}

// SAFETY: memory is the server's, of at least the size asked for, at a multiple of the alignment, and goes back by the
// address that the server gave.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: Rust code of a module runs once it is initialised.
        unsafe {
            match layout.align() {
                ..=NATURAL => take(layout.size().max(layout.align()), false),
                align => align_up(take(layout.size() + align, false), align),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match layout.align() {
                ..=NATURAL => take(layout.size().max(layout.align()), true),
                align => align_up(take(layout.size() + align, true), align),
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` with this layout, so the note is there where one is needed.
        unsafe {
            let start = if layout.align() <= NATURAL { pointer } else { pointer.cast::<*mut u8>().sub(1).read() };
            if let Some(free) = raw::RedisModule_Free {
                free(start.cast());
            }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the pointer came from `alloc` with this layout; where it is the server's own, the server can resize it.
        unsafe {
            if layout.align() <= NATURAL
                && let Some(realloc) = raw::RedisModule_TryRealloc.or(raw::RedisModule_Realloc)
            {
                return realloc(pointer.cast(), size.max(layout.align())).cast();
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}
