//! Measured time beside the stated work, for every family and construction: `cargo run -p nearset --example work`.
//!
//! An operation stands for about a nanosecond, so the last column should lie around 1 or below, and nowhere far above.

use std::time::Instant;

use nearset::{
    BitString, ExactSpec, Family, Filter, FilterSpec, Item, Layout, Seed, Spec, Symbols, Table,
    family::{
        BitSampling, CrossPolytope, Hashed, Hyperplane, MinHash, Minutiae, PStable, Sampling, Stable, Symbol,
        SymbolSampling, WeightedMinHash,
    },
    spec::Hasher,
};

fn row(what: &str, operations: u64, nanoseconds: f64) {
    println!("{what:44} {operations:12} {nanoseconds:12.0} {:8.2}", nanoseconds / operations as f64);
}

/// Returns the shortest of some runs, which is the least disturbed.
fn shortest(mut run: impl FnMut()) -> f64 {
    let timed = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64
    };
    (0..5).map(|_| timed(&mut run)).fold(f64::INFINITY, f64::min)
}

fn family(name: &str, family: Family, layout: Layout, item: Item<'_>, elements: u64) {
    let spec = Spec::new(family, layout, 1, Table::Bits(64), Seed::new(1)).expect("a valid layout");
    let stated = FilterSpec::from(spec).work_bound();
    let start = Instant::now();
    let functions = Hasher::new(family, layout, Seed::new(1)).expect("a valid layout");
    let drawn = start.elapsed().as_nanos() as f64;
    let mut room = Hashed::default();
    let hashed = shortest(|| functions.hash(item, &mut room).expect("an item of the family's kind"));
    let name = format!("{name}, {} x {}", layout.rows, layout.bands);
    row(&format!("draw {name}"), stated.draw, drawn);
    row(&format!("hash {name}"), stated.hash + stated.element * elements, hashed);
}

fn exact(name: &str, spec: ExactSpec) {
    let stated = FilterSpec::from(spec).work_bound();
    let mut filter = Filter::new(&FilterSpec::from(spec)).expect("a valid spec");
    let mut room = Hashed::default();
    let length = spec.bits as usize / 8;
    filter.insert(&BitString::from_bytes(&vec![0x0f; length]), &mut room).expect("of the right length");
    let query = BitString::from_bytes(&vec![0x5a; length]);
    let took = shortest(|| drop(filter.contains_near(&query, &mut room)));
    row(&format!("query {name}"), stated.hash + stated.look_up, took);
}

fn main() {
    println!("{:44} {:>12} {:>12} {:>8}", "", "operations", "nanoseconds", "ratio");
    let symbols = vec![1; 1000];
    let bits = BitString::from_bytes(&[0xff; 8192]);
    let weighted: Vec<(u64, f64)> = (0..8).map(|element| (element, 1.0)).collect();
    for layout in [Layout::new(5, 128), Layout::new(10, 1000), Layout::new(1, 50_000)] {
        for sampling in [Sampling::Uniform, Sampling::Balanced] {
            let name = format!("{sampling:?} bits");
            family(&name, BitSampling { bits: 65_536, sampling }.into(), layout, (&bits).into(), 0);
        }
        let whole = SymbolSampling { length: 1000, symbol: Symbol::Whole, sampling: Sampling::Uniform };
        family("symbols", whole.into(), layout, Symbols::Wide(&symbols).into(), 0);
        family("minutiae", Minutiae { squares: 65_536, occupied: 99 }.into(), layout, (&bits).into(), 0);
        for size in [30, u64::from(layout.rows * layout.bands) / 14] {
            let set: Vec<u64> = (0..size).map(|element| element * 7_777_777).collect();
            family(&format!("MinHash of {size}"), MinHash::default().into(), layout, Item::Set(&set), size);
        }
        family("weighted MinHash", WeightedMinHash::default().into(), layout, Item::Weighted(&weighted), 8);
        for dimension in [16, 100, 1024] {
            let vector: Vec<f32> = (0..dimension).map(|i| (i as f32).sin() + 0.1).collect();
            let item = Item::Vector(&vector);
            let short = u64::from(dimension) * u64::from(layout.rows * layout.bands) < 1 << 24;
            if short {
                family(&format!("planes in {dimension}"), Hyperplane { dimension }.into(), layout, item, 0);
                for stable in [Stable::Gaussian, Stable::Cauchy] {
                    let stable = PStable { dimension, width: 4.0, stable };
                    family(&format!("{:?} in {dimension}", stable.stable), stable.into(), layout, item, 0);
                }
                family(&format!("vertices in {dimension}"), CrossPolytope { dimension }.into(), layout, item, 0);
            }
        }
    }
    for (bits, radius, blocks) in [(256, 5, 2), (256, 12, 4), (1024, 31, 16), (65_536, 3, 2)] {
        let spec = ExactSpec::pigeonhole(bits, radius, blocks, 1_000, 0.01, Seed::new(1)).expect("a valid spec");
        exact(&format!("pigeonhole, {bits} bits, {radius} in {blocks}"), spec);
    }
    for bits in [256, 65_536] {
        let spec = ExactSpec::covering(bits, 6, 1_000, 0.01, Seed::new(1)).expect("a valid spec");
        exact(&format!("covering, {bits} bits"), spec);
    }
}
