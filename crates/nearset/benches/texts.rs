//! How slow is a text? The goal, which not every text here keeps yet: hashing it takes at most four times as long as hashing prose of as many
//! bytes cut in the same way, and 16 MB of it at most 20 times as long as 1 MB. Rows that miss it say BROKEN.
//!
//! Times are CPU times of one core, native dispatch, over a tenth of a second or more: MinHash keys (992 slots), weighted MinHash keys (as many),
//! and the sorted set that exact comparisons take. Worst first; `growth` is the time of 16 MB against that of 1 MB.
//!
//! `cargo bench --bench texts`, or for some of the texts and without growth: `cargo bench --bench texts -- Hangul`

#[path = "corpus/awkward.rs"]
mod awkward;

use std::{
    cell::RefCell,
    fs,
    hint::black_box,
    sync::LazyLock,
    time::{Duration, Instant},
};

use nearset::{
    Family, Item, Layout, LshFamily, Seed, Shingler, Shingling,
    family::{Functions, Hashed, MinHash, WeightedMinHash},
    item::SortedSet,
};

const BYTES: usize = 1_000_000;
const LONGER: usize = 16;
const MOST_TIMES_PROSE: f64 = 4.0;
const MOST_GROWTH: f64 = 20.0;

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
    let mut texts = awkward::awkward(BYTES);
    texts.retain(|(name, _)| is_wanted(name));
    let prose = awkward::prose(BYTES);

    let mut rows = Vec::new();
    for work in Work::all() {
        let base = work.nanoseconds_per_byte(&prose);
        println!("prose, {}: {base:.1} ns per byte", work.name);
        rows.extend(texts.iter().map(|(name, text)| {
            let time = work.nanoseconds_per_byte(text);
            Row { text: name, work: work.name.clone(), time, times_prose: time / base, growth: None }
        }));
    }
    if wanted.is_none() {
        let prose = [("prose", awkward::prose(LONGER * BYTES))];
        for (name, text) in prose.into_iter().chain(awkward::awkward(LONGER * BYTES)) {
            for work in Work::all() {
                let growth = |time: f64| work.nanoseconds_per_byte(&text) / time * LONGER as f64;
                match rows.iter_mut().find(|row| row.text == name && row.work == work.name) {
                    Some(row) => row.growth = Some(growth(row.time)),
                    None => {
                        let time = work.nanoseconds_per_byte(&awkward::prose(BYTES));
                        let growth = Some(growth(time));
                        rows.push(Row { text: name, work: work.name.clone(), time, times_prose: 1.0, growth });
                    }
                }
            }
        }
    }
    rows.sort_by(|a, b| b.times_prose.total_cmp(&a.times_prose));
    println!("{:<40} {:<20} {:>8} {:>8} {:>8}", "text", "work", "ns/byte", "x prose", "growth");
    for row in &rows {
        let growth = row.growth.map_or(String::new(), |growth| format!("{growth:8.1}"));
        println!("{:<40} {:<20} {:8.2} {:8.2} {growth}", row.text, row.work, row.time, row.times_prose);
    }
    let slow = rows.iter().filter(|row| row.times_prose > MOST_TIMES_PROSE).count();
    println!("slower than {MOST_TIMES_PROSE} times prose: {slow} of {} ({})", rows.len(), verdict(slow == 0));
    let steep = rows.iter().filter(|row| row.growth.is_some_and(|growth| growth > MOST_GROWTH)).count();
    println!("growing by more than {MOST_GROWTH}: {steep} ({})", verdict(steep == 0));
}

fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}

struct Row {
    text: &'static str,
    work: String,
    time: f64,
    times_prose: f64,
    growth: Option<f64>,
}

/// What is done to a text.
struct Work {
    name: String,
    run: Box<dyn Fn(&str)>,
}

thread_local! {
    /// Room that one text after the other is worked out in.
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
        let functions = family.draw(Seed::default(), Layout::new(8, 124)).expect("a layout with functions");
        Work { name, run: Box::new(move |text| hash(&*functions, text)) }
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

    fn nanoseconds_per_byte(&self, text: &str) -> f64 {
        // Memory that is met for the first time takes time of its own.
        (self.run)(text);
        let begin = now();
        for runs in 0.. {
            let spent = now() - begin;
            if runs >= 1 && spent.as_millis() >= 100 {
                return spent.as_secs_f64() * 1e9 / f64::from(runs) / text.len() as f64;
            }
            (self.run)(text);
        }
        unreachable!("every run takes time")
    }
}

/// The CPU time of this thread, where the kernel tells it, so that other programs do not count; else time.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let spent = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|line| line.split(' ').next()?.parse().ok());
    spent.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn hash(functions: &dyn Functions, text: &str) {
    ROOM.with_borrow_mut(|(hashed, _)| {
        functions.hash(Item::Text(text), hashed).expect("texts have keys");
        black_box(&hashed.keys);
    });
}
