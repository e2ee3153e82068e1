//! Exact truth for deduplicators: each document's greatest Jaccard similarity with any earlier one, with any earlier
//! one that a deduplicator kept, or all pairs from a similarity on.
//!
//! Claim: the similarities are those of the sets of 5-word shingles, counted rather than estimated; hashes of 64 bits
//! stand for shingles. Documents without words are equal or have similarity 0, and an empty one is near nothing.
//! Invariant: for the greatest similarity, a set that equals an earlier one is not indexed again, since the earlier one
//! shares whatever it shares. That makes counting over an inverted index cheap on corpora with large families of
//! copies.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::{Context, Result, bail};
use nearset::{Seed, Shingler, Shingling};
use serde::Deserialize;

#[derive(Deserialize)]
struct Record {
    id: String,
    text: String,
}

const USAGE: &str = "usage: bench-truth IN.jsonl OUT.tsv [kept KEPT.jsonl | pairs NEAR]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (input, output) = match arguments[..] {
        [input, output] | [input, output, "kept" | "pairs", _] => (input, output),
        _ => bail!(USAGE),
    };
    let mut writer = BufWriter::new(File::create(output).with_context(|| format!("writing {output}"))?);
    let shingler = Shingler::new(Shingling::Words(5), Seed::default())?;
    let mut index = Earlier::default();
    if let ["pairs", near] = arguments[2..] {
        let near: f64 = near.parse().context(USAGE)?;
        let mut ids = Vec::new();
        each_record(input, |record| {
            let set = cut(&shingler, &record.text);
            let mut found = index.shared_with(&set);
            found.retain(|&(_, similarity)| similarity >= near);
            found.sort_unstable_by_key(|&(earlier, _)| earlier);
            for (earlier, similarity) in found {
                writeln!(writer, "{}\t{}\t{similarity:.6}", ids[earlier as usize], record.id)?;
            }
            if !set.is_empty() {
                index.index(&set);
                ids.push(record.id);
            }
            Ok(())
        })?;
    } else {
        let mut kept = HashSet::new();
        if let ["kept", path] = arguments[2..] {
            each_record(path, |record| {
                kept.insert(record.id);
                Ok(())
            })?;
        }
        let all = arguments.len() == 2;
        each_record(input, |record| {
            let set = cut(&shingler, &record.text);
            let nearest = index.nearest(&set);
            writeln!(writer, "{}\t{:.6}\t{}", record.id, nearest, record.text.len())?;
            if nearest < 1.0 && !set.is_empty() && (all || kept.contains(&record.id)) {
                index.index(&set);
            }
            Ok(())
        })?;
    }
    writer.flush()?;
    Ok(())
}

/// The set of a text: of its shingles, or of the text as a whole where it has none.
fn cut(shingler: &Shingler, text: &str) -> Vec<u64> {
    let set = shingler.shingle_set(text);
    if set.is_empty() && !text.is_empty() { vec![shingler.whole(text)] } else { set }
}

fn each_record(path: &str, mut each: impl FnMut(Record) -> Result<()>) -> Result<()> {
    let reader = BufReader::with_capacity(1 << 20, File::open(path).with_context(|| format!("reading {path}"))?);
    for (number, line) in reader.lines().enumerate() {
        each(serde_json::from_str(&line?).with_context(|| format!("{path}, line {}", number + 1))?)?;
    }
    Ok(())
}

/// An inverted index of the distinct sets so far.
#[derive(Default)]
struct Earlier {
    /// The row of each shingle's postings.
    rows: HashMap<u64, u32>,
    /// The sets that hold a shingle, in ascending order.
    postings: Vec<Vec<u32>>,
    sizes: Vec<u32>,
    /// The number of shingles shared with the current set, by set; zero between calls.
    shared: Vec<u32>,
}

impl Earlier {
    /// Returns the greatest similarity of a set, ascending and without repeats, with an earlier one.
    fn nearest(&mut self, set: &[u64]) -> f64 {
        self.shared_with(set).iter().fold(0.0, |nearest, &(_, similarity)| similarity.max(nearest))
    }

    /// Returns the earlier sets that share anything with a set, ascending and without repeats, and their similarities.
    fn shared_with(&mut self, set: &[u64]) -> Vec<(u32, f64)> {
        let mut touched = Vec::new();
        for row in set.iter().filter_map(|shingle| self.rows.get(shingle)) {
            for &earlier in &self.postings[*row as usize] {
                let shared = &mut self.shared[earlier as usize];
                if *shared == 0 {
                    touched.push(earlier);
                }
                *shared += 1;
            }
        }
        let similarity = |earlier: u32| {
            let shared = std::mem::take(&mut self.shared[earlier as usize]);
            let union = set.len() as u32 + self.sizes[earlier as usize] - shared;
            (earlier, f64::from(shared) / f64::from(union))
        };
        touched.into_iter().map(similarity).collect()
    }

    fn index(&mut self, set: &[u64]) {
        let number = self.sizes.len() as u32;
        self.sizes.push(set.len() as u32);
        self.shared.push(0);
        for &shingle in set {
            let row = *self.rows.entry(shingle).or_insert_with(|| {
                self.postings.push(Vec::new());
                self.postings.len() as u32 - 1
            });
            self.postings[row as usize].push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, item::SortedSet};

    use super::*;

    #[test]
    fn counting_agrees_with_comparing_all_pairs() {
        let mut rng = Rng::new(Seed::new(7));
        // Few elements and short sets, so that equal, overlapping and disjoint ones all occur.
        let sets: Vec<Vec<u64>> = (0..300)
            .map(|_| {
                let size = rng.below(7);
                let mut set: Vec<u64> = (0..size).map(|_| rng.below(12)).collect();
                set.sort_unstable();
                set.dedup();
                set
            })
            .collect();
        let mut index = Earlier::default();
        for (i, set) in sets.iter().enumerate() {
            let own = SortedSet::from(&set[..]);
            let similarity = |earlier: &Vec<u64>| own.jaccard(&SortedSet::from(&earlier[..])).value();
            let compared = sets[..i].iter().map(similarity).fold(0.0, f64::max);
            assert_eq!(index.nearest(set), compared, "set {i}: {set:?}");
            index.index(set);
        }
    }
}
