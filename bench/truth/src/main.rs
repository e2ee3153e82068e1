//! Exact truth for deduplicators: each document's greatest Jaccard similarity with any earlier one.
//!
//! Claim: the similarities are those of the sets of 5-word shingles, counted and not estimated; hashes of 64 bits stand for
//! shingles. A document without words has similarity 0.
//! Invariant: a set that equals an earlier one is not indexed again, since whatever it shares the earlier one shares too. That
//! is what makes counting over an inverted index cheap on corpora with large families of copies.

use std::collections::HashMap;
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

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &arguments[..] else {
        bail!("usage: bench-truth IN.jsonl OUT.tsv");
    };
    let shingler = Shingler::new(Shingling::Words(5), Seed::default())?;
    let reader = BufReader::with_capacity(1 << 20, File::open(input).with_context(|| format!("reading {input}"))?);
    let mut writer = BufWriter::new(File::create(output).with_context(|| format!("writing {output}"))?);
    let mut index = Earlier::default();
    for (number, line) in reader.lines().enumerate() {
        let record: Record = serde_json::from_str(&line?).with_context(|| format!("{input}, line {}", number + 1))?;
        let nearest = index.add(&shingler.shingle_set(&record.text));
        writeln!(writer, "{}\t{:.6}\t{}", record.id, nearest, record.text.len())?;
    }
    writer.flush()?;
    Ok(())
}

/// An inverted index of the distinct sets so far.
#[derive(Default)]
struct Earlier {
    /// Where a shingle's postings are.
    rows: HashMap<u64, u32>,
    /// The sets that hold a shingle, ascending.
    postings: Vec<Vec<u32>>,
    sizes: Vec<u32>,
    /// Shingles shared with the set at hand, by set; zero between calls.
    shared: Vec<u32>,
}

impl Earlier {
    /// The greatest similarity of a set, ascending and without repeats, with an earlier one; then it is one itself.
    fn add(&mut self, set: &[u64]) -> f64 {
        if set.is_empty() {
            return 0.0;
        }
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
        let mut nearest = 0.0f64;
        for earlier in touched {
            let shared = std::mem::take(&mut self.shared[earlier as usize]);
            let union = set.len() as u32 + self.sizes[earlier as usize] - shared;
            nearest = nearest.max(f64::from(shared) / f64::from(union));
        }
        if nearest < 1.0 {
            self.index(set);
        }
        nearest
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
    use nearset::{hash::Rng, item::jaccard};

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
            let compared = sets[..i].iter().map(|earlier| jaccard(set, earlier).value()).fold(0.0, f64::max);
            assert_eq!(index.add(set), compared, "set {i}: {set:?}");
        }
    }
}
