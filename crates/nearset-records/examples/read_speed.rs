//! How fast JSON Lines are read, beside the floor that a scan for line ends sets.
//!
//! `cargo run --release -p nearset-records --example read_speed [FILE.jsonl[.gz|.zst]] [FIELD]`; without a file, on a
//! corpus made up here.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use nearset::Item;
use nearset_records::{
    Arena, Batch, Fields, ItemField, OutputOptions, ReadOptions, Reader, RecordWriter, Sources, extract, resolve,
};

const REPETITIONS: usize = 7;

#[derive(serde::Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

fn made_up(folder: &std::path::Path) -> std::io::Result<String> {
    let mut lines = String::new();
    for i in 0..20_000u64 {
        let mut text = String::new();
        for word in 0..350 {
            // A few escapes, as line ends in prose are.
            text.push_str(if word % 14 == 13 { "\\n" } else { " " });
            let _ = write!(text, "{:x}", (i * 350 + word).wrapping_mul(0x9e37_79b9) >> 12 & 0xf_ffff);
        }
        let _ =
            writeln!(lines, "{{\"id\":{i},\"url\":\"https://example.org/{i}\",\"text\":\"{text}\",\"lang\":\"en\"}}");
    }
    let path = folder.join("made_up.jsonl");
    std::fs::write(&path, lines)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Reads everything, giving each batch to `work`; the best of several runs, in MB of uncompressed bytes per second.
fn measure(
    name: &str,
    sources: &Sources,
    fields: &Fields,
    mut work: impl FnMut(&Batch) -> usize,
) -> Result<(), Box<dyn Error>> {
    let mut best = 0.0f64;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        let mut reader = Reader::new(sources.list.clone(), ReadOptions::new(fields.clone()));
        let mut batch = Batch::new();
        let mut bytes = 0;
        while reader.read_batch(&mut batch)? {
            bytes += batch.bytes().len();
            black_box(work(&batch));
        }
        best = best.max(bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    println!("{name:<44}{best:>8.0} MB/s");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut arguments = std::env::args().skip(1);
    let input = match arguments.next() {
        Some(input) => input,
        None => made_up(folder.path())?,
    };
    let fields = Fields::new(arguments.next().unwrap_or_else(|| "text".to_owned()), ItemField::Text);
    let sources = resolve(&[input], None)?;

    // The whole input in memory, so that the scans are measured without the reading.
    let mut memory = Vec::new();
    let mut reader = Reader::new(sources.list.clone(), ReadOptions::new(fields.clone()));
    let mut batch = Batch::new();
    while reader.read_batch(&mut batch)? {
        memory.push(std::mem::take(&mut batch));
    }
    let bytes: usize = memory.iter().map(|batch| batch.bytes().len()).sum();
    let floor = |name: &str, work: &mut dyn FnMut(&Batch) -> usize| {
        let mut best = 0.0f64;
        for _ in 0..REPETITIONS {
            let start = Instant::now();
            for batch in &memory {
                black_box(work(batch));
            }
            best = best.max(bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
        }
        println!("{name:<44}{best:>8.0} MB/s");
    };
    println!("{:.1} MB", bytes as f64 / 1e6);
    let mut arena = Arena::new();
    let mut texts = |batch: &Batch| {
        let extracted = extract(batch, &fields, &mut arena);
        (0..extracted.len()).map(|i| if let Ok(Item::Text(text)) = extracted.item(i) { text.len() } else { 0 }).sum()
    };
    floor("in memory: scan for line ends", &mut |batch| memchr::memchr_iter(b'\n', batch.bytes()).count());
    floor("in memory: check UTF-8", &mut |batch| simdutf8::basic::from_utf8(batch.bytes()).map_or(0, str::len));
    floor("in memory: extract one field", &mut texts);
    floor("in memory: the same by serde_json, borrowed", &mut |batch| {
        (0..batch.len())
            .map(|i| serde_json::from_slice::<Document<'_>>(batch.raw(i)).map_or(0, |document| document.text.len()))
            .sum()
    });
    measure("file: read and split", &sources, &fields, |batch| batch.len())?;
    measure("file: read, split and extract", &sources, &fields, &mut texts)?;
    for name in ["out.jsonl", "out.jsonl.zst"] {
        let mut options = OutputOptions::protecting(&sources.list);
        options.force = true;
        let mut writer = RecordWriter::create(&folder.path().join(name), Vec::new(), &options)?;
        let mut failure = None;
        measure(&format!("file: read, split and copy to {name}"), &sources, &fields, |batch| {
            let copied = writer.begin(batch).and_then(|()| (0..batch.len()).try_for_each(|i| writer.copy(batch, i)));
            failure = copied.err().or(failure.take());
            batch.len()
        })?;
        if let Some(failure) = failure {
            return Err(failure.into());
        }
    }
    Ok(())
}
