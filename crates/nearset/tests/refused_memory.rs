//! When the system refuses memory, there is an error and nothing has changed.
//!
//! This program's allocator refuses requests as large as a table while a test says so. A table allocated by a method
//! that cannot fail ends the program, and the test with it.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr,
};

use nearset::{
    BitString, Check, Distance, ExactSpec, Filter, FilterSpec, Seed, Spec, Table,
    family::{BitSampling, Hashed},
    spec::{Construction, Terms, WhenFull},
};

thread_local! {
    /// Requests of this size or more are refused.
    static REFUSED_FROM: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Refusing;

// SAFETY: memory comes from the system's allocator; an allocator may return a null pointer.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= REFUSED_FROM.get() {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on, here and below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static REFUSING: Refusing = Refusing;

/// Refuses memory from this size on while `work` runs.
fn refusing<T>(from: usize, work: impl FnOnce() -> T) -> T {
    REFUSED_FROM.set(from);
    let done = work();
    REFUSED_FROM.set(usize::MAX);
    done
}

const BITS: u32 = 128;
const CAPACITY: u64 = 400;
/// Tables are larger than this, and everything else is smaller.
const TABLE: usize = 1 << 20;
/// The size of a sizeable list of folds. A batch of folds needs as much scratch space, so batches are tested on tables.
const FOLDS: usize = 12_000;
/// The sizes from which memory is refused to the filters here.
const LARGE: [usize; 2] = [TABLE, FOLDS];

fn strings(count: usize, seed: u64) -> Vec<BitString> {
    // SplitMix64.
    let mut state = seed.wrapping_mul(0x1234_5678_9abc_def1);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes()
    };
    (0..count).map(|_| BitString::from_bytes(&[next(), next()].concat())).collect()
}

/// Makes a filter with bands, and one that keeps folds.
fn filters(when_full: WhenFull) -> [Filter<'static>; 2] {
    let terms = Terms::new(Distance::from_count(3), Distance::from_count(40), 0.05, 0.001, CAPACITY, when_full);
    let layout = nearset::Layout::new(16, 12);
    let near = Spec::new(BitSampling::new(BITS), layout, 6, Table::Bits(1_600_000), Seed::new(5)).unwrap();
    let construction = Construction::FoldedScan { width: 128 };
    let scan = ExactSpec::new(BITS, 3, construction, Seed::new(5)).unwrap();
    [FilterSpec::from(near), FilterSpec::from(scan)].map(|spec| Filter::new(&spec.on_terms(terms).unwrap()).unwrap())
}

fn file(filter: &Filter<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes).unwrap();
    bytes
}

/// Runs `change` on a filter while memory is refused, then again while it is not: expects an error that changed
/// nothing, then success.
fn refused_then_allowed<E: std::fmt::Debug>(
    large: usize,
    filter: &mut Filter<'static>,
    mut change: impl FnMut(&mut Filter<'static>) -> Result<(), E>,
) {
    let before = file(filter);
    refusing(large, || change(filter)).expect_err("there was no memory");
    assert!(file(filter) == before, "the filter changed although memory was refused");
    change(filter).unwrap();
}

#[test]
fn a_batch_that_finds_no_memory_to_grow_inserts_nothing() {
    let items = strings(3000, 1);
    let [mut filter, _] = filters(WhenFull::Grow);
    filter.insert_all(&items[..300]).unwrap();
    refused_then_allowed(TABLE, &mut filter, |filter| filter.insert_all(&items[300..]).map(drop));
    assert!(filter.contains_all(&items).unwrap().into_iter().all(|near| near));
    assert!(filter.len() == 3000 && filter.generations().len() > 2);
}

#[test]
fn an_item_that_finds_no_memory_to_grow_is_not_inserted() {
    let (items, mut room) = (strings(3000, 2), Hashed::default());
    for (mut filter, large) in filters(WhenFull::Grow).into_iter().zip(LARGE) {
        let mut refusals = 0;
        for item in &items {
            let before = filter.len();
            if refusing(large, || filter.insert(item, &mut room)).is_err() {
                refusals += 1;
                assert_eq!(filter.len(), before);
                assert!(filter.insert(item, &mut room).is_ok());
            }
        }
        assert!(refusals > 0 && filter.len() == 3000);
    }
}

#[test]
fn generations_that_were_reserved_and_not_needed_are_given_back() {
    let items = strings(10, 3);
    let [mut filter, _] = filters(WhenFull::Grow);
    filter.reserve(10_000).unwrap();
    // What was reserved is used, and whatever is left of it is freed after the insertion.
    refusing(TABLE, || filter.insert_all(&items)).unwrap();
    assert_eq!(filter.generations().len(), 1);
    refusing(TABLE, || filter.insert_all(&strings(2000, 4))).expect_err("it has to grow again");
}

#[test]
fn copies_are_refused_or_equal() {
    for (mut filter, large) in filters(WhenFull::Grow).into_iter().zip(LARGE) {
        filter.insert_all(&strings(2000, 5)).unwrap();
        let shared = refusing(large, || filter.share());
        assert!(file(&shared) == file(&filter));
        assert!(refusing(large, || shared.try_into_owned()).is_err());
        assert!(file(&filter.share().try_into_owned().unwrap()) == file(&filter));
        // At any place in memory: where tables can be used in place, and where they are already copied.
        let bytes = file(&filter);
        for shift in [0, 1, 8] {
            let shifted = [&vec![0; shift][..], &bytes].concat();
            let open = || Filter::decode(&shifted[shift..], Check::Everything)?.try_into_owned().map_err(Into::into);
            let opened: Result<_, nearset::DecodeError> = refusing(large, open);
            let why = opened.err().expect("there was no memory").to_string();
            assert!(why.contains("no memory for") && !why.contains("damaged"), "{why}");
            assert!(file(&open().unwrap()) == bytes);
        }
    }
}

#[test]
fn a_merge_of_several_finds_memory_for_all_of_them_or_changes_nothing() {
    for when_full in [WhenFull::Grow, WhenFull::Forget { generations: 4 }] {
        let parts = [(0, 300), (1, 2500), (2, 1200)];
        let all: Vec<_> = parts
            .map(|(seed, count)| {
                let mut both = filters(when_full);
                both.iter_mut().for_each(|filter| drop(filter.insert_all(&strings(count, 10 + seed)).unwrap()));
                both
            })
            .into();
        for kind in 0..2 {
            let mut merged = all[0][kind].clone();
            let others = [&all[1][kind], &all[2][kind]];
            let mut one_by_one = merged.clone();
            others.iter().for_each(|other| one_by_one.merge(other).unwrap());

            refused_then_allowed(LARGE[kind], &mut merged, |filter| filter.reserve_to_merge(&others));
            // Nothing more is allocated, so it can no longer fail.
            refusing(LARGE[kind], || others.iter().for_each(|other| merged.merge(other).unwrap()));
            assert!(file(&merged) == file(&one_by_one), "{when_full:?}");
        }
    }
}
