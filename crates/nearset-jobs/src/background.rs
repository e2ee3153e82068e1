//! How far apart the unrelated items of a file lie: the background that a plan assumes.
//!
//! Claim: which pairs are compared depends on the records and the seed alone. Where there are more than [`PAIRS`] they are
//! drawn uniformly and independently, from a uniform sample of at most [`MOST_ITEMS`] items (reservoir, Vitter 1985).
//! Limit: the pairs, and the interval that [`Background`] states, speak for this file. How well the file speaks for what
//! will be stored, its owner knows.

use std::sync::Arc;

use nearset::Rng;
use nearset::item::ItemBuffer;
use nearset::plan::Background;
use nearset::spec::SpecError;
use nearset::{Distance, Item, ItemError, Metric, MetricError, MetricName, Seed, Shape, Shingler, Symbols};

use crate::measure::Keeper;
use nearset_records::error::{InputError, RecordError};
use nearset_records::extract::{Arena, extract};
use nearset_records::input::{Batch, ReadOptions, Reader, Source};

/// Pairs that are compared, at most: enough for a million items that have nothing in common, since what the sample leaves
/// possible falls with the number of pairs and is multiplied by the number of items.
pub const PAIRS: u64 = 2_000_000;

/// Items that are kept in memory, at most.
pub const MOST_ITEMS: usize = 20_000;

/// What a file says about unrelated items.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// The metric, with the length of the file's items where none was given.
    pub metric: Metric,
    /// The distances.
    pub background: Background,
    /// Records that were read.
    pub records: u64,
    /// Items among which the pairs are.
    pub items: u64,
}

/// Why there is no background.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackgroundError {
    /// A file that cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A record that cannot be read.
    #[error(transparent)]
    Record(Box<RecordError>),
    /// No metric of this name over such items.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// No such shingles.
    #[error(transparent)]
    Shingling(#[from] SpecError),
    /// An item that the metric does not take.
    #[error("{id}")]
    Item {
        /// The record's id.
        id: String,
        /// Why.
        #[source]
        cause: ItemError,
    },
    /// Nothing to compare.
    #[error("{records} records are too few to measure distances between them: give a sample of some thousand")]
    TooFew {
        /// How many there are.
        records: u64,
    },
}

/// Reads all records and compares pairs of them. A length that `shape` does not know is that of the first item.
///
/// # Errors
/// If something cannot be read, an item is not of the metric, or there are fewer than three.
pub fn measure(
    sources: impl Into<Arc<[Source]>>,
    options: ReadOptions,
    name: MetricName,
    shape: Shape,
    seed: Seed,
) -> Result<Sampled, BackgroundError> {
    let fields = options.fields.clone();
    Shingler::new(shape.shingling.unwrap_or_default(), seed)?;
    let mut reader = Reader::new(sources, options);
    let (mut batch, mut arena) = (Batch::new(), Arena::new());
    let mut rng = Rng::new(seed.derive("background", 0));
    let (mut metric, mut keeper, mut records, mut reservoir) = (None, None, 0u64, Vec::new());
    while reader.read_batch(&mut batch)? {
        let extracted = extract(&batch, &fields, &mut arena);
        for i in 0..extracted.len() {
            let item = extracted.item(i).map_err(|error| BackgroundError::Record(Box::new(error.clone())))?;
            let metric = match metric {
                Some(metric) => metric,
                None => *metric.insert(name.with(Shape { length: shape.length.or(length(item)), ..shape })?),
            };
            records += 1;
            let slot = match reservoir.len() < MOST_ITEMS {
                true => reservoir.len(),
                false => rng.below(records) as usize,
            };
            if slot >= MOST_ITEMS {
                continue;
            }
            let Some(kept) = keeper.get_or_insert_with(|| Keeper::new(metric)).keep(item) else { continue };
            // An item that has no distance to itself has none to others: a wrong length, a vector without direction.
            let fault = metric.between(kept.view(), kept.view()).err();
            if let Some(cause) = fault {
                return Err(BackgroundError::Item { id: extracted.id(i).into_owned(), cause });
            }
            match reservoir.get_mut(slot) {
                Some(place) => *place = kept,
                None => reservoir.push(kept),
            }
        }
    }
    let too_few = BackgroundError::TooFew { records };
    let Some(metric) = metric else { return Err(too_few) };
    let distances = distances(metric, &reservoir, &mut rng);
    let distances = distances.map_err(|cause| BackgroundError::Item { id: "a pair of records".into(), cause })?;
    let background = Background::from_distances(distances).ok_or(too_few)?;
    Ok(Sampled { metric, background, records, items: reservoir.len() as u64 })
}

fn length(item: Item<'_>) -> Option<u32> {
    let length = match item {
        Item::Bits(bits) => bits.len(),
        Item::Vector(vector) => vector.len(),
        Item::Symbols(Symbols::Wide(symbols)) => symbols.len(),
        _ => return None,
    };
    u32::try_from(length).ok()
}

/// Returns the distances of all pairs if they are few, else of [`PAIRS`] drawn ones.
fn distances(metric: Metric, items: &[ItemBuffer], rng: &mut Rng) -> Result<Vec<Distance>, ItemError> {
    let between = |a: usize, b: usize| metric.between(items[a].view(), items[b].view());
    let count = items.len() as u64;
    if count * count.saturating_sub(1) / 2 <= PAIRS {
        return (0..items.len()).flat_map(|b| (0..b).map(move |a| (a, b))).map(|(a, b)| between(a, b)).collect();
    }
    let pair = |_| {
        let a = rng.below(count);
        // One of the others, each as likely.
        let b = (a + 1 + rng.below(count - 1)) % count;
        between(a as usize, b as usize)
    };
    (0..PAIRS).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearset_records::chain;
    use nearset_records::extract::Fields;
    use nearset_records::extract::item_field;
    use nearset_records::input::resolve;

    fn measured(name: &str, lines: &str, metric: MetricName, shape: Shape) -> Result<Sampled, BackgroundError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, lines).unwrap();
        let sources = resolve(&[path.to_str().unwrap().to_owned()], None).unwrap();
        let options = ReadOptions::new(Fields::new("item", item_field(metric.form()).unwrap()));
        measure(sources.list, options, metric, shape, Seed::new(3))
    }

    #[test]
    fn few_items_are_compared_all_with_all() {
        let found = measured("a.txt", "00\n01\n03\nff\n", MetricName::Hamming, Shape::default()).unwrap();
        assert_eq!(found.metric, Metric::Hamming { bits: 8 });
        assert_eq!((found.records, found.items, found.background.pairs()), (4, 4, 6));
        // 1, 2, 1, 8, 7, 6.
        assert_eq!(found.background.quantile(0.3).value(), 1.0);
        assert_eq!(found.background.quantile(1.0).value(), 8.0);
    }

    #[test]
    fn many_items_are_sampled_and_stand_for_all() {
        // Half of the lines are one text and half another, so half of the pairs are equal: 1 without the one item itself.
        let lines: String = (0..30_000).map(|i| if i % 2 == 0 { "00\n" } else { "0f\n" }).collect();
        let found = measured("a.txt", &lines, MetricName::Hamming, Shape::default()).unwrap();
        assert_eq!((found.records, found.items, found.background.pairs()), (30_000, 20_000, PAIRS));
        // 6 sigma over the draws of pairs; the reservoir adds less than a tenth of that.
        let equal = |part| found.background.quantile(part).value() == 0.0;
        let six_sigma = 6.0 * (0.25 / PAIRS as f64).sqrt();
        assert!(equal(0.5 - six_sigma) && !equal(0.5 + six_sigma));
    }

    #[test]
    fn every_kind_of_item_has_its_reader() {
        let words = "a b c d\na b c e\nx y z w\n";
        let shape = Shape { length: None, shingling: Some("words:1".parse().unwrap()) };
        let median = |found: Sampled| found.background.quantile(0.3).value();
        assert_eq!(median(measured("a.txt", words, MetricName::Jaccard, shape).unwrap()), 0.4);
        assert_eq!(median(measured("a.txt", words, MetricName::WeightedJaccard, shape).unwrap()), 0.4);
        let vectors = "{\"item\":[0,3]}\n{\"item\":[4,0]}\n{\"item\":[40,0]}\n";
        assert_eq!(median(measured("a.jsonl", vectors, MetricName::L2, shape).unwrap()), 5.0);
        assert_eq!(median(measured("a.jsonl", vectors, MetricName::L1, shape).unwrap()), 7.0);
        assert_eq!(median(measured("a.jsonl", vectors, MetricName::Cosine, shape).unwrap()), 0.0);
    }

    #[test]
    fn what_has_no_distance_is_named() {
        let why =
            |name: &str, lines: &str, metric| chain(&measured(name, lines, metric, Shape::default()).unwrap_err());
        assert!(why("a.txt", "00\n", MetricName::Hamming).starts_with("1 records are too few"));
        assert!(why("a.txt", "", MetricName::Hamming).starts_with("0 records are too few"));
        let lengths = why("a.txt", "00\n0000\n00\n", MetricName::Hamming);
        assert!(lengths.contains("a.txt:2"), "{lengths}");
        let zero = why("a.jsonl", "{\"item\":[1,2]}\n{\"item\":[0,0]}\n", MetricName::Cosine);
        assert!(zero.contains("a.jsonl:2"), "{zero}");
    }
}
