//! Opens a file and does everything that can be done with it, holding each step against what its spec states.

use std::time::{Duration, Instant};

use nearset::{
    BitString, Check, DecodeError, Distance, Family, Filter, FilterSpec, IndexSpec, Rng, Seed,
    family::{Form, Hashed, WorkBound},
    index::IndexError,
};

use crate::{any::Any, samples::Item};

/// The time that any step may take, beside what the spec states.
pub const ALLOWED: Duration = Duration::from_millis(50);

/// The time that a nominal operation may take: the bound is for an idle core and optimised code.
pub const NANOSECONDS_PER_OPERATION: u64 = 4;

/// Items with more elements than this are not made, to keep a run short: their work is in proportion to their length.
const MOST_ELEMENTS: u32 = 1 << 20;

/// How long a step took.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub name: &'static str,
    pub took: Duration,
    pub allowed: Duration,
}

/// Returns the time that this thread has spent on a core, so that other programs do not count, or wall time if the
/// system does not report it.
fn now(started: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_core = told.and_then(|told| told.split(' ').next()?.parse().ok());
    on_core.map_or_else(|| started.elapsed(), Duration::from_nanos)
}

struct Watch {
    started: Instant,
    steps: Vec<Step>,
}

impl Watch {
    fn step<T>(&mut self, name: &'static str, operations: u64, run: impl FnOnce() -> T) -> T {
        let before = now(self.started);
        let result = run();
        let took = now(self.started).saturating_sub(before);
        let stated = Duration::from_nanos(operations.saturating_mul(NANOSECONDS_PER_OPERATION));
        self.steps.push(Step { name, took, allowed: ALLOWED.saturating_add(stated) });
        result
    }
}

/// Makes an item that suits a family, or `None` if that would be too long.
fn item_of(family: &Family, rng: &mut Rng) -> Option<Item> {
    let vector = |dimension: u32, rng: &mut Rng| {
        (dimension <= MOST_ELEMENTS).then(|| Item::Vector((0..dimension).map(|_| rng.gaussian() as f32).collect()))
    };
    let form = match (family, family.metric()) {
        (_, Some(metric)) => metric.form(),
        (Family::Minutiae(family), None) => Form::Bits(family.squares),
        (family, None) => panic!("{family:?} is not covered here: add its items"),
    };
    match form {
        Form::Bits(length) => bits(length, rng),
        Form::Symbols(length) => {
            (length <= MOST_ELEMENTS).then(|| Item::Symbols((0..length).map(|_| rng.below(20) as u32).collect()))
        }
        Form::Set(_) if rng.unit() < 0.5 => Some(Item::Set((0..rng.below(500)).map(|_| rng.next_u64()).collect())),
        Form::Weighted(_) if rng.unit() < 0.5 => {
            Some(Item::Weighted((0..1 + rng.below(50)).map(|element| (element, 0.01 + rng.unit())).collect()))
        }
        Form::Set(_) | Form::Weighted(_) => {
            let words: Vec<String> = (0..rng.below(60)).map(|_| format!("word{}", rng.below(500))).collect();
            Some(Item::Text(words.join(" ")))
        }
        Form::Vector(dimension) => vector(dimension, rng),
        other => panic!("{other:?} is not covered here: add its items"),
    }
}

fn bits(length: u32, rng: &mut Rng) -> Option<Item> {
    if length > MOST_ELEMENTS {
        return None;
    }
    let bytes: Vec<u8> = (0..length.div_ceil(8)).map(|_| rng.next_u64() as u8).collect();
    let longer = BitString::from_bytes(&bytes);
    let mut item = BitString::zeros(length as usize);
    (0..length as usize).for_each(|position| item.set(position, longer.bits().bit(position)));
    Some(Item::Bits(item))
}

fn elements(item: &Item) -> u64 {
    match item {
        Item::Set(set) => set.len() as u64,
        Item::Weighted(set) => set.len() as u64,
        Item::Text(text) => text.len() as u64,
        // These have a fixed length, which the bound includes.
        Item::Bits(_) | Item::Symbols(_) | Item::Vector(_) => 0,
    }
}

fn family_of(spec: &FilterSpec) -> Result<Family, u32> {
    match (spec.near(), spec.exact()) {
        (Some(spec), _) => Ok(spec.family),
        (_, Some(spec)) => Err(spec.bits),
        _ => panic!("{spec:?} is not covered here: add its items"),
    }
}

impl Any<'_> {
    fn work_bound(&self) -> WorkBound {
        match self {
            Any::Bloom(_) => WorkBound::default(),
            Any::Index(index) => index.spec().work_bound(),
            Any::Filter(filter) => {
                let mut bound = filter.spec().work_bound();
                bound.look_up = bound.look_up.saturating_mul(filter.generations().len() as u64);
                bound
            }
            Any::Description(description) => description.work_bound(),
        }
    }

    fn item(&self, rng: &mut Rng) -> Option<Item> {
        let of = |family: Result<Family, u32>, rng: &mut Rng| match family {
            Ok(family) => item_of(&family, rng),
            Err(length) => bits(length, rng),
        };
        match self {
            Any::Bloom(_) => Some(Item::Text(format!("text {}", rng.below(100)))),
            Any::Index(index) => match index.spec() {
                IndexSpec::Hamming(spec) => bits(spec.bits, rng),
                IndexSpec::Lsh(spec) => item_of(&spec.family, rng),
                other => panic!("{other:?} is not covered here: add its items"),
            },
            Any::Filter(filter) => of(family_of(&filter.spec()), rng),
            Any::Description(description) => of(family_of(description), rng),
        }
    }

    fn insert_if_room(&mut self, item: &Item) {
        match self {
            Any::Filter(filter) => drop(filter.insert(item.view(), &mut Hashed::default())),
            Any::Index(index) => drop(index.insert(item.view())),
            other => drop(other.insert(item)),
        }
    }

    /// Returns a point of the curve that `nearset info` shows.
    fn acceptance(&self, at: Distance) -> f64 {
        match self {
            Any::Filter(filter) => filter.acceptance_probability(at),
            Any::Bloom(_) | Any::Index(_) | Any::Description(_) => 0.0,
        }
    }

    fn merge(&mut self, other: &Any<'_>) {
        let merged = match (self, other) {
            (Any::Bloom(ours), Any::Bloom(theirs)) => ours.merge(theirs).is_ok(),
            // Ids may run out, or be too many for names.
            (Any::Index(ours), Any::Index(theirs)) => {
                let merged = ours.merge(theirs);
                matches!(merged, Ok(_) | Err(IndexError::Full | IndexError::SparseNames { .. }))
            }
            // Several generations are not merged, and a filter that refuses may be full.
            (Any::Filter(ours), Any::Filter(theirs)) => ours.merge(theirs).is_ok() || ours.spec().terms().is_some(),
            _ => true,
        };
        assert!(merged, "a filter must merge with itself");
    }
}

/// Opens a file with the usual limit, and if it opens, queries, inserts, merges, describes and saves it.
///
/// # Errors
/// Why it was refused, which is an equally good outcome.
pub fn drive(bytes: &[u8], seed: u64) -> (Vec<Step>, Result<(), DecodeError>) {
    let mut watch = Watch { started: Instant::now(), steps: Vec::new() };
    let outcome = drive_watched(bytes, seed, &mut watch);
    (watch.steps, outcome)
}

fn drive_watched(bytes: &[u8], seed: u64, watch: &mut Watch) -> Result<(), DecodeError> {
    let mut rng = Rng::new(Seed::new(seed));
    let _ = watch.step("open, tables unchecked", 0, || Any::open(bytes, Check::HeaderOnly).map(drop));
    let mut opened = watch.step("open", 0, || Any::open(bytes, Check::Everything))?;
    let bound = opened.work_bound();
    // Functions are drawn at the first query, which may come from describing an exact filter.
    for value in [0.0, 0.3, 2.0, 40.0] {
        let at = Distance::new(value).expect("a distance");
        let chance = watch.step("describe", bound.draw, || opened.acceptance(at));
        assert!((-1e-9..=1.0 + 1e-9).contains(&chance), "{chance} is not a probability");
    }
    let saved = watch.step("save", 0, || opened.encode());
    if let Any::Description(description) = &opened {
        if description.bytes() > 1 << 22 {
            return Ok(());
        }
        let Ok(made) = watch.step("make", 0, || Filter::new(description)) else { return Ok(()) };
        opened = Any::Filter(made);
    }
    for _ in 0..2 {
        let Some(item) = opened.item(&mut rng) else { return Ok(()) };
        let elements = bound.element.saturating_mul(elements(&item));
        let operations = [bound.draw, bound.hash, bound.look_up, elements].into_iter().fold(0, u64::saturating_add);
        let found = watch.step("query", operations, || opened.contains(&item));
        // Insertion queries too, and a full generation makes another one of its size.
        if found.is_ok() && opened.may_insert() {
            watch.step("insert", operations.saturating_mul(2), || opened.insert_if_room(&item));
        }
    }
    let again = Any::open(&saved, Check::Everything).unwrap_or_else(|error| panic!("saved, but refused: {error}"));
    watch.step("merge", 0, || opened.merge(&again));
    watch.step("save again", 0, || opened.encode());
    Ok(())
}

impl Any<'_> {
    /// Returns whether an item can be inserted without being refused for its size.
    fn may_insert(&self) -> bool {
        match self {
            Any::Filter(filter) => filter.room_needed(1) < 1 << 22,
            _ => true,
        }
    }
}
