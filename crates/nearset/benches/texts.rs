//! How slow is a text? The goal: hashing it takes at most four times as long as hashing prose of the same number of
//! bytes cut in the same way, whether 1 MB or 16. What misses it, of 495 pairs of text and task, and why, by profiles:
//! - Random words of one letter, as sets and bags (4 to 6 times): they have more than three times as many distinct
//!   shingles per byte as prose, and sorting them, in bags sketching them, takes most of the time.
//! - One letter of each script, in random order (5 times), and a letter under a megabyte of random marks (4.3 times): a
//!   third of the time waits at the branch on what a character is, which can't be predicted.
//! - One word of 16 MB (5 to 11 times): its form needs more memory than a thread keeps from text to text, and copying it
//!   as it grows and touching new memory take longer than computing it.
//!
//! Times are the least CPU times of a few series of runs, one thread, native dispatch: MinHash keys (992 slots),
//! weighted MinHash keys (as many), and the sorted set that exact comparisons take. The worst come first.
//!
//! `cargo bench --bench texts`, or for some of the texts and tasks:
//! `cargo bench --bench texts -- Hangul "keys, words"`

#[path = "corpus/awkward.rs"]
mod awkward;

use std::{
    cell::RefCell,
    hint::black_box,
    sync::LazyLock,
    time::{Duration, Instant},
};

use nearset::{
    Family, Item, Layout, Seed, Shingler, Shingling,
    family::{Hashed, MinHash, WeightedMinHash},
    item::SortedSet,
    spec::Hasher,
};

const BYTES: usize = 1_000_000;
const LONGER: usize = 16;
const SERIES: usize = 3;
const MOST_TIMES_PROSE: f64 = 4.0;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (wanted, wanted_work) = (arguments.next(), arguments.next().unwrap_or_default());
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
    let mut texts = awkward::awkward(BYTES);
    texts.retain(|(name, _)| is_wanted(name));
    let prose = awkward::prose(BYTES);

    let mut rows = Vec::new();
    for work in Work::all().into_iter().filter(|work| work.name.starts_with(&wanted_work)) {
        let base = work.nanoseconds_per_byte(&prose, SERIES);
        println!("prose, {}: {base:.1} ns per byte", work.name);
        rows.extend(texts.iter().map(|(name, text)| {
            // Measured beside each text, so that both are disturbed or neither.
            let base = work.nanoseconds_per_byte(&prose, SERIES);
            let time = work.nanoseconds_per_byte(text, SERIES);
            Row { text: name, work: work.name.clone(), time, times_prose: time / base, times_long_prose: 0.0 }
        }));
    }
    let prose = awkward::prose(LONGER * BYTES);
    let texts = awkward::awkward(LONGER * BYTES);
    for work in Work::all().into_iter().filter(|work| work.name.starts_with(&wanted_work)) {
        let base = work.nanoseconds_per_byte(&prose, 2);
        for row in rows.iter_mut().filter(|row| row.work == work.name) {
            let (_, text) = texts.iter().find(|(name, _)| *name == row.text).expect("every row names one of these");
            row.times_long_prose = work.nanoseconds_per_byte(text, 1) / base;
        }
    }
    rows.sort_by(|a, b| b.times_prose.total_cmp(&a.times_prose));
    println!("{:<40} {:<20} {:>8} {:>8} {:>8}", "text", "work", "ns/byte", "x prose", "16 MB");
    for row in &rows {
        let Row { text, work, time, times_prose, times_long_prose } = row;
        println!("{text:<40} {work:<20} {time:8.2} {times_prose:8.2} {times_long_prose:8.2}");
    }
    let is_slow = |row: &&Row| row.times_prose.max(row.times_long_prose) > MOST_TIMES_PROSE;
    let slow = rows.iter().filter(is_slow).count();
    println!("slower than {MOST_TIMES_PROSE} times prose: {slow} of {} ({})", rows.len(), verdict(slow == 0));
}

fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}

struct Row {
    text: &'static str,
    work: String,
    time: f64,
    times_prose: f64,
    /// The same with 16 times as many bytes of both.
    times_long_prose: f64,
}

/// What is done to a text.
struct Work {
    name: String,
    run: Box<dyn Fn(&str)>,
}

thread_local! {
    /// Scratch space in which one text after the other is processed.
    static ROOM: RefCell<(Hashed, Vec<u64>)> = RefCell::default();
}

impl Work {
    fn all() -> Vec<Work> {
        let shinglings = [Shingling::Words(5), Shingling::Chars(9), Shingling::Bytes(13)];
        shinglings
            .into_iter()
            .flat_map(|shingling| [Self::keys(shingling), Self::bags(shingling), Self::sets(shingling)])
            .collect()
    }

    fn keys(shingling: Shingling) -> Work {
        Self::hashing(format!("keys, {shingling}"), Family::MinHash(MinHash { shingling }))
    }

    fn bags(shingling: Shingling) -> Work {
        Self::hashing(format!("bag keys, {shingling}"), Family::WeightedMinHash(WeightedMinHash { shingling }))
    }

    fn hashing(name: String, family: Family) -> Work {
        let functions = Hasher::new(family, Layout::new(8, 124), Seed::default()).expect("a layout with functions");
        Work { name, run: Box::new(move |text| hash(&functions, text)) }
    }

    fn sets(shingling: Shingling) -> Work {
        let shingler = Shingler::new(shingling, Seed::default()).expect("a fair length");
        let run = move |text: &str| {
            ROOM.with_borrow_mut(|(_, shingles)| {
                shingler.shingles(text, shingles);
                black_box(SortedSet::from(&shingles[..]));
            });
        };
        Work { name: format!("set, {shingling}"), run: Box::new(run) }
    }

    /// Returns the least CPU time of a few series of runs, which is the least disturbed by other programs.
    fn nanoseconds_per_byte(&self, text: &str, series: usize) -> f64 {
        let time = |_| {
            let start = cpu_time();
            for runs in 1.. {
                (self.run)(text);
                let time = cpu_time() - start;
                // Long, because the kernel counts in steps of a few milliseconds.
                if time.as_millis() >= 60 {
                    return time.as_secs_f64() / f64::from(runs);
                }
            }
            f64::INFINITY
        };
        (0..series).map(time).fold(f64::INFINITY, f64::min) * 1e9 / text.len() as f64
    }
}

/// Returns the CPU time of this thread where the kernel tells it, since other programs may stop this one at any time;
/// else the time.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|line| line.split(' ').next()?.parse().ok());
    spent.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn hash(functions: &Hasher, text: &str) {
    ROOM.with_borrow_mut(|(hashed, _)| {
        functions.hash(Item::Text(text), hashed).expect("texts have keys");
        black_box(&hashed.keys);
    });
}
