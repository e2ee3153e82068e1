//! No text is very slow, checked by what can be counted, which is allocations, and by times with a wide margin.
//! `benches/texts.rs` measures how slow each is.
//!
//! This test has its own binary, because the counting allocator applies to the whole program.

// The `GlobalAlloc` trait is unsafe to implement; this one forwards every call to the system's allocator.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout as MemoryLayout, System},
    cell::Cell,
    hint::black_box,
    time::{Duration, Instant},
};

use nearset::{
    Family, Item, Layout, Seed, Shingler, Shingling,
    family::{Hashed, MinHash, WeightedMinHash},
    item::SortedSet,
    spec::Hasher,
};

#[path = "../benches/corpus/awkward.rs"]
mod awkward;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the default methods are built on these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: MemoryLayout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: MemoryLayout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A number of bytes that takes a millisecond at most: few runs are then interrupted by another program, and the least
/// time is undisturbed.
const SHORT_RUN: usize = 32_000;

const SHINGLINGS: [Shingling; 3] = [Shingling::Words(5), Shingling::Chars(9), Shingling::Bytes(13)];

fn functions(family: impl Into<Family>) -> Hasher {
    Hasher::new(family, Layout::new(8, 124), Seed::default()).expect("a layout with functions")
}

/// A text has thousands of words and shingles here; buffers that double in length are allocated a dozen times each.
#[test]
fn no_text_allocates_per_word() {
    for shingling in SHINGLINGS {
        let functions = functions(MinHash { shingling });
        for (name, text) in awkward::awkward(100_000) {
            // The tables of characters are filled when characters are first met.
            functions.hash(Item::Text(&text), &mut Hashed::default()).unwrap();
            let before = ALLOCATIONS.get();
            functions.hash(Item::Text(&text), &mut Hashed::default()).unwrap();
            let allocations = ALLOCATIONS.get() - before;
            assert!(allocations <= 64, "{name}, {shingling}: {allocations} allocations");
        }
    }
}

/// What is done to a text.
type Work = Box<dyn Fn(&str)>;

/// Returns the least time of a few runs, or of more if that is above the limit: other programs may have interfered.
fn least_time(run: &dyn Fn(&str), text: &str, limit: Duration) -> Duration {
    let mut least = Duration::MAX;
    for runs in 0..20 {
        if runs >= 2 && least <= limit {
            break;
        }
        let start = Instant::now();
        run(text);
        least = least.min(start.elapsed());
    }
    least
}

/// Four times is the goal of `benches/texts.rs`, without debug assertions and other tests beside it. The causes that
/// this test looks for, quadratic work or work that goes through all repeats over and over, made it 50 to 250.
#[test]
fn no_text_takes_twelve_times_as_long_as_prose() {
    const MOST: u32 = 12;
    const BYTES: usize = SHORT_RUN;
    let mut works: Vec<(String, Work)> = Vec::new();
    let hashing = |functions: Hasher| -> Work {
        Box::new(move |text| functions.hash(Item::Text(text), &mut Hashed::default()).unwrap())
    };
    for shingling in SHINGLINGS {
        works.push((format!("keys, {shingling}"), hashing(functions(MinHash { shingling }))));
        let shingler = Shingler::new(shingling, Seed::default()).unwrap();
        let sets = move |text: &str| {
            let mut shingles = Vec::new();
            shingler.shingles(text, &mut shingles);
            black_box(SortedSet::from(shingles));
        };
        works.push((format!("sets, {shingling}"), Box::new(sets)));
    }
    works.push(("bag keys".to_owned(), hashing(functions(WeightedMinHash::default()))));

    let (texts, prose) = (awkward::awkward(BYTES), awkward::prose(BYTES));
    for (work, run) in &works {
        // Measured anew for each text, so that both are disturbed or neither.
        for (name, text) in &texts {
            let limit = MOST * least_time(run, &prose, Duration::MAX);
            let time = least_time(run, text, limit);
            assert!(time <= limit, "{name}, {work}: {time:?}, but prose {:?}", limit / MOST);
        }
    }
}

/// Eight times the bytes: quadratic work would take 64 times as long.
#[test]
fn time_grows_with_the_bytes_alone() {
    const BYTES: usize = SHORT_RUN / 8;
    for shingling in [Shingling::Words(5), Shingling::Chars(9)] {
        let functions = functions(MinHash { shingling });
        let run = |text: &str| functions.hash(Item::Text(text), &mut Hashed::default()).unwrap();
        for ((name, short), (_, long)) in awkward::awkward(BYTES).iter().zip(awkward::awkward(8 * BYTES)) {
            let limit = 24 * least_time(&run, short, Duration::MAX);
            let time = least_time(&run, &long, limit);
            assert!(time <= limit, "{name}, {shingling}: {time:?} for 8 times as many bytes, limit {limit:?}");
        }
    }
}
