//! What share of the items will be found if they leak with edits, before anything is read.
//!
//! A leak in which each word is replaced or deleted with probability `e` keeps a 3-gram if its three words stay. What is left of a passage's
//! weight is then computed word by word: the state is how many of the last two words stayed, and the weight so far in steps that
//! are small beside what is needed. An item counts by its first field that can be found, as a leak of that field alone.
//!
//! Limit: a gram that occurs twice in a passage counts where it occurs first, and a window that edits stretch beyond its width is
//! not reckoned with.

use std::collections::HashSet;

use serde::Serialize;

use super::measure::{GRAM, ONE};
use super::set::Finder;

/// Shares of words that are edited.
const EDITS: [f64; 4] = [0.0, 0.05, 0.1, 0.2];

/// Words from which on items are counted together.
const LENGTHS: [u32; 6] = [1, 8, 12, 16, 32, 64];

/// Items of a length that are computed, evenly spread; the others are as these.
const COMPUTED: usize = 200;

/// Steps of weight up to what is needed.
const STEPS: usize = 256;

/// What is found of items of a length.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Promise {
    /// The least words of the field that is looked for.
    pub from_words: u32,
    /// The most; `None` if there is no bound.
    pub to_words: Option<u32>,
    /// How many items there are.
    pub items: u64,
    /// By share of words edited, the share of the items that is found.
    pub found: Vec<(f64, f64)>,
}

impl Promise {
    /// Returns the length in words, as people write it.
    pub fn length(&self) -> String {
        match self.to_words {
            Some(to) => format!("{} to {to}", self.from_words),
            None => format!("{} and more", self.from_words),
        }
    }

    pub(super) fn row(&self) -> nearset_view::run::PromiseRow {
        nearset_view::run::PromiseRow { words: self.length(), items: self.items, found: self.found.clone() }
    }
}

impl Finder {
    /// Returns what will be found, by length; items that are too short are not in it.
    pub fn promise(&self) -> Vec<Promise> {
        let mut passages: Vec<u32> = Vec::new();
        let mut last = None;
        for (number, passage) in self.passages.iter().enumerate() {
            // The first passage of an item.
            if last != Some(passage.item) {
                passages.push(number as u32);
            }
            last = Some(passage.item);
        }
        let bounds = LENGTHS.iter().zip(LENGTHS.iter().skip(1).map(|next| Some(next - 1)).chain([None]));
        let of_length = |(&from, to): (&u32, Option<u32>)| {
            let fits = |number: &&u32| {
                let words = self.passages.get(**number).words;
                words >= from && to.is_none_or(|to| words <= to)
            };
            let all: Vec<u32> = passages.iter().filter(fits).copied().collect();
            let computed = all.len().min(COMPUTED);
            let some = (0..computed).map(|i| all[i * all.len() / computed]);
            let mut found = [0.0; EDITS.len()];
            for number in some {
                let (weights, needed) = self.weights_in_order(number);
                for (sum, edits) in found.iter_mut().zip(EDITS) {
                    *sum += probability(&weights, needed, edits);
                }
            }
            let found = EDITS.iter().zip(found).map(|(&edits, sum)| (edits, sum / computed.max(1) as f64)).collect();
            Promise { from_words: from, to_words: to, items: all.len() as u64, found }
        };
        bounds.map(of_length).filter(|class| class.items > 0).collect()
    }

    /// Returns the weight of each gram of a passage in its order, 0 where it has been before, and the weight that is needed.
    fn weights_in_order(&self, number: u32) -> (Vec<u64>, u64) {
        let passage = self.passages.get(number);
        let item = &self.benchmark().items()[passage.item as usize];
        let text = item.fields.get(passage.part as usize).map_or_else(|| item.text(), |(_, text)| text.clone());
        let mut grams = Vec::new();
        self.cutter.shingles(&text, &mut grams);
        let mut seen = HashSet::new();
        let weight = |gram: &u64| if seen.insert(*gram) { self.passages.weight(*gram).unwrap_or(0).into() } else { 0 };
        let mut weights: Vec<u64> = grams.iter().map(weight).collect();
        // Of a long item the head tells enough: it needs the same share.
        let (all, head) = (weights.iter().sum::<u64>(), weights.iter().take(MOST_GRAMS).sum::<u64>());
        weights.truncate(MOST_GRAMS);
        (weights, (passage.needed as f64 * head as f64 / all.max(1) as f64) as u64)
    }
}

/// Grams of an item that are looked at.
const MOST_GRAMS: usize = 2000;

/// Returns the probability that enough weight is left.
fn probability(weights: &[u64], needed: u64, edits: f64) -> f64 {
    let step = (needed as f64 / STEPS as f64).max(f64::from(ONE) / 64.0);
    let enough = (needed as f64 / step).round() as usize;
    // By words that stayed in a row, up to two, and by steps of weight; what is enough stays enough.
    let mut states = [vec![0.0; enough + 1], vec![0.0; enough + 1], vec![0.0; enough + 1]];
    states[0][0] = 1.0;
    let mut reached = 0.0;
    // Fractions of steps are carried on, so that rounding does not add up.
    let mut exact = 0.0;
    let mut rounded = 0;
    for word in 0..weights.len() + GRAM - 1 {
        let gain = match word.checked_sub(GRAM - 1) {
            Some(gram) => {
                exact += weights[gram] as f64 / step;
                let gain = (exact.round() as usize).saturating_sub(rounded);
                rounded += gain;
                gain
            }
            None => 0,
        };
        let mut next = [vec![0.0; enough + 1], vec![0.0; enough + 1], vec![0.0; enough + 1]];
        for (run, masses) in states.iter().enumerate() {
            for (mass, &probability) in masses.iter().enumerate().filter(|(_, probability)| **probability > 0.0) {
                next[0][mass] += probability * edits;
                let stays = probability * (1.0 - edits);
                let after = if run == 2 { mass + gain } else { mass };
                if after >= enough {
                    reached += stays;
                } else {
                    next[(run + 1).min(2)][after] += stays;
                }
            }
        }
        states = next;
    }
    reached
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nearset::{Rng, Seed};

    use super::super::items::BenchmarkItem;
    use super::super::measure::Thresholds;
    use super::super::set::{Benchmark, FinderRoom};

    #[test]
    fn what_is_promised_is_found() {
        let mut rng = Rng::new(Seed::new(7));
        // Words of very different frequency, so that weights differ.
        let word = |rng: &mut Rng| format!("w{}", (rng.below(60).pow(2) * (1 + rng.below(6))) / 300);
        for length in [9, 14, 24, 48, 90] {
            let items: Vec<BenchmarkItem> = (0..150)
                .map(|id| {
                    let text: Vec<String> = (0..length).map(|_| word(&mut rng)).collect();
                    BenchmarkItem::new(0, id.to_string(), vec![("text".to_owned(), text.join(" "))])
                })
                .collect();
            let benchmark = Arc::new(Benchmark::new(vec!["x".to_owned()], items));
            let finder = Arc::clone(&benchmark).finder(Thresholds::USUAL);
            let promise = finder.promise();
            assert_eq!(promise.len(), 1, "{length} words");
            let mut room = FinderRoom::default();
            for &(edits, promised) in &promise[0].found {
                let (mut found, mut all) = (0u32, 0u32);
                for (number, item) in benchmark.items().iter().enumerate().filter(|(i, _)| finder.is_decidable(*i)) {
                    for _ in 0..20 {
                        let words = item.fields[0].1.split(' ');
                        let mut edit = |word: &str| match (rng.unit() < edits, rng.below(2)) {
                            (false, _) => Some(word.to_owned()),
                            (true, 0) => Some(format!("edited{}", rng.next_u64())),
                            (true, _) => None,
                        };
                        let edited: Vec<String> = words.filter_map(&mut edit).collect();
                        let findings = finder.find(&edited.join(" "), &mut room);
                        found += u32::from(findings.iter().any(|finding| finding.item == number));
                        all += 1;
                    }
                }
                let seen = f64::from(found) / f64::from(all);
                // 5 sigma of independent draws, and .02 for grams that repeat and steps of weight.
                let sigma = (promised * (1.0 - promised) / f64::from(all)).sqrt();
                let apart = (seen - promised).abs();
                assert!(apart < 5.0 * sigma + 0.02, "{length} words, {edits}: {seen:.3} for {promised:.3}");
            }
        }
    }
}
