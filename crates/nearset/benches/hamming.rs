//! Exact search by Hamming distance: queries per second of the index, and of a scan.
//!
//! `cargo bench -p nearset --bench hamming -- [items [bits [radius]]]` draws random items, and queries of which half
//! lie within the radius of one. `-- --files ITEMS QUERIES BITS RADIUS FOUND` reads both as raw bytes instead and
//! writes what it found, one line per pair: query, id, distance. `-- --pictures HASHES COLUMN RADIUS` reads a table of
//! pictures, transforms and hashes, and prints for each transform how many pictures are found again among the
//! originals, and how many queries find another picture.

use std::{
    collections::BTreeMap,
    fs,
    hint::black_box,
    io::{BufWriter, Write},
    sync::LazyLock,
    time::Instant,
};

use nearset::{BitString, Distance, HammingSpec, Index, Metric, Neighbour, Rng, Seed};

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [first, path, column, radius] = &arguments[..]
        && first == "--pictures"
    {
        return pictures(path, column, radius.parse().expect("a number of bits"));
    }
    let number = |at: usize, default: u64| arguments.get(at).and_then(|value| value.parse().ok()).unwrap_or(default);
    if arguments.first().is_some_and(|first| first == "--files") {
        let (bits, radius) = (number(3, 256) as u32, number(4, 31) as u32);
        let read = |path: &str| -> Vec<BitString> {
            let bytes = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            bytes.chunks_exact(bits as usize / 8).map(BitString::from_bytes).collect()
        };
        let (items, queries) = (read(&arguments[1]), read(&arguments[2]));
        let found = measure(&items, &queries, bits, radius);
        let mut out = BufWriter::new(fs::File::create(&arguments[5]).expect("the output can be created"));
        for (query, Neighbour { id, distance }) in &found {
            writeln!(out, "{query}\t{id}\t{}", distance.value()).expect("the output can be written");
        }
        return;
    }
    let (count, bits, radius) = (number(0, 1_000_000), number(1, 256) as usize, number(2, 31) as usize);
    let mut rng = Rng::new(Seed::new(1));
    let mut random = || {
        let mut words: Vec<u8> = (0..bits.div_ceil(8)).map(|_| rng.next_u64() as u8).collect();
        words.truncate(bits / 8);
        BitString::from_bytes(&words)
    };
    let items: Vec<BitString> = (0..count).map(|_| random()).collect();
    let mut queries: Vec<BitString> = (0..10_000).map(|_| random()).collect();
    for query in queries.iter_mut().step_by(2) {
        *query = items[rng.below(count) as usize].clone();
        let turned = rng.below(radius as u64 + 1) as usize;
        rng.distinct(turned, bits as u64).into_iter().for_each(|position| query.flip(position as usize));
    }
    measure(&items, &queries, bits as u32, radius as u32);
}

fn index_of(items: &[BitString], bits: u32, radius: u32) -> Index<'static> {
    let mut index = Index::new(HammingSpec::new(bits, radius, Seed::default())).expect("a valid spec");
    items.iter().for_each(|item| assert!(index.push(item, None).is_ok(), "of one length"));
    index.compact();
    index
}

/// Counts of queries, of pictures found again, and of those taken for another picture.
#[derive(Default)]
struct Tally {
    queries: u32,
    found: u32,
    /// Queries that find some other picture, which the original itself does not resemble.
    mistaken: u32,
}

/// Prints one line per transform, with photographs kept apart from clip-art, whose flat areas make perceptual hashes
/// brittle.
fn pictures(path: &str, column: &str, radius: u32) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let column = header.iter().position(|name| *name == column).expect("the column of the hashes");
    let rows: Vec<Vec<&str>> = lines.collect();
    let hash = |row: &[&str]| BitString::from_hex(row[column]).expect("hexadecimal digits");
    let originals: Vec<&Vec<&str>> = rows.iter().filter(|row| row[1] == "orig").collect();
    let hashes: Vec<BitString> = originals.iter().map(|row| hash(row)).collect();
    let bits = hashes[0].bits().len() as u32;
    let index = index_of(&hashes, bits, radius);
    let places: BTreeMap<&str, usize> = originals.iter().enumerate().map(|(id, row)| (row[0], id)).collect();
    let mut tallies: BTreeMap<(bool, &str), Tally> = BTreeMap::new();
    for row in rows.iter().filter(|row| row[1] != "orig") {
        let clip_art = row[0].starts_with("openclipart/");
        let own = &hashes[places[row[0]]];
        let found = index.search(&hash(row), None, Some(Distance::from_count(radius))).expect("of one length");
        let metric = Metric::Hamming { bits };
        let resembles = |id: u32| {
            let apart = metric.between(own.into(), (&hashes[id as usize]).into()).expect("of one length");
            apart <= Distance::from_count(radius)
        };
        let tally = tallies.entry((clip_art, row[1])).or_default();
        tally.queries += 1;
        tally.found += u32::from(found.iter().any(|neighbour| originals[neighbour.id as usize][0] == row[0]));
        tally.mistaken += u32::from(found.iter().any(|neighbour| !resembles(neighbour.id)));
    }
    for ((clip_art, transform), Tally { queries, found, mistaken }) in tallies {
        let kind = if clip_art { "clip-art" } else { "photo" };
        println!("{kind}\t{transform}\t{queries}\t{found}\t{mistaken}");
    }
}

/// Returns the seconds that this thread has run: on a shared machine, waiting says nothing. Outside Linux, returns wall
/// time.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ran = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = ran.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Prints a line of figures, the best of several rounds, and returns what was found.
fn measure(items: &[BitString], queries: &[BitString], bits: u32, radius: u32) -> Vec<(u32, Neighbour)> {
    let start = seconds();
    let index = index_of(items, bits, radius);
    let build = seconds() - start;
    let (mut fastest, mut found) = (f64::INFINITY, Vec::new());
    for _ in 0..ROUNDS {
        let start = seconds();
        let prepared: Vec<_> = queries.iter().map(|query| index.prepare(query).expect("of one length")).collect();
        let prepared: Vec<_> = prepared.iter().collect();
        let near = index.search_prepared(&prepared, 0, Distance::from_count(radius), usize::MAX);
        found = black_box(near.expect("of this index").unwrap_or_default());
        fastest = fastest.min(seconds() - start);
    }
    let start = seconds();
    let scanned = 10.min(queries.len());
    for query in &queries[..scanned] {
        let farther = Distance::from_count(bits.min(2 * radius + 1));
        black_box(index.search(query, None, Some(farther)).expect("of one length"));
    }
    let scan = scanned as f64 / (seconds() - start);
    let blocks: Vec<String> = index.blocks().iter().map(|(width, radius)| format!("{width}/{radius}")).collect();
    println!(
        "items {} build_s {build:.2} bytes_per_item {:.1} queries_per_s {:.0} scans_per_s {scan:.1} found {} blocks {}",
        items.len(),
        index.bytes() as f64 / items.len() as f64,
        queries.len() as f64 / fastest,
        found.len(),
        blocks.join(","),
    );
    found
}
