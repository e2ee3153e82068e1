//! Deduplicates JSONL with gaoya, as its documentation shows: MinHash signatures of 128 hashes in 16 bands of 8,
//! candidates compared by signature; or writes all pairs that it finds near, as a table. Prints a JSON line with what
//! only the process itself can know.
//!
//! Texts are cut into lower-cased words, five per shingle, in one of two ways; a shorter text is one shingle:
//! - `gaoya`: by the functions of `gaoya::text`, which join each shingle's words in a string;
//! - `slices`: by hand, with shingles hashed as slices of words in place, which is as fast as its signatures can be
//!   fed.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};

use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, VecContainer};
use gaoya::text::{shingle_tokens, whitespace_split};
use serde::Deserialize;

const BANDS: usize = 16;
const ROWS: usize = 8;
const THRESHOLD: f64 = 0.8;
const SHINGLE: usize = 5;

#[derive(Deserialize)]
struct Record {
    id: String,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, cut, wanted] = &arguments[..] else {
        return Err("usage: bench-gaoya IN OUT gaoya|slices kept|pairs".into());
    };
    let all_pairs = match wanted.as_str() {
        "kept" => false,
        "pairs" => true,
        other => return Err(format!("`kept` or `pairs` are written, not `{other}`").into()),
    };
    let by_gaoya = match cut.as_str() {
        "gaoya" => true,
        "slices" => false,
        other => return Err(format!("texts are cut by `gaoya` or into `slices`, not by `{other}`").into()),
    };
    let mut input = BufReader::with_capacity(1 << 20, File::open(input)?);
    let mut output = BufWriter::with_capacity(1 << 20, File::create(output)?);
    let hasher = MinHasher32::new(BANDS * ROWS);
    let mut index: MinHashIndex<u32, u32, VecContainer<u32>> = MinHashIndex::new_index(BANDS, ROWS, THRESHOLD);
    let (mut line, mut documents, mut ids) = (String::new(), 0u32, Vec::new());
    let before = resident_bytes()?;
    while input.read_line(&mut line)? > 0 {
        let record: Record = serde_json::from_str(&line)?;
        let text = record.text.to_lowercase();
        let words: Vec<&str> = if by_gaoya {
            whitespace_split(&text).collect()
        } else {
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
        };
        let mut near = false;
        if !words.is_empty() {
            let signature = match (words.len() < SHINGLE, by_gaoya) {
                (true, _) => hasher.create_signature(std::iter::once(&words[..])),
                (false, true) => hasher.create_signature(shingle_tokens(&words, SHINGLE)),
                (false, false) => hasher.create_signature(words.windows(SHINGLE)),
            };
            let found = index.query(&signature);
            near = !found.is_empty();
            if all_pairs {
                for earlier in found {
                    let earlier: &String = &ids[*earlier as usize];
                    writeln!(output, "{earlier}\t{}", record.id)?;
                }
            }
            index.insert(documents, signature);
        }
        if all_pairs {
            ids.push(record.id);
        } else if !near {
            output.write_all(line.as_bytes())?;
        }
        documents += 1;
        line.clear();
    }
    output.flush()?;
    println!("{{\"index_bytes\": {}}}", resident_bytes()?.saturating_sub(before));
    Ok(())
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = status.split(' ').nth(1).ok_or("no resident pages in /proc/self/statm")?.parse()?;
    Ok(pages * 4096)
}
