//! Memory from the server, so that `MEMORY USAGE`, `maxmemory` and eviction count what filters take.
//!
//! Claim: every alignment is honoured with whichever allocator the server was built with, and memory that can't be had is a null
//! pointer, so that a table that is allocated with a chance to fail is an error to the client. What is allocated without one ends
//! the server: see [`memory`](crate::memory). Redis 7.0 and 7.2 can refuse plain memory only (`TryAlloc`), not zeroed or resized
//! memory (`TryCalloc`, `TryRealloc`), which is made of it here.
//! Invariant: what is aligned beyond [`NATURAL`] has the address that the server knows in the word before it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use redis_module::raw;

use crate::memory;

/// The alignment that every `malloc` gives.
const NATURAL: usize = 16;

/// From here on allocators ask the system.
const MUCH: usize = 32 << 20;

thread_local! {
    static IS_APART: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread is not the server's: zeros are written here rather than left to the system, which would give each page when
/// the first item falls on it, in a command.
pub fn touch_zeros() {
    IS_APART.set(true);
}

pub struct ServerAllocator;

/// So many zeroed or undefined bytes from the server; null if it has none, not even where the floor gives way.
///
/// # Safety
/// The module must have been initialised. Before that there is no allocator and the process ends, as it must.
unsafe fn take(size: usize, zeroed: bool) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe {
        let taken = try_take(size, zeroed);
        if taken.is_null() && memory::give_way(size) { try_take(size, zeroed) } else { taken }
    }
}

/// # Safety
/// As [`take`].
unsafe fn try_take(size: usize, zeroed: bool) -> *mut u8 {
    let touches = zeroed && IS_APART.get();
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
            (true, Some(try_alloc), ..) if touches => {
                let taken = try_alloc(size);
                if !taken.is_null() {
                    taken.cast::<u8>().write_bytes(0, size);
                }
                taken
            }
            (true, _, Some(try_calloc), _, _) => try_calloc(1, size),
            // Much memory comes from the system as zeros, and writing them again would take long. What was just there to be had
            // can be had again, but for another thread that takes as much at this very moment.
            (true, Some(try_alloc), None, _, Some(calloc)) if size >= MUCH => {
                let probe = try_alloc(size);
                if probe.is_null() {
                    return ptr::null_mut();
                }
                if let Some(free) = raw::RedisModule_Free {
                    free(probe);
                }
                calloc(1, size)
            }
            (true, Some(try_alloc), None, _, _) => {
                let taken = try_alloc(size);
                if !taken.is_null() {
                    taken.cast::<u8>().write_bytes(0, size);
                }
                taken
            }
            (true, None, None, _, Some(calloc)) => calloc(1, size),
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

/// Memory that is held only so that others can't take it.
pub struct Block(*mut u8);

// SAFETY: a block is an address that nobody reads or writes, and the server's allocator takes it back from any thread.
unsafe impl Send for Block {}

impl Block {
    /// None if the server has no such memory.
    pub fn take(size: usize) -> Option<Self> {
        // SAFETY: Rust code of a module runs once it is initialised.
        let start = unsafe { try_take(size, false) };
        (!start.is_null()).then_some(Self(start))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the server gave this address, and takes it back once.
        unsafe {
            if let Some(free) = raw::RedisModule_Free {
                free(self.0.cast());
            }
        }
    }
}

/// Notes what was allocated, if it was.
fn counted(size: usize, start: *mut u8) -> *mut u8 {
    #[cfg(debug_assertions)]
    if !start.is_null() {
        tally::note(size, 0);
    }
    #[cfg(not(debug_assertions))]
    let _ = size;
    start
}

/// What this thread holds, and held at most: commands say what they will take, and are taken at their word while they are tested.
#[cfg(debug_assertions)]
pub mod tally {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<isize> = const { Cell::new(0) };
        static MOST: Cell<isize> = const { Cell::new(0) };
    }

    pub(super) fn note(taken: usize, given: usize) {
        HELD.set(HELD.get() + taken as isize - given as isize);
        MOST.set(MOST.get().max(HELD.get()));
    }

    /// Begins anew.
    pub fn begin() {
        HELD.set(0);
        MOST.set(0);
    }

    /// Returns the most that was held at once since it began, beyond what was held then.
    pub fn most() -> u64 {
        MOST.get().unsigned_abs() as u64
    }
}

// SAFETY: memory is the server's, of at least the size asked for, at a multiple of the alignment, and goes back by the
// address that the server gave.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: Rust code of a module runs once it is initialised.
        unsafe {
            counted(
                layout.size(),
                match layout.align() {
                    ..=NATURAL => take(layout.size().max(layout.align()), false),
                    align => align_up(take(layout.size() + align, false), align),
                },
            )
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            counted(
                layout.size(),
                match layout.align() {
                    ..=NATURAL => take(layout.size().max(layout.align()), true),
                    align => align_up(take(layout.size() + align, true), align),
                },
            )
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` with this layout, so the note is there where one is needed.
        unsafe {
            let start = if layout.align() <= NATURAL { pointer } else { pointer.cast::<*mut u8>().sub(1).read() };
            if let Some(free) = raw::RedisModule_Free {
                free(start.cast());
            }
            #[cfg(debug_assertions)]
            tally::note(0, layout.size());
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the pointer came from `alloc` with this layout; where it is the server's own, the server can resize it.
        unsafe {
            let realloc = match raw::RedisModule_TryAlloc {
                Some(_) => raw::RedisModule_TryRealloc,
                None => raw::RedisModule_Realloc,
            };
            if layout.align() <= NATURAL
                && let Some(realloc) = realloc
            {
                let size = size.max(layout.align());
                let mut moved = realloc(pointer.cast(), size);
                if moved.is_null() && memory::give_way(size) {
                    moved = realloc(pointer.cast(), size);
                }
                let moved = counted(size, moved.cast());
                #[cfg(debug_assertions)]
                if !moved.is_null() {
                    tally::note(0, layout.size());
                }
                return moved;
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
