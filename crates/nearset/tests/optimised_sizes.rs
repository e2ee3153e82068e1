//! The distance-sensitive Bloom filter's own workload (Kirsch & Mitzenmacher 2006, section 4), planned: strings of
//! 65,536 bits, with exactly a fraction of them flipped, in some hundredths of the printed bits.

use nearset::{
    BitString, Filter, FilterSpec, Metric, Rng,
    family::Hashed,
    plan::{Request, Structure},
};

const LENGTH: u32 = 65_536;

fn random(rng: &mut Rng) -> BitString {
    let bytes: Vec<u8> = (0..LENGTH / 64).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    BitString::from_bytes(&bytes)
}

/// Returns the string with exactly this fraction of its bits flipped. `order` holds every position once, in any order,
/// and is shuffled as far as needed.
fn flipped(string: &BitString, part: f64, order: &mut [u32], rng: &mut Rng) -> BitString {
    let mut string = string.clone();
    for i in 0..(part * f64::from(LENGTH)) as usize {
        order.swap(i, i + rng.below((order.len() - i) as u64) as usize);
        string.flip(order[i] as usize);
    }
    string
}

/// Plans, builds and measures the planned scan and the filter of bands beside it, each rate to 4 standard errors.
fn check(items: u64, near: f64, max_false_positive: f64, most_bits: f64) {
    let metric = Metric::Hamming { bits: LENGTH };
    let bits = |part: f64| (part * f64::from(LENGTH)).floor();
    let request = Request::new(metric, bits(near))
        .far(bits(0.4))
        .capacity(items)
        .errors(0.01, max_false_positive)
        .when_full(nearset::spec::WhenFull::Refuse);
    let plan = request.plan_filter().unwrap();
    println!("{plan}");
    assert_eq!((plan.structure, plan.bits_per_item), (Structure::SketchScan, 64.0));
    let bands = plan.runners_up.iter().find(|runner| runner.structure == Structure::Threshold).unwrap();
    assert!(bands.bits_per_item.unwrap() <= most_bits, "{:?} bits per item", bands.bits_per_item);
    let bands = bands.spec.as_ref().and_then(|spec| spec.near()).unwrap().clone();
    let scan = *plan.spec.exact().unwrap();
    for spec in [FilterSpec::from(bands), FilterSpec::from(scan)] {
        measure(&spec, items, near, max_false_positive);
    }
}

fn measure(spec: &FilterSpec, items: u64, near: f64, max_false_positive: f64) {
    let mut rng = Rng::new(nearset::Seed::new(1));
    let strings: Vec<BitString> = (0..items).map(|_| random(&mut rng)).collect();
    let mut filter = Filter::new(spec).unwrap();
    let mut room = Hashed::default();
    filter.insert_all(&strings).unwrap();
    let queries = 4_000;
    let mut order: Vec<u32> = (0..LENGTH).collect();
    let mut rate = |part: f64, expected: bool| {
        let wrong = (0..queries).filter(|_| {
            let stored = &strings[rng.below(items) as usize];
            let query = flipped(stored, part, &mut order, &mut rng);
            filter.contains_near(&query, &mut room).unwrap() != expected
        });
        wrong.count() as f64 / f64::from(queries)
    };
    let (missed, accepted) = (rate(near, true), rate(0.4, false));
    println!("measured: missed {missed}, accepted {accepted}");
    let most = |promise: f64| promise + 4.0 * (promise * (1.0 - promise) / f64::from(queries)).sqrt();
    assert!(missed <= most(0.01) && accepted <= most(max_false_positive), "missed {missed}, accepted {accepted}");
}

#[test]
fn a_thousand_strings_take_300_bits_each_at_a_tenth_flipped() {
    check(1_000, 0.1, 0.012, 300.0);
}

#[test]
fn ten_thousand_strings_take_130_bits_each_at_a_twentieth_flipped() {
    check(10_000, 0.05, 0.012, 130.0);
}
