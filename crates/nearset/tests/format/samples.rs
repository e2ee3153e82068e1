//! Small files of every kind, family, table and construction.

use std::{fmt, str::FromStr};

use nearset::{
    BitString, BloomFilter, Distance, ExactSpec, Family, Filter, FilterSpec, HammingSpec, Index, Layout, LshSpec, Rng,
    Seed, Shingling, Spec, Symbols, Table,
    family::{
        BitSampling, CrossPolytope, DiceMinHash, Hyperplane, MinHash, Minutiae, PStable, Sampling, Stable, Symbol,
        SymbolSampling, WeightedMinHash,
    },
    spec::{Construction, Probing, Rule, Step, Terms, Verification, WhenFull},
};

use crate::any::Any;

/// An item as written in the manifest: `kind:value`.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Zeros and ones, position 0 first.
    Bits(BitString),
    /// Numbers.
    Symbols(Vec<u32>),
    /// 64-bit numbers in hexadecimal.
    Set(Vec<u64>),
    /// `element=weight`.
    Weighted(Vec<(u64, f64)>),
    Vector(Vec<f32>),
    Text(String),
}

impl Item {
    pub fn view(&self) -> nearset::Item<'_> {
        match self {
            Item::Bits(bits) => bits.into(),
            Item::Symbols(symbols) => Symbols::Wide(symbols).into(),
            Item::Set(set) => nearset::Item::Set(set),
            Item::Weighted(set) => nearset::Item::Weighted(set),
            Item::Vector(vector) => nearset::Item::Vector(vector),
            Item::Text(text) => nearset::Item::Text(text),
        }
    }

    /// Returns the bytes of a text, which a Bloom filter takes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Item::Text(text) => text.as_bytes(),
            other => panic!("{other} is not a text"),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T>(values: &[T], each: impl Fn(&T) -> String) -> String {
            values.iter().map(each).collect::<Vec<_>>().join(",")
        }
        match self {
            Item::Bits(bits) => {
                let bits = bits.bits();
                f.write_str("bits:")?;
                (0..bits.len()).try_for_each(|position| write!(f, "{}", u8::from(bits.bit(position))))
            }
            Item::Symbols(symbols) => write!(f, "symbols:{}", list(symbols, u32::to_string)),
            Item::Set(set) => write!(f, "set:{}", list(set, |element| format!("{element:x}"))),
            Item::Weighted(set) => {
                write!(f, "weighted:{}", list(set, |(element, weight)| format!("{element:x}={weight}")))
            }
            Item::Vector(vector) => write!(f, "vector:{}", list(vector, f32::to_string)),
            Item::Text(text) => write!(f, "text:{text}"),
        }
    }
}

impl FromStr for Item {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        fn list<T>(values: &str, each: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
            values.split(',').map(|value| each(value).ok_or_else(|| format!("{value:?} is no value"))).collect()
        }
        let hex = |value: &str| u64::from_str_radix(value, 16).ok();
        let (kind, value) = text.split_once(':').ok_or_else(|| format!("{text:?} has no kind"))?;
        Ok(match kind {
            "bits" => {
                let mut bits = BitString::zeros(value.len());
                value.chars().enumerate().for_each(|(position, digit)| bits.set(position, digit == '1'));
                Item::Bits(bits)
            }
            "symbols" => Item::Symbols(list(value, |value| value.parse().ok())?),
            "set" => Item::Set(list(value, hex)?),
            "weighted" => Item::Weighted(list(value, |value| {
                let (element, weight) = value.split_once('=')?;
                Some((hex(element)?, weight.parse().ok()?))
            })?),
            "vector" => Item::Vector(list(value, |value| value.parse().ok())?),
            "text" => Item::Text(value.into()),
            other => return Err(format!("{other:?} is no kind of item")),
        })
    }
}

pub struct Sample {
    pub name: &'static str,
    pub words: String,
    pub items: Vec<Item>,
    pub queries: Vec<Item>,
    empty: fn() -> Any<'static>,
}

impl Sample {
    pub fn filter(&self) -> Any<'static> {
        let mut filter = (self.empty)();
        for item in &self.items {
            filter.insert(item).unwrap_or_else(|error| panic!("{}: {item}: {error}", self.name));
        }
        filter
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.filter().encode()
    }
}

fn seed() -> Seed {
    Seed::new(42)
}

fn near(spec: Result<Spec, nearset::spec::SpecError>) -> Any<'static> {
    let filter = spec.and_then(|spec| Filter::new(&spec.into()));
    Any::Filter(filter.expect("samples have valid specs"))
}

fn plain(family: impl Into<Family>, rows: u32, bands: u32, threshold: u32, table: Table) -> Any<'static> {
    near(Spec::new(family, Layout::new(rows, bands), threshold, table, seed()))
}

/// A filter that needs all bands and verifies, with or without probing.
fn verified(family: impl Into<Family>, rows: u32, bands: u32, probing: Option<Probing>) -> Any<'static> {
    let spec = Spec::new(family, Layout::new(rows, bands), bands, Table::Bits(900), seed());
    near(spec.map(|mut spec| {
        (spec.verification, spec.probing) = (Some(Verification { lines: 3, hashes: 8 }), probing);
        spec
    }))
}

fn exact(spec: Result<ExactSpec, nearset::spec::SpecError>) -> Any<'static> {
    Any::Filter(spec.and_then(|spec| Filter::new(&spec.into())).expect("samples have valid specs"))
}

fn exact_of(bits: u32, radius: u32, construction: Construction) -> Any<'static> {
    exact(ExactSpec::new(bits, radius, construction, seed()))
}

/// An index that already holds items, some of them named and one removed, so that its tables are not empty.
fn hamming(bits: u32, radius: u32, items: u32) -> Any<'static> {
    let mut rng = Rng::new(Seed::new(8));
    let mut index = Index::new(HammingSpec::new(bits, radius, seed())).expect("samples have valid specs");
    for id in 0..items {
        let mut item = BitString::zeros(bits as usize);
        (0..bits as usize).for_each(|position| item.set(position, rng.unit() < 0.5));
        let name = [1, 4, 5].contains(&id).then(|| format!("item {id}, ü"));
        index.push(&item, name.as_deref()).expect("of the right length");
    }
    index.compact();
    index.remove(items / 2);
    Any::Index(index)
}

fn generations(spec: FilterSpec, capacity: u64, when_full: WhenFull) -> Any<'static> {
    let terms = Terms::new(Distance::from_count(3), Distance::from_count(30), 0.02, 0.001, capacity, when_full);
    let spec = spec.on_terms(terms).expect("samples have valid terms");
    Any::Filter(Filter::new(&spec).expect("samples have valid specs"))
}

/// A filter of texts as the first version planned it: 22 % full, with 0.1 between near and far.
fn texts(near: f64, rows: u32, bands: u32, bits: u64, capacity: u64, when_full: WhenFull) -> FilterSpec {
    let rule = Rule::promise(bands, libm::pow(near, rows.into()), 0.55).expect("a valid rule");
    let family = MinHash { shingling: Shingling::Words(5) };
    let spec = Spec::by_rule(family, rows, rule, Table::Bits(bits), seed());
    let distance = |similarity: f64| Distance::new(1.0 - similarity).expect("a distance");
    let terms = Terms::new(distance(near), distance(near - 0.1), 0.55, 0.02, capacity, when_full);
    FilterSpec::from(spec).on_terms(terms).expect("a valid filter")
}

fn index(spec: LshSpec) -> Any<'static> {
    Any::Index(Index::new(spec).expect("samples have valid specs"))
}

fn index_of(family: impl Into<Family>, rows: u32, bands: u32) -> LshSpec {
    LshSpec::new(family, Layout::new(rows, bands), seed()).expect("samples have valid specs")
}

/// A maker of items, and how they are changed slightly.
struct Makes {
    new: fn(&mut Rng) -> Item,
    change: fn(&mut Item, &mut Rng),
}

fn bits<const LENGTH: usize>() -> Makes {
    Makes {
        new: |rng| {
            let mut bits = BitString::zeros(LENGTH);
            (0..LENGTH).for_each(|position| bits.set(position, rng.unit() < 0.5));
            Item::Bits(bits)
        },
        change: |item, rng| {
            let Item::Bits(bits) = item else { unreachable!() };
            bits.flip(rng.below(LENGTH as u64) as usize);
        },
    }
}

const SYMBOLS: Makes = Makes {
    new: |rng| Item::Symbols((0..40).map(|_| rng.below(20) as u32).collect()),
    change: |item, rng| {
        let Item::Symbols(symbols) = item else { unreachable!() };
        symbols[rng.below(40) as usize] += 20;
    },
};

const SETS: Makes = Makes {
    new: |rng| Item::Set((0..12).map(|_| rng.next_u64()).collect()),
    change: |item, rng| {
        let Item::Set(set) = item else { unreachable!() };
        set[rng.below(12) as usize] = rng.next_u64();
    },
};

const WEIGHTED: Makes = Makes {
    new: |rng| Item::Weighted((0..8).map(|_| (rng.next_u64(), 0.25 * (1 + rng.below(20)) as f64)).collect()),
    change: |item, rng| {
        let Item::Weighted(set) = item else { unreachable!() };
        set[rng.below(8) as usize].1 += 0.25;
    },
};

/// Halves and quarters, so that their decimal form is exact.
const VECTORS: Makes = Makes {
    new: |rng| Item::Vector((0..16).map(|_| rng.below(4_000) as f32 / 4.0 - 500.0).collect()),
    change: |item, rng| {
        let Item::Vector(vector) = item else { unreachable!() };
        vector[rng.below(16) as usize] += 0.25;
    },
};

const WORDS: [&str; 24] = [
    "rain", "over", "the", "harbour", "kept", "boats", "at", "their", "ropes", "until", "noon", "when", "wind",
    "turned", "and", "gulls", "came", "back", "to", "quiet", "water", "beside", "old", "walls",
];

const TEXTS: Makes = Makes {
    new: |rng| {
        let words: Vec<&str> = (0..30).map(|_| WORDS[rng.below(24) as usize]).collect();
        Item::Text(words.join(" "))
    },
    change: |item, rng| {
        let Item::Text(text) = item else { unreachable!() };
        text.push(' ');
        text.push_str(WORDS[rng.below(24) as usize]);
    },
};

const SEQUENCES: Makes = Makes {
    new: |rng| Item::Text((0..60).map(|_| BASES[rng.below(4) as usize]).collect()),
    change: |item, rng| {
        let Item::Text(text) = item else { unreachable!() };
        text.push(BASES[rng.below(4) as usize]);
    },
};

const BASES: [char; 4] = ['A', 'C', 'G', 'T'];

/// Minutiae: 20 of 64 squares are occupied.
const PRINTS: Makes = Makes {
    new: |rng| {
        let mut bits = BitString::zeros(64);
        rng.distinct(20, 64).into_iter().for_each(|position| bits.set(position as usize, true));
        Item::Bits(bits)
    },
    change: |item, rng| {
        let Item::Bits(bits) = item else { unreachable!() };
        bits.flip(rng.below(64) as usize);
    },
};

const ONCE: Option<Probing> = Some(Probing { bands: 1, reach: 1 });
const LINES: Table = Table::Lines { lines: 2, hashes: 6 };

/// Returns every sample, in the order of the manifest; new ones may be added anywhere.
pub fn all() -> Vec<Sample> {
    type Named = (&'static str, Makes, fn() -> Any<'static>);
    let samples: Vec<Named> = vec![
        ("bloom", TEXTS, || Any::Bloom(BloomFilter::new(220, 0.005, seed()).expect("a valid filter"))),
        ("near-bit-sampling", bits::<100>(), || {
            let family = BitSampling { bits: 100, sampling: Sampling::Uniform };
            plain(family, 8, 12, 5, Table::Bits(100))
        }),
        ("near-bit-sampling-balanced-direct", bits::<96>(), || {
            near(Spec::balanced(96, 2, Layout::new(9, 10), Table::Direct, seed()))
        }),
        ("near-symbol-sampling", SYMBOLS, || {
            let (symbol, sampling) = (Symbol::Whole, Sampling::Uniform);
            plain(SymbolSampling { length: 40, symbol, sampling }, 4, 8, 5, Table::Bits(64))
        }),
        ("near-symbol-sampling-one-bit", SYMBOLS, || {
            let (symbol, sampling) = (Symbol::OneBit, Sampling::Balanced);
            plain(SymbolSampling { length: 40, symbol, sampling }, 6, 8, 5, Table::Bits(64))
        }),
        ("near-minutiae", PRINTS, || plain(Minutiae { squares: 64, occupied: 20 }, 1, 40, 2, Table::Bits(64))),
        ("near-minhash-words", TEXTS, || {
            near(Spec::banded_minhash(Shingling::Words(2), Layout::new(2, 8), 20, 0.001, seed()))
        }),
        ("near-minhash-characters-promise", TEXTS, || {
            let family = MinHash { shingling: Shingling::Chars(4) };
            let rule = Rule::promise(24, 0.5, 0.02).expect("a valid rule");
            let (rows, table) = (2, Table::Bits(60));
            near(Ok(Spec::by_rule(family, rows, rule, table, seed())))
        }),
        ("near-minhash-sets", SETS, || plain(MinHash { shingling: Shingling::Bytes(5) }, 2, 8, 3, LINES)),
        ("near-minhash-code", TEXTS, || plain(MinHash { shingling: Shingling::Code(2) }, 2, 8, 3, LINES)),
        ("near-minhash-kmers", SEQUENCES, || plain(MinHash { shingling: Shingling::Kmers(7) }, 2, 8, 3, LINES)),
        ("near-dice", TEXTS, || plain(DiceMinHash { shingling: Shingling::Words(2) }, 1, 12, 3, Table::Bits(90))),
        ("near-weighted-minhash", WEIGHTED, || {
            plain(WeightedMinHash { shingling: Shingling::Words(1) }, 2, 8, 3, Table::Bits(100))
        }),
        ("near-hyperplane-verified", VECTORS, || verified(Hyperplane { dimension: 16 }, 6, 3, None)),
        ("near-hyperplane-probed", VECTORS, || {
            let mut spec = Spec::new(Hyperplane { dimension: 16 }, Layout::new(8, 4), 3, LINES, seed()).expect("valid");
            spec.probing = ONCE;
            near(Ok(spec))
        }),
        ("near-cross-polytope", VECTORS, || plain(CrossPolytope { dimension: 16 }, 1, 6, 3, Table::Bits(80))),
        ("near-gaussian-verified-probed", VECTORS, || {
            verified(PStable { dimension: 16, width: 4.0, stable: Stable::Gaussian }, 3, 4, ONCE)
        }),
        ("near-cauchy", VECTORS, || {
            plain(PStable { dimension: 16, width: 8.0, stable: Stable::Cauchy }, 2, 6, 4, Table::Bits(80))
        }),
        ("near-cascade", bits::<100>(), || {
            let family = BitSampling { bits: 100, sampling: Sampling::Uniform };
            let steps = vec![Step::And(2), Step::Or(3), Step::AtLeast { of: 3, need: 2 }];
            near(Rule::cascade(steps).map(|rule| Spec::by_rule(family, 6, rule, Table::Bits(100), seed())))
        }),
        ("exact-pigeonhole", bits::<100>(), || exact(ExactSpec::pigeonhole(100, 5, 3, 8, 1e-3, seed()))),
        ("exact-pigeonhole-bits", bits::<64>(), || {
            exact_of(64, 3, Construction::Pigeonhole { blocks: 4, table: Table::Bits(3_000) })
        }),
        ("exact-pigeonhole-direct", bits::<64>(), || {
            exact_of(64, 7, Construction::Pigeonhole { blocks: 8, table: Table::Direct })
        }),
        ("exact-covering", bits::<128>(), || exact_of(128, 3, Construction::Covering { table: LINES })),
        ("exact-folded-scan", bits::<256>(), || {
            exact(ExactSpec::new(256, 12, Construction::FoldedScan { width: 64 }, seed()))
        }),
        ("exact-sampled-scan", bits::<256>(), || {
            exact(ExactSpec::new(256, 12, Construction::SampledScan { width: 128, within: 20 }, seed()))
        }),
        ("exact-whole-scan", bits::<100>(), || {
            exact(ExactSpec::new(100, 10, Construction::FoldedScan { width: 128 }, seed()))
        }),
        ("exact-empty-scan", bits::<100>(), || {
            exact(ExactSpec::new(100, 10, Construction::FoldedScan { width: 128 }, seed()))
        }),
        ("hamming-empty", bits::<100>(), || hamming(100, 10, 0)),
        ("hamming-scan", bits::<256>(), || hamming(256, 31, 30)),
        ("hamming-folded-blocks", bits::<64>(), || hamming(64, 0, 400)),
        ("hamming-searched-blocks", bits::<16>(), || hamming(16, 1, 800)),
        ("lsh-bit-sampling", bits::<100>(), || index(index_of(BitSampling::new(100), 8, 4))),
        ("lsh-bit-sampling-removed", bits::<64>(), || {
            let mut index = Index::new(index_of(BitSampling::new(64), 6, 3)).expect("a valid spec");
            for removed in 0..3 {
                index.insert(&BitString::zeros(64)).expect("an item of its length");
                assert!(index.remove(removed));
            }
            Any::Index(index)
        }),
        ("lsh-named", bits::<64>(), || {
            let mut index = Index::new(index_of(BitSampling::new(64), 6, 3)).expect("a valid spec");
            for name in ["zéro", "", "two"] {
                index.push(&BitString::zeros(64), Some(name)).expect("an item of its length");
            }
            Any::Index(index)
        }),
        ("lsh-symbol-sampling", SYMBOLS, || index(index_of(SymbolSampling::new(40), 4, 3))),
        ("lsh-minhash-words", TEXTS, || index(index_of(MinHash { shingling: Shingling::Words(2) }, 2, 5))),
        ("lsh-weighted-minhash", WEIGHTED, || {
            index(index_of(WeightedMinHash { shingling: Shingling::Words(1) }, 2, 4))
        }),
        ("lsh-hyperplane-probed", VECTORS, || {
            let mut spec = index_of(Hyperplane { dimension: 16 }, 9, 2);
            spec.probes = 7;
            index(spec)
        }),
        ("lsh-gaussian-without-items", VECTORS, || {
            let family = PStable { dimension: 16, width: 4.0, stable: Stable::Gaussian };
            let mut spec = index_of(family, 3, 4);
            (spec.probes, spec.keeps_items) = (3, false);
            index(spec)
        }),
        ("generations-grown-emptier", bits::<100>(), || {
            let spec = Spec::new(BitSampling::new(100), Layout::new(8, 12), 5, Table::Bits(100), seed());
            generations(FilterSpec::from(spec.expect("a valid spec")), 2, WhenFull::Grow)
        }),
        ("generations-grown-emptier-exact", bits::<64>(), || {
            let construction = Construction::Pigeonhole { blocks: 2, table: Table::Lines { lines: 1, hashes: 4 } };
            let spec = ExactSpec::new(64, 3, construction, seed()).expect("a valid spec");
            generations(FilterSpec::from(spec), 1, WhenFull::Grow)
        }),
        ("generations-window", TEXTS, || {
            let described = texts(0.8, 8, 160, 9, 2, WhenFull::Forget { generations: 2 });
            Any::Filter(Filter::new(&described).expect("it needs little memory"))
        }),
        ("generations-scan", bits::<100>(), || {
            let spec = ExactSpec::new(100, 4, Construction::FoldedScan { width: 64 }, seed()).expect("a valid spec");
            generations(FilterSpec::from(spec), 5, WhenFull::Refuse)
        }),
        ("generations-empty", VECTORS, || {
            let spec = Spec::new(Hyperplane { dimension: 16 }, Layout::new(9, 4), 4, Table::Bits(40), seed());
            let mut spec = spec.expect("a valid spec");
            (spec.verification, spec.probing) = (Some(Verification { lines: 1, hashes: 8 }), ONCE);
            generations(FilterSpec::from(spec), 9, WhenFull::Forget { generations: 1024 })
        }),
        ("description-empty-text", TEXTS, || Any::Description(texts(0.7, 5, 188, 4_220_278, 1 << 20, WhenFull::Grow))),
        ("description-empty-exact", bits::<64>(), || {
            let spec = ExactSpec::pigeonhole(64, 3, 2, 1 << 30, 1e-6, seed()).expect("a valid spec");
            Any::Description(spec.into())
        }),
        ("lsh-empty", TEXTS, || index(index_of(MinHash { shingling: Shingling::Chars(5) }, 3, 20))),
    ];
    samples.into_iter().map(|(name, makes, empty)| sample(name, &makes, empty)).collect()
}

/// Formats a spec for people who read the manifest.
fn described(spec: &FilterSpec) -> String {
    let first = match (spec.near(), spec.exact()) {
        (Some(spec), _) => format!("{spec:?}"),
        (_, spec) => format!("{:?}", spec.expect("either kind")),
    };
    spec.terms().map_or_else(|| first.clone(), |terms| format!("{first} on {terms:?}"))
}

/// Makes a sample with five items, and as queries each of them, a slight change of each, and five others.
fn sample(name: &'static str, makes: &Makes, empty: fn() -> Any<'static>) -> Sample {
    let mut rng = Rng::new(Seed::new(7).derive(name, 0));
    let items: Vec<Item> = (0..5).map(|_| (makes.new)(&mut rng)).collect();
    let mut queries = items.clone();
    queries.extend(items.iter().map(|item| {
        let mut changed = item.clone();
        (makes.change)(&mut changed, &mut rng);
        changed
    }));
    queries.extend((0..5).map(|_| (makes.new)(&mut rng)));
    let items = if name.contains("empty") { Vec::new() } else { items };
    let words = match empty() {
        Any::Bloom(filter) => format!("{} bits, seed {}", filter.num_bits(), filter.seed()),
        Any::Index(index) => format!("{:?}, {} items drawn before", index.spec(), index.len()),
        Any::Filter(filter) => described(&filter.spec()),
        Any::Description(spec) => described(&spec),
    };
    Sample { name, words, items, queries, empty }
}
