//! Opening allocates no more than the file's size and one MiB, whatever the file states.
//!
//! This test has its own binary, because the counting allocator applies to the whole program.

// The `GlobalAlloc` trait is unsafe to implement; this one forwards every call to the system's allocator.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout as MemoryLayout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use nearset::{
    BitString, Check, Distance, ExactSpec, Filter, FilterSpec, Layout, Seed, Spec, Table,
    family::{BitSampling, Sampling},
    spec::{Construction, Terms, WhenFull},
};

#[allow(dead_code)]
#[path = "format/any.rs"]
mod any;
#[allow(dead_code)]
#[path = "format/samples.rs"]
mod samples;

use any::{Any, payload_start, sign};

struct Counting;

/// All bytes ever requested; nothing is subtracted when they are freed.
static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: MemoryLayout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: MemoryLayout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: MemoryLayout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: MemoryLayout, size: usize) -> *mut u8 {
        ASKED.fetch_add(size, Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn check(name: &str, bytes: &[u8], most: &mut usize) {
    for how in [Check::Everything, Check::HeaderOnly] {
        let before = ASKED.load(Relaxed);
        let opened = Any::open(bytes, how);
        let asked = ASKED.load(Relaxed) - before;
        drop(opened);
        assert!(asked <= bytes.len() + (1 << 20), "{name}: {asked} bytes allocated to open {}", bytes.len());
        *most = asked.max(*most);
    }
}

#[test]
fn opening_allocates_at_most_the_files_size_and_a_mebibyte() {
    let mut most = 0;
    for sample in samples::all() {
        let bytes = sample.bytes();
        let start = payload_start(&bytes).unwrap();
        // At every alignment that a buffer might have: misaligned tables are copied.
        for shift in [0, 1, 8, 63] {
            let mut buffer = vec![0; bytes.len() + shift];
            buffer[shift..].copy_from_slice(&bytes);
            check(sample.name, &buffer[shift..], &mut most);
        }
        let mut changed = bytes.clone();
        for at in (10..56).chain(64..start) {
            for number in
                [u64::MAX, 1 << 63, 1 << 40, u64::from(u32::MAX), 1 << 28, 1 << 20, 1 << 16, 0xffff, 0xfff, 1, 0]
            {
                for width in [1, 2, 4, 8] {
                    let end = (at + width).min(start);
                    changed[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
                    sign(&mut changed);
                    check(sample.name, &changed, &mut most);
                    changed.copy_from_slice(&bytes);
                }
            }
        }
    }
    // As many tables as there can be, with next to no bits: what is computed for each must stay small.
    let bands = 1 << 16;
    let near = |table, rows| {
        let family = BitSampling { bits: 64, sampling: Sampling::Uniform };
        let spec = Spec::new(family, Layout::new(rows, bands), 1, table, Seed::new(1)).unwrap();
        Any::Filter(Filter::new(&spec.into()).unwrap()).encode()
    };
    let blocks = Construction::Pigeonhole { blocks: 1 << 12, table: Table::Bits(1) };
    let exact = ExactSpec::new(1 << 24, (1 << 12) - 1, blocks, Seed::new(1)).unwrap();
    let exact = Any::Filter(Filter::new(&exact.into()).unwrap()).encode();
    for (name, bytes) in [("bits", near(Table::Bits(1), 9)), ("direct", near(Table::Direct, 1)), ("exact", exact)] {
        assert!(bytes.len() < 1 << 15);
        check(name, &bytes, &mut most);
    }
    // Many generations of them: what is computed for the bands serves them all.
    let family = BitSampling { bits: 64, sampling: Sampling::Uniform };
    let spec = Spec::new(family, Layout::new(9, bands), 1, Table::Bits(1), Seed::new(1)).unwrap();
    let when_full = WhenFull::Forget { generations: 1024 };
    let terms = Terms::new(Distance::from_count(1), Distance::from_count(20), 0.1, 0.1, 1, when_full);
    let mut generations = Filter::new(&FilterSpec::from(spec).on_terms(terms).unwrap()).unwrap();
    generations.insert_keys(&vec![None; 60 * bands as usize]).unwrap();
    assert_eq!(generations.generations().len(), 60);
    check("generations", &Any::Filter(generations).encode(), &mut most);
    // As many generations as there can be, each of as few bytes as possible.
    let spec = ExactSpec::new(64, 1, Construction::FoldedScan { width: 64 }, Seed::new(1)).unwrap();
    let mut generations = Filter::new(&FilterSpec::from(spec).on_terms(terms).unwrap()).unwrap();
    generations.insert_all((0..1024).map(|_| BitString::zeros(64)).collect::<Vec<_>>().iter()).unwrap();
    assert_eq!(generations.generations().len(), 1024);
    check("scans", &Any::Filter(generations).encode(), &mut most);
    assert!(most > 1 << 16, "only {most} bytes were counted");
}
